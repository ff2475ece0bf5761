#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The shared library depends on OpenBLAS, OpenMP and the C library: never on CUDA, zlib, C++ or Fortran.
shared=.libs/libepigemm.so
if [ ! -e $shared ]; then echo "1..0 # SKIP no shared library was built"; exit 0; fi
needed=$($READELF -d $shared | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "$needed" | sed 's/^/# /'
if echo "$needed" | grep -q -i -E 'cuda|cublas|nvidia|libz\.|stdc\+\+|gfortran'; then echo "not ok 1 - no forbidden dependency"; else echo "ok 1 - no forbidden dependency"; fi
if echo "$needed" | grep -q blas; then echo "ok 2 - OpenBLAS is named"
elif [ -e .libs/libepigemm.a ] && $NM -D --defined-only $shared | grep -q cblas_; then echo "not ok 2 - OpenBLAS is linked in and exported"
else echo "ok 2 # SKIP OpenBLAS was linked statically"; fi
echo 1..2
