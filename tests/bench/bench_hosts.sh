#!/usr/bin/env bash
# bench_hosts.sh - MPI_Allreduce between virtual hosts: gpuproto against what Open MPI does without it.
#
#   bench_hosts.sh HOSTS [BYTES ...]       one rank a host, host buffers, float sum
#
# Method: bench_mpi_allreduce (calls back to back) in three set-ups: gpuproto over UCX, pml ob1 over
# btl tcp, pml ucx, all over TCP. Each twice, the second time in the opposite order; the smaller of the two
# medians counts. The table shows microseconds and gpuproto's share of the better of the others.
# Environment: GP_BUILD_DIR (default: here), with tests/bench/bench_mpi_allreduce built there.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${GP_BUILD_DIR:-$PWD}
hosts=${1:?usage: bench_hosts.sh HOSTS [BYTES ...]}
shift
[ $# -gt 0 ] || set -- 8 512 4096 32768 262144 2097152 16777216
bench=$build/tests/bench/bench_mpi_allreduce
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_path=$build/mca_coll_gpuproto/.libs:SYSTEM_DEFAULT
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# once NAME BYTES...: medians of one run, a line "bytes us" each, appended to $work/NAME.
once() {
    local name=$1
    shift
    case $name in
    gpuproto) set -- --mca coll gpuproto --mca coll_gpuproto_host_buffers 1 "$bench" "$@" ;;
    ob1) set -- --mca coll ^gpuproto --mca pml ob1 --mca btl tcp,self "$bench" "$@" ;;
    ucx) set -- --mca coll ^gpuproto --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \
        -x UCX_TLS=tcp,self "$bench" "$@" ;;
    esac
    GPUPROTO_UCX_TLS=tcp timeout -k 5 300 "$top/tests/mpi/hosts.sh" -n "$hosts" -- -n "$hosts" "$@" \
        2>"$work/error" </dev/null | awk '!/^#/ && NF >= 6 { print $1, $4 }' >>"$work/$name"
    [ -s "$work/$name" ] || { head -n 5 "$work/error" >&2; }
}

for name in gpuproto ob1 ucx ucx ob1 gpuproto; do
    once "$name" "$@"
done
printf '# %s hosts, 1 rank each, microseconds\n' "$hosts"
printf '%10s %10s %10s %10s %8s\n' bytes gpuproto "pml ob1" "pml ucx" share
for bytes in "$@"; do
    for name in gpuproto ob1 ucx; do
        awk -v b="$bytes" '$1 == b && (!n++ || $2 < m) { m = $2 } END { print n ? m : "-" }' \
            "$work/$name"
    done | xargs printf '%s %s %s\n' | awk -v b="$bytes" '{
        best = $2 < $3 || $3 == "-" ? $2 : $3
        printf "%10d %10.1f %10.1f %10.1f %8.2f\n", b, $1, $2, $3, $1 / best }'
done
