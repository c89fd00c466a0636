#!/bin/sh
# lint_source.sh - rules that hold for every source file: licence line, width, no tabs, include direction,
# memory ordering in one header, one spelling of include paths.
#
# Each rule is first tried on a planted violation, so that a rule that can no longer fail is seen.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # rules are called by name
set -u
top=${GP_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top/tests/lib/gp_tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
code_dirs="planner device transport mca_coll_gpuproto tests contrib"

# Source files under $1, relative to it.
sources() {
    (cd "$1" && for d in $code_dirs; do
        [ ! -d "$d" ] || find "$d" -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' \
            -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.S' \)
    done | sort)
}
scripts() {
    (cd "$1" && find contrib tests .ci -type f \( -name '*.sh' -o -name '*.py' -o -path '.ci/run' \
        -o -name gpuproto_tune \) \
        2>/dev/null; cd "$1" && ls autogen.sh 2>/dev/null) | sort
}
makefiles() {
    (cd "$1" && find . -path './build*' -prune -o \( -name local.mk -o -path ./configure.ac \
        -o -path ./Makefile.am -o -path './m4/gp_*.m4' \) -print | sed 's,^\./,,' | sort)
}

rule_spdx() {
    { sources "$1"; scripts "$1"; makefiles "$1"; } | while read -r f; do
        head -n 40 "$1/$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' \
            || echo "$f: no SPDX line near the top"
    done
}

# Code has 100 columns. A line with a comment may run over by a word rather than be broken badly.
rule_width() {
    scripts "$1" | while read -r f; do
        awk -v f="$f" 'length($0) > 108 { printf "%s:%d: %d columns\n", f, FNR, length($0) }' "$1/$f"
    done
    sources "$1" | while read -r f; do
        awk -v f="$f" '{ n = length($0); max = /^ *\*|\/\*|\/\// ? 108 : 100 }
            n > max { printf "%s:%d: %d columns\n", f, FNR, n }' "$1/$f"
    done
}

rule_blanks() {
    sources "$1" | while read -r f; do
        awk -v f="$f" '/\t/ { printf "%s:%d: tab\n", f, FNR }
            /[ \r]$/ { printf "%s:%d: blank at the end of the line\n", f, FNR }' "$1/$f"
        [ -z "$(tail -c 1 "$1/$f")" ] || echo "$f: no newline at the end"
    done
}

# Quoted includes name the path from the top, and only what the directory may know.
allowed() {
    case $1 in
    device/proto/*) echo 'device/proto' ;;
    planner/*) echo 'planner device/proto' ;;
    transport/*) echo 'transport device/proto' ;;
    device/gp_exec.h) echo 'device/proto' ;;
    device/cuda/*) echo 'device/cuda device/gp_exec.h device/proto planner transport config.h' ;;
    device/host/*) echo 'device/host device/gp_exec.h device/proto planner transport config.h' ;;
    mca_coll_gpuproto/*) echo 'mca_coll_gpuproto device planner transport config.h ompi opal' ;;
    contrib/*) echo 'contrib planner device/proto config.h' ;;
    tests/*) echo 'tests planner device transport mca_coll_gpuproto contrib config.h ompi opal' ;;
    esac
}
rule_includes() {
    sources "$1" | while read -r f; do
        may=$(allowed "$f")
        sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$1/$f" | while read -r inc; do
            ok=no
            case $inc in
            ompi_config.h | mpi.h) case " $may " in *" ompi "*) ok=yes ;; esac ;;
            esac
            for d in $may; do
                case $inc in "$d" | "$d"/*) ok=yes ;; esac
            done
            [ "$ok" = yes ] || echo "$f: may not include \"$inc\" (may: $may)"
        done
    done
}

# MPI, UCX and CUDA stay where DESIGN puts them: the layers below the component are tested without.
rule_foreign() {
    sources "$1" | grep -E '^(device|planner)/' | while read -r f; do
        grep -nE '^ *# *include *<(mpi|ompi|opal|ucp|ucs|uct|pmix)[./_a-z]*' "$1/$f" | sed "s,^,$f:,"
    done
    sources "$1" | grep -E '^transport/' | grep -v '^transport/gp_ucx' | while read -r f; do
        grep -nE '^ *# *include *<(mpi|ompi|opal|ucp|ucs|uct|pmix)[./_a-z]*' "$1/$f" | sed "s,^,$f:,"
    done
}

ordering='__atomic_|__sync_(synchronize|fetch|bool|lock)|stdatomic\.h|__threadfence|^[^*]*\basm +volatile'

# Ordering is written once; elsewhere code calls it by name. Inline PTX too.
rule_ordering() {
    sources "$1" | grep -E '^(device|planner|transport|mca_coll_gpuproto)/' \
        | grep -v -x 'device/proto/gp_port.h' | while read -r f; do
        sed -e 's,//.*,,' -e 's,/\*.*\*/,,' "$1/$f" | grep -nE "$ordering" | sed "s,^,$f:,"
    done
}

# A rule that holds for the tree, and finds what is wrong in a file planted for it.
# try RULE FILE CONTENT DESCRIPTION
try() {
    rm -rf "$work/t"
    mkdir -p "$work/t/$(dirname "$2")"
    printf '%b' "$3" >"$work/t/$2"
    if [ -z "$("$1" "$work/t" 2>/dev/null)" ]; then
        tap_result 1 "$4: the rule finds a planted violation"
        return
    fi
    tap_empty "$("$1" "$top")" "$4"
}

n=$(sources "$top" | wc -l)
tap_result "$([ "$n" -gt 20 ]; echo $?)" "the tree has source files to look at ($n)"
spdx='/* SPDX-License-Identifier: BSD-3-Clause */\n'
long=$(printf '%0120d' 0)
try rule_spdx planner/x.c 'int x;\n' "every file names its licence"
try rule_width planner/x.c "int x$long;\n" "no line is wider than 100 columns"
try rule_blanks planner/x.c "${spdx}\tint x;\n" "no tabs, no blanks at line ends"
try rule_includes device/proto/x.h "${spdx}#include \"planner/gp_plan.h\"\n" \
    "includes point down the list of directories"
try rule_foreign planner/x.c "${spdx}#include <mpi.h>\n" \
    "planner, device and transport know no MPI or UCX"
try rule_ordering transport/x.c "${spdx}void f(int *p) { __atomic_store_n(p, 1, 5); }\n" \
    "memory ordering only in gp_port.h"
tap_end
