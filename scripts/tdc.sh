#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tdc.sh - run the tc-testing cases, ours and the kernel's, in a virtual machine: KTAP on stdout.
# What it needs it makes or fetches first: the module, our tc plugin, a stock tc (tc.sh), and the
# kernel's tc-testing tree (linux-source.sh).
#
# usage: tdc.sh [ARGUMENT...]      arguments for selftests/tdc/test_tdc.py: --list, -k SUBSTRING
#
# DUALPI2_KERNEL is the kernel to boot (6.1), DUALPI2_TREE the Debian tree (root.sh). DUALPI2_MODULE,
# DUALPI2_TC_STOCK and TC_LIB_DIR name what has been built already.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

# Without them their cases are skipped, which the results say.
tree=$("$DUALPI2_ROOT/scripts/linux-source.sh")/tools/testing/selftests/tc-testing ||
	say "the kernel's own cases will be skipped"
DUALPI2_TC_STOCK=${DUALPI2_TC_STOCK:-$("$DUALPI2_ROOT/scripts/tc.sh")} ||
	say "the cases with a stock tc will be skipped"

kernel=${DUALPI2_KERNEL:-6.1}
if [ -z "${DUALPI2_MODULE-}" ]; then
	DUALPI2_MODULE=$("$DUALPI2_ROOT/scripts/build-for.sh" "$kernel" "$DUALPI2_ROOT/build/$kernel")
fi
if [ -z "${TC_LIB_DIR-}" ]; then
	make --no-print-directory -C "$DUALPI2_ROOT" plugin >&2
	TC_LIB_DIR=$DUALPI2_ROOT/build/tc
fi
export DUALPI2_MODULE DUALPI2_TC_STOCK DUALPI2_TC_TESTING=$tree
# The library of the tests wants it, and the machine has no compiler.
make --no-print-directory -C "$DUALPI2_ROOT" build/net/traffic >&2

options=(--virtual-time --timeout 1500 --memory 2G --kernel "$kernel" --root "${DUALPI2_TREE:-/}")
for path in "$tree" "$DUALPI2_TC_STOCK"; do
	[ ! -e "$path" ] || options+=(--preload "$path")
done
cd "$DUALPI2_ROOT"
exec scripts/run-vm.sh "${options[@]}" -- env TC_LIB_DIR="$TC_LIB_DIR" \
	"$DUALPI2_VENV/bin/python" selftests/tdc/test_tdc.py "$@"
