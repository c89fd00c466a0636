/*
 * gp_kernels_c32.cu - the kernels of family c32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(c32)
