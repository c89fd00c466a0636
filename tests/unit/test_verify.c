/*
 * test_verify.c - the verifier proves what the planner emits and refuses every planted fault.
 *
 * Each fault is planted in otherwise correct programs; the refusal must come for its reason, so that a
 * check that another one happens to cover is noticed when it stops working.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "planner/gp_verify.h"
#include "tests/unit/gp_edit_program.h"
#include "tests/unit/gp_random_program.h"

#define MOST_RANKS 64u

/* The programs of one channel. */
typedef struct set {
    uint32_t n;
    gp_program_t *p[MOST_RANKS];
} set_t;

static void emit_set(set_t *s, gp_algorithm_t a, uint32_t n, uint32_t channel, uint32_t n_channels)
{
    s->n = n;
    for (uint32_t r = 0; r < n; r++) {
        gp_status_t status = gp_program_emit(a, n, r, channel, n_channels, &s->p[r]);

        if (GP_OK != status) {
            gp_bail_out("emit %d n %u rank %u: %d", a, n, r, status);
        }
    }
}

static void free_set(set_t *s)
{
    for (uint32_t r = 0; r < s->n; r++) {
        gp_program_free(s->p[r]);
    }
}

static gp_status_t verify(const set_t *s, uint32_t n_slots, uint32_t loops, char *reason,
                          size_t reason_bytes)
{
    return gp_verify((const gp_program_t *const *) s->p, s->n, n_slots, loops, reason,
                     reason_bytes);
}

static void test_planner(void)
{
    static const uint32_t channels[][2] = {{0, 1}, {0, 2}, {1, 2}, {4, 6}, {5, 6}};
    uint32_t step = NULL != getenv("GP_CHECK_QUICK") ? 7 : 1;
    char reason[300];

    for (int a = 0; a < GP_ALGO_CUSTOM; a++) {
        static const char *const names[] = {"ring", "tree", "flat"};

        gp_group_begin("%s: proven for ranks 1-%u, slots 1-8, all kinds of channels", names[a],
                       MOST_RANKS);
        for (uint32_t n = 1; n <= MOST_RANKS; n += n < 9 ? 1 : step) {
            for (uint32_t c = 0; c < sizeof(channels) / sizeof(channels[0]); c++) {
                set_t s;

                emit_set(&s, (gp_algorithm_t) a, n, channels[c][0], channels[c][1]);
                for (uint32_t slots = 1; slots <= GP_STEPS; slots++) {
                    gp_status_t status = verify(&s, slots, 3, reason, sizeof(reason));
                    /* Round a ring everyone holds one slot and needs another. */
                    int stuck = GP_ALGO_RING == a && n > 1 && 1 == slots;

                    gp_check(status == (stuck ? GP_ERR_INVALID : GP_OK),
                             "%s n %u channel %u of %u slots %u: %d %s", names[a], n,
                             channels[c][0], channels[c][1], slots, status, reason);
                    gp_check(!stuck || NULL != strstr(reason, "deadlock"), "n %u: %s", n, reason);
                }
                free_set(&s);
            }
        }
        gp_group_end();
    }
}

/* The set must be refused with 8 slots, for a reason with these words. */
static void refused(set_t *s, const char *words, const char *what)
{
    char reason[300] = "";
    gp_status_t status = verify(s, 8, 3, reason, sizeof(reason));

    gp_check(GP_ERR_INVALID == status && NULL != strstr(reason, words),
             "%s, %u ranks: status %d, reason \"%s\", expected \"%s\"", what, s->n, status, reason,
             words);
}

/* Replace one program by an edited copy. */
static void replace(set_t *s, const gp_edit_t *e)
{
    gp_program_t *p = NULL;

    if (GP_OK != gp_freeze(e, &p)) {
        gp_bail_out("freeze rank %u", e->rank);
    }
    p->channel = s->p[e->rank]->channel;
    gp_program_free(s->p[e->rank]);
    s->p[e->rank] = p;
}

static void test_contributions(void)
{
    gp_edit_t e;
    set_t s;

    gp_group_begin("a contribution dropped, doubled, out of order");
    for (uint32_t n = 3; n <= 8; n++) {
        for (uint32_t r = 0; r < n; r++) {
            /* Ring, each reducing step in turn without its own input. */
            for (uint32_t k = 1; k < n; k++) {
                emit_set(&s, GP_ALGO_RING, n, 0, 1);
                gp_thaw(s.p[r], &e);
                e.steps[k].n_in--; /* own is last */
                replace(&s, &e);
                refused(&s, "contributions instead of", "ring, own dropped");
                free_set(&s);
            }
            /* Ring, own added to a step that only passes the result on. */
            for (uint32_t k = n; k < 2 * n - 1; k++) {
                emit_set(&s, GP_ALGO_RING, n, 0, 1);
                gp_thaw(s.p[r], &e);
                e.steps[k].in[e.steps[k].n_in++] = GP_REF_OWN;
                replace(&s, &e);
                refused(&s, "at least", "ring, own doubled");
                free_set(&s);
            }
            /* Flat, one rank adds in another order. */
            emit_set(&s, GP_ALGO_FLAT, n, 0, 1);
            gp_thaw(s.p[r], &e);
            e.steps[1].in[0] = e.steps[1].in[n - 1];
            e.steps[1].in[n - 1] = 0 == r ? GP_REF_OWN : 0;
            replace(&s, &e);
            refused(&s, "another order", "flat, operands swapped");
            free_set(&s);
            /* Tree, own dropped by any rank. */
            emit_set(&s, GP_ALGO_TREE, n, 0, 1);
            gp_thaw(s.p[r], &e);
            if (e.steps[0].n_in > 1) {
                e.steps[0].n_in--;
                memmove(&e.steps[0].in[0], &e.steps[0].in[1], e.steps[0].n_in * sizeof(uint32_t));
                replace(&s, &e);
                refused(&s, "contributions instead of", "tree, own dropped");
            }
            free_set(&s);
        }
    }
    gp_group_end();
}

/* The programs of all ranks from text. */
static void parse_set(set_t *s, uint32_t n, uint32_t n_chunks, const char *const *texts)
{
    s->n = n;
    for (uint32_t r = 0; r < n; r++) {
        gp_edit_t e;

        gp_parse(texts[r], n, r, n_chunks, &e);
        if (GP_OK != gp_freeze(&e, &s->p[r])) {
            gp_bail_out("freeze \"%s\"", texts[r]);
        }
    }
}

/* One case: words NULL: proven, else refused for these words. */
static void text_case(uint32_t n, uint32_t n_chunks, const char *const *texts, uint32_t n_slots,
                      const char *words, const char *what)
{
    char reason[300] = "";
    gp_status_t status;
    set_t s;

    parse_set(&s, n, n_chunks, texts);
    status = verify(&s, n_slots, 3, reason, sizeof(reason));
    if (!gp_ok(NULL == words ? GP_OK == status
                             : GP_ERR_INVALID == status && NULL != strstr(reason, words),
               "%s", what)) {
        gp_diag("status %d, reason \"%s\"", status, reason);
    }
    free_set(&s);
}

#define TEXTS(...) ((const char *const[]) {__VA_ARGS__})

static void test_expressions(void)
{
    text_case(3, 1, TEXTS("c0 o s1 s2 c0 o r1 r2 !", "c0 o s0 s2 c0 r0 o r2 !",
                          "c0 o s0 s1 c0 r0 r1 o !"),
              1, NULL, "three ranks, one order: proven");
    text_case(3, 1, TEXTS("c0 o s1 s2 c0 o r1 r2 !", "c0 o s0 c0 o r2 s2 c0 r0 o r2 !",
                          "c0 o s0 s1 c0 o s1 c0 r0 r1 !"),
              8, "another order", "0 + (1 + 2) at one rank, (0 + 1) + 2 at the others");
    text_case(3, 1, TEXTS("c0 o r1 r2 s1 s2 !", "c0 o s0 c0 r0 !", "c0 o s0 c0 r0 !"), 1, NULL,
              "a star: proven");
    text_case(3, 1, TEXTS("c0 o r1 r2 s1 s2 !", "c0 o s0 s2 c0 r0 !", "c0 r1 s0 c0 r0 !"), 8,
              "contribution twice", "as many contributions as ranks, but one twice");
    text_case(3, 1, TEXTS("c0 o r1 s1 s2 !", "c0 o s0 c0 r0 !", "c0 r0 !"), 8,
              "2 contributions instead of 3", "a rank that only receives");
    text_case(2, 2, TEXTS("c0 o s1 c1 o s1 c0 o r1 ! c1 o r1 !",
                          "c0 o s0 c1 o s0 c0 r0 o ! c1 r0 o !"),
              2, NULL, "two chunks: proven");
    text_case(2, 2, TEXTS("c0 o s1 c1 o s1 c0 o r1 ! c1 o r1 !",
                          "c1 o s0 c0 o s0 c0 r0 o ! c1 r0 o !"),
              8, "chunk 1 is sent, chunk 0 expected", "chunks exchanged on the way");
    text_case(2, 1, TEXTS("c0 o s1 c0 o r1 !", "c0 o s0 c0 o r0 !"), 8, "another order",
              "0 + 1 at one rank, 1 + 0 at the other");
    text_case(2, 1, TEXTS("c0 o o r1 s1 !", "c0 o s0 c0 r0 !"), 8, "own input twice",
              "own twice in a step");
    text_case(2, 1, TEXTS("c0 o r1 r1 s1 !", "c0 o s0 c0 o s0 c0 r0 !"), 8,
              "names the receive link to rank 1 twice", "a step that receives twice from one peer");
    text_case(2, 1, TEXTS("c0 o r1 s1 s1 !", "c0 o s0 c0 r0 c0 r0 !"), 8,
              "names the send link to rank 1 twice", "a step that sends twice to one peer");
}

/* Two ranks that send k chunks before they receive any: k slots and not one less. */
static void test_slots(void)
{
    char reason[300], text[2][600];

    gp_group_begin("a schedule that needs k slots: proven with k, refused with k - 1");
    for (uint32_t k = 1; k <= GP_MAX_SLOTS; k++) {
        set_t s;

        for (uint32_t r = 0; r < 2; r++) {
            int at = 0;

            for (uint32_t c = 0; c < k; c++) {
                at += snprintf(text[r] + at, sizeof(text[r]) - (size_t) at, "c%u o s%u ", c, 1 - r);
            }
            for (uint32_t c = 0; c < k; c++) {
                at += snprintf(text[r] + at, sizeof(text[r]) - (size_t) at,
                               0 == r ? "c%u o r1 ! " : "c%u r0 o ! ", c);
            }
        }
        parse_set(&s, 2, k, TEXTS(text[0], text[1]));
        for (uint32_t slots = 1; slots <= GP_MAX_SLOTS; slots++) {
            gp_status_t status = verify(&s, slots, 3, reason, sizeof(reason));

            gp_check((GP_OK == status) == (slots >= k), "needs %u slots, has %u: %d %s", k, slots,
                     status, reason);
            gp_check(slots >= k || NULL != strstr(reason, "deadlock"), "%s", reason);
        }
        free_set(&s);
    }
    gp_group_end();
    text_case(2, 1, TEXTS("c0 o r1 s1 !", "c0 r0 o s0 !"), 16,
              "waits for data from rank", "everyone waits first");
    text_case(2, 1, TEXTS("c0 o r1 s1 !", "c0 o s0 | c0 r0 !"), 1, NULL,
              "two streams that only feed each other: proven");
}

static void test_in_place(void)
{
    text_case(2, 1, TEXTS("c0 o s1 c0 o s1 | c0 r1 !", "c0 r0 c0 r0 o s0 !"), 1, NULL,
              "read twice by a stream, ordered by what its second step sends: proven");
    text_case(2, 1, TEXTS("c0 o s1 | c0 o r1 !", "c0 o s0 c0 r0 o !"), 8, "in place: rank 0",
              "sent by one stream, overwritten by another that nothing orders");
    text_case(2, 1, TEXTS("c0 o r1 ! c0 o s1", "c0 o s0 c0 r0 o !"), 8, "in place: rank 0",
              "sent after it was overwritten, in one stream");
    text_case(2, 1, TEXTS("c0 o r1 s1 !", "c0 o s0 | c0 r0 !"), 8, NULL,
              "two streams, ordered by the round trip: proven");
    text_case(3, 1, TEXTS("c0 o s1 | c0 r2 !", "c0 r0 o s2 !", "c0 r1 o s0 s1 !"), 8,
              "which does not receive", "a link with one end");
    text_case(3, 1, TEXTS("c0 o s1 | c0 r2 !", "c0 r0 o s2 | c0 r2 !", "c0 r1 o s0 s1 !"), 8, NULL,
              "a chain, ordered over two ranks: proven");
    /*
     * Rank 0 sends chunk 0, then chunk 1; chunk 0 is overwritten after what rank 2 sends it once it has
     * chunk 1. Threads that hold different positions do not wait for each other between steps, so an
     * order that goes through another chunk proves nothing.
     */
    text_case(3, 2,
              TEXTS("c0 o s1 c1 o s2 | c1 r2 ! c0 o r1 r2 !",
                    "c1 o s2 c0 o s0 c1 r2 ! c0 r0 o r2 s2 !",
                    "c1 r0 r1 o s0 s1 ! c0 o s0 s1 c0 r1 !"),
              8, "in place: rank 0", "order only through another chunk");
    text_case(3, 2,
              TEXTS("c0 o s1 c1 o s2 c1 r2 ! c0 o r1 r2 !",
                    "c1 o s2 c0 o s0 c1 r2 ! c0 r0 o r2 s2 !",
                    "c1 r0 r1 o s0 s1 ! c0 o s0 s1 c0 r1 !"),
              1, NULL, "the same in one stream: proven");
    /* The same chunk order in the stream that reads and writes needs no proof. */
    text_case(2, 1, TEXTS("c0 o s1 c0 o r1 !", "c0 o s0 c0 r0 o !"), 8, NULL,
              "read, then overwritten by one stream: proven");
}

/* Change one field of one program of an otherwise correct set. */
typedef struct fault {
    const char *what;
    const char *words;
    void (*plant)(gp_program_t *p);
} fault_t;

static void plant_ordinal(gp_program_t *p)
{
    p->refs[p->steps[p->n_steps - 1].in_first].ordinal++;
}
static void plant_send_ordinal(gp_program_t *p)
{
    p->refs[p->steps[0].send_first].ordinal = 1;
}
static void plant_chunk(gp_program_t *p)
{
    p->steps[1].chunk = p->n_chunks;
}
static void plant_flags(gp_program_t *p)
{
    p->steps[0].flags |= 2u;
}
static void plant_no_input(gp_program_t *p)
{
    p->steps[0].n_in = 0;
}
static void plant_in_range(gp_program_t *p)
{
    p->steps[0].in_first = p->n_refs;
}
static void plant_in_wrap(gp_program_t *p)
{
    p->steps[0].in_first = UINT32_MAX;
}
static void plant_send_range(gp_program_t *p)
{
    p->steps[0].n_send = p->n_refs + 1;
}
static void plant_in_link(gp_program_t *p)
{
    p->refs[p->steps[p->n_steps - 1].in_first].conn = p->n_recv;
}
static void plant_send_link(gp_program_t *p)
{
    p->refs[p->steps[0].send_first].conn = p->n_send;
}
static void plant_own_send(gp_program_t *p)
{
    p->refs[p->steps[0].send_first].conn = GP_REF_OWN;
}
static void plant_no_output(gp_program_t *p)
{
    p->steps[p->n_steps - 1].flags = 0;
}
static void plant_output_twice(gp_program_t *p)
{
    p->steps[0].flags = GP_STEP_OUTPUT;
}
static void plant_recv_uses(gp_program_t *p)
{
    p->recv[0].uses++;
}
static void plant_send_uses(gp_program_t *p)
{
    p->send[0].uses--;
}
static void plant_self_link(gp_program_t *p)
{
    p->recv[0].peer = p->rank;
}
static void plant_far_link(gp_program_t *p)
{
    p->send[0].peer = p->n_ranks;
}
static void plant_rank(gp_program_t *p)
{
    p->rank++;
}
static void plant_n_ranks(gp_program_t *p)
{
    p->n_ranks++;
}
static void plant_n_chunks(gp_program_t *p)
{
    p->n_chunks++;
}
static void plant_channel(gp_program_t *p)
{
    p->channel++;
}
static void plant_short_stream(gp_program_t *p)
{
    p->streams[0].count--;
}
static void plant_empty_stream(gp_program_t *p)
{
    p->streams[0].count = 0;
}
static void plant_long_stream(gp_program_t *p)
{
    p->streams[0].count++;
}

static const fault_t faults[] = {
    {"receive ordinal", "ordinal", plant_ordinal},
    {"send ordinal", "ordinal", plant_send_ordinal},
    {"chunk out of range", "chunk", plant_chunk},
    {"unknown flag", "flags", plant_flags},
    {"no input", "outside the list", plant_no_input},
    {"inputs past the list", "outside the list", plant_in_range},
    {"inputs far past the list", "outside the list", plant_in_wrap},
    {"sends past the list", "outside the list", plant_send_range},
    {"input from no link", "no receive link", plant_in_link},
    {"send to no link", "no send link", plant_send_link},
    {"send to own buffer", "no send link", plant_own_send},
    {"output missing", "0 times", plant_no_output},
    {"output twice", "2 times", plant_output_twice},
    {"receive uses", "uses stated", plant_recv_uses},
    {"send uses", "uses stated", plant_send_uses},
    {"link to oneself", "leads to rank", plant_self_link},
    {"link out of range", "leads to rank", plant_far_link},
    {"another rank's program", "is not the program of rank", plant_rank},
    {"another communicator's program", "is not the program of rank", plant_n_ranks},
    {"number of chunks", "chunks", plant_n_chunks},
    {"channel", "channel", plant_channel},
    {"step in no stream", "in no stream", plant_short_stream},
    {"empty stream", "empty or outside", plant_empty_stream},
    {"stream past the steps", "empty or outside", plant_long_stream},
};

static void test_faults(void)
{
    gp_group_begin(
        "%u faults of one field, each in rings and flat programs of 2-8 ranks, each rank",
        (uint32_t) (sizeof(faults) / sizeof(faults[0])));
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
        for (uint32_t n = 2; n <= 8; n++) {
            for (uint32_t r = 0; r < n; r++) {
                for (int a = 0; a < 2; a++) {
                    set_t s;

                    emit_set(&s, 0 == a ? GP_ALGO_RING : GP_ALGO_FLAT, n, 0, 1);
                    faults[f].plant(s.p[r]);
                    /* Flat's last step may begin with the own input, which has no link. */
                    if (1 == a && 0 == r
                        && (plant_ordinal == faults[f].plant || plant_in_link == faults[f].plant)) {
                        refused(&s, "", faults[f].what);
                    } else {
                        refused(&s, faults[f].words, faults[f].what);
                    }
                    free_set(&s);
                }
            }
        }
    }
    gp_group_end();
}

/* Faults that need more than one field. */
static void test_links(void)
{
    gp_program_t *p;
    gp_edit_t e;
    char reason[300];
    set_t s;

    text_case(3, 1, TEXTS("c0 o r1 s1 !", "c0 o s0 c0 r0 !", "c0 r1 !"), 8,
              "which does not send to it", "a receive link without its sender");
    text_case(2, 1, TEXTS("c0 o s1 c0 o s1 c0 r1 !", "c0 r0 o s0 !"), 8,
              "sends 2 times a loop to rank 1, which receives 1 times", "a value nobody takes");
    gp_group_begin("links: exchanged peers, doubled peers, a step in two streams, arguments");
    emit_set(&s, GP_ALGO_TREE, 4, 0, 1);
    for (uint32_t r = 0; r < 4; r++) {
        p = s.p[r];
        if (p->n_recv >= 2) { /* answers go where the others' sums came from */
            uint32_t peer = p->send[0].peer;

            p->send[0].peer = p->send[1].peer;
            p->send[1].peer = peer;
            p->recv[0].peer = p->recv[1].peer;
            refused(&s, "two receive links", "doubled peer");
        }
    }
    free_set(&s);
    emit_set(&s, GP_ALGO_RING, 4, 0, 1);
    s.p[2]->recv[0].peer = 0; /* really 1 */
    refused(&s, "does not receive from it", "receive link to the wrong peer");
    free_set(&s);
    emit_set(&s, GP_ALGO_RING, 4, 0, 1);
    p = gp_program_alloc(2, s.p[1]->n_steps, s.p[1]->n_refs, 1, 1);
    if (NULL == p) {
        gp_bail_out("out of memory");
    }
    p->rank = 1;
    p->n_ranks = 4;
    p->n_chunks = 4;
    memcpy(p->steps, s.p[1]->steps, p->n_steps * sizeof(*p->steps));
    memcpy(p->refs, s.p[1]->refs, p->n_refs * sizeof(*p->refs));
    p->recv[0] = s.p[1]->recv[0];
    p->send[0] = s.p[1]->send[0];
    p->streams[0].count = 3;
    p->streams[1].first = 3;
    p->streams[1].count = p->n_steps - 3;
    gp_program_free(s.p[1]);
    s.p[1] = p;
    refused(&s, "is in two streams", "a link in two streams");
    p->streams[1].first = 2;
    p->streams[1].count++;
    refused(&s, "step 2 is in two streams", "a step in two streams");
    free_set(&s);
    emit_set(&s, GP_ALGO_RING, 4, 0, 1);
    gp_thaw(s.p[1], &e);
    e.recv[e.n_recv++] = 3;
    replace(&s, &e);
    refused(&s, "0 uses stated", "a link that no step uses");
    free_set(&s);
    emit_set(&s, GP_ALGO_RING, 3, 0, 1);
    gp_check(GP_ERR_INVALID == verify(&s, 0, 1, reason, sizeof(reason)), "no slots");
    gp_check(GP_ERR_INVALID == verify(&s, GP_MAX_SLOTS + 1, 1, reason, sizeof(reason)), "17 slots");
    gp_check(GP_ERR_INVALID == verify(&s, 8, 0, reason, sizeof(reason)), "no loops");
    gp_check(GP_OK == verify(&s, 8, 1, NULL, 0), "no room for a reason, proven");
    gp_program_free(s.p[2]);
    s.p[2] = NULL;
    gp_check(GP_ERR_INVALID == verify(&s, 8, 1, NULL, 0), "no program, no room for a reason");
    refused(&s, "is not the program of rank", "no program");
    free_set(&s);
    gp_group_end();
}

/* A random fault in a random program. */
static void test_random_faults(void)
{
    uint64_t seeds = NULL != getenv("GP_CHECK_QUICK") ? 60 : 600;

    gp_group_begin("random programs, each with its first own input, output or chunk changed");
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint32_t n = 2 + (uint32_t) (seed % 7);
        set_t s;

        s.n = n;
        if (GP_OK != gp_random_programs(seed, n, 1 + (uint32_t) (seed % 8), s.p)) {
            gp_check(0, "seed %llu: no programs", (unsigned long long) seed);
            continue;
        }
        for (uint32_t r = 0; r < n; r++) {
            gp_edit_t good, e;
            uint32_t i = (uint32_t) (seed >> 2) % s.p[r]->n_steps;

            gp_thaw(s.p[r], &good);
            e = good;
            e.steps[i].flags ^= GP_STEP_OUTPUT;
            replace(&s, &e);
            refused(&s, "times", "output flipped");
            e = good;
            if (GP_REF_OWN == e.steps[i].in[0] && e.steps[i].n_in > 1) {
                e.steps[i].n_in--;
                memmove(e.steps[i].in, e.steps[i].in + 1, e.steps[i].n_in * sizeof(uint32_t));
                replace(&s, &e);
                refused(&s, "contributions instead of", "own dropped");
                e = good;
            }
            if (e.n_chunks > 1) {
                e.steps[i].chunk = (e.steps[i].chunk + 1) % e.n_chunks;
                replace(&s, &e);
                refused(&s, "chunk", "another chunk");
            }
            replace(&s, &good);
        }
        free_set(&s);
        if (gp_group_failures() > 10) {
            gp_diag("stopped at seed %llu", (unsigned long long) seed);
            break;
        }
    }
    gp_group_end();
}

int main(void)
{
    gp_tap_begin();
    test_planner();
    test_contributions();
    test_expressions();
    test_slots();
    test_in_place();
    test_faults();
    test_links();
    test_random_faults();
    return gp_tap_end();
}
