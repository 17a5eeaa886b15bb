#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# debug-kernel.sh - build a kernel for tests that no stock kernel can do, from Debian's linux-source, and keep it in
# the cache directory. run-vm.sh --kernel boots it, build-for.sh builds the module for it.
#
# usage: debug-kernel.sh [--refresh] debug|plain|ect1|builtin|kcsan
#          debug  user-mode Linux with KASAN, UBSAN, lockdep, kmemleak, fault injection (about 9 minutes to build)
#          plain  user-mode Linux without them, for long runs and the lab
#          builtin  the same with the series of kernel-patches, and their dualpi2 as the default qdisc and no module
#          ect1   the same as plain, with the patch of extra/prague/kernel-patch
#          kcsan  x86-64 for two processors under QEMU, with the detector of data races
#        In KDIR/net/sched/sch_dualpi2.ko of debug and plain is the in-tree dualpi2, to be loaded by path.
#        --refresh  build it again, from today's source
#
# Prints, for eval, what kernel.sh prints of a stock kernel. The configurations are in selftests/debug, the
# patch for the debug kernel alone in selftests/debug/debug.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage='usage: debug-kernel.sh [--refresh] debug|plain|ect1|builtin|kcsan'
refresh=''
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# -eq 1 ] || die "$usage"
kind=$1
configs=$DUALPI2_ROOT/selftests/debug arch=um image=linux whole=() in=() flags=() series=()
case $kind in
debug)
	parts=(base uml debug)
	# Two thirds of the time to build, and less to run. Modules have the kernel's usual flags: -O2, and UBSAN, also in
	# what they include. The other options are what the kernel's min() needs to compile at -O1.
	flags=("KCFLAGS=-O1 -ftree-vrp -fipa-cp -fipa-vrp" UBSAN_SANITIZE=n)
	# To save time, KASAN is only where something knows an address of a qdisc, a packet or a socket, and not in what takes
	# a trace at each allocation. Everywhere kfree(), memcpy(), copy_from_user() and the like check what they are given.
	kasan='net net/% drivers/net drivers/net/% lib lib/% kernel kernel/time kernel/rcu kernel/locking'
	flags+=("KASAN_SANITIZE=\$(if \$(filter $kasan,\$(obj)),,n)" KASAN_SANITIZE_stacktrace.o=n)
	series=("$configs"/debug/*.patch)
	;;
plain | ect1) parts=(base uml plain) ;;
builtin) parts=(base uml builtin) ;;
kcsan) parts=(base kcsan) arch=x86_64 image=arch/x86/boot/bzImage whole=(7.2) ;;
*) die "unknown kernel '$kind'; $usage" ;;
esac

kernels=$DUALPI2_CACHE/debug-kernels
out=$kernels/$kind
mkdir -p "$kernels"
exec 8>"$kernels/$kind.lock"
flock 8
source=$("$DUALPI2_ROOT/scripts/linux-source.sh" ${refresh:+--refresh} "${whole[@]}" 8>&-)
if [ "$kind" = builtin ]; then
	"$DUALPI2_ROOT/scripts/kernel-patches/emit.py" --tree "$source" --out "$out.series" 7.2 >&2
	mapfile -t series < <(find "$out.series/7.2/dualpi2" -name '0*.patch' ! -name '0000-*' | sort)
fi
[ "$kind" != ect1 ] || series=("$DUALPI2_ROOT"/extra/prague/kernel-patch/0*.patch)
made_of=$({ printf '%s' "${flags[@]}" && sed "/^From\|^Date:/d" /dev/null "${series[@]}" && cd "$configs" && cat "${parts[@]/%/.config}" "$source/unpacked"; } | cksum)
if [ -z "$refresh" ] && [ "$(cat "$out/made-of" 2>/dev/null)" = "$made_of" ]; then
	cat "$out/env"
	exit 0
fi

# The same compiler on every Debian release, so that the basic blocks are the same (fuzz/coverage.py).
compiler=gcc-12
command -v "$compiler" >/dev/null || compiler=gcc
# shellcheck source=/dev/null
debian=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
if [ "$kind" = kcsan ]; then
	# objtool wants libelf, which that root has.
	debian=trixie compiler=gcc
	in=("$DUALPI2_ROOT/scripts/in-root.sh" --offline "$("$DUALPI2_ROOT/scripts/root.sh" trixie cross 8>&-)")
else
	need flex bison bc "$compiler"
fi
need make depmod
need_mb 4000 "$kernels" "building a kernel"

say "building the $kind kernel with $(nproc) jobs (4 to 20 minutes, once); log in $out.log"
rm -rf "$out"
mkdir -p "$out"
if [ "${#series[@]}" -gt 0 ]; then
	# git replaces the files that it changes, so links are enough.
	cp -al "$source" "$out/tree"
	source=$out/tree
	(cd "$source" && GIT_CEILING_DIRECTORIES=$out git apply "${series[@]}")
fi
# User-mode Linux lets nobody choose the ticks a second; what is said of a symbol first holds.
hz=$(cd "$configs" && sed -n 's/^CONFIG_HZ=//p' "${parts[@]/%/.config}")
sed "${hz:+/^mainmenu/a config HZ\n\tint\n\tdefault $hz}" "$source/Kconfig" >"$out/Kconfig"
# The same kernel, to the bit, whoever builds it and when.
export KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=dualpi2 KBUILD_BUILD_HOST=dualpi2 KBUILD_BUILD_VERSION=1
kmake() {
	"${in[@]}" make -s -C "$source" ARCH="$arch" CC="$compiler" HOSTCC="$compiler" O="$out" KBUILD_KCONFIG="$out/Kconfig" -j"$(nproc)" "$@" >>"$out.log" 2>&1 8>&-
}
: >"$out.log"
(cd "$configs" && cat "${parts[@]/%/.config}") >"$out/fragment"
kmake KCONFIG_ALLCONFIG="$out/fragment" allnoconfig || die "cannot configure; see $out.log"
# An option that is not there any more, or whose needs are not met, is silently off.
lost=$(grep -v -x -F -f "$out/.config" "$out/fragment" | grep -E '^CONFIG_[A-Z0-9_]+=' | grep -v '=n$' || true)
[ -z "$lost" ] || die "this kernel does not take: $(tr '\n' ' ' <<<"$lost")"
kmake "${flags[@]}" "${image##*/}" modules || die "the build failed: $(grep -E -m3 'error|Error' "$out.log"); see $out.log"
kmake INSTALL_MOD_PATH="$out/root" modules_install || die "cannot install the lists of modules; see $out.log"

release=$(cat "$out/include/config/kernel.release")
# Found by name, a module of the kernel's own would stand in for the one under test.
if [ -d "$out/root/lib/modules/$release/kernel" ]; then
	rm -r "$out/root/lib/modules/$release/kernel"
	depmod -b "$out/root" "$release"
fi
# What is left is for building modules.
find "$out" -type f \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' -o -name 'vmlinux*' \) \
	! -path "$out/scripts/*" ! -path "$out/tools/*" ! -name vmlinux.symvers -delete
printf '%s=%q\n' KREL "$release" KIMG "$out/$image" KMODS "$out/root/lib/modules/$release" \
	KDIR "$out" KCC "$compiler" KDEBIAN "$debian" >"$out/env"
echo "$made_of" >"$out/made-of"
cat "$out/env"
