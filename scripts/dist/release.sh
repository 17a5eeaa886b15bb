#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# release.sh - raise the version, commit that as "release: VERSION" and tag it. It refuses
# - a version that is not above the present one, or has a tag,
# - changes that are not committed,
# - a commit that "make check-long" has not passed, as scripts/run records it in build/tested,
# - a docs/CHANGELOG.md without an entry "## VERSION".
#
# usage: release.sh [--unsigned] VERSION

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

usage='usage: release.sh [--unsigned] VERSION'
sign=--sign
if [ "${1-}" = --unsigned ]; then
	sign=--annotate
	shift
fi
[ $# -eq 1 ] || die "$usage"
new=$1 old=$(version)
cd "$DUALPI2_ROOT"

[[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "'$new' is not a version like 1.2.3; $usage"
if [ "$new" = "$old" ] || [ "$(printf '%s\n' "$old" "$new" | sort -V | tail -n 1)" != "$new" ]; then
	die "$new is not above $old, the version in sch_dualpi2.c; DKMS replaces a module by a newer one only"
fi
! git rev-parse -q --verify "refs/tags/v$new" >/dev/null || die "the tag v$new exists; choose another version"
[ -z "$(git status --porcelain)" ] || die "there are changes that are not committed; commit or stash them: git status"
commit=$(git rev-parse HEAD)
grep -q -s -x -F "check-long $commit" build/tested ||
	die "make check-long has not passed for commit $commit here; run it"
grep -q -E "^## ${new//./\\.}( |$)" docs/CHANGELOG.md ||
	die "docs/CHANGELOG.md has no entry '## $new'; rename 'Unreleased', and say what is new"

sed -i 's/^\(#define DUALPI2_VERSION[[:space:]]*\)".*"$/\1"'"$new"'"/' sch_dualpi2.c
[ "$(version)" = "$new" ] || die "sch_dualpi2.c has no line '#define DUALPI2_VERSION'; the version was not raised"
git commit -q -s -m "release: $new" sch_dualpi2.c
git tag "$sign" -m "dualpi2 $new" "v$new"
say "tagged v$new; next, in a clone of the tag: make deb rpm source iproute2 (docs/RELEASE.md)"
