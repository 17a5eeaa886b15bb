#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=dist
# suite: long needs=dist -- --long
#
# test_policy.sh - do the packages in build/deb and build/rpm (make deb rpm) keep the rules of distributions? Checks the
# tags of lintian and rpmlint, the bytes of two builds, the bills of materials, and which kernels DKMS skips. KTAP on
# stdout.
#
# usage: test_policy.sh [--long]
#          --long  also build the packages once more, elsewhere, and run spdx-tools and reuse, which it installs from
#                  PyPI into the cache directory

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$DUALPI2_ROOT"
version=$(version)

collect() { # OUTDIR
	mkdir "$1"
	cp -r build/deb build/rpm "$1"
	scripts/dist/source.sh "$1/source"
}
built() { (cd "$1" && find . -type f \( -name '*.deb' -o -name '*.rpm' -o -name '*.tar.*' -o -name '*.dsc' \) | sort); }

# The project has no mail address; who publishes the packages has (deb.sh --maintainer). Which version of the policy is
# the newest depends on lintian.
lintian_is_silent() {
	lintian --allow-root --no-cfg -EvIL +pedantic --tag-display-limit 0 \
		--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,out-of-date-standards-version \
		"$work"/here/deb/upload/*.changes >"$work/lintian" 2>&1 || true
	cat "$work/lintian"
	! grep -v '^N: ' "$work/lintian"
}
rpmlint_is_silent() {
	rpmlint --config packaging/rpm/rpmlint.toml "$work"/here/rpm/*.rpm >"$work/rpmlint" 2>&1 || true
	cat "$work/rpmlint"
	grep -q ' 0 errors, 0 warnings, ' "$work/rpmlint"
}
# A comment, then lines with the tag that it explains.
overrides_have_reasons() {
	awk '
		FNR == 1 { tag = "" }
		/^#/ { reason = 1; next }
		$1 != tag && !reason { print FILENAME ": no reason for " $1; bad = 1 }
		{ tag = $1; reason = 0 }
		END { exit bad }' packaging/debian/*.lintian-overrides extra/debian/*.lintian-overrides
}
filters_have_reasons() {
	awk '
		/^Filters/ { inside = 1; next }
		inside && /^    #/ { reason = 1; next }
		inside && /^    "/ { if (!reason) { print "no reason for " $0; bad = 1 }; count++ }
		END { exit bad || !count }' packaging/rpm/rpmlint.toml
}

# Debhelper of Debian 13 and later would do it. An administrator enables units.
scripts_enable_no_unit() { # DEB...
	local deb
	for deb; do
		! dpkg-deb --ctrl-tarfile "$deb" | tar -x -O --wildcards './p*' | grep -E 'deb-systemd-(helper|invoke)' || return
	done
}

# Another path, user mask, time zone, language, and times of the files; no git.
elsewhere_gives_the_same_bytes() {
	local copy=$work/some/other/place file
	mkdir -p "$copy"
	(
		umask 077
		SOURCE_DATE_EPOCH=$(source_date)
		export SOURCE_DATE_EPOCH TZ=Pacific/Kiritimati LC_ALL=C LANG=C HOME=/nonexistent
		git ls-files -z | tar --null -T - -c -f - | tar -C "$copy" -x -m -p -f - --mode=go=
		git init -q "$copy"
		git -C "$copy" add -A
		"$copy/scripts/dist/deb.sh" "$work/there/deb"
		"$copy/scripts/dist/rpm.sh" "$work/there/rpm"
		"$copy/scripts/dist/source.sh" "$work/there/source"
	)
	diff <(built "$work/here") <(built "$work/there")
	for file in $(built "$work/here"); do
		cmp "$work/here/$file" "$work/there/$file"
	done
}
unpacked_archive_makes_the_same_archive() {
	tar -C "$work" -x -f "$work/here/source/dualpi2-$version.tar.gz"
	"$work/dualpi2-$version/scripts/dist/source.sh" "$work/again"
	cmp "$work/here/source/dualpi2-$version.tar.gz" "$work/again/dualpi2-$version.tar.gz"
}

# describes NAME DIR SBOM: it lists the files of DIR, with their checksums, and no others.
describes() {
	python3 - "$@" <<-'END'
		import hashlib, json, os, sys
		name, root, path = sys.argv[1:]
		with open(path) as file:
		    sbom = json.load(file)
		package = sbom["packages"][0]
		assert (sbom["spdxVersion"], package["name"]) == ("SPDX-2.3", name), package
		there = {}
		for directory, _, names in os.walk(root):
		    for one in names:
		        one = os.path.join(directory, one)
		        if not os.path.islink(one) and not os.path.samefile(one, path):
		            with open(one, "rb") as file:
		                there["./" + os.path.relpath(one, root)] = hashlib.sha256(file.read()).hexdigest()
		listed = {file["fileName"]: file["checksums"][1]["checksumValue"] for file in sbom["files"]}
		wrong = {one for one in there.keys() | listed.keys() if there.get(one) != listed.get(one)}
		assert there and not wrong, wrong
		ids = [part["SPDXID"] for part in sbom["packages"] + sbom["files"]]
		assert len(ids) == len(set(ids))
		related = {relation["relatedSpdxElement"] for relation in sbom["relationships"]}
		assert related == set(ids), related ^ set(ids)
		print(f"{name}: {len(listed)} files, depends on {[one['name'] for one in sbom['packages'][1:]]}")
	END
}
sboms_list_the_files() {
	local deb name
	describes dualpi2 "$work/dualpi2-$version" "$work/dualpi2-$version/dualpi2.spdx.json"
	for deb in "$work"/here/deb/upload/*.deb; do
		name=$(dpkg-deb -f "$deb" Package)
		mkdir -p "$work/deb"
		dpkg-deb -x "$deb" "$work/deb/$name"
		describes "$name" "$work/deb/$name" "$work/deb/$name/usr/share/doc/$name/$name.spdx.json"
	done
	for name in dualpi2-dkms dualpi2-doc dualpi2-tools; do
		rpm2cpio "$work/here/rpm/$name"-*.rpm | cpio --quiet -i --to-stdout "*/$name.spdx.json" >"$work/$name.json"
		python3 -c 'import json, sys; assert json.load(sys.stdin)["packages"][0]["name"] == sys.argv[1]' "$name" <"$work/$name.json"
	done
}
sbom_depends_on_what_the_package_needs() {
	grep -q '"name": "iproute2"' "$work/deb/dualpi2-tools/usr/share/doc/dualpi2-tools/dualpi2-tools.spdx.json"
	grep -q '"name": "dkms"' "$work/deb/dualpi2-dkms/usr/share/doc/dualpi2-dkms/dualpi2-dkms.spdx.json"
}
sbom_rejects_an_unknown_licence() {
	local said code=0
	mkdir "$work/foreign"
	printf '/* SPDX-%s: MIT */\n' License-Identifier >"$work/foreign/foreign.c"
	said=$(scripts/dist/sbom.py foreign 1 "$work/foreign" 2>&1) || code=$?
	echo "code $code: $said"
	[ "$code" -eq 1 ]
	[[ $said == *"unknown licence 'MIT'"* ]]
}

# dkms_reads CONF KERNEL VARIABLE: its value, as dkms reads it
dkms_reads() (
	set +u
	# shellcheck disable=SC2034 # for dkms.conf
	kernelver=$2
	# shellcheck source=/dev/null
	. "$1"
	echo "${!3}"
)
dkms_takes_5_10_and_later() {
	local conf kernel pattern
	for conf in packaging/dkms.conf extra/dkms.conf; do
		for kernel in 5.10.0-30-amd64 5.15.1 6.1.0 7.2.1-generic 10.0.0; do
			pattern=$(dkms_reads "$conf" "$kernel" BUILD_EXCLUSIVE_KERNEL)
			[[ $kernel =~ $pattern ]] || { echo "$conf skips $kernel" && return 1; }
		done
		for kernel in 4.19.0-27-amd64 5.9.16 5.1.2 3.10.0; do
			[[ ! $kernel =~ $pattern ]] || { echo "$conf takes $kernel" && return 1; }
		done
	done
}
dkms_takes_prague_for_7_0_and_later() {
	local kernel
	[ "$(dkms_reads extra/prague/dkms.conf '' BUILD_EXCLUSIVE_KERNEL_MIN)" = 7.0 ]
	for kernel in 7.0.0 7.2.13+deb14-amd64 10.1.0 ''; do
		[ -z "$(dkms_reads extra/prague/dkms.conf "$kernel" OBSOLETE_BY)" ] || { echo "skips $kernel" && return 1; }
	done
	for kernel in 5.10.0-30-amd64 6.18.3; do
		[ "$(dkms_reads extra/prague/dkms.conf "$kernel" OBSOLETE_BY)" = "$kernel" ] || { echo "takes $kernel" && return 1; }
	done
}

validators() {
	local requirements=selftests/packages/requirements.txt
	venv=$DUALPI2_CACHE/venv-policy-$(sha256sum <"$requirements" | cut -c 1-8)
	(
		flock 7
		[ -x "$venv/bin/reuse" ] || { python3 -m venv "$venv" && retry 3 "$venv/bin/pip" install --quiet -r "$requirements"; }
	) 7>"$venv.lock" >&2
}
sboms_are_valid() {
	local sbom
	for sbom in "$work/dualpi2-$version"/*.spdx.json "$work"/deb/*/usr/share/doc/*/*.spdx.json; do
		echo "${sbom##*/}"
		"$venv/bin/pyspdxtools" --infile "$sbom"
	done
}
tree_is_reuse_compliant() { "$venv/bin/reuse" --root "$work/dualpi2-$version" lint; }

plan
check packages_are_built collect "$work/here"
check debian_packages_have_no_unexplained_lintian_tag lintian_is_silent
check scripts_of_packages_enable_no_unit scripts_enable_no_unit "$work"/here/deb/upload/*.deb
check lintian_overrides_have_reasons overrides_have_reasons
check rpms_have_no_unexplained_rpmlint_tag rpmlint_is_silent
check rpmlint_filters_have_reasons filters_have_reasons
(cd "$work/here" && built . | xargs sha256sum | sed 's/^/# /')
check unpacked_archive_makes_the_same_archive unpacked_archive_makes_the_same_archive
check sboms_list_the_files_of_archive_and_packages sboms_list_the_files
check sbom_depends_on_what_the_package_needs sbom_depends_on_what_the_package_needs
check sbom_rejects_an_unknown_licence sbom_rejects_an_unknown_licence
check dkms_takes_kernels_from_5_10_on dkms_takes_5_10_and_later
check dkms_takes_prague_for_kernels_from_7_0_on dkms_takes_prague_for_7_0_and_later
if [ "${1-}" = --long ]; then
	check builds_elsewhere_have_the_same_bytes elsewhere_gives_the_same_bytes
	validators
	check sboms_are_valid_spdx_2_3 sboms_are_valid
	check tree_is_reuse_compliant tree_is_reuse_compliant
fi
plan "$number"
[ -z "$failed" ]
