/*
 * bench_plan.c - what planning costs: a communicator's first plans, a new size, a repeated call.
 *
 * Method: for each number of ranks, the best of 5 rounds of
 *   set    connection geometry of all nine combinations and this rank's programs of the chosen set
 *   plan   gp_plan_make_from() of 1,000 different sizes
 * on one core. A repeated call does neither: the component finds its plan in a table
 * (coll_gpuproto_allreduce.c), which is timed here as the same hash and comparison.
 *
 * usage: bench_plan [RANKS ...]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/gp_plan.h"

enum { ROUNDS = 5, PLANS = 1000, LOOKUPS = 1000000, SLOTS = 16 };

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double) t.tv_sec + 1e-3 * (double) t.tv_nsec;
}

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_plan: %s failed\n", what);
        exit(1);
    }
}

/* All that a communicator needs before its first large call. */
static double set_us(const gp_comm_desc_t *comm, const gp_params_t *params)
{
    double begin = now_us();
    gp_conn_geom_t g;
    gp_plan_t plan;
    const char *reason;

    for (uint32_t a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            (void) gp_plan_conn_geom(comm, params, a, p, &g, &reason);
        }
    }
    need(GP_OK == gp_plan_make(comm, params, 1u << 26, GP_TYPE_F32, GP_OP_SUM, &plan, &reason),
         "a plan");
    need(GP_OK == gp_plan_conn_geom(comm, params, plan.algorithm, plan.protocol, &g, &reason),
         "a geometry");
    for (uint32_t c = 0; c < g.channels; c++) {
        gp_program_t *program;

        need(GP_OK
                 == gp_program_emit((gp_algorithm_t) plan.algorithm, comm->n_ranks, 1, c,
                                    g.channels, &program),
             "a program");
        gp_program_free(program);
    }
    return now_us() - begin;
}

static double plan_us(const gp_comm_desc_t *comm, const gp_params_t *params)
{
    gp_sets_t sets;
    double begin;

    gp_plan_sets(comm, params, &sets);
    begin = now_us();
    for (uint64_t i = 0; i < PLANS; i++) {
        gp_plan_t plan;
        const char *reason;

        need(GP_OK
                 == gp_plan_make_from(comm, params, &sets, 1 + i * i * i, GP_TYPE_F32, GP_OP_SUM,
                                      &plan, &reason),
             "a plan");
    }
    return (now_us() - begin) / PLANS;
}

static double lookup_us(void)
{
    static volatile uint64_t counts[SLOTS];
    uint64_t hits = 0;
    double begin;

    for (uint64_t i = 0; i < SLOTS; i++) {
        counts[i] = i;
    }
    begin = now_us();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        uint64_t count = i % SLOTS, h = count * 0x9e3779b97f4a7c15ull;

        hits += counts[(h >> 32 ^ h) % SLOTS] == count;
    }
    begin = (now_us() - begin) / LOOKUPS;
    need(hits > 0, "a lookup");
    return begin;
}

int main(int argc, char **argv)
{
    static const uint32_t ranks[] = {4, 64, 1024};

    printf("# %8s %16s %16s %20s\n", "ranks", "communicator us", "new size us", "repeated call us");
    for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
        uint32_t n = argc > 1 ? (uint32_t) strtoul(argv[1 + i], NULL, 10) : ranks[i];
        double set = 1e9, plan = 1e9, lookup = 1e9;
        gp_comm_desc_t comm;
        gp_params_t params;

        need(n > 1, "a number of ranks above 1");
        memset(&comm, 0, sizeof(comm));
        comm.n_ranks = n;
        comm.n_nodes = (n + 7) / 8;
        comm.executor = GP_EXEC_CUDA;
        comm.worst_path = n > 8 ? GP_PATH_NET : GP_PATH_NVLINK;
        comm.ranks_per_gpu = 1;
        comm.sm_count = 132;
        comm.min_capability = comm.max_capability = 90;
        gp_params_init(&params);
        for (int r = 0; r < ROUNDS; r++) {
            double s = set_us(&comm, &params), p = plan_us(&comm, &params), l = lookup_us();

            set = s < set ? s : set;
            plan = p < plan ? p : plan;
            lookup = l < lookup ? l : lookup;
        }
        printf("%10u %16.1f %16.2f %20.4f\n", n, set, plan, lookup);
    }
    return 0;
}
