/*
 * gp_plan.h - from (communicator, class, count, type, op) to what runs.
 *
 * Owns the plan: a pure function of values that all ranks agreed on. No MPI, CUDA or UCX here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_PLAN_H
#define GP_PLAN_H

#include "device/proto/gp_chunk.h"
#include "device/proto/gp_types.h"
#include "planner/gp_program.h"

#define GP_AUTO (-1)

typedef enum gp_executor {
    GP_EXEC_HOST,
    GP_EXEC_CUDA,
    GP_EXEC_COUNT
} gp_executor_t;

/* What the user asked for. Equal on all ranks by agreement. GP_AUTO / 0 mean "planner decides". */
typedef struct gp_params {
    int32_t algorithm;        /* gp_algorithm_t or GP_AUTO */
    int32_t protocol;         /* gp_protocol_t or GP_AUTO */
    uint32_t min_channels;    /* 0: no wish */
    uint32_t max_channels;    /* 0: no wish */
    uint32_t threads;         /* CUDA threads per block; 0: no wish */
    uint32_t ll128_unsafe;    /* force LL128 where its rule forbids it */
    uint64_t buffer_bytes[GP_PROTO_COUNT]; /* FIFO bytes of a connection; 0: planner decides */
    uint64_t max_fifo_bytes;  /* per rank and communicator, all connection sets together */
    const struct gp_tune *tune; /* the tuning file (gp_tune.h), the caller's; NULL: none */
} gp_params_t;

/* What the communicator is, for one buffer class. Equal on all ranks by agreement. */
typedef struct gp_comm_desc {
    uint32_t n_ranks;
    uint32_t n_nodes;
    uint32_t executor;        /* gp_executor_t: fixed per communicator and class */
    uint32_t worst_path;      /* gp_path_t: the farthest pair */
    uint32_t ranks_per_gpu;   /* processes of the node that may spin on the busiest GPU; 0 on host */
    uint32_t sm_count;        /* of the smallest GPU; 0 on host */
    uint32_t min_capability;  /* 10 * major + minor of the least GPU; 0 on host */
    uint32_t max_capability;
    uint32_t oversubscribed;  /* host executor: more ranks than cores on some node */
    uint32_t link_bytes_per_us; /* out of a GPU, or of a node where nodes differ; 0: the usual */
} gp_comm_desc_t;

/* Connection geometry of one (algorithm, protocol): fixed when the connections are made. */
typedef struct gp_conn_geom {
    uint32_t channels;    /* connected channels: no call uses more */
    uint32_t n_slots;
    uint64_t slot_bytes;  /* wire bytes, a multiple of 128 */
    uint64_t data_bytes;  /* payload of a slot, a multiple of 16 */
    uint32_t threads;     /* CUDA threads per block; 0 on host */
    uint32_t reserved;
} gp_conn_geom_t;

/* A combination as the calls of a communicator find it. */
typedef struct gp_set_desc {
    gp_status_t status;   /* GP_OK: geom is what it has, or will have, when it is connected */
    uint32_t used;        /* automatic choices lead to it */
    const char *reason;   /* of another status; static text */
    gp_conn_geom_t geom;
} gp_set_desc_t;

/* All of a communicator and class that does not depend on the call. */
typedef struct gp_sets {
    gp_set_desc_t of[3][GP_PROTO_COUNT]; /* [GP_ALGO_CUSTOM] */
} gp_sets_t;

typedef struct gp_plan {
    uint32_t algorithm;   /* gp_algorithm_t */
    uint32_t protocol;    /* gp_protocol_t */
    uint32_t executor;    /* gp_executor_t */
    uint32_t threads;
    gp_geom_t geom;       /* partition of this call */
    gp_red_t red;
    uint64_t predicted_ns; /* by the cost model (gp_cost.h) */
    const char *reason;   /* the rule that chose algorithm and protocol; static, or params.tune's */
} gp_plan_t;

#ifdef __cplusplus
extern "C" {
#endif

/* Lower-case names ("ring", "ll128", "cuda", "f32", "sum"), never NULL: "?" outside the enum. */
const char *gp_algorithm_name(uint32_t algorithm);
const char *gp_protocol_name(uint32_t protocol);
const char *gp_executor_name(uint32_t executor);
const char *gp_type_name(uint32_t type);
const char *gp_op_name(uint32_t op);
const char *gp_path_name(uint32_t path);

/* Parameters all "planner decides", 64 MiB of FIFO. */
void gp_params_init(gp_params_t *params);

/*
 * Connection geometry for (algorithm, protocol) on this communicator. Pure. With a user's buffer size B
 * (or the published default when nothing is known of the path) there are GP_STEPS slots of B / GP_STEPS
 * wire bytes; on one shared GPU and on host memory fewer and smaller slots that stay in cache are chosen.
 * All sets that calls on this communicator can lead to stay within max_fifo_bytes on every rank: first
 * smaller slots, then fewer channels, then the smallest slots; a user's slots are kept.
 * GP_DECLINED with *reason set (static text) when the combination is not allowed here (LL128 rule) or
 * cannot fit (min_channels, co-residency, memory).
 */
gp_status_t gp_plan_conn_geom(const gp_comm_desc_t *comm, const gp_params_t *params,
                              uint32_t algorithm, uint32_t protocol, gp_conn_geom_t *geom,
                              const char **reason);

/*
 * Plan one call: count >= 1 elements. Pure. Callers that plan often use gp_plan_sets() and _make_from().
 * A rule of the tuning file comes before the automatic choice, but not before what the user forced.
 * If it is not allowed on this communicator the automatic choice is used, and plan->reason says so.
 * GP_DECLINED with *reason when (type, op) is not ours or a forced choice cannot be honoured.
 */
gp_status_t gp_plan_make(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t count,
                         gp_type_t type, gp_op_t op, gp_plan_t *plan, const char **reason);

/* What gp_plan_make() works out first; some 100 us. Pure. */
void gp_plan_sets(const gp_comm_desc_t *comm, const gp_params_t *params, gp_sets_t *sets);

/* gp_plan_make() with it: a microsecond. sets: of the same comm and params. */
gp_status_t gp_plan_make_from(const gp_comm_desc_t *comm, const gp_params_t *params,
                              const gp_sets_t *sets, uint64_t count, gp_type_t type, gp_op_t op,
                              gp_plan_t *plan, const char **reason);

/* One line, machine readable key=value pairs, of what a plan will do. Returns snprintf's result. */
int gp_plan_print(const gp_plan_t *plan, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif /* GP_PLAN_H */
