/*
 * gp_ll.h - the LL wire format for CPUs: 8 bytes of data and two flags in a 16-byte line.
 *
 *   line i of a slot, at 16 * i
 *   | data 4 B | flag 4 B | data 4 B | flag 4 B |      flag = gp_ll_flag(step)
 *   '----- one unit ------' '----- one unit -----'
 *
 * Each unit of 8 bytes is written and read indivisibly; nothing else is assumed of a line (P1), so both
 * flags are checked (P2). The flag is in the same unit as the data it stands for: no ordering between
 * units is needed, all accesses are relaxed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_LL_H
#define GP_LL_H

#include "device/proto/gp_fifo.h"

/* Writer: sender. Reader: receiver, by gp_ll_get(). */
GP_FN void gp_ll_put(unsigned char *slot, uint64_t line, uint64_t data, uint32_t flag)
{
    uint64_t *unit = (uint64_t *) (slot + line * GP_LL_LINE_BYTES);

    gp_store_relaxed_u64(unit, (data & 0xffffffffu) | (uint64_t) flag << 32);
    gp_store_relaxed_u64(unit + 1, data >> 32 | (uint64_t) flag << 32);
}

/* 1 and *data when the line holds this flag twice, else 0. */
GP_FN int gp_ll_get(const unsigned char *slot, uint64_t line, uint32_t flag, uint64_t *data)
{
    const uint64_t *unit = (const uint64_t *) (slot + line * GP_LL_LINE_BYTES);
    uint64_t low = gp_load_relaxed_u64(unit);
    uint64_t high = gp_load_relaxed_u64(unit + 1);

    *data = (low & 0xffffffffu) | high << 32;
    return (uint32_t) (low >> 32) == flag && (uint32_t) (high >> 32) == flag;
}

/* Zero is no flag: a drained slot that is zeroed can never be taken for a step (P4). */
GP_FN void gp_ll_zero_slot(unsigned char *slot, uint64_t slot_bytes)
{
    uint64_t *unit = (uint64_t *) slot;

    for (uint64_t i = 0; i < slot_bytes / sizeof(*unit); i++) {
        gp_store_relaxed_u64(unit + i, 0);
    }
}

#endif /* GP_LL_H */
