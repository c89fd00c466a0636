/*
 * gp_status.h - the result codes of every gpuproto function that can fail.
 *
 * GP_OK is zero, errors are negative. GP_AGAIN and GP_DECLINED are not errors: "would wait" and
 * "not ours, the previous component does it". Whoever first detects an error logs it; callers only
 * propagate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_STATUS_H
#define GP_STATUS_H

typedef enum gp_status {
    GP_OK = 0,
    GP_AGAIN = 1,            /* would wait: call again */
    GP_DECLINED = 2,         /* not ours by rule; decided alike on all ranks */
    GP_ERR_NO_MEMORY = -1,   /* host or device memory exhausted */
    GP_ERR_INVALID = -2,     /* an argument outside its stated range: a bug of the caller */
    GP_ERR_UNSUPPORTED = -3, /* the machine lacks what was asked for */
    GP_ERR_SYSTEM = -4,      /* operating system call failed (errno logged) */
    GP_ERR_CUDA = -5,        /* driver call failed (CUresult logged) */
    GP_ERR_PEER = -6,        /* a peer failed or disagreed */
    GP_ERR_ABORTED = -7      /* the wait was aborted; the communicator stays failed */
} gp_status_t;

#endif /* GP_STATUS_H */
