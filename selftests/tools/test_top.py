#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check tree=top
"""Tests of dualpi2-top without a kernel: decoding, differences, percentiles, layout, metrics. KTAP on stdout.

The statistics are made from the header (payload.py). Where prometheus_client is missing, the tests of metrics say so
and fail; the rest needs Python alone, 3.9 or later.
"""

import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest.mock

import payload
from payload import HEADER, app, enum, queue

sys.dont_write_bytecode = True
sys.path[:0] = [payload.TOOLS, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib")]

from dualpi2 import Trouble  # noqa: E402
from dualpi2.kernel import netlink, stats  # noqa: E402
from dualpi2.kernel.qdisc import Kernel, Qdisc, Reports  # noqa: E402
from dualpi2.top import cli, metrics, report, screen, watch  # noqa: E402
from ktap import expect_equal as equal, main, test  # noqa: E402

TOP = os.path.join(payload.TOOLS, "bin/dualpi2-top")
ROOT = 0xffffffff


def sample(**given):
    """A Sample of made-up statistics."""
    return stats.Sample(app(**given))


def full(c=None, l=None, delay=None, hist=(), **given):
    """One with histograms; delay and hist are the L4S queue's."""
    given.setdefault("ext", {})
    return sample(c=queue(c or {}, {}), l=queue(l or {}, delay or {}, hist), **given)


def hist_of(pairs, size=96):
    """A histogram with {bucket: packets}."""
    return [pairs.get(index, 0) for index in range(size)]


class FakeKernel:
    """Gives out lists of qdiscs, one after the other."""

    def __init__(self, *dumps):
        self.dumps = list(dumps)

    def qdiscs(self, _):
        return self.dumps.pop(0)


def qdisc(payload_, ifindex=2, device="eth0", handle=0x100000, parent=0x1000a, kind=b"dualpi2", **basic):
    """As the reader hands it out."""
    found = Qdisc(tc_message(payload_, ifindex, handle, parent, kind, **basic))
    found.device = device
    return found


def tc_message(payload_, ifindex, handle, parent, kind, bytes=0, packets=0, qlen=0, backlog=0, drops=0):
    """The payload of RTM_NEWQDISC."""
    stats2 = payload.attr(1, struct.pack("=QI", bytes, packets & 0xffffffff)) + payload.attr(4, payload_)
    stats2 += payload.attr(3, struct.pack("=5I", qlen, backlog, drops, 0, 0))
    stats2 += payload.attr(8, struct.pack("=Q", packets)) if packets >> 32 else b""
    return struct.pack("=BxxxiIII", 0, ifindex, handle, parent, 1) + payload.attr(1, kind + b"\0") + payload.attr(
        7 | 0x8000, stats2)


def watched(*dumps, seconds=1.0):
    """The entries after the last of these dumps, so many seconds apart."""
    clock = iter([100 + seconds * (number // 2) for number in range(2 * len(dumps))])
    found = watch.Watch(kernel=FakeKernel(*dumps), clock=lambda: next(clock))
    for _ in dumps:
        found.sample()
    return found.entries


# Decoding

@test
def every_field_is_read_from_its_place():
    def numbered(name, first):
        return {field: first + index for index, field in enumerate(HEADER.layout(name).names) if field != "pad"}

    counters = {"c": numbered("tc_dualpi2_counters", 1000), "l": numbered("tc_dualpi2_counters", 2000)}
    xstats, overload = numbered("tc_dualpi2_xstats", 1), numbered("tc_dualpi2_overload", 50)
    link = numbered("tc_dualpi2_link", 70)
    ext = numbered("tc_dualpi2_ext_xstats", 100)
    del ext["magic"], ext["size"]
    found = full(c=counters["c"], l=counters["l"], xstats=xstats, ext=ext, overload=overload, link=link)
    equal(found.level, "full")
    equal(found.xstats, xstats)
    equal(found.overload, overload)
    equal(found.link, link)
    for name in "cl":
        equal(found.queues[name].counters, counters[name], name)
    equal(found.ext, {name: value for name, value in ext.items() if "reserved" not in name})


@test
def linux_own_shows_what_it_has():
    found = stats.Sample(app(xstats={"prob": 1 << 31, "ecn_mark": 5, "credit": -3}), stats_bytes=100)
    equal((found.level, found.xstats["credit"], found.probability("p_c")), ("basic", -3, None))
    # A later Linux may have a longer struct.
    equal(stats.Sample(app(xstats={"ecn_mark": 5}) + b"\1" * 8).xstats["ecn_mark"], 5)
    assert "Linux's own" in report.missing(found)[0]
    equal(stats.Sample(b"").level, "none")


@test
def unknown_attributes_are_skipped():
    found = full(l={"forwarded": 7}, more=payload.attr(99, b"123456789"), longer=b"\xff" * 24)
    equal((found.level, found.queues["l"].counters["forwarded"]), ("full", 7))


@test
def longer_and_shorter_structs_are_read():
    counters = payload.pack("counters", arrived_not_ect=5, dropped_purge_bytes=6)
    for data, last in ((counters + b"\xff" * 16, 6), (counters[:-8], None), (counters[:-3], None),
                       (counters[:8], None)):
        nest = payload.attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), data)
        found = sample(ext={}, c=nest, l=nest).queues["l"].counters
        equal((found["arrived_not_ect"], found.get("dropped_purge_bytes")), (5, last))


@test
def cut_payloads_never_fault():
    whole = app(xstats={}, ext={}, c=queue({}, {}, [1]), l=queue({}, {}, [1]), overload={},
                link={"burst_ns": 1, "drain_rate": 1})
    for size in range(len(whole)):
        entry = watched([qdisc(whole[:size])], [qdisc(whole[:size])])[0]
        screen.lines([entry], 80, 0, "")
        json.dumps(report.as_json([entry], 0))


@test
def lying_lengths_never_fault():
    whole = bytearray(app(xstats={}, ext={}, c=queue({}, {}, [1]), l=queue({}, {}, [1]), overload={}, link={}))
    for at in range(256, len(whole) - 2, 2):
        for lie in (0, 3, 5, 0x7fff, 0xffff):
            changed = bytearray(whole)
            struct.pack_into("=H", changed, at, lie)
            entry = watched([qdisc(bytes(changed))], [qdisc(bytes(changed))])[0]
            screen.lines([entry], 80, 0, "")
            json.dumps(report.as_json([entry], 0))


@test
def attribute_that_is_longer_than_all_is_not_read():
    data = payload.attr(1, b"1234") + payload.attr(2, b"12345678")
    equal(netlink.attr_list(data[:-1]), [(1, b"1234")])
    equal(netlink.attr_list(data), [(1, b"1234"), (2, b"12345678")])


@test
def nonsense_histogram_is_none():
    for delay in ({"unit_ns": 0}, {"buckets": 0}, {"buckets": 1 << 30}):
        equal(full(delay=delay, hist=[1]).queues["l"].has_histogram(), False, delay)


@test
def histogram_is_filled_up_with_zeros():
    found = full(delay={"buckets": 96}, hist=[1, 2])
    equal(found.queues["l"].hist, [1, 2] + [0] * 94)


# Percentiles

@test
def bucket_edges_are_those_of_the_header():
    edges = [stats.bucket_begin_ns(index, 1) for index in range(97)]
    equal(edges[:18], list(range(16)) + [16, 18])
    equal(edges[95:], [15 << 10, 16 << 10])
    for index in range(8, 96):
        assert (edges[index + 1] - edges[index]) * 8 <= edges[index], index


@test
def percentile_is_within_a_bucket_of_the_nearest_rank():
    source = random.Random(6)
    for number in (1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 5000):
        delays = sorted(int(source.lognormvariate(13, 1.5)) for _ in range(number))
        edges = [stats.bucket_begin_ns(index, 8192) for index in range(97)]
        hist = [sum(low <= value < high for value in delays) for low, high in zip(edges, edges[1:])]
        beyond = sum(value >= edges[96] for value in delays)
        found = stats.Delays(8192, hist, sum(delays), delays[-1], beyond)
        for percent in (50, 90, 99, 99.9):
            rank = -(-number * round(percent * 10) // 1000)
            true = delays[rank - 1]
            index = sum(edge <= true for edge in edges) - 1
            got = found.percentile_ns(percent)
            if index < 96:
                assert edges[index] <= got <= edges[index + 1], (number, percent, got, true)
            assert got <= delays[-1], (number, percent)
        equal(found.mean_ns(), round(sum(delays) / number))


@test
def percentile_ranks_are_exact_at_whole_thousands():
    found = stats.Delays(1000, hist_of({0: 999, 90: 1}), 0, 10**9, 0)
    equal(found.percentile_ns(99.9) < 1000, True)
    equal(found.percentile_ns(99.91), 10**9)
    many = 1 << 60
    found = stats.Delays(1000, hist_of({0: many - many // 1000, 50: many // 1000}), 0, 10**9, 0)
    equal(found.percentile_ns(99.9) < 1000, True, "beyond what a float holds")
    equal(found.percentile_ns(99.91) > 1000, True)


@test
def percentile_by_hand():
    # Bucket 8 is 8 to 9 us wide: 4 packets at 8.125, 8.375, 8.625, 8.875 us.
    found = stats.Delays(1000, hist_of({8: 4}), 34000, 8900, 0)
    equal([found.percentile_ns(percent) for percent in (25, 50, 75, 100)], [8125, 8375, 8625, 8900])
    found.max_ns = 8200
    equal(found.percentile_ns(75), 8200, "capped")
    found = stats.Delays(1000, hist_of({8: 1}), 0, 10**12, 9)
    equal(found.percentile_ns(50), 10**12, "beyond")
    equal(stats.Delays(1000, [0], 0, 0, 0).percentile_ns(50), None)


@test
def mean_survives_a_sum_beyond_64_bits():
    # 2^41 packets of about 15 ms are more than 2^64 ns.
    number, index = 1 << 41, 90
    middle = (stats.bucket_begin_ns(index, 1024) + stats.bucket_begin_ns(index + 1, 1024)) // 2
    found = full(delay={"unit_ns": 1024, "sum_ns": number * middle % 2**64, "max_ns": middle},
                 hist=hist_of({index: number}))
    assert number * middle > 2**64
    equal(stats.Delays.since_start(found.queues["l"]).mean_ns(), middle)
    edge = stats.bucket_begin_ns(96, 1024)
    found = full(delay={"unit_ns": 1024, "sum_ns": number * edge % 2**64, "max_ns": edge, "beyond": number})
    assert number * edge > 2**64
    equal(stats.Delays.since_start(found.queues["l"]).mean_ns(), edge, "beyond")


# Differences

@test
def counters_wrap_modulo_2_64():
    old, new = full(l={"forwarded": 2**64 - 3}), full(l={"forwarded": 4})
    equal(stats.Interval.between(new, old, 1).counters["l"]["forwarded"], 7)


@test
def counters_wrap_modulo_2_32():
    def at(number):
        return stats.Sample(app(xstats={"ecn_mark": number}), stats_bytes=1, stats_packets=number, drops=number)

    total = stats.Interval.between(at(5), at(2**32 - 2), 1).total
    equal((total["ecn_mark"], total["packets"], total["drops"]), (7, 7, 7))
    # 64 bits of packets, as the kernel tells them where 32 do not hold them.
    new, old = (stats.Sample(app(), stats_packets=number) for number in (2**33 + 1, 5))
    equal(stats.Interval.between(new, old, 1).total["packets"], 2**33 - 4)


@test
def shorter_queue_is_the_same_qdisc():
    old, new = full(l={"forwarded": 1, "queued": 9, "queued_bytes": 900}), full(l={"forwarded": 2})
    equal(stats.Interval.between(new, old, 1).counters["l"]["forwarded"], 1)


@test
def replaced_qdisc_begins_anew():
    for old, new in ((full(l={"forwarded": 10}), full(l={"forwarded": 9})),
                     (stats.Sample(app(), stats_bytes=10), stats.Sample(app(), stats_bytes=9)),
                     (full(), sample(ext={}))):
        equal(stats.Interval.between(new, old, 1), None)


@test
def replaced_qdisc_loses_its_history():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({"forwarded": number}, {"max_ns": 10**6}, [number])))]

    entries = watched(dump(1), dump(2), dump(3))
    equal(len(entries[0].history["l"]), 2)
    entries = watched(dump(1), dump(3), dump(2))
    equal((len(entries[0].history["l"]), entries[0].interval), (0, None))


@test
def histogram_differences_are_of_the_interval():
    old = full(delay={"sum_ns": 500, "max_ns": 10**6}, hist=hist_of({3: 5}))
    new = full(delay={"sum_ns": 90500, "max_ns": 10**6}, hist=hist_of({3: 5, 4: 2}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.packets, found.mean_ns(), found.max_exact, found.max_ns), (2, 45000, False, 5 * 8192))
    assert 4 * 8192 <= found.percentile_ns(99) <= 5 * 8192


@test
def new_greatest_delay_is_the_interval_s():
    old = full(delay={"max_ns": 30000}, hist=hist_of({3: 5}))
    new = full(delay={"max_ns": 33333}, hist=hist_of({3: 5, 4: 1}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.max_exact, found.max_ns, found.percentile_ns(99.9)), (True, 33333, 33333))


@test
def new_generation_counts_from_its_beginning():
    old = full(delay={"generation": 1, "max_ns": 10**9}, hist=hist_of({3: 500}))
    new = full(delay={"generation": 2, "max_ns": 20000, "unit_ns": 1024, "sum_ns": 40000}, hist=hist_of({12: 2}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.packets, found.unit_ns, found.max_ns, found.mean_ns()), (2, 1024, 20000, 20000))


@test
def histogram_that_goes_back_is_not_shown():
    old = full(delay={}, hist=hist_of({3: 5}))
    new = full(delay={}, hist=hist_of({3: 4}))
    equal(stats.Interval.between(new, old, 1).delays["l"], None)


@test
def shares_are_of_what_they_say():
    found = full(l={"arrived_not_ect": 10, "arrived_ect1": 60, "arrived_ect0": 20, "arrived_ce": 20, "forwarded": 80,
                    "marked_coupled": 5, "marked_native": 3, "not_ect_dropped_aqm": 5, "ect_dropped_overload": 1,
                    "ect_dropped_limit": 1})
    interval = stats.Interval.since_start(found)
    equal((interval.mark_share("l"), interval.drop_share("l", "not_ect"), interval.drop_share("l", "ect")),
          (0.1, 0.5, 0.02))
    equal(interval.drop_share("l", None), 7 / 110)
    equal(interval.mark_share("c"), None, "of nothing")


@test
def share_is_never_above_one():
    interval = stats.Interval.since_start(full(l={"arrived_not_ect": 2, "not_ect_dropped_aqm": 5}))
    equal(interval.drop_share("l", "not_ect"), 1.0)
    interval = stats.Interval.since_start(full(l={"not_ect_dropped_aqm": 5}))
    equal(interval.drop_share("l", "not_ect"), 1.0)


@test
def rates_are_per_second():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}),
                          l=queue({"forwarded": number, "forwarded_bytes": 1000 * number}, {})))]

    interval = watched(dump(0), dump(50), seconds=2.0)[0].interval
    equal((interval.seconds, interval.rate("l", "forwarded"), 8 * interval.rate("l", "forwarded_bytes")),
          (2.0, 25, 200000))


@test
def vanished_qdisc_is_gone_and_new_one_waits():
    first, second = qdisc(app(ext={})), qdisc(app(ext={}), ifindex=3, device="eth1")
    entries = watched([first], [second])
    equal([(entry.device, entry.interval) for entry in entries], [("eth1", None)])


# Words

@test
def numbers_have_three_digits():
    for value, want in ((0, "0 "), (1, "1 "), (9.994, "9.99 "), (99.94, "99.9 "), (999.4, "999 "), (999.6, "1.00 k"),
                        (12345, "12.3 k"), (10**6, "1.00 M"), (4.2e9, "4.20 G"), (10**15, "1.00 P"),
                        (2**64, "18.4 E"), (None, "-")):
        equal(report.scaled(value), want)
    for value, want in ((0, "0 %"), (1, "100 %"), (0.99999, "99.9 %"), (0.0744, "7.44 %"), (0.5, "50.0 %"),
                        (0.000001, "0.001 %"), (0.0005, "0.050 %"), (None, "-")):
        equal(report.percent(value), want)
    for value, want in ((0, "0.00us"), (999, "1.00us"), (12345, "12.3us"), (999499, "999us"), (999500, "1.00ms"),
                        (15.2e6, "15.2ms"), (10**9, "1.00s"), (4294e9, "4294s"), (None, "-")):
        equal(report.delay(value), want)


@test
def sparkline_has_the_greatest_at_the_top():
    equal(report.sparkline([1, 2, None, 8], 10), ("▁▂ █", 8))
    equal(report.sparkline([1, 2, 3, 4], 2), ("▆█", 4))
    equal(report.sparkline([3, 7], 5), ("▄█", 7), "a part of a step is shown")
    equal(report.sparkline([0, 0], 5), ("▁▁", 0))
    equal(report.sparkline([None], 5), ("", None))
    equal(report.sparkline([1, 8], 5, True), (".@", 8))
    equal(report.sparkline([1], 0), ("", None))


@test
def overload_is_told_in_words():
    def said(**given):
        return report.overload(full(overload=given), 1000)

    equal(said(), ("never overloaded", False))
    equal(said(count=1, start_ns=938 * 10**9, duration_ns=2 * 10**9),
          ("overloaded 1 time, for 2.00s, ended 60 s ago", False))
    equal(said(count=2, start_ns=938 * 10**9, duration_ns=2 * 10**9)[0],
          "overloaded 2 times, the last for 2.00s, ended 60 s ago")
    equal(said(count=3, now=1, duration_ns=10**6), ("OVERLOAD for 1.00ms, 3 in all", True))
    equal(report.overload(stats.Sample(app()), 0), (None, False))


def busy_entry(**given):
    """An entry with as long values as there can be."""
    number = 2**61
    counters = dict.fromkeys(HEADER.layout("tc_dualpi2_counters").names, number)

    def dump(some):
        return [qdisc(app(xstats={"prob": some & 0x7fffffff}, ext={"prob_c": 0x12345678, "prob_cl": 0xffffffff},
                          c=queue({name: some for name in counters}, {"max_ns": 10**10}, hist_of({95: some})),
                          l=queue({name: some for name in counters}, {"max_ns": 10**10}, hist_of({7: some})),
                          overload={"count": 2**63, "start_ns": 1, "duration_ns": 2**63},
                          link=dict({name: some for name, form in HEADER.layout("tc_dualpi2_link").fields
                                     if form == "Q"}, burst_ns=2**32 - 1, ramp_min_ns=999_999_999,
                                    ramp_max_ns=2**32 - 1)),
                      device="wlxf4f26d1b2c3d", handle=0xffff0000, parent=0xfffeffff, **given)]

    found = watched(dump(0), dump(10**9 + 7), dump(number))[0]
    for history in found.history.values():
        history.extend([10**12] * watch.HISTORY)
    return found


@test
def no_line_is_wider_than_the_terminal():
    entries = [busy_entry(), *watched([qdisc(app(ext={}))], [qdisc(app(ext={}))]),
               *watched([qdisc(app(xstats={}))], [qdisc(app(xstats={}))]), *watched([qdisc(b"")])]
    for width in range(39, 260):
        for line in screen.lines(entries, width, 2e9, report.NONE_HERE):
            assert screen.width_of(line) <= width, (width, line)


@test
def every_width_shows_every_figure():
    entry = watched(*[[qdisc(app(ext={}, overload={}, c=queue({}, {}), l=queue(
        {"arrived_ect1": 10 * n, "arrived_ce": 20 * n, "arrived_not_ect": 30 * n, "forwarded": 40 * n,
         "forwarded_bytes": 50000 * n, "marked_native": n, "not_ect_dropped_aqm": 3 * n, "ect_dropped_limit": 15 * n},
        {"sum_ns": 4000000 * n, "max_ns": 900000 * n}, hist_of({11: 30 * n, 40: 10 * n}))))] for n in (1, 2)])[0]
    for width in (39, 79, 199):
        shown = " ".join(screen.text([entry], width, 0, "").split())
        for wanted in ("400 kbit/s", "40 pkt/s", "2.50 %", "10.0 %", "50.0 %", "20 pkt/s", "100us", "95.4us", "1.12ms",
                       "1.80ms", "eth0 10: in 1:a", "never overloaded", "P99.9", "Classic"):
            assert wanted in shown, (width, wanted, shown)
        assert "<" not in shown, shown


def linked(*links):
    """Entries of a dualpi2 with these numbers of its link, one after the other."""
    return watched(*[[qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {}), link=link))] for link in links])


@test
def link_is_told_in_words():
    link = {"drain_rate": 5_000_000, "throttled": 7, "nqb_arrived": 2500, "nqb_dropped": 30, "burst_ns": 4_000_000,
            "ramp_min_ns": 600_000, "ramp_max_ns": 1_200_000, "limit_pkts": 400, "nqb_limit_bytes": 50000,
            "target_ns": 103_000_000}
    for width in (39, 79, 199):
        shown = " ".join(screen.text(linked(link), width, 0, "").split())
        for wanted in ("link 40.0 Mbit/s", "target 103ms", "ramp 600us to 1.20ms", "burst 4.00ms",
                       "NQB 2.50 kpkt, 30 pkt dropped"):
            assert wanted in shown, (width, wanted, shown)
    # What is not there, or not so now, is not said; nor what an older module does not tell.
    shown = screen.text(linked({"ramp_max_ns": 1000}), 199, 0, "")
    assert "ramp" in shown and not any(word in shown for word in ("link", "target", "burst", "NQB")), shown
    assert "ramp" not in screen.text(linked(None), 199, 0, "")


@test
def link_is_in_json_with_what_it_counted():
    old, new = ({"throttled": 2**64 - 2, "nqb_arrived": 4, "nqb_dropped": 1, "drain_rate": 9},
                {"throttled": 3, "nqb_arrived": 9, "nqb_dropped": 1, "drain_rate": 8})
    found = report.as_json(linked(old, new), 0)["qdiscs"][0]
    equal((found["link"]["drain_rate"], found["link"]["throttled"], found["link"]["limit_pkts"]), (8, 3, 0))
    equal(found["link_interval"], {"throttled": 5, "nqb_arrived": 5, "nqb_dropped": 0})
    equal(report.as_json(linked({}), 0)["qdiscs"][0]["link"]["drain_rate"], None, "a rate that was not seen yet")
    equal(report.as_json(linked({}), 0)["qdiscs"][0]["link"]["nqb_limit_bytes"], None, "a limit that is a delay")
    found = report.as_json(linked(None, None), 0)["qdiscs"][0]
    equal((found["link"], found["link_interval"]), (None, None))
    equal(report.as_json(linked(old), 0)["qdiscs"][0]["link_interval"], None, "no interval yet")
    equal(linked({"throttled": 9}, {"throttled": 8})[0].interval, None, "one that went back is another qdisc's")
    equal(stats.Interval.since_start(full(link=old)).link["nqb_arrived"], 4)


@test
def bound_of_the_maximum_is_told_from_one():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {"max_ns": 900000}, hist_of({11: number}))))]

    entry = watched(dump(1), dump(2))[0]
    for width in (39, 79, 199):
        assert "<98.3us" in screen.text([entry], width, 0, ""), width
        assert "<-" not in screen.text(watched(dump(1), dump(1)), width, 0, ""), width


@test
def figures_of_a_wide_screen_stand_below_their_headings():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({"forwarded": 40 * number, "arrived_ect1": 50 * number,
                                                            "ect_dropped_aqm": 10 * number}, {}, [40 * number])))]

    shown = screen.text(watched(dump(1), dump(2)), 199, 0, "").splitlines()
    end = shown[1].index("drop ECT") + len("drop ECT")
    equal(shown[2][:end].split()[-2:], ["20.0", "%"])


@test
def nothing_here_says_how_to_add_one():
    equal(report.none_here("eth0", None), "no dualpi2 on eth0; add one: tc qdisc add dev eth0 root dualpi2")
    assert "in network namespace x;" in report.none_here(None, "x")
    for words in (report.none_here(None, None), report.none_here("eth0", None), report.none_here(None, "x")):
        assert "tc qdisc add dev" in words
        for width in (39, 79):
            shown = screen.text([], width, 0, words).split()
            equal(shown, words.split())


@test
def json_is_plain_numbers():
    found = json.loads(json.dumps(report.as_json([busy_entry()], 1.5), allow_nan=False))
    one = found["qdiscs"][0]
    equal(one["queues"]["l4s"]["counters"]["arrived_ce"], 2**61)
    equal(len(one["queues"]["classic"]["histogram"]["begin_ns"]), 96)
    equal(one["queues"]["l4s"]["histogram"]["packets"][7], 2**61)


@test
def report_of_overload_is_a_line():
    event = {"event": "begin", "device": "eth0", "handle": "10:", "parent": "1:a", "count": 1, "duration_ns": 0,
             "start_ns": 1_700_000_000_123_456_789}
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload began")
    event.update(event="end", duration_ns=2_500_000_000, count=3)
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload ended, 2.50s in it, "
                                 "3 times since then")
    assert "lost" in cli.event_text({"lost": True})


# Netlink, against a socket that a test feeds

class FakeSocket:
    """Answers of the kernel, made up; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = 0

    def send(self, data):
        self.sent = struct.unpack_from("=I", data, 8)[0]

    def recvmsg(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        data = b"".join(struct.pack("=IHHII", 16 + len(body), kind, flags, self.sent - late, 0) + body +
                        b"\0" * (-len(body) % 4) for kind, flags, body, late in
                        [(*one, 0)[:4] for one in answer])
        return data, [], 0, None


def message(kind=b"dualpi2", ifindex=1, handle=0x100000, late=0):
    """RTM_NEWQDISC; late: of so many dumps before."""
    return 36, 2, tc_message(app(), ifindex, handle, ROOT, kind, bytes=5, packets=6), late


DONE = (3, 2, struct.pack("=i", 0))
CUT_DONE = (3, 2 | 0x10, struct.pack("=i", 0))


def kernel(*answers):
    """A Kernel that gets these answers."""
    with unittest.mock.patch.object(netlink, "open_socket", lambda *_: FakeSocket(*answers)):
        found = Kernel()
    found.name = lambda number: {1: "lo"}.get(number)
    return found


@test
def dump_lists_dualpi2_alone():
    others = [message(b"fq_codel", handle=0x20000), message(b"dualpi2x", handle=0x30000)]
    found = kernel([*others, message(handle=0x40000, late=1), message()], [DONE]).qdiscs()
    equal([(one.device, netlink.handle_text(one.handle), netlink.handle_text(one.parent), one.bytes, one.packets)
           for one in found],
          [("lo", "10:", "root", 5, 6)])


@test
def cut_dump_is_repeated():
    found = kernel([message(ifindex=1), CUT_DONE], [message(), message(), DONE])
    equal(len(found.qdiscs()), 1)
    equal(found.socket.sequence, 2)


@test
def dump_that_is_always_cut_ends():
    found = kernel(*[[message(), CUT_DONE]] * 11)
    equal(len(found.qdiscs()), 1)


@test
def vanished_device_is_left_out():
    equal(kernel([message(ifindex=77), DONE]).qdiscs(), [])


@test
def name_of_a_device_gives_the_terminal_no_commands():
    found = kernel()
    del found.name
    with unittest.mock.patch.object(netlink.socket, "if_indextoname", lambda _: "a\x1b[2J\udcff\x85ä"):
        equal(found.name(5), "a?[2J??ä")


@test
def refusal_of_the_kernel_is_a_sentence():
    try:
        kernel([(2, 0, struct.pack("=i", -1))]).qdiscs()
    except Trouble as trouble:
        assert "Operation not permitted; run it as root" in str(trouble), trouble
        return
    raise AssertionError("no trouble")


@test
def lost_reports_are_told():
    found = Reports.__new__(Reports)
    found.socket = kernel().socket
    found.socket.sock = FakeSocket(OSError(105, "No buffer space available"))
    equal(found.wait(), [{"lost": True}])


@test
def report_is_decoded_and_module_may_come_anew():
    def family(command, number, group):
        groups = payload.attr(1 | 0x8000, payload.attr(1, b"overload\0") + payload.attr(2, struct.pack("=I", group)))
        return (16, 0, struct.pack("=BBH", command, 2, 0) + payload.attr(1, struct.pack("=H", number)) +
                payload.attr(2, b"dualpi2\0") + payload.attr(7 | 0x8000, groups))

    def report_(number):
        def at(name, data):
            return payload.attr(enum("DUALPI2_A_" + name), data)
        return (number, 0, struct.pack("=BBH", enum("DUALPI2_CMD_OVERLOAD_END"), 1, 0) +
                at("IFINDEX", struct.pack("=I", 1)) + at("HANDLE", struct.pack("=I", 0x100000)) +
                at("PARENT", struct.pack("=I", ROOT)) + at("START_NS", struct.pack("=Q", 5)) +
                at("DURATION_NS", struct.pack("=Q", 6)) + at("COUNT", struct.pack("=I", 7)))

    found = Reports.__new__(Reports)
    found.kernel = kernel()
    found.socket = kernel().socket
    found.group, found.family = 9, 30
    found.socket.sock = FakeSocket([report_(30)], [family(2, 30, 9)], [report_(30)], [family(1, 31, 10)], [report_(31)])
    found.socket.sock.joined = []
    found.socket.sock.setsockopt = lambda level, option, value: found.socket.sock.joined.append((level, option, value))
    want = {"event": "end", "ifindex": 1, "device": "lo", "handle": "10:", "parent": "root", "start_ns": 5,
            "duration_ns": 6, "count": 7}
    equal(found.wait(), [want])
    equal([len(found.wait()) for _ in range(4)], [0, 0, 0, 1])
    equal(found.socket.sock.joined, [(270, 1, 10)])


# Metrics

def exposition(entries):
    """{(name, labels): value} and {name: type} of the metrics as text."""
    values, types = {}, {}
    for line in metrics.text(entries).splitlines():
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
        elif not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("} ")
            if not rest:
                name, _, value = line.partition(" ")
            values[name, labels] = float(value)
    return values, types


@test
def metrics_hold_the_counters():
    entries = watched([qdisc(app(
        xstats={"prob": 0xffffffff}, ext={"prob_c": 0, "prob_cl": 0, "unparsed": 4}, overload={"total_ns": 1500000000},
        link={"drain_rate": 5000000, "throttled": 7, "nqb_arrived": 9, "nqb_dropped": 2, "burst_ns": 4000000,
              "ramp_min_ns": 600000, "ramp_max_ns": 1200000, "limit_pkts": 400, "nqb_limit_bytes": 50000,
              "target_ns": 103000000},
        c=queue({}, {}), l=queue({"arrived_ect1": 3, "ect_dropped_purge": 2, "marked_native": 5},
                                 {"unit_ns": 8192, "sum_ns": 5 * 10**8, "max_ns": 10**9, "beyond": 1}, [4, 2])))])
    values, types = exposition(entries)
    where = 'device="eth0",handle="10:",parent="1:a"'
    for name, labels, value in (
            ("dualpi2_qdiscs", "", 1), ("dualpi2_probability", where + ',of="base"', 1),
            ("dualpi2_arrived_packets_total", where + ',queue="l4s",ecn="ect1"', 3),
            ("dualpi2_dropped_packets_total", where + ',queue="l4s",ecn="ect",cause="purge"', 2),
            ("dualpi2_marked_packets_total", where + ',queue="l4s",marker="native"', 5),
            ("dualpi2_unparsed_packets_total", where, 4), ("dualpi2_overload_seconds_total", where, 1.5),
            ("dualpi2_drain_rate_bytes_per_second", where, 5000000), ("dualpi2_throttled_total", where, 7),
            ("dualpi2_nqb_arrived_packets_total", where, 9), ("dualpi2_nqb_dropped_packets_total", where, 2),
            ("dualpi2_burst_seconds", where, 0.004), ("dualpi2_ramp_min_seconds", where, 0.0006),
            ("dualpi2_ramp_max_seconds", where, 0.0012), ("dualpi2_limit_packets", where, 400),
            ("dualpi2_nqb_limit_bytes", where, 50000), ("dualpi2_target_seconds", where, 0.103)):
        found = {key: number for key, number in values.items()
                 if key[0] == name and set(key[1].split(",")) == set(labels.split(","))}
        equal(list(found.values()), [value], name)
    equal((types["dualpi2_delay_seconds"], types["dualpi2_arrived_packets_total"], types["dualpi2_probability"]),
          ("histogram", "counter", "gauge"))


@test
def metrics_of_qdiscs_without_a_handle_and_of_namespaces_are_told_apart():
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {})), handle=0, parent=parent)
                       for parent in (1, 2)])
    equal([(entry.handle, entry.parent) for entry in entries], [("0:", ":1"), ("0:", ":2")])
    lines = [line.rpartition(" ")[0] for line in metrics.text(entries, "blue").splitlines() if line[0] != "#"]
    equal(len(lines), len(set(lines)))
    assert all('netns="blue"' in line for line in lines), lines
    assert "netns" not in metrics.text(entries)


@test
def metrics_histogram_is_cumulative_and_in_seconds():
    delay = {"unit_ns": 8192, "sum_ns": 5 * 10**8, "beyond": 1, "max_ns": 10**9}
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, delay, [4, 2])))])
    values, _ = exposition(entries)
    buckets = [(re.search(r'\ble="([^"]+)', labels).group(1), value) for (name, labels), value in values.items()
               if name == "dualpi2_delay_seconds_bucket" and "l4s" in labels]
    equal(len(buckets), 97)
    equal((buckets[0], buckets[1], buckets[-1]), (("8.192e-06", 4), ("1.6384e-05", 6), ("+Inf", 7)))
    edges = [float(edge) for edge, _ in buckets]
    assert edges == sorted(set(edges))
    assert all(value <= later for (_, value), (_, later) in zip(buckets, buckets[1:]))
    total = {name: value for (name, labels), value in values.items() if "l4s" in labels}
    equal((total["dualpi2_delay_seconds_count"], total["dualpi2_delay_seconds_sum"]), (7, 0.5))


@test
def metrics_of_old_kernels_have_no_zeros_that_are_not_counted():
    nest = payload.attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), payload.pack("counters", presented=3)[:48])
    names = {name for name, _ in exposition(watched([qdisc(app(ext={}, c=nest, l=nest))]))[0]}
    assert "dualpi2_presented_packets_total" in names
    assert not any(name.startswith(("dualpi2_delay", "dualpi2_forwarded", "dualpi2_dropped", "dualpi2_nqb",
                                    "dualpi2_ramp", "dualpi2_throttled", "dualpi2_drain")) for name in names)
    names = {name for name, _ in exposition(linked({}))[0]}
    assert "dualpi2_throttled_total" in names and "dualpi2_drain_rate_bytes_per_second" not in names
    values, _ = exposition(watched([qdisc(app(xstats={"ecn_mark": 3}), bytes=9)]))
    total = {name: value for (name, _), value in values.items()}
    equal((total["dualpi2_ecn_mark_packets_total"], total["dualpi2_sent_bytes_total"]), (3, 9))
    equal(exposition([])[0], {("dualpi2_qdiscs", ""): 0})


@test
def metrics_file_is_replaced_at_once():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "dualpi2.prom")
        metrics.write(path, "one\n")
        with open(path, encoding="ascii") as before:
            metrics.write(path, "two\n")
            equal(before.read(), "one\n")
        equal((os.listdir(directory), oct(os.stat(path).st_mode & 0o777)), (["dualpi2.prom"], "0o644"))
        with open(path, encoding="ascii") as after:
            equal(after.read(), "two\n")


@test
def metrics_file_that_cannot_be_written_is_a_sentence():
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "sub"))
        for path in (os.path.join(directory, "none/x.prom"), os.path.join(directory, "sub")):
            try:
                metrics.write(path, "x")
            except Trouble as trouble:
                assert "cannot write " + path in str(trouble), trouble
            else:
                raise AssertionError(path)
        equal(os.listdir(directory), ["sub"])


@test
def metrics_take_the_place_of_files_alone():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "link")
        os.symlink("/dev/null", path)
        pipe = os.path.join(directory, "pipe")
        os.mkfifo(pipe)
        for place in (path, pipe):
            try:
                metrics.write(place, "x")
            except Trouble as trouble:
                assert "is no file" in str(trouble), trouble
            else:
                raise AssertionError(place)
        equal((sorted(os.listdir(directory)), os.readlink(path)), (["link", "pipe"], "/dev/null"))


@test
def metrics_file_leaves_nothing_where_a_signal_ends_it():
    with tempfile.TemporaryDirectory() as directory:
        with unittest.mock.patch.object(metrics.os, "replace", side_effect=SystemExit(143)):
            try:
                metrics.write(os.path.join(directory, "x.prom"), "x")
            except SystemExit:
                pass
        equal(os.listdir(directory), [])


@test
def missing_library_is_a_sentence():
    with unittest.mock.patch.dict(sys.modules, {"prometheus_client": None}):
        try:
            metrics.text([])
        except Trouble as trouble:
            assert "apt install python3-prometheus-client" in str(trouble)
        else:
            raise AssertionError("no trouble")


@test
def missing_part_of_python_is_a_sentence():
    program = (f"import sys; sys.path.insert(0, {payload.TOOLS!r}); sys.modules['curses'] = None; "
               "from dualpi2.top.cli import main; sys.exit(main(['--since-start']))")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal((done.returncode, done.stdout), (1, ""))
    assert "apt install python3" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@test
def dashboard_asks_for_metrics_that_exist():
    with open(os.path.join(payload.TOOLS, "share/grafana-dualpi2.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={}, link={"drain_rate": 1}))]
    there, labels = set(), set()
    for name, words in exposition(watched(whole))[0]:
        there.add(name)
        labels.update(re.findall(r'(\w+)="', words))
    asked = 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            for name in re.findall(r"\b(?:dualpi2|node_qdisc)_\w+", target["expr"]):
                asked += 1
                assert name in there, (panel["title"], name)
            for label in re.findall(r"(\w+)(?:=~?|!=)\"", target["expr"]):
                assert label in labels | {"instance", "job"}, (panel["title"], label)
            # Those without a handle differ by their parents alone.
            if "{{handle}}" in target["legendFormat"]:
                assert "{{parent}}" in target["legendFormat"], panel["title"]
            assert "handle" not in target["expr"] or "parent" in target["expr"], panel["title"]
    assert asked >= 10, asked
    for variable in dashboard["templating"]["list"]:
        for name in re.findall(r"\bdualpi2_\w+", str(variable.get("query"))):
            assert name in there, name


# The program

def top(*words, **given):
    """Run it; (code, stdout, stderr)."""
    done = subprocess.run([sys.executable, TOP, *words], capture_output=True, text=True, check=False, timeout=60,
                          **given)
    return done.returncode, done.stdout, done.stderr


@test
def bad_options_are_refused_with_what_to_do():
    for words, want in ((["--interval", "0"], "give seconds from 0.1"), (["--interval", "nan"], "give seconds"),
                        (["--interval", "x"], "give seconds"), (["--output", "x"], "add --openmetrics"),
                        (["--openmetrics", "--json"], "leave the others out"), (["--events", "--once"], "leave out"),
                        (["--frob"], "unrecognized arguments: --frob")):
        code, _, err = top(*words)
        equal(code, 2, words)
        assert want in err, (words, err)


@test
def no_terminal_is_a_sentence():
    code, out, err = top(stdin=subprocess.DEVNULL)
    equal((code, out), (2, ""))
    assert "use --once" in err and len(err.splitlines()) == 1, err


@test
def closed_pipe_is_no_error():
    done = subprocess.run(f"{sys.executable} {TOP} --json --interval 0.1 | head -n 2", shell=True, capture_output=True,
                          text=True, check=False, timeout=60)
    equal((len(done.stdout.splitlines()), done.stderr), (2, ""))


@test
def full_disk_and_closed_streams_are_a_sentence():
    for words in ("--json --interval 0.1 >/dev/full", "<&- >&-"):
        done = subprocess.run(f"{sys.executable} {TOP} {words}", shell=True, capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr


@test
def locale_that_is_not_installed_is_ascii():
    with unittest.mock.patch.dict(os.environ, {"LC_ALL": "xx_XX.UTF-8"}):
        equal(screen.ascii_wanted(), True)


@test
def nohup_is_heeded():
    program = ("import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
               f"sys.path.insert(0, {payload.TOOLS!r}); from dualpi2.top import cli; cli.main(['--since-start']); "
               "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal(done.stdout.splitlines()[-1:], ["True"], done.stderr)


@test
def missing_device_and_namespace_are_sentences():
    for words, want in ((["--once", "--device", "nosuch0"], "there is no device nosuch0"),
                        (["--once", "--netns", "nosuch"], "there is no network namespace nosuch")):
        code, out, err = top(*words)
        equal((code, out), (1, ""), words)
        assert want in err and len(err.splitlines()) == 1, err


@test
def help_and_version_are_said():
    code, out, _ = top("--version")
    equal((code, out.split()[0]), (0, "dualpi2-top"))
    assert out.split()[1][0].isdigit(), out
    code, out, _ = top("--help")
    equal(code, 0)
    with open(os.path.join(payload.TOOLS, "share/dualpi2-top.8"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    for option in re.findall(r"--[a-z-]+", out):
        assert option in page, f"{option} is not in the manual"


@test
def manual_names_every_metric():
    with open(os.path.join(payload.TOOLS, "share/dualpi2-top.8"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={}, link={"drain_rate": 1})),
             qdisc(app(xstats={}), ifindex=3)]
    for name in exposition(watched(whole))[1]:
        assert name in page, name


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
    main()
