/*
 * gp_gate.c - see gp_gate.h.
 *
 * Shared memory, made by rank 0; every counter on a line of its own:
 *
 *   +0    u64 arrived       ranks that arrived in all calls together; each rank adds 1 a call
 *   +128  u64 opened        number of the last call that may start; by the rank that arrived last
 *   +256  u64 at[n_ranks]   number of the last call that the rank arrived at (128 bytes apart)
 *
 * Nobody arrives at a call before the one before was opened, so whoever brings `arrived` to a multiple of
 * n_ranks is the last of that call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "transport/gp_gate.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device/proto/gp_log.h"

#define OPENED_AT 128u
#define RANKS_AT 256u

struct gp_gate {
    gp_arena_t *shm;
    gp_mem_t mem;            /* rank 0: the memory */
    gp_handle_t handle;      /* of the memory, where it is mapped */
    int mapped;
    uint32_t rank;
    uint32_t n_ranks;
    uint64_t *arrived;
    uint64_t *opened;
    unsigned char *at;
    uint64_t call;           /* of this rank, from 1 */
    int last;                /* this rank arrived last: it gets the tokens and opens */
    uint32_t n_keys;
    uint32_t n_held;         /* tokens held: of keys[0 .. n_held - 1] */
    uint64_t keys[GP_GATE_MOST_KEYS]; /* ascending: all communicators ask in the same order */
    int sockets[GP_GATE_MOST_KEYS];
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

static uint64_t *at_of(const gp_gate_t *g, uint32_t rank)
{
    return (uint64_t *) (g->at + (size_t) rank * GP_LINE_BYTES);
}

/* All ranks learn whether all are well. */
static gp_status_t all_well(const gp_boot_t *boot, gp_status_t mine)
{
    int32_t value = mine, *all = calloc(boot->n_ranks, sizeof(*all));
    gp_status_t status = GP_ERR_NO_MEMORY;

    if (NULL != all) {
        status = boot->allgather(boot->ctx, &value, all, sizeof(value));
        for (uint32_t i = 0; GP_OK == status && i < boot->n_ranks; i++) {
            status = GP_OK == all[i] ? GP_OK : GP_ERR_PEER;
        }
    }
    free(all);
    return GP_OK != mine ? mine : status;
}

/* Rank 0's handle for everybody; then everybody maps it. */
static gp_status_t share(gp_gate_t *g, const gp_boot_t *boot, gp_status_t mine)
{
    struct {
        gp_handle_t handle;
        uint64_t offset;
        int32_t status;
        int32_t reserved;
    } record, *all = calloc(boot->n_ranks, sizeof(*all));
    gp_status_t status = GP_ERR_NO_MEMORY;
    void *base = NULL;

    memset(&record, 0, sizeof(record));
    record.status = mine;
    record.offset = g->mem.offset;
    record.handle = g->handle;
    if (NULL == all) {
        return GP_ERR_NO_MEMORY; /* the others wait in the exchange, which is bounded */
    }
    status = boot->allgather(boot->ctx, &record, all, sizeof(record));
    for (uint32_t i = 0; GP_OK == status && i < boot->n_ranks; i++) {
        status = GP_OK == all[i].status ? GP_OK : GP_ERR_PEER;
    }
    if (GP_OK == status) {
        g->handle = all[0].handle;
        status = g->shm->map(g->shm, &g->handle, &base);
        g->mapped = GP_OK == status;
    }
    if (g->mapped) {
        unsigned char *p = (unsigned char *) base + all[0].offset;

        g->arrived = (uint64_t *) p;
        g->opened = (uint64_t *) (p + OPENED_AT);
        g->at = p + RANKS_AT;
    }
    free(all);
    return status;
}

gp_status_t gp_gate_create(gp_arena_t *shm, const gp_boot_t *boot, const uint64_t *keys,
                           uint32_t n_keys, gp_gate_t **gate_p)
{
    gp_gate_t *g = calloc(1, sizeof(*g));
    gp_status_t status = GP_OK;

    if (NULL == g || NULL == shm || n_keys > GP_GATE_MOST_KEYS) {
        gp_log(GP_LOG_ERROR, "gate: no memory, or more than %u GPUs", GP_GATE_MOST_KEYS);
        status = GP_ERR_NO_MEMORY;
    }
    status = all_well(boot, status);
    if (GP_OK != status) {
        free(g);
        return status;
    }
    g->shm = shm;
    g->rank = boot->rank;
    g->n_ranks = boot->n_ranks;
    g->n_keys = n_keys;
    memcpy(g->keys, keys, n_keys * sizeof(*keys));
    qsort(g->keys, n_keys, sizeof(*g->keys), by_value);
    if (0 == g->rank) {
        status = shm->alloc(shm, RANKS_AT + (uint64_t) g->n_ranks * GP_LINE_BYTES, &g->mem);
        if (GP_OK == status) {
            status = shm->export_mem(shm, &g->mem, &g->handle);
        }
    }
    status = share(g, boot, status);
    status = all_well(boot, status);
    if (0 == g->rank && NULL != g->mem.ptr && NULL != shm->attached) {
        shm->attached(shm, &g->mem);
    }
    if (GP_OK != status) {
        gp_gate_destroy(g);
        return status;
    }
    *gate_p = g;
    return GP_OK;
}

static void give_back(gp_gate_t *g)
{
    while (g->n_held > 0) {
        close(g->sockets[--g->n_held]);
    }
}

void gp_gate_destroy(gp_gate_t *gate)
{
    if (NULL == gate) {
        return;
    }
    give_back(gate);
    if (gate->mapped) {
        gate->shm->unmap(gate->shm, &gate->handle);
    }
    if (NULL != gate->mem.ptr) {
        gate->shm->free(gate->shm, &gate->mem);
    }
    free(gate);
}

void gp_gate_arrive(gp_gate_t *gate)
{
    gate->call++;
    gp_store_relaxed_u64(at_of(gate, gate->rank), gate->call);
    /* Acquire-release among all ranks: acquired by the last one before it opens. */
    gate->last = gp_add_fetch_acq_rel_u64(gate->arrived, 1) == gate->call * gate->n_ranks;
}

/* The next token. GP_AGAIN: somebody has it. */
static gp_status_t take(gp_gate_t *g)
{
    struct sockaddr_un name;
    int n, s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (s < 0) {
        gp_log(GP_LOG_ERROR, "gate: socket: %s", strerror(errno));
        return GP_ERR_SYSTEM;
    }
    memset(&name, 0, sizeof(name));
    name.sun_family = AF_UNIX;
    /* The first byte of the path is 0: a name without a file. */
    n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "gpuproto-gate-%016" PRIx64,
                 g->keys[g->n_held]);
    if (0 != bind(s, (struct sockaddr *) &name,
                  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n))) {
        int error = errno;

        close(s);
        if (EADDRINUSE == error) {
            return GP_AGAIN;
        }
        gp_log(GP_LOG_ERROR, "gate: bind: %s", strerror(error));
        return GP_ERR_SYSTEM;
    }
    g->sockets[g->n_held++] = s;
    return GP_OK;
}

gp_status_t gp_gate_try(gp_gate_t *gate)
{
    if (!gate->last) {
        /* Acquires the last rank's release below. */
        return gp_load_acquire_u64(gate->opened) >= gate->call ? GP_OK : GP_AGAIN;
    }
    while (gate->n_held < gate->n_keys) {
        gp_status_t status = take(gate);

        if (GP_OK != status) {
            return status;
        }
    }
    if (gp_load_relaxed_u64(gate->opened) != gate->call) {
        gp_store_release_u64(gate->opened, gate->call);
    }
    return GP_OK;
}

void gp_gate_leave(gp_gate_t *gate)
{
    give_back(gate);
}

uint32_t gp_gate_missing(const gp_gate_t *gate)
{
    for (uint32_t i = 0; i < gate->n_ranks; i++) {
        if (gp_load_relaxed_u64(at_of(gate, i)) < gate->call) {
            return i;
        }
    }
    return gate->n_ranks;
}
