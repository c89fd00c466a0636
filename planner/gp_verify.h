/*
 * gp_verify.h - proof that a set of programs is an allreduce.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_VERIFY_H
#define GP_VERIFY_H

#include "planner/gp_program.h"

/*
 * Run the programs of all ranks of one channel symbolically for `loops` loops (>= 1; 2 or more shows
 * what one loop hides) with `n_slots` slots per connection, and check that
 *  - links match one to one, and each use of a link by the sender meets the same chunk at the receiver,
 *  - refs' ordinals count 0 .. uses-1 in stream order, and a link belongs to one stream,
 *  - every rank outputs every chunk exactly once, holding each rank's contribution exactly once,
 *  - in the same reduction order (the same expression, bracketing included) on all ranks,
 *  - with n_slots slots the set cannot deadlock. A step is fused: it needs all inputs and all credits
 *    at once, and frees its inputs' slots when it ends,
 *  - in place (output buffer == input buffer) no step reads own data of a chunk that another step may
 *    already have overwritten: between streams of a rank this needs a proven order.
 * programs: n_ranks pointers in rank order; not modified, still the caller's.
 * Result GP_OK, or GP_ERR_INVALID with the first violation described in reason (reason_bytes, may be 0),
 * or GP_ERR_NO_MEMORY.
 */
gp_status_t gp_verify(const gp_program_t *const *programs, uint32_t n_ranks, uint32_t n_slots,
                      uint32_t loops, char *reason, size_t reason_bytes);

#endif /* GP_VERIFY_H */
