/*
 * simt_values.h - inputs of the kernel tests and what their reduction must be.
 *
 * Owns values that reduce exactly in any order, so that the expected result needs no knowledge of
 * the program: integers wrap, small whole floats, powers of two for products, units for complex
 * products. Shares no code with gp_reduce.h. Values depend on rank, call and index without a
 * period.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SIMT_VALUES_H
#define SIMT_VALUES_H

#include <cmath>
#include <cstdint>
#include <cstring>

#include "device/proto/gp_types.h"

static inline uint64_t sv_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull ^ b * 0xc2b2ae3d27d4eb4full
                 ^ (c + 0x165667b19e3779f9ull);

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 32;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 29;
}

static const uint32_t sv_bytes[GP_FAMILY_COUNT] = {1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

/* Value in the model: integers as bits, floats as re, im. */
struct sv_value {
    uint64_t bits;
    double re;
    double im;
};

static inline bool sv_is_int(uint32_t family)
{
    return family <= GP_FAMILY_U64;
}

static inline bool sv_is_complex(uint32_t family)
{
    return family >= GP_FAMILY_C32;
}

/* Does the family have the operation? */
static inline bool sv_valid(uint32_t family, uint32_t rop)
{
    if (sv_is_int(family)) {
        return true;
    }
    return sv_is_complex(family) ? rop <= GP_ROP_PROD : rop <= GP_ROP_MAX;
}

static inline sv_value sv_input(uint32_t family, uint32_t rop, uint64_t rank, uint64_t call,
                                uint64_t index)
{
    static const double units[6][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 1}, {1, -1}};
    static const double factors[4] = {1, 2, -0.5, -1};
    uint64_t h = sv_hash(rank + 1, call + 17, index);
    sv_value v = {0, 0, 0};

    if (sv_is_int(family)) {
        v.bits = h & (~0ull >> (64 - 8 * sv_bytes[family]));
        if (rop >= GP_ROP_LAND) {
            v.bits = h % 3 == 0 ? 0 : v.bits;
        }
    } else if (GP_ROP_PROD == rop) {
        if (sv_is_complex(family)) {
            v.re = units[h % 6][0];
            v.im = units[h % 6][1];
        } else {
            v.re = factors[h % 4];
        }
    } else if (GP_ROP_SUM == rop) {
        v.re = (double) (h % 15) - 7.0;
        v.im = sv_is_complex(family) ? (double) (h / 15 % 15) - 7.0 : 0;
    } else {
        v.re = (double) (h % 255) - 127.0;
    }
    return v;
}

static inline int64_t sv_signed(uint64_t bits, uint32_t family)
{
    uint32_t shift = 64 - 8 * sv_bytes[family];

    return (int64_t) (bits << shift) >> shift;
}

static inline sv_value sv_reduce(uint32_t family, uint32_t rop, sv_value a, sv_value b)
{
    sv_value r = {0, 0, 0};
    uint64_t mask = ~0ull >> (64 - 8 * (sv_bytes[family] > 8 ? 8 : sv_bytes[family]));

    if (!sv_is_int(family)) {
        switch (rop) {
        case GP_ROP_SUM:
            r.re = a.re + b.re;
            r.im = a.im + b.im;
            break;
        case GP_ROP_PROD:
            r.re = a.re * b.re - a.im * b.im;
            r.im = a.re * b.im + a.im * b.re;
            break;
        case GP_ROP_MIN:
            r.re = std::fmin(a.re, b.re);
            break;
        default:
            r.re = std::fmax(a.re, b.re);
            break;
        }
        return r;
    }
    switch (rop) {
    case GP_ROP_SUM: r.bits = a.bits + b.bits; break;
    case GP_ROP_PROD: r.bits = a.bits * b.bits; break;
    case GP_ROP_MIN: r.bits = a.bits < b.bits ? a.bits : b.bits; break;
    case GP_ROP_MAX: r.bits = a.bits > b.bits ? a.bits : b.bits; break;
    case GP_ROP_MIN_S:
        r.bits = sv_signed(a.bits, family) < sv_signed(b.bits, family) ? a.bits : b.bits;
        break;
    case GP_ROP_MAX_S:
        r.bits = sv_signed(a.bits, family) > sv_signed(b.bits, family) ? a.bits : b.bits;
        break;
    case GP_ROP_BAND: r.bits = a.bits & b.bits; break;
    case GP_ROP_BOR: r.bits = a.bits | b.bits; break;
    case GP_ROP_BXOR: r.bits = a.bits ^ b.bits; break;
    case GP_ROP_LAND: r.bits = a.bits && b.bits; break;
    case GP_ROP_LOR: r.bits = a.bits || b.bits; break;
    default: r.bits = !a.bits != !b.bits; break;
    }
    r.bits &= mask;
    return r;
}

/* Bits of a double that a 16-bit float with `mantissa` bits and exponent bias holds exactly. */
static inline uint16_t sv_small_float(double d, int mantissa, int bias)
{
    int exponent;
    double m = std::frexp(std::fabs(d), &exponent); /* m in [0.5, 1) */
    uint16_t sign = d < 0 ? 0x8000 : 0;

    if (0 == d) {
        return 0;
    }
    return (uint16_t) (sign | (exponent - 1 + bias) << mantissa
                       | (int) ((2 * m - 1) * (1 << mantissa)));
}

static inline void sv_encode(uint32_t family, sv_value v, unsigned char *to)
{
    uint16_t h;
    float f[2] = {(float) v.re, (float) v.im};
    double d[2] = {v.re, v.im};

    switch (family) {
    case GP_FAMILY_F16:
        h = sv_small_float(v.re, 10, 15);
        memcpy(to, &h, 2);
        break;
    case GP_FAMILY_BF16:
        h = sv_small_float(v.re, 7, 127);
        memcpy(to, &h, 2);
        break;
    case GP_FAMILY_F32:
        memcpy(to, f, 4);
        break;
    case GP_FAMILY_F64:
        memcpy(to, d, 8);
        break;
    case GP_FAMILY_C32:
        memcpy(to, f, 8);
        break;
    case GP_FAMILY_C64:
        memcpy(to, d, 16);
        break;
    default:
        memcpy(to, &v.bits, sv_bytes[family]); /* little endian, like every GPU's host here */
        break;
    }
}

/* Equal as results: complex zeros may differ in sign, by the order of a product. */
static inline bool sv_equal(uint32_t family, const unsigned char *a, const unsigned char *b)
{
    if (GP_FAMILY_C32 == family) {
        float x[2];
        float y[2];

        memcpy(x, a, 8);
        memcpy(y, b, 8);
        return x[0] == y[0] && x[1] == y[1];
    }
    if (GP_FAMILY_C64 == family) {
        double x[2];
        double y[2];

        memcpy(x, a, 16);
        memcpy(y, b, 16);
        return x[0] == y[0] && x[1] == y[1];
    }
    return 0 == memcmp(a, b, sv_bytes[family]);
}

#endif /* SIMT_VALUES_H */
