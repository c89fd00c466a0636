# transport
#
# SPDX-License-Identifier: BSD-3-Clause

noinst_LTLIBRARIES += transport/libgp_transport.la
transport_libgp_transport_la_SOURCES = \
    transport/gp_connset.c \
    transport/gp_gate.c \
    transport/gp_gate.h \
    transport/gp_net.c \
    transport/gp_net.h \
    transport/gp_shm.c \
    transport/gp_transport.h

# Apart: only the component needs UCX.
noinst_LTLIBRARIES += transport/libgp_ucx.la
transport_libgp_ucx_la_SOURCES = transport/gp_ucx.c transport/gp_ucx.h
transport_libgp_ucx_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
transport_libgp_ucx_la_LIBADD = $(UCX_LIBS)
if GP_HAVE_UCX
transport_libgp_ucx_la_CPPFLAGS += -DGP_UCX=1
endif
