/*
 * gp_simt_port.h - the kernels' part of gp_port.h, for a CPU.
 *
 * Owns the meaning of every primitive of a kernel in the model: what is a plain access (so that
 * ThreadSanitizer reports a missing order), what is atomic, what meets whom. Included by gp_port.h
 * through GP_PORT_SIMT only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIMT_PORT_H
#define GP_SIMT_PORT_H

#include "tests/simt/gp_simt.h"

#define GP_DEV static inline __attribute__((unused))
#define GP_DEV_NOINLINE static __attribute__((noinline, unused))
#define GP_KERNEL(name, max_threads, args) extern "C" void name(args)
#define GP_DYN_SHARED(name) unsigned char *name = simt_self->shared
#define GP_UNROLL

#define threadIdx (simt_self->thread)
#define blockIdx (simt_self->block)
#define blockDim (simt_self->block_dim)
#define gridDim (simt_self->grid_dim)

GP_DEV void gp_barrier_block(void)
{
    simt_barrier(0, simt_self->block_dim.x);
}

GP_DEV void gp_barrier_group(uint32_t id, uint32_t threads)
{
    simt_barrier(id, threads);
}

GP_DEV void gp_sync_warp(void)
{
    (void) simt_vote(SIMT_VOTE_SYNC, 0);
}

GP_DEV uint32_t gp_ballot_of(simt_vote_t kind, int predicate)
{
    const uint32_t *lanes = simt_vote(kind, 0 != predicate);
    uint32_t bits = 0;

    for (uint32_t i = 0; i < 32; ++i) {
        bits |= lanes[i] << i;
    }
    return bits;
}

GP_DEV int gp_any_warp(int predicate)
{
    return 0 != gp_ballot_of(SIMT_VOTE_ANY, predicate);
}

GP_DEV uint32_t gp_ballot_warp(int predicate)
{
    return gp_ballot_of(SIMT_VOTE_BALLOT, predicate);
}

GP_DEV uint32_t gp_shuffle_up(uint32_t value, uint32_t lanes)
{
    uint32_t lane = simt_self->thread.x % 32;
    const uint32_t *values = simt_vote(SIMT_VOTE_SHUFFLE, value);

    return values[lane < lanes ? lane : lane - lanes];
}

GP_DEV uint32_t gp_popcount(uint32_t bits)
{
    return (uint32_t) __builtin_popcount(bits);
}

GP_DEV uint32_t gp_shared_load_u32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

GP_DEV void gp_shared_store_u32(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

GP_DEV uint64_t gp_shared_load_u64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

GP_DEV void gp_shared_store_u64(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

GP_DEV uint64_t gp_atomic_add_fetch_acq_rel_u64(uint64_t *p, uint64_t v)
{
    uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

    /* Not __atomic_add_fetch(): gcc 12 adds the old value twice when it is inlined here. */
    simt_stored();
    while (!__atomic_compare_exchange_n(p, &old, old + v, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return old + v;
}

GP_DEV uint64_t gp_atomic_or_acq_rel_u64(uint64_t *p, uint64_t v)
{
    return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL);
}

/* User memory and Simple's slots are plain accesses. */
#define SIMT_PLAIN(name, type)                                                                     \
    GP_DEV type gp_load_user_##name(const void *p)                                                 \
    {                                                                                              \
        simt_check_aligned(p, sizeof(type));                                                       \
        return *(const type *) p;                                                                  \
    }                                                                                              \
    GP_DEV void gp_store_user_##name(void *p, type v)                                              \
    {                                                                                              \
        simt_check_aligned(p, sizeof(type));                                                       \
        *(type *) p = v;                                                                           \
    }

SIMT_PLAIN(u8, uint8_t)
SIMT_PLAIN(u16, uint16_t)
SIMT_PLAIN(u32, uint32_t)
SIMT_PLAIN(u64, uint64_t)

GP_DEV gp_vec16_t gp_load_user_vec16(const void *p)
{
    simt_check_aligned(p, 16);
    return *(const gp_vec16_t *) p;
}

GP_DEV void gp_store_user_vec16(void *p, gp_vec16_t v)
{
    simt_check_aligned(p, 16);
    *(gp_vec16_t *) p = v;
}

GP_DEV gp_vec16_t gp_load_slot_vec16(const void *p)
{
    simt_preempt();
    return gp_load_user_vec16(p);
}

GP_DEV void gp_store_slot_vec16(void *p, gp_vec16_t v)
{
    simt_preempt();
    gp_store_user_vec16(p, v);
}

GP_DEV void gp_store_line_vec16(void *p, gp_vec16_t v)
{
    simt_check_aligned(p, 16);
    simt_store_line(p, v.w[0], v.w[1]);
}

GP_DEV void gp_poll_pause(uint32_t wait_kind, uint64_t step, uint32_t peer)
{
    simt_poll(wait_kind, step, peer);
}

#endif /* GP_SIMT_PORT_H */
