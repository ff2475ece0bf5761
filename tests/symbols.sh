#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The shared library exports exactly tests/symbols.txt, which is also what the header declares, and every external name
# in the static library begins with epg_, since programs linked with it see them all. Names that begin with two
# underscores are the compiler's (sanitizers).
srcdir=${srcdir:-.}
list=$srcdir/tests/symbols.txt

# compare NAME: reads names, reports the difference with the list
compare() {
	difference=$(LC_ALL=C sort -u | diff "$list" - | grep '^[<>]')
	if [ -z "$difference" ]; then echo "ok $1"; else echo "not ok $1"; echo "$difference" | sed 's/^/# /'; fi
}

sed -nE 's/^[a-z][a-z_0-9 *]*[ *](epg_[a-z_0-9]+)\(.*/\1/p' "$srcdir/include/epigemm.h" | compare "1 - the header declares the functions of symbols.txt"

shared=.libs/libepigemm.so
if [ -e $shared ]; then
	$NM -D --defined-only $shared | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | grep -v '^__' | compare "2 - $shared exports symbols.txt"
	if $READELF -V $shared | grep -q 'Name: EPIGEMM_0'; then echo "ok 3 - in the version EPIGEMM_0"; else echo "not ok 3 - in the version EPIGEMM_0"; fi
else
	echo "ok 2 # SKIP no shared library was built"
	echo "ok 3 # SKIP no shared library was built"
fi

static=.libs/libepigemm.a
if [ -e $static ]; then
	others=$($NM -g --defined-only $static | awk 'NF == 3 && $3 !~ /^(epg_|__)/ { print $3 }')
	if [ -z "$others" ]; then echo "ok 4 - all external names in $static begin with epg_"; else echo "not ok 4 - all external names in $static begin with epg_"; echo "$others" | sed 's/^/# /'; fi
else
	echo "ok 4 # SKIP no static library was built"
fi
echo 1..4
