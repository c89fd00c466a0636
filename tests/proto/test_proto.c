/*
 * test_proto.c - the wire formats of LL, LL128 and Simple: one thread sends, another receives.
 *
 * Valid as C11 and as C++ (test_proto_cxx.cc includes it); also built with ThreadSanitizer, which sees
 * a missing order where the values happen to be right, and with few-bit LL flags, so that they wrap.
 * Few slots, random sizes (empty ones included), steps that cross 2^31, 2^32 and 2^63.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/gp_host_move.h"
#include "device/proto/gp_simple.h"
#include "tests/lib/gp_tap.h"

#define MAX_DATA_BYTES 4096u
#define STEPS 3000u

typedef struct link_case {
    uint32_t protocol;
    uint32_t gated;
    uint32_t n_slots;
    uint64_t first_step;
    uint64_t seed;
    unsigned char *block; /* receiver's: tail, sizes, slots */
    uint64_t *head;       /* sender's */
    uint64_t bad_step;    /* first wrong step + 1, 0: none. Written by the receiver */
    uint64_t zeroings;    /* LL: how often the FIFO was zeroed */
} link_case_t;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Both ends know the size and the bytes of a step. */
static uint32_t size_of(const link_case_t *l, uint64_t step)
{
    uint64_t h = mix(l->seed + step);

    return 0 == h % 7 ? 0 : (uint32_t) (h >> 8) % MAX_DATA_BYTES + 1;
}

static unsigned char byte_of(const link_case_t *l, uint64_t step, uint32_t i)
{
    return (unsigned char) mix(l->seed ^ step * 0x9e3779b97f4a7c15ull ^ i);
}

static gp_conn_t end_of(const link_case_t *l)
{
    gp_conn_t c;

    memset(&c, 0, sizeof(c));
    c.tail = (uint64_t *) (void *) (l->block + GP_FIFO_TAIL_OFFSET);
    c.sizes = (uint64_t *) (void *) (l->block + GP_FIFO_SIZES_OFFSET);
    c.slots = l->block + GP_FIFO_SLOTS_OFFSET;
    c.head = l->head;
    c.step = l->first_step;
    c.seen = l->first_step;
    c.zeroed = l->first_step;
    c.n_slots = l->n_slots;
    c.gated = l->gated;
    c.slot_bytes = gp_wire_bytes((gp_protocol_t) l->protocol, MAX_DATA_BYTES + 240);
    c.slot_bytes = (c.slot_bytes + 127) / 128 * 128;
    return c;
}

static void *sender(void *arg)
{
    link_case_t *l = (link_case_t *) arg;
    gp_conn_t c = end_of(l);
    unsigned char data[MAX_DATA_BYTES + 16];

    for (uint64_t step = l->first_step; step != l->first_step + STEPS; step++) {
        uint32_t bytes = size_of(l, step);

        if (GP_PROTO_LL == l->protocol && step + 1 - c.zeroed > GP_LL_ZERO_STEPS) {
            while (gp_load_acquire_u64(c.head) < step) { /* drained? */
                sched_yield();
            }
            for (uint32_t s = 0; s < c.n_slots; s++) {
                gp_ll_zero_slot(c.slots + s * c.slot_bytes, c.slot_bytes);
            }
            c.zeroed = step;
            l->zeroings++;
        }
        while (!gp_simple_credit(&c, step)) {
            sched_yield();
        }
        for (uint32_t i = 0; i < bytes; i++) {
            data[i] = byte_of(l, step, i);
        }
        gp_host_put(l->protocol, gp_slot_ptr(&c, step), step, 0, data, bytes);
        if (GP_PROTO_SIMPLE == l->protocol || c.gated) {
            gp_simple_publish(&c, step, bytes);
        }
    }
    return NULL;
}

static void *receiver(void *arg)
{
    link_case_t *l = (link_case_t *) arg;
    gp_conn_t c = end_of(l);
    uint64_t lines[(MAX_DATA_BYTES + 256) / 8];
    unsigned char *data = (unsigned char *) lines;

    for (uint64_t step = l->first_step; step != l->first_step + STEPS; step++) {
        uint32_t bytes = size_of(l, step);
        const unsigned char *got = data;

        if (GP_PROTO_SIMPLE == l->protocol || c.gated) {
            while (!gp_simple_ready(&c, step)) {
                sched_yield();
            }
        }
        if (GP_PROTO_SIMPLE == l->protocol) {
            got = gp_slot_ptr(&c, step);
            if (bytes != gp_load_relaxed_u64(c.sizes + gp_slot_of(step, c.n_slots))) {
                l->bad_step = 0 == l->bad_step ? step + 1 : l->bad_step;
            }
        } else {
            while (!gp_host_take(l->protocol, gp_slot_ptr(&c, step), step, 0, bytes, data)) {
                sched_yield();
            }
        }
        for (uint32_t i = 0; i < bytes && 0 == l->bad_step; i++) {
            if (got[i] != byte_of(l, step, i)) {
                l->bad_step = step + 1;
            }
        }
        gp_simple_release(&c, step);
    }
    return NULL;
}

static void run_case(uint32_t protocol, uint32_t gated, uint32_t n_slots, uint64_t first_step)
{
    link_case_t l;
    gp_conn_t c;
    pthread_t threads[2];
    size_t bytes;

    memset(&l, 0, sizeof(l));
    l.protocol = protocol;
    l.gated = gated;
    l.n_slots = n_slots;
    l.first_step = first_step;
    l.seed = 1 + protocol + 10 * gated + 100 * n_slots + first_step;
    c = end_of(&l); /* for the slot's size only */
    bytes = gp_fifo_recv_block_bytes(n_slots, c.slot_bytes);
    l.block = (unsigned char *) aligned_alloc(128, (bytes + 127) / 128 * 128);
    l.head = (uint64_t *) aligned_alloc(128, GP_FIFO_SEND_BLOCK_BYTES);
    memset(l.block, 0, bytes);
    *(uint64_t *) (void *) l.block = first_step;
    *l.head = first_step;
    if (0 != pthread_create(&threads[0], NULL, receiver, &l)
        || 0 != pthread_create(&threads[1], NULL, sender, &l)) {
        gp_bail_out("no thread");
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    gp_check(0 == l.bad_step, "protocol %u gated %u slots %u first step %llu: step %llu is wrong",
             protocol, gated, n_slots, (unsigned long long) first_step,
             (unsigned long long) (l.bad_step - 1));
    if (GP_PROTO_LL == protocol && GP_LL_FLAG_BITS < 10) {
        gp_check(l.zeroings > 10, "flags of %d bits: zeroed %llu times", GP_LL_FLAG_BITS,
                 (unsigned long long) l.zeroings);
    }
    free(l.block);
    free(l.head);
}

/* What no run would show: arithmetic at the edges. */
static void arithmetic(void)
{
    gp_group_begin("sizes, slots, flags");
    gp_check(32768 == gp_data_bytes(GP_PROTO_LL, GP_LL_BUFFER_BYTES / GP_STEPS), "LL step");
    gp_check(576000 == gp_data_bytes(GP_PROTO_LL128, GP_LL128_BUFFER_BYTES / GP_STEPS),
             "LL128 step");
    gp_check(524288 == gp_data_bytes(GP_PROTO_SIMPLE, GP_SIMPLE_BUFFER_BYTES / GP_STEPS), "Simple");
    for (uint64_t bytes = 1; bytes < 2000; bytes++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            uint64_t wire = gp_wire_bytes((gp_protocol_t) p, bytes);
            uint64_t whole = (wire + 255) / 256 * 256;

            gp_check(gp_data_bytes((gp_protocol_t) p, whole) >= bytes,
                     "protocol %u: %llu bytes take "
                     "%llu",
                     p, (unsigned long long) bytes, (unsigned long long) wire);
        }
    }
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t bases[] = {0, (1ull << 31) - 50, (1ull << 32) - 50, (1ull << 63) - 50};

        for (uint32_t b = 0; b < 4; b++) {
            uint64_t step = bases[b] + i;

            gp_check(0 != gp_ll_flag(step) && 0 != gp_ll128_flag(step), "a flag is zero");
            gp_check(gp_ll_flag(step) != gp_ll_flag(step + 1), "two steps share a flag");
            gp_check(gp_ll_flag(step) == gp_ll_flag(step + GP_LL_FLAG_MOD), "flags do not wrap");
            gp_check(gp_credit(step, step, 1) && !gp_credit(step, step + 1, 1)
                         && gp_credit(step, step + 7, 8) && !gp_credit(step, step + 8, 8),
                     "credit at %llu", (unsigned long long) step);
        }
    }
    for (uint32_t v = 0; v < 14; v++) {
        gp_check(gp_ll128_vec_offset(v) % 128 / 16 == v % 7
                     && gp_ll128_vec_offset(v) / 128 == v / 7,
                 "vector %u lies at %u", v, gp_ll128_vec_offset(v));
    }
    gp_group_end();
}

int main(void)
{
    static const uint64_t first_steps[] = {0, (1ull << 31) - 1500, (1ull << 32) - 1500,
                                           (1ull << 63) - 1500};
    static const uint32_t slots[] = {1, 2, 3, 8};

    gp_tap_begin();
    arithmetic();
    for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
        for (uint32_t gated = 0; gated <= (GP_PROTO_LL128 == p); gated++) {
            gp_group_begin("protocol %u%s: sender and receiver", p, gated ? " gated" : "");
            for (uint32_t s = 0; s < 4; s++) {
                for (uint32_t f = 0; f < 4; f++) {
                    run_case(p, gated, slots[s], first_steps[f]);
                }
            }
            gp_group_end();
        }
    }
    return gp_tap_end();
}
