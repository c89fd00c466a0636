/*
 * fake_cuda.h - how a test talks to the stand-in for libcuda.so.1 (fake_cuda.c).
 *
 * The stand-in is a shared object whose SONAME is libcuda.so.1. A test opens it by path with RTLD_GLOBAL
 * and finds the control block by dlsym(handle, "fake_cuda").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "device/cuda/gp_kargs.h"

typedef struct fake_launch {
    const char *name;        /* of the kernel */
    unsigned int grid;
    unsigned int block;
    unsigned int shared_bytes;
    gp_kargs_t args;
} fake_launch_t;

/* What a kernel does. Runs in a thread of its own; non-zero: the kernel dies and its context with it. */
typedef int (*fake_kernel_t)(const fake_launch_t *launch, void *arg);

typedef struct fake_cuda {
    /* set by the test */
    int n_devices;           /* 2 */
    int driver_version;      /* 13000 */
    int capability;          /* 90 */
    int sm_count;            /* 132 */
    int mps;                 /* 1 */
    const char *fail_call;   /* this entry point (by name) fails ... */
    int fail_skip;           /* ... after that many more successes ... */
    int fail_result;         /* ... with this CUresult, every time from then on */
    int deinitialized;       /* everything returns CUDA_ERROR_DEINITIALIZED */
    const char *missing;     /* cuGetProcAddress does not know this name */
    int old_attributes;      /* the pointer query refuses attributes newer than CUDA 7 */
    fake_kernel_t kernel;    /* NULL: kernels end at once and report nothing */
    void *kernel_arg;
    /* counted by the stand-in; all back to zero when everything was released */
    int allocs;              /* device, managed, pool */
    int pinned;              /* allocated or registered */
    int streams;
    int modules;
    int retains;             /* of primary contexts */
    int mappings;            /* IPC */
    int running;             /* kernels */
    /* only go up */
    int launches;
    int opens;               /* IPC handles opened */
    uint64_t calls;          /* of any entry point but cuGetErrorName and cuGetProcAddress */
    fake_launch_t last;      /* the last launch */
    /* depth of the calling thread's context stack, and whether a context is current */
    int (*depth)(void);
} fake_cuda_t;

#endif /* FAKE_CUDA_H */
