#!/usr/bin/env bash
# check.sh - build with gcc and with clang, both without a warning, run every test that can run here, the
# benchmark on the installed component, and distcheck. The last line counts real results:
#   N passed, N failed, N skipped
# Exit status 0 only when nothing failed.
#
#   contrib/check.sh
#
# Environment: GP_BUILD_DIR (default: build-check in the source directory), GP_CHECK_STEPS (default all:
# "gcc clang check install distcheck"), GP_CONFIGURE (more options for configure).
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=contrib/lib.sh
. "$top/contrib/lib.sh"

base=${GP_BUILD_DIR:-$top/build-check}
steps=${GP_CHECK_STEPS:-gcc clang check install distcheck}
warnings="-g -O2 -Werror"
passed=0
failed=0
skipped=0
failures=""

wanted() { case " $steps " in *" $1 "*) return 0 ;; esac; return 1; }

# step NAME SECONDS COMMAND...: one case; output in logs/NAME.log.
step() {
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    say "$name"
    if gp_quietly "$base/logs/$name.log" timeout -k 20 "$seconds" "$@"; then
        passed=$((passed + 1))
        say "$name: ok, $((SECONDS - start)) s"
        return 0
    fi
    failed=$((failed + 1))
    failures="$failures $name"
    say "$name: FAILED, $((SECONDS - start)) s"
    return 1
}

# Add up the results that the test driver wrote.
count_results() {
    local word results
    results=$(find "$1" -name '*.trs' -exec sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p' {} +)
    for word in $results; do
        case $word in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
        esac
    done
    [ -n "$results" ] || { failed=$((failed + 1)); say "no test wrote a result"; }
}

# Names and first lines of what failed, so that the end of the output is enough to start with.
show_failures() {
    local trs log
    grep -lE '^:test-result: *(FAIL|ERROR|XPASS)' -r "$1" --include='*.trs' | while read -r trs; do
        log=${trs%.trs}.log
        printf -- '--- %s\n' "${log#"$1"/}"
        grep -nE '^(not ok|Bail out!|ERROR|FAIL)' "$log" | head -n 10
        tail -n 5 "$log"
    done
}

finish() {
    [ -z "$failures" ] || say "failed steps:$failures"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
    exit
}

# shellcheck disable=SC2046
gp_install $(gp_missing_build)
# shellcheck disable=SC2046
(gp_install $(gp_missing_check)) || say "going on without them: their tests are skipped"

mkdir -p "$base/logs" || die "cannot create $base"
base=$(cd "$base" && pwd)
say "logs in $base/logs"
gp_quietly "$base/logs/autogen.log" gp_autogen || { failed=1; failures=" autogen"; finish; }
cores=$(gp_cores)
arch=$(gp_arch_option)
prefix=$base/install
common=(--disable-maintainer-mode --prefix="$prefix"
    --with-mca-component-dir="$prefix/lib/openmpi")

if wanted gcc; then
    mkdir -p "$base/gcc"
    # shellcheck disable=SC2086
    step configure-gcc 300 env -C "$base/gcc" "$top/configure" "${common[@]}" $arch \
        ${GP_CONFIGURE:-} CC=gcc CXX=g++ || finish
    sed -n '/^gpuproto [0-9]/,$p' "$base/logs/configure-gcc.log"
    step build-gcc 900 make -C "$base/gcc" -j"$cores" CFLAGS="$warnings" CXXFLAGS="$warnings" || finish
    step build-tests-gcc 900 make -C "$base/gcc" -j"$cores" CFLAGS="$warnings" \
        CXXFLAGS="$warnings" check TESTS= || finish
fi

if wanted check; then
    say "make check"
    find "$base/gcc" -name '*.trs' -delete
    # Results are counted one by one below, the status of make adds nothing to them.
    timeout -k 20 1200 make -C "$base/gcc" check CFLAGS="$warnings" CXXFLAGS="$warnings" \
        >"$base/logs/check.log" 2>&1
    sed -n '/^# TOTAL/,/^# ERROR/p' "$base/logs/check.log"
    count_results "$base/gcc"
    show_failures "$base/gcc"
fi

if wanted clang; then
    if have clang && have clang++; then
        # Without CUDA: the build without kernels is checked by the same step.
        mkdir -p "$base/clang"
        step configure-clang 300 env -C "$base/clang" "$top/configure" "${common[@]}" \
            --without-cuda CC=clang CXX=clang++ \
            && step build-clang 900 make -C "$base/clang" -j"$cores" CFLAGS="$warnings" \
                CXXFLAGS="$warnings" all \
            && step build-tests-clang 900 make -C "$base/clang" -j"$cores" CFLAGS="$warnings" \
                CXXFLAGS="$warnings" check TESTS=
    else
        skipped=$((skipped + 1))
        say "clang is not here: skipped"
    fi
fi

if wanted install; then
    # shellcheck disable=SC2046
    step install 300 make -C "$base/gcc" install \
        && step component-there 10 test -f "$prefix/lib/openmpi/mca_coll_gpuproto.so" \
        && gp_mpi_env "$prefix/lib/openmpi" \
        && step main-job 300 mpirun -n 4 --mca coll gpuproto $(gp_mpirun_options 4) \
            "$prefix/bin/gpuproto_perf" --memory host -b 4 -e 4M -n 5 -w 2
    unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
    [ ! -f "$base/logs/main-job.log" ] || cat "$base/logs/main-job.log"
fi

if wanted distcheck; then
    export GP_CHECK_QUICK=1
    step distcheck 1200 make -C "$base/gcc" -j"$cores" distcheck
fi

finish
