/*
 * test_simt.cc - the kernels' own sources, run on a CPU, against independently computed results.
 *
 * Every group walks (algorithm, protocol) with a random but seeded choice of everything else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string>

#include "tests/lib/gp_tap.h"
#include "tests/simt/simt_cases.h"
#include "tests/simt/simt_kernels.h"

/* Cases of each (algorithm, protocol), by what a case costs. */
#if defined(SIMT_TSAN)
#define CASES 80u
#elif defined(__SANITIZE_ADDRESS__)
#define CASES 150u
#else
#define CASES 400u
#endif

static const char *const algorithm_names[] = {"ring", "tree", "flat"};
static const char *const protocol_names[] = {"ll", "ll128", "simple", "ll128 gated"};
static void test_matrix(void)
{
    for (uint32_t algorithm = 0; algorithm < 3; ++algorithm) {
        for (uint32_t protocol = 0; protocol < 4; ++protocol) {
            gp_group_begin("%s/%s", algorithm_names[algorithm], protocol_names[protocol]);
            for (uint32_t i = 0; i < CASES; ++i) {
                sw_case c;

                choose_case(&c, algorithm, protocol);
                std::string wrong = sw_run(c);
                gp_check(wrong.empty(), "%s", wrong.c_str());
            }
            gp_group_end();
        }
    }
}

/* Every (family, operation) of this program once per protocol, whole and in parts. */
static void test_reductions(void)
{
    for (uint32_t protocol = 0; protocol < GP_PROTO_COUNT; ++protocol) {
        gp_group_begin("every reduction, %s", protocol_names[protocol]);
        for (uint32_t family = 0; family < GP_FAMILY_COUNT; ++family) {
            for (uint32_t rop = 0; rop < GP_ROP_COUNT; ++rop) {
                sw_case c;

                if (NULL == sw_kernels[family][protocol] || !sv_valid(family, rop)) {
                    continue;
                }
                choose_case(&c, choose(3), protocol);
                c.n_ranks = 3;
                c.n_calls = 2;
                for (uint32_t n = 0; n < 2; ++n) {
                    c.calls[n].family = family;
                    c.calls[n].rop = rop;
                    c.calls[n].channels = 1;
                    c.calls[n].count = 100 + choose(300);
                    c.calls[n].in_place = 0;
                    c.calls[n].send_offset = 0 == n ? 0 : choose_offset(family);
                    c.calls[n].recv_offset = 0 == n ? 0 : choose_offset(family);
                }
                std::string wrong = sw_run(c);
                gp_check(wrong.empty(), "%s", wrong.c_str());
            }
        }
        gp_group_end();
    }
}

/* Steps and references that fill many windows, and programs too long for shared memory. */
static void test_windows(void)
{
    gp_group_begin("long programs and many references");
    for (uint32_t protocol = 0; protocol < GP_PROTO_COUNT; ++protocol) {
        for (uint32_t algorithm = 0; algorithm < 3; ++algorithm) {
            sw_case c;

            choose_case(&c, algorithm, protocol);
            c.n_ranks = GP_ALGO_RING == algorithm ? 70 : 40;
            c.channels = 1;
            c.threads = 64;
            c.n_slots = 2;
            c.slot_bytes = 256;
            c.n_calls = 1;
            c.calls[0].family = GP_FAMILY_F32;
            c.calls[0].rop = GP_ROP_SUM;
            c.calls[0].channels = 1;
            c.calls[0].count = 40 * sw_chunks(c) + 7;
            c.calls[0].send_offset = 0;
            c.calls[0].recv_offset = 0;
            c.options.skip = 0;
            std::string wrong = sw_run(c);
            gp_check(wrong.empty(), "%s", wrong.c_str());
        }
    }
    gp_group_end();
}

/* A rank that never comes: the others are told to give up, end, and say what they waited for. */
static void test_abort(void)
{
    gp_group_begin("abort");
    for (uint32_t algorithm = 0; algorithm < 3; ++algorithm) {
        for (uint32_t protocol = 0; protocol < 4; ++protocol) {
            for (uint32_t i = 0; i < 4; ++i) {
                sw_case c;

                choose_case(&c, algorithm, protocol);
                c.n_ranks = 2 + choose(3);
                c.n_calls = 1;
                c.calls[0].count += 3 * c.channels; /* no rank is done without the others */
                c.absent = (int) choose(c.n_ranks);
                c.options.hook_pass = 1 + choose(400);
                std::string wrong = sw_run_abort(c);
                gp_check(wrong.empty(), "%s", wrong.c_str());
            }
        }
    }
    gp_group_end();
}

#if !defined(SIMT_TSAN)
/* The harness itself: a program that cannot run must be reported, with who waits for what. */
static void test_deadlock(void)
{
    gp_group_begin("a ring with one slot is reported as a deadlock");
    for (uint32_t protocol = 0; protocol < GP_PROTO_COUNT; ++protocol) {
        sw_case c;

        choose_case(&c, GP_ALGO_RING, protocol);
        c.n_ranks = 3;
        c.n_slots = 1;
        c.n_calls = 1;
        c.calls[0].count = 2000;
        std::string wrong = sw_run(c);
        gp_check(wrong.npos != wrong.find("deadlock")
                     && wrong.npos != wrong.find("polls for credit"),
                 "%s: %s", protocol_names[protocol], wrong.c_str());
    }
    gp_group_end();
}
#endif

int main(void)
{
    choose_seed();
    gp_tap_begin();
    if (!SIMT_SUPPORTED) {
        gp_skip_all("no stack switch for this processor");
    }
    simt_register();
    gp_diag("GP_SIMT_SEED=%llu", (unsigned long long) base_seed);
#if !defined(SIMT_TSAN) /* fibres cut short never hand over what they did */
    test_deadlock();
#endif
    test_matrix();
    test_reductions();
    test_windows();
    test_abort();
    return gp_tap_end();
}
