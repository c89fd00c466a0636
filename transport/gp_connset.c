/*
 * gp_connset.c - all connections of one algorithm and protocol, made collectively.
 *
 * Owns the layout of a rank's piece of arena memory and the two exchanges that make it usable:
 *
 *   allgather 1   where my piece is (handle, offset) and whether I have it
 *   map the peers' extents, fill in both ends' pointers
 *   allgather 2   whether that worked; after it nobody's names are needed any more
 *
 * The piece, in order: for each channel the receive blocks in link order, then the send blocks. Any
 * rank computes any other rank's offsets from that rank's links. Behind them mirrors for links over a net
 * (gp_net.h): a receive block for each such send link, a send block for each such receive link, which
 * nobody else maps. Links over a net have ids in the order channel, receive links, send links.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "transport/gp_net.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/proto/gp_log.h"

typedef struct record {
    gp_handle_t handle;
    uint64_t offset;
    uint64_t first_id;     /* of our links over the net */
    int32_t status;
    int32_t reserved;
} record_t;

typedef struct impl {
    gp_arena_t *arena;
    gp_mem_t mem;
    uint32_t n_ranks;
    record_t *records;     /* [n_ranks] */
    unsigned char *mapped; /* [n_ranks] 1: a mapping is held */
    uint64_t mirrors_at;   /* in our piece, bytes */
    uint32_t n_far;        /* links over the net */
} impl_t;

static uint64_t recv_block(const gp_connset_desc_t *d)
{
    return gp_fifo_recv_block_bytes(d->n_slots, d->slot_bytes);
}

/* Bytes of `rank`'s blocks on one channel, given its links. */
static uint64_t channel_bytes(const gp_connset_desc_t *d, const gp_links_t *l)
{
    return l->n_recv * recv_block(d) + (uint64_t) l->n_send * GP_FIFO_SEND_BLOCK_BYTES;
}

static int is_far(const gp_connset_desc_t *d, uint32_t a, uint32_t b)
{
    return NULL != d->node_of && d->node_of[a] != d->node_of[b];
}

static int link_index(const gp_link_t *links, uint32_t n, uint32_t peer, uint32_t *index)
{
    for (uint32_t i = 0; i < n; i++) {
        if (links[i].peer == peer) {
            *index = i;
            return 1;
        }
    }
    return 0;
}

static void set_free(gp_connset_t *set)
{
    impl_t *impl = set->impl;

    if (NULL != set->recv) {
        for (uint32_t c = 0; c < set->desc.channels; c++) {
            free(set->recv[c]);
        }
    }
    if (NULL != set->send) {
        for (uint32_t c = 0; c < set->desc.channels; c++) {
            free(set->send[c]);
        }
    }
    free(set->recv);
    free(set->send);
    free(set->n_recv);
    free(set->n_send);
    if (NULL != impl) {
        free(impl->records);
        free(impl->mapped);
    }
    free(impl);
    free(set);
}

static gp_connset_t *set_alloc(const gp_connset_desc_t *desc, gp_arena_t *arena, uint32_t n_ranks)
{
    gp_connset_t *set = calloc(1, sizeof(*set));
    impl_t *impl = calloc(1, sizeof(*impl));

    if (NULL == set || NULL == impl) {
        free(set);
        free(impl);
        return NULL;
    }
    set->desc = *desc;
    set->impl = impl;
    set->recv = calloc(desc->channels, sizeof(*set->recv));
    set->send = calloc(desc->channels, sizeof(*set->send));
    set->n_recv = calloc(desc->channels, sizeof(*set->n_recv));
    set->n_send = calloc(desc->channels, sizeof(*set->n_send));
    impl->arena = arena;
    impl->n_ranks = n_ranks;
    impl->records = calloc(n_ranks, sizeof(*impl->records));
    impl->mapped = calloc(n_ranks, 1);
    if (NULL == set->recv || NULL == set->send || NULL == set->n_recv || NULL == set->n_send
        || NULL == impl->records || NULL == impl->mapped) {
        set_free(set);
        return NULL;
    }
    return set;
}

static void init_conn(gp_conn_t *conn, const gp_connset_desc_t *d, const gp_arena_t *arena,
                      uint32_t peer)
{
    conn->step = d->first_step;
    conn->seen = d->first_step;
    conn->zeroed = d->first_step;
    conn->slot_bytes = d->slot_bytes;
    conn->n_slots = d->n_slots;
    conn->gated = GP_PROTO_LL128 == d->protocol && d->gated;
    conn->peer = peer;
    conn->path = arena->path;
}

/* Links over the net: gated, and mirrors are counted. */
static void init_far(const gp_connset_desc_t *d, uint32_t rank, gp_conn_t *conns, uint32_t n,
                     uint64_t mirror_bytes, uint64_t *bytes, uint32_t *n_far)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_far(d, rank, conns[i].peer)) {
            conns[i].gated = 1;
            conns[i].path = GP_PATH_NET;
            *bytes += mirror_bytes;
            ++*n_far;
        }
    }
}

static void point_at_recv_block(gp_conn_t *conn, unsigned char *block)
{
    conn->tail = (uint64_t *) (block + GP_FIFO_TAIL_OFFSET);
    conn->sizes = (uint64_t *) (block + GP_FIFO_SIZES_OFFSET);
    conn->slots = block + GP_FIFO_SLOTS_OFFSET;
}

/* Our own piece: allocate it, point our receive ends and heads into it, start the counters. */
static gp_status_t build_own(gp_connset_t *set, uint32_t rank)
{
    const gp_connset_desc_t *d = &set->desc;
    impl_t *impl = set->impl;
    gp_arena_t *arena = impl->arena;
    uint64_t bytes = 0, mirrors = 0;
    unsigned char *at;
    gp_links_t l;
    gp_status_t status;

    impl->n_far = 0;
    for (uint32_t c = 0; c < d->channels; c++) {
        status = d->links(d->links_ctx, rank, c, &l);
        if (GP_OK != status) {
            return status;
        }
        set->n_recv[c] = l.n_recv;
        set->n_send[c] = l.n_send;
        set->recv[c] = calloc(l.n_recv + 1, sizeof(gp_conn_t));
        set->send[c] = calloc(l.n_send + 1, sizeof(gp_conn_t));
        if (NULL == set->recv[c] || NULL == set->send[c]) {
            return GP_ERR_NO_MEMORY;
        }
        for (uint32_t i = 0; i < l.n_recv; i++) {
            init_conn(&set->recv[c][i], d, arena, l.recv[i].peer);
        }
        for (uint32_t i = 0; i < l.n_send; i++) {
            init_conn(&set->send[c][i], d, arena, l.send[i].peer);
        }
        bytes += channel_bytes(d, &l);
        init_far(d, rank, set->recv[c], l.n_recv, GP_FIFO_SEND_BLOCK_BYTES, &mirrors,
                 &impl->n_far);
        init_far(d, rank, set->send[c], l.n_send, recv_block(d), &mirrors, &impl->n_far);
    }
    impl->mirrors_at = bytes;
    bytes += mirrors;
    set->fifo_bytes = bytes;
    status = arena->alloc(arena, bytes > 0 ? bytes : 1, &impl->mem);
    if (GP_OK != status) {
        return status;
    }
    at = impl->mem.ptr;
    for (uint32_t c = 0; c < d->channels; c++) {
        for (uint32_t i = 0; i < set->n_recv[c]; i++) {
            gp_conn_t *conn = &set->recv[c][i];

            point_at_recv_block(conn, at);
            if (0 != d->first_step) {
                status = arena->poke(arena, conn->tail, d->first_step);
            }
            at += recv_block(d);
            if (GP_OK != status) {
                return status;
            }
        }
        for (uint32_t i = 0; i < set->n_send[c]; i++) {
            gp_conn_t *conn = &set->send[c][i];

            conn->head = (uint64_t *) at;
            if (0 != d->first_step) {
                status = arena->poke(arena, conn->head, d->first_step);
            }
            at += GP_FIFO_SEND_BLOCK_BYTES;
            if (GP_OK != status) {
                return status;
            }
        }
    }
    return GP_OK;
}

/* The id at `peer` of the other end of our link with it on a channel: counted in its order. */
static gp_status_t far_id(const gp_connset_t *set, uint32_t rank, uint32_t peer, uint32_t channel,
                          int is_send, uint64_t *id_p)
{
    const gp_connset_desc_t *d = &set->desc;
    const impl_t *impl = set->impl;
    uint64_t id = impl->records[peer].first_id;

    for (uint32_t c = 0; c <= channel; c++) {
        gp_links_t theirs;
        gp_status_t status = d->links(d->links_ctx, peer, c, &theirs);

        if (GP_OK != status) {
            return status;
        }
        for (uint32_t k = 0; k < theirs.n_recv + theirs.n_send; k++) {
            int receives = k < theirs.n_recv;
            uint32_t to = receives ? theirs.recv[k].peer : theirs.send[k - theirs.n_recv].peer;

            if (c == channel && to == rank && receives == is_send) {
                *id_p = id;
                return GP_OK;
            }
            id += is_far(d, peer, to);
        }
    }
    gp_log(GP_LOG_ERROR, "channel %u: rank %u and rank %u do not agree on their link", channel,
           rank, peer);
    return GP_ERR_INVALID;
}

/*
 * Point the other ends of our links over the net at mirrors of our own, and hand both to the net. In the
 * order of the ids.
 */
static gp_status_t join_far(gp_connset_t *set, uint32_t rank)
{
    const gp_connset_desc_t *d = &set->desc;
    impl_t *impl = set->impl;
    unsigned char *at = (unsigned char *) impl->mem.ptr + impl->mirrors_at;

    for (uint32_t c = 0; c < d->channels; c++) {
        for (uint32_t k = 0; k < set->n_recv[c] + set->n_send[c]; k++) {
            int is_send = k >= set->n_recv[c];
            gp_conn_t *conn = is_send ? &set->send[c][k - set->n_recv[c]] : &set->recv[c][k];
            gp_status_t status;
            uint64_t id;

            if (!is_far(d, rank, conn->peer)) {
                continue;
            }
            if (is_send) {
                point_at_recv_block(conn, at);
                gp_store_relaxed_u64(conn->tail, d->first_step);
                at += recv_block(d);
            } else {
                conn->head = (uint64_t *) at;
                gp_store_relaxed_u64(conn->head, d->first_step);
                at += GP_FIFO_SEND_BLOCK_BYTES;
            }
            status = far_id(set, rank, conn->peer, c, is_send, &id);
            if (GP_OK != status) {
                return status;
            }
            gp_net_set_add(set->far, conn, is_send, d->eps[conn->peer], id);
        }
    }
    return GP_OK;
}

/* Point our ends of all links with `peer` into the peer's piece at base. */
static gp_status_t join_peer(gp_connset_t *set, uint32_t rank, uint32_t peer, unsigned char *base)
{
    const gp_connset_desc_t *d = &set->desc;
    uint64_t offset = 0;

    for (uint32_t c = 0; c < d->channels; c++) {
        gp_links_t theirs;
        uint32_t at;
        gp_status_t status = d->links(d->links_ctx, peer, c, &theirs);

        if (GP_OK != status) {
            return status;
        }
        for (uint32_t i = 0; i < set->n_send[c]; i++) {
            if (peer == set->send[c][i].peer) {
                if (!link_index(theirs.recv, theirs.n_recv, rank, &at)) {
                    gp_log(GP_LOG_ERROR, "channel %u: rank %u sends to rank %u, which does not "
                           "receive from it", c, rank, peer);
                    return GP_ERR_INVALID;
                }
                point_at_recv_block(&set->send[c][i], base + offset + at * recv_block(d));
            }
        }
        for (uint32_t i = 0; i < set->n_recv[c]; i++) {
            if (peer == set->recv[c][i].peer) {
                if (!link_index(theirs.send, theirs.n_send, rank, &at)) {
                    gp_log(GP_LOG_ERROR, "channel %u: rank %u receives from rank %u, which does "
                           "not send to it", c, rank, peer);
                    return GP_ERR_INVALID;
                }
                set->recv[c][i].head = (uint64_t *) (base + offset + theirs.n_recv * recv_block(d)
                                                     + (uint64_t) at * GP_FIFO_SEND_BLOCK_BYTES);
            }
        }
        offset += channel_bytes(d, &theirs);
    }
    return GP_OK;
}

static int is_peer(const gp_connset_t *set, uint32_t rank)
{
    for (uint32_t c = 0; c < set->desc.channels; c++) {
        for (uint32_t i = 0; i < set->n_recv[c]; i++) {
            if (rank == set->recv[c][i].peer) {
                return 1;
            }
        }
        for (uint32_t i = 0; i < set->n_send[c]; i++) {
            if (rank == set->send[c][i].peer) {
                return 1;
            }
        }
    }
    return 0;
}

static gp_status_t join_all(gp_connset_t *set, uint32_t rank)
{
    impl_t *impl = set->impl;

    for (uint32_t peer = 0; peer < impl->n_ranks; peer++) {
        void *base = NULL;
        gp_status_t status;

        if (peer == rank || !is_peer(set, peer) || is_far(&set->desc, rank, peer)) {
            continue;
        }
        status = impl->arena->map(impl->arena, &impl->records[peer].handle, &base);
        if (GP_OK != status) {
            return status;
        }
        impl->mapped[peer] = 1;
        status = join_peer(set, rank, peer,
                           (unsigned char *) base + impl->records[peer].offset);
        if (GP_OK != status) {
            return status;
        }
    }
    return GP_OK;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Every far peer has been heard of, and has heard of us: endpoints are wired up, in both directions. */
static gp_status_t meet_far(gp_connset_t *set, uint32_t rank)
{
    double end = seconds() + set->desc.hello_seconds;
    gp_status_t status = join_far(set, rank);
    int moved = 0;

    if (GP_OK == status) {
        status = gp_net_set_hello(set->far);
    }
    while (GP_OK == status
           && (!gp_net_set_ready(set->far) || GP_AGAIN == gp_net_set_settled(set->far))) {
        status = gp_net_set_progress(set->far, &moved);
        if (GP_OK == status && seconds() > end) {
            gp_log(GP_LOG_ERROR, "rank %u: no message from all ranks of other nodes within %.0f s",
                   rank, set->desc.hello_seconds);
            status = GP_ERR_PEER;
        }
        sched_yield();
    }
    return status;
}

/* One agreement: everybody's status; the worst of all. */
static gp_status_t agree(impl_t *impl, const gp_boot_t *boot, gp_status_t mine,
                         const record_t *record)
{
    record_t r = {0};
    gp_status_t status;

    if (NULL != record) {
        r = *record;
    }
    r.status = (int32_t) mine;
    status = boot->allgather(boot->ctx, &r, impl->records, sizeof(r));
    if (GP_OK != status) {
        return status;
    }
    if (GP_OK != mine) {
        return mine;
    }
    for (uint32_t i = 0; i < impl->n_ranks; i++) {
        if (GP_OK != impl->records[i].status) {
            return GP_ERR_PEER;
        }
    }
    return GP_OK;
}

gp_status_t gp_connset_create(const gp_connset_desc_t *desc, gp_arena_t *arena,
                              const gp_boot_t *boot, gp_connset_t **set_p)
{
    gp_connset_t *set;
    impl_t *impl;
    record_t mine = {0};
    gp_status_t status, all;

    if (desc->protocol >= GP_PROTO_COUNT || 0 == desc->channels || 0 == desc->n_slots
        || desc->n_slots > GP_MAX_SLOTS || 0 == desc->slot_bytes
        || 0 != desc->slot_bytes % GP_LINE_BYTES) {
        gp_log(GP_LOG_ERROR, "connection set: %u channels of %u slots of %llu bytes: not possible",
               desc->channels, desc->n_slots, (unsigned long long) desc->slot_bytes);
        return GP_ERR_INVALID; /* equal on all ranks: nobody is left waiting */
    }
    set = set_alloc(desc, arena, boot->n_ranks);
    if (NULL == set) {
        gp_log(GP_LOG_ERROR, "connection set: out of host memory");
        return GP_ERR_NO_MEMORY;
    }
    impl = set->impl;
    status = build_own(set, boot->rank);
    if (GP_OK == status) {
        status = arena->export_mem(arena, &impl->mem, &mine.handle);
        mine.offset = impl->mem.offset;
    }
    if (GP_OK == status && impl->n_far > 0) {
        status = gp_net_set_create(desc->net, desc->protocol, impl->n_far, &set->far,
                                   &mine.first_id);
    }
    all = agree(impl, boot, status, &mine);
    if (GP_OK != all) {
        goto err_free;
    }
    status = join_all(set, boot->rank);
    if (GP_OK == status && impl->n_far > 0) {
        status = meet_far(set, boot->rank);
    }
    {
        /* The second exchange must not overwrite the handles that unmap needs. */
        record_t *handles = impl->records;

        impl->records = calloc(boot->n_ranks, sizeof(*handles));
        if (NULL == impl->records) {
            impl->records = handles; /* the exchange still has to happen; unmap is then skipped */
            memset(impl->mapped, 0, boot->n_ranks);
            all = agree(impl, boot, GP_ERR_NO_MEMORY, NULL);
        } else {
            all = agree(impl, boot, status, NULL);
            free(impl->records);
            impl->records = handles;
        }
    }
    if (NULL != arena->attached) {
        arena->attached(arena, &impl->mem);
    }
    if (GP_OK != all) {
        goto err_free;
    }
    *set_p = set;
    return GP_OK;

err_free:
    gp_connset_destroy(set, 0);
    return all;
}

void gp_connset_destroy(gp_connset_t *set, int quarantine)
{
    impl_t *impl;

    if (NULL == set) {
        return;
    }
    impl = set->impl;
    gp_net_set_destroy(set->far);
    for (uint32_t i = 0; i < impl->n_ranks; i++) {
        if (impl->mapped[i]) {
            impl->arena->unmap(impl->arena, &impl->records[i].handle);
        }
    }
    if (NULL != impl->mem.ptr && !quarantine) {
        impl->arena->free(impl->arena, &impl->mem);
    }
    set_free(set);
}
