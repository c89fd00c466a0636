/*
 * gp_tap.h - results of a test program in the Test Anything Protocol, plan at the end.
 *
 * Owns the counters and the printing; a test program is one translation unit, so everything is static.
 * Valid as C11 and as C++. Safe from several threads: one lock around every line.
 *
 *   int main(void)
 *   {
 *       gp_tap_begin();
 *       gp_ok(1 + 1 == 2, "ring order, %d ranks", 4);        one case, one line
 *
 *       gp_group_begin("every rank count 1-64");             many checks, one case
 *       for (...) {
 *           gp_check(got == want, "ranks %d: got %d, want %d", n, got, want);
 *       }
 *       gp_group_end();                                      "ok 2 - every rank count 1-64 (64 checks)"
 *       return gp_tap_end();
 *   }
 *
 * A group prints its first GP_GROUP_DIAGS failed checks and counts the rest. A group without a single
 * check is a failure: a loop that never ran proves nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TAP_H
#define GP_TAP_H

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GP_GROUP_DIAGS 10

#define GP_TAP_FN static __attribute__((unused))
#define GP_TAP_PRINTF(fmt, args) __attribute__((unused, format(printf, fmt, args)))

/* State of the one test program; guarded by lock once threads run. */
typedef struct gp_tap {
    pthread_mutex_t lock;
    unsigned cases;         /* lines printed so far */
    unsigned failed;        /* of them "not ok", TODO excluded */
    int in_group;
    char group[256];
    uint64_t group_checks;
    uint64_t group_failed;
    int ended;
} gp_tap_t;

static gp_tap_t gp_tap = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, {0}, 0, 0, 0};

/* "# text", one prefix per line of text. Caller holds the lock. */
GP_TAP_FN void gp_tap_put_comment(const char *text)
{
    const char *end;

    for (;;) {
        end = strchr(text, '\n');
        if (NULL == end) {
            break;
        }
        printf("# %.*s\n", (int) (end - text), text);
        text = end + 1;
    }
    if ('\0' != *text) {
        printf("# %s\n", text);
    }
}

/* A description must not contain '#' (a directive to TAP readers) nor a newline. */
GP_TAP_FN void gp_tap_put_case(int ok, const char *text, const char *directive)
{
    char clean[512];
    size_t i;

    for (i = 0; i + 1 < sizeof(clean) && '\0' != text[i]; i++) {
        clean[i] = '#' == text[i] || '\n' == text[i] ? '_' : text[i];
    }
    clean[i] = '\0';
    gp_tap.cases++;
    if (!ok) {
        gp_tap.failed++;
    }
    printf("%s %u - %s%s\n", ok ? "ok" : "not ok", gp_tap.cases, clean, directive);
    fflush(stdout);
}

/* The process ended without gp_tap_end(): say so, the missing plan makes the driver report an error. */
GP_TAP_FN void gp_tap_at_exit(void)
{
    if (!gp_tap.ended) {
        printf("# ended after %u cases without a plan\n", gp_tap.cases);
        fflush(stdout);
    }
}

GP_TAP_FN void gp_tap_begin(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(gp_tap_at_exit);
}

/* A comment line (or several, where the text has newlines). */
static void gp_diag(const char *format, ...) GP_TAP_PRINTF(1, 2);
static void gp_diag(const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&gp_tap.lock);
    gp_tap_put_comment(text);
    fflush(stdout);
    pthread_mutex_unlock(&gp_tap.lock);
}

/* One case. Returns whether cond held, so that a test can stop where going on makes no sense. */
static int gp_tap_ok(int cond, const char *file, int line, const char *format, ...)
    GP_TAP_PRINTF(4, 5);
static int gp_tap_ok(int cond, const char *file, int line, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&gp_tap.lock);
    gp_tap_put_case(0 != cond, text, "");
    if (!cond) {
        printf("#   at %s:%d\n", file, line);
        fflush(stdout);
    }
    pthread_mutex_unlock(&gp_tap.lock);
    return 0 != cond;
}

#define gp_ok(cond, ...) gp_tap_ok(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define gp_pass(...) gp_tap_ok(1, __FILE__, __LINE__, __VA_ARGS__)
#define gp_fail(...) gp_tap_ok(0, __FILE__, __LINE__, __VA_ARGS__)

/* One case that could not run here; reason says what is missing. */
static void gp_skip(const char *reason, const char *format, ...) GP_TAP_PRINTF(2, 3);
static void gp_skip(const char *reason, const char *format, ...)
{
    char text[512];
    char directive[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(directive, sizeof(directive), " # SKIP %s", reason);
    pthread_mutex_lock(&gp_tap.lock);
    gp_tap_put_case(1, text, directive);
    pthread_mutex_unlock(&gp_tap.lock);
}

/* Nothing of this program can run here. Does not return. Only before the first case. */
static void gp_skip_all(const char *format, ...) GP_TAP_PRINTF(1, 2) __attribute__((noreturn));
static void gp_skip_all(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    printf("1..0 # SKIP %s\n", text);
    fflush(stdout);
    gp_tap.ended = 1;
    exit(0);
}

/* The test itself is broken or cannot go on. Does not return. */
static void gp_bail_out(const char *format, ...) GP_TAP_PRINTF(1, 2) __attribute__((noreturn));
static void gp_bail_out(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    printf("Bail out! %s\n", text);
    fflush(stdout);
    gp_tap.ended = 1;
    _Exit(99);
}

/* Open a group: gp_check() calls until gp_group_end() count as one case of this description. */
static void gp_group_begin(const char *format, ...) GP_TAP_PRINTF(1, 2);
static void gp_group_begin(const char *format, ...)
{
    va_list args;

    if (gp_tap.in_group) {
        gp_bail_out("gp_group_begin inside group \"%s\"", gp_tap.group);
    }
    va_start(args, format);
    vsnprintf(gp_tap.group, sizeof(gp_tap.group), format, args);
    va_end(args);
    gp_tap.in_group = 1;
    gp_tap.group_checks = 0;
    gp_tap.group_failed = 0;
}

/* Count one check; the text is only formatted when it failed and is among the first ones. */
static int gp_tap_check(int cond, const char *file, int line, const char *format, ...)
    GP_TAP_PRINTF(4, 5);
static int gp_tap_check(int cond, const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;

    if (!gp_tap.in_group) {
        gp_bail_out("gp_check outside a group at %s:%d", file, line);
    }
    if (cond) {
        __atomic_fetch_add(&gp_tap.group_checks, 1, __ATOMIC_RELAXED);
        return 1;
    }
    pthread_mutex_lock(&gp_tap.lock);
    __atomic_fetch_add(&gp_tap.group_checks, 1, __ATOMIC_RELAXED);
    gp_tap.group_failed++;
    if (gp_tap.group_failed <= GP_GROUP_DIAGS) {
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        gp_tap_put_comment(text);
        printf("#   at %s:%d\n", file, line);
        fflush(stdout);
    }
    pthread_mutex_unlock(&gp_tap.lock);
    return 0;
}

#define gp_check(cond, ...) gp_tap_check(!!(cond), __FILE__, __LINE__, __VA_ARGS__)

/* How many checks of the open group failed: lets long loops stop early. */
GP_TAP_FN uint64_t gp_group_failures(void)
{
    return gp_tap.group_failed;
}

/* Close the group and print its line. Returns whether every check held. */
GP_TAP_FN int gp_group_end(void)
{
    char text[400];
    unsigned long long checks = (unsigned long long) gp_tap.group_checks;
    unsigned long long failed = (unsigned long long) gp_tap.group_failed;
    int ok = 0 == failed && 0 != checks;

    if (!gp_tap.in_group) {
        gp_bail_out("gp_group_end without gp_group_begin");
    }
    gp_tap.in_group = 0;
    pthread_mutex_lock(&gp_tap.lock);
    if (failed > GP_GROUP_DIAGS) {
        printf("# ... and %llu more\n", failed - GP_GROUP_DIAGS);
    }
    if (0 != failed) {
        snprintf(text, sizeof(text), "%s (%llu of %llu checks failed)", gp_tap.group, failed,
                 checks);
    } else if (0 == checks) {
        snprintf(text, sizeof(text), "%s (no check ran)", gp_tap.group);
    } else {
        snprintf(text, sizeof(text), "%s (%llu checks)", gp_tap.group, checks);
    }
    gp_tap_put_case(ok, text, "");
    pthread_mutex_unlock(&gp_tap.lock);
    return ok;
}

/*
 * Print the plan; the exit status for main: 0 when every case passed. Under a TAP reader (GP_TAP_READER is
 * set) also when one failed: it has read that, and would count a bad status as one more error.
 */
GP_TAP_FN int gp_tap_end(void)
{
    if (gp_tap.in_group) {
        gp_bail_out("group \"%s\" is still open", gp_tap.group);
    }
    gp_tap.ended = 1;
    printf("1..%u\n", gp_tap.cases);
    fflush(stdout);
    return (0 != gp_tap.failed || 0 == gp_tap.cases) && NULL == getenv("GP_TAP_READER");
}

#endif /* GP_TAP_H */
