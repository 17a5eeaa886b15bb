#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How exact a qdisc's own shaper is: its rate while packets wait, and its longest burst after idle time.

In user-mode Linux, whose clock stands still while it computes, a packet leaves within a microsecond of when the shaper
says, whatever the rate. Packets of random length are offered at 200 % and then at 120 % of the rate; after that the
qdisc is idle for a while, and gets a burst. scripts/bench.sh rate builds the module and starts the machine. It does not
judge AQMs: what these drop is only missing. Nor is a parent or a network card in it.

usage: rate.py [--ktap] [--packets N] [--rates R,R...] [--subjects NAME,...] --module MODULE.ko

Prints a table of Markdown, or KTAP for dualpi2 with the table as comments. Exit code 1 if dualpi2 is off by more than
MOST_PCT or has bursts.
"""

import argparse
import ctypes
import os
import random
import re
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

from cost import SO_SNDBUFFORCE, fail, run  # noqa: E402
from ktap import report  # noqa: E402

DEV = "rate0"
HERE, THERE, PORT = "192.0.2.1", "192.0.2.2", 9
ETH, IP_UDP, MTU = 14, 28, 1500
UDP_SEGMENT, SO_RCVBUFFORCE, SO_TIMESTAMPNS, PACKET_OUTGOING = 103, 33, 35, 4
PR_SET_TIMERSLACK = 29
RATES = ("100kbit", "1mbit", "4mbit", "40mbit", "200mbit", "1gbit", "10gbit")
# options for tc, which dualpi2 and cake have in common, and how long an IP packet is on such a link
FRAMINGS = {
    "": lambda ip: ip + ETH,
    "docsis": lambda ip: max(ip + 18, 64),
    "pppoe-llcsnap": lambda ip: -(-(ip + 40) // 48) * 53,
    "pppoe-ptm": lambda ip: ip + 30 + -(-(ip + 30) // 64),
}
GSO = ("none", "split", "whole")
SUBJECTS = {
    "dualpi2": {"split": "dualpi2", "whole": "dualpi2 no_split_gso"},
    "cake": {"split": "cake besteffort flows", "whole": "cake besteffort flows no-split-gso"},
}
OFFERED = (2.0, 1.2)  # first what fills the queue: at 10 Gbit/s an idle link costs as much as a timer is late
BURST = 50
LEAST_S = 0.02
# Aims. A timer of this machine is up to 0.8 us late: its clock goes in steps of 256 ns, and a timer takes 500 ns
# or more. Packets with which a shaper catches up leave early. It is also why 10 Gbit/s takes LEAST_S.
MOST_PCT, MOST_EARLY_NS = 0.1, 1000


def bytes_per_second(rate):
    """Of a rate as tc has it, "40mbit"."""
    number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit] / 8


def rate_error_pct(left, rate):
    """(error of the rate in per cent, per cent of the packets that it is of) of departures.

    left: [(ns, bytes on the link, ns of arrival)] in order; rate: bytes per second. Those count that waited until the
    packet before them was sent: a link without them is idle.
    """
    carried = took = busy = 0
    for (last_at, last_length, _), (at, _, arrived) in zip(left, left[1:], strict=False):
        if arrived <= last_at + last_length / rate * 1e9:
            busy += 1
            carried += last_length
            took += at - last_at
    return (carried / rate * 1e9 / took - 1) * 100 if took else None, 100 * busy / max(len(left) - 1, 1)


def burst(left, rate):
    """(the most that left in any time beyond the rate, in packets of the longest; ns that it is more than one packet).

    As rate_error_pct(). It is one packet if none leaves before the one ahead of it has been sent.
    """
    deepest = passed = 0
    floor = None
    for at, length, _ in left:
        # What has passed before this packet, less what the link could carry until then.
        before = passed - rate * (at - left[0][0]) / 1e9
        floor = before if floor is None else min(floor, before)
        passed += length
        deepest = max(deepest, before + length - floor)
    longest = max(length for _, length, _ in left)
    return deepest / longest, (deepest - longest) / rate * 1e9


class Offered:
    """Datagrams that are sent, each with its number in it, and when."""

    def __init__(self, gso, seed):
        self.chance = random.Random(seed)
        self.gso = gso
        self.ip_bytes = []  # of each datagram, by number
        self.sent_ns = []
        self.group = []     # number of the first one that was sent with it
        self.sockets = []
        for tos in (0, 1):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            sock.connect((THERE, PORT))
            self.sockets.append(sock)

    def payloads(self, longest=False):
        """What is sent next: one datagram, or several of one length and a shorter one at the end."""
        lengths = [MTU - IP_UDP if longest else self.chance.randint(22, MTU - IP_UDP)]
        if self.gso != "none":
            size = max(lengths[0], 200)
            lengths = [size] * self.chance.randint(2, 10)
            lengths[-1] = self.chance.randint(22, size)
        return lengths

    def send(self, lengths, now_ns):
        """Send them now, as one packet; the time is given, because reading the clock makes it go on."""
        first = len(self.ip_bytes)
        data = b"".join(struct.pack("!I", first + n) + bytes(length - 4) for n, length in enumerate(lengths))
        options = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", lengths[0]))] if len(lengths) > 1 else []
        for length in lengths:
            self.ip_bytes.append(length + IP_UDP)
            self.sent_ns.append(now_ns)
            self.group.append(first)
        self.chance.choice(self.sockets).sendmsg([data], options)

    def close(self):
        """Close the sockets."""
        for sock in self.sockets:
            sock.close()


class Tap:
    """Sees packets go to the device, behind the qdisc, and when."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.sock.bind((DEV, 0x0003))
        self.sock.setblocking(False)

    def seen(self):
        """[(ns, number of the first datagram in it, bytes of IP and Ethernet)] so far."""
        found = []
        while True:
            try:
                # MSG_TRUNC: the packet's own length comes back, not what there was room for.
                data, extra, _, address = self.sock.recvmsg(64, 64, socket.MSG_TRUNC)
            except BlockingIOError:
                return found
            if address[2] != PACKET_OUTGOING or data[12:14] != b"\x08\x00" or data[23] != socket.IPPROTO_UDP:
                continue
            seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
            total = struct.unpack("!H", data[16:18])[0]
            found.append((seconds * 10**9 + nanoseconds, struct.unpack("!I", data[42:46])[0], total))


def backlog():
    """Packets in the qdisc."""
    return int(re.search(r"backlog \S+ (\d+)p", run(f"tc -s qdisc show dev {DEV}"))[1])


def wait_until_empty(each_s):
    """Until nothing is left in the qdisc."""
    for _ in range(100000):
        if not backlog():
            return
        time.sleep(each_s)
    fail(f"the qdisc does not run empty: {' '.join(run(f'tc -s qdisc show dev {DEV}').split())}")


def departures(offered, seen, framing):
    """What was seen as [(ns, bytes on the link, ns of arrival)], each datagram with its own headers."""
    numbers = {}
    for n, first in enumerate(offered.group):
        numbers.setdefault(first, []).append(n)
    found = []
    for at, number, total in seen:
        inside = [number]
        if total > offered.ip_bytes[number]:
            inside = numbers[offered.group[number]]
            if total != sum(offered.ip_bytes[n] - IP_UDP for n in inside) + IP_UDP:
                fail(f"a packet of {total} bytes left, which is neither a datagram that was sent nor a whole group")
        found.append((at, sum(FRAMINGS[framing](offered.ip_bytes[n]) for n in inside), offered.sent_ns[number]))
    return found


def steady(offered, packets, framing, bytes_s):
    """Offer so many packets, or what takes LEAST_S at least, at 200 and 120 % of the rate."""
    packets = max(packets, int(LEAST_S * bytes_s / (MTU / 2)))
    due_ns = time.time_ns() + 1e6
    for factor in OFFERED:
        until = len(offered.ip_bytes) + packets // len(OFFERED)
        while len(offered.ip_bytes) < until:
            lengths = offered.payloads()
            now_ns = time.time_ns()
            if due_ns > now_ns:
                time.sleep((due_ns - now_ns) / 1e9)
            offered.send(lengths, max(due_ns, now_ns))
            due_ns += sum(FRAMINGS[framing](n + IP_UDP) for n in lengths) / (bytes_s * factor) * 1e9


def measure(subject, rate, framing, gso, packets, seed=1):
    """Figures of one shaper: error_pct, waited_pct, burst, packets."""
    options = SUBJECTS[subject]["whole" if gso == "whole" else "split"]
    run(f"tc qdisc add dev {DEV} root handle 1: {options} bandwidth {rate} {framing}")
    bytes_s = bytes_per_second(rate)
    offered, tap = Offered(gso, seed), Tap()
    steady(offered, packets, framing, bytes_s)
    wait_until_empty(20 * MTU / bytes_s)
    left = departures(offered, tap.seen(), framing)
    time.sleep(1)
    now_ns, first = time.time_ns(), len(offered.ip_bytes)
    for _ in range(BURST):
        offered.send(offered.payloads(longest=True), now_ns)
    # Nobody does anything meanwhile that could hold up a timer.
    time.sleep(sum(map(FRAMINGS[framing], offered.ip_bytes[first:])) / bytes_s * 1.1 + 0.01)
    wait_until_empty(20 * MTU / bytes_s)
    after_idle = departures(offered, tap.seen(), framing)
    offered.close()
    tap.sock.close()
    run(f"tc qdisc del dev {DEV} root")
    if min(len(left), len(after_idle)) < 2:
        fail(f"of {len(offered.ip_bytes)} packets {len(left) + len(after_idle)} left {subject} at {rate}")
    error, waited = rate_error_pct(left, bytes_s)
    packets, early = burst(after_idle, bytes_s)
    return {"error_pct": error, "waited_pct": waited, "burst": packets, "early_ns": early, "packets": len(left)}


def good(figures):
    """Whether a shaper is exact and knows no bursts; half of the packets at least must have had to wait."""
    return (figures["waited_pct"] >= 50 and abs(figures["error_pct"]) <= MOST_PCT
            and figures["early_ns"] <= MOST_EARLY_NS)


def row(figures):
    """Cells of the table."""
    error = "–" if figures["error_pct"] is None else f"{figures['error_pct']:+.5f}"
    return [error, f"{figures['burst']:.4f}", f"{figures['packets']} ({figures['waited_pct']:.0f} %)"]


def table(found, subjects):
    """Lines of Markdown of {(framing, gso, rate): {subject: figures}}."""
    head = ["link layer", "GSO", "rate"]
    for name in subjects:
        head += [f"{name}: error %", "burst", "packets (waited)"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (framing, gso, rate), by_subject in found.items():
        cells = [framing or "raw", gso, rate]
        for name in subjects:
            cells += row(by_subject[name])
        lines.append("| " + " | ".join(cells) + " |")
    for name in subjects:
        figures = [by[name] for by in found.values()]
        worst = max((abs(f["error_pct"]) for f in figures if f["error_pct"] is not None), default=None)
        if worst is not None:
            early = max(f["early_ns"] for f in figures)
            lines += ["", f"{name}: worst error {worst:.5f} %, longest burst one packet and {early:.0f} ns, "
                          f"{len(figures)} runs"]
    return lines


def chosen(text, known, what):
    """The names of a list in an argument."""
    names = text.split(",") if text else list(known)
    for name in names:
        if name not in known:
            fail(f"no {what} '{name}'; there are {', '.join(known)}")
    return names


def prepare(module):
    """The module and a device that takes all at once."""
    if os.environ.get("DUALPI2_VM") != "uml":
        fail("times are exact only in user-mode Linux; start this by scripts/bench.sh rate")
    if ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0):
        fail("cannot set the timer slack")
    if module:
        run(f"insmod {module}")
    run(f"ip link add {DEV} type dummy")
    run(f"ip link set {DEV} mtu {MTU} up")
    run(f"ip addr add {HERE}/24 dev {DEV}")
    run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ktap", action="store_true")
    parser.add_argument("--packets", type=int, default=2000)
    parser.add_argument("--rates")
    parser.add_argument("--framings", help="of raw,docsis,pppoe-llcsnap,pppoe-ptm")
    parser.add_argument("--gso", help="of none,split,whole")
    parser.add_argument("--subjects")
    parser.add_argument("--module")
    args = parser.parse_args()
    rates, subjects = chosen(args.rates, RATES, "rate"), chosen(args.subjects, SUBJECTS, "subject")
    framings = ["" if f == "raw" else f for f in chosen(args.framings, [f or "raw" for f in FRAMINGS], "link layer")]
    gsos = chosen(args.gso, GSO, "kind of GSO")
    prepare(args.module if "dualpi2" in subjects else None)
    found = {}
    for framing in framings:
        for gso in gsos:
            for rate in rates:
                found[framing, gso, rate] = {s: measure(s, rate, framing, gso, args.packets) for s in subjects}
    lines = table(found, subjects)
    judged = {key: by["dualpi2"] for key, by in found.items() if "dualpi2" in by}
    return report([(f"shaper_is_exact_and_has_no_burst {framing or 'raw'} gso-{gso} {rate}", good(figures))
                   for (framing, gso, rate), figures in judged.items()], lines, args.ktap)


if __name__ == "__main__":
    sys.exit(main())
