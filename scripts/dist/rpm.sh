#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# rpm.sh - build dualpi2-dkms, dualpi2-tools and their source package with rpmbuild, here: on Fedora and
# its kin for use, on Debian to see that they build. Prints the paths. The source package can be
# rebuilt elsewhere: rpmbuild --rebuild dualpi2-*.src.rpm
#
# usage: rpm.sh [OUTDIR]      default: build/rpm

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

[ $# -le 1 ] || die "usage: rpm.sh [OUTDIR]"
outdir=${1:-$DUALPI2_ROOT/build/rpm}
command -v rpmbuild >/dev/null ||
	die "rpmbuild is missing; on Debian run scripts/setup.sh, elsewhere install rpm-build"

version=$(version)
[ -n "$version" ] || die "sch_dualpi2.c names no version"
[[ $version != *-* ]] || die "RPM takes no '-' in a version, and sch_dualpi2.c says $version"
cd "$DUALPI2_ROOT"
[ -e packaging/dkms.conf ] || die "packaging/dkms.conf is missing"
mkdir -p "$outdir"
outdir=$(realpath -e "$outdir")
# Of the files in packages.
umask 022
# A directory beside the result: rpmbuild leaves more than packages.
top=$(mktemp -d "$outdir/.build.XXXXXX")
trap 'rm -rf "$top"' EXIT
mkdir -p "$top"/{SOURCES,SPECS}

SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
scripts/dist/source.sh "$top/SOURCES" >/dev/null
# The changelog of the package has the time of the source; docs/CHANGELOG.md has what is new.
sed "s/#VERSION#/$version/; s/#SECONDS#/$SOURCE_DATE_EPOCH/; s/#DATE#/$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')/" \
	packaging/rpm/dualpi2.spec >"$top/SPECS/dualpi2.spec"

# On Debian no RPM provides the compiler. A data base of its own, for else rpm makes one in $HOME.
# The source package records the path of the build: this one is the same everywhere.
exec 9<"$top"
options=(--define '_topdir /proc/self/fd/9' --define "_dbpath $top/db" --define 'use_source_date_epoch_as_buildtime 1'
	--define '_buildhost localhost' --define 'clamp_mtime_to_source_date_epoch 1')
[ ! -e /etc/debian_version ] || options+=(--nodeps)
rpmbuild "${options[@]}" -ba "$top/SPECS/dualpi2.spec" >"$top/log" 2>&1 </dev/null || {
	tail -n 20 "$top/log" >&2
	cp "$top/log" "$outdir/log"
	die "rpmbuild failed; the whole output is in $outdir/log"
}
rm -f "$outdir"/dualpi2-*.rpm
find "$top" -name '*.rpm' -exec mv -t "$outdir" {} +
ls "$outdir"/dualpi2-*.rpm
