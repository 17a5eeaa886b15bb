# SPDX-License-Identifier: GPL-2.0-only
"""Samples of all dualpi2, one after the other, and what lies between two of them."""

import collections
import time

from ..kernel import stats
from ..kernel.netlink import handle_text
from ..kernel.qdisc import Kernel

HISTORY = 240


class Entry:
    """One dualpi2: the newest sample, the last interval or None, and the P99 of those before, oldest first."""

    def __init__(self, qdisc):
        self.device = qdisc.device
        self.ifindex = qdisc.ifindex
        self.handle = handle_text(qdisc.handle)
        self.parent = handle_text(qdisc.parent)
        self.key = qdisc.key
        self.sample = qdisc.sample()
        self.interval = None
        self.history = {queue: collections.deque(maxlen=HISTORY) for queue in stats.QUEUES}

    def follow(self, before, seconds):
        """Take up from the entry of the sample before; False if that was another qdisc."""
        self.interval = stats.Interval.between(self.sample, before.sample, seconds)
        if self.interval is None:
            return False
        self.history = before.history
        for queue in stats.QUEUES:
            delays = self.interval.delays[queue]
            self.history[queue].append(delays.percentile_ns(99) if delays else None)
        return True


class Watch:
    """All dualpi2 of a namespace or a device."""

    def __init__(self, netns=None, device=None, kernel=None, clock=time.monotonic):
        self.kernel = kernel or Kernel(netns)
        self.device = device
        self.clock = clock
        self.entries = []
        self.at = None

    def sample(self):
        """Look anew; the entries in a steady order."""
        ifindex = self.kernel.ifindex(self.device) if self.device else 0
        began = self.clock()
        found = [Entry(qdisc) for qdisc in self.kernel.qdiscs(ifindex)]
        # The middle of the dump is the best guess of when each was asked.
        at = (began + self.clock()) / 2
        known = {entry.key: entry for entry in self.entries}
        for entry in found:
            if entry.key in known:
                entry.follow(known[entry.key], at - self.at)
        self.at = at
        self.entries = sorted(found, key=lambda entry: entry.key)
        return self.entries

    def since_start(self):
        """Have the intervals be those since each qdisc's beginning."""
        for entry in self.entries:
            entry.interval = stats.Interval.since_start(entry.sample)
        return self.entries
