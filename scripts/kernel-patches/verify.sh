#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# verify.sh - apply the series to kernel trees and check what comes out: no trace of other kernels, checkpatch.pl,
# the netlink specification, and objects for four architectures by Debian's cross compilers. KTAP on stdout.
#
# usage: verify.sh [KERNEL[/ARCH]]...      default: 6.12 and 7.2, each for x86_64, arm64, arm and mips; ARCH none: no
#                                          objects
#
# The trees and logs stay in build/kernel-patches/verify; boot.sh boots kernels of these trees.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../ktap.sh"
# shellcheck source=scripts/kernel-patches/trees.sh
. "$(dirname "$0")/trees.sh"

# The files that the series write, in the directory that we are in.
written() { sed -n 's,^+++ b/,,p' "$series"/*/0*.patch | sort -u; }

no_trace_of_other_kernels() {
	local found
	cd "$tree"
	found=$(written | grep -E '\.[ch]$' | grep -v -E '^(include/net/tcp\.h|net/ipv4/tcp_output\.c|tools/)' |
		{ xargs grep -n -E 'compat_|_HAVE_|KERNEL_VERSION|DUALPI2_DEBUG|DUALPI2_TIME_SHIFT|MODULE_VERSION|<compat/|<qdisc/' || true; })
	echo "$found"
	[ -z "$found" ]
}
complete() {
	local part
	for part in Documentation/networking/dualpi2.rst tools/testing/selftests/net/dualpi2/{Makefile,options.c,packets.py,tcp.sh,tdc.sh} \
		include/uapi/linux/dualpi2.h tools/testing/selftests/tc-testing/tc-tests/qdiscs/dualpi2.json; do
		[ -e "$tree/$part" ] || { echo "$part is missing" && return 1; }
	done
	grep -q 'sch_dualpi2.o' "$tree/net/sched/Makefile"
	grep -q '^config NET_SCH_DUALPI2' "$tree/net/sched/Kconfig"
	grep -q '^DUALPI2 QDISC' "$tree/MAINTAINERS"
	grep -q 'net/dualpi2' "$tree/tools/testing/selftests/Makefile"
	grep -q 'dualpi2-ext-attrs' "$tree/Documentation/netlink/specs/tc.yaml"
}
checkpatch() {
	(cd "$tree" && find "$series" -name '0*.patch' ! -name '0000-*' -exec perl scripts/checkpatch.pl --strict --no-summary -q {} +)
}
# The tree's tools read the specification by its schema; from 7.0 on they make C of it, which compiles.
specification() {
	local ynl=$tree/tools/net/ynl cli
	cli=$(find "$ynl" -name cli.py)
	"$cli" --spec "$tree/Documentation/netlink/specs/tc.yaml" --list-ops
	[ "$cli" = "$ynl/cli.py" ] || make -s -C "$ynl/generated" tc-user.o
}
has_prague() { [ -e "$tree/net/ipv4/tcp_prague.c" ]; }
# object y|m: no message of compiler or sparse about a file of ours
object() {
	local out=$work/$arch/object-$1 said targets=(net/sched/sch_dualpi2.o) options=("${objects[@]}" "CONFIG_NET_SCH_DUALPI2=$1")
	[ "$1" = m ] || options+=(CONFIG_DEFAULT_DUALPI2=y)
	! has_prague || options+=("CONFIG_TCP_CONG_PRAGUE=$1")
	! has_prague || targets+=(net/ipv4/tcp_prague.o)
	configure "$tree" "$arch" "object-$1" "${options[@]}"
	[ "$1" = m ] || grep -x 'CONFIG_DEFAULT_NET_SCH="dualpi2"' "$out/.config"
	said=$(kmake "$tree" "$arch" "$out" W=1 C=1 "${targets[@]}" 2>&1) || { echo "$said" && return 1; }
	echo "$said" >"$out.log"
	in_cross readelf -h "$out/net/sched/sch_dualpi2.o" | grep -E 'Class|Data|Machine'
	! grep -E '(dualpi2|prague).*(warning|error)' <<<"$said"
}

[ $# -gt 0 ] || set -- 6.12 7.2
fetch_sparse
plan
for target; do
	kernel=${target%%/*}
	architectures=(x86_64 arm64 arm mips)
	[ "$kernel" = "$target" ] || architectures=("${target#*/}")
	[ "${architectures[0]}" != none ] || architectures=()
	check "${kernel}_series_apply" apply "$kernel"
	tree=$work/$kernel/tree series=$DUALPI2_ROOT/build/kernel-patches/$kernel work=$work/$kernel
	check "${kernel}_all_parts_in_place" complete
	check "${kernel}_no_trace_of_other_kernels" no_trace_of_other_kernels
	check "${kernel}_checkpatch_strict_has_no_finding" checkpatch
	check "${kernel}_netlink_specification_valid" specification
	for arch in "${architectures[@]}"; do
		for how in y m; do check "${kernel}_${arch}_${how}_without_a_warning" object $how; done
	done
	work=${work%/*}
done
plan "$number"
[ -z "$failed" ]
