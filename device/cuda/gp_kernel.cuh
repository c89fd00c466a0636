/*
 * gp_kernel.cuh - a kernel: setup, streams, end; and the three entry points of a family.
 *
 * Owns the entry points' names. Each gp_kernels_<family>.cu instantiates one family, so that they
 * compile in parallel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_KERNEL_CUH
#define GP_KERNEL_CUH

#include "device/cuda/gp_ksetup.cuh"
#include "device/cuda/gp_kstream.cuh"
#include "device/cuda/gp_ll.cuh"
#include "device/cuda/gp_ll128.cuh"
#include "device/cuda/gp_simple.cuh"

/* All threads of a block of channel blockIdx.x. */
template <uint32_t PROTOCOL, class MOVER>
GP_DEV void gp_kernel_run(const gp_kargs_t *args, unsigned char *shared)
{
    gp_kctx_t x;

    gp_setup(&x, args, shared, PROTOCOL);
    if (GP_PROTO_LL == PROTOCOL && args->ll_zero) {
        gp_zero_fifos(&x);
    }
    gp_run_stream<MOVER>(&x);
    gp_finish(&x, PROTOCOL);
}

#define GP_KERNELS(F)                                                                              \
    GP_KERNEL(gp_kernel_##F##_ll, GP_KERNEL_MAX_THREADS_LL, gp_kargs_t args)                       \
    {                                                                                              \
        GP_DYN_SHARED(shared);                                                                     \
        gp_kernel_run<GP_PROTO_LL, gp_ll_mover<gp_fam_##F> >(&args, shared);                       \
    }                                                                                              \
    GP_KERNEL(gp_kernel_##F##_ll128, GP_KERNEL_MAX_THREADS_LL128, gp_kargs_t args)                 \
    {                                                                                              \
        GP_DYN_SHARED(shared);                                                                     \
        gp_kernel_run<GP_PROTO_LL128, gp_ll128_mover<gp_fam_##F> >(&args, shared);                 \
    }                                                                                              \
    GP_KERNEL(gp_kernel_##F##_simple, GP_KERNEL_MAX_THREADS_SIMPLE, gp_kargs_t args)               \
    {                                                                                              \
        GP_DYN_SHARED(shared);                                                                     \
        gp_kernel_run<GP_PROTO_SIMPLE, gp_simple_mover<gp_fam_##F> >(&args, shared);               \
    }

#endif /* GP_KERNEL_CUH */
