/*
 * gp_chunk.h - which elements of the user's buffers a (channel, loop, chunk) means.
 *
 * Owns the partition. All values are in elements; every rank computes the same numbers.
 *
 *   count
 *   |<--- channel 0: channel_elems --->|<--- channel 1 --->| ... the last may be short or empty
 *   |  loop 0            |  loop 1     |
 *   | c0 | c1 | .. | c.. | c0' | ..    |   n_chunks chunks a loop; chunk_elems each, in the last loop
 *                                          last_chunk_elems, clipped to the channel's end
 *
 * A chunk can be empty: it still consumes its step on every connection it passes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_CHUNK_H
#define GP_CHUNK_H

#include "device/proto/gp_port.h"

typedef struct gp_geom {
    uint64_t count;            /* elements of the whole call */
    uint64_t channel_elems;    /* elements of a channel; channel_elems * elem_bytes is a multiple of 16
                                  unless there is one channel */
    uint64_t chunk_elems;      /* elements of a chunk; chunk_elems * elem_bytes is a multiple of 16 */
    uint64_t last_chunk_elems; /* the same in the last loop; never larger than chunk_elems */
    uint64_t loops;            /* >= 1; the same for every channel */
    uint32_t n_chunks;         /* chunks of one loop: as many as the program names */
    uint32_t channels;         /* channels that run; >= 1 */
    uint32_t elem_bytes;
    uint32_t reserved;
} gp_geom_t;

/*
 * Elements [*offset_elems, *offset_elems + result) of the buffers are chunk `chunk` of loop `loop` on
 * channel `channel`. Result 0 (and an offset within [0, count]) for an empty chunk.
 */
GP_FN uint64_t gp_chunk_range(const gp_geom_t *g, uint32_t channel, uint64_t loop, uint32_t chunk,
                              uint64_t *offset_elems)
{
    uint64_t begin = (uint64_t) channel * g->channel_elems;
    uint64_t end = begin + g->channel_elems;
    uint64_t size = loop + 1 == g->loops ? g->last_chunk_elems : g->chunk_elems;
    uint64_t at;

    if (end > g->count) {
        end = g->count;
    }
    at = begin + loop * g->chunk_elems * g->n_chunks + (uint64_t) chunk * size;
    if (at >= end) {
        *offset_elems = end;
        return 0;
    }
    *offset_elems = at;
    return end - at < size ? end - at : size;
}

#endif /* GP_CHUNK_H */
