/*
 * bench_gpu_step.c - what interpreting a program costs on the GPU: microseconds per step.
 *
 * Method: N ranks in this process on one GPU, one channel, 64 threads, ring over LL (and LL128 and Simple,
 * interpreted only), chunks of 512 B. A call of 101 loops less a call of 1 loop, over 100 loops and
 * 2N - 2 steps that receive; the median of 41 such pairs. Beside it a kernel in which the ring is written
 * out (gp_hardcoded.cu, given as a file: nvcc -fatbin). Launches cost the same in both calls of a pair.
 *
 * usage: bench_gpu_step gp_hardcoded.fatbin [ranks]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/gp_cuda.h"
#include "planner/gp_plan.h"
#include "tests/exec/gp_exec_world.h"

#define PAIRS 41
#define LOOPS 100
#define CHUNK_ELEMS 128
#define THREADS 64

typedef struct hard_args { /* as in gp_hardcoded.cu */
    gp_conn_t recv, send;
    const float *in;
    float *out;
    uint64_t loops;
    uint32_t chunk_elems, rank, n_ranks, reserved;
} hard_args_t;

static gp_cuda_dev_t *dev;
static void *cuda;
static void *buffers[WORLD_MAX_RANKS][2];

static void *entry(const char *name)
{
    void *p = NULL != cuda ? dlsym(cuda, name) : NULL;

    if (NULL == p) {
        fprintf(stderr, "bench_gpu_step: no %s\n", name);
        exit(1);
    }
    return p;
}

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_gpu_step: %s failed\n", what);
        exit(1);
    }
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double) t.tv_sec + 1e-3 * (double) t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static double median(double *v, uint32_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

static gp_status_t arena(gp_arena_t **arena_p)
{
    *arena_p = gp_cuda_dev_arena(dev);
    return GP_OK;
}

static gp_status_t create(uint32_t protocol, const gp_program_t *const *programs, gp_connset_t *set,
                          void **exec_p)
{
    gp_cuda_exec_t *exec = NULL;
    gp_status_t status = gp_cuda_exec_create(dev, protocol, programs, set, &exec);

    *exec_p = exec;
    return status;
}

static void destroy(void *exec)
{
    gp_cuda_exec_destroy(exec);
}

static gp_status_t start(void *exec, const gp_work_t *work)
{
    return gp_cuda_exec_start(exec, work);
}

static gp_status_t progress(void *exec, int *moved)
{
    *moved = 0;
    return gp_cuda_exec_progress(exec);
}

static void record(const void *exec, gp_exec_record_t *r)
{
    gp_cuda_exec_record(exec, r);
}

static const world_ops_t ops = {THREADS, arena, create, destroy, start, progress, record};

static gp_geom_t geometry(uint32_t ranks, uint64_t loops)
{
    gp_geom_t g;

    memset(&g, 0, sizeof(g));
    g.count = loops * ranks * CHUNK_ELEMS;
    g.channel_elems = g.count;
    g.chunk_elems = g.last_chunk_elems = CHUNK_ELEMS;
    g.loops = loops;
    g.n_chunks = ranks;
    g.channels = 1;
    g.elem_bytes = 4;
    return g;
}

static world_t *make(gp_protocol_t protocol, uint32_t ranks)
{
    world_case_t c = {&ops, GP_ALGO_RING, protocol, ranks, 1, 8, 16384, 0, 0, 0};
    world_t *w = world_create(&c, NULL);

    need(NULL != w, "connecting");
    return w;
}

/* A call, microseconds from the first launch to the last completion. */
static double interpreted(world_t *w, uint32_t ranks, uint64_t loops)
{
    gp_geom_t g = geometry(ranks, loops);
    void *sends[WORLD_MAX_RANKS], *recvs[WORLD_MAX_RANKS];
    double begin;

    for (uint32_t r = 0; r < ranks; r++) {
        sends[r] = buffers[r][0];
        recvs[r] = buffers[r][1];
    }
    begin = now_us();
    need(GP_OK == world_run(w, &g, gp_red_of(GP_TYPE_F32, GP_OP_SUM), sends, recvs, 0), "a call");
    return now_us() - begin;
}

static double hard(world_t *w, uint32_t ranks, uint64_t loops, void *function, void **streams)
{
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **) = entry("cuLaunchKernel");
    int (*sync)(void *) = entry("cuStreamSynchronize");
    double begin = now_us();

    for (uint32_t r = 0; r < ranks; r++) {
        hard_args_t a;
        void *params[1] = {&a};

        memset(&a, 0, sizeof(a));
        a.recv = w->sets[r]->recv[0][0];
        a.send = w->sets[r]->send[0][0];
        a.in = buffers[r][0];
        a.out = buffers[r][1];
        a.loops = loops;
        a.chunk_elems = CHUNK_ELEMS;
        a.rank = r;
        a.n_ranks = ranks;
        need(0 == launch(function, 1, 1, 1, THREADS, 1, 1, 0, streams[r], params, NULL), "launch");
    }
    for (uint32_t r = 0; r < ranks; r++) {
        need(0 == sync(streams[r]), "the hard-coded kernel");
        w->sets[r]->recv[0][0].step += loops * (2 * ranks - 2);
        w->sets[r]->send[0][0].step += loops * (2 * ranks - 2);
        w->sets[r]->send[0][0].seen = 0;
    }
    return now_us() - begin;
}

int main(int argc, char **argv)
{
    uint32_t ranks = argc > 2 ? (uint32_t) atoi(argv[2]) : 4;
    void *ctx, *module, *function, *streams[WORLD_MAX_RANKS];
    double slope[PAIRS];
    world_t *w;

    need(argc > 1 && ranks >= 2 && ranks <= WORLD_MAX_RANKS, "usage: FATBIN [ranks], which");
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    need(0 == ((int (*)(unsigned)) entry("cuInit"))(0), "cuInit");
    ((int (*)(void **, int)) entry("cuDevicePrimaryCtxRetain"))(&ctx, 0);
    ((int (*)(void *)) entry("cuCtxSetCurrent"))(ctx);
    need(GP_OK == gp_cuda_driver() && GP_OK == gp_cuda_dev_get(0, &dev), "opening the GPU");
    need(0 == ((int (*)(void **, const char *)) entry("cuModuleLoad"))(&module, argv[1]), argv[1]);
    need(0 == ((int (*)(void **, void *, const char *)) entry("cuModuleGetFunction"))(
                  &function, module, "gp_hard_ring_ll"), "finding gp_hard_ring_ll");
    for (uint32_t r = 0; r < ranks; r++) {
        for (int k = 0; k < 2; k++) {
            need(GP_OK == gp_cuda_dev_alloc(dev, 4u << 20, &buffers[r][k]), "device memory");
        }
        need(0 == ((int (*)(void **, unsigned)) entry("cuStreamCreate"))(&streams[r], 1),
             "a stream");
    }
    printf("ring, %u ranks on one GPU, 1 channel, %u threads, chunks of %u B\n", ranks, THREADS,
           4 * CHUNK_ELEMS);
    w = make(GP_PROTO_LL, ranks);
    hard(w, ranks, 10, function, streams);
    for (uint32_t i = 0; i < PAIRS; i++) {
        double one = hard(w, ranks, 1, function, streams);

        slope[i] = (hard(w, ranks, 1 + LOOPS, function, streams) - one) / LOOPS / (2 * ranks - 2);
    }
    printf("hard-coded  ll     %.3f us per step\n", median(slope, PAIRS));
    world_destroy(w);
    for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
        w = make((gp_protocol_t) p, ranks);
        interpreted(w, ranks, 10);
        for (uint32_t i = 0; i < PAIRS; i++) {
            double one = interpreted(w, ranks, 1);

            slope[i] = (interpreted(w, ranks, 1 + LOOPS) - one) / LOOPS / (2 * ranks - 2);
        }
        printf("interpreted %-6s %.3f us per step\n", gp_protocol_name(p), median(slope, PAIRS));
        world_destroy(w);
    }
    return 0;
}
