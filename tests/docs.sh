#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The documents hold: C code in README.md, HACKING.md and doc/*.md compiles, and what links name is there.
# Convention: a ```c block that contains 'int main' is a program and is compiled as it stands. Any other block is a
# fragment: its #include lines go to the top and the rest into a function whose parameters are the usual variables,
# see the preamble below. Links to the network are not followed.
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

# The anchor that a heading gets: lower case, blanks to hyphens, punctuation dropped.
anchors() {
	sed -n '/^```/,/^```/!s/^##* *//p' "$1" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g'
}

for document in $documents; do
	: > "$dir/messages"
	sed '/^```/,/^```/d' "$src/$document" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' > "$dir/links"
	while read -r link; do
		case $link in
		http://* | https://* | mailto:*)
			case $link in *[[:space:]\<\>]*) echo "senseless address $link" ;; esac
			continue ;;
		esac
		file=${link%%#*}
		path=$src/$(dirname "$document")/$file
		test -n "$file" || path=$src/$document
		if ! test -e "$path"; then
			echo "no file for link $link"
		elif [ "$link" != "$file" ] && ! anchors "$path" | grep -qx -e "${link#*#}"; then
			echo "no heading for link $link"
		fi
	done < "$dir/links" >> "$dir/messages"
	if test -s "$dir/messages"; then not_ok "links of $document" "$dir/messages"; else ok "links of $document"; fi

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
