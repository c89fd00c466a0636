/*
 * gp_topo_lines.c - the topology's text format, line by line.
 *
 * Owns the keywords and fields (docs/planner.md, "Topology"). Trusts nothing: whatever the bytes, a
 * line is taken or ends in one message that names it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo_int.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "device/proto/gp_log.h"

gp_status_t gp_topo_fail(const gp_topo_reader_t *r, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gp_log(GP_LOG_ERROR, "%s:%u: %s", r->name, r->line, text);
    return GP_ERR_INVALID;
}

gp_status_t gp_topo_fail_memory(const gp_topo_reader_t *r)
{
    gp_log(GP_LOG_ERROR, "%s:%u: out of memory", r->name, r->line);
    return GP_ERR_NO_MEMORY;
}

/* Value of key=value, NULL when it is not on the line. */
static const char *value_of(gp_topo_reader_t *r, const char *key)
{
    size_t bytes = strlen(key);

    for (uint32_t i = 1; i < r->n_words; i++) {
        if (0 == (r->used & 1u << i) && 0 == strncmp(r->words[i], key, bytes)
            && '=' == r->words[i][bytes]) {
            r->used |= 1u << i;
            return r->words[i] + bytes + 1;
        }
    }
    return NULL;
}

/* The next word that no field has taken and that is no key=value, NULL when there is none. */
static const char *plain_word(gp_topo_reader_t *r)
{
    for (uint32_t i = 1; i < r->n_words; i++) {
        if (0 == (r->used & 1u << i) && NULL == strchr(r->words[i], '=')) {
            r->used |= 1u << i;
            return r->words[i];
        }
    }
    return NULL;
}

static int number_of(const char *text, uint32_t most, uint32_t *number)
{
    uint64_t n = 0;

    if ('\0' == *text) {
        return 0;
    }
    for (; '\0' != *text; text++) {
        if (*text < '0' || *text > '9') {
            return 0;
        }
        n = 10 * n + (uint64_t) (*text - '0');
        if (n > most) {
            return 0;
        }
    }
    *number = (uint32_t) n;
    return 1;
}

/* An optional number; left alone when it is not there. */
static gp_status_t take_number(gp_topo_reader_t *r, const char *key, uint32_t most,
                               uint32_t *number)
{
    const char *text = value_of(r, key);

    if (NULL != text && !number_of(text, most, number)) {
        return gp_topo_fail(r, "%s=%s: not a number from 0 to %u", key, text, most);
    }
    return GP_OK;
}

/* pci= (required), numa= and switches=. */
static gp_status_t take_place(gp_topo_reader_t *r, gp_topo_place_t *place)
{
    const char *text = value_of(r, "pci");
    char one[24];

    memset(place, 0, sizeof(*place));
    place->numa = GP_TOPO_NONE;
    if (NULL == text) {
        return gp_topo_fail(r, "%s: pci= is missing", r->words[0]);
    }
    if (!gp_topo_pci_of(text, &place->pci)) {
        return gp_topo_fail(r, "pci=%s: not like 0000:17:00.0", text);
    }
    text = value_of(r, "switches");
    while (NULL != text) {
        const char *comma = strchr(text, ',');
        size_t bytes = NULL == comma ? strlen(text) : (size_t) (comma - text);

        if (place->n_switches == GP_TOPO_MOST_SWITCHES) {
            return gp_topo_fail(r, "switches: more than %u", GP_TOPO_MOST_SWITCHES);
        }
        snprintf(one, sizeof(one), "%.*s", bytes < sizeof(one) ? (int) bytes : 0, text);
        if (!gp_topo_pci_of(one, &place->switches[place->n_switches])) {
            return gp_topo_fail(r, "switches: not PCI addresses with commas between");
        }
        place->n_switches++;
        text = NULL == comma ? NULL : comma + 1;
    }
    return take_number(r, "numa", GP_TOPO_MOST_NUMA - 1, &place->numa);
}

static gp_status_t take_name(gp_topo_reader_t *r, char name[GP_TOPO_NAME_BYTES], const char *text)
{
    if (strlen(text) >= GP_TOPO_NAME_BYTES) {
        return gp_topo_fail(r, "a name of more than %u bytes", GP_TOPO_NAME_BYTES - 1);
    }
    memcpy(name, text, strlen(text) + 1);
    return GP_OK;
}

/* A GPU of the node that is being read, by PCI address or UUID. */
static gp_status_t take_gpu(gp_topo_reader_t *r, const char *text, uint32_t *gpu)
{
    const gp_topo_node_t *node;
    uint8_t uuid[GP_TOPO_UUID_BYTES];
    uint64_t pci = 0;
    int by_pci = gp_topo_pci_of(text, &pci);

    *gpu = GP_TOPO_NONE;
    if (!by_pci && !gp_topo_uuid_of(text, uuid)) {
        return gp_topo_fail(r, "%s: neither a PCI address nor a UUID", text);
    }
    if (0 == r->topo->n_nodes) {
        return gp_topo_fail(r, "there is no node yet");
    }
    node = &r->topo->nodes[r->topo->n_nodes - 1];
    for (uint32_t i = node->first_gpu; i < r->topo->n_gpus; i++) {
        const gp_topo_gpu_t *g = &r->topo->gpus[i];

        if (by_pci ? g->place.pci != pci : 0 != memcmp(g->uuid, uuid, sizeof(uuid))) {
            continue;
        }
        if (GP_TOPO_NONE != *gpu) {
            return gp_topo_fail(r, "%s: several GPUs are there; name one by its UUID", text);
        }
        *gpu = i;
    }
    if (GP_TOPO_NONE == *gpu) {
        return gp_topo_fail(r, "%s: node %s has no such GPU", text, node->name);
    }
    return GP_OK;
}

/* The result of gp_topo_add_*(); reason is read after the call, so it comes by its address. */
static gp_status_t added(const gp_topo_reader_t *r, gp_status_t status, const char *const *reason)
{
    return GP_ERR_NO_MEMORY == status ? gp_topo_fail_memory(r)
           : GP_OK != status          ? gp_topo_fail(r, "%s: %s", r->words[0], *reason)
                                      : GP_OK;
}

static gp_status_t read_node(gp_topo_reader_t *r)
{
    gp_topo_node_t node;
    const char *text = plain_word(r), *reason = NULL;
    gp_status_t status;

    memset(&node, 0, sizeof(node));
    if (NULL == text) {
        return gp_topo_fail(r, "node: its name is missing");
    }
    status = take_name(r, node.name, text);
    status = GP_OK != status ? status : take_number(r, "numa", GP_TOPO_MOST_NUMA, &node.n_numa);
    status = GP_OK != status ? status : take_number(r, "cores", GP_TOPO_MOST_CORES, &node.n_cores);
    return GP_OK != status ? status : added(r, gp_topo_add_node(r->topo, &node, &reason), &reason);
}

/* "8.0" as 80. */
static gp_status_t take_capability(gp_topo_reader_t *r, uint32_t *capability)
{
    const char *text = value_of(r, "capability");
    const char *dot = NULL == text ? NULL : strchr(text, '.');
    uint32_t major, minor;
    char head[4];

    if (NULL == text) {
        return GP_OK;
    }
    snprintf(head, sizeof(head), "%.*s", NULL == dot || dot - text > 2 ? 0 : (int) (dot - text),
             text);
    if (NULL == dot || !number_of(head, 99, &major) || !number_of(dot + 1, 9, &minor)) {
        return gp_topo_fail(r, "capability=%s: not like 8.0", text);
    }
    *capability = 10 * major + minor;
    return GP_OK;
}

static gp_status_t read_gpu(gp_topo_reader_t *r)
{
    gp_topo_gpu_t gpu;
    const char *uuid, *reason = NULL;
    gp_status_t status;
    uint32_t *lines;

    memset(&gpu, 0, sizeof(gpu));
    status = take_place(r, &gpu.place);
    if (GP_OK != status) {
        return status;
    }
    uuid = value_of(r, "uuid");
    if (NULL != uuid && !gp_topo_uuid_of(uuid, gpu.uuid)) {
        return gp_topo_fail(r, "uuid=%s: not like GPU-00112233-4455-6677-8899-aabbccddeeff", uuid);
    }
    status = take_capability(r, &gpu.capability);
    status = GP_OK != status ? status : take_number(r, "sm", GP_TOPO_MOST_SM, &gpu.sm_count);
    status = GP_OK != status
                 ? status
                 : take_number(r, "nvswitch", GP_TOPO_MOST_LINKS, &gpu.nvswitch_links);
    status = GP_OK != status
                 ? status
                 : take_number(r, "pcie", GP_TOPO_MOST_SPEED, &gpu.pcie_bytes_per_us);
    if (GP_OK != status) {
        return status;
    }
    status = added(r, gp_topo_add_gpu(r->topo, &gpu, &reason), &reason);
    if (GP_OK != status) {
        return status;
    }
    lines = realloc(r->gpu_lines, r->topo->n_gpus * sizeof(*lines));
    if (NULL == lines) {
        return gp_topo_fail_memory(r);
    }
    r->gpu_lines = lines;
    lines[r->topo->n_gpus - 1] = r->line;
    return GP_OK;
}

static gp_status_t read_nic(gp_topo_reader_t *r)
{
    gp_topo_nic_t nic;
    const char *name, *reason = NULL;
    gp_status_t status;

    memset(&nic, 0, sizeof(nic));
    status = take_place(r, &nic.place);
    if (GP_OK != status) {
        return status;
    }
    name = value_of(r, "name");
    status = NULL != name ? take_name(r, nic.name, name) : GP_OK;
    status = GP_OK != status ? status
                             : take_number(r, "speed", GP_TOPO_MOST_SPEED, &nic.bytes_per_us);
    return GP_OK != status ? status : added(r, gp_topo_add_nic(r->topo, &nic, &reason), &reason);
}

static gp_status_t read_nvlink(gp_topo_reader_t *r)
{
    gp_topo_nvlink_t link;
    const char *a = plain_word(r), *b = plain_word(r), *reason = NULL;
    gp_status_t status;

    memset(&link, 0, sizeof(link));
    if (NULL == a || NULL == b) {
        return gp_topo_fail(r, "nvlink: two GPUs are needed");
    }
    status = take_gpu(r, a, &link.gpu_a);
    status = GP_OK != status ? status : take_gpu(r, b, &link.gpu_b);
    status = GP_OK != status ? status : take_number(r, "links", GP_TOPO_MOST_LINKS, &link.links);
    if (GP_OK == status && 0 == link.links) {
        return gp_topo_fail(r, "nvlink: links= is missing or 0");
    }
    return GP_OK != status ? status
                           : added(r, gp_topo_add_nvlink(r->topo, &link, &reason), &reason);
}

static gp_status_t read_rank(gp_topo_reader_t *r)
{
    gp_topo_rank_line_t rank, *ranks;
    const char *number = plain_word(r), *gpu = value_of(r, "gpu");
    gp_status_t status;

    memset(&rank, 0, sizeof(rank));
    if (NULL == number || !number_of(number, GP_TOPO_MOST_RANKS - 1, &rank.number)) {
        return gp_topo_fail(r, "rank: its number, 0 to %u, is missing", GP_TOPO_MOST_RANKS - 1);
    }
    if (NULL == gpu) {
        return gp_topo_fail(r, "rank: gpu= is missing (gpu=none: it has none)");
    }
    if (0 == r->topo->n_nodes) {
        return gp_topo_fail(r, "rank: there is no node yet");
    }
    rank.line = r->line;
    rank.rank.node = r->topo->n_nodes - 1;
    rank.rank.gpu = GP_TOPO_NONE;
    status = 0 == strcmp(gpu, "none") ? GP_OK : take_gpu(r, gpu, &rank.rank.gpu);
    status = GP_OK != status
                 ? status
                 : take_number(r, "cores", GP_TOPO_MOST_CORES, &rank.rank.n_cores);
    if (GP_OK != status) {
        return status;
    }
    if (0 == (r->n_ranks & (r->n_ranks - 1u))) {
        ranks = realloc(r->ranks, (0 == r->n_ranks ? 1 : 2 * (size_t) r->n_ranks) * sizeof(*ranks));
        if (NULL == ranks) {
            return gp_topo_fail_memory(r);
        }
        r->ranks = ranks;
    }
    r->ranks[r->n_ranks++] = rank;
    return GP_OK;
}

/* Cut the line into words; a '#' and what follows is a comment. */
static gp_status_t cut_line(gp_topo_reader_t *r, const char *text, size_t bytes)
{
    char *at = r->text;

    r->n_words = 0;
    r->used = 0;
    if (bytes >= sizeof(r->text)) {
        return gp_topo_fail(r, "a line of more than %zu bytes", sizeof(r->text) - 1);
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char) text[i];

        if ((c < ' ' && '\t' != c && '\r' != c) || c > '~') {
            return gp_topo_fail(r, "a byte 0x%02x, which is no text", c);
        }
        r->text[i] = '\t' == c || '\r' == c ? ' ' : (char) c;
    }
    r->text[bytes] = '\0';
    r->text[strcspn(r->text, "#")] = '\0';
    for (;;) {
        at += strspn(at, " ");
        if ('\0' == *at) {
            return GP_OK;
        }
        if (r->n_words == GP_TOPO_WORDS) {
            return gp_topo_fail(r, "more than %u words", GP_TOPO_WORDS);
        }
        r->words[r->n_words++] = at;
        at += strcspn(at, " ");
        if ('\0' != *at) {
            *at++ = '\0';
        }
    }
}

gp_status_t gp_topo_read_line(gp_topo_reader_t *r, const char *text, size_t bytes)
{
    static const struct {
        const char *keyword;
        gp_status_t (*read)(gp_topo_reader_t *r);
    } lines[] = {{"node", read_node},     {"gpu", read_gpu},   {"nic", read_nic},
                 {"nvlink", read_nvlink}, {"rank", read_rank}};
    gp_status_t status = cut_line(r, text, bytes);
    size_t i = 0;

    if (GP_OK != status || 0 == r->n_words) {
        return status;
    }
    if (!r->begun) {
        r->begun = 1;
        return 2 == r->n_words && 0 == strcmp(r->words[0], GP_TOPO_MAGIC)
                       && 0 == strcmp(r->words[1], "1")
                   ? GP_OK
                   : gp_topo_fail(r, "does not begin with \"" GP_TOPO_MAGIC " 1\"");
    }
    while (i < sizeof(lines) / sizeof(lines[0]) && 0 != strcmp(lines[i].keyword, r->words[0])) {
        i++;
    }
    if (i == sizeof(lines) / sizeof(lines[0])) {
        return gp_topo_fail(r, "unknown keyword \"%s\"", r->words[0]);
    }
    status = lines[i].read(r);
    for (uint32_t w = 1; GP_OK == status && w < r->n_words; w++) {
        if (0 == (r->used & 1u << w)) {
            status = gp_topo_fail(r, "%s: unknown or repeated field \"%s\"", r->words[0],
                                  r->words[w]);
        }
    }
    return status;
}
