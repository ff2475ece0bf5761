# SPDX-License-Identifier: Apache-2.0
#
# Instruction sets for which src/cpu/cpu_pass.c is compiled besides the baseline; which one runs is decided at run time.
# The flags are -m… and not -march=…, and stand before CFLAGS in this test as they do in make: a user's -march=x86-64
# then leaves them alone, and a user's -mno-avx512f wins in both places.

# EPG_ISA_SET(name, NAME, flags, code): one set. Defines EPG_HAVE_NAME, the conditional BUILD_NAME, and NAME_CFLAGS.
AC_DEFUN([EPG_ISA_SET],
[AC_MSG_CHECKING([whether $CC compiles for $1])
epg_isa=no
AS_CASE([$host_cpu], [x86_64|i?86|amd64],
  [epg_save_CFLAGS=$CFLAGS
  CFLAGS="$3 $CFLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>]], [[$4]])], [epg_isa=yes])
  CFLAGS=$epg_save_CFLAGS])
AC_MSG_RESULT([$epg_isa])
AM_CONDITIONAL([BUILD_$2], [test $epg_isa = yes])
AS_IF([test $epg_isa = yes],
  [epg_isa_summary="$epg_isa_summary $1"
  AC_DEFINE([EPG_HAVE_$2], [1], [Define to 1 if the passes are compiled for $1 too.])])
AC_SUBST([$2_CFLAGS], ["$3"])])

AC_DEFUN([EPG_ISA_SETS],
[epg_isa_summary=baseline
EPG_ISA_SET([avx2], [AVX2], [-mavx2 -mfma -mf16c],
  [volatile __m256 x = _mm256_setzero_ps(); x = _mm256_fmadd_ps(x, x, _mm256_cvtph_ps(_mm_setzero_si128()));])
EPG_ISA_SET([avx512], [AVX512], [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [volatile __m512 x = _mm512_setzero_ps(); volatile __mmask64 k = _mm512_movepi8_mask(_mm512_setzero_si512());
   x = _mm512_and_ps(x, x); (void)k;])])
