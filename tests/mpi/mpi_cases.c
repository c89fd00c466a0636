/*
 * mpi_cases.c - MPI_Allreduce through the component, one case per run: mpi_cases CASE.
 *
 * Every case checks results that were computed independently, and by the component's own counters that
 * gpuproto, or rightly somebody else, did the call. Buffers are of the kind GP_TEST_MEMORY names (host,
 * cuda). Exit status 0 only when nothing failed on any rank; each failure is a line on stdout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/mpi/mpi_cases.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mc_rank, mc_ranks;
static int failures;

void mc_fail(const char *format, ...)
{
    va_list args;

    if (failures++ < 10) {
        printf("rank %d of %d: ", mc_rank, mc_ranks);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        printf("\n");
        fflush(stdout);
    }
}

perf_mpit_values_t mc_stats(void)
{
    perf_mpit_values_t v;

    memset(&v, 0, sizeof(v));
    perf_mpit_read(&v);
    return v;
}

/* What the call before must have been, since `before` was read. */
void mc_expect(const perf_mpit_values_t *before, mc_who_t who, uint64_t calls, const char *what)
{
    perf_mpit_values_t now = mc_stats();
    uint64_t ours = now.calls - before->calls;
    uint64_t declined = now.declined - before->declined;
    uint64_t staged = now.staged - before->staged;
    int device = PERF_MEM_HOST != perf_mem_kind();

    if ((MC_OURS == who && (calls != ours || 0 != declined))
        || (MC_DECLINED == who
            && (0 != ours || calls != declined || (device && calls != staged)))) {
        mc_fail("%s: %llu calls ours, %llu declined, %llu staged; want %llu %s", what,
                (unsigned long long) ours, (unsigned long long) declined,
                (unsigned long long) staged, (unsigned long long) calls,
                MC_OURS == who ? "ours" : "declined");
    }
}

/* One allreduce of a table type on `comm`, checked. seed: equal on all ranks. */
void mc_call(MPI_Comm comm, const mc_type_t *t, const mc_op_t *o, size_t count, int in_place,
             size_t skew_elems, uint64_t seed)
{
    size_t elem = gp_type_bytes(t->type);
    size_t bytes = count * elem, skew = skew_elems * elem;
    int rank, ranks, rc;
    perf_data_t data;
    unsigned char *host = malloc(bytes + 1);
    unsigned char *send = perf_mem_alloc(bytes + skew);
    unsigned char *recv = perf_mem_alloc(bytes + 2 * skew);
    uint64_t bad, at = 0;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (NULL == host || NULL == send || NULL == recv) {
        mc_fail("no memory for %zu bytes", bytes);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    perf_data_init(&data, t->type, o->op, (uint32_t) ranks, 1, seed);
    perf_data_fill(&data, (uint32_t) rank, 0, count, host);
    perf_mem_put((in_place ? recv + 2 * skew : send + skew), host, bytes);
    rc = MPI_Allreduce(in_place ? MPI_IN_PLACE : (const void *) (send + skew), recv + 2 * skew,
                       (int) count, t->mpi, o->mpi, comm);
    perf_mem_get(host, recv + 2 * skew, bytes);
    bad = perf_data_check(&data, 0, count, host, &at);
    if (MPI_SUCCESS != rc || 0 != bad) {
        mc_fail("%s %s count %zu%s skew %zu seed %llu: rc %d, %llu wrong, first at %llu", t->name,
                o->name, count, in_place ? " in place" : "", skew_elems,
                (unsigned long long) seed, rc, (unsigned long long) bad, (unsigned long long) at);
    }
    perf_mem_free(send);
    perf_mem_free(recv);
    free(host);
}

uint64_t mc_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

int mc_count_entries(const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    while (NULL != d && NULL != (e = readdir(d))) {
        n += 0 == strncmp(e->d_name, prefix, strlen(prefix));
    }
    if (NULL != d) {
        closedir(d);
    }
    return n;
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"matrix", mc_matrix},   {"other", mc_other},     {"zero", mc_zero},
    {"comms", mc_comms},     {"inter", mc_inter},     {"self", mc_self},
    {"rapid", mc_rapid},     {"late", mc_late},       {"threads", mc_threads},
    {"expect", mc_expected}, {"killed", mc_killed},   {"stuck", mc_stuck},
    {"windows", mc_windows}, {"big", mc_big},         {"others", mc_others},
    {"spawn", mc_spawn},     {"child", mc_spawn},     {"bottom", mc_bottom},
    {"first", mc_stuck_first}, {"warned", mc_warned},
    {"kinds", mc_kinds},     {"net", mc_net},         {"random", mc_random_calls},
    {"cut", mc_cut},
};

int main(int argc, char **argv)
{
    const char *memory = getenv("GP_TEST_MEMORY");
    const char *text = "";
    const char *name = argc > 1 ? argv[1] : "";
    perf_mem_kind_t kind = NULL != memory && 0 == strcmp(memory, "cuda") ? PERF_MEM_CUDA
                                                                         : PERF_MEM_HOST;
    int provided, all = 0, known = 0;

    if (0 != perf_mem_open(kind, 0, &text)) {
        printf("no %s memory: %s\n", memory, text);
        return 77;
    }
    MPI_Init_thread(&argc, &argv,
                    0 == strcmp(name, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mc_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mc_ranks);
    perf_mpit_open(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (0 == strcmp(name, cases[i].name)) {
            known = 1;
            cases[i].run();
        }
    }
    if (!known) {
        mc_fail("no case \"%s\"", name);
    }
    if (0 != strcmp(name, "stuck") && 0 != strcmp(name, "first") && 0 != strcmp(name, "cut")) {
        MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
        all = failures;
    }
    perf_mpit_close();
    MPI_Finalize();
    perf_mem_close();
    return 0 != all;
}
