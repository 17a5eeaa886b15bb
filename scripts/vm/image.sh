#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# image.sh - build the initramfs that run-vm.sh boots, once, and print its path.
# Usually it only mounts the host's root file system, or the tree that is given. With --in-memory it is
# the machine's root: a copy of the programs that tests run, because each access to a host file lets
# the processor idle until the host has answered, and idle time is exactly what virtual time skips.
# What is not copied is not there; run-vm.sh --preload adds to it.
#
# usage: image.sh [--in-memory] RELEASE MODULES_DIR [TREE]

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

python=$(readlink -f /usr/bin/python3)
python=${python##*/}

in_memory=''
if [ "${1-}" = --in-memory ]; then
	in_memory=1
	shift
fi
if [ $# -lt 2 ] || [ $# -gt 3 ]; then die "wrong arguments; usage: image.sh [--in-memory] RELEASE MODULES_DIR [TREE]"; fi
release=$1
modules=$(realpath -e "$2")
tree=${3:-/}

# Named after what it was made from, so that an outdated image is never used.
images=$DUALPI2_CACHE/vm
mkdir -p "$images"
made_from() {
	cat "$DUALPI2_ROOT/scripts/vm/init.sh" "$DUALPI2_ROOT/scripts/vm/image.sh"
	echo "$modules $tree"
	stat -c '%n %s %Y' "$(command -v busybox)" "$modules/modules.dep"
	[ -z "$in_memory" ] || stat -c '%n %s %Y' "$tree/var/lib/dpkg/status" "$DUALPI2_VENV/requirements.txt" 2>/dev/null || true
}
image=$images/$release${in_memory:+-memory}-$(made_from | cksum | cut -d' ' -f1)
exec 8>"$images/lock"
flock 8
if [ -s "$image" ]; then
	touch "$image"
	echo "$image"
	exit 0
fi
find "$images" -type f -name '[0-9]*' -mmin +360 -delete # each use touches its image

work=$(mktemp -d "$images/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
pack() { cpio --quiet -o -H newc; }

# busybox, init.sh, and the modules that mount the root, in the order to load them.
boot_layer() {
	local dir=$work/boot path name
	mkdir -p "$dir"/{bin,modules,proc,sys,dev,host,memory,cow,results,root}
	cp "$(command -v busybox)" "$dir/bin/busybox"
	ln -s busybox "$dir/bin/sh"
	cp "$DUALPI2_ROOT/scripts/vm/init.sh" "$dir/init"
	# A kernel of our own has all built in.
	[ -d "$modules/kernel" ] || : >"$work/modules"
	[ ! -d "$modules/kernel" ] || for name in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
		modprobe -d "${modules%/lib/modules/*}" -S "$release" --show-depends "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/modules"
	while read -r path; do
		name=$(basename "${path%.ko*}").ko
		case $path in
		*.xz) xz -dc "$path" >"$dir/modules/$name" ;;
		*.zst) zstd -qdc "$path" >"$dir/modules/$name" ;;
		*) cp "$path" "$dir/modules/$name" ;;
		esac
		echo "$name" >>"$dir/modules/order"
	done <"$work/modules"
	(cd "$dir" && find . | pack)
}

# The usual programs of this machine.
host_files() {
	local packages=(base-files base-passwd netbase tzdata libc-bin bash dash coreutils util-linux mount hostname grep
		sed gawk mawk findutils diffutils procps kmod iproute2 ethtool nftables tcpdump iputils-ping jq bc
		tar gzip xz-utils python3)

	printf '%s\n' /bin /sbin /lib /lib64 /root /home /mnt /opt /srv /var/lib /var/tmp /usr/local/bin \
		/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache /usr/share/locale/locale.alias
	find /etc -maxdepth 1 ! -type d
	find /etc/alternatives /etc/iproute2 /etc/modprobe.d /usr/share/zoneinfo/Etc 2>/dev/null || true
	find /usr/bin /usr/sbin /usr/lib/x86_64-linux-gnu -maxdepth 1 -type l
	# Some names among the dependencies are virtual packages, unknown to dpkg-query.
	apt-cache depends --recurse --installed --important "${packages[@]}" 2>/dev/null | grep '^[a-z0-9]' | sort -u |
		{ xargs dpkg-query -L 2>/dev/null || true; } |
		grep -v -E '^/usr/share/(doc|man|locale|info|lintian|zoneinfo|perl|i18n|perl5)/|/gconv/|/perl/'
	# With the byte code that no package lists.
	find "/usr/lib/$python" 2>/dev/null |
		grep -v -E "^/usr/lib/$python/(config-[^/]*|test|idlelib|lib2to3|pydoc_data|ensurepip)/" || true
}

# A tree is made of what tests need: all but what they never read.
tree_files() {
	find "$tree" -xdev \( -path "$tree/boot/*" -o -path "$tree/var/cache/*" -o -path "$tree/var/lib/apt/*" \
		-o -path "$tree/usr/share/*/*" ! -path "$tree/usr/share/iproute2/*" ! -path "$tree/usr/share/zoneinfo/Etc*" \
		! -path "$tree/usr/share/tcpdump/*" -o -path '*/gconv/*' ! -name 'gconv-modules*' -o -path '*/perl' \
		-o -path '*/perl-base' -o -path "$tree/usr/lib/modules" -o -path "$tree/usr/lib/python3*/test" \
		-o -path "$tree/usr/lib/python3*/pydoc_data" -o -path "$tree/usr/lib/python3*/ensurepip" \) -prune -o -print |
		sed "s,^$tree,,"
}

# Whatever the tree: Python packages (plots are drawn on the host) and the modules that tests load.
common_files() {
	local kernel=$modules/kernel name

	find "$DUALPI2_VENV" 2>/dev/null |
		grep -v -E '/site-packages/((ruff|mypy|mypyc|ast_serialize|librt|numpy|matplotlib|mpl_toolkits|PIL|fontTools|contourpy|kiwisolver|pip|setuptools|[^/]*[.]libs)/|[^/]*__mypyc)|/bin/(ruff|shfmt)$' || true
	find "$modules" -maxdepth 1 -name 'modules.*'
	for name in net/core net/ipv4 net/ipv6 net/sched net/netfilter net/packet net/bridge net/8021q net/802 net/llc \
		net/psample net/tls net/sctp net/xfrm drivers/net/vxlan drivers/net/wireguard crypto arch/x86/crypto lib/crc lib/crypto \
		lib/math; do
		[ ! -d "$kernel/$name" ] || find "$kernel/$name" -type f
	done
	find "$kernel/lib" -maxdepth 1 -type f ! -name 'test*'
	find "$kernel/drivers/net" -maxdepth 1 -type f
}

# The files of a tree that are listed on stdin, under memory/, their directories first. "memory" is a
# link to the tree while packing. In a tree with merged /usr, /lib is a link and what lies under it is elsewhere.
memory_layer() { # TREE
	local merged=''
	[ ! -L "$1/lib" ] || merged='s,^/(bin|sbin|lib|lib64)/,/usr&,'
	ln -sfn "$1" "$work/memory"
	sed -E "$merged; \\,^/?[.]?\$,d" | sort -u |
		awk -F/ '{
			path = ""
			for (i = 2; i < NF; i++) {
				path = path "/" $i
				if (!seen[path]++) print "memory" path
			}
			if (!seen[$0]++) print "memory" $0
		}' >"$work/members"
	(cd "$work" && while IFS= read -r path; do
		[ ! -e "$path" ] && [ ! -L "$path" ] || printf '%s\n' "$path"
	done <members | pack 2>members.err)
}

say "building an initramfs for $release${in_memory:+ with the tools in it}"
{
	boot_layer
	if [ -n "$in_memory" ]; then
		if [ "$tree" = / ]; then host_files; else tree_files; fi | memory_layer "$tree"
		common_files | memory_layer /
	fi
} >"$work/image"
mv "$work/image" "$image"
echo "$image"
