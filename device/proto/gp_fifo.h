/*
 * gp_fifo.h - connections, FIFOs, steps and slots.
 *
 * Owns the shared layout of one connection: one direction, one channel, one (src -> dst) pair, one
 * protocol. A step is a 64-bit number that starts at a value agreed when the connection is made, is
 * never reset and never repeats; slot = step mod slots.
 *
 *   receiver's block (its own memory; the sender writes payload, tail and sizes)
 *   +0      tail   u64, steps filled. Written by the sender, read by the receiver (Simple, gated LL128)
 *   +128    sizes  u64 x GP_MAX_SLOTS, data bytes of the step in that slot (Simple). Same parties
 *   +256    slot 0 | slot 1 | ... | slot n_slots-1, slot_bytes each (a multiple of 128)
 *
 *   sender's block (its own memory; the receiver writes)
 *   +0      head   u64, steps freed. Written by the receiver, read by the sender
 *
 * Both counters hold "number of the first step not yet filled / freed", so a fresh connection whose
 * first step is s has head = tail = s. All other memory of a fresh block is zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_FIFO_H
#define GP_FIFO_H

#include "device/proto/gp_port.h"

#define GP_STEPS 8      /* slots of a connection unless the planner picks another number */
#define GP_MAX_SLOTS 16 /* one line of size words */

typedef enum gp_protocol {
    GP_PROTO_LL,
    GP_PROTO_LL128,
    GP_PROTO_SIMPLE,
    GP_PROTO_COUNT
} gp_protocol_t;

/* Default FIFO bytes of one connection (all slots together), and what a user's size replaces. */
#define GP_LL_BUFFER_BYTES 524288u      /* 8 lines x 512 threads x 8 steps x 16 B */
#define GP_LL128_BUFFER_BYTES 4915200u  /* 120 words x 640 threads x 8 steps x 8 B */
#define GP_SIMPLE_BUFFER_BYTES 4194304u

#define GP_LL_LINE_BYTES 16u
#define GP_LL_LINE_DATA_BYTES 8u
#define GP_LL128_LINE_BYTES 128u
#define GP_LL128_LINE_DATA_BYTES 120u
#define GP_LL128_PAIR_DATA_BYTES 240u /* two lines: 15 whole 16-byte vectors */

#define GP_FIFO_TAIL_OFFSET 0u
#define GP_FIFO_SIZES_OFFSET 128u
#define GP_FIFO_SLOTS_OFFSET 256u
#define GP_FIFO_SEND_BLOCK_BYTES 128u

/* How the two ends of a connection reach each other, nearest first. Decides LL128 gating (P-rules). */
typedef enum gp_path {
    GP_PATH_SELF_GPU, /* same GPU */
    GP_PATH_NVLINK,
    GP_PATH_PCIE,     /* peer access over PCIe */
    GP_PATH_HOST,     /* shared host memory */
    GP_PATH_NET,
    GP_PATH_COUNT
} gp_path_t;

/*
 * One end's view of a connection. Lives in that end's private memory (device memory for a GPU end);
 * the pointers lead to shared memory as mapped there. `step` and `seen` belong to the executor that
 * runs this end and survive from call to call.
 */
typedef struct gp_conn {
    unsigned char *slots; /* first slot; sender writes, receiver reads */
    uint64_t *tail;       /* sender writes, receiver reads; steps */
    uint64_t *head;       /* receiver writes, sender reads; steps */
    uint64_t *sizes;      /* sender writes, receiver reads; data bytes per slot */
    uint64_t step;        /* private: first step of the next call */
    uint64_t seen;        /* private: last value read of the peer's counter (head or tail) */
    uint64_t zeroed;      /* private, LL sender: step at which the FIFO was last known all zero */
    uint64_t slot_bytes;  /* wire bytes of a slot, distance between slots */
    uint32_t n_slots;     /* 1 .. GP_MAX_SLOTS */
    uint32_t gated;       /* LL128: flags count only behind a released tail */
    uint32_t peer;        /* rank in the communicator */
    uint32_t path;        /* gp_path_t */
} gp_conn_t;

/* One end of a link as a program names it. */
typedef struct gp_link {
    uint32_t peer;  /* rank in the communicator */
    uint32_t uses;  /* steps this connection advances per loop */
} gp_link_t;

/* Slot of a step. */
GP_FN uint32_t gp_slot_of(uint64_t step, uint32_t n_slots)
{
    return (uint32_t) (step % n_slots);
}

/* Address of the slot of a step. */
GP_FN unsigned char *gp_slot_ptr(const gp_conn_t *c, uint64_t step)
{
    return c->slots + (uint64_t) gp_slot_of(step, c->n_slots) * c->slot_bytes;
}

/* A sender may write step s when head + n_slots > s: the slot's former step was freed. */
GP_FN int gp_credit(uint64_t head, uint64_t step, uint32_t n_slots)
{
    return head + n_slots > step;
}

/* Wire bytes that `data_bytes` of payload take in a slot. */
GP_FN uint64_t gp_wire_bytes(gp_protocol_t proto, uint64_t data_bytes)
{
    switch (proto) {
    case GP_PROTO_LL:
        return (data_bytes + GP_LL_LINE_DATA_BYTES - 1) / GP_LL_LINE_DATA_BYTES * GP_LL_LINE_BYTES;
    case GP_PROTO_LL128:
        return (data_bytes + GP_LL128_PAIR_DATA_BYTES - 1) / GP_LL128_PAIR_DATA_BYTES * 2u
               * GP_LL128_LINE_BYTES;
    default:
        return data_bytes;
    }
}

/* Payload bytes that fit a slot of `slot_bytes` wire bytes; a multiple of 16. */
GP_FN uint64_t gp_data_bytes(gp_protocol_t proto, uint64_t slot_bytes)
{
    switch (proto) {
    case GP_PROTO_LL:
        return slot_bytes / (2u * GP_LL_LINE_BYTES) * 16u;
    case GP_PROTO_LL128:
        return slot_bytes / (2u * GP_LL128_LINE_BYTES) * GP_LL128_PAIR_DATA_BYTES;
    default:
        return slot_bytes / 16u * 16u;
    }
}

/* Bytes of the receiver's block. */
GP_FN uint64_t gp_fifo_recv_block_bytes(uint32_t n_slots, uint64_t slot_bytes)
{
    return GP_FIFO_SLOTS_OFFSET + (uint64_t) n_slots * slot_bytes;
}

/*
 * LL flag of a step: never zero (zero is never-written memory), never equal for two steps that are less
 * than 2^31 apart. GP_LL_FLAG_BITS is lowered by tests to make the wrap happen soon.
 */
#ifndef GP_LL_FLAG_BITS
#define GP_LL_FLAG_BITS 31
#endif
#define GP_LL_FLAG_MOD (1ull << GP_LL_FLAG_BITS)
/* A drained LL FIFO is zeroed by its sender before it is this many steps past the last zeroing. */
#define GP_LL_ZERO_STEPS (GP_LL_FLAG_MOD / 2)

GP_FN uint32_t gp_ll_flag(uint64_t step)
{
    return (uint32_t) (GP_LL_FLAG_MOD + (step + 1) % GP_LL_FLAG_MOD);
}

/* LL128 flag of a step: 64 bits, step + 1, never zero. */
GP_FN uint64_t gp_ll128_flag(uint64_t step)
{
    return step + 1;
}

GP_STATIC_ASSERT(GP_LL_FLAG_BITS >= 5 && GP_LL_FLAG_BITS <= 31, "LL flag width");

#endif /* GP_FIFO_H */
