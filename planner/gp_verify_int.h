/*
 * gp_verify_int.h - the verifier's view of a set of programs; private to gp_verify*.c.
 *
 * Everything of all ranks lies in flat arrays: "global" indices of steps, streams and connections. A
 * connection is named by its receiving end: the receive links of all ranks, one after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_VERIFY_INT_H
#define GP_VERIFY_INT_H

#include <stdarg.h>

#include "planner/gp_verify.h"

#define GP_VERIFY_NONE UINT32_MAX

typedef struct gp_verify_conn {
    uint32_t src;         /* sending rank */
    uint32_t dst;         /* receiving rank */
    uint32_t src_stream;  /* global stream that fills slots */
    uint32_t dst_stream;  /* global stream that frees slots */
    uint32_t uses;        /* steps per loop */
    uint32_t first_use;   /* its first entry in producers */
    uint64_t filled;      /* steps filled so far */
    uint64_t freed;       /* steps freed so far */
} gp_verify_conn_t;

typedef struct gp_verify_stream {
    uint32_t rank;
    uint32_t index;  /* within its program */
    uint64_t loop;   /* next step to run: loop ... */
    uint32_t at;     /* ... and position in the stream */
    uint32_t queued; /* on the work list */
} gp_verify_stream_t;

typedef struct gp_verify_ctx {
    const gp_program_t *const *programs;
    uint32_t n_ranks;
    uint32_t n_slots;
    uint32_t loops;
    uint32_t n_chunks;
    char *reason;
    size_t reason_bytes;

    uint32_t n_steps; /* of all ranks together; likewise below */
    uint32_t n_streams;
    uint32_t n_conns;
    uint32_t n_sends;
    uint32_t n_uses;
    uint32_t n_inputs;

    uint32_t *step_base;   /* per rank: global index of its first step; likewise below */
    uint32_t *stream_base;
    uint32_t *recv_base;   /* ... of its first receive link, in conns */
    uint32_t *send_base;   /* ... of its first send link, in send_conn */
    uint32_t *send_conn;   /* per send link: its connection */
    uint32_t *step_stream; /* per step: its global stream */
    uint32_t *producers;   /* per use of a connection: the global step that fills it */
    uint32_t *earlier;     /* per step: the latest step before it in its stream on the same chunk */
    gp_verify_conn_t *conns;
    gp_verify_stream_t *streams;
} gp_verify_ctx_t;

/* Write the reason; always GP_ERR_INVALID, so that a check can return it. */
gp_status_t gp_verify_fail(const gp_verify_ctx_t *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Check each program alone, then the links between them; fills the arrays above. */
gp_status_t gp_verify_structure(gp_verify_ctx_t *v);

/* Run all streams: deadlock, expressions, what is output. */
gp_status_t gp_verify_run(gp_verify_ctx_t *v);

/* In-place hazards between the streams of a rank. After gp_verify_run(): no cycles are left. */
gp_status_t gp_verify_in_place(const gp_verify_ctx_t *v);

/* Does this step read its rank's own buffer? */
static inline int gp_verify_reads_own(const gp_program_t *p, const gp_step_t *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (GP_REF_OWN == p->refs[s->in_first + i].conn) {
            return 1;
        }
    }
    return 0;
}

#endif /* GP_VERIFY_INT_H */
