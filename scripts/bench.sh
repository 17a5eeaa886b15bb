#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench.sh - what the module costs, in instructions per packet: a machine in virtual time, where one instruction is
# one nanosecond, so that neither this machine's processor nor its load is in the figures. And how exact its shaper is.
#
# usage: bench.sh stats [--kernel X.Y]... [--before COMMIT] [--repeat N] [--most N] [--ktap]
#        bench.sh shaper [--kernel X.Y]... [--repeat N] [--ktap]
#        bench.sh rate [--ktap] [OPTIONS of selftests/bench/rate.py]
#        bench.sh compare [--kernel X.Y]... [--repeat N] [--without KIND]...
#        bench.sh compare --save-baseline [--kernel X.Y]... [--repeat N]
#        bench.sh marking [--kernel X.Y]... [--repeat N]
#        bench.sh companions [--kernel X.Y]... [--repeat N]
#        bench.sh check [--kernel X.Y]... [--repeat N] [--ktap]
#        bench.sh instances [--kernel X.Y] [--ktap]
#        bench.sh cores [--packets N] [--rounds N]
#        bench.sh native [ROUNDS]
#        bench.sh profile [--kernel X.Y] [--load LOAD] [FUNCTION]
#
#   stats            the module as it is compared with a copy of it without the counters and one without the tracepoint
#   shaper           what the shaper costs, beside cake's
#   rate             the error of the shaper's rate from 100 kbit/s to 10 Gbit/s and its bursts, beside cake's; in
#                    user-mode Linux
#   compare          all qdiscs beside each other, Linux' own dualpi2 among them, and the options of ours; table and
#                    plot: build/bench/compare.md, compare.svg
#   marking          what marks cost: none, 1, 10 and 100 % of the packets, with p' of 0 and of 10 %
#   companions       pi2, csaqm, vdq_csaqm and ppv beside dualpi2
#   check            what the module costs over pfifo, beside the baseline (selftests/bench/baseline.json)
#   instances        what an instance costs for being there: memory, wakeups and instructions at rest, and to be shown;
#                    beside other qdiscs, and Linux' own dualpi2 if it has one
#   cores            packets a second of one and of two processors, each with a transmit queue: one lock, one for each
#                    queue, dualpi2_mq, cake and cake_mq; on stock 7.2, emulated, in wall-clock time
#   native           nanoseconds of each part of the algorithm, in user space on this processor, which has its load in
#                    them; of ROUNDS (default 200) the best
#   profile          instructions per packet of each function of the module, or of each instruction of FUNCTION, under a
#                    LOAD of compare or marking (default: below prio, queue empty, Classic)
#   --kernel X.Y     default 7.2; of check 6.1
#   --without KIND   leave one out: codel, fq_codel, pie, fq, cake, or in-tree, which kernels before 6.17 lack
#   --repeat N       default 3
#   --save-baseline  count what check counts, and write it as the new baseline; both kernels, if none is named
#   --before COMMIT  the module of that commit, too
#   --most N         fail if the accounts cost more than so many instructions per packet (default 15)
#   --ktap           the verdict as KTAP, the table as comments; of stats and instances no more is
#                    measured than it needs

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$DUALPI2_ROOT"

usage='usage: bench.sh stats|shaper|rate|compare|marking|companions|check|instances|cores|native|profile [OPTIONS]; see the head of scripts/bench.sh'
bench=${1-}
[[ $bench == @(stats|shaper|rate|compare|marking|companions|check|instances|cores|native|profile) ]] || die "$usage"
shift
if [ "$bench" = native ]; then
	mkdir -p build/bench
	# As the kernel is compiled: no vectors.
	cc -std=gnu11 -O2 -fno-tree-vectorize -Wall -Wextra -Iselftests/unit/include -Iinclude -o build/bench/native \
		selftests/bench/native.c || die "the algorithm does not compile in user space; 'make unit' tells more"
	exec build/bench/native "$@"
fi
make --no-print-directory plugin >&2

# counting total|each: plugin, the arguments for run-vm.sh with which QEMU counts instructions in $out/instructions.
counting() {
	mkdir -p "$out"
	cc -std=gnu11 -O2 -Wall -Wextra -shared -fPIC -o "$out/instructions.so" selftests/bench/instructions.c ||
		die "the plugin for QEMU does not compile"
	plugin=(--qemu-arg -plugin --qemu-arg "$out/instructions.so,$1=$out/instructions")
}

if [ "$bench" = rate ]; then
	module=$(scripts/build-for.sh plain build/bench/plain)
	exec scripts/run-vm.sh --kernel plain --seed 1 --memory 2G --timeout 1800 -- \
		env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 selftests/bench/rate.py --module "$module" "$@"
fi

if [ "$bench" = cores ]; then
	module=$(scripts/build-for.sh 7.2 build/7.2)
	[ "$(nproc)" -ge 2 ] || die "this machine has one processor; two are measured"
	exec scripts/run-vm.sh --kernel 7.2 --cpus 2 --timeout 3600 -- \
		env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 selftests/bench/cores.py "$@" "$module"
fi

kernels=() before='' repeat=3 judge=() without=' ' save='' load='below prio, queue empty, Classic' function=()
declare -A options=([stats]='kernel before repeat most ktap' [shaper]='kernel repeat ktap' [check]='kernel repeat ktap'
	[compare]='kernel repeat without save-baseline' [marking]='kernel repeat' [companions]='kernel repeat'
	[instances]='kernel ktap' [profile]='kernel load')
while [ $# -gt 0 ]; do
	if [[ $bench = profile && $1 != -* ]]; then
		function=("$1")
		shift
		continue
	fi
	[[ $1 == --* && " ${options[*]} " == *" ${1#--} "* ]] || die "unknown argument '$1'; $usage"
	[[ " ${options[$bench]} " == *" ${1#--} "* ]] || die "$1 is not for $bench; $usage"
	[[ $1 == @(--ktap|--save-baseline) || $# -ge 2 ]] || die "$1 needs a value; $usage"
	case $1 in
	--ktap) judge+=("$1") ;;
	--save-baseline) save=1 ;;
	--kernel) kernels+=("$2") ;;
	--load) load=$2 ;;
	--before) before=$2 ;;
	--repeat)
		[[ $2 =~ ^[1-9][0-9]*$ ]] || die "'$2' is no number of repetitions; use one like 3"
		[[ $2 != 1 || $bench != @(compare|marking|companions|check) ]] || die "$bench wants to see figures repeat; use --repeat 2 at least"
		repeat=$2
		;;
	--without)
		[[ $2 == @(codel|fq_codel|pie|fq|cake|in-tree) ]] ||
			die "'$2' cannot be left out; use codel, fq_codel, pie, fq, cake or in-tree"
		without+="$2 "
		;;
	--most) judge+=("$1" "$2") ;;
	esac
	[[ $1 == @(--ktap|--save-baseline) ]] || shift
	shift
done
if [ ${#kernels[@]} -eq 0 ]; then
	kernels=(7.2)
	[ "$bench" != check ] || kernels=(6.1)
	[ -z "$save" ] || kernels=(6.1 7.2)
fi
for kernel in "${kernels[@]}"; do
	[[ $kernel =~ ^[0-9]+\.[0-9]+$ ]] ||
		die "the bench counts in QEMU's virtual time, which '$kernel' does not run in; use a stock kernel like 7.2"
done
[[ $bench != @(instances|profile) || ${#kernels[@]} -eq 1 ]] || die "$bench takes one kernel; $usage"

if [ "$bench" = instances ]; then
	words=() others=(pfifo codel pie fq fq_codel cake)
	[ ${#judge[@]} -eq 0 ] || words=(--most 0) others=() # ours alone is judged
	out=$DUALPI2_ROOT/build/bench/$kernel
	module=$(scripts/build-for.sh "$kernel" "build/$kernel")
	subjects=("ours=$module")
	if [ ${#others[@]} -gt 0 ]; then
		if module=$(scripts/in-tree.sh "$kernel"); then
			# The machine sees the repository, but not the cache directory.
			mkdir -p "$out/in-tree"
			cp "$module" "$out/in-tree"
			subjects+=("in-tree=$out/in-tree/sch_dualpi2.ko")
		else
			say "Linux' own dualpi2 is left out"
		fi
	fi
	counting total
	say "Linux $kernel: $((${#subjects[@]} + ${#others[@]})) qdiscs"
	scripts/run-vm.sh --virtual-time --kernel "$kernel" --memory 4G --timeout 3600 \
		"${plugin[@]}" -- env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 selftests/bench/instances.py run "${words[@]}" \
		"${subjects[@]}" "${others[@]}" >"$out/instances.json" || {
		cat "$out/instances.json" >&2
		die "Linux $kernel: no figures, for the reason above; what QEMU and the build need is installed by scripts/setup.sh"
	}
	exec python3 selftests/bench/instances.py judge "${judge[@]}" "$out/instances.json" "$out/instructions"
fi
if [ "$bench" = profile ]; then
	out=$DUALPI2_ROOT/build/bench/$kernel
	module=$(scripts/build-for.sh "$kernel" "build/$kernel")
	counting each
	say "Linux $kernel: $load"
	scripts/run-vm.sh --virtual-time --kernel "$kernel" --timeout 1800 \
		"${plugin[@]}" -- env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" python3 selftests/bench/profile.py --send "$load" "$module" \
		>"$out/profile.said" || {
		tail -n 5 "$out/profile.said" >&2
		die "Linux $kernel: nothing was counted, for the reason above; what QEMU and the build need is installed by scripts/setup.sh"
	}
	exec python3 selftests/bench/profile.py "$out/instructions" "$out/profile.said" "$module" "${function[@]}"
fi
if [ "$bench" = check ]; then
	for kernel in "${kernels[@]}"; do python3 selftests/bench/table.py --knows "$kernel"; done
elif [ -n "$save" ]; then
	[ "$without" = ' ' ] || die "--save-baseline counts pfifo and dualpi2 alone; leave --without out"
	bench=check
	judge+=(--save-baseline selftests/bench/baseline.json)
elif [ "$bench" = compare ]; then
	plotter=$DUALPI2_VENV/bin/python
	"$plotter" -c 'import matplotlib' 2>/dev/null ||
		die "matplotlib, which draws the plot, is missing; run scripts/setup.sh"
fi

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

# compared KERNEL: all qdiscs, or what the baseline is of.
compared() {
	local subjects=("pfifo=qdisc:pfifo") module in_tree kind
	module=$(scripts/build-for.sh "$1" "build/$1")
	if [ "$bench" = compare ]; then
		subjects+=("no qdisc=none")
		for kind in codel fq_codel pie fq cake; do
			[[ $without == *" $kind "* ]] || subjects+=("$kind=qdisc:$kind")
		done
		if [[ $without != *" in-tree "* ]]; then
			in_tree=$(scripts/in-tree.sh "$1") ||
				die "there is no dualpi2 of Linux $1 itself to compare with; leave it out by --without in-tree"
			# The machine sees the repository, but not the cache directory.
			mkdir -p "$out/$1/in-tree"
			cp "$in_tree" "$out/$1/in-tree"
			subjects+=("in-tree=in-tree:$out/$1/in-tree/sch_dualpi2.ko")
		fi
	fi
	subjects+=("dualpi2=$module")
	if [ "$bench" = companions ]; then
		subjects+=("no qdisc=none")
		make --no-print-directory extra-plugins >&2
		scripts/build-for.sh --extra "$1" "$out/$1/extra" >&2
		subjects+=("pi2=pi2:$DUALPI2_ROOT/$out/$1/extra/sch_pi2.ko" "ppv=ppv:$DUALPI2_ROOT/$out/$1/extra/sch_ppv.ko")
		for kind in csaqm vdq_csaqm; do subjects+=("$kind=$kind:$DUALPI2_ROOT/$out/$1/extra/sch_csaqm.ko"); done
	fi
	say "Linux $1: ${#subjects[@]} qdiscs, $repeat times"
	counted "$1" cost.py --set "$bench" "${subjects[@]}"
}

# counted KERNEL PROGRAM WORDS...: run a program of selftests/bench in that machine; its figures go to the results.
counted() {
	local kernel=$1 result=$out/$1/$bench.json
	mkdir -p "${result%/*}"
	shift
	scripts/run-vm.sh --virtual-time --kernel "$kernel" --timeout 7200 -- env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" \
		python3 "selftests/bench/$1" --repeat "$repeat" "${@:2}" >"$result" || {
		cat "$result" >&2 # the machine's words, whether it meant them for stderr or not
		die "Linux $kernel: no figures, for the reason above; what QEMU and the build need is installed by scripts/setup.sh"
	}
	results+=("$result")
}

# of_copy KERNEL DIR NAME: build the module from the sources in DIR, with the scripts of today, and print its path. DIR is
# within this repository, which is all that a build in another Debian tree sees.
of_copy() {
	local module=$DUALPI2_ROOT/$out/$1/$3/sch_dualpi2.ko made
	cp -r scripts "$2"
	made=$("$2/scripts/build-for.sh" "$1" "$2/build/$1")
	mkdir -p "${module%/*}"
	cp "$made" "$module"
	echo "$module"
}

# without_counters KERNEL: the module without the five lines of it that count packets.
without_counters() {
	local copy=$DUALPI2_ROOT/$out/source-no-stats
	rm -rf "$copy"
	mkdir "$copy"
	cp -r Kbuild include sch_dualpi2.c "$copy"
	sed -i -E '/^\t(stats->(arrived|marked|dropped|dropped_bytes)\[.*(\+\+|\+=).*|dualpi2_delay_add\(.*);$/d' "$copy/sch_dualpi2.c"
	[ "$(diff sch_dualpi2.c "$copy/sch_dualpi2.c" | grep -c '^<')" = 5 ] ||
		die "the lines of sch_dualpi2.c that count packets have changed; bring without_counters in bench.sh up to date"
	of_copy "$1" "$copy" no-stats
}

results=()
for kernel in "${kernels[@]}"; do
	if [ "$bench" = shaper ]; then
		module=$(scripts/build-for.sh "$kernel" "build/$kernel")
		say "Linux $kernel: the shapers of dualpi2 and cake, $repeat times"
		counted "$kernel" shaper.py "$module"
		continue
	fi
	if [[ $bench == @(compare|marking|companions|check) ]]; then
		compared "$kernel"
		continue
	fi
	subjects=("pfifo=qdisc:pfifo") variants=(now no-stats no-trace)
	[[ " ${judge[*]} " != *" --ktap "* ]] || subjects=() variants=(now no-stats)
	for variant in "${variants[@]}"; do
		case $variant in
		now) module=$(scripts/build-for.sh "$kernel" "build/$kernel") ;;
		no-stats) module=$(without_counters "$kernel") ;;
		# The kernel's own switch: its tracepoints, and the module's, are empty functions.
		no-trace) module=$(scripts/build-for.sh "$kernel" "$out/$kernel/no-trace" KCFLAGS=-DNOTRACE) ;;
		esac
		subjects+=("$variant=$module")
	done
	if [ -n "$old" ]; then
		module=$DUALPI2_ROOT/$out/$kernel/before-${old##*-}/sch_dualpi2.ko
		[ -e "$module" ] || module=$(of_copy "$kernel" "$old" "before-${old##*-}")
		subjects+=("before=$module")
	fi
	say "Linux $kernel: ${#subjects[@]} qdiscs, $repeat times"
	counted "$kernel" cost.py "${subjects[@]}"
done
if [ "$bench" = compare ]; then
	"$plotter" selftests/bench/plot.py "$out/compare.svg" "${results[@]}"
	python3 selftests/bench/table.py "${judge[@]}" "${results[@]}" | tee "$out/compare.md"
	exit
fi
python3 selftests/bench/table.py "${judge[@]}" "${results[@]}"
