/*
 * test_host_exec.c - the host executor against independently computed results.
 *
 * algorithm x protocol x ranks x slots x type x operation x count, in place and not, buffers misaligned
 * independently and at the very end of their memory, ranks driven in turn and in random order with late
 * starts, steps just below 2^31, 2^32 and 2^63. Built a second time with 5-bit LL flags, so that flags
 * wrap and FIFOs are zeroed all the time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "contrib/gpuproto_perf_data.h"
#include "planner/gp_plan.h"
#include "tests/exec/gp_exec_world.h"
#include "tests/exec/gp_fake_net.h"
#include "tests/lib/gp_tap.h"
#include "tests/unit/gp_random_program.h"

static int quick;

/* One call on a world. Everything that varies comes from *seed. */
static void one_call(world_t *w, gp_type_t type, gp_op_t op, uint64_t count, uint64_t *seed)
{
    uint64_t start_seed = *seed;
    uint32_t elem = gp_type_bytes(type);
    uint32_t n = w->c.n_ranks;
    int in_place = (int) (world_random(seed) & 1);
    int at_end = (int) (world_random(seed) & 1);
    size_t align = 16 == elem ? 8 : elem; /* a complex is aligned like its parts */
    world_buffer_t send[WORLD_MAX_RANKS], recv[WORLD_MAX_RANKS];
    void *sends[WORLD_MAX_RANKS], *recvs[WORLD_MAX_RANKS];
    gp_geom_t geom = world_geom(w, count, elem);
    gp_exec_record_t record;
    perf_data_t data;
    gp_status_t status;

    perf_data_init(&data, type, op, n, 1, world_random(seed));
    for (uint32_t r = 0; r < n; r++) {
        size_t bytes = count * elem;

        if (!world_buffer_make(&send[r], bytes, world_random(seed) % 16 / align * align, at_end)
            || !world_buffer_make(&recv[r], bytes, world_random(seed) % 16 / align * align,
                                  at_end)) {
            gp_bail_out("no memory");
        }
        perf_data_fill(&data, r, 0, count, send[r].data);
        if (in_place) {
            memcpy(recv[r].data, send[r].data, bytes);
        }
        sends[r] = in_place ? recv[r].data : send[r].data;
        recvs[r] = recv[r].data;
    }
    status = world_run(w, &geom, gp_red_of(type, op), sends, recvs, world_random(seed) % 4 * 77);
    gp_check(GP_OK == status, "%s %s %s count %llu seed %llu: status %d", world_name(&w->c),
             gp_type_name(type), gp_op_name(op), (unsigned long long) count,
             (unsigned long long) start_seed, status);
    for (uint32_t r = 0; r < n && GP_OK == status; r++) {
        uint64_t bad_at = 0;
        uint64_t bad = perf_data_check(&data, 0, count, recv[r].data, &bad_at);

        gp_check(0 == bad && world_buffer_intact(&send[r]) && world_buffer_intact(&recv[r]),
                 "%s %s %s count %llu seed %llu rank %u%s: %llu wrong, first at %llu, guards %d %d",
                 world_name(&w->c), gp_type_name(type), gp_op_name(op), (unsigned long long) count,
                 (unsigned long long) start_seed, r, in_place ? " in place" : "",
                 (unsigned long long) bad, (unsigned long long) bad_at,
                 world_buffer_intact(&send[r]), world_buffer_intact(&recv[r]));
        gp_host_exec_record(w->execs[r], &record);
        gp_check(record.algorithm == (uint32_t) w->c.algorithm
                     && record.protocol == (uint32_t) w->c.protocol && record.loops == geom.loops
                     && record.chunk_elems == geom.chunk_elems
                     && record.channels == w->c.channels,
                 "%s: the record says algorithm %u protocol %u loops %llu", world_name(&w->c),
                 record.algorithm, record.protocol, (unsigned long long) record.loops);
    }
    for (uint32_t r = 0; r < n; r++) {
        world_buffer_free(&send[r]);
        world_buffer_free(&recv[r]);
    }
}

static uint64_t pick_count(const world_t *w, uint32_t elem, uint64_t *seed)
{
    uint64_t chunk = gp_data_bytes(w->c.protocol, w->c.slot_bytes) / elem;
    uint64_t n = w->c.n_ranks;
    const uint64_t counts[] = {1, 2, 3, 7, n - 1, n, n + 1, chunk - 1, chunk, chunk + 1,
                               n * chunk - 1, n * chunk + 1, 2 * n * chunk + 5,
                               3 * chunk + world_random(seed) % chunk};
    uint64_t count = counts[world_random(seed) % (sizeof(counts) / sizeof(counts[0]))];

    return 0 == count ? 1 : count;
}

static void combination(gp_algorithm_t algorithm, gp_protocol_t protocol, uint32_t gated)
{
    static const uint64_t first_steps[] = {0, 19, (1ull << 31) - 9, (1ull << 32) - 9,
                                           (1ull << 63) - 9};
    static const uint32_t slots[] = {2, 3, 8};
    uint64_t seed = 1000 * (uint64_t) algorithm + 10 * (uint64_t) protocol + gated + 1;

    gp_group_begin("%s/%s%s", gp_algorithm_name(algorithm), gp_protocol_name(protocol),
                   gated ? " gated" : "");
    for (uint32_t n = 1; n <= 8; n += quick ? 3 : 1) {
        for (uint32_t s = 0; s < 3; s++) {
            world_case_t c = {&world_host_ops, algorithm, protocol, n, 1, slots[s], 0, 0, gated, 0};
            world_t *w;

            c.channels = 1 + (uint32_t) (world_random(&seed) % 3);
            c.slot_bytes = 256 * (1 + world_random(&seed) % 12);
            c.first_step = first_steps[world_random(&seed) % 5];
            w = world_create(&c, NULL);
            if (!gp_check(NULL != w, "%s: cannot be made", world_name(&c))) {
                continue;
            }
            for (uint32_t type = 0; type < GP_TYPE_COUNT; type++) {
                for (uint32_t op = 0; op < GP_OP_COUNT; op++) {
                    gp_type_t t = (gp_type_t) type;

                    if (gp_red_of(t, (gp_op_t) op).valid) {
                        one_call(w, t, (gp_op_t) op, pick_count(w, gp_type_bytes(t), &seed), &seed);
                    }
                }
            }
            world_destroy(w);
        }
    }
    gp_group_end();
}

/* Programs that are neither ring nor tree: the executor has no algorithm of its own. */
static void random_programs(void)
{
    for (uint64_t s = 1; s <= (uint64_t) (quick ? 20 : 150); s++) {
        uint64_t seed = s;
        gp_program_t *programs[WORLD_MAX_RANKS];
        world_case_t c = {&world_host_ops, GP_ALGO_CUSTOM, GP_PROTO_LL, 2, 1, 2, 0, 3, 0, 0};
        world_t *w;

        c.n_ranks = 2 + (uint32_t) (world_random(&seed) % 5);
        c.n_slots = 2 + (uint32_t) (world_random(&seed) % 3);
        c.protocol = (gp_protocol_t) (s % GP_PROTO_COUNT);
        c.slot_bytes = 256 * (1 + world_random(&seed) % 8);
        if (!gp_check(GP_OK == gp_random_programs(s, c.n_ranks, c.n_slots, programs),
                      "seed %llu: no programs", (unsigned long long) s)) {
            continue;
        }
        w = world_create(&c, programs);
        if (!gp_check(NULL != w, "%s seed %llu: cannot be made", world_name(&c),
                      (unsigned long long) s)) {
            continue;
        }
        for (uint32_t i = 0; i < 6; i++) {
            gp_type_t type = (gp_type_t) (world_random(&seed) % GP_TYPE_COUNT);
            gp_op_t op = (gp_op_t) (world_random(&seed) % GP_OP_COUNT);

            if (gp_red_of(type, op).valid) {
                one_call(w, type, op, pick_count(w, gp_type_bytes(type), &seed), &seed);
            }
        }
        world_destroy(w);
    }
}

/* A rank that never comes: the others say for what and whom they wait, and can be told to stop. */
/* Nodes with a net between them that is late and out of order. */
static void over_net(gp_algorithm_t algorithm, gp_protocol_t protocol)
{
    static const uint32_t shapes[][2] = {{2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 3}, {8, 4}};
    uint64_t seed = 1000 + (uint64_t) algorithm * 10 + protocol;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (uint32_t slots = GP_ALGO_FLAT == algorithm ? 1 : 2; slots <= 8; slots *= 2) {
            world_case_t c = {&world_host_ops, algorithm, protocol, shapes[i][0], 1 + i % 2, slots,
                              1024, i % 3 * ((1ull << 32) - 5), 0, shapes[i][1]};
            world_t *w = world_create(&c, NULL);

            if (!gp_check(NULL != w, "%s: cannot be made", world_name(&c))) {
                continue;
            }
            for (uint32_t k = 0; k < (quick ? 2u : 4u); k++) {
                uint64_t most = 0 == k % 2 ? 40 : 6000;

                one_call(w, GP_TYPE_F32, GP_OP_SUM, 1 + world_random(&seed) % most, &seed);
                one_call(w, GP_TYPE_C64, GP_OP_PROD, 1 + world_random(&seed) % most, &seed);
                one_call(w, GP_TYPE_U8, GP_OP_MAX, 1 + world_random(&seed) % most, &seed);
            }
            world_destroy(w);
        }
    }
}

/* A rank that cannot be reached any more: an error, and no endless wait. */
static void cut_off(void)
{
    world_case_t c = {&world_host_ops, GP_ALGO_RING, GP_PROTO_SIMPLE, 3, 1, 2, 1024, 0, 0, 1};
    world_t *w = world_create(&c, NULL);
    float in[3][100] = {{0}}, out[3][100];
    void *sends[3], *recvs[3];
    gp_geom_t g;

    if (!gp_ok(NULL != w, "connected over the net")) {
        return;
    }
    for (int r = 0; r < 3; r++) {
        sends[r] = in[r];
        recvs[r] = out[r];
    }
    g = world_geom(w, 100, 4);
    fake_wire_cut(w->wire, 1);
    gp_ok(GP_ERR_PEER == world_run(w, &g, gp_red_of(GP_TYPE_F32, GP_OP_SUM), sends, recvs, 0),
          "a rank that is cut off gives an error");
    world_destroy(w);
}

/* Messages that break the protocol are refused and change nothing. */
static void bad_messages(void)
{
    world_case_t c = {&world_host_ops, GP_ALGO_RING, GP_PROTO_SIMPLE, 2, 1, 2, 1024, 0, 0, 1};
    world_t *w = world_create(&c, NULL);
    unsigned char data[2048] = {0};
    /* Links of a ring of two: 0 receives, 1 sends. */
    const gp_net_header_t bad[] = {
        {0, 0, 2000, GP_NET_SLOT, 2000},  {0, 0, 16, GP_NET_SLOT, 32}, {0, 2, 16, GP_NET_SLOT, 16},
        {0, UINT64_MAX, 16, GP_NET_SLOT, 16}, {1, 0, 16, GP_NET_SLOT, 16},
        {0, 0, 0, GP_NET_HEAD, 0},        {1, 1, 0, GP_NET_HEAD, 0},   {0, 0, 0, 7, 0},
    };
    const gp_net_header_t gone = {77, 0, 16, GP_NET_SLOT, 16}, good = {0, 0, 16, GP_NET_SLOT, 16};

    if (!gp_ok(NULL != w, "connected over the net")) {
        return;
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        gp_ok(GP_ERR_INVALID == gp_net_deliver(fake_wire_net(w->wire, 0), &bad[i], data),
              "message %zu is refused", i);
    }
    gp_ok(GP_OK == gp_net_deliver(fake_wire_net(w->wire, 0), &gone, data),
          "one for a link that is gone is dropped");
    gp_ok(0 == gp_load_relaxed_u64(w->sets[0]->recv[0][0].tail), "nothing has changed");
    gp_ok(GP_OK == gp_net_deliver(fake_wire_net(w->wire, 0), &good, data)
              && GP_ERR_INVALID == gp_net_deliver(fake_wire_net(w->wire, 0), &good, data),
          "a slot is taken once");
    world_destroy(w);
}

static void abort_case(gp_protocol_t protocol)
{
    world_case_t c = {&world_host_ops, GP_ALGO_RING, protocol, 3, 1, 2, 1024, 100, 0, 0};
    world_t *w = world_create(&c, NULL);
    float send[3][300], recv[3][300];
    gp_geom_t geom;
    gp_wait_info_t info;
    gp_status_t status = GP_OK;

    if (!gp_check(NULL != w, "%s: cannot be made", world_name(&c))) {
        return;
    }
    memset(send, 0, sizeof(send));
    geom = world_geom(w, 300, 4);
    for (uint32_t r = 0; r < 2; r++) { /* rank 2 is absent */
        gp_work_t work = {send[r], recv[r], geom, gp_red_of(GP_TYPE_F32, GP_OP_SUM), 0};

        gp_check(GP_OK == gp_host_exec_start(w->execs[r], &work), "start");
    }
    for (int i = 0; i < 100; i++) {
        for (uint32_t r = 0; r < 2; r++) {
            status = gp_host_exec_progress(w->execs[r], NULL);
        }
    }
    gp_check(GP_AGAIN == status, "a call without rank 2 went on: %d", status);
    gp_host_exec_waits_for(w->execs[0], &info);
    gp_check(GP_WAIT_DATA == info.kind && 2 == info.peer && info.step >= 100,
             "%s: rank 0 says kind %u peer %u step %llu", world_name(&c), info.kind, info.peer,
             (unsigned long long) info.step);
    gp_host_exec_abort(w->execs[0]);
    gp_check(GP_ERR_ABORTED == gp_host_exec_progress(w->execs[0], NULL), "abort is heard");
    gp_host_exec_waits_for(w->execs[0], &info);
    gp_check(GP_WAIT_DATA == info.kind && 2 == info.peer, "the wait is known after the abort");
    world_destroy(w);
}

int main(void)
{
    quick = NULL != getenv("GP_CHECK_QUICK");
    gp_tap_begin();
    for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_FLAT; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            combination((gp_algorithm_t) a, (gp_protocol_t) p, 0);
        }
        combination((gp_algorithm_t) a, GP_PROTO_LL128, 1);
    }
    gp_group_begin("random programs");
    random_programs();
    gp_group_end();
    for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_FLAT; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            gp_group_begin("%s/%s over nodes, with a net that is late and out of order",
                           gp_algorithm_name(a), gp_protocol_name(p));
            over_net((gp_algorithm_t) a, (gp_protocol_t) p);
            gp_group_end();
        }
    }
    cut_off();
    bad_messages();
    gp_group_begin("an absent rank is named, and waiting for it can be given up");
    for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
        abort_case((gp_protocol_t) p);
    }
    gp_group_end();
    gp_shm_arena_finalize();
    return gp_tap_end();
}
