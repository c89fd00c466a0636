/*
 * gp_kernels_f32.cu - the kernels of family f32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(f32)
