#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build-module.sh - build sch_dualpi2.ko, or tcp_prague.ko, or the companions in
# extra, in a directory of their own, so that the source tree stays clean and one
# tree serves several kernels.
#
# usage: build-module.sh [--prague|--extra] KDIR OUTDIR [MAKE-ARGUMENTS]

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

sources=(Kbuild sch_dualpi2.c include)
from=.
case ${1-} in
--prague)
	from=extra/prague sources=(Kbuild tcp_prague.c prague.h)
	shift
	;;
--extra)
	from=extra sources=(Kbuild)
	shift
	;;
esac
[ $# -ge 2 ] || die "usage: build-module.sh [--prague|--extra] KDIR OUTDIR [MAKE-ARGUMENTS]"
kdir=$1 out=$2
shift 2
[ -e "$kdir/Makefile" ] ||
	die "no kernel headers in $kdir; install the package linux-headers for your kernel, or say KDIR=DIR"
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$DUALPI2_ROOT/$from"
cp --update --recursive --parents "${sources[@]}" "$out"
[ "$from" != extra ] || cp --update --recursive ./*/sch_*.c ./*/*.h ../include "$out"
[ "$from" = . ] || version | cmp -s - "$out/VERSION" || version >"$out/VERSION"
# A build directory of user-mode Linux does not say for which architecture it is, nor with which compiler.
! grep -q -s -x CONFIG_UML=y "$kdir/.config" || set -- ARCH=um CC="$(sed -n 's/^KCC=//p' "$kdir/env")" "$@"
make --no-print-directory -C "$kdir" M="$out" "$@" modules
