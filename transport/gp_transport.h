/*
 * gp_transport.h - where a FIFO lives and how its two ends reach it.
 *
 * Owns: the bootstrap callbacks (so that tests need no MPI), the arena (memory that peers can map) and
 * the connection set (all connections of one algorithm and protocol of one communicator and class).
 * The set is generic; an arena is one of shm (host memory that processes share), ipc (device memory,
 * CUDA IPC), or a test's own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TRANSPORT_H
#define GP_TRANSPORT_H

#include "device/proto/gp_fifo.h"
#include "device/proto/gp_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective operations among the ranks of one communicator, all bounded by their implementer. */
typedef struct gp_boot {
    void *ctx;
    uint32_t rank;
    uint32_t n_ranks;
    /* Gather `bytes` from each rank into recv (n_ranks * bytes, rank order). Also a barrier. */
    gp_status_t (*allgather)(void *ctx, const void *send, void *recv, size_t bytes);
} gp_boot_t;

#define GP_HANDLE_BYTES 128

/* What a peer needs to map an extent of ours. Opaque bytes, meaningful to the arena kind only. */
typedef struct gp_handle {
    uint64_t process;   /* unique per process of the node (pid and start time hashed) */
    uint64_t extent;    /* unique within the process, never reused */
    unsigned char bytes[GP_HANDLE_BYTES];
} gp_handle_t;

typedef struct gp_arena gp_arena_t;
typedef struct gp_net gp_net_t;

/* A piece of an arena. */
typedef struct gp_mem {
    void *ptr;          /* in this process (device pointer for ipc) */
    uint64_t offset;    /* within its extent, a multiple of 4096 */
    uint64_t bytes;
    void *extent;       /* private to the arena */
} gp_mem_t;

/*
 * An arena kind. One arena per process and kind; extents grow on demand, freed pieces are reused.
 * All functions: GP_OK or an error already logged.
 */
struct gp_arena {
    const char *name;   /* "shm", "ipc" */
    uint32_t path;      /* gp_path_t of a connection through it */
    /* A piece of at least `bytes`, zeroed (whatever it held before), aligned to 4096. */
    gp_status_t (*alloc)(gp_arena_t *arena, uint64_t bytes, gp_mem_t *mem);
    void (*free)(gp_arena_t *arena, gp_mem_t *mem);
    /* The handle by which peers map mem's extent. Valid until the extent is destroyed. */
    gp_status_t (*export_mem)(gp_arena_t *arena, const gp_mem_t *mem, gp_handle_t *handle);
    /* Map a peer's extent (cached and counted per process and extent); our own handle maps to itself. */
    gp_status_t (*map)(gp_arena_t *arena, const gp_handle_t *handle, void **base);
    void (*unmap)(gp_arena_t *arena, const gp_handle_t *handle);
    /* All ranks of the communicator have mapped: names may go. May be NULL. */
    void (*attached)(gp_arena_t *arena, const gp_mem_t *mem);
    /* Store a 64-bit value at an address of our own piece (set-up time only). */
    gp_status_t (*poke)(gp_arena_t *arena, void *ptr, uint64_t value);
};

/* The links of any rank on any channel: from its program. Arrays owned by the callee. */
typedef struct gp_links {
    const gp_link_t *recv;
    const gp_link_t *send;
    uint32_t n_recv;
    uint32_t n_send;
} gp_links_t;

typedef struct gp_connset_desc {
    uint32_t protocol;    /* gp_protocol_t */
    uint32_t channels;
    uint32_t n_slots;
    uint32_t gated;       /* LL128 only */
    uint64_t slot_bytes;
    uint64_t first_step;  /* where step counters start; 0 except in tests */
    /* Links of `rank` on `channel`; GP_OK or an error. Called for this rank and for its peers. */
    gp_status_t (*links)(void *ctx, uint32_t rank, uint32_t channel, gp_links_t *links);
    void *links_ctx;
    /*
     * Ranks that share no memory: node_of[a] != node_of[b]. Their connections go over net, to eps[rank].
     * NULL: all ranks share memory.
     */
    const uint32_t *node_of;
    gp_net_t *net;
    void *const *eps;     /* [n_ranks]; only those of far peers are used */
    double hello_seconds; /* how long the first message of a peer is waited for */
} gp_connset_desc_t;

typedef struct gp_connset {
    gp_connset_desc_t desc;
    gp_conn_t **recv;     /* [channel][recv link index] */
    gp_conn_t **send;     /* [channel][send link index] */
    uint32_t *n_recv;     /* [channel] */
    uint32_t *n_send;     /* [channel] */
    uint64_t fifo_bytes;  /* memory this rank gave */
    struct gp_net_set *far; /* links over a net, or NULL: then nothing has to be progressed */
    void *impl;
} gp_connset_t;

/*
 * Make all connections of this rank, collectively over boot: every rank calls with the same desc (but
 * its own links). One piece of arena memory holds, channel after channel, the receive blocks in link
 * order and then the send blocks (layouts: gp_fifo.h). When it returns on any rank every rank's blocks
 * are zeroed and their counters set to first_step. If any rank fails, all return an error and nothing
 * is left mapped. The caller owns *set_p and destroys it, collectively, when its heads are drained.
 */
gp_status_t gp_connset_create(const gp_connset_desc_t *desc, gp_arena_t *arena,
                              const gp_boot_t *boot, gp_connset_t **set_p);

/*
 * Unmap and free. Local: the caller made sure that no peer still writes (heads drained, or the process
 * ends). With quarantine != 0 our memory is not given back to the arena (an aborted peer may write).
 */
void gp_connset_destroy(gp_connset_t *set, int quarantine);

/*
 * The process's arena of shared host memory. Created at first call, destroyed by gp_shm_arena_finalize().
 * Segments have no names where the kernel allows that (memfd); else names that no two jobs or users share,
 * mode 0600, unlinked as soon as all have attached.
 */
gp_status_t gp_shm_arena(gp_arena_t **arena_p);
void gp_shm_arena_finalize(void);

#ifdef __cplusplus
}
#endif

#endif /* GP_TRANSPORT_H */
