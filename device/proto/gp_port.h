/*
 * gp_port.h - one spelling of qualifiers, atomics and memory ordering.
 *
 * Owns every memory-ordering primitive of the project. Valid as C11, as host C++ and as CUDA C++.
 * Branches: GPU code (PTX), and everything else (compiler __atomic builtins, which ThreadSanitizer
 * understands; stand-alone fences are avoided there because it ignores them). What only kernels use
 * follows at the end: PTX again, or whatever GP_PORT_SIMT names, a header that runs kernels on a
 * CPU.
 *
 * Naming: gp_load_<order>_<type>, gp_store_<order>_<type>. All scopes are "system": a peer may be
 * another process, another GPU or the CPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_PORT_H
#define GP_PORT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define GP_FN static __host__ __device__ __forceinline__
#else
#define GP_FN static inline __attribute__((always_inline, unused))
#endif

#if defined(__cplusplus)
#define GP_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define GP_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* One counter per line: no two parties ever write the same 128 bytes. */
#define GP_LINE_BYTES 128

/* Where the kernel tests may interrupt a pair of 8-byte accesses; nothing anywhere else. */
#ifndef GP_PORT_PREEMPT
#define GP_PORT_PREEMPT() ((void) 0)
#endif

/* A 16-byte vector: the unit of payload in every protocol. */
typedef struct gp_vec16 {
    uint64_t w[2];
} gp_vec16_t;

#if defined(__CUDA_ARCH__)

GP_FN uint32_t gp_load_relaxed_u32(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

GP_FN uint64_t gp_load_relaxed_u64(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

GP_FN uint64_t gp_load_acquire_u64(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

GP_FN void gp_store_relaxed_u32(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

GP_FN void gp_store_relaxed_u64(uint64_t *p, uint64_t v)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

GP_FN void gp_store_release_u64(uint64_t *p, uint64_t v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

/*
 * Post a head: the slots it frees were read by loads whose results this block has used, and a barrier
 * lies between. A GPU issues a warp's instructions in order and speculates neither loads nor stores, so
 * those loads are complete and no fence is needed, which would be most of a short step (P6 in
 * docs/protocols.md). Acquired by the sender's load of head.
 */
GP_FN void gp_store_head_u64(uint64_t *p, uint64_t v)
{
    gp_store_relaxed_u64(p, v);
}

/*
 * Look at a head before the slot it frees is written. Relaxed: the stores depend on the value by a
 * branch, a GPU does not speculate stores, and the payload that was there is of no interest (P9).
 */
GP_FN uint64_t gp_load_head_u64(const uint64_t *p)
{
    return gp_load_relaxed_u64(p);
}

/* Release, then one 16-byte store: each 8-byte half is indivisible, the first is what is acquired. */
GP_FN void gp_store_release_vec16(void *p, gp_vec16_t v)
{
    asm volatile("fence.acq_rel.sys;" : : : "memory");
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1,%2};"
                 :
                 : "l"(p), "l"(v.w[0]), "l"(v.w[1])
                 : "memory");
}

/* Two 8-byte units, each indivisible; nothing is promised about the pair. */
GP_FN gp_vec16_t gp_load_relaxed_vec16(const void *p)
{
    gp_vec16_t v;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0,%1}, [%2];"
                 : "=l"(v.w[0]), "=l"(v.w[1])
                 : "l"(p)
                 : "memory");
    return v;
}

GP_FN void gp_store_relaxed_vec16(void *p, gp_vec16_t v)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1,%2};"
                 :
                 : "l"(p), "l"(v.w[0]), "l"(v.w[1])
                 : "memory");
}

GP_FN void gp_cpu_relax(void)
{
}

#else /* CPU: C11, C++, and the host side of nvcc */

GP_FN uint32_t gp_load_relaxed_u32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

GP_FN uint32_t gp_load_acquire_u32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

GP_FN uint64_t gp_load_relaxed_u64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

GP_FN uint64_t gp_load_acquire_u64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

GP_FN void gp_store_relaxed_u32(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

GP_FN void gp_store_relaxed_u64(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

GP_FN void gp_store_release_u32(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

GP_FN void gp_store_release_u64(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Among processes of a host. Result: the sum. */
GP_FN uint64_t gp_add_fetch_acq_rel_u64(uint64_t *p, uint64_t v)
{
    return __atomic_add_fetch(p, v, __ATOMIC_ACQ_REL);
}

/* Post a head; a CPU needs the release. */
GP_FN void gp_store_head_u64(uint64_t *p, uint64_t v)
{
    gp_store_release_u64(p, v);
}

/* Look at a head; pairs with gp_store_head_u64(). */
GP_FN uint64_t gp_load_head_u64(const uint64_t *p)
{
    return gp_load_acquire_u64(p);
}

/* Two words, the first of which is released last and acquired by the reader. */
GP_FN void gp_store_release_vec16(void *p, gp_vec16_t v)
{
    uint64_t *q = (uint64_t *) p;

    __atomic_store_n(q + 1, v.w[1], __ATOMIC_RELAXED);
    __atomic_store_n(q, v.w[0], __ATOMIC_RELEASE);
}

GP_FN gp_vec16_t gp_load_relaxed_vec16(const void *p)
{
    const uint64_t *q = (const uint64_t *) p;
    gp_vec16_t v;
    v.w[0] = __atomic_load_n(q, __ATOMIC_RELAXED);
    GP_PORT_PREEMPT();
    v.w[1] = __atomic_load_n(q + 1, __ATOMIC_RELAXED);
    return v;
}

GP_FN void gp_store_relaxed_vec16(void *p, gp_vec16_t v)
{
    uint64_t *q = (uint64_t *) p;
    __atomic_store_n(q, v.w[0], __ATOMIC_RELAXED);
    GP_PORT_PREEMPT();
    __atomic_store_n(q + 1, v.w[1], __ATOMIC_RELAXED);
}

GP_FN void gp_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

#endif

/*
 * For kernels only. GP_DEV functions run on the GPU. The CPU version of this part is a header of
 * the kernel tests, named by GP_PORT_SIMT.
 *
 *   group barrier   named barrier `id` (1 .. 15) for `threads` threads of the block; orders all
 *   memory
 *                   of the block, like the block's barrier
 *   user            the caller's buffers: any address, never cached as read-only, not kept in
 *   caches slot            payload of a FIFO whose counters order it (Simple); loads never hit a
 *   stale L1 line            payload that carries its own flag; 16 bytes of 8 consecutive lanes
 *   make 128 bytes
 *                   that become visible together where LL128 is allowed
 */
#if defined(__CUDACC__)

#define GP_DEV static __device__ __forceinline__
#define GP_DEV_NOINLINE static __device__ __noinline__
#define GP_KERNEL(name, max_threads, args)                                                         \
    extern "C" __global__ void __launch_bounds__(max_threads, 1) name(const __grid_constant__ args)
#define GP_DYN_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define GP_UNROLL _Pragma("unroll")

GP_DEV void gp_barrier_block(void)
{
    __syncthreads();
}

GP_DEV void gp_barrier_group(uint32_t id, uint32_t threads)
{
    asm volatile("barrier.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

GP_DEV void gp_sync_warp(void)
{
    __syncwarp();
}

/* Votes wait for all lanes; they order no memory. */
GP_DEV int gp_any_warp(int predicate)
{
    return __any_sync(0xffffffffu, predicate);
}

GP_DEV uint32_t gp_ballot_warp(int predicate)
{
    return __ballot_sync(0xffffffffu, predicate);
}

GP_DEV uint32_t gp_shuffle_up(uint32_t value, uint32_t lanes)
{
    return __shfl_up_sync(0xffffffffu, value, lanes);
}

GP_DEV uint32_t gp_popcount(uint32_t bits)
{
    return (uint32_t) __popc(bits);
}

/* A flag in shared memory, set by any thread between barriers. */
GP_DEV uint32_t gp_shared_load_u32(const uint32_t *p)
{
    return *(const volatile uint32_t *) p;
}

GP_DEV void gp_shared_store_u32(uint32_t *p, uint32_t v)
{
    *(volatile uint32_t *) p = v;
}

GP_DEV uint64_t gp_shared_load_u64(const uint64_t *p)
{
    return *(const volatile uint64_t *) p;
}

GP_DEV void gp_shared_store_u64(uint64_t *p, uint64_t v)
{
    *(volatile uint64_t *) p = v;
}

/* Among the blocks of a kernel. */
/* Result: the sum. */
GP_DEV uint64_t gp_atomic_add_fetch_acq_rel_u64(uint64_t *p, uint64_t v)
{
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(p), "l"(v)
                 : "memory");
    return old + v;
}

GP_DEV uint64_t gp_atomic_or_acq_rel_u64(uint64_t *p, uint64_t v)
{
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.or.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(p), "l"(v)
                 : "memory");
    return old;
}

GP_DEV uint8_t gp_load_user_u8(const void *p)
{
    uint16_t v;
    asm volatile("ld.global.cs.u8 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
    return (uint8_t) v;
}

GP_DEV uint16_t gp_load_user_u16(const void *p)
{
    uint16_t v;
    asm volatile("ld.global.cs.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
    return v;
}

GP_DEV uint32_t gp_load_user_u32(const void *p)
{
    uint32_t v;
    asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

GP_DEV uint64_t gp_load_user_u64(const void *p)
{
    uint64_t v;
    asm volatile("ld.global.cs.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

GP_DEV gp_vec16_t gp_load_user_vec16(const void *p)
{
    gp_vec16_t v;
    asm volatile("ld.global.cs.v2.u64 {%0,%1}, [%2];"
                 : "=l"(v.w[0]), "=l"(v.w[1])
                 : "l"(p)
                 : "memory");
    return v;
}

GP_DEV void gp_store_user_u8(void *p, uint8_t v)
{
    asm volatile("st.global.cs.u8 [%0], %1;" : : "l"(p), "h"((uint16_t) v) : "memory");
}

GP_DEV void gp_store_user_u16(void *p, uint16_t v)
{
    asm volatile("st.global.cs.u16 [%0], %1;" : : "l"(p), "h"(v) : "memory");
}

GP_DEV void gp_store_user_u32(void *p, uint32_t v)
{
    asm volatile("st.global.cs.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

GP_DEV void gp_store_user_u64(void *p, uint64_t v)
{
    asm volatile("st.global.cs.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

GP_DEV void gp_store_user_vec16(void *p, gp_vec16_t v)
{
    asm volatile("st.global.cs.v2.u64 [%0], {%1,%2};"
                 :
                 : "l"(p), "l"(v.w[0]), "l"(v.w[1])
                 : "memory");
}

GP_DEV gp_vec16_t gp_load_slot_vec16(const void *p)
{
    return gp_load_relaxed_vec16(p);
}

/* Weak: the release of tail behind the group's barrier publishes it. */
GP_DEV void gp_store_slot_vec16(void *p, gp_vec16_t v)
{
    asm volatile("st.global.v2.u64 [%0], {%1,%2};"
                 :
                 : "l"(p), "l"(v.w[0]), "l"(v.w[1])
                 : "memory");
}

/* All 8 lanes of a line execute it together. */
GP_DEV void gp_store_line_vec16(void *p, gp_vec16_t v)
{
    gp_store_relaxed_vec16(p, v);
}

/* Called in every poll loop: wait_kind is a gp_wait_kind_t. */
GP_DEV void gp_poll_pause(uint32_t wait_kind, uint64_t step, uint32_t peer)
{
    (void) wait_kind;
    (void) step;
    (void) peer;
}

#elif defined(GP_PORT_SIMT)
#include GP_PORT_SIMT
#endif

#endif /* GP_PORT_H */
