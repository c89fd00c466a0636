/*
 * gpuproto_info_plan.c - why a plan is what it is: predictions, what was excluded, arithmetic, pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/gpuproto_info.h"
#include "planner/gp_cost.h"

#define MOST_DRAWN_RANKS 128u
#define MOST_LISTED_RANKS 64u

static double us(uint64_t ns)
{
    return (double) ns / 1000;
}

/* Ranks node after node; the planner's order where nothing else is known. */
typedef struct layout {
    gp_layout_t layout;
    uint32_t *numbers;
} layout_t;

static int make_layout(const gp_comm_desc_t *comm, layout_t *l)
{
    uint32_t n = comm->n_ranks, nodes = comm->n_nodes < n ? comm->n_nodes : n;

    l->numbers = malloc(((size_t) n + nodes + 1) * sizeof(*l->numbers));
    if (NULL == l->numbers) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        l->numbers[i] = i;
    }
    for (uint32_t k = 0; k <= nodes; k++) {
        l->numbers[n + k] = (uint32_t) ((uint64_t) n * k / nodes);
    }
    l->layout.n_nodes = nodes;
    l->layout.order = l->numbers;
    l->layout.first = l->numbers + n;
    return 1;
}

static void explain_choices(const gp_comm_desc_t *comm, const gp_params_t *params, uint64_t bytes)
{
    gp_choice_t choices[GP_CHOICES];

    gp_choices(comm, params, bytes, choices);
    printf("\nPredictions, microseconds (constants: %s)\n", gp_cost_model_name(comm));
    printf("  %-6s %-7s %10s = %8s + %9s and %10s  %5s %9s\n", "", "", "time", "base", "latency",
           "transfer", "hops", "channels");
    for (uint32_t i = 0; i < GP_CHOICES && NULL == choices[i].excluded; i++) {
        const gp_cost_t *c = &choices[i].cost;

        printf("  %-6s %-7s %10.1f = %8.1f + %9.1f and %10.1f  %5u %9u%s\n",
               gp_algorithm_name(choices[i].algorithm), gp_protocol_name(choices[i].protocol),
               us(c->total_ns), us(c->base_ns), us(c->latency_ns), us(c->transfer_ns), c->hops,
               c->channels, 0 == i ? "  <- fastest" : "");
    }
    printf("  (of latency and transfer the larger counts, and half of the smaller; tree: all)\n");
    for (uint32_t i = 0; i < GP_CHOICES; i++) {
        if (NULL != choices[i].excluded) {
            printf("  %-6s %-7s excluded: %s\n", gp_algorithm_name(choices[i].algorithm),
                   gp_protocol_name(choices[i].protocol), choices[i].excluded);
        }
    }
}

static void explain_geometry(const gp_comm_desc_t *comm, const gp_params_t *params,
                             const gp_plan_t *plan)
{
    const gp_geom_t *g = &plan->geom;
    uint64_t chunk_bytes = g->chunk_elems * g->elem_bytes;
    const char *reason;
    gp_conn_geom_t c;

    if (GP_OK != gp_plan_conn_geom(comm, params, plan->algorithm, plan->protocol, &c, &reason)) {
        return;
    }
    printf("\nConnections of %s/%s, made at the first call that needs them\n",
           gp_algorithm_name(plan->algorithm), gp_protocol_name(plan->protocol));
    printf("  %u channels, %u slots of %llu bytes on the wire, %llu of data; %u threads a block\n",
           c.channels, c.n_slots, (unsigned long long) c.slot_bytes,
           (unsigned long long) c.data_bytes, c.threads);
    printf("\nThe call\n");
    printf("  %llu elements of %u bytes over %u channels: %llu elements each\n",
           (unsigned long long) g->count, g->elem_bytes, g->channels,
           (unsigned long long) g->channel_elems);
    printf("  %llu loops of %u chunks of %llu elements (%llu bytes; the last loop: %llu "
           "elements)\n",
           (unsigned long long) g->loops, g->n_chunks, (unsigned long long) g->chunk_elems,
           (unsigned long long) chunk_bytes,
           (unsigned long long) g->last_chunk_elems);
}

/* Parent of a rank on a channel of a tree, from its program; the rank itself at the root. */
static uint32_t parent_of(const gp_program_t *p)
{
    const gp_step_t *up = &p->steps[p->streams[0].first];

    return 2 == p->n_streams ? p->send[p->refs[up->send_first].conn].peer : p->rank;
}

static void list_tree(const uint32_t *parents, uint32_t n, uint32_t rank, uint32_t depth)
{
    printf("    %*s%u\n", (int) (2 * depth), "", rank);
    for (uint32_t r = 0; r < n; r++) {
        if (parents[r] == rank && r != rank) {
            list_tree(parents, n, r, depth + 1);
        }
    }
}

static void explain_programs(const gp_comm_desc_t *comm, const gp_plan_t *plan)
{
    gp_shape_t shape = {plan->algorithm, comm->n_ranks, 2, 1, NULL};
    uint32_t parents[MOST_LISTED_RANKS] = {0};
    layout_t l;

    if (GP_ALGO_FLAT == plan->algorithm || comm->n_ranks < 2
        || comm->n_ranks > MOST_LISTED_RANKS || !make_layout(comm, &l)) {
        return;
    }
    shape.layout = comm->n_nodes > 1 ? &l.layout : NULL;
    printf("\nPrograms\n");
    for (uint32_t channel = 0; channel < 2; channel++) {
        uint32_t root = 0, next = 0;

        printf("  %s of %s channels:%s", GP_ALGO_RING == plan->algorithm ? "ring" : "tree",
               0 == channel ? "even" : "odd", GP_ALGO_RING == plan->algorithm ? "" : "\n");
        for (uint32_t i = 0; i < comm->n_ranks; i++) {
            uint32_t rank = GP_ALGO_RING == plan->algorithm ? next : i;
            gp_program_t *p = NULL;

            if (GP_OK != gp_program_emit_shape(&shape, rank, channel, &p)) {
                break;
            }
            if (GP_ALGO_RING == plan->algorithm) {
                printf(" %u ->", rank);
                next = p->send[0].peer;
            } else {
                parents[rank] = parent_of(p);
                root = parents[rank] == rank ? rank : root;
            }
            gp_program_free(p);
        }
        if (GP_ALGO_RING == plan->algorithm) {
            printf(" %u\n", next);
        } else {
            list_tree(parents, comm->n_ranks, root, 0);
        }
    }
    free(l.numbers);
}

void info_explain(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_plan_t *plan)
{
    printf("\nCommunicator: %u ranks on %u node%s, %s executor, farthest path %s", comm->n_ranks,
           comm->n_nodes, 1 == comm->n_nodes ? "" : "s", gp_executor_name(comm->executor),
           gp_path_name(comm->worst_path));
    if (GP_EXEC_CUDA == comm->executor) {
        printf(", %u rank%s a GPU of %u multiprocessors, capability %u.%u", comm->ranks_per_gpu,
               1 == comm->ranks_per_gpu ? "" : "s", comm->sm_count, comm->min_capability / 10,
               comm->min_capability % 10);
    }
    printf("\n");
    explain_choices(comm, params, plan->geom.count * plan->geom.elem_bytes);
    explain_geometry(comm, params, plan);
    explain_programs(comm, plan);
}

void info_plan_json(const gp_comm_desc_t *comm, const gp_params_t *params, const gp_plan_t *plan)
{
    uint64_t bytes = plan->geom.count * plan->geom.elem_bytes;
    gp_choice_t choices[GP_CHOICES];

    printf("{\"bytes\": %llu, \"algorithm\": \"%s\", \"protocol\": \"%s\", \"executor\": \"%s\", "
           "\"channels\": %u, \"threads\": %u, \"chunk_elems\": %llu, \"loops\": %llu, "
           "\"predicted_us\": %.3f, \"reason\": \"%s\", \"choices\": [",
           (unsigned long long) bytes, gp_algorithm_name(plan->algorithm),
           gp_protocol_name(plan->protocol), gp_executor_name(plan->executor), plan->geom.channels,
           plan->threads, (unsigned long long) plan->geom.chunk_elems,
           (unsigned long long) plan->geom.loops, us(plan->predicted_ns), plan->reason);
    gp_choices(comm, params, bytes, choices);
    for (uint32_t i = 0; i < GP_CHOICES; i++) {
        printf("%s{\"algorithm\": \"%s\", \"protocol\": \"%s\", ", 0 == i ? "" : ", ",
               gp_algorithm_name(choices[i].algorithm), gp_protocol_name(choices[i].protocol));
        if (NULL == choices[i].excluded) {
            printf("\"predicted_us\": %.3f}", us(choices[i].cost.total_ns));
        } else {
            printf("\"excluded\": \"%s\"}", choices[i].excluded);
        }
    }
    printf("]}\n");
}

/* One panel: ranks on a circle, node after node, and an arrow for every connection of a channel. */
static gp_status_t draw_panel(FILE *f, const gp_shape_t *shape, const gp_layout_t *layout,
                              uint32_t channel, double left, const char *title)
{
    static const char *const colours[] = {"#1b6ca8", "#c0392b", "#1e8449", "#8e44ad"};
    double pi = acos(-1), radius = 190;
    uint32_t n = shape->n_ranks;

    fprintf(f, "<g transform=\"translate(%.0f,250)\"><text y=\"-222\" class=\"t\">%s</text>\n",
            left, title);
    for (uint32_t r = 0; r < n; r++) {
        gp_program_t *p = NULL;
        gp_status_t status = gp_program_emit_shape(shape, r, channel, &p);
        double a = 2 * pi * r / n - pi / 2;

        if (GP_OK != status) {
            return status;
        }
        for (uint32_t i = 0; i < p->n_send; i++) {
            double b = 2 * pi * p->send[i].peer / n - pi / 2;
            double x1 = radius * cos(a), y1 = radius * sin(a), x2 = radius * cos(b),
                   y2 = radius * sin(b), length = hypot(x2 - x1, y2 - y1) + 1e-9;

            /* A tree's two directions are one line; short of the circles that mark the ranks. */
            if (GP_ALGO_TREE == shape->algorithm && parent_of(p) != p->send[i].peer) {
                continue;
            }
            fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"e\"/>\n",
                    x1 + 11 * (x2 - x1) / length, y1 + 11 * (y2 - y1) / length,
                    x2 - 15 * (x2 - x1) / length, y2 - 15 * (y2 - y1) / length);
        }
        gp_program_free(p);
    }
    for (uint32_t k = 0; k < layout->n_nodes; k++) {
        for (uint32_t r = layout->first[k]; r < layout->first[k + 1]; r++) {
            double a = 2 * pi * r / n - pi / 2;

            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"10\" fill=\"%s\"/>"
                       "<text x=\"%.1f\" y=\"%.1f\" class=\"r\">%u</text>\n",
                    radius * cos(a), radius * sin(a), colours[k % 4], radius * cos(a),
                    radius * sin(a) + 3.5, r);
        }
    }
    fprintf(f, "</g>\n");
    return GP_OK;
}

int info_graph(const gp_comm_desc_t *comm, const char *path)
{
    static const struct {
        uint32_t algorithm, channel;
        const char *title;
    } panels[] = {
        {GP_ALGO_RING, 0, "ring, channel 0"},
        {GP_ALGO_TREE, 0, "tree, even channels (to the parent)"},
        {GP_ALGO_TREE, 1, "tree, odd channels (to the parent)"},
    };
    gp_status_t status = GP_OK;
    layout_t l;
    FILE *f;

    if (comm->n_ranks < 2 || comm->n_ranks > MOST_DRAWN_RANKS) {
        fprintf(stderr, "gpuproto_info: --graph draws 2 to %u ranks\n", MOST_DRAWN_RANKS);
        return 1;
    }
    if (!make_layout(comm, &l)) {
        fprintf(stderr, "gpuproto_info: no memory\n");
        return 1;
    }
    f = fopen(path, "w");
    if (NULL == f) {
        perror(path);
        free(l.numbers);
        return 1;
    }
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1380\" height=\"480\">\n"
               "<style>.t{font:15px sans-serif;text-anchor:middle}.r{font:10px sans-serif;"
               "text-anchor:middle;fill:#fff}.e{stroke:#555;stroke-width:1.3;"
               "marker-end:url(#a)}</style>\n"
               "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
               "markerHeight=\"7\" orient=\"auto\">"
               "<path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n"
               "<rect width=\"1380\" height=\"480\" fill=\"#fff\"/>\n");
    for (uint32_t i = 0; i < 3 && GP_OK == status; i++) {
        gp_shape_t shape = {panels[i].algorithm, comm->n_ranks, 2, 1,
                            comm->n_nodes > 1 ? &l.layout : NULL};

        status = draw_panel(f, &shape, &l.layout, panels[i].channel, 230.0 + 460.0 * i,
                            panels[i].title);
    }
    fprintf(f, "</svg>\n");
    free(l.numbers);
    if (0 != fclose(f) || GP_OK != status) {
        fprintf(stderr, "gpuproto_info: %s could not be written\n", path);
        return 1;
    }
    return 0;
}
