/*
 * mpi_jobs.c - what is round the component: other collectives, spawned processes, far buffers, waiting.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/mpi/mpi_cases.h"

static void call_floats(MPI_Comm comm, size_t count, uint64_t seed)
{
    size_t n;
    const mc_type_t *t = mc_types(&n);

    while (MPI_FLOAT != t->mpi) {
        t++;
    }
    mc_call(comm, t, mc_ops(&n), count, 0, 0, seed);
}

static void want_int(const char *what, int got, int want)
{
    if (want != got) {
        mc_fail("%s: %d, want %d", what, got, want);
    }
}

/* A selection that names gpuproto alone has every other collective as well. */
void mc_others(void)
{
    int in = mc_rank + 1, out = -1, all = mc_ranks * (mc_ranks + 1) / 2;
    int *many = calloc((size_t) mc_ranks, sizeof(*many));
    int *ones = calloc((size_t) mc_ranks, sizeof(*ones));
    int dims[1] = {mc_ranks}, periods[1] = {1};
    MPI_Request request;
    MPI_Comm cart;

    for (int i = 0; i < mc_ranks; i++) {
        ones[i] = 1;
        many[i] = mc_rank + 1;
    }
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    want_int("Iallreduce", out, all);
    out = -1;
    MPI_Reduce_scatter(many, &out, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    want_int("Reduce_scatter", out, all);
    out = -1;
    MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    want_int("Scan", out, (mc_rank + 1) * (mc_rank + 2) / 2);
    MPI_Alltoall(many, 1, MPI_INT, ones, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < mc_ranks; i++) {
        want_int("Alltoall", ones[i], i + 1);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &cart);
    call_floats(cart, 1000, 1);
    out = -1;
    MPI_Neighbor_allgather(&in, 1, MPI_INT, many, 1, MPI_INT, cart);
    want_int("Neighbor_allgather", many[0], (mc_rank + mc_ranks - 1) % mc_ranks + 1);
    MPI_Comm_free(&cart);
    free(many);
    free(ones);
}

/* Processes that join later: a merged communicator works, whoever serves it. */
void mc_spawn(void)
{
    const char *prog = getenv("GP_PROGRAM");
    char *args[] = {"child", NULL};
    MPI_Comm parent, inter, both;

    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL == parent) {
        MPI_Comm_spawn(NULL != prog ? prog : "./mpi_cases", args, 1, MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    } else {
        inter = parent;
    }
    MPI_Intercomm_merge(inter, MPI_COMM_NULL != parent, &both);
    for (uint64_t i = 0; i < 3; i++) {
        call_floats(both, 100 + 10000 * i, i);
    }
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
}

static void sum_ints(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *len; i++) {
        ((int *) inout)[i] += ((int *) in)[i];
    }
}

/* The buffer is MPI_BOTTOM, the type says where: what is there counts, not the address given. */
void mc_bottom(void)
{
    enum { COUNT = 300 };
    int *buf = perf_mem_alloc(COUNT * sizeof(int));
    int host[COUNT], length = COUNT;
    perf_mpit_values_t before = mc_stats();
    MPI_Datatype type;
    MPI_Aint at;
    MPI_Op op;

    for (int i = 0; i < COUNT; i++) {
        host[i] = i * i + mc_rank;
    }
    perf_mem_put(buf, host, sizeof(host));
    MPI_Get_address(buf, &at);
    MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(sum_ints, 1, &op);
    /* The operation gets MPI_BOTTOM as well, which no function can add up; one rank has nothing to. */
    MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_SELF);
    perf_mem_get(host, buf, sizeof(host));
    for (int i = 0; i < COUNT; i++) {
        want_int("MPI_BOTTOM", host[i], i * i + mc_rank);
    }
    mc_expect(&before, MC_DECLINED, 1, "MPI_BOTTOM");
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    perf_mem_free(buf);
}

/* Rank 1 misses the first call of all, where ranks agree: given up as any other. */
void mc_stuck_first(void)
{
    float *in = perf_mem_alloc(sizeof(*in)), *out = perf_mem_alloc(sizeof(*out));
    int rc = MPI_SUCCESS;

    perf_mem_set(in, 0, sizeof(*in));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (1 != mc_rank) {
        rc = MPI_Allreduce(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (MPI_SUCCESS == rc) {
            mc_fail("a first call without rank 1 gave %d", rc);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    perf_mem_free(in);
    perf_mem_free(out);
}

/* Rank 1 is late by more than warn_after, and nothing is wrong. */
void mc_warned(void)
{
    call_floats(MPI_COMM_WORLD, 1000, 1);
    if (1 == mc_rank) {
        usleep(2500000);
    }
    call_floats(MPI_COMM_WORLD, 1000, 2);
}
