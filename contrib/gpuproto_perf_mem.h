/*
 * gpuproto_perf_mem.h - the buffers gpuproto_perf hands to MPI: host, CUDA device or managed memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GPUPROTO_PERF_MEM_H
#define GPUPROTO_PERF_MEM_H

#include <stddef.h>

typedef enum perf_mem_kind {
    PERF_MEM_AUTO, /* CUDA when there is a device, else host */
    PERF_MEM_HOST,
    PERF_MEM_CUDA,
    PERF_MEM_MANAGED
} perf_mem_kind_t;

/*
 * Open the kind of memory on device local_rank % devices; no error when auto falls back to host. The
 * primary context becomes current in the calling thread. Returns 0, or -1 with text (static) set.
 */
int perf_mem_open(perf_mem_kind_t kind, int local_rank, const char **text);
void perf_mem_close(void);

/* Another thread of the program: makes the context current there. Returns 0 or -1. */
int perf_mem_attach(void);

perf_mem_kind_t perf_mem_kind(void);  /* the one in use, never AUTO */
const char *perf_mem_kind_name(perf_mem_kind_t kind);
const char *perf_mem_device(void);    /* "NVIDIA H200", or "host" */

/* All of these return NULL or -1 on failure; perf_mem_error() then says what failed. */
void *perf_mem_alloc(size_t bytes);
void perf_mem_free(void *p);
void *perf_mem_staging(size_t bytes); /* host memory that transfers fast; freed by perf_mem_close() */
int perf_mem_put(void *to, const void *staged, size_t bytes);
int perf_mem_get(void *staged, const void *from, size_t bytes);
int perf_mem_copy(void *to, const void *from, size_t bytes);
int perf_mem_set(void *to, unsigned char value, size_t bytes);
const char *perf_mem_error(void);

#endif /* GPUPROTO_PERF_MEM_H */
