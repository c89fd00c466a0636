/*
 * gp_kernels_bf16.cu - the kernels of family bf16.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_kernel.cuh"

GP_KERNELS(bf16)
