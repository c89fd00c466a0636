/*
 * gp_sim.c - simulates a call: which ranks, channels and loops, and what follows for the rest.
 *
 * Owns the bound on work and the extrapolation beyond it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_emit.h"
#include "planner/gp_sim_int.h"

/* What AUTO does in full, so that paths name real ranks. */
#define FULL_MOST_WORK 1000000u

/*
 * Extrapolation starts from twice these: the start of a call, before a pipeline is full, must not
 * count.
 */
#define RING_LEAST_RANKS 1024u
#define TREE_LEAST_RANKS 512u
#define LEAST_LOOPS 16u

/*
 * Channels taken together while more than these are left; then, where nothing else helps, down to
 * 2.
 */
#define GOOD_CHANNELS 8u
#define LEAST_CHANNELS 2u

/* How much of a call is simulated. */
typedef struct scale {
    int symmetric;
    uint32_t ranks;  /* fewer than called for: a shorter ring, a tree of fewer levels */
    uint32_t halved; /* tree: how often */
    uint32_t channels;
    uint64_t loops;
} scale_t;

void gp_sim_params_init(gp_sim_params_t *params)
{
    memset(params, 0, sizeof(*params));
    params->intra_alpha_us = 0.6;
    params->net_alpha_us = 5;
    params->intra_head_us = 0.6;
    params->net_head_us = 5;
    params->intra_bytes_per_us = 450000;
    params->net_bytes_per_us = 50000;
    params->reduce_bytes_per_us = 2000000;
    params->step_us = 0.3;
    params->link_us = 0.05;
    params->ranks_per_node = 8;
    params->nics_per_node = 8;
    params->intra_port = 1;
    params->most_work = 12000000;
}

const char *gp_sim_what_name(uint32_t what)
{
    static const char *const names[GP_SIM_WHAT_COUNT] = {"own", "data", "credit"};

    return what < GP_SIM_WHAT_COUNT ? names[what] : "?";
}

static gp_status_t refuse(gp_sim_result_t *result, gp_status_t status, const char *reason)
{
    snprintf(result->reason, sizeof(result->reason), "%s", reason);
    return status;
}

static gp_status_t check(const gp_sim_call_t *call, const gp_sim_params_t *p,
                         gp_sim_result_t *result)
{
    const double times[] = {p->intra_alpha_us, p->net_alpha_us, p->intra_head_us,
                            p->net_head_us,    p->step_us,      p->link_us};
    const double rates[] = {p->intra_bytes_per_us, p->net_bytes_per_us, p->reduce_bytes_per_us};

    memset(result, 0, sizeof(*result));
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (!(times[i] >= 0 && times[i] <= 1e6)) {
            return refuse(result, GP_ERR_INVALID, "a latency or overhead outside 0 to 1e6 us");
        }
    }
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        if (!(rates[i] >= 1e-3 && rates[i] <= 1e12)) {
            return refuse(result, GP_ERR_INVALID, "a bandwidth outside 1e-3 to 1e12 bytes/us");
        }
    }
    if (0 == call->shape.n_ranks || 0 == call->shape.slices || 0 == call->n_slots
        || call->n_slots > GP_MAX_SLOTS || 0 == call->geom.channels || 0 == call->geom.loops
        || 0 == call->geom.elem_bytes || call->protocol >= GP_PROTO_COUNT
        || 0 == p->nics_per_node) {
        return refuse(result, GP_ERR_INVALID, "ranks, slots, channels, loops or NICs out of range");
    }
    if ((uint64_t) call->shape.n_ranks * call->geom.channels >= 1u << 30) {
        return refuse(result, GP_ERR_INVALID, "ranks x channels beyond 2^30");
    }
    return GP_OK;
}

static void input_of(const gp_sim_call_t *call, const gp_sim_params_t *params, gp_sim_input_t *in)
{
    memset(in, 0, sizeof(*in));
    in->n_ranks = call->shape.n_ranks;
    in->n_channels = call->geom.channels;
    in->n_slots = call->n_slots;
    in->protocol = call->protocol;
    in->geom = call->geom;
    in->share = 1;
    in->copies = 1;
    in->params = params;
    in->node_ranks = 0 == params->ranks_per_node || params->ranks_per_node > call->shape.n_ranks
                       ? call->shape.n_ranks
                       : params->ranks_per_node;
}

static gp_sim_link_t full_link(const gp_sim_input_t *in, size_t base, uint32_t rank, uint32_t peer,
                               uint32_t send)
{
    gp_sim_link_t link = {rank / in->node_ranks != peer / in->node_ranks, 1};

    (void) base;
    (void) send;
    if (NULL != in->params->path) {
        link.net = in->params->path(in->params->path_arg, rank, peer);
    }
    return link;
}

gp_status_t gp_sim_run_programs(const gp_program_t *const *programs, const gp_sim_call_t *call,
                                const gp_sim_params_t *params, gp_sim_result_t *result)
{
    gp_status_t status = check(call, params, result);
    gp_sim_input_t in;

    if (GP_OK != status) {
        return status;
    }
    input_of(call, params, &in);
    in.programs = programs;
    in.distinct = in.n_channels;
    in.link = full_link;
    result->ranks = in.n_ranks;
    result->channels = in.n_channels;
    return gp_sim_engine(&in, result);
}

/* Every rank's programs, as gp_sim_symmetric(). */
static gp_status_t emit_full(const gp_sim_call_t *call, gp_sim_input_t *in)
{
    const gp_layout_t *layout = call->shape.layout;
    uint32_t n = in->n_ranks;
    gp_program_t **programs;
    gp_status_t status = GP_OK;

    in->link = full_link;
    in->distinct = in->n_channels < 2 ? 1 : 2;
    if (NULL != layout && layout->n_nodes > 1 && GP_ALGO_FLAT != call->shape.algorithm) {
        in->turned = gp_sim_layout_is_regular(layout, n, in->node_ranks);
        in->distinct = in->turned ? in->distinct : in->n_channels;
    } else if (NULL != layout) {
        in->distinct = in->n_channels;
    }
    programs = calloc((size_t) in->distinct * n, sizeof(*programs));
    in->programs = (const gp_program_t *const *) programs;
    if (NULL == programs) {
        return GP_ERR_NO_MEMORY;
    }
    for (size_t i = 0; GP_OK == status && i < (size_t) in->distinct * n; i++) {
        uint32_t channel = (uint32_t) (i / n), rank = (uint32_t) (i % n);

        /* The first one checks the shape. A tree's emitter alone is fast enough for many ranks. */
        status = i > 0 && GP_ALGO_TREE == call->shape.algorithm && n > 1
                   ? gp_emit_tree(&call->shape, rank, channel, &programs[i])
                   : gp_program_emit_shape(&call->shape, rank, channel, &programs[i]);
    }
    if (GP_OK != status) {
        gp_sim_release(in);
    }
    return status;
}

static gp_status_t run_at(const gp_sim_call_t *call, const gp_sim_params_t *params,
                          const scale_t *scale, gp_sim_result_t *result)
{
    gp_status_t status;
    gp_sim_input_t in;
    gp_sim_call_t cut = *call;
    gp_layout_t layout;

    memset(result, 0, sizeof(*result));
    if (!scale->symmetric && scale->ranks < call->shape.n_ranks) {
        cut.shape.n_ranks = scale->ranks;
        if (NULL != call->shape.layout && call->shape.layout->n_nodes > 1) {
            /* A regular one begins with every smaller one. */
            layout = *call->shape.layout;
            layout.n_nodes = scale->ranks / params->ranks_per_node;
            cut.shape.layout = &layout;
        }
        call = &cut;
    }
    input_of(call, params, &in);
    in.n_channels = scale->channels;
    in.share = (double) call->geom.channels / scale->channels;
    status = scale->symmetric ? gp_sim_symmetric(call, scale->ranks, params, &in, result->reason,
                                                 sizeof(result->reason))
                              : emit_full(call, &in);
    if (GP_OK != status) {
        return status;
    }
    if (scale->loops < in.geom.loops) {
        /* Loops are cut off the end: what is left are whole ones. */
        in.geom.loops = scale->loops;
        in.geom.last_chunk_elems = in.geom.chunk_elems;
    }
    result->ranks = in.n_ranks;
    result->channels = in.n_channels;
    status = gp_sim_engine(&in, result);
    gp_sim_release(&in);
    return status;
}

/* Steps and sends. In doubles: only compared with a bound. */
static double work_of(const gp_sim_call_t *call, const gp_sim_params_t *params, const scale_t *s)
{
    double ranks = s->symmetric ? gp_sim_symmetric_ranks(call, params) : s->ranks;
    double each, emit = 0;

    switch (call->shape.algorithm) {
    case GP_ALGO_RING: each = call->shape.slices * (4.0 * s->ranks - 3); break;
    case GP_ALGO_TREE:
        each = 4;
        /* Its emitter looks for each rank in the layout. */
        emit = NULL != call->shape.layout ? ranks * ranks / 1000 : 0;
        break;
    default: each = 2 + (s->symmetric ? 2 * ranks - 1 : s->ranks - 1.0); break;
    }
    return ranks * each * s->channels * (double) s->loops + emit;
}

/*
 * Ranks that stay together when a tree is cut: those of a node. 0: it cannot be cut, because what
 * is left would have other paths.
 */
static uint32_t tree_unit(const gp_sim_call_t *call, const gp_sim_params_t *params)
{
    const gp_layout_t *layout = call->shape.layout;
    uint32_t n = call->shape.n_ranks, per_node = params->ranks_per_node;
    int one_node = 0 == per_node || per_node >= n;

    if (NULL != params->path || (!one_node && 0 != n % per_node)) {
        return 0;
    }
    if (NULL == layout || layout->n_nodes < 2) {
        return one_node ? 1 : 0 == (per_node & (per_node - 1)) ? per_node : 0;
    }
    return !one_node && gp_sim_layout_is_regular(layout, n, per_node) ? per_node : 0;
}

/* The same tree without its `times` lowest levels. */
static uint32_t cut_tree(uint32_t n_ranks, uint32_t unit, uint32_t times)
{
    uint64_t n = n_ranks / unit, by = 1ull << times; /* levels follow from n rounded up */

    return (uint32_t) ((n + by - 1) / by * unit);
}

static void scale_tree(const gp_sim_call_t *call, const gp_sim_params_t *params, scale_t *s)
{
    uint32_t unit = tree_unit(call, params);

    while (0 != unit && work_of(call, params, s) > (double) params->most_work
           && cut_tree(call->shape.n_ranks, unit, s->halved + 2) >= TREE_LEAST_RANKS) {
        s->ranks = cut_tree(call->shape.n_ranks, unit, ++s->halved);
    }
}

static void halve_channels(scale_t *s, uint32_t least)
{
    uint32_t half = s->channels / 2;

    half = half > 2 ? half & ~1u : half; /* as many of each direction */
    s->channels = half < least ? least : half;
}

/* As much as the bound allows. */
static gp_status_t scale_down(const gp_sim_call_t *call, const gp_sim_params_t *params, scale_t *s)
{
    double most = (double) params->most_work;
    uint32_t good = GOOD_CHANNELS, least = LEAST_CHANNELS;

    if (NULL != call->shape.layout && call->shape.layout->n_nodes > 1
        && GP_ALGO_FLAT != call->shape.algorithm) {
        /* Two channels enter a node on each of its ranks: with fewer some NICs would stay idle. */
        uint64_t all = 2 * ((uint64_t) call->shape.n_ranks / call->shape.layout->n_nodes);

        least = all < s->channels ? (uint32_t) all : s->channels;
        good = least;
    }
    if (s->symmetric && GP_ALGO_RING == call->shape.algorithm) {
        uint32_t node = gp_sim_symmetric_ranks(call, params);
        uint32_t least = (RING_LEAST_RANKS + node - 1) / node * node; /* of the smaller run */
        uint32_t fits = s->ranks;

        if (work_of(call, params, s) > most) {
            double whole = most / work_of(call, params, s) * s->ranks / (2.0 * node);

            fits = 2 * node * (uint32_t) whole;
            fits = fits < 2 * least ? 2 * least : fits;
        }
        s->ranks = fits < s->ranks ? fits : s->ranks;
    }
    if (GP_ALGO_TREE == call->shape.algorithm) {
        scale_tree(call, params, s);
    }
    while (work_of(call, params, s) > most && s->channels > good) {
        halve_channels(s, good);
    }
    /* A ring's time is ranks times loops, one of them can be extrapolated; a tree's is a sum. */
    if ((s->ranks == call->shape.n_ranks || s->halved > 0) && s->loops > 2 * LEAST_LOOPS
        && work_of(call, params, s) > most) {
        uint64_t fits = (uint64_t) (most / work_of(call, params, s) * (double) s->loops) / 2 * 2;

        s->loops = fits < 2 * LEAST_LOOPS ? 2 * LEAST_LOOPS : fits;
    }
    while (work_of(call, params, s) > most && s->channels > least) {
        halve_channels(s, least);
    }
    return work_of(call, params, s) > most ? GP_DECLINED : GP_OK;
}

static double extend(double from, double at_half, double at_base, double factor)
{
    double to = from + (at_base - at_half) * factor;

    return to > 0 ? to : 0;
}

/*
 * *base is of twice the steps or loops, or of one level more than *half: go on from *result by
 * `factor` times the difference. What is on the path is counted by kind, so that it still adds up.
 */
static void extrapolate(const gp_sim_result_t *base, const gp_sim_result_t *half, double factor,
                        gp_sim_result_t *result)
{
    result->total_us = 0;
    result->path_steps = 0;
    for (int i = 0; i < GP_SIM_WHAT_COUNT; i++) {
        result->path_us[i] = extend(result->path_us[i], half->path_us[i], base->path_us[i], factor);
        result->path_count[i] =
            (uint64_t) (extend((double) result->path_count[i], (double) half->path_count[i],
                               (double) base->path_count[i], factor)
                        + 0.5);
        result->total_us += result->path_us[i];
        result->path_steps += result->path_count[i];
    }
    result->work += half->work;
}

static void extrapolate_loads(const gp_sim_loads_t *base, const gp_sim_loads_t *half, double factor,
                              gp_sim_loads_t *loads)
{
    loads->intra_bytes = extend(loads->intra_bytes, half->intra_bytes, base->intra_bytes, factor);
    loads->net_bytes = extend(loads->net_bytes, half->net_bytes, base->net_bytes, factor);
    loads->busiest_bytes =
        extend(loads->busiest_bytes, half->busiest_bytes, base->busiest_bytes, factor);
    loads->busiest_us = extend(loads->busiest_us, half->busiest_us, base->busiest_us, factor);
}

static gp_status_t run_scaled(const gp_sim_call_t *call, const gp_sim_params_t *params,
                              const scale_t *scale, gp_sim_result_t *result)
{
    gp_status_t status = run_at(call, params, scale, result);
    gp_sim_result_t base = *result, half;
    scale_t half_scale = *scale;
    double factor;

    if (GP_OK == status && scale->ranks < call->shape.n_ranks) {
        if (scale->halved > 0) {
            half_scale.halved++;
            half_scale.ranks =
                cut_tree(call->shape.n_ranks, tree_unit(call, params), half_scale.halved);
            factor = scale->halved;
        } else {
            half_scale.ranks = scale->ranks / 2;
            factor = (double) (call->shape.n_ranks - scale->ranks) / half_scale.ranks;
        }
        status = run_at(call, params, &half_scale, &half);
        if (GP_OK == status) {
            extrapolate(&base, &half, factor, result);
            result->cut_ranks = scale->ranks;
        }
        if (GP_OK == status && 0 == scale->halved) {
            extrapolate_loads(&base.loads, &half.loads, factor, &result->loads);
        }
        half_scale.ranks = scale->ranks;
        half_scale.halved = scale->halved;
    }
    if (GP_OK == status && scale->loops < call->geom.loops) {
        half_scale.loops = scale->loops / 2;
        factor = (double) (call->geom.loops - scale->loops) / (double) half_scale.loops;
        status = run_at(call, params, &half_scale, &half);
        if (GP_OK == status) {
            extrapolate(&base, &half, factor, result);
            extrapolate_loads(&base.loads, &half.loads, factor, &result->loads);
        }
    }
    if (GP_OK == status && scale->halved > 0) {
        /* Links of the ranks that were cut off carry as much as the others'. */
        result->loads.intra_bytes *= (double) call->shape.n_ranks / scale->ranks;
        result->loads.net_bytes *= (double) call->shape.n_ranks / scale->ranks;
    }
    return status;
}

gp_status_t gp_sim_run(const gp_sim_call_t *call, const gp_sim_params_t *params, gp_sim_mode_t mode,
                       gp_sim_result_t *result)
{
    gp_status_t status = check(call, params, result);
    scale_t scale = {0, call->shape.n_ranks, 0, call->geom.channels, call->geom.loops};

    if (GP_OK == status && call->shape.algorithm >= GP_ALGO_CUSTOM) {
        status = refuse(result, GP_ERR_INVALID, "no such algorithm");
    }
    if (GP_OK != status) {
        return status;
    }
    if (GP_SIM_SYMMETRIC == mode
        || (GP_SIM_AUTO == mode && work_of(call, params, &scale) > FULL_MOST_WORK)) {
        scale.symmetric = GP_SIM_SYMMETRIC == mode || 0 != gp_sim_symmetric_ranks(call, params);
    }
    if (scale.symmetric && 0 == gp_sim_symmetric_ranks(call, params)) {
        scale.ranks = call->shape.n_ranks;
        return run_at(call, params, &scale, result); /* declines, with the reason */
    }
    if (GP_OK != scale_down(call, params, &scale)) {
        return refuse(result, GP_DECLINED, "more steps than most_work allows, and nothing to save");
    }
    return run_scaled(call, params, &scale, result);
}
