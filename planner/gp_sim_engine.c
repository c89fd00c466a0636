/*
 * gp_sim_engine.c - the simulator's event loop.
 *
 * Owns simulated time. A stream's step is looked at when something it waits for becomes known; when
 * all is known, its request of the reduce unit is an event in the future. Events are handled in
 * order of time, then of stream, so that shared units serve requests in order and the same input
 * gives the same result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_sim_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t us_to_ps(double us)
{
    return (uint64_t) (us * GP_SIM_PS_PER_US + 0.5);
}

static uint64_t bytes_to_ps(double bytes, double bytes_per_us)
{
    return us_to_ps(bytes / bytes_per_us);
}

static int before(const gp_sim_event_t *a, const gp_sim_event_t *b)
{
    if (a->ps != b->ps) {
        return a->ps < b->ps;
    }
    if (a->stream != b->stream) {
        return a->stream < b->stream;
    }
    /*
     * Sends of an earlier step first, in the order of its list; a step last: its log is
     * GP_SIM_NONE.
     */
    return a->log != b->log ? a->log < b->log : a->send < b->send;
}

static void push(gp_sim_state_t *s, gp_sim_event_t e)
{
    size_t at;

    if (s->heap_count == s->heap_room) {
        size_t room = 0 == s->heap_room ? 1024 : 2 * s->heap_room;
        gp_sim_event_t *heap = realloc(s->heap, room * sizeof(*heap));

        if (NULL == heap) {
            s->no_memory = 1;
            return;
        }
        s->heap = heap;
        s->heap_room = room;
    }
    for (at = s->heap_count++; at > 0 && before(&e, &s->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        s->heap[at] = s->heap[(at - 1) / 2];
    }
    s->heap[at] = e;
}

static gp_sim_event_t pop(gp_sim_state_t *s)
{
    gp_sim_event_t top = s->heap[0], last = s->heap[--s->heap_count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < s->heap_count) {
        if (child + 1 < s->heap_count && before(&s->heap[child + 1], &s->heap[child])) {
            child++;
        }
        if (!before(&s->heap[child], &last)) {
            break;
        }
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* Serve a request; returns when it is done. */
static uint64_t serve(gp_sim_unit_t *u, uint64_t ps, uint64_t takes_ps, double bytes)
{
    ps = ps > u->free_ps ? ps : u->free_ps;
    u->free_ps = ps + takes_ps;
    u->busy_ps += takes_ps;
    u->bytes += bytes;
    return u->free_ps;
}

static double chunk_bytes(const gp_sim_state_t *s, const gp_sim_stream_t *st, uint64_t loop,
                          uint32_t chunk)
{
    uint64_t offset;

    return (double) gp_chunk_range(&s->in->geom, gp_sim_channel_of(s, st), loop,
                                   s->in->uniform ? 0 : chunk, &offset)
         * s->in->geom.elem_bytes;
}

static double wire_bytes(const gp_sim_state_t *s, const gp_sim_conn_t *c, double bytes)
{
    return (double) gp_wire_bytes(s->in->protocol, (uint64_t) bytes) * c->weight;
}

static void wait_for(gp_sim_stream_t *st, uint64_t ps, uint32_t log, uint32_t what)
{
    if (ps > st->ready_ps) {
        st->ready_ps = ps;
        st->ready_log = log;
        st->what = what;
    }
}

/* Look at what the stream's next step waits for, from where it was left; all known: an event. */
static void look(gp_sim_state_t *s, uint32_t index)
{
    gp_sim_stream_t *st = &s->streams[index];
    const gp_sim_params_t *params = s->in->params;
    const gp_sim_part_t *part = &s->parts[st->part];
    const gp_stream_t *list = gp_sim_list_of(s, st);
    const gp_step_t *step;
    double links = 0;
    gp_sim_event_t e;

    st->blocked = GP_SIM_NONE;
    if (st->loop >= s->in->geom.loops || 0 == list->count) {
        return;
    }
    step = &part->program->steps[list->first + st->at];
    for (; st->scan < step->n_in + step->n_send; st->scan++) {
        int in = st->scan < step->n_in;
        const gp_ref_t *ref =
            &part->program
                 ->refs[in ? step->in_first + st->scan : step->send_first + st->scan - step->n_in];
        const gp_link_t *end;
        const gp_sim_slot_t *slot;
        uint64_t use;
        gp_sim_conn_t *c;

        if (in && GP_REF_OWN == ref->conn) {
            continue;
        }
        c = in ? gp_sim_recv_conn(s, part, ref) : gp_sim_sent_conn(s, part, ref);
        end = in ? &part->program->recv[ref->conn] : &part->program->send[ref->conn];
        use = st->loop * end->uses + ref->ordinal;
        slot = &s->slots[c->slot_base + use % c->n_slots];
        if (in ? use >= c->filled : use >= c->freed + s->in->n_slots) {
            st->blocked = (uint32_t) (c - s->conns);
            return;
        }
        if (in) {
            wait_for(st, slot->fill_ps, slot->fill_log, GP_SIM_DATA);
        } else if (use >= s->in->n_slots) {
            wait_for(st, slot->free_ps, slot->free_log, GP_SIM_CREDIT);
        }
    }
    for (uint32_t i = 0; i < step->n_in; i++) {
        const gp_ref_t *ref = &part->program->refs[step->in_first + i];

        links += GP_REF_OWN == ref->conn ? 0 : gp_sim_recv_conn(s, part, ref)->weight;
    }
    for (uint32_t i = 0; i < step->n_send; i++) {
        links += gp_sim_sent_conn(s, part, &part->program->refs[step->send_first + i])->weight;
    }
    e.ps = st->ready_ps + us_to_ps(params->step_us + links * params->link_us);
    e.stream = index;
    e.send = GP_SIM_NONE;
    e.log = GP_SIM_NONE;
    push(s, e);
}

/* A send has left through its link: its data will be seen. */
static void fill(gp_sim_state_t *s, gp_sim_conn_t *c, uint64_t left_ps, uint32_t log)
{
    const gp_sim_params_t *params = s->in->params;
    gp_sim_slot_t *slot = &s->slots[c->slot_base + c->filled % c->n_slots];

    slot->fill_ps = left_ps + us_to_ps(c->net ? params->net_alpha_us : params->intra_alpha_us);
    slot->fill_log = log;
    c->filled++;
    if (s->streams[c->dst].blocked == (uint32_t) (c - s->conns)) {
        look(s, c->dst);
    }
}

static void send_event(gp_sim_state_t *s, const gp_sim_event_t *e)
{
    const gp_sim_log_t *entry = &s->log[e->log];
    gp_sim_stream_t *st = &s->streams[e->stream];
    const gp_sim_part_t *part = &s->parts[st->part];
    const gp_stream_t *list = gp_sim_list_of(s, st);
    const gp_step_t *step = &part->program->steps[list->first + entry->seq % list->count];
    gp_sim_conn_t *c = gp_sim_sent_conn(s, part, &part->program->refs[step->send_first + e->send]);
    double bytes =
        wire_bytes(s, c, chunk_bytes(s, st, entry->seq / list->count, step->chunk)) * s->in->share;

    fill(s, c,
         serve(&s->units[c->link], e->ps, bytes_to_ps(bytes, s->in->params->net_bytes_per_us),
               bytes),
         e->log);
}

static void step_event(gp_sim_state_t *s, const gp_sim_event_t *e)
{
    gp_sim_stream_t *st = &s->streams[e->stream];
    const gp_sim_params_t *params = s->in->params;
    const gp_sim_part_t *part = &s->parts[st->part];
    const gp_program_t *p = part->program;
    const gp_stream_t *list = gp_sim_list_of(s, st);
    const gp_step_t *step = &p->steps[list->first + st->at];
    double bytes = chunk_bytes(s, st, st->loop, step->chunk), reads = 0;
    uint32_t log = (uint32_t) s->logged++;
    uint64_t reduced, ended;

    s->log[log] = (gp_sim_log_t){st->ready_ps, st->loop * list->count + st->at, st->ready_log,
                                 e->stream | st->what << 30};
    s->work += 1 + step->n_send;
    for (uint32_t i = 0; i < step->n_in; i++) {
        const gp_ref_t *ref = &p->refs[step->in_first + i];

        reads += GP_REF_OWN == ref->conn ? 1 : gp_sim_recv_conn(s, part, ref)->weight;
    }
    reads *= bytes * s->in->share;
    reduced = ended = serve(&s->reduce[gp_sim_rank_of(s, st)], e->ps,
                            bytes_to_ps(reads, params->reduce_bytes_per_us), reads);
    for (uint32_t i = 0; i < step->n_send; i++) {
        gp_sim_conn_t *c = gp_sim_sent_conn(s, part, &p->refs[step->send_first + i]);

        if (c->net) {
            push(s, (gp_sim_event_t){reduced, e->stream, i, log});
        } else {
            double wire = wire_bytes(s, c, bytes) * s->in->share;
            uint64_t left = serve(&s->units[c->link], reduced,
                                  bytes_to_ps(wire, params->intra_bytes_per_us), wire);

            ended = left > ended ? left : ended;
            fill(s, c, left, log);
        }
    }
    /* This stream looks last: under symmetry it can be its own peer. */
    if (ended >= s->end_ps) {
        s->end_ps = ended;
        s->end_log = log;
    }
    st->ready_ps = ended;
    st->ready_log = log;
    st->what = GP_SIM_OWN;
    st->scan = 0;
    if (++st->at == list->count) {
        st->at = 0;
        st->loop++;
    }
    for (uint32_t i = 0; i < step->n_in; i++) {
        const gp_ref_t *ref = &p->refs[step->in_first + i];
        gp_sim_conn_t *c;
        gp_sim_slot_t *slot;

        if (GP_REF_OWN == ref->conn) {
            continue;
        }
        c = gp_sim_recv_conn(s, part, ref);
        slot = &s->slots[c->slot_base + c->freed % c->n_slots];
        slot->free_ps = ended + us_to_ps(c->net ? params->net_head_us : params->intra_head_us);
        slot->free_log = log;
        c->freed++;
        if (s->streams[c->src].blocked == (uint32_t) (c - s->conns)) {
            look(s, c->src);
        }
    }
    look(s, e->stream);
}

gp_status_t gp_sim_engine(const gp_sim_input_t *in, gp_sim_result_t *result)
{
    gp_status_t status;
    gp_sim_state_t s;

    memset(&s, 0, sizeof(s));
    s.in = in;
    status = gp_sim_build(&s);
    if (GP_ERR_INVALID == status) {
        snprintf(result->reason, sizeof(result->reason), "links do not match, or too many steps");
    }
    for (uint32_t t = 0; GP_OK == status && t < s.n_streams; t++) {
        look(&s, t);
    }
    while (GP_OK == status && 0 != s.heap_count) {
        gp_sim_event_t e = pop(&s);

        if (GP_SIM_NONE == e.send) {
            step_event(&s, &e);
        } else {
            send_event(&s, &e);
        }
        status = s.no_memory ? GP_ERR_NO_MEMORY : GP_OK;
    }
    if (GP_OK == status) {
        status = gp_sim_report(&s, result);
    }
    free(s.parts);
    free(s.streams);
    free(s.conns);
    free(s.send_conn);
    free(s.slots);
    free(s.reduce);
    free(s.units);
    free(s.heap);
    free(s.log);
    return status;
}
