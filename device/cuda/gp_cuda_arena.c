/*
 * gp_cuda_arena.c - device memory that peers map by CUDA IPC (the "ipc" arena of gp_transport.h).
 *
 * Owns: extents (one cuMemAlloc and one exported handle each), the free list inside them, and the cache
 * of peers' extents. An extent is exported as a whole, so a process opens few handles however many
 * communicators it has. A process cannot open its own handle: it maps to our own pointer, which is what
 * several ranks in one process (threads) get.
 *
 * Extents are kept until the device closes, and mappings that nobody uses stay open up to a small
 * number: freeing or closing waits for the kernels of the context, and one of them may be waiting for
 * a peer that waits for us.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "device/proto/gp_log.h"

#define GP_EXTENT_BYTES ((uint64_t) 64 << 20)
#define GP_EXTENT_UNIT ((uint64_t) 2 << 20) /* what the driver rounds to anyway */
#define GP_PIECE_ALIGN 4096u
#define GP_IDLE_MAPPINGS 32u

/* A free piece of an extent. */
typedef struct gp_gap {
    uint64_t offset;
    uint64_t bytes;
} gp_gap_t;

typedef struct gp_extent {
    struct gp_extent *next;   /* in gp_extents */
    gp_cuda_arena_t *arena;
    gp_cu_ptr_t base;
    uint64_t bytes;
    uint64_t id;              /* unique in the process, never reused */
    int exported;
    gp_cu_ipc_handle_t ipc;
    gp_gap_t *gaps;           /* sorted by offset, never adjacent */
    size_t n_gaps;            /* at most n_pieces + 1: between two gaps lies a piece */
    size_t max_gaps;
    size_t n_pieces;          /* handed out */
} gp_extent_t;

/* A peer's extent. */
typedef struct gp_mapping {
    struct gp_mapping *next;  /* most recently released last */
    uint64_t process;
    uint64_t extent;
    gp_cu_ptr_t base;
    uint32_t refs;            /* 0: idle */
} gp_mapping_t;

struct gp_cuda_arena {
    gp_arena_t base;
    gp_cuda_dev_t *dev;
    gp_mapping_t *mappings;
    int map_failed;           /* said already */
};

/* What gp_handle_t.bytes holds. */
typedef struct gp_ipc_bytes {
    gp_cu_ipc_handle_t ipc;
    uint64_t bytes;
} gp_ipc_bytes_t;

GP_STATIC_ASSERT(sizeof(gp_ipc_bytes_t) <= GP_HANDLE_BYTES, "an IPC handle fits");

/* One lock for all arenas: extents of any device are looked up by our own handles. */
static pthread_mutex_t gp_arena_lock = PTHREAD_MUTEX_INITIALIZER;
static gp_extent_t *gp_extents;
static uint64_t gp_next_extent = 1;
static uint64_t gp_process_id;
static pid_t gp_process_pid;

/* A number no other process has; a forked child gets its own. The lock is held. */
static uint64_t gp_process(void)
{
    struct timespec now;

    if (0 == gp_process_id || getpid() != gp_process_pid) {
        gp_process_pid = getpid();
        if ((ssize_t) sizeof(gp_process_id)
            != getrandom(&gp_process_id, sizeof(gp_process_id), 0)) {
            clock_gettime(CLOCK_REALTIME, &now);
            gp_process_id = ((uint64_t) gp_process_pid << 40) ^ ((uint64_t) now.tv_sec << 30)
                            ^ (uint64_t) now.tv_nsec;
        }
        gp_process_id |= 1;
    }
    return gp_process_id;
}

/* ---- pieces -------------------------------------------------------------------------------------- */

/* Make room for n gaps: done when a piece is taken, so that giving back can never fail. */
static gp_status_t gp_gaps_reserve(gp_extent_t *extent, size_t n)
{
    size_t max = 0 == extent->max_gaps ? 8 : extent->max_gaps;
    gp_gap_t *gaps;

    if (n <= extent->max_gaps) {
        return GP_OK;
    }
    while (max < n) {
        max *= 2;
    }
    gaps = realloc(extent->gaps, max * sizeof(*gaps));
    if (NULL == gaps) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    extent->gaps = gaps;
    extent->max_gaps = max;
    return GP_OK;
}

/* First fit. 1 and *offset when the extent has room. */
static int gp_extent_take(gp_extent_t *extent, uint64_t bytes, uint64_t *offset)
{
    size_t i;

    for (i = 0; i < extent->n_gaps; ++i) {
        gp_gap_t *gap = &extent->gaps[i];
        if (gap->bytes < bytes) {
            continue;
        }
        *offset = gap->offset;
        ++extent->n_pieces;
        gap->offset += bytes;
        gap->bytes -= bytes;
        if (0 == gap->bytes) {
            memmove(gap, gap + 1, (extent->n_gaps - i - 1) * sizeof(*gap));
            --extent->n_gaps;
        }
        return 1;
    }
    return 0;
}

/* Room was reserved when the piece was taken. */
static void gp_extent_give(gp_extent_t *extent, uint64_t offset, uint64_t bytes)
{
    gp_gap_t *gaps = extent->gaps;
    size_t i = 0;
    int with_prev;
    int with_next;

    --extent->n_pieces;
    while (i < extent->n_gaps && gaps[i].offset < offset) {
        ++i;
    }
    with_prev = i > 0 && gaps[i - 1].offset + gaps[i - 1].bytes == offset;
    with_next = i < extent->n_gaps && offset + bytes == gaps[i].offset;
    if (with_prev && with_next) {
        gaps[i - 1].bytes += bytes + gaps[i].bytes;
        memmove(&gaps[i], &gaps[i + 1], (extent->n_gaps - i - 1) * sizeof(*gaps));
        --extent->n_gaps;
    } else if (with_prev) {
        gaps[i - 1].bytes += bytes;
    } else if (with_next) {
        gaps[i].offset = offset;
        gaps[i].bytes += bytes;
    } else {
        memmove(&gaps[i + 1], &gaps[i], (extent->n_gaps - i) * sizeof(*gaps));
        gaps[i].offset = offset;
        gaps[i].bytes = bytes;
        ++extent->n_gaps;
    }
}

/* A new extent with room for `bytes`. The lock is held, the context current. */
static gp_status_t gp_extent_new(gp_cuda_arena_t *arena, uint64_t bytes, gp_extent_t **extent_p)
{
    gp_extent_t *extent = calloc(1, sizeof(*extent));
    uint64_t least = (bytes + GP_EXTENT_UNIT - 1) / GP_EXTENT_UNIT * GP_EXTENT_UNIT;
    gp_cu_result_t result;
    gp_status_t status;

    if (NULL == extent) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    status = gp_gaps_reserve(extent, 2);
    if (GP_OK != status) {
        goto err_extent;
    }
    extent->bytes = least > GP_EXTENT_BYTES ? least : GP_EXTENT_BYTES;
    result = gp_cu.cuMemAlloc(&extent->base, extent->bytes);
    if (GP_CU_OUT_OF_MEMORY == result && extent->bytes > least) {
        extent->bytes = least;
        result = gp_cu.cuMemAlloc(&extent->base, extent->bytes);
    }
    if (GP_CU_SUCCESS != result) {
        status = gp_cu_fail("cuMemAlloc", result,
                            "free device memory or lower coll_gpuproto_max_fifo_mib");
        goto err_gaps;
    }
    extent->gaps[0].offset = 0;
    extent->gaps[0].bytes = extent->bytes;
    extent->n_gaps = 1;
    extent->arena = arena;
    extent->id = gp_next_extent++;
    extent->next = gp_extents;
    gp_extents = extent;
    *extent_p = extent;
    return GP_OK;

err_gaps:
    free(extent->gaps);
err_extent:
    free(extent);
    return status;
}

/* Find or make room. The lock is held, the context current. */
static gp_status_t gp_piece_take(gp_cuda_arena_t *arena, uint64_t bytes, gp_mem_t *mem)
{
    gp_extent_t *extent;
    gp_status_t status;

    for (extent = gp_extents; NULL != extent; extent = extent->next) {
        if (extent->arena == arena && gp_extent_take(extent, bytes, &mem->offset)) {
            break;
        }
    }
    if (NULL == extent) {
        status = gp_extent_new(arena, bytes, &extent);
        if (GP_OK != status) {
            return status;
        }
        (void) gp_extent_take(extent, bytes, &mem->offset);
    }
    mem->ptr = (void *) (uintptr_t) (extent->base + mem->offset);
    mem->bytes = bytes;
    mem->extent = extent;
    status = gp_gaps_reserve(extent, extent->n_pieces + 1);
    if (GP_OK != status) {
        gp_extent_give(extent, mem->offset, bytes); /* fits: it was part of a gap a moment ago */
    }
    return status;
}

static gp_status_t gp_arena_alloc(gp_arena_t *base, uint64_t bytes, gp_mem_t *mem)
{
    gp_cuda_arena_t *arena = (gp_cuda_arena_t *) base;
    uint64_t rounded = (bytes + GP_PIECE_ALIGN - 1) / GP_PIECE_ALIGN * GP_PIECE_ALIGN;
    const char *call = "cuMemsetD8Async";
    gp_cu_result_t result;
    gp_status_t status;
    int pushed;

    memset(mem, 0, sizeof(*mem));
    if (0 == bytes || rounded < bytes) {
        return GP_ERR_INVALID;
    }
    status = gp_cu_enter(arena->dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    pthread_mutex_lock(&gp_arena_lock);
    status = gp_piece_take(arena, rounded, mem);
    pthread_mutex_unlock(&gp_arena_lock);
    if (GP_OK == status) {
        result = gp_cu.cuMemsetD8Async((gp_cu_ptr_t) (uintptr_t) mem->ptr, 0, rounded,
                                       arena->dev->prim->stream);
        if (GP_CU_SUCCESS == result) {
            call = "cuStreamSynchronize";
            result = gp_cu.cuStreamSynchronize(arena->dev->prim->stream);
        }
        if (GP_CU_SUCCESS != result) {
            status = gp_cu_fail(call, result, NULL);
            pthread_mutex_lock(&gp_arena_lock);
            gp_extent_give(mem->extent, mem->offset, mem->bytes);
            pthread_mutex_unlock(&gp_arena_lock);
        }
    }
    gp_cu_leave(pushed);
    if (GP_OK != status) {
        memset(mem, 0, sizeof(*mem));
    }
    return status;
}

static void gp_arena_free(gp_arena_t *base, gp_mem_t *mem)
{
    (void) base;
    if (NULL == mem->extent) {
        return;
    }
    pthread_mutex_lock(&gp_arena_lock);
    gp_extent_give(mem->extent, mem->offset, mem->bytes);
    pthread_mutex_unlock(&gp_arena_lock);
    memset(mem, 0, sizeof(*mem));
}

/* ---- handles ------------------------------------------------------------------------------------- */

static gp_status_t gp_arena_export(gp_arena_t *base, const gp_mem_t *mem, gp_handle_t *handle)
{
    gp_cuda_arena_t *arena = (gp_cuda_arena_t *) base;
    gp_extent_t *extent = mem->extent;
    gp_ipc_bytes_t bytes;
    gp_cu_result_t result = GP_CU_SUCCESS;
    gp_status_t status;
    int pushed;

    memset(handle, 0, sizeof(*handle));
    status = gp_cu_enter(arena->dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    pthread_mutex_lock(&gp_arena_lock);
    if (!extent->exported) {
        result = gp_cu.cuIpcGetMemHandle(&extent->ipc, extent->base);
        extent->exported = GP_CU_SUCCESS == result;
    }
    handle->process = gp_process();
    handle->extent = extent->id;
    memset(&bytes, 0, sizeof(bytes));
    bytes.ipc = extent->ipc;
    bytes.bytes = extent->bytes;
    memcpy(handle->bytes, &bytes, sizeof(bytes));
    pthread_mutex_unlock(&gp_arena_lock);
    gp_cu_leave(pushed);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuIpcGetMemHandle", result,
                          "this system offers no CUDA IPC: its GPU buffers cannot be shared");
    }
    return GP_OK;
}

/* Our own extent, seen from arena's device. The lock is held, the context current. */
static gp_status_t gp_map_own(gp_cuda_arena_t *arena, uint64_t id, void **base)
{
    gp_extent_t *extent;
    gp_cu_result_t result;

    for (extent = gp_extents; NULL != extent && id != extent->id; extent = extent->next) {
    }
    if (NULL == extent) {
        gp_log(GP_LOG_ERROR, "CUDA: handle of an extent that this process does not have");
        return GP_ERR_INVALID;
    }
    if (extent->arena != arena) {
        result = gp_cu.cuCtxEnablePeerAccess(extent->arena->dev->prim->ctx, 0);
        if (GP_CU_SUCCESS != result && GP_CU_PEER_ACCESS_ALREADY_ENABLED != result) {
            return gp_cu_fail("cuCtxEnablePeerAccess", result, NULL);
        }
    }
    *base = (void *) (uintptr_t) extent->base;
    return GP_OK;
}

/* A peer process's extent. The lock is held, the context current. */
static gp_status_t gp_map_peer(gp_cuda_arena_t *arena, const gp_handle_t *handle, void **base)
{
    gp_ipc_bytes_t bytes;
    gp_mapping_t *mapping;
    gp_cu_result_t result;

    for (mapping = arena->mappings; NULL != mapping; mapping = mapping->next) {
        if (mapping->process == handle->process && mapping->extent == handle->extent) {
            ++mapping->refs;
            *base = (void *) (uintptr_t) mapping->base;
            return GP_OK;
        }
    }
    mapping = calloc(1, sizeof(*mapping));
    if (NULL == mapping) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    memcpy(&bytes, handle->bytes, sizeof(bytes));
    result = gp_cu.cuIpcOpenMemHandle(&mapping->base, bytes.ipc, GP_CU_IPC_LAZY_ENABLE_PEER_ACCESS);
    if (GP_CU_SUCCESS != result) {
        free(mapping);
        if (arena->map_failed) {
            return GP_ERR_CUDA;
        }
        arena->map_failed = 1;
        return gp_cu_fail("cuIpcOpenMemHandle", result,
                          "the peer's GPU memory cannot be mapped: every rank of the node must be "
                          "allowed to see the other ranks' GPUs (container, cgroup or "
                          "CUDA_VISIBLE_DEVICES) and share their IPC namespace");
    }
    mapping->process = handle->process;
    mapping->extent = handle->extent;
    mapping->refs = 1;
    mapping->next = arena->mappings;
    arena->mappings = mapping;
    *base = (void *) (uintptr_t) mapping->base;
    return GP_OK;
}

static gp_status_t gp_arena_map(gp_arena_t *base, const gp_handle_t *handle, void **address)
{
    gp_cuda_arena_t *arena = (gp_cuda_arena_t *) base;
    gp_status_t status;
    int pushed;

    status = gp_cu_enter(arena->dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    pthread_mutex_lock(&gp_arena_lock);
    status = handle->process == gp_process() ? gp_map_own(arena, handle->extent, address)
                                             : gp_map_peer(arena, handle, address);
    pthread_mutex_unlock(&gp_arena_lock);
    gp_cu_leave(pushed);
    return status;
}

static void gp_mapping_close(gp_mapping_t *mapping)
{
    gp_cu_result_t result = gp_cu.cuIpcCloseMemHandle(mapping->base);

    if (GP_CU_SUCCESS != result && !gp_cu_is_gone(result)) {
        gp_log(GP_LOG_DEBUG, "CUDA: cuIpcCloseMemHandle: %s", gp_cu_error_name(result));
    }
    free(mapping);
}

/* Close the oldest idle mapping when there are too many. The lock is held, the context current. */
static void gp_mappings_trim(gp_cuda_arena_t *arena)
{
    gp_mapping_t **at;
    gp_mapping_t **oldest = NULL;
    gp_mapping_t *mapping;
    uint32_t idle = 0;

    for (at = &arena->mappings; NULL != *at; at = &(*at)->next) {
        if (0 == (*at)->refs) {
            ++idle;
            oldest = NULL == oldest ? at : oldest;
        }
    }
    if (idle > GP_IDLE_MAPPINGS) {
        mapping = *oldest;
        *oldest = mapping->next;
        gp_mapping_close(mapping);
    }
}

static void gp_arena_unmap(gp_arena_t *base, const gp_handle_t *handle)
{
    gp_cuda_arena_t *arena = (gp_cuda_arena_t *) base;
    gp_mapping_t **at;
    gp_mapping_t *mapping;
    int pushed = 0;

    pthread_mutex_lock(&gp_arena_lock);
    for (at = &arena->mappings; NULL != *at; at = &(*at)->next) {
        mapping = *at;
        if (mapping->process != handle->process || mapping->extent != handle->extent) {
            continue;
        }
        if (0 == --mapping->refs) {
            *at = mapping->next; /* to the end: released last, closed last */
            mapping->next = NULL;
            for (at = &arena->mappings; NULL != *at; at = &(*at)->next) {
            }
            *at = mapping;
            if (GP_OK == gp_cu_enter(arena->dev->prim->ctx, &pushed)) {
                gp_mappings_trim(arena);
                gp_cu_leave(pushed);
            }
        }
        break;
    }
    pthread_mutex_unlock(&gp_arena_lock);
}

static gp_status_t gp_arena_poke(gp_arena_t *base, void *ptr, uint64_t value)
{
    gp_cuda_arena_t *arena = (gp_cuda_arena_t *) base;
    gp_status_t status;
    int pushed;

    status = gp_cu_enter(arena->dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    status = gp_cuda_prim_copy(arena->dev->prim, (gp_cu_ptr_t) (uintptr_t) ptr,
                               (gp_cu_ptr_t) (uintptr_t) &value, sizeof(value));
    gp_cu_leave(pushed);
    return status;
}

/* ---- lifetime ------------------------------------------------------------------------------------ */

gp_status_t gp_cuda_arena_create(gp_cuda_dev_t *dev, gp_cuda_arena_t **arena_p)
{
    gp_cuda_arena_t *arena = calloc(1, sizeof(*arena));

    if (NULL == arena) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    arena->base.name = "ipc";
    arena->base.path = GP_PATH_SELF_GPU;
    arena->base.alloc = gp_arena_alloc;
    arena->base.free = gp_arena_free;
    arena->base.export_mem = gp_arena_export;
    arena->base.map = gp_arena_map;
    arena->base.unmap = gp_arena_unmap;
    arena->base.poke = gp_arena_poke;
    arena->dev = dev;
    *arena_p = arena;
    return GP_OK;
}

gp_arena_t *gp_cuda_arena_base(gp_cuda_arena_t *arena)
{
    return &arena->base;
}

/* The context is current, or gone: then every call fails and only our own memory is freed. */
void gp_cuda_arena_destroy(gp_cuda_arena_t *arena)
{
    gp_extent_t **at = &gp_extents;
    gp_extent_t *extent;
    gp_mapping_t *mapping;

    pthread_mutex_lock(&gp_arena_lock);
    while (NULL != (mapping = arena->mappings)) {
        arena->mappings = mapping->next;
        gp_mapping_close(mapping);
    }
    while (NULL != (extent = *at)) {
        if (extent->arena != arena) {
            at = &extent->next;
            continue;
        }
        *at = extent->next;
        (void) gp_cu.cuMemFree(extent->base);
        free(extent->gaps);
        free(extent);
    }
    pthread_mutex_unlock(&gp_arena_lock);
    free(arena);
}
