#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run_kselftest.sh - run test programs one after another and print one KTAP result for each, as the kernel's
# run_kselftest.sh does. lib.mk calls it for "make run_tests"; "make install" lays it beside the installed tests.
#
# usage: run_kselftest.sh [-c COLLECTION]... [-t COLLECTION:PROGRAM]... [-l]    installed tests, default: all; -l lists them
#        run_kselftest.sh --programs PROGRAM...         programs of the current directory
#
# A program may take as many seconds as `timeout` in the file `settings` of its directory, 45 without one, or
# $kselftest_override_timeout. Its exit code 4 is a skip. Exit code: 0 if none failed.

set -u
export PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
number=0 failed=0

# run_one COLLECTION PROGRAM: in the current directory
run_one() {
	local name="selftests: $1: ${2##*/}" program=$2 limit='' code verdict=ok directive=''
	number=$((number + 1))
	[ ! -r settings ] || limit=$(sed -n 's/^timeout=//p' settings)
	limit=${kselftest_override_timeout:-${limit:-45}}
	[[ $program == */* ]] || program=./$program
	[ ! -e q_dualpi2.so ] || export TC_LIB_DIR=${TC_LIB_DIR:-$PWD}
	printf '# timeout set to %s\n# %s\n' "$limit" "$name"
	timeout --foreground --kill-after=10 "$limit" "$program" 2>&1 | sed -u 's/^/# /'
	code=${PIPESTATUS[0]}
	case $code in
	0) ;;
	4) directive=' # SKIP' ;;
	124 | 137) verdict='not ok' directive=" # TIMEOUT $limit seconds" ;;
	*) verdict='not ok' directive=" # exit=$code" ;;
	esac
	[ "$verdict" = ok ] || failed=1
	echo "$verdict $number $name$directive"
}

if [ "${1-}" = --programs ]; then
	shift
	printf 'TAP version 13\n1..%d\n' $#
	for program; do run_one "${PWD##*/}" "$program"; done
	exit $failed
fi

wanted=()
while getopts c:t:lh option; do
	case $option in
	c) wanted+=("$OPTARG:") ;;
	t) wanted+=("$OPTARG ") ;;
	l) exec cat "$here/kselftest-list.txt" ;;
	*) exec sed -n 's/^# \(usage:\|  *run_\)/\1/p' "$0" ;;
	esac
done
tests=()
while read -r entry; do
	[ ${#wanted[@]} -gt 0 ] || tests+=("$entry")
	for one in "${wanted[@]}"; do
		[[ "$entry " != "$one"* ]] || tests+=("$entry")
	done
done <"$here/kselftest-list.txt"
[ ${#tests[@]} -gt 0 ] || {
	echo "run_kselftest.sh: no such test; -l lists them" >&2
	exit 1
}
printf 'TAP version 13\n1..%d\n' ${#tests[@]}
for entry in "${tests[@]}"; do
	cd "$here/${entry%%:*}" || exit 1
	run_one "${entry%%:*}" "${entry#*:}"
done
exit $failed
