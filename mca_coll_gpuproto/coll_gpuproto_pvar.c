/*
 * coll_gpuproto_pvar.c - what ran, for tools: MPI_T performance variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include "opal/mca/base/mca_base_pvar.h"

static int get_counter(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value = *(unsigned long long *) pvar->ctx;
    return OMPI_SUCCESS;
}

static int get_last(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) object;
    *(int *) value = *(int *) pvar->ctx;
    return OMPI_SUCCESS;
}

static void counter(const char *name, const char *help, unsigned long long *storage)
{
    (void) mca_base_pvar_register("ompi", "coll", "gpuproto", name, help, OPAL_INFO_LVL_4,
                                  MCA_BASE_PVAR_CLASS_COUNTER,
                                  MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                  MCA_BASE_VAR_BIND_NO_OBJECT,
                                  MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
                                  get_counter, NULL, NULL, storage);
}

/* Class STATE: Open MPI does not register an INT of class LEVEL. */
static void last(const char *name, const char *help, int *storage)
{
    (void) mca_base_pvar_register("ompi", "coll", "gpuproto", name, help, OPAL_INFO_LVL_4,
                                  MCA_BASE_PVAR_CLASS_STATE, MCA_BASE_VAR_TYPE_INT, NULL,
                                  MCA_BASE_VAR_BIND_NO_OBJECT,
                                  MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
                                  get_last, NULL, NULL, storage);
}

void mca_coll_gpuproto_register_pvars(void)
{
    mca_coll_gpuproto_stats_t *s = &mca_coll_gpuproto_stats;

    counter("calls", "Allreduce calls that gpuproto ran", &s->calls);
    counter("host_calls", "Calls that the host executor ran", &s->host_calls);
    counter("cuda_calls", "Calls that the CUDA executor ran", &s->cuda_calls);
    counter("declined", "Calls passed to the previous component", &s->declined);
    counter("staged", "Declined calls that were copied through host memory", &s->staged);
    last("last_algorithm", "Algorithm of the last call (0 ring, 1 tree, 2 flat)",
         &s->last_algorithm);
    last("last_protocol", "Protocol of the last call (0 ll, 1 ll128, 2 simple)", &s->last_protocol);
    last("last_channels", "Channels of the last call", &s->last_channels);
    last("last_executor", "Executor of the last call (0 host, 1 cuda)", &s->last_executor);
    last("last_loops", "Loops of the last call", &s->last_loops);
}
