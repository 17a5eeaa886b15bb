#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kernel.sh - make a stock Debian kernel and its headers available in the cache directory.
# Nothing is installed on this machine: the packages are only unpacked. A kernel of our own is debug-kernel.sh's work.
#
# usage: kernel.sh [--refresh] [--headers] X.Y|SUITE/RELEASE|debug|plain|ect1|builtin|kcsan    6.1, bullseye/5.10.0-46-amd64
#        kernel.sh --packages SUITE/RELEASE                                 only names what it would fetch
#
# Of X.Y it is the first release in packages.lock that the mirror has; if it has none, the newest.
# Prints, for eval: KREL (release), KIMG (image), KMODS (its modules), KDIR (build directory for
# make -C), KCC (the compiler that built it) and KDEBIAN (the Debian release whose tools can build
# for it, see root.sh). --refresh looks for a newer build of the kernel; with --headers there is no
# image and no modules: KIMG and KMODS stay empty (a kernel of our own is built with all of them).

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: kernel.sh [--refresh] [--headers | --packages] X.Y|SUITE/RELEASE|debug|plain|ect1|builtin|kcsan'
refresh='' parts=kernel only_names=''
while [[ ${1-} == --* ]]; do
	case $1 in
	--refresh) refresh=1 ;;
	--headers) parts=headers ;;
	--packages) only_names=1 ;;
	*) die "unknown option '$1'; $usage" ;;
	esac
	shift
done
[ $# -eq 1 ] || die "no kernel given; $usage"
kernel=$1 release=''
case $kernel in
debug | plain | ect1 | builtin | kcsan) exec "$DUALPI2_ROOT/scripts/debug-kernel.sh" ${refresh:+--refresh} "$kernel" ;;
*/*) suite=${kernel%%/*} release=${kernel#*/} ;;
*)
	suite=$(kernels | awk -v kernel="$kernel" '$1 == kernel { print $2 }')
	[ -n "$suite" ] || die "unknown kernel '$kernel'; known are $(kernels | cut -d' ' -f1 | paste -sd' ') debug plain builtin kcsan;" \
		"or name one as SUITE/RELEASE"
	;;
esac
debian=${suite%-backports}
# Where the next release is made there is nothing newer to build with.
[ "$debian" != sid ] || debian=forky

archive() { "$DUALPI2_ROOT/scripts/debian-archive.sh" "$@" 7>&- 8>&-; }
# The parts a kernel is split into differ between releases: follow the dependencies within it,
# but not those of headers on the image, which some have.
with_parts() { # PACKAGE...
	local todo=("$@") package packages=() dependency dependencies
	while [ ${#todo[@]} -gt 0 ]; do
		package=${todo[0]}
		todo=("${todo[@]:1}")
		[[ " ${packages[*]} " != *" $package "* ]] || continue
		packages+=("$package")
		dependencies=$(archive "$suite" depends "$package")
		while read -r dependency; do
			case $dependency in
			linux-base | linux-compiler-* | linux-image-* | *-unsigned) ;;
			linux-*) todo+=("$dependency") ;;
			esac
		done <<<"$dependencies"
	done
	printf '%s\n' "${packages[@]}"
}
if [ -n "$only_names" ]; then
	with_parts "linux-headers-${release:?"$usage"}" "linux-image-$release"
	exit 0
fi
# The names of the releases on stdin that are this X.Y.
of_series() { sed -n -E "s,^linux-image-(${kernel//./\\.}(\.[0-9]+)*(\+[a-z0-9.~]+)*(-[0-9]+)?-amd64)\$,\1,p"; }
mapfile -t wanted < <(awk -v suite="$suite" '$1 == suite { print $2 }' "$DUALPI2_ROOT/scripts/packages.lock" | of_series)

kernels=$DUALPI2_CACHE/kernels
name=${kernel//\//-}-$parts
answer=$kernels/$name.env
mkdir -p "$kernels"
exec 8>"$kernels/$name.lock"
flock 8
if [ -z "$refresh" ] && [ -s "$answer" ]; then
	# shellcheck source=/dev/null
	KREL=$(. "$answer" && echo "$KREL")
	if [ -n "$release" ] || [[ " ${wanted[*]} " == *" $KREL "* ]] || is_unlocked "$suite" "linux-headers-$KREL"; then
		cat "$answer"
		exit 0
	fi
fi

need apt-get dpkg depmod

# Plain flavour only: 6.1.0-56-amd64, 7.2.12+deb13-amd64, but not cloud, rt, dbg or unsigned.
if [ -z "$release" ]; then
	there=$(archive ${refresh:+--refresh} "$suite" names ^linux-image- | of_series | sort -V)
	for release in "${wanted[@]}" "${there##*$'\n'}"; do
		! grep -q -x -F -e "$release" <<<"$there" || break
	done
fi
[ -n "$release" ] || die "$suite has no kernel $kernel for amd64; see scripts/debian-archive.sh $suite names linux-image"

# The same release may be in several suites, and asked for twice at once.
root=$kernels/$release/root
mkdir -p "$kernels/$release"
exec 7>"$kernels/$release/lock"
flock 7
if [ ! -e "$kernels/$release/has-$parts" ]; then
	todo=()
	[ -e "$kernels/$release/has-headers" ] || todo+=("linux-headers-$release")
	[ "$parts" = headers ] || todo+=("linux-image-$release")
	say "fetching ${todo[*]} from $suite"
	names=$(with_parts "${todo[@]}")
	mapfile -t packages <<<"$names"
	download=$kernels/$release/download
	rm -rf "$download"
	mkdir -p "$download"
	archive --to "$download" "$suite" download "${packages[@]}"
	say "unpacking ${packages[*]}"
	# On a merged-/usr package /lib is a link that dpkg -x must not replace.
	mkdir -p "$root/usr/lib/modules/$release"
	ln -sfn usr/lib "$root/lib"
	for package in "$download"/*.deb; do
		# Of the processors only x86: the others are a quarter of all headers.
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner \
			--wildcards --no-wildcards-match-slash --exclude='./usr/src/*/arch/[a-wyz]*'
	done
	[ "$parts" = headers ] || depmod -b "$root" "$release"

	# The headers name themselves and their other half by the paths they would have when installed.
	[ -e "$kernels/$release/has-headers" ] ||
		sed -i -E "s,(^|[[:space:]=])/usr/src/,\1$root/usr/src/,g" "$root/usr/src/linux-headers-$release/Makefile"
	ln -sfn "$root/usr/src/linux-headers-$release" "$root/lib/modules/$release/build"
	rm -f "$root/lib/modules/$release/source"
	rm -rf "$download"
	touch "$kernels/$release/has-headers" "$kernels/$release/has-$parts"
fi

# From 7.x on the image lies with the modules.
image='' modules=''
headers=$root/usr/src/linux-headers-$release
if [ "$parts" != headers ]; then
	modules=$root/lib/modules/$release
	image=$root/boot/vmlinuz-$release
	[ -e "$image" ] || image=$modules/vmlinuz
	[ -s "$image" ] || die "the packages of $release hold no image; remove $kernels/$release and run again"
fi
compiler=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\) .*/\1/p' "$headers/.config")
compiler=${compiler#x86_64-linux-gnu-}
printf '%s=%q\n' KREL "$release" KIMG "$image" KMODS "$modules" \
	KDIR "$headers" KCC "$compiler" KDEBIAN "$debian" >"$answer.new"
mv "$answer.new" "$answer"
cat "$answer"
