/*
 * gpuproto_perf_mpit.c - see gpuproto_perf_mpit.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf_mpit.h"

#include <string.h>

#include "planner/gp_plan.h"

enum { ALGORITHM, PROTOCOL, CHANNELS, EXECUTOR, CALLS, DECLINED, STAGED, N_VARS };

static const char *const var_names[N_VARS] = {
    "coll_gpuproto_last_algorithm", "coll_gpuproto_last_protocol", "coll_gpuproto_last_channels",
    "coll_gpuproto_last_executor",  "coll_gpuproto_calls",         "coll_gpuproto_declined",
    "coll_gpuproto_staged",
};

static struct {
    int initialized;
    int active;
    MPI_Comm comm; /* bound by address: it must outlive the handles */
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[N_VARS];
    MPI_Datatype types[N_VARS];
} mpit;

const char *perf_algorithm_name(int algorithm)
{
    switch (algorithm) {
    case GP_ALGO_RING: return "ring";
    case GP_ALGO_TREE: return "tree";
    case GP_ALGO_FLAT: return "flat";
    case GP_ALGO_CUSTOM: return "custom";
    default: return "?";
    }
}

const char *perf_protocol_name(int protocol)
{
    switch (protocol) {
    case GP_PROTO_LL: return "ll";
    case GP_PROTO_LL128: return "ll128";
    case GP_PROTO_SIMPLE: return "simple";
    default: return "?";
    }
}

const char *perf_executor_name(int executor)
{
    switch (executor) {
    case GP_EXEC_HOST: return "host";
    case GP_EXEC_CUDA: return "cuda";
    default: return "?";
    }
}

/* Find variable v among the first n by name and get a running handle for it. */
static int attach(int v, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        char name[256], desc[8];
        int name_len = sizeof(name), desc_len = sizeof(desc);
        int verbosity, klass, bind, readonly, continuous, atomic, count;
        MPI_T_enum enumtype;

        if (MPI_SUCCESS != MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &klass,
                                               &mpit.types[v], &enumtype, desc, &desc_len, &bind,
                                               &readonly, &continuous, &atomic)
            || 0 != strcmp(name, var_names[v])) {
            continue;
        }
        if (MPI_SUCCESS != MPI_T_pvar_handle_alloc(mpit.session, i,
                                                   MPI_T_BIND_MPI_COMM == bind ? &mpit.comm : NULL,
                                                   &mpit.handles[v], &count)
            || 1 != count) {
            return 0;
        }
        return continuous || MPI_SUCCESS == MPI_T_pvar_start(mpit.session, mpit.handles[v]);
    }
    return 0;
}

int perf_mpit_open(MPI_Comm comm)
{
    int level = MPI_THREAD_SINGLE, provided, n, v;

    /* Open MPI takes the level of this call for that of the whole library. */
    MPI_Query_thread(&level);
    if (MPI_SUCCESS != MPI_T_init_thread(level, &provided)) {
        return 0;
    }
    mpit.initialized = 1;
    mpit.comm = comm;
    if (MPI_SUCCESS != MPI_T_pvar_get_num(&n)
        || MPI_SUCCESS != MPI_T_pvar_session_create(&mpit.session)) {
        return 0;
    }
    for (v = 0; v < N_VARS; v++) {
        if (!attach(v, n)) {
            MPI_T_pvar_session_free(&mpit.session);
            return 0;
        }
    }
    mpit.active = 1;
    return 1;
}

static uint64_t read_var(int v)
{
    union {
        int i;
        unsigned u;
        unsigned long ul;
        unsigned long long ull;
    } value = {.ull = 0};

    if (MPI_SUCCESS != MPI_T_pvar_read(mpit.session, mpit.handles[v], &value)) {
        return 0;
    }
    if (MPI_INT == mpit.types[v]) {
        return (uint64_t) (int64_t) value.i;
    }
    if (MPI_UNSIGNED == mpit.types[v]) {
        return value.u;
    }
    return MPI_UNSIGNED_LONG == mpit.types[v] ? value.ul : value.ull;
}

void perf_mpit_read(perf_mpit_values_t *values)
{
    memset(values, 0, sizeof(*values));
    if (!mpit.active) {
        return;
    }
    values->algorithm = (int) read_var(ALGORITHM);
    values->protocol = (int) read_var(PROTOCOL);
    values->channels = (int) read_var(CHANNELS);
    values->executor = (int) read_var(EXECUTOR);
    values->calls = read_var(CALLS);
    values->declined = read_var(DECLINED);
    values->staged = read_var(STAGED);
}

void perf_mpit_close(void)
{
    if (mpit.active) {
        MPI_T_pvar_session_free(&mpit.session);
        mpit.active = 0;
    }
    if (mpit.initialized) {
        MPI_T_finalize();
        mpit.initialized = 0;
    }
}
