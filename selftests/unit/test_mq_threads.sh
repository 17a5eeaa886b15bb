#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
#
# test_mq_threads.sh - the clock that transmit queues share, with real threads and gcc's thread sanitizer. A copy of the
# header whose hands are moved without an atomic operation must fail. KTAP on stdout.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

unit=$DUALPI2_ROOT/selftests/unit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run HEADERS: address randomization off, which gcc 12's sanitizer does not always bear.
run() {
	gcc -std=gnu11 -O1 -g -fsanitize=thread -Wall -Wextra -I"$unit/include" -I"$1" -o "$work/threads" "$unit/mq_threads.c" \
		-lpthread
	TSAN_OPTIONS=exitcode=66 setarch -R "$work/threads" 2>&1
}

plain_addition() {
	cp -r "$DUALPI2_ROOT/include" "$work/include"
	sed -i 's/return atomic64_fetch_add_relaxed(time_ns, hand);/return (hand->counter += time_ns) - time_ns;/' \
		"$work/include/net/dualpi2_mq.h"
	! cmp -s "$work/include/net/dualpi2_mq.h" "$DUALPI2_ROOT/include/net/dualpi2_mq.h" || return 1
	! run "$work/include" >"$work/log" || return 1
	grep -q 'data race' "$work/log"
}

plan 2
check mq_threads_without_data_races run "$DUALPI2_ROOT/include"
check mq_threads_with_a_plain_addition_found plain_addition
[ -z "$failed" ]
