#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# boot.sh - build a small kernel of an applied tree with dualpi2 built in, the default qdisc, and boot it under QEMU:
# net/dualpi2/options (not on mips) and the storm of namespaces (selftests/fuzz/storm.c) run as its first process. KTAP on
# stdout.
#
# usage: boot.sh KERNEL ARCH...    KERNEL: 6.12, 7.2; ARCH: arm64, arm, mips (32 bit, big-endian)
#
# verify.sh KERNEL applies the series to the tree.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../ktap.sh"
# shellcheck source=scripts/kernel-patches/trees.sh
. "$(dirname "$0")/trees.sh"

[ $# -ge 2 ] || die "usage: boot.sh KERNEL ARCH..."
kernel=$1
shift
tree=$work/$kernel/tree
[ -e "$tree/net/sched/sch_dualpi2.c" ] || die "no tree of $kernel; run scripts/kernel-patches/verify.sh $kernel"
namespaces=${NAMESPACES:-20}

names=(NET_SCH_DUALPI2 DEFAULT_DUALPI2 HIGH_RES_TIMERS MULTIUSER BINFMT_ELF BLK_DEV_INITRD PROC_FS SYSFS PROC_SYSCTL POSIX_TIMERS
	FUTEX EPOLL EXPERT TTY SHMEM NAMESPACES NET_NS PACKET UNIX NETDEVICES NET_CORE DUMMY VETH NET_SCH_TBF NET_SCH_HTB
	NET_CLS_MATCHALL NET_ACT_GACT BUG KALLSYMS)
declare -A images=([arm64]=arch/arm64/boot/Image [arm]=arch/arm/boot/zImage [mips]=vmlinux)
declare -A consoles=([arm64]='SERIAL_AMBA_PL011 SERIAL_AMBA_PL011_CONSOLE' [arm]='SERIAL_AMBA_PL011 SERIAL_AMBA_PL011_CONSOLE'
	[mips]='SERIAL_8250 SERIAL_8250_CONSOLE')
declare -A qemu=([arm64]='qemu-system-aarch64 -M virt -cpu cortex-a57 -append console=ttyAMA0'
	[arm]='qemu-system-arm -M virt -cpu cortex-a15 -append console=ttyAMA0'
	[mips]='qemu-system-mips -M malta -vga none -cpu 24Kf -append console=ttyS0')

# The programs, static but for net/dualpi2/options, which needs libmnl. Debian has none for big-endian MIPS.
declare -A debian=([arm64]=arm64 [arm]=armel)
programs() {
	local out=$1 prefix=${prefixes[$arch]} mnl=$work/$arch-libmnl
	if [ -n "${debian[$arch]-}" ] && [ ! -d "$mnl" ]; then
		DUALPI2_ARCH=${debian[$arch]} "$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$mnl.deb" trixie download libmnl0 libmnl-dev
		for deb in "$mnl.deb"/*.deb; do dpkg-deb -x "$deb" "$mnl"; done
	fi
	kmake "$tree" "$arch" "$out" headers
	rm -rf "$out/root"
	mkdir -p "$out/root/dev"
	# shellcheck disable=SC2016 # for the other shell
	in_cross bash -euc '
		out=$1 cc=$2gcc tree=$3 root=$4 mnl=$5 flags="-O2 -Wall -isystem $1/usr/include"
		$cc $flags -static -DSTORM="\"$6\"" -o $out/root/init $root/scripts/kernel-patches/init.c
		if [ -d $mnl ]; then
			$cc $flags -I$mnl/usr/include -o $out/root/options $tree/tools/testing/selftests/net/dualpi2/options.c \
				$mnl/usr/lib/*/libmnl.so.0
			mkdir $out/root/lib
			cp /usr/${2%-}/lib/{ld*.so.?,libc.so.6} $mnl/usr/lib/*/libmnl.so.0 $out/root/lib
		fi
		cd $root
		$cc $flags -static -std=gnu11 -pthread -Iinclude/uapi -o $out/root/storm selftests/fuzz/{storm,nl,stats}.c selftests/fuzz/storm/*.c -lm -latomic
		cd $out/root
		mknod dev/console c 5 1
		find . | cpio --quiet -o -H newc >../initramfs' - "$out" "$prefix" "$tree" "$DUALPI2_ROOT" "$mnl" "$namespaces"
}
build() {
	local options
	# shellcheck disable=SC2086 # words
	mapfile -t options < <(printf 'CONFIG_%s=y\n' "${names[@]}" ${consoles[$arch]})
	configure "$tree" "$arch" boot "${objects[@]}" "${options[@]}" CONFIG_PANIC_TIMEOUT=-1
	kmake "$tree" "$arch" "$out" "$(basename "${images[$arch]}")"
	programs "$out"
}
boot() {
	# shellcheck disable=SC2086 # words
	in_cross timeout 600 ${qemu[$arch]} -m 256 -nographic -no-reboot -net none -kernel "$out/${images[$arch]}" \
		-initrd "$out/initramfs" </dev/null | tr -d '\r' >"$out/log" || true
	grep -q '^# end' "$out/log" || { tail -n 30 "$out/log" && return 1; }
	grep -E '^(#|not ok|ok) |WARNING|BUG|Oops' "$out/log"
	! grep -E '^not ok|WARNING|BUG:|Oops' "$out/log"
}

plan "$((2 * $#))"
for arch; do
	[ -n "${images[$arch]-}" ] || die "unknown architecture '$arch'; known are ${!images[*]}"
	out=$work/$kernel/$arch/boot
	check "${kernel}_${arch}_kernel_with_dualpi2_built_in_is_built" build
	check "${kernel}_${arch}_boots_and_passes" boot
done
[ -z "$failed" ]
