#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh - build the Debian packages dualpi2-dkms, dualpi2-tools and the experimental tcp-prague-dkms, and in
# OUTDIR/extra, not to be installed by a name with a *, dualpi2-doc, dualpi2-extra-dkms and dualpi2-extra-tools, from
# this tree and print their paths; OUTDIR/upload has the source package, .changes and links to all packages, for
# lintian, autopkgtest and archives. They are unsigned. Two builds of one commit have the same bytes, except
# .changes and .buildinfo, which record the time. One set serves all releases of Debian from 11 on, and
# what derives from them, if it is built on Debian 12.
#
# usage: deb.sh [--version VERSION] [--maintainer 'NAME <ADDRESS>'] [OUTDIR]      default: build/deb
#          --version     build as if this were that version, module included: for tests of upgrades
#          --maintainer  who publishes the packages; the project has no mail address

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

usage="usage: deb.sh [--version VERSION] [--maintainer 'NAME <ADDRESS>'] [OUTDIR]"
version=$(version)
maintainer='The dualpi2 authors <dualpi2@localhost>'
outdir=$DUALPI2_ROOT/build/deb
while [ $# -gt 0 ]; do
	case $1 in
	--version | --maintainer)
		[ $# -ge 2 ] || die "$1 needs a value; $usage"
		if [ "$1" = --version ]; then version=$2; else maintainer=$2; fi
		shift
		;;
	-*) die "unknown option '$1'; $usage" ;;
	*) outdir=$1 ;;
	esac
	shift
done
[[ $version =~ ^[0-9]+(\.[0-9]+)+$ ]] || die "'$version' is not a version like 1.2.3; see DUALPI2_VERSION in sch_dualpi2.c"
[[ $maintainer =~ ^[^\<\>,/]+\ \<[^\<\>@,/\ ]+@[^\<\>@,/\ ]+\>$ ]] || die "--maintainer: '$maintainer' is not like 'NAME <ADDRESS>'; $usage"

for tool in dpkg-buildpackage dh dh_dkms; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh, or: apt install build-essential debhelper dh-dkms fakeroot python3"
done
mkdir -p "$outdir/extra"
outdir=$(realpath -e "$outdir")

# A directory beside the result: dpkg-buildpackage leaves more than packages.
work=$(mktemp -d "$outdir/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/dualpi2-$version
mkdir "$tree"
cd "$DUALPI2_ROOT"
cp -R --parents Kbuild Makefile README.md docs sch_dualpi2.c include iproute2-patch tools LICENSES packaging/dkms.conf \
	evaluation/README.md evaluation/html evaluation/img packaging/openwrt/README.md scripts/dist/sbom.py "$tree"
cp -R packaging/debian "$tree/debian"
if [ -d extra ]; then
	cp -R --parents extra "$tree"
	cat extra/debian/control >>"$tree/debian/control"
	cp extra/debian/dualpi2-extra-tools.* "$tree/debian"
fi
find "$tree" \( -name '*.o' -o -name '*.cmd' -o -name '*.d' -o -name '*.pyc' \) -delete
find "$tree" \( -name __pycache__ -o -name .ruff_cache \) -prune -exec rm -r {} +
sed -i "s/^Maintainer: .*/Maintainer: $maintainer/" "$tree/debian/control"
sed -i 's/^\(#define DUALPI2_VERSION[[:space:]]*\)".*"$/\1"'"$version"'"/' "$tree/sch_dualpi2.c"

# The commit's time, and nothing of this machine or of when it was copied.
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
cat >"$tree/debian/changelog" <<END
dualpi2 ($version) unstable; urgency=medium

  * Version $version; docs/CHANGELOG.md in the source says what is new.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
chmod -R u=rwX,go=rX "$tree"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

say "building the packages of version $version"
(cd "$tree" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL LC_ALL=C.UTF-8 dpkg-buildpackage -F -us -uc) \
	>"$work/log" 2>&1 </dev/null || {
	tail -n 30 "$work/log" >&2
	die "cannot build the packages; see the messages above, and scripts/setup.sh for what is needed"
}
rm -rf "$outdir/upload"
rm -f "$outdir"/dualpi2-*.deb "$outdir"/tcp-prague-dkms_*.deb "$outdir"/extra/dualpi2-*.deb
mkdir "$outdir/upload"
mv "$work"/*.{dsc,tar.xz,changes,buildinfo,deb} "$outdir/upload"
ln "$outdir"/upload/*.deb "$outdir"
mv "$outdir"/dualpi2-doc_*.deb "$outdir/extra"
[ ! -d extra ] || mv "$outdir"/dualpi2-extra-*.deb "$outdir/extra"
find "$outdir" -name upload -prune -o -name '*.deb' -print | sort
