#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# linux-source.sh - fetch Debian's linux-source package, 160 MB, unpack it in the cache directory, once, and print
# the path.
#
# usage: linux-source.sh [--refresh] [KERNEL]
#        without KERNEL  what the tests use of Linux 7.2 (600 MB), with the patches of selftests/debug: the source of
#                        debug-kernel.sh, the kernel's own tc-testing cases (tdc.sh), checkpatch.pl and coccinelle's
#                        scripts (lint.sh), and what kernel-patches changes
#        KERNEL          6.12 or 7.2, unpatched and for all architectures (1.2 GB), for kernel-patches

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

refresh='' kernel=''
for argument; do
	case $argument in
	--refresh) refresh=1 ;;
	[0-9]*) kernel=$argument ;;
	*) die "unknown argument '$argument'; usage: linux-source.sh [--refresh] [KERNEL]" ;;
	esac
done
# Its revision is in packages.lock, like that of the stock kernel, which is tested too.
suite=$(kernels stock | awk -v kernel="${kernel:-7.2}" '$1 == kernel { print $2 }')
[ -n "$suite" ] || die "no Debian release for Linux '$kernel'; choose one of: $(kernels stock | cut -d' ' -f1 | xargs)"
package=linux-source-${kernel:-7.2}
tree=$DUALPI2_CACHE/$package${kernel:+-full}
mkdir -p "$DUALPI2_CACHE"
exec 7>"$tree.lock"
flock 7
# The mark in it says of what it was made.
patches=()
[ -n "$kernel" ] || patches=("$DUALPI2_ROOT"/selftests/debug/*.patch)
if [ -z "$refresh" ] && [ -e "$tree/Documentation/netlink/specs" ] && grep -q -s -x -F "$(cat /dev/null "${patches[@]}" | cksum)" "$tree/unpacked" &&
	{ locked "$suite" "$package" | grep -w -F "$(head -n 1 "$tree/unpacked")" >/dev/null || is_unlocked "$suite" "$package"; }; then
	echo "$tree"
	exit 0
fi

need dpkg-deb xz tar patch
need_mb 3000 "$DUALPI2_CACHE" "unpacking the kernel's source"

# What no configuration of ours builds is two thirds of it.
unpack() { # PACKAGE-FILE DIR
	local dir not=('*/sound/*.[chS]')
	for dir in gpu media staging infiniband scsi net/ethernet net/wireless iio; do not+=("*/drivers/$dir/*.[chS]"); done
	[ -n "$kernel" ] ||
		not+=('*/Documentation/[a-mo-z]*/*' '*/arch/[a-tvwyz]*.[chS]' '*/boot/dts/*' '*/selftests/[a-su-z]*/*')
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
for part in Kconfig Documentation/netlink/specs scripts/checkpatch.pl scripts/coccinelle tools/testing/selftests/tc-testing/tdc.py; do
	[ -e "$new/$part" ] || die "${deb##*/} holds no $part; it has moved, see $package"
done
for patch in "${patches[@]}"; do
	patch -s -p1 -d "$new" <"$patch" ||
		die "${patch#"$DUALPI2_ROOT"/} does not fit ${deb##*/}; bring it up to date"
done
{
	basename "$deb"
	cat /dev/null "${patches[@]}" | cksum
} >"$new/unpacked"
rm -rf "$tree" "$download"
mv "$new" "$tree"
echo "$tree"
