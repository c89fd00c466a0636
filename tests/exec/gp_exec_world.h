/*
 * gp_exec_world.h - N ranks of the host executor in one process, for tests.
 *
 * Owns the in-process bootstrap (threads and a barrier, only while connections are made), the programs,
 * the connection sets over the real shared-memory arena, and the loop that drives all ranks from one
 * thread, in turn or in random order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_EXEC_WORLD_H
#define GP_EXEC_WORLD_H

#include "device/host/gp_host.h"

#define WORLD_MAX_RANKS 16
#define WORLD_MAX_CHANNELS 4

/* An executor under test. */
typedef struct world_ops {
    uint32_t threads; /* of a call's work; 0 on host */
    gp_status_t (*arena)(gp_arena_t **arena_p);
    gp_status_t (*create)(uint32_t protocol, const gp_program_t *const *programs, gp_connset_t *set,
                          void **exec_p);
    void (*destroy)(void *exec);
    gp_status_t (*start)(void *exec, const gp_work_t *work);
    gp_status_t (*progress)(void *exec, int *moved);
    void (*record)(const void *exec, gp_exec_record_t *record);
} world_ops_t;

extern const world_ops_t world_host_ops;

typedef struct world_case {
    const world_ops_t *ops;
    gp_algorithm_t algorithm; /* GP_ALGO_CUSTOM: programs are given */
    gp_protocol_t protocol;
    uint32_t n_ranks;
    uint32_t channels;
    uint32_t n_slots;
    uint64_t slot_bytes;
    uint64_t first_step;
    uint32_t gated;
    uint32_t per_node; /* ranks on a node; nodes are connected by a fake net. 0: all on one */
} world_case_t;

typedef struct world {
    world_case_t c;
    gp_program_t *programs[WORLD_MAX_RANKS][WORLD_MAX_CHANNELS];
    gp_connset_t *sets[WORLD_MAX_RANKS];
    void *execs[WORLD_MAX_RANKS];
    gp_status_t status[WORLD_MAX_RANKS]; /* of the making */
    void *boot;
    struct fake_wire *wire;              /* where there are several nodes */
    uint32_t node_of[WORLD_MAX_RANKS];
} world_t;

/* "ring/ll ranks 4 channels 1 slots 2 x 4096 first step 7"; a static buffer. */
const char *world_name(const world_case_t *c);

/*
 * custom: n_ranks programs for channel 0 (taken over), or NULL. NULL when something failed (reported
 * by gp_log). The caller destroys it.
 */
world_t *world_create(const world_case_t *c, gp_program_t **custom);
void world_destroy(world_t *w);

/* Partition of a call: chunks as large as a slot allows and no larger than needed. */
gp_geom_t world_geom(const world_t *w, uint64_t count, uint32_t elem_bytes);

/*
 * Run one call on all ranks: sends[r], recvs[r] (equal: in place). seed 0: in turn; else random order,
 * and ranks start late. GP_OK, or the first error, or GP_AGAIN when nothing moved any more (deadlock).
 */
gp_status_t world_run(world_t *w, const gp_geom_t *geom, gp_red_t red, void *const *sends,
                      void *const *recvs, uint64_t seed);

/* A small generator for tests: splitmix64. */
uint64_t world_random(uint64_t *state);

/* `bytes` bytes that end at the last byte of accessible memory, `misalign` bytes from 64-alignment. */
typedef struct world_buffer {
    unsigned char *data;
    unsigned char *map;
    size_t map_bytes;
    size_t bytes;
} world_buffer_t;

/* data + bytes is followed by an inaccessible page when at_end, else by guard bytes. */
int world_buffer_make(world_buffer_t *b, size_t bytes, size_t misalign, int at_end);
/* Guard bytes around the data are as they were. */
int world_buffer_intact(const world_buffer_t *b);
void world_buffer_free(world_buffer_t *b);

#endif /* GP_EXEC_WORLD_H */
