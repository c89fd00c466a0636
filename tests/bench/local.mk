# tests/bench: peers to compare with, and the tests of gpuproto_perf.
#
# SPDX-License-Identifier: BSD-3-Clause

# Built on demand, never installed.
EXTRA_PROGRAMS += tests/bench/bench_peer_nccl
tests_bench_bench_peer_nccl_SOURCES = tests/bench/bench_peer_nccl.c
tests_bench_bench_peer_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_bench_bench_peer_nccl_LDADD = $(MPI_LIBS) -ldl

check_PROGRAMS += tests/bench/test_perf_data
TESTS += tests/bench/test_perf_data
tests_bench_test_perf_data_SOURCES = \
    contrib/gpuproto_perf_data.c \
    tests/bench/test_perf_data.c
tests_bench_test_perf_data_LDADD = -lm

dist_check_SCRIPTS += tests/bench/test_perf.sh
TESTS += tests/bench/test_perf.sh
