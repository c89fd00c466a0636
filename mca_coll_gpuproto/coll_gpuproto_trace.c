/*
 * coll_gpuproto_trace.c - one line per call, and where the lower layers' messages go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FIFO memory that this rank gave to the class's connections so far. */
static size_t fifo_bytes(const mca_coll_gpuproto_class_t *cls)
{
    size_t bytes = 0;

    for (uint32_t a = 0; a < GP_ALGO_CUSTOM; a++) {
        for (uint32_t p = 0; p < GP_PROTO_COUNT; p++) {
            bytes += NULL != cls->sets[a][p] ? cls->sets[a][p]->conns->fifo_bytes : 0;
        }
    }
    return bytes;
}

void mca_coll_gpuproto_trace(const mca_coll_gpuproto_module_t *m,
                             const mca_coll_gpuproto_class_t *cls, const gp_exec_record_t *record,
                             const gp_plan_t *plan, const struct ompi_datatype_t *dtype,
                             const struct ompi_op_t *op, size_t count, const char *reason)
{
    char what[320];

    snprintf(what, sizeof(what), "rank=%d comm=%u seq=%llu op=%s type=%s count=%zu bytes=%zu",
             ompi_comm_rank(m->comm), mca_coll_gpuproto_cid(m->comm), m->seq, op->o_name,
             dtype->name, count, count * dtype->super.size);
    if (NULL == record) {
        fprintf(stderr, "gpuproto-trace %s declined reason=\"%s\"\n", what, reason);
        return;
    }
    fprintf(stderr,
            "gpuproto-trace %s algorithm=%s protocol=%s channels=%u threads=%u chunk=%llu "
            "loops=%llu executor=%s predicted_us=%.1f fifo_bytes=%zu reason=\"%s\"\n",
            what, gp_algorithm_name(record->algorithm), gp_protocol_name(record->protocol),
            record->channels, record->threads, (unsigned long long) record->chunk_elems,
            (unsigned long long) record->loops,
            gp_executor_name((uint32_t) mca_coll_gpuproto_stats.last_executor),
            (double) plan->predicted_ns / 1000, fifo_bytes(cls), reason);
}

/* The same arguments as the topics of the help file take, for when the file is not where it should be. */
static const char *const short_texts[][2] = {
    {"bad value", "%s: the value \"%s\" is not allowed (%s), %s is used"},
    {"tuning file", "%s: \"%s\" cannot be read: %s"},
    {"declined", "communicator %u: allreduce is declined: %s"},
    {"call failed", "communicator %u, rank %d: an allreduce was given up, it waited for: %s (%d)"},
    {"still failed", "communicator %u: an earlier allreduce was given up, it waited for: %s"},
};

/*
 * Not opal_show_help(): it hands the text to mpirun, which loses it when the job ends soon after, and
 * folds the second message of a topic into a count.
 */
void mca_coll_gpuproto_say(const char *topic, ...)
{
    va_list args;
    char *text;

    va_start(args, topic);
    text = opal_show_help_vstring(MCA_COLL_GPUPROTO_HELP, topic, true, args);
    va_end(args);
    if (NULL != text) {
        fprintf(stderr, "%s", text);
        free(text);
        return;
    }
    for (size_t i = 0; i < sizeof(short_texts) / sizeof(short_texts[0]); i++) {
        if (0 == strcmp(topic, short_texts[i][0])) {
            char line[512];

            va_start(args, topic);
            vsnprintf(line, sizeof(line), short_texts[i][1], args);
            va_end(args);
            fprintf(stderr, "coll/gpuproto: %s\n", line);
        }
    }
}

void mca_coll_gpuproto_log_sink(gp_log_level_t level, const char *text)
{
    if (level <= GP_LOG_WARN) {
        opal_output(0, "coll/gpuproto: %s", text);
    } else {
        opal_output_verbose(GP_LOG_INFO == level ? 10 : 50,
                            ompi_coll_base_framework.framework_output, "coll/gpuproto: %s", text);
    }
}
