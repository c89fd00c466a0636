/*
 * test_tune.c - the tuning file: what is read, what is refused and where, look-ups, and what plans
 * do of it.
 *
 * Look-ups are compared with a plain scan over the rules written by this test, which knows nothing
 * of the table's index; expected messages and line numbers are written out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "device/proto/gp_log.h"
#include "planner/gp_tune.h"

#define MI (1024ull * 1024ull)
#define MOST_LOGS 100

static char path[64];
static char logs[MOST_LOGS][1100];
static uint32_t n_logs;
static uint64_t random_state = 20240607;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 20) % n;
}

static void sink(gp_log_level_t level, const char *text)
{
    if (level <= GP_LOG_WARN && n_logs < MOST_LOGS) {
        snprintf(logs[n_logs], sizeof(logs[0]), "%s", text);
    }
    n_logs += level <= GP_LOG_WARN;
}

/* Write bytes to the file and read it as a tuning file. */
static gp_tune_t *read_bytes(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    gp_tune_t *tune = NULL;

    if (NULL == f || n != fwrite(bytes, 1, n, f) || 0 != fclose(f)) {
        gp_bail_out("cannot write %s", path);
    }
    n_logs = 0;
    if (GP_OK != gp_tune_read(path, &tune) || NULL == tune) {
        gp_bail_out("cannot read %s", path);
    }
    return tune;
}

static gp_tune_t *read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static uint64_t hash_of(const char *text)
{
    gp_tune_t *tune = read_text(text);
    uint64_t hash = gp_tune_hash(tune);

    gp_tune_free(tune);
    return hash;
}

/* Line of the rule that holds; 0: none. */
static uint32_t line_for(const gp_tune_t *tune, uint32_t executor, uint32_t ranks, uint32_t nodes,
                         uint64_t bytes)
{
    gp_tune_rule_t rule;

    return gp_tune_lookup(tune, executor, ranks, nodes, bytes, &rule) ? rule.line : 0;
}

static void test_lookup(void)
{
    gp_tune_t *tune = read_text("# a comment\n"
                                "cuda 2-4 1 64K ring LL 8 512 # 65,536 bytes\n"
                                "cuda 2-4 1 0 flat ll auto auto\n"
                                "\n"
                                "  host\t*  *   1m tree simple 0 0\n"
                                "cuda 3 1 1000 tree ll128 auto 96\n"
                                "cuda * * 1G ring simple 16 auto\n");
    gp_tune_rule_t r;
    const uint32_t c = GP_EXEC_CUDA, h = GP_EXEC_HOST;

    gp_ok(5 == gp_tune_n_rules(tune) && 0 == n_logs, "five rules, nothing to report");
    gp_group_begin("edges of bytes, ranks and nodes");
    gp_check(3 == line_for(tune, c, 2, 1, 65535), "one byte below a rule");
    gp_check(2 == line_for(tune, c, 2, 1, 65536), "the first byte of a rule");
    gp_check(2 == line_for(tune, c, 4, 1, UINT64_MAX), "the last rule of a range has no end");
    gp_check(3 == line_for(tune, c, 2, 1, 0), "zero bytes");
    gp_check(0 == line_for(tune, c, 1, 1, 100), "a rank too few");
    gp_check(0 == line_for(tune, c, 5, 1, 100), "a rank too many");
    gp_check(0 == line_for(tune, c, 2, 2, 100), "a node too many");
    gp_check(7 == line_for(tune, c, 5, 1, 1024 * MI), "* holds the rest");
    gp_check(7 == line_for(tune, c, 2, 2, 1024 * MI), "and other numbers of nodes");
    gp_check(7 == line_for(tune, c, UINT32_MAX, UINT32_MAX, 1024 * MI), "and any number of them");
    gp_check(0 == line_for(tune, c, 5, 1, 1024 * MI - 1), "but not below its bytes");
    gp_check(5 == line_for(tune, h, 5, 1, MI), "the other executor");
    gp_check(0 == line_for(tune, h, 5, 1, MI - 1), "one byte below its only rule");
    gp_check(0 == line_for(tune, GP_EXEC_COUNT, 5, 1, MI), "no such executor");
    gp_check(0 == line_for(NULL, c, 5, 1, MI), "no table");
    gp_check(6 == line_for(tune, c, 3, 1, 1000), "an inner range goes first");
    gp_check(6 == line_for(tune, c, 3, 1, MI), "also where the outer has a later rule");
    gp_check(3 == line_for(tune, c, 3, 1, 999), "and the outer holds below it");
    gp_group_end();
    gp_ok(gp_tune_lookup(tune, c, 4, 1, 70000, &r) && GP_ALGO_RING == r.algorithm
              && GP_PROTO_LL == r.protocol && 8 == r.channels && 512 == r.threads
              && 65536 == r.bytes_from && 2 == r.ranks_from && 4 == r.ranks_to
              && 1 == r.nodes_from && 1 == r.nodes_to && c == r.executor,
          "every field of a rule");
    gp_ok(gp_tune_lookup(tune, h, 4, 1, MI, &r) && 0 == r.channels && 0 == r.threads
              && 1 == r.ranks_from && GP_TUNE_ANY == r.ranks_to,
          "auto, 0 and *");
    /* Bits: ring 0-2, tree 3-5, flat 6-8; ll, ll128, simple. */
    gp_ok((1u << 0 | 1u << 6) == gp_tune_sets(tune, c, 2, 1)
              && (1u << 4 | 1u << 6) == gp_tune_sets(tune, c, 3, 1),
          "combinations of two and three ranks: not what an inner range hides");
    gp_ok(1u << 2 == gp_tune_sets(tune, c, 9, 1) && 1u << 5 == gp_tune_sets(tune, h, 9, 1)
              && 0 == gp_tune_sets(NULL, c, 9, 1),
          "combinations of nine, of the host executor, of no table");
    gp_tune_free(tune);
}

static void test_hash(void)
{
    static const char rules[] = "cuda 2-4 1 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\n";
    static const char *const same[] = {
        "# x\n\n \t cuda   2-4 1 64K ring ll 8 512   # y\n#\nhost * * 0 tree ll 0 0",
        "cuda 2-4 1 65536 ring ll 8 512\r\nhost * * 0 tree ll auto auto\r\n",
        "HOST * * 000 Tree LL AUTO 0\ncuda 2-4 01 64k RING ll 08 512\n",
        "cuda 2-4 1 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\nhost 2 1 0 rnig ll 0 0\n",
    };
    static const char *const other[] = {
        "host 2-4 1 65536 ring ll 8 auto\nhost * * 0 tree ll auto auto\n",
        "cuda 2-5 1 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 1-4 1 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 2 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1-2 65536 ring ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65537 ring ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65536 tree ll 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65536 ring simple 8 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65536 ring ll 9 512\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65536 ring ll 8 480\nhost * * 0 tree ll auto auto\n",
        "cuda 2-4 1 65536 ring ll 8 512\n",
    };
    uint64_t hash = hash_of(rules);

    gp_ok(0 != hash, "a file with rules has a hash");
    gp_group_begin("comments, blanks, order, spelling and illegal lines do not change the hash");
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        gp_check(hash == hash_of(same[i]), "variant %zu", i);
    }
    gp_group_end();
    gp_group_begin("every field changes the hash");
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        gp_check(hash != hash_of(other[i]), "variant %zu", i);
    }
    gp_group_end();
    gp_ok(0 == gp_tune_hash(NULL) && 0 == hash_of("") && 0 == hash_of("# nothing\n"),
          "no file and no rule: 0");
}

/* A line each, and what the message must say; the line is the third of its file. */
static const struct {
    const char *line, *says;
} bad_lines[] = {
    {"gpu 2 1 0 ring ll 8 512", "executor: neither cuda nor host: \"gpu\""},
    {"cuda 0 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda 4-2 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda 2- 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda -2 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda 2-4-6 1 0 ring ll 8 512", "\"2-4-6\""},
    {"cuda 2147483648 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda ** 1 0 ring ll 8 512", "ranks: none of"},
    {"cuda 2 x 0 ring ll 8 512", "nodes: none of N, N-M (1 <= N <= M < 2^31) and *: \"x\""},
    {"cuda 2 3 0 ring ll 8 512", "nodes: more than ranks: \"3\""},
    {"cuda 2 1 12Q ring ll 8 512", "bytes_from: not a number"},
    {"cuda 2 1 K ring ll 8 512", "bytes_from: not a number"},
    {"cuda 2 1 4KB ring ll 8 512", "\"4KB\""},
    {"cuda 2 1 -1 ring ll 8 512", "bytes_from: not a number"},
    {"cuda 2 1 18446744073709551616 ring ll 8 512", "bytes_from: not a number"},
    {"cuda 2 1 17179869184G ring ll 8 512", "bytes_from: not a number"},
    {"cuda 2 1 0 rnig ll 8 512", "algorithm: none of ring, tree and flat: \"rnig\""},
    {"cuda 2 1 0 custom ll 8 512", "algorithm: none of"},
    {"cuda 2 1 0 ring ll64 8 512", "protocol: none of ll, ll128 and simple: \"ll64\""},
    {"cuda 2 1 0 ring ll many 512", "channels: neither a number nor auto: \"many\""},
    {"cuda 2 1 0 ring ll 65 512", "more channels than this algorithm can have: \"65\""},
    {"cuda 2 1 0 flat ll 9 512", "more channels than this algorithm can have: \"9\""},
    {"cuda 2 1 0 ring ll 8 4294967296", "threads: neither a number nor auto"},
    {"cuda 2 1 0 ring ll 8 500", "threads: not a multiple of 32"},
    {"cuda 2 1 0 ring ll 8 32", "threads: not a multiple of 32"},
    {"cuda 2 1 0 ring ll 8 1056", "\"1056\""},
    {"cuda 2 1 0 ring ll128 8 416", "threads: not a multiple of 32"},
    {"cuda 2 1 0 ring simple 8 544", "threads: not a multiple of 32"},
    {"host 2 1 0 ring ll 1 512", "the host executor has no threads to choose"},
    {"cuda 2 1 0 ring ll 8", "a field is missing"},
    {"cuda", "a field is missing"},
    {"cuda 2 1 0 ring ll 8 512 9", "a field too many: 8 are expected, the last is threads: \"9\""},
    {"cuda 2 1 0 ring ll 8 \001512", "a character that is not printable ASCII"},
    {"\357\273\277cuda 2 1 0 ring ll 8 512", "a character that is not printable ASCII"},
    {"cuda 2-4 1 5 ring ll 8 512", "the same executor, ranks, nodes and bytes_from as line 2"},
    {"cuda 3-8 1 0 ring ll 8 512", "the range overlaps, and neither holds, that of line 2"},
    {"cuda 3 1-2 0 ring ll 8 512", "the range overlaps, and neither holds, that of line 2"},
};

static void test_bad_lines(void)
{
    static const char *const most[] = {"ring ll 64 1024", "flat ll 8 64", "tree ll128 auto 384",
                                       "ring simple auto 512"};
    char text[600], want[600];
    gp_tune_t *tune;

    for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++) {
        snprintf(text, sizeof(text),
                 "# line 1\ncuda 2-4 1 5 tree ll auto auto\n%s\ncuda 2-4 1 6 ring ll auto auto\n",
                 bad_lines[i].line);
        tune = read_text(text);
        snprintf(want, sizeof(want), "%s:3: ", path);
        gp_ok(1 == n_logs && 0 == strncmp(logs[0], want, strlen(want))
                  && NULL != strstr(logs[0], bad_lines[i].says) && 2 == gp_tune_n_rules(tune)
                  && 2 == line_for(tune, GP_EXEC_CUDA, 3, 1, 5)
                  && 4 == line_for(tune, GP_EXEC_CUDA, 3, 1, 6),
              "reported at line 3 and left out: %zu (%s)", i, bad_lines[i].says);
        if (1 != n_logs || NULL == strstr(logs[0], bad_lines[i].says)) {
            gp_diag("%u messages, the first: %s", n_logs, logs[0]);
        }
        gp_tune_free(tune);
    }
    gp_group_begin("the most that is legal");
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        snprintf(text, sizeof(text), "cuda 2147483647 1 16G %s", most[i]);
        tune = read_text(text);
        gp_check(0 == n_logs && 1 == gp_tune_n_rules(tune), "%s", most[i]);
        gp_tune_free(tune);
    }
    gp_group_end();
}

static void test_files(void)
{
    static char big[40000];
    gp_tune_t *tune = NULL;
    size_t n = 0;

    gp_ok(GP_ERR_SYSTEM == gp_tune_read("/nonexistent/tune", &tune) && ENOENT == errno,
          "a file that is not there");
    gp_ok(GP_ERR_SYSTEM == gp_tune_read("/", &tune) && EISDIR == errno, "a directory");
    gp_ok(GP_ERR_SYSTEM == gp_tune_read("/dev/zero", &tune) && EINVAL == errno,
          "a file that never ends");

    tune = read_text("cuda 2 1 0 ring ll 8 512\nhost 2 1 0 ring ll 1 auto");
    gp_ok(2 == line_for(tune, GP_EXEC_HOST, 2, 1, 0) && 0 == n_logs, "no newline at the end");
    gp_tune_free(tune);
    tune = read_text("\r\ncuda 2 1 0 ring ll 8 512\r\n\r\nhost 2 1 0 ring ll 1 auto\r\nhots\r\n");
    gp_ok(4 == line_for(tune, GP_EXEC_HOST, 2, 1, 0) && 1 == n_logs && strstr(logs[0], ":5: "),
          "CRLF: rules and line numbers as with LF");
    gp_tune_free(tune);

    memset(big, ' ', 10000); /* blanks, a rule, blanks, a long comment */
    n = 10000 + (size_t) sprintf(big + 10000, "cuda 2 1 0 ring ll 8 512%10000s#", "");
    memset(big + n, 'x', 10000);
    big[n + 10000] = '\0';
    tune = read_text(big);
    gp_ok(1 == line_for(tune, GP_EXEC_CUDA, 2, 1, 0) && 0 == n_logs,
          "long blanks and comments are no long line");
    gp_tune_free(tune);
    memset(big, 'y', 20000);
    snprintf(big + 20000, 100, "\nhost 2 1 0 ring ll 1 auto\n");
    tune = read_text(big);
    gp_ok(2 == line_for(tune, GP_EXEC_HOST, 2, 1, 0) && 1 == n_logs
              && NULL != strstr(logs[0], ":1: longer than a rule can be"),
          "a long line is reported whole, the next is read");
    gp_tune_free(tune);
    tune = read_bytes("cuda 2 1 0 ring ll 8 512\0\nhost 2 1 0 ring ll 1 auto\n", 51);
    gp_ok(1 == gp_tune_n_rules(tune) && 1 == n_logs && NULL != strstr(logs[0], ":1: "),
          "a zero byte is reported");
    gp_tune_free(tune);

    n = 0;
    for (int i = 0; i < 1000; i++) {
        n += (size_t) sprintf(big + n, "nonsense %d\n", i);
    }
    tune = read_text(big);
    gp_ok(GP_TUNE_MOST_REPORTS + 1 == n_logs
              && NULL != strstr(logs[GP_TUNE_MOST_REPORTS], "936 more illegal lines"),
          "of 1,000 illegal lines 64 are named and 936 counted");
    gp_tune_free(tune);
}

typedef struct plain {
    uint32_t executor, ranks_from, ranks_to, nodes_from, nodes_to;
    uint64_t bytes;
} plain_t;

/* By looking at every rule: the innermost range, then the greatest bytes_from not above. */
static uint32_t plain_lookup(const plain_t *rules, uint32_t n, uint32_t executor, uint32_t ranks,
                             uint32_t nodes, uint64_t bytes)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i <= n; i++) {
        const plain_t *r = &rules[i - 1], *b = &rules[0 != best ? best - 1 : 0];
        uint32_t size = (r->ranks_to - r->ranks_from + 1) * (r->nodes_to - r->nodes_from + 1);
        uint32_t best_size = (b->ranks_to - b->ranks_from + 1) * (b->nodes_to - b->nodes_from + 1);

        if (r->executor == executor && ranks >= r->ranks_from && ranks <= r->ranks_to
            && nodes >= r->nodes_from && nodes <= r->nodes_to && bytes >= r->bytes
            && (0 == best || size < best_size || (size == best_size && r->bytes > b->bytes))) {
            best = i;
        }
    }
    return best;
}

/* 10,000 rules: 2 executors x 50 ranges (5 of 10 ranks, each with 9 within it) x 100 sizes. */
static void test_many(void)
{
    static plain_t rules[10000];
    static char text[800000];
    uint32_t n = 0;
    size_t at = 0;
    gp_tune_t *tune;
    struct timespec t0, t1;
    double ns;
    volatile uint32_t sum = 0;

    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t range = i / 2 % 50, base = range / 10 * 10 + 10, k = range % 10;
        plain_t *r = &rules[n++];

        r->executor = i % 2;
        r->ranks_from = 0 == k ? base : base + k;
        r->ranks_to = 0 == k ? base + 9 : base + k;
        r->nodes_from = 1;
        r->nodes_to = 0 == k ? 10 : 1 + k;
        r->bytes = 1000ull * (i / 100 + 1) * (i / 100 + 1);
        at += (size_t) sprintf(text + at, "%s %u-%u %u-%u %llu %s %s auto auto\n",
                               gp_executor_name(r->executor), r->ranks_from, r->ranks_to,
                               r->nodes_from, r->nodes_to, (unsigned long long) r->bytes,
                               gp_algorithm_name((uint32_t) below(3)),
                               gp_protocol_name((uint32_t) below(3)));
    }
    tune = read_text(text);
    gp_ok(10000 == gp_tune_n_rules(tune) && 0 == n_logs, "10,000 rules");
    gp_group_begin("look-ups give what a scan of all rules gives");
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t e = (uint32_t) below(2), ranks = 5 + (uint32_t) below(60);
        uint32_t nodes = 1 + (uint32_t) below(12);
        uint64_t square = 1 + below(110), bytes = 1000 * square * square + below(3) - 1;

        gp_check(plain_lookup(rules, n, e, ranks, nodes, bytes)
                     == line_for(tune, e, ranks, nodes, bytes),
                 "executor %u, %u ranks, %u nodes, %llu bytes", e, ranks, nodes,
                 (unsigned long long) bytes);
    }
    gp_group_end();
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (uint32_t i = 0; i < 1000000; i++) {
        sum += line_for(tune, i & 1, 10 + i % 50, 1 + i % 10, i * 10ull);
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    ns = ((double) (t1.tv_sec - t0.tv_sec) * 1e9 + (double) (t1.tv_nsec - t0.tv_nsec)) / 1e6;
    gp_diag("a look-up among 10,000 rules took %.1f ns", ns);
    gp_ok(ns < 1000 && 0 != sum, "a look-up takes below 1 us here (100 ns on an idle machine)");
    gp_tune_free(tune);
}

/* Lines of a text that hold more than blanks and a comment. */
static uint32_t lines_with_content(const char *text, size_t bytes)
{
    uint32_t n = 0;
    int content = 0, comment = 0;

    for (size_t i = 0; i <= bytes; i++) {
        if (i == bytes || '\n' == text[i]) {
            n += (uint32_t) content;
            content = comment = 0;
        } else {
            comment |= '#' == text[i];
            content |= !comment && NULL == memchr(" \t\r", text[i], 3);
        }
    }
    return n;
}

static void test_fuzz(void)
{
    static const char *const words[] = {"cuda",  "host", "2",    "2-4", "*",   "1",     "0",
                                        "64K",   "ring", "tree", "flat", "ll", "ll128", "simple",
                                        "auto",  "8",    "512",  "#",   "\n",  "\r\n",  "4-2",
                                        "99999999999999999999", "\t", "-", "G"};
    static char text[4096], again[400000];

    gp_group_begin("random bytes and random words: every line is a rule or a message");
    for (uint32_t i = 0; i < 4000; i++) {
        size_t n = 0, most = below(1500);
        uint32_t content, rules, named;
        gp_tune_t *tune, *same;
        FILE *f;

        while (n < most) {
            if (0 == i % 4) {
                text[n++] = (char) below(256);
            } else if (0 == below(8)) { /* mostly a rule */
                n += (size_t) sprintf(text + n, "cuda %u 1 %uK ring ll 8 512\n",
                                      1 + (uint32_t) below(9), (uint32_t) below(9));
            } else {
                const char *word = words[below(sizeof(words) / sizeof(words[0]))];

                n += (size_t) sprintf(text + n, "%s%s", word, 0 == below(9) ? "" : " ");
            }
        }
        tune = read_bytes(text, n);
        rules = gp_tune_n_rules(tune);
        named = n_logs;
        if (n_logs > GP_TUNE_MOST_REPORTS) {
            named = GP_TUNE_MOST_REPORTS
                    + (uint32_t) strtoul(strrchr(logs[GP_TUNE_MOST_REPORTS], ':') + 2, NULL, 10);
        }
        content = lines_with_content(text, n);
        gp_check(content == rules + named, "file %u: %u lines, %u rules, %u messages", i, content,
                 rules, named);
        f = fmemopen(again, sizeof(again), "w");
        gp_check(NULL != f && GP_OK == gp_tune_write(tune, f), "file %u: written", i);
        n = (size_t) ftell(f);
        fclose(f);
        same = read_bytes(again, n);
        gp_check(0 == n_logs && rules == gp_tune_n_rules(same)
                     && gp_tune_hash(tune) == gp_tune_hash(same),
                 "file %u: read back the same", i);
        gp_tune_free(tune);
        gp_tune_free(same);
    }
    gp_group_end();
}

int main(void)
{
    FILE *full = fopen("/dev/full", "w");
    const char *dir = getenv("TMPDIR");
    gp_tune_t *tune;
    int fd;

    gp_tap_begin();
    snprintf(path, sizeof(path), "%.40s/gp_tune.XXXXXX", NULL != dir ? dir : "/tmp");
    fd = mkstemp(path);
    if (fd < 0) {
        gp_bail_out("cannot create %s", path);
    }
    close(fd);
    gp_log_set_sink(sink);
    test_lookup();
    test_hash();
    test_bad_lines();
    test_files();
    test_many();
    test_fuzz();
    tune = read_text("host 2 1 0 ring ll 1 auto\n");
    gp_ok(NULL != full && GP_ERR_SYSTEM == gp_tune_write(tune, full) && 1 == n_logs,
          "a stream that fails is reported");
    gp_tune_free(tune);
    unlink(path);
    return gp_tap_end();
}
