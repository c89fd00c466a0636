dnl GP_FIND_PKG(NAME, package, minimum version, header, library, function)
dnl
dnl An optional library: pkg-config first, then the plain header and library. --with-package[=DIR] makes
dnl its absence an error. Sets NAME_CFLAGS, NAME_LIBS, conditional and config.h macro GP_HAVE_NAME, and
dnl gp_NAME_use (on|off), gp_NAME_version, gp_NAME_why for the summary.
dnl
dnl SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([GP_FIND_PKG], [
AC_ARG_WITH([$2],
    [AS_HELP_STRING([--with-$2@<:@=DIR|no@:>@], [use $2 (default: when it is found)])],
    [], [with_$2=auto])
gp_$1_use=off
gp_$1_version=-
gp_$1_why="headers not found"
$1_CFLAGS=
$1_LIBS=
AS_CASE([$with_$2],
    [no], [gp_$1_why="--without-$2"],
    [auto|yes],
    [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $2 2>/dev/null],
        [gp_$1_version=`$PKG_CONFIG --modversion $2`
         AS_IF([$PKG_CONFIG --atleast-version=$3 $2],
             [$1_CFLAGS=`$PKG_CONFIG --cflags $2`
              $1_LIBS=`$PKG_CONFIG --libs $2`
              gp_$1_use=on
              gp_$1_why="pkg-config"],
             [gp_$1_why="older than $3"])],
        [$1_LIBS=-l$5
         gp_$1_use=on
         gp_$1_why="compiler's default path"])],
    [AS_IF([test ! -f "$with_$2/include/$4"],
         [AC_MSG_ERROR([--with-$2=$with_$2: no $with_$2/include/$4])])
     $1_CFLAGS="-isystem $with_$2/include"
     $1_LIBS="-L$with_$2/lib -Wl,-rpath,$with_$2/lib -l$5"
     gp_$1_use=on
     gp_$1_why="$with_$2"])
AS_IF([test "$gp_$1_use" = on],
    [gp_save_CPPFLAGS=$CPPFLAGS
     gp_save_LIBS=$LIBS
     CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
     LIBS="$$1_LIBS $LIBS"
     AC_MSG_CHECKING([whether $2 compiles and links])
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$4>]], [[return NULL == (void *) $6;]])],
         [AC_MSG_RESULT([yes])],
         [AC_MSG_RESULT([no])
          gp_$1_use=off
          gp_$1_why="$4 or -l$5 not found"])
     CPPFLAGS=$gp_save_CPPFLAGS
     LIBS=$gp_save_LIBS])
AS_IF([test "$gp_$1_use" = off],
    [AS_CASE([$with_$2], [auto|no], [], [AC_MSG_ERROR([--with-$2=$with_$2 was asked for: $gp_$1_why])])
     $1_CFLAGS=
     $1_LIBS=])
gp_have=0
AS_IF([test "$gp_$1_use" = on], [gp_have=1])
AC_DEFINE_UNQUOTED([GP_HAVE_$1], [$gp_have], [1 when $2 was found])
AC_SUBST([$1_CFLAGS])
AC_SUBST([$1_LIBS])
AM_CONDITIONAL([GP_HAVE_$1], [test "$gp_$1_use" = on])
])
