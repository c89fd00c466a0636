/*
 * gp_edit_program.h - a program as lists that a test can change, and back.
 *
 * gp_thaw() reads a program, gp_freeze() emits it again with ordinals and uses counted anew, so that a
 * planted fault is only the fault. Links stay as they are unless the test changes them. gp_parse() reads a
 * program from text:
 *
 *   c<chunk>  a step begins      o      input: own        r<peer>  input: received from peer
 *   !         output             |      next stream       s<peer>  send to peer
 *
 * Rank 0 of a flat program over 3 ranks: "c0 o s1 s2  c0 o r1 r2 !".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_EDIT_PROGRAM_H
#define GP_EDIT_PROGRAM_H

#include <stdlib.h>
#include <string.h>

#include "planner/gp_emit.h"

#define GP_EDIT_MOST_REFS 16
#define GP_EDIT_MOST_STEPS 64
#define GP_EDIT_MOST_LINKS 8

typedef struct gp_edit_step {
    uint32_t stream;
    uint32_t chunk;
    uint32_t flags;
    uint32_t n_in;
    uint32_t n_send;
    uint32_t in[GP_EDIT_MOST_REFS]; /* receive link or GP_REF_OWN */
    uint32_t send[GP_EDIT_MOST_REFS];
} gp_edit_step_t;

typedef struct gp_edit {
    uint32_t rank;
    uint32_t n_ranks;
    uint32_t n_chunks;
    uint32_t n_streams;
    uint32_t n_steps; /* in the order of their streams */
    uint32_t n_recv;
    uint32_t n_send;
    uint32_t recv[GP_EDIT_MOST_LINKS]; /* peers */
    uint32_t send[GP_EDIT_MOST_LINKS];
    gp_edit_step_t steps[GP_EDIT_MOST_STEPS];
} gp_edit_t;

static inline void gp_thaw(const gp_program_t *p, gp_edit_t *e)
{
    memset(e, 0, sizeof(*e));
    e->rank = p->rank;
    e->n_ranks = p->n_ranks;
    e->n_chunks = p->n_chunks;
    e->n_streams = p->n_streams;
    e->n_steps = p->n_steps;
    e->n_recv = p->n_recv;
    e->n_send = p->n_send;
    for (uint32_t i = 0; i < p->n_recv; i++) {
        e->recv[i] = p->recv[i].peer;
    }
    for (uint32_t i = 0; i < p->n_send; i++) {
        e->send[i] = p->send[i].peer;
    }
    for (uint32_t t = 0; t < p->n_streams; t++) {
        for (uint32_t i = p->streams[t].first; i < p->streams[t].first + p->streams[t].count; i++) {
            const gp_step_t *s = &p->steps[i];
            gp_edit_step_t *d = &e->steps[i];

            d->stream = t;
            d->chunk = s->chunk;
            d->flags = s->flags;
            d->n_in = s->n_in;
            d->n_send = s->n_send;
            for (uint32_t k = 0; k < s->n_in; k++) {
                d->in[k] = p->refs[s->in_first + k].conn;
            }
            for (uint32_t k = 0; k < s->n_send; k++) {
                d->send[k] = p->refs[s->send_first + k].conn;
            }
        }
    }
}

/* Append an empty step to the last stream; a new stream if asked. */
static inline gp_edit_step_t *gp_edit_append(gp_edit_t *e, int new_stream, uint32_t chunk,
                                             uint32_t flags)
{
    gp_edit_step_t *s = &e->steps[e->n_steps++];

    memset(s, 0, sizeof(*s));
    if (new_stream || 0 == e->n_streams) {
        e->n_streams++;
    }
    s->stream = e->n_streams - 1;
    s->chunk = chunk;
    s->flags = flags;
    return s;
}

/* Index of peer among links; appended when new. */
static inline uint32_t gp_edit_link(uint32_t *links, uint32_t *n, uint32_t peer)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (links[i] == peer) {
            return i;
        }
    }
    links[*n] = peer;
    return (*n)++;
}

/* The text must be right: it is part of the test. */
static inline void gp_parse(const char *text, uint32_t n_ranks, uint32_t rank, uint32_t n_chunks,
                            gp_edit_t *e)
{
    gp_edit_step_t *s = NULL;
    int new_stream = 1;

    memset(e, 0, sizeof(*e));
    e->rank = rank;
    e->n_ranks = n_ranks;
    e->n_chunks = n_chunks;
    while ('\0' != *text) {
        char what = *text++;
        char *end = (char *) text;
        uint32_t number = 'c' == what || 'r' == what || 's' == what
                              ? (uint32_t) strtoul(text, &end, 10) : 0;

        text = end;
        if ('|' == what) {
            new_stream = 1;
        } else if ('c' == what) {
            s = gp_edit_append(e, new_stream, number, 0);
            new_stream = 0;
        } else if ('o' == what) {
            s->in[s->n_in++] = GP_REF_OWN;
        } else if ('r' == what) {
            s->in[s->n_in++] = gp_edit_link(e->recv, &e->n_recv, number);
        } else if ('s' == what) {
            s->send[s->n_send++] = gp_edit_link(e->send, &e->n_send, number);
        } else if ('!' == what) {
            s->flags = GP_STEP_OUTPUT;
        }
    }
}

/* Caller owns *program_p. */
static inline gp_status_t gp_freeze(const gp_edit_t *e, gp_program_t **program_p)
{
    uint32_t n_refs = 0;
    gp_emit_t emit;
    gp_status_t status;

    for (uint32_t i = 0; i < e->n_steps; i++) {
        n_refs += e->steps[i].n_in + e->steps[i].n_send;
    }
    status = gp_emit_begin(&emit, e->n_streams, e->n_steps, n_refs, e->n_recv, e->n_send);
    if (GP_OK != status) {
        return status;
    }
    emit.program->algorithm = GP_ALGO_CUSTOM;
    emit.program->rank = e->rank;
    emit.program->n_ranks = e->n_ranks;
    emit.program->n_chunks = e->n_chunks;
    for (uint32_t i = 0; i < e->n_recv; i++) {
        emit.program->recv[i].peer = e->recv[i];
    }
    for (uint32_t i = 0; i < e->n_send; i++) {
        emit.program->send[i].peer = e->send[i];
    }
    for (uint32_t i = 0; i < e->n_steps; i++) {
        const gp_edit_step_t *s = &e->steps[i];

        while (emit.stream <= s->stream) {
            gp_emit_stream(&emit);
        }
        gp_emit_step(&emit, s->chunk, s->flags);
        for (uint32_t k = 0; k < s->n_in; k++) {
            if (GP_REF_OWN == s->in[k]) {
                gp_emit_input_own(&emit);
            } else {
                gp_emit_input(&emit, s->in[k]);
            }
        }
        for (uint32_t k = 0; k < s->n_send; k++) {
            gp_emit_send(&emit, s->send[k]);
        }
    }
    return gp_emit_end(&emit, program_p);
}

#endif /* GP_EDIT_PROGRAM_H */
