#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# source.sh - make the release archive dualpi2-VERSION.tar.gz of this tree, with its SPDX bill of materials
# dualpi2.spdx.json in it, and print its path. Two archives of one commit have the same bytes, and so has the archive
# that an unpacked one makes.
#
# usage: source.sh [OUTDIR]      default: build/source

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

[ $# -le 1 ] || die "usage: source.sh [OUTDIR]"
outdir=${1:-$DUALPI2_ROOT/build/source}
version=$(version)
[ -n "$version" ] || die "sch_dualpi2.c names no version"
mkdir -p "$outdir"
outdir=$(realpath -e "$outdir")
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
cd "$DUALPI2_ROOT"

sbom=dualpi2.spdx.json
files() {
	if [ -e .git ]; then
		git ls-files -z
	else
		find . \( -path ./build -o -name __pycache__ -o -name .ruff_cache \) -prune -o -type f ! -path "./$sbom" -printf '%P\0'
	fi
}
work=$(mktemp -d "$outdir/.source.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/dualpi2-$version
mkdir "$tree"
files | tar --null -T - -c -f - | tar -C "$tree" -x -f -
scripts/dist/sbom.py dualpi2 "$version" "$tree" >"$work/$sbom"
mv "$work/$sbom" "$tree/$sbom"
tar -C "$work" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
	-c -f - "dualpi2-$version" | gzip -9n >"$work/archive"
chmod 644 "$work/archive"
mv "$work/archive" "$outdir/dualpi2-$version.tar.gz"
echo "$outdir/dualpi2-$version.tar.gz"
