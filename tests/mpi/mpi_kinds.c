/*
 * mpi_kinds.c - every kind of memory a CUDA program may hand to MPI, for the send and the receive buffer.
 *
 * Device memory of the primary context, of a pool, of a second context, with no context current at all,
 * managed, pinned and registered host memory, and plain host memory with the other buffer on the device.
 * Entry points of the driver are declared here: the program builds where there is no CUDA.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/mpi_cases.h"

typedef enum kind {
    KIND_DEVICE,
    KIND_POOL,
    KIND_SECOND,     /* of a context that is not the primary one, nor current */
    KIND_MANAGED,
    KIND_PINNED,
    KIND_REGISTERED,
    KIND_PLAIN,
    KIND_COUNT
} kind_t;

static const char *const kind_names[KIND_COUNT] = {
    "device", "pool", "second context", "managed", "pinned", "registered", "plain",
};

enum { SKEW_ELEMS = 1, MAX_ELEMS = 300001 };

static struct {
    int (*ctx_get)(void **);
    int (*ctx_set)(void *);
    int (*ctx_create)(void **, unsigned, int);
    int (*ctx_destroy)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*alloc_pool)(uint64_t *, size_t, void *);
    int (*alloc_managed)(uint64_t *, size_t, unsigned);
    int (*release)(uint64_t);
    int (*host_alloc)(void **, size_t, unsigned);
    int (*host_free)(void *);
    int (*host_register)(void *, size_t, unsigned);
    int (*host_unregister)(void *);
    int (*stream_sync)(void *);
    int (*copy)(uint64_t, uint64_t, size_t);
} cu;

static void *primary, *second;

static void need(int result, const char *what)
{
    if (0 != result) {
        mc_fail("%s: CUDA error %d", what, result);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void load(void)
{
    static const struct {
        void *entry;
        const char *name;
    } names[] = {
        {&cu.ctx_get, "cuCtxGetCurrent"},
        {&cu.ctx_set, "cuCtxSetCurrent"},
        {&cu.ctx_create, "cuCtxCreate_v2"},
        {&cu.ctx_destroy, "cuCtxDestroy_v2"},
        {&cu.alloc, "cuMemAlloc_v2"},
        {&cu.alloc_pool, "cuMemAllocAsync"},
        {&cu.alloc_managed, "cuMemAllocManaged"},
        {&cu.release, "cuMemFree_v2"},
        {&cu.host_alloc, "cuMemHostAlloc"},
        {&cu.host_free, "cuMemFreeHost"},
        {&cu.host_register, "cuMemHostRegister_v2"},
        {&cu.host_unregister, "cuMemHostUnregister"},
        {&cu.stream_sync, "cuStreamSynchronize"},
        {&cu.copy, "cuMemcpy"},
    };
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *entry = NULL != lib ? dlsym(lib, names[i].name) : NULL;

        need(NULL == entry, names[i].name);
        memcpy(names[i].entry, &entry, sizeof(entry));
    }
}

static unsigned char *kind_alloc(kind_t kind, size_t bytes)
{
    uint64_t p = 0;
    void *host = NULL;

    switch (kind) {
    case KIND_DEVICE:
        need(cu.alloc(&p, bytes), "cuMemAlloc");
        break;
    case KIND_POOL:
        need(cu.alloc_pool(&p, bytes, NULL), "cuMemAllocAsync");
        need(cu.stream_sync(NULL), "cuStreamSynchronize");
        break;
    case KIND_SECOND:
        need(cu.ctx_set(second), "cuCtxSetCurrent");
        need(cu.alloc(&p, bytes), "cuMemAlloc in a second context");
        need(cu.ctx_set(primary), "cuCtxSetCurrent");
        break;
    case KIND_MANAGED:
        need(cu.alloc_managed(&p, bytes, 1), "cuMemAllocManaged");
        break;
    case KIND_PINNED:
        need(cu.host_alloc(&host, bytes, 0), "cuMemHostAlloc");
        return host;
    default:
        need(0 != posix_memalign(&host, 4096, bytes), "posix_memalign");
        if (KIND_REGISTERED == kind) {
            need(cu.host_register(host, bytes, 0), "cuMemHostRegister");
        }
        return host;
    }
    return (unsigned char *) (uintptr_t) p;
}

static void kind_free(kind_t kind, unsigned char *p)
{
    if (KIND_PINNED == kind) {
        need(cu.host_free(p), "cuMemFreeHost");
    } else if (KIND_REGISTERED == kind || KIND_PLAIN == kind) {
        if (KIND_REGISTERED == kind) {
            need(cu.host_unregister(p), "cuMemHostUnregister");
        }
        free(p);
    } else {
        need(cu.ctx_set(KIND_SECOND == kind ? second : primary), "cuCtxSetCurrent");
        need(cu.release((uintptr_t) p), "cuMemFree");
        need(cu.ctx_set(primary), "cuCtxSetCurrent");
    }
}

static void one_call(kind_t from, unsigned char *send, kind_t to, unsigned char *recv, size_t count,
                     int in_place, int no_context, unsigned char *host)
{
    size_t bytes = count * sizeof(float), skew = SKEW_ELEMS * sizeof(float);
    unsigned char *input = in_place ? recv : send;
    perf_data_t data;
    uint64_t bad, at = 0;
    int rc;

    perf_data_init(&data, GP_TYPE_F32, GP_OP_SUM, (uint32_t) mc_ranks, 1, count + to);
    perf_data_fill(&data, (uint32_t) mc_rank, 0, count, host);
    need(cu.copy((uintptr_t) input + skew, (uintptr_t) host, bytes), "cuMemcpy");
    need(cu.ctx_set(no_context ? NULL : primary), "cuCtxSetCurrent");
    rc = MPI_Allreduce(in_place ? MPI_IN_PLACE : (const void *) (send + skew), recv + skew,
                       (int) count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    need(cu.ctx_set(primary), "cuCtxSetCurrent");
    need(cu.copy((uintptr_t) host, (uintptr_t) recv + skew, bytes), "cuMemcpy");
    bad = perf_data_check(&data, 0, count, host, &at);
    if (MPI_SUCCESS != rc || 0 != bad) {
        mc_fail("from %s to %s memory%s%s, %zu floats: rc %d, %llu wrong, first at %llu",
                kind_names[from], kind_names[to], in_place ? ", in place" : "",
                no_context ? ", no context current" : "", count, rc, (unsigned long long) bad,
                (unsigned long long) at);
    }
}

void mc_kinds(void)
{
    static const size_t counts[] = {1, 1000, MAX_ELEMS};
    size_t bytes = (MAX_ELEMS + SKEW_ELEMS) * sizeof(float);
    unsigned char *host = malloc(bytes);
    perf_mpit_values_t before = mc_stats();
    uint64_t calls = 0;

    load();
    need(cu.ctx_get(&primary), "cuCtxGetCurrent");
    need(cu.ctx_create(&second, 0, 0), "cuCtxCreate");
    need(cu.ctx_set(primary), "cuCtxSetCurrent");
    for (kind_t from = 0; from < KIND_COUNT; from++) {
        for (kind_t to = 0; to < KIND_COUNT; to++) {
            unsigned char *send = kind_alloc(from, bytes), *recv = kind_alloc(to, bytes);

            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                one_call(from, send, to, recv, counts[i], 0, 0, host);
                one_call(from, send, to, recv, counts[i], 1, 0, host);
                one_call(from, send, to, recv, counts[i], (int) (i % 2), 1, host);
                calls += 3;
            }
            /* Freeing waits for what runs on the device, and peers may still be in the call. */
            MPI_Barrier(MPI_COMM_WORLD);
            kind_free(from, send);
            kind_free(to, recv);
        }
    }
    mc_expect(&before, MC_OURS, calls, "every kind of memory");
    need(cu.ctx_destroy(second), "cuCtxDestroy");
    need(cu.ctx_set(primary), "cuCtxSetCurrent");
    free(host);
}
