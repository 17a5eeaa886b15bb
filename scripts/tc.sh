#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tc.sh - make a stock tc that has Linux's own dualpi2 front end available in the cache directory,
# print its path. It builds Debian's iproute2 source as it is and installs nothing. Our own front end
# is another one, see iproute2-patch/.
#
# usage: tc.sh [--refresh]                --refresh fetches and builds it again

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

suite=forky
version=7.2

refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# -eq 0 ] || die "unknown argument '$1'; usage: tc.sh [--refresh]"

tc=$DUALPI2_CACHE/tc/$version/tc
mkdir -p "${tc%/*}"
exec 7>"${tc%/*}.lock"
flock 7
if [ -z "$refresh" ] && [ -x "$tc" ]; then
	echo "$tc"
	exit 0
fi

for tool in make gcc bison flex pkg-config; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
done
pkg-config --exists libmnl || die "libmnl-dev is missing; run scripts/setup.sh"
work=${tc%/*}.build
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

say "fetching iproute2 from $suite"
"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work" "$suite" source iproute2 7>&- ||
	die "cannot fetch the source of iproute2 from $suite; check the network and run again"
tree=$(find "$work" -maxdepth 1 -type d -name 'iproute2-*' | sort -V | tail -n 1)
[ -n "$tree" ] || die "the source of iproute2 left no iproute2-* directory in $work; run again"
[[ ${tree##*/iproute2-} == "$version"* ]] ||
	say "$suite now has ${tree##*/}, not $version; building that"

say "building tc of ${tree##*/}"
log=$DUALPI2_CACHE/tc/$version.log
{
	cd "$tree"
	# Without libbpf, which no test needs here; only what tc is made of.
	LIBBPF_FORCE=off ./configure
	make -j"$(nproc)" SUBDIRS="lib tc"
} >"$log" 2>&1 </dev/null 7>&- || {
	tail -n 20 "$log" >&2
	die "cannot build tc; the whole output is in $log"
}
"$tree/tc/tc" -V >&2 || die "the tc that was built does not run; see $log"
install -m 755 "$tree/tc/tc" "$tc.new"
mv "$tc.new" "$tc"
echo "$tc"
