#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: long needs=systemd
#
# test_systemd.sh - `dualpi2 up --persist` on a machine with systemd, which is booted twice. KTAP on stdout.
# A fresh Debian 12 (root.sh bookworm bare) gets systemd and our package, and its own kernel, udev and modprobe do
# the rest. Not here: how DKMS builds the module (selftests/packages/test_packages.sh); a built one takes its place.
#
# usage: test_systemd.sh          on the host, as root
#        test_systemd.sh fetch    only download what it installs; after that it uses no network
#        test_systemd.sh boot N   in the machine, what is tested at its first and second boot
#
# DUALPI2_MODULE: the module for that kernel, default build/6.1/sch_dualpi2.ko
#
# The machine has its root from the host by 9p, writable, so that it finds at the second boot what it left.

# shellcheck disable=SC2317 # most is called by name

set -uo pipefail

failed=0
check() { # NAME COMMAND...
	local name=$1
	shift
	if ("$@") >/tmp/check 2>&1; then
		echo "passed $name"
	else
		failed=1
		tail -n 25 /tmp/check | sed 's/^/# /'
		echo "failed $name"
	fi
}
eventually() { # COMMAND...: within five minutes, which is much where processors are emulated and shared
	local _
	for _ in {1..600}; do
		"$@" && return
		sleep 0.5
	done
	echo "in vain: $*"
	systemctl --no-pager status 'dualpi2@*'
	journalctl --no-pager -b -u 'dualpi2@*' | tail -n 20
	ip -details link
	tc qdisc show
	return 1
}
shows_ours() { tc qdisc show dev "$1" | grep -e dualpi2 -e clsact; }
refute() {
	! "$@" && return
	echo "this succeeded and should not have: $*"
	return 1
}

# In the machine

shaped() { # DEV UP DOWN: both directions are as they should be
	tc qdisc show dev "$1" | grep -F "dualpi2 d50: root" | grep -F "bandwidth $2" &&
		tc qdisc show dev "dp2-$1" | grep -F "dualpi2 d50: root" | grep -F "bandwidth $3 " | grep -w ingress &&
		tc filter show dev "$1" ingress | grep -F "Redirect to device dp2-$1"
}
no_trace() { # DEV; its name may be spelled otherwise in that of the unit
	refute ip link show "dp2-$1" && refute test -e "/etc/dualpi2/$1.conf" && refute test -e "/run/dualpi2/$1.json" &&
		[ -z "$(find /etc/systemd -name "$(unit "$1" | sed 's/\\/\\&/g')")" ] &&
		refute systemctl is-active "$(unit "$1")" && refute systemctl is-enabled "$(unit "$1")"
}
unit() { systemd-escape --template dualpi2@.service "$1"; }
state_of() { systemctl show -P ActiveState "$(unit "$1")"; }

up_persists() {
	ip link set eth0 up && dualpi2 up eth0 --upload 20mbit --download 100mbit --link docsis --persist && shaped eth0 20Mbit 100Mbit &&
		systemctl is-enabled dualpi2@eth0 && systemctl is-active dualpi2@eth0
	cat /etc/dualpi2/eth0.conf
	dualpi2 status eth0 | grep "at each boot"
}
up_persists_again() { # in place: the device for what comes in stays
	local index rate=$1
	index=$(cat /sys/class/net/dp2-eth0/ifindex)
	dualpi2 up eth0 --upload "$rate" --download 100mbit --link docsis --persist && [ "$(cat /sys/class/net/dp2-eth0/ifindex)" = "$index" ] &&
		grep "UPLOAD=\"$rate\"" /etc/dualpi2/eth0.conf
}
# Its name is spelled otherwise in that of a unit.
up_persists_with_a_dash() {
	ip link add lan-1 type dummy && ip link set lan-1 up && dualpi2 up lan-1 --upload 5mbit --download 7mbit --persist &&
		systemctl is-active 'dualpi2@lan\x2d1' && shaped lan-1 5Mbit 7Mbit
}
unit_is_verified() {
	# The manual is not installed here.
	systemd-analyze verify --man=no /usr/lib/systemd/system/dualpi2@.service 'dualpi2@eth0.service' >/tmp/verify 2>&1
	cat /tmp/verify
	refute grep dualpi2 /tmp/verify && systemd-analyze security --no-pager dualpi2@eth0.service | tail -n 1
}
restart_is_as_before() {
	systemctl restart dualpi2@eth0 && shaped eth0 20Mbit 100Mbit && systemctl stop dualpi2@eth0 && refute ip link show dp2-eth0 &&
		refute shows_ours eth0 && test -e /etc/dualpi2/eth0.conf && systemctl start dualpi2@eth0 &&
		shaped eth0 20Mbit 100Mbit
}
bad_words_are_in_the_journal() {
	cp /etc/dualpi2/eth0.conf /tmp/good
	sed -i 's/^LINK=.*/LINK="isdn"/' /etc/dualpi2/eth0.conf
	refute systemctl restart dualpi2@eth0
	mv /tmp/good /etc/dualpi2/eth0.conf
	journalctl --no-pager -b -u dualpi2@eth0 | grep "/etc/dualpi2/eth0.conf: --link: unknown keyword 'isdn'" &&
		systemctl restart dualpi2@eth0 && shaped eth0 20Mbit 100Mbit
}
reload_applies_the_file_in_place() {
	local index
	index=$(cat /sys/class/net/dp2-eth0/ifindex)
	sed -i 's/^UPLOAD=.*/UPLOAD="22mbit"/' /etc/dualpi2/eth0.conf
	systemctl reload dualpi2@eth0 && shaped eth0 22Mbit 100Mbit && dualpi2 set eth0 --upload 20mbit --persist &&
		shaped eth0 20Mbit 100Mbit && [ "$(cat /sys/class/net/dp2-eth0/ifindex)" = "$index" ]
}
metrics_timer_is_installed_disabled() {
	[ "$(systemctl is-enabled dualpi2-metrics.timer)" = disabled ] &&
		systemd-analyze verify --man=no /usr/lib/systemd/system/dualpi2-metrics.timer
}
at_boot() { active eth0 && shaped eth0 20Mbit 100Mbit; }
device_that_comes() { # later than the boot
	refute test -e /run/dualpi2/lan-1.json && ip link add lan-1 type dummy && eventually active lan-1 && shaped lan-1 5Mbit 7Mbit
}
active() { [ "$(state_of "$1")" = active ]; }
device_that_goes() {
	ip link del lan-1 && eventually gone && eventually inactive lan-1 && test -e /etc/dualpi2/lan-1.conf
}
gone() { ! ip link show dp2-lan-1 2>/dev/null; }
inactive() { [ "$(state_of "$1")" = inactive ]; }
down_is_for_good() {
	dualpi2 down eth0 && no_trace eth0 && refute shows_ours eth0 &&
		dualpi2 down lan-1 && no_trace lan-1 && refute test -e /etc/dualpi2 && refute ls /run/dualpi2
}
# A unit is active, and only the package's script can remove what it set.
removal_of_the_package_leaves_nothing() {
	ip link set eth0 up && dualpi2 up eth0 --upload 20mbit --download 100mbit --persist && dpkg -P dualpi2-tools && no_trace_of_package
}
no_trace_of_package() {
	refute ip link show dp2-eth0 && refute test -e /etc/dualpi2 &&
		[ -z "$(find /etc/systemd /usr/lib/systemd -name '*dualpi2@*')" ] && refute shows_ours eth0
}

boot1() {
	check module_is_not_loaded_before refute test -e /sys/module/sch_dualpi2
	check unit_is_verified unit_is_verified
	check up_persists up_persists
	check up_persists_again_in_place up_persists_again 21mbit
	check up_persists_the_old_rate up_persists_again 20mbit
	check module_was_loaded_by_need test -e /sys/module/sch_dualpi2
	check up_persists_with_a_dash up_persists_with_a_dash
	check restart_is_as_before restart_is_as_before
	check bad_words_are_in_the_journal bad_words_are_in_the_journal
	check reload_applies_the_file_in_place reload_applies_the_file_in_place
	check metrics_timer_is_installed_disabled metrics_timer_is_installed_disabled
}
boot2() {
	check boot_sets_it_up eventually at_boot
	check device_that_comes_is_set_up device_that_comes
	check device_that_goes_leaves_nothing device_that_goes
	check down_is_for_good down_is_for_good
	check removal_of_the_package_leaves_nothing removal_of_the_package_leaves_nothing
}
if [ "${1-}" = boot ]; then
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb SYSTEMD_PAGER=''
	"boot$2"
	exit "$failed"
fi

# On the host

# shellcheck source=scripts/common.sh
. "$(dirname "$(realpath "$0")")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$DUALPI2_ROOT/scripts/ktap.sh"
set -e
[ "$(id -u)" = 0 ] || die "it installs in a Debian tree; run as root"
module=${DUALPI2_MODULE:-$DUALPI2_ROOT/build/6.1/sch_dualpi2.ko}
build=$DUALPI2_ROOT/build/operator
cache=$DUALPI2_CACHE/packages/systemd
mkdir -p "$build/deb" "$cache/lists/partial" "$cache/archives/partial"
tree=$("$DUALPI2_ROOT/scripts/root.sh" bookworm bare)
# test_packages.sh makes it again if there is a newer kernel: not while it is in use here.
exec 5<"$tree.lock"
flock --shared 5
kernel=$(basename "$(dirname "$(ls "$tree"/lib/modules/*/modules.dep)")")
# The cache may have another stock 6.1 than the tree.
if [ "${1-}" = fetch ]; then
	"$DUALPI2_ROOT/scripts/kernel.sh" --headers "bookworm/$kernel" >/dev/null
	"$DUALPI2_ROOT/scripts/root.sh" bookworm build >/dev/null
elif [ "$(modinfo -F vermagic "$module" | cut -d' ' -f1)" != "$kernel" ]; then
	module=$("$DUALPI2_ROOT/scripts/build-for.sh" --headers "bookworm/$kernel" "$build/module")
fi
scratch=$(mktemp -d "$DUALPI2_CACHE/roots/systemd.XXXXXX")
child=''
cleanup() {
	[ -z "$child" ] || { kill -TERM "$child" 2>/dev/null && wait "$child"; } || true
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

"$DUALPI2_ROOT/scripts/dist/deb.sh" "$build/deb" >/dev/null
made_of() { cat "$tree/made-of" "$DUALPI2_ROOT/packaging/debian/control" && stat -c %Y "$tree/made-of"; }
offline=(--offline)
in_tree() { "$DUALPI2_ROOT/scripts/in-root.sh" "${offline[@]}" --scratch "$scratch" "$tree" bash -euo pipefail -c "$configure; $1"; }
# shellcheck disable=SC2016 # for the shell in the tree
configure="cache=$cache deb=$build/deb module=$module kernel=$kernel self=$DUALPI2_ROOT/selftests/packages/test_systemd.sh"'
		printf "%s \"%s\";\n" Dir::Cache::archives $cache/archives Dir::State::lists $cache/lists APT::Sandbox::User root \
			APT::Keep-Downloaded-Packages true Acquire::Languages none Acquire::Retries 3 >/etc/apt/apt.conf.d/99test
		echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/test
		packages() { apt-get -q -y "$@" --no-install-recommends install systemd-sysv udev dbus "$deb"/dualpi2-tools_*.deb; }
		# It boots with this initrd, and making one takes minutes.
		echo update_initramfs=no >/etc/initramfs-tools/update-initramfs.conf'
# shellcheck disable=SC2016 # for the shell in the tree
install_all() {
	in_tree 'packages
		install -D -m 644 "$module" "/lib/modules/$kernel/updates/dkms/sch_dualpi2.ko"
		depmod "$kernel"
		install -D -m 755 "$self" /opt/dualpi2-test/run
		cat >/etc/systemd/system/dualpi2-test.service <<-END
			[Unit]
			After=multi-user.target
			[Service]
			Type=oneshot
			ExecStart=/bin/sh -c "n=1; [ ! -e /opt/dualpi2-test/1.log ] || n=2; /opt/dualpi2-test/run boot \$\$n >/opt/dualpi2-test/\$\$n.log 2>&1; echo \$\$? >/opt/dualpi2-test/\$\$n.code"
			ExecStopPost=/bin/systemctl --no-block reboot
			[Install]
			WantedBy=multi-user.target
		END
		systemctl enable dualpi2-test.service
		systemctl mask getty@.service serial-getty@.service systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer \
			e2scrub_reap.service systemd-remount-fs.service
		: >/etc/fstab'
}
if ! made_of | cmp -s - "$cache/made-of"; then
	offline=()
	retry 3 in_tree 'apt-get -q -o APT::Update::Error-Mode=any update; packages --download-only' >&2 ||
		die "cannot fetch what is installed in the tree; check the network"
	offline=(--offline)
	made_of >"$cache/made-of"
fi
[ "${1-}" != fetch ] || exit 0
install_all >"$build/install.log" 2>&1 || {
	tail -n 15 "$build/install.log" >&2
	die "cannot install systemd in a tree; see $build/install.log"
}

# The usual initramfs, with an init of its own over that: the root is the host's directory, and systemd's.
image=$("$DUALPI2_ROOT/scripts/vm/image.sh" "$kernel" "$tree/lib/modules/$kernel" "$tree")
mkdir "$scratch/init"
cat >"$scratch/init/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,access=any,msize=262144,cache=loose root /root || poweroff -f
for dir in proc sys dev; do mount --move /$dir /root/$dir; done
exec switch_root /root /lib/systemd/systemd
END
chmod 755 "$scratch/init/init"
cat "$image" >"$scratch/initramfs"
(cd "$scratch/init" && echo init | cpio --quiet -o -H newc) >>"$scratch/initramfs"

boot() { # N
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private bash -euc '
		mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" root "$1/merged"
		exec timeout --kill-after=5 900 qemu-system-x86_64 -machine q35 -accel tcg -cpu max -m 1G -seed 1 -nodefaults \
			-no-user-config -display none -no-reboot -kernel "$2/boot/vmlinuz-$3" -initrd "$1/initramfs" \
			-serial "file:$4" -fsdev "local,id=root,path=$1/merged,security_model=none,multidevs=remap" \
			-device virtio-9p-pci,fsdev=root,mount_tag=root -netdev user,id=net,restrict=on -device virtio-net-pci,netdev=net \
			-append "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off systemd.show_status=0"' \
		- "$scratch" "$tree" "$kernel" "$build/console-$1.log" </dev/null >"$build/vm-$1.log" 2>&1 &
	child=$!
	wait "$child" || true
	child=''
}

plan
for n in 1 2; do
	say "boot $n"
	boot "$n"
	log=$scratch/upper/opt/dualpi2-test/$n.log
	if [ ! -e "${log%.log}.code" ]; then
		tail -n 20 "$build/console-$n.log" | tr -d '\r' | sed 's/^/# /'
		result "boot_${n}_ends" 1
		[ -e "$log" ] || continue
	fi
	while IFS= read -r line; do
		case $line in
		'passed '*) result "${line#passed }" 0 ;;
		'failed '*) result "${line#failed }" 1 ;;
		*) echo "# ${line#\# }" ;;
		esac
	done <"$log"
done
plan "$number"
[ -z "$failed" ]
