#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh - run every test and say how many passed.  This is "make check" and CI.
#
# usage: check.sh [SUITE...]     suites: style unit tc net tdc; none named: all
#
# The network suites run in virtual machines with Debian's stock kernel, in
# virtual time, two at once.  Logs stay in build/check.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

kernel=${DUALPI2_KERNEL:-6.1}
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(style unit tc net tdc)
wants() { [[ " ${suites[*]} " == *" $1 "* ]]; }

cd "$DUALPI2_ROOT"
scripts/setup.sh
logs=$DUALPI2_ROOT/build/check
mkdir -p "$logs"
results=()

# suite NAME COMMAND...: run it, keep its KTAP, remember how it ended.
suite() {
	local name=$1 code=0 began=$SECONDS
	shift
	say "$name: begins"
	"$@" >"$logs/$name.log" 2>"$logs/$name.err" || code=$?
	echo "$code" >"$logs/$name.code"
	say "$name: ended with code $code after $((SECONDS - began)) s"
	[ "$code" -eq 0 ] || tail -n 15 "$logs/$name.err" >&2
}

in_vm() {
	scripts/run-vm.sh --virtual-time --kernel "$kernel" --timeout 1500 --preload "$DUALPI2_TC_STOCK" -- \
		env TC_LIB_DIR="$TC_LIB_DIR" "$@"
}

# Lines of the algorithm all reached by the unit tests, branches 95 % at least.
coverage() {
	make --no-print-directory -C selftests/unit coverage | awk '
		{ print "# " $0 }
		/^Lines executed:/ { split($2, part, /[:%]/); lines = part[2] }
		/^Branches executed:/ { split($2, part, /[:%]/); branches = part[2] }
		END {
			print "1..2"
			print (lines == 100 ? "" : "not ") "ok 1 - algorithm_lines_all_reached"
			print (branches >= 95 ? "" : "not ") "ok 2 - algorithm_branches_reached"
			exit !(lines == 100 && branches >= 95)
		}'
}

# The patch for iproute2 that is emitted applies, and tc with it builds and knows our options.
iproute2() {
	local help
	echo "1..2"
	scripts/iproute2.sh build/iproute2 >&2 || { echo "not ok 1 - iproute2_patch_builds"; return 1; }
	echo "ok 1 - iproute2_patch_builds"
	help=$(find build/iproute2 -name 'tc-*' -exec env TC_LIB_DIR=/nonexistent {} qdisc add dev lo root dualpi2 help \; 2>&1) || true
	[[ $help == *no_l4s* ]] || { echo "not ok 2 - iproute2_patched_tc_has_our_options"; return 1; }
	echo "ok 2 - iproute2_patched_tc_has_our_options"
}

net_suite() {
	suite "$1" in_vm "$DUALPI2_CACHE/venv/bin/python" "selftests/net/test_$1.py"
}

rm -f "$logs"/*.code
if wants style; then suite style scripts/style.sh; fi
if wants unit; then
	suite unit make --no-print-directory -C selftests/unit check
	suite coverage coverage
fi
if wants tc || wants net || wants tdc; then make --no-print-directory plugin >&2; fi
if wants tc; then
	suite tc iproute2-patch/tests/run.sh
	suite iproute2 iproute2
fi
if wants net || wants tdc; then
	eval "$(scripts/kernel.sh "$kernel")"
	scripts/build-module.sh "$KDIR" "build/$KREL" W=1 KCFLAGS=-Werror >&2
	# Built here: the machines have no compiler.
	mkdir -p build/net
	cc -std=gnu11 -O2 -Wall -Wextra -o build/net/traffic selftests/net/traffic.c
	DUALPI2_MODULE=$DUALPI2_ROOT/build/$KREL/sch_dualpi2.ko
	DUALPI2_TC_STOCK=$(scripts/tc.sh)
	TC_LIB_DIR=$DUALPI2_ROOT/build/tc
	export DUALPI2_MODULE DUALPI2_TC_STOCK TC_LIB_DIR
fi

# Two machines at once, the suites that take longest first.
vm_suites=()
if wants tdc; then vm_suites+=(tdc); fi
if wants net; then
	mapfile -t programs < <(ls -S selftests/net/test_*.py)
	for program in "${programs[@]}"; do
		name=${program##*/test_}
		vm_suites+=("${name%.py}")
	done
fi
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for name in "${vm_suites[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
	if [ "$name" = tdc ]; then suite tdc scripts/tdc.sh & else net_suite "$name" & fi
done
wait
trap - EXIT

for code in "$logs"/*.code; do
	name=$(basename "$code" .code)
	results+=("$name=$logs/$name.log=$(cat "$code")")
done
python3 scripts/ktap.py "${results[@]}"
