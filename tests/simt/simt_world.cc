/*
 * simt_world.cc - see simt_world.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/simt/simt_world.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <vector>

#include "tests/simt/simt_values.h"

#if defined(__SANITIZE_ADDRESS__)
#define SW_GUARD_BYTES 0 /* the allocation ends with the data: the sanitizer sees one byte more */
#else
#define SW_GUARD_BYTES 48
#endif
#define SW_GUARD 0x5a

namespace {

struct Args { /* of one launch */
    sw_kernel_t kernel;
    gp_kargs_t args;
};

struct Buffer {
    unsigned char *block;
    unsigned char *data;
    size_t bytes;
    size_t front;
};

struct Call {
    Buffer send; /* data == recv.data in place */
    Buffer recv;
    Args args;
};

struct Sw_rank {
    std::vector<gp_program_t *> programs;        /* [channel] */
    std::vector<std::vector<void *>> recv_block; /* [channel][link] */
    std::vector<std::vector<void *>> send_block;
    std::vector<unsigned char> blob;
    uint64_t stride;     /* of the channels' regions in the blob */
    uint32_t copy_bytes;
    gp_karrive_t *arrive;
    gp_kstatus_t *status;
    std::vector<Call> calls;
    std::vector<simt_launch_t> launches;
    std::vector<uint64_t> age; /* LL: steps since the send FIFOs were zero, [channel] */
};

struct World {
    const sw_case *c;
    std::vector<Sw_rank> ranks;
    bool asked = false; /* abort_all() was called */
};

void *alloc_line(size_t bytes)
{
    void *p = NULL;

    if (0 != posix_memalign(&p, 256, bytes)) {
        abort();
    }
    memset(p, 0, bytes);
    return p;
}

void launch(const void *p)
{
    const Args *a = (const Args *) p;

    a->kernel(a->args);
}

gp_geom_t partition(const sw_case &c, const sw_call &call, uint32_t n_chunks)
{
    gp_geom_t g;
    uint64_t per_loop;
    uint64_t unit;
    uint64_t left;

    memset(&g, 0, sizeof(g));
    g.count = call.count;
    g.elem_bytes = sv_bytes[call.family];
    g.n_chunks = n_chunks;
    g.channels = call.channels;
    unit = g.elem_bytes < 16 ? 16 / g.elem_bytes : 1;
    g.chunk_elems = sw_chunk_elems(c, g.elem_bytes);
    g.channel_elems = 1 == call.channels
                          ? call.count
                          : ((call.count + call.channels - 1) / call.channels + unit - 1) / unit
                                * unit;
    per_loop = g.chunk_elems * n_chunks;
    g.loops = g.channel_elems <= per_loop ? 1 : (g.channel_elems + per_loop - 1) / per_loop;
    left = g.channel_elems - (g.loops - 1) * per_loop;
    g.last_chunk_elems = ((left + n_chunks - 1) / n_chunks + unit - 1) / unit * unit;
    return g;
}

template <class T>
void put(unsigned char *to, const T *from, uint32_t n)
{
    if (0 != n) {
        memcpy(to, from, n * sizeof(T));
    }
}

Buffer make_buffer(uint64_t bytes, uint32_t offset)
{
    Buffer b;

    b.front = 32 + offset;
    b.bytes = bytes;
    b.block = (unsigned char *) malloc(b.front + bytes + SW_GUARD_BYTES);
    memset(b.block, SW_GUARD, b.front + bytes + SW_GUARD_BYTES);
    b.data = b.block + b.front;
    return b;
}

bool guarded(const Buffer &b)
{
    for (size_t i = 0; i < b.front; ++i) {
        if (SW_GUARD != b.block[i]) {
            return false;
        }
    }
    for (int i = 0; i < SW_GUARD_BYTES; ++i) {
        if (SW_GUARD != b.block[b.front + b.bytes + i]) {
            return false;
        }
    }
    return true;
}

uint32_t find_link(const gp_link_t *links, uint32_t n, uint32_t peer)
{
    uint32_t i = 0;

    while (i < n && links[i].peer != peer) {
        ++i;
    }
    return i;
}

/* Programs and the memory of all connections. */
void connect(World &w)
{
    const sw_case &c = *w.c;

    w.ranks.resize(c.n_ranks);
    for (uint32_t r = 0; r < c.n_ranks; ++r) {
        Sw_rank &rank = w.ranks[r];

        rank.programs.resize(c.channels);
        rank.recv_block.resize(c.channels);
        rank.send_block.resize(c.channels);
        rank.age.resize(c.channels);
        rank.arrive = (gp_karrive_t *) alloc_line(GP_LINE_BYTES);
        rank.status = (gp_kstatus_t *) alloc_line(sizeof(gp_kstatus_t));
        for (uint32_t ch = 0; ch < c.channels; ++ch) {
            gp_program_t *p = NULL;

            if (GP_OK != gp_program_emit((gp_algorithm_t) c.algorithm, c.n_ranks, r, ch, c.channels,
                                         &p)) {
                abort();
            }
            rank.programs[ch] = p;
            for (uint32_t i = 0; i < p->n_recv; ++i) {
                unsigned char *b = (unsigned char *) alloc_line(
                    gp_fifo_recv_block_bytes(c.n_slots, c.slot_bytes));
                *(uint64_t *) b = c.first_step;
                rank.recv_block[ch].push_back(b);
            }
            for (uint32_t i = 0; i < p->n_send; ++i) {
                uint64_t *b = (uint64_t *) alloc_line(GP_FIFO_SEND_BLOCK_BYTES);
                *b = c.first_step;
                rank.send_block[ch].push_back(b);
            }
        }
    }
}

gp_conn_t conn_of(const World &w, void *recv_block, void *send_block, uint32_t peer)
{
    gp_conn_t conn;

    memset(&conn, 0, sizeof(conn));
    conn.slots = (unsigned char *) recv_block + GP_FIFO_SLOTS_OFFSET;
    conn.tail = (uint64_t *) ((unsigned char *) recv_block + GP_FIFO_TAIL_OFFSET);
    conn.sizes = (uint64_t *) ((unsigned char *) recv_block + GP_FIFO_SIZES_OFFSET);
    conn.head = (uint64_t *) send_block;
    conn.step = w.c->first_step;
    conn.seen = w.c->first_step;
    conn.zeroed = w.c->first_step;
    conn.slot_bytes = w.c->slot_bytes;
    conn.n_slots = w.c->n_slots;
    conn.gated = w.c->gated;
    conn.peer = peer;
    return conn;
}

void build_blob(World &w, uint32_t r)
{
    const sw_case &c = *w.c;
    Sw_rank &rank = w.ranks[r];
    std::vector<gp_kchan_t> chans(c.channels);
    uint64_t region = 0;
    uint64_t head = 0;

    for (uint32_t ch = 0; ch < c.channels; ++ch) {
        const gp_program_t *p = rank.programs[ch];
        gp_kchan_t &k = chans[ch];

        memset(&k, 0, sizeof(k));
        k.algorithm = p->algorithm;
        k.n_streams = p->n_streams;
        k.n_steps = p->n_steps;
        k.n_refs = p->n_refs;
        k.n_recv = p->n_recv;
        k.n_send = p->n_send;
        k.n_chunks = p->n_chunks;
        k.direct = (uint32_t) gp_kchan_is_direct(p);
        region = std::max(region, gp_kchan_layout(&k));
        head = std::max(head, gp_kchan_head_bytes(&k));
    }
    rank.stride = (region + 127) / 128 * 128;
    rank.copy_bytes = gp_kcopy_bytes(region, head);
    rank.blob.assign(c.channels * rank.stride, 0);
    for (uint32_t ch = 0; ch < c.channels; ++ch) {
        const gp_program_t *p = rank.programs[ch];
        gp_kchan_t &k = chans[ch];
        std::vector<gp_conn_t> recv;
        std::vector<gp_conn_t> send;

        for (uint32_t i = 0; i < p->n_recv; ++i) {
            uint32_t peer = p->recv[i].peer;
            const gp_program_t *q = w.ranks[peer].programs[ch];
            uint32_t j = find_link(q->send, q->n_send, r);
            recv.push_back(
                conn_of(w, rank.recv_block[ch][i], w.ranks[peer].send_block[ch][j], peer));
        }
        for (uint32_t i = 0; i < p->n_send; ++i) {
            uint32_t peer = p->send[i].peer;
            const gp_program_t *q = w.ranks[peer].programs[ch];
            uint32_t j = find_link(q->recv, q->n_recv, r);
            send.push_back(
                conn_of(w, w.ranks[peer].recv_block[ch][j], rank.send_block[ch][i], peer));
        }
        unsigned char *at = &rank.blob[ch * rank.stride];
        put(at, &k, 1);
        put(at + k.streams_off, p->streams, p->n_streams);
        put(at + k.steps_off, p->steps, p->n_steps);
        gp_ref_t *refs = (gp_ref_t *) (at + k.refs_off);
        for (uint32_t i = 0; i < p->n_steps; ++i) {
            const gp_step_t &step = p->steps[i];

            for (uint32_t n = 0; n < step.n_in; ++n) {
                refs[step.in_first + n] = gp_kref_of(&k, &p->refs[step.in_first + n], 0);
            }
            for (uint32_t n = 0; n < step.n_send; ++n) {
                refs[step.send_first + n] = gp_kref_of(&k, &p->refs[step.send_first + n], 1);
            }
        }
        for (uint32_t i = 0; i < p->n_recv; ++i) {
            gp_kchan_conns(at)[i] = gp_kconn_of(&recv[i], p->recv[i].uses);
        }
        for (uint32_t i = 0; i < p->n_send; ++i) {
            gp_kchan_conns(at)[p->n_recv + i] = gp_kconn_of(&send[i], p->send[i].uses);
        }
    }
}

/* Buffers and arguments of one call of one rank. */
void prepare(World &w, uint32_t r, uint32_t n)
{
    const sw_case &c = *w.c;
    Sw_rank &rank = w.ranks[r];
    const sw_call &call = c.calls[n];
    uint32_t elem = sv_bytes[call.family];
    uint64_t bytes = call.count * elem;
    Call &k = rank.calls[n];
    gp_kargs_t &a = k.args.args;
    simt_launch_t &l = rank.launches[n];
    uint64_t max_uses = 0;

    k.send = make_buffer(bytes, call.send_offset);
    k.recv = call.in_place ? k.send : make_buffer(bytes, call.recv_offset);
    for (uint64_t i = 0; i < call.count; ++i) {
        sv_encode(call.family, sv_input(call.family, call.rop, r, n, i), k.send.data + i * elem);
    }
    memset(&a, 0, sizeof(a));
    a.blob = rank.blob.data();
    a.chan_stride = rank.stride;
    a.copy_bytes = rank.copy_bytes;
    a.send = k.send.data;
    a.recv = k.recv.data;
    a.status = rank.status;
    a.arrived = (uint32_t *) rank.arrive;
    a.seq = n + 1;
    a.geom = partition(c, call, rank.programs[0]->n_chunks);
    a.rop = call.rop;
    for (uint32_t ch = 0; ch < call.channels; ++ch) {
        for (uint32_t i = 0; i < rank.programs[ch]->n_send; ++i) {
            uint32_t uses = rank.programs[ch]->send[i].uses;
            max_uses = uses > max_uses ? uses : max_uses;
        }
        rank.age[ch] += a.geom.loops * max_uses;
        a.ll_zero |= GP_PROTO_LL == c.protocol && !c.stale && rank.age[ch] > GP_LL_ZERO_STEPS;
    }
    for (uint32_t ch = 0; a.ll_zero && ch < call.channels; ++ch) {
        rank.age[ch] = a.geom.loops * max_uses;
    }
    k.args.kernel = sw_kernels[call.family][c.protocol];
    l.kernel = launch;
    l.args = &k.args;
    l.blocks = call.channels;
    l.threads = c.threads;
    l.shared_bytes = 0;
    for (uint32_t ch = 0; ch < call.channels; ++ch) {
        const gp_kchan_t *chan = (const gp_kchan_t *) &rank.blob[ch * rank.stride];
        uint32_t shared = gp_kernel_shared_bytes(chan, c.protocol, c.threads, rank.copy_bytes);

        if (!gp_kernel_fits(chan, c.protocol, c.threads)) {
            abort();
        }
        l.shared_bytes = shared > l.shared_bytes ? shared : l.shared_bytes;
    }
}

void build(World &w)
{
    const sw_case &c = *w.c;

    connect(w);
    for (uint32_t r = 0; r < c.n_ranks; ++r) {
        build_blob(w, r);
        w.ranks[r].calls.resize(c.n_calls);
        w.ranks[r].launches.resize(c.n_calls);
        for (uint32_t n = 0; n < c.n_calls; ++n) {
            prepare(w, r, n);
        }
    }
}

void destroy(World &w)
{
    for (Sw_rank &rank : w.ranks) {
        for (auto &blocks : rank.recv_block) {
            for (void *p : blocks) {
                free(p);
            }
        }
        for (auto &blocks : rank.send_block) {
            for (void *p : blocks) {
                free(p);
            }
        }
        for (Call &k : rank.calls) {
            if (k.recv.block != k.send.block) {
                free(k.recv.block);
            }
            free(k.send.block);
        }
        for (gp_program_t *p : rank.programs) {
            gp_program_free(p);
        }
        free(rank.arrive);
        free(rank.status);
    }
}

__attribute__((format(printf, 1, 2))) std::string text(const char *format, ...)
{
    char line[400];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    return line;
}

/* Data of one call on all ranks. */
std::string check_data(const World &w, uint32_t n)
{
    const sw_call &call = w.c->calls[n];
    uint32_t elem = sv_bytes[call.family];
    unsigned char want[16];

    for (uint64_t i = 0; i < call.count; ++i) {
        sv_value v = sv_input(call.family, call.rop, 0, n, i);

        for (uint32_t r = 1; r < w.c->n_ranks; ++r) {
            v = sv_reduce(call.family, call.rop, v, sv_input(call.family, call.rop, r, n, i));
        }
        sv_encode(call.family, v, want);
        for (uint32_t r = 0; r < w.c->n_ranks; ++r) {
            const unsigned char *got = w.ranks[r].calls[n].recv.data + i * elem;

            if (!sv_equal(call.family, got, want)) {
                uint64_t g = 0;
                uint64_t e = 0;
                memcpy(&g, got, elem > 8 ? 8 : elem);
                memcpy(&e, want, elem > 8 ? 8 : elem);
                return text("rank %u call %u element %llu: %llx, want %llx", r, n,
                            (unsigned long long) i, (unsigned long long) g, (unsigned long long) e);
            }
            if (0 != memcmp(got, w.ranks[0].calls[n].recv.data + i * elem, elem)) {
                return text("call %u element %llu: ranks 0 and %u differ in bits", n,
                            (unsigned long long) i, r);
            }
        }
    }
    for (uint32_t r = 0; r < w.c->n_ranks; ++r) {
        const Call &k = w.ranks[r].calls[n];

        if (!guarded(k.send) || !guarded(k.recv)) {
            return text("rank %u call %u: wrote outside a buffer", r, n);
        }
        for (uint64_t i = 0; !call.in_place && i < call.count; ++i) {
            sv_encode(call.family, sv_input(call.family, call.rop, r, n, i), want);
            if (0 != memcmp(want, k.send.data + i * elem, elem)) {
                return text("rank %u call %u: input element %llu changed", r, n,
                            (unsigned long long) i);
            }
        }
    }
    return "";
}

/* Counters, record and completion of one rank. */
std::string check_state(const World &w, uint32_t r)
{
    const sw_case &c = *w.c;
    const Sw_rank &rank = w.ranks[r];
    const gp_kstatus_t *s = rank.status;
    const gp_kargs_t &last = rank.calls[c.n_calls - 1].args.args;
    uint64_t steps = 0;

    if (s->done != c.n_calls || 0 != s->failed || 0 != s->wait.kind || 0 != rank.arrive->arrived) {
        return text("rank %u: done %llu failed %llu, arrived %llx", r, (unsigned long long) s->done,
                    (unsigned long long) s->failed, (unsigned long long) rank.arrive->arrived);
    }
    for (uint32_t ch = 0; ch < c.channels; ++ch) {
        const gp_program_t *p = rank.programs[ch];
        uint64_t loops = 0;

        for (uint32_t n = 0; n < c.n_calls; ++n) {
            loops += ch < c.calls[n].channels ? rank.calls[n].args.args.geom.loops : 0;
        }
        if (ch < last.geom.channels) {
            steps += p->n_steps * last.geom.loops;
        }
        for (uint32_t i = 0; i < p->n_recv + p->n_send; ++i) {
            bool is_send = i >= p->n_recv;
            uint32_t j = is_send ? i - p->n_recv : i;
            const gp_kconn_t *conn = gp_kchan_conns((void *) &rank.blob[ch * rank.stride]) + i;
            uint64_t end = c.first_step + loops * (is_send ? p->send[j].uses : p->recv[j].uses);
            bool tails = GP_PROTO_SIMPLE == c.protocol || c.gated;

            if (conn->base != end || *conn->head != end || (tails && *conn->tail != end)
                || conn->seen > end) {
                return text("rank %u channel %u %s link %u: step %llu head %llu tail %llu seen "
                            "%llu, want %llu", r, ch, is_send ? "send" : "recv", j,
                            (unsigned long long) conn->base, (unsigned long long) *conn->head,
                            (unsigned long long) *conn->tail, (unsigned long long) conn->seen,
                            (unsigned long long) end);
            }
        }
    }
    if (s->record.algorithm != rank.programs[0]->algorithm || s->record.protocol != c.protocol
        || s->record.channels != last.geom.channels || s->record.threads != c.threads
        || s->record.loops != last.geom.loops || s->record.chunk_elems != last.geom.chunk_elems
        || s->steps != steps) {
        return text("rank %u: record algorithm %u protocol %u channels %u threads %u loops %llu "
                    "chunk %llu steps %llu, want steps %llu", r, s->record.algorithm,
                    s->record.protocol, s->record.channels, s->record.threads,
                    (unsigned long long) s->record.loops,
                    (unsigned long long) s->record.chunk_elems,
                    (unsigned long long) s->steps,
                    (unsigned long long) steps);
    }
    return "";
}

std::string run(World &w, const simt_options_t &options)
{
    std::vector<simt_rank_t> ranks(w.c->n_ranks);
    simt_options_t o = options;
    char report[4000];

    o.split_lines = w.c->gated; /* what gating is for */
    for (uint32_t r = 0; r < w.c->n_ranks; ++r) {
        ranks[r].launches = w.ranks[r].launches.data();
        ranks[r].n_launches = (int) r == w.c->absent ? 0 : w.c->n_calls;
    }
    if (0 != simt_run(ranks.data(), w.c->n_ranks, &o, report, sizeof(report))) {
        return report;
    }
    return "";
}

enum { ASK_PASSES = 400 };

/* First ask what they wait for, and some passes later abort. */
uint64_t abort_all(void *ctx)
{
    World *w = (World *) ctx;
    uint32_t now = w->asked ? GP_KABORT_YES : GP_KABORT_ASK;

    for (Sw_rank &rank : w->ranks) {
        __atomic_store_n(&rank.status->abort, now, __ATOMIC_RELEASE);
    }
    w->asked = true;
    return GP_KABORT_ASK == now ? ASK_PASSES : 0;
}

} // namespace

uint64_t sw_chunk_elems(const sw_case &c, uint32_t elem_bytes)
{
    return gp_data_bytes((gp_protocol_t) c.protocol, c.slot_bytes) / elem_bytes;
}

uint32_t sw_chunks(const sw_case &c)
{
    gp_program_t *p = NULL;
    uint32_t n;

    if (GP_OK != gp_program_emit((gp_algorithm_t) c.algorithm, c.n_ranks, 0, 0, 1, &p)) {
        abort();
    }
    n = p->n_chunks;
    gp_program_free(p);
    return n;
}

std::string sw_name(const sw_case &c)
{
    static const char *const algorithms[] = {"ring", "tree", "flat"};
    static const char *const protocols[] = {"ll", "ll128", "simple"};
    std::string s = text("%s/%s%s ranks %u channels %u threads %u slots %u x %llu first step %llu "
                         "seed %llu skip %u preempt %u:", algorithms[c.algorithm],
                         protocols[c.protocol], c.gated ? " gated" : "", c.n_ranks, c.channels,
                         c.threads, c.n_slots, (unsigned long long) c.slot_bytes,
                         (unsigned long long) c.first_step, (unsigned long long) c.options.seed,
                         c.options.skip, c.options.preempt);

    for (uint32_t n = 0; n < c.n_calls && n < 4; ++n) {
        s += text(" [family %u rop %u count %llu offsets %u %u channels %u%s]", c.calls[n].family,
                  c.calls[n].rop, (unsigned long long) c.calls[n].count, c.calls[n].send_offset,
                  c.calls[n].recv_offset, c.calls[n].channels,
                  c.calls[n].in_place ? " in place" : "");
    }
    return s;
}

std::string sw_run(const sw_case &c)
{
    World w;
    std::string wrong;

    w.c = &c;
    build(w);
    wrong = run(w, c.options);
    for (uint32_t n = 0; n < c.n_calls && wrong.empty(); ++n) {
        wrong = check_data(w, n);
    }
    for (uint32_t r = 0; r < c.n_ranks && wrong.empty(); ++r) {
        wrong = check_state(w, r);
    }
    destroy(w);
    return wrong.empty() ? wrong : sw_name(c) + "\n" + wrong;
}

std::string sw_run_abort(const sw_case &c)
{
    World w;
    std::string wrong;
    simt_options_t options = c.options;

    w.c = &c;
    build(w);
    options.hook = abort_all;
    options.hook_ctx = &w;
    wrong = run(w, options);
    for (uint32_t r = 0; r < c.n_ranks && wrong.empty(); ++r) {
        const gp_kstatus_t *s = w.ranks[r].status;

        if ((int) r == c.absent) {
            continue;
        }
        if (s->done != 1 || s->failed != 1 || 0 != w.ranks[r].arrive->arrived) {
            wrong = text("rank %u: done %llu failed %llu after an abort", r,
                         (unsigned long long) s->done, (unsigned long long) s->failed);
        } else if ((GP_WAIT_DATA != s->wait.kind && GP_WAIT_CREDIT != s->wait.kind)
                   || s->wait.peer >= c.n_ranks || s->wait.peer == r
                   || s->wait.channel >= c.channels || s->wait.step < c.first_step) {
            wrong = text("rank %u: says it waited for kind %u peer %u channel %u step %llu", r,
                         s->wait.kind, s->wait.peer, s->wait.channel,
                         (unsigned long long) s->wait.step);
        } else if ((GP_WAIT_DATA != (s->asked[0] & 0xff) && GP_WAIT_CREDIT != (s->asked[0] & 0xff))
                   || s->asked[0] >> 32 >= c.n_ranks || s->asked[0] >> 32 == r
                   || (s->asked[0] >> 8 & 0xffffff) >= c.channels
                   || s->asked[1] < c.first_step) {
            wrong = text("rank %u: asked, says %llx, step %llu", r,
                         (unsigned long long) s->asked[0], (unsigned long long) s->asked[1]);
        } else if (!guarded(w.ranks[r].calls[0].send) || !guarded(w.ranks[r].calls[0].recv)) {
            wrong = text("rank %u: wrote outside a buffer", r);
        }
    }
    destroy(w);
    return wrong.empty() ? wrong : sw_name(c) + "\n" + wrong;
}
