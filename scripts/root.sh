#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# root.sh - make a Debian tree of any release in the cache directory and print its path: a place to
# build for that release's kernels (build), or what a test machine boots (test). It is made once by
# mmdebstrap and never changed after: in-root.sh runs commands in an overlay.
#
# usage: root.sh [--refresh] RELEASE base|build|test|top|flent|bare|proof|cross
#          RELEASE  a Debian release of suites.toml: bookworm
#          base     what all others of the release begin with
#          build    compiler and what kernel headers need to build a module
#          test     the programs that the tests run, among them the release's own tc
#          top      the same, and what the tests of dualpi2-top run it with
#          flent    the same as test, and flent with what its tests run
#          bare     a fresh installation: its kernel and tc, apt, and nothing to build with
#          proof    a model checker of C programs
#          cross    compilers of other architectures, and what builds and boots kernels of them
#        --refresh  make it anew, from today's packages

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: root.sh [--refresh] RELEASE base|build|test|top|flent|bare|proof|cross'
refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# -eq 2 ] || die "$usage"
release=$1 kind=$2
known=$(releases | paste -sd' ')
[[ " $known " == *" $release "* ]] || die "unknown release '$release'; known are $known; $usage"

case $kind in
base) packages=(ca-certificates kmod iproute2) ;;
build)
	packages=(gcc libc6-dev make bc libelf1 perl python3)
	# Its kernels describe their types (BTF), and headers need pahole for that.
	[ "$release" = bullseye ] || packages+=(pahole)
	;;
test | top | flent)
	packages=(iperf3 ethtool nftables tcpdump iputils-ping procps jq bc python3 xz-utils)
	# Not in the tree of the other suites: machines in virtual time have all of their tree in memory.
	[ "$kind" != top ] || packages+=(tmux python3-prometheus-client prometheus prometheus-node-exporter)
	[ "$kind" != flent ] || packages+=(flent irtt netperf python3-matplotlib)
	;;
bare)
	packages=(linux-image-amd64 initramfs-tools xz-utils)
	;;
proof)
	packages=(cbmc cvc5 gcc gcc-multilib libc6-dev python3)
	;;
cross)
	packages=(gcc libc6-dev make bc flex bison libelf-dev libssl-dev perl python3 python3-yaml git patch sparse cpio
		{gcc-{aarch64-linux-gnu,arm-linux-gnueabi,mips-linux-gnu},libc6-dev-{arm64,armel,mips}-cross} qemu-system-{arm,mips})
	;;
*) die "unknown kind '$kind'; $usage" ;;
esac

root=$DUALPI2_CACHE/roots/$release-$kind
# A number of its own, to be raised when the way in which a root is made changes.
made_of="${packages[*]} recipe 2"
mkdir -p "${root%/*}"
exec 7>"$root.lock"
flock 7
if [ -z "$refresh" ] && [ "$(cat "$root/made-of" 2>/dev/null)" = "$made_of" ]; then
	echo "$root"
	exit 0
fi

[ "$(id -u)" = 0 ] || die "making a Debian tree needs root; run as root"
need mmdebstrap
# Half of the time to make a tree is what all of the release have.
start=(--variant=minbase)
if [ "$kind" != base ]; then
	base=$("$0" ${refresh:+--refresh} "$release" base 7>&-)
	start=(--variant=custom --setup-hook="cp -a $(printf %q "$base")/. \"\$1\"")
fi
archive() { "$DUALPI2_ROOT/scripts/debian-archive.sh" "$release" "$@" 7>&-; }
sources=$(archive sources)
keys=$(archive keys)

say "making $root (one to three minutes)"
new=$root.new log=$root.log
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
make_root() {
	rm -rf "$new"
	printf '%s\n' "$sources" | grep -v '^deb-src' |
		mmdebstrap --mode=root "${start[@]}" --keyring="$keys" --skip=check/empty \
			--include="${packages[*]}" --aptopt='APT::Install-Recommends "false"' \
			--aptopt='Acquire::Retries "3"' --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
			--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
			"$release" "$new" - >"$log" 7>&-
}
retry 3 make_root || die "cannot make a root of $release; see the messages above and $log"
# As a fresh installation has it: recommended packages are installed, documents too.
rm -f "$new"/etc/{resolv.conf,apt/apt.conf.d/99mmdebstrap,dpkg/dpkg.cfg.d/99mmdebstrap}
echo "$made_of" >"$new/made-of"
rm -rf "$root"
mv "$new" "$root"
echo "$root"
