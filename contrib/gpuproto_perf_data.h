/*
 * gpuproto_perf_data.h - test data of gpuproto_perf and the result it must give.
 *
 * Owns the generator: the value of (rank, index) is a hash of both, shaped so that the result of any
 * reduction order is exact in the element type. Results are computed in integers, never with the
 * arithmetic under test, so a comparison needs no tolerance.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_PERF_DATA_H
#define GPUPROTO_PERF_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "device/proto/gp_types.h"

/* Chosen once per table row, equal on all ranks. */
typedef struct perf_data {
    gp_type_t type;
    gp_op_t op;
    uint32_t n_ranks;
    uint32_t wrap;      /* integer sums and products may overflow (they wrap) */
    uint64_t seed;
    uint64_t limit;     /* largest absolute value, where the shape has one */
    uint32_t sparse;    /* sums: only every sparse-th rank contributes at an index */
    uint32_t shape;     /* internal */
} perf_data_t;

/* (type, op) must be a pair of the table in gp_types.h; n_ranks >= 1. */
void perf_data_init(perf_data_t *data, gp_type_t type, gp_op_t op, uint32_t n_ranks, uint32_t wrap,
                    uint64_t seed);

/* Write rank's elements first .. first + count - 1 to elems[0 .. count - 1]. */
void perf_data_fill(const perf_data_t *data, uint32_t rank, uint64_t first, uint64_t count,
                    void *elems);

/*
 * Compare elems[0 .. count - 1] with the result's elements first .. first + count - 1. Returns how many
 * differ; *bad_p (may be NULL) gets the index (first-based) of the first one, untouched when none does.
 */
uint64_t perf_data_check(const perf_data_t *data, uint64_t first, uint64_t count, const void *elems,
                         uint64_t *bad_p);

#endif /* GPUPROTO_PERF_DATA_H */
