/*
 * gp_tune_read.c - from the text of a tuning file to its table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_tune_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device/proto/gp_log.h"

/* A file being read. */
typedef struct reader {
    const char *path;
    FILE *file;
    uint32_t line;     /* of the line in text */
    uint32_t reported; /* illegal lines so far */
    int at_end;
    int too_long;      /* the line in text was cut */
    int unprintable;   /* it holds a character that no rule has */
    char text[GP_TUNE_MOST_LINE_CHARS + 1];
} reader_t;

/* Rules while they come in; ranges hold one rule each, for its range. */
typedef struct rules {
    gp_tune_rule_t *rules;
    uint32_t n, room;
    gp_tune_rule_t ranges[GP_TUNE_MOST_RANGES];
    uint32_t n_ranges;
    uint32_t last; /* the range of the rule added last: mostly the next one's too */
} rules_t;

static void report(reader_t *in, uint32_t line, const char *what, const char *token,
                   uint32_t other_line)
{
    char more[32] = "";

    if (in->reported++ >= GP_TUNE_MOST_REPORTS) {
        return;
    }
    if (0 != other_line) {
        snprintf(more, sizeof(more), " line %u", other_line);
    }
    if (NULL != token) {
        gp_log(GP_LOG_WARN, "%s:%u: %s%s: \"%.40s\"; the line is left out", in->path, line, what,
               more, token);
    } else {
        gp_log(GP_LOG_WARN, "%s:%u: %s%s; the line is left out", in->path, line, what, more);
    }
}

/* The next line into in->text: no comment, no blanks at its ends, one between fields. 0: none. */
static int next_line(reader_t *in)
{
    size_t n = 0;
    int c, comment = 0, blank = 0, any = 0;

    in->too_long = 0;
    in->unprintable = 0;
    while (!in->at_end) {
        c = getc(in->file);
        in->at_end = EOF == c;
        if (EOF == c || '\n' == c) {
            break;
        }
        any = 1;
        comment |= '#' == c;
        if (comment) {
            continue;
        }
        if (' ' == c || '\t' == c || '\r' == c) {
            blank = 0 != n;
            continue;
        }
        in->unprintable |= c < 33 || c > 126;
        if (n + (size_t) blank >= GP_TUNE_MOST_LINE_CHARS) {
            in->too_long = 1;
            continue;
        }
        if (blank) {
            in->text[n++] = ' ';
        }
        blank = 0;
        in->text[n++] = (char) c;
    }
    in->text[n] = '\0';
    in->line++;
    return !in->at_end || any;
}

static int within(uint32_t from, uint32_t to, uint32_t outer_from, uint32_t outer_to)
{
    return from >= outer_from && to <= outer_to;
}

/* Ranges that have a communicator in common, and neither is within the other. */
static int cross(const gp_tune_rule_t *a, const gp_tune_rule_t *b)
{
    if (a->executor != b->executor || a->ranks_to < b->ranks_from || b->ranks_to < a->ranks_from
        || a->nodes_to < b->nodes_from || b->nodes_to < a->nodes_from) {
        return 0;
    }
    return !(within(a->ranks_from, a->ranks_to, b->ranks_from, b->ranks_to)
             && within(a->nodes_from, a->nodes_to, b->nodes_from, b->nodes_to))
           && !(within(b->ranks_from, b->ranks_to, a->ranks_from, a->ranks_to)
                && within(b->nodes_from, b->nodes_to, a->nodes_from, a->nodes_to));
}

/* Find or make the range of `rule`. 0: not legal, reported. */
static int add_range(reader_t *in, rules_t *to, const gp_tune_rule_t *rule)
{
    const gp_tune_rule_t *crossed = NULL;

    if (0 != to->n_ranges && gp_tune_same_range(&to->ranges[to->last], rule)) {
        return 1;
    }
    for (uint32_t i = 0; i < to->n_ranges; i++) {
        if (gp_tune_same_range(&to->ranges[i], rule)) {
            to->last = i;
            return 1;
        }
        if (NULL == crossed && cross(&to->ranges[i], rule)) {
            crossed = &to->ranges[i];
        }
    }
    if (NULL != crossed) {
        report(in, rule->line, "ranks and nodes: the range overlaps, and neither holds, that of",
               NULL, crossed->line);
        return 0;
    }
    if (GP_TUNE_MOST_RANGES == to->n_ranges) {
        report(in, rule->line, "more than 1024 different ranges", NULL, 0);
        return 0;
    }
    to->last = to->n_ranges;
    to->ranges[to->n_ranges++] = *rule;
    return 1;
}

static gp_status_t add_rule(reader_t *in, rules_t *to, const gp_tune_rule_t *rule)
{
    if (GP_TUNE_MOST_RULES == to->n) {
        report(in, rule->line, "more than 65536 rules", NULL, 0);
        return GP_OK;
    }
    if (!add_range(in, to, rule)) {
        return GP_OK;
    }
    if (to->n == to->room) {
        uint32_t room = 0 != to->room ? 2 * to->room : 64;
        gp_tune_rule_t *grown = realloc(to->rules, room * sizeof(*grown));

        if (NULL == grown) {
            return GP_ERR_NO_MEMORY;
        }
        to->rules = grown;
        to->room = room;
    }
    to->rules[to->n++] = *rule;
    return GP_OK;
}

static gp_status_t read_rules(reader_t *in, rules_t *to)
{
    while (next_line(in)) {
        const char *token = NULL, *wrong = NULL;
        gp_tune_rule_t rule;
        gp_status_t status;

        if (in->unprintable) { /* looked at first: a zero byte looks like an empty line */
            wrong = "a character that is not printable ASCII";
        } else if ('\0' == in->text[0]) {
            continue;
        } else if (in->too_long) {
            wrong = "longer than a rule can be";
        } else {
            wrong = gp_tune_parse(in->text, &rule, &token);
        }
        if (NULL != wrong) {
            report(in, in->line, wrong, token, 0);
            continue;
        }
        rule.line = in->line;
        status = add_rule(in, to, &rule);
        if (GP_OK != status) {
            return status;
        }
    }
    return GP_OK;
}

#define COMPARE(field)                                                                             \
    if (x->field != y->field) {                                                                    \
        return x->field < y->field ? -1 : 1;                                                       \
    }

/* Executor, ranks, nodes, bytes_from, line; for qsort(). */
static int rule_order(const void *a, const void *b)
{
    const gp_tune_rule_t *x = a, *y = b;

    COMPARE(executor)
    COMPARE(ranks_from)
    COMPARE(ranks_to)
    COMPARE(nodes_from)
    COMPARE(nodes_to)
    COMPARE(bytes_from)
    COMPARE(line)
    return 0;
}

/* Sort, and of rules for the same range and bytes_from keep the first of the file. */
static void sort_rules(reader_t *in, rules_t *all)
{
    uint32_t kept = 0;

    if (0 == all->n) {
        return;
    }
    qsort(all->rules, all->n, sizeof(*all->rules), rule_order);
    for (uint32_t i = 1; i < all->n; i++) {
        const gp_tune_rule_t *rule = &all->rules[i], *before = &all->rules[kept];

        if (gp_tune_same_range(rule, before) && rule->bytes_from == before->bytes_from) {
            report(in, rule->line, "the same executor, ranks, nodes and bytes_from as", NULL,
                   before->line);
        } else {
            all->rules[++kept] = *rule;
        }
    }
    all->n = kept + 1;
}

/* FNV-1a over every field but the line, in order, low byte first whatever the processor. */
static uint64_t hash_rules(const gp_tune_rule_t *rules, uint32_t n)
{
    uint64_t h = 14695981039346656037ull;

    for (uint32_t i = 0; i < n; i++) {
        const gp_tune_rule_t *r = &rules[i];
        uint64_t fields[] = {r->executor,   r->ranks_from, r->ranks_to, r->nodes_from, r->nodes_to,
                             r->bytes_from, r->algorithm,  r->protocol, r->channels,   r->threads};

        for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++) {
            for (uint32_t shift = 0; shift < 64; shift += 8) {
                h = (h ^ (fields[k] >> shift & 255)) * 1099511628211ull;
            }
        }
    }
    return 0 == n ? 0 : 0 == h ? 1 : h;
}

static const gp_tune_rule_t *first_of(const gp_tune_t *tune, uint32_t range)
{
    return &tune->rules[tune->ranges[range].first];
}

/* Ranges that hold one communicator lie within each other: the narrower is the inner one. */
static int inner(const gp_tune_rule_t *a, const gp_tune_rule_t *b)
{
    uint32_t ranks_a = a->ranks_to - a->ranks_from, ranks_b = b->ranks_to - b->ranks_from;

    return ranks_a < ranks_b
           || (ranks_a == ranks_b && a->nodes_to - a->nodes_from < b->nodes_to - b->nodes_from);
}

static int break_order(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Write the ranges that hold n_ranks, the innermost first. list NULL: only count them. */
static uint32_t list_ranges(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks,
                            uint32_t *list)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < tune->n_ranges; r++) {
        const gp_tune_rule_t *rule = first_of(tune, r);
        uint32_t at = n;

        if (executor != rule->executor || n_ranks < rule->ranks_from || n_ranks > rule->ranks_to) {
            continue;
        }
        n++;
        if (NULL != list) {
            for (; at > 0 && inner(rule, first_of(tune, list[at - 1])); at--) {
                list[at] = list[at - 1];
            }
            list[at] = r;
        }
    }
    return n;
}

static gp_status_t make_index(gp_tune_t *tune, uint32_t executor)
{
    gp_tune_index_t *x = &tune->index[executor];
    uint32_t n = 0, total = 0;

    x->breaks = malloc((2 * (size_t) tune->n_ranges + 1) * sizeof(*x->breaks));
    if (NULL == x->breaks) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < tune->n_ranges; r++) {
        const gp_tune_rule_t *rule = first_of(tune, r);

        if (executor == rule->executor) {
            x->breaks[n++] = rule->ranks_from;
            if (GP_TUNE_ANY != rule->ranks_to) {
                x->breaks[n++] = rule->ranks_to + 1;
            }
        }
    }
    if (0 != n) {
        qsort(x->breaks, n, sizeof(*x->breaks), break_order);
        x->n_breaks = 1;
        for (uint32_t i = 1; i < n; i++) {
            if (x->breaks[i] != x->breaks[x->n_breaks - 1]) {
                x->breaks[x->n_breaks++] = x->breaks[i];
            }
        }
    }
    x->lists = malloc((x->n_breaks + (size_t) 1) * sizeof(*x->lists));
    if (NULL == x->lists) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < x->n_breaks; i++) {
        x->lists[i] = total;
        total += list_ranges(tune, executor, x->breaks[i], NULL);
    }
    x->lists[x->n_breaks] = total;
    x->list = malloc((total + (size_t) 1) * sizeof(*x->list));
    if (NULL == x->list) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < x->n_breaks; i++) {
        (void) list_ranges(tune, executor, x->breaks[i], x->list + x->lists[i]);
    }
    return GP_OK;
}

/* A table of sorted rules; it takes them over in any case. */
static gp_status_t make_table(gp_tune_rule_t *rules, uint32_t n, gp_tune_t **tune_p)
{
    gp_tune_t *tune = calloc(1, sizeof(*tune));
    gp_status_t status = GP_ERR_NO_MEMORY;

    if (NULL == tune) {
        free(rules);
        return GP_ERR_NO_MEMORY;
    }
    tune->rules = rules;
    tune->n_rules = n;
    tune->hash = hash_rules(rules, n);
    tune->texts = gp_tune_texts_new();
    tune->ranges = calloc(n + (size_t) 1, sizeof(*tune->ranges));
    if (NULL == tune->texts || NULL == tune->ranges) {
        goto err_free;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (0 == i || !gp_tune_same_range(&rules[i - 1], &rules[i])) {
            tune->ranges[tune->n_ranges++].first = i;
        }
        tune->ranges[tune->n_ranges - 1].count++;
    }
    for (uint32_t e = 0; e < GP_EXEC_COUNT; e++) {
        status = make_index(tune, e);
        if (GP_OK != status) {
            goto err_free;
        }
    }
    *tune_p = tune;
    return GP_OK;

err_free:
    gp_tune_free(tune);
    return status;
}

gp_status_t gp_tune_read(const char *path, gp_tune_t **tune_p)
{
    reader_t in;
    rules_t *all = NULL;
    gp_status_t status = GP_ERR_SYSTEM;
    struct stat about;
    int error = 0;

    memset(&in, 0, sizeof(in));
    in.path = path;
    /* Only a regular file ends, and is the same for every process that reads it. */
    if (0 != stat(path, &about)) {
        return GP_ERR_SYSTEM;
    }
    if (!S_ISREG(about.st_mode)) {
        errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
        return GP_ERR_SYSTEM;
    }
    in.file = fopen(path, "re");
    if (NULL == in.file) {
        return GP_ERR_SYSTEM;
    }
    all = calloc(1, sizeof(*all));
    if (NULL == all) {
        status = GP_ERR_NO_MEMORY;
        goto err_close;
    }
    errno = 0;
    status = read_rules(&in, all);
    error = errno;
    if (GP_OK == status && ferror(in.file)) {
        status = GP_ERR_SYSTEM;
    }
    if (GP_OK == status) {
        sort_rules(&in, all);
        if (in.reported > GP_TUNE_MOST_REPORTS) {
            gp_log(GP_LOG_WARN, "%s: %u more illegal lines are left out", path,
                   in.reported - GP_TUNE_MOST_REPORTS);
        }
        status = make_table(all->rules, all->n, tune_p);
        all->rules = NULL;
    }
    free(all->rules);
    free(all);

err_close:
    fclose(in.file);
    errno = error;
    return status;
}
