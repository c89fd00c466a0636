/*
 * gp_conn_geom.c - how many channels, slots and bytes the connections of one (algorithm, protocol) get.
 *
 * Owns the LL128 rule, the co-residency bound and the FIFO memory cap. Sources of the constants are in
 * docs/planner.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_plan.h"

#include <string.h>

#include "planner/gp_plan_int.h"

#define MAX_CHANNELS 64u
#define FLAT_MOST_CHANNELS 8u

/* Threads of a block at full size; the kernels' launch bounds are not lower. */
static const uint32_t full_threads[GP_PROTO_COUNT] = {512, 320, 512};
static const uint32_t most_threads[GP_PROTO_COUNT] = {1024, 384, 512};

/* Published FIFO sizes, for paths about which nothing better is known. */
static const uint64_t published_bytes[GP_PROTO_COUNT] = {
    GP_LL_BUFFER_BYTES, GP_LL128_BUFFER_BYTES, GP_SIMPLE_BUFFER_BYTES};

/* Wire bytes of a slot on one shared GPU, two slots: FIFOs of all ranks stay in the L2. */
static const uint64_t same_gpu_slot_bytes[GP_ALGO_CUSTOM][GP_PROTO_COUNT] = {
    [GP_ALGO_RING] = {65536, 81920, 131072},
    [GP_ALGO_TREE] = {32768, 61440, 65536},
    [GP_ALGO_FLAT] = {32768, 16384, 65536},
};

/* Wire bytes of a slot in host memory, eight slots: long enough copies, and far enough ahead. */
static const uint64_t host_slot_bytes[GP_ALGO_CUSTOM][GP_PROTO_COUNT] = {
    [GP_ALGO_RING] = {16384, 65536, 131072},
    [GP_ALGO_TREE] = {16384, 65536, 131072},
    [GP_ALGO_FLAT] = {8192, 32768, 32768},
};

/* Below these slots the memory cap takes channels instead; below the least it declines. */
static const uint64_t good_slot_bytes[GP_PROTO_COUNT] = {16384, 32768, 32768};
#define LEAST_SLOT_BYTES 4096u

void gp_params_init(gp_params_t *params)
{
    memset(params, 0, sizeof(*params));
    params->algorithm = GP_AUTO;
    params->protocol = GP_AUTO;
    params->max_fifo_bytes = 64ull << 20;
}

/* Receive connections of the rank that has most. */
static uint64_t most_recv(const gp_comm_desc_t *comm, uint32_t algorithm)
{
    uint32_t n_ranks = comm->n_ranks, neighbours = comm->n_nodes > 1 ? 4 : 3;

    switch (algorithm) {
    case GP_ALGO_RING:
        return n_ranks > 1;
    case GP_ALGO_TREE: /* two children, a parent, the node's chain; fewer ranks do not have them all */
        return n_ranks > neighbours ? neighbours : n_ranks - 1;
    default:
        return n_ranks - 1;
    }
}

/* What a set would like to have, before the memory cap. Channels already bounded by co-residency. */
static void wish(const gp_comm_desc_t *comm, const gp_params_t *params, uint32_t algorithm,
                 uint32_t protocol, uint32_t channels, gp_conn_geom_t *g)
{
    uint64_t user = params->buffer_bytes[protocol];

    memset(g, 0, sizeof(*g));
    g->channels = channels;
    if (0 != user) {
        g->n_slots = GP_STEPS;
        g->slot_bytes = user / GP_STEPS;
    } else if (GP_EXEC_HOST == comm->executor) {
        g->n_slots = GP_STEPS;
        g->slot_bytes = host_slot_bytes[algorithm][protocol];
    } else if (GP_PATH_SELF_GPU == comm->worst_path || GP_ALGO_FLAT == algorithm) {
        /* Flat is for small calls: N - 1 connections of the published size would eat the cap. */
        g->n_slots = GP_PATH_SELF_GPU == comm->worst_path ? 2 : GP_STEPS;
        g->slot_bytes = same_gpu_slot_bytes[algorithm][protocol];
    } else {
        g->n_slots = GP_STEPS;
        g->slot_bytes = published_bytes[protocol] / GP_STEPS;
    }
    if (GP_ALGO_FLAT == algorithm && g->channels > FLAT_MOST_CHANNELS) {
        g->channels = FLAT_MOST_CHANNELS;
    }
    if (g->channels < params->min_channels) {
        g->channels = params->min_channels;
    }
    /* LL128 moves pairs of lines. */
    g->slot_bytes -= g->slot_bytes % (GP_PROTO_LL128 == protocol ? 256u : 128u);
}

static uint64_t set_bytes(const gp_comm_desc_t *comm, uint32_t algorithm, const gp_conn_geom_t *g)
{
    /* Over a net both ends have the whole FIFO. */
    return g->channels * most_recv(comm, algorithm) * (comm->n_nodes > 1 ? 2 : 1)
           * gp_fifo_recv_block_bytes(g->n_slots, g->slot_bytes);
}

/*
 * The most one connection set may take. Sets that calls on this communicator can lead to (those of
 * gp_reachable(), and the one asked for) share the cap: who wishes little gets it, the others get the
 * same each.
 */
static uint64_t most_set_bytes(const gp_comm_desc_t *comm, const gp_params_t *params,
                               uint32_t algorithm, uint32_t protocol)
{
    gp_rule_t sets[GP_MOST_SETS + 1];
    uint64_t wishes[GP_MOST_SETS + 1];
    uint32_t n = 0, rules = gp_reachable(comm, params, sets);
    uint64_t left = params->max_fifo_bytes;
    uint32_t before;

    sets[rules].algorithm = (uint8_t) algorithm;
    sets[rules].protocol = (uint8_t) protocol;
    for (uint32_t i = 0; i <= rules; i++) {
        gp_conn_geom_t g;
        const char *reason;
        int seen = 0;

        for (uint32_t k = 0; k < i; k++) {
            seen |= sets[k].algorithm == sets[i].algorithm && sets[k].protocol == sets[i].protocol;
        }
        if (!seen
            && GP_OK == gp_conn_wish(comm, params, sets[i].algorithm, sets[i].protocol, &g,
                                     &reason)) {
            wishes[n++] = set_bytes(comm, sets[i].algorithm, &g);
        }
    }
    do {
        before = n;
        for (uint32_t i = 0; i < n;) {
            if (wishes[i] <= left / n) {
                left -= wishes[i];
                wishes[i] = wishes[--n];
            } else {
                i++;
            }
        }
    } while (0 != n && n != before);
    return 0 != n ? left / n : params->max_fifo_bytes;
}

/* Make the set fit into most bytes. False when even the least does not. */
static int fit(const gp_comm_desc_t *comm, const gp_params_t *params, uint32_t algorithm,
               uint32_t protocol, uint64_t most, gp_conn_geom_t *g)
{
    uint32_t least_channels = params->min_channels > 1 ? params->min_channels : 1;
    uint64_t links = most_recv(comm, algorithm) * (comm->n_nodes > 1 ? 2 : 1);
    uint64_t good = good_slot_bytes[protocol], least = LEAST_SLOT_BYTES;
    uint64_t channels, room;

    if (set_bytes(comm, algorithm, g) <= most) {
        return 1;
    }
    /* The user's slots are kept as they are. */
    good = 0 != params->buffer_bytes[protocol] || g->slot_bytes < good ? g->slot_bytes : good;
    least = 0 != params->buffer_bytes[protocol] || g->slot_bytes < least ? g->slot_bytes : least;
    channels = most / (links * gp_fifo_recv_block_bytes(g->n_slots, good));
    channels = channels > 1 ? channels & ~1ull : channels; /* as many of each tree */
    channels = channels < least_channels ? least_channels : channels;
    g->channels = channels < g->channels ? (uint32_t) channels : g->channels;
    room = most / (links * g->channels);
    room = room > GP_FIFO_SLOTS_OFFSET ? (room - GP_FIFO_SLOTS_OFFSET) / g->n_slots / 256 * 256 : 0;
    g->slot_bytes = room < g->slot_bytes ? room : g->slot_bytes;
    return g->slot_bytes >= least;
}

/* DESIGN 3.2. NULL: allowed; else the rule that forbids it. */
static const char *ll128_forbidden(const gp_comm_desc_t *comm)
{
    if (GP_EXEC_HOST == comm->executor) {
        return NULL;
    }
    if (comm->worst_path > GP_PATH_NVLINK) {
        return "ll128: a path is neither one GPU nor NVLink, which keep a 128-byte line together";
    }
    if (comm->min_capability < 70) {
        return "ll128: a GPU has compute capability below 7.0";
    }
    if (comm->min_capability != comm->max_capability && comm->min_capability < 90) {
        return "ll128: GPUs of different compute capability, not all 9.0 or above";
    }
    return NULL;
}

/* Channels that can be resident together, or 0 with *reason. */
static uint32_t channel_bound(const gp_comm_desc_t *comm, const gp_params_t *params,
                              const char **reason)
{
    uint32_t channels = 1;

    if (GP_EXEC_CUDA == comm->executor) {
        uint32_t ranks = comm->ranks_per_gpu > 0 ? comm->ranks_per_gpu : 1;

        /* One block per SM; a few SMs stay free for others. */
        channels = comm->sm_count * 97 / 100 / ranks;
        channels = channels > MAX_CHANNELS ? MAX_CHANNELS : channels;
        channels = channels > 1 ? channels & ~1u : channels;
        if (0 == channels) {
            *reason = "co-residency: more ranks on the GPU than it has multiprocessors";
            return 0;
        }
        if (params->min_channels > channels) {
            *reason = "min_channels: more blocks than fit on the GPU together";
            return 0;
        }
    } else if (params->min_channels > channels) {
        channels = params->min_channels < MAX_CHANNELS ? params->min_channels : MAX_CHANNELS;
        if (params->min_channels > MAX_CHANNELS) {
            *reason = "min_channels: more than 64";
            return 0;
        }
    }
    if (0 != params->max_channels && params->max_channels < channels) {
        channels = params->max_channels;
        if (channels < params->min_channels) {
            *reason = "min_channels is larger than max_channels";
            return 0;
        }
    }
    return channels;
}

gp_status_t gp_conn_wish(const gp_comm_desc_t *comm, const gp_params_t *params, uint32_t algorithm,
                         uint32_t protocol, gp_conn_geom_t *wish_p, const char **reason)
{
    uint32_t channels;
    gp_conn_geom_t g;

    *reason = NULL;
    if (algorithm >= GP_ALGO_CUSTOM || protocol >= GP_PROTO_COUNT || 0 == comm->n_ranks) {
        *reason = "no such algorithm or protocol";
        return GP_ERR_INVALID;
    }
    if (GP_PROTO_LL128 == protocol && !params->ll128_unsafe) {
        *reason = ll128_forbidden(comm);
        if (NULL != *reason) {
            return GP_DECLINED;
        }
    }
    channels = channel_bound(comm, params, reason);
    if (0 == channels) {
        return GP_DECLINED;
    }
    wish(comm, params, algorithm, protocol, channels, &g);
    g.data_bytes = gp_data_bytes((gp_protocol_t) protocol, g.slot_bytes);
    if (0 == g.data_bytes) {
        *reason = "buffer size: a slot would hold no data";
        return GP_DECLINED;
    }
    if (GP_EXEC_CUDA == comm->executor) {
        g.threads = 0 != params->threads ? params->threads : full_threads[protocol];
        if (g.threads > most_threads[protocol] || g.threads < 64 || 0 != g.threads % 32) {
            *reason = "threads: not a multiple of 32 from 64 to what the protocol's kernel allows";
            return GP_DECLINED;
        }
    }
    *wish_p = g;
    return GP_OK;
}

gp_status_t gp_plan_conn_geom(const gp_comm_desc_t *comm, const gp_params_t *params,
                              uint32_t algorithm, uint32_t protocol, gp_conn_geom_t *geom,
                              const char **reason)
{
    gp_conn_geom_t g;
    uint64_t most;
    gp_status_t status = gp_conn_wish(comm, params, algorithm, protocol, &g, reason);

    if (GP_OK != status) {
        return status;
    }
    most = most_set_bytes(comm, params, algorithm, protocol);
    if (!fit(comm, params, algorithm, protocol, most, &g)) {
        *reason = "max_fifo_mib: the FIFOs of this algorithm and protocol do not fit";
        return GP_DECLINED;
    }
    g.data_bytes = gp_data_bytes((gp_protocol_t) protocol, g.slot_bytes);
    if (0 == g.data_bytes) {
        *reason = "max_fifo_mib: a slot would hold no data";
        return GP_DECLINED;
    }
    *geom = g;
    return GP_OK;
}
