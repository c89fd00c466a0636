/*
 * gp_kstream.cuh - a stream: decode a window of steps, run them, and so on.
 *
 * A step number is base + loop * uses + ordinal, so no counter changes while steps run. The first
 * warp of a stream decodes up to 32 steps at once, lane by lane, across loops, with addresses,
 * ranges and step numbers ready to use. Short calls have a single window.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_KSTREAM_CUH
#define GP_KSTREAM_CUH

#include "device/cuda/gp_kctx.cuh"

/*
 * x mod n for n <= GP_MAX_SLOTS, in 32-bit pieces: a 64-bit division is a long subroutine on a GPU.
 */
GP_DEV uint32_t gp_mod_slots(uint64_t x, uint32_t n)
{
    uint32_t low;
    uint32_t high;

    if (0 == (n & (n - 1))) {
        return (uint32_t) x & (n - 1);
    }
    low = (uint32_t) x % n;
    high = (uint32_t) (x >> 32);
    return 0 == high ? low : ((high % n) * ((0xffffffffu % n + 1u) % n) + low) % n;
}

/* One reference in a certain loop. */
GP_DEV void gp_decode_ref(const gp_kctx_t *x, const gp_ref_t *from, uint64_t loop, gp_kref_t *to)
{
    uint32_t i = from->conn;

    if (GP_REF_OWN == i) {
        to->slot = NULL;
        to->step = 0;
        to->conn = 0;
        to->slot_index = 0;
        return;
    }
    const gp_kconn_t *c = &gp_conns(x)[i];
    uint64_t step = c->base + loop * c->uses + from->ordinal;
    uint32_t slot = gp_mod_slots(step + (GP_MUTATE(slot_off) && i >= x->block->chan.n_recv),
                                 c->n_slots);

    to->slot = c->slots + slot * c->slot_bytes;
    to->step = step;
    to->conn = i;
    to->slot_index = slot;
}

/* One step in a certain loop, but for its references. */
GP_DEV void gp_decode_step(const gp_kctx_t *x, const gp_step_t *step, uint64_t loop,
                           uint32_t first_ref, gp_kstep_t *to)
{
    const gp_geom_t *geom = &x->args->geom;
    uint64_t offset;

    to->bytes = gp_chunk_range(geom, blockIdx.x, loop, step->chunk, &offset) * geom->elem_bytes;
    to->offset_bytes = offset * geom->elem_bytes;
    to->first_ref = first_ref;
    to->n_in = step->n_in;
    to->n_send = step->n_send;
    to->flags = step->flags;
    if (step->n_in > 1 || GP_REF_OWN != x->block->prog_refs[step->in_first].conn) {
        to->flags |= GP_KSTEP_INPUT;
    }
}

/*
 * The whole call of one loop, when gp_kchan_is_direct(): the window has steps and references where the
 * program has them. Short code: in a small call each instruction is fetched for the first time.
 */
GP_DEV void gp_decode_direct(const gp_kctx_t *x)
{
    const gp_stream_t *stream = &x->block->prog_streams[x->stream];
    const gp_step_t *steps = &x->block->prog_steps[stream->first];
    gp_kwindow_t *window = &x->block->windows[x->stream];
    uint32_t lane = gp_lane(x);
    uint32_t count = stream->count;
    uint32_t base = steps[0].in_first;
    uint32_t total = steps[count - 1].send_first + steps[count - 1].n_send - base;

    if (lane < count) {
        gp_decode_step(x, &steps[lane], 0, steps[lane].in_first - base, &gp_steps(x)[lane]);
    }
    for (uint32_t r = lane; r < total; r += 32) {
        gp_decode_ref(x, &x->block->prog_refs[base + r], 0, &gp_refs(x)[r]);
    }
    if (0 == lane) {
        window->loop = 1;
        window->steps = count;
        window->n = count;
    }
}

/*
 * Decode the next window: lane i takes the i-th step from where the last one ended. Run by the
 * stream's first warp. A window ends where steps, lanes or room for references end.
 */
GP_DEV void gp_decode(const gp_kctx_t *x)
{
    const gp_stream_t *stream = &x->block->prog_streams[x->stream];
    gp_kwindow_t *window = &x->block->windows[x->stream];
    uint64_t loop = window->loop;
    uint32_t index = window->index;
    uint32_t count = stream->count;
    const gp_kchan_t *chan = &x->block->chan;
    const gp_geom_t *geom = &x->args->geom;
    uint32_t room = gp_kwindow_refs(chan);
    uint32_t lane = gp_lane(x);
    uint32_t ahead = index + lane;
    gp_kstep_t *steps = gp_steps(x);
    gp_kref_t *refs = gp_refs(x);
    uint64_t l = 0 == count ? geom->loops : loop + ahead / count;
    uint32_t n_refs = 0;
    uint32_t end;
    uint32_t n;
    uint32_t r;
    gp_step_t step = {0, 0, 0, 0, 0, 0};

    if (l < geom->loops) {
        step = x->block->prog_steps[stream->first + ahead % count];
        n_refs = step.n_in + step.n_send;
    }
    end = n_refs;
    for (r = 1; r < 32; r *= 2) {
        uint32_t before = gp_shuffle_up(end, r);
        end += lane >= r ? before : 0;
    }
    n = gp_popcount(gp_ballot_warp(l < geom->loops && end <= room)); /* a prefix of the lanes */
    if (lane < n) {
        gp_decode_step(x, &step, l, end - n_refs, &steps[lane]);
    }
    gp_sync_warp();
    if (0 == n) {
        /* The end; or a step that fits no window: that breaks the contract of gp_kernel_fits(). */
        if (0 == lane && l < geom->loops) {
            gp_give_up(x->block, x->args, GP_WAIT_NONE, 0, 0);
        }
    } else {
        uint32_t total = steps[n - 1].first_ref + steps[n - 1].n_in + steps[n - 1].n_send;

        for (r = lane; r < total; r += 32) {
            uint32_t low = 0; /* the step of reference r: the last that starts at or before it */
            uint32_t high = n;

            while (high - low > 1) {
                uint32_t mid = (low + high) / 2;
                if (steps[mid].first_ref <= r) {
                    low = mid;
                } else {
                    high = mid;
                }
            }
            ahead = index + low;
            const gp_step_t *s = &x->block->prog_steps[stream->first + ahead % count];
            uint32_t k = r - steps[low].first_ref;
            uint32_t from = k >= s->n_in ? s->send_first + (k - s->n_in) : s->in_first + k;

            gp_decode_ref(x, &x->block->prog_refs[from], loop + ahead / count, &refs[r]);
        }
    }
    if (0 == lane) {
        index += n;
        window->loop = 0 == count ? loop : loop + index / count;
        window->index = 0 == count ? 0 : index % count;
        window->steps += n;
        window->n = n;
    }
}

/*
 * Run the stream: MOVER::step(x, i) for every step i of every window, after the first warp's
 * MOVER::prepare(x) of the window. All threads of the stream.
 */
template <class MOVER>
GP_DEV void gp_run_stream(const gp_kctx_t *x)
{
    int more = 1;

    while (more) {
        uint32_t n;

        if (x->thread < 32) {
            if (1 == x->args->geom.loops && x->block->chan.direct) {
                gp_decode_direct(x);
            } else {
                gp_decode(x);
            }
            MOVER::prepare(x);
        }
        gp_group_barrier(x);
        n = x->block->windows[x->stream].n;
        more = 0 != n && x->block->windows[x->stream].loop < x->args->geom.loops;
        for (uint32_t i = 0; i < n; ++i) {
            MOVER::step(x, i);
        }
        if (more && !GP_MUTATE(no_window_barrier)) {
            gp_group_barrier(x); /* nobody still reads the window */
        }
    }
}

#endif /* GP_KSTREAM_CUH */
