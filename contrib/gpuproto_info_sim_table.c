/*
 * gpuproto_info_sim_table.c - the table of "gpuproto_info simulate": rows, winners, crossovers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "contrib/gpuproto_info_sim.h"

/* The fastest of a row; GP_ALGO_CUSTOM when there is none. */
static uint32_t winner(const sim_table_t *t, uint32_t size)
{
    uint32_t best = GP_ALGO_CUSTOM;

    for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
        const sim_point_t *p = sim_point_of(t, size, algo);

        if (GP_OK == p->status
            && (GP_ALGO_CUSTOM == best
                || p->result.total_us < sim_point_of(t, size, best)->result.total_us)) {
            best = algo;
        }
    }
    return best;
}

/*
 * Where two lines of log time over log bytes cross between size i and i + 1; 0 when one is missing.
 */
static double crossing(const sim_table_t *t, uint32_t i, uint32_t from, uint32_t to)
{
    const sim_point_t *p[4] = {sim_point_of(t, i, from), sim_point_of(t, i, to),
                               sim_point_of(t, i + 1, from), sim_point_of(t, i + 1, to)};
    double before, after;

    for (int k = 0; k < 4; k++) {
        if (GP_OK != p[k]->status) {
            return 0;
        }
    }
    before = log(p[1]->result.total_us / p[0]->result.total_us); /* > 0: from is faster */
    after = log(p[3]->result.total_us / p[2]->result.total_us);
    return (double) t->bytes[i]
           * pow((double) t->bytes[i + 1] / (double) t->bytes[i], before / (before - after));
}

void sim_print_crossovers(const sim_table_t *t, int json)
{
    uint32_t n = 0;
    double at;

    for (uint32_t i = 0; i + 1 < t->n_sizes; i++) {
        uint32_t from = winner(t, i), to = winner(t, i + 1);

        if (from == to || GP_ALGO_CUSTOM == from || GP_ALGO_CUSTOM == to) {
            continue;
        }
        at = crossing(t, i, from, to);
        if (json) {
            printf("%s{\"from\": \"%s\", \"to\": \"%s\", \"bytes\": %.0f}", 0 == n ? "" : ", ",
                   gp_algorithm_name(from), gp_algorithm_name(to),
                   at > 0 ? at : (double) t->bytes[i + 1]);
        } else {
            printf("%s overtakes %s between %llu and %llu bytes", gp_algorithm_name(to),
                   gp_algorithm_name(from), (unsigned long long) t->bytes[i],
                   (unsigned long long) t->bytes[i + 1]);
            printf(at > 0 ? ", at about %.0f\n" : "\n", at);
        }
        n++;
    }
    if (0 == n && !json) {
        printf("no crossover\n");
    }
}

void sim_print_row(const sim_table_t *t, uint32_t i)
{
    char text[24];

    printf("%10s", sim_size_text(t->bytes[i], text));
    for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
        const sim_point_t *p = sim_point_of(t, i, algo);

        if (GP_OK == p->status) {
            printf(" %14.1f %-7s", p->result.total_us, gp_protocol_name(p->plan.protocol));
        } else {
            printf(" %14s %-7s", "-", "");
        }
    }
    printf(" %s\n", winner(t, i) < GP_ALGO_CUSTOM ? gp_algorithm_name(winner(t, i)) : "-");
    fflush(stdout);
}

/* Why an algorithm has no time: once for each reason. */
void sim_print_reasons(const sim_table_t *t)
{
    for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
        const char *last = "";

        for (uint32_t i = 0; i < t->n_sizes; i++) {
            const sim_point_t *p = sim_point_of(t, i, algo);

            if (GP_OK != p->status && 0 != strcmp(p->why, last)) {
                printf("%s: - declined: %s\n", gp_algorithm_name(algo), p->why);
                last = p->why;
            }
        }
    }
}
