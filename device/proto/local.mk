# device/proto
#
# SPDX-License-Identifier: BSD-3-Clause

noinst_HEADERS += \
    device/gp_exec.h \
    device/proto/gp_chunk.h \
    device/proto/gp_fifo.h \
    device/proto/gp_half.h \
    device/proto/gp_ll.h \
    device/proto/gp_ll128.h \
    device/proto/gp_log.h \
    device/proto/gp_port.h \
    device/proto/gp_reduce.h \
    device/proto/gp_simple.h \
    device/proto/gp_status.h \
    device/proto/gp_types.h
