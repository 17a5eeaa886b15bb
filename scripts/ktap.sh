# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# ktap.sh - KTAP results of tests that are shell functions. Sourced, after common.sh; the script that
# sources it prints the plan and ends with: [ -z "$failed" ]

number=0
# shellcheck disable=SC2034 # for the script that sources this
failed=''
# check NAME COMMAND...: a test; what the command says is shown if it fails. Code 77 is a skip, for want
# of something that the mirror does not have.
check() {
	local name=$1 code said
	number=$((number + 1))
	shift
	said=$(mktemp)
	# Not in a condition, where set -e would not count.
	set +e
	(set -e; "$@") >"$said" 2>&1
	code=$?
	set -e
	case $code in
	0) echo "ok $number - $name" ;;
	77) echo "ok $number - $name # SKIP the mirror lists its source but does not have it" ;;
	*)
		tail -n 30 "$said" | sed 's/^/# /'
		echo "not ok $number - $name"
		# shellcheck disable=SC2034
		failed=1
		;;
	esac
	rm -f "$said"
}
