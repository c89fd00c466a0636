#!/bin/sh
# test_perf.sh - gpuproto_perf as its users meet it: exit status, that it sees wrong data, that what it says
# ran is what was asked for, and its files.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # awk conditions
set -u
top=${GP_TOP_SRCDIR:?}
. "$top/tests/lib/gp_tap.sh"
perf=${GP_TOP_BUILDDIR:?}/contrib/gpuproto_perf
[ -f "${GP_COMPONENT_DIR:?}/mca_coll_gpuproto.so" ] || { echo "Bail out! no component"; exit 99; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
OMPI_MCA_mca_base_component_path=$GP_COMPONENT_DIR:SYSTEM_DEFAULT
OMPI_MCA_mpi_yield_when_idle=1
OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mca_base_component_path OMPI_MCA_mpi_yield_when_idle OMPI_MCA_rmaps_base_oversubscribe

# run STATUS DESCRIPTION RANKS MPIRUN-OPTIONS -- OPTIONS...: output in $work/out.
run() {
    want=$1 what=$2 ranks=$3 with=$4
    shift 4
    # shellcheck disable=SC2086
    timeout -k 5 120 "$MPIRUN" -n "$ranks" $with "$perf" "$@" >"$work/out" 2>&1
    got=$?
    if [ "$want" = "$got" ] || { [ "$want" = nonzero ] && [ $got != 0 ] && [ $got -lt 124 ]; }; then
        tap_result 0 "$what"
    else
        tap_result 1 "$what"
        tap_diag "exit status $got, expected $want"
        tap_diag "$(tail -n 15 "$work/out")"
    fi
}
says() {
    grep -q -- "$1" "$work/out"
    tap_result $? "$2"
}

# all_rows FILE CONDITION: every row of the CSV holds the awk condition, and there is one.
# Fields: bytes count type op place iters median p95 min algbw busbw wrong algorithm protocol channels ...
all_rows() {
    awk -F, "NR > 1 { n++; if (!($2)) { bad++; if (bad < 4) print \"# \" \$0 } }
        END { exit !(n > 0 && !bad) }" "$1"
    tap_result $? "$3"
}

ours="--mca coll gpuproto"
theirs="--mca coll ^gpuproto"

run 0 "--help" 1 "$theirs" --help
says "usage:" "--help prints the options"
run 2 "an unknown type is a usage error" 1 "$theirs" -d quad
says "float" "it lists the types there are"
run 2 "a pair that MPI does not define is a usage error" 1 "$theirs" -d float -o band
run 2 "-b above -e is a usage error" 1 "$theirs" -b 1M -e 1K
run 2 "an offset between elements is a usage error" 1 "$theirs" -d double --offset 4
run 2 "more than 2^31 - 1 elements is a usage error" 1 "$theirs" -d int8 -e 4G

run 0 "another component's results are checked too" 3 "$theirs" --memory host -b 4 -e 4K -f 8 -n 2 \
    --csv "$work/a.csv"
says "NOT loaded" "it says that gpuproto is not loaded"
all_rows "$work/a.csv" '$12 == 0 && $13 == "-" && $16 == "-"' "nothing is said to have run on gpuproto"

for where in "$theirs" "$ours"; do
    run nonzero "one changed bit on one rank is found ($where)" 2 "$where" --memory host -b 4K -e 4K \
        -n 1 --inject-error
    says "1 of 1024 elements wrong, first at 512" "its place is named"
    says "FAILED" "the table says FAILED"
done

run 0 "all types and operations" 3 "$ours" --memory host -b 20 -e 2000 -i 990 -n 1 -w 0 -d all -o all \
    --csv "$work/b.csv" --json "$work/b.json"
all_rows "$work/b.csv" '$12 == 0 && $16 == "host" && $13 ~ /^(ring|tree|flat)$/ && $15 >= 1' \
    "every row was right, and gpuproto's host executor ran it"
for type in int8 uint16 int32 uint64 float double cfloat cdouble bool logical; do
    grep -q ",$type," "$work/b.csv"
    tap_result $? "$type was among them"
done
if [ -n "${PYTHON:-}" ]; then
    "$PYTHON" - "$work/b.json" "$work/b.csv" <<'PYEOF'
import json, sys
doc = json.load(open(sys.argv[1]))
rows = [line.split(",") for line in open(sys.argv[2]).read().splitlines()[1:]]
assert doc["ranks"] == 3 and doc["active"] is True and doc["wrong"] == 0
assert 2 * len(doc["rows"]) == len(rows) > 100, (len(doc["rows"]), len(rows))
for row, csv in zip(doc["rows"], rows[0::2]):
    place = row["out_of_place"]
    assert [str(row["bytes"]), row["type"], row["op"]] == [csv[0], csv[2], csv[3]]
    assert abs(place["median_us"] - float(csv[6])) < 0.002
    assert place["p95_us"] >= place["median_us"] >= place["min_us"] > 0
PYEOF
    tap_result $? "JSON and CSV hold the same table"
else
    tap_skip "no python3" "JSON and CSV hold the same table"
fi

for algorithm in ring tree; do
    for protocol in ll ll128 simple; do
        run 0 "forced $algorithm $protocol" 3 "$ours --mca coll_gpuproto_algorithm $algorithm
            --mca coll_gpuproto_protocol $protocol" --memory host -b 4 -e 1M -f 64 -n 2 -w 1 \
            --csv "$work/c.csv"
        all_rows "$work/c.csv" "\$12 == 0 && \$13 == \"$algorithm\" && \$14 == \"$protocol\"" \
            "$algorithm $protocol is what ran"
    done
done
run 0 "different offsets of send and receive buffer" 2 "$ours" --memory host -b 1000 -e 1000 -d int8 \
    --offset 3,5 -n 1
run 0 "one rank" 1 "$ours" --memory host -b 4 -e 1K -f 4 -n 1
run 0 "the brief table" 2 "$ours" --memory host -b 8 -e 8 -n 1 --brief
[ "$(awk '$1 == 8 { print NF }' "$work/out")" = 6 ]
tap_result $? "the brief table has six columns"

if [ "$GP_TEST_MEMORY" = host ]; then
    run nonzero "device buffers without a device end in a message" 1 "$ours" --memory cuda -b 8 -e 8
    says "no CUDA" "the message says so"
fi
tap_end
