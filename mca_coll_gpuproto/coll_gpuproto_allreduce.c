/*
 * coll_gpuproto_allreduce.c - the call: ours or decline, plan, run, wait.
 *
 * The way of a call that was planned before is short: look up the entry, start the executor, poll.
 * Everything else (agreement, connections, planning) happens at first use and is collective.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <sched.h>

#include "opal/runtime/opal_progress.h"

/* Polls without any progress between two looks at Open MPI's progress, and at the clock. */
#define POLLS_PER_PROGRESS 2048u
#define POLLS_PER_WATCH 65536u
/*
 * With more ranks than cores the peer may need our core: these few polls, then give it away. Each time
 * may take a time slice, so the clock is looked at sooner.
 */
#define POLLS_PER_YIELD 16u
#define POLLS_PER_WATCH_YIELD 2048u

mca_coll_gpuproto_stats_t mca_coll_gpuproto_stats = {
    .last_algorithm = -1,
    .last_protocol = -1,
    .last_channels = -1,
    .last_executor = -1,
    .last_loops = -1,
};

static inline const void *send_of(const void *sbuf, const void *rbuf)
{
    return MPI_IN_PLACE == sbuf ? rbuf : sbuf;
}

/* Not ours: the previous component, through host memory where it could not read the buffers. */
static int decline(mca_coll_gpuproto_module_t *m, const void *sbuf, void *rbuf, int count,
                   struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                   struct ompi_communicator_t *comm, const char *reason)
{
    gp_ptr_info_t s = {0}, r = {0};

    mca_coll_gpuproto_count(&mca_coll_gpuproto_stats.declined);
    if (OPAL_UNLIKELY(mca_coll_gpuproto_component.trace)) {
        mca_coll_gpuproto_trace(m, NULL, NULL, NULL, dtype, op, (size_t) count, reason);
    }
    if (count > 0 && GP_OK == gp_cuda_driver()) {
        /* A derived type's data may begin elsewhere than the buffer (MPI_BOTTOM: far away). */
        ptrdiff_t lb = dtype->super.true_lb;
        const char *in = (const char *) send_of(sbuf, rbuf) + lb, *out = (const char *) rbuf + lb;

        if (GP_OK != gp_cuda_ptr_info(in, &s) || GP_OK != gp_cuda_ptr_info(out, &r)
            || GP_OK != gp_cuda_settle(in, &s) || GP_OK != gp_cuda_settle(out, &r)) {
            return OMPI_ERROR;
        }
        if (s.is_device || r.is_device) {
            return mca_coll_gpuproto_stage(m, sbuf, s.is_device, rbuf, r.is_device, count, dtype,
                                           op, comm);
        }
    }
    return m->prev_allreduce(sbuf, rbuf, count, dtype, op, comm, m->prev_allreduce_module);
}

/* The communicator cannot be used any more: ranks or FIFOs are in the middle of something. */
static int give_up(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                   const char *waited_for, gp_status_t status)
{
    cls->state = MCA_COLL_GPUPROTO_FAILED;
    snprintf(cls->reason, sizeof(cls->reason), "%s", waited_for);
    mca_coll_gpuproto_say("call failed", mca_coll_gpuproto_cid(m->comm), ompi_comm_rank(m->comm),
                          waited_for, (int) status);
    return MPI_ERR_OTHER;
}

static uint32_t cache_hash(size_t count, const void *dtype, const void *op)
{
    uint64_t both = (uintptr_t) dtype >> 5 ^ (uint64_t) ((uintptr_t) op >> 3) << 20;
    uint64_t h = ((uint64_t) count ^ both) * 0x9e3779b97f4a7c15ull;

    return (uint32_t) (h >> 40) % MCA_COLL_GPUPROTO_CACHE_HASHES;
}

/* The plan of a call if it is remembered, else a place for it: an empty one, or each in its turn. */
static inline mca_coll_gpuproto_entry_t *cache_find(mca_coll_gpuproto_class_t *cls, size_t count,
                                                    const struct ompi_datatype_t *dtype,
                                                    const struct ompi_op_t *op)
{
    mca_coll_gpuproto_entry_t *ways = cls->cache[cache_hash(count, dtype, op)];

    for (uint32_t i = 0; i < MCA_COLL_GPUPROTO_CACHE_WAYS; i++) {
        if (ways[i].dtype == dtype && ways[i].count == count && ways[i].op == op) {
            return &ways[i];
        }
    }
    for (uint32_t i = 0; i < MCA_COLL_GPUPROTO_CACHE_WAYS; i++) {
        if (NULL == ways[i].dtype) {
            return &ways[i];
        }
    }
    return &ways[cls->cache_next++ % MCA_COLL_GPUPROTO_CACHE_WAYS];
}

/* First use of (count, type, op): plan it, connect what the plan needs. Collective. */
static int plan_entry(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls, size_t count,
                      struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                      mca_coll_gpuproto_entry_t *e)
{
    static const char *told;
    const char *reason = NULL;
    mca_coll_gpuproto_set_t *set = NULL;
    gp_status_t status;
    int rc;

    e->dtype = NULL; /* not found until it is whole */
    e->set = NULL;
    e->declined = NULL;
    if (!mca_coll_gpuproto_map(dtype, op, &e->type, &e->gp_op)) {
        e->declined = "type or operation not ours";
        return OMPI_SUCCESS; /* not remembered: a derived type's address may come again */
    }
    status = gp_plan_make_from(&cls->desc, &m->params, &cls->plan_sets, count, e->type, e->gp_op,
                               &e->plan, &reason);
    if (GP_OK != status) {
        e->declined = reason;
    } else {
        rc = mca_coll_gpuproto_set_get(m, cls, e->plan.algorithm, e->plan.protocol, &set, &reason);
        if (OMPI_ERR_NOT_SUPPORTED == rc) {
            /* The same on all ranks: nothing of this class can be trusted to work from now on. */
            e->declined = reason;
            cls->state = MCA_COLL_GPUPROTO_DECLINED;
            snprintf(cls->reason, sizeof(cls->reason), "%s", reason);
        } else if (OMPI_ERR_TIMEOUT == rc) {
            return give_up(m, cls, "all ranks to make connections", GP_ERR_ABORTED);
        } else if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    if (NULL != e->declined && told != e->declined && 0 == ompi_comm_rank(m->comm)) {
        told = e->declined; /* once per reason, not per size */
        mca_coll_gpuproto_say("declined", mca_coll_gpuproto_cid(m->comm), e->declined);
    }
    e->set = set;
    e->count = count;
    e->op = op;
    e->dtype = dtype;
    return OMPI_SUCCESS;
}

static int fail(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                const gp_wait_info_t *info, gp_status_t status)
{
    char text[128];

    mca_coll_gpuproto_describe_wait(info, text, sizeof(text));
    return give_up(m, cls, text, status);
}

static int run_host(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                    mca_coll_gpuproto_entry_t *e, const gp_work_t *work, gp_exec_record_t *record)
{
    gp_host_exec_t *exec = e->set->host;
    gp_net_set_t *far = e->set->conns->far;
    const uint32_t per_watch = cls->yield ? POLLS_PER_WATCH_YIELD : POLLS_PER_WATCH;
    mca_coll_gpuproto_watch_t watch = {0};
    gp_wait_info_t info;
    uint32_t idle = 0;
    gp_status_t status = gp_host_exec_start(exec, work);

    while (GP_OK == status) {
        int moved = 0;

        status = gp_host_exec_progress(exec, &moved);
        if (NULL != far && GP_OK <= status) {
            /* What this rank owes its peers must have left the process before the call returns. */
            gp_status_t net = gp_net_set_progress(far, &moved);

            if (GP_OK == net && GP_OK == status) {
                net = gp_net_set_settled(far);
            }
            status = GP_OK != net ? net : status;
        }
        if (GP_AGAIN != status) {
            break;
        }
        status = GP_OK;
        if (moved) {
            idle = 0;
            watch.start_s = 0; /* the clock counts from the last thing that happened */
        }
        idle++;
        gp_cpu_relax();
        /* A net's interrupts want a core too, and a poll of it takes long enough. */
        if (cls->yield && (NULL != far || 0 == idle % POLLS_PER_YIELD)) {
            sched_yield();
        }
        if (0 == idle % POLLS_PER_PROGRESS) {
            opal_progress();
            gp_host_exec_waits_for(exec, &info);
            if (0 == idle % per_watch
                && mca_coll_gpuproto_watch(&watch, m->comm, "host executor", &info)) {
                gp_host_exec_abort(exec);
                status = GP_ERR_ABORTED;
            }
        }
    }
    if (GP_OK != status) {
        gp_host_exec_waits_for(exec, &info);
        return fail(m, cls, &info, status);
    }
    gp_host_exec_record(exec, record);
    return OMPI_SUCCESS;
}

static int poll_cuda(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                     mca_coll_gpuproto_entry_t *e, const gp_work_t *work,
                     gp_exec_record_t *record)
{
    gp_cuda_exec_t *exec = e->set->cuda;
    const uint32_t per_watch = cls->yield ? POLLS_PER_WATCH_YIELD : POLLS_PER_WATCH;
    mca_coll_gpuproto_watch_t watch = {0};
    gp_wait_info_t info;
    uint32_t idle = 0;
    gp_status_t status = gp_cuda_exec_start(exec, work);

    while (GP_OK == status) {
        status = gp_cuda_exec_progress(exec);
        if (GP_AGAIN != status) {
            break;
        }
        status = GP_OK;
        idle++;
        gp_cpu_relax();
        if (cls->yield && 0 == idle % POLLS_PER_YIELD) {
            sched_yield();
        }
        if (0 == idle % POLLS_PER_PROGRESS) {
            opal_progress();
            if (0 != idle % per_watch) {
                continue;
            }
            if (mca_coll_gpuproto_watch_due(&watch)) {
                gp_cuda_exec_ask(exec, &info);
            } else {
                gp_cuda_exec_waits_for(exec, &info);
            }
            if (mca_coll_gpuproto_watch(&watch, m->comm, "CUDA executor", &info)) {
                gp_cuda_exec_abort(exec);
                status = GP_ERR_ABORTED;
            }
        }
    }
    if (GP_OK != status) {
        gp_cuda_exec_waits_for(exec, &info);
        return fail(m, cls, &info, status);
    }
    gp_cuda_exec_record(exec, record);
    return OMPI_SUCCESS;
}

static int run_cuda(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                    mca_coll_gpuproto_entry_t *e, const gp_work_t *work, gp_exec_record_t *record)
{
    gp_wait_info_t info;
    gp_status_t status;
    int rc;

    if (!mca_coll_gpuproto_is_wide(cls, work)) {
        return poll_cuda(m, cls, e, work, record);
    }
    status = mca_coll_gpuproto_gate_pass(m, cls, &info);
    if (GP_OK != status) {
        return fail(m, cls, &info, status);
    }
    rc = poll_cuda(m, cls, e, work, record);
    gp_gate_leave(cls->gate);
    return rc;
}

/* Device memory that kernels can reach, in place of a buffer they cannot. Grows, lives with the class. */
static int bounce(mca_coll_gpuproto_class_t *cls, int which, size_t bytes, void **ptr)
{
    if (cls->bounce_bytes[which] < bytes) {
        gp_cuda_dev_free(cls->dev, cls->bounce[which]);
        cls->bounce[which] = NULL;
        cls->bounce_bytes[which] = 0;
        if (GP_OK != gp_cuda_dev_alloc(cls->dev, bytes, &cls->bounce[which])) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        cls->bounce_bytes[which] = bytes;
    }
    *ptr = cls->bounce[which];
    return OMPI_SUCCESS;
}

/* Device class with buffers as the application gave them. */
static int call_cuda(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                     mca_coll_gpuproto_entry_t *e, const void *sbuf, const gp_ptr_info_t *s,
                     void *rbuf, const gp_ptr_info_t *r, gp_work_t *work, gp_exec_record_t *record)
{
    size_t bytes = e->count * e->plan.red.elem_bytes;
    bool in_place = MPI_IN_PLACE == sbuf || sbuf == rbuf;
    void *to = rbuf;
    int rc;

    if (GP_OK != gp_cuda_settle(send_of(sbuf, rbuf), s) || GP_OK != gp_cuda_settle(rbuf, r)) {
        return OMPI_ERROR;
    }
    work->recv = rbuf;
    if (!gp_cuda_dev_reaches(cls->dev, r)) {
        rc = bounce(cls, 1, bytes, &to);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        work->recv = to;
    }
    work->send = in_place ? work->recv : sbuf;
    if (in_place && to != rbuf) {
        if (GP_OK != gp_cuda_copy(to, rbuf, bytes)) {
            return OMPI_ERROR;
        }
    } else if (!in_place && !gp_cuda_dev_reaches(cls->dev, s)) {
        void *from;

        rc = bounce(cls, 0, bytes, &from);
        if (OMPI_SUCCESS != rc || GP_OK != gp_cuda_copy(from, sbuf, bytes)) {
            return OMPI_SUCCESS != rc ? rc : OMPI_ERROR;
        }
        work->send = from;
    }
    rc = run_cuda(m, cls, e, work, record);
    if (OMPI_SUCCESS == rc && to != rbuf && GP_OK != gp_cuda_copy(rbuf, to, bytes)) {
        rc = OMPI_ERROR;
    }
    return rc;
}

static void count_call(mca_coll_gpuproto_class_t *cls, const gp_exec_record_t *record)
{
    mca_coll_gpuproto_stats_t *st = &mca_coll_gpuproto_stats;

    mca_coll_gpuproto_count(&st->calls);
    if (MCA_COLL_GPUPROTO_CLASS_HOST == cls->id) {
        mca_coll_gpuproto_count(&st->host_calls);
        st->last_executor = GP_EXEC_HOST;
    } else {
        mca_coll_gpuproto_count(&st->cuda_calls);
        st->last_executor = GP_EXEC_CUDA;
    }
    st->last_algorithm = (int) record->algorithm;
    st->last_protocol = (int) record->protocol;
    st->last_channels = (int) record->channels;
    st->last_loops = (int) record->loops;
}

/* May calls of this class be ours at all? Decided without a message, alike on all ranks. */
static bool class_wanted(mca_coll_gpuproto_module_t *m, const mca_coll_gpuproto_class_t *cls)
{
    const mca_coll_gpuproto_component_t *c = &mca_coll_gpuproto_component;
    int rank = ompi_comm_rank(m->comm), absent = 0;

    if (MCA_COLL_GPUPROTO_CLASS_HOST == cls->id
        && !(1 == c->host_buffers_value || (GP_AUTO == c->host_buffers_value && c->named))) {
        return false;
    }
    if (!m->checked) {
        static bool told;

        m->checked = true;
        if (!mca_coll_gpuproto_all_present(m->comm, m->reason, sizeof(m->reason), &absent)) {
            m->eligible = false;
            /* Rank 0 tells the user; if it is the absent one, the next. */
            if (!told && rank == (0 == absent)) {
                told = true;
                mca_coll_gpuproto_say("declined", mca_coll_gpuproto_cid(m->comm), m->reason);
            }
        }
    }
    return m->eligible;
}

int mca_coll_gpuproto_allreduce(const void *sbuf, void *rbuf, int count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_gpuproto_module_t *m = (mca_coll_gpuproto_module_t *) module;
    mca_coll_gpuproto_class_t *cls = &m->classes[MCA_COLL_GPUPROTO_CLASS_HOST];
    mca_coll_gpuproto_entry_t *e;
    gp_ptr_info_t s = {0}, r = {0};
    gp_exec_record_t record;
    gp_work_t work;
    int rc;

    m->seq++;
    if (!m->eligible || count <= 0) {
        return decline(m, sbuf, rbuf, count, dtype, op, comm, m->eligible ? "empty" : m->reason);
    }
    if (GP_OK == gp_cuda_driver()) {
        if (GP_OK != gp_cuda_ptr_info(send_of(sbuf, rbuf), &s)
            || GP_OK != gp_cuda_ptr_info(rbuf, &r)) {
            return OMPI_ERROR;
        }
        if (s.is_device || r.is_device) {
            cls = &m->classes[MCA_COLL_GPUPROTO_CLASS_DEVICE];
        }
    }
    if (MCA_COLL_GPUPROTO_OURS != cls->state) {
        if (MCA_COLL_GPUPROTO_UNKNOWN == cls->state) {
            if (!class_wanted(m, cls)) {
                return decline(m, sbuf, rbuf, count, dtype, op, comm,
                               m->eligible ? "host buffers (host_buffers)" : m->reason);
            }
            rc = mca_coll_gpuproto_agree(m, cls, r.is_device ? r.device : s.device);
            if (OMPI_SUCCESS != rc) {
                return rc;
            }
        }
        if (MCA_COLL_GPUPROTO_FAILED == cls->state) {
            if (!cls->told_failed) {
                cls->told_failed = true;
                mca_coll_gpuproto_say("still failed", mca_coll_gpuproto_cid(comm), cls->reason);
            }
            return MPI_ERR_OTHER;
        }
        if (MCA_COLL_GPUPROTO_DECLINED == cls->state) {
            return decline(m, sbuf, rbuf, count, dtype, op, comm, cls->reason);
        }
    }
    e = cache_find(cls, (size_t) count, dtype, op);
    if (OPAL_UNLIKELY(e->dtype != dtype || e->count != (size_t) count || e->op != op)) {
        rc = plan_entry(m, cls, (size_t) count, dtype, op, e);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    if (OPAL_UNLIKELY(NULL == e->set)) {
        return decline(m, sbuf, rbuf, count, dtype, op, comm, e->declined);
    }
    work.geom = e->plan.geom;
    work.red = e->plan.red;
    work.threads = e->plan.threads;
    if (MCA_COLL_GPUPROTO_CLASS_HOST == cls->id) {
        work.send = send_of(sbuf, rbuf);
        work.recv = rbuf;
        rc = run_host(m, cls, e, &work, &record);
    } else {
        rc = call_cuda(m, cls, e, sbuf, &s, rbuf, &r, &work, &record);
    }
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    for (uint32_t c = 0; c < e->plan.geom.channels; c++) {
        e->set->loops[c] += e->plan.geom.loops;
    }
    count_call(cls, &record);
    if (OPAL_UNLIKELY(mca_coll_gpuproto_component.trace)) {
        mca_coll_gpuproto_trace(m, cls, &record, &e->plan, dtype, op, (size_t) count,
                                e->plan.reason);
    }
    return OMPI_SUCCESS;
}
