#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# linux-source.sh - fetch Debian's linux-source package of Linux 7.2, 160 MB, unpack in the cache directory what is
# used of it (600 MB), once, and print the path: the source of debug-kernel.sh, the kernel's own tc-testing cases
# (tdc.sh), checkpatch.pl and coccinelle's scripts (lint.sh).
#
# usage: linux-source.sh [--refresh]

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

# Its revision is in packages.lock, like that of the stock 7.2, which is tested too.
suite=$(releases | tail -n 1)
package=linux-source-7.2
tree=$DUALPI2_CACHE/$package

case ${1-} in
'') refresh='' ;;
--refresh) refresh=1 ;;
*) die "unknown argument '$1'; usage: linux-source.sh [--refresh]" ;;
esac
mkdir -p "$DUALPI2_CACHE"
exec 7>"$tree.lock"
flock 7
# The mark in it says of what it was made.
patch=$DUALPI2_ROOT/selftests/debug/uml-stacktrace.patch
if [ -z "$refresh" ] && grep -q -s -x -F "$(cksum <"$patch")" "$tree/unpacked" &&
	{ locked "$suite" "$package" | grep -q -w -F "$(head -n 1 "$tree/unpacked")" || is_unlocked "$suite" "$package"; }; then
	echo "$tree"
	exit 0
fi

for tool in dpkg-deb xz tar patch; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
done
free_kb=$(df --output=avail -k "$DUALPI2_CACHE" | tail -n 1)
[ "$free_kb" -ge 1500000 ] ||
	die "only $((free_kb / 1024)) MB free in $DUALPI2_CACHE; the kernel's source needs 1500 for a while, make room and run again"

# What no configuration of ours builds is two thirds of it.
unpack() { # PACKAGE-FILE DIR
	local dir not=('*/Documentation/*/*' '*/arch/[a-tvwyz]*.[chS]' '*/boot/dts/*')
	for dir in gpu media staging infiniband scsi net/ethernet net/wireless iio; do not+=("*/drivers/$dir/*.[chS]"); done
	not+=('*/sound/*.[chS]' '*/selftests/[a-su-z]*/*')
	dpkg-deb --fsys-tarfile "$1" | tar -x -O --wildcards "./usr/src/$package.tar.*" | xz -dc -T0 |
		tar -x -C "$2" --strip-components=1 --wildcards-match-slash "${not[@]/#/--exclude=}"
}

# The mark is written last, so that an interrupted run is begun anew.
new=$tree.new download=$tree.download
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -p "$new" "$download"
say "fetching $package (160 MB, once)"
"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$download" "$suite" download "$package" 7>&- ||
	die "cannot fetch $package from $suite; check the network and run again"
deb=$(find "$download" -name "${package}_*.deb" -size +0 | sort -V | tail -n 1)
[ -n "$deb" ] || die "the download of $package left no package in $download; run again"
say "unpacking it"
unpack "$deb" "$new" ||
	die "cannot unpack $deb; the package may be damaged or laid out anew, remove it and run again"
for part in Kconfig scripts/checkpatch.pl scripts/coccinelle tools/testing/selftests/tc-testing/tdc.py; do
	[ -e "$new/$part" ] || die "${deb##*/} holds no $part; it has moved, see $package"
done
patch -s -p1 -d "$new" <"$patch" ||
	die "${patch#"$DUALPI2_ROOT"/} does not fit ${deb##*/}; bring it up to date"
{
	basename "$deb"
	cksum <"$patch"
} >"$new/unpacked"
rm -rf "$tree" "$download"
mv "$new" "$tree"
echo "$tree"
