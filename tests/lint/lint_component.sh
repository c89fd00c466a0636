#!/bin/sh
# lint_component.sh - the built component: what it exports, what it needs, that Open MPI can open it.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
so=${GP_COMPONENT_DIR:?}/mca_coll_gpuproto.so
[ -f "$so" ] || { echo "Bail out! no $so"; exit 99; }
for tool in nm readelf; do
    command -v $tool >/dev/null 2>&1 || tap_skip_all "no $tool"
done

# The linker's own marks are no symbols of ours.
exported=$(nm -D --defined-only "$so" | awk '{ print $NF }' \
    | grep -vxE '_init|_fini|__bss_start|_edata|_end' | sort | tr '\n' ' ')
[ "$exported" = "mca_coll_gpuproto_component " ]
tap_result $? "exactly one symbol is exported"
tap_diag "exported: $exported"

needed=$(readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
tap_empty "$(printf '%s\n' "$needed" | grep -E '^lib(cuda|cudart|nvrtc|nccl|stdc\+\+)')" \
    "no library of CUDA, and no C++ library, is needed"
printf '%s\n' "$needed" | grep -q '^libmpi\.so'
tap_result $? "libmpi is needed"
readelf -d "$so" | grep -q 'NODELETE'
tap_result $? "the component is never unloaded (-z nodelete)"
tap_empty "$(readelf -d "$so" | grep -E 'TEXTREL|R(UN)?PATH.*(/tmp|/home|/root|build)')" \
    "no text relocations, no run path into a build directory"
tap_empty "$(readelf -lW "$so" | grep -E 'GNU_STACK.*RWE')" "the stack is not executable"
tap_end
