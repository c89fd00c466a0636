/*
 * coll_gpuproto_component.c - registration: parameters, their checking, open and close.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/proc.h"

#include "mca_coll_gpuproto/coll_gpuproto_build.h"

#define PRIORITY_DEFAULT 95
#define MAX_FIFO_MIB_DEFAULT 64
#define WARN_AFTER_DEFAULT 60

static int register_params(void);
static int open_component(void);
static int close_component(void);
static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority);

mca_coll_gpuproto_component_t mca_coll_gpuproto_component = {
    .super = {
        .collm_version = {
            MCA_COLL_GPUPROTO_COLL_VERSION,
            .mca_component_name = "gpuproto",
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
            .mca_open_component = open_component,
            .mca_close_component = close_component,
            .mca_register_component_params = register_params,
        },
        .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
        .collm_init_query = mca_coll_gpuproto_init_query,
        .collm_comm_query = comm_query,
    },
};

#define COMPONENT (&mca_coll_gpuproto_component)

static void reg(const char *name, const char *help, mca_base_var_type_t type, int level,
                void *storage)
{
    (void) mca_base_component_var_register(&COMPONENT->super.collm_version, name, help, type, NULL,
                                           0, 0, (mca_base_var_info_lvl_t) level,
                                           MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static void bad_value(const char *name, const char *value, const char *allowed,
                      const char *fallback)
{
    if (0 == OPAL_PROC_MY_NAME.vpid) { /* the others have the same from the command line */
        mca_coll_gpuproto_say("bad value", name, value, allowed, fallback);
    } else {
        opal_output_verbose(1, ompi_coll_base_framework.framework_output,
                            "coll/gpuproto: %s: \"%s\" is not allowed (%s), using %s", name, value,
                            allowed, fallback);
    }
}

/* A word out of a list; the index, or -1 for the first word "auto" and for a bad value (reported). */
static int word_value(const char *name, char **text, const char *const *words, const char *allowed)
{
    if (NULL == *text || 0 == strcasecmp(*text, "auto")) {
        return GP_AUTO;
    }
    for (int i = 0; NULL != words[i]; i++) {
        if (0 == strcasecmp(*text, words[i])) {
            return i;
        }
    }
    bad_value(name, *text, allowed, "auto");
    return GP_AUTO;
}

static void range_check(const char *name, int *value, int low, int high, int fallback)
{
    char text[32], allowed[64], instead[32];

    if (*value >= low && *value <= high) {
        return;
    }
    snprintf(text, sizeof(text), "%d", *value);
    snprintf(allowed, sizeof(allowed), "%d to %d", low, high);
    snprintf(instead, sizeof(instead), "%d", fallback);
    bad_value(name, text, allowed, instead);
    *value = fallback;
}

static void buffer_check(const char *name, unsigned long long *value)
{
    char text[32];

    /* Eight slots of at least one pair of LL128 lines; a slot is at most 1 GiB. */
    if (0 == *value || (*value >= 8 * 256 && *value <= 8ull << 30)) {
        return;
    }
    snprintf(text, sizeof(text), "%llu", *value);
    bad_value(name, text, "0 (the planner decides) or 2048 to 8589934592 bytes", "0");
    *value = 0;
}

/* FNV-1a: everything that must be the same on all ranks for their plans to be the same, but for the
 * tuning file, which is compared beside it. */
static unsigned long long hash_params(void)
{
    char text[512];
    unsigned long long h = 14695981039346656037ull;
    int n = snprintf(text, sizeof(text), "%d %d %d %d %d %d %d %d %llu %llu %llu %d %d %d %d %d %d",
                     COMPONENT->algorithm_value, COMPONENT->protocol_value,
                     COMPONENT->executor_value, COMPONENT->host_buffers_value,
                     COMPONENT->min_channels, COMPONENT->max_channels, COMPONENT->threads,
                     COMPONENT->ll128_unsafe, COMPONENT->buffsize, COMPONENT->ll_buffsize,
                     COMPONENT->ll128_buffsize, COMPONENT->max_fifo_mib, (int) COMPONENT->named,
                     (int) COMPONENT->enabled, COMPONENT->priority, COMPONENT->other_jobs,
                     COMPONENT->transports_value);

    for (int i = 0; i < n && i < (int) sizeof(text); i++) {
        h = (h ^ (unsigned char) text[i]) * 1099511628211ull;
    }
    return h;
}

/* For ranks whose messages are the same as rank 0's. */
static void quiet_sink(gp_log_level_t level, const char *text)
{
    mca_coll_gpuproto_log_sink(level <= GP_LOG_WARN ? GP_LOG_INFO : level, text);
}

/* Ranks with different files decline together, by hash_params(): a file that one cannot read is enough. */
static void read_tune_file(void)
{
    const char *path = COMPONENT->tune_file, *why;
    int loud = 0 == OPAL_PROC_MY_NAME.vpid;
    gp_status_t status;

    if (NULL == path || '\0' == path[0]) {
        return;
    }
    gp_log_set_sink(loud ? mca_coll_gpuproto_log_sink : quiet_sink);
    status = gp_tune_read(path, &COMPONENT->tune);
    why = GP_ERR_SYSTEM != status ? "out of memory"
          : EINVAL == errno       ? "not a regular file"
                                  : strerror(errno);
    gp_log_set_sink(mca_coll_gpuproto_log_sink);
    if (GP_OK == status) {
        return;
    }
    COMPONENT->tune = NULL;
    if (loud) {
        mca_coll_gpuproto_say("tuning file", "coll_gpuproto_tune_file", path, why);
    } else {
        opal_output_verbose(1, ompi_coll_base_framework.framework_output,
                            "coll/gpuproto: coll_gpuproto_tune_file: \"%s\" cannot be read: %s",
                            path, why);
    }
}

static void check_params(void)
{
    static const char *const algorithms[] = {"ring", "tree", "flat", NULL};
    static const char *const protocols[] = {"ll", "ll128", "simple", NULL};
    static const char *const executors[] = {"host", "cuda", NULL};
    static const char *const switches[] = {"0", "1", NULL};
    static const char *const transports[] = {"ucx", NULL};

    COMPONENT->algorithm_value = word_value("coll_gpuproto_algorithm", &COMPONENT->algorithm,
                                            algorithms, "auto, ring, tree or flat");
    COMPONENT->protocol_value = word_value("coll_gpuproto_protocol", &COMPONENT->protocol,
                                           protocols, "auto, ll, ll128 or simple");
    COMPONENT->executor_value =
        word_value("coll_gpuproto_executor", &COMPONENT->executor, executors, "auto, cuda or host");
    COMPONENT->host_buffers_value = word_value("coll_gpuproto_host_buffers",
                                               &COMPONENT->host_buffers, switches, "auto, 0 or 1");
    COMPONENT->transports_value = word_value("coll_gpuproto_transports", &COMPONENT->transports,
                                             transports, "auto or ucx");
    range_check("coll_gpuproto_priority", &COMPONENT->priority, 0, 100, PRIORITY_DEFAULT);
    range_check("coll_gpuproto_min_channels", &COMPONENT->min_channels, 0, 64, 0);
    range_check("coll_gpuproto_max_channels", &COMPONENT->max_channels, 0, 64, 0);
    range_check("coll_gpuproto_threads", &COMPONENT->threads, 0, 1024, 0);
    if (0 != COMPONENT->threads % 32) {
        char text[32];

        snprintf(text, sizeof(text), "%d", COMPONENT->threads);
        bad_value("coll_gpuproto_threads", text, "multiples of 32 up to 1024", "0");
        COMPONENT->threads = 0;
    }
    range_check("coll_gpuproto_max_fifo_mib", &COMPONENT->max_fifo_mib, 1, 65536,
                MAX_FIFO_MIB_DEFAULT);
    range_check("coll_gpuproto_trace", &COMPONENT->trace, 0, 1, 0);
    range_check("coll_gpuproto_timeout", &COMPONENT->timeout, 0, 1000000, 0);
    range_check("coll_gpuproto_warn_after", &COMPONENT->warn_after, 0, 1000000, WARN_AFTER_DEFAULT);
    range_check("coll_gpuproto_other_jobs", &COMPONENT->other_jobs, 0, 1, 0);
    range_check("coll_gpuproto_ll128_unsafe", &COMPONENT->ll128_unsafe, 0, 1, 0);
    if (COMPONENT->min_channels > 0 && COMPONENT->max_channels > 0
        && COMPONENT->min_channels > COMPONENT->max_channels) {
        range_check("coll_gpuproto_min_channels (at most coll_gpuproto_max_channels)",
                    &COMPONENT->min_channels, 0, COMPONENT->max_channels, 0);
    }
    buffer_check("coll_gpuproto_buffsize", &COMPONENT->buffsize);
    buffer_check("coll_gpuproto_ll_buffsize", &COMPONENT->ll_buffsize);
    buffer_check("coll_gpuproto_ll128_buffsize", &COMPONENT->ll128_buffsize);
    read_tune_file();
}

static int register_params(void)
{
    COMPONENT->priority = PRIORITY_DEFAULT;
    reg("priority", "Priority of gpuproto; above 90 it comes before every component of Open MPI",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &COMPONENT->priority);
    COMPONENT->complete_selection = true;
    reg("complete_selection",
        "Add the components that a selection such as --mca coll gpuproto lacks, so that it works",
        MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &COMPONENT->complete_selection);
    COMPONENT->algorithm = "auto";
    reg("algorithm", "Algorithm: auto, ring, tree or flat. Honoured or refused, never replaced",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &COMPONENT->algorithm);
    COMPONENT->protocol = "auto";
    reg("protocol", "Protocol: auto, ll, ll128 or simple. Honoured or refused, never replaced",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &COMPONENT->protocol);
    COMPONENT->executor = "auto";
    reg("executor", "Executor: auto (by where the buffers are), cuda or host",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &COMPONENT->executor);
    COMPONENT->host_buffers = "auto";
    reg("host_buffers",
        "Take calls on host buffers: 0, 1, or auto (when gpuproto is named in the coll list and no "
        "rank of the communicator uses a GPU)",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &COMPONENT->host_buffers);
    COMPONENT->transports = "auto";
    reg("transports", "auto: shared memory where ranks have it, UCX elsewhere; ucx: UCX everywhere",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_6, &COMPONENT->transports);
    COMPONENT->host_id = "";
    reg("host_id", "Name of this host, where the automatic one would be wrong (empty: automatic)",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_9, &COMPONENT->host_id);
    COMPONENT->tune_file = "";
    reg("tune_file",
        "Tuning file: measured choices in place of the automatic ones, the same on all ranks; "
        "gpuproto_tune writes one (empty: none)",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &COMPONENT->tune_file);
    COMPONENT->min_channels = 0;
    reg("min_channels", "Least channels of a call (0: no wish)", MCA_BASE_VAR_TYPE_INT,
        OPAL_INFO_LVL_5, &COMPONENT->min_channels);
    COMPONENT->max_channels = 0;
    reg("max_channels", "Most channels of a call (0: no wish)", MCA_BASE_VAR_TYPE_INT,
        OPAL_INFO_LVL_5, &COMPONENT->max_channels);
    COMPONENT->threads = 0;
    reg("threads", "CUDA threads of a block, a multiple of 32 (0: the planner decides)",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &COMPONENT->threads);
    COMPONENT->ll128_unsafe = 0;
    reg("ll128_unsafe", "1: let protocol ll128 be forced where its rule forbids it",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_9, &COMPONENT->ll128_unsafe);
    COMPONENT->buffsize = 0;
    reg("buffsize", "FIFO bytes of a Simple connection, 8 slots together (0: the planner decides)",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, OPAL_INFO_LVL_6, &COMPONENT->buffsize);
    COMPONENT->ll_buffsize = 0;
    reg("ll_buffsize", "FIFO bytes of an LL connection (0: the planner decides)",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, OPAL_INFO_LVL_6, &COMPONENT->ll_buffsize);
    COMPONENT->ll128_buffsize = 0;
    reg("ll128_buffsize", "FIFO bytes of an LL128 connection (0: the planner decides)",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, OPAL_INFO_LVL_6, &COMPONENT->ll128_buffsize);
    COMPONENT->max_fifo_mib = MAX_FIFO_MIB_DEFAULT;
    reg("max_fifo_mib", "Most FIFO memory per rank and communicator, MiB", MCA_BASE_VAR_TYPE_INT,
        OPAL_INFO_LVL_5, &COMPONENT->max_fifo_mib);
    COMPONENT->other_jobs = 0;
    reg("other_jobs",
        "1: other jobs use gpuproto on the same GPUs; calls that fill a GPU take turns with theirs",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &COMPONENT->other_jobs);
    COMPONENT->trace = 0;
    reg("trace", "1: print one machine-readable line per call on stderr", MCA_BASE_VAR_TYPE_INT,
        OPAL_INFO_LVL_4, &COMPONENT->trace);
    COMPONENT->timeout = 0;
    reg("timeout", "Seconds after which a waiting call is given up (0: never)",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &COMPONENT->timeout);
    COMPONENT->warn_after = WARN_AFTER_DEFAULT;
    reg("warn_after", "Seconds after which a waiting call says what it waits for (0: never)",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &COMPONENT->warn_after);
    if (gp_cuda_compiled()) {
        static char text[128];

        snprintf(text, sizeof(text), "yes, for sm %s", mca_coll_gpuproto_cuda_archs);
        COMPONENT->compiled_cuda = text;
    } else {
        COMPONENT->compiled_cuda = "no: host executor only";
    }
    (void) mca_base_component_var_register(
        &COMPONENT->super.collm_version, "cuda_kernels",
        "Whether CUDA kernels are compiled in (information only)", MCA_BASE_VAR_TYPE_STRING, NULL,
        0, MCA_BASE_VAR_FLAG_DEFAULT_ONLY, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_CONSTANT,
        &COMPONENT->compiled_cuda);
    COMPONENT->compiled_ucx = gp_ucx_compiled() ? "yes" : "no: one host only";
    (void) mca_base_component_var_register(
        &COMPONENT->super.collm_version, "ucx", "Whether UCX is compiled in (information only)",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, MCA_BASE_VAR_FLAG_DEFAULT_ONLY, OPAL_INFO_LVL_3,
        MCA_BASE_VAR_SCOPE_CONSTANT, &COMPONENT->compiled_ucx);
    mca_coll_gpuproto_register_pvars();
    return OMPI_SUCCESS;
}

/* The structures of Open MPI's inside differ between releases: run only in the one we were built for. */
static bool right_release(void)
{
    char loaded[MPI_MAX_LIBRARY_VERSION_STRING], wanted[32];
    const char *at;
    int len = 0;

    if (MPI_SUCCESS != MPI_Get_library_version(loaded, &len)) {
        return false;
    }
    snprintf(wanted, sizeof(wanted), "v%d.%d.", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    at = strstr(loaded, wanted);
#if OMPI_MAJOR_VERSION >= 5
    snprintf(wanted, sizeof(wanted), "v%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
             OMPI_RELEASE_VERSION);
    at = strstr(loaded, wanted);
#endif
    if (NULL == at) {
        loaded[strcspn(loaded, ",\n")] = '\0';
        if (0 == OPAL_PROC_MY_NAME.vpid) {
            opal_output(
                0, "coll/gpuproto was built for Open MPI %d.%d.%d and is not used by this one (%s)",
                OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION, loaded);
        }
        return false;
    }
    return true;
}

static int open_component(void)
{
    gp_log_set_sink(mca_coll_gpuproto_log_sink);
    opal_show_help_add_dir(mca_coll_gpuproto_pkgdatadir);
    if (NULL != getenv("GPUPROTO_HELP_DIR")) { /* a build that is not installed */
        opal_show_help_add_dir(getenv("GPUPROTO_HELP_DIR"));
    }
    COMPONENT->enabled = right_release();
    if (!COMPONENT->enabled) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    check_params();
    COMPONENT->named = mca_coll_gpuproto_is_named();
    COMPONENT->params_hash = hash_params();
    mca_coll_gpuproto_publish();
    if (COMPONENT->complete_selection) {
        mca_coll_gpuproto_complete_selection();
    }
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    if (COMPONENT->enabled) {
        mca_coll_gpuproto_stage_finalize();
        gp_cuda_finalize();
        gp_ucx_finalize();
        gp_shm_arena_finalize();
        gp_log_set_sink(NULL);
    }
    gp_tune_free(COMPONENT->tune); /* plans name its rules: no communicator is left by now */
    COMPONENT->tune = NULL;
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority)
{
    mca_coll_base_module_t *module = mca_coll_gpuproto_comm_query(comm, priority);

    if (NULL != module) {
        ((mca_coll_gpuproto_module_t *) module)->params.tune = COMPONENT->tune;
    }
    return module;
}
