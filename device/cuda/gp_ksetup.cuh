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

/* This block's region of the blob. */
GP_DEV unsigned char *gp_region(const gp_kargs_t *args)
{
    return args->blob + blockIdx.x * args->chan_stride;
}

/*
 * Copy the head of the region to shared memory, all threads of the block together. Loads of a batch
 * are independent: a short region costs one trip to memory.
 */
GP_DEV void gp_copy_region(const gp_kargs_t *args, gp_kblock_t *block)
{
    const gp_vec16_t *from = (const gp_vec16_t *) gp_region(args);
    gp_vec16_t *to = (gp_vec16_t *) &block->chan;
    uint32_t n = args->copy_bytes / 16u;

    for (uint32_t i = threadIdx.x; i < n; i += 4 * blockDim.x) {
        gp_vec16_t v[4];

        GP_UNROLL
        for (uint32_t u = 0; u < 4; ++u) {
            if (i + u * blockDim.x < n) {
                v[u] = from[i + u * blockDim.x];
            }
        }
        GP_UNROLL
        for (uint32_t u = 0; u < 4; ++u) {
            if (i + u * blockDim.x < n) {
                to[i + u * blockDim.x] = v[u];
            }
        }
    }
}

/* What of the record is known when the call starts; one thread of the first block. */
GP_DEV void gp_record_start(const gp_kargs_t *args, const gp_kchan_t *chan, uint32_t protocol)
{
    gp_exec_record_t *record = &args->status->record;

    gp_store_relaxed_u32(&record->algorithm, chan->algorithm);
    gp_store_relaxed_u32(&record->protocol, protocol);
    gp_store_relaxed_u32(&record->channels, gridDim.x);
    gp_store_relaxed_u32(&record->threads, blockDim.x);
    gp_store_relaxed_u64(&record->loops, args->geom.loops);
    gp_store_relaxed_u64(&record->chunk_elems, args->geom.chunk_elems);
}

/* Fill shared memory and the context. Ends with a block barrier. */
GP_DEV void gp_setup(gp_kctx_t *x, const gp_kargs_t *args, unsigned char *shared, uint32_t protocol)
{
    gp_kblock_t *block = (gp_kblock_t *) shared;
    const gp_kchan_t *chan = &block->chan;
    uint32_t copies = gp_kseen_copies(protocol, blockDim.x);
    uint32_t warps = blockDim.x / 32u;
    uint32_t warp = threadIdx.x / 32u;
    uint32_t n_conns;
    uint32_t i;

    x->args = args;
    x->block = block;
    gp_copy_region(args, block);
    if (0 == threadIdx.x) {
        block->dead = 0;
        block->gated = 0;
    }
    gp_barrier_block();

    /* The parts of shared memory. */
    n_conns = chan->n_recv + chan->n_send;
    shared += gp_kblock_bytes(args->copy_bytes);
    unsigned char *windows = shared;
    shared += chan->n_streams * gp_kwindow_bytes(chan, protocol);
    uint64_t *seen = (uint64_t *) shared;

    if (threadIdx.x < chan->n_streams) {
        gp_kwindow_t *window = &block->windows[threadIdx.x];

        window->loop = 0;
        window->steps = 0;
        window->index = 0;
        window->n = 0;
    }
    if (0 == threadIdx.x) {
        /* The program: here if it was copied, else where it lies. */
        const unsigned char *program = (const unsigned char *) chan;

        if (args->copy_bytes < chan->refs_off + chan->n_refs * sizeof(gp_ref_t)) {
            program = gp_region(args);
        }
        block->seen = seen;
        block->prog_streams = (const gp_stream_t *) (program + chan->streams_off);
        block->prog_steps = (const gp_step_t *) (program + chan->steps_off);
        block->prog_refs = (const gp_ref_t *) (program + chan->refs_off);
    }
    for (i = threadIdx.x; i < n_conns; i += blockDim.x) {
        const gp_kconn_t *c = &gp_conns(x)[i];

        for (uint32_t k = 0; k < copies; ++k) {
            seen[k * n_conns + i] = c->seen;
        }
        if (c->gated) {
            gp_shared_store_u32(&block->gated, 1);
        }
    }
    /* The last thread: it is not the one that decodes. */
    if (0 == blockIdx.x && blockDim.x - 1 == threadIdx.x) {
        gp_record_start(args, chan, protocol);
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
                   + x->stream * gp_kwindow_bytes(chan, protocol)
                   + gp_kwindow_fast_bytes(protocol);
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

/*
 * The last block of the call says that the call is complete. One thread; the release is acquired by
 * the host's poll of `done`.
 */
GP_DEV void gp_complete(const gp_kctx_t *x, uint64_t arrived)
{
    gp_kstatus_t *status = x->args->status;
    gp_vec16_t done;

    done.w[0] = x->args->seq;
    done.w[1] = arrived >> GP_KARRIVE_STEPS_SHIFT;
    if (arrived & GP_KARRIVE_ABORTED) {
        gp_store_relaxed_u64(&status->failed, x->args->seq);
    }
    gp_store_release_vec16(&status->done, done);
}

/*
 * Arrive, then advance the connections in the blob: nobody but this channel's block of the next call
 * reads those, and that starts when this kernel has ended. All threads of the block.
 */
GP_DEV void gp_finish(const gp_kctx_t *x, uint32_t protocol)
{
    const gp_kargs_t *args = x->args;
    gp_karrive_t *arrive = (gp_karrive_t *) args->arrived;
    const gp_kchan_t *chan = &x->block->chan;
    uint32_t copies = gp_kseen_copies(protocol, blockDim.x);
    uint32_t n_conns = chan->n_recv + chan->n_send;
    uint32_t i;

    gp_barrier_block();
    if (0 == threadIdx.x) {
        uint64_t steps = 0;
        uint64_t all;

        for (i = 0; i < chan->n_streams; ++i) {
            steps += x->block->windows[i].steps;
        }
        all = (steps << GP_KARRIVE_STEPS_SHIFT) + 1;
        /* A block that is alone has nobody to tell, unless it left the mark of an abort. */
        if (1 != gridDim.x || gp_is_dead(x)) {
            all = gp_atomic_add_fetch_acq_rel_u64(&arrive->arrived, all);
        }
        if ((all & GP_KARRIVE_BLOCKS) == gridDim.x) {
            if (1 != gridDim.x || gp_is_dead(x)) {
                gp_store_relaxed_u64(&arrive->arrived, 0);
            }
            gp_complete(x, all);
        }
    }
    if (gp_is_dead(x)) {
        return;
    }
    for (i = blockDim.x - 1 - threadIdx.x; i < n_conns; i += blockDim.x) {
        gp_kconn_t *to = gp_kchan_conns(gp_region(args)) + i;
        const gp_kconn_t *c = &gp_conns(x)[i];
        uint64_t seen = 0;

        for (uint32_t k = 0; k < copies; ++k) { /* any is true; the largest is the latest */
            uint64_t v = x->block->seen[k * n_conns + i];
            seen = v > seen ? v : seen;
        }
        to->base = c->base + args->geom.loops * c->uses;
        to->seen = seen;
        if (GP_PROTO_LL == protocol && args->ll_zero && i >= chan->n_recv) {
            to->zeroed = c->base;
        }
    }
}

#endif /* GP_KSETUP_CUH */
