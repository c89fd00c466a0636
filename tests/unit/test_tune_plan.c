/*
 * test_tune_plan.c - what plans do of a tuning file: it comes before the automatic choice, behind
 * what the user forced, and a rule that is not allowed is said to be so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include <unistd.h>

#include "planner/gp_tune.h"

#define KI 1024ull
#define MI (1024ull * 1024ull)

static gp_tune_t *read_text(const char *text)
{
    char path[64] = "/tmp/gp_tune.XXXXXX";
    int fd = mkstemp(path);
    gp_tune_t *tune = NULL;

    if (fd < 0 || (ssize_t) strlen(text) != write(fd, text, strlen(text)) || 0 != close(fd)
        || GP_OK != gp_tune_read(path, &tune) || 4 != gp_tune_n_rules(tune)) {
        gp_bail_out("%s cannot be written or read", path);
    }
    unlink(path);
    return tune;
}

/* n ranks on one GPU of 132 multiprocessors, or a GPU each. */
static gp_comm_desc_t gpus(uint32_t n, gp_path_t worst)
{
    gp_comm_desc_t c;

    memset(&c, 0, sizeof(c));
    c.n_ranks = n;
    c.n_nodes = 1;
    c.executor = GP_EXEC_CUDA;
    c.worst_path = worst;
    c.ranks_per_gpu = GP_PATH_SELF_GPU == worst ? n : 1;
    c.sm_count = 132;
    c.min_capability = c.max_capability = 90;
    return c;
}

static gp_plan_t plan_of(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes)
{
    const char *why = NULL;
    gp_plan_t plan;

    memset(&plan, 0, sizeof(plan));
    if (GP_OK != gp_plan_make(comm, params, bytes / 4, GP_TYPE_F32, GP_OP_SUM, &plan, &why)) {
        plan.reason = "declined";
    }
    return plan;
}

static void test_plans(void)
{
    static const char refusal[] = "tuning file line 2: ring/ll128, not allowed here: ll128: a path "
                                  "is neither one GPU nor NVLink";
    gp_comm_desc_t shared = gpus(4, GP_PATH_SELF_GPU), pcie = gpus(4, GP_PATH_PCIE);
    gp_params_t params, none;
    gp_plan_t p, q;
    const char *text;
    gp_tune_t *tune = read_text("cuda 4 1 1K tree ll 6 128\n"
                                "cuda 4 1 64K ring ll128 auto auto\n"
                                "cuda 4 1 1M ring ll 60 auto\n"
                                "cuda 4 1 2M flat simple auto auto\n");

    gp_params_init(&none);
    gp_params_init(&params);
    gp_ok(NULL == params.tune, "no tuning file by default");
    params.tune = tune;
    p = plan_of(&shared, &params, 4096);
    gp_ok(GP_ALGO_TREE == p.algorithm && GP_PROTO_LL == p.protocol && 6 == p.geom.channels
              && 128 == p.threads && 0 == strcmp(p.reason, "tuning file line 1")
              && 0 != p.predicted_ns && p.geom.channel_elems * 6 >= 1024,
          "a rule chooses algorithm, protocol, channels and threads");
    p = plan_of(&shared, &params, 1020);
    q = plan_of(&shared, &none, 1020);
    gp_ok(0 == memcmp(&p, &q, sizeof(p)), "without a rule the plan is as without the file");
    p = plan_of(&shared, &params, 64 * KI);
    gp_ok(GP_ALGO_RING == p.algorithm && GP_PROTO_LL128 == p.protocol, "LL128 where it is allowed");
    p = plan_of(&pcie, &params, 64 * KI);
    q = plan_of(&pcie, &none, 64 * KI);
    gp_ok(p.algorithm == q.algorithm && p.protocol == q.protocol && p.threads == q.threads
              && 0 == memcmp(&p.geom, &q.geom, sizeof(p.geom))
              && 0 == strncmp(p.reason, refusal, strlen(refusal)),
          "LL128 where it is not: the automatic choice, and why");
    text = p.reason;
    gp_ok(text == plan_of(&pcie, &params, 64 * KI).reason, "the same text again");
    p = plan_of(&shared, &params, MI); /* 132 * 97 / 100 / 4 = 32 channels */
    q = plan_of(&shared, &none, MI);
    gp_ok(p.algorithm == q.algorithm && p.protocol == q.protocol
              && p.geom.channels == q.geom.channels && NULL != strstr(p.reason, "channels: more"),
          "more channels than fit here: the automatic choice, and why");
    p = plan_of(&shared, &params, 2 * MI);
    gp_ok(GP_ALGO_FLAT == p.algorithm && GP_PROTO_SIMPLE == p.protocol,
          "a combination that the cost model would never choose");

    params.algorithm = GP_ALGO_RING;
    p = plan_of(&shared, &params, 4096);
    gp_ok(GP_ALGO_RING == p.algorithm && NULL == strstr(p.reason, "tuning"),
          "a forced algorithm wins");
    params.algorithm = GP_AUTO;
    params.protocol = GP_PROTO_SIMPLE;
    p = plan_of(&shared, &params, 4096);
    gp_ok(GP_PROTO_SIMPLE == p.protocol && NULL == strstr(p.reason, "tuning"),
          "a forced protocol wins");
    params.protocol = GP_PROTO_LL;
    params.threads = 256;
    params.max_channels = 2;
    p = plan_of(&shared, &params, 4096);
    gp_ok(GP_ALGO_TREE == p.algorithm && 2 == p.geom.channels && 256 == p.threads,
          "forced as the rule says: it holds, within the user's channels and threads");
    params.min_channels = 8;
    params.max_channels = 8;
    gp_ok(8 == plan_of(&shared, &params, 4096).geom.channels, "and not below the user's least");
    gp_tune_free(tune);
}

/* Most receive connections of a rank of four, by algorithm: ring 1, tree 3, flat 3. */
static void test_memory(void)
{
    static const uint64_t links[] = {1, 3, 3};
    gp_comm_desc_t comms[] = {gpus(4, GP_PATH_SELF_GPU), gpus(4, GP_PATH_NVLINK)};
    gp_tune_t *tune = read_text("cuda 4 1 128M tree ll 6 128\n"
                                "cuda 4 1 256M flat ll128 auto auto\n"
                                "cuda 4 1 512M tree simple auto auto\n"
                                "cuda 4 1 1G flat simple auto auto\n");
    gp_params_t params;

    gp_group_begin("what the file and the model can choose stays within max_fifo_bytes together");
    for (uint32_t i = 0; i < 2 * 8; i++) {
        uint64_t total = 0;
        int used[GP_ALGO_CUSTOM][GP_PROTO_COUNT] = {{0}};

        gp_params_init(&params);
        params.tune = tune;
        params.max_fifo_bytes = MI << i / 2;
        for (uint64_t bytes = 4; bytes <= 1ull << 32; bytes *= 2) {
            gp_plan_t p = plan_of(&comms[i % 2], &params, bytes);

            used[p.algorithm][p.protocol] |= 0 != p.geom.channels;
        }
        for (uint32_t k = 0; k < GP_ALGO_CUSTOM * GP_PROTO_COUNT; k++) {
            uint32_t a = k / GP_PROTO_COUNT;
            gp_conn_geom_t g;
            const char *why;

            if (used[a][k % GP_PROTO_COUNT]
                && GP_OK == gp_plan_conn_geom(&comms[i % 2], &params, a, k % GP_PROTO_COUNT, &g,
                                              &why)) {
                total += g.channels * links[a] * gp_fifo_recv_block_bytes(g.n_slots, g.slot_bytes);
            }
        }
        gp_check(0 != total && total <= params.max_fifo_bytes, "%u: %llu of %llu bytes", i,
                 (unsigned long long) total, (unsigned long long) params.max_fifo_bytes);
    }
    gp_group_end();
    gp_tune_free(tune);
}

int main(void)
{
    gp_tap_begin();
    test_plans();
    test_memory();
    return gp_tap_end();
}
