/*
 * gp_kernels_f64.cu - the kernels of family f64.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(f64)
