/*
 * gp_flat.c - the flat (one-shot) program: everyone sends its input to everyone.
 *
 *   step 0   own chunk -> send to all others
 *   step 1   receive from all others, own at its own position, reduce in rank order, output
 *
 * One stream, send first: in place, the output must not overwrite what is not sent yet. The send step
 * needs only credits, which the peers' receive steps of earlier loops give, and those need only sends
 * of earlier loops: no cycle, with any number of slots. One hop, N - 1 times the traffic: for small
 * messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_emit.h"

gp_status_t gp_emit_flat(uint32_t n_ranks, uint32_t rank, gp_program_t **program_p)
{
    uint32_t others = n_ranks - 1;
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, 1, 2, 1 + others + n_ranks, others, others);

    if (GP_OK != status) {
        return status;
    }
    e.program->n_chunks = 1;
    for (uint32_t i = 0; i < others; i++) {
        uint32_t peer = i < rank ? i : i + 1;

        e.program->recv[i].peer = peer;
        e.program->send[i].peer = peer;
    }
    gp_emit_stream(&e);
    gp_emit_step(&e, 0, 0);
    gp_emit_input_own(&e);
    for (uint32_t i = 0; i < others; i++) {
        gp_emit_send(&e, i);
    }
    gp_emit_step(&e, 0, GP_STEP_OUTPUT);
    for (uint32_t peer = 0; peer < n_ranks; peer++) {
        if (peer == rank) {
            gp_emit_input_own(&e);
        } else {
            gp_emit_input(&e, peer < rank ? peer : peer - 1);
        }
    }
    return gp_emit_end(&e, program_p);
}
