#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plug-ins that are missing, are no plug-ins, or are of another version, and machines without a usable GPU: the reason in words, and
# the CPU for "auto".
info=$PWD/epigemm-info
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
n=0
# why DIRECTORY: the sentence about the CUDA backend with plug-ins from there
why() { EPIGEMM_PLUGIN_DIR=$1 $info 2>&1 | sed -n 's/^backend cuda: //p'; }
# check NAME PATTERN SENTENCE
check() {
	n=$((n + 1))
	if printf '%s\n' "$3" | grep -q -E "$2"; then echo "ok $n - $1: $3"; else echo "not ok $n - $1"; echo "# $3"; fi
}
module() { # NAME SOURCE
	mkdir -p "$dir/$1"
	printf '%s\n' "$2" > "$dir/$1.c"
	$CC -shared -fPIC -I"${srcdir:-.}/include" -I"${srcdir:-.}/src" -o "$dir/$1/cuda.so" "$dir/$1.c"
}

if ! echo 'int main(void) { return 0; }' > "$dir/t.c" || ! $CC -shared -fPIC -o "$dir/t.so" "$dir/t.c" 2> /dev/null; then
	echo "1..0 # SKIP shared objects cannot be linked here"
	exit 0
fi
check "no plug-in" "there is no plug-in $dir/none/cuda.so" "$(why "$dir/none")"
mkdir "$dir/text" && echo text > "$dir/text/cuda.so"
check "no shared object" 'cannot be opened' "$(why "$dir/text")"
module symbol 'int x;'
check "no symbol" 'has no symbol epigemm_backend' "$(why "$dir/symbol")"
module refuses '#include "backend.h"
const epg_backend *epigemm_backend(const epg_services *services) { (void)services; return 0; }'
check "it does not take the core's ABI" 'does not take ABI' "$(why "$dir/refuses")"
module abi '#include "backend.h"
static const epg_backend table = {.abi = 77, .nbytes = sizeof table};
const epg_backend *epigemm_backend(const epg_services *services) { (void)services; return &table; }'
check "another ABI" 'has ABI 77, but' "$(why "$dir/abi")"
module size '#include "backend.h"
static const epg_backend table = {.abi = EPG_BACKEND_ABI, .nbytes = 8};
const epg_backend *epigemm_backend(const epg_services *services) { (void)services; return &table; }'
check "a table of another size" 'has a table of 8 bytes' "$(why "$dir/size")"
module probe '#include <stdio.h>
#include "backend.h"
static bool probe(char *text, size_t text_nbytes) { snprintf(text, text_nbytes, "not today"); return false; }
static const epg_backend table = {.abi = EPG_BACKEND_ABI, .nbytes = sizeof table, .probe = probe};
const epg_backend *epigemm_backend(const epg_services *services) { (void)services; return &table; }'
check "its own reason" 'not today' "$(why "$dir/probe")"
check "auto takes the CPU" 'way: cpu/' "$(EPIGEMM_PLUGIN_DIR=$dir/none $info --explain 'f32 m=4 n=3 k=2' 2>&1 | grep '^way')"
check "cuda by name is refused" 'there is no plug-in' "$(EPIGEMM_PLUGIN_DIR=$dir/none $info --backend cuda --explain 'f32 m=4 n=3 k=2' 2>&1)"

# The real plug-in beside drivers that are none. The runtime in it asks libcuda.so.1 for everything by cuGetProcAddress.
plugin=$PWD/.libs
driver() { # NAME VERSION INIT: cuDriverGetVersion gives VERSION, cuInit INIT
	mkdir -p "$dir/$1"
	cat > "$dir/$1.c" <<-END
		#include <string.h>
		int cuDriverGetVersion(int *version) { *version = $2; return 0; }
		int cuInit(unsigned flags) { (void)flags; return $3; }
		static int nothing(void) { return $3 ? $3 : 999; }
		int cuGetProcAddress_v2(const char *name, void **to, int version, unsigned long long flags, void *status) {
			(void)version; (void)flags; (void)status;
			*to = strcmp(name, "cuInit") == 0 ? (void *)cuInit : strcmp(name, "cuDriverGetVersion") == 0 ? (void *)cuDriverGetVersion
				: strcmp(name, "cuGetProcAddress") == 0 ? (void *)cuGetProcAddress_v2 : (void *)nothing;
			return 0;
		}
		int cuGetProcAddress(const char *name, void **to, int version, unsigned long long flags) { return cuGetProcAddress_v2(name, to, version, flags, 0); }
	END
	$CC -shared -fPIC -w -Wl,-soname,libcuda.so.1 -o "$dir/$1/libcuda.so.1" "$dir/$1.c"
}
with_driver() { LD_LIBRARY_PATH=$dir/$1 why "$plugin"; }
if [ ! -f "$plugin/cuda.so" ]; then
	for name in "no driver" "a stub" "an old driver" "no device" "needed libraries" "exported symbols"; do n=$((n + 1)); echo "ok $n - $name # SKIP the plug-in was not built here"; done
else
	driver stub 99000 34
	driver old 11000 0
	driver empty 99000 100
	if ldconfig -p 2> /dev/null | grep -q libcuda.so.1; then n=$((n + 1)); echo "ok $n - no driver # SKIP there is one here"
	else check "no driver" 'no usable NVIDIA driver' "$(why "$plugin")"; fi
	check "a stub" 'stub|no usable' "$(with_driver stub)"
	check "an old driver" 'too old: it does CUDA 11.0' "$(with_driver old)"
	check "no device" 'no CUDA device|no usable CUDA device' "$(with_driver empty)"
	check "its needed libraries" '^libc.so.6( ld-[^ ]*)?$' "$($READELF -d "$plugin/cuda.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ' | sed 's/ $//')"
	check "its one symbol" '^epigemm_backend$' "$($NM -D --defined-only "$plugin/cuda.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }')"
fi
echo "1..$n"
