/*
 * gp_verify_run.c - the verifier's symbolic run: deadlock, expressions, in-place hazards.
 *
 * Running is confluent: each connection has one stream that fills it and one that frees it, so a step
 * that can run stays able to run whatever others do. One schedule therefore decides whether any
 * schedule can get stuck.
 *
 * What a step computes does not depend on the loop (ordinals are per loop), so expressions are built in
 * loop 0 only. They are hash-consed: equal expressions, bracketing included, are one node.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_verify_int.h"

/* left + right; node r < n_ranks is rank r's own contribution. */
typedef struct node {
    uint32_t left;
    uint32_t right;
    uint32_t leaves;  /* contributions in it, saturated at n_ranks + 1 */
    uint32_t checked; /* known to hold each rank once */
} node_t;

typedef struct run {
    gp_verify_ctx_t *v;
    node_t *nodes;
    uint32_t n_nodes;
    uint32_t *table; /* open addressing, node index + 1 */
    uint32_t table_mask;
    uint32_t *expr;     /* per step: node */
    uint32_t *expected; /* per chunk: the node the first rank output, + 1 */
    uint32_t *queue;    /* streams to try, a ring of n_streams */
    uint32_t queue_first;
    uint32_t queue_count;
    uint32_t *stack;      /* for walking an expression */
    unsigned char *seen;  /* per rank */
} run_t;

static uint32_t cons(run_t *run, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t) left << 32 | right;
    uint32_t at = (uint32_t) ((key * 0x9e3779b97f4a7c15ull) >> 32) & run->table_mask;
    uint64_t leaves = (uint64_t) run->nodes[left].leaves + run->nodes[right].leaves;
    node_t *node;

    while (0 != run->table[at]) {
        node = &run->nodes[run->table[at] - 1];
        if (node->left == left && node->right == right) {
            return run->table[at] - 1;
        }
        at = (at + 1) & run->table_mask;
    }
    node = &run->nodes[run->n_nodes];
    node->left = left;
    node->right = right;
    node->leaves = leaves > run->v->n_ranks ? run->v->n_ranks + 1 : (uint32_t) leaves;
    run->table[at] = ++run->n_nodes;
    return run->n_nodes - 1;
}

/* Each rank's contribution exactly once? */
static gp_status_t check_complete(run_t *run, uint32_t root, uint32_t rank, uint32_t chunk)
{
    gp_verify_ctx_t *v = run->v;
    uint32_t depth = 0;

    if (run->nodes[root].checked) {
        return GP_OK;
    }
    if (run->nodes[root].leaves != v->n_ranks) {
        return gp_verify_fail(v, "rank %u outputs chunk %u with %s%u contributions instead of %u",
                              rank, chunk, run->nodes[root].leaves > v->n_ranks ? "at least " : "",
                              run->nodes[root].leaves, v->n_ranks);
    }
    memset(run->seen, 0, v->n_ranks);
    run->stack[depth++] = root; /* at most n_ranks leaves, so depth stays below n_ranks */
    while (0 != depth) {
        uint32_t node = run->stack[--depth];

        if (node >= v->n_ranks) {
            run->stack[depth++] = run->nodes[node].right;
            run->stack[depth++] = run->nodes[node].left;
        } else if (run->seen[node]) {
            return gp_verify_fail(v, "rank %u outputs chunk %u with rank %u's contribution twice",
                                  rank, chunk, node);
        } else {
            run->seen[node] = 1;
        }
    }
    run->nodes[root].checked = 1;
    return GP_OK;
}

/* What the step computes: loop 0 only, after all its producers ran. */
static gp_status_t evaluate(run_t *run, uint32_t rank, const gp_step_t *s, uint32_t global_step)
{
    gp_verify_ctx_t *v = run->v;
    const gp_program_t *p = v->programs[rank];
    uint32_t sum = 0;
    gp_status_t status;

    for (uint32_t k = 0; k < s->n_in; k++) {
        const gp_ref_t *ref = &p->refs[s->in_first + k];
        uint32_t value = rank;

        if (GP_REF_OWN != ref->conn) {
            const gp_verify_conn_t *c = &v->conns[v->recv_base[rank] + ref->conn];

            value = run->expr[v->producers[c->first_use + ref->ordinal]];
        }
        sum = 0 == k ? value : cons(run, sum, value);
    }
    run->expr[global_step] = sum;
    if (0 == (s->flags & GP_STEP_OUTPUT)) {
        return GP_OK;
    }
    status = check_complete(run, sum, rank, s->chunk);
    if (GP_OK != status) {
        return status;
    }
    if (0 == run->expected[s->chunk]) {
        run->expected[s->chunk] = sum + 1;
    } else if (run->expected[s->chunk] != sum + 1) {
        return gp_verify_fail(v, "rank %u reduces chunk %u in another order than other ranks", rank,
                              s->chunk);
    }
    return GP_OK;
}

/*
 * Can the stream's next step run? If not, *peer is the rank it waits for, *credit whether for a credit
 * of it or for its data.
 */
static int ready(const gp_verify_ctx_t *v, const gp_verify_stream_t *stream, const gp_step_t *s,
                 uint32_t *peer, int *credit)
{
    const gp_program_t *p = v->programs[stream->rank];

    for (uint32_t k = 0; k < s->n_in; k++) {
        const gp_ref_t *ref = &p->refs[s->in_first + k];

        if (GP_REF_OWN != ref->conn) {
            const gp_verify_conn_t *c = &v->conns[v->recv_base[stream->rank] + ref->conn];

            if (c->filled <= stream->loop * c->uses + ref->ordinal) {
                *peer = c->src;
                *credit = 0;
                return 0;
            }
        }
    }
    for (uint32_t k = 0; k < s->n_send; k++) {
        const gp_ref_t *ref = &p->refs[s->send_first + k];
        const gp_verify_conn_t *c = &v->conns[v->send_conn[v->send_base[stream->rank] + ref->conn]];

        if (!gp_credit(c->freed, stream->loop * c->uses + ref->ordinal, v->n_slots)) {
            *peer = c->dst;
            *credit = 1;
            return 0;
        }
    }
    return 1;
}

static void enqueue(run_t *run, uint32_t stream)
{
    gp_verify_ctx_t *v = run->v;

    if (!v->streams[stream].queued) {
        v->streams[stream].queued = 1;
        run->queue[(run->queue_first + run->queue_count++) % v->n_streams] = stream;
    }
}

/* The step has run: fill, free, and wake who may wait for that. */
static void finish(run_t *run, uint32_t rank, const gp_step_t *s)
{
    gp_verify_ctx_t *v = run->v;
    const gp_program_t *p = v->programs[rank];

    for (uint32_t k = 0; k < s->n_in; k++) {
        uint32_t conn = p->refs[s->in_first + k].conn;

        if (GP_REF_OWN != conn) {
            v->conns[v->recv_base[rank] + conn].freed++;
            enqueue(run, v->conns[v->recv_base[rank] + conn].src_stream);
        }
    }
    for (uint32_t k = 0; k < s->n_send; k++) {
        uint32_t conn = v->send_conn[v->send_base[rank] + p->refs[s->send_first + k].conn];

        v->conns[conn].filled++;
        enqueue(run, v->conns[conn].dst_stream);
    }
}

/* Run one stream until it would wait or is done. */
static gp_status_t run_stream(run_t *run, gp_verify_stream_t *stream)
{
    gp_verify_ctx_t *v = run->v;
    const gp_program_t *p = v->programs[stream->rank];
    const gp_stream_t *list = &p->streams[stream->index];
    gp_status_t status = GP_OK;
    uint32_t peer;
    int credit;

    while (stream->loop < v->loops) {
        uint32_t step = list->first + stream->at;
        const gp_step_t *s = &p->steps[step];

        if (!ready(v, stream, s, &peer, &credit)) {
            return GP_OK;
        }
        if (0 == stream->loop) {
            status = evaluate(run, stream->rank, s, v->step_base[stream->rank] + step);
            if (GP_OK != status) {
                return status;
            }
        }
        finish(run, stream->rank, s);
        if (++stream->at == list->count) {
            stream->at = 0;
            stream->loop++;
        }
    }
    return GP_OK;
}

static gp_status_t run_all(run_t *run)
{
    gp_verify_ctx_t *v = run->v;
    gp_status_t status = GP_OK;

    for (uint32_t t = 0; t < v->n_streams; t++) {
        enqueue(run, t);
    }
    while (GP_OK == status && 0 != run->queue_count) {
        gp_verify_stream_t *stream = &v->streams[run->queue[run->queue_first]];

        run->queue_first = (run->queue_first + 1) % v->n_streams;
        run->queue_count--;
        stream->queued = 0;
        status = run_stream(run, stream);
    }
    for (uint32_t t = 0; GP_OK == status && t < v->n_streams; t++) {
        const gp_verify_stream_t *stream = &v->streams[t];

        if (stream->loop < v->loops) {
            const gp_program_t *p = v->programs[stream->rank];
            uint32_t step = p->streams[stream->index].first + stream->at;
            uint32_t peer = 0;
            int credit = 0;

            ready(v, stream, &p->steps[step], &peer, &credit);
            status = gp_verify_fail(v, "deadlock with %u slots: rank %u stream %u loop %llu step "
                                    "%u waits for %s rank %u", v->n_slots, stream->rank,
                                    stream->index, (unsigned long long) stream->loop, step,
                                    credit ? "a credit of" : "data from", peer);
        }
    }
    return status;
}

gp_status_t gp_verify_run(gp_verify_ctx_t *v)
{
    size_t most_nodes = (size_t) v->n_ranks + v->n_inputs;
    size_t table_size = 16;
    gp_status_t status = GP_ERR_NO_MEMORY;
    run_t run;

    while (table_size < 2 * most_nodes) {
        table_size *= 2;
    }
    memset(&run, 0, sizeof(run));
    run.v = v;
    run.n_nodes = v->n_ranks;
    run.table_mask = (uint32_t) (table_size - 1);
    run.nodes = calloc(most_nodes, sizeof(*run.nodes));
    run.table = calloc(table_size, sizeof(*run.table));
    run.expr = calloc(v->n_steps, sizeof(*run.expr));
    run.expected = calloc(v->n_chunks, sizeof(*run.expected));
    run.queue = calloc(v->n_streams, sizeof(*run.queue));
    run.stack = calloc((size_t) v->n_ranks + 1, sizeof(*run.stack));
    run.seen = calloc(v->n_ranks, 1);
    if (NULL != run.nodes && NULL != run.table && NULL != run.expr && NULL != run.expected
        && NULL != run.queue && NULL != run.stack && NULL != run.seen) {
        for (uint32_t r = 0; r < v->n_ranks; r++) {
            run.nodes[r].leaves = 1;
        }
        status = run_all(&run);
    }
    free(run.nodes);
    free(run.table);
    free(run.expr);
    free(run.expected);
    free(run.queue);
    free(run.stack);
    free(run.seen);
    return status;
}

/*
 * Is everything `from` reads of its own buffer read before `to` writes, element by element? Proven by a
 * path from `from` to `to` of steps on one chunk, each feeding the next through a connection or
 * following it in its stream. Steps on other chunks prove nothing: threads of an executor do not wait
 * for each other between steps, only the same position of the same chunk is ordered.
 */
static int comes_before(const gp_verify_ctx_t *v, uint32_t from, uint32_t to,
                        const uint32_t *rank_of, uint32_t *mark, uint32_t stamp, uint32_t *stack)
{
    uint32_t depth = 0;

    stack[depth++] = to;
    mark[to] = stamp;
    while (0 != depth) {
        uint32_t at = stack[--depth];
        uint32_t rank = rank_of[at];
        const gp_program_t *p = v->programs[rank];
        const gp_step_t *s = &p->steps[at - v->step_base[rank]];

        if (at == from) {
            return 1;
        }
        for (uint32_t k = 0; k <= s->n_in; k++) {
            uint32_t before = v->earlier[at];

            if (k < s->n_in) {
                const gp_ref_t *ref = &p->refs[s->in_first + k];

                before = GP_VERIFY_NONE;
                if (GP_REF_OWN != ref->conn) {
                    const gp_verify_conn_t *c = &v->conns[v->recv_base[rank] + ref->conn];

                    before = v->producers[c->first_use + ref->ordinal];
                }
            }
            if (GP_VERIFY_NONE != before && stamp != mark[before]) {
                mark[before] = stamp;
                stack[depth++] = before;
            }
        }
    }
    return 0;
}

gp_status_t gp_verify_in_place(const gp_verify_ctx_t *v)
{
    uint32_t *mark = calloc(v->n_steps, sizeof(*mark));
    uint32_t *stack = calloc(v->n_steps, sizeof(*stack));
    uint32_t *rank_of = calloc(v->n_steps, sizeof(*rank_of));
    uint32_t *writer = calloc(v->n_chunks, sizeof(*writer)); /* local step that outputs the chunk */
    uint32_t stamp = 0;
    gp_status_t status = GP_OK;

    if (NULL == mark || NULL == stack || NULL == rank_of || NULL == writer) {
        status = GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; GP_OK == status && i < v->n_steps; i++) {
        rank_of[i] = v->streams[v->step_stream[i]].rank;
    }
    for (uint32_t r = 0; GP_OK == status && r < v->n_ranks; r++) {
        const gp_program_t *p = v->programs[r];
        const uint32_t *stream_of = v->step_stream + v->step_base[r];

        for (uint32_t i = 0; i < p->n_steps; i++) {
            if (0 != (p->steps[i].flags & GP_STEP_OUTPUT)) {
                writer[p->steps[i].chunk] = i;
            }
        }
        for (uint32_t i = 0; GP_OK == status && i < p->n_steps; i++) {
            uint32_t w = writer[p->steps[i].chunk];

            if (i == w || !gp_verify_reads_own(p, &p->steps[i])) {
                continue;
            }
            /* Within a stream its order is the proof; step numbers ascend along a stream. */
            if (stream_of[i] == stream_of[w]
                    ? i > w
                    : !comes_before(v, v->step_base[r] + i, v->step_base[r] + w, rank_of, mark,
                                    ++stamp, stack)) {
                status = gp_verify_fail(v, "in place: rank %u step %u may read chunk %u after step "
                                        "%u has overwritten it", r, i, p->steps[i].chunk, w);
            }
        }
    }
    free(mark);
    free(stack);
    free(rank_of);
    free(writer);
    return status;
}
