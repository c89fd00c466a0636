/*
 * gp_kargs.h - what the host hands to a kernel and what a kernel hands back.
 *
 * Owns the layouts shared by gp_cuda_exec.c (writer) and the kernels (reader). Valid as C11 and
 * CUDA C++.
 *
 *   blob (device memory, one per connection set; built by the host when the set is connected): one
 *   region per channel, chan_stride bytes apart, each part 16-byte aligned at the offset within the
 *   region that gp_kchan_layout() gives
 *   +0   gp_kchan_t
 *        gp_kconn_t[n_recv + n_send]   receive links first (base, seen, zeroed: updated by the kernel
 *                                      at call end)
 *        gp_stream_t[n_streams]  gp_step_t[n_steps]
 *        gp_ref_t[n_refs]              conn is an index into gp_kconn_t[], or GP_REF_OWN
 *   A block copies the first copy_bytes of its region to shared memory with one batch of loads: the
 *   whole region when that is short, else all but the program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_KARGS_H
#define GP_KARGS_H

#include "device/gp_exec.h"
#include "planner/gp_program.h"

typedef struct gp_kchan {
    uint32_t algorithm;   /* gp_algorithm_t of the program */
    uint32_t n_streams;
    uint32_t n_steps;
    uint32_t n_refs;
    uint32_t n_recv;
    uint32_t n_send;
    uint32_t n_chunks;
    uint32_t direct;      /* gp_kchan_is_direct() */
    uint64_t streams_off; /* bytes from the start of the region */
    uint64_t steps_off;
    uint64_t refs_off;
    uint64_t reserved2;
} gp_kchan_t;

/* A connection as the kernel needs it: gp_conn_t, its link's uses, and what survives from call to call. */
typedef struct gp_kconn {
    unsigned char *slots;
    uint64_t *tail;
    uint64_t *head;
    uint64_t *sizes;
    uint64_t base;       /* step of ordinal 0 in loop 0 of the next call */
    uint64_t seen;       /* last value read of the peer's counter */
    uint64_t zeroed;     /* LL sender: step at which the FIFO was last known all zero */
    uint64_t slot_bytes;
    uint32_t uses;
    uint32_t n_slots;
    uint32_t gated;
    uint32_t peer;
} gp_kconn_t;

GP_FN uint64_t gp_kchan_take(uint64_t *end, uint64_t bytes)
{
    uint64_t at = (*end + 15u) / 16u * 16u;

    *end = at + bytes;
    return at;
}

/* Connections follow the gp_kchan_t: receive ones first. */
GP_FN gp_kconn_t *gp_kchan_conns(void *region)
{
    return (gp_kconn_t *) ((unsigned char *) region + sizeof(gp_kchan_t));
}

/* Connection state of a link when the set is made. */
GP_FN gp_kconn_t gp_kconn_of(const gp_conn_t *conn, uint32_t uses)
{
    gp_kconn_t k;

    k.slots = conn->slots;
    k.tail = conn->tail;
    k.head = conn->head;
    k.sizes = conn->sizes;
    k.base = conn->step;
    k.seen = conn->seen;
    k.zeroed = conn->zeroed;
    k.slot_bytes = conn->slot_bytes;
    k.uses = uses;
    k.n_slots = conn->n_slots;
    k.gated = conn->gated;
    k.peer = conn->peer;
    return k;
}

/* The same reference in a region: sends count on from the receive connections. */
GP_FN gp_ref_t gp_kref_of(const gp_kchan_t *chan, const gp_ref_t *ref, int is_send)
{
    gp_ref_t k = *ref;

    k.conn += is_send && GP_REF_OWN != k.conn ? chan->n_recv : 0;
    return k;
}

/* Fill in the offsets from the counts. Returns the bytes of the region, a multiple of 16. */
GP_FN uint64_t gp_kchan_layout(gp_kchan_t *chan)
{
    uint64_t end = sizeof(*chan);

    (void) gp_kchan_take(&end, ((uint64_t) chan->n_recv + chan->n_send) * sizeof(gp_kconn_t));
    chan->streams_off = gp_kchan_take(&end, (uint64_t) chan->n_streams * sizeof(gp_stream_t));
    chan->steps_off = gp_kchan_take(&end, (uint64_t) chan->n_steps * sizeof(gp_step_t));
    chan->refs_off = gp_kchan_take(&end, (uint64_t) chan->n_refs * sizeof(gp_ref_t));
    return (end + 15u) / 16u * 16u;
}

/* Bytes of the region up to the program, a multiple of 16; what is always copied. */
GP_FN uint64_t gp_kchan_head_bytes(const gp_kchan_t *chan)
{
    return chan->streams_off;
}

/*
 * Pinned host memory, mapped into the GPU: one per executor. Each line has one writer.
 */
typedef struct gp_kstatus {
    /* line 0: written by the last block of a call, read by the CPU */
    uint64_t done;          /* number of the last completed call; release store, acquire load */
    uint64_t steps;         /* steps executed, in the same 16-byte store: for the record only */
    uint64_t failed;        /* sequence number of a call that ended by abort */
    uint64_t pad0[13];
    /*
     * lines 1, 2: written by the first block when it starts (all but calls and steps), so that the
     * release of `done` at the end has no store to host memory to wait for; read by the CPU after
     * acquiring `done`
     */
    gp_exec_record_t record;
    uint64_t pad1[(256 - sizeof(gp_exec_record_t)) / 8];
    /* line 3: written by the CPU, polled by the kernel every few thousand polls */
    uint32_t abort;         /* GP_KABORT_* */
    uint32_t pad2[31];
    /*
     * line 4: asked is written by whoever waits and sees GP_KABORT_ASK, both words in one store; read by
     * the CPU as soon as the first is not 0. wait is written by a kernel that gives up, before it ends
     */
    uint64_t asked[2];      /* low 8 bits kind, 24 bits channel, 32 bits peer; step */
    gp_wait_info_t wait;
    uint64_t pad3[(112 - sizeof(gp_wait_info_t)) / 8];
} gp_kstatus_t;

#define GP_KABORT_NO 0u
#define GP_KABORT_YES 1u /* give up */
#define GP_KABORT_ASK 2u /* say what you wait for, and go on waiting */

/*
 * What the blocks of a call tell each other; a line of device memory, zero between calls. Every
 * block adds, the last one reads and clears.
 */
typedef struct gp_karrive {
    uint64_t arrived;       /* acquire-release; low 31 bits: blocks that ended, GP_KARRIVE_ABORTED: a
                               block saw the abort, high 32 bits: steps executed by those blocks */
} gp_karrive_t;

#define GP_KARRIVE_ABORTED 0x80000000ull
#define GP_KARRIVE_BLOCKS 0x7fffffffull
#define GP_KARRIVE_STEPS_SHIFT 32

/* Kernel parameters, by value; well below the 4 KiB limit. */
typedef struct gp_kargs {
    unsigned char *blob;    /* device memory, see above */
    const void *send;       /* device-readable; may equal recv */
    void *recv;
    gp_kstatus_t *status;   /* device address of the pinned block */
    uint32_t *arrived;      /* device memory, one line (gp_karrive_t), zero between calls */
    uint64_t seq;           /* of this call, from 1 */
    uint64_t chan_stride;   /* bytes from region to region, a multiple of 128 */
    gp_geom_t geom;
    uint32_t rop;           /* gp_rop_t; the family is the kernel's */
    uint32_t ll_zero;       /* LL: zero drained send FIFOs first (flag age limit) */
    uint32_t copy_bytes;    /* of each region to shared memory, a multiple of 16; the same for all */
    uint32_t reserved;
} gp_kargs_t;

/*
 * Entry points: one per (family, protocol), extern "C", named by this macro:
 *     gp_kernel_<family>_<protocol>  e.g. gp_kernel_f32_ll128
 * grid = channels, block = threads (a multiple of 32). Dynamic shared memory:
 * gp_kernel_shared_bytes().
 */
#define GP_KERNEL_MAX_THREADS_LL 1024
#define GP_KERNEL_MAX_THREADS_LL128 384
#define GP_KERNEL_MAX_THREADS_SIMPLE 512
#define GP_KERNEL_MAX_STREAMS 15 /* a named barrier each; barrier 0 is the block's */

/*
 * Dynamic shared memory of a block, in this order, each part 16-byte aligned:
 *
 *   gp_kblock_t, its last member the beginning of the copied region
 *   the rest of the copied region          copy_bytes in all
 *   per stream  LL: gp_kfast_t[GP_KWINDOW_STEPS]
 *               gp_kstep_t[GP_KWINDOW_STEPS] gp_kref_t[window refs]     the decoded window
 *   u64 seen[copies][n_recv + n_send]      one copy per warp (LL, LL128) or per block (Simple)
 */
#define GP_KWINDOW_STEPS 32u     /* steps decoded at once: one per lane */
#define GP_KWINDOW_MIN_REFS 64u
#define GP_KCOPY_MAX_BYTES 8192u /* a longer region is used where it lies, but for its head */

/* Where a stream is. */
typedef struct gp_kwindow {
    uint64_t loop;   /* of the first step behind the window */
    uint64_t steps;  /* executed once the window is done */
    uint32_t index;  /* of the first step behind the window, within the stream */
    uint32_t n;      /* steps in the window; 0: the stream has ended */
} gp_kwindow_t;

typedef struct gp_kblock {
    uint32_t dead;                    /* the abort was seen; any thread writes, never cleared */
    uint32_t gated;                   /* some connection of the channel is gated */
    gp_kwindow_t windows[GP_KERNEL_MAX_STREAMS]; /* written by a stream's first warp, read by all */
    uint64_t *seen;                   /* all copies */
    const gp_stream_t *prog_streams;  /* the program: in shared memory or in the blob */
    const gp_step_t *prog_steps;
    const gp_ref_t *prog_refs;
    gp_kchan_t chan;                  /* and behind it the rest of the region; 16-byte aligned */
} gp_kblock_t;

/* A decoded step of a certain loop; the refs are those of the window, inputs first, then sends. */
typedef struct gp_kstep {
    uint64_t offset_bytes; /* of the chunk in the user's buffers */
    uint64_t bytes;        /* of the chunk; may be 0 */
    uint32_t first_ref;
    uint32_t n_in;
    uint32_t n_send;
    uint32_t flags;        /* GP_STEP_OUTPUT, GP_KSTEP_INPUT */
} gp_kstep_t;

#define GP_KSTEP_INPUT 0x100u /* some input is a connection */

/* A decoded reference: the slot of one step of one connection. */
typedef struct gp_kref {
    unsigned char *slot; /* NULL: the user's send buffer */
    uint64_t step;
    uint32_t conn;       /* in gp_kconn_t[]: sends count from n_recv on */
    uint32_t slot_index;
} gp_kref_t;

/*
 * A step over LL that one trip of the stream's threads moves, as addresses: thread i moves word i. What
 * such a step costs is instructions and the loads that feed each other, so nothing is left to look up.
 */
typedef struct gp_kfast {
    const unsigned char *own; /* the user's chunk to reduce with, or NULL */
    unsigned char *out;       /* the user's chunk to write, or NULL */
    unsigned char *from[2];   /* slots of the connections among the inputs, in list order */
    unsigned char *to[2];     /* slots of the sends */
    uint64_t *head[2];        /* of from[]: where to post */
    uint64_t post[2];         /* what */
    uint64_t need[2];         /* head of to[] from which there is credit */
    uint32_t recv_flag[2];
    uint32_t send_flag[2];
    uint32_t bytes;           /* of the chunk */
    uint16_t recv_conn[2];    /* of from[] and to[], in gp_kconn_t[] */
    uint16_t send_conn[2];
    uint8_t usable : 4;       /* 0: the step has more connections, larger elements or more words */
    uint8_t aligned : 4;      /* 8 divides the addresses of all of the user's */
    uint8_t n_from : 4;
    uint8_t n_to : 4;
    uint8_t n_in;             /* inputs, own among them */
    uint8_t own_at;           /* position of own in the list; n_in: none */
} gp_kfast_t;

GP_FN uint32_t gp_k16(uint32_t bytes)
{
    return (bytes + 15u) & ~15u;
}

/*
 * Can a window take every stream's loop whole, with the references where the program has them? Then a
 * call of one loop needs no search: reference i of a step is where the step says.
 */
GP_FN int gp_kchan_is_direct(const gp_program_t *p)
{
    for (uint32_t s = 0; s < p->n_streams; s++) {
        const gp_step_t *step = &p->steps[p->streams[s].first];
        uint32_t at;

        if (0 == p->streams[s].count || p->streams[s].count > GP_KWINDOW_STEPS) {
            return 0;
        }
        at = step->in_first;
        for (uint32_t i = 0; i < p->streams[s].count; i++, step++) {
            if (step->in_first != at || step->send_first != at + step->n_in) {
                return 0;
            }
            at += step->n_in + step->n_send;
        }
        if (at - p->steps[p->streams[s].first].in_first > GP_KWINDOW_MIN_REFS) {
            return 0;
        }
    }
    return 1;
}

/* References a window can hold: any step of the program fits, see gp_kernel_fits(). */
GP_FN uint32_t gp_kwindow_refs(const gp_kchan_t *chan)
{
    uint32_t most = chan->n_recv + chan->n_send + 1;

    return most > GP_KWINDOW_MIN_REFS ? most : GP_KWINDOW_MIN_REFS;
}

/* Bytes of the gp_kfast_t before a window. */
GP_FN uint32_t gp_kwindow_fast_bytes(uint32_t protocol)
{
    return GP_PROTO_LL == protocol ? GP_KWINDOW_STEPS * (uint32_t) sizeof(gp_kfast_t) : 0u;
}

/* Bytes of the window of one stream, with them. */
GP_FN uint32_t gp_kwindow_bytes(const gp_kchan_t *chan, uint32_t protocol)
{
    return gp_kwindow_fast_bytes(protocol) + GP_KWINDOW_STEPS * (uint32_t) sizeof(gp_kstep_t)
           + gp_k16(gp_kwindow_refs(chan) * (uint32_t) sizeof(gp_kref_t));
}

/* Bytes of shared memory before the windows. */
GP_FN uint32_t gp_kblock_bytes(uint32_t copy_bytes)
{
    return (uint32_t) offsetof(gp_kblock_t, chan) + copy_bytes;
}

/* What to copy of regions of which the longest has `region_bytes` and the longest head `head_bytes`. */
GP_FN uint32_t gp_kcopy_bytes(uint64_t region_bytes, uint64_t head_bytes)
{
    return (uint32_t) (region_bytes <= GP_KCOPY_MAX_BYTES ? region_bytes : head_bytes);
}

/*
 * Copies of `seen`: a warp that waits by itself needs its own, or barriers would have to order
 * them.
 */
GP_FN uint32_t gp_kseen_copies(uint32_t protocol, uint32_t threads)
{
    return GP_PROTO_SIMPLE == protocol ? 1u : threads / 32u;
}

/* Dynamic shared memory bytes of a block that runs `chan` with `threads` threads. */
GP_FN uint32_t gp_kernel_shared_bytes(const gp_kchan_t *chan, uint32_t protocol, uint32_t threads,
                                      uint32_t copy_bytes)
{
    uint32_t n_conns = chan->n_recv + chan->n_send;
    uint64_t bytes = gp_kblock_bytes(copy_bytes);

    bytes += (uint64_t) chan->n_streams * gp_kwindow_bytes(chan, protocol);
    bytes += ((uint64_t) gp_kseen_copies(protocol, threads) * n_conns * 8u + 15u) / 16u * 16u;
    return bytes > 0x7fffffffu ? 0x7fffffffu : (uint32_t) bytes;
}

/*
 * Can a kernel run this channel with so many threads? The limits that shared memory does not show.
 * What it cannot see and relies on: no step names more than n_recv + n_send + 1 references.
 */
GP_FN int gp_kernel_fits(const gp_kchan_t *chan, uint32_t protocol, uint32_t threads)
{
    uint32_t most = GP_PROTO_LL == protocol      ? GP_KERNEL_MAX_THREADS_LL
                    : GP_PROTO_LL128 == protocol ? GP_KERNEL_MAX_THREADS_LL128
                                                 : GP_KERNEL_MAX_THREADS_SIMPLE;

    return 0 != threads && 0 == threads % 32u && threads <= most && 0 != chan->n_streams
           && chan->n_streams <= GP_KERNEL_MAX_STREAMS && threads / 32u >= chan->n_streams;
}

GP_STATIC_ASSERT(0 == sizeof(gp_kchan_t) % 16, "connections follow, aligned");
GP_STATIC_ASSERT(0 == sizeof(gp_kconn_t) % 16, "gp_kconn_t keeps alignment");
GP_STATIC_ASSERT(0 == sizeof(gp_kstep_t) % 16, "gp_kstep_t keeps alignment");
GP_STATIC_ASSERT(0 == sizeof(gp_kfast_t) % 16, "gp_kfast_t keeps alignment");
GP_STATIC_ASSERT(0 == offsetof(gp_kblock_t, chan) % 16, "the region is copied by vectors");
GP_STATIC_ASSERT(sizeof(gp_karrive_t) <= GP_LINE_BYTES, "gp_karrive_t is one line");

#endif /* GP_KARGS_H */
