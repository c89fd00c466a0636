/*
 * gp_cost.c - the cost model and its constants.
 *
 * Owns the constants, a set for each kind of machine; docs/planner.md says where each comes from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_cost.h"

#include <string.h>

#include "planner/gp_plan_int.h"

/* What changes nothing in the order of the predictions, and keeps products within 64 bits. */
#define MOST_BYTES (1ull << 40)
#define MOST_RANKS 65536u

typedef struct constants {
    const char *name;
    uint32_t base_ns;
    uint32_t base_rank_ns; /* more for each rank on the GPU */
    /* From data that arrives to data that arrives at the next rank, small chunks. */
    uint32_t hop_ns[GP_ALGO_CUSTOM][GP_PROTO_COUNT];
    uint32_t conn_ns[GP_PROTO_COUNT]; /* flat: for each other rank that is sent to and received from */
    /*
     * Bytes per microsecond. one_gpu and host: of all that a block (a rank, on the host) loads and stores
     * for a call. Others: of allreduce bus bandwidth, in units of 1/1000 of the links' out of a GPU.
     */
    uint32_t rate[GP_ALGO_CUSTOM][GP_PROTO_COUNT];
} constants_t;

/* Several ranks on one GPU: H200 under MPS, 2 to 8 ranks. */
static const constants_t one_gpu = {
    "one-gpu",
    11500,
    1600,
    {{780, 2340, 2240}, {340, 790, 1870}, {50, 720, 3600}},
    {210, 210, 210},
    {{22800, 32200, 34800}, {12000, 19600, 27000}, {22000, 16000, 36000}},
};

/* Different GPUs of one host over NVLink, by generation. */
static const constants_t nvlink_sm70 = {
    "nvlink-sm70",
    11000,
    500,
    {{1100, 3200, 6000}, {1300, 2500, 8000}, {1500, 3200, 6000}},
    {300, 300, 300},
    {{300, 656, 823}, {200, 480, 514}, {284, 656, 700}},
};
static const constants_t nvlink_sm90 = {
    "nvlink-sm80+",
    11000,
    500,
    {{600, 1900, 3400}, {600, 1250, 4000}, {1000, 1900, 3400}},
    {200, 200, 200},
    {{300, 740, 805}, {200, 480, 600}, {300, 740, 740}},
};

/* Over PCIe, or through host memory from a GPU: hops cost more, LL128 is off. */
static const constants_t pcie = {
    "pcie",
    11000,
    500,
    {{1000, 2500, 5700}, {1000, 1900, 4000}, {1500, 2500, 5700}},
    {500, 500, 500},
    {{400, 700, 800}, {300, 600, 700}, {400, 700, 800}},
};

/* Between nodes; what happens inside a node costs what it costs there. */
static const constants_t net = {
    "net",
    0,
    0,
    {{14000, 16000, 20000}, {14000, 16000, 20000}, {14000, 16000, 20000}},
    {4000, 4000, 4000},
    {{450, 850, 900}, {400, 800, 850}, {450, 850, 900}},
};

/* Host memory, a core for each rank: two ranks on two cores. */
static const constants_t host = {
    "host",
    50,
    0,
    {{200, 400, 330}, {220, 450, 330}, {200, 420, 280}},
    {50, 70, 90},
    {{8500, 12700, 23000}, {8000, 12000, 22500}, {4000, 10000, 21000}},
};

/* More ranks than cores: a hop is a switch from one process to another. */
#define SWITCH_NS 4000u

/* Inside a node. */
static const constants_t *inside_of(const gp_comm_desc_t *comm)
{
    if (GP_EXEC_HOST == comm->executor) {
        return &host;
    }
    switch (comm->worst_path) {
    case GP_PATH_SELF_GPU:
        return &one_gpu;
    case GP_PATH_NVLINK:
    case GP_PATH_NET: /* the path inside is not told: take the better kind */
        return comm->min_capability < 80 ? &nvlink_sm70 : &nvlink_sm90;
    default:
        return &pcie;
    }
}

static const constants_t *constants_of(const gp_comm_desc_t *comm)
{
    return comm->n_nodes > 1 || GP_PATH_NET == comm->worst_path ? &net : inside_of(comm);
}

const char *gp_cost_model_name(const gp_comm_desc_t *comm)
{
    return constants_of(comm)->name;
}

/* Levels of a binary tree of n ranks, numbered in order: the path from the root to the deepest leaf. */
static uint32_t tree_levels(uint32_t n)
{
    uint32_t levels = 0;

    while ((1ull << levels) < n) {
        levels++;
    }
    return levels;
}

/* Hops one after the other inside nodes, and between them. */
static void hops_of(const gp_comm_desc_t *comm, uint32_t algorithm, uint32_t n, uint32_t *inside,
                    uint32_t *between)
{
    uint32_t nodes = comm->n_nodes > 1 ? comm->n_nodes : 1;
    uint32_t per_node = (n + nodes - 1) / nodes;

    *between = 0;
    switch (algorithm) {
    case GP_ALGO_RING:
        *between = nodes > 1 ? 2 * nodes - 2 : 0;
        *inside = 2 * (n - 1) - *between;
        break;
    case GP_ALGO_TREE:
        *between = nodes > 1 ? 2 * tree_levels(nodes) : 0;
        *inside = nodes > 1 ? 2 * (per_node - 1) : 2 * tree_levels(n);
        break;
    default:
        *between = nodes > 1;
        *inside = nodes > 1 ? 0 : n > 1;
        break;
    }
}

static uint64_t wire_bytes(uint32_t protocol, uint64_t bytes)
{
    switch (protocol) {
    case GP_PROTO_LL:
        return 2 * bytes;
    case GP_PROTO_LL128:
        return bytes + bytes / 15;
    default:
        return bytes;
    }
}

/* What a rank loads and stores: own buffers once, and each byte on a wire written and read. */
static uint64_t traffic_bytes(uint32_t algorithm, uint32_t protocol, uint32_t n, uint64_t bytes)
{
    uint64_t wire = wire_bytes(protocol, bytes);

    if (GP_ALGO_FLAT == algorithm) {
        return 2 * bytes + 2 * wire * (n - 1);
    }
    return 2 * bytes + 4 * (wire - wire / n);
}

/* Bytes per microsecond out of a GPU (or a node). */
static uint64_t link_rate(const gp_comm_desc_t *comm)
{
    if (0 != comm->link_bytes_per_us) {
        return comm->link_bytes_per_us;
    }
    if (comm->n_nodes > 1 || GP_PATH_NET == comm->worst_path) {
        return 1250; /* 10 Gbit/s */
    }
    if (GP_PATH_NVLINK == comm->worst_path) {
        return comm->min_capability < 80 ? 150000 : comm->min_capability < 90 ? 300000 : 450000;
    }
    return 12000;
}

static uint64_t transfer_ns(const gp_comm_desc_t *comm, const constants_t *k, uint32_t algorithm,
                            uint32_t protocol, uint64_t bytes, uint32_t channels)
{
    uint32_t n = comm->n_ranks;
    uint64_t rate = k->rate[algorithm][protocol];

    if (&one_gpu == k || &host == k) {
        uint64_t traffic = traffic_bytes(algorithm, protocol, n, bytes);

        if (&one_gpu == k && GP_ALGO_TREE == algorithm && n <= 2) {
            rate = k->rate[GP_ALGO_RING][protocol] * 7 / 8; /* no rank has two children */
        }
        if (&host == k && comm->oversubscribed) {
            rate /= 2;
        }
        return traffic / channels * 1000 / rate;
    }
    rate = link_rate(comm) * rate / 1000;
    if (GP_ALGO_FLAT == algorithm) {
        return bytes * (n - 1) / rate * 1000 + bytes * (n - 1) % rate * 1000 / rate;
    }
    bytes = 2 * (bytes - bytes / n);
    return bytes / rate * 1000 + bytes % rate * 1000 / rate;
}

/*
 * Where whole chunks are handed on a tree is a pipeline only after its levels have one each: Simple
 * anywhere, and everything between nodes, where a slot is a message.
 */
static uint64_t fill_ns(const gp_conn_geom_t *conn, uint32_t algorithm, uint32_t protocol,
                        uint32_t between, uint32_t hops, uint64_t bytes, uint64_t transfer,
                        uint32_t channels)
{
    uint64_t chunk = bytes / channels;

    hops = between > 0 ? between : hops;
    if (GP_ALGO_TREE != algorithm || (GP_PROTO_SIMPLE != protocol && 0 == between) || 0 == bytes
        || hops < 3) {
        return 0;
    }
    if (GP_PROTO_SIMPLE == protocol) {
        chunk = (chunk + GP_PIPELINE_CHUNKS - 1) / GP_PIPELINE_CHUNKS;
    }
    chunk = chunk < conn->data_bytes ? chunk : conn->data_bytes;
    /* A chunk's share of the transfer, on each level but the first two. */
    return transfer * (chunk * channels * 1000 / bytes) / 1000 * (hops - 2);
}

void gp_cost_of(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_conn_geom_t *conn,
                uint32_t algorithm, uint32_t protocol, uint64_t bytes, gp_cost_t *cost)
{
    const constants_t *k = constants_of(comm), *inner = inside_of(comm);
    uint32_t n = comm->n_ranks < MOST_RANKS ? comm->n_ranks : MOST_RANKS;
    uint64_t hop = inner->hop_ns[algorithm][protocol], more, less;
    uint32_t inside, between;

    memset(cost, 0, sizeof(*cost));
    bytes = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    if (n <= 1) {
        return;
    }
    if (GP_EXEC_HOST == comm->executor && comm->oversubscribed) {
        hop += SWITCH_NS;
    }
    cost->channels = gp_call_channels(params, conn, algorithm, protocol, bytes);
    hops_of(comm, algorithm, n, &inside, &between);
    cost->hops = inside + between;
    cost->base_ns = inner->base_ns + (uint64_t) inner->base_rank_ns * comm->ranks_per_gpu;
    cost->latency_ns = hop * inside + (uint64_t) k->hop_ns[algorithm][protocol] * between;
    if (GP_ALGO_FLAT == algorithm) {
        cost->latency_ns += (uint64_t) k->conn_ns[protocol] * (n - 1);
    }
    cost->transfer_ns = transfer_ns(comm, k, algorithm, protocol, bytes, cost->channels);
    cost->transfer_ns += fill_ns(conn, algorithm, protocol, between, cost->hops, bytes,
                                 cost->transfer_ns, cost->channels);
    more = cost->latency_ns > cost->transfer_ns ? cost->latency_ns : cost->transfer_ns;
    less = cost->latency_ns + cost->transfer_ns - more;
    /* A ring's or flat's lines travel while others are waited for; a tree must fill first. */
    cost->total_ns = cost->base_ns + more + (GP_ALGO_TREE == algorithm ? less : less / 2);
}
