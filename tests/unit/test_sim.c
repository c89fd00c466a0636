/*
 * test_sim.c - the simulator: times worked out by hand, properties, symmetry against every rank.
 *
 * The hand-worked cases use round costs (costs(), below) and follow planner/gp_sim.h; each says its
 * sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include <math.h>

#include "planner/gp_emit.h"
#include "planner/gp_sim.h"
#include "planner/gp_verify.h"
#include "tests/unit/gp_random_program.h"

/* Times are whole picoseconds: what differs at all differs by more. */
#define LEAST_DIFFERENCE_US 1e-7

/*
 * Read at 4,000 bytes/us after 0.25 us, sent at 1,000 (network 500), seen 1 us (5) later, heads 0.5
 * (3).
 */
static gp_sim_params_t costs(uint32_t ranks_per_node)
{
    gp_sim_params_t p;

    gp_sim_params_init(&p);
    p.intra_alpha_us = 1;
    p.net_alpha_us = 5;
    p.intra_head_us = 0.5;
    p.net_head_us = 3;
    p.intra_bytes_per_us = 1000;
    p.net_bytes_per_us = 500;
    p.reduce_bytes_per_us = 4000;
    p.step_us = 0.25;
    p.link_us = 0;
    p.ranks_per_node = ranks_per_node;
    p.nics_per_node = 1;
    return p;
}

/* Chunks of chunk_bytes (of 4-byte elements), all channels and loops full. */
static gp_sim_call_t call_of(uint32_t algorithm, uint32_t n_ranks, uint32_t n_chunks,
                             uint64_t chunk_bytes, uint32_t channels, uint64_t loops,
                             uint32_t n_slots)
{
    gp_sim_call_t c;

    memset(&c, 0, sizeof(c));
    c.shape.algorithm = algorithm;
    c.shape.n_ranks = n_ranks;
    c.shape.n_channels = channels;
    c.shape.slices = 1;
    c.protocol = GP_PROTO_SIMPLE;
    c.n_slots = n_slots;
    c.geom.elem_bytes = 4;
    c.geom.chunk_elems = chunk_bytes / 4;
    c.geom.last_chunk_elems = c.geom.chunk_elems;
    c.geom.n_chunks = n_chunks;
    c.geom.loops = loops;
    c.geom.channels = channels;
    c.geom.channel_elems = c.geom.chunk_elems * n_chunks * loops;
    c.geom.count = c.geom.channel_elems * channels;
    return c;
}

static gp_sim_call_t call_for(uint32_t algorithm, uint32_t n_ranks, uint64_t chunk_bytes,
                              uint32_t channels, uint64_t loops, uint32_t n_slots)
{
    return call_of(algorithm, n_ranks, GP_ALGO_RING == algorithm ? n_ranks : 1, chunk_bytes,
                   channels, loops, n_slots);
}

static int near(double got, double want)
{
    return fabs(got - want) <= 1e-5 + 1e-9 * fabs(want);
}

/* The chain's times add up to the whole, and what was kept of it is consistent. */
static void check_path(const gp_sim_result_t *r, const char *what)
{
    double sum = 0, kept = 0;
    uint64_t count = 0;

    for (int i = 0; i < GP_SIM_WHAT_COUNT; i++) {
        sum += r->path_us[i];
        count += r->path_count[i];
    }
    gp_check(near(sum, r->total_us), "%s: path adds up to %.6f of %.6f us", what, sum, r->total_us);
    gp_check(count == r->path_steps, "%s: %llu steps on the path, %llu by kind", what,
             (unsigned long long) r->path_steps, (unsigned long long) count);
    for (uint32_t i = 0; i < r->path_kept; i++) {
        kept += r->path[i].us;
        if (i > 0) {
            gp_check(near(r->path[i].begin_us, r->path[i - 1].begin_us + r->path[i - 1].us),
                     "%s: step %u of the path begins where the one before ends", what, i);
        }
    }
    if (r->path_steps == r->path_kept && 0 == r->cut_ranks) {
        gp_check(near(kept, r->total_us), "%s: all steps add up to %.6f of %.6f us", what, kept,
                 r->total_us);
    }
}

/* Programs of ranks src.. that each send one chunk to dst.. and output there; others idle. */
static gp_program_t *sender(uint32_t rank, uint32_t n_ranks, uint32_t peer)
{
    gp_program_t *p = NULL;
    gp_emit_t e;

    if (GP_OK != gp_emit_begin(&e, 1, 1, 2, 0, 1)) {
        gp_bail_out("out of memory");
    }
    e.program->n_chunks = 1;
    e.program->send[0].peer = peer;
    gp_emit_stream(&e);
    gp_emit_step(&e, 0, 0);
    gp_emit_input_own(&e);
    gp_emit_send(&e, 0);
    gp_emit_end(&e, &p);
    p->rank = rank;
    p->n_ranks = n_ranks;
    return p;
}

static gp_program_t *receiver(uint32_t rank, uint32_t n_ranks, uint32_t peer)
{
    gp_program_t *p = NULL;
    gp_emit_t e;

    if (GP_OK != gp_emit_begin(&e, 1, 1, 1, 1, 0)) {
        gp_bail_out("out of memory");
    }
    e.program->n_chunks = 1;
    e.program->recv[0].peer = peer;
    gp_emit_stream(&e);
    gp_emit_step(&e, 0, GP_STEP_OUTPUT);
    gp_emit_input(&e, 0);
    gp_emit_end(&e, &p);
    p->rank = rank;
    p->n_ranks = n_ranks;
    return p;
}

static void test_two_ranks(void)
{
    gp_program_t *programs[2] = {sender(0, 2, 1), receiver(1, 2, 0)};
    const gp_program_t *const *given = (const gp_program_t *const *) programs;
    static const double by_slots[] = {10.0, 6.5, 6.0};
    gp_sim_params_t p = costs(0);
    gp_sim_call_t c = call_of(GP_ALGO_CUSTOM, 2, 1, 1000, 1, 1, 1);
    gp_sim_result_t r;

    gp_group_begin("two ranks, one step each");
    /* Send: 0.25 + 1000/4000 + 1000/1000, seen 1 later: 2.5. Receive: 0.25 + 0.25. */
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r), "%s", r.reason);
    gp_check(near(r.total_us, 3.0), "total %.6f, want 3.0", r.total_us);
    gp_check(2 == r.path_steps && 2 == r.path_kept, "two steps on the path");
    gp_check(0 == r.path[0].rank && GP_SIM_OWN == r.path[0].what && near(r.path[0].us, 2.5),
             "rank 0 first, 2.5 us");
    gp_check(1 == r.path[1].rank && GP_SIM_DATA == r.path[1].what && near(r.path[1].us, 0.5)
                 && near(r.path[1].begin_us, 2.5),
             "then rank 1, which waited for data");
    gp_check(near(r.loads.intra_bytes, 1000) && near(r.loads.net_bytes, 0)
                 && near(r.loads.busiest_us, 1) && 0 == r.loads.busiest_is_net
                 && 0 == r.loads.busiest_rank,
             "the load is rank 0's port");
    check_path(&r, "one step");
    /* LL doubles the bytes on the wire. */
    c.protocol = GP_PROTO_LL;
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 4.0)
                 && near(r.loads.intra_bytes, 2000),
             "LL: total %.6f, want 4.0", r.total_us);
    gp_group_end();

    /*
     * Three loops. One slot: each send waits until 0.5 after the receiver ended: 3.5 a loop, 3 x
     * 3.5 - 0.5. Two: sends leave at 1.5 and 3.0, the third waits for the credit seen at 3.5:
     * leaves 5.0, seen 6.0. Three: sends leave at 1.5, 3.0, 4.5, the last is seen at 5.5.
     */
    gp_group_begin("a sender is held back by its credits");
    for (uint32_t slots = 1; slots <= 3; slots++) {
        c = call_of(GP_ALGO_CUSTOM, 2, 1, 1000, 1, 3, slots);
        gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r), "%s", r.reason);
        gp_check(near(r.total_us, by_slots[slots - 1]), "%u slots: total %.6f, want %.6f", slots,
                 r.total_us, by_slots[slots - 1]);
        gp_check(r.path_count[GP_SIM_CREDIT] == 3 - slots, "%u slots: credits on the path", slots);
        check_path(&r, "slots");
    }
    gp_group_end();

    gp_group_begin("the network: its own latency and bandwidth");
    /* Send: 0.5, then 1000/500 through the NIC, seen 5 later: 7.5; receive 0.5. */
    p = costs(1);
    c = call_of(GP_ALGO_CUSTOM, 2, 1, 1000, 1, 1, 1);
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 8.0),
             "total %.6f, want 8.0", r.total_us);
    gp_check(near(r.loads.net_bytes, 1000) && near(r.loads.intra_bytes, 0)
                 && 1 == r.loads.busiest_is_net,
             "the load is on the NIC");
    /*
     * Two loops, two slots: the first send does not hold the stream: the second asks at 1.0, 4.5 it
     * left.
     */
    c = call_of(GP_ALGO_CUSTOM, 2, 1, 1000, 1, 2, 2);
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 10.0),
             "two loops: total %.6f, want 10.0", r.total_us);
    /* One slot: the receiver ends at 8.0, the sender sees it 3 later, and as long again: 11 + 8. */
    c.n_slots = 1;
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 19.0),
             "one slot: total %.6f, want 19.0", r.total_us);
    gp_group_end();
    gp_program_free(programs[0]);
    gp_program_free(programs[1]);
}

static int any_net(void *arg, uint32_t src, uint32_t dst)
{
    return *(int *) arg && src != dst;
}

static void test_shared_nic(void)
{
    gp_program_t *programs[4] = {sender(0, 4, 2), sender(1, 4, 3), receiver(2, 4, 0),
                                 receiver(3, 4, 1)};
    const gp_program_t *const *given = (const gp_program_t *const *) programs;
    gp_sim_params_t p = costs(2);
    gp_sim_call_t c = call_of(GP_ALGO_CUSTOM, 4, 1, 1000, 1, 1, 1);
    gp_sim_result_t r;
    int net = 0;

    gp_group_begin("ranks of a node share its NICs");
    /* Both ask at 0.5; the second has left at 4.5, is seen at 9.5. With a NIC each 2 us less. */
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 10.0),
             "one NIC: total %.6f, want 10.0", r.total_us);
    p.nics_per_node = 2;
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 8.0),
             "two NICs: total %.6f, want 8.0", r.total_us);
    p.path = any_net;
    p.path_arg = &net;
    gp_check(GP_OK == gp_sim_run_programs(given, &c, &p, &r) && near(r.total_us, 3.0),
             "path by the caller: total %.6f, want 3.0", r.total_us);
    gp_group_end();
    for (int i = 0; i < 4; i++) {
        gp_program_free(programs[i]);
    }
}

static void test_by_hand(void)
{
    gp_sim_params_t p = costs(0);
    gp_sim_call_t c = call_for(GP_ALGO_RING, 3, 400, 1, 1, 2);
    gp_sim_result_t r;

    gp_group_begin("ring of three, tree of four, one rank");
    /*
     * Chunks of 400: a step reads for 0.1 an input and sends for 0.4. Steps 0 to 3 hand on after
     * 0.75, 0.85, 0.85, 0.75 and 1 of latency each, the last takes 0.35: 3.2 + 4 + 0.35.
     */
    for (int mode = GP_SIM_FULL; mode <= GP_SIM_SYMMETRIC; mode++) {
        gp_check(GP_OK == gp_sim_run(&c, &p, (gp_sim_mode_t) mode, &r), "%s", r.reason);
        gp_check(near(r.total_us, 7.55), "ring: total %.6f, want 7.55", r.total_us);
        gp_check(5 == r.path_steps && 4 == r.path_count[GP_SIM_DATA], "ring: five steps");
        gp_check(near(r.loads.intra_bytes, 3 * 4 * 400), "ring: every rank sends 4 chunks");
        check_path(&r, "ring");
    }
    /*
     * Leaf 1 or 3 up: 0.75 + 1. Rank 2, three inputs: 0.25 + 0.3 + 0.4 + 1. Root, two: 0.25 + 0.2 +
     * 0.4 + 1. Rank 2 down: 0.25 + 0.1, then 0.4 to 1 and 0.4 to 3 through one port, + 1. Rank 3:
     * 0.35. Together 8.05.
     */
    c = call_for(GP_ALGO_TREE, 4, 400, 1, 1, 1);
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &r), "%s", r.reason);
    gp_check(near(r.total_us, 8.05), "tree: total %.6f, want 8.05", r.total_us);
    gp_check(3 == r.path[r.path_kept - 1].rank, "tree: the second child ends last");
    check_path(&r, "tree");
    p.intra_port = 0;
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &r) && near(r.total_us, 7.65),
             "tree, a link each pair: total %.6f, want 7.65", r.total_us);
    c = call_for(GP_ALGO_RING, 1, 400, 1, 1, 1);
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &r) && near(r.total_us, 0.35),
             "one rank copies: total %.6f, want 0.35", r.total_us);
    gp_group_end();
}

static void test_refusals(void)
{
    gp_sim_params_t p = costs(0);
    gp_sim_call_t c = call_for(GP_ALGO_RING, 5, 400, 2, 3, 1);
    gp_sim_result_t r;

    gp_group_begin("deadlocks and refusals are said, not run into");
    for (int mode = GP_SIM_FULL; mode <= GP_SIM_SYMMETRIC; mode++) {
        gp_check(GP_ERR_INVALID == gp_sim_run(&c, &p, (gp_sim_mode_t) mode, &r)
                     && NULL != strstr(r.reason, "deadlock with 1 slots"),
                 "ring with one slot: \"%s\"", r.reason);
    }
    c = call_for(GP_ALGO_TREE, 5, 400, 1, 1, 1);
    gp_check(GP_DECLINED == gp_sim_run(&c, &p, GP_SIM_SYMMETRIC, &r) && '\0' != r.reason[0],
             "a tree has no symmetry");
    c = call_for(GP_ALGO_RING, 10, 400, 1, 1, 2);
    p = costs(4);
    gp_check(GP_DECLINED == gp_sim_run(&c, &p, GP_SIM_SYMMETRIC, &r) && '\0' != r.reason[0],
             "10 ranks are not nodes of 4");
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &r) && 10 == r.ranks, "but run in full");
    p.most_work = 100;
    c = call_for(GP_ALGO_TREE, 64, 400, 2, 1, 2);
    gp_check(GP_DECLINED == gp_sim_run(&c, &p, GP_SIM_AUTO, &r)
                 && NULL != strstr(r.reason, "most_work"),
             "too much work: \"%s\"", r.reason);
    c.n_slots = 0;
    gp_check(GP_ERR_INVALID == gp_sim_run(&c, &p, GP_SIM_AUTO, &r), "no slots");
    c.n_slots = 1;
    p.net_bytes_per_us = 0;
    gp_check(GP_ERR_INVALID == gp_sim_run(&c, &p, GP_SIM_AUTO, &r), "no bandwidth");
    c.shape.algorithm = GP_ALGO_CUSTOM;
    gp_check(GP_ERR_INVALID == gp_sim_run(&c, &p, GP_SIM_AUTO, &r), "no such algorithm");
    gp_group_end();
}

static double time_of(const gp_sim_call_t *c, const gp_sim_params_t *p, gp_sim_mode_t mode,
                      const char *what)
{
    gp_sim_result_t r;
    gp_status_t status = gp_sim_run(c, p, mode, &r);

    gp_check(GP_OK == status, "%s: %s", what, r.reason);
    check_path(&r, what);
    return r.total_us;
}

static void test_monotone(void)
{
    gp_sim_params_t p = costs(4);

    gp_group_begin("more bytes or fewer slots are never faster");
    for (uint32_t algo = GP_ALGO_RING; algo <= GP_ALGO_FLAT; algo++) {
        for (uint32_t n = 2; n <= 13; n++) {
            double last = 0;

            for (uint64_t bytes = 16; bytes <= 65536; bytes *= 4) {
                gp_sim_call_t c = call_for(algo, n, bytes, 2, 3, 2);
                double us = time_of(&c, &p, GP_SIM_FULL, "bytes");

                gp_check(us >= last, "algorithm %u, %u ranks, %llu bytes: %.6f after %.6f", algo,
                         n, (unsigned long long) bytes, us, last);
                last = us;
            }
            last = INFINITY;
            for (uint32_t slots = GP_ALGO_RING == algo ? 2 : 1; slots <= 6; slots++) {
                gp_sim_call_t c = call_for(algo, n, 2000, 1, 6, slots);
                double us = time_of(&c, &p, GP_SIM_FULL, "slots");

                gp_check(us <= last + LEAST_DIFFERENCE_US, "algorithm %u, %u ranks, %u slots: %.6f "
                         "after %.6f", algo, n, slots, us, last);
                last = us;
            }
        }
    }
    gp_group_end();
}

/* A layout of nodes of per_node ranks in rank order; order and first are the caller's memory. */
static gp_layout_t layout_of(uint32_t n, uint32_t per_node, uint32_t *order, uint32_t *first)
{
    gp_layout_t layout = {n / per_node, order, first};

    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (uint32_t k = 0; k <= n / per_node; k++) {
        first[k] = k * per_node;
    }
    return layout;
}

static void compare(const gp_sim_call_t *c, const gp_sim_params_t *p, const char *what)
{
    gp_sim_result_t full, part;
    gp_status_t a = gp_sim_run(c, p, GP_SIM_FULL, &full);
    gp_status_t b = gp_sim_run(c, p, GP_SIM_SYMMETRIC, &part);
    double off;

    if (!gp_check(GP_OK == a && GP_OK == b, "%s: %s%s", what, full.reason, part.reason)) {
        return;
    }
    off = fabs(part.total_us / full.total_us - 1);
    gp_check(full.ranks == c->shape.n_ranks && part.ranks < full.ranks, "%s: ranks", what);
    gp_check(off <= 0.01, "%s, %u ranks, %u a node, %llu bytes, %u channels, %llu loops, %u slots, "
             "layout %d: %.3f by symmetry, %.3f in full", what, c->shape.n_ranks, p->ranks_per_node,
             (unsigned long long) c->geom.chunk_elems * 4, c->geom.channels,
             (unsigned long long) c->geom.loops, c->n_slots, NULL != c->shape.layout,
             part.total_us, full.total_us);
    gp_check(fabs(part.loads.intra_bytes - full.loads.intra_bytes)
                     <= 0.01 * full.loads.intra_bytes + 1
                 && fabs(part.loads.net_bytes - full.loads.net_bytes)
                        <= 0.01 * full.loads.net_bytes + 1,
             "%s, %u ranks, %u a node: loads %.0f and %.0f by symmetry, %.0f and %.0f in full",
             what, c->shape.n_ranks, p->ranks_per_node, part.loads.intra_bytes,
             part.loads.net_bytes,
             full.loads.intra_bytes, full.loads.net_bytes);
}

static void test_symmetry(void)
{
    static const uint32_t nodes[] = {0, 1, 4, 8};
    static uint32_t order[512], first[513];

    gp_group_begin("ring: one node stands for all, up to 512 ranks");
    for (uint32_t n = 16; n <= 512; n *= 2) {
        for (uint32_t k = 0; k < 4; k++) {
            for (uint32_t variant = 0; variant < 12; variant++) {
                gp_sim_params_t p = costs(nodes[k]);
                gp_sim_call_t c = call_for(GP_ALGO_RING, n, variant % 3 ? 256 : 16384,
                                           n > 128 ? 1 + variant : 1u << variant % 4,
                                           1 + variant % 2, 2 + variant % 5);
                gp_layout_t layout;

                if (variant > (n > 128 ? 1 : n > 64 ? 3 : 12)) {
                    break;
                }
                p.nics_per_node = 1 + variant % 2;
                if (variant % 3 == 1 && nodes[k] > 1) {
                    layout = layout_of(n, nodes[k], order, first);
                    c.shape.layout = &layout;
                }
                if (variant % 4 == 3) {
                    c.shape.slices = 2;
                    c.n_slots = 8;
                    c.geom.n_chunks *= 2;
                    c.geom.chunk_elems /= 2;
                    c.geom.last_chunk_elems /= 2;
                }
                compare(&c, &p, "ring");
            }
        }
    }
    gp_group_end();
    gp_group_begin("flat: one node stands for all, up to 64 ranks");
    for (uint32_t n = 8; n <= 64; n += 8) {
        for (uint32_t k = 0; k < 4; k++) {
            for (uint32_t variant = 0; variant < 4; variant++) {
                gp_sim_params_t p = costs(nodes[k]);
                gp_sim_call_t c = call_for(GP_ALGO_FLAT, n, variant % 2 ? 256 : 16384, 1, 1, 2);

                p.nics_per_node = 1 + variant % 2;
                p.link_us = variant < 2 ? 0 : 0.1;
                if (n > nodes[k]) {
                    compare(&c, &p, "flat");
                }
            }
        }
    }
    gp_group_end();
}

/*
 * Rotated channels are simulated from the programs of the first two: the same as their own
 * programs.
 */
static void test_layouts(void)
{
    static gp_program_t *programs[24 * 8];
    uint32_t order[24], first[25];

    gp_group_begin("layouts: as with every channel's own programs");
    for (uint32_t per_node = 2; per_node <= 8; per_node *= 2) {
        for (uint32_t algo = GP_ALGO_RING; algo <= GP_ALGO_TREE; algo++) {
            gp_layout_t layout = layout_of(24, per_node, order, first);
            gp_sim_call_t c = call_for(algo, 24, 1000, 8, 2, 3);
            gp_sim_params_t p = costs(per_node);
            gp_sim_result_t a, b;

            p.nics_per_node = 2;
            c.shape.layout = &layout;
            for (uint32_t i = 0; i < 24 * 8; i++) {
                if (GP_OK != gp_program_emit_shape(&c.shape, i % 24, i / 24, &programs[i])) {
                    gp_bail_out("a program could not be emitted");
                }
            }
            gp_check(GP_OK
                             == gp_sim_run_programs((const gp_program_t *const *) programs, &c, &p,
                                                    &a)
                         && GP_OK == gp_sim_run(&c, &p, GP_SIM_FULL, &b)
                         && near(a.total_us, b.total_us)
                         && near(a.loads.net_bytes, b.loads.net_bytes)
                         && near(a.loads.busiest_us, b.loads.busiest_us),
                     "algorithm %u, %u a node: %.6f and %.6f us", algo, per_node, a.total_us,
                     b.total_us);
            for (uint32_t i = 0; i < 24 * 8; i++) {
                gp_program_free(programs[i]);
            }
        }
    }
    gp_group_end();
}

static void test_bound(void)
{
    gp_sim_params_t p = costs(8), few = costs(8);
    gp_sim_call_t c = call_for(GP_ALGO_RING, 8192, 256, 2, 1, 4);
    gp_sim_result_t all, less;

    gp_group_begin("bounded work: close to the whole");
    few.most_work = 300000;
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &all) && 0 == all.cut_ranks
                 && GP_OK == gp_sim_run(&c, &few, GP_SIM_AUTO, &less) && less.cut_ranks < 8192
                 && 0 != less.cut_ranks && less.work <= 2 * few.most_work,
             "ring: %u ranks of it, work %llu", less.cut_ranks, (unsigned long long) less.work);
    gp_check(fabs(less.total_us / all.total_us - 1) < 0.001
                 && fabs((double) less.path_steps / (double) all.path_steps - 1) < 0.01
                 && fabs(less.loads.net_bytes / all.loads.net_bytes - 1) < 0.001,
             "ring: %.1f extrapolated, %.1f in full", less.total_us, all.total_us);
    check_path(&less, "ring");
    for (uint32_t with_layout = 0; with_layout <= 1; with_layout++) {
        static uint32_t order[6000], first[6001];
        gp_layout_t layout = layout_of(6000, 8, order, first);

        c = call_for(GP_ALGO_TREE, 6000, 1000, 4, 3, 4);
        c.shape.layout = with_layout ? &layout : NULL;
        few.most_work = 80000;
        gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_AUTO, &all) && 0 == all.cut_ranks
                     && GP_OK == gp_sim_run(&c, &few, GP_SIM_AUTO, &less) && less.cut_ranks < 2000
                     && 0 != less.cut_ranks,
                 "tree: %u ranks of it", less.cut_ranks);
        gp_check(fabs(less.total_us / all.total_us - 1) < 0.03
                     && fabs(less.loads.net_bytes / all.loads.net_bytes - 1) < 0.02,
                 "tree, layout %u: %.1f extrapolated, %.1f in full; %.0f and %.0f bytes",
                 with_layout, less.total_us, all.total_us, less.loads.net_bytes,
                 all.loads.net_bytes);
        check_path(&less, "cut tree");
    }
    c = call_for(GP_ALGO_TREE, 24, 4000, 8, 600, 4);
    few.most_work = 100000;
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_FULL, &all) && 600 == all.loops
                 && GP_OK == gp_sim_run(&c, &few, GP_SIM_FULL, &less) && less.loops < 600
                 && 8 == less.channels,
             "tree: %llu loops of it", (unsigned long long) less.loops);
    gp_check(fabs(less.total_us / all.total_us - 1) < 0.01, "tree: %.1f extrapolated, %.1f in full",
             less.total_us, all.total_us);
    check_path(&less, "tree");
    c = call_for(GP_ALGO_TREE, 64, 4000, 32, 4, 4);
    few.most_work = 10000;
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_FULL, &all) && 32 == all.channels
                 && GP_OK == gp_sim_run(&c, &few, GP_SIM_FULL, &less) && 8 == less.channels,
             "tree: %u channels for 32", less.channels);
    gp_check(fabs(less.total_us / all.total_us - 1) < 0.25
                 && fabs(less.loads.net_bytes / all.loads.net_bytes - 1) < 1e-6,
             "tree: %.1f with 8 channels for 32, %.1f in full", less.total_us, all.total_us);
    p.reduce_bytes_per_us = few.reduce_bytes_per_us = 50;
    gp_check(GP_OK == gp_sim_run(&c, &p, GP_SIM_FULL, &all)
                 && GP_OK == gp_sim_run(&c, &few, GP_SIM_FULL, &less)
                 && fabs(less.total_us / all.total_us - 1) < 0.25,
             "tree, slow reductions: %.1f with 8 channels for 32, %.1f in full", less.total_us,
             all.total_us);
    gp_group_end();

    gp_group_begin("65,536 ranks");
    few.most_work = 1100000;
    for (uint32_t algo = GP_ALGO_RING; algo <= GP_ALGO_FLAT; algo++) {
        c = call_for(algo, 65536, 1024, 4, 1, 4);
        gp_check(GP_OK == gp_sim_run(&c, &few, GP_SIM_AUTO, &less), "algorithm %u: %s", algo,
                 less.reason);
        /* No hop is faster than a step and the latency within a node. */
        gp_check(less.total_us > (GP_ALGO_RING == algo ? 2 * 65535 * 1.25 : 1.25),
                 "algorithm %u: %.1f us", algo, less.total_us);
        check_path(&less, "65,536 ranks");
    }
    gp_group_end();
}

static void test_random(void)
{
    gp_group_begin("random programs run to their end");
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint32_t n = 1 + (uint32_t) (seed % GP_RANDOM_MOST_RANKS), slots = 1 + seed % 5;
        gp_program_t *programs[GP_RANDOM_MOST_RANKS];
        gp_sim_params_t p = costs(1 + seed % 4);
        double sends = 0, least = 0;
        gp_sim_result_t r;
        gp_sim_call_t c;

        if (GP_OK != gp_random_programs(seed, n, slots, programs)) {
            gp_bail_out("no random programs for seed %llu", (unsigned long long) seed);
        }
        p.intra_port = seed % 2;
        c = call_of(GP_ALGO_CUSTOM, n, programs[0]->n_chunks, 1024, 1, 5, slots);
        for (uint32_t i = 0; i < n; i++) {
            double reads = 0;

            for (uint32_t k = 0; k < programs[i]->n_steps; k++) {
                sends += programs[i]->steps[k].n_send;
                reads += programs[i]->steps[k].n_in;
            }
            least = reads > least ? reads : least;
        }
        gp_check(GP_OK == gp_sim_run_programs((const gp_program_t *const *) programs, &c, &p, &r),
                 "seed %llu: %s", (unsigned long long) seed, r.reason);
        gp_check(near(r.loads.intra_bytes + r.loads.net_bytes, sends * 1024 * 5),
                 "seed %llu: every send is on a link once", (unsigned long long) seed);
        gp_check(r.total_us >= least * 1024 * 5 / 4000,
                 "seed %llu: %.3f us, the busiest rank reads longer", (unsigned long long) seed,
                 r.total_us);
        check_path(&r, "random");
        for (uint32_t i = 0; i < n; i++) {
            gp_program_free(programs[i]);
        }
    }
    gp_group_end();
}

int main(void)
{
    gp_tap_begin();
    test_two_ranks();
    test_shared_nic();
    test_by_hand();
    test_refusals();
    test_monotone();
    test_symmetry();
    test_layouts();
    test_bound();
    test_random();
    return gp_tap_end();
}
