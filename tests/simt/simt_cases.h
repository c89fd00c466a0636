/*
 * simt_cases.h - random but seeded cases.
 *
 * Owns the choice of what is tried: small numbers of slots and threads, several pieces per step,
 * edges and misalignment are common. GP_SIMT_SEED=<n> gives other choices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SIMT_CASES_H
#define SIMT_CASES_H

#include <cstdlib>
#include <cstring>

#include "tests/simt/simt_values.h"
#include "tests/simt/simt_world.h"

static uint64_t base_seed;
static uint64_t chosen; /* choices made so far */

static uint32_t choose(uint32_t n)
{
    return (uint32_t) (sv_hash(base_seed, chosen++, 99) % n);
}

static void choose_reduction(sw_call *call)
{
    do {
        call->family = choose(GP_FAMILY_COUNT);
    } while (NULL == sw_kernels[call->family][GP_PROTO_LL]);
    do {
        call->rop = choose(GP_ROP_COUNT);
    } while (!sv_valid(call->family, call->rop));
}

/* Counts where partitions go wrong: 1, ranks +- 1, chunk +- 1, an odd number, several loops. */
static uint64_t choose_count(const sw_case *c, const sw_call *call)
{
    uint64_t chunk = sw_chunk_elems(*c, sv_bytes[call->family]);
    uint64_t loop = chunk * sw_chunks(*c) * call->channels;

    switch (choose(11)) {
    case 0: return 1;
    case 1: return c->n_ranks > 1 ? c->n_ranks - 1 : 1;
    case 2: return c->n_ranks + 1;
    case 3: return chunk - 1;
    case 4: return chunk;
    case 5: return chunk + 1;
    case 6: return loop - 1;
    case 7: return loop + 1;
    case 8: return 2 * loop + 1 + choose(200);
    case 9: return 3 * loop;
    default: return 1 + choose((uint32_t) loop);
    }
}

/* A multiple of the element's smallest part, as MPI guarantees at least that. */
static uint32_t choose_offset(uint32_t family)
{
    uint32_t part = sv_bytes[family] >= 8 && family >= GP_FAMILY_C32 ? sv_bytes[family] / 2
                                                                     : sv_bytes[family];

    return 0 == choose(2) ? 0 : choose(16 / part) * part;
}

/*
 * A tree writes an output from one stream that it has read from another. In place, the write
 * follows the read because its value was made of what was read: no machine reorders that, but where
 * only flags travel ThreadSanitizer cannot know.
 */
static bool in_place_is_ordered(const sw_case *c)
{
#if defined(SIMT_TSAN)
    return GP_ALGO_TREE != c->algorithm || GP_PROTO_SIMPLE == c->protocol;
#else
    (void) c;
    return true;
#endif
}

static void choose_case(sw_case *c, uint32_t algorithm, uint32_t protocol)
{
    static const uint32_t slots[] = {1, 2, 2, 3, 8, 16};
    static const uint64_t slot_bytes[] = {256, 512, 768, 2560, 8192};
    uint32_t streams = GP_ALGO_TREE == algorithm ? 2 : 1;

    memset(c, 0, sizeof(*c));
    c->algorithm = algorithm;
    c->protocol = 3 == protocol ? (uint32_t) GP_PROTO_LL128 : protocol;
    c->gated = 3 == protocol;
    c->n_ranks = 1 + choose(5);
    c->n_ranks = 0 == choose(6) ? 8 : c->n_ranks;
    c->channels = 1 + choose(2);
    c->threads = 32 * (streams + choose(3));
    c->n_slots = slots[choose(6)];
    if (1 == c->n_slots && GP_ALGO_FLAT != algorithm) {
        c->n_slots = 2; /* a fused step holds a slot while it waits for the next */
    }
    c->slot_bytes = slot_bytes[choose(5)];
    switch (choose(6)) {
    case 0: c->first_step = (1ull << 31) - 1 - choose(12); break;
    case 1: c->first_step = (1ull << 32) - 1 - choose(12); break;
    case 2: c->first_step = (1ull << 63) - 1 - choose(12); break;
    default: c->first_step = choose(40); break;
    }
    c->n_calls = 1 + choose(3);
    for (uint32_t n = 0; n < c->n_calls; ++n) {
        sw_call *call = &c->calls[n];

        choose_reduction(call);
        call->channels = 1 + choose(c->channels);
        call->count = choose_count(c, call);
        call->send_offset = choose_offset(call->family);
        call->recv_offset = choose_offset(call->family);
        call->in_place = 0 == choose(4) && in_place_is_ordered(c);
    }
    c->absent = -1;
    c->options.seed = sv_hash(base_seed, chosen++, 7);
    c->options.skip = choose(2) * choose(160);
    c->options.preempt = choose(2) * choose(6000);
    c->options.max_passes = 4000000;
}

static inline void choose_seed(void)
{
    const char *seed = getenv("GP_SIMT_SEED");

    base_seed = NULL == seed ? 1 : strtoull(seed, NULL, 0);
}

#endif /* SIMT_CASES_H */
