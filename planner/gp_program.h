/*
 * gp_program.h - the program: what one rank does on one channel, as data.
 *
 * Owns the format that planners emit, the verifier proves and the executors interpret. Plain C,
 * also valid as CUDA C++.
 *
 *   program = streams; stream = ordered steps; step = ordered inputs -> reduce -> output? -> sends
 *
 * One loop of a stream runs its steps in order; the call runs `loops` loops. In loop l a step on
 * connection ref r uses the connection's step number
 *       conn.step + l * link.uses + r.ordinal
 * so executors keep no mutable counters inside the loop. After a call conn.step += loops * link.uses.
 *
 * A step first waits for all its inputs (in any order), reduces them left to right in list order,
 * writes the result to the output buffer if GP_STEP_OUTPUT is set and to every connection of its send
 * list (each after its credit), and frees the slots of its inputs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_PROGRAM_H
#define GP_PROGRAM_H

#include "device/proto/gp_fifo.h"
#include "device/proto/gp_status.h"

typedef enum gp_algorithm {
    GP_ALGO_RING,
    GP_ALGO_TREE,
    GP_ALGO_FLAT,   /* one-shot: send to all, reduce all in rank order */
    GP_ALGO_CUSTOM, /* emitted by a test or a later planner */
    GP_ALGO_COUNT
} gp_algorithm_t;

#define GP_REF_OWN 0xffffffffu /* an input that is this rank's own send buffer */

#define GP_STEP_OUTPUT 1u      /* write the result to the receive buffer */

/* An input or a send of a step. */
typedef struct gp_ref {
    uint32_t conn;    /* index into recv (inputs) or send (sends) links, or GP_REF_OWN */
    uint32_t ordinal; /* which use of that connection inside one loop; 0 for GP_REF_OWN */
} gp_ref_t;

typedef struct gp_step {
    uint32_t chunk;      /* chunk index of the loop, < n_chunks */
    uint32_t flags;      /* GP_STEP_* */
    uint32_t in_first;   /* first input in refs */
    uint32_t n_in;       /* >= 1 */
    uint32_t send_first; /* first send in refs */
    uint32_t n_send;     /* may be 0 */
} gp_step_t;

typedef struct gp_stream {
    uint32_t first; /* first step */
    uint32_t count;
} gp_stream_t;

/*
 * One rank, one channel. All arrays are in the same allocation as the struct: gp_program_free() frees
 * everything. A connection (link) belongs to exactly one stream.
 */
typedef struct gp_program {
    uint32_t algorithm; /* gp_algorithm_t: recorded by the executor that runs it */
    uint32_t rank;
    uint32_t n_ranks;
    uint32_t channel;
    uint32_t n_chunks;  /* chunks of one loop */
    uint32_t n_streams;
    uint32_t n_steps;   /* of one loop, all streams together */
    uint32_t n_refs;
    uint32_t n_recv;
    uint32_t n_send;
    gp_stream_t *streams;
    gp_step_t *steps;
    gp_ref_t *refs;
    gp_link_t *recv;    /* peers we receive from; at most one link per peer */
    gp_link_t *send;    /* peers we send to; at most one link per peer */
} gp_program_t;

/* Which ranks share a node. Nodes are numbered in the order of the ring. */
typedef struct gp_layout {
    uint32_t n_nodes;
    const uint32_t *order; /* [n_ranks] ranks, node after node */
    const uint32_t *first; /* [n_nodes + 1] where a node begins in order; first[n_nodes] is n_ranks */
} gp_layout_t;

/* What the programs of all ranks and channels have in common. */
typedef struct gp_shape {
    uint32_t algorithm;        /* gp_algorithm_t */
    uint32_t n_ranks;
    uint32_t n_channels;
    uint32_t slices;           /* ring: pieces in which a chunk is handed on; 1: whole */
    const gp_layout_t *layout; /* NULL: no nodes to tell apart */
} gp_shape_t;

#define GP_MOST_SLICES 8u

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Allocate a program with the given array lengths, zeroed, pointers set. NULL when out of memory.
 * The caller owns it.
 */
gp_program_t *gp_program_alloc(uint32_t n_streams, uint32_t n_steps, uint32_t n_refs,
                               uint32_t n_recv, uint32_t n_send);
void gp_program_free(gp_program_t *program);

/*
 * Emit the program of `rank` (of n_ranks) on `channel` (of n_channels). n_ranks >= 1: one rank gives a
 * single copy step. The result is a pure function of its arguments. Caller owns *program_p.
 * GP_ERR_INVALID: argument out of range; GP_ERR_NO_MEMORY.
 */
gp_status_t gp_program_emit(gp_algorithm_t algorithm, uint32_t n_ranks, uint32_t rank,
                            uint32_t channel, uint32_t n_channels, gp_program_t **program_p);

/*
 * The same of a shape. With a layout of several nodes a ring enters each node once, on another rank of it
 * every second channel (so that several network cards are used), and a tree has chains inside the nodes
 * and its two binary trees between their first ranks, rotated alike. GP_ERR_INVALID also for a layout that
 * is none. The layout is not kept.
 */
gp_status_t gp_program_emit_shape(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                                  gp_program_t **program_p);

#ifdef __cplusplus
}
#endif

#endif /* GP_PROGRAM_H */
