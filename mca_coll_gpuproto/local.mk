# mca_coll_gpuproto
#
# SPDX-License-Identifier: BSD-3-Clause

# The objects are a library of their own: Open MPI takes every file of a component directory whose name
# begins with mca_ for a component, and a build directory can be one.
noinst_LTLIBRARIES += mca_coll_gpuproto/libgp_coll.la
mca_coll_gpuproto_libgp_coll_la_SOURCES = \
    mca_coll_gpuproto/coll_gpuproto.h \
    mca_coll_gpuproto/coll_gpuproto_agree.c \
    mca_coll_gpuproto/coll_gpuproto_allreduce.c \
    mca_coll_gpuproto/coll_gpuproto_build.c \
    mca_coll_gpuproto/coll_gpuproto_build.h \
    mca_coll_gpuproto/coll_gpuproto_compat.h \
    mca_coll_gpuproto/coll_gpuproto_component.c \
    mca_coll_gpuproto/coll_gpuproto_gate.c \
    mca_coll_gpuproto/coll_gpuproto_module.c \
    mca_coll_gpuproto/coll_gpuproto_nodes.c \
    mca_coll_gpuproto/coll_gpuproto_presence.c \
    mca_coll_gpuproto/coll_gpuproto_pvar.c \
    mca_coll_gpuproto/coll_gpuproto_select.c \
    mca_coll_gpuproto/coll_gpuproto_sets.c \
    mca_coll_gpuproto/coll_gpuproto_stage.c \
    mca_coll_gpuproto/coll_gpuproto_trace.c \
    mca_coll_gpuproto/coll_gpuproto_types.c \
    mca_coll_gpuproto/coll_gpuproto_watch.c \
    mca_coll_gpuproto/compat/ompi/mpi/fortran/base/fint_2_int.h \
    mca_coll_gpuproto/compat/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
    mca_coll_gpuproto/compat/opal/mca/threads/pthreads/threads_pthreads_threads.h \
    mca_coll_gpuproto/compat/opal/mca/threads/pthreads/threads_pthreads_tsd.h
mca_coll_gpuproto_libgp_coll_la_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) \
    -DGP_PKGDATADIR='"$(pkgdatadir)"'
mca_coll_gpuproto_libgp_coll_la_CFLAGS = $(AM_CFLAGS) -pthread

mcacomponent_LTLIBRARIES += mca_coll_gpuproto/mca_coll_gpuproto.la
mca_coll_gpuproto_mca_coll_gpuproto_la_SOURCES =
mca_coll_gpuproto_mca_coll_gpuproto_la_LDFLAGS = -module -avoid-version -no-undefined \
    -Wl,-z,nodelete $(OMPI_LDFLAGS)
mca_coll_gpuproto_mca_coll_gpuproto_la_LIBADD = \
    mca_coll_gpuproto/libgp_coll.la \
    device/host/libgp_host.la \
    device/cuda/libgp_cuda.la \
    transport/libgp_ucx.la \
    transport/libgp_transport.la \
    planner/libgp_planner.la \
    $(OMPI_LIBS) -lrt -ldl

dist_pkgdata_DATA += mca_coll_gpuproto/help-coll-gpuproto.txt
