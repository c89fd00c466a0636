/*
 * gp_simple.cuh - a step over Simple connections.
 *
 * The slot is plain payload. Per step: some threads wait, one connection each; group barrier; all
 * move; group barrier; some threads post, one connection each. The barriers make the waiters'
 * acquires count for all threads, and all threads' accesses for the posters' releases.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIMPLE_CUH
#define GP_SIMPLE_CUH

#include "device/cuda/gp_kctx.cuh"
#include "device/cuda/gp_vec.cuh"

/* Tails of all inputs, credit of all sends. Result: see GP_WAITED. */
GP_DEV int gp_simple_wait(const gp_kctx_t *x, const gp_kstep_t *s)
{
    uint32_t n = s->n_in + s->n_send;

    for (uint32_t k = x->thread; k < n; k += x->threads) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + k];

        if (NULL != ref->slot
            && !(k < s->n_in ? gp_wait_tail(x, ref, gp_seen(x, ref))
                             : gp_wait_credit(x, ref, gp_seen(x, ref)))) {
            return (int) k;
        }
    }
    return GP_WAITED;
}

/*
 * U vectors of this thread, `stride` vectors apart from vector `v`. WHOLE: all are whole and the
 * user's buffers are aligned. A partial last vector is whole in the slots: what is behind the data
 * is never used.
 */
template <class F, int U, bool WHOLE>
GP_DEV void gp_simple_trip(const gp_kctx_t *x, const gp_kstep_t *s, uint32_t v, uint32_t stride,
                           uint32_t vecs)
{
    const gp_kargs_t *args = x->args;
    const gp_kref_t *refs = &gp_refs(x)[s->first_ref];
    const unsigned char *from = (const unsigned char *) args->send + s->offset_bytes;
    unsigned char *to = (unsigned char *) args->recv + s->offset_bytes;
    uint64_t bytes = s->bytes;
    uint64_t acc[2 * U];

    for (uint32_t k = 0; k < s->n_in; ++k) {
        const unsigned char *slot = refs[k].slot;
        uint32_t width = WHOLE ? 16 : gp_width(from, 16);
        uint64_t in[2 * U];

        GP_UNROLL
        for (int u = 0; u < U; ++u) {
            uint32_t i = v + u * stride;
            gp_vec16_t d;

            d.w[0] = 0;
            d.w[1] = 0;
            if (WHOLE || i < vecs) {
                d = NULL != slot ? gp_load_slot_vec16(slot + 16ull * i)
                                 : gp_user_load16<F, WHOLE>(from, 16ull * i, bytes, width);
            }
            in[2 * u] = d.w[0];
            in[2 * u + 1] = d.w[1];
        }
        if (0 == k) {
            GP_UNROLL
            for (int i = 0; i < 2 * U; ++i) {
                acc[i] = in[i];
            }
        } else {
            F::template apply<2 * U>(args->rop, acc, in);
        }
    }
    GP_UNROLL
    for (int u = 0; u < U; ++u) {
        uint32_t i = v + u * stride;
        gp_vec16_t d;

        d.w[0] = acc[2 * u];
        d.w[1] = acc[2 * u + 1];
        if (!WHOLE && i >= vecs) {
            continue;
        }
        if (s->flags & GP_STEP_OUTPUT) {
            gp_user_store16<F, WHOLE>(to, 16ull * i, bytes, WHOLE ? 16 : gp_width(to, 16), d);
        }
        for (uint32_t k = 0; k < s->n_send; ++k) {
            gp_store_slot_vec16(refs[s->n_in + k].slot + 16ull * i, d);
        }
    }
}

template <class F, int U>
GP_DEV void gp_simple_move(const gp_kctx_t *x, const gp_kstep_t *s)
{
    const unsigned char *from = (const unsigned char *) x->args->send + s->offset_bytes;
    const unsigned char *to = (const unsigned char *) x->args->recv + s->offset_bytes;
    uint32_t stride = x->threads;
    uint32_t whole = (uint32_t) (s->bytes / 16); /* of one slot: 32 bits are plenty */
    uint32_t vecs = (uint32_t) ((s->bytes + 15) / 16);
    uint32_t v = x->thread;

    if (16 == gp_width(from, 16) && 16 == gp_width(to, 16)) {
        for (; v + (U - 1) * stride < whole; v += U * stride) {
            gp_simple_trip<F, U, true>(x, s, v, stride, vecs);
        }
    }
    for (; v < vecs; v += 2 * stride) {
        gp_simple_trip<F, 2, false>(x, s, v, stride, vecs);
    }
}

template <class F>
struct gp_simple_mover {
    GP_DEV void prepare(const gp_kctx_t *x)
    {
        (void) x;
    }

    GP_DEV void step(const gp_kctx_t *x, uint32_t i)
    {
        const gp_kstep_t *s = &gp_steps(x)[i];

        int waits = 0 != (s->flags & GP_KSTEP_INPUT) || 0 != s->n_send;

        if (waits) {
            if (!gp_is_dead(x)) {
                gp_report(x, s, gp_simple_wait(x, s));
            }
            gp_group_barrier(x);
        }
        if (!gp_is_dead(x)) {
            gp_simple_move<F, 4>(x, s);
        }
        if (waits) {
            if (!GP_MUTATE(no_step_barrier)) {
                gp_group_barrier(x);
            }
            if (!gp_is_dead(x)) {
                gp_post_tails<false>(x, s);
                gp_post_heads(x, s);
            }
        }
    }
};

#endif /* GP_SIMPLE_CUH */
