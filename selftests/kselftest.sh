#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kselftest.sh - run `make -C selftests run_tests` as a user does, on a stock kernel in real time: a dualpi2 is loaded,
# and no variable says that this is a machine of the project. Emulation is slow, so KSFT_MACHINE_SLOW is set and programs
# get ten times the time of their `settings`.
#
# usage: kselftest.sh [KERNEL | KERNEL/in-tree]...
#        KERNEL as for kernel.sh, default 6.1; with /in-tree the kernel's own dualpi2, from 6.17 on
#        TARGETS: the directories, default: those of the Makefile

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../scripts/ktap.sh"

cd "$DUALPI2_ROOT"

# Of the first network namespace; what counts by itself is left out.
host() {
	ip -o link
	ip address
	tc qdisc
	ip netns
	sysctl -a --pattern '^(kernel|net)\.' 2>/dev/null | grep -v -E '^kernel\.(ns_last_pid|random\.|pty\.nr)|_count = '
}

if [ "${1-}" = --in-machine ]; then
	insmod "$2"
	before=$(host)
	code=0
	env -i PATH="$PATH" HOME="$HOME" LANG="$LANG" KSFT_MACHINE_SLOW=yes kselftest_override_timeout=1200 \
		make --no-print-directory -C selftests ${3:+"TARGETS=$3"} run_tests || code=1
	# A module that was loaded may have brought settings of its own: only what was there must be the same.
	mapfile -t changed < <(comm -23 <(sort <<<"$before") <(host | sort))
	plan 1
	result kselftest_changes_no_setting_of_the_host $((${#changed[@]} > 0)) "${changed[*]}"
	[ -z "$failed" ] || code=1
	exit $code
fi

[ $# -gt 0 ] || set -- 6.1
make --no-print-directory -C selftests all >&2
failed=0
for kernel; do
	if [[ $kernel == */in-tree ]]; then
		module=$(scripts/in-tree.sh "${kernel%/*}")
	else
		module=$(scripts/build-for.sh "$kernel" "build/$kernel")
	fi
	say "Linux $kernel, $module"
	stamp=$(mktemp)
	scripts/run-vm.sh --kernel "${kernel%/*}" --memory 2G --timeout 7200 -- bash selftests/kselftest.sh --in-machine \
		"$module" "${TARGETS-}" || failed=1
	written=$(find . \( -path ./build -o -path ./.git \) -prune -o -newer "$stamp" -type f -print)
	rm "$stamp"
	[ -z "$written" ] || { say "the tests wrote to the source tree: $written"; failed=1; }
done
exit $failed
