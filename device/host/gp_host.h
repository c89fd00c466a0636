/*
 * gp_host.h - the host executor: interprets programs in plain C, resumably, without threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_HOST_H
#define GP_HOST_H

#include "device/gp_exec.h"
#include "planner/gp_program.h"
#include "transport/gp_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_host_exec gp_host_exec_t;

/*
 * Bind the programs of this rank (one per channel of the set, same order) to a connection set. Programs
 * and set stay the caller's and must outlive the executor. GP_ERR_INVALID when they do not fit together.
 */
gp_status_t gp_host_exec_create(const gp_program_t *const *programs, gp_connset_t *set,
                                gp_host_exec_t **exec_p);
void gp_host_exec_destroy(gp_host_exec_t *exec);

/* Begin a call: work is copied. Runs nothing that could wait. One call at a time. */
gp_status_t gp_host_exec_start(gp_host_exec_t *exec, const gp_work_t *work);

/*
 * Do what can be done now. GP_OK: the call is complete (output written, every head posted);
 * GP_AGAIN: it would wait, *progressed (may be NULL) tells whether anything moved; errors otherwise.
 */
gp_status_t gp_host_exec_progress(gp_host_exec_t *exec, int *progressed);

/* The first wait of the call in flight; kind GP_WAIT_NONE when it does not wait. */
void gp_host_exec_waits_for(const gp_host_exec_t *exec, gp_wait_info_t *info);

/* Give up the call in flight: progress returns GP_ERR_ABORTED from now on. */
void gp_host_exec_abort(gp_host_exec_t *exec);

void gp_host_exec_record(const gp_host_exec_t *exec, gp_exec_record_t *record);

#ifdef __cplusplus
}
#endif

#endif /* GP_HOST_H */
