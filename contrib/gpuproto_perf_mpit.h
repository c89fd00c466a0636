/*
 * gpuproto_perf_mpit.h - what the component says about the calls it ran, read through MPI_T.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_PERF_MPIT_H
#define GPUPROTO_PERF_MPIT_H

#include <mpi.h>
#include <stdint.h>

/* Values of this process. last_*: the most recent call that gpuproto ran itself. */
typedef struct perf_mpit_values {
    int algorithm; /* gp_algorithm_t */
    int protocol;  /* gp_protocol_t */
    int channels;
    int executor;  /* gp_executor_t */
    uint64_t calls;    /* run by gpuproto */
    uint64_t declined; /* passed on to the previous component */
    uint64_t staged;   /* of the declined ones: copied through host memory */
} perf_mpit_values_t;

/* Names of the component's numbers, "?" for one this program does not know. */
const char *perf_algorithm_name(int algorithm);
const char *perf_protocol_name(int protocol);
const char *perf_executor_name(int executor);

/* After MPI_Init. Returns 1 when the component is loaded and publishes its variables, 0 otherwise. */
int perf_mpit_open(MPI_Comm comm);
void perf_mpit_read(perf_mpit_values_t *values);
void perf_mpit_close(void);

#endif /* GPUPROTO_PERF_MPIT_H */
