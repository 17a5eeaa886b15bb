#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# soak.sh - virtual hours of traffic through one dualpi2 (selftests/lab/soak.py), in user-mode Linux without
# sanitizers, about 20 to 30 times as fast as the clock. A machine runs up to 12 hours with one qdisc. What is done
# stays in build/soak, one line an hour, and a later call goes on with the next hour, for the same module.
#
# usage: soak.sh [HOURS]       in all, those done before included; default 24
#        soak.sh --report      only say what has been done

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

part=12
hours=24 report_only=''
case ${1-} in
'') ;;
--report) report_only=1 ;;
*[!0-9]* | 0*) die "'$1' is no number of hours; usage: soak.sh [HOURS] | --report" ;;
*) hours=$1 ;;
esac
cd "$DUALPI2_ROOT"

work=$DUALPI2_ROOT/build/soak
mkdir -p "$work"
exec 7>"$work/lock"
[ -n "$report_only" ] || flock -n 7 || die "another soak.sh is at work here"
# Hours of another module do not count.
of=$(cat sch_dualpi2.c include/*/*.h include/uapi/linux/*.h | cksum | cut -d' ' -f1)
log=$work/hours-$of
touch "$log"

report() {
	python3 - "$log" <<-'END'
		import json, sys
		hours = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
		missed = [f"hour {h['hour']}: {m}" for h in hours for m in h["missed"]]
		for case in hours[0]["legs"] if hours else ():
		    legs = [h["legs"][case] for h in hours]
		    print(f"# {case}: " + ", ".join(
		        f"{key} {min(leg[key] for leg in legs):.4g} to {max(leg[key] for leg in legs):.4g}" for key in legs[0]))
		# A machine's memory at the end of each of its hours but the first, when all caches are filled.
		runs, before = [], 0
		for h in hours:
		    if not runs or h["uptime_s"] < before:
		        runs.append((h["hour"], []))
		    before = h["uptime_s"]
		    runs[-1][1].append(h["memory_kb"])
		for first, held in runs:
		    held = held[1:] or held
		    print(f"# memory from hour {first} on, kB: {held[0]} ... {held[-1]}, at most {max(held)}")
		    if len(held) > 2 and max(held[len(held) // 2:]) > 1.1 * max(held[:len(held) // 2]):
		        missed.append(f"memory of the machine from hour {first} on grew: {held}")
		for text in missed:
		    print(f"# MISSED {text}")
		print(f"{len(hours)} hours, {len(missed)} missed")
		sys.exit(1 if missed or not hours else 0)
	END
}
if [ -n "$report_only" ]; then
	report
	exit
fi

vm=''
trap '[ -z "$vm" ] || { kill "$vm"; wait "$vm"; }' EXIT
trap 'exit 130' INT TERM HUP
scripts/setup.sh
module=$(scripts/build-for.sh plain "$DUALPI2_ROOT/build/plain")
make --no-print-directory plugin >&2
mkdir -p build/lab
cc -std=gnu11 -O2 -Wall -o build/lab/delaymeter selftests/lab/delaymeter.c
while done_hours=$(wc -l <"$log") && [ "$done_hours" -lt "$hours" ]; do
	first=$((done_hours + 1))
	last=$(((done_hours / part + 1) * part))
	[ "$last" -le "$hours" ] || last=$hours
	say "hours $first to $last of $hours (2 to 3 minutes each)"
	scripts/run-vm.sh --kernel plain --memory 2G --timeout 86400 -- \
		env TC_LIB_DIR="$DUALPI2_ROOT/build/tc" "$DUALPI2_CACHE/venv/bin/python" selftests/lab/soak.py \
		--first "$first" --last "$last" --module "$module" --delaymeter "$DUALPI2_ROOT/build/lab/delaymeter" \
		--out "$log" >"$work/last.log" 2>&1 7>&- &
	vm=$!
	wait "$vm" || { tail -n 5 "$work/last.log" >&2; die "hours $first to $last ended early; see $work/last.log"; }
	vm=''
done
report
