#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tdc.sh - run the tc-testing cases, ours and the kernel's, in a virtual machine: KTAP on stdout.
# What it needs it makes or fetches first: the module, our tc plugin, a stock tc (tc.sh), and the
# kernel's tc-testing tree, which it takes out of Debian's linux-source package, 160 MB that are
# downloaded once and not kept; nothing else of the kernel is unpacked.
#
# usage: tdc.sh [ARGUMENT...]      arguments for selftests/tdc/test_tdc.py: --list, -k SUBSTRING
#        tdc.sh --fetch            only make the tc-testing tree available, and print its path
#        tdc.sh --fetch-again      the same with a new download
#
# DUALPI2_KERNEL is the kernel to boot (6.1), DUALPI2_TREE the Debian tree (root.sh). DUALPI2_MODULE, DUALPI2_TC_STOCK and TC_LIB_DIR name what
# has been built already.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

suite=trixie-backports
package=linux-source-7.2
subtree=tools/testing/selftests/tc-testing
tree=$DUALPI2_CACHE/tc-testing

unpack() ( # PACKAGE-FILE DIR
	dpkg-deb --fsys-tarfile "$1" |
		tar -x -O --wildcards "./usr/src/$package.tar.*" |
		xz -dc |
		tar -x -C "$2" --strip-components=5 --wildcards "linux-source-*/$subtree"
)

# The mark is written last, so that an interrupted run is begun anew; what it had downloaded is
# taken up by apt.
fetch() (
	again=${1-}
	mkdir -p "$DUALPI2_CACHE"
	exec 7>"$DUALPI2_CACHE/tc-testing.lock"
	flock 7
	if [ -z "$again" ] && [ -s "$tree/unpacked" ]; then
		return
	fi

	for tool in dpkg-deb xz tar; do
		command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
	done
	new=$tree.new download=$tree.download
	rm -rf "$new"
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new" "$download"
	free_kb=$(df --output=avail -k "$DUALPI2_CACHE" | tail -n 1)
	[ "$free_kb" -ge 300000 ] ||
		die "only $((free_kb / 1024)) MB free in $DUALPI2_CACHE; the download needs 300 MB for a while, make room and run again"

	say "fetching $package (160 MB, once)"
	"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$download" "$suite" download "$package" 7>&- ||
		die "cannot fetch $package from $suite; check the network and run again"
	deb=$(find "$download" -name "${package}_*.deb" -size +0 | sort -V | tail -n 1)
	[ -n "$deb" ] || die "the download of $package left no package in $download; run again"

	say "unpacking $subtree"
	unpack "$deb" "$new" ||
		die "cannot unpack $subtree from $deb; the package may be damaged or laid out anew, remove it and run again"
	if [ ! -x "$new/tdc.py" ] || [ ! -d "$new/tc-tests" ]; then
		die "$subtree of ${deb##*/} holds no tdc.py and tc-tests; the suite has moved, see $package"
	fi

	basename "$deb" >"$new/unpacked"
	rm -rf "$tree" "$download"
	mv "$new" "$tree"
	say "$subtree of ${deb##*/} is in $tree"
)

case ${1-} in
--fetch | --fetch-again)
	again=${1#--fetch}
	fetch "$again"
	echo "$tree"
	exit
	;;
esac

# Without them their cases are skipped, which the results say.
"$DUALPI2_ROOT/scripts/tdc.sh" --fetch >/dev/null || say "the kernel's own cases will be skipped"
DUALPI2_TC_STOCK=${DUALPI2_TC_STOCK:-$("$DUALPI2_ROOT/scripts/tc.sh")} ||
	say "the cases with a stock tc will be skipped"

kernel=${DUALPI2_KERNEL:-6.1}
if [ -z "${DUALPI2_MODULE-}" ]; then
	DUALPI2_MODULE=$("$DUALPI2_ROOT/scripts/build-for.sh" "$kernel" "$DUALPI2_ROOT/build/$kernel")
fi
if [ -z "${TC_LIB_DIR-}" ]; then
	make --no-print-directory -C "$DUALPI2_ROOT" plugin >&2
	TC_LIB_DIR=$DUALPI2_ROOT/build/tc
fi
export DUALPI2_MODULE DUALPI2_TC_STOCK
# The library of the tests wants it, and the machine has no compiler.
make --no-print-directory -C "$DUALPI2_ROOT" build/net/traffic >&2

options=(--virtual-time --kernel "$kernel" --root "${DUALPI2_TREE:-/}")
for path in "$tree" "$DUALPI2_TC_STOCK"; do
	[ ! -e "$path" ] || options+=(--preload "$path")
done
cd "$DUALPI2_ROOT"
exec scripts/run-vm.sh "${options[@]}" -- env TC_LIB_DIR="$TC_LIB_DIR" \
	"$DUALPI2_CACHE/venv/bin/python" selftests/tdc/test_tdc.py "$@"
