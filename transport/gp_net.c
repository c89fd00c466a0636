/*
 * gp_net.c - see gp_net.h: the links over a net, whoever moves the messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "transport/gp_net.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device/proto/gp_log.h"
#include "device/proto/gp_simple.h"

/* One end of a connection over the net. */
typedef struct gp_net_link {
    gp_conn_t *conn;
    void *ep;
    uint64_t peer_id;
    uint32_t protocol;
    uint32_t is_send;
    uint32_t heard;       /* the peer's hello; by whoever progresses the net */
    uint32_t reserved;
    uint64_t moved;       /* send: steps given to the net; receive: heads told to the peer */
    uint64_t posted;      /* messages given to the net */
    uint64_t done;        /* of these, messages whose memory is free again; the net counts */
    uint64_t arrived[GP_MAX_SLOTS]; /* receive: step + 1 of what lies in the slot */
} link_t;

struct gp_net_set {
    gp_net_t *net;
    uint32_t n_links;
    uint32_t n_added;
    link_t *links;
    uint64_t first_id;
};

static void enter(gp_net_t *net)
{
    if (NULL != net->enter) {
        net->enter(net);
    }
}

static void leave(gp_net_t *net)
{
    if (NULL != net->leave) {
        net->leave(net);
    }
}

gp_status_t gp_net_set_create(gp_net_t *net, uint32_t protocol, uint32_t n_links,
                              gp_net_set_t **set_p, uint64_t *first_id)
{
    gp_net_set_t *set = calloc(1, sizeof(*set));
    struct gp_net_link **grown = NULL;

    if (NULL == set) {
        goto err_memory;
    }
    set->net = net;
    set->n_links = n_links;
    set->links = calloc(n_links > 0 ? n_links : 1, sizeof(*set->links));
    if (NULL == set->links) {
        goto err_memory;
    }
    for (uint32_t i = 0; i < n_links; i++) {
        set->links[i].protocol = protocol;
    }
    enter(net);
    if (net->n_links + n_links > net->room) {
        grown = realloc(net->links, 2 * (net->n_links + n_links) * sizeof(*net->links));
        if (NULL == grown) {
            leave(net);
            goto err_memory;
        }
        net->room = 2 * (net->n_links + n_links);
        net->links = grown;
    }
    set->first_id = net->n_links;
    /* From now on a hello may come, though gp_net_set_add() has not been called yet. */
    for (uint32_t i = 0; i < n_links; i++) {
        net->links[net->n_links++] = &set->links[i];
    }
    leave(net);
    *first_id = set->first_id;
    *set_p = set;
    return GP_OK;

err_memory:
    gp_log(GP_LOG_ERROR, "%s: out of host memory", net->name);
    if (NULL != set) {
        free(set->links);
    }
    free(set);
    return GP_ERR_NO_MEMORY;
}

void gp_net_set_destroy(gp_net_set_t *set)
{
    uint64_t owed = 0;

    if (NULL == set) {
        return;
    }
    enter(set->net);
    for (uint32_t i = 0; i < set->n_links; i++) {
        set->net->links[set->first_id + i] = NULL;
        owed += set->links[i].posted - gp_load_acquire_u64(&set->links[i].done);
    }
    leave(set->net);
    if (0 == owed) {
        free(set->links);
    } else {
        gp_log(GP_LOG_DEBUG, "%s: links go with %llu messages under way: their memory stays",
               set->net->name, (unsigned long long) owed);
    }
    free(set);
}

void gp_net_set_add(gp_net_set_t *set, gp_conn_t *conn, int is_send, void *ep, uint64_t peer_id)
{
    link_t *l = &set->links[set->n_added++];

    enter(set->net);
    l->conn = conn;
    l->ep = ep;
    l->peer_id = peer_id;
    l->is_send = is_send ? 1 : 0;
    l->moved = conn->step; /* both counters start at the first step */
    leave(set->net);
}

static gp_status_t post(gp_net_set_t *set, link_t *l, gp_net_kind_t kind, uint64_t step,
                        uint64_t bytes, const void *data, uint64_t wire_bytes)
{
    gp_net_header_t header = {l->peer_id, step, bytes, (uint32_t) kind, (uint32_t) wire_bytes};
    gp_status_t status = set->net->send(set->net, l->ep, &header, data, &l->done);

    if (GP_OK == status) {
        l->posted++;
    }
    return status;
}

gp_status_t gp_net_set_hello(gp_net_set_t *set)
{
    gp_status_t status = GP_OK;

    for (uint32_t i = 0; i < set->n_added && GP_OK == status; i++) {
        status = post(set, &set->links[i], GP_NET_HELLO, 0, 0, NULL, 0);
    }
    return status;
}

int gp_net_set_ready(const gp_net_set_t *set)
{
    for (uint32_t i = 0; i < set->n_added; i++) {
        if (0 == gp_load_acquire_u32(&set->links[i].heard)) {
            return 0;
        }
    }
    return 1;
}

static unsigned char *slot_at(const gp_conn_t *conn, uint64_t step)
{
    return conn->slots + (uint64_t) gp_slot_of(step, conn->n_slots) * conn->slot_bytes;
}

/*
 * Steps that the peer need not be told of yet. With half of the slots it has the other half and one, so no
 * program that may run with two slots stops; and a call of few steps sends no message but its data.
 */
static uint64_t may_wait(const gp_conn_t *conn)
{
    return conn->n_slots / 2;
}

gp_status_t gp_net_set_progress(gp_net_set_t *set, int *moved)
{
    gp_status_t status = set->net->progress(set->net, moved);

    for (uint32_t i = 0; i < set->n_added && GP_OK == status; i++) {
        link_t *l = &set->links[i];
        gp_conn_t *conn = l->conn;

        if (l->is_send) {
            /* With gp_simple_publish(): the slots below are filled. */
            uint64_t tail = gp_load_acquire_u64(conn->tail);

            for (; l->moved < tail && GP_OK == status; l->moved++) {
                uint64_t bytes =
                    gp_load_relaxed_u64(conn->sizes + gp_slot_of(l->moved, conn->n_slots));

                status = post(set, l, GP_NET_SLOT, l->moved, bytes, slot_at(conn, l->moved),
                              gp_wire_bytes((gp_protocol_t) l->protocol, bytes));
                *moved = 1;
            }
        } else {
            uint64_t head = gp_load_acquire_u64(conn->head); /* with gp_simple_release() */

            if (head - l->moved >= may_wait(conn) && head != l->moved) {
                status = post(set, l, GP_NET_HEAD, head, 0, NULL, 0);
                l->moved = head;
                *moved = 1;
            }
        }
    }
    return status;
}

gp_status_t gp_net_set_settled(gp_net_set_t *set)
{
    for (uint32_t i = 0; i < set->n_added; i++) {
        const link_t *l = &set->links[i];
        uint64_t now = gp_load_relaxed_u64(l->is_send ? l->conn->tail : l->conn->head);
        uint64_t left = now - l->moved;

        int owed = left > 0 && (l->is_send || left >= may_wait(l->conn));

        if (owed || l->posted != gp_load_acquire_u64(&l->done)) {
            return GP_AGAIN;
        }
    }
    return set->net->flush(set->net);
}

/* LL words are read by whoever polls them as 8 bytes at once: they are written so. */
static void copy_words(void *to, const void *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 8) {
        uint64_t word;

        memcpy(&word, (const char *) from + at, sizeof(word));
        gp_store_relaxed_u64((uint64_t *) ((char *) to + at), word);
    }
}

static gp_status_t refuse(const gp_net_t *net, const gp_net_header_t *h, const char *why)
{
    gp_log(GP_LOG_ERROR,
           "%s: message of kind %u for link %" PRIu64 ", step %" PRIu64 ", %" PRIu64
           " bytes (%u on the wire): %s", net->name, h->kind, h->id, h->step, h->bytes,
           h->wire_bytes, why);
    return GP_ERR_INVALID;
}

static gp_status_t take_slot(const gp_net_t *net, link_t *l, const gp_net_header_t *h,
                             const void *data)
{
    gp_conn_t *conn = l->conn;
    uint64_t tail = gp_load_relaxed_u64(conn->tail);
    uint32_t slot = gp_slot_of(h->step, conn->n_slots);

    if (h->bytes > conn->slot_bytes
        || gp_wire_bytes((gp_protocol_t) l->protocol, h->bytes) != h->wire_bytes
        || h->wire_bytes > conn->slot_bytes) {
        return refuse(net, h, "not what fits the slot");
    }
    /* A sender has credit for n_slots steps behind our head, which is not above our tail. */
    if (h->step < tail || h->step >= tail + conn->n_slots || l->arrived[slot] == h->step + 1) {
        return refuse(net, h, "a step that is not due");
    }
    if (GP_PROTO_SIMPLE == l->protocol) {
        memcpy(slot_at(conn, h->step), data, h->wire_bytes);
    } else {
        copy_words(slot_at(conn, h->step), data, h->wire_bytes);
    }
    gp_store_relaxed_u64(conn->sizes + slot, h->bytes);
    l->arrived[slot] = h->step + 1;
    while (l->arrived[gp_slot_of(tail, conn->n_slots)] == tail + 1) {
        tail++;
    }
    gp_store_release_u64(conn->tail, tail); /* acquired by gp_simple_ready() */
    return GP_OK;
}

gp_status_t gp_net_deliver(gp_net_t *net, const gp_net_header_t *h, const void *data)
{
    link_t *l = h->id < net->n_links ? net->links[h->id] : NULL;

    if (NULL == l) {
        gp_log(GP_LOG_DEBUG, "%s: message for link %" PRIu64 ", which is gone", net->name, h->id);
        return GP_OK;
    }
    if (NULL == l->conn && GP_NET_HELLO != h->kind) {
        return refuse(net, h, "before the connection was made");
    }
    switch (h->kind) {
    case GP_NET_HELLO:
        gp_store_release_u32(&l->heard, 1);
        return GP_OK;
    case GP_NET_SLOT:
        return l->is_send ? refuse(net, h, "sent to a sender") : take_slot(net, l, h, data);
    case GP_NET_HEAD:
        if (!l->is_send || h->step > gp_load_relaxed_u64(l->conn->tail)) {
            return refuse(net, h, "a head that cannot be");
        }
        /* Heads may overtake each other; the latest counts. Acquired by gp_simple_credit(). */
        if (h->step > gp_load_relaxed_u64(l->conn->head)) {
            gp_store_release_u64(l->conn->head, h->step);
        }
        return GP_OK;
    default:
        return refuse(net, h, "no such kind");
    }
}
