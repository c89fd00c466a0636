/*
 * gp_topo_draw.c - a topology drawn for people.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DRAWN_RANKS 32u

/* A device in the drawing of a node: GPUs first, then NICs. */
typedef struct drawing {
    const gp_topo_t *topo;
    const gp_topo_node_t *node;
    const uint32_t *next;
    uint32_t first_rank; /* of this node */
    FILE *out;
} drawing_t;

static const gp_topo_place_t *place_of(const drawing_t *d, uint32_t device)
{
    return device < d->node->n_gpus
               ? &d->topo->gpus[d->node->first_gpu + device].place
               : &d->topo->nics[d->node->first_nic + device - d->node->n_gpus].place;
}

/* The ranks of this node on a GPU, or of those without. */
static void draw_ranks(const drawing_t *d, uint32_t gpu)
{
    uint32_t n = 0;

    for (uint32_t r = d->first_rank; GP_TOPO_NONE != r; r = d->next[r]) {
        if (d->topo->ranks[r].gpu == gpu) {
            fprintf(d->out, "%s %u", 0 == n++ ? ", rank" : "", r);
        }
    }
}

static void draw_device(const drawing_t *d, uint32_t device, uint32_t depth)
{
    char text[GP_TOPO_ID_BYTES];

    fprintf(d->out, "%*s", (int) (4 + 2 * depth), "");
    if (device < d->node->n_gpus) {
        const gp_topo_gpu_t *gpu = &d->topo->gpus[d->node->first_gpu + device];

        fprintf(d->out, "gpu %s", gp_topo_pci_text(gpu->place.pci, text, sizeof(text)));
        if (gp_topo_uuid_known(gpu)) {
            fprintf(d->out, " %s", gp_topo_uuid_text(gpu->uuid, text, sizeof(text)));
        }
        if (0 != gpu->capability) {
            fprintf(d->out, ", capability %u.%u", gpu->capability / 10, gpu->capability % 10);
        }
        if (0 != gpu->sm_count) {
            fprintf(d->out, ", %u multiprocessors", gpu->sm_count);
        }
        if (0 != gpu->nvswitch_links) {
            fprintf(d->out, ", %u links to NVSwitch", gpu->nvswitch_links);
        }
        draw_ranks(d, d->node->first_gpu + device);
    } else {
        const gp_topo_nic_t *nic
            = &d->topo->nics[d->node->first_nic + device - d->node->n_gpus];

        fprintf(d->out, "nic %s %s", gp_topo_pci_text(nic->place.pci, text, sizeof(text)),
                nic->name);
        if (0 != nic->bytes_per_us) {
            fprintf(d->out, ", %u bytes/us", nic->bytes_per_us);
        }
    }
    fprintf(d->out, "\n");
}

/* Same NUMA node, and the same first `depth` switches? */
static int is_below(const gp_topo_place_t *a, const gp_topo_place_t *b, uint32_t depth)
{
    return a->numa == b->numa && a->n_switches >= depth && b->n_switches >= depth
           && 0 == memcmp(a->switches, b->switches, depth * sizeof(a->switches[0]));
}

/*
 * Devices that sit like `like` as far as `depth` switches: a switch is drawn with its first device.
 */
static void draw_level(const drawing_t *d, const gp_topo_place_t *like, uint32_t depth)
{
    uint32_t n = d->node->n_gpus + d->node->n_nics;
    char text[GP_TOPO_ID_BYTES];

    for (uint32_t i = 0; i < n; i++) {
        const gp_topo_place_t *place = place_of(d, i);
        int drawn = 0;

        if (!is_below(place, like, depth)) {
            continue;
        }
        if (place->n_switches == depth) {
            draw_device(d, i, depth);
            continue;
        }
        for (uint32_t k = 0; k < i && !drawn; k++) {
            drawn = is_below(place_of(d, k), place, depth + 1);
        }
        if (!drawn) {
            fprintf(d->out, "%*sswitch %s\n", (int) (4 + 2 * depth), "",
                    gp_topo_pci_text(place->switches[depth], text, sizeof(text)));
            draw_level(d, place, depth + 1);
        }
    }
}

static void draw_node(const drawing_t *d)
{
    uint32_t n = d->node->n_gpus + d->node->n_nics;

    fprintf(d->out, "node %s", d->node->name);
    if (0 != d->node->n_cores) {
        fprintf(d->out, ", %u cores", d->node->n_cores);
    }
    draw_ranks(d, GP_TOPO_NONE);
    fprintf(d->out, "\n");
    for (uint32_t numa = 0; numa <= d->node->n_numa; numa++) {
        gp_topo_place_t like;
        int found = 0;

        memset(&like, 0, sizeof(like));
        like.numa = numa < d->node->n_numa ? numa : GP_TOPO_NONE;
        for (uint32_t i = 0; i < n; i++) {
            found |= place_of(d, i)->numa == like.numa;
        }
        if (numa < d->node->n_numa) {
            fprintf(d->out, "  NUMA %u\n", numa);
        } else if (found) {
            fprintf(d->out, "  NUMA node not known\n");
        }
        draw_level(d, &like, 0);
    }
}

/* "NV2", "NVS18", "PIX", ... */
static void draw_path(const gp_topo_path_t *path, FILE *out)
{
    char text[16];

    if (GP_TOPO_NVLINK == path->type) {
        snprintf(text, sizeof(text), "NV%u", path->nvlinks);
    } else if (GP_TOPO_NVSWITCH == path->type) {
        snprintf(text, sizeof(text), "NVS%u", path->nvlinks);
    } else {
        const char *name = gp_topo_type_name(path->type);
        size_t i;

        for (i = 0; '\0' != name[i] && i + 1 < sizeof(text); i++) {
            text[i] = (char) toupper((unsigned char) name[i]);
        }
        text[i] = '\0';
    }
    fprintf(out, " %6s", text);
}

static void draw_matrix(const gp_topo_t *topo, FILE *out)
{
    uint32_t n = topo->n_ranks < MOST_DRAWN_RANKS ? topo->n_ranks : MOST_DRAWN_RANKS;

    if (0 == n) {
        return;
    }
    fprintf(out, "paths between ranks%s\n     ", n < topo->n_ranks ? ", the first of them" : "");
    for (uint32_t b = 0; b < n; b++) {
        fprintf(out, " %6u", b);
    }
    fprintf(out, "\n");
    for (uint32_t a = 0; a < n; a++) {
        fprintf(out, "%5u", a);
        for (uint32_t b = 0; b < n; b++) {
            gp_topo_path_t path = gp_topo_pair_path(topo, a, b);

            if (a == b) {
                fprintf(out, " %6s", "-");
            } else {
                draw_path(&path, out);
            }
        }
        fprintf(out, "\n");
    }
}

gp_status_t gp_topo_describe(const gp_topo_t *topo, FILE *out)
{
    uint32_t *head, *next;
    gp_status_t status = gp_topo_ranks_by_node(topo, &head, &next);

    if (GP_OK != status) {
        return status;
    }
    for (uint32_t i = 0; i < topo->n_nodes; i++) {
        drawing_t d = {topo, &topo->nodes[i], next, head[i], out};

        draw_node(&d);
    }
    draw_matrix(topo, out);
    free(head);
    free(next);
    return gp_topo_written(out);
}
