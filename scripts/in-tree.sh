#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# in-tree.sh - compile Linux' own dualpi2, which Debian's kernels leave out, for a stock kernel, from the source of that
# kernel in Debian's archive, and print the path of the module. It is made once for each kernel, in the cache directory.
#
# usage: in-tree.sh [--refresh] [--headers] KERNEL     KERNEL as for kernel.sh; 6.17 was the first one that has it
#          --headers  the kernel's headers are enough: do not fetch its image
#          --refresh  make it anew

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: in-tree.sh [--refresh] [--headers] KERNEL'
refresh='' parts=()
while [[ ${1-} == --* ]]; do
	case $1 in
	--refresh) refresh=1 ;;
	--headers) parts=(--headers) ;;
	*) die "unknown option '$1'; $usage" ;;
	esac
	shift
done
[ $# -eq 1 ] || die "one kernel is needed; $usage"
case $1 in
debug | plain) die "user-mode Linux has its own dualpi2 built along; use scripts/debug-kernel.sh $1" ;;
esac
assignments=$("$DUALPI2_ROOT/scripts/kernel.sh" "${parts[@]}" "$1")
eval "$assignments"
grep -q -s TCA_DUALPI2_LIMIT "${KDIR%/*}"/*/include/uapi/linux/pkt_sched.h ||
	die "Linux $KREL has no dualpi2 of its own; 6.17 was the first one"

module=$DUALPI2_CACHE/in-tree/$KREL/sch_dualpi2.ko
mkdir -p "${module%/*}"
exec 5>"${module%/*}/lock"
flock 5
if [ -z "$refresh" ] && [ -s "$module" ]; then
	echo "$module"
	exit 0
fi

# As in the names of Debian's packages.
series=$(cut -d. -f1,2 <<<"$KREL")
work=${module%/*}/work
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir "$work"
source=$DUALPI2_CACHE/linux-source-$series/net/sched/sch_dualpi2.c
if [ -e "$source" ]; then # linux-source.sh has been here
	cp "$source" "$work"
else
	suites=("$KDEBIAN" "$KDEBIAN-backports")
	[[ $1 != */* ]] || suites=("${1%%/*}")
	for suite in "${suites[@]}"; do
		say "fetching linux-source-$series from $suite (160 MB, once)"
		! "$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work" "$suite" download "linux-source-$series" 5>&- || break
	done
	deb=$(find "$work" -name "linux-source-${series}_*.deb" -size +0)
	[ -n "$deb" ] || die "cannot fetch linux-source-$series from ${suites[*]}; check the network and run again"
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O --wildcards './usr/src/*.tar.xz' |
		tar -x -J -C "$work" --wildcards --strip-components=3 '*/net/sched/sch_dualpi2.c' ||
		die "${deb##*/} holds no net/sched/sch_dualpi2.c; it has moved, see $series"
	rm "$deb"
fi
say "building the module of Linux itself for $KREL"
echo 'obj-m := sch_dualpi2.o' >"$work/Kbuild"
log=${module%/*}/log
root=$("$DUALPI2_ROOT/scripts/root.sh" "$KDEBIAN" build)
"$DUALPI2_ROOT/scripts/in-root.sh" --offline "$root" make -C "$KDIR" M="$work" modules >"$log" 2>&1 5>&- ||
	die "cannot build it; see $log"
strip -g -o "$module.new" "$work/sch_dualpi2.ko"
mv "$module.new" "$module"
echo "$module"
