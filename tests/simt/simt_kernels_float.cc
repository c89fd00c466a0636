/*
 * simt_kernels_float.cc - kernels of several families, compiled for the CPU from their own sources.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/simt/gp_simt.h"

#include "device/cuda/gp_kernels_f16.cu"
#include "device/cuda/gp_kernels_bf16.cu"
#include "device/cuda/gp_kernels_f32.cu"
#include "device/cuda/gp_kernels_f64.cu"
#include "device/cuda/gp_kernels_c32.cu"
#include "device/cuda/gp_kernels_c64.cu"
