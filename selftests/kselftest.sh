#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kselftest.sh - run the kselftests as a user does: a dualpi2 is loaded, and no variable says that this is a machine of the
# project.
#
# usage: kselftest.sh [KERNEL | KERNEL/in-tree | KERNEL/tree | debug | plain/in-tree]...
#          KERNEL          as for kernel.sh, default 6.1: `make -C selftests run_tests` on a stock kernel in real time.
#                          Emulation is slow, so KSFT_MACHINE_SLOW is set and programs get ten times the time of their
#                          `settings`
#          KERNEL/in-tree  the same with the kernel's own dualpi2, from 6.17 on. The checks of net/dualpi2 that find its
#                          faults must fail: FAULTS below
#          KERNEL/tree     net/dualpi2 in the kernel's source tree, by its lib.mk, helpers and tdc.py, with this module
#          debug           net/dualpi2 as `make install` lays it out, in a Debian root, on the debug kernel in virtual time
#          builtin         all as on a stock kernel, with the dualpi2 of the series for the kernel tree, in virtual time
#          plain/in-tree   the same on the plain kernel with the in-tree dualpi2
#        TARGETS: the directories, default: those of the Makefile

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../scripts/ktap.sh"

cd "$DUALPI2_ROOT"
ours=kselftest/net/dualpi2
# Checks of net/dualpi2 that fail with the in-tree dualpi2 of 7.2, and its faults.
FAULTS=(
	# Gains are rounded down when they are stored.
	"defaults dumped"
	"alpha: values from 1 to 2147483647 accepted and dumped"
	"beta: values from 1 to 2147483647 accepted and dumped"
	# The same, and limit overwrites a memlimit that was set.
	"options set one after another are all kept"
	# 0 is accepted, and times that do not fit into 32 bits of nanoseconds.
	"target: values out of range and wrong lengths rejected"
	"step_thresh: values out of range and wrong lengths rejected"
	# A timer with up to 1 MHz, and times that do not fit.
	"tupdate: values out of range and wrong lengths rejected"
	# All Not-ECT packets in the L4S queue are dropped above the step.
	"packets.drop_not_ect_in_l4s_at_most_by_square"
)

# Of the first network namespace; what counts by itself, and the modules that were loaded, are left out.
host() {
	ip -o link
	ip address
	tc qdisc
	ip netns
	sysctl -a --pattern '^(kernel|net)\.' 2>/dev/null |
		grep -v -E '^kernel\.(ns_last_pid|random\.|pty\.nr)|_count = |\.tcp_available_congestion_control = '
}

# in_machine MODULES COMMAND...
in_machine() {
	local before code=0 changed module
	for module in $1; do insmod "$module"; done
	shift
	before=$(host)
	env -i PATH="$PATH" HOME="$HOME" LANG="$LANG" "$@" || code=1
	# A module that was loaded may have brought settings of its own: only what was there must be the same.
	mapfile -t changed < <(comm -23 <(sort <<<"$before") <(host | sort))
	plan 1
	result kselftest_changes_no_setting_of_the_host $((${#changed[@]} > 0)) "${changed[*]}"
	[ -z "$failed" ] || code=1
	exit $code
}

# vm KERNEL OPTION... -- MODULES COMMAND...: run the command in a machine
vm() {
	local kernel=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	scripts/run-vm.sh --kernel "$kernel" --timeout 7200 "${options[@]}" -- bash selftests/kselftest.sh --in-machine "$@"
}

# faults LOG: with the in-tree module; the programs of net/dualpi2 that fail are no failure if FAULTS explains them.
faults() {
	local found others
	mapfile -t found < <(sed -n '/# XFAIL/d; s/^# not ok [0-9]* //p' "$1" | sort)
	others=$(grep -c "^not ok" "$1" || true)
	plan 2
	result in_tree_dualpi2_has_the_known_faults \
		"$([ "${found[*]}" = "$(printf '%s\n' "${FAULTS[@]}" | sort | paste -sd' ')" ] && echo 0 || echo 1)" \
		"$(
			printf 'found:\n'
			printf '%s\n' "${found[@]}"
		)"
	result in_tree_dualpi2_fails_nothing_else "$((others > $(grep -c "^not ok .*dualpi2: " "$1" || true)))" "$(grep "^not ok" "$1")"
}

if [ "${1-}" = --in-machine ]; then
	shift
	in_machine "$@"
fi

[ $# -gt 0 ] || set -- 6.1
make --no-print-directory -C selftests ${TARGETS:+"TARGETS=$TARGETS"} all >&2
mkdir -p build/kselftest
code=0
for kernel; do
	slow=(KSFT_MACHINE_SLOW=yes kselftest_override_timeout=1200)
	run=(make --no-print-directory -C selftests ${TARGETS:+"TARGETS=$TARGETS"} run_tests)
	options=(--memory 2G)
	case $kernel in
	debug | plain/in-tree)
		# The module for the debug kernel records what it runs, into another one.
		module="build/debug/trace_pc/dualpi2_trace_pc.ko build/debug/sch_dualpi2.ko"
		[ "$kernel" = debug ] || module=$DUALPI2_CACHE/debug-kernels/plain/net/sched/sch_dualpi2.ko
		installed=$DUALPI2_ROOT/build/kselftest/installed
		rm -rf "$installed"
		make -s -C selftests "TARGETS=$ours" install "INSTALL_PATH=$installed" >&2
		slow=()
		# tdc.sh needs a kernel tree.
		run=("$installed/run_kselftest.sh" -t "$ours:options" -t "$ours:packets.py" -t "$ours:tcp.sh")
		options=(--memory 1G --root "$(scripts/root.sh bookworm test)")
		;;
	builtin) module='' options=(--memory 1G) slow=() ;;
	*/in-tree) module=$(scripts/in-tree.sh "${kernel%/*}") ;;
	*/tree)
		module=$(scripts/build-for.sh "${kernel%/*}" "build/${kernel%/*}")
		tree=$(selftests/kselftest/tree.sh "${kernel%/*}")
		run=(make --no-print-directory -C "$tree/tools/testing/selftests" TARGETS=net/dualpi2 run_tests)
		slow+=(TC_LIB_DIR="$DUALPI2_ROOT/build/tc" PYTHONPATH="$("$DUALPI2_VENV/bin/python" -c "import sysconfig; print(sysconfig.get_path(\"purelib\"))")")
		;;
	*) module=$(scripts/build-for.sh "$kernel" "build/$kernel") ;;
	esac
	say "Linux $kernel, $module"
	stamp=$(mktemp)
	log=build/kselftest/${kernel/\//-}.log
	ended=0
	vm "${kernel%/*}" "${options[@]}" -- "$module" "${slow[@]}" "${run[@]}" | tee "$log" |
		if [[ $kernel == */in-tree ]]; then sed '/^not ok/s/^/# /'; else cat; fi || ended=1
	if [[ $kernel == */in-tree ]]; then
		failed=''
		faults "$log"
		[ -n "$failed" ] || ended=0
	fi
	[ $ended -eq 0 ] || code=1
	written=$(find . \( -path ./build -o -path ./.git \) -prune -o -newer "$stamp" -type f -print)
	rm "$stamp"
	[ -z "$written" ] || {
		say "the tests wrote to the source tree: $written"
		code=1
	}
done
exit $code
