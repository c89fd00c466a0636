/*
 * test_simt_bugs.cc - would the kernel tests notice? Each planted bug must fail within a few
 * hundred cases of the kind that the unbroken kernels pass.
 *
 * What only ThreadSanitizer can see on a strongly ordered CPU (a missing release) is looked for in
 * that variant only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string>

#include "tests/lib/gp_tap.h"
#include "tests/simt/simt_cases.h"

/* X(bug, protocols: l LL, 8 LL128, g gated LL128, s Simple) */
#if defined(SIMT_TSAN)
#define BUGS(X)                                                                                    \
    X(relaxed_post, "s") X(relaxed_tail, "s") X(relaxed_head, "s") X(no_step_barrier, "s")         \
    X(no_window_barrier, "ls")
#else
#define BUGS(X)                                                                                    \
    X(one_flag, "l") X(no_credit, "l8s") X(no_syncwarp, "l8") X(no_step_barrier, "ls")             \
    X(slot_off, "l8s") X(no_gate, "g") X(edge, "l") X(no_reread, "8") X(one_line_flag, "8")
#endif

#define DECLARE(bug, protocols)                                                                    \
    extern "C" void gp_bug_##bug##_ll(gp_kargs_t args);                                            \
    extern "C" void gp_bug_##bug##_ll128(gp_kargs_t args);                                         \
    extern "C" void gp_bug_##bug##_simple(gp_kargs_t args);
#define ROW(bug, protocols)                                                                        \
    {#bug, protocols, {gp_bug_##bug##_ll, gp_bug_##bug##_ll128, gp_bug_##bug##_simple}},

BUGS(DECLARE)
DECLARE(none, "")

static const struct {
    const char *name;
    const char *protocols;
    sw_kernel_t kernels[GP_PROTO_COUNT];
} bugs[] = {BUGS(ROW)};

sw_kernel_t sw_kernels[GP_FAMILY_COUNT][GP_PROTO_COUNT];

#define TRIES 400

#if defined(SIMT_TSAN)
/* Reports are counted here (simt_races) and are no reason to fail. */
extern "C" const char *__tsan_default_options(void)
{
    return "exitcode=0";
}
#endif

/* A case where timing matters: two slots, several pieces and loops, interruptions, slow fibres. */
static void hard_case(sw_case *c, uint32_t protocol)
{
    choose_case(c, choose(3), protocol);
    c->n_ranks = 2 + choose(3);
    c->n_slots = 2;
    c->threads = 64 + 32 * choose(3);
    c->options.skip = 40 + choose(180);
    c->options.preempt = 500 + choose(8000);
    c->options.max_passes = 200000;
    for (uint32_t n = 0; n < c->n_calls; ++n) {
        c->calls[n].count += 300 + choose(3000);
    }
}

/* Cases until one fails, or TRIES; "" and no race when none did. */
static std::string try_all(const sw_kernel_t *kernels, uint32_t protocol, uint32_t tries,
                           uint32_t *n)
{
    std::string wrong;

    for (uint32_t i = 0; i < GP_PROTO_COUNT; ++i) {
        sw_kernels[GP_FAMILY_F32][i] = kernels[i];
    }
    simt_races = 0;
    for (*n = 0; *n < tries && wrong.empty() && 0 == simt_races; ++*n) {
        sw_case c;

        hard_case(&c, protocol);
        wrong = sw_run(c);
    }
    return wrong;
}

static const char *kind_of(const std::string &wrong)
{
    static const char *const kinds[][2] = {{"deadlock", "deadlock"},
                                           {"no end", "no end"},
                                           {"wrote outside", "wrote outside a buffer"},
                                           {"record", "wrong record"},
                                           {"different votes", "lanes in different votes"},
                                           {"want", "wrong data"}};

    if (0 != simt_races) {
        return "data race";
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        if (wrong.npos != wrong.find(kinds[i][0])) {
            return kinds[i][1];
        }
    }
    return wrong.empty() ? "nothing" : "other";
}

int main(void)
{
    static const char *const names[] = {"ll", "ll128", "simple", "ll128 gated"};
    static const sw_kernel_t sound[] = {gp_bug_none_ll, gp_bug_none_ll128, gp_bug_none_simple};
    std::string wrong;
    uint32_t n;

    choose_seed();
    gp_tap_begin();
    if (!SIMT_SUPPORTED) {
        gp_skip_all("no stack switch for this processor");
    }
#if defined(SIMT_TSAN)
    if (NULL == freopen("/dev/null", "w", stderr)) { /* the reports are what is wanted */
        gp_bail_out("no /dev/null");
    }
#endif
    for (uint32_t protocol = 0; protocol < 4; ++protocol) {
        wrong = try_all(sound, protocol, 40, &n);
        gp_ok(wrong.empty() && 0 == simt_races, "no bug, %s: %u cases: %s", names[protocol], n,
              wrong.c_str());
    }
    for (size_t b = 0; b < sizeof(bugs) / sizeof(bugs[0]); ++b) {
        for (const char *p = bugs[b].protocols; '\0' != *p; ++p) {
            uint32_t protocol = 'l' == *p ? 0u : '8' == *p ? 1u : 's' == *p ? 2u : 3u;

            wrong = try_all(bugs[b].kernels, protocol, TRIES, &n);
            gp_ok(!wrong.empty() || 0 != simt_races, "planted bug %s, %s: case %u: %s",
                  bugs[b].name, names[protocol], n, kind_of(wrong));
        }
    }
    return gp_tap_end();
}
