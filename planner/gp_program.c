/*
 * gp_program.c - allocation and emission of programs.
 *
 * Owns the memory layout of a program (one block) and the dispatch from algorithm to emitter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_program.h"

#include <stdlib.h>

#include "planner/gp_emit.h"

gp_program_t *gp_program_alloc(uint32_t n_streams, uint32_t n_steps, uint32_t n_refs,
                               uint32_t n_recv, uint32_t n_send)
{
    size_t bytes = sizeof(gp_program_t) + n_streams * sizeof(gp_stream_t)
                   + (size_t) n_steps * sizeof(gp_step_t) + (size_t) n_refs * sizeof(gp_ref_t)
                   + ((size_t) n_recv + n_send) * sizeof(gp_link_t);
    gp_program_t *p = calloc(1, bytes);

    if (NULL == p) {
        return NULL;
    }
    p->n_streams = n_streams;
    p->n_steps = n_steps;
    p->n_refs = n_refs;
    p->n_recv = n_recv;
    p->n_send = n_send;
    p->streams = (gp_stream_t *) (p + 1);
    p->steps = (gp_step_t *) (p->streams + n_streams);
    p->refs = (gp_ref_t *) (p->steps + n_steps);
    p->recv = (gp_link_t *) (p->refs + n_refs);
    p->send = p->recv + n_recv;
    return p;
}

void gp_program_free(gp_program_t *program)
{
    free(program);
}

uint32_t gp_node_at(const gp_layout_t *layout, uint32_t position)
{
    uint32_t low = 0, high = layout->n_nodes;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (layout->first[mid] <= position) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

uint32_t gp_rank_at(const gp_shape_t *shape, uint32_t channel, uint32_t position)
{
    const gp_layout_t *layout = shape->layout;
    uint32_t node, begin, size;

    if (NULL == layout) {
        return position;
    }
    node = gp_node_at(layout, position);
    begin = layout->first[node];
    size = layout->first[node + 1] - begin;
    return layout->order[begin + (position - begin + channel / 2) % size];
}

uint32_t gp_position_of(const gp_shape_t *shape, uint32_t channel, uint32_t rank)
{
    const gp_layout_t *layout = shape->layout;
    uint32_t at = 0, node, begin, size;

    if (NULL == layout) {
        return rank;
    }
    /* Ranks mostly lie in order, where this is no search. */
    if (layout->order[rank] == rank) {
        at = rank;
    }
    while (layout->order[at] != rank) {
        at++;
    }
    node = gp_node_at(layout, at);
    begin = layout->first[node];
    size = layout->first[node + 1] - begin;
    return begin + (at - begin + size - channel / 2 % size) % size;
}

/* Does a layout have each rank once and no empty node? */
static int layout_is_valid(const gp_layout_t *layout, uint32_t n_ranks)
{
    unsigned char *seen;
    int valid;

    if (0 == layout->n_nodes || layout->n_nodes > n_ranks || 0 != layout->first[0]
        || n_ranks != layout->first[layout->n_nodes]) {
        return 0;
    }
    for (uint32_t k = 0; k < layout->n_nodes; k++) {
        if (layout->first[k] >= layout->first[k + 1]) {
            return 0;
        }
    }
    seen = calloc(n_ranks, 1);
    valid = NULL != seen;
    for (uint32_t i = 0; valid && i < n_ranks; i++) {
        valid = layout->order[i] < n_ranks && !seen[layout->order[i]]++;
    }
    free(seen);
    return valid;
}

gp_status_t gp_program_emit_shape(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                                  gp_program_t **program_p)
{
    gp_shape_t s = *shape;
    gp_program_t *p;
    gp_status_t status;

    if (0 == s.n_ranks || rank >= s.n_ranks || channel >= s.n_channels || NULL == program_p
        || 0 == s.slices || s.slices > GP_MOST_SLICES
        || (NULL != s.layout && !layout_is_valid(s.layout, s.n_ranks))) {
        return GP_ERR_INVALID;
    }
    if (1 == s.n_ranks) {
        status = gp_emit_single(&p);
    } else {
        switch (s.algorithm) {
        case GP_ALGO_RING:
            status = gp_emit_ring(&s, rank, channel, &p);
            break;
        case GP_ALGO_TREE:
            status = gp_emit_tree(&s, rank, channel, &p);
            break;
        case GP_ALGO_FLAT:
            status = gp_emit_flat(s.n_ranks, rank, &p);
            break;
        default:
            status = GP_ERR_INVALID;
            break;
        }
    }
    if (GP_OK != status) {
        return status;
    }
    p->algorithm = s.algorithm;
    p->rank = rank;
    p->n_ranks = s.n_ranks;
    p->channel = channel;
    *program_p = p;
    return GP_OK;
}

gp_status_t gp_program_emit(gp_algorithm_t algorithm, uint32_t n_ranks, uint32_t rank,
                            uint32_t channel, uint32_t n_channels, gp_program_t **program_p)
{
    gp_shape_t shape = {(uint32_t) algorithm, n_ranks, n_channels, 1, NULL};

    return gp_program_emit_shape(&shape, rank, channel, program_p);
}

gp_status_t gp_emit_single(gp_program_t **program_p)
{
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, 1, 1, 1, 0, 0);

    if (GP_OK == status) {
        gp_emit_stream(&e);
        gp_emit_step(&e, 0, GP_STEP_OUTPUT);
        gp_emit_input_own(&e);
        e.program->n_chunks = 1;
        status = gp_emit_end(&e, program_p);
    }
    return status;
}

gp_status_t gp_emit_begin(gp_emit_t *e, uint32_t n_streams, uint32_t n_steps, uint32_t n_refs,
                          uint32_t n_recv, uint32_t n_send)
{
    e->program = gp_program_alloc(n_streams, n_steps, n_refs, n_recv, n_send);
    e->stream = 0;
    e->step = 0;
    e->ref = 0;
    return NULL != e->program ? GP_OK : GP_ERR_NO_MEMORY;
}

void gp_emit_stream(gp_emit_t *e)
{
    e->program->streams[e->stream].first = e->step;
    e->stream++;
}

void gp_emit_step(gp_emit_t *e, uint32_t chunk, uint32_t flags)
{
    gp_step_t *s = &e->program->steps[e->step];

    s->chunk = chunk;
    s->flags = flags;
    s->in_first = e->ref;
    s->send_first = e->ref;
    e->step++;
    e->program->streams[e->stream - 1].count++;
}

static void emit_ref(gp_emit_t *e, uint32_t conn, uint32_t ordinal)
{
    e->program->refs[e->ref].conn = conn;
    e->program->refs[e->ref].ordinal = ordinal;
    e->ref++;
}

void gp_emit_input_own(gp_emit_t *e)
{
    gp_step_t *s = &e->program->steps[e->step - 1];

    emit_ref(e, GP_REF_OWN, 0);
    s->n_in++;
    s->send_first = e->ref;
}

void gp_emit_input(gp_emit_t *e, uint32_t recv_link)
{
    gp_step_t *s = &e->program->steps[e->step - 1];

    emit_ref(e, recv_link, e->program->recv[recv_link].uses++);
    s->n_in++;
    s->send_first = e->ref;
}

void gp_emit_send(gp_emit_t *e, uint32_t send_link)
{
    emit_ref(e, send_link, e->program->send[send_link].uses++);
    e->program->steps[e->step - 1].n_send++;
}

gp_status_t gp_emit_end(gp_emit_t *e, gp_program_t **program_p)
{
    gp_program_t *p = e->program;

    if (e->stream != p->n_streams || e->step != p->n_steps || e->ref != p->n_refs) {
        gp_program_free(p); /* an emitter counted wrongly: a bug, found by every test that emits */
        return GP_ERR_INVALID;
    }
    *program_p = p;
    return GP_OK;
}
