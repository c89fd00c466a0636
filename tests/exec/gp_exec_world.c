/*
 * gp_exec_world.c - N ranks of the host executor in one process, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/exec/gp_exec_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planner/gp_plan.h"
#include "tests/exec/gp_fake_net.h"

#define GATHER_BYTES 512
#define GUARD_BYTES 64
#define GUARD 0xa5

typedef struct gather {
    pthread_barrier_t barrier;
    unsigned char data[WORLD_MAX_RANKS][GATHER_BYTES];
} gather_t;

typedef struct member {
    world_t *w;
    uint32_t rank;
} member_t;

static gp_status_t host_create(uint32_t protocol, const gp_program_t *const *programs,
                               gp_connset_t *set, void **exec_p)
{
    gp_host_exec_t *exec = NULL;
    gp_status_t status = gp_host_exec_create(programs, set, &exec);

    (void) protocol;
    *exec_p = exec;
    return status;
}

static void host_destroy(void *exec)
{
    gp_host_exec_destroy(exec);
}

static gp_status_t host_start(void *exec, const gp_work_t *work)
{
    return gp_host_exec_start(exec, work);
}

static gp_status_t host_progress(void *exec, int *moved)
{
    return gp_host_exec_progress(exec, moved);
}

static void host_record(const void *exec, gp_exec_record_t *record)
{
    gp_host_exec_record(exec, record);
}

const world_ops_t world_host_ops = {0,          gp_shm_arena,  host_create, host_destroy,
                                    host_start, host_progress, host_record};

const char *world_name(const world_case_t *c)
{
    static char text[160];

    snprintf(text, sizeof(text),
             "%s/%s%s ranks %u (%u a node) channels %u slots %u x %llu first step %llu",
             gp_algorithm_name(c->algorithm), gp_protocol_name(c->protocol),
             c->gated ? " gated" : "", c->n_ranks, 0 == c->per_node ? c->n_ranks : c->per_node,
             c->channels, c->n_slots, (unsigned long long) c->slot_bytes,
             (unsigned long long) c->first_step);
    return text;
}

uint64_t world_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static gp_status_t allgather(void *ctx, const void *send, void *recv, size_t bytes)
{
    member_t *m = ctx;
    gather_t *g = m->w->boot;

    if (bytes > GATHER_BYTES) {
        return GP_ERR_INVALID;
    }
    memcpy(g->data[m->rank], send, bytes);
    pthread_barrier_wait(&g->barrier);
    for (uint32_t r = 0; r < m->w->c.n_ranks; r++) {
        memcpy((unsigned char *) recv + r * bytes, g->data[r], bytes);
    }
    pthread_barrier_wait(&g->barrier);
    return GP_OK;
}

static gp_status_t links(void *ctx, uint32_t rank, uint32_t channel, gp_links_t *l)
{
    const world_t *w = ctx;
    const gp_program_t *p = w->programs[rank][channel];

    l->recv = p->recv;
    l->send = p->send;
    l->n_recv = p->n_recv;
    l->n_send = p->n_send;
    return GP_OK;
}

static void *make_rank(void *arg)
{
    member_t *m = arg;
    world_t *w = m->w;
    gp_connset_desc_t desc = {0};
    gp_boot_t boot = {m, m->rank, w->c.n_ranks, allgather};
    gp_arena_t *arena;
    gp_status_t status = w->c.ops->arena(&arena);

    desc.protocol = w->c.protocol;
    desc.channels = w->c.channels;
    desc.n_slots = w->c.n_slots;
    desc.gated = w->c.gated;
    desc.slot_bytes = w->c.slot_bytes;
    desc.first_step = w->c.first_step;
    desc.links = links;
    desc.links_ctx = w;
    if (0 != w->c.per_node) {
        desc.node_of = w->node_of;
        desc.net = fake_wire_net(w->wire, m->rank);
        desc.eps = fake_wire_eps(w->wire);
        desc.hello_seconds = 20;
    }
    if (GP_OK == status) {
        status = gp_connset_create(&desc, arena, &boot, &w->sets[m->rank]);
    }
    if (GP_OK == status) {
        status = w->c.ops->create(w->c.protocol,
                                  (const gp_program_t *const *) w->programs[m->rank],
                                  w->sets[m->rank], &w->execs[m->rank]);
    }
    w->status[m->rank] = status;
    return NULL;
}

world_t *world_create(const world_case_t *c, gp_program_t **custom)
{
    world_t *w = calloc(1, sizeof(*w));
    pthread_t threads[WORLD_MAX_RANKS];
    member_t members[WORLD_MAX_RANKS];
    gather_t *g = calloc(1, sizeof(*g));
    gp_status_t status = GP_OK;

    if (NULL == w || NULL == g) {
        free(w);
        free(g);
        return NULL;
    }
    w->c = *c;
    w->boot = g;
    if (0 != c->per_node) {
        w->wire = fake_wire_create(c->n_ranks, 1 + c->first_step);
        for (uint32_t r = 0; r < c->n_ranks; r++) {
            w->node_of[r] = r / c->per_node;
        }
    }
    for (uint32_t r = 0; r < c->n_ranks; r++) {
        for (uint32_t ch = 0; ch < c->channels && GP_OK == status; ch++) {
            if (NULL != custom) {
                w->programs[r][ch] = custom[r];
            } else {
                status = gp_program_emit(c->algorithm, c->n_ranks, r, ch, c->channels,
                                         &w->programs[r][ch]);
            }
        }
    }
    pthread_barrier_init(&g->barrier, NULL, c->n_ranks);
    for (uint32_t r = 0; r < c->n_ranks && GP_OK == status; r++) {
        members[r].w = w;
        members[r].rank = r;
        if (0 != pthread_create(&threads[r], NULL, make_rank, &members[r])) {
            abort();
        }
    }
    for (uint32_t r = 0; r < c->n_ranks && GP_OK == status; r++) {
        pthread_join(threads[r], NULL);
    }
    for (uint32_t r = 0; r < c->n_ranks && GP_OK == status; r++) {
        status = w->status[r];
    }
    pthread_barrier_destroy(&g->barrier);
    if (GP_OK != status) {
        world_destroy(w);
        return NULL;
    }
    return w;
}

void world_destroy(world_t *w)
{
    for (uint32_t r = 0; r < w->c.n_ranks; r++) {
        if (NULL != w->execs[r]) {
            w->c.ops->destroy(w->execs[r]);
        }
        gp_connset_destroy(w->sets[r], 0);
        for (uint32_t ch = 0; ch < w->c.channels; ch++) {
            gp_program_free(w->programs[r][ch]);
        }
    }
    fake_wire_destroy(w->wire);
    free(w->boot);
    free(w);
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

gp_geom_t world_geom(const world_t *w, uint64_t count, uint32_t elem_bytes)
{
    uint64_t unit = 16 / elem_bytes;
    uint64_t slot = gp_data_bytes(w->c.protocol, w->c.slot_bytes) / elem_bytes;
    uint64_t left;
    gp_geom_t g;

    memset(&g, 0, sizeof(g));
    g.count = count;
    g.elem_bytes = elem_bytes;
    g.channels = w->c.channels;
    g.n_chunks = w->programs[0][0]->n_chunks;
    g.channel_elems = ceil_div(ceil_div(count, g.channels), unit) * unit;
    g.chunk_elems = ceil_div(ceil_div(g.channel_elems, g.n_chunks), unit) * unit;
    g.chunk_elems = g.chunk_elems < slot ? g.chunk_elems : slot;
    g.loops = ceil_div(g.channel_elems, g.chunk_elems * g.n_chunks);
    left = g.channel_elems - (g.loops - 1) * g.chunk_elems * g.n_chunks;
    g.last_chunk_elems = ceil_div(ceil_div(left, g.n_chunks), unit) * unit;
    return g;
}

gp_status_t world_run(world_t *w, const gp_geom_t *geom, gp_red_t red, void *const *sends,
                      void *const *recvs, uint64_t seed)
{
    uint32_t n = w->c.n_ranks;
    int started[WORLD_MAX_RANKS] = {0};
    int done[WORLD_MAX_RANKS] = {0};
    uint32_t n_done = 0;
    uint32_t quiet = 0;

    for (uint32_t turn = 0; n_done < n; turn++) {
        uint32_t r = 0 == seed ? turn % n : (uint32_t) (world_random(&seed) % n);
        gp_status_t status = GP_OK;
        int moved = 0;

        if (done[r]) {
            continue;
        }
        if (!started[r]) {
            gp_work_t work = {sends[r], recvs[r], *geom, red, w->c.ops->threads};

            if (0 != seed && 0 != world_random(&seed) % 3) {
                continue; /* a late rank */
            }
            status = w->c.ops->start(w->execs[r], &work);
            if (GP_OK != status) {
                return status;
            }
            started[r] = 1;
        }
        if (2 != started[r]) {
            status = w->c.ops->progress(w->execs[r], &moved);
            started[r] = GP_OK == status ? 2 : 1; /* 2: all is done here, but others may be owed */
        }
        if (NULL != w->sets[r]->far && status >= GP_OK) {
            gp_status_t net = gp_net_set_progress(w->sets[r]->far, &moved);

            if (GP_OK != net) {
                status = net;
            } else if (2 == started[r]) {
                status = gp_net_set_settled(w->sets[r]->far);
            }
        }
        if (GP_OK == status) {
            done[r] = 1;
            n_done++;
            moved = 1;
        } else if (GP_AGAIN != status) {
            return status;
        }
        quiet = moved ? 0 : quiet + 1;
        if (quiet > 1000 * n && 0 == w->c.ops->threads) {
            return GP_AGAIN; /* a GPU's own time is bounded by the test's alarm */
        }
    }
    return GP_OK;
}

int world_buffer_make(world_buffer_t *b, size_t bytes, size_t misalign, int at_end)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    size_t room = (bytes + misalign + 2 * GUARD_BYTES + page - 1) / page * page;

    b->map_bytes = room + page;
    b->bytes = bytes;
    b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == b->map || 0 != mprotect(b->map + room, page, PROT_NONE)) {
        return 0;
    }
    memset(b->map, GUARD, room);
    b->data = at_end ? b->map + room - bytes : b->map + GUARD_BYTES + misalign;
    return 1;
}

int world_buffer_intact(const world_buffer_t *b)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    const unsigned char *end = b->map + b->map_bytes - page;

    for (const unsigned char *p = b->map; p < end; p++) {
        if ((p < b->data || p >= b->data + b->bytes) && GUARD != *p) {
            return 0;
        }
    }
    return 1;
}

void world_buffer_free(world_buffer_t *b)
{
    munmap(b->map, b->map_bytes);
}
