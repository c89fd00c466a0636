/*
 * mpi_comms.c - communicators, sequences of calls, threads, late and dead ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/mpi/mpi_cases.h"

static const mc_type_t *float_type(void)
{
    size_t n;
    const mc_type_t *t = mc_types(&n);

    while (MPI_FLOAT != t->mpi) {
        t++;
    }
    return t;
}

static const mc_op_t *sum_op(void)
{
    size_t n;

    return mc_ops(&n);
}

/* Nothing is looked at, counters stay in step. */
void mc_zero(void)
{
    perf_mpit_values_t before = mc_stats();

    for (int i = 0; i < 5; i++) {
        if (MPI_SUCCESS != MPI_Allreduce(NULL, NULL, 0, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
            || MPI_SUCCESS
                   != MPI_Allreduce(MPI_IN_PLACE, NULL, 0, MPI_INT, MPI_MAX, MPI_COMM_WORLD)) {
            mc_fail("count 0 fails");
        }
        mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 17, i % 2, 0, 5 + (uint64_t) i);
    }
    mc_expect(&before, MC_OURS, 5, "calls between calls of count 0");
}

/* Shared memory of ours that this process has mapped and that somebody else could still open. */
static int named_segments(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (NULL != f && NULL != fgets(line, sizeof(line), f)) {
        n += NULL != strstr(line, "gpuproto-") && NULL != strstr(line, "/dev/shm/")
             && NULL == strstr(line, "(deleted)");
    }
    if (NULL != f) {
        fclose(f);
    }
    return n;
}

/* Making and freeing communicators leaves no descriptor, no segment and no mapping behind. */
void mc_comms(void)
{
    int fds = 0, maps = 0;

    for (int i = 0; i < 120; i++) {
        MPI_Comm dup, half;
        perf_mpit_values_t before = mc_stats();
        int size;

        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Comm_split(dup, mc_rank % 2, -mc_rank, &half);
        MPI_Comm_size(half, &size);
        mc_call(dup, float_type(), sum_op(), 100 + (size_t) i, i % 2, 0, (uint64_t) i);
        mc_call(half, float_type(), sum_op(), 20000, i % 2, 0, 1000 + (uint64_t) i);
        if (size > 1) {
            mc_expect(&before, MC_OURS, 2, "dup and split");
        }
        MPI_Comm_free(&half);
        MPI_Comm_free(&dup);
        if (20 == i) {
            MPI_Barrier(MPI_COMM_WORLD);
            fds = mc_count_entries("/proc/self/fd", "");
            maps = mc_count_entries("/proc/self/map_files", "");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mc_count_entries("/proc/self/fd", "") > fds + 2) {
        mc_fail("%d file descriptors after 100 communicators, %d before",
                mc_count_entries("/proc/self/fd", ""), fds);
    }
    if (mc_count_entries("/proc/self/map_files", "") > maps + 20) {
        mc_fail("%d mappings after 100 communicators, %d before",
                mc_count_entries("/proc/self/map_files", ""), maps);
    }
    if (0 != named_segments()) {
        mc_fail("%d segments have names still", named_segments());
    }
}

/* Between two groups the result is the other group's. */
void mc_inter(void)
{
    MPI_Comm half, inter;
    int color = mc_rank % 2, lead = color ? 0 : 1;
    int *buf = perf_mem_alloc(2 * sizeof(int));
    int in = mc_rank + 1, out = 0, want = 0;
    perf_mpit_values_t before;

    MPI_Comm_split(MPI_COMM_WORLD, color, mc_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lead, 7, &inter);
    for (int r = 0; r < mc_ranks; r++) {
        want += r % 2 != color ? r + 1 : 0;
    }
    before = mc_stats();
    perf_mem_put(buf, &in, sizeof(in));
    MPI_Allreduce(buf, buf + 1, 1, MPI_INT, MPI_SUM, inter);
    perf_mem_get(&out, buf + 1, sizeof(out));
    if (want != out) {
        mc_fail("inter-communicator: %d, want %d", out, want);
    }
    mc_expect(&before, MC_DECLINED, 1, "inter-communicator");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    perf_mem_free(buf);
}

void mc_self(void)
{
    perf_mpit_values_t before = mc_stats();

    mc_call(MPI_COMM_SELF, float_type(), sum_op(), 1000, 0, 0, 1);
    mc_call(MPI_COMM_SELF, float_type(), sum_op(), 1000, 1, 0, 2);
    mc_expect(&before, MC_DECLINED, 2, "MPI_COMM_SELF");
}

/* Any sequence of sizes without a barrier between. */
void mc_rapid(void)
{
    static const size_t big[] = {1u << 20, 300001, 65536};
    perf_mpit_values_t before = mc_stats();
    uint64_t state = 99;
    int calls = 400;

    for (int i = 0; i < calls; i++) {
        uint64_t h = mc_random(&state);
        size_t count = 0 == h % 8 ? big[h / 8 % 3] : 1 + h % (1u << (1 + h / 64 % 16));

        mc_call(MPI_COMM_WORLD, float_type(), sum_op(), count, (int) (h >> 60 & 1), h >> 50 & 3,
                (uint64_t) i);
    }
    mc_expect(&before, MC_OURS, (uint64_t) calls, "rapid sequence");
}

void mc_late(void)
{
    perf_mpit_values_t before = mc_stats();

    for (int i = 0; i < 8; i++) {
        if (i % mc_ranks == mc_rank) {
            usleep(100000);
        }
        mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 10 + 5000 * (size_t) (i % 3), 0, 0,
                (uint64_t) i);
    }
    mc_expect(&before, MC_OURS, 8, "late ranks");
}

enum { THREAD_CALLS = 150, THREAD_ELEMS = 1000 };

typedef struct thread_arg {
    MPI_Comm comm;
    float *in, *out; /* not allocated between calls: freeing device memory waits for running kernels */
    int id;
} thread_arg_t;

static void *thread_main(void *arg)
{
    thread_arg_t *a = arg;
    float host[THREAD_ELEMS];

    perf_mem_attach();
    for (int i = 0; i < THREAD_CALLS; i++) {
        int n = 0 == i % 3 ? THREAD_ELEMS : 3;

        for (int k = 0; k < n; k++) {
            host[k] = (float) (mc_rank * 10 + a->id + k % 100 + i % 7);
        }
        perf_mem_put(a->in, host, sizeof(host));
        MPI_Allreduce(a->in, a->out, n, MPI_FLOAT, MPI_SUM, a->comm);
        perf_mem_get(host, a->out, sizeof(host));
        for (int k = 0; k < n; k++) {
            float want = (float) (10 * (mc_ranks * (mc_ranks - 1) / 2)
                                  + mc_ranks * (a->id + k % 100 + i % 7));

            if (want != host[k]) {
                mc_fail("thread %d call %d: element %d is %f, want %f", a->id, i, k,
                        (double) host[k], (double) want);
                break;
            }
        }
    }
    return NULL;
}

/* Two threads, each with its own communicator. */
void mc_threads(void)
{
    perf_mpit_values_t before;
    thread_arg_t args[2];
    pthread_t threads[2];
    int provided;

    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        mc_fail("no MPI_THREAD_MULTIPLE: level %d", provided);
        return;
    }
    for (int t = 0; t < 2; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &args[t].comm);
        args[t].id = t;
        args[t].in = perf_mem_alloc(THREAD_ELEMS * sizeof(float));
        args[t].out = perf_mem_alloc(THREAD_ELEMS * sizeof(float));
        perf_mem_set(args[t].in, 0, THREAD_ELEMS * sizeof(float));
        perf_mem_set(args[t].out, 0, THREAD_ELEMS * sizeof(float));
    }
    before = mc_stats();
    for (int t = 0; t < 2; t++) {
        int mine = mc_rank % 2 ? 1 - t : t; /* started in opposite orders */

        pthread_create(&threads[mine], NULL, thread_main, &args[mine]);
    }
    for (int t = 0; t < 2; t++) {
        pthread_join(threads[t], NULL);
    }
    mc_expect(&before, MC_OURS, 2 * THREAD_CALLS, "calls of two threads");
    for (int t = 0; t < 2; t++) {
        perf_mem_free(args[t].in);
        perf_mem_free(args[t].out);
        MPI_Comm_free(&args[t].comm);
    }
}

/* A rank dies in the middle: nothing of ours stays behind (the caller looks). */
void mc_killed(void)
{
    mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 1000, 0, 0, 1);
    mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 100000, 0, 0, 2);
    if (1 == mc_rank) {
        _exit(9);
    }
    mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 1000, 0, 0, 3);
}

/* Rank 1 stays away for longer than the time-out: an error comes back, and the next call says why. */
void mc_stuck(void)
{
    float *in = perf_mem_alloc(sizeof(*in)), *out = perf_mem_alloc(sizeof(*out));
    int rc = MPI_SUCCESS, again = MPI_SUCCESS;

    perf_mem_set(in, 0, sizeof(*in));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Allreduce(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (1 != mc_rank) {
        rc = MPI_Allreduce(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        again = MPI_Allreduce(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (MPI_SUCCESS == rc || MPI_SUCCESS == again) {
            mc_fail("a call without rank 1 gave %d, the next %d", rc, again);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    perf_mem_free(in);
    perf_mem_free(out);
}

/* Open MPI's own allreduces (windows, communicators) pass through the component. */
void mc_windows(void)
{
    int *base, got = -1;
    MPI_Win win;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&mc_rank, 1, MPI_INT, (mc_rank + 1) % mc_ranks, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    got = *base;
    MPI_Win_free(&win);
    if ((mc_rank + mc_ranks - 1) % mc_ranks != got) {
        mc_fail("window: got %d", got);
    }
    mc_call(MPI_COMM_WORLD, float_type(), sum_op(), 10, 0, 0, 1);
}

/* Byte sizes round 2^31 and beyond 2^32, first, middle and last elements and all between. */
void mc_big(void)
{
    static const size_t counts[] = {(1ull << 29) - 1, 1ull << 29, (1ull << 30) + 1};
    perf_mpit_values_t before = mc_stats();

    for (size_t i = 0; i < 3; i++) {
        mc_call(MPI_COMM_WORLD, float_type(), sum_op(), counts[i], (int) (i % 2), 0, i);
    }
    mc_expect(&before, MC_OURS, 3, "big counts");
}
