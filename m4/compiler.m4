# SPDX-License-Identifier: Apache-2.0
#
# What compiler and linker can do: a C++17 compiler for tests, warnings, the export map, refusal of undefined symbols.

# The library is C; a C++ compiler is wanted only for the tests that prove that C++ programs can use it.
AC_DEFUN([EPG_CXX17],
[AC_MSG_CHECKING([whether $CXX compiles C++17])
AC_LANG_PUSH([C++])
epg_save_CXXFLAGS=$CXXFLAGS
CXXFLAGS="-std=c++17 $CXXFLAGS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <vector>]], [[if constexpr (sizeof(int) > 1) std::vector<int> v(3);]])],
  [epg_cxx=yes epg_cxx_summary="$CXX -std=c++17"],
  [epg_cxx=no epg_cxx_summary="no: $CXX does not compile C++17 (see config.log)"])
CXXFLAGS=$epg_save_CXXFLAGS
AC_LANG_POP([C++])
AC_MSG_RESULT([$epg_cxx])
AM_CONDITIONAL([HAVE_CXX17], [test $epg_cxx = yes])])

# Warnings are always on; they stop the build only for developers, since each compiler invents new ones.
AC_DEFUN([EPG_WARNINGS],
[AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make warnings errors (for developers)])],
  [], [enable_werror=no])
WARN_CFLAGS="-Wall -Wextra"
AS_IF([test "$enable_werror" = yes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
AC_SUBST([WARN_CFLAGS])])

# Z_DEFS refuses undefined symbols. Tested with the user's CFLAGS: clang cannot do it together with its sanitizers.
AC_DEFUN([EPG_LINKER],
[epg_save_LDFLAGS=$LDFLAGS
epg_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -fPIC"
AC_MSG_CHECKING([whether the linker takes an export map])
echo 'TEST_0 { global: epg_f; local: *; };' > conftest.map
LDFLAGS="$LDFLAGS -shared -Wl,--version-script=conftest.map"
AC_LINK_IFELSE([AC_LANG_SOURCE([[int epg_f(void); int epg_f(void) { return 1; }]])], [epg_map=yes], [epg_map=no])
rm -f conftest.map
AC_MSG_RESULT([$epg_map])
AM_CONDITIONAL([HAVE_EXPORT_MAP], [test $epg_map = yes])

AC_MSG_CHECKING([whether the linker takes -z defs])
LDFLAGS="$epg_save_LDFLAGS -shared -Wl,-z,defs"
AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <stdlib.h>
  void *epg_f(size_t n); void *epg_f(size_t n) { return malloc(n); }]])], [Z_DEFS=-Wl,-z,defs], [Z_DEFS=])
AC_MSG_RESULT([${Z_DEFS:-no}])
LDFLAGS=$epg_save_LDFLAGS
CFLAGS=$epg_save_CFLAGS
AC_SUBST([Z_DEFS])])
