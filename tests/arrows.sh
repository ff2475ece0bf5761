#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes run one way: api → plan → backend.h → {cpu, cuda}, with problem, epilog, dtype, status and log at the bottom.
#     files                       may not include
#     src/*.c src/*.h             cpu/… cuda/… cblas.h omp.h: the core knows backends by backend.h alone
#     the bottom                  any header from above it
#     src/cpu src/cuda            the core's upper half, or each other
#     include/epigemm.h           anything but the C library
#     tests/oracle.* bound.*      anything of src: the oracle shares no code with what it judges; nor the tests' own helpers
src=${srcdir:-.}/src
n=0
# check NAME PATTERN FILES: none of the files includes a header that matches
check() {
	name=$1 pattern=$2
	shift 2
	n=$((n + 1))
	found=$(for file; do [ -f "$file" ] && grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($pattern)[\">]" "$file"; done)
	if [ -z "$found" ]; then echo "ok $n - $name"; else echo "not ok $n - $name"; echo "$found" | sed 's/^/# /'; fi
}
upper='api\.h|plan\.h|tune\.h|wisdom\.h|registry\.h'
check "the core knows no backend's headers" '(.*/)?(cpu|cuda)[_/.].*|cblas\.h|omp\.h' "$src"/*.c "$src"/*.h
check "the bottom knows nothing above" "$upper|backend\.h" "$src"/problem.[ch] "$src"/problem_text.c "$src"/epilog.[ch] "$src"/dtype.[ch] "$src"/status.c "$src"/log.[ch] "$src"/pass_math.h
check "the CPU backend knows the contract only" "(.*/)?($upper)|.*cuda.*" "$src"/cpu/*.[ch]
check "the CUDA backend knows the contract only" "(.*/)?($upper)|.*cpu.*" "$src"/cuda/*.c "$src"/cuda/*.h "$src"/cuda/*.cu
check "the public header stands alone" '[^s].*|s[^t].*|st[^d].*' "$src"/../include/epigemm.h
check "the oracle shares nothing with src" '(.*/)?(problem|epilog|dtype|plan|backend|pass_math|log|config|support|tap)\.h' "$src"/../tests/oracle.[ch] "$src"/../tests/bound.[ch]
echo 1..$n
