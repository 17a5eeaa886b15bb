# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# trees.sh - kernel trees with the series applied, and how to build them in a Debian root with cross compilers.
# Sourced by verify.sh and boot.sh, after common.sh.

work=$DUALPI2_ROOT/build/kernel-patches/verify
cross=$("$DUALPI2_ROOT/scripts/root.sh" trixie cross)
# Debian's compilers of each architecture.
declare -A prefixes=([x86_64]='' [um]='' [arm64]=aarch64-linux-gnu- [arm]=arm-linux-gnueabi- [mips]=mips-linux-gnu-)
# A 32-bit machine with any MMU, and a big-endian one with MIPS32r2 code.
declare -A machines=(
	[x86_64]=CONFIG_64BIT=y
	[um]=CONFIG_64BIT=y
	[arm64]=''
	[arm]='CONFIG_MMU=y CONFIG_ARCH_MULTI_V7=y CONFIG_ARCH_VIRT=y CONFIG_AEABI=y CONFIG_ARM_PATCH_PHYS_VIRT=y CONFIG_AUTO_ZRELADDR=y CONFIG_KUSER_HELPERS=y'
	[mips]='CONFIG_MIPS_MALTA=y CONFIG_CPU_MIPS32_R2=y CONFIG_CPU_BIG_ENDIAN=y CONFIG_32BIT=y CONFIG_MIPS_FP_SUPPORT=y'
)
# What an object of the qdisc, or of TCP Prague, needs.
# shellcheck disable=SC2034 # for verify.sh
objects=(CONFIG_NET=y CONFIG_INET=y CONFIG_IPV6=y CONFIG_NET_SCHED=y CONFIG_NET_SCH_DEFAULT=y CONFIG_NET_CLS_ACT=y
	CONFIG_MODULES=y CONFIG_PRINTK=y CONFIG_TCP_CONG_ADVANCED=y)

in_cross() { "$DUALPI2_ROOT/scripts/in-root.sh" --offline "$cross" "$@"; }

# The sparse that reads the headers of 7.2; that of Debian 12 and 13 does not.
fetch_sparse() {
	sparse=$work/sparse/usr/bin/sparse
	[ ! -x "$sparse" ] || return 0
	mkdir -p "$work/sparse"
	"$DUALPI2_ROOT/scripts/debian-archive.sh" --to "$work/sparse" forky download sparse
	dpkg-deb -x "$work"/sparse/sparse_*.deb "$work/sparse"
}

# apply KERNEL: the series, and a fresh tree with them in $work/KERNEL/tree
apply() {
	local source tree=$work/$1/tree patch
	"$DUALPI2_ROOT/scripts/kernel-patches/emit.py" "$1"
	source=$("$DUALPI2_ROOT/scripts/linux-source.sh" "$1")
	rm -rf "$tree"
	mkdir -p "$work/$1"
	# git replaces the files that it changes, so links are enough.
	cp -al "$source" "$tree"
	for patch in "$DUALPI2_ROOT/build/kernel-patches/$1"/*/0*.patch; do
		case $patch in */0000-*) continue ;; esac
		(cd "$tree" && GIT_CEILING_DIRECTORIES=${tree%/*} git apply "$patch")
	done
}

# configure TREE ARCH NAME OPTION...: $work/KERNEL/ARCH/NAME/.config; an option that the tree does not take is an error
configure() {
	local tree=$1 arch=$2 out=${1%/tree}/$2/$3 lost
	shift 3
	mkdir -p "$out"
	# shellcheck disable=SC2086 # words
	printf '%s\n' ${machines[$arch]} "$@" >"$out/fragment"
	kmake "$tree" "$arch" "$out" KCONFIG_ALLCONFIG="$out/fragment" allnoconfig
	lost=$(grep -v -x -F -f "$out/.config" "$out/fragment" | grep -v '=n$' || true)
	[ -z "$lost" ] || { echo "not taken: $lost" && return 1; }
}

# kmake TREE ARCH OUT ARGUMENT...
kmake() {
	local tree=$1 arch=$2 out=$3
	shift 3
	in_cross make -s -C "$tree" ARCH="$arch" CROSS_COMPILE="${prefixes[$arch]}" O="$out" CHECK="${sparse:-sparse}" -j2 "$@"
}
