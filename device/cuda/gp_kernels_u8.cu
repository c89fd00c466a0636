/*
 * gp_kernels_u8.cu - the kernels of family u8.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(u8)
