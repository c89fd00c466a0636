/*
 * gp_ll.cuh - a step over LL connections.
 *
 * An item is what one thread moves at once: 8 bytes of payload, or one 16-byte element. Payload
 * word i travels in line i of the slot:
 *
 *   slot + 16 * i   | data low u32 | flag u32 | data high u32 | flag u32 |
 *
 * One 16-byte store writes a line and one 16-byte load reads it, but only each 8-byte half is taken
 * to be indivisible: each half carries its own flag, and both must be the step's. So a line needs
 * no ordering against any other, and the step no tail. Only heads need the group's barrier.
 *
 * An empty chunk has no lines: nobody waits, the step still posts its heads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_LL_CUH
#define GP_LL_CUH

#include "device/cuda/gp_kctx.cuh"
#include "device/cuda/gp_vec.cuh"

GP_DEV int gp_ll_ready(gp_vec16_t line, uint32_t flag)
{
    return (uint32_t) (line.w[0] >> 32) == flag
           && ((uint32_t) (line.w[1] >> 32) == flag || GP_MUTATE(one_flag));
}

GP_DEV uint64_t gp_ll_payload(gp_vec16_t line)
{
    return (uint64_t) (uint32_t) line.w[0] | line.w[1] << 32;
}

GP_DEV gp_vec16_t gp_ll_line(uint64_t payload, uint32_t flag)
{
    gp_vec16_t line;

    line.w[0] = (uint64_t) (uint32_t) payload | (uint64_t) flag << 32;
    line.w[1] = payload >> 32 | (uint64_t) flag << 32;
    return line;
}

/*
 * Word at byte `at` of the user's chunk; zero where the chunk has ended. WHOLE as in gp_ll_move().
 */
template <class F, bool WHOLE>
GP_DEV uint64_t gp_ll_user_load(const unsigned char *chunk, uint32_t at, uint32_t bytes)
{
    uint32_t width;

    if (WHOLE) {
        return gp_load_user_u64(chunk + at);
    }
    width = gp_width(chunk, 8);
    if (at + 8 <= bytes) {
        return gp_user_load8(chunk + at, width);
    }
    return gp_user_load_part(chunk + at, gp_part_width(width, F::ELEM_BYTES), bytes - at);
}

template <class F, bool WHOLE>
GP_DEV void gp_ll_user_store(unsigned char *chunk, uint32_t at, uint32_t bytes, uint64_t v)
{
    uint32_t width;

    if (WHOLE) {
        gp_store_user_u64(chunk + at, v);
        return;
    }
    width = gp_width(chunk, 8);
    if (at + 8 <= bytes || GP_MUTATE(edge)) {
        gp_user_store8(chunk + at, width, v);
    } else {
        gp_user_store_part(chunk + at, gp_part_width(width, F::ELEM_BYTES), bytes - at, v);
    }
}

/*
 * Lines of one input that were asked for: ask again until all carry the step's flag. 0: gave up.
 */
template <int U, int L>
GP_DEV int gp_ll_poll(const gp_kctx_t *x, const gp_kref_t *ref, gp_vec16_t *lines, uint32_t item,
                      uint32_t items)
{
    uint32_t flag = gp_ll_flag(ref->step);
    uint32_t polls = 0;

    for (;;) {
        int ready = 1;

        GP_UNROLL
        for (int u = 0; u < U * L; ++u) {
            ready &= item + (u / L) * x->threads >= items || gp_ll_ready(lines[u], flag);
        }
        if (ready) {
            return 1;
        }
        if (gp_poll(x, &polls, GP_WAIT_DATA, ref)) {
            return 0;
        }
        GP_UNROLL
        for (int u = 0; u < U * L; ++u) {
            uint32_t i = item + (u / L) * x->threads;

            if (i < items) {
                lines[u] = gp_load_relaxed_vec16(ref->slot + 16u * (i * L + u % L));
            }
        }
    }
}

/*
 * Move the chunk of a step. C inputs are asked for before the first is checked, U items per thread:
 * for few inputs more items, for many inputs more inputs. WHOLE: the chunk is whole words and 8
 * divides the addresses of both of the user's. A chunk fits a slot: 32 bits are plenty. Result: see
 * GP_WAITED.
 */
template <class F, int C, int U, bool WHOLE>
GP_DEV int gp_ll_move(const gp_kctx_t *x, const gp_kstep_t *s)
{
    enum { L = F::UNIT_WORDS }; /* lines of an item */
    const gp_kargs_t *args = x->args;
    const gp_kref_t *refs = &gp_refs(x)[s->first_ref];
    uint32_t bytes = (uint32_t) s->bytes;
    uint32_t items = (bytes + 8 * L - 1) / (8 * L);
    int credited = 0 == s->n_send;
    uint64_t head = gp_warp_credit_ask(x, s);

    /* Trips are equal for all lanes of a warp: gp_warp_credit() votes. */
    for (uint32_t base = x->thread & ~31u; base < items; base += x->threads * U) {
        uint32_t item = base + gp_lane(x);
        uint64_t acc[U * L];

        for (uint32_t k0 = 0; k0 < s->n_in; k0 += C) {
            gp_vec16_t in[C][U * L];

            GP_UNROLL
            for (int j = 0; j < C; ++j) { /* ask */
                const unsigned char *slot = k0 + j < s->n_in ? refs[k0 + j].slot : NULL;

                GP_UNROLL
                for (int u = 0; u < U * L; ++u) {
                    uint32_t i = item + (u / L) * x->threads;

                    in[j][u].w[0] = 0;
                    in[j][u].w[1] = 0;
                    if (k0 + j >= s->n_in || i >= items) {
                        continue;
                    }
                    i = i * L + u % L;
                    if (NULL != slot) {
                        in[j][u] = gp_load_relaxed_vec16(slot + 16u * i);
                    } else {
                        in[j][u].w[0] = gp_ll_user_load<F, WHOLE>(
                            (const unsigned char *) args->send + s->offset_bytes, 8u * i, bytes);
                    }
                }
            }
            if (!credited) { /* while the lines are under way */
                int failed = GP_WAITED;

                if (!gp_warp_credit_asked(x, s, head, &failed)) {
                    return failed;
                }
                credited = 1;
            }
            GP_UNROLL
            for (int j = 0; j < C; ++j) { /* check and reduce, in list order */
                if (k0 + j < s->n_in) {
                    const gp_kref_t *ref = &refs[k0 + j];
                    uint64_t v[U * L];

                    if (NULL == ref->slot) {
                        GP_UNROLL
                        for (int u = 0; u < U * L; ++u) {
                            v[u] = in[j][u].w[0];
                        }
                    } else {
                        if (!gp_ll_poll<U, L>(x, ref, in[j], item, items)) {
                            return (int) k0 + j; /* no votes behind the first trip's credit */
                        }
                        GP_UNROLL
                        for (int u = 0; u < U * L; ++u) {
                            v[u] = gp_ll_payload(in[j][u]);
                        }
                    }
                    if (0 == k0 + j) {
                        GP_UNROLL
                        for (int u = 0; u < U * L; ++u) {
                            acc[u] = v[u];
                        }
                    } else {
                        F::template apply<U * L>(args->rop, acc, v);
                    }
                }
            }
        }
        if (s->flags & GP_STEP_OUTPUT) {
            unsigned char *to = (unsigned char *) args->recv + s->offset_bytes;

            GP_UNROLL
            for (int u = 0; u < U * L; ++u) {
                uint32_t i = item + (u / L) * x->threads;

                if (i < items) {
                    gp_ll_user_store<F, WHOLE>(to, 8u * (i * L + u % L), bytes, acc[u]);
                }
            }
        }
        for (uint32_t k = 0; k < s->n_send; ++k) {
            const gp_kref_t *ref = &refs[s->n_in + k];
            uint32_t flag = gp_ll_flag(ref->step);

            GP_UNROLL
            for (int u = 0; u < U * L; ++u) {
                uint32_t i = item + (u / L) * x->threads;

                if (i < items) {
                    gp_store_relaxed_vec16(ref->slot + 16u * (i * L + u % L),
                                           gp_ll_line(acc[u], flag));
                }
            }
        }
    }
    return GP_WAITED;
}

template <class F>
struct gp_ll_mover {
    GP_DEV void step(const gp_kctx_t *x, const gp_kstep_t *s)
    {
        if (!gp_any_warp(gp_is_dead(x))) {
            uintptr_t both = (uintptr_t) x->args->send | (uintptr_t) x->args->recv;
            int failed;

            if (0 != (((uint32_t) both | (uint32_t) s->offset_bytes | (uint32_t) s->bytes) & 7u)) {
                failed = gp_ll_move<F, 2, 1, false>(x, s);
            } else if (s->n_in <= 2) {
                failed = gp_ll_move<F, 2, 2 / F::UNIT_WORDS, true>(x, s);
            } else {
                failed = gp_ll_move<F, 4 / F::UNIT_WORDS, 1, true>(x, s);
            }
            gp_report(x, s, failed);
        }
        if (s->flags & GP_KSTEP_INPUT) {
            if (!GP_MUTATE(no_step_barrier)) {
                gp_group_barrier(x);
            }
            if (!gp_is_dead(x)) {
                gp_post_heads(x, s);
            }
        }
    }
};

#endif /* GP_LL_CUH */
