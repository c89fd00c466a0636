/*
 * gp_topo_ring.c - an order of the ranks for a ring that crosses each link as seldom as it can.
 *
 * Owns the tours over the GPUs of a node. The promise is in gp_topo.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo.h"

#include <stdlib.h>
#include <string.h>

/*
 * Cost of a step by type. Each kind costs more than any tour of an exact search can have of the
 * kind below: 10 steps, and less than UNIT for links (10 steps x 6 tours x LINK_COST).
 */
#define UNIT 1000000ull
#define LINK_COST 1000u

static const uint64_t type_cost[GP_TOPO_TYPE_COUNT] = {
    [GP_TOPO_PIX] = UNIT,
    [GP_TOPO_PXB] = UNIT * 100,
    [GP_TOPO_PHB] = UNIT * 10000,
    [GP_TOPO_SYS] = UNIT * 1000000,
    [GP_TOPO_HOST] = UNIT * 1000000,
    [GP_TOPO_NET] = UNIT * 1000000,
};

/* GPUs of a node that have ranks, in the order of their lowest ranks, and the tour over them. */
typedef struct tour {
    uint32_t n;
    uint8_t at[GP_TOPO_MOST_DEVICES]; /* positions in the list of GPUs */
} tour_t;

/* What a tour follows from; equal keys have equal tours. */
typedef struct key {
    uint32_t n;
    uint32_t type[GP_TOPO_EXACT_GPUS][GP_TOPO_EXACT_GPUS];
    uint32_t links[GP_TOPO_EXACT_GPUS][GP_TOPO_EXACT_GPUS];
} tour_key_t;

/*
 * The cheapest closed tour from 0 over all of n points (Held and Karp): rest[set][last] is what it
 * costs to go from `last` over all that are not in `set` back to 0. Of equal ones the first in
 * lexical order.
 */
static void cheapest(uint32_t n, uint64_t cost[GP_TOPO_EXACT_GPUS][GP_TOPO_EXACT_GPUS],
                     uint64_t (*rest)[GP_TOPO_EXACT_GPUS], tour_t *tour)
{
    uint32_t all = (1u << n) - 1, set = 1, last = 0;

    for (uint32_t s = all; s >= 1; s--) {
        for (uint32_t from = 0; from < n; from++) {
            rest[s][from] = all == s ? cost[from][0] : UINT64_MAX;
            for (uint32_t to = 1; to < n; to++) {
                uint64_t c;

                if (0 != (s & 1u << to)) {
                    continue;
                }
                c = cost[from][to] + rest[s | 1u << to][to];
                rest[s][from] = c < rest[s][from] ? c : rest[s][from];
            }
        }
    }
    tour->n = n;
    tour->at[0] = 0;
    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t to = 1; to < n; to++) {
            if (0 == (set & 1u << to)
                && rest[set][last] == cost[last][to] + rest[set | 1u << to][to]) {
                tour->at[i] = (uint8_t) to;
                break;
            }
        }
        last = tour->at[i];
        set |= 1u << last;
    }
}

/* Tour number `turn`: each one avoids the NVLinks that those before it use. */
static gp_status_t exact_tour(const tour_key_t *key, uint32_t turn, tour_t *tour)
{
    uint64_t cost[GP_TOPO_EXACT_GPUS][GP_TOPO_EXACT_GPUS];
    uint32_t used[GP_TOPO_EXACT_GPUS][GP_TOPO_EXACT_GPUS];
    uint64_t (*rest)[GP_TOPO_EXACT_GPUS] = malloc(sizeof(*rest) << key->n);

    if (NULL == rest) {
        return GP_ERR_NO_MEMORY;
    }
    memset(used, 0, sizeof(used));
    for (uint32_t t = 0; t <= turn; t++) {
        for (uint32_t a = 0; a < key->n; a++) {
            for (uint32_t b = 0; b < key->n; b++) {
                cost[a][b] = type_cost[key->type[a][b]];
                if (GP_TOPO_NVLINK == key->type[a][b]) {
                    cost[a][b] += LINK_COST * (used[a][b] + 1) / key->links[a][b];
                }
            }
        }
        cheapest(key->n, cost, rest, tour);
        for (uint32_t i = 0; i < key->n; i++) {
            uint32_t a = tour->at[i], b = tour->at[(i + 1) % key->n];

            used[a][b]++;
            used[b][a] += a != b;
        }
    }
    free(rest);
    return GP_OK;
}

/* More GPUs than the exact search takes: always on to the nearest. */
static void nearest_tour(const gp_topo_t *topo, const uint32_t *gpus, uint32_t n, tour_t *tour)
{
    uint8_t done[GP_TOPO_MOST_DEVICES] = {1};

    tour->n = n;
    tour->at[0] = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t best = 0;
        gp_topo_path_t near = {0, 0, 0, 0};

        for (uint32_t to = 1; to < n; to++) {
            gp_topo_path_t p = gp_topo_gpu_path(topo, gpus[tour->at[i - 1]], gpus[to]);

            if (!done[to]
                && (0 == best || p.type < near.type
                    || (p.type == near.type && p.nvlinks > near.nvlinks))) {
                best = to;
                near = p;
            }
        }
        tour->at[i] = (uint8_t) best;
        done[best] = 1;
    }
}

/* Ranks by node, in rank order within one; and what the last node's tour was made from. */
typedef struct ring {
    const gp_topo_t *topo;
    uint32_t channel;
    uint32_t n_filled_nodes;
    uint32_t *first;   /* per node: its first entry in by_node; one more at the end */
    uint32_t *by_node; /* ranks */
    tour_key_t key;
    tour_t tour;
    uint32_t tour_known;
} ring_t;

static gp_status_t tour_of(ring_t *ring, const uint32_t *gpus, uint32_t n)
{
    tour_key_t key;
    gp_status_t status;

    if (n > GP_TOPO_EXACT_GPUS) {
        ring->tour_known = 0;
        nearest_tour(ring->topo, gpus, n, &ring->tour);
        return GP_OK;
    }
    memset(&key, 0, sizeof(key));
    key.n = n;
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            gp_topo_path_t path = gp_topo_gpu_path(ring->topo, gpus[a], gpus[b]);

            key.type[a][b] = path.type;
            key.links[a][b] = path.nvlinks;
        }
    }
    if (ring->tour_known && 0 == memcmp(&key, &ring->key, sizeof(key))) {
        return GP_OK; /* a node like the one before */
    }
    status = exact_tour(&key, ring->channel / 2 % GP_TOPO_TOURS, &ring->tour);
    ring->tour_known = GP_OK == status;
    ring->key = key;
    return status;
}

/* Append the ranks of a node, the place-th that has any. */
static gp_status_t append_node(ring_t *ring, uint32_t node, uint32_t place, uint32_t *order)
{
    const gp_topo_rank_t *ranks = ring->topo->ranks;
    const uint32_t *mine = &ring->by_node[ring->first[node]];
    uint32_t n_mine = ring->first[node + 1] - ring->first[node];
    uint32_t gpus[GP_TOPO_MOST_DEVICES], n_gpus = 0, n = 0, start;
    uint8_t seen[GP_TOPO_MOST_DEVICES] = {0};

    for (uint32_t i = 0; i < n_mine; i++) {
        uint32_t gpu = ranks[mine[i]].gpu;

        if (GP_TOPO_NONE != gpu && !seen[gpu - ring->topo->nodes[node].first_gpu]) {
            seen[gpu - ring->topo->nodes[node].first_gpu] = 1;
            gpus[n_gpus++] = gpu;
        }
    }
    if (0 != n_gpus) {
        gp_status_t status = tour_of(ring, gpus, n_gpus);

        if (GP_OK != status) {
            return status;
        }
        start = ring->n_filled_nodes < 2
                    ? 0
                    : (ring->channel % n_gpus + n_gpus - place % n_gpus) % n_gpus;
        for (uint32_t g = 0; g < n_gpus; g++) {
            uint32_t gpu = gpus[ring->tour.at[(start + g) % n_gpus]];

            for (uint32_t i = 0; i < n_mine; i++) {
                if (ranks[mine[i]].gpu == gpu) {
                    order[n++] = mine[i];
                }
            }
        }
    }
    for (uint32_t i = 0; i < n_mine; i++) {
        if (GP_TOPO_NONE == ranks[mine[i]].gpu) {
            order[n++] = mine[i];
        }
    }
    return GP_OK;
}

gp_status_t gp_topo_ring_order(const gp_topo_t *topo, uint32_t channel, uint32_t *order,
                               uint32_t *first)
{
    gp_status_t status = GP_OK;
    uint32_t at = 0, place = 0;
    ring_t ring;

    memset(&ring, 0, sizeof(ring));
    ring.topo = topo;
    ring.channel = channel;
    ring.first = calloc((size_t) topo->n_nodes + 2, sizeof(*ring.first));
    ring.by_node = calloc((size_t) topo->n_ranks + 1, sizeof(*ring.by_node));
    if (NULL == ring.first || NULL == ring.by_node) {
        status = GP_ERR_NO_MEMORY;
        goto err_free;
    }
    /*
     * Counting sort: first[node + 1] is where the next rank of the node goes, and ends as its end.
     */
    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        ring.n_filled_nodes += 0 == ring.first[topo->ranks[r].node + 2]++;
    }
    for (uint32_t i = 2; i < topo->n_nodes + 2; i++) {
        ring.first[i] += ring.first[i - 1];
    }
    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        ring.by_node[ring.first[topo->ranks[r].node + 1]++] = r;
    }
    /* A node's turn comes with its lowest rank. */
    for (uint32_t r = 0; r < topo->n_ranks && GP_OK == status; r++) {
        uint32_t node = topo->ranks[r].node;

        if (r == ring.by_node[ring.first[node]]) {
            status = append_node(&ring, node, place, order + at);
            if (NULL != first) {
                first[place] = at;
            }
            at += ring.first[node + 1] - ring.first[node];
            place++;
        }
    }
    if (NULL != first) {
        first[place] = at;
    }
err_free:
    free(ring.first);
    free(ring.by_node);
    return status;
}
