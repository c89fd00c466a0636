/*
 * gp_simt.cc - the fibre scheduler.
 *
 * Owns fibres (stack, saved stack pointer, ThreadSanitizer's view), blocks (barriers, warps, shared
 * memory) and the passes over them. Compiled without ThreadSanitizer even where the kernels are:
 * what orders memory is told to it in so many words, and nothing else does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/simt/gp_simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_TSAN) /* given by the makefile: this file itself is not instrumented */
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#define SIMT_NO_SYNC 1u
#define SIMT_ACQUIRE(p) __tsan_acquire(p)
#define SIMT_RELEASE(p) __tsan_release(p)
/* The scheduler's own memory: ordering it would order ranks that nothing else orders. */
#define SIMT_UNSEEN_BEGIN()                                                                        \
    (AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__))
#define SIMT_UNSEEN_END()                                                                          \
    (AnnotateIgnoreWritesEnd(__FILE__, __LINE__), AnnotateIgnoreReadsEnd(__FILE__, __LINE__))
#else
#define SIMT_UNSEEN_BEGIN() ((void) 0)
#define SIMT_UNSEEN_END() ((void) 0)
#define SIMT_ACQUIRE(p) ((void) (p))
#define SIMT_RELEASE(p) ((void) (p))
#endif

#define SIMT_STACK_BYTES (128u * 1024u)
#define SIMT_QUIET_PASSES 512u /* more than GP_ABORT_POLLS of the kernels under test */

uint64_t simt_passes;
uint64_t simt_switches;
uint32_t simt_races;
const simt_self_t *simt_self;
uint32_t simt_preempt_rate;

namespace {

enum State { READY, POLLING, WAITING, DONE };

struct Meeting { /* of a barrier, a warp or the lanes of a line */
    uint32_t arrived;
    uint32_t expected;
    uint32_t generation;
    char sync[2]; /* addresses for ThreadSanitizer, one per generation parity */
};

struct Warp {
    Meeting vote;
    simt_vote_t kind;
    uint32_t values[2][32];
    struct Line {
        Meeting meet;
        unsigned char *at[8];
        uint64_t w[8][2];
    } lines[4];
};

struct Block;

struct Stack { /* pooled: pages once touched stay, and sanitizer fibres are costly to make */
    void *sp;
    unsigned char *base;
    void *tsan;
};

struct Fibre {
    simt_self_t self; /* first: simt_self points here */
    Stack *stack;
    Block *block;
    State state;
    Meeting *meeting;
    uint32_t generation; /* of the meeting it waits for */
    const char *doing;   /* for reports */
    uint32_t poll_kind;
    uint32_t poll_peer;
    uint64_t poll_step;
    void *asan_fake;
};

struct Rank;

struct Block {
    Rank *rank;
    uint32_t live;
    unsigned char *shared;
    Meeting barriers[SIMT_MAX_BARRIERS];
    std::vector<Warp> warps;
    std::vector<Fibre> fibres;
};

struct Rank {
    const simt_rank_t *what;
    uint32_t index;
    uint32_t next;       /* launch to start */
    uint32_t live;       /* blocks of the current one that have not ended */
    char sync;
    std::vector<Block *> blocks;
};

std::vector<Stack *> &pool = *new std::vector<Stack *>; /* lives to the end, like its stacks */
void *main_sp;
#if defined(SIMT_TSAN)
void *main_tsan;
#endif
#if defined(SIMT_ASAN)
const void *main_bottom;
size_t main_bytes;
void *main_fake;
#endif
Fibre *current;
bool progress;
bool split_lines;
uint64_t random_state;
char *report_text;
size_t report_room;
bool failed;

uint32_t rnd()
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (random_state >> 33);
}

__attribute__((format(printf, 2, 3))) void fail(const Fibre *f, const char *format, ...)
{
    va_list args;
    int n = 0;

    if (failed) {
        return;
    }
    failed = true;
    if (NULL != f) {
        n = snprintf(report_text, report_room, "rank %u launch %u block %u thread %u of %u: ",
                     f->block->rank->index, f->block->rank->next - 1, f->self.block.x,
                     f->self.thread.x, f->self.block_dim.x);
    }
    va_start(args, format);
    vsnprintf(report_text + n, report_room - (size_t) n, format, args);
    va_end(args);
}

} // namespace

#if defined(SIMT_TSAN)
/* Called by the sanitizer's run time. Here, because it must not be instrumented. */
extern "C" void __tsan_on_report(void *report)
{
    (void) report;
    ++simt_races;
}
#endif

/* Save callee-saved registers, store the stack pointer to *save, continue at `to`. */
extern "C" void simt_switch(void **save, void *to);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl simt_switch\n"
        ".hidden simt_switch\n"
        ".type simt_switch, @function\n"
        "simt_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size simt_switch, . - simt_switch\n");
#else
extern "C" void simt_switch(void **, void *)
{
    abort(); /* SIMT_SUPPORTED is 0: no test gets here */
}
#endif

namespace {

void to_main(bool last)
{
    Fibre *f = current;

    (void) last;
#if defined(SIMT_TSAN)
    __tsan_switch_to_fiber(main_tsan, SIMT_NO_SYNC);
#endif
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(last ? NULL : &f->asan_fake, main_bottom, main_bytes);
#endif
    simt_switch(&f->stack->sp, main_sp);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(f->asan_fake, &main_bottom, &main_bytes);
#endif
}

void pause_as(State state)
{
    current->state = state;
    to_main(false);
}

void fibre_main()
{
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(NULL, &main_bottom, &main_bytes);
#endif
    Fibre *f = current;
    Rank *rank = f->block->rank;
    const simt_launch_t *launch = &rank->what->launches[rank->next - 1];

    SIMT_ACQUIRE(&rank->sync);
    launch->kernel(launch->args);
    SIMT_RELEASE(&rank->sync);
    f->state = DONE;
    to_main(true);
    abort();
}

/* Make the stack look as if fibre_main had called simt_switch: entered with rsp % 16 == 8. */
void prepare(Stack *stack)
{
    void **top = (void **) (stack->base + SIMT_STACK_BYTES);

    *--top = NULL; /* fibre_main's return address: it never returns */
    *--top = (void *) fibre_main;
    for (int i = 0; i < 6; ++i) {
        *--top = NULL;
    }
    stack->sp = top;
}

Stack *take_stack()
{
    Stack *stack;

    if (pool.empty()) {
        stack = new Stack;
        stack->base = (unsigned char *) mmap(NULL, SIMT_STACK_BYTES + 4096, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (MAP_FAILED == (void *) stack->base) {
            perror("simt: stacks");
            exit(99);
        }
        mprotect(stack->base, 4096, PROT_NONE); /* an overflow faults */
        stack->base += 4096;
        stack->tsan = NULL;
#if defined(SIMT_TSAN)
        stack->tsan = __tsan_create_fiber(SIMT_NO_SYNC);
#endif
    } else {
        stack = pool.back();
        pool.pop_back();
    }
    prepare(stack);
    return stack;
}

void run_fibre(Fibre *f)
{
    ++simt_switches;
    current = f;
    simt_self = &f->self;
#if defined(SIMT_TSAN)
    __tsan_switch_to_fiber(f->stack->tsan, SIMT_NO_SYNC);
#endif
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(&main_fake, f->stack->base, SIMT_STACK_BYTES);
#endif
    simt_switch(&main_sp, f->stack->sp);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(main_fake, NULL, NULL);
#endif
    current = NULL;
}

void start_launch(Rank *rank)
{
    const simt_launch_t *launch = &rank->what->launches[rank->next++];

    SIMT_UNSEEN_BEGIN();
    for (uint32_t b = 0; b < launch->blocks; ++b) {
        Block *block = new Block();

        block->rank = rank;
        block->live = launch->threads;
        block->shared = (unsigned char *) malloc(launch->shared_bytes
                                                 + (0 == launch->shared_bytes));
        memset(block->shared, 0xdb, launch->shared_bytes);
        block->warps.resize((launch->threads + 31) / 32);
        block->fibres.resize(launch->threads);
        for (uint32_t t = 0; t < launch->threads; ++t) {
            Fibre *f = &block->fibres[t];

            f->self.thread.x = t;
            f->self.block.x = b;
            f->self.block_dim.x = launch->threads;
            f->self.grid_dim.x = launch->blocks;
            f->self.shared = block->shared;
            f->stack = take_stack();
            f->block = block;
            f->state = READY;
            f->doing = "not started";
        }
        rank->blocks.push_back(block);
        ++rank->live;
    }
    SIMT_UNSEEN_END();
}

void drop_block(Block *block)
{
    for (Fibre &f : block->fibres) {
#if defined(SIMT_ASAN)
        __asan_unpoison_memory_region(f.stack->base, SIMT_STACK_BYTES); /* of a fibre cut short */
#endif
        pool.push_back(f.stack);
    }
    free(block->shared);
    delete block;
}

void drop_blocks(Rank *rank)
{
    SIMT_UNSEEN_BEGIN();
    for (Block *block : rank->blocks) {
        drop_block(block);
    }
    rank->blocks.clear();
    SIMT_UNSEEN_END();
}

/*
 * One visit. What counts as progress of the whole: barriers, lines, ends, and polls for something
 * new. Votes and interruptions do not: a poll loop may contain them.
 */
void visit(Fibre *f)
{
    if (DONE == f->state) {
        return;
    }
    if (WAITING == f->state) {
        if (f->meeting->generation == f->generation) {
            return;
        }
        f->state = READY;
    }
    run_fibre(f);
    if (DONE == f->state) {
        progress = true;
        if (0 == --f->block->live) {
            --f->block->rank->live;
        }
    }
}

/* Who waits for what, one line each, the first few. */
void describe(std::vector<Rank> &ranks)
{
    size_t n = strlen(report_text);
    uint32_t shown = 0;
    uint32_t more = 0;
    static const char *const kinds[] = {"nothing", "data", "credit", "launch"};

    for (Rank &rank : ranks) {
        for (Block *block : rank.blocks) {
            for (Fibre &f : block->fibres) {
                if (DONE == f.state) {
                    continue;
                }
                if (shown >= 12 || (0 != f.self.thread.x % 32 && POLLING != f.state)
                    || n + 200 > report_room) {
                    ++more;
                    continue;
                }
                ++shown;
                n += (size_t) snprintf(report_text + n, report_room - n,
                                       "\n  rank %u launch %u block %u thread %u of %u: ",
                                       rank.index, rank.next - 1, f.self.block.x, f.self.thread.x,
                                       f.self.block_dim.x);
                if (POLLING == f.state) {
                    n += (size_t) snprintf(report_text + n, report_room - n,
                                           "polls for %s, step %llu, peer %u",
                                           kinds[f.poll_kind & 3],
                                           (unsigned long long) f.poll_step, f.poll_peer);
                } else {
                    n += (size_t) snprintf(report_text + n, report_room - n,
                                           "%s (last poll: step %llu)", f.doing,
                                           (unsigned long long) f.poll_step);
                }
            }
        }
    }
    snprintf(report_text + n, report_room - n, "\n  and %u more", more);
}

/* Arrive; the last one lets all go on. Returns the parity of the generation. */
uint32_t meet(Meeting *m, uint32_t expected, const char *doing, bool ordered, bool counts)
{
    Fibre *f = current;
    uint32_t parity = m->generation & 1;

    if (0 == m->arrived) {
        m->expected = expected;
    } else if (expected != m->expected) {
        fail(f, "%s: %u participants here, %u elsewhere", doing, expected, m->expected);
    }
    if (ordered) {
        SIMT_RELEASE(&m->sync[parity]);
    }
    f->doing = doing;
    if (++m->arrived == m->expected) {
        m->arrived = 0;
        ++m->generation;
        progress |= counts;
    } else {
        f->meeting = m;
        f->generation = m->generation;
        pause_as(WAITING);
    }
    if (ordered) {
        SIMT_ACQUIRE(&m->sync[parity]);
    }
    f->doing = "runnable";
    return parity;
}

} // namespace

void simt_barrier(uint32_t id, uint32_t threads)
{
    if (id >= SIMT_MAX_BARRIERS) {
        fail(current, "barrier %u does not exist", id);
        id = 0;
    }
    meet(&current->block->barriers[id], threads, 0 == id ? "at the block's barrier"
                                                         : "at its group's barrier", true,
         true);
}

const uint32_t *simt_vote(simt_vote_t kind, uint32_t value)
{
    Warp *warp = &current->block->warps[current->self.thread.x / 32];
    uint32_t parity = warp->vote.generation & 1;

    if (0 == warp->vote.arrived) {
        warp->kind = kind;
    } else if (kind != warp->kind) {
        fail(current, "lanes of a warp meet in different votes (%d, %d)", (int) kind,
             (int) warp->kind);
    }
    warp->values[parity][current->self.thread.x % 32] = value;
    meet(&warp->vote, 32, "in a vote of its warp", SIMT_VOTE_SYNC == kind, false);
    return warp->values[parity];
}

void simt_store_line(void *p, uint64_t low, uint64_t high)
{
    Warp *warp = &current->block->warps[current->self.thread.x / 32];
    uint32_t lane = current->self.thread.x % 8;

    if (split_lines) {
        /* Flag first: the worst order. */
        __atomic_store_n((uint64_t *) p + 1, high, __ATOMIC_RELAXED);
        simt_preempt();
        __atomic_store_n((uint64_t *) p, low, __ATOMIC_RELAXED);
        return;
    }
    Warp::Line *line = &warp->lines[current->self.thread.x % 32 / 8];

    line->at[lane] = (unsigned char *) p;
    line->w[lane][0] = low;
    line->w[lane][1] = high;
    if (7 == line->meet.arrived) { /* the last lane commits, before anybody goes on */
        for (uint32_t i = 0; i < 8; ++i) {
            if (line->at[i] != line->at[0] + 16 * i || 0 != (uintptr_t) line->at[0] % 128) {
                fail(current, "8 lanes store no line: lane %u at %p, lane 0 at %p", i,
                     (void *) line->at[i], (void *) line->at[0]);
                break;
            }
        }
        for (uint32_t i = 0; i < 8; ++i) {
            __atomic_store_n((uint64_t *) line->at[i], line->w[i][0], __ATOMIC_RELAXED);
            __atomic_store_n((uint64_t *) line->at[i] + 1, line->w[i][1], __ATOMIC_RELAXED);
        }
    }
    meet(&line->meet, 8, "storing a line with fewer than 8 lanes", false, true);
}

void simt_poll(uint32_t kind, uint64_t step, uint32_t peer)
{
    progress |= kind != current->poll_kind || step != current->poll_step
                || peer != current->poll_peer;
    current->poll_kind = kind;
    current->poll_step = step;
    current->poll_peer = peer;
    pause_as(POLLING);
}

void simt_stored(void)
{
    progress = true;
}

void simt_preempt_slow(void)
{
    if ((rnd() & 0xffffu) < simt_preempt_rate) {
        current->doing = "interrupted";
        pause_as(READY);
    }
}

void simt_check_aligned(const void *p, uint32_t bytes)
{
    if (0 != (uintptr_t) p % bytes) {
        fail(current, "access of %u bytes at address %p", bytes, p);
    }
}

int simt_run(const simt_rank_t *what, uint32_t n_ranks, const simt_options_t *options, char *report,
             size_t report_bytes)
{
    std::vector<Rank> ranks(n_ranks);
    uint64_t quiet = 0;
    uint64_t next_hook;
    bool live = true;

    report_text = report;
    report_room = report_bytes;
    report[0] = '\0';
    failed = false;
    simt_passes = 0;
    next_hook = options->hook_pass;
    simt_switches = 0;
    random_state = options->seed * 2862933555777941757ull + 3037000493ull;
    simt_preempt_rate = options->preempt;
    split_lines = 0 != options->split_lines;
#if defined(SIMT_TSAN)
    main_tsan = __tsan_get_current_fiber();
#endif
    for (uint32_t r = 0; r < n_ranks; ++r) {
        ranks[r].what = &what[r];
        ranks[r].index = r;
        SIMT_RELEASE(&ranks[r].sync); /* what the caller prepared */
    }
    while (live && !failed) {
        uint32_t start = n_ranks > 1 ? rnd() % n_ranks : 0;

        live = false;
        progress = false;
        for (uint32_t i = 0; i < n_ranks && !failed; ++i) {
            Rank *rank = &ranks[(start + i) % n_ranks];

            if (0 == rank->live) {
                if (!rank->blocks.empty()) {
                    drop_blocks(rank);
                    progress = true;
                }
                if (rank->next < rank->what->n_launches && rnd() % 4 != 0) {
                    start_launch(rank);
                    progress = true;
                }
            }
            live |= 0 != rank->live || rank->next < rank->what->n_launches;
            if (rank->blocks.empty()) {
                progress |= rank->next < rank->what->n_launches;
                continue;
            }
            for (size_t b = 0; b < rank->blocks.size() && !failed; ++b) {
                Block *block = rank->blocks[b];
                size_t n = block->fibres.size();
                size_t first = rnd() % n;

                if (0 == block->live) {
                    continue;
                }
                for (size_t t = 0; t < n && !failed; ++t) {
                    if (0 == options->skip || (rnd() & 255u) >= options->skip) {
                        visit(&block->fibres[(first + t) % n]);
                    }
                }
            }
        }
        ++simt_passes;
        if (NULL != options->hook && simt_passes == next_hook) {
            next_hook += options->hook(options->hook_ctx);
            progress = true; /* what waited may go on now */
        }
        quiet = progress ? 0 : quiet + 1;
        if (live && quiet >= SIMT_QUIET_PASSES) {
            fail(NULL, "deadlock after %llu passes:", (unsigned long long) simt_passes);
            describe(ranks);
        } else if (live && 0 != options->max_passes && simt_passes >= options->max_passes) {
            fail(NULL, "no end after %llu passes:", (unsigned long long) simt_passes);
            describe(ranks);
        }
    }
    for (uint32_t r = 0; r < n_ranks; ++r) {
        SIMT_ACQUIRE(&ranks[r].sync);
        drop_blocks(&ranks[r]); /* after a failure their stacks are simply used again */
    }
    return failed;
}
