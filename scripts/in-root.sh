#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# in-root.sh - run a command inside a Debian tree (root.sh), in mounts and processes of its own that
# vanish with it. The tree stays as it is. The repository and the cache directory are there too, at
# their own paths, and can be written to.
#
# usage: in-root.sh [--scratch DIR] [--offline] ROOT COMMAND [ARGUMENTS]
#          --scratch DIR  keep what the command changes in the tree in DIR/upper, for the next call;
#                         otherwise it is lost
#          --offline      no network but loopback

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: in-root.sh [--scratch DIR] [--offline] ROOT COMMAND [ARGUMENTS]'
scratch='' offline=''
while [ $# -gt 0 ]; do
	case $1 in
	--scratch)
		[ $# -ge 2 ] || die "--scratch needs a directory; $usage"
		scratch=$2
		shift
		;;
	--offline) offline=1 ;;
	-*) die "unknown option '$1'; $usage" ;;
	*) break ;;
	esac
	shift
done
[ $# -ge 2 ] || die "$usage"
[ "$(id -u)" = 0 ] || die "entering a Debian tree needs root; run as root"

if [ "${DUALPI2_IN_ROOT-}" != "$$" ]; then
	[ -x "$1/bin/sh" ] || die "$1 is no Debian tree; make one with scripts/root.sh"
	# exec keeps the process number, by which the second pass knows itself.
	export DUALPI2_IN_ROOT=$$
	exec unshare --mount --propagation private ${offline:+--net} \
		"$0" ${scratch:+--scratch "$scratch"} ${offline:+--offline} "$@"
fi
unset DUALPI2_IN_ROOT
[ -z "$offline" ] || ip link set lo up

root=$(realpath -e "$1")
shift
if [ -z "$scratch" ]; then
	scratch=$DUALPI2_CACHE/roots/scratch
	mkdir -p "$scratch"
	mount -t tmpfs scratch "$scratch"
fi
mkdir -p "$scratch"/{upper,work,merged}
scratch=$(realpath -e "$scratch")
mount -t overlay -o "lowerdir=$root,upperdir=$scratch/upper,workdir=$scratch/work" root "$scratch/merged"
root=$scratch/merged
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs run "$root/run"
for dir in "$DUALPI2_ROOT" "$DUALPI2_CACHE"; do
	[ -d "$dir" ] || continue
	mkdir -p "$root$dir"
	mount --bind "$dir" "$root$dir"
done
if [ -z "$offline" ]; then
	for file in /etc/resolv.conf /etc/hosts; do
		[ ! -e "$file" ] || cat "$file" >"$root$file"
	done
fi
exec unshare --pid --fork --kill-child --mount-proc="$root/proc" \
	chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	DEBIAN_FRONTEND=noninteractive DUALPI2_CACHE="$DUALPI2_CACHE" "$@"
