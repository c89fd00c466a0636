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
    planner/gp_sim.c \
    planner/gp_sim.h \
    planner/gp_sim_build.c \
    planner/gp_sim_engine.c \
    planner/gp_sim_int.h \
    planner/gp_sim_report.c \
    planner/gp_sim_symmetric.c \
    planner/gp_topo.c \
    planner/gp_topo.h \
    planner/gp_topo_draw.c \
    planner/gp_topo_int.h \
    planner/gp_topo_lines.c \
    planner/gp_topo_names.c \
    planner/gp_topo_query.c \
    planner/gp_topo_ring.c \
    planner/gp_topo_text.c \
    planner/gp_tree.c \
    planner/gp_tune.c \
    planner/gp_tune.h \
    planner/gp_tune_int.h \
    planner/gp_tune_parse.c \
    planner/gp_tune_read.c \
    planner/gp_verify.c \
    planner/gp_verify.h \
    planner/gp_verify_int.h \
    planner/gp_verify_run.c

# By itself, so that the component does not need hwloc.
noinst_LTLIBRARIES += planner/libgp_topo_hwloc.la
planner_libgp_topo_hwloc_la_SOURCES = planner/gp_topo_hwloc.c
planner_libgp_topo_hwloc_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
planner_libgp_topo_hwloc_la_LIBADD = $(HWLOC_LIBS)
if GP_HAVE_HWLOC
planner_libgp_topo_hwloc_la_CPPFLAGS += -DGP_TOPO_HWLOC=1
endif
