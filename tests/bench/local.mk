# tests/bench: peers to compare with, and the tests of gpuproto_perf.
#
# SPDX-License-Identifier: BSD-3-Clause

# Built on demand, never installed.
EXTRA_PROGRAMS += tests/bench/bench_peer_nccl tests/bench/bench_mpi_allreduce
tests_bench_bench_mpi_allreduce_SOURCES = \
    contrib/gpuproto_perf_mpit.c \
    planner/gp_names.c \
    tests/bench/bench_mpi_allreduce.c
tests_bench_bench_mpi_allreduce_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_bench_bench_mpi_allreduce_LDADD = $(MPI_LIBS)
tests_bench_bench_peer_nccl_SOURCES = tests/bench/bench_peer_nccl.c
tests_bench_bench_peer_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_bench_bench_peer_nccl_LDADD = $(MPI_LIBS) -ldl

check_PROGRAMS += tests/bench/test_perf_data
TESTS += tests/bench/test_perf_data
tests_bench_test_perf_data_SOURCES = \
    contrib/gpuproto_perf_data.c \
    tests/bench/test_perf_data.c
tests_bench_test_perf_data_LDADD = -lm

dist_check_SCRIPTS += tests/bench/test_perf.sh tests/bench/test_tune_tool.sh
TESTS += tests/bench/test_perf.sh tests/bench/test_tune_tool.sh

EXTRA_PROGRAMS += tests/bench/bench_gpu_step
tests_bench_bench_gpu_step_SOURCES = \
    tests/bench/bench_gpu_step.c \
    tests/exec/gp_exec_world.c \
    tests/exec/gp_exec_world.h \
    tests/exec/gp_fake_net.c \
    tests/exec/gp_fake_net.h
tests_bench_bench_gpu_step_LDADD = \
    device/host/libgp_host.la \
    device/cuda/libgp_cuda.la \
    transport/libgp_transport.la \
    planner/libgp_planner.la \
    -lpthread -lrt -ldl
EXTRA_DIST += tests/bench/gp_hardcoded.cu

EXTRA_PROGRAMS += tests/bench/bench_plan
tests_bench_bench_plan_SOURCES = tests/bench/bench_plan.c
tests_bench_bench_plan_LDADD = planner/libgp_planner.la
EXTRA_DIST += tests/bench/bench_hosts.sh
