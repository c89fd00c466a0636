/*
 * threads_pthreads_threads.h - stand-in for a header of Open MPI 5 that installations leave out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_COMPAT_THREADS_PTHREADS_THREADS_H
#define GP_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif /* GP_COMPAT_THREADS_PTHREADS_THREADS_H */
