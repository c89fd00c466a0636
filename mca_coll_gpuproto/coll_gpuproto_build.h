/*
 * coll_gpuproto_build.h - facts of the build: both packages' configuration headers define the same names,
 * so only coll_gpuproto_build.c includes ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MCA_COLL_GPUPROTO_BUILD_H
#define MCA_COLL_GPUPROTO_BUILD_H

extern const char mca_coll_gpuproto_pkgdatadir[]; /* where the help texts are installed */
extern const char mca_coll_gpuproto_version[];
extern const char mca_coll_gpuproto_cuda_archs[]; /* empty without nvcc */

#endif /* MCA_COLL_GPUPROTO_BUILD_H */
