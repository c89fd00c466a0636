/*
 * gp_ksetup.cuh - the beginning and the end of a call in one block.
 *
 * Owns the dynamic shared memory (layout: gp_kargs.h), the connections' state between calls (in the
 * blob: read at the beginning, written at the end) and the completion of a call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_KSETUP_CUH
#define GP_KSETUP_CUH

#include "device/cuda/gp_kctx.cuh"

/*
 * Copy `bytes` (a multiple of 8) of the blob to shared memory, all threads of the block together.
 */
GP_DEV void gp_copy_words(void *to, const void *from, uint32_t bytes)
{
    for (uint32_t i = threadIdx.x; i < bytes / 8u; i += blockDim.x) {
        ((uint64_t *) to)[i] = ((const uint64_t *) from)[i];
    }
}

/* The connection `i` of the channel where it lives between calls: receive ones first. */
GP_DEV gp_conn_t *gp_blob_conn(const gp_kargs_t *args, const gp_kchan_t *chan, uint32_t i)
{
    return i < chan->n_recv ? (gp_conn_t *) (args->blob + chan->recv_conns_off) + i
                            : (gp_conn_t *) (args->blob + chan->send_conns_off)
                                  + (i - chan->n_recv);
}

/* Fill shared memory and the context. Ends with a block barrier. */
GP_DEV void gp_setup(gp_kctx_t *x, const gp_kargs_t *args, unsigned char *shared, uint32_t protocol)
{
    gp_kblock_t *block = (gp_kblock_t *) shared;
    const gp_kchan_t *chan = &block->chan;
    uint32_t copies = gp_kseen_copies(protocol, blockDim.x);
    uint32_t warps = blockDim.x / 32u;
    uint32_t warp = threadIdx.x / 32u;
    gp_kconn_t *conns;
    uint32_t n_conns;
    uint32_t i;

    x->args = args;
    x->block = block;
    gp_copy_words(&block->chan, (const gp_kchan_t *) args->blob + blockIdx.x, sizeof(gp_kchan_t));
    if (0 == threadIdx.x) {
        block->dead = 0;
        block->gated = 0;
    }
    gp_barrier_block();

    /* The parts of shared memory. */
    n_conns = chan->n_recv + chan->n_send;
    shared += gp_k16((uint32_t) sizeof(gp_kblock_t));
    conns = (gp_kconn_t *) shared;
    shared += n_conns * (uint32_t) sizeof(gp_kconn_t);
    unsigned char *windows = shared;
    shared += chan->n_streams * gp_kwindow_bytes(chan);
    uint64_t *seen = (uint64_t *) shared;
    shared += gp_k16(copies * n_conns * 8u);

    /* The program: here if it is short, else where it lies. */
    {
        const unsigned char *streams = args->blob + chan->streams_off;
        const unsigned char *steps = args->blob + chan->steps_off;
        const unsigned char *refs = args->blob + chan->refs_off;

        if (gp_kraw_bytes(chan) <= GP_KRAW_MAX_BYTES) {
            uint32_t streams_bytes = chan->n_streams * (uint32_t) sizeof(gp_stream_t);
            uint32_t steps_bytes = chan->n_steps * (uint32_t) sizeof(gp_step_t);

            gp_copy_words(shared, streams, streams_bytes);
            streams = shared;
            shared += gp_k16(streams_bytes);
            gp_copy_words(shared, steps, steps_bytes);
            steps = shared;
            shared += gp_k16(steps_bytes);
            gp_copy_words(shared, refs, chan->n_refs * (uint32_t) sizeof(gp_ref_t));
            refs = shared;
        }
        if (threadIdx.x < chan->n_streams) {
            gp_kwindow_t *window = &block->windows[threadIdx.x];

            window->loop = 0;
            window->steps = 0;
            window->index = 0;
            window->n = 0;
        }
        if (0 == threadIdx.x) {
            block->seen = seen;
            block->prog_streams = (const gp_stream_t *) streams;
            block->prog_steps = (const gp_step_t *) steps;
            block->prog_refs = (const gp_ref_t *) refs;
        }
    }

    for (i = threadIdx.x; i < n_conns; i += blockDim.x) {
        const gp_conn_t *from = gp_blob_conn(args, chan, i);
        const gp_link_t *link = i < chan->n_recv
                                    ? (const gp_link_t *) (args->blob + chan->recv_links_off) + i
                                    : (const gp_link_t *) (args->blob + chan->send_links_off)
                                          + (i - chan->n_recv);
        gp_kconn_t *to = &conns[i];

        to->slots = from->slots;
        to->tail = from->tail;
        to->head = from->head;
        to->sizes = from->sizes;
        to->base = from->step;
        to->slot_bytes = from->slot_bytes;
        to->uses = link->uses;
        to->n_slots = from->n_slots;
        to->gated = from->gated;
        to->peer = from->peer;
        if (from->gated) {
            gp_shared_store_u32(&block->gated, 1);
        }
    }
    for (i = threadIdx.x; i < copies * n_conns; i += blockDim.x) {
        seen[i] = gp_blob_conn(args, chan, i % n_conns)->seen;
    }

    /* Warps divided evenly; the first streams get one more when they do not divide. */
    {
        uint32_t each = warps / chan->n_streams;
        uint32_t more = warps % chan->n_streams;
        uint32_t first;
        uint32_t own;

        if (warp < more * (each + 1)) {
            x->stream = warp / (each + 1);
            first = x->stream * (each + 1);
            own = each + 1;
        } else {
            x->stream = more + (warp - more * (each + 1)) / each;
            first = more + x->stream * each;
            own = each;
        }
        x->thread = (warp - first) * 32u + threadIdx.x % 32u;
        x->threads = own * 32u;
    }
    x->window_at = (uint32_t) (windows - (unsigned char *) block)
                   + x->stream * gp_kwindow_bytes(chan);
    x->seen_at = (uint32_t) ((unsigned char *) seen - (unsigned char *) block)
                 + (1 == copies ? 0 : warp * n_conns * 8u);
    gp_barrier_block();
}

/*
 * LL, before the first step of the call: wait until all send FIFOs of the channel are drained (head
 * has reached the next step: all slots freed), then make them all zero, so that no flag of an age
 * where it could be taken for a new one is left.
 */
GP_DEV void gp_zero_fifos(const gp_kctx_t *x)
{
    uint32_t n_recv = x->block->chan.n_recv;
    uint32_t n_conns = n_recv + x->block->chan.n_send;

    for (uint32_t i = n_recv + threadIdx.x; i < n_conns; i += blockDim.x) {
        const gp_kconn_t *c = &gp_conns(x)[i];
        const gp_kref_t all = {NULL, c->base, i, 0};
        uint32_t polls = 0;

        while (gp_load_acquire_u64(c->head) < c->base) {
            if (gp_poll(x, &polls, GP_WAIT_CREDIT, &all)) {
                gp_give_up(x->block, x->args, GP_WAIT_CREDIT, c->peer, c->base);
                break;
            }
        }
    }
    gp_barrier_block();
    if (!gp_is_dead(x)) {
        gp_vec16_t zero;
        zero.w[0] = 0;
        zero.w[1] = 0;
        for (uint32_t i = n_recv; i < n_conns; ++i) {
            const gp_kconn_t *c = &gp_conns(x)[i];
            uint64_t bytes = c->slot_bytes * c->n_slots;

            for (uint64_t at = 16u * threadIdx.x; at < bytes; at += 16u * blockDim.x) {
                gp_store_relaxed_vec16(c->slots + at, zero);
            }
        }
    }
    gp_barrier_block();
}

/* The last block of the call: fill the record and say that the call is complete. One thread. */
GP_DEV void gp_complete(const gp_kctx_t *x, uint32_t protocol, int failed)
{
    gp_karrive_t *arrive = (gp_karrive_t *) x->args->arrived;
    gp_kstatus_t *status = x->args->status;
    gp_exec_record_t *record = &status->record;

    if (failed) {
        gp_store_relaxed_u64(&status->failed, x->args->seq);
    } else {
        gp_store_relaxed_u32(&record->algorithm, x->block->chan.algorithm);
        gp_store_relaxed_u32(&record->protocol, protocol);
        gp_store_relaxed_u32(&record->channels, gridDim.x);
        gp_store_relaxed_u32(&record->threads, blockDim.x);
        gp_store_relaxed_u64(&record->loops, x->args->geom.loops);
        gp_store_relaxed_u64(&record->chunk_elems, x->args->geom.chunk_elems);
        gp_store_relaxed_u64(&record->steps, gp_load_relaxed_u64(&arrive->steps));
    }
    gp_store_relaxed_u64(&arrive->steps, 0);
    gp_store_relaxed_u32(&arrive->arrived, 0);
    gp_store_release_u64(&status->done, x->args->seq); /* acquired by the host's poll */
}

/* Advance the connections in the blob and arrive. All threads of the block. */
GP_DEV void gp_finish(const gp_kctx_t *x, uint32_t protocol)
{
    const gp_kargs_t *args = x->args;
    gp_karrive_t *arrive = (gp_karrive_t *) args->arrived;
    const gp_kchan_t *chan = &x->block->chan;
    uint32_t copies = gp_kseen_copies(protocol, blockDim.x);
    uint32_t n_conns = chan->n_recv + chan->n_send;
    uint32_t i;

    gp_barrier_block();
    if (!gp_is_dead(x)) {
        for (i = threadIdx.x; i < n_conns; i += blockDim.x) {
            gp_conn_t *to = gp_blob_conn(args, chan, i);
            const gp_kconn_t *c = &gp_conns(x)[i];
            uint64_t seen = 0;

            for (uint32_t k = 0; k < copies; ++k) { /* any is true; the largest is the latest */
                uint64_t v = x->block->seen[k * n_conns + i];
                seen = v > seen ? v : seen;
            }
            to->step = c->base + args->geom.loops * c->uses;
            to->seen = seen;
            if (GP_PROTO_LL == protocol && args->ll_zero && i >= chan->n_recv) {
                to->zeroed = c->base;
            }
        }
    }
    gp_barrier_block();
    if (0 == threadIdx.x) {
        uint64_t steps = 0;
        uint32_t before;

        for (i = 0; i < chan->n_streams; ++i) {
            steps += x->block->windows[i].steps;
        }
        gp_atomic_add_relaxed_u64(&arrive->steps, steps);
        before = gp_atomic_add_acq_rel_u32(&arrive->arrived, 1);
        if ((before & ~GP_KARRIVE_ABORTED) + 1 == gridDim.x) {
            gp_complete(x, protocol, 0 != (before & GP_KARRIVE_ABORTED));
        }
    }
}

#endif /* GP_KSETUP_CUH */
