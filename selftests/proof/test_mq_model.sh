#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: long
#
# test_mq_model.sh - spin's exhaustive search of mq.pml, and a fault for each of its claims that it must find. Three
# queues with both kinds of packets are too many states; so three queues with one kind, and two with both. KTAP on stdout.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

model=$DUALPI2_ROOT/selftests/proof/mq.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

search() { # OPTIONS...: search all states
	spin "$@" -a "$model"
	gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1500 -o pan pan.c
	./pan -m200000 >log
	cat log
}

holds() {
	search "$@"
	grep -q 'errors: 0$' log && ! grep -qE 'max search depth too small|out of memory' log
}

finds() { # FAULT CLAIM OPTIONS...
	local fault=$1 claim=$2
	shift 2
	search "-DFAULT=$fault" "$@"
	grep -qF "assertion violated $claim" log
}

plan 9
check mq_model_three_queues_classic holds -DL4S=0
check mq_model_three_queues_l4s holds -DCLASSIC=0
check mq_model_two_queues_both holds -DQUEUES=2
check mq_model_two_queues_two_classic_packets holds -DQUEUES=2 -DCLASSIC=2 -DL4S=0
check mq_model_finds_a_hand_that_falls finds 1 '(l_hand<=' -DCLASSIC=0
check mq_model_finds_reservations_that_overlap finds 2 ' !(taken' -DCLASSIC=0
check mq_model_finds_a_packet_that_does_not_wait finds 3 '((c_sent+l_sent)<=' -DCLASSIC=3 -DQUEUES=2 -DEND=0
check mq_model_finds_time_that_is_not_counted finds 4 '(used==l_sent)' -DQUEUES=2
check mq_model_finds_a_queue_that_stays_counted finds 5 '(waiting==0)' -DQUEUES=2
[ -z "$failed" ]
