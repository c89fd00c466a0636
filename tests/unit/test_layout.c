/*
 * test_layout.c - programs over several nodes and in slices: proven, and of the shape they should have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "planner/gp_program.h"
#include "planner/gp_verify.h"
#include "tests/lib/gp_tap.h"

#define MOST_RANKS 128u
#define MOST_NODES 32u

/* A layout in memory of its own, and which node a rank is on. */
typedef struct machine {
    gp_layout_t layout;
    uint32_t n_ranks;
    uint32_t order[MOST_RANKS], first[MOST_NODES + 1], node[MOST_RANKS];
} machine_t;

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (state >> 33) % n;
}

/* Nodes of the given sizes (0: random ones of 1 to 9), ranks spread over them at random. */
static void make(machine_t *m, uint32_t n_nodes, uint32_t size)
{
    memset(m, 0, sizeof(*m));
    for (uint32_t k = 0; k < n_nodes; k++) {
        m->first[k + 1] = m->first[k] + (0 != size ? size : 1 + below(4));
    }
    m->n_ranks = m->first[n_nodes];
    for (uint32_t i = 0; i < m->n_ranks; i++) {
        uint32_t j = below(i + 1);

        m->order[i] = m->order[j];
        m->order[j] = i;
    }
    for (uint32_t k = 0; k < n_nodes; k++) {
        for (uint32_t i = m->first[k]; i < m->first[k + 1]; i++) {
            m->node[m->order[i]] = k;
        }
    }
    m->layout.n_nodes = n_nodes;
    m->layout.order = m->order;
    m->layout.first = m->first;
}

typedef struct set {
    uint32_t n;
    gp_program_t *p[MOST_RANKS];
} set_t;

static void emit(set_t *s, const gp_shape_t *shape, uint32_t channel)
{
    s->n = shape->n_ranks;
    for (uint32_t r = 0; r < s->n; r++) {
        gp_status_t status = gp_program_emit_shape(shape, r, channel, &s->p[r]);

        if (GP_OK != status) {
            gp_bail_out("emit algorithm %u ranks %u rank %u channel %u: %d", shape->algorithm, s->n,
                        r, channel, status);
        }
    }
}

static void release(set_t *s)
{
    for (uint32_t r = 0; r < s->n; r++) {
        gp_program_free(s->p[r]);
    }
}

static gp_status_t verify(const set_t *s, uint32_t slots, char *reason, size_t bytes)
{
    return gp_verify((const gp_program_t *const *) s->p, s->n, slots, 3, reason, bytes);
}

/* Connections from other nodes that a node receives on, and the ranks it receives them with. */
static uint32_t entries(const set_t *s, const machine_t *m, uint32_t node, uint32_t *last_rank,
                        uint32_t *ranks)
{
    uint32_t n = 0;

    *ranks = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t here = 0;

        for (uint32_t i = 0; m->node[r] == node && i < s->p[r]->n_recv; i++) {
            here += m->node[s->p[r]->recv[i].peer] != node;
        }
        n += here;
        *ranks += here > 0;
        *last_rank = here > 0 ? r : *last_rank;
    }
    return n;
}

static void check_machine(const machine_t *m)
{
    char reason[300] = "";
    uint32_t entered[2][MOST_NODES];

    for (uint32_t a = GP_ALGO_RING; a <= GP_ALGO_TREE; a++) {
        for (uint32_t channel = 0; channel < 4; channel++) {
            gp_shape_t shape = {a, m->n_ranks, 4, 1, &m->layout};
            set_t s;

            emit(&s, &shape, channel);
            for (uint32_t slots = 2; slots <= 8; slots *= 2) {
                gp_check(GP_OK == verify(&s, slots, reason, sizeof(reason)),
                         "algorithm %u, %u ranks on %u nodes, channel %u, %u slots: %s", a, s.n,
                         m->layout.n_nodes, channel, slots, reason);
            }
            for (uint32_t k = 0; k < m->layout.n_nodes && m->layout.n_nodes > 1; k++) {
                uint32_t rank = 0, ranks, n = entries(&s, m, k, &rank, &ranks);

                gp_check(1 == ranks, "algorithm %u channel %u: node %u is entered at %u ranks", a,
                         channel, k, ranks);
                gp_check(GP_ALGO_RING != a || 1 == n,
                         "ring channel %u: node %u is entered %u times", channel, k, n);
                gp_check(n <= 3, "tree channel %u: node %u has %u neighbours", channel, k, n);
                if (channel % 2 == 0) {
                    entered[channel / 2][k] = rank;
                }
                gp_check(2 != channel || 1 == m->first[k + 1] - m->first[k]
                             || entered[0][k] != entered[1][k],
                         "algorithm %u: node %u is entered at rank %u on channels 0 and 2", a, k,
                         rank);
            }
            release(&s);
        }
    }
}

static void test_nodes(void)
{
    machine_t m;

    gp_group_begin(
        "ring and tree over nodes: proven; each node is entered at one rank, which turns");
    for (uint32_t nodes = 1; nodes <= 16; nodes++) {
        make(&m, nodes, 1);
        check_machine(&m);
        make(&m, nodes, 2);
        check_machine(&m);
        make(&m, nodes, nodes <= 8 ? 8 : 4);
        check_machine(&m);
        make(&m, nodes, 0);
        check_machine(&m);
    }
    gp_group_end();
}

/* Interior in one tree: a leaf in the other, but for one node at most. */
static void test_two_trees(void)
{
    machine_t m;

    gp_group_begin("over nodes, the two trees load the network evenly");
    for (uint32_t nodes = 2; nodes <= MOST_NODES; nodes++) {
        uint32_t both = 0;

        make(&m, nodes, 2);
        for (uint32_t k = 0; k < nodes; k++) {
            uint32_t interior = 0;

            for (uint32_t channel = 0; channel < 2; channel++) {
                gp_shape_t shape = {GP_ALGO_TREE, m.n_ranks, 2, 1, &m.layout};
                uint32_t rank, ranks;
                set_t s;

                emit(&s, &shape, channel);
                interior += entries(&s, &m, k, &rank, &ranks) > 1;
                release(&s);
            }
            both += 2 == interior;
        }
        gp_check(both <= 1, "%u nodes: %u are interior in both trees", nodes, both);
    }
    gp_group_end();
}

static void test_slices(void)
{
    gp_group_begin("a ring in K slices: proven with K + 1 slots and more, a deadlock with K");
    for (uint32_t n = 2; n <= 24; n++) {
        for (uint32_t slices = 1; slices <= 4; slices++) {
            gp_shape_t shape = {GP_ALGO_RING, n, 2, slices, NULL};
            char reason[300] = "";
            set_t s;

            emit(&s, &shape, n % 2);
            gp_check(n * slices == s.p[0]->n_chunks, "%u ranks: %u chunks", n, s.p[0]->n_chunks);
            for (uint32_t slots = 1; slots <= 8; slots++) {
                gp_status_t status = verify(&s, slots, reason, sizeof(reason));

                gp_check(status == (slots > slices ? GP_OK : GP_ERR_INVALID)
                             && (slots > slices || NULL != strstr(reason, "deadlock")),
                         "%u ranks, %u slices, %u slots: %d %s", n, slices, slots, status, reason);
            }
            release(&s);
        }
    }
    gp_group_end();
}

static void test_many_ranks(void)
{
    static const struct {
        uint32_t algorithm, n, slots;
    } samples[] = {
        {GP_ALGO_RING, 100, 2},   {GP_ALGO_RING, 257, 3},  {GP_ALGO_RING, 1024, 2},
        {GP_ALGO_TREE, 255, 1},   {GP_ALGO_TREE, 1000, 2}, {GP_ALGO_TREE, 3001, 1},
        {GP_ALGO_TREE, 4096, 2},  {GP_ALGO_FLAT, 100, 1},  {GP_ALGO_FLAT, 511, 2},
        {GP_ALGO_FLAT, 1024, 1},
    };

    gp_group_begin("samples of up to 4096 ranks are proven");
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        uint32_t n = samples[i].n;
        gp_program_t **p = calloc(n, sizeof(*p));
        char reason[300] = "";

        for (uint32_t r = 0; r < n; r++) {
            if (GP_OK
                != gp_program_emit((gp_algorithm_t) samples[i].algorithm, n, r, (uint32_t) i % 2, 2,
                                   &p[r])) {
                gp_bail_out("emit algorithm %u ranks %u rank %u", samples[i].algorithm, n, r);
            }
        }
        gp_check(GP_OK
                     == gp_verify((const gp_program_t *const *) p, n, samples[i].slots, 2, reason,
                                  sizeof(reason)),
                 "algorithm %u, %u ranks, %u slots: %s", samples[i].algorithm, n, samples[i].slots,
                 reason);
        for (uint32_t r = 0; r < n; r++) {
            gp_program_free(p[r]);
        }
        free(p);
    }
    gp_group_end();
}

static void test_bad(void)
{
    static const uint32_t order[4] = {0, 1, 2, 3}, twice[4] = {0, 1, 1, 3}, far[4] = {0, 1, 2, 4};
    static const uint32_t first[3] = {0, 2, 4}, empty[3] = {0, 0, 4}, wrong[3] = {0, 2, 3};
    const gp_layout_t layouts[] = {{2, twice, first}, {2, far, first}, {2, order, empty},
                                   {2, order, wrong}, {0, order, first}};
    gp_shape_t shape = {GP_ALGO_TREE, 4, 1, 1, NULL};
    gp_program_t *p;

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        shape.layout = &layouts[i];
        gp_ok(GP_ERR_INVALID == gp_program_emit_shape(&shape, 0, 0, &p), "layout %zu is refused",
              i);
    }
    shape.layout = NULL;
    shape.slices = 0;
    gp_ok(GP_ERR_INVALID == gp_program_emit_shape(&shape, 0, 0, &p), "no slices: refused");
    shape.slices = GP_MOST_SLICES + 1;
    gp_ok(GP_ERR_INVALID == gp_program_emit_shape(&shape, 0, 0, &p), "too many slices: refused");
}

int main(void)
{
    gp_tap_begin();
    test_nodes();
    test_two_trees();
    test_slices();
    test_many_ranks();
    test_bad();
    return gp_tap_end();
}
