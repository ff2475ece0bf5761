#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program in README.md compiles as it stands, runs, and prints the line that README.md shows.
readme=${srcdir:-.}/README.md
include=$(cd "${srcdir:-.}/include" && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
echo 1..2
sed -n '/^```c$/,/^```$/p' "$readme" | sed '1d;$d' > "$dir/layer.c"
if [ -s "$dir/layer.c" ] && ./libtool --quiet --tag=CC --mode=link $CC $CFLAGS -Wall -Wextra -Werror -I"$include" -o "$dir/layer" "$dir/layer.c" libepigemm.la \
	> "$dir/messages" 2>&1; then
	echo "ok 1 - compiles"
else
	echo "not ok 1 - compiles"
	sed 's/^/# /' "$dir/messages"
fi
want=$(sed -n 's/^    \(D = .*\)$/\1/p' "$readme")
got=$("$dir/layer" 2>&1)
if [ -n "$want" ] && [ "$got" = "$want" ]; then
	echo "ok 2 - prints '$want'"
else
	echo "not ok 2 - prints '$want', got '$got'"
fi
