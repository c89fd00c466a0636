/*
 * gp_sim_symmetric.c - programs that stand for all ranks.
 *
 * Ring: what a rank does depends on the ranks around it alone, and where it sits in its node. All
 * on one node: one rank that is its own neighbour. Else the ranks of one node, the last of which
 * sends to the first (odd channels: the first to the last) over the network. The programs are
 * gp_emit_ring()'s, with peers taken modulo the node; only the chunk numbers differ from rank to
 * rank, so chunk 0, which is never smaller than another, stands for all.
 *
 * Flat: ranks differ in whose data they get first. The last to be sent to decides: the last rank of
 * a node. A rank sends one message to each other rank of its node and, over the network, one to
 * each of their local numbers that stands for all nodes; on one node, one to itself that stands for
 * all.
 *
 * Tree: ranks differ by their place in it, and children by their order: no symmetry is used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_emit.h"
#include "planner/gp_sim_int.h"

static int one_node(uint32_t n_ranks, const gp_sim_params_t *params)
{
    return 0 == params->ranks_per_node || params->ranks_per_node >= n_ranks;
}

int gp_sim_layout_is_regular(const gp_layout_t *layout, uint32_t n_ranks, uint32_t per_node)
{
    for (uint32_t i = 0; i < n_ranks; i++) {
        if (layout->order[i] != i || (0 == i % per_node && layout->first[i / per_node] != i)) {
            return 0;
        }
    }
    return (uint64_t) layout->n_nodes * per_node == n_ranks;
}

/* NULL: possible; else why not. */
static const char *forbidden(const gp_sim_call_t *call, const gp_sim_params_t *params)
{
    uint32_t n_ranks = call->shape.n_ranks;
    const gp_layout_t *layout = call->shape.layout;

    if (GP_ALGO_RING != call->shape.algorithm && GP_ALGO_FLAT != call->shape.algorithm) {
        return "symmetry: only ring and flat have one";
    }
    if (n_ranks < 2 || NULL != params->path) {
        return "symmetry: one rank, or paths given by the caller";
    }
    if (GP_ALGO_FLAT == call->shape.algorithm && one_node(n_ranks, params) && !params->intra_port) {
        return "symmetry: flat on one node needs a port a rank";
    }
    if (one_node(n_ranks, params)) {
        return NULL;
    }
    if (0 != n_ranks % params->ranks_per_node) {
        return "symmetry: ranks are not a multiple of the ranks of a node";
    }
    if (NULL != layout && 1 != layout->n_nodes
        && !gp_sim_layout_is_regular(layout, n_ranks, params->ranks_per_node)) {
        return "symmetry: the layout is not nodes of equal size in rank order";
    }
    return NULL;
}

uint32_t gp_sim_symmetric_ranks(const gp_sim_call_t *call, const gp_sim_params_t *params)
{
    if (NULL != forbidden(call, params)) {
        return 0;
    }
    return one_node(call->shape.n_ranks, params) ? 1 : params->ranks_per_node;
}

static gp_sim_link_t ring_link(const gp_sim_input_t *in, size_t base, uint32_t rank, uint32_t peer,
                               uint32_t send)
{
    gp_sim_link_t link = {in->crosses[base], 1};

    (void) rank;
    (void) peer;
    (void) send;
    return link;
}

static gp_sim_link_t flat_link(const gp_sim_input_t *in, size_t base, uint32_t rank, uint32_t peer,
                               uint32_t send)
{
    gp_sim_link_t link = {0, 1};

    (void) base;
    (void) rank;
    (void) peer;
    if (in->nodes <= 1) {
        link.weight = in->copies - 1;
    } else if (send >= in->n_ranks - 1) {
        link.net = 1;
        link.weight = in->nodes - 1;
    }
    return link;
}

/*
 * The ring of n_ranks, as the ranks of its first node run it. A layout is that of the call, cut to
 * n_ranks: its first channels have no rotation, so that leaving it out changes nothing.
 */
static gp_status_t emit_ring(const gp_sim_call_t *call, uint32_t n_ranks, uint32_t rank,
                             uint32_t channel, uint32_t per_node, int crosses_at_all,
                             unsigned char *crosses, gp_program_t **program_p)
{
    gp_shape_t shape = call->shape;
    gp_status_t status;

    shape.n_ranks = n_ranks;
    shape.layout = NULL;
    status = gp_emit_ring(&shape, rank, channel, program_p);
    if (GP_OK == status) {
        *crosses = crosses_at_all && (*program_p)->send[0].peer / per_node != 0;
        (*program_p)->recv[0].peer %= per_node;
        (*program_p)->send[0].peer %= per_node;
    }
    return status;
}

/* Links: the other ranks of the node, then (several nodes, or one rank) each local number. */
static gp_status_t emit_flat(uint32_t rank, uint32_t per_node, gp_program_t **program_p)
{
    uint32_t links = 2 * per_node - 1;
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, 1, 2, 2 * links + 2, links, links);

    if (GP_OK != status) {
        return status;
    }
    e.program->n_chunks = 1;
    for (uint32_t i = 0; i < links; i++) {
        uint32_t peer = i < per_node - 1 ? (i < rank ? i : i + 1) : i - (per_node - 1);

        e.program->recv[i].peer = peer;
        e.program->send[i].peer = peer;
    }
    gp_emit_stream(&e);
    gp_emit_step(&e, 0, 0);
    gp_emit_input_own(&e);
    for (uint32_t i = 0; i < links; i++) {
        gp_emit_send(&e, i);
    }
    gp_emit_step(&e, 0, GP_STEP_OUTPUT);
    gp_emit_input_own(&e);
    for (uint32_t i = 0; i < links; i++) {
        gp_emit_input(&e, i);
    }
    return gp_emit_end(&e, program_p);
}

gp_status_t gp_sim_symmetric(const gp_sim_call_t *call, uint32_t n_ranks,
                             const gp_sim_params_t *params, gp_sim_input_t *in, char *reason,
                             size_t reason_bytes)
{
    const char *why = forbidden(call, params);
    uint32_t per_node = gp_sim_symmetric_ranks(call, params);
    int alone = one_node(call->shape.n_ranks, params), ring = GP_ALGO_RING == call->shape.algorithm;
    gp_status_t status = GP_OK;
    gp_program_t **programs;
    unsigned char *crosses;

    if (NULL != why) {
        snprintf(reason, reason_bytes, "%s", why);
        return GP_DECLINED;
    }
    in->distinct = in->n_channels < 2 ? 1 : 2; /* the others are alike, but for the rotation */
    in->turned = ring && NULL != call->shape.layout && !alone;
    in->n_ranks = per_node;
    in->node_ranks = per_node;
    in->nodes = alone ? 1 : call->shape.n_ranks / per_node;
    in->copies = (double) call->shape.n_ranks / per_node;
    in->uniform = 1;
    in->link = ring ? ring_link : flat_link;
    programs = calloc((size_t) in->distinct * per_node, sizeof(*programs));
    crosses = calloc((size_t) in->distinct * per_node, 1);
    in->programs = (const gp_program_t *const *) programs;
    in->crosses = crosses;
    if (NULL == programs || NULL == crosses) {
        status = GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; GP_OK == status && i < in->distinct * per_node; i++) {
        uint32_t channel = i / per_node, rank = i % per_node;

        status = ring ? emit_ring(call, n_ranks, rank, channel, per_node, !alone, &crosses[i],
                                  &programs[i])
                      : emit_flat(rank, per_node, &programs[i]);
    }
    if (GP_OK != status) {
        gp_sim_release(in);
    }
    return status;
}

void gp_sim_release(gp_sim_input_t *in)
{
    gp_program_t **programs = (gp_program_t **) in->programs;

    for (size_t i = 0; NULL != programs && i < (size_t) in->distinct * in->n_ranks; i++) {
        gp_program_free(programs[i]);
    }
    free(programs);
    free((unsigned char *) in->crosses);
    in->programs = NULL;
    in->crosses = NULL;
}
