# tests/exec: the host executor
#
# SPDX-License-Identifier: BSD-3-Clause

gp_exec_test_libs = \
    tests/unit/libgp_random_program.la \
    device/host/libgp_host.la \
    transport/libgp_transport.la \
    planner/libgp_planner.la \
    -lpthread -lrt

check_PROGRAMS += tests/exec/test_host_exec tests/exec/test_host_exec_flags
TESTS += tests/exec/test_host_exec tests/exec/test_host_exec_flags
tests_exec_test_host_exec_SOURCES = \
    contrib/gpuproto_perf_data.c \
    tests/exec/gp_exec_world.c \
    tests/exec/gp_exec_world.h \
    tests/exec/gp_fake_net.c \
    tests/exec/gp_fake_net.h \
    tests/exec/test_host_exec.c
tests_exec_test_host_exec_LDADD = $(gp_exec_test_libs)

# The same with 5-bit LL flags: sender and receiver are compiled in.
tests_exec_test_host_exec_flags_SOURCES = \
    $(tests_exec_test_host_exec_SOURCES) \
    device/host/gp_host_exec.c \
    device/host/gp_host_reduce.c
tests_exec_test_host_exec_flags_CPPFLAGS = $(AM_CPPFLAGS) -DGP_LL_FLAG_BITS=5
tests_exec_test_host_exec_flags_LDADD = \
    tests/unit/libgp_random_program.la \
    transport/libgp_transport.la \
    planner/libgp_planner.la \
    -lpthread -lrt

check_PROGRAMS += tests/exec/test_gate
TESTS += tests/exec/test_gate
tests_exec_test_gate_SOURCES = tests/exec/test_gate.c
tests_exec_test_gate_LDADD = transport/libgp_transport.la planner/libgp_planner.la -lpthread -lrt
