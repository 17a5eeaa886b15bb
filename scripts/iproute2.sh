#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# iproute2.sh - bring our dualpi2 front end to a source tree of iproute2: build tc with it, and
# write the change as a patch for git am. The tree itself stays as it is; nothing is installed.
# Where the tree has a dualpi2 of its own (6.18 and later), ours takes its place.
#
# usage: iproute2.sh [--tree DIR]... [--suite SUITE]... [OUTDIR]
#        --tree    an unpacked source tree
#        --suite   Debian's source of that suite; default: --suite bookworm
#        OUTDIR    gets dualpi2-for-iproute2-VERSION.patch and tc-VERSION; default: build/iproute2

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

patch=$DUALPI2_ROOT/iproute2-patch
outdir=$DUALPI2_ROOT/build/iproute2
trees=() suites=()
while [ $# -gt 0 ]; do
	case $1 in
	--tree | --suite)
		[ $# -ge 2 ] || die "$1 needs a value; usage: iproute2.sh [--tree DIR]... [--suite SUITE]... [OUTDIR]"
		if [ "$1" = --tree ]; then trees+=("$2"); else suites+=("$2"); fi
		shift
		;;
	-*) die "unknown option '$1'; usage: iproute2.sh [--tree DIR]... [--suite SUITE]... [OUTDIR]" ;;
	*) outdir=$1 ;;
	esac
	shift
done
[ ${#trees[@]} -gt 0 ] || [ ${#suites[@]} -gt 0 ] || suites=(bookworm)

for tool in git make gcc bison flex pkg-config; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
done
pkg-config --exists libmnl || die "libmnl-dev is missing; run scripts/setup.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$outdir"
outdir=$(cd "$outdir" && pwd -P)

# The same input gives the same patch: no time and no name of this machine in it.
date=${SOURCE_DATE_EPOCH:-$(git -C "$DUALPI2_ROOT" log -1 --format=%ct 2>/dev/null || echo 0)}
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
for role in AUTHOR COMMITTER; do
	export "GIT_${role}_NAME=dualpi2" "GIT_${role}_EMAIL=dualpi2@localhost" "GIT_${role}_DATE=@$date +0000"
done

# insert_before FILE REGEX TEXT: TEXT before the first line that matches.
insert_before() {
	REGEX=$2 TEXT=$3 awk '
		!done && $0 ~ ENVIRON["REGEX"] { print ENVIRON["TEXT"]; done = 1 }
		{ print }
		END { exit !done }' "$1" >"$work/edited" || die "$1 has no line like '$2'; this script does not know this version"
	cat "$work/edited" >"$1"
}

add_front_end() { # in the tree
	# As iproute2 has it: its own headers, and before 6.9 no const in struct qdisc_util.
	sed -e '/^#ifdef DUALPI2_PLUGIN$/,/^#else$/d' -e '0,/^#endif$/{/^#endif$/d}' \
		"$patch/tc/q_dualpi2.c" >tc/q_dualpi2.c
	grep -q 'const struct qdisc_util \*qu' tc/tc_util.h ||
		sed -i 's/const struct qdisc_util \*qu/struct qdisc_util *qu/' tc/q_dualpi2.c
	cp "$DUALPI2_ROOT/include/uapi/linux/dualpi2.h" include/uapi/linux/
	grep -q '^TCMODULES += q_dualpi2\.o$' tc/Makefile ||
		insert_before tc/Makefile '^TCMODULES \+= q_hhf\.o$' 'TCMODULES += q_dualpi2.o'
}

add_manual() {
	cp "$patch/man/man8/tc-dualpi2.8" man/man8/
	if ! grep -q 'dualpi2' man/man8/tc.8; then
		insert_before man/man8/tc.8 '^\[p\|b\]fifo$' "dualpi2
Dual Queue Coupled AQM lets L4S traffic, which needs hardly any queue, share a
link with all other traffic, each kind at its own delay.
.TP"
		insert_before man/man8/tc.8 '^\.BR tc-ematch \(8\),$' '.BR tc-dualpi2 (8),'
	fi
}

add_completion() {
	local options
	sed -i '/^        dualpi2)$/,/^            ;;$/d' bash-completion/tc
	options=$(sed -n '/^    # options$/,/^    # end$/p' "$patch/bash-completion/tc-dualpi2" |
		sed -e '1d' -e '$d' -e 's/^/        /')
	insert_before bash-completion/tc '^        fq\)$' "        dualpi2)
$options
            return 0
            ;;"
	# It looks for a name between blanks.
	sed -i -E "/^QDISC_KIND=/,/'\$/{s/ dualpi2//;s/^(.*[^ ]) ?'\$/\\1 dualpi2 '/}" bash-completion/tc
}

build() { # LOG, in a tree
	{
		# Without libbpf, which dualpi2 does not need; only what tc is made of.
		LIBBPF_FORCE=off ./configure && make -j"$(nproc)" SUBDIRS="lib tc"
	} >"$1" 2>&1 </dev/null || {
		tail -n 20 "$1" >&2
		die "cannot build tc of ${PWD##*/}"
	}
	! grep -E '(q_dualpi2\.c|dualpi2\.h):.*(warning|error)' "$1" >&2 || die "tc builds with the warnings above"
}

emit() { # TREE
	local version series=$work/series
	[ -f "$1/tc/tc_util.h" ] || die "$1 is not a source tree of iproute2"
	version=$(sed -n 's/^static const char version\[\] = "\([0-9.]*\)";$/\1/p' "$1/include/version.h")
	[ -n "$version" ] || die "$1/include/version.h names no version"
	say "iproute2 $version"

	rm -rf "$work/tree" "$work/again" "$series"
	mkdir "$work/tree"
	tar -C "$1" --exclude=.git --exclude=.pc -cf - . | tar -C "$work/tree" -xf -
	(
		cd "$work/tree"
		git init -q -b main .
		git add -fA
		git commit -q -m "iproute2 $version"
		add_front_end
		add_manual
		add_completion
		git add -fA
		git commit -q -F - <<-'END'
			tc: add dualpi2 with all options of the out-of-tree module

			The Dual Queue Coupled AQM of RFC 9332. Options, text, JSON and netlink
			attributes are those of Linux 6.17 and later; ramp, recur, random, l4s and
			statistics of each queue are added in an attribute of their own, which
			other versions of the kernel and of tc do not have.
		END
		git format-patch -q -1 --zero-commit --no-signature -o "$series"
		# What is delivered is what was tested: a second copy, with the patch from the file.
		git clone -q -n . "$work/again"
		cd "$work/again"
		git checkout -q main~1
		git am -q "$series"/*.patch || die "the patch for iproute2 $version does not apply"
		build "$work/build.log"
	)
	# Usage goes to stderr, with the exit code of a command that was not carried out.
	{ "$work/again/tc/tc" qdisc add dev lo root dualpi2 help 2>&1 || true; } | grep -q 'ramp TIME' ||
		die "the tc that was built does not know dualpi2's options"
	install -m 644 "$series"/*.patch "$outdir/dualpi2-for-iproute2-$version.patch"
	install -m 755 "$work/again/tc/tc" "$outdir/tc-$version"
	echo "$outdir/dualpi2-for-iproute2-$version.patch"
}

for suite in "${suites[@]}"; do
	"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work/$suite" "$suite" source iproute2
	tree=$(find "$work/$suite" -maxdepth 1 -type d -name 'iproute2-*' | sort -V | tail -n 1)
	[ -n "$tree" ] || die "the source of iproute2 from $suite left no directory iproute2-*; run again"
	trees+=("$tree")
done
for tree in "${trees[@]}"; do
	emit "$tree"
done
