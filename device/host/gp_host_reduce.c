/*
 * gp_host_reduce.c - one loop per (family, operation), the switch hoisted out of it.
 *
 * The arithmetic is gp_reduce.h's, so the bits are the GPU's. Loops are compiled for the baseline and
 * for AVX2; -ffp-contract=off keeps both to the same results.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/host/gp_host_reduce.h"

#include "device/proto/gp_reduce.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) \
    && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define GP_CLONES __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define GP_CLONES
#endif

#define GP_HOST_LOOP(U, F, ROP, rop_name)                                                          \
    GP_CLONES static void loop_##rop_name##_##F(void *dst, const void *a, const void *b,           \
                                                size_t elems)                                      \
    {                                                                                              \
        gp_##F##_t *d = dst;                                                                       \
        const gp_##F##_t *x = a;                                                                   \
        const gp_##F##_t *y = b;                                                                   \
                                                                                                   \
        for (size_t i = 0; i < elems; i++) {                                                       \
            d[i] = gp_##rop_name##_##F(x[i], y[i]);                                                \
        }                                                                                          \
    }

#define GP_HOST_LOOPS(U, F, LIST) LIST(GP_HOST_LOOP, U, F)
GP_FAMILIES(GP_HOST_LOOPS)

#define GP_HOST_ENTRY(U, F, ROP, rop_name) [GP_FAMILY_##U][GP_ROP_##ROP] = loop_##rop_name##_##F,
#define GP_HOST_ENTRIES(U, F, LIST) LIST(GP_HOST_ENTRY, U, F)

static const gp_host_reduce_fn loops[GP_FAMILY_COUNT][GP_ROP_COUNT] = {
    GP_FAMILIES(GP_HOST_ENTRIES)
};

gp_host_reduce_fn gp_host_reduce_of(gp_red_t red)
{
    if (!red.valid || red.family >= GP_FAMILY_COUNT || red.rop >= GP_ROP_COUNT) {
        return NULL;
    }
    return loops[red.family][red.rop];
}
