#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build-traced.sh - build the module for the debug kernel so that it takes each decision of the fast path by the slow
# path, too (DUALPI2_DEBUG), and says which of its basic blocks have run, and
# the module that keeps the map (selftests/fuzz/trace_pc), in build/debug. selftests/fuzz/coverage.py reads it.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

out=$DUALPI2_ROOT/build/debug
assignments=$("$DUALPI2_ROOT/scripts/debug-kernel.sh" debug)
eval "$assignments"
mkdir -p "$out/trace_pc"
cp --update "$DUALPI2_ROOT"/selftests/fuzz/trace_pc/* "$out/trace_pc"
make --no-print-directory -C "$KDIR" ARCH=um CC="$KCC" M="$out/trace_pc" modules
# Without tables of jumps coverage.py can follow them all.
"$DUALPI2_ROOT/scripts/build-module.sh" "$KDIR" "$out" W=1 'KCFLAGS=-Werror -g -DDUALPI2_DEBUG' \
	'CFLAGS_sch_dualpi2.o=-fsanitize-coverage=trace-pc -fno-jump-tables' \
	KBUILD_EXTRA_SYMBOLS="$out/trace_pc/Module.symvers"
