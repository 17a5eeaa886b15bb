# SPDX-License-Identifier: GPL-2.0-only
"""The interactive view: terminal and keys. curses is part of Python and supports each terminal that terminfo knows."""

import curses
import os
import sys
import textwrap
import time

from .. import Trouble
from . import details, report, table
from .report import BAD, BOLD, DIM, PLAIN, WARN

LEAST_COLUMNS, LEAST_LINES = 40, 4
KEYS = {"table": "q quit  Enter details  s sort  f filter  / search  p pause  ? help",
        "details": "q quit  Escape back  p pause  arrows scroll  ? help", "help": "q quit  Escape back  arrows scroll"}
HELP = """Keys
  q               quit
  p, space        pause, continue
  up/down, k/j    select a qdisc; in the details, scroll
  page up/down    one screen up or down
  home/end        first or last line
  Enter           details of the selected qdisc
  Escape          back; in the table, end filter
  s, F6           sort by the next column
  f, F4           show only qdiscs with this text
  /, F3           search: select next with this text
  n               search again
  ?, h, F1        this help

Colours and marks
  ! red           in overload
  * yellow        mean delay of a queue is above
                  1.5 times its target

Columns
  RATE            forwarded, both queues
  L4S P99         99th percentile of the sojourn
  CLASSIC P99     time in each queue
  MARKED          share of forwarded packets that
                  dualpi2 marked CE
  DROPPED         share of arrived packets
  QUEUED          backlog
  PACKETS         forwarded per second
  OVERLOADS       since the qdisc was created
  SANCTIONED      flows that queue protection redirects

-  unknown: no packet, or no interval yet"""

ENTER, ESCAPE, BACKSPACE = (10, 13, curses.KEY_ENTER), 27, (8, 127, curses.KEY_BACKSPACE)
MOVES = {curses.KEY_UP: -1, ord("k"): -1, curses.KEY_DOWN: 1, ord("j"): 1}


def show(watch, options, none_text, ascii_only, color):
    """The refreshing view, until q is pressed."""
    if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise Trouble("the view needs a terminal; without one use --once, --json or --prometheus", 2)
    # By default, curses waits one second for the rest of an escape sequence.
    os.environ.setdefault("ESCDELAY", "25")
    try:
        curses.setupterm()
    except curses.error:
        raise Trouble(f"unknown terminal type '{os.environ.get('TERM', '')}'; set TERM, for example to xterm, or use "
                      "--once", 2) from None
    if not curses.tigetstr("cup"):
        raise Trouble(f"a terminal of type '{os.environ.get('TERM', '')}' cannot move its cursor; set TERM, for "
                      "example to xterm, or use --once", 2)
    curses.wrapper(lambda window: View(window, watch, options, none_text, ascii_only, color).run())


def _styles(color):
    """{style: attributes of curses}."""
    found = {PLAIN: curses.A_NORMAL, BOLD: curses.A_BOLD, DIM: curses.A_DIM, WARN: curses.A_BOLD,
             BAD: curses.A_BOLD | curses.A_UNDERLINE}
    for setting in (lambda: curses.curs_set(0), curses.use_default_colors):
        try:
            setting()
        except curses.error:
            pass
    if color and curses.has_colors():
        for number, (style, hue) in enumerate(((WARN, curses.COLOR_YELLOW), (BAD, curses.COLOR_RED)), 1):
            try:
                curses.init_pair(number, hue, -1)
                found[style] = curses.color_pair(number) | (curses.A_BOLD if style == BAD else 0)
            except (curses.error, ValueError):
                pass
    return found


class View:
    """What the screen shows: mode "table", "details" or "help"; the selected qdisc; the first line of each mode."""

    def __init__(self, window, watch, options, none_text, ascii_only, color):
        self.window = window
        self.watch = watch
        self.interval, self.limit = options.interval, options.limit
        self.sort, self.filter, self.search = options.sort, options.filter, ""
        self.none_text = none_text
        self.ascii_only = ascii_only
        self.paused = False
        self.mode = "table"
        self.top = dict.fromkeys(KEYS, 0)
        self.entries = []
        self.selected = None
        self.prompt = None
        self.unix_time = time.time()
        self.styles = _styles(color)

    def run(self):
        """Sample, paint, and handle keys until the next sample is due."""
        due = time.monotonic()
        while True:
            if time.monotonic() >= due:
                if not self.paused:
                    self.watch.sample()
                    self.unix_time = time.time()
                due = max(due + self.interval, time.monotonic())
                self.choose()
            self.paint()
            # At least once, so that keys have an effect even if sampling takes longer than the interval.
            self.window.timeout(max(int((due - time.monotonic()) * 1000) + 1, 1))
            if not self.key(self.window.getch()):
                return

    def choose(self):
        """Apply filter, order and limit."""
        self.entries = table.chosen(self.watch.entries, self.sort, self.filter, self.limit)

    def index(self):
        """Place of the selected qdisc; 0 if it is gone."""
        return next((place for place, entry in enumerate(self.entries) if entry.key == self.selected), 0)

    # Keys

    def key(self, key):
        """Act on a key; False to end."""
        if self.prompt:
            self.edit(key)
            return True
        if key in (ord("q"), ord("Q")):
            return False
        if key in (ord("p"), ord("P"), ord(" ")):
            self.paused = not self.paused
        elif key in (ord("?"), ord("h"), curses.KEY_F1):
            self.mode = "table" if self.mode == "help" else "help"
        elif key == ESCAPE or key in BACKSPACE or self.mode != "table" and key in ENTER:
            if self.mode == "table":
                self.filter = ""
                self.choose()
            self.mode = "table"
        elif self.mode == "table" and self.table_key(key):
            pass
        else:
            self.move(key)
        return True

    def table_key(self, key):
        """Act on a key of the table; False if it has none of these meanings."""
        if key in ENTER:
            if self.entries:
                self.selected = self.entries[self.index()].key
                self.mode, self.top["details"] = "details", 0
        elif key in (ord("s"), ord("S"), curses.KEY_F6):
            self.sort = table.KEYS[(table.KEYS.index(self.sort) + 1) % len(table.KEYS)]
            self.choose()
        elif key in (ord("f"), curses.KEY_F4):
            self.prompt = ["filter", self.filter]
        elif key in (ord("/"), curses.KEY_F3):
            self.prompt = ["search", ""]
        elif key == ord("n"):
            self.find()
        else:
            return False
        return True

    def move(self, key):
        """Select another qdisc, or scroll."""
        page = max(self.window.getmaxyx()[0] - (3 if self.mode == "table" else 2), 1)
        step = {**MOVES, curses.KEY_PPAGE: -page, curses.KEY_NPAGE: page, curses.KEY_HOME: -1 << 30,
                curses.KEY_END: 1 << 30}.get(key, 0)
        if self.mode != "table":
            self.top[self.mode] += step
        elif step and self.entries:
            self.selected = self.entries[max(min(self.index() + step, len(self.entries) - 1), 0)].key

    def edit(self, key):
        """A key while the user types a filter or a search."""
        kind, text = self.prompt
        if key in ENTER:
            self.prompt = None
            if kind == "search":
                self.search = text
                self.find(0)
        elif key == ESCAPE:
            self.prompt = None
        elif key in BACKSPACE:
            self.prompt = [kind, text[:-1]]
        elif 32 <= key < 127:
            self.prompt = [kind, text + chr(key)]
        if kind == "filter" and key in ENTER:
            self.filter = text
            self.choose()

    def find(self, first=1):
        """Select the next qdisc with the text of the search."""
        here = self.index()
        for step in range(first, len(self.entries) + first):
            entry = self.entries[(here + step) % len(self.entries)]
            if self.search and table.matches(entry, self.search):
                self.selected = entry.key
                return

    # Painting

    def body(self, width):
        """(lines that stay, lines that scroll, place of the selected one or None)."""
        if self.mode == "help":
            return [], [[(line, PLAIN)] for text in HELP.splitlines() for line in textwrap.wrap(
                text, width, subsequent_indent=" " * 18) or [""]], None
        entry = next((one for one in self.watch.entries if one.key == self.selected), None)
        if self.mode == "details" and entry:
            return [], details.qdisc_lines(entry, width, self.unix_time, self.ascii_only), None
        if self.mode == "details":
            return [], [[("this qdisc was removed; press Escape for the table", PLAIN)]], None
        if not self.entries and self.watch.entries:
            return [], [[(f"no qdisc matches '{self.filter}'; press Escape to end the filter"[:width], PLAIN)]], None
        found = table.lines(self.entries, width, self.none_text)
        return (found[:1], found[1:], self.index()) if self.entries else ([], found, None)

    def paint(self):
        """The whole screen; curses sends only the changes."""
        height, width = self.window.getmaxyx()
        self.window.erase()
        if width < LEAST_COLUMNS or height < LEAST_LINES:
            wanted = (f"the terminal needs at least {LEAST_COLUMNS} columns and {LEAST_LINES} lines; "
                      f"it is {width} by {height}")
            for row, line in enumerate(textwrap.wrap(wanted, max(width - 1, 1))[:height]):
                self._put(row, [(line, PLAIN)], width)
        else:
            fixed, body, selected = self.body(width - 1)
            room = height - 2 - len(fixed)
            top = self.top[self.mode]
            if selected is not None:
                top = min(max(top, selected - room + 1), selected)
            top = self.top[self.mode] = max(min(top, len(body) - room), 0)
            self._put(0, [(self.head(width), DIM)], width)
            for row, line in enumerate(fixed + body[top:top + room], 1):
                self._put(row, line, width, selected is not None and row - 1 - len(fixed) + top == selected)
            foot = "PAUSED  " + KEYS[self.mode] if self.paused else KEYS[self.mode]
            if self.prompt:
                foot = f"{self.prompt[0]}: {self.prompt[1]}_  (Enter accepts, Escape cancels)"
            elif len(body) > room:
                place = f"{top + 1}-{min(top + room, len(body))}/{len(body)}"
                foot = foot[:width - len(place) - 2] + " " + place
            self._put(height - 1, [(foot, BOLD if self.paused or self.prompt else DIM)], width)
        self.window.refresh()

    def head(self, width):
        """The first line."""
        shown, number = len(self.entries), len(self.watch.entries)
        clock = time.strftime("%H:%M:%S", time.localtime(self.unix_time))
        found = f"{clock} every {self.interval:g} s, {number} qdisc{'' if number == 1 else 's'}"
        if shown != number:
            found += f", {shown} shown"
        if self.sort != "device":
            found += f", by {self.sort}"
        if self.filter:
            found += f", filter '{self.filter}'"
        return "dualpi2-top " * (len(found) + 12 < width) + found

    def _put(self, row, line, width, selected=False):
        column = 0
        if selected:
            line = [*line, (" " * max(width - 1 - report.width_of(line), 0), PLAIN)]
        for part, style in line:
            # Writing to the last column of the last line would scroll the terminal.
            part = part[:max(width - 1 - column, 0)]
            attributes = self.styles[style] | (curses.A_REVERSE if selected else 0)
            try:
                try:
                    self.window.addstr(row, column, part, attributes)
                except UnicodeEncodeError:      # a device name with letters that the locale lacks
                    self.window.addstr(row, column, part.encode("ascii", "replace").decode(), attributes)
            except curses.error:    # the terminal has just become smaller; the next key is KEY_RESIZE
                return
            column += len(part)
