/*
 * gp_sim_report.c - what the simulator found.
 *
 * Walks the log of steps back from the end: each names the step it waited for last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_sim_int.h"

#include <stdio.h>

static gp_status_t report_deadlock(const gp_sim_state_t *s, gp_sim_result_t *result)
{
    for (uint32_t t = 0; t < s->n_streams; t++) {
        const gp_sim_stream_t *st = &s->streams[t];

        if (st->loop < s->in->geom.loops && 0 != gp_sim_list_of(s, st)->count) {
            const gp_sim_conn_t *c = &s->conns[st->blocked];

            snprintf(result->reason, sizeof(result->reason),
                     "deadlock with %u slots: rank %u channel %u stream %u loop %llu step %u waits "
                     "for %s rank %u",
                     s->in->n_slots, gp_sim_rank_of(s, st), gp_sim_channel_of(s, st), st->index,
                     (unsigned long long) st->loop, gp_sim_list_of(s, st)->first + st->at,
                     c->dst == t ? "data from" : "a credit of",
                     gp_sim_rank_of(s, &s->streams[c->dst == t ? c->src : c->dst]));
            return GP_ERR_INVALID;
        }
    }
    return GP_OK;
}

static void report_path(const gp_sim_state_t *s, gp_sim_result_t *result)
{
    uint64_t until = s->end_ps;
    uint32_t next_what = GP_SIM_OWN, n = 0;

    for (uint32_t at = s->end_log; GP_SIM_NONE != at; at = s->log[at].parent) {
        const gp_sim_log_t *entry = &s->log[at];
        const gp_sim_stream_t *st = &s->streams[entry->stream & ((1u << 30) - 1)];
        const gp_stream_t *list = gp_sim_list_of(s, st);
        double us = (double) (until - entry->ready_ps) / GP_SIM_PS_PER_US;

        result->path_steps++;
        result->path_us[next_what] += us;
        next_what = entry->stream >> 30;
        result->path_count[next_what]++;
        if (n < GP_SIM_PATH_MOST) {
            gp_sim_path_step_t *step = &result->path[n++];

            step->rank = gp_sim_rank_of(s, st);
            step->channel = gp_sim_channel_of(s, st);
            step->stream = st->index;
            step->step = list->first + (uint32_t) (entry->seq % list->count);
            step->loop = entry->seq / list->count;
            step->what = (gp_sim_what_t) next_what;
            step->begin_us = (double) entry->ready_ps / GP_SIM_PS_PER_US;
            step->us = us;
        }
        until = entry->ready_ps;
    }
    result->path_kept = n;
    for (uint32_t i = 0; i < n / 2; i++) {
        gp_sim_path_step_t step = result->path[i];

        result->path[i] = result->path[n - 1 - i];
        result->path[n - 1 - i] = step;
    }
}

static void report_loads(const gp_sim_state_t *s, gp_sim_result_t *result)
{
    uint64_t busiest = 0;

    for (uint32_t i = 0; i < s->n_units; i++) {
        const gp_sim_unit_t *u = &s->units[i];

        if (u->net) {
            result->loads.net_bytes += u->bytes * s->in->copies;
        } else {
            result->loads.intra_bytes += u->bytes * s->in->copies;
        }
        if (u->busy_ps > busiest) {
            busiest = u->busy_ps;
            result->loads.busiest_us = (double) u->busy_ps / GP_SIM_PS_PER_US;
            result->loads.busiest_bytes = u->bytes;
            result->loads.busiest_is_net = u->net;
            result->loads.busiest_rank = u->rank;
        }
    }
}

gp_status_t gp_sim_report(const gp_sim_state_t *s, gp_sim_result_t *result)
{
    gp_status_t status = report_deadlock(s, result);

    if (GP_OK == status) {
        result->total_us = (double) s->end_ps / GP_SIM_PS_PER_US;
        result->work = s->work;
        result->loops = s->in->geom.loops;
        report_path(s, result);
        report_loads(s, result);
    }
    return status;
}
