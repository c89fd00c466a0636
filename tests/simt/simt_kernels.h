/*
 * simt_kernels.h - declarations of the kernels under test, and the table sw_kernels.
 *
 * Included once per test program. SIMT_FAMILIES(X) lists the families linked into it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SIMT_KERNELS_H
#define SIMT_KERNELS_H

#include "tests/simt/simt_world.h"

#if defined(SIMT_FEW_FAMILIES)
#define SIMT_FAMILIES(X) X(U8, u8) X(F32, f32) X(C64, c64)
#else
#define SIMT_FAMILIES(X)                                                                           \
    X(U8, u8) X(U16, u16) X(U32, u32) X(U64, u64) X(F16, f16) X(BF16, bf16) X(F32, f32)            \
    X(F64, f64) X(C32, c32) X(C64, c64)
#endif

#define SIMT_DECLARE(U, F)                                                                         \
    extern "C" void gp_kernel_##F##_ll(gp_kargs_t args);                                           \
    extern "C" void gp_kernel_##F##_ll128(gp_kargs_t args);                                        \
    extern "C" void gp_kernel_##F##_simple(gp_kargs_t args);
#define SIMT_REGISTER(U, F)                                                                        \
    sw_kernels[GP_FAMILY_##U][GP_PROTO_LL] = gp_kernel_##F##_ll;                                   \
    sw_kernels[GP_FAMILY_##U][GP_PROTO_LL128] = gp_kernel_##F##_ll128;                             \
    sw_kernels[GP_FAMILY_##U][GP_PROTO_SIMPLE] = gp_kernel_##F##_simple;

sw_kernel_t sw_kernels[GP_FAMILY_COUNT][GP_PROTO_COUNT];

SIMT_FAMILIES(SIMT_DECLARE)

static inline void simt_register(void)
{
    SIMT_FAMILIES(SIMT_REGISTER)
}

#endif /* SIMT_KERNELS_H */
