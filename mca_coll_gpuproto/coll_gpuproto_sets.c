/*
 * coll_gpuproto_sets.c - connection sets: made together at first use, freed when they are drained.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/proto/gp_simple.h"

#define DRAIN_SECONDS 5.0
#define HELLO_SECONDS 30.0 /* for the first message of every rank of another host */

/* Programs of peers, emitted while a set is being connected. */
typedef struct emitter {
    gp_shape_t shape;
    uint32_t rank;
    gp_program_t **mine; /* [channels] */
    gp_program_t *peer;  /* the last one asked for */
} emitter_t;

static gp_status_t emit_links(void *ctx, uint32_t rank, uint32_t channel, gp_links_t *links)
{
    emitter_t *e = ctx;
    const gp_program_t *p = e->mine[channel];

    if (rank != e->rank) {
        gp_status_t status;

        gp_program_free(e->peer);
        e->peer = NULL;
        status = gp_program_emit_shape(&e->shape, rank, channel, &e->peer);
        if (GP_OK != status) {
            return status;
        }
        p = e->peer;
    }
    links->recv = p->recv;
    links->send = p->send;
    links->n_recv = p->n_recv;
    links->n_send = p->n_send;
    return GP_OK;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Have the peers freed everything this rank ever sent them? 1: yes, 0: not yet, -1: nobody can tell. */
static int drained(const mca_coll_gpuproto_class_t *cls, const mca_coll_gpuproto_set_t *set)
{
    for (uint32_t c = 0; c < set->geom.channels; c++) {
        for (uint32_t i = 0; i < set->conns->n_send[c]; i++) {
            uint64_t want = set->loops[c] * set->programs[c]->send[i].uses;
            uint64_t head = 0;

            if (GP_PATH_NET == set->conns->send[c][i].path) {
                continue; /* only this process writes there */
            }
            if (MCA_COLL_GPUPROTO_CLASS_HOST == cls->id) {
                head = gp_load_acquire_u64(set->conns->send[c][i].head);
            } else if (GP_OK
                       != gp_cuda_copy(&head, set->conns->send[c][i].head, sizeof(head))) {
                return -1; /* the context is gone, as after a device reset before MPI_Finalize */
            }
            if (head != want) {
                return 0;
            }
        }
    }
    return NULL == set->conns->far || GP_AGAIN != gp_net_set_settled(set->conns->far);
}

static void set_destroy(const mca_coll_gpuproto_class_t *cls, mca_coll_gpuproto_set_t *set)
{
    int quarantine = MCA_COLL_GPUPROTO_FAILED == cls->state;

    if (NULL != set->conns && !quarantine && NULL != set->loops) {
        /* A slower peer may still owe heads: they are written into our memory. */
        double end = seconds() + DRAIN_SECONDS;
        int is_drained;

        while (0 == (is_drained = drained(cls, set)) && seconds() <= end) {
            int moved = 0;

            if (NULL != set->conns->far
                && GP_OK != gp_net_set_progress(set->conns->far, &moved)) {
                break; /* who is gone writes nothing any more */
            }
            sched_yield();
        }
        quarantine = 1 != is_drained;
    }
    gp_host_exec_destroy(set->host);
    if (NULL != set->cuda) {
        gp_cuda_exec_destroy(set->cuda);
    }
    gp_connset_destroy(set->conns, quarantine);
    for (uint32_t c = 0; NULL != set->programs && c < set->geom.channels; c++) {
        gp_program_free(set->programs[c]);
    }
    free(set->programs);
    free(set->loops);
    free(set);
}

void mca_coll_gpuproto_class_destroy(mca_coll_gpuproto_class_t *cls)
{
    for (uint32_t a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            if (NULL != cls->sets[a][p]) {
                set_destroy(cls, cls->sets[a][p]);
                cls->sets[a][p] = NULL;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        if (NULL != cls->bounce[i]) {
            gp_cuda_dev_free(cls->dev, cls->bounce[i]);
            cls->bounce[i] = NULL;
        }
    }
    mca_coll_gpuproto_nodes_free(cls->nodes);
    cls->nodes = NULL;
    gp_gate_destroy(cls->gate);
    cls->gate = NULL;
    if (NULL != cls->dev) {
        gp_cuda_dev_put(cls->dev);
        cls->dev = NULL;
    }
}

static gp_status_t set_build(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                             uint32_t algorithm, uint32_t protocol, mca_coll_gpuproto_set_t *set)
{
    gp_connset_desc_t desc = {0};
    emitter_t e = {0};
    gp_boot_t boot;
    gp_status_t status = GP_OK;

    mca_coll_gpuproto_boot(m, &boot);
    set->programs = calloc(set->geom.channels, sizeof(*set->programs));
    set->loops = calloc(set->geom.channels, sizeof(*set->loops));
    if (NULL == set->programs || NULL == set->loops || NULL == cls->arena) {
        status = GP_ERR_NO_MEMORY;
    }
    e.shape.algorithm = algorithm;
    e.shape.n_ranks = boot.n_ranks;
    e.shape.n_channels = set->geom.channels;
    e.shape.slices = 1;
    e.shape.layout = NULL != cls->nodes ? &cls->nodes->layout : NULL;
    for (uint32_t c = 0; GP_OK == status && c < set->geom.channels; c++) {
        status = gp_program_emit_shape(&e.shape, boot.rank, c, &set->programs[c]);
    }
    {
        /* Whoever got this far tells the others: nobody waits for a rank without memory. */
        int32_t mine = status, *all = calloc(boot.n_ranks, sizeof(*all));
        gp_status_t told = NULL == all ? GP_ERR_NO_MEMORY
                                       : boot.allgather(boot.ctx, &mine, all, sizeof(mine));

        for (uint32_t i = 0; GP_OK == told && i < boot.n_ranks; i++) {
            told = GP_OK == all[i] ? GP_OK : GP_ERR_PEER;
        }
        free(all);
        if (GP_OK != told) {
            return GP_OK != status ? status : told;
        }
    }
    e.rank = boot.rank;
    e.mine = set->programs;
    desc.protocol = protocol;
    desc.channels = set->geom.channels;
    desc.n_slots = set->geom.n_slots;
    desc.slot_bytes = set->geom.slot_bytes;
    desc.gated = GP_EXEC_CUDA == cls->desc.executor && cls->desc.worst_path > GP_PATH_NVLINK;
    desc.links = emit_links;
    desc.links_ctx = &e;
    if (NULL != cls->nodes) {
        desc.node_of = cls->nodes->node_of;
        desc.net = cls->nodes->net;
        desc.eps = cls->nodes->eps;
        desc.hello_seconds = HELLO_SECONDS;
    }
    status = gp_connset_create(&desc, cls->arena, &boot, &set->conns);
    gp_program_free(e.peer);
    return status;
}

int mca_coll_gpuproto_set_get(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                              uint32_t algorithm, uint32_t protocol,
                              mca_coll_gpuproto_set_t **set_p, const char **reason)
{
    mca_coll_gpuproto_set_t *set = cls->sets[algorithm][protocol];
    gp_boot_t boot;
    gp_status_t status;
    int32_t mine, *all;

    if (NULL != set) {
        *set_p = set;
        return OMPI_SUCCESS;
    }
    set = calloc(1, sizeof(*set));
    if (NULL == set) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    status = cls->plan_sets.of[algorithm][protocol].status;
    set->geom = cls->plan_sets.of[algorithm][protocol].geom;
    if (GP_OK != status) {
        *reason = cls->plan_sets.of[algorithm][protocol].reason;
        free(set); /* pure: the same on all ranks */
        return OMPI_ERR_NOT_SUPPORTED;
    }
    status = set_build(m, cls, algorithm, protocol, set);
    if (GP_OK == status) {
        const gp_program_t *const *programs = (const gp_program_t *const *) set->programs;

        status = GP_EXEC_HOST == cls->desc.executor
                     ? gp_host_exec_create(programs, set->conns, &set->host)
                     : gp_cuda_exec_create(cls->dev, protocol, programs, set->conns, &set->cuda);
        mca_coll_gpuproto_boot(m, &boot);
        mine = status;
        all = calloc(boot.n_ranks, sizeof(*all));
        status = NULL == all ? GP_ERR_NO_MEMORY
                             : boot.allgather(boot.ctx, &mine, all, sizeof(mine));
        for (uint32_t i = 0; GP_OK == status && i < boot.n_ranks; i++) {
            status = GP_OK != all[i] ? GP_ERR_PEER : GP_OK;
        }
        free(all);
    }
    if (GP_ERR_ABORTED == status) {
        set_destroy(cls, set);
        return OMPI_ERR_TIMEOUT;
    }
    if (GP_OK != status) {
        *reason = "connections could not be made (the message before says why)";
        set_destroy(cls, set);
        return OMPI_ERR_NOT_SUPPORTED;
    }
    cls->sets[algorithm][protocol] = set;
    *set_p = set;
    return OMPI_SUCCESS;
}
