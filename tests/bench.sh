#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# epigemm-bench: what it verifies, how problems are written, its three formats, and its exit status. Times are not looked at.
src=${srcdir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
n=0
bench() { ./epigemm-bench --backend cpu --threads 1 --no-ceiling --iters 1 --cold-iters 0 "$@"; }
check() { # NAME STATUS: the last command's
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; printf '%s\n' "$out" | head -20 | sed 's/^/# /'; fi
}
skip() { n=$((n + 1)); echo "ok $n - # SKIP $1"; }
has() { printf '%s\n' "$out" | grep -q -e "$1"; }
counts() { [ "$(printf '%s\n' "$out" | grep -c -e "$1")" -eq "$2" ]; }

# ---- Verification ----
for epilog in default relu relu_aux bias relu_bias relu_aux_bias drelu drelu_bgrad gelu gelu_aux gelu_bias gelu_aux_bias dgelu dgelu_bgrad bgrada bgradb; do
	echo "f32 m=40 n=33 k=20 opb=T epilog=$epilog axis=column beta=0.5"
	echo "bf16 m=17 n=20 k=9 opa=T order=row batch=2 epilog=$epilog"
done > "$dir/epilogs"
out=$(bench --verify --file "$dir/epilogs" 2>&1); status=$?
[ $status -eq 0 ] && counts '  right  ' 32; check "every epilog is right, in two forms" $?
out=$(bench --verify 'f32 m=700 n=600 k=500 opa=T batch=6 epilog=relu_aux_bias' 'f64 m=9000 n=600 k=9 order=row epilog=dgelu_bgrad axis=column' \
	'f32 m=700 n=700 k=700 epilog=bgrada' 'f32 m=700 n=700 k=700 opb=T epilog=bgradb flags=bgrad_accumulate' 'c64 m=600 n=600 k=600 opa=C opb=J stridec=0' 2>&1); status=$?
[ $status -eq 0 ] && counts '  right  ' 5; check "large problems are sampled" $?
out=$(bench --verify 'f32 m=0 n=4 k=3 epilog=bgradb' 'f32 m=4 n=3 k=0 beta=1' 'f32 m=4 n=3 k=2 alpha=0' 'f32 m=4 n=4 k=4 batch=0' 2>&1); status=$?
[ $status -eq 0 ] && counts '  right  ' 4; check "zero sizes" $?

# A BLAS that gets one element of a product wrong, in front of the real one.
cat > "$dir/b.c" <<'EOT'
#define _GNU_SOURCE
#include <dlfcn.h>
typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
sgemm cblas_sgemm;
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
	sgemm *real = (sgemm *)dlsym(RTLD_NEXT, "cblas_sgemm");
	real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	c[0] += 1000;
}
EOT
if grep -q '^#define EPG_BLAS_INT_BITS 32' config.h && ! printf '%s' "$CFLAGS" | grep -q -e -fsanitize && $CC -shared -fPIC -o "$dir/b.so" "$dir/b.c" -ldl 2> /dev/null \
	&& ldd .libs/libepigemm.so 2> /dev/null | grep -q openblas; then
	out=$(LD_PRELOAD=$dir/b.so bench --verify --seed 7 'f32 m=40 n=30 k=20 epilog=gelu_aux' 'f64 m=40 n=30 k=20' 2>&1); status=$?
	[ $status -eq 1 ] && has 'D\[0,0\] of item 0 is' && has '2 of 2400 compared are wrong' && has "to repeat: epigemm-bench .*--verify --seed 7 'f32 m=40 n=30 k=20 epilog=gelu_aux'" \
		&& counts '  right  ' 1 && counts '  WRONG  ' 1
	check "a wrong product is found, named, and makes the exit status 1" $?
	out=$(LD_PRELOAD=$dir/b.so bench --verify 'f32 m=700 n=600 k=500 epilog=relu_bias' 2>&1); status=$?
	[ $status -eq 1 ] && has 'of 4096 compared'; check "also where D is sampled" $?
	out=$(LD_PRELOAD=$dir/b.so bench 'f32 m=40 n=30 k=20' 2>&1); status=$?
	[ $status -eq 0 ] && has '  timed  '; check "but not without --verify" $?
else
	skip "no shared BLAS here to stand in front of"
fi

# ---- Problems ----
out=$(bench -m 16:64:*2 -n 8:24:+8 -k 4 2>&1); status=$?
[ $status -eq 0 ] && counts '^f32 m=' 9 && has '^f32 m=64 n=24 k=4 '; check "two sweeps give their product" $?
out=$(bench -m 5 -n 6 -k 7 -r f32_r --transA T --transB=N --a_type f16_r --b_type f16_r --c-type f32 --lda 9 --stride_b 50 --batch_count 2 --alpha 2 --beta -1 --epilog relu_bias \
	--axis column --order row --compute_type f32 --flags deterministic --verify 2>&1); status=$?
[ $status -eq 0 ] && has '^f16 m=5 n=6 k=7 order=row batch=2 tc=f32 td=f32 compute=f32 opa=T lda=9 strideb=50 epilog=relu_bias axis=column alpha=2 beta=-1 flags=deterministic  right  '
check "options become words of the line" $?
printf '# comment\n\nf32 m=3 n=4 k=5 beta=1 # behind\nf64 m=3 n=4 k=5\n' > "$dir/file"
out=$(bench --file - --beta 0 --epilog relu 'f32 m=8 n=8 k=8' < "$dir/file" 2>&1); status=$?
[ $status -eq 0 ] && counts ' epilog=relu ' 3 && ! has 'beta'; check "a file and a line, with a word added and one replaced" $?
for file in "$src"/bench/problems/*.txt; do
	lines=$(grep -c '^[a-z]' "$file")
	out=$(bench --verify -m 24 -n 16 -k 8 --file "$file" 2>&1); status=$?
	[ $status -eq 0 ] && counts '  right  ' "$lines"; check "the $lines problems of $(basename "$file"), made small" $?
done
out=$(bench --threads 2 --verify --pin 'cpu/reference threads=2' 'f32 m=8 n=8 k=8 epilog=drelu_bgrad' 2>&1); status=$?
[ $status -eq 0 ] && has '  right    cpu/reference  threads=2 '; check "--pin" $?
out=$(bench --compare --rotating 1 --rigor measure --file "$dir/epilogs" 2>&1); status=$?
[ $status -eq 0 ] && [ "$(printf '%s\n' "$out" | grep -c -E '^(f32|bf16) .* [0-9]+\.[0-9]+ +-$')" -eq 32 ]; check "--compare: unfused steps for every epilog, no vendor on the CPU" $?
out=$(./epigemm-bench --backend cpu --iters 1 -m 32 -n 32 -k 32 2>&1); status=$?
[ $status -eq 0 ] && has '% ceil'; check "the ceiling" $?

# ---- Formats ----
set -- 'f32 m=8 n=8 k=8 epilog=bias' 'e2m1 m=8 n=8 k=8'
bench --format csv --verify "$@" > "$dir/csv" 2> /dev/null; status=$?
out=$(cat "$dir/csv")
[ $status -eq 1 ] && has '^problem,type,epilog,m,n,k,batch,status,lowering,algorithm,us_min,us_median,' && has '^"f32 m=8 n=8 k=8 epilog=bias","f32","bias",8,8,8,1,"right","cpu/split",'; check "csv" $?
bench --format json --verify "$@" > "$dir/json" 2> /dev/null; status=$?
out=$(cat "$dir/json")
[ $status -eq 1 ] && has '"problem": "f32 m=8 n=8 k=8 epilog=bias"' && has '"us_median": null'; check "json" $?
if command -v python3 > /dev/null; then
	out=$(python3 - "$dir/csv" "$dir/json" 2>&1 <<'EOT'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
results = json.load(open(sys.argv[2]))["results"]
assert len(rows) == len(results) == 2
for row, result in zip(rows, results):
    assert list(row) == list(result)
    assert row["problem"] == result["problem"] and row["error"] == result["error"]
assert rows[0]["status"] == "right" and rows[1]["status"] == results[1]["status"] == "refused" and "e2m1" in rows[1]["error"]
assert float(rows[0]["us_min"]) > 0 and results[0]["us_median"] > 0 and results[1]["us_min"] is None and rows[1]["us_min"] == ""
EOT
	); check "python reads the same in both" $?
else
	skip "no python3 to read csv and json"
fi

# ---- Errors ----
# refused STATUS PATTERN ARGUMENT…
refused() {
	want=$1 pattern=$2
	shift 2
	out=$(bench "$@" 2>&1); status=$?
	[ $status -eq "$want" ] && has "$pattern"; check "exit status $want: $*" $?
}
refused 2 "unrecognized option '--frobnicate'" --frobnicate
refused 2 'no problem: give sizes'
refused 2 'has no n=' -m 4
refused 2 "the word 'epilog=fancy'" -m 4 -n 4 -k 4 --epilog fancy
refused 2 "the word 'm=4:8:\*1'" -m '4:8:*1' -n 4 -k 4
refused 2 'more than 100000 problems' -m 1:200000:+1 -n 4 -k 4
refused 2 'is not a type' 'x32 m=4 n=4 k=4'
refused 2 "iters is 'x', but must be a whole number" -m 4 -n 4 -k 4 --iters x
refused 2 'estimate, measure or patient' -m 4 -n 4 -k 4 --rigor slowly
refused 2 'text, csv or json' --format xml
refused 2 'No such file' --file "$dir/none"
refused 2 'but must be cpu, cuda or auto' -m 4 -n 4 -k 4 --backend vulkan
refused 1 "refused: a.ld is 2" -m 4 -n 4 -k 4 --lda 2
refused 1 "to repeat: epigemm-bench --backend cpu --threads 1 --seed 1 'e2m1 m=4 n=4 k=4'" 'e2m1 m=4 n=4 k=4'
refused 1 'pin is' -m 4 -n 4 -k 4 --pin cpu/magic

# ---- Pictures ----
# A gnuplot that keeps what it is told.
mkdir "$dir/bin" "$dir/empty"
printf '#!/bin/sh\nexec cat > "%s/script"\n' "$dir" > "$dir/bin/gnuplot"
chmod +x "$dir/bin/gnuplot"
out=$(PATH=$dir/bin:$PATH bench -m '8:32:*2' -n 8 -k 8 --plot "$dir/it's.svg" 2>&1; cat "$dir/script")
has "set output '$dir/it''s.svg'" && has "set xlabel 'm'" && has '^32 [0-9.e+-]* NaN$' && has "title 'f32 default'"; check "the script of a sweep" $?
out=$(PATH=$dir/bin:$PATH ./epigemm-bench --backend cpu --iters 1 --plot "$dir/p.svg" 'f32 m=8 n=9 k=8' 'f32 m=16 n=16 k=16' 'f64 m=16 n=16 k=16 epilog=relu' 2>&1; cat "$dir/script")
has "set xlabel 'flop per byte'" && has "title 'f32 default'" && has "title 'f64 relu'" && has "title 'ceiling'"; check "the script of a roofline" $?
if command -v gnuplot > /dev/null; then
	out=$(bench -m '8:32:*2' -n 8 -k 8 --plot "$dir/it's.svg" 2>&1); status=$?
	[ $status -eq 0 ] && grep -q '</svg>' "$dir/it's.svg"; check "gnuplot draws it" $?
else
	skip "no gnuplot here"
fi
if [ -x .libs/epigemm-bench ]; then
	out=$(PATH=$dir/empty LD_LIBRARY_PATH=.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} .libs/epigemm-bench -m 8 -n 8 -k 8 --plot "$dir/none.svg" 2>&1); status=$?
	[ $status -eq 2 ] && has 'needs gnuplot'; check "a sentence where gnuplot is missing, before anything is timed" $?
else
	skip "a static program needs PATH for nothing else"
fi

# ---- CUDA over the test double ----
if [ -f "$DOUBLE_DIR/cuda.so" ]; then
	EPIGEMM_PLUGIN_DIR=$DOUBLE_DIR LD_LIBRARY_PATH=$DOUBLE_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export EPIGEMM_PLUGIN_DIR LD_LIBRARY_PATH
	out=$(bench --backend cuda --verify --compare 'bf16 m=24 n=16 k=16 epilog=drelu_bgrad' 'f32 m=24 n=16 k=8 epilog=gelu_aux_bias' 'f16 m=9 n=8 k=7 epilog=bgradb axis=column' \
		'f64 m=8 n=8 k=8 order=row epilog=relu_aux_bias' 2>&1); status=$?
	[ $status -eq 0 ] && counts '  right    cuda/' 4 && [ "$(printf '%s\n' "$out" | grep -c -E '^bf16.*drelu_bgrad.* [0-9]+\.[0-9]+ +[0-9]+\.[0-9]+$')" -eq 1 ]
	check "on CUDA's double: right, and beside the vendor's fused call" $?
else
	skip "the CUDA plug-in was not built here"
fi
out=$(./epigemm-bench --version); [ "$out" = "$PACKAGE_VERSION" ]; check "--version" $?
out=$(./epigemm-bench --help); [ $? -eq 0 ] && has --rotating; check "--help" $?
echo "1..$n"
