#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The demo, offline, on the small set of tests/data: it learns, says what it does, repeats itself bit by bit, draws its
# pictures, proves its gradients, and refuses bad data and options in a sentence.
train=demo/train
data=${srcdir:-.}/tests/data/fashion-mnist
count=0

temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
trap 'exit 1' HUP INT TERM

# point STATUS NAME: one test point; where it fails, the last output of the demo for the reader.
point() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then echo "ok $count - $2"; else
		echo "not ok $count - $2"
		sed 's/^/# /' "$temporary/out" "$temporary/err"
	fi
}

skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }

# demo OPTION...: runs the demo on the plain set; later options win.
demo() { $train --backend cpu --data "$temporary/set" --batch 64 --epochs 5 --out "$temporary" "$@" >"$temporary/out" 2>"$temporary/err"; }

# refused STATUS NAME WORDS OPTION...: the demo ends with this exit status and a sentence with these words.
refused() {
	wanted=$1 name=$2 words=$3
	shift 3
	demo "$@"
	status=$?
	[ $status = "$wanted" ] && grep -q -- "$words" "$temporary/err"
	point $? "$name"
}

# What a training printed, less the times.
epochs() { sed -n 's/ *[0-9]* images.*//; /^epoch/p' "$temporary/out"; }

mkdir "$temporary/set"
for file in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
	gzip -dc "$data/$file.gz" >"$temporary/set/$file" || exit 1
done

# ---- Training ----

demo
point $? "trains on the small set"
epochs >"$temporary/first"
[ "$(wc -l <"$temporary/first")" -eq 5 ]
point $? "a line for each of five epochs"
sed -n 's/^Test accuracy \([0-9.]*\) .*/\1/p' "$temporary/out" | awk '{ print "# test accuracy " $1 " %"; good = $1 >= 80 } END { exit !good }'
point $? "at least 80 % of the test pictures are recognised"
awk '{ loss[NR] = $4 } END { exit !(loss[5] > 0 && loss[5] < 0.6 * loss[1]) }' "$temporary/first"
point $? "the loss falls"
for picture in curves predictions; do
	[ "$(tail -n 1 "$temporary/$picture.svg")" = "</svg>" ] && ! grep -q -i -E 'nan|inf[^o]' "$temporary/$picture.svg"
	point $? "$picture.svg is whole"
	if command -v xmllint >/dev/null 2>&1; then
		xmllint --noout "$temporary/$picture.svg" 2>>"$temporary/err"
		point $? "$picture.svg is well-formed"
	else skip "$picture.svg is well-formed" "no xmllint here"; fi
done
[ "$(grep -c '^<g transform' "$temporary/predictions.svg")" -eq 60 ]
point $? "50 pictures and 10 mistakes are shown"

demo --threads 1 && epochs | cmp -s - "$temporary/first"
point $? "the same seed gives the same numbers, also with one thread"
demo --seed 2 && ! epochs | cmp -s - "$temporary/first"
point $? "another seed gives others"
demo --type f64 --epochs 2 && epochs | awk '{ f64 = $10 } END { exit !(f64 > 70) }'
point $? "trains in f64 too"
demo --batch 100000 --epochs 1
point $? "a batch larger than the set is the set"
demo --quiet && [ "$(wc -l <"$temporary/out")" -eq 1 ]
point $? "--quiet prints the result alone"

if grep -q '^#define HAVE_ZLIB' config.h; then
	demo --data "$data" && epochs | cmp -s - "$temporary/first"
	point $? "the gzipped files give the same"
else refused 1 "gzipped files are refused in a build without zlib" "without zlib" --data "$data"; fi

# ---- Gradients ----

demo --check
point $? "--check passes"
for part in W1 b1 W2 b2; do
	grep "^  $part: .* tested" "$temporary/out" | awk '{ sub(/.*relative error /, ""); good = $1 > 0 && $1 < 1e-6 } END { exit !good }'
	point $? "$part: analytic and numerical gradient differ by less than 1e-6"
	grep "^  $part: relative error" "$temporary/out" | awk '{ good = $4 >= 0 && $4 < 1e-12 } END { exit !good }'
	point $? "$part: micro-batches give the whole batch's gradient"
done

# ---- Backends ----

demo --backend auto --epochs 1 && grep -q '^Backend auto took [a-z]*, because ' "$temporary/out"
point $? "auto says what it took and why"
if grep -q 'because cuda cannot' "$temporary/out"; then refused 1 "cuda is refused where it cannot be used" "cuda" --backend cuda; else skip "cuda is refused where it cannot be used" "cuda can be used here"; fi

# ---- Refusals ----

set_without() { rm -rf "$temporary/bad" && cp -R "$temporary/set" "$temporary/bad" && rm "$temporary/bad/$1"; }

refused 1 "a directory that is not there" "$temporary/none/train-images-idx3-ubyte: there is no such file" --data "$temporary/none"
set_without t10k-labels-idx1-ubyte
refused 1 "a file that is missing" "t10k-labels-idx1-ubyte: there is no such file" --data "$temporary/bad"
head -c 400 "$temporary/set/t10k-labels-idx1-ubyte" >"$temporary/bad/t10k-labels-idx1-ubyte"
refused 1 "a file cut short" "ends after 392 of 500 bytes" --data "$temporary/bad"
cp "$temporary/set/train-labels-idx1-ubyte" "$temporary/bad/t10k-labels-idx1-ubyte"
refused 1 "labels of another set" "500 t10k images but 2000 labels" --data "$temporary/bad"
cp "$temporary/set/t10k-images-idx3-ubyte" "$temporary/bad/t10k-labels-idx1-ubyte"
refused 1 "images in place of labels" "has 3 dimensions instead of 1" --data "$temporary/bad"
echo "not an IDX file" >"$temporary/bad/t10k-labels-idx1-ubyte"
refused 1 "a file of another format" "is not an IDX file" --data "$temporary/bad"
if grep -q '^#define HAVE_ZLIB' config.h; then
	set_without t10k-images-idx3-ubyte
	head -c 100000 "$data/t10k-images-idx3-ubyte.gz" >"$temporary/bad/t10k-images-idx3-ubyte.gz"
	refused 1 "a gzipped file cut short" "end too early" --data "$temporary/bad"
else skip "a gzipped file cut short" "built without zlib"; fi
refused 1 "pictures that cannot be written" "cannot be made" --out /dev/null/pictures --epochs 1
refused 2 "no epochs" "--epochs 0: it must be a whole number from 1" --epochs 0
refused 2 "a rate that is no number" "--lr fast: it must be a number" --lr fast
refused 2 "an unknown backend" "--backend abacus: it must be cpu, cuda or auto" --backend abacus
refused 2 "an unknown option" "--help lists" --frobnicate
demo --help && grep -q -- '--data DIR' "$temporary/out"
point $? "--help lists the options"
echo "1..$count"
