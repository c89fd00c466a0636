/*
 * threads_pthreads_tsd.h - stand-in for a header of Open MPI 5 that some installations leave out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_COMPAT_THREADS_PTHREADS_TSD_H
#define GP_COMPAT_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif /* GP_COMPAT_THREADS_PTHREADS_TSD_H */
