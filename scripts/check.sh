#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh - run every test and say how many passed.  This is "make check" and CI.
#
# usage: check.sh [SUITE...]     suites: style lint unit bench tc net tdc fuzz operator top prague extra lab matrix
#                               packages; none named: all
#
# KERNELS: the kernels that the net, tdc, prague and extra suites run on: stock Debian kernels, each with the programs and
# the tc of its own Debian release, on which the packages are tried too; and debug, the kernel with sanitizers
# (debug-kernel.sh), which the fuzz, operator and top suites run on. Default "6.1 debug"; "all" is 5.10 6.1 6.12 7.2 debug.
# Suites run two at once, their machines in virtual time. Logs stay in build/check.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

kernels=${KERNELS:-6.1 debug}
[ "$kernels" != all ] || kernels='5.10 6.1 6.12 7.2 debug'
suites=("$@")
all=(style lint unit bench tc net tdc fuzz operator top prague extra lab matrix packages)
[ ${#suites[@]} -gt 0 ] || suites=("${all[@]}")
for name in "${suites[@]}"; do
	[[ " ${all[*]} " == *" $name "* ]] || die "unknown suite '$name'; suites are ${all[*]}"
done
for kernel in $kernels; do
	[[ " 5.10 6.1 6.12 7.2 debug " == *" $kernel "* ]] ||
		die "unknown kernel '$kernel' in KERNELS; kernels are 5.10 6.1 6.12 7.2 debug, or all"
done
[[ " ${suites[*]} " != *" fuzz "* || " $kernels " == *" debug "* ]] ||
	say "fuzz: only the command lines of tc, because KERNELS has no debug"
[[ " ${suites[*]} " != *" top "* || " $kernels " == *" debug "* ]] ||
	say "top: only without a kernel, because KERNELS has no debug"
[[ " ${suites[*]} " != *" operator "* || " $kernels " == *" debug "* ]] ||
	say "operator: only what needs no kernel with sanitizers, because KERNELS has no debug"
[[ " ${suites[*]} " != *" prague "* || " $kernels " == *" debug "* || " $kernels " == *" 7.2 "* ]] ||
	say "prague: only that it says what it lacks, because KERNELS has neither debug nor 7.2"
wants() { [[ " ${suites[*]} " == *" $1 "* ]]; }

cd "$DUALPI2_ROOT"
scripts/setup.sh
logs=$DUALPI2_ROOT/build/check
mkdir -p "$logs"
names=() results=()

# suite NAME COMMAND...: run it, keep its KTAP, remember how it ended.
suite() {
	local name=$1 code=0 began=$SECONDS
	shift
	say "$name: begins"
	"$@" >"$logs/$name.log" 2>"$logs/$name.err" || code=$?
	echo "$code" >"$logs/$name.code"
	say "$name: ended with code $code after $((SECONDS - began)) s"
	[ "$code" -eq 0 ] || { tail -n 15 "$logs/$name.err"; failures "$logs/$name.log"; } >&2
}

# failures LOG: tests that failed, with what they said.
failures() {
	awk '/^#/ { said = said $0 "\n" } /^not ok/ { printf "%s%s\n", said, $0 } /^(not )?ok/ { said = "" }' "$1" | tail -n 40
}

# Lines of the algorithm all reached by the unit tests, branches 95 % at least, in each of the six headers. What is
# not printed was not reached: a header without figures fails both.
coverage() {
	make --no-print-directory -C selftests/unit coverage | awk '
		BEGIN { least["Lines"] = least["Branches"] = 100 }
		{ print "# " $0 }
		/^(Lines|Branches) executed:/ {
			split($0, part, /[ :%]/)
			headers[part[1]]++
			if (part[3] + 0 < least[part[1]])
				least[part[1]] = part[3] + 0
		}
		END {
			lines = headers["Lines"] == 6 && least["Lines"] == 100
			branches = headers["Branches"] == 6 && least["Branches"] >= 95
			print "1..2"
			print (lines ? "" : "not ") "ok 1 - algorithm_lines_all_reached"
			print (branches ? "" : "not ") "ok 2 - algorithm_branches_reached"
			exit !(lines && branches)
		}'
}

# Sixty changes of the algorithm, drawn by the sources: a commit always gets the same ones. All are in "make torture".
mutate() {
	local code=0
	"$DUALPI2_CACHE/venv/bin/python" selftests/unit/mutate.py --jobs 1 --sample 60 |
		sed 's/^[^#]/# &/' || code=$?
	echo 1..1
	[ "$code" -eq 0 ] || printf 'not '
	echo "ok 1 - mutants_of_the_algorithm_killed"
	return "$code"
}

# begin NAME COMMAND...: a suite in the background, as soon as fewer than two are at work.
begin() {
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
	names+=("$1")
	suite "$@" &
}

release_of() ( # X.Y: the Debian release that has this kernel
	if [ "$1" = debug ]; then
		# Any would do; this one is there for 6.1.
		echo bookworm
		return
	fi
	assignments=$(scripts/kernel.sh "$1")
	eval "$assignments"
	echo "$KDEBIAN"
)

# on_kernel X.Y SUITE: in a machine with that kernel and the programs of its release.
on_kernel() {
	local kernel=$1 name=$2
	export DUALPI2_KERNEL=$kernel DUALPI2_MODULE=$DUALPI2_ROOT/build/$kernel/sch_dualpi2.ko
	export DUALPI2_PRAGUE=$DUALPI2_ROOT/build/prague/$kernel/tcp_prague.ko DUALPI2_EXTRA=$DUALPI2_ROOT/build/extra/$kernel
	if [[ $name == @(top_live|guides) ]]; then
		DUALPI2_TREE=$(scripts/root.sh bookworm top) || return
	else
		DUALPI2_TREE=$(tree "$kernel") || return
	fi
	export DUALPI2_TREE
	if [ "$kernel" = debug ]; then
		export DUALPI2_TRACE_PC=$DUALPI2_ROOT/build/debug/trace_pc/dualpi2_trace_pc.ko DUALPI2_MAPS=$logs/maps
	fi
	if [ "$name" = tdc ]; then
		scripts/tdc.sh
	else
		scripts/run-vm.sh --virtual-time --kernel "$kernel" --root "$DUALPI2_TREE" --timeout 1500 --memory 2G \
			--preload "$DUALPI2_TC_STOCK" "${@:3}" -- \
			env TC_LIB_DIR="$TC_LIB_DIR" "$DUALPI2_CACHE/venv/bin/python" selftests/*/"test_$name.py"
	fi
}

# on_debug_kernel COMMAND...: what is no program in Python.
on_debug_kernel() {
	local root
	root=$(tree debug) || return
	scripts/run-vm.sh --virtual-time --kernel debug --root "$root" --timeout 600 --memory 2G --preload "$DUALPI2_TC_STOCK" -- \
		env TC_LIB_DIR="$TC_LIB_DIR" DUALPI2_MODULE="$DUALPI2_ROOT/build/debug/sch_dualpi2.ko" \
		DUALPI2_TRACE_PC="$DUALPI2_ROOT/build/debug/trace_pc/dualpi2_trace_pc.ko" "$@"
}

# dualpi2-top with the libraries of Debian, and without a kernel.
top_alone() { scripts/in-root.sh --offline "$(scripts/root.sh bookworm top)" python3 "$DUALPI2_ROOT/selftests/top/test_top.py"; }

tree() { # X.Y: where the programs of its Debian release are
	local release
	release=$(release_of "$1")
	scripts/root.sh "$release" test
}

# What the machines run, built before the first starts: they have no compiler.
prepare() {
	local kernel
	for kernel in $kernels; do
		if [ "$kernel" = debug ]; then
			scripts/build-traced.sh
		else
			scripts/build-for.sh "$kernel" "build/$kernel" W=1 KCFLAGS=-Werror
		fi
		! wants prague || scripts/build-for.sh --prague "$kernel" "build/prague/$kernel" W=1 KCFLAGS=-Werror
		! wants extra || scripts/build-for.sh --extra "$kernel" "build/extra/$kernel" W=1 KCFLAGS=-Werror
		tree "$kernel"
	done
	make --no-print-directory build/net/traffic build/fuzz/netlink build/fuzz/storm
} >&2

# tests DIR: names of the test programs there, the largest first.
tests() { find "$1" -name 'test_*.py' -printf '%s %f\n' | sort -rn | sed -E 's/.* test_(.*)\.py$/\1/'; }

rm -rf "$logs"/*.code "$logs/maps"
mkdir "$logs/maps"
# Each suite is a group of processes, so that none is left when this one is interrupted.
trap stop_jobs EXIT
trap 'exit 130' INT TERM HUP
set -m
make --no-print-directory plugin >&2
if wants extra || wants lab; then make --no-print-directory extra-plugins >&2; fi
programs=() abuse=()
if wants net || wants tdc || wants fuzz || wants operator || wants prague || wants extra || { wants top && [[ " $kernels " == *" debug "* ]]; }; then
	prepare
	DUALPI2_TC_STOCK=$(scripts/tc.sh)
	TC_LIB_DIR=$DUALPI2_ROOT/build/tc
	export DUALPI2_TC_STOCK TC_LIB_DIR
	if wants tdc; then programs+=(tdc); fi
	if wants prague; then programs+=(prague); fi
	if wants extra; then mapfile -t -O "${#programs[@]}" programs < <(tests selftests/extra); fi
	if wants net; then mapfile -t -O "${#programs[@]}" programs < <(tests selftests/net); fi
	if wants fuzz && [[ " $kernels " == *" debug "* ]]; then mapfile -t abuse < <(tests selftests/fuzz); fi
fi

# What takes longest first.
if wants packages; then
	for kernel in $kernels; do
		[ "$kernel" != debug ] || continue
		release=$(release_of "$kernel")
		begin "packages-$release" scripts/test-packages.sh "$release"
	done
fi
if wants operator && [[ " $kernels " == *" 6.1 "* ]]; then begin systemd selftests/operator/test_systemd.sh; fi
if wants lab; then begin lab-smoke "$DUALPI2_CACHE/venv/bin/python" selftests/lab/test_smoke.py; fi
for name in "${abuse[@]}"; do
	options=()
	# Where something may be left behind; it makes a run half as long again.
	[[ $name != @(faults|storm) ]] || options=(--append kmemleak=on)
	begin "debug-$name" on_kernel debug "$name" "${options[@]}"
done
if wants operator; then
	if [[ " $kernels " == *" debug "* ]]; then
		for name in doctor up guides; do begin "debug-$name" on_kernel debug "$name"; done
		begin debug-qos on_debug_kernel selftests/operator/test_qos.sh --real
	fi
	begin qos selftests/operator/test_qos.sh
	begin doctor-rules python3 selftests/operator/test_doctor_rules.py
fi
if wants top; then
	[[ " $kernels " != *" debug "* ]] || begin debug-top on_kernel debug top_live
	begin top top_alone
fi
for kernel in $kernels; do
	for name in "${programs[@]}"; do
		options=()
		[ "$kernel-$name" != debug-module ] || options=(--append kmemleak=on)
		# The longest ones. One is about figures that a stock kernel shows as well, the other goes up to rates
		# that only the debug kernel reaches.
		[ "$kernel-$name" != debug-aqm_control ] || [ "$kernels" = debug ] || continue
		[ "$kernel-$name" != 6.1-conformance ] || [ "$kernels" != "6.1 debug" ] || continue
		# The companions are for experiments, and built for all kernels.
		[[ $kernel-$name != 6.1-@(csaqm|pi2|ppv) ]] || [ "$kernels" != "6.1 debug" ] || continue
		begin "$kernel-$name" on_kernel "$kernel" "$name" "${options[@]}"
	done
done
if wants tc; then
	begin iproute2 scripts/test-iproute2.sh
	begin plugin scripts/test-plugin.sh
	begin tc iproute2-patch/tests/run.sh
fi
if wants extra; then begin extra-tc extra/tests/run.sh; fi
if wants matrix; then begin matrix scripts/matrix.sh --ktap newest; fi
if wants packages; then
	begin rpm scripts/test-rpm.sh
	begin openwrt scripts/test-openwrt.sh
fi
if wants unit; then
	begin unit make --no-print-directory -C selftests/unit check
	begin coverage coverage
	begin mutate mutate
fi
if wants bench; then
	begin bench-table python3 selftests/bench/test_table.py
	begin bench-instances python3 selftests/bench/test_instances.py
	[[ " $kernels " != *" 6.1 "* ]] || begin bench-cost scripts/bench.sh check --ktap
fi
if wants lab; then
	for name in lab measure report; do
		begin "lab-$name" "$DUALPI2_CACHE/venv/bin/python" "selftests/lab/test_$name.py"
	done
fi
if wants fuzz; then begin tc-lines make --no-print-directory -s fuzz-tc; fi
if wants style; then begin style scripts/style.sh; fi
if wants lint; then begin lint scripts/lint.sh; fi
wait
# What the tests on the debug kernel reached together; some of them alone are not meant to reach all.
if wants net && wants fuzz && [[ " $kernels " == *" debug "* ]]; then
	begin blocks python3 selftests/fuzz/coverage.py build/debug/sch_dualpi2.ko "$logs/maps"
	wait
fi
# Every test that docs/CONFORMANCE.md names passed on one of these kernels at least.
if [ ${#suites[@]} -eq ${#all[@]} ] && [[ " $kernels " == *" debug "* ]]; then
	begin requirements "$DUALPI2_CACHE/venv/bin/python" scripts/conformance.py --results "$logs"
	wait
fi
set +m
trap - EXIT INT TERM HUP

# One that left no code has failed, whatever became of it.
for name in "${names[@]}"; do
	touch "$logs/$name.log"
	results+=("$name=$logs/$name.log=$(cat "$logs/$name.code" 2>/dev/null || echo 1)")
done
python3 scripts/ktap.py "${results[@]}"
