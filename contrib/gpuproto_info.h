/*
 * gpuproto_info.h - commands of gpuproto_info that have a file of their own.
 *
 * argv[0] is the command's name. Each prints to stdout and returns the exit status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_INFO_H
#define GPUPROTO_INFO_H

#include "planner/gp_plan.h"

int info_topology(int argc, char **argv);
int info_simulate(int argc, char **argv);

/*
 * Behind a plan: predictions and what was excluded, arithmetic, ring orders and trees. To stdout.
 */
void info_explain(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_plan_t *plan);
/* The plan and all choices as one line of JSON. */
void info_plan_json(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_plan_t *plan);
/* A picture of rings and trees, an SVG file. Returns the exit status; errors go to stderr. */
int info_graph(const gp_comm_desc_t *comm, const char *path);

#endif /* GPUPROTO_INFO_H */
