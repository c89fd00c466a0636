# lib.sh - what the scripts of this directory share: packages, building, MPS, launching.
#
# Sourced, not run. The caller sets `top` (source directory) and may set GP_BUILD_DIR. bash.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash

: "${top:?set by the script that sources this}"

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

gp_cores() { nproc 2>/dev/null || echo 1; }

# ---- packages -----------------------------------------------------------------------------------

# Debian packages that are missing to build, judged by what they bring: a machine that has the tools from
# elsewhere needs nothing.
gp_missing_build() {
    local missing=""
    have gcc && have g++ && have make || missing="$missing build-essential"
    if [ ! -x "$top/configure" ] || have libtoolize; then
        have autoconf || missing="$missing autoconf"
        have automake || missing="$missing automake"
        have libtoolize || missing="$missing libtool"
    fi
    have pkg-config || missing="$missing pkg-config"
    have mpirun || missing="$missing openmpi-bin"
    have mpicc && [ -n "$(gp_ompi_headers)" ] || missing="$missing libopenmpi-dev"
    gp_header hwloc.h || missing="$missing libhwloc-dev"
    gp_header ucp/api/ucp.h || missing="$missing libucx-dev"
    echo "$missing"
}

# What only checking needs.
gp_missing_check() {
    local missing=""
    have clang++ || missing="$missing clang"
    have clang-tidy || missing="$missing clang-tidy"
    have clang-format || missing="$missing clang-format"
    have shellcheck || missing="$missing shellcheck"
    have python3 || missing="$missing python3"
    have readelf || missing="$missing binutils"
    echo "$missing"
}

gp_ompi_headers() {
    local dir
    # shellcheck disable=SC2013
    for dir in $(mpicc --showme:incdirs 2>/dev/null); do
        if [ -d "$dir/openmpi/ompi/mca/coll" ]; then
            echo "$dir"
            return
        fi
    done
}

gp_header() { printf '#include <%s>\n' "$1" | gcc -E -x c - >/dev/null 2>&1; }

# Install the named Debian packages. Does nothing, and needs no network, when there are none.
gp_install() {
    local sudo=""
    [ $# -gt 0 ] || return 0
    say "missing, to be installed:$(printf ' %s' "$@")"
    have apt-get || die "this machine has no apt-get; install the equivalents of: $*"
    if [ "$(id -u)" != 0 ]; then
        have sudo || die "not root and no sudo; run as root: apt-get install $*"
        sudo="sudo"
    fi
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -q >/dev/null || say "apt-get update failed; trying with the lists at hand"
    $sudo apt-get install -q -y --no-install-recommends "$@" >/dev/null \
        || die "apt-get could not install: $*"
}

# ---- GPUs and MPS -------------------------------------------------------------------------------

# Number of GPUs that the driver shows.
gp_gpus() {
    local n=0
    if have nvidia-smi; then
        n=$(timeout 30 nvidia-smi -L 2>/dev/null | grep -c '^GPU ') || n=0
    fi
    echo "$n"
}

gp_gpu_name() { timeout 30 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1; }

# "90" for compute capability 9.0; empty without a GPU.
gp_gpu_arch() {
    have nvidia-smi || return 0
    timeout 30 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null \
        | head -n 1 | tr -d '. '
}

gp_nvcc() {
    if have nvcc; then
        command -v nvcc
    elif [ -x /usr/local/cuda/bin/nvcc ]; then
        echo /usr/local/cuda/bin/nvcc
    fi
}

# The configure option for one GPU target: the GPU's own, else 90, else what configure chooses.
gp_arch_option() {
    local nvcc arch
    nvcc=$(gp_nvcc)
    [ -n "$nvcc" ] || return 0
    for arch in $(gp_gpu_arch) 90; do
        if "$nvcc" --list-gpu-arch 2>/dev/null | grep -qx "compute_$arch"; then
            echo "--with-cuda-arch=$arch"
            return
        fi
    done
}

gp_mps_dir=""

# Ranks that share a GPU need MPS, or they are time-sliced. Use the one that runs, else start our own in
# a private directory. Returns 1 when there is none to start.
gp_mps_start() {
    if echo get_server_list | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1; then
        say "MPS is running already"
        return 0
    fi
    have nvidia-cuda-mps-control || return 1
    gp_mps_dir=$(mktemp -d /tmp/gp-mps.XXXXXX)
    export CUDA_MPS_PIPE_DIRECTORY="$gp_mps_dir/pipe" CUDA_MPS_LOG_DIRECTORY="$gp_mps_dir/log"
    mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    if ! timeout 30 nvidia-cuda-mps-control -d; then
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
        rm -rf "$gp_mps_dir"
        gp_mps_dir=""
        return 1
    fi
    say "MPS started"
}

# Stop what gp_mps_start started.
gp_mps_stop() {
    [ -n "$gp_mps_dir" ] || return 0
    echo quit | timeout 30 nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf "$gp_mps_dir"
    gp_mps_dir=""
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# ---- building -----------------------------------------------------------------------------------

# Generate configure where it is missing or older than its sources.
gp_autogen() {
    if [ -x "$top/configure" ] && ! have libtoolize; then
        return 0
    fi
    if [ ! -x "$top/configure" ] || [ ! -f "$top/Makefile.in" ] \
        || [ -n "$(find "$top" -newer "$top/configure" \( -name '*.m4' -o -name configure.ac \
                   -o -name '*.mk' -o -name Makefile.am \) -print -quit 2>/dev/null)" ]; then
        (cd "$top" && ./autogen.sh)
    fi
}

# gp_quietly LOG COMMAND...: output to LOG; on failure its end to stderr too.
gp_quietly() {
    local log=$1 rc=0
    shift
    "$@" >"$log" 2>&1 || rc=$?
    if [ "$rc" != 0 ]; then
        printf 'failed (%s): %s\n' "$rc" "$*" >&2
        tail -n 40 "$log" >&2
        printf '(all of it: %s)\n' "$log" >&2
    fi
    return "$rc"
}

# ---- launching ----------------------------------------------------------------------------------

# Environment for running from a private component directory, as root, in a container.
gp_mpi_env() {
    local dir=$1 libdir
    # A component path that does not exist makes mpirun fail in ways that do not say so.
    [ -f "$dir/mca_coll_gpuproto.so" ] || die "no component in $dir"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mca_base_component_path="$dir:SYSTEM_DEFAULT"
    # Where a distribution points PMIx at a directory of its own, mpirun would hand that to the ranks as
    # Open MPI's component path; name both.
    libdir=$(ompi_info --parsable --path libdir 2>/dev/null | sed -n 's/^path:libdir://p')
    for libdir in "$libdir" "$(dirname "${libdir:-/}")" "$(dirname "$(dirname "${libdir:-/}")")"; do
        if [ -d "$libdir/pmix2/lib/pmix" ] && [ "$(gp_ompi_major)" -ge 5 ]; then
            export PMIX_MCA_mca_base_component_path="$libdir/pmix2/lib/pmix"
            break
        fi
    done
    # Containers often forbid one process to read another's memory, which Open MPI only notices late.
    if [ -f /.dockerenv ] || [ -f /run/.containerenv ]; then
        export OMPI_MCA_btl_vader_single_copy_mechanism=none
    fi
}

gp_ompi_major() {
    ompi_info --parsable --version 2>/dev/null | sed -n 's/^ompi:version:full:\([0-9]*\).*/\1/p' \
        | head -n 1 | grep . || echo 4
}

# Options of mpirun for $1 ranks on this machine, whatever its number of slots.
gp_mpirun_options() {
    local options
    if [ "$(gp_ompi_major)" -ge 5 ]; then
        options="--map-by :OVERSUBSCRIBE"
    else
        options="--oversubscribe"
    fi
    if [ "$1" -gt "$(gp_cores)" ]; then
        options="$options --bind-to none --mca mpi_yield_when_idle 1"
    fi
    echo "$options"
}
