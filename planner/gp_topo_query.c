/*
 * gp_topo_query.c - what follows from a topology for a communicator: farthest pair, description,
 * NICs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo.h"

#include <stdlib.h>
#include <string.h>

/* Is path a farther than b? */
static int farther(const gp_topo_path_t *a, const gp_topo_path_t *b)
{
    return a->type > b->type || (a->type == b->type && a->bytes_per_us < b->bytes_per_us);
}

/*
 * Ranks of one node that stand for all: of each GPU, and of those without, the two lowest. In rank
 * order; returns how many.
 */
static uint32_t stand_ins(const gp_topo_t *topo, uint32_t ranks[2 * (GP_TOPO_MOST_DEVICES + 1)])
{
    const gp_topo_node_t *node = &topo->nodes[topo->ranks[0].node];
    uint8_t seen[GP_TOPO_MOST_DEVICES + 1] = {0};
    uint32_t n = 0;

    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        uint32_t gpu = topo->ranks[r].gpu;
        uint32_t at = GP_TOPO_NONE == gpu ? GP_TOPO_MOST_DEVICES : gpu - node->first_gpu;

        if (seen[at] < 2) {
            seen[at]++;
            ranks[n++] = r;
        }
    }
    return n;
}

gp_topo_path_t gp_topo_worst_path(const gp_topo_t *topo, uint32_t *rank_a, uint32_t *rank_b)
{
    gp_topo_path_t worst = {GP_TOPO_SAME_GPU, 0, UINT64_MAX, GP_PATH_SELF_GPU};
    uint32_t ranks[2 * (GP_TOPO_MOST_DEVICES + 1)], n, a = 0, b = 0;

    for (uint32_t r = 1; r < topo->n_ranks && 0 == b; r++) {
        if (topo->ranks[r].node != topo->ranks[0].node) {
            worst = gp_topo_pair_path(topo, 0, r);
            b = r;
        }
    }
    if (0 == b && 0 != topo->n_ranks) {
        n = stand_ins(topo, ranks);
        if (1 == n) {
            worst = gp_topo_pair_path(topo, 0, 0);
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = i + 1; k < n; k++) {
                gp_topo_path_t path = gp_topo_pair_path(topo, ranks[i], ranks[k]);

                if (farther(&path, &worst)) {
                    worst = path;
                    a = ranks[i];
                    b = ranks[k];
                }
            }
        }
    }
    worst.bytes_per_us = UINT64_MAX == worst.bytes_per_us ? 0 : worst.bytes_per_us;
    if (NULL != rank_a) {
        *rank_a = a;
    }
    if (NULL != rank_b) {
        *rank_b = b;
    }
    return worst;
}

/* Of a node's NICs those that rank's GPU uses: nearest, then fastest. Returns how many. */
static uint32_t near_nics(const gp_topo_t *topo, const gp_topo_node_t *node, uint32_t gpu,
                          uint32_t nics[GP_TOPO_MOST_DEVICES])
{
    uint32_t n = 0, best_type = UINT32_MAX, best_speed = 0;

    for (uint32_t i = 0; i < node->n_nics; i++) {
        uint32_t nic = node->first_nic + i, speed = topo->nics[nic].bytes_per_us;
        uint32_t type = GP_TOPO_NONE == gpu ? 0 : gp_topo_nic_type(topo, gpu, nic);

        if (type > best_type || (type == best_type && speed < best_speed)) {
            continue;
        }
        n = type == best_type && speed == best_speed ? n : 0;
        best_type = type;
        best_speed = speed;
        nics[n++] = nic;
    }
    return n;
}

uint32_t gp_topo_nic_of(const gp_topo_t *topo, uint32_t rank, uint32_t channel)
{
    const gp_topo_rank_t *r = &topo->ranks[rank];
    const gp_topo_node_t *node = &topo->nodes[r->node];
    uint32_t nics[GP_TOPO_MOST_DEVICES], others[GP_TOPO_MOST_DEVICES];
    uint32_t n = near_nics(topo, node, r->gpu, nics), first = 0;

    if (0 == n) {
        return GP_TOPO_NONE;
    }
    if (1 == n) {
        return nics[0];
    }
    if (GP_TOPO_NONE == r->gpu) {
        first = rank % n;
    } else {
        /* The GPUs before this one that use the same NICs. */
        for (uint32_t gpu = node->first_gpu; gpu < r->gpu; gpu++) {
            first += n == near_nics(topo, node, gpu, others)
                     && 0 == memcmp(nics, others, n * sizeof(nics[0]));
        }
    }
    return nics[(first + channel % n) % n];
}

/* Bytes per microsecond out of the node's NICs together; 0 when one is not known. */
static uint64_t node_rate(const gp_topo_t *topo, const gp_topo_node_t *node)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < node->n_nics; i++) {
        if (0 == topo->nics[node->first_nic + i].bytes_per_us) {
            return 0;
        }
        sum += topo->nics[node->first_nic + i].bytes_per_us;
    }
    return sum;
}

/* NVLink bytes per microsecond out of a GPU to those in use. */
static uint64_t nvlink_rate_out(const gp_topo_t *topo, uint32_t gpu, const uint32_t *ranks_on)
{
    const gp_topo_node_t *node = &topo->nodes[topo->gpus[gpu].node];
    uint64_t sum = 0, most = 0;

    for (uint32_t i = 0; i < node->n_gpus; i++) {
        gp_topo_path_t path = gp_topo_gpu_path(topo, gpu, node->first_gpu + i);

        if (0 == ranks_on[node->first_gpu + i]) {
            continue;
        }
        if (GP_TOPO_NVLINK == path.type) {
            sum += path.bytes_per_us;
        } else if (GP_TOPO_NVSWITCH == path.type && path.bytes_per_us > most) {
            most = path.bytes_per_us; /* the same links to all */
        }
    }
    return sum + most;
}

/* One node, CUDA: out of the GPU with the slowest links of the farthest kind. */
static uint64_t gpu_rate(const gp_topo_t *topo, uint32_t worst_type, const uint32_t *ranks_on)
{
    uint64_t slowest = UINT64_MAX;

    for (uint32_t a = 0; a < topo->n_gpus; a++) {
        if (0 == ranks_on[a]) {
            continue;
        }
        if (worst_type <= GP_TOPO_NVSWITCH) {
            uint64_t rate = nvlink_rate_out(topo, a, ranks_on);

            slowest = rate < slowest ? rate : slowest;
            continue;
        }
        for (uint32_t b = a + 1; b < topo->n_gpus; b++) {
            gp_topo_path_t path = gp_topo_gpu_path(topo, a, b);

            if (0 != ranks_on[b] && path.type > GP_TOPO_NVSWITCH && path.bytes_per_us < slowest) {
                slowest = path.bytes_per_us;
            }
        }
    }
    return UINT64_MAX == slowest ? 0 : slowest;
}

/* GPU fields of the description. False when something about a GPU is not known. */
static int describe_gpus(const gp_topo_t *topo, const uint32_t *ranks_on, gp_comm_desc_t *desc)
{
    uint32_t least_sm = UINT32_MAX, least_cap = UINT32_MAX;

    for (uint32_t i = 0; i < topo->n_gpus; i++) {
        const gp_topo_gpu_t *gpu = &topo->gpus[i];

        if (0 == ranks_on[i]) {
            continue;
        }
        desc->ranks_per_gpu = ranks_on[i] > desc->ranks_per_gpu ? ranks_on[i]
                                                                : desc->ranks_per_gpu;
        least_sm = gpu->sm_count < least_sm ? gpu->sm_count : least_sm;
        least_cap = gpu->capability < least_cap ? gpu->capability : least_cap;
        desc->max_capability = gpu->capability > desc->max_capability ? gpu->capability
                                                                      : desc->max_capability;
    }
    desc->sm_count = UINT32_MAX == least_sm ? 0 : least_sm;
    desc->min_capability = UINT32_MAX == least_cap ? 0 : least_cap;
    desc->max_capability = 0 == desc->min_capability ? 0 : desc->max_capability;
    return 0 != desc->sm_count && 0 != desc->min_capability;
}

gp_status_t gp_topo_comm_desc(const gp_topo_t *topo, uint32_t executor, gp_comm_desc_t *desc)
{
    gp_topo_path_t worst;
    uint32_t *ranks_on_node, *ranks_on_gpu;
    uint64_t rate = UINT64_MAX;
    int known = 1;

    memset(desc, 0, sizeof(*desc));
    if (0 == topo->n_ranks || executor >= GP_EXEC_COUNT) {
        return GP_ERR_INVALID;
    }
    ranks_on_node = calloc((size_t) topo->n_nodes + topo->n_gpus, sizeof(*ranks_on_node));
    if (NULL == ranks_on_node) {
        return GP_ERR_NO_MEMORY;
    }
    ranks_on_gpu = ranks_on_node + topo->n_nodes;
    desc->n_ranks = topo->n_ranks;
    desc->executor = executor;
    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        ranks_on_node[topo->ranks[r].node]++;
        if (GP_TOPO_NONE == topo->ranks[r].gpu) {
            known = 0;
        } else {
            ranks_on_gpu[topo->ranks[r].gpu]++;
        }
    }
    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        const gp_topo_node_t *node = &topo->nodes[topo->ranks[r].node];
        uint32_t cores = 0 != node->n_cores ? node->n_cores : topo->ranks[r].n_cores;

        desc->oversubscribed |= 0 != cores && ranks_on_node[topo->ranks[r].node] > cores;
    }
    for (uint32_t i = 0; i < topo->n_nodes; i++) {
        uint64_t out = node_rate(topo, &topo->nodes[i]);

        desc->n_nodes += 0 != ranks_on_node[i];
        rate = 0 != ranks_on_node[i] && out < rate ? out : rate;
    }
    worst = gp_topo_worst_path(topo, NULL, NULL);
    desc->worst_path = worst.latency;
    if (GP_EXEC_HOST == executor) {
        desc->worst_path = desc->n_nodes > 1 ? GP_PATH_NET : GP_PATH_HOST;
        known = 1;
    } else {
        known &= describe_gpus(topo, ranks_on_gpu, desc);
    }
    if (desc->n_nodes <= 1) {
        rate = GP_EXEC_HOST == executor || desc->worst_path > GP_PATH_PCIE
                   ? 0
                   : gpu_rate(topo, worst.type, ranks_on_gpu);
    }
    desc->link_bytes_per_us = rate > UINT32_MAX ? UINT32_MAX : (uint32_t) rate;
    free(ranks_on_node);
    return known ? GP_OK : GP_ERR_UNSUPPORTED;
}
