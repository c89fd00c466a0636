/*
 * gp_ucx.h - a net over UCX: one context and worker for the process, one endpoint a peer process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_UCX_H
#define GP_UCX_H

#include "transport/gp_net.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GP_UCX_ADDRESS_BYTES 1024u

/* UCX was compiled in. */
int gp_ucx_compiled(void);

/*
 * The process's net; made at first call, ended by gp_ucx_finalize(). GP_ERR_UNSUPPORTED (logged) without
 * UCX, or when the library that was loaded is older than what this was built with. threads: calls may
 * come from several threads (one at a time inside, nothing waits).
 */
gp_status_t gp_ucx_net(int threads, gp_net_t **net_p);
void gp_ucx_finalize(void);

/* This process's address: at most GP_UCX_ADDRESS_BYTES. */
gp_status_t gp_ucx_address(gp_net_t *net, void *address, size_t *bytes_p);

/* The endpoint of that address, made at its first use and kept until finalize. rank: for messages. */
gp_status_t gp_ucx_endpoint(gp_net_t *net, const void *address, size_t bytes, uint32_t rank,
                            void **ep_p);

#ifdef __cplusplus
}
#endif

#endif /* GP_UCX_H */
