#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of what is written of runs in evaluation/, and that runs are added to those of one build. KTAP, about 10 s.

The results are made up; no machine is booted, see mock_machine.py.
"""

import contextlib
import html.parser
import io
import os
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "lib"))

from lib_evaluation import MADE_OF, directory, refused  # noqa: E402
from mock_machine import WORK, Place, holds, main  # noqa: E402

import campaign  # noqa: E402
import lab       # noqa: E402
import pages     # noqa: E402
import publish   # noqa: E402
import published as tables  # noqa: E402
import runs      # noqa: E402
import scenario  # noqa: E402
import store     # noqa: E402
import svg       # noqa: E402
from ktap import expect_equal as equal, test  # noqa: E402
from made import Made  # noqa: E402


def published(change=None, bench=None, made=None, of=slice(2), replace=False, means=(0.5, 3.0)):
    """A directory that publish() wrote, of some of PLAN's runs; change: of the second's made_of; made: add to it."""
    made = made or directory()
    with Made() as kept:
        for planned, mean, extra in zip(campaign.Campaign(made).planned[of], means * 2,
                                        ({}, change or {}, {}, {})):
            kept.run(planned.job, {"A": {"mean": mean, "srtt_ms": 9.5, "goodput_mbit": 7.0}}, coupled=3, meta={
                "made_of": MADE_OF | {"job": planned.job} | extra, "wall_seconds": 30, "commit": "d" * 40,
                "dirty": False, "tc": "tc qdisc add x", "command": "scripts/lab.sh run x",
                "sightings_sha256": "e" * 64})
        store.write_json(os.path.join(kept.directory, campaign.BENCH), {
            "commit": "d" * 40, "dirty": False, "kernel": MADE_OF["kernel"], "method": MADE_OF["method"],
            "dualpi2": MADE_OF["module"]} | (bench or {}))
        publish.write(kept.directory, made, replace)
    return made


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


@test
def publish_writes_tables_and_pages_of_them():
    made = published()
    equal(publish.problems(made), [])
    rows = tables.read_csv(os.path.join(made, "cells", "fig8.csv"))
    equal([(r["sender"], r["group"]) for r in rows], [(s, g) for s in ("dctcp", "prague") for g in ("all", "A", "B")])
    one = next(r for r in rows if (r["sender"], r["group"]) == ("prague", "A"))
    equal((one["delay_mean_ms"], one["delay_p99_ms"], one["class"], one["cc"], one["rtt_ms"]),
          ("0.5", "1", "l4s", "prague", "5"))
    equal([[r[key] for key in ("srtt_ms", "cwnd_packets", "goodput_mbit")] for r in rows[:3]],
          [["", "", ""], ["9.5", "", "7"], ["", "", ""]])
    equal([r["verdict"] for r in tables.read_csv(os.path.join(made, "claims.csv"))], ["reproduced", "contradicted"])
    manifest = store.read_json(os.path.join(made, "manifest.json"))
    equal([(s["planned"], s["done"], s["failed"], s["wall_minutes"]) for s in manifest["steps"]],
          [(4, 2, 0, 1.0), (1, 0, 0, 0)])
    text = read(made, "README.md")
    holds(text, "2 of 5 planned runs", "| [P](html/paper-p.html): A paper | 0 | 0 | 0 | 1 | 0 | 0 |", "module `cccc`",
          "Reproduced: mean.")
    holds(read(published(means=(3.0, 0.5)), "README.md"),
          "| dualpi2; prague | 3 (1 seed) | ≤ 1 (paper) | **contradicted** |")
    page = read(made, "html", "cell-fig8-A5-B5-cubic.html")
    holds(page, "dualpi2 with prague", "dualpi2 with dctcp", "e" * 16,
          "run fig8 --case A5-B5-cubic --aqm dualpi2 --seeds 1-1 --l4s prague --seconds 50 --results build/lab/again",
          "l4s.marked-coupled=3")
    holds(read(made, "html", "paper-p.html"), "contradicted", "A mean, ms 3, to reach ≤ 1")
    holds(read(made, "html", "matrix.html"), "<th>prague : cubic</th>", "L4S P99 1 ms")
    for sender, ccs, wanted in (("ecn-cubic", ("cubic", "cubic"), "cubic"), ("reno", ("reno", "reno"), "–"),
                                ("prague", ("prague", "prague", "bbr", "udp"), "bbr + udp"),
                                ("prague", ("prague",), "–")):
        equal(pages.beside([{"cc": cc, "group": str(n)} for n, cc in enumerate(ccs)], sender), wanted)
    # Without results the pages are made of the tables again.
    os.remove(os.path.join(made, "html", "index.html"))
    publish.write(os.path.join(WORK, "nothing"), made)
    equal(publish.problems(made), [])


@test
def tables_are_read_in_the_order_of_experiments():
    made = directory()
    os.mkdir(os.path.join(made, "cells"))
    for name in ("ab", "a", "a-b"):
        with open(os.path.join(made, "cells", f"{name}.csv"), "w", encoding="utf-8") as file:
            file.write(f"experiment\n{name}\n")
    equal([row["experiment"] for row in tables.read_table(os.path.join(made, "cells"))], ["a", "a-b", "ab"])


@test
def cells_have_the_name_of_a_variant_as_its_congestion_control():
    with Made() as made:
        made.run(scenario.Experiment("fig8", l4s_cc="prague-rtt0").jobs(["dualpi2"], "A5-B5-cubic")[0], meta={
            "made_of": MADE_OF, "dirty": False, "sightings_sha256": "e" * 64, "wall_seconds": 1, "tc": ""})
        rows = list(publish.cell_rows(made.cells()[0].one, "prague-rtt0"))
    equal([row.get("cc") for row in rows], [None, "prague-rtt0", "cubic"])


@test
def publish_of_two_builds_is_rejected():
    for key, name in (("module", "dualpi2: other, cccc"), ("method", "method: other, bbbb 3G"),
                      ("kernel", "kernel: other, 7.2.1 aaaa")):
        holds(refused(published, {key: "other"}), "more than one build", name)
    holds(refused(published, {"job": {}}), "is not as campaign.toml plans it")
    # The check finds the same in tables that somebody put together.
    made = published()
    path = os.path.join(made, "cells", "fig8.csv")
    text = read(path).replace("cccc", "other", 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    holds(publish.problems(made)[0], "more than one build: dualpi2: other, cccc")
    holds(" ".join(publish.problems(published(bench={"method": "other"}))), "a run of another method")
    row = {"group": "all", "method": "m", "kernel": "k"}
    equal(publish.builds([row | {"module": "ppv a csaqm b"}, row | {"module": "pi2 a"}, row | {"module": ""}]), [])
    equal(publish.builds([row | {"module": "ppv a csaqm b"}, row | {"module": "ppv a csaqm c"}]), ["csaqm: b, c"])


@test
def runs_are_added_to_those_of_the_same_build():
    made, other = published(), {"method": "other"}
    label = "fig8/A5-B5-cubic/dualpi2/{}/seed-{}".format
    published(made=made, of=slice(1, 4))
    equal(publish.problems(made), [])
    there = tables.Published(made)
    equal(list(there.jobs), [label("dctcp", 1), label("prague", 1), label("prague", 2),
                             "fig8/A5-B5-cubic/pie/ecn-cubic/seed-1"])
    equal(len(there.tables["cells"]), 12)
    # What is in both is of the later ones, and a cell's series is of its first seed.
    rows = tables.read_csv(os.path.join(made, "claims.csv"))
    equal([(r["sender"], r["value"], r["n"]) for r in rows], [("prague", "0.5", "2"), ("dctcp", "0.5", "1")])
    equal({(r["sender"], r["seed"]) for r in there.tables["series"]},
          {("dctcp", "1"), ("prague", "1"), ("ecn-cubic", "1")})
    # Those of another build are rejected, or replace them.
    message = refused(published, other, other, made, slice(1, 2))
    holds(message, "method of 4 runs", "--replace")
    equal(len(tables.Published(made).jobs), 4)
    published(None, other, made, slice(1, 2), True)
    there = tables.Published(made)
    equal((list(there.jobs), there.bench["method"]), ([label("dctcp", 1)], "other"))


@test
def campaign_does_not_repeat_what_is_published():
    place, made = Place(), published()
    bench = runs.Bench().identity()
    store.write_json(os.path.join(made, "manifest.json"), store.read_json(os.path.join(made, "manifest.json")) | {
        "bench": bench})
    words = ("campaign", "--evaluation", made, "--step", "1", "--seeds", "1")
    holds(place.lab(*words, "--plan")[1], "2 runs, 2 finished")
    holds(place.lab(*words)[1], "2 of 2 runs are published already", "nothing to run")
    # A run that is planned in another way, or lacks a figure that a claim needs now.
    for name, old, new in (("campaign.toml", "seconds = 50", "seconds = 51"),
                           ("claims.toml", "a_mean_ms", "a_p99_ms")):
        text = read(made, name)
        with open(os.path.join(made, name), "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        holds(place.lab(*words, "--plan")[1], "2 runs, 0 finished")
        with open(os.path.join(made, name), "w", encoding="utf-8") as file:
            file.write(text)
    store.write_json(os.path.join(made, "manifest.json"), {"bench": bench | {"kernel": "other"}, "steps": []})
    holds(place.lab(*words)[1], "2 runs in", "another kernel, run again", "2 runs finished, 0 failed")


@test
def campaign_repeats_what_is_published_if_told():
    place, made = Place(), published()
    words = ("campaign", "--evaluation", made, "--step", "1", "--seeds", "1", "--again")
    holds(place.lab(*words, "--plan")[1], "2 runs, 0 finished")
    holds(place.lab(*words)[1], "2 runs finished, 0 failed")


@test
def counters_are_differences_of_those_that_count_packets():
    # A class's "packets" is its queue, and a counter of memory says nothing.
    before = {"packets": 1, "drops": 2, "memory-used": 0, "classic": {"packets": 1, "sent": 1}}
    after = {"packets": 3, "drops": 2, "memory-used": 9, "classic": {"packets": 9, "sent": 4}, "l4s": {"sent": 1}}
    equal(publish.counters(before, after), ["classic.sent=3", "packets=2"])
    equal(publish.counters(None, after), [])


class Checker(html.parser.HTMLParser):
    """What of a page must be closed and is not, and where its links lead."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids, self.images = [], [], set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[k] for k in ("href", "src") if k in found]
        self.ids.add(found.get("id"))
        if tag == "svg":
            self.images.append(found.get("aria-label"))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids.add(dict(attrs).get("id"))

    def handle_endtag(self, tag):
        equal(self.open.pop(), tag)


@test
def pages_are_closed_linked_and_need_nothing_else():
    for made in (published(), campaign.EVALUATION):
        where, pages_ = os.path.join(made, "html"), {}
        for name in os.listdir(where):
            if name.endswith(".html"):
                checker = pages_[name] = Checker()
                text = read(where, name)
                assert "<script" not in text and "http" not in text, name
                checker.feed(text)
                equal((checker.open, all(checker.images)), ([], True), name)
        for name, checker in pages_.items():
            for link in checker.links:
                file, _, anchor = link.partition("#")
                assert not file or os.path.exists(os.path.join(where, file)), (name, link)
                assert not anchor or anchor in pages_[file or name].ids, (name, link)


@test
def drawings_put_values_where_they_belong():
    axis = svg.Axis([0, 10], 100, 200, zero=True)
    equal([axis.at(v) for v in (0, 10.5, -1, 99)], [100, 200, 100, 200])
    axis = svg.Axis([1, 100], 0, 100, log=True)
    equal(axis.at(10), 50)
    equal(axis.ticks, [1, 2, 5, 10, 20, 50, 100])
    equal(svg.Axis([1, 10000], 0, 100, log=True).ticks, [1, 10, 100, 1000, 10000])
    text = svg.dots("<title>", "ms", [("a", 2.0, {"x": (1.0, 0.5, 1.5), "y": (3.0, None, None)})])
    holds(text, "&lt;title&gt;", ">×<", 'class="s1"', 'class="l0"')
    equal((text.count("<circle"), text.count("<line") - text.count("grid")), (4, 1))  # two of the legend
    root = xml.etree.ElementTree.fromstring(svg.file(text, "a {}"))
    equal([(root.tag, root[0].text.strip()), svg.file("", "a {}")], [("{http://www.w3.org/2000/svg}svg", "a {}"), ""])
    text = svg.lines("t", "s", "ms", {"x": [(0, 1), (1, 0), (2, 100)]})
    # A logarithmic axis, which far values need, has no zero.
    equal(text.split('points="')[1].partition('"')[0].count(","), 2)
    equal([round(v, 6) for v in svg.ticks(0, 1, False)], [0, 0.2, 0.4, 0.6, 0.8, 1.0])
    holds(svg.bar("t", {"reproduced": 3, "not run": 1, "unsupported": 0}), 'width="540.0"', 'width="180.0"',
          "v-not-run")


@test
def publish_without_results_leaves_one_line():
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = lab.main(["publish", "--evaluation", "/nowhere", "--results", Place().results])
    equal((code, err.getvalue().count("\n")), (2, 1))
    holds(err.getvalue(), "campaign.toml")


if __name__ == "__main__":
    main()
