/*
 * coll_gpuproto_gate.c - which launches are wide, and the wait before one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <sched.h>
#include <string.h>

#include "opal/runtime/opal_progress.h"

#define POLLS_PER_PROGRESS 256u
#define POLLS_PER_WATCH 4096u

/* A block of so few threads finds room beside the largest one: a quarter of an SM's registers. */
#define SMALL_BLOCK_THREADS 256u

/*
 * One or two blocks a rank always find room, and so do more small ones, as long as all ranks of the GPU
 * together stay within an eighth of it.
 */
bool mca_coll_gpuproto_is_wide(const mca_coll_gpuproto_class_t *cls, const gp_work_t *work)
{
    uint64_t blocks = (uint64_t) work->geom.channels * cls->desc.ranks_per_gpu;

    return NULL != cls->gate && work->geom.channels > 2
           && (blocks > cls->desc.sm_count / 8 || work->threads > SMALL_BLOCK_THREADS);
}

gp_status_t mca_coll_gpuproto_gate_pass(mca_coll_gpuproto_module_t *m,
                                        mca_coll_gpuproto_class_t *cls, gp_wait_info_t *info)
{
    mca_coll_gpuproto_watch_t watch = {0};
    uint32_t n_ranks = (uint32_t) ompi_comm_size(m->comm);
    gp_status_t status;

    memset(info, 0, sizeof(*info));
    gp_gate_arrive(cls->gate);
    for (uint32_t polls = 1; GP_AGAIN == (status = gp_gate_try(cls->gate)); polls++) {
        gp_cpu_relax();
        if (cls->yield) {
            sched_yield();
        }
        if (0 == polls % POLLS_PER_PROGRESS) {
            opal_progress();
        }
        if (0 == polls % POLLS_PER_WATCH) {
            info->peer = gp_gate_missing(cls->gate);
            info->kind = info->peer < n_ranks ? GP_WAIT_RANK : GP_WAIT_TURN;
            if (mca_coll_gpuproto_watch(&watch, m->comm, "before a wide launch", info)) {
                gp_gate_leave(cls->gate);
                return GP_ERR_ABORTED;
            }
        }
    }
    return status;
}
