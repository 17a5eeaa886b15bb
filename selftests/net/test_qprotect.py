#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Queue protection (RFC 9957): which packets are redirected and for how long, and that nothing is done without
congestion.
"""
import contextlib
import ipaddress
import socket
import struct
import time

import frames
import lib
from lib import ECT1, NOT_ECT, Stream, expect, expect_between, expect_equal, note, shared_aqm, shared_net, test
from netlink import EXT_OFFSET, EXT_XSTATS, HEADER, attr_list, attrs
from tcp import dctcp
from wire import Wire, bits

BPS = 10e6
NUMBER = HEADER.number
SUMMARY, FLOW = HEADER.layout("tc_dualpi2_qprotect"), HEADER.layout("tc_dualpi2_qprotect_flow")
OFF, TUPLE, HASH = (NUMBER(f"TC_DUALPI2_QPROTECT_MODE_{name}") for name in ("OFF", "TUPLE", "HASH"))
HOSTILE = Stream("hostile", ecn=ECT1, bps=1.5 * BPS)
HONEST = Stream("honest", ecn=ECT1, bps=1e6, size=300)
NQB = 45


def of_message(message):
    """The summary, None if there is none, and the flows."""
    own = message["app"][EXT_OFFSET:]
    found = attrs(own[EXT_XSTATS.read(own)["size"]:])
    data = found.get(NUMBER("TCA_DUALPI2_STATS_QPROTECT"))
    flows = [FLOW.read(flow) for _, flow in attr_list(found.get(NUMBER("TCA_DUALPI2_STATS_QPROTECT_FLOWS"), b""))]
    return data and SUMMARY.read(data), flows


def protection(netns, dev):
    """The summary of a qdisc, and the flows of its class, which has the same summary."""
    qdisc, = (one for one in lib.qdisc_dump(netns, dev) if one["handle"] == "10:")
    l4s, = (one for one in lib.class_dump(netns, dev, 0x100000) if one["handle"] == "10:1")
    summary, none = of_message(qdisc)
    again, flows = of_message(l4s)
    expect_equal(none, [], "flows of the qdisc")
    expect_equal(bool(again), bool(summary), "summaries of the qdisc and of the class")
    return summary, flows


def of_end(flow, end):
    """The address of one end of a flow."""
    size = {socket.AF_INET: 4, socket.AF_INET6: 16}[flow["family"]]
    return str(ipaddress.ip_address(bytes(flow[f"{end}.{number}"] for number in range(size))))


def flood(wire, packets, build):
    """So many packets at once, and the summary and flows right after."""
    wire.offer(*(build() for _ in range(packets)))
    return protection(wire.netns, "w0")


@test("QP", "G4", "N7")
def hostile_flow_is_redirected_and_others_are_not():
    """With the ramp and with a step in time or packets. Each sanction lasts twice as long as the one before, and
    twice the target more: 15, 45, 105, 225, 465, 945 ms at least, so that the seventh lasts beyond the two seconds.
    Until the critical delay, three packets of 1514 bytes beyond the ramp or 4.8 ms, the flow sends 29 packets of
    0.8 ms at 1.5 times the link, if the queue grows by 0.31 times the link's rate; it is 0.6 times, less what
    overload control drops. The flow does not return while it keeps the Classic queue in overload, where it would
    make overload control drop honest packets.
    """
    for knobs in ({}, {"step_thresh_us": 1000, "ramp_us": 0}, {"step_thresh_pkts": 5}):
        with shared_aqm(rate=BPS, qprotect=TUPLE, **knobs) as (net, q):
            run = net.traffic(2, HOSTILE, HONEST)
            st, _ = protection(q.netns, q.dev)
            note(f"{knobs}: {st}, honest {run['honest'].delay_us}")
            expect(1 <= st["sanctions"] <= 7, f"{knobs}: {st['sanctions']} sanctions")
            kept = run["hostile"].sent_ever - st["redirected"]
            expect(0 < kept <= 29 * st["sanctions"], f"{knobs}: {kept} packets not redirected")
            expect_equal((run["honest"].lost, run["honest"].disorder), (0, 0), f"{knobs}: honest lost and reordered")
            expect_equal(q.stats()["c"]["counters"]["arrived_ect1"], st["redirected"], f"{knobs}: ECT(1) in Classic")
            expect_equal(st["redirected_bytes"], 1000 * st["redirected"], f"{knobs}: bytes")


@test("QP")
def nqb_that_is_not_ect_is_spared_while_a_flow_is_redirected():
    """It cannot be marked, and keeps its queue. Until the hostile flow is redirected again it sends 29 packets of
    0.8 ms, see above, in which five NQB packets come at most.
    """
    with shared_aqm(rate=BPS, qprotect=TUPLE) as (net, q):
        run = net.traffic(2, HOSTILE, Stream("nqb", dscp=NQB, bps=0.5e6, size=300))
        st, _ = protection(q.netns, q.dev)
        note(f"{st}, NQB lost {run['nqb'].lost} of {run['nqb'].sent_ever}")
        expect(st["sanctions"] and st["redirected"], "no flow was redirected")
        expect(run["nqb"].lost <= 5 * st["sanctions"], f"{run['nqb'].lost} NQB packets lost")
        expect_equal(q.stats()["link"]["nqb_arrived"], run["nqb"].sent_ever, "in L")


@test("QP")
def redirected_flow_returns_without_reordering():
    """A burst, a pause in which the Classic queue empties, and slow packets: in L again, each in its order."""
    with shared_aqm(rate=BPS, qprotect=TUPLE) as (net, q):
        run = net.traffic(3, Stream("hostile", ecn=ECT1, bps=2 * BPS, stop=0.5, trace=True))
        before = q.stats()["l"]["enqueued"]
        st, flows = protection(q.netns, q.dev)
        expect(st["sanctions"] > 0, "no sanction")
        expect_equal((st["sanctioned"], flows), (0, []), "flows now")
        # Each redirection and each return during the burst can reorder once.
        came = [sent + delay for sent, delay, _ in run["hostile"].records if delay is not None]
        events = sum(later < earlier for earlier, later in zip(came, came[1:]))
        note(f"{events} times a packet came before its predecessor; disorder {run['hostile'].disorder}")
        expect(events <= 2 * st["sanctions"], f"{events} reordering events")
        again = net.traffic(1, Stream("hostile", ecn=ECT1, bps=1e6))
        expect_equal((again["hostile"].lost, again["hostile"].disorder), (0, 0), "lost and reordered after the return")
        expect_equal(q.stats()["l"]["enqueued"] - before, again["hostile"].sent_ever, "in L after the return")


@test("QP", "R13")
def filter_and_priority_are_final():
    for args in ("protocol all prio 1 matchall classid 10:1", ""):
        with shared_aqm(rate=BPS, qprotect=TUPLE) as (net, q):
            if args:
                q.filter(args)
            run = net.traffic(1, Stream("hostile", ecn=ECT1, bps=1.5 * BPS, source="snd" if args else "rtr",
                                        priority=0 if args else 0x100001))
            st, _ = protection(q.netns, q.dev)
            expect_equal((st["redirected"], st["scored"]), (0, 0), f"filter '{args}': redirected, scored")
            expect_equal(lib.arrived(q.stats()["c"]["counters"]), 0, f"of {run['hostile'].sent_ever} in Classic")


@test("QP")
def nothing_is_allocated_without_congestion():
    with shared_aqm(rate=BPS) as (net, q):
        net.traffic(0.5, HOSTILE)
        expect_equal(protection(q.netns, q.dev), (None, []), "statistics with protection off")
    with shared_aqm(rate=BPS, qprotect=TUPLE) as (net, q):
        net.traffic(1, Stream("l", ecn=ECT1, bps=0.5 * BPS, size=1500), Stream("c", bps=0.8 * BPS))
        st, flows = protection(q.netns, q.dev)
        expect_equal((st["buckets"], st["scored"], flows), (0, 0, []), "without congestion in L")
        net.traffic(0.2, HOSTILE)
        expect_equal(protection(q.netns, q.dev)[0]["buckets"], 33, "buckets with congestion in L")


def kinds(wire, port, size):
    """A frame of each kind, and the source, port and protocol that it belongs to. Another port is another flow."""
    n, src = next(wire.numbers), f"10.7.0.{port % 10 + 1}"
    data = frames.udp(bytes(size), sport=port)
    v4, v6 = frames.ipv4(data, ECT1), frames.ipv6(data, ECT1, flow=n)
    spi = frames.ipv4(struct.pack("!II", port, n) + bytes(size), ECT1, proto=50)

    def ether(packet):
        return frames.ether(n, frames.IP_TYPES[packet[0] >> 4], packet)

    return {
        "IPv4": (ether(v4), ("10.7.0.1", port, 17)),
        "IPv4 options": (ether(frames.ipv4(data, ECT1, options=bytes([1] * 8))), ("10.7.0.1", port, 17)),
        "IPv6, many flow labels": (ether(v6), ("fd07::1", port, 17)),
        "NQB": (ether(frames.ipv4(data, NOT_ECT, NQB)), ("10.7.0.1", port, 17)),
        # First fragments and others, of many datagrams.
        "fragments": (ether(frames.ipv4(data, ECT1, ident=n, frag=0x2000 if n % 2 else 100, src=src)), (src, 0, 17)),
        "IPv6 extension": (ether(frames.ipv6(bytes([17, 0]) + bytes([1, 4, 0, 0, 0, 0]) + data, ECT1, proto=60,
                                             src=f"fd07::{port % 10 + 1}")), (f"fd07::{port % 10 + 1}", 0, 60)),
        "IPv4 in IPv4": (ether(frames.ipv4(v4, ECT1, proto=4, src="10.8.0.1")), ("10.7.0.1", port, 17)),
        "IPv6 in IPv4": (ether(frames.ipv4(v6, ECT1, proto=41, src="10.8.0.1")), ("fd07::1", port, 17)),
        "IPv4 in IPv6": (ether(frames.ipv6(v4, ECT1, proto=4, src="fd08::1")), ("10.7.0.1", port, 17)),
        "ICMP": (ether(frames.ipv4(struct.pack("!BBHHH", 8, 0, 0, port, n) + bytes(size), ECT1, proto=1, src=src)),
                 (src, 0, 1)),
        "UDP header cut off": (ether(frames.ipv4(b"", ECT1, proto=17, src=src)) + bytes(size), (src, 0, 17)),
        "ESP": (ether(spi), ("10.7.0.1", 0, 50)),
        "AH": (ether(frames.ipv4(struct.pack("!BBHII", 17, 4, 0, port, n) + bytes(12 + size), ECT1, proto=51)),
               ("10.7.0.1", 0, 51)),
        **{name: (ether(frames.ipv4(data, ECT1, proto=number)), ("10.7.0.1", port, number))
           for name, number in (("TCP", 6), ("DCCP", 33), ("SCTP", 132), ("UDP-Lite", 136))},
        "VLAN": (frames.tagged(n, [(frames.ETH_P_8021Q, 5)], frames.ETH_P_IP, v4), ("10.7.0.1", port, 17)),
        "two tags": (frames.tagged(n, [(frames.ETH_P_8021AD, 5), (frames.ETH_P_8021Q, 6)], frames.ETH_P_IPV6, v6),
                     ("fd07::1", port, 17)),
        "PPPoE": (frames.ether(n, frames.ETH_P_PPP_SES, frames.pppoe(frames.PPP_IP, v4)), ("10.7.0.1", port, 17)),
        # From a VLAN device; the veth takes the tag beside the frame.
        "accelerated VLAN": (ether(v4), ("10.7.0.1", port, 17)),
    }


@test("QP", "N10")
def packets_of_every_kind_are_redirected():
    """Another flow of the same kind is not; redirected NQB counts no longer as NQB."""
    with Wire(bandwidth=bits(16e6), qprotect=TUPLE) as one:
        names = list(kinds(one, 0, 0))
    for name in names:
        with Wire(bandwidth=bits(16e6), qprotect=TUPLE) as wire, contextlib.ExitStack() as stack:
            send = wire.offer
            if name == "accelerated VLAN":
                lib.run("ip link add link w0 name w0.5 type vlan id 5", wire.netns)
                lib.run("ip link set w0.5 up", wire.netns)
                vlan = frames.Sender(wire.netns, "w0.5")
                stack.callback(vlan.close)
                send = vlan.send
            # Congestion arms queue protection when a packet leaves. Sending must not wait for Python to make frames.
            some = [kinds(wire, 1000, 1300)[name][0] for _ in range(80)]
            for nth in (80, 55, 30):
                some.insert(nth, kinds(wire, 1001, 400)[name][0])
            for frame in some[:20]:
                send(frame)
            wire.idle()
            for frame in some[20:]:
                send(frame)
            st, flows = protection(wire.netns, "w0")
            note(f"{name}: {st}")
            expect(st["redirected"] > 0 and st["sanctions"] == 1, f"{name}: {st}")
            expect_equal(sorted(flow["sanctioned"] for flow in flows), [0, 1], f"{name}: flows that are sanctioned")
            flow = flows[0]
            expect_equal((flow["sanctioned"], flow["redirected"], flow["shared"]), (1, st["redirected"], 0), name)
            expect_equal((of_end(flow, "src"), flow["sport"], flow["protocol"]), kinds(wire, 1000, 0)[name][1], name)
            counters = wire.stats()
            expect_equal(lib.arrived(counters["c"]["counters"]), st["redirected"], f"{name}: in Classic")
            if name == "NQB":
                expect_equal(counters["link"]["nqb_arrived"], 83 - st["redirected"], "NQB")


@test("QP")
def flows_without_a_bucket_share_one():
    """40 flows at once: 32 buckets are too few, and the class lists the shared one."""
    with Wire(bandwidth=bits(40e6), qprotect=TUPLE) as wire:
        wire.offer(*(wire.udp(1500, ECT1) for _ in range(20)))
        wire.idle()
        ports = [port for port in range(2000, 2040) for _ in range(2)]
        wire.offer(*(kinds(wire, port, 1300)["IPv4"][0] for port in 3 * ports))
        st, flows = protection(wire.netns, "w0")
        note(f"{st}")
        expect(st["scored_shared"] > 0, "the shared bucket was not used")
        expect(any(flow["shared"] for flow in flows), f"{flows}")


@test("QP")
def hash_alone_is_shown_on_demand():
    with Wire(bandwidth=bits(40e6), qprotect=HASH) as wire:
        wire.offer(*(wire.udp(1500, ECT1) for _ in range(20)))
        wire.idle()
        _, flows = flood(wire, 60, lambda: wire.udp(1500, ECT1))
        expect(flows and flows[0]["sanctioned"] and flows[0]["hash"], f"{flows}")
        expect(not any(flows[0][name] for name in FLOW.names if name.startswith(("src", "dst"))), "addresses")
        expect_equal([flows[0][name] for name in ("family", "protocol", "sport", "dport")], [0] * 4, "the rest")


@test("QP")
def gso_packet_counts_all_its_bytes():
    """Split or whole, one of 60000 bytes is scored as those it stands for."""
    for split in (0, 1):
        with Wire(bandwidth=bits(40e6), qprotect=TUPLE, split_gso=split) as wire:
            wire.offer(*(wire.udp(1500, ECT1) for _ in range(20)))
            wire.idle()
            wire.offer(*(wire.udp(1500, ECT1) for _ in range(4)))
            for _ in range(3):
                expect(wire.gso(60000, 1448, ECT1), "the kernel refused it")
            st, c = protection(wire.netns, "w0")[0], wire.stats()["c"]["counters"]
            redirected = st["redirected"]
            expect_equal((redirected, st["redirected_bytes"]), (lib.arrived(c), c["arrived_bytes"]), "in Classic")
            expect(wire.gso(60000, 1448), "the kernel refused it")
            st, flows = protection(wire.netns, "w0")
            expect_equal(st["redirected"], redirected, "after a Classic one")
            flow = max(flows, key=lambda flow: flow["redirected"])
            note(f"split {split}: {st}")
            expect_equal(flow["redirected"], st["redirected"], "packets")
            expect(st["redirected"] in ((42, 84, 126) if split else (1, 2, 3)), f"{st['redirected']} segments")
            expect(st["redirected_bytes"] >= 60000, "bytes")


@test("QP", needs="virtual_time ext")
def responsive_sender_returns_with_a_short_queue():
    """DCTCP is redirected for 5 s when the rate falls. Native marks keep its queue short meanwhile."""
    net = shared_net()
    with net.aqm(rate=40e6, shaper="none", bandwidth=bits(40e6), qprotect=TUPLE, qprotect_rate=bits(5e5)) as q, \
            contextlib.ExitStack() as stack:
        # Pace as L4S senders do. Of unpaced bursts at 10 Mbit/s the last packets wait longer than the ramp.
        lib.tc("qdisc add dev eth0 root fq", net.snd)
        stack.callback(lib.tc, "qdisc del dev eth0 root", net.snd)
        with dctcp(net):
            time.sleep(2)
            q.change(bandwidth=bits(10e6))
            time.sleep(2)
            before = q.stats()["c"]
            time.sleep(2)
            after = q.stats()["c"]
            time.sleep(4)
            later, summary = q.stats(), protection(net.rtr, "down")[0]
        q.until_idle()
        packets = after["counters"]["forwarded"] - before["counters"]["forwarded"]
        mean_ms = (after["delay"]["sum_ns"] - before["delay"]["sum_ns"]) / packets / 1e6
        note(f"{packets} packets, Classic delay {mean_ms:.1f} ms, {summary}")
        expect_between(packets * 1514 * 8 / 2 / 10e6, .8, 1, "share of the link while redirected")
        # The ramp is 1.2 ms, the Classic target 15 ms.
        expect_between(mean_ms, 0, 1.2, "Classic delay")
        expect_equal((later["c"]["packets"], summary["sanctioned"]), (0, 0), "in the Classic queue, redirected")


if __name__ == "__main__":
    lib.main(needs="timed ext")
