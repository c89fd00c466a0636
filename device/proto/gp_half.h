/*
 * gp_half.h - 16-bit floating point as bits: conversion from and to float.
 *
 * Owns the one rounding rule of both 16-bit types: widen exactly, compute in float, round once to nearest
 * even. On the GPU the hardware's conversions do the same; every NaN becomes one quiet pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_HALF_H
#define GP_HALF_H

#include "device/proto/gp_port.h"

#define GP_F32_NAN_BITS 0x7fc00000u
#define GP_F16_NAN_BITS 0x7e00u
#define GP_BF16_NAN_BITS 0x7fc0u

GP_FN float gp_bits_f32(uint32_t bits)
{
    float f;
#if defined(__CUDA_ARCH__)
    f = __uint_as_float(bits);
#else
    __builtin_memcpy(&f, &bits, sizeof(f));
#endif
    return f;
}

GP_FN uint32_t gp_f32_bits(float f)
{
    uint32_t bits;
#if defined(__CUDA_ARCH__)
    bits = __float_as_uint(f);
#else
    __builtin_memcpy(&bits, &f, sizeof(bits));
#endif
    return bits;
}

GP_FN float gp_f32_from_bf16(uint16_t h)
{
    return gp_bits_f32((uint32_t) h << 16);
}

GP_FN uint16_t gp_bf16_from_f32(float f)
{
    uint32_t bits = gp_f32_bits(f);

    if (f != f) {
        return GP_BF16_NAN_BITS;
    }
    /* Round half to even on the 16 bits that go; overflow carries into infinity by itself. */
    return (uint16_t) ((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

GP_FN float gp_f32_from_f16(uint16_t h)
{
#if defined(__CUDA_ARCH__)
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    uint32_t sign = (uint32_t) (h & 0x8000u) << 16;
    uint32_t rest = h & 0x7fffu;

    if (rest >= 0x7c00u) { /* infinity, NaN */
        return gp_bits_f32(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    }
    if (rest < 0x400u) { /* zero, subnormal: rest * 2^-24, exact in float */
        float f = (float) (int32_t) rest * 5.9604644775390625e-08f;

        return gp_bits_f32(sign | gp_f32_bits(f));
    }
    return gp_bits_f32(sign | ((rest << 13) + ((127u - 15u) << 23)));
#endif
}

GP_FN uint16_t gp_f16_from_f32(float f)
{
    if (f != f) {
        return GP_F16_NAN_BITS;
    }
#if defined(__CUDA_ARCH__)
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t bits = gp_f32_bits(f);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;

    if (rest >= 0x47800000u) { /* 65536 and above, infinity */
        return (uint16_t) (sign | 0x7c00u);
    }
    if (rest < 0x38800000u) { /* below 2^-14: adding 0.5 rounds to a multiple of 2^-24 */
        float g = gp_bits_f32(rest) + 0.5f;

        return (uint16_t) (sign | (gp_f32_bits(g) - 0x3f000000u));
    }
    rest -= (127u - 15u) << 23;
    /* Overflow from 65520 up carries into 0x7c00, infinity. */
    return (uint16_t) (sign | (rest + 0xfffu + ((rest >> 13) & 1u)) >> 13);
#endif
}

#endif /* GP_HALF_H */
