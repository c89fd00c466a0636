/*
 * gp_cost.h - what a call is expected to take, in integers.
 *
 * Integers, because all ranks must come to the same choice whatever their processors round. The model and
 * the source of every constant are in docs/planner.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_COST_H
#define GP_COST_H

#include "planner/gp_plan.h"

/* Predicted time of a call and what it is made of; nanoseconds. */
typedef struct gp_cost {
    uint64_t total_ns;    /* base + the larger of latency and transfer + half the smaller (tree: all) */
    uint64_t base_ns;     /* launch and completion */
    uint64_t latency_ns;  /* hops one after the other, with nothing to carry */
    uint64_t transfer_ns; /* bytes through channels, memory and links */
    uint32_t channels;
    uint32_t hops;
} gp_cost_t;

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Predict a call of `bytes` bytes with (algorithm, protocol), both valid, over connections of `conn`'s
 * channels and slots. Pure.
 */
void gp_cost_of(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_conn_geom_t *conn,
                uint32_t algorithm, uint32_t protocol, uint64_t bytes, gp_cost_t *cost);

/* Name of the constants used for this communicator: "one-gpu", "nvlink-sm70", "host", ... */
const char *gp_cost_model_name(const gp_comm_desc_t *comm);

/* An (algorithm, protocol) that may run a call, or the rule that excludes it. */
typedef struct gp_choice {
    uint32_t algorithm;
    uint32_t protocol;
    const char *excluded; /* NULL: allowed; else static text */
    gp_cost_t cost;       /* of allowed ones */
} gp_choice_t;

#define GP_CHOICES (GP_ALGO_CUSTOM * GP_PROTO_COUNT)

/*
 * Every combination for a call of `bytes` bytes: allowed ones first, the fastest first; then what is
 * excluded, by a rule or by what was forced. Pure.
 */
void gp_choices(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                gp_choice_t choices[GP_CHOICES]);

#ifdef __cplusplus
}
#endif

#endif /* GP_COST_H */
