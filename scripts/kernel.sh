#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kernel.sh - make a stock Debian kernel and its headers available in the cache directory.
# Nothing is installed on this machine: the packages are only unpacked.
#
# usage: kernel.sh [--refresh] X.Y        e.g. 6.1
#
# Prints, for eval: KREL (release), KIMG (image), KMODS (its modules), KDIR (build directory for
# make -C) and KCC (the compiler that built it). --refresh looks for a newer build of the kernel.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# -eq 1 ] || die "no kernel given; usage: kernel.sh [--refresh] X.Y"
kernel=$1
case $kernel in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=bookworm-backports ;;
7.2) suite=trixie-backports ;;
*) die "no suite known for kernel '$kernel'; known are 5.10, 6.1, 6.12, 7.2" ;;
esac

kernels=$DUALPI2_CACHE/kernels
answer=$kernels/$kernel.env
mkdir -p "$kernels"
exec 8>"$kernels/$kernel.lock"
flock 8
if [ -z "$refresh" ] && [ -s "$answer" ]; then
	cat "$answer"
	exit 0
fi

for tool in apt-get dpkg depmod; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
done
archive() { "$DUALPI2_ROOT/scripts/debian-archive.sh" "$@" 8>&-; }

# Plain flavour only: 6.1.0-56-amd64, 7.2.12+deb13-amd64, but not cloud, rt, dbg or unsigned.
release=$(archive "$suite" names "^linux-image-${kernel//./\\.}(\.[0-9]+)*(\+[a-z0-9.~]+)*(-[0-9]+)?-amd64$" |
	sed 's/^linux-image-//' | sort -V | tail -n 1)
[ -n "$release" ] || die "$suite has no kernel $kernel for amd64; see scripts/debian-archive.sh $suite names linux-image"

root=$kernels/$release/root
if [ ! -e "$kernels/$release/unpacked" ]; then
	say "fetching kernel $release and its headers from $suite"
	# The parts a kernel is split into differ between releases: follow the dependencies within it.
	todo=("linux-image-$release" "linux-headers-$release")
	packages=()
	while [ ${#todo[@]} -gt 0 ]; do
		package=${todo[0]}
		todo=("${todo[@]:1}")
		[[ " ${packages[*]} " != *" $package "* ]] || continue
		packages+=("$package")
		while read -r dependency; do
			case $dependency in
			linux-base | linux-compiler-* | *-unsigned) ;;
			linux-*) todo+=("$dependency") ;;
			esac
		done < <(archive "$suite" depends "$package")
	done

	download=$kernels/$release/download
	rm -rf "$download" "$root"
	mkdir -p "$download" "$root"
	archive --to "$download" "$suite" download "${packages[@]}"
	say "unpacking ${packages[*]}"
	# On a merged-/usr package /lib is a link that dpkg -x must not replace.
	mkdir -p "$root/usr/lib"
	ln -s usr/lib "$root/lib"
	for package in "$download"/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
	done
	depmod -b "$root" "$release"

	# The headers name themselves and their other half by the paths they would have when installed.
	sed -i -E "s,(^|[[:space:]=])/usr/src/,\1$root/usr/src/,g" "$root/usr/src/linux-headers-$release/Makefile"
	ln -sfn "$root/usr/src/linux-headers-$release" "$root/lib/modules/$release/build"
	rm -f "$root/lib/modules/$release/source"
	rm -rf "$download"
	touch "$kernels/$release/unpacked"
fi

# From 7.x on the image lies with the modules.
image=$root/boot/vmlinuz-$release
[ -e "$image" ] || image=$root/usr/lib/modules/$release/vmlinuz
headers=$root/usr/src/linux-headers-$release
[ -s "$image" ] || die "the packages of $release hold no image; remove $kernels/$release and run again"
compiler=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\) .*/\1/p' "$headers/.config")
compiler=${compiler#x86_64-linux-gnu-}
printf '%s=%q\n' KREL "$release" KIMG "$image" KMODS "$root/lib/modules/$release" \
	KDIR "$headers" KCC "$compiler" >"$answer.new"
mv "$answer.new" "$answer"
cat "$answer"
