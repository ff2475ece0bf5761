#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every example, built by 'make check', prints what its head comment says. EPIGEMM_TEST_BACKEND names another backend than the CPU.
EPIGEMM_BACKEND=${EPIGEMM_TEST_BACKEND:-cpu}
export EPIGEMM_BACKEND
count=0
for source in "${srcdir:-.}"/examples/*.c; do
	name=$(basename "$source" .c)
	count=$((count + 1))
	want=$(sed -n '/^ \* Prints:$/,/^ \*\/$/s/^ \*     //p' "$source")
	if [ ! -x "examples/$name" ]; then # the CUDA ones, where no toolkit was found
		echo "ok $count - $name # SKIP not built here"
		continue
	fi
	got=$("examples/$name" 2>&1)
	status=$?
	if [ $status -eq 77 ]; then
		echo "ok $count - $name # SKIP $got"
	elif [ $status -eq 0 ] && [ -n "$want" ] && [ "$got" = "$want" ]; then
		echo "ok $count - $name"
	else
		printf 'status %d, wanted:\n%s\ngot:\n%s\n' $status "$want" "$got" | sed 's/^/# /'
		echo "not ok $count - $name"
	fi
done
echo "1..$count"
