#!/bin/sh
# test_tune_tool.sh - gpuproto_tune: order of measurements, ties, what it writes and when it does not; with
# a pretended machine of known times, then once on this one.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
tool=$top/contrib/gpuproto_tune
command -v bash >/dev/null 2>&1 || tap_skip_all "no bash"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"

# A machine with one GPU and MPS. mpirun logs the combination and writes the table that perf would.
cat >"$work/bin/nvidia-smi" <<'FAKE'
#!/bin/sh
case $* in
-L) echo "GPU 0: Pretended (UUID: GPU-0)" ;;
*) echo "Pretended" ;;
esac
FAKE
printf '#!/bin/sh\nexit 0\n' >"$work/bin/nvidia-cuda-mps-control"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/perf"
cat >"$work/bin/mpirun" <<'FAKE'
#!/bin/sh
ranks=0 a="" p="" c=0 csv="" threads=auto
while [ $# -gt 0 ]; do
    case $1 in
    -n) [ "$ranks" != 0 ] || ranks=$2 ;; # the second one is perf's
    coll_gpuproto_algorithm) a=$2 ;;
    coll_gpuproto_protocol) p=$2 ;;
    coll_gpuproto_max_channels) c=$2 ;;
    coll_gpuproto_threads) threads=$2 ;;
    --csv) csv=$2 ;;
    esac
    shift
done
echo "$ranks $a/$p/$c/$threads" >>"$FAKE_LOG"
pass=$(grep -c -x "$ranks $a/$p/$c/$threads" "$FAKE_LOG")
[ "$a/$p" != "${FAKE_FAIL:-}" ] || { echo "it broke"; exit 3; }
echo "# gpuproto_perf 9.8.7: MPI_Allreduce, $ranks ranks on 1 node, cuda buffers (Pretended)"
awk -v ranks="$ranks" -v a="$a" -v p="$p" -v c="$c" -v pass="$pass" -v wrong="${FAKE_WRONG:-0}" 'BEGIN {
    print "bytes,count,type,op,place,iters,median_us,p95_us,min_us,algbw_gbs,busbw_gbs,wrong," \
        "algorithm,protocol,channels,executor,memory,ranks"
    for (b = 64; b <= 4096; b *= 8) {
        us = 30
        if (b == 64 && a "/" p == "flat/ll") us = pass == 1 ? 4 : 6 # 5.0 as the median of the two
        if (b == 64 && a "/" p == "ring/ll") us = 5.2               # within 5 %, and simpler
        if (b == 64 && a "/" p == "ring/simple") us = 5.3           # not within 5 %
        if (b > 64 && a "/" p == "tree/ll128") us = 10
        if (b > 64 && a "/" p == "tree/simple") us = pass == 1 ? 10.8 : 10
        if (b > 64 && a "/" p == "ring/simple") us = 10.6
        if (c == 8) us *= b > 64 ? 0.9 : 0.98 # 2 % are not worth a setting, 10 % are
        ex = a "/" p == "ring/ll128" ? "-" : "cuda"
        for (place = 0; place < 2; place++)
            printf "%d,%d,float,sum,%s,9,%.3f,1,1,1,1,%d,%s,%s,%d,%s,cuda,%d\n", b, b / 4,
                place ? "in" : "out", us + (place ? 0.01 : -0.01), wrong, ex == "-" ? "-" : a,
                ex == "-" ? "-" : p, c == 0 ? 2 : c, ex, ranks
    }
}' >"$csv"
[ "${FAKE_WRONG:-0}" = 0 ]
FAKE
chmod +x "$work"/bin/*

# tune STATUS DESCRIPTION OPTIONS...: run with the pretended machine; messages in $work/err.
tune() {
    want=$1 what=$2
    shift 2
    : >"$work/log"
    FAKE_LOG=$work/log PATH=$work/bin:$PATH MPIRUN="" timeout -k 5 60 bash "$tool" --mpirun mpirun \
        --perf "$work/bin/perf" -o "$work/tune" "$@" >"$work/stdout" 2>"$work/err"
    got=$?
    [ "$got" = "$want" ]
    tap_result $? "$what"
    [ "$got" = "$want" ] || tap_diag "status $got: $(tail -n 5 "$work/err")"
}
# rules DESCRIPTION TEXT: the file's rules without comments.
rules() {
    sed -e 's/ *#.*//' -e '/^$/d' "$work/tune" >"$work/rules"
    printf '%s' "$2" >"$work/want"
    tap_empty "$(diff "$work/want" "$work/rules" 2>&1)" "$1"
}
says() {
    grep -q -- "$2" "$1"
    tap_result $? "$3"
}

tune 0 "a pretended machine is measured" -n "2 4" -b 64 -e 4K -f 8
{
    for n in 2 4; do
        for k in ring/simple ring/ll ring/ll128 tree/simple tree/ll tree/ll128 flat/simple flat/ll \
            flat/ll128 flat/ll128 flat/ll flat/simple tree/ll128 tree/ll tree/simple ring/ll \
            ring/simple; do
            echo "$n $k/0/auto"
        done
    done
} >"$work/order"
tap_empty "$(diff "$work/order" "$work/log" 2>&1)" \
    "every combination forward, then backward, and what was declined only once"
rules "ties go to the simpler combination, equal neighbours are one rule" \
    'cuda 2 1 64 ring ll auto auto
cuda 2 1 512 tree simple auto auto
cuda 4 1 64 ring ll auto auto
cuda 4 1 512 tree simple auto auto
'
says "$work/tune" "ring ll auto auto  # 5.20 us; flat/ll 5.00$" "a rule says what it took and what was best"
says "$work/tune" "gpuproto 9.8.7" "the file names the version"
says "$work/tune" "^# machine: $(uname -n), .*, 1 x Pretended" "and the machine"
says "$work/tune" "^# date: 20[0-9][0-9]-" "and the date"
says "$work/tune" "^# command: gpuproto_tune .*-n 2 4 -b 64" "and the command"
says "$work/err" "^\[0/36\] .*2 ranks, ring/simple" "progress begins at 0"
says "$work/err" "^\[34/34\] .* about 0 s left: done" "and ends at all: two were declined"
says "$work/err" "ring/ll128 .* is declined with 2 ranks" "a declined combination is named"
[ ! -s "$work/stdout" ]
tap_result $? "nothing goes to stdout"

tune 1 "a file that is there is kept" -n 2
says "$work/err" "is there already" "and the message says so"
tune 0 "unless forced" -n 2 --force --channels "auto 8" -b 64
# At 64 bytes the best is flat/ll on 8 channels, 4.90: 5 % above are 5.145, where flat/ll with 5.00 has the
# fewest settings.
rules "a number of channels is only written where it brings more than the tie" \
    'cuda 2 1 64 flat ll auto auto
cuda 2 1 512 tree simple 8 auto
'
tune 0 "tie 0" -n 2 --force --tie 0
rules "is the fastest" 'cuda 2 1 64 flat ll auto auto
cuda 2 1 512 tree ll128 auto auto
'
FAKE_FAIL=tree/simple tune 0 "a combination that breaks" -n 2 --force
says "$work/err" "tree/simple with 2 ranks ended with status 3" "is reported"
rules "and left out" 'cuda 2 1 64 ring ll auto auto
cuda 2 1 512 tree ll128 auto auto
'
cp "$work/tune" "$work/before"
FAKE_WRONG=1 tune 1 "wrong results" -n 2 --force
cmp -s "$work/before" "$work/tune"
tap_result $? "write nothing"
says "$work/err" "WRONG RESULTS" "and are named"
tune 2 "an unknown option is a usage error" --frobnicate
tune 2 "one rank is a usage error" -n 1
tune 2 "an unknown memory is a usage error" --memory rom
tune 2 "a tie that is no number is a usage error" --tie x
tune 0 "--help" --help
says "$work/stdout" "^usage:" "prints the options"

# This machine, for real.
[ -f "${GP_COMPONENT_DIR:-}/mca_coll_gpuproto.so" ] || { echo "Bail out! no component"; exit 99; }
perf=${GP_TOP_BUILDDIR:?}/contrib/gpuproto_perf
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_mca_base_component_path=$GP_COMPONENT_DIR:SYSTEM_DEFAULT
OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
timeout -k 5 300 bash "$tool" --quick -e 16K --iters 5 -n 2 --memory host --perf "$perf" \
    --mpirun "${MPIRUN:-mpirun}" --component-dir "$GP_COMPONENT_DIR" -o "$work/real" \
    >"$work/out" 2>"$work/err"
status=$?
tap_result "$status" "a real quick run with 2 ranks on host buffers"
[ "$status" = 0 ] || tap_diag "$(tail -n 10 "$work/err")"
says "$work/real" "^host 2 1 4 [a-z]* [a-z0-9]* auto auto  # " "its first rule is for 4 bytes"
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_mca_base_component_path
export OMPI_MCA_mpi_yield_when_idle OMPI_MCA_rmaps_base_oversubscribe
OMPI_MCA_coll=gpuproto OMPI_MCA_coll_gpuproto_host_buffers=1 OMPI_MCA_coll_gpuproto_tune_file=$work/real
export OMPI_MCA_coll OMPI_MCA_coll_gpuproto_host_buffers OMPI_MCA_coll_gpuproto_tune_file
# One rank traces: lines of two would run into each other.
set -- "$perf" --memory host -b 4 -e 16K -f 16 -n 1
timeout -k 5 60 "${MPIRUN:-mpirun}" -n 1 env OMPI_MCA_coll_gpuproto_trace=1 "$@" : -n 1 "$@" \
    >"$work/out" 2>&1
tap_result $? "the file is accepted"
tap_empty "$(grep -n 'left out\|cannot be read' "$work/out")" "without a complaint"
tap_empty "$(grep 'gpuproto-trace .*bytes=\(4\|1024\|16384\) ' "$work/out" \
    | grep -v 'reason="tuning file line [0-9]*"$')" "and every call in it is planned by it"
says "$work/out" 'bytes=16384 .*reason="tuning file line [0-9]*"$' "there were such calls"
tap_end
