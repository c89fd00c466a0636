dnl GP_FIND_OMPI - the Open MPI that the component is built for.
dnl
dnl Sets, for code inside Open MPI (the component): OMPI_CPPFLAGS, OMPI_LDFLAGS, OMPI_LIBS; for MPI
dnl programs: MPICC, MPI_CPPFLAGS, MPI_LIBS, MPIRUN, OMPI_INFO; and mcacomponentdir.
dnl
dnl SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([GP_FIND_OMPI], [
AC_ARG_WITH([ompi],
    [AS_HELP_STRING([--with-ompi=DIR], [prefix of Open MPI (default: the mpicc on PATH)])],
    [], [with_ompi=])
AC_ARG_WITH([mca-component-dir],
    [AS_HELP_STRING([--with-mca-component-dir=DIR],
                    [where the component goes (default: where Open MPI has its own)])],
    [], [with_mca_component_dir=])
AC_ARG_VAR([MPICC], [Open MPI's C compiler wrapper])
AC_ARG_VAR([MPIRUN], [Open MPI's launcher, used by tests])
AC_ARG_VAR([OMPI_INFO], [Open MPI's ompi_info])

AS_CASE([$with_ompi],
    [no], [AC_MSG_ERROR([gpuproto is an Open MPI component: --with-ompi=no makes no sense])],
    [yes], [with_ompi=])
gp_mpi_path=$PATH
AS_IF([test -n "$with_ompi"],
    [AS_IF([test ! -x "$with_ompi/bin/mpicc"],
           [AC_MSG_ERROR([--with-ompi=$with_ompi: no $with_ompi/bin/mpicc])])
     gp_mpi_path=$with_ompi/bin])
AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$gp_mpi_path])
AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$gp_mpi_path])
AC_PATH_PROGS([OMPI_INFO], [ompi_info], [], [$gp_mpi_path])
AS_IF([test -z "$MPICC" || test -z "$OMPI_INFO"],
    [AC_MSG_ERROR([no Open MPI found: mpicc or ompi_info is missing (Debian: libopenmpi-dev openmpi-bin)])])

AC_MSG_CHECKING([for the headers of Open MPI])
set dummy `$MPICC --showme:incdirs 2>/dev/null`
OMPI_INCDIR=$[]2
AS_IF([test ! -f "$OMPI_INCDIR/mpi.h" || test ! -d "$OMPI_INCDIR/openmpi/ompi/mca/coll"],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$MPICC is not Open MPI's, or its development headers (openmpi/ompi/mca/coll) are missing])])
AC_MSG_RESULT([$OMPI_INCDIR])

AC_MSG_CHECKING([for the version of Open MPI])
cat >conftest.gp.c <<'_GPEOF'
[#include <mpi.h>
gp_version OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION]
_GPEOF
GP_OMPI_VERSION=`$CC -E -P -I"$OMPI_INCDIR" conftest.gp.c 2>/dev/null |
    $SED -n 's/^gp_version \([[0-9]]*\) \([[0-9]]*\) \([[0-9]]*\).*/\1.\2.\3/p'`
rm -f conftest.gp.c
AC_MSG_RESULT([${GP_OMPI_VERSION:-unknown}])
AS_CASE([$GP_OMPI_VERSION],
    [4.1.*|5.*|6.*], [],
    [AC_MSG_ERROR([Open MPI 4.1 or later is needed, found "$GP_OMPI_VERSION" in $OMPI_INCDIR])])

# -isystem: warnings in Open MPI's headers are not ours. -idirafter: our stand-ins for headers that some
# installations lack only count where the real one is missing.
gp_ompi_inc="-isystem $OMPI_INCDIR -isystem $OMPI_INCDIR/openmpi"
AS_CASE([$GP_OMPI_VERSION], [4.*], [],
    [gp_pmix=
     AS_IF([test -n "$PKG_CONFIG"], [gp_pmix=`$PKG_CONFIG --variable=includedir pmix 2>/dev/null`])
     AS_IF([test -z "$gp_pmix" || test ! -f "$gp_pmix/pmix.h"],
         [for gp_dir in "$OMPI_INCDIR/openmpi/opal/mca/pmix" `dirname "$OMPI_INCDIR"`/../pmix2/include; do
              AS_IF([test -f "$gp_dir/pmix.h"], [gp_pmix=$gp_dir; break])
          done])
     AS_IF([test -n "$gp_pmix"], [gp_ompi_inc="$gp_ompi_inc -isystem $gp_pmix"])])
OMPI_CPPFLAGS="$gp_ompi_inc -idirafter "'$(top_srcdir)/mca_coll_gpuproto/compat'
MPI_CPPFLAGS="-isystem $OMPI_INCDIR"
MPI_LIBS=`$MPICC --showme:link 2>/dev/null`
OMPI_LDFLAGS=
for gp_dir in `$MPICC --showme:libdirs 2>/dev/null`; do
    OMPI_LDFLAGS="$OMPI_LDFLAGS -L$gp_dir"
done
OMPI_LIBS="-lmpi -lopen-pal"

gp_save_CPPFLAGS=$CPPFLAGS
gp_save_LDFLAGS=$LDFLAGS
gp_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $gp_ompi_inc -idirafter $srcdir/mca_coll_gpuproto/compat"
LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
LIBS="$OMPI_LIBS $LIBS"
AC_MSG_CHECKING([whether a coll component compiles and links])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include "ompi_config.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/runtime/opal_progress.h"
]], [[opal_progress(); return NULL == ompi_coll_base_framework.framework_name;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([the development headers or libraries of Open MPI in $OMPI_INCDIR are incomplete, see config.log])])
CPPFLAGS=$gp_save_CPPFLAGS
LDFLAGS=$gp_save_LDFLAGS
LIBS=$gp_save_LIBS

AC_MSG_CHECKING([where Open MPI's components are])
gp_pkglibdir=`$OMPI_INFO --parsable --path pkglibdir 2>/dev/null | $SED -n 's/^path:pkglibdir://p'`
AS_CASE([$with_mca_component_dir],
    [yes|no], [AC_MSG_ERROR([--with-mca-component-dir needs a directory])],
    [''], [mcacomponentdir=$gp_pkglibdir],
    [mcacomponentdir=$with_mca_component_dir])
AC_MSG_RESULT([$gp_pkglibdir])
AS_IF([test -z "$mcacomponentdir"],
    [AC_MSG_ERROR([$OMPI_INFO names no component directory: give --with-mca-component-dir=DIR])])

AC_DEFINE_UNQUOTED([GP_OMPI_VERSION], ["$GP_OMPI_VERSION"],
    [Open MPI release whose headers the component was compiled with])
AC_SUBST([GP_OMPI_VERSION])
AC_SUBST([OMPI_INCDIR])
AC_SUBST([OMPI_CPPFLAGS])
AC_SUBST([OMPI_LDFLAGS])
AC_SUBST([OMPI_LIBS])
AC_SUBST([MPI_CPPFLAGS])
AC_SUBST([MPI_LIBS])
AC_SUBST([mcacomponentdir])
])
