#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off
# suite: long kernel=stock
"""Histograms and percentiles of the queueing delay, compared with what the receiver measured.

How the histogram does with real TCP is the lab's.
"""
import math

import lib
from lib import ECT1, Stream, each, expect, expect_between, expect_equal, note, shared_aqm, shared_net, test
from parents import CALM, ECNS, Tree

R = 10e6        # bit/s
MS = 1000000    # ns


def expect_delays(delay, waits_ns, slack_ns, what):
    """The histogram says what the packets say that waited so long; each may be off by this much.

    The packet of a rank may then be off by as much, and by a bucket, and so may the mean and the maximum.  On an
    emulated machine single packets are held up elsewhere for longer, between the queue and the receiver.
    """
    waits = sorted(waits_ns)
    last_slack_ns = slack_ns if lib.user_mode_linux() else 10 * slack_ns
    expect_equal(sum(delay["hist"]) + delay["beyond"], len(waits), f"{what}: packets in the histogram")
    for part in (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1):
        want = waits[math.ceil(part * len(waits)) - 1]
        low, high = lib.percentile(delay, part)
        note(f"{what}: P{part * 100:g} is in {low / 1e6:.3f}..{high / 1e6:.3f} ms, packets say {want / 1e6:.3f} ms")
        slack = slack_ns if part < 0.99 else last_slack_ns
        expect(low - slack <= want <= high + slack, f"{what}: P{part * 100:g} {low}..{high} ns, packets: {want} ns")
    mean = sum(waits) / len(waits)
    expect_between(delay["sum_ns"] / len(waits) / 1e6, (mean - slack_ns) / 1e6, (mean + slack_ns) / 1e6,
                   f"{what}: mean, ms")
    expect_between(delay["max_ns"] / 1e6, (waits[-1] - last_slack_ns) / 1e6, (waits[-1] + last_slack_ns) / 1e6,
                   f"{what}: maximum, ms")


def queue_waits(result):
    """How long packets waited by what the receiver saw, in ns; what a packet takes elsewhere, the least shows."""
    delays = [delay for _, delay, _ in result.records if delay is not None]
    return [delay - min(delays) for delay in delays]


# What a packet takes outside of the queue differs by less than this; on an emulated machine that runs an instruction
# a nanosecond it is a tenth of a millisecond.
def elsewhere_ns():
    return 5000 if lib.user_mode_linux() else 150000


@each(("c", "l"), ("R37",), needs="virtual_time ext")
def delay_of_CASE_that_is_constant_is_in_its_bucket(name):
    """A burst makes a queue, then packets come as fast as they leave: each waits as long as the one before."""
    net = shared_net()
    packet_ns = 8 * MS      # 1000 bytes at 1 Mbit/s
    with net.aqm(rate=1e6, **CALM) as q:
        q.filter(f"protocol all prio 1 matchall classid 10:{3 if name == 'c' else 2}")
        first = net.start(6, Stream("first", pps=1, burst=7, count=7, trace=True),
                          Stream("then", pps=125, start=packet_ns / 2 / 1e9, trace=True))
        result = first.wait()
        q.until_idle()
        st = q.stats()
        delay = st[name]["delay"]
        waits = queue_waits(result["first"])
        # A packet of the second stream finds 4 or 5 others and half of one.
        base = min(d for _, d, _ in result["first"].records)
        waits += [d - base for _, d, _ in result["then"].records]
        steady = sorted(waits)[len(waits) // 2]
        expect(4 * packet_ns < steady < 6 * packet_ns, f"no standing queue: {steady} ns")
        expect_delays(delay, waits, elsewhere_ns(), name)
        number = lib.bucket_of(delay, steady)
        expect(sum(delay["hist"][number - 1:number + 2]) > 700, f"buckets around {number}: {delay['hist']}")
        other = st["cl"["lc".index(name)]]["delay"]
        expect_equal((sum(other["hist"]), other["sum_ns"], other["max_ns"], other["beyond"]), (0, 0, 0, 0),
                     "delays of the other queue")


@each((4e6, 40e6, 200e6), ("R37", "R38"), name=lambda rate: f"{rate / 1e6:.0f}_mbit", needs="virtual_time ext")
def delay_at_CASE_percentiles_are_those_of_the_receiver(rate):
    """Overload by unresponsive streams with pauses, so that delays are of all sizes, in both queues."""
    net = shared_net()
    seconds = 20 if rate < 10e6 else 2 if rate < 100e6 else 0.6
    with net.aqm(rate=rate) as q:
        result = net.traffic(seconds, Stream("c", bps=0.75 * rate, size=1500, jitter=1, trace=True),
                             Stream("l", ecn=ECT1, bps=0.3 * rate, size=1500, jitter=1, burst=3, trace=True))
        q.until_idle()
        st = q.stats()
        for name in "cl":
            expect_delays(st[name]["delay"], queue_waits(result[name]), elsewhere_ns(), name)


@test("R37")
def delay_histogram_edges_are_as_documented():
    """Eight buckets of one unit, then eight in each octave, so that none is wider than 1/8 of where it begins."""
    with Tree("root") as tree:
        for name, unit in (("c", 65536), ("l", 8192)):
            delay = tree.leaf()[name]["delay"]
            expect_equal((delay["unit_ns"], delay["buckets"], delay["generation"]), (unit, 96, 1), f"unit of {name}")
            edges = lib.bucket_edges(delay)
            expect_equal(edges[:10], [n * unit for n in range(10)], "first edges")
            expect(all(8 * (b - a) <= a for a, b in zip(edges[8:], edges[9:])), f"a bucket is too wide: {edges}")
            expect_equal(edges[96], unit << 14, "end of the last")
        for us, unit in ((1, 1024), (2, 2048), (8, 8192), (9, 16384), (64, 65536), (65, 65536), (66, 131072),
                         (1000, 1 << 20), (16384, 1 << 24)):
            tree.change(hist_c=us, hist_l=us)
            st = tree.leaf()
            expect_equal((st["c"]["delay"]["unit_ns"], st["l"]["delay"]["unit_ns"]), (unit, unit), f"unit of {us} us")
            expect_equal((st["knobs"]["hist_c"], st["knobs"]["hist_l"]), (us, us), "shown")


@test("R37")
def delay_edges_changed_begin_anew_and_leave_counters_alone():
    with Tree("htb", "2mbit", **CALM) as tree:
        def fill():
            for n in range(40):
                tree.mix.send(ECNS[n % 4], 500)
            return tree.check_empty()["10:"]

        before = fill()
        # Other options, and the same again, begin nothing.
        for knobs in ({"target": 20000}, {"hist_c": 64, "hist_l": 8}, {"limit": 1000}):
            tree.change(**knobs)
            expect_equal(tree.leaf()["c"]["delay"], before["c"]["delay"], f"delays of C after {knobs}")
            expect_equal(tree.leaf()["l"]["delay"], before["l"]["delay"], f"delays of L after {knobs}")
        tree.change(hist_c=200)
        st = tree.leaf()
        expect_equal(st["c"]["delay"] | {"hist": sum(st["c"]["delay"]["hist"])},
                     {"sum_ns": 0, "max_ns": 0, "beyond": 0, "unit_ns": 262144, "buckets": 96, "pad": 0, "hist": 0,
                      "generation": before["c"]["delay"]["generation"] + 1}, "delays of C after hist_c")
        expect_equal(st["l"]["delay"], before["l"]["delay"], "delays of L after hist_c")
        expect_equal([st[q]["counters"] for q in "cl"], [before[q]["counters"] for q in "cl"], "counters after hist_c")
        tree.change(hist_l=1)
        st = tree.leaf()
        expect_equal(st["l"]["delay"]["generation"], before["l"]["delay"]["generation"] + 1, "generation of L")
        after = fill()
        for name in "cl":
            expect_equal(sum(after[name]["delay"]["hist"]) + after[name]["delay"]["beyond"], 20,
                         f"{name}: packets since its reset")
            expect_equal(after[name]["counters"]["forwarded"], 40, f"{name}: forwarded ever")


@test("R37")
def delay_edges_changed_with_a_backlog_count_what_leaves_afterwards():
    with Tree("htb", "1mbit", **CALM) as tree:
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
        tree.change(hist_c=1000, hist_l=1000)
        st = tree.leaf()
        left = {name: st[name]["counters"]["queued"] for name in "cl"}
        done = {name: sum(st[name]["delay"]["hist"]) for name in "cl"}
        expect(left["c"] > 20 and left["l"] > 20, "hardly a backlog")
        st = tree.check_empty()["10:"]
        for name in "cl":
            expect_equal(sum(st[name]["delay"]["hist"]) - done[name], left[name], f"{name}: packets in the histogram")


@each(("c", "l"), ("R37",), needs="virtual_time ext")
def delay_of_CASE_beyond_the_last_bucket_is_counted_and_not_lost(name):
    """The last bucket ends at 16.8 ms; packets wait for up to 240 ms.

    Those that come alone, before, tell what a packet takes elsewhere; the first of a burst may take longer.
    """
    with shared_aqm(rate=1e6, hist_c=1, hist_l=1, **CALM) as (net, q):
        q.filter(f"protocol all prio 1 matchall classid 10:{3 if name == 'c' else 2}")
        result = net.traffic(2, Stream("alone", pps=50, count=20, trace=True),
                             Stream("one", start=0.5, pps=31, burst=31, count=31, trace=True))
        q.until_idle()
        delay = q.stats()[name]["delay"]
        delays = [[delay for _, delay, _ in result[which].records] for which in ("alone", "one")]
        base = min(delays[0])
        waits = [delay - base for which in delays for delay in which]
        end = lib.bucket_edges(delay)[-1]
        expect_equal(end, 1024 << 14, "end of the last bucket")
        expect_equal(delay["beyond"], sum(wait >= end for wait in waits), "packets beyond it")
        expect(delay["beyond"] > 20 and sum(delay["hist"]) > 20, "a lopsided test")
        expect_delays(delay, waits, elsewhere_ns(), name)
        # Another one beyond it that is not the maximum.
        again = net.traffic(1, Stream("two", pps=8, burst=8, count=8, trace=True))
        q.until_idle()
        after = q.stats()[name]["delay"]
        expect_equal(after["max_ns"], delay["max_ns"], "maximum after shorter ones")
        expect_equal(after["beyond"] - delay["beyond"], sum(d - base >= end for _, d, _ in again["two"].records),
                     "packets beyond it, later")


if __name__ == "__main__":
    # Where the traffic's receiver does not run for a second, packets are lost after the qdisc.
    lib.main(needs="timed ext")
