#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=dist,packages:host -- --no-machine host
# suite: long needs=dist,packages
#
# test_packages.sh - install the Debian packages of build/deb (make deb) on fresh installations of Debian, use
# them there, upgrade and remove them, and see what is said when something is missing. KTAP on stdout.
#
# usage: test_packages.sh [--fetch | --no-machine] [RELEASE...]       none named: all of suites.toml; host: that of this
#                machine, for a package of one release may not fit an older one, or else bookworm
#          --fetch       only download what the tests install; after that they use no network
#          --no-machine  without the upgrade in a machine, which takes most of the time
#
# In each release (root.sh bare, changed only in an overlay): packages in the tree without a machine,
# then one machine with the tree's own kernel (selftests/packages/upgrade.sh). Needs root; takes five to
# six minutes for a release without KVM. Downloads stay in the cache directory.

# shellcheck disable=SC2016 # single quotes: for the shell in the tree

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

mode=''
if [[ ${1-} == @(--fetch|--no-machine) ]]; then
	mode=$1
	shift
fi
releases=("$@")
[ ${#releases[@]} -gt 0 ] || mapfile -t releases < <(releases)
known=$(releases | paste -sd' ')
# shellcheck source=/dev/null
[ "${releases[*]}" != host ] || releases=("$(. /etc/os-release && echo "${VERSION_CODENAME-}")")
[[ $# -ne 1 || $1 != host || " $known " == *" ${releases[*]} "* ]] || releases=(bookworm)
for release in "${releases[@]}"; do
	[[ " $known " == *" $release "* ]] || die "unknown release '$release'; known are $known"
done
[ "$(id -u)" = 0 ] || die "installing in a Debian tree needs root; run as root"

# Of its own, so that releases can be tested side by side.
build=$DUALPI2_ROOT/build/packages/${releases[*]}
build=${build// /-}
new=$DUALPI2_ROOT/build/deb old=$build/old
new_version=$(version) old_version=2.0.9
in_root=$DUALPI2_ROOT/scripts/in-root.sh
mkdir -p "$build" "$DUALPI2_CACHE/packages" "$DUALPI2_CACHE/roots"
scratch='' child='' in_tree=''
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	[ -z "$child" ] || { kill -TERM "$child" 2>/dev/null && wait "$child"; } || true
	[ -z "$scratch" ] || rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# try NAME COMMAND...: a test; the end of its output is shown if it fails.
try() {
	local name=$1 code=0 began=$SECONDS
	shift
	set +e
	(set -e && "$@") >"$build/log" 2>&1
	code=$?
	set -e
	sed -n 's/^NOTE /# /p' "$build/log"
	result "${release:+${release}_}$name" "$code" "$(cat "$build/log")"
	say "${release:+$release: }$name, $((SECONDS - began)) s"
}

# old_in_name: enough for an upgrade that is refused before anything is unpacked.
old_in_name() {
	rm -rf "$build/repacked" "$old"
	mkdir -p "$old"
	dpkg-deb -R "$new"/dualpi2-dkms_*.deb "$build/repacked"
	sed -i "s/^Version: .*/Version: $old_version/" "$build/repacked/DEBIAN/control"
	dpkg-deb -b "$build/repacked" "$old" >/dev/null
}

# fresh: what is installed from here on goes into an overlay of its own.
fresh() {
	[ -z "$scratch" ] || rm -rf "$scratch"
	scratch=$(mktemp -d "$DUALPI2_CACHE/roots/packages.XXXXXX")
	# uname tells of the kernel of the machine around, which no installed system has.
	inside "mv /bin/uname /bin/uname.real
		printf '#!/bin/sh\n[ \"\$*\" != -r ] || exec echo $kernel\nexec /bin/uname.real \"\$@\"\n' >/bin/uname
		chmod 755 /bin/uname
		mkdir -p $cache/lists/partial $cache/archives/partial
		printf '%s \"%s\";\n' Dir::Cache::archives $cache/archives Dir::State::lists $cache/lists Acquire::Retries 3 \
			Acquire::Languages none APT::Sandbox::User root APT::Keep-Downloaded-Packages true >/etc/apt/apt.conf.d/99test
		printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/locale/*' >/etc/dpkg/dpkg.cfg.d/test"
}
# inside SCRIPT: run it in the tree, without a network; what it changes stays until fresh.
offline=(--offline)
inside() {
	"$in_root" "${offline[@]}" --scratch "$scratch" "$root" bash -euo pipefail -c "
		kernel=$kernel in_tree=$in_tree new=$new old=$old new_version=$new_version
		dir=/lib/modules/$kernel
		$tools
		$1"
}
tools='
	refute() { if "$@"; then echo "this succeeded and should not have: $*"; exit 1; fi; }
	logged() { local code=0; "$@" >/tmp/log 2>&1 </dev/null || code=$?; cat /tmp/log; return "$code"; }
	installs() { logged apt-get -q -y install "$@"; }
	says() { grep -F -e "$1" /tmp/log || { echo "this was not said: $1"; exit 1; }; }
	add_in_tree() { cp "$in_tree" "$dir/kernel/net/sched/sch_dualpi2.ko"; depmod "$kernel"; }
	has_module() { ls "$dir"/updates/dkms/sch_dualpi2.ko*; }
	inventory() {
		find / -xdev \( -path /tmp -o -path /root -o -path /var/cache -o -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/apt \) \
			-prune -o -printf "%p\n" | sort
	}
	in_bash() ( # WORD...: what completes the last one
		set +eu
		. /usr/share/bash-completion/bash_completion
		_tc_dualpi2_load; [ $? -eq 124 ] || exit 1
		COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$*
		COMP_POINT=${#COMP_LINE}
		_tc tc "${@: -1}" "${@: -2:1}"
		printf "%s\n" "${COMPREPLY[@]}" | sort
	)'

prepare() {
	root=$("$DUALPI2_ROOT/scripts/root.sh" "$@" "$release" bare)
	kernel=$(basename "$(dirname "$(ls -d "$root"/lib/modules/*/modules.dep)")")
	fresh
}
others='bash-completion fish zsh autopkgtest dpkg-dev iputils-ping man-db'
# Of what the choice of packages depends.
made_of() { echo "$others" && cat "$root/made-of" "$DUALPI2_ROOT"/{packaging,extra}/debian/control "$DUALPI2_ROOT/packaging/debian/tests/control" && stat -c %Y "$root/made-of"; }
# What the tests install, in the archives of the cache directory, and package lists that name just that.
fetch() {
	cache=$DUALPI2_CACHE/packages/$release
	mkdir -p "$cache"
	exec 6>"$cache/lock"
	flock 6
	prepare
	if [ "$release" = forky ]; then in_tree=$("$DUALPI2_ROOT/scripts/in-tree.sh" --headers "$release/$kernel"); fi
	! made_of | cmp -s - "$cache/made-of" || return 0
	offline=()
	retry 3 inside 'apt-get -q -o APT::Update::Error-Mode=any update >&2' || die "cannot read the package lists of $release; check the network"
	if ! inside "apt-cache depends linux-headers-amd64 | grep -F ' linux-headers-$kernel' >/dev/null"; then
		say "$release: has a newer kernel than the tree"
		prepare --refresh
	fi
	retry 3 inside 'apt-get -q -y --download-only install '"$others"' "$new"/*.deb "$new"/extra/*.deb "linux-headers-$kernel" >&2
		apt-get -q -y --download-only --reinstall install iproute2 >&2' || die "cannot fetch what the tests of $release install; check the network"
	made_of >"$cache/made-of"
	offline=(--offline)
}

# The tests, in order.

one_command_installs() {
	inside 'installs bash-completion >/dev/null
		inventory >/tmp/before; cp "$dir/modules.dep" /tmp/modules.dep
		installs "$new"/dualpi2-*.deb
		refute grep "no module for kernel" /tmp/log
		has_module
		[ "$(modinfo -k "$kernel" -F version sch_dualpi2)" = "$new_version" ]
		case $(modinfo -k "$kernel" -n sch_dualpi2) in */updates/dkms/*) ;; *) exit 1 ;; esac
		modprobe -S "$kernel" --show-depends net-sch-dualpi2 || modprobe -S "$kernel" --show-depends sch_dualpi2
		echo "NOTE dkms $(dpkg-query -W -f "\${Version}" dkms), kernel $kernel"'
}
signed_as_documented() { # docs/INSTALL.md
	inside 'signer=$(modinfo -k "$kernel" -F signer sch_dualpi2)
		echo "signer: $signer"
		case $(dpkg-query -W -f "\${Version}" dkms) in
		2.*) [ -z "$signer" ] ;;
		*) [ "$signer" = "DKMS module signing key" ] ;;
		esac'
}
ours_comes_before_the_kernels_own() { # where DKMS leaves that in its place; 3.2 puts it aside
	inside 'add_in_tree
		modinfo -k "$kernel" -n sch_dualpi2 | grep /updates/dkms/
		modprobe -S "$kernel" --show-depends net-sch-dualpi2 | tee /tmp/log
		[ "$(grep -c sch_dualpi2 /tmp/log)" -eq 1 ]; grep /updates/dkms/ /tmp/log
		rm "$dir/kernel/net/sched/sch_dualpi2.ko"; depmod "$kernel"'
}
tc_takes_the_plugin() {
	inside '{ tc qdisc add dev lo root dualpi2 help 2>&1 || true; } | grep "ramp TIME"'
}
manual_is_ours() { # also where iproute2 brings its own, later
	inside 'zcat /usr/share/man/man8/tc-dualpi2.8.gz | grep "ramp" >/dev/null
		own=$(dpkg -L iproute2 | grep -c "/tc-dualpi2\.8" || true)
		[ "$own" -eq 0 ] || {
			installs --reinstall iproute2
			ls /usr/share/man/man8/tc-dualpi2.iproute2.8.gz
			zcat /usr/share/man/man8/tc-dualpi2.8.gz | grep "ramp" >/dev/null
			# It is to be back under that name in the end.
			find /usr/share/man/man8 ! -name "*.iproute2.*" >>/tmp/before
		}'
}
completion_knows_it() {
	inside '[ -r /usr/share/bash-completion/completions/dualpi2-top ]
		for kind in dualpi2 dualpi2_mq; do
			in_bash tc qdisc add dev lo root "$kind" ra | tee /tmp/log
			grep -x ramp /tmp/log; grep -x random /tmp/log
		done'
}
top_runs_with_the_libraries_of_the_release() {
	inside '[ "$(dualpi2-top --version)" = "dualpi2-top $new_version" ]
		refute logged dualpi2-top --once; says "tc qdisc add dev"
		dualpi2-top --prometheus | grep -x "dualpi2_qdiscs 0.0"
		zcat /usr/share/man/man8/dualpi2-top.8.gz | grep -- prometheus >/dev/null
		python3 -m json.tool /usr/share/dualpi2/grafana-dualpi2.json >/dev/null
		ls /usr/share/dualpi2/dualpi2-alerts.yml /usr/share/dualpi2/schema/dualpi2-top.schema.json
		[ -z "$(find /usr/share/dualpi2 -name "*.pyc")" ]
		echo "NOTE python3 $(dpkg-query -W -f "\${Version}" python3), prometheus_client $(dpkg-query -W -f "\${Version}" python3-prometheus-client)"'
}
purge_leaves_nothing() {
	inside 'logged apt-get -q -y purge dualpi2-dkms dualpi2-tools
		whole() { sed -E "s,^/(bin|sbin|lib|lib64)(/|\$),/usr/\1\2," | sort -u; }
		inventory | whole >/tmp/after
		{ cat /tmp/before; cat /var/lib/dpkg/info/*.list; } | whole >/tmp/known
		# Files that dkms and other dependencies made do not count.
		left=$(comm -13 /tmp/known /tmp/after | grep -E "dualpi2|^/(boot|usr/src|usr/lib/modules|usr/lib/(.*/)?tc|var/lib/dkms)/" | grep -v ^/var/lib/dkms/mok || true)
		gone=$(whole </tmp/before | comm -23 - /tmp/after)
		[ -z "$left$gone" ] || { echo "left: $left"; echo "gone: $gone"; exit 1; }
		diff /tmp/modules.dep "$dir/modules.dep"'
}
prague_installs_alone_and_purges() {
	inside 'inventory >/tmp/without; cp "$dir/modules.dep" /tmp/modules.dep
		installs "$new"/tcp-prague-dkms_*.deb
		if [ '"$release"' = forky ]; then
			dkms status -m tcp-prague -v "$new_version" -k "$kernel" | grep ": installed"
			modinfo -k "$kernel" -n tcp_prague | grep /updates/dkms/
			modinfo -k "$kernel" -F description tcp_prague | grep experimental
			[ "$(modinfo -k "$kernel" -F version tcp_prague)" = "$new_version" ]
			# With Accurate ECN, the module is more than an error at load.
			modinfo -k "$kernel" -p tcp_prague | grep rtt_virt_us
		else
			# Skipped, now and when a kernel comes, without an error.
			says "tcp_prague: kernel $kernel has no Accurate ECN"
			refute modinfo -k "$kernel" tcp_prague
			logged /etc/kernel/postinst.d/dkms "$kernel"
			logged dkms autoinstall -k "$kernel"
			refute modinfo -k "$kernel" tcp_prague
		fi
		logged apt-get -q -y purge tcp-prague-dkms
		inventory | diff /tmp/without -
		diff /tmp/modules.dep "$dir/modules.dep"'
}
extra_installs_alone_and_purges() {
	inside 'inventory >/tmp/without; cp "$dir/modules.dep" /tmp/modules.dep
		installs "$new"/extra/dualpi2-extra-*.deb
		dkms status -m dualpi2-extra -v "$new_version" -k "$kernel" | grep ": installed"
		for qdisc in pi2 csaqm vdq_csaqm ppv; do
			{ modprobe -S "$kernel" --show-depends net-sch-$qdisc || modprobe -S "$kernel" --show-depends sch_$qdisc; } |
				grep /updates/dkms/
			[ "$(modinfo -k "$kernel" -F version sch_${qdisc#vdq_})" = "$new_version" ]
			{ tc qdisc add dev lo root $qdisc help 2>&1 || true; } | grep -i "usage: .*$qdisc"
		done
		zcat /usr/share/man/man8/tc-csaqm.8.gz | grep vrate >/dev/null
		logged apt-get -q -y purge dualpi2-extra-dkms dualpi2-extra-tools
		inventory | diff /tmp/without -
		diff /tmp/modules.dep "$dir/modules.dep"'
}
# Only the modules that the machine needs: depmod of all of them takes minutes there.
keep_few_modules() {
	inside 'keep=$(for m in virtio_pci virtio_console 9pnet_virtio 9p overlay veth; do
			modprobe -S "$kernel" --show-depends "$m"; done | sed -n "s/^insmod \([^ ]*\).*/\1/p")
		find "$dir/kernel" -name "*.ko*" | grep -v -F -e "$keep" -e /sch_dualpi2.ko | xargs rm
		depmod "$kernel"'
}
builds_offline() {
	inside 'logged dpkg -i "$new"/dualpi2-*.deb; has_module
		cp "$(has_module)" /opt; case $(ls /opt/sch_dualpi2.ko*) in *.xz) xz -d /opt/sch_dualpi2.ko.xz ;; esac'
}
refused_upgrade_changes_nothing() {
	inside 'mount --bind /lib/modules /lib/modules; mount -o remount,ro,bind /lib/modules
		refute logged dpkg -i "$old"/dualpi2-dkms_*.deb
		says "make it writable"
		umount /lib/modules
		dpkg-query -W -f "\${db:Status-Abbrev}\${Version}\n" dualpi2-dkms | grep -x "ii *$new_version"
		dkms status -m sch-dualpi2 -v "$new_version" -k "$kernel" | grep ": installed"
		refute grep -i building /tmp/log
		has_module
		[ "$(modinfo -k "$kernel" -F version sch_dualpi2)" = "$new_version" ]'
}
built_in_is_refused() {
	inside 'cp "$dir/modules.builtin" /tmp
		echo kernel/net/sched/sch_dualpi2.ko >>"$dir/modules.builtin"
		logged dpkg -i "$new"/dualpi2-dkms_*.deb
		says "a built-in dualpi2 cannot be replaced"
		refute has_module
		dkms remove -m sch-dualpi2 -v "$new_version" -k "$kernel" || true
		logged /etc/kernel/postinst.d/dkms "$kernel"
		refute has_module
		cp /tmp/modules.builtin "$dir"; depmod "$kernel"'
}
kernel_without_qdiscs_is_skipped() {
	inside 'config=$(readlink -f "$dir/build")/.config; cp "$config" /tmp/config
		sed -i "s/^CONFIG_NET_SCHED=y/# CONFIG_NET_SCHED is not set/" "$config"
		logged dpkg -i "$new"/dualpi2-dkms_*.deb
		says "has no CONFIG_NET_SCHED"
		refute has_module
		dkms remove -m sch-dualpi2 -v "$new_version" -k "$kernel" || true
		logged /etc/kernel/postinst.d/dkms "$kernel"
		refute has_module
		cp /tmp/config "$config"'
}
bad_headers_are_told() { # nor has what stood in the way before left anything
	inside 'mv "$dir/build" "$dir/build.good"; mkdir -p "$dir/build/include"; echo "all:; false" >"$dir/build/Makefile"
		refute logged dpkg -i "$new"/dualpi2-dkms_*.deb
		says "apt install --reinstall linux-headers-$kernel, then: dpkg --configure -a"
		rm -r "$dir/build"; mv "$dir/build.good" "$dir/build"
		logged dpkg --configure -a
		has_module'
}
read_only_is_told() {
	inside 'mount --bind /lib/modules /lib/modules; mount -o remount,ro,bind /lib/modules
		refute installs --no-install-recommends "$new"/dualpi2-*.deb
		says "make it writable"
		state=$(dpkg-query -W -f "\${db:Status-Status}" dualpi2-dkms 2>/dev/null || true)
		echo "state: $state"; [ "$state" = not-installed ] || [ -z "$state" ]'
}
missing_headers_are_named() {
	inside 'installs --no-install-recommends "$new"/dualpi2-*.deb
		says "apt install linux-headers-$kernel"
		refute has_module
		refute test -e "$dir/build/include"'
}
install_script_refuses() { # what "make install" runs
	inside 'repo='"$DUALPI2_ROOT"'; plugin=/usr/lib/tc/q_dualpi2.so
		install_it() { logged "$repo/scripts/dist/install.sh" install "$@" "$plugin" /usr/lib/tc; }
		cp /opt/sch_dualpi2.ko /tmp
		refute install_it /nonexistent.ko; says "run: make all"
		refute logged "$repo/scripts/dist/install.sh" install /tmp/sch_dualpi2.ko "$plugin" ""; says "TCLIB=DIR"
		refute install_it /tmp/sch_dualpi2.ko; says "apt remove dualpi2-dkms"
		refute logged "$repo/scripts/dist/install.sh" uninstall "" "$plugin" /usr/lib/tc; says "use the package manager"
		[ -e "$plugin" ]
		[ "$(readlink -f /usr/lib/tc/q_dualpi2_mq.so)" = "$(readlink -f "$plugin")" ]
		mv "$dir/updates" /tmp
		echo kernel/net/sched/sch_dualpi2.ko >>"$dir/modules.builtin"
		refute install_it /tmp/sch_dualpi2.ko; says "a built-in dualpi2 cannot be replaced"
		sed -i "/sch_dualpi2/d" "$dir/modules.builtin"
		mv "$dir" "$dir-other"
		refute install_it /tmp/sch_dualpi2.ko; says "is not installed here"
		sed "s/$kernel/$kernel-other/" -i /bin/uname
		refute install_it /tmp/sch_dualpi2.ko; says "and this is $kernel-other"
		sed "s/$kernel-other/$kernel/" -i /bin/uname
		mv "$dir-other" "$dir"; mv /tmp/updates "$dir"
		refute ls "$dir/updates/sch_dualpi2.ko"'
}
headers_bring_the_module() {
	inside 'installs --no-install-recommends "linux-headers-$kernel"; has_module'
}

# In bash as tested above, and in others; what else completes tc there goes on.
each_shell_completes_tc() {
	inside 'installs --no-install-recommends bash-completion fish zsh >/dev/null
		mkdir -p /tmp/zsh ~/.config/fish/completions
		echo "complete -c tc -f -a of_others" >~/.config/fish/completions/tc.fish
		cat >/tmp/zsh/.zshrc <<"EOF"
autoload -Uz compinit
compinit -u -D
of_others() { compadd of_others }
compdef of_others tc
compadd() { local -a found; builtin compadd -O found "$@"; print -rl -- $found >>/tmp/zsh/found; builtin compadd "$@" }
zle-line-init() { BUFFER=$LINE CURSOR=$#LINE; zle complete-word; exit }
zle -N zle-line-init
EOF
		in_fish() { fish -c "complete -C \"$1\"" | cut -f 1 | sort; }
		in_zsh() {
			: >/tmp/zsh/found
			LINE=$1 ZDOTDIR=/tmp/zsh TERM=dumb timeout 60 script -qc "zsh -i" /dev/null </dev/null >/tmp/log || cat /tmp/log >&2
			sort /tmp/zsh/found
		}
		add="tc qdisc add dev lo root"
		for kind in dualpi2 dualpi2_mq; do
			in_bash $add $kind l4s_ect "" >/tmp/expected
			grep -x ramp /tmp/expected; refute grep -x any_ect /tmp/expected
			in_zsh "$add $kind l4s_ect " | diff /tmp/expected -
			in_fish "$add $kind l4s_ect " | grep -vx of_others | diff /tmp/expected -
			[ -z "$(in_zsh "$add $kind ramp "; in_fish "$add $kind ramp " | grep -vx of_others)" ]
		done
		[ "$(in_zsh "$add pie ")" = of_others ]
		[ "$(in_fish "$add pie ")" = of_others ]'
}
companions_are_completed() { # all that their usage has
	inside 'installs --no-install-recommends "$new"/extra/dualpi2-extra-tools_*.deb
		for kind in pi2 csaqm vdq_csaqm ppv; do
			{ tc qdisc add dev lo root $kind help 2>&1 || true; } | sed "s/^Usage:.* $kind //; /^[A-Z]/,\$d" |
				grep -o "[a-z][a-z0-9_]*" | sort >/tmp/expected
			[ -s /tmp/expected ]
			for one in "" carry signal; do
				[ -z "$one" ] || grep -x "$one" /tmp/expected >/dev/null || continue
				in_bash tc qdisc add dev lo root $kind $one ""
			done | sort | diff /tmp/expected -
		done'
}

# As a distribution's machinery runs debian/tests. Code 2: all passed, except those that are skipped here.
autopkgtest_passes() {
	inside 'installs autopkgtest dpkg-dev
		code=0; logged autopkgtest --no-built-binaries "$new"/upload/*.dsc "$new"/upload/*.deb --output-dir /tmp/adt -- null || code=$?
		cat /tmp/adt/summary
		[ "$code" -eq 2 ]
		grep -x "commands  *PASS.*" /tmp/adt/summary; grep -x "dkms  *PASS.*" /tmp/adt/summary
		grep "^module  *SKIP" /tmp/adt/summary'
}

# An older version in the tree, and its kernel.
machine() {
	local beside=alone code=0
	[ "$release" != forky ] || beside=in-tree
	inside 'logged dpkg -i "$old"/dualpi2-*.deb >/dev/null; installs autopkgtest dpkg-dev iputils-ping >/dev/null' >&2
	unshare --mount --propagation private bash -euc '
		mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" root "$1/merged"
		shift 2
		exec "$@"' - "$scratch" "$root" "$DUALPI2_ROOT/scripts/run-vm.sh" --root "$scratch/merged" --memory 2G --append mitigations=off -- \
		"$DUALPI2_ROOT/selftests/packages/upgrade.sh" "$old_version" "$new_version" "$new" "$beside" &
	child=$!
	wait "$child" || code=$?
	child=''
	return "$code"
}
machine_tests() {
	local began=$SECONDS code=0 line
	machine >"$build/machine.log" 2>"$build/machine.err" || code=$?
	while read -r line; do
		case $line in
		'passed '*) result "${release}_${line#passed }" 0 ;;
		'failed '*) result "${release}_${line#failed }" 1 ;;
		'#'*) echo "$line" ;;
		esac
	done <"$build/machine.log"
	result "${release}_machine" "$code" "$(tail -n 15 "$build/machine.err")"
	say "$release: machine, $((SECONDS - began)) s"
}

in_tree_is_there() { # without this module, and after its removal
	inside 'modinfo -k "$kernel" -n sch_dualpi2 | grep /kernel/net/sched/
		modprobe -S "$kernel" --show-depends net-sch-dualpi2'
}

test_release() {
	say "$release: begins"
	fetch
	if [ "$release" = forky ]; then
		# The in-tree dualpi2 as a module of the kernel, which Debian leaves out.
		inside add_in_tree
		try kernels_own_is_taken_without_ours in_tree_is_there
	fi
	try one_command_installs one_command_installs
	try signed_as_documented signed_as_documented
	[ "$release" != forky ] || try ours_comes_before_the_kernels_own ours_comes_before_the_kernels_own
	try tc_takes_the_plugin tc_takes_the_plugin
	try manual_is_ours manual_is_ours
	try completion_knows_it completion_knows_it
	try top_runs_with_the_libraries_of_the_release top_runs_with_the_libraries_of_the_release
	try purge_leaves_nothing purge_leaves_nothing
	[ "$release" != forky ] || try kernels_own_is_back_after_purge in_tree_is_there
	try prague_installs_alone_and_purges prague_installs_alone_and_purges
	try extra_installs_alone_and_purges extra_installs_alone_and_purges
	keep_few_modules >"$build/log" 2>&1
	try builds_offline builds_offline
	try refused_upgrade_changes_nothing refused_upgrade_changes_nothing
	try built_in_is_refused built_in_is_refused
	try kernel_without_qdiscs_is_skipped kernel_without_qdiscs_is_skipped
	try bad_headers_are_told bad_headers_are_told
	try install_script_refuses install_script_refuses
	[ "$mode" = --no-machine ] || machine_tests
	fresh
	try read_only_is_told read_only_is_told
	try missing_headers_are_named missing_headers_are_named
	try headers_bring_the_module headers_bring_the_module
	try each_shell_completes_tc each_shell_completes_tc
	try companions_are_completed companions_are_completed
	[ "$mode" = --no-machine ] || try autopkgtest_passes autopkgtest_passes
}

has_documents() { # with the names that their links have
	local tree
	tree=$(mktemp -d -p "$build")
	dpkg-deb -x "$new"/dualpi2-tools_*.deb "$tree"
	dpkg-deb -x "$new"/extra/dualpi2-doc_*.deb "$tree"
	"$DUALPI2_ROOT/scripts/prose.py" installed "$tree/usr/share/doc/dualpi2-tools"
	diff <(cd "$DUALPI2_ROOT" && find README.md docs -name '*.md' -o -name '*.svg' | sort) \
		<(cd "$tree/usr/share/doc/dualpi2-tools" && find README.md docs -name '*.md' -o -name '*.svg' | sort)
	rm -r "$tree"
}
needs_no_new_libc() {
	local newest
	newest=$(dpkg-deb --fsys-tarfile "$new"/dualpi2-tools_*.deb | tar -x -O --wildcards './usr/lib/*-*/tc/q_dualpi2.so' |
		strings | sed -n 's/^GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
	echo "NOTE the plugin needs glibc $newest"
	[ -n "$newest" ] && printf '%s\n%s\n' "$newest" 2.31 | sort -V -C
}

release=''
[ -e "$new/upload" ] || die "build/deb has no packages; run: make deb"
if [ "$mode" = --fetch ]; then
	for release in "${releases[@]}"; do fetch; done
	exit 0
fi
plan
if [ "$mode" = --no-machine ]; then
	old_in_name
else
	"$DUALPI2_ROOT/scripts/dist/deb.sh" --version "$old_version" "$old" >/dev/null
fi
try plugin_needs_no_new_libc needs_no_new_libc
try package_has_the_documents has_documents
for release in "${releases[@]}"; do
	test_release
done
plan "$number"
[ -z "$failed" ]
