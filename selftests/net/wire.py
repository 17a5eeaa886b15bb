# SPDX-License-Identifier: GPL-2.0-only
"""A veth with a dualpi2 on one end, and on the other end the time at which each frame arrives."""
import contextlib
import itertools
import os
import time

import frames
import hostile
import lib
from lib import ATM, PTM, NOT_ECT, Failure, expect, expect_equal, note, pack
from parents import CALM

MS, SEC = 1000000, 1000000000
ROOMY = {"limit": 100000, "memory_limit": 2**31}
EXACT = lib.user_mode_linux()
# A timer of user-mode Linux runs at the next multiple of 1024 ns; else, what sending a packet may cost.
COST_NS = 1024 if EXACT else 500000


def bits(rate):
    """Bits per second in the unit of the option."""
    return int(rate) // 8


class Wire:
    """Two namespaces and a veth from w0, which has the dualpi2, to w1, where each frame is stamped.

    send(frame), .udp(size, ecn, dscp) -> a frame whose IP packet has so many bytes; .gso(...) sends TCP segments in
    one; .arrivals() -> [(ns, number, bytes of the frame)] since the last call. Its end checks the identities of the
    counters.
    """

    serial = itertools.count()
    addresses = """\
addr add 10.7.0.1/24 dev w0
neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 nud permanent dev w0
"""

    def __init__(self, mtu=1500, parent="root", lines="", calm=True, **knobs):
        tag = f"dpl{os.getpid()}-{next(self.serial)}"
        self.netns, self.far = tag + "a", tag + "b"
        self.mtu, self.parent, self.lines = mtu, parent, lines
        self.knobs = (CALM | ROOMY if calm else {}) | knobs
        self.numbers = itertools.count(1)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.connect(stack)
            self.add()
            time.sleep(0.1)
            self.arrivals()
            self.stack = stack.pop_all()
        return self

    def connect(self, stack):
        """The namespaces, the veth, the parents and the sockets."""
        lib.quiet_netns(stack, self.netns)
        lib.quiet_netns(stack, self.far)
        lib.run(["ip", "link", "add", "w0", "netns", self.netns, "mtu", str(self.mtu),
                 "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "w1", "netns", self.far,
                 "mtu", str(self.mtu), "address", "02:00:00:00:00:02"])
        lib.run("ip link set dev w1 promisc on up", self.far)
        lib.run(["ip", "-batch", "-"], self.netns, stdin="link set dev w0 up\n" + self.addresses)
        if self.lines:
            lib.run(["tc", "-batch", "-"], self.netns, stdin=self.lines)
        self.stamped = frames.Stamped(self.far, "w1")
        stack.callback(self.stamped.close)
        self.sender = frames.Sender(self.netns, "w0")
        stack.callback(self.sender.close)
        self.vnet = hostile.VnetSocket(self.netns, "w0")
        stack.callback(self.vnet.close)

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self.there():
                self.drained()
        finally:
            self.stack.__exit__(kind, error, trace)

    def there(self):
        return any(q["handle"] == "10:" for q in lib.qdisc_dump(self.netns, "w0"))

    def add(self, flags=lib.NLM_F_CREATE | lib.NLM_F_REPLACE, **knobs):
        number, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, flags, "w0", "10:", self.parent, "dualpi2",
                                      pack(**self.knobs | knobs))
        if number:
            raise Failure(f"add of dualpi2 {self.knobs | knobs}: {os.strerror(number)}: {text}")

    def request(self, options):
        return lib.tc_request(self.netns, lib.RTM_NEWQDISC, 0, "w0", "10:", self.parent, "dualpi2", options)

    def change(self, **knobs):
        expect_equal(self.request(pack(**knobs)), (0, ""), f"change {knobs}")

    def stats(self):
        return lib.stats(self.netns, "w0")

    def options(self):
        """As the kernel shows them, byte by byte."""
        return next(q["options"] for q in lib.qdisc_dump(self.netns, "w0") if q["handle"] == "10:")

    def udp(self, size=1000, ecn=NOT_ECT, dscp=0, v6=False):
        number = next(self.numbers)
        if v6:
            return frames.ether(number, frames.ETH_P_IPV6, frames.ipv6(frames.udp(bytes(size - 48)), ecn, dscp))
        return frames.ether(number, frames.ETH_P_IP, frames.ipv4(frames.udp(bytes(size - 28)), ecn, dscp))

    def send(self, *some):
        for frame in some:
            expect(self.sender.send(frame), "the qdisc refused a packet")

    def offer(self, *some):
        """Packets of which some may be dropped; how many were taken."""
        return sum(self.sender.send(frame) for frame in some)

    def gso(self, payload, part, ecn=NOT_ECT, dscp=0, v6=False, sport=9, **ipv4):
        """TCP segments with so much payload each, as one packet; ipv4: other fields of frames.ipv4()."""
        number = next(self.numbers)
        segment = frames.tcp(bytes(payload), sport=sport)
        packet = hostile.with_partial(frames.ipv6(segment, ecn, dscp, proto=6) if v6 else
                                      frames.ipv4(segment, ecn, dscp, proto=6, **ipv4))
        l4 = frames.ETH_HLEN + (40 if v6 else 20)
        frame = frames.ether(number, frames.ETH_P_IPV6 if v6 else frames.ETH_P_IP, packet)
        head = hostile.vnet(gso_type=4 if v6 else 1, gso_size=part, header=l4 + 20, csum_start=l4, csum_offset=16)
        return self.vnet.send(frame, head)

    def arrivals(self):
        return [(ns, number, len(frame)) for ns, number, frame in self.stamped.read()]

    def idle(self, seconds=60):
        """Wait until nothing is queued."""
        for _ in range(int(seconds / 0.02)):
            st = self.stats()
            if not st["qlen"]:
                return st
            time.sleep(0.02)
        raise Failure(f"{self.stats()['qlen']} packets are queued after {seconds} s")

    def drained(self):
        st = self.idle()
        lib.check_identities(st | {"was_reset": self.was_reset})
        # sfb cannot show its own class, and the dump ends there.
        if "sfb" not in self.lines:
            lib.check_classes(self.netns, "w0", "10:")
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")
        return st

    was_reset = False


def wire_bytes(framing, ip, overhead=0, mpu=0):
    """Bytes that an IP packet takes on the link, counted cell by cell."""
    length = max(ip + overhead, mpu, 1)
    if framing == ATM:
        return len(range(0, length, 48)) * 53
    if framing == PTM:
        return length + len(range(0, length, 64))
    return length


def expect_schedule(times, lengths, rate, what=""):
    """Each packet left when those before it had left a link of so many bytes per second."""
    expect_equal(len(times), len(lengths), f"{what}: packets that left")
    sent = worst = 0
    for now, length in zip(times, lengths):
        want = sent * SEC / rate
        worst = max(worst, abs(now - times[0] - want), key=abs)
        expect(abs(now - times[0] - want) <= COST_NS + 1e-6 * want,
               f"{what}: after {sent} bytes: {now - times[0]} ns, not {want:.0f}")
        sent += length
    note(f"{what}: {len(times)} packets, {sent} bytes at {rate} bytes/s, at most {worst:.0f} ns off")


def stamps(arrivals):
    return [ns for ns, _, _ in arrivals]
