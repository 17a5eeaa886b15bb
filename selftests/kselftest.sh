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

cd "$DUALPI2_ROOT"
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
	# shellcheck disable=SC2016 # for the shell in the machine
	scripts/run-vm.sh --kernel "${kernel%/*}" --memory 2G --timeout 7200 -- bash -c '
		insmod "$1" && exec env -i PATH="$PATH" HOME="$HOME" LANG="$LANG" KSFT_MACHINE_SLOW=yes \
			kselftest_override_timeout=1200 make --no-print-directory -C selftests ${2:+"TARGETS=$2"} run_tests' \
		- "$module" "${TARGETS-}" || failed=1
done
exit $failed
