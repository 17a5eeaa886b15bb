#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock,ect1
"""
test_prague.py - TCP Prague: how it answers marks, losses and idle times, bad input, the module.
"""

import contextlib
import math
import os
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import lib
from lib import ECT1, expect, expect_between, expect_equal, in_netns, note, run, tc, test
from lib_prague import (PACKET_BITS, PARAMETERS, has_accecn, load, loaded, Bench, pump, rates, only, on_accecn, each,
                        prepare)

# How it answers

@on_accecn
def prague_beside_cubic_keeps_l_short_and_loses_nothing():
    with Bench(rtt_ms=10) as net:
        net.limit(20, "dualpi2")
        prague, cubic = net.flow(), net.flow(cc="cubic")
        pump(5, prague, cubic)
        before = lib.stats(net.rtr, "down", "10:")
        l4s, classic = rates(10, prague, cubic)
        after = lib.stats(net.rtr, "down", "10:")
        delay = after["l"]["delay"]["sum_ns"] - before["l"]["delay"]["sum_ns"]
        sent = after["l"]["sent"] - before["l"]["sent"]
        note(f"Prague {l4s:.2f}, CUBIC {classic:.2f} Mbit/s; L {delay / sent / 1e6:.3f} ms")
        expect_between(l4s / classic, 0.5, 2, "rate of Prague's, of CUBIC's")
        expect_between(l4s + classic, 19, 20, "Mbit/s of both")
        expect(delay / sent < 1e6, f"mean delay in L is {delay / sent / 1e6} ms")
        expect_equal([after["l"][k] for k in after["l"] if k.startswith("dropped")], [0] * 6, "drops in L")


@on_accecn
def prague_flows_of_1_and_20_ms_share_alike():
    with Bench(rtt_ms=0) as net:
        # By destination: 10.2.0.1 and 10.2.0.3.
        run("ip addr add 10.2.0.3/24 dev eth0", net.rcv)
        run("ip neigh add 10.2.0.3 lladdr 02:00:00:00:02:01 nud permanent dev down", net.rtr)
        tc("qdisc add dev eth0 root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", net.rcv)
        tc("qdisc add dev eth0 parent 1:1 netem limit 100000 delay 1ms", net.rcv)
        tc("qdisc add dev eth0 parent 1:2 netem limit 100000 delay 20ms", net.rcv)
        tc("filter add dev eth0 parent 1: protocol ip u32 match ip src 10.2.0.3/32 flowid 1:2", net.rcv)
        # At lower rates the marks of so short a queue fall on the two unequally, each of which goes by its own.
        net.limit(30, "dualpi2")
        short, long = net.flow(), net.flow(dst="10.2.0.3")
        # Until both have left slow start and share.
        pump(12, short, long)
        got = rates(15, short, long)
        note(f"1 ms: {got[0]:.2f}, 20 ms: {got[1]:.2f} Mbit/s")
        # By RTT it would be 20. In 15 s each is marked some 1150 times, and one of them by chance more often.
        expect_between(got[0] / got[1], 1 / 1.5, 1.5, "rate at 1 ms, of that at 20 ms")


# 100 Mbit/s take the kernel with sanitizers too long.
@each({str(p).replace(".", "_"): p
       for p in (*((1, 2.4) if os.environ.get("DUALPI2_KERNEL") != "debug" else ()), 9.1, 20, 50)})
def prague_marked_at_CASE_percent_has_its_rate(percent):
    """That of the curve in the head of prague.h, within 10 %, at round trips of 5 and 20 ms; p as it came out."""
    found = []
    for rtt_ms in (5, 20):
        with Bench(rtt_ms=rtt_ms) as net:
            net.link(f"root netem limit 100000 loss {percent}% ecn")
            flow = net.flow()
            # From slow start's end by a packet per 25 ms each 25 ms, and some hundred decreases.
            pump(15 if percent < 5 else 8, flow)
            before = flow.info()
            got = rates(120 if percent == 50 else 30 if percent < 5 else 20, flow)[0]
            after = flow.info()
            p = (after["ce"] - before["ce"]) / (after["delivered"] - before["delivered"])
            want = (1 - p + math.sqrt((1 - p) ** 2 + 2 * (1 - p))) / p * PACKET_BITS / 25e3
            expect_between(100 * p, percent * 0.85, percent * 1.15, "% that came marked")
            note(f"{rtt_ms} ms: {got:.2f} Mbit/s, {got / want:.3f} of {want:.2f} at p = {100 * p:.2f} %")
            found.append(got / want)
    # With two packets in 25 ms, what one ACK more or less says is much: see docs/PRAGUE.md.
    for part in found:
        expect_between(part, *((0.9, 1.1) if percent < 50 else (0.85, 1.25)), "rate, of the reference curve")


@on_accecn
def prague_timeout_while_marks_are_answered_halves_the_window():
    """The stack makes no second decrease then, and a mark's is not enough."""
    with Bench(rtt_ms=20) as net:
        net.limit(20, "dualpi2")
        # A delayed ACK, the last one, would be a longer RTT, and the window follows that to keep the rate.
        run("ip route replace 10.1.0.1/32 via 10.2.0.2 dev eth0 quickack 1", net.rcv)
        flow = net.flow()
        pump(5, flow)
        # Marks go on until the moment of the loss, and are being answered in most of these.
        for _ in range(6):
            net.nft('table inet hole {\nchain c { type filter hook forward priority 0; iifname "up" drop\n}\n}')
            # The last ACKs change the window, in 20 ms. The timeout comes after 220 ms.
            pump(0.1, flow)
            before = flow.info()
            pump(0.9, flow)
            info = flow.info()
            note(f"cwnd {before['cwnd']}, then {info['cwnd']}, ssthresh {info['ssthresh']}")
            run("nft delete table inet hole", net.rtr)
            expect(info["cwnd"] < 5, f"it timed out: cwnd is {info['cwnd']}")
            # Half the window, rounded up, and one packet.
            expect(info["ssthresh"] <= before["cwnd"] / 2 + 2,
                   f"ssthresh is {info['ssthresh']}, cwnd was {before['cwnd']}")
            pump(5.003, flow)
        expect(rates(2, flow)[0] > 10, "it goes on")


@each({"fq": True, "tcp": False})
def prague_initial_window_is_paced_by_CASE(fq):
    """A burst of ten packets would be marked at 40 Mbit/s, 0.3 ms each, and the first mark ends slow start."""
    with Bench(rtt_ms=100) as net:
        if not fq:
            tc("qdisc del dev eth0 root", net.snd)
        net.limit(40, "dualpi2")
        flow = net.flow()
        pump(0.35, flow)
        info = flow.info()
        note(info)
        expect_equal(info["ce"], 0, "marks in three round trips")
        # 10 packets, and twice as many after each of two round trips.
        expect(info["cwnd"] >= 40, f"cwnd is {info['cwnd']} after three round trips")


@on_accecn
def prague_after_an_idle_time_begins_anew():
    with Bench(rtt_ms=30) as net:
        net.limit(20, "dualpi2")
        flow = net.flow()
        pump(4, flow)
        expect(flow.info()["cwnd"] > 30, f"cwnd is {flow.info()['cwnd']}")
        pump(3, flow, sending=False)
        flow.write()
        expect(flow.info()["cwnd"] <= 10, f"cwnd is {flow.info()['cwnd']} after 3 s of silence")
        pump(1, flow)
        expect(flow.info()["cwnd"] > 30, f"cwnd is {flow.info()['cwnd']} a second later")


@on_accecn
def prague_on_a_fast_path_sends_large_bursts():
    """250 us at some Gbit/s are many packets, and TSO sends them as one, whichever side began."""
    with Bench(rtt_ms=5, offloads=True) as net:
        flow = net.flow()
        pump(0.5, flow)
        info = flow.info()
        packets = sum(net.sent()) - 3
        note(f"{info['delivered'] / packets:.1f} segments in a packet, {info['pacing'] * 8 / 1e9:.2f} Gbit/s")
        want = min(info["pacing"] / 4096 / 1448, 40)
        expect(want > 6, f"pacing is fast enough to tell: {want:.1f} packets in 250 us")
        expect(info["delivered"] / packets > want / 3, f"{packets} packets for {info['delivered']} segments")


@on_accecn
def prague_bursts_are_short_where_the_device_takes_large_ones():
    """What the sender hands over at once, at 20 Mbit/s with TSO: a packet, not 44, even where the RTT is next to 0."""
    with Bench(rtt_ms=0, offloads=True) as net:
        net.limit(20, "dualpi2")
        flow = net.flow()
        pump(3, flow)
        with in_netns(net.rtr):
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
            sniffer.bind(("up", 0x800))
        sizes = []

        def see():
            data = sniffer.recv(1 << 17)
            if data[26:30] == bytes((10, 1, 0, 1)):
                sizes.append(len(data))
        with sniffer:
            pump(1, flow, others={sniffer.fileno(): see})
            expect(len(sizes) > 500, f"{len(sizes)} packets were seen")
            expect(max(sizes) <= 1514, f"the largest has {max(sizes)} bytes")
            flow.choose("cubic")
            pump(1, flow, others={sniffer.fileno(): see})
            expect(max(sizes) > 5000, f"CUBIC's, after Prague, has {max(sizes)} bytes")


# Bad input

@each({"every_packet_marked": "ip ecn set ce", "marks_wiped_out": "ip ecn ce ip ecn set ect1"})
def prague_CASE_lives(rule):
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        with in_netns(net.rcv):
            run("nft -f -", stdin="table netdev bad { chain c { type filter hook ingress device eth0 priority 0; "
                f"{rule}\n}}\n}}")
        pump(3, flow)
        got = rates(5, flow)[0]
        note(f"{got:.3f} Mbit/s, {flow.info()}")
        # The least rate is 0.1 Mbit/s, and no more than the link has.
        expect_between(got, 0.05, 10, "Mbit/s")
        expect_equal(flow.chosen(), "prague", "congestion control")
        if rule == "ip ecn set ce":
            expect(got < 0.5, f"all are marked, and it sends {got:.3f} Mbit/s")


class Mangler:
    """Takes what comes back from rcv out of the kernel's hands in rtr, changes it, and sends it on to snd."""

    def __init__(self, net, change):
        self.change, self.number = change, 0
        net.nft('table inet mangle { chain c { type filter hook prerouting priority -600; iifname "down" drop\n}\n}')
        with in_netns(net.rtr):
            self.down, self.up = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
                                  for _ in range(2))
            self.down.bind(("down", 0x800))
            self.up.bind(("up", 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down.close()
        self.up.close()

    def serve(self):
        """One packet, of those that come back."""
        data = bytearray(self.down.recv(1 << 16))
        if data[26:30] != bytes((10, 2, 0, 1)) or data[23] != 6:
            return
        tcp = 14 + 4 * (data[14] & 15)
        if not data[tcp + 13] & 2:
            self.number += 1
            self.change(data, tcp, self.number)
        data[0:12] = bytes((2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2))
        end = 14 + struct.unpack_from(">H", data, 16)[0]
        data[tcp + 16:tcp + 18] = b"\0\0"
        total = sum(struct.unpack(f">{(end - 26 + 1) // 2}H", bytes(data[26:end]) + b"\0" * (end % 2)))
        total += 6 + end - tcp
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        struct.pack_into(">H", data, tcp + 16, total ^ 0xffff)
        self.up.send(data[:end])


def set_ace(data, tcp, ace):
    """The ACE field: AE, CWR, ECE."""
    data[tcp + 12] = data[tcp + 12] & ~1 | ace >> 2
    data[tcp + 13] = data[tcp + 13] & ~0xc0 | (ace & 3) << 6


def without_option(data, tcp):
    """Accurate ECN's options (172, 174) become no operation."""
    at, end = tcp + 20, tcp + 4 * (data[tcp + 12] >> 4)
    while at < end and data[at]:
        if data[at] == 1:
            at += 1
            continue
        size = data[at + 1]
        if data[at] in (172, 174):
            data[at:at + size] = b"\1" * size
        at += size


def jump(data, tcp, number):
    """ACE goes round and round."""
    set_ace(data, tcp, number * 3 & 7)
    without_option(data, tcp)


def dumb(data, tcp, _):
    """As if nothing was ever marked: 5, where ACE begins."""
    set_ace(data, tcp, 5)
    without_option(data, tcp)


def zero(data, tcp, _):
    """What no receiver with Accurate ECN sends at the begin, and later as any other number."""
    set_ace(data, tcp, 0)
    without_option(data, tcp)


def liar(data, tcp, number):
    """Options with random counters."""
    at, end = tcp + 20, tcp + 4 * (data[tcp + 12] >> 4)
    while at < end and data[at]:
        if data[at] == 1:
            at += 1
            continue
        size = data[at + 1]
        if data[at] in (172, 174):
            data[at + 2:at + size] = bytes((number * 37 + n * 101) & 0xff for n in range(size - 2))
        at += size
    set_ace(data, tcp, number * 5 & 7)


@each({f.__name__: f for f in (jump, dumb, zero, liar)})
def prague_feedback_CASE_breaks_nothing(change):
    """Whatever the peer says of marks: it sends, not faster than the path, and answers loss."""
    with Bench() as net:
        net.limit(10, "dualpi2 limit 100")
        flow = net.flow()
        with Mangler(net, change) as mangler:
            others = {mangler.down.fileno(): mangler.serve}
            pump(3, flow, others=others)
            before = flow.info()
            pump(3, flow, others=others)
            after = flow.info()
        got = (after["delivered"] - before["delivered"]) * PACKET_BITS / 3e6
        note(f"{got:.3f} Mbit/s, {after}, {mangler.number} changed")
        expect(mangler.number > 10, f"{mangler.number} packets were changed")
        expect_equal(flow.chosen(), "prague", "congestion control")
        expect_between(got, 0.05, 10, "Mbit/s")
        # The queue has 100 packets, the link 8.
        expect(2 <= after["cwnd"] < 150, f"cwnd is {after['cwnd']}")


# RTT in ms, seconds to send, bytes that come at least
@each({"rtt_0": (0, 3, 3e6), "rtt_3_s": (3000, 30, 1e5)})
def prague_at_CASE_lives(case):
    rtt_ms, seconds, least = case
    with Bench(rtt_ms=rtt_ms) as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        pump(seconds, flow)
        note(flow.info())
        expect(flow.received > least, f"{flow.received} bytes came")
        only(net.sent(), ECT1)


@each({"mss_88": {"mss": 88}, "window_of_a_packet": {"receive": 2304}})
def prague_CASE_gets_through(peer):
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow(**peer)
        pump(4, flow)
        note(flow.info())
        expect(flow.received > 1e5, f"{flow.received} bytes came")
        only(net.sent(), ECT1)


@on_accecn
def prague_route_changes_are_survived():
    with Bench(offloads=True) as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        for args in ("mtu 600", "mtu 1500", "mtu 1000 initcwnd 3", ""):
            run(f"ip route replace 10.2.0.1/32 via 10.1.0.2 dev eth0 {args}", net.snd)
            was = flow.received
            pump(1, flow)
            expect(flow.received - was > 5e5, f"{flow.received - was} bytes came with {args}")
        run("ip route replace unreachable 10.2.0.1/32", net.snd)
        pump(0.5, flow)
        run("ip route del unreachable 10.2.0.1/32", net.snd)
        pump(3, flow)
        was = flow.received
        pump(1, flow)
        expect(flow.received - was > 5e5, f"{flow.received - was} bytes came after the route was gone and came again")
        only(net.sent(), ECT1)


@on_accecn
def prague_local_drops_are_answered():
    """A queue of this host's that is too short: a drop that no mark tells of."""
    with Bench(rtt_ms=20) as net:
        tc("qdisc del dev eth0 root", net.snd)
        tc("qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 3000 limit 1600", net.snd)
        flow = net.flow()
        pump(3, flow)
        got = rates(5, flow)[0]
        note(f"{got:.2f} Mbit/s, {flow.info()}")
        expect_between(got, 6, 10, "Mbit/s through a queue of 20000 bytes")
        expect(flow.info()["cwnd"] < 60, f"cwnd is {flow.info()['cwnd']}")


# The module

RANGES = {"rtt_virt_us": (0, 100000), "transition_rounds": (0, 1000000), "least_rate_kbit": (8, 1000000),
          "classic_queue_us": (0, 1000000), "classic_looks": (1, 127)}


@on_accecn
def prague_parameters_have_the_defaults_of_the_documentation():
    with open(os.path.join(lib.ROOT, "docs/PRAGUE.md"), encoding="utf-8") as file:
        said = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", file.read(), re.MULTILINE))
    with loaded():
        for name in (*RANGES, "late_cut"):
            with open(f"{PARAMETERS}/{name}", encoding="ascii") as file:
                expect_equal(file.read().strip(), said[name], name)


@each({name: name for name in RANGES})
def prague_parameter_CASE_outside_its_range_is_refused(name):
    least, most = RANGES[name]
    for value in (most + 1, least - 1, "x", ""):
        run("dmesg -C")
        done = load(f"{name}={value}", check=False)
        expect(done.returncode, f"{name}={value} was taken")
        expect(f"{name} must be a number from {least} to {most}" in run("dmesg").stdout, run("dmesg").stdout)
    with loaded(f"{name}={most}"):
        with open(f"{PARAMETERS}/{name}", "r+", encoding="ascii") as file:
            expect_equal(int(file.read()), most, name)
        with contextlib.suppress(OSError), open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as file:
            file.write(f"{most + 1}")
        with open(f"{PARAMETERS}/{name}", encoding="ascii") as file:
            expect_equal(int(file.read()), most, f"{name} after a value that is too large")
        with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as file:
            file.write(f"{least}")


if not has_accecn():
    @test()
    def prague_kernel_without_accurate_ecn_is_told():
        """One line, and no module."""
        run("dmesg -C")
        done = load(check=False)
        expect("not supported" in done.stderr, f"insmod says {done.stderr}")
        lines = [line for line in run("dmesg").stdout.splitlines() if "tcp_prague: this" in line]
        expect_equal(len(lines), 1, "lines in the kernel's log")
        expect("no Accurate ECN that a congestion control can ask for" in lines[0], lines[0])
        expect(not os.path.exists("/sys/module/tcp_prague"), "the module is there")


if __name__ == "__main__":
    lib.main(prepare=prepare)
