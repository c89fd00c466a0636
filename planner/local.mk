# planner
#
# SPDX-License-Identifier: BSD-3-Clause

noinst_LTLIBRARIES += planner/libgp_planner.la
planner_libgp_planner_la_SOURCES = \
    planner/gp_conn_geom.c \
    planner/gp_cost.c \
    planner/gp_cost.h \
    planner/gp_emit.h \
    planner/gp_flat.c \
    planner/gp_log.c \
    planner/gp_names.c \
    planner/gp_plan.c \
    planner/gp_plan.h \
    planner/gp_plan_int.h \
    planner/gp_program.c \
    planner/gp_program.h \
    planner/gp_ring.c \
    planner/gp_select.c \
    planner/gp_tree.c \
    planner/gp_verify.c \
    planner/gp_verify.h \
    planner/gp_verify_int.h \
    planner/gp_verify_run.c
