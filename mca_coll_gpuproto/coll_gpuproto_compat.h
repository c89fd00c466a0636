/*
 * coll_gpuproto_compat.h - what differs between the releases of Open MPI, and nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MCA_COLL_GPUPROTO_COMPAT_H
#define MCA_COLL_GPUPROTO_COMPAT_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

#if OMPI_MAJOR_VERSION >= 5

#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/util/proc.h"

#define MCA_COLL_GPUPROTO_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
typedef mca_coll_base_component_2_4_0_t mca_coll_gpuproto_base_component_t;

#define MCA_COLL_GPUPROTO_GLOBAL PMIX_GLOBAL
#define MCA_COLL_GPUPROTO_STRING PMIX_STRING
#define mca_coll_gpuproto_in_job() true
#define mca_coll_gpuproto_local_peers() ((uint32_t) opal_process_info.num_local_peers)
#define mca_coll_gpuproto_cid(comm) ((unsigned) ompi_comm_get_local_cid(comm))

/* MPIX_C_FLOAT16 and Fortran's 16-bit reals. */
#define MCA_COLL_GPUPROTO_CASE_SHORT_FLOAT case OMPI_OP_BASE_TYPE_SHORT_FLOAT:

#else

#include "ompi/runtime/mpiruntime.h"
#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/thread_usage.h"

#define MCA_COLL_GPUPROTO_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
typedef mca_coll_base_component_2_0_0_t mca_coll_gpuproto_base_component_t;

#define MCA_COLL_GPUPROTO_GLOBAL OPAL_PMIX_GLOBAL
#define MCA_COLL_GPUPROTO_STRING OPAL_STRING
#define mca_coll_gpuproto_in_job() (NULL != opal_pmix.put)
#define mca_coll_gpuproto_local_peers() ((uint32_t) ompi_process_info.num_local_peers)
#define mca_coll_gpuproto_cid(comm) ((unsigned) ompi_comm_get_cid(comm))

#define MCA_COLL_GPUPROTO_CASE_SHORT_FLOAT

#endif

#endif /* MCA_COLL_GPUPROTO_COMPAT_H */
