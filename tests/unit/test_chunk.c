/*
 * test_chunk.c - every element belongs to exactly one (channel, loop, chunk), at any count.
 *
 * Taken in order of channel, loop and chunk, the ranges must follow one another without gap or overlap
 * and end at count: that is the partition, and it needs no second formula to compare with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "planner/gp_plan.h"

static uint64_t random_state = 1;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 20) % n;
}

static int geometry_text(const gp_geom_t *g, char *text, size_t bytes)
{
    return snprintf(text, bytes,
                    "count %llu channels %u of %llu, chunk %llu last %llu loops %llu x %u",
                    (unsigned long long) g->count, g->channels,
                    (unsigned long long) g->channel_elems, (unsigned long long) g->chunk_elems,
                    (unsigned long long) g->last_chunk_elems, (unsigned long long) g->loops,
                    g->n_chunks);
}

/* All ranges of a geometry, in order. Returns how many are not empty. */
static uint64_t check_partition(const gp_geom_t *g)
{
    uint64_t at = 0, full = 0;
    char text[200];

    geometry_text(g, text, sizeof(text));
    for (uint32_t channel = 0; channel < g->channels; channel++) {
        for (uint64_t loop = 0; loop < g->loops; loop++) {
            for (uint32_t chunk = 0; chunk < g->n_chunks; chunk++) {
                uint64_t offset = UINT64_MAX;
                uint64_t n = gp_chunk_range(g, channel, loop, chunk, &offset);

                if (!gp_check(offset <= g->count && n <= g->count - offset
                                  && n <= (loop + 1 == g->loops ? g->last_chunk_elems
                                                                : g->chunk_elems),
                              "%s: channel %u loop %llu chunk %u is %llu + %llu", text, channel,
                              (unsigned long long) loop, chunk, (unsigned long long) offset,
                              (unsigned long long) n)) {
                    return full;
                }
                if (0 == n) {
                    continue;
                }
                full++;
                if (!gp_check(offset == at, "%s: channel %u loop %llu chunk %u begins at %llu, the "
                              "one before ended at %llu", text, channel, (unsigned long long) loop,
                              chunk, (unsigned long long) offset, (unsigned long long) at)) {
                    return full;
                }
                at = offset + n;
            }
        }
    }
    gp_check(at == g->count, "%s: ends at %llu", text, (unsigned long long) at);
    return full;
}

/* A geometry built from any legal choice of channels, chunks and slot size. */
static gp_geom_t make_geometry(uint64_t count, uint32_t channels, uint32_t n_chunks,
                               uint64_t slot_units, uint32_t elem_bytes)
{
    uint64_t unit = 16 / elem_bytes;
    uint64_t rest, per_loop;
    gp_geom_t g;

    memset(&g, 0, sizeof(g));
    g.count = count;
    g.elem_bytes = elem_bytes;
    g.channels = channels;
    g.n_chunks = n_chunks;
    g.channel_elems = ((count + channels - 1) / channels + unit - 1) / unit * unit;
    g.chunk_elems = slot_units * unit;
    per_loop = g.chunk_elems * n_chunks;
    g.loops = (g.channel_elems + per_loop - 1) / per_loop;
    rest = g.channel_elems - (g.loops - 1) * per_loop;
    g.last_chunk_elems = ((rest + n_chunks - 1) / n_chunks + unit - 1) / unit * unit;
    return g;
}

static void test_small(void)
{
    static const uint32_t sizes[] = {1, 2, 4, 8, 16};

    gp_group_begin("all counts 1-400, channels 1-5, chunks 1-5, slots of 16-64 bytes, 5 sizes");
    for (size_t e = 0; e < sizeof(sizes) / sizeof(sizes[0]); e++) {
        for (uint64_t count = 1; count <= 400; count += 1 + count / 100) {
            for (uint32_t channels = 1; channels <= 5; channels++) {
                for (uint32_t n_chunks = 1; n_chunks <= 5; n_chunks++) {
                    for (uint64_t units = 1; units <= 4; units++) {
                        gp_geom_t g = make_geometry(count, channels, n_chunks, units, sizes[e]);

                        check_partition(&g);
                    }
                }
            }
        }
    }
    gp_group_end();
}

static void test_large(void)
{
    static const int shifts[] = {31, 32, 33, 40, 48};

    gp_group_begin("counts around 2^31, 2^32, 2^33, 2^40, 2^48");
    for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
        for (int64_t off = -3; off <= 3; off++) {
            for (uint32_t repeat = 0; repeat < 40; repeat++) {
                uint64_t count = (1ull << shifts[s]) + (uint64_t) off;
                uint32_t elem_bytes = 1u << below(5);
                uint32_t channels = 1 + (uint32_t) below(64);
                uint32_t n_chunks = 1 + (uint32_t) below(64);
                uint64_t per_chunk = count / channels / n_chunks / (1 + below(9));
                gp_geom_t g = make_geometry(count, channels, n_chunks,
                                            1 + per_chunk * elem_bytes / 16, elem_bytes);

                check_partition(&g);
            }
        }
    }
    gp_group_end();
}

/* Huge counts in real slots: too many ranges to walk, so neighbours at random places and the ends. */
static void test_neighbours(void)
{
    gp_group_begin("2^40 elements in slots of 32 KiB: neighbours at random places, first, last");
    for (uint32_t repeat = 0; repeat < 20000; repeat++) {
        uint64_t count = (1ull << 40) + below(1000) - 500;
        gp_geom_t g = make_geometry(count, 1 + (uint32_t) below(64), 1 + (uint32_t) below(16), 2048,
                                    1u << below(5));
        uint32_t channel = (uint32_t) below(g.channels);
        uint64_t loop = below(4) ? below(g.loops) : below(2) ? g.loops - 1 : 0;
        uint32_t chunk = (uint32_t) below(g.n_chunks);
        uint64_t offset, next, n = gp_chunk_range(&g, channel, loop, chunk, &offset);
        uint64_t begin, end;
        char text[200];

        geometry_text(&g, text, sizeof(text));
        gp_check(offset / g.channel_elems == channel || 0 == n, "%s: channel %u", text, channel);
        if (++chunk == g.n_chunks) {
            chunk = 0;
            loop++;
        }
        if (loop == g.loops) {
            loop = 0;
            channel++;
        }
        if (channel < g.channels && 0 != gp_chunk_range(&g, channel, loop, chunk, &next)) {
            gp_check(next == offset + n,
                     "%s: channel %u loop %llu chunk %u: %llu after %llu + %llu", text, channel,
                     (unsigned long long) loop, chunk, (unsigned long long) next,
                     (unsigned long long) offset, (unsigned long long) n);
        }
        gp_chunk_range(&g, 0, 0, 0, &begin);
        n = gp_chunk_range(&g, g.channels - 1, g.loops - 1, g.n_chunks - 1, &end);
        gp_check(0 == begin && end + n == count, "%s: %llu .. %llu", text,
                 (unsigned long long) begin, (unsigned long long) (end + n));
    }
    gp_group_end();
}

/* The planner's geometries are of this kind, and start chunks on 16-byte boundaries. */
static void test_planned(void)
{
    static const uint64_t counts[] = {1,     2,     3,      5,      7,       15,      16,     17,
                                      100,   1000,  1023,   4096,   4097,    65535,   65536,  65537,
                                      99999, 1 << 20, (1 << 20) + 1, 12345678, 1 << 26, 0x7fffffff};

    gp_group_begin("planned geometries: whole partitions, aligned, chunks within their slots");
    for (uint32_t repeat = 0; repeat < 3000; repeat++) {
        gp_comm_desc_t comm;
        gp_params_t params;
        gp_conn_geom_t conn;
        gp_plan_t plan;
        const char *reason;
        gp_type_t type = (gp_type_t) below(GP_TYPE_BOOL);
        uint64_t count = counts[below(sizeof(counts) / sizeof(counts[0]))] + below(3);
        gp_status_t status;

        memset(&comm, 0, sizeof(comm));
        comm.n_ranks = 1 + (uint32_t) below(20);
        comm.n_nodes = 1;
        comm.executor = (uint32_t) below(GP_EXEC_COUNT);
        comm.worst_path = GP_EXEC_HOST == comm.executor ? GP_PATH_HOST : (uint32_t) below(3);
        comm.ranks_per_gpu = GP_PATH_SELF_GPU == comm.worst_path ? comm.n_ranks : 1;
        comm.sm_count = 132;
        comm.min_capability = comm.max_capability = 90;
        gp_params_init(&params);
        params.algorithm = (int32_t) below(4) - 1;
        params.protocol = (int32_t) below(4) - 1;
        params.ll128_unsafe = 1;
        status = gp_plan_make(&comm, &params, count, type, GP_OP_SUM, &plan, &reason);
        if (!gp_check(GP_OK == status, "ranks %u count %llu: %s", comm.n_ranks,
                      (unsigned long long) count, NULL != reason ? reason : "")) {
            continue;
        }
        status = gp_plan_conn_geom(&comm, &params, plan.algorithm, plan.protocol, &conn, &reason);
        gp_check(GP_OK == status && plan.geom.channels <= conn.channels
                     && plan.geom.chunk_elems * plan.geom.elem_bytes <= conn.data_bytes
                     && plan.geom.last_chunk_elems <= plan.geom.chunk_elems
                     && plan.geom.last_chunk_elems > 0 && plan.geom.loops >= 1
                     && plan.geom.count == count,
                 "ranks %u count %llu: geometry outside its connection", comm.n_ranks,
                 (unsigned long long) count);
        gp_check(0 == plan.geom.chunk_elems * plan.geom.elem_bytes % 16
                     && 0 == plan.geom.last_chunk_elems * plan.geom.elem_bytes % 16
                     && (1 == plan.geom.channels
                         || 0 == plan.geom.channel_elems * plan.geom.elem_bytes % 16),
                 "ranks %u count %llu: not a multiple of 16 bytes", comm.n_ranks,
                 (unsigned long long) count);
        if (plan.geom.loops < 5000) {
            check_partition(&plan.geom);
        }
    }
    gp_group_end();
}

int main(void)
{
    gp_tap_begin();
    test_small();
    test_large();
    test_neighbours();
    test_planned();
    return gp_tap_end();
}
