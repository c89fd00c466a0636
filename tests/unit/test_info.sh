#!/bin/sh
# test_info.sh - gpuproto_info: what it prints and how it ends.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
info=${GP_TOP_BUILDDIR:-.}/contrib/gpuproto_info
[ -x "$info" ] || tap_skip_all "no $info"

# expect STATUS PATTERN DESCRIPTION ARGUMENTS: exit status, and a line of the output that matches.
expect() {
    want=$1 pattern=$2 what=$3
    shift 3
    out=$("$info" "$@" 2>&1)
    got=$?
    if [ "$got" = "$want" ] && printf '%s\n' "$out" | grep -qE "$pattern"; then
        tap_result 0 "$what"
    else
        tap_result 1 "$what"
        tap_diag "gpuproto_info $*: status $got, want $want and /$pattern/"
        tap_diag "$(printf '%s\n' "$out" | head -n 5)"
    fi
}

expect 0 '^bytes=1024 type=f64 op=max algorithm=tree protocol=simple executor=cuda .* reason="forced' \
    "plan: forced algorithm and protocol" \
    plan --ranks 8 --bytes 1K --type f64 --op max --algorithm tree --protocol simple
expect 0 'executor=host channels=1 threads=0 ' "plan: host buffers" plan --host --bytes 1M
[ "$("$info" plan --ranks 4 | wc -l)" = 28 ]
tap_result $? "plan: 8 bytes to 1 GiB without --bytes"
expect 1 'declined reason="ll128: a path' "plan: a refusal names its rule, status 1" \
    plan --path pcie --protocol ll128 --bytes 4M
expect 0 'protocol=ll128 ' "plan: unless it is forced as unsafe" \
    plan --path pcie --protocol ll128 --ll128-unsafe --bytes 4M
expect 1 'declined reason="type and operation' "plan: complex maximum" \
    plan --type c64 --op max --bytes 64
expect 0 'slots=8 slot_bytes=614400 data_bytes=576000 ' "sets: a user's buffer size" \
    sets --algorithm ring --protocol ll128 --buffer ll128=4915200
expect 0 '^proven with 2 slots$' "program: a ring is proven with two slots" program --ranks 5
expect 1 '^not proven with 1 slots: deadlock' "program: and not with one" program --ranks 5 --slots 1
expect 0 'step 1 chunk 0: from 0#0 \+ own \+ from 2#0 -> output' "program: operands in order" \
    program --ranks 3 --algorithm flat
expect 0 '^  ring +simple +[0-9.]+ = .*<- fastest' "plan --explain: the fastest and the others" \
    plan --ranks 4 --bytes 64M --explain
expect 0 '^  tree +ll128 +excluded: ll128: a path' "plan --explain: what a rule excluded" \
    plan --ranks 16 --nodes 2 --bytes 2M --explain
expect 0 '^  ring of even channels: 0 -> 1 -> 2 -> 3 -> 0$' "plan --explain: ring orders" \
    plan --ranks 4 --bytes 1G --explain
[ "$("$info" plan --ranks 4 --json | grep -c '^{"bytes": .*"choices": \[.*\]}$')" = 28 ]
tap_result $? "plan --json: a line for each size"
picture=$(mktemp)
"$info" plan --ranks 16 --nodes 2 --bytes 1M --graph "$picture" >/dev/null \
    && [ "$(grep -c '<circle' "$picture")" = 48 ] && [ "$(grep -c '<line' "$picture")" = 46 ]
tap_result $? "plan --graph: 16 ranks three times, a ring of 16 and two trees of 15"
rm -f "$picture"
expect 1 'draws 2 to' "plan --graph: not for 1000 ranks" plan --ranks 1000 --bytes 1M --graph /dev/null
expect 0 '^  time: [0-9.]+ us' "simulate: the time of one size" \
    simulate --ranks 16 --nodes 2 --bytes 64K --algorithm ring
expect 0 '^  critical path: 31 steps$' "simulate: a ring of 16 has 31 steps" \
    simulate --ranks 16 --nodes 2 --bytes 64 --algorithm ring
expect 0 '^ +busiest: the NIC of rank' "simulate: the busiest link" \
    simulate --ranks 16 --nodes 2 --bytes 64M --algorithm ring --bandwidth 450,1
expect 0 '^(ring|tree) overtakes (flat|tree) between' "simulate: a table and its crossovers" \
    simulate --ranks 8 --nodes 1
expect 1 'declined reason="deadlock with 1 slots' "simulate: a deadlock is reported" \
    simulate --ranks 5 --bytes 64 --algorithm ring --slots 1
expect 1 'declined reason="ll128: a path' "simulate: what the planner declines" \
    simulate --ranks 16 --nodes 2 --bytes 64 --protocol ll128
expect 0 '"time_us": [0-9.]+, "path": ' "simulate: JSON" \
    simulate --ranks 16 --nodes 2 --bytes 64 --json
expect 2 'equal nodes' "simulate: nodes that are not equal" simulate --ranks 10 --nodes 3
expect 2 'alpha' "simulate: a latency that is none" simulate --alpha-us=-1
plot=$(mktemp) || exit 99
"$info" simulate --ranks 4 --nodes 1 --plot "$plot" >/dev/null && grep -q '^</svg>$' "$plot" \
    && [ "$(grep -c '^<polyline' "$plot")" = 3 ]
tap_result $? "simulate: a picture with three lines"
rm -f "$plot"
expect 2 'bytes' "usage: a size that is none" plan --bytes 1X
expect 2 'type' "usage: a type that is none" plan --type f128
expect 2 'algorithm' "usage: custom cannot be asked for" plan --algorithm custom
expect 2 'command' "usage: a command that is none" frobnicate
expect 2 'extra' "usage: an extra argument" plan now
expect 0 '^usage:' "usage: --help" --help
tap_end
