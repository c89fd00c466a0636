/*
 * gp_fatbin.c - the table of fat binaries, embedded by the assembler.
 *
 * Owns: nothing but bytes. The table is written in assembly because only there the size of an
 * included file is a constant. Paths are relative to the top build directory, where make runs the
 * compiler.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(HAVE_CONFIG_H)
#include "config.h"
#endif

#include "device/cuda/gp_fatbin.h"

#if defined(GP_HAVE_CUDA) && GP_HAVE_CUDA

/* One image, aligned for the driver, and its name. */
#define GP_EMBED(family)                                                                           \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 64\n"                                                                         \
            "gp_image_" #family ":\n"                                                              \
            ".incbin \"device/cuda/gp_kernels_" #family ".fatbin\"\n"                              \
            "gp_image_end_" #family ":\n"                                                          \
            ".byte 0\n"                                                                            \
            "gp_image_name_" #family ": .asciz \"" #family "\"\n"                                  \
            ".section .data.rel.ro.gp_fatbins,\"aw\"\n"                                            \
            ".quad gp_image_name_" #family ", gp_image_" #family "\n"                              \
            ".quad gp_image_end_" #family " - gp_image_" #family "\n"                              \
            ".text\n")

__asm__(".section .data.rel.ro.gp_fatbins,\"aw\"\n"
        ".balign 8\n"
        ".globl gp_fatbins\n"
        ".hidden gp_fatbins\n"
        "gp_fatbins:\n"
        ".text\n");

GP_EMBED(u8);
GP_EMBED(u16);
GP_EMBED(u32);
GP_EMBED(u64);
GP_EMBED(f16);
GP_EMBED(bf16);
GP_EMBED(f32);
GP_EMBED(f64);
GP_EMBED(c32);
GP_EMBED(c64);

const uint32_t gp_n_fatbins = 10;

#else

const gp_fatbin_t gp_fatbins[1] = {{NULL, NULL, 0}};
const uint32_t gp_n_fatbins = 0;

#endif
