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
out=$($info --version); [ "$out" = "$PACKAGE_VERSION" ]; check "--version" $?
out=$($info --help); [ $? -eq 0 ] && printf '%s\n' "$out" | grep -q -e --explain; check "--help" $?
echo "1..$n"
