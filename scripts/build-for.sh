#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build-for.sh - build sch_dualpi2, or TCP Prague, or the companions in extra, for a Debian kernel, with the tools of
# that kernel's own Debian release, and print its path (of extra: of the directory). Where this machine is that release
# and has the kernel's tools, it is built here, else in a tree made for it (root.sh). Without MAKE-ARGUMENTS a warning is an
# error, so that all who name one directory have the same build.
#
# usage: build-for.sh [--headers] [--prague|--extra] KERNEL OUTDIR [MAKE-ARGUMENTS]     KERNEL as for kernel.sh

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

parts=()
if [ "${1-}" = --headers ]; then
	parts=(--headers)
	shift
fi
which=() built=/sch_dualpi2.ko
case ${1-} in
--prague) which=("$1") built=/tcp_prague.ko ;;
--extra) which=("$1") built= ;;
esac
[ ${#which[@]} -eq 0 ] || shift
[ $# -ge 2 ] || die "usage: build-for.sh [--headers] [--prague|--extra] KERNEL OUTDIR [MAKE-ARGUMENTS]"
kernel=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- W=1 KCFLAGS=-Werror
assignments=$("$DUALPI2_ROOT/scripts/kernel.sh" "${parts[@]}" "$kernel")
eval "$assignments"
mkdir -p "$out"
out=$(realpath -e "$out")

# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
build=("$DUALPI2_ROOT/scripts/build-module.sh" "${which[@]}" "$KDIR" "$out" "$@")
# Headers that hold vmlinux make pahole describe the module's types (BTF).
if [ "$codename" = "$KDEBIAN" ] && command -v "$KCC" >/dev/null &&
	{ [ ! -e "$KDIR/vmlinux" ] || command -v pahole >/dev/null; }; then
	"${build[@]}" >&2
else
	case $out/ in
	"$DUALPI2_ROOT"/* | "$DUALPI2_CACHE"/*) ;;
	*) die "$out is in neither the repository nor the cache directory, which is all that the build sees" ;;
	esac
	root=$("$DUALPI2_ROOT/scripts/root.sh" "$KDEBIAN" build)
	"$DUALPI2_ROOT/scripts/in-root.sh" --offline "$root" "${build[@]}" >&2
fi
echo "$out$built"
