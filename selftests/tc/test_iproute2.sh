#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=debug,tc,source,iproute2 -- --newest
# suite: long needs=debug,tc,source,iproute2
#
# test_iproute2.sh - does the patch for each release of iproute2 apply, build without warnings, and
# give a tc that passes our tc-testing cases, the newest also the kernel's? All are tested in one
# virtual machine, each with our front end as it has it built in. KTAP on stdout.
#
# usage: test_iproute2.sh [--newest] [ARGUMENT...]
#          --newest   run the cases with the newest release's tc alone
#          ARGUMENT   for selftests/tdc/test_tdc.py: -k NAME

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

newest=''
if [ "${1-}" = --newest ]; then
	newest=1
	shift
fi
mapfile -t suites < <(releases)
outdir=$DUALPI2_ROOT/build/iproute2

plan "${#suites[@]}"
patched=()
for suite in "${suites[@]}"; do
	code=0
	name="iproute2_of_${suite}_takes_the_patch_and_builds_without_warnings"
	patch=$("$DUALPI2_ROOT/scripts/dist/iproute2.sh" --suite "$suite" "$outdir") || code=$?
	case $code in
	0)
		version=${patch##*-iproute2-}
		patched+=("$outdir/tc-${version%.patch}")
		result "$name" 0
		;;
	77) result "$name" 77 "the mirror lists its source but does not have it" ;;
	*) result "$name" 1 ;;
	esac
done
[ -z "$newest" ] || patched=("${patched[@]: -1}")
[ ${#patched[@]} -gt 0 ] || die "no tc was built; see the messages above"

"$DUALPI2_ROOT/scripts/build-traced.sh" >&2
# The machine has this machine's programs: these tcs are built for it, and need its libraries.
code=0
export DUALPI2_MODULE=$DUALPI2_ROOT/build/debug/sch_dualpi2.ko
export DUALPI2_TRACE_PC=$DUALPI2_ROOT/build/debug/trace_pc/dualpi2_trace_pc.ko
DUALPI2_TC_PATCHED="${patched[*]}" DUALPI2_KERNEL=debug DUALPI2_TREE=/ \
	"$DUALPI2_ROOT/scripts/tdc.sh" "$@" || code=$?
[ -z "$failed" ] || exit 1
exit "$code"
