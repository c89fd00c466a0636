/*
 * gp_vec.cuh - payload in registers: arithmetic on words, and the user's buffers at any alignment.
 *
 * Owns the families as the kernels see them. A *unit* is 8 bytes, or one element where that is
 * larger; everything in registers is an array of 64-bit words that holds whole units. Which
 * operation runs is a switch around the arithmetic of a whole batch, equal for all threads of the
 * grid.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_VEC_CUH
#define GP_VEC_CUH

#include "device/proto/gp_reduce.h"

#define GP_APPLY_CASE(U, F, ROP, rop_name)                                                         \
    case GP_ROP_##ROP:                                                                             \
        GP_UNROLL                                                                                  \
        for (int i = 0; i < N; i += UNIT_WORDS) {                                                  \
            unit_t a;                                                                              \
            unit_t b;                                                                              \
            GP_UNROLL                                                                              \
            for (int j = 0; j < UNIT_WORDS; ++j) {                                                 \
                a.w[j] = acc[i + j];                                                               \
                b.w[j] = in[i + j];                                                                \
            }                                                                                      \
            GP_UNROLL                                                                              \
            for (int j = 0; j < UNIT_ELEMS; ++j) {                                                 \
                a.e[j] = gp_##rop_name##_##F(a.e[j], b.e[j]);                                      \
            }                                                                                      \
            GP_UNROLL                                                                              \
            for (int j = 0; j < UNIT_WORDS; ++j) {                                                 \
                acc[i + j] = a.w[j];                                                               \
            }                                                                                      \
        }                                                                                          \
        break;

/*
 * struct gp_fam_<F>: ELEM_BYTES, UNIT_WORDS, and apply(): acc[i] = acc[i] op in[i] for N words
 * (whole units).
 */
#define GP_FAM(U, F, LIST)                                                                         \
    struct gp_fam_##F {                                                                            \
        enum {                                                                                     \
            ELEM_BYTES = (int) sizeof(gp_##F##_t),                                                 \
            UNIT_WORDS = ELEM_BYTES > 8 ? ELEM_BYTES / 8 : 1,                                      \
            UNIT_ELEMS = ELEM_BYTES > 8 ? 1 : 8 / ELEM_BYTES                                       \
        };                                                                                         \
        typedef union unit {                                                                       \
            uint64_t w[UNIT_WORDS];                                                                \
            gp_##F##_t e[UNIT_ELEMS];                                                              \
        } unit_t;                                                                                  \
        template <int N>                                                                           \
        GP_DEV void apply(uint32_t rop, uint64_t *acc, const uint64_t *in)                         \
        {                                                                                          \
            switch (rop) {                                                                         \
                LIST(GP_APPLY_CASE, U, F)                                                          \
            default:                                                                               \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
    };

GP_FAMILIES(GP_FAM)

/* Largest power of two, at most `most`, that divides an address. */
GP_DEV uint32_t gp_width(const void *p, uint32_t most)
{
    uint32_t low = (uint32_t) (uintptr_t) p | most;

    return low & (0u - low);
}

/* 8 bytes of user memory at an address that `width` (1, 2, 4, 8) divides. */
GP_DEV uint64_t gp_user_load8(const unsigned char *p, uint32_t width)
{
    uint64_t v = 0;

    switch (width) {
    case 8:
        return gp_load_user_u64(p);
    case 4:
        GP_UNROLL
        for (int i = 0; i < 2; ++i) {
            v |= (uint64_t) gp_load_user_u32(p + 4 * i) << (32 * i);
        }
        return v;
    case 2:
        GP_UNROLL
        for (int i = 0; i < 4; ++i) {
            v |= (uint64_t) gp_load_user_u16(p + 2 * i) << (16 * i);
        }
        return v;
    default:
        GP_UNROLL
        for (int i = 0; i < 8; ++i) {
            v |= (uint64_t) gp_load_user_u8(p + i) << (8 * i);
        }
        return v;
    }
}

GP_DEV void gp_user_store8(unsigned char *p, uint32_t width, uint64_t v)
{
    switch (width) {
    case 8:
        gp_store_user_u64(p, v);
        break;
    case 4:
        gp_store_user_u32(p, (uint32_t) v);
        gp_store_user_u32(p + 4, (uint32_t) (v >> 32));
        break;
    case 2:
        GP_UNROLL
        for (int i = 0; i < 4; ++i) {
            gp_store_user_u16(p + 2 * i, (uint16_t) (v >> (16 * i)));
        }
        break;
    default:
        GP_UNROLL
        for (int i = 0; i < 8; ++i) {
            gp_store_user_u8(p + i, (uint8_t) (v >> (8 * i)));
        }
        break;
    }
}

/* The first `bytes` < 8 of a word; the rest is zero. width divides address and bytes. */
GP_DEV uint64_t gp_user_load_part(const unsigned char *p, uint32_t width, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i += width) {
        uint64_t x = 4 == width   ? gp_load_user_u32(p + i)
                     : 2 == width ? gp_load_user_u16(p + i)
                                  : gp_load_user_u8(p + i);
        v |= x << (8 * i);
    }
    return v;
}

GP_DEV void gp_user_store_part(unsigned char *p, uint32_t width, uint32_t bytes, uint64_t v)
{
    for (uint32_t i = 0; i < bytes; i += width) {
        if (4 == width) {
            gp_store_user_u32(p + i, (uint32_t) (v >> (8 * i)));
        } else if (2 == width) {
            gp_store_user_u16(p + i, (uint16_t) (v >> (8 * i)));
        } else {
            gp_store_user_u8(p + i, (uint8_t) (v >> (8 * i)));
        }
    }
}

/*
 * Width for a part of a word: also divides an element, so that it divides any number of elements.
 */
GP_DEV uint32_t gp_part_width(uint32_t width, uint32_t elem_bytes)
{
    uint32_t most = elem_bytes < 4 ? elem_bytes : 4;

    return width < most ? width : most;
}

/* Up to 16 bytes; not inlined: misaligned buffers and edges are many call sites and little time. */
GP_DEV_NOINLINE gp_vec16_t gp_user_load16_slow(const unsigned char *p, uint32_t width,
                                               uint32_t elem_bytes, uint32_t bytes)
{
    gp_vec16_t v;

    v.w[0] = 0;
    v.w[1] = 0;
    if (bytes >= 8) {
        v.w[0] = gp_user_load8(p, width < 8 ? width : 8);
        p += 8;
    }
    if (16 == bytes) {
        v.w[1] = gp_user_load8(p, width < 8 ? width : 8);
    } else {
        uint64_t last = gp_user_load_part(p, gp_part_width(width, elem_bytes), bytes & 7u);

        if (bytes >= 8) {
            v.w[1] = last;
        } else {
            v.w[0] = last;
        }
    }
    return v;
}

GP_DEV_NOINLINE void gp_user_store16_slow(unsigned char *p, uint32_t width, uint32_t elem_bytes,
                                          uint32_t bytes, gp_vec16_t v)
{
    uint64_t last = v.w[0];

    if (bytes >= 8) {
        gp_user_store8(p, width < 8 ? width : 8, v.w[0]);
        p += 8;
        last = v.w[1];
    }
    if (16 == bytes) {
        gp_user_store8(p, width < 8 ? width : 8, last);
    } else {
        gp_user_store_part(p, gp_part_width(width, elem_bytes), bytes & 7u, last);
    }
}

/*
 * The 16-byte vector at byte `at` of a chunk of `bytes` bytes; what lies beyond the chunk is zero
 * and not touched. `width` divides the chunk's address. WHOLE: the caller knows that the vector is
 * whole and 16 divides its address.
 */
template <class F, bool WHOLE>
GP_DEV gp_vec16_t gp_user_load16(const unsigned char *chunk, uint64_t at, uint64_t bytes,
                                 uint32_t width)
{
    if (WHOLE || (16 == width && at + 16 <= bytes)) {
        return gp_load_user_vec16(chunk + at);
    }
    if (at < bytes) {
        return gp_user_load16_slow(chunk + at, width, F::ELEM_BYTES,
                                   at + 16 <= bytes ? 16u : (uint32_t) (bytes - at));
    }
    gp_vec16_t zero;
    zero.w[0] = 0;
    zero.w[1] = 0;
    return zero;
}

template <class F, bool WHOLE>
GP_DEV void gp_user_store16(unsigned char *chunk, uint64_t at, uint64_t bytes, uint32_t width,
                            gp_vec16_t v)
{
    if (WHOLE || (16 == width && at + 16 <= bytes)) {
        gp_store_user_vec16(chunk + at, v);
    } else if (at < bytes) {
        gp_user_store16_slow(chunk + at, width, F::ELEM_BYTES,
                             at + 16 <= bytes ? 16u : (uint32_t) (bytes - at), v);
    }
}

#endif /* GP_VEC_CUH */
