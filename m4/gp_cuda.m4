dnl GP_FIND_CUDA - nvcc, its targets, and the CUDA headers that the CPU build of the kernels needs.
dnl
dnl Sets NVCC, NVCCFLAGS, NVCC_GENCODE, CUDA_INCLUDES, conditionals GP_HAVE_CUDA and
dnl GP_HAVE_CUDA_HEADERS, config.h macros GP_HAVE_CUDA (0|1), GP_CUDA_ARCHS, GP_CUDA_VERSION.
dnl No CUDA library is linked: the driver is opened at run time.
dnl
dnl SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([GP_FIND_CUDA], [
AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR|no@:>@],
                    [build the GPU kernels with DIR/bin/nvcc (default: when an nvcc is found)])],
    [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
                    [GPU targets, for example "90" or "75 80 90" (default: one per generation from 75
                     to the newest that nvcc knows, plus PTX of the newest)])],
    [], [with_cuda_arch=])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler])

gp_cuda_use=off
gp_cuda_version=-
gp_cuda_why="no nvcc on PATH or in /usr/local/cuda/bin"
gp_cuda_headers_use=off
gp_cuda_headers_why="cuda_fp16.h not found: CPU tests of the kernels are skipped"
GP_CUDA_ARCHS=
NVCC_GENCODE=
CUDA_INCLUDES=
AS_CASE([$with_cuda],
    [no], [NVCC=; gp_cuda_why="--without-cuda"; gp_cuda_headers_why="--without-cuda"],
    [auto|yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])
     AS_IF([test -z "$NVCC"], [AC_MSG_ERROR([--with-cuda=$with_cuda: no nvcc in $with_cuda/bin])])])

AS_IF([test -n "$NVCC"],
    [gp_cuda_version=`$NVCC --version 2>/dev/null | $SED -n 's/.*release \([[0-9.]]*\).*/\1/p'`
     AS_IF([test -z "$gp_cuda_version"], [AC_MSG_ERROR([$NVCC does not run])])
     AC_MSG_CHECKING([which GPU targets to build])
     gp_known=`$NVCC --list-gpu-arch 2>/dev/null | $SED -n 's/^compute_\([[0-9]]*\)$/\1/p' | sort -n`
     AS_IF([test -z "$gp_known"],
         [AC_MSG_RESULT([unknown])
          AC_MSG_ERROR([$NVCC does not list its GPU targets: CUDA 11 or later is needed])])
     gp_newest=`echo "$gp_known" | tail -n 1`
     gp_known_line=`echo $gp_known`
     AS_IF([test -z "$with_cuda_arch"],
         [# Machine code of a generation's first chip runs on the later ones of that generation.
          gp_generation=
          for gp_arch in $gp_known; do
              AS_IF([test "$gp_arch" -lt 75], [continue])
              gp_this=`expr $gp_arch / 10`
              AS_IF([test "$gp_this" != "$gp_generation"],
                  [GP_CUDA_ARCHS="$GP_CUDA_ARCHS $gp_arch"; gp_generation=$gp_this])
          done
          NVCC_GENCODE="-gencode arch=compute_$gp_newest,code=compute_$gp_newest"
          gp_ptx=" +PTX $gp_newest"],
         [gp_ptx=
          for gp_arch in `echo "$with_cuda_arch" | tr ',;' '  ' | $SED 's/sm_//g'`; do
              AS_IF([echo "$gp_known" | $GREP -x "$gp_arch" >/dev/null], [],
                  [AC_MSG_RESULT([none])
                   AC_MSG_ERROR([--with-cuda-arch: this nvcc does not know "$gp_arch", it knows: $gp_known_line])])
              AS_IF([test "$gp_arch" -lt 70],
                  [AC_MSG_ERROR([--with-cuda-arch: "$gp_arch" is older than 70, which the kernels need])])
              GP_CUDA_ARCHS="$GP_CUDA_ARCHS $gp_arch"
          done])
     for gp_arch in $GP_CUDA_ARCHS; do
         NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$gp_arch,code=sm_$gp_arch"
     done
     GP_CUDA_ARCHS=`echo $GP_CUDA_ARCHS`$gp_ptx
     AC_MSG_RESULT([$GP_CUDA_ARCHS])
     NVCCFLAGS=${NVCCFLAGS:-"-fmad=false -O3 -std=c++17"}
     AC_MSG_CHECKING([whether nvcc compiles])
     cat >conftest.gp.cu <<'_GPEOF'
__global__ void gp_probe(int *p) { *p = 1; }
_GPEOF
     AS_IF([$NVCC $NVCCFLAGS -gencode arch=compute_$gp_newest,code=sm_$gp_newest \
                -cubin -o conftest.gp.cubin conftest.gp.cu >&AS_MESSAGE_LOG_FD 2>&1],
         [AC_MSG_RESULT([yes])],
         [AC_MSG_RESULT([no])
          AC_MSG_ERROR([$NVCC cannot compile a kernel, see config.log (or give --without-cuda)])])
     rm -f conftest.gp.cu conftest.gp.cubin
     gp_cuda_use=on
     gp_cuda_why="$NVCC: $GP_CUDA_ARCHS"],
    [AS_CASE([$with_cuda], [auto|no], [],
         [AC_MSG_ERROR([--with-cuda was asked for: $gp_cuda_why])])
     AS_IF([test -n "$with_cuda_arch"],
         [AC_MSG_ERROR([--with-cuda-arch was given, but there is no CUDA compiler: $gp_cuda_why])])])

AS_IF([test "$with_cuda" != no],
    [AC_MSG_CHECKING([for cuda_fp16.h])
     gp_dirs="/usr/local/cuda/include /usr/include"
     AS_IF([test -n "$NVCC"],
         [gp_real=`readlink -f "$NVCC" 2>/dev/null || echo "$NVCC"`
          gp_dirs="`dirname "$NVCC"`/../include `dirname "$gp_real"`/../include $gp_dirs"])
     for gp_dir in $gp_dirs; do
         AS_IF([test -f "$gp_dir/cuda_fp16.h" && test -f "$gp_dir/cuda_bf16.h"],
             [gp_dir=`cd "$gp_dir" && pwd`
              AS_IF([test "$gp_dir" != /usr/include], [CUDA_INCLUDES="-isystem $gp_dir"])
              gp_cuda_headers_use=on
              gp_cuda_headers_why=$gp_dir
              break])
     done
     AC_MSG_RESULT([$gp_cuda_headers_use])])

gp_have=0
AS_IF([test "$gp_cuda_use" = on], [gp_have=1])
AC_DEFINE_UNQUOTED([GP_HAVE_CUDA], [$gp_have], [1 when the GPU kernels are built])
AC_DEFINE_UNQUOTED([GP_CUDA_ARCHS], ["$GP_CUDA_ARCHS"], [GPU targets of the embedded kernels])
AC_DEFINE_UNQUOTED([GP_CUDA_VERSION], ["$gp_cuda_version"], [release of the CUDA compiler, "-": none])
AC_SUBST([GP_CUDA_ARCHS])
AC_SUBST([NVCC_GENCODE])
AC_SUBST([CUDA_INCLUDES])
AM_CONDITIONAL([GP_HAVE_CUDA], [test "$gp_cuda_use" = on])
AM_CONDITIONAL([GP_HAVE_CUDA_HEADERS], [test "$gp_cuda_headers_use" = on])
])
