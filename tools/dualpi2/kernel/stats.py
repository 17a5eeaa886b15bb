# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of a dualpi2: decoding, differences, percentiles.

Pure: bytes in, numbers out. The layouts are those of include/uapi/linux/dualpi2.h, and are read as it says: unknown
attributes are skipped, a struct may be longer or shorter than here, and what is missing is None, not 0, so that
what an older kernel does not count is never shown as a zero.
"""

from __future__ import annotations

import fractions
import struct
from collections.abc import Sequence
from typing import Optional, TypeVar

from .layout import HEADER
from .netlink import NLA_TYPE_MASK, attr_list, attrs

EXT_OFFSET, EXT_MAGIC = (HEADER.number("TC_DUALPI2_EXT_XSTATS_" + name) for name in ("OFFSET", "MAGIC"))
XSTATS, EXT_XSTATS, COUNTERS, DELAY, OVERLOAD, LINK = (
    HEADER.layout("tc_dualpi2_" + name) for name in ("xstats", "ext_xstats", "counters", "delay", "overload", "link"))
STATS_C, STATS_L, STATS_OVERLOAD, STATS_LINK = (
    HEADER.number("TCA_DUALPI2_STATS_" + name) for name in ("C", "L", "OVERLOAD", "LINK"))
QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST = (
    HEADER.number("TCA_DUALPI2_QUEUE_" + name) for name in ("COUNTERS", "DELAY", "HIST"))

QUEUES = ("l", "c")
QUEUE_NAMES = {"l": "l4s", "c": "classic"}
DROP_CAUSES = ("limit", "memory", "early", "aqm", "overload", "purge")
MARKERS = ("classic", "coupled", "native")
ARRIVALS = ("not_ect", "ect1", "ect0", "ce")
GAUGES = ("queued", "queued_bytes")
LINK_COUNTERS = ("throttled", "nqb_arrived", "nqb_dropped")
QDISC_COUNTERS = ("unparsed", "filter_dropped", "gso_failed", "mark_failed")

MOST_BUCKETS = HEADER.number("TC_DUALPI2_BUCKETS_MAX")
WHOLE = 1 << 64

Numbers = dict[str, int]
K = TypeVar("K")
V = TypeVar("V")


# Decoding

class Queue:
    """One queue at one moment: counters {name: number}, histogram or None, and whether it is split by codepoint."""

    def __init__(self) -> None:
        self.counters: Numbers = {}
        self.delay: Numbers = {}
        self.hist: list[int] = []

    def has_histogram(self) -> bool:
        """Are the delays there?"""
        return bool(self.hist)


class Sample:
    """What a dualpi2 says of itself: the struct of Linux, and what there is of the extension.

    level: "full" with the extension, "basic" Linux's own, "none"
    """

    def __init__(self, app: bytes, stats_bytes: int = 0, stats_packets: int = 0, qlen: int = 0, backlog: int = 0,
                 drops: int = 0) -> None:
        self.basic = {"bytes": stats_bytes, "packets": stats_packets, "qlen": qlen, "backlog": backlog, "drops": drops}
        self.xstats = XSTATS.read_present(app[:EXT_OFFSET])
        self.ext: Numbers = {}
        self.overload: Numbers = {}
        self.link: Numbers = {}
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
        if all(self.queues[queue].has_histogram() for queue in QUEUES):
            self.level = "full"

    @staticmethod
    def _queue(queue: Queue, data: bytes) -> None:
        found = attrs(data)
        if QUEUE_COUNTERS in found:
            queue.counters = COUNTERS.read_present(found[QUEUE_COUNTERS])
        delay = DELAY.read_present(found.get(QUEUE_DELAY, b""))
        # Nonsense is no histogram: a unit of 0, or more buckets than there can be.
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


# Differences

def difference(new: int, old: int, bits: int = 64) -> Optional[int]:
    """How much a counter grew, modulo 2^bits; None if it went back, which no counter does: it is another one."""
    grown = (new - old) % (1 << bits)
    return grown if grown < 1 << (bits - 1) else None


def counters_between(new: Numbers, old: Numbers, bits: int = 64) -> Optional[Numbers]:
    """{name: growth} of what both have, None if any counter went back."""
    return _whole({name: difference(value, old[name], bits) for name, value in new.items()
                   if name in old and name not in GAUGES})


def _whole(values: dict[K, Optional[V]]) -> Optional[dict[K, V]]:
    """The same, None if one of them is None."""
    found = {name: value for name, value in values.items() if value is not None}
    return found if len(found) == len(values) else None


class Delays:
    """Delays of some packets: a histogram, its sum, and the greatest.

    max_exact: max_ns is a packet's delay; otherwise it is a bound, the end of the last bucket that is not empty.
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
        """Of all packets of the histogram, None without one."""
        if not queue.has_histogram():
            return None
        found = cls(queue.delay["unit_ns"], list(queue.hist), queue.delay["sum_ns"], queue.delay["max_ns"],
                    queue.delay["beyond"])
        # A million packets a second with 15 ms each fill 64 bits in 14 days. The buckets tell how often that was.
        middle = sum(number * (found.bucket_ns(index) + found.bucket_ns(index + 1)) // 2
                     for index, number in enumerate(found.buckets))
        middle += found.beyond * found.bucket_ns(len(found.buckets))
        found.sum_ns += max(round((middle - found.sum_ns) / WHOLE), 0) * WHOLE
        return found

    @classmethod
    def between(cls, new: Queue, old: Queue) -> Optional[Delays]:
        """Of the packets that left between two moments; None without histograms, or if one went back.

        Where the edges changed meanwhile, the histogram began anew: then all that is in it came since.
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
        greatest = new.delay["max_ns"]
        found.max_exact = greatest > old.delay["max_ns"]
        if found.max_exact or beyond:
            found.max_ns = greatest
        elif found.packets:
            last = max(index for index, number in grown.items() if number)
            found.max_ns = min(found.bucket_ns(last + 1), greatest)
        return found

    def bucket_ns(self, index: int) -> int:
        """Where a bucket begins."""
        return bucket_begin_ns(index, self.unit_ns)

    def mean_ns(self) -> Optional[int]:
        """The mean, None of no packets."""
        return round(self.sum_ns / self.packets) if self.packets else None

    def percentile_ns(self, percent: float) -> Optional[int]:
        """The delay that `percent` of the packets had at most; None of no packets.

        What tc shows of the same numbers. Never above max_ns, and just that for a packet beyond the last bucket.
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
    """The number, from 1, of the packet of a percentile: the nearest rank upwards; percents have up to three decimals.

    In whole numbers: 99.9 % of 1000 is packet 999, not 1000.
    """
    return min(max(-(-packets * round(percent * 1000) // 100000), 1), packets)


def bucket_of_rank(buckets: Sequence[int], rank: int) -> Optional[tuple[int, fractions.Fraction]]:
    """(index, part of its width, a Fraction) of the bucket that holds the packet of a rank, None beyond the last one.

    buckets: packets in each. The packets of a bucket are taken to be spread evenly over it.
    """
    for index, number in enumerate(buckets):
        if rank <= number:
            return index, fractions.Fraction(2 * rank - 1, 2 * number)
        rank -= number
    return None


def bucket_begin_ns(index: int, unit_ns: int) -> int:
    """Where a bucket of the histogram begins, and the one before it ends."""
    if index < 8:
        return index * unit_ns
    return ((8 + index % 8) << (index // 8 - 1)) * unit_ns


class Interval:
    """What happened between two samples of one qdisc, or since its beginning.

    seconds: None if unknown. counters, delays: of each queue (growth; Delays or None). link: growth of what the shaper
    and NQB count.
    """

    def __init__(self, seconds: Optional[float], total: Numbers, counters: dict[str, Numbers],
                 delays: dict[str, Optional[Delays]], link: Numbers) -> None:
        self.seconds = seconds
        self.total = total
        self.counters = counters
        self.delays = delays
        self.link = link

    @classmethod
    def since_start(cls, sample: Sample) -> Interval:
        counters = {queue: {name: value for name, value in sample.queues[queue].counters.items() if name not in GAUGES}
                    for queue in QUEUES}
        delays = {queue: Delays.since_start(sample.queues[queue]) for queue in QUEUES}
        total = dict(sample.basic)
        total.update({name: sample.xstats[name] for name in ("ecn_mark", "step_marks") if name in sample.xstats})
        link = {name: sample.link[name] for name in LINK_COUNTERS if name in sample.link}
        return cls(None, total, counters, delays, link)

    @classmethod
    def between(cls, new: Sample, old: Sample, seconds: float) -> Optional[Interval]:
        """None if a counter went back: the qdisc is another one than before."""
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
        if counters is None or total is None or link is None or (old.level == "full") != (new.level == "full"):
            return None
        delays = {queue: Delays.between(new.queues[queue], old.queues[queue]) for queue in QUEUES}
        return cls(seconds, total, counters, delays, link)

    def rate(self, queue: Optional[str], name: str) -> Optional[float]:
        """Growth of a counter per second, None if unknown; queue None: of the qdisc."""
        value = (self.total if queue is None else self.counters[queue]).get(name)
        return value / self.seconds if value is not None and self.seconds else None

    def marked(self, queue: str) -> Optional[int]:
        """Packets set to CE here."""
        return _sum(self.counters[queue], ["marked_" + marker for marker in MARKERS])

    def mark_share(self, queue: str) -> Optional[float]:
        """Part of the forwarded packets that were set to CE here."""
        return _share(self.marked(queue), self.counters[queue].get("forwarded"))

    def dropped(self, queue: str, ecn: Optional[str]) -> Optional[int]:
        """Packets dropped that arrived with ECT ("ect") or without ("not_ect"); None as ecn: all."""
        found = self.counters[queue]
        if ecn:
            return _sum(found, [f"{ecn}_dropped_{cause}" for cause in DROP_CAUSES])
        return _sum(found, [f"{either}_dropped_{cause}" for either in ("ect", "not_ect") for cause in DROP_CAUSES])

    def arrived(self, queue: str, ecn: Optional[str]) -> Optional[int]:
        """Packets that arrived with ECT ("ect", CE included) or without ("not_ect"); None as ecn: all."""
        found = self.counters[queue]
        if ecn == "not_ect":
            return found.get("arrived_not_ect")
        if ecn == "ect":
            return _sum(found, ["arrived_ect1", "arrived_ect0", "arrived_ce"])
        return _sum(found, ["arrived_" + name for name in ARRIVALS])

    def drop_share(self, queue: str, ecn: Optional[str]) -> Optional[float]:
        """Part of the arrived packets that was dropped; 1 at most, though a drop may be of an earlier arrival."""
        return _share(self.dropped(queue, ecn), self.arrived(queue, ecn))


def _sum(counters: Numbers, names: Sequence[str]) -> Optional[int]:
    return sum(counters[name] for name in names) if all(name in counters for name in names) else None


def _share(part: Optional[int], whole: Optional[int]) -> Optional[float]:
    if part is None or whole is None or not (part or whole):
        return None
    return min(part / whole, 1.0) if whole else 1.0
