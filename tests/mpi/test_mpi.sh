#!/bin/sh
# test_mpi.sh - runs mpi_cases under mpirun: ranks, selections, parameters, absent and dead ranks.
#
# GP_TEST_MEMORY=cuda uses device buffers (contrib/gpu-check.sh), else host buffers.
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
GP_TEST_MEMORY=${GP_TEST_MEMORY:-host}
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_mca_base_component_path=$GP_COMPONENT_DIR:SYSTEM_DEFAULT
export GP_TEST_MEMORY OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
GPUPROTO_HELP_DIR=$top/mca_coll_gpuproto
export OMPI_MCA_mca_base_component_path GPUPROTO_HELP_DIR
case $("${OMPI_INFO:-ompi_info}" --version 2>/dev/null) in
*v5.*|*v6.*) over="--map-by :OVERSUBSCRIBE --bind-to none" ;;
*) over="--oversubscribe --bind-to none" ;;
esac
out=$(mktemp) || exit 99
trap 'rm -f "$out" "$out".tune*' EXIT

# run SECONDS DESCRIPTION MPIRUN-ARGUMENTS...: one case; the output is in $out.
run() {
    seconds=$1 what=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 "$seconds" "${MPIRUN:-mpirun}" $over --mca mpi_yield_when_idle 1 "$@" \
        >"$out" 2>&1 </dev/null
    status=$?
    if [ "$status" = 77 ]; then
        tap_skip_all "no $GP_TEST_MEMORY memory here"
    fi
    tap_result "$status" "$what"
    [ "$status" = 0 ] || tap_diag "$(grep -v '^$' "$out" | head -n 15)"
}

# says TEXT DESCRIPTION: the last run printed it.
says() {
    grep -q -- "$1" "$out"
    tap_result $? "$2"
}

on="--mca coll gpuproto --mca coll_gpuproto_host_buffers 1"
full="1 2 3 4 8"
few="2 3 4"
[ -z "${GP_CHECK_QUICK:-}" ] || full="2 3" few="2"
have_ucx=no
if "${OMPI_INFO:-ompi_info}" --param coll gpuproto --level 9 2>/dev/null \
    | grep -q 'coll_gpuproto_ucx".*value: "yes'; then
    have_ucx=yes
fi
# shellcheck disable=SC2086
{
    for n in $full; do
        run 180 "all types and operations, $n ranks" -n "$n" $on "$prog" matrix
    done
    for n in 2 4; do
        run 60 "user operations, derived types, pairs, $n ranks" -n "$n" $on "$prog" other
    done
    run 60 "count 0 and NULL" -n 3 $on "$prog" zero
    run 120 "communicators made and freed" -n 4 $on "$prog" comms
    run 60 "inter-communicator" -n 4 $on "$prog" inter
    run 60 "MPI_COMM_SELF" -n 2 $on "$prog" self
    run 120 "rapid sequence of sizes" -n 3 $on "$prog" rapid
    run 60 "late ranks" -n 4 $on "$prog" late
    run 60 "windows" -n 3 $on "$prog" windows
    run 60 "every other collective" -n 3 $on "$prog" others
    GP_PROGRAM=$prog run 60 "spawned processes" -n 2 $on "$prog" spawn
    run 60 "buffers at MPI_BOTTOM" -n 2 $on "$prog" bottom
    run 120 "two threads, two communicators" -n 2 $on "$prog" threads
    if [ "$GP_TEST_MEMORY" != host ]; then
        for a in "ring ll" "tree simple" "flat ll128"; do
            run 60 "every kind of memory, $a" -n 3 $on --mca coll_gpuproto_algorithm "${a% *}" \
                --mca coll_gpuproto_protocol "${a#* }" "$prog" kinds
        done
        if [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ]; then
            GP_EXPECT=declined run 60 "a shared GPU without MPS: staged" -n 2 $on \
                -x CUDA_MPS_PIPE_DIRECTORY=/nonexistent "$prog" expect
            says "nvidia-cuda-mps-control -d" "and the message says how to start MPS"
        fi
        run 180 "2^31 bytes and more" -n 2 $on "$prog" big
    fi

    # Forced choices are honoured.
    for a in ring tree flat; do
        for p in ll ll128 simple; do
            for count in 3 100000; do
                GP_EXPECT=$a/$p GP_COUNT=$count run 60 "forced $a/$p, $count floats" -n 3 $on \
                    --mca coll_gpuproto_algorithm $a --mca coll_gpuproto_protocol $p \
                    "$prog" expect
            done
        done
    done
    # ... or refused, with the rule.
    GP_EXPECT=declined run 60 "a choice that cannot be honoured is declined" -n 2 $on \
        --mca coll_gpuproto_min_channels 8 --mca coll_gpuproto_max_fifo_mib 1 \
        --mca coll_gpuproto_algorithm ring --mca coll_gpuproto_protocol simple \
        --mca coll_gpuproto_buffsize 16777216 "$prog" expect
    says "max_fifo_mib" "and the message names the parameter"

    # A tuning file. 1,000 floats are 4,000 bytes.
    [ "$GP_TEST_MEMORY" = host ] && executor=host || executor=cuda
    printf '%s * * 0 %s\n' "$executor" "ring simple auto auto" >"$out.tune1"
    printf '%s 2 1 4000 tree ll auto auto\nwrong\n%s 2 1 4001 flat ll auto auto\n' "$executor" \
        "$executor" >"$out.tune2"
    tune="--mca coll_gpuproto_tune_file $out.tune"
    GP_EXPECT=ring/simple run 60 "a tuning file chooses" -n 3 $on ${tune}1 "$prog" expect
    GP_EXPECT=tree/ll run 60 "a rule for these ranks and bytes goes first" -n 2 $on ${tune}2 \
        --mca coll_gpuproto_trace 1 "$prog" expect
    says "bytes=4000 .*reason=\"tuning file line 1\"" "and the trace names its line"
    says "$out.tune2:2: a field is missing.*left out" "an illegal line is named with file and line"
    [ "$(grep -c "tune2:2:" "$out")" = 1 ]
    tap_result $? "by one rank"
    GP_EXPECT=flat/ll GP_COUNT=1001 run 60 "and what follows it holds" -n 2 $on ${tune}2 "$prog" expect
    GP_EXPECT=ring/ll run 60 "forced choices go before the file" -n 2 $on ${tune}2 \
        --mca coll_gpuproto_algorithm ring --mca coll_gpuproto_protocol ll "$prog" expect
    GP_EXPECT=declined run 60 "ranks with different tuning files: all decline" \
        -n 1 $on ${tune}1 "$prog" expect \
        : -n 1 env OMPI_MCA_coll_gpuproto_tune_file="$out.tune2" "$prog" expect
    says "rank 1 has another tuning file\|rank 0 has another tuning file" "and say so"
    printf '# the same\n\n%s  *  * 0K %s # \n' "$executor" "RING simple 0 0" >"$out.tune3"
    GP_EXPECT=ring/simple run 60 "files that mean the same do" \
        -n 1 $on ${tune}1 "$prog" expect \
        : -n 1 $on ${tune}3 "$prog" expect
    GP_EXPECT=ours run 60 "a tuning file that is not there" -n 2 $on ${tune}9 "$prog" expect
    says "Parameter: *coll_gpuproto_tune_file" "the message names the parameter"
    says "Value: *$out.tune9" "and its value"
    says "Why: *No such file" "and why"
    says "Give the path of a file that every rank can read" "and what to do"

    # Ways to select.
    GP_EXPECT=ours run 60 "--mca coll gpuproto alone" -n 2 --mca coll gpuproto "$prog" expect
    GP_EXPECT=ours run 60 "gpuproto,tuned" -n 2 --mca coll gpuproto,tuned "$prog" expect
    GP_EXPECT=ours run 60 "tuned,gpuproto" -n 2 --mca coll tuned,gpuproto "$prog" expect
    if [ "$GP_TEST_MEMORY" = host ]; then
        GP_EXPECT=declined run 60 "no list: host buffers are left alone" -n 2 "$prog" expect
        GP_EXPECT=anything run 60 "^gpuproto" -n 2 --mca coll ^gpuproto "$prog" expect
        GP_EXPECT=declined run 60 "host_buffers 0" -n 2 --mca coll gpuproto \
            --mca coll_gpuproto_host_buffers 0 "$prog" expect
        GP_EXPECT=anything run 60 "a rank without gpuproto: all decline" -n 1 $on \
            --mca coll_base_verbose 1 "$prog" expect \
            : -n 1 env OMPI_MCA_coll=^gpuproto "$prog" expect
        says "rank 1 has not loaded gpuproto" "and rank 0 knows why"
        GP_EXPECT=declined run 60 "a rank with other parameters: all decline" \
            -n 1 $on "$prog" expect : -n 1 env OMPI_MCA_coll_gpuproto_max_fifo_mib=32 "$prog" expect
        says "has not loaded gpuproto\|other parameters" "and say so"
        GP_EXPECT=anything run 60 "a rank with another priority: all decline" \
            -n 1 $on --mca coll_gpuproto_trace 1 "$prog" expect \
            : -n 1 env OMPI_MCA_coll_gpuproto_priority=5 "$prog" expect
        says "gpuproto-trace rank=0 .* declined reason=\"rank 1 runs gpuproto with other parameters" \
            "and the trace says so"
        GP_EXPECT=ours run 60 "a list that needs no completion" -n 2 \
            --mca coll gpuproto,basic,libnbc --mca coll_gpuproto_complete_selection 0 "$prog" expect
        GP_EXPECT=declined run 60 "executor cuda takes no host buffers" -n 2 $on \
            --mca coll_gpuproto_executor cuda "$prog" expect
    else
        GP_EXPECT=ours run 60 "no list: device buffers are taken" -n 2 "$prog" expect
        GP_EXPECT=declined run 60 "executor host: device buffers are staged" -n 2 $on \
            --mca coll_gpuproto_executor host "$prog" expect
    fi
    two=declined
    if [ "$GP_TEST_MEMORY" = host ] && [ "$have_ucx" = yes ]; then
        two=ours
    fi
    GP_EXPECT=$two run 60 "two host identities: $two" -n 1 $on "$prog" expect \
        : -n 1 env OMPI_MCA_coll_gpuproto_host_id=elsewhere "$prog" expect

    # Over UCX, as between hosts.
    if [ "$GP_TEST_MEMORY" = host ] && [ "$have_ucx" = yes ]; then
        ucx="$on --mca coll_gpuproto_transports ucx -x GPUPROTO_UCX_TLS=tcp"
        for n in $few; do
            run 180 "ucx: all types and operations, $n ranks" -n "$n" $ucx "$prog" matrix
        done
        run 120 "ucx: communicators made and freed" -n 4 $ucx "$prog" comms
        run 120 "ucx: rapid sequence of sizes" -n 3 $ucx "$prog" rapid
        run 60 "ucx: late ranks" -n 4 $ucx "$prog" late
        run 120 "ucx: two threads, two communicators" -n 2 $ucx "$prog" threads
        run 60 "ucx: every other collective" -n 3 $ucx "$prog" others
        for a in ring tree flat; do
            for p in ll ll128 simple; do
                GP_EXPECT=$a/$p GP_COUNT=100000 run 60 "ucx: forced $a/$p" -n 4 $ucx \
                    --mca coll_gpuproto_algorithm $a --mca coll_gpuproto_protocol $p "$prog" expect
            done
        done
        run 60 "ucx: two nodes of two ranks" -n 2 $on -x GPUPROTO_UCX_TLS=tcp "$prog" late \
            : -n 2 env OMPI_MCA_coll_gpuproto_host_id=elsewhere "$prog" late
        run 60 "ucx: a rank that stays away: the call is given up" -n 2 $ucx \
            --mca coll_gpuproto_timeout 2 "$prog" stuck
        says "waiting for data from rank 1" "ucx: the message says for whom it waited"
        timeout -k 5 60 "${MPIRUN:-mpirun}" $over -n 3 $ucx "$prog" killed >"$out" 2>&1 </dev/null
        status=$?
        [ "$status" != 0 ] && [ "$status" != 124 ]
        tap_result $? "ucx: a killed rank ends the job"
    fi

    # What ompi_info tells.
    "${OMPI_INFO:-ompi_info}" --param coll gpuproto --level 9 >"$out" 2>&1
    says "coll_gpuproto_cuda_kernels" "ompi_info says whether CUDA kernels are compiled in"
    says "coll_gpuproto_max_fifo_mib.*current value: \"64\"" "and shows the parameters"

    # Bad values.
    GP_EXPECT=ours run 60 "a bad value gives the default" -n 2 $on \
        --mca coll_gpuproto_algorithm rnig --mca coll_gpuproto_max_channels 1000 "$prog" expect
    says "coll_gpuproto_algorithm" "the message names the parameter"
    says "rnig" "and the value"
    says "auto, ring, tree or flat" "and what is allowed"
    says "0 to 64" "and the range of a number"

    GP_EXPECT=ours GPUPROTO_HELP_DIR=/nonexistent run 60 "threads that are no multiple of 32" -n 2 $on \
        --mca coll_gpuproto_threads 33 "$prog" expect
    says "coll_gpuproto_threads.*33.*multiples of 32" "the message is whole without the help file"

    # Trace.
    GP_EXPECT=ours run 60 "trace" -n 2 $on --mca coll_gpuproto_trace 1 "$prog" expect
    says "gpuproto-trace rank=0 comm=0 seq=.* op=MPI_SUM type=MPI_FLOAT count=1000 bytes=4000 algorithm=" \
        "one line per call"
    says "gpuproto-trace rank=0 .* predicted_us=[0-9.]* fifo_bytes=[1-9][0-9]* reason=" \
        "with the prediction and the FIFO memory"

    # Waiting.
    run 60 "a rank that stays away: the call is given up" -n 2 $on \
        --mca coll_gpuproto_timeout 2 --mca coll_gpuproto_warn_after 1 "$prog" stuck
    says "waiting for data from rank 1" "the message says for whom it waited"
    says "earlier allreduce on this communicator was given up" "and the next call refuses"
    run 60 "a rank that misses the first call: given up" -n 2 $on \
        --mca coll_gpuproto_timeout 2 "$prog" first
    says "all ranks to enter their first call" "and the message says so"
    run 60 "a late rank: a warning, and a right result" -n 2 $on \
        --mca coll_gpuproto_warn_after 1 "$prog" warned
    says "waiting for [1-9].* s: channel .* data from rank 1" "the warning says for whom"
    if [ "$GP_TEST_MEMORY" = host ]; then
        before=$(find /dev/shm -name 'gpuproto-*' | sort)
        timeout -k 5 60 "${MPIRUN:-mpirun}" $over -n 3 $on "$prog" killed >"$out" 2>&1 </dev/null
        status=$?
        # Other jobs may come and go: what this one left stays.
        sleep 1
        [ "$status" != 0 ] && [ "$status" != 124 ] \
            && ! find /dev/shm -name 'gpuproto-*' | grep -qvxF "$before"
        tap_result $? "a killed rank ends the job and leaves no segment"
    fi
}
tap_end
