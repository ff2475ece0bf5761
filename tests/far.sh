#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs of the API on a device whose memory the host cannot touch and whose executions happen only when waited for (tests/far): the
# problem files with operands there and with operands on the host, and the demo, whose losses must be those of the CPU.
if [ ! -f "$FAR_DIR/cuda.so" ]; then
	echo "1..0 # SKIP the far device, a plug-in, was not built here"
	exit 0
fi
EPIGEMM_PLUGIN_DIR=$FAR_DIR EPIGEMM_TEST_BACKEND=cuda
export EPIGEMM_PLUGIN_DIR EPIGEMM_TEST_BACKEND
count=0
temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
trap 'exit 1' HUP INT TERM

# point STATUS NAME: one test point; where it fails, what was printed.
point() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then echo "ok $count - $2"; else
		echo "not ok $count - $2"
		head -n 40 "$temporary/out" | sed 's/^/# /'
	fi
}

# run NAME MEMORY: a test program; the far device complains on stderr.
run() {
	EPIGEMM_TEST_MEMORY=$2 "tests/$1" >"$temporary/all" 2>&1
	status=$?
	good=$(grep -c '^ok' "$temporary/all")
	grep -A6 -e '^not ok' -e '^far device:' "$temporary/all" >"$temporary/out"
	[ $status -eq 0 ] && [ "$good" -gt 0 ] && [ ! -s "$temporary/out" ]
	point $? "$1 with memory on the $2: $good tests"
}

run test_problem device
run test_problem host
run test_place host

# demo BACKEND: trains two epochs on the small set, in f32.
data=${srcdir:-.}/tests/data/fashion-mnist
mkdir "$temporary/set"
for file in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
	gzip -dc "$data/$file.gz" >"$temporary/set/$file" || exit 1
done
demo() { demo/train --backend "$1" --data "$temporary/set" --batch 64 --epochs 2 --out "$temporary" --losses "$temporary/$1" >"$temporary/out" 2>&1; }

demo cpu
point $? "the demo on the CPU"
demo cuda && ! grep -q '^far device:' "$temporary/out"
point $? "the demo on the device"
steps=$(wc -l <"$temporary/cuda")
[ "$steps" -eq 64 ] && cmp -s "$temporary/cpu" "$temporary/cuda"
point $? "the same loss in each of $steps steps"
demo/train --backend cuda --data "$temporary/set" --check >"$temporary/out" 2>&1 && ! grep -q '^far device:' "$temporary/out"
point $? "the demo's gradients on the device"
echo "1..$count"
