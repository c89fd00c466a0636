/*
 * coll_gpuproto_agree.c - the one exchange by which all ranks come to the same view of a communicator.
 *
 * Every rank contributes what it is and what it can; from the gathered records each computes the same
 * description, or the same reason to decline. After that, plans are pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

/* One rank's record. Fixed size, no pointers. */
typedef struct record {
    uint64_t host;          /* hash of boot id, host name and IPC namespace */
    uint32_t class_id;      /* mca_coll_gpuproto_class_id_t */
    int32_t able;           /* 1: this rank can */
    uint32_t has_gpu;       /* a CUDA driver is loaded in the process */
    uint32_t mps;
    uint32_t capability;
    uint32_t sm_count;
    uint32_t local_procs;   /* of the job on this host */
    uint32_t cores;
    uint32_t threads;       /* MPI_THREAD_MULTIPLE: several communicators may run at once */
    uint32_t net;           /* UCX is compiled in */
    unsigned char uuid[16];
    char reason[96];        /* of a rank that cannot */
} record_t;

/*
 * Allgather of bytes through the nonblocking collective of whoever else serves this communicator. The
 * request cannot be taken back when the time is up, so it works on memory of its own, which is then
 * left to it.
 */
static gp_status_t boot_allgather(void *ctx, const void *send, void *recv, size_t bytes)
{
    mca_coll_gpuproto_module_t *m = ctx;
    mca_coll_gpuproto_watch_t watch = {0};
    struct ompi_communicator_t *comm = m->comm;
    size_t n = (size_t) ompi_comm_size(comm);
    gp_status_t status = GP_OK;
    ompi_request_t *request;
    char *own; /* n records, then the one that is sent */
    int done = 0;
    int rc;

    if (NULL == comm->c_coll->coll_iallgather) {
        return GP_ERR_UNSUPPORTED;
    }
    own = malloc((n + 1) * bytes);
    if (NULL == own) {
        gp_log(GP_LOG_ERROR, "set-up exchange: out of host memory");
        return GP_ERR_NO_MEMORY;
    }
    memcpy(own + n * bytes, send, bytes);
    rc = comm->c_coll->coll_iallgather(own + n * bytes, (int) bytes, &ompi_mpi_byte.dt, own,
                                       (int) bytes, &ompi_mpi_byte.dt, comm, &request,
                                       comm->c_coll->coll_iallgather_module);
    for (uint32_t polls = 0; OMPI_SUCCESS == rc; polls++) {
        rc = ompi_request_test(&request, &done, MPI_STATUS_IGNORE);
        if (done) {
            break;
        }
        if (0 == polls % 1024
            && mca_coll_gpuproto_watch(&watch, comm, "setting up: all ranks are needed", NULL)) {
            return GP_ERR_ABORTED;
        }
    }
    if (OMPI_SUCCESS == rc) {
        memcpy(recv, own, n * bytes);
    } else {
        gp_log(GP_LOG_ERROR, "communicator %u: the set-up exchange failed (%d)",
               mca_coll_gpuproto_cid(comm), rc);
        status = GP_ERR_PEER;
    }
    free(own);
    return status;
}

void mca_coll_gpuproto_boot(mca_coll_gpuproto_module_t *m, gp_boot_t *boot)
{
    boot->ctx = m;
    boot->rank = (uint32_t) ompi_comm_rank(m->comm);
    boot->n_ranks = (uint32_t) ompi_comm_size(m->comm);
    boot->allgather = boot_allgather;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; '\0' != *text; text++) {
        h = (h ^ (unsigned char) *text) * 1099511628211ull;
    }
    return h;
}

/* Ranks with the same value can share memory. */
static uint64_t host_hash(void)
{
    uint64_t h = 14695981039346656037ull;
    const char *override = mca_coll_gpuproto_component.host_id;
    char text[256] = "";
    struct stat st;
    FILE *f;

    if (NULL != override && '\0' != override[0]) {
        return hash_text(h, override);
    }
    f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (NULL != f) {
        if (NULL != fgets(text, sizeof(text), f)) {
            h = hash_text(h, text);
        }
        fclose(f);
    }
    if (0 == gethostname(text, sizeof(text) - 1)) {
        h = hash_text(h, text);
    }
    if (0 == stat("/proc/self/ns/ipc", &st)) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long) st.st_ino);
        h = hash_text(h, text);
    }
    if (0 == stat("/proc/self/ns/pid", &st)) { /* peers are reached by process id */
        snprintf(text, sizeof(text), "p%llu", (unsigned long long) st.st_ino);
        h = hash_text(h, text);
    }
    return h;
}

static void unable(record_t *r, const char *reason)
{
    if (r->able) {
        r->able = 0;
        snprintf(r->reason, sizeof(r->reason), "%s", reason);
    }
}

static void fill_record(mca_coll_gpuproto_class_t *cls, int device, int rank, record_t *r)
{
    const mca_coll_gpuproto_component_t *c = &mca_coll_gpuproto_component;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    gp_status_t status;

    memset(r, 0, sizeof(*r));
    r->able = 1;
    r->class_id = (uint32_t) cls->id;
    r->host = host_hash();
    r->local_procs = 1 + mca_coll_gpuproto_local_peers();
    r->cores = cores > 0 ? (uint32_t) cores : 1;
    r->threads = ompi_mpi_thread_multiple;
    r->net = (uint32_t) gp_ucx_compiled();
    if (0 == c->transports_value) {
        r->host += 1 + (uint64_t) rank; /* every rank a host of its own */
    }
    r->has_gpu = GP_OK == gp_cuda_driver();
    if (MCA_COLL_GPUPROTO_CLASS_HOST == cls->id) {
        if (GP_EXEC_CUDA == c->executor_value) {
            unable(r, "executor cuda was asked for, and the buffers are in host memory");
        }
        return;
    }
    if (GP_EXEC_HOST == c->executor_value) {
        unable(r, "executor host was asked for, and the buffers are on a GPU");
        return;
    }
    if (!gp_cuda_compiled()) {
        unable(r, "gpuproto was built without CUDA kernels");
        return;
    }
    status = gp_cuda_dev_get(device, &cls->dev);
    if (GP_OK != status) {
        unable(r, GP_ERR_UNSUPPORTED == status ? "no kernel was compiled for this GPU"
                                               : "the GPU cannot be used");
        return;
    }
    {
        const gp_gpu_id_t *id = gp_cuda_dev_id(cls->dev);

        memcpy(r->uuid, id->uuid, sizeof(r->uuid));
        r->mps = id->mps;
        r->capability = id->capability;
        r->sm_count = id->sm_count;
    }
}

/* Rank i's host: a new one, or that of a rank before; enough cores for all ranks on it? */
static bool describe_host(const record_t *r, uint32_t n, uint32_t i, bool device,
                          gp_comm_desc_t *d, char *reason, size_t bytes)
{
    uint32_t here = 0, before = 0;

    for (uint32_t j = 0; j < n; j++) {
        here += r[j].host == r[i].host;
        before += j < i && r[j].host == r[i].host;
    }
    if (here > r[i].cores || r[i].local_procs > r[i].cores) {
        d->oversubscribed = 1;
    }
    if (0 == i || before > 0) {
        return true;
    }
    d->n_nodes++;
    if (device) {
        snprintf(reason, bytes,
                 "rank 0 and rank %u are on different hosts, and the buffers on GPUs", i);
        return false;
    }
    if (!r[0].net || !r[i].net) {
        snprintf(reason, bytes, "rank 0 and rank %u are on different hosts, and rank %u was built "
                 "without UCX", i, r[0].net ? i : 0);
        return false;
    }
    return true;
}

/* From the same records every rank computes the same: a description, or a reason to decline. */
static bool describe(const record_t *r, uint32_t n, mca_coll_gpuproto_class_t *cls, char *reason,
                     size_t bytes)
{
    const mca_coll_gpuproto_component_t *c = &mca_coll_gpuproto_component;
    gp_comm_desc_t *d = &cls->desc;
    bool device = MCA_COLL_GPUPROTO_CLASS_DEVICE == cls->id;
    bool any_gpu = false, shared = false, turns = c->other_jobs;
    uint32_t most = 0;

    memset(d, 0, sizeof(*d));
    d->n_ranks = n;
    d->n_nodes = 1;
    d->executor = device ? GP_EXEC_CUDA : GP_EXEC_HOST;
    d->worst_path = device ? GP_PATH_SELF_GPU : GP_PATH_HOST;
    for (uint32_t i = 0; i < n; i++) {
        if (r[i].class_id != r[0].class_id) {
            snprintf(reason, bytes, "rank 0 and rank %u have buffers in different kinds of memory",
                     i);
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!r[i].able) {
            snprintf(reason, bytes, "rank %u: %s", i, r[i].reason);
            return false;
        }
        any_gpu |= 0 != r[i].has_gpu;
        /* Threads of a process, or processes outside of this communicator. */
        turns |= 0 != r[i].threads || r[i].local_procs > n;
        if (!describe_host(r, n, i, device, d, reason, bytes)) {
            return false;
        }
    }
    if (d->n_nodes > 1) {
        d->worst_path = GP_PATH_NET;
    }
    cls->yield = d->oversubscribed || opal_progress_yield_when_idle;
    if (!device) {
        if (GP_AUTO == c->host_buffers_value && any_gpu) {
            snprintf(reason, bytes, "host buffers, and a rank uses a GPU (host_buffers auto)");
            return false;
        }
        return true;
    }
    d->sm_count = r[0].sm_count;
    d->min_capability = d->max_capability = r[0].capability;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t on_gpu = 0;

        for (uint32_t j = 0; j < n; j++) {
            bool same = 0 == memcmp(r[i].uuid, r[j].uuid, sizeof(r[i].uuid));

            on_gpu += same;
            if (!same) {
                d->worst_path = GP_PATH_PCIE; /* until agree_paths() has asked */
            }
        }
        if (on_gpu > 1 && !r[i].mps) {
            snprintf(reason, bytes,
                     "%u ranks share a GPU without MPS and would be time-sliced; start "
                     "it with: nvidia-cuda-mps-control -d",
                     on_gpu);
            return false;
        }
        shared |= on_gpu > 1;
        most = on_gpu > most ? on_gpu : most;
        d->sm_count = r[i].sm_count < d->sm_count ? r[i].sm_count : d->sm_count;
        d->min_capability = r[i].capability < d->min_capability ? r[i].capability
                                                                : d->min_capability;
        d->max_capability = r[i].capability > d->max_capability ? r[i].capability
                                                                : d->max_capability;
    }
    /* Of all that share a GPU one at a time fills it (gp_gate.h): only this communicator counts. */
    d->ranks_per_gpu = most;
    cls->gated = shared || turns;
    cls->turns = turns;
    return true;
}

/* What a rank found between its GPU and the others. */
typedef struct path_record {
    int32_t status;
    uint32_t worst;  /* gp_path_t */
    uint32_t to;     /* a rank at that path */
    uint32_t reserved;
} path_record_t;

/*
 * The farthest pair of GPUs, where there are several: each rank asks the driver for its own, all take the
 * worst answer. False with a reason, on all ranks, when GPUs cannot map each other's memory.
 */
static bool agree_paths(const record_t *r, const gp_boot_t *boot, mca_coll_gpuproto_class_t *cls,
                        char *reason, size_t bytes)
{
    path_record_t mine = {GP_OK, GP_PATH_SELF_GPU, 0, 0}, *all;
    gp_status_t status = GP_ERR_NO_MEMORY;

    for (uint32_t i = 0; i < boot->n_ranks && GP_OK == mine.status; i++) {
        uint32_t path = GP_PATH_SELF_GPU;

        mine.status = gp_cuda_peer_path(cls->dev, r[i].uuid, &path);
        if (path > mine.worst) {
            mine.worst = path;
            mine.to = i;
        }
    }
    all = calloc(boot->n_ranks, sizeof(*all));
    if (NULL != all) {
        status = boot->allgather(boot->ctx, &mine, all, sizeof(mine));
    }
    if (GP_OK != status) {
        snprintf(reason, bytes, "paths between GPUs could not be exchanged");
    }
    cls->desc.worst_path = GP_PATH_SELF_GPU;
    for (uint32_t i = 0; GP_OK == status && i < boot->n_ranks; i++) {
        if (GP_OK != all[i].status) {
            snprintf(reason, bytes, "rank %u: the driver does not tell paths between GPUs", i);
            status = GP_ERR_PEER;
        } else if (GP_PATH_HOST <= all[i].worst) {
            snprintf(reason, bytes,
                     "the GPUs of rank %u and rank %u cannot map each other's memory", i,
                     all[i].to);
            status = GP_ERR_PEER;
        } else if (all[i].worst > cls->desc.worst_path) {
            cls->desc.worst_path = all[i].worst;
        }
    }
    free(all);
    return GP_OK == status;
}

/* The gate of a communicator; a key for each GPU where it has to take turns with others. */
static gp_status_t make_gate(const record_t *r, const gp_boot_t *boot,
                             mca_coll_gpuproto_class_t *cls)
{
    uint64_t keys[GP_GATE_MOST_KEYS];
    gp_arena_t *shm = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; cls->turns && i < boot->n_ranks; i++) {
        uint64_t key = 14695981039346656037ull;
        uint32_t k = 0;

        for (size_t b = 0; b < sizeof(r[i].uuid); b++) {
            key = (key ^ r[i].uuid[b]) * 1099511628211ull;
        }
        while (k < n && keys[k] != key) {
            k++;
        }
        if (k == n && n < GP_GATE_MOST_KEYS) { /* more GPUs than any host has */
            keys[n++] = key;
        }
    }
    if (GP_OK != gp_shm_arena(&shm)) {
        shm = NULL; /* all ranks are told */
    }
    return gp_gate_create(shm, boot, keys, n, &cls->gate);
}

/* Several hosts: who is where, and how to reach it. False with cls->reason, on all ranks. */
static bool agree_nodes(const record_t *r, const gp_boot_t *boot, mca_coll_gpuproto_class_t *cls)
{
    uint64_t *hosts = calloc(boot->n_ranks, sizeof(*hosts));
    bool made;

    if (NULL == hosts) {
        snprintf(cls->reason, sizeof(cls->reason), "no memory for the hosts of all ranks");
        return false; /* the others wait in the exchange of addresses, which is bounded */
    }
    for (uint32_t i = 0; i < boot->n_ranks; i++) {
        hosts[i] = r[i].host;
    }
    made = mca_coll_gpuproto_nodes_make(hosts, boot, &cls->nodes, cls->reason,
                                        sizeof(cls->reason));
    free(hosts);
    return made;
}

int mca_coll_gpuproto_agree(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                            int device)
{
    static bool told;
    uint32_t n = (uint32_t) ompi_comm_size(m->comm);
    record_t mine, *all = calloc(n, sizeof(*all));
    gp_boot_t boot;
    gp_status_t status;

    if (NULL == all) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    fill_record(cls, device, ompi_comm_rank(m->comm), &mine);
    mca_coll_gpuproto_boot(m, &boot);
    status = boot.allgather(boot.ctx, &mine, all, sizeof(mine));
    if (GP_OK != status) {
        free(all);
        if (GP_ERR_ABORTED == status) {
            cls->state = MCA_COLL_GPUPROTO_FAILED;
            snprintf(cls->reason, sizeof(cls->reason), "all ranks to enter their first call");
            mca_coll_gpuproto_say("call failed", mca_coll_gpuproto_cid(m->comm),
                                  ompi_comm_rank(m->comm), cls->reason, (int) status);
        }
        return MPI_ERR_OTHER;
    }
    cls->state = MCA_COLL_GPUPROTO_OURS;
    if (!describe(all, n, cls, cls->reason, sizeof(cls->reason))) {
        cls->state = MCA_COLL_GPUPROTO_DECLINED;
    } else if (MCA_COLL_GPUPROTO_CLASS_DEVICE == cls->id
               && GP_PATH_SELF_GPU != cls->desc.worst_path
               && !agree_paths(all, &boot, cls, cls->reason, sizeof(cls->reason))) {
        cls->state = MCA_COLL_GPUPROTO_DECLINED;
    } else if (MCA_COLL_GPUPROTO_CLASS_DEVICE == cls->id) {
        cls->arena = gp_cuda_dev_arena(cls->dev);
        if (cls->gated && GP_OK != make_gate(all, &boot, cls)) {
            cls->state = MCA_COLL_GPUPROTO_DECLINED; /* on all ranks */
            snprintf(cls->reason, sizeof(cls->reason),
                     "no gate for ranks that share a GPU (the message before says why)");
        }
    } else {
        if (GP_OK != gp_shm_arena(&cls->arena)) {
            cls->arena = NULL; /* the first connection set then fails on all ranks together */
        }
        if (cls->desc.n_nodes > 1 && !agree_nodes(all, &boot, cls)) {
            cls->state = MCA_COLL_GPUPROTO_DECLINED;
        }
    }
    if (MCA_COLL_GPUPROTO_OURS == cls->state) {
        gp_plan_sets(&cls->desc, &m->params, &cls->plan_sets);
    }
    /* Once per job; host buffers are declined silently where nobody asked for more. */
    if (MCA_COLL_GPUPROTO_DECLINED == cls->state && !told && 0 == ompi_comm_rank(m->comm)
        && (MCA_COLL_GPUPROTO_CLASS_DEVICE == cls->id
            || 1 == mca_coll_gpuproto_component.host_buffers_value)) {
        told = true;
        mca_coll_gpuproto_say("declined", mca_coll_gpuproto_cid(m->comm),
                       cls->reason);
    }
    free(all);
    return OMPI_SUCCESS;
}
