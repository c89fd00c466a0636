#!/bin/sh
# lint_tidy.sh - clang-tidy on the C sources, with the checks of .clang-tidy. One case per directory.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${GP_TOP_BUILDDIR:-$top}
. "$top/tests/lib/gp_tap.sh"
command -v clang-tidy >/dev/null 2>&1 || tap_skip_all "no clang-tidy"
[ -z "${GP_CHECK_QUICK:-}" ] || tap_skip_all "GP_CHECK_QUICK is set"
cd "$top" || exit 99
inc=${GP_OMPI_INCDIR:-/usr/lib/x86_64-linux-gnu/openmpi/include}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# tidy FILES...: what clang-tidy complains about, nothing when all is well.
tidy() {
    clang-tidy --quiet --config-file="$top/.clang-tidy" "$@" -- -std=gnu11 -I"$top" -I"$build" \
        -isystem "$inc" -isystem "$inc/openmpi" -idirafter mca_coll_gpuproto/compat 2>/dev/null \
        | grep -E 'error:|warning:'
}

printf 'int f(int x);\nint f(int x)\n{\n    if (x)\n        return 1;\n    return 0;\n}\n' >"$work/x.c"
[ -n "$(tidy "$work/x.c")" ]
tap_result $? "clang-tidy runs, and finds planted missing braces"
for dir in planner device/host device/cuda transport mca_coll_gpuproto contrib; do
    set -- "$dir"/*.c
    [ -f "$1" ] || continue
    tap_empty "$(tidy "$@")" "clang-tidy: $dir"
done
tap_end
