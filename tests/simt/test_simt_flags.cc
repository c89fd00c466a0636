/*
 * test_simt_flags.cc - LL flags that wrap: the kernels with flags of 5 bits instead of 31.
 *
 * A flag then repeats every 32 steps, so that what happens after 2^31 steps with the real ones
 * happens at once: a line that was last written 32 steps ago looks new. The FIFOs are zeroed in
 * time, or data is wrong; both are shown.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string>

#include "tests/lib/gp_tap.h"
#include "tests/simt/simt_cases.h"

extern "C" void gp_bug_none_ll(gp_kargs_t args);

sw_kernel_t sw_kernels[GP_FAMILY_COUNT][GP_PROTO_COUNT];

/* Large chunks, then small ones for as long as flags take to repeat, then large ones. */
static void flag_case(sw_case *c, uint32_t algorithm)
{
    choose_case(c, algorithm, GP_PROTO_LL);
    c->n_ranks = 2 + choose(2);
    c->channels = 1;
    c->n_slots = 2;
    c->slot_bytes = 2560;
    c->first_step = choose(64);
    c->n_calls = 40;
    for (uint32_t n = 0; n < c->n_calls; ++n) {
        sw_call *call = &c->calls[n];

        memset(call, 0, sizeof(*call));
        call->family = GP_FAMILY_F32;
        call->rop = GP_ROP_SUM;
        call->channels = 1;
        call->count = 0 == choose(5) ? sw_chunk_elems(*c, 4) * sw_chunks(*c) : 1 + choose(20);
    }
    c->options.skip = 60 + choose(120);
}

int main(void)
{
    std::string wrong;

    choose_seed();
    gp_tap_begin();
    if (!SIMT_SUPPORTED) {
        gp_skip_all("no stack switch for this processor");
    }
    for (uint32_t protocol = 0; protocol < GP_PROTO_COUNT; ++protocol) {
        sw_kernels[GP_FAMILY_F32][protocol] = gp_bug_none_ll; /* cases here only use LL */
    }
    gp_group_begin("flags of %d bits, zeroed in time", GP_LL_FLAG_BITS);
    for (uint32_t i = 0; i < 60; ++i) {
        sw_case c;

        flag_case(&c, i % 3);
        wrong = sw_run(c);
        gp_check(wrong.empty(), "%s", wrong.c_str());
    }
    gp_group_end();
    wrong.clear();
    for (uint32_t i = 0; i < 200 && wrong.empty(); ++i) {
        sw_case c;

        flag_case(&c, i % 3);
        c.stale = true;
        c.options.max_passes = 200000;
        wrong = sw_run(c);
    }
    gp_ok(!wrong.empty(), "never zeroed: old lines are taken for new ones");
    return gp_tap_end();
}
