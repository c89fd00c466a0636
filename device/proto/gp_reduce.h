/*
 * gp_reduce.h - the arithmetic of a reduction, one element at a time.
 *
 * Owns the meaning of every (family, rop): gp_<rop>_<family>(a, b), and gp_reduce_<family>(rop, a, b)
 * which switches over them. Valid as C11, C++ and CUDA C++ and, by these rules, equal to the last bit
 * on all of them:
 *   - integers wrap (computed unsigned); logical operations give 0 or 1 of the type's width
 *   - no fused multiply-add (-ffp-contract=off, -fmad=false)
 *   - a NaN result is always the one quiet pattern of its width, whatever the operands' payloads
 *   - MIN and MAX: NaN if either operand is NaN; -0 < +0
 *   - 16-bit floats: widen, compute in float, round once to nearest even (gp_half.h)
 *   - complex product (ar br - ai bi, ar bi + ai br), each component on its own
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_REDUCE_H
#define GP_REDUCE_H

#include "device/proto/gp_half.h"
#include "device/proto/gp_types.h"

typedef uint8_t gp_u8_t;
typedef uint16_t gp_u16_t;
typedef uint32_t gp_u32_t;
typedef uint64_t gp_u64_t;
typedef uint16_t gp_f16_t;  /* bits */
typedef uint16_t gp_bf16_t; /* bits */
typedef float gp_f32_t;
typedef double gp_f64_t;

typedef struct gp_c32 {
    float re, im;
} gp_c32_t;

typedef struct gp_c64 {
    double re, im;
} gp_c64_t;

GP_FN double gp_bits_f64(uint64_t bits)
{
    double f;
#if defined(__CUDA_ARCH__)
    f = __longlong_as_double((long long) bits);
#else
    __builtin_memcpy(&f, &bits, sizeof(f));
#endif
    return f;
}

GP_FN uint64_t gp_f64_bits(double f)
{
    uint64_t bits;
#if defined(__CUDA_ARCH__)
    bits = (uint64_t) __double_as_longlong(f);
#else
    __builtin_memcpy(&bits, &f, sizeof(bits));
#endif
    return bits;
}

GP_FN float gp_canon_f32(float f)
{
    return f == f ? f : gp_bits_f32(GP_F32_NAN_BITS);
}

GP_FN double gp_canon_f64(double f)
{
    return f == f ? f : gp_bits_f64(0x7ff8000000000000ull);
}

/* Integers of n bits: W is what the arithmetic runs in, S the signed type of the width. */
#define GP_REDUCE_INT(F, W, S)                                                                     \
    GP_FN gp_##F##_t gp_sum_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        return (gp_##F##_t) ((W) a + (W) b);                                                       \
    }                                                                                              \
    GP_FN gp_##F##_t gp_prod_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        return (gp_##F##_t) ((W) a * (W) b);                                                       \
    }                                                                                              \
    GP_FN gp_##F##_t gp_min_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    GP_FN gp_##F##_t gp_max_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        return b > a ? b : a;                                                                      \
    }                                                                                              \
    GP_FN gp_##F##_t gp_min_s_##F(gp_##F##_t a, gp_##F##_t b)                                      \
    {                                                                                              \
        return (S) b < (S) a ? b : a;                                                              \
    }                                                                                              \
    GP_FN gp_##F##_t gp_max_s_##F(gp_##F##_t a, gp_##F##_t b)                                      \
    {                                                                                              \
        return (S) b > (S) a ? b : a;                                                              \
    }                                                                                              \
    GP_FN gp_##F##_t gp_band_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        return (gp_##F##_t) (a & b);                                                               \
    }                                                                                              \
    GP_FN gp_##F##_t gp_bor_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        return (gp_##F##_t) (a | b);                                                               \
    }                                                                                              \
    GP_FN gp_##F##_t gp_bxor_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        return (gp_##F##_t) (a ^ b);                                                               \
    }                                                                                              \
    GP_FN gp_##F##_t gp_land_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        return (gp_##F##_t) ((0 != a) & (0 != b));                                                 \
    }                                                                                              \
    GP_FN gp_##F##_t gp_lor_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        return (gp_##F##_t) ((0 != a) | (0 != b));                                                 \
    }                                                                                              \
    GP_FN gp_##F##_t gp_lxor_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        return (gp_##F##_t) ((0 != a) ^ (0 != b));                                                 \
    }

GP_REDUCE_INT(u8, uint32_t, int8_t)
GP_REDUCE_INT(u16, uint32_t, int16_t)
GP_REDUCE_INT(u32, uint32_t, int32_t)
GP_REDUCE_INT(u64, uint64_t, int64_t)

GP_FN float gp_sum_f32(float a, float b)
{
    return gp_canon_f32(a + b);
}

GP_FN float gp_prod_f32(float a, float b)
{
    return gp_canon_f32(a * b);
}

/* Equal operands differ at most in the sign of zero: OR of the bits takes -0, AND takes +0. */
GP_FN float gp_min_f32(float a, float b)
{
    float m = a < b ? a : b;

    m = a == b ? gp_bits_f32(gp_f32_bits(a) | gp_f32_bits(b)) : m;
    return a != a || b != b ? gp_bits_f32(GP_F32_NAN_BITS) : m;
}

GP_FN float gp_max_f32(float a, float b)
{
    float m = a > b ? a : b;

    m = a == b ? gp_bits_f32(gp_f32_bits(a) & gp_f32_bits(b)) : m;
    return a != a || b != b ? gp_bits_f32(GP_F32_NAN_BITS) : m;
}

GP_FN double gp_sum_f64(double a, double b)
{
    return gp_canon_f64(a + b);
}

GP_FN double gp_prod_f64(double a, double b)
{
    return gp_canon_f64(a * b);
}

GP_FN double gp_min_f64(double a, double b)
{
    double m = a < b ? a : b;

    m = a == b ? gp_bits_f64(gp_f64_bits(a) | gp_f64_bits(b)) : m;
    return a != a || b != b ? gp_canon_f64(gp_bits_f64(~0ull)) : m;
}

GP_FN double gp_max_f64(double a, double b)
{
    double m = a > b ? a : b;

    m = a == b ? gp_bits_f64(gp_f64_bits(a) & gp_f64_bits(b)) : m;
    return a != a || b != b ? gp_canon_f64(gp_bits_f64(~0ull)) : m;
}

#define GP_REDUCE_HALF(F, op)                                                                      \
    GP_FN gp_##F##_t gp_##op##_##F(gp_##F##_t a, gp_##F##_t b)                                     \
    {                                                                                              \
        return gp_##F##_from_f32(gp_##op##_f32(gp_f32_from_##F(a), gp_f32_from_##F(b)));           \
    }

GP_REDUCE_HALF(f16, sum)
GP_REDUCE_HALF(f16, prod)
GP_REDUCE_HALF(f16, min)
GP_REDUCE_HALF(f16, max)
GP_REDUCE_HALF(bf16, sum)
GP_REDUCE_HALF(bf16, prod)
GP_REDUCE_HALF(bf16, min)
GP_REDUCE_HALF(bf16, max)

#define GP_REDUCE_COMPLEX(F, R)                                                                    \
    GP_FN gp_##F##_t gp_sum_##F(gp_##F##_t a, gp_##F##_t b)                                        \
    {                                                                                              \
        gp_##F##_t r;                                                                              \
        r.re = gp_sum_##R(a.re, b.re);                                                             \
        r.im = gp_sum_##R(a.im, b.im);                                                             \
        return r;                                                                                  \
    }                                                                                              \
    GP_FN gp_##F##_t gp_prod_##F(gp_##F##_t a, gp_##F##_t b)                                       \
    {                                                                                              \
        gp_##F##_t r;                                                                              \
        r.re = gp_canon_##R(a.re * b.re - a.im * b.im);                                            \
        r.im = gp_canon_##R(a.re * b.im + a.im * b.re);                                            \
        return r;                                                                                  \
    }

GP_REDUCE_COMPLEX(c32, f32)
GP_REDUCE_COMPLEX(c64, f64)

/*
 * Lists of a family's operations, for switches and tables: X(FAMILY, family, ROP, rop).
 */
#define GP_ROPS_INT(X, U, F)                                                                       \
    X(U, F, SUM, sum) X(U, F, PROD, prod) X(U, F, MIN, min) X(U, F, MAX, max)                      \
    X(U, F, MIN_S, min_s) X(U, F, MAX_S, max_s) X(U, F, BAND, band) X(U, F, BOR, bor)              \
    X(U, F, BXOR, bxor) X(U, F, LAND, land) X(U, F, LOR, lor) X(U, F, LXOR, lxor)
#define GP_ROPS_FLOAT(X, U, F)                                                                     \
    X(U, F, SUM, sum) X(U, F, PROD, prod) X(U, F, MIN, min) X(U, F, MAX, max)
#define GP_ROPS_COMPLEX(X, U, F) X(U, F, SUM, sum) X(U, F, PROD, prod)

#define GP_REDUCE_CASE(U, F, ROP, rop_name)                                                        \
    case GP_ROP_##ROP:                                                                             \
        return gp_##rop_name##_##F(a, b);

/* An operation outside the family's list gives a: callers checked with gp_red_of(). */
#define GP_REDUCE_SWITCH(U, F, LIST)                                                               \
    GP_FN gp_##F##_t gp_reduce_##F(uint32_t rop, gp_##F##_t a, gp_##F##_t b)                       \
    {                                                                                              \
        switch (rop) {                                                                             \
            LIST(GP_REDUCE_CASE, U, F)                                                             \
        default:                                                                                   \
            return a;                                                                              \
        }                                                                                          \
    }

GP_REDUCE_SWITCH(U8, u8, GP_ROPS_INT)
GP_REDUCE_SWITCH(U16, u16, GP_ROPS_INT)
GP_REDUCE_SWITCH(U32, u32, GP_ROPS_INT)
GP_REDUCE_SWITCH(U64, u64, GP_ROPS_INT)
GP_REDUCE_SWITCH(F16, f16, GP_ROPS_FLOAT)
GP_REDUCE_SWITCH(BF16, bf16, GP_ROPS_FLOAT)
GP_REDUCE_SWITCH(F32, f32, GP_ROPS_FLOAT)
GP_REDUCE_SWITCH(F64, f64, GP_ROPS_FLOAT)
GP_REDUCE_SWITCH(C32, c32, GP_ROPS_COMPLEX)
GP_REDUCE_SWITCH(C64, c64, GP_ROPS_COMPLEX)

/* All families with their lists: X(FAMILY, family, LIST). */
#define GP_FAMILIES(X)                                                                             \
    X(U8, u8, GP_ROPS_INT) X(U16, u16, GP_ROPS_INT) X(U32, u32, GP_ROPS_INT)                       \
    X(U64, u64, GP_ROPS_INT) X(F16, f16, GP_ROPS_FLOAT) X(BF16, bf16, GP_ROPS_FLOAT)               \
    X(F32, f32, GP_ROPS_FLOAT) X(F64, f64, GP_ROPS_FLOAT) X(C32, c32, GP_ROPS_COMPLEX)             \
    X(C64, c64, GP_ROPS_COMPLEX)

#endif /* GP_REDUCE_H */
