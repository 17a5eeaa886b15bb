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
import unittest.mock

from lib_top import TOP, full, hist_of, linked, qdisc, watched
import payload
from payload import HEADER, app, queue
from dualpi2.kernel import stats
from dualpi2.kernel import text
from dualpi2.top import cli, details, report, watch
from ktap import expect_equal as equal, main, test
import schema


def text_of(entries, *args):
    """The details of some entries."""
    return report.as_text(details.lines(entries, *args))


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
    equal(said(count=3, now=1, duration_ns=10**6), ("OVERLOAD for 1.00ms, 3 in total", True))
    equal(report.overload(stats.Sample(app()), 0), (None, False))


def busy_entry(**given):
    """An entry with as long values as there can be."""
    number = 2**61
    counters = dict.fromkeys(HEADER.layout("tc_dualpi2_counters").names, number)

    def dump(some):
        return [qdisc(app(xstats={"prob": some & 0x7fffffff}, ext={"prob_c": 0x12345678, "prob_cl": 0xffffffff},
                          c=queue(dict.fromkeys(counters, some), {"max_ns": 10**10}, hist_of({95: some})),
                          l=queue(dict.fromkeys(counters, some), {"max_ns": 10**10}, hist_of({7: some})),
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
        for line in details.lines(entries, width, 2e9, report.NONE_HERE):
            assert report.width_of(line) <= width, (width, line)


@test
def every_width_shows_every_figure():
    entry = watched(*[[qdisc(app(ext={}, overload={}, c=queue({}, {}), l=queue(
        {"arrived_ect1": 10 * n, "arrived_ce": 20 * n, "arrived_not_ect": 30 * n, "forwarded": 40 * n,
         "forwarded_bytes": 50000 * n, "marked_native": n, "not_ect_dropped_aqm": 3 * n, "ect_dropped_limit": 15 * n},
        {"sum_ns": 4000000 * n, "max_ns": 900000 * n}, hist_of({11: 30 * n, 40: 10 * n}))))] for n in (1, 2)])[0]
    for width in (39, 79, 199):
        shown = " ".join(text_of([entry], width, 0, "").split())
        for wanted in ("400 kbit/s", "40 pkt/s", "2.50 %", "10.0 %", "50.0 %", "20 pkt/s", "100us", "95.4us", "1.12ms",
                       "1.80ms", "eth0 10: in 1:a", "never overloaded", "P99.9", "Classic"):
            assert wanted in shown, (width, wanted, shown)
        assert "<" not in shown, shown


@test
def link_is_told_in_words():
    link = {"drain_rate": 5_000_000, "throttled": 7, "nqb_arrived": 2500, "nqb_dropped": 30, "burst_ns": 4_000_000,
            "ramp_min_ns": 600_000, "ramp_max_ns": 1_200_000, "limit_pkts": 400, "nqb_limit_bytes": 50000,
            "target_ns": 103_000_000}
    for width in (39, 79, 199):
        shown = " ".join(text_of(linked(link), width, 0, "").split())
        for wanted in ("link 40.0 Mbit/s", "target 103ms", "ramp 600us to 1.20ms", "burst 4.00ms",
                       "NQB 2.50 kpkt, 30 pkt dropped"):
            assert wanted in shown, (width, wanted, shown)
    # What is not there, or not so now, is not said; nor what an older module does not tell.
    shown = text_of(linked({"ramp_max_ns": 1000}), 199, 0, "")
    assert "ramp" in shown and not any(word in shown for word in ("link", "target", "burst", "NQB")), shown
    assert "ramp" not in text_of(linked(None), 199, 0, "")


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


def protected(*some):
    """Entries of a dualpi2 with these numbers of queue protection, one after the other."""
    return watched(*[[qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {}), qprotect=one))] for one in some])


@test
def queue_protection_is_told_in_words_and_in_json():
    old, new = ({"redirected": 2**64 - 2, "sanctions": 3, "sanctioned": 7},
                {"redirected": 2498, "sanctions": 4, "sanctioned": 1, "score_max_us": 9})
    for width in (39, 79, 199):
        shown = " ".join(text_of(protected(new), width, 0, "").split())
        for wanted in ("redirected 2.50 kpkt", "1 flow under sanction"):
            assert wanted in shown, (width, wanted, shown)
    for none in (protected({"scored": 5}), protected(None)):
        shown = text_of(none, 199, 0, "")
        assert "redirected" not in shown and "sanction" not in shown, shown
    found = report.as_json(protected(old, new), 0)["qdiscs"][0]
    equal((found["qprotect"]["redirected"], found["qprotect"]["score_max_us"]), (2498, 9))
    equal(found["qprotect_interval"], {"redirected": 2500, "redirected_bytes": 0, "sanctions": 1, "scored": 0,
                                       "scored_shared": 0, "alloc_failed": 0})
    found = report.as_json(protected(None, None), 0)["qdiscs"][0]
    equal((found["qprotect"], found["qprotect_interval"]), (None, None), "off")
    found = report.as_json(protected(None, new), 0)["qdiscs"][0]
    equal((found["qprotect"]["sanctions"], found["qprotect_interval"]), (4, None), "it was switched on")


@test
def bound_of_the_maximum_is_told_from_one():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {"max_ns": 900000}, hist_of({11: number}))))]

    entry = watched(dump(1), dump(2))[0]
    for width in (39, 79, 199):
        assert "<98.3us" in text_of([entry], width, 0, ""), width
        assert "<-" not in text_of(watched(dump(1), dump(1)), width, 0, ""), width


@test
def figures_of_a_wide_screen_stand_below_their_headings():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({"forwarded": 40 * number, "arrived_ect1": 50 * number,
                                                            "ect_dropped_aqm": 10 * number}, {}, [40 * number])))]

    shown = text_of(watched(dump(1), dump(2)), 199, 0, "").splitlines()
    end = shown[1].index("drop ECT") + len("drop ECT")
    equal(shown[2][:end].split()[-2:], ["20.0", "%"])


@test
def nothing_here_says_how_to_add_one():
    equal(report.none_here("eth0", None), "no dualpi2 on eth0; add one: tc qdisc add dev eth0 root dualpi2")
    assert "in network namespace x;" in report.none_here(None, "x")
    for message in (report.none_here(None, None), report.none_here("eth0", None), report.none_here(None, "x")):
        assert "tc qdisc add dev" in message
        for width in (39, 79):
            shown = text_of([], width, 0, message).split()
            equal(shown, message.split())


@test
def json_is_plain_numbers():
    found = json.loads(json.dumps(report.as_json([busy_entry()], 1.5), allow_nan=False))
    one = found["qdiscs"][0]
    equal(one["queues"]["l4s"]["counters"]["arrived_ce"], 2**61)
    equal(len(one["queues"]["classic"]["histogram"]["begin_ns"]), 96)
    equal(one["queues"]["l4s"]["histogram"]["packets"][7], 2**61)


@test
def json_conforms_to_its_schema_at_every_level():
    found = schema.load(os.path.join(payload.ROOT, "docs/schema/dualpi2-top.schema.json"))
    for entries in ([busy_entry()], watched([qdisc(app(xstats={"ecn_mark": 1}))], [qdisc(app(xstats={}))]),
                    watched([qdisc(b"")]), watched([qdisc(app(ext={}))], [qdisc(app(ext={}))]), linked({}), []):
        value = json.loads(json.dumps(report.as_json(entries, 1.5)))
        equal(schema.errors(value, found), [])
    value["frob"] = 1
    equal(schema.errors(value, found), ["$: frob is not documented"])
    # What the checker is to find.
    for value, kind, wrong in ((1.5, {"type": "integer"}, 1), (True, {"type": "number"}, 1), (-1, {"minimum": 0}, 1),
                               ({}, {"required": ["x"]}, 1), ([1, "x"], {"items": {"type": "integer"}}, 1),
                               ("x", {"enum": ["x"]}, 0), (None, {"type": ["string", "null"]}, 0)):
        equal(len(schema.errors(value, kind)), wrong, kind)


@test
def reference_names_every_key_of_the_schemas():
    with open(os.path.join(payload.ROOT, "docs/JSON.md"), encoding="utf-8") as file:
        page = file.read()
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"[\w-]+", code)}
    for name in ("dualpi2-top", "dualpi2-top-events", "tc-dualpi2"):
        missing = schema.names(schema.load(os.path.join(payload.ROOT, f"docs/schema/{name}.schema.json"))) - named
        equal(missing, set(), name)


@test
def report_of_overload_is_a_line():
    event = {"event": "begin", "device": "eth0", "handle": "10:", "parent": "1:a", "count": 1, "duration_ns": 0,
             "start_ns": 1_700_000_000_123_456_789}
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload began")
    event.update(event="end", duration_ns=2_500_000_000, count=3)
    equal(cli.event_text(event), "2023-11-14T22:13:20.123Z eth0 10: parent 1:a: overload ended after 2.50s, "
                                 "3 overloads since the last report")
    assert "lost" in cli.event_text({"lost": True})


# The program

def top(*args, **given):
    """Run it; (code, stdout, stderr)."""
    done = subprocess.run([sys.executable, TOP, *args], capture_output=True, text=True, check=False, timeout=60,
                          **given)
    return done.returncode, done.stdout, done.stderr


@test
def bad_options_are_refused_with_what_to_do():
    seconds = "--interval: invalid argument '{}'; allowed are seconds from 0.1 to 86400"
    for args, want in (("--interval 0", seconds.format(0)), ("-i nan", seconds.format("nan")),
                        ("--interval x", seconds.format("x")), ("--output x", "add --prometheus"),
                        ("--buckets 8", "add --prometheus"), ("--prometheus --json", "leave the others out"),
                        ("--openmetrics --limit 3", "leave the others out"),
                        ("--prometheus --buckets 8 --no-histograms", "leave one out"),
                        ("--events --once", "leave the others out"), ("--details", "press Enter"),
                        ("--frob", "unknown option '--frob'"), ("eth0", "unexpected argument 'eth0'"),
                        ("--sorty rate", "unknown option '--sorty' (did you mean '--sort'?)"),
                        ("--sort rat", "--sort: invalid argument 'rat' (did you mean 'rate'?); allowed are device, "),
                        ("--limit 0", "--limit: invalid argument '0'; allowed are 1 to 1000000"),
                        ("--prometheus --buckets 1", "--buckets: invalid argument '1'; allowed are 2 to 15")):
        code, out, err = top(*args.split())
        equal((code, out), (2, ""), args)
        assert want in err and err.count("\n") == 1, (args, err)


@test
def no_terminal_is_a_sentence():
    code, out, err = top(stdin=subprocess.DEVNULL)
    equal((code, out), (2, ""))
    assert "use --once" in err and len(err.splitlines()) == 1, err


@test
def missing_part_of_python_is_a_sentence():
    program = (f"import sys; sys.path.insert(0, {payload.TOOLS!r}); sys.modules['curses'] = None; "
               "from dualpi2.top.cli import main; sys.exit(main([]))")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal((done.returncode, done.stdout), (1, ""))
    assert "apt install python3" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@test
def closed_pipe_is_no_error():
    done = subprocess.run(f"{sys.executable} {TOP} --json --interval 0.1 | head -n 2", shell=True, capture_output=True,
                          text=True, check=False, timeout=60)
    equal((len(done.stdout.splitlines()), done.stderr), (2, ""))


@test
def full_disk_and_closed_streams_are_a_sentence():
    for args in ("--json --interval 0.1 >/dev/full", "<&- >&-"):
        done = subprocess.run(f"{sys.executable} {TOP} {args}", shell=True, capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr


@test
def locale_that_is_not_installed_is_ascii():
    with unittest.mock.patch.dict(os.environ, {"LC_ALL": "xx_XX.UTF-8"}):
        equal(cli.ascii_wanted(), True)


@test
def nohup_is_heeded():
    program = ("import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
               f"sys.path.insert(0, {payload.TOOLS!r}); from dualpi2.top import cli; cli.main(['--since-start']); "
               "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    done = subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True, check=False)
    equal(done.stdout.splitlines()[-1:], ["True"], done.stderr)


@test
def missing_device_and_namespace_are_sentences():
    for args, want in ((["--once", "--device", "nosuch0"], "there is no device nosuch0"),
                        (["--once", "--netns", "nosuch"], "there is no network namespace nosuch")):
        code, out, err = top(*args)
        equal((code, out), (1, ""), args)
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


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
    main()
