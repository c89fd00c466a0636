/*
 * gp_host_exec.c - the host executor: a resumable interpreter of programs.
 *
 * Owns the cursors (one per stream) and their advance. A cursor stands at (loop, step, pos): a step
 * begins when all its credits are there (and, for protocols with a tail, all its inputs are filled), is
 * moved in blocks of bytes, and ends by publishing its sends and freeing its inputs. Whenever a wait
 * would be needed the cursor stays where it is and the next progress call goes on from there; a block
 * whose lines have not all arrived is read again from its start, so nothing partial is kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/host/gp_host.h"

#include <stdlib.h>
#include <string.h>

#include "device/host/gp_host_move.h"
#include "device/host/gp_host_reduce.h"
#include "device/proto/gp_log.h"
#include "device/proto/gp_simple.h"

typedef struct cursor {
    const gp_program_t *program;
    const gp_stream_t *stream;
    gp_conn_t *recv;
    gp_conn_t *send;
    uint32_t channel;
    uint32_t step;       /* within the stream */
    uint64_t loop;
    uint64_t pos_bytes;  /* of the step's chunk: done */
    int begun;           /* credits (and tails) of this step are there */
} cursor_t;

struct gp_host_exec {
    gp_connset_t *set;
    const gp_program_t **programs;
    cursor_t *cursors;       /* all channels' streams, channel by channel */
    uint32_t *first_cursor;  /* [channels + 1] */
    uint32_t active_first;   /* cursors below this one have finished the call */
    uint32_t n_active;       /* cursors of the call in flight */
    uint32_t n_done;
    int busy;
    int aborted;
    int zeroing;             /* some send FIFO still has to be zeroed */
    int pow2;                /* n_slots is a power of two */
    int gated;               /* some connection of lines is behind a tail */
    gp_work_t work;
    gp_host_reduce_fn reduce;
    gp_wait_info_t wait;
    gp_exec_record_t record;
    uint64_t steps;          /* executed in the call in flight */
    unsigned char *acc;      /* GP_HOST_BLOCK_BYTES_MAX: a partial reduction */
    unsigned char *in;       /* the same: payload taken out of lines */
};

gp_status_t gp_host_exec_create(const gp_program_t *const *programs, gp_connset_t *set,
                                gp_host_exec_t **exec_p)
{
    gp_host_exec_t *e = calloc(1, sizeof(*e));
    uint32_t n = 0;

    if (NULL == e) {
        goto err_memory;
    }
    for (uint32_t c = 0; c < set->desc.channels; c++) {
        const gp_program_t *p = programs[c];

        if (p->n_recv != set->n_recv[c] || p->n_send != set->n_send[c]) {
            gp_log(GP_LOG_ERROR, "host executor: channel %u: the program has %u + %u links, the "
                   "connection set %u + %u", c, p->n_recv, p->n_send, set->n_recv[c],
                   set->n_send[c]);
            free(e);
            return GP_ERR_INVALID;
        }
        n += p->n_streams;
    }
    e->set = set;
    e->pow2 = 0 == (set->desc.n_slots & (set->desc.n_slots - 1));
    e->gated = NULL != set->far || set->desc.gated;
    e->programs = calloc(set->desc.channels, sizeof(*e->programs));
    e->cursors = calloc(n, sizeof(*e->cursors));
    e->first_cursor = calloc(set->desc.channels + 1, sizeof(*e->first_cursor));
    e->acc = aligned_alloc(64, GP_HOST_BLOCK_BYTES_MAX);
    e->in = aligned_alloc(64, GP_HOST_BLOCK_BYTES_MAX);
    if (NULL == e->programs || NULL == e->cursors || NULL == e->first_cursor || NULL == e->acc
        || NULL == e->in) {
        goto err_memory;
    }
    n = 0;
    for (uint32_t c = 0; c < set->desc.channels; c++) {
        e->programs[c] = programs[c];
        e->first_cursor[c] = n;
        for (uint32_t s = 0; s < programs[c]->n_streams; s++) {
            cursor_t *cur = &e->cursors[n++];

            cur->program = programs[c];
            cur->stream = &programs[c]->streams[s];
            cur->recv = set->recv[c];
            cur->send = set->send[c];
            cur->channel = c;
        }
    }
    e->first_cursor[set->desc.channels] = n;
    *exec_p = e;
    return GP_OK;

err_memory:
    gp_log(GP_LOG_ERROR, "host executor: out of host memory");
    gp_host_exec_destroy(e);
    return GP_ERR_NO_MEMORY;
}

void gp_host_exec_destroy(gp_host_exec_t *e)
{
    if (NULL == e) {
        return;
    }
    free(e->programs);
    free(e->cursors);
    free(e->first_cursor);
    free(e->acc);
    free(e->in);
    free(e);
}

/*
 * LL: would this call bring a send FIFO past the age at which old flags could be taken for new ones? Over a
 * net nobody looks at flags before the tail says so.
 */
static int must_zero(const gp_host_exec_t *e, const gp_conn_t *conn, uint32_t uses)
{
    return GP_PROTO_LL == e->set->desc.protocol && GP_PATH_NET != conn->path
           && conn->step + e->work.geom.loops * uses - conn->zeroed > GP_LL_ZERO_STEPS;
}

gp_status_t gp_host_exec_start(gp_host_exec_t *e, const gp_work_t *work)
{
    if (e->aborted) {
        return GP_ERR_ABORTED;
    }
    e->reduce = gp_host_reduce_of(work->red);
    if (e->busy || NULL == e->reduce || work->geom.channels > e->set->desc.channels
        || 0 == work->geom.channels || 0 == work->geom.loops) {
        gp_log(GP_LOG_ERROR,
               "host executor: a call that cannot be run (busy %d, %u of %u channels)", e->busy,
               work->geom.channels, e->set->desc.channels);
        return GP_ERR_INVALID;
    }
    e->work = *work;
    e->busy = 1;
    e->steps = 0;
    e->n_done = 0;
    e->active_first = 0;
    e->n_active = e->first_cursor[work->geom.channels];
    e->wait.kind = GP_WAIT_NONE;
    e->zeroing = 0;
    for (uint32_t i = 0; i < e->n_active; i++) {
        cursor_t *cur = &e->cursors[i];

        cur->loop = 0;
        cur->step = 0;
        cur->pos_bytes = 0;
        cur->begun = 0;
    }
    if (GP_PROTO_LL == e->set->desc.protocol) {
        for (uint32_t c = 0; c < work->geom.channels && !e->zeroing; c++) {
            for (uint32_t i = 0; i < e->set->n_send[c]; i++) {
                e->zeroing |= must_zero(e, &e->set->send[c][i], e->programs[c]->send[i].uses);
            }
        }
    }
    return GP_OK;
}

static void waits(gp_host_exec_t *e, const cursor_t *cur, gp_wait_kind_t kind,
                  const gp_conn_t *conn, uint64_t step)
{
    if (GP_WAIT_NONE == e->wait.kind) { /* the first wait of a pass is the one to tell */
        e->wait.kind = (uint32_t) kind;
        e->wait.channel = cur->channel;
        e->wait.peer = conn->peer;
        e->wait.step = step;
    }
}

/* Zero every send FIFO that is due and drained. 1 when none is left. */
static int zero_fifos(gp_host_exec_t *e)
{
    int left = 0;

    for (uint32_t c = 0; c < e->work.geom.channels; c++) {
        for (uint32_t i = 0; i < e->set->n_send[c]; i++) {
            gp_conn_t *conn = &e->set->send[c][i];

            if (!must_zero(e, conn, e->programs[c]->send[i].uses) || conn->zeroed == conn->step) {
                continue;
            }
            conn->seen = gp_load_acquire_u64(conn->head); /* with gp_simple_release() */
            /* An empty chunk has no lines to wait for: a receiver may be ahead of us. */
            if (conn->seen < conn->step) {
                left = 1;
                waits(e, &e->cursors[e->first_cursor[c]], GP_WAIT_CREDIT, conn, conn->step);
                continue;
            }
            for (uint32_t s = 0; s < conn->n_slots; s++) {
                gp_ll_zero_slot(conn->slots + s * conn->slot_bytes, conn->slot_bytes);
            }
            conn->zeroed = conn->step;
        }
    }
    return !left;
}

static uint64_t ref_step(const cursor_t *cur, const gp_conn_t *conn, const gp_link_t *link,
                         const gp_ref_t *ref)
{
    return conn->step + cur->loop * link->uses + ref->ordinal;
}

static unsigned char *slot_of(const gp_host_exec_t *e, const gp_conn_t *conn, uint64_t step)
{
    uint64_t slot = e->pow2 ? step & (conn->n_slots - 1) : step % conn->n_slots;

    return conn->slots + slot * conn->slot_bytes;
}

/* Are all credits, and for protocols with a tail all inputs, there? */
static int begin_step(gp_host_exec_t *e, cursor_t *cur, const gp_step_t *s)
{
    const gp_program_t *p = cur->program;
    uint32_t protocol = e->set->desc.protocol;

    for (uint32_t i = 0; i < s->n_send; i++) {
        const gp_ref_t *ref = &p->refs[s->send_first + i];
        gp_conn_t *conn = &cur->send[ref->conn];
        uint64_t step = ref_step(cur, conn, &p->send[ref->conn], ref);

        if (!gp_simple_credit(conn, step)) {
            waits(e, cur, GP_WAIT_CREDIT, conn, step);
            return 0;
        }
    }
    for (uint32_t i = 0; i < s->n_in && (GP_PROTO_LL != protocol || e->gated); i++) {
        const gp_ref_t *ref = &p->refs[s->in_first + i];
        gp_conn_t *conn;
        uint64_t step;

        if (GP_REF_OWN == ref->conn) {
            continue;
        }
        conn = &cur->recv[ref->conn];
        if (GP_PROTO_SIMPLE != protocol && !conn->gated) {
            continue;
        }
        step = ref_step(cur, conn, &p->recv[ref->conn], ref);
        if (!gp_simple_ready(conn, step)) {
            waits(e, cur, GP_WAIT_DATA, conn, step);
            return 0;
        }
    }
    return 1;
}

/*
 * Where the payload bytes [pos, pos + bytes) of an input can be read: NULL when they are not all there.
 * Lines are taken apart into `scratch`.
 */
static const unsigned char *take_input(gp_host_exec_t *e, cursor_t *cur, const gp_ref_t *ref,
                                       uint64_t offset_bytes, uint64_t pos, size_t bytes,
                                       unsigned char *scratch)
{
    const gp_program_t *p = cur->program;
    gp_conn_t *conn;
    uint64_t step;
    const unsigned char *slot;

    if (GP_REF_OWN == ref->conn) {
        return (const unsigned char *) e->work.send + offset_bytes + pos;
    }
    conn = &cur->recv[ref->conn];
    step = ref_step(cur, conn, &p->recv[ref->conn], ref);
    slot = slot_of(e, conn, step);
    if (GP_PROTO_SIMPLE == e->set->desc.protocol) {
        return slot + pos;
    }
    if (!gp_host_take(e->set->desc.protocol, slot, step, pos, bytes, scratch)) {
        waits(e, cur, GP_WAIT_DATA, conn, step);
        return NULL;
    }
    return scratch;
}

/* Move one block of a step. 0: it would wait, nothing was done. */
static int move_block(gp_host_exec_t *e, cursor_t *cur, const gp_step_t *s, uint64_t offset_bytes,
                      size_t bytes)
{
    const gp_program_t *p = cur->program;
    uint32_t protocol = e->set->desc.protocol;
    uint64_t pos = cur->pos_bytes;
    unsigned char *out = (unsigned char *) e->work.recv + offset_bytes + pos;
    int has_out = 0 != (s->flags & GP_STEP_OUTPUT);
    size_t elems = bytes / e->work.geom.elem_bytes;
    const unsigned char *result;

    if (1 == s->n_in) {
        result = take_input(e, cur, &p->refs[s->in_first], offset_bytes, pos, bytes, e->in);
        if (NULL == result) {
            return 0;
        }
    } else {
        /*
         * In place, `out` may be an input that is still to be read when there are more than two: the
         * partial result then stays in acc. With two, element by element, it may be either.
         */
        unsigned char *to = 2 == s->n_in && has_out ? out : e->acc;
        const unsigned char *left = take_input(e, cur, &p->refs[s->in_first], offset_bytes, pos,
                                               bytes, e->acc);

        for (uint32_t i = 1; i < s->n_in; i++) {
            const unsigned char *right;

            if (NULL == left) {
                return 0;
            }
            right = take_input(e, cur, &p->refs[s->in_first + i], offset_bytes, pos, bytes, e->in);
            if (NULL == right) {
                return 0;
            }
            e->reduce(to, left, right, elems);
            left = to;
        }
        result = to;
    }
    if (has_out && result != out) {
        memcpy(out, result, bytes);
    }
    for (uint32_t i = 0; i < s->n_send; i++) {
        const gp_ref_t *ref = &p->refs[s->send_first + i];
        gp_conn_t *conn = &cur->send[ref->conn];
        uint64_t step = ref_step(cur, conn, &p->send[ref->conn], ref);

        gp_host_put(protocol, slot_of(e, conn, step), step, pos, result, bytes);
    }
    return 1;
}

/* Publish what was sent, free what was received. */
static void end_step(gp_host_exec_t *e, cursor_t *cur, const gp_step_t *s, uint64_t bytes)
{
    const gp_program_t *p = cur->program;
    uint32_t protocol = e->set->desc.protocol;

    for (uint32_t i = 0; i < s->n_send; i++) {
        const gp_ref_t *ref = &p->refs[s->send_first + i];
        gp_conn_t *conn = &cur->send[ref->conn];

        if (GP_PROTO_SIMPLE == protocol || conn->gated) {
            gp_simple_publish(conn, ref_step(cur, conn, &p->send[ref->conn], ref), bytes);
        }
    }
    for (uint32_t i = 0; i < s->n_in; i++) {
        const gp_ref_t *ref = &p->refs[s->in_first + i];

        if (GP_REF_OWN != ref->conn) {
            gp_conn_t *conn = &cur->recv[ref->conn];

            gp_simple_release(conn, ref_step(cur, conn, &p->recv[ref->conn], ref));
        }
    }
    e->steps++;
}

/* Run a cursor until it waits (0) or has finished the call (1). */
static int run_cursor(gp_host_exec_t *e, cursor_t *cur, int *moved)
{
    const gp_geom_t *g = &e->work.geom;
    size_t block = gp_host_block_bytes(e->set->desc.protocol);

    while (cur->loop < g->loops) {
        const gp_step_t *s = &cur->program->steps[cur->stream->first + cur->step];
        uint64_t offset, bytes;

        if (!cur->begun) {
            if (!begin_step(e, cur, s)) {
                return 0;
            }
            cur->begun = 1;
        }
        bytes = gp_chunk_range(g, cur->channel, cur->loop, s->chunk, &offset) * g->elem_bytes;
        while (cur->pos_bytes < bytes) {
            uint64_t left = bytes - cur->pos_bytes;
            size_t now = left < block ? (size_t) left : block;

            if (!move_block(e, cur, s, offset * g->elem_bytes, now)) {
                return 0;
            }
            cur->pos_bytes += now;
            *moved = 1;
        }
        end_step(e, cur, s, bytes);
        *moved = 1;
        cur->begun = 0;
        cur->pos_bytes = 0;
        if (++cur->step == cur->stream->count) {
            cur->step = 0;
            cur->loop++;
        }
    }
    return 1;
}

/* All cursors are through: the connections' steps move on, the record says what ran. */
static void finish(gp_host_exec_t *e)
{
    gp_connset_t *set = e->set;
    uint64_t loops = e->work.geom.loops;

    for (uint32_t c = 0; c < e->work.geom.channels; c++) {
        const gp_program_t *p = e->programs[c];

        for (uint32_t i = 0; i < p->n_recv; i++) {
            set->recv[c][i].step += loops * p->recv[i].uses;
        }
        for (uint32_t i = 0; i < p->n_send; i++) {
            set->send[c][i].step += loops * p->send[i].uses;
        }
    }
    e->record.calls++;
    e->record.algorithm = e->programs[0]->algorithm;
    e->record.protocol = set->desc.protocol;
    e->record.channels = e->work.geom.channels;
    e->record.threads = 1;
    e->record.loops = loops;
    e->record.chunk_elems = e->work.geom.chunk_elems;
    e->record.steps = e->steps;
    e->busy = 0;
}

gp_status_t gp_host_exec_progress(gp_host_exec_t *e, int *progressed)
{
    int moved, any = 0;

    if (e->aborted) {
        return GP_ERR_ABORTED;
    }
    if (!e->busy) {
        return GP_OK;
    }
    do {
        moved = 0;
        e->wait.kind = GP_WAIT_NONE;
        if (e->zeroing) {
            if (!zero_fifos(e)) {
                break;
            }
            e->zeroing = 0;
        }
        for (uint32_t i = e->active_first; i < e->n_active; i++) {
            cursor_t *cur = &e->cursors[i];

            if (cur->loop == e->work.geom.loops) {
                continue;
            }
            if (run_cursor(e, cur, &moved)) {
                e->n_done++;
            }
        }
        while (e->active_first < e->n_active
               && e->cursors[e->active_first].loop == e->work.geom.loops) {
            e->active_first++;
        }
        any |= moved;
    } while (moved && e->n_done < e->n_active);
    if (NULL != progressed) {
        *progressed = any;
    }
    if (e->zeroing || e->n_done < e->n_active) {
        return GP_AGAIN;
    }
    finish(e);
    return GP_OK;
}

void gp_host_exec_waits_for(const gp_host_exec_t *e, gp_wait_info_t *info)
{
    *info = e->wait;
    if (!e->busy) {
        info->kind = GP_WAIT_NONE;
    }
}

void gp_host_exec_abort(gp_host_exec_t *e)
{
    e->aborted = 1;
}

void gp_host_exec_record(const gp_host_exec_t *e, gp_exec_record_t *record)
{
    *record = e->record;
}
