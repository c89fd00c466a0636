/*
 * gp_kernels_c64.cu - the kernels of family c64.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(c64)
