#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
#
# test_coverage.sh - do the unit tests reach every line of the algorithm, and 95 % of its branches, in each header? A
# header without figures was not reached and fails both. KTAP on stdout.
#
# usage: test_coverage.sh [extra]	of the headers in extra

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

unit=$DUALPI2_ROOT/selftests/unit
found=$(make --no-print-directory -s -C "$unit" SUBJECT="${1-}" coverage)
headers=$(sed -n 's/ headers$//p' <<<"$found")

reached() { # Lines|Branches PERCENT: at least so much of each header
	printf '%s\n' "$found" | awk -F '[ :%]+' -v what="$1" -v least="$2" -v headers="$headers" '
		$1 == what && $2 == "executed" { number++; if ($3 + 0 < least) { print; low = 1 } }
		what == "Branches" && $1 == "No" && $2 == "branches" { number++ }
		END { print number + 0 " of " headers " headers have figures"; exit low || number != headers }'
}

printf '%s\n' "$found" | sed 's/^/# /'
plan 2
check algorithm_lines_all_reached reached Lines 100
check algorithm_branches_reached reached Branches 95
[ -z "$failed" ]
