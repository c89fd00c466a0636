/*
 * gp_cuda_links.c - how two GPUs of a host reach each other, as the driver tells it.
 *
 * GPUs are named by UUID: CUDA_VISIBLE_DEVICES may give each process other ordinals, and MIG slices of one
 * GPU are GPUs of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/cuda/gp_cuda_int.h"

#include <string.h>

#include "device/proto/gp_log.h"

gp_status_t gp_cuda_peer_path(const gp_cuda_dev_t *dev, const unsigned char uuid[16],
                              uint32_t *path_p)
{
    const gp_gpu_id_t *mine = gp_cuda_dev_id(dev);
    gp_cu_device_t own, peer;
    gp_cu_result_t result;
    gp_cu_uuid_t id;
    int count = 0, access = 0, atomics = 0, i;

    if (0 == memcmp(uuid, mine->uuid, sizeof(mine->uuid))) {
        *path_p = GP_PATH_SELF_GPU;
        return GP_OK;
    }
    result = gp_cu.cuDeviceGetCount(&count);
    if (GP_CU_SUCCESS == result) {
        result = gp_cu.cuDeviceGet(&own, mine->ordinal);
    }
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuDeviceGet", result, NULL);
    }
    for (i = 0; i < count; ++i) {
        if (GP_CU_SUCCESS == gp_cu.cuDeviceGet(&peer, i)
            && GP_CU_SUCCESS == gp_cu.cuDeviceGetUuid(&id, peer)
            && 0 == memcmp(id.bytes, uuid, sizeof(mine->uuid))) {
            break;
        }
    }
    if (i == count) {
        /* Not visible here: nothing can be asked. What every pair that can map memory has at least. */
        *path_p = GP_PATH_PCIE;
        return GP_OK;
    }
    result = gp_cu.cuDeviceGetP2PAttribute(&access, GP_CU_P2P_ACCESS, own, peer);
    if (GP_CU_SUCCESS == result) {
        result = gp_cu.cuDeviceGetP2PAttribute(&atomics, GP_CU_P2P_NATIVE_ATOMICS, own, peer);
    }
    if (GP_CU_SUCCESS != result) {
        return gp_cu_fail("cuDeviceGetP2PAttribute", result, NULL);
    }
    /* Atomics of the whole width on a peer's memory: links of NVLink have them, PCIe has not. */
    *path_p = !access ? GP_PATH_HOST : atomics ? GP_PATH_NVLINK : GP_PATH_PCIE;
    return GP_OK;
}
