/*
 * gp_kernels_u16.cu - the kernels of family u16.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(u16)
