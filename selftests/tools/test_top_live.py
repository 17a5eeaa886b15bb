#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top
"""dualpi2-top as a person uses it, with a real dualpi2 under traffic. KTAP on stdout.

The view is driven and read through tmux, the metrics are checked by promtool and scraped by Prometheus through the
node exporter: Debian's own, of the tree that scripts/root.sh makes as "top". Runs in a test machine, in virtual time.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))

from installed import TOOLS  # noqa: E402
from lib import (  # noqa: E402
    CE,
    ECT0,
    ECT1,
    NOT_ECT,
    Failure,
    Skip,
    Stream,
    expect,
    expect_equal,
    in_netns,
    main,
    note,
    run,
    shared_net,
    stats,
    tc,
    tc_stats,
    test,
)

TOP = os.path.join(TOOLS, "bin/dualpi2-top")
MIX = (Stream("l", ecn=ECT1, bps=6e6), Stream("c", ecn=NOT_ECT, bps=3e6), Stream("e", ecn=ECT0, bps=3e6),
       Stream("ce", ecn=CE, bps=1e6))


def top(words, netns=None, check=True):
    """Run it to its end."""
    return run([TOP, *words.split()], netns, check)


def top_json(words, netns):
    """Its qdiscs, by device and handle."""
    found = json.loads(top(words, netns).stdout)
    return {(one["device"], one["handle"]): one for one in found["qdiscs"]}


@contextlib.contextmanager
def bottleneck(seconds=0, *streams, **knobs):
    """The shared net with a dualpi2 below htb, another at the root of the other device, and perhaps traffic."""
    net = shared_net()
    with net.aqm(10e6, **knobs) as q:
        tc("qdisc replace dev up root handle 20: dualpi2", net.rtr)
        try:
            q.running = net.start(seconds, *streams) if seconds else None
            yield net, q
            if q.running:
                q.running.wait()
        finally:
            tc("qdisc del dev up root", net.rtr, check=False)


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


# Refusals

@test("dualpi2-top, nothing there")
def nothing_here_is_a_sentence_and_code_1():
    net = shared_net()
    done = top(f"--netns {net.rtr} --once", check=False)
    expect_equal((done.returncode, done.stdout), (1, ""))
    expect("tc qdisc add dev" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = top("--device down --since-start --json", net.rtr, check=False)
    expect_equal((done.returncode, json.loads(done.stdout)["qdiscs"]), (1, []))
    expect("no dualpi2 on down; add one: tc qdisc add dev down root dualpi2" in done.stderr, done.stderr)


@test("dualpi2-top, no permission")
def nobody_may_look_and_is_told_what_is_root_s():
    with bottleneck() as (net, _):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", TOP]
        expect("down 10: in 1:10" in run([*nobody, "--since-start"], net.rtr).stdout, "nobody sees nothing")
        done = run([*nobody, "--netns", net.rtr, "--since-start"], check=False)
        expect_equal((done.returncode, done.stdout), (1, ""))
        expect("run it as root" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        done = run([*nobody, "--openmetrics", "--output", "/run/x.prom"], net.rtr, check=False)
        expect_equal(done.returncode, 1)
        expect("cannot write /run/x.prom (Permission denied)" in done.stderr, done.stderr)


# Reports of overload

@test("dualpi2-top --events", "RFC 9332 2.5.2.3")
def events_tell_of_an_overload():
    with bottleneck(overload_report=100000) as (net, q):
        with contextlib.ExitStack() as stack:
            def listen(words):
                process = stack.enter_context(subprocess.Popen([TOP, "--events", *words.split()], text=True,
                                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))
                # It would go on for ever after a failure.
                stack.callback(process.kill)
                return process

            plain, lines, other = (listen(words) for words in (
                f"--netns {net.rtr}", f"--netns {net.rtr} --json", f"--netns {net.rtr} --json --device up"))
            time.sleep(1)
            net.traffic(6, Stream("c", ecn=NOT_ECT, bps=60e6))
            q.until_idle()
            time.sleep(3)
            info = q.stats()["overload_info"]
            note(f"overload: {info}")
            expect(info["reports"] >= 2 and info["count"] >= 1, "no overload")
            said = []
            for process in (plain, lines, other):
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate()
                expect_equal((process.returncode, err), (143, ""))
                said.append(out.splitlines())
        for line in said[0]:
            note(line)
        events = [json.loads(line) for line in said[1]]
        expect_equal((len(said[0]), len(events), said[2]), (info["reports"], info["reports"], []), "reports")
        expect_equal((events[0]["event"], events[-1]["event"]), ("begin", "end"))
        expect_equal({(one["device"], one["handle"], one["parent"]) for one in events}, {("down", "10:", "1:10")})
        expect_equal(events[0]["start_ns"] // 10**9 > 10**9, True, "time of day")
        expect("down 10: parent 1:10: overload began" in said[0][0] and "overload ended" in said[0][-1], said[0])
        expect_equal(sum(one["duration_ns"] for one in events if one["event"] == "end"), info["total_ns"], "durations")


@test("dualpi2-top --events")
def events_without_a_module_are_a_sentence():
    net = shared_net()
    run("rmmod sch_dualpi2")
    try:
        done = top("--events", net.rtr, check=False)
        expect_equal((done.returncode, done.stdout), (1, ""))
        expect("modprobe sch_dualpi2" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    finally:
        run(["insmod", os.environ["DUALPI2_MODULE"]])


# Metrics

class Monitoring:
    """Debian's node exporter and Prometheus on loopback of a namespace, as their packages start them."""

    def __init__(self, netns):
        self.netns = netns
        self.stack = contextlib.ExitStack()
        self.dir = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.dir = stack.enter_context(tempfile.TemporaryDirectory())
            os.mkdir(self.dir + "/text")
            with open(self.dir + "/prometheus.yml", "w", encoding="ascii") as file:
                json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                    {"job_name": "node", "static_configs": [{"targets": ["127.0.0.1:9100"]}]}]}, file)
            for name, words in (
                    ("prometheus-node-exporter", [
                        "--collector.qdisc", f"--collector.textfile.directory={self.dir}/text",
                        "--web.listen-address=127.0.0.1:9100"]),
                    ("prometheus", [f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/data",
                                    "--web.listen-address=127.0.0.1:9090"])):
                with in_netns(self.netns), open(f"{self.dir}/{name}.log", "w", encoding="ascii") as log:
                    process = subprocess.Popen([name, *words], stdout=log, stderr=log)
                stack.callback(process.wait)
                stack.callback(process.terminate)
            self.stack = stack.pop_all()
        time.sleep(5)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def get(self, address):
        """A page."""
        with in_netns(self.netns):
            try:
                return urllib.request.urlopen("http://127.0.0.1:" + address, timeout=60).read().decode()
            except urllib.error.HTTPError as error:
                raise Failure(f"{address}: {error.read().decode()}") from error

    def query(self, expression):
        """What Prometheus answers: list of (labels, value)."""
        answer = json.loads(self.get("9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def renew(self):
        """As the timer does."""
        top(f"--openmetrics --output {self.dir}/text/dualpi2.prom", self.netns)


@test("dualpi2-top --openmetrics")
def metrics_pass_promtool():
    with bottleneck() as (net, _):
        net.traffic(2, *MIX)
        exposition = top("--openmetrics", net.rtr).stdout
        done = run(["promtool", "check", "metrics"], stdin=exposition, check=False)
        expect_equal((done.returncode, done.stdout + done.stderr), (0, ""), "promtool")
        expect_equal(exposition.count("dualpi2_delay_seconds_bucket"), 2 * 2 * 97, "buckets")
        # It does complain of what is wrong.
        done = run(["promtool", "check", "metrics"], stdin=exposition.replace(" counter", " gauge"), check=False)
        expect(done.returncode, "promtool finds nothing wrong with anything")


@test("dualpi2-top --openmetrics", "Grafana")
def metrics_are_scraped_beside_the_qdisc_collector():
    with bottleneck(8, *MIX) as (net, q), Monitoring(net.rtr) as monitoring:
        for _ in range(6):
            monitoring.renew()
            time.sleep(1)
        q.running.wait()
        q.running = None
        q.until_idle()
        monitoring.renew()
        time.sleep(3)
        st = stats(net.rtr, "down")

        page = monitoring.get("9100/metrics")
        expect("node_textfile_scrape_error 0" in page, "the textfile collector complains")
        for collector in ("qdisc", "textfile"):
            expect(f'node_scrape_collector_success{{collector="{collector}"}} 1' in page, f"{collector} fails")
        # It shows those at the roots of devices.
        for device, kind in (("down", "htb"), ("up", "dualpi2")):
            [(_, value)] = monitoring.query(f'node_qdisc_packets_total{{device="{device}",kind="{kind}"}}')
            shown = stats(net.rtr, device, "1:" if kind == "htb" else "20:")
            expect_equal(value, shown["packets"], f"qdisc collector, {kind}")
        for line in page.splitlines():
            expect(not line.startswith("# TYPE dualpi2_") or not line.endswith("untyped"), line)

        for queue, key in (("l4s", "l"), ("classic", "c")):
            where = f'{{device="down",handle="10:",parent="1:10",queue="{queue}"}}'
            for metric, want in (("dualpi2_forwarded_packets_total", st[key]["counters"]["forwarded"]),
                                 ("dualpi2_forwarded_bytes_total", st[key]["counters"]["forwarded_bytes"]),
                                 ("dualpi2_delay_seconds_count", st[key]["counters"]["forwarded"])):
                expect_equal([value for _, value in monitoring.query(metric + where)], [want], metric + where)
            [(_, p99)] = monitoring.query(f"histogram_quantile(0.99, dualpi2_delay_seconds_bucket{where})")
            one = top_json("--since-start --json", net.rtr)["down", "10:"]["queues"][queue]["interval"]
            ours = one["delay"]["p99_ns"] / 1e9
            note(f"P99 {queue}: Prometheus {p99}, dualpi2-top {ours}")
            expect(abs(p99 - ours) <= ours / 8, "P99 differs by more than a bucket")

        with open(os.path.join(TOOLS, "share/grafana-dualpi2.json"), encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        for panel in panels:
            for target in panel["targets"]:
                expression = target["expr"]
                for name, value in (("__rate_interval", "1m"), ("__range", "1m"), ("instance", ".*"), ("device", ".*")):
                    expression = expression.replace("$" + name, value)
                expect("$" not in expression, f"{panel['title']}: {expression}")
                found = monitoring.query(expression)
                # What is shown only if it is not 0 may be empty.
                expect(found or expression.endswith("> 0"), f"{panel['title']}: no answer to {expression}")


@test("dualpi2-top --openmetrics")
def metrics_without_a_dualpi2_say_so():
    net = shared_net()
    exposition = top("--openmetrics", net.rtr).stdout
    expect("\ndualpi2_qdiscs 0.0\n" in exposition, exposition)
    expect_equal(run(["promtool", "check", "metrics"], stdin=exposition, check=False).returncode, 0, "promtool")


@test("systemd")
def unit_files_name_what_is_there():
    with open(os.path.join(TOOLS, "share/dualpi2-metrics.service"), encoding="ascii") as file:
        words = re.search(r"^ExecStart=/usr/bin/(.*)$", file.read(), re.M).group(1).split()
    net = shared_net()
    # Where Debian's exporter looks.
    path = words[-1]
    expect_equal(os.path.dirname(path), "/var/lib/prometheus/node-exporter")
    expect(os.path.isdir(os.path.dirname(path)), "Debian's exporter has no such directory")
    expect_equal(words[0], "dualpi2-top")
    try:
        run([TOP, *words[1:]], net.rtr)
        with open(path, encoding="ascii") as file:
            expect("dualpi2_qdiscs" in file.read(), "no metrics")
    finally:
        if os.path.exists(path):
            os.unlink(path)


def prepare():
    for needed in ("tmux", "promtool", "prometheus", "prometheus-node-exporter"):
        if not shutil.which(needed):
            raise Skip(f"need {needed}; run this in the tree of: scripts/root.sh bookworm top")


if __name__ == "__main__":
    main(prepare=prepare)
