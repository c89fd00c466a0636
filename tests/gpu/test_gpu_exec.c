/*
 * test_gpu_exec.c - the CUDA executor on a real GPU: right results, and the host executor's bits.
 *
 * All ranks live in this process, each with its own stream, so neither MPS nor MPI is needed and a
 * memory checker can watch. For every algorithm and protocol: all types and operations, counts round
 * every boundary, several loops, in place, misaligned independently, at the very end of an allocation,
 * steps near 2^31, 2^32 and 2^63; raw bit patterns (NaN, infinity, -0, subnormals) compared with what
 * the host executor makes of them; random programs. An absent rank is reported after an abort.
 *
 * GP_SANITIZER=1: one rank at a time, few cases (a memory checker runs one kernel after the other).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "contrib/gpuproto_perf_data.h"
#include "device/cuda/gp_cuda.h"
#include "planner/gp_plan.h"
#include "tests/exec/gp_exec_world.h"
#include "tests/lib/gp_tap.h"
#include "tests/unit/gp_random_program.h"

#define ROOM_BYTES (2u << 20) /* what the driver rounds allocations to: its end is a buffer's end */
#define TEST_SECONDS 140

static gp_cuda_dev_t *dev;
static int sanitizer;

static gp_status_t cuda_arena(gp_arena_t **arena_p)
{
    *arena_p = gp_cuda_dev_arena(dev);
    return GP_OK;
}

static gp_status_t cuda_create(uint32_t protocol, const gp_program_t *const *programs,
                               gp_connset_t *set, void **exec_p)
{
    gp_cuda_exec_t *exec = NULL;
    gp_status_t status = gp_cuda_exec_create(dev, protocol, programs, set, &exec);

    *exec_p = exec;
    return status;
}

static void cuda_destroy(void *exec)
{
    gp_cuda_exec_destroy(exec);
}

static gp_status_t cuda_start(void *exec, const gp_work_t *work)
{
    return gp_cuda_exec_start(exec, work);
}

static gp_status_t cuda_progress(void *exec, int *moved)
{
    *moved = 0;
    return gp_cuda_exec_progress(exec);
}

static void cuda_record(const void *exec, gp_exec_record_t *record)
{
    gp_cuda_exec_record(exec, record);
}

static world_ops_t cuda_ops = {128,        cuda_arena,    cuda_create, cuda_destroy,
                               cuda_start, cuda_progress, cuda_record};

/* One device buffer per rank and role, used again and again. */
static unsigned char *room[WORLD_MAX_RANKS][2];

static void need(int ok, const char *what)
{
    if (!ok) {
        gp_bail_out("%s", what);
    }
}

/* Where a buffer of `bytes` lies in its room: at the end, or `skew` from the beginning. */
static unsigned char *place(uint32_t rank, int which, size_t bytes, size_t skew, int at_end)
{
    return at_end ? room[rank][which] + ROOM_BYTES - bytes : room[rank][which] + 64 + skew;
}

/* One call on a CUDA world, checked against results computed independently. */
static void one_call(world_t *w, gp_type_t type, gp_op_t op, uint64_t count, uint64_t *seed)
{
    uint32_t elem = gp_type_bytes(type), n = w->c.n_ranks;
    size_t bytes = count * elem, align = 16 == elem ? 8 : elem;
    int in_place = (int) (world_random(seed) & 1), at_end = (int) (world_random(seed) & 1);
    uint64_t data_seed = world_random(seed);
    unsigned char *host = malloc(ROOM_BYTES);
    void *sends[WORLD_MAX_RANKS], *recvs[WORLD_MAX_RANKS];
    gp_geom_t geom = world_geom(w, count, elem);
    perf_data_t data;
    gp_status_t status;

    need(NULL != host && bytes + 256 < ROOM_BYTES, "room for a case");
    perf_data_init(&data, type, op, n, 1, data_seed);
    for (uint32_t r = 0; r < n; r++) {
        unsigned char *s = place(r, 0, bytes, world_random(seed) % 16 / align * align, at_end);
        unsigned char *t = place(r, 1, bytes, world_random(seed) % 16 / align * align, at_end);

        memset(host, 0xa5, ROOM_BYTES);
        need(GP_OK == gp_cuda_copy(room[r][1], host, ROOM_BYTES), "fill");
        perf_data_fill(&data, r, 0, count, host);
        need(GP_OK == gp_cuda_copy(in_place ? t : s, host, bytes), "put");
        sends[r] = in_place ? t : s;
        recvs[r] = t;
    }
    status = world_run(w, &geom, gp_red_of(type, op), sends, recvs, 0);
    gp_check(GP_OK == status, "%s %s %s count %llu: status %d", world_name(&w->c),
             gp_type_name(type), gp_op_name(op), (unsigned long long) count, status);
    for (uint32_t r = 0; r < n && GP_OK == status; r++) {
        size_t at = (size_t) ((unsigned char *) recvs[r] - room[r][1]);
        uint64_t bad_at = 0, bad;
        size_t i = 0;

        need(GP_OK == gp_cuda_copy(host, room[r][1], ROOM_BYTES), "get");
        bad = perf_data_check(&data, 0, count, host + at, &bad_at);
        while (i < ROOM_BYTES && (0xa5 == host[i] || (i >= at && i < at + bytes))) {
            i++;
        }
        gp_check(
            0 == bad && ROOM_BYTES == i,
            "%s %s %s count %llu rank %u%s%s seed %llu: %llu wrong, first at %llu; byte %zu of "
            "the room (buffer at %zu) written",
            world_name(&w->c), gp_type_name(type), gp_op_name(op), (unsigned long long) count, r,
            in_place ? " in place" : "", at_end ? " at the end" : "",
            (unsigned long long) data_seed, (unsigned long long) bad, (unsigned long long) bad_at,
            i, at);
    }
    if (GP_OK == status) {
        gp_exec_record_t record;

        w->c.ops->record(w->execs[0], &record);
        gp_check(record.algorithm == (uint32_t) w->c.algorithm
                     && record.protocol == (uint32_t) w->c.protocol
                     && record.channels == geom.channels && record.loops == geom.loops
                     && record.threads == w->c.ops->threads && record.steps > 0,
                 "%s: the record says %u/%u channels %u loops %llu threads %u steps %llu",
                 world_name(&w->c), record.algorithm, record.protocol, record.channels,
                 (unsigned long long) record.loops, record.threads,
                 (unsigned long long) record.steps);
    }
    free(host);
}

static uint64_t pick_count(const world_t *w, uint32_t elem, uint64_t *seed)
{
    uint64_t chunk = gp_data_bytes(w->c.protocol, w->c.slot_bytes) / elem, n = w->c.n_ranks;
    const uint64_t counts[] = {1, 2, 3, 7, n - 1, n, n + 1, chunk - 1, chunk, chunk + 1,
                               n * chunk - 1, n * chunk + 1, 2 * n * chunk + 5,
                               3 * chunk + world_random(seed) % chunk};
    uint64_t count = counts[world_random(seed) % (sizeof(counts) / sizeof(counts[0]))];

    return 0 == count ? 1 : count;
}

static void combination(gp_algorithm_t algorithm, gp_protocol_t protocol, uint32_t gated)
{
    static const uint64_t first_steps[] = {0, (1ull << 31) - 9, (1ull << 32) - 9, (1ull << 63) - 9};
    static const uint32_t slots[] = {2, 3, 8};
    uint64_t seed = 1 + 100 * (uint64_t) algorithm + 10 * (uint64_t) protocol + gated;

    gp_group_begin("%s/%s%s", gp_algorithm_name(algorithm), gp_protocol_name(protocol),
                   gated ? " gated" : "");
    for (uint32_t n = sanitizer ? 1 : 2; n <= (sanitizer ? 1u : 5u); n++) {
        world_case_t c = {&cuda_ops, algorithm, protocol, n, 1, 2, 0, 0, gated, 0};
        world_t *w;

        c.channels = 1 + n % 2;
        c.n_slots = slots[n % 3];
        c.slot_bytes = 256 * (2 + world_random(&seed) % 30);
        c.first_step = first_steps[n % 4];
        cuda_ops.threads = 64 + 32 * (n % 3);
        w = world_create(&c, NULL);
        if (!gp_check(NULL != w, "%s: cannot be made", world_name(&c))) {
            continue;
        }
        for (uint32_t type = 0; type < GP_TYPE_COUNT; type++) {
            for (uint32_t op = 0; op < GP_OP_COUNT; op++) {
                if (gp_red_of((gp_type_t) type, (gp_op_t) op).valid) {
                    one_call(w, (gp_type_t) type, (gp_op_t) op,
                             pick_count(w, gp_type_bytes((gp_type_t) type), &seed), &seed);
                }
            }
        }
        world_destroy(w);
    }
    gp_group_end();
}

/* Programs that are neither ring nor tree: the executor has no algorithm of its own. */
static void random_programs(void)
{
    for (uint64_t s = 1; s <= (uint64_t) (sanitizer ? 0 : 40); s++) {
        uint64_t seed = s;
        gp_program_t *programs[WORLD_MAX_RANKS];
        world_case_t c = {&cuda_ops, GP_ALGO_CUSTOM, GP_PROTO_LL, 2, 1, 2, 0, 3, 0, 0};
        world_t *w;

        c.n_ranks = 2 + (uint32_t) (world_random(&seed) % 5);
        c.n_slots = 2 + (uint32_t) (world_random(&seed) % 3);
        c.protocol = (gp_protocol_t) (s % GP_PROTO_COUNT);
        c.slot_bytes = 256 * (1 + world_random(&seed) % 8);
        if (!gp_check(GP_OK == gp_random_programs(s, c.n_ranks, c.n_slots, programs),
                      "seed %llu: no programs", (unsigned long long) s)) {
            continue;
        }
        cuda_ops.threads = 320; /* every protocol allows it; several warps for each stream */
        w = world_create(&c, programs);
        if (!gp_check(NULL != w, "%s seed %llu: cannot be made", world_name(&c),
                      (unsigned long long) s)) {
            continue;
        }
        for (uint32_t i = 0; i < 6; i++) {
            gp_type_t type = (gp_type_t) (world_random(&seed) % GP_TYPE_COUNT);
            gp_op_t op = (gp_op_t) (world_random(&seed) % GP_OP_COUNT);

            if (gp_red_of(type, op).valid) {
                one_call(w, type, op, pick_count(w, gp_type_bytes(type), &seed), &seed);
            }
        }
        world_destroy(w);
    }
}

/* Any bits at all: the GPU must make of them what the host executor makes. */
static void same_bits(gp_algorithm_t algorithm, gp_protocol_t protocol)
{
    enum { N = 4, COUNT = 3000 };
    static const gp_type_t types[] = {GP_TYPE_F16, GP_TYPE_BF16, GP_TYPE_F32,
                                      GP_TYPE_F64, GP_TYPE_C32,  GP_TYPE_C64};
    static unsigned char in[N][COUNT * 16], host_out[N][COUNT * 16], cuda_out[COUNT * 16];
    world_case_t c = {&world_host_ops, algorithm, protocol, N, 2, 2, 4096, 5, 0, 0};
    uint64_t seed = 7 + 10 * (uint64_t) algorithm + (uint64_t) protocol;
    world_t *h = world_create(&c, NULL);
    world_t *g;

    c.ops = &cuda_ops;
    cuda_ops.threads = 128;
    g = world_create(&c, NULL);
    if (!gp_check(NULL != h && NULL != g, "%s: cannot be made", world_name(&c))) {
        return;
    }
    for (uint32_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (uint32_t op = GP_OP_SUM; op <= GP_OP_MAX; op++) {
            gp_red_t red = gp_red_of(types[t], (gp_op_t) op);
            uint32_t elem = gp_type_bytes(types[t]);
            gp_geom_t geom = world_geom(h, COUNT, elem);
            void *sends[N], *recvs[N];

            if (!red.valid) {
                continue;
            }
            for (uint32_t r = 0; r < N; r++) {
                for (size_t i = 0; i < sizeof(in[r]); i++) {
                    uint64_t x = world_random(&seed);

                    /* Exponents of all ones and of all zeros often. */
                    in[r][i] = x & 0x100 ? (unsigned char) x
                             : x & 0x200 ? 0x7f
                             : x & 0x400 ? 0
                                         : 0xff;
                }
                sends[r] = in[r];
                recvs[r] = host_out[r];
            }
            gp_check(GP_OK == world_run(h, &geom, red, sends, recvs, 0), "host run");
            for (uint32_t r = 0; r < N; r++) {
                sends[r] = room[r][0];
                recvs[r] = room[r][1];
                need(GP_OK == gp_cuda_copy(room[r][0], in[r], COUNT * elem), "put");
            }
            gp_check(GP_OK == world_run(g, &geom, red, sends, recvs, 0), "CUDA run");
            for (uint32_t r = 0; r < N; r++) {
                size_t i = 0;

                need(GP_OK == gp_cuda_copy(cuda_out, room[r][1], COUNT * elem), "get");
                while (i < COUNT * elem && cuda_out[i] == host_out[0][i]
                       && host_out[r][i] == cuda_out[i]) {
                    i++;
                }
                gp_check(COUNT * elem == i, "%s %s %s rank %u: element %zu differs",
                         world_name(&c), gp_type_name(types[t]), gp_op_name(op), r, i / elem);
            }
        }
    }
    world_destroy(h);
    world_destroy(g);
}

/* Two of three ranks call: the kernels wait, say for whom when told to stop, and the process goes on. */
static void absent(gp_protocol_t protocol)
{
    world_case_t c = {&cuda_ops, GP_ALGO_RING, protocol, 3, 1, 2, 4096, 100, 0, 0};
    world_t *w = world_create(&c, NULL);
    gp_geom_t geom;
    gp_wait_info_t info;
    float back = 0;

    if (!gp_check(NULL != w, "%s: cannot be made", world_name(&c))) {
        return;
    }
    geom = world_geom(w, 3000, 4);
    for (uint32_t r = 0; r < 2; r++) {
        gp_work_t work = {room[r][0], room[r][1], geom, gp_red_of(GP_TYPE_F32, GP_OP_SUM), 128};

        gp_check(GP_OK == gp_cuda_exec_start(w->execs[r], &work), "start");
    }
    usleep(50000);
    gp_check(GP_AGAIN == gp_cuda_exec_progress(w->execs[0]), "a call without rank 2 ended");
    gp_cuda_exec_ask(w->execs[0], &info);
    gp_check(GP_WAIT_DATA == info.kind && 2 == info.peer && info.step >= 100,
             "%s: asked, rank 0 says kind %u peer %u channel %u step %llu", world_name(&c),
             info.kind, info.peer, info.channel, (unsigned long long) info.step);
    gp_check(GP_AGAIN == gp_cuda_exec_progress(w->execs[0]), "and goes on waiting");
    gp_cuda_exec_abort(w->execs[0]);
    gp_check(GP_ERR_ABORTED == gp_cuda_exec_progress(w->execs[0]), "abort is heard");
    gp_cuda_exec_waits_for(w->execs[0], &info);
    gp_check(GP_WAIT_DATA == info.kind && 2 == info.peer && info.step >= 100,
             "%s: rank 0 says kind %u peer %u channel %u step %llu", world_name(&c), info.kind,
             info.peer, info.channel, (unsigned long long) info.step);
    gp_cuda_exec_abort(w->execs[1]);
    world_destroy(w);
    gp_check(GP_OK == gp_cuda_copy(&back, room[0][0], sizeof(back)), "the context lives on");
}

int main(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(unsigned) = NULL != cuda ? (int (*)(unsigned)) dlsym(cuda, "cuInit") : NULL;

    gp_tap_begin();
    if (NULL == init || 0 != init(0)) {
        gp_skip_all("no GPU");
    }
    if (!gp_cuda_compiled()) {
        gp_skip_all("built without CUDA kernels");
    }
    alarm(TEST_SECONDS);
    sanitizer = NULL != getenv("GP_SANITIZER");
    need(GP_OK == gp_cuda_driver() && GP_OK == gp_cuda_dev_get(0, &dev), "the GPU");
    for (uint32_t r = 0; r < WORLD_MAX_RANKS; r++) {
        for (int k = 0; k < 2; k++) {
            void *p = NULL;

            need(GP_OK == gp_cuda_dev_alloc(dev, ROOM_BYTES, &p), "device memory");
            room[r][k] = p;
        }
    }
    for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_FLAT; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            combination((gp_algorithm_t) a, (gp_protocol_t) p, 0);
        }
        combination((gp_algorithm_t) a, GP_PROTO_LL128, 1);
    }
    if (!sanitizer) {
        gp_group_begin("random programs");
        random_programs();
        gp_group_end();
        gp_group_begin("NaN, infinity, -0, subnormals: the host executor's bits on all ranks");
        for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_FLAT; a++) {
            for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
                same_bits((gp_algorithm_t) a, (gp_protocol_t) p);
            }
        }
        gp_group_end();
        gp_group_begin("an absent rank is named after an abort");
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            absent((gp_protocol_t) p);
        }
        gp_group_end();
    }
    gp_cuda_dev_put(dev);
    gp_cuda_finalize();
    return gp_tap_end();
}
