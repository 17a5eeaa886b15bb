# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# lib.sh - what net/dualpi2 uses of the kernel's file of this name. Own code.

# shellcheck disable=SC2034 # for those who source it
ksft_skip=4
NS_LIST=()

# setup_ns VARIABLE...: a network namespace each, and its name in the variable.
setup_ns() {
	local variable
	for variable; do
		printf -v "$variable" %s "$variable-$(mktemp -u XXXXXX)"
		ip netns add "${!variable}" || return
		NS_LIST+=("${!variable}")
		ip -n "${!variable}" link set lo up
	done
}

cleanup_all_ns() {
	local ns
	for ns in "${NS_LIST[@]}"; do
		ip netns pids "$ns" | xargs -r kill
		ip netns delete "$ns"
	done
	NS_LIST=()
}

# slowwait SECONDS COMMAND...: until the command succeeds.
slowwait() {
	local seconds=$1 begun=$SECONDS
	shift
	until "$@"; do
		[ $((SECONDS - begun)) -le "$seconds" ] || return 1
		sleep 0.1
	done
}
