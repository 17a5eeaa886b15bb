# SPDX-License-Identifier: GPL-2.0-only
"""One line per qdisc: columns, order, filter, severity. A line is a list of (text, style). No terminal."""

import textwrap

from ..kernel.stats import QUEUES
from ..kernel.text import bits, count, delay, percent
from .report import BAD, BOLD, DIM, PLAIN, WARN

# The mean delay of a saturated queue varies around the target; above this multiple, the AQM does not hold the target.
ABOVE_TARGET = 1.5
MARKS = {BAD: "!", WARN: "*", PLAIN: " "}


def _rate(entry):
    found = entry.interval and entry.interval.rate(None, "bytes")
    return None if found is None else 8 * found


def _packets(entry):
    return entry.interval and entry.interval.rate(None, "packets")


def _p99(queue):
    def value(entry):
        delays = entry.interval and entry.interval.delays[queue]
        return delays.percentile_ns(99) if delays else None
    return value


def _queues(entry, part, whole):
    """The share of two counts of both queues, None if unknown."""
    values = [(part(entry.interval, queue), whole(entry.interval, queue)) for queue in QUEUES] if entry.interval else []
    if not values or any(None in pair for pair in values):
        return None
    parts, wholes = (sum(one) for one in zip(*values))
    return min(parts / wholes, 1.0) if wholes else 1.0 if parts else None


def _marks(entry):
    if entry.interval and entry.sample.level == "basic":
        marks, packets = entry.interval.total.get("ecn_mark"), entry.interval.total.get("packets")
        return marks / packets if packets and marks is not None else None
    return _queues(entry, lambda found, queue: found.marked(queue),
                   lambda found, queue: found.counters[queue].get("forwarded"))


def _drops(entry):
    return _queues(entry, lambda found, queue: found.dropped(queue, None),
                   lambda found, queue: found.arrived(queue, None))


def _queued(entry):
    return entry.sample.basic["qlen"]


def _overloads(entry):
    return entry.sample.overload.get("count")


def _sanctioned(entry):
    return entry.sample.qprotect.get("sanctioned")


# Key of --sort, heading, width, value of an entry, its text. The first ones stay where the terminal is narrow.
COLUMNS = (
    ("rate", "RATE", 13, _rate, bits),
    ("p99", "L4S P99", 9, _p99("l"), delay),
    ("classic_p99", "CLASSIC P99", 13, _p99("c"), delay),
    ("marked", "MARKED", 9, _marks, percent),
    ("dropped", "DROPPED", 9, _drops, percent),
    ("queued", "QUEUED", 10, _queued, lambda value: count(value, "pkt")),
    ("packets", "PACKETS", 13, _packets, lambda value: count(value, "pkt/s")),
    ("overloads", "OVERLOADS", 11, _overloads, lambda value: count(value, "").strip()),
    ("sanctioned", "SANCTIONED", 12, _sanctioned, lambda value: count(value, "").strip()),
)
KEYS = ("device", *[column[0] for column in COLUMNS])


def severity(entry):
    """BAD in overload; WARN if the mean delay of a queue is above its target; else PLAIN."""
    if entry.sample.overload.get("now"):
        return BAD
    target = entry.sample.link.get("target_ns")
    for queue in QUEUES if target and entry.interval else ():
        delays = entry.interval.delays[queue]
        if delays and (delays.mean_ns() or 0) > ABOVE_TARGET * target:
            return WARN
    return PLAIN


def matches(entry, text):
    """Does the name, device, handle or parent contain the text? Upper and lower case are equal."""
    return text.lower() in f"{entry.title()} {entry.name or ''}".lower()


def chosen(entries, sort="device", text="", limit=None):
    """Entries that match a filter, in the order of a key: devices ascending, numbers descending, unknown ones last."""
    found = [entry for entry in entries if matches(entry, text)]
    value = {column[0]: column[3] for column in COLUMNS}.get(sort)
    if value:
        found.sort(key=lambda entry: (value(entry) is None, -(value(entry) or 0)))
    return found[:limit]


class Table:
    """The columns that fit a width, and the lines of some entries in them."""

    def __init__(self, entries, width):
        self.full = {entry.key: " ".join(filter(None, (entry.title(), entry.name))) for entry in entries}
        longest = max(map(len, self.full.values()), default=0)
        labels = max((len(entry.label()) for entry in entries), default=0)
        self.columns = []
        room = width - 2
        for column in COLUMNS:
            if room - column[2] < min(labels, 20):
                break
            self.columns.append(column)
            room -= column[2]
        self.room = min(room, longest + 1)
        self.shortened = longest > room

    def heading(self):
        """The first line."""
        return [("  " + "QDISC".ljust(self.room) + "".join(column[1].rjust(column[2]) for column in self.columns), DIM)]

    def line(self, entry):
        """The line of one entry."""
        style = severity(entry)
        name = (entry.label() if self.shortened else self.full[entry.key])[:self.room].ljust(self.room)
        cells = "".join(cell(value(entry)).rjust(size) for _, _, size, value, cell in self.columns)
        return [(MARKS[style] + " ", style), (name, BOLD if style == PLAIN else style), (cells, style)]


def lines(entries, width, none_text):
    """A heading and a line for each entry."""
    if not entries:
        return [[(line, PLAIN)] for line in textwrap.wrap(none_text, width)]
    table = Table(entries, width)
    return [table.heading()] + [table.line(entry) for entry in entries]
