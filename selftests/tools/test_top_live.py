#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top lockdep=off
"""The interactive view of dualpi2-top with a real dualpi2 under traffic. KTAP on stdout.

The view is driven and read through tmux of Debian, in the tree that scripts/root.sh makes as "top". Runs in a test
machine, in virtual time.
"""

import os
import re
import signal
import time

from lib_top_live import MIX, TOP, bottleneck, prepare
from lib import NOT_ECT, Stream, expect, expect_equal, main, note, run, shared_net, tc, test


# The view

class Screen:
    """A terminal of a size with dualpi2-top in it, started from a shell as a person does."""

    serial = 0

    def __init__(self, columns, lines, args="", before=""):
        Screen.serial += 1
        self.name = f"top{Screen.serial}"
        self.columns, self.lines = columns, lines
        self.command = f"{before} {TOP} {args}"

    def __enter__(self):
        self.tmux("new-session", "-d", "-x", str(self.columns), "-y", str(self.lines), "bash --norc")
        self.tmux("set-option", "-t", self.name, "status", "off")
        self.tmux("set-window-option", "-t", self.name, "window-size", "manual")
        self.resize(self.columns, self.lines)
        self.type("PS1='$ '; clear; echo before", "Enter")
        self.type(self.command, "Enter")
        time.sleep(2.5)
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")

    def tmux(self, verb, *args):
        """tmux for this session alone."""
        if verb == "new-session":
            args = ("-s", self.name, *args)
        return run(["tmux", "-u", "-L", self.name, verb, *args]).stdout

    def type(self, *keys):
        """Keys as tmux names them; what they bring about has come when this returns."""
        self.tmux("send-keys", "-t", self.name, *keys)
        time.sleep(0.3)

    def resize(self, columns, lines):
        """As by dragging the corner of the window."""
        self.tmux("resize-window", "-t", self.name, "-x", str(columns), "-y", str(lines))
        self.columns, self.lines = columns, lines
        time.sleep(0.3)

    def show(self):
        """The lines of the screen."""
        return self.tmux("capture-pane", "-p", "-t", self.name).split("\n")[:self.lines]

    def text(self):
        """All of them in one line, with one blank between words."""
        return " ".join(" ".join(self.show()).split())

    def alternate(self):
        """Is the picture there instead of what was on the terminal before?"""
        return self.tmux("display-message", "-p", "-t", self.name, "#{alternate_on}").strip() == "1"

    def expect_restored(self, code):
        """The shell is back as it was: what it showed, its modes, the exit code."""
        expect(not self.alternate(), "the terminal still shows the picture")
        self.type("echo code $?", "Enter")
        shown = self.show()
        expect("before" in shown and f"code {code}" in shown, f"not as before: {shown}")
        self.type("stty -a", "Enter")
        modes = self.text().replace(";", " ").split()
        for wanted in ("icanon", "echo", "isig"):
            expect(wanted in modes, f"the terminal's mode lacks {wanted}")

    def top_pid(self):
        """The process that paints."""
        shell = self.tmux("display-message", "-p", "-t", self.name, "#{pane_pid}").strip()
        return int(run(["pgrep", "-P", shell]).stdout.split()[0])


def whole_text(screen):
    """All lines, scrolled through from the first to the last."""
    screen.type("Home")
    found = screen.show()[1:-1]
    for _ in range(40):
        screen.type("Down")
        shown = screen.show()[1:-1]
        if shown == found[-len(shown):]:
            break
        found.append(shown[-1])
    return " ".join(" ".join(found).split())


def shows_everything(columns, lines):
    """All figures of both qdiscs are there, none is wider than the screen, and they are those of the kernel."""
    with bottleneck(40, *MIX) as (net, q):
        with Screen(columns, lines, f"--netns {net.rtr}") as screen:
            time.sleep(3)
            expect(screen.alternate(), "no picture")
            screen.type("p")
            for keys in ((), ("Down", "Enter")):
                for key in keys:
                    screen.type(key)
                shown = screen.show()
                for line in shown:
                    note("|" + line)
                    expect(len(line) <= columns, f"a line of {len(line)} columns: {line}")
                expect_equal(len(shown), lines, "lines")
                expect("every 1 s, 2 qdiscs" in shown[0], f"no heading: {shown[0]}")
                if not keys:
                    idle, whole = shown[2:4]
                    expect(re.match(r". down 10:", whole) and re.match(r". up 20:", idle), f"lines: {whole} {idle}")
                    [rate] = map(float, re.findall(r"([\d.]+) Mbit/s", whole))
                    expect(9 < rate < 10.5, "the rate in the table is not the link's 10 Mbit/s")
                    expect("RATE" in shown[1] and "L4S P99" in shown[1], f"no columns: {shown[1]}")
            text = whole_text(screen)
            for wanted in ("down 10: in 1:10", "L4S", "Classic", "marked", "drop ECT", "drop Not", "CE in", "P50",
                           "P90", "P99", "P99.9", "max", "Mbit/s", "p_CL", "queued"):
                expect(wanted in text, f"{wanted} is not shown: {text}")
            expect(re.search(r"[▁▂▃▄▅▆▇]", text), "no sparkline")
            expect(re.search(r"█", text), "no sparkline that reaches the top")
            rates = [float(value) for value in re.findall(r"(?<!link )(?<![\d.])([\d.]+) Mbit/s", text)]
            seen = [float(value) for value in re.findall(r"link ([\d.]+) Mbit/s", text)]
            note(f"rates: {rates}, of the link as seen: {seen}")
            expect(len(seen) == 1 and 9 < seen[0] < 11, "the rate of the link was not seen")
            expect(len(rates) == 2 and 9 < sum(rates) < 10.5, "the rates of both queues are not the link's 10 Mbit/s")
            screen.type("q")
            screen.expect_restored(0)
        q.running.kill()
        q.running = None
        q.until_idle()


@test("dualpi2-top at 40 columns")
def view_of_40_by_12_shows_everything():
    shows_everything(40, 12)


@test("dualpi2-top at 80 columns")
def view_of_80_by_24_shows_everything():
    shows_everything(80, 24)


@test("dualpi2-top at 200 columns")
def view_of_200_by_50_shows_everything():
    shows_everything(200, 50)


@test("dualpi2-top, keys")
def view_pauses_and_goes_on():
    with bottleneck() as (net, _), Screen(80, 24, f"--netns {net.rtr} --interval 0.5") as screen:
        screen.type("p")
        expect("PAUSED" in screen.text(), "p does not hold the picture")
        before = screen.show()
        time.sleep(3)
        expect_equal(screen.show(), before, "the picture while held")
        screen.type("p")
        time.sleep(3)
        expect("PAUSED" not in screen.text(), "p does not let it go on")
        expect(screen.show()[0] != before[0], "the time stands still")


@test("dualpi2-top, keys")
def view_scrolls_by_keys_within_its_lines():
    with bottleneck() as (net, _), Screen(40, 12, f"--netns {net.rtr}") as screen:
        screen.type("Enter")
        first = screen.show()
        for key, place in (("Down", 2), ("Down", 3), ("Up", 2), ("PPage", 1), ("Up", 1)):
            screen.type(key)
            expect(f" {place}-{place + 9}/" in screen.show()[-1], f"{key}: {screen.show()[-1]}")
        expect_equal(screen.show()[1:], first[1:], "back at the beginning")
        for key in ("End", "NPage"):
            screen.type(key)
            last = screen.show()
            begin, end, whole = map(int, re.search(r"(\d+)-(\d+)/(\d+)", last[-1]).groups())
            expect_equal((end - begin, end), (9, whole), f"the end, {key}")
        screen.type("Down")
        expect_equal(screen.show()[1:], last[1:], "beyond the end")


@test("dualpi2-top, size")
def view_follows_the_size_of_the_terminal():
    with bottleneck() as (net, _), Screen(80, 24, f"--netns {net.rtr}") as screen:
        screen.type("Enter")
        expect("P99 over time" not in screen.text(), "wide form at 80 columns")
        screen.resize(200, 50)
        expect("P99 over time" in screen.text(), f"no wide form at 200 columns: {screen.text()}")
        screen.resize(30, 10)
        expect("the terminal needs at least 40 columns and 4 lines; it is 30 by 10" in screen.text(), screen.text())
        screen.resize(3, 2)
        screen.resize(40, 4)
        expect("up 20: root" in screen.text(), screen.text())
        screen.resize(80, 24)
        screen.type("q")
        screen.expect_restored(0)


@test("dualpi2-top, signals")
def view_ended_by_a_signal_restores_the_terminal():
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        with bottleneck() as (net, _), Screen(80, 24, f"--netns {net.rtr}") as screen:
            expect(screen.alternate(), "no picture")
            os.kill(screen.top_pid(), number)
            time.sleep(0.5)
            screen.expect_restored(code)


@test("dualpi2-top, keys")
def view_stopped_by_control_z_comes_back():
    with bottleneck() as (net, _), Screen(80, 24, f"--netns {net.rtr}") as screen:
        screen.type("C-z")
        expect(not screen.alternate(), "the terminal still shows the picture")
        screen.type("fg", "Enter")
        time.sleep(1.5)
        expect("down 10:" in screen.text(), screen.text())
        screen.type("C-c")
        screen.expect_restored(130)


@test("dualpi2-top, qdiscs come and go")
def view_tells_when_the_last_qdisc_is_gone_and_sees_a_new_one():
    net = shared_net()
    with Screen(40, 12, f"--netns {net.rtr} --interval 0.5") as screen:
        text = screen.text()
        expect("no dualpi2 in network namespace" in text and "tc qdisc add dev" in text, text)
        tc("qdisc add dev up root handle 20: dualpi2", net.rtr)
        time.sleep(1.5)
        expect("up 20: root" in screen.text(), screen.text())
        tc("qdisc replace dev up root handle 30: dualpi2", net.rtr)
        time.sleep(1.5)
        expect("up 30: root" in screen.text() and "up 20:" not in screen.text(), screen.text())
        tc("qdisc del dev up root", net.rtr)
        time.sleep(1.5)
        expect("no dualpi2 in network namespace" in screen.text(), screen.text())


@test("dualpi2-top, terminals")
def view_on_a_terminal_that_cannot_says_what_to_do():
    with bottleneck() as (net, _):
        for kind, wanted in (("nosuch", "unknown terminal type 'nosuch'; set TERM"),
                             ("dumb", "cannot move its cursor")):
            with Screen(80, 24, f"--netns {net.rtr}", f"TERM={kind}") as screen:
                screen.type("echo code $?", "Enter")
                expect(wanted in screen.text() and "code 2" in screen.text(), screen.text())


@test("dualpi2-top, terminals")
def view_without_utf8_has_bars_of_ascii():
    with bottleneck(20, *MIX) as (net, q), Screen(80, 24, f"--netns {net.rtr}", "LC_ALL=C") as screen:
        time.sleep(3)
        screen.type("Down")
        screen.type("Enter")
        text = screen.text()
        expect(text.isascii() and re.search(r"P99 0-[\d.]+[mu]s [.:=+*#@-]+ rate", text), text)
        q.running.kill()
        q.running = None
        q.until_idle()


# The table

def selected(screen):
    """The line in reverse video."""
    lines = screen.tmux("capture-pane", "-p", "-e", "-t", screen.name).split("\n")
    [found] = [line for line in lines if re.search(r"\x1b\[(?:\d+;)*7[;m]", line)]
    return " ".join(re.sub(r"\x1b\[[\d;]*m", "", found).split())


def rows(screen):
    """Device of each line of the table."""
    return [line.split()[0] for line in screen.show()[2:-1] if line.strip()]


@test("dualpi2-top, many qdiscs")
def table_selects_filters_searches_and_sorts_a_hundred_qdiscs():
    net = shared_net()
    net.idle_instances(100)
    try:
        with Screen(80, 24, f"--netns {net.rtr} --interval 0.5") as screen:
            expect("100 qdiscs" in screen.show()[0], screen.show()[0])
            first = rows(screen)
            expect_equal(len(first), 21, "lines of qdiscs")
            expect(selected(screen).startswith(first[0] + " "), selected(screen))
            for key, place in (("Down", 1), ("j", 2), ("Up", 1), ("k", 0), ("Up", 0)):
                screen.type(key)
                expect(selected(screen).startswith(first[place] + " "), f"{key}: {selected(screen)}")
            screen.type("End")
            expect(" 80-100/100" in screen.show()[-1], screen.show()[-1])
            expect(selected(screen).startswith(rows(screen)[-1] + " "), selected(screen))
            screen.type("Home")
            screen.type("/")
            screen.type("d42")
            expect("search: d42_" in screen.show()[-1], screen.show()[-1])
            screen.type("Enter")
            expect(selected(screen).startswith("d42 "), selected(screen))
            screen.type("Enter")
            expect("d42 10: root" in screen.show()[1], screen.show()[1])
            screen.type("Escape")
            expect(selected(screen).startswith("d42 "), "the selection is lost: " + selected(screen))
            screen.type("f")
            screen.type("D9", "x", "BSpace", "Enter")
            expect("11 shown" in screen.show()[0] and "filter 'D9'" in screen.show()[0], screen.show()[0])
            expect_equal(sorted(rows(screen)), sorted(["d9"] + [f"d9{number}" for number in range(10)]))
            screen.type("s")
            expect("by rate" in screen.show()[0], screen.show()[0])
            screen.type("f", "nosuch", "Enter")
            expect("no qdisc matches 'D9nosuch'; press Escape" in screen.text(), screen.text())
            screen.type("Escape")
            expect_equal(len(rows(screen)), 21, "lines without the filter")
            screen.type("q")
            screen.expect_restored(0)
    finally:
        net.idle_instances(0)


@test("dualpi2-top, help")
def help_names_every_key():
    with bottleneck() as (net, _), Screen(80, 40, f"--netns {net.rtr}") as screen:
        for key in ("?", "h", "F1"):
            screen.type(key)
            text = screen.text()
            for wanted in ("q quit", "s, F6 sort", "/, F3 search", "Enter details", "* yellow", "CLASSIC P99"):
                expect(wanted in text, f"{wanted}: {text}")
            screen.type("Escape")
            expect("RATE" in screen.show()[1], screen.show()[1])


@test("dualpi2-top, colours")
def overload_is_red_unless_no_color_is_set():
    with bottleneck(20, Stream("c", ecn=NOT_ECT, bps=18e6)) as (net, q):
        time.sleep(4)
        for before, args, colour in (("", "", True), ("NO_COLOR=1", "", False), ("NO_COLOR=1", "--color always", True),
                                      ("", "--color never", False)):
            with Screen(80, 24, f"--netns {net.rtr} {args}", before + " TERM=xterm-256color") as screen:
                shown = screen.tmux("capture-pane", "-p", "-e", "-t", screen.name)
                expect("! down 10:" in screen.text(), f"no overload: {screen.text()}")
                expect_equal(bool(re.search(r"\x1b\[[\d;]*31m", shown)), colour, f"red with '{before} {args}'")
        q.running.kill()
        q.running = None
        q.until_idle()


@test("dualpi2-top, qdisc in the details is removed")
def details_of_a_removed_qdisc_say_so():
    net = shared_net()
    tc("qdisc add dev up root handle 20: dualpi2", net.rtr)
    with Screen(80, 24, f"--netns {net.rtr} --interval 0.5") as screen:
        screen.type("Enter")
        expect("up 20: root" in screen.text(), screen.text())
        tc("qdisc del dev up root", net.rtr)
        time.sleep(1.5)
        expect("this qdisc was removed; press Escape" in screen.text(), screen.text())
        screen.type("Escape")
        expect("no dualpi2 in network namespace" in screen.text(), screen.text())


if __name__ == "__main__":
    main(prepare=prepare)
