/*
 * simt_world.h - N ranks with their connections and kernel arguments in one process.
 *
 * Owns what the driver layer, the transport and the planner do for a kernel, done here by hand and
 * from the contracts alone: FIFO blocks, the blob, the partition of a call. And the checks after a
 * run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SIMT_WORLD_H
#define SIMT_WORLD_H

#include <string>

#include "device/cuda/gp_kargs.h"
#include "tests/simt/gp_simt.h"

typedef void (*sw_kernel_t)(gp_kargs_t args);

/* One call of all ranks. */
struct sw_call {
    uint64_t count;
    uint32_t family;
    uint32_t rop;
    uint32_t send_offset; /* bytes by which the buffers miss 16-byte alignment */
    uint32_t recv_offset;
    uint32_t channels;    /* that run; <= those of the case */
    bool in_place;
};

/* A case: connections once, then calls one after the other. */
struct sw_case {
    uint32_t algorithm;
    uint32_t protocol;
    uint32_t n_ranks;
    uint32_t channels;
    uint32_t threads;
    uint32_t n_slots;
    uint64_t slot_bytes; /* a multiple of 256: whole pairs of lines */
    uint64_t first_step;
    bool gated;
    bool stale;          /* LL: leave old flags where they are, whatever their age */
    uint32_t n_calls;
    sw_call calls[40];
    simt_options_t options;
    int absent;          /* rank that never launches; -1: none */
};

/* Kernels by [family][protocol]; NULL: not in this program. */
extern sw_kernel_t sw_kernels[GP_FAMILY_COUNT][GP_PROTO_COUNT];

/* "" when all is right, else everything needed to run the case again and what went wrong. */
std::string sw_run(const sw_case &c);
/*
 * With an absent rank: abort the others at options.hook_pass; all must end and say what they waited
 * for.
 */
std::string sw_run_abort(const sw_case &c);
std::string sw_name(const sw_case &c);

/* Elements of `elem_bytes` that a chunk of the case holds. */
uint64_t sw_chunk_elems(const sw_case &c, uint32_t elem_bytes);
/* Chunks of one loop. */
uint32_t sw_chunks(const sw_case &c);

#endif /* SIMT_WORLD_H */
