#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=source
#
# test_kernel_patches.sh - can the patch series for the kernel tree be written from the sources as they are, and do they
# look as a maintainer wants it? scripts/kernel-patches/verify.sh builds what comes out. KTAP on stdout.
#
# usage: test_kernel_patches.sh

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

source=$("$DUALPI2_ROOT/scripts/linux-source.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

written() {
	"$DUALPI2_ROOT/scripts/kernel-patches/emit.py" --tree "$source" --out "$work/series" 7.2
	[ -d "$work/series/7.2/dualpi2" ] && [ -d "$work/series/7.2/prague" ]
}
checked() {
	(cd "$source" && find "$work/series" -name '0*.patch' ! -name '0000-*' -exec perl scripts/checkpatch.pl --strict --no-summary -q {} +)
}
# The specification with the patch, read with Debian's YAML.
consistent() {
	mkdir -p "$work/tree/Documentation/netlink"
	cp -r "$source/Documentation/netlink/specs" "$work/tree/Documentation/netlink"
	(cd "$work/tree" && GIT_CEILING_DIRECTORIES=$work git apply --include='*/tc.yaml' "$work"/series/7.2/dualpi2/*-specs-*.patch)
	/usr/bin/python3 - "$work/tree/Documentation/netlink/specs/tc.yaml" <<-'END'
		import sys
		import yaml

		spec = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
		known = {entry["name"] for section in ("definitions", "attribute-sets") for entry in spec[section]}
		found = [entry for entry in spec["definitions"] + spec["attribute-sets"] if "dualpi2" in entry["name"]]
		rows = [row for entry in found for row in entry.get("attributes", entry.get("members", []))]
		for row in rows + [row for set in spec["sub-messages"] for row in set["formats"] if "dualpi2" in row["value"]]:
		    for key in ("enum", "struct", "nested-attributes", "attribute-set", "fixed-header"):
		        assert row.get(key, found[0]["name"]) in known, f"no definition of {row[key]}, in {row}"
		for entry in found:
		    for name in entry.get("entries", []):
		        assert isinstance(name if isinstance(name, str) else name["name"], str), f"{name} in {entry['name']}"
		print(len(found), "definitions and sets,", len(rows), "rows")
	END
}

plan 3
check series_for_the_kernel_tree_written written
check series_pass_checkpatch_strict checked
check netlink_specification_is_consistent consistent
[ -z "$failed" ]
