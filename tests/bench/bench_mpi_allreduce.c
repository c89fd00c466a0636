/*
 * bench_mpi_allreduce.c - what a call of MPI_Allreduce costs on host buffers, back to back.
 *
 * Made to compare the component with what would run without it:
 *   mpirun -n 2 --mca coll gpuproto  bench_mpi_allreduce
 *   mpirun -n 2 --mca coll ^gpuproto bench_mpi_allreduce
 * Usage: bench_mpi_allreduce [BYTES ...] (default 8 and 4 MiB). Per size, REPEATS times a run of calls
 * without anything between them; the table shows the fastest and the median run of the slowest rank, in
 * microseconds per call. Unlike gpuproto_perf there is no barrier between calls: this is the steady
 * state of a solver that reduces a scalar in a loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "contrib/gpuproto_perf_mpit.h"

enum { REPEATS = 31 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static int calls_for(size_t bytes)
{
    size_t n = ((size_t) 64 << 20) / (bytes + 4096);

    return n < 4 ? 4 : n > 20000 ? 20000 : (int) n;
}

/* Microseconds per call of one run. */
static double run(const float *send, float *recv, int count, int calls)
{
    double start, mine, slowest = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    mine = (MPI_Wtime() - start) * 1e6 / calls;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

static void bench(size_t bytes, int rank, int ranks)
{
    int count = (int) (bytes / sizeof(float)), calls = calls_for(bytes), wrong = 0;
    float *send = malloc(bytes + 1), *recv = malloc(bytes + 1);
    perf_mpit_values_t before = {0}, after = {0};
    double times[REPEATS];

    if (NULL == send || NULL == recv) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        send[i] = (float) (rank + 3 * (i % 1021));
        recv[i] = 0; /* the pages are there before the clock runs */
    }
    (void) run(send, recv, count, calls / 4 + 1);
    perf_mpit_read(&before);
    for (int r = 0; r < REPEATS; r++) {
        times[r] = run(send, recv, count, calls);
    }
    perf_mpit_read(&after);
    for (int i = 0; i < count; i++) {
        wrong += recv[i] != (float) (ranks * (ranks - 1) / 2 + ranks * 3 * (i % 1021));
    }
    if (0 == rank) {
        qsort(times, REPEATS, sizeof(times[0]), compare);
        printf("%12zu %10d %12.3f %12.3f %8d  %s\n", bytes, calls, times[0], times[REPEATS / 2],
               wrong, after.calls > before.calls ? "gpuproto" : "other");
        fflush(stdout);
    }
    free(send);
    free(recv);
}

int main(int argc, char **argv)
{
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    (void) perf_mpit_open(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("# %d ranks, float sum, microseconds per call of the slowest rank\n", ranks);
        printf("# %10s %10s %12s %12s %8s  %s\n", "bytes", "calls", "fastest", "median", "wrong",
               "run by");
    }
    if (argc < 2) {
        bench(8, rank, ranks);
        bench((size_t) 4 << 20, rank, ranks);
    }
    for (int i = 1; i < argc; i++) {
        bench(strtoull(argv[i], NULL, 10), rank, ranks);
    }
    perf_mpit_close();
    MPI_Finalize();
    return 0;
}
