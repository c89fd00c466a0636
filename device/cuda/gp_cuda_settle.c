/*
 * gp_cuda_settle.c - synchronous copies that are not: see gp_cuda_settle() in gp_cuda.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#define GP_CU_STREAM_LEGACY ((gp_cu_stream_t) (uintptr_t) 1)
#define GP_CU_STREAM_PER_THREAD ((gp_cu_stream_t) (uintptr_t) 2)

/*
 * Allocations whose memory operations are synchronous by now, by buffer id. Two that share an entry take
 * turns in it, which costs time and nothing else. Written and read by any thread, each entry by itself.
 */
#define GP_SETTLED 512u
static uint64_t gp_settled[GP_SETTLED];

/* Wait for the default streams of the context that is current. */
static gp_status_t gp_wait_default_streams(void)
{
    gp_cu_result_t result = gp_cu.cuStreamSynchronize(GP_CU_STREAM_LEGACY);

    if (GP_CU_SUCCESS == result) {
        result = gp_cu.cuStreamSynchronize(GP_CU_STREAM_PER_THREAD);
    }
    return GP_CU_SUCCESS == result ? GP_OK : gp_cu_fail("cuStreamSynchronize", result, NULL);
}

gp_status_t gp_cuda_settle(const void *ptr, const gp_ptr_info_t *info)
{
    uint64_t *entry = &gp_settled[info->buffer_id % GP_SETTLED];
    gp_cuda_prim_t *prim;
    gp_cu_context_t ctx = (gp_cu_context_t) info->context;
    unsigned int on = 1;
    gp_status_t status;
    int pushed;

    if (!info->is_device
        || (0 != info->buffer_id && gp_load_relaxed_u64(entry) == info->buffer_id)) {
        return GP_OK;
    }
    if (NULL == ctx) { /* pool memory belongs to a device, not to a context */
        status = gp_cuda_prim_get(info->device, &prim);
        if (GP_OK != status) {
            return status;
        }
        ctx = prim->ctx;
    }
    status = gp_cu_enter(ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    if (!info->is_managed && !info->is_async
        && GP_CU_SUCCESS
               == gp_cu.cuPointerSetAttribute(&on, GP_CU_PTR_SYNC_MEMOPS,
                                              (gp_cu_ptr_t) (uintptr_t) ptr)) {
        gp_store_relaxed_u64(entry, info->buffer_id);
    }
    status = gp_wait_default_streams();
    gp_cu_leave(pushed);
    return status;
}
