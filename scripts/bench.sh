#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench.sh - what the module costs, in instructions per packet: a machine in virtual time, where one instruction is
# one nanosecond, so that neither this machine's processor nor its load is in the figures. And how exact its shaper is.
#
# usage: bench.sh stats [--kernel X.Y]... [--before COMMIT] [--repeat N] [--most N] [--ktap]
#        bench.sh shaper [--kernel X.Y]... [--repeat N] [--ktap]
#        bench.sh rate [--ktap] [OPTIONS of selftests/bench/rate.py]
#
#   stats            the module as it is beside the same one without its accounts (DUALPI2_BENCH_NO_STATS) and
#                    without its tracepoint (DUALPI2_BENCH_NO_TRACE)
#   shaper           what the shaper costs, beside cake's
#   rate             the error of the shaper's rate from 100 kbit/s to 10 Gbit/s and its bursts, beside cake's; in
#                    user-mode Linux
#   --kernel X.Y     default 7.2
#   --before COMMIT  the module of that commit, too
#   --most N         fail if the accounts cost more than so many instructions per packet (default 15)
#   --ktap           the verdict as KTAP, the table as comments; of stats no more is measured than it needs

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$DUALPI2_ROOT"

usage='usage: bench.sh stats|shaper|rate [OPTIONS], which the head of scripts/bench.sh lists'
bench=${1-}
[[ $bench == @(stats|shaper|rate) ]] || die "$usage"
shift
make --no-print-directory plugin >&2
if [ "$bench" = rate ]; then
	module=$(scripts/build-for.sh plain build/bench/plain)
	exec scripts/run-vm.sh --kernel plain --seed 1 --memory 2G --timeout 1800 -- \
		env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 selftests/bench/rate.py --module "$module" "$@"
fi
kernels=() before='' repeat=3 judge=()
while [ $# -gt 0 ]; do
	case $1 in
	--ktap) judge+=("$1") ;;
	--kernel | --before | --repeat | --most)
		[ $# -ge 2 ] || die "$1 needs a value; $usage"
		[[ $bench-$1 != shaper-@(--before|--most) ]] || die "$1 is for stats; $usage"
		case $1 in
		--kernel) kernels+=("$2") ;;
		--before) before=$2 ;;
		--repeat) repeat=$2 ;;
		--most) judge+=("$1" "$2") ;;
		esac
		shift
		;;
	*) die "unknown argument '$1'; $usage" ;;
	esac
	shift
done
[ ${#kernels[@]} -gt 0 ] || kernels=(7.2)

out=build/bench
mkdir -p "$out"
old=''
if [ -n "$before" ]; then
	commit=$(git rev-parse --verify --quiet "$before^{commit}") ||
		die "no commit '$before' in this repository; leave --before out, or fetch it"
	old=$DUALPI2_ROOT/$out/source-${commit:0:12}
	if [ ! -e "$old/Kbuild" ]; then
		mkdir -p "$old"
		git archive "$commit" Kbuild sch_dualpi2.c include | tar -x -C "$old"
	fi
fi

# counted KERNEL PROGRAM WORDS...: run a program of selftests/bench in that machine; its figures go to the results.
counted() {
	local kernel=$1 result=$out/$1/$bench.json
	shift
	scripts/run-vm.sh --virtual-time --kernel "$kernel" --timeout 1800 -- env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" \
		python3 "selftests/bench/$1" --repeat "$repeat" "${@:2}" >"$result" || {
		cat "$result" >&2 # the machine's words, whether it meant them for stderr or not
		die "Linux $kernel: no figures, for the reason above; what QEMU and the build need is installed by scripts/setup.sh"
	}
	results+=("$result")
}

results=()
for kernel in "${kernels[@]}"; do
	[[ $kernel =~ ^[0-9]+\.[0-9]+$ ]] ||
		die "the bench counts in QEMU's virtual time, which '$kernel' does not run in; use a stock kernel like 7.2"
	if [ "$bench" = shaper ]; then
		module=$(scripts/build-for.sh "$kernel" "$out/$kernel/now")
		say "Linux $kernel: the shapers of dualpi2 and cake, $repeat times"
		counted "$kernel" shaper.py "$module"
		continue
	fi
	subjects=("pfifo=qdisc:pfifo") variants=(now no-stats no-trace)
	[[ " ${judge[*]} " != *" --ktap "* ]] || subjects=() variants=(now no-stats)
	for variant in "${variants[@]}"; do
		flags=()
		case $variant in
		no-stats) flags=(KCFLAGS=-DDUALPI2_BENCH_NO_STATS) ;;
		no-trace) flags=(KCFLAGS=-DDUALPI2_BENCH_NO_TRACE) ;;
		esac
		module=$(scripts/build-for.sh "$kernel" "$out/$kernel/$variant" "${flags[@]}")
		subjects+=("$variant=$module")
	done
	if [ -n "$old" ]; then
		# Within this repository, which is all that a build in another Debian tree sees.
		module=$out/$kernel/before-${old##*-}/sch_dualpi2.ko
		if [ ! -e "$module" ]; then
			# By the scripts of today: those of then would make Debian trees of their own.
			cp -r scripts "$old"
			made=$("$old/scripts/build-for.sh" "$kernel" "$old/build/$kernel")
			mkdir -p "${module%/*}"
			cp "$made" "$module"
		fi
		subjects+=("before=$DUALPI2_ROOT/$module")
	fi
	say "Linux $kernel: ${#subjects[@]} qdiscs, $repeat times"
	counted "$kernel" cost.py "${subjects[@]}"
done
python3 selftests/bench/table.py "${judge[@]}" "${results[@]}"
