/*
 * gpuproto_perf_mem.c - see gpuproto_perf_mem.h. The CUDA driver is opened at run time and its few
 * entry points are declared here, so that the program builds and runs where there is no CUDA.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf_mem.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANAGED_GLOBAL 1u /* CU_MEM_ATTACH_GLOBAL */

/* Entry points of libcuda.so.1: CUresult is an int, CUdeviceptr 64 bits, handles are pointers. */
static struct {
    int (*init)(unsigned);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*device_name)(char *, int, int);
    int (*ctx_retain)(void **, int);
    int (*ctx_release)(int);
    int (*ctx_set)(void *);
    int (*ctx_sync)(void);
    int (*alloc)(uint64_t *, size_t);
    int (*alloc_managed)(uint64_t *, size_t, unsigned);
    int (*release)(uint64_t);
    int (*host_alloc)(void **, size_t, unsigned);
    int (*host_free)(void *);
    int (*put)(uint64_t, const void *, size_t);
    int (*get)(void *, uint64_t, size_t);
    int (*copy)(uint64_t, uint64_t, size_t);
    int (*set)(uint64_t, unsigned char, size_t);
    int (*error_name)(int, const char **);
} cu;

static struct {
    perf_mem_kind_t kind;
    int device;
    void *ctx;
    void *staging;
    char name[128];
    char error[160];
} mem = {PERF_MEM_HOST, 0, NULL, NULL, "host", ""};

static const struct {
    void *entry;
    const char *name;
} cu_names[] = {
    {&cu.init, "cuInit"},
    {&cu.device_count, "cuDeviceGetCount"},
    {&cu.device_get, "cuDeviceGet"},
    {&cu.device_name, "cuDeviceGetName"},
    {&cu.ctx_retain, "cuDevicePrimaryCtxRetain"},
    {&cu.ctx_release, "cuDevicePrimaryCtxRelease_v2"},
    {&cu.ctx_set, "cuCtxSetCurrent"},
    {&cu.ctx_sync, "cuCtxSynchronize"},
    {&cu.alloc, "cuMemAlloc_v2"},
    {&cu.alloc_managed, "cuMemAllocManaged"},
    {&cu.release, "cuMemFree_v2"},
    {&cu.host_alloc, "cuMemHostAlloc"},
    {&cu.host_free, "cuMemFreeHost"},
    {&cu.put, "cuMemcpyHtoD_v2"},
    {&cu.get, "cuMemcpyDtoH_v2"},
    {&cu.copy, "cuMemcpyDtoD_v2"},
    {&cu.set, "cuMemsetD8_v2"},
    {&cu.error_name, "cuGetErrorName"},
};

/* 0 when result is success; otherwise remember what failed and return -1. */
static int check(int result, const char *what)
{
    const char *name = NULL;

    if (0 == result) {
        return 0;
    }
    if (NULL != cu.error_name) {
        cu.error_name(result, &name);
    }
    snprintf(mem.error, sizeof(mem.error), "%s: %s (%d)", what, NULL != name ? name : "error",
             result);
    return -1;
}

static int load_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    size_t i;

    if (NULL == lib) {
        snprintf(mem.error, sizeof(mem.error), "no CUDA driver (libcuda.so.1) on this machine");
        return -1;
    }
    for (i = 0; i < sizeof(cu_names) / sizeof(cu_names[0]); i++) {
        void *entry = dlsym(lib, cu_names[i].name);

        if (NULL == entry) {
            snprintf(mem.error, sizeof(mem.error), "the CUDA driver lacks %s", cu_names[i].name);
            return -1;
        }
        memcpy(cu_names[i].entry, &entry, sizeof(entry));
    }
    return 0;
}

static int open_device(int local_rank)
{
    int count = 0;

    if (0 != load_driver() || 0 != check(cu.init(0), "cuInit")
        || 0 != check(cu.device_count(&count), "cuDeviceGetCount")) {
        return -1;
    }
    if (0 == count) {
        snprintf(mem.error, sizeof(mem.error), "no CUDA device");
        return -1;
    }
    if (0 != check(cu.device_get(&mem.device, local_rank % count), "cuDeviceGet")
        || 0 != check(cu.ctx_retain(&mem.ctx, mem.device), "cuDevicePrimaryCtxRetain")
        || 0 != check(cu.ctx_set(mem.ctx), "cuCtxSetCurrent")) {
        return -1;
    }
    if (0 != cu.device_name(mem.name, sizeof(mem.name), mem.device)) {
        snprintf(mem.name, sizeof(mem.name), "CUDA device");
    }
    return 0;
}

int perf_mem_open(perf_mem_kind_t kind, int local_rank, const char **text)
{
    mem.kind = PERF_MEM_HOST;
    snprintf(mem.name, sizeof(mem.name), "host");
    if (PERF_MEM_HOST == kind) {
        return 0;
    }
    if (0 == open_device(local_rank)) {
        mem.kind = PERF_MEM_AUTO == kind ? PERF_MEM_CUDA : kind;
        return 0;
    }
    snprintf(mem.name, sizeof(mem.name), "host");
    *text = mem.error;
    return PERF_MEM_AUTO == kind ? 0 : -1;
}

void perf_mem_close(void)
{
    if (PERF_MEM_HOST == mem.kind) {
        free(mem.staging);
    } else {
        if (NULL != mem.staging) {
            cu.host_free(mem.staging);
        }
        cu.ctx_release(mem.device);
    }
    mem.staging = NULL;
}

int perf_mem_attach(void)
{
    return PERF_MEM_HOST == mem.kind ? 0 : check(cu.ctx_set(mem.ctx), "cuCtxSetCurrent");
}

perf_mem_kind_t perf_mem_kind(void)
{
    return mem.kind;
}

const char *perf_mem_kind_name(perf_mem_kind_t kind)
{
    static const char *const names[] = {"auto", "host", "cuda", "managed"};

    return names[kind];
}

const char *perf_mem_device(void)
{
    return mem.name;
}

const char *perf_mem_error(void)
{
    return mem.error;
}

static void *host_alloc(size_t bytes)
{
    void *p = NULL;

    if (0 != posix_memalign(&p, 4096, bytes)) {
        snprintf(mem.error, sizeof(mem.error), "no host memory for %zu bytes", bytes);
        return NULL;
    }
    return p;
}

void *perf_mem_alloc(size_t bytes)
{
    uint64_t p = 0;
    int rc;

    if (PERF_MEM_HOST == mem.kind) {
        return host_alloc(bytes);
    }
    if (PERF_MEM_MANAGED == mem.kind) {
        rc = check(cu.alloc_managed(&p, bytes, MANAGED_GLOBAL), "cuMemAllocManaged");
    } else {
        rc = check(cu.alloc(&p, bytes), "cuMemAlloc");
    }
    return 0 == rc ? (void *) (uintptr_t) p : NULL;
}

void perf_mem_free(void *p)
{
    if (PERF_MEM_HOST == mem.kind) {
        free(p);
    } else if (NULL != p) {
        cu.release((uintptr_t) p);
    }
}

void *perf_mem_staging(size_t bytes)
{
    if (PERF_MEM_HOST == mem.kind) {
        mem.staging = host_alloc(bytes);
    } else if (0 != check(cu.host_alloc(&mem.staging, bytes, 0), "cuMemHostAlloc")) {
        mem.staging = NULL;
    }
    return mem.staging;
}

int perf_mem_put(void *to, const void *staged, size_t bytes)
{
    if (PERF_MEM_HOST == mem.kind) {
        memcpy(to, staged, bytes);
        return 0;
    }
    return check(cu.put((uintptr_t) to, staged, bytes), "cuMemcpyHtoD");
}

int perf_mem_get(void *staged, const void *from, size_t bytes)
{
    if (PERF_MEM_HOST == mem.kind) {
        memcpy(staged, from, bytes);
        return 0;
    }
    return check(cu.get(staged, (uintptr_t) from, bytes), "cuMemcpyDtoH");
}

/* Complete on return, like everything here: an input must be complete when MPI_Allreduce is called. */
int perf_mem_copy(void *to, const void *from, size_t bytes)
{
    if (PERF_MEM_HOST == mem.kind) {
        memcpy(to, from, bytes);
        return 0;
    }
    if (0 != check(cu.copy((uintptr_t) to, (uintptr_t) from, bytes), "cuMemcpyDtoD")) {
        return -1;
    }
    return check(cu.ctx_sync(), "cuCtxSynchronize");
}

int perf_mem_set(void *to, unsigned char value, size_t bytes)
{
    if (PERF_MEM_HOST == mem.kind) {
        memset(to, value, bytes);
        return 0;
    }
    if (0 != check(cu.set((uintptr_t) to, value, bytes), "cuMemsetD8")) {
        return -1;
    }
    return check(cu.ctx_sync(), "cuCtxSynchronize");
}
