/*
 * gp_topo_text.c - the topology's text format: whole files, read and written.
 *
 * Owns what can be said of a topology only when all its lines are read. The format is in
 * docs/planner.md, "Topology".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/proto/gp_log.h"

#define MOST_FILE_BYTES (64u << 20)

static int by_number(const void *a, const void *b)
{
    const gp_topo_rank_line_t *x = a, *y = b;

    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : (x->line > y->line) - (x->line < y->line);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Names of nodes are unique. Returns one that is not, or NULL; *status: out of memory. */
static const char *same_name(const gp_topo_t *topo, gp_status_t *status)
{
    const char **names = malloc((topo->n_nodes + 1ull) * sizeof(*names)), *same = NULL;

    if (NULL == names) {
        *status = GP_ERR_NO_MEMORY;
        return NULL;
    }
    for (uint32_t i = 0; i < topo->n_nodes; i++) {
        names[i] = topo->nodes[i].name;
    }
    qsort(names, topo->n_nodes, sizeof(*names), by_name);
    for (uint32_t i = 1; i < topo->n_nodes; i++) {
        same = 0 == strcmp(names[i - 1], names[i]) ? names[i] : same;
    }
    free(names);
    return same;
}

/* What can be said only when all lines are read. */
static gp_status_t finish(gp_topo_reader_t *r)
{
    const char *reason = NULL, *name;
    uint32_t gpu;
    gp_status_t status = gp_topo_same_uuid(r->topo, &gpu);

    name = GP_OK == status ? same_name(r->topo, &status) : NULL;
    if (GP_OK != status) {
        return gp_topo_fail_memory(r);
    }
    if (0 == r->topo->n_nodes) {
        return gp_topo_fail(r, "no node");
    }
    if (NULL != name) {
        return gp_topo_fail(r, "node: two are named %s", name);
    }
    if (GP_TOPO_NONE != gpu) {
        r->line = r->gpu_lines[gpu];
        return gp_topo_fail(r, "gpu: uuid: a GPU of another node has it");
    }
    if (0 != r->n_ranks) {
        qsort(r->ranks, r->n_ranks, sizeof(*r->ranks), by_number);
    }
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        if (r->ranks[i].number != i) {
            r->line = r->ranks[i].line;
            return r->ranks[i].number < i
                       ? gp_topo_fail(r, "rank %u was given before", i - 1)
                       : gp_topo_fail(r, "rank %u, but there is no rank %u", r->ranks[i].number, i);
        }
        status = gp_topo_add_rank(r->topo, &r->ranks[i].rank, &reason);
        if (GP_OK != status) {
            return GP_ERR_NO_MEMORY == status ? gp_topo_fail_memory(r)
                                              : gp_topo_fail(r, "rank: %s", reason);
        }
    }
    return GP_OK;
}

gp_status_t gp_topo_parse(const char *name, const char *text, size_t text_bytes, gp_topo_t **topo_p)
{
    gp_topo_reader_t *r = calloc(1, sizeof(*r));
    gp_status_t status = GP_OK;

    *topo_p = NULL;
    if (NULL == r) {
        gp_log(GP_LOG_ERROR, "%s: out of memory", name);
        return GP_ERR_NO_MEMORY;
    }
    r->name = name;
    r->topo = gp_topo_new();
    if (NULL == r->topo) {
        status = gp_topo_fail_memory(r);
    }
    for (size_t at = 0; at < text_bytes && GP_OK == status;) {
        const char *end = memchr(text + at, '\n', text_bytes - at);
        size_t bytes = NULL == end ? text_bytes - at : (size_t) (end - text) - at;

        r->line++;
        status = gp_topo_read_line(r, text + at, bytes);
        at += bytes + 1;
    }
    status = GP_OK != status ? status : finish(r);
    if (GP_OK == status) {
        *topo_p = r->topo;
    } else {
        gp_topo_free(r->topo);
    }
    free(r->ranks);
    free(r->gpu_lines);
    free(r);
    return status;
}

gp_status_t gp_topo_read(const char *file, gp_topo_t **topo_p)
{
    gp_status_t status = GP_ERR_SYSTEM;
    FILE *in = fopen(file, "rb");
    char *text = NULL, *more;
    size_t bytes = 0, room = 0, got;

    *topo_p = NULL;
    if (NULL == in) {
        gp_log(GP_LOG_ERROR, "%s: %s", file, strerror(errno));
        return GP_ERR_SYSTEM;
    }
    do {
        if (bytes == room) {
            room = 0 == room ? 65536 : 2 * room;
            more = room > MOST_FILE_BYTES ? NULL : realloc(text, room);
            if (NULL == more) {
                gp_log(GP_LOG_ERROR, "%s: larger than %u bytes, or no memory", file,
                       MOST_FILE_BYTES);
                goto err_close;
            }
            text = more;
        }
        got = fread(text + bytes, 1, room - bytes, in);
        bytes += got;
    } while (0 != got);
    if (ferror(in)) {
        gp_log(GP_LOG_ERROR, "%s: cannot be read: %s", file, strerror(errno));
        goto err_close;
    }
    status = gp_topo_parse(file, text, bytes, topo_p);
err_close:
    free(text);
    fclose(in);
    return status;
}

gp_status_t gp_topo_written(FILE *out)
{
    if (0 != fflush(out) || ferror(out)) {
        gp_log(GP_LOG_ERROR, "topology: cannot be written: %s", strerror(errno));
        return GP_ERR_SYSTEM;
    }
    return GP_OK;
}

static void write_place(const gp_topo_place_t *place, FILE *out)
{
    char text[GP_TOPO_ID_BYTES];

    fprintf(out, " pci=%s", gp_topo_pci_text(place->pci, text, sizeof(text)));
    if (GP_TOPO_NONE != place->numa) {
        fprintf(out, " numa=%u", place->numa);
    }
    for (uint32_t i = 0; i < place->n_switches; i++) {
        fprintf(out, "%s%s", 0 == i ? " switches=" : ",",
                gp_topo_pci_text(place->switches[i], text, sizeof(text)));
    }
}

/* key=number, nothing for 0: it means "not known" and is what the reader starts from. */
static void write_number(const char *key, uint32_t number, FILE *out)
{
    if (0 != number) {
        fprintf(out, " %s=%u", key, number);
    }
}

/* How other lines name a GPU: by UUID where it has one, since slices share a PCI address. */
static char *gpu_text(const gp_topo_gpu_t *gpu, char *text, size_t text_bytes)
{
    return gp_topo_uuid_known(gpu) ? gp_topo_uuid_text(gpu->uuid, text, text_bytes)
                                   : gp_topo_pci_text(gpu->place.pci, text, text_bytes);
}

static void write_gpu(const gp_topo_gpu_t *gpu, FILE *out)
{
    char text[GP_TOPO_ID_BYTES];

    fprintf(out, "gpu");
    write_place(&gpu->place, out);
    if (gp_topo_uuid_known(gpu)) {
        fprintf(out, " uuid=%s", gp_topo_uuid_text(gpu->uuid, text, sizeof(text)));
    }
    if (0 != gpu->capability) {
        fprintf(out, " capability=%u.%u", gpu->capability / 10, gpu->capability % 10);
    }
    write_number("sm", gpu->sm_count, out);
    write_number("nvswitch", gpu->nvswitch_links, out);
    write_number("pcie", gpu->pcie_bytes_per_us, out);
    fprintf(out, "\n");
}

gp_status_t gp_topo_ranks_by_node(const gp_topo_t *topo, uint32_t **head_p, uint32_t **next_p)
{
    uint32_t *head = malloc((topo->n_nodes + 1ull) * sizeof(*head));
    uint32_t *next = malloc((topo->n_ranks + 1ull) * sizeof(*next));

    if (NULL == head || NULL == next) {
        free(head);
        free(next);
        gp_log(GP_LOG_ERROR, "topology: out of memory");
        return GP_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < topo->n_nodes; i++) {
        head[i] = GP_TOPO_NONE;
    }
    for (uint32_t r = topo->n_ranks; r-- > 0;) {
        next[r] = head[topo->ranks[r].node];
        head[topo->ranks[r].node] = r;
    }
    *head_p = head;
    *next_p = next;
    return GP_OK;
}

gp_status_t gp_topo_write(const gp_topo_t *topo, FILE *out)
{
    uint32_t *head, *next;
    gp_status_t status = gp_topo_ranks_by_node(topo, &head, &next);
    char a[GP_TOPO_ID_BYTES], b[GP_TOPO_ID_BYTES];

    if (GP_OK != status) {
        return status;
    }
    fprintf(out, "gpuproto-topology 1\n");
    for (uint32_t n = 0; n < topo->n_nodes; n++) {
        const gp_topo_node_t *node = &topo->nodes[n];

        fprintf(out, "node %s", node->name);
        write_number("numa", node->n_numa, out);
        write_number("cores", node->n_cores, out);
        fprintf(out, "\n");
        for (uint32_t i = 0; i < node->n_gpus; i++) {
            write_gpu(&topo->gpus[node->first_gpu + i], out);
        }
        for (uint32_t i = 0; i < node->n_nics; i++) {
            const gp_topo_nic_t *nic = &topo->nics[node->first_nic + i];

            fprintf(out, "nic");
            write_place(&nic->place, out);
            fprintf(out, "%s%s", '\0' != nic->name[0] ? " name=" : "", nic->name);
            write_number("speed", nic->bytes_per_us, out);
            fprintf(out, "\n");
        }
        for (uint32_t i = 0; i < node->n_nvlinks; i++) {
            const gp_topo_nvlink_t *link = &topo->nvlinks[node->first_nvlink + i];

            fprintf(out, "nvlink %s %s links=%u\n",
                    gpu_text(&topo->gpus[link->gpu_a], a, sizeof(a)),
                    gpu_text(&topo->gpus[link->gpu_b], b, sizeof(b)), link->links);
        }
        for (uint32_t r = head[n]; GP_TOPO_NONE != r; r = next[r]) {
            const gp_topo_rank_t *rank = &topo->ranks[r];

            fprintf(out, "rank %u gpu=%s", r,
                    GP_TOPO_NONE == rank->gpu ? "none"
                                              : gpu_text(&topo->gpus[rank->gpu], a, sizeof(a)));
            write_number("cores", rank->n_cores, out);
            fprintf(out, "\n");
        }
    }
    free(head);
    free(next);
    return gp_topo_written(out);
}
