# device/cuda: the driver layer (C) and the kernels (CUDA)
#
# SPDX-License-Identifier: BSD-3-Clause

gp_cuda_headers = \
    device/cuda/gp_cuda.h \
    device/cuda/gp_cuda_driver.h \
    device/cuda/gp_cuda_int.h \
    device/cuda/gp_fatbin.h \
    device/cuda/gp_kargs.h

gp_kernel_sources = \
    device/cuda/gp_kctx.cuh \
    device/cuda/gp_kernel.cuh \
    device/cuda/gp_ksetup.cuh \
    device/cuda/gp_kstream.cuh \
    device/cuda/gp_ll.cuh \
    device/cuda/gp_ll128.cuh \
    device/cuda/gp_simple.cuh \
    device/cuda/gp_vec.cuh \
    device/cuda/gp_kernels_u8.cu \
    device/cuda/gp_kernels_u16.cu \
    device/cuda/gp_kernels_u32.cu \
    device/cuda/gp_kernels_u64.cu \
    device/cuda/gp_kernels_f16.cu \
    device/cuda/gp_kernels_bf16.cu \
    device/cuda/gp_kernels_f32.cu \
    device/cuda/gp_kernels_f64.cu \
    device/cuda/gp_kernels_c32.cu \
    device/cuda/gp_kernels_c64.cu

EXTRA_DIST += $(gp_kernel_sources)

# What any kernel may depend on; also used by tests/simt.
gp_kernel_deps = \
    device/cuda/gp_kargs.h \
    device/cuda/gp_kctx.cuh \
    device/cuda/gp_kernel.cuh \
    device/cuda/gp_ksetup.cuh \
    device/cuda/gp_kstream.cuh \
    device/cuda/gp_ll.cuh \
    device/cuda/gp_ll128.cuh \
    device/cuda/gp_simple.cuh \
    device/cuda/gp_vec.cuh \
    device/gp_exec.h \
    device/proto/gp_chunk.h \
    device/proto/gp_fifo.h \
    device/proto/gp_half.h \
    device/proto/gp_port.h \
    device/proto/gp_reduce.h \
    device/proto/gp_status.h \
    device/proto/gp_types.h \
    planner/gp_program.h

noinst_LTLIBRARIES += device/cuda/libgp_cuda.la
device_cuda_libgp_cuda_la_SOURCES = \
    $(gp_cuda_headers) \
    device/cuda/gp_cuda_arena.c \
    device/cuda/gp_cuda_dev.c \
    device/cuda/gp_cuda_driver.c \
    device/cuda/gp_cuda_exec.c \
    device/cuda/gp_cuda_hostmap.c \
    device/cuda/gp_cuda_links.c \
    device/cuda/gp_cuda_mem.c \
    device/cuda/gp_cuda_settle.c \
    device/cuda/gp_fatbin.c

if GP_HAVE_CUDA

gp_fatbins = \
    device/cuda/gp_kernels_u8.fatbin \
    device/cuda/gp_kernels_u16.fatbin \
    device/cuda/gp_kernels_u32.fatbin \
    device/cuda/gp_kernels_u64.fatbin \
    device/cuda/gp_kernels_f16.fatbin \
    device/cuda/gp_kernels_bf16.fatbin \
    device/cuda/gp_kernels_f32.fatbin \
    device/cuda/gp_kernels_f64.fatbin \
    device/cuda/gp_kernels_c32.fatbin \
    device/cuda/gp_kernels_c64.fatbin

# nvcc knows the source by its own path only, so each object is remade when any header changes.
SUFFIXES = .cu .fatbin
.cu.fatbin:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(NVCC) $(NVCCFLAGS) $(NVCC_GENCODE) -I$(top_srcdir) -fatbin -o $@.tmp $< && mv -f $@.tmp $@

$(gp_fatbins): $(gp_kernel_deps)

# The assembler reads the fat binaries: relative to the directory where make runs.
device/cuda/gp_fatbin.lo: $(gp_fatbins)

CLEANFILES += $(gp_fatbins)

endif
