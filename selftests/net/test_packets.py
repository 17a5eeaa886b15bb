#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""test_packets.py - frames of every shape through dualpi2, each compared byte by byte.

The rule for each frame that comes out: it is the one that went in, except for ECT that became CE and,
with IPv4, the header's checksum recomputed; nothing changes where no IP header is; a copy of the
frame elsewhere does not change; what does not come out is counted as dropped.

Frames, and the rig that they pass, are in packets.py.
What the counters say of one another is in test_accounts.py, what filters do in test_filters.py.
"""
import contextlib
import os
import re
import struct

import frames
import lib
from frames import ETH_HLEN, ETH_P_8021AD, ETH_P_8021Q, ETH_P_IP, ETH_P_IPV6, ether, ipv4, ipv6, tagged
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_equal, test
from packets import ECNS, ELSEWHERE, MARK_ALL, MARK_ALL_L, NO_PI, START, Load, Rig, ipv4_, ipv6_, kinds_for


def unlike(result, wanted):
    """Descriptions of verdicts that differ from wanted(ecn, ip)."""
    return [f"{name}, codepoint {ecn}: {verdict}, expected {wanted(ecn, ip)}"
            for name, ecn, ip, verdict in result if verdict != wanted(ecn, ip)]


def expect_alike(result, wanted):
    wrong = unlike(result, wanted)
    expect(not wrong, f"{len(wrong)} of {len(result)} wrong: " + "; ".join(wrong[:10]))
    lib.note(f"{len(result)} frames: " + ", ".join(
        f"{sum(v == verdict for *_, v in result)} {verdict}" for verdict in ("same", "marked", "lost")))


# Classification: one frame at a time, nothing queued, so nothing may change.

def classify(injector):
    wrong = []
    with Rig("1gbit", bridge=injector == "bridge") as rig:
        load = Load(rig.injector(injector))
        before = rig.stats()
        for name, build, ip in kinds_for(injector):
            sent = len(load.sent)
            for ecn in ECNS:
                load.send(name, build, ip, ecn)
            sent = len(load.sent) - sent
            after = rig.stats()
            got = tuple(after[q][key] - before[q][key] for q, key in
                        (("c", "enqueued"), ("l", "enqueued"), ("c", "arrived_ce"), ("l", "arrived_ce")))
            got += (after["unparsed"] - before["unparsed"],)
            # RFC 9332 2.5.1: ECT(1) and CE to L, the others to C; what has no codepoint is Not-ECT.
            want = (sent, 0, 0, 0, sent) if ip is None else (sent // 2, sent // 2, 0, sent // 4, 0)
            if got != want:
                wrong.append(f"{name}: {got}, expected {want}")
            before = after
        expect(not wrong, f"C, L, CE in C, CE in L, unparsed of {len(wrong)} kinds wrong: " + "; ".join(wrong[:10]))
        expect_alike(load.verdicts(rig.out.drain()), lambda ecn, ip: "same")
        rig.check()


@test("R1", "R2", "R6", "RFC 9331 5.1", "RFC 9332 2.5.1")
def kinds_from_a_packet_socket_classified_unchanged():
    classify("socket")


@test("R1", "R2", "R6", "RFC 9331 5.1")
def kinds_with_nonlinear_header_classified_unchanged():
    classify("ring")


@test("R1", "R2", "R6", "RFC 9331 5.1")
def kinds_over_a_bridge_classified_unchanged():
    classify("bridge")


# Marking: a standing queue in which every packet that may be marked is marked.

def mark_natively(injector):
    """ECT(0) goes to the L4S queue as well, so that both ways to CE are seen. All is sent twice: while the queue is
    longer than ever before, packets take another way through the module than later.
    """
    with Rig("100kbit", bridge=injector == "bridge", ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as rig:
        marked = 0
        for _ in range(2):
            load = Load(rig.injector(injector))
            load.start()
            for name, build, ip in kinds_for(injector):
                for ecn in ECNS:
                    load.send(name, build, ip, ecn)
            ring_unchanged(load)
            result = load.verdicts(rig.out.drain(4))
            expect_equal([verdict for *_, verdict in result[:START]], ["same"] * START, "the first ones")
            expect_alike(result[START:], lambda ecn, ip: "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
            marked += sum(verdict == "marked" for *_, verdict in result)
        st = rig.check()
        expect_equal((st["l"]["marked_native"], st["mark_failed"]), (marked, 0), "native marks, failed")


def ring_unchanged(load):
    """The sender's own pages must keep what it wrote there."""
    if isinstance(load.injector, frames.RingSender):
        split = 0
        for slot, (name, frame, ip, _) in enumerate(load.sent.values()):
            expect_equal(load.injector.content(slot, len(frame)), frame, f"the sender's pages, {name}")
            split += ip == ETH_HLEN and load.injector.ip_header_is_split(slot)
        lib.note(f"{split} IP headers lay in two pages")


@test("R3", "R21", "RFC 3168 5", "RFC 791", needs="long ext")
def native_marks_from_a_packet_socket_byte_exact():
    mark_natively("socket")


@test("R3", "RFC 3168 5", needs="long ext")
def native_marks_over_a_bridge_byte_exact():
    mark_natively("bridge")


@test("R3", "RFC 3168 5", needs="long ext")
def native_marks_on_nonlinear_header_byte_exact():
    """In parts that fit the ring; its pages are compared while they are still its own."""
    with Rig("50kbit", ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as rig:
        kinds = list(kinds_for("ring"))
        per_run = (frames.RingSender.SLOTS - START) // 4
        for start in range(0, len(kinds), per_run):
            load = Load(rig.injector("ring"))
            load.start()
            for name, build, ip in kinds[start:start + per_run]:
                for ecn in ECNS:
                    load.send(name, build, ip, ecn)
            result = load.verdicts(rig.out.drain(4))
            ring_unchanged(load)
            expect_alike(result[START:], lambda ecn, ip: "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
        expect_equal(rig.check()["mark_failed"], 0, "marks that failed")


def mark_by_probability(injector):
    """Both probabilities are 1 while the backlog is two packets or more."""
    with Rig("1mbit", bridge=injector == "bridge", **MARK_ALL) as rig:
        load = Load(rig.injector(injector))
        # p' rises when the delay is above 2.5 packets of 12 ms, the effective target.
        load.fill(4, ECT0, 1514)
        load.fill(6, ECT1, 1514)
        fillers = len(load.sent)
        for name, build, ip in kinds_for(injector):
            for ecn in ECNS:
                load.send(name, build, ip, ecn)
        tested = len(load.sent)
        # The last to leave are Classic ones, and no signal is due below 3028 bytes.
        load.fill(6, ECT0, 1514)
        every = load.verdicts(rig.out.drain(4))
        result = every[fillers:tested]
        # With p_C = 1 at most 64 drops come before one is forwarded, so some live.
        dropped = 0
        for at, (name, ecn, ip, verdict) in enumerate(result):
            if verdict == "lost" and (ecn == NOT_ECT or ip is None):
                result[at] = (name, ecn, ip, "same")
                dropped += 1
        expect(dropped > 0, "no Not-ECT packet was dropped")
        expect_alike(result, lambda ecn, ip: "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
        st = rig.check()
        expect_equal((st["c"]["dropped_aqm"], st["drops"], st["mark_failed"]), (dropped, dropped, 0),
                     "dropped by AQM, drops, failed marks")
        coupled = sum(verdict == "marked" and ecn == ECT1 for _, ecn, _, verdict in every)
        expect_equal(st["l"]["marked_coupled"], coupled, "coupled marks in L")


@test("R3", "RFC 9332 2.5.1", "RFC 3168 5", needs="timed ext")
def classic_and_coupled_signals_from_a_packet_socket_byte_exact():
    mark_by_probability("socket")


@test("R3", "RFC 9332 2.5.1", "RFC 3168 5", needs="timed ext")
def classic_and_coupled_signals_over_a_bridge_byte_exact():
    mark_by_probability("bridge")


@test("RFC 1624", needs="timed ext")
def checksum_at_the_edges_recomputed_exactly():
    """IPv4 headers whose checksum comes out near 0 and near 0xffff, before or after the mark."""
    edges = [*range(8), *range(0xFD, 0x106), *range(0x1FE, 0x203), *range(0x2FD, 0x303),
             *range(0xFCFC, 0xFD04), *range(0xFDFD, 0xFE04), *range(0xFEFC, 0xFF03), *range(0xFFF8, 0xFFFF)]
    with Rig("50kbit", ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as rig:
        load = Load(rig.injector("socket"))
        load.start()
        for ecn in (ECT1, ECT0):
            for check in edges:
                # ident is one addend of the sum: choose it so that the checksum is the wanted one.
                ident = (frames.checksum(ipv4(b"", ecn)[:10] + b"\0\0" + ipv4(b"", ecn)[12:]) - check) % 0xFFFF
                packet = ipv4(b"", ecn, ident=ident)
                if struct.unpack_from("!H", packet, 10)[0] != check:
                    ident = 0xFFFF
                    packet = ipv4(b"", ecn, ident=ident)
                expect_equal((frames.checksum(packet), struct.unpack_from("!H", packet, 10)[0]),
                             (0, check), "own arithmetic")
                load.send(f"checksum {check:04x}",
                          lambda number, ecn, p=packet: ether(number, ETH_P_IP, p, ELSEWHERE), ETH_HLEN, ecn)
        expect_alike(load.verdicts(rig.out.drain(4))[START:], lambda ecn, ip: "marked")


# Faults that the in-tree qdisc and others have, each on its own.

@test("C21", needs="timed ext")
def c21_qinq_over_a_bridge_vlan_kept_and_ip_inside_marked():
    """The inner tag, VLAN 17, stands where an IPv4 header is expected: 0011 reads as ECT(1)."""
    with Rig("50kbit", bridge=True, **MARK_ALL_L) as rig:
        load = Load(rig.inp)
        load.start()
        for ecn in ECNS * 8:
            load.send("qinq", lambda number, ecn: tagged(
                number, [(ETH_P_8021AD, 0x0064), (ETH_P_8021Q, 0x0011)], ETH_P_IP,
                ipv4(ecn=ecn, frag=0x4000), ELSEWHERE), ETH_HLEN + 8, ecn)
        result = load.verdicts(rig.out.drain(4))
        expect_alike(result[START:], lambda ecn, ip: "marked" if ecn == ECT1 else "same")
        st = rig.check()
        expect_equal((st["c"]["enqueued"], st["l"]["enqueued"], st["unparsed"]), (16, 16 + START, 0), "C, L, unparsed")


@test("R1", "RFC 9331 5.1", needs="timed ext")
def vlan_device_tag_beside_the_frame_marked():
    """The tag that a VLAN device gives is not in the frame yet when the qdisc sees it. Without tag offload, packet
    sockets of Linux before 6.1.191 put the network header 4 bytes into the IP header, where 4501 reads as ECT(1).
    """
    for offload in ("on", "off"):
        with Rig("50kbit", **MARK_ALL_L) as rig:
            lib.run(f"ethtool -K out txvlan {offload} tx-vlan-stag-hw-insert {offload}", rig.netns)
            lib.run(["ip", "-batch", "-"], rig.netns, stdin="""\
link add link out name out.17 type vlan id 17
link set dev out.17 arp off up
""")
            sender = frames.Sender(rig.netns, "out.17")
            load = Load(sender)
            load.start()
            for ecn in ECNS * 8:
                for packet, ethertype in ((lambda ecn: ipv4(ecn=ecn, ident=0x4501), ETH_P_IP), (ipv6_, ETH_P_IPV6)):
                    load.send(f"{ethertype:04x}, offload {offload}", lambda number, ecn, p=packet, e=ethertype:
                              ether(number, e, p(ecn), ELSEWHERE), ETH_HLEN, ecn)
            got = rig.out.drain(4)
            sender.close()
            for number, (name, frame, ip, ecn) in load.sent.items():
                load.sent[number] = (name, frame[:12] + b"\x81\x00\x00\x11" + frame[12:], ip + 4, ecn)
            expect_alike(load.verdicts(got)[START:], lambda ecn, ip: "marked" if ecn == ECT1 else "same")
            st = rig.check()
            expect_equal((st["l"]["enqueued"], st["unparsed"]), (32 + START, 0), "L, unparsed")


def flood(side_first):
    with Rig("50kbit", bridge=True, side_first=side_first, ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as rig:
        load = Load(rig.inp)
        load.start()
        for ecn in (ECT1, ECT0) * 50:
            for packet, ethertype in ((ipv4_, ETH_P_IP), (ipv6_, ETH_P_IPV6)):
                load.send(f"{ethertype:04x}", lambda number, ecn, p=packet, e=ethertype:
                          ether(number, e, p(ecn), ELSEWHERE), ETH_HLEN, ecn)
        expect_alike(load.verdicts(rig.out.drain(4))[START:], lambda ecn, ip: "marked")
        expect_alike(load.verdicts(rig.side.drain(10)), lambda ecn, ip: "same")


@test("clone isolation", needs="long ext")
def bridge_flood_other_port_after_keeps_its_copies_unmarked():
    flood(side_first=False)


@test("clone isolation", needs="long ext")
def bridge_flood_other_port_before_keeps_its_copies_unmarked():
    flood(side_first=True)


@test("clone isolation", needs="timed ext")
def mirrored_copies_delayed_elsewhere_stay_unmarked():
    """A filter of dualpi2's own mirrors each packet before it is queued and marked."""
    with Rig("50kbit", **MARK_ALL_L) as rig:
        with contextlib.ExitStack() as stack:
            side = rig.tap(stack, "side")
            lib.tc("qdisc add dev side root netem delay 8s limit 100000", rig.netns)
            lib.tc("filter add dev out parent 10: matchall action mirred egress mirror dev side", rig.netns)
            load = Load(rig.injector("socket"))
            load.start()
            for _ in range(50):
                load.send("mirrored", lambda number, ecn: ether(number, ETH_P_IP, ipv4(ecn=ecn), ELSEWHERE),
                          ETH_HLEN, ECT1)
            expect_alike(load.verdicts(rig.out.drain(4))[START:], lambda ecn, ip: "marked")
            expect_alike(load.verdicts(side.drain(10)), lambda ecn, ip: "same")
        rig.check()


# C22: what it costs to mark is paid for marked packets only.

class Calls:
    """Counts calls of kernel functions that come from dualpi2_* or skb_ensure_writable()."""

    DIR = "/sys/kernel/tracing/"
    NAMES = ("skb_ensure_writable", "pskb_expand_head", "skb_copy", "__pskb_pull_tail")

    def put(self, name, text):
        with open(self.DIR + name, "w", encoding="ascii") as file:
            file.write(text)

    def __enter__(self):
        if not os.path.exists(self.DIR + "available_filter_functions"):
            raise lib.Skip("the kernel has no function tracer")
        self.put("current_tracer", "nop")
        with open(self.DIR + "available_filter_functions", encoding="ascii") as file:
            have = {line.split()[0] for line in file if line.startswith(self.NAMES)}
        self.put("set_ftrace_filter", "\n".join(name for name in self.NAMES if name in have))
        self.put("current_tracer", "function")
        self.put("trace", "")
        return self

    def count(self):
        """{(function, caller): calls} since last asked."""
        found = {}
        with open(self.DIR + "trace", encoding="ascii") as file:
            for callee, caller in re.findall(r": (\w+)(?: \[\w+\])? <-(\w+)", file.read()):
                if caller.startswith(("dualpi2_", "skb_ensure_writable")):
                    found[callee, caller] = found.get((callee, caller), 0) + 1
        self.put("trace", "")
        return found

    def __exit__(self, *_):
        self.put("current_tracer", "nop")
        self.put("set_ftrace_filter", "")


@test("C22", needs="destructive ext")
def c22_clones_that_are_not_marked_not_copied():
    """200 clones pass unmarked: the header is not made writable once.  Then 50 are marked: it is
    for each, which shows that the tracer sees it.
    """
    with Rig("1gbit", bridge=True, **MARK_ALL_L) as rig:
        load = Load(rig.inp)
        with Calls() as calls:
            load.fill(200, ECT1, 500)
            result = load.verdicts(rig.out.drain())
            expect_alike(result, lambda ecn, ip: "same")
            expect_equal(calls.count(), {}, "calls while nothing was marked")
            lib.tc("class change dev out parent 1: classid 1:10 htb rate 50kbit ceil 50kbit burst 1514 "
                   "cburst 1514 quantum 1514", rig.netns)
            load = Load(rig.inp)
            load.start()
            load.fill(50, ECT1, 500)
            marked = sum(verdict == "marked" for *_, verdict in load.verdicts(rig.out.drain(4)))
            found = calls.count()
        lib.note(str(found))
        expect_equal((rig.check()["l"]["marked_native"], marked), (50, 50), "native marks, marked")
        # A tail call hides skb_ensure_writable() as the caller.
        expect_equal(sum(count for (name, _), count in found.items() if name == "pskb_expand_head"), 50,
                     "copies made to mark")


# GSO, as far as bytes go

def gso_frame(number, version, segments, mss, ecn):
    """A TCP super-packet; returns it with the bytes of its headers and csum_start."""
    head = ipv4 if version == 4 else ipv6
    segment = frames.tcp(bytes(i * 7 & 0xFF for i in range(segments * mss)), seq=1000)
    frame = ether(number, ETH_P_IP if version == 4 else ETH_P_IPV6, head(segment, ecn, proto=6), ELSEWHERE)
    start = ETH_HLEN + (20 if version == 4 else 40)
    return frame, start + 20, start


GSO_TYPE = {4: frames.VIRTIO_NET_HDR_GSO_TCPV4, 6: frames.VIRTIO_NET_HDR_GSO_TCPV6}


def sequence_of(frame, start):
    return struct.unpack_from("!I", frame, start + 4)[0]


@test("GSO", "R19", needs="timed ext")
def gso_segments_marked_one_by_one():
    """A burst of 20 segments, step in packets: those are marked that leave more than 10 behind.

    With no_split_gso the burst is one packet and cannot be marked in part; this one is alone in its
    queue, so it is not marked at all.
    """
    for version in (4, 6):
        with Rig("50kbit", step_thresh_pkts=10, **NO_PI) as rig:
            vnet = frames.VnetSender(rig.netns, "out")
            for number, split in ((1, 1), (2, 0)):
                error, text = lib.tc_request(rig.netns, lib.RTM_NEWQDISC, 0, "out", "10:", "1:10", "dualpi2",
                                             lib.pack(split_gso=split))
                expect_equal((error, text), (0, ""), "change of split_gso")
                before = rig.stats()
                frame, header, start = gso_frame(number, version, 20, 500, ECT1)
                expect(vnet.send(frame, GSO_TYPE[version], 500, header, start), "not queued")
                got = sorted(rig.out.drain(3)[number], key=lambda f: sequence_of(f, start))
                expect_equal(len(got), 20, "segments at the receiver")
                expect_equal(b"".join(f[header:header + 500] for f in got), frame[header:], "payload")
                codepoints = [frames.ecn_of(f, ETH_HLEN) for f in got]
                after = rig.stats()
                packets = after["l"]["sent"] - before["l"]["sent"]
                if split:
                    # Segment n, from 0, leaves 20 - n packets in the queue, itself included.  The
                    # first found itself alone on arrival (floor of two packets).
                    expect_equal(codepoints, [ECT1] + [CE] * 9 + [ECT1] * 10, "codepoints")
                    expect_equal(packets, 20, "packets")
                    expect_equal(after["l"]["marked_native"] - before["l"]["marked_native"], 9, "marks")
                else:
                    expect_equal((set(codepoints), packets), ({ECT1}, 1), "codepoints, packets")
                for f in got:
                    expect(version == 6 or frames.checksum(f[ETH_HLEN:ETH_HLEN + 20]) == 0, "IPv4 checksum")
            vnet.close()
            st = rig.stats()
            expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")


@test("GSO", needs="timed ext")
def gso_packet_not_split_marked_as_a_whole():
    """no_split_gso: the mark is on every segment that is made of the packet later."""
    with Rig("50kbit", split_gso=0, **MARK_ALL_L) as rig:
        vnet = frames.VnetSender(rig.netns, "out")
        for number in range(1, 6):
            frame, header, start = gso_frame(number, 4, 10, 500, ECT1)
            expect(vnet.send(frame, GSO_TYPE[4], 500, header, start), "not queued")
        got = rig.out.drain(3)
        vnet.close()
        kinds = {n: {frames.ecn_of(f, ETH_HLEN) for f in got[n]} for n in got}
        expect_equal({n: len(got[n]) for n in got}, dict.fromkeys(range(1, 6), 10), "segments")
        expect_equal([kinds[n] for n in range(3, 6)], [{CE}] * 3, "codepoints of the last three")
        # `packets` is not compared: the core counts gso_segs there, which nobody set.
        st = rig.stats()
        expect_equal((st["l"]["sent"], st["mark_failed"]), (5, 0), "sent, failed marks")
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")


@test("GSO")
def gso_packet_that_cannot_be_split_dropped_and_counted():
    """A TCP header that claims to be shorter than any: segmentation rejects it. A filter of the parent
    breaks it, because newer kernels take no such packet from a socket.
    """
    with Rig("1gbit") as rig:
        vnet = frames.VnetSender(rig.netns, "out")
        lib.tc("filter add dev out parent 1: protocol ip prio 1 matchall"
               " action pedit munge offset 32 u8 set 0 retain 0xf0 continue", rig.netns)
        told = 0
        for number in range(1, 11):
            frame, header, start = gso_frame(number, 4, 10, 500, ECT1)
            told += not vnet.send(frame, GSO_TYPE[4], 500, header, start)
        expect_equal(told, 10, "drops that the sender was told of")
        lib.tc("filter del dev out parent 1:", rig.netns)
        frame, header, start = gso_frame(11, 4, 10, 500, ECT1)
        expect(vnet.send(frame, GSO_TYPE[4], 500, header, start), "a good one was dropped")
        vnet.close()
        got = rig.out.drain()
        expect_equal({n: len(got[n]) for n in got}, {11: 10}, "segments that came")
        st = rig.check()
        expect_equal((st["gso_failed"], st["drops"], st["packets"]), (10, 10, 10), "gso_failed, drops, packets")
        # htb counts the first ten as dropped by its class, and the last one once.
        expect_equal(rig.parent()["drops"], 10, "drops of htb")


if __name__ == "__main__":
    lib.main()
