/*
 * fake_cuda.c - a stand-in for libcuda.so.1, for tests on machines without a GPU.
 *
 * Owns: the control block, devices, contexts, streams, modules, launches and the lookup of entry points;
 * fake_cuda_mem.c owns memory. Strict where a real driver is: most calls want a current context, a
 * handle cannot be opened by its own process or twice, pages cannot be registered twice, fresh device
 * memory holds garbage. A launch runs a function of the test in a thread, in stream order.
 *
 * Built as a shared object with SONAME libcuda.so.1; FAKE_CUDA_V1 leaves out cuGetProcAddress_v2 (drivers
 * before 12.0), FAKE_CUDA_ANCIENT both lookups (before 11.3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/gpu/fake_cuda_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_DEVICES 4
#define FAKE_DEPTH 16

static int fake_depth(void);

FAKE_EXPORT fake_cuda_t fake_cuda = {
    .n_devices = 2,
    .driver_version = 13000,
    .capability = 90,
    .sm_count = 132,
    .mps = 1,
    .depth = fake_depth,
};

struct gp_cu_mod_s {
    gp_cu_context_t ctx;
};

struct gp_cu_func_s {
    struct gp_cu_func_s *next;
    char name[64];
};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fake_cond = PTHREAD_COND_INITIALIZER;
static int fake_initialized;
static struct gp_cu_ctx_s fake_primary[FAKE_DEVICES];
static struct gp_cu_func_s *fake_functions;
static __thread gp_cu_context_t fake_stack[FAKE_DEPTH];
static __thread int fake_top;

static int fake_depth(void)
{
    return fake_top;
}

gp_cu_result_t fake_enter(const char *name)
{
    gp_cu_result_t result = GP_CU_SUCCESS;

    pthread_mutex_lock(&fake_lock);
    ++fake_cuda.calls;
    if (fake_cuda.deinitialized) {
        result = GP_CU_DEINITIALIZED;
    } else if (NULL != fake_cuda.fail_call && 0 == strcmp(name, fake_cuda.fail_call)
               && fake_cuda.fail_skip-- <= 0) {
        result = fake_cuda.fail_result;
    } else if (!fake_initialized && 0 != strcmp(name, "cuInit")
               && 0 != strcmp(name, "cuDriverGetVersion")) {
        result = GP_CU_NOT_INITIALIZED;
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

gp_cu_context_t fake_current(void)
{
    return 0 == fake_top ? NULL : fake_stack[fake_top - 1];
}

/* ---- devices and contexts ------------------------------------------------------------------------ */

gp_cu_result_t fake_cuInit(unsigned int flags)
{
    int i;

    FAKE_ENTER();
    if (0 != flags) {
        return GP_CU_INVALID_VALUE;
    }
    if (0 == fake_cuda.n_devices) {
        return GP_CU_NO_DEVICE;
    }
    for (i = 0; i < FAKE_DEVICES; ++i) {
        fake_primary[i].device = i;
    }
    fake_initialized = 1;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDriverGetVersion(int *version)
{
    FAKE_ENTER();
    *version = fake_cuda.driver_version;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuGetErrorName(gp_cu_result_t error, const char **name)
{
    *name = GP_CU_OUT_OF_MEMORY == error ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDeviceGet(gp_cu_device_t *device, int ordinal)
{
    FAKE_ENTER();
    if (ordinal < 0 || ordinal >= fake_cuda.n_devices) {
        return 101; /* CUDA_ERROR_INVALID_DEVICE */
    }
    *device = ordinal;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDeviceGetCount(int *count)
{
    FAKE_ENTER();
    *count = fake_cuda.n_devices;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDeviceGetAttribute(int *value, int attribute, gp_cu_device_t device)
{
    FAKE_ENTER();
    (void) device;
    switch (attribute) {
    case GP_CU_DEV_MULTIPROCESSOR_COUNT: *value = fake_cuda.sm_count; break;
    case GP_CU_DEV_UNIFIED_ADDRESSING: *value = 1; break;
    case GP_CU_DEV_CAPABILITY_MAJOR: *value = fake_cuda.capability / 10; break;
    case GP_CU_DEV_CAPABILITY_MINOR: *value = fake_cuda.capability % 10; break;
    case GP_CU_DEV_MAX_SHARED_OPTIN_BYTES: *value = 232448; break;
    case GP_CU_DEV_MPS_ENABLED: *value = fake_cuda.mps; break;
    case GP_CU_DEV_HOST_NUMA_ID: *value = 0; break;
    default: return GP_CU_INVALID_VALUE;
    }
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDeviceGetUuid(gp_cu_uuid_t *uuid, gp_cu_device_t device)
{
    int i;

    FAKE_ENTER();
    for (i = 0; i < 16; ++i) {
        uuid->bytes[i] = (unsigned char) (17 * device + i);
    }
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDeviceGetPCIBusId(char *text, int bytes, gp_cu_device_t device)
{
    FAKE_ENTER();
    snprintf(text, (size_t) bytes, "FFFF:%02X:00.0", (unsigned int) device);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDevicePrimaryCtxRetain(gp_cu_context_t *ctx, gp_cu_device_t device)
{
    FAKE_ENTER();
    pthread_mutex_lock(&fake_lock);
    ++fake_primary[device].refs;
    ++fake_cuda.retains;
    pthread_mutex_unlock(&fake_lock);
    *ctx = &fake_primary[device];
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDevicePrimaryCtxRelease(gp_cu_device_t device)
{
    FAKE_ENTER();
    pthread_mutex_lock(&fake_lock);
    --fake_primary[device].refs;
    --fake_cuda.retains;
    pthread_mutex_unlock(&fake_lock);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuDevicePrimaryCtxGetState(gp_cu_device_t device, unsigned int *flags,
                                               int *active)
{
    FAKE_ENTER();
    *flags = 0;
    *active = fake_primary[device].refs > 0;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxCreate(gp_cu_context_t *ctx, unsigned int flags, gp_cu_device_t device)
{
    FAKE_ENTER();
    (void) flags;
    *ctx = calloc(1, sizeof(**ctx));
    (*ctx)->device = device;
    fake_stack[fake_top++] = *ctx;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxDestroy(gp_cu_context_t ctx)
{
    FAKE_ENTER();
    if (fake_current() == ctx) {
        --fake_top;
    }
    free(ctx);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxGetDevice(gp_cu_device_t *device)
{
    FAKE_ENTER_CTX();
    *device = fake_current()->device;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxGetCurrent(gp_cu_context_t *ctx)
{
    FAKE_ENTER();
    *ctx = fake_current();
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxPushCurrent(gp_cu_context_t ctx)
{
    FAKE_ENTER();
    if (NULL == ctx || FAKE_DEPTH == fake_top) {
        return GP_CU_INVALID_CONTEXT;
    }
    fake_stack[fake_top++] = ctx;
    return GP_CU_SUCCESS;
}

/* Never fails on request: a test could not tell a leaked push from a failed pop. */
gp_cu_result_t fake_cuCtxPopCurrent(gp_cu_context_t *ctx)
{
    if (0 == fake_top) {
        return GP_CU_INVALID_CONTEXT;
    }
    *ctx = fake_stack[--fake_top];
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    FAKE_ENTER_CTX();
    *least = 0;
    *greatest = -5;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuCtxEnablePeerAccess(gp_cu_context_t peer, unsigned int flags)
{
    FAKE_ENTER_CTX();
    (void) flags;
    return peer == fake_current() ? GP_CU_INVALID_CONTEXT : GP_CU_SUCCESS;
}

/* ---- modules and launches ------------------------------------------------------------------------ */

gp_cu_result_t fake_cuModuleLoadData(gp_cu_module_t *module, const void *image)
{
    FAKE_ENTER_CTX();
    if (NULL == image) {
        return GP_CU_INVALID_VALUE;
    }
    *module = calloc(1, sizeof(**module));
    (*module)->ctx = fake_current();
    ++fake_cuda.modules;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuModuleUnload(gp_cu_module_t module)
{
    FAKE_ENTER_CTX();
    free(module);
    --fake_cuda.modules;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuModuleGetFunction(gp_cu_function_t *function, gp_cu_module_t module,
                                        const char *name)
{
    struct gp_cu_func_s *f;

    FAKE_ENTER_CTX();
    if (0 != strncmp(name, "gp_kernel_", 10) || NULL == module) {
        return GP_CU_NOT_FOUND;
    }
    pthread_mutex_lock(&fake_lock);
    for (f = fake_functions; NULL != f && 0 != strcmp(f->name, name); f = f->next) {
    }
    if (NULL == f) {
        f = calloc(1, sizeof(*f));
        snprintf(f->name, sizeof(f->name), "%s", name);
        f->next = fake_functions;
        fake_functions = f;
    }
    pthread_mutex_unlock(&fake_lock);
    *function = f;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuFuncGetAttribute(int *value, int attribute, gp_cu_function_t function)
{
    const char *protocol = strrchr(function->name, '_');

    FAKE_ENTER_CTX();
    *value = 0;
    if (GP_CU_FUNC_MAX_THREADS == attribute) {
        *value = 0 == strcmp(protocol, "_ll") ? GP_KERNEL_MAX_THREADS_LL
                 : 0 == strcmp(protocol, "_ll128") ? GP_KERNEL_MAX_THREADS_LL128
                                                   : GP_KERNEL_MAX_THREADS_SIMPLE;
    }
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuFuncSetAttribute(gp_cu_function_t function, int attribute, int value)
{
    FAKE_ENTER_CTX();
    return NULL == function || GP_CU_FUNC_MAX_DYNAMIC_SHARED_BYTES != attribute || value < 0
               || value > 232448
           ? GP_CU_INVALID_VALUE
           : GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuFuncLoad(gp_cu_function_t function)
{
    FAKE_ENTER_CTX();
    return NULL == function ? GP_CU_INVALID_HANDLE : GP_CU_SUCCESS;
}

typedef struct fake_thread {
    fake_launch_t launch;
    gp_cu_stream_t stream;
} fake_thread_t;

static void *fake_run(void *arg)
{
    fake_thread_t *thread = arg;
    int died = NULL != fake_cuda.kernel && fake_cuda.kernel(&thread->launch, fake_cuda.kernel_arg);

    pthread_mutex_lock(&fake_lock);
    if (died) {
        thread->stream->ctx->dead = 1;
    }
    --thread->stream->running;
    --fake_cuda.running;
    pthread_cond_broadcast(&fake_cond);
    pthread_mutex_unlock(&fake_lock);
    free(thread);
    return NULL;
}

void fake_drain(gp_cu_stream_t stream)
{
    pthread_mutex_lock(&fake_lock);
    while (NULL != stream && stream->running > 0) {
        pthread_cond_wait(&fake_cond, &fake_lock);
    }
    pthread_mutex_unlock(&fake_lock);
}

gp_cu_result_t fake_cuLaunchKernel(gp_cu_function_t function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes,
                                   gp_cu_stream_t stream, void **params, void **extra)
{
    fake_thread_t *thread;
    pthread_t id;

    FAKE_ENTER_CTX();
    if (NULL == function || NULL == stream || 1 != grid_y || 1 != grid_z || 1 != block_y
        || 1 != block_z || 0 == grid_x || 0 == block_x || block_x > 1024 || NULL != extra) {
        return GP_CU_INVALID_VALUE;
    }
    fake_drain(stream); /* stream order */
    thread = calloc(1, sizeof(*thread));
    thread->launch.name = function->name;
    thread->launch.grid = grid_x;
    thread->launch.block = block_x;
    thread->launch.shared_bytes = shared_bytes;
    memcpy(&thread->launch.args, params[0], sizeof(thread->launch.args));
    thread->stream = stream;
    pthread_mutex_lock(&fake_lock);
    fake_cuda.last = thread->launch;
    ++fake_cuda.launches;
    ++fake_cuda.running;
    ++stream->running;
    pthread_mutex_unlock(&fake_lock);
    if (0 != pthread_create(&id, NULL, fake_run, thread)) {
        abort();
    }
    pthread_detach(id);
    return GP_CU_SUCCESS;
}

/* ---- streams ------------------------------------------------------------------------------------- */

gp_cu_result_t fake_cuStreamCreateWithPriority(gp_cu_stream_t *stream, unsigned int flags,
                                               int priority)
{
    FAKE_ENTER_CTX();
    (void) priority;
    if (GP_CU_STREAM_NON_BLOCKING != flags) {
        return GP_CU_INVALID_VALUE;
    }
    *stream = calloc(1, sizeof(**stream));
    (*stream)->ctx = fake_current();
    ++fake_cuda.streams;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuStreamDestroy(gp_cu_stream_t stream)
{
    FAKE_ENTER();
    fake_drain(stream);
    free(stream);
    --fake_cuda.streams;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuStreamSynchronize(gp_cu_stream_t stream)
{
    FAKE_ENTER_CTX();
    fake_drain(stream);
    return stream->ctx->dead ? FAKE_LAUNCH_FAILED : GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuStreamQuery(gp_cu_stream_t stream)
{
    gp_cu_result_t result;

    FAKE_ENTER_CTX();
    pthread_mutex_lock(&fake_lock);
    result = stream->ctx->dead ? FAKE_LAUNCH_FAILED
             : stream->running > 0 ? GP_CU_NOT_READY
                                   : GP_CU_SUCCESS;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

/* ---- lookup -------------------------------------------------------------------------------------- */

#ifndef FAKE_CUDA_ANCIENT
#define FAKE_ROW(name, version, required, args) {#name, version, (void *) fake_##name},
static const struct {
    const char *name;
    int version;
    void *entry;
} fake_table[] = {
    GP_CU_ENTRIES(FAKE_ROW)
    FAKE_TEST_ENTRIES(FAKE_ROW)
};

static gp_cu_result_t fake_find(const char *symbol, void **entry, int version, int *found)
{
    size_t i;

    *entry = NULL;
    *found = 1; /* not found */
    for (i = 0; i < sizeof(fake_table) / sizeof(fake_table[0]); ++i) {
        if (0 != strcmp(symbol, fake_table[i].name)
            || (NULL != fake_cuda.missing && 0 == strcmp(symbol, fake_cuda.missing))) {
            continue;
        }
        if (version < fake_table[i].version || fake_cuda.driver_version < fake_table[i].version) {
            *found = 2; /* version not sufficient */
            break;
        }
        *entry = fake_table[i].entry;
        *found = 0;
    }
    return GP_CU_SUCCESS;
}

FAKE_EXPORT gp_cu_result_t cuGetProcAddress(const char *symbol, void **entry, int version,
                                            uint64_t flags);
FAKE_EXPORT gp_cu_result_t cuGetProcAddress(const char *symbol, void **entry, int version,
                                            uint64_t flags)
{
    int found;

    (void) flags;
    (void) fake_find(symbol, entry, version, &found);
    return 0 == found ? GP_CU_SUCCESS : GP_CU_NOT_FOUND;
}

#ifndef FAKE_CUDA_V1
FAKE_EXPORT gp_cu_result_t cuGetProcAddress_v2(const char *symbol, void **entry, int version,
                                               uint64_t flags, int *found);
FAKE_EXPORT gp_cu_result_t cuGetProcAddress_v2(const char *symbol, void **entry, int version,
                                               uint64_t flags, int *found)
{
    (void) flags;
    return fake_find(symbol, entry, version, found);
}
#endif
#endif
