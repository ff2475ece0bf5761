#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# epigemm-info: what it prints, where it fails, and its exit status.
info=./epigemm-info
n=0
check() { # NAME STATUS: the last command's
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; printf '%s\n' "$out" | sed 's/^/# /'; fi
}
out=$($info 2>&1); status=$?
[ $status -eq 0 ] && printf '%s\n' "$out" | head -1 | grep -q "^epigemm $PACKAGE_VERSION$"; check "the version" $?
printf '%s\n' "$out" | grep -q '^backend cpu: .*OpenBLAS'; check "the CPU backend and its BLAS" $?
printf '%s\n' "$out" | grep -q '^backend cuda: '; check "the CUDA backend, or why not" $?
printf '%s\n' "$out" | grep -q 'OMP_WAIT_POLICY='; check "environment variables" $?
out=$($info --explain 'f32 m=64 n=32 k=16 epilog=relu_bias' --backend cpu 2>&1); status=$?
[ $status -eq 0 ] && printf '%s\n' "$out" | grep -q 'way: cpu/split'; check "a plan explained" $?
readme=${srcdir:-.}/README.md
out=$($info --support --backend cpu 2>&1); status=$?
[ $status -eq 0 ] && [ "$(printf '%s\n' "$out" | wc -l)" -gt 10 ] && [ "$out" = "$(sed -n '/^| A | B |/,/^$/p' "$readme" | sed '/^$/d')" ]; check "the support table is the one of README.md" $?
out=$($info --explain 'f32 m=64 n=32' --backend cpu 2>&1); status=$?
[ $status -eq 1 ] && printf '%s\n' "$out" | grep -q 'k'; check "a line without k: exit status 1 and a sentence" $?
out=$($info --explain 'f32 m=4 n=3 k=2' --rigor slowly 2>&1); [ $? -eq 2 ]; check "an unknown rigor: exit status 2" $?
out=$($info --no-such-option 2>&1); [ $? -eq 2 ]; check "an unknown option: exit status 2" $?
out=$($info --self-test 2>&1); status=$?
[ $status -eq 0 ] && printf '%s\n' "$out" | grep -q '^    cpu/split  *[1-9][0-9]* right, 0 wrong$' && printf '%s\n' "$out" | grep -q '^self-test of cuda: '; check "--self-test" $?
# A BLAS that gets a transposed dgemm wrong, in front of the real one.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cat > "$dir/b.c" <<'EOT'
#define _GNU_SOURCE
#include <dlfcn.h>
typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
dgemm cblas_dgemm;
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
	dgemm *real = (dgemm *)dlsym(RTLD_NEXT, "cblas_dgemm");
	real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	if (ta == 112 && m > 10)
		c[3] += 1;
}
EOT
if grep -q '^#define EPG_BLAS_INT_BITS 32' config.h && ! printf '%s' "$CFLAGS" | grep -q -e -fsanitize && $CC -shared -fPIC -o "$dir/b.so" "$dir/b.c" -ldl 2> /dev/null \
	&& ldd .libs/libepigemm.so 2> /dev/null | grep -q openblas; then
	out=$(LD_PRELOAD=$dir/b.so $info --self-test --backend cpu 2>&1); status=$?
	[ $status -eq 1 ] && printf '%s\n' "$out" | grep -q '^    cpu/split  *[1-9][0-9]* right, [1-9][0-9]* wrong$' && printf '%s\n' "$out" | grep -q 'wrong: f64 ' && printf '%s\n' "$out" | grep -q '^    cpu/reference  *[1-9][0-9]* right, 0 wrong$'
	check "--self-test finds a BLAS that gets a transposed dgemm wrong" $?
else
	n=$((n + 1)); echo "ok $n - # SKIP no shared BLAS here to stand in front of"
fi
out=$($info --version); [ "$out" = "$PACKAGE_VERSION" ]; check "--version" $?
out=$($info --help); [ $? -eq 0 ] && printf '%s\n' "$out" | grep -q -e --explain; check "--help" $?
echo "1..$n"
