# SPDX-License-Identifier: Apache-2.0
#
# OpenBLAS, and the size of its integers. Where it is: BLAS_LIBS and BLAS_CFLAGS as the user gives them, else the prefix
# of --with-openblas=DIR, else pkg-config, else -lopenblas. The answer rests on linking cblas_sgemm and
# openblas_get_parallel, which other BLAS libraries do not have. Libraries with 32-bit and 64-bit integers have the same
# names and link against either header, so that a program is run to tell them apart. The threading flavour (pthread,
# OpenMP, serial) is only printed: distributions change it under the installed program, and the library asks at run time.

# EPG_BLAS_LINK(if-yes, if-no): links what the library calls, with BLAS_CFLAGS and BLAS_LIBS.
AC_DEFUN([EPG_BLAS_LINK],
[AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>
  typedef blasint needs_the_header_of_openblas;]],
  [[float x = 1;
  int (*flavour)(void) = openblas_get_parallel;
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, x, &x, 1, &x, 1, x, &x, 1);
  return flavour();]])], [$1], [$2])])

# Says where to look: sets epg_blas_from, BLAS_LIBS, BLAS_CFLAGS and epg_blas_static, the libraries of a static link.
AC_DEFUN([EPG_BLAS_FIND],
[epg_blas_static=
AS_CASE([$with_openblas], [yes|auto|/*], [],
  [no], [AC_MSG_ERROR([--without-openblas: epigemm computes its products with OpenBLAS and cannot do without it])],
  [AC_MSG_ERROR([--with-openblas=$with_openblas: the path is not absolute; give the prefix below which include and lib lie])])
AS_IF([test -n "$BLAS_LIBS"], [epg_blas_from="BLAS_LIBS as given"],
  [AS_CASE([$with_openblas],
    [/*], [AS_IF([test ! -d "$with_openblas"], [AC_MSG_ERROR([--with-openblas=$with_openblas: there is no such directory])])
      epg_blas_from="--with-openblas=$with_openblas"
      BLAS_LIBS=-lopenblas
      for epg_dir in lib64 lib "lib/`$CC -print-multiarch 2>/dev/null`"; do
        for epg_file in "$with_openblas/$epg_dir"/libopenblas.*; do
          AS_IF([test -f "$epg_file"], [BLAS_LIBS="-L$with_openblas/$epg_dir -lopenblas"])
        done
      done
      for epg_dir in include/openblas include; do
        AS_IF([test -f "$with_openblas/$epg_dir/cblas.h" && test -z "$BLAS_CFLAGS"],
          [BLAS_CFLAGS="-I$with_openblas/$epg_dir"])
      done],
    [AS_IF([$PKG_CONFIG --exists openblas],
      [epg_blas_from="pkg-config openblas"
      BLAS_LIBS=`$PKG_CONFIG --libs openblas`
      epg_blas_static=`$PKG_CONFIG --static --libs openblas`
      AS_IF([test -z "$BLAS_CFLAGS"], [BLAS_CFLAGS=`$PKG_CONFIG --cflags openblas`])],
      [epg_blas_from="the linker's own search"
      BLAS_LIBS=-lopenblas])])])])

# A cblas.h that lies in a subdirectory, as on Fedora: its directory, taken from the preprocessor, is added.
AC_DEFUN([EPG_BLAS_HEADER],
[AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <cblas.h>]])], [],
  [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <openblas/cblas.h>]])],
    [echo '#include <openblas/cblas.h>' > conftest.c
    epg_dir=`($CPP $CPPFLAGS conftest.c) 2>/dev/null | $SED -n 's,^# *@<:@0-9@:>@* *"\(.*/openblas\)/cblas\.h".*,\1,p' | $SED 1q`
    rm -f conftest.c
    BLAS_CFLAGS="$BLAS_CFLAGS -I$epg_dir"
    CPPFLAGS="$CPPFLAGS -I$epg_dir"],
    [AC_MSG_ERROR([no cblas.h was found. Install OpenBLAS with its headers (Debian: libopenblas-dev), or give its prefix:
--with-openblas=DIR, or BLAS_CFLAGS=-IDIR])])])])

# What the library says when it runs: bits of its integers, then flavour and version. n is 2 in 32 bits and negative in
# 64, and a negative n gives 0 without looking at x.
AC_DEFUN([EPG_BLAS_RUN],
[AC_MSG_CHECKING([for the size of OpenBLAS's integers])
AC_RUN_IFELSE([AC_LANG_SOURCE([[#include <stdint.h>
#include <stdio.h>
extern size_t cblas_isamax(int64_t n, const float *x, int64_t incx);
extern int openblas_get_parallel(void);
extern char *openblas_get_config(void);
int main(void)
{
	static const char *const flavour[] = {"serial", "pthread", "OpenMP"};
	float x[2] = {1, 5};
	FILE *file = fopen("conftest.out", "w");
	if (!file)
		return 1;
	fprintf(file, "%d\n%s; the flavour now is %s, asked again at run time\n",
		cblas_isamax((int64_t)-4294967294LL, x, 1) == 1 ? 32 : 64,
		openblas_get_config(), flavour[openblas_get_parallel() % 3]);
	return fclose(file) != 0;
}]])],
  [epg_blas_int=`$SED -n 1p conftest.out`
  epg_blas_summary=`$SED -n 2p conftest.out`
  epg_blas_int_from="found by running a program"
  AS_IF([test -n "$with_blas_int" && test "$with_blas_int" != "$epg_blas_int"],
    [AC_MSG_ERROR([--with-blas-int=$with_blas_int, but the integers of $BLAS_LIBS have $epg_blas_int bits])])],
  [AC_MSG_ERROR([a program linked with '$BLAS_LIBS' does not run. Is the library where the loader finds it (LD_LIBRARY_PATH)?
config.log has the reason])],
  [epg_blas_summary="not run, since this is a cross build"
  AS_IF([test -n "$with_blas_int"],
    [epg_blas_int=$with_blas_int epg_blas_int_from="--with-blas-int"],
    [epg_blas_int=$epg_header_int epg_blas_int_from="taken from cblas.h, since a cross build cannot run a program; --with-blas-int overrides"])])
AC_MSG_RESULT([$epg_blas_int bits])])

AC_DEFUN([EPG_OPENBLAS],
[AC_ARG_WITH([openblas], [AS_HELP_STRING([--with-openblas=DIR], [prefix of OpenBLAS, an absolute path (default: pkg-config, then the linker's search)])],
  [], [with_openblas=yes])
AC_ARG_WITH([blas-int], [AS_HELP_STRING([--with-blas-int=32|64], [bits of the integers of OpenBLAS, for cross builds (default: found by a test)])],
  [], [with_blas_int=])
AS_CASE([$with_blas_int], [''|32|64], [], [AC_MSG_ERROR([--with-blas-int=$with_blas_int: it is 32 or 64])])
AC_ARG_VAR([BLAS_CFLAGS], [preprocessor flags for OpenBLAS's cblas.h, overriding any search])
AC_ARG_VAR([BLAS_LIBS], [linker flags for OpenBLAS, overriding any search])
EPG_BLAS_FIND
epg_save_CPPFLAGS=$CPPFLAGS
epg_save_CFLAGS=$CFLAGS
epg_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $BLAS_CFLAGS"
LIBS="$BLAS_LIBS $LIBS"
EPG_BLAS_HEADER
AC_MSG_CHECKING([whether '$BLAS_LIBS' is OpenBLAS])
EPG_BLAS_LINK([AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
  epg_blas_hint="Install it (Debian: libopenblas-dev), give its prefix with --with-openblas=DIR, or set BLAS_LIBS and BLAS_CFLAGS"
  for epg_suffix in 64_ _64; do
    AC_LINK_IFELSE([AC_LANG_SOURCE([[#define PASTE(a, b) a##b
      #define NAME(suffix) PASTE(cblas_sgemm, suffix)
      void NAME($epg_suffix)(void);
      int main(void) { NAME($epg_suffix)(); return 0; }]])],
      [epg_blas_hint="Its functions carry the suffix $epg_suffix, which epigemm does not support: use a build of OpenBLAS without SYMBOLSUFFIX"])
  done
  AC_MSG_ERROR([a program that calls cblas_sgemm and openblas_get_parallel does not link with '$BLAS_LIBS' ($epg_blas_from).
$epg_blas_hint. config.log has the reason])])

AC_COMPUTE_INT([epg_header_int], [8 * sizeof(blasint)], [#include <cblas.h>])
EPG_BLAS_RUN
# A header for 32 bits beside a library with 64: OpenBLAS's own switch cures it. The other way round there is none.
AS_IF([test "$epg_header_int" != "$epg_blas_int" && test "$epg_blas_int" = 64],
  [BLAS_CFLAGS="$BLAS_CFLAGS -DOPENBLAS_USE64BITINT"
  CPPFLAGS="$CPPFLAGS -DOPENBLAS_USE64BITINT"
  AC_COMPUTE_INT([epg_header_int], [8 * sizeof(blasint)], [#include <cblas.h>])])
AS_IF([test "$epg_header_int" != "$epg_blas_int"],
  [AC_MSG_ERROR([cblas.h has integers of $epg_header_int bits, the library '$BLAS_LIBS' has $epg_blas_int. Name the header that belongs to it: BLAS_CFLAGS=-IDIR])])
AC_DEFINE_UNQUOTED([EPG_BLAS_INT_BITS], [$epg_blas_int], [Bits of the integers of OpenBLAS.])

# What a program linked with libepigemm.a needs. pkg-config's static list may name libraries that are not installed
# (-lgfortran): it is taken only if it links.
AS_IF([test -n "$epg_blas_static"],
  [LIBS="$epg_blas_static $epg_save_LIBS"
  CFLAGS="$CFLAGS $OPENMP_CFLAGS"
  EPG_BLAS_LINK([], [epg_blas_static=])])
AC_SUBST([BLAS_LIBS_STATIC], ["${epg_blas_static:-$BLAS_LIBS}"])
CPPFLAGS=$epg_save_CPPFLAGS
CFLAGS=$epg_save_CFLAGS
LIBS=$epg_save_LIBS])
