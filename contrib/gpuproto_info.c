/*
 * gpuproto_info.c - shows what gpuproto would do, without running it: plans, connections, programs.
 *
 * Needs neither MPI nor a GPU: the planner is a pure function of what is given on the command line.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/gpuproto_info.h"
#include "planner/gp_plan.h"
#include "planner/gp_verify.h"

#define MOST_SHOWN_RANKS 1024u

static const char usage[] =
    "usage: gpuproto_info plan|sets|program [options]\n"
    "       gpuproto_info simulate [options]      (simulate --help)\n"
    "       gpuproto_info topology [--topology FILE | --hwloc-xml FILE] [--json]\n"
    "\n"
    "  plan     the plan of one call, one line a size\n"
    "  sets     connection geometry of every algorithm and protocol\n"
    "  program  the steps of every rank on one channel, and whether they are proven\n"
    "  simulate time, critical path and link loads on up to a million ranks (simulate --help)\n"
    "  topology nodes, GPUs, NICs and paths, of this machine or from a file (topology --help)\n"
    "\n"
    "  -n, --ranks N          ranks of the communicator (default 4)\n"
    "  -b, --bytes SIZE       bytes of the call (default: 8 to 1G; K, M, G suffixes)\n"
    "  -t, --type NAME        i8 .. u64, f16, bf16, f32, f64, c32, c64, bool, logical\n"
    "                         (default f32)\n"
    "  -o, --op NAME          sum, prod, min, max, band, bor, bxor, land, lor, lxor (default sum)\n"
    "  -a, --algorithm NAME   auto, ring, tree, flat (default auto; program: ring)\n"
    "  -p, --protocol NAME    auto, ll, ll128, simple (default auto)\n"
    "      --nodes N          ranks spread evenly over N nodes (default 1)\n"
    "      --explain          with plan --bytes: predictions, exclusions, arithmetic, programs\n"
    "      --json             with plan: a line of JSON for each size\n"
    "      --graph FILE       with plan: a picture of rings and trees (SVG)\n"
    "      --host             host buffers\n"
    "      --gpu-sharing K    K ranks on each GPU (default: all of them on one)\n"
    "      --path NAME        farthest pair: same-gpu, nvlink, pcie, host, net (default: same-gpu\n"
    "                         when all share one GPU, else nvlink; host with --host)\n"
    "      --sm N             multiprocessors of a GPU (default 132)\n"
    "      --capability C     compute capability (default 9.0)\n"
    "      --min-channels N, --max-channels N, --threads N, --fifo-mib N, --ll128-unsafe\n"
    "                         as the parameters of the component\n"
    "      --buffer PROTO=SIZE  FIFO bytes of a connection\n"
    "      --channel C        channel (program; default 0)\n"
    "      --slots N          slots to prove with (program; default 2)\n"
    "  -h, --help\n"
    "\n"
    "Exit status: 0, 1 when the planner declines or a proof fails, 2 for a usage error.\n";

typedef struct args {
    gp_comm_desc_t comm;
    gp_params_t params;
    uint64_t bytes; /* 0: a range */
    gp_type_t type;
    gp_op_t op;
    int path; /* -1: not given */
    int explain, json;
    const char *graph;
    uint32_t sharing;
    uint32_t channel;
    uint32_t slots;
} args_t;

static void usage_error(const char *what, const char *text)
{
    fprintf(stderr, "gpuproto_info: %s \"%s\"; --help shows the options\n", what, text);
    exit(2);
}

/* A number with an optional K, M or G (powers of 1,024). */
static uint64_t size_of(const char *option, const char *text)
{
    char *end;
    uint64_t n, unit = 1;

    errno = 0;
    n = strtoull(text, &end, 10);
    if ('K' == *end || 'k' == *end) {
        unit = 1ull << 10;
    } else if ('M' == *end || 'm' == *end) {
        unit = 1ull << 20;
    } else if ('G' == *end || 'g' == *end) {
        unit = 1ull << 30;
    }
    end += 1 != unit;
    if (end == text || '\0' != *end || '-' == *text || 0 != errno || n > UINT64_MAX / unit) {
        usage_error(option, text);
    }
    return n * unit;
}

static uint32_t number_of(const char *option, const char *text, uint32_t least, uint32_t most)
{
    uint64_t n = size_of(option, text);

    if (n < least || n > most) {
        usage_error(option, text);
    }
    return (uint32_t) n;
}

/* Index of a name in a list of names that ends with "?". */
static uint32_t name_of(const char *option, const char *text, const char *(*name)(uint32_t) )
{
    uint32_t i;

    for (i = 0; 0 != strcmp(name(i), "?"); i++) {
        if (0 == strcmp(name(i), text)) {
            return i;
        }
    }
    usage_error(option, text);
    return 0;
}

static int32_t choice_of(const char *option, const char *text, const char *(*name)(uint32_t),
                         uint32_t n)
{
    uint32_t i;

    if (0 == strcmp(text, "auto")) {
        return GP_AUTO;
    }
    i = name_of(option, text, name);
    if (i >= n) {
        usage_error(option, text);
    }
    return (int32_t) i;
}

static void buffer_of(const char *text, gp_params_t *params)
{
    const char *equals = strchr(text, '=');
    char name[16];

    if (NULL == equals || (size_t) (equals - text) >= sizeof(name)) {
        usage_error("--buffer", text);
    }
    memcpy(name, text, (size_t) (equals - text));
    name[equals - text] = '\0';
    params->buffer_bytes[name_of("--buffer", name, gp_protocol_name)]
        = size_of("--buffer", equals + 1);
}

static uint32_t capability_of(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10), minor = 0;

    if ('.' == *end) {
        text = end + 1;
        minor = strtoul(text, &end, 10);
    }
    if (end == text || '\0' != *end || major > 99 || minor > 9) {
        usage_error("--capability", text);
    }
    return (uint32_t) (10 * major + minor);
}

/* What follows from the options together. */
static void complete(args_t *a, int host)
{
    gp_comm_desc_t *c = &a->comm;

    c->n_nodes = 0 == c->n_nodes ? 1 : c->n_nodes > c->n_ranks ? c->n_ranks : c->n_nodes;
    if (host) {
        c->executor = GP_EXEC_HOST;
        c->worst_path = GP_PATH_HOST;
        c->ranks_per_gpu = c->sm_count = c->min_capability = c->max_capability = 0;
    } else {
        c->executor = GP_EXEC_CUDA;
        uint32_t per_node = (c->n_ranks + c->n_nodes - 1) / c->n_nodes;

        c->ranks_per_gpu = 0 == a->sharing || a->sharing > per_node ? per_node : a->sharing;
        c->worst_path = c->ranks_per_gpu == per_node ? GP_PATH_SELF_GPU : GP_PATH_NVLINK;
    }
    if (a->path >= 0) {
        c->worst_path = (uint32_t) a->path;
    }
    if (GP_PATH_NET == c->worst_path && c->n_nodes < 2) {
        c->n_nodes = 2;
    }
    if (c->n_nodes > 1) {
        c->worst_path = GP_PATH_NET;
    }
}

static void parse(int argc, char **argv, args_t *a)
{
    enum { HOST = 256, SHARING, PATH, SM, CAPABILITY, MIN, MAX, THREADS, FIFO, UNSAFE, BUFFER,
           CHANNEL, SLOTS, NODES, EXPLAIN, JSON, GRAPH };
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'n'},      {"bytes", required_argument, NULL, 'b'},
        {"type", required_argument, NULL, 't'},       {"op", required_argument, NULL, 'o'},
        {"algorithm", required_argument, NULL, 'a'},  {"protocol", required_argument, NULL, 'p'},
        {"host", no_argument, NULL, HOST},
        {"gpu-sharing", required_argument, NULL, SHARING},
        {"path", required_argument, NULL, PATH},      {"sm", required_argument, NULL, SM},
        {"capability", required_argument, NULL, CAPABILITY},
        {"min-channels", required_argument, NULL, MIN},
        {"max-channels", required_argument, NULL, MAX},
        {"threads", required_argument, NULL, THREADS}, {"fifo-mib", required_argument, NULL, FIFO},
        {"ll128-unsafe", no_argument, NULL, UNSAFE},   {"buffer", required_argument, NULL, BUFFER},
        {"channel", required_argument, NULL, CHANNEL}, {"slots", required_argument, NULL, SLOTS},
        {"nodes", required_argument, NULL, NODES},     {"explain", no_argument, NULL, EXPLAIN},
        {"json", no_argument, NULL, JSON},             {"graph", required_argument, NULL, GRAPH},
        {"help", no_argument, NULL, 'h'},              {NULL, 0, NULL, 0}};
    int host = 0, c;

    memset(a, 0, sizeof(*a));
    gp_params_init(&a->params);
    a->comm.n_ranks = 4;
    a->comm.sm_count = 132;
    a->comm.min_capability = a->comm.max_capability = 90;
    a->type = GP_TYPE_F32;
    a->op = GP_OP_SUM;
    a->path = -1;
    a->slots = 2;
    while (-1 != (c = getopt_long(argc, argv, "n:b:t:o:a:p:h", options, NULL))) {
        switch (c) {
        case 'n': a->comm.n_ranks = number_of("--ranks", optarg, 1, 1u << 20); break;
        case 'b': a->bytes = size_of("--bytes", optarg); break;
        case 't': a->type = (gp_type_t) name_of("--type", optarg, gp_type_name); break;
        case 'o': a->op = (gp_op_t) name_of("--op", optarg, gp_op_name); break;
        case 'a':
            a->params.algorithm = choice_of("--algorithm", optarg, gp_algorithm_name,
                                            GP_ALGO_CUSTOM);
            break;
        case 'p':
            a->params.protocol = choice_of("--protocol", optarg, gp_protocol_name, GP_PROTO_COUNT);
            break;
        case HOST: host = 1; break;
        case SHARING: a->sharing = number_of("--gpu-sharing", optarg, 1, 1u << 20); break;
        case PATH: a->path = (int) name_of("--path", optarg, gp_path_name); break;
        case SM: a->comm.sm_count = number_of("--sm", optarg, 1, 100000); break;
        case CAPABILITY:
            a->comm.min_capability = a->comm.max_capability = capability_of(optarg);
            break;
        case MIN: a->params.min_channels = number_of("--min-channels", optarg, 0, 1u << 20); break;
        case MAX: a->params.max_channels = number_of("--max-channels", optarg, 0, 1u << 20); break;
        case THREADS: a->params.threads = number_of("--threads", optarg, 0, 1u << 20); break;
        case FIFO:
            a->params.max_fifo_bytes = (uint64_t) number_of("--fifo-mib", optarg, 0, 1u << 30)
                                       << 20;
            break;
        case UNSAFE: a->params.ll128_unsafe = 1; break;
        case BUFFER: buffer_of(optarg, &a->params); break;
        case CHANNEL: a->channel = number_of("--channel", optarg, 0, 1u << 20); break;
        case SLOTS: a->slots = number_of("--slots", optarg, 1, GP_MAX_SLOTS); break;
        case NODES: a->comm.n_nodes = number_of("--nodes", optarg, 1, 1u << 20); break;
        case EXPLAIN: a->explain = 1; break;
        case JSON: a->json = 1; break;
        case GRAPH: a->graph = optarg; break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default: exit(2);
        }
    }
    complete(a, host);
}

static int show_plan(const args_t *a)
{
    uint64_t first = 0 != a->bytes ? a->bytes : 8, last = 0 != a->bytes ? a->bytes : 1ull << 30;
    uint32_t elem_bytes = gp_type_bytes(a->type);
    int declined = 0;

    if (NULL != a->graph && 0 != info_graph(&a->comm, a->graph)) {
        return 1;
    }
    for (uint64_t bytes = first; bytes <= last; bytes *= 2) {
        uint64_t count = bytes / elem_bytes, whole_bytes = count * elem_bytes;
        const char *reason = NULL;
        char text[512];
        gp_plan_t plan;

        if (0 == count) {
            continue;
        }
        if (GP_OK != gp_plan_make(&a->comm, &a->params, count, a->type, a->op, &plan, &reason)) {
            declined = 1;
            printf(a->json ? "{\"bytes\": %llu, \"type\": \"%s\", \"op\": \"%s\", "
                             "\"declined\": \"%s\"}\n"
                           : "bytes=%llu type=%s op=%s declined reason=\"%s\"\n",
                   (unsigned long long) whole_bytes, gp_type_name(a->type), gp_op_name(a->op),
                   reason);
        } else if (a->json) {
            info_plan_json(&a->comm, &a->params, &plan);
        } else {
            gp_plan_print(&plan, text, sizeof(text));
            printf("bytes=%llu type=%s op=%s %s\n", (unsigned long long) whole_bytes,
                   gp_type_name(a->type), gp_op_name(a->op), text);
            if (a->explain) {
                info_explain(&a->comm, &a->params, &plan);
            }
        }
        if (bytes > UINT64_MAX / 2) {
            break;
        }
    }
    return declined;
}

static int show_sets(const args_t *a)
{
    for (uint32_t algo = 0; algo < GP_ALGO_CUSTOM; algo++) {
        for (uint32_t proto = 0; proto < GP_PROTO_COUNT; proto++) {
            const char *reason;
            gp_conn_geom_t g;

            if ((GP_AUTO != a->params.algorithm && (uint32_t) a->params.algorithm != algo)
                || (GP_AUTO != a->params.protocol && (uint32_t) a->params.protocol != proto)) {
                continue;
            }
            printf("algorithm=%s protocol=%s ", gp_algorithm_name(algo), gp_protocol_name(proto));
            if (GP_OK == gp_plan_conn_geom(&a->comm, &a->params, algo, proto, &g, &reason)) {
                printf("channels=%u slots=%u slot_bytes=%llu data_bytes=%llu threads=%u\n",
                       g.channels, g.n_slots, (unsigned long long) g.slot_bytes,
                       (unsigned long long) g.data_bytes, g.threads);
            } else {
                printf("declined reason=\"%s\"\n", reason);
            }
        }
    }
    return 0;
}

static void show_step(const gp_program_t *p, uint32_t index)
{
    const gp_step_t *s = &p->steps[index];

    printf("    step %u chunk %u:", index, s->chunk);
    for (uint32_t i = 0; i < s->n_in; i++) {
        const gp_ref_t *ref = &p->refs[s->in_first + i];

        if (GP_REF_OWN == ref->conn) {
            printf("%s own", 0 == i ? "" : " +");
        } else {
            printf("%s from %u#%u", 0 == i ? "" : " +", p->recv[ref->conn].peer, ref->ordinal);
        }
    }
    printf("%s", s->flags & GP_STEP_OUTPUT ? " -> output" : "");
    for (uint32_t i = 0; i < s->n_send; i++) {
        const gp_ref_t *ref = &p->refs[s->send_first + i];

        printf(" -> %u#%u", p->send[ref->conn].peer, ref->ordinal);
    }
    printf("\n");
}

/* Steps as "operands -> where to"; peer#use names a use of the connection with that peer. */
static int show_program(const args_t *a)
{
    gp_algorithm_t algo = GP_AUTO == a->params.algorithm ? GP_ALGO_RING
                                                         : (gp_algorithm_t) a->params.algorithm;
    uint32_t n = a->comm.n_ranks, channels = a->channel < 2 ? 2 : a->channel + 1;
    gp_program_t **programs = calloc(n, sizeof(*programs));
    gp_status_t status = NULL == programs ? GP_ERR_NO_MEMORY : GP_OK;
    char reason[300] = "out of memory";

    if (n > MOST_SHOWN_RANKS) {
        fprintf(stderr, "gpuproto_info: program shows at most %u ranks\n", MOST_SHOWN_RANKS);
        free(programs);
        return 2;
    }
    for (uint32_t r = 0; GP_OK == status && r < n; r++) {
        status = gp_program_emit(algo, n, r, a->channel, channels, &programs[r]);
        if (GP_OK != status) {
            break;
        }
        printf("rank %u: %u chunks\n", r, programs[r]->n_chunks);
        for (uint32_t t = 0; t < programs[r]->n_streams; t++) {
            const gp_stream_t *stream = &programs[r]->streams[t];

            printf("  stream %u\n", t);
            for (uint32_t i = stream->first; i < stream->first + stream->count; i++) {
                show_step(programs[r], i);
            }
        }
    }
    if (GP_OK == status) {
        status = gp_verify((const gp_program_t *const *) programs, n, a->slots, 2, reason,
                           sizeof(reason));
    }
    if (GP_OK == status) {
        printf("proven with %u slots\n", a->slots);
    } else {
        printf("not proven with %u slots: %s\n", a->slots, reason);
    }
    for (uint32_t r = 0; NULL != programs && r < n; r++) {
        gp_program_free(programs[r]);
    }
    free(programs);
    return GP_OK != status;
}

int main(int argc, char **argv)
{
    args_t a;

    if (argc >= 2 && (0 == strcmp(argv[1], "--help") || 0 == strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc < 2) {
        fputs(usage, stderr);
        return 2;
    }
    if (0 == strcmp(argv[1], "simulate")) {
        return info_simulate(argc - 1, argv + 1);
    }
    if (0 == strcmp(argv[1], "topology")) {
        return info_topology(argc - 1, argv + 1);
    }
    parse(argc - 1, argv + 1, &a);
    if (optind < argc - 1) {
        usage_error("extra argument", argv[optind + 1]);
    }
    if (0 == strcmp(argv[1], "plan")) {
        return show_plan(&a);
    }
    if (0 == strcmp(argv[1], "sets")) {
        return show_sets(&a);
    }
    if (0 == strcmp(argv[1], "program")) {
        return show_program(&a);
    }
    usage_error("command", argv[1]);
    return 2;
}
