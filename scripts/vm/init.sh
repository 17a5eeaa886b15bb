#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# init.sh - the first process of a test machine; image.sh packs it as /init in the initramfs.
# Stage 1 (busybox sh, in the initramfs) makes the root: /memory where the initramfs has it, else the
# host's root file system, or another tree of the host, read-only under an overlay in memory. Stage 2
# (bash, on that root) mounts what a command expects, runs it, and leaves its exit code and the kernel
# log in the results directory.
# Not a distribution's init: no udev, no services, no network but loopback, so that an idle
# machine is idle, which virtual time needs.
#
# The results directory comes from the host with: modules (path of the kernel's modules, empty if they
# are where they belong), rw (the writable directories, one a line), command and perhaps preload (files to
# unpack). It goes back with: rc, kmsg.

set -u

RESULTS=/run/dualpi2-vm
# busybox looks at its own name.
BUSYBOX=/run/busybox

give_up() {
	echo "vm-init: $*" >/dev/kmsg
	[ ! -x $BUSYBOX ] || $BUSYBOX poweroff -f
	/bin/busybox poweroff -f
}

# By 9p, which knows the host's directories by tags, or in user-mode Linux directly.
mount_host() { # TAG HOST-DIRECTORY DIR OPTIONS
	if [ -n "$uml_results" ]; then
		mount -t hostfs -o "$2" none "$3"
	else
		mount -t 9p -o "trans=virtio,version=9p2000.L,access=any,msize=262144,$4" "$1" "$3"
	fi || give_up "cannot mount $1 on $3"
}

stage1() {
	/bin/busybox --install -s /bin
	export PATH=/bin
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t devtmpfs dev /dev
	if [ -e /modules/order ]; then
		while read -r module; do
			insmod "/modules/$module" || give_up "cannot load $module"
		done </modules/order
	fi

	uml_results=$(sed -n 's/.* uml_results=\([^ ]*\).*/\1/p' /proc/cmdline)
	mount_host results "$uml_results" /results cache=none
	if [ -d /memory/usr ]; then
		mount --bind /memory /root
	else
		# The host's files do not change under a running test, so they may be cached.
		mount_host root "$(cat /results/root)" /host cache=loose,ro
		mount -t tmpfs -o size=75% cow /cow
		mkdir /cow/upper /cow/work
		mount -t overlay -o lowerdir=/host,upperdir=/cow/upper,workdir=/cow/work,xino=off root /root ||
			give_up "cannot mount the overlay"
	fi

	for dir in tmp run; do
		mkdir -p "/root/$dir"
		mount -t tmpfs -o mode=1777,size=75% "$dir" "/root/$dir"
	done
	chmod 755 /root/run
	[ ! -e /results/preload ] || (cd /root && cpio -i -d -m -u </results/preload) || give_up "cannot unpack the repository"
	n=0
	while read -r dir; do
		mkdir -p "/root$dir"
		mount_host "rw$n" "$dir" "/root$dir" cache=none
		n=$((n + 1))
	done </results/rw
	release=$(uname -r)
	modules=$(cat /results/modules)
	if [ -n "$modules" ]; then
		mkdir -p "/root/lib/modules/$release"
		mount --bind "/root$modules" "/root/lib/modules/$release" || give_up "no modules in $modules"
	fi

	for dir in proc sys dev; do
		mkdir -p "/root/$dir"
		mount --move "/$dir" "/root/$dir"
	done
	mkdir -p "/root$RESULTS"
	mount --move /results "/root$RESULTS"
	cp /init "/root$RESULTS.init"
	cp /bin/busybox "/root$BUSYBOX"
	cp "/root$RESULTS/command" "/root$RESULTS.command"
	# As switch_root does, but without emptying the initramfs: it holds /memory.
	cd /root || give_up "no root"
	mount --move . /
	exec chroot . /bin/bash "$RESULTS.init" stage2
}

# shellcheck disable=SC3045 # stage 2 is run by bash
stage2() {
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin
	export HOME=/root LANG=C.UTF-8 TERM=dumb PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
	mkdir -p /dev/pts /dev/shm
	mount -t devpts -o gid=5,mode=620 devpts /dev/pts
	mount -t tmpfs -o mode=1777 shm /dev/shm
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t bpf bpf /sys/fs/bpf
	ln -sfn /proc/self/fd /dev/fd
	ln -sfn fd/0 /dev/stdin
	ln -sfn fd/1 /dev/stdout
	ln -sfn fd/2 /dev/stderr
	mount --make-rshared /
	echo dualpi2-vm >/proc/sys/kernel/hostname
	ip link set lo up
	ulimit -n 1048576

	port=
	for p in /sys/class/virtio-ports/*; do
		[ "$(cat "$p/name")" = output ] && port=/dev/${p##*/}
	done
	if [ -z "$port" ] && grep -q ' uml_results=' /proc/cmdline; then
		port=/dev/ttyS0
		stty -F $port raw -echo
	fi
	[ -n "$port" ] || give_up "no output port"

	# What the boot has left is the kernel's own. An object counts from its sixth second on.
	if grep -q ' kmemleak=on' /proc/cmdline; then
		sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		echo clear >/sys/kernel/debug/kmemleak
	fi

	echo "vm-init: command starts" >/dev/kmsg
	# A pipe, because a virtio port can be opened only once and programs open /dev/stdout again.
	mkfifo /run/output
	cat /run/output >"$port" &
	relay=$!
	setsid -w bash "$RESULTS.command" </dev/null >/run/output 2>&1
	rc=$?
	# What the command left running would hold the pipe open.
	for p in /proc/[0-9]*; do
		case ${p#/proc/} in
		1 | "$relay") ;;
		*) kill -KILL "${p#/proc/}" 2>/dev/null ;;
		esac
	done
	wait "$relay"

	if grep -q ' kmemleak=on' /proc/cmdline; then
		# Twice: the first scan takes for a leak what is just on its way.
		for _ in 1 2; do
			sleep 6
			echo scan >/sys/kernel/debug/kmemleak || echo "BUG: kmemleak has turned itself off" >/dev/kmsg
		done
		while IFS= read -r line; do echo "kmemleak: $line" >/dev/kmsg; done </sys/kernel/debug/kmemleak
	fi

	# Not dmesg(1): a test may have cleared its view of the log.
	dd if=/dev/kmsg of=/run/kmsg bs=16k iflag=nonblock status=none 2>/dev/null
	cp /run/kmsg "$RESULTS/kmsg"
	echo "$rc" >"$RESULTS/rc.new"
	mv "$RESULTS/rc.new" "$RESULTS/rc"
	$BUSYBOX poweroff -f
}

case ${1-} in
stage2) stage2 ;;
*) stage1 ;;
esac
