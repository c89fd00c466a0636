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

/*
 * Make the step's gp_kfast_t. By one lane, of a step that is decoded; usable stays 0 where the step
 * is not of that kind.
 */
template <class F>
GP_DEV void gp_ll_prepare(const gp_kctx_t *x, const gp_kstep_t *s, gp_kfast_t *f)
{
    const gp_kargs_t *args = x->args;
    uint32_t from = 0;

    f->usable = 0;
    if (F::UNIT_WORDS != 1 || s->n_in > 3 || s->n_send > 2 || s->bytes > 8u * x->threads) {
        return;
    }
    f->own = NULL;
    f->own_at = (uint8_t) s->n_in;
    for (uint32_t k = 0; k < s->n_in; ++k) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + k];

        if (NULL == ref->slot) {
            if (NULL != f->own) {
                return;
            }
            f->own = (const unsigned char *) args->send + s->offset_bytes;
            f->own_at = (uint8_t) k;
        } else {
            if (2 == from) {
                return;
            }
            f->from[from] = ref->slot;
            f->head[from] = gp_conns(x)[ref->conn].head;
            f->post[from] = ref->step + 1;
            f->recv_flag[from] = gp_ll_flag(ref->step);
            f->recv_conn[from] = (uint16_t) ref->conn;
            ++from;
        }
    }
    for (uint32_t k = 0; k < s->n_send; ++k) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + s->n_in + k];
        uint32_t n_slots = gp_conns(x)[ref->conn].n_slots;

        f->to[k] = ref->slot;
        f->need[k] = ref->step + 1 > n_slots ? ref->step + 1 - n_slots : 0; /* gp_credit() */
        f->send_flag[k] = gp_ll_flag(ref->step);
        f->send_conn[k] = (uint16_t) ref->conn;
    }
    f->out = (s->flags & GP_STEP_OUTPUT) ? (unsigned char *) args->recv + s->offset_bytes : NULL;
    f->bytes = (uint32_t) s->bytes;
    f->n_in = (uint8_t) s->n_in;
    f->n_from = (uint8_t) from;
    f->n_to = (uint8_t) s->n_send;
    f->aligned = 0 == (((uint32_t) (uintptr_t) f->own | (uint32_t) (uintptr_t) f->out) & 7u);
    f->usable = 1;
}

/*
 * Waits of a fast step give up with one of these and the number of the connection, 0 to 1, added:
 * reported at the step's end, as in gp_report().
 */
#define GP_FAST_NO_DATA 1
#define GP_FAST_NO_CREDIT 3

GP_DEV void gp_ll_fast_report(const gp_kctx_t *x, const gp_kfast_t *f, int failed)
{
    if (failed >= GP_FAST_NO_CREDIT) {
        const gp_kconn_t *c = &gp_conns(x)[f->send_conn[failed - GP_FAST_NO_CREDIT]];

        gp_give_up(x->block, x->args, GP_WAIT_CREDIT, c->peer,
                   f->need[failed - GP_FAST_NO_CREDIT] + c->n_slots - 1);
    } else if (failed >= GP_FAST_NO_DATA) {
        gp_give_up(x->block, x->args, GP_WAIT_DATA,
                   gp_conns(x)[f->recv_conn[failed - GP_FAST_NO_DATA]].peer,
                   f->post[failed - GP_FAST_NO_DATA] - 1);
    }
}

/*
 * A step of one trip. Every lane waits for its own line and asks for credit itself; what lanes hand
 * each other about credit (seen) is ordered by the __syncwarp of the same step. The result is sent
 * before it is written for the user: somebody waits for it.
 */
template <class F>
GP_DEV void gp_ll_fast(const gp_kctx_t *x, const gp_kfast_t *f)
{
    uint32_t at = 8u * x->thread;
    uint32_t n_from = f->n_from;
    uint32_t n_to = f->n_to;
    uint32_t bytes = f->bytes;
    int active = at < bytes && !gp_is_dead(x);
    int failed = 0;
    gp_vec16_t line[2];
    uint64_t own[1] = {0};

    GP_UNROLL
    for (uint32_t k = 0; k < 2; ++k) {
        line[k].w[0] = 0;
        line[k].w[1] = 0;
        if (active && k < n_from) {
            line[k] = gp_load_relaxed_vec16(f->from[k] + 16u * x->thread);
        }
    }
    if (active && NULL != f->own) {
        own[0] = f->aligned && at + 8 <= bytes ? gp_load_user_u64(f->own + at)
                                               : gp_ll_user_load<F, false>(f->own, at, bytes);
    }
    GP_UNROLL
    for (uint32_t k = 0; k < 2; ++k) { /* while the lines are under way */
        if (active && k < n_to && !GP_MUTATE(no_credit)) {
            uint32_t conn = f->send_conn[k];
            uint64_t need = f->need[k];
            uint32_t polls = 0;

            if (gp_shared_load_u64(gp_seen_of(x, conn)) < need) {
                uint64_t head;

                do {
                    head = gp_load_head_u64(gp_conns(x)[conn].head);
                } while (head < need
                         && !gp_poll_step(x, &polls, GP_WAIT_CREDIT, conn, need));
                gp_shared_store_u64(gp_seen_of(x, conn), head);
                failed = head < need ? GP_FAST_NO_CREDIT + (int) k : failed;
            }
        }
    }
    if (!GP_MUTATE(no_syncwarp)) {
        gp_sync_warp();
    }
    if (active) {
        uint64_t acc[1];
        uint64_t in[2][1];

        GP_UNROLL
        for (uint32_t k = 0; k < 2; ++k) {
            if (k < n_from) {
                uint32_t flag = f->recv_flag[k];
                uint32_t polls = 0;

                while (0 == failed && !gp_ll_ready(line[k], flag)) {
                    if (gp_poll_step(x, &polls, GP_WAIT_DATA, f->recv_conn[k], f->post[k] - 1)) {
                        failed = GP_FAST_NO_DATA + (int) k;
                    } else {
                        line[k] = gp_load_relaxed_vec16(f->from[k] + 16u * x->thread);
                    }
                }
            }
            in[k][0] = gp_ll_payload(line[k]);
        }
        /* In list order. */
        acc[0] = 0 == f->own_at ? own[0] : in[0][0];
        for (uint32_t k = 1; k < f->n_in; ++k) {
            uint64_t next[1];

            next[0] = k == f->own_at ? own[0] : k - (f->own_at < k) == 0 ? in[0][0] : in[1][0];
            F::template apply<1>(x->args->rop, acc, next);
        }
        if (0 == failed) {
            GP_UNROLL
            for (uint32_t k = 0; k < 2; ++k) {
                if (k < n_to) {
                    gp_store_relaxed_vec16(f->to[k] + 16u * x->thread,
                                           gp_ll_line(acc[0], f->send_flag[k]));
                }
            }
            if (NULL != f->out) {
                if (f->aligned && at + 8 <= bytes) {
                    gp_store_user_u64(f->out + at, acc[0]);
                } else {
                    gp_ll_user_store<F, false>(f->out, at, bytes, acc[0]);
                }
            }
        }
        gp_ll_fast_report(x, f, failed);
    }
    if (0 != n_from) {
        if (!GP_MUTATE(no_step_barrier)) {
            gp_group_barrier(x);
        }
        if (x->threads - 1 - x->thread < n_from && !gp_is_dead(x)) {
            uint32_t k = x->threads - 1 - x->thread;

            if (GP_MUTATE(relaxed_head)) {
                gp_store_relaxed_u64(f->head[k], f->post[k]);
            } else {
                gp_store_head_u64(f->head[k], f->post[k]); /* see gp_post_heads() */
            }
        }
    }
}

template <class F>
struct gp_ll_mover {
    /* The first warp, when a window is decoded. */
    GP_DEV void prepare(const gp_kctx_t *x)
    {
        uint32_t i = gp_lane(x);

        gp_sync_warp();
        if (i < x->block->windows[x->stream].n) {
            gp_ll_prepare<F>(x, &gp_steps(x)[i], &gp_fasts(x)[i]);
        }
    }

    GP_DEV void step(const gp_kctx_t *x, uint32_t i)
    {
        const gp_kstep_t *s = &gp_steps(x)[i];

        if (gp_fasts(x)[i].usable) {
            gp_ll_fast<F>(x, &gp_fasts(x)[i]);
            return;
        }
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
