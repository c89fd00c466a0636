/*
 * gp_tune.c - the table of a tuning file: look-up, hash, texts, writing. Reading is in
 * gp_tune_read.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_tune_int.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/proto/gp_log.h"

/* Texts by line; a table rarely gives out more than a few. */
#define BUCKETS 64u
#define TEXT_BYTES 256u

typedef struct text {
    struct text *next;
    const char *why; /* the caller's static text or NULL: compared as a pointer */
    uint32_t line;
    char text[TEXT_BYTES];
} text_t;

struct gp_tune_texts {
    pthread_mutex_t lock; /* of the buckets; a text never changes */
    text_t *buckets[BUCKETS];
};

uint32_t gp_tune_n_rules(const gp_tune_t *tune)
{
    return NULL != tune ? tune->n_rules : 0;
}

uint64_t gp_tune_hash(const gp_tune_t *tune)
{
    return NULL != tune ? tune->hash : 0;
}

/* The list of ranges that hold n_ranks: *n of them. */
static const uint32_t *ranges_of(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks,
                                 uint32_t *n)
{
    const gp_tune_index_t *x = &tune->index[executor];
    uint32_t low = 0, high = x->n_breaks; /* breaks below low are <= n_ranks, from high on above */

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (x->breaks[mid] <= n_ranks) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *n = 0 == low ? 0 : x->lists[low] - x->lists[low - 1];
    return 0 == low ? NULL : x->list + x->lists[low - 1];
}

int gp_tune_lookup(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks, uint32_t n_nodes,
                   uint64_t bytes, gp_tune_rule_t *rule)
{
    const uint32_t *list;
    uint32_t n;

    if (NULL == tune || executor >= GP_EXEC_COUNT) {
        return 0;
    }
    list = ranges_of(tune, executor, n_ranks, &n);
    for (uint32_t i = 0; i < n; i++) {
        const gp_tune_range_t *range = &tune->ranges[list[i]];
        const gp_tune_rule_t *first = &tune->rules[range->first];
        uint32_t low = 0, high = range->count; /* rules[low] holds, rules[high] begins above */

        if (n_nodes < first->nodes_from || n_nodes > first->nodes_to
            || bytes < first->bytes_from) {
            continue;
        }
        while (high - low > 1) {
            uint32_t mid = low + (high - low) / 2;

            if (first[mid].bytes_from <= bytes) {
                low = mid;
            } else {
                high = mid;
            }
        }
        *rule = first[low];
        return 1;
    }
    return 0;
}

uint32_t gp_tune_sets(const gp_tune_t *tune, uint32_t executor, uint32_t n_ranks, uint32_t n_nodes)
{
    const uint32_t *list;
    uint64_t below = UINT64_MAX; /* from here on an inner range decides */
    uint32_t n, sets = 0;

    if (NULL == tune || executor >= GP_EXEC_COUNT) {
        return 0;
    }
    list = ranges_of(tune, executor, n_ranks, &n);
    for (uint32_t i = 0; i < n; i++) {
        const gp_tune_range_t *range = &tune->ranges[list[i]];
        const gp_tune_rule_t *first = &tune->rules[range->first];

        if (n_nodes < first->nodes_from || n_nodes > first->nodes_to) {
            continue;
        }
        for (uint32_t k = 0; k < range->count && first[k].bytes_from < below; k++) {
            sets |= 1u << (first[k].algorithm * GP_PROTO_COUNT + first[k].protocol);
        }
        below = first->bytes_from < below ? first->bytes_from : below;
    }
    return sets;
}

gp_tune_texts_t *gp_tune_texts_new(void)
{
    gp_tune_texts_t *texts = calloc(1, sizeof(*texts));

    if (NULL != texts && 0 != pthread_mutex_init(&texts->lock, NULL)) {
        free(texts);
        texts = NULL;
    }
    return texts;
}

const char *gp_tune_reason(const gp_tune_t *tune, const gp_tune_rule_t *rule, const char *why)
{
    gp_tune_texts_t *texts = tune->texts;
    text_t **at, *t;

    pthread_mutex_lock(&texts->lock);
    at = &texts->buckets[rule->line % BUCKETS];
    while (NULL != *at && ((*at)->line != rule->line || (*at)->why != why)) {
        at = &(*at)->next;
    }
    if (NULL == *at) {
        t = calloc(1, sizeof(*t));
        if (NULL != t) {
            t->line = rule->line;
            t->why = why;
            if (NULL == why) {
                snprintf(t->text, sizeof(t->text), "tuning file line %u", rule->line);
            } else {
                snprintf(t->text, sizeof(t->text),
                         "tuning file line %u: %s/%s, not allowed here: %s", rule->line,
                         gp_algorithm_name(rule->algorithm), gp_protocol_name(rule->protocol),
                         why);
            }
            *at = t;
        }
    }
    t = *at;
    pthread_mutex_unlock(&texts->lock);
    if (NULL == t) {
        return NULL == why ? "tuning file" : "tuning file: its rule is not allowed here";
    }
    return t->text;
}

void gp_tune_free(gp_tune_t *tune)
{
    if (NULL == tune) {
        return;
    }
    if (NULL != tune->texts) {
        for (uint32_t i = 0; i < BUCKETS; i++) {
            while (NULL != tune->texts->buckets[i]) {
                text_t *t = tune->texts->buckets[i];

                tune->texts->buckets[i] = t->next;
                free(t);
            }
        }
        pthread_mutex_destroy(&tune->texts->lock);
        free(tune->texts);
    }
    for (uint32_t i = 0; i < GP_EXEC_COUNT; i++) {
        free(tune->index[i].breaks);
        free(tune->index[i].lists);
        free(tune->index[i].list);
    }
    free(tune->ranges);
    free(tune->rules);
    free(tune);
}

static const char *range_text(uint32_t from, uint32_t to, char *text, size_t bytes)
{
    if (1 == from && GP_TUNE_ANY == to) {
        return "*";
    }
    if (from == to) {
        snprintf(text, bytes, "%u", from);
    } else {
        snprintf(text, bytes, "%u-%u", from, to);
    }
    return text;
}

static const char *auto_text(uint32_t value, char *text, size_t bytes)
{
    if (0 == value) {
        return "auto";
    }
    snprintf(text, bytes, "%u", value);
    return text;
}

gp_status_t gp_tune_write(const gp_tune_t *tune, FILE *out)
{
    int failed = fprintf(out, "# executor ranks nodes bytes_from algorithm protocol channels "
                              "threads\n")
                 < 0;

    for (uint32_t i = 0; i < gp_tune_n_rules(tune) && !failed; i++) {
        const gp_tune_rule_t *r = &tune->rules[i];
        char ranks[32], nodes[32], channels[16], threads[16];

        failed = fprintf(out, "%s %s %s %llu %s %s %s %s\n", gp_executor_name(r->executor),
                         range_text(r->ranks_from, r->ranks_to, ranks, sizeof(ranks)),
                         range_text(r->nodes_from, r->nodes_to, nodes, sizeof(nodes)),
                         (unsigned long long) r->bytes_from, gp_algorithm_name(r->algorithm),
                         gp_protocol_name(r->protocol),
                         auto_text(r->channels, channels, sizeof(channels)),
                         auto_text(r->threads, threads, sizeof(threads)))
                 < 0;
    }
    if (failed || 0 != fflush(out)) {
        gp_log(GP_LOG_ERROR, "tuning file: writing failed: %s", strerror(errno));
        return GP_ERR_SYSTEM;
    }
    return GP_OK;
}
