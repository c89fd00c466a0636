/*
 * gpuproto_perf.c - measures and checks MPI_Allreduce, with the options and the table that users of
 * nccl-tests know. An ordinary MPI program: which component serves it is mpirun's choice; what ran is
 * read back from the component through MPI_T, not assumed.
 *
 * Method: per size `warmup` untimed calls, then `iters` calls, each entered after a barrier and timed
 * on every rank. The time of a call is its slowest rank's; the table shows the median call and the 95th
 * percentile. Results are checked after the timing, in calls of their own, against integers computed
 * independently; so are the input of an out-of-place call and the 256 bytes around the output.
 *
 * The program itself communicates with MPI_Reduce and MPI_Bcast, so that it does not count its own
 * calls as the component's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include "contrib/gpuproto_perf_data.h"
#include "contrib/gpuproto_perf_mpit.h"

#define GUARD_BYTES 256
#define GUARD_VALUE 0xc3
#define POISON_VALUE 0xa5
#define MAX_MESSAGES 10 /* per rank: of a broken component one needs the first few */
#define STAGE_BYTES ((size_t) 8 << 20)

static perf_args_t args;
static perf_job_t job;
static int rank;

/* Two allocations: guard, offset, data of at most max_bytes, guard. */
static struct {
    char *send_base;
    char *recv_base;
    char *send;
    char *recv;
    char *stage;   /* STAGE_BYTES, fast to transfer from and to */
    char *expect;  /* STAGE_BYTES of ordinary memory */
} buf;

/* The row being run. */
typedef struct run {
    perf_data_t data;
    const perf_type_t *type;
    MPI_Op op;
    const char *op_name;
    uint64_t count;
    size_t bytes;
    int in_place;
} run_t;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(stderr, "gpuproto_perf: rank %d: ", rank);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

static void need(int rc)
{
    if (0 != rc) {
        die("%s", perf_mem_error());
    }
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec * 1e-3;
}

static MPI_Op mpi_op(gp_op_t op)
{
    switch (op) {
    case GP_OP_SUM: return MPI_SUM;
    case GP_OP_PROD: return MPI_PROD;
    case GP_OP_MIN: return MPI_MIN;
    case GP_OP_MAX: return MPI_MAX;
    case GP_OP_BAND: return MPI_BAND;
    case GP_OP_BOR: return MPI_BOR;
    case GP_OP_BXOR: return MPI_BXOR;
    case GP_OP_LAND: return MPI_LAND;
    case GP_OP_LOR: return MPI_LOR;
    default: return MPI_LXOR;
    }
}

static void allreduce(const run_t *r)
{
    MPI_Allreduce(r->in_place ? MPI_IN_PLACE : buf.send, buf.recv, (int) r->count, r->type->mpi,
                  r->op, MPI_COMM_WORLD);
}

/* The largest value of any rank, on all ranks. */
static double agree_max(double mine)
{
    double worst = mine;

    MPI_Reduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Bcast(&worst, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return worst;
}

/* One piece of a buffer that fits the staging area. */
static uint64_t piece(const run_t *r, uint64_t first)
{
    uint64_t n = STAGE_BYTES / gp_type_bytes(r->type->type);

    return r->count - first < n ? r->count - first : n;
}

static void fill_send(const run_t *r)
{
    size_t elem_bytes = gp_type_bytes(r->type->type);
    uint64_t first, n;

    for (first = 0; first < r->count; first += n) {
        n = piece(r, first);
        perf_data_fill(&r->data, (uint32_t) rank, first, n, buf.stage);
        need(perf_mem_put(buf.send + first * elem_bytes, buf.stage, n * elem_bytes));
    }
}

/* What the receive buffer holds before a call. */
static void prepare_recv(const run_t *r)
{
    if (r->in_place) {
        need(perf_mem_copy(buf.recv, buf.send, r->bytes));
    } else {
        need(perf_mem_set(buf.recv, POISON_VALUE, r->bytes));
    }
}

static void set_guards(const run_t *r)
{
    need(perf_mem_set(buf.recv - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES));
    need(perf_mem_set(buf.recv + r->bytes, GUARD_VALUE, GUARD_BYTES));
}

/* 1 when a byte next to the output changed. */
static uint64_t broken_guards(const run_t *r)
{
    int i;

    need(perf_mem_get(buf.stage, buf.recv - GUARD_BYTES, GUARD_BYTES));
    need(perf_mem_get(buf.stage + GUARD_BYTES, buf.recv + r->bytes, GUARD_BYTES));
    for (i = 0; i < 2 * GUARD_BYTES; i++) {
        if (GUARD_VALUE != (unsigned char) buf.stage[i]) {
            fprintf(stderr, "gpuproto_perf: rank %d: a byte %s the output was overwritten\n", rank,
                    i < GUARD_BYTES ? "before" : "after");
            return 1;
        }
    }
    return 0;
}

/* 1 when an out-of-place call changed its input. */
static uint64_t broken_input(const run_t *r)
{
    size_t elem_bytes = gp_type_bytes(r->type->type);
    uint64_t first, n;

    for (first = 0; first < r->count; first += n) {
        n = piece(r, first);
        perf_data_fill(&r->data, (uint32_t) rank, first, n, buf.expect);
        need(perf_mem_get(buf.stage, buf.send + first * elem_bytes, n * elem_bytes));
        if (0 != memcmp(buf.stage, buf.expect, n * elem_bytes)) {
            fprintf(stderr, "gpuproto_perf: rank %d: the call changed its input\n", rank);
            return 1;
        }
    }
    return 0;
}

static uint64_t wrong_elems(const run_t *r)
{
    size_t elem_bytes = gp_type_bytes(r->type->type);
    uint64_t first, n, wrong = 0, bad = UINT64_MAX;
    static int messages;

    for (first = 0; first < r->count; first += n) {
        uint64_t here_bad = UINT64_MAX;

        n = piece(r, first);
        need(perf_mem_get(buf.stage, buf.recv + first * elem_bytes, n * elem_bytes));
        wrong += perf_data_check(&r->data, first, n, buf.stage, &here_bad);
        bad = here_bad < bad ? here_bad : bad;
    }
    if (0 != wrong && messages++ < MAX_MESSAGES) {
        fprintf(stderr,
                "gpuproto_perf: rank %d of %d: %" PRIu64 " of %" PRIu64 " elements wrong, first at "
                "%" PRIu64 " (%s %s, %s, seed %" PRIu64 ")\n",
                rank, job.n_ranks, wrong, r->count, bad, r->type->name, r->op_name,
                r->in_place ? "in place" : "out of place", args.seed);
    }
    return wrong;
}

/* --inject-error: the check must notice one changed bit on one rank. */
static void spoil(const run_t *r)
{
    char *at = buf.recv + r->count / 2 * gp_type_bytes(r->type->type);

    if (rank == job.n_ranks - 1) {
        need(perf_mem_get(buf.stage, at, 1));
        buf.stage[0] = (char) (buf.stage[0] ^ 1);
        need(perf_mem_put(at, buf.stage, 1));
    }
}

/* Wrong elements of all ranks and checked calls; on rank 0. */
static uint64_t check_place(const run_t *r)
{
    unsigned long long mine = 0, all = 0;
    uint32_t k;

    for (k = 0; k < args.check; k++) {
        prepare_recv(r);
        set_guards(r);
        allreduce(r);
        if (args.inject) {
            spoil(r);
        }
        mine += wrong_elems(r);
        mine += broken_guards(r);
        mine += r->in_place ? 0 : broken_input(r);
    }
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Iterations that fit the time a row may take, the same on all ranks. */
static uint32_t fitting_iters(double call_us)
{
    double n;

    if (args.row_seconds <= 0.0) {
        return args.iters;
    }
    n = args.row_seconds * 1e6 / (agree_max(call_us) + 0.01);
    return n < 1.0 ? 1 : n < args.iters ? (uint32_t) n : args.iters;
}

/* What ran, from the difference of the component's counters over `calls` calls. */
static void record_ran(const perf_mpit_values_t *before, uint64_t calls, perf_ran_t *ran)
{
    perf_mpit_values_t after;
    int mine, all = 0;

    memset(ran, 0, sizeof(*ran));
    perf_mpit_read(&after);
    mine = job.active && after.calls - before->calls == calls;
    MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    snprintf(ran->algorithm, sizeof(ran->algorithm), "-");
    snprintf(ran->protocol, sizeof(ran->protocol), "-");
    if (all) {
        snprintf(ran->algorithm, sizeof(ran->algorithm), "%s",
                 perf_algorithm_name(after.algorithm));
        snprintf(ran->protocol, sizeof(ran->protocol), "%s",
                 perf_protocol_name(after.protocol));
        snprintf(ran->executor, sizeof(ran->executor), "%s",
                 perf_executor_name(after.executor));
        ran->channels = after.channels;
    } else {
        snprintf(ran->executor, sizeof(ran->executor), "%s",
                 !job.active ? "-"
                 : after.calls != before->calls ? "mixed"
                 : after.staged != before->staged ? "staged" : "declined");
    }
}

/* Time one place of a row. times: args.iters doubles of scratch, and as many for the slowest rank. */
static void time_place(const run_t *r, double *times, double *slowest, perf_result_t *result)
{
    perf_mpit_values_t before;
    double start, last_us = 0.0;
    uint32_t i, iters, done = 0;

    prepare_recv(r);
    if (r->in_place && GP_OP_PROD == r->data.op) {
        /* Repeated products drift into subnormals, which would be timed instead. */
        need(perf_mem_set(buf.recv, 0, r->bytes));
    }
    perf_mpit_read(&before);
    for (i = 0; i < args.warmup || (0 == i && args.row_seconds > 0.0); i++, done++) {
        start = now_us();
        allreduce(r);
        last_us = now_us() - start;
        if (args.row_seconds > 0.0 && i + 1 < args.warmup
            && agree_max(last_us) > args.row_seconds * 1e5) {
            done++;
            break;
        }
    }
    iters = fitting_iters(last_us);
    for (i = 0; i < iters; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = now_us();
        allreduce(r);
        times[i] = now_us() - start;
    }
    record_ran(&before, (uint64_t) done + iters, &result->ran);
    MPI_Reduce(times, slowest, (int) iters, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        qsort(slowest, iters, sizeof(*slowest), by_value);
        result->iters = iters;
        result->min_us = slowest[0];
        result->median_us = iters % 2 ? slowest[iters / 2]
                                      : 0.5 * (slowest[iters / 2 - 1] + slowest[iters / 2]);
        result->p95_us = slowest[(uint32_t) (((uint64_t) iters * 95 + 99) / 100) - 1];
        result->algbw = (double) r->bytes * 1e-3 / result->median_us;
        result->busbw = result->algbw * 2.0 * (job.n_ranks - 1) / job.n_ranks;
    }
}

/* One (type, op, size): both places. Returns the wrong elements, on rank 0. */
static uint64_t run_row(const perf_type_t *type, gp_op_t op, uint64_t count, double *times)
{
    perf_row_t row;
    run_t r;

    memset(&row, 0, sizeof(row));
    memset(&r, 0, sizeof(r));
    /* Overflow is our own component's promise (it wraps); elsewhere stay within the type. */
    perf_data_init(&r.data, type->type, op, (uint32_t) job.n_ranks, (uint32_t) job.active,
                   args.seed + count);
    r.type = type;
    r.op = mpi_op(op);
    r.op_name = perf_op_name(op);
    r.count = count;
    r.bytes = (size_t) count * gp_type_bytes(type->type);
    fill_send(&r);

    time_place(&r, times, times + args.iters, &row.out_of_place);
    row.out_of_place.wrong = check_place(&r);
    r.in_place = 1;
    time_place(&r, times, times + args.iters, &row.in_place);
    row.in_place.wrong = check_place(&r);

    row.bytes = r.bytes;
    row.count = count;
    row.type = type->name;
    row.op = r.op_name;
    row.checked = 0 != args.check;
    if (0 == rank) {
        perf_report_row(&row);
    }
    return row.out_of_place.wrong + row.in_place.wrong;
}

/* All sizes of one (type, op). */
static void run_sizes(const perf_type_t *type, gp_op_t op, double *times, uint64_t *wrong_p,
                      uint64_t *rows_p)
{
    uint32_t elem_bytes = gp_type_bytes(type->type);
    uint64_t bytes = args.min_bytes, previous = 0;

    while (bytes <= args.max_bytes) {
        uint64_t count = bytes / elem_bytes;

        count = 0 == count ? 1 : count;
        if (count != previous) {
            *wrong_p += run_row(type, op, count, times);
            (*rows_p)++;
        }
        previous = count;
        bytes = args.step_factor >= 2 ? bytes * args.step_factor : bytes + args.step_bytes;
        if (0 == bytes || (args.step_factor < 2 && 0 == args.step_bytes)) {
            break;
        }
    }
}

static void make_buffers(void)
{
    size_t bytes = args.max_bytes < 16 ? 16 : (size_t) args.max_bytes;

    buf.send_base = perf_mem_alloc(bytes + args.send_offset_bytes + 2 * GUARD_BYTES);
    buf.recv_base = perf_mem_alloc(bytes + args.recv_offset_bytes + 2 * GUARD_BYTES);
    buf.stage = perf_mem_staging(STAGE_BYTES);
    buf.expect = malloc(STAGE_BYTES);
    if (NULL == buf.send_base || NULL == buf.recv_base || NULL == buf.stage
        || NULL == buf.expect) {
        die("no memory for buffers of %" PRIu64 " bytes: %s", args.max_bytes, perf_mem_error());
    }
    buf.send = buf.send_base + GUARD_BYTES + args.send_offset_bytes;
    buf.recv = buf.recv_base + GUARD_BYTES + args.recv_offset_bytes;
}

static void free_buffers(void)
{
    perf_mem_free(buf.send_base);
    perf_mem_free(buf.recv_base);
    free(buf.expect);
    perf_mem_close();
}

/* Whether this MPI may be given a device pointer at all. */
static int device_buffers_work(void)
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    if (1 == MPIX_Query_cuda_support()) {
        return 1;
    }
#endif
    return job.active;
}

static void describe_job(void)
{
    static char library[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *text = "";
    double some_lack;
    MPI_Comm node;
    int local_rank, first, len, mine, all = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &job.n_ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_free(&node);
    first = 0 == local_rank;
    MPI_Reduce(&first, &job.n_nodes, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);

    MPI_Get_library_version(library, &len);
    library[strcspn(library, ",\n")] = '\0';
    job.library = library;

    mine = perf_mpit_open(MPI_COMM_WORLD);
    MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    job.active = all;

    if (0 != perf_mem_open(args.memory, local_rank, &text)) {
        die("--memory %s: %s", perf_mem_kind_name(args.memory), text);
    }
    /* auto: a device everywhere, or host buffers everywhere. */
    some_lack = agree_max(PERF_MEM_HOST == perf_mem_kind());
    if (PERF_MEM_AUTO == args.memory && some_lack > 0.5 && PERF_MEM_HOST != perf_mem_kind()) {
        perf_mem_close();
        perf_mem_open(PERF_MEM_HOST, local_rank, &text);
    }
}

/* Options that only make sense together with the job. Returns 0, or 2 with a message. */
static int validate_job(void)
{
    uint32_t i;

    for (i = 0; i < args.n_types; i++) {
        if (args.max_bytes / gp_type_bytes(args.types[i].type) > INT_MAX) {
            if (0 == rank) {
                fprintf(stderr,
                        "gpuproto_perf: -e %" PRIu64 ": more than 2^31 - 1 elements of %s\n",
                        args.max_bytes, args.types[i].name);
            }
            return 2;
        }
    }
    if (PERF_MEM_HOST != perf_mem_kind() && !args.force && !device_buffers_work()) {
        if (0 == rank) {
            fprintf(stderr, "gpuproto_perf: coll/gpuproto is not loaded and this MPI does not know "
                            "device pointers: it would crash. Use --memory host, or --force.\n");
        }
        return 2;
    }
    return 0;
}

/* All cycles. Returns the wrong elements, on all ranks. */
static uint64_t run_all(void)
{
    double *times = malloc(2 * sizeof(*times) * args.iters);
    uint64_t wrong = 0, rows = 0;
    uint32_t cycle, i, op;
    int file_rc = 0;

    if (NULL == times) {
        die("no memory for %u times", args.iters);
    }
    if (0 == rank && 0 != perf_report_open(&args, &job)) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (cycle = 0; 0 == args.cycles || cycle < args.cycles; cycle++) {
        for (i = 0; i < args.n_types; i++) {
            for (op = 0; op < GP_OP_COUNT; op++) {
                if (0 != (args.types[i].ops & args.ops & 1u << op)) {
                    run_sizes(&args.types[i], (gp_op_t) op, times, &wrong, &rows);
                }
            }
        }
    }
    if (0 == rank) {
        file_rc = perf_report_close(wrong, rows);
    }
    free(times);
    wrong += 0 != file_rc;
    MPI_Bcast(&wrong, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return wrong;
}

int main(int argc, char **argv)
{
    uint64_t wrong;
    int rc;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rc = perf_args_parse(&args, argc, argv, rank);
    if (0 != rc) {
        MPI_Finalize();
        return 1 == rc ? 0 : 2;
    }
    describe_job();
    rc = validate_job();
    if (0 == rc) {
        make_buffers();
        wrong = run_all();
        rc = 0 != wrong;
        free_buffers();
    }
    perf_mpit_close();
    MPI_Finalize();
    return rc;
}
