# tests/unit: the planner and the arithmetic, without MPI, GPU or threads.
#
# SPDX-License-Identifier: BSD-3-Clause

# Random verified programs, also for the executor tests.
check_LTLIBRARIES += tests/unit/libgp_random_program.la
tests_unit_libgp_random_program_la_SOURCES = \
    tests/unit/gp_random_program.c \
    tests/unit/gp_random_program.h
tests_unit_libgp_random_program_la_LIBADD = planner/libgp_planner.la

GP_UNIT_TESTS = \
    tests/unit/test_chunk \
    tests/unit/test_cost \
    tests/unit/test_layout \
    tests/unit/test_plan \
    tests/unit/test_program \
    tests/unit/test_random_program \
    tests/unit/test_reduce \
    tests/unit/test_sim \
    tests/unit/test_topo \
    tests/unit/test_topo_text \
    tests/unit/test_tune \
    tests/unit/test_tune_plan \
    tests/unit/test_types \
    tests/unit/test_verify
check_PROGRAMS += $(GP_UNIT_TESTS)
TESTS += $(GP_UNIT_TESTS)

tests_unit_test_chunk_SOURCES = tests/unit/test_chunk.c
tests_unit_test_chunk_LDADD = planner/libgp_planner.la
tests_unit_test_cost_SOURCES = tests/unit/test_cost.c
tests_unit_test_cost_LDADD = planner/libgp_planner.la
tests_unit_test_layout_SOURCES = tests/unit/test_layout.c
tests_unit_test_layout_LDADD = planner/libgp_planner.la
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = planner/libgp_planner.la
tests_unit_test_program_SOURCES = tests/unit/test_program.c
tests_unit_test_program_LDADD = planner/libgp_planner.la
tests_unit_test_random_program_SOURCES = tests/unit/test_random_program.c
tests_unit_test_random_program_LDADD = tests/unit/libgp_random_program.la
tests_unit_test_reduce_SOURCES = tests/unit/test_reduce.c
tests_unit_test_reduce_LDADD = -lm
tests_unit_test_sim_SOURCES = tests/unit/test_sim.c
tests_unit_test_sim_LDADD = tests/unit/libgp_random_program.la -lm
tests_unit_test_topo_SOURCES = tests/unit/test_topo.c
tests_unit_test_topo_LDADD = planner/libgp_planner.la
tests_unit_test_topo_text_SOURCES = tests/unit/test_topo_text.c
tests_unit_test_topo_text_LDADD = planner/libgp_topo_hwloc.la planner/libgp_planner.la
tests_unit_test_tune_SOURCES = tests/unit/test_tune.c
tests_unit_test_tune_LDADD = planner/libgp_planner.la
tests_unit_test_tune_plan_SOURCES = tests/unit/test_tune_plan.c
tests_unit_test_tune_plan_LDADD = planner/libgp_planner.la
tests_unit_test_types_SOURCES = tests/unit/test_types.c
tests_unit_test_verify_SOURCES = tests/unit/gp_edit_program.h tests/unit/test_verify.c
tests_unit_test_verify_LDADD = tests/unit/libgp_random_program.la

# Needs contrib/gpuproto_info, which "make check" has built by then.
dist_check_SCRIPTS += tests/unit/test_info.sh
TESTS += tests/unit/test_info.sh

dist_check_SCRIPTS += tests/unit/test_info_topo.sh
TESTS += tests/unit/test_info_topo.sh

# Recorded machines.
EXTRA_DIST += \
    tests/unit/topo/8-ranks-1-gpu.topo \
    tests/unit/topo/a100-hwloc.xml \
    tests/unit/topo/a100-nvswitch.topo \
    tests/unit/topo/h100-nvswitch.topo \
    tests/unit/topo/mixed-capability.topo \
    tests/unit/topo/pcie-2-sockets.topo \
    tests/unit/topo/two-nodes-1-nic.topo \
    tests/unit/topo/two-nodes-8-nics.topo \
    tests/unit/topo/v100-nv2.topo
