/*
 * gp_sim.h - simulated time of a call: the real programs over modelled links.
 *
 * Event-driven, in whole picoseconds. What runs are the programs of gp_program.h, with the slots of
 * their connections:
 *
 *   ready   a step waits for its stream, for data in all its inputs' slots, and for a credit on
 *           each send
 *   +       step_us, and link_us for each connection it receives from or sends on
 *   reduce  what it reads (chunk bytes x inputs, own included) through the rank's reduce unit
 *   send    wire bytes through a link; the data is visible at the peer one alpha after it left
 *   end     reduced, and all sends within the node have left; only then are its inputs' slots
 *           freed, which their senders see one head latency later, and the stream goes on. Sends over the
 *           network are handed to a transport: they do not hold the step.
 *
 * Units that are shared (the reduce unit of a rank, its port within the node, a NIC) serve one
 * chunk after the other, in the order of request; all channels share them. Only the sending side
 * has links: in these algorithms a rank receives as much as it sends. Chunks are stored and
 * forwarded, also with LL, whose lines really overlap: a large chunk comes out slower than it is.
 * Launch and completion are not included.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIM_H
#define GP_SIM_H

#include "planner/gp_plan.h"

/* Does data from rank src to rank dst cross the network? `arg` is the caller's. */
typedef int (*gp_sim_path_fn)(void *arg, uint32_t src, uint32_t dst);

typedef struct gp_sim_params {
    double intra_alpha_us;      /* data left -> visible at a peer of the node */
    double net_alpha_us;        /* ... of another node */
    double intra_head_us;       /* slot freed -> seen by its sender in the node */
    double net_head_us;         /* ... on another node */
    double intra_bytes_per_us;  /* a rank's port, or each pair's link: > 0 */
    double net_bytes_per_us;    /* a NIC, out: > 0 */
    double reduce_bytes_per_us; /* a rank: > 0 */
    double step_us;             /* >= 0 */
    double link_us;             /* >= 0 */
    uint32_t ranks_per_node;    /* 0: all on one node; ranks are numbered node by node */
    uint32_t nics_per_node;     /* >= 1; local rank l uses NIC l x nics / ranks_per_node */
    uint32_t intra_port;        /* 1: one port a rank within its node; 0: a link each pair */
    uint32_t reserved;
    uint64_t most_work;         /* steps and sends to simulate at most; bounds time and memory */
    gp_sim_path_fn path;        /* NULL: by ranks_per_node. Else every rank is simulated */
    void *path_arg;
} gp_sim_params_t;

/* What is called. */
typedef struct gp_sim_call {
    gp_shape_t shape;       /* n_channels is geom.channels; params decide paths, not a layout */
    gp_protocol_t protocol; /* wire bytes follow from it */
    uint32_t n_slots;       /* 1 .. GP_MAX_SLOTS */
    gp_geom_t geom;         /* as in a plan */
} gp_sim_call_t;

typedef enum gp_sim_mode {
    GP_SIM_AUTO,     /* every rank where that is little work, else by symmetry where there is one */
    GP_SIM_FULL,     /* every rank */
    GP_SIM_SYMMETRIC /* ring and flat: one node (one rank, when all are on one) stands for all */
} gp_sim_mode_t;

/* What a step waited for last. */
typedef enum gp_sim_what {
    GP_SIM_OWN,    /* the step before it in its stream; the first of all: nothing */
    GP_SIM_DATA,   /* data from a peer */
    GP_SIM_CREDIT, /* a slot freed by a peer */
    GP_SIM_WHAT_COUNT
} gp_sim_what_t;

typedef struct gp_sim_path_step {
    uint32_t rank;
    uint32_t channel;
    uint32_t stream;
    uint32_t step;    /* within the program */
    uint64_t loop;
    gp_sim_what_t what;
    double begin_us;  /* when it became ready */
    double us;        /* until the next on the path was ready; of the last: until the end */
} gp_sim_path_step_t;

#define GP_SIM_PATH_MOST 64u

/* Links: bytes are wire bytes. By symmetry all chunks of a loop count as its first, the largest. */
typedef struct gp_sim_loads {
    double intra_bytes;       /* sum over all ranks */
    double net_bytes;         /* sum over all nodes */
    double busiest_bytes;     /* of the link that was in use longest */
    double busiest_us;        /* how long that was */
    uint32_t busiest_is_net;
    uint32_t busiest_rank;    /* a rank that sends on it */
} gp_sim_loads_t;

typedef struct gp_sim_result {
    double total_us;
    /*
     * The critical path: the chain of steps that determined the end. Its times add up to total_us.
     */
    uint64_t path_steps;                  /* its length */
    uint64_t path_count[GP_SIM_WHAT_COUNT]; /* of them, by what they waited for */
    double path_us[GP_SIM_WHAT_COUNT];      /* time up to such steps; of the last to the end: own */
    uint32_t path_kept;                   /* the last ones, in order */
    gp_sim_path_step_t path[GP_SIM_PATH_MOST];
    gp_sim_loads_t loads;
    /* How it was simulated. */
    uint64_t work;            /* steps and sends */
    uint32_t ranks;           /* simulated; fewer than asked for: by symmetry, paths name those */
    uint32_t channels;        /* simulated; fewer than asked for: each stands for several */
    uint32_t cut_ranks;       /* 0, or ring or tree were cut to so many ranks and extrapolated */
    uint32_t reserved;
    uint64_t loops;           /* simulated; fewer than asked for: extrapolated */
    char reason[200];         /* of an error or a refusal; else empty */
} gp_sim_result_t;

#ifdef __cplusplus
extern "C" {
#endif

/* An H200 a rank, 8 a node, a 400 Gbit/s NIC each; round figures (docs/planner.md). */
void gp_sim_params_init(gp_sim_params_t *params);

/*
 * Simulate a call on programs that are emitted as needed. *result is the caller's, filled always.
 *
 * More than params->most_work is avoided, in this order: a symmetric ring is simulated with fewer
 * ranks (1,024 and 2,048 at least) and its time extrapolated, a tree with fewer levels (512 ranks
 * at least, and twice as many); channels are taken together, one with the bytes of several, down to
 * 8 (with a layout: two for each rank of a node); loops are extrapolated (from 16 and 32 at least),
 * but not a cut ring's; without a layout channels are taken together down to 2. If it is still
 * more: GP_DECLINED with result->reason. Also GP_DECLINED: the mode is not possible here.
 * GP_ERR_INVALID: an argument out of range, or the programs deadlock with n_slots (reason says who
 * waits). GP_ERR_NO_MEMORY.
 */
gp_status_t gp_sim_run(const gp_sim_call_t *call, const gp_sim_params_t *params, gp_sim_mode_t mode,
                       gp_sim_result_t *result);

/*
 * Simulate given programs, every rank: programs[channel * shape.n_ranks + rank]. They are not
 * modified, still the caller's, and must be what gp_verify() accepts but for deadlocks. Of
 * call->shape only n_ranks is used. Results as above; nothing is extrapolated.
 */
gp_status_t gp_sim_run_programs(const gp_program_t *const *programs, const gp_sim_call_t *call,
                                const gp_sim_params_t *params, gp_sim_result_t *result);

/* "own", "data", "credit"; "?" outside the enum. */
const char *gp_sim_what_name(uint32_t what);

#ifdef __cplusplus
}
#endif

#endif /* GP_SIM_H */
