#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock -- -k flows_offloaded
"""dualpi2 doctor: faults of link layers, of endpoints and of what is between them, and healthy links.

See test_doctor.py. KTAP on stdout.
"""

import contextlib
import fcntl
import json
import os
import struct
import subprocess
import threading
import time

from lib_doctor import CLASSIC, L4S, LINK, ask, expect_first, flowing, ids, ifb, notes, qdisc, repair
from lib import ECT1, Net, Skip, Stream, expect, expect_equal, in_netns, main, note, run, shared_net, tc, test


# Flow offloading

OFFLOADS = """\
table inet fast {
flowtable flows { hook ingress priority 0; devices = { up, down }; }
chain forward { type filter hook forward priority 0; meta l4proto udp flow add @flows; }
}
"""


@test("flow-offload")
def flows_offloaded_past_the_qdisc_are_named():
    """The rule says of each kind of device what this kernel does: do packets of an offloaded flow pass its dualpi2?"""
    with Net() as net:
        tried = run("nft -f -", net.rtr, stdin=OFFLOADS, check=False)
        if tried.returncode:
            expect("Could not process rule" in tried.stderr, tried.stderr)
            raise Skip("this kernel has no nft_flow_offload")
        run("nft delete table inet fast", net.rtr)
        net.vlan(5)
        offloaded(net, "down", "10.2.0.1")
        offloaded(net, "down.5", "10.3.0.1")
        run("ip -batch -", net.rtr, stdin="link add br0 address 02:00:00:00:02:02 type bridge forward_delay 0\n"
            "link set br0 up\naddr flush dev down\nlink set dev down master br0\naddr add 10.2.0.2/24 dev br0\n"
            "neigh add 10.2.0.1 lladdr 02:00:00:00:02:01 nud permanent dev br0\n")
        time.sleep(0.1)     # until the bridge forwards
        run("ping -c 1 -W 1 10.2.0.1", net.rtr)
        offloaded(net, "br0", "10.2.0.1")


def offloaded(net, device, to):
    """An offloaded flow to this address; the doctor names the offloading if it bypasses the device's dualpi2."""
    flow = Stream("l", ecn=ECT1, bps=4e6, dst=to)
    with qdisc(net, "handle 10: dualpi2", device):
        run("nft -f -", net.rtr, stdin=OFFLOADS)
        try:
            with flowing(net, flow):
                before = sent(net, device)
                found = ask(net.rtr, device)
                passed = sent(net, device) - before
                bypassed = passed < 100
                note(f"{device}: {passed} packets passed its dualpi2, {ids(found)}")
                expect_equal(ids(found)[:1] == ["flow-offload"], bypassed, f"named on {device}")
                if bypassed:
                    repair(found["findings"][0], net.rtr)
                    before = sent(net, device)
                    expect("flow-offload" not in ids(ask(net.rtr, device)), "still there")
                    expect(sent(net, device) - before > 500, "the flow still bypasses it")
        finally:
            run("nft delete table inet fast", net.rtr)


def sent(net, device):
    return json.loads(tc(f"-s -j qdisc show dev {device} root", net.rtr).stdout)[0]["packets"]


# Link layers

@test("pppoe-overhead")
def vlan_without_overhead_is_no_fault():
    net = shared_net()
    run("ip link add link down name down.9 type vlan id 9", net.rtr)
    run("ip link set down.9 up", net.rtr)
    try:
        with qdisc(net, "handle 10: dualpi2 bandwidth 10mbit", "down.9"), qdisc(net, "dualpi2 bandwidth 10mbit"):
            for device in ("down.9", "down"):
                expect_equal(ids(ask(net.rtr, device, 1)), [], device)
    finally:
        run("ip link del down.9", net.rtr)


@test("pppoe-overhead")
def shaper_on_a_ppp_link_without_overhead_is_named_and_mended():
    net = shared_net()
    with ppp(net):
        with qdisc(net, "handle 10: dualpi2 bandwidth 10mbit", "ppp0"):
            first = expect_first(ask(net.rtr, "ppp0", 1), "pppoe-overhead", "PPP", "pppoe-ptm")
            expect_equal(first["condition"], "the link is PPPoE")
            repair(first, net.rtr)
            expect_equal(ids(ask(net.rtr, "ppp0", 1)), [], "after that")


@contextlib.contextmanager
def ppp(net):
    """A device that says it is PPP: a tun whose type is set so."""
    tunsetiff, tunsetlink, arphrd_ppp = 0x400454ca, 0x400454cd, 512
    run("modprobe tun", check=False)
    with in_netns(net.rtr):
        file = os.open("/dev/net/tun", os.O_RDWR)
        try:
            fcntl.ioctl(file, tunsetiff, struct.pack("16sH22x", b"ppp0", 0x1001))
            fcntl.ioctl(file, tunsetlink, arphrd_ppp)
            run("ip link set ppp0 up", net.rtr)
            yield
        finally:
            os.close(file)


# Endpoints, and what is between them

@test("no-ect1")
def classic_senders_alone_are_named():
    net = shared_net()
    with net.aqm(LINK), flowing(net, *CLASSIC):
        found = ask(net.rtr)
        expect_first(found, "no-ect1", "Not-ECT", "nothing to change on this device")
        expect_equal((found["verdict"], ids(found), notes(found)), ("healthy", [], ["no-ect1"]))


def nft(netns, table, hook, rule, priority=0):
    """A table with one rule for IPv4."""
    run(["nft", "-f", "-"], netns, stdin=f"table ip {table} {{\nchain {hook} {{\ntype filter hook {hook} priority "
                                         f"{priority};\n{rule}\n}}\n}}\n")


def bleach(net, rule):
    """One rule of nft on the router."""
    nft(net.rtr, "mangle", "forward", rule)


@test("bleached")
def nft_rule_that_bleaches_is_named_and_removed():
    net = shared_net()
    bleach(net, "counter\nip ecn set not-ect")
    try:
        with net.aqm(LINK), flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "bleached", "nft ip mangle forward", "arrives on up as ECT(1)",
                                 "leaves down as Not-ECT")
            repair(first, net.rtr)
            expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")
            expect("counter" in run("nft list ruleset", net.rtr).stdout, "more was deleted than that rule")
    finally:
        run("nft delete table ip mangle", net.rtr)


@test("bleached")
def nft_rule_that_makes_it_classic_ecn_is_named():
    net = shared_net()
    bleach(net, "ip ecn set ect0")
    try:
        with net.aqm(LINK), flowing(net, *L4S):
            expect_first(ask(net.rtr), "bleached", "leaves down as ECT(0)")
    finally:
        run("nft delete table ip mangle", net.rtr)


@test("bleached")
def nft_rule_that_writes_the_dscp_alone_is_no_fault():
    net = shared_net()
    bleach(net, "ip dscp set cs1")
    try:
        with net.aqm(LINK), flowing(net, *L4S):
            expect_equal(ids(ask(net.rtr)), [], "findings")
    finally:
        run("nft delete table ip mangle", net.rtr)


@test("bleached")
def washing_of_the_dscp_is_not_taken_for_bleaching():
    net = shared_net()
    tc("qdisc add dev up clsact", net.rtr)
    try:
        for protocol, munge in (("ip", "ip tos set 0 retain 0xfc"), ("ipv6", "ip6 traffic_class set 0 retain 0xfc")):
            tc(f"filter add dev up ingress protocol {protocol} matchall action pedit ex munge {munge}", net.rtr)
        bleach(net, "ip ecn set not-ect")
        with net.aqm(LINK), flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "bleached", "nft ip mangle forward")
            tc("filter add dev up ingress protocol ip pref 9 matchall action pedit ex munge ip tos set 0 retain 0xff "
               "pipe action csum ip", net.rtr)
            both = expect_first(ask(net.rtr), "bleached", "2 rules", "nft -a list ruleset", "tc at up ingress")
            expect(not both["fixes"], "which of them?")
            tc("filter del dev up ingress pref 9", net.rtr)
            repair(first, net.rtr)
            expect_equal(ask(net.rtr)["verdict"], "healthy", "with the DSCP washed")
    finally:
        tc("qdisc del dev up clsact", net.rtr)
        run("nft delete table ip mangle", net.rtr, check=False)


@test("bleached")
def tc_action_that_bleaches_is_named_and_removed():
    net = shared_net()
    tc("qdisc add dev up clsact", net.rtr)
    try:
        tc("filter add dev up ingress protocol ip pref 3 matchall action pedit munge offset 0 u8 at 1 set 0 pipe "
           "action csum ip", net.rtr, check=False)
        if "pedit" not in tc("filter show dev up ingress", net.rtr).stdout:
            tc("filter add dev up ingress protocol ip pref 3 matchall action pedit munge ip tos set 0 pipe "
               "action csum ip", net.rtr)
        with net.aqm(LINK), flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "bleached", "tc at up ingress", "pref 3")
            repair(first, net.rtr)
            expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")
    finally:
        tc("qdisc del dev up clsact", net.rtr)


# TCP

TCP_LINK = 5e6        # a packet of iperf3 takes ten times as long as one of Stream


@contextlib.contextmanager
def endpoints(net, tcp_ecn_snd, tcp_ecn_rcv):
    """tcp_ecn of both, put back after."""
    old = []
    for netns, value in ((net.snd, tcp_ecn_snd), (net.rcv, tcp_ecn_rcv)):
        old.append((netns, run("sysctl -n net.ipv4.tcp_ecn", netns).stdout.strip()))
        if run(f"sysctl -w net.ipv4.tcp_ecn={value}", netns, check=False).returncode:
            raise Skip(f"this kernel has no tcp_ecn={value}")
    try:
        yield
    finally:
        for netns, value in old:
            run(f"sysctl -w net.ipv4.tcp_ecn={value}", netns)


def in_background(netns, command):
    """A program in a namespace."""
    with in_netns(netns):
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def tcp(net, *ccs, seconds=60):
    """iperf3 from snd to rcv, one for each congestion control, on links with a delay; dctcp goes as ECT(1)."""
    running = []
    tc("qdisc add dev eth0 root netem delay 10ms limit 10000", net.rcv)
    # DCTCP's SYN is ECT, which only a listener of its kind agrees to.
    nft(net.snd, "l4s", "postrouting", "tcp dport 5301 tcp flags & syn == syn ip ecn set not-ect\n"
        "tcp dport 5301 ip ecn ect0 ip ecn set ect1")
    try:
        for number, cc in enumerate(ccs):
            # DCTCP first: its port is that of the rule.
            port = 5301 if cc == "dctcp" else 5310 + number
            running.append(in_background(net.rcv, ["iperf3", "-s", "-1", "-p", str(port)]))
            time.sleep(1)
            client = ["iperf3", "-c", "10.2.0.1", "-p", str(port), "-t", str(seconds), "-C", cc]
            if cc == "dctcp":
                # It needs ECN, and does not ask for it by itself; CUBIC is to go without.
                with endpoints(net, 1, 1):
                    running.append(in_background(net.snd, client))
                    time.sleep(1)
            else:
                running.append(in_background(net.snd, client))
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
        run("nft delete table ip l4s", net.snd)
        tc("qdisc del dev eth0 root", net.rcv, check=False)


def ask_from_the_start(net, device, *ccs, watch=6):
    """The doctor has begun when the connections do."""
    answer = []
    thread = threading.Thread(target=lambda: answer.append(ask(net.rtr, device, watch)))
    thread.start()
    time.sleep(2)
    with tcp(net, *ccs):
        thread.join()
    expect(answer, "the doctor gave no answer")
    return answer[0]


@test("no-accecn")
def handshake_of_rfc_3168_is_named_and_mended():
    net = shared_net()
    with net.aqm(TCP_LINK), endpoints(net, 1, 1):
        found = ask_from_the_start(net, "down", "cubic")
        first = expect_first(found, "no-accecn", "10.1.0.1", "SYN without AE", "sysctl -w net.ipv4.tcp_ecn=3")
        if run(first["command"], net.snd, check=False).returncode or run(first["command"], net.rcv).returncode:
            raise Skip("this kernel has no AccECN")
        found = ask_from_the_start(net, "down", "cubic")
        expect_equal((ids(found), notes(found)), ([], ["no-ect1"]), "CUBIC with AccECN")
        expect("negotiated AccECN" in found["notes"][0]["verdict"], str(found["notes"]))


@test("no-accecn")
def server_without_accecn_is_named_and_mended():
    net = shared_net()
    with net.aqm(TCP_LINK), endpoints(net, 3, 2):
        run("sysctl -w net.ipv4.tcp_ecn=0", net.rcv)
        first = expect_first(ask_from_the_start(net, "down", "cubic"), "no-accecn",
                             "10.2.0.1 answers AccECN with no ECN")
        expect_equal((first["host"], first["fixes"]), ("10.2.0.1", False))
        run(first["command"], net.rcv)
        expect_equal(notes(ask_from_the_start(net, "down", "cubic")), ["no-ect1"], "CUBIC with AccECN")


@test("bleached")
def bleaching_before_this_host_is_told_by_the_handshake():
    net = shared_net()
    nft(net.snd, "b", "postrouting", "ip ecn set not-ect", 10)
    try:
        with net.aqm(TCP_LINK), endpoints(net, 3, 3):
            first = expect_first(ask_from_the_start(net, "down", "cubic"), "bleached", "negotiated AccECN",
                                 "upstream of up")
            expect(not first["fixes"], "the fix is on another host")
    finally:
        run("nft delete table ip b", net.snd)


# Healthy links

def healthy_and_classic(net, device):
    """Both kinds of TCP: no finding. CUBIC alone: just that."""
    with tcp(net, "dctcp", "cubic"):
        time.sleep(3)
        found = ask(net.rtr, device, 4)
        note(f"{found['findings']} {found['doubts']}")
        expect_equal((found["verdict"], ids(found)), ("healthy", []), "DCTCP as ECT(1), and CUBIC")
    with tcp(net, "cubic"):
        time.sleep(3)
        found = ask(net.rtr, device, 4)
        note(f"{found['findings']}")
        expect_equal((ids(found), notes(found)), ([], ["no-ect1"]), "CUBIC alone")
    found = ask(net.rtr, device, 2)
    expect_equal((found["verdict"], ids(found)), ("unknown", []), "an idle link")
    expect("start a transfer" in found["doubts"][0], str(found["doubts"]))


@test("healthy")
def link_below_htb_is_healthy():
    net = shared_net()
    with net.aqm(TCP_LINK), endpoints(net, 2, 2):
        healthy_and_classic(net, "down")


@test("healthy")
def link_with_a_bandwidth_is_healthy():
    net = shared_net()
    with qdisc(net, "handle 10: dualpi2 bandwidth 5mbit"), endpoints(net, 2, 2):
        healthy_and_classic(net, "down")


@test("healthy")
def link_that_is_shaped_at_ingress_is_healthy():
    net = shared_net()
    with ifb(net, "handle 10: dualpi2 bandwidth 5mbit ingress"), endpoints(net, 2, 2):
        healthy_and_classic(net, "up")


@test("healthy")
def both_directions_of_a_device_are_judged_together():
    net = shared_net()
    with ifb(net, "handle 10: dualpi2 bandwidth 5mbit ingress"), endpoints(net, 2, 2), \
         qdisc(net, "handle 20: dualpi2 bandwidth 4mbit", "up"):
        healthy_and_classic(net, "up")


if __name__ == "__main__":
    main()
