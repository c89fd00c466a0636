/*
 * coll_gpuproto_build.c - what configure found, for files that see Open MPI's own configuration header.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "config.h"

#include "mca_coll_gpuproto/coll_gpuproto_build.h"

#ifndef GP_PKGDATADIR /* a tool that reads the source without the build's flags */
#define GP_PKGDATADIR ""
#endif

const char mca_coll_gpuproto_pkgdatadir[] = GP_PKGDATADIR;
const char mca_coll_gpuproto_version[] = PACKAGE_VERSION;
const char mca_coll_gpuproto_cuda_archs[] = GP_CUDA_ARCHS;
