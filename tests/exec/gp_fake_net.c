/*
 * gp_fake_net.c - see gp_fake_net.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/exec/gp_fake_net.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct message {
    struct message *next;
    gp_net_header_t header;
    uint32_t from, to;
    const void *source; /* until it has left */
    uint64_t *done;
    int left;
    unsigned char data[];
} message_t;

typedef struct fake_net {
    gp_net_t base;
    fake_wire_t *wire;
    uint32_t rank;
    int cut;
} fake_net_t;

struct fake_wire {
    pthread_mutex_t lock; /* ranks are threads while connections are made */
    uint32_t n_ranks;
    uint64_t random;
    message_t *messages;  /* all on the way, in the order they were sent */
    fake_net_t *nets;
    void **eps;
};

static int coin(fake_wire_t *w)
{
    w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
    return (int) (w->random >> 62); /* 0 one time in four */
}

static gp_status_t fake_send(gp_net_t *net, void *ep, const gp_net_header_t *header,
                             const void *data, uint64_t *done)
{
    fake_net_t *mine = (fake_net_t *) net, *to = ep;
    fake_wire_t *w = mine->wire;
    message_t *m = calloc(1, sizeof(*m) + header->wire_bytes), **at = &w->messages;

    if (NULL == m) {
        return GP_ERR_NO_MEMORY;
    }
    if (to->cut || mine->cut) {
        free(m);
        return GP_ERR_PEER;
    }
    m->header = *header;
    m->from = mine->rank;
    m->to = to->rank;
    m->source = data;
    m->done = done;
    pthread_mutex_lock(&w->lock);
    while (NULL != *at) {
        at = &(*at)->next;
    }
    *at = m;
    pthread_mutex_unlock(&w->lock);
    return GP_OK;
}

static void leave(message_t *m)
{
    if (m->header.wire_bytes > 0) {
        memcpy(m->data, m->source, m->header.wire_bytes);
    }
    m->left = 1;
    gp_store_release_u64(m->done, *m->done + 1);
}

static gp_status_t fake_progress(gp_net_t *net, int *moved)
{
    fake_net_t *mine = (fake_net_t *) net;
    fake_wire_t *w = mine->wire;
    message_t *arrived = NULL;
    gp_status_t status = GP_OK;

    pthread_mutex_lock(&w->lock);
    for (message_t **at = &w->messages; NULL != *at;) {
        message_t *m = *at;

        if (m->from == mine->rank && !m->left && 0 != coin(w)) {
            leave(m);
            *moved = 1;
        }
        if (m->to == mine->rank && m->left && 0 != coin(w)) {
            *at = m->next;
            if (coin(w) > 1) { /* some overtake those taken before */
                m->next = arrived;
                arrived = m;
            } else {
                message_t **end = &arrived;

                while (NULL != *end) {
                    end = &(*end)->next;
                }
                m->next = NULL;
                *end = m;
            }
        } else {
            at = &m->next;
        }
    }
    pthread_mutex_unlock(&w->lock);
    while (NULL != arrived) {
        message_t *m = arrived;

        arrived = m->next;
        if (GP_OK == status && !mine->cut) {
            status = gp_net_deliver(net, &m->header, m->data);
        }
        free(m);
        *moved = 1;
    }
    return status;
}

static gp_status_t fake_flush(gp_net_t *net)
{
    fake_net_t *mine = (fake_net_t *) net;
    gp_status_t status = GP_OK;

    pthread_mutex_lock(&mine->wire->lock);
    for (const message_t *m = mine->wire->messages; NULL != m; m = m->next) {
        if (m->from == mine->rank && !m->left) {
            status = GP_AGAIN;
        }
    }
    pthread_mutex_unlock(&mine->wire->lock);
    return status;
}

fake_wire_t *fake_wire_create(uint32_t n_ranks, uint64_t seed)
{
    fake_wire_t *w = calloc(1, sizeof(*w));

    if (NULL == w) {
        return NULL;
    }
    w->n_ranks = n_ranks;
    w->random = seed;
    w->nets = calloc(n_ranks, sizeof(*w->nets));
    w->eps = calloc(n_ranks, sizeof(*w->eps));
    pthread_mutex_init(&w->lock, NULL);
    for (uint32_t r = 0; NULL != w->nets && NULL != w->eps && r < n_ranks; r++) {
        fake_net_t *net = &w->nets[r];

        net->base.name = "fake net";
        net->base.send = fake_send;
        net->base.progress = fake_progress;
        net->base.flush = fake_flush;
        net->wire = w;
        net->rank = r;
        w->eps[r] = net;
    }
    return w;
}

void fake_wire_destroy(fake_wire_t *w)
{
    if (NULL == w) {
        return;
    }
    while (NULL != w->messages) {
        message_t *m = w->messages;

        w->messages = m->next;
        free(m);
    }
    for (uint32_t r = 0; NULL != w->nets && r < w->n_ranks; r++) {
        free(w->nets[r].base.links);
    }
    pthread_mutex_destroy(&w->lock);
    free(w->nets);
    free(w->eps);
    free(w);
}

gp_net_t *fake_wire_net(fake_wire_t *w, uint32_t rank)
{
    return &w->nets[rank].base;
}

void *const *fake_wire_eps(fake_wire_t *w)
{
    return w->eps;
}

void fake_wire_cut(fake_wire_t *w, uint32_t rank)
{
    w->nets[rank].cut = 1;
}
