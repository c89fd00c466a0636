/*
 * gp_topo.h - the topology model: nodes, GPUs, NICs, links, and where the ranks are.
 *
 * Owns what is known of the machines a communicator runs on, and what follows from it alone: the
 * path between two ranks, the NIC of a rank, an order for a ring. A topology is filled from a text
 * file (gp_topo_text.c), from hwloc (gp_topo_hwloc.c) or by gp_topo_add_*(), then only read.
 * Nothing here asks a driver. Format, path types and the sources of the constants: docs/planner.md,
 * "Topology".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TOPO_H
#define GP_TOPO_H

#include <stdint.h>
#include <stdio.h>

#include "planner/gp_plan.h"

#define GP_TOPO_NONE UINT32_MAX /* no GPU, no NIC */
#define GP_TOPO_NAME_BYTES 64u  /* with the final zero; names hold [A-Za-z0-9._-] only */
#define GP_TOPO_UUID_BYTES 16u

#define GP_TOPO_MOST_NODES (1u << 17)
#define GP_TOPO_MOST_RANKS (1u << 20)
#define GP_TOPO_MOST_DEVICES 256u /* GPUs of a node, and NICs */
#define GP_TOPO_MOST_NUMA 1024u   /* NUMA nodes of a node */
#define GP_TOPO_MOST_CORES (1u << 20)
#define GP_TOPO_MOST_SWITCHES 4u  /* PCIe switches between a device and its root port */
#define GP_TOPO_MOST_LINKS 64u    /* NVLinks of a GPU */
#define GP_TOPO_MOST_SM 100000u
#define GP_TOPO_MOST_SPEED 1000000000u /* bytes per microsecond */

/* How two ranks reach each other, nearest first. */
typedef enum gp_topo_type {
    GP_TOPO_SAME_GPU,
    GP_TOPO_NVLINK,   /* links from the one GPU to the other */
    GP_TOPO_NVSWITCH, /* both GPUs are on the node's NVSwitches */
    GP_TOPO_PIX,      /* PCIe, one switch */
    GP_TOPO_PXB,      /* PCIe, several switches below one root port */
    GP_TOPO_PHB,      /* PCIe, through a host bridge, one NUMA node */
    GP_TOPO_SYS,      /* PCIe, from one NUMA node to another */
    GP_TOPO_HOST,     /* same node, a rank has no GPU: shared host memory */
    GP_TOPO_NET,      /* other node */
    GP_TOPO_TYPE_COUNT
} gp_topo_type_t;

/* Where a PCI device sits. A PCI id is domain << 16 | bus << 8 | device << 3 | function. */
typedef struct gp_topo_place {
    uint64_t pci;
    uint64_t switches[GP_TOPO_MOST_SWITCHES]; /* upstream ports, nearest the root first */
    uint32_t n_switches;
    uint32_t numa; /* GP_TOPO_NONE: not known */
} gp_topo_place_t;

typedef struct gp_topo_node {
    char name[GP_TOPO_NAME_BYTES]; /* unique */
    uint32_t n_numa;               /* 0: not known */
    uint32_t n_cores;              /* 0: not known */
    uint32_t first_gpu;            /* these six are set by gp_topo_add_*(): its GPUs, ... */
    uint32_t n_gpus;
    uint32_t first_nic;
    uint32_t n_nics;
    uint32_t first_nvlink;
    uint32_t n_nvlinks;
} gp_topo_node_t;

/* A GPU or a MIG slice of one. Zero means "not known" except in place and node. */
typedef struct gp_topo_gpu {
    gp_topo_place_t place;
    uint8_t uuid[GP_TOPO_UUID_BYTES]; /* identity: unique over all nodes where known */
    uint32_t node;                    /* set by gp_topo_add_gpu() */
    uint32_t capability;              /* 10 * major + minor */
    uint32_t sm_count;
    uint32_t nvswitch_links;          /* links to the node's NVSwitches; 0: none */
    uint32_t pcie_bytes_per_us;       /* one direction; 0: the usual of its generation */
} gp_topo_gpu_t;

typedef struct gp_topo_nic {
    gp_topo_place_t place;
    char name[GP_TOPO_NAME_BYTES]; /* may be empty */
    uint32_t node;                 /* set by gp_topo_add_nic() */
    uint32_t bytes_per_us;         /* one direction; 0: not known */
} gp_topo_nic_t;

typedef struct gp_topo_nvlink {
    uint32_t gpu_a; /* indices into gpus; each pair at most once */
    uint32_t gpu_b;
    uint32_t links;
} gp_topo_nvlink_t;

typedef struct gp_topo_rank {
    uint32_t node;
    uint32_t gpu;     /* index into gpus, of the same node; or GP_TOPO_NONE */
    uint32_t n_cores; /* processors it may run on, its own or shared; 0: not known */
} gp_topo_rank_t;

/* Arrays are owned by the topology; readers index them, only gp_topo_add_*() change them. */
typedef struct gp_topo {
    uint32_t n_nodes;
    uint32_t n_gpus;
    uint32_t n_nics;
    uint32_t n_nvlinks;
    uint32_t n_ranks;
    gp_topo_node_t *nodes;
    gp_topo_gpu_t *gpus;
    gp_topo_nic_t *nics;
    gp_topo_nvlink_t *nvlinks;
    gp_topo_rank_t *ranks;
} gp_topo_t;

typedef struct gp_topo_path {
    uint32_t type;         /* gp_topo_type_t */
    uint32_t nvlinks;      /* NVLink and NVSwitch: links between the two; else 0 */
    uint64_t bytes_per_us; /* one direction; 0: not known or not a link */
    uint32_t latency;      /* gp_path_t: which hop times of the cost model hold */
} gp_topo_path_t;

#ifdef __cplusplus
extern "C" {
#endif

/* An empty topology, or NULL when out of memory. The caller frees it. */
gp_topo_t *gp_topo_new(void);
void gp_topo_free(gp_topo_t *topo); /* NULL is allowed */

/*
 * Append; the argument is copied, the new thing's index is the old count. GPUs, NICs and links go
 * to the node added last. The first bad field is named in *reason (static text; NULL is allowed):
 * GP_ERR_INVALID for a value out of range, a duplicate within the node, an index that is not there;
 * GP_ERR_NO_MEMORY. UUIDs are compared within the node; gp_topo_same_uuid() compares over all
 * nodes.
 */
gp_status_t gp_topo_add_node(gp_topo_t *topo, const gp_topo_node_t *node, const char **reason);
gp_status_t gp_topo_add_gpu(gp_topo_t *topo, const gp_topo_gpu_t *gpu, const char **reason);
gp_status_t gp_topo_add_nic(gp_topo_t *topo, const gp_topo_nic_t *nic, const char **reason);
gp_status_t gp_topo_add_nvlink(gp_topo_t *topo, const gp_topo_nvlink_t *link, const char **reason);
gp_status_t gp_topo_add_rank(gp_topo_t *topo, const gp_topo_rank_t *rank, const char **reason);

/*
 * Two GPUs with the same known UUID: the later one in *gpu, or GP_TOPO_NONE. GP_ERR_NO_MEMORY.
 */
gp_status_t gp_topo_same_uuid(const gp_topo_t *topo, uint32_t *gpu);

int gp_topo_uuid_known(const gp_topo_gpu_t *gpu);

/* Lower-case names ("gpu", "nvlink", "pix", ...), "?" outside the enum. */
const char *gp_topo_type_name(uint32_t type);

/* The planner's class of a path type: gp_path_t. */
uint32_t gp_topo_path_class(uint32_t type);

/*
 * Path between two GPUs (indices; any nodes), between a GPU and a NIC of one node, between two
 * ranks.
 */
gp_topo_path_t gp_topo_gpu_path(const gp_topo_t *topo, uint32_t gpu_a, uint32_t gpu_b);
uint32_t gp_topo_nic_type(const gp_topo_t *topo, uint32_t gpu, uint32_t nic);
gp_topo_path_t gp_topo_pair_path(const gp_topo_t *topo, uint32_t rank_a, uint32_t rank_b);

/*
 * The farthest pair of ranks: the greatest type, then the fewest bytes_per_us, then the lowest
 * ranks. rank_a < rank_b, either pointer may be NULL. Fewer than two ranks: type same GPU (host,
 * when the rank has no GPU), both ranks 0. With several nodes only the first pair of ranks on
 * different nodes is looked at, which keeps this linear in the ranks.
 */
gp_topo_path_t gp_topo_worst_path(const gp_topo_t *topo, uint32_t *rank_a, uint32_t *rank_b);

/*
 * What the planner needs to know of all ranks as one communicator on `executor` (gp_executor_t).
 * link_bytes_per_us: out of the GPU with the slowest links, or of the node with the slowest NICs; 0
 * when not known. GP_ERR_INVALID: no ranks or no such executor. GP_ERR_UNSUPPORTED (CUDA): a rank
 * has no GPU, or a GPU's capability or multiprocessor count is not known; desc is then filled with
 * what is, 0 for the rest.
 */
gp_status_t gp_topo_comm_desc(const gp_topo_t *topo, uint32_t executor, gp_comm_desc_t *desc);

/*
 * The NIC that `rank` uses on `channel`: of those nearest its GPU (PCIe distance; all NICs of the
 * node alike for a rank without GPU) the fastest ones, taken in turn by channel and, so that ranks
 * with the same NICs near begin at different ones, by rank. Index into nics; GP_TOPO_NONE when the
 * node has none.
 */
uint32_t gp_topo_nic_of(const gp_topo_t *topo, uint32_t rank, uint32_t channel);

/*
 * An order of the ranks for a ring on `channel`: order[0 .. n_ranks-1], the caller's, is a
 * permutation. first, unless NULL: where each node with ranks begins in order, then n_ranks; room
 * for topo->n_nodes + 1. With both a gp_layout_t can be made. Pure.
 *  - The ranks of a node follow each other, so each node is entered once; nodes by lowest rank.
 *  - In a node the ranks of a GPU follow each other; then those without a GPU.
 *  - GPUs: a closed tour with the fewest far steps (SYS before PHB before PXB before PIX); among
 *    equals the one whose NVLinks carry the least from the channels before. Channels 2k and 2k+1
 *    share a tour, since odd channels run the other way round; tours repeat after GP_TOPO_TOURS.
 *    Exact up to GP_TOPO_EXACT_GPUS GPUs of a node, above that always on to the nearest.
 *  - With several nodes, channel c begins in the first node at the tour's GPU c, so that channels
 *    enter at different NICs, and each further node one GPU earlier, so that a crossing leaves and
 *    enters at the same place of like nodes (the same rail).
 * GP_ERR_NO_MEMORY.
 */
gp_status_t gp_topo_ring_order(const gp_topo_t *topo, uint32_t channel, uint32_t *order,
                               uint32_t *first);

#define GP_TOPO_TOURS 6u
#define GP_TOPO_EXACT_GPUS 10u

/* Text format. What is wrong is logged once, as "name:line: what". */

/*
 * Read a topology; the caller frees *topo_p. GP_ERR_INVALID: not a topology; GP_ERR_SYSTEM: the
 * file cannot be read; GP_ERR_NO_MEMORY.
 */
gp_status_t gp_topo_read(const char *file, gp_topo_t **topo_p);

/* The same from memory; `name` stands for the file in messages. */
gp_status_t gp_topo_parse(const char *name, const char *text, size_t text_bytes,
                          gp_topo_t **topo_p);

/* Write what gp_topo_read() reads back the same. GP_ERR_SYSTEM when the stream fails (logged). */
gp_status_t gp_topo_write(const gp_topo_t *topo, FILE *out);

/*
 * "0000:17:00.0"; text_bytes >= 20. "GPU-..." as the driver writes it; text_bytes >= 41. Return
 * text.
 */
char *gp_topo_pci_text(uint64_t pci, char *text, size_t text_bytes);
char *gp_topo_uuid_text(const uint8_t *uuid, char *text, size_t text_bytes);

/* The reverse; 0 when it is not one. A UUID may begin with "GPU-" or "MIG-". */
int gp_topo_pci_of(const char *text, uint64_t *pci);
int gp_topo_uuid_of(const char *text, uint8_t *uuid);

/*
 * Draw the machines and the path of each pair of the first ranks. GP_ERR_SYSTEM when the stream
 * fails.
 */
gp_status_t gp_topo_describe(const gp_topo_t *topo, FILE *out);

/*
 * Add one node as hwloc sees it: NUMA nodes, cores, NVIDIA GPUs and NICs with their PCIe switches.
 * Of this machine when xml is NULL, else of a machine recorded with `lstopo file.xml`. What only
 * the driver knows stays unknown unless hwloc recorded it. No ranks are added. What is wrong is
 * logged. GP_ERR_UNSUPPORTED: built without hwloc; GP_ERR_INVALID: not an XML file hwloc reads.
 */
gp_status_t gp_topo_hwloc_add(gp_topo_t *topo, const char *xml);

#ifdef __cplusplus
}
#endif

#endif /* GP_TOPO_H */
