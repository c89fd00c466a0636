/*
 * gpuproto_info_sim.h - what "gpuproto_info simulate" found, and its picture.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_INFO_SIM_H
#define GPUPROTO_INFO_SIM_H

#include "planner/gp_sim.h"

#define SIM_MOST_SIZES 32

/* One size with one algorithm. */
typedef struct sim_point {
    gp_status_t status;
    gp_plan_t plan;          /* valid when GP_OK */
    uint32_t n_slots;
    gp_sim_result_t result;  /* valid when GP_OK */
    char why[200];           /* otherwise */
} sim_point_t;

/* Columns are ring, tree, flat. */
typedef struct sim_table {
    uint32_t n_ranks;
    uint32_t n_nodes;
    uint32_t n_sizes;
    uint64_t bytes[SIM_MOST_SIZES];
    sim_point_t *points;     /* [size][GP_ALGO_CUSTOM] */
} sim_table_t;

static inline const sim_point_t *sim_point_of(const sim_table_t *t, uint32_t size, uint32_t algo)
{
    return &t->points[(size_t) size * GP_ALGO_CUSTOM + algo];
}

/* Time over bytes, both axes logarithmic, a line for each algorithm. Returns the exit status. */
int sim_plot(const sim_table_t *table, const char *path);

/* A line of the table. */
void sim_print_row(const sim_table_t *table, uint32_t size);
/* Why an algorithm has no time: once for each reason. */
void sim_print_reasons(const sim_table_t *table);
/* Where the fastest changes, with the size at which the lines between two sizes cross. */
void sim_print_crossovers(const sim_table_t *table, int json);

/* 4, 64K, 1M: into text, which is returned. */
const char *sim_size_text(uint64_t bytes, char text[24]);

#endif /* GPUPROTO_INFO_SIM_H */
