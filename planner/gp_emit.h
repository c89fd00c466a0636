/*
 * gp_emit.h - how emitters write programs; private to planner/ (and to tests that make their own).
 *
 * An emitter counts first, then emits: begin, then per stream its steps in order, per step its inputs
 * in reduction order and then its sends, then end. Ordinals and uses are counted here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_EMIT_H
#define GP_EMIT_H

#include "planner/gp_program.h"

typedef struct gp_emit {
    gp_program_t *program;
    uint32_t stream; /* next stream */
    uint32_t step;   /* next step */
    uint32_t ref;    /* next ref */
} gp_emit_t;

/* Sizes are exact: gp_emit_end() checks them. Peers of recv and send links are set by the emitter. */
gp_status_t gp_emit_begin(gp_emit_t *e, uint32_t n_streams, uint32_t n_steps, uint32_t n_refs,
                          uint32_t n_recv, uint32_t n_send);
void gp_emit_stream(gp_emit_t *e);
void gp_emit_step(gp_emit_t *e, uint32_t chunk, uint32_t flags);
void gp_emit_input_own(gp_emit_t *e);
void gp_emit_input(gp_emit_t *e, uint32_t recv_link);
void gp_emit_send(gp_emit_t *e, uint32_t send_link);
/* Hands the program over; on error it is freed. */
gp_status_t gp_emit_end(gp_emit_t *e, gp_program_t **program_p);

gp_status_t gp_emit_single(gp_program_t **program_p);
gp_status_t gp_emit_ring(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                         gp_program_t **program_p);
gp_status_t gp_emit_tree(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                         gp_program_t **program_p);
gp_status_t gp_emit_flat(uint32_t n_ranks, uint32_t rank, gp_program_t **program_p);

/* The order of the ranks on a channel: the layout's, each node turned by one rank every second channel. */
uint32_t gp_rank_at(const gp_shape_t *shape, uint32_t channel, uint32_t position);
/* Node that holds a position: the last one that begins at or before it. */
uint32_t gp_node_at(const gp_layout_t *layout, uint32_t position);
uint32_t gp_position_of(const gp_shape_t *shape, uint32_t channel, uint32_t rank);

#endif /* GP_EMIT_H */
