/*
 * test_cost.c - the cost model: arithmetic by hand, shapes that were published, order of choices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "planner/gp_cost.h"
#include "tests/lib/gp_tap.h"

#define KI 1024ull
#define MI (1024ull * 1024ull)

static gp_comm_desc_t comm_of(uint32_t executor, uint32_t path, uint32_t ranks)
{
    gp_comm_desc_t c;

    memset(&c, 0, sizeof(c));
    c.n_ranks = ranks;
    c.n_nodes = 1;
    c.executor = executor;
    c.worst_path = path;
    if (GP_EXEC_CUDA == executor) {
        c.ranks_per_gpu = GP_PATH_SELF_GPU == path ? ranks : 1;
        c.sm_count = 132;
        c.min_capability = c.max_capability = 90;
    }
    return c;
}

/* 4 x V100, every pair two NVLinks: 6 links of 25 GB/s out of each. */
static gp_comm_desc_t v100(void)
{
    gp_comm_desc_t c = comm_of(GP_EXEC_CUDA, GP_PATH_NVLINK, 4);

    c.sm_count = 80;
    c.min_capability = c.max_capability = 70;
    c.link_bytes_per_us = 150000;
    return c;
}

static gp_params_t no_wishes(void)
{
    gp_params_t p;

    gp_params_init(&p);
    return p;
}

static uint64_t predicted(const gp_comm_desc_t *comm, uint32_t a, uint32_t p, uint64_t bytes)
{
    gp_params_t params = no_wishes();
    gp_choice_t choices[GP_CHOICES];

    gp_choices(comm, &params, bytes, choices);
    for (uint32_t i = 0; i < GP_CHOICES; i++) {
        if (choices[i].algorithm == a && choices[i].protocol == p) {
            return NULL == choices[i].excluded ? choices[i].cost.total_ns : UINT64_MAX;
        }
    }
    return 0;
}

/* docs/planner.md has these sums. */
static void test_by_hand(void)
{
    gp_comm_desc_t comm = comm_of(GP_EXEC_CUDA, GP_PATH_SELF_GPU, 4);
    gp_params_t params = no_wishes();
    gp_conn_geom_t conn = {32, 2, 131072, 131072, 512, 0};
    gp_cost_t c;

    /* Traffic of 1 GiB: own 2, wires 4 * 3/4: 5 GiB a rank, over 32 blocks of 34,800 bytes/us. */
    gp_cost_of(&comm, &params, &conn, GP_ALGO_RING, GP_PROTO_SIMPLE, 1024 * MI, &c);
    gp_ok(6 == c.hops && 32 == c.channels && 17900 == c.base_ns && 6 * 2240 == c.latency_ns,
          "ring/simple on one GPU: %u hops, %llu + %llu ns", c.hops,
          (unsigned long long) c.base_ns, (unsigned long long) c.latency_ns);
    gp_ok(c.transfer_ns / 1000 == 5 * 1024 * MI / 32 / 34800,
          "ring/simple on one GPU: 1 GiB takes %llu ns", (unsigned long long) c.transfer_ns);
    gp_ok(c.total_ns == c.base_ns + c.transfer_ns + c.latency_ns / 2,
          "and half the hops are hidden");
    comm = v100();
    gp_cost_of(&comm, &params, &conn, GP_ALGO_RING, GP_PROTO_SIMPLE, 1024 * MI, &c);
    /* 3/2 GiB at 0.823 of 150,000 bytes/us. Measured there: 13,043 us. */
    gp_ok(c.transfer_ns / 1000 == 3 * 512 * MI / 123450,
          "ring/simple over NVLink: 1 GiB takes %llu ns", (unsigned long long) c.transfer_ns);
    comm = comm_of(GP_EXEC_HOST, GP_PATH_HOST, 1);
    gp_cost_of(&comm, &params, &conn, GP_ALGO_RING, GP_PROTO_LL, MI, &c);
    gp_ok(0 == c.total_ns, "one rank has nothing to wait for");
}

/* Smallest power of two of bytes from which `b` is predicted faster than `a`. */
static uint64_t crossover(const gp_comm_desc_t *comm, uint32_t algorithm, uint32_t a, uint32_t b)
{
    for (uint64_t bytes = 8; bytes <= 1024 * MI; bytes *= 2) {
        if (predicted(comm, algorithm, b, bytes) < predicted(comm, algorithm, a, bytes)) {
            return bytes;
        }
    }
    return 0;
}

static void test_published_shape(void)
{
    gp_comm_desc_t comm = v100();
    uint64_t at = crossover(&comm, GP_ALGO_RING, GP_PROTO_LL, GP_PROTO_SIMPLE);

    gp_ok(at > MI && at <= 8 * MI, "4 x V100, ring: Simple passes LL at %llu bytes",
          (unsigned long long) at);
    gp_group_begin("4 x V100: LL wins small, Simple wins large, LL128 the middle of the tree");
    for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_TREE; a++) {
        gp_check(predicted(&comm, a, GP_PROTO_LL, KI) < predicted(&comm, a, GP_PROTO_LL128, KI)
                     && predicted(&comm, a, GP_PROTO_LL128, KI)
                            < predicted(&comm, a, GP_PROTO_SIMPLE, KI),
                 "algorithm %u: order at 1 KiB", a);
        gp_check(predicted(&comm, a, GP_PROTO_SIMPLE, 1024 * MI)
                         < predicted(&comm, a, GP_PROTO_LL128, 1024 * MI)
                     && predicted(&comm, a, GP_PROTO_LL128, 1024 * MI)
                            < predicted(&comm, a, GP_PROTO_LL, 1024 * MI),
                 "algorithm %u: order at 1 GiB", a);
    }
    for (uint64_t bytes = 2 * MI; bytes <= 16 * MI; bytes *= 2) {
        uint64_t ll = predicted(&comm, GP_ALGO_TREE, GP_PROTO_LL, bytes);
        uint64_t ll128 = predicted(&comm, GP_ALGO_TREE, GP_PROTO_LL128, bytes);
        uint64_t simple = predicted(&comm, GP_ALGO_TREE, GP_PROTO_SIMPLE, bytes);

        gp_check(ll128 < ll && ll128 < simple, "%llu bytes: tree ll %llu ll128 %llu simple %llu ns",
                 (unsigned long long) bytes, (unsigned long long) ll, (unsigned long long) ll128,
                 (unsigned long long) simple);
    }
    gp_group_end();
}

/* What was measured on one H200 and on two cores (docs/performance.md): within a fourth. */
static void test_measured(void)
{
    static const struct {
        uint32_t executor, ranks, algorithm, protocol;
        uint64_t bytes;
        double us;
    } rows[] = {
        {GP_EXEC_CUDA, 2, GP_ALGO_FLAT, GP_PROTO_LL, 512, 13.5},
        {GP_EXEC_CUDA, 2, GP_ALGO_RING, GP_PROTO_LL, 16 * MI, 91.8},
        {GP_EXEC_CUDA, 2, GP_ALGO_RING, GP_PROTO_SIMPLE, 1024 * MI, 1983.8},
        {GP_EXEC_CUDA, 4, GP_ALGO_FLAT, GP_PROTO_LL, 8, 20.7},
        {GP_EXEC_CUDA, 4, GP_ALGO_TREE, GP_PROTO_LL, 32 * KI, 21.5},
        {GP_EXEC_CUDA, 4, GP_ALGO_RING, GP_PROTO_LL, 256 * KI, 25.4},
        {GP_EXEC_CUDA, 4, GP_ALGO_RING, GP_PROTO_SIMPLE, 2 * MI, 37.2},
        {GP_EXEC_CUDA, 4, GP_ALGO_RING, GP_PROTO_SIMPLE, 1024 * MI, 4706.1},
        {GP_EXEC_CUDA, 4, GP_ALGO_TREE, GP_PROTO_LL, 1024 * MI, 21594},
        {GP_EXEC_CUDA, 8, GP_ALGO_RING, GP_PROTO_LL, 4 * KI, 33.8},
        {GP_EXEC_CUDA, 8, GP_ALGO_TREE, GP_PROTO_LL128, 2 * MI, 69.9},
        {GP_EXEC_CUDA, 8, GP_ALGO_FLAT, GP_PROTO_LL, 256 * KI, 61.9},
        {GP_EXEC_CUDA, 8, GP_ALGO_RING, GP_PROTO_LL128, 128 * MI, 1530.5},
        {GP_EXEC_HOST, 2, GP_ALGO_RING, GP_PROTO_SIMPLE, 8 * MI, 1540.2},
        {GP_EXEC_HOST, 2, GP_ALGO_FLAT, GP_PROTO_LL, 8, 0.30},
    };

    gp_group_begin("predictions are near what was measured");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gp_comm_desc_t comm = comm_of(rows[i].executor,
                                      GP_EXEC_CUDA == rows[i].executor ? GP_PATH_SELF_GPU
                                                                       : GP_PATH_HOST,
                                      rows[i].ranks);
        double us = (double) predicted(&comm, rows[i].algorithm, rows[i].protocol, rows[i].bytes)
                    / 1000;

        gp_check(us > 0.75 * rows[i].us && us < 1.34 * rows[i].us,
                 "row %zu: predicted %.2f us, measured %.2f", i, us, rows[i].us);
    }
    gp_group_end();
}

static void test_order(void)
{
    uint32_t paths[] = {GP_PATH_SELF_GPU, GP_PATH_NVLINK, GP_PATH_PCIE, GP_PATH_HOST};

    gp_group_begin("choices: allowed ones by time, excluded ones with a rule, each once");
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t ranks = 1; ranks <= 4096; ranks = ranks < 9 ? ranks + 1 : 3 * ranks) {
            gp_comm_desc_t comm = comm_of(GP_PATH_HOST == paths[k] ? GP_EXEC_HOST : GP_EXEC_CUDA,
                                          paths[k], ranks);
            gp_params_t params = no_wishes();
            uint64_t last[GP_CHOICES] = {0};

            for (uint64_t bytes = 1; 0 != bytes && bytes < 1ull << 62; bytes *= 4) {
                gp_choice_t c[GP_CHOICES];
                uint32_t seen = 0;

                gp_choices(&comm, &params, bytes, c);
                for (uint32_t i = 0; i < GP_CHOICES; i++) {
                    uint32_t id = c[i].algorithm * GP_PROTO_COUNT + c[i].protocol;

                    seen |= 1u << id;
                    /* More channels may come with more bytes, and a ceiling makes a step. */
                    gp_check(NULL != c[i].excluded || c[i].cost.total_ns >= last[id] / 10 * 9,
                             "%u ranks path %u combination %u: faster with %llu bytes than with a "
                             "fourth", ranks, k, id, (unsigned long long) bytes);
                    last[id] = NULL == c[i].excluded ? c[i].cost.total_ns : 0;
                    if (i > 0) {
                        gp_check(NULL == c[i - 1].excluded || NULL != c[i].excluded,
                                 "%u ranks: an allowed choice behind an excluded one", ranks);
                        gp_check(NULL != c[i].excluded
                                     || c[i - 1].cost.total_ns <= c[i].cost.total_ns,
                                 "%u ranks: not in the order of time", ranks);
                    }
                    gp_check(GP_PROTO_LL128 != c[i].protocol || GP_PATH_PCIE != paths[k]
                                 || (NULL != c[i].excluded
                                     && (NULL != strstr(c[i].excluded, "ll128")
                                         || GP_ALGO_FLAT == c[i].algorithm)),
                             "LL128 over PCIe");
                }
                gp_check((1u << GP_CHOICES) - 1 == seen, "%u ranks: choices 0x%x", ranks, seen);
            }
        }
    }
    gp_group_end();
}

static void test_plan_is_best(void)
{
    gp_group_begin("a plan is the best of what the communicator's connection sets allow");
    for (uint32_t ranks = 2; ranks <= 16; ranks++) {
        gp_comm_desc_t comm = comm_of(GP_EXEC_CUDA, GP_PATH_SELF_GPU, ranks);
        gp_params_t params = no_wishes();

        for (uint64_t bytes = 4; bytes <= 1024 * MI; bytes *= 4) {
            gp_choice_t c[GP_CHOICES];
            gp_plan_t plan;
            const char *reason;

            gp_choices(&comm, &params, bytes, c);
            if (!gp_check(GP_OK
                              == gp_plan_make(&comm, &params, bytes / 4, GP_TYPE_F32, GP_OP_SUM,
                                              &plan, &reason),
                          "%u ranks: no plan", ranks)) {
                continue;
            }
            gp_check(plan.algorithm == c[0].algorithm && plan.protocol == c[0].protocol
                         && plan.predicted_ns == c[0].cost.total_ns
                         && plan.geom.channels <= c[0].cost.channels,
                     "%u ranks, %llu bytes: plan %s/%s, best %s/%s", ranks,
                     (unsigned long long) bytes, gp_algorithm_name(plan.algorithm),
                     gp_protocol_name(plan.protocol), gp_algorithm_name(c[0].algorithm),
                     gp_protocol_name(c[0].protocol));
        }
    }
    gp_group_end();
}

int main(void)
{
    gp_tap_begin();
    test_by_hand();
    test_published_shape();
    test_measured();
    test_order();
    test_plan_is_best();
    return gp_tap_end();
}
