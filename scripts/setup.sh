#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# setup.sh - install what the build, the tests and the demo need on a Debian machine: packages, and
# a Python environment in the cache directory. Silent and quick when all is there. It installs no
# kernel, loads no module and changes no setting.
#
# usage: setup.sh [--check | --tests]
#          --check  only say what is missing, and fail if anything is
#          --tests  first see if this machine can run the tests: root, namespaces, mounts, memory, disk, network

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

packages=(
	build-essential gcc-multilib bc kmod git patch pkg-config # the module; unit tests, also 32 bit
	gcc-12                                                    # which built the kernel that lint.sh reads
	bison flex libmnl-dev                                     # tc from iproute2's source
	qemu-system-x86 busybox-static cpio xz-utils zstd         # the test machine
	iproute2 ethtool nftables tcpdump iputils-ping procps     # in it
	iperf3 python3-yaml rsync                                 # kselftests, also in a kernel tree
	jq python3-venv shellcheck bsdextrautils                  # results, style check
	mmdebstrap mount util-linux                               # Debian trees of other releases
	debhelper dh-dkms fakeroot rpm elfutils lintian rpmlint   # packages
	sparse coccinelle libpython3-dev cppcheck codespell       # static analysis
	clang clang-tidy libclang-rt-dev
	unifdef python3-ply # kernel patches
	spin                # model of the shared clock
)
python=/usr/bin/python3
venv=$DUALPI2_VENV
requirements=$DUALPI2_ROOT/scripts/requirements.txt

# What a machine takes; and kernels, Debian trees and packages, with some to spare, or what is left to do when they are there.
shm_mib=2048 disk_mib=12000
[ ! -e "$DUALPI2_CACHE/tc" ] || disk_mib=3000

check_only='' tests=''
case ${1-} in
'') ;;
--check) check_only=1 ;;
--tests) tests=1 ;;
*) die "unknown argument '$1'; usage: setup.sh [--check | --tests]" ;;
esac

missing_packages() {
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
		awk '$1 == "installed" { print $2 }' | sort -u |
		comm -13 - <(printf '%s\n' "${packages[@]}" | sort -u)
}

# Made by the system's Python, which the test machine has too, from exactly these requirements.
venv_is_current() {
	grep -q "^home = ${python%/*}\$" "$venv/pyvenv.cfg" 2>/dev/null &&
		cmp -s "$requirements" "$venv/requirements.txt" && [ -x "$venv/bin/python" ]
}

free_mib() { df --output=avail -BM "$1" | tail -n 1 | tr -d ' M'; }

# The first index that apt would read: without a network nothing can be installed.
archive_answers() {
	local uri
	uri=$(apt-get --print-uris update 2>/dev/null | sed -n "s/^'\([^']*\)'.*/\1/p" | head -n 1)
	[ -n "$uri" ] && /usr/lib/apt/apt-helper -q -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 \
		-o APT::Sandbox::User= download-file "$uri" "$work/index" >/dev/null 2>&1
}

# can_run_tests: all that is in the way and that installing a package would not solve, before anything is fetched.
can_run_tests() {
	local problems=() problem free
	work=$(mktemp -d)
	[ "$(id -u)" = 0 ] || problems+=("not root: Debian trees, mounts and namespaces need it; run it with sudo")
	unshare --net --pid --fork true 2>/dev/null ||
		problems+=("'unshare --net --pid --fork' fails; in a container give it CAP_SYS_ADMIN, as docker run --privileged does")
	# mount(8) may be missing yet; perl is not.
	# shellcheck disable=SC2016 # for perl
	unshare --mount --propagation private perl -e '
		my ($dir, $none, $tmpfs, $overlay, $merged) = (shift, "", "tmpfs", "overlay", "merged");
		my $options = "lowerdir=lower,upperdir=upper,workdir=work";
		my $mount = 165; # on amd64
		chdir $dir or exit 1;
		syscall($mount, $tmpfs, $dir, $tmpfs, 0, $none) == 0 and chdir $dir or exit 1;
		mkdir $_ for qw(lower upper work merged);
		exit(syscall($mount, $overlay, $merged, $overlay, 0, $options) != 0)' "$work" 2>/dev/null ||
		problems+=("cannot mount tmpfs and overlay; in a container give it CAP_SYS_ADMIN, in a chroot make its root a mount (mount --bind DIR DIR)")
	free=$(free_mib /dev/shm 2>/dev/null || echo 0)
	[ "$free" -ge "$shm_mib" ] ||
		problems+=("only $free MB free in /dev/shm, where test machines have their memory; they need $shm_mib: mount -o remount,size=4G /dev/shm")
	mkdir -p "$DUALPI2_CACHE"
	free=$(free_mib "$DUALPI2_CACHE")
	[ "$free" -ge "$disk_mib" ] ||
		problems+=("only $free MB free for $DUALPI2_CACHE; the tests need $disk_mib: make room, or name another directory in DUALPI2_CACHE")
	{ [ ${#missing[@]} -eq 0 ] && venv_is_current && [ -e "$DUALPI2_CACHE/tc" ]; } || archive_answers ||
		problems+=("cannot reach Debian's archive as /etc/apt has it; check the network and 'apt-get update'")
	rm -rf "$work"
	for problem in "${problems[@]}"; do say "$problem"; done
	[ ${#problems[@]} -eq 0 ] || die "this machine cannot run the tests yet: ${#problems[@]} problems, listed above"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	die "this machine has no apt; on a Debian machine run this script again, or install by hand:" \
		"a C compiler with 32-bit libraries, make, bc, kmod, git, patch, bison, flex, libmnl, QEMU for x86," \
		"a static busybox, cpio, xz, mmdebstrap, debhelper, dh-dkms, rpm, lintian, rpmlint, sparse, coccinelle with libpython, cppcheck, codespell, clang with clang-tidy, iproute2, ethtool, nftables, tcpdump, ping, jq, python3 with venv"
fi

mapfile -t missing < <(missing_packages)
if [ -n "$check_only" ]; then
	ok=1
	if [ ${#missing[@]} -gt 0 ]; then
		say "missing packages: ${missing[*]}"
		ok=''
	fi
	if ! venv_is_current; then
		say "the Python environment $venv is missing or outdated"
		ok=''
	fi
	[ -n "$ok" ] || die "not everything is installed; run scripts/setup.sh"
	exit 0
fi

[ -z "$tests" ] || can_run_tests
if [ ${#missing[@]} -gt 0 ]; then
	[ "$(id -u)" = 0 ] ||
		die "cannot install packages without root; run: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a
	apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3
		-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold)
	log=$DUALPI2_CACHE/setup.log
	mkdir -p "$DUALPI2_CACHE"
	apt_get() { "${apt[@]}" "$@" </dev/null >>"$log"; }
	: >"$log"
	say "installing ${missing[*]}"
	# Lists may be absent, or name files that the mirror has since replaced: then read them first.
	if ! apt_get install --no-install-recommends "${missing[@]}" 2>/dev/null; then
		say "reading the package lists"
		retry 4 apt_get update || die "cannot read the package lists; check the network and /etc/apt"
		retry 3 apt_get install --no-install-recommends "${missing[@]}" ||
			die "cannot install packages; see the messages above and $log"
	fi
	mapfile -t missing < <(missing_packages)
	[ ${#missing[@]} -eq 0 ] || die "apt-get succeeded but these are not installed: ${missing[*]}; see $log"
fi

if ! venv_is_current; then
	say "making the Python environment $venv"
	rm -rf "$venv"
	mkdir -p "$DUALPI2_CACHE"
	"$python" -m venv "$venv" || die "cannot make $venv; check that python3-venv is installed and the disk is not full"
	retry 4 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 5 -r "$requirements" ||
		die "cannot install the Python packages; see the messages above, check the network and run again"
	# Test machines with another release's Python use it too: nothing that they import is compiled.
	made_by=$(basename "$venv"/lib/python3.*)
	for minor in {9..16}; do
		[ -e "$venv/lib/python3.$minor" ] || ln -s "$made_by" "$venv/lib/python3.$minor"
	done
	cp "$requirements" "$venv/requirements.txt"
fi
