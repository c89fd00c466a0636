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
    unsigned long long step = NULL != info ? (unsigned long long) info->step : 0;

    switch (NULL != info ? info->kind : GP_WAIT_NONE) {
    case GP_WAIT_DATA:
        snprintf(text, bytes, "channel %u step %llu: waiting for data from rank %u", info->channel,
                 step, info->peer);
        break;
    case GP_WAIT_CREDIT:
        snprintf(text, bytes, "channel %u step %llu: waiting for a free slot of rank %u",
                 info->channel, step, info->peer);
        break;
    case GP_WAIT_LAUNCH:
        snprintf(text, bytes, "the kernel on the GPU to end");
        break;
    case GP_WAIT_RANK:
        snprintf(text, bytes, "rank %u to enter the call", info->peer);
        break;
    case GP_WAIT_TURN:
        snprintf(text, bytes, "a call of another communicator on the same GPU to end");
        break;
    default:
        snprintf(text, bytes, "nothing in particular");
        break;
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
