#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh - build the Debian packages dualpi2-dkms, dualpi2-tools and the experimental tcp-prague-dkms,
# dualpi2-extra-dkms and dualpi2-extra-tools (in OUTDIR/extra, not to be installed by a name with a *) from
# this tree and print their paths. They are unsigned; two builds of one commit are the same to
# the byte. One set serves all releases of Debian from 11 on, and what derives from them, if it is
# built on Debian 12.
#
# usage: deb.sh [--version VERSION] [OUTDIR]      default: build/deb
#          --version  build as if this were that version, module included: for tests of upgrades

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

usage='usage: deb.sh [--version VERSION] [OUTDIR]'
version=$(version)
outdir=$DUALPI2_ROOT/build/deb
while [ $# -gt 0 ]; do
	case $1 in
	--version)
		[ $# -ge 2 ] || die "--version needs a value; $usage"
		version=$2
		shift
		;;
	-*) die "unknown option '$1'; $usage" ;;
	*) outdir=$1 ;;
	esac
	shift
done
[[ $version =~ ^[0-9]+(\.[0-9]+)+$ ]] || die "'$version' is not a version like 1.2.3; see DUALPI2_VERSION in sch_dualpi2.c"

for tool in dpkg-buildpackage dh dh_dkms; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh, or: apt install build-essential debhelper dh-dkms fakeroot"
done
mkdir -p "$outdir"
outdir=$(realpath -e "$outdir")

# A directory beside the result: dpkg-buildpackage leaves more than packages.
work=$(mktemp -d "$outdir/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/dualpi2-$version
mkdir "$tree"
cd "$DUALPI2_ROOT"
cp -R --parents Kbuild Makefile sch_dualpi2.c include iproute2-patch tools LICENSES packaging/dkms.conf "$tree"
cp -R packaging/debian "$tree/debian"
if [ -d extra ]; then
	cp -R --parents extra "$tree"
	cat extra/debian/control >>"$tree/debian/control"
	cp extra/debian/*.manpages "$tree/debian"
fi
find "$tree" \( -name '*.o' -o -name '*.cmd' -o -name '*.d' -o -name '*.pyc' \) -delete
find "$tree" \( -name __pycache__ -o -name .ruff_cache \) -prune -exec rm -r {} +
sed -i 's/^\(#define DUALPI2_VERSION[[:space:]]*\)".*"$/\1"'"$version"'"/' "$tree/sch_dualpi2.c"

# The commit's time, and nothing of this machine or of when it was copied.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
cat >"$tree/debian/changelog" <<END
dualpi2 ($version) unstable; urgency=medium

  * Version $version; docs/CHANGELOG.md in the source says what is new.

 -- The dualpi2 authors <dualpi2@localhost>  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
find "$tree" -type d -exec chmod 755 {} +

say "building the packages of version $version"
(cd "$tree" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL LC_ALL=C.UTF-8 dpkg-buildpackage -b -us -uc) \
	>"$work/log" 2>&1 </dev/null || {
	tail -n 30 "$work/log" >&2
	die "cannot build the packages; see the messages above, and scripts/setup.sh for what is needed"
}
rm -f "$outdir"/dualpi2-*.deb "$outdir"/tcp-prague-dkms_*.deb "$outdir"/extra/dualpi2-extra-*.deb
if [ -d extra ]; then
	mkdir -p "$outdir/extra"
	mv "$work"/dualpi2-extra-*.deb "$outdir/extra"
fi
mv "$work"/*.deb "$outdir"
find "$outdir" -name '*.deb' | sort
