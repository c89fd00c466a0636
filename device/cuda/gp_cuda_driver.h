/*
 * gp_cuda_driver.h - the CUDA driver API as far as gpuproto uses it, declared by hand.
 *
 * Owns: the few types, constants and entry points of libcuda.so.1 that the C files of this folder call,
 * so that they build without CUDA headers; the table of entry points; how a failed call is logged.
 * Names carry gp_cu_ / GP_CU_ so that a test may include <cuda.h> beside this file and compare.
 * Private to device/cuda: nothing above includes it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_CUDA_DRIVER_H
#define GP_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "device/proto/gp_status.h"

typedef int gp_cu_result_t;           /* CUresult */
typedef int gp_cu_device_t;           /* CUdevice */
typedef uint64_t gp_cu_ptr_t;         /* CUdeviceptr: unsigned 64 bits */
typedef struct gp_cu_ctx_s *gp_cu_context_t;
typedef struct gp_cu_mod_s *gp_cu_module_t;
typedef struct gp_cu_func_s *gp_cu_function_t;
typedef struct gp_cu_stream_s *gp_cu_stream_t;

typedef struct gp_cu_ipc_handle {     /* CUipcMemHandle */
    unsigned char bytes[64];
} gp_cu_ipc_handle_t;

typedef struct gp_cu_uuid {           /* CUuuid */
    unsigned char bytes[16];
} gp_cu_uuid_t;

enum {
    GP_CU_SUCCESS = 0,
    GP_CU_INVALID_VALUE = 1,
    GP_CU_OUT_OF_MEMORY = 2,
    GP_CU_NOT_INITIALIZED = 3,
    GP_CU_DEINITIALIZED = 4,
    GP_CU_STUB_LIBRARY = 34,
    GP_CU_NO_DEVICE = 100,
    GP_CU_INVALID_IMAGE = 200,
    GP_CU_INVALID_CONTEXT = 201,
    GP_CU_NO_BINARY_FOR_GPU = 209,
    GP_CU_UNSUPPORTED_PTX_VERSION = 222,
    GP_CU_JIT_COMPILER_NOT_FOUND = 221,
    GP_CU_INVALID_HANDLE = 400,
    GP_CU_NOT_FOUND = 500,
    GP_CU_NOT_READY = 600,
    GP_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    GP_CU_CONTEXT_IS_DESTROYED = 709,
    GP_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    GP_CU_NOT_SUPPORTED = 801
};

/* CUdevice_attribute */
enum {
    GP_CU_DEV_MULTIPROCESSOR_COUNT = 16,
    GP_CU_DEV_UNIFIED_ADDRESSING = 41,
    GP_CU_DEV_CAPABILITY_MAJOR = 75,
    GP_CU_DEV_CAPABILITY_MINOR = 76,
    GP_CU_DEV_MAX_SHARED_OPTIN_BYTES = 97,
    GP_CU_DEV_MPS_ENABLED = 133,
    GP_CU_DEV_HOST_NUMA_ID = 134
};

/* CUpointer_attribute, CUmemorytype */
enum {
    GP_CU_PTR_CONTEXT = 1,
    GP_CU_PTR_MEMORY_TYPE = 2,
    GP_CU_PTR_SYNC_MEMOPS = 6,
    GP_CU_PTR_BUFFER_ID = 7,
    GP_CU_PTR_IS_MANAGED = 8,
    GP_CU_PTR_DEVICE_ORDINAL = 9,
    GP_CU_PTR_IS_IPC_CAPABLE = 10,
    GP_CU_PTR_MEMPOOL_HANDLE = 17
};
enum { GP_CU_MEMORY_HOST = 1, GP_CU_MEMORY_DEVICE = 2 };

/* CUdevice_P2PAttribute */
enum { GP_CU_P2P_ACCESS = 2, GP_CU_P2P_NATIVE_ATOMICS = 3 };

/* CUfunction_attribute */
enum {
    GP_CU_FUNC_MAX_THREADS = 0,
    GP_CU_FUNC_SHARED_BYTES = 1,
    GP_CU_FUNC_MAX_DYNAMIC_SHARED_BYTES = 8
};

enum {
    GP_CU_STREAM_NON_BLOCKING = 1,
    GP_CU_IPC_LAZY_ENABLE_PEER_ACCESS = 1,
    GP_CU_HOST_PORTABLE = 1,  /* both CU_MEMHOSTALLOC_ and CU_MEMHOSTREGISTER_ */
    GP_CU_HOST_DEVICEMAP = 2  /* the same */
};

/*
 * The entry points: X(name, CUDA version whose signature is meant, 1 when we cannot do without it,
 * argument list). The version is what cuGetProcAddress wants: with it a plain name gives the right _v2.
 */
#define GP_CU_ENTRIES(X)                                                                           \
    X(cuInit, 2000, 1, (unsigned int flags))                                                       \
    X(cuDriverGetVersion, 2020, 1, (int *version))                                                 \
    X(cuGetErrorName, 6000, 1, (gp_cu_result_t error, const char **name))                          \
    X(cuDeviceGet, 2000, 1, (gp_cu_device_t * device, int ordinal))                                \
    X(cuDeviceGetCount, 2000, 1, (int *count))                                                     \
    X(cuDeviceGetAttribute, 2000, 1, (int *value, int attribute, gp_cu_device_t device))           \
    X(cuDeviceGetUuid, 11040, 1, (gp_cu_uuid_t * uuid, gp_cu_device_t device))                     \
    X(cuDeviceGetP2PAttribute, 8000, 1,                                                            \
      (int *value, int attribute, gp_cu_device_t from, gp_cu_device_t to))                         \
    X(cuDeviceGetPCIBusId, 4010, 1, (char *text, int bytes, gp_cu_device_t device))                \
    X(cuDevicePrimaryCtxRetain, 7000, 1, (gp_cu_context_t * ctx, gp_cu_device_t device))           \
    X(cuDevicePrimaryCtxRelease, 11000, 1, (gp_cu_device_t device))                                \
    X(cuDevicePrimaryCtxGetState, 7000, 1,                                                         \
      (gp_cu_device_t device, unsigned int *flags, int *active))                                   \
    X(cuCtxGetDevice, 2000, 1, (gp_cu_device_t * device))                                          \
    X(cuCtxGetCurrent, 4000, 1, (gp_cu_context_t * ctx))                                           \
    X(cuCtxPushCurrent, 4000, 1, (gp_cu_context_t ctx))                                            \
    X(cuCtxPopCurrent, 4000, 1, (gp_cu_context_t * ctx))                                           \
    X(cuCtxGetStreamPriorityRange, 5050, 1, (int *least, int *greatest))                           \
    X(cuCtxEnablePeerAccess, 4000, 1, (gp_cu_context_t peer, unsigned int flags))                  \
    X(cuModuleLoadData, 2000, 1, (gp_cu_module_t * module, const void *image))                     \
    X(cuModuleUnload, 2000, 1, (gp_cu_module_t module))                                            \
    X(cuModuleGetFunction, 2000, 1,                                                                \
      (gp_cu_function_t * function, gp_cu_module_t module, const char *name))                      \
    X(cuFuncGetAttribute, 2020, 1, (int *value, int attribute, gp_cu_function_t function))         \
    X(cuFuncSetAttribute, 9000, 1, (gp_cu_function_t function, int attribute, int value))          \
    X(cuFuncLoad, 12040, 0, (gp_cu_function_t function))                                           \
    X(cuLaunchKernel, 4000, 1,                                                                     \
      (gp_cu_function_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,   \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,\
       gp_cu_stream_t stream, void **params, void **extra))                                        \
    X(cuStreamCreateWithPriority, 5050, 1,                                                         \
      (gp_cu_stream_t * stream, unsigned int flags, int priority))                                 \
    X(cuStreamDestroy, 4000, 1, (gp_cu_stream_t stream))                                           \
    X(cuStreamSynchronize, 2000, 1, (gp_cu_stream_t stream))                                       \
    X(cuStreamQuery, 2000, 1, (gp_cu_stream_t stream))                                             \
    X(cuMemAlloc, 3020, 1, (gp_cu_ptr_t * ptr, size_t bytes))                                      \
    X(cuMemFree, 3020, 1, (gp_cu_ptr_t ptr))                                                       \
    X(cuMemHostAlloc, 2020, 1, (void **ptr, size_t bytes, unsigned int flags))                     \
    X(cuMemFreeHost, 2000, 1, (void *ptr))                                                         \
    X(cuMemHostRegister, 6050, 1, (void *ptr, size_t bytes, unsigned int flags))                   \
    X(cuMemHostUnregister, 4000, 1, (void *ptr))                                                   \
    X(cuMemHostGetDevicePointer, 3020, 1, (gp_cu_ptr_t * device, void *host, unsigned int flags))  \
    X(cuMemcpyAsync, 4000, 1,                                                                      \
      (gp_cu_ptr_t dst, gp_cu_ptr_t src, size_t bytes, gp_cu_stream_t stream))                     \
    X(cuMemsetD8Async, 3020, 1,                                                                    \
      (gp_cu_ptr_t dst, unsigned char value, size_t bytes, gp_cu_stream_t stream))                 \
    X(cuPointerGetAttributes, 7000, 1,                                                             \
      (unsigned int n, int *attributes, void **values, gp_cu_ptr_t ptr))                           \
    X(cuPointerSetAttribute, 6000, 1, (const void *value, int attribute, gp_cu_ptr_t ptr))         \
    X(cuIpcGetMemHandle, 4010, 1, (gp_cu_ipc_handle_t * handle, gp_cu_ptr_t ptr))                  \
    X(cuIpcOpenMemHandle, 11000, 1,                                                                \
      (gp_cu_ptr_t * ptr, gp_cu_ipc_handle_t handle, unsigned int flags))                          \
    X(cuIpcCloseMemHandle, 4010, 1, (gp_cu_ptr_t ptr))

/* Entry points in effect; valid after gp_cuda_driver() gave GP_OK, until gp_cuda_finalize(). */
typedef struct gp_cu_table {
#define GP_CU_FIELD(name, version, required, args) gp_cu_result_t(*name) args;
    GP_CU_ENTRIES(GP_CU_FIELD)
#undef GP_CU_FIELD
    int version; /* of the driver: 1000 * major + 10 * minor */
} gp_cu_table_t;

extern gp_cu_table_t gp_cu;

/* The driver is gone or going (process exit, device reset): nothing to say, nothing to release. */
static inline int gp_cu_is_gone(gp_cu_result_t result)
{
    return GP_CU_DEINITIALIZED == result || GP_CU_NOT_INITIALIZED == result
           || GP_CU_CONTEXT_IS_DESTROYED == result;
}

/* "CUDA_ERROR_OUT_OF_MEMORY", or "?"; never NULL. */
const char *gp_cu_error_name(gp_cu_result_t result);

/*
 * Log a failed call and give the status for it: `call` is the entry point, `advice` (may be NULL) what
 * the user can do. A driver that is gone is not an event: GP_ERR_CUDA, logged at debug level.
 */
gp_status_t gp_cu_fail(const char *call, gp_cu_result_t result, const char *advice);

/*
 * Make ctx current unless it already is. *pushed tells gp_cu_leave() what to undo. Nothing else in this
 * folder changes the current context, so each caller gets back the context it came with.
 */
gp_status_t gp_cu_enter(gp_cu_context_t ctx, int *pushed);
void gp_cu_leave(int pushed);

/* Drop the table and our reference on the library (gp_cuda_finalize). */
void gp_cu_unload(void);

#endif /* GP_CUDA_DRIVER_H */
