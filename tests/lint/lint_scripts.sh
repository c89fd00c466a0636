#!/bin/sh
# lint_scripts.sh - shellcheck on every shell script, and each of them executable.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
cd "$top" || exit 99

for f in autogen.sh .ci/run contrib/check.sh contrib/gpu-check.sh contrib/quickstart.sh \
    contrib/gpuproto_tune; do
    [ -x "$f" ]
    tap_result $? "$f is executable"
done
if command -v shellcheck >/dev/null 2>&1; then
    for f in autogen.sh .ci/run contrib/gpuproto_tune $(find contrib tests -name '*.sh' | sort); do
        tap_empty "$(shellcheck -x -e SC1091 "$f" 2>&1)" "shellcheck $f"
    done
else
    tap_skip "no shellcheck" "shellcheck of all scripts"
fi
tap_end
