# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# ktap.sh - the KTAP of all tests that are shell scripts. Sourced, after common.sh; the script that sources it begins
# with plan and ends with: [ -z "$failed" ]

number=0
# shellcheck disable=SC2034 # for the script that sources this
failed=''

# plan [N]: how many tests there will be; without a number it is printed at the end, by "plan $number".
plan() {
	[ "$number" -ne 0 ] || echo "KTAP version 1"
	[ -z "${1-}" ] || echo "1..$1"
}

# result NAME CODE [TEXT]: 0 passed, 77 skipped because of TEXT, else failed; TEXT is shown if it did.
result() {
	number=$((number + 1))
	case $2 in
	0) echo "ok $number - $1" ;;
	77) echo "ok $number - $1 # SKIP ${3-}" ;;
	*)
		printf '%s\n' "${3-}" | tail -n 40 | sed 's/^/# /'
		# The whole program: its tests build on one another.
		repeat=${DUALPI2_REPEAT:-$0}
		echo "# repeat: ${repeat% -k}"
		echo "not ok $number - $1"
		# shellcheck disable=SC2034
		failed=1
		;;
	esac
}

# check NAME COMMAND...: a test; what the command prints is shown if it fails. Code 77 is a skip, for want of
# something that the mirror does not have.
check() {
	local name=$1 code errexit='' said
	shift
	[[ $- != *e* ]] || errexit=1
	# Into a file, because what the command leaves running would hold a pipe open; not in a condition, where set -e would
	# not count.
	said=$(mktemp)
	set +e
	(
		[ -z "$errexit" ] || set -e
		"$@"
	) >"$said" 2>&1
	code=$?
	[ -z "$errexit" ] || set -e
	[ "$code" -ne 77 ] || echo "the mirror lists its source but does not have it" >"$said"
	result "$name" "$code" "$(cat "$said")"
	rm -f "$said"
}
