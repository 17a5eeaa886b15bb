#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=6.1-headers,iproute2
#
# test_openwrt.sh - as much of packaging/openwrt as can be tested without OpenWrt: the package's Makefile
# with mocks of OpenWrt's, which build for a Debian kernel, and patch-tc.sh on a mock of its source tree.
# KTAP on stdout. It does not show that OpenWrt builds it; packaging/openwrt/README.md says what is left.
#
# usage: test_openwrt.sh

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

assignments=$("$DUALPI2_ROOT/scripts/kernel.sh" --headers 6.1)
eval "$assignments"
mapfile -t suites < <(releases | tail -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/openwrt
feed=$top/feeds/dualpi2
build=$top/build_dir/sched-dualpi2-oot

# What the package uses of OpenWrt's makefiles, and no more: a variable that it misspells is empty.
mkdir -p "$top/include" "$top/feeds" "$top/package/feeds/dualpi2" "$top/dl" "$top/package/network/utils/iproute2"
ln -s "$DUALPI2_ROOT/packaging/openwrt" "$feed"
ln -s "../../../feeds/dualpi2/kmod-sched-dualpi2" "$top/package/feeds/dualpi2/kmod-sched-dualpi2"
cat >"$top/rules.mk" <<'END'
INCLUDE_DIR:=$(TOPDIR)/include
CP:=cp -fpR
all: info
END
cat >"$top/include/kernel.mk" <<'END'
KERNEL_MAKE=$(MAKE) --no-print-directory -C "$(KDIR)"
AutoProbe=probe $(1)
define KernelPackage
$(eval $(KernelPackage/$(1)))
info:
	@echo 'package kmod-$(1) $(PKG_VERSION)-$(PKG_RELEASE) $(PKG_LICENSE)'
	@echo 'conflicts $(CONFLICTS)'
	@echo 'depends $(DEPENDS)'
	@echo 'files $(FILES)'
	@echo 'autoload $(AUTOLOAD)'
	@echo 'watches $(PKG_FILE_DEPENDS)'
	@echo 'title $(SUBMENU): $(TITLE)'
prepare:
	$(Build/Prepare)
compile: prepare
	$(Build/Compile)
endef
END
cat >"$top/include/package.mk" <<'END'
PKG_BUILD_DIR:=$(TOPDIR)/build_dir/$(PKG_NAME)
END

package() { make --no-print-directory -C "$top/package/feeds/dualpi2/kmod-sched-dualpi2" TOPDIR="$top" KDIR="$KDIR" "$@"; }
says() { # LINE
	package info >"$work/info"
	cat "$work/info"
	grep -xF -- "$1" "$work/info"
}
watches_sources() {
	local file
	for file in $(package info | sed -n 's/^watches //p'); do
		[ -e "$file" ] || {
			echo "no $file"
			return 1
		}
	done
	[ -n "${file-}" ]
}
compiles() {
	package compile
	[ -s "$build/sch_dualpi2.ko" ]
	modinfo "$build/sch_dualpi2.ko"
	[ "$(modinfo -F version "$build/sch_dualpi2.ko")" = "$(version)" ]
}
# The same code from another directory. The build ID covers the paths in the debug information of Debian's kernels;
# OpenWrt strips both.
same_code_elsewhere() {
	local elsewhere=$work/some/other/openwrt top
	mkdir -p "${elsewhere%/*}"
	cp -a "$work/openwrt" "$elsewhere"
	rm -r "$elsewhere/build_dir"
	top=$elsewhere
	package compile
	for top in "$work/openwrt" "$elsewhere"; do
		objcopy --strip-debug --remove-section .note.gnu.build-id "$top/build_dir/sched-dualpi2-oot/sch_dualpi2.ko" "$top.ko"
	done
	sha256sum "$work/openwrt.ko" "$elsewhere.ko"
	cmp "$work/openwrt.ko" "$elsewhere.ko"
}
leaves_sources_clean() { [ -z "$(find "$DUALPI2_ROOT" -maxdepth 1 -name '*.o' -o -maxdepth 1 -name '*.ko')" ]; }

# patched SUITE: the release of iproute2 in that suite as if it were OpenWrt's, with a patch of its own.
patched() {
	local suite=$1 package=$top/package/network/utils/iproute2 repository version
	"$DUALPI2_ROOT/scripts/dist/iproute2.sh" --suite "$suite" --fetch
	repository=$DUALPI2_CACHE/iproute2/$suite
	version=$(cat "$repository/.git/dualpi2-version")
	rm -rf "$package" "$work/tree" "$top/dl"
	mkdir -p "$package/patches" "$work/tree" "$top/dl"
	printf 'PKG_NAME:=iproute2\nPKG_VERSION:=%s\n' "$version" >"$package/Makefile"
	printf -- '--- a/tc/Makefile\n+++ b/tc/Makefile\n@@ -1 +1,2 @@\n+# ours\n %s\n' \
		"$(head -n 1 "$repository/tc/Makefile")" >"$package/patches/100-own.patch"
	git -C "$repository" archive --prefix="iproute2-$version/" -o "$top/dl/iproute2-$version.tar.gz" HEAD
	export MAKEFLAGS=CCOPTS=-O0 # takes less time; test_iproute2.sh builds with -O2
	"$DUALPI2_ROOT/packaging/openwrt/patch-tc.sh" "$top"
	# As OpenWrt does it, and tc-tiny: without plugins.
	tar -x -f "$top/dl/iproute2-$version.tar.gz" -C "$work/tree" --strip-components=1
	for patch in "$package"/patches/*.patch; do
		patch -d "$work/tree" -p1 --fuzz=0 <"$patch"
	done
	cd "$work/tree"
	{ LIBBPF_FORCE=off ./configure && make -j"$(nproc)" SUBDIRS="lib tc" SHARED_LIBS=n; } >"$work/log" 2>&1 ||
		{
			tail -n 20 "$work/log"
			return 1
		}
	{ tc/tc qdisc add dev lo root dualpi2 help 2>&1 || true; } | grep -F '[ ramp TIME ]'
}
wants_its_release() { # another than the archive in dl/
	local said code=0
	echo 'PKG_VERSION:=6.11.0' >"$top/package/network/utils/iproute2/Makefile"
	said=$("$DUALPI2_ROOT/packaging/openwrt/patch-tc.sh" "$top" 2>&1) || code=$?
	echo "code $code: $said"
	[ "$code" -eq 1 ]
	[[ $said == *"run: make -C $top package/iproute2/download" ]]
}

plan $((9 + ${#suites[@]}))
check openwrt_module_has_the_version_of_the_source says "package kmod-sched-dualpi2-oot $(version)-1 GPL-2.0-only"
check openwrt_module_conflicts_with_openwrts_own says 'conflicts kmod-sched-dualpi2'
check openwrt_module_is_packed_from_the_build_directory says "files $build/sch_dualpi2.ko"
check openwrt_module_is_loaded_at_boot says 'autoload probe sch_dualpi2'
check openwrt_module_watches_the_sources watches_sources
check openwrt_module_compiles compiles
check openwrt_module_of_another_directory_has_the_same_code same_code_elsewhere
check openwrt_module_leaves_the_sources_clean leaves_sources_clean
for suite in "${suites[@]}"; do
	check "openwrt_tc_of_the_iproute2_in_${suite}_takes_the_patch" patched "$suite"
done
check openwrt_tc_of_a_release_that_is_not_there_is_refused wants_its_release
[ -z "$failed" ]
