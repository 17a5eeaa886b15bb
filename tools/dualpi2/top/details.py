# SPDX-License-Identifier: GPL-2.0-only
"""The details of a qdisc: 5 to 12 lines for any width. A line is a list of (text, style). No terminal."""

import textwrap

from ..kernel.stats import QUEUES
from ..kernel.text import bits, count, delay, percent
from . import report
from .report import BAD, BOLD, DIM, PLAIN, WARN

WIDE = 160
TITLES = {"l": "L4S", "c": "Classic"}

# The wide form: heading and width of each column.
COLUMNS = (("", 9), ("bit/s", 13), ("packets", 13), ("queued", 11), ("marked", 9), ("drop ECT", 10),
           ("drop Not", 10), ("CE in", 12), ("mean", 8), ("P50", 8), ("P90", 8), ("P99", 8), ("P99.9", 8), ("max", 9))


def _wrapped(items, width, indent=""):
    """Items [(text, style)] in lines, separated by two blanks. An item breaks only if it is longer than a line."""
    found = []
    line = []
    for text, style in items:
        # Numbers and units contain no blanks in "1.23ms", so that only sentences break.
        for number, part in enumerate(textwrap.wrap(text, width - len(indent)) or [""]):
            gap = "  " if line and not number else ""
            if line and (number or report.width_of(line) + len(gap) + len(part) > width):
                found.append(line)
                line = []
            line.append(((gap if line else indent) + part, style))
    return found + [line] if line else found


def _grid(cells, cell_width, width):
    """Cells (label, value) of equal width, side by side, values aligned to the right."""
    found = []
    per_line = max((width - 1) // cell_width, 1)
    for first in range(0, len(cells), per_line):
        line = []
        for label, value in cells[first:first + per_line]:
            line += [(" " + label, DIM), (value.rjust(cell_width - 1 - len(label)), PLAIN)]
        found.append(line)
    return found


def traffic_cells(entry, queue):
    """Rates and shares of a queue as (label, value)."""
    interval = entry.interval
    rate = interval and interval.rate(queue, "forwarded_bytes")
    return [
        ("rate", bits(None if rate is None else 8 * rate)),
        ("", count(interval and interval.rate(queue, "forwarded"), "pkt/s")),
        ("queued", count(entry.sample.queues[queue].counters.get("queued"), "pkt")),
        ("marked", percent(interval and interval.mark_share(queue))),
        ("drop ECT", percent(interval and interval.drop_share(queue, "ect"))),
        ("drop Not", percent(interval and interval.drop_share(queue, "not_ect"))),
        ("CE in", count(interval and interval.rate(queue, "arrived_ce"), "pkt/s")),
    ]


def delay_cells(entry, queue):
    """Sojourn times of a queue as (label, value)."""
    delays = entry.interval and entry.interval.delays[queue]
    if delays is None:
        values = [None] * 5
        longest = "-"
    else:
        values = [delays.mean_ns()] + [delays.percentile_ns(percent) for _, percent in report.PERCENTILES]
        longest = delay(delays.max_ns if delays.packets else None)
        if delays.packets and not delays.max_exact:
            longest = "<" + longest
    return [(label, delay(value)) for label, value in zip(("mean", "P50", "P90", "P99", "P99.9"), values)] + [
        ("max", longest)]


def _basic(entry, width):
    """The in-tree dualpi2: counters of both queues together, and the age of the first packet of each queue."""
    interval, sample = entry.interval, entry.sample
    rate = interval and interval.rate(None, "bytes")
    packets = interval and interval.total.get("packets")
    marks = interval and interval.total.get("ecn_mark")
    cells = [("rate", bits(None if rate is None else 8 * rate)),
             ("", count(interval and interval.rate(None, "packets"), "pkt/s")),
             ("queued", count(sample.basic["qlen"], "pkt")),
             ("marked", percent(marks / packets if packets and marks is not None else None)),
             ("drops", count(interval and interval.rate(None, "drops"), "pkt/s"))]
    for queue in QUEUES:
        if "delay_" + queue in sample.xstats:
            cells.append((TITLES[queue] + " age", delay(sample.xstats["delay_" + queue] * 1000)))
    return _grid(cells, 20, width)


def qdisc_lines(entry, width, unix_time, ascii_only=False):
    """One qdisc with its queues."""
    sample = entry.sample
    items = [(entry.title(), BOLD)]
    if entry.name:
        items.append((entry.name, BOLD))
    for name, label in (("p", "p'"), ("p_c", "p_C"), ("p_cl", "p_CL")):
        if sample.probability(name) is not None:
            items.append((f"{label} {percent(sample.probability(name))}", PLAIN))
    text, now = report.overload(sample, unix_time)
    if text:
        items.append((text, BAD if now else PLAIN))
    items += [(phrase, PLAIN) for phrase in report.link(sample)]
    items += [(phrase, WARN if sample.qprotect.get("sanctioned") else PLAIN) for phrase in report.qprotect(sample)]
    found = _wrapped(items, width)
    if sample.level == "full":
        if width >= WIDE:
            found += _table(entry, width, ascii_only)
        else:
            for queue in QUEUES:
                found += _narrow(entry, queue, width, ascii_only)
    elif sample.level == "basic":
        found += _basic(entry, width)
    for sentence in report.missing(sample):
        found += [[(" " + line, DIM)] for line in textwrap.wrap(sentence, width - 1)]
    return found


def _narrow(entry, queue, width, ascii_only):
    head = [(TITLES[queue], BOLD)]
    room = width - len(TITLES[queue]) - 7 - 7 - 2
    bars, top = report.sparkline(entry.history[queue], room, ascii_only)
    if bars:
        head += [(" P99 0-", DIM), (delay(top).ljust(7) + " ", DIM), (bars, PLAIN)]
    return [head] + _grid(traffic_cells(entry, queue), 20, width + 1) + _grid(delay_cells(entry, queue), 13, width)


def _table(entry, width, ascii_only):
    heading = "".join(label.rjust(size) for label, size in COLUMNS)
    room = width - len(heading) - 12
    found = [[(heading + "  P99 over time", DIM)]]
    for queue in QUEUES:
        values = [value for _, value in traffic_cells(entry, queue) + delay_cells(entry, queue)]
        line = [(" " + TITLES[queue].ljust(COLUMNS[0][1] - 1), BOLD),
                ("".join(value.rjust(size) for value, (_, size) in zip(values, COLUMNS[1:])), PLAIN)]
        bars, top = report.sparkline(entry.history[queue], room, ascii_only)
        if bars:
            line += [("  0-" + delay(top).ljust(7) + " ", DIM), (bars, PLAIN)]
        found.append(line)
    return found


def lines(entries, width, unix_time, none_text, ascii_only=False):
    """All qdiscs, separated by empty lines."""
    if not entries:
        return [[(line, PLAIN)] for line in textwrap.wrap(none_text, width)]
    found = []
    for entry in entries:
        if found:
            found.append([])
        found += qdisc_lines(entry, width, unix_time, ascii_only)
    return found
