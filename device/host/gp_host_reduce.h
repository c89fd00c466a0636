/*
 * gp_host_reduce.h - reductions over arrays, for the host executor.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_HOST_REDUCE_H
#define GP_HOST_REDUCE_H

#include "device/proto/gp_types.h"

/*
 * dst[i] = a[i] (op) b[i] for `elems` elements. The pointers need the element's alignment; dst may be
 * equal to a or b, other overlap is not allowed.
 */
typedef void (*gp_host_reduce_fn)(void *dst, const void *a, const void *b, size_t elems);

/* The loop of a valid reduction, never NULL for one; NULL for a pair that is not in the table. */
gp_host_reduce_fn gp_host_reduce_of(gp_red_t red);

#endif /* GP_HOST_REDUCE_H */
