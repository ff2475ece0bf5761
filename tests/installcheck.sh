#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs of users, outside the tree, against what 'make install' installed: C and C++, with the shared library and
# with libepigemm.a, by the flags that pkg-config gives, and again from a copy of the whole installation moved into a
# directory with a space in its name. Each computes one product that is known. Called by 'make installcheck':
#     installcheck.sh DESTDIR PREFIX LIBDIR INCLUDEDIR
destdir=$1 prefix=$2 libdir=$3 includedir=$4
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failures=0 n=0

cat > "$dir/t.c" <<'END'
#include <epigemm.h>
#include <stdio.h>
int main(void)
{
	/* 1×2 · 2×1: relu(1·3 + 2·8) = 19 */
	const float a[2] = {1, 2}, b[2] = {3, 8};
	float d = 0;
	epg_context *context;
	epg_matmul_desc desc;
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	x.a = a;
	x.b = b;
	x.d = &d;
	if (epg_context_create(NULL, &context) || epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 2, EPG_F32, EPG_COL))
		return 1;
	desc.epilog = EPG_EPILOG_RELU;
	if (epg_matmul(context, &desc, &x, NULL)) {
		puts(epg_last_error());
		return 1;
	}
	epg_context_destroy(context);
	printf("%s %g\n", epg_version(), d);
	return 0;
}
END
cp "$dir/t.c" "$dir/t.cc"
cat > "$dir/status.c" <<'END'
#include <epigemm.h>
#include <stdio.h>
int main(void)
{
	char text[1024] = "";
	epg_backend_status("cuda", text, sizeof text, NULL);
	puts(text);
	return 0;
}
END

report() { # report STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failures=$((failures + 1)); fi
}

# run NAME COMPILER SOURCE FLAGS: the flags come from pkg-config, quoted for the shell, hence the eval
run() {
	eval "$2 $CFLAGS \"\$dir/$3\" -o \"\$dir/t\" $LDFLAGS $4" && result=$("$dir/t") && [ "$result" = "$PACKAGE_VERSION 19" ]
	report $? "$1"
}

# check WHERE PREFIX LIBDIR: all programs against one place
check() {
	here=$3
	pc="$PKG_CONFIG --define-variable=prefix='$2'"
	case $libdir in "$prefix"/*) ;; *) pc="$pc --define-variable=libdir='$3'" ;; esac
	case $includedir in "$prefix"/*) ;; *) pc="$pc --define-variable=includedir='$destdir$includedir'" ;; esac
	PKG_CONFIG_PATH=$here/pkgconfig; export PKG_CONFIG_PATH
	old_path=$LD_LIBRARY_PATH
	LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; export LD_LIBRARY_PATH
	cflags=$(eval "$pc --cflags epigemm")
	libs=$(eval "$pc --libs epigemm")
	private=$(eval "$pc --static --libs epigemm")
	[ "$($PKG_CONFIG --modversion epigemm)" = "$PACKAGE_VERSION" ]; report $? "$1: pkg-config gives version $PACKAGE_VERSION"
	if [ -e "$here/libepigemm.so" ]; then
		case $libs in *blas*|*gomp*|*openmp*) false ;; *) true ;; esac; report $? "$1: the shared link names epigemm alone"
		run "$1: C, shared" "$CC" t.c "$cflags $libs"
		command -v ${CXX%% *} > /dev/null && run "$1: C++, shared" "$CXX" t.cc "$cflags $libs"
		# Where the plug-in was installed it is found beside the library, whatever it then says about a GPU; EPIGEMM_PLUGIN_DIR must not decide.
		if [ -e "$here/epigemm/cuda.so" ]; then
			eval "$CC $CFLAGS \"\$dir/status.c\" -o \"\$dir/status\" $LDFLAGS $cflags $libs" && why=$(env -u EPIGEMM_PLUGIN_DIR "$dir/status") \
				&& case $why in *plug-in*|*symbol*|*ABI*) false ;; *) true ;; esac
			report $? "$1: the CUDA plug-in beside the library: $why"
			[ ! -e "$here/epigemm/cuda.la" ]; report $? "$1: no cuda.la"
		fi
	fi
	if [ -e "$here/libepigemm.a" ]; then
		# The archive by name, in the place of -lepigemm: everything else as --static gives it.
		static=$(echo "$private" | sed 's| -lepigemm | -l:libepigemm.a |')
		run "$1: C, libepigemm.a" "$CC" t.c "$cflags $static"
		command -v ${CXX%% *} > /dev/null && run "$1: C++, libepigemm.a" "$CXX" t.cc "$cflags $static"
		[ "$READELF" = : ] || { ! $READELF -d "$dir/t" | grep -q 'NEEDED.*libepigemm'; report $? "$1: the program does not need libepigemm.so"; }
	fi
	LD_LIBRARY_PATH=$old_path
}

$PKG_CONFIG --version > /dev/null 2>&1 || { echo "installcheck: skipped, there is no pkg-config"; exit 0; }
check "installed" "$destdir$prefix" "$destdir$libdir"
case $libdir in
"$prefix"/*)
	mkdir "$dir/moved here" && mkdir -p "$dir/moved here${libdir#"$prefix"}" "$dir/moved here/include"
	cp -R "$destdir$libdir"/libepigemm* "$destdir$libdir/pkgconfig" "$dir/moved here${libdir#"$prefix"}"
	cp "$destdir$includedir/epigemm.h" "$dir/moved here/include"
	[ ! -e "$destdir$libdir/epigemm" ] || cp -R "$destdir$libdir/epigemm" "$dir/moved here${libdir#"$prefix"}"
	check "moved into a directory with a space" "$dir/moved here" "$dir/moved here${libdir#"$prefix"}" ;;
esac
echo "installcheck: $n checks, $failures failed"
[ $failures -eq 0 ]
