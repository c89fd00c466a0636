/*
 * gpuproto_info_sim_plot.c - the picture of "gpuproto_info simulate": an SVG line plot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "contrib/gpuproto_info_sim.h"

/* Where the axes are, in pixels. */
#define WIDTH 820
#define HEIGHT 540
#define LEFT 90
#define RIGHT 690
#define TOP 50
#define BOTTOM 470

/* Colours that differ in brightness too; dashes as well, for print. */
static const char *const colours[GP_ALGO_CUSTOM] = {"#0060a8", "#d55e00", "#009e73"};
static const char *const dashes[GP_ALGO_CUSTOM] = {"none", "8 4", "2 3"};

/* What the axes show: log2 of bytes, log10 of microseconds. */
typedef struct axes {
    double x_first, x_last;
    double y_first, y_last;
} axes_t;

static double x_of(const axes_t *a, uint64_t bytes)
{
    return LEFT + (log2((double) bytes) - a->x_first) / (a->x_last - a->x_first) * (RIGHT - LEFT);
}

static double y_of(const axes_t *a, double us)
{
    return BOTTOM - (log10(us) - a->y_first) / (a->y_last - a->y_first) * (BOTTOM - TOP);
}

/* Whole decades of time around all points. False when there is nothing to draw. */
static int find_axes(const sim_table_t *t, axes_t *a)
{
    double least = INFINITY, most = 0;

    for (uint32_t i = 0; i < t->n_sizes * GP_ALGO_CUSTOM; i++) {
        const sim_point_t *p = &t->points[i];

        if (GP_OK == p->status && p->result.total_us > 0) {
            least = fmin(least, p->result.total_us);
            most = fmax(most, p->result.total_us);
        }
    }
    if (0 == most) {
        return 0;
    }
    a->x_first = log2((double) t->bytes[0]);
    a->x_last = log2((double) t->bytes[t->n_sizes - 1]);
    a->x_last += a->x_last == a->x_first;
    a->y_first = floor(log10(least));
    a->y_last = ceil(log10(most));
    a->y_last += a->y_last == a->y_first;
    return 1;
}

static void draw_axes(FILE *f, const sim_table_t *t, const axes_t *a)
{
    char text[24];

    for (uint32_t i = 0; i < t->n_sizes; i += t->n_sizes > 8 ? 2 : 1) {
        double x = x_of(a, t->bytes[i]);

        fprintf(f, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>\n", x,
                TOP, x, BOTTOM);
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, BOTTOM + 20,
                sim_size_text(t->bytes[i], text));
    }
    for (double e = a->y_first; e <= a->y_last; e++) {
        double y = y_of(a, pow(10, e));

        fprintf(f, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n", LEFT,
                y, RIGHT, y);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>\n", LEFT - 8, y + 4,
                e < 0 ? (int) -e : 0, pow(10, e));
    }
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#444444\"/>\n", LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">message size (bytes)</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 48);
    fprintf(f, "<text transform=\"translate(24 %d) rotate(-90)\" text-anchor=\"middle\">"
            "simulated time (\xc2\xb5s)</text>\n", (TOP + BOTTOM) / 2);
    fprintf(f, "<text x=\"%d\" y=\"30\" text-anchor=\"middle\" font-size=\"16\">allreduce, "
            "%u ranks on %u node%s</text>\n", (LEFT + RIGHT) / 2, t->n_ranks, t->n_nodes,
            1 == t->n_nodes ? "" : "s");
}

static void draw_line(FILE *f, const sim_table_t *t, const axes_t *a, uint32_t algo)
{
    uint32_t drawn = 0;
    int legend_y = TOP + 20 + 24 * (int) algo;

    for (uint32_t i = 0; i < t->n_sizes; i++) {
        const sim_point_t *p = sim_point_of(t, i, algo);

        if (GP_OK != p->status || p->result.total_us <= 0) {
            continue;
        }
        if (0 == drawn++) {
            fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" "
                    "stroke-dasharray=\"%s\" points=\"", colours[algo], dashes[algo]);
        }
        fprintf(f, "%.1f,%.1f ", x_of(a, t->bytes[i]), y_of(a, p->result.total_us));
    }
    if (0 == drawn) {
        return;
    }
    fprintf(f, "\"/>\n");
    for (uint32_t i = 0; i < t->n_sizes; i++) {
        const sim_point_t *p = sim_point_of(t, i, algo);

        if (GP_OK == p->status && p->result.total_us > 0) {
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    x_of(a, t->bytes[i]), y_of(a, p->result.total_us), colours[algo]);
        }
    }
    fprintf(f, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"2.5\" "
            "stroke-dasharray=\"%s\"/>\n", RIGHT + 16, legend_y, RIGHT + 52, legend_y,
            colours[algo], dashes[algo]);
    fprintf(f, "<text x=\"%d\" y=\"%d\">%s</text>\n", RIGHT + 60, legend_y + 4,
            gp_algorithm_name(algo));
}

int sim_plot(const sim_table_t *table, const char *path)
{
    axes_t axes;
    FILE *f;
    int failed;

    if (!find_axes(table, &axes)) {
        fprintf(stderr, "gpuproto_info: nothing to plot\n");
        return 1;
    }
    f = fopen(path, "w");
    if (NULL == f) {
        fprintf(stderr, "gpuproto_info: %s: %s\n", path, strerror(errno));
        return 1;
    }
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", WIDTH, HEIGHT, WIDTH,
            HEIGHT);
    draw_axes(f, table, &axes);
    for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
        draw_line(f, table, &axes, algo);
    }
    fprintf(f, "</svg>\n");
    failed = ferror(f);
    failed |= fclose(f);
    if (failed) {
        fprintf(stderr, "gpuproto_info: %s: could not be written\n", path);
    }
    return 0 != failed;
}
