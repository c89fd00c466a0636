/*
 * gp_ucx.c - see gp_ucx.h.
 *
 * Every message is one eager active message: header and bytes together. Over TCP that is the fastest way by
 * far (put is software there, and a rendezvous lets a tail overtake its data), and the callback sees
 * a message whole. Which call gives which order: none is needed, as slots are accepted by their step
 * and heads by their value.
 *
 * Settings of ours have a prefix of their own (GPUPROTO_UCX_TLS, ...): an application's UCX_* are not ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "transport/gp_ucx.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/proto/gp_log.h"

#if defined(GP_UCX)

#include <ucp/api/ucp.h>

#define AM_ID 7 /* of our own worker: nobody else's ids are meant */

typedef struct endpoint {
    struct endpoint *next;
    ucp_ep_h ep;
    uint32_t rank;
    int failed;                /* the error handler was called; ucs_status_t */
    size_t address_bytes;
    unsigned char address[GP_UCX_ADDRESS_BYTES];
} endpoint_t;

/* A message until UCX is done with it. Kept for the next when it is over. */
typedef struct sent {
    struct sent *next;
    struct ucx *ucx;
    uint64_t *done;
    gp_net_header_t header;
} sent_t;

typedef struct ucx {
    gp_net_t base;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
    endpoint_t *endpoints;
    sent_t *spare;
    void *flush;               /* request of a flush under way */
    int dirty;                 /* something was sent since the last flush began */
    gp_status_t failed;        /* a message that could not be taken */
    uint32_t delivered;        /* messages, to know that something moved */
    int threads;
    pthread_mutex_t lock;      /* threads: inside the functions below, never across a wait */
} ucx_t;

static ucx_t *process_ucx;
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(ucx_t *u)
{
    if (u->threads) {
        pthread_mutex_lock(&u->lock);
    }
}

static void unlock(ucx_t *u)
{
    if (u->threads) {
        pthread_mutex_unlock(&u->lock);
    }
}

static gp_status_t fail(const char *call, ucs_status_t status)
{
    gp_log(GP_LOG_ERROR, "UCX: %s: %s", call, ucs_status_string(status));
    return UCS_ERR_NO_MEMORY == status ? GP_ERR_NO_MEMORY : GP_ERR_SYSTEM;
}

/* A message: it is whole, and its data are only here while this runs. */
static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data,
                               size_t bytes, const ucp_am_recv_param_t *param)
{
    ucx_t *u = arg;
    gp_net_header_t h;

    u->delivered++;
    if (sizeof(h) != header_bytes || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        gp_log(GP_LOG_ERROR, "UCX: a message that gpuproto of this version does not send");
        u->failed = GP_ERR_PEER;
        return UCS_OK;
    }
    memcpy(&h, header, sizeof(h));
    if (h.wire_bytes != bytes || GP_OK != gp_net_deliver(&u->base, &h, data)) {
        u->failed = GP_ERR_PEER;
    }
    return UCS_OK;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    endpoint_t *e = arg;

    (void) ep;
    e->failed = (int) status;
}

static void is_over(sent_t *s)
{
    gp_store_release_u64(s->done, *s->done + 1); /* with gp_net_set_settled() */
    s->next = s->ucx->spare;
    s->ucx->spare = s;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    (void) status; /* a lost peer is told by on_error() */
    is_over(arg);
    ucp_request_free(request);
}

static gp_status_t lost(const endpoint_t *e)
{
    gp_log(GP_LOG_ERROR, "UCX: the connection to rank %u is lost: %s", e->rank,
           ucs_status_string((ucs_status_t) e->failed));
    return GP_ERR_PEER;
}

static gp_status_t ucx_send(gp_net_t *net, void *ep, const gp_net_header_t *header,
                            const void *data, uint64_t *done)
{
    ucx_t *u = (ucx_t *) net;
    endpoint_t *e = ep;
    ucp_request_param_t param;
    ucs_status_ptr_t request;
    gp_status_t status = GP_OK;
    sent_t *s;

    lock(u);
    s = u->spare;
    if (NULL != s) {
        u->spare = s->next;
    } else {
        s = malloc(sizeof(*s));
    }
    if (NULL == s) {
        gp_log(GP_LOG_ERROR, "UCX: out of host memory");
        status = GP_ERR_NO_MEMORY;
        goto out;
    }
    s->ucx = u;
    s->done = done;
    s->header = *header;
    if (e->failed) {
        free(s);
        status = lost(e);
        goto out;
    }
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
                         | UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = on_sent;
    param.user_data = s;
    request = ucp_am_send_nbx(e->ep, AM_ID, &s->header, sizeof(s->header), data,
                              header->wire_bytes, &param);
    u->dirty = 1;
    if (NULL == request) {
        is_over(s);
    } else if (UCS_PTR_IS_ERR(request)) {
        free(s);
        e->failed = (int) UCS_PTR_STATUS(request);
        status = lost(e);
    }
out:
    unlock(u);
    return status;
}

static gp_status_t ucx_progress(gp_net_t *net, int *moved)
{
    ucx_t *u = (ucx_t *) net;
    gp_status_t status;
    uint32_t before;

    lock(u);
    before = u->delivered;
    (void) ucp_worker_progress(u->worker);
    if (u->delivered != before) {
        *moved = 1;
    }
    status = u->failed;
    for (const endpoint_t *e = u->endpoints; NULL != e && GP_OK == status; e = e->next) {
        if (e->failed) {
            status = lost(e);
        }
    }
    unlock(u);
    return status;
}

static gp_status_t ucx_flush(gp_net_t *net)
{
    ucx_t *u = (ucx_t *) net;
    gp_status_t status = GP_OK;

    lock(u);
    if (NULL == u->flush && u->dirty) {
        ucp_request_param_t param;

        param.op_attr_mask = 0;
        u->dirty = 0;
        u->flush = ucp_worker_flush_nbx(u->worker, &param);
        if (UCS_PTR_IS_ERR(u->flush)) {
            status = fail("ucp_worker_flush_nbx", UCS_PTR_STATUS(u->flush));
            u->flush = NULL;
        }
    }
    if (NULL != u->flush) {
        if (UCS_INPROGRESS == ucp_request_check_status(u->flush)) {
            status = GP_AGAIN;
        } else {
            ucp_request_free(u->flush);
            u->flush = NULL;
            status = u->dirty ? GP_AGAIN : GP_OK;
        }
    }
    unlock(u);
    return status;
}

static void ucx_enter(gp_net_t *net)
{
    lock((ucx_t *) net);
}

static void ucx_leave(gp_net_t *net)
{
    unlock((ucx_t *) net);
}

/* The library at hand must not be older than what we were compiled with: it only warns. */
static gp_status_t check_version(void)
{
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    if (major < UCP_API_MAJOR || (major == UCP_API_MAJOR && minor < UCP_API_MINOR)) {
        gp_log(GP_LOG_ERROR, "UCX %u.%u.%u was loaded, and gpuproto was built with %u.%u: not used",
               major, minor, release, UCP_API_MAJOR, UCP_API_MINOR);
        return GP_ERR_UNSUPPORTED;
    }
    return GP_OK;
}

static void ucx_destroy(ucx_t *u)
{
    ucp_request_param_t param;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    while (NULL != u->endpoints) {
        endpoint_t *e = u->endpoints;
        ucs_status_ptr_t request = ucp_ep_close_nbx(e->ep, &param);

        u->endpoints = e->next;
        while (NULL != request && !UCS_PTR_IS_ERR(request)
               && UCS_INPROGRESS == ucp_request_check_status(request)) {
            ucp_worker_progress(u->worker); /* a forced close waits for nobody */
        }
        if (NULL != request && !UCS_PTR_IS_ERR(request)) {
            ucp_request_free(request);
        }
        free(e);
    }
    if (NULL != u->flush) {
        ucp_request_free(u->flush);
    }
    while (NULL != u->spare) {
        sent_t *s = u->spare;

        u->spare = s->next;
        free(s);
    }
    if (NULL != u->address) {
        ucp_worker_release_address(u->worker, u->address);
    }
    if (NULL != u->worker) {
        ucp_worker_destroy(u->worker);
    }
    if (NULL != u->context) {
        ucp_cleanup(u->context);
    }
    pthread_mutex_destroy(&u->lock);
    free(u->base.links);
    free(u);
}

static gp_status_t ucx_create(int threads, ucx_t **u_p)
{
    ucx_t *u = calloc(1, sizeof(*u));
    ucp_worker_params_t worker = {0};
    ucp_am_handler_param_t handler = {0};
    ucp_params_t params = {0};
    ucp_config_t *config;
    ucs_status_t rc;
    gp_status_t status = NULL == u ? GP_ERR_NO_MEMORY : check_version();

    if (GP_OK != status) {
        free(u);
        return status;
    }
    pthread_mutex_init(&u->lock, NULL);
    u->threads = threads;
    u->base.name = "ucx";
    u->base.send = ucx_send;
    u->base.progress = ucx_progress;
    u->base.flush = ucx_flush;
    u->base.enter = ucx_enter;
    u->base.leave = ucx_leave;
    rc = ucp_config_read("GPUPROTO", NULL, &config);
    if (UCS_OK != rc) {
        status = fail("ucp_config_read", rc);
        goto err_destroy;
    }
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM;
    params.name = "gpuproto";
    rc = ucp_init(&params, config, &u->context);
    ucp_config_release(config);
    if (UCS_OK != rc) {
        status = fail("ucp_init", rc);
        goto err_destroy;
    }
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    /* Our lock sees to it that one thread at a time is inside. */
    worker.thread_mode = threads ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
    rc = ucp_worker_create(u->context, &worker, &u->worker);
    if (UCS_OK != rc) {
        status = fail("ucp_worker_create", rc);
        goto err_destroy;
    }
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB
                         | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = AM_ID;
    handler.cb = on_message;
    handler.arg = u;
    rc = ucp_worker_set_am_recv_handler(u->worker, &handler);
    if (UCS_OK != rc) {
        status = fail("ucp_worker_set_am_recv_handler", rc);
        goto err_destroy;
    }
    rc = ucp_worker_get_address(u->worker, &u->address, &u->address_bytes);
    if (UCS_OK != rc) {
        status = fail("ucp_worker_get_address", rc);
        goto err_destroy;
    }
    if (u->address_bytes > GP_UCX_ADDRESS_BYTES) {
        gp_log(GP_LOG_ERROR, "UCX: an address of %zu bytes; set GPUPROTO_UCX_TLS or "
               "GPUPROTO_UCX_NET_DEVICES to fewer", u->address_bytes);
        status = GP_ERR_UNSUPPORTED;
        goto err_destroy;
    }
    *u_p = u;
    return GP_OK;

err_destroy:
    ucx_destroy(u);
    return status;
}

int gp_ucx_compiled(void)
{
    return 1;
}

gp_status_t gp_ucx_net(int threads, gp_net_t **net_p)
{
    gp_status_t status = GP_OK;

    pthread_mutex_lock(&process_lock);
    if (NULL == process_ucx) {
        status = ucx_create(threads, &process_ucx);
    }
    if (GP_OK == status) {
        *net_p = &process_ucx->base;
    }
    pthread_mutex_unlock(&process_lock);
    return status;
}

void gp_ucx_finalize(void)
{
    pthread_mutex_lock(&process_lock);
    if (NULL != process_ucx) {
        ucx_destroy(process_ucx);
        process_ucx = NULL;
    }
    pthread_mutex_unlock(&process_lock);
}

gp_status_t gp_ucx_address(gp_net_t *net, void *address, size_t *bytes_p)
{
    const ucx_t *u = (const ucx_t *) net;

    memcpy(address, u->address, u->address_bytes);
    *bytes_p = u->address_bytes;
    return GP_OK;
}

gp_status_t gp_ucx_endpoint(gp_net_t *net, const void *address, size_t bytes, uint32_t rank,
                            void **ep_p)
{
    ucx_t *u = (ucx_t *) net;
    ucp_ep_params_t params = {0};
    gp_status_t status = GP_OK;
    endpoint_t *e;
    ucs_status_t rc;

    if (bytes > GP_UCX_ADDRESS_BYTES) {
        return GP_ERR_INVALID;
    }
    lock(u);
    for (e = u->endpoints; NULL != e; e = e->next) {
        if (e->address_bytes == bytes && 0 == memcmp(e->address, address, bytes)) {
            *ep_p = e;
            goto out;
        }
    }
    e = calloc(1, sizeof(*e));
    if (NULL == e) {
        gp_log(GP_LOG_ERROR, "UCX: out of host memory");
        status = GP_ERR_NO_MEMORY;
        goto out;
    }
    e->rank = rank;
    e->address_bytes = bytes;
    memcpy(e->address, address, bytes);
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                        | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = (const ucp_address_t *) e->address;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = on_error;
    params.err_handler.arg = e;
    rc = ucp_ep_create(u->worker, &params, &e->ep);
    if (UCS_OK != rc) {
        gp_log(GP_LOG_ERROR, "UCX: rank %u cannot be reached (no common transport?)", rank);
        status = fail("ucp_ep_create", rc);
        free(e);
        goto out;
    }
    e->next = u->endpoints;
    u->endpoints = e;
    *ep_p = e;
out:
    unlock(u);
    return status;
}

#else /* without UCX */

int gp_ucx_compiled(void)
{
    return 0;
}

gp_status_t gp_ucx_net(int threads, gp_net_t **net_p)
{
    (void) threads;
    (void) net_p;
    gp_log(GP_LOG_ERROR, "UCX was not there when gpuproto was built");
    return GP_ERR_UNSUPPORTED;
}

void gp_ucx_finalize(void)
{
}

gp_status_t gp_ucx_address(gp_net_t *net, void *address, size_t *bytes_p)
{
    (void) net;
    (void) address;
    (void) bytes_p;
    return GP_ERR_UNSUPPORTED;
}

gp_status_t gp_ucx_endpoint(gp_net_t *net, const void *address, size_t bytes, uint32_t rank,
                            void **ep_p)
{
    (void) net;
    (void) address;
    (void) bytes;
    (void) rank;
    (void) ep_p;
    return GP_ERR_UNSUPPORTED;
}

#endif
