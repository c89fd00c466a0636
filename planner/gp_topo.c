/*
 * gp_topo.c - the topology model: what may be added, and the path between two ranks.
 *
 * Owns the limits of the model, the rule that names a path, and the bandwidth of a link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo.h"

#include <stdlib.h>
#include <string.h>

/*
 * One direction of one NVLink, bytes per microsecond. Published: P100 white paper (NVLink 1: 20
 * GB/s); V100 (NVLink 2: 6 links of 25), A100 (NVLink 3: 12 of 25), H100 (NVLink 4: 18 of 25);
 * GA102 white paper (8.6: 4 links, 56.25 GB/s together); Blackwell (NVLink 5: 18 links, 900 GB/s
 * together).
 */
static uint32_t nvlink_rate(uint32_t capability)
{
    if (0 != capability && capability < 70) {
        return 20000;
    }
    if (86 == capability) {
        return 14000;
    }
    return capability >= 100 ? 50000 : 25000;
}

/*
 * One direction of a GPU's PCIe x16, bytes per microsecond, by the generation its family came with:
 * 3, 4, 5 for 7.x, 8.x, 9.0 and above. On the wire 15.75, 31.5, 63 GB/s (8, 16, 32 GT/s x 16 lanes
 * x 128/130); about three quarters of it are usable.
 */
static uint32_t pcie_rate(const gp_topo_gpu_t *gpu)
{
    if (0 != gpu->pcie_bytes_per_us) {
        return gpu->pcie_bytes_per_us;
    }
    return gpu->capability >= 90 ? 48000 : gpu->capability >= 80 ? 24000 : 12000;
}

/* Between two sockets: what NCCL's topology search assumes for Skylake's UPI, 10 GB/s. */
#define SOCKET_BYTES_PER_US 10000u

static void say(const char **reason, const char *text)
{
    if (NULL != reason) {
        *reason = text;
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

gp_topo_t *gp_topo_new(void)
{
    return calloc(1, sizeof(gp_topo_t));
}

void gp_topo_free(gp_topo_t *topo)
{
    if (NULL != topo) {
        free(topo->nodes);
        free(topo->gpus);
        free(topo->nics);
        free(topo->nvlinks);
        free(topo->ranks);
        free(topo);
    }
}

/* Room for one more behind n: arrays hold a power of two, so they only move when n is one. */
static void *room(void *array, uint32_t n, size_t elem_bytes)
{
    if (0 != (n & (n - 1u))) {
        return array;
    }
    return realloc(array, (0 == n ? 1 : 2 * (size_t) n) * elem_bytes);
}

static int name_ok(const char *name)
{
    const char *ok = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return NULL != memchr(name, '\0', GP_TOPO_NAME_BYTES) && strspn(name, ok) == strlen(name);
}

gp_status_t gp_topo_add_node(gp_topo_t *topo, const gp_topo_node_t *node, const char **reason)
{
    gp_topo_node_t *nodes;

    if (topo->n_nodes >= GP_TOPO_MOST_NODES) {
        say(reason, "too many nodes");
        return GP_ERR_INVALID;
    }
    if (!name_ok(node->name) || '\0' == node->name[0]) {
        say(reason, "name: not 1 to 63 of letters, digits, '.', '_' and '-'");
        return GP_ERR_INVALID;
    }
    if (node->n_numa > GP_TOPO_MOST_NUMA || node->n_cores > GP_TOPO_MOST_CORES) {
        say(reason, "too many NUMA nodes or cores");
        return GP_ERR_INVALID;
    }
    nodes = room(topo->nodes, topo->n_nodes, sizeof(*nodes));
    if (NULL == nodes) {
        say(reason, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    topo->nodes = nodes;
    nodes[topo->n_nodes] = *node;
    nodes[topo->n_nodes].first_gpu = topo->n_gpus;
    nodes[topo->n_nodes].first_nic = topo->n_nics;
    nodes[topo->n_nodes].first_nvlink = topo->n_nvlinks;
    nodes[topo->n_nodes].n_gpus = 0;
    nodes[topo->n_nodes].n_nics = 0;
    nodes[topo->n_nodes].n_nvlinks = 0;
    topo->n_nodes++;
    return GP_OK;
}

/* The node that is being filled, NULL before the first. */
static gp_topo_node_t *last_node(gp_topo_t *topo, const char **reason)
{
    if (0 == topo->n_nodes) {
        say(reason, "there is no node yet");
        return NULL;
    }
    return &topo->nodes[topo->n_nodes - 1];
}

static int place_ok(const gp_topo_node_t *node, const gp_topo_place_t *place, const char **reason)
{
    if (place->n_switches > GP_TOPO_MOST_SWITCHES) {
        say(reason, "switches: more than 4");
        return 0;
    }
    if (GP_TOPO_NONE != place->numa && place->numa >= node->n_numa) {
        say(reason, "numa: the node has no such NUMA node");
        return 0;
    }
    return 1;
}

int gp_topo_uuid_known(const gp_topo_gpu_t *gpu)
{
    static const uint8_t none[GP_TOPO_UUID_BYTES];

    return 0 != memcmp(gpu->uuid, none, sizeof(none));
}

/* Slices of one GPU have its PCI id and a UUID each. */
static const char *gpu_clash(const gp_topo_gpu_t *a, const gp_topo_gpu_t *b)
{
    int known = gp_topo_uuid_known(a) && gp_topo_uuid_known(b);

    if (known && 0 == memcmp(a->uuid, b->uuid, sizeof(a->uuid))) {
        return "uuid: another GPU has it";
    }
    if (!known && a->place.pci == b->place.pci) {
        return "pci: another GPU has it, and not both have a UUID";
    }
    return NULL;
}

gp_status_t gp_topo_add_gpu(gp_topo_t *topo, const gp_topo_gpu_t *gpu, const char **reason)
{
    gp_topo_node_t *node = last_node(topo, reason);
    gp_topo_gpu_t *gpus;

    if (NULL == node || !place_ok(node, &gpu->place, reason)) {
        return GP_ERR_INVALID;
    }
    if (node->n_gpus >= GP_TOPO_MOST_DEVICES) {
        say(reason, "too many GPUs on a node");
        return GP_ERR_INVALID;
    }
    if (gpu->capability > 999 || gpu->sm_count > GP_TOPO_MOST_SM
        || gpu->nvswitch_links > GP_TOPO_MOST_LINKS
        || gpu->pcie_bytes_per_us > GP_TOPO_MOST_SPEED) {
        say(reason, "capability, multiprocessors, links or speed out of range");
        return GP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        const char *clash = gpu_clash(&topo->gpus[node->first_gpu + i], gpu);

        if (NULL != clash) {
            say(reason, clash);
            return GP_ERR_INVALID;
        }
    }
    gpus = room(topo->gpus, topo->n_gpus, sizeof(*gpus));
    if (NULL == gpus) {
        say(reason, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    topo->gpus = gpus;
    gpus[topo->n_gpus] = *gpu;
    gpus[topo->n_gpus].node = topo->n_nodes - 1;
    topo->n_gpus++;
    node->n_gpus++;
    return GP_OK;
}

gp_status_t gp_topo_add_nic(gp_topo_t *topo, const gp_topo_nic_t *nic, const char **reason)
{
    gp_topo_node_t *node = last_node(topo, reason);
    gp_topo_nic_t *nics;

    if (NULL == node || !place_ok(node, &nic->place, reason)) {
        return GP_ERR_INVALID;
    }
    if (node->n_nics >= GP_TOPO_MOST_DEVICES) {
        say(reason, "too many NICs on a node");
        return GP_ERR_INVALID;
    }
    if (!name_ok(nic->name) || nic->bytes_per_us > GP_TOPO_MOST_SPEED) {
        say(reason, "name or speed out of range");
        return GP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < node->n_nics; i++) {
        if (topo->nics[node->first_nic + i].place.pci == nic->place.pci) {
            say(reason, "pci: another NIC has it");
            return GP_ERR_INVALID;
        }
    }
    nics = room(topo->nics, topo->n_nics, sizeof(*nics));
    if (NULL == nics) {
        say(reason, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    topo->nics = nics;
    nics[topo->n_nics] = *nic;
    nics[topo->n_nics].node = topo->n_nodes - 1;
    topo->n_nics++;
    node->n_nics++;
    return GP_OK;
}

/* Links between two GPUs of one node, 0 when there are none. */
static uint32_t links_of(const gp_topo_t *topo, const gp_topo_node_t *node, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < node->n_nvlinks; i++) {
        const gp_topo_nvlink_t *link = &topo->nvlinks[node->first_nvlink + i];

        if ((link->gpu_a == a && link->gpu_b == b) || (link->gpu_a == b && link->gpu_b == a)) {
            return link->links;
        }
    }
    return 0;
}

gp_status_t gp_topo_add_nvlink(gp_topo_t *topo, const gp_topo_nvlink_t *link, const char **reason)
{
    gp_topo_node_t *node = last_node(topo, reason);
    gp_topo_nvlink_t *links;

    if (NULL == node) {
        return GP_ERR_INVALID;
    }
    if (link->gpu_a < node->first_gpu || link->gpu_a >= topo->n_gpus
        || link->gpu_b < node->first_gpu || link->gpu_b >= topo->n_gpus) {
        say(reason, "a link to a GPU that is not on this node");
        return GP_ERR_INVALID;
    }
    if (link->gpu_a == link->gpu_b) {
        say(reason, "a link from a GPU to itself");
        return GP_ERR_INVALID;
    }
    if (0 == link->links || link->links > GP_TOPO_MOST_LINKS) {
        say(reason, "links: not 1 to 64");
        return GP_ERR_INVALID;
    }
    if (0 != links_of(topo, node, link->gpu_a, link->gpu_b)) {
        say(reason, "the links of these two GPUs were given before");
        return GP_ERR_INVALID;
    }
    links = room(topo->nvlinks, topo->n_nvlinks, sizeof(*links));
    if (NULL == links) {
        say(reason, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    topo->nvlinks = links;
    links[topo->n_nvlinks++] = *link;
    node->n_nvlinks++;
    return GP_OK;
}

gp_status_t gp_topo_add_rank(gp_topo_t *topo, const gp_topo_rank_t *rank, const char **reason)
{
    gp_topo_rank_t *ranks;

    if (topo->n_ranks >= GP_TOPO_MOST_RANKS) {
        say(reason, "too many ranks");
        return GP_ERR_INVALID;
    }
    if (rank->node >= topo->n_nodes || rank->n_cores > GP_TOPO_MOST_CORES) {
        say(reason, "a rank on a node that is not there, or with too many cores");
        return GP_ERR_INVALID;
    }
    if (GP_TOPO_NONE != rank->gpu
        && (rank->gpu >= topo->n_gpus || topo->gpus[rank->gpu].node != rank->node)) {
        say(reason, "a rank on a GPU that is not on its node");
        return GP_ERR_INVALID;
    }
    ranks = room(topo->ranks, topo->n_ranks, sizeof(*ranks));
    if (NULL == ranks) {
        say(reason, "out of memory");
        return GP_ERR_NO_MEMORY;
    }
    topo->ranks = ranks;
    ranks[topo->n_ranks++] = *rank;
    return GP_OK;
}

typedef struct owner {
    uint8_t uuid[GP_TOPO_UUID_BYTES];
    uint32_t gpu;
} owner_t;

static int by_uuid(const void *a, const void *b)
{
    const owner_t *x = a, *y = b;
    int order = memcmp(x->uuid, y->uuid, sizeof(x->uuid));

    return 0 != order ? order : (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

gp_status_t gp_topo_same_uuid(const gp_topo_t *topo, uint32_t *gpu)
{
    owner_t *owners;
    uint32_t n = 0;

    *gpu = GP_TOPO_NONE;
    if (0 == topo->n_gpus) {
        return GP_OK;
    }
    owners = malloc(topo->n_gpus * sizeof(*owners));
    if (NULL == owners) {
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < topo->n_gpus; i++) {
        if (gp_topo_uuid_known(&topo->gpus[i])) {
            memcpy(owners[n].uuid, topo->gpus[i].uuid, sizeof(owners[n].uuid));
            owners[n++].gpu = i;
        }
    }
    qsort(owners, n, sizeof(*owners), by_uuid);
    for (uint32_t i = 1; i < n; i++) {
        if (0 == memcmp(owners[i - 1].uuid, owners[i].uuid, sizeof(owners[i].uuid))) {
            *gpu = least(*gpu, owners[i].gpu);
        }
    }
    free(owners);
    return GP_OK;
}

uint32_t gp_topo_path_class(uint32_t type)
{
    switch (type) {
    case GP_TOPO_SAME_GPU:
        return GP_PATH_SELF_GPU;
    case GP_TOPO_NVLINK:
    case GP_TOPO_NVSWITCH:
        return GP_PATH_NVLINK;
    case GP_TOPO_PIX:
    case GP_TOPO_PXB:
    case GP_TOPO_PHB:
    case GP_TOPO_SYS:
        return GP_PATH_PCIE;
    case GP_TOPO_HOST:
        return GP_PATH_HOST;
    default:
        return GP_PATH_NET;
    }
}

/* The PCIe path between two devices of one node. */
static uint32_t pcie_type(const gp_topo_place_t *a, const gp_topo_place_t *b)
{
    uint32_t shared = 0;

    while (shared < a->n_switches && shared < b->n_switches
           && a->switches[shared] == b->switches[shared]) {
        shared++;
    }
    if (0 != shared) {
        return shared == a->n_switches && shared == b->n_switches ? GP_TOPO_PIX : GP_TOPO_PXB;
    }
    return a->numa == b->numa ? GP_TOPO_PHB : GP_TOPO_SYS;
}

uint32_t gp_topo_nic_type(const gp_topo_t *topo, uint32_t gpu, uint32_t nic)
{
    return pcie_type(&topo->gpus[gpu].place, &topo->nics[nic].place);
}

gp_topo_path_t gp_topo_gpu_path(const gp_topo_t *topo, uint32_t gpu_a, uint32_t gpu_b)
{
    const gp_topo_gpu_t *a = &topo->gpus[gpu_a], *b = &topo->gpus[gpu_b];
    gp_topo_path_t path = {GP_TOPO_NET, 0, 0, 0};
    uint32_t links = 0;

    if (gpu_a == gpu_b) {
        path.type = GP_TOPO_SAME_GPU;
    } else if (a->node == b->node && a->place.pci == b->place.pci) {
        path.type = GP_TOPO_PHB; /* slices of one GPU: no peer access between them */
    } else if (a->node == b->node) {
        links = links_of(topo, &topo->nodes[a->node], gpu_a, gpu_b);
        path.type = GP_TOPO_NVLINK;
        if (0 == links) {
            links = least(a->nvswitch_links, b->nvswitch_links);
            path.type = 0 != links ? GP_TOPO_NVSWITCH : pcie_type(&a->place, &b->place);
        }
    }
    if (GP_TOPO_NVLINK == path.type || GP_TOPO_NVSWITCH == path.type) {
        path.nvlinks = links;
        path.bytes_per_us = (uint64_t) links
                            * least(nvlink_rate(a->capability), nvlink_rate(b->capability));
    } else if (GP_TOPO_SAME_GPU != path.type && GP_TOPO_NET != path.type) {
        path.bytes_per_us = least(pcie_rate(a), pcie_rate(b));
        if (GP_TOPO_SYS == path.type) {
            path.bytes_per_us = least((uint32_t) path.bytes_per_us, SOCKET_BYTES_PER_US);
        }
    }
    path.latency = gp_topo_path_class(path.type);
    return path;
}

gp_topo_path_t gp_topo_pair_path(const gp_topo_t *topo, uint32_t rank_a, uint32_t rank_b)
{
    const gp_topo_rank_t *a = &topo->ranks[rank_a], *b = &topo->ranks[rank_b];
    gp_topo_path_t path = {GP_TOPO_HOST, 0, 0, GP_PATH_HOST};

    if (a->node != b->node) {
        uint32_t nic_a = gp_topo_nic_of(topo, rank_a, 0), nic_b = gp_topo_nic_of(topo, rank_b, 0);

        path.type = GP_TOPO_NET;
        path.latency = GP_PATH_NET;
        if (GP_TOPO_NONE != nic_a && GP_TOPO_NONE != nic_b) {
            path.bytes_per_us = least(topo->nics[nic_a].bytes_per_us,
                                      topo->nics[nic_b].bytes_per_us);
        }
    } else if (GP_TOPO_NONE != a->gpu && GP_TOPO_NONE != b->gpu) {
        return gp_topo_gpu_path(topo, a->gpu, b->gpu);
    }
    return path;
}
