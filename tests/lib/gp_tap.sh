# gp_tap.sh - Test Anything Protocol for shell tests: plan at the end. Sourced by POSIX sh scripts.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
tap_cases=0
tap_failed=0

tap_diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# tap_result STATUS DESCRIPTION: ok when STATUS is 0.
tap_result() {
    tap_cases=$((tap_cases + 1))
    if [ "$1" = 0 ]; then
        printf 'ok %d - %s\n' "$tap_cases" "$2"
    else
        tap_failed=$((tap_failed + 1))
        printf 'not ok %d - %s\n' "$tap_cases" "$2"
    fi
}

# tap_empty TEXT DESCRIPTION: ok when TEXT is empty; otherwise its first lines are what is wrong.
tap_empty() {
    if [ -z "$1" ]; then
        tap_result 0 "$2"
    else
        tap_result 1 "$2"
        tap_diag "$(printf '%s\n' "$1" | head -n 40)"
    fi
}

# tap_skip REASON DESCRIPTION
tap_skip() {
    tap_cases=$((tap_cases + 1))
    printf 'ok %d - %s # SKIP %s\n' "$tap_cases" "$2" "$1"
}

tap_skip_all() {
    printf '1..0 # SKIP %s\n' "$*"
    exit 0
}

# tap_end: print the plan, leave with the right status (0 under a TAP reader, which has read the failures).
tap_end() {
    printf '1..%d\n' "$tap_cases"
    [ -z "${GP_TAP_READER:-}" ] || exit 0
    [ "$tap_failed" = 0 ] && [ "$tap_cases" != 0 ]
    exit
}
