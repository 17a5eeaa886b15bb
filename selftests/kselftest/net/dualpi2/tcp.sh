#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dualpi2 and TCP: iperf3 with DCTCP and with CUBIC over 10 Mbit/s, base RTT
# 10 ms.  The rates, the delay of each queue and the counters are checked.
#
# DCTCP sends ECT(0), so that the L4S queue gets any ECT here; CUBIC is without
# ECN.  dualpi2 is on a router between both, because TCP keeps the queue of its own
# host short.

# shellcheck disable=SC2154 # setup_ns sets snd, rtr and rcv
dir=$(dirname "$(readlink -e "$0")")
# shellcheck source=/dev/null
source "$dir/../lib.sh"
# shellcheck source=/dev/null
source "$dir/../../kselftest/ktap_helpers.sh"

RATE=10 # Mbit/s
RTT=10  # ms
SECONDS_OF_FLOW=20
tmp=

cleanup() {
	cleanup_all_ns
	[ -z "$tmp" ] || rm -r "$tmp"
}
trap cleanup EXIT

skip_all() {
	ktap_skip_all "$*"
	exit "$ksft_skip"
}

# $1 test, $2 is it good (0), $3 what was measured; a slow machine may fail it
timed() {
	ktap_print_msg "$3"
	if [ "$2" = 0 ]; then
		ktap_test_pass "$1"
	elif [ "${KSFT_MACHINE_SLOW:-}" = yes ]; then
		ktap_test_xfail "$1"
	else
		ktap_test_fail "$1"
	fi
}

# $1 an expression of awk; 0 if it is true
holds() {
	! awk "BEGIN { exit $1 }"
}

setup() {
	setup_ns snd rtr rcv || skip_all "need CONFIG_NET_NS"
	ip link add eth0 netns "$snd" type veth peer name up netns "$rtr" ||
		skip_all "need CONFIG_VETH"
	ip link add eth0 netns "$rcv" type veth peer name down netns "$rtr"
	ip -n "$snd" addr add 10.1.0.1/24 dev eth0
	ip -n "$rtr" addr add 10.1.0.2/24 dev up
	ip -n "$rtr" addr add 10.2.0.2/24 dev down
	ip -n "$rcv" addr add 10.2.0.1/24 dev eth0
	ip -n "$rcv" addr add 10.2.0.3/24 dev eth0
	ip -n "$snd" link set dev eth0 up
	ip -n "$rtr" link set up dev up
	ip -n "$rtr" link set dev down up
	ip -n "$rcv" link set dev eth0 up
	ip netns exec "$rtr" sysctl -qw net.ipv4.ip_forward=1
	ip -n "$snd" route add default via 10.1.0.2
	# Routes, because iperf3 sets its -C after the handshake has negotiated ECN.
	ip -n "$rcv" route add default via 10.2.0.2
	ip -n "$rcv" route add 10.1.0.0/24 via 10.2.0.2 src 10.2.0.3 congctl dctcp ||
		skip_all "need CONFIG_TCP_CONG_DCTCP"
	ip -n "$snd" route add 10.2.0.3 via 10.1.0.2 congctl dctcp
	ip netns exec "$snd" sysctl -qw net.ipv4.tcp_ecn=0

	tc -n "$rcv" qdisc add dev eth0 root netem delay ${RTT}ms limit 10000 ||
		skip_all "need CONFIG_NET_SCH_NETEM"
	tc -n "$rtr" qdisc add dev down root handle 1: htb default 10 ||
		skip_all "need CONFIG_NET_SCH_HTB"
	tc -n "$rtr" class add dev down parent 1: classid 1:10 htb rate ${RATE}mbit \
		ceil ${RATE}mbit burst 1514 cburst 1514 quantum 1514

	tc -n "$rtr" qdisc add dev down parent 1:10 handle 10: dualpi2 any_ect ||
		skip_all "need CONFIG_NET_SCH_DUALPI2, and a tc with dualpi2"
}

# $1 port, $2 congestion control, $3 destination
flow() {
	ip netns exec "$rcv" iperf3 -s -1 -p "$1" >/dev/null 2>&1 &
	slowwait 10 ip netns exec "$rcv" grep -q ":$(printf %04X "$1") .* 0A " \
		/proc/net/tcp /proc/net/tcp6
	ip netns exec "$snd" iperf3 -c "$3" -p "$1" -C "$2" -t $SECONDS_OF_FLOW -O 4 -J >"$tmp/$2" &
}

# $1 file of ping: the average in ms
average() {
	sed -n 's,.*= [0-9.]*/\([0-9.]*\)/.*,\1,p' "$1"
}

run_flows() {
	flow 5001 dctcp 10.2.0.3
	flow 5002 cubic 10.2.0.1
	sleep 4
	ip netns exec "$snd" ping -q -i 0.2 -c 60 -Q 1 10.2.0.1 >"$tmp/ping-l4s" &
	ip netns exec "$snd" ping -q -i 0.2 -c 60 -Q 0 10.2.0.1 >"$tmp/ping-classic"
	wait
	mbit_l=$(jq '.end.sum_received.bits_per_second / 10000 | round / 100' "$tmp/dctcp")
	mbit_c=$(jq '.end.sum_received.bits_per_second / 10000 | round / 100' "$tmp/cubic")
	resent_l=$(jq .end.sum_sent.retransmits "$tmp/dctcp")
	resent_c=$(jq .end.sum_sent.retransmits "$tmp/cubic")
	delay_l=$(average "$tmp/ping-l4s")
	delay_c=$(average "$tmp/ping-classic")
	stats=$(tc -n "$rtr" -s -j qdisc show dev down | jq -c '.[] | select(.kind == "dualpi2")')
	marks=$(jq '."ecn-mark"' <<<"$stats")
	drops=$(jq .drops <<<"$stats")
	for value in "$mbit_l" "$mbit_c" "$delay_l" "$delay_c" "$marks" "$drops"; do
		case $value in
		'' | null)
			ktap_print_msg "a measurement is missing; iperf3:" \
				"$(jq -r .error "$tmp/dctcp" "$tmp/cubic")"
			exit 1
			;;
		esac
	done
}

[ "$(id -u)" = 0 ] || skip_all "need root"
for tool in ip tc sysctl iperf3 jq ping awk; do
	command -v $tool >/dev/null || skip_all "need $tool"
done
tc qdisc add dev lo root dualpi2 help 2>&1 | grep step_thresh >/dev/null ||
	skip_all "need a tc with dualpi2 (iproute2 6.18, or the plugin in TC_LIB_DIR)"

ktap_print_header
tmp=$(mktemp -d)
setup
run_flows
ktap_set_plan 7

timed "dctcp and cubic saturate the link" \
	"$(
		holds "$mbit_l + $mbit_c > 0.85 * $RATE && $mbit_l + $mbit_c < $RATE"
		echo $?
	)" \
	"dctcp $mbit_l Mbit/s, cubic $mbit_c Mbit/s"
timed "dctcp and cubic share the link, neither has more than four times as much" \
	"$(
		holds "$mbit_l < 4 * $mbit_c && $mbit_c < 4 * $mbit_l"
		echo $?
	)" \
	"dctcp $mbit_l Mbit/s, cubic $mbit_c Mbit/s"
timed "L4S packets wait less than 5 ms" \
	"$(
		holds "$delay_l < $RTT + 5"
		echo $?
	)" "average ping with ECT(1) $delay_l ms"
timed "Classic packets wait 5 to 30 ms" \
	"$(
		holds "$delay_c > $RTT + 5 && $delay_c < $RTT + 30"
		echo $?
	)" "average ping with Not-ECT $delay_c ms"
timed "dctcp is marked and loses nothing" \
	"$((marks < 20 || resent_l > 0))" "$marks marks, $resent_l retransmissions"
timed "cubic is dropped" "$((drops == 0 || resent_c == 0))" \
	"$drops drops, $resent_c retransmissions"
timed "no packet is left in the queues" "$(jq '.qlen + .backlog' <<<"$stats")" \
	"$(jq -c '{packets, drops, qlen, backlog}' <<<"$stats")"
ktap_finished
