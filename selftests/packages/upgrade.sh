#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# upgrade.sh - the part of selftests/packages/test_packages.sh that needs a running kernel: the installed module
# under traffic, its upgrade while in use, its removal. Run in a test machine, which it changes.
#
# usage: upgrade.sh OLD-VERSION NEW-VERSION DIRECTORY-OF-NEW-PACKAGES in-tree|alone
#
# /opt/sch_dualpi2.ko is the new version as DKMS built it in this tree before: make hands that out,
# because to compile it again takes minutes under emulation. All else of DKMS and dpkg is real.
#
# Prints "passed NAME", "failed NAME" and comments; in-tree: the kernel has a module of that name too.

# shellcheck disable=SC2317 # most is called by name

set -uo pipefail
old=$1 new=$2 packages=$3 in_tree=$4
failed=0

check() { # NAME COMMAND...
	local name=$1 began=$SECONDS
	shift
	if "$@" >/tmp/check 2>&1; then
		[ $((SECONDS - began)) -lt 20 ] || echo "# the next one took $((SECONDS - began)) s"
		echo "passed $name"
	else
		failed=1
		sed 's/^/# /' /tmp/check | tail -n 25
		echo "failed $name"
	fi
}
loaded() {
	echo "loaded: $(cat /sys/module/sch_dualpi2/version)"
	[ "$(cat /sys/module/sch_dualpi2/version)" = "$1" ]
}
sent() { tc -s qdisc show dev v0 | sed -n 's/^ Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p'; }
received() { ip netns exec peer cat /sys/class/net/v1/statistics/rx_packets; }

link() {
	ip netns add peer && ip link add v0 type veth peer name v1 netns peer &&
		ip addr add 192.0.2.1/24 dev v0 && ip link set v0 up &&
		ip -n peer addr add 192.0.2.2/24 dev v1 && ip -n peer link set v1 up
}
autoload() { # no modprobe: tc asks the kernel for it
	[ ! -e /sys/module/sch_dualpi2 ] && tc qdisc add dev v0 root dualpi2 && loaded "$1"
}
from_updates() { modinfo -n sch_dualpi2 && [[ $(modinfo -n sch_dualpi2) == */updates/dkms/sch_dualpi2.ko* ]]; }
packets_pass() {
	local first=$1 first_received=$2
	sleep 2
	echo "sent $first, now $(sent); received $first_received, now $(received)"
	[ "$(sent)" -gt "$((first + 5))" ] && [ "$(received)" -gt "$((first_received + 5))" ]
}
extension_shown() {
	tc -s qdisc show dev v0
	tc -s qdisc show dev v0 | grep 'ramp ' >/dev/null
}
# Level "full" of this module, "basic" of the in-tree one.
top_shows() { dualpi2-top --device v0 --since-start --json | tee /dev/stderr | grep "\"handle\": .*\"level\": \"$1\"" >/dev/null; }
upgrade() {
	dpkg -i "$packages"/dualpi2-*.deb >/tmp/upgrade 2>&1 && return
	cat /tmp/upgrade
	return 1
}
message() {
	cat /tmp/upgrade
	grep "the loaded module is version $old; version $new is used after" /tmp/upgrade
}
# The skipped part of autopkgtest_passes in test_packages.sh: this machine is for the test alone.
autopkgtest_module() {
	autopkgtest --no-built-binaries --test-name module --ignore-restrictions isolation-machine --output-dir /tmp/adt \
		"$packages"/upload/*.dsc "$packages"/upload/*.deb -- null >/tmp/adt.log 2>&1
	tail -n 20 /tmp/adt.log
	grep '^module  *PASS' /tmp/adt/summary
}
remove() { tc qdisc del dev v0 root && modprobe -r sch_dualpi2; }
uninstall() { remove && dpkg -P dualpi2-dkms; }
other_again() { # the in-tree one
	tc qdisc add dev v0 root dualpi2 && modinfo -n sch_dualpi2 && [[ $(modinfo -n sch_dualpi2) == */kernel/net/sched/* ]] &&
		[ -d /sys/module/sch_dualpi2 ] && ! loaded "$new"
}
none_left() { ! modinfo -n sch_dualpi2 && ! tc qdisc add dev v0 root dualpi2; }

mv /usr/bin/make /usr/bin/make.real
cat >/usr/bin/make <<'END'
#!/bin/sh
for word; do
	case $word in M=*) cp /opt/sch_dualpi2.ko "${word#M=}" && exit 0 ;; esac
done
exec /usr/bin/make.real "$@"
END
chmod 755 /usr/bin/make

check link link
check autoload_takes_ours autoload "$old"
check module_is_from_updates from_updates
mkfifo /tmp/silent
while :; do
	# Nobody listens there, which is none of our business. To wait without a process for it is cheaper.
	echo x >/dev/udp/192.0.2.2/9
	read -r -t 0.1 -u 7
done 2>/dev/null 7<>/tmp/silent &
traffic=$!
check packets_pass packets_pass "$(sent)" "$(received)"
check extension_is_shown extension_shown
check top_shows_all top_shows full

check upgrade_succeeds upgrade
check upgrade_says_what_is_loaded message
check old_one_stays_loaded loaded "$old"
check traffic_goes_on packets_pass "$(sent)" "$(received)"
kill "$traffic"
check module_can_be_changed remove
check new_one_is_loaded autoload "$new"
check extension_is_shown_again extension_shown
check autopkgtest_module_passes autopkgtest_module

check removal_succeeds uninstall
if [ "$in_tree" = in-tree ]; then
	check kernels_own_is_back other_again
	check top_shows_the_kernels_own top_shows basic
else
	check no_module_is_left none_left
fi
exit "$failed"
