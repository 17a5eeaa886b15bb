#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
test_packets.py - frames of every shape through dualpi2, each compared byte by byte.

The rule for each frame that comes out: it is the one that went in, but for ECT that became CE and,
with IPv4, the header's checksum recomputed; nothing changes where no IP header is; a copy of the
frame elsewhere does not change; what does not come out is counted as dropped.

One namespace: a TAP device `out` has the qdisc under htb and gives the frames as they leave, with
every tag; frames come to it from a packet socket, from a packet ring (header outside the linear
part) or from the TAP device `in` over a bridge (outermost tag outside the frame, packet shared with
other ports).

What the counters say of one another is in test_accounts.py, what filters do in test_module.py.
"""
import contextlib
import os
import re
import struct
from collections import namedtuple

import frames
import lib
from frames import (ETH_HLEN, ETH_P_8021AD, ETH_P_8021Q, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6,
                    ETH_P_LLDP, ETH_P_MPLS, ETH_P_PPP_DISC, ETH_P_PPP_SES, PPP_IP, PPP_IPV6,
                    PPP_LCP, ether, ipv4, ipv6, judge, pppoe, tagged, udp)
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_equal, test

MTU = 9000
ECNS = (NOT_ECT, ECT1, ECT0, CE)
# Not broadcast: the bridge is to flood, but not to hand a copy to itself.
ELSEWHERE = bytes.fromhex("020100000001")

# The PI controller is to stay out of it: p' cannot rise while delay - target + rise of delay < 0.
NO_PI = {"target": 4294967, "alpha": 1, "beta": 1, "tupdate": 16000}
# The native marker marks every packet that found another one in the L4S queue.
MARK_ALL_L = NO_PI | {"step_thresh_us": 0, "ramp_us": 0}
# p' goes to 1 at the first update and stays: with k = 1 and no drop in overload both probabilities
# are 1.  The native marker is out of the way.
MARK_ALL = {"coupling": 1, "drop_overload": 0, "target": 1, "tupdate": 100, "alpha": 2**31 - 1,
            "beta": 2**31 - 1, "step_thresh_us": 4000000, "ramp_us": 0}

# The rig

class Rig:
    """Namespace, devices, htb and dualpi2.  With bridge=True `in` and `out` are ports of one,
    beside `side`, which delays what it sends by 8 s.
    """

    serial = iter(range(1000))

    def __init__(self, rate, bridge=False, side_first=False, root_words="", **knobs):
        self.netns = f"dpk{os.getpid()}-{next(self.serial)}"
        self.rate, self.knobs, self.bridge, self.side_first = rate, knobs, bridge, side_first
        self.root_words = root_words

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.run(["ip", "netns", "add", self.netns])
            stack.callback(lib.run, ["ip", "netns", "del", self.netns], check=False)
            with lib.in_netns(self.netns), \
                 open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w", encoding="ascii") as file:
                file.write("1")
            self.out = self.tap(stack, "out")
            if self.bridge:
                self.inp = self.tap(stack, "in")
                self.side = self.tap(stack, "side")
                ports = ("side", "out") if self.side_first else ("out", "side")
                lib.run(["ip", "-batch", "-"], self.netns, stdin=f"""\
link add br0 mtu {MTU} type bridge mcast_snooping 0 stp_state 0
link set dev in master br0
link set dev {ports[0]} master br0
link set dev {ports[1]} master br0
link set dev br0 up
""")
                lib.tc("qdisc add dev side root netem delay 8s limit 100000", self.netns)
            lib.run(["tc", "-batch", "-"], self.netns, stdin=f"""\
qdisc add dev out {self.root_words} root handle 1: htb default 10
class add dev out parent 1: classid 1:10 htb rate {self.rate} ceil {self.rate} burst 1514 cburst 1514 quantum 1514
""")
            error, text = lib.tc_request(
                self.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                "1:10", "dualpi2", lib.pack(**self.knobs))
            expect_equal((error, text), (0, ""), "add of dualpi2")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def tap(self, stack, name):
        tap = frames.Tap(self.netns, name, MTU)
        stack.callback(tap.close)
        return tap

    def injector(self, name):
        """How frames come to the qdisc: "socket", "ring" or "bridge"."""
        if name == "bridge":
            return self.inp
        sender = {"socket": frames.Sender, "ring": frames.RingSender}[name](self.netns, "out")
        self.stack.callback(sender.close)
        return sender

    def stats(self):
        return lib.stats(self.netns, "out")

    def parent(self):
        return lib.stats(self.netns, "out", "1:")

    def check(self):
        """All is sent, and the counters agree."""
        st = self.stats()
        lib.check_identities(st)
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left in dualpi2")
        parent = self.parent()
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        expect_equal((parent["packets"], parent["bytes"]), (st["packets"], st["bytes"]),
                     "packets and bytes of htb, of dualpi2")
        return st


START = 3      # see Load.start()


# Every kind of frame.  build(number, ecn) makes one; ip: where its outermost IP header is, None:
# it has none that can be read; tags: in band; cut: too short for a receiver to take the tag out,
# so it cannot come over a bridge.
Kind = namedtuple("Kind", "name build ip tags cut")

KINDS = []


def kind(name, build, ip, tags=0, cut=False):
    KINDS.append(Kind(name, build, ip, tags, cut))


def with_ip(name, make, ethertype, ip=ETH_HLEN, **more):
    """A kind that is an IP packet right behind the Ethernet header."""
    kind(name, lambda number, ecn: ether(number, ethertype, make(ecn), ELSEWHERE), ip, **more)


def without_ip(name, ethertype, payload, **more):
    """A kind that nothing may touch, whatever its bytes look like."""
    kind(name, lambda number, ecn: ether(number, ethertype, payload(ecn), ELSEWHERE), None, **more)


def behind_tags(name, tag_list, ethertype, make, ip=True, cut=False):
    kind(name, lambda number, ecn: tagged(number, tag_list, ethertype, make(ecn), ELSEWHERE),
         ETH_HLEN + 4 * len(tag_list) if ip else None, len(tag_list), cut)


def extension(next_header, words=0, fill=0):
    """An IPv6 extension header of 8 * (words + 1) bytes."""
    return bytes([next_header, words]) + bytes([fill]) * (8 * (words + 1) - 2)


def fragment(next_header, offset, more):
    return struct.pack("!BBHI", next_header, 0, offset << 3 | more, 77)


def v6_with(chain, first, **more):
    """IPv6 with extension headers in front of UDP."""
    return lambda ecn: ipv6(chain + udp(b"y" * 8), ecn, proto=first, **more)


with_ip("ipv4", ipv4_ := lambda ecn: ipv4(ecn=ecn), ETH_P_IP)
with_ip("ipv6", ipv6_ := lambda ecn: ipv6(ecn=ecn), ETH_P_IPV6)
with_ip("ipv4 dscp 46", lambda ecn: ipv4(ecn=ecn, dscp=46), ETH_P_IP)
with_ip("ipv6 dscp 63 flow label", lambda ecn: ipv6(ecn=ecn, dscp=63, flow=0xFFFFF), ETH_P_IPV6)
with_ip("ipv4 of 20 bytes", lambda ecn: ipv4(b"", ecn), ETH_P_IP)
with_ip("ipv6 of 40 bytes", lambda ecn: ipv6(b"", ecn, proto=59), ETH_P_IPV6)
with_ip("ipv4 jumbo", lambda ecn: ipv4(udp(bytes(MTU - 28)), ecn), ETH_P_IP)
with_ip("ipv6 jumbo", lambda ecn: ipv6(udp(bytes(MTU - 48)), ecn), ETH_P_IPV6)
with_ip("ipv4 40 bytes of options", lambda ecn: ipv4(ecn=ecn, options=b"\x01" * 40), ETH_P_IP)
with_ip("ipv4 options beyond the end", lambda ecn: ipv4(b"", ecn, ihl=15), ETH_P_IP)
with_ip("ipv4 total length 0", lambda ecn: ipv4(ecn=ecn, total=0), ETH_P_IP)
with_ip("ipv4 total length 19", lambda ecn: ipv4(ecn=ecn, total=19), ETH_P_IP)
with_ip("ipv4 total length 65535", lambda ecn: ipv4(ecn=ecn, total=65535), ETH_P_IP)
with_ip("ipv4 bad checksum", lambda ecn: ipv4(ecn=ecn, check=0x1234), ETH_P_IP)
with_ip("ipv4 checksum 0 that is wrong", lambda ecn: ipv4(ecn=ecn, check=0), ETH_P_IP)
with_ip("ipv4 checksum ffff that is wrong", lambda ecn: ipv4(ecn=ecn, check=0xFFFF), ETH_P_IP)
with_ip("ipv4 first fragment", lambda ecn: ipv4(ecn=ecn, frag=0x2000, ident=7), ETH_P_IP)
with_ip("ipv4 middle fragment", lambda ecn: ipv4(ecn=ecn, frag=0x2010, ident=7), ETH_P_IP)
with_ip("ipv4 last fragment", lambda ecn: ipv4(ecn=ecn, frag=0x0020, ident=7), ETH_P_IP)
with_ip("ipv4 fragment beyond 64 KiB", lambda ecn: ipv4(ecn=ecn, frag=0x1FFF, ident=7), ETH_P_IP)
with_ip("ipv4 tcp", lambda ecn: ipv4(frames.tcp(b"z" * 9), ecn, proto=6), ETH_P_IP)
with_ip("ipv4 icmp", lambda ecn: ipv4(b"\x08" * 20, ecn, proto=1), ETH_P_IP)
with_ip("ipv4 esp", lambda ecn: ipv4(b"\x99" * 60, ecn, proto=50), ETH_P_IP)
with_ip("ipip, inside other codepoint", lambda ecn: ipv4(ipv4(ecn=ecn ^ 1), ecn, proto=4), ETH_P_IP)
with_ip("6in4, inside other codepoint", lambda ecn: ipv4(ipv6(ecn=ecn ^ 1), ecn, proto=41), ETH_P_IP)
with_ip("gre, inside ect1", lambda ecn: ipv4(b"\0\0\x08\0" + ipv4(ecn=ECT1), ecn, proto=47), ETH_P_IP)
with_ip("vxlan, inside ect1", lambda ecn: ipv4(
    udp(b"\x08" + bytes(7) + ether(9, ETH_P_IP, ipv4(ecn=ECT1)), dport=4789), ecn), ETH_P_IP)
with_ip("ip6ip6, inside other codepoint", lambda ecn: ipv6(ipv6(ecn=ecn ^ 1), ecn, proto=41), ETH_P_IPV6)
with_ip("ipv6 length 0", lambda ecn: ipv6(ecn=ecn, length=0), ETH_P_IPV6)
with_ip("ipv6 length 65535", lambda ecn: ipv6(ecn=ecn, length=65535), ETH_P_IPV6)
with_ip("ipv6 hop-by-hop", v6_with(extension(17), 0), ETH_P_IPV6)
with_ip("ipv6 routing", v6_with(extension(17, 2), 43), ETH_P_IPV6)
with_ip("ipv6 destination options", v6_with(extension(17, 3), 60), ETH_P_IPV6)
with_ip("ipv6 first fragment", v6_with(fragment(17, 0, 1), 44), ETH_P_IPV6)
with_ip("ipv6 last fragment", v6_with(fragment(17, 100, 0), 44), ETH_P_IPV6)
with_ip("ipv6 ah", v6_with(extension(17, 4), 51), ETH_P_IPV6)
with_ip("ipv6 esp", v6_with(b"\x77" * 40, 50), ETH_P_IPV6)
with_ip("ipv6 no next header", lambda ecn: ipv6(b"trailer", ecn, proto=59), ETH_P_IPV6)
with_ip("ipv6 chain of 100", v6_with(extension(60) * 99 + extension(17), 60), ETH_P_IPV6)
with_ip("ipv6 truncated chain", lambda ecn: ipv6(b"\x3c", ecn, proto=60, length=64), ETH_P_IPV6)
with_ip("ipv6 jumbogram", lambda ecn: ipv6(
    struct.pack("!BBBBI", 17, 0, 0xC2, 4, 70000) + udp(), ecn, proto=0, length=0), ETH_P_IPV6)

for text, packet, ethertype in (("ipv4", ipv4_, ETH_P_IP), ("ipv6", ipv6_, ETH_P_IPV6)):
    behind_tags(f"8021q {text}", [(ETH_P_8021Q, 0x2011)], ethertype, packet)
    behind_tags(f"8021q vid 0 {text}", [(ETH_P_8021Q, 0xE000)], ethertype, packet)
    behind_tags(f"8021ad {text}", [(ETH_P_8021AD, 0x0064)], ethertype, packet)
    # Inner VLAN 17, read as an IPv4 header at the wrong place, would be ECT(1).
    behind_tags(f"qinq {text}", [(ETH_P_8021AD, 0x0064), (ETH_P_8021Q, 0x0011)], ethertype, packet)
    behind_tags(f"two 8021q {text}", [(ETH_P_8021Q, 0x4501), (ETH_P_8021Q, 0x4501)], ethertype, packet)
    behind_tags(f"8 tags {text}", [(ETH_P_8021Q, 0x6011)] * 8, ethertype, packet)
    behind_tags(f"9 tags {text}", [(ETH_P_8021Q, 0x6011)] * 9, ethertype, packet)
    behind_tags(f"10 tags {text}", [(ETH_P_8021Q, 0x4501)] * 10, ethertype, packet)
behind_tags("40 tags", [(ETH_P_8021Q, 0x4501)] * 40, ETH_P_IP, ipv4_)
behind_tags("qinq arp", [(ETH_P_8021AD, 0x0064), (ETH_P_8021Q, 0x0011)], ETH_P_ARP,
            lambda ecn: b"\x45\x01" * 14, ip=False)
behind_tags("tag, ipv4 cut at 19", [(ETH_P_8021Q, 17)], ETH_P_IP, lambda ecn: ipv4(b"", ecn)[:19], ip=False)
behind_tags("tag, ipv6 cut at 39", [(ETH_P_8021Q, 17)], ETH_P_IPV6, lambda ecn: ipv6(b"", ecn)[:39], ip=False)
behind_tags("tag without payload", [(ETH_P_8021Q, 17)], ETH_P_IP, lambda ecn: b"", ip=False, cut=True)
behind_tags("qinq, ipv4 cut at 1", [(ETH_P_8021AD, 100), (ETH_P_8021Q, 17)], ETH_P_IP,
            lambda ecn: b"\x45", ip=False)
for length in range(4):
    without_ip(f"tag cut at {length}", ETH_P_8021Q, lambda ecn, n=length: b"\x45\x01\x08\x00"[:n], cut=True)

for text, proto, packet in (("ipv4", PPP_IP, ipv4_), ("ipv6", PPP_IPV6, ipv6_)):
    with_ip(f"pppoe {text}", lambda ecn, a=proto, b=packet: pppoe(a, b(ecn)), ETH_P_PPP_SES, ETH_HLEN + 8)
    for tag_list in ([(ETH_P_8021Q, 7)], [(ETH_P_8021AD, 100), (ETH_P_8021Q, 17)]):
        kind(f"{len(tag_list)} tags, pppoe {text}",
             lambda number, ecn, a=proto, b=packet, t=tag_list:
             tagged(number, t, ETH_P_PPP_SES, pppoe(a, b(ecn)), ELSEWHERE),
             ETH_HLEN + 4 * len(tag_list) + 8, len(tag_list))
LIKE_IP = b"\x45\x01\x00\x30" * 12
without_ip("pppoe discovery", ETH_P_PPP_DISC, lambda ecn: pppoe(PPP_IP, ipv4_(ecn), code=9, session=0))
without_ip("pppoe session, code not 0", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IP, ipv4_(ecn), code=1))
without_ip("pppoe version 2", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IP, ipv4_(ecn), version_type=0x12))
without_ip("pppoe lcp", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_LCP, LIKE_IP))
without_ip("pppoe compressed protocol", ETH_P_PPP_SES,
           lambda ecn: struct.pack("!BBHHB", 0x11, 0, 5, 50, 0x21) + ipv4_(ecn))
without_ip("pppoe ipv4 that is ipv6", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IP, ipv6_(ecn)))
without_ip("pppoe ipv6 that is ipv4", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IPV6, ipv4_(ecn)))
without_ip("pppoe, ipv4 cut at 19", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IP, ipv4(b"", ecn)[:19]))
without_ip("pppoe, ipv6 cut at 39", ETH_P_PPP_SES, lambda ecn: pppoe(PPP_IPV6, ipv6(b"", ecn)[:39]))
for length in (0, 1, 6, 7):
    without_ip(f"pppoe cut at {length}", ETH_P_PPP_SES, lambda ecn, n=length: pppoe(PPP_IP, b"")[:n])

for length in (0, 1, 8, 19):
    without_ip(f"ipv4 cut at {length}", ETH_P_IP, lambda ecn, n=length: ipv4(b"", ecn)[:n])
for length in (0, 1, 8, 39):
    without_ip(f"ipv6 cut at {length}", ETH_P_IPV6, lambda ecn, n=length: ipv6(b"", ecn)[:n])
for ihl in range(5):
    without_ip(f"ipv4 ihl {ihl}", ETH_P_IP, lambda ecn, n=ihl: ipv4(ecn=ecn, ihl=n))
for version in (0, 5, 6, 15):
    without_ip(f"ipv4 version {version}", ETH_P_IP, lambda ecn, n=version: ipv4(ecn=ecn, version=n))
for version in (0, 4, 5, 15):
    without_ip(f"ipv6 version {version}", ETH_P_IPV6, lambda ecn, n=version: ipv6(ecn=ecn, version=n))
without_ip("0800 with ipv6", ETH_P_IP, ipv6_)
without_ip("86dd with ipv4", ETH_P_IPV6, ipv4_)
without_ip("arp", ETH_P_ARP, lambda ecn: b"\0\1\x08\0\6\4\0\1" + b"\x45\x01" * 10)
without_ip("lldp", ETH_P_LLDP, lambda ecn: LIKE_IP)
without_ip("mpls over ipv4", ETH_P_MPLS, lambda ecn: b"\x45\x01\x21\x40" + ipv4_(ecn))
without_ip("10 mpls labels", ETH_P_MPLS, lambda ecn: b"\x45\x01\x20\x40" * 9 + b"\x45\x01\x21\x40" + ipv4_(ecn))
without_ip("macsec", 0x88E5, lambda ecn: LIKE_IP)
without_ip("eapol", 0x888E, lambda ecn: LIKE_IP)
without_ip("type 0", 0, lambda ecn: ipv4_(ecn))
without_ip("802.3 llc", 48, lambda ecn: b"\x42\x42\x03" + LIKE_IP[:45])
without_ip("802.3 snap ipv4", 56, lambda ecn: b"\xaa\xaa\x03\0\0\0\x08\0" + LIKE_IP)
without_ip("802.3 raw", 48, lambda ecn: b"\xff\xff" + LIKE_IP[:46])
without_ip("type 05ff", 0x05FF, lambda ecn: ipv4_(ecn))


def kinds_for(injector):
    """(name, build, where the IP header is or None) for those that can come this way."""
    for k in KINDS:
        if injector == "bridge" and k.cut:
            continue
        # The limit is 8 tags in the frame; over a bridge the outermost is beside it.
        in_band = k.tags - (injector == "bridge" and k.tags > 0)
        yield k.name, k.build, None if in_band > 8 else k.ip


class Load:
    """Frames that were sent, for judgement when they have come out."""

    def __init__(self, injector):
        self.injector = injector
        self.sent = {}

    def send(self, name, build, ip, ecn):
        number = len(self.sent) + 1
        frame = build(number, ecn)
        if isinstance(self.injector, frames.RingSender) and \
                len(frame) > frames.RingSender.ROOM:
            return
        self.sent[number] = (name, frame, ip, ecn)
        self.injector.send(frame)

    def fill(self, count, ecn, size):
        """IPv4 frames of one size and codepoint."""
        for _ in range(count):
            self.send("filler", lambda number, ecn: ether(
                number, ETH_P_IP, ipv4(udp(b"f" * (size - 42)), ecn), ELSEWHERE), ETH_HLEN, ecn)

    def start(self):
        """What a standing L4S queue begins with.  htb has tokens for the first, and at 0 tokens it
        lets one more go; the third finds nothing in the queue (floor of two packets).  None of
        them is marked, every one that follows can be.
        """
        self.fill(START, ECT1, 1514)

    def verdicts(self, got):
        """[(name, ecn, ip, "same", "marked" or "lost")]; damage and duplicates fail."""
        result = []
        wrong = []
        for number, (name, frame, ip, ecn) in self.sent.items():
            copies = got.get(number, [])
            if len(copies) > 1:
                wrong.append(f"{name}, codepoint {ecn}: came {len(copies)} times")
            verdict = judge(frame, copies[0], ip) if copies else "lost"
            if verdict not in ("same", "marked", "lost"):
                wrong.append(f"{name}, codepoint {ecn}: {verdict}")
            result.append((name, ecn, ip, verdict))
        stray = set(got) - set(self.sent)
        if stray:
            wrong.append(f"frames {sorted(stray)[:5]} came from nowhere")
        expect(not wrong, f"{len(wrong)} of {len(self.sent)} wrong: " + "; ".join(wrong[:10]))
        return result


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
        expect(not wrong, f"C, L, CE in C, CE in L, unparsed of {len(wrong)} kinds wrong: "
               + "; ".join(wrong[:10]))
        expect_alike(load.verdicts(rig.out.drain()), lambda ecn, ip: "same")
        rig.check()


@test("RFC 9331 5.1", "RFC 9332 2.5.1")
def kinds_from_a_packet_socket_classified_unchanged():
    classify("socket")


@test("RFC 9331 5.1")
def kinds_with_nonlinear_header_classified_unchanged():
    classify("ring")


@test("RFC 9331 5.1")
def kinds_over_a_bridge_classified_unchanged():
    classify("bridge")


# Marking: a standing queue in which every packet that may be marked is marked.

def mark_natively(injector):
    """ECT(0) goes to the L4S queue as well, so that both ways to CE are seen."""
    with Rig("100kbit", bridge=injector == "bridge", ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as rig:
        load = Load(rig.injector(injector))
        load.start()
        for name, build, ip in kinds_for(injector):
            for ecn in ECNS:
                load.send(name, build, ip, ecn)
        ring_unchanged(load)
        result = load.verdicts(rig.out.drain(4))
        expect_equal([verdict for *_, verdict in result[:START]], ["same"] * START, "the first ones")
        expect_alike(result[START:], lambda ecn, ip:
                     "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
        st = rig.check()
        expect_equal((st["l"]["marked_native"], st["mark_failed"]),
                     (sum(verdict == "marked" for *_, verdict in result), 0), "native marks, failed")


def ring_unchanged(load):
    """The sender's own pages must keep what it wrote there."""
    if isinstance(load.injector, frames.RingSender):
        split = 0
        for slot, (name, frame, ip, _) in enumerate(load.sent.values()):
            expect_equal(load.injector.content(slot, len(frame)), frame, f"the sender's pages, {name}")
            split += ip == ETH_HLEN and load.injector.ip_header_is_split(slot)
        lib.note(f"{split} IP headers lay in two pages")


@test("RFC 3168 5", "RFC 791")
def native_marks_from_a_packet_socket_byte_exact():
    mark_natively("socket")


@test("RFC 3168 5")
def native_marks_over_a_bridge_byte_exact():
    mark_natively("bridge")


@test("RFC 3168 5")
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
            expect_alike(result[START:], lambda ecn, ip:
                         "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
        expect_equal(rig.check()["mark_failed"], 0, "marks that failed")


def mark_by_probability(injector):
    """Both probabilities are 1 while the backlog is two packets or more."""
    with Rig("1mbit", bridge=injector == "bridge", **MARK_ALL) as rig:
        load = Load(rig.injector(injector))
        # p' rises at the second packet's departure, 12 ms after the first.
        load.fill(4, ECT0, 1514)
        fillers = len(load.sent)
        for name, build, ip in kinds_for(injector):
            for ecn in ECNS:
                load.send(name, build, ip, ecn)
        tested = len(load.sent)
        # The last to leave are Classic ones, and no signal is due below 3028 bytes.
        load.fill(6, ECT0, 1514)
        result = load.verdicts(rig.out.drain(4))[fillers:tested]
        # With p_C = 1 at most 64 drops come before one is forwarded, so some live.
        dropped = 0
        for at, (name, ecn, ip, verdict) in enumerate(result):
            if verdict == "lost" and (ecn == NOT_ECT or ip is None):
                result[at] = (name, ecn, ip, "same")
                dropped += 1
        expect(dropped > 0, "no Not-ECT packet was dropped")
        expect_alike(result, lambda ecn, ip:
                     "marked" if ip is not None and ecn in (ECT0, ECT1) else "same")
        st = rig.check()
        expect_equal((st["c"]["dropped_aqm"], st["drops"], st["mark_failed"]), (dropped, dropped, 0),
                     "dropped by AQM, drops, failed marks")
        # The very first packets may or may not be marked; they are ECT(0).
        coupled = sum(verdict == "marked" and ecn == ECT1 for _, ecn, _, verdict in result)
        expect_equal(st["l"]["marked_coupled"], coupled, "coupled marks in L")


@test("RFC 9332 2.5.1", "RFC 3168 5")
def classic_and_coupled_signals_from_a_packet_socket_byte_exact():
    mark_by_probability("socket")


@test("RFC 9332 2.5.1", "RFC 3168 5")
def classic_and_coupled_signals_over_a_bridge_byte_exact():
    mark_by_probability("bridge")


@test("RFC 1624")
def checksum_at_the_edges_recomputed_exactly():
    """IPv4 headers whose checksum comes out near 0 and near 0xffff, before or after the mark."""
    edges = [*range(0, 8), *range(0xFD, 0x106), *range(0x1FE, 0x203), *range(0x2FD, 0x303),
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

@test("C21")
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
        expect_equal((st["c"]["enqueued"], st["l"]["enqueued"], st["unparsed"]), (16, 16 + START, 0),
                     "C, L, unparsed")


@test("RFC 9331 5.1")
def vlan_device_tag_beside_the_frame_marked():
    """The tag that a VLAN device gives is not in the frame yet when the qdisc sees it."""
    with Rig("50kbit", **MARK_ALL_L) as rig:
        lib.run(["ip", "-batch", "-"], rig.netns, stdin="""\
link add link out name out.17 type vlan id 17
link set dev out.17 arp off up
""")
        sender = frames.Sender(rig.netns, "out.17")
        load = Load(sender)
        load.start()
        for ecn in ECNS * 8:
            for packet, ethertype in ((ipv4_, ETH_P_IP), (ipv6_, ETH_P_IPV6)):
                load.send(f"{ethertype:04x}", lambda number, ecn, p=packet, e=ethertype:
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


@test("clone isolation")
def bridge_flood_other_port_after_keeps_its_copies_unmarked():
    flood(side_first=False)


@test("clone isolation")
def bridge_flood_other_port_before_keeps_its_copies_unmarked():
    flood(side_first=True)


@test("clone isolation")
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


@test("C22")
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


@test("GSO", "R19")
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


@test("GSO")
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
    """A TCP header that claims to be shorter than any: segmentation refuses it. A filter of the parent
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
        expect_equal((st["gso_failed"], st["drops"], st["packets"]), (10, 10, 10),
                     "gso_failed, drops, packets")
        # htb counts the first ten as dropped by its class, and the last one once.
        expect_equal(rig.parent()["drops"], 10, "drops of htb")


if __name__ == "__main__":
    lib.main()
