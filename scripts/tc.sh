#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tc.sh - make a stock tc that has Linux's own dualpi2 front end available in the cache directory,
# print its path. It builds Debian's iproute2 source as it is and installs nothing. Our own front end
# is another one, see iproute2-patch/, and this tc cannot load it: it is built without plugins. It is
# built in a tree of the oldest release (root.sh), for glibc binds a program to its own age and later:
# so it runs in the userland of every release that the tests boot.
#
# usage: tc.sh [--refresh]                --refresh fetches and builds it again

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

suite=$(releases | tail -n 1)
lock=$(locked "$suite" src:iproute2)
version=$(awk 'NR == 1 { sub(/-.*/, "", $3); print $3 }' <<<"$lock")
[ -n "$version" ] || die "packages.lock has no src:iproute2 of $suite; run scripts/lock.sh"
oldest=$(releases | head -n 1)

refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# -eq 0 ] || die "unknown argument '$1'; usage: tc.sh [--refresh]"

# A number of its own, to be raised when the way in which tc is built changes.
dir=$DUALPI2_CACHE/tc/$version
tc=$dir/tc
recipe="$lock recipe 1"
mkdir -p "$dir"
exec 7>"$dir.lock"
flock 7
if [ -z "$refresh" ] && [ -x "$tc" ] && [ "$(cat "$dir/recipe" 2>/dev/null)" = "$recipe" ]; then
	echo "$tc"
	exit 0
fi

root=$("$DUALPI2_ROOT/scripts/root.sh" "$oldest" build 7>&-)
work=$dir.build
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

say "fetching iproute2 from $suite"
"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work" "$suite" source iproute2 7>&- ||
	die "cannot fetch the source of iproute2 from $suite; check the network and run again"
tree=$(find "$work" -maxdepth 1 -type d -name 'iproute2-*' | sort -V | tail -n 1)
[ -n "$tree" ] || die "the source of iproute2 left no iproute2-* directory in $work; run again"

say "building tc of ${tree##*/} with the tools of $oldest"
log=$dir.log
cat >"$work/build" <<-'END'
	set -eu
	cd "$1"
	apt_get() { apt-get -q -y -o Acquire::Retries=3 "$@"; }
	apt_get update
	apt_get install --no-install-recommends bison flex libmnl-dev pkg-config
	# Without libbpf, which no test needs here; only what tc is made of.
	LIBBPF_FORCE=off ./configure
	make -j"$(nproc)" SUBDIRS="lib tc" SHARED_LIBS=n
END
build() { "$DUALPI2_ROOT/scripts/in-root.sh" "$root" sh "$work/build" "$tree" </dev/null 7>&- 2>&1 | tee "$log" >&2; }
retry 3 build || die "cannot build tc; see the messages above, check the network and run again"
"$tree/tc/tc" -V >&2 || die "the tc that was built does not run; see $log"
# Silence would be a test of our own front end where the stock one is meant.
if LC_ALL=C grep -a -q -w dlopen "$tree/tc/tc"; then
	die "the tc that was built can load plugins; iproute2 no longer knows SHARED_LIBS=n, see $log"
fi
install -m 755 "$tree/tc/tc" "$tc.new"
mv "$tc.new" "$tc"
echo "$recipe" >"$dir/recipe"
echo "$tc"
