/*
 * test_gpu_mem.c - what gpuproto thinks of a pointer, with and without a current context.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/cuda/gp_cuda.h"
#include "tests/lib/gp_tap.h"

typedef unsigned long long cu_ptr_t;

static void *cuda;
static unsigned char plain[4096];

static void *entry(const char *name)
{
    void *p = dlsym(cuda, name);

    if (NULL == p) {
        gp_bail_out("the driver has no %s", name);
    }
    return p;
}

static void check_kinds(const char *where, const void *device, const void *managed,
                        const void *pool, const void *registered)
{
    gp_ptr_info_t info;

    gp_ok(GP_OK == gp_cuda_ptr_info(device, &info) && info.is_device && !info.is_managed
              && 0 == info.device,
          "%s: device memory", where);
    gp_ok(GP_OK == gp_cuda_ptr_info(managed, &info) && info.is_device && info.is_managed,
          "%s: managed memory counts as device memory", where);
    gp_ok(GP_OK == gp_cuda_ptr_info(pool, &info) && info.is_device, "%s: pool memory", where);
    gp_ok(GP_OK == gp_cuda_ptr_info(registered, &info) && !info.is_device,
          "%s: registered host memory is host memory", where);
    gp_ok(GP_OK == gp_cuda_ptr_info(&info, &info) && !info.is_device, "%s: the stack", where);
}

typedef struct pointers {
    const void *device, *managed, *pool, *registered;
} pointers_t;

static void *other_thread(void *arg)
{
    const pointers_t *p = arg;

    check_kinds("thread without a context", p->device, p->managed, p->pool, p->registered);
    return NULL;
}

int main(void)
{
    gp_cuda_dev_t *dev;
    pthread_t thread;
    pointers_t p;
    cu_ptr_t device = 0, managed = 0, pool = 0;
    char in[1000], out[1000];
    void *ctx, *now = NULL, *pinned;
    gp_ptr_info_t info;

    gp_tap_begin();
    if (NULL == dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        gp_ok(GP_DECLINED == gp_cuda_driver(), "without a loaded driver there is none");
        gp_ok(GP_OK == gp_cuda_ptr_info(plain, &info) && !info.is_device,
              "and every buffer is a host buffer");
    } else {
        gp_skip("a tool has loaded the driver already", "no driver");
    }
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (NULL == cuda || 0 != ((int (*)(unsigned)) entry("cuInit"))(0)) {
        gp_skip("no GPU", "the rest");
        return gp_tap_end();
    }
    alarm(60);
    gp_ok(GP_OK == gp_cuda_driver(), "the driver is found once the process has loaded it");
    ((int (*)(void **, int)) entry("cuDevicePrimaryCtxRetain"))(&ctx, 0);
    ((int (*)(void *)) entry("cuCtxSetCurrent"))(ctx);
    ((int (*)(cu_ptr_t *, size_t)) entry("cuMemAlloc_v2"))(&device, 1 << 20);
    ((int (*)(cu_ptr_t *, size_t, unsigned)) entry("cuMemAllocManaged"))(&managed, 1 << 20, 1);
    ((int (*)(cu_ptr_t *, size_t, void *)) entry("cuMemAllocAsync"))(&pool, 1 << 20, NULL);
    ((int (*)(void *)) entry("cuStreamSynchronize"))(NULL);
    ((int (*)(void *, size_t, unsigned)) entry("cuMemHostRegister_v2"))(plain, sizeof(plain), 0);
    p.device = (const void *) (uintptr_t) device;
    p.managed = (const void *) (uintptr_t) managed;
    p.pool = (const void *) (uintptr_t) pool;
    p.registered = plain;
    check_kinds("current context", p.device, p.managed, p.pool, p.registered);
    ((int (*)(void *)) entry("cuCtxSetCurrent"))(NULL);
    check_kinds("no current context", p.device, p.managed, p.pool, p.registered);
    pthread_create(&thread, NULL, other_thread, &p);
    pthread_join(thread, NULL);

    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (char) (i * 7 + i / 256);
    }
    memset(out, 0, sizeof(out));
    gp_ok(
        GP_OK == gp_cuda_host_alloc(sizeof(in), &pinned) && GP_OK == gp_cuda_copy(pinned, in, 1000)
            && GP_OK == gp_cuda_copy((void *) (uintptr_t) device, pinned, 1000)
            && GP_OK == gp_cuda_copy((void *) (uintptr_t) pool, (void *) (uintptr_t) device, 1000)
            && GP_OK == gp_cuda_copy((void *) (uintptr_t) managed, (void *) (uintptr_t) pool, 1000)
            && GP_OK == gp_cuda_copy(out, (void *) (uintptr_t) managed, 1000)
            && 0 == memcmp(in, out, 1000),
        "copies between all kinds, without a current context");
    ((int (*)(void **)) entry("cuCtxGetCurrent"))(&now);
    gp_ok(NULL == now, "the current context was not changed");
    gp_cuda_host_free(pinned);
    gp_ok(GP_OK == gp_cuda_dev_get(0, &dev), "the device opens");
    gp_ok(gp_cuda_dev_id(dev)->sm_count > 0 && gp_cuda_dev_id(dev)->capability >= 50,
          "it has %u multiprocessors and capability %u", gp_cuda_dev_id(dev)->sm_count,
          gp_cuda_dev_id(dev)->capability);
    {
        unsigned char nobody[16] = {0};
        uint32_t path = 99;
        int count = 0;

        gp_ok(GP_OK == gp_cuda_peer_path(dev, gp_cuda_dev_id(dev)->uuid, &path)
                  && GP_PATH_SELF_GPU == path, "the path from a GPU to itself");
        gp_ok(GP_OK == gp_cuda_peer_path(dev, nobody, &path) && GP_PATH_PCIE == path,
              "a GPU that is not visible counts as PCIe");
        ((int (*)(int *)) entry("cuDeviceGetCount"))(&count);
        if (count < 2) {
            gp_skip("one GPU", "paths between GPUs");
        }
        for (int i = 1; i < count; i++) {
            gp_cuda_dev_t *other;

            gp_ok(GP_OK == gp_cuda_dev_get(i, &other)
                      && GP_OK == gp_cuda_peer_path(dev, gp_cuda_dev_id(other)->uuid, &path)
                      && path >= GP_PATH_NVLINK && path <= GP_PATH_HOST,
                  "the path from GPU 0 to GPU %d is %u", i, path);
            gp_cuda_dev_put(other);
        }
    }
    gp_cuda_dev_put(dev);
    gp_cuda_finalize();
    return gp_tap_end();
}
