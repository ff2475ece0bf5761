#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Started with a BLAS whose integers have another size than the one built against: refused with a sentence, not computed.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bits=$(sed -n 's/^#define EPG_BLAS_INT_BITS //p' config.h)
if [ "$bits" = 32 ]; then other=$(ls /usr/lib/*/openblas64-*/libopenblas64.so.0 2> /dev/null | head -1); else other=$(ls /usr/lib/*/libopenblas.so.0 2> /dev/null | head -1); fi
if [ -z "$other" ]; then
	echo "1..0 # SKIP there is no OpenBLAS with integers of another size than $bits bits"
	exit 0
fi
cat > "$dir/t.c" <<'EOT'
#include <epigemm.h>
#include <stdio.h>
int main(void)
{
	epg_context *context;
	epg_status status = epg_context_create(NULL, &context);
	return printf("%s: %s\n", epg_status_string(status), status ? epg_last_error() : "") < 0;
}
EOT
echo 1..2
./libtool --quiet --tag=CC --mode=link $CC $CFLAGS -I"${srcdir:-.}/include" -o "$dir/t" "$dir/t.c" libepigemm.la > "$dir/messages" 2>&1 || sed 's/^/# /' "$dir/messages"
case $("$dir/t") in success:*) echo "ok 1 - its own BLAS" ;; *) echo "not ok 1 - its own BLAS" ;; esac
got=$(ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS LD_PRELOAD=$other "$dir/t" 2>&1)
case $got in "no backend:"*"built for $bits"*) echo "ok 2 - $got" ;; *) echo "not ok 2 - $got" ;; esac
