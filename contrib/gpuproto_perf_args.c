/*
 * gpuproto_perf_args.c - command line of gpuproto_perf and its table of MPI types.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OPS(first, last) ((2u << (last)) - (1u << (first)))
#define OPS_INTEGER OPS(GP_OP_SUM, GP_OP_LXOR)
#define OPS_FLOAT OPS(GP_OP_SUM, GP_OP_MAX)
#define OPS_COMPLEX OPS(GP_OP_SUM, GP_OP_PROD)
#define OPS_LOGICAL OPS(GP_OP_LAND, GP_OP_LXOR)
#define OPS_BYTE OPS(GP_OP_BAND, GP_OP_BXOR)

static const char usage[] =
    "usage: mpirun -n RANKS --mca coll gpuproto gpuproto_perf [options]\n"
    "\n"
    "  -b, --minbytes SIZE        smallest size (default 8; K, M, G suffixes)\n"
    "  -e, --maxbytes SIZE        largest size (default 64M)\n"
    "  -f, --stepfactor N         multiply the size by N (default 2)\n"
    "  -i, --stepbytes SIZE       add SIZE instead\n"
    "  -n, --iters N              timed calls per row and place (default 20)\n"
    "  -w, --warmup_iters N       untimed calls before them (default 5)\n"
    "  -c, --check N              checked calls per row and place (default 1; 0: none)\n"
    "  -d, --datatype NAME|all    element type (default float)\n"
    "  -o, --op NAME|all          operation (default sum)\n"
    "  -N, --run_cycles N         run the whole table N times (default 1; 0: for ever)\n"
    "      --memory KIND          cuda, managed, host or auto (default auto)\n"
    "      --offset BYTES[,BYTES] offset of the buffers (send[,receive]) from 256-byte alignment\n"
    "      --row-seconds S        at most S seconds of timed calls per row and place\n"
    "      --seed N               seed of the data (default 1)\n"
    "      --json FILE            write the table as JSON too\n"
    "      --csv FILE             write the table as CSV too\n"
    "      --brief                six columns\n"
    "      --force                device buffers even where this MPI would crash on them\n"
    "      --inject-error         spoil one element of every checked result (tests the check)\n"
    "  -h, --help\n"
    "\n"
    "Exit status: 0, 1 when a result was wrong, 2 for a usage error.\n";

static void all_types(perf_args_t *a)
{
    const perf_type_t table[] = {
        {"int8", MPI_INT8_T, GP_TYPE_I8, OPS_INTEGER},
        {"uint8", MPI_UINT8_T, GP_TYPE_U8, OPS_INTEGER},
        {"int16", MPI_INT16_T, GP_TYPE_I16, OPS_INTEGER},
        {"uint16", MPI_UINT16_T, GP_TYPE_U16, OPS_INTEGER},
        {"int32", MPI_INT32_T, GP_TYPE_I32, OPS_INTEGER},
        {"uint32", MPI_UINT32_T, GP_TYPE_U32, OPS_INTEGER},
        {"int64", MPI_INT64_T, GP_TYPE_I64, OPS_INTEGER},
        {"uint64", MPI_UINT64_T, GP_TYPE_U64, OPS_INTEGER},
#if defined(MPIX_C_FLOAT16)
        {"half", MPIX_C_FLOAT16, GP_TYPE_F16, OPS_FLOAT},
#endif
#if defined(MPIX_C_BF16)
        {"bfloat16", MPIX_C_BF16, GP_TYPE_BF16, OPS_FLOAT},
#endif
        {"float", MPI_FLOAT, GP_TYPE_F32, OPS_FLOAT},
        {"double", MPI_DOUBLE, GP_TYPE_F64, OPS_FLOAT},
        {"cfloat", MPI_C_FLOAT_COMPLEX, GP_TYPE_C32, OPS_COMPLEX},
        {"cdouble", MPI_C_DOUBLE_COMPLEX, GP_TYPE_C64, OPS_COMPLEX},
        {"bool", MPI_C_BOOL, GP_TYPE_BOOL, OPS_LOGICAL},
        {"logical", MPI_LOGICAL, GP_TYPE_LOGICAL, OPS_LOGICAL},
        {"byte", MPI_BYTE, GP_TYPE_U8, OPS_BYTE},
        {"char", MPI_SIGNED_CHAR, GP_TYPE_I8, OPS_INTEGER},
        {"long", MPI_LONG, GP_TYPE_I64, OPS_INTEGER},
        {"ulong", MPI_UNSIGNED_LONG, GP_TYPE_U64, OPS_INTEGER},
        {"aint", MPI_AINT, GP_TYPE_I64, OPS_INTEGER},
        {"count", MPI_COUNT, GP_TYPE_I64, OPS_INTEGER},
        {"offset", MPI_OFFSET, GP_TYPE_I64, OPS_INTEGER},
    };
    size_t i;

    a->n_types = 0;
    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int size = 0;

        /* Without Fortran the handle is there, but has no size. */
        if (MPI_SUCCESS == MPI_Type_size(table[i].mpi, &size)
            && (uint32_t) size == gp_type_bytes(table[i].type)) {
            a->types[a->n_types++] = table[i];
        }
    }
}

const char *perf_op_name(gp_op_t op)
{
    static const char *const names[GP_OP_COUNT] = {
        [GP_OP_SUM] = "sum",   [GP_OP_PROD] = "prod", [GP_OP_MIN] = "min",   [GP_OP_MAX] = "max",
        [GP_OP_BAND] = "band", [GP_OP_BOR] = "bor",   [GP_OP_BXOR] = "bxor", [GP_OP_LAND] = "land",
        [GP_OP_LOR] = "lor",   [GP_OP_LXOR] = "lxor",
    };

    return op < GP_OP_COUNT ? names[op] : "?";
}

static int pick_type(perf_args_t *a, const char *name, int rank)
{
    uint32_t i;

    all_types(a);
    if (0 == strcasecmp(name, "all")) {
        return 0;
    }
    for (i = 0; i < a->n_types; i++) {
        if (0 == strcasecmp(name, a->types[i].name)) {
            a->types[0] = a->types[i];
            a->n_types = 1;
            return 0;
        }
    }
    if (0 == rank) {
        fprintf(stderr, "gpuproto_perf: this Open MPI has no type \"%s\"; it has: all", name);
        for (i = 0; i < a->n_types; i++) {
            fprintf(stderr, " %s", a->types[i].name);
        }
        fprintf(stderr, "\n");
    }
    return 2;
}

static int pick_op(perf_args_t *a, const char *name, int rank)
{
    uint32_t op;

    if (0 == strcasecmp(name, "all")) {
        a->ops = OPS_INTEGER;
        return 0;
    }
    for (op = 0; op < GP_OP_COUNT; op++) {
        if (0 == strcasecmp(name, perf_op_name((gp_op_t) op))) {
            a->ops = 1u << op;
            return 0;
        }
    }
    if (0 == rank) {
        fprintf(stderr, "gpuproto_perf: no operation \"%s\"; there are: all", name);
        for (op = 0; op < GP_OP_COUNT; op++) {
            fprintf(stderr, " %s", perf_op_name((gp_op_t) op));
        }
        fprintf(stderr, "\n");
    }
    return 2;
}

/* "64M", "64MiB", "67108864". Returns 0, or 2 with a message. */
static int parse_size(const char *option, const char *text, uint64_t *value_p, const char **end_p,
                      int rank)
{
    char *end;
    unsigned shift = 0;
    uint64_t v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (end != text && 0 == errno && '-' != text[0]) {
        switch (*end) {
        case 'k': case 'K': shift = 10; break;
        case 'm': case 'M': shift = 20; break;
        case 'g': case 'G': shift = 30; break;
        default: break;
        }
        if (0 != shift) {
            end++;
            end += 'i' == *end ? 1 : 0;
        }
        end += 'B' == *end ? 1 : 0;
        if (('\0' == *end || (NULL != end_p && ',' == *end)) && v <= UINT64_MAX >> shift >> 8) {
            *value_p = v << shift;
            if (NULL != end_p) {
                *end_p = end;
            }
            return 0;
        }
    }
    if (0 == rank) {
        fprintf(stderr, "gpuproto_perf: %s: \"%s\" is not a size\n", option, text);
    }
    return 2;
}

static int parse_u32(const char *option, const char *text, uint32_t *value_p, int rank)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(text, &end, 10);
    if (end == text || '\0' != *end || 0 != errno || v > 1000000000 || '-' == text[0]) {
        if (0 == rank) {
            fprintf(stderr, "gpuproto_perf: %s: \"%s\" is not a number\n", option, text);
        }
        return 2;
    }
    *value_p = (uint32_t) v;
    return 0;
}

static int parse_memory(perf_args_t *a, const char *text, int rank)
{
    int k;

    for (k = PERF_MEM_AUTO; k <= PERF_MEM_MANAGED; k++) {
        if (0 == strcmp(text, perf_mem_kind_name((perf_mem_kind_t) k))) {
            a->memory = (perf_mem_kind_t) k;
            return 0;
        }
    }
    if (0 == rank) {
        fprintf(stderr, "gpuproto_perf: --memory %s: auto, host, cuda or managed\n", text);
    }
    return 2;
}

enum { OPT_MEMORY = 256, OPT_OFFSET, OPT_SECONDS, OPT_SEED, OPT_JSON, OPT_CSV, OPT_BRIEF, OPT_FORCE,
       OPT_INJECT };

static int parse_one(perf_args_t *a, int opt, const char *text, int rank)
{
    const char *end = NULL;
    char *number_end;
    uint32_t small = 0;
    int rc;

    switch (opt) {
    case 'b': return parse_size("-b", text, &a->min_bytes, NULL, rank);
    case 'e': return parse_size("-e", text, &a->max_bytes, NULL, rank);
    case 'i':
        a->step_factor = 0;
        return parse_size("-i", text, &a->step_bytes, NULL, rank);
    case 'f': return parse_size("-f", text, &a->step_factor, NULL, rank);
    case 'n': return parse_u32("-n", text, &a->iters, rank);
    case 'w': return parse_u32("-w", text, &a->warmup, rank);
    case 'c': return parse_u32("-c", text, &a->check, rank);
    case 'N': return parse_u32("-N", text, &a->cycles, rank);
    case 'd': return pick_type(a, text, rank);
    case 'o': return pick_op(a, text, rank);
    case OPT_MEMORY: return parse_memory(a, text, rank);
    case OPT_OFFSET:
        rc = parse_size("--offset", text, &a->send_offset_bytes, &end, rank);
        a->recv_offset_bytes = a->send_offset_bytes;
        if (0 == rc && ',' == *end) {
            rc = parse_size("--offset", end + 1, &a->recv_offset_bytes, NULL, rank);
        }
        return rc;
    case OPT_SECONDS:
        a->row_seconds = strtod(text, &number_end);
        return number_end == text || '\0' != *number_end || a->row_seconds < 0 ? 2 : 0;
    case OPT_SEED:
        rc = parse_u32("--seed", text, &small, rank);
        a->seed = small;
        return rc;
    case OPT_JSON: a->json_path = text; return 0;
    case OPT_CSV: a->csv_path = text; return 0;
    case OPT_BRIEF: a->brief = 1; return 0;
    case OPT_FORCE: a->force = 1; return 0;
    case OPT_INJECT: a->inject = 1; return 0;
    case 'h':
        if (0 == rank) {
            fputs(usage, stdout);
        }
        return 1;
    default:
        return 2;
    }
}

/* What only the whole set of options tells. */
static int validate(const perf_args_t *a, int rank)
{
    const char *text = NULL;
    uint32_t i, pairs = 0;

    for (i = 0; i < a->n_types; i++) {
        uint32_t bytes = gp_type_bytes(a->types[i].type);

        pairs += 0 != (a->types[i].ops & a->ops);
        if (0 != a->send_offset_bytes % bytes || 0 != a->recv_offset_bytes % bytes) {
            text = "--offset must be a multiple of the element size";
        }
    }
    if (a->min_bytes > a->max_bytes) {
        text = "-b is larger than -e";
    } else if (a->step_factor < 2 && 0 == a->step_bytes && a->min_bytes < a->max_bytes) {
        text = "give -f 2 or more, or -i";
    } else if (0 == a->iters) {
        text = "-n must be at least 1";
    } else if (0 == pairs) {
        text = "MPI does not define this operation for this type";
    } else if (a->inject && 0 == a->check) {
        text = "--inject-error needs -c 1 or more";
    }
    if (NULL == text) {
        return 0;
    }
    if (0 == rank) {
        fprintf(stderr, "gpuproto_perf: %s\n", text);
    }
    return 2;
}

int perf_args_parse(perf_args_t *a, int argc, char **argv, int rank)
{
    static const struct option options[] = {
        {"minbytes", required_argument, NULL, 'b'},
        {"maxbytes", required_argument, NULL, 'e'},
        {"stepbytes", required_argument, NULL, 'i'},
        {"stepfactor", required_argument, NULL, 'f'},
        {"iters", required_argument, NULL, 'n'},
        {"warmup_iters", required_argument, NULL, 'w'},
        {"check", required_argument, NULL, 'c'},
        {"datatype", required_argument, NULL, 'd'},
        {"op", required_argument, NULL, 'o'},
        {"run_cycles", required_argument, NULL, 'N'},
        {"memory", required_argument, NULL, OPT_MEMORY},
        {"offset", required_argument, NULL, OPT_OFFSET},
        {"row-seconds", required_argument, NULL, OPT_SECONDS},
        {"seed", required_argument, NULL, OPT_SEED},
        {"json", required_argument, NULL, OPT_JSON},
        {"csv", required_argument, NULL, OPT_CSV},
        {"brief", no_argument, NULL, OPT_BRIEF},
        {"force", no_argument, NULL, OPT_FORCE},
        {"inject-error", no_argument, NULL, OPT_INJECT},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int opt, rc;

    memset(a, 0, sizeof(*a));
    a->min_bytes = 8;
    a->max_bytes = (uint64_t) 64 << 20;
    a->step_factor = 2;
    a->iters = 20;
    a->warmup = 5;
    a->check = 1;
    a->cycles = 1;
    a->seed = 1;
    pick_type(a, "float", rank);
    pick_op(a, "sum", rank);
    opterr = 0 == rank;
    while (-1 != (opt = getopt_long(argc, argv, "b:e:i:f:n:w:c:d:o:N:h", options, NULL))) {
        rc = parse_one(a, opt, optarg, rank);
        if (0 != rc) {
            if (2 == rc && 0 == rank) {
                fprintf(stderr, "gpuproto_perf --help lists the options\n");
            }
            return rc;
        }
    }
    if (optind < argc) {
        if (0 == rank) {
            fprintf(stderr, "gpuproto_perf: unexpected \"%s\"\n", argv[optind]);
        }
        return 2;
    }
    return validate(a, rank);
}
