/*
 * gp_topo_int.h - shared by the topology's own files: the reader's state, ranks by node.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TOPO_INT_H
#define GP_TOPO_INT_H

#include "planner/gp_topo.h"

#define GP_TOPO_MAGIC "gpuproto-topology"
#define GP_TOPO_LINE_BYTES 1024u
#define GP_TOPO_WORDS 24u
#define GP_TOPO_ID_BYTES 48u /* room for a PCI address or a UUID as text */

/* A rank line, kept until all are there: ranks come in any order. */
typedef struct gp_topo_rank_line {
    gp_topo_rank_t rank;
    uint32_t number;
    uint32_t line;
} gp_topo_rank_line_t;

typedef struct gp_topo_reader {
    const char *name;
    uint32_t line;
    gp_topo_t *topo;
    gp_topo_rank_line_t *ranks;
    uint32_t n_ranks;
    uint32_t *gpu_lines; /* per GPU: where it was given */
    int begun;           /* the first line was read */
    char text[GP_TOPO_LINE_BYTES];
    char *words[GP_TOPO_WORDS];
    uint32_t n_words;
    uint32_t used; /* a bit for each word that a field has taken */
} gp_topo_reader_t;

/* Log the one message of a bad file, with its line. Always GP_ERR_INVALID. */
gp_status_t gp_topo_fail(const gp_topo_reader_t *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
gp_status_t gp_topo_fail_memory(const gp_topo_reader_t *r); /* always GP_ERR_NO_MEMORY */

/* Read the next line, without its newline, into the reader's topology and ranks. */
gp_status_t gp_topo_read_line(gp_topo_reader_t *r, const char *text, size_t bytes);

/*
 * Ranks of each node in rank order: (*head_p)[node] is the first, (*next_p)[rank] the one after it,
 * GP_TOPO_NONE ends. The caller frees both. GP_ERR_NO_MEMORY (logged).
 */
gp_status_t gp_topo_ranks_by_node(const gp_topo_t *topo, uint32_t **head_p, uint32_t **next_p);

/* Flush; GP_ERR_SYSTEM (logged) when anything since the stream was opened failed. */
gp_status_t gp_topo_written(FILE *out);

#endif /* GP_TOPO_INT_H */
