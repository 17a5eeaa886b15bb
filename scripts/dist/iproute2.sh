#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# iproute2.sh - bring our dualpi2 front end to source trees of iproute2: build tc with it, and write
# the change as a patch for git am. A tree itself stays as it is; nothing is installed.
# Where the tree has a dualpi2 of its own (6.18 and later), ours takes its place.
#
# usage: iproute2.sh [--refresh] [--fetch] [--tree DIR]... [--suite SUITE]... [OUTDIR]
#        --tree     an unpacked source tree
#        --suite    Debian's source of that suite, which is fetched and built once and kept in the
#                   cache directory; default: those of the releases in suites.toml, which are
#                   5.10, 6.1, 6.15 and 7.2, as far as the mirror has them
#        --refresh  fetch them again
#        --fetch    only fetch them
#        OUTDIR     gets dualpi2-for-iproute2-VERSION.patch and tc-VERSION; default: build/iproute2
#
# Prints the paths of the patches. Exit code 77: a suite that was named has no source on the mirror.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

usage='usage: iproute2.sh [--refresh] [--fetch] [--tree DIR]... [--suite SUITE]... [OUTDIR]'
patch=$DUALPI2_ROOT/iproute2-patch
cache=$DUALPI2_CACHE/iproute2
outdir=$DUALPI2_ROOT/build/iproute2
trees=() suites=() refresh='' only_fetch='' named=1
while [ $# -gt 0 ]; do
	case $1 in
	--tree | --suite)
		[ $# -ge 2 ] || die "$1 needs a value; $usage"
		if [ "$1" = --tree ]; then trees+=("$2"); else suites+=("$2"); fi
		shift
		;;
	--refresh) refresh=1 ;;
	--fetch) only_fetch=1 ;;
	-*) die "unknown option '$1'; $usage" ;;
	*) outdir=$1 ;;
	esac
	shift
done
if [ ${#trees[@]} -eq 0 ] && [ ${#suites[@]} -eq 0 ]; then
	mapfile -t suites < <(releases)
	named=''
fi

need git make gcc bison flex pkg-config
pkg-config --exists libmnl || die "libmnl-dev is missing; run scripts/setup.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$outdir" "$cache"
outdir=$(cd "$outdir" && pwd -P)

# The same input gives the same patch: no time and no name of this machine in it.
date=$(source_date)
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
	cp "$patch"/tc/q_dualpi2_*.h "$patch/tc/qdisc_options.h" tc/
	grep -q 'const struct qdisc_util \*qu' tc/tc_util.h ||
		sed -i 's/const struct qdisc_util \*qu/struct qdisc_util *qu/' tc/q_dualpi2*.[ch]
	cp "$DUALPI2_ROOT"/include/uapi/linux/dualpi2*.h include/uapi/linux/
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
	sed -i -E '/^        dualpi2(\|dualpi2_mq)?\)$/,/^            ;;$/d' bash-completion/tc
	options=$(sed -n '/^    # options$/,/^    # end$/p' "$patch/bash-completion/tc-dualpi2" |
		sed -e '1d' -e '$d' -e 's/^/        /')
	insert_before bash-completion/tc '^        fq\)$' "        dualpi2|dualpi2_mq)
$options
            return 0
            ;;"
	# It looks for a name between blanks.
	sed -i -E "/^QDISC_KIND=/,/'\$/{s/ dualpi2(_mq)?//g;s/^(.*[^ ]) ?'\$/\\1 dualpi2 dualpi2_mq '/}" bash-completion/tc
}

build() { # LOG, in a tree
	{
		# Without libbpf, which dualpi2 does not need; only what tc is made of. What old releases try without the right
		# headers has to compile with gcc 14, too.
		{ [ -e config.mk ] || CC='gcc -Wno-error=implicit-function-declaration' LIBBPF_FORCE=off ./configure; } && make -j"$(nproc)" SUBDIRS="lib tc"
	} >"$1" 2>&1 </dev/null || {
		tail -n 20 "$1" >&2
		die "cannot build tc of ${PWD##*/}"
	}
}

# From the directory's name: version.h of 5.10.0 says 5.9.0.
version_of() { # TREE
	local name=${1##*/iproute2-}
	[[ $name =~ ^[0-9]+(\.[0-9]+)+$ ]] ||
		name=$(sed -n 's/^static const char version\[\] = "\([0-9.]*\)";$/\1/p' "$1/include/version.h")
	[ -n "$name" ] || die "$1/include/version.h names no version"
	echo "$name"
}

# A repository of git with the tree in it, and in .git/dualpi2-version its version.
import() { # TREE REPOSITORY
	[ -f "$1/tc/tc_util.h" ] || die "$1 is not a source tree of iproute2"
	rm -rf "$2"
	mkdir "$2"
	tar -C "$1" --exclude=.git --exclude=.pc -cf - . | tar -C "$2" -xf -
	(
		cd "$2"
		git init -q -b main .
		git add -fA
		git commit -q -m "iproute2"
		version_of "$1" >.git/dualpi2-version
	)
}

# The tree of a suite, with its stock tc built, so that only what we change has to be. Returns 77
# where the mirror lists a source that it does not have, and asks again only for --refresh.
import_suite() ( # SUITE
	repository=$cache/$1 missing=$cache/$1.missing
	exec 7>"$repository.lock"
	flock 7
	lock=$(locked "$1" src:iproute2)
	if [ -z "$refresh" ]; then
		[ ! -e "$repository/.git/dualpi2-lock" ] || [ "$(cat "$repository/.git/dualpi2-lock")" != "$lock" ] || return 0
		[ ! -e "$missing" ] || return 77
	fi
	say "fetching iproute2 of $1"
	rm -f "$missing"
	if ! "$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work/$1" "$1" source iproute2 2>"$work/fetch.log" 7>&-; then
		cat "$work/fetch.log" >&2
		grep -q '404 *Not Found\|Unable to find a source package' "$work/fetch.log" ||
			die "cannot fetch the source of iproute2 from $1; check the network and run again"
		mv "$work/fetch.log" "$missing"
		return 77
	fi
	tree=$(find "$work/$1" -maxdepth 1 -type d -name 'iproute2-*' | sort -V | tail -n 1)
	[ -n "$tree" ] || die "the source of iproute2 from $1 left no directory iproute2-*; run again"
	import "$tree" "$repository.new"
	cd "$repository.new"
	build "$repository.log"
	echo "$lock" >.git/dualpi2-lock
	rm -rf "$repository"
	mv "$repository.new" "$repository"
)

emit() { # REPOSITORY
	local version series=$work/series
	version=$(cat "$1/.git/dualpi2-version")
	say "iproute2 $version"

	rm -rf "$work/tree" "$work/again" "$series"
	git clone -q "$1" "$work/tree"
	# What is delivered is what was tested: a second copy, with the patch from the file.
	cp -a "$1" "$work/again"
	(
		cd "$work/tree"
		add_front_end
		add_manual
		add_completion
		git add -fA
		git commit -q -F - <<-END
			tc: add dualpi2 with all options of the out-of-tree module

			The Dual Queue Coupled AQM of RFC 9332. Options, text, JSON and netlink
			attributes are those of Linux 6.17 and later. Added in attributes of their own,
			which other versions of the kernel and of tc do not have, are statistics of each
			queue and

			$("$DUALPI2_ROOT/scripts/gen-options.py" --extension)
		END
		git format-patch -q -1 --zero-commit --no-signature -o "$series"
		cd "$work/again"
		git am -q "$series"/*.patch || die "the patch for iproute2 $version does not apply"
		rm -f tc/q_dualpi2.o tc/tc
		build "$work/build.log"
		! grep -E '(q_dualpi2[a-z_]*\.[ch]|qdisc_options\.h|dualpi2(_options)?\.h):.*(warning|error)' "$work/build.log" >&2 ||
			die "tc $version builds with the warnings above"
	)
	# Usage goes to stderr, with the exit code of a command that was not carried out.
	{ TC_LIB_DIR=/nonexistent "$work/again/tc/tc" qdisc add dev lo root dualpi2 help 2>&1 || true; } |
		grep -q 'ramp TIME' || die "the tc $version that was built does not know dualpi2's options"
	install -m 644 "$series"/*.patch "$outdir/dualpi2-for-iproute2-$version.patch"
	install -m 755 "$work/again/tc/tc" "$outdir/tc-$version"
	echo "$outdir/dualpi2-for-iproute2-$version.patch"
}

lacking=()
for suite in "${suites[@]}"; do
	# Not in a condition, where set -e would not count.
	set +e
	(
		set -e
		import_suite "$suite"
	)
	code=$?
	set -e
	case $code in
	0) [ -n "$only_fetch" ] || emit "$cache/$suite" ;;
	77) lacking+=("$suite") ;;
	*) exit "$code" ;;
	esac
done
for tree in "${trees[@]}"; do
	tree=$(realpath -e "$tree")
	import "$tree" "$work/imported"
	emit "$work/imported"
done
if [ ${#lacking[@]} -gt 0 ]; then
	say "the mirror lists but does not have the source of iproute2 in ${lacking[*]}: no patch for it;" \
		"name another mirror in DUALPI2_MIRROR and run again with --refresh, or an unpacked source with --tree"
	[ -z "$named" ] || exit 77
fi
