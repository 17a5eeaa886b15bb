#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lock.sh - rewrite packages.lock from what the mirror has today: the packages that other scripts fetch by name,
# with their checksums. debian-archive.sh reads it.
#
# usage: lock.sh

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

[ $# -eq 0 ] || die "unknown argument '$1'; usage: lock.sh"
archive() { "$DUALPI2_ROOT/scripts/debian-archive.sh" "$@"; }
lock=$DUALPI2_ROOT/scripts/packages.lock

# lock_package SUITE NAME [VERSION]: the newest version, and the newest that is not in the security archive, which not
# every mirror has; or VERSION alone, if the suite has it.
lock_package() {
	local version known
	known=$(archive "$1" versions "$2")
	[ -n "$known" ] || die "$1 has no $2"
	if [ -n "${3-}" ] && grep -q -F -e "$3 " <<<"$known"; then
		archive "$1" lock "$2" "$3"
		return
	fi
	while read -r version; do
		archive "$1" lock "$2" "$version"
	done < <(awk 'NR == 1 { print $1 } $2 !~ /-security/ { print $1; exit }' <<<"$known" | uniq)
}

# lock_kernel SUITE X.Y: the newest release, and the newest that is not in the security archive.
lock_kernel() {
	local names release packages package version
	names=$(archive "$1" names "^linux-image-${2//./\\.}(\.[0-9]+)*(\+[a-z0-9.~]+)*(-[0-9]+)?-amd64$" | sort -rV)
	[ -n "$names" ] || die "$1 has no kernel $2"
	while read -r release; do
		say "$release of $1"
		version=$(archive "$1" versions "linux-image-$release" | head -n 1)
		packages=$("$DUALPI2_ROOT/scripts/kernel.sh" --packages "$1/$release")
		for package in $packages; do lock_package "$1" "$package" "${version%% *}"; done
	done < <(for name in $names; do
		echo "${name#linux-image-} $(archive "$1" versions "$name" | head -n 1)"
	done | awk 'NR == 1 { print $1 } $3 !~ /-security/ { print $1; exit }' | uniq)
}

{
	echo "# Written by scripts/lock.sh. SUITE NAME VERSION FILE SHA256; of several versions the first that the mirror has counts."
	for suite in $(releases); do
		archive --refresh "$suite" names "^iproute2$" >/dev/null
		lock_package "$suite" src:iproute2
	done
	lock_package trixie linux-source-6.12
	lock_package forky linux-source-7.2
	while read -r kernel suite; do lock_kernel "$suite" "$kernel" </dev/null; done < <(kernels stock)
} >"$lock.new"
mv "$lock.new" "$lock"
