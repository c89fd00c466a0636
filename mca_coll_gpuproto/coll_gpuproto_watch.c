/*
 * coll_gpuproto_watch.c - the watchdog: says what a call waits for, and gives up if told to.
 *
 * Late ranks are legal, so by default it only warns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <stdio.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

void mca_coll_gpuproto_describe_wait(const gp_wait_info_t *info, char *text, size_t bytes)
{
    static const char *const kinds[] = {"nothing", "data from", "a free slot of", "the GPU"};

    if (NULL == info || GP_WAIT_NONE == info->kind) {
        snprintf(text, bytes, "nothing in particular");
    } else if (GP_WAIT_LAUNCH == info->kind) {
        snprintf(text, bytes, "the kernel on the GPU to end");
    } else {
        snprintf(text, bytes, "channel %u step %llu: waiting for %s rank %u", info->channel,
                 (unsigned long long) info->step,
                 kinds[info->kind <= GP_WAIT_LAUNCH ? info->kind : 0], info->peer);
    }
}

bool mca_coll_gpuproto_watch_due(const mca_coll_gpuproto_watch_t *watch)
{
    return 0 != watch->start_s && mca_coll_gpuproto_component.warn_after > 0
           && seconds() >= watch->next_warn_s;
}

int mca_coll_gpuproto_watch(mca_coll_gpuproto_watch_t *watch, struct ompi_communicator_t *comm,
                            const char *what, const gp_wait_info_t *info)
{
    const mca_coll_gpuproto_component_t *c = &mca_coll_gpuproto_component;
    double now = seconds();

    if (0 == watch->start_s) {
        watch->start_s = now;
        watch->next_warn_s = now + c->warn_after;
        return 0;
    }
    if (c->warn_after > 0 && now >= watch->next_warn_s) {
        char text[128];

        mca_coll_gpuproto_describe_wait(info, text, sizeof(text));
        opal_output(0, "coll/gpuproto: communicator %u, rank %d, %s: waiting for %.0f s: %s",
                    mca_coll_gpuproto_cid(comm), ompi_comm_rank(comm), what, now - watch->start_s,
                    text);
        watch->next_warn_s = now + 10.0 * c->warn_after;
    }
    return c->timeout > 0 && now - watch->start_s >= c->timeout;
}
