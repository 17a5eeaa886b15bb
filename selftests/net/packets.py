# SPDX-License-Identifier: GPL-2.0-only
"""What the tests with packets share: a rig of TAP devices with dualpi2 on one of them, options with which it
marks all it may or nothing, every kind of frame, and frames that were sent, for judgement when they have come out.

    with Rig("50kbit", **MARK_ALL_L) as rig:
        load = Load(rig.injector("socket"))
        load.start()
        for name, build, ip in kinds_for("socket"):
            load.send(name, build, ip, ECT1)
        load.verdicts(rig.out.drain(4))     [(name, codepoint, ip, "same" | "marked" | "lost")]

One namespace: a TAP device `out` has the qdisc under htb and gives the frames as they leave, with every tag; frames
come to it from a packet socket, from a packet ring (header outside the linear part) or from the TAP device `in` over a
bridge (outermost tag outside the frame, packet shared with other ports).

Bed is a namespace with dummy devices, for tests that count packets and do not look at them.

This is not the place for tests, nor for GSO packets (gso.py) and tunnels (hostile.py).
"""

import contextlib
import os
import struct
import time
from collections import namedtuple

import frames
import lib
from frames import (ETH_HLEN, ETH_P_8021AD, ETH_P_8021Q, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, ETH_P_LLDP, ETH_P_MPLS,
                    ETH_P_PPP_DISC, ETH_P_PPP_SES, PPP_IP, PPP_IPV6, PPP_LCP, ether, ipv4, ipv6, judge, pppoe, tagged,
                    udp)
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_equal

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
            "beta": 2**31 - 1, "p_cmax": 100, "step_thresh_us": 4000000, "ramp_us": 0}

# The rig

class Rig:
    """Namespace, devices, htb and dualpi2.  With bridge=True `in` and `out` are ports of a bridge,
as is `side`, which delays what it sends by 8 s.
    """

    serial = iter(range(1000))

    def __init__(self, rate, bridge=False, side_first=False, root_words="", **knobs):
        self.netns = f"dpk{os.getpid()}-{next(self.serial)}"
        self.rate, self.knobs, self.bridge, self.side_first = rate, knobs, bridge, side_first
        self.root_words = root_words

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.quiet_netns(stack, self.netns)
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
            self.add()
            self.stack = stack.pop_all()
        return self

    def add(self):
        """Put the AQM below htb; others than dualpi2 have their own."""
        expect_equal(lib.tc_request(
            self.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:", "1:10", "dualpi2",
            lib.pack(**self.knobs)), (0, ""), "add of dualpi2")

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


class Bed:
    """A namespace with the dummy devices `out`, with dualpi2 under htb, and `side`."""

    serial = iter(range(1000))

    def __init__(self, rate="1gbit", **knobs):
        self.netns = f"dpm{os.getpid()}-{next(self.serial)}"
        self.rate, self.knobs = rate, knobs

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.quiet_netns(stack, self.netns)
            lib.run(["ip", "-batch", "-"], self.netns, stdin="""\
link add out type dummy
link add side type dummy
link set dev out up
link set dev side up
""")
            self.add()
            self.sender = frames.Sender(self.netns, "out")
            stack.callback(self.sender.close)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def add(self):
        lib.run(["tc", "-batch", "-"], self.netns, stdin=f"""\
qdisc add dev out root handle 1: htb default 10
class add dev out parent 1: classid 1:10 htb rate {self.rate} ceil {self.rate} burst 1514 cburst 1514 quantum 1514
""")
        expect_equal(lib.tc_request(self.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                    "1:10", "dualpi2", lib.pack(**self.knobs)), (0, ""), "add of dualpi2")

    def filter(self, args, protocol="all"):
        lib.tc(f"filter add dev out parent 10: protocol {protocol} prio 1 {args}", self.netns)

    def no_filter(self):
        lib.tc("filter del dev out parent 10:", self.netns, check=False)

    def send(self, ecns=ECNS, count=10, packet=ipv4):
        """`count` of each codepoint; returns how many."""
        for number in range(count):
            for ecn in ecns:
                self.sender.send(ether(number, 0x86DD if packet is ipv6 else 0x0800, packet(ecn=ecn)))
        return count * len(ecns)

    def stats(self):
        return lib.stats(self.netns, "out")

    def sent(self, dev):
        """Packets that a device got."""
        with lib.in_netns(self.netns), open("/proc/self/net/dev", encoding="ascii") as file:
            return next(int(line.split(":")[1].split()[9]) for line in file if line.lstrip().startswith(dev + ":"))

    def outcome(self, **how):
        """Send some, and what became of them: offered, C, L, filter_dropped, drops, on the device, aside."""
        def now():
            st = self.stats()
            return (st["c"]["enqueued"], st["l"]["enqueued"], st["filter_dropped"], st["drops"],
                    self.sent("out"), self.sent("side"))
        before = now()
        offered = self.send(**how)
        time.sleep(0.05)
        after = now()
        lib.check_identities(self.stats())
        parent = lib.stats(self.netns, "out", "1:")
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        return (offered, *(b - a for a, b in zip(before, after)))


START = 3      # see Load.start()


# Every kind of frame. build(number, ecn) makes one; ip: where its outermost IP header is, None: it has none that can be
# read; tags: in band; cut: too short for a receiver to take the tag out, so it cannot come over a bridge.
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


def extension(next_header, units=0, fill=0):
    """An IPv6 extension header of 8 * (units + 1) bytes."""
    return bytes([next_header, units]) + bytes([fill]) * (8 * (units + 1) - 2)


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
behind_tags("qinq, ipv4 cut at 1", [(ETH_P_8021AD, 100), (ETH_P_8021Q, 17)], ETH_P_IP, lambda ecn: b"\x45", ip=False)
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
        # The limit is 8 tags in the frame; over a bridge the outermost is outside of it.
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
        """What a standing L4S queue begins with. htb has tokens for the first, and at 0 tokens it lets one more go; the
        third finds nothing in the queue (floor of two packets). None of them is marked, every one that follows can be.
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
