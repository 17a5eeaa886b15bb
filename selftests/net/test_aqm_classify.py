#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off
# suite: long kernel=stock
"""Which queue a packet goes to, and what its ECN field looks like afterwards.

RFC 9331 section 5 and RFC 9332 section 2.5.1.1.  What the AQM does to packets
where it did expect them is in test_aqm_control.py.
"""

import contextlib
import os
import socket
import time

from lib import (ANY_ECT, CE, CLA_ECT, ECT0, ECT1, NOT_ECT, VIRTUAL_TIME, Stream, expect, expect_between, expect_equal,
                 in_netns, main, note, quiet_netns, run, shared_aqm, shared_net, stats, tc, test)

NAMES = {NOT_ECT: "Not-ECT", ECT1: "ECT(1)", ECT0: "ECT(0)", CE: "CE"}
# Without virtual time the sender may stop for a while and then send a burst, which the AQM must not mark.
CALM = {} if VIRTUAL_TIME else {"target": 4294967, "alpha": 1, "beta": 1, "step_thresh_us": 10**6}


def one_of_each(**options):
    """Four streams with so different numbers of packets that any sum tells which."""
    return [Stream(NAMES[ecn], ecn=ecn, pps=200, size=500, count=8 << ecn, **options) for ecn in NAMES]


def codepoints_in_l(net, q, **options):
    """The codepoints that go to the L4S queue, all others having gone to Classic."""
    before = q.stats()
    result = net.traffic(0.4, *one_of_each(**options))
    after = q.stats()
    new = {name: after[name]["enqueued"] - before[name]["enqueued"] for name in "cl"}
    for ecn, name in NAMES.items():
        expect_equal(result[name].ecn[ecn], 8 << ecn, f"{name} that arrived as such")
    expect_equal(new["c"] + new["l"], 8 + 16 + 32 + 64, "packets in both queues")
    expect_equal(new["l"] % 8, 0, "packets in L modulo 8")
    return {ecn for ecn in NAMES if new["l"] & 8 << ecn}


@test("R1", "R2", "R6", "R12")
def ecn_in_ipv4_ect1_and_ce_go_to_l():
    with shared_aqm(**CALM) as (net, q):
        expect_equal(codepoints_in_l(net, q), {ECT1, CE}, "codepoints in L")


@test("R1", "R2", "R6", "R12")
def ecn_in_ipv6_ect1_and_ce_go_to_l():
    with shared_aqm(**CALM) as (net, q):
        expect_equal(codepoints_in_l(net, q, dst="fd02::1"), {ECT1, CE}, "codepoints in L")


@test("R1", "R2", "R6")
def ecn_under_a_vlan_tag_ect1_and_ce_go_to_l():
    """The tag in the packet's metadata, and in its bytes (reorder_hdr off, on a device that has
    no offload for tags when the VLAN is made).
    """
    net = shared_net()
    run("ethtool -K down txvlan off", net.rtr)
    net.vlan(5)
    with net.aqm(**CALM) as q:
        for reorder in ("on", "off"):
            run(f"ip link set dev down.5 type vlan reorder_hdr {reorder}", net.rtr)
            time.sleep(4)       # the kernel repeats its MLD reports
            for dst in ("10.3.0.1", "fd03::1"):
                expect_equal(codepoints_in_l(net, q, dst=dst), {ECT1, CE},
                             f"codepoints in L, to {dst}, reorder_hdr {reorder}")
        expect_equal(q.stats()["unparsed"], 0, "unparsed")


@test("R6")
def ecn_mask_any_ect_sends_ect0_to_l():
    with shared_aqm(ecn_mask=ANY_ECT, **CALM) as (net, q):
        expect_equal(codepoints_in_l(net, q), {ECT0, ECT1, CE}, "codepoints in L")


@test()
def ecn_mask_cla_ect_sends_ect0_and_not_ect1_to_l():
    with shared_aqm(ecn_mask=CLA_ECT, **CALM) as (net, q):
        expect_equal(codepoints_in_l(net, q), {ECT0, CE}, "codepoints in L")


@test("R7", "C4")
def c04_l4s_off_sends_everything_to_classic():
    with shared_aqm(l4s=0, **CALM) as (net, q):
        expect_equal(codepoints_in_l(net, q), set(), "codepoints in L")
        q.change(l4s=1)
        expect_equal(codepoints_in_l(net, q), {ECT1, CE}, "codepoints in L with l4s on again")


@test("R7", "C4", needs="virtual_time ext")
def c04_l4s_off_ect1_is_dropped_and_not_marked():
    """0.9 R of ECT(1) and 0.2 R of CE: only the former can be dropped, by 1/9."""
    with shared_aqm(l4s=0) as (net, q):
        result = net.traffic(18, Stream("ect1", ecn=ECT1, bps=9e6), Stream("ce", ecn=CE, bps=2e6), warmup=10)
        expect_equal(q.stats()["l"]["enqueued"], 0, "packets in L")
        expect_equal(result["ect1"].ecn, [0, result["ect1"].received, 0, 0], "ECT(1) as received")
        expect_between(result["ect1"].loss, 0.97 / 9, 1.03 / 9, "loss of ECT(1)")
        expect_equal(result["ce"].lost, 0, "loss of CE below overload")
        expect_equal(q.stats()["ecn_mark"], 0, "marks")


def expect_codepoints(result):
    """ECN fields after the queue: only ECT may have become CE, and no DSCP changed."""
    legal = {NOT_ECT: {NOT_ECT}, ECT1: {ECT1, CE}, ECT0: {ECT0, CE}, CE: {CE}}
    for ecn, name in NAMES.items():
        one = result[name]
        seen = {codepoint for codepoint in range(4) if one.ecn[codepoint]}
        expect(seen <= legal[ecn], f"{name} came out as {[NAMES[codepoint] for codepoint in seen]}")
        expect_equal(one.dscp_changed, 0, f"changed DSCPs of {name}")
        expect(one.received > 0, f"no {name} came out")


def load_of_each(total):
    """All four codepoints, together `total` of the link, with two DSCPs."""
    return [Stream(name, ecn=ecn, dscp=(46, 10)[ecn & 1], bps=total * 10e6 / 4, jitter=1)
            for ecn, name in NAMES.items()]


@test("R3", "R15")
def codepoints_in_l_under_load_are_never_rewritten():
    """Class 1: L, whatever the codepoint.  0.4 R of each."""
    with shared_aqm() as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:1")
        result = net.traffic(6, *load_of_each(1.6))
        expect_codepoints(result)
        st = q.stats()
        expect_equal(st["c"]["enqueued"], 0, "packets in C")
        expect(result["ECT(1)"].ecn[CE] and result["ECT(0)"].ecn[CE] and result["Not-ECT"].lost,
               "the load caused no signal to some codepoint")


@test("R3", "R15", "R27")
def codepoints_in_l_unmarked_under_load_are_never_rewritten():
    """Class 2: nothing is marked at all, not even in overload."""
    with shared_aqm() as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:2")
        result = net.traffic(6, *load_of_each(1.6))
        expect_codepoints(result)
        st = q.stats()
        expect_equal(st["c"]["enqueued"], 0, "packets in C")
        expect_equal(st["ecn_mark"], 0, "marks")
        expect(st["l"]["dropped_overload"] > 0, "the load caused no overload")


@test("R3", "R17")
def codepoints_in_c_under_load_are_never_rewritten():
    """Class 3: Classic, whatever the codepoint."""
    with shared_aqm() as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:3")
        result = net.traffic(6, *load_of_each(1.2))
        expect_codepoints(result)
        st = q.stats()
        expect_equal(st["l"]["enqueued"], 0, "packets in L")
        expect(result["ECT(1)"].ecn[CE] and result["ECT(0)"].ecn[CE] and result["Not-ECT"].lost,
               "the load caused no signal to some codepoint")


FILTERS = {
    "matchall": "protocol all prio 1 matchall classid {}",
    "u32": "protocol ip prio 1 u32 match ip dst 10.2.0.1/32 match ip dport 0 0xc000 classid {}",
    "flower": "protocol ip prio 1 flower ip_proto udp dst_ip 10.2.0.1 classid {}",
}


@test("R13")
def filter_to_class_1_or_2_includes_any_codepoint_in_l():
    net = shared_net()
    for name, args in FILTERS.items():
        for minor in ("1", "2"):
            with net.aqm(**CALM) as q:
                q.filter(args.format(f"10:{minor}"))
                expect_equal(codepoints_in_l(net, q), set(NAMES), f"in L by {name} to {minor}")


@test("R16", "R17", "C4")
def c04_filter_to_class_3_or_another_excludes_any_codepoint_from_l():
    net = shared_net()
    for name, args in FILTERS.items():
        for minor in ("3", "7", "ffff"):
            with net.aqm(**CALM) as q:
                q.filter(args.format(f"10:{minor}"))
                expect_equal(codepoints_in_l(net, q), set(), f"in L by {name} to {minor}")


@test("R16")
def filter_without_classid_leaves_it_to_ecn():
    with shared_aqm(**CALM) as (net, q):
        q.filter("protocol all prio 1 matchall action pass")
        expect_equal(codepoints_in_l(net, q), {ECT1, CE}, "codepoints in L")


@test("R16", "bf83ee45874e")
def filter_without_match_leaves_it_to_ecn():
    """Matched and other packets by turns; and what netem, as the parent, left in
    the packet's private bytes means nothing.
    """
    net = shared_net()
    for parent in ("htb", "netem"):
        with net.aqm(shaper="htb" if parent == "htb" else "none", **CALM) as q:
            if parent == "netem":
                tc("qdisc replace dev down root handle 1: netem limit 1000 delay 3ms", net.rtr)
                tc("qdisc add dev down parent 1:1 handle 10: dualpi2", net.rtr)
            q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5000 classid 10:1")
            q.filter("protocol ip prio 2 flower ip_proto udp dst_port 5001 classid 10:3")
            q.filter("protocol ip prio 3 flower dst_ip 10.9.9.9 classid 10:1")
            net.traffic(1, Stream("to l", ecn=NOT_ECT, pps=100, count=50),
                        Stream("to c", ecn=ECT1, pps=100, count=25),
                        Stream("not", ecn=NOT_ECT, pps=200, count=100),
                        Stream("ect1", ecn=ECT1, pps=400, count=200))
            st = q.stats()
            expect_equal(st["l"]["enqueued"], 50 + 200, f"packets in L, parent {parent}")
            expect_equal(st["c"]["enqueued"], 25 + 100, f"packets in C, parent {parent}")


@test("R13", "R16")
def priority_with_the_handle_decides_before_ecn():
    """SO_PRIORITY = handle:minor on the router itself (forwarding sets it again)."""
    net = shared_net()
    wanted = {"10:1": set(NAMES), "10:2": set(NAMES), "10:3": set(),
              "10:0": {ECT1, CE}, "10:4": {ECT1, CE}, "10:ffff": {ECT1, CE},
              "11:1": {ECT1, CE}, "0:1": {ECT1, CE}}
    for shaper in ("htb", "none"):
        with net.aqm(shaper=shaper, **CALM) as q:
            for priority, in_l in wanted.items():
                major, minor = (int(part, 16) for part in priority.split(":"))
                got = codepoints_in_l(net, q, source="rtr", priority=major << 16 | minor)
                expect_equal(got, in_l, f"codepoints in L, priority {priority}, {shaper}")


@test("R16")
def priority_and_filter_priority_decides():
    with shared_aqm(**CALM) as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:3")
        got = codepoints_in_l(net, q, source="rtr", priority=0x100001)
        expect_equal(got, set(NAMES), "codepoints in L, priority 10:1 and a filter to 10:3")
        note("a filter alone:")
        expect_equal(codepoints_in_l(net, q, source="rtr"), set(), "codepoints in L")


@test("R1")
def gre_header_longer_than_that_of_ethernet_inner_ip_decides():
    """The IP header of a packet on a GRE device without a remote address is 24 bytes behind the outer one."""
    with contextlib.ExitStack() as stack:
        netns = f"dp{os.getpid()}-gre"
        quiet_netns(stack, netns)
        run("ip -batch -", netns, stdin="link set lo up\nlink add g0 type gre local 127.0.0.1\nlink set g0 up\n"
            "addr add 10.9.0.1/24 dev g0\nneigh add 10.9.0.2 lladdr 127.0.0.1 dev g0\n")
        tc("qdisc add dev g0 root handle 10: dualpi2", netns)
        with in_netns(netns):
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for number in range(120):
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT1 if number < 40 else ECT0)
            sender.sendto(b"x", ("10.9.0.2", 9))
        st = stats(netns, "g0")
        expect_equal((st["l"]["enqueued"], st["c"]["enqueued"], st["unparsed"]), (40, 80, 0), "L, Classic, unparsed")


if __name__ == "__main__":
    main()
