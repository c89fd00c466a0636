/*
 * gp_cuda_dev.c - the device object: identity, kernels, launch slots, lifetime.
 *
 * Owns one object per device and process. A device is opened at the first communicator that needs it
 * and stays open until gp_cuda_finalize(): see gp_cuda_int.h for why nothing is released earlier.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device/cuda/gp_fatbin.h"
#include "device/proto/gp_log.h"

#define GP_SLAB_BYTES 65536u
#define GP_STATUS_STRIDE ((sizeof(gp_kstatus_t) + 127u) / 128u * 128u)

static pthread_mutex_t gp_devs_lock = PTHREAD_MUTEX_INITIALIZER; /* of gp_devs and every refs */
static gp_cuda_dev_t *gp_devs[GP_CUDA_MAX_DEVICES];
static uint8_t gp_devs_unsupported[GP_CUDA_MAX_DEVICES]; /* said so already: not tried or said again */

/* As kernel names spell them; order of gp_family_t and gp_protocol_t. */
static const char *const gp_family_names[GP_FAMILY_COUNT] = {"u8",   "u16", "u32", "u64", "f16",
                                                             "bf16", "f32", "f64", "c32", "c64"};
static const char *const gp_protocol_names[GP_PROTO_COUNT] = {"ll", "ll128", "simple"};

int gp_cuda_compiled(void)
{
    return gp_n_fatbins > 0;
}

/* ---- identity ------------------------------------------------------------------------------------ */

/* A driver that cannot tell whether it serves MPS: look for the daemon's control pipe. */
static uint32_t gp_mps_guess(void)
{
    const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[512];
    struct stat st;

    snprintf(path, sizeof(path), "%s/control", NULL == dir ? "/tmp/nvidia-mps" : dir);
    return 0 == stat(path, &st);
}

/* NUMA node by the PCI address of the device; -1 when the system does not say. */
static int gp_numa_from_pci(gp_cu_device_t device)
{
    char id[32] = "";
    char path[96];
    FILE *file;
    int node = -1;
    char *c;

    if (GP_CU_SUCCESS != gp_cu.cuDeviceGetPCIBusId(id, (int) sizeof(id), device)) {
        return -1;
    }
    for (c = id; '\0' != *c; ++c) {
        *c = (char) tolower((unsigned char) *c);
    }
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", id);
    file = fopen(path, "r");
    if (NULL != file) {
        if (1 != fscanf(file, "%d", &node)) {
            node = -1;
        }
        fclose(file);
    }
    return node;
}

static gp_status_t gp_dev_identify(gp_cuda_dev_t *dev)
{
    gp_cu_device_t device = dev->prim->device;
    int major = 0;
    int minor = 0;
    int sm_count = 0;
    int optin = 0;
    int value = 0;
    gp_cu_uuid_t uuid;
    gp_cu_result_t result;
    size_t i;
    const struct {
        int attribute;
        int *value;
    } needed[] = {{GP_CU_DEV_CAPABILITY_MAJOR, &major},
                  {GP_CU_DEV_CAPABILITY_MINOR, &minor},
                  {GP_CU_DEV_MULTIPROCESSOR_COUNT, &sm_count},
                  {GP_CU_DEV_MAX_SHARED_OPTIN_BYTES, &optin},
                  {GP_CU_DEV_UNIFIED_ADDRESSING, &value}};

    for (i = 0; i < sizeof(needed) / sizeof(needed[0]); ++i) {
        result = gp_cu.cuDeviceGetAttribute(needed[i].value, needed[i].attribute, device);
        if (GP_CU_SUCCESS != result) {
            return gp_cu_fail("cuDeviceGetAttribute", result, NULL);
        }
    }
    if (!value) {
        gp_log(GP_LOG_ERROR, "CUDA: device %d has no unified addressing", dev->ordinal);
        return GP_ERR_UNSUPPORTED;
    }
    result = gp_cu.cuDeviceGetUuid(&uuid, device);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuDeviceGetUuid", result, NULL);
    }
    memcpy(dev->id.uuid, uuid.bytes, sizeof(dev->id.uuid));
    dev->id.capability = (uint32_t) (10 * major + minor);
    dev->id.sm_count = (uint32_t) sm_count;
    dev->id.driver = (uint32_t) gp_cu.version;
    dev->id.ordinal = dev->ordinal;
    dev->optin_shared_bytes = (uint32_t) optin;
    if (GP_CU_SUCCESS == gp_cu.cuDeviceGetAttribute(&value, GP_CU_DEV_MPS_ENABLED, device)) {
        dev->id.mps = 0 != value;
    } else {
        dev->id.mps = gp_mps_guess();
    }
    if (GP_CU_SUCCESS == gp_cu.cuDeviceGetAttribute(&value, GP_CU_DEV_HOST_NUMA_ID, device)) {
        dev->id.numa_node = value < 0 ? -1 : value;
    } else {
        dev->id.numa_node = gp_numa_from_pci(device);
    }
    return GP_OK;
}

/* ---- kernels ------------------------------------------------------------------------------------- */

/* The context is current. */
static gp_status_t gp_dev_load_modules(gp_cuda_dev_t *dev)
{
    gp_cu_result_t result;
    uint32_t i;

    if (0 == gp_n_fatbins) {
        gp_log(GP_LOG_ERROR, "CUDA: built without nvcc, there are no kernels");
        return GP_ERR_UNSUPPORTED;
    }
    dev->modules = calloc(gp_n_fatbins, sizeof(*dev->modules));
    if (NULL == dev->modules) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    for (i = 0; i < gp_n_fatbins; ++i) {
        result = gp_cu.cuModuleLoadData(&dev->modules[i], gp_fatbins[i].image);
        if (GP_CU_SUCCESS == result) {
            dev->n_modules = i + 1;
            continue;
        }
        if (GP_CU_NO_BINARY_FOR_GPU == result || GP_CU_UNSUPPORTED_PTX_VERSION == result
            || GP_CU_JIT_COMPILER_NOT_FOUND == result || GP_CU_INVALID_IMAGE == result) {
            gp_log(GP_LOG_ERROR,
                   "CUDA: the kernels (%s) hold no code for device %d, capability %u.%u, "
                   "driver for CUDA %d.%d: %s; build with --with-cuda-arch=%u",
                   gp_fatbins[i].name, dev->ordinal, dev->id.capability / 10,
                   dev->id.capability % 10, gp_cu.version / 1000, gp_cu.version % 1000 / 10,
                   gp_cu_error_name(result), dev->id.capability);
            return GP_ERR_UNSUPPORTED;
        }
        return gp_cu_fail("cuModuleLoadData", result, NULL);
    }
    return GP_OK;
}

/* Find one kernel and make the driver load its code now. The context is current. */
static gp_status_t gp_dev_load_kernel(gp_cuda_dev_t *dev, uint32_t protocol, uint32_t family)
{
    gp_cuda_kernel_t *kernel = &dev->kernels[protocol][family];
    gp_cu_function_t function = NULL;
    gp_cu_result_t result = GP_CU_NOT_FOUND;
    char name[64];
    int max_threads = 0;
    int static_bytes = 0;
    int dynamic_bytes;
    uint32_t i;

    snprintf(name, sizeof(name), "gp_kernel_%s_%s", gp_family_names[family],
             gp_protocol_names[protocol]);
    for (i = 0; i < dev->n_modules && GP_CU_NOT_FOUND == result; ++i) {
        if (0 == strcmp(gp_fatbins[i].name, gp_family_names[family])) { /* one image per family */
            result = gp_cu.cuModuleGetFunction(&function, dev->modules[i], name);
        }
    }
    if (GP_CU_SUCCESS != result) {
        gp_log(GP_LOG_ERROR, "CUDA: no kernel %s: %s", name, gp_cu_error_name(result));
        return GP_CU_NOT_FOUND == result ? GP_ERR_UNSUPPORTED : GP_ERR_CUDA;
    }
    if (NULL != gp_cu.cuFuncLoad) {
        result = gp_cu.cuFuncLoad(function);
        if (GP_CU_SUCCESS != result) {
            return gp_cu_fail("cuFuncLoad", result, NULL);
        }
    }
    /* Older drivers load a function when its attributes are asked for. */
    result = gp_cu.cuFuncGetAttribute(&max_threads, GP_CU_FUNC_MAX_THREADS, function);
    if (GP_CU_SUCCESS == result) {
        result = gp_cu.cuFuncGetAttribute(&static_bytes, GP_CU_FUNC_SHARED_BYTES, function);
    }
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuFuncGetAttribute", result, NULL);
    }
    dynamic_bytes = (int) dev->optin_shared_bytes - static_bytes;
    result = gp_cu.cuFuncSetAttribute(function, GP_CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, dynamic_bytes);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuFuncSetAttribute", result, NULL);
    }
    kernel->max_threads = (uint32_t) max_threads;
    kernel->max_shared_bytes = (uint32_t) dynamic_bytes;
    kernel->function = function;
    return GP_OK;
}

gp_status_t gp_cuda_dev_load(gp_cuda_dev_t *dev, uint32_t protocol)
{
    gp_status_t status = GP_OK;
    uint32_t family;
    int pushed;

    pthread_mutex_lock(&dev->lock);
    if (!dev->loaded[protocol]) {
        status = gp_cu_enter(dev->prim->ctx, &pushed);
        if (GP_OK == status) {
            for (family = 0; family < GP_FAMILY_COUNT && GP_OK == status; ++family) {
                status = gp_dev_load_kernel(dev, protocol, family);
            }
            gp_cu_leave(pushed);
        }
        dev->loaded[protocol] = GP_OK == status;
    }
    pthread_mutex_unlock(&dev->lock);
    return status;
}

/* ---- launch slots -------------------------------------------------------------------------------- */

/* Pin a slab of status blocks and make a slot of each. The lock is held, the context current. */
static gp_status_t gp_dev_grow_slots(gp_cuda_dev_t *dev)
{
    gp_cuda_slab_t *slab;
    gp_cuda_slot_t *slot;
    gp_cu_ptr_t device;
    gp_cu_result_t result;
    gp_status_t status;
    size_t offset;

    slab = calloc(1, sizeof(*slab));
    if (NULL == slab) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    status = gp_cuda_host_alloc(GP_SLAB_BYTES, &slab->host);
    if (GP_OK != status) {
        free(slab);
        return status;
    }
    slab->next = dev->slabs;
    dev->slabs = slab;
    result = gp_cu.cuMemHostGetDevicePointer(&device, slab->host, 0);
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuMemHostGetDevicePointer", result, NULL);
    }
    for (offset = 0; offset + GP_STATUS_STRIDE <= GP_SLAB_BYTES; offset += GP_STATUS_STRIDE) {
        slot = calloc(1, sizeof(*slot));
        if (NULL == slot) {
            break;
        }
        slot->status = (gp_kstatus_t *) (void *) ((unsigned char *) slab->host + offset);
        slot->status_dev = device + offset;
        slot->next = dev->slots;
        dev->slots = slot;
        slot->next_free = dev->free_slots;
        dev->free_slots = slot;
    }
    if (NULL == dev->free_slots) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    return GP_OK;
}

gp_status_t gp_cuda_slot_get(gp_cuda_dev_t *dev, gp_cuda_slot_t **slot_p)
{
    gp_cuda_slot_t *slot;
    gp_cu_result_t result;
    gp_status_t status;
    int greatest = 0;
    int least = 0;
    int pushed;

    status = gp_cu_enter(dev->prim->ctx, &pushed);
    if (GP_OK != status) {
        return status;
    }
    pthread_mutex_lock(&dev->lock);
    if (NULL == dev->free_slots) {
        status = gp_dev_grow_slots(dev);
        if (GP_OK != status) {
            goto out;
        }
    }
    slot = dev->free_slots;
    if (NULL == slot->stream) {
        (void) gp_cu.cuCtxGetStreamPriorityRange(&least, &greatest);
        result =
            gp_cu.cuStreamCreateWithPriority(&slot->stream, GP_CU_STREAM_NON_BLOCKING, greatest);
        if (GP_CU_SUCCESS != result) {
            slot->stream = NULL;
            status = gp_cu_fail("cuStreamCreateWithPriority", result, NULL);
            goto out;
        }
    }
    dev->free_slots = slot->next_free;
    memset(slot->status, 0, sizeof(*slot->status));
    *slot_p = slot;
out:
    pthread_mutex_unlock(&dev->lock);
    gp_cu_leave(pushed);
    return status;
}

void gp_cuda_slot_put(gp_cuda_dev_t *dev, gp_cuda_slot_t *slot)
{
    pthread_mutex_lock(&dev->lock);
    slot->next_free = dev->free_slots;
    dev->free_slots = slot;
    pthread_mutex_unlock(&dev->lock);
}

/* ---- lifetime ------------------------------------------------------------------------------------ */

/* Undo whatever gp_dev_open() and later growth did. Errors mean that the driver did it before us. */
static void gp_dev_close(gp_cuda_dev_t *dev)
{
    gp_cuda_slot_t *slot;
    gp_cuda_slab_t *slab;
    uint32_t i;
    int pushed = 0;
    int alive = GP_OK == gp_cu_enter(dev->prim->ctx, &pushed);

    if (NULL != dev->arena) {
        gp_cuda_arena_destroy(dev->arena);
    }
    while (NULL != (slot = dev->slots)) {
        dev->slots = slot->next;
        if (alive && NULL != slot->stream) {
            (void) gp_cu.cuStreamDestroy(slot->stream);
        }
        free(slot);
    }
    while (NULL != (slab = dev->slabs)) {
        dev->slabs = slab->next;
        gp_cuda_host_free(slab->host);
        free(slab);
    }
    for (i = 0; alive && i < dev->n_modules; ++i) {
        (void) gp_cu.cuModuleUnload(dev->modules[i]);
    }
    gp_cu_leave(pushed);
    free(dev->modules);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

static gp_status_t gp_dev_open(int ordinal, gp_cuda_dev_t **dev_p)
{
    gp_cuda_dev_t *dev = calloc(1, sizeof(*dev));
    gp_status_t status;
    int pushed;

    if (NULL == dev) {
        gp_log(GP_LOG_ERROR, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    dev->ordinal = ordinal;
    status = gp_cuda_prim_get(ordinal, &dev->prim);
    if (GP_OK != status) {
        free(dev);
        return status;
    }
    pthread_mutex_init(&dev->lock, NULL);
    status = gp_cu_enter(dev->prim->ctx, &pushed);
    if (GP_OK == status) {
        status = gp_dev_identify(dev);
        if (GP_OK == status) {
            status = gp_dev_load_modules(dev);
        }
        if (GP_OK == status) {
            status = gp_cuda_arena_create(dev, &dev->arena);
        }
        gp_cu_leave(pushed);
    }
    if (GP_OK != status) {
        gp_dev_close(dev);
        return status;
    }
    *dev_p = dev;
    return GP_OK;
}

gp_status_t gp_cuda_dev_get(int device, gp_cuda_dev_t **dev_p)
{
    gp_status_t status = gp_cuda_driver();

    if (GP_OK != status) {
        return GP_DECLINED == status ? GP_ERR_UNSUPPORTED : status;
    }
    if (device < 0 || device >= GP_CUDA_MAX_DEVICES) {
        gp_log(GP_LOG_ERROR, "CUDA: device ordinal %d is outside 0..%d", device,
               GP_CUDA_MAX_DEVICES - 1);
        return GP_ERR_INVALID;
    }
    pthread_mutex_lock(&gp_devs_lock);
    if (gp_devs_unsupported[device]) {
        status = GP_ERR_UNSUPPORTED;
    } else if (NULL == gp_devs[device]) {
        status = gp_dev_open(device, &gp_devs[device]);
        gp_devs_unsupported[device] = GP_ERR_UNSUPPORTED == status;
    }
    if (GP_OK == status) {
        ++gp_devs[device]->refs;
        *dev_p = gp_devs[device];
    }
    pthread_mutex_unlock(&gp_devs_lock);
    return status;
}

void gp_cuda_dev_put(gp_cuda_dev_t *dev)
{
    if (NULL == dev) {
        return;
    }
    pthread_mutex_lock(&gp_devs_lock);
    --dev->refs;
    pthread_mutex_unlock(&gp_devs_lock);
}

const gp_gpu_id_t *gp_cuda_dev_id(const gp_cuda_dev_t *dev)
{
    return &dev->id;
}

gp_arena_t *gp_cuda_dev_arena(gp_cuda_dev_t *dev)
{
    return gp_cuda_arena_base(dev->arena);
}

int gp_cuda_dev_reaches(const gp_cuda_dev_t *dev, const gp_ptr_info_t *info)
{
    if (!info->is_device) {
        return 0;
    }
    if (info->is_managed) {
        return 1;
    }
    return info->device == dev->ordinal
           && (NULL == info->context || info->context == (void *) dev->prim->ctx);
}

void gp_cuda_finalize(void)
{
    int left = 0;
    int i;

    pthread_mutex_lock(&gp_devs_lock);
    for (i = 0; i < GP_CUDA_MAX_DEVICES; ++i) {
        gp_devs_unsupported[i] = 0;
        if (NULL == gp_devs[i]) {
            continue;
        }
        if (gp_devs[i]->refs > 0) {
            gp_log(GP_LOG_DEBUG, "CUDA: device %d is still in use at finalize, left open", i);
            ++left;
            continue;
        }
        gp_dev_close(gp_devs[i]);
        gp_devs[i] = NULL;
    }
    pthread_mutex_unlock(&gp_devs_lock);
    if (0 == left) {
        gp_cuda_host_finalize();
        gp_cuda_prim_finalize();
        gp_cu_unload();
    }
}
