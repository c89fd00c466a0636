/*
 * gp_tree.c - the double binary tree program.
 *
 * Two binary trees over the ranks; even channels use tree A, odd channels tree B, so that a call that
 * uses the first few channels has both (with one channel: A). Tree A over N nodes, in-order numbered:
 *
 *            4                 the parent and children of node i > 0 follow from its lowest set bit:
 *        2       6             a node with lowest bit b covers (i - b, i + b); node 0 is the root and
 *      1   3   5   7           has one child, the largest power of two below N
 *
 * so the odd nodes are leaves. Tree B is tree A mirrored (N even: i -> N-1-i) or shifted (N odd:
 * i -> i-1 mod N), which makes every interior node of one a leaf of the other, except that for odd N
 * one node can be interior in neither or the root in one (Sanders, Speck, Träff 2009).
 *
 *   stream 0 (up)     [own, children...] -> parent;   root: -> output, send to children
 *   stream 1 (down)   [parent] -> output, send to children
 *
 * Over several nodes the trees are of nodes: their first ranks (as gp_rank_at() turns them) are in the
 * trees, and the others hang from them as a chain, so that a node sends no more over the network than it
 * must:
 *
 *   first rank    parent: first rank of the parent node; children: next in the chain, then first ranks
 *   others        parent: the one before in the chain; child: the one behind
 *
 * The root fuses the end of the reduction with the start of the broadcast. Order of the sum is fixed by
 * the tree, computed once at the root: all ranks hold the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_emit.h"

#define NO_NODE 0xffffffffu

typedef struct node {
    uint32_t parent;
    uint32_t children[3];
    uint32_t n_children;
} node_t;

static uint32_t largest_pow2_below(uint32_t n)
{
    uint32_t p = 1;

    while (p < n - p) { /* 2p < n without overflow */
        p *= 2;
    }
    return p;
}

/* Node i of tree A over n >= 2 nodes. */
static node_t tree_a(uint32_t n, uint32_t i)
{
    node_t t = {NO_NODE, {NO_NODE, NO_NODE, NO_NODE}, 0};
    uint32_t bit;

    if (0 == i) {
        t.children[t.n_children++] = largest_pow2_below(n);
        return t;
    }
    bit = i & (~i + 1u);
    /* The parent covers twice the range; past the end it is found by going left. */
    t.parent = (i ^ bit) | (bit << 1);
    if (t.parent >= n) {
        t.parent = i ^ bit;
    }
    if (bit > 1) {
        uint32_t half = bit >> 1;

        t.children[t.n_children++] = i - half;
        /* The right subtree may be cut off by n: its top is the largest power of two that fits. */
        while (half > 0 && i + half >= n) {
            half >>= 1;
        }
        if (half > 0) {
            t.children[t.n_children++] = i + half;
        }
    }
    return t;
}

static node_t tree_of(uint32_t n, uint32_t rank, int second)
{
    node_t t;

    if (!second) {
        return tree_a(n, rank);
    }
    if (0 == n % 2) {
        t = tree_a(n, n - 1 - rank);
        t.parent = NO_NODE != t.parent ? n - 1 - t.parent : NO_NODE;
        for (uint32_t c = 0; c < t.n_children; c++) {
            t.children[c] = n - 1 - t.children[c];
        }
    } else {
        t = tree_a(n, 0 == rank ? n - 1 : rank - 1);
        t.parent = NO_NODE != t.parent ? (t.parent + 1) % n : NO_NODE;
        for (uint32_t c = 0; c < t.n_children; c++) {
            t.children[c] = (t.children[c] + 1) % n;
        }
    }
    return t;
}

/* Parent and children of a rank, as ranks, where there are several nodes. */
static node_t over_nodes(const gp_shape_t *shape, uint32_t rank, uint32_t channel, int second)
{
    const uint32_t *first = shape->layout->first;
    uint32_t at = gp_position_of(shape, channel, rank), k = gp_node_at(shape->layout, at);
    node_t t = {NO_NODE, {NO_NODE, NO_NODE, NO_NODE}, 0}, of_nodes;

    if (at + 1 < first[k + 1]) {
        t.children[t.n_children++] = gp_rank_at(shape, channel, at + 1);
    }
    if (at > first[k]) {
        t.parent = gp_rank_at(shape, channel, at - 1);
        return t;
    }
    of_nodes = tree_of(shape->layout->n_nodes, k, second);
    if (NO_NODE != of_nodes.parent) {
        t.parent = gp_rank_at(shape, channel, first[of_nodes.parent]);
    }
    for (uint32_t c = 0; c < of_nodes.n_children; c++) {
        t.children[t.n_children++] = gp_rank_at(shape, channel, first[of_nodes.children[c]]);
    }
    return t;
}

gp_status_t gp_emit_tree(const gp_shape_t *shape, uint32_t rank, uint32_t channel,
                         gp_program_t **program_p)
{
    int second = shape->n_channels > 1 && 1 == channel % 2;
    int nodes = NULL != shape->layout && shape->layout->n_nodes > 1;
    node_t t = nodes ? over_nodes(shape, rank, channel, second)
                     : tree_of(shape->n_ranks, rank, second);
    uint32_t kids = t.n_children;
    int root = NO_NODE == t.parent;
    uint32_t n_refs = root ? 1 + 2 * kids : 1 + kids + 1 + 1 + kids;
    uint32_t n_links = kids + (root ? 0 : 1);
    gp_emit_t e;
    gp_status_t status = gp_emit_begin(&e, root ? 1 : 2, root ? 1 : 2, n_refs, n_links, n_links);

    if (GP_OK != status) {
        return status;
    }
    e.program->n_chunks = 1;
    for (uint32_t c = 0; c < kids; c++) {
        e.program->recv[c].peer = t.children[c];
        e.program->send[c].peer = t.children[c];
    }
    if (!root) {
        e.program->recv[kids].peer = t.parent;
        e.program->send[kids].peer = t.parent;
    }
    gp_emit_stream(&e);
    gp_emit_step(&e, 0, root ? GP_STEP_OUTPUT : 0);
    gp_emit_input_own(&e);
    for (uint32_t c = 0; c < kids; c++) {
        gp_emit_input(&e, c);
    }
    if (root) {
        for (uint32_t c = 0; c < kids; c++) {
            gp_emit_send(&e, c);
        }
    } else {
        gp_emit_send(&e, kids);
        gp_emit_stream(&e);
        gp_emit_step(&e, 0, GP_STEP_OUTPUT);
        gp_emit_input(&e, kids);
        for (uint32_t c = 0; c < kids; c++) {
            gp_emit_send(&e, c);
        }
    }
    return gp_emit_end(&e, program_p);
}
