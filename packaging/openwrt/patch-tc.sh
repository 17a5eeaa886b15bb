#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# patch-tc.sh - give OpenWrt's tc our dualpi2 front end: the patch that iproute2.sh emits for the
# release of iproute2 that OpenWrt builds goes among the patches of its package. A plugin cannot do it:
# tc-tiny loads none, and tc-full and tc-bpf do not export what a plugin calls. Run it again after an
# update of OpenWrt.
#
# usage: patch-tc.sh OPENWRT [TREE]
#          OPENWRT  OpenWrt's source tree
#          TREE     an unpacked source of the same iproute2; default: OPENWRT/dl has the archive, which
#                   "make package/iproute2/download" fetches

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$(realpath "$0")")/../../scripts/common.sh"

if [ $# -lt 1 ] || [ $# -gt 2 ]; then die "usage: patch-tc.sh OPENWRT [TREE]"; fi
openwrt=$1
package=$openwrt/package/network/utils/iproute2
name=900-dualpi2.patch
[ -e "$package/Makefile" ] || die "$openwrt has no package/network/utils/iproute2; name OpenWrt's source tree"
version=$(sed -n 's/^PKG_VERSION:=[[:space:]]*\([0-9.]*\)$/\1/p' "$package/Makefile")
[ -n "$version" ] || die "$package/Makefile names no PKG_VERSION"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -eq 2 ]; then
	tree=$2
else
	archive=$(find "$openwrt/dl/" -maxdepth 1 -name "iproute2-$version.tar.*" 2>/dev/null | sort | tail -n 1)
	[ -n "$archive" ] ||
		die "$openwrt/dl has no iproute2-$version.tar.*; run: make -C $openwrt package/iproute2/download"
	tar -x -f "$archive" -C "$work"
	tree=$work/iproute2-$version
fi
[ -f "$tree/tc/tc_util.h" ] || die "$tree is not a source tree of iproute2"

# Ours comes after OpenWrt's own patches.
mkdir "$work/iproute2-$version.patched" "$work/out"
cp -R "$tree/." "$work/iproute2-$version.patched"
for own in "$package"/patches/*.patch; do
	if [ ! -e "$own" ] || [ "${own##*/}" = "$name" ]; then continue; fi
	patch -d "$work/iproute2-$version.patched" -p1 -s <"$own" >&2 ||
		die "${own##*/} does not apply to $tree; name an unpacked and unpatched source of iproute2 $version"
done
"$DUALPI2_ROOT/scripts/dist/iproute2.sh" --tree "$work/iproute2-$version.patched" "$work/out" >"$work/patches"
patch=$(cat "$work/patches")
mkdir -p "$package/patches"
install -m 644 "$patch" "$package/patches/$name"
echo "$package/patches/$name"
