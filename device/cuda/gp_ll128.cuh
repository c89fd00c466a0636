/*
 * gp_ll128.cuh - a step over LL128 connections.
 *
 * Lines of 128 bytes go in pairs: 240 bytes of payload, 15 vectors of 16 bytes. 8 consecutive lanes
 * hold a pair, two vectors each:
 *
 *            lane 0     lane 1    ...   lane 6     lane 7
 *   line A | vector 0 | vector 1 | ... | vector 6  | vector 14, low 8 bytes  | flag |
 *   line B | vector 7 | vector 8 | ... | vector 13 | vector 14, high 8 bytes | flag |
 *   byte     0          16              96           112                       120
 *
 * The 8 lanes store a line with one instruction, and where LL128 is allowed those 128 bytes become
 * visible together: a reader that has seen the flag finds the payload by a load *issued after
 * that*. Hence the flags are polled first, by the warp together, and the lines are loaded once
 * more.
 *
 * On a gated connection lines may arrive piecemeal: there the receiver waits for a released tail
 * before it looks, and the flags are only a check.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_LL128_CUH
#define GP_LL128_CUH

#include "device/cuda/gp_kctx.cuh"
#include "device/cuda/gp_vec.cuh"

#define GP_LL128_FLAG_OFFSET 120u

/* Byte in the chunk of this lane's vector for line A (half 0) or B (half 1) of a pair. */
GP_DEV uint64_t gp_ll128_at(uint64_t pair, uint32_t lane8, int half)
{
    return pair * GP_LL128_PAIR_DATA_BYTES + 16u * (7 == lane8 ? 14u : lane8 + 7u * half);
}

/*
 * Wait until all lines of this trip carry the step's flag. All lanes together; 0: dead, for all
 * alike.
 */
template <int U>
GP_DEV int gp_ll128_poll(const gp_kctx_t *x, const gp_kref_t *ref, uint32_t pair, uint32_t stride,
                         uint32_t pairs, uint32_t lane8)
{
    uint64_t flag = gp_ll128_flag(ref->step);
    uint32_t polls = 0;

    for (;;) {
        int waits = 0;

        if (7 == lane8) {
            uint64_t seen[2 * U];

            GP_UNROLL
            for (int u = 0; u < 2 * U; ++u) { /* all under way before the first is looked at */
                uint32_t p = pair + (u / 2) * stride;

                seen[u] = flag;
                if (p < pairs) {
                    seen[u] = gp_load_relaxed_u64((const uint64_t *) (
                        ref->slot + 256ull * p + 128u * (u % 2) + GP_LL128_FLAG_OFFSET));
                }
            }
            GP_UNROLL
            for (int u = 0; u < 2 * U; ++u) {
                waits |= seen[u] != flag;
            }
        }
        if (!gp_any_warp(waits)) {
            return 1;
        }
        /* polls is equal in all lanes, but they may see the abort at different times */
        waits = gp_poll(x, &polls, GP_WAIT_DATA, ref);
        if (0 == polls % GP_ABORT_POLLS && gp_any_warp(waits)) {
            return 0;
        }
    }
}

/* This lane's two vectors of a pair out of its parts of the lines; lane 7 has only the first. */
GP_DEV void gp_ll128_unpack(gp_vec16_t a, gp_vec16_t b, uint32_t lane8, uint64_t *w)
{
    w[0] = a.w[0];
    w[1] = 7 == lane8 ? b.w[0] : a.w[1];
    w[2] = b.w[0];
    w[3] = b.w[1];
}

/*
 * One trip of a warp: U pairs per group of 8 lanes, `stride` pairs apart. WHOLE: all of them are
 * whole and the user's buffers are aligned. Result: see GP_WAITED; equal in all lanes.
 */
template <class F, int U, bool WHOLE>
GP_DEV int gp_ll128_trip(const gp_kctx_t *x, const gp_kstep_t *s, uint32_t pair, uint32_t stride,
                         uint32_t pairs, uint32_t lane8)
{
    const gp_kargs_t *args = x->args;
    const gp_kref_t *refs = &gp_refs(x)[s->first_ref];
    const unsigned char *from = (const unsigned char *) args->send + s->offset_bytes;
    unsigned char *to = (unsigned char *) args->recv + s->offset_bytes;
    uint64_t bytes = s->bytes;
    uint64_t acc[4 * U];

    for (uint32_t k = 0; k < s->n_in; ++k) {
        const gp_kref_t *ref = &refs[k];
        uint64_t in[4 * U];

        if (NULL == ref->slot) {
            uint32_t width = WHOLE ? 16 : gp_width(from, 16);

            GP_UNROLL
            for (int u = 0; u < U; ++u) {
                uint32_t p = pair + u * stride;

                GP_UNROLL
                for (int h = 0; h < 2; ++h) {
                    gp_vec16_t v;

                    v.w[0] = 0;
                    v.w[1] = 0;
                    if ((WHOLE || p < pairs) && (0 == h || 7 != lane8)) {
                        v = gp_user_load16<F, WHOLE>(from, gp_ll128_at(p, lane8, h), bytes, width);
                    }
                    in[4 * u + 2 * h] = v.w[0];
                    in[4 * u + 2 * h + 1] = v.w[1];
                }
            }
        } else {
            gp_vec16_t early[2 * U];

            if (GP_MUTATE(no_reread)) {
                for (int u = 0; u < U && pair + u * stride < pairs; ++u) {
                    const unsigned char *line = ref->slot + 256ull * (pair + u * stride)
                                                + 16u * lane8;

                    early[2 * u] = gp_load_relaxed_vec16(line);
                    early[2 * u + 1] = gp_load_relaxed_vec16(line + 128);
                }
            }
            if (!gp_ll128_poll<U>(x, ref, pair, stride, pairs, lane8)) {
                return (int) k;
            }
            GP_UNROLL
            for (int u = 0; u < U; ++u) {
                uint32_t p = pair + u * stride;
                gp_vec16_t a;
                gp_vec16_t b;

                a.w[0] = 0;
                a.w[1] = 0;
                b = a;
                if (WHOLE || p < pairs) {
                    const unsigned char *line = ref->slot + 256ull * p + 16u * lane8;

                    a = gp_load_relaxed_vec16(line);
                    b = gp_load_relaxed_vec16(line + 128);
                    a = GP_MUTATE(no_reread) ? early[2 * u] : a;
                    b = GP_MUTATE(no_reread) ? early[2 * u + 1] : b;
                }
                gp_ll128_unpack(a, b, lane8, &in[4 * u]);
            }
        }
        if (0 == k) {
            GP_UNROLL
            for (int i = 0; i < 4 * U; ++i) {
                acc[i] = in[i];
            }
        } else {
            F::template apply<4 * U>(args->rop, acc, in);
        }
    }
    if (s->flags & GP_STEP_OUTPUT) {
        uint32_t width = WHOLE ? 16 : gp_width(to, 16);

        GP_UNROLL
        for (int u = 0; u < U; ++u) {
            uint32_t p = pair + u * stride;

            GP_UNROLL
            for (int h = 0; h < 2; ++h) {
                if ((WHOLE || p < pairs) && (0 == h || 7 != lane8)) {
                    gp_vec16_t v;

                    v.w[0] = acc[4 * u + 2 * h];
                    v.w[1] = acc[4 * u + 2 * h + 1];
                    gp_user_store16<F, WHOLE>(to, gp_ll128_at(p, lane8, h), bytes, width, v);
                }
            }
        }
    }
    for (uint32_t k = 0; k < s->n_send; ++k) {
        const gp_kref_t *ref = &refs[s->n_in + k];
        uint64_t flag = gp_ll128_flag(ref->step);

        GP_UNROLL
        for (int u = 0; u < U; ++u) {
            uint32_t p = pair + u * stride;

            if (WHOLE || p < pairs) {
                unsigned char *line = ref->slot + 256ull * p + 16u * lane8;
                gp_vec16_t a;
                gp_vec16_t b;

                a.w[0] = acc[4 * u];
                a.w[1] = 7 == lane8 ? flag : acc[4 * u + 1];
                b.w[0] = 7 == lane8 ? acc[4 * u + 1] : acc[4 * u + 2];
                b.w[1] = 7 == lane8 && !GP_MUTATE(one_line_flag) ? flag : acc[4 * u + 3];
                gp_store_line_vec16(line, a);
                gp_store_line_vec16(line + 128, b);
            }
        }
    }
    return GP_WAITED;
}

/*
 * Move the chunk of a step; 8 lanes a pair, 4 pairs a warp and trip, times U where the chunk is
 * large.
 */
template <class F, int U>
GP_DEV int gp_ll128_move(const gp_kctx_t *x, const gp_kstep_t *s)
{
    uint32_t lane8 = gp_lane(x) % 8;
    uint32_t group = gp_lane(x) / 8;
    uint32_t stride = x->threads / 8;
    uint32_t pairs = (uint32_t) ((s->bytes + GP_LL128_PAIR_DATA_BYTES - 1)
                                 / GP_LL128_PAIR_DATA_BYTES);
    uint32_t whole = (uint32_t) (s->bytes / GP_LL128_PAIR_DATA_BYTES);
    uint32_t first = (x->thread & ~31u) / 8; /* of the warp: trips are equal for its lanes */
    const unsigned char *from = (const unsigned char *) x->args->send + s->offset_bytes;
    const unsigned char *to = (const unsigned char *) x->args->recv + s->offset_bytes;
    int failed;

    if (16 == gp_width(from, 16) && 16 == gp_width(to, 16)) {
        for (; first + 3 + (U - 1) * stride < whole; first += U * stride) {
            failed = gp_ll128_trip<F, U, true>(x, s, first + group, stride, pairs, lane8);
            if (GP_WAITED != failed) {
                return failed;
            }
        }
    }
    for (; first < pairs; first += 2 * stride) {
        failed = gp_ll128_trip<F, 2, false>(x, s, first + group, stride, pairs, lane8);
        if (GP_WAITED != failed) {
            return failed;
        }
    }
    return GP_WAITED;
}

template <class F>
struct gp_ll128_mover {
    GP_DEV void prepare(const gp_kctx_t *x)
    {
        (void) x;
    }

    GP_DEV void step(const gp_kctx_t *x, uint32_t i)
    {
        const gp_kstep_t *s = &gp_steps(x)[i];

        int gated = 0 != x->block->gated;

        if (!gp_any_warp(gp_is_dead(x)) && (0 != s->bytes || gated)) {
            int failed = GP_WAITED;

            if ((!gated || gp_warp_tails(x, s, &failed))
                && (0 == s->n_send || gp_warp_credit(x, s, &failed))) {
                failed = gp_ll128_move<F, F::ELEM_BYTES <= 2 ? 2 : 4>(x, s); /* registers */
            }
            gp_report(x, s, failed);
        }
        if ((s->flags & GP_KSTEP_INPUT) || gated) {
            gp_group_barrier(x);
            if (!gp_is_dead(x)) {
                gp_post_heads(x, s);
                if (gated) {
                    gp_post_tails<true>(x, s);
                }
            }
        }
    }
};

#endif /* GP_LL128_CUH */
