#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fetch.sh - fetch what tests install or build in addition to kernels and Debian trees, so that they need no network.
# What is in the cache directory already is not fetched again.
#
# usage: fetch.sh iproute2             its sources, of all releases
#        fetch.sh matrix               kernel headers and tools of all that "matrix.sh newest" builds for
#        fetch.sh packages[:RELEASE]   what test_packages.sh installs; default: on all releases
#        fetch.sh systemd              what test_systemd.sh installs
#        fetch.sh check                fail if DUALPI2_LOCKED=1 and something in the cache is not in packages.lock

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: fetch.sh iproute2|matrix|packages[:RELEASE]|systemd|check'
[ $# -eq 1 ] || die "one argument is needed; $usage"
cd "$DUALPI2_ROOT"
case $1 in
iproute2) scripts/dist/iproute2.sh --fetch ;;
matrix) scripts/matrix.sh --fetch newest ;;
packages) selftests/packages/test_packages.sh --fetch ;;
packages:*) selftests/packages/test_packages.sh --fetch "${1#*:}" ;;
systemd) selftests/packages/test_systemd.sh fetch ;;
check)
	[ -s "$DUALPI2_CACHE/unlocked" ] || exit 0
	say "warning: not in packages.lock: $(paste -sd, "$DUALPI2_CACHE/unlocked")"
	[ "${DUALPI2_LOCKED-}" != 1 ] || die "run scripts/lock.sh, or remove what is named, and $DUALPI2_CACHE/unlocked"
	;;
*) die "unknown argument '$1'; $usage" ;;
esac
