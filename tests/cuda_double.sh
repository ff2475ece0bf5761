#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The tests of the API again, with the CUDA backend over the test double (tests/double): its planning, layouts, recipes and checks are
# the real ones, only the vendor's library and the kernels are loops on host memory. Once more with operands that stay on the host.
if [ ! -f "$DOUBLE_DIR/cuda.so" ]; then
	echo "1..0 # SKIP the CUDA plug-in was not built here"
	exit 0
fi
EPIGEMM_PLUGIN_DIR=$DOUBLE_DIR EPIGEMM_TEST_BACKEND=cuda
LD_LIBRARY_PATH=$DOUBLE_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export EPIGEMM_PLUGIN_DIR EPIGEMM_TEST_BACKEND LD_LIBRARY_PATH
count=0

# run NAME MEMORY ARGUMENT
run() {
	count=$((count + 1))
	output=$(EPIGEMM_TEST_MEMORY=$2 "tests/$1" $3 2>&1)
	status=$?
	good=$(printf '%s\n' "$output" | grep -c '^ok')
	if [ $status -eq 0 ] && [ "$good" -gt 0 ] && ! printf '%s\n' "$output" | grep -q -e '^not ok' -e SKIP; then
		echo "ok $count - $1 with memory on the $2: $good tests"
	else
		printf '%s\n' "$output" | grep -A6 '^not ok' | head -${SHOW:-40} | sed 's/^/# /'
		echo "not ok $count - $1 with memory on the $2: status $status, $good tests"
	fi
}

for name in test_problem test_contract test_half test_byte test_place; do run $name device; done
for name in test_problem test_contract; do run $name host; done
run test_epilogs device 20
echo "1..$count"
