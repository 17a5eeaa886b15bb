#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# setup.sh - install what the build, the tests and the demo need on a Debian machine: packages, and
# a Python environment in the cache directory. Silent and quick when all is there. It installs no
# kernel, loads no module and changes no setting.
#
# usage: setup.sh [--check]     --check only says what is missing, and fails if anything is

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

packages=(
	build-essential gcc-multilib bc kmod git patch pkg-config    # the module; unit tests, also 32 bit
	bison flex libmnl-dev                                        # tc from iproute2's source
	qemu-system-x86 busybox-static cpio xz-utils                 # the test machine
	iproute2 ethtool nftables tcpdump iputils-ping procps        # in it
	jq python3-venv shellcheck                                   # results, style check
	mmdebstrap                                                   # Debian trees of other releases
	debhelper dh-dkms fakeroot rpm                               # packages
	sparse coccinelle libpython3-dev cppcheck codespell          # static analysis
	clang clang-tidy libclang-rt-dev
)
python=/usr/bin/python3
venv=$DUALPI2_CACHE/venv
requirements=$DUALPI2_ROOT/scripts/requirements.txt

check_only=''
case ${1-} in
'') ;;
--check) check_only=1 ;;
*) die "unknown argument '$1'; usage: setup.sh [--check]" ;;
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

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	die "this machine has no apt; on a Debian machine run this script again, or install by hand:" \
		"a C compiler with 32-bit libraries, make, bc, kmod, git, patch, bison, flex, libmnl, QEMU for x86," \
		"a static busybox, cpio, xz, mmdebstrap, debhelper, dh-dkms, rpm, sparse, coccinelle with libpython, cppcheck, codespell, clang with clang-tidy, iproute2, ethtool, nftables, tcpdump, ping, jq, python3 with venv"
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
