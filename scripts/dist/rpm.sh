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
# A directory beside the result: rpmbuild leaves more than packages.
top=$(mktemp -d "$outdir/.build.XXXXXX")
trap 'rm -rf "$top"' EXIT
mkdir -p "$top"/{SOURCES,SPECS}

# The same input gives the same source: no time and no name of this machine in it.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
	--transform "s,^,dualpi2-$version/," -c \
	--exclude=__pycache__ --exclude=.ruff_cache \
	Kbuild Makefile README.md sch_dualpi2.c include LICENSES iproute2-patch tools packaging/dkms.conf |
	gzip -9n >"$top/SOURCES/dualpi2-$version.tar.gz"
sed "s/#VERSION#/$version/" packaging/rpm/dualpi2.spec >"$top/SPECS/dualpi2.spec"

# On Debian no RPM provides the compiler. A data base of its own, for else rpm makes one in $HOME.
options=(--define "_topdir $top" --define "_dbpath $top/db" --define 'use_source_date_epoch_as_buildtime 1'
	--define '_buildhost localhost')
[ ! -e /etc/debian_version ] || options+=(--nodeps)
rpmbuild "${options[@]}" -ba "$top/SPECS/dualpi2.spec" >"$top/log" 2>&1 </dev/null || {
	tail -n 20 "$top/log" >&2
	cp "$top/log" "$outdir/log"
	die "rpmbuild failed; the whole output is in $outdir/log"
}
rm -f "$outdir"/dualpi2-*.rpm
find "$top" -name '*.rpm' -exec mv -t "$outdir" {} +
ls "$outdir"/dualpi2-*.rpm
