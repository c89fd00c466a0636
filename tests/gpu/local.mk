# tests/gpu: what needs a GPU; without one the tests skip
#
# SPDX-License-Identifier: BSD-3-Clause

gp_gpu_test_libs = \
    tests/unit/libgp_random_program.la \
    device/host/libgp_host.la \
    device/cuda/libgp_cuda.la \
    transport/libgp_transport.la \
    planner/libgp_planner.la \
    -lpthread -lrt -ldl

check_PROGRAMS += tests/gpu/test_gpu_exec tests/gpu/test_gpu_mem
TESTS += tests/gpu/test_gpu_exec tests/gpu/test_gpu_mem
tests_gpu_test_gpu_exec_SOURCES = \
    contrib/gpuproto_perf_data.c \
    tests/exec/gp_exec_world.c \
    tests/exec/gp_exec_world.h \
    tests/exec/gp_fake_net.c \
    tests/exec/gp_fake_net.h \
    tests/gpu/test_gpu_exec.c
tests_gpu_test_gpu_exec_LDADD = $(gp_gpu_test_libs)
tests_gpu_test_gpu_mem_SOURCES = tests/gpu/test_gpu_mem.c
tests_gpu_test_gpu_mem_LDADD = $(gp_gpu_test_libs)
