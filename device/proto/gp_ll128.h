/*
 * gp_ll128.h - the LL128 wire format for CPUs: pairs of 128-byte lines carrying 240 bytes.
 *
 *            0        16       32       48       64       80       96       112      120
 *   line A | vec 0  | vec 1  | vec 2  | vec 3  | vec 4  | vec 5  | vec 6  | 14 low | flag |
 *   line B | vec 7  | vec 8  | vec 9  | vec 10 | vec 11 | vec 12 | vec 13 | 14 high| flag |
 *
 * A vector is 16 bytes of payload; vector v is payload bytes 16 v .. 16 v + 15. flag = step + 1, 64 bits.
 * On a GPU a warp's 128-byte store becomes visible as a unit; on a CPU nothing does, so here the flag is
 * a release store, and its acquire load in gp_ll128_get() orders the reads of the line behind it (P7).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_LL128_H
#define GP_LL128_H

#include "device/proto/gp_fifo.h"

/* Offset of a vector's bytes within its pair; vector 14 is split: see the drawing. */
GP_FN uint32_t gp_ll128_vec_offset(uint32_t vec)
{
    return vec < 7 ? vec * 16 : vec < 14 ? GP_LL128_LINE_BYTES + (vec - 7) * 16 : 112;
}

/*
 * Write one pair from 240 bytes (data may hold fewer meaningful bytes; all 240 are readable). Release
 * stores of both flags; acquire loads in gp_ll128_get().
 */
GP_FN void gp_ll128_put(unsigned char *slot, uint64_t pair, const uint64_t data[30], uint64_t flag)
{
    uint64_t *a = (uint64_t *) (slot + pair * 2 * GP_LL128_LINE_BYTES);
    uint64_t *b = a + GP_LL128_LINE_BYTES / 8;

    for (uint32_t i = 0; i < 14; i++) {
        gp_store_relaxed_u64(a + i, data[i]);
        gp_store_relaxed_u64(b + i, data[14 + i]);
    }
    gp_store_relaxed_u64(a + 14, data[28]);
    gp_store_relaxed_u64(b + 14, data[29]);
    gp_store_release_u64(a + 15, flag);
    gp_store_release_u64(b + 15, flag);
}

/* 1 and the pair's 240 bytes when both lines hold this flag, else 0 and data untouched. */
GP_FN int gp_ll128_get(const unsigned char *slot, uint64_t pair, uint64_t flag, uint64_t data[30])
{
    const uint64_t *a = (const uint64_t *) (slot + pair * 2 * GP_LL128_LINE_BYTES);
    const uint64_t *b = a + GP_LL128_LINE_BYTES / 8;

    if (gp_load_acquire_u64(a + 15) != flag || gp_load_acquire_u64(b + 15) != flag) {
        return 0;
    }
    for (uint32_t i = 0; i < 14; i++) {
        data[i] = gp_load_relaxed_u64(a + i);
        data[14 + i] = gp_load_relaxed_u64(b + i);
    }
    data[28] = gp_load_relaxed_u64(a + 14);
    data[29] = gp_load_relaxed_u64(b + 14);
    return 1;
}

#endif /* GP_LL128_H */
