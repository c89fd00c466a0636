/*
 * test_plan.c - what the planner chooses, forces, refuses and never exceeds.
 *
 * Expected numbers are those of docs/planner.md, written out here; properties (memory cap, purity,
 * bounds) are checked over random communicators and parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "planner/gp_plan.h"

#define KI 1024ull
#define MI (1024ull * 1024ull)

static uint64_t random_state = 7;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 20) % n;
}

/* n ranks on one GPU of 132 multiprocessors. */
static gp_comm_desc_t one_gpu(uint32_t n)
{
    gp_comm_desc_t c;

    memset(&c, 0, sizeof(c));
    c.n_ranks = n;
    c.n_nodes = 1;
    c.executor = GP_EXEC_CUDA;
    c.worst_path = GP_PATH_SELF_GPU;
    c.ranks_per_gpu = n;
    c.sm_count = 132;
    c.min_capability = 90;
    c.max_capability = 90;
    return c;
}

/* A GPU each. */
static gp_comm_desc_t gpus(uint32_t n, gp_path_t path)
{
    gp_comm_desc_t c = one_gpu(n);

    c.ranks_per_gpu = 1;
    c.worst_path = path;
    return c;
}

static gp_comm_desc_t host(uint32_t n)
{
    gp_comm_desc_t c;

    memset(&c, 0, sizeof(c));
    c.n_ranks = n;
    c.n_nodes = 1;
    c.executor = GP_EXEC_HOST;
    c.worst_path = GP_PATH_HOST;
    return c;
}

static gp_params_t no_wishes(void)
{
    gp_params_t p;

    gp_params_init(&p);
    return p;
}

static void test_names(void)
{
    gp_ok(0 == strcmp(gp_algorithm_name(GP_ALGO_RING), "ring")
              && 0 == strcmp(gp_algorithm_name(GP_ALGO_TREE), "tree")
              && 0 == strcmp(gp_algorithm_name(GP_ALGO_FLAT), "flat")
              && 0 == strcmp(gp_algorithm_name(GP_ALGO_CUSTOM), "custom")
              && 0 == strcmp(gp_algorithm_name(GP_ALGO_COUNT), "?"),
          "names of algorithms");
    gp_ok(0 == strcmp(gp_protocol_name(GP_PROTO_LL), "ll")
              && 0 == strcmp(gp_protocol_name(GP_PROTO_LL128), "ll128")
              && 0 == strcmp(gp_protocol_name(GP_PROTO_SIMPLE), "simple")
              && 0 == strcmp(gp_protocol_name(UINT32_MAX), "?"),
          "names of protocols");
    gp_ok(0 == strcmp(gp_type_name(GP_TYPE_I8), "i8")
              && 0 == strcmp(gp_type_name(GP_TYPE_U64), "u64")
              && 0 == strcmp(gp_type_name(GP_TYPE_BF16), "bf16")
              && 0 == strcmp(gp_type_name(GP_TYPE_C64), "c64")
              && 0 == strcmp(gp_type_name(GP_TYPE_LOGICAL), "logical")
              && 0 == strcmp(gp_type_name(GP_TYPE_COUNT), "?"),
          "names of types");
    gp_ok(0 == strcmp(gp_op_name(GP_OP_SUM), "sum") && 0 == strcmp(gp_op_name(GP_OP_LXOR), "lxor")
              && 0 == strcmp(gp_op_name(GP_OP_BAND), "band")
              && 0 == strcmp(gp_op_name(GP_OP_COUNT), "?"),
          "names of operations");
    gp_ok(0 == strcmp(gp_executor_name(GP_EXEC_CUDA), "cuda")
              && 0 == strcmp(gp_executor_name(GP_EXEC_HOST), "host")
              && 0 == strcmp(gp_executor_name(2), "?")
              && 0 == strcmp(gp_path_name(GP_PATH_NET), "net")
              && 0 == strcmp(gp_path_name(GP_PATH_COUNT), "?"),
          "names of executors and paths");
}

/* The three published buffer sizes give the published chunk sizes. */
static void test_published(void)
{
    static const uint64_t buffers[] = {524288, 4915200, 4194304};
    static const uint64_t wire[] = {65536, 614400, 524288}, data[] = {32768, 576000, 524288};
    const char *reason;

    for (int given = 0; given < 2; given++) {
        gp_group_begin(given ? "buffer sizes given by the user: 8 slots, payload by protocol"
                             : "path unknown: the published buffer sizes");
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            gp_comm_desc_t comm = given ? one_gpu(4) : gpus(4, GP_PATH_NVLINK);
            gp_params_t params = no_wishes();
            gp_conn_geom_t g;
            gp_status_t status;

            params.max_fifo_bytes = 1ull << 40;
            if (given) {
                memcpy(params.buffer_bytes, buffers, sizeof(buffers));
            }
            status = gp_plan_conn_geom(&comm, &params, GP_ALGO_RING, p, &g, &reason);
            gp_check(GP_OK == status && 8 == g.n_slots && wire[p] == g.slot_bytes
                         && data[p] == g.data_bytes,
                     "%s: %u slots of %llu wire, %llu data bytes", gp_protocol_name(p), g.n_slots,
                     (unsigned long long) g.slot_bytes, (unsigned long long) g.data_bytes);
        }
        gp_group_end();
    }
}

/* Slots hold whole lines, LL128 slots whole pairs of lines. */
static void test_odd_buffers(void)
{
    const char *reason;
    gp_conn_geom_t g;

    gp_group_begin("buffer sizes of any number of bytes: whole lines");
    for (uint64_t bytes = 8192; bytes < 20000; bytes += 37) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            gp_comm_desc_t comm = one_gpu(4);
            gp_params_t params = no_wishes();
            uint64_t line = GP_PROTO_LL128 == p ? 256 : 128;

            params.buffer_bytes[p] = bytes;
            gp_check(GP_OK == gp_plan_conn_geom(&comm, &params, GP_ALGO_RING, p, &g, &reason)
                         && bytes / 8 / line * line == g.slot_bytes && 0 == g.data_bytes % 16
                         && gp_wire_bytes((gp_protocol_t) p, g.data_bytes) <= g.slot_bytes,
                     "%s, %llu bytes: slots of %llu wire, %llu data bytes", gp_protocol_name(p),
                     (unsigned long long) bytes, (unsigned long long) g.slot_bytes,
                     (unsigned long long) g.data_bytes);
        }
    }
    gp_group_end();
}

static void test_one_gpu(void)
{
    static const uint32_t channels[][2] = {{1, 64}, {2, 64}, {3, 42}, {4, 32}, {8, 16},
                                           {16, 8}, {64, 2}, {65, 1}, {128, 1}};
    static const uint64_t ring_data[] = {32768, 76800, 131072}, tree_data[] = {16384, 57600, 65536};
    const char *reason;
    gp_conn_geom_t g;

    gp_group_begin("one GPU: channels that are resident together, for 1-128 ranks");
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        gp_comm_desc_t comm = one_gpu(channels[i][0]);
        gp_params_t params = no_wishes();

        params.max_fifo_bytes = 1ull << 40;
        gp_check(GP_OK == gp_plan_conn_geom(&comm, &params, GP_ALGO_RING, GP_PROTO_LL, &g, &reason)
                     && channels[i][1] == g.channels,
                 "%u ranks: %u channels, want %u", comm.n_ranks, g.channels, channels[i][1]);
        gp_check(g.channels * comm.ranks_per_gpu <= comm.sm_count, "%u ranks: more blocks than SMs",
                 comm.n_ranks);
    }
    gp_group_end();
    gp_group_begin("one GPU, 4 ranks: two slots of the measured sizes, 32 channels, threads");
    for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
        static const uint32_t threads[] = {512, 320, 512};
        gp_comm_desc_t comm = one_gpu(4);
        gp_params_t params = no_wishes();

        gp_check(GP_OK == gp_plan_conn_geom(&comm, &params, GP_ALGO_RING, p, &g, &reason)
                     && 2 == g.n_slots && ring_data[p] == g.data_bytes && 32 == g.channels
                     && threads[p] == g.threads,
                 "ring %s: %u x %llu, %u channels, %u threads", gp_protocol_name(p), g.n_slots,
                 (unsigned long long) g.data_bytes, g.channels, g.threads);
        gp_check(GP_OK == gp_plan_conn_geom(&comm, &params, GP_ALGO_TREE, p, &g, &reason)
                     && 2 == g.n_slots && tree_data[p] == g.data_bytes && 32 == g.channels,
                 "tree %s: %u x %llu, %u channels", gp_protocol_name(p), g.n_slots,
                 (unsigned long long) g.data_bytes, g.channels);
        gp_check(GP_OK == gp_plan_conn_geom(&comm, &params, GP_ALGO_FLAT, p, &g, &reason)
                     && g.channels <= 8 && g.channels >= 1,
                 "flat %s: %u channels", gp_protocol_name(p), g.channels);
    }
    gp_group_end();
}

/* geometry of (ring, protocol) and its refusal. */
static const char *refusal(const gp_comm_desc_t *comm, const gp_params_t *params, uint32_t protocol)
{
    const char *reason = NULL;
    gp_conn_geom_t g;
    gp_status_t status = gp_plan_conn_geom(comm, params, GP_ALGO_RING, protocol, &g, &reason);

    if (GP_OK == status) {
        return "";
    }
    return GP_DECLINED == status && NULL != reason ? reason : "no reason";
}

static void test_ll128_rule(void)
{
    gp_params_t params = no_wishes();
    gp_comm_desc_t comm;

    gp_group_begin(
        "LL128: allowed by path and capability, refused with the rule, forced if unsafe");
    for (uint32_t path = 0; path < GP_PATH_COUNT; path++) {
        static const uint32_t capabilities[][2] = {{90, 90},  {80, 80},   {70, 70},
                                                   {61, 61},  {60, 90},   {80, 90},
                                                   {90, 100}, {100, 120}, {70, 75}};

        for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
            uint32_t low = capabilities[i][0], high = capabilities[i][1];
            const char *want = path > GP_PATH_NVLINK ? "ll128: a path"
                               : low < 70            ? "ll128: a GPU has"
                               : low != high && low < 90 ? "ll128: GPUs of different" : "";
            const char *got;

            comm = gpus(4, (gp_path_t) path);
            comm.min_capability = low;
            comm.max_capability = high;
            params = no_wishes();
            got = refusal(&comm, &params, GP_PROTO_LL128);
            gp_check(0 == strncmp(got, want, strlen(want)) && ('\0' == *want) == ('\0' == *got),
                     "path %s, capability %u-%u: \"%s\"", gp_path_name(path), low, high, got);
            params.ll128_unsafe = 1;
            got = refusal(&comm, &params, GP_PROTO_LL128);
            gp_check('\0' == *got, "unsafe, path %s, capability %u-%u: \"%s\"", gp_path_name(path),
                     low, high, got);
            params = no_wishes();
            gp_check('\0' == *refusal(&comm, &params, GP_PROTO_LL)
                         && '\0' == *refusal(&comm, &params, GP_PROTO_SIMPLE),
                     "path %s: LL and Simple are always allowed", gp_path_name(path));
        }
    }
    params = no_wishes();
    for (uint32_t n = 1; n <= 16; n++) {
        comm = host(n);
        gp_check('\0' == *refusal(&comm, &params, GP_PROTO_LL128), "host, %u ranks", n);
    }
    gp_group_end();
}

static void test_refusals(void)
{
    gp_comm_desc_t comm = one_gpu(4);
    gp_params_t params;
    gp_plan_t plan;
    const char *reason;

    gp_group_begin("refusals name their rule");
    params = no_wishes();
    params.min_channels = 33;
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "min_channels"), "33 channels");
    params.min_channels = 32;
    gp_check('\0' == *refusal(&comm, &params, GP_PROTO_LL), "32 channels");
    params.max_channels = 16;
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "larger than max"), "32 > 16");
    params = no_wishes();
    params.min_channels = 2;
    params.max_fifo_bytes = 4096;
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "max_fifo_mib"), "4 KiB of FIFO");
    params = no_wishes();
    params.buffer_bytes[GP_PROTO_LL] = 64;
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "buffer size"), "tiny buffer");
    comm = one_gpu(133);
    params = no_wishes();
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "co-residency"), "133 ranks");
    comm = host(4);
    params.min_channels = 65;
    gp_check(NULL != strstr(refusal(&comm, &params, GP_PROTO_LL), "more than 64"), "65 on host");
    comm = one_gpu(4);
    for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
        static const uint32_t most[] = {1024, 384, 512}, bad[] = {1, 32, 33, 100};

        params = no_wishes();
        params.threads = most[p];
        gp_check('\0' == *refusal(&comm, &params, p), "%u threads, protocol %u", most[p], p);
        params.threads = most[p] + 32;
        gp_check(NULL != strstr(refusal(&comm, &params, p), "threads"), "%u threads, protocol %u",
                 most[p] + 32, p);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            params.threads = bad[i];
            gp_check(NULL != strstr(refusal(&comm, &params, p), "threads"), "%u threads", bad[i]);
        }
    }
    params = no_wishes();
    gp_check(GP_DECLINED == gp_plan_make(&comm, &params, 1, GP_TYPE_C32, GP_OP_MAX, &plan, &reason)
                 && NULL != reason,
             "complex maximum");
    gp_check(GP_ERR_INVALID
                 == gp_plan_make(&comm, &params, 0, GP_TYPE_I32, GP_OP_SUM, &plan, &reason),
             "count 0");
    gp_check(GP_ERR_INVALID
                 == gp_plan_make(&comm, &params, UINT64_MAX / 8, GP_TYPE_C64, GP_OP_SUM, &plan,
                                 &reason),
             "bytes beyond 64 bits");
    params.algorithm = 9;
    gp_check(GP_OK != gp_plan_make(&comm, &params, 1, GP_TYPE_I32, GP_OP_SUM, &plan, &reason)
                 && NULL != reason,
             "algorithm 9");
    comm = gpus(4, GP_PATH_PCIE);
    params = no_wishes();
    params.protocol = GP_PROTO_LL128;
    gp_check(GP_DECLINED
                     == gp_plan_make(&comm, &params, 1000, GP_TYPE_F32, GP_OP_SUM, &plan, &reason)
                 && NULL != strstr(reason, "ll128: a path"),
             "forced LL128 on PCIe");
    gp_group_end();
}

static void test_forcing(void)
{
    gp_group_begin("a forced algorithm, protocol, channel and thread count is what runs");
    for (uint32_t repeat = 0; repeat < 4000; repeat++) {
        gp_comm_desc_t comm = below(3) ? one_gpu(1 + (uint32_t) below(16))
                              : below(2) ? host(1 + (uint32_t) below(16))
                                         : gpus(2 + (uint32_t) below(15), GP_PATH_NVLINK);
        uint64_t count = 1 + below(1ull << below(31));
        gp_params_t params = no_wishes();
        gp_plan_t plan;
        const char *reason = NULL;
        gp_status_t status;

        params.algorithm = (int32_t) below(4) - 1;
        params.protocol = (int32_t) below(4) - 1;
        params.threads = below(2) ? 64 * (1 + (uint32_t) below(5)) : 0;
        params.max_channels = below(2) ? 1 + (uint32_t) below(12) : 0;
        params.min_channels =
            0 != params.max_channels && below(2)
                ? 1 + (uint32_t) below(params.max_channels < 8 ? params.max_channels : 8)
                : 0;
        status = gp_plan_make(&comm, &params, count, GP_TYPE_F32, GP_OP_SUM, &plan, &reason);
        if (!gp_check(GP_OK == status, "ranks %u executor %u count %llu: %s", comm.n_ranks,
                      comm.executor, (unsigned long long) count, NULL != reason ? reason : "")) {
            continue;
        }
        gp_check((GP_AUTO == params.algorithm || plan.algorithm == (uint32_t) params.algorithm)
                     && (GP_AUTO == params.protocol || plan.protocol == (uint32_t) params.protocol),
                 "ranks %u: wanted %d/%d, plan %u/%u", comm.n_ranks, params.algorithm,
                 params.protocol, plan.algorithm, plan.protocol);
        gp_check(plan.geom.channels >= params.min_channels
                     && (0 == params.max_channels || plan.geom.channels <= params.max_channels),
                 "channels %u, wanted %u-%u", plan.geom.channels, params.min_channels,
                 params.max_channels);
        gp_check(GP_EXEC_HOST == comm.executor ? 0 == plan.threads
                 : 0 != params.threads         ? plan.threads == params.threads
                                               : plan.threads >= 64 && 0 == plan.threads % 32,
                 "threads %u, wanted %u", plan.threads, params.threads);
        gp_check(NULL != plan.reason && '\0' != *plan.reason
                     && (GP_AUTO == params.algorithm && GP_AUTO == params.protocol)
                            != (NULL != strstr(plan.reason, "forced")),
                 "reason \"%s\"", plan.reason);
    }
    gp_group_end();
}

static gp_plan_t plan_of(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes)
{
    const char *reason = NULL;
    gp_plan_t plan;

    if (GP_OK != gp_plan_make(comm, params, bytes / 4, GP_TYPE_F32, GP_OP_SUM, &plan, &reason)) {
        gp_bail_out("plan of %llu bytes: %s", (unsigned long long) bytes, reason);
    }
    return plan;
}

static void test_auto(void)
{
    gp_params_t params = no_wishes();
    gp_comm_desc_t comm = one_gpu(4);
    gp_plan_t plan;
    uint32_t last = 0;

    gp_group_begin(
        "auto: small calls take few hops and LL, large ones Ring Simple and all channels");
    for (uint32_t n = 2; n <= 64; n++) {
        gp_comm_desc_t kinds[3];

        kinds[0] = one_gpu(n);
        kinds[1] = gpus(n, GP_PATH_NVLINK);
        kinds[2] = host(n);
        for (int k = 0; k < 3; k++) {
            gp_conn_geom_t g;
            const char *reason;

            plan = plan_of(&kinds[k], &params, 8);
            gp_check(GP_PROTO_LL == plan.protocol && GP_ALGO_RING != plan.algorithm
                         && 1 == plan.geom.channels && plan.threads <= 64,
                     "kind %d, %u ranks, 8 bytes: %s/%s, %u channels, %u threads", k, n,
                     gp_algorithm_name(plan.algorithm), gp_protocol_name(plan.protocol),
                     plan.geom.channels, plan.threads);
            gp_check(GP_ALGO_FLAT != plan.algorithm || n <= 32, "flat for %u ranks", n);
            plan = plan_of(&kinds[k], &params, 1024 * MI);
            gp_check(GP_OK
                             == gp_plan_conn_geom(&kinds[k], &params, GP_ALGO_RING, GP_PROTO_SIMPLE,
                                                  &g, &reason)
                         && GP_PROTO_SIMPLE == plan.protocol && GP_ALGO_RING == plan.algorithm
                         && plan.geom.channels == g.channels && plan.threads == g.threads,
                     "kind %d, %u ranks, 1 GiB: %s/%s, %u channels", k, n,
                     gp_algorithm_name(plan.algorithm), gp_protocol_name(plan.protocol),
                     plan.geom.channels);
        }
    }
    gp_group_end();
    gp_group_begin("auto, 4 ranks on one GPU: channels grow with the size, as measured");
    for (uint64_t bytes = 8; bytes <= 64 * MI; bytes *= 2) {
        params = no_wishes();
        params.algorithm = GP_ALGO_RING;
        params.protocol = GP_PROTO_LL;
        plan = plan_of(&comm, &params, bytes);
        gp_check(plan.geom.channels >= last, "%llu bytes: %u channels, before %u",
                 (unsigned long long) bytes, plan.geom.channels, last);
        last = plan.geom.channels;
        gp_check(bytes > KI || last <= 2, "1 KiB: %u channels", last);
        gp_check(bytes != 64 * KI || (last >= 16 && last <= 32), "64 KiB: %u channels", last);
        gp_check(bytes < MI || 32 == last, "%llu bytes: %u channels", (unsigned long long) bytes,
                 last);
    }
    params.protocol = GP_PROTO_SIMPLE;
    plan = plan_of(&comm, &params, 64 * KI);
    gp_check(2 == plan.geom.channels, "Ring Simple, 64 KiB: %u channels", plan.geom.channels);
    plan = plan_of(&comm, &params, MI);
    gp_check(32 == plan.geom.channels, "Ring Simple, 1 MiB: %u channels", plan.geom.channels);
    gp_group_end();
    gp_group_begin("auto never takes LL128 where its rule forbids it, and takes it where it pays");
    for (uint64_t bytes = 8; bytes <= 1024 * MI; bytes *= 2) {
        gp_comm_desc_t pcie = gpus(4, GP_PATH_PCIE);

        params = no_wishes();
        plan = plan_of(&pcie, &params, bytes);
        gp_check(GP_PROTO_LL128 != plan.protocol, "pcie, %llu bytes", (unsigned long long) bytes);
    }
    {
        gp_comm_desc_t nvlink = gpus(8, GP_PATH_NVLINK);
        uint32_t taken = 0;

        for (uint64_t bytes = 8; bytes <= 1024 * MI; bytes *= 2) {
            plan = plan_of(&nvlink, &params, bytes);
            taken += GP_PROTO_LL128 == plan.protocol;
        }
        gp_check(taken > 0, "8 GPUs with NVLink: never LL128");
    }
    params.algorithm = GP_ALGO_TREE; /* a refused protocol leaves a forced algorithm */
    comm = gpus(4, GP_PATH_PCIE);
    plan = plan_of(&comm, &params, 2 * MI);
    gp_check(GP_ALGO_TREE == plan.algorithm && GP_PROTO_SIMPLE == plan.protocol,
             "pcie, forced tree");
    gp_group_end();
}

/* FIFO bytes of a set on the rank that receives most, from the programs themselves. */
static uint64_t set_bytes(const gp_comm_desc_t *comm, const gp_conn_geom_t *g, gp_algorithm_t a)
{
    uint64_t most = 0;

    for (uint32_t r = 0; r < comm->n_ranks; r++) {
        uint64_t links[2];

        for (uint32_t c = 0; c < 2; c++) {
            gp_program_t *p;

            if (GP_OK != gp_program_emit(a, comm->n_ranks, r, c, 2, &p)) {
                gp_bail_out("emit");
            }
            links[c] = p->n_recv;
            gp_program_free(p);
        }
        links[0] = (g->channels + 1) / 2 * links[0] + g->channels / 2 * links[1];
        most = links[0] > most ? links[0] : most;
    }
    return most * gp_fifo_recv_block_bytes(g->n_slots, g->slot_bytes);
}

/* All sets that calls of any size lead to. */
static uint64_t fifo_bytes(const gp_comm_desc_t *comm, const gp_params_t *params)
{
    int have[GP_ALGO_CUSTOM][GP_PROTO_COUNT] = {{0}};
    uint64_t total = 0;

    for (uint64_t count = 1; count <= 1ull << 32; count *= 2) {
        const char *reason;
        gp_conn_geom_t g;
        gp_plan_t plan;

        if (GP_OK == gp_plan_make(comm, params, count, GP_TYPE_U8, GP_OP_SUM, &plan, &reason)
            && 0 == have[plan.algorithm][plan.protocol]++) {
            if (GP_OK
                != gp_plan_conn_geom(comm, params, plan.algorithm, plan.protocol, &g, &reason)) {
                gp_bail_out("planned without connections: %s", reason);
            }
            gp_check(g.channels >= params->min_channels
                         && plan.geom.channels >= params->min_channels,
                     "channels %u of %u, at least %u wanted", plan.geom.channels, g.channels,
                     params->min_channels);
            total += set_bytes(comm, &g, (gp_algorithm_t) plan.algorithm);
        }
    }
    return total;
}

static void test_cap(void)
{
    gp_group_begin("FIFO memory of all sets together stays within max_fifo_bytes");
    for (uint32_t repeat = 0; repeat < 1500; repeat++) {
        gp_comm_desc_t comm = below(3) ? gpus(1 + (uint32_t) below(64), (gp_path_t) below(5))
                              : below(2) ? one_gpu(1 + (uint32_t) below(64))
                                         : host(1 + (uint32_t) below(64));
        gp_params_t params = no_wishes();
        uint64_t bytes;

        params.max_fifo_bytes = 1ull << (16 + below(14));
        params.ll128_unsafe = (uint32_t) below(2);
        params.min_channels = below(2) ? (uint32_t) below(13) : 0;
        params.algorithm = below(2) ? GP_AUTO : (int32_t) below(3);
        params.protocol = below(2) ? GP_AUTO : (int32_t) below(3);
        if (below(3) == 0) {
            params.buffer_bytes[below(GP_PROTO_COUNT)] = 1ull << (12 + below(12));
        }
        bytes = fifo_bytes(&comm, &params);
        gp_check(bytes <= params.max_fifo_bytes,
                 "ranks %u path %s executor %u min %u: %llu of %llu", comm.n_ranks,
                 gp_path_name(comm.worst_path), comm.executor, params.min_channels,
                 (unsigned long long) bytes, (unsigned long long) params.max_fifo_bytes);
    }
    gp_group_end();
}

static void test_pure(void)
{
    int same = 1, fits = 1;
    uint32_t hash = 2166136261u;

    for (uint32_t repeat = 0; repeat < 2000; repeat++) {
        gp_comm_desc_t comm = below(2) ? one_gpu(1 + (uint32_t) below(16))
                                       : host(1 + (uint32_t) below(16));
        gp_params_t params = no_wishes();
        gp_comm_desc_t comm_before = comm;
        gp_params_t params_before = params;
        uint64_t count = 1 + below(1ull << below(40));
        gp_type_t type = (gp_type_t) below(GP_TYPE_BOOL);
        gp_plan_t a, b;
        const char *reason;
        char text[400];
        int n;

        memset(&a, 0xff, sizeof(a));
        memset(&b, 0, sizeof(b));
        if (GP_OK != gp_plan_make(&comm, &params, count, type, GP_OP_SUM, &a, &reason)
            || GP_OK != gp_plan_make(&comm, &params, count, type, GP_OP_SUM, &b, &reason)) {
            gp_bail_out("no plan: %s", reason);
        }
        same = same && 0 == memcmp(&a, &b, sizeof(a))
               && 0 == memcmp(&comm, &comm_before, sizeof(comm))
               && 0 == memcmp(&params, &params_before, sizeof(params));
        n = gp_plan_print(&a, text, sizeof(text));
        fits = fits && n > 0 && (size_t) n < sizeof(text) && NULL == strchr(text, '\n');
        for (int i = 0; i < n; i++) {
            hash = (hash ^ (unsigned char) text[i]) * 16777619u;
        }
    }
    gp_ok(same, "the same arguments give the same plan, whatever was in it before");
    gp_ok(fits, "a printed plan is one line");
    gp_diag("hash of 2000 printed plans: %08x", hash);
}

static void test_print(void)
{
    gp_comm_desc_t comm = one_gpu(4);
    gp_params_t params = no_wishes();
    char text[400], small[10];
    gp_plan_t plan;
    int n;

    params.algorithm = GP_ALGO_TREE;
    params.protocol = GP_PROTO_LL;
    params.max_channels = 1;
    plan = plan_of(&comm, &params, 64);
    n = gp_plan_print(&plan, text, sizeof(text));
    gp_ok(NULL != strstr(text, "algorithm=tree protocol=ll executor=cuda channels=1 threads=64 ")
              && NULL != strstr(text, "chunk=16 loops=1 ")
              && NULL != strstr(text, "reason=\"forced algorithm and protocol\""),
          "printed: %s", text);
    gp_ok(n == gp_plan_print(&plan, small, sizeof(small)) && 0 == strncmp(text, small, 9)
              && '\0' == small[9],
          "printed into too little room: cut, the whole length returned");
}

/* Small calls still spread over the ring, large ones end with even last chunks. */
static void test_chunks(void)
{
    gp_comm_desc_t comm = one_gpu(4);
    gp_params_t params = no_wishes();
    gp_plan_t plan;

    params.algorithm = GP_ALGO_RING;
    params.protocol = GP_PROTO_LL;
    params.max_channels = 1;
    gp_group_begin(
        "chunks: a ring's small call uses all its chunks, a last loop is divided evenly");
    for (uint64_t bytes = 64; bytes <= 128 * KI; bytes += 64) {
        plan = plan_of(&comm, &params, bytes);
        gp_check(1 == plan.geom.loops && 4 == plan.geom.n_chunks
                     && plan.geom.chunk_elems * 4 == (bytes / 4 + 15) / 16 * 16,
                 "%llu bytes: chunk %llu", (unsigned long long) bytes,
                 (unsigned long long) plan.geom.chunk_elems * 4);
    }
    plan = plan_of(&comm, &params, 128 * KI + 64);
    gp_check(2 == plan.geom.loops && 8192 == plan.geom.chunk_elems
                 && 4 == plan.geom.last_chunk_elems,
             "128 KiB + 64: %llu loops of %llu, last %llu", (unsigned long long) plan.geom.loops,
             (unsigned long long) plan.geom.chunk_elems,
             (unsigned long long) plan.geom.last_chunk_elems);
    gp_group_end();
    params.algorithm = GP_ALGO_TREE;
    params.protocol = GP_PROTO_SIMPLE;
    plan = plan_of(&comm, &params, 8);
    gp_ok(1 == plan.geom.loops && 4 == plan.geom.chunk_elems, "a tiny tree call: one small chunk");
    plan = plan_of(&comm, &params, 64 * KI);
    gp_ok(4 == plan.geom.loops && 4096 == plan.geom.chunk_elems,
          "a tree call on one channel with Simple: four chunks in flight");
}

/* Chunk bytes of a tree over LL128 with the published buffer: 576,000 data bytes a slot. */
static uint64_t tree_chunk(uint32_t ranks, uint32_t nodes, uint32_t channels, uint64_t bytes)
{
    gp_comm_desc_t comm = gpus(ranks, GP_PATH_NVLINK);
    gp_params_t params = no_wishes();

    comm.n_nodes = nodes;
    params.algorithm = GP_ALGO_TREE;
    params.protocol = GP_PROTO_LL128;
    params.buffer_bytes[GP_PROTO_LL128] = GP_LL128_BUFFER_BYTES;
    params.max_fifo_bytes = 1024 * MI;
    params.min_channels = params.max_channels = channels;
    return plan_of(&comm, &params, bytes).geom.chunk_elems * 4;
}

static void test_tree_chunks(void)
{
    /* By hand: 8 ranks on a node give (1 + 0 + 0.8) x 64 / 8 = 14.4, then x 16 / 8 = 3.6. */
    gp_ok(576000 == tree_chunk(8, 1, 2, 64 * MI), "tree/ll128, 64 MiB: 58 chunks are enough");
    /* 16 MiB / 2 / 576,000 = 14 < 14.4: halved once; then 29 >= 3.6. */
    gp_ok(288000 == tree_chunk(8, 1, 2, 16 * MI), "tree/ll128, 16 MiB: halved");
    /* 4 MiB: 3, 7, 14 (144,000), 29 (72,000): stops at 72,000; 29 >= 3.6. */
    gp_ok(72000 == tree_chunk(8, 1, 2, 4 * MI), "tree/ll128, 4 MiB: halved three times");
    /* 512 KiB: down to 72,000, then 3 < 3.6: halved again, then 7 >= 3.6. */
    gp_ok(36000 == tree_chunk(8, 1, 2, 512 * KI), "tree/ll128, 512 KiB: the second limit");
    /* Two ranks a node, 8 nodes: (1 + 3 + 0.2) x 64 / 2 = 134.4 > 58; x 16 / 2 = 33.6 < 116. */
    gp_ok(72000 == tree_chunk(16, 8, 2, 16 * MI), "tree/ll128 over nodes: smaller chunks");
}

int main(void)
{
    gp_tap_begin();
    test_names();
    test_published();
    test_odd_buffers();
    test_one_gpu();
    test_ll128_rule();
    test_refusals();
    test_forcing();
    test_auto();
    test_cap();
    test_pure();
    test_print();
    test_chunks();
    test_tree_chunks();
    return gp_tap_end();
}
