/*
 * gp_kernels_f16.cu - the kernels of family f16.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(f16)
