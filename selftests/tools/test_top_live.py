#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top
"""dualpi2-top as a person uses it, with a real dualpi2 under traffic. KTAP on stdout.

The view is driven and read through tmux, the metrics are checked by promtool and scraped by Prometheus through the
node exporter: Debian's own, of the tree that scripts/root.sh makes as "top". Runs in a test machine, in virtual time.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time

from lib_top_live import MIX, TOP, bottleneck, prepare, top, top_json
from lib import ECT1, NOT_ECT, Stream, expect, expect_equal, main, note, run, shared_net, stats, tc, tc_stats, test


# The view

class Screen:
    """A terminal of a size with dualpi2-top in it, started from a shell as a person does."""

    serial = 0

    def __init__(self, columns, lines, words="", before=""):
        Screen.serial += 1
        self.name = f"top{Screen.serial}"
        self.columns, self.lines = columns, lines
        self.command = f"{before} {TOP} {words}"

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

    def tmux(self, verb, *words):
        """tmux for this session alone."""
        if verb == "new-session":
            words = ("-s", self.name, *words)
        return run(["tmux", "-u", "-L", self.name, verb, *words]).stdout

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
        """All of them as words with one blank between."""
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
        words = self.text().replace(";", " ").split()
        for wanted in ("icanon", "echo", "isig"):
            expect(wanted in words, f"the terminal's mode lacks {wanted}")

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
            shown = screen.show()
            for line in shown:
                note("|" + line)
                expect(len(line) <= columns, f"a line of {len(line)} columns: {line}")
            expect_equal(len(shown), lines, "lines")
            expect("every 1 s, 2 qdiscs" in shown[0], f"no heading: {shown[0]}")
            words = whole_text(screen)
            for wanted in ("down 10: in 1:10", "up 20: root", "L4S", "Classic", "marked", "drop ECT", "drop Not",
                           "CE in", "P50", "P90", "P99", "P99.9", "max", "Mbit/s", "p_CL", "queued"):
                expect(wanted in words, f"{wanted} is not shown: {words}")
            expect(re.search(r"[▁▂▃▄▅▆▇]", words), "no sparkline")
            expect(re.search(r"█", words), "no sparkline that reaches the top")
            rates = [float(value) for value in re.findall(r"(?<!link )(?<![\d.])([\d.]+) Mbit/s", words)]
            seen = [float(value) for value in re.findall(r"link ([\d.]+) Mbit/s", words)]
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
        first = screen.show()
        for key, place in (("Down", 2), ("Down", 3), ("Up", 2), ("NPage", 12), ("PPage", 2), ("Home", 1), ("Up", 1)):
            screen.type(key)
            expect(f" {place}-{place + 9}/" in screen.show()[-1], f"{key}: {screen.show()[-1]}")
        expect_equal(screen.show()[1:], first[1:], "back at the beginning")
        screen.type("End")
        last = screen.show()
        begin, end, whole = map(int, re.search(r"(\d+)-(\d+)/(\d+)", last[-1]).groups())
        expect_equal((end - begin, end), (9, whole), "the end")
        screen.type("Down")
        expect_equal(screen.show()[1:], last[1:], "beyond the end")


@test("dualpi2-top, size")
def view_follows_the_size_of_the_terminal():
    with bottleneck() as (net, _), Screen(80, 24, f"--netns {net.rtr}") as screen:
        expect("P99 over time" not in screen.text(), "wide form at 80 columns")
        screen.resize(200, 50)
        expect("P99 over time" in screen.text(), f"no wide form at 200 columns: {screen.text()}")
        screen.resize(30, 10)
        expect("make the terminal 40 columns by 4 lines at least; it is 30 by 10" in screen.text(), screen.text())
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
        expect("down 10: in 1:10" in screen.text(), screen.text())
        screen.type("C-c")
        screen.expect_restored(130)


@test("dualpi2-top, qdiscs come and go")
def view_tells_when_the_last_qdisc_is_gone_and_sees_a_new_one():
    net = shared_net()
    with Screen(40, 12, f"--netns {net.rtr} --interval 0.5") as screen:
        words = screen.text()
        expect("no dualpi2 in network namespace" in words and "tc qdisc add dev" in words, words)
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
        for kind, wanted in (("nosuch", "the terminal type 'nosuch' is unknown; set TERM"),
                             ("dumb", "cannot be painted on")):
            with Screen(80, 24, f"--netns {net.rtr}", f"TERM={kind}") as screen:
                screen.type("echo code $?", "Enter")
                expect(wanted in screen.text() and "code 2" in screen.text(), screen.text())


@test("dualpi2-top, terminals")
def view_without_utf8_has_bars_of_ascii():
    with bottleneck(20, *MIX) as (net, q), Screen(80, 24, f"--netns {net.rtr}", "LC_ALL=C") as screen:
        time.sleep(3)
        words = screen.text()
        expect(words.isascii() and re.search(r"P99 0-[\d.]+[mu]s [.:=+*#@-]+ rate", words), words)
        q.running.kill()
        q.running = None
        q.until_idle()


# JSON

@test("dualpi2-top --once --json")
def json_since_start_is_what_the_kernel_counted():
    with bottleneck() as (net, q):
        net.traffic(3, *MIX)
        q.until_idle()
        st = q.stats()
        found = top_json(f"--netns {net.rtr} --once --since-start --json", None)
        expect_equal(sorted(found), [("down", "10:"), ("up", "20:")], "qdiscs")
        one = found["down", "10:"]
        expect_equal((one["parent"], one["level"], one["missing"]), ("1:10", "full", []))
        for key, name in (("c", "classic"), ("l", "l4s")):
            got = one["queues"][name]
            want = {field: st[key]["counters"][field] for field in got["counters"]}
            expect_equal(got["counters"], want, name)
            expect_equal(len(want), 29, "fields")
            expect(want["forwarded"] > 100, f"{name}: no traffic")
            histogram = got["histogram"]
            expect_equal(histogram["packets"], list(st[key]["delay"]["hist"]), f"{name}: histogram")
            expect_equal(sum(histogram["packets"]) + histogram["beyond"], want["forwarded"], f"{name}: its sum")
            expect_equal(got["interval"]["delay"]["max_ns"], st[key]["delay"]["max_ns"], f"{name}: max")
            expect_equal(got["interval"]["counters"]["forwarded"], want["forwarded"], f"{name}: since start")
        expect_equal(one["total"]["packets"], st["packets"], "packets of the qdisc")
        expect(abs(one["probability"]["p"] - st["p"]) < 0.05, "p'")


@test("dualpi2-top --once --json", "tc -s")
def json_percentiles_are_those_of_tc():
    with bottleneck() as (net, q):
        net.traffic(3, *MIX)
        q.until_idle()
        shown = json.dumps(tc_stats(net.rtr, "down"))
        for queue in top_json(f"--netns {net.rtr} --since-start --json", None)["down", "10:"]["queues"].values():
            delay = queue["interval"]["delay"]
            for name in ("mean", "p50", "p90", "p99", "p999", "max"):
                expect(f'"{name}-ns": {delay[name + "_ns"]},' in shown, f"{name}: {delay} is not in {shown}")


@test("dualpi2-top --once --json", "link")
def json_of_the_link_is_what_the_kernel_says():
    net = shared_net()
    tc("qdisc add dev down root handle 10: dualpi2 bandwidth 10mbit", net.rtr)
    try:
        net.traffic(2, Stream("l", ecn=ECT1, bps=4e6), Stream("c", ecn=NOT_ECT, bps=8e6),
                    Stream("n", dscp=45, bps=4e5))
        time.sleep(1)
        found = top_json("--since-start --json", net.rtr)["down", "10:"]
        kernel = stats(net.rtr, "down", "10:")["link"]
        note(kernel)
        kernel.pop("pad", None)
        expect_equal(found["link"], kernel, "link")
        expect_equal(found["link"]["drain_rate"], 1250000, "that of the shaper")
        expect(found["link"]["throttled"] and found["link"]["nqb_arrived"], f"nothing was counted: {found['link']}")
        expect_equal(found["link_interval"], {name: kernel[name] for name in found["link_interval"]})
        expect_equal(sorted(found["link_interval"]), ["nqb_arrived", "nqb_dropped", "throttled"], "counters")
        shown = " ".join(top("--since-start", net.rtr).stdout.split())
        for words in ("link 10.0 Mbit/s", "ramp ", "NQB "):
            expect(words in shown, f"'{words}' is not in: {shown}")
    finally:
        tc("qdisc del dev down root", net.rtr)


@test("dualpi2-top --json")
def json_intervals_add_up():
    with bottleneck(6, *MIX) as (net, q):
        lines = []
        with subprocess.Popen([TOP, "--netns", net.rtr, "--json", "--interval", "0.5", "--device", "down"],
                              stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                lines.append(json.loads(line))
                if len(lines) == 8:
                    process.send_signal(signal.SIGINT)
                    break
            process.stdout.read()
            expect_equal(process.wait(), 130, "code")
        queues = [line["qdiscs"][0]["queues"]["l4s"] for line in lines]
        expect_equal([len(line["qdiscs"]) for line in lines], [1] * 8, "--device")
        grown = sum(queue["interval"]["counters"]["forwarded"] for queue in queues[1:])
        first, last = (queues[index]["counters"]["forwarded"] for index in (0, -1))
        expect_equal(grown, last - first, "sum of intervals")
        for line in lines:
            expect(0.4 < line["qdiscs"][0]["interval_seconds"] < 0.6, "interval")
        rates = [sum(queue["interval"]["bits_per_second"] for queue in line["qdiscs"][0]["queues"].values())
                 for line in lines[2:]]
        note(f"rates: {rates}")
        expect(all(9.5e6 < rate < 10.5e6 for rate in rates), "the rate is not the link's")


@test("dualpi2-top, many qdiscs")
def json_lists_three_hundred_qdiscs():
    net = shared_net()
    net.idle_instances(300)
    try:
        found = top_json(f"--netns {net.rtr} --since-start --json", None)
        expect_equal(len(found), 300, "qdiscs")
    finally:
        net.idle_instances(0)


@test("dualpi2-top, reader with a small buffer")
def json_with_the_smallest_socket_buffer_is_whole():
    net = shared_net()
    net.idle_instances(50)
    path = "/proc/sys/net/core/rmem_default"
    with open(path, encoding="ascii") as file:
        before = file.read()
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write("2304")
        expect_equal(len(top_json(f"--netns {net.rtr} --since-start --json", None)), 50, "qdiscs")
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)
        net.idle_instances(0)


@test("dualpi2-top, dump during change and delete")
def json_survives_change_and_delete():
    net = shared_net()
    net.idle_instances(40)
    try:
        # To a file, for a pipe that nobody reads would hold it up.
        with tempfile.TemporaryFile("w+") as out, subprocess.Popen(
                [TOP, "--netns", net.rtr, "--json", "--interval", "0.1"], stdout=out, stderr=subprocess.PIPE,
                text=True) as process:
            for number in range(60):
                tc(f"qdisc del dev d{number % 40} root", net.rtr)
                tc(f"qdisc change dev d{(number + 7) % 40} root handle 10: dualpi2 limit {1000 + number} hist_l 1ms",
                   net.rtr, check=False)
                time.sleep(0.03)
                tc(f"qdisc add dev d{number % 40} root handle 10: dualpi2", net.rtr)
            process.send_signal(signal.SIGTERM)
            err = process.communicate()[1]
            expect_equal((process.returncode, err), (143, ""), "end")
            out.seek(0)
            counts = [len(json.loads(line)["qdiscs"]) for line in out]
            expect(len(counts) >= 10 and set(counts) <= {39, 40}, f"qdiscs: {counts}")
    finally:
        net.idle_instances(0)


@test("dualpi2-top, changed edges")
def json_goes_on_after_a_change_of_the_edges():
    with bottleneck(5, *MIX) as (net, q):
        with subprocess.Popen([TOP, "--netns", net.rtr, "--json", "--interval", "0.5", "--device", "down"],
                              stdout=subprocess.PIPE, text=True) as process:
            lines = [json.loads(process.stdout.readline()) for _ in range(3)]
            q.change(hist_l=1000)
            lines += [json.loads(process.stdout.readline()) for _ in range(3)]
            process.kill()
        for line in lines:
            delay = line["qdiscs"][0]["queues"]["l4s"]["interval"]["delay"]
            expect(delay["packets"] and delay["p99_ns"] <= delay["max_ns"] < 10**8, f"delays: {delay}")
        units = [line["qdiscs"][0]["queues"]["l4s"]["histogram"]["unit_ns"] for line in lines]
        expect_equal((units[0], units[-1]), (8192, 1 << 20), "units")


if __name__ == "__main__":
    main(prepare=prepare)
