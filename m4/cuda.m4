# SPDX-License-Identifier: Apache-2.0
#
# The CUDA plug-in: nvcc found, its toolkit by nvcc's own account of its directories, proved by compiling a kernel and by linking
# a call of the static runtime beside cublasLt.h. No CUDA library but that runtime is needed to build.
#   --with-cuda=auto   build the plug-in where that works (default)    --with-cuda=DIR   the toolkit in DIR; not usable is an error
#   --with-cuda=yes    not usable is an error                          --without-cuda    do not look
#   --with-cuda-arch=LIST   compute capabilities, as "80 90", or native

# EPG_CUDA_FIND: with NVCC set, sets epg_cuda_home and the flags if a program links, else epg_cuda_why.
AC_DEFUN([EPG_CUDA_FIND],
[epg_cuda_home=
"$NVCC" -dryrun -x cu -c /dev/null -o conftest.o > conftest.dry 2>&1
epg_top=`$SED -n 's,^#\$ TOP=,,p' conftest.dry`
epg_target=`$SED -n 's,^#\$ _TARGET_DIR_=,,p' conftest.dry`
rm -f conftest.dry conftest.o
AS_IF([test -d "$epg_top"], [epg_top=`cd "$epg_top" && pwd`])
epg_cuda_why="no program that calls cudaGetDeviceCount and includes cublasLt.h links with the toolkit of $NVCC (see config.log)"
for epg_dir in "$epg_target" .; do
  for epg_lib in lib64 lib; do
    AS_IF([test -z "$epg_cuda_home" && test -d "$epg_top/$epg_dir/$epg_lib"],
      [epg_cuda_cppflags="$CUDA_CPPFLAGS"
      for epg_include in "$epg_top/$epg_dir/include" "$epg_top/include"; do
        AS_IF([test -d "$epg_include"], [epg_cuda_cppflags="$epg_cuda_cppflags -isystem $epg_include"])
      done
      epg_cuda_ldflags="$CUDA_LDFLAGS -L$epg_top/$epg_dir/$epg_lib"
      CPPFLAGS="$epg_save_CPPFLAGS $epg_cuda_cppflags"
      LDFLAGS="$epg_save_LDFLAGS $epg_cuda_ldflags"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cublasLt.h>
        #include <cuda_runtime_api.h>]],
        [[int n = 0; cublasLtHandle_t handle = 0; (void)handle; return cudaGetDeviceCount(&n) != cudaSuccess;]])],
        [epg_cuda_home=$epg_top epg_cuda_libdir=`cd "$epg_top/$epg_dir/$epg_lib" && pwd`])])
  done
done])

# EPG_CUDA_ARCHS: sets NVCC_ARCH. The default is what this nvcc knows of the list, and PTX of the newest for later devices.
AC_DEFUN([EPG_CUDA_ARCHS],
[epg_known=`"$NVCC" --list-gpu-code 2>/dev/null | tr '\n' ' '`
NVCC_ARCH= epg_newest=
AS_IF([test "x$with_cuda_arch" = xnative], [NVCC_ARCH="-arch=native"],
  [for epg_arch in `echo "$with_cuda_arch" | tr ',' ' '`; do
    AS_CASE([" $epg_known "],
      [*" sm_$epg_arch "*], [NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$epg_arch,code=sm_$epg_arch" epg_newest=$epg_arch],
      [AS_IF([test "$epg_arch_asked" = yes], [AC_MSG_ERROR([--with-cuda-arch: $NVCC does not know sm_$epg_arch (it knows $epg_known)])])])
  done
  NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$epg_newest,code=compute_$epg_newest"])])

# EPG_CUDA_KERNEL: compiles a kernel with the flags found; else sets epg_cuda_why.
AC_DEFUN([EPG_CUDA_KERNEL],
[cat > conftest.cu <<_KERNEL_EOF
#include <cublasLt.h>
__global__ void kernel(float *x) { x@<:@threadIdx.x@:>@ = 0; }
_KERNEL_EOF
epg_command="$NVCC $NVCC_ARCH $NVCCFLAGS -forward-unknown-to-host-compiler $epg_cuda_cppflags -c conftest.cu -o conftest.o"
echo "configure: $epg_command" >&AS_MESSAGE_LOG_FD
AS_IF([eval "$epg_command" >&AS_MESSAGE_LOG_FD 2>&1 && test -s conftest.o], [epg_cuda_kernel=yes],
  [epg_cuda_kernel=no epg_cuda_why="$NVCC does not compile a kernel for '$with_cuda_arch' (see config.log)"])
rm -f conftest.cu conftest.o])

AC_DEFUN([EPG_CUDA],
[AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=yes|no|auto|DIR@:>@], [build the CUDA plug-in (default: auto)])], [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST], [compute capabilities, as "80 90", or native (default: 75 80 86 89 90 100 120 as far as nvcc knows them, and PTX)])],
  [epg_arch_asked=yes], [with_cuda_arch="75 80 86 89 90 100 120" epg_arch_asked=no])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler (CFLAGS do not go there)])
AC_ARG_VAR([CUDA_CPPFLAGS], [preprocessor flags for the headers of a CUDA toolkit split over directories])
AC_ARG_VAR([CUDA_LDFLAGS], [linker flags for the libraries of a CUDA toolkit split over directories])
AS_CASE([$with_cuda], [yes|no|auto|/*], [],
  [AC_MSG_ERROR([--with-cuda=$with_cuda: the path is not absolute; give the directory that has bin/nvcc])])
epg_cuda_home= epg_cuda_kernel=no epg_cuda_libdir=
epg_cuda_summary="no (--without-cuda)"
AS_IF([test "$with_cuda" != no],
  [AS_CASE([$with_cuda],
    [/*], [NVCC=$with_cuda/bin/nvcc epg_cuda_why="there is no program $NVCC"],
    [NVCC=${NVCC:-`command -v nvcc 2>/dev/null || echo /usr/local/cuda/bin/nvcc`}
    epg_cuda_why="nvcc is neither on PATH nor in /usr/local/cuda/bin"])
  AC_MSG_CHECKING([for the CUDA toolkit])
  AS_IF([test "$enable_shared" = no], [epg_cuda_why="the plug-in is a shared object, and --disable-shared was given"],
    [test "$cross_compiling" = yes], [epg_cuda_why="cross builds are not supported"],
    [test -x "$NVCC"],
    [epg_save_CPPFLAGS=$CPPFLAGS
    epg_save_LDFLAGS=$LDFLAGS
    epg_save_LIBS=$LIBS
    LIBS="-lcudart_static -lrt -lpthread -ldl $LIBS"
    EPG_CUDA_FIND
    CPPFLAGS=$epg_save_CPPFLAGS
    LDFLAGS=$epg_save_LDFLAGS
    LIBS=$epg_save_LIBS])
  AC_MSG_RESULT([${epg_cuda_home:-no}])
  AS_IF([test -n "$epg_cuda_home"],
    [EPG_CUDA_ARCHS
    AC_MSG_CHECKING([whether $NVCC compiles a kernel])
    EPG_CUDA_KERNEL
    AC_MSG_RESULT([$epg_cuda_kernel])])
  AS_IF([test "$epg_cuda_kernel" = yes],
    [CUDA_CPPFLAGS=$epg_cuda_cppflags CUDA_LDFLAGS=$epg_cuda_ldflags
    epg_cuda_summary="plug-in with the toolkit in $epg_cuda_home, for $with_cuda_arch"],
    [test "$with_cuda" = auto], [epg_cuda_summary="no: $epg_cuda_why"],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: $epg_cuda_why])])])
# The major version in cuBLASLt's soname, for the tests' double of it.
AS_IF([test "$epg_cuda_kernel" = yes],
  [CUBLAS_MAJOR=`printf '#include <cublasLt.h>\nCUBLAS_VER_MAJOR\n' | $CC -E -P $CUDA_CPPFLAGS -x c - 2>/dev/null | tail -n 1`])
AC_SUBST([CUBLAS_MAJOR])
AC_SUBST([NVCC_ARCH])
AC_SUBST([epg_cuda_libdir])
AM_CONDITIONAL([HAVE_CUDA], [test "$epg_cuda_kernel" = yes])])
