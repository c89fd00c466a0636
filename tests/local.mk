# Drivers and environment of "make check", and what all test directories share.
#
# SPDX-License-Identifier: BSD-3-Clause

noinst_HEADERS += tests/lib/gp_tap.h

# Every test prints TAP, so that "make check" counts cases, not programs. No test may hang the run:
# one that is still running after GP_TEST_TIMEOUT_S is killed and counted as an error.
# GP_TEST_MEMORY=cuda makes the MPI tests use device buffers (default: host).
GP_TEST_TIMEOUT_S = 600
GP_TEST_MEMORY = host
GP_TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/config/tap-driver.sh
GP_TIMEOUT = timeout -k 10 $(GP_TEST_TIMEOUT_S)
TEST_EXTENSIONS = .sh .py
LOG_DRIVER = $(GP_TAP_DRIVER)
LOG_COMPILER = $(GP_TIMEOUT)
SH_LOG_DRIVER = $(GP_TAP_DRIVER)
SH_LOG_COMPILER = $(GP_TIMEOUT) $(SHELL)
PY_LOG_DRIVER = $(GP_TAP_DRIVER)
PY_LOG_COMPILER = $(GP_TIMEOUT) $(PYTHON)

# GP_CHECK_QUICK=1 (set by distcheck) asks exhaustive tests for a sample.
AM_TESTS_ENVIRONMENT = \
    GP_TAP_READER=1; export GP_TAP_READER; \
    GP_TOP_SRCDIR='$(abs_top_srcdir)'; export GP_TOP_SRCDIR; \
    GP_TOP_BUILDDIR='$(abs_top_builddir)'; export GP_TOP_BUILDDIR; \
    GP_COMPONENT_DIR='$(abs_top_builddir)/mca_coll_gpuproto/.libs'; export GP_COMPONENT_DIR; \
    MPIRUN='$(MPIRUN)'; export MPIRUN; \
    OMPI_INFO='$(OMPI_INFO)'; export OMPI_INFO; \
    PYTHON='$(PYTHON)'; export PYTHON; \
    GP_TEST_MEMORY='$(GP_TEST_MEMORY)'; export GP_TEST_MEMORY; \
    GP_OMPI_INCDIR='$(OMPI_INCDIR)'; export GP_OMPI_INCDIR; \
    CC='$(CC)'; export CC; \
    OMPI_ALLOW_RUN_AS_ROOT=1; export OMPI_ALLOW_RUN_AS_ROOT; \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM;

# Parts of "make check". With a GPU: make check-gpu, and make check-mpi GP_TEST_MEMORY=cuda.
.PHONY: check-gpu check-mpi check-lint
check-gpu:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter tests/gpu/%,$(TESTS))'
check-mpi:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter tests/mpi/%,$(TESTS))'
check-lint:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter tests/lint/%,$(TESTS))'

include tests/unit/local.mk
include tests/proto/local.mk
include tests/exec/local.mk
include tests/simt/local.mk
include tests/gpu/local.mk
include tests/mpi/local.mk
include tests/lint/local.mk
include tests/bench/local.mk
