/*
 * gp_random_program.c - draws, schedules and emits random allreduce programs.
 *
 * 1. Draw: per chunk a graph of steps. Either a random tree over all ranks sums up to its root, or the
 *    roots of several trees hand their sums to a few core ranks, each of which adds them all, in one
 *    order. A random forest then spreads the result. Any edge may take a detour over a relay.
 * 2. Schedule: a random global order in which each step has its data and its credits. Restricted to the
 *    streams it stays executable, so the set cannot deadlock.
 * 3. Streams: links that meet in a step belong together; the groups are dealt to streams at random.
 *
 * A draw that cannot be scheduled with n_slots is thrown away; later attempts are simpler, the last ones
 * (no relays, chunk after chunk) always work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/unit/gp_random_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_emit.h"
#include "planner/gp_verify.h"

#define N GP_RANDOM_MOST_RANKS
#define MOST_CHUNKS 6u
#define MOST_STREAMS 4u
#define MOST_STEPS 512u
#define MOST_EDGES 1024u
#define OWN UINT32_MAX
#define NONE UINT32_MAX
#define ATTEMPTS 64u
#define PLAIN_ATTEMPT 40u /* from here on no relays and no interleaving */

typedef struct edge {
    uint32_t from; /* step */
    uint32_t to;   /* step */
    int sent;
} edge_t;

typedef struct step {
    uint32_t rank;
    uint32_t chunk;
    uint32_t flags;
    uint32_t after; /* a step of the same rank that must come before, in the same stream */
    uint32_t n_in;
    uint32_t n_send;
    uint32_t in[N + 1]; /* edges or OWN, in reduction order */
    uint32_t send[N];   /* edges */
    int done;
} step_t;

typedef struct draw {
    uint64_t random;
    uint32_t n_ranks;
    uint32_t n_slots;
    uint32_t n_chunks;
    uint32_t relay_percent;
    uint32_t jump_percent; /* how often the schedule leaves the oldest chunk */
    uint32_t n_steps;
    uint32_t n_edges;
    int failed;
    step_t steps[MOST_STEPS];
    edge_t edges[MOST_EDGES];
    uint32_t order[MOST_STEPS];         /* schedule */
    uint32_t queue[N][N][MOST_EDGES];   /* edges of a connection in the order sent */
    uint32_t queue_first[N][N];
    uint32_t queue_end[N][N];
    uint32_t group[N][2 * N];  /* union-find over a rank's links: peer receives, N + peer sends */
    uint32_t stream[N][2 * N]; /* stream of a group's head */
} draw_t;

/* splitmix64 */
static uint32_t draw_below(draw_t *d, uint32_t n)
{
    uint64_t z = d->random += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t) ((z ^ (z >> 31)) >> 16) % n;
}

static void shuffle(draw_t *d, uint32_t *list, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = draw_below(d, i);
        uint32_t swap = list[i - 1];

        list[i - 1] = list[k];
        list[k] = swap;
    }
}

static uint32_t new_step(draw_t *d, uint32_t rank, uint32_t chunk, uint32_t flags)
{
    step_t *s;

    if (d->n_steps == MOST_STEPS) {
        d->failed = 1;
        return 0;
    }
    s = &d->steps[d->n_steps];
    memset(s, 0, sizeof(*s));
    s->rank = rank;
    s->chunk = chunk;
    s->flags = flags;
    s->after = NONE;
    return d->n_steps++;
}

/* A step names each of its links once. */
static int can_join(const draw_t *d, uint32_t from, uint32_t to)
{
    const step_t *a = &d->steps[from], *b = &d->steps[to];

    for (uint32_t i = 0; i < a->n_send; i++) {
        if (d->steps[d->edges[a->send[i]].to].rank == b->rank) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < b->n_in; i++) {
        if (OWN != b->in[i] && d->steps[d->edges[b->in[i]].from].rank == a->rank) {
            return 0;
        }
    }
    return a->rank != b->rank && a->n_send < N && b->n_in <= N;
}

static void join(draw_t *d, uint32_t from, uint32_t to)
{
    if (d->n_edges == MOST_EDGES || !can_join(d, from, to)) {
        d->failed = 1;
        return;
    }
    d->edges[d->n_edges].from = from;
    d->edges[d->n_edges].to = to;
    d->edges[d->n_edges].sent = 0;
    d->steps[from].send[d->steps[from].n_send++] = d->n_edges;
    d->steps[to].in[d->steps[to].n_in++] = d->n_edges;
    d->n_edges++;
}

/* Hand the result of one step to another, possibly over a rank that only passes it on. */
static void connect_steps(draw_t *d, uint32_t from, uint32_t to)
{
    uint32_t relay = draw_below(d, d->n_ranks);

    if (draw_below(d, 100) < d->relay_percent && relay != d->steps[from].rank
        && relay != d->steps[to].rank) {
        uint32_t middle = new_step(d, relay, d->steps[from].chunk, 0);

        if (can_join(d, from, middle) && can_join(d, middle, to)) {
            join(d, from, middle);
            join(d, middle, to);
            return;
        }
        d->n_steps--; /* unused */
    }
    join(d, from, to);
}

/*
 * A random tree over ranks[0 .. n-1], ranks[0] its root: each step sums its own and its children's values
 * in random order. up[rank] becomes the rank's step; the root's has flags and no send yet.
 */
static void draw_up_tree(draw_t *d, uint32_t chunk, const uint32_t *ranks, uint32_t n,
                         uint32_t flags, uint32_t *up)
{
    uint32_t parent[N] = {0};

    for (uint32_t i = 0; i < n; i++) {
        parent[i] = i > 0 ? draw_below(d, i) : 0;
        up[ranks[i]] = new_step(d, ranks[i], chunk, 0 == i ? flags : 0);
    }
    /* Operands are appended in the order of joining. */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t operands[N], count = 0;
        step_t *s = &d->steps[up[ranks[i]]];

        operands[count++] = i;
        for (uint32_t k = i + 1; k < n; k++) {
            if (parent[k] == i) {
                operands[count++] = k;
            }
        }
        shuffle(d, operands, count);
        for (uint32_t k = 0; k < count; k++) {
            if (operands[k] == i) {
                s->in[s->n_in++] = OWN;
            } else {
                connect_steps(d, up[ranks[operands[k]]], up[ranks[i]]);
            }
        }
    }
}

/* Spread the result from the n_have ranks at the front of ranks, whose steps hold it, to the rest. */
static void draw_down_forest(draw_t *d, uint32_t chunk, uint32_t *ranks, uint32_t n_have,
                             uint32_t *holds)
{
    shuffle(d, ranks + n_have, d->n_ranks - n_have);
    for (uint32_t i = n_have; i < d->n_ranks; i++) {
        uint32_t source = holds[ranks[draw_below(d, i)]];

        holds[ranks[i]] = new_step(d, ranks[i], chunk, GP_STEP_OUTPUT);
        connect_steps(d, source, holds[ranks[i]]);
    }
}

/* Core ranks get every partial sum and add them up themselves, all in the same order. */
static void draw_core_chunk(draw_t *d, uint32_t chunk, uint32_t *ranks, uint32_t n_core)
{
    uint32_t up[N], sum[N], partials[N], n_partials = 0;
    uint32_t at = n_core;

    for (uint32_t i = 0; i < n_core; i++) {
        uint32_t own = new_step(d, ranks[i], chunk, 0);

        d->steps[own].in[d->steps[own].n_in++] = OWN;
        sum[ranks[i]] = new_step(d, ranks[i], chunk, GP_STEP_OUTPUT);
        d->steps[sum[ranks[i]]].after = own; /* in place: read and sent before it is overwritten */
        partials[n_partials++] = own;
    }
    while (at < d->n_ranks) {
        uint32_t n = 1 + draw_below(d, d->n_ranks - at);

        draw_up_tree(d, chunk, ranks + at, n, 0, up);
        partials[n_partials++] = up[ranks[at]];
        at += n;
    }
    shuffle(d, partials, n_partials);
    for (uint32_t i = 0; i < n_core; i++) {
        step_t *s = &d->steps[sum[ranks[i]]];

        for (uint32_t k = 0; k < n_partials; k++) {
            if (d->steps[partials[k]].rank == ranks[i]) {
                s->in[s->n_in++] = OWN;
            } else {
                connect_steps(d, partials[k], sum[ranks[i]]);
            }
        }
    }
    draw_down_forest(d, chunk, ranks, n_core, sum);
}

static void draw_chunk(draw_t *d, uint32_t chunk)
{
    uint32_t ranks[N], up[N];

    for (uint32_t r = 0; r < d->n_ranks; r++) {
        ranks[r] = r;
    }
    shuffle(d, ranks, d->n_ranks);
    if (d->n_ranks >= 2 && 0 == draw_below(d, 3)) {
        draw_core_chunk(d, chunk, ranks, 2 + draw_below(d, d->n_ranks - 1));
    } else {
        draw_up_tree(d, chunk, ranks, d->n_ranks, GP_STEP_OUTPUT, up);
        draw_down_forest(d, chunk, ranks, 1, up);
    }
}

/* Has the step its data, first in line on their connections, and a credit for each send? */
static int can_run(const draw_t *d, const step_t *s)
{
    if (s->done || (NONE != s->after && !d->steps[s->after].done)) {
        return 0;
    }
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (OWN != s->in[i]) {
            uint32_t from = d->steps[d->edges[s->in[i]].from].rank;

            if (!d->edges[s->in[i]].sent
                || d->queue[from][s->rank][d->queue_first[from][s->rank]] != s->in[i]) {
                return 0;
            }
        }
    }
    for (uint32_t i = 0; i < s->n_send; i++) {
        uint32_t to = d->steps[d->edges[s->send[i]].to].rank;

        if (d->queue_end[s->rank][to] - d->queue_first[s->rank][to] >= d->n_slots) {
            return 0;
        }
    }
    return 1;
}

static int schedule(draw_t *d)
{
    for (uint32_t n = 0; n < d->n_steps; n++) {
        uint32_t candidates[MOST_STEPS], count = 0, pick;
        step_t *s;

        for (uint32_t i = 0; i < d->n_steps; i++) {
            if (can_run(d, &d->steps[i])) {
                candidates[count++] = i; /* oldest chunk first */
            }
        }
        if (0 == count) {
            return 0;
        }
        pick = 0;
        if (draw_below(d, 100) < d->jump_percent) {
            pick = draw_below(d, count);
        }
        s = &d->steps[candidates[pick]];
        d->order[n] = candidates[pick];
        s->done = 1;
        for (uint32_t i = 0; i < s->n_in; i++) {
            if (OWN != s->in[i]) {
                d->queue_first[d->steps[d->edges[s->in[i]].from].rank][s->rank]++;
            }
        }
        for (uint32_t i = 0; i < s->n_send; i++) {
            uint32_t to = d->steps[d->edges[s->send[i]].to].rank;

            d->queue[s->rank][to][d->queue_end[s->rank][to]++] = s->send[i];
            d->edges[s->send[i]].sent = 1;
        }
    }
    return 1;
}

static uint32_t find_group(draw_t *d, uint32_t rank, uint32_t link)
{
    while (d->group[rank][link] != link) {
        link = d->group[rank][link];
    }
    return link;
}

/* All links of a step, named by one: that of its first received input or first send. */
static uint32_t any_link(const draw_t *d, const step_t *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (OWN != s->in[i]) {
            return d->steps[d->edges[s->in[i]].from].rank;
        }
    }
    return N + d->steps[d->edges[s->send[0]].to].rank;
}

/* Group the links of each rank that must share a stream, then deal the groups to streams. */
static void deal_streams(draw_t *d)
{
    uint32_t n_streams = 1 + draw_below(d, MOST_STREAMS);

    for (uint32_t r = 0; r < N; r++) {
        for (uint32_t i = 0; i < 2 * N; i++) {
            d->group[r][i] = i;
            d->stream[r][i] = draw_below(d, n_streams);
        }
    }
    for (uint32_t i = 0; i < d->n_steps; i++) {
        const step_t *s = &d->steps[i];
        uint32_t head = find_group(d, s->rank, any_link(d, s));

        for (uint32_t k = 0; k < s->n_in; k++) {
            if (OWN != s->in[k]) {
                uint32_t link = d->steps[d->edges[s->in[k]].from].rank;
                d->group[s->rank][find_group(d, s->rank, link)] = head;
            }
        }
        for (uint32_t k = 0; k < s->n_send; k++) {
            uint32_t link = N + d->steps[d->edges[s->send[k]].to].rank;
            d->group[s->rank][find_group(d, s->rank, link)] = head;
        }
        if (NONE != s->after) {
            uint32_t link = any_link(d, &d->steps[s->after]);
            d->group[s->rank][find_group(d, s->rank, link)] = head;
        }
    }
}

/* The links of a rank that are used: position by peer in recv or send, NONE where unused. */
static void number_links(const draw_t *d, uint32_t rank, uint32_t *recv, uint32_t *n_recv,
                         uint32_t *send, uint32_t *n_send)
{
    *n_recv = 0;
    *n_send = 0;
    for (uint32_t peer = 0; peer < N; peer++) {
        recv[peer] = NONE;
        send[peer] = NONE;
    }
    for (uint32_t i = 0; i < d->n_edges; i++) {
        uint32_t from = d->steps[d->edges[i].from].rank, to = d->steps[d->edges[i].to].rank;

        if (to == rank && NONE == recv[from]) {
            recv[from] = (*n_recv)++;
        }
        if (from == rank && NONE == send[to]) {
            send[to] = (*n_send)++;
        }
    }
}

static void emit_one_step(const draw_t *d, gp_emit_t *e, const step_t *s, const uint32_t *recv,
                          const uint32_t *send)
{
    gp_emit_step(e, s->chunk, s->flags);
    for (uint32_t k = 0; k < s->n_in; k++) {
        if (OWN == s->in[k]) {
            gp_emit_input_own(e);
        } else {
            gp_emit_input(e, recv[d->steps[d->edges[s->in[k]].from].rank]);
        }
    }
    for (uint32_t k = 0; k < s->n_send; k++) {
        gp_emit_send(e, send[d->steps[d->edges[s->send[k]].to].rank]);
    }
}

static gp_status_t emit_rank(draw_t *d, uint32_t rank, gp_program_t **program_p)
{
    uint32_t count[MOST_STREAMS] = {0}, recv[N], send[N], n_recv, n_send;
    uint32_t n_streams = 0, n_steps = 0, n_refs = 0;
    gp_emit_t e;
    gp_status_t status;

    for (uint32_t i = 0; i < d->n_steps; i++) {
        const step_t *s = &d->steps[i];

        if (s->rank == rank) {
            uint32_t stream = d->stream[rank][find_group(d, rank, any_link(d, s))];

            n_streams += 0 == count[stream]++;
            n_steps++;
            n_refs += s->n_in + s->n_send;
        }
    }
    number_links(d, rank, recv, &n_recv, send, &n_send);
    status = gp_emit_begin(&e, n_streams, n_steps, n_refs, n_recv, n_send);
    if (GP_OK != status) {
        return status;
    }
    e.program->n_chunks = d->n_chunks;
    for (uint32_t peer = 0; peer < N; peer++) {
        if (NONE != recv[peer]) {
            e.program->recv[recv[peer]].peer = peer;
        }
        if (NONE != send[peer]) {
            e.program->send[send[peer]].peer = peer;
        }
    }
    for (uint32_t t = 0; t < MOST_STREAMS; t++) {
        if (0 == count[t]) {
            continue;
        }
        gp_emit_stream(&e);
        for (uint32_t i = 0; i < d->n_steps; i++) {
            const step_t *s = &d->steps[d->order[i]];

            if (s->rank == rank && t == d->stream[rank][find_group(d, rank, any_link(d, s))]) {
                emit_one_step(d, &e, s, recv, send);
            }
        }
    }
    return gp_emit_end(&e, program_p);
}

static int draw_all(draw_t *d, uint64_t seed, uint32_t n_ranks, uint32_t n_slots, uint32_t attempt)
{
    memset(d, 0, sizeof(*d));
    d->random = seed * 0x9e3779b97f4a7c15ull + ((uint64_t) n_ranks << 40)
                + ((uint64_t) n_slots << 48) + attempt;
    d->n_ranks = n_ranks;
    d->n_slots = n_slots;
    d->n_chunks = 1 + draw_below(d, MOST_CHUNKS);
    if (attempt < PLAIN_ATTEMPT) {
        d->relay_percent = draw_below(d, 40) * (PLAIN_ATTEMPT - attempt) / PLAIN_ATTEMPT;
        d->jump_percent = draw_below(d, 101) * (PLAIN_ATTEMPT - attempt) / PLAIN_ATTEMPT;
    }
    for (uint32_t c = 0; c < d->n_chunks; c++) {
        draw_chunk(d, c);
    }
    return !d->failed && schedule(d);
}

/* One rank: no links, so no streams to deal; a copy per chunk, in random order. */
static gp_status_t emit_alone(draw_t *d, gp_program_t **program_p)
{
    uint32_t chunks[MOST_CHUNKS];
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, 1, d->n_chunks, d->n_chunks, 0, 0);

    if (GP_OK != status) {
        return status;
    }
    for (uint32_t c = 0; c < d->n_chunks; c++) {
        chunks[c] = c;
    }
    shuffle(d, chunks, d->n_chunks);
    e.program->n_chunks = d->n_chunks;
    gp_emit_stream(&e);
    for (uint32_t c = 0; c < d->n_chunks; c++) {
        gp_emit_step(&e, chunks[c], GP_STEP_OUTPUT);
        gp_emit_input_own(&e);
    }
    return gp_emit_end(&e, program_p);
}

gp_status_t gp_random_programs(uint64_t seed, uint32_t n_ranks, uint32_t n_slots,
                               gp_program_t **programs)
{
    gp_status_t status = GP_ERR_INVALID;
    uint32_t attempt = 0, emitted = 0;
    char reason[200] = "no draw could be scheduled";
    draw_t *d;

    if (0 == n_ranks || n_ranks > N || 0 == n_slots || n_slots > GP_MAX_SLOTS) {
        return GP_ERR_INVALID;
    }
    d = malloc(sizeof(*d));
    if (NULL == d) {
        return GP_ERR_NO_MEMORY;
    }
    while (attempt < ATTEMPTS && !draw_all(d, seed, n_ranks, n_slots, attempt)) {
        attempt++;
    }
    if (attempt < ATTEMPTS) {
        if (n_ranks > 1) {
            deal_streams(d);
        }
        for (status = GP_OK; GP_OK == status && emitted < n_ranks; emitted++) {
            status = 1 == n_ranks ? emit_alone(d, &programs[0])
                                  : emit_rank(d, emitted, &programs[emitted]);
            if (GP_OK != status) {
                break;
            }
            programs[emitted]->algorithm = GP_ALGO_CUSTOM;
            programs[emitted]->rank = emitted;
            programs[emitted]->n_ranks = n_ranks;
            programs[emitted]->channel = 0;
        }
    }
    free(d);
    if (GP_OK == status) {
        status = gp_verify((const gp_program_t *const *) programs, n_ranks, n_slots, 3, reason,
                           sizeof(reason));
    }
    if (GP_OK != status) {
        fprintf(stderr, "gp_random_programs: seed %llu, %u ranks, %u slots: %s\n",
                (unsigned long long) seed, n_ranks, n_slots, reason);
        while (emitted > 0) {
            gp_program_free(programs[--emitted]);
        }
    }
    return status;
}
