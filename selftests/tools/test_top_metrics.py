#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check tree=top
"""Tests of dualpi2-top's metrics without a kernel: exposition, files, dashboard, reference. KTAP on stdout.

They need prometheus_client, and fail without it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest.mock

from lib_top import linked, qdisc, watched
import payload
from payload import app, enum, queue
from dualpi2 import Trouble
from dualpi2.top import metrics
from ktap import expect_equal as equal, main, test

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(payload.ROOT, "docs/JSON.md")
ALERTS = os.path.join(payload.TOOLS, "share/dualpi2-alerts.yml")
ALERT_TESTS = os.path.join(HERE, "dualpi2-alerts-test.yml")


def promtool(*args):
    """Debian's promtool, of the tree "top"; (code, output)."""
    assert shutil.which("promtool"), "promtool is missing; run this in the tree of: scripts/root.sh bookworm top"
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


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
              "target_ns": 103000000}, qprotect={"redirected": 11, "scored_shared": 3, "sanctioned": 2},
        c=queue({}, {}), l=queue({"arrived_ect1": 3, "ect_dropped_purge": 2, "marked_native": 5},
                                 {"unit_ns": 8192, "sum_ns": 5 * 10**8, "max_ns": 10**9, "beyond": 1}, [4, 2])))])
    values, types = exposition(entries)
    where = 'device="eth0",handle="10:",parent="1:a"'
    for name, labels, value in (
            ("dualpi2_qdiscs", "", 1), ("dualpi2_probability", where + ',of="base",kind="base"', 1),
            ("dualpi2_arrived_packets_total", where + ',queue="l4s",ecn="ect1"', 3),
            ("dualpi2_dropped_packets_total", where + ',queue="l4s",ecn="ect",cause="purge"', 2),
            ("dualpi2_marked_packets_total", where + ',queue="l4s",marker="native"', 5),
            ("dualpi2_unparsed_packets_total", where, 4), ("dualpi2_overload_seconds_total", where, 1.5),
            ("dualpi2_drain_rate_bytes_per_second", where, 5000000), ("dualpi2_throttled_total", where, 7),
            ("dualpi2_nqb_arrived_packets_total", where, 9), ("dualpi2_nqb_dropped_packets_total", where, 2),
            ("dualpi2_burst_seconds", where, 0.004), ("dualpi2_ramp_min_seconds", where, 0.0006),
            ("dualpi2_ramp_max_seconds", where, 0.0012), ("dualpi2_limit_packets", where, 400),
            ("dualpi2_nqb_limit_bytes", where, 50000), ("dualpi2_target_seconds", where, 0.103),
            ("dualpi2_qprotect_redirected_packets_total", where, 11),
            ("dualpi2_qprotect_scored_shared_packets_total", where, 3),
            ("dualpi2_qprotect_sanctions_total", where, 0), ("dualpi2_qprotect_sanctioned_flows", where, 2)):
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
                assert f"cannot write '{path}'" in str(trouble), trouble
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
                assert "not a regular file" in str(trouble), trouble
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


def series(histograms=None):
    """Series of one qdisc with all statistics."""
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={},
                       link={"drain_rate": 1, "nqb_limit_bytes": 1}, qprotect={}))]
    return [line for line in metrics.text(watched(whole), None, histograms).splitlines()
            if line[0] != "#" and not line.startswith("dualpi2_qdiscs ")]


@test
def series_of_a_qdisc_are_as_many_as_the_page_says():
    counts = {"(none)": len(series()), "`--no-histograms`": len(series(metrics.Histograms(0)))}
    for number in (8, 15):
        counts[f"`--buckets {number}`"] = len(series(metrics.Histograms(number)))
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for option, count in counts.items():
        assert re.search(rf"^\| {re.escape(option)} \|.*\| {count} \|", page, re.M), (option, count)


@test
def buckets_are_powers_of_two_and_keep_their_counts():
    hist = [number % 7 for number in range(96)]
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {"unit_ns": 8192, "beyond": 3}, hist)))])

    def buckets(histograms):
        found = re.findall(r'dualpi2_delay_seconds_bucket\{.*le="([^"]+)".*queue="l4s".*\} (\S+)|'
                           r'dualpi2_delay_seconds_bucket\{.*queue="l4s".*le="([^"]+)".*\} (\S+)',
                           metrics.text(entries, None, histograms))
        return {one[0] or one[2]: float(one[1] or one[3]) for one in found}

    every = buckets(None)
    equal(len(every), 97)
    for number in range(metrics.BUCKETS_MIN, metrics.BUCKETS_MAX + 1):
        some = buckets(metrics.Histograms(number))
        equal(len(some), number + 1)
        equal(some, {edge: every[edge] for edge in some})
        for edge in some:
            assert edge == "+Inf" or round(float(edge) * 1e9) in [8192 << power for power in range(15)], edge
        assert repr((8192 << 14) / 1e9) in some, "the last boundary"
    equal(sorted(float(edge) for edge in buckets(metrics.Histograms(8)))[:3], [8192e-9, 4 * 8192e-9, 16 * 8192e-9])


@test
def metrics_without_histograms_keep_sum_and_count():
    entries = watched([qdisc(app(ext={}, c=queue({}, {}), l=queue({}, {"sum_ns": 5 * 10**8, "beyond": 1}, [4, 2])))])
    found = metrics.text(entries, None, metrics.Histograms(0))
    equal("_bucket" in found, False)
    assert "# TYPE dualpi2_delay_seconds summary" in found
    values = dict(line.rsplit(" ", 1) for line in found.splitlines() if 'queue="l4s"' in line)
    where = '{device="eth0",handle="10:",parent="1:a",queue="l4s"}'
    equal((values["dualpi2_delay_seconds_count" + where], values["dualpi2_delay_seconds_sum" + where]), ("7.0", "0.5"))


@test
def metrics_tell_the_names_of_qdiscs():
    entries = watched([qdisc(app(ext={})), qdisc(app(ext={}), handle=0, parent=2)])
    entries[1].name = 'Bob "b"'
    found = sorted(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)) for name, labels in exposition(entries)[0]
                   if name == "dualpi2_qdisc_info")
    equal(found, [[("device", "eth0"), ("handle", "0:"), ("name", "eth0 :2"), ("parent", ":2")],
                  [("device", "eth0"), ("handle", "10:"), ("name", 'Bob \\"b\\"'), ("parent", "1:a")]])


def asked(expression):
    """(metrics, labels) of an expression."""
    return (set(re.findall(r"\b(?:dualpi2|node)_\w+", expression)),
            set(re.findall(r"(\w+)(?:=~?|!=)\"", expression))
            | {label for labels in re.findall(r"(?:by|without|on|group_left) \(([^)]+)\)", expression)
               for label in labels.split(", ")})


# From the node exporter's textfile collector itself.
NODE = {"node_textfile_mtime_seconds"}


def exported():
    """(metrics, labels) that the exporter has."""
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={}, link={"drain_rate": 1},
                       qprotect={}))]
    names, labels = set(), {"instance", "job", "netns", "file"}
    for name, args in exposition(watched(whole))[0]:
        names.add(name)
        labels.update(re.findall(r'(\w+)="', args))
    return names | NODE, labels


def load_dashboard():
    """The dashboard."""
    with open(os.path.join(payload.TOOLS, "share/grafana-dualpi2.json"), encoding="utf-8") as file:
        return json.load(file)


@test
def dashboard_asks_for_metrics_that_exist():
    dashboard = load_dashboard()
    there, labels = exported()
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len(panels) >= 20, len(panels)
    for panel in panels:
        for target in panel["targets"]:
            names, used = asked(target["expr"])
            assert names and names <= there and used <= labels, (panel["title"], names - there, used - labels)
            # Qdiscs without a handle differ only by their parents.
            if "{{handle}}" in target["legendFormat"]:
                assert "{{parent}}" in target["legendFormat"], panel["title"]
    for variable in dashboard["templating"]["list"]:
        for name in asked(str(variable.get("query")))[0]:
            assert name in there, name


@test
def dashboard_describes_panels_and_uses_its_variables():
    dashboard = load_dashboard()
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    equal(variables, {"datasource", "instance", "netns", "device", "handle", "queue", "top"})
    ids = [panel["id"] for panel in dashboard["panels"]]
    equal(len(ids), len(set(ids)), "ids")
    rows, used = 0, {"datasource"}
    for panel in dashboard["panels"]:
        rows += panel["type"] == "row"
        for target in panel.get("targets", []):
            found = set(re.findall(r"\$(\w+)", target["expr"]))
            used |= found
            assert found <= variables | {"__rate_interval", "__range"}, (panel["title"], found)
            # At most N lines, or one for all qdiscs.
            assert re.match(r"topk\(\$top, |sum[ (]|time\(\)", target["expr"]), panel["title"]
        assert panel["type"] == "row" or len(panel["description"]) > 30, panel["title"]
    assert rows >= 5 and variables <= used, (rows, variables - used)
    places = [(panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y) for panel in dashboard["panels"]
              for x in range(panel["gridPos"]["w"]) for y in range(panel["gridPos"]["h"])]
    equal(len(places), len(set(places)), "panels overlap")
    assert all(x < 24 for x, _ in places)


@test
def alerts_ask_for_metrics_that_exist():
    there, labels = exported()
    with open(ALERTS, encoding="utf-8") as file:
        rules = re.findall(r"expr: (?:>-\n)?(.*?)\n +for:", file.read(), re.S)
    equal(len(rules), 7)
    for rule in rules:
        names, used = asked(rule)
        assert names and names <= there and used <= labels, (rule, names - there, used - labels)


@test
def alerts_fire_when_they_must_and_not_before():
    equal(promtool("check", "rules", ALERTS)[0], 0)
    with open(ALERT_TESTS, encoding="utf-8") as file:
        tests = file.read()
    with tempfile.TemporaryDirectory() as directory:
        def run(rules, name):
            with open(os.path.join(directory, "dualpi2-alerts.yml"), "w", encoding="utf-8") as file:
                file.write(rules)
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(tests)
            return promtool("test", "rules", os.path.join(directory, name))

        with open(ALERTS, encoding="utf-8") as file:
            rules = file.read()
        code, said = run(rules, "tests.yml")
        equal(code, 0, said)
        # Each alert has a test that notices another threshold, or another time.
        for old, new in (("== 1", "== 2"), ("[5m])) > 0\n", "[5m])) > 9\n"), ("flows > 0", "flows > 1"),
                         ("> 0.01", "> 0.5"), ("> 0.01", "> 0"),
                         ("> 0.9", "> 0.99"), ("> 0.9", "> 0.8"), ("> 120", "> 9999"), ("offset 1h", "offset 1s"),
                         ("for: 5m", "for: 50m"), ("for: 5m", "for: 0m"), ('{cause="limit"}', "")):
            assert old in rules, old
            assert run(rules.replace(old, new), "changed.yml")[0], (old, new)


@test
def manual_names_every_metric():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    whole = [qdisc(app(xstats={}, ext={}, c=queue({}, {}), l=queue({}, {}), overload={},
                       link={"drain_rate": 1, "nqb_limit_bytes": 1}, qprotect={})),
             qdisc(app(xstats={}), ifindex=3)]
    kinds = exposition(watched(whole))[1]
    for name, kind in kinds.items():
        # The TYPE line of a counter has the suffix in old versions of the library, and lacks it in new ones.
        assert re.search(rf"^\| `{name}(?:_total)?` \| {kind} \|", page, re.M), (name, kind)
    for name in re.findall(r"^\| `(dualpi2_\w+)` \| (?:counter|gauge|histogram) \|", page, re.M):
        assert name in kinds or name.replace("_total", "") in kinds, f"{name} is not exported"


if __name__ == "__main__":
    main()
