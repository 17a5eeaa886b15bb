#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""Slow links, fast links and large packets: what dualpi2 does where a packet takes longer than the target, where the
link is not full, and where parents charge for GSO packets.
"""
import contextlib
import random
import time

import hostile
import lib
from lib import ECT0, ECT1, NOT_ECT, Stream, each, expect, expect_between, expect_equal, note, percentile
from lib import shared_aqm, shared_net, test
from tcp import Tcp
from wire import MS, Wire, bits, stamps


# Responsive flows on slow links

@contextlib.contextmanager
def far_with_ecn(net, ms):
    """TCP with ECN, and so many ms of delay for its ACKs."""
    for netns in (net.snd, net.rcv):
        lib.run("sysctl -qw net.ipv4.tcp_ecn=1", netns)
    lib.run(f"tc qdisc add dev eth0 root netem delay {ms}ms limit 10000", net.rcv)
    try:
        yield
    finally:
        lib.run("tc qdisc del dev eth0 root", net.rcv)
        for netns in (net.snd, net.rcv):
            lib.run("sysctl -qw net.ipv4.tcp_ecn=2", netns)


def dropped_ect(st):
    return sum(st[queue]["counters"][f"ect_dropped_{cause}"] for queue in "cl"
               for cause in ("limit", "memory", "early", "aqm", "overload"))


SLOW = [(rate, shaper, count, cc, seconds) for rate, seconds in ((64e3, 200), (256e3, 100), (1e6, 40))
        for shaper in ("htb", "own") for count in (1, 10) for cc in ("reno", "dctcp")]
# Minimum use of the link. One flow cannot fill 1 Mbit/s. Reno: whole windows that halve at random marks, with 15 ms
# of mean delay, use 0.835; seeds 1 to 50: 0.853 to 0.869, sd 0.004. DCTCP: 1 - marks / 4 = 0.91; 0.956 to 0.982.
USED = {(1e6, 1, "reno"): 0.8, (1e6, 1, "dctcp"): 0.9}


@each(SLOW, ("slow",), lambda case: f"{case[0] / 1e3:.0f}kbit_{case[1]}_{case[2]}_{case[3]}")
def ecn_flows_at_CASE_are_marked_and_never_dropped(case):
    """Reno in the Classic queue, DCTCP in the L4S queue (its ECT(0) by ecn_mask). On version 2.4 one Reno flow at
    256 kbit/s loses a quarter of its packets, has none marked, and is reported as overload.
    """
    rate, shaper, count, cc, seconds = case
    net = shared_net()
    where = {"shaper": "none", "bandwidth": bits(rate)} if shaper == "own" else {"rate": rate}
    with far_with_ecn(net, 50), net.aqm(**where, ecn_mask=3 if cc == "dctcp" else 1) as q:
        flows = [Tcp(net, 7100 + number, cc) for number in range(count)]
        before = q.stats()["bytes"]
        time.sleep(seconds)
        st = q.stats()
        for flow in flows:
            flow.end()
        q.until_idle()
    used = (st["bytes"] - before) * 8 / (rate * seconds)
    marks = st["c"]["marked_classic"] + st["l"]["marked_native"] + st["l"]["marked_coupled"]
    note(f"{used:.4f} of the link used, {marks} of {st['packets']} marked, {st['qlen']} in the queue, effective target "
         f"{st['link']['target_ns']} ns")
    expect_equal((st["overload_count"], dropped_ect(st)), (0, 0), "overloads, ECT packets dropped")
    expect(marks > 0.02 * st["packets"], f"only {marks} of {st['packets']} packets are marked")
    expect(used > USED.get((rate, count, cc), 0.99), "the link is not full")


@test("slow")
def unresponsive_flow_on_a_slow_link_is_overload_in_the_end():
    """Marks do not stop it: after 256 packets of delay both queues drop, and the delay comes back to the target."""
    with shared_aqm(rate=512e3) as (net, q):
        one = net.traffic(60, Stream("l", ecn=ECT1, bps=1024e3, size=1514), warmup=40)["l"]
        st = q.stats()
        note(f"loss {one.loss}, delay {one.delay_us}, overload {st['overload_count']} times")
        expect(st["overload_count"] >= 1, "no overload")
        expect_between(one.loss, 0.45, 0.55, "loss of twice the rate")
        expect(one.delay_us["mean"] < 3 * st["link"]["target_ns"] / 1e3, f"delay {one.delay_us}")


@test("slow")
def effective_target_follows_the_rate():
    """2.5 serialization times less the target, and the target itself from 1.01 Mbit/s on."""
    with shared_aqm(shaper="none", bandwidth=bits(1e9)) as (_, q):
        for rate, want in ((64e3, 458.1), (256e3, 103.3), (512e3, 44.14), (1.02e6, 15), (40e6, 15)):
            q.change(bandwidth=bits(rate))
            expect_between(q.stats()["link"]["target_ns"] / MS, want * 0.999, want * 1.001, f"ms at {rate:.0f} bit/s")
        q.change(bandwidth=0)
        expect_equal(q.stats()["link"]["target_ns"], 15 * MS, "without a rate")


# Rates that change: scripts that measure the link and set the bandwidth

CHANGES_PER_S, CHANGING_S = 20, 10
# Mbit/s: the same rate, and any rate in a range of 1 : 3.
RATES = {"constant": (40, 40), "changed_20_times_a_second": (20, 60)}
UDP = {"l": ECT1, "c": ECT0, "not": NOT_ECT}


def tcp_reordering(net):
    """Events of reordering that the sender's TCP has seen."""
    lines = [line.split() for line in lib.run("cat /proc/net/netstat", net.snd).stdout.splitlines()]
    names, values = next(pair for pair in zip(lines, lines[1:]) if pair[0][0] == "TcpExt:")
    return {name: int(value) for name, value in zip(names, values) if name in ("TCPSACKReorder", "TCPTSReorder")}


@each(RATES, ("rate",))
def bandwidth_CASE_loses_and_reorders_no_packet(case):
    """One DCTCP and one CUBIC flow with 10 ms of base RTT keep both queues busy. Three UDP streams have numbered
    packets. All losses are drops of the AQM, and packets that arrive do so in the order in which they were sent.
    """
    rng = random.Random(7)
    # A fall of the rate can be an overload for a moment, which has drops of its own.
    overload = {} if case == "constant" else {"drop_overload": 0}
    with shared_aqm(shaper="none", bandwidth=bits(40e6), **overload) as (net, q), far_with_ecn(net, 10):
        flows = [Tcp(net, 7200 + number, cc) for number, cc in enumerate(("dctcp", "cubic"))]
        time.sleep(3)
        before = q.stats()
        q.change(hist_c=32, hist_l=4)     # begins new histograms
        streams = net.start(CHANGING_S + 1, *(Stream(name, ecn=ecn, bps=0.5e6) for name, ecn in UDP.items()))
        for _ in range(CHANGING_S * CHANGES_PER_S):
            q.change(bandwidth=bits(rng.uniform(*RATES[case]) * 1e6))
            time.sleep(1 / CHANGES_PER_S)
        st = q.stats()
        udp = streams.wait()
        for flow in flows:
            flow.end()
        q.until_idle()
        last = q.stats()
    p99 = {queue: f"{percentile(st[queue]['delay'], 0.99)[1] / MS:.2f}" for queue in "cl"}
    rate = (st["bytes"] - before["bytes"]) * 8 / CHANGING_S
    note(f"{case}: P99 of L4S {p99['l']} ms, of Classic {p99['c']} ms, {rate / 1e6:.1f} Mbit/s; AQM drops "
         f"{st['c']['dropped_aqm']}, marks {st['ecn_mark']}")
    other = {(queue, cause): last[queue]["dropped_" + cause] for queue in "cl"
             for cause in ("limit", "memory", "early", "overload", "purge")}
    expect_equal({key: value for key, value in other.items() if value}, {}, "drops other than those of the AQM")
    expect_equal((udp["l"].lost, udp["c"].lost), (0, 0), "ECT packets that were lost")
    expect_equal(udp["not"].lost, last["c"]["dropped_aqm"], "Not-ECT packets that were lost, and drops of the AQM")
    expect_equal([(udp[name].disorder, udp[name].duplicates) for name in UDP], [(0, 0)] * 3, "disorder, duplicates")
    expect_equal(tcp_reordering(net), {"TCPSACKReorder": 0, "TCPTSReorder": 0}, "reordering that TCP has seen")
    expect(rate > 0.9 * sum(RATES[case]) / 2 * 1e6, f"only {rate / 1e6:.1f} Mbit/s")


# Charges of parents

PARENTS = {
    "htb": ("1:10", """\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 800kbit ceil 800kbit burst 1600 cburst 1600 quantum 9100
"""),
    "tbf": ("1:1", "qdisc add dev w0 root handle 1: tbf rate 800kbit burst 9100 limit 100000000\n"),
    "hfsc": ("1:10", """\
qdisc add dev w0 root handle 1: hfsc default 10
class add dev w0 parent 1: classid 1:10 hfsc sc rate 800kbit ul rate 800kbit
"""),
}
# Limits that leave one segment; NQB packets of a large MTU; drops on arrival with p' near 1.
CASES = {
    "limit": ({"limit": 1}, 1500, NOT_ECT, 0),
    "nqb": ({}, 9000, NOT_ECT, 45),
    "early": ({"drop_early": 1, "target": 1, "alpha": 2**31 - 1, "p_cmax": 100, "limit": 10}, 1500, NOT_ECT, 0),
}


@each([(parent, name) for parent in PARENTS for name in CASES], ("gso",), "_".join)
def parent_CASE_charges_for_the_segments_that_are_sent(case):
    """GSO packets come faster than the class may send; what arrives is the class's rate."""
    where, lines = PARENTS[case[0]]
    knobs, mtu, ecn, dscp = CASES[case[1]]
    part = mtu - 40
    with hostile.no_splat(), Wire(mtu=mtu, parent=where, lines=lines, calm=False, **knobs) as wire:
        for _ in range(3000 if mtu == 1500 else 6000):
            wire.gso(7 * part, part, ecn, dscp)
            time.sleep(500e-6)
        got = wire.arrivals()
        times = stamps(got)
        # The first ones leave with the tokens of the parent's burst.
        sent = sum(length for _, _, length in got[20:])
        rate = sent * 8 / ((times[-1] - times[19]) / 1e9)
        note(f"{len(got)} segments, {rate:.0f} bit/s")
        expect_between(rate, 0.99 * 800e3, 1.01 * 800e3, "bit/s of a class of 800 kbit/s")


# Rate of the link

@test("rate")
def link_that_is_not_full_shows_no_rate():
    """64 kB at once every 2 ms: 45 segments leave as fast as the processor can, which is not the rate of the link."""
    with Wire() as wire:
        for _ in range(200):
            wire.gso(44 * 1448, 1448, ECT1)
            time.sleep(0.002)
        st = wire.idle()
        expect_equal((st["link"]["drain_rate"], st["link"]["nqb_limit_bytes"]), (0, 0), "drain_rate, nqb_limit_bytes")
        expect_equal(lib.tc("-s -d qdisc show dev w0", wire.netns).stdout.count("drain_rate not seen yet"), 1,
                     "what tc says")


@test("rate")
def nqb_with_an_unknown_rate_waits_for_ten_milliseconds():
    """A parent that lets nothing through: what comes after the first packet has waited 10 ms is dropped."""
    with Wire(parent="1:10", lines="""\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 8kbit ceil 8kbit burst 1600 cburst 1600 quantum 1514
""") as wire:
        wire.send(*(wire.udp(1500) for _ in range(2)))
        expect_equal(wire.offer(*(wire.udp(500, NOT_ECT, 45) for _ in range(50))), 50, "of 50 at once")
        time.sleep(0.009)
        expect_equal(wire.offer(wire.udp(500, NOT_ECT, 45)), 1, "of 1 after 9 ms")
        time.sleep(0.002)
        expect_equal(wire.offer(wire.udp(500, NOT_ECT, 45)), 0, "of 1 after 11 ms")
        lib.tc("class change dev w0 parent 1: classid 1:10 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600 "
               "quantum 1514", wire.netns)
        wire.idle()


# Shares and thresholds that a sender cannot change

@each((64, 1514), ("scheduler",), str)
def classic_of_CASE_bytes_has_its_share_beside_trains_with_pauses(size):
    """L4S sends trains of nine packets and pauses for one Classic packet, so that its queue is empty for an instant.
    On version 2.4 Classic packets of 64 bytes had 0.5 % of the link.
    """
    net, rate = shared_net(), 10e6
    with net.aqm(rate=rate, target=4294967, alpha=1, beta=1, limit=1000000, memory_limit=2**32 - 1) as q:
        traffic = net.start(3, Stream("c", bps=0.5 * rate, size=size), Stream(
            "l", ecn=ECT1, bps=rate * 9 * 1514 / (9 * 1514 + size), size=1514, burst=9, start=0.05))
        time.sleep(0.5)
        before = q.stats()
        time.sleep(2)
        after = q.stats()
        classic, l4s = (after[queue]["sent_bytes"] - before[queue]["sent_bytes"] for queue in "cl")
        note(f"{classic} and {l4s} bytes")
        expect_between(classic / (classic + l4s), 0.09, 0.11, "share of Classic by bytes")
        q.change(limit=1)
        traffic.wait()
        q.until_idle()


@test("marker")
def one_sender_cannot_raise_the_ramp_of_all():
    """13 packets every 8 ms, half of 40 Mbit/s: on version 2.4 the ramp moved from 0.8 to 4.5 ms for everybody."""
    with shared_aqm(shaper="none", bandwidth=bits(40e6)) as (net, q):
        before = q.stats()["link"]
        net.traffic(3, Stream("l", ecn=ECT1, bps=13 * 1514 * 8 / 8e-3, size=1514, burst=13))
        after = q.stats()["link"]
        expect_equal((after["ramp_min_ns"], after["ramp_max_ns"], after["burst_ns"]),
                     (before["ramp_min_ns"], before["ramp_max_ns"], 0), "ramp, burst")


@test("marker")
def gso_packets_that_stay_whole_are_bursts_where_these_are_tolerated():
    """13 segments every 8 ms take 3.8 ms of 40 Mbit/s; the last one waits for the others."""
    with Wire(bandwidth=bits(40e6), split_gso=0, burst_max=20000) as wire:
        for _ in range(200):
            wire.gso(13 * 1448, 1448, ECT1)
            time.sleep(0.008)
        expect_between(wire.stats()["link"]["burst_ns"] / MS, 3, 5, "ms of burst tolerance")


@test("limits")
def any_one_packet_passes_a_memory_limit_below_its_size():
    with Wire(memory_limit=1, bandwidth=bits(1e6)) as wire:
        wire.idle()
        # The first one leaves at once.
        expect_equal(wire.offer(*(wire.udp(1000) for _ in range(3))), 2, "of three packets at once")
        st = wire.idle()
        expect_equal((st["c"]["enqueued"], st["c"]["dropped_memory"]), (2, 1), "enqueued, dropped_memory")


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
