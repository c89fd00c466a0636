# contrib: the benchmark, and the scripts that set up, build and check.
#
# SPDX-License-Identifier: BSD-3-Clause

bin_PROGRAMS += contrib/gpuproto_perf
contrib_gpuproto_perf_SOURCES = \
    contrib/gpuproto_perf.c \
    contrib/gpuproto_perf.h \
    contrib/gpuproto_perf_args.c \
    contrib/gpuproto_perf_data.c \
    contrib/gpuproto_perf_data.h \
    contrib/gpuproto_perf_mem.c \
    contrib/gpuproto_perf_mem.h \
    contrib/gpuproto_perf_mpit.c \
    contrib/gpuproto_perf_mpit.h \
    contrib/gpuproto_perf_report.c
contrib_gpuproto_perf_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
contrib_gpuproto_perf_LDADD = $(MPI_LIBS)

bin_PROGRAMS += contrib/gpuproto_info
contrib_gpuproto_info_SOURCES = \
    contrib/gpuproto_info.c \
    contrib/gpuproto_info.h \
    contrib/gpuproto_info_plan.c \
    contrib/gpuproto_info_sim.c \
    contrib/gpuproto_info_sim.h \
    contrib/gpuproto_info_sim_plot.c \
    contrib/gpuproto_info_sim_table.c \
    contrib/gpuproto_info_topo.c
contrib_gpuproto_info_LDADD = planner/libgp_topo_hwloc.la planner/libgp_planner.la -lm

dist_bin_SCRIPTS += contrib/gpuproto_tune

dist_noinst_SCRIPTS += \
    contrib/check.sh \
    contrib/gpu-check.sh \
    contrib/quickstart.sh
# gpuproto_tune looks for it there when it is installed.
dist_pkgdata_DATA += contrib/lib.sh
