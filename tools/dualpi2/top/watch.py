# SPDX-License-Identifier: GPL-2.0-only
"""Samples of all dualpi2 qdiscs, and the intervals between two successive ones."""

import collections
import time

from ..kernel import stats
from ..kernel.netlink import handle_text
from ..kernel.qdisc import Kernel
from .names import Names

HISTORY = 240


class Entry:
    """One dualpi2: the newest sample, the last interval or None, and the P99 of all intervals, oldest first."""

    def __init__(self, qdisc, name=None):
        self.device = qdisc.device
        self.ifindex = qdisc.ifindex
        self.handle = handle_text(qdisc.handle)
        self.parent = handle_text(qdisc.parent)
        self.name = name
        self.key = qdisc.key
        self.sample = qdisc.sample()
        self.interval = None
        self.history = {queue: collections.deque(maxlen=HISTORY) for queue in stats.QUEUES}

    def title(self):
        """Device, handle and parent."""
        return f"{self.device} {self.handle} " + ("root" if self.parent == "root" else "in " + self.parent)

    def label(self):
        """The name of --names, else as short as it is unique on this machine; children of a default mq lack handles."""
        return self.name or f"{self.device} " + (self.parent if self.handle == "0:" else self.handle)

    def follow(self, before, seconds):
        """Continue the entry of the previous sample; False if that was another qdisc."""
        self.interval = stats.Interval.between(self.sample, before.sample, seconds)
        if self.interval is None:
            return False
        self.history = before.history
        for queue in stats.QUEUES:
            delays = self.interval.delays[queue]
            self.history[queue].append(delays.percentile_ns(99) if delays else None)
        return True


class Watch:
    """All dualpi2 qdiscs of a namespace or a device."""

    def __init__(self, netns=None, device=None, kernel=None, clock=time.monotonic, names=None):
        self.kernel = kernel or Kernel(netns)
        self.device = device
        self.clock = clock
        self.names = names or Names()
        self.entries = []
        self.at = None

    def sample(self):
        """Read the statistics; entries in the order of devices, parents and handles."""
        ifindex = self.kernel.ifindex(self.device) if self.device else 0
        began = self.clock()
        found = [Entry(qdisc, self.names.get(qdisc.device, handle_text(qdisc.handle)))
                 for qdisc in self.kernel.qdiscs(ifindex)]
        # The middle of the dump approximates the time at which each qdisc was read.
        at = (began + self.clock()) / 2
        known = {entry.key: entry for entry in self.entries}
        for entry in found:
            if entry.key in known:
                entry.follow(known[entry.key], at - self.at)
        self.at = at
        self.entries = sorted(found, key=lambda entry: entry.key)
        return self.entries

    def since_start(self):
        """Set the intervals to the whole life of each qdisc."""
        for entry in self.entries:
            entry.interval = stats.Interval.since_start(entry.sample)
        return self.entries
