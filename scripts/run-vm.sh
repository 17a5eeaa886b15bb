#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run-vm.sh - boot a stock kernel under QEMU on this machine's own root file system, or another Debian
# tree, and run one command in it as root. Not a sandbox, and not a way to keep a machine: nothing the command writes
# survives, but for what it prints and the directories it may write to.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

usage() {
	cat <<-'END'
		usage: scripts/run-vm.sh [options] -- COMMAND [ARGS]

		  --kernel X.Y        Debian kernel to boot (default 6.1, or the one installed in DIR); see scripts/kernel.sh.
		                      debug, plain, builtin: user-mode Linux, always in virtual time; kcsan: QEMU, in real time;
		                      see scripts/debug-kernel.sh
		  --root DIR          boot this Debian tree; scripts/root.sh makes one
		  --virtual-time      one instruction is one nanosecond, idle time passes at once (1 CPU, emulated)
		  --cpus N            default 1
		  --nic QUEUES        with QEMU, as root: a virtio-net device of so many queue pairs; what is sent to it is dropped
		  --memory SIZE       default 1G
		  --seed N            of the machine's random numbers (default: DUALPI2_SEED, or 1). With the same seed a run of
		                      user-mode Linux is the same to the bit, if the command and the files it reads are
		  --timeout SECONDS   of wall clock, then the machine is killed (default 900)
		  --rw DIR            a host directory the command may write to (repeatable)
		  --preload PATH      with --virtual-time: a host file or directory to copy into the machine (repeatable)
		  --append 'ARGS'     more kernel arguments
		  --accel kvm|tcg     default: DUALPI2_ACCEL, or tcg (emulation); kvm may hang a stock kernel where the host is
		                      a virtual machine itself
		  --qemu-arg ARG      one more argument for QEMU (repeatable)
		  --allow-warnings    do not fail on complaints in the kernel log
		  --show-kernel-log   print the kernel log on stderr at the end

		The command sees the root file system (its changes are lost), the repository (writable), the
		caller's working directory (the repository, if the machine does not have that directory), the variables
		DUALPI2_* (DUALPI2_VM and DUALPI2_SEED are set), /tmp in memory, and no network but loopback.

		The clock of a machine in virtual time starts at a fixed date. Other machines have the host's clock.

		With --virtual-time the root is a copy in memory of the usual programs (scripts/vm/image.sh lists them)
		and of the repository, whose changes are lost too. Each access to a --rw directory then costs an
		arbitrary jump of the clock: write to /tmp and copy at the end. User-mode Linux needs none of this.

		Exit code: the command's; 99 the kernel complained; 98 no result (crash); 124 timeout.
	END
}

kernel='' root=/ virtual_time='' cpus=1 memory=1G timeout=900 append='' nic='' accel='' seed=${DUALPI2_SEED:-1} allow_warnings='' show_log=''
rw=() preload=() qemu_args=() isolated=()
while [ $# -gt 0 ]; do
	case $1 in
	--virtual-time) virtual_time=1 ;;
	--allow-warnings) allow_warnings=1 ;;
	--show-kernel-log) show_log=1 ;;
	--help | -h)
		usage
		exit 0
		;;
	--)
		shift
		break
		;;
	--kernel | --root | --cpus | --nic | --memory | --seed | --timeout | --rw | --preload | --append | --accel | --qemu-arg)
		[ $# -ge 2 ] || die "$1 needs a value; see --help"
		case $1 in
		--kernel) kernel=$2 ;;
		--root)
			root=$(realpath -e "$2")
			[ -x "$root/bin/bash" ] || die "$root is no Debian tree; make one with scripts/root.sh"
			;;
		--cpus) cpus=$2 ;;
		--nic) nic=$2 ;;
		--memory) memory=$2 ;;
		--seed) seed=$2 ;;
		--timeout) timeout=$2 ;;
		--rw) rw+=("$(realpath -e "$2")") ;;
		--preload) preload+=("$(realpath -e "$2")") ;;
		--append) append+=" $2" ;;
		--accel) accel=$2 ;;
		--qemu-arg) qemu_args+=("$2") ;;
		esac
		shift
		;;
	*)
		usage >&2
		die "unknown option '$1'; put -- before the command"
		;;
	esac
	shift
done
[ $# -gt 0 ] || {
	usage >&2
	die "no command; give one after --"
}
uml=''
case $kernel in
debug | plain | ect1 | builtin) uml=1 virtual_time='' ;;
esac
[ "$cpus" = 1 ] || [ -z "$uml$virtual_time" ] || die "virtual time has one CPU; leave --cpus out"
[[ $seed =~ ^[0-9]{1,18}$ ]] || die "invalid seed '$seed' in --seed or DUALPI2_SEED; use a number from 0 to 999999999999999999"
export DUALPI2_SEED=$seed
if [ -n "$nic" ]; then
	[ -z "$uml" ] || die "user-mode Linux has no virtio-net; leave --nic out"
	[[ $nic =~ ^[1-9][0-9]?$ ]] || die "invalid number of queues '$nic' in --nic; use 1 to 99"
	if [ "$EUID" != 0 ] || [ ! -c /dev/net/tun ]; then die "--nic needs root and /dev/net/tun; run as root, after modprobe tun"; fi
	# Its other end is down, in a network namespace of its own.
	isolated=(unshare --net)
	qemu_args+=(-netdev "tap,id=nic,queues=$nic,script=no,downscript=no"
		-device "virtio-net-pci,netdev=nic,mq=on,vectors=$((2 * nic + 2)),romfile=")
fi
if [ -n "$uml$virtual_time" ]; then
	[ "$accel" != kvm ] || die "virtual time is emulated; leave --accel out"
	accel=tcg
	[ -z "$uml" ] || accel=uml
fi
accel=${accel:-${DUALPI2_ACCEL:-tcg}}
case $accel in
tcg | uml) ;;
kvm) [ -w /dev/kvm ] || die "cannot write to /dev/kvm; load the host's kvm module, or leave out --accel kvm and DUALPI2_ACCEL" ;;
*) die "unknown accelerator '$accel' in --accel or DUALPI2_ACCEL; use kvm or tcg" ;;
esac
need qemu-system-x86_64 busybox cpio modprobe setpriv

installed=''
if [ -z "$kernel" ] && [ "$root" != / ]; then
	installed=1
	KREL=$(find "$root/lib/modules" -mindepth 2 -maxdepth 2 -name modules.dep -printf '%h\n' | sed 's,.*/,,' | sort -V | tail -n 1)
	[ -n "$KREL" ] || die "no kernel is installed in $root; say --kernel X.Y"
	KMODS=$root/lib/modules/$KREL
	KIMG=$root/boot/vmlinuz-$KREL
	[ -e "$KIMG" ] || KIMG=$KMODS/vmlinuz
else
	# Assignments first: a failure inside eval "$(...)" would go unnoticed.
	assignments=$("$DUALPI2_ROOT/scripts/kernel.sh" "${kernel:-6.1}")
	eval "$assignments"
fi
initramfs=$("$DUALPI2_ROOT/scripts/vm/image.sh" ${virtual_time:+--in-memory} "$KREL" "$KMODS" "$root")
# The same date in seconds and in words, for user-mode Linux and for QEMU.
start=1700000000
clock="of the host"
[ -z "$uml$virtual_time" ] || clock=$(date -u -d "@$start" +%Y-%m-%dT%H:%M:%S)
say "seed $seed, clock $clock, kernel $KREL"

work=$(mktemp -d "${TMPDIR:-/tmp}/dualpi2-vm.XXXXXX")
vm='' relay=''
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	trap '' INT TERM HUP
	[ -z "$vm" ] || kill -TERM "$vm" 2>/dev/null || true
	[ -z "$relay" ] || kill -TERM "$relay" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

results=$work/results
mkdir "$results"
{ [ -n "$installed" ] || realpath -e "$KMODS"; } >"$results/modules"
echo "$root" >"$results/root"
if [ -n "$virtual_time" ]; then
	# The repository and what else is wanted, for vm/init.sh to unpack. Files may vanish meanwhile.
	prune=(-path "$DUALPI2_ROOT/.git")
	# Much, and of no use in the machine.
	for dir in check matrix deb rpm packages operator iproute2 unit lint debug plain torture; do
		prune+=(-o -path "$DUALPI2_ROOT/build/$dir")
	done
	# Results of the lab.
	prune+=(-o -path "$DUALPI2_ROOT/build/lab/*/*" ! -path "$DUALPI2_ROOT/build/lab/bench/*")
	for dir in "${rw[@]}"; do
		prune+=(-o -path "$dir/*")
	done
	find "$DUALPI2_ROOT" "${preload[@]}" \( "${prune[@]}" \) -prune -o -print 2>/dev/null |
		sed 's,^/,,' | (cd / && cpio --quiet -o -H newc) >"$results/preload" 2>"$work/cpio.log" || true
	tail -c 1024 "$results/preload" | grep -a 'TRAILER!!!' >/dev/null ||
		die "cannot copy the repository: $(tail -n 1 "$work/cpio.log"); free some disk space in ${TMPDIR:-/tmp}"
else
	rw=("$DUALPI2_ROOT" "${rw[@]}")
	# Another tree has no cache directory, and the machine's own /tmp would hide one there.
	if [ "$root" != / ] || [[ $DUALPI2_CACHE/ == /tmp/* ]]; then rw+=("$DUALPI2_CACHE"); fi
fi
printf '%s\n' "${rw[@]}" | awk 'NF && !seen[$0]++' >"$results/rw"

# The working directory, if the machine has it.
cwd=$PWD
if [ -n "$virtual_time" ] || [ "$root" != / ] || [[ $cwd/ =~ ^/(tmp|run|dev|proc|sys)/ ]]; then
	visible=''
	for dir in "$DUALPI2_ROOT" "${rw[@]}" "${preload[@]}"; do
		[[ $cwd/ != "$dir"/* ]] || visible=1
	done
	[ -n "$visible" ] || cwd=$DUALPI2_ROOT
fi
{
	for name in "${!DUALPI2_@}"; do
		printf 'export %s=%q\n' "$name" "${!name}"
	done
	# virtual-time, tcg, kvm or uml
	[ -n "$virtual_time" ] && vm_kind=virtual-time || vm_kind=$accel
	printf 'export DUALPI2_VM=%q\n' "$vm_kind"
	printf 'cd %q || exit\n' "$cwd"
	printf '%q ' exec "$@"
	echo
} >"$results/command"
mkfifo "$work/output"
: >"$work/console"

args="quiet loglevel=5 panic=-1 oops=panic log_buf_len=4M net.ifnames=0"
# A kernel of our own has no modules to load by need: no devices that nobody asked for.
args+=" ifb.numifbs=0 dummy.numdummies=0 sysctl.net.core.fb_tunnels_only_for_init_net=1"
share() { # TAG DIR OPTIONS
	vm_command+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
if [ -n "$uml" ]; then
	# It lays its memory there, as much as it uses.
	export TMPDIR=/dev/shm
	size=$(numfmt --from=iec "${memory^^}" 2>/dev/null) || die "'$memory' is no size; write one like 2G"
	[ "$(df --output=avail -B1 /dev/shm | tail -n 1)" -ge "$size" ] ||
		die "less than $memory free in /dev/shm, where the machine has its memory; free some, or lower --memory"
	# Started in $work, so that its command line, which it makes random numbers of, is the same each time.
	vm_command=("$KIMG" "mem=$memory" "initrd=$initramfs" uml_dir=. umid=uml con=null "con0=null,fd:1"
		"ssl0=null,fd:3" seccomp=on time-travel=inf-cpu uml_results=/proc/self/cwd/results)
	source=$DUALPI2_ROOT/selftests/debug/uml-seed.c
	library=$DUALPI2_CACHE/vm/uml-seed-$(cksum <"$source" | cut -d' ' -f1).so
	if [ ! -e "$library" ]; then
		cc -std=gnu11 -O2 -Wall -shared -fPIC -o "$library.$$" "$source" || die "cannot build $source"
		mv "$library.$$" "$library"
	fi
	vm_command=(env "LD_PRELOAD=$library" "DUALPI2_VM_SEED=$seed" "${vm_command[@]}" "time-travel-start=${start}000000000")
	read -r -a words <<<"$args$append"
	vm_command+=("${words[@]}")
else
	vm_command=(qemu-system-x86_64 -machine q35 -nodefaults -no-user-config -display none -no-reboot
		-seed "$seed" -m "$memory" -smp "$cpus" -kernel "$KIMG" -initrd "$initramfs"
		-serial "file:$work/console" -device virtio-serial-pci
		-chardev "file,id=output,path=$work/output" -device "virtserialport,name=output,chardev=output")
	[ -n "$virtual_time" ] || share root "$root" ,readonly=on
	share results "$results" ''
	n=0
	while read -r dir; do
		share "rw$n" "$dir" ''
		n=$((n + 1))
	done <"$results/rw"
	case $accel in
	kvm) vm_command+=(-accel kvm -cpu host) ;;
	# Its random numbers would be the host's.
	tcg) vm_command+=(-accel tcg -cpu "max,-rdrand,-rdseed") ;;
	esac
	args+=" nokaslr"
	if [ -n "$virtual_time" ]; then
		vm_command+=(-icount "shift=0,sleep=off" -rtc "base=$clock,clock=vm")
		# An idle tick bounds how far the clock can jump while the host answers.
		args+=" nowatchdog nohz=off"
	fi
	vm_command+=(-append "console=ttyS0 $args$append" "${qemu_args[@]}")
fi

cat "$work/output" &
relay=$!
if [ -n "$uml" ]; then
	# Each system call in the machine is a handover between two processes: a fifth cheaper if both have one processor.
	# A machine takes one that no other machine has; if there is none, or the caller has chosen, it runs anywhere.
	pin=() cpu=0
	while [ "$cpu" -lt "$(nproc)" ] && [ "$(nproc)" = "$(nproc --all)" ]; do
		exec 8>"$DUALPI2_CACHE/vm/cpu-$cpu.lock"
		if flock -n 8 && taskset -c "$cpu" true 2>/dev/null; then
			pin=(taskset -c "$cpu")
			break
		fi
		cpu=$((cpu + 1))
	done
	"${pin[@]}" setpriv --pdeathsig TERM env -C "$work" timeout --kill-after=5 "$timeout" "${vm_command[@]}" </dev/null \
		3>"$work/output" >"$work/console" 2>"$work/vm.log" &
else
	"${isolated[@]}" setpriv --pdeathsig TERM timeout --kill-after=5 "$timeout" "${vm_command[@]}" </dev/null \
		>"$work/vm.log" 2>&1 &
fi
vm=$!
rc=0
wait "$vm" || rc=$?
vm=''
# If the machine did not even open the pipe, its reader still waits for a writer.
: <>"$work/output"
wait "$relay" || true
relay=''

# The kernel's own log as "[seconds] text"; of a machine that crashed, what reached its console.
kernel_log() {
	if [ -s "$results/kmsg" ]; then
		awk -F';' '/^[0-9]+,[0-9]+,[0-9]+,/ {
			split($1, field, ",")
			sub(/^[^;]*;/, "")
			printf "[%12.6f] %s\n", field[3] / 1e6, $0
		}' "$results/kmsg"
	else
		tr -d '\r' <"$work/console"
	fi
}
last_words() {
	say "$1; its last console lines:"
	tail -n 40 "$work/console" | tr -d '\r' >&2
	cat "$work/vm.log" >&2
}

# Not of KCSAN: most of its reports are of the rest of the kernel, so the command judges them (selftests/fuzz/test_races.py).
complaint='Kernel panic|BUG: [^K]|BUG: K[^C]|WARNING:|Oops|\] RIP: |Call Trace:|unregister_netdevice: waiting|rcu: INFO|UBSAN: |ref_tracker: '
complaint+='|unreferenced object 0x|ODEBUG: |possible recursive locking|inconsistent lock state'
kernel_log >"$work/log"
[ -z "$show_log" ] || cat "$work/log" >&2
if [ "$rc" = 124 ] || [ "$rc" = 137 ]; then
	last_words "killed the machine after $timeout s of wall clock (raise --timeout if the command needs more)"
	exit 124
fi
if [ -z "$allow_warnings" ]; then
	if grep -q -E "$complaint" "$work/log"; then
		say "the kernel complained:"
		grep -E -A 25 "$complaint" "$work/log" | head -n 80 >&2
		exit 99
	fi
	# The first record has number 0; without it complaints may have been overwritten.
	if [ -s "$results/kmsg" ] && ! head -n 1 "$results/kmsg" | grep '^[0-9]*,0,' >/dev/null; then
		say "the kernel log overflowed, complaints in it may be lost; print less or pass --append log_buf_len=64M"
		exit 99
	fi
fi
if [ ! -s "$results/rc" ] || [ ! -s "$results/kmsg" ]; then
	last_words "the machine ended without a result"
	exit 98
fi
exit "$(cat "$results/rc")"
