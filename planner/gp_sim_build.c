/*
 * gp_sim_build.c - sets up what the simulator runs.
 *
 * Owns the matching of links and which links share a unit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_sim_int.h"

#include <stdlib.h>

/* Local rank l of a node, turned by `by` (less than its ranks). */
static uint32_t turn(const gp_sim_input_t *in, uint32_t rank, uint32_t by)
{
    uint32_t node = rank / in->node_ranks * in->node_ranks;

    return node + (rank - node + by) % in->node_ranks;
}

static size_t base_of(const gp_sim_input_t *in, uint32_t channel, uint32_t rank)
{
    if (in->turned) {
        rank = turn(in, rank, in->node_ranks - channel / 2 % in->node_ranks);
    }
    return (size_t) (channel % in->distinct) * in->n_ranks + rank;
}

/* What a program calls `peer` on this channel. */
static uint32_t peer_of(const gp_sim_input_t *in, uint32_t channel, uint32_t peer)
{
    return in->turned ? turn(in, peer, channel / 2 % in->node_ranks) : peer;
}

/* The connection that the send link `send` of (rank, channel) fills, by the k-th link rule. */
static uint32_t match(const gp_sim_state_t *s, uint32_t channel, uint32_t rank, uint32_t send)
{
    const gp_program_t *p = s->parts[channel * s->in->n_ranks + rank].program;
    uint32_t peer, kth = 0;
    const gp_sim_part_t *to;

    if (p->send[send].peer >= s->in->n_ranks) {
        return GP_SIM_NONE;
    }
    for (uint32_t i = 0; i < send; i++) {
        kth += p->send[i].peer == p->send[send].peer;
    }
    peer = peer_of(s->in, channel, p->send[send].peer);
    to = &s->parts[channel * s->in->n_ranks + peer];
    for (uint32_t i = 0; i < to->program->n_recv; i++) {
        if (peer_of(s->in, channel, to->program->recv[i].peer) == rank && 0 == kth--) {
            return to->program->recv[i].uses == p->send[send].uses ? to->recv_base + i
                                                                   : GP_SIM_NONE;
        }
    }
    return GP_SIM_NONE;
}

/* Which stream each end of a connection belongs to. */
static void find_streams(gp_sim_state_t *s, uint32_t index)
{
    const gp_sim_stream_t *st = &s->streams[index];
    const gp_sim_part_t *part = &s->parts[st->part];
    const gp_stream_t *list = gp_sim_list_of(s, st);

    for (uint32_t k = list->first; k < list->first + list->count; k++) {
        const gp_step_t *step = &part->program->steps[k];

        for (uint32_t i = 0; i < step->n_in; i++) {
            if (GP_REF_OWN != part->program->refs[step->in_first + i].conn) {
                gp_sim_recv_conn(s, part, &part->program->refs[step->in_first + i])->dst = index;
            }
        }
        for (uint32_t i = 0; i < step->n_send; i++) {
            gp_sim_sent_conn(s, part, &part->program->refs[step->send_first + i])->src = index;
        }
    }
}

/* Sort key of pair links: all channels' connections from one rank to another share a link. */
typedef struct pair {
    uint64_t key;
    uint32_t conn;
} pair_t;

static int compare_pairs(const void *a, const void *b)
{
    const pair_t *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1)
                            : (x->conn > y->conn) - (x->conn < y->conn);
}

/* One link for all connections of a pair. */
static gp_status_t number_pairs(gp_sim_state_t *s)
{
    pair_t *pairs = calloc((size_t) s->n_conns + 1, sizeof(*pairs));
    uint64_t last = UINT64_MAX;

    if (NULL == pairs) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < s->n_conns; i++) {
        const gp_sim_conn_t *c = &s->conns[i];

        pairs[i].key = (uint64_t) gp_sim_rank_of(s, &s->streams[c->src]) << 32
                     | gp_sim_rank_of(s, &s->streams[c->dst]);
        pairs[i].conn = i;
    }
    qsort(pairs, s->n_conns, sizeof(*pairs), compare_pairs);
    for (uint32_t i = 0; i < s->n_conns; i++) {
        s->n_units += pairs[i].key != last;
        last = pairs[i].key;
        s->conns[pairs[i].conn].link = s->n_units - 1;
    }
    free(pairs);
    return GP_OK;
}

/* Link units: NICs of all nodes, then a port a rank or a link a pair. */
static gp_status_t number_links(gp_sim_state_t *s)
{
    const gp_sim_input_t *in = s->in;
    uint32_t nodes = (in->n_ranks + in->node_ranks - 1) / in->node_ranks;
    uint32_t nics = in->params->nics_per_node;
    gp_status_t status = GP_OK;

    if (in->params->intra_port) {
        s->n_units = nodes * nics + in->n_ranks;
    } else {
        s->n_units = nodes * nics;
        status = number_pairs(s);
    }
    if (GP_OK != status) {
        return status;
    }
    s->units = calloc(s->n_units, sizeof(*s->units));
    if (NULL == s->units) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < s->n_conns; i++) {
        gp_sim_conn_t *c = &s->conns[i];
        uint32_t src = gp_sim_rank_of(s, &s->streams[c->src]);
        uint64_t local = src % in->node_ranks;

        if (c->net) {
            c->link = src / in->node_ranks * nics + (uint32_t) (local * nics / in->node_ranks);
        } else if (in->params->intra_port) {
            c->link = nodes * nics + src;
        }
        s->units[c->link].rank = src;
        s->units[c->link].net = c->net;
    }
    return GP_OK;
}

static gp_status_t count_parts(gp_sim_state_t *s)
{
    uint64_t streams = 0, conns = 0, sends = 0, steps = 0;

    for (uint32_t i = 0; i < s->n_parts; i++) {
        gp_sim_part_t *part = &s->parts[i];
        const gp_program_t *p;

        part->base = base_of(s->in, i / s->in->n_ranks, i % s->in->n_ranks);
        p = s->in->programs[part->base];
        part->program = p;
        part->stream_base = (uint32_t) streams;
        part->recv_base = (uint32_t) conns;
        part->send_base = (uint32_t) sends;
        streams += p->n_streams;
        conns += p->n_recv;
        sends += p->n_send;
        steps += (uint64_t) p->n_steps * s->in->geom.loops;
    }
    if (streams >= 1u << 30 || conns != sends || conns >= GP_SIM_NONE || steps >= GP_SIM_NONE) {
        return GP_ERR_INVALID;
    }
    s->n_streams = (uint32_t) streams;
    s->n_conns = (uint32_t) conns;
    s->n_sends = (uint32_t) sends;
    s->n_steps = (size_t) steps;
    s->streams = calloc((size_t) s->n_streams + 1, sizeof(*s->streams));
    s->conns = calloc((size_t) s->n_conns + 1, sizeof(*s->conns));
    s->send_conn = calloc((size_t) s->n_sends + 1, sizeof(*s->send_conn));
    s->log = malloc((s->n_steps + 1) * sizeof(*s->log));
    return NULL == s->streams || NULL == s->conns || NULL == s->send_conn || NULL == s->log
             ? GP_ERR_NO_MEMORY
             : GP_OK;
}

static gp_status_t link_parts(gp_sim_state_t *s)
{
    const gp_sim_input_t *in = s->in;

    for (uint32_t i = 0; i < s->n_parts; i++) {
        const gp_program_t *p = s->parts[i].program;

        for (uint32_t t = 0; t < p->n_streams; t++) {
            gp_sim_stream_t *st = &s->streams[s->parts[i].stream_base + t];

            st->part = i;
            st->index = t;
            st->ready_log = GP_SIM_NONE;
            st->blocked = GP_SIM_NONE;
        }
        for (uint32_t k = 0; k < p->n_send; k++) {
            uint32_t c = match(s, i / in->n_ranks, i % in->n_ranks, k);
            uint64_t uses = p->send[k].uses * in->geom.loops;
            gp_sim_link_t link;

            if (GP_SIM_NONE == c) {
                return GP_ERR_INVALID;
            }
            link = in->link(in, s->parts[i].base, i % in->n_ranks,
                            peer_of(in, i / in->n_ranks, p->send[k].peer), k);
            s->send_conn[s->parts[i].send_base + k] = c;
            s->conns[c].net = 0 != link.net;
            s->conns[c].weight = link.weight;
            s->conns[c].slot_base = s->n_slots;
            s->conns[c].n_slots = uses < in->n_slots ? (uint32_t) uses : in->n_slots;
            s->conns[c].n_slots += 0 == uses;
            s->n_slots += s->conns[c].n_slots;
        }
    }
    for (uint32_t t = 0; t < s->n_streams; t++) {
        find_streams(s, t);
    }
    s->slots = calloc(s->n_slots + 1, sizeof(*s->slots));
    s->reduce = calloc(in->n_ranks, sizeof(*s->reduce));
    return NULL == s->slots || NULL == s->reduce ? GP_ERR_NO_MEMORY : number_links(s);
}

gp_status_t gp_sim_build(gp_sim_state_t *s)
{
    gp_status_t status;

    s->n_parts = s->in->n_ranks * s->in->n_channels;
    s->end_log = GP_SIM_NONE;
    s->parts = calloc(s->n_parts, sizeof(*s->parts));
    if (NULL == s->parts) {
        return GP_ERR_NO_MEMORY;
    }
    status = count_parts(s);
    return GP_OK == status ? link_parts(s) : status;
}
