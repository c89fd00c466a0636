/*
 * gp_plan_int.h - shared by the planner's own files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_PLAN_INT_H
#define GP_PLAN_INT_H

#include "planner/gp_plan.h"

/* One line of the selection rule: use (algorithm, protocol) for calls of up to max_bytes. */
typedef struct gp_rule {
    uint64_t max_bytes;
    uint8_t algorithm;
    uint8_t protocol;
    const char *reason;
} gp_rule_t;

/*
 * The rule for this communicator and the forced choices in params: rules in order of preference for
 * `bytes`, at most `most`. Returns how many.
 */
uint32_t gp_select(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                   gp_rule_t *rules, uint32_t most);

#endif /* GP_PLAN_INT_H */
