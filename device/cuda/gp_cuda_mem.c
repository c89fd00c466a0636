/*
 * gp_cuda_mem.c - what kind of memory a pointer is, copies, and pinned memory.
 *
 * Owns the primary contexts of the process's devices (retained on demand) with one private stream each,
 * and the list of pinned blocks handed out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/proto/gp_log.h"

static pthread_mutex_t gp_mem_lock = PTHREAD_MUTEX_INITIALIZER; /* of everything static below */
static gp_cuda_prim_t gp_prims[GP_CUDA_MAX_DEVICES];

typedef struct gp_pinned {
    struct gp_pinned *next;
    void *ptr;
    size_t bytes;          /* of the mapping; 0: from cuMemHostAlloc */
    gp_cu_context_t ctx;
} gp_pinned_t;

static gp_pinned_t *gp_pinned_blocks;

/* ---- pointer query ------------------------------------------------------------------------------- */

/* Attributes a driver of our oldest version may not know come last, so a shorter query is a prefix. */
enum { GP_PTR_QUERY_BASIC = 5, GP_PTR_QUERY_ALL = 7 };

gp_status_t gp_cuda_ptr_info(const void *ptr, gp_ptr_info_t *info)
{
    int attributes[GP_PTR_QUERY_ALL] = {GP_CU_PTR_MEMORY_TYPE, GP_CU_PTR_IS_MANAGED,
                                        GP_CU_PTR_DEVICE_ORDINAL, GP_CU_PTR_CONTEXT,
                                        GP_CU_PTR_BUFFER_ID,      GP_CU_PTR_IS_IPC_CAPABLE,
                                        GP_CU_PTR_MEMPOOL_HANDLE};
    /* 8 bytes each, although some answers are 4 or 1 bytes wide: never written past. */
    union {
        uint64_t word;
        uint32_t u32;
        int32_t i32;
        uint8_t flag;
        void *pointer;
    } values[GP_PTR_QUERY_ALL];
    void *outputs[GP_PTR_QUERY_ALL];
    gp_cu_result_t result;
    int i;

    memset(info, 0, sizeof(*info));
    if (NULL == ptr || GP_OK != gp_cuda_driver()) {
        return GP_OK;
    }
    memset(values, 0, sizeof(values));
    for (i = 0; i < GP_PTR_QUERY_ALL; ++i) {
        outputs[i] = &values[i];
    }
    result = gp_cu.cuPointerGetAttributes(GP_PTR_QUERY_ALL, attributes, outputs,
                                          (gp_cu_ptr_t) (uintptr_t) ptr);
    if (GP_CU_INVALID_VALUE == result) {
        memset(values, 0, sizeof(values));
        result = gp_cu.cuPointerGetAttributes(GP_PTR_QUERY_BASIC, attributes, outputs,
                                              (gp_cu_ptr_t) (uintptr_t) ptr);
    }
    if (GP_CU_SUCCESS != result) {
        /* No context in the process yet, or the driver is gone: no device memory exists either way. */
        if (GP_CU_INVALID_VALUE == result || GP_CU_INVALID_CONTEXT == result
            || gp_cu_is_gone(result)) {
            return GP_OK;
        }
        return gp_cu_fail("cuPointerGetAttributes", result, NULL);
    }
    info->is_managed = 0 != values[1].u32;
    if (!info->is_managed && GP_CU_MEMORY_DEVICE != values[0].u32) {
        return GP_OK; /* 0: unknown to the driver; host: registered or pinned, which the CPU may touch */
    }
    info->is_device = 1;
    info->device = values[2].i32;
    info->context = values[3].pointer;
    info->buffer_id = values[4].word;
    info->is_ipc = 0 != values[5].flag;
    info->is_async = NULL != values[6].pointer;
    return GP_OK;
}

/* ---- contexts ------------------------------------------------------------------------------------ */

/* Make the stream of a context that is current. */
static gp_status_t gp_prim_stream(gp_cu_stream_t *stream)
{
    int least = 0;
    int greatest = 0;
    gp_cu_result_t result;

    (void) gp_cu.cuCtxGetStreamPriorityRange(&least, &greatest);
    result = gp_cu.cuStreamCreateWithPriority(stream, GP_CU_STREAM_NON_BLOCKING, greatest);
    return GP_CU_SUCCESS == result ? GP_OK : gp_cu_fail("cuStreamCreateWithPriority", result, NULL);
}

/* Retain and fill an empty entry. The lock is held. */
static gp_status_t gp_prim_open(gp_cuda_prim_t *prim, int ordinal)
{
    gp_cu_result_t result;
    gp_status_t status;
    int pushed;

    result = gp_cu.cuDeviceGet(&prim->device, ordinal);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuDeviceGet", result, NULL);
    }
    result = gp_cu.cuDevicePrimaryCtxRetain(&prim->ctx, prim->device);
    if (GP_CU_SUCCESS != result) {
        prim->ctx = NULL;
        return gp_cu_fail("cuDevicePrimaryCtxRetain", result,
                          "is the GPU in exclusive mode, or out of memory?");
    }
    status = gp_cu_enter(prim->ctx, &pushed);
    if (GP_OK != status) {
        goto err_release;
    }
    status = gp_prim_stream(&prim->stream);
    gp_cu_leave(pushed);
    if (GP_OK != status) {
        goto err_release;
    }
    return GP_OK;

err_release:
    (void) gp_cu.cuDevicePrimaryCtxRelease(prim->device);
    memset(prim, 0, sizeof(*prim));
    return status;
}

gp_status_t gp_cuda_prim_get(int ordinal, gp_cuda_prim_t **prim_p)
{
    gp_status_t status = GP_OK;

    if (ordinal < 0 || ordinal >= GP_CUDA_MAX_DEVICES) {
        gp_log(GP_LOG_ERROR, "CUDA: device ordinal %d is outside 0..%d", ordinal,
               GP_CUDA_MAX_DEVICES - 1);
        return GP_ERR_INVALID;
    }
    pthread_mutex_lock(&gp_mem_lock);
    if (NULL == gp_prims[ordinal].ctx) {
        status = gp_prim_open(&gp_prims[ordinal], ordinal);
    }
    pthread_mutex_unlock(&gp_mem_lock);
    if (GP_OK == status) {
        *prim_p = &gp_prims[ordinal];
    }
    return status;
}

/* After the application has reset the device: take what the context is now. */
static gp_status_t gp_prim_reopen(gp_cuda_prim_t *prim, int ordinal)
{
    gp_status_t status;

    pthread_mutex_lock(&gp_mem_lock);
    if (NULL != prim->ctx) {
        (void) gp_cu.cuDevicePrimaryCtxRelease(prim->device);
    }
    memset(prim, 0, sizeof(*prim));
    status = gp_prim_open(prim, ordinal);
    pthread_mutex_unlock(&gp_mem_lock);
    return status;
}

void gp_cuda_prim_finalize(void)
{
    int pushed;
    int i;

    pthread_mutex_lock(&gp_mem_lock);
    for (i = 0; i < GP_CUDA_MAX_DEVICES; ++i) {
        if (NULL == gp_prims[i].ctx) {
            continue;
        }
        if (GP_OK == gp_cu_enter(gp_prims[i].ctx, &pushed)) {
            (void) gp_cu.cuStreamDestroy(gp_prims[i].stream);
            gp_cu_leave(pushed);
        }
        (void) gp_cu.cuDevicePrimaryCtxRelease(gp_prims[i].device);
        memset(&gp_prims[i], 0, sizeof(gp_prims[i]));
    }
    pthread_mutex_unlock(&gp_mem_lock);
}

/* ---- copies -------------------------------------------------------------------------------------- */

/* Result of the copy, not logged: the caller decides what a dead stream means. */
static gp_cu_result_t gp_copy_on(gp_cu_stream_t stream, gp_cu_ptr_t dst, gp_cu_ptr_t src,
                                 size_t bytes, const char **call)
{
    gp_cu_result_t result = gp_cu.cuMemcpyAsync(dst, src, bytes, stream);

    *call = "cuMemcpyAsync";
    if (GP_CU_SUCCESS == result) {
        *call = "cuStreamSynchronize";
        result = gp_cu.cuStreamSynchronize(stream);
    }
    return result;
}

gp_status_t gp_cuda_prim_copy(gp_cuda_prim_t *prim, gp_cu_ptr_t dst, gp_cu_ptr_t src, size_t bytes)
{
    const char *call;
    gp_cu_result_t result = gp_copy_on(prim->stream, dst, src, bytes, &call);

    return GP_CU_SUCCESS == result ? GP_OK : gp_cu_fail(call, result, NULL);
}

/* Is ctx a context other than the device's primary one? Does not create the latter. */
static int gp_is_foreign(int ordinal, void *ctx)
{
    gp_cu_device_t device;
    unsigned int flags;
    int active = 0;
    gp_cuda_prim_t *prim;

    if (NULL == ctx) {
        return 0; /* pool and mapped memory belong to the device, not to a context */
    }
    if (GP_CU_SUCCESS == gp_cu.cuDeviceGet(&device, ordinal)
        && GP_CU_SUCCESS == gp_cu.cuDevicePrimaryCtxGetState(device, &flags, &active) && !active) {
        return 1;
    }
    return GP_OK != gp_cuda_prim_get(ordinal, &prim) || (void *) prim->ctx != ctx;
}

/* Rare: memory of a context the application made itself. It may go at any time, so we keep nothing. */
static gp_status_t gp_copy_foreign(void *ctx, gp_cu_ptr_t dst, gp_cu_ptr_t src, size_t bytes)
{
    gp_cu_stream_t stream;
    gp_cu_result_t result;
    gp_status_t status;
    const char *call;
    int pushed;

    status = gp_cu_enter((gp_cu_context_t) ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    status = gp_prim_stream(&stream);
    if (GP_OK == status) {
        result = gp_copy_on(stream, dst, src, bytes, &call);
        if (GP_CU_SUCCESS != result) {
            status = gp_cu_fail(call, result, NULL);
        }
        (void) gp_cu.cuStreamDestroy(stream);
    }
    gp_cu_leave(pushed);
    return status;
}

gp_status_t gp_cuda_copy(void *dst, const void *src, size_t bytes)
{
    gp_cu_ptr_t to = (gp_cu_ptr_t) (uintptr_t) dst;
    gp_cu_ptr_t from = (gp_cu_ptr_t) (uintptr_t) src;
    gp_ptr_info_t dst_info;
    gp_ptr_info_t src_info;
    const gp_ptr_info_t *info;
    gp_cuda_prim_t *prim;
    gp_cu_result_t result;
    gp_status_t status;
    const char *call;
    int attempt;
    int pushed;

    if (0 == bytes) {
        return GP_OK;
    }
    status = gp_cuda_ptr_info(dst, &dst_info);
    if (GP_OK == status) {
        status = gp_cuda_ptr_info(src, &src_info);
    }
    if (GP_OK != status) {
        return status;
    }
    if (!dst_info.is_device && !src_info.is_device) {
        memmove(dst, src, bytes);
        return GP_OK;
    }
    info = dst_info.is_device ? &dst_info : &src_info;
    if (gp_is_foreign(info->device, info->context)) {
        return gp_copy_foreign(info->context, to, from, bytes);
    }
    status = gp_cuda_prim_get(info->device, &prim);
    for (attempt = 0; GP_OK == status; ++attempt) {
        status = gp_cu_enter(prim->ctx, &pushed);
        if (GP_OK != status) {
            break;
        }
        result = gp_copy_on(prim->stream, to, from, bytes, &call);
        gp_cu_leave(pushed);
        if (GP_CU_SUCCESS == result) {
            return GP_OK;
        }
        if (attempt > 0
            || (GP_CU_INVALID_CONTEXT != result && GP_CU_INVALID_HANDLE != result
                && GP_CU_CONTEXT_IS_DESTROYED != result)) {
            return gp_cu_fail(call, result, NULL);
        }
        status = gp_prim_reopen(prim, info->device);
    }
    return status;
}

/* ---- pinned host memory -------------------------------------------------------------------------- */

/*
 * A context to allocate in: one we hold already, else the device of the caller's context, else device 0.
 */
static gp_status_t gp_any_prim(gp_cuda_prim_t **prim_p)
{
    gp_cu_context_t ctx = NULL;
    gp_cu_device_t device = 0;
    int i;

    pthread_mutex_lock(&gp_mem_lock);
    for (i = 0; i < GP_CUDA_MAX_DEVICES && NULL == gp_prims[i].ctx; ++i) {
    }
    pthread_mutex_unlock(&gp_mem_lock);
    if (i < GP_CUDA_MAX_DEVICES) {
        *prim_p = &gp_prims[i];
        return GP_OK;
    }
    if (GP_CU_SUCCESS != gp_cu.cuCtxGetCurrent(&ctx) || NULL == ctx
        || GP_CU_SUCCESS != gp_cu.cuCtxGetDevice(&device)) {
        device = 0;
    }
    return gp_cuda_prim_get(device, prim_p); /* a CUdevice is the ordinal */
}

/*
 * Our own pages, registered: they stay valid memory when the application resets the device, where
 * memory of cuMemHostAlloc would vanish under a polling CPU. The latter serves where registering is
 * not possible.
 */
static gp_status_t gp_pin(size_t bytes, gp_pinned_t *block)
{
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    gp_cu_result_t result;
    void *ptr;

    if (rounded < bytes) {
        return GP_ERR_NO_MEMORY;
    }
    ptr = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED != ptr) {
        result = gp_cu.cuMemHostRegister(ptr, rounded, GP_CU_HOST_PORTABLE | GP_CU_HOST_DEVICEMAP);
        if (GP_CU_SUCCESS == result) {
            block->ptr = ptr;
            block->bytes = rounded;
            return GP_OK;
        }
        (void) munmap(ptr, rounded);
    }
    result = gp_cu.cuMemHostAlloc(&ptr, rounded, GP_CU_HOST_PORTABLE | GP_CU_HOST_DEVICEMAP);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuMemHostAlloc", result, "check ulimit -l and free memory");
    }
    memset(ptr, 0, rounded);
    block->ptr = ptr;
    block->bytes = 0;
    return GP_OK;
}

static void gp_unpin(gp_pinned_t *block)
{
    int pushed = 0;

    (void) gp_cu_enter(block->ctx, &pushed);
    if (0 != block->bytes) {
        (void) gp_cu.cuMemHostUnregister(block->ptr);
        (void) munmap(block->ptr, block->bytes);
    } else {
        (void) gp_cu.cuMemFreeHost(block->ptr);
    }
    gp_cu_leave(pushed);
    free(block);
}

gp_status_t gp_cuda_host_alloc(size_t bytes, void **ptr_p)
{
    gp_cuda_prim_t *prim;
    gp_pinned_t *block;
    gp_status_t status;
    int pushed;

    if (0 == bytes) {
        return GP_ERR_INVALID;
    }
    status = gp_cuda_driver();
    if (GP_OK != status) {
        return GP_DECLINED == status ? GP_ERR_UNSUPPORTED : status;
    }
    block = calloc(1, sizeof(*block));
    if (NULL == block) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    status = gp_any_prim(&prim);
    if (GP_OK != status) {
        goto err_block;
    }
    block->ctx = prim->ctx;
    status = gp_cu_enter(prim->ctx, &pushed);
    if (GP_OK != status) {
        goto err_block;
    }
    status = gp_pin(bytes, block);
    gp_cu_leave(pushed);
    if (GP_OK != status) {
        goto err_block;
    }
    pthread_mutex_lock(&gp_mem_lock);
    block->next = gp_pinned_blocks;
    gp_pinned_blocks = block;
    pthread_mutex_unlock(&gp_mem_lock);
    *ptr_p = block->ptr;
    return GP_OK;

err_block:
    free(block);
    return status;
}

void gp_cuda_host_free(void *ptr)
{
    gp_pinned_t **at;
    gp_pinned_t *block = NULL;

    if (NULL == ptr) {
        return;
    }
    pthread_mutex_lock(&gp_mem_lock);
    for (at = &gp_pinned_blocks; NULL != *at; at = &(*at)->next) {
        if ((*at)->ptr == ptr) {
            block = *at;
            *at = block->next;
            break;
        }
    }
    pthread_mutex_unlock(&gp_mem_lock);
    if (NULL != block) {
        gp_unpin(block);
    }
}

void gp_cuda_host_finalize(void)
{
    gp_pinned_t *block;

    pthread_mutex_lock(&gp_mem_lock);
    while (NULL != (block = gp_pinned_blocks)) {
        gp_pinned_blocks = block->next;
        gp_unpin(block);
    }
    pthread_mutex_unlock(&gp_mem_lock);
}

gp_status_t gp_cuda_dev_alloc(gp_cuda_dev_t *dev, size_t bytes, void **ptr_p)
{
    gp_cu_ptr_t ptr = 0;
    gp_cu_result_t result;
    gp_status_t status;
    int pushed;

    status = gp_cu_enter(dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    result = gp_cu.cuMemAlloc(&ptr, bytes);
    gp_cu_leave(pushed);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuMemAlloc", result, "free device memory");
    }
    *ptr_p = (void *) (uintptr_t) ptr;
    return GP_OK;
}

void gp_cuda_dev_free(gp_cuda_dev_t *dev, void *ptr)
{
    gp_cu_result_t result;
    int pushed;

    if (NULL == ptr || GP_OK != gp_cu_enter(dev->prim->ctx, &pushed)) {
        return;
    }
    result = gp_cu.cuMemFree((gp_cu_ptr_t) (uintptr_t) ptr);
    gp_cu_leave(pushed);
    if (GP_CU_SUCCESS != result) {
        (void) gp_cu_fail("cuMemFree", result, NULL);
    }
}
