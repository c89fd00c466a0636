/*
 * coll_gpuproto_module.c - a module per communicator: query, enable, what was there before, the end.
 *
 * Lifetime: modules are enabled in ascending priority, so in enable the communicator's table holds the
 * allreduce that would run without us: it is kept, retained, and released in the destructor. It is not
 * put back in disable: there the framework releases whatever sits in the slot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <stdio.h>
#include <string.h>

static void construct(mca_coll_gpuproto_module_t *m)
{
    memset((char *) m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
    for (int c = 0; c < MCA_COLL_GPUPROTO_CLASSES; c++) {
        m->classes[c].id = (mca_coll_gpuproto_class_id_t) c;
    }
}

static void destruct(mca_coll_gpuproto_module_t *m)
{
    for (int c = 0; c < MCA_COLL_GPUPROTO_CLASSES; c++) {
        mca_coll_gpuproto_class_destroy(&m->classes[c]);
    }
    if (NULL != m->prev_allreduce_module) {
        OBJ_RELEASE(m->prev_allreduce_module);
    }
}

OBJ_CLASS_INSTANCE(mca_coll_gpuproto_module_t, mca_coll_base_module_t, construct, destruct);

int mca_coll_gpuproto_init_query(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    if (!mca_coll_gpuproto_component.enabled) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    return OMPI_SUCCESS;
}

static int module_enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    mca_coll_gpuproto_module_t *m = (mca_coll_gpuproto_module_t *) module;

    if (NULL == comm->c_coll->coll_allreduce || NULL == comm->c_coll->coll_allreduce_module) {
        opal_output_verbose(1, ompi_coll_base_framework.framework_output,
                            "coll/gpuproto: nobody else offers allreduce here, so nothing could be "
                            "declined: not used");
        return OMPI_ERROR;
    }
    m->prev_allreduce = comm->c_coll->coll_allreduce;
    m->prev_allreduce_module = comm->c_coll->coll_allreduce_module;
    OBJ_RETAIN(m->prev_allreduce_module);
    m->comm = comm;
    return OMPI_SUCCESS;
}

static void set_params(gp_params_t *p)
{
    const mca_coll_gpuproto_component_t *c = &mca_coll_gpuproto_component;

    gp_params_init(p);
    p->algorithm = c->algorithm_value;
    p->protocol = c->protocol_value;
    p->min_channels = (uint32_t) c->min_channels;
    p->max_channels = (uint32_t) c->max_channels;
    p->threads = (uint32_t) c->threads;
    p->ll128_unsafe = (uint32_t) c->ll128_unsafe;
    p->buffer_bytes[GP_PROTO_LL] = c->ll_buffsize;
    p->buffer_bytes[GP_PROTO_LL128] = c->ll128_buffsize;
    p->buffer_bytes[GP_PROTO_SIMPLE] = c->buffsize;
    p->max_fifo_bytes = (uint64_t) c->max_fifo_mib << 20;
}

mca_coll_base_module_t *mca_coll_gpuproto_comm_query(struct ompi_communicator_t *comm,
                                                     int *priority)
{
    mca_coll_gpuproto_module_t *m;

    if (!mca_coll_gpuproto_component.enabled) {
        return NULL;
    }
    m = OBJ_NEW(mca_coll_gpuproto_module_t);
    if (NULL == m) {
        return NULL;
    }
    /* One rank and inter-communicators are taken too: their device buffers must be staged. */
    m->eligible = !OMPI_COMM_IS_INTER(comm) && ompi_comm_size(comm) > 1;
    if (!m->eligible) {
        snprintf(m->reason, sizeof(m->reason), "%s",
                 OMPI_COMM_IS_INTER(comm) ? "inter-communicator" : "one rank");
    }
    set_params(&m->params);
    m->super.coll_module_enable = module_enable;
    m->super.coll_allreduce = mca_coll_gpuproto_allreduce;
    *priority = mca_coll_gpuproto_component.priority;
    return &m->super;
}
