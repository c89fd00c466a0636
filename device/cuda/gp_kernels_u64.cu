/*
 * gp_kernels_u64.cu - the kernels of family u64.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(u64)
