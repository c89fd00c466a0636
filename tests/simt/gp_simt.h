/*
 * gp_simt.h - runs kernels on a CPU: blocks of cooperating fibres under one scheduler.
 *
 * Owns the fibre scheduler's interface. Every CUDA thread is a fibre with its own stack; all fibres
 * of all blocks of all ranks run in one OS thread, so a run is reproducible from its seed. The
 * scheduler visits fibres in passes, starts each pass at a random one, and leaves out a random part
 * of them.
 *
 *   simt_launch_t kernels of rank 0:  call 0, call 1, ...     each starts when the one before has
 *   ended
 *                         of rank 1:  call 0, call 1, ...     ranks run against each other
 *
 * A run ends well, or with a report: a deadlock (many passes in which every fibre only polled or
 * waited at a barrier), a broken rule of the model (a partial line, lanes of a warp in different
 * votes, a misaligned access), or too many passes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIMT_H
#define GP_SIMT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SIMT_SUPPORTED 1 /* switching stacks takes some assembly per processor */
#else
#define SIMT_SUPPORTED 0
#endif

typedef struct simt_dim {
    uint32_t x;
} simt_dim_t;

typedef struct simt_launch {
    void (*kernel)(const void *args); /* body; args as handed over */
    const void *args;
    uint32_t blocks;
    uint32_t threads;
    uint32_t shared_bytes;            /* dynamic, allocated exactly */
} simt_launch_t;

typedef struct simt_rank {
    const simt_launch_t *launches;
    uint32_t n_launches;
} simt_rank_t;

typedef struct simt_options {
    uint64_t seed;
    uint32_t skip;       /* of 256: fibres left out in a pass */
    uint32_t preempt;    /* of 65536: an access is interrupted */
    uint32_t split_lines; /* lines become visible in 8-byte pieces, as over PCIe */
    uint64_t max_passes; /* 0: no limit */
    uint64_t hook_pass;  /* after so many passes... */
    uint64_t (*hook)(void *ctx); /* ... this is called, and again so many later (0: no more); or NULL */
    void *hook_ctx;
} simt_options_t;

#define SIMT_MAX_BARRIERS 16

/*
 * Run all ranks to the end. 0, or non-zero with `report` filled (what, rank, block, thread, step,
 * peer).
 */
int simt_run(const simt_rank_t *ranks, uint32_t n_ranks, const simt_options_t *options,
             char *report, size_t report_bytes);

/* Passes and fibre switches of the last run, for test budgets. */
extern uint64_t simt_passes;
extern uint64_t simt_switches;
extern uint32_t simt_races; /* reports of ThreadSanitizer so far */

/*
 * ---- inside a kernel
 * -----------------------------------------------------------------------------
 */

/* What CUDA calls threadIdx and so on, of the running fibre. */
typedef struct simt_self {
    simt_dim_t thread;
    simt_dim_t block;
    simt_dim_t block_dim;
    simt_dim_t grid_dim;
    unsigned char *shared;
} simt_self_t;

extern const simt_self_t *simt_self;
extern uint32_t simt_preempt_rate;

typedef enum simt_vote {
    SIMT_VOTE_ANY,
    SIMT_VOTE_BALLOT,
    SIMT_VOTE_SHUFFLE,
    SIMT_VOTE_SYNC
} simt_vote_t;

void simt_barrier(uint32_t id, uint32_t threads);
/* All 32 lanes meet; result: the lanes' values, by lane; valid until the warp votes twice more. */
const uint32_t *simt_vote(simt_vote_t kind, uint32_t value);
/*
 * 8 lanes give 16 bytes each, in address order; the 128 bytes become visible together, unless
 * split.
 */
void simt_store_line(void *p, uint64_t low, uint64_t high);
void simt_poll(uint32_t kind, uint64_t step, uint32_t peer);
void simt_stored(void); /* progress, for deadlock detection */
void simt_preempt_slow(void);
void simt_check_aligned(const void *p, uint32_t bytes);

static inline __attribute__((unused)) void simt_preempt(void)
{
    if (0 != simt_preempt_rate) {
        simt_preempt_slow();
    }
}

/*
 * gp_port.h interrupts pairs of accesses here; kernels are compiled with this header before all
 * others.
 */
#if defined(GP_PORT_SIMT)
#define GP_PORT_PREEMPT() simt_preempt()
#endif

#endif /* GP_SIMT_H */
