#!/bin/sh
# test_hosts.sh - mpi_cases between virtual hosts (hosts.sh), host buffers, UCX over TCP.
#
# GP_CALLS: calls of the long cases (default 40).
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
prog=${GP_TOP_BUILDDIR:-.}/tests/mpi/mpi_cases
so=${GP_COMPONENT_DIR:?}/mca_coll_gpuproto.so
if [ ! -f "$so" ] || [ ! -x "$prog" ]; then
    echo "Bail out! no $so or no $prog"
    exit 99
fi
[ "${GP_TEST_MEMORY:-host}" = host ] || tap_skip_all "host buffers only"
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_mca_base_component_path=$GP_COMPONENT_DIR:SYSTEM_DEFAULT
GPUPROTO_HELP_DIR=$top/mca_coll_gpuproto
GPUPROTO_UCX_TLS=tcp
GP_TEST_MEMORY=host
GP_CHECK_QUICK=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_mca_base_component_path
export GPUPROTO_HELP_DIR GPUPROTO_UCX_TLS GP_TEST_MEMORY GP_CHECK_QUICK
"${OMPI_INFO:-ompi_info}" --param coll gpuproto --level 9 2>/dev/null \
    | grep -q 'coll_gpuproto_ucx".*value: "yes' || tap_skip_all "built without UCX"
case $("${OMPI_INFO:-ompi_info}" --version 2>/dev/null) in
*v4.*) ;;
*) tap_skip_all "the launch agent is for Open MPI 4" ;;
esac
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
timeout -k 40 60 "$top/tests/mpi/hosts.sh" -n 2 -- -n 2 hostname >"$out" 2>&1 </dev/null
status=$?
if [ "$status" = 77 ]; then
    tap_skip_all "$(tail -n 1 "$out")"
fi
[ "$status" = 0 ] && [ "$(grep -c '^gph' "$out")" = 2 ]
tap_result $? "mpirun reaches two hosts"
[ "$status" = 0 ] || tap_diag "$(head -n 10 "$out")"

# hosts.sh is given time to clean up when it is ended: the machine may be busy.
# hosts SECONDS DESCRIPTION HOSTS SLOTS MPIRUN-ARGUMENTS...
hosts() {
    seconds=$1 what=$2 n=$3 slots=$4
    shift 4
    timeout -k 40 "$seconds" "$top/tests/mpi/hosts.sh" -n "$n" -s "$slots" -- "$@" >"$out" 2>&1 \
        </dev/null
    status=$?
    tap_result "$status" "$what"
    [ "$status" = 0 ] || tap_diag "$(grep -v '^$' "$out" | head -n 15)"
}

on="--mca coll gpuproto --mca coll_gpuproto_host_buffers 1"
# shellcheck disable=SC2086
{
    hosts 90 "2 hosts of 2: all types and operations" 2 2 -n 4 $on "$prog" matrix
    hosts 90 "4 hosts: all types and operations" 4 1 -n 4 $on "$prog" matrix
    hosts 60 "2 hosts of 2: rapid sequence of sizes" 2 2 -n 4 $on "$prog" rapid
    for shape in "2 2" "4 1"; do
        hosts 60 "$shape: late ranks" ${shape% *} ${shape#* } -n 4 $on "$prog" late
        GP_CALLS=${GP_CALLS:-100} hosts 60 "$shape: random calls" ${shape% *} ${shape#* } -n 4 $on \
            "$prog" random
    done
    hosts 90 "2 hosts of 2: communicators made and freed" 2 2 -n 4 $on "$prog" comms
    for a in ring tree flat; do
        for p in ll ll128 simple; do
            GP_EXPECT=$a/$p GP_COUNT=100000 hosts 60 "2 hosts of 2: forced $a/$p" 2 2 -n 4 $on \
                --mca coll_gpuproto_algorithm $a --mca coll_gpuproto_protocol $p "$prog" expect
        done
    done
    for a in ring tree; do
        hosts 120 "2 hosts: long calls over $a/ll128" 2 1 -n 2 $on \
            --mca coll_gpuproto_algorithm $a --mca coll_gpuproto_protocol ll128 "$prog" net
    done

    # A host is cut off with data under way: UCX does not notice, our time-out does. mpirun itself waits
    # for its lost daemon, and is ended from outside.
    timeout -k 40 20 "$top/tests/mpi/hosts.sh" -n 2 -c 1:3 -- -n 2 $on --mca orte_enable_recovery 1 \
        --mca coll_gpuproto_timeout 4 "$prog" cut >"$out" 2>&1 </dev/null
    seconds=$(sed -n 's/.*rank 0: an error after \([0-9]*\)\..*/\1/p' "$out")
    [ -n "$seconds" ] && [ "$seconds" -lt 14 ]
    tap_result $? "a host is cut off: rank 0 gets an error within the time-out"
    grep -Eq 'waiting for (data from|a free slot of) rank 1|connection to rank 1 is lost' "$out"
    tap_result $? "and the message names the rank"
    tap_diag "$(grep -E 'rank [01]: |Waited for|lost' "$out" | head -n 6)"
}
tap_end
