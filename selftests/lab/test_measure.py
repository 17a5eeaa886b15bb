#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of measure.py on sightings that are made up, against values computed by hand. KTAP on stdout, some seconds.

No machine is booted: what dumbbell.py and traffic.py do in one is not tested here, but for what they refuse and the
sizes of web objects.
"""

import contextlib
import csv
import json
import os
import socket
import sys
import tempfile
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import dumbbell
import measure
import numpy as np
import traffic
from ktap import expect_equal as equal, main, test

BEGIN_NS = 1_700_000_000_000_000_000
NOT_ECT, ECT1, ECT0, CE = range(4)
MS = 1_000_000
S = 1000 * MS


def close(got, want):
    assert abs(got - want) <= 1e-9 * max(1, abs(want)), f"{got!r} is not {want!r}"


def group(name, **given):
    return {"name": name, "kind": "tcp", "cc": "cubic", "ecn": "off", "rtt_ms": 9, "count": 1, "start": 0,
            "stop": None} | given


def job(*groups, **given):
    return {"format": 1, "experiment": "test", "case": "made-up", "aqm": "none", "seed": 1, "rate": "1mbit",
            "changes": [], "module": None, "qdisc": "none", "warmup": 1, "seconds": 2, "groups": list(groups)} | given


def sightings(packets):
    """Of (arrival ns, delay ns or None if lost, group, flow, seq, id, ECN before, ECN behind, bytes), in any order."""
    rows = []
    for at, delay, net, flow, seq, number, before, behind, size in packets:
        source = 10 << 24 | 8 << 16 | net << 8 | flow
        rows.append((BEGIN_NS + at, source, seq, number, size, before, 0, 0))
        if delay is not None:
            rows.append((BEGIN_NS + at + delay, source, seq, number, size, behind, 1, 0))
    # As the meter writes them: by turns what came and what went in a while, and not always in this order.
    return np.array(sorted(rows, key=lambda r: (r[0] // (50 * MS), -r[6], r[0])), dtype=measure.SIGHTING)


def one(at, delay=0, net=1, flow=1, before=NOT_ECT, behind=None, size=1000, number=[0]):  # noqa: B006
    """A packet of sightings(), with a sequence number of its own; by default unchanged and at once."""
    number[0] += 1
    return (at, delay, net, flow, number[0], number[0] % 65536, before, before if behind is None else behind, size)


def figures(a_job, packets):
    run = {"job": a_job, "start_ns": BEGIN_NS}
    return measure.Run(run, *measure.pair(sightings(packets))).figures()


# Pairing

@test
def pair_tells_delayed_from_lost():
    came, went, lost = measure.pair(sightings([one(10, 5), one(20, None), one(30, 100), one(40, 0)]))
    equal(sorted((went["ns"] - came["ns"]).tolist()), [0, 5, 100])
    equal((lost["ns"] - BEGIN_NS).tolist(), [20])


@test
def pair_keeps_a_retransmission_apart_from_what_was_lost():
    first, again = (10, None, 1, 1, 777, 4, 0, 0, 1514), (5 * MS, 3, 1, 1, 777, 5, 0, 0, 1514)
    came, went, lost = measure.pair(sightings([first, again]))
    equal((len(came), int(went["ns"][0] - came["ns"][0]), len(lost)), (1, 3, 1))


@test
def pair_keeps_flows_with_equal_numbers_apart():
    same = [(10, 7, 1, 1, 5, 5, 0, 0, 100), (11, 70, 1, 2, 5, 5, 0, 0, 100), (12, None, 2, 1, 5, 5, 0, 0, 100)]
    came, went, lost = measure.pair(sightings(same))
    equal(sorted((went["ns"] - came["ns"]).tolist()), [7, 70])
    equal([hex(a) for a in lost["saddr"]], ["0xa080201"])


@test
def pair_udp_survives_wraps_of_the_identification_with_losses():
    """200 Mbit/s of UDP on 100: 17000 packets/s, each with the same length and checksum, half of them lost."""
    chance = np.random.default_rng(1)
    count, gap = 250_000, 58_800  # wraps after 3.9 s
    lost = chance.random(count) < 0.5
    lost[60_000:130_000] = True  # longer than a wrap
    delay = 15 * MS + np.arange(count) % 999  # known by it, and in order
    packets = [(n * gap, None if lost[n] else int(delay[n]), 3, 1, 99, n % 65536, ECT1, CE, 1512) for n in range(count)]
    came, went, gone = measure.pair(sightings(packets))
    number = ((came["ns"] - np.uint64(BEGIN_NS)) // np.uint64(gap)).astype(int)
    assert not lost[number].any() and len(number) == (~lost).sum(), "a lost packet was paired"
    equal(((went["ns"] - came["ns"]).astype(int) != delay[number]).sum(), 0)
    equal(len(gone), int(lost.sum()))


# Percentiles

@test
def percentile_is_the_value_at_index_ceil_of_p_times_n():
    """DualPI2 paper, calc_mix: of 250 samples P1 is the third lowest."""
    of_250 = np.arange(1, 251)
    equal([measure.percentile(of_250, p) for p in (1, 25, 50, 75, 99)], [3, 63, 125, 188, 248])
    of_1000 = np.arange(1, 1001)
    equal([measure.percentile(of_1000, p) for p in (1, 99, 99.9, 100)], [10, 990, 999, 1000])
    # 0.07 * 100 is more than 7 in binary.
    equal(measure.percentile(np.arange(1, 101), 7), 7)
    equal(measure.percentile(np.array([5]), 1), 5)


@test
def describe_gives_mean_extremes_and_deviation_of_the_population():
    got = measure.describe(np.array([4.0, 1, 3, 2]), {"p25": 25})
    equal(got["mean"], 2.5)
    equal((got["p25"], got["max"]), (1, 4))
    close(got["stddev"], 1.25 ** 0.5)


@test
def describe_of_nothing_is_none_for_each():
    equal(measure.describe(np.array([]), {"p1": 1}), {"mean": None, "p1": None, "max": None, "stddev": None})


# Figures of a run

@test
def figures_count_what_leaves_while_measured():
    packets = [one(S - 10, 9), one(S - 10, 10), one(2 * S, 5), one(3 * S - 2, 1), one(3 * S - 2, 2),
               one(S - 1, None), one(S, None), one(3 * S, None)]
    summary, rows, _ = figures(job(group("A")), packets)
    own = summary["groups"]["A"]
    equal((own["packets"], own["dropped"]), (3, 1))
    equal([(r[0], r[1], r[2], r[9]) for r in rows],
          [("1", "all", 1, 1), ("2", "all", 2, 0), ("1", "A", 1, 1), ("2", "A", 2, 0)])
    close(own["delay_ms"]["mean"], (10 + 5 + 1) / 3 / 1e6)
    # 8000 and 16000 bit in the two seconds; a link of 1 Mbit/s.
    close(own["mbit"]["mean"], 0.012)
    close(summary["all"]["utilization_pct"]["mean"], 1.2)
    close(summary["all"]["utilization_pct"]["p1"], 0.8)


@test
def aggregates_are_packets_that_arrive_together():
    packets = [one(S + at, delay) for at, delay in (
        (0, 1), (1000, 3), (2000, None), (4 * MS, 1), (4 * MS, 2), (9 * MS, 5 * MS), (9 * MS + 10_001, 1),
        (13 * MS, 1))]
    packets += [one(S + 2 * MS, 1, net=2), one(S - 1, 1), one(3 * S, 1)]
    groups = figures(job(group("A", aggregate_ms=4), group("B")), packets)[0]["groups"]
    found = groups["A"]["aggregates"]
    # The first and the last one may be cut.
    equal((found["count"], found["packets"]["mean"], found["packets"]["max"]), (5, 4 / 3, 2.0))
    close(found["long_ms"]["max"], 0.002)
    close(found["apart_ms"]["mean"], 13 / 4)
    assert "aggregates" not in groups["B"], groups["B"]
    equal(measure.aggregates(np.array([], dtype="u8"))["count"], 0)


@test
def marks_are_new_ce_of_all_packets_of_a_second():
    first = [one(S + 1, 1, before=ECT1, behind=CE), one(S + 2, 1, before=ECT0, behind=CE), one(S + 3, 1, before=CE),
             one(S + 4, 1)]
    second = [one(2 * S + n, 1, before=ECT1, behind=CE if n < 1 else ECT1) for n in range(8)]
    own = figures(job(group("A")), first + second)[0]["groups"]["A"]
    equal((own["marked"], own["ecn_packets"], own["packets"], own["rewritten_wrongly"]), (3, 11, 12, 0))
    close(own["mark_pct"]["mean"], (50 + 12.5) / 2)
    equal(own["mark_pct"]["max"], 50)


@test
def marks_that_must_not_be_are_rewritten_wrongly():
    wrong = [one(S + 1, 1, behind=CE), one(S + 2, 1, before=ECT1, behind=ECT0), one(S + 3, 1, before=CE, behind=ECT1),
             one(S + 4, 1, behind=ECT1), one(S + 5, 1, before=ECT0, behind=NOT_ECT)]
    equal(figures(job(group("A")), wrong)[0]["groups"]["A"]["rewritten_wrongly"], 5)


@test
def drops_are_those_of_packets_and_drops_of_a_second():
    packets = [one(S + 1, 1), one(S + 2, None), one(2 * S + 1, None), one(2 * S + 2, 1), one(2 * S + 3, 1),
               one(2 * S + 4, 1)]
    own = figures(job(group("A")), packets)[0]["groups"]["A"]
    close(own["drop_pct"]["mean"], (50 + 25) / 2)
    # A second in which all was lost has a drop probability and no mark probability.
    own = figures(job(group("A")), [one(S + 1, None), one(2 * S, 1)])[0]["groups"]["A"]
    equal((own["drop_pct"]["max"], own["drop_pct"]["mean"], own["mark_pct"]["mean"]), (100, 50, 0))


@test
def groups_are_sampled_while_they_are_active():
    packets = [one(2 * S + 1, 1, net=2, size=1250), one(3 * S + 1, 1, net=2, size=1250)]
    late = group("B", start=2, stop=4)
    summary, _, _ = figures(job(group("A"), late, seconds=5), packets)
    own = summary["groups"]["B"]
    equal(own["active_seconds"], 2)
    close(own["mbit"]["mean"], 0.01)
    close(own["mbit_per_flow"], 0.01)
    equal(summary["groups"]["A"]["flows_without_data"], 1)
    equal(summary["groups"]["A"]["delay_ms"]["p99_9"], None)


@test
def utilization_follows_the_changes_of_the_link():
    changes = [{"at": 1.5, "rate": "500kbit"}, {"at": 3, "rate": "2mbit"}]
    equal(measure.mean_rates(job(seconds=3, changes=changes)).tolist(), [0.75e6, 0.5e6, 2e6])
    summary, _, _ = figures(job(group("A"), seconds=3, changes=changes),
                            [one(S + n, 1, size=n) for n in range(10, 1510, 10)])
    close(summary["all"]["utilization_pct"]["max"], 100 * sum(range(10, 1510, 10)) * 8 / 0.75e6)


@test
def flows_are_compared_by_jain_and_window():
    packets = [one(S + n, MS, flow=1 + n % 4 // 3, size=1250) for n in range(1600)]
    summary, _, _ = figures(job(group("A", count=2)), packets)
    own = summary["groups"]["A"]
    # 1200 and 400 packets of 10 kbit in 2 s.
    equal([f["mbit"] for f in summary["flows"]], [6.0, 2.0])
    close(own["jain"], 64 / (2 * 40))
    close(own["window_bytes"], 4e6 / 8 * (1 + 9) / 1e3)
    equal(measure.jain([0, 0]), None)


# (second, group, source, smoothed RTT in us, packets, bytes): as in tcp.csv, of a run of 1 s of warm-up and 2 s.
SAMPLES = [("1.000000", "A", "10.8.1.1", "5000", "9", "1000"), ("1.000000", "A", "10.8.1.2", "5000", "9", "500"),
           ("2.000000", "A", "10.8.1.1", "6000", "10", "126000"), ("2.000000", "A", "10.8.1.2", "8000", "20", "500"),
           ("3.000000", "A", "10.8.1.1", "9000", "40", "126000"),
           ("3.000000", "A", "10.8.1.2", "11000", "50", "250500"), ("2.500000", "B", "10.8.2.1", "1000", "3", "125000")]


@test
def tcp_figures_are_means_over_flows_and_of_bytes_acknowledged_the_sum():
    a_job = job(group("A", count=2), group("B", stop=2.5), group("U", kind="udp"))
    equal(measure.tcp_seconds(a_job, SAMPLES),
          {"A": {0: (7.0, 15.0, 1.0), 1: (10.0, 45.0, 2.0)}, "B": {1: (1.0, 3.0, 1.0)}})
    run = measure.Run({"job": a_job, "start_ns": BEGIN_NS}, *measure.pair(sightings([one(S + 1, 1)])), SAMPLES)
    summary, rows, _ = run.figures()
    found = {name: [own[key] for key in measure.TCP_FIGURES] for name, own in summary["groups"].items()}
    # B is active in the first second only, and has no sample of it.
    equal(found, {"A": [8.5, 30.0, 1.5], "B": [None] * 3, "U": [None] * 3})
    equal([(row[0], row[1], *row[10:]) for row in rows if row[1] in "AB"], [
        ("1", "A", "7.000000", "15.000000", "1.000000"), ("2", "A", "10.000000", "45.000000", "2.000000"),
        ("1", "B", "", "", ""), ("2", "B", "1.000000", "3.000000", "1.000000")])
    # A second without a sample is one without goodput; one after the end is none.
    late = [row for row in SAMPLES if row[0] != "2.000000"] + [("4.000000", "A", "10.8.1.1", "1", "1", "999999")]
    run = measure.Run({"job": a_job, "start_ns": BEGIN_NS}, *measure.pair(sightings([one(S + 1, 1)])), late)
    equal(list(run.tcp["A"]), [1])
    equal(run.tcp_figures(a_job["groups"][0]), {"srtt_ms": 10.0, "cwnd_packets": 45.0, "goodput_mbit": 1.5})


@test
def histogram_buckets_are_exact_at_first_then_within_one_per_cent():
    equal(measure.histogram(np.array([0, 127, 127, 255, 257, 1_000_000])),
          [(0, 1, 1), (127, 128, 2), (255, 256, 1), (256, 258, 1), (999_424, 1_003_520, 1)])
    for value in np.random.default_rng(1).integers(100, 10 * S, 3000):
        (low, high, count), = measure.histogram(np.array([value]))
        assert low <= value < high and high - low <= max(1, low / 100) and count == 1, (value, low, high)


# Files

@contextlib.contextmanager
def run_directory(a_job, packets):
    with tempfile.TemporaryDirectory() as path:
        with open(f"{path}/run.json", "w", encoding="utf-8") as file:
            json.dump({"job": a_job, "start_ns": BEGIN_NS, "kernel": "test", "before": None, "after": None}, file)
        sightings(packets).tofile(f"{path}/sightings")
        yield path


@test
def reduce_leaves_the_kept_results_and_removes_the_raw_ones():
    with run_directory(job(group("A")), [one(S + 1, 1500)]) as path:
        with open(f"{path}/tcp.csv", "w", encoding="ascii") as file:
            csv.writer(file).writerows([["head"], *SAMPLES[::2]])
        measure.reduce(path, keep_raw=True)
        equal(sorted(os.listdir(path)), ["histogram.csv", "run.json", "seconds.csv", "sightings", "summary.json",
                                         "tcp.csv"])
        measure.reduce(path)
        equal(sorted(os.listdir(path)), ["histogram.csv", "run.json", "seconds.csv", "summary.json"])
        with open(f"{path}/seconds.csv", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        equal(rows[2], {"second": "1", "group": "A", "packets": "1", "mbit": "0.008000", "delay_mean_ms": "0.001500",
                        "delay_p50_ms": "0.001500", "delay_p99_ms": "0.001500", "marked": "0", "ecn_packets": "0",
                        "dropped": "0", "srtt_ms": "6.000000", "cwnd_packets": "10.000000", "goodput_mbit": "1.000000"})
        equal(rows[3]["delay_mean_ms"], "")
        with open(f"{path}/histogram.csv", encoding="ascii") as file:
            equal(file.read().split(), ["group,delay_us_from,delay_us_to,packets", "all,1.496,1.504,1",
                                        "A,1.496,1.504,1"])
        with open(f"{path}/summary.json", encoding="utf-8") as file:
            kept = json.load(file)
            equal((kept["format"], kept["own"], kept["groups"]["A"]["srtt_ms"]), (1, {}, 7.5))


@test
def reduce_of_a_run_without_tcp_leaves_its_figures_empty():
    with run_directory(job(group("U", kind="udp", ecn="ect1")), [one(S + 1, 1500)]) as path:
        measure.reduce(path)
        with open(f"{path}/seconds.csv", encoding="ascii") as file:
            equal({row[key] for row in csv.DictReader(file) for key in measure.TCP_FIGURES}, {""})


@test
def evaluate_gives_the_classes_l_and_c():
    packets = [one(S + 1, 2 * MS, net=1, before=ECT1, behind=CE), one(S + 2, 2 * MS, net=1, before=ECT1),
               one(S + 3, 4 * MS, net=2), one(S + 4, None, net=2)]
    with run_directory(job(group("l"), group("c"), qdisc="none x"), packets) as path:
        got = measure.evaluate(path)
    equal((got["aqm"], got["rate"], got["rtt"], got["seconds"]), ("none x", "1mbit", "9ms", 2))
    equal((got["l"]["marked_pct"], got["l"]["lost"], got["c"]["lost"], got["c"]["lost_pct"]), (50, 0, 1, 50))
    equal((got["l"]["delay_ms"]["p99"], got["c"]["delay_ms"]["mean"]), (2, 4))


@test
def classes_are_their_groups_together():
    packets = [one(S + 1, 1 * MS, net=1, before=ECT1), one(S + 2, 3 * MS, net=2, before=ECT1, behind=CE),
               one(S + 3, 8 * MS, net=3), one(S + 4, None, net=3)]
    groups = group("A", ecn="l4s"), group("U", kind="udp", ecn="ect1"), group("B", ecn="classic")
    summary, _, _ = figures(job(*groups), packets)
    low, classic = summary["classes"]["l4s"], summary["classes"]["classic"]
    equal((low["packets"], low["delay_ms"]["mean"], low["delay_ms"]["max"], low["marked"]), (2, 2, 3, 1))
    equal((classic["packets"], classic["dropped"], classic["delay_ms"]["mean"]), (1, 1, 8))
    equal(list(figures(job(group("B", ecn="off")), [one(S + 3, 8 * MS)])[0]["classes"]), ["classic"])


# What the qdisc says itself

UNIT_NS = 8192


def own(delays, generation=1, before=()):
    """A queue's "delay" as tc -j prints it, with buckets of 8192 ns up to 65536 ns; delays in ns, those before too."""
    delays = [*before, *delays]
    buckets = [(n * UNIT_NS, (n + 1) * UNIT_NS, sum(d // UNIT_NS == n for d in delays)) for n in range(8)]
    return {"mean-ns": int(np.mean(delays)), "p50-ns": 50, "p90-ns": 90, "p99-ns": 99, "p999-ns": 999,
            "max-ns": max(delays), "count": len(delays), "sum-ns": sum(delays) % 2 ** 64,
            "beyond": sum(d >= 8 * UNIT_NS for d in delays), "beyond-ns": 8 * UNIT_NS, "generation": generation,
            "unit-ns": UNIT_NS, "buckets": [{"from-ns": a, "to-ns": b, "packets": n} for a, b, n in buckets if n]}


@test
def bucket_at_is_the_one_with_the_packet_of_that_rank():
    buckets = {(8, 16): 90, (16, 32): 9, (64, 128): 1}
    equal(measure.bucket_at(buckets, 50), (8, 16, 8 + 8 * 49.5 / 90))
    equal(measure.bucket_at(buckets, 90)[:2], (8, 16))
    equal(measure.bucket_at(buckets, 90.1)[:2], (16, 32))
    equal(measure.bucket_at(buckets, 99), (16, 32, 16 + 16 * 8.5 / 9))
    equal(measure.bucket_at(buckets, 99.9), (64, 128, 96))
    equal(measure.bucket_at({}, 50), None)


@test
def own_histogram_is_what_came_between_two_answers():
    first = own([1000, 70000])
    then = own([1001, 1002, 9000, 90000], before=[1000, 70000])
    equal(measure.own_histogram(first, then), ({(0, 8192): 2, (8192, 16384): 1, (65536, float("inf")): 1}, 101003))
    equal(measure.own_histogram(None, first), ({(0, 8192): 1, (65536, float("inf")): 1}, 71000))
    # The sum wraps around at 2^64.
    equal(measure.own_histogram(first | {"sum-ns": 2 ** 64 - 5}, then | {"sum-ns": 7})[1], 12)


@test
def own_figures_are_beside_those_of_the_same_packets():
    l4s, classic = group("A", ecn="l4s"), group("B")
    packets = [one(S // 2, 20000, net=1, before=ECT1), *(one(S + n, 1000 * n, net=1, before=ECT1) for n in range(1, 6)),
               # Of the L4S sender, but without ECT.
               *(one(S + n, 10000 * n, net=2) for n in range(1, 3)), one(S + 9, 30000, net=1),
               one(3 * S + 1, 60000, net=1, before=ECT1)]
    said = {"before": {"l4s": {"delay": own([20000])}, "classic": {"delay": own([5])}},
            "after": {"l4s": {"delay": own(range(1000, 6000, 1000), before=[20000])},
                      "classic": {"delay": own([10000, 20000, 30000], before=[5])}}}
    run = {"job": job(l4s, classic), "start_ns": BEGIN_NS} | said
    came, went, _ = measure.pair(sightings(packets))
    got = measure.beside_own(run, came, went)
    low, whole = got["l4s"]["measured"], got["l4s"]["since_start"]
    equal(low["packets"], {"own": 5, "seen": 5})
    equal(low["mean"], {"own_ms": 0.003, "seen_ms": 0.003})
    close(low["p50"]["own_ms"], 8192 * 2.5 / 5 / 1e6)
    equal((low["p50"]["from_ms"], low["p50"]["to_ms"], low["p50"]["seen_ms"]), (0, 0.008192, 0.003))
    assert "max" not in low, low
    # As tc prints it, and the bucket that it should be in.
    equal((whole["packets"], whole["max"]), ({"own": 6, "seen": 6}, {"own_ms": 0.02, "seen_ms": 0.02}))
    equal(whole["p99_9"], {"own_ms": 0.000999, "from_ms": 0.016384, "to_ms": 0.024576, "seen_ms": 0.02})
    equal((whole["p90"]["own_ms"], whole["mean"]["own_ms"]), (90 / 1e6, 5833 / 1e6))
    equal(got["classic"]["measured"]["packets"], {"own": 3, "seen": 3})
    equal(got["classic"]["measured"]["p99"]["seen_ms"], 0.03)


@test
def own_figures_are_left_out_where_there_are_none():
    packets = [one(S + 1, 1000, before=ECT1)]
    came, went, _ = measure.pair(sightings(packets))
    run = {"job": job(group("A", ecn="l4s")), "start_ns": BEGIN_NS}
    for before, after in ((None, None), ({"prob": 1}, {"prob": 2}), ({"l4s": {}}, {"l4s": {}}),
                          ({"l4s": {"delay": own([1])}}, {"l4s": {"delay": own([1], 2)}})):
        equal(measure.beside_own(run | {"before": before, "after": after}, came, went), {}, (before, after))
    # A queue without a packet has a histogram of nothing.
    nothing = own([1]) | {"count": 0, "buckets": []}
    said = {"l4s": {"delay": nothing}}
    equal(measure.beside_own(run | {"before": said, "after": said}, came, went), {"l4s": {}})


def refused(function, *args):
    """The one line that a function ends the program with."""
    try:
        function(*args)
    except SystemExit as error:
        words = str(error.code)
        assert "\n" not in words and len(words) > 20, words
        return words
    raise AssertionError("not refused")


@test
def load_refuses_what_is_no_run():
    with run_directory(job(group("A")), [one(S, 1)]) as path:
        open(f"{path}/sightings", "wb").close()
        assert "no packet" in refused(measure.load, path)
        os.remove(f"{path}/sightings")
        assert "no raw data" in refused(measure.load, path)
        with open(f"{path}/run.json", "w", encoding="utf-8") as file:
            file.write('{"args": {}}')
        sightings([one(1)]).tofile(f"{path}/sightings")
        assert "older format" in refused(measure.load, path)


# What goes into a run

@test
def read_job_refuses_what_it_cannot_run():
    def read(content):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(content, file)
            file.flush()
            return dumbbell.read_job(file.name)

    good = job(group("A"))
    equal(read(good), good)
    for change, word in (({"format": 2}, "format 2"), ({"rate": "fast"}, "40mbit"), ({"rate": "0mbit"}, "nothing"),
                         ({"groups": [group("A", kind="ftp")]}, "ftp"), ({"groups": [{"kind": "web"}]}, "alpha"),
                         ({"groups": [group("A", count=251)]}, "250"),
                         ({"groups": [group(str(n), rtt_ms=n) for n in range(17)]}, "round-trip"),
                         ({"groups": [group(str(n), aggregate_ms=4) for n in range(16)]}, "at most 15 can"),
                         ({"shaper": "tbf"}, "htb, own"),
                         ({"groups": [group("A", cc="bbr", pacing=False)]}, "bbr paces by itself"),
                         ({"groups": [group("A", parameters={"x": 1})]}, "only prague"),
                         ({"groups": [group("A", cc="prague", parameters={"x": 1}), group("B", cc="prague")]},
                          "A and B want different parameters of the module tcp_prague: {'x': 1} and none")):
        assert word in refused(read, good | change), word
    assert "lacks qdisc" in refused(read, {k: v for k, v in good.items() if k != "qdisc"})


@test
def pareto_sizes_are_bounded_and_follow_the_law():
    equal(traffic.pareto(0, 0.9, 1000, 1_000_000), 1000)
    assert 999_000 < traffic.pareto(1 - 1e-12, 0.9, 1000, 1_000_000) <= 1_000_000
    # P(X > x) = ((x/least)^-0.9 - 1000^-0.9) / (1 - 1000^-0.9): at x = 10000 12.41 %.
    share = np.mean([traffic.pareto((n + 0.5) / 10_000, 0.9, 1000, 1_000_000) > 10_000 for n in range(10_000)])
    assert abs(share - 0.1241) < 0.0002, share


@test
def tcp_info_is_kept_of_a_flow_that_runs_and_when_it_stops():
    flow = {"group": "A", "src": "10.8.1.1", "stop": 4.5}
    made = traffic.Traffic(job(group("A")))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sock:
        peer, _ = server.accept()
        made.sampled[sock] = flow
        sock.send(bytes(5000))
        end = time.monotonic() + 60
        while not made.samples or made.samples[-1][5] <= 5000:
            assert time.monotonic() < end, made.samples
            made.sample_all(1)
        at, name, source, rtt_us, cwnd, acked = made.samples[-1]
        # With that of the SYN.
        equal((at, name, source, acked), ("1.000000", "A", "10.8.1.1", 5001))
        assert 0 < rtt_us < 60_000_000 and 1 < cwnd < 1000, made.samples
        # Once a second until the end, at 3 s.
        equal({when for when, *_ in made.due}, {2})
        made.due.clear()
        made.sample_all(3)
        equal(made.due, [])
        made.cut(sock)
        equal((made.samples[-1][0], made.sampled), ("4.500000", {}))
        peer.close()
    # One that is not connected yet has none.
    made.samples.clear()
    with socket.socket() as sock:
        made.sampled[sock] = flow
        made.sample_all(3)
    equal(made.samples, [])


@test
def jitter_is_half_a_packet_of_the_fastest_link():
    # 12112 bits at 40 Mbit/s are 302.8 us.
    close(dumbbell.jitter_us(job(group("A"), rate="40mbit")), 151.4)
    close(dumbbell.jitter_us(job(group("A"), rate="20mbit", changes=[{"at": 1, "rate": "100mbit"}])), 60.56)
    equal(dumbbell.jitter_us(job(group("A"), jitter=False)), 0)


if __name__ == "__main__":
    main()
