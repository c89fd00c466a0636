/*
 * fake_cuda_int.h - what the two halves of the libcuda stand-in share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FAKE_CUDA_INT_H
#define FAKE_CUDA_INT_H

#include <pthread.h>

#include "device/cuda/gp_cuda_driver.h"
#include "tests/gpu/fake_cuda.h"

#define FAKE_EXPORT __attribute__((visibility("default")))
#define FAKE_LAUNCH_FAILED 719

struct gp_cu_ctx_s {
    int device;
    int refs;
    int dead;    /* a kernel died: sticky error */
};

struct gp_cu_stream_s {
    gp_cu_context_t ctx;
    int running; /* kernels not ended yet */
};

extern fake_cuda_t fake_cuda;
extern pthread_mutex_t fake_lock; /* of everything shared, counters included */

/* Counts a call, and gives the result when this entry point is told to fail. */
gp_cu_result_t fake_enter(const char *name);
/* The calling thread's current context, or NULL. */
gp_cu_context_t fake_current(void);
/* Wait until the kernels of the stream have ended. */
void fake_drain(gp_cu_stream_t stream);

/* Each entry point starts with one of these. */
#define FAKE_ENTER()                                                                               \
    do {                                                                                           \
        gp_cu_result_t result_ = fake_enter(__func__ + 5); /* past "fake_" */                      \
        if (GP_CU_SUCCESS != result_) {                                                            \
            return result_;                                                                        \
        }                                                                                          \
    } while (0)

/* The same, for calls that want a context. */
#define FAKE_ENTER_CTX()                                                                           \
    do {                                                                                           \
        FAKE_ENTER();                                                                              \
        if (NULL == fake_current()) {                                                              \
            return GP_CU_INVALID_CONTEXT;                                                          \
        }                                                                                          \
        if (fake_current()->dead) {                                                                \
            return FAKE_LAUNCH_FAILED;                                                             \
        }                                                                                          \
    } while (0)

/* Entry points that only tests call; the others are GP_CU_ENTRIES. */
#define FAKE_TEST_ENTRIES(X)                                                                       \
    X(cuCtxCreate, 3020, 0, (gp_cu_context_t * ctx, unsigned int flags, gp_cu_device_t device))    \
    X(cuCtxDestroy, 4000, 0, (gp_cu_context_t ctx))                                                \
    X(cuMemAllocManaged, 6000, 0, (gp_cu_ptr_t * ptr, size_t bytes, unsigned int flags))           \
    X(cuMemAllocAsync, 11020, 0, (gp_cu_ptr_t * ptr, size_t bytes, gp_cu_stream_t stream))         \
    X(cuMemFreeAsync, 11020, 0, (gp_cu_ptr_t ptr, gp_cu_stream_t stream))

#define FAKE_DECLARE(name, version, required, args) gp_cu_result_t fake_##name args;
GP_CU_ENTRIES(FAKE_DECLARE)
FAKE_TEST_ENTRIES(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif /* FAKE_CUDA_INT_H */
