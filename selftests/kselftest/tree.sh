#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tree.sh - lay out the part of a kernel's source tree that runs net/dualpi2, in build/kselftest, with net/dualpi2 and the
# tc-testing cases of this repository in their places, and print its path. The kernel's own files come from Debian's
# linux-source package (160 MB, once) and are kept in the cache directory.
#
# usage: tree.sh KERNEL      6.12 or 7.2

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"

[ $# -eq 1 ] || die "usage: tree.sh KERNEL"
kernel=$1
suite=$(kernels | awk -v kernel="$kernel" '$1 == kernel { print $2 }')
[ -n "$suite" ] || die "unknown kernel '$kernel'; known are $(kernels | cut -d' ' -f1 | paste -sd' ')"
package=linux-source-$kernel
parts=$DUALPI2_CACHE/kselftest-tree-$kernel
tree=$DUALPI2_ROOT/build/kselftest/tree-$kernel

fetch() {
	local new=$parts.new deb part
	local for_headers=(Makefile Kbuild Kconfig scripts include usr tools/include tools/build
		arch/x86/include arch/x86/entry/syscalls 'arch/x86/Makefile*' arch/x86/tools)
	local used=(tools/scripts tools/net/ynl Documentation/netlink/specs
		tools/testing/selftests/{Makefile,'*.mk','*.h','*.sh',kselftest,net/lib,net/lib.sh,tc-testing})
	need dpkg-deb xz tar make
	need_mb 1500 "$DUALPI2_CACHE" "unpacking the kernel's source"
	rm -rf "$new"
	mkdir -p "$new/deb" "$new/all" "$new/kept"
	say "fetching $package (160 MB, once)"
	"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$new/deb" "$suite" download "$package" 8>&- ||
		die "cannot fetch $package from $suite; check the network and run again"
	deb=$(find "$new/deb" -name "${package}_*.deb" -size +0)
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O --wildcards "./usr/src/$package.tar.*" | xz -dc -T0 |
		tar -x -C "$new/all" --strip-components=1 --wildcards --no-wildcards-match-slash \
			"${for_headers[@]/#/$package/}" "${used[@]/#/$package/}" ||
		die "cannot unpack ${deb##*/}; the package may be laid out differently now"
	make -s -C "$new/all" ARCH=x86 headers >"$parts.log" 2>&1 8>&- || die "make headers failed; see $parts.log"
	(cd "$new/all" && for part in scripts/subarch.include usr/include "${used[@]}"; do
		# shellcheck disable=SC2086 # patterns
		cp -Rp --parents $part "$new/kept"
	done)
	basename "$deb" >"$new/kept/unpacked"
	rm -rf "$parts"
	mv "$new/kept" "$parts"
	rm -rf "$new"
}

exec 8>"$parts.lock"
flock 8
if ! locked "$suite" "$package" | grep -w -F "$(head -n 1 "$parts/unpacked" 2>/dev/null || echo none)" >/dev/null &&
	! { [ -e "$parts/unpacked" ] && { is_unlocked "$suite" "$package" || [ -z "$(locked "$suite" "$package")" ]; }; }; then
	fetch
fi
flock -u 8
rm -rf "$tree"
mkdir -p "$DUALPI2_ROOT/build/kselftest"
cp -Rp "$parts" "$tree"
cp -Rp "$DUALPI2_ROOT/selftests/kselftest/net/dualpi2" "$tree/tools/testing/selftests/net"
cp -p "$DUALPI2_ROOT"/include/uapi/linux/dualpi2*.h "$tree/usr/include/linux"
cases=$tree/tools/testing/selftests/tc-testing/tc-tests/qdiscs
"$DUALPI2_ROOT/selftests/tdc/cases.py" "$cases/new" >&2
python3 - "$cases" <<'END'
import json
import os
import sys

folder = sys.argv[1]
cases = []
for name in ("dualpi2.json", "dualpi2-ext.json"):
    with open(os.path.join(folder, "new", name), encoding="utf-8") as file:
        cases += json.load(file)
with open(os.path.join(folder, "dualpi2.json"), "w", encoding="utf-8") as file:
    json.dump(cases, file, indent=4)
END
rm -r "$cases/new"
echo "$tree"
