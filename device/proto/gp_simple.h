/*
 * gp_simple.h - the Simple protocol: payload in the slot, readiness in the tail counter.
 *
 *   sender    wait head + n_slots > step; payload stores; sizes[slot]; tail = step + 1   (release)
 *   receiver  wait tail > step (acquire); payload loads; head = step + 1                 (release)
 *
 * The release of tail pairs with gp_simple_ready()'s acquire (P8), the release of head with the acquire
 * in gp_simple_credit() (P9). LL and gated LL128 use the same two counters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIMPLE_H
#define GP_SIMPLE_H

#include "device/proto/gp_fifo.h"

/* Receiver: is this step's slot filled? Reads the counter only when the last value does not tell. */
GP_FN int gp_simple_ready(gp_conn_t *c, uint64_t step)
{
    if (c->seen <= step) {
        c->seen = gp_load_acquire_u64(c->tail); /* with gp_simple_publish() */
    }
    return c->seen > step;
}

/* Sender: may this step's slot be written? */
GP_FN int gp_simple_credit(gp_conn_t *c, uint64_t step)
{
    if (!gp_credit(c->seen, step, c->n_slots)) {
        c->seen = gp_load_acquire_u64(c->head); /* with gp_simple_release() */
    }
    return gp_credit(c->seen, step, c->n_slots);
}

/* Sender: the slot is filled. Pairs with the acquire in gp_simple_ready(). */
GP_FN void gp_simple_publish(gp_conn_t *c, uint64_t step, uint64_t data_bytes)
{
    gp_store_relaxed_u64(c->sizes + gp_slot_of(step, c->n_slots), data_bytes);
    gp_store_release_u64(c->tail, step + 1);
}

/* Receiver: the slot is read. Pairs with the acquire in gp_simple_credit(). */
GP_FN void gp_simple_release(gp_conn_t *c, uint64_t step)
{
    gp_store_release_u64(c->head, step + 1);
}

#endif /* GP_SIMPLE_H */
