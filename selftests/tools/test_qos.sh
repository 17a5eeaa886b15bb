#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
# suite: check kernel=debug -- --real
#
# test_qos.sh - tools/share/dualpi2.qos under busybox's shell, as sqm-scripts calls it. KTAP on stdout.
# sqm-scripts itself is not here: a mock below has the parts that dualpi2.qos uses, so
# this shows that dualpi2.qos keeps the interface as far as the mock describes it.
#
# usage: test_qos.sh          with a mock of tc that logs its arguments; needs no privilege
#        test_qos.sh --real   with tc and the kernel, in network namespaces; needs root and dualpi2

# shellcheck disable=SC2317 # most is called by name

set -uo pipefail
ROOT=${DUALPI2_ROOT:-$(cd "$(dirname "$0")/../.." && pwd -P)}
QOS=$ROOT/tools/share/dualpi2.qos
# shellcheck source=scripts/ktap.sh
. "$ROOT/scripts/ktap.sh"
work=$(mktemp -d)
trap 'ip netns del sqm-test 2>/dev/null; rm -rf "$work"' EXIT
# A test machine has it there.
busybox=$(command -v busybox || ls /run/busybox 2>/dev/null)
within=()

# sqm-scripts' part: what it sets, which functions it has, and in which order it calls those of dualpi2.qos.
mkdir "$work/sqm"
cat >"$work/sqm/defaults.sh" <<'END'
[ -z "$UPLINK" ] && UPLINK=2302
[ -z "$DOWNLINK" ] && DOWNLINK=14698
[ -z "$IFACE" ] && IFACE=eth0
[ -z "$QDISC" ] && QDISC=fq_codel
[ -z "$LINKLAYER" ] && LINKLAYER="none"
[ -z "$OVERHEAD" ] && OVERHEAD=0
[ -z "$STAB_MPU" ] && STAB_MPU=0
[ -z "$TC" ] && TC=tc_wrapper
[ -z "$IP" ] && IP=ip_wrapper
SILENT=0
ALL_MODULES="sch_$QDISC sch_ingress act_mirred cls_u32"
END
cat >"$work/sqm/start" <<'END'
say() { echo "$1: $2" >>"$SQM_LOG"; }
sqm_error() { say error "$*"; }
sqm_warn() { say warn "$*"; }
sqm_log() { say log "$*"; }
sqm_debug() { say debug "$*"; }
run() {
	out=$("$@" 2>&1) || { [ "$SILENT" = 1 ] || sqm_error "$* said: $out"; SILENT=0; return 1; }
	SILENT=0
}
# Debian's busybox takes its own tc and ip before those in PATH.
tc_wrapper() { run "$TC_BINARY" "$@"; }
ip_wrapper() { run "$IP_BINARY" "$@"; }
verify_qdisc() {
	"$IP_BINARY" link add name SQM_IFB_test type ifb || return 1
	"$TC_BINARY" qdisc replace dev SQM_IFB_test root "$1"
	res=$?
	"$IP_BINARY" link del SQM_IFB_test
	return $res
}
. "$SQM_LIB_DIR/dualpi2.qos"
echo "$QDISC $ALL_MODULES" >"$SQM_LOG.qdisc"
sqm_prepare_script
verify_qdisc "$QDISC" || exit 1
DEV=ifb4$IFACE
[ -e "/sys/class/net/$DEV" ] || "$IP_BINARY" link add name "$DEV" type ifb
[ "$UPLINK" = 0 ] || egress || exit 2
[ "$DOWNLINK" = 0 ] || ingress || exit 3
END
cp "$QOS" "$work/sqm/dualpi2.qos"

# start [VARIABLE=VALUE...]: what sqm-scripts does; its log is in $work/sqm.log
start() {
	rm -f "$work"/sqm.log*
	: >"$work/sqm.log"
	"${within[@]}" env SQM_LIB_DIR="$work/sqm" SQM_LOG="$work/sqm.log" IFACE=wan TC_BINARY="$(command -v tc)" \
		IP_BINARY="$(command -v ip)" "$@" "$busybox" sh "$work/sqm/start"
}
said() {
	grep -qxF -e "$1" "$work/asked" && return
	echo "this was not asked: $1"
	cat "$work/asked"
	return 1
}
not_said() { ! grep -F -e "$1" "$work/asked"; }

# Without a kernel

stand_in() { # CODE: what tc dualpi2 returns
	mkdir -p "$work/bin"
	for name in tc ip; do
		printf '#!/bin/sh\necho "%s $*" >>%s/asked\ncase "$*" in *bandwidth*) exit %s ;; esac\n' "$name" "$work" "$1" \
			>"$work/bin/$name"
		chmod 755 "$work/bin/$name"
	done
	: >"$work/asked"
	PATH=$work/bin:$PATH
}
both_directions() {
	stand_in 0
	start UPLINK=20000 DOWNLINK=100000 LINKLAYER=ethernet OVERHEAD=18 STAB_MPU=64 || return
	said "tc qdisc replace dev wan root dualpi2 bandwidth 20000kbit overhead 18 mpu 64 noatm" &&
		said "tc qdisc replace dev ifb4wan root dualpi2 bandwidth 100000kbit overhead 18 mpu 64 noatm ingress" &&
		said "ip link set dev ifb4wan up" && said "tc qdisc add dev wan handle ffff: ingress" &&
		grep -q "^tc filter add dev wan parent ffff: .* redirect dev ifb4wan$" "$work/asked"
}
one_direction() { # which is 0
	stand_in 0
	start UPLINK=20000 DOWNLINK=0 || return
	said "tc qdisc replace dev wan root dualpi2 bandwidth 20000kbit" && not_said "ingress" || return
	stand_in 0
	start UPLINK=0 DOWNLINK=100000 || return
	said "tc qdisc replace dev ifb4wan root dualpi2 bandwidth 100000kbit ingress" && not_said "dev wan root"
}
link_layer() { # SQM'S TC'S
	stand_in 0
	start UPLINK=20000 DOWNLINK=0 LINKLAYER="$1" OVERHEAD=32 || return
	said "tc qdisc replace dev wan root dualpi2 bandwidth 20000kbit overhead 32 mpu 0 $2"
}
advanced_options() {
	stand_in 0
	start UPLINK=20000 DOWNLINK=9000 EQDISC_OPTS="target 9ms" IQDISC_OPTS="target 8ms no_nqb" || return
	said "tc qdisc replace dev wan root dualpi2 bandwidth 20000kbit target 9ms" &&
		said "tc qdisc replace dev ifb4wan root dualpi2 bandwidth 9000kbit ingress target 8ms no_nqb"
}
configured_qdisc() { # another one was chosen before
	stand_in 0
	start QDISC=fq_codel && [ "$(cat "$work/sqm.log.qdisc")" = "dualpi2 sch_dualpi2 sch_ingress act_mirred cls_u32" ]
}
refused() {
	stand_in 2
	! start UPLINK=20000 DOWNLINK=9000 || return
	grep "^error: tc rejects dualpi2 on wan: install" "$work/sqm.log" && not_said "filter" || return
	# Nothing may be led to a device without a shaper.
	! start UPLINK=0 DOWNLINK=9000 || return
	grep "^error: tc rejects dualpi2 on ifb4wan: install" "$work/sqm.log" && not_said "filter"
}
clean_posix() { # no bash, and nothing but functions when sourced
	! grep -nE '\[\[|\blocal\b|function |<\(' "$QOS" && "$busybox" sh -n "$QOS"
}

# With one

netns() { ip netns exec sqm-test "$@"; }
begin() {
	ip netns add sqm-test && netns ip link add wan type veth peer name lan && netns ip link set wan up && netns ip link set lan up
}
options() { netns tc -j qdisc show dev "$1" | jq -c '.[] | select(.root) | [.kind, .options.bandwidth, .options.overhead, .options.mpu]'; }
real_start() {
	begin || return
	start UPLINK=20000 DOWNLINK=100000 LINKLAYER=atm OVERHEAD=40 || {
		cat "$work/sqm.log"
		return 1
	}
	netns tc qdisc show
	[ "$(options wan)" = '["dualpi2",2500000,40,0]' ] && [ "$(options ifb4wan)" = '["dualpi2",12500000,40,0]' ] &&
		netns tc qdisc show dev ifb4wan | grep -w ingress && netns tc qdisc show dev wan | grep -w atm &&
		netns tc filter show dev wan parent ffff: | grep "Redirect to device ifb4wan"
}
real_traffic() { # an ECT(1) packet that comes in goes through the L4S queue of the ifb device
	netns ip addr add 192.0.2.1/24 dev wan
	netns ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev wan
	netns python3 - <<-'END'
		import socket
		frame = bytes.fromhex("ffffffffffff020000000009080045010020000040004011b6b9c0000209c000020100070007000c0000") + b"abcd"
		with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
		    sock.bind(("lan", 0))
		    for _ in range(20):
		        sock.send(frame)
	END
	for _ in {1..20}; do
		if netns tc -s -d class show dev ifb4wan | grep "^ arrived 20 .* ect1 20 " &&
			netns tc -s -d class show dev ifb4wan | grep "enqueued 20 .* sent 20 "; then
			return
		fi
		sleep 0.1
	done
	netns tc -s -d class show dev ifb4wan
	false
}
real_stop() { # as sqm-scripts does
	netns tc qdisc del dev wan ingress && netns tc qdisc del dev wan root && netns ip link del ifb4wan &&
		[ "$(netns tc qdisc show | grep -vc noqueue)" = 0 ]
}
real_refused() { # tc without our options
	! TC_LIB_DIR=/nonexistent start UPLINK=20000 DOWNLINK=9000 && grep "^error: tc rejects dualpi2 on wan: install" "$work/sqm.log"
}

if [ -z "$busybox" ]; then
	plan 1
	result busybox_is_there 1 "run scripts/setup.sh"
	exit 1
fi
plan
if [ "${1-}" = --real ]; then
	# In a test machine.
	[ -e /sys/module/sch_dualpi2 ] || {
		[ -z "${DUALPI2_TRACE_PC-}" ] || insmod "$DUALPI2_TRACE_PC"
		insmod "${DUALPI2_MODULE:?}"
	} || exit 1
	within=(ip netns exec sqm-test)
	check qos_sets_both_directions real_start
	check qos_leads_what_comes_in_through_the_ifb real_traffic
	check qos_started_again_replaces start UPLINK=10000 DOWNLINK=50000
	check qos_stopped_leaves_nothing real_stop
	check qos_without_our_tc_fails real_refused
else
	check qos_is_for_busybox clean_posix
	check qos_asks_for_both_directions both_directions
	check qos_leaves_a_direction_of_0_alone one_direction
	check qos_link_layer_ethernet link_layer ethernet noatm
	check qos_link_layer_atm link_layer atm atm
	check qos_link_layer_ptm link_layer ptm ptm
	check qos_advanced_options_go_to_dualpi2 advanced_options
	check qos_configured_qdisc_does_not_matter configured_qdisc
	check qos_refusal_is_told refused
fi
plan "$number"
[ -z "$failed" ]
