dnl GP_FIND_TEST_TOOLS - sanitizers and compilers that only tests use.
dnl
dnl A sanitizer counts as present when a program built with it also runs: some kernels and containers
dnl refuse the address layout that ThreadSanitizer needs.
dnl
dnl SPDX-License-Identifier: BSD-3-Clause

dnl GP_TRY_SANITIZER(name, command, flags, what): sets gp_name_use and gp_name_why
AC_DEFUN([GP_TRY_SANITIZER], [
AC_MSG_CHECKING([whether $4 works])
gp_$1_use=off
gp_$1_why="does not link"
cat >conftest.gp.cc <<'_GPEOF'
[#include <pthread.h>
static int x;
static void *f(void *p) { __atomic_store_n(&x, 1, __ATOMIC_RELEASE); return p; }
int main() { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);
             return 1 != __atomic_load_n(&x, __ATOMIC_ACQUIRE); }]
_GPEOF
AS_IF([$2 $3 -o conftest.gp conftest.gp.cc -pthread >&AS_MESSAGE_LOG_FD 2>&1],
    [gp_$1_why="links but does not run here"
     AS_IF([./conftest.gp >&AS_MESSAGE_LOG_FD 2>&1], [gp_$1_use=on; gp_$1_why="$2 $3"])])
rm -f conftest.gp conftest.gp.cc
AC_MSG_RESULT([$gp_$1_use])
])

AC_DEFUN([GP_FIND_TEST_TOOLS], [
gp_cc_version=`$CC -dumpfullversion -dumpversion 2>/dev/null | head -n 1`
GP_TRY_SANITIZER([asan], [$CXX], [-fsanitize=address,undefined], [AddressSanitizer])
GP_TRY_SANITIZER([tsan], [$CXX], [-fsanitize=thread], [ThreadSanitizer])

AC_ARG_VAR([CLANGXX], [clang++, for tests only])
AC_PATH_PROGS([CLANGXX], [clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14])
gp_clangxx_use=off
gp_clangxx_version=-
gp_clangxx_why="not found"
gp_clang_tsan_use=off
gp_clang_tsan_why="no clang++"
AS_IF([test -n "$CLANGXX"],
    [gp_clangxx_use=on
     gp_clangxx_version=`$CLANGXX -dumpversion 2>/dev/null`
     gp_clangxx_why=$CLANGXX
     GP_TRY_SANITIZER([clang_tsan], [$CLANGXX], [-fsanitize=thread], [ThreadSanitizer of clang])])
AM_CONDITIONAL([GP_HAVE_ASAN], [test "$gp_asan_use" = on])
AM_CONDITIONAL([GP_HAVE_TSAN], [test "$gp_tsan_use" = on])
AM_CONDITIONAL([GP_HAVE_CLANGXX], [test "$gp_clangxx_use" = on])
AM_CONDITIONAL([GP_HAVE_CLANG_TSAN], [test "$gp_clang_tsan_use" = on])
])
