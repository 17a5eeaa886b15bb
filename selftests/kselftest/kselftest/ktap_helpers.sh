# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# ktap_helpers.sh - what net/dualpi2 uses of the kernel's file of this name. Own code.

KTAP_TESTNO=1
ktap_planned=0 ktap_failed=''

ktap_print_header() { echo "TAP version 13"; }

ktap_print_msg() { echo "# $*"; }

ktap_set_plan() {
	ktap_planned=$1
	echo "1..$1"
}

ktap_skip_all() { echo "1..0 # SKIP $*"; }

ktap_test_pass() { echo "ok $((KTAP_TESTNO++)) $1"; }

ktap_test_skip() { echo "ok $((KTAP_TESTNO++)) $1 # SKIP"; }

ktap_test_xfail() { echo "ok $((KTAP_TESTNO++)) $1 # XFAIL"; }

ktap_test_fail() {
	ktap_failed=1
	echo "not ok $((KTAP_TESTNO++)) $1"
}

ktap_finished() {
	[ -z "$ktap_failed" ] && [ "$KTAP_TESTNO" -eq $((ktap_planned + 1)) ]
	exit
}
