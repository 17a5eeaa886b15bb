#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# upstream.sh - run the reproducers of docs/UPSTREAM.md on the plain kernel, in virtual time: with the in-tree dualpi2
# each prints what the document says of it, with this module what the document says of this one.
#
# usage: upstream.sh [--print]    --print: show all output

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../scripts/common.sh"

cd "$DUALPI2_ROOT"
# The tc of Linux 7.2, without the plugin.
mkdir -p build/upstream
cp "$(scripts/tc.sh)" build/upstream/tc
code=0
for which in in-tree module; do
	module=$DUALPI2_CACHE/debug-kernels/plain/net/sched/sch_dualpi2.ko
	[ $which = in-tree ] || module=$(scripts/build-for.sh plain build/plain)
	options=()
	# The in-tree dualpi2 warns in its change.
	[ $which = module ] || options=(--allow-warnings)
	# shellcheck disable=SC2016 # for the machine's shell
	scripts/run-vm.sh --kernel plain "${options[@]}" --root "$(scripts/root.sh bookworm test)" -- bash -c \
		'insmod "$1" && PATH=$PWD/build/upstream:$PATH selftests/upstream.py "${@:2}"' - "$module" $which "$@" || code=1
done
exit $code
