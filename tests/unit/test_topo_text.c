/*
 * test_topo_text.c - topologies read and written: text files, bad ones, and hwloc.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include <unistd.h>

#include "device/proto/gp_log.h"
#include "planner/gp_topo.h"

#define MOST_TEXT 16384u

static uint32_t n_logged;
static char logged[1024];

static const char *const files[] = {
    "v100-nv2.topo",       "h100-nvswitch.topo",    "a100-nvswitch.topo",    "pcie-2-sockets.topo",
    "two-nodes-1-nic.topo", "two-nodes-8-nics.topo", "mixed-capability.topo", "8-ranks-1-gpu.topo",
};

#define N_FILES (sizeof(files) / sizeof(files[0]))

static void keep_log(gp_log_level_t level, const char *text)
{
    (void) level;
    n_logged++;
    snprintf(logged, sizeof(logged), "%s", text);
}

static void path_of(const char *name, char *path, size_t bytes)
{
    const char *top = getenv("GP_TOP_SRCDIR");

    snprintf(path, bytes, "%s/tests/unit/topo/%s", NULL != top ? top : ".", name);
}

/* The whole file as text; returns its bytes. */
static size_t load(const char *name, char text[MOST_TEXT])
{
    char path[4096];
    FILE *in;
    size_t bytes;

    path_of(name, path, sizeof(path));
    in = fopen(path, "r");
    if (NULL == in) {
        gp_bail_out("%s is not there", path);
    }
    bytes = fread(text, 1, MOST_TEXT - 1, in);
    text[bytes] = '\0';
    fclose(in);
    return bytes;
}

static gp_status_t parse(const char *text, size_t bytes, gp_topo_t **topo)
{
    n_logged = 0;
    logged[0] = '\0';
    return gp_topo_parse("here", text, bytes, topo);
}

static char *write_text(const gp_topo_t *topo, gp_status_t (*writer)(const gp_topo_t *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (NULL == out || GP_OK != writer(topo, out)) {
        gp_bail_out("cannot write");
    }
    fclose(out);
    return text;
}

/* Equal in all that the model holds. */
static void check_same(const gp_topo_t *a, const gp_topo_t *b, const char *what)
{
    int same = a->n_nodes == b->n_nodes && a->n_gpus == b->n_gpus && a->n_nics == b->n_nics
               && a->n_nvlinks == b->n_nvlinks && a->n_ranks == b->n_ranks;

    gp_check(same, "%s: counts", what);
    if (!same) {
        return;
    }
    for (uint32_t i = 0; i < a->n_nodes; i++) {
        const gp_topo_node_t *x = &a->nodes[i], *y = &b->nodes[i];

        gp_check(0 == strcmp(x->name, y->name) && x->n_numa == y->n_numa && x->n_cores == y->n_cores
                     && x->first_gpu == y->first_gpu && x->n_gpus == y->n_gpus
                     && x->first_nic == y->first_nic && x->n_nics == y->n_nics
                     && x->first_nvlink == y->first_nvlink && x->n_nvlinks == y->n_nvlinks,
                 "%s: node %u", what, i);
    }
    for (uint32_t i = 0; i < a->n_gpus; i++) {
        const gp_topo_gpu_t *x = &a->gpus[i], *y = &b->gpus[i];

        gp_check(0 == memcmp(&x->place, &y->place, sizeof(x->place))
                     && 0 == memcmp(x->uuid, y->uuid, sizeof(x->uuid)) && x->node == y->node
                     && x->capability == y->capability && x->sm_count == y->sm_count
                     && x->nvswitch_links == y->nvswitch_links
                     && x->pcie_bytes_per_us == y->pcie_bytes_per_us,
                 "%s: GPU %u", what, i);
    }
    for (uint32_t i = 0; i < a->n_nics; i++) {
        const gp_topo_nic_t *x = &a->nics[i], *y = &b->nics[i];

        gp_check(0 == memcmp(&x->place, &y->place, sizeof(x->place))
                     && 0 == strcmp(x->name, y->name) && x->node == y->node
                     && x->bytes_per_us == y->bytes_per_us,
                 "%s: NIC %u", what, i);
    }
    gp_check(0 == a->n_nvlinks
                 || 0 == memcmp(a->nvlinks, b->nvlinks, a->n_nvlinks * sizeof(*a->nvlinks)),
             "%s: links", what);
    gp_check(0 == a->n_ranks || 0 == memcmp(a->ranks, b->ranks, a->n_ranks * sizeof(*a->ranks)),
             "%s: ranks", what);
}

#define BEGIN "gpuproto-topology 1\nnode one numa=2 cores=8\n"
#define UUID_1 "GPU-00000000-0000-0000-0000-000000000001"
#define UUID_2 "00000000-0000-0000-0000-000000000002"

/* Every field, MIG slices, ranks in no order, a domain of 8 digits. */
static const char rich[]
    = "  # a comment\n\n" BEGIN "gpu pci=00010000:02:1f.7 uuid=" UUID_1
      " capability=12.1 sm=16 numa=1 pcie=7000 nvswitch=3"
      " switches=0:1:0.0,0:2:0.0,0:3:0.0,0:4:0.0\r\n"
      "gpu\tpci=00010000:02:1f.7 uuid=" UUID_2 " # slice\n"
      "gpu pci=0000:0a:00.0\nnic pci=0000:0b:00.0\nnic pci=0:c:0.0 name=mlx5_0 speed=50000 numa=0\n"
      "nvlink 0000:0a:00.0 " UUID_2 " links=4\n"
      "node two\nrank 1 gpu=none\nnode three numa=1\nrank 2 gpu=none cores=4\nrank 0 gpu=none";

static void test_round_trip(void)
{
    gp_topo_t *a, *b;

    gp_group_begin("what is written is read back the same");
    for (size_t i = 0; i <= N_FILES; i++) {
        char text[MOST_TEXT], *written;
        const char *what = i < N_FILES ? files[i] : "every field";
        size_t bytes = i < N_FILES ? load(files[i], text)
                                   : (size_t) snprintf(text, sizeof(text), "%s", rich);

        if (!gp_check(GP_OK == parse(text, bytes, &a), "%s: %s", what, logged)) {
            continue;
        }
        written = write_text(a, gp_topo_write);
        if (gp_check(GP_OK == parse(written, strlen(written), &b), "%s: %s", what, logged)) {
            check_same(a, b, what);
            gp_topo_free(b);
        }
        free(written);
        gp_topo_free(a);
    }
    gp_group_end();
    if (GP_OK == parse(rich, sizeof(rich) - 1, &a)) {
        const gp_topo_gpu_t *g = &a->gpus[0];

        gp_ok((0x10000ull << 16 | 2 << 8 | 0x1f << 3 | 7) == g->place.pci && 121 == g->capability
                  && 16 == g->sm_count && 1 == g->place.numa && 4 == g->place.n_switches
                  && 3ull << 8 == g->place.switches[2] && 1 == g->uuid[15] && 3 == g->nvswitch_links
                  && 7000 == g->pcie_bytes_per_us && 2 == a->gpus[1].uuid[15]
                  && GP_TOPO_NONE == a->gpus[2].place.numa,
              "the fields of a GPU");
        gp_ok(3 == a->n_ranks && 2 == a->ranks[0].node && 1 == a->ranks[1].node
                  && 4 == a->ranks[2].n_cores && 2 == a->nvlinks[0].gpu_a
                  && 1 == a->nvlinks[0].gpu_b && 4 == a->nvlinks[0].links
                  && 0 == strcmp(a->nics[1].name, "mlx5_0") && 50000 == a->nics[1].bytes_per_us,
              "ranks, links, NICs");
        gp_topo_free(a);
    } else {
        gp_fail("every field: %s", logged);
    }
}

/* A file that is none: the text, and how the one message begins after "here:". */
static const struct bad {
    const char *text;
    const char *message;
} bad[] = {
    {"", "0: no node"},
    {"node one\n", "1: does not begin"},
    {"gpuproto-topology 2\n", "1: does not begin"},
    {"gpuproto-topology 1\n# nothing\n", "2: no node"},
    {BEGIN "frob 1\n", "3: unknown keyword \"frob\""},
    {BEGIN "node one\n", "3: node: two are named one"},
    {BEGIN "node\n", "3: node: its name is missing"},
    {BEGIN "node a/b\n", "3: node: name"},
    {BEGIN "node two three\n", "3: node: unknown or repeated field \"three\""},
    {BEGIN "node two numa=1 numa=2\n", "3: node: unknown or repeated field \"numa=2\""},
    {BEGIN "node two cores=99999999999999999999\n", "3: cores=99999999999999999999: not a number"},
    {BEGIN "node two cores=-1\n", "3: cores=-1: not a number"},
    {BEGIN "node two cores=\n", "3: cores=: not a number"},
    {"gpuproto-topology 1\ngpu pci=0:1:0.0\n", "2: gpu: there is no node yet"},
    {BEGIN "gpu numa=0\n", "3: gpu: pci= is missing"},
    {BEGIN "gpu pci=0:1:0\n", "3: pci=0:1:0: not like"},
    {BEGIN "gpu pci=0:1:20.0\n", "3: pci=0:1:20.0: not like"},
    {BEGIN "gpu pci=0:1:0.8\n", "3: pci=0:1:0.8: not like"},
    {BEGIN "gpu pci=0:100:0.0\n", "3: pci=0:100:0.0: not like"},
    {BEGIN "gpu pci=123456789:1:0.0\n", "3: pci=123456789:1:0.0: not like"},
    {BEGIN "gpu pci=0:1:0.0 numa=2\n", "3: gpu: numa: the node has no such"},
    {BEGIN "gpu pci=0:1:0.0 numa=4294967296\n", "3: numa=4294967296: not a number"},
    {BEGIN "gpu pci=0:1:0.0 switches=0:1:0.0,,\n", "3: switches: not PCI"},
    {BEGIN "gpu pci=0:1:0.0 switches=0:1:0.0,0:2:0.0,0:3:0.0,0:4:0.0,0:5:0.0\n",
     "3: switches: more than 4"},
    {BEGIN "gpu pci=0:1:0.0 uuid=GPU-1\n", "3: uuid=GPU-1: not like"},
    {BEGIN "gpu pci=0:1:0.0 uuid=" UUID_1 "0\n", "3: uuid="},
    {BEGIN "gpu pci=0:1:0.0 capability=9\n", "3: capability=9: not like 8.0"},
    {BEGIN "gpu pci=0:1:0.0 capability=9.10\n", "3: capability=9.10: not like 8.0"},
    {BEGIN "gpu pci=0:1:0.0 capability=1000.0\n", "3: capability=1000.0: not like 8.0"},
    {BEGIN "gpu pci=0:1:0.0 sm=4294967297\n", "3: sm=4294967297: not a number"},
    {BEGIN "gpu pci=0:1:0.0 speed=1\n", "3: gpu: unknown or repeated field \"speed=1\""},
    {BEGIN "gpu pci=0:1:0.0\ngpu pci=0:1:0.0\n", "4: gpu: pci: another GPU has it"},
    {BEGIN "gpu pci=0:1:0.0 uuid=" UUID_1 "\ngpu pci=0:2:0.0 uuid=" UUID_1 "\n",
     "4: gpu: uuid: another GPU has it"},
    {BEGIN "gpu pci=0:1:0.0 uuid=" UUID_1 "\nnode two\ngpu pci=0:1:0.0 uuid=" UUID_1 "\n#\n",
     "5: gpu: uuid: a GPU of another node has it"},
    {BEGIN "nic speed=1\n", "3: nic: pci= is missing"},
    {BEGIN "nic pci=0:1:0.0 speed=4294967297\n", "3: speed=4294967297: not a number"},
    {BEGIN "nic pci=0:1:0.0\nnic pci=0:1:0.0\n", "4: nic: pci: another NIC has it"},
    {BEGIN "gpu pci=0:1:0.0\nnvlink 0:1:0.0 0:2:0.0 links=1\n",
     "4: 0:2:0.0: node one has no such GPU"},
    {BEGIN "gpu pci=0:1:0.0\nnvlink 0:1:0.0 0:1:0.0 links=1\n",
     "4: nvlink: a link from a GPU to it"},
    {BEGIN "gpu pci=0:1:0.0\ngpu pci=0:2:0.0\nnvlink 0:1:0.0 0:2:0.0\n",
     "5: nvlink: links= is missing"},
    {BEGIN "gpu pci=0:1:0.0\ngpu pci=0:2:0.0\nnvlink 0:1:0.0 0:2:0.0 links=65\n",
     "5: links=65: not a number"},
    {BEGIN "gpu pci=0:1:0.0\ngpu pci=0:2:0.0\nnvlink 0:1:0.0 0:2:0.0 links=1\n"
           "nvlink 0:2:0.0 0:1:0.0 links=1\n", "6: nvlink: the links of these two"},
    {BEGIN "nvlink 0:1:0.0\n", "3: nvlink: two GPUs are needed"},
    {BEGIN "rank 0\n", "3: rank: gpu= is missing"},
    {BEGIN "rank gpu=none\n", "3: rank: its number"},
    {BEGIN "rank 1048576 gpu=none\n", "3: rank: its number"},
    {BEGIN "rank 0 gpu=0:1:0.0\n", "3: 0:1:0.0: node one has no such GPU"},
    {BEGIN "rank 0 gpu=seven\n", "3: seven: neither a PCI address nor a UUID"},
    {BEGIN "gpu pci=0:1:0.0 uuid=" UUID_1 "\ngpu pci=0:1:0.0 uuid=" UUID_2 "\nrank 0 gpu=0:1:0.0\n",
     "5: 0:1:0.0: several GPUs"},
    {BEGIN "gpu pci=0:1:0.0\nnode two\nrank 0 gpu=0:1:0.0\n", "5: 0:1:0.0: node two has no such"},
    {BEGIN "rank 0 gpu=none\nrank 0 gpu=none\n", "4: rank 0 was given before"},
    {BEGIN "rank 0 gpu=none\nrank 1048575 gpu=none\n", "4: rank 1048575, but there is no rank 1"},
    {BEGIN "gpu pci=\x01\n", "3: a byte 0x01"},
    {BEGIN "gpu pci=\xff\n", "3: a byte 0xff"},
    {BEGIN "rank 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\n",
     "3: more than 24 words"},
};

static void test_bad(void)
{
    char text[MOST_TEXT];
    gp_topo_t *topo;

    gp_group_begin("bad files: one message, with the line");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        gp_status_t status = parse(bad[i].text, strlen(bad[i].text), &topo);
        size_t bytes = strlen(bad[i].message);

        gp_check(GP_ERR_INVALID == status && NULL == topo, "case %zu: status %d", i, status);
        gp_check(1 == n_logged, "case %zu: %u messages", i, n_logged);
        gp_check(0 == strncmp(logged, "here:", 5)
                     && 0 == strncmp(logged + 5, bad[i].message, bytes),
                 "case %zu: \"%s\", not \"here:%s\"", i, logged, bad[i].message);
    }
    gp_group_end();
    memset(text, 'x', sizeof(text));
    gp_ok(GP_ERR_INVALID == parse(text, 1024, &topo)
              && 0 == strcmp(logged, "here:1: a line of more than 1023 bytes"),
          "a line that is too long");
    gp_ok(GP_ERR_INVALID == parse("gpuproto-topology 1\n\0", 21, &topo)
              && 0 == strncmp(logged, "here:2: a byte 0x00", 19),
          "a zero byte");
    n_logged = 0;
    gp_ok(GP_ERR_SYSTEM == gp_topo_read("/does/not/exist", &topo) && 1 == n_logged
              && 0 == strncmp(logged, "/does/not/exist: ", 17),
          "a file that is not there");
    n_logged = 0;
    gp_ok(GP_OK != gp_topo_read("/", &topo) && NULL == topo && 1 == n_logged, "a directory");
}

static uint64_t random_state = 20240607;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (random_state >> 33) % n;
}

/* Whatever was read must answer every question. */
static void ask_everything(const gp_topo_t *t)
{
    uint32_t *order = malloc((t->n_ranks + 1ull) * sizeof(*order));
    char *text = write_text(t, gp_topo_describe);
    uint64_t sum = 0;
    gp_comm_desc_t d;

    gp_check(NULL != order && GP_OK == gp_topo_ring_order(t, below(100), order, NULL), "ring");
    for (uint32_t i = 0; NULL != order && i < t->n_ranks; i++) {
        uint32_t nic = gp_topo_nic_of(t, i, below(100));

        sum += order[i];
        gp_check(GP_TOPO_NONE == nic || nic < t->n_nics, "NIC %u", nic);
    }
    gp_check(sum == (uint64_t) t->n_ranks * (t->n_ranks - (0 != t->n_ranks)) / 2, "ring's sum");
    gp_topo_comm_desc(t, GP_EXEC_CUDA, &d);
    gp_topo_comm_desc(t, GP_EXEC_HOST, &d);
    free(text);
    free(order);
}

static void test_fuzz(void)
{
    static const char likely[] = "=:.,-# \n0123456789abcdefgpuniclnkrwsm";
    uint32_t taken = 0, refused = 0, rounds = NULL != getenv("GP_CHECK_QUICK") ? 2000 : 20000;

    gp_group_begin("truncated and damaged files: read or refused with one message");
    for (uint32_t round = 0; round < rounds; round++) {
        char text[MOST_TEXT], *copy;
        size_t bytes = load(files[round % N_FILES], text);
        uint32_t damages = below(4);
        gp_topo_t *topo;
        gp_status_t status;

        bytes = 0 == below(3) ? below((uint32_t) bytes + 1) : bytes;
        for (uint32_t i = 0; i < damages && bytes > 0; i++) {
            text[below((uint32_t) bytes)] = 0 == below(4) ? (char) below(256)
                                                          : likely[below(sizeof(likely) - 1)];
        }
        /* Its own allocation, so that a byte read too far is seen. */
        copy = malloc(bytes + (0 == bytes));
        if (NULL == copy) {
            gp_bail_out("out of memory");
        }
        memcpy(copy, text, bytes);
        status = parse(copy, bytes, &topo);
        if (GP_OK == status) {
            taken++;
            gp_check(0 == n_logged, "round %u: taken, with a message: %s", round, logged);
            ask_everything(topo);
            gp_topo_free(topo);
        } else {
            refused++;
            gp_check(GP_ERR_INVALID == status && 1 == n_logged && NULL == topo
                         && 0 == strncmp(logged, "here:", 5),
                     "round %u: status %d, %u messages: %s", round, status, n_logged, logged);
        }
        free(copy);
    }
    gp_check(taken > rounds / 20 && refused > rounds / 20, "%u taken, %u refused", taken, refused);
    gp_group_end();
}

static void test_describe(void)
{
    char text[MOST_TEXT], *drawn;
    gp_topo_t *t;

    if (GP_OK != parse(text, load("pcie-2-sockets.topo", text), &t)) {
        gp_bail_out("%s", logged);
    }
    drawn = write_text(t, gp_topo_describe);
    gp_ok(NULL != strstr(drawn, "node pcie, 32 cores\n  NUMA 0\n    switch 0000:17:00.0\n"
                                "      switch 0000:18:00.0\n        gpu 0000:1a:00.0 ")
              && NULL != strstr(drawn, "      switch 0000:1d:00.0\n        nic 0000:1e:00.0 eth0, "
                                       "1250 bytes/us\n  NUMA 1\n    gpu 0000:65:00.0 ")
              && NULL != strstr(drawn, "multiprocessors, rank 3\n")
              && NULL != strstr(drawn, "\n    2    PIX    SYS      -    SYS\n"),
          "the drawing: switches, devices, ranks, matrix");
    free(drawn);
    gp_topo_free(t);
}

/* The recorded machine, and the same with an NVSwitch in place of another bridge. */
static void test_hwloc(void)
{
    char path[4096], text[MOST_TEXT], *bridge;
    gp_topo_t *t = gp_topo_new();
    gp_status_t status;

    path_of("a100-hwloc.xml", path, sizeof(path));
    n_logged = 0;
    status = gp_topo_hwloc_add(t, path);
    if (GP_ERR_UNSUPPORTED == status) {
        gp_ok(1 == n_logged && 0 == t->n_nodes, "without hwloc: one message");
        gp_topo_free(t);
        return;
    }
    if (gp_ok(GP_OK == status && 1 == t->n_nodes && 5 == t->n_gpus && 2 == t->n_nics,
              "hwloc XML: one node, five GPUs, two NICs")) {
        gp_ok(0 == strcmp(t->nodes[0].name, "a100-box") && 2 == t->nodes[0].n_numa
                  && 4 == t->nodes[0].n_cores,
              "hwloc XML: name, NUMA nodes, cores");
        gp_ok(GP_TOPO_PIX == gp_topo_gpu_path(t, 0, 1).type
                  && GP_TOPO_PHB == gp_topo_gpu_path(t, 0, 2).type
                  && GP_TOPO_SYS == gp_topo_gpu_path(t, 0, 3).type
                  && GP_TOPO_PXB == gp_topo_gpu_path(t, 3, 4).type
                  && GP_TOPO_PXB == gp_topo_gpu_path(t, 4, 3).type,
              "hwloc XML: paths over one switch, a host bridge, sockets, two switches");
        gp_ok(80 == t->gpus[0].capability && !gp_topo_uuid_known(&t->gpus[0])
                  && 108 == t->gpus[2].sm_count && gp_topo_uuid_known(&t->gpus[2])
                  && 0xef == t->gpus[2].uuid[15] && 0 == t->gpus[0].nvswitch_links,
              "hwloc XML: capability, and what its GPU plugins recorded");
        gp_ok(0 == strcmp(t->nics[0].name, "mlx5_0") && 0 == strcmp(t->nics[1].name, "eth0")
                  && GP_TOPO_PIX == gp_topo_nic_type(t, 1, 0)
                  && GP_TOPO_SYS == gp_topo_nic_type(t, 1, 1),
              "hwloc XML: NICs and how near they are");
    }
    gp_topo_free(t);

    load("a100-hwloc.xml", text);
    bridge = strstr(text, "[8086:22a3]");
    if (NULL == bridge) {
        gp_bail_out("no bridge to change");
    }
    memcpy(bridge, "[10de:22a3]", 11);
    snprintf(path, sizeof(path), "test_topo_text.%ld.xml", (long) getpid());
    {
        FILE *out = fopen(path, "w");

        if (NULL == out || EOF == fputs(text, out) || 0 != fclose(out)) {
            gp_bail_out("cannot write %s", path);
        }
    }
    t = gp_topo_new();
    gp_ok(GP_OK == gp_topo_hwloc_add(t, path) && 12 == t->gpus[4].nvswitch_links
              && GP_TOPO_NVSWITCH == gp_topo_gpu_path(t, 0, 4).type,
          "hwloc XML: an NVSwitch joins the GPUs");
    gp_topo_free(t);
    remove(path);

    t = gp_topo_new();
    n_logged = 0;
    path_of("v100-nv2.topo", path, sizeof(path));
    gp_ok(GP_ERR_INVALID == gp_topo_hwloc_add(t, path) && 0 == t->n_nodes && 1 == n_logged,
          "hwloc XML: a file that is none");
    gp_topo_free(t);
    t = gp_topo_new();
    gp_ok(GP_OK == gp_topo_hwloc_add(t, NULL) && 1 == t->n_nodes && 0 != t->nodes[0].n_cores,
          "hwloc: this machine");
    gp_topo_free(t);
}

int main(void)
{
    gp_tap_begin();
    gp_log_set_sink(keep_log);
    test_round_trip();
    test_bad();
    test_describe();
    test_fuzz();
    test_hwloc();
    return gp_tap_end();
}
