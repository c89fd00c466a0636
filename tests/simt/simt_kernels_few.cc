/*
 * simt_kernels_few.cc - kernels of several families, compiled for the CPU from their own sources.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/simt/gp_simt.h"

#include "device/cuda/gp_kernels_u8.cu"
#include "device/cuda/gp_kernels_f32.cu"
#include "device/cuda/gp_kernels_c64.cu"
