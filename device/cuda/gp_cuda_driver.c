/*
 * gp_cuda_driver.c - find the CUDA driver that the process has loaded, if it has.
 *
 * Owns the table of entry points and the state "not loaded / no device / usable / broken". libcuda.so.1
 * is never loaded from here: dlopen is asked with RTLD_NOLOAD. A process that has no libcuda has no
 * device memory, and pays for asking one look at the dynamic linker's load counter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dl_iterate_phdr */
#endif

#include "device/cuda/gp_cuda_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/gp_cuda.h"
#include "device/proto/gp_log.h"
#include "device/proto/gp_port.h"

#define GP_CU_MIN_VERSION 11040 /* cuGetProcAddress came with 11.3, the UUID that knows MIG with 11.4 */

typedef gp_cu_result_t (*gp_cu_gpa_t)(const char *, void **, int, uint64_t);
typedef gp_cu_result_t (*gp_cu_gpa_v2_t)(const char *, void **, int, uint64_t, int *);

typedef enum gp_cu_state {
    GP_CU_STATE_UNKNOWN,   /* not loaded at the last look */
    GP_CU_STATE_READY,
    GP_CU_STATE_NO_DEVICE, /* loaded, but no GPU is visible: no device memory can exist */
    GP_CU_STATE_BROKEN
} gp_cu_state_t;

gp_cu_table_t gp_cu;

/* Written under the lock with release after gp_cu is filled; read with acquire by everybody. */
static uint32_t gp_cu_state = GP_CU_STATE_UNKNOWN;
/* dlpi_adds at the last look that found no libcuda, plus 1; 0 before the first look. Any thread. */
static uint64_t gp_cu_seen_adds;
static gp_status_t gp_cu_broken_status;
static void *gp_cu_library;
static pthread_mutex_t gp_cu_lock = PTHREAD_MUTEX_INITIALIZER;

const char *gp_cu_error_name(gp_cu_result_t result)
{
    const char *name = NULL;

    if (NULL != gp_cu.cuGetErrorName && GP_CU_SUCCESS == gp_cu.cuGetErrorName(result, &name)
        && NULL != name) {
        return name;
    }
    return "?";
}

gp_status_t gp_cu_fail(const char *call, gp_cu_result_t result, const char *advice)
{
    gp_log(gp_cu_is_gone(result) ? GP_LOG_DEBUG : GP_LOG_ERROR, "CUDA: %s failed: %s (%d)%s%s",
           call, gp_cu_error_name(result), result, NULL == advice ? "" : "; ",
           NULL == advice ? "" : advice);
    return GP_CU_OUT_OF_MEMORY == result ? GP_ERR_NO_MEMORY : GP_ERR_CUDA;
}

gp_status_t gp_cu_enter(gp_cu_context_t ctx, int *pushed)
{
    gp_cu_context_t current = NULL;
    gp_cu_result_t result = gp_cu.cuCtxGetCurrent(&current);

    *pushed = 0;
    if (GP_CU_SUCCESS == result && current == ctx) {
        return GP_OK;
    }
    result = gp_cu.cuCtxPushCurrent(ctx);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuCtxPushCurrent", result, NULL);
    }
    *pushed = 1;
    return GP_OK;
}

void gp_cu_leave(int pushed)
{
    gp_cu_context_t ignored;

    if (pushed) {
        (void) gp_cu.cuCtxPopCurrent(&ignored);
    }
}

/* First callback of dl_iterate_phdr: the counter is the same for every object, so one is enough. */
static int gp_cu_read_adds(struct dl_phdr_info *info, size_t bytes, void *adds)
{
    if (bytes >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds)) {
        *(uint64_t *) adds = info->dlpi_adds + 1;
    }
    return 1;
}

/* How many objects the process has ever loaded, plus 1; 0 when the C library does not tell. */
static uint64_t gp_cu_adds(void)
{
    uint64_t adds = 0;

    (void) dl_iterate_phdr(gp_cu_read_adds, &adds);
    return adds;
}

/* Find one entry point by whichever cuGetProcAddress the library has. NULL when it has none. */
static void *gp_cu_find(gp_cu_gpa_v2_t gpa_v2, gp_cu_gpa_t gpa, const char *name, int version)
{
    void *entry = NULL;
    int found = 0;

    if (NULL != gpa_v2) {
        if (GP_CU_SUCCESS != gpa_v2(name, &entry, version, 0, &found) || 0 != found) {
            return NULL;
        }
    } else if (GP_CU_SUCCESS != gpa(name, &entry, version, 0)) {
        return NULL;
    }
    return entry;
}

/* Fill gp_cu from the library. Logs what is missing. */
static gp_status_t gp_cu_fill(void *library)
{
    gp_cu_gpa_v2_t gpa_v2 = NULL;
    gp_cu_gpa_t gpa = NULL;
    void *entry;

    entry = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&gpa_v2, &entry, sizeof(entry));
    entry = dlsym(library, "cuGetProcAddress");
    memcpy(&gpa, &entry, sizeof(entry));
    if (NULL == gpa_v2 && NULL == gpa) {
        gp_log(GP_LOG_ERROR,
               "CUDA: the driver has no cuGetProcAddress: it is older than CUDA 11.3 and "
               "not supported; device buffers are left to the previous component");
        return GP_ERR_UNSUPPORTED;
    }
#define GP_CU_FILL(name, wanted, required, args)                                                   \
    entry = gp_cu_find(gpa_v2, gpa, #name, wanted);                                                \
    if (NULL == entry && required) {                                                               \
        gp_log(GP_LOG_ERROR, "CUDA: the driver lacks %s (CUDA %d.%d)", #name, wanted / 1000,       \
               wanted % 1000 / 10);                                                                \
        return GP_ERR_UNSUPPORTED;                                                                 \
    }                                                                                              \
    memcpy(&gp_cu.name, &entry, sizeof(entry));
    GP_CU_ENTRIES(GP_CU_FILL)
#undef GP_CU_FILL
    return GP_OK;
}

/* Initialize a library that was just found. Result: the new state. */
static gp_cu_state_t gp_cu_open(void *library)
{
    gp_cu_result_t result;
    int count = 0;

    gp_cu_broken_status = gp_cu_fill(library);
    if (GP_OK != gp_cu_broken_status) {
        return GP_CU_STATE_BROKEN;
    }
    result = gp_cu.cuInit(0);
    if (GP_CU_SUCCESS == result) {
        result = gp_cu.cuDeviceGetCount(&count);
    }
    if (GP_CU_NO_DEVICE == result || GP_CU_STUB_LIBRARY == result
        || (GP_CU_SUCCESS == result && 0 == count)) {
        gp_log(GP_LOG_INFO,
               "CUDA: libcuda is loaded but shows no GPU: all buffers are host buffers");
        return GP_CU_STATE_NO_DEVICE;
    }
    if (GP_CU_SUCCESS != result) {
        gp_cu_broken_status = gp_cu_fail("cuInit", result, "check the driver with nvidia-smi");
        return GP_CU_STATE_BROKEN;
    }
    result = gp_cu.cuDriverGetVersion(&gp_cu.version);
    if (GP_CU_SUCCESS != result) {
        gp_cu_broken_status = gp_cu_fail("cuDriverGetVersion", result, NULL);
        return GP_CU_STATE_BROKEN;
    }
    if (gp_cu.version < GP_CU_MIN_VERSION) {
        gp_log(GP_LOG_ERROR, "CUDA: driver for CUDA %d.%d found, %d.%d or newer needed",
               gp_cu.version / 1000, gp_cu.version % 1000 / 10, GP_CU_MIN_VERSION / 1000,
               GP_CU_MIN_VERSION % 1000 / 10);
        gp_cu_broken_status = GP_ERR_UNSUPPORTED;
        return GP_CU_STATE_BROKEN;
    }
    return GP_CU_STATE_READY;
}

static gp_status_t gp_cu_status_of(uint32_t state)
{
    switch (state) {
    case GP_CU_STATE_READY:
        return GP_OK;
    case GP_CU_STATE_BROKEN:
        return gp_cu_broken_status;
    default:
        return GP_DECLINED;
    }
}

gp_status_t gp_cuda_driver(void)
{
    uint32_t state = gp_load_acquire_u32(&gp_cu_state); /* pairs with the release below */
    uint64_t adds;

    if (GP_CU_STATE_UNKNOWN != state) {
        return gp_cu_status_of(state);
    }
    /*
     * The counter is read before looking for the library: an object that is loaded in between is seen
     * by this look or moves the counter for the next one.
     */
    adds = gp_cu_adds();
    if (0 != adds && adds == gp_load_relaxed_u64(&gp_cu_seen_adds)) {
        return GP_DECLINED;
    }
    pthread_mutex_lock(&gp_cu_lock);
    state = gp_load_relaxed_u32(&gp_cu_state);
    if (GP_CU_STATE_UNKNOWN == state) {
        gp_cu_library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
        if (NULL == gp_cu_library) {
            gp_store_relaxed_u64(&gp_cu_seen_adds, adds);
        } else {
            state = gp_cu_open(gp_cu_library);
            gp_store_release_u32(&gp_cu_state, state);
        }
    }
    pthread_mutex_unlock(&gp_cu_lock);
    return gp_cu_status_of(state);
}

void gp_cu_unload(void)
{
    pthread_mutex_lock(&gp_cu_lock);
    if (NULL != gp_cu_library) {
        gp_store_release_u32(&gp_cu_state, GP_CU_STATE_UNKNOWN);
        gp_store_relaxed_u64(&gp_cu_seen_adds, 0);
        memset(&gp_cu, 0, sizeof(gp_cu));
        (void) dlclose(gp_cu_library);
        gp_cu_library = NULL;
    }
    pthread_mutex_unlock(&gp_cu_lock);
}
