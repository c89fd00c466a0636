/*
 * simt_bug.cc - the kernels of one family with one planted bug.
 *
 * Compiled once per bug with -DSIMT_BUG=<bug> -DGP_MUTATE_<bug>=1: the entry points get the bug's
 * name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/simt/gp_simt.h"

#define SIMT_BUG_NAME2(bug, protocol) gp_bug_##bug##_##protocol
#define SIMT_BUG_NAME(bug, protocol) SIMT_BUG_NAME2(bug, protocol)
#define gp_kernel_f32_ll SIMT_BUG_NAME(SIMT_BUG, ll)
#define gp_kernel_f32_ll128 SIMT_BUG_NAME(SIMT_BUG, ll128)
#define gp_kernel_f32_simple SIMT_BUG_NAME(SIMT_BUG, simple)
/*
 * Members of class templates are shared between the objects of a program: each bug needs its own.
 */
#define gp_ll_mover SIMT_BUG_NAME(SIMT_BUG, ll_mover)
#define gp_ll128_mover SIMT_BUG_NAME(SIMT_BUG, ll128_mover)
#define gp_simple_mover SIMT_BUG_NAME(SIMT_BUG, simple_mover)

#include "device/cuda/gp_kernels_f32.cu"
