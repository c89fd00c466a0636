/*
 * gp_kctx.cuh - what a thread knows, what it waits for and what it posts.
 *
 * Owns the context and the counters' side of a step, the same for all protocols and families.
 * Nothing in a kernel knows an algorithm: a block runs the program of channel blockIdx.x, its warps
 * divided among the program's streams.
 *
 * Abort: a wait that sees GP_KABORT_YES in status->abort reports itself if it is the first of the
 * call, marks the block dead and ends. From then on nothing is stored to peers behind a barrier
 * (whoever posts a counter reads `dead` after that barrier), no wait polls, and all barriers are still
 * met.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_KCTX_CUH
#define GP_KCTX_CUH

#include "device/cuda/gp_kargs.h"

#ifndef GP_ABORT_POLLS
#define GP_ABORT_POLLS 4096u /* polls between two looks at status->abort; a power of two */
#endif

/*
 * Planted bugs, for the kernel tests: they compile the kernels with -DGP_MUTATE_<bug> and expect to
 * find it. Everywhere else GP_MUTATE() is a constant 0.
 */
#define GP_MUTATE_ARG_1 0,
#define GP_MUTATE_SECOND(a, b, ...) b
#define GP_MUTATE_PICK(...) GP_MUTATE_SECOND(__VA_ARGS__)
#define GP_MUTATE_PASTE(value) GP_MUTATE_PICK(GP_MUTATE_ARG_##value 1, 0, 0)
#define GP_MUTATE_VALUE(value) GP_MUTATE_PASTE(value)
#define GP_MUTATE(bug) GP_MUTATE_VALUE(GP_MUTATE_##bug)

/* Per thread, in registers: short on purpose, whatever is rarely used lies in gp_kblock_t. */
typedef struct gp_kctx {
    const gp_kargs_t *args;
    gp_kblock_t *block;
    uint32_t window_at;       /* window of this stream, in bytes from block */
    uint32_t seen_at;         /* this warp's copy of seen, or the block's, likewise */
    uint32_t stream;
    uint32_t thread;          /* within the stream's group of warps */
    uint32_t threads;
} gp_kctx_t;

GP_DEV uint32_t gp_lane(const gp_kctx_t *x)
{
    return x->thread % 32u;
}

GP_DEV gp_kstep_t *gp_steps(const gp_kctx_t *x)
{
    return (gp_kstep_t *) ((unsigned char *) x->block + x->window_at);
}

GP_DEV gp_kref_t *gp_refs(const gp_kctx_t *x)
{
    return (gp_kref_t *) (gp_steps(x) + GP_KWINDOW_STEPS);
}

GP_DEV uint64_t *gp_seen_of(const gp_kctx_t *x, uint32_t conn)
{
    return (uint64_t *) ((unsigned char *) x->block + x->seen_at) + conn;
}

GP_DEV uint64_t *gp_seen(const gp_kctx_t *x, const gp_kref_t *ref)
{
    return gp_seen_of(x, ref->conn);
}

/* LL only. */
GP_DEV gp_kfast_t *gp_fasts(const gp_kctx_t *x)
{
    return (gp_kfast_t *) ((unsigned char *) x->block + x->window_at) - GP_KWINDOW_STEPS;
}

GP_DEV const gp_kconn_t *gp_conns(const gp_kctx_t *x)
{
    return gp_kchan_conns(&x->block->chan);
}

/* All threads of the stream; orders their memory. */
GP_DEV void gp_group_barrier(const gp_kctx_t *x)
{
    gp_barrier_group(1 + x->stream, x->threads);
}

GP_DEV int gp_is_dead(const gp_kctx_t *x)
{
    return 0 != gp_shared_load_u32(&x->block->dead);
}

/*
 * Mark the block dead and say what was waited for; the first of all blocks is the one that is
 * heard.
 */
GP_DEV_NOINLINE void gp_give_up(gp_kblock_t *block, const gp_kargs_t *args, uint32_t kind,
                                uint32_t peer, uint64_t step)
{
    gp_karrive_t *arrive = (gp_karrive_t *) args->arrived;
    gp_wait_info_t *wait = &args->status->wait;

    gp_shared_store_u32(&block->dead, 1);
    if (0 == (GP_KARRIVE_ABORTED
              & gp_atomic_or_acq_rel_u64(&arrive->arrived, GP_KARRIVE_ABORTED))) {
        gp_store_relaxed_u32(&wait->kind, kind);
        gp_store_relaxed_u32(&wait->channel, blockIdx.x);
        gp_store_relaxed_u32(&wait->peer, peer);
        gp_store_relaxed_u64(&wait->step, step);
    }
}

/*
 * Waits return -1 when they succeeded, or the index of the reference of the step that they waited
 * for when they gave up. They do not report it themselves: a call in the middle of a batch would
 * cost registers. The step's last act is gp_report().
 */
#define GP_WAITED (-1)

GP_DEV void gp_report(const gp_kctx_t *x, const gp_kstep_t *s, int failed)
{
    if (GP_WAITED != failed) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + (uint32_t) failed];

        gp_give_up(x->block, x->args, (uint32_t) failed < s->n_in ? GP_WAIT_DATA : GP_WAIT_CREDIT,
                   gp_conns(x)[ref->conn].peer, ref->step);
    }
}

/*
 * One unsuccessful poll; *polls counts them, from 0. Non-zero: give up. Asked what it waits for, a
 * thread says so; of many the last one is heard.
 */
GP_DEV int gp_poll_step(const gp_kctx_t *x, uint32_t *polls, uint32_t kind, uint32_t conn,
                        uint64_t step)
{
    uint32_t word;

    gp_poll_pause(kind, step, gp_conns(x)[conn].peer);
    if (0 != (++*polls & (GP_ABORT_POLLS - 1u))) {
        return 0;
    }
    word = gp_load_relaxed_u32(&x->args->status->abort);
    if (GP_KABORT_ASK == word) {
        gp_vec16_t asked;

        asked.w[0] = (uint64_t) kind | (uint64_t) blockIdx.x << 8
                     | (uint64_t) gp_conns(x)[conn].peer << 32;
        asked.w[1] = step;
        gp_store_relaxed_vec16(x->args->status->asked, asked);
        return 0;
    }
    return GP_KABORT_NO != word;
}

GP_DEV int gp_poll(const gp_kctx_t *x, uint32_t *polls, uint32_t kind, const gp_kref_t *ref)
{
    return gp_poll_step(x, polls, kind, ref->conn, ref->step);
}

/*
 * Wait for the slot of a send; *seen is private to the warp of who waits. Pairs with the receiver's
 * post of head; see gp_load_head_u64() for what orders the stores that follow.
 */
GP_DEV int gp_wait_credit(const gp_kctx_t *x, const gp_kref_t *ref, uint64_t *seen)
{
    const gp_kconn_t *c = &gp_conns(x)[ref->conn];
    uint64_t head = gp_shared_load_u64(seen);
    uint32_t polls = 0;

    while (!GP_MUTATE(no_credit) && !gp_credit(head, ref->step, c->n_slots)) {
        head = gp_load_head_u64(c->head);
        if (!gp_credit(head, ref->step, c->n_slots) && gp_poll(x, &polls, GP_WAIT_CREDIT, ref)) {
            return 0;
        }
    }
    gp_shared_store_u64(seen, head);
    return 1;
}

/*
 * Ask for the credit of this lane's first send, without waiting for the answer: the load is under way
 * together with those of the data. Hand the result to gp_warp_credit_asked().
 */
GP_DEV uint64_t gp_warp_credit_ask(const gp_kctx_t *x, const gp_kstep_t *s)
{
    uint32_t k = gp_lane(x);
    uint64_t head = 0;

    if (k < s->n_send) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + s->n_in + k];
        const gp_kconn_t *c = &gp_conns(x)[ref->conn];

        head = gp_shared_load_u64(gp_seen(x, ref));
        if (!gp_credit(head, ref->step, c->n_slots)) {
            head = gp_load_head_u64(c->head);
        }
    }
    return head;
}

/* Wait for the tail of an input. Acquires the sender's release of tail. */
GP_DEV int gp_wait_tail(const gp_kctx_t *x, const gp_kref_t *ref, uint64_t *seen)
{
    const gp_kconn_t *c = &gp_conns(x)[ref->conn];
    uint64_t tail = *seen;
    uint32_t polls = 0;

    while (tail <= ref->step) {
        tail = GP_MUTATE(relaxed_tail) ? gp_load_relaxed_u64(c->tail)
                                       : gp_load_acquire_u64(c->tail);
        if (tail <= ref->step && gp_poll(x, &polls, GP_WAIT_DATA, ref)) {
            return 0;
        }
    }
    *seen = tail;
    return 1;
}

/*
 * Credit for all sends of a step, by one warp for itself: lane k waits for send k, having asked
 * before; __syncwarp hands what it knows to the others. *failed is a lane's own; 0: some lane gave up,
 * for all lanes alike.
 */
GP_DEV int gp_warp_credit_asked(const gp_kctx_t *x, const gp_kstep_t *s, uint64_t head,
                                int *failed)
{
    if (gp_lane(x) < s->n_send) {
        gp_shared_store_u64(gp_seen(x, &gp_refs(x)[s->first_ref + s->n_in + gp_lane(x)]), head);
    }
    for (uint32_t k = gp_lane(x); k < s->n_send && GP_WAITED == *failed; k += 32) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + s->n_in + k];

        if (!gp_wait_credit(x, ref, gp_seen(x, ref))) {
            *failed = (int) (s->n_in + k);
        }
    }
    if (GP_MUTATE(no_syncwarp)) {
        return GP_WAITED == *failed;
    }
    gp_sync_warp();
    return !gp_any_warp(GP_WAITED != *failed);
}

GP_DEV int gp_warp_credit(const gp_kctx_t *x, const gp_kstep_t *s, int *failed)
{
    return gp_warp_credit_asked(x, s, gp_warp_credit_ask(x, s), failed);
}

/* The same for the tails of all gated inputs. */
GP_DEV int gp_warp_tails(const gp_kctx_t *x, const gp_kstep_t *s, int *failed)
{
    for (uint32_t k = gp_lane(x); k < s->n_in && GP_WAITED == *failed; k += 32) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + k];

        if (NULL != ref->slot && gp_conns(x)[ref->conn].gated && !GP_MUTATE(no_gate)
            && !gp_wait_tail(x, ref, gp_seen(x, ref))) {
            *failed = (int) k;
        }
    }
    gp_sync_warp();
    return !gp_any_warp(GP_WAITED != *failed);
}

/*
 * Post the heads of a step's inputs: after the group barrier that follows the last load of their slots.
 * Acquired by gp_wait_credit() of the sender, or by its host executor. What a thread loaded it has
 * used (compared, stored) before it came to the barrier, so the loads are complete: see
 * gp_store_head_u64().
 */
GP_DEV void gp_post_heads(const gp_kctx_t *x, const gp_kstep_t *s)
{
    for (uint32_t k = x->threads - 1 - x->thread; k < s->n_in; k += x->threads) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + k];

        if (NULL == ref->slot) {
            continue;
        }
        if (GP_MUTATE(relaxed_head)) {
            gp_store_relaxed_u64(gp_conns(x)[ref->conn].head, ref->step + 1);
        } else {
            gp_store_head_u64(gp_conns(x)[ref->conn].head, ref->step + 1);
        }
    }
}

/*
 * Post the tails of a step's sends, with the data bytes of the slot: after the group barrier that
 * follows the last store. Release; acquired by gp_wait_tail() of the receiver. GATED: only gated
 * connections.
 */
template <bool GATED>
GP_DEV void gp_post_tails(const gp_kctx_t *x, const gp_kstep_t *s)
{
    for (uint32_t k = x->thread; k < s->n_send; k += x->threads) {
        const gp_kref_t *ref = &gp_refs(x)[s->first_ref + s->n_in + k];
        const gp_kconn_t *c = &gp_conns(x)[ref->conn];

        if (GATED && !c->gated) {
            continue;
        }
        gp_store_relaxed_u64(&c->sizes[ref->slot_index], s->bytes);
        if (GP_MUTATE(relaxed_post)) {
            gp_store_relaxed_u64(c->tail, ref->step + 1);
        } else {
            gp_store_release_u64(c->tail, ref->step + 1);
        }
    }
}

#endif /* GP_KCTX_CUH */
