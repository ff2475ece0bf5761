# SPDX-License-Identifier: Apache-2.0
#
# OpenMP, which the passes over D need. A program that calls the runtime must link: some compilers take the flag and
# have no library. clang brings libomp, a second runtime beside OpenBLAS's libgomp: releases are built with gcc.

AC_DEFUN([EPG_OPENMP],
[AC_OPENMP
epg_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $OPENMP_CFLAGS"
AC_MSG_CHECKING([whether an OpenMP program links])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <omp.h>
#ifndef _OPENMP
#error no OpenMP
#endif]], [[return omp_get_max_threads();]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
  AC_MSG_ERROR([epigemm needs OpenMP: $CC $OPENMP_CFLAGS does not link a program that calls omp_get_max_threads. With
clang, install its runtime (Debian: libomp-dev), or use gcc: ./configure CC=gcc])])
CFLAGS=$epg_save_CFLAGS])
