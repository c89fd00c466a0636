/*
 * gp_tune_int.h - the table of a tuning file; private to gp_tune*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TUNE_INT_H
#define GP_TUNE_INT_H

#include "planner/gp_tune.h"

typedef struct gp_tune_texts gp_tune_texts_t;

/* Rules with the same executor, ranks and nodes. */
typedef struct gp_tune_range {
    uint32_t first; /* in rules, by bytes_from */
    uint32_t count; /* >= 1 */
} gp_tune_range_t;

/*
 * Of one executor: numbers of ranks cut where a range begins or ends. Between breaks[i] and the
 * next break the same ranges hold: list[lists[i] .. lists[i + 1] - 1], the innermost first.
 */
typedef struct gp_tune_index {
    uint32_t n_breaks;
    uint32_t *breaks;
    uint32_t *lists; /* n_breaks + 1 */
    uint32_t *list;  /* indices into ranges */
} gp_tune_index_t;

struct gp_tune {
    uint32_t n_rules;
    uint32_t n_ranges;
    gp_tune_rule_t *rules; /* by executor, ranks, nodes, bytes_from */
    gp_tune_range_t *ranges;
    gp_tune_index_t index[GP_EXEC_COUNT];
    uint64_t hash;
    gp_tune_texts_t *texts; /* what gp_tune_reason() has given out */
};

/*
 * Parse one line: `text` without comment, blanks squeezed to one between fields, not empty; it is
 * cut up. NULL and *rule (but for its line), or what is wrong; static text, and in *token the field
 * it is about or NULL.
 */
const char *gp_tune_parse(char *text, gp_tune_rule_t *rule, const char **token);

/* NULL when out of memory; gp_tune_free() frees it with its table. */
gp_tune_texts_t *gp_tune_texts_new(void);

static inline int gp_tune_same_range(const gp_tune_rule_t *a, const gp_tune_rule_t *b)
{
    return a->executor == b->executor && a->ranks_from == b->ranks_from
           && a->ranks_to == b->ranks_to && a->nodes_from == b->nodes_from
           && a->nodes_to == b->nodes_to;
}

#endif /* GP_TUNE_INT_H */
