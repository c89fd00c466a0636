/*
 * test_topo.c - the topology model on recorded machines, and its text format on bad files.
 *
 * The expected matrices are written by hand from what is known of each machine (the comments in
 * tests/unit/topo/), not computed. Letters: g same GPU, n NVLink, s NVSwitch, x PIX, b PXB, p PHB,
 * y SYS, h host memory, w network.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "device/proto/gp_log.h"
#include "planner/gp_topo.h"

static const char letters[] = "gnsxbpyhw"; /* by gp_topo_type_t */

static uint32_t n_logged;
static char logged[1024];

static void keep_log(gp_log_level_t level, const char *text)
{
    (void) level;
    n_logged++;
    snprintf(logged, sizeof(logged), "%s", text);
}

static void machine_path(const char *name, char *path, size_t bytes)
{
    const char *top = getenv("GP_TOP_SRCDIR");

    snprintf(path, bytes, "%s/tests/unit/topo/%s", NULL != top ? top : ".", name);
}

static gp_topo_t *machine(const char *name)
{
    char path[4096];
    gp_topo_t *topo;

    machine_path(name, path, sizeof(path));
    n_logged = 0;
    if (GP_OK != gp_topo_read(path, &topo)) {
        gp_bail_out("%s: %s", path, logged);
    }
    return topo;
}

typedef struct expect {
    const char *file;
    const char *matrix; /* n rows of n letters, '-' on the diagonal */
    uint32_t n_ranks, n_nodes, worst_path, ranks_per_gpu, sm_count, min_cap, max_cap;
    uint32_t link_bytes_per_us;
    uint32_t links;     /* of the first pair */
    uint64_t pair_rate; /* of the first pair */
    const char *ll128;  /* begin of the refusal; NULL: allowed */
    uint32_t nics[16];  /* of each rank on channel 0, by position in the file */
} expect_t;

#define NO_NIC 99u
#define EIGHT                                                                                      \
    "-sssssss" "s-ssssss" "ss-sssss" "sss-ssss" "ssss-sss" "sssss-ss" "ssssss-s" "sssssss-"
#define LEFT(row) row "wwwwwwww"
#define RIGHT(row) "wwwwwwww" row
#define SIXTEEN                                                                                    \
    LEFT("-sssssss") LEFT("s-ssssss") LEFT("ss-sssss") LEFT("sss-ssss") LEFT("ssss-sss")           \
    LEFT("sssss-ss") LEFT("ssssss-s") LEFT("sssssss-") RIGHT("-sssssss") RIGHT("s-ssssss")         \
    RIGHT("ss-sssss") RIGHT("sss-ssss") RIGHT("ssss-sss") RIGHT("sssss-ss") RIGHT("ssssss-s")      \
    RIGHT("sssssss-")

static const expect_t machines[] = {
    /* 3 peers x 2 links x 25 GB/s out of a GPU. */
    {"v100-nv2.topo", "-nnn" "n-nn" "nn-n" "nnn-", 4, 1, GP_PATH_NVLINK, 1, 80, 70, 70, 150000, 2,
     50000, NULL, {0, 0, 1, 1}},
    {"h100-nvswitch.topo", EIGHT, 8, 1, GP_PATH_NVLINK, 1, 132, 90, 90, 450000, 18, 450000, NULL,
     {0, 1, 2, 3, 4, 5, 6, 7}},
    /* Two NICs and two GPUs on a switch: each GPU begins with another one. */
    {"a100-nvswitch.topo", EIGHT, 8, 1, GP_PATH_NVLINK, 1, 108, 80, 80, 300000, 12, 300000, NULL,
     {0, 1, 2, 3, 4, 5, 6, 7}},
    /* Ranks 0 and 2 are behind one switch; rank 0's NIC is below another one of the cascade. */
    {"pcie-2-sockets.topo", "-yxy" "y-yp" "xy-y" "ypy-", 4, 1, GP_PATH_PCIE, 1, 84, 86, 86, 10000,
     0, 10000, "ll128: a path is neither", {0, 1, 0, 1}},
    {"two-nodes-1-nic.topo", SIXTEEN, 16, 2, GP_PATH_NET, 1, 132, 90, 90, 25000, 18, 450000,
     "ll128: a path is neither", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"two-nodes-8-nics.topo", SIXTEEN, 16, 2, GP_PATH_NET, 1, 132, 90, 90, 400000, 18, 450000,
     "ll128: a path is neither", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    {"mixed-capability.topo", "-n" "n-", 2, 1, GP_PATH_NVLINK, 1, 80, 70, 80, 25000, 1, 25000,
     "ll128: GPUs of different compute capability", {NO_NIC, NO_NIC}},
    {"8-ranks-1-gpu.topo",
     "-ggggggg" "g-gggggg" "gg-ggggg" "ggg-gggg" "gggg-ggg" "ggggg-gg" "gggggg-g" "ggggggg-", 8, 1,
     GP_PATH_SELF_GPU, 8, 132, 90, 90, 0, 0, 0, NULL,
     {NO_NIC, NO_NIC, NO_NIC, NO_NIC, NO_NIC, NO_NIC, NO_NIC, NO_NIC}},
};

#define N_MACHINES (sizeof(machines) / sizeof(machines[0]))

static void test_machine(const expect_t *e)
{
    gp_topo_t *t = machine(e->file);
    gp_topo_path_t path, worst;
    gp_params_t params;
    gp_conn_geom_t geom;
    gp_comm_desc_t d;
    gp_status_t status;
    const char *reason = NULL;
    uint32_t a, b;

    gp_group_begin("%s", e->file);
    gp_check(t->n_ranks == e->n_ranks, "%u ranks", t->n_ranks);
    gp_check(strlen(e->matrix) == (size_t) e->n_ranks * e->n_ranks, "the test's own matrix");
    for (uint32_t i = 0; i < e->n_ranks; i++) {
        uint32_t nic = gp_topo_nic_of(t, i, 0);

        for (uint32_t k = 0; k < e->n_ranks; k++) {
            path = gp_topo_pair_path(t, i, k);
            gp_check(i == k || letters[path.type] == e->matrix[i * e->n_ranks + k],
                     "ranks %u and %u: %s", i, k, gp_topo_type_name(path.type));
            gp_check(path.latency == gp_topo_path_class(path.type), "latency class %u",
                     path.latency);
        }
        gp_check(nic == (NO_NIC == e->nics[i] ? GP_TOPO_NONE : e->nics[i]), "NIC of rank %u: %u", i,
                 nic);
    }
    path = gp_topo_pair_path(t, 0, 1);
    gp_check(path.nvlinks == e->links && path.bytes_per_us == e->pair_rate,
             "first pair: %u links, %llu bytes/us", path.nvlinks,
             (unsigned long long) path.bytes_per_us);
    worst = gp_topo_worst_path(t, &a, &b);
    gp_check(worst.latency == e->worst_path && a < b && b < t->n_ranks,
             "farthest: class %u, ranks %u and %u", worst.latency, a, b);
    path = gp_topo_pair_path(t, a, b);
    gp_check(path.type == worst.type && path.bytes_per_us == worst.bytes_per_us,
             "farthest is the path of the pair that is named");
    gp_check(GP_OK == gp_topo_comm_desc(t, GP_EXEC_CUDA, &d), "comm_desc");
    gp_check(d.n_ranks == e->n_ranks && d.n_nodes == e->n_nodes && d.executor == GP_EXEC_CUDA,
             "ranks, nodes, executor");
    gp_check(d.worst_path == e->worst_path, "worst path %s", gp_path_name(d.worst_path));
    gp_check(d.ranks_per_gpu == e->ranks_per_gpu && d.sm_count == e->sm_count,
             "%u ranks on a GPU, %u multiprocessors", d.ranks_per_gpu, d.sm_count);
    gp_check(d.min_capability == e->min_cap && d.max_capability == e->max_cap,
             "capability %u to %u", d.min_capability, d.max_capability);
    gp_check(d.link_bytes_per_us == e->link_bytes_per_us, "%u bytes/us out", d.link_bytes_per_us);
    gp_params_init(&params);
    status = gp_plan_conn_geom(&d, &params, GP_ALGO_RING, GP_PROTO_LL128, &geom, &reason);
    if (NULL == e->ll128) {
        gp_check(GP_OK == status, "LL128 allowed, not: %s", NULL != reason ? reason : "?");
    } else {
        gp_check(GP_DECLINED == status && NULL != reason
                     && 0 == strncmp(reason, e->ll128, strlen(e->ll128)),
                 "LL128 refused for %s", NULL != reason ? reason : "?");
    }
    gp_group_end();
    gp_topo_free(t);
}

/* Host executor: no GPU fields, cores decide on oversubscription. */
static void test_host(void)
{
    gp_topo_t *t = machine("8-ranks-1-gpu.topo");
    gp_comm_desc_t d;

    gp_ok(GP_OK == gp_topo_comm_desc(t, GP_EXEC_HOST, &d) && 1 == d.oversubscribed
              && GP_PATH_HOST == d.worst_path && 0 == d.ranks_per_gpu && 0 == d.sm_count
              && 0 == d.max_capability && 0 == d.link_bytes_per_us,
          "host executor: 8 ranks on 4 cores are oversubscribed");
    gp_ok(GP_ERR_INVALID == gp_topo_comm_desc(t, GP_EXEC_COUNT, &d), "an executor that is none");
    gp_topo_free(t);
    t = machine("two-nodes-8-nics.topo");
    gp_ok(GP_OK == gp_topo_comm_desc(t, GP_EXEC_HOST, &d) && 0 == d.oversubscribed
              && GP_PATH_NET == d.worst_path && 400000 == d.link_bytes_per_us,
          "host executor on two nodes");
    gp_topo_free(t);
}

static gp_topo_t *parse(const char *text)
{
    gp_topo_t *topo = NULL;

    n_logged = 0;
    logged[0] = '\0';
    if (GP_OK != gp_topo_parse("here", text, strlen(text), &topo)) {
        gp_bail_out("%s", logged);
    }
    return topo;
}

#define BEGIN "gpuproto-topology 1\nnode one numa=2 cores=8\n"
#define UUID_1 "GPU-00000000-0000-0000-0000-000000000001"
#define UUID_2 "MIG-00000000-0000-0000-0000-000000000002"

/* What the recorded machines do not have. */
static void test_odd(void)
{
    gp_topo_t *t = parse(BEGIN "gpu pci=1:2:0.0 uuid=" UUID_1 " sm=16 numa=0 nvswitch=18\n"
                               "gpu pci=1:2:0.0 uuid=" UUID_2 " sm=16 numa=0 nvswitch=18\n"
                               "gpu pci=1:3:0.0 switches=1:0:0.0,1:1:0.0\n"
                               "gpu pci=1:4:0.0 switches=1:0:0.0,1:2:0.0\n"
                               "gpu pci=1:5:0.0 pcie=7000\n"
                               "rank 5 gpu=none\nrank 0 gpu=" UUID_1 "\nrank 1 gpu=" UUID_2 "\n"
                               "rank 2 gpu=1:3:0.0\nrank 3 gpu=1:4:0.0\nrank 4 gpu=1:5:0.0\n");
    gp_comm_desc_t d;
    gp_topo_path_t p = gp_topo_pair_path(t, 0, 1);
    uint32_t a, b;

    gp_ok(GP_TOPO_PHB == p.type, "slices of one GPU are no same GPU");
    gp_ok(GP_TOPO_PXB == gp_topo_pair_path(t, 2, 3).type, "two switches below a third");
    gp_ok(GP_TOPO_SYS == gp_topo_pair_path(t, 0, 4).type
              && GP_TOPO_SYS == gp_topo_pair_path(t, 4, 0).type,
          "one NUMA node not known, and only one GPU on the NVSwitches: the worse");
    gp_ok(GP_TOPO_PHB == gp_topo_pair_path(t, 3, 4).type
              && 7000 == gp_topo_pair_path(t, 3, 4).bytes_per_us,
          "PCIe speed of the file");
    gp_ok(GP_TOPO_HOST == gp_topo_pair_path(t, 0, 5).type
              && GP_PATH_HOST == gp_topo_pair_path(t, 0, 5).latency,
          "a rank without GPU");
    p = gp_topo_worst_path(t, &a, &b);
    gp_ok(GP_TOPO_HOST == p.type && 0 == a && 5 == b, "the first of the farthest pairs");
    gp_ok(GP_ERR_UNSUPPORTED == gp_topo_comm_desc(t, GP_EXEC_CUDA, &d) && 6 == d.n_ranks
              && 0 == d.min_capability && 0 == d.sm_count,
          "CUDA executor: a rank has no GPU");
    gp_topo_free(t);

    t = parse(BEGIN "gpu pci=0:1:0.0\nrank 0 gpu=0:1:0.0\n");
    gp_ok(GP_ERR_UNSUPPORTED == gp_topo_comm_desc(t, GP_EXEC_CUDA, &d) && 1 == d.ranks_per_gpu,
          "CUDA executor: capability not known");
    p = gp_topo_worst_path(t, &a, &b);
    gp_ok(GP_TOPO_SAME_GPU == p.type && 0 == a && 0 == b, "one rank is on one GPU");
    gp_topo_free(t);

    /* NVLink 1, 3 of GA102 and 5; PCIe by generation. */
    t = parse(BEGIN "gpu pci=0:1:0.0 capability=6.0\ngpu pci=0:2:0.0 capability=6.0\n"
                    "gpu pci=0:3:0.0 capability=8.6\ngpu pci=0:4:0.0 capability=8.6\n"
                    "gpu pci=0:5:0.0 capability=10.0\ngpu pci=0:6:0.0 capability=10.0\n"
                    "nvlink 0:1:0.0 0:2:0.0 links=1\nnvlink 0:4:0.0 0:3:0.0 links=4\n"
                    "nvlink 0:5:0.0 0:6:0.0 links=18\n");
    gp_ok(20000 == gp_topo_gpu_path(t, 0, 1).bytes_per_us
              && 56000 == gp_topo_gpu_path(t, 2, 3).bytes_per_us
              && 900000 == gp_topo_gpu_path(t, 5, 4).bytes_per_us,
          "NVLink by generation");
    gp_ok(12000 == gp_topo_gpu_path(t, 0, 2).bytes_per_us
              && 24000 == gp_topo_gpu_path(t, 2, 5).bytes_per_us,
          "PCIe by the older generation of the two");
    gp_topo_free(t);
}

/* Channels take the nearest NICs in turn. */
static void test_nics(void)
{
    gp_topo_t *t = machine("a100-nvswitch.topo");

    gp_ok(0 == gp_topo_nic_of(t, 0, 0) && 1 == gp_topo_nic_of(t, 0, 1)
              && 0 == gp_topo_nic_of(t, 0, 2) && 1 == gp_topo_nic_of(t, 1, 0)
              && 0 == gp_topo_nic_of(t, 1, 1) && 6 == gp_topo_nic_of(t, 7, 3)
              && 7 == gp_topo_nic_of(t, 7, UINT32_MAX - 1),
          "two NICs behind the switch of two GPUs, in turn by channel");
    gp_topo_free(t);
    t = parse(BEGIN "gpu pci=0:1:0.0 numa=1 switches=0:9:0.0\n"
                    "nic pci=0:3:0.0 numa=0 speed=50000 name=far\n"
                    "nic pci=0:4:0.0 numa=1 speed=1250 name=slow\n"
                    "nic pci=0:5:0.0 numa=1 speed=12500 name=good\n"
                    "rank 0 gpu=0:1:0.0\nrank 1 gpu=none\n");
    gp_ok(2 == gp_topo_nic_of(t, 0, 0) && 2 == gp_topo_nic_of(t, 0, 1),
          "the nearest comes before the fastest, and of the nearest the fastest");
    gp_ok(0 == gp_topo_nic_of(t, 1, 0), "a rank without GPU takes the fastest");
    gp_topo_free(t);
}

/* A permutation that enters each node once. */
static void check_order(const gp_topo_t *t, const uint32_t *order, const char *what)
{
    uint8_t seen[64] = {0};
    uint32_t entered[8] = {0};

    for (uint32_t i = 0; i < t->n_ranks; i++) {
        uint32_t from = order[i], to = order[(i + 1) % t->n_ranks];

        gp_check(from < t->n_ranks && !seen[from], "%s: place %u: rank %u", what, i, from);
        seen[from < 64 ? from : 0] = 1;
        if (from < t->n_ranks && to < t->n_ranks && t->ranks[from].node != t->ranks[to].node) {
            entered[t->ranks[to].node]++;
        }
    }
    for (uint32_t n = 0; n < t->n_nodes; n++) {
        gp_check(entered[n] == (t->n_nodes > 1), "%s: node %u is entered %u times", what, n,
                 entered[n]);
    }
}

/* The rank of the node that the ring comes to first. */
static uint32_t entry_of(const gp_topo_t *t, const uint32_t *order, uint32_t node)
{
    for (uint32_t i = 0; i < t->n_ranks; i++) {
        uint32_t before = order[(i + t->n_ranks - 1) % t->n_ranks];

        if (t->ranks[order[i]].node == node && t->ranks[before].node != node) {
            return order[i];
        }
    }
    return GP_TOPO_NONE;
}

static void test_rings(void)
{
    uint32_t order[64], again[64], first[8];

    gp_group_begin("rings are permutations with one crossing into each node, and pure");
    for (size_t m = 0; m < N_MACHINES; m++) {
        gp_topo_t *t = machine(machines[m].file);

        for (uint32_t channel = 0; channel < 40; channel++) {
            gp_check(GP_OK == gp_topo_ring_order(t, channel, order, NULL), "%s", machines[m].file);
            gp_check(GP_OK == gp_topo_ring_order(t, channel, again, first)
                         && 0 == memcmp(order, again, t->n_ranks * sizeof(order[0])),
                     "%s: channel %u twice", machines[m].file, channel);
            check_order(t, order, machines[m].file);
            /* The recorded machines have as many ranks on each node, in node order. */
            for (uint32_t n = 0; n <= t->n_nodes; n++) {
                gp_check(first[n] == n * t->n_ranks / t->n_nodes, "%s: node %u begins at %u",
                         machines[m].file, n, first[n]);
            }
        }
        gp_topo_free(t);
    }
    gp_group_end();
}

static uint32_t beside(const uint32_t *order, uint32_t n, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = order[i], y = order[(i + 1) % n];

        if ((x == a && y == b) || (x == b && y == a)) {
            return 1;
        }
    }
    return 0;
}

static void test_ring_links(void)
{
    uint32_t order[64];
    gp_topo_t *t = machine("v100-nv2.topo");
    static const uint32_t crossed[] = {0, 1, 3, 2};
    int same = 1;

    /* Four points have three different rings, and each pair is in two of them. */
    gp_group_begin("4 x V100: three rings load all links alike");
    for (uint32_t a = 0; a < 4; a++) {
        for (uint32_t b = a + 1; b < 4; b++) {
            uint32_t rings = 0;

            for (uint32_t channel = 0; channel < 6; channel += 2) {
                gp_check(GP_OK == gp_topo_ring_order(t, channel, order, NULL), "ring %u", channel);
                rings += beside(order, 4, a, b);
            }
            gp_check(2 == rings, "ranks %u and %u are neighbours in %u of 3 rings", a, b, rings);
        }
    }
    gp_group_end();
    gp_topo_free(t);

    /*
     * Ranks 0 and 2 share a switch, 1 and 3 a socket: two steps between the sockets are the least.
     */
    t = machine("pcie-2-sockets.topo");
    gp_ok(GP_OK == gp_topo_ring_order(t, 0, order, NULL) && beside(order, 4, 0, 2)
              && beside(order, 4, 1, 3),
          "PCIe: ranks by turns on two sockets are put side by side");
    gp_topo_free(t);

    /* A square of links: 0-1-3-2. The order of the ranks would use two PCIe steps. */
    t = parse(BEGIN "gpu pci=0:1:0.0 numa=0\ngpu pci=0:2:0.0 numa=0\n"
                    "gpu pci=0:3:0.0 numa=0\ngpu pci=0:4:0.0 numa=0\n"
                    "nvlink 0:1:0.0 0:2:0.0 links=1\nnvlink 0:2:0.0 0:4:0.0 links=1\n"
                    "nvlink 0:4:0.0 0:3:0.0 links=1\nnvlink 0:3:0.0 0:1:0.0 links=1\n"
                    "rank 0 gpu=0:1:0.0\nrank 1 gpu=0:2:0.0\nrank 2 gpu=0:3:0.0\n"
                    "rank 3 gpu=0:4:0.0\n");
    for (uint32_t channel = 0; channel < 12; channel++) {
        same &= GP_OK == gp_topo_ring_order(t, channel, order, NULL)
                && 0 == memcmp(order, crossed, sizeof(crossed));
    }
    gp_ok(same, "a square of links is walked along its links on every channel");
    gp_topo_free(t);
}

/* More GPUs than the exact search takes, linked 0-2-4-..-10-1-3-..-11. */
static void test_ring_many(void)
{
    static const uint32_t chain[] = {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
    char text[4096];
    size_t at = (size_t) snprintf(text, sizeof(text), "%s", BEGIN);
    uint32_t order[12];
    gp_topo_t *t;

    for (uint32_t i = 0; i < 12; i++) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "gpu pci=0:%x:0.0\n", i + 1);
    }
    for (uint32_t i = 0; i < 12; i++) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "rank %u gpu=0:%x:0.0\n", i, i + 1);
    }
    for (uint32_t i = 1; i < 12; i++) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "nvlink 0:%x:0.0 0:%x:0.0 links=1\n",
                                chain[i - 1] + 1, chain[i] + 1);
    }
    t = parse(text);
    gp_ok(GP_OK == gp_topo_ring_order(t, 3, order, NULL)
              && 0 == memcmp(order, chain, sizeof(chain)),
          "12 GPUs: always on to the nearest");
    gp_topo_free(t);
}

/* Two nodes, eight NICs each. */
static void test_ring_rails(void)
{
    gp_topo_t *t = machine("two-nodes-8-nics.topo");
    uint32_t order[16];

    gp_group_begin("two nodes with eight NICs: channels enter at different NICs, on the same rail");
    for (uint32_t channel = 0; channel < 8; channel++) {
        uint32_t in, out;

        gp_check(GP_OK == gp_topo_ring_order(t, channel, order, NULL), "channel %u", channel);
        gp_check(entry_of(t, order, 0) == channel, "channel %u enters at rank %u", channel,
                 entry_of(t, order, 0));
        in = entry_of(t, order, 1);
        for (uint32_t i = 0; i < 16; i++) {
            if (order[(i + 1) % 16] == in) {
                out = order[i];
                gp_check(in == out + 8, "channel %u goes from %u to %u", channel, out, in);
            }
        }
    }
    gp_group_end();
    gp_topo_free(t);
}

int main(void)
{
    gp_tap_begin();
    gp_log_set_sink(keep_log);
    for (size_t i = 0; i < N_MACHINES; i++) {
        test_machine(&machines[i]);
    }
    test_host();
    test_odd();
    test_nics();
    test_rings();
    test_ring_links();
    test_ring_many();
    test_ring_rails();
    gp_ok(0 == strcmp(gp_topo_type_name(GP_TOPO_PXB), "pxb")
              && 0 == strcmp(gp_topo_type_name(GP_TOPO_TYPE_COUNT), "?"),
          "names of path types");
    return gp_tap_end();
}
