# SPDX-License-Identifier: GPL-2.0-only
"""Made-up statistics and dumps, for test_top.py and test_top_output.py."""

import os
import struct
import sys

import payload
from payload import app, queue

sys.dont_write_bytecode = True
sys.path[:0] = [payload.TOOLS, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib")]

from dualpi2.kernel import stats  # noqa: E402
from dualpi2.kernel.qdisc import Qdisc  # noqa: E402
from dualpi2.top import watch  # noqa: E402

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


def linked(*links):
    """Entries of a dualpi2 with these numbers of its link, one after the other."""
    return watched(*[[qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {}), link=link))] for link in links])
