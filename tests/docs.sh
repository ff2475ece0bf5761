#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The documents hold: C code in README.md, HACKING.md and doc/*.md compiles, and the files and functions that they name are there.
# Convention: a ```c block that contains 'int main' is a program and is compiled as it stands. Any other block is a
# fragment: its #include lines go to the top and the rest into a function whose parameters are the usual variables,
# see the preamble below. tests/links.sh follows the links.
src=${srcdir:-.}
include=$(cd "$src/include" && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
documents=$(cd "$src" && echo README.md HACKING.md doc/*.md)
count=0

ok() { count=$((count + 1)); echo "ok $count - $1"; }
not_ok() { count=$((count + 1)); echo "not ok $count - $1"; sed 's/^/# /' "$2"; }

cat > "$dir/preamble" <<'END'
#include <epigemm.h>
#include <stdio.h>
#include <stdlib.h>
epg_status fragment(epg_context *context, epg_plan *plan, epg_matmul_desc desc, epg_operands operands, epg_status status, void *stream,
	int64_t m, int64_t n, int64_t k, float *a, float *b, float *c, float *d, float *bias, float *bgrad, void *aux, void *workspace);
epg_status fragment(epg_context *context, epg_plan *plan, epg_matmul_desc desc, epg_operands operands, epg_status status, void *stream,
	int64_t m, int64_t n, int64_t k, float *a, float *b, float *c, float *d, float *bias, float *bgrad, void *aux, void *workspace)
{
	(void)context, (void)plan, (void)desc, (void)operands, (void)stream, (void)m, (void)n, (void)k, (void)a, (void)b, (void)c;
	(void)d, (void)bias, (void)bgrad, (void)aux, (void)workspace;
END

# Blocks go to files named by the document and the line that they begin at.
for document in $documents; do
	awk -v stem="$dir/$(echo "$document" | tr / _)" '/^```c$/ { file = stem "-" NR + 1 ".block"; next }
		/^```/ { if (file) close(file); file = ""; next } file { print > file }' "$src/$document"
done
for block in "$dir"/*.block; do
	name=$(basename "$block" .block)
	code=$dir/$name.c
	if grep -q 'int main' "$block"; then
		cp "$block" "$code"
	else
		{ grep '^#include' "$block"; cat "$dir/preamble"; grep -v '^#include' "$block"; printf "return status;\n}\n"; } > "$code"
	fi
	if $CC $CFLAGS -Wall -Wextra -Werror -Wno-unused-parameter -I"$include" -c -o "$dir/block.o" "$code" > "$dir/messages" 2>&1; then
		ok "$name compiles"
	else
		not_ok "$name does not compile" "$dir/messages"
	fi
done

for document in $documents; do
	# Files named in backquotes with a folder of the tree in front.
	: > "$dir/messages"
	grep -o '`\(src\|tests\|doc\|include\|demo\|tools\|m4\|dev\|bench\)/[A-Za-z0-9_./-]*`' "$src/$document" | tr -d '`' | sort -u > "$dir/names"
	while read -r name; do
		test -e "$src/$name" || test -e "$src/$name.c" || echo "no file $name"
	done < "$dir/names" > "$dir/messages"
	if test -s "$dir/messages"; then not_ok "files named in $document" "$dir/messages"; else ok "files named in $document"; fi
done

# Every function and constant that a document names is in the header.
for document in $documents; do
	: > "$dir/messages"
	grep -o '\(epg\|EPG\)_[A-Za-z0-9_]*' "$src/$document" | sort -u > "$dir/names"
	while read -r name; do
		grep -q "$name" "$src/include/epigemm.h" "$src"/src/*.h "$src"/src/*.c || echo "no $name in the header or the sources"
	done < "$dir/names" > "$dir/messages"
	if test -s "$dir/messages"; then not_ok "names of $document" "$dir/messages"; else ok "names of $document"; fi
done
echo "1..$count"
