/*
 * gp_verify.c - entry of the verifier, and its structural checks.
 *
 * Owns the flat view of a set of programs (gp_verify_int.h) and everything that can be checked without
 * running them: ranges, ordinals, links, outputs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_verify_int.h"

/* More than any real set; keeps all global indices within 32 bits. */
#define MOST_OBJECTS (1u << 30)

gp_status_t gp_verify_fail(const gp_verify_ctx_t *v, const char *format, ...)
{
    va_list args;

    if (0 != v->reason_bytes) {
        va_start(args, format);
        vsnprintf(v->reason, v->reason_bytes, format, args);
        va_end(args);
    }
    return GP_ERR_INVALID;
}

static gp_status_t check_header(const gp_verify_ctx_t *v, uint32_t rank)
{
    const gp_program_t *p = v->programs[rank];

    if (NULL == p || p->rank != rank || p->n_ranks != v->n_ranks) {
        return gp_verify_fail(v, "program %u is not the program of rank %u of %u", rank, rank,
                              v->n_ranks);
    }
    if (p->n_chunks != v->programs[0]->n_chunks || 0 == p->n_chunks) {
        return gp_verify_fail(v, "rank %u has %u chunks, rank 0 has %u", rank, p->n_chunks,
                              v->programs[0]->n_chunks);
    }
    if (p->channel != v->programs[0]->channel) {
        return gp_verify_fail(v, "rank %u is on channel %u, rank 0 on channel %u", rank, p->channel,
                              v->programs[0]->channel);
    }
    return GP_OK;
}

/* Sizes of all arrays; false when they exceed what the indices hold. */
static int count_objects(gp_verify_ctx_t *v)
{
    uint64_t steps = 0, streams = 0, conns = 0, sends = 0, uses = 0, inputs = 0;

    for (uint32_t r = 0; r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        steps += p->n_steps;
        streams += p->n_streams;
        conns += p->n_recv;
        sends += p->n_send;
        for (uint32_t i = 0; i < p->n_recv; i++) {
            uses += p->recv[i].uses;
        }
        for (uint32_t i = 0; i < p->n_steps; i++) {
            inputs += p->steps[i].n_in;
        }
    }
    if (steps > MOST_OBJECTS || streams > MOST_OBJECTS || conns > MOST_OBJECTS
        || sends > MOST_OBJECTS || uses > MOST_OBJECTS || inputs > MOST_OBJECTS) {
        return 0;
    }
    v->n_steps = (uint32_t) steps;
    v->n_streams = (uint32_t) streams;
    v->n_conns = (uint32_t) conns;
    v->n_sends = (uint32_t) sends;
    v->n_uses = (uint32_t) uses;
    v->n_inputs = (uint32_t) inputs;
    return 1;
}

/* Zeroed; at least one element, so that NULL always means out of memory. */
static void *new_array(size_t n, size_t bytes)
{
    return calloc(0 != n ? n : 1, bytes);
}

static gp_status_t alloc_arrays(gp_verify_ctx_t *v)
{
    v->step_base = new_array(v->n_ranks, sizeof(uint32_t));
    v->stream_base = new_array(v->n_ranks, sizeof(uint32_t));
    v->recv_base = new_array(v->n_ranks, sizeof(uint32_t));
    v->send_base = new_array(v->n_ranks, sizeof(uint32_t));
    v->send_conn = new_array(v->n_sends, sizeof(uint32_t));
    v->step_stream = new_array(v->n_steps, sizeof(uint32_t));
    v->producers = new_array(v->n_uses, sizeof(uint32_t));
    v->earlier = new_array(v->n_steps, sizeof(uint32_t));
    v->conns = new_array(v->n_conns, sizeof(*v->conns));
    v->streams = new_array(v->n_streams, sizeof(*v->streams));
    if (NULL == v->step_base || NULL == v->stream_base || NULL == v->recv_base
        || NULL == v->send_base || NULL == v->send_conn || NULL == v->step_stream
        || NULL == v->producers || NULL == v->earlier || NULL == v->conns || NULL == v->streams) {
        return GP_ERR_NO_MEMORY;
    }
    return GP_OK;
}

static void free_arrays(gp_verify_ctx_t *v)
{
    free(v->step_base);
    free(v->stream_base);
    free(v->recv_base);
    free(v->send_base);
    free(v->send_conn);
    free(v->step_stream);
    free(v->producers);
    free(v->earlier);
    free(v->conns);
    free(v->streams);
}

/* Peers in range, not oneself, each at most once. */
static gp_status_t check_links(const gp_verify_ctx_t *v, uint32_t rank, const gp_link_t *links,
                               uint32_t n, const char *what, uint32_t *stamp, uint32_t mark)
{
    for (uint32_t i = 0; i < n; i++) {
        if (links[i].peer >= v->n_ranks || links[i].peer == rank) {
            return gp_verify_fail(v, "rank %u %s link %u leads to rank %u", rank, what, i,
                                  links[i].peer);
        }
        if (mark == stamp[links[i].peer]) {
            return gp_verify_fail(v, "rank %u has two %s links to rank %u", rank, what,
                                  links[i].peer);
        }
        stamp[links[i].peer] = mark;
    }
    return GP_OK;
}

/* Streams cover every step once; chunk, flags and ref ranges of each step. */
static gp_status_t check_steps(gp_verify_ctx_t *v, uint32_t rank)
{
    const gp_program_t *p = v->programs[rank];
    uint32_t *owner = v->step_stream + v->step_base[rank];

    for (uint32_t i = 0; i < p->n_steps; i++) {
        const gp_step_t *s = &p->steps[i];

        owner[i] = GP_VERIFY_NONE;
        if (s->chunk >= p->n_chunks || 0 != (s->flags & ~GP_STEP_OUTPUT)) {
            return gp_verify_fail(v, "rank %u step %u: chunk %u of %u, flags 0x%x", rank, i,
                                  s->chunk, p->n_chunks, s->flags);
        }
        if (0 == s->n_in || s->n_in > p->n_refs || s->in_first > p->n_refs - s->n_in
            || s->n_send > p->n_refs || s->send_first > p->n_refs - s->n_send) {
            return gp_verify_fail(v, "rank %u step %u: inputs or sends outside the list", rank, i);
        }
    }
    for (uint32_t t = 0; t < p->n_streams; t++) {
        const gp_stream_t *stream = &p->streams[t];

        if (0 == stream->count || stream->count > p->n_steps
            || stream->first > p->n_steps - stream->count) {
            return gp_verify_fail(v, "rank %u stream %u: empty or outside the steps", rank, t);
        }
        v->streams[v->stream_base[rank] + t].rank = rank;
        v->streams[v->stream_base[rank] + t].index = t;
        for (uint32_t i = 0; i < stream->count; i++) {
            if (GP_VERIFY_NONE != owner[stream->first + i]) {
                return gp_verify_fail(v, "rank %u step %u is in two streams", rank,
                                      stream->first + i);
            }
            owner[stream->first + i] = v->stream_base[rank] + t;
        }
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (GP_VERIFY_NONE == owner[i]) {
            return gp_verify_fail(v, "rank %u step %u is in no stream", rank, i);
        }
    }
    return GP_OK;
}

/* One input or send of a step: its link, its owner stream, its ordinal. used counts per link. */
static gp_status_t check_ref(gp_verify_ctx_t *v, uint32_t rank, uint32_t step, const gp_ref_t *ref,
                             const gp_link_t *links, uint32_t n_links, const char *what,
                             uint32_t *used, uint32_t *stream_of, uint32_t *step_of)
{
    uint32_t stream = v->step_stream[v->step_base[rank] + step];

    if (ref->conn >= n_links) {
        return gp_verify_fail(v, "rank %u step %u: no %s link %u", rank, step, what, ref->conn);
    }
    if (ref->ordinal != used[ref->conn]) {
        return gp_verify_fail(v, "rank %u step %u: ordinal %u on the %s link to rank %u, want %u",
                              rank, step, ref->ordinal, what, links[ref->conn].peer,
                              used[ref->conn]);
    }
    if (0 != used[ref->conn] && stream_of[ref->conn] != stream) {
        return gp_verify_fail(v, "rank %u: the %s link to rank %u is in two streams", rank, what,
                              links[ref->conn].peer);
    }
    /* Executors number the references of a step by link: one each. */
    if (0 != used[ref->conn] && step_of[ref->conn] == step) {
        return gp_verify_fail(v, "rank %u step %u names the %s link to rank %u twice", rank, step,
                              what, links[ref->conn].peer);
    }
    stream_of[ref->conn] = stream;
    step_of[ref->conn] = step;
    used[ref->conn]++;
    return GP_OK;
}

static gp_status_t check_uses(const gp_verify_ctx_t *v, uint32_t rank, const gp_link_t *links,
                              uint32_t n, const char *what, const uint32_t *used)
{
    for (uint32_t i = 0; i < n; i++) {
        if (0 == used[i] || links[i].uses != used[i]) {
            return gp_verify_fail(v, "rank %u %s link to rank %u: %u uses stated, %u found", rank,
                                  what, links[i].peer, links[i].uses, used[i]);
        }
    }
    return GP_OK;
}

/* Walk the streams in order. scratch: 3 words per link of either kind, 0; last: n_chunks words. */
static gp_status_t check_refs(gp_verify_ctx_t *v, uint32_t rank, uint32_t *scratch, uint32_t *last)
{
    const gp_program_t *p = v->programs[rank];
    uint32_t links = p->n_recv + p->n_send;
    uint32_t *used = scratch, *stream_of = used + links, *step_of = stream_of + links;
    gp_status_t status = GP_OK;

    for (uint32_t t = 0; t < p->n_streams; t++) {
        const gp_stream_t *stream = &p->streams[t];

        memset(last, 0xff, p->n_chunks * sizeof(*last));
        for (uint32_t i = stream->first; i < stream->first + stream->count; i++) {
            const gp_step_t *s = &p->steps[i];
            uint32_t own = 0;

            v->earlier[v->step_base[rank] + i] = last[s->chunk];
            last[s->chunk] = v->step_base[rank] + i;
            for (uint32_t k = 0; GP_OK == status && k < s->n_in; k++) {
                const gp_ref_t *ref = &p->refs[s->in_first + k];

                if (GP_REF_OWN != ref->conn) {
                    status = check_ref(v, rank, i, ref, p->recv, p->n_recv, "receive", used,
                                       stream_of, step_of);
                } else if (0 != own++ || 0 != ref->ordinal) {
                    status = gp_verify_fail(v, "rank %u step %u: own input twice, or ordinal %u",
                                            rank, i, ref->ordinal);
                }
            }
            for (uint32_t k = 0; GP_OK == status && k < s->n_send; k++) {
                status = check_ref(v, rank, i, &p->refs[s->send_first + k], p->send, p->n_send,
                                   "send", used + p->n_recv, stream_of + p->n_recv,
                                   step_of + p->n_recv);
            }
            if (GP_OK != status) {
                return status;
            }
        }
    }
    status = check_uses(v, rank, p->recv, p->n_recv, "receive", used);
    if (GP_OK == status) {
        status = check_uses(v, rank, p->send, p->n_send, "send", used + p->n_recv);
    }
    for (uint32_t i = 0; GP_OK == status && i < p->n_recv; i++) {
        v->conns[v->recv_base[rank] + i].dst_stream = stream_of[i];
    }
    for (uint32_t i = 0; GP_OK == status && i < p->n_send; i++) {
        v->send_conn[v->send_base[rank] + i] = stream_of[p->n_recv + i]; /* until it is matched */
    }
    return status;
}

/* Every chunk is written to the output exactly once. count: n_chunks words. */
static gp_status_t check_outputs(const gp_verify_ctx_t *v, uint32_t rank, uint32_t *count)
{
    const gp_program_t *p = v->programs[rank];

    memset(count, 0, p->n_chunks * sizeof(*count));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        count[p->steps[i].chunk] += 0 != (p->steps[i].flags & GP_STEP_OUTPUT);
    }
    for (uint32_t c = 0; c < p->n_chunks; c++) {
        if (1 != count[c]) {
            return gp_verify_fail(v, "rank %u outputs chunk %u %u times", rank, c, count[c]);
        }
    }
    return GP_OK;
}

/* Each receive link is one peer's send link; fill conns. by_rank: n_ranks words of scratch. */
static gp_status_t match_links(gp_verify_ctx_t *v, uint32_t *by_rank)
{
    uint32_t n_uses = 0;

    /* Receivers first: what each expects. */
    for (uint32_t r = 0; r < v->n_ranks; r++) {
        for (uint32_t i = 0; i < v->programs[r]->n_recv; i++) {
            gp_verify_conn_t *c = &v->conns[v->recv_base[r] + i];

            c->src = v->programs[r]->recv[i].peer;
            c->dst = r;
            c->src_stream = GP_VERIFY_NONE;
            c->uses = v->programs[r]->recv[i].uses;
            c->first_use = n_uses;
            n_uses += c->uses;
        }
    }
    for (uint32_t r = 0; r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        memset(by_rank, 0xff, v->n_ranks * sizeof(*by_rank));
        for (uint32_t i = 0; i < p->n_send; i++) {
            const gp_program_t *peer = v->programs[p->send[i].peer];
            uint32_t conn = GP_VERIFY_NONE;

            for (uint32_t k = 0; k < peer->n_recv && GP_VERIFY_NONE == conn; k++) {
                conn = r == peer->recv[k].peer ? v->recv_base[p->send[i].peer] + k : conn;
            }
            if (GP_VERIFY_NONE == conn) {
                return gp_verify_fail(v, "rank %u sends to rank %u, which does not receive from it",
                                      r, p->send[i].peer);
            }
            if (v->conns[conn].uses != p->send[i].uses) {
                return gp_verify_fail(v, "rank %u sends %u times a loop to rank %u, which "
                                      "receives %u times", r, p->send[i].uses, p->send[i].peer,
                                      v->conns[conn].uses);
            }
            v->conns[conn].src_stream = v->send_conn[v->send_base[r] + i];
            v->send_conn[v->send_base[r] + i] = conn;
        }
    }
    for (uint32_t i = 0; i < v->n_conns; i++) {
        if (GP_VERIFY_NONE == v->conns[i].src_stream) {
            return gp_verify_fail(v, "rank %u receives from rank %u, which does not send to it",
                                  v->conns[i].dst, v->conns[i].src);
        }
    }
    return GP_OK;
}

/* Each use of a connection means the same chunk at both ends; fills producers. */
static gp_status_t match_uses(gp_verify_ctx_t *v)
{
    for (uint32_t r = 0; r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        for (uint32_t i = 0; i < p->n_steps; i++) {
            for (uint32_t k = 0; k < p->steps[i].n_send; k++) {
                const gp_ref_t *ref = &p->refs[p->steps[i].send_first + k];
                const gp_verify_conn_t *c = &v->conns[v->send_conn[v->send_base[r] + ref->conn]];

                v->producers[c->first_use + ref->ordinal] = v->step_base[r] + i;
            }
        }
    }
    for (uint32_t r = 0; r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        for (uint32_t i = 0; i < p->n_steps; i++) {
            for (uint32_t k = 0; k < p->steps[i].n_in; k++) {
                const gp_ref_t *ref = &p->refs[p->steps[i].in_first + k];
                const gp_verify_conn_t *c;
                uint32_t chunk, producer;

                if (GP_REF_OWN == ref->conn) {
                    continue;
                }
                c = &v->conns[v->recv_base[r] + ref->conn];
                producer = v->producers[c->first_use + ref->ordinal] - v->step_base[c->src];
                chunk = v->programs[c->src]->steps[producer].chunk;
                if (chunk != p->steps[i].chunk) {
                    return gp_verify_fail(v, "use %u from rank %u to rank %u: chunk %u is sent, "
                                          "chunk %u expected", ref->ordinal, c->src, r, chunk,
                                          p->steps[i].chunk);
                }
            }
        }
    }
    return GP_OK;
}

gp_status_t gp_verify_structure(gp_verify_ctx_t *v)
{
    uint32_t most_links = 0, steps = 0, streams = 0, conns = 0, sends = 0;
    uint32_t *scratch, *chunk_words, *rank_words;
    gp_status_t status = GP_OK;

    for (uint32_t r = 0; r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        v->step_base[r] = steps;
        v->stream_base[r] = streams;
        v->recv_base[r] = conns;
        v->send_base[r] = sends;
        steps += p->n_steps;
        streams += p->n_streams;
        conns += p->n_recv;
        sends += p->n_send;
        if (p->n_recv + p->n_send > most_links) {
            most_links = p->n_recv + p->n_send;
        }
    }
    scratch = new_array(3 * (size_t) most_links, sizeof(*scratch));
    chunk_words = new_array(v->n_chunks, sizeof(*chunk_words));
    rank_words = new_array(v->n_ranks, sizeof(*rank_words));
    if (NULL == scratch || NULL == chunk_words || NULL == rank_words) {
        status = GP_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; GP_OK == status && r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];

        memset(scratch, 0, 3 * (size_t) most_links * sizeof(*scratch));
        status = check_links(v, r, p->recv, p->n_recv, "receive", rank_words, 2 * r + 1);
        if (GP_OK == status) {
            status = check_links(v, r, p->send, p->n_send, "send", rank_words, 2 * r + 2);
        }
        if (GP_OK == status) {
            status = check_steps(v, r);
        }
        if (GP_OK == status) {
            status = check_refs(v, r, scratch, chunk_words);
        }
        if (GP_OK == status) {
            status = check_outputs(v, r, chunk_words);
        }
    }
    if (GP_OK == status) {
        status = match_links(v, rank_words);
    }
    if (GP_OK == status) {
        status = match_uses(v);
    }
    free(scratch);
    free(chunk_words);
    free(rank_words);
    return status;
}

gp_status_t gp_verify(const gp_program_t *const *programs, uint32_t n_ranks, uint32_t n_slots,
                      uint32_t loops, char *reason, size_t reason_bytes)
{
    gp_verify_ctx_t v;
    gp_status_t status = GP_OK;

    memset(&v, 0, sizeof(v));
    v.programs = programs;
    v.n_ranks = n_ranks;
    v.n_slots = n_slots;
    v.loops = loops;
    v.reason = reason;
    v.reason_bytes = NULL != reason ? reason_bytes : 0;
    if (0 != v.reason_bytes) {
        reason[0] = '\0';
    }
    if (0 == n_ranks || n_ranks > MOST_OBJECTS || 0 == n_slots || n_slots > GP_MAX_SLOTS
        || 0 == loops) {
        return gp_verify_fail(&v, "%u ranks, %u slots, %u loops: out of range", n_ranks, n_slots,
                              loops);
    }
    for (uint32_t r = 0; GP_OK == status && r < n_ranks; r++) {
        status = check_header(&v, r);
    }
    if (GP_OK != status) {
        return status;
    }
    v.n_chunks = programs[0]->n_chunks;
    if (!count_objects(&v)) {
        return gp_verify_fail(&v, "programs too large");
    }
    status = alloc_arrays(&v);
    if (GP_OK == status) {
        status = gp_verify_structure(&v);
    }
    if (GP_OK == status) {
        status = gp_verify_run(&v);
    }
    if (GP_OK == status) {
        status = gp_verify_in_place(&v);
    }
    free_arrays(&v);
    return status;
}
