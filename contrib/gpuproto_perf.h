/*
 * gpuproto_perf.h - options, table rows and reports of gpuproto_perf.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_PERF_H
#define GPUPROTO_PERF_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "contrib/gpuproto_perf_mem.h"
#include "device/proto/gp_types.h"

#define PERF_MAX_TYPES 32

/* An element type by its name on the command line. */
typedef struct perf_type {
    const char *name;
    MPI_Datatype mpi;
    gp_type_t type;
    uint32_t ops;   /* bit mask of gp_op_t that MPI defines for it */
} perf_type_t;

typedef struct perf_args {
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t step_bytes;      /* used when step_factor < 2 */
    uint64_t step_factor;
    uint32_t iters;
    uint32_t warmup;
    uint32_t check;           /* checked calls per row and place; 0: none */
    uint32_t cycles;          /* 0: for ever */
    double row_seconds;       /* fewer iterations where a row would take longer; 0: no limit */
    perf_mem_kind_t memory;
    uint64_t send_offset_bytes;
    uint64_t recv_offset_bytes;
    uint64_t seed;
    int brief;                /* six columns */
    int inject;               /* spoil one element before it is checked: the check must see it */
    int force;                /* run even where MPI would not know what a device pointer is */
    const char *json_path;
    const char *csv_path;
    uint32_t n_types;
    perf_type_t types[PERF_MAX_TYPES];
    uint32_t ops;             /* bit mask of gp_op_t */
} perf_args_t;

/* What ran, as the component tells it. */
typedef struct perf_ran {
    char algorithm[16];  /* "ring", or "-" when gpuproto did not run all the calls */
    char protocol[16];
    char executor[16];   /* "cuda", "host"; "staged" or "declined" when passed on; "-" without it */
    int channels;        /* 0: unknown */
} perf_ran_t;

/* One place (out of place, in place) of one row; valid on rank 0. */
typedef struct perf_result {
    double median_us;  /* over iterations, of the slowest rank's time of that iteration */
    double p95_us;
    double min_us;
    double algbw;      /* GB/s: bytes / median */
    double busbw;      /* algbw * 2 (ranks - 1) / ranks */
    uint64_t wrong;    /* elements, all ranks together */
    uint32_t iters;
    perf_ran_t ran;
} perf_result_t;

typedef struct perf_row {
    uint64_t bytes;
    uint64_t count;
    const char *type;
    const char *op;
    int checked;
    perf_result_t out_of_place;
    perf_result_t in_place;
} perf_row_t;

/* Facts for headers and files. */
typedef struct perf_job {
    int n_ranks;
    int n_nodes;
    int active;             /* the component is loaded on every rank */
    const char *library;    /* first line of MPI_Get_library_version */
} perf_job_t;

/*
 * Parse the command line. Returns 0 to go on, 1 to exit with success (--help), 2 for a usage error;
 * messages only on rank 0.
 */
int perf_args_parse(perf_args_t *args, int argc, char **argv, int rank);

/* "sum", as on the command line. */
const char *perf_op_name(gp_op_t op);

/* Rank 0 only. Returns 0, or -1 when a file cannot be written (said on stderr). */
int perf_report_open(const perf_args_t *args, const perf_job_t *job);
void perf_report_row(const perf_row_t *row);
int perf_report_close(uint64_t wrong, uint64_t rows);

#endif /* GPUPROTO_PERF_H */
