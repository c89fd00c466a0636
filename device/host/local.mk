# device/host
#
# SPDX-License-Identifier: BSD-3-Clause

noinst_LTLIBRARIES += device/host/libgp_host.la
device_host_libgp_host_la_SOURCES = \
    device/host/gp_host.h \
    device/host/gp_host_exec.c \
    device/host/gp_host_move.h \
    device/host/gp_host_reduce.c \
    device/host/gp_host_reduce.h
