/*
 * gpuproto_info_sim.c - "gpuproto_info simulate": the time of a call on machines one need not own.
 *
 * Plans as the component would, with one GPU a rank and equal nodes, and simulates what was
 * planned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/gpuproto_info.h"
#include "contrib/gpuproto_info_sim.h"

/* Work of one entry of a table: some 45 of them should take less than a minute. */
#define TABLE_MOST_WORK 3000000u
#define TABLE_FIRST_BYTES 4u
#define TABLE_LAST_BYTES (1ull << 30)
#define TABLE_FACTOR 4u

static const char usage[] =
    "usage: gpuproto_info simulate [options]\n"
    "\n"
    "  Simulated time, critical path and link loads of one size; without --bytes a table of sizes\n"
    "  with ring, tree and flat, and where one overtakes the other.\n"
    "\n"
    "  -n, --ranks N            ranks (default 64), one GPU each\n"
    "  -N, --nodes N            equal nodes (default: 8 ranks each where that divides, else one)\n"
    "  -b, --bytes SIZE         bytes of the call; K, M, G suffixes\n"
    "  -a, --algorithm NAME     auto, ring, tree, flat (default: by the planner; table: all)\n"
    "  -p, --protocol NAME      auto, ll, ll128, simple (default: by the planner)\n"
    "  -s, --slots N            slots of a connection (default: by the planner)\n"
    "  -c, --channels N         channels (default: by the planner)\n"
    "      --alpha-us A,B       latency within a node and over the network (default 0.6,5)\n"
    "      --bandwidth A,B      GB/s out of a GPU and out of a NIC (default 450,50)\n"
    "      --nics N             NICs of a node (default 8)\n"
    "      --pair-links         within a node a link for each pair, not one port a GPU\n"
    "      --reduce GBPS        bytes a GPU reads while reducing (default 2000)\n"
    "      --step-us A,B        of each step, and of each connection in it (default 0.3,0.05)\n"
    "      --work N             steps and sends to simulate at most (default 12M; table: 3M)\n"
    "      --json               for programs\n"
    "      --plot FILE.svg      with a table: a picture\n"
    "  -h, --help\n"
    "\n"
    "The model is described in docs/planner.md. Exit status: 0, 1 when the planner or the\n"
    "simulator declines, 2 for a usage error.\n";

typedef struct sim_args {
    uint32_t ranks, nodes; /* nodes 0: not given */
    uint64_t bytes;        /* 0: a table */
    uint32_t slots;        /* 0: the planner's */
    int json;
    const char *plot;
    gp_params_t params;
    gp_comm_desc_t comm;
    gp_sim_params_t sim;
    uint64_t work;         /* 0: not given */
} sim_args_t;

static void usage_error(const char *option, const char *text)
{
    fprintf(stderr, "gpuproto_info: %s \"%s\"; simulate --help shows the options\n", option, text);
    exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t most)
{
    static const char suffixes[] = "KMG";
    char *end;
    uint64_t n;

    errno = 0;
    n = strtoull(text, &end, 10);
    for (int i = 0; i < 3; i++) {
        if ((*end & ~0x20) == suffixes[i] && n <= UINT64_MAX >> 10 * (i + 1)) {
            n <<= 10 * (i + 1);
            end++;
            break;
        }
    }
    if (end == text || '\0' != *end || '-' == *text || 0 != errno || 0 == n || n > most) {
        usage_error(option, text);
    }
    return n;
}

/* "A" or "A,B", each >= least; B stays as it is when not given. */
static void two_numbers(const char *option, const char *text, double least, double unit, double *a,
                        double *b)
{
    double *to[2] = {a, b};
    const char *at = text;
    char *end;

    for (int i = 0; i < 2; i++) {
        double value = strtod(at, &end);

        if (end == at || !(value >= least && value <= 1e6) || NULL == to[i]) {
            usage_error(option, text);
        }
        *to[i] = value * unit;
        if ('\0' == *end) {
            return;
        }
        if (',' != *end) {
            usage_error(option, text);
        }
        at = end + 1;
    }
    usage_error(option, text);
}

static int32_t choice(const char *option, const char *text, const char *(*name)(uint32_t),
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (0 == strcmp(name(i), text)) {
            return (int32_t) i;
        }
    }
    if (0 != strcmp(text, "auto")) {
        usage_error(option, text);
    }
    return GP_AUTO;
}

/* The communicator the planner sees. */
static void describe(sim_args_t *a)
{
    gp_comm_desc_t *c = &a->comm;

    if (0 == a->nodes) {
        a->nodes = 0 == a->ranks % 8 ? a->ranks / 8 : 1;
    }
    if (a->nodes > a->ranks || 0 != a->ranks % a->nodes) {
        fprintf(stderr, "gpuproto_info: %u ranks are not %u equal nodes\n", a->ranks, a->nodes);
        exit(2);
    }
    c->n_ranks = a->ranks;
    c->n_nodes = a->nodes;
    c->executor = GP_EXEC_CUDA;
    c->worst_path = a->nodes > 1 ? GP_PATH_NET : GP_PATH_NVLINK;
    c->ranks_per_gpu = 1;
    c->sm_count = 132;
    c->min_capability = c->max_capability = 90;
    a->sim.ranks_per_node = a->ranks / a->nodes;
    c->link_bytes_per_us = (uint32_t) (a->nodes > 1 ? a->sim.net_bytes_per_us * a->sim.nics_per_node
                                                    : a->sim.intra_bytes_per_us);
    a->sim.most_work = 0 != a->work ? a->work : 0 != a->bytes ? a->sim.most_work : TABLE_MOST_WORK;
}

static void parse(int argc, char **argv, sim_args_t *a)
{
    enum { ALPHA = 256, BANDWIDTH, NICS, PAIRS, REDUCE, STEP, WORK, JSON, PLOT };
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'n'},      {"nodes", required_argument, NULL, 'N'},
        {"bytes", required_argument, NULL, 'b'},      {"algorithm", required_argument, NULL, 'a'},
        {"protocol", required_argument, NULL, 'p'},   {"slots", required_argument, NULL, 's'},
        {"channels", required_argument, NULL, 'c'},   {"alpha-us", required_argument, NULL, ALPHA},
        {"bandwidth", required_argument, NULL, BANDWIDTH}, {"nics", required_argument, NULL, NICS},
        {"pair-links", no_argument, NULL, PAIRS},     {"reduce", required_argument, NULL, REDUCE},
        {"step-us", required_argument, NULL, STEP},   {"work", required_argument, NULL, WORK},
        {"json", no_argument, NULL, JSON},            {"plot", required_argument, NULL, PLOT},
        {"help", no_argument, NULL, 'h'},             {NULL, 0, NULL, 0}};
    int c;

    memset(a, 0, sizeof(*a));
    a->ranks = 64;
    gp_params_init(&a->params);
    gp_sim_params_init(&a->sim);
    while (-1 != (c = getopt_long(argc, argv, "n:N:b:a:p:s:c:h", options, NULL))) {
        switch (c) {
        case 'n': a->ranks = (uint32_t) number("--ranks", optarg, 1u << 20); break;
        case 'N': a->nodes = (uint32_t) number("--nodes", optarg, 1u << 20); break;
        case 'b': a->bytes = number("--bytes", optarg, 1ull << 50); break;
        case 'a':
            a->params.algorithm = choice("--algorithm", optarg, gp_algorithm_name, GP_ALGO_CUSTOM);
            break;
        case 'p':
            a->params.protocol = choice("--protocol", optarg, gp_protocol_name, GP_PROTO_COUNT);
            break;
        case 's': a->slots = (uint32_t) number("--slots", optarg, GP_MAX_SLOTS); break;
        case 'c':
            a->params.min_channels = (uint32_t) number("--channels", optarg, 64);
            a->params.max_channels = a->params.min_channels;
            break;
        case ALPHA:
            two_numbers("--alpha-us", optarg, 0, 1, &a->sim.intra_alpha_us, &a->sim.net_alpha_us);
            /* A freed slot is told the way data is. */
            a->sim.intra_head_us = a->sim.intra_alpha_us;
            a->sim.net_head_us = a->sim.net_alpha_us;
            break;
        case BANDWIDTH:
            two_numbers("--bandwidth", optarg, 1e-3, 1000, &a->sim.intra_bytes_per_us,
                        &a->sim.net_bytes_per_us);
            break;
        case NICS: a->sim.nics_per_node = (uint32_t) number("--nics", optarg, 1024); break;
        case PAIRS: a->sim.intra_port = 0; break;
        case REDUCE:
            two_numbers("--reduce", optarg, 1e-3, 1000, &a->sim.reduce_bytes_per_us, NULL);
            break;
        case STEP:
            two_numbers("--step-us", optarg, 0, 1, &a->sim.step_us, &a->sim.link_us);
            break;
        case WORK: a->work = number("--work", optarg, 1ull << 31); break;
        case JSON: a->json = 1; break;
        case PLOT: a->plot = optarg; break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default: exit(2);
        }
    }
    if (optind < argc) {
        usage_error("extra argument", argv[optind]);
    }
    if (0 != a->bytes && NULL != a->plot) {
        usage_error("--plot draws a table, not one size:", a->plot);
    }
    describe(a);
}

static gp_status_t decline(sim_point_t *p, gp_status_t status, const char *why)
{
    p->status = status;
    snprintf(p->why, sizeof(p->why), "%s", NULL != why && '\0' != *why ? why : "out of memory");
    return status;
}

/* Plan and simulate one size with one algorithm (or GP_AUTO). */
static gp_status_t simulate(const sim_args_t *a, const gp_layout_t *layout, uint64_t bytes,
                            int32_t algorithm, sim_point_t *p)
{
    gp_params_t params = a->params;
    const char *why = NULL;
    gp_conn_geom_t conn;
    gp_sim_call_t call;
    gp_status_t status;

    memset(p, 0, sizeof(*p));
    params.algorithm = algorithm;
    status = gp_plan_make(&a->comm, &params, (bytes + 3) / 4, GP_TYPE_F32, GP_OP_SUM, &p->plan,
                          &why);
    if (GP_OK == status) {
        status = gp_plan_conn_geom(&a->comm, &params, p->plan.algorithm, p->plan.protocol, &conn,
                                   &why);
    }
    if (GP_OK != status) {
        return decline(p, status, why);
    }
    memset(&call, 0, sizeof(call));
    call.shape.algorithm = p->plan.algorithm;
    call.shape.n_ranks = a->ranks;
    call.shape.n_channels = p->plan.geom.channels;
    call.shape.slices = GP_ALGO_RING == p->plan.algorithm ? p->plan.geom.n_chunks / a->ranks : 1;
    call.shape.layout = layout;
    call.protocol = (gp_protocol_t) p->plan.protocol;
    call.n_slots = p->n_slots = 0 != a->slots ? a->slots : conn.n_slots;
    call.geom = p->plan.geom;
    status = gp_sim_run(&call, &a->sim, GP_SIM_AUTO, &p->result);
    return GP_OK == status ? GP_OK : decline(p, status, p->result.reason);
}

const char *sim_size_text(uint64_t bytes, char text[24])
{
    static const char *const suffixes[] = {"", "K", "M", "G", "T"};
    int i = 0;

    while (i < 4 && bytes >= 1024 && 0 == bytes % 1024) {
        bytes /= 1024;
        i++;
    }
    snprintf(text, 24, "%llu%s", (unsigned long long) bytes, suffixes[i]);
    return text;
}

static void print_json_point(const sim_point_t *p, uint64_t bytes)
{
    const gp_sim_result_t *r = &p->result;

    printf("{\"bytes\": %llu, ", (unsigned long long) bytes);
    if (GP_OK != p->status) {
        printf("\"declined\": \"%s\"}", p->why); /* static texts without quotes */
        return;
    }
    printf("\"algorithm\": \"%s\", \"protocol\": \"%s\", \"channels\": %u, \"slots\": %u, "
           "\"loops\": %llu, \"predicted_us\": %.3f, \"time_us\": %.3f, \"path\": {\"steps\": %llu",
           gp_algorithm_name(p->plan.algorithm), gp_protocol_name(p->plan.protocol),
           p->plan.geom.channels, p->n_slots, (unsigned long long) p->plan.geom.loops,
           (double) p->plan.predicted_ns / 1000, r->total_us,
           (unsigned long long) r->path_steps);
    for (uint32_t i = 0; i < GP_SIM_WHAT_COUNT; i++) {
        printf(", \"%s_us\": %.3f", gp_sim_what_name(i), r->path_us[i]);
    }
    printf("}, \"loads\": {\"intra_bytes\": %.0f, \"net_bytes\": %.0f, \"busiest\": \"%s\", "
           "\"busiest_rank\": %u, \"busiest_bytes\": %.0f, \"busiest_us\": %.3f}, "
           "\"simulated\": {\"ranks\": %u, \"channels\": %u, \"loops\": %llu, \"cut_ranks\": %u, "
           "\"work\": %llu}}", r->loads.intra_bytes, r->loads.net_bytes,
           r->loads.busiest_is_net ? "nic" : "intra", r->loads.busiest_rank,
           r->loads.busiest_bytes, r->loads.busiest_us, r->ranks, r->channels,
           (unsigned long long) r->loops, r->cut_ranks, (unsigned long long) r->work);
}

static void print_json_head(const sim_args_t *a)
{
    printf("{\"ranks\": %u, \"nodes\": %u, \"alpha_us\": [%g, %g], \"bytes_per_us\": [%g, %g], "
           "\"nics_per_node\": %u, \"results\": [", a->ranks, a->nodes, a->sim.intra_alpha_us,
           a->sim.net_alpha_us, a->sim.intra_bytes_per_us, a->sim.net_bytes_per_us,
           a->sim.nics_per_node);
}

static void print_how(const sim_args_t *a, const sim_point_t *p)
{
    const gp_sim_result_t *r = &p->result;

    printf("  simulated: %llu steps and sends;", (unsigned long long) r->work);
    if (r->ranks < a->ranks && r->ranks != r->cut_ranks) {
        printf(" %u rank%s stand%s for all;", r->ranks, 1 == r->ranks ? "" : "s",
               1 == r->ranks ? "s" : "");
    } else {
        printf(" every rank;");
    }
    if (0 != r->cut_ranks) {
        printf(" a %s of %u, extrapolated;", gp_algorithm_name(p->plan.algorithm), r->cut_ranks);
    }
    if (r->loops < p->plan.geom.loops) {
        printf(" %llu loops, extrapolated;", (unsigned long long) r->loops);
    }
    if (r->channels < p->plan.geom.channels) {
        printf(" channels taken together as %u\n", r->channels);
    } else {
        printf(" every channel\n");
    }
}

static void print_path(const gp_sim_result_t *r)
{
    printf("  critical path: %llu steps\n", (unsigned long long) r->path_steps);
    for (uint32_t i = 0; i < GP_SIM_WHAT_COUNT; i++) {
        printf("    %-6s %12.1f us, %llu steps waited for it last\n", gp_sim_what_name(i),
               r->path_us[i], (unsigned long long) r->path_count[i]);
    }
    printf("    its end:\n    %8s %8s %7s %6s %8s %-7s %14s %10s\n", "rank", "channel", "stream",
           "loop", "step", "after", "ready at us", "takes us");
    for (uint32_t i = r->path_kept > 8 ? r->path_kept - 8 : 0; i < r->path_kept; i++) {
        const gp_sim_path_step_t *s = &r->path[i];

        printf("    %8u %8u %7u %6llu %8u %-7s %14.3f %10.3f\n", s->rank, s->channel, s->stream,
               (unsigned long long) s->loop, s->step, gp_sim_what_name(s->what), s->begin_us,
               s->us);
    }
}

static void print_point(const sim_args_t *a, const sim_point_t *p)
{
    const gp_sim_result_t *r = &p->result;
    const gp_geom_t *g = &p->plan.geom;
    char text[24];

    printf("%u ranks on %u node%s, %s bytes: %s/%s, %u channels, %u slots, %llu loops of %u chunks "
           "of %llu bytes\n", a->ranks, a->nodes, 1 == a->nodes ? "" : "s",
           sim_size_text(a->bytes, text), gp_algorithm_name(p->plan.algorithm),
           gp_protocol_name(p->plan.protocol), g->channels, p->n_slots,
           (unsigned long long) g->loops, g->n_chunks,
           (unsigned long long) g->chunk_elems * g->elem_bytes);
    printf("  time: %.1f us, without launch and completion\n", r->total_us);
    print_how(a, p);
    print_path(r);
    printf("  links: %.4g bytes within nodes, %.4g over the network\n", r->loads.intra_bytes,
           r->loads.net_bytes);
    printf("    busiest: %s of rank %u, %.4g bytes, in use %.1f us (%.0f %% of the time)\n",
           r->loads.busiest_is_net ? "the NIC" : a->sim.intra_port ? "the port" : "a link",
           r->loads.busiest_rank, r->loads.busiest_bytes, r->loads.busiest_us,
           r->total_us > 0 ? 100 * r->loads.busiest_us / r->total_us : 0);
}

static int show_one(const sim_args_t *a, const gp_layout_t *layout)
{
    static sim_point_t p;

    if (GP_OK == simulate(a, layout, a->bytes, a->params.algorithm, &p) && !a->json) {
        print_point(a, &p);
    } else if (a->json) {
        print_json_head(a);
        print_json_point(&p, a->bytes);
        printf("]}\n");
    } else {
        printf("declined reason=\"%s\"\n", p.why);
    }
    return GP_OK != p.status;
}

static int show_table(const sim_args_t *a, const gp_layout_t *layout)
{
    sim_table_t t = {a->ranks, a->nodes, 0, {0}, NULL};
    int status = 0, any = 0;

    t.points = calloc((size_t) SIM_MOST_SIZES * GP_ALGO_CUSTOM, sizeof(*t.points));
    if (NULL == t.points) {
        fprintf(stderr, "gpuproto_info: out of memory\n");
        return 1;
    }
    if (a->json) {
        print_json_head(a);
    } else {
        printf("%u ranks on %u node%s, simulated time in us, without launch and completion\n",
               a->ranks, a->nodes, 1 == a->nodes ? "" : "s");
        printf("%10s %14s %-7s %14s %-7s %14s %-7s %s\n", "bytes", "ring", "", "tree", "", "flat",
               "", "fastest");
    }
    for (uint64_t bytes = TABLE_FIRST_BYTES; bytes <= TABLE_LAST_BYTES; bytes *= TABLE_FACTOR) {
        uint32_t i = t.n_sizes++;

        t.bytes[i] = bytes;
        for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
            sim_point_t *p = &t.points[(size_t) i * GP_ALGO_CUSTOM + algo];

            if (GP_AUTO != a->params.algorithm && (uint32_t) a->params.algorithm != algo) {
                decline(p, GP_DECLINED, "another algorithm was asked for");
            } else {
                any |= GP_OK == simulate(a, layout, bytes, (int32_t) algo, p);
            }
            if (a->json) {
                printf("%s", 0 == i && 0 == algo ? "\n" : ",\n");
                print_json_point(p, bytes);
            }
        }
        if (!a->json) {
            sim_print_row(&t, i);
        }
    }
    if (a->json) {
        printf("\n], \"crossovers\": [");
        sim_print_crossovers(&t, 1);
        printf("]}\n");
    } else {
        sim_print_reasons(&t);
        sim_print_crossovers(&t, 0);
    }
    if (NULL != a->plot) {
        status = sim_plot(&t, a->plot);
    }
    free(t.points);
    return 0 != status || !any;
}

int info_simulate(int argc, char **argv)
{
    gp_layout_t layout;
    uint32_t *numbers;
    sim_args_t a;
    int status;

    parse(argc, argv, &a);
    /* Ranks node by node. */
    numbers = malloc(((size_t) a.ranks + a.nodes + 1) * sizeof(*numbers));
    if (NULL == numbers) {
        fprintf(stderr, "gpuproto_info: out of memory\n");
        return 1;
    }
    for (uint32_t i = 0; i < a.ranks; i++) {
        numbers[i] = i;
    }
    for (uint32_t k = 0; k <= a.nodes; k++) {
        numbers[a.ranks + k] = k * a.sim.ranks_per_node;
    }
    layout = (gp_layout_t) {a.nodes, numbers, numbers + a.ranks};
    status = 0 != a.bytes ? show_one(&a, a.nodes > 1 ? &layout : NULL)
                          : show_table(&a, a.nodes > 1 ? &layout : NULL);
    free(numbers);
    return status;
}
