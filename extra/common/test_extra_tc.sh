#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
#
# test_extra_tc.sh - the self-check of the tc plugins of csaqm, vdq_csaqm and ppv, with sanitizers. KTAP on stdout.
# It needs a compiler and tc, and no root and no kernel. CC names the compiler.

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd -P)
extra=$root/extra
extra_dirs=("$extra"/*/)
export PATH=$PATH:/usr/sbin:/sbin
command -v tc >/dev/null || {
	echo "test_extra_tc.sh: tc is missing; install iproute2" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {
	"${CC:-gcc}" -std=gnu11 -Wall -Wextra -Werror "${extra_dirs[@]/#/-I}" "-I$root/include/uapi" \
		"-I$root/iproute2-patch/tc" "$@"
}
sanitized=(-g -O1 -fsanitize=address -fsanitize=undefined -fsanitize=float-cast-overflow -fno-sanitize-recover=all)

# The stubs of tc come with tests of dualpi2 that nobody calls here, and these want its plugin.
compile "${sanitized[@]}" -c -DDUALPI2_PLUGIN -o "$work/q_dualpi2.o" "$root/iproute2-patch/tc/q_dualpi2.c"
compile "${sanitized[@]}" -Wno-unused-function "-I$root/selftests/unit/include" "-I$root/include" \
	-o "$work/test_tc" "$extra/common/test_tc.c" "$extra/csaqm/q_csaqm.c" "$extra/ppv/q_ppv.c" "$work/q_dualpi2.o" -lm

# As the Makefile builds them.
mkdir "$work/tc"
for name in csaqm ppv; do
	compile -O2 -fPIC -shared -o "$work/tc/q_$name.so" "$extra/$name/q_$name.c" -lm
done
ln -s q_csaqm.so "$work/tc/q_vdq_csaqm.so"
"$work/test_tc" "$extra/csaqm/tc-csaqm.8" "$extra/ppv/tc-ppv.8" "$work/tc"
