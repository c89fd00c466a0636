/*
 * gpuproto_perf_report.c - the table on the terminal, and the same as CSV and JSON. Rank 0 only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf.h"

#include <inttypes.h>
#include <string.h>

#include "config.h"

static struct {
    const perf_args_t *args;
    int n_ranks;
    FILE *csv;
    FILE *json;
    uint64_t rows;
    double busbw_sum;
    uint64_t busbw_count;
    perf_ran_t last;      /* of the brief table: what ran in the rows printed so far */
    char summary[1024];
} rep;

static FILE *open_file(const char *path)
{
    FILE *f = fopen(path, "w");

    if (NULL == f) {
        fprintf(stderr, "gpuproto_perf: cannot write %s\n", path);
    }
    return f;
}

/* Width 8 whatever the magnitude: enough digits, no more. */
static void number(char *text, size_t text_bytes, double v)
{
    snprintf(text, text_bytes, v < 100.0 ? "%.2f" : v < 10000.0 ? "%.1f" : "%.0f", v);
}

static void quoted(FILE *f, const char *text)
{
    fputc('"', f);
    for (; '\0' != *text && '\n' != *text; text++) {
        if ('"' == *text || '\\' == *text) {
            fputc('\\', f);
        }
        if ((unsigned char) *text >= 32) {
            fputc(*text, f);
        }
    }
    fputc('"', f);
}

static void print_head(const perf_args_t *a, const perf_job_t *job)
{
    printf("# gpuproto_perf %s: MPI_Allreduce, %d rank%s on %d node%s, %s buffers (%s)\n",
           PACKAGE_VERSION, job->n_ranks, 1 == job->n_ranks ? "" : "s", job->n_nodes,
           1 == job->n_nodes ? "" : "s", perf_mem_kind_name(perf_mem_kind()), perf_mem_device());
    printf("# %s; coll/gpuproto is %s\n", job->library,
           job->active ? "loaded" : "NOT loaded (the figures are another component's)");
    printf("# %u warm-up and %u timed calls per place, time: median of the slowest rank; %s\n#\n",
           a->warmup, a->iters,
           0 == a->check ? "results are not checked" : "results are checked on every rank");
    if (a->brief) {
        printf("# %10s %12s %10s %10s %10s %7s\n", "size", "count", "time", "algbw", "busbw",
               "#wrong");
        printf("# %10s %12s %10s %10s %10s %7s\n", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)",
               "");
        return;
    }
    printf("# %73s %34s\n", "out-of-place", "in-place");
    printf("# %10s %11s %8s %6s %5s", "size", "count", "type", "redop", "root");
    printf(" %9s %8s %8s %6s %9s %8s %8s %6s", "time", "algbw", "busbw", "#wrong", "time", "algbw",
           "busbw", "#wrong");
    printf(" %9s %9s %9s %8s %4s %8s\n", "p95-out", "p95-in", "algorithm", "protocol", "chan",
           "executor");
    printf("# %10s %11s %8s %6s %5s", "(B)", "(elements)", "", "", "");
    printf(" %9s %8s %8s %6s %9s %8s %8s %6s", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
           "(GB/s)", "");
    printf(" %9s %9s\n", "(us)", "(us)");
}

int perf_report_open(const perf_args_t *a, const perf_job_t *job)
{
    memset(&rep, 0, sizeof(rep));
    rep.args = a;
    rep.n_ranks = job->n_ranks;
    if (NULL != a->csv_path) {
        rep.csv = open_file(a->csv_path);
        if (NULL == rep.csv) {
            return -1;
        }
        fprintf(rep.csv, "bytes,count,type,op,place,iters,median_us,p95_us,min_us,algbw_gbs,"
                         "busbw_gbs,wrong,algorithm,protocol,channels,executor,memory,ranks\n");
    }
    if (NULL != a->json_path) {
        rep.json = open_file(a->json_path);
        if (NULL == rep.json) {
            return -1;
        }
        fprintf(rep.json, "{\"version\": \"%s\", \"ranks\": %d, \"nodes\": %d, \"active\": %s",
                PACKAGE_VERSION, job->n_ranks, job->n_nodes, job->active ? "true" : "false");
        fprintf(rep.json, ", \"memory\": \"%s\", \"device\": ",
                perf_mem_kind_name(perf_mem_kind()));
        quoted(rep.json, perf_mem_device());
        fprintf(rep.json, ", \"mpi\": ");
        quoted(rep.json, job->library);
        fprintf(rep.json, ", \"warmup\": %u, \"seed\": %" PRIu64 ", \"rows\": [", a->warmup,
                a->seed);
    }
    print_head(a, job);
    fflush(stdout);
    return 0;
}

static void csv_place(const perf_row_t *row, const perf_result_t *r, const char *place)
{
    fprintf(rep.csv, "%" PRIu64 ",%" PRIu64 ",%s,%s,%s,%u,%.3f,%.3f,%.3f,%.4f,%.4f,", row->bytes,
            row->count, row->type, row->op, place, r->iters, r->median_us, r->p95_us, r->min_us,
            r->algbw, r->busbw);
    if (row->checked) {
        fprintf(rep.csv, "%" PRIu64, r->wrong);
    }
    fprintf(rep.csv, ",%s,%s,%d,%s,%s,%d\n", r->ran.algorithm, r->ran.protocol, r->ran.channels,
            r->ran.executor, perf_mem_kind_name(perf_mem_kind()), rep.n_ranks);
}

static void json_place(const perf_row_t *row, const perf_result_t *r, const char *place)
{
    fprintf(rep.json, ", \"%s\": {\"iters\": %u, \"median_us\": %.3f, \"p95_us\": %.3f", place,
            r->iters, r->median_us, r->p95_us);
    fprintf(rep.json, ", \"min_us\": %.3f, \"algbw_gbs\": %.4f, \"busbw_gbs\": %.4f", r->min_us,
            r->algbw, r->busbw);
    if (row->checked) {
        fprintf(rep.json, ", \"wrong\": %" PRIu64, r->wrong);
    }
    fprintf(rep.json, ", \"algorithm\": \"%s\", \"protocol\": \"%s\", \"channels\": %d",
            r->ran.algorithm, r->ran.protocol, r->ran.channels);
    fprintf(rep.json, ", \"executor\": \"%s\"}", r->ran.executor);
}

/* The brief table has no room for it: one line under the table, where what ran changed. */
static void note_change(const perf_row_t *row)
{
    const perf_ran_t *ran = &row->out_of_place.ran;
    size_t used = strlen(rep.summary);

    if (0 != rep.rows && 0 == memcmp(ran, &rep.last, sizeof(*ran))) {
        return;
    }
    rep.last = *ran;
    if (0 == ran->channels) {
        snprintf(rep.summary + used, sizeof(rep.summary) - used,
                 "# from %" PRIu64 " B: not run by gpuproto (%s)\n", row->bytes, ran->executor);
        return;
    }
    snprintf(rep.summary + used, sizeof(rep.summary) - used,
             "# from %" PRIu64 " B: %s %s, %d channel%s, %s\n", row->bytes, ran->algorithm,
             ran->protocol, ran->channels, 1 == ran->channels ? "" : "s", ran->executor);
}

static void print_result(const perf_row_t *row, const perf_result_t *r)
{
    char us[32], wrong[32];

    number(us, sizeof(us), r->median_us);
    snprintf(wrong, sizeof(wrong), row->checked ? "%" PRIu64 : "N/A", r->wrong);
    printf(" %9s %8.2f %8.2f %6s", us, r->algbw, r->busbw, wrong);
}

/* "ring", or "ring/flat" when the two places ran different things. */
static const char *both(char *text, size_t text_bytes, const char *a, const char *b)
{
    if (0 == strcmp(a, b)) {
        return a;
    }
    snprintf(text, text_bytes, "%s/%s", a, b);
    return text;
}

static void print_row(const perf_row_t *row)
{
    const perf_result_t *out = &row->out_of_place;
    const perf_result_t *in = &row->in_place;
    char us[32], us_in[32], wrong[32], t0[40], t1[40], t2[40];

    if (rep.args->brief) {
        number(us, sizeof(us), out->median_us);
        snprintf(wrong, sizeof(wrong), row->checked ? "%" PRIu64 : "N/A", out->wrong + in->wrong);
        printf("  %10" PRIu64 " %12" PRIu64 " %10s %10.3f %10.3f %7s\n", row->bytes, row->count, us,
               out->algbw, out->busbw, wrong);
        return;
    }
    printf("  %10" PRIu64 " %11" PRIu64 " %8s %6s %5d", row->bytes, row->count, row->type, row->op,
           -1);
    print_result(row, out);
    print_result(row, in);
    number(us, sizeof(us), out->p95_us);
    number(us_in, sizeof(us_in), in->p95_us);
    printf(" %9s %9s %9s %8s", us, us_in,
           both(t0, sizeof(t0), out->ran.algorithm, in->ran.algorithm),
           both(t1, sizeof(t1), out->ran.protocol, in->ran.protocol));
    if (0 == out->ran.channels) {
        printf(" %4s", "-");
    } else {
        printf(" %4d", out->ran.channels);
    }
    printf(" %8s\n", both(t2, sizeof(t2), out->ran.executor, in->ran.executor));
}

void perf_report_row(const perf_row_t *row)
{
    note_change(row);
    print_row(row);
    fflush(stdout);
    if (NULL != rep.csv) {
        csv_place(row, &row->out_of_place, "out");
        csv_place(row, &row->in_place, "in");
        fflush(rep.csv);
    }
    if (NULL != rep.json) {
        fprintf(rep.json, "%s\n  {\"bytes\": %" PRIu64 ", \"count\": %" PRIu64, rep.rows ? "," : "",
                row->bytes, row->count);
        fprintf(rep.json, ", \"type\": \"%s\", \"op\": \"%s\"", row->type, row->op);
        json_place(row, &row->out_of_place, "out_of_place");
        json_place(row, &row->in_place, "in_place");
        fprintf(rep.json, "}");
    }
    rep.rows++;
    rep.busbw_sum += row->out_of_place.busbw + row->in_place.busbw;
    rep.busbw_count += 2;
}

static int close_file(FILE *f, const char *path)
{
    int bad = ferror(f);

    if (0 != fclose(f) || 0 != bad) {
        fprintf(stderr, "gpuproto_perf: writing %s failed\n", path);
        return -1;
    }
    return 0;
}

int perf_report_close(uint64_t wrong, uint64_t rows)
{
    int rc = 0;

    if (rep.args->brief) {
        printf("#\n# what ran, as the component recorded it:\n%s", rep.summary);
    }
    if (0 != rep.args->check) {
        printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, 0 == wrong ? "OK" : "FAILED");
    }
    if (0 != rep.busbw_count) {
        printf("# Avg bus bandwidth    : %.4f\n", rep.busbw_sum / (double) rep.busbw_count);
    }
    fflush(stdout);
    if (NULL != rep.csv) {
        rc |= close_file(rep.csv, rep.args->csv_path);
    }
    if (NULL != rep.json) {
        fprintf(rep.json, "],\n \"wrong\": %" PRIu64 ", \"n_rows\": %" PRIu64 "}\n", wrong, rows);
        rc |= close_file(rep.json, rep.args->json_path);
    }
    return rc;
}
