# SPDX-License-Identifier: Apache-2.0
#
# zlib serves the demo program alone, to read gzipped IDX files. The library never uses it.

AC_DEFUN([EPG_ZLIB],
[AC_ARG_WITH([zlib], [AS_HELP_STRING([--without-zlib], [build the demo without reading .gz files])],
  [], [with_zlib=auto])
ZLIB_LIBS= epg_zlib=no epg_zlib_summary="no (--without-zlib)"
AS_IF([test "$with_zlib" != no],
  [AC_MSG_CHECKING([for zlib])
  epg_save_LIBS=$LIBS
  LIBS="-lz $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <zlib.h>]], [[return gzopen("x", "rb") != 0;]])],
    [epg_zlib=yes ZLIB_LIBS=-lz epg_zlib_summary="yes, with zlib"
    AC_DEFINE([HAVE_ZLIB], [1], [Define to 1 if the demo can read gzipped files through zlib.])],
    [epg_zlib_summary="no: a program that calls gzopen does not link (install zlib1g-dev)"])
  LIBS=$epg_save_LIBS
  AC_MSG_RESULT([$epg_zlib])
  AS_IF([test "$with_zlib" = yes && test $epg_zlib = no], [AC_MSG_ERROR([--with-zlib: $epg_zlib_summary])])])
AC_SUBST([ZLIB_LIBS])
AM_CONDITIONAL([HAVE_ZLIB], [test $epg_zlib = yes])])
