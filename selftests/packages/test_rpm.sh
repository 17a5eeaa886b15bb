#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=6.1-headers,dist
#
# test_rpm.sh - are the RPMs of build/rpm, which rpm.sh builds on Debian, sound? They are installed into an empty
# directory, without their scripts; the module is built from there as DKMS does it, and the plugin is
# loaded by this machine's tc. Not a test of Fedora: see packaging/rpm/dualpi2.spec. KTAP on stdout.
#
# usage: test_rpm.sh

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

assignments=$("$DUALPI2_ROOT/scripts/kernel.sh" --headers 6.1)
eval "$assignments"
version=$(version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
rpms=$DUALPI2_ROOT/build/rpm
mkdir "$root"

query() { rpm --dbpath "$work/db" "$@"; }
has_version() {
	[ "$(query -qp --queryformat '%{VERSION}\n' "$rpms"/*.rpm | sort -u)" = "$version" ]
}
names_no_machine() { [ "$(query -qp --queryformat '%{BUILDHOST}\n' "$rpms"/*.rpm | sort -u)" = localhost ]; }
installs() { rpm --dbpath /db --root "$root" -i --nodeps --noscripts "$rpms"/*.noarch.rpm "$rpms"/*.x86_64.rpm; }
has_files() {
	local file
	cd "$DUALPI2_ROOT"
	for file in $(find README.md docs -name '*.md' -o -name '*.svg' | sed "s,^,$root/usr/share/doc/dualpi2-tools/,") \
		$(find Kbuild sch_dualpi2.c include -type f | sed "s,^,$root/usr/src/sch-dualpi2-$version/,") \
		"$root/usr/src/sch-dualpi2-$version/dkms.conf" \
		"$root"/usr/lib64/tc/q_dualpi2.so "$root"/usr/lib64/tc/q_dualpi2_mq.so "$root"/usr/share/man/man8/tc-dualpi2.8dualpi2* \
		"$root"/etc/bash_completion.d/tc-dualpi2 "$root"/usr/share/man/man8/dualpi2-top.8* \
		"$root"/usr/lib/systemd/system/dualpi2-metrics.timer "$root"/usr/share/zsh/site-functions/_dualpi2 \
		"$root"/usr/share/fish/vendor_conf.d/tc-dualpi2.fish \
		"$root"/usr/share/doc/dualpi2-tools/examples/ppp-ip-up.sh \
		"$root"/usr/share/dualpi2/{grafana-dualpi2.json,dualpi2-alerts.yml,schema/tc-dualpi2.schema.json}; do
		[ -s "$file" ] || {
			echo "no $file"
			return 1
		}
	done
	scripts/prose.py installed "$root/usr/share/doc/dualpi2-tools"
}
has_scripts() {
	local scripts
	scripts=$(query -qp --scripts "$rpms"/*.noarch.rpm)
	printf '%s\n' "$scripts"
	grep -q "^dkms add -m sch-dualpi2 -v $version" <<<"$scripts" &&
		grep -q "^dkms install -m sch-dualpi2 -v $version" <<<"$scripts" &&
		grep -q "^dkms remove -m sch-dualpi2 -v $version --all" <<<"$scripts"
}
conf_is_read() ( # as dkms reads it
	set +u
	# shellcheck disable=SC2034 # for dkms.conf
	kernelver=$(uname -r)
	# shellcheck source=/dev/null
	. "$root/usr/src/sch-dualpi2-$version/dkms.conf"
	# shellcheck disable=SC2154 # by dkms.conf
	said="$PACKAGE_NAME $PACKAGE_VERSION ${BUILT_MODULE_NAME[0]}"
	echo "$said"
	[ "$said" = "sch-dualpi2 $version sch_dualpi2" ]
)
module_builds() {
	cp -r "$root/usr/src/sch-dualpi2-$version" "$work/dkms"
	make -C "$KDIR" M="$work/dkms" modules
	[ "$(modinfo -F version "$work/dkms/sch_dualpi2.ko")" = "$version" ]
}
plugin_loads() {
	{ TC_LIB_DIR=$root/usr/lib64/tc tc qdisc add dev lo root dualpi2 help 2>&1 || true; } | grep -F '[ ramp TIME ]'
}
top_runs() { [ "$("$root/usr/bin/dualpi2-top" --version)" = "dualpi2-top $version" ]; }
rebuilds() {
	local options=()
	[ ! -e /etc/debian_version ] || options+=(--nodeps)
	rpmbuild "${options[@]}" --define "_topdir $work/again" --define "_dbpath $work/db" --rebuild "$rpms"/*.src.rpm
	[ "$(find "$work/again/RPMS" -name '*.rpm' | wc -l)" -ge 2 ]
}

plan 11
check rpms_are_built ls "$rpms"/*.src.rpm "$rpms"/*.noarch.rpm "$rpms"/*.x86_64.rpm
check rpms_have_the_version_of_the_module has_version
check rpms_name_no_machine names_no_machine
check rpms_install_into_an_empty_tree installs
check rpms_have_their_files has_files
check rpm_registers_and_removes_the_module has_scripts
check rpm_dkms_conf_names_the_module conf_is_read
check rpm_module_builds_as_by_dkms module_builds
check rpm_plugin_loads_in_tc plugin_loads
check rpm_top_runs top_runs
check rpm_source_package_rebuilds rebuilds
[ -z "$failed" ]
