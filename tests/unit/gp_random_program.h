/*
 * gp_random_program.h - random allreduce programs for tests: nothing in an executor may know a shape.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_RANDOM_PROGRAM_H
#define GP_RANDOM_PROGRAM_H

#include "planner/gp_program.h"

#define GP_RANDOM_MOST_RANKS 8

/*
 * Emit the programs of one channel for n_ranks (1 .. GP_RANDOM_MOST_RANKS) ranks into
 * programs[0 .. n_ranks-1]: one to six chunks, each with its own random reduction tree or partial
 * exchange, operands in random order, relays, broadcast along another tree, one to four streams a rank,
 * chunks interleaved. Proven by gp_verify() with n_slots slots (1 .. GP_MAX_SLOTS) before they are
 * returned. A pure function of (seed, n_ranks, n_slots). Recorded as GP_ALGO_CUSTOM, channel 0.
 *
 * GP_OK: the caller frees each with gp_program_free(). Otherwise (GP_ERR_INVALID: argument out of range,
 * or the verifier refused, with the reason on stderr; GP_ERR_NO_MEMORY) nothing is left to free.
 */
gp_status_t gp_random_programs(uint64_t seed, uint32_t n_ranks, uint32_t n_slots,
                               gp_program_t **programs);

#endif /* GP_RANDOM_PROGRAM_H */
