# mca_coll_gpuproto
#
# SPDX-License-Identifier: BSD-3-Clause
