/*
 * bench_peer_nccl.c - times NCCL's blocking float-sum allreduce on the machine at hand, as a peer for
 * gpuproto_perf in the same run. NCCL is opened at run time (GP_NCCL_LIBRARY, default libnccl.so.2);
 * nothing of it is needed to build.
 *
 * Method: MPI bootstraps and synchronises; per size `warmup` untimed calls, then `iters` calls, each
 * timed from enqueue to stream completion after a barrier; the time of a call is its slowest rank's, the
 * figure is the median call. NCCL_ALGO, NCCL_PROTO, NCCL_MAX_CTAS etc. are the caller's environment.
 * Several ranks per GPU need NCCL_MULTI_RANK_GPU_ENABLE=1 and MPS.
 *
 * usage: bench_peer_nccl iters warmup bytes...
 * output: one line per size, "<bytes> <median us>"
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nccl_unique_id {
    char bytes[128];
} nccl_unique_id_t;

typedef int (*nccl_get_id_fn)(nccl_unique_id_t *);
typedef int (*nccl_init_fn)(void **, int, nccl_unique_id_t, int);
typedef int (*nccl_allreduce_fn)(const void *, void *, size_t, int, int, void *, void *);
typedef const char *(*nccl_error_fn)(int);

enum { NCCL_FLOAT32 = 7, NCCL_SUM = 0 }; /* values of the public nccl.h */

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_peer_nccl: %s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void *sym(void *lib, const char *name)
{
    void *p = NULL != lib ? dlsym(lib, name) : NULL;
    need(NULL != p, name);
    return p;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *name = getenv("GP_NCCL_LIBRARY");
    void *cuda, *nccl, *comm, *stream, *ctx;
    unsigned long long send, recv;
    nccl_unique_id_t id;
    size_t max_bytes = 0;
    double *us;
    int rank, ranks, iters, warmup, rc, device = 0, count = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc >= 4, "usage: bench_peer_nccl iters warmup bytes...;");
    iters = atoi(argv[1]);
    warmup = atoi(argv[2]);
    need(iters > 0, "iters > 0");
    for (int i = 3; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 10);
        max_bytes = bytes > max_bytes ? bytes : max_bytes;
    }
    us = malloc((size_t) iters * sizeof(*us));
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    nccl = dlopen(NULL != name ? name : "libnccl.so.2", RTLD_NOW);
    need(NULL != us && NULL != cuda && NULL != nccl, "opening libcuda.so.1 and NCCL");

    need(0 == ((int (*)(unsigned)) sym(cuda, "cuInit"))(0), "cuInit");
    ((int (*)(int *)) sym(cuda, "cuDeviceGetCount"))(&count);
    device = rank % count;
    need(0 == ((int (*)(void **, int)) sym(cuda, "cuDevicePrimaryCtxRetain"))(&ctx, device),
         "cuDevicePrimaryCtxRetain");
    need(0 == ((int (*)(void *)) sym(cuda, "cuCtxSetCurrent"))(ctx), "cuCtxSetCurrent");
    need(0 == ((int (*)(unsigned long long *, size_t)) sym(cuda, "cuMemAlloc_v2"))(&send, max_bytes)
             && 0 == ((int (*)(unsigned long long *, size_t)) sym(cuda, "cuMemAlloc_v2"))(&recv,
                                                                                      max_bytes),
         "cuMemAlloc");
    ((int (*)(unsigned long long, unsigned, size_t)) sym(cuda, "cuMemsetD32_v2"))(send, 0x3f800000u,
                                                                                 max_bytes / 4);
    need(0 == ((int (*)(void **, unsigned)) sym(cuda, "cuStreamCreate"))(&stream, 1), "stream");
    int (*sync)(void *) = (int (*)(void *)) sym(cuda, "cuStreamSynchronize");

    if (0 == rank) {
        need(0 == ((nccl_get_id_fn) sym(nccl, "ncclGetUniqueId"))(&id), "ncclGetUniqueId");
    }
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    rc = ((nccl_init_fn) sym(nccl, "ncclCommInitRank"))(&comm, ranks, id, rank);
    need(0 == rc, ((nccl_error_fn) sym(nccl, "ncclGetErrorString"))(rc));
    nccl_allreduce_fn allreduce = (nccl_allreduce_fn) sym(nccl, "ncclAllReduce");

    for (int a = 3; a < argc; a++) {
        size_t bytes = strtoull(argv[a], NULL, 10);

        for (int i = -warmup; i < iters; i++) {
            double start, mine, worst;

            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
            rc = allreduce((void *) send, (void *) recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, comm,
                           stream);
            need(0 == rc && 0 == sync(stream), "ncclAllReduce");
            mine = (MPI_Wtime() - start) * 1e6;
            MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (i >= 0) {
                us[i] = worst;
            }
        }
        qsort(us, (size_t) iters, sizeof(*us), by_value);
        if (0 == rank) {
            printf("%zu %.2f\n", bytes, us[iters / 2]);
            fflush(stdout);
        }
    }
    free(us);
    MPI_Finalize();
    return 0;
}
