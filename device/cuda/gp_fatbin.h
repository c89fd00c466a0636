/*
 * gp_fatbin.h - the compiled kernels, inside the library.
 *
 * Owns the table through which the driver layer finds the fat binaries that nvcc made of the .cu
 * files here. Which kernel lies in which one is not promised: look for a name in all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_FATBIN_H
#define GP_FATBIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One fat binary; static, never freed. */
typedef struct gp_fatbin {
    const char *name;  /* family whose kernels it holds, for messages */
    const void *image; /* what cuModuleLoadData() takes */
    size_t bytes;
} gp_fatbin_t;

extern const gp_fatbin_t gp_fatbins[]; /* gp_n_fatbins entries */
extern const uint32_t gp_n_fatbins;    /* 0 in a build without nvcc */

#ifdef __cplusplus
}
#endif

#endif /* GP_FATBIN_H */
