/*
 * gp_cuda_exec.c - the CUDA executor: programs and connections in device memory, one launch per call.
 *
 * Owns the blob (layout: gp_kargs.h), the launch and its completion word. The kernel keeps the step
 * counters in the blob; the host mirrors only what it decides by, the age of LL flags. A call costs
 * one launch and polls of one pinned word: nothing is allocated, copied or loaded.
 *
 * States: idle -> start -> in flight -> progress finds `done` -> idle. An abort or a driver error ends
 * in `failed`, for good: counters and FIFOs are then in an unknown state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/proto/gp_log.h"

#define GP_QUERY_POLLS 4096u         /* polls between two questions to the driver */
#define GP_ASK_WAIT_US 50000 /* thousands of polls of a waiting kernel take a few milliseconds */
#define GP_ABORT_WAIT_US 2000000     /* what an aborted kernel gets to report and end */

/* What the host remembers of a channel. */
typedef struct gp_chan_state {
    uint64_t ll_age_steps;   /* LL: upper bound of steps since the send FIFOs were all zero */
    uint32_t max_send_uses;  /* steps of the busiest send connection per loop */
    uint32_t reserved;
} gp_chan_state_t;

struct gp_cuda_exec {
    gp_cuda_dev_t *dev;
    gp_connset_t *set;         /* the caller's */
    uint32_t protocol;
    uint32_t channels;
    uint32_t rank;
    int in_flight;
    gp_status_t failed;        /* GP_OK, or what every later call returns */
    uint32_t polls;
    uint64_t seq;              /* of the last call started; calls completed when idle */
    gp_cuda_slot_t *slot;
    gp_cuda_hostmap_t *map;    /* NULL: FIFOs in device memory */
    gp_mem_t blob;             /* and, behind it on its own line, `arrived` */
    gp_kchan_t *chans;         /* host copy of the blob's head */
    gp_chan_state_t *state;    /* [channel] */
    gp_kargs_t args;
    void *params[1];           /* &args */
    gp_exec_record_t record;   /* of the last completed call */
    gp_wait_info_t wait;       /* of the aborted call */
};

/* ---- building ------------------------------------------------------------------------------------ */

/*
 * A kernel follows these indices without looking: a fault there would take down every process that
 * shares the GPU through MPS, so a program is checked here once.
 */
static int gp_program_fits(const gp_program_t *p, const gp_connset_t *set, uint32_t channel)
{
    uint32_t i;
    uint32_t k;

    if (NULL == p || p->n_recv != set->n_recv[channel] || p->n_send != set->n_send[channel]
        || 0 == p->n_streams || 0 == p->n_chunks) {
        return 0;
    }
    for (i = 0; i < p->n_streams; ++i) {
        if (p->streams[i].first > p->n_steps
            || p->streams[i].count > p->n_steps - p->streams[i].first) {
            return 0;
        }
    }
    for (i = 0; i < p->n_steps; ++i) {
        const gp_step_t *step = &p->steps[i];
        if (step->chunk >= p->n_chunks || 0 == step->n_in || step->in_first > p->n_refs
            || step->n_in > p->n_refs - step->in_first || step->send_first > p->n_refs
            || step->n_send > p->n_refs - step->send_first) {
            return 0;
        }
        for (k = 0; k < step->n_in; ++k) {
            const gp_ref_t *ref = &p->refs[step->in_first + k];
            if (GP_REF_OWN != ref->conn
                && (ref->conn >= p->n_recv || ref->ordinal >= p->recv[ref->conn].uses)) {
                return 0;
            }
        }
        for (k = 0; k < step->n_send; ++k) {
            const gp_ref_t *ref = &p->refs[step->send_first + k];
            if (ref->conn >= p->n_send || ref->ordinal >= p->send[ref->conn].uses) {
                return 0;
            }
        }
    }
    return 1;
}

/* Where everything of a channel lies in its region. Returns the region's bytes. */
static uint64_t gp_blob_layout(gp_kchan_t *chan, const gp_program_t *p)
{
    chan->algorithm = p->algorithm;
    chan->n_streams = p->n_streams;
    chan->n_steps = p->n_steps;
    chan->n_refs = p->n_refs;
    chan->n_recv = p->n_recv;
    chan->n_send = p->n_send;
    chan->n_chunks = p->n_chunks;
    chan->direct = (uint32_t) gp_kchan_is_direct(p);
    return gp_kchan_layout(chan);
}

static void gp_blob_put(unsigned char *blob, uint64_t offset, const void *data, size_t bytes)
{
    if (0 != bytes) { /* data may be NULL then */
        memcpy(blob + offset, data, bytes);
    }
}

/* Connections with their pointers as the GPU sees them. */
static void gp_blob_conns(const gp_cuda_exec_t *exec, gp_kconn_t *to, const gp_conn_t *conns,
                          const gp_link_t *links, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n; ++i) {
        to[i] = gp_kconn_of(&conns[i], links[i].uses);
        to[i].slots = gp_cuda_hostmap_ptr(exec->map, conns[i].slots);
        to[i].tail = gp_cuda_hostmap_ptr(exec->map, conns[i].tail);
        to[i].head = gp_cuda_hostmap_ptr(exec->map, conns[i].head);
        to[i].sizes = gp_cuda_hostmap_ptr(exec->map, conns[i].sizes);
    }
}

/* References, those of sends renumbered. */
static void gp_blob_refs(const gp_kchan_t *chan, gp_ref_t *to, const gp_program_t *p)
{
    uint32_t i;
    uint32_t k;

    for (i = 0; i < p->n_steps; ++i) {
        const gp_step_t *step = &p->steps[i];
        for (k = 0; k < step->n_in; ++k) {
            to[step->in_first + k] = gp_kref_of(chan, &p->refs[step->in_first + k], 0);
        }
        for (k = 0; k < step->n_send; ++k) {
            to[step->send_first + k] = gp_kref_of(chan, &p->refs[step->send_first + k], 1);
        }
    }
}

/* Build the blob, bring it to the device, point the arguments at it. The context is current. */
static gp_status_t gp_exec_build(gp_cuda_exec_t *exec, const gp_program_t *const *programs)
{
    gp_arena_t *arena = gp_cuda_dev_arena(exec->dev);
    uint64_t region_bytes = 0;
    uint64_t head_bytes = 0;
    uint64_t stride;
    uint64_t arrived;
    uint64_t end;
    unsigned char *image;
    gp_status_t status;
    uint32_t c;

    for (c = 0; c < exec->channels; ++c) {
        uint64_t bytes = gp_blob_layout(&exec->chans[c], programs[c]);
        uint64_t head = gp_kchan_head_bytes(&exec->chans[c]);

        region_bytes = bytes > region_bytes ? bytes : region_bytes;
        head_bytes = head > head_bytes ? head : head_bytes;
    }
    stride = (region_bytes + GP_LINE_BYTES - 1) / GP_LINE_BYTES * GP_LINE_BYTES;
    arrived = exec->channels * stride;
    end = arrived + GP_LINE_BYTES;
    image = calloc(1, end);
    if (NULL == image) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    for (c = 0; c < exec->channels; ++c) {
        const gp_program_t *p = programs[c];
        const gp_kchan_t *chan = &exec->chans[c];
        unsigned char *region = image + c * stride;

        memcpy(region, chan, sizeof(*chan));
        gp_blob_put(region, chan->streams_off, p->streams, p->n_streams * sizeof(gp_stream_t));
        gp_blob_put(region, chan->steps_off, p->steps, p->n_steps * sizeof(gp_step_t));
        gp_blob_refs(chan, (gp_ref_t *) (void *) (region + chan->refs_off), p);
        gp_blob_conns(exec, gp_kchan_conns(region), exec->set->recv[c], p->recv, p->n_recv);
        gp_blob_conns(exec, gp_kchan_conns(region) + p->n_recv, exec->set->send[c], p->send,
                      p->n_send);
    }
    status = arena->alloc(arena, end, &exec->blob);
    if (GP_OK == status) {
        status = gp_cuda_prim_copy(exec->dev->prim, (gp_cu_ptr_t) (uintptr_t) exec->blob.ptr,
                                   (gp_cu_ptr_t) (uintptr_t) image, end);
        if (GP_OK != status) {
            arena->free(arena, &exec->blob);
        }
    }
    free(image);
    if (GP_OK != status) {
        return status;
    }
    exec->args.blob = exec->blob.ptr;
    exec->args.chan_stride = stride;
    exec->args.copy_bytes = gp_kcopy_bytes(region_bytes, head_bytes);
    exec->args.arrived = (uint32_t *) (void *) ((unsigned char *) exec->blob.ptr + arrived);
    exec->args.status = (gp_kstatus_t *) (uintptr_t) exec->slot->status_dev;
    exec->params[0] = &exec->args;
    return GP_OK;
}

/* Start values of the mirrors. */
static void gp_exec_mirror(gp_cuda_exec_t *exec, const gp_program_t *const *programs)
{
    uint32_t c;
    uint32_t i;

    for (c = 0; c < exec->channels; ++c) {
        for (i = 0; i < programs[c]->n_send; ++i) {
            const gp_conn_t *conn = &exec->set->send[c][i];
            if (conn->step - conn->zeroed > exec->state[c].ll_age_steps) {
                exec->state[c].ll_age_steps = conn->step - conn->zeroed;
            }
            if (programs[c]->send[i].uses > exec->state[c].max_send_uses) {
                exec->state[c].max_send_uses = programs[c]->send[i].uses;
            }
        }
    }
}

gp_status_t gp_cuda_exec_create(gp_cuda_dev_t *dev, uint32_t protocol,
                                const gp_program_t *const *programs, gp_connset_t *set,
                                gp_cuda_exec_t **exec_p)
{
    gp_cuda_exec_t *exec;
    gp_status_t status;
    uint32_t c;
    int pushed;

    if (protocol >= GP_PROTO_COUNT || protocol != set->desc.protocol || 0 == set->desc.channels) {
        gp_log(GP_LOG_ERROR, "CUDA executor: protocol %u and connection set do not fit", protocol);
        return GP_ERR_INVALID;
    }
    for (c = 0; c < set->desc.channels; ++c) {
        if (!gp_program_fits(programs[c], set, c)) {
            gp_log(GP_LOG_ERROR,
                   "CUDA executor: the program of channel %u does not fit its connections", c);
            return GP_ERR_INVALID;
        }
    }
    exec = calloc(1, sizeof(*exec));
    if (NULL == exec) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    exec->dev = dev;
    exec->set = set;
    exec->protocol = protocol;
    exec->channels = set->desc.channels;
    exec->rank = programs[0]->rank;
    exec->chans = calloc(exec->channels, sizeof(*exec->chans));
    exec->state = calloc(exec->channels, sizeof(*exec->state));
    if (NULL == exec->chans || NULL == exec->state) {
        gp_log(GP_LOG_ERROR, "out of memory");
        status = GP_ERR_NO_MEMORY;
        goto err_host;
    }
    gp_exec_mirror(exec, programs);
    status = gp_cuda_dev_load(dev, protocol);
    if (GP_OK != status) {
        goto err_host;
    }
    status = gp_cu_enter(dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        goto err_host;
    }
    status = gp_cuda_slot_get(dev, &exec->slot);
    if (GP_OK != status) {
        goto err_leave;
    }
    status = gp_cuda_hostmap_create(set, &exec->map);
    if (GP_OK != status) {
        goto err_slot;
    }
    status = gp_exec_build(exec, programs);
    if (GP_OK != status) {
        goto err_map;
    }
    gp_cu_leave(pushed);
    *exec_p = exec;
    return GP_OK;

err_map:
    gp_cuda_hostmap_destroy(exec->map);
err_slot:
    gp_cuda_slot_put(dev, exec->slot);
err_leave:
    gp_cu_leave(pushed);
err_host:
    free(exec->state);
    free(exec->chans);
    free(exec);
    return status;
}

/* ---- a call -------------------------------------------------------------------------------------- */

/* Has the call in flight ended? Pairs with the kernel's release store of `done`. */
static int gp_exec_done(const gp_cuda_exec_t *exec)
{
    return gp_load_acquire_u64(&exec->slot->status->done) >= exec->seq;
}

/* Arguments that would fault on the GPU; also gives the dynamic shared memory of the launch. */
static gp_status_t gp_exec_check(const gp_cuda_exec_t *exec, const gp_work_t *work,
                                 const gp_cuda_kernel_t **kernel_p, uint32_t *shared_bytes)
{
    const gp_cuda_kernel_t *kernel;
    const char *what = NULL;
    uint32_t bytes;
    uint32_t c;

    *shared_bytes = 0;
    if (!work->red.valid || work->red.family >= GP_FAMILY_COUNT || work->red.rop >= GP_ROP_COUNT
        || work->red.elem_bytes != work->geom.elem_bytes) {
        what = "reduction";
        goto invalid;
    }
    kernel = &exec->dev->kernels[exec->protocol][work->red.family];
    if (0 == work->geom.channels || work->geom.channels > exec->channels || 0 == work->geom.loops) {
        what = "channels or loops";
        goto invalid;
    }
    if (0 == work->threads || 0 != work->threads % 32 || work->threads > kernel->max_threads) {
        what = "threads";
        goto invalid;
    }
    for (c = 0; c < work->geom.channels; ++c) {
        if (exec->chans[c].n_chunks != work->geom.n_chunks
            || work->threads < 32 * exec->chans[c].n_streams) {
            what = "chunks or streams";
            goto invalid;
        }
        bytes = gp_kernel_shared_bytes(&exec->chans[c], exec->protocol, work->threads,
                                       exec->args.copy_bytes);
        if (bytes > *shared_bytes) {
            *shared_bytes = bytes;
        }
    }
    if (*shared_bytes > kernel->max_shared_bytes) {
        what = "shared memory";
        goto invalid;
    }
    *kernel_p = kernel;
    return GP_OK;

invalid:
    gp_log(GP_LOG_ERROR,
           "CUDA executor: %s out of range (family %u, channels %u of %u, threads %u, chunks %u, "
           "shared memory %u bytes)",
           what, work->red.family, work->geom.channels, exec->channels, work->threads,
           work->geom.n_chunks, *shared_bytes);
    return GP_ERR_INVALID;
}

/* Advance the mirrors; 1 when the kernel has to zero its LL FIFOs before this call. */
static uint32_t gp_exec_advance(gp_cuda_exec_t *exec, const gp_geom_t *geom)
{
    uint32_t zero = 0;
    uint32_t c;

    if (GP_PROTO_LL != exec->protocol) {
        return 0;
    }
    for (c = 0; c < geom->channels; ++c) {
        exec->state[c].ll_age_steps += geom->loops * exec->state[c].max_send_uses;
        zero |= exec->state[c].ll_age_steps > GP_LL_ZERO_STEPS;
    }
    for (c = 0; zero && c < geom->channels; ++c) {
        exec->state[c].ll_age_steps = geom->loops * exec->state[c].max_send_uses;
    }
    return zero;
}

gp_status_t gp_cuda_exec_start(gp_cuda_exec_t *exec, const gp_work_t *work)
{
    const gp_cuda_kernel_t *kernel;
    gp_cu_result_t result;
    gp_status_t status;
    uint32_t shared_bytes;
    int pushed;

    if (GP_OK != exec->failed) {
        return exec->failed;
    }
    if (exec->in_flight) {
        gp_log(GP_LOG_ERROR, "CUDA executor: start with a call in flight");
        return GP_ERR_INVALID;
    }
    status = gp_exec_check(exec, work, &kernel, &shared_bytes);
    if (GP_OK != status) {
        return status;
    }
    status = gp_cu_enter(exec->dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    exec->args.send = work->send;
    exec->args.recv = work->recv;
    exec->args.seq = exec->seq + 1;
    exec->args.geom = work->geom;
    exec->args.rop = work->red.rop;
    exec->args.ll_zero = gp_exec_advance(exec, &work->geom);
    result = gp_cu.cuLaunchKernel(kernel->function, work->geom.channels, 1, 1, work->threads, 1, 1,
                                  shared_bytes, exec->slot->stream, exec->params, NULL);
    gp_cu_leave(pushed);
    if (GP_CU_SUCCESS != result) {
        exec->failed = gp_cu_fail("cuLaunchKernel", result, NULL);
        return exec->failed;
    }
    ++exec->seq;
    exec->polls = 0;
    exec->in_flight = 1;
    return GP_OK;
}

/* Ask the driver whether the kernel is still there: a kernel that died never writes `done`. */
static gp_status_t gp_exec_query(gp_cuda_exec_t *exec)
{
    gp_cu_result_t result;
    int pushed;

    if (GP_OK != gp_cu_enter(exec->dev->prim->ctx, &pushed)) {
        exec->failed = GP_ERR_CUDA;
        return exec->failed;
    }
    result = gp_cu.cuStreamQuery(exec->slot->stream);
    gp_cu_leave(pushed);
    if (GP_CU_NOT_READY == result) {
        return GP_AGAIN;
    }
    if (GP_CU_SUCCESS != result) {
        exec->failed =
            gp_cu_fail("a kernel", result,
                       "the GPU context of this process is lost (a fault of any kernel, the "
                       "application's included, or a device reset)");
        return exec->failed;
    }
    if (!gp_exec_done(exec)) {
        gp_log(GP_LOG_ERROR, "CUDA executor: call %" PRIu64 " ended without reporting", exec->seq);
        exec->failed = GP_ERR_CUDA;
        return exec->failed;
    }
    return GP_OK;
}

/* Take what a call that ended left behind. */
static gp_status_t gp_exec_finish(gp_cuda_exec_t *exec)
{
    const gp_kstatus_t *status = exec->slot->status;

    exec->in_flight = 0;
    if (status->failed == exec->seq) {
        exec->wait = status->wait;
        exec->failed = GP_ERR_ABORTED;
        return GP_ERR_ABORTED;
    }
    exec->record = status->record;
    exec->record.steps = gp_load_relaxed_u64(&status->steps);
    exec->record.calls = exec->seq;
    return GP_OK;
}

gp_status_t gp_cuda_exec_progress(gp_cuda_exec_t *exec)
{
    gp_status_t status;

    if (GP_OK != exec->failed) {
        return exec->failed;
    }
    if (!exec->in_flight) {
        return GP_OK;
    }
    if (!gp_exec_done(exec)) {
        if (++exec->polls % GP_QUERY_POLLS != 0) {
            return GP_AGAIN;
        }
        status = gp_exec_query(exec);
        if (GP_OK != status) {
            return status;
        }
    }
    return gp_exec_finish(exec);
}

void gp_cuda_exec_waits_for(gp_cuda_exec_t *exec, gp_wait_info_t *info)
{
    memset(info, 0, sizeof(*info));
    if (GP_WAIT_NONE != exec->wait.kind) {
        *info = exec->wait;
    } else if (exec->in_flight && !gp_exec_done(exec)) {
        info->kind = GP_WAIT_LAUNCH;
        info->peer = exec->rank;
    }
}

static int64_t gp_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void gp_cuda_exec_ask(gp_cuda_exec_t *exec, gp_wait_info_t *info)
{
    int64_t deadline = gp_now_us() + GP_ASK_WAIT_US;
    gp_kstatus_t *status;
    uint64_t word = 0;

    gp_cuda_exec_waits_for(exec, info);
    if (GP_WAIT_LAUNCH != info->kind || GP_OK != exec->failed) {
        return;
    }
    status = exec->slot->status;
    gp_store_relaxed_u64(&status->asked[0], 0);
    gp_store_release_u32(&status->abort, GP_KABORT_ASK); /* kernel: relaxed poll, value only */
    while (!gp_exec_done(exec) && 0 == word && gp_now_us() < deadline) {
        sched_yield();
        word = gp_load_relaxed_u64(&status->asked[0]);
    }
    gp_store_release_u32(&status->abort, GP_KABORT_NO);
    if (0 != word) {
        info->kind = (uint32_t) (word & 0xff);
        info->channel = (uint32_t) (word >> 8 & 0xffffff);
        info->peer = (uint32_t) (word >> 32);
        info->step = gp_load_relaxed_u64(&status->asked[1]);
    }
}

void gp_cuda_exec_abort(gp_cuda_exec_t *exec)
{
    int64_t deadline = gp_now_us() + GP_ABORT_WAIT_US;
    gp_status_t status = GP_AGAIN;

    if (GP_OK != exec->failed) {
        return;
    }
    if (exec->in_flight) {
        /* The kernel polls it relaxed and takes the value only. */
        gp_store_release_u32(&exec->slot->status->abort, GP_KABORT_YES);
        while (!gp_exec_done(exec) && gp_now_us() < deadline && GP_AGAIN == status) {
            sched_yield();
            if (++exec->polls % GP_QUERY_POLLS == 0) {
                status = gp_exec_query(exec);
            }
        }
        if (GP_OK != exec->failed) {
            return;
        }
        if (gp_exec_done(exec)) {
            (void) gp_exec_finish(exec); /* even if it completed after all: the caller gave it up */
        } else {
            exec->wait.kind = GP_WAIT_LAUNCH;
            exec->wait.peer = exec->rank;
            gp_log(GP_LOG_WARN,
                   "CUDA executor: the aborted call has not left the GPU yet (not started "
                   "behind other work?); its memory stays reserved");
        }
    }
    exec->failed = GP_ERR_ABORTED;
}

void gp_cuda_exec_record(const gp_cuda_exec_t *exec, gp_exec_record_t *record)
{
    *record = exec->record;
}

/* ---- end ----------------------------------------------------------------------------------------- */

void gp_cuda_exec_destroy(gp_cuda_exec_t *exec)
{
    gp_arena_t *arena;
    gp_cu_result_t result = GP_CU_DEINITIALIZED; /* no context: nothing runs any more */
    int64_t deadline;
    int pushed = 0;

    if (NULL == exec) {
        return;
    }
    arena = gp_cuda_dev_arena(exec->dev);
    gp_cuda_exec_abort(exec);
    if (GP_OK == gp_cu_enter(exec->dev->prim->ctx, &pushed)) {
        deadline = gp_now_us() + GP_ABORT_WAIT_US;
        do {
            result = gp_cu.cuStreamQuery(exec->slot->stream);
        } while (GP_CU_NOT_READY == result && gp_now_us() < deadline && 0 == sched_yield());
    }
    if (GP_CU_NOT_READY != result) {
        gp_cuda_hostmap_destroy(exec->map);
        gp_cuda_slot_put(exec->dev, exec->slot);
        arena->free(arena, &exec->blob);
    } /* else the kernel may still touch all that: it stays reserved until the device closes */
    gp_cu_leave(pushed);
    free(exec->state);
    free(exec->chans);
    free(exec);
}
