/*
 * gp_net.h - connections to ranks that share no memory with us: who moves their slots.
 *
 * Both ends have the whole FIFO in memory of their own, so an executor sees no difference. Whoever
 * progresses the set replicates:
 *
 *   sender's mirror: slots, sizes, tail  -- SLOT {id, step, data bytes} + wire bytes ->  receiver's FIFO
 *   sender's head                        <------------- HEAD {id, step} ---------------  its mirror
 *
 * A slot leaves when the executor has released `tail` behind it; it enters when all of it is there, then
 * `tail` is released. So connections over a net are gated by tail whatever the protocol, and lines need
 * not travel whole. Slots are accepted by their step, in any order. A mirror slot is written again when
 * the receiver's head says so: then it has arrived, so that the send is over as well. Heads are told when
 * half of the slots are free again, so that a short call sends nothing but its data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_NET_H
#define GP_NET_H

#include "transport/gp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gp_net_kind {
    GP_NET_HELLO, /* the connection works in this direction */
    GP_NET_SLOT,
    GP_NET_HEAD
} gp_net_kind_t;

/* Travels before every message. */
typedef struct gp_net_header {
    uint64_t id;    /* of the link at whom it is sent to; never reused in a process */
    uint64_t step;  /* SLOT: which; HEAD: first step that is not freed */
    uint64_t bytes; /* SLOT: data bytes in the slot */
    uint32_t kind;  /* gp_net_kind_t */
    uint32_t wire_bytes; /* that follow */
} gp_net_header_t;

struct gp_net_link;

/* Who moves messages. One for all connection sets of a process (tests: of a rank). */
struct gp_net {
    const char *name;
    /*
     * Send header and wire bytes to ep; never waits. *done is incremented (released, by whoever
     * progresses) when the bytes may change. Errors are logged: GP_ERR_PEER when that process cannot be
     * reached any more.
     */
    gp_status_t (*send)(gp_net_t *net, void *ep, const gp_net_header_t *header, const void *data,
                        uint64_t *done);
    /* Do what can be done, gp_net_deliver() for what arrived. *moved is set when something happened. */
    gp_status_t (*progress)(gp_net_t *net, int *moved);
    /* GP_OK: nothing that was sent is left in this process. GP_AGAIN: progress. */
    gp_status_t (*flush)(gp_net_t *net);
    /*
     * Where several threads may be in progress(): keep them out of the links while they change. May be
     * NULL. Never held across a wait; progress() calls gp_net_deliver() inside.
     */
    void (*enter)(gp_net_t *net);
    void (*leave)(gp_net_t *net);
    struct gp_net_link **links; /* [n_links] by id; NULL: gone */
    uint64_t n_links;
    uint64_t room;
};

/*
 * A message for this process: data is header->wire_bytes long and only valid now. GP_ERR_INVALID (logged)
 * for one that breaks the protocol; messages for links that are gone are dropped.
 */
gp_status_t gp_net_deliver(gp_net_t *net, const gp_net_header_t *header, const void *data);

/* The links of one connection set over a net. */
typedef struct gp_net_set gp_net_set_t;

/*
 * For a set with n_links links to far ranks. Registered at net: ids run from *first_id, in the order of
 * gp_net_set_add(). The caller owns *set_p.
 */
gp_status_t gp_net_set_create(gp_net_t *net, uint32_t protocol, uint32_t n_links,
                              gp_net_set_t **set_p, uint64_t *first_id);
/* What is still being sent keeps the memory of its link; the slots it sends from are the caller's. */
void gp_net_set_destroy(gp_net_set_t *set);

/* The next link: our end, and how to reach the other: endpoint and its id there. */
void gp_net_set_add(gp_net_set_t *set, gp_conn_t *conn, int is_send, void *ep, uint64_t peer_id);

/* Say hello over all links; then progress until gp_net_set_ready(). */
gp_status_t gp_net_set_hello(gp_net_set_t *set);
int gp_net_set_ready(const gp_net_set_t *set);

/* Move what can be moved. *moved is set when something was. GP_ERR_PEER: a rank is lost (logged). */
gp_status_t gp_net_set_progress(gp_net_set_t *set, int *moved);

/* GP_OK: everything that this rank owes its peers has left the process; GP_AGAIN: progress. */
gp_status_t gp_net_set_settled(gp_net_set_t *set);

#ifdef __cplusplus
}
#endif

#endif /* GP_NET_H */
