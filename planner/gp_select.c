/*
 * gp_select.c - which algorithm and protocol, as a size rule.
 *
 * Owns the thresholds; docs/planner.md says where each was measured. A forced algorithm or protocol is
 * never replaced: the rule then only chooses what was left open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_plan_int.h"

#define KI 1024ull
#define MI (1024ull * 1024ull)
#define ANY UINT64_MAX

/* Several ranks on one GPU. */
static const gp_rule_t same_gpu_rules[] = {
    {8 * KI, GP_ALGO_FLAT, GP_PROTO_LL, "same-gpu: one hop, up to 8 KiB"},
    {64 * KI, GP_ALGO_TREE, GP_PROTO_LL, "same-gpu: fewest hops that scale, up to 64 KiB"},
    {1 * MI, GP_ALGO_RING, GP_PROTO_LL, "same-gpu: no fences, up to 1 MiB"},
    {4 * MI, GP_ALGO_RING, GP_PROTO_LL128, "same-gpu: 15/16 of the bandwidth without fences"},
    {ANY, GP_ALGO_RING, GP_PROTO_SIMPLE, "same-gpu: full bandwidth"},
};

/* Different GPUs: the published crossovers. */
static const gp_rule_t gpu_rules[] = {
    {8 * KI, GP_ALGO_FLAT, GP_PROTO_LL, "gpus: one hop, up to 8 KiB"},
    {64 * KI, GP_ALGO_TREE, GP_PROTO_LL, "gpus: few hops, up to 64 KiB"},
    {512 * KI, GP_ALGO_RING, GP_PROTO_LL, "gpus: no fences, up to 512 KiB"},
    {2 * MI, GP_ALGO_RING, GP_PROTO_LL128, "gpus: 15/16 of the bandwidth without fences"},
    {ANY, GP_ALGO_RING, GP_PROTO_SIMPLE, "gpus: full bandwidth"},
};

/* Host memory, one thread a rank. */
static const gp_rule_t host_rules[] = {
    {2 * KI, GP_ALGO_FLAT, GP_PROTO_LL, "host: one hop, up to 2 KiB"},
    {16 * KI, GP_ALGO_FLAT, GP_PROTO_SIMPLE, "host: one hop without flags in the data"},
    {ANY, GP_ALGO_RING, GP_PROTO_SIMPLE, "host: each byte moved least often"},
};
static const gp_rule_t host_many_rules[] = {
    {4 * KI, GP_ALGO_TREE, GP_PROTO_LL, "host: few hops, up to 4 KiB"},
    {32 * KI, GP_ALGO_TREE, GP_PROTO_SIMPLE, "host: few hops, up to 32 KiB"},
    {ANY, GP_ALGO_RING, GP_PROTO_SIMPLE, "host: each byte moved least often"},
};

#define FLAT_MOST_RANKS_GPU 8
#define FLAT_MOST_RANKS_HOST 4

static const gp_rule_t *rules_of(const gp_comm_desc_t *comm, uint32_t *n)
{
    if (GP_EXEC_HOST == comm->executor) {
        if (comm->n_ranks <= FLAT_MOST_RANKS_HOST) {
            *n = sizeof(host_rules) / sizeof(host_rules[0]);
            return host_rules;
        }
        *n = sizeof(host_many_rules) / sizeof(host_many_rules[0]);
        return host_many_rules;
    }
    if (GP_PATH_SELF_GPU == comm->worst_path) {
        *n = sizeof(same_gpu_rules) / sizeof(same_gpu_rules[0]);
        return same_gpu_rules;
    }
    *n = sizeof(gpu_rules) / sizeof(gpu_rules[0]);
    return gpu_rules;
}

/* What the user forced is not weighed; flat is only chosen freely where its traffic stays small. */
static int rule_fits(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_rule_t *rule)
{
    return GP_AUTO != params->algorithm || GP_ALGO_FLAT != rule->algorithm
           || GP_EXEC_HOST == comm->executor || comm->n_ranks <= FLAT_MOST_RANKS_GPU;
}

/* The rules from the call's size upwards, with what is forced put in their place. */
uint32_t gp_select(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes,
                   gp_rule_t *rules, uint32_t most)
{
    uint32_t n, found = 0;
    const gp_rule_t *table = rules_of(comm, &n);

    for (uint32_t i = 0; i < n && found < most; i++) {
        if (bytes > table[i].max_bytes || !rule_fits(comm, params, &table[i])) {
            continue;
        }
        rules[found] = table[i];
        if (GP_AUTO != params->algorithm) {
            rules[found].algorithm = (uint8_t) params->algorithm;
            rules[found].reason = "forced algorithm, protocol by size";
        }
        if (GP_AUTO != params->protocol) {
            rules[found].protocol = (uint8_t) params->protocol;
            rules[found].reason = GP_AUTO != params->algorithm
                                    ? "forced algorithm and protocol"
                                    : "forced protocol, algorithm by size";
        }
        found++;
    }
    return found;
}
