#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Evaluate what dumbbell.py left: delay, rate, marks and drops of each group of flows.

The numbers are those of the DualPI2 paper's appendix B: the delay of each packet at its departure from the queue; rates
on the wire (with Ethernet headers), marks and drops as samples of one second. All of it is made of sightings of
packets; what a qdisc says of its delays itself is put beside them, and nothing else of it. Smoothed RTT, window and
goodput are those of the senders' TCP (tcp.csv).

usage: measure.py reduce [--keep-raw] DIRECTORY...   leave summary.json, seconds.csv and histogram.csv there
       measure.py DIRECTORY...                       print a line on a run with the classes l and c
"""

import argparse
import csv
import json
import math
import os
import sys

import numpy as np
from job import bits_per_second

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))

from dualpi2.kernel.stats import bucket_of_rank, rank_of  # noqa: E402

FORMAT = 1
SIGHTING = np.dtype([("ns", "u8"), ("saddr", ">u4"), ("seq", "u4"), ("id", "u2"), ("bytes", "u2"),
                     ("ecn", "u1"), ("outgoing", "u1"), ("pad", "u2")])
CLASSES = {"l": 1, "c": 2}  # third byte of the source address in a job of the short options
CE = 3
L4S = ("l4s", "ect1")  # a group's "ecn"; the others are Classic
DELAY_LEVELS = {"p1": 1, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p99": 99, "p99_9": 99.9}
SAMPLE_LEVELS = {"p1": 1, "p25": 25, "p75": 75, "p99": 99}
# Packets of an aggregate are no further apart than this; on the way to the router nothing delays one of them.
TOGETHER_NS = 10_000
# Buckets are linear within an octave: at most 1/128 wide, and exact below 128 ns.
BUCKETS_BITS = 7
# Of a group's TCP flows: smoothed RTT and window, means over the flows; bytes acknowledged of all of them together.
TCP_FIGURES = ("srtt_ms", "cwnd_packets", "goodput_mbit")
# What tc prints of a queue's delays, and what that is called here.
TC_LEVELS = {"p50": "p50-ns", "p90": "p90-ns", "p99": "p99-ns", "p99_9": "p999-ns"}


def pair(data):
    """Pair arrivals with departures: (arrived, departed, lost), the first two packet by packet.

    A packet is known by source, TCP sequence number (or UDP length and checksum) and IP identification. These repeat,
    at the earliest after 65536 packets of a flow; so of equal ones, in order of time, a departure belongs to the
    arrival right before it, and an arrival that none follows is a packet that was lost. That holds while no packet
    waits for as long as 65536 others take to be sent.
    """
    # Within 10.8.0.0/16, so identity is one word.
    identity = ((data["saddr"].astype(np.uint64) & np.uint64(0xffff)) << np.uint64(48)
                | data["id"].astype(np.uint64) << np.uint64(32) | data["seq"])
    order = np.lexsort((data["ns"] << np.uint64(1) | data["outgoing"], identity))
    identity = identity[order]
    departure = data["outgoing"][order] != 0
    first = np.flatnonzero((identity[1:] == identity[:-1]) & ~departure[:-1] & departure[1:])
    lost = ~departure
    lost[first] = False
    return data[order[first]], data[order[first + 1]], data[order[lost]]


def percentile(ordered, level):
    """Value at index ceil(level/100 * n), counted from 1, of n >= 1 ordered ones (paper); level in per cent, by 0.1."""
    return float(ordered[rank_of(level, len(ordered)) - 1])


def describe(values, levels):
    """Mean, percentiles, extremes and standard deviation of any values; None for each if there are none."""
    names = ["mean", *levels, "max", "stddev"]
    if not len(values):
        return dict.fromkeys(names)
    ordered = np.sort(values)
    return dict(zip(names, (float(ordered.mean()), *(percentile(ordered, v) for v in levels.values()),
                            float(ordered[-1]), float(ordered.std()))))


def jain(rates):
    """Jain's index of fairness, (sum x)^2 / (n sum x^2), 1/n to 1; None if nobody got anything."""
    rates = np.asarray(rates, dtype=float)
    return float(rates.sum() ** 2 / (len(rates) * (rates ** 2).sum())) if rates.any() else None


def histogram(delay_ns):
    """Rows (from, to, packets) of non-empty buckets, in ns, `to` not included; log-linear, see BUCKETS_BITS."""
    shift = np.maximum(np.frexp(delay_ns.astype(float))[1] - BUCKETS_BITS - 1, 0)
    # A float rounds numbers of more than 53 bits up; delays are smaller.
    low = delay_ns >> shift << shift
    edges, first, packets = np.unique(low, return_index=True, return_counts=True)
    return list(zip(edges.tolist(), (edges + (1 << shift[first])).tolist(), packets.tolist()))


def bucket_at(buckets, level):
    """(from, to, delay) in ns of the packet that percentile() means, of a histogram {(from, to): packets} as tc has it.

    None of an empty one.
    """
    edges = sorted(buckets)
    packets = [buckets[edge] for edge in edges]
    found = bucket_of_rank(packets, rank_of(level, sum(packets)))
    if found is None:
        return None
    low, high = edges[found[0]]
    return low, high, low + (high - low) * float(found[1])


def own_histogram(before, after):
    """What a queue's histogram rose by between two answers of tc, as for bucket_at(), and by how much its sum did.

    before: None for a histogram's whole life. Packets beyond the last bucket are in one that does not end.
    """
    found = {}
    for said, sign in ((after, 1), (before, -1)):
        if said:
            rows = [((b["from-ns"], b["to-ns"]), b["packets"]) for b in said["buckets"]]
            for edges, packets in [*rows, ((said["beyond-ns"], math.inf), said["beyond"])]:
                found[edges] = found.get(edges, 0) + sign * packets
    return ({e: n for e, n in found.items() if n}, (after["sum-ns"] - (before["sum-ns"] if before else 0)) % 2 ** 64)


def own_delays(before, after, seen_ns):
    """What tc said of a queue's delays beside what was seen of them: {"mean", "max", "p50" ...: {"own_ms", "seen_ms"}}.

    Percentiles have the edges of their bucket, too. before: None to take the figures that tc printed, as they are.
    """
    buckets, sum_ns = own_histogram(before, after)
    packets, seen = sum(buckets.values()), np.sort(seen_ns)
    if not packets or not len(seen):
        return None
    found = {"packets": {"own": packets, "seen": len(seen)},
             "mean": {"own_ms": sum_ns / packets / 1e6, "seen_ms": float(seen.mean()) / 1e6}}
    if not before:
        found["max"] = {"own_ms": after["max-ns"] / 1e6, "seen_ms": float(seen[-1]) / 1e6}
        found["mean"]["own_ms"] = after["mean-ns"] / 1e6
    for name, word in TC_LEVELS.items():
        low, high, own = bucket_at(buckets, DELAY_LEVELS[name])
        found[name] = {"own_ms": (own if before else after[word]) / 1e6, "from_ms": low / 1e6, "to_ms": high / 1e6,
                       "seen_ms": percentile(seen, DELAY_LEVELS[name]) / 1e6}
    return found


def beside_own(run, came, went):
    """The qdisc's own figures of its queues' delays beside what was seen: {"l4s"|"classic": {span: own_delays()}}.

    Spans are "measured", by the difference of two answers, and "since_start", as tc prints it. Empty for a qdisc that
    says nothing of that, and where a queue's histogram was reset meanwhile.
    """
    job, found = run["job"], {}
    begin = run["start_ns"] + round(job["warmup"] * 1e9)
    end = begin + job["seconds"] * 10**9
    delay_ns = (went["ns"] - came["ns"]).astype(np.int64)
    for name in ("l4s", "classic"):
        before, after = (((run[when] or {}).get(name) or {}).get("delay") for when in ("before", "after"))
        if not before or not after or before["generation"] != after["generation"]:
            continue
        # By codepoint, as the queues are: SYNs of an L4S sender are Not-ECT.
        mine = ((came["ecn"] & 1) == (name == "l4s")) & (went["ns"] < end)
        spans = {"measured": own_delays(before, after, delay_ns[mine & (went["ns"] >= begin)]),
                 "since_start": own_delays(None, after, delay_ns[mine])}
        found[name] = {span: what for span, what in spans.items() if what}
    return found


def mean_rates(job):
    """Mean link rate in bit/s in each second measured, with the changes on the way."""
    steps = sorted([(0.0, job["rate"]), *((c["at"], c["rate"]) for c in job["changes"])], key=lambda s: s[0])
    times = np.array([t for t, _ in steps])
    rates = np.array([bits_per_second(r) for _, r in steps])
    edges = job["warmup"] + np.arange(job["seconds"] + 1)
    # Bits that the link can carry until a time are linear between the changes.
    until = np.concatenate(([0], np.cumsum(np.diff(times) * rates[:-1])))
    last = np.searchsorted(times, edges, side="right") - 1
    return np.diff(until[last] + (edges - times[last]) * rates[last])


def aggregates(arrived_ns):
    """What arrived together: how many times, packets of one, ms from the first to the last of one and between firsts.

    arrived_ns: times of arrival, in any order.
    """
    times = np.sort(arrived_ns).astype(np.int64)
    first = np.flatnonzero(np.diff(times, prepend=-TOGETHER_NS - 1) > TOGETHER_NS)
    last = np.append(first[1:], len(times))[:len(first)] - 1
    levels = {"p1": 1, "p50": 50, "p99": 99}
    return {"count": len(first), "packets": describe((last - first + 1)[1:-1], levels),
            "long_ms": describe((times[last] - times[first]) / 1e6, levels),
            "apart_ms": describe(np.diff(times[first]) / 1e6, levels)}


def tcp_seconds(job, samples):
    """TCP_FIGURES of each group in the seconds measured, {group: {second, from 0 on: (value, value, value)}}.

    samples: rows of tcp.csv (second, group, source, smoothed RTT in us, window in packets, bytes acknowledged) in order
    of time. A sample is of the second that ends with it.
    """
    acked, found = {}, {}
    for at, group, source, rtt_us, cwnd, total in samples:
        second = math.ceil(float(at)) - 1 - job["warmup"]
        new = int(total) - acked.get(source, 0)
        acked[source] = int(total)
        if 0 <= second < job["seconds"]:
            found.setdefault(group, {}).setdefault(second, []).append((int(rtt_us) / 1e3, int(cwnd), new * 8 / 1e6))
    return {group: {second: (*np.mean(rows, axis=0)[:2].tolist(), sum(row[2] for row in rows))
                    for second, rows in seconds.items()} for group, seconds in found.items()}


class Run:
    """The packets of one run that left, or were lost, in the seconds measured; times in ns since these began."""

    def __init__(self, run, came, went, lost, samples=()):
        """samples: rows of tcp.csv."""
        self.job = run["job"]
        self.tcp = tcp_seconds(self.job, samples)
        self.begin = run["start_ns"] + round(self.job["warmup"] * 1e9)
        self.seconds = self.job["seconds"]
        arrived = np.concatenate((came, lost))
        self.arrived = arrived[self.during(arrived["ns"])]
        inside = self.during(went["ns"])
        came, went = came[inside], went[inside]
        lost = lost[self.during(lost["ns"])]
        self.delay_ns = (went["ns"] - came["ns"]).astype(np.int64)
        self.second = self.index(went["ns"])
        self.lost_second = self.index(lost["ns"])
        self.address = (went["saddr"] & 0xffff).astype(np.int32)
        self.lost_address = (lost["saddr"] & 0xffff).astype(np.int32)
        self.bytes = went["bytes"].astype(np.int64)
        self.able = came["ecn"] != 0
        self.marked = (went["ecn"] == CE) & (came["ecn"] != CE)
        self.wrong = (went["ecn"] != came["ecn"]) & ~(self.marked & self.able)

    def during(self, ns):
        """Whether absolute times lie in the seconds measured."""
        return (ns >= self.begin) & (ns < self.begin + self.seconds * 10**9)

    def index(self, ns):
        """Second measured, from 0 on, of absolute times that are during() them."""
        return ((ns - np.uint64(self.begin)) // np.uint64(10**9)).astype(np.int64)

    def active(self, groups):
        """Whether one of these groups sends during all of a second, for each second measured."""
        times = self.job["warmup"] + np.arange(self.seconds)
        return np.any([(times >= g["start"]) & (times + 1 <= (np.inf if g["stop"] is None else g["stop"]))
                       for g in groups], axis=0)

    def tcp_figures(self, group):
        """Means of TCP_FIGURES of a group over the seconds in which it is active; None for each without a sample."""
        seconds = np.flatnonzero(self.active([group]))
        rows = [row for n, row in self.tcp.get(group["name"], {}).items() if n in seconds]
        if not rows:
            return dict.fromkeys(TCP_FIGURES)
        srtt_ms, cwnd, mbit = np.sum(rows, axis=0).tolist()
        # In a second without a sample nothing was acknowledged.
        return dict(zip(TCP_FIGURES, (srtt_ms / len(rows), cwnd / len(rows), mbit / len(seconds)), strict=True))

    def part(self, name, numbers):
        """Figures of the groups with these numbers, from 1 on, together: (summary, rows of seconds.csv, delays)."""
        groups = [self.job["groups"][n - 1] for n in numbers]
        mine = np.flatnonzero(np.isin(self.address >> 8, numbers))
        gone = self.lost_second[np.isin(self.lost_address >> 8, numbers)]

        def count(second, weights=None):
            return np.bincount(second, weights, minlength=self.seconds)

        second, delay = self.second[mine], self.delay_ns[mine]
        packets, dropped = count(second), count(gone)
        able, marked = count(second, self.able[mine]), count(second, self.marked[mine])
        mbit = count(second, self.bytes[mine]) * 8 / 1e6

        active = self.active(groups)
        sent = active & (packets > 0)
        offered = active & (packets + dropped > 0)
        summary = {
            "packets": len(mine), "ecn_packets": int(able.sum()), "marked": int(marked.sum()),
            "dropped": int(dropped.sum()), "rewritten_wrongly": int(self.wrong[mine].sum()),
            "active_seconds": int(active.sum()),
            "delay_ms": describe(delay / 1e6, DELAY_LEVELS),
            "mbit": describe(mbit[active], SAMPLE_LEVELS),
            "mark_pct": describe(100 * marked[sent] / packets[sent], SAMPLE_LEVELS),
            "drop_pct": describe(100 * dropped[offered] / (packets + dropped)[offered], SAMPLE_LEVELS),
        }

        order = np.lexsort((delay, second))
        ordered, ends = delay[order] / 1e6, np.cumsum(packets)
        rows = []
        for n, (start, end) in enumerate(zip(ends - packets, ends)):
            there = ordered[start:end]
            levels = [f"{x:.6f}" for x in (there.mean(), percentile(there, 50), percentile(there, 99))] \
                if len(there) else ["", "", ""]
            tcp = [f"{x:.6f}" for x in self.tcp.get(name, {}).get(n, ())] or [""] * len(TCP_FIGURES)
            rows.append([f"{self.job['warmup'] + n:g}", name, packets[n], f"{mbit[n]:.6f}", *levels,
                         int(marked[n]), int(able[n]), dropped[n], *tcp])
        return summary, rows, delay

    def flows(self):
        """Mean Mbit/s of each flow while its group was active."""
        per_address = np.bincount(self.address, self.bytes, minlength=1 << 16)
        result = []
        for number, group in enumerate(self.job["groups"], 1):
            begin = max(group["start"], self.job["warmup"])
            end = self.job["warmup"] + self.seconds
            end = min(end, group["stop"]) if group["stop"] is not None else end
            for flow in range(1, group.get("count", 1) + 1):
                mbit = per_address[number << 8 | flow] * 8 / 1e6 / (end - begin) if end > begin else 0.0
                result.append({"group": group["name"], "src": f"10.8.{number}.{flow}", "mbit": float(mbit)})
        return result

    def figures(self):
        """(summary.json, rows of seconds.csv, rows of histogram.csv)."""
        whole, rows, delay = self.part("all", range(1, len(self.job["groups"]) + 1))
        groups, flows = {}, self.flows()
        buckets = [("all", *row) for row in histogram(delay)]
        carried = np.array([float(row[3]) for row in rows]) * 1e6
        whole["utilization_pct"] = describe(100 * carried / mean_rates(self.job), SAMPLE_LEVELS)
        for number, group in enumerate(self.job["groups"], 1):
            own, more, delay = self.part(group["name"], [number])
            rates = [f["mbit"] for f in flows if f["group"] == group["name"]]
            own["flows_without_data"] = rates.count(0)
            own["mbit_per_flow"] = float(np.mean(rates)) if rates else None
            # Of the mean flow: rate * (mean delay + base RTT), appendix B.
            own["window_bytes"] = own["mbit_per_flow"] * 1e6 / 8 * (own["delay_ms"]["mean"] + group["rtt_ms"]) / 1e3 \
                if own["packets"] else None
            own["jain"] = jain(rates)
            own |= self.tcp_figures(group)
            if group.get("aggregate_ms"):
                mine = self.arrived["saddr"] >> 8 & 0xff == number
                own["aggregates"] = aggregates(self.arrived["ns"][mine])
            groups[group["name"]] = own
            rows += more
            buckets += [(group["name"], *row) for row in histogram(delay)]
        classes = {}
        for name in ("l4s", "classic"):
            if numbers := [n for n, g in enumerate(self.job["groups"], 1) if (g["ecn"] in L4S) == (name == "l4s")]:
                classes[name] = self.part(name, numbers)[0]
        tcp = {g["name"] for g in self.job["groups"] if g["kind"] == "tcp"}
        whole["jain"] = jain([f["mbit"] for f in flows if f["group"] in tcp])
        return {"format": FORMAT, "groups": groups, "classes": classes, "all": whole, "flows": flows}, rows, buckets


def load(directory):
    """One run as it was left: (run.json, arrived, departed, lost); see pair(). Ends the program if it cannot."""
    try:
        with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
            run = json.load(file)
        data = np.fromfile(os.path.join(directory, "sightings"), dtype=SIGHTING)
    except (OSError, ValueError) as error:
        sys.exit(f"measure: {directory} has no raw data of a run ({error}); run it again, with --keep-raw to keep them")
    if "job" not in run:
        sys.exit(f"measure: {directory} is of an older format; run it again")
    if not len(data):
        sys.exit(f"measure: no packet was seen in {directory}; look at its log")
    return run, *pair(data)


def tcp_samples(directory):
    """Rows of a run's tcp.csv; none of a run without."""
    path = os.path.join(directory, "tcp.csv")
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return list(csv.reader(file))[1:]


def evaluate(directory):
    """Figures of a run of the short options, with the classes l and c; delays in ms, rates in Mbit/s."""
    run, *packets = load(directory)
    summary, _, _ = Run(run, *packets).figures()
    job = run["job"]
    result = {"aqm": job["qdisc"], "rate": job["rate"], "rtt": f"{job['groups'][0]['rtt_ms']:g}ms",
              "seconds": job["seconds"], "kernel": run["kernel"],
              "utilization_pct": summary["all"]["utilization_pct"]["mean"]}
    for name in CLASSES:
        own = summary["groups"][name]
        offered = own["packets"] + own["dropped"]
        result[name] = {
            "delay_ms": {"packets": own["packets"]} | (own["delay_ms"] if own["packets"] else {}),
            "mbit": own["mbit"]["mean"],
            "marked_pct": own["marked"] / own["ecn_packets"] * 100 if own["ecn_packets"] else 0.0,
            "lost_pct": own["dropped"] / offered * 100 if offered else 0.0,
            "lost": own["dropped"], "ecn_rewritten_wrongly": own["rewritten_wrongly"],
        }
    before, after = run["before"], run["after"]
    if before and after and "l4s" in after:
        result["native_marks"] = after["l4s"]["marked-native"] - before["l4s"]["marked-native"]
        result["coupled_marks"] = after["l4s"]["marked-coupled"] - before["l4s"]["marked-coupled"]
    return result


def line(r):
    """What evaluate() gave, in one line; delays in ms, rates in Mbit/s."""
    low, classic = r["l"], r["c"]
    ld, cd = low["delay_ms"], classic["delay_ms"]
    ratio = low["mbit"] / classic["mbit"] if classic["mbit"] else float("inf")
    return (f"{r['aqm'][:44]:44} {r['rate']:>8} {r['rtt']:>5}  L {ld.get('mean', 0):6.3f} {ld.get('p50', 0):6.3f} "
            f"{ld.get('p99', 0):6.3f} {ld.get('p99_9', 0):6.3f}  C {cd.get('mean', 0):6.2f} {cd.get('p99', 0):6.2f}  "
            f"L/C {low['mbit']:6.2f}/{classic['mbit']:6.2f} ={ratio:5.2f}  util {r['utilization_pct']:6.2f}  "
            f"mark L {low['marked_pct']:5.2f}%  lost {low['lost']}/{classic['lost']}  "
            f"nat/coup {r.get('native_marks', '-')}/{r.get('coupled_marks', '-')}")


def write_rows(path, head, rows):
    """A CSV file with a header line."""
    with open(path, "w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def reduce(directory, keep_raw=False):
    """Leave summary.json, seconds.csv and histogram.csv in a run's directory, and the raw data only if said."""
    run, came, went, lost = load(directory)
    summary, seconds, buckets = Run(run, came, went, lost, tcp_samples(directory)).figures()
    summary["own"] = beside_own(run, came, went)
    write_rows(os.path.join(directory, "seconds.csv"),
               ("second", "group", "packets", "mbit", "delay_mean_ms", "delay_p50_ms", "delay_p99_ms", "marked",
                "ecn_packets", "dropped", *TCP_FIGURES), seconds)
    write_rows(os.path.join(directory, "histogram.csv"), ("group", "delay_us_from", "delay_us_to", "packets"),
               ((group, f"{low / 1e3:.3f}", f"{high / 1e3:.3f}", n) for group, low, high, n in buckets))
    with open(os.path.join(directory, "summary.json"), "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=1)
    if not keep_raw:
        for name in ("sightings", "tcp.csv"):
            if os.path.exists(os.path.join(directory, name)):
                os.remove(os.path.join(directory, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("run", nargs="+", help="directories that dumbbell.py wrote")
    if sys.argv[1:2] == ["reduce"]:
        parser.add_argument("--keep-raw", action="store_true", help="do not delete the sightings")
        args = parser.parse_args(sys.argv[2:])
        for directory in args.run:
            reduce(directory, args.keep_raw)
        return
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = [evaluate(d) for d in args.run]
    print(json.dumps(results, indent=1) if args.json else "\n".join(map(line, results)))


if __name__ == "__main__":
    main()
