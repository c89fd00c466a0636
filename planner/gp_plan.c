/*
 * gp_plan.c - the plan of one call: selection, channels, chunks, threads.
 *
 * Pure: the same arguments give the same plan on every rank. No global state; nothing is allocated
 * but the text that names a rule of the tuning file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_plan.h"

#include <stdio.h>
#include <string.h>

#include "planner/gp_cost.h"
#include "planner/gp_plan_int.h"
#include "planner/gp_tune.h"

/* Bytes per channel below which another channel costs more than it brings (docs/planner.md). */
static const uint64_t least_channel_bytes[GP_ALGO_CUSTOM][GP_PROTO_COUNT] = {
    [GP_ALGO_RING] = {2048, 4096, 32768},
    [GP_ALGO_TREE] = {2048, 4096, 4096},
    [GP_ALGO_FLAT] = {2048, 4096, 16384},
};

#define PIPELINE_LEAST_BYTES 4096

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (0 != a % b);
}

static uint64_t round_up(uint64_t a, uint64_t unit)
{
    return ceil_div(a, unit) * unit;
}

static uint32_t chunks_of(uint32_t algorithm, uint32_t n_ranks)
{
    return GP_ALGO_RING == algorithm ? n_ranks : 1;
}

uint32_t gp_call_channels(const gp_params_t *params, const gp_conn_geom_t *conn,
                          uint32_t algorithm, uint32_t protocol, uint64_t bytes)
{
    uint64_t channels = ceil_div(bytes, least_channel_bytes[algorithm][protocol]);

    if (channels < params->min_channels) {
        channels = params->min_channels;
    }
    channels = 0 == channels ? 1 : channels;
    return channels < conn->channels ? (uint32_t) channels : conn->channels;
}

/* Threads that find something to do in a chunk, per stream; the tree has two streams. */
static uint32_t call_threads(const gp_params_t *params, const gp_conn_geom_t *conn,
                             uint32_t algorithm, uint32_t protocol, uint64_t chunk_bytes)
{
    static const uint32_t bytes_per_thread[GP_PROTO_COUNT] = {8, 30, 16};
    uint64_t streams = GP_ALGO_TREE == algorithm ? 2 : 1;
    uint64_t threads = streams * round_up(ceil_div(chunk_bytes, bytes_per_thread[protocol]), 32);

    if (0 == conn->threads || 0 != params->threads) {
        return conn->threads;
    }
    if (threads < 64) {
        threads = 64;
    }
    return threads < conn->threads ? (uint32_t) threads : conn->threads;
}

static uint32_t floor_log2(uint32_t n)
{
    uint32_t log2 = 0;

    while (n > 1) {
        n /= 2;
        log2++;
    }
    return log2;
}

/*
 * A tree over LL128 hands on smaller chunks when there are few of them: the published rule. While
 * bytes / (channels x chunk) is below (1 + log2 nodes + 0.1 x ranks per node) x 64 / ranks per node and
 * the chunk is above 131,072 bytes it is halved, then the same with 16 and 32,768. Not on one shared
 * GPU: its slots are small already, and half of them cost a fifth more there (8 ranks, 2 MiB).
 */
static uint64_t tree_ll128_chunk_bytes(const gp_comm_desc_t *comm, uint64_t bytes,
                                       uint32_t channels, uint64_t chunk_bytes)
{
    static const struct {
        uint64_t factor, least_bytes;
    } stages[] = {{64, 131072}, {16, 32768}};
    uint64_t nodes = comm->n_nodes > 0 ? comm->n_nodes : 1;
    uint64_t per_node = comm->n_ranks > nodes ? comm->n_ranks / nodes : 1;
    uint64_t depth10 = 10 + 10 * (uint64_t) floor_log2((uint32_t) nodes) + per_node;

    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        /* bytes / (channels * chunk) < depth10 / 10 * factor / per_node, without fractions. */
        while (chunk_bytes > stages[i].least_bytes
               && bytes / chunk_bytes / channels * 10 * per_node < depth10 * stages[i].factor) {
            chunk_bytes /= 2;
        }
    }
    return chunk_bytes / 16 * 16;
}

static void call_geometry(const gp_comm_desc_t *comm, const gp_conn_geom_t *conn, uint64_t count,
                          gp_plan_t *plan)
{
    gp_geom_t *g = &plan->geom;
    uint64_t unit = 16 / plan->red.elem_bytes; /* elements of a 16-byte vector */
    uint64_t slot_elems = conn->data_bytes / plan->red.elem_bytes;
    uint64_t chunk, rest;

    g->count = count;
    g->elem_bytes = plan->red.elem_bytes;
    g->n_chunks = chunks_of(plan->algorithm, comm->n_ranks);
    g->channel_elems = round_up(ceil_div(count, g->channels), unit);
    chunk = round_up(ceil_div(g->channel_elems, g->n_chunks), unit);
    if (GP_PROTO_SIMPLE == plan->protocol && 1 == g->n_chunks && comm->n_ranks > 1) {
        uint64_t pipe = round_up(ceil_div(g->channel_elems, GP_PIPELINE_CHUNKS), unit);
        uint64_t least = PIPELINE_LEAST_BYTES / plan->red.elem_bytes;

        pipe = pipe < least ? least : pipe;
        chunk = chunk < pipe ? chunk : pipe;
    }
    if (GP_ALGO_TREE == plan->algorithm && GP_PROTO_LL128 == plan->protocol
        && GP_PATH_SELF_GPU != comm->worst_path) {
        slot_elems = tree_ll128_chunk_bytes(comm, count * plan->red.elem_bytes, g->channels,
                                            slot_elems * plan->red.elem_bytes)
                     / plan->red.elem_bytes;
    }
    g->chunk_elems = chunk < slot_elems ? chunk : slot_elems;
    g->loops = ceil_div(g->channel_elems, g->n_chunks * g->chunk_elems);
    rest = g->channel_elems - (g->loops - 1) * g->n_chunks * g->chunk_elems;
    g->last_chunk_elems = round_up(ceil_div(rest, g->n_chunks), unit);
}

/* What follows from a choice and its connections. channels and threads 0: by the call's size. */
static void fill_plan(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t count,
                      gp_red_t red, const gp_rule_t *rule, const gp_conn_geom_t *conn,
                      uint32_t channels, uint32_t threads, gp_plan_t *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->algorithm = rule->algorithm;
    plan->protocol = rule->protocol;
    plan->executor = comm->executor;
    plan->red = red;
    plan->reason = rule->reason;
    plan->predicted_ns = rule->predicted_ns;
    plan->geom.channels = 0 != channels ? channels
                                        : gp_call_channels(params, conn, rule->algorithm,
                                                           rule->protocol, count * red.elem_bytes);
    call_geometry(comm, conn, count, plan);
    plan->threads = 0 != threads ? threads
                                 : call_threads(params, conn, plan->algorithm, plan->protocol,
                                                plan->geom.chunk_elems * red.elem_bytes);
}

/* A rule's channels within what the user set; 0: the rule leaves them open. */
static uint32_t tuned_channels(const gp_params_t *params, const gp_tune_rule_t *tuned)
{
    uint32_t channels = tuned->channels;

    if (0 == channels) {
        return 0;
    }
    if (0 != params->max_channels && channels > params->max_channels) {
        channels = params->max_channels;
    }
    return channels < params->min_channels ? params->min_channels : channels;
}

/*
 * The plan that the tuning file wants. GP_OK; or GP_DECLINED when no rule holds for this call or the
 * user forced something else, and when the rule is not allowed here: *refused then says so.
 */
static gp_status_t plan_tuned(const gp_comm_desc_t *comm, const gp_params_t *params,
                              const gp_sets_t *sets, uint64_t count, gp_red_t red,
                              gp_plan_t *plan, const char **refused)
{
    const gp_set_desc_t *set;
    uint64_t bytes = count * red.elem_bytes;
    gp_params_t wanted = *params;
    gp_tune_rule_t tuned;
    gp_cost_t cost;
    gp_rule_t rule;
    uint32_t channels, threads;

    if (!gp_tune_lookup(params->tune, comm->executor, comm->n_ranks,
                        comm->n_nodes > 0 ? comm->n_nodes : 1, bytes, &tuned)
        || (GP_AUTO != params->algorithm && (uint32_t) params->algorithm != tuned.algorithm)
        || (GP_AUTO != params->protocol && (uint32_t) params->protocol != tuned.protocol)) {
        return GP_DECLINED;
    }
    set = &sets->of[tuned.algorithm][tuned.protocol];
    if (GP_OK != set->status) {
        *refused = gp_tune_reason(params->tune, &tuned, set->reason);
        return GP_DECLINED;
    }
    channels = tuned_channels(params, &tuned);
    if (channels > set->geom.channels) {
        *refused = gp_tune_reason(params->tune, &tuned, "channels: more than are connected");
        return GP_DECLINED;
    }
    threads = 0 == params->threads && 0 != set->geom.threads ? tuned.threads : 0;
    if (0 != channels) {
        wanted.min_channels = channels;
        wanted.max_channels = channels;
    }
    gp_cost_of(comm, &wanted, &set->geom, tuned.algorithm, tuned.protocol, bytes, &cost);
    rule.algorithm = (uint8_t) tuned.algorithm;
    rule.protocol = (uint8_t) tuned.protocol;
    rule.predicted_ns = cost.total_ns;
    rule.reason = gp_tune_reason(params->tune, &tuned, NULL);
    fill_plan(comm, params, count, red, &rule, &set->geom, channels, threads, plan);
    return GP_OK;
}

void gp_plan_sets(const gp_comm_desc_t *comm, const gp_params_t *params, gp_sets_t *sets)
{
    gp_rule_t reachable[GP_MOST_SETS];
    uint32_t n = gp_reachable(comm, params, reachable);

    memset(sets, 0, sizeof(*sets));
    for (uint32_t a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            gp_set_desc_t *set = &sets->of[a][p];

            set->status = gp_plan_conn_geom(comm, params, a, p, &set->geom, &set->reason);
            if (GP_OK != set->status && NULL == set->reason) {
                set->reason = "not possible";
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        sets->of[reachable[i].algorithm][reachable[i].protocol].used = 1;
    }
}

gp_status_t gp_plan_make_from(const gp_comm_desc_t *comm, const gp_params_t *params,
                              const gp_sets_t *sets, uint64_t count, gp_type_t type, gp_op_t op,
                              gp_plan_t *plan, const char **reason)
{
    gp_red_t red = gp_red_of(type, op);
    gp_rule_t rules[GP_MOST_SETS];
    const char *first_reason = NULL, *refused = NULL;
    uint32_t n;

    *reason = NULL;
    if (!red.valid) {
        *reason = "type and operation are not reduced by gpuproto";
        return GP_DECLINED;
    }
    if (0 == count || count > UINT64_MAX / 2 / red.elem_bytes) {
        *reason = "count out of range";
        return GP_ERR_INVALID;
    }
    if (GP_OK == plan_tuned(comm, params, sets, count, red, plan, &refused)) {
        return GP_OK;
    }
    n = gp_select(comm, params, count * red.elem_bytes, rules, GP_MOST_SETS, &first_reason);
    for (uint32_t i = 0; i < n; i++) {
        const gp_set_desc_t *set = &sets->of[rules[i].algorithm][rules[i].protocol];

        if (GP_OK == set->status && set->used) {
            rules[i].reason = NULL != refused ? refused : rules[i].reason;
            fill_plan(comm, params, count, red, &rules[i], &set->geom, 0, 0, plan);
            return GP_OK;
        }
        first_reason = NULL == first_reason ? set->reason : first_reason;
    }
    *reason = NULL != first_reason ? first_reason : "no algorithm is allowed here";
    return GP_DECLINED;
}

gp_status_t gp_plan_make(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t count,
                         gp_type_t type, gp_op_t op, gp_plan_t *plan, const char **reason)
{
    gp_sets_t sets;

    gp_plan_sets(comm, params, &sets);
    return gp_plan_make_from(comm, params, &sets, count, type, op, plan, reason);
}

int gp_plan_print(const gp_plan_t *plan, char *text, size_t text_bytes)
{
    return snprintf(text, text_bytes,
                    "algorithm=%s protocol=%s executor=%s channels=%u threads=%u chunk=%llu "
                    "loops=%llu predicted_us=%llu.%llu reason=\"%s\"",
                    gp_algorithm_name(plan->algorithm), gp_protocol_name(plan->protocol),
                    gp_executor_name(plan->executor), plan->geom.channels, plan->threads,
                    (unsigned long long) plan->geom.chunk_elems,
                    (unsigned long long) plan->geom.loops,
                    (unsigned long long) plan->predicted_ns / 1000,
                    (unsigned long long) plan->predicted_ns % 1000 / 100,
                    NULL != plan->reason ? plan->reason : "");
}
