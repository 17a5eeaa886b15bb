#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# udp-prague.sh - make udp_prague available in the cache directory, print the directory of its two
# programs, udp_prague_sender and udp_prague_receiver: an L4S sender over UDP that is not of this
# project and needs no kernel module. cargo builds the pinned version with its
# own Cargo.lock. Without a cargo that is new enough on this machine, the build runs in a tree of the
# newest release (root.sh) with that release's cargo. The programs are linked statically, so that
# they run in the userland of every release that the tests boot.
#
# usage: udp-prague.sh [--refresh] [DIR]  --refresh builds it again; DIR: copy the programs there and print DIR

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

version=0.2.2
# It calls slice::as_chunks, which Rust has from this version on.
rust_minor=88
programs=(udp_prague_sender udp_prague_receiver)

refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
if [ $# -gt 1 ] || [[ ${1-} == -* ]]; then
	die "invalid arguments '$*'; usage: udp-prague.sh [--refresh] [DIR]"
fi

dir=$DUALPI2_CACHE/udp-prague/$version
# Raise the number when the way to build changes.
recipe="$version recipe 1"
mkdir -p "${dir%/*}"
exec 7>"$dir.lock"
flock 7
# deliver DIR: the programs in DIR, or in the cache directory
deliver() {
	if [ -n "$1" ]; then
		mkdir -p "$1"
		cp -p "${programs[@]/#/$dir/}" "$1"
	fi
	echo "${1:-$dir}"
}
if [ -z "$refresh" ] && [ "$(cat "$dir/recipe" 2>/dev/null)" = "$recipe" ]; then
	deliver "${1-}"
	exit 0
fi

# Does this machine have a Rust that is new enough?
has_rust() {
	local minor
	command -v cargo >/dev/null && minor=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
	[ "${minor:-0}" -ge "$rust_minor" ]
}

work=$dir.build
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
log=$dir.log
args=(install udp_prague --version "=$version" --locked --root "$work" --target-dir "$work/target" --force)
if has_rust; then
	say "building udp_prague $version with $(rustc --version)"
	build() { RUSTFLAGS='-C target-feature=+crt-static' cargo "${args[@]}" </dev/null 7>&- 2>&1 | tee "$log" >&2; }
else
	newest=$(releases | tail -n 1)
	[ "$(id -u)" = 0 ] || die "no Rust 1.$rust_minor or later, and a Debian tree needs root; install one with rustup"
	root=$("$DUALPI2_ROOT/scripts/root.sh" "$newest" build 7>&-)
	say "building udp_prague $version with the cargo of $newest"
	cat >"$work/build" <<-'END'
		set -eu
		apt-get -q -y -o Acquire::Retries=3 update
		apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends cargo ca-certificates
		RUSTFLAGS='-C target-feature=+crt-static' HOME=/tmp cargo "$@"
	END
	build() { "$DUALPI2_ROOT/scripts/in-root.sh" "$root" sh "$work/build" "${args[@]}" </dev/null 7>&- 2>&1 | tee "$log" >&2; }
fi
retry 3 build || die "cannot build udp_prague; see the messages above, or install Rust 1.$rust_minor or later (https://rustup.rs) and run again"
mkdir -p "$dir"
for program in "${programs[@]}"; do
	! ldd "$work/bin/$program" 2>&1 | grep '=>' >/dev/null || die "$program is not linked statically; see $log"
	install -m 755 "$work/bin/$program" "$dir/$program.new"
	mv "$dir/$program.new" "$dir/$program"
done
echo "$recipe" >"$dir/recipe"
deliver "${1-}"
