/*
 * test_random_program.c - the generator of random programs, and the verifier against an interpreter.
 *
 * The interpreter here shares nothing with the verifier: it runs the programs step by step in a random
 * schedule on real memory, in place, with queues of n_slots values, and adds numbers. What the verifier
 * proved must come out right in every schedule; what it refuses for a deadlock must get stuck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "planner/gp_verify.h"
#include "tests/unit/gp_random_program.h"

#define N GP_RANDOM_MOST_RANKS
#define MOST_CHUNKS 8
#define MOST_STREAMS 4

/* What travels: how often each rank is in it, and a hash of the order of its sum. */
typedef struct value {
    uint32_t times[N];
    uint64_t order;
} value_t;

typedef struct queue {
    value_t slots[GP_MAX_SLOTS];
    uint64_t first;
    uint64_t end;
} queue_t;

typedef struct machine {
    gp_program_t **programs;
    uint32_t n;
    uint32_t n_slots;
    uint64_t random;
    queue_t queues[N][N]; /* from, to */
    uint32_t at[N][MOST_STREAMS];
    value_t memory[N][MOST_CHUNKS]; /* in place: input, later output */
} machine_t;

static uint32_t below(machine_t *m, uint32_t n)
{
    m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (m->random >> 33) % n;
}

static const gp_step_t *next_step(const machine_t *m, uint32_t r, uint32_t t)
{
    const gp_program_t *p = m->programs[r];

    return m->at[r][t] < p->streams[t].count ? &p->steps[p->streams[t].first + m->at[r][t]] : NULL;
}

static int runnable(const machine_t *m, uint32_t r, const gp_step_t *s)
{
    const gp_program_t *p = m->programs[r];

    for (uint32_t k = 0; k < s->n_in; k++) {
        uint32_t conn = p->refs[s->in_first + k].conn;

        if (GP_REF_OWN != conn) {
            const queue_t *q = &m->queues[p->recv[conn].peer][r];

            if (q->first == q->end) {
                return 0;
            }
        }
    }
    for (uint32_t k = 0; k < s->n_send; k++) {
        const queue_t *q = &m->queues[r][p->send[p->refs[s->send_first + k].conn].peer];

        if (q->end - q->first == m->n_slots) {
            return 0;
        }
    }
    return 1;
}

static void run_step(machine_t *m, uint32_t r, const gp_step_t *s)
{
    const gp_program_t *p = m->programs[r];
    value_t sum;

    memset(&sum, 0, sizeof(sum));
    for (uint32_t k = 0; k < s->n_in; k++) {
        uint32_t conn = p->refs[s->in_first + k].conn;
        value_t in = m->memory[r][s->chunk];

        if (GP_REF_OWN != conn) {
            queue_t *q = &m->queues[p->recv[conn].peer][r];

            in = q->slots[q->first++ % m->n_slots];
        }
        for (uint32_t i = 0; i < N; i++) {
            sum.times[i] += in.times[i];
        }
        sum.order = 0 == k ? in.order : sum.order * 0x9e3779b97f4a7c15ull + (in.order ^ 0x5bd1);
    }
    for (uint32_t k = 0; k < s->n_send; k++) {
        queue_t *q = &m->queues[r][p->send[p->refs[s->send_first + k].conn].peer];

        q->slots[q->end++ % m->n_slots] = sum;
    }
    if (s->flags & GP_STEP_OUTPUT) {
        m->memory[r][s->chunk] = sum;
    }
}

/* Run everything in one random schedule. 1: all done, 0: stuck. */
static int run(machine_t *m)
{
    memset(m->queues, 0, sizeof(m->queues));
    memset(m->at, 0, sizeof(m->at));
    memset(m->memory, 0, sizeof(m->memory));
    for (uint32_t r = 0; r < m->n; r++) {
        for (uint32_t c = 0; c < m->programs[r]->n_chunks; c++) {
            m->memory[r][c].times[r] = 1;
            m->memory[r][c].order = 1000 + r;
        }
    }
    for (;;) {
        uint32_t candidates[N * MOST_STREAMS][2], count = 0, left = 0, pick;

        for (uint32_t r = 0; r < m->n; r++) {
            for (uint32_t t = 0; t < m->programs[r]->n_streams; t++) {
                const gp_step_t *s = next_step(m, r, t);

                left += NULL != s;
                if (NULL != s && runnable(m, r, s)) {
                    candidates[count][0] = r;
                    candidates[count++][1] = t;
                }
            }
        }
        if (0 == count) {
            return 0 == left;
        }
        pick = below(m, count);
        run_step(m, candidates[pick][0], next_step(m, candidates[pick][0], candidates[pick][1]));
        m->at[candidates[pick][0]][candidates[pick][1]]++;
    }
}

static void check_result(const machine_t *m, uint64_t seed)
{
    for (uint32_t r = 0; r < m->n; r++) {
        for (uint32_t c = 0; c < m->programs[r]->n_chunks; c++) {
            const value_t *v = &m->memory[r][c];

            for (uint32_t i = 0; i < m->n; i++) {
                gp_check(1 == v->times[i], "seed %llu ranks %u rank %u chunk %u: rank %u %u times",
                         (unsigned long long) seed, m->n, r, c, i, v->times[i]);
            }
            gp_check(v->order == m->memory[0][c].order,
                     "seed %llu ranks %u rank %u chunk %u: order", (unsigned long long) seed, m->n,
                     r, c);
        }
    }
    for (uint32_t r = 0; r < m->n; r++) {
        for (uint32_t i = 0; i < m->n; i++) {
            gp_check(m->queues[r][i].first == m->queues[r][i].end,
                     "seed %llu: values left from %u to %u", (unsigned long long) seed, r, i);
        }
    }
}

static void free_programs(gp_program_t **programs, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        gp_program_free(programs[r]);
    }
}

static void test_against_interpreter(machine_t *m, uint64_t seeds)
{
    uint32_t several_streams = 0, relays = 0, cores = 0, refused = 0;

    gp_group_begin("random programs: right in random schedules, in place, ranks 1-%d, slots 1-16",
                   N);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        gp_program_t *programs[N];
        uint32_t n = 1 + (uint32_t) (seed % N), slots = 1 + (uint32_t) (seed / N % GP_MAX_SLOTS);
        gp_status_t status = gp_random_programs(seed, n, slots, programs);

        if (!gp_check(GP_OK == status, "seed %llu ranks %u slots %u: %d", (unsigned long long) seed,
                      n, slots, status)) {
            continue;
        }
        m->programs = programs;
        m->n = n;
        m->random = seed;
        m->n_slots = slots;
        for (uint32_t r = 0; r < n; r++) {
            const gp_program_t *p = programs[r];

            several_streams += p->n_streams > 1;
            for (uint32_t i = 0; i < p->n_steps; i++) {
                const gp_step_t *s = &p->steps[i];

                relays += 1 == s->n_in && GP_REF_OWN != p->refs[s->in_first].conn && !s->flags;
                cores += 1 == s->n_in && GP_REF_OWN == p->refs[s->in_first].conn && s->n_send > 1;
            }
        }
        for (uint32_t repeat = 0; repeat < 4; repeat++) {
            if (gp_check(run(m), "seed %llu ranks %u slots %u: stuck", (unsigned long long) seed, n,
                         slots)) {
                check_result(m, seed);
            }
        }
        /* With one slot they may get stuck: verifier and interpreter must agree. */
        m->n_slots = 1;
        status = gp_verify((const gp_program_t *const *) programs, n, 1, 2, NULL, 0);
        refused += GP_OK != status;
        gp_check((GP_OK == status) == run(m), "seed %llu ranks %u: verified with one slot: %d",
                 (unsigned long long) seed, n, status);
        free_programs(programs, n);
    }
    gp_group_end();
    gp_ok(several_streams > seeds / 8 && relays > seeds / 8 && cores > seeds / 8 && refused > 0,
          "the draws are varied: several streams, relays, exchanges, need of slots");
    gp_diag("several streams %u, relays %u, multicasts %u, stuck with one slot %u", several_streams,
            relays, cores, refused);
}

static void test_pure(void)
{
    gp_program_t *a[N], *b[N];
    int same = 1;

    for (uint64_t seed = 0; seed < 50; seed++) {
        if (GP_OK != gp_random_programs(seed, 5, 2, a)
            || GP_OK != gp_random_programs(seed, 5, 2, b)) {
            gp_bail_out("seed %llu", (unsigned long long) seed);
        }
        for (uint32_t r = 0; r < 5; r++) {
            same = same && a[r]->n_refs == b[r]->n_refs && a[r]->n_steps == b[r]->n_steps
                   && 0 == memcmp(a[r]->steps, b[r]->steps, a[r]->n_steps * sizeof(*a[r]->steps))
                   && 0 == memcmp(a[r]->refs, b[r]->refs, a[r]->n_refs * sizeof(*a[r]->refs));
        }
        free_programs(a, 5);
        free_programs(b, 5);
    }
    gp_ok(same, "the same seed gives the same programs");
    gp_ok(GP_ERR_INVALID == gp_random_programs(1, N + 1, 2, a), "too many ranks: refused");
    gp_ok(GP_ERR_INVALID == gp_random_programs(1, 2, 0, a), "no slots: refused");
}

int main(void)
{
    machine_t *m = malloc(sizeof(*m));

    gp_tap_begin();
    if (NULL == m) {
        gp_bail_out("out of memory");
    }
    test_against_interpreter(m, NULL != getenv("GP_CHECK_QUICK") ? 400 : 4000);
    test_pure();
    free(m);
    return gp_tap_end();
}
