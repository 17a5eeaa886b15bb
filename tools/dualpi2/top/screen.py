# SPDX-License-Identifier: GPL-2.0-only
"""The terminal: lines for any width, and a loop of looking, painting and keys.

lines() and what it calls are pure: a line is a list of (text, style). curses is Python's own and paints what has
changed only, on any terminal that terminfo knows.
"""

import curses
import locale
import os
import sys
import textwrap
import time

from .. import Trouble
from ..kernel.stats import QUEUES
from ..kernel.text import bits, count, delay, percent
from . import report

LEAST_COLUMNS, LEAST_LINES = 40, 4
WIDE = 160
TITLES = {"l": "L4S", "c": "Classic"}
PLAIN, BOLD, DIM, BAD = "plain", "bold", "dim", "bad"
KEYS = "q quit  p pause  arrows scroll"

# Of the wide form: heading and width.
COLUMNS = (("", 9), ("bit/s", 13), ("packets", 13), ("queued", 11), ("marked", 9), ("drop ECT", 10),
           ("drop Not", 10), ("CE in", 12), ("mean", 8), ("P50", 8), ("P90", 8), ("P99", 8), ("P99.9", 8), ("max", 9))


def width_of(line):
    """Columns of a line."""
    return sum(len(text) for text, _ in line)


def _wrapped(items, width, indent=""):
    """Items [(text, style)] in lines, two blanks between them, none broken if it fits a line of its own."""
    found = []
    line = []
    for text, style in items:
        # Without blanks inside what belongs together, sentences can break, numbers not.
        for number, part in enumerate(textwrap.wrap(text, width - len(indent)) or [""]):
            gap = "  " if line and not number else ""
            if line and (number or width_of(line) + len(gap) + len(part) > width):
                found.append(line)
                line = []
            line.append(((gap if line else indent) + part, style))
    return found + [line] if line else found


def _grid(cells, cell_width, width):
    """Cells (label, value) side by side, all of one width, the value to the right of each."""
    found = []
    per_line = max((width - 1) // cell_width, 1)
    for first in range(0, len(cells), per_line):
        line = []
        for label, value in cells[first:first + per_line]:
            line += [(" " + label, DIM), (value.rjust(cell_width - 1 - len(label)), PLAIN)]
        found.append(line)
    return found


def traffic_cells(entry, queue):
    """What a queue did, as (label, value)."""
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
    """How long its packets waited, as (label, value)."""
    delays = entry.interval and entry.interval.delays[queue]
    if delays is None:
        values = [None] * 5
        greatest = "-"
    else:
        values = [delays.mean_ns()] + [delays.percentile_ns(percent) for _, percent in report.PERCENTILES]
        greatest = delay(delays.max_ns if delays.packets else None)
        if delays.packets and not delays.max_exact:
            greatest = "<" + greatest
    return [(label, delay(value)) for label, value in zip(("mean", "P50", "P90", "P99", "P99.9"), values)] + [
        ("max", greatest)]


def _basic(entry, width):
    """Of Linux's own dualpi2: the qdisc as a whole, and the age of each queue's first packet."""
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
            cells.append((TITLES[queue] + " wait", delay(sample.xstats["delay_" + queue] * 1000)))
    return _grid(cells, 20, width)


def qdisc_lines(entry, width, unix_time, ascii_only=False):
    """One dualpi2, with its queues."""
    sample = entry.sample
    title = f"{entry.device} {entry.handle} " + ("root" if entry.parent == "root" else "in " + entry.parent)
    items = [(title, BOLD)]
    for name, label in (("p", "p'"), ("p_c", "p_C"), ("p_cl", "p_CL")):
        if sample.probability(name) is not None:
            items.append((f"{label} {percent(sample.probability(name))}", PLAIN))
    text, now = report.overload(sample, unix_time)
    if text:
        items.append((text, BAD if now else PLAIN))
    items += [(phrase, PLAIN) for phrase in report.link(sample)]
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
    """All of them, with an empty line between two."""
    if not entries:
        return [[(line, PLAIN)] for line in textwrap.wrap(none_text, width)]
    found = []
    for entry in entries:
        if found:
            found.append([])
        found += qdisc_lines(entry, width, unix_time, ascii_only)
    return found


def text(entries, width, unix_time, none_text, ascii_only=False):
    """The same without a terminal."""
    return "\n".join("".join(part for part, _ in line).rstrip()
                     for line in lines(entries, width, unix_time, none_text, ascii_only))


def ascii_wanted():
    """Can this terminal show no bars?"""
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:    # one that is not installed here, as ssh passes them on
        return True
    return locale.nl_langinfo(locale.CODESET).upper().replace("-", "") != "UTF8"


def show(watch, interval, none_text):
    """The refreshing view, until q is pressed."""
    if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise Trouble("the view needs a terminal; without one use --once, --json or --openmetrics", 2)
    ascii_only = ascii_wanted()
    # Else Escape, with which the arrows begin, waits for a second.
    os.environ.setdefault("ESCDELAY", "25")
    try:
        curses.setupterm()
    except curses.error:
        raise Trouble(f"the terminal type '{os.environ.get('TERM', '')}' is unknown; set TERM, to xterm for "
                      "instance, or use --once", 2) from None
    if not curses.tigetstr("cup"):
        raise Trouble(f"a terminal of type '{os.environ.get('TERM', '')}' cannot be painted on; set TERM, to xterm "
                      "for instance, or use --once", 2)
    curses.wrapper(lambda window: View(window, watch, interval, none_text, ascii_only).run())


class View:
    """The screen, where it is scrolled to, and whether it is held."""

    def __init__(self, window, watch, interval, none_text, ascii_only):
        self.window = window
        self.watch = watch
        self.interval = interval
        self.none_text = none_text
        self.ascii_only = ascii_only
        self.paused = False
        self.top = 0
        self.unix_time = time.time()
        self.styles = {PLAIN: curses.A_NORMAL, BOLD: curses.A_BOLD, DIM: curses.A_DIM, BAD: curses.A_REVERSE}
        for setting in (lambda: curses.curs_set(0), curses.use_default_colors):
            try:
                setting()
            except curses.error:
                pass
        if curses.has_colors():
            try:
                curses.init_pair(1, curses.COLOR_RED, -1)
                self.styles[BAD] = curses.color_pair(1) | curses.A_BOLD
            except (curses.error, ValueError):
                pass

    def run(self):
        """Look, paint, wait for keys until it is time to look again."""
        due = time.monotonic()
        while True:
            if time.monotonic() >= due:
                if not self.paused:
                    self.watch.sample()
                    self.unix_time = time.time()
                due = max(due + self.interval, time.monotonic())
            self.paint()
            # At least once, so that keys are seen however long a look takes.
            self.window.timeout(max(int((due - time.monotonic()) * 1000) + 1, 1))
            if not self.key(self.window.getch()):
                return

    def key(self, key):
        """Act on a key; False to end."""
        height = max(self.window.getmaxyx()[0] - 2, 1)
        moves = {curses.KEY_UP: -1, ord("k"): -1, curses.KEY_DOWN: 1, ord("j"): 1, curses.KEY_PPAGE: -height,
                 curses.KEY_NPAGE: height, curses.KEY_HOME: -1 << 30, curses.KEY_END: 1 << 30}
        if key in (ord("q"), ord("Q")):
            return False
        if key in (ord("p"), ord("P"), ord(" ")):
            self.paused = not self.paused
        self.top += moves.get(key, 0)
        return True

    def paint(self):
        """All of the screen; curses sends what is new of it."""
        height, width = self.window.getmaxyx()
        self.window.erase()
        if width < LEAST_COLUMNS or height < LEAST_LINES:
            wanted = (f"make the terminal {LEAST_COLUMNS} columns by {LEAST_LINES} lines at least; "
                      f"it is {width} by {height}")
            for row, line in enumerate(textwrap.wrap(wanted, max(width - 1, 1))[:height]):
                self._put(row, [(line, PLAIN)], width)
        else:
            body = lines(self.watch.entries, width - 1, self.unix_time, self.none_text, self.ascii_only)
            room = height - 2
            self.top = max(min(self.top, len(body) - room), 0)
            number = len(self.watch.entries)
            clock = time.strftime("%H:%M:%S", time.localtime(self.unix_time))
            head = f"{clock} every {self.interval:g} s, {number} qdisc{'' if number == 1 else 's'}"
            self._put(0, [("dualpi2-top " * (len(head) + 12 < width) + head, DIM)], width)
            for row, line in enumerate(body[self.top:self.top + room], 1):
                self._put(row, line, width)
            foot = "PAUSED  " + KEYS if self.paused else KEYS
            if len(body) > room:
                place = f"{self.top + 1}-{min(self.top + room, len(body))}/{len(body)}"
                foot = foot[:width - len(place) - 2] + " " + place
            self._put(height - 1, [(foot, BOLD if self.paused else DIM)], width)
        self.window.refresh()

    def _put(self, row, line, width):
        column = 0
        for part, style in line:
            # The last column of the last line is not to be written to: the terminal would scroll.
            part = part[:max(width - 1 - column, 0)]
            try:
                try:
                    self.window.addstr(row, column, part, self.styles[style])
                except UnicodeEncodeError:      # the name of a device, in a locale that lacks its letters
                    self.window.addstr(row, column, part.encode("ascii", "replace").decode(), self.styles[style])
            except curses.error:    # it has just become smaller; the next key tells
                return
            column += len(part)
