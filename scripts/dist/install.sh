#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# install.sh - put the module, the tc plugin, its man page and its completion, dualpi2
# and dualpi2-top where this machine looks for them, or remove them.  Packages do it better; this
# is for a machine without them.
#
# usage: install.sh install|uninstall MODULE PLUGIN TC-LIBRARY-DIRECTORY

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

[ $# -eq 4 ] || die "usage: install.sh install|uninstall MODULE PLUGIN TC-LIBRARY-DIRECTORY"
verb=$1 module=$2 plugin=$3 tclib=$4
release=$(uname -r)
modules=${DESTDIR-}/lib/modules/$release/updates
man=${DESTDIR-}/usr/local/share/man/man8
completion=${DESTDIR-}/usr/local/share/bash-completion/completions
zsh=${DESTDIR-}/usr/local/share/zsh/site-functions
fish=${DESTDIR-}/usr/local/share/fish
examples=${DESTDIR-}/usr/local/share/doc/dualpi2-tools/examples
bin=${DESTDIR-}/usr/local/bin
units=${DESTDIR-}/usr/local/lib/systemd/system
share=${DESTDIR-}/usr/local/share/dualpi2
doc=${DESTDIR-}/usr/local/share/doc/dualpi2-tools
cd "$DUALPI2_ROOT"
[ -n "${DESTDIR-}" ] || [ "$(id -u)" -eq 0 ] || die "this writes to /lib and /usr; run it as root"
[ -n "$tclib" ] || die "cannot tell where tc looks for plugins; say TCLIB=DIR (strings \$(command -v tc) | grep /tc/)"

# What would fail half-way, or seem to succeed and do nothing.
look_first() {
	local dir=/lib/modules/$release built_for
	[ -d "$dir" ] || die "$dir is missing: the running kernel $release is not installed here; boot one that is"
	[ -w "$dir" ] || die "cannot write to $dir; make it writable (mount -o remount,rw) and run again"
	! grep -qs '/sch_dualpi2\.ko$' "$dir/modules.builtin" ||
		die "a built-in dualpi2 cannot be replaced, and kernel $release has one; boot another kernel"
	[ -z "$(find "$dir/updates/dkms" -name 'sch_dualpi2.ko*' 2>/dev/null)" ] ||
		die "the package dualpi2-dkms has put its module there already; remove it first: apt remove dualpi2-dkms"
	built_for=$(modinfo -F vermagic "$module" | cut -d' ' -f1)
	[ "$built_for" = "$release" ] ||
		die "$module is for kernel ${built_for:-unknown}, and this is $release; run: make clean install"
}

# What a package has put there is not touched, whichever way.
leave_packages() {
	local file=$tclib/q_dualpi2.so owner
	[ -e "$file" ] || return 0
	if owner=$(dpkg-query -S "$file" 2>/dev/null) || owner=$(rpm -qf "$file" 2>/dev/null); then
		die "$file belongs to a package (${owner%%:*}); use the package manager instead"
	fi
}

# Units that are enabled could do nothing without the program. Their files in /etc/dualpi2 stay.
disable_units() {
	local conf unit now=''
	command -v systemctl >/dev/null || return 0
	[ ! -d /run/systemd/system ] || now=--now
	for conf in /etc/dualpi2/*.conf; do
		[ -e "$conf" ] || continue
		unit=dualpi2@$(systemd-escape "$(basename "$conf" .conf)").service
		systemctl disable ${now:+"$now"} "$unit" || true
	done
	systemctl disable ${now:+"$now"} dualpi2-metrics.timer || true
}

case $verb in
install)
	for file in "$module" "$plugin"; do
		[ -f "$file" ] || die "$file is missing; run: make all"
	done
	[ -n "${DESTDIR-}" ] || { look_first && leave_packages; }
	install -D -m 644 "$module" "$modules/sch_dualpi2.ko"
	install -D -m 644 "$plugin" "${DESTDIR-}$tclib/q_dualpi2.so"
	ln -sf q_dualpi2.so "${DESTDIR-}$tclib/q_dualpi2_mq.so"
	install -D -m 644 iproute2-patch/man/man8/tc-dualpi2.8 "$man/tc-dualpi2.8"
	install -D -m 644 iproute2-patch/bash-completion/tc-dualpi2 "$completion/tc"
	install -D -m 755 -t "$bin" tools/bin/dualpi2 tools/bin/dualpi2-top
	rm -rf "$share"
	for part in '' kernel up doctor top; do
		install -D -m 644 -t "$share/dualpi2/$part" tools/dualpi2/"$part"/*.py
	done
	install -m 644 include/uapi/linux/dualpi2.h "$share/dualpi2"
	rm -rf "$doc"
	install -D -m 644 -t "$doc" README.md
	for part in docs docs/guides docs/img docs/style packaging/openwrt evaluation evaluation/img; do
		find "$part" -maxdepth 1 -regex '.*\.\(md\|svg\|conf\|yml\|ini\|html\|css\)' -exec install -D -m 644 -t "$doc/$part" {} +
	done
	ln -s ../../../dualpi2/schema "$doc/docs/schema"
	version >"$share/dualpi2/VERSION"
	chmod 644 "$share/dualpi2/VERSION"
	install -D -m 644 -t "$completion" tools/completion/bash/*
	install -D -m 644 -t "$zsh" tools/completion/zsh/*
	install -D -m 644 -t "$fish/vendor_completions.d" tools/completion/fish/*
	install -D -m 644 -t "$fish/vendor_conf.d" tools/completion/fish-conf/*
	install -D -m 644 -t "$examples" tools/share/examples/*
	install -D -m 644 -t "$units" tools/share/dualpi2@.service tools/share/dualpi2-metrics.service tools/share/dualpi2-metrics.timer
	sed -i 's,/usr/bin/,/usr/local/bin/,' "$units/dualpi2@.service" "$units/dualpi2-metrics.service"
	install -D -m 644 tools/share/dualpi2.8 "$man/dualpi2.8"
	install -D -m 644 -t "$share" tools/share/grafana-dualpi2.json tools/share/dualpi2-alerts.yml
	install -D -m 644 -t "$share/schema" docs/schema/*.json
	install -D -m 644 tools/share/dualpi2-top.8 "$man/dualpi2-top.8"
	;;
uninstall)
	[ -n "${DESTDIR-}" ] || { leave_packages && disable_units; }
	rm -f "$modules/sch_dualpi2.ko" "${DESTDIR-}$tclib/q_dualpi2.so" "${DESTDIR-}$tclib/q_dualpi2_mq.so" \
		"$man/tc-dualpi2.8" "$completion/tc" \
		"$bin/dualpi2" "$bin/dualpi2-top" "$man/dualpi2.8" "$man/dualpi2-top.8" "$completion/dualpi2" "$completion/dualpi2-top" \
		"$zsh/_dualpi2" "$fish"/vendor_completions.d/dualpi2{,-top}.fish "$fish/vendor_conf.d/tc-dualpi2.fish" \
		"$units/dualpi2@.service" "$units/dualpi2-metrics.service" "$units/dualpi2-metrics.timer"
	rm -rf "$share" "$doc"
	;;
*)
	die "unknown verb '$verb'; install or uninstall"
	;;
esac
[ -n "${DESTDIR-}" ] || depmod
[ -n "${DESTDIR-}" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload || true
loaded=/sys/module/sch_dualpi2/srcversion
if [ -z "${DESTDIR-}" ] && [ -r "$loaded" ] &&
	{ [ "$verb" = uninstall ] || [ "$(cat "$loaded")" != "$(modinfo -F srcversion "$module")" ]; }; then
	say "another sch_dualpi2 stays loaded until a reboot, or until: tc qdisc del dev DEV root" \
		"(for each DEV of: tc qdisc show | grep dualpi2), modprobe -r sch_dualpi2"
fi
