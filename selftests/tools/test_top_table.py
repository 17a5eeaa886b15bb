#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check tree=top
"""Tests of dualpi2-top's table without a kernel: columns, order, filter, names, colours. KTAP on stdout."""

import io
import os
import sys
import tempfile
import unittest.mock

from lib_top import FakeKernel, hist_of, qdisc, watched
from payload import app, queue
from dualpi2 import Trouble
from dualpi2.kernel.stats import bucket_begin_ns
from dualpi2.top import cli, report, table, watch
from dualpi2.top.names import Names
from ktap import expect_equal as equal, main, test


def dump(number, *rows, **given):
    """A dump of qdiscs, one for each row (packets, L4S bucket, Classic bucket, link, overload) per second."""
    found = []
    for place, (packets, l_bucket, c_bucket, link, overload) in enumerate(rows):
        packets *= number
        one = [queue({"forwarded": packets, "forwarded_bytes": 1000 * packets, "arrived_ect1": packets,
                      "marked_native": packets // 10, "ect_dropped_aqm": packets // 20},
                     {"sum_ns": bucket_begin_ns(bucket, 8192) * packets, "max_ns": 10**9}, hist_of({bucket: packets}))
               for bucket in (l_bucket, c_bucket)]
        found.append(qdisc(app(ext={}, l=one[0], c=one[1], link=link, overload=overload), ifindex=2 + place,
                           device=f"eth{place}", handle=0x100000 * (place + 1), bytes=2000 * packets,
                           packets=2 * packets, qlen=5 * place, **given))
    return found


def entries(*rows):
    """The entries after one second."""
    return watched(dump(1, *rows), dump(2, *rows))


QUIET = {"target_ns": 15_000_000}
# The first is quiet, the second above its target, the third in overload, the fourth without traffic.
ROWS = ((1000, 3, 7, QUIET, {}), (500, 4, 80, QUIET, {"count": 2}), (2000, 5, 7, QUIET, {"count": 1, "now": 1}),
        (0, 3, 7, QUIET, {}))


@test
def table_has_one_line_for_each_qdisc():
    for width, columns in ((39, ["RATE"]), (79, ["RATE", "L4S P99", "CLASSIC P99", "MARKED"]),
                           (199, [column[1] for column in table.COLUMNS])):
        shown = report.as_text(table.lines(entries(*ROWS), width, "")).splitlines()
        equal(len(shown), 1 + len(ROWS), width)
        for column in columns:
            assert column in shown[0], (width, column, shown[0])
    equal(shown[1].split(), "eth0 10: in 1:a 16.0 Mbit/s 32.7us 65.4us 10.0 % 5.00 % 0 pkt 2.00 kpkt/s 0 -".split())
    equal(shown[4].split()[4:], "0 bit/s - - - - 15 pkt 0 pkt/s 0 -".split())


@test
def table_counts_the_flows_under_sanction():
    some = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {}), qprotect={"sanctioned": flows}),
                          handle=number << 16)
                    for number, flows in ((1, 0), (2, 31), (3, 2))])
    equal([line.split()[-1] for line in report.as_text(table.lines(some, 199, "")).splitlines()],
          ["SANCTIONED", "0", "31", "2"])
    equal([entry.handle for entry in table.chosen(some, "sanctioned", "", None)], ["2:", "3:", "1:"])


@test
def table_fits_every_width():
    long = watched([qdisc(b"", device="wlxf4f26d1b2c3d", handle=0xffff0000, parent=0xfffeffff)])
    some = entries(*ROWS)
    for width in range(39, 260):
        for found in (some, long, []):
            for line in table.lines(found, width, report.NONE_HERE):
                assert report.width_of(line) <= width, (width, line)


@test
def table_keeps_apart_children_that_lack_handles():
    found = watched([qdisc(app(ext={}), handle=0, parent=parent) for parent in (1, 2)])
    equal([entry.label() for entry in found], ["eth0 :1", "eth0 :2"])


@test
def in_tree_dualpi2_has_a_rate_and_marks():
    found = watched(*[[qdisc(app(xstats={"ecn_mark": 5 * number}), bytes=1000 * number, packets=50 * number)]
                      for number in (1, 2)])
    equal(report.as_text(table.lines(found, 79, "")).split()[-9:], "8.00 kbit/s - - 10.0 % - 0 pkt".split()[-9:])


@test
def sort_is_descending_and_unknown_is_last():
    def order(key):
        return [entry.device[-1] for entry in table.chosen(entries(*ROWS), key)]

    equal("".join(order("device")), "0123")
    equal("".join(order("rate")), "2013")
    equal("".join(order("p99")), "2103")
    equal("".join(order("classic_p99")), "1203")
    equal("".join(order("queued")), "3210")
    equal("".join(order("overloads")), "1203")
    for key in table.KEYS:
        equal(sorted(order(key)), list("0123"), key)
    equal([entry.device for entry in table.chosen(entries(*ROWS), "rate", limit=2)], ["eth2", "eth0"])


@test
def filter_is_of_device_handle_parent_and_name():
    found = entries(*ROWS)
    found[3].name = "Alice"
    for text, devices in (("eth2", "2"), ("30:", "2"), ("1:a", "0123"), ("ALI", "3"), ("nosuch", "")):
        equal("".join(entry.device[-1] for entry in table.chosen(found, text=text)), devices, text)


@test
def severity_is_a_colour_and_a_mark():
    found = entries(*ROWS)
    equal([table.severity(entry) for entry in found], ["plain", "warn", "bad", "plain"])
    lines = table.lines(found, 79, "")
    equal([line[0][0] for line in lines[1:]], ["  ", "* ", "! ", "  "])
    shown = report.as_text(lines, True).splitlines()
    assert "\033[33m" in shown[2] and "\033[1;31m" in shown[3] and "\033[33m" not in shown[1], shown
    assert "\033" not in report.as_text(lines)
    # A module that sends no target gives no warning.
    equal(table.severity(entries((500, 4, 80, {}, {}))[0]), "plain")


@test
def color_follows_the_option_the_variable_and_the_stream():
    terminal = unittest.mock.Mock(isatty=lambda: True)
    for when, variables, stream, want in (
            ("auto", {"TERM": "xterm"}, terminal, True), ("auto", {"TERM": "xterm"}, io.StringIO(), False),
            ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, terminal, False),
            ("auto", {"TERM": "xterm", "NO_COLOR": ""}, terminal, True), ("auto", {"TERM": "dumb"}, terminal, False),
            ("always", {"NO_COLOR": "1"}, io.StringIO(), True), ("never", {"TERM": "xterm"}, terminal, False)):
        with unittest.mock.patch.dict(os.environ, variables, clear=True):
            equal(cli.color_wanted(when, stream), want, (when, variables))


def names_of(content):
    """Names from a file with this content."""
    with tempfile.NamedTemporaryFile("wb", suffix=".names") as file:
        file.write(content)
        file.flush()
        return Names(file.name)


@test
def names_are_by_handle_and_by_device():
    found = names_of(b"# subscribers\n\n10: Alice Smith\n  eth1 20: Bob\n 20:\tCarol\x1b[2J\neth2 0x30: Dave\n")
    for device, handle, want in (("eth0", "10:", "Alice Smith"), ("eth1", "20:", "Bob"), ("eth0", "20:", "Carol?[2J"),
                                 ("eth2", "30:", "Dave"), ("eth3", "30:", None)):
        equal(found.get(device, handle), want, (device, handle))
    kernel = FakeKernel(dump(1, *ROWS))
    shown = watch.Watch(kernel=kernel, names=found).sample()
    equal([entry.name for entry in shown], ["Alice Smith", "Bob", "Dave", None])
    equal([one["name"] for one in report.as_json(shown, 0)["qdiscs"]], ["Alice Smith", "Bob", "Dave", None])
    assert "Alice Smith" in report.as_text(table.lines(shown, 79, ""))


@test
def names_with_an_error_name_the_line():
    for content, want in ((b"10: a\n10b alice\n", ":2: expected 'HANDLE NAME' or 'DEV HANDLE NAME', got '10b alice'"),
                          (b"10:\n", ":1: expected"), (b"zz: a\n", ":1: invalid handle 'zz:'"),
                          (b"1:2 a\n", ":1: invalid handle '1:2'"), (b"eth0 12345: a\n", ":1: invalid handle '12345:'"),
                          (b"10: \xff\n", "not valid UTF-8")):
        try:
            names_of(content)
        except Trouble as trouble:
            assert want in str(trouble), (content, trouble)
        else:
            raise AssertionError(content)
    try:
        Names("/nonexistent/names")
    except Trouble as trouble:
        assert "cannot read '/nonexistent/names' (No such file or directory)" in str(trouble), trouble
    else:
        raise AssertionError("no trouble")


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
    main()
