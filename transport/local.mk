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
