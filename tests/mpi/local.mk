# tests/mpi
#
# SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += tests/mpi/mpi_cases
tests_mpi_mpi_cases_SOURCES = \
    contrib/gpuproto_perf_data.c \
    contrib/gpuproto_perf_mem.c \
    contrib/gpuproto_perf_mpit.c \
    planner/gp_names.c \
    tests/mpi/mpi_cases.c \
    tests/mpi/mpi_cases.h \
    tests/mpi/mpi_comms.c \
    tests/mpi/mpi_jobs.c \
    tests/mpi/mpi_kinds.c \
    tests/mpi/mpi_net.c \
    tests/mpi/mpi_types.c
tests_mpi_mpi_cases_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_mpi_cases_LDADD = $(MPI_LIBS) -lpthread -ldl

dist_check_SCRIPTS += tests/mpi/test_mpi.sh
TESTS += tests/mpi/test_mpi.sh

# Between virtual hosts.
dist_check_SCRIPTS += tests/mpi/hosts.sh tests/mpi/test_hosts.sh
TESTS += tests/mpi/test_hosts.sh
