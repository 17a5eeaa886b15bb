# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of a dualpi2: decoding, differences, percentiles.

No sockets, no clock. include/uapi/linux/dualpi2.h defines the layouts and how to read them: skip unknown attributes,
accept longer and shorter structs. A missing value is None, not 0, so that a counter that an older kernel lacks is
never shown as 0.
"""

from __future__ import annotations

import fractions
import ipaddress
import socket
import struct
from collections.abc import Sequence
from typing import Any, Optional, TypeVar

from .layout import HEADER
from .netlink import NLA_TYPE_MASK, attr_list, attrs

EXT_OFFSET, EXT_MAGIC = (HEADER.number("TC_DUALPI2_EXT_XSTATS_" + name) for name in ("OFFSET", "MAGIC"))
XSTATS, EXT_XSTATS, COUNTERS, DELAY, OVERLOAD, LINK, QPROTECT, QPROTECT_FLOW = (
    HEADER.layout("tc_dualpi2_" + name)
    for name in ("xstats", "ext_xstats", "counters", "delay", "overload", "link", "qprotect", "qprotect_flow"))
STATS_C, STATS_L, STATS_OVERLOAD, STATS_LINK, STATS_QPROTECT, STATS_QPROTECT_FLOWS = (
    HEADER.number("TCA_DUALPI2_STATS_" + name)
    for name in ("C", "L", "OVERLOAD", "LINK", "QPROTECT", "QPROTECT_FLOWS"))
QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST = (
    HEADER.number("TCA_DUALPI2_QUEUE_" + name) for name in ("COUNTERS", "DELAY", "HIST"))

QUEUES = ("l", "c")
QUEUE_NAMES = {"l": "l4s", "c": "classic"}
DROP_CAUSES = ("limit", "memory", "early", "aqm", "overload", "purge")
MARKERS = ("classic", "coupled", "native")
ARRIVALS = ("not_ect", "ect1", "ect0", "ce")
GAUGES = ("queued", "queued_bytes")
LINK_COUNTERS = ("throttled", "nqb_arrived", "nqb_dropped")
QPROTECT_COUNTERS = ("redirected", "redirected_bytes", "sanctions", "scored", "scored_shared", "alloc_failed")
QDISC_COUNTERS = ("unparsed", "filter_dropped", "gso_failed", "mark_failed")

MOST_BUCKETS = HEADER.number("TC_DUALPI2_BUCKETS_MAX")
WHOLE = 1 << 64

Numbers = dict[str, int]
K = TypeVar("K")
V = TypeVar("V")


# Decoding

class Queue:
    """One queue at one moment: counters {name: number}, struct tc_dualpi2_delay {name: number}, packets per bucket."""

    def __init__(self) -> None:
        self.counters: Numbers = {}
        self.delay: Numbers = {}
        self.hist: list[int] = []

    def has_histogram(self) -> bool:
        """Did the kernel send a histogram?"""
        return bool(self.hist)


class Sample:
    """Statistics of a dualpi2: the struct of the in-tree dualpi2, and the extension.

    level: "full" with the extension, "basic" without it (in-tree dualpi2), "none" without statistics
    """

    def __init__(self, app: bytes, stats_bytes: int = 0, stats_packets: int = 0, qlen: int = 0, backlog: int = 0,
                 drops: int = 0) -> None:
        self.basic = {"bytes": stats_bytes, "packets": stats_packets, "qlen": qlen, "backlog": backlog, "drops": drops}
        self.xstats = XSTATS.read_present(app[:EXT_OFFSET])
        self.ext: Numbers = {}
        self.overload: Numbers = {}
        self.link: Numbers = {}
        self.qprotect: Numbers = {}
        # Only of the class of the L4S queue: flows with a score, the highest first.
        self.flows: list[dict[str, Any]] = []
        self.queues = {queue: Queue() for queue in QUEUES}
        self.level = "basic" if self.xstats else "none"
        if len(app) >= EXT_OFFSET + 8 and struct.unpack_from("=I", app, EXT_OFFSET)[0] == EXT_MAGIC:
            self._extension(app)

    def _extension(self, app: bytes) -> None:
        size = min(struct.unpack_from("=I", app, EXT_OFFSET + 4)[0], len(app) - EXT_OFFSET)
        found = EXT_XSTATS.read_present(app[EXT_OFFSET:EXT_OFFSET + size])
        self.ext = {name: found[name] for name in (*QDISC_COUNTERS, "prob_c", "prob_cl") if name in found}
        for flagged, data in attr_list(app[EXT_OFFSET + size:]):
            kind = flagged & NLA_TYPE_MASK
            if kind in (STATS_C, STATS_L):
                self._queue(self.queues["c" if kind == STATS_C else "l"], data)
            elif kind == STATS_OVERLOAD:
                self.overload = OVERLOAD.read_present(data)
            elif kind == STATS_LINK:
                self.link = LINK.read_present(data)
            elif kind == STATS_QPROTECT:
                self.qprotect = QPROTECT.read_present(data)
            elif kind == STATS_QPROTECT_FLOWS:
                self.flows = [qprotect_flow(flow) for _, flow in attr_list(data)]
        if all(self.queues[queue].has_histogram() for queue in QUEUES):
            self.level = "full"

    @staticmethod
    def _queue(queue: Queue, data: bytes) -> None:
        found = attrs(data)
        if QUEUE_COUNTERS in found:
            queue.counters = COUNTERS.read_present(found[QUEUE_COUNTERS])
        delay = DELAY.read_present(found.get(QUEUE_DELAY, b""))
        # Ignore an invalid histogram: bucket width 0, or too many buckets.
        if len(delay) < 6 or not delay["unit_ns"] or not 0 < delay["buckets"] <= MOST_BUCKETS:
            return
        hist = found.get(QUEUE_HIST, b"")
        filled = list(struct.unpack(f"={len(hist) // 8}Q", hist[:len(hist) // 8 * 8]))[:delay["buckets"]]
        queue.delay = delay
        queue.hist = filled + [0] * (delay["buckets"] - len(filled))

    def probability(self, name: str) -> Optional[float]:
        """p' ("p"), p_C ("p_c") or p_CL ("p_cl") as a number, None if unknown."""
        value = self.xstats.get("prob") if name == "p" else self.ext.get("prob_" + name[2:])
        return None if value is None else value / 0xffffffff


def qprotect_flow(data: bytes) -> dict[str, Any]:
    """A struct tc_dualpi2_qprotect_flow; "src" and "dst" as text, None if unknown."""
    found = QPROTECT_FLOW.read(data)
    flow: dict[str, Any] = {name: value for name, value in found.items() if "." not in name}
    size = {socket.AF_INET: 4, socket.AF_INET6: 16}.get(flow["family"], 0)
    for end in ("src", "dst"):
        address = bytes(found[f"{end}.{number}"] for number in range(size))
        flow[end] = str(ipaddress.ip_address(address)) if size else None
    return flow


# Differences

def difference(new: int, old: int, bits: int = 64) -> Optional[int]:
    """Growth of a counter, modulo 2^bits; None if it decreased, because then it is another qdisc's."""
    grown = (new - old) % (1 << bits)
    return grown if grown < 1 << (bits - 1) else None


def counters_between(new: Numbers, old: Numbers, bits: int = 64) -> Optional[Numbers]:
    """{name: growth} of the counters in both; None if any counter decreased."""
    return _whole({name: difference(value, old[name], bits) for name, value in new.items()
                   if name in old and name not in GAUGES})


def _whole(values: dict[K, Optional[V]]) -> Optional[dict[K, V]]:
    """The same dict; None if a value is None."""
    found = {name: value for name, value in values.items() if value is not None}
    return found if len(found) == len(values) else None


class Delays:
    """Sojourn times: histogram, sum, and maximum.

    max_exact: True if max_ns is the maximum; else it is an upper bound, the end of the last bucket that is not empty.
    """

    def __init__(self, unit_ns: int, buckets: list[int], sum_ns: int, max_ns: int, beyond: int,
                 max_exact: bool = True) -> None:
        self.unit_ns = unit_ns
        self.buckets = buckets
        self.sum_ns = sum_ns
        self.max_ns = max_ns
        self.beyond = beyond
        self.max_exact = max_exact
        self.packets = sum(buckets) + beyond

    @classmethod
    def since_start(cls, queue: Queue) -> Optional[Delays]:
        """All packets of a histogram; None without one."""
        if not queue.has_histogram():
            return None
        found = cls(queue.delay["unit_ns"], list(queue.hist), queue.delay["sum_ns"], queue.delay["max_ns"],
                    queue.delay["beyond"])
        # At 10^6 packets/s of 15 ms, the sum wraps after 14 days. Estimate from the buckets how often it wrapped.
        middle = sum(number * (found.bucket_ns(index) + found.bucket_ns(index + 1)) // 2
                     for index, number in enumerate(found.buckets))
        middle += found.beyond * found.bucket_ns(len(found.buckets))
        found.sum_ns += max(round((middle - found.sum_ns) / WHOLE), 0) * WHOLE
        return found

    @classmethod
    def between(cls, new: Queue, old: Queue) -> Optional[Delays]:
        """Packets dequeued between two samples; None without histograms, or if a bucket decreased.

        If the bucket boundaries changed in between, the kernel reset the histogram: then all its packets are newer.
        """
        if not new.has_histogram() or not old.has_histogram():
            return None
        if new.delay["generation"] != old.delay["generation"]:
            return cls.since_start(new)
        if new.delay["unit_ns"] != old.delay["unit_ns"] or len(new.hist) != len(old.hist):
            return None
        grown = _whole(dict(enumerate(map(difference, new.hist, old.hist))))
        beyond = difference(new.delay["beyond"], old.delay["beyond"])
        if beyond is None or grown is None:
            return None
        total = (new.delay["sum_ns"] - old.delay["sum_ns"]) % WHOLE
        found = cls(new.delay["unit_ns"], list(grown.values()), total, 0, beyond)
        maximum = new.delay["max_ns"]
        found.max_exact = maximum > old.delay["max_ns"]
        if found.max_exact or beyond:
            found.max_ns = maximum
        elif found.packets:
            last = max(index for index, number in grown.items() if number)
            found.max_ns = min(found.bucket_ns(last + 1), maximum)
        return found

    def bucket_ns(self, index: int) -> int:
        """The lower boundary of a bucket."""
        return bucket_begin_ns(index, self.unit_ns)

    def mean_ns(self) -> Optional[int]:
        """The mean; None without packets."""
        return round(self.sum_ns / self.packets) if self.packets else None

    def percentile_ns(self, percent: float) -> Optional[int]:
        """A percentile, computed as tc does; None without packets.

        At most max_ns; max_ns if the packet is beyond the last bucket.
        """
        if not self.packets:
            return None
        rank = rank_of(percent, self.packets)
        found = bucket_of_rank(self.buckets, rank)
        if found is None or rank == self.packets and self.max_exact:
            return self.max_ns
        index, part = found
        begin = self.bucket_ns(index)
        return min(int(begin + (self.bucket_ns(index + 1) - begin) * part), self.max_ns)


def rank_of(percent: float, packets: int) -> int:
    """The rank, from 1, of a percentile's packet, rounded up; percent has at most three decimals.

    In integers, because in floating point 99.9 % of 1000 is packet 1000 instead of 999.
    """
    return min(max(-(-packets * round(percent * 1000) // 100000), 1), packets)


def bucket_of_rank(buckets: Sequence[int], rank: int) -> Optional[tuple[int, fractions.Fraction]]:
    """(index, position in the bucket as Fraction) of the packet of a rank; None beyond the last bucket.

    buckets: packets in each. Assumes that the packets of a bucket are evenly distributed.
    """
    for index, number in enumerate(buckets):
        if rank <= number:
            return index, fractions.Fraction(2 * rank - 1, 2 * number)
        rank -= number
    return None


def bucket_begin_ns(index: int, unit_ns: int) -> int:
    """The lower boundary of a bucket of the histogram."""
    if index < 8:
        return index * unit_ns
    return ((8 + index % 8) << (index // 8 - 1)) * unit_ns


class Interval:
    """Growth of the statistics between two samples of one qdisc, or since it was created.

    seconds: None if unknown. counters, delays: by queue; delays may be None. link: counters of shaper and NQB.
    qprotect: counters of queue protection.
    """

    def __init__(self, seconds: Optional[float], total: Numbers, counters: dict[str, Numbers],
                 delays: dict[str, Optional[Delays]], link: Numbers, qprotect: Numbers) -> None:
        self.seconds = seconds
        self.total = total
        self.counters = counters
        self.delays = delays
        self.link = link
        self.qprotect = qprotect

    @classmethod
    def since_start(cls, sample: Sample) -> Interval:
        counters = {queue: {name: value for name, value in sample.queues[queue].counters.items() if name not in GAUGES}
                    for queue in QUEUES}
        delays = {queue: Delays.since_start(sample.queues[queue]) for queue in QUEUES}
        total = dict(sample.basic)
        total.update({name: sample.xstats[name] for name in ("ecn_mark", "step_marks") if name in sample.xstats})
        link = {name: sample.link[name] for name in LINK_COUNTERS if name in sample.link}
        qprotect = {name: sample.qprotect[name] for name in QPROTECT_COUNTERS if name in sample.qprotect}
        return cls(None, total, counters, delays, link, qprotect)

    @classmethod
    def between(cls, new: Sample, old: Sample, seconds: float) -> Optional[Interval]:
        """None if a counter decreased, because then it is another qdisc."""
        counters = _whole({queue: counters_between(new.queues[queue].counters, old.queues[queue].counters)
                           for queue in QUEUES})
        sizes = {"bytes": 64, "packets": 64 if new.basic["packets"] >> 32 or old.basic["packets"] >> 32 else 32}
        grown = {name: difference(new.basic[name], old.basic[name], bits) for name, bits in sizes.items()}
        grown["drops"] = difference(new.basic["drops"], old.basic["drops"], 32)
        for name in ("ecn_mark", "step_marks"):
            if name in new.xstats and name in old.xstats:
                grown[name] = difference(new.xstats[name], old.xstats[name], 32)
        total = _whole(grown)
        link = _whole({name: difference(new.link[name], old.link[name]) for name in LINK_COUNTERS
                       if name in new.link and name in old.link})
        qprotect = _whole({name: difference(new.qprotect[name], old.qprotect[name]) for name in QPROTECT_COUNTERS
                           if name in new.qprotect and name in old.qprotect})
        if counters is None or total is None or link is None or qprotect is None or (
                (old.level == "full") != (new.level == "full")):
            return None
        delays = {queue: Delays.between(new.queues[queue], old.queues[queue]) for queue in QUEUES}
        return cls(seconds, total, counters, delays, link, qprotect)

    def rate(self, queue: Optional[str], name: str) -> Optional[float]:
        """Growth of a counter per second, None if unknown; queue None: both queues."""
        value = (self.total if queue is None else self.counters[queue]).get(name)
        return value / self.seconds if value is not None and self.seconds else None

    def marked(self, queue: str) -> Optional[int]:
        """Packets that dualpi2 marked CE."""
        return _sum(self.counters[queue], ["marked_" + marker for marker in MARKERS])

    def mark_share(self, queue: str) -> Optional[float]:
        """Share of the forwarded packets that dualpi2 marked CE."""
        return _share(self.marked(queue), self.counters[queue].get("forwarded"))

    def dropped(self, queue: str, ecn: Optional[str]) -> Optional[int]:
        """Dropped packets that arrived with ECT or CE ("ect") or as Not-ECT ("not_ect"); ecn None: all."""
        found = self.counters[queue]
        if ecn:
            return _sum(found, [f"{ecn}_dropped_{cause}" for cause in DROP_CAUSES])
        return _sum(found, [f"{either}_dropped_{cause}" for either in ("ect", "not_ect") for cause in DROP_CAUSES])

    def arrived(self, queue: str, ecn: Optional[str]) -> Optional[int]:
        """Packets that arrived with ECT or CE ("ect") or as Not-ECT ("not_ect"); ecn None: all."""
        found = self.counters[queue]
        if ecn == "not_ect":
            return found.get("arrived_not_ect")
        if ecn == "ect":
            return _sum(found, ["arrived_ect1", "arrived_ect0", "arrived_ce"])
        return _sum(found, ["arrived_" + name for name in ARRIVALS])

    def drop_share(self, queue: str, ecn: Optional[str]) -> Optional[float]:
        """Dropped / arrived packets; at most 1, although a dropped packet may have arrived before the interval."""
        return _share(self.dropped(queue, ecn), self.arrived(queue, ecn))


def _sum(counters: Numbers, names: Sequence[str]) -> Optional[int]:
    return sum(counters[name] for name in names) if all(name in counters for name in names) else None


def _share(part: Optional[int], whole: Optional[int]) -> Optional[float]:
    if part is None or whole is None or not (part or whole):
        return None
    return min(part / whole, 1.0) if whole else 1.0
