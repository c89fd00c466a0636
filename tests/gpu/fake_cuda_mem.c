/*
 * fake_cuda_mem.c - memory of the libcuda stand-in: allocation, pinning, attributes, copies, IPC.
 *
 * Owns the list of blocks. Device memory is a memfd, so that other processes really can map it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memfd_create */
#endif

#include "tests/gpu/fake_cuda_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAKE_ALREADY_MAPPED 208
#define FAKE_MAP_FAILED 205
#define FAKE_GARBAGE_BYTES ((size_t) 2 << 20)

enum fake_kind { FAKE_DEVICE, FAKE_MANAGED, FAKE_POOL, FAKE_HOST, FAKE_REGISTERED, FAKE_MAPPED };

typedef struct fake_block {
    struct fake_block *next;
    unsigned char *base;
    size_t bytes;
    enum fake_kind kind;
    gp_cu_context_t ctx;
    int device;
    int fd;      /* FAKE_DEVICE */
    uint64_t id; /* what an IPC handle carries; FAKE_MAPPED: the exporter's */
    int pid;
} fake_block_t;

typedef struct fake_ipc {
    uint64_t id;
    uint64_t bytes;
    int pid;
    int fd;
} fake_ipc_t;

static fake_block_t *fake_blocks;
static uint64_t fake_next_id = 1;

/* ---- memory -------------------------------------------------------------------------------------- */

/* The block that holds the address. The lock is held. */
static fake_block_t *fake_block_of(const void *ptr)
{
    const unsigned char *p = ptr;
    fake_block_t *block;

    for (block = fake_blocks; NULL != block; block = block->next) {
        if (p >= block->base && p < block->base + block->bytes) {
            return block;
        }
    }
    return NULL;
}

static int fake_is_pinned(enum fake_kind kind)
{
    return FAKE_HOST == kind || FAKE_REGISTERED == kind;
}

static void fake_add(void *base, size_t bytes, enum fake_kind kind, int fd)
{
    fake_block_t *block = calloc(1, sizeof(*block));

    block->base = base;
    block->bytes = bytes;
    block->kind = kind;
    block->ctx = FAKE_POOL == kind ? NULL : fake_current();
    block->device = fake_current()->device;
    block->fd = fd;
    pthread_mutex_lock(&fake_lock);
    block->id = fake_next_id++;
    block->next = fake_blocks;
    fake_blocks = block;
    if (fake_is_pinned(kind)) {
        ++fake_cuda.pinned;
    } else if (FAKE_MAPPED == kind) {
        ++fake_cuda.mappings;
    } else {
        ++fake_cuda.allocs;
    }
    pthread_mutex_unlock(&fake_lock);
}

/* Remove the block that starts at ptr, if it is of that kind. */
static gp_cu_result_t fake_remove(void *ptr, enum fake_kind kind)
{
    fake_block_t **at;
    fake_block_t *block = NULL;

    pthread_mutex_lock(&fake_lock);
    for (at = &fake_blocks; NULL != *at; at = &(*at)->next) {
        if ((*at)->base == (unsigned char *) ptr && (*at)->kind == kind) {
            block = *at;
            *at = block->next;
            break;
        }
    }
    if (NULL != block) {
        if (fake_is_pinned(kind)) {
            --fake_cuda.pinned;
        } else if (FAKE_MAPPED == kind) {
            --fake_cuda.mappings;
        } else {
            --fake_cuda.allocs;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    if (NULL == block) {
        return GP_CU_INVALID_VALUE;
    }
    if (FAKE_REGISTERED != kind) {
        munmap(block->base, block->bytes);
    }
    if (block->fd >= 0) {
        close(block->fd);
    }
    free(block);
    return GP_CU_SUCCESS;
}

static gp_cu_result_t fake_alloc(void **ptr, size_t bytes, enum fake_kind kind)
{
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    int fd = FAKE_DEVICE == kind ? memfd_create("fake_cuda", MFD_CLOEXEC) : -1;
    void *base;

    if (0 == bytes || (FAKE_DEVICE == kind && (fd < 0 || 0 != ftruncate(fd, (off_t) rounded)))) {
        return 0 == bytes ? GP_CU_INVALID_VALUE : GP_CU_OUT_OF_MEMORY;
    }
    base = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
                fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (MAP_FAILED == base) {
        return GP_CU_OUT_OF_MEMORY;
    }
    memset(base, 0xa5, rounded < FAKE_GARBAGE_BYTES ? rounded : FAKE_GARBAGE_BYTES);
    /* The block ends where the request ends: one byte further is nobody's. */
    fake_add((unsigned char *) base, bytes, kind, fd);
    *ptr = base;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuMemAlloc(gp_cu_ptr_t *ptr, size_t bytes)
{
    FAKE_ENTER_CTX();
    return fake_alloc((void **) ptr, bytes, FAKE_DEVICE);
}

gp_cu_result_t fake_cuMemFree(gp_cu_ptr_t ptr)
{
    FAKE_ENTER();
    return GP_CU_SUCCESS == fake_remove((void *) ptr, FAKE_DEVICE)
               ? GP_CU_SUCCESS
               : fake_remove((void *) ptr, FAKE_MANAGED);
}

gp_cu_result_t fake_cuMemAllocManaged(gp_cu_ptr_t *ptr, size_t bytes, unsigned int flags)
{
    FAKE_ENTER_CTX();
    (void) flags;
    return fake_alloc((void **) ptr, bytes, FAKE_MANAGED);
}

gp_cu_result_t fake_cuMemAllocAsync(gp_cu_ptr_t *ptr, size_t bytes, gp_cu_stream_t stream)
{
    FAKE_ENTER_CTX();
    (void) stream;
    return fake_alloc((void **) ptr, bytes, FAKE_POOL);
}

gp_cu_result_t fake_cuMemFreeAsync(gp_cu_ptr_t ptr, gp_cu_stream_t stream)
{
    FAKE_ENTER_CTX();
    (void) stream;
    return fake_remove((void *) ptr, FAKE_POOL);
}

gp_cu_result_t fake_cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
    FAKE_ENTER_CTX();
    (void) flags;
    return fake_alloc(ptr, bytes, FAKE_HOST);
}

gp_cu_result_t fake_cuMemFreeHost(void *ptr)
{
    FAKE_ENTER();
    return fake_remove(ptr, FAKE_HOST);
}

gp_cu_result_t fake_cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
    int known;

    FAKE_ENTER_CTX();
    (void) flags;
    if (NULL == ptr || 0 == bytes) {
        return GP_CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&fake_lock);
    known = NULL != fake_block_of(ptr)
            || NULL != fake_block_of((unsigned char *) ptr + bytes - 1);
    pthread_mutex_unlock(&fake_lock);
    if (known) {
        return GP_CU_HOST_MEMORY_ALREADY_REGISTERED;
    }
    fake_add(ptr, bytes, FAKE_REGISTERED, -1);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuMemHostUnregister(void *ptr)
{
    FAKE_ENTER();
    return fake_remove(ptr, FAKE_REGISTERED);
}

gp_cu_result_t fake_cuMemHostGetDevicePointer(gp_cu_ptr_t *device, void *host,
                                              unsigned int flags)
{
    fake_block_t *block;

    FAKE_ENTER_CTX();
    (void) flags;
    pthread_mutex_lock(&fake_lock);
    block = fake_block_of(host);
    pthread_mutex_unlock(&fake_lock);
    if (NULL == block || !fake_is_pinned(block->kind)) {
        return GP_CU_INVALID_VALUE;
    }
    *device = (gp_cu_ptr_t) (uintptr_t) host;
    return GP_CU_SUCCESS;
}

/* 1 when [ptr, ptr + bytes) does not leave the block it starts in; unknown memory is the caller's. */
static int fake_in_bounds(gp_cu_ptr_t ptr, size_t bytes)
{
    fake_block_t *block;
    int good;

    pthread_mutex_lock(&fake_lock);
    block = fake_block_of((void *) ptr);
    good = NULL == block || bytes <= (size_t) (block->base + block->bytes - (unsigned char *) ptr);
    pthread_mutex_unlock(&fake_lock);
    return good;
}

gp_cu_result_t fake_cuMemcpyAsync(gp_cu_ptr_t dst, gp_cu_ptr_t src, size_t bytes,
                                  gp_cu_stream_t stream)
{
    FAKE_ENTER_CTX();
    if (NULL == stream || !fake_in_bounds(dst, bytes) || !fake_in_bounds(src, bytes)) {
        return GP_CU_INVALID_VALUE;
    }
    fake_drain(stream);
    memmove((void *) dst, (void *) src, bytes);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuMemsetD8Async(gp_cu_ptr_t dst, unsigned char value, size_t bytes,
                                    gp_cu_stream_t stream)
{
    FAKE_ENTER_CTX();
    if (NULL == stream || !fake_in_bounds(dst, bytes)) {
        return GP_CU_INVALID_VALUE;
    }
    fake_drain(stream);
    memset((void *) dst, value, bytes);
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuPointerGetAttributes(unsigned int n, int *attributes, void **values,
                                           gp_cu_ptr_t ptr)
{
    fake_block_t copy = {.kind = FAKE_HOST};
    fake_block_t *block;
    unsigned int i;
    int host;

    FAKE_ENTER();
    pthread_mutex_lock(&fake_lock);
    block = fake_block_of((void *) ptr);
    if (NULL != block) {
        copy = *block;
    }
    pthread_mutex_unlock(&fake_lock);
    host = fake_is_pinned(copy.kind);
    for (i = 0; i < n; ++i) {
        switch (attributes[i]) {
        case GP_CU_PTR_CONTEXT:
            *(void **) values[i] = copy.ctx;
            break;
        case GP_CU_PTR_MEMORY_TYPE:
            *(uint32_t *) values[i] = NULL == block ? 0
                                      : host        ? GP_CU_MEMORY_HOST
                                                    : GP_CU_MEMORY_DEVICE;
            break;
        case GP_CU_PTR_IS_MANAGED:
            *(uint32_t *) values[i] = FAKE_MANAGED == copy.kind;
            break;
        case GP_CU_PTR_DEVICE_ORDINAL:
            *(int32_t *) values[i] = NULL == block ? -2 : copy.device;
            break;
        case GP_CU_PTR_IS_IPC_CAPABLE:
            *(uint8_t *) values[i] = FAKE_DEVICE == copy.kind;
            break;
        case GP_CU_PTR_MEMPOOL_HANDLE:
            if (fake_cuda.old_attributes) {
                return GP_CU_INVALID_VALUE;
            }
            *(void **) values[i] = FAKE_POOL == copy.kind ? (void *) &fake_cuda : NULL;
            break;
        default:
            return GP_CU_INVALID_VALUE;
        }
    }
    return GP_CU_SUCCESS;
}

/* ---- IPC ----------------------------------------------------------------------------------------- */

gp_cu_result_t fake_cuIpcGetMemHandle(gp_cu_ipc_handle_t *handle, gp_cu_ptr_t ptr)
{
    fake_ipc_t ipc;
    fake_block_t *block;

    FAKE_ENTER_CTX();
    memset(&ipc, 0, sizeof(ipc));
    pthread_mutex_lock(&fake_lock);
    block = fake_block_of((void *) ptr);
    if (NULL != block && FAKE_DEVICE == block->kind) {
        ipc.id = block->id;
        ipc.bytes = block->bytes;
        ipc.pid = (int) getpid();
        ipc.fd = block->fd;
    }
    pthread_mutex_unlock(&fake_lock);
    if (0 == ipc.id) {
        return GP_CU_INVALID_VALUE;
    }
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &ipc, sizeof(ipc));
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuIpcOpenMemHandle(gp_cu_ptr_t *ptr, gp_cu_ipc_handle_t handle,
                                       unsigned int flags)
{
    fake_ipc_t ipc;
    fake_block_t *block;
    char path[64];
    void *base;
    int fd;

    FAKE_ENTER_CTX();
    memcpy(&ipc, &handle, sizeof(ipc));
    if (ipc.pid == (int) getpid()) {
        return GP_CU_INVALID_CONTEXT;
    }
    if (GP_CU_IPC_LAZY_ENABLE_PEER_ACCESS != flags) {
        return GP_CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&fake_lock);
    for (block = fake_blocks; NULL != block; block = block->next) {
        if (FAKE_MAPPED == block->kind && block->id == ipc.id && block->pid == ipc.pid) {
            break;
        }
    }
    ++fake_cuda.opens;
    pthread_mutex_unlock(&fake_lock);
    if (NULL != block) {
        return FAKE_ALREADY_MAPPED;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", ipc.pid, ipc.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return FAKE_MAP_FAILED;
    }
    base = mmap(NULL, ipc.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (MAP_FAILED == base) {
        return FAKE_MAP_FAILED;
    }
    fake_add(base, ipc.bytes, FAKE_MAPPED, -1);
    pthread_mutex_lock(&fake_lock);
    block = fake_block_of(base);
    block->id = ipc.id;
    block->pid = ipc.pid;
    pthread_mutex_unlock(&fake_lock);
    *ptr = (gp_cu_ptr_t) (uintptr_t) base;
    return GP_CU_SUCCESS;
}

gp_cu_result_t fake_cuIpcCloseMemHandle(gp_cu_ptr_t ptr)
{
    FAKE_ENTER();
    return fake_remove((void *) ptr, FAKE_MAPPED);
}

