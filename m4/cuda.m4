# SPDX-License-Identifier: Apache-2.0
#
# The CUDA toolkit: found by nvcc's own account of its directories, proved by linking a call of the runtime, and
# reported. The plug-in that will use it is not part of this version, so that nothing here changes the library.
#   --with-cuda=auto   report what there is (default)         --with-cuda=DIR   look there only; not usable is an error
#   --with-cuda=yes    not found or not usable is an error    --without-cuda    do not look

# EPG_CUDA_TRY: with epg_nvcc set, sets epg_cuda_home if a program links, else epg_cuda_why.
AC_DEFUN([EPG_CUDA_TRY],
[epg_cuda_home= epg_cuda_target=
"$epg_nvcc" -dryrun -x cu -c /dev/null -o conftest.o > conftest.dry 2>&1
epg_top=`$SED -n 's,^#\$ TOP=,,p' conftest.dry`
epg_target=`$SED -n 's,^#\$ _TARGET_DIR_=,,p' conftest.dry`
rm -f conftest.dry conftest.o
AS_IF([test -d "$epg_top"], [epg_top=`cd "$epg_top" && pwd`])
epg_cuda_why="no program that calls cudaGetDeviceCount and includes cublasLt.h links with the toolkit of $epg_nvcc (see config.log)"
for epg_dir in "$epg_target" .; do
  for epg_lib in lib64 lib lib/stubs; do
    AS_IF([test -z "$epg_cuda_home" && test -d "$epg_top/$epg_dir/$epg_lib"],
      [CPPFLAGS="$epg_save_CPPFLAGS $CUDA_CPPFLAGS -isystem $epg_top/$epg_dir/include -isystem $epg_top/include"
      LDFLAGS="$epg_save_LDFLAGS $CUDA_LDFLAGS -L$epg_top/$epg_dir/$epg_lib"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cublasLt.h>
        #include <cuda_runtime_api.h>]],
        [[int n = 0; cublasLtHandle_t handle = 0; (void)handle; return cudaGetDeviceCount(&n) != cudaSuccess;]])],
        [epg_cuda_home=$epg_top])])
  done
done])

AC_DEFUN([EPG_CUDA],
[AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=yes|no|auto|DIR@:>@], [look for the CUDA toolkit; the plug-in is not part of this version (default: auto)])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([CUDA_CPPFLAGS], [preprocessor flags for the headers of a CUDA toolkit split over directories])
AC_ARG_VAR([CUDA_LDFLAGS], [linker flags for the libraries of a CUDA toolkit split over directories])
AS_CASE([$with_cuda], [yes|no|auto|/*], [],
  [AC_MSG_ERROR([--with-cuda=$with_cuda: the path is not absolute; give the directory that has bin/nvcc])])
epg_cuda_summary="not looked for (--without-cuda)"
AS_IF([test "$with_cuda" != no],
  [AC_MSG_CHECKING([for the CUDA toolkit])
  AS_CASE([$with_cuda],
    [/*], [epg_nvcc=$with_cuda/bin/nvcc epg_cuda_why="there is no program $epg_nvcc"],
    [epg_nvcc=${NVCC:-`command -v nvcc 2>/dev/null || echo /usr/local/cuda/bin/nvcc`}
    epg_cuda_why="nvcc is neither on PATH nor in /usr/local/cuda/bin"])
  epg_cuda_home=
  AS_IF([test "$cross_compiling" = yes], [epg_cuda_why="cross builds are not supported"],
    [test -x "$epg_nvcc"],
    [epg_save_CPPFLAGS=$CPPFLAGS
    epg_save_LDFLAGS=$LDFLAGS
    epg_save_LIBS=$LIBS
    LIBS="-lcudart_static -lrt -lpthread -ldl $LIBS"
    EPG_CUDA_TRY
    CPPFLAGS=$epg_save_CPPFLAGS
    LDFLAGS=$epg_save_LDFLAGS
    LIBS=$epg_save_LIBS])
  AC_MSG_RESULT([${epg_cuda_home:-no}])
  AS_IF([test -n "$epg_cuda_home"],
    [epg_cuda_summary="toolkit found in $epg_cuda_home; the plug-in is not part of this version"],
    [test "$with_cuda" = auto], [epg_cuda_summary="no: $epg_cuda_why"],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: $epg_cuda_why])])])])
