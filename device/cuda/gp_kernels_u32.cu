/*
 * gp_kernels_u32.cu - the kernels of family u32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(u32)
