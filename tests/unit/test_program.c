/*
 * test_program.c - the shapes of the emitted programs, against independent descriptions of them.
 *
 * That they are allreduces is test_verify's business; here: that a ring is the ring the documentation
 * draws, that the two trees are trees and complement each other, that flat sums in rank order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "planner/gp_program.h"

#define MOST_RANKS 64u

static gp_program_t *emit(gp_algorithm_t a, uint32_t n, uint32_t rank, uint32_t channel,
                          uint32_t n_channels)
{
    gp_program_t *p = NULL;
    gp_status_t status = gp_program_emit(a, n, rank, channel, n_channels, &p);

    if (GP_OK != status) {
        gp_bail_out("emit %d n %u rank %u channel %u/%u: %d", a, n, rank, channel, n_channels,
                    status);
    }
    return p;
}

static void test_ring(void)
{
    gp_group_begin("ring: neighbours, chunks, fused steps, ranks 2-%u, both directions",
                   MOST_RANKS);
    for (uint32_t n = 2; n <= MOST_RANKS; n++) {
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t channel = 0; channel < 2; channel++) {
                gp_program_t *p = emit(GP_ALGO_RING, n, r, channel, 2);
                uint32_t up = (r + 1) % n, down = (r + n - 1) % n;
                uint32_t next = 0 == channel ? up : down, prev = 0 == channel ? down : up;

                gp_check(1 == p->n_streams && 1 == p->n_recv && 1 == p->n_send && n == p->n_chunks
                             && 2 * n - 1 == p->n_steps,
                         "n %u rank %u channel %u: sizes", n, r, channel);
                gp_check(prev == p->recv[0].peer && next == p->send[0].peer,
                         "n %u rank %u channel %u: from %u to %u", n, r, channel, p->recv[0].peer,
                         p->send[0].peer);
                for (uint32_t k = 0; k < p->n_steps; k++) {
                    const gp_step_t *s = &p->steps[k];
                    /* In ring positions: the chunk that k hops ago was one position behind. */
                    uint32_t pos = 0 == channel ? r : n - 1 - r;
                    uint32_t chunk = (pos + 2 * n - 1 - k) % n;
                    int reduces = k >= 1 && k <= n - 1;
                    int outputs = k >= n - 1;

                    gp_check(chunk == s->chunk,
                             "n %u rank %u channel %u step %u: chunk %u, want %u", n, r, channel, k,
                             s->chunk, chunk);
                    gp_check(s->n_in == (reduces ? 2u : 1u) && outputs == (int) s->flags
                                 && s->n_send == (k < 2 * n - 2 ? 1u : 0u),
                             "n %u rank %u channel %u step %u: %u inputs %u sends flags %u", n, r,
                             channel, k, s->n_in, s->n_send, s->flags);
                    gp_check((GP_REF_OWN == p->refs[s->in_first + s->n_in - 1].conn)
                                 == (k <= n - 1),
                             "n %u rank %u step %u: own input last while reducing", n, r, k);
                }
                gp_program_free(p);
            }
        }
    }
    gp_group_end();
}

/* Parent of each rank in the tree that the programs of a channel make; -1 for the root. */
typedef struct tree {
    int parent[MOST_RANKS];
    uint32_t n_children[MOST_RANKS];
} tree_t;

static tree_t read_tree(uint32_t n, uint32_t channel, uint32_t n_channels)
{
    tree_t t;

    memset(&t, 0, sizeof(t));
    for (uint32_t r = 0; r < n; r++) {
        gp_program_t *p = emit(GP_ALGO_TREE, n, r, channel, n_channels);
        const gp_step_t *up = &p->steps[p->streams[0].first];

        /* One stream: root. Else the up stream's only send goes to the parent. */
        t.parent[r] = -1;
        if (2 == p->n_streams) {
            gp_check(1 == up->n_send, "n %u rank %u: up step sends %u times", n, r, up->n_send);
            t.parent[r] = (int) p->send[p->refs[up->send_first].conn].peer;
        }
        t.n_children[r] = up->n_in - 1;
        gp_check(GP_REF_OWN == p->refs[up->in_first].conn, "n %u rank %u: own comes first", n, r);
        gp_check(1 == p->n_chunks, "n %u rank %u: %u chunks", n, r, p->n_chunks);
        gp_program_free(p);
    }
    return t;
}

static uint32_t depth_of(const tree_t *t, uint32_t n, uint32_t r)
{
    uint32_t depth = 0;

    for (int at = (int) r; at >= 0 && depth <= n; at = t->parent[at]) {
        depth++;
    }
    return depth - 1; /* n: a cycle */
}

static uint32_t ceil_log2(uint32_t n)
{
    uint32_t bits = 0;

    while ((1u << bits) < n) {
        bits++;
    }
    return bits;
}

static void check_tree(const tree_t *t, uint32_t n, const char *name)
{
    uint32_t roots = 0, children[MOST_RANKS] = {0};

    for (uint32_t r = 0; r < n; r++) {
        roots += t->parent[r] < 0;
        if (t->parent[r] >= 0) {
            children[t->parent[r]]++;
        }
        gp_check(depth_of(t, n, r) <= ceil_log2(n) + 1, "%s n %u rank %u: depth %u", name, n, r,
                 depth_of(t, n, r));
    }
    gp_check(1 == roots, "%s n %u: %u roots", name, n, roots);
    for (uint32_t r = 0; r < n; r++) {
        gp_check(children[r] == t->n_children[r] && children[r] <= 2,
                 "%s n %u rank %u: %u ranks name it their parent, it sums %u children", name, n, r,
                 children[r], t->n_children[r]);
    }
}

static void test_trees(void)
{
    gp_group_begin("tree: two binary trees of logarithmic depth that share the work, ranks 2-%u",
                   MOST_RANKS);
    for (uint32_t n = 2; n <= MOST_RANKS; n++) {
        tree_t a = read_tree(n, 0, 2), b = read_tree(n, 1, 2), alone = read_tree(n, 0, 1);
        uint32_t both = 0;

        check_tree(&a, n, "first tree");
        check_tree(&b, n, "second tree");
        gp_check(0 == memcmp(&a, &alone, sizeof(a)), "n %u: one channel uses the first tree", n);
        if (n > 2) {
            gp_check(0 != memcmp(&a, &b, sizeof(a)), "n %u: the trees are the same", n);
        }
        /* A rank that is interior in both would carry twice the traffic of the others. */
        for (uint32_t r = 0; r < n; r++) {
            both += a.n_children[r] > 0 && b.n_children[r] > 0;
        }
        gp_check(both <= 1, "n %u: %u ranks are interior in both trees", n, both);
    }
    gp_group_end();
}

static void test_flat(void)
{
    gp_group_begin("flat: sends before it reduces, in rank order, ranks 2-%u", MOST_RANKS);
    for (uint32_t n = 2; n <= MOST_RANKS; n++) {
        for (uint32_t r = 0; r < n; r++) {
            gp_program_t *p = emit(GP_ALGO_FLAT, n, r, 0, 1);
            const gp_step_t *send = &p->steps[0], *sum = &p->steps[1];

            gp_check(2 == p->n_steps && 1 == p->n_streams && n - 1 == send->n_send
                         && 0 == send->flags && n == sum->n_in && GP_STEP_OUTPUT == sum->flags
                         && 0 == sum->n_send,
                     "n %u rank %u: two steps", n, r);
            for (uint32_t k = 0; k < sum->n_in; k++) {
                uint32_t conn = p->refs[sum->in_first + k].conn;
                uint32_t from = GP_REF_OWN == conn ? r : p->recv[conn].peer;

                gp_check(from == k, "n %u rank %u: operand %u is rank %u's", n, r, k, from);
            }
            gp_program_free(p);
        }
    }
    gp_group_end();
}

static void test_edges(void)
{
    gp_program_t *p = NULL;
    int all = 1;

    for (int a = 0; a < GP_ALGO_CUSTOM; a++) {
        p = emit((gp_algorithm_t) a, 1, 0, 3, 4);
        all = all && 1 == p->n_steps && 0 == p->n_recv && 0 == p->n_send && 1 == p->n_chunks
              && GP_STEP_OUTPUT == p->steps[0].flags && (uint32_t) a == p->algorithm
              && 3 == p->channel;
        gp_program_free(p);
    }
    gp_ok(all, "one rank: a copy, whatever the algorithm");
    p = NULL;
    gp_ok(GP_ERR_INVALID == gp_program_emit(GP_ALGO_RING, 0, 0, 0, 1, &p), "no ranks: refused");
    gp_ok(GP_ERR_INVALID == gp_program_emit(GP_ALGO_RING, 4, 4, 0, 1, &p), "rank 4 of 4: refused");
    gp_ok(GP_ERR_INVALID == gp_program_emit(GP_ALGO_TREE, 4, 0, 2, 2, &p),
          "channel 2 of 2: refused");
    gp_ok(GP_ERR_INVALID == gp_program_emit(GP_ALGO_CUSTOM, 4, 0, 0, 1, &p),
          "custom programs have no emitter");
    gp_ok(NULL == p, "refusals leave the output alone");
    gp_program_free(NULL);
    gp_pass("freeing NULL is allowed");
}

static void test_purity(void)
{
    int same = 1;

    for (int a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t n = 1; n <= 16; n++) {
            for (uint32_t r = 0; r < n; r++) {
                gp_program_t *p = emit((gp_algorithm_t) a, n, r, 1, 2);
                gp_program_t *q = emit((gp_algorithm_t) a, n, r, 1, 2);

                same = same && p->n_refs == q->n_refs && p->n_steps == q->n_steps
                       && 0 == memcmp(p->steps, q->steps, p->n_steps * sizeof(*p->steps))
                       && 0 == memcmp(p->refs, q->refs, p->n_refs * sizeof(*p->refs));
                gp_program_free(p);
                gp_program_free(q);
            }
        }
    }
    gp_ok(same, "the same arguments give the same program");
}

int main(void)
{
    gp_tap_begin();
    test_ring();
    test_trees();
    test_flat();
    test_edges();
    test_purity();
    return gp_tap_end();
}
