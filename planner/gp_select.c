/*
 * gp_select.c - which algorithm and protocol: the lowest predicted time of what is allowed.
 *
 * A forced algorithm or protocol is never replaced: the model then only chooses what was left open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "planner/gp_cost.h"
#include "planner/gp_plan_int.h"
#include "planner/gp_tune.h"

/* Flat needs a connection for each pair: beyond this it is only used when forced. */
#define FLAT_MOST_RANKS 32u

/* Sizes at which the choices of a communicator are looked at, to know its connection sets. */
#define FIRST_BYTES_LOG2 2u
#define LAST_BYTES_LOG2 32u

static const char *excluded(const gp_comm_desc_t *comm, const gp_params_t *params,
                            const gp_choice_t *c, gp_conn_geom_t *wish)
{
    const char *reason = NULL;

    if (GP_AUTO != params->algorithm && (uint32_t) params->algorithm != c->algorithm) {
        return "another algorithm is forced";
    }
    if (GP_AUTO != params->protocol && (uint32_t) params->protocol != c->protocol) {
        return "another protocol is forced";
    }
    if (GP_AUTO == params->algorithm && GP_ALGO_FLAT == c->algorithm
        && comm->n_ranks > FLAT_MOST_RANKS) {
        return "flat: a connection for each pair of more than 32 ranks";
    }
    if (GP_OK != gp_conn_wish(comm, params, c->algorithm, c->protocol, wish, &reason)) {
        return NULL != reason ? reason : "not possible here";
    }
    return NULL;
}

static int before(const gp_choice_t *a, const gp_choice_t *b)
{
    if ((NULL == a->excluded) != (NULL == b->excluded)) {
        return NULL == a->excluded;
    }
    if (NULL != a->excluded || a->cost.total_ns != b->cost.total_ns) {
        return NULL == a->excluded && a->cost.total_ns < b->cost.total_ns;
    }
    return a->cost.hops < b->cost.hops;
}

void gp_choices(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                gp_choice_t choices[GP_CHOICES])
{
    uint32_t n = 0;

    for (uint32_t a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            gp_choice_t c;
            gp_conn_geom_t wish;
            uint32_t at = n++;

            memset(&c, 0, sizeof(c));
            c.algorithm = a;
            c.protocol = p;
            c.excluded = excluded(comm, params, &c, &wish);
            if (NULL == c.excluded) {
                gp_cost_of(comm, params, &wish, a, p, bytes, &c.cost);
            }
            for (; at > 0 && before(&c, &choices[at - 1]); at--) {
                choices[at] = choices[at - 1];
            }
            choices[at] = c;
        }
    }
}

static const char *reason_of(const gp_params_t *params)
{
    if (GP_AUTO != params->algorithm) {
        return GP_AUTO != params->protocol ? "forced algorithm and protocol"
                                           : "forced algorithm, protocol by the cost model";
    }
    return GP_AUTO != params->protocol ? "forced protocol, algorithm by the cost model"
                                       : "cost model: lowest predicted time";
}

uint32_t gp_select(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                   gp_rule_t *rules, uint32_t most, const char **why)
{
    gp_choice_t choices[GP_CHOICES];
    uint32_t n = 0;

    gp_choices(comm, params, bytes, choices);
    for (uint32_t i = 0; i < GP_CHOICES && n < most && NULL == choices[i].excluded; i++, n++) {
        rules[n].algorithm = (uint8_t) choices[i].algorithm;
        rules[n].protocol = (uint8_t) choices[i].protocol;
        rules[n].predicted_ns = choices[i].cost.total_ns;
        rules[n].reason = reason_of(params);
    }
    if (0 == n) {
        /* What was asked for is excluded: by the rule of the first that was not ruled out by force. */
        *why = choices[0].excluded;
        for (uint32_t i = 0; i < GP_CHOICES; i++) {
            if (NULL == strstr(choices[i].excluded, "is forced")) {
                *why = choices[i].excluded;
                break;
            }
        }
    }
    return n;
}

/* Add to n sets those that the tuning file can choose here. Returns how many there are then. */
static uint32_t add_tuned(const gp_comm_desc_t *comm, const gp_params_t *params, gp_rule_t *rules,
                          uint32_t n)
{
    uint32_t tuned = gp_tune_sets(params->tune, comm->executor, comm->n_ranks,
                                  comm->n_nodes > 0 ? comm->n_nodes : 1);

    for (uint32_t i = 0; i < GP_MOST_SETS; i++) {
        uint32_t a = i / GP_PROTO_COUNT, p = i % GP_PROTO_COUNT, k = 0;
        const char *reason;
        gp_conn_geom_t wish;

        if (0 == (tuned >> i & 1)
            || (GP_AUTO != params->algorithm && (uint32_t) params->algorithm != a)
            || (GP_AUTO != params->protocol && (uint32_t) params->protocol != p)
            || GP_OK != gp_conn_wish(comm, params, a, p, &wish, &reason)) {
            continue;
        }
        while (k < n && (rules[k].algorithm != a || rules[k].protocol != p)) {
            k++;
        }
        if (k == n) {
            memset(&rules[n], 0, sizeof(rules[n]));
            rules[n].algorithm = (uint8_t) a;
            rules[n].protocol = (uint8_t) p;
            rules[n++].reason = "tuning file";
        }
    }
    return n;
}

uint32_t gp_reachable(const gp_comm_desc_t *comm, const gp_params_t *params, gp_rule_t *rules)
{
    uint32_t n = 0;

    for (uint32_t log2 = FIRST_BYTES_LOG2; log2 <= LAST_BYTES_LOG2; log2 += 2) {
        gp_rule_t best;
        const char *why;
        uint32_t k = 0;

        if (0 == gp_select(comm, params, 1ull << log2, &best, 1, &why)) {
            return 0;
        }
        while (k < n
               && (rules[k].algorithm != best.algorithm || rules[k].protocol != best.protocol)) {
            k++;
        }
        if (k == n) {
            rules[n++] = best;
        }
    }
    return add_tuned(comm, params, rules, n);
}
