/*
 * gp_tune.h - the tuning file: measured choices that replace the automatic one.
 *
 * A text table, one rule a line, "#" starts a comment:
 *
 *     executor ranks nodes bytes_from algorithm protocol channels threads
 *     cuda     2-4   1     64K        ring      ll       8        512
 *
 * ranks and nodes: N, N-M or *. bytes_from: a number, with K, M or G as 2^10, 2^20 or 2^30.
 * channels and threads: a number, or auto (or 0): the planner decides. A rule holds from its
 * bytes_from up to the next rule's of the same executor, ranks and nodes. Of several ranges that
 * hold a communicator the innermost that has a rule for these bytes counts; two ranges of an
 * executor are therefore disjoint, equal, or one within the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TUNE_H
#define GP_TUNE_H

#include <stdio.h>

#include "planner/gp_plan.h"

#define GP_TUNE_ANY UINT32_MAX       /* the upper end of "*" */
#define GP_TUNE_MOST_RULES 65536u
#define GP_TUNE_MOST_RANGES 1024u    /* different (executor, ranks, nodes) */
#define GP_TUNE_MOST_LINE_CHARS 200u /* of a line without comment, a run of blanks as one */
#define GP_TUNE_MOST_REPORTS 64u     /* illegal lines named one by one; the rest are counted */

typedef struct gp_tune gp_tune_t;

typedef struct gp_tune_rule {
    uint64_t bytes_from; /* bytes of the message: count x element */
    uint32_t executor;   /* gp_executor_t */
    uint32_t ranks_from; /* inclusive, >= 1; likewise below */
    uint32_t ranks_to;
    uint32_t nodes_from;
    uint32_t nodes_to;
    uint32_t algorithm;  /* gp_algorithm_t below GP_ALGO_CUSTOM */
    uint32_t protocol;   /* gp_protocol_t */
    uint32_t channels;   /* 0: the planner decides */
    uint32_t threads;    /* CUDA threads of a block; 0: the planner decides */
    uint32_t line;       /* of the file, from 1 */
} gp_tune_rule_t;

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Read a tuning file. A line that is not a legal rule is reported through gp_log() as "path:line:
 * what is wrong" and left out; so is one whose range crosses that of an earlier rule, or repeats
 * its bytes_from. After GP_TUNE_MOST_REPORTS such lines the others are counted in one more message.
 * LL128 is not checked here: whether it is allowed depends on the communicator.
 * GP_OK: *tune_p is the caller's, with what was legal, perhaps no rule at all.
 * GP_ERR_SYSTEM: not a regular file or not readable; errno says why, nothing is logged.
 * GP_ERR_NO_MEMORY.
 */
gp_status_t gp_tune_read(const char *path, gp_tune_t **tune_p);

void gp_tune_free(gp_tune_t *tune); /* NULL is allowed */

uint32_t gp_tune_n_rules(const gp_tune_t *tune); /* 0 for NULL */

/*
 * Of what the rules mean: comments, blanks, the order of lines and the spelling of a number do not
 * change it. 0 for NULL and for a file without rules.
 */
uint64_t gp_tune_hash(const gp_tune_t *tune);

/*
 * The rule for a call of `bytes` bytes: 1 and a copy in *rule, or 0. Pure; below 100 ns unless
 * hundreds of ranges hold the same number of ranks. tune may be NULL.
 */
int gp_tune_lookup(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks, uint32_t n_nodes,
                   uint64_t bytes, gp_tune_rule_t *rule);

/*
 * The combinations that rules can choose on such a communicator: bit algorithm * GP_PROTO_COUNT +
 * protocol. tune may be NULL.
 */
uint32_t gp_tune_sets(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks,
                      uint32_t n_nodes);

/*
 * What a plan says of a rule of this table: "tuning file line 12", or, with why not NULL, "tuning
 * file line 12: ring/ll128, not allowed here: <why>". why: static text. The result lives as long as
 * the table; equal arguments give the same text. Any thread.
 */
const char *gp_tune_reason(const gp_tune_t *tune, const gp_tune_rule_t *rule, const char *why);

/*
 * Write the rules, sorted, as gp_tune_read() reads them back with the same hash. GP_ERR_SYSTEM when
 * the stream fails (logged).
 */
gp_status_t gp_tune_write(const gp_tune_t *tune, FILE *out);

#ifdef __cplusplus
}
#endif

#endif /* GP_TUNE_H */
