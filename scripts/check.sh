#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh - run every test and say how many passed.  This is "make check" and CI.
#
# usage: check.sh [SUITE...]     suites: style unit tc net tdc; none named: all
#
# KERNELS: the stock Debian kernels to run the net and tdc suites on, each with the
# programs and the tc of its own Debian release, in virtual machines, in virtual time,
# two at once. Default "6.1 7.2"; "all" is 5.10 6.1 6.12 7.2. Logs stay in build/check.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

kernels=${KERNELS:-6.1 7.2}
[ "$kernels" != all ] || kernels='5.10 6.1 6.12 7.2'
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(style unit tc net tdc)
for name in "${suites[@]}"; do
	case $name in
	style | unit | tc | net | tdc) ;;
	*) die "unknown suite '$name'; suites are style unit tc net tdc" ;;
	esac
done
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

# on_kernel X.Y SUITE: in a machine with that kernel and the programs of its release.
on_kernel() {
	local kernel=$1 name=$2
	export DUALPI2_KERNEL=$kernel DUALPI2_MODULE=$DUALPI2_ROOT/build/$kernel/sch_dualpi2.ko
	DUALPI2_TREE=$(tree "$kernel") || return
	export DUALPI2_TREE
	if [ "$name" = tdc ]; then
		scripts/tdc.sh
	else
		scripts/run-vm.sh --virtual-time --kernel "$kernel" --root "$DUALPI2_TREE" --timeout 1500 \
			--preload "$DUALPI2_TC_STOCK" -- \
			env TC_LIB_DIR="$TC_LIB_DIR" "$DUALPI2_CACHE/venv/bin/python" "selftests/net/test_$name.py"
	fi
}

tree() ( # X.Y: where the programs of its Debian release are
	assignments=$(scripts/kernel.sh "$1")
	eval "$assignments"
	scripts/root.sh "$KDEBIAN" test
)

# What the machines run, built before the first starts: they have no compiler.
prepare() {
	local kernel
	for kernel in $kernels; do
		scripts/build-for.sh "$kernel" "build/$kernel" W=1 KCFLAGS=-Werror
		tree "$kernel"
	done
	mkdir -p build/net
	cc -std=gnu11 -O2 -Wall -Wextra -static -o build/net/traffic selftests/net/traffic.c
} >&2

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
if [ ${#vm_suites[@]} -gt 0 ]; then
	prepare
	DUALPI2_TC_STOCK=$(scripts/tc.sh)
	TC_LIB_DIR=$DUALPI2_ROOT/build/tc
	export DUALPI2_TC_STOCK TC_LIB_DIR
fi
for kernel in $kernels; do
	for name in "${vm_suites[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
		suite "$kernel-$name" on_kernel "$kernel" "$name" &
	done
done
wait
trap - EXIT

for code in "$logs"/*.code; do
	name=$(basename "$code" .code)
	results+=("$name=$logs/$name.log=$(cat "$code")")
done
python3 scripts/ktap.py "${results[@]}"
