/*
 * mpi_net.c - what goes wrong between hosts: whole lines, many calls, a host that is cut off.
 *
 * GP_CALLS: how many calls (default 40).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/mpi/mpi_cases.h"

static uint64_t calls(void)
{
    const char *text = getenv("GP_CALLS");

    return NULL != text ? strtoull(text, NULL, 10) : 40;
}

static const mc_type_t *float_type(void)
{
    size_t n;
    const mc_type_t *t = mc_types(&n);

    while (MPI_FLOAT != t->mpi) {
        t++;
    }
    return t;
}

/* Sizes at which flags were seen to travel apart from their data elsewhere; every call is checked. */
void mc_net(void)
{
    perf_mpit_values_t before = mc_stats();
    uint64_t n_calls = calls();
    size_t n;

    for (uint64_t i = 0; i < n_calls; i++) {
        mc_call(MPI_COMM_WORLD, float_type(), mc_ops(&n), i % 2 ? 2097152 : 262144,
                (int) (i / 2 % 2), 0, i);
    }
    mc_expect(&before, MC_OURS, n_calls, "long lines over the net");
}

/* Sizes, types, operations and offsets at random, the same on all ranks. */
void mc_random_calls(void)
{
    perf_mpit_values_t before = mc_stats();
    uint64_t state = 4711, n_calls = calls(), ours = 0;
    size_t n_types, n_ops;
    const mc_type_t *types = mc_types(&n_types);
    const mc_op_t *ops = mc_ops(&n_ops);

    while (ours < n_calls) {
        uint64_t h = mc_random(&state);
        const mc_type_t *t = &types[h % n_types];
        const mc_op_t *o = &ops[(h >> 8) % n_ops];
        size_t count = 1 + (size_t) (mc_random(&state) % (1ull << (h >> 16) % 18));

        if (!gp_red_of(t->type, o->op).valid) {
            continue;
        }
        mc_call(MPI_COMM_WORLD, t, o, count, (int) (h >> 40 & 1), h >> 41 & 3, ours++);
    }
    mc_expect(&before, MC_OURS, n_calls, "random calls");
}

/*
 * The network goes away in the middle of calls (from outside): every rank gets an error, within the
 * time-out, and none stays.
 */
void mc_cut(void)
{
    size_t bytes = 4u << 20;
    float *in = calloc(1, bytes), *out = calloc(1, bytes);
    double start = MPI_Wtime();
    int rc = MPI_SUCCESS;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (MPI_SUCCESS == rc && MPI_Wtime() - start < 60) {
        rc = MPI_Allreduce(in, out, (int) (bytes / sizeof(*in)), MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD);
    }
    printf("rank %d: %s after %.1f s\n", mc_rank, MPI_SUCCESS == rc ? "no error" : "an error",
           MPI_Wtime() - start);
    fflush(stdout);
    /* Nobody can be reached any more: MPI_Finalize would wait for them. */
    _exit(MPI_SUCCESS == rc ? 1 : 0);
}
