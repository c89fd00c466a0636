#!/bin/sh
# test_info_topo.sh - gpuproto_info topology: what it prints and how it ends.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
info=${GP_TOP_BUILDDIR:-.}/contrib/gpuproto_info
machines=$top/tests/unit/topo
[ -x "$info" ] || tap_skip_all "no $info"

# expect STATUS PATTERN DESCRIPTION ARGUMENTS: exit status, and a line of the output that matches.
expect() {
    want=$1 pattern=$2 what=$3
    shift 3
    out=$("$info" topology "$@" 2>&1)
    got=$?
    if [ "$got" = "$want" ] && printf '%s\n' "$out" | grep -qE "$pattern"; then
        tap_result 0 "$what"
    else
        tap_result 1 "$what"
        tap_diag "gpuproto_info topology $*: status $got, want $want and /$pattern/"
        tap_diag "$(printf '%s\n' "$out" | head -n 5)"
    fi
}

expect 0 '^LL128: allowed$' "LL128 over NVLink" --topology "$machines/v100-nv2.topo"
expect 0 '^LL128: ll128: a path is neither' "LL128 refused over PCIe" \
    --topology "$machines/pcie-2-sockets.topo"
expect 0 '^LL128: ll128: GPUs of different' "LL128 refused for different GPUs" \
    --topology "$machines/mixed-capability.topo"
expect 0 '^farthest: ranks 0 and 8, net \(class net\); slowest way out 400000 bytes/us$' \
    "two nodes: the network is the farthest" --topology "$machines/two-nodes-8-nics.topo"
expect 0 '^NIC of each rank on channel 0: eth0 mlx5_0 eth0 mlx5_0$' "NICs by locality" \
    --topology "$machines/pcie-2-sockets.topo"
expect 0 '"ll128":\{"allowed":true,"reason":""\}\}$' "JSON" --json \
    --topology "$machines/h100-nvswitch.topo"
expect 1 'nowhere.topo: No such file' "a file that is not there" --topology nowhere.topo
expect 1 'Makefile.am:5: does not begin' "a file that is none" --topology "$top/Makefile.am"
expect 2 'extra argument' "usage: an extra argument" now
expect 2 'either' "usage: two files" --topology a --hwloc-xml b
expect 0 '^usage:' "usage: --help" --help
out=$("$info" topology --hwloc-xml "$machines/a100-hwloc.xml" 2>&1)
if printf '%s\n' "$out" | grep -q 'no hwloc'; then
    tap_skip "no hwloc" "hwloc XML"
else
    printf '%s\n' "$out" | grep -q '^ranks 5 (one for each GPU), nodes 1, executor cuda'
    tap_result $? "hwloc XML: a rank for each GPU"
    "$info" topology | grep -q '^node '
    tap_result $? "hwloc: this machine"
fi
tap_end
