/*
 * coll_gpuproto_nodes.c - a communicator over several hosts: which rank is where, and the way to it.
 *
 * Owns the layout (gp_layout_t) and the endpoints, and sees to it that what UCX has under way moves on
 * while the application is somewhere else in MPI.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

/* What ranks tell each other to be reached. */
typedef struct address_record {
    int32_t status;
    uint32_t bytes;
    unsigned char address[GP_UCX_ADDRESS_BYTES];
} address_record_t;

/* Communicators over a net; the callback is registered while there are any. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static gp_net_t *progressed;

/* From opal_progress(): other MPI calls wait, and messages of ours may still arrive or have to leave. */
static int progress_net(void)
{
    int moved = 0;

    /* An error shows in the call that needs the peer. */
    (void) progressed->progress(progressed, &moved);
    return moved;
}

static void add_user(gp_net_t *net)
{
    pthread_mutex_lock(&users_lock);
    progressed = net;
    if (0 == users++) {
        opal_progress_register_lp(progress_net);
    }
    pthread_mutex_unlock(&users_lock);
}

static void remove_user(void)
{
    pthread_mutex_lock(&users_lock);
    if (0 == --users) {
        opal_progress_unregister(progress_net);
    }
    pthread_mutex_unlock(&users_lock);
}

void mca_coll_gpuproto_nodes_free(mca_coll_gpuproto_nodes_t *nodes)
{
    if (NULL == nodes) {
        return;
    }
    if (NULL != nodes->net) {
        remove_user();
    }
    free(nodes->numbers);
    free(nodes->eps);
    free(nodes);
}

/*
 * Nodes in the order of their first ranks, ranks of a node in rank order: the same on all ranks, as hosts
 * are. NULL: no memory.
 */
static mca_coll_gpuproto_nodes_t *number_nodes(const uint64_t *hosts, uint32_t n)
{
    mca_coll_gpuproto_nodes_t *nodes = calloc(1, sizeof(*nodes));
    uint32_t at = 0;

    if (NULL == nodes) {
        return NULL;
    }
    nodes->numbers = calloc(3 * (size_t) n + 1, sizeof(*nodes->numbers));
    nodes->eps = calloc(n, sizeof(*nodes->eps));
    if (NULL == nodes->numbers || NULL == nodes->eps) {
        mca_coll_gpuproto_nodes_free(nodes);
        return NULL;
    }
    nodes->node_of = nodes->numbers;
    nodes->order = nodes->numbers + n;
    nodes->first = nodes->numbers + 2 * (size_t) n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = 0;

        while (hosts[before] != hosts[i]) {
            before++;
        }
        if (before < i) {
            continue; /* its node has a number */
        }
        nodes->first[nodes->n_nodes] = at;
        for (uint32_t j = i; j < n; j++) {
            if (hosts[j] == hosts[i]) {
                nodes->node_of[j] = nodes->n_nodes;
                nodes->order[at++] = j;
            }
        }
        nodes->n_nodes++;
    }
    nodes->first[nodes->n_nodes] = n;
    nodes->layout.n_nodes = nodes->n_nodes;
    nodes->layout.order = nodes->order;
    nodes->layout.first = nodes->first;
    return nodes;
}

bool mca_coll_gpuproto_nodes_make(const uint64_t *hosts, const gp_boot_t *boot,
                                  mca_coll_gpuproto_nodes_t **nodes_p, char *reason, size_t bytes)
{
    mca_coll_gpuproto_nodes_t *nodes = number_nodes(hosts, boot->n_ranks);
    address_record_t mine, *all = calloc(boot->n_ranks, sizeof(*all));
    gp_status_t status = NULL == nodes || NULL == all ? GP_ERR_NO_MEMORY : GP_OK;
    gp_net_t *net = NULL;
    size_t length = 0;

    memset(&mine, 0, sizeof(mine));
    if (GP_OK == status) {
        status = gp_ucx_net(ompi_mpi_thread_multiple, &net);
    }
    if (GP_OK == status) {
        status = gp_ucx_address(net, mine.address, &length);
    }
    mine.status = status;
    mine.bytes = (uint32_t) length;
    if (NULL == all) {
        snprintf(reason, bytes, "no memory for the addresses of all ranks");
        mca_coll_gpuproto_nodes_free(nodes);
        return false; /* the others wait in the exchange, which is bounded */
    }
    status = boot->allgather(boot->ctx, &mine, all, sizeof(mine));
    if (GP_OK != status) {
        snprintf(reason, bytes, "addresses could not be exchanged");
    }
    for (uint32_t i = 0; GP_OK == status && i < boot->n_ranks; i++) {
        if (GP_OK != all[i].status) {
            snprintf(reason, bytes, "rank %u: UCX cannot be used there (its message says why)", i);
            status = GP_ERR_PEER;
        }
    }
    /* Endpoints connect when they are used; a rank that cannot make one says so at its first set. */
    for (uint32_t i = 0; GP_OK == status && i < boot->n_ranks; i++) {
        if (nodes->node_of[i] != nodes->node_of[boot->rank]
            && GP_OK != gp_ucx_endpoint(net, all[i].address, all[i].bytes, i, &nodes->eps[i])) {
            nodes->eps[i] = NULL;
        }
    }
    free(all);
    if (GP_OK != status) {
        mca_coll_gpuproto_nodes_free(nodes);
        return false;
    }
    nodes->net = net;
    add_user(net);
    *nodes_p = nodes;
    return true;
}
