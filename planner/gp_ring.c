/*
 * gp_ring.c - the ring program.
 *
 * N ranks, N chunks, 2N - 1 steps. With next = r + 1 and previous = r - 1 (mod N), chunk c starts at
 * rank c + 1, collects contributions round the ring in rank-relative order, is complete at rank c, and
 * travels on until the last rank (c - 1) has it:
 *
 *   step 0            send own chunk r-1                               (start)
 *   step k=1..N-2     receive chunk r-1-k, + own, send                 (reduce-scatter)
 *   step N-1          receive chunk r, + own, output, send             (complete)
 *   step N..2N-3      receive chunk r-1-k, output, send                (allgather)
 *   step 2N-2         receive chunk r+1, output                        (end)
 *
 * The order of a chunk's sum, ((own(c+1) + own(c+2)) + ...) + own(c), is fixed by the chunk, so all
 * ranks hold the same bits. Odd channels run the ring the other way round: on machines with full-duplex
 * links both directions are used, on others it costs nothing.
 *
 * With K slices a chunk is K chunks that are handed on one after the other: every step above becomes K
 * steps, and a rank sends the first while the second is still on its way. It needs K + 1 slots: K of the
 * chunk that a rank is about to send while its peer still holds one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_emit.h"

gp_status_t gp_emit_ring(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                         gp_program_t **program_p)
{
    uint32_t n = shape->n_ranks, slices = shape->slices;
    int reverse = (int) (channel & 1u);
    /* Position on the ring; chunks are named by position, peers by rank. */
    uint32_t at = gp_position_of(shape, channel, rank);
    uint32_t pos = reverse ? n - 1 - at : at;
    uint32_t next_pos = pos + 1 == n ? 0 : pos + 1;
    uint32_t prev_pos = 0 == pos ? n - 1 : pos - 1;
    /* Steps with own input: N; with received input: 2N - 2; sends: 2N - 2. */
    uint32_t n_refs = slices * (n + (2 * n - 2) + (2 * n - 2));
    uint32_t chunk = prev_pos;
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, 1, slices * (2 * n - 1), n_refs, 1, 1);

    if (GP_OK != status) {
        return status;
    }
    e.program->n_chunks = slices * n;
    e.program->recv[0].peer = gp_rank_at(shape, channel, reverse ? n - 1 - prev_pos : prev_pos);
    e.program->send[0].peer = gp_rank_at(shape, channel, reverse ? n - 1 - next_pos : next_pos);
    gp_emit_stream(&e);
    for (uint32_t k = 0; k <= 2 * n - 2; k++) {
        for (uint32_t slice = 0; slice < slices; slice++) {
            gp_emit_step(&e, chunk * slices + slice, k >= n - 1 ? GP_STEP_OUTPUT : 0);
            if (k > 0) {
                gp_emit_input(&e, 0);
            }
            if (k <= n - 1) {
                gp_emit_input_own(&e);
            }
            if (k < 2 * n - 2) {
                gp_emit_send(&e, 0);
            }
        }
        chunk = 0 == chunk ? n - 1 : chunk - 1;
    }
    return gp_emit_end(&e, program_p);
}
