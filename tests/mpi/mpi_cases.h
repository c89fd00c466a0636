/*
 * mpi_cases.h - shared by the files of mpi_cases.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MPI_CASES_H
#define MPI_CASES_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "contrib/gpuproto_perf_data.h"
#include "contrib/gpuproto_perf_mem.h"
#include "contrib/gpuproto_perf_mpit.h"

typedef enum mc_who { MC_OURS, MC_DECLINED } mc_who_t;

typedef struct mc_type {
    MPI_Datatype mpi;
    gp_type_t type;
    const char *name;
} mc_type_t;

typedef struct mc_op {
    MPI_Op mpi;
    gp_op_t op;
    const char *name;
} mc_op_t;

extern int mc_rank, mc_ranks;

void mc_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
perf_mpit_values_t mc_stats(void);
void mc_expect(const perf_mpit_values_t *before, mc_who_t who, uint64_t calls, const char *what);
void mc_call(MPI_Comm comm, const mc_type_t *t, const mc_op_t *o, size_t count, int in_place,
             size_t skew_elems, uint64_t seed);
uint64_t mc_random(uint64_t *state);
int mc_count_entries(const char *dir, const char *prefix);

/* mpi_types.c */
const mc_type_t *mc_types(size_t *n);
const mc_op_t *mc_ops(size_t *n);
void mc_matrix(void);
void mc_other(void);
void mc_expected(void);

/* mpi_comms.c */
void mc_zero(void);
void mc_comms(void);
void mc_inter(void);
void mc_self(void);
void mc_rapid(void);
void mc_late(void);
void mc_threads(void);
void mc_killed(void);
void mc_stuck(void);
void mc_windows(void);
void mc_big(void);

/* mpi_jobs.c */
void mc_others(void);
void mc_spawn(void);
void mc_bottom(void);
void mc_stuck_first(void);
void mc_warned(void);

/* mpi_net.c */
void mc_net(void);
void mc_random_calls(void);
void mc_cut(void);

/* mpi_kinds.c */
void mc_kinds(void);

#endif /* MPI_CASES_H */
