#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# torture.sh - the long tests, of which "make check" runs short forms. A step that is done is not run again for the
# same sources and amount. After an interruption the steps netlink, soak and flakes continue; the others start from the
# beginning. Two steps run at once. The step soak leaves one processor free, and uses one machine for each of the others.
# Logs and results are in build/torture.
#
# usage: torture.sh [STEP...]   default: all
#        torture.sh --list      what the steps are
#        torture.sh --report    how far they are
#
# How much, from the environment: FUZZ (netlink messages, 100000000), LINES (tc command lines, 10000000), FRAMES
# (frames, 200000), STORM (changes and replacements, 2000000), TEARDOWNS (namespaces, 10000), RUNS (of the network
# tests, 20), HOURS (virtual, of soak, 24).

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$DUALPI2_ROOT"

steps() {
	cat <<-'END'
		netlink  messages to the configuration, guided by coverage, on the debug kernel
		soak     virtual hours of traffic, each within the bands (selftests/lab/soak.py), on the plain kernel
		storm    changes, replacements, ends of namespaces under traffic, on the debug kernel, with kmemleak
		race     changes and replacements on one CPU, traffic and dumps on another, on stock 6.1, in real time
		frames   damaged frames and descriptions of GSO, byte for byte, on the debug kernel
		lines    command lines of tc, the options that the kernel shows, in user space
		mutants  every generated change of the algorithm: for 99 of 100 a unit test has to fail
		flakes   the network tests again and again, on the plain kernel: none may fail once
	END
}
case ${1-} in
--list)
	steps
	exit
	;;
--help)
	sed -n 's/^# \{0,1\}//; 4,15p' "$0"
	exit
	;;
esac
of=$(cat Kbuild sch_dualpi2.c include/*/*.h include/uapi/linux/*.h iproute2-patch/tc/*.[ch] | cksum | cut -d' ' -f1)
amounts="${FUZZ-} ${LINES-} ${FRAMES-} ${STORM-} ${TEARDOWNS-} ${RUNS-} ${HOURS-}"
work=$DUALPI2_ROOT/build/torture/$of
mkdir -p "$work"

report() {
	local step rest
	while read -r step rest; do
		if [ -e "$work/$step.result" ]; then
			printf '%-8s %s\n' "$step" "$(head -n 1 "$work/$step.result")"
		elif [ -e "$work/$step.log" ]; then
			printf '%-8s under way or interrupted: %s\n' "$step" "$(tail -n 1 "$work/$step.log" | cut -c1-120)"
		else
			printf '%-8s not begun: %s\n' "$step" "$rest"
		fi
	done < <(steps)
}
if [ "${1-}" = --report ]; then
	report
	exit
fi
wanted=("$@")
[ $# -gt 0 ] || mapfile -t wanted < <(steps | cut -d' ' -f1)
for step in "${wanted[@]}"; do
	steps | grep "^$step " >/dev/null || die "unknown step '$step'; torture.sh --list names them"
done
exec 6>"$work/lock"
flock -n 6 || die "another torture.sh is at work here"

# in_vm KERNEL COMMAND...: with the module and what the tests need.
in_vm() {
	local kernel=$1 options=() module=$DUALPI2_ROOT/build/$1/sch_dualpi2.ko
	shift
	if [ "$kernel" = debug ]; then
		export DUALPI2_TRACE_PC=$DUALPI2_ROOT/build/debug/trace_pc/dualpi2_trace_pc.ko
	else
		unset DUALPI2_TRACE_PC
	fi
	# User-mode Linux has one CPU.
	[ "$kernel" != 6.1 ] || options+=(--cpus 2)
	[ -z "${APPEND-}" ] || options+=(--append "$APPEND")
	DUALPI2_MODULE=$module scripts/run-vm.sh --kernel "$kernel" --memory 3G --timeout 86400 "${options[@]}" -- \
		env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" "$@"
}
python=$DUALPI2_VENV/bin/python

# Each prints progress and, last, its result in one line.
step_netlink() {
	[ -e "$work/corpus.txt" ] || cp selftests/fuzz/corpus/netlink.txt "$work/corpus.txt"
	# shellcheck disable=SC2016 # for the shell in the machine
	APPEND=log_buf_len=64M in_vm debug sh -c 'insmod "$DUALPI2_TRACE_PC" && insmod "$DUALPI2_MODULE" && exec "$@"' sh \
		build/fuzz/netlink --messages "${FUZZ:-100000000}" --seed 1 --state "$work/netlink.state" \
		--corpus "$work/corpus.txt" --fail "$work/netlink.failure"
}
# A machine runs at most 12 hours with one qdisc, and with a seed of its own. After an interruption a new machine continues
# the file. pktgen stays out: its threads wake ten times a second in each namespace, and took most of the time of a pause
# of 49.7 days. User-mode Linux knows an initcall by its address.
soak_machine() {
	local first=$1 last=$2 file=$3 code=0 pktgen
	pktgen=0x$(sed -n 's/^0*\([0-9a-f]*\) t pg_init$/\1/p' "$DUALPI2_CACHE/debug-kernels/plain/System.map")
	touch "$file"
	first=$((first + $(wc -l <"$file")))
	[ "$first" -le "$last" ] || return 0
	echo "hours $first to $last (half a minute each)"
	DUALPI2_SEED=$first APPEND=initcall_blacklist=$pktgen in_vm plain "$python" selftests/lab/soak.py --first "$first" --last "$last" \
		--module "$DUALPI2_ROOT/build/plain/sch_dualpi2.ko" \
		--delaymeter "$DUALPI2_ROOT/build/lab/delaymeter" --out "$file" || code=$?
	[ "$code" -eq 0 ] || echo "the machine of hours $first to $last ended with code $code" >>"$work/soak.failed"
	# The kernel logged a warning: the next run repeats these hours.
	[ "$code" -ne 99 ] || mv "$file" "$work/warned-$(basename "$file")"
}
step_soak() {
	local first last hours=${HOURS:-24} machines=$(($(nproc) > 1 ? $(nproc) - 1 : 1))
	mkdir -p build/lab
	rm -f "$work/soak.failed"
	cc -std=gnu11 -O2 -Wall -o build/lab/delaymeter selftests/lab/delaymeter.c
	for ((first = 1; first <= hours; first += 12)); do
		while [ "$(jobs -rp | wc -l)" -ge "$machines" ]; do wait -n || true; done
		last=$((first + 11 < hours ? first + 11 : hours))
		soak_machine "$first" "$last" "$work/soak.hours-$(printf %05d "$first")" &
	done
	wait
	"$python" selftests/lab/soak.py --report <(cat "$work"/soak.hours-*) || return
	if [ -e "$work/soak.failed" ]; then
		cat "$work/soak.failed"
		return 1
	fi
}
step_storm() {
	APPEND=kmemleak=on DUALPI2_STORM_MESSAGES=${STORM:-2000000} DUALPI2_STORM_NAMESPACES=${TEARDOWNS:-10000} \
		in_vm debug "$python" selftests/fuzz/test_storm.py
}
step_race() {
	DUALPI2_STORM_TWO=1 DUALPI2_STORM_MESSAGES=${STORM:-2000000} in_vm 6.1 "$python" selftests/fuzz/test_storm.py
}
step_frames() { DUALPI2_FUZZ_FRAMES=${FRAMES:-200000} in_vm debug "$python" selftests/fuzz/test_fuzz_packets.py; }
step_lines() { DUALPI2_FUZZ_LINES=${LINES:-10000000} selftests/fuzz/tc_line.py; }
step_mutants() { "$python" selftests/unit/mutate.py --jobs 1; }
step_flakes() {
	local run program begun
	begun=$(cat "$work/flakes.runs" 2>/dev/null || echo 0)
	for ((run = begun + 1; run <= ${RUNS:-20}; run++)); do
		for program in selftests/net/test_*.py; do
			in_vm plain "$python" "$program" >"$work/flakes.last" 2>&1 || {
				cat "$work/flakes.last"
				echo "run $run: $program failed"
				return 1
			}
		done
		echo "$run" >"$work/flakes.runs"
		echo "$run runs without a failure"
	done
}

run_step() {
	local step=$1 code=0 began=$SECONDS
	say "$step begins; log in $work/$step.log"
	! grep -q -s '^FAILED' "$work/$step.result" || cp "$work/$step.log" "$work/$step.failed-$(date +%s).log"
	rm -f "$work/$step.result"
	"step_$step" >"$work/$step.log" 2>&1 || code=$?
	{
		[ "$code" -eq 0 ] && printf 'good' || printf 'FAILED with code %s' "$code"
		printf ' after %s s: %s; %s tests\n' "$((SECONDS - began))" \
			"$(grep -v '^ok \|^# [0-9.]* s$' "$work/$step.log" | tail -n 1 | cut -c1-200)" "$(grep -c '^ok ' "$work/$step.log")"
		echo "$amounts"
	} >"$work/$step.new"
	mv "$work/$step.new" "$work/$step.result"
	say "$step: $(head -n 1 "$work/$step.result")"
}

scripts/setup.sh
make --no-print-directory plugin build/net/traffic build/fuzz/netlink build/fuzz/storm build/fuzz/tc_line >&2
for step in "${wanted[@]}"; do
	case $step in
	netlink | storm | frames) scripts/build-traced.sh >&2 ;;
	race) scripts/build-for.sh 6.1 build/6.1 >&2 ;;
	flakes | soak) scripts/build-for.sh plain build/plain >&2 ;;
	esac
done
DUALPI2_TC_STOCK=$(scripts/tc.sh)
export DUALPI2_TC_STOCK

trap stop_jobs EXIT
trap 'exit 130' INT TERM HUP
set -m
for step in "${wanted[@]}"; do
	if grep -q -s '^good' "$work/$step.result" && grep -q -x -F "$amounts" "$work/$step.result"; then
		continue
	fi
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
		wait -n || true
	done
	run_step "$step" &
done
shown=0
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do
	sleep 5
	if [ $((SECONDS - shown)) -ge 60 ]; then
		shown=$SECONDS
		for step in "${wanted[@]}"; do
			[ -e "$work/$step.result" ] || [ ! -e "$work/$step.log" ] ||
				say "$step: $(tail -n 1 "$work/$step.log" | cut -c1-120)"
		done
	fi
done
set +m
trap - EXIT INT TERM HUP
report
failed=''
for step in "${wanted[@]}"; do grep -q -s '^good' "$work/$step.result" || failed=1; done
[ -z "$failed" ]
