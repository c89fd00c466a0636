/*
 * gp_gate.h - who may start a wide launch, and when.
 *
 * Kernels of gpuproto spin until their peers have sent, so all blocks of all ranks of a call must be
 * resident on their GPUs together. A call of few blocks always finds room. A wide one passes a gate first:
 *
 *   1. all ranks of the communicator have arrived: a late rank leaves the GPUs to the application;
 *   2. one of them holds the token of every GPU that the communicator uses: of several communicators, in
 *      whatever order threads and processes call them, one at a time fills a GPU. Without keys there are
 *      no tokens, for a communicator that is alone on its GPUs.
 *
 * Tokens are names of abstract Unix sockets: the kernel lets one process bind a name, and frees it when
 * that process ends, however it ends. They hold among processes of one network namespace.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_GATE_H
#define GP_GATE_H

#include "transport/gp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GP_GATE_MOST_KEYS 64u

typedef struct gp_gate gp_gate_t;

/*
 * Make a gate, collectively over boot; all ranks run on one host. keys: what the communicator fills (a
 * number for each GPU), equal on all ranks, in any order, none twice; n_keys <= GP_GATE_MOST_KEYS.
 * shm: an arena of memory that all ranks can map (gp_shm_arena()); NULL: this rank has none. If any
 * rank fails, all return an error. The caller owns *gate_p.
 */
gp_status_t gp_gate_create(gp_arena_t *shm, const gp_boot_t *boot, const uint64_t *keys,
                           uint32_t n_keys, gp_gate_t **gate_p);
/* Local; between calls, or when the communicator is given up. NULL is allowed. */
void gp_gate_destroy(gp_gate_t *gate);

/* This rank is there. Then gp_gate_try() until it is not GP_AGAIN, the launch, and gp_gate_leave(). */
void gp_gate_arrive(gp_gate_t *gate);

/* GP_OK: start the launch. GP_AGAIN: not yet. GP_ERR_SYSTEM: no socket could be made (logged). */
gp_status_t gp_gate_try(gp_gate_t *gate);

/*
 * This rank's launch is over, or was given up. The tokens go back when the rank that holds them leaves:
 * when its blocks are through, those of all other ranks run already.
 */
void gp_gate_leave(gp_gate_t *gate);

/* A rank that has not arrived, or n_ranks when all have and a token is waited for. */
uint32_t gp_gate_missing(const gp_gate_t *gate);

#ifdef __cplusplus
}
#endif

#endif /* GP_GATE_H */
