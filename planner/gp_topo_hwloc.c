/*
 * gp_topo_hwloc.c - a node of the topology from hwloc: this machine, or one recorded as XML.
 *
 * Owns what PCI vendor, class and device numbers mean to us. Asks no driver but what the kernel
 * shows in files. Built to "not available" without hwloc.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo.h"

#include "device/proto/gp_log.h"

#ifndef GP_TOPO_HWLOC /* set by planner/local.mk when configure found hwloc */

gp_status_t gp_topo_hwloc_add(gp_topo_t *topo, const char *xml)
{
    (void) topo;
    (void) xml;
    gp_log(GP_LOG_ERROR, "topology: this build has no hwloc");
    return GP_ERR_UNSUPPORTED;
}

#else

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#define NVIDIA 0x10deu
#define CLASS_NVSWITCH 0x0680u /* "other bridge": what an NVSwitch shows itself as */

/* A line of a small file of the system into text; 0 when there is none. */
static int first_line(const char *path, const char *starts, char *text, size_t text_bytes)
{
    FILE *in = fopen(path, "r");
    int found = 0;

    if (NULL == in) {
        return 0;
    }
    while (!found && NULL != fgets(text, (int) text_bytes, in)) {
        found = 0 == strncmp(text, starts, strlen(starts));
    }
    fclose(in);
    return found;
}

/* Names hold few characters; what else there is becomes '-'. */
static void take_name(char name[GP_TOPO_NAME_BYTES], const char *text)
{
    size_t i;

    for (i = 0; '\0' != text[i] && i + 1 < GP_TOPO_NAME_BYTES; i++) {
        int ok = isalnum((unsigned char) text[i]) || NULL != strchr("._-", text[i]);

        name[i] = ok ? text[i] : '-';
    }
    name[i] = '\0';
}

static uint64_t pci_of(hwloc_obj_t obj)
{
    const struct hwloc_pcidev_attr_s *p = HWLOC_OBJ_BRIDGE == obj->type
                                              ? &obj->attr->bridge.upstream.pci
                                              : &obj->attr->pcidev;

    return (uint64_t) p->domain << 16 | (uint64_t) p->bus << 8 | (uint64_t) (p->dev << 3) | p->func;
}

static int is_pci_bridge(hwloc_obj_t obj)
{
    return NULL != obj && HWLOC_OBJ_BRIDGE == obj->type
           && HWLOC_OBJ_BRIDGE_PCI == obj->attr->bridge.upstream_type;
}

/*
 * From the root down there are a root port, then an upstream and a downstream port for each switch,
 * then the device. So every second bridge is the upstream port of a switch.
 */
static void place_of(hwloc_topology_t hw, hwloc_obj_t dev, gp_topo_place_t *place)
{
    uint64_t ports[2 * GP_TOPO_MOST_SWITCHES + 2];
    uint32_t n_ports = 0;
    hwloc_obj_t host = hwloc_get_non_io_ancestor_obj(hw, dev);

    memset(place, 0, sizeof(*place));
    place->pci = pci_of(dev);
    place->numa = GP_TOPO_NONE;
    for (hwloc_obj_t up = dev->parent; is_pci_bridge(up); up = up->parent) {
        if (n_ports == sizeof(ports) / sizeof(ports[0])) {
            n_ports = 0; /* deeper than the model goes: only the ports near the root count */
        }
        ports[n_ports++] = pci_of(up);
    }
    for (uint32_t i = n_ports; i-- > 0 && place->n_switches < GP_TOPO_MOST_SWITCHES;) {
        if (1 == (n_ports - 1 - i) % 2) {
            place->switches[place->n_switches++] = ports[i];
        }
    }
    if (NULL != host && NULL != host->nodeset && 1 == hwloc_bitmap_weight(host->nodeset)) {
        hwloc_obj_t numa
            = hwloc_get_numanode_obj_by_os_index(hw, (unsigned) hwloc_bitmap_first(host->nodeset));

        place->numa = NULL != numa ? numa->logical_index : GP_TOPO_NONE;
    }
}

/*
 * Compute capability and NVLinks to NVSwitches by chip, from the public list of PCI ids: GV100
 * (V100), GA100 (A100), GH100 (H100, H200). Other chips: not known without the driver.
 */
static const struct chip {
    uint16_t first, last;
    uint32_t capability;
    uint32_t nvswitch_links;
} chips[] = {
    {0x1d80, 0x1dff, 70, 6},
    {0x2080, 0x20ff, 80, 12},
    {0x2300, 0x234f, 90, 18},
};

static const char *info_of(hwloc_obj_t dev, const char *name)
{
    for (hwloc_obj_t child = dev->io_first_child; NULL != child; child = child->next_sibling) {
        const char *value = hwloc_obj_get_info_by_name(child, name);

        if (NULL != value) {
            return value;
        }
    }
    return NULL;
}

/* What hwloc's own GPU plugins recorded, or, on this machine, what the kernel driver shows. */
static void ask_driver(hwloc_topology_t hw, hwloc_obj_t dev, gp_topo_gpu_t *gpu)
{
    const char *uuid = info_of(dev, "NVIDIAUUID"), *sm = info_of(dev, "CUDAMultiProcessors");
    char path[96], pci[20], text[160] = "";

    if (NULL == uuid && hwloc_topology_is_thissystem(hw)) {
        snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information",
                 gp_topo_pci_text(gpu->place.pci, pci, sizeof(pci)));
        if (first_line(path, "GPU UUID:", text, sizeof(text))) {
            char *at = text + strlen("GPU UUID:");

            at += strspn(at, " \t");
            at[strcspn(at, " \t\r\n")] = '\0';
            uuid = at;
        }
    }
    if (NULL != uuid && !gp_topo_uuid_of(uuid, gpu->uuid)) {
        memset(gpu->uuid, 0, sizeof(gpu->uuid)); /* "GPU-????..." before the driver knows it */
    }
    if (NULL != sm) {
        unsigned long count = strtoul(sm, NULL, 10);

        gpu->sm_count = count <= GP_TOPO_MOST_SM ? (uint32_t) count : 0;
    }
}

static gp_status_t add_gpu(gp_topo_t *topo, hwloc_topology_t hw, hwloc_obj_t dev, int nvswitch,
                           const char **reason)
{
    gp_topo_gpu_t gpu;

    memset(&gpu, 0, sizeof(gpu));
    place_of(hw, dev, &gpu.place);
    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        uint16_t id = dev->attr->pcidev.device_id;

        if (id >= chips[i].first && id <= chips[i].last) {
            gpu.capability = chips[i].capability;
            gpu.nvswitch_links = nvswitch ? chips[i].nvswitch_links : 0;
        }
    }
    ask_driver(hw, dev, &gpu);
    return gp_topo_add_gpu(topo, &gpu, reason);
}

/* Bytes per microsecond of a NIC of this machine, as the kernel says it; 0: it does not. */
static uint32_t nic_speed(const char *name, int infiniband)
{
    char path[512], text[64] = "";
    unsigned long mbit = 0;

    snprintf(path, sizeof(path),
             infiniband ? "/sys/class/infiniband/%s/ports/1/rate" : "/sys/class/net/%s/speed",
             name);
    if (first_line(path, "", text, sizeof(text)) && isdigit((unsigned char) text[0])) {
        mbit = strtoul(text, NULL, 10) * (infiniband ? 1000 : 1); /* "100 Gb/sec (4X EDR)" */
    }
    return mbit / 8 <= GP_TOPO_MOST_SPEED ? (uint32_t) (mbit / 8) : 0;
}

static gp_status_t add_nic(gp_topo_t *topo, hwloc_topology_t hw, hwloc_obj_t dev,
                           const char **reason)
{
    gp_topo_nic_t nic;
    hwloc_obj_t best = NULL;

    memset(&nic, 0, sizeof(nic));
    place_of(hw, dev, &nic.place);
    for (hwloc_obj_t os = dev->io_first_child; NULL != os; os = os->next_sibling) {
        if (HWLOC_OBJ_OS_DEVICE != os->type || NULL == os->name) {
            continue;
        }
        /* UCX names the verbs device rather than its network interface. */
        if (HWLOC_OBJ_OSDEV_OPENFABRICS == os->attr->osdev.type
            || (HWLOC_OBJ_OSDEV_NETWORK == os->attr->osdev.type && NULL == best)) {
            best = os;
        }
    }
    if (NULL != best) {
        take_name(nic.name, best->name);
        if (hwloc_topology_is_thissystem(hw)) {
            nic.bytes_per_us = nic_speed(best->name, HWLOC_OBJ_OSDEV_OPENFABRICS
                                                         == best->attr->osdev.type);
        }
    }
    return gp_topo_add_nic(topo, &nic, reason);
}

/* hwloc's PCI devices: display and network controllers become ours. */
static gp_status_t add_devices(gp_topo_t *topo, hwloc_topology_t hw, const char **reason)
{
    gp_status_t status = GP_OK;
    hwloc_obj_t dev = NULL;
    int nvswitch = 0;

    while (NULL != (dev = hwloc_get_next_pcidev(hw, dev))) {
        nvswitch |= NVIDIA == dev->attr->pcidev.vendor_id
                    && CLASS_NVSWITCH == dev->attr->pcidev.class_id;
    }
    while (GP_OK == status && NULL != (dev = hwloc_get_next_pcidev(hw, dev))) {
        uint32_t kind = dev->attr->pcidev.class_id >> 8;

        if (0x03 == kind && NVIDIA == dev->attr->pcidev.vendor_id) {
            status = add_gpu(topo, hw, dev, nvswitch, reason);
        } else if (0x02 == kind || 0x0c06 == dev->attr->pcidev.class_id) {
            status = add_nic(topo, hw, dev, reason);
        }
    }
    return status;
}

/* At least 0: what is not there is not known. */
static uint32_t count_of(hwloc_topology_t hw, hwloc_obj_type_t type, uint32_t most)
{
    int n = hwloc_get_nbobjs_by_type(hw, type);

    return n < 0 ? 0 : (uint32_t) n > most ? most : (uint32_t) n;
}

static gp_status_t add_node(gp_topo_t *topo, hwloc_topology_t hw)
{
    gp_topo_node_t node;
    const char *reason = NULL;
    const char *name = hwloc_obj_get_info_by_name(hwloc_get_root_obj(hw), "HostName");
    gp_status_t status;

    memset(&node, 0, sizeof(node));
    take_name(node.name, NULL != name && '\0' != name[0] ? name : "node");
    node.n_numa = count_of(hw, HWLOC_OBJ_NUMANODE, GP_TOPO_MOST_NUMA);
    node.n_cores = count_of(hw, HWLOC_OBJ_CORE, GP_TOPO_MOST_CORES);
    status = gp_topo_add_node(topo, &node, &reason);
    status = GP_OK != status ? status : add_devices(topo, hw, &reason);
    if (GP_OK != status) {
        gp_log(GP_LOG_ERROR, "topology: from hwloc: %s", reason);
    }
    return status;
}

gp_status_t gp_topo_hwloc_add(gp_topo_t *topo, const char *xml)
{
    gp_status_t status = GP_ERR_SYSTEM;
    hwloc_topology_t hw;

    if (0 != hwloc_topology_init(&hw)) {
        gp_log(GP_LOG_ERROR, "topology: hwloc does not start");
        return GP_ERR_SYSTEM;
    }
#if HWLOC_API_VERSION >= 0x00020100
    /* Some would start the CUDA driver, or a display, in this process. */
    if (NULL == xml) {
        hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "cuda");
        hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "opencl");
        hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
    }
#endif
    /* Also NVSwitches, which hwloc may think unimportant. */
    if (0 != hwloc_topology_set_io_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_ALL)) {
        gp_log(GP_LOG_ERROR, "topology: hwloc cannot show PCI devices");
        goto err_destroy;
    }
    if (NULL != xml && 0 != hwloc_topology_set_xml(hw, xml)) {
        gp_log(GP_LOG_ERROR, "%s: not read by hwloc: %s", xml, strerror(errno));
        status = GP_ERR_INVALID;
        goto err_destroy;
    }
    if (0 != hwloc_topology_load(hw)) {
        gp_log(GP_LOG_ERROR, "%s: hwloc finds no topology", NULL != xml ? xml : "this machine");
        status = NULL != xml ? GP_ERR_INVALID : GP_ERR_SYSTEM;
        goto err_destroy;
    }
    status = add_node(topo, hw);
err_destroy:
    hwloc_topology_destroy(hw);
    return status;
}

#endif /* GP_TOPO_HWLOC */
