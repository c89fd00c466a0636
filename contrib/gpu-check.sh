#!/usr/bin/env bash
# gpu-check.sh - build and run everything that needs a GPU, on whatever GPU machine this is, in under
# 8 minutes: the GPU tests, the MPI tests on device buffers, every algorithm and protocol at the 29 sizes
# 4 B - 1 GiB (checked and timed), and compute-sanitizer on small sizes. A short table comes last.
#
#   contrib/gpu-check.sh
#
# Environment: GP_LOG_DIR (default: a new directory in /tmp), GP_BUILD_DIR (default: build-gpu-check in
# the source directory), GP_RANKS (default 4), GP_GPU_CHECK_SECONDS (default 460: steps that no longer
# fit are reported as not run), GP_GPU_CHECK_STEPS (default all: "build gpu mpi sanitizer perf").
# Needs no network and, where configure was generated already, no autotools.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=contrib/lib.sh
. "$top/contrib/lib.sh"

build=${GP_BUILD_DIR:-$top/build-gpu-check}
logs=${GP_LOG_DIR:-$(mktemp -d /tmp/gp-gpu-check.XXXXXX)}
ranks=${GP_RANKS:-4}
budget=${GP_GPU_CHECK_SECONDS:-460}
steps=${GP_GPU_CHECK_STEPS:-build gpu mpi sanitizer perf}
cores=$(gp_cores)
component_dir=$build/mca_coll_gpuproto/.libs
perf=$build/contrib/gpuproto_perf
table=$logs/table.txt
rows=""
bad=0

wanted() { case " $steps " in *" $1 "*) return 0 ;; esac; return 1; }
left() { echo $((budget - SECONDS)); }
note() { rows="$rows$(printf '%-28s %-8s %6s s  %s' "$1" "$2" "$3" "$4")"$'\n'; }

# run NAME SECONDS COMMAND...: output in $logs/NAME.log, killed after SECONDS or when time is up.
run() {
    local name=$1 seconds=$2 start=$SECONDS rc=0 remaining
    shift 2
    remaining=$(left)
    if [ "$remaining" -lt 5 ]; then
        note "$name" "NOT RUN" 0 "out of time"
        bad=1
        return 1
    fi
    [ "$seconds" -le "$remaining" ] || seconds=$remaining
    timeout -k 5 "$seconds" "$@" >"$logs/$name.log" 2>&1 || rc=$?
    took=$((SECONDS - start))
    case $rc in
    0) return 0 ;;
    124 | 137) why="still running after $seconds s" ;;
    *) why="status $rc" ;;
    esac
    bad=1
    say "$name: $why"
    tail -n 15 "$logs/$name.log"
    return 1
}

# One make target of tests, results counted from what the driver wrote under $2.
run_tests() {
    local name=$1 under=$2 seconds=$3 p f s
    shift 3
    find "$build/$under" -name '*.trs' -delete 2>/dev/null
    run "$name" "$seconds" make -C "$build" "$@"
    local rc=$?
    p=$(results "$under" 'PASS|XFAIL')
    f=$(results "$under" 'FAIL|ERROR|XPASS')
    s=$(results "$under" 'SKIP')
    if [ "$rc" = 0 ] && [ "$f" = 0 ] && [ "$p" != 0 ]; then
        note "$name" ok "$took" "$p passed, $s skipped"
    else
        bad=1
        note "$name" FAILED "${took:-0}" "$p passed, $f failed, $s skipped ${why:-}"
        grep -hE '^(not ok|Bail out!)' -r "$build/$under" --include='*.log' | head -n 20
    fi
    mkdir -p "$logs/$name"
    find "$build/$under" -name '*.log' -exec cp -t "$logs/$name" {} + 2>/dev/null
}

results() { find "$build/$1" -name '*.trs' -exec grep -hE "^:test-result: *($2)" {} + | wc -l; }

finish() {
    gp_mps_stop
    {
        echo
        echo "gpu-check: $gpus x $(gp_gpu_name), $ranks ranks, ${SECONDS} s"
        printf '%s' "$rows"
        [ ! -s "$logs/perf.txt" ] || cat "$logs/perf.txt"
        [ "$bad" = 0 ] && echo "gpu-check: ok" || echo "gpu-check: FAILED"
    } >"$table"
    say "logs in $logs"
    cat "$table"
    exit "$bad"
}

mkdir -p "$logs" "$build" || die "cannot create $logs or $build"
logs=$(cd "$logs" && pwd)
build=$(cd "$build" && pwd)
gpus=$(gp_gpus)
[ "$gpus" -gt 0 ] || die "no GPU: nvidia-smi lists none (contrib/check.sh needs none)"
[ -n "$(gp_nvcc)" ] || die "no nvcc: the kernels cannot be built"
trap gp_mps_stop EXIT
trap 'exit 130' INT TERM
why=""
took=0

if wanted build; then
    gp_autogen >"$logs/autogen.log" 2>&1 || { tail -n 20 "$logs/autogen.log"; die "autogen failed"; }
    # shellcheck disable=SC2046
    run configure 120 env -C "$build" "$top/configure" --disable-maintainer-mode \
        --with-mca-component-dir="$build/install/lib/openmpi" --with-cuda $(gp_arch_option) \
        || { note configure FAILED "$took" "$why"; finish; }
    run build 240 make -C "$build" -j"$cores" || { note build FAILED "$took" "$why"; finish; }
    note build ok "$SECONDS" "$(gp_arch_option)"
    run build-tests 180 make -C "$build" -j"$cores" check TESTS= \
        || note build-tests FAILED "$took" "$why"
fi

gp_mpi_env "$component_dir"
if [ "$ranks" -gt "$gpus" ]; then
    gp_mps_start || { note MPS FAILED 0 "could not be started: ranks that share a GPU are staged"; bad=1; }
fi

wanted gpu && run_tests gpu-tests tests/gpu 150 check-gpu
wanted mpi && run_tests mpi-tests-cuda tests/mpi 150 check-mpi GP_TEST_MEMORY=cuda

if wanted sanitizer; then
    # The sanitizer's processes are no MPS clients: the tests that hold all their ranks in one process.
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if [ ! -x "$sanitizer" ]; then
        note sanitizer skipped 0 "no compute-sanitizer"
    else
        find "$build/tests/gpu" -maxdepth 1 -type f -name 'test_gpu_*' -perm -u+x | sort >"$logs/san.list"
        found=0
        while read -r program; do
            name=sanitizer-$(basename "$program")
            found=1
            if run "$name" 90 env -u CUDA_MPS_PIPE_DIRECTORY GP_CHECK_QUICK=1 GP_SANITIZER=1 \
                "$build/libtool" --mode=execute "$sanitizer" --tool memcheck --error-exitcode 97 \
                "$program"; then
                note "$name" ok "$took" "$(grep -h 'ERROR SUMMARY' "$logs/$name.log" | tail -n 1)"
            else
                note "$name" FAILED "$took" "$why"
            fi
        done <"$logs/san.list"
        [ "$found" = 1 ] || note sanitizer skipped 0 "no test_gpu_* program was built"
    fi
fi

# perf_one ALGORITHM PROTOCOL: 29 sizes, checked and timed; the figures go into the table.
perf_one() {
    local name=perf-$1-$2 csv=$logs/perf-$1-$2.csv
    # shellcheck disable=SC2046
    if run "$name" 75 mpirun -n "$ranks" --mca coll gpuproto $(gp_mpirun_options "$ranks") \
        --mca coll_gpuproto_algorithm "$1" --mca coll_gpuproto_protocol "$2" \
        "$perf" --memory cuda -b 4 -e 1G -f 2 -n 20 -w 5 -c 1 --row-seconds 0.5 --csv "$csv" \
        && awk -F, -v a="$1" -v p="$2" '$5 == "out" && $13 == a && $14 == p { n++ }
            END { exit n != 29 }' "$csv"; then
        note "$name" ok "$took" "29 sizes right"
    else
        bad=1
        note "$name" FAILED "$took" "${why:-another algorithm or protocol ran}"
    fi
    [ -s "$csv" ] || return
    awk -F, -v name="$1 $2" '
        $5 == "out" && NR > 1 { us[$1] = $7; bus[$1] = $11 }
        END {
            printf "%-14s", name
            split("1024 65536 1048576 67108864 1073741824", size, " ")
            for (i = 1; i <= 5; i++) printf " %10s", size[i] in us ? sprintf("%.1f", us[size[i]]) : "-"
            printf " %10s\n", 1073741824 in bus ? sprintf("%.1f", bus[1073741824]) : "-"
        }' "$csv" >>"$logs/perf.txt"
}

if wanted perf; then
    {
        echo "median us, float sum, $ranks ranks, device buffers, out of place:"
        printf '%-14s %10s %10s %10s %10s %10s %10s\n' "" "1 KiB" "64 KiB" "1 MiB" "64 MiB" "1 GiB" \
            "busbw GB/s"
    } >"$logs/perf.txt"
    for algorithm in ring tree; do
        for protocol in ll ll128 simple; do
            why=""
            perf_one "$algorithm" "$protocol"
        done
    done
fi
finish
