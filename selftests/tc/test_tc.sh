#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
#
# test_tc.sh - the self-check of the tc front end, with sanitizers. KTAP on stdout.
# It needs a compiler and no root, no tc and no kernel. CC names the compiler.
#
# usage: test_tc.sh

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd -P)
patch=$root/iproute2-patch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {
	"${CC:-gcc}" -std=gnu11 -g -O1 -Wall -Wextra -Werror \
		-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
		-DDUALPI2_PLUGIN "-I$root/include/uapi" "-I$patch/tc" "$@"
}
compile -o "$work/test_q_dualpi2" "$root/selftests/tc/test_q_dualpi2.c" "$patch/tc/q_dualpi2.c"
base64 -d "$root/selftests/tc/recorded/link.b64" >"$work/recording"
"$work/test_q_dualpi2" "$patch/man/man8/tc-dualpi2.8" "$patch/bash-completion/tc-dualpi2" "$work/recording"
