#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
dualpi2 and UDP: classification, marks, coupling, overload, limits, counters, shaper.

Two namespaces with a veth pair.  dualpi2 is a child of htb on the sender's
device; tests of its own shaper have it as the root qdisc.  What arrives is
compared with what the counters say.
"""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import struct
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from lib.py import KsftSkipEx, KsftXfailEx, NetNS, cmd, defer, ip, ksft_run, ksft_exit  # noqa: E402
from lib.py import ksft_eq, ksft_ge, ksft_lt, ksft_pr  # noqa: E402

NOT_ECT, ECT1, ECT0, CE = range(4)
PORT = 5000
SIZE = 1000                     # bytes of a packet, with its Ethernet header
HEADERS = 14 + 20 + 8
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SLOW = os.environ.get("KSFT_MACHINE_SLOW") in ("yes", "1", "true")
# No update of the base probability during a test of a second or two.
NO_AQM = "tupdate 4000ms"


@contextlib.contextmanager
def inside(netns):
    """Run the body in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", encoding="ascii") as here, \
         open(f"/run/netns/{netns}", encoding="ascii") as there:
        if libc.setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(here.fileno(), 0)


class Net:
    """snd (10.0.0.1) - rcv (10.0.0.2), without any packet but those of the tests."""

    def __init__(self, snd, rcv):
        self.snd, self.rcv = snd, rcv
        self.sent = 0
        ip(f"link add eth0 netns {snd} address 02:00:00:00:00:01 type veth "
           f"peer name eth0 netns {rcv} address 02:00:00:00:00:02")
        for netns, mine, other in ((snd, 1, 2), (rcv, 2, 1)):
            cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1", ns=netns, fail=False)
            ip("link set dev eth0 up", ns=netns)
            ip(f"addr add 10.0.0.{mine}/24 dev eth0", ns=netns)
            ip(f"neigh add 10.0.0.{other} lladdr 02:00:00:00:00:0{other} nud permanent dev eth0", ns=netns)
        with inside(rcv):
            self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
            self.receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            self.receiver.bind(("10.0.0.2", PORT))
        with inside(snd):
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.raw.bind(("eth0", 0))
            self.senders = {}
            for tos in (*range(4), 45 << 2):
                sender = self.senders[tos] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
                sender.connect(("10.0.0.2", PORT))

    def dualpi2(self, options="", rate="1gbit"):
        """dualpi2 with these options, as a child of htb with this rate."""
        self._begin()
        cmd("tc qdisc add dev eth0 root handle 1: htb default 10", ns=self.snd)
        cmd(f"tc class add dev eth0 parent 1: classid 1:10 htb rate {rate} ceil {rate} "
            "burst 1514 cburst 1514 quantum 1514", ns=self.snd)
        cmd(f"tc qdisc add dev eth0 parent 1:10 handle 10: dualpi2 {options}", ns=self.snd)

    def dualpi2_alone(self, options):
        """dualpi2 as the root qdisc; skips the test if it does not have the options."""
        self._begin()
        done = cmd(f"tc qdisc add dev eth0 root handle 10: dualpi2 {options}", ns=self.snd, fail=False)
        if done.ret:
            raise KsftSkipEx(f"need dualpi2 and tc with: {options.split()[0]}")

    def _begin(self):
        defer(cmd, "tc qdisc del dev eth0 root", ns=self.snd, fail=False)
        self.sent = 0
        self.received()

    def send(self, count, tos, rate=None, size=SIZE):
        """Send packets, all at once or at a rate in bit/s."""
        self.send_streams([(tos, rate, count)], size=size)

    def send_streams(self, streams, size=SIZE):
        """Send several streams (tos, bit/s, packets) at the same time."""
        payload = bytes(size - HEADERS)
        due = sorted((number * size * 8 / rate if rate else 0, tos) for tos, rate, count in streams
                     for number in range(count))
        begun = time.monotonic()
        for at, tos in due:
            if (early := begun + at - time.monotonic()) > 0:
                time.sleep(early)
            self.senders[tos].send(payload)
        self.sent += len(due)

    def send_ipv6(self, count, ecn):
        """Send IPv6 packets from a packet socket; nobody receives them."""
        udp = struct.pack("!4H", PORT, PORT, 108, 0) + bytes(100)
        addresses = b"\xfd" + bytes(14) + b"\1\xfd" + bytes(14) + b"\2"
        frame = bytes.fromhex("020000000002 020000000001 86dd") + struct.pack("!IHBB", 6 << 28 | ecn << 20, 108, 17, 64)
        for _ in range(count):
            self.raw.send(frame + addresses + udp)
        self.sent += count

    def received(self):
        """The ECN field of all packets that have arrived since the last call."""
        found = []
        self.receiver.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                _, control, _, _ = self.receiver.recvmsg(2048, 64)
                found += [data[0] & 3 for level, kind, data in control
                          if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)]
        return found

    def stats(self):
        """What tc shows of dualpi2."""
        shown = json.loads(cmd("tc -s -j qdisc show dev eth0", ns=self.snd).stdout)
        return next(qdisc for qdisc in shown if qdisc["kind"] == "dualpi2")

    def drained(self, seconds=20):
        """The statistics when nothing is queued, after a check of the counters."""
        end = time.monotonic() + seconds
        while (st := self.stats())["qlen"] and time.monotonic() < end:
            time.sleep(0.05)
        ksft_eq(st["packets"] + st["drops"], self.sent, "sent by dualpi2 + dropped, offered")
        ksft_eq((st["qlen"], st["backlog"]), (0, 0), "packets and bytes queued at the end")
        ksft_eq(st["memory-used"], 0, "memory in use at the end")
        return st

    def queues_of(self, send, *args):
        """How many packets go to (Classic, L4S)."""
        before = self.stats()
        send(*args)
        after = self.drained()
        return tuple(after[key] - before[key] for key in ("pkts-in-c", "pkts-in-l"))


def timed(good, what):
    """A failure that a slow machine may cause is reported as XFAIL there."""
    if not good and SLOW:
        raise KsftXfailEx(what)
    ksft_eq(good, True, what)


# Classification

def classify_ipv4_by_ecn(net):
    """RFC 9331 5.1: ECT(1) and CE to the L4S queue."""
    net.dualpi2()
    ksft_eq([net.queues_of(net.send, 20, ecn) for ecn in (NOT_ECT, ECT1, ECT0, CE)],
            [(20, 0), (0, 20), (20, 0), (0, 20)])
    codes = net.received()
    ksft_eq(codes, sorted(codes, key=(NOT_ECT, ECT1, ECT0, CE).index), "order and codepoints of the received packets")
    ksft_eq([codes.count(ecn) for ecn in range(4)], [20] * 4, "received by codepoint")


def classify_ipv6_by_ecn(net):
    """The same for IPv6."""
    net.dualpi2()
    ksft_eq([net.queues_of(net.send_ipv6, 20, ecn) for ecn in (NOT_ECT, ECT1, ECT0, CE)],
            [(20, 0), (0, 20), (20, 0), (0, 20)])


def classify_by_ecn_mask(net):
    """The option ecn_mask: the codepoints that belong to the L4S queue."""
    net.dualpi2("any_ect")
    ksft_eq([net.queues_of(net.send, 20, ecn) for ecn in (NOT_ECT, ECT1, ECT0, CE)],
            [(20, 0), (0, 20), (0, 20), (0, 20)])


def classify_by_filter(net):
    """A filter decides before the codepoint: class 1 is the L4S queue."""
    net.dualpi2()
    done = cmd("tc filter add dev eth0 parent 10: protocol ip matchall classid 10:1", ns=net.snd, fail=False)
    if done.ret:
        raise KsftSkipEx("need CONFIG_NET_CLS_MATCHALL")
    ksft_eq(net.queues_of(net.send, 20, NOT_ECT), (0, 20))


def classify_by_dscp_of_nqb(net):
    """RFC 9956: Not-ECT with DSCP 45 to the L4S queue."""
    net.dualpi2_alone("nqb 45")
    ksft_eq(net.queues_of(net.send, 5, 45 << 2), (0, 5))


# Signals

def mark_l4s_above_the_step(net):
    """Packets that wait longer than step_thresh are marked, and no others."""
    net.dualpi2(f"{NO_AQM} step_thresh 1ms", rate="1mbit")
    net.send(20, ECT1)
    st = net.drained()
    codes = net.received()
    marked = codes.count(CE)
    ksft_eq(len(codes), 20, "received")
    ksft_eq(codes[0], ECT1, "the first packet, which waits for nothing")
    # htb may send the second at once.
    ksft_ge(marked, 17, "marked of 20")
    ksft_eq((st["ecn-mark"], st["step-mark"], st["drops"]), (marked, marked, 0), "ecn-mark, step-mark, drops")


def mark_no_classic_at_the_step(net):
    """The step is for the L4S queue: no mark, no drop in the Classic queue without a base probability."""
    net.dualpi2(f"{NO_AQM} step_thresh 1ms", rate="1mbit")
    for ecn in (NOT_ECT, ECT0):
        net.send(20, ecn)
    st = net.drained()
    ksft_eq(net.received(), [NOT_ECT] * 20 + [ECT0] * 20, "received")
    ksft_eq((st["ecn-mark"], st["drops"]), (0, 0), "marks, drops")


def drop_not_ect_in_l4s_at_most_by_square(net):
    """RFC 9332 2.5.1.1: Not-ECT in the L4S queue is dropped as a Classic sender expects, not at the step."""
    net.dualpi2(f"{NO_AQM} step_thresh 1ms", rate="1mbit")
    done = cmd("tc filter add dev eth0 parent 10: protocol ip matchall classid 10:1", ns=net.snd, fail=False)
    if done.ret:
        raise KsftSkipEx("need CONFIG_NET_CLS_MATCHALL")
    net.send(20, NOT_ECT)
    net.drained()
    ksft_ge(len(net.received()), 8, "received of 20")


def couple_l4s_marks_to_classic_drops(net):
    """RFC 9332 2.1: p_C = p'^2, p_CL = k * p'. So marks of L4S are k times the root of the drops of Classic."""
    net.dualpi2("coupling_factor 2 step_thresh 4000ms", rate="4mbit")
    # Classic alone offers more than the link has, and answers to nothing.
    net.send_streams([(NOT_ECT, 4.4e6, 1100), (ECT1, 0.2e6, 50)])
    net.received()
    before = net.stats()
    sent_before = net.sent
    net.send_streams([(NOT_ECT, 4.4e6, 5500), (ECT1, 0.2e6, 250)])
    st = net.drained()
    codes = net.received()
    dropped = (st["drops"] - before["drops"]) / (net.sent - sent_before - 250)
    marked = (st["ecn-mark"] - before["ecn-mark"]) / 250
    ksft_pr(f"dropped {dropped:.3f} of Classic, marked {marked:.3f} of L4S, square law {2 * dropped ** 0.5:.3f}")
    ksft_ge(codes.count(ECT1) + codes.count(CE), 249, "received L4S packets of 250")
    timed(0.05 <= dropped <= 0.25, f"dropped {dropped:.3f} of Classic at 115 % load")
    timed(0.7 <= marked / (2 * max(dropped, 1e-9) ** 0.5) <= 1.4, "marks of L4S by the square law")


def overload_drops_l4s_and_spares_classic(net):
    """RFC 9332 4.2.3: an unresponsive L4S flow beyond the rate is dropped, and does not starve Classic."""
    net.dualpi2(rate="4mbit")
    net.send_streams([(ECT1, 12e6, 6000), (NOT_ECT, 0.2e6, 100)])
    net.drained()
    codes = net.received()
    l4s, classic = codes.count(ECT1) + codes.count(CE), codes.count(NOT_ECT)
    ksft_pr(f"received {l4s} of 6000 L4S packets, {classic} of 100 Classic packets")
    ksft_lt(l4s, 5000, "L4S packets received of 6000 that are three times the rate")
    ksft_ge(classic, 10, "Classic packets received of 100")


# Limits and counters

def limit_bounds_the_backlog(net):
    """No more than limit packets are queued; every other one is counted as dropped."""
    net.dualpi2("limit 20", rate="80bit")
    for number in range(100):
        net.send(1, number % 4)
    st = net.stats()
    ksft_ge(20, st["qlen"], "queued, the limit is 20")
    ksft_ge(st["qlen"], 15, "queued, the limit is 20")
    ksft_eq(st["packets"] + st["drops"] + st["qlen"], 100, "sent + dropped + queued, offered")
    cmd("tc qdisc del dev eth0 parent 1:10", ns=net.snd)
    shown = json.loads(cmd("tc -s -j qdisc show dev eth0 root", ns=net.snd).stdout)
    ksft_eq([(q["qlen"], q["backlog"]) for q in shown if q["kind"] == "htb"], [(0, 0)], "htb after the deletion")


def count_every_packet(net):
    """Below the rate every packet is forwarded and counted, in packets and in bytes."""
    net.dualpi2()
    for number in range(400):
        net.send(1, number % 4)
    st = net.drained()
    ksft_eq((st["packets"], st["bytes"], st["drops"]), (400, 400 * SIZE, 0), "packets, bytes, drops")
    ksft_eq(len(net.received()), 400, "received")
    if "l4s" in st:
        counted = {f"{queue}.{key}": st[queue][f"arrived-{key}"] for queue in ("classic", "l4s")
                   for key in ("not-ect", "ect0", "ect1", "ce")}
        ksft_eq({key: value for key, value in counted.items() if value},
                {"classic.not-ect": 100, "classic.ect0": 100, "l4s.ect1": 100, "l4s.ce": 100}, "arrived")


# Shaper

def shape_to_bandwidth(net):
    """The option bandwidth: packets leave at this rate."""
    net.dualpi2_alone("bandwidth 4mbit limit 10000")
    net.send(10, NOT_ECT)
    net.drained()
    begun = time.monotonic()
    net.send_streams([(ECT0, 8e6, 3000)])
    seconds = time.monotonic() - begun
    arrived = len(net.received()) - 10
    rate = arrived * SIZE * 8 / seconds
    ksft_pr(f"{rate / 1e6:.2f} Mbit/s for {seconds:.1f} s")
    # Not one packet too early; a machine that is busy sends late.
    ksft_lt(rate, 4.1e6, "bit/s")
    timed(rate >= 3.8e6, f"{rate / 1e6:.2f} Mbit/s of 4")
    net.drained()


CASES = [value for name, value in list(globals().items())
         if name.startswith(("classify", "mark", "drop", "couple", "overload", "limit", "count", "shape"))]


def missing():
    """What this machine lacks, or None."""
    if os.geteuid():
        return "need root"
    for name in ("ip", "tc", "sysctl"):
        if not shutil.which(name):
            return f"need {name}"
    usage = cmd("tc qdisc add dev lo root dualpi2 help", fail=False)
    if "step_thresh" not in usage.stdout + usage.stderr:
        return "need a tc with dualpi2 (iproute2 6.18, or the plugin in TC_LIB_DIR)"
    with NetNS() as netns:
        ip("link set lo up", ns=netns)
        for kind, option in (("dualpi2", "DUALPI2"), ("htb", "HTB")):
            if cmd(f"tc qdisc replace dev lo root {kind}", ns=netns, fail=False).ret:
                return f"need CONFIG_NET_SCH_{option}"
    return None


def main():
    """Run the tests, or say what is missing."""
    if lacks := missing():
        print(f"TAP version 13\n1..0 # SKIP {lacks}")
        sys.exit(4)
    with NetNS() as snd, NetNS() as rcv:
        ksft_run(CASES, args=(Net(snd, rcv),))
    ksft_exit()


if __name__ == "__main__":
    main()
