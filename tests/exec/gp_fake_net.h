/*
 * gp_fake_net.h - a net inside one process that is late and out of order, for tests.
 *
 * What is sent stays in the sender's memory until some later progress of the sender, and arrives at some
 * later progress of the receiver, in any order. So it shows when a slot is written before its bytes are
 * gone, when something relies on order, and when a rank keeps back what it owes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_FAKE_NET_H
#define GP_FAKE_NET_H

#include "transport/gp_net.h"

typedef struct fake_wire fake_wire_t;

fake_wire_t *fake_wire_create(uint32_t n_ranks, uint64_t seed);
void fake_wire_destroy(fake_wire_t *wire);
gp_net_t *fake_wire_net(fake_wire_t *wire, uint32_t rank);
void *const *fake_wire_eps(fake_wire_t *wire); /* [n_ranks] */
/* Messages from or to this rank are lost from now on, and sending to it fails. */
void fake_wire_cut(fake_wire_t *wire, uint32_t rank);

#endif /* GP_FAKE_NET_H */
