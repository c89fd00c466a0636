/*
 * gp_sim_int.h - what the simulator's engine runs; private to gp_sim*.c.
 *
 * The engine knows no algorithm and no symmetry: it gets programs and, per send link, how it is
 * reached. Under symmetry the "ranks" of the engine stand for several: peers name such ranks, and a
 * rank may be its own peer. The k-th send link of rank a to rank b meets the k-th receive link of b
 * from a.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_SIM_INT_H
#define GP_SIM_INT_H

#include "planner/gp_sim.h"

typedef struct gp_sim_link {
    int net;       /* crosses the network */
    double weight; /* messages that one message on it stands for */
} gp_sim_link_t;

typedef struct gp_sim_input gp_sim_input_t;

struct gp_sim_input {
    /*
     * [channel mod distinct][rank]. turned: on channel c local rank l of a node runs what is given
     * for local rank l - c / 2, and so do its peers: a layout's rotation.
     */
    const gp_program_t *const *programs;
    uint32_t distinct;
    uint32_t turned;
    uint32_t n_ranks;
    uint32_t n_channels;
    uint32_t n_slots;
    uint32_t uniform;    /* chunk 0 stands for all chunks of a loop */
    uint32_t node_ranks; /* ranks of a node, >= 1 */
    gp_protocol_t protocol;
    gp_geom_t geom; /* loops are those to run */
    double share;   /* channels that one simulated channel stands for */
    double copies;  /* ranks that one simulated rank stands for: scales loads */
    const gp_sim_params_t *params;
    /* How `rank` reaches `peer` by the send link `send` of programs[base]. */
    gp_sim_link_t (*link)(const gp_sim_input_t *in, size_t base, uint32_t rank, uint32_t peer,
                          uint32_t send);
    uint32_t nodes;               /* for link() */
    const unsigned char *crosses; /* for link(), [base]: its send link crosses the network */
};

/* Run it; fills all of *result but ranks, channels, ring_ranks. Errors as gp_sim_run(). */
gp_status_t gp_sim_engine(const gp_sim_input_t *in, gp_sim_result_t *result);

/*
 * Programs that stand for all ranks of call's ring or flat, were it of n_ranks ranks. Sets
 * programs, distinct, turned, n_ranks, node_ranks, copies, uniform, nodes, crosses and link of *in.
 * gp_sim_release() frees them. GP_DECLINED with `reason` where ranks are not alike.
 */
gp_status_t gp_sim_symmetric(const gp_sim_call_t *call, uint32_t n_ranks,
                             const gp_sim_params_t *params, gp_sim_input_t *in, char *reason,
                             size_t reason_bytes);

/* Ranks it would simulate; 0 when it would decline. */
uint32_t gp_sim_symmetric_ranks(const gp_sim_call_t *call, const gp_sim_params_t *params);

/* Is the layout nodes of per_node ranks each, in rank order? */
int gp_sim_layout_is_regular(const gp_layout_t *layout, uint32_t n_ranks, uint32_t per_node);

/* Free what in->programs and in->crosses hold, where gp_sim*.c emitted them. */
void gp_sim_release(gp_sim_input_t *in);

/*
 * The engine's state. Times are picoseconds since the start of the call. Shared by gp_sim_engine.c
 * (time), gp_sim_build.c (sets it up) and gp_sim_report.c (reads it).
 */
#define GP_SIM_NONE UINT32_MAX
#define GP_SIM_PS_PER_US 1e6

/* A unit that serves one request after the other. */
typedef struct gp_sim_unit {
    uint64_t free_ps;
    uint64_t busy_ps;
    double bytes;
    uint32_t rank; /* one that uses it */
    uint32_t net;
} gp_sim_unit_t;

/* A connection, at its receiving end's index. */
typedef struct gp_sim_conn {
    uint32_t src, dst; /* streams */
    uint32_t link;     /* unit */
    uint32_t net;
    double weight;
    uint64_t filled, freed; /* uses whose times are known */
    size_t slot_base;
    uint32_t n_slots;
} gp_sim_conn_t;

typedef struct gp_sim_slot {
    uint64_t fill_ps, free_ps; /* when seen by the other end */
    uint32_t fill_log, free_log;
} gp_sim_slot_t;

/* One rank on one channel. */
typedef struct gp_sim_part {
    const gp_program_t *program;
    size_t base; /* its index in the input */
    uint32_t stream_base, recv_base, send_base;
} gp_sim_part_t;

typedef struct gp_sim_stream {
    uint32_t part, index;
    uint64_t loop;    /* next step: loop ... */
    uint32_t at;      /* ... and position in the stream */
    uint32_t scan;    /* inputs and sends of it known to be fulfilled */
    uint32_t blocked; /* connection whose next event it needs; GP_SIM_NONE: not waiting */
    uint32_t ready_log;
    uint64_t ready_ps; /* latest of what is known so far, and what it was */
    uint32_t what;
} gp_sim_stream_t;

typedef struct gp_sim_event {
    uint64_t ps;
    uint32_t stream;
    uint32_t send; /* GP_SIM_NONE: a step is ready; else its send that asks for a NIC */
    uint32_t log;
} gp_sim_event_t;

/* Every step that ran. */
typedef struct gp_sim_log {
    uint64_t ready_ps;
    uint64_t seq;    /* loop * count + position */
    uint32_t parent; /* the step it waited for last */
    uint32_t stream; /* 2 bits of what above */
} gp_sim_log_t;

typedef struct gp_sim_state {
    const gp_sim_input_t *in;
    uint32_t n_parts, n_streams, n_conns, n_sends, n_units;
    size_t n_slots, n_steps;
    gp_sim_part_t *parts;
    gp_sim_stream_t *streams;
    gp_sim_conn_t *conns;
    uint32_t *send_conn;
    gp_sim_slot_t *slots;
    gp_sim_unit_t *reduce; /* per rank */
    gp_sim_unit_t *units;  /* links */
    gp_sim_event_t *heap;
    size_t heap_count, heap_room;
    gp_sim_log_t *log;
    size_t logged;
    uint64_t end_ps;
    uint32_t end_log;
    uint64_t work;
    int no_memory;
} gp_sim_state_t;

static inline const gp_stream_t *gp_sim_list_of(const gp_sim_state_t *s, const gp_sim_stream_t *st)
{
    return &s->parts[st->part].program->streams[st->index];
}

static inline uint32_t gp_sim_rank_of(const gp_sim_state_t *s, const gp_sim_stream_t *st)
{
    return st->part % s->in->n_ranks;
}

static inline uint32_t gp_sim_channel_of(const gp_sim_state_t *s, const gp_sim_stream_t *st)
{
    return st->part / s->in->n_ranks;
}

static inline gp_sim_conn_t *gp_sim_recv_conn(const gp_sim_state_t *s, const gp_sim_part_t *part,
                                              const gp_ref_t *ref)
{
    return &s->conns[part->recv_base + ref->conn];
}

static inline gp_sim_conn_t *gp_sim_sent_conn(const gp_sim_state_t *s, const gp_sim_part_t *part,
                                              const gp_ref_t *ref)
{
    return &s->conns[s->send_conn[part->send_base + ref->conn]];
}

/*
 * Set up everything from s->in. GP_ERR_INVALID: links do not match; too many steps for the
 * counters.
 */
gp_status_t gp_sim_build(gp_sim_state_t *s);

/* After the run: GP_ERR_INVALID and the reason when a stream did not come to its end. */
gp_status_t gp_sim_report(const gp_sim_state_t *s, gp_sim_result_t *result);

#endif /* GP_SIM_INT_H */
