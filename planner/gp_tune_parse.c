/*
 * gp_tune_parse.c - one line of a tuning file: its fields, and whether they are legal.
 *
 * What a kernel or a communicator can do at most is asked of gp_conn_wish(), where it is decided
 * for calls too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_tune_int.h"

#include <string.h>
#include <strings.h>

#include "planner/gp_plan_int.h"

enum { EXECUTOR, RANKS, NODES, BYTES, ALGORITHM, PROTOCOL, CHANNELS, THREADS, FIELDS };

/* Digits, and nothing but them, up to *end_p. 0 when there are none or the value is above most. */
static int parse_number(const char *text, const char **end_p, uint64_t most, uint64_t *value)
{
    uint64_t v = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t) (*at - '0');

        if (v > (most - digit) / 10) {
            return 0;
        }
        v = 10 * v + digit;
    }
    *end_p = at;
    *value = v;
    return at != text;
}

static int parse_range(const char *text, uint32_t *from, uint32_t *to)
{
    uint64_t a, b;
    const char *end;

    if (0 == strcmp(text, "*")) {
        *from = 1;
        *to = GP_TUNE_ANY;
        return 1;
    }
    if (!parse_number(text, &end, INT32_MAX, &a)) {
        return 0;
    }
    b = a;
    if ('-' == *end && !parse_number(end + 1, &end, INT32_MAX, &b)) {
        return 0;
    }
    *from = (uint32_t) a;
    *to = (uint32_t) b;
    return '\0' == *end && 1 <= a && a <= b;
}

static int parse_bytes(const char *text, uint64_t *bytes)
{
    static const char suffixes[] = "KMG";
    const char *end, *suffix = NULL;
    uint32_t shift = 0;

    if (!parse_number(text, &end, UINT64_MAX, bytes)) {
        return 0;
    }
    if ('\0' != *end) {
        suffix = strchr(suffixes, *end & ~0x20); /* either case */
        if (NULL == suffix || '\0' == *suffix) {
            return 0;
        }
        shift = 10 * (uint32_t) (suffix - suffixes + 1);
        end++;
    }
    if ('\0' != *end || *bytes > UINT64_MAX >> shift) {
        return 0;
    }
    *bytes <<= shift;
    return 1;
}

static int parse_auto(const char *text, uint32_t *value)
{
    uint64_t v = 0;
    const char *end = text;

    if (0 == strcasecmp(text, "auto")) {
        *value = 0;
        return 1;
    }
    if (!parse_number(text, &end, UINT32_MAX, &v) || '\0' != *end) {
        return 0;
    }
    *value = (uint32_t) v;
    return 1;
}

static int parse_name(const char *text, const char *(*name_of)(uint32_t), uint32_t n,
                      uint32_t *value)
{
    for (uint32_t i = 0; i < n; i++) {
        if (0 == strcasecmp(text, name_of(i))) {
            *value = i;
            return 1;
        }
    }
    return 0;
}

/*
 * Channels and threads against what the most able communicator would allow: GPUs alone on their
 * ranks and with more multiprocessors than channels can be used.
 */
static const char *check_limits(const gp_tune_rule_t *rule, uint32_t *field)
{
    gp_comm_desc_t comm;
    gp_params_t params;
    gp_conn_geom_t wish;
    const char *reason = NULL;

    memset(&comm, 0, sizeof(comm));
    comm.n_ranks = 2;
    comm.n_nodes = 1;
    comm.executor = GP_EXEC_CUDA;
    comm.worst_path = GP_PATH_SELF_GPU;
    comm.ranks_per_gpu = 1;
    comm.sm_count = 1u << 20;
    comm.min_capability = 90;
    comm.max_capability = 90;
    gp_params_init(&params);
    params.threads = rule->threads;
    *field = THREADS;
    if (GP_EXEC_HOST == rule->executor && 0 != rule->threads) {
        return "the host executor has no threads to choose: auto";
    }
    if (GP_OK != gp_conn_wish(&comm, &params, rule->algorithm, rule->protocol, &wish, &reason)) {
        return NULL != reason ? reason : "not possible";
    }
    *field = CHANNELS;
    return rule->channels > wish.channels ? "more channels than this algorithm can have" : NULL;
}

const char *gp_tune_parse(char *text, gp_tune_rule_t *rule, const char **token)
{
    char *fields[FIELDS];
    char *rest = text;
    uint32_t n = 0, field;
    const char *wrong;

    *token = NULL;
    memset(rule, 0, sizeof(*rule));
    while (NULL != rest) {
        char *blank = strchr(rest, ' ');

        if (NULL != blank) {
            *blank++ = '\0';
        }
        if (FIELDS == n) {
            *token = rest;
            return "a field too many: 8 are expected, the last is threads";
        }
        fields[n++] = rest;
        rest = blank;
    }
    if (n < FIELDS) {
        return "a field is missing: executor ranks nodes bytes_from algorithm protocol channels "
               "threads are expected";
    }
    *token = fields[EXECUTOR];
    if (!parse_name(*token, gp_executor_name, GP_EXEC_COUNT, &rule->executor)) {
        return "executor: neither cuda nor host";
    }
    *token = fields[RANKS];
    if (!parse_range(*token, &rule->ranks_from, &rule->ranks_to)) {
        return "ranks: none of N, N-M (1 <= N <= M < 2^31) and *";
    }
    *token = fields[NODES];
    if (!parse_range(*token, &rule->nodes_from, &rule->nodes_to)) {
        return "nodes: none of N, N-M (1 <= N <= M < 2^31) and *";
    }
    if (rule->nodes_from > rule->ranks_to) {
        return "nodes: more than ranks";
    }
    *token = fields[BYTES];
    if (!parse_bytes(*token, &rule->bytes_from)) {
        return "bytes_from: not a number below 2^64, with K, M or G or without";
    }
    *token = fields[ALGORITHM];
    if (!parse_name(*token, gp_algorithm_name, GP_ALGO_CUSTOM, &rule->algorithm)) {
        return "algorithm: none of ring, tree and flat";
    }
    *token = fields[PROTOCOL];
    if (!parse_name(*token, gp_protocol_name, GP_PROTO_COUNT, &rule->protocol)) {
        return "protocol: none of ll, ll128 and simple";
    }
    *token = fields[CHANNELS];
    if (!parse_auto(*token, &rule->channels)) {
        return "channels: neither a number nor auto";
    }
    *token = fields[THREADS];
    if (!parse_auto(*token, &rule->threads)) {
        return "threads: neither a number nor auto";
    }
    wrong = check_limits(rule, &field);
    *token = NULL != wrong ? fields[field] : NULL;
    return wrong;
}
