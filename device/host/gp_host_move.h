/*
 * gp_host_move.h - payload into and out of slots, for the host executor.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_HOST_MOVE_H
#define GP_HOST_MOVE_H

#include <string.h>

#include "device/proto/gp_ll.h"
#include "device/proto/gp_ll128.h"

/* Payload bytes moved at a time; multiples of 16 and of a line (pair) of their protocol. */
#define GP_HOST_BLOCK_BYTES_LL 1024u
#define GP_HOST_BLOCK_BYTES_LL128 (8u * GP_LL128_PAIR_DATA_BYTES)
#define GP_HOST_BLOCK_BYTES_SIMPLE 16384u
#define GP_HOST_BLOCK_BYTES_MAX GP_HOST_BLOCK_BYTES_SIMPLE

GP_FN size_t gp_host_block_bytes(uint32_t protocol)
{
    return GP_PROTO_LL == protocol      ? GP_HOST_BLOCK_BYTES_LL
           : GP_PROTO_LL128 == protocol ? GP_HOST_BLOCK_BYTES_LL128
                                        : GP_HOST_BLOCK_BYTES_SIMPLE;
}

/*
 * Take payload bytes [pos, pos + bytes) of `step` out of the lines of an LL or LL128 slot into `to`,
 * which has room for whole lines. pos is a multiple of the block size. 0: not all lines are there.
 */
GP_FN int gp_host_take(uint32_t protocol, const unsigned char *slot, uint64_t step, uint64_t pos,
                       size_t bytes, unsigned char *to)
{
    if (GP_PROTO_LL == protocol) {
        uint64_t line = pos / GP_LL_LINE_DATA_BYTES;
        uint32_t flag = gp_ll_flag(step);

        for (size_t i = 0; i < bytes; i += GP_LL_LINE_DATA_BYTES, line++) {
            uint64_t data;

            if (!gp_ll_get(slot, line, flag, &data)) {
                return 0;
            }
            memcpy(to + i, &data, sizeof(data));
        }
    } else {
        uint64_t pair = pos / GP_LL128_PAIR_DATA_BYTES;

        for (size_t i = 0; i < bytes; i += GP_LL128_PAIR_DATA_BYTES, pair++) {
            if (!gp_ll128_get(slot, pair, gp_ll128_flag(step), (uint64_t *) (to + i))) {
                return 0;
            }
        }
    }
    return 1;
}

/* Put payload bytes [pos, pos + bytes) into a slot. Only `bytes` bytes of `from` are read. */
GP_FN void gp_host_put(uint32_t protocol, unsigned char *slot, uint64_t step, uint64_t pos,
                       const unsigned char *from, size_t bytes)
{
    if (GP_PROTO_LL == protocol) {
        uint64_t line = pos / GP_LL_LINE_DATA_BYTES;
        uint32_t flag = gp_ll_flag(step);
        size_t i = 0;
        uint64_t data;

        for (; i + GP_LL_LINE_DATA_BYTES <= bytes; i += GP_LL_LINE_DATA_BYTES, line++) {
            memcpy(&data, from + i, sizeof(data));
            gp_ll_put(slot, line, data, flag);
        }
        if (i < bytes) {
            data = 0;
            memcpy(&data, from + i, bytes - i);
            gp_ll_put(slot, line, data, flag);
        }
    } else if (GP_PROTO_LL128 == protocol) {
        uint64_t pair = pos / GP_LL128_PAIR_DATA_BYTES;

        for (size_t i = 0; i < bytes; i += GP_LL128_PAIR_DATA_BYTES, pair++) {
            uint64_t data[GP_LL128_PAIR_DATA_BYTES / 8];
            size_t left = bytes - i;

            if (left < sizeof(data)) {
                memset(data, 0, sizeof(data));
            }
            memcpy(data, from + i, left < sizeof(data) ? left : sizeof(data));
            gp_ll128_put(slot, pair, data, gp_ll128_flag(step));
        }
    } else {
        memcpy(slot + pos, from, bytes);
    }
}

#endif /* GP_HOST_MOVE_H */
