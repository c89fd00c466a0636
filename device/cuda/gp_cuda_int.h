/*
 * gp_cuda_int.h - what the C files of this folder share and nobody else sees.
 *
 * Owns: the primary context of each device with our copy stream, the device object, the launch slots of
 * executors, pinned blocks. Lifetimes: contexts, device objects and slots are made on demand and live
 * until gp_cuda_finalize(); nothing that could synchronize with a running kernel (freeing device memory,
 * destroying streams, closing IPC mappings) happens before, because a kernel of another communicator
 * may be waiting for a peer that waits for us.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_CUDA_INT_H
#define GP_CUDA_INT_H

#include <pthread.h>

#include "device/cuda/gp_cuda.h"
#include "device/cuda/gp_cuda_driver.h"
#include "device/cuda/gp_kargs.h"

#define GP_CUDA_MAX_DEVICES 64

/* The primary context of a device, retained once, and a private stream for copies and fills. */
typedef struct gp_cuda_prim {
    gp_cu_context_t ctx;   /* NULL: not retained yet */
    gp_cu_stream_t stream; /* non-blocking, highest priority */
    gp_cu_device_t device;
} gp_cuda_prim_t;

/* What an executor needs to launch and to be answered; reused by later executors. */
typedef struct gp_cuda_slot {
    struct gp_cuda_slot *next;  /* in the device's list of all slots */
    struct gp_cuda_slot *next_free;
    gp_cu_stream_t stream;      /* one per slot: kernels of two communicators never queue up */
    gp_kstatus_t *status;       /* pinned */
    gp_cu_ptr_t status_dev;     /* the same, as the GPU sees it */
} gp_cuda_slot_t;

typedef struct gp_cuda_kernel {
    gp_cu_function_t function;  /* NULL: not loaded */
    uint32_t max_threads;
    uint32_t max_shared_bytes;  /* dynamic */
} gp_cuda_kernel_t;

typedef struct gp_cuda_slab {
    struct gp_cuda_slab *next;
    void *host;
} gp_cuda_slab_t;

typedef struct gp_cuda_arena gp_cuda_arena_t;

struct gp_cuda_dev {
    int ordinal;
    uint32_t refs;              /* under the device table's lock */
    gp_cuda_prim_t *prim;
    gp_gpu_id_t id;
    gp_cuda_arena_t *arena;
    pthread_mutex_t lock;       /* of everything below */
    gp_cu_module_t *modules;    /* one per fat binary */
    uint32_t n_modules;
    uint32_t optin_shared_bytes;
    uint8_t loaded[GP_PROTO_COUNT];
    gp_cuda_kernel_t kernels[GP_PROTO_COUNT][GP_FAMILY_COUNT];
    gp_cuda_slot_t *slots;
    gp_cuda_slot_t *free_slots;
    gp_cuda_slab_t *slabs;
};

/* gp_cuda_mem.c */

/* The primary context of a device and our stream in it: made at the first call, kept. */
gp_status_t gp_cuda_prim_get(int ordinal, gp_cuda_prim_t **prim_p);
void gp_cuda_prim_finalize(void);
/* Copy on prim's stream, complete on return. prim's context must be current. */
gp_status_t gp_cuda_prim_copy(gp_cuda_prim_t *prim, gp_cu_ptr_t dst, gp_cu_ptr_t src, size_t bytes);
/* Free pinned blocks that are still there. */
void gp_cuda_host_finalize(void);

/* gp_cuda_dev.c */

/* Load all kernels of a protocol, so that no launch ever loads code. Idempotent. */
gp_status_t gp_cuda_dev_load(gp_cuda_dev_t *dev, uint32_t protocol);
gp_status_t gp_cuda_slot_get(gp_cuda_dev_t *dev, gp_cuda_slot_t **slot_p);
/* Only when its stream is idle and no kernel can write the status any more. */
void gp_cuda_slot_put(gp_cuda_dev_t *dev, gp_cuda_slot_t *slot);

/* gp_cuda_arena.c */

gp_status_t gp_cuda_arena_create(gp_cuda_dev_t *dev, gp_cuda_arena_t **arena_p);
gp_arena_t *gp_cuda_arena_base(gp_cuda_arena_t *arena);
void gp_cuda_arena_destroy(gp_cuda_arena_t *arena);

/* gp_cuda_hostmap.c: FIFOs in shared host memory, made visible to the GPU */

typedef struct gp_cuda_hostmap gp_cuda_hostmap_t;

/*
 * Register with the driver every host page that holds a block of the set. *map_p is NULL when the set
 * lies in device memory. dev's context must be current.
 */
gp_status_t gp_cuda_hostmap_create(const gp_connset_t *set, gp_cuda_hostmap_t **map_p);
/* The GPU's address for a pointer of the set; map may be NULL. */
void *gp_cuda_hostmap_ptr(const gp_cuda_hostmap_t *map, void *ptr);
void gp_cuda_hostmap_destroy(gp_cuda_hostmap_t *map);

#endif /* GP_CUDA_INT_H */
