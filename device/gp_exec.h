/*
 * gp_exec.h - what an executor is asked to run and what it tells about it.
 *
 * Owns the types that both executors share: the work of one call, the record of what really ran and
 * the description of a wait. device/host/gp_host.h and device/cuda/gp_cuda.h declare the executors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_EXEC_H
#define GP_EXEC_H

#include "device/proto/gp_chunk.h"
#include "device/proto/gp_fifo.h"
#include "device/proto/gp_types.h"

/* One call. Buffers stay the caller's; send == recv means in place. */
typedef struct gp_work {
    const void *send;   /* geom.count elements, aligned to the element */
    void *recv;         /* the same */
    gp_geom_t geom;
    gp_red_t red;
    uint32_t threads;   /* CUDA threads per block; 0 on host */
} gp_work_t;

/* What ran, written by the executor itself while running (never copied from the plan). */
typedef struct gp_exec_record {
    uint64_t calls;       /* completed calls of this executor */
    uint32_t algorithm;   /* gp_algorithm_t, from the program that was interpreted */
    uint32_t protocol;    /* gp_protocol_t, from the code path that ran */
    uint32_t channels;    /* channels that took part */
    uint32_t threads;     /* threads per block that ran; 1 on host */
    uint64_t loops;
    uint64_t chunk_elems;
    uint64_t steps;       /* steps this rank executed, all channels together */
} gp_exec_record_t;

typedef enum gp_wait_kind {
    GP_WAIT_NONE,
    GP_WAIT_DATA,    /* for a slot to be filled by `peer` */
    GP_WAIT_CREDIT,  /* for `peer` to free a slot */
    GP_WAIT_LAUNCH,  /* for the GPU to start or finish our kernel */
    GP_WAIT_RANK,    /* for `peer` to enter the call */
    GP_WAIT_TURN     /* for the call of another communicator to leave the GPU */
} gp_wait_kind_t;

/* What an executor waits for: "channel 2 step 17: waiting for data from rank 2". */
typedef struct gp_wait_info {
    uint32_t kind;     /* gp_wait_kind_t */
    uint32_t channel;
    uint32_t peer;     /* rank in the communicator */
    uint32_t reserved;
    uint64_t step;     /* connection step */
} gp_wait_info_t;

#endif /* GP_EXEC_H */
