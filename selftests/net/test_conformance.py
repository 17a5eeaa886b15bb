#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock
"""Requirements of RFC 9331 section 5 and RFC 9332 section 2.5 that no other program here shows.

docs/CONFORMANCE.md lists all of them with their tests; the tags (R3, G3, N9) are its rows. The loads are
unresponsive, see test_aqm_control.py: below overload p_C = (c + l - 1) / c, in overload 1 - 1 / (c + l).
"""

import math
import os
import socket
import struct
import time

import lib
from lib import (CE, ECT0, ECT1, NOT_ECT, Net, Stream, each, expect, expect_between, expect_equal, main, note,
                 shared_aqm, shared_net, test, user_mode_linux)
from tcp import Tcp

R = 10e6        # bit/s
T_US = 800      # of one packet of 1000 bytes
TARGET_US = 15000
ETH_P_ARP = 0x0806
NQB = 45        # the DSCP of RFC 9956


def expect_near(got, want, what, part=0.03):
    """Within 3 %, the project's bound for the steady state."""
    expect_between(got, want * (1 - part), want * (1 + part), what)


# RFC 9331

@test("R3")
def codepoints_of_many_packets_under_load_change_to_ce_only():
    """Bursts at 0.9 of the link's rate are marked in part and lose nothing; 1.3 of it is overload."""
    net = shared_net()
    rate, size, came = 40e6, 250, 0
    packets = int(os.environ.get("DUALPI2_TEST_PACKETS", "100000"))
    seconds = packets / 2 / (0.75 * rate / 8 / size)
    for load, burst in ((0.9, 40), (1.3, 1)):
        with net.aqm(rate=rate, burst_max=0) as q:
            result = net.traffic(seconds, *(
                Stream(name, ecn=ecn, dscp=dscp, bps=load / 2 * rate, size=size, burst=burst)
                for name, ecn, dscp in (("ect1", ECT1, 10), ("ce", CE, 46))))
            st = q.stats()
            expect_equal(st["c"]["enqueued"], 0, "packets in C")
            expect_equal(bool(st["l"]["dropped_overload"]), load > 1, f"drops in overload, at {load}")
        ect1, ce = result["ect1"], result["ce"]
        note(f"at {load}: ECT(1) came as {ect1.ecn}, CE as {ce.ecn}")
        expect_equal((ect1.ecn[NOT_ECT], ect1.ecn[ECT0]), (0, 0), "ECT(1) that came as Not-ECT, ECT(0)")
        expect_equal(ce.ecn, [0, 0, 0, ce.received], "CE as it came")
        expect(ect1.ecn[CE] > 1000, "hardly any mark")
        expect(load > 1 or ect1.ecn[ECT1] > 1000, "hardly any packet without a mark")
        expect_equal((ect1.dscp_changed, ce.dscp_changed), (0, 0), "changed DSCPs")
        came += ect1.received + ce.received
    expect(came >= packets, f"only {came} packets came")


@test("R13", "R32", "N1", "N3", "N4")
def filter_includes_dscps_and_arp_in_l_and_leaves_their_codepoints():
    """Two DSCPs at once, and what is no IP at all; another DSCP, and IPv6 that no filter is for, go by ECN."""
    with shared_aqm(nqb=0) as (net, q):
        for priority, dscp in ((1, NQB), (2, 46)):
            q.filter(f"protocol ip prio {priority} flower ip_tos {dscp << 2:#x}/0xfc classid 10:1")
        q.filter("protocol arp prio 3 matchall classid 10:1")
        result = net.traffic(1, Stream("nqb", dscp=NQB, pps=100, count=8),
                             Stream("ef", ecn=ECT0, dscp=46, pps=100, count=16),
                             Stream("other", dscp=10, pps=100, count=32),
                             Stream("v6", dscp=NQB, pps=100, count=64, dst="fd02::1"))
        for _ in range(128):
            send_arp(net)
        q.until_idle()
        st = q.stats()
        expect_equal(st["l"]["enqueued"], 8 + 16 + 128, "packets in L")
        expect_equal(st["c"]["enqueued"], 32 + 64, "packets in C")
        expect_equal(st["unparsed"], 128, "packets without an IP header")
        for name, ecn in (("nqb", NOT_ECT), ("ef", ECT0), ("other", NOT_ECT), ("v6", NOT_ECT)):
            one = result[name]
            expect_equal((one.ecn[ecn], one.dscp_changed), (one.sent, 0), f"{name} as it was sent, DSCPs changed")


def send_arp(net):
    """An ARP request out of rtr's `down`, for an address that nobody has."""
    with lib.in_netns(net.rtr), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind(("down", 0))
        sock.send(struct.pack("!6s6sHHHBBH6s4s6s4s", b"\xff" * 6, bytes.fromhex("020000000202"), ETH_P_ARP,
                              1, 0x0800, 6, 4, 1, bytes.fromhex("020000000202"), bytes((10, 2, 0, 2)),
                              b"\0" * 6, bytes((10, 2, 0, 77))))


@test("R19")
def gso_burst_split_leaves_no_packet_sooner_than_the_link_sends_it():
    """Ten segments a burst. Split, they come one packet time apart except for the first three, which htb's burst of
    1514 bytes lets go sooner; as a whole, all at once: so the measure can tell.
    """
    with Net(offloads=True) as net:
        for split in (1, 0):
            with net.aqm(split_gso=split) as q:
                one = net.traffic(2, Stream("burst", ecn=ECT1, pps=100, gso=10, trace=True))["burst"]
                q.until_idle()
                expect_equal(one.lost, 0, "loss")
                at = [(sent + delay) / 1000 for sent, delay, _ in one.records]
                bursts = [at[i:i + 10] for i in range(0, len(at), 10)]
                expect_equal(len(bursts), 20, "bursts")
                gaps = [b - a for burst in bursts for a, b in zip(burst[2:], burst[3:])]
                note(f"split {split}: gaps {min(gaps):.0f} to {max(gaps):.0f} us")
                if split:
                    expect_between(min(gaps), 0.7 * T_US, 1.3 * T_US, "minimum gap, us")
                else:
                    expect_between(max(gaps), 0, 0.1 * T_US, "maximum gap of packets that stayed together, us")
                    # The core counts segments where the qdisc has one packet.
                    q.check = lambda: None


# RFC 9332 2.5.1

@test("R27")
def l_unmarked_behind_a_policer_left_alone_and_the_excess_goes_by_ecn():
    """Protection of the L4S queue by tc's own policer: 0.1 R of 0.2 R may pass into class 2, and there neither
    loses a packet nor is marked while Classic is dropped from; the rest goes to the next filter and to Classic.
    """
    with shared_aqm() as (net, q):
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 action police "
                 f"rate {0.1 * R:.0f}bit burst 10000 conform-exceed continue/pass classid 10:2")
        result = net.traffic(16, Stream("c", bps=0.95 * R), Stream("police", bps=0.2 * R), warmup=8)
        q.until_idle()
        st = q.stats()
        # Ethernet header included or not: 986 of 1000 bytes.
        expect_between(st["l"]["enqueued"] / result["police"].sent_ever, 0.49, 0.53, "part in L")
        expect_equal(st["l"]["enqueued"], st["l"]["sent"], "packets that left L")
        expect_equal((st["l"]["marked_coupled"], st["l"]["marked_native"], st["l"]["marked_classic"]), (0, 0, 0),
                     "marks in L")
        expect_near(result["c"].loss, 0.15 / 1.05, "loss in C")
        expect(result["police"].lost > 0, "the excess lost nothing")


@test("N9")
def dscp_45_with_ect1_or_ce_is_treated_as_any_other_l4s():
    with shared_aqm() as (net, q):
        result = net.traffic(20, Stream("c", bps=0.8 * R),
                             *(Stream(name, ecn=ecn, dscp=dscp, bps=0.1 * R, jitter=1) for name, ecn, dscp in
                               (("default", ECT1, 0), ("nqb", ECT1, NQB), ("nqb ce", CE, NQB))), warmup=12)
        st = q.stats()
        expect_equal(st["l"]["enqueued"], sum(result[n].sent_ever for n in ("default", "nqb", "nqb ce")), "in L")
        for name in ("default", "nqb", "nqb ce"):
            expect_equal((result[name].lost, result[name].dscp_changed), (0, 0), f"{name}: loss, changed DSCPs")
        p_cl = 2 * math.sqrt(0.1 / 0.8)
        marks = result["default"].ecn[CE] + result["nqb"].ecn[CE]
        sent = result["default"].sent + result["nqb"].sent
        expect_near(result["c"].loss, 0.1 / 0.8, "loss in C")
        # Which of the two a mark falls on is at most as uneven as a coin.
        slack = 5 * math.sqrt(sent * p_cl * max(1 - p_cl, 0.1)) / 2
        note(f"{marks} of {sent} marked")
        expect_between(result["nqb"].ecn[CE] - marks / 2, -slack, slack, "marks of DSCP 45 less half of all")


# RFC 9332 2.5.2.1

# 200 Mbit/s takes 11 s on the debug kernel, 1 Gbit/s a minute: check-long asks for them.
FASTEST = 1e6 * float(os.environ.get("DUALPI2_TEST_MBIT", "40"))
RATES = {name: rate for name, rate in {"4mbit": 4e6, "40mbit": 40e6, "200mbit": 200e6, "1gbit": 1e9}.items()
         if rate <= FASTEST}


@each(RATES, ("R31",))
def default_instance_at_CASE_classic_waits_for_the_target_and_l4s_does_not(name):
    """Full-sized packets, c = 0.85 and l = 0.3. C waits for the target, to within a packet or 5 %; L for two packets at
    most, the C packet on the link and one more, and 0.2 ms in which a stock kernel does other things.
    """
    rate = RATES[name]
    if rate > 500e6 and not user_mode_linux():
        raise lib.Skip("a stock kernel in virtual time is not fast enough for 1 Gbit/s")
    packet_us = 1514 * 8e6 / rate
    seconds, warmup = (5.5, 4.5) if rate > 500e6 else (7, 4.5) if rate > 100e6 else (16, 8)
    with shared_aqm(rate=rate) as (net, q):
        result = net.traffic(seconds, Stream("c", bps=0.85 * rate, size=1514),
                             Stream("l", ecn=ECT1, bps=0.3 * rate, size=1514, jitter=1), warmup=warmup)
        st = q.stats()
        slack = max(packet_us, 0.05 * TARGET_US)
        expect_between(result["c"].delay_us["mean"], TARGET_US - slack, TARGET_US + slack, "C: mean delay, us")
        expect_between(result["l"].delay_us["p99"] - result["l"].delay_us["min"], 0, 2 * packet_us + 200,
                       "L: P99 of the delay above the minimum, us")
        expect_near(result["c"].loss, 0.15 / 0.85, "C: loss", 0.1)
        expect_equal(result["l"].lost, 0, "L: loss")
        for queue in "cl":
            expect_equal((st[queue]["dropped_limit"], st[queue]["dropped_memory"]), (0, 0),
                         f"{queue}: dropped at the tail")


@test("R31")
def default_instance_at_10_gbit_reaches_the_target_before_its_limit():
    """10000 packets of 1514 bytes are 12 ms at 10 Gbit/s, less than the target. The default limit follows the rate that
    is observed, so that nothing is dropped at the tail; a limit that is given stays.
    """
    if not user_mode_linux():
        raise lib.Skip("a stock kernel in virtual time is not fast enough for 10 Gbit/s")
    net = shared_net()
    for given in (False, True):
        with net.aqm(rate=10e9, **({"limit": 10000} if given else {})) as q:
            expect_equal(q.stats()["knobs"]["limit"], 10000, "limit before any packet")
            one = net.traffic(0.06, Stream("c", bps=1.4 * 10e9, size=1514))["c"]
            st = q.stats()
            note(f"limit {st['knobs']['limit']}: delay {one.delay_us}, most packets {st['maxq']}")
            expect_equal(bool(st["c"]["dropped_limit"] + st["c"]["dropped_memory"]), given,
                         f"dropped at the tail, limit given: {given}")
            expect_equal(one.delay_us["max"] > TARGET_US, not given, f"more than the target, limit given: {given}")


@test("R33", "R34")
def typical_and_max_rtt_set_target_and_gains_that_traffic_obeys():
    """typical_rtt 20 ms, max_rtt 200 ms: Tupdate = min(target, RTTmax / 3), alpha = 0.1 Tupdate / RTTmax^2 = 0.05 Hz,
    beta = 0.3 / RTTmax = 1.5 Hz; netlink has them in 1/256 Hz. What p' does while nothing is queued shows alpha.
    """
    with shared_aqm(args="max_rtt 200ms typical_rtt 20ms") as (net, q):
        knobs = q.stats()["knobs"]
        expect_equal((knobs["target"], knobs["tupdate"]), (20000, 20000), "target and tupdate, us")
        expect_between(knobs["alpha"], 0.05 * 256 - 0.5, 0.05 * 256 + 0.5, "alpha, 1/256 Hz")
        expect_equal(knobs["beta"], 1.5 * 256, "beta, 1/256 Hz")
        one = net.traffic(24, Stream("c", bps=1.2 * R), warmup=14)["c"]
        expect_between(one.delay_us["mean"], 20000 - T_US, 20000 + T_US, "mean delay, us")
        expect_near(one.loss, 0.2 / 1.2, "loss")
        first, second = fall(q, 1)
        expect_near(first - second, knobs["alpha"] / 256 * 0.020 / 0.020, "fall of p' in 1 s", 0.05)


def fall(q, seconds):
    """p' now and so many seconds later, nothing being queued."""
    q.until_idle()
    time.sleep(0.1)
    first = q.stats()["p"]
    time.sleep(seconds)
    return first, q.stats()["p"]


@test("R35", "R30")
def p_cmax_decides_where_both_queues_begin_to_drop():
    """c = 0.8 and l = 0.3 is p_C = 1/8, no overload at 20 % as at the default of 25 %; at 5 % it is, and both lose
    1 - 1/1.1. 100 %: c = l = 0.75, which loses 1/3 in both by default, never drops L4S, and Classic sheds all:
    (c + l - 1) / c = 2/3.
    """
    with shared_aqm(p_cmax=20) as (net, q):
        expect_equal(q.stats()["knobs"]["p_cmax"], 20, "p_cmax")
        result = net.traffic(20, Stream("c", bps=0.8 * R), Stream("l", ecn=ECT1, bps=0.3 * R), warmup=12)
        expect_near(result["c"].loss, 0.125, "20 %: loss in C")
        expect_equal(result["l"].lost, 0, "20 %: loss in L")
        q.until_idle()
        q.change(p_cmax=5)
        before = q.stats()["overload_count"]
        result = net.traffic(20, Stream("c", bps=0.8 * R), Stream("l", ecn=ECT1, bps=0.3 * R), warmup=12)
        expect_near(result["c"].loss, 1 - 1 / 1.1, "5 %: loss in C")
        expect_near(result["l"].loss, 1 - 1 / 1.1, "5 %: loss in L")
        expect_near(result["l"].marked, 2 * math.sqrt(1 - 1 / 1.1), "5 %: marks of what remained in L")
        q.until_idle()
        expect_equal(q.stats()["overload_count"], before + 1, "5 %: overloads")
        q.change(p_cmax=100)
        result = net.traffic(20, Stream("c", bps=0.75 * R), Stream("l", ecn=ECT1, bps=0.75 * R), warmup=12)
        expect_near(result["c"].loss, 2 / 3, "100 %: loss in C")
        expect_equal(result["l"].lost, 0, "100 %: loss in L")
        expect_equal(result["l"].ecn[CE], result["l"].received, "100 %: marks in L")
        expect_equal(q.stats()["overload_count"], before + 1, "overloads, after 100 %")


# RFC 9332 4.2.1, 4.2.3.1

@test("G1")
def unresponsive_traffic_below_the_rate_only_subtracts_by_either_queue():
    """Half of the rate is unresponsive, with two TCP flows: it loses what p_C takes, they have the rest, and the
    link is busy.
    """
    net, rate = shared_net(), 20e6
    for name, ecn in (("ECT(1)", ECT1), ("Not-ECT", NOT_ECT)):
        with net.aqm(rate=rate) as q:
            flows = [Tcp(net, port, "reno") for port in (7001, 7002)]
            traffic = net.start(20, Stream("udp", ecn=ecn, bps=0.5 * rate, jitter=1), warmup=8)
            time.sleep(10)
            # In slow start the flows went beyond the rate.
            begun, before = time.monotonic(), q.stats()
            tcp = sum(flow.received for flow in flows)
            time.sleep(9)
            ended, after = time.monotonic(), q.stats()
            tcp = sum(flow.received for flow in flows) - tcp
            udp = traffic.wait()["udp"]
            for flow in flows:
                flow.end()
            q.until_idle()
            bits = (ended - begun) * rate
            expect_between((after["bytes"] - before["bytes"]) * 8 / bits, 0.99, 1.002,
                           f"{name}: part of the link that is used")
            # 1448 bytes of 1514 are TCP's payload.
            expect_between(tcp * 1514 / 1448 * 8 / bits, 0.48, 0.52, f"{name}: part of the link that TCP has")
            expect_between(0.5 * (1 - udp.loss), 0.48, 0.5, f"{name}: part of the link that UDP has")
            expect(ecn != ECT1 or not udp.lost, f"{name}: {udp.lost} lost")
            expect_equal(q.stats()["l"]["enqueued"], udp.sent_ever * (ecn == ECT1), f"{name}: packets in L")
            expect_equal(after["overload_count"], before["overload_count"], f"{name}: overloads before and after")


@test("G3", "R4", "R30")
def flood_of_any_codepoint_loses_alike_and_delay_stays_at_the_target():
    """1.5 R and 0.3 R of Classic: whatever the flood's codepoint, both lose 1 - 1/1.8, and the queue that waits
    the longer waits for the target. ECT(1) gains nothing by being ECT(1).
    """
    net = shared_net()
    for name, ecn in (("ECT(1)", ECT1), ("ECT(0)", ECT0), ("Not-ECT", NOT_ECT)):
        with net.aqm() as q:
            result, samples = net.sampled(q, 18, Stream("c", bps=0.3 * R, jitter=1),
                                          Stream("flood", ecn=ecn, bps=1.5 * R), warmup=10, every=0.2)
            expect_equal({st["overload"] for st in samples}, {1}, f"{name}: in overload")
            shed = result["c"].lost + result["flood"].lost
            expect_near(shed / (result["c"].sent + result["flood"].sent), 1 - 1 / 1.8, f"{name}: loss of both")
            expect_near(result["flood"].loss, 1 - 1 / 1.8, f"{name}: loss of the flood")
            expect_near(result["c"].loss, 1 - 1 / 1.8, f"{name}: loss of Classic", 0.06)
            expect_between(max(one.delay_us["mean"] for one in result.values()), TARGET_US - 2 * T_US,
                           TARGET_US + 2 * T_US, f"{name}: the longer mean delay, us")


if __name__ == "__main__":
    main(needs="virtual_time ext")
