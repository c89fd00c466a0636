/*
 * coll_gpuproto_presence.c - a rank without gpuproto, or with other parameters, is known, not waited for.
 *
 * Every process publishes one line at start-up, before Open MPI exchanges connection data. A rank looks
 * its peers' lines up locally at the first call on a communicator; all ranks see the same lines and so
 * come to the same answer without a message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/group/group.h"
#include "ompi/proc/proc.h"

#include "mca_coll_gpuproto/coll_gpuproto_build.h"

#define PRESENCE_KEY "coll.gpuproto.presence"
#define TUNE " tune="

static void my_line(char *line, size_t bytes)
{
    snprintf(line, bytes, "%s ompi=%d.%d.%d params=%016llx" TUNE "%016llx",
             mca_coll_gpuproto_version, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
             OMPI_RELEASE_VERSION, mca_coll_gpuproto_component.params_hash,
             (unsigned long long) gp_tune_hash(mca_coll_gpuproto_component.tune));
}

/* Lines that are the same but for the tuning file. */
static bool only_tune_differs(const char *line, const char *mine)
{
    const char *end = strstr(mine, TUNE);

    return NULL != end && 0 == strncmp(line, mine, (size_t) (end - mine) + strlen(TUNE));
}

void mca_coll_gpuproto_publish(void)
{
    char line[128];
    int rc;

    if (!mca_coll_gpuproto_in_job()) {
        return; /* not in an MPI job */
    }
    my_line(line, sizeof(line));
    OPAL_MODEX_SEND_VALUE(rc, MCA_COLL_GPUPROTO_GLOBAL, PRESENCE_KEY, line,
                          MCA_COLL_GPUPROTO_STRING);
    (void) rc; /* unpublished is absent: all ranks decline together */
}

bool mca_coll_gpuproto_all_present(struct ompi_communicator_t *comm, char *reason, size_t bytes,
                                   int *absent)
{
    char mine[128];
    int n = ompi_comm_size(comm);

    my_line(mine, sizeof(mine));
    for (int i = 0; i < n; i++) {
        opal_process_name_t name;
        char *line = NULL;
        bool same, tune;
        int rc;

        if (i == ompi_comm_rank(comm)) {
            continue;
        }
        *absent = i;
        /* A peer that is not connected yet is known by name only. */
        ompi_proc_t *proc = ompi_group_get_proc_ptr_raw(comm->c_local_group, i);
        name = ompi_proc_is_sentinel(proc) ? ompi_proc_sentinel_to_name((uintptr_t) proc)
                                           : proc->super.proc_name;
        OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, PRESENCE_KEY, &name, &line, MCA_COLL_GPUPROTO_STRING);
        if (OPAL_SUCCESS != rc || NULL == line) {
            OPAL_MODEX_RECV_VALUE_IMMEDIATE(rc, PRESENCE_KEY, &name, &line,
                                            MCA_COLL_GPUPROTO_STRING);
        }
        if (OPAL_SUCCESS != rc || NULL == line) {
            snprintf(reason, bytes, "rank %d has not loaded gpuproto", i);
            return false;
        }
        same = 0 == strcmp(line, mine);
        tune = !same && only_tune_differs(line, mine);
        free(line);
        if (tune) {
            snprintf(reason, bytes,
                     "rank %d has another tuning file (coll_gpuproto_tune_file), or none", i);
            return false;
        }
        if (!same) {
            snprintf(reason, bytes, "rank %d runs gpuproto with other parameters or of another "
                     "version", i);
            return false;
        }
    }
    return true;
}
