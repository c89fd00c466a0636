/*
 * gpuproto_info_topo.c - "gpuproto_info topology": the machine as the planner would see it.
 *
 * Asks hwloc and the system, never the CUDA driver, so that it also runs where there is none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_info.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/gp_topo.h"

/* The matrix of the JSON output is quadratic; so many ranks are 64 Ki pairs. */
#define MOST_JSON_RANKS 256u

static const char usage[] =
    "usage: gpuproto_info topology [--topology FILE | --hwloc-xml FILE] [--json]\n"
    "\n"
    "  Nodes, NUMA nodes, GPUs, NICs, the path of each pair of ranks, and whether LL128 is\n"
    "  allowed. Of this machine, or of\n"
    "\n"
    "      --topology FILE    a topology file (docs/planner.md, \"Topology\")\n"
    "      --hwloc-xml FILE   a machine recorded with lstopo FILE.xml\n"
    "      --json             for programs\n"
    "  -h, --help\n"
    "\n"
    "Where no ranks are given there is one for each GPU. Exit status: 0, 1 when a file cannot\n"
    "be used or nothing can be found out, 2 for a usage error.\n";

/* What the planner makes of it. */
typedef struct rules {
    gp_comm_desc_t desc;
    gp_topo_path_t worst;
    uint32_t rank_a;
    uint32_t rank_b;
    const char *ll128; /* NULL: allowed; else why not */
} rules_t;

static int add_ranks(gp_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->n_gpus; i++) {
        gp_topo_rank_t rank = {topo->gpus[i].node, i, 0};

        if (GP_OK != gp_topo_add_rank(topo, &rank, NULL)) {
            return 0;
        }
    }
    return 1;
}

/*
 * Only the paths and capabilities decide on LL128; multiprocessors and memory just have to suffice.
 */
static const char *ll128_refused(const gp_topo_t *topo, const gp_comm_desc_t *desc)
{
    gp_comm_desc_t ample = *desc;
    gp_params_t params;
    gp_conn_geom_t geom;
    const char *reason = NULL;

    for (uint32_t i = 0; i < topo->n_ranks; i++) {
        if (GP_TOPO_NONE == topo->ranks[i].gpu) {
            return "not asked: a rank has no GPU";
        }
    }
    if (0 == desc->min_capability) {
        return "not known: the compute capability of a GPU is known only to the driver";
    }
    ample.sm_count = 2 * ample.ranks_per_gpu + 2;
    gp_params_init(&params);
    params.max_fifo_bytes = UINT64_MAX;
    return GP_OK == gp_plan_conn_geom(&ample, &params, GP_ALGO_RING, GP_PROTO_LL128, &geom, &reason)
               ? NULL
               : reason;
}

static int find_rules(const gp_topo_t *topo, rules_t *rules)
{
    gp_status_t status;
    uint32_t executor = GP_EXEC_HOST;

    memset(rules, 0, sizeof(*rules));
    for (uint32_t i = 0; i < topo->n_ranks; i++) {
        executor = GP_TOPO_NONE != topo->ranks[i].gpu ? GP_EXEC_CUDA : executor;
    }
    status = gp_topo_comm_desc(topo, executor, &rules->desc);
    if (GP_OK != status && GP_ERR_UNSUPPORTED != status) {
        return 0;
    }
    rules->worst = gp_topo_worst_path(topo, &rules->rank_a, &rules->rank_b);
    rules->ll128 = GP_EXEC_HOST == executor ? NULL : ll128_refused(topo, &rules->desc);
    return 1;
}

static int show_text(const gp_topo_t *topo, const rules_t *rules, int assumed)
{
    const gp_comm_desc_t *d = &rules->desc;

    if (GP_OK != gp_topo_describe(topo, stdout)) {
        return 1;
    }
    if (0 == topo->n_ranks) {
        printf("no NVIDIA GPU found and no ranks given: nothing to plan\n");
        return 0;
    }
    printf("NIC of each rank on channel 0:");
    for (uint32_t r = 0; r < topo->n_ranks && r < 32; r++) {
        uint32_t nic = gp_topo_nic_of(topo, r, 0);

        printf(" %s", GP_TOPO_NONE == nic               ? "-"
                      : '\0' != topo->nics[nic].name[0] ? topo->nics[nic].name
                                                        : "?");
    }
    printf("%s\n", topo->n_ranks > 32 ? " ..." : "");
    printf("ranks %u%s, nodes %u, executor %s", d->n_ranks, assumed ? " (one for each GPU)" : "",
           d->n_nodes, gp_executor_name(d->executor));
    if (GP_EXEC_CUDA == d->executor) {
        printf(", at most %u on a GPU", d->ranks_per_gpu);
    }
    printf("\nfarthest: ranks %u and %u, %s (class %s)", rules->rank_a, rules->rank_b,
           gp_topo_type_name(rules->worst.type), gp_path_name(d->worst_path));
    if (0 != d->link_bytes_per_us) {
        printf("; slowest way out %u bytes/us", d->link_bytes_per_us);
    }
    printf("\nLL128: %s\n", NULL == rules->ll128 ? "allowed" : rules->ll128);
    return 0;
}

static void json_place(const gp_topo_place_t *place)
{
    char text[24];

    printf("\"pci\":\"%s\",\"numa\":", gp_topo_pci_text(place->pci, text, sizeof(text)));
    printf(GP_TOPO_NONE == place->numa ? "null" : "%u", place->numa);
    printf(",\"switches\":[");
    for (uint32_t i = 0; i < place->n_switches; i++) {
        printf("%s\"%s\"", 0 == i ? "" : ",",
               gp_topo_pci_text(place->switches[i], text, sizeof(text)));
    }
    printf("]");
}

/* Names are of letters that need no escape. */
static void json_node(const gp_topo_t *topo, uint32_t n)
{
    const gp_topo_node_t *node = &topo->nodes[n];
    char text[48];

    printf("%s{\"name\":\"%s\",\"numa\":%u,\"cores\":%u,\"gpus\":[", 0 == n ? "" : ",", node->name,
           node->n_numa, node->n_cores);
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        const gp_topo_gpu_t *gpu = &topo->gpus[node->first_gpu + i];

        printf("%s{", 0 == i ? "" : ",");
        json_place(&gpu->place);
        if (gp_topo_uuid_known(gpu)) {
            printf(",\"uuid\":\"%s\"", gp_topo_uuid_text(gpu->uuid, text, sizeof(text)));
        }
        printf(",\"capability\":%u,\"multiprocessors\":%u,\"nvswitch_links\":%u}", gpu->capability,
               gpu->sm_count, gpu->nvswitch_links);
    }
    printf("],\"nics\":[");
    for (uint32_t i = 0; i < node->n_nics; i++) {
        const gp_topo_nic_t *nic = &topo->nics[node->first_nic + i];

        printf("%s{", 0 == i ? "" : ",");
        json_place(&nic->place);
        printf(",\"name\":\"%s\",\"bytes_per_us\":%u}", nic->name, nic->bytes_per_us);
    }
    printf("]}");
}

static int show_json(const gp_topo_t *topo, const rules_t *rules)
{
    const gp_comm_desc_t *d = &rules->desc;
    uint32_t n = topo->n_ranks <= MOST_JSON_RANKS ? topo->n_ranks : 0;

    printf("{\"nodes\":[");
    for (uint32_t i = 0; i < topo->n_nodes; i++) {
        json_node(topo, i);
    }
    printf("],\"ranks\":[");
    for (uint32_t r = 0; r < topo->n_ranks; r++) {
        uint32_t nic = gp_topo_nic_of(topo, r, 0);
        char text[24];

        printf("%s{\"node\":%u,\"gpu\":", 0 == r ? "" : ",", topo->ranks[r].node);
        if (GP_TOPO_NONE == topo->ranks[r].gpu) {
            printf("null");
        } else {
            printf("\"%s\"", gp_topo_pci_text(topo->gpus[topo->ranks[r].gpu].place.pci, text,
                                              sizeof(text)));
        }
        printf(",\"nic\":");
        if (GP_TOPO_NONE == nic) {
            printf("null}");
        } else {
            printf("\"%s\"}", gp_topo_pci_text(topo->nics[nic].place.pci, text, sizeof(text)));
        }
    }
    printf("],\"paths\":[");
    for (uint32_t a = 0; a < n; a++) {
        printf("%s[", 0 == a ? "" : ",");
        for (uint32_t b = 0; b < n; b++) {
            gp_topo_path_t path = gp_topo_pair_path(topo, a, b);

            printf("%s{\"type\":\"%s\",\"links\":%u,\"bytes_per_us\":%" PRIu64 "}",
                   0 == b ? "" : ",", gp_topo_type_name(path.type), path.nvlinks,
                   path.bytes_per_us);
        }
        printf("]");
    }
    printf("]");
    if (0 != topo->n_ranks) {
        printf(",\"communicator\":{\"ranks\":%u,\"nodes\":%u,\"executor\":\"%s\","
               "\"worst_path\":\"%s\",\"ranks_per_gpu\":%u,\"multiprocessors\":%u,"
               "\"min_capability\":%u,\"max_capability\":%u,\"link_bytes_per_us\":%u},",
               d->n_ranks, d->n_nodes, gp_executor_name(d->executor), gp_path_name(d->worst_path),
               d->ranks_per_gpu, d->sm_count, d->min_capability, d->max_capability,
               d->link_bytes_per_us);
        printf("\"ll128\":{\"allowed\":%s,\"reason\":\"%s\"}",
               NULL == rules->ll128 ? "true" : "false", NULL == rules->ll128 ? "" : rules->ll128);
    }
    printf("}\n");
    return 0;
}

/* NULL: logged already. */
static gp_topo_t *load(const char *file, const char *xml)
{
    gp_topo_t *topo = NULL;

    if (NULL != file) {
        return GP_OK == gp_topo_read(file, &topo) ? topo : NULL;
    }
    topo = gp_topo_new();
    if (NULL != topo && GP_OK != gp_topo_hwloc_add(topo, xml)) {
        gp_topo_free(topo);
        return NULL;
    }
    return topo;
}

int info_topology(int argc, char **argv)
{
    static const struct option options[] = {{"topology", required_argument, NULL, 't'},
                                            {"hwloc-xml", required_argument, NULL, 'x'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *file = NULL, *xml = NULL;
    int json = 0, assumed = 0, result = 1, c;
    gp_topo_t *topo;
    rules_t rules;

    while (-1 != (c = getopt_long(argc, argv, "h", options, NULL))) {
        switch (c) {
        case 't': file = optarg; break;
        case 'x': xml = optarg; break;
        case 'j': json = 1; break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default: return 2;
        }
    }
    if (optind < argc || (NULL != file && NULL != xml)) {
        fprintf(stderr, "gpuproto_info: topology: %s; --help shows the options\n",
                optind < argc ? "extra argument" : "either --topology or --hwloc-xml");
        return 2;
    }
    topo = load(file, xml);
    if (NULL == topo) {
        return 1;
    }
    memset(&rules, 0, sizeof(rules));
    if (0 == topo->n_ranks) {
        assumed = 1;
        if (!add_ranks(topo)) {
            goto err_free;
        }
    }
    if (0 != topo->n_ranks && !find_rules(topo, &rules)) {
        goto err_free;
    }
    result = json ? show_json(topo, &rules) : show_text(topo, &rules, assumed);
err_free:
    gp_topo_free(topo);
    return result;
}
