# SPDX-License-Identifier: Apache-2.0
#
# oneDNN serves bench/bench alone, as a contestant. The library never uses it.

AC_DEFUN([EPG_ONEDNN],
[AC_ARG_WITH([onednn], [AS_HELP_STRING([--without-onednn], [build bench/bench without oneDNN's columns])],
  [], [with_onednn=auto])
ONEDNN_LIBS= epg_onednn=no epg_onednn_summary="no (--without-onednn)"
AS_IF([test "$with_onednn" != no],
  [AC_MSG_CHECKING([for oneDNN])
  epg_save_LIBS=$LIBS
  LIBS="-ldnnl $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <dnnl.h>]], [[return dnnl_version()->major;]])],
    [epg_onednn=yes ONEDNN_LIBS=-ldnnl epg_onednn_summary="yes"],
    [epg_onednn_summary="no: a program that calls dnnl_version does not link (libdnnl-dev has it)"])
  LIBS=$epg_save_LIBS
  AC_MSG_RESULT([$epg_onednn])
  AS_IF([test "$with_onednn" = yes && test $epg_onednn = no], [AC_MSG_ERROR([--with-onednn: $epg_onednn_summary])])])
AC_SUBST([ONEDNN_LIBS])
AM_CONDITIONAL([HAVE_ONEDNN], [test $epg_onednn = yes])])
