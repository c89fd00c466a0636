/*
 * test_gate.c - wide launches wait for all ranks, and take turns: processes and threads on a GPU that is
 * a counter.
 *
 * The counter has room for one wide launch of all ranks and no more, and what is launched ends only when
 * all its ranks have been launched, as our kernels do. Two communicators that are called in opposite
 * orders get stuck on it unless something orders them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/proto/gp_port.h"
#include "tests/lib/gp_tap.h"
#include "transport/gp_gate.h"

enum { RANKS = 4, COMMS = 2, CALLS = 60, GATHER_BYTES = 512, PATIENCE_S = 30 };

/* What all processes see; zero at the start of a case. */
typedef struct shared {
    uint64_t room;            /* units free on the GPU */
    uint64_t started[COMMS];  /* launches, all ranks and calls together */
    uint64_t wrong;
    uint64_t asleep;          /* rank 1 is late just now */
    struct {
        uint64_t in, out;     /* of the gathers so far */
        unsigned char bytes[RANKS][GATHER_BYTES];
    } boot[COMMS];
} shared_t;

static shared_t *all;
static uint64_t keys[2];

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Wait until *p >= least. 0: it took too long. */
static int reach(const uint64_t *p, uint64_t least)
{
    double end = seconds() + PATIENCE_S;

    while (gp_load_acquire_u64(p) < least) {
        if (seconds() > end) {
            return 0;
        }
        sched_yield();
    }
    return 1;
}

typedef struct boot_ctx {
    uint32_t comm, rank;
    uint64_t round;
} boot_ctx_t;

static gp_status_t allgather(void *ctx, const void *send, void *recv, size_t bytes)
{
    boot_ctx_t *c = ctx;

    if (bytes > GATHER_BYTES || !reach(&all->boot[c->comm].out, c->round * RANKS)) {
        return GP_ERR_PEER;
    }
    memcpy(all->boot[c->comm].bytes[c->rank], send, bytes);
    __atomic_add_fetch(&all->boot[c->comm].in, 1, __ATOMIC_ACQ_REL);
    if (!reach(&all->boot[c->comm].in, ++c->round * RANKS)) {
        return GP_ERR_PEER;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        memcpy((char *) recv + r * bytes, all->boot[c->comm].bytes[r], bytes);
    }
    __atomic_add_fetch(&all->boot[c->comm].out, 1, __ATOMIC_ACQ_REL);
    return GP_OK;
}

static int take_unit(void)
{
    double end = seconds() + PATIENCE_S;
    uint64_t room;

    do {
        room = gp_load_acquire_u64(&all->room);
        if (0 == room) {
            if (seconds() > end) {
                return 0;
            }
            sched_yield();
        }
    } while (0 == room
             || !__atomic_compare_exchange_n(&all->room, &room, room - 1, 0, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED));
    return 1;
}

/* A wide call: the gate, room on the GPU, all peers. */
static int call(gp_gate_t *gate, uint32_t comm, uint64_t number)
{
    double end = seconds() + PATIENCE_S;
    gp_status_t status = GP_AGAIN;
    int ok;

    gp_gate_arrive(gate);
    while (GP_AGAIN == status && seconds() < end) {
        status = gp_gate_try(gate);
        sched_yield();
    }
    ok = GP_OK == status && take_unit();
    if (ok) {
        __atomic_add_fetch(&all->started[comm], 1, __ATOMIC_ACQ_REL);
        ok = reach(&all->started[comm], number * RANKS);
        __atomic_add_fetch(&all->room, 1, __ATOMIC_ACQ_REL);
    }
    gp_gate_leave(gate);
    return ok;
}

typedef struct job {
    gp_gate_t *gate;
    uint32_t comm;
} job_t;

static void *calls_of(void *arg)
{
    job_t *job = arg;

    for (uint64_t i = 1; i <= CALLS; i++) {
        if (!call(job->gate, job->comm, i)) {
            __atomic_add_fetch(&all->wrong, 1, __ATOMIC_ACQ_REL);
            break;
        }
    }
    return NULL;
}

/* Both communicators at once from two threads, started in opposite orders by odd ranks. */
static void opposite_orders(gp_gate_t *const *gates, uint32_t rank)
{
    pthread_t threads[COMMS];
    job_t jobs[COMMS];

    for (uint32_t i = 0; i < COMMS; i++) {
        uint32_t c = rank % 2 ? COMMS - 1 - i : i;

        jobs[c].gate = gates[c];
        jobs[c].comm = c;
        pthread_create(&threads[c], NULL, calls_of, &jobs[c]);
    }
    for (uint32_t c = 0; c < COMMS; c++) {
        pthread_join(threads[c], NULL);
    }
}

/* Rank 1 is late: nobody launches, and everybody knows for whom they wait. */
static void late_rank(gp_gate_t *const *gates, uint32_t rank)
{
    uint64_t wrong = 0;

    if (1 == rank) {
        gp_store_release_u64(&all->asleep, 1);
        usleep(200000);
        wrong += 0 != gp_load_acquire_u64(&all->started[0]);
        gp_store_release_u64(&all->asleep, 0);
    } else {
        (void) reach(&all->asleep, 1);
    }
    gp_gate_arrive(gates[0]);
    if (1 != rank) {
        usleep(100000);
        wrong += GP_AGAIN != gp_gate_try(gates[0]);
        /* Others may not be there either yet, on a busy machine; rank 1 surely is not. */
        wrong += gp_gate_missing(gates[0]) > 1;
    }
    while (GP_AGAIN == gp_gate_try(gates[0])) {
        sched_yield();
    }
    __atomic_add_fetch(&all->started[0], 1, __ATOMIC_ACQ_REL);
    wrong += !reach(&all->started[0], RANKS);
    wrong += RANKS != gp_gate_missing(gates[0]);
    gp_gate_leave(gates[0]);
    __atomic_add_fetch(&all->wrong, wrong, __ATOMIC_ACQ_REL);
}

/* The rank that holds the tokens of communicator 0 is killed: communicator 1 goes on. */
static void killed_holder(gp_gate_t *const *gates, uint32_t rank)
{
    double end = seconds() + PATIENCE_S;

    gp_gate_arrive(gates[0]);
    while (GP_AGAIN == gp_gate_try(gates[0]) && seconds() < end) {
        sched_yield();
    }
    /* Everybody is through the gate of 0; nobody leaves it. Who holds its tokens dies with them. */
    __atomic_add_fetch(&all->started[0], 1, __ATOMIC_ACQ_REL);
    (void) reach(&all->started[0], RANKS);
    if (0 == rank) {
        gp_status_t status = GP_AGAIN;

        gp_gate_destroy(gates[0]); /* if rank 0 itself held them */
        (void) reach(&all->asleep, RANKS - 1);
        gp_gate_arrive(gates[1]); /* last: it asks for the tokens */
        while (GP_AGAIN == status && seconds() < end) {
            status = gp_gate_try(gates[1]);
        }
        __atomic_add_fetch(&all->wrong, GP_OK != status, __ATOMIC_ACQ_REL);
        _exit(0);
    }
    gp_gate_arrive(gates[1]);
    __atomic_add_fetch(&all->asleep, 1, __ATOMIC_ACQ_REL);
    kill(getpid(), SIGKILL);
}

typedef void (*case_t)(gp_gate_t *const *gates, uint32_t rank);

static void process(uint32_t rank, case_t run)
{
    boot_ctx_t ctx[COMMS];
    gp_gate_t *gates[COMMS];
    gp_arena_t *shm;

    alarm(2 * PATIENCE_S);
    if (GP_OK != gp_shm_arena(&shm)) {
        _exit(2);
    }
    for (uint32_t c = 0; c < COMMS; c++) {
        gp_boot_t boot = {&ctx[c], rank, RANKS, allgather};

        ctx[c].comm = c;
        ctx[c].rank = rank;
        ctx[c].round = 0;
        /* The same GPUs, named in different orders. */
        uint64_t mine[2] = {keys[c], keys[1 - c]};
        if (GP_OK != gp_gate_create(shm, &boot, mine, 2, &gates[c])) {
            _exit(3);
        }
    }
    run(gates, rank);
    for (uint32_t c = 0; c < COMMS; c++) {
        gp_gate_destroy(gates[c]);
    }
    gp_shm_arena_finalize();
    _exit(0);
}

static void check_case(const char *name, case_t run, int signalled)
{
    pid_t children[RANKS];
    int bad = 0, killed = 0;

    memset(all, 0, sizeof(*all));
    all->room = RANKS;
    fflush(stdout);
    for (uint32_t r = 0; r < RANKS; r++) {
        children[r] = fork();
        if (0 == children[r]) {
            process(r, run);
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = 1;

        waitpid(children[r], &status, 0);
        killed += WIFSIGNALED(status) && SIGKILL == WTERMSIG(status);
        bad += !WIFSIGNALED(status) && 0 != WEXITSTATUS(status);
    }
    gp_ok(0 == bad && killed == signalled && 0 == all->wrong,
          "%s (%d failed, %d killed, %llu wrong)", name, bad, killed,
          (unsigned long long) all->wrong);
}

int main(void)
{
    gp_tap_begin();
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == all) {
        gp_bail_out("no shared memory");
    }
    keys[0] = (uint64_t) getpid() << 32 | 1;
    keys[1] = (uint64_t) getpid() << 32 | 2;
    check_case("two communicators, two threads, opposite orders", opposite_orders, 0);
    check_case("a late rank holds the launch back", late_rank, 0);
    check_case("the tokens of a killed rank are free", killed_holder, RANKS - 1);
    return gp_tap_end();
}
