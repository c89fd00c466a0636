/*
 * gp_plan_int.h - shared by the planner's own files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_PLAN_INT_H
#define GP_PLAN_INT_H

#include "planner/gp_plan.h"

/* A choice for a call, with why. */
typedef struct gp_rule {
    uint64_t predicted_ns;
    uint8_t algorithm;
    uint8_t protocol;
    const char *reason; /* static text */
} gp_rule_t;

/*
 * Allowed choices for a call of `bytes` bytes, the best first, at most `most`. Returns how many; 0: *why
 * is the rule that forbids what was asked for (static text).
 */
uint32_t gp_select(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                   gp_rule_t *rules, uint32_t most, const char **why);

#define GP_MOST_SETS (GP_ALGO_CUSTOM * GP_PROTO_COUNT)

/*
 * The connection sets of a communicator: what is best at some power of four of bytes, and what the
 * tuning file can choose. Calls use these alone, so that their memory can be shared out beforehand.
 * Returns how many, at most GP_MOST_SETS.
 */
uint32_t gp_reachable(const gp_comm_desc_t *comm, const gp_params_t *params, gp_rule_t *rules);

/*
 * What a connection set would have without the memory cap: as gp_plan_conn_geom(), which see, but nothing
 * of max_fifo_bytes.
 */
gp_status_t gp_conn_wish(const gp_comm_desc_t *comm, const gp_params_t *params, uint32_t algorithm,
                         uint32_t protocol, gp_conn_geom_t *wish, const char **reason);

/* Channels of a call of `bytes` bytes, at most those connected. */
uint32_t gp_call_channels(const gp_params_t *params, const gp_conn_geom_t *conn,
                          uint32_t algorithm, uint32_t protocol, uint64_t bytes);

/* Simple hands on whole chunks: a tree then needs so many in flight to be a pipeline. */
#define GP_PIPELINE_CHUNKS 4

#endif /* GP_PLAN_INT_H */
