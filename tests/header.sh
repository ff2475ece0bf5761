#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The public header compiles alone, included twice, with no warning: as C99 and later, as C++ 11 and 17.
header=$(cd "${srcdir:-.}/include" && pwd)/epigemm.h
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
printf '#include "%s"\n#include "%s"\n' "$header" "$header" > "$dir/t.c"
cp "$dir/t.c" "$dir/t.cc"
n=0
# try COMPILER STANDARD FILE
try() {
	n=$((n + 1))
	if $1 -std="$2" -Wall -Wextra -Werror -pedantic -c "$dir/$3" -o "$dir/t.o" 2> "$dir/messages"; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$dir/messages"
	fi
}
for standard in c99 c11 gnu17; do try "$CC" $standard t.c; done
for standard in c++11 c++17; do
	if command -v ${CXX%% *} > /dev/null; then
		try "$CXX" $standard t.cc
	else
		n=$((n + 1)); echo "ok $n # SKIP no C++ compiler for $standard"
	fi
done
echo 1..$n
