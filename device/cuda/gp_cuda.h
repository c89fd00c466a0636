/*
 * gp_cuda.h - the CUDA side as plain C: driver, device, arena of IPC memory, executor.
 *
 * libcuda.so.1 is opened only if the process has already loaded it; entry points come from
 * cuGetProcAddress. No CUDA headers or libraries are needed to build or link this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_CUDA_H
#define GP_CUDA_H

#include "device/gp_exec.h"
#include "planner/gp_program.h"
#include "transport/gp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kind of memory a pointer is. */
typedef struct gp_ptr_info {
    int is_device;       /* device or managed: only a GPU path may touch it */
    int is_managed;
    int is_async;        /* stream-ordered pool memory (no legacy IPC) */
    int is_ipc;          /* peers can map it by CUDA IPC */
    int device;          /* ordinal in this process */
    void *context;       /* CUcontext of the allocation, or NULL */
    uint64_t buffer_id;  /* of the allocation, never reused in the process */
} gp_ptr_info_t;

/* This process's GPU, as agreed between ranks. */
typedef struct gp_gpu_id {
    unsigned char uuid[16];  /* cuDeviceGetUuid_v2: MIG slices differ */
    uint32_t capability;     /* 10 * major + minor */
    uint32_t sm_count;
    uint32_t driver;         /* cuDriverGetVersion */
    uint32_t mps;            /* 1: this process is an MPS client */
    int32_t numa_node;       /* -1 unknown */
    int32_t ordinal;         /* local only, never compared between ranks */
} gp_gpu_id_t;

/*
 * Is there a CUDA driver in this process? GP_OK when libcuda is loaded and usable, GP_DECLINED when the
 * process has not loaded it (cheap: rechecked each time), GP_ERR_* when it is broken. Never loads it.
 */
gp_status_t gp_cuda_driver(void);

/* Kernels were compiled in (the build had nvcc). */
int gp_cuda_compiled(void);

/*
 * Query a pointer. Host memory the driver does not know gives is_device 0 and GP_OK. Works with any or no
 * current context, and costs well under a microsecond. GP_OK and is_device 0 without a driver.
 */
gp_status_t gp_cuda_ptr_info(const void *ptr, gp_ptr_info_t *info);

/*
 * Make sure that what the application's synchronous copies and fills wrote to a device buffer is there
 * for every stream. CUDA lets cudaMemcpy() from pageable memory return while its last part is still on
 * the way, ordered only against the default stream. The first time an allocation is seen its memory
 * operations are made truly synchronous and the default streams are waited for; after that this is free.
 * Memory for which the driver cannot do so (pools, managed) waits for the default streams each time.
 */
gp_status_t gp_cuda_settle(const void *ptr, const gp_ptr_info_t *info);

typedef struct gp_cuda_dev gp_cuda_dev_t;

/*
 * Open the device that `device` (ordinal) names: retain its primary context, load the kernels, make a
 * private non-blocking stream. One object per device and process, counted. GP_ERR_UNSUPPORTED when the
 * fat binary holds no code for it.
 */
gp_status_t gp_cuda_dev_get(int device, gp_cuda_dev_t **dev_p);
void gp_cuda_dev_put(gp_cuda_dev_t *dev);
const gp_gpu_id_t *gp_cuda_dev_id(const gp_cuda_dev_t *dev);

/*
 * May kernels of dev touch the memory that info describes? 0 for plain host memory, for another device's
 * memory, and for memory of a context that the application made itself: copy such buffers first.
 */
int gp_cuda_dev_reaches(const gp_cuda_dev_t *dev, const gp_ptr_info_t *info);

/*
 * The path (gp_path_t) from dev to the GPU of that UUID on the same host: GP_PATH_SELF_GPU, _NVLINK, _PCIE,
 * or _HOST when neither can map the other's memory. A GPU that this process does not see counts as PCIE.
 */
gp_status_t gp_cuda_peer_path(const gp_cuda_dev_t *dev, const unsigned char uuid[16],
                              uint32_t *path_p);

/* Device memory that peers map by CUDA IPC. Owned by dev. */
gp_arena_t *gp_cuda_dev_arena(gp_cuda_dev_t *dev);

/* The current context is saved and restored by every function below and above. */

/* Copies for staging, complete on return; any mix of host and device pointers. */
gp_status_t gp_cuda_copy(void *dst, const void *src, size_t bytes);
gp_status_t gp_cuda_host_alloc(size_t bytes, void **ptr_p); /* pinned */
void gp_cuda_host_free(void *ptr);
gp_status_t gp_cuda_dev_alloc(gp_cuda_dev_t *dev, size_t bytes, void **ptr_p);
void gp_cuda_dev_free(gp_cuda_dev_t *dev, void *ptr);

/*
 * The executor; same contract as gp_host_exec_*, except that programs may go after create and that the
 * set's own step counters are not advanced (they live on the GPU): one executor for the life of a set.
 * The set lies in the device's arena, or in shared host memory, which is then registered with the GPU.
 * work->threads: a multiple of 32, at least 32 per stream; buffers as gp_cuda_dev_reaches() says.
 */
typedef struct gp_cuda_exec gp_cuda_exec_t;

gp_status_t gp_cuda_exec_create(gp_cuda_dev_t *dev, uint32_t protocol,
                                const gp_program_t *const *programs, gp_connset_t *set,
                                gp_cuda_exec_t **exec_p);
/* With a call in flight it is aborted first; memory that its kernel may still touch is not reused. */
void gp_cuda_exec_destroy(gp_cuda_exec_t *exec);
gp_status_t gp_cuda_exec_start(gp_cuda_exec_t *exec, const gp_work_t *work);
gp_status_t gp_cuda_exec_progress(gp_cuda_exec_t *exec);
/* GP_WAIT_LAUNCH while a call is in flight; the wait that the kernel reported after an abort. */
void gp_cuda_exec_waits_for(gp_cuda_exec_t *exec, gp_wait_info_t *info);
/*
 * The same, but the kernel is asked what it waits for: takes milliseconds (at most 50). GP_WAIT_LAUNCH
 * when it does not answer: it has not started, or waits for nobody.
 */
void gp_cuda_exec_ask(gp_cuda_exec_t *exec, gp_wait_info_t *info);
/*
 * Give up: progress and start return GP_ERR_ABORTED from now on. Waits at most 2 s for the kernel to
 * report what it waited for and to end.
 */
void gp_cuda_exec_abort(gp_cuda_exec_t *exec);
void gp_cuda_exec_record(const gp_cuda_exec_t *exec, gp_exec_record_t *record);

/* Release everything the process holds (component close). Tolerates a driver that is already gone. */
void gp_cuda_finalize(void);

#ifdef __cplusplus
}
#endif

#endif /* GP_CUDA_H */
