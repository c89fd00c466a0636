#!/usr/bin/env bash
# quickstart.sh - from a fresh checkout to the first table: install what is missing (Debian packages),
# build in a directory of its own, install into a private prefix, and run MPI_Allreduce through
# coll/gpuproto on 4 ranks. Device buffers where there is a GPU, host buffers elsewhere.
#
#   contrib/quickstart.sh [options of gpuproto_perf]
#
# Environment: GP_BUILD_DIR (default: build-quickstart in the source directory), GP_RANKS (default 4),
# GP_CONFIGURE (more options for configure).
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=contrib/lib.sh
. "$top/contrib/lib.sh"

build=${GP_BUILD_DIR:-$top/build-quickstart}
prefix=$build/install
component_dir=$prefix/lib/openmpi
ranks=${GP_RANKS:-4}

# shellcheck disable=SC2046
gp_install $(gp_missing_build)
trap gp_mps_stop EXIT
trap 'exit 130' INT TERM

mkdir -p "$build" || die "cannot create $build"
build=$(cd "$build" && pwd)
say "building in $build (logs beside it)"
gp_quietly "$build/autogen.log" gp_autogen || exit 1
cd "$build" || exit 1
# shellcheck disable=SC2046,SC2086
gp_quietly configure.log "$top/configure" --disable-maintainer-mode --prefix="$prefix" \
    --with-mca-component-dir="$component_dir" $(gp_arch_option) ${GP_CONFIGURE:-} || exit 1
sed -n '/^gpuproto [0-9]/,$p' configure.log
gp_quietly make.log make -j"$(gp_cores)" || exit 1
gp_quietly install.log make install || exit 1

gpus=$(gp_gpus)
if [ "$gpus" -gt 0 ]; then
    memory=cuda
    what="device buffers on $gpus GPU(s): $(gp_gpu_name)"
    [ -n "$(gp_nvcc)" ] || what="$what; without nvcc no kernels were built: calls are staged"
    if [ "$ranks" -gt "$gpus" ]; then
        if gp_mps_start; then
            what="$what, shared by $ranks ranks through MPS"
        else
            what="$what, shared by $ranks ranks WITHOUT MPS: calls are staged"
        fi
    fi
    sizes="-b 8 -e 64M"
else
    memory=host
    what="host buffers: there is no GPU here"
    sizes="-b 8 -e 4M"
fi

gp_mpi_env "$component_dir"
options=$(gp_mpirun_options "$ranks")
echo
say "$what"
say "the component is in $component_dir, not where Open MPI has its own. To run programs of yours:"
say "  export OMPI_MCA_mca_base_component_path=$OMPI_MCA_mca_base_component_path"
say "mpirun -n $ranks --mca coll gpuproto $options $prefix/bin/gpuproto_perf" \
    "--memory $memory $sizes --brief $*"
echo
# shellcheck disable=SC2086
timeout -k 10 900 mpirun -n "$ranks" --mca coll gpuproto $options "$prefix/bin/gpuproto_perf" \
    --memory "$memory" $sizes --brief "$@"
rc=$?
echo
if [ "$rc" = 0 ]; then
    say "done: $what"
else
    say "FAILED with status $rc: $what"
fi
exit "$rc"
