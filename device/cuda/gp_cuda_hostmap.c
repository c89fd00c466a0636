/*
 * gp_cuda_hostmap.c - FIFOs in shared host memory as the GPU sees them.
 *
 * Owns the registration of the host pages that hold a connection set's blocks. Needed when a CUDA rank
 * shares a communicator with host ranks (set over the shm arena). Blocks of one rank's piece share
 * pages, so page ranges are merged before they are registered; pieces of two sets never share a page
 * (gp_transport.h: pieces are aligned to 4096).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <stdlib.h>

#include "device/proto/gp_log.h"

#define GP_PAGE_BYTES 4096u

typedef struct gp_range {
    uintptr_t first;     /* page-aligned */
    uintptr_t end;
    gp_cu_ptr_t device;  /* GPU address of first */
    int registered;      /* by us */
} gp_range_t;

struct gp_cuda_hostmap {
    size_t n_ranges;     /* sorted, disjoint */
    gp_range_t *ranges;
};

static int gp_range_compare(const void *a, const void *b)
{
    const gp_range_t *x = a;
    const gp_range_t *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

static void gp_range_add(gp_cuda_hostmap_t *map, const void *ptr, uint64_t bytes)
{
    gp_range_t *range = &map->ranges[map->n_ranges++];

    range->first = (uintptr_t) ptr / GP_PAGE_BYTES * GP_PAGE_BYTES;
    range->end = ((uintptr_t) ptr + bytes + GP_PAGE_BYTES - 1) / GP_PAGE_BYTES * GP_PAGE_BYTES;
}

/* The two blocks of one connection: see gp_fifo.h. The receive block starts with its tail. */
static void gp_ranges_of(gp_cuda_hostmap_t *map, const gp_conn_t *conn)
{
    gp_range_add(map, conn->tail, gp_fifo_recv_block_bytes(conn->n_slots, conn->slot_bytes));
    gp_range_add(map, conn->head, GP_FIFO_SEND_BLOCK_BYTES);
}

static void gp_ranges_merge(gp_cuda_hostmap_t *map)
{
    size_t kept = 0;
    size_t i;

    qsort(map->ranges, map->n_ranges, sizeof(*map->ranges), gp_range_compare);
    for (i = 1; i < map->n_ranges; ++i) {
        if (map->ranges[i].first <= map->ranges[kept].end) {
            if (map->ranges[i].end > map->ranges[kept].end) {
                map->ranges[kept].end = map->ranges[i].end;
            }
        } else {
            map->ranges[++kept] = map->ranges[i];
        }
    }
    map->n_ranges = kept + 1;
}

static gp_status_t gp_range_register(gp_range_t *range)
{
    void *ptr = (void *) range->first;
    gp_cu_result_t result;

    result = gp_cu.cuMemHostRegister(ptr, range->end - range->first,
                                     GP_CU_HOST_PORTABLE | GP_CU_HOST_DEVICEMAP);
    if (GP_CU_SUCCESS != result && GP_CU_HOST_MEMORY_ALREADY_REGISTERED != result) {
        return gp_cu_fail("cuMemHostRegister", result,
                          "shared host memory cannot be mapped into the GPU: check ulimit -l");
    }
    range->registered = GP_CU_SUCCESS == result;
    result = gp_cu.cuMemHostGetDevicePointer(&range->device, ptr, 0);
    return GP_CU_SUCCESS == result ? GP_OK
                                   : gp_cu_fail("cuMemHostGetDevicePointer", result, NULL);
}

gp_status_t gp_cuda_hostmap_create(const gp_connset_t *set, gp_cuda_hostmap_t **map_p)
{
    gp_cuda_hostmap_t *map;
    gp_ptr_info_t info;
    gp_status_t status = GP_OK;
    const gp_conn_t *first = NULL;
    size_t n_conns = 0;
    uint32_t channel;
    uint32_t i;

    *map_p = NULL;
    for (channel = 0; channel < set->desc.channels; ++channel) {
        n_conns += set->n_recv[channel] + set->n_send[channel];
        if (NULL == first && set->n_recv[channel] > 0) {
            first = &set->recv[channel][0];
        } else if (NULL == first && set->n_send[channel] > 0) {
            first = &set->send[channel][0];
        }
    }
    if (NULL == first) {
        return GP_OK; /* one rank: no connections */
    }
    status = gp_cuda_ptr_info(first->slots, &info);
    if (GP_OK != status || info.is_device) {
        return status;
    }
    map = calloc(1, sizeof(*map));
    if (NULL != map) {
        map->ranges = calloc(2 * n_conns, sizeof(*map->ranges));
    }
    if (NULL == map || NULL == map->ranges) {
        free(map);
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    for (channel = 0; channel < set->desc.channels; ++channel) {
        for (i = 0; i < set->n_recv[channel]; ++i) {
            gp_ranges_of(map, &set->recv[channel][i]);
        }
        for (i = 0; i < set->n_send[channel]; ++i) {
            gp_ranges_of(map, &set->send[channel][i]);
        }
    }
    gp_ranges_merge(map);
    for (i = 0; i < map->n_ranges && GP_OK == status; ++i) {
        status = gp_range_register(&map->ranges[i]);
    }
    if (GP_OK != status) {
        gp_cuda_hostmap_destroy(map);
        return status;
    }
    *map_p = map;
    return GP_OK;
}

void *gp_cuda_hostmap_ptr(const gp_cuda_hostmap_t *map, void *ptr)
{
    uintptr_t address = (uintptr_t) ptr;
    size_t i;

    for (i = 0; NULL != map && i < map->n_ranges; ++i) {
        if (address >= map->ranges[i].first && address < map->ranges[i].end) {
            return (void *) (uintptr_t) (map->ranges[i].device + (address - map->ranges[i].first));
        }
    }
    return ptr;
}

void gp_cuda_hostmap_destroy(gp_cuda_hostmap_t *map)
{
    size_t i;

    if (NULL == map) {
        return;
    }
    for (i = 0; i < map->n_ranges; ++i) {
        if (map->ranges[i].registered) {
            (void) gp_cu.cuMemHostUnregister((void *) map->ranges[i].first);
        }
    }
    free(map->ranges);
    free(map);
}
