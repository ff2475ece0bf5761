#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One version everywhere: configure.ac (through make) and the macros of the header. test_text compares the macros with
# what epg_version returns.
header=${srcdir:-.}/include/epigemm.h
macro() { sed -n "s/^#define $1 //p" "$header" | tr -d '"'; }
three=$(macro EPG_VERSION_MAJOR).$(macro EPG_VERSION_MINOR).$(macro EPG_VERSION_PATCH)
for pair in "1 $three EPG_VERSION_MAJOR.MINOR.PATCH" "2 $(macro EPG_VERSION) EPG_VERSION"; do
	set -- $pair
	if [ "$2" = "$PACKAGE_VERSION" ]; then echo "ok $1 - $3 is $PACKAGE_VERSION"; else echo "not ok $1 - $3 is $2, configure.ac says $PACKAGE_VERSION"; fi
done
echo 1..2
