#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# flent.sh - follow docs/guides/flent.md: flent, netperf, irtt and iperf3 against a dualpi2, on the debug kernel in virtual
# time, in a Debian root that has them. Leaves the plots and the data file in build/flent.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../scripts/common.sh"

cd "$DUALPI2_ROOT"
[ -e build/debug/sch_dualpi2.ko ] || scripts/build-traced.sh >&2
root=$(scripts/root.sh trixie flent)
rm -rf build/flent
mkdir -p build/flent
export DUALPI2_MODULE=$DUALPI2_ROOT/build/debug/sch_dualpi2.ko DUALPI2_PLOTS=$DUALPI2_ROOT/build/flent
export DUALPI2_TRACE_PC=$DUALPI2_ROOT/build/debug/trace_pc/dualpi2_trace_pc.ko
exec scripts/run-vm.sh --kernel debug --root "$root" --memory 2G -- \
	env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 -B selftests/tools/test_guides.py -k guide_flent
