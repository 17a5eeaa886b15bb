#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check tree=top
"""Tests of dualpi2-top without a kernel: text, JSON, metrics, command line and manual. KTAP on stdout.

Where prometheus_client is missing, the tests of metrics say so and fail; the rest needs Python alone.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest.mock

from lib_top import TOP, full, hist_of, qdisc, watched
import payload
from payload import HEADER, app, enum, queue
from dualpi2 import Trouble
from dualpi2.kernel import stats
from dualpi2.kernel import text
from dualpi2.top import cli, metrics, report, screen, watch
from ktap import expect_equal as equal, main, test


# Words

@test
def numbers_have_three_digits():
    for value, want in ((0, "0 "), (1, "1 "), (9.994, "9.99 "), (99.94, "99.9 "), (999.4, "999 "), (999.6, "1.00 k"),
                        (12345, "12.3 k"), (10**6, "1.00 M"), (4.2e9, "4.20 G"), (10**15, "1.00 P"),
                        (2**64, "18.4 E"), (None, "-")):
        equal(text.scaled(value), want)
    for value, want in ((0, "0 %"), (1, "100 %"), (0.99999, "99.9 %"), (0.0744, "7.44 %"), (0.5, "50.0 %"),
                        (0.000001, "0.001 %"), (0.0005, "0.050 %"), (None, "-")):
        equal(text.percent(value), want)
    for value, want in ((0, "0.00us"), (999, "1.00us"), (12345, "12.3us"), (999499, "999us"), (999500, "1.00ms"),
                        (15.2e6, "15.2ms"), (10**9, "1.00s"), (4294e9, "4294s"), (None, "-")):
        equal(text.delay(value), want)


@test
def sparkline_has_the_greatest_at_the_top():
    equal(report.sparkline([1, 2, None, 8], 10), ("▁▂ █", 8))
    equal(report.sparkline([1, 2, 3, 4], 2), ("▆█", 4))
    equal(report.sparkline([3, 7], 5), ("▄█", 7), "a part of a step is shown")
    equal(report.sparkline([0, 0], 5), ("▁▁", 0))
    equal(report.sparkline([None], 5), ("", None))
    equal(report.sparkline([1, 8], 5, True), (".@", 8))
    equal(report.sparkline([1], 0), ("", None))


@test
def overload_is_told_in_words():
    def said(**given):
        return report.overload(full(overload=given), 1000)

    equal(said(), ("never overloaded", False))
    equal(said(count=1, start_ns=938 * 10**9, duration_ns=2 * 10**9),
          ("overloaded 1 time, for 2.00s, ended 60 s ago", False))
    equal(said(count=2, start_ns=938 * 10**9, duration_ns=2 * 10**9)[0],
          "overloaded 2 times, the last for 2.00s, ended 60 s ago")
    equal(said(count=3, now=1, duration_ns=10**6), ("OVERLOAD for 1.00ms, 3 in all", True))
    equal(report.overload(stats.Sample(app()), 0), (None, False))


def busy_entry(**given):
    """An entry with as long values as there can be."""
    number = 2**61
    counters = dict.fromkeys(HEADER.layout("tc_dualpi2_counters").names, number)

    def dump(some):
        return [qdisc(app(xstats={"prob": some & 0x7fffffff}, ext={"prob_c": 0x12345678, "prob_cl": 0xffffffff},
                          c=queue({name: some for name in counters}, {"max_ns": 10**10}, hist_of({95: some})),
                          l=queue({name: some for name in counters}, {"max_ns": 10**10}, hist_of({7: some})),
                          overload={"count": 2**63, "start_ns": 1, "duration_ns": 2**63},
                          link=dict({name: some for name, form in HEADER.layout("tc_dualpi2_link").fields
                                     if form == "Q"}, burst_ns=2**32 - 1, ramp_min_ns=999_999_999,
                                    ramp_max_ns=2**32 - 1)),
                      device="wlxf4f26d1b2c3d", handle=0xffff0000, parent=0xfffeffff, **given)]

    found = watched(dump(0), dump(10**9 + 7), dump(number))[0]
    for history in found.history.values():
        history.extend([10**12] * watch.HISTORY)
    return found


@test
def no_line_is_wider_than_the_terminal():
    entries = [busy_entry(), *watched([qdisc(app(ext={}))], [qdisc(app(ext={}))]),
               *watched([qdisc(app(xstats={}))], [qdisc(app(xstats={}))]), *watched([qdisc(b"")])]
    for width in range(39, 260):
        for line in screen.lines(entries, width, 2e9, report.NONE_HERE):
            assert screen.width_of(line) <= width, (width, line)


@test
def every_width_shows_every_figure():
    entry = watched(*[[qdisc(app(ext={}, overload={}, c=queue({}, {}), l=queue(
        {"arrived_ect1": 10 * n, "arrived_ce": 20 * n, "arrived_not_ect": 30 * n, "forwarded": 40 * n,
         "forwarded_bytes": 50000 * n, "marked_native": n, "not_ect_dropped_aqm": 3 * n, "ect_dropped_limit": 15 * n},
        {"sum_ns": 4000000 * n, "max_ns": 900000 * n}, hist_of({11: 30 * n, 40: 10 * n}))))] for n in (1, 2)])[0]
    for width in (39, 79, 199):
        shown = " ".join(screen.text([entry], width, 0, "").split())
        for wanted in ("400 kbit/s", "40 pkt/s", "2.50 %", "10.0 %", "50.0 %", "20 pkt/s", "100us", "95.4us", "1.12ms",
                       "1.80ms", "eth0 10: in 1:a", "never overloaded", "P99.9", "Classic"):
            assert wanted in shown, (width, wanted, shown)
        assert "<" not in shown, shown


def linked(*links):
    """Entries of a dualpi2 with these numbers of its link, one after the other."""
    return watched(*[[qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {}), link=link))] for link in links])


@test
def link_is_told_in_words():
    link = {"drain_rate": 5_000_000, "throttled": 7, "nqb_arrived": 2500, "nqb_dropped": 30, "burst_ns": 4_000_000,
            "ramp_min_ns": 600_000, "ramp_max_ns": 1_200_000, "limit_pkts": 400, "nqb_limit_bytes": 50000,
            "target_ns": 103_000_000}
    for width in (39, 79, 199):
        shown = " ".join(screen.text(linked(link), width, 0, "").split())
        for wanted in ("link 40.0 Mbit/s", "target 103ms", "ramp 600us to 1.20ms", "burst 4.00ms",
                       "NQB 2.50 kpkt, 30 pkt dropped"):
            assert wanted in shown, (width, wanted, shown)
    # What is not there, or not so now, is not said; nor what an older module does not tell.
    shown = screen.text(linked({"ramp_max_ns": 1000}), 199, 0, "")
    assert "ramp" in shown and not any(word in shown for word in ("link", "target", "burst", "NQB")), shown
    assert "ramp" not in screen.text(linked(None), 199, 0, "")


@test
def link_is_in_json_with_what_it_counted():
    old, new = ({"throttled": 2**64 - 2, "nqb_arrived": 4, "nqb_dropped": 1, "drain_rate": 9},
                {"throttled": 3, "nqb_arrived": 9, "nqb_dropped": 1, "drain_rate": 8})
    found = report.as_json(linked(old, new), 0)["qdiscs"][0]
    equal((found["link"]["drain_rate"], found["link"]["throttled"], found["link"]["limit_pkts"]), (8, 3, 0))
    equal(found["link_interval"], {"throttled": 5, "nqb_arrived": 5, "nqb_dropped": 0})
    equal(report.as_json(linked({}), 0)["qdiscs"][0]["link"]["drain_rate"], None, "a rate that was not seen yet")
    equal(report.as_json(linked({}), 0)["qdiscs"][0]["link"]["nqb_limit_bytes"], None, "a limit that is a delay")
    found = report.as_json(linked(None, None), 0)["qdiscs"][0]
    equal((found["link"], found["link_interval"]), (None, None))
    equal(report.as_json(linked(old), 0)["qdiscs"][0]["link_interval"], None, "no interval yet")
    equal(linked({"throttled": 9}, {"throttled": 8})[0].interval, None, "one that went back is another qdisc's")
    equal(stats.Interval.since_start(full(link=old)).link["nqb_arrived"], 4)


@test
def bound_of_the_maximum_is_told_from_one():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {"max_ns": 900000}, hist_of({11: number}))))]

    entry = watched(dump(1), dump(2))[0]
    for width in (39, 79, 199):
        assert "<98.3us" in screen.text([entry], width, 0, ""), width
        assert "<-" not in screen.text(watched(dump(1), dump(1)), width, 0, ""), width


@test
def figures_of_a_wide_screen_stand_below_their_headings():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({"forwarded": 40 * number, "arrived_ect1": 50 * number,
                                                            "ect_dropped_aqm": 10 * number}, {}, [40 * number])))]

    shown = screen.text(watched(dump(1), dump(2)), 199, 0, "").splitlines()
    end = shown[1].index("drop ECT") + len("drop ECT")
    equal(shown[2][:end].split()[-2:], ["20.0", "%"])


@test
def nothing_here_says_how_to_add_one():
    equal(report.none_here("eth0", None), "no dualpi2 on eth0; add one: tc qdisc add dev eth0 root dualpi2")
    assert "in network namespace x;" in report.none_here(None, "x")
    for words in (report.none_here(None, None), report.none_here("eth0", None), report.none_here(None, "x")):
        assert "tc qdisc add dev" in words
        for width in (39, 79):
            shown = screen.text([], width, 0, words).split()
            equal(shown, words.split())


@test
def json_is_plain_numbers():
    found = json.loads(json.dumps(report.as_json([busy_entry()], 1.5), allow_nan=False))
    one = found["qdiscs"][0]
    equal(one["queues"]["l4s"]["counters"]["arrived_ce"], 2**61)
    equal(len(one["queues"]["classic"]["histogram"]["begin_ns"]), 96)
    equal(one["queues"]["l4s"]["histogram"]["packets"][7], 2**61)


@test
def report_of_overload_is_a_line():
    event = {"event": "begin", "device": "eth0", "handle": "10:", "parent": "1:a", "count": 1, "duration_ns": 0,
             "start_ns": 1_700_000_000_123_456_789}
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload began")
    event.update(event="end", duration_ns=2_500_000_000, count=3)
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload ended, 2.50s in it, "
                                 "3 times since then")
    assert "lost" in cli.event_text({"lost": True})


# Metrics

def exposition(entries):
    """{(name, labels): value} and {name: type} of the metrics as text."""
    values, types = {}, {}
    for line in metrics.text(entries).splitlines():
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
        elif not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("} ")
            if not rest:
                name, _, value = line.partition(" ")
            values[name, labels] = float(value)
    return values, types


@test
def metrics_hold_the_counters():
    entries = watched([qdisc(app(
        xstats={"prob": 0xffffffff}, ext={"prob_c": 0, "prob_cl": 0, "unparsed": 4}, overload={"total_ns": 1500000000},
        link={"drain_rate": 5000000, "throttled": 7, "nqb_arrived": 9, "nqb_dropped": 2, "burst_ns": 4000000,
              "ramp_min_ns": 600000, "ramp_max_ns": 1200000, "limit_pkts": 400, "nqb_limit_bytes": 50000,
              "target_ns": 103000000},
        c=queue({}, {}), l=queue({"arrived_ect1": 3, "ect_dropped_purge": 2, "marked_native": 5},
                                 {"unit_ns": 8192, "sum_ns": 5 * 10**8, "max_ns": 10**9, "beyond": 1}, [4, 2])))])
    values, types = exposition(entries)
    where = 'device="eth0",handle="10:",parent="1:a"'
    for name, labels, value in (
            ("dualpi2_qdiscs", "", 1), ("dualpi2_probability", where + ',of="base"', 1),
            ("dualpi2_arrived_packets_total", where + ',queue="l4s",ecn="ect1"', 3),
            ("dualpi2_dropped_packets_total", where + ',queue="l4s",ecn="ect",cause="purge"', 2),
            ("dualpi2_marked_packets_total", where + ',queue="l4s",marker="native"', 5),
            ("dualpi2_unparsed_packets_total", where, 4), ("dualpi2_overload_seconds_total", where, 1.5),
            ("dualpi2_drain_rate_bytes_per_second", where, 5000000), ("dualpi2_throttled_total", where, 7),
            ("dualpi2_nqb_arrived_packets_total", where, 9), ("dualpi2_nqb_dropped_packets_total", where, 2),
            ("dualpi2_burst_seconds", where, 0.004), ("dualpi2_ramp_min_seconds", where, 0.0006),
            ("dualpi2_ramp_max_seconds", where, 0.0012), ("dualpi2_limit_packets", where, 400),
            ("dualpi2_nqb_limit_bytes", where, 50000), ("dualpi2_target_seconds", where, 0.103)):
        found = {key: number for key, number in values.items()
                 if key[0] == name and set(key[1].split(",")) == set(labels.split(","))}
        equal(list(found.values()), [value], name)
    equal((types["dualpi2_delay_seconds"], types["dualpi2_arrived_packets_total"], types["dualpi2_probability"]),
          ("histogram", "counter", "gauge"))


@test
def metrics_of_qdiscs_without_a_handle_and_of_namespaces_are_told_apart():
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {})), handle=0, parent=parent)
                       for parent in (1, 2)])
    equal([(entry.handle, entry.parent) for entry in entries], [("0:", ":1"), ("0:", ":2")])
    lines = [line.rpartition(" ")[0] for line in metrics.text(entries, "blue").splitlines() if line[0] != "#"]
    equal(len(lines), len(set(lines)))
    assert all('netns="blue"' in line for line in lines), lines
    assert "netns" not in metrics.text(entries)


@test
def metrics_histogram_is_cumulative_and_in_seconds():
    delay = {"unit_ns": 8192, "sum_ns": 5 * 10**8, "beyond": 1, "max_ns": 10**9}
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, delay, [4, 2])))])
    values, _ = exposition(entries)
    buckets = [(re.search(r'\ble="([^"]+)', labels).group(1), value) for (name, labels), value in values.items()
               if name == "dualpi2_delay_seconds_bucket" and "l4s" in labels]
    equal(len(buckets), 97)
    equal((buckets[0], buckets[1], buckets[-1]), (("8.192e-06", 4), ("1.6384e-05", 6), ("+Inf", 7)))
    edges = [float(edge) for edge, _ in buckets]
    assert edges == sorted(set(edges))
    assert all(value <= later for (_, value), (_, later) in zip(buckets, buckets[1:]))
    total = {name: value for (name, labels), value in values.items() if "l4s" in labels}
    equal((total["dualpi2_delay_seconds_count"], total["dualpi2_delay_seconds_sum"]), (7, 0.5))


@test
def metrics_of_old_kernels_have_no_zeros_that_are_not_counted():
    nest = payload.attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), payload.pack("counters", presented=3)[:48])
    names = {name for name, _ in exposition(watched([qdisc(app(ext={}, c=nest, l=nest))]))[0]}
    assert "dualpi2_presented_packets_total" in names
    assert not any(name.startswith(("dualpi2_delay", "dualpi2_forwarded", "dualpi2_dropped", "dualpi2_nqb",
                                    "dualpi2_ramp", "dualpi2_throttled", "dualpi2_drain")) for name in names)
    names = {name for name, _ in exposition(linked({}))[0]}
    assert "dualpi2_throttled_total" in names and "dualpi2_drain_rate_bytes_per_second" not in names
    values, _ = exposition(watched([qdisc(app(xstats={"ecn_mark": 3}), bytes=9)]))
    total = {name: value for (name, _), value in values.items()}
    equal((total["dualpi2_ecn_mark_packets_total"], total["dualpi2_sent_bytes_total"]), (3, 9))
    equal(exposition([])[0], {("dualpi2_qdiscs", ""): 0})


@test
def metrics_file_is_replaced_at_once():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "dualpi2.prom")
        metrics.write(path, "one\n")
        with open(path, encoding="ascii") as before:
            metrics.write(path, "two\n")
            equal(before.read(), "one\n")
        equal((os.listdir(directory), oct(os.stat(path).st_mode & 0o777)), (["dualpi2.prom"], "0o644"))
        with open(path, encoding="ascii") as after:
            equal(after.read(), "two\n")


@test
def metrics_file_that_cannot_be_written_is_a_sentence():
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "sub"))
        for path in (os.path.join(directory, "none/x.prom"), os.path.join(directory, "sub")):
            try:
                metrics.write(path, "x")
            except Trouble as trouble:
                assert "cannot write " + path in str(trouble), trouble
            else:
                raise AssertionError(path)
        equal(os.listdir(directory), ["sub"])


@test
def metrics_take_the_place_of_files_alone():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "link")
        os.symlink("/dev/null", path)
        pipe = os.path.join(directory, "pipe")
        os.mkfifo(pipe)
        for place in (path, pipe):
            try:
                metrics.write(place, "x")
            except Trouble as trouble:
                assert "is no file" in str(trouble), trouble
            else:
                raise AssertionError(place)
        equal((sorted(os.listdir(directory)), os.readlink(path)), (["link", "pipe"], "/dev/null"))


@test
def metrics_file_leaves_nothing_where_a_signal_ends_it():
    with tempfile.TemporaryDirectory() as directory:
        with unittest.mock.patch.object(metrics.os, "replace", side_effect=SystemExit(143)):
            try:
                metrics.write(os.path.join(directory, "x.prom"), "x")
            except SystemExit:
                pass
        equal(os.listdir(directory), [])


@test
def missing_library_is_a_sentence():
    with unittest.mock.patch.dict(sys.modules, {"prometheus_client": None}):
        try:
            metrics.text([])
        except Trouble as trouble:
            assert "apt install python3-prometheus-client" in str(trouble)
        else:
            raise AssertionError("no trouble")


@test
def missing_part_of_python_is_a_sentence():
    program = (f"import sys; sys.path.insert(0, {payload.TOOLS!r}); sys.modules['curses'] = None; "
               "from dualpi2.top.cli import main; sys.exit(main(['--since-start']))")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal((done.returncode, done.stdout), (1, ""))
    assert "apt install python3" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@test
def dashboard_asks_for_metrics_that_exist():
    with open(os.path.join(payload.TOOLS, "share/grafana-dualpi2.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={}, link={"drain_rate": 1}))]
    there, labels = set(), set()
    for name, words in exposition(watched(whole))[0]:
        there.add(name)
        labels.update(re.findall(r'(\w+)="', words))
    asked = 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            for name in re.findall(r"\b(?:dualpi2|node_qdisc)_\w+", target["expr"]):
                asked += 1
                assert name in there, (panel["title"], name)
            for label in re.findall(r"(\w+)(?:=~?|!=)\"", target["expr"]):
                assert label in labels | {"instance", "job"}, (panel["title"], label)
            # Those without a handle differ by their parents alone.
            if "{{handle}}" in target["legendFormat"]:
                assert "{{parent}}" in target["legendFormat"], panel["title"]
            assert "handle" not in target["expr"] or "parent" in target["expr"], panel["title"]
    assert asked >= 10, asked
    for variable in dashboard["templating"]["list"]:
        for name in re.findall(r"\bdualpi2_\w+", str(variable.get("query"))):
            assert name in there, name


# The program

def top(*words, **given):
    """Run it; (code, stdout, stderr)."""
    done = subprocess.run([sys.executable, TOP, *words], capture_output=True, text=True, check=False, timeout=60,
                          **given)
    return done.returncode, done.stdout, done.stderr


@test
def bad_options_are_refused_with_what_to_do():
    for words, want in ((["--interval", "0"], "give seconds from 0.1"), (["--interval", "nan"], "give seconds"),
                        (["--interval", "x"], "give seconds"), (["--output", "x"], "add --openmetrics"),
                        (["--openmetrics", "--json"], "leave the others out"), (["--events", "--once"], "leave out"),
                        (["--frob"], "unrecognized arguments: --frob")):
        code, _, err = top(*words)
        equal(code, 2, words)
        assert want in err, (words, err)


@test
def no_terminal_is_a_sentence():
    code, out, err = top(stdin=subprocess.DEVNULL)
    equal((code, out), (2, ""))
    assert "use --once" in err and len(err.splitlines()) == 1, err


@test
def closed_pipe_is_no_error():
    done = subprocess.run(f"{sys.executable} {TOP} --json --interval 0.1 | head -n 2", shell=True, capture_output=True,
                          text=True, check=False, timeout=60)
    equal((len(done.stdout.splitlines()), done.stderr), (2, ""))


@test
def full_disk_and_closed_streams_are_a_sentence():
    for words in ("--json --interval 0.1 >/dev/full", "<&- >&-"):
        done = subprocess.run(f"{sys.executable} {TOP} {words}", shell=True, capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr


@test
def locale_that_is_not_installed_is_ascii():
    with unittest.mock.patch.dict(os.environ, {"LC_ALL": "xx_XX.UTF-8"}):
        equal(screen.ascii_wanted(), True)


@test
def nohup_is_heeded():
    program = ("import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
               f"sys.path.insert(0, {payload.TOOLS!r}); from dualpi2.top import cli; cli.main(['--since-start']); "
               "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal(done.stdout.splitlines()[-1:], ["True"], done.stderr)


@test
def missing_device_and_namespace_are_sentences():
    for words, want in ((["--once", "--device", "nosuch0"], "there is no device nosuch0"),
                        (["--once", "--netns", "nosuch"], "there is no network namespace nosuch")):
        code, out, err = top(*words)
        equal((code, out), (1, ""), words)
        assert want in err and len(err.splitlines()) == 1, err


@test
def help_and_version_are_said():
    code, out, _ = top("--version")
    equal((code, out.split()[0]), (0, "dualpi2-top"))
    assert out.split()[1][0].isdigit(), out
    code, out, _ = top("--help")
    equal(code, 0)
    with open(os.path.join(payload.TOOLS, "share/dualpi2-top.8"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    for option in re.findall(r"--[a-z-]+", out):
        assert option in page, f"{option} is not in the manual"


@test
def manual_names_every_metric():
    with open(os.path.join(payload.TOOLS, "share/dualpi2-top.8"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={}, link={"drain_rate": 1})),
             qdisc(app(xstats={}), ifindex=3)]
    for name in exposition(watched(whole))[1]:
        assert name in page, name


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
    main()
