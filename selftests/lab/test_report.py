#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of the report's page, the plots, the files for flent and the companions' page, on made-up results. KTAP.

Whether flent opens the files is not tested here.
"""

import atexit
import functools
import gzip
import io
import json
import math
import os
import sys
from contextlib import redirect_stdout

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import companions
import flentfile
import judge
import plots
import report
import results
import store
import tables
from ktap import expect_equal as equal, main, test
from made import SECONDS, Made, fig12_target, fig8_target, job, jobs, raw


@test
def companions_cases_are_in_order_of_their_numbers_and_aqms_as_listed():
    two = [(one, None) for case in ("10-each", "2-each") for one in (
        job("vdq-rtt", case, aqm) for aqm in ("vdq_csaqm", "fq_codel"))]
    with Made() as made:
        for one, given in two:
            made.run(one, given)
        text = companions.page(made.cells())
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| vdq-rtt")]
    equal([line[1] for line in lines[:2]], ["vdq_csaqm", "fq_codel"])
    equal([(line[1], line[2]) for line in lines[2:]],
          [(case, aqm) for aqm in ("vdq_csaqm", "fq_codel") for case in ("2-each", "10-each")])


@test
def in_tree_table_says_what_was_not_run():
    with Made() as made:
        made.run(job("fig6", "40mbit-10ms"), {"A": {"p99": 0.8}})
        made.run(job("fig6", "40mbit-10ms", "dualpi2-in-tree"), {"A": {"p99": 1.0}})
        made.run(job("fig6", "4mbit-10ms"))
        made.run(job("pi2-fig11", "light"))
        rows = {r[0]: r for r in report.in_tree_rows(made.cells())}
        equal(set(rows), {"fig6 40mbit-10ms", "fig6 4mbit-10ms"})
        equal(rows["fig6 40mbit-10ms"][1:3], ["0.800 / 1.000", "0.80"])
        assert "not run" in rows["fig6 4mbit-10ms"][1] and rows["fig6 4mbit-10ms"][2] == "–", rows


@test
def deploy_table_has_the_papers_numbers():
    with Made() as made:
        made.run(job("deploy", "l4s-cubic-2bdp"), {"A": {"mbit": 40.0}, "B": {"mbit": 56.0}})
        equal([r[:4] for r in tables.deploy_rows(made.cells())], [["cubic", "dualpi2", "2", "40.0 / 42.3"]])


@test
def deploy_flows_table_has_the_papers_numbers():
    with Made() as made:
        made.run(job("deploy-flows", "A1-B25"), {"A": {"flow_mbit": 3.0, "mean": 0.5}, "B": {"flow_mbit": 3.8,
                                                                                             "mean": 9.0}})
        equal(tables.deploy_flows_rows(made.cells()), [
            ["1 : 25", "dualpi2", "3.00 / 3.10", "3.80 / 3.70", "0.50 / 0.24", "9.00 / 9.50"]])
    equal(len(judge.targets("deploy-flows.csv")), 36)


@test
def lab_section_compares_repeated_runs():
    one = job("fig6", "40mbit-10ms")
    for theirs, wanted in (({}, "reached"), ({"sightings_sha256": "b"}, "missed"),
                           ({"sightings_sha256": None}, "not run"), ({"made_of": {"kernel": "7.3"}}, "not run")):
        with Made() as made, Made() as again:
            first = {"sightings_sha256": "a", "made_of": {"kernel": "7.2"}}
            made.run(one, meta=first)
            again.run(one, meta=first | theirs)
            row, percentiles = report.lab_rows(made.cells(), again.cells())
            equal((row.verdict(), percentiles.verdict()), (wanted, "not run"), theirs)
            text = report.page(made.cells(), None, again.cells())
            assert "## Accuracy of the lab" in text and "runs what shows it | not run" in text, text
            assert ("build/lab/again" if wanted == "not run" else "of 1 repeated runs") in row.cells[0], row.cells


def own_said(**moved):
    """summary.json's "own" with both queues and spans alike, a P99 of 10 ms in a bucket of 10 to 11 ms."""
    one = {"packets": {"own": 5, "seen": 6}, "mean": {"own_ms": 4.0, "seen_ms": 4.0},
           **{level: {"own_ms": 10.0, "seen_ms": 10.0, "from_ms": 10.0, "to_ms": 11.0} for level in report.OWN_LEVELS}}
    first = {level: found | moved.get(level, {}) for level, found in one.items()}
    return {"l4s": {"measured": first, "since_start": one}, "classic": {"measured": one, "since_start": one}}


@test
def own_percentiles_flip_at_a_bucket_and_at_six_per_cent():
    one = job("percentiles", "40mbit")
    for moved, wanted in (({}, "reached"), ({"p50": {"own_ms": 11.0}}, "reached"),
                          ({"p50": {"own_ms": 11.01}}, "missed"), ({"p99_9": {"own_ms": 8.99}}, "missed"),
                          ({"p99": {"own_ms": 10.6}}, "reached"),
                          ({"p99": {"own_ms": 10.61}}, "missed"), ({"p99": {"own_ms": 9.39}}, "missed")):
        with Made() as made:
            made.run(one, own=own_said(**moved))
            row = report.own_percentiles(made.cells())
            equal((row.verdict(), len(row.checks)), (wanted, 20), moved)
            text = report.page(made.cells())
            assert f"{20 - (wanted == 'missed')} of 20 hold" in text, moved
    with Made() as made:
        made.run(one, own=own_said(p99={"own_ms": 10.61}))
        equal(report.own_rows(made.cells())[0], [
            "40mbit", "l4s", "of the measured seconds", "5 / 6", "4.000 / 4.000 (+0.0 %)", "10.000 / 10.000 (+0.0 %)",
            "10.000 / 10.000 (+0.0 %)", "10.610 / 10.000 (+6.1 %)", "10.000 / 10.000 (+0.0 %)", "–"])
        assert "l4s p99 of the measured seconds, % off 6.1, to reach ≤ 6" in report.page(made.cells())


@test
def own_percentiles_of_other_experiments_are_not_judged():
    with Made() as made:
        made.run(job("fig6", "40mbit-10ms"), own=own_said(p99={"own_ms": 20.0}))
        equal((report.own_percentiles(made.cells()).verdict(), report.own_rows(made.cells())), ("not run", []))


def shaper_said(**p99):
    """{aqm: shaper_rows()' row} of one link with these P99s of A; aqms by their short names."""
    names = {"own": "dualpi2-shaper", "htb": "dualpi2", "kernel": "dualpi2-in-tree", "cake": "cake-shaper"}
    with Made() as made:
        for name, value in p99.items():
            made.run(job("shaper", "40mbit-10ms", names[name]), {"A": {"p99": value}})
        cells = made.cells()
        return report.shaper_rows(cells), report.shaper_table(cells), report.page(cells)


@test
def shaper_flips_at_its_bound_and_is_judged_by_the_one_of_the_kernel():
    for given, wanted in (({"own": 0.7, "htb": 0.8, "kernel": 1.0}, "reached"),
                          ({"own": 0.701, "htb": 9.0, "kernel": 1.0}, "missed"), ({"own": 0.1, "htb": 0.1}, "value"),
                          ({"own": 0.1}, "not run"), ({"kernel": 0.1, "cake": 1.0}, "not run")):
        (row,), _, _ = shaper_said(**given)
        equal(row.verdict(), wanted, given)
    (row,), table, text = shaper_said(own=0.75, htb=0.75, kernel=1.0, cake=3.0)
    equal(row.label + row.cells, ["40mbit-10ms", "0.750", "0.750", "1.000", "1.00", "**0.75**"])
    equal([line[1] for line in table], ["cake-shaper", "dualpi2", "dualpi2-in-tree", "dualpi2-shaper"])
    assert "ratio to in-tree 0.75, to reach ≤ 0.7 (+7.1 %)" in text and "| the shaper | 0 | 1 | 0 | 0 |" in text, text


@test
def bursts_flip_at_their_bounds():
    def said(case, aqm, what, *more):
        with Made() as made:
            for name, given in ((aqm, what), *more):
                made.run(job("bursts", case, name), {"A": given})
            row, = report.burst_rows(made.cells())
            return row.verdict()
    for mbit, wanted in ((36.0, "reached"), (35.9, "missed")):
        for aqm in ("dualpi2-burst", "dualpi2-shaper-burst"):
            equal(said("4ms-10ms-alone", aqm, {"mbit": mbit}), wanted, f"{aqm} {mbit}")
    equal(said("4ms-10ms-alone", "dualpi2-in-tree", {"mbit": 11.0}), "not run")
    equal(said("4ms-10ms-cubic", "dualpi2-burst", {"mbit": 20.0}), "value")
    for p99, wanted in ((1.02, "reached"), (1.03, "missed"), (0.97, "missed")):
        equal(said("0ms-20ms-alone", "dualpi2-burst", {"p99": p99}, ("dualpi2", {"p99": 1.0})), wanted, p99)
    equal(said("0ms-20ms-alone", "dualpi2", {"p99": 2.0}), "not run")


@test
def runs_that_were_not_made_alike_are_named():
    with Made() as made:
        for case, method in (("4mbit-10ms", "aaaa1111 3G"), ("40mbit-10ms", "bbbb2222 3G")):
            made.run(job("fig6", case), meta={"made_of": {"module": "cccc3333ffff", "method": method}})
        made.run(job("fig6", "40mbit-10ms", "pie"), meta={"made_of": {"module": None, "method": "bbbb2222 3G"}})
        text = report.page(made.cells())
        equal(text.count("WARNING"), 1)
        for part in ("fig6, dualpi2: with", "module cccc3333, method aaaa1111 4mbit-10ms/dctcp/seed-1",
                     "module cccc3333, method bbbb2222 40mbit-10ms/dctcp/seed-1", "module none, method bbbb2222"):
            assert part in text[:1500], (part, text[:1500])


# Runs that everything() has for each figure, and the points on each axis, row by row: a mark with its bar is 3, a line
# over the seconds SECONDS, over the histogram 8, a line across the axis 2.
DRAWN = {
    "fig2": ("40mbit-5*ms", [2 * 3] * 9),
    "fig4": ("*", [260]),  # two packets in 0.1 s from 17 s to 30 s
    "fig6": ("40mbit-5*", [2 * 6] * 6 + [2 * 3] * 3 + [2 * 3 + 2] * 6 + [2 * 6] * 3),
    "fig7": ("A[25]-*", [2 * 6 + 2] * 6),
    "fig8": ("A5-B*", [10 * 6] * 6 + [10 * 3] * 3 + [10 * 3 + 2] * 6 + [10 * 6] * 3),
    "fig9": ("*", [2 * 5 + 50, 2 * (6 * 3 + 2)] * 2),  # 5 objects ended of 6; the ideal has 50 points
    "fig10": ("*", [3 * 2 * 8] * 3),
    "fig11": ("1*mbit-10ms", [2 * (6 * 3 + 2)] * 3 + [2 * 6] * 6 + [2 * 3] * 3),
    "fig12": ("l4s-*-cubic", [5 * 9, 5 * 9, 5 * 3]),
    "pi2-fig11": ("*", [3 * SECONDS] * 6),
    "pi2-fig12": ("*", [5 * SECONDS]),
    "pi2-fig13": ("*", [3 * SECONDS]),
    "pi2-fig14": ("*", [3 * (8 + 1)] * 4),
    "deploy": ("*-2bdp", [9] * 8),  # nine AQMs in words
}


@functools.cache
def everything():
    """A Made with runs for every figure; it goes when the program ends."""
    made = Made()
    atexit.register(made.__exit__)
    for name, (pattern, _) in DRAWN.items():
        for one in jobs(name, pattern):
            place = made.run(one)
            if name == "fig4":
                raw(place, [1] * 300)
    return made


def drawn(figure):
    """Points of all lines and texts on each axis of a figure."""
    return [sum(len(line.get_xdata()) for line in axis.get_lines()) + len(axis.texts) for axis in figure.axes]


@test
def figures_have_their_axes_and_points():
    equal(set(DRAWN), set(plots.FIGURES))
    cells = everything().cells()
    for name, function in plots.FIGURES.items():
        figure = function(cells)
        equal(drawn(figure), DRAWN[name][1], name)
        plots.plt.close(figure)
    # Crosses: mean delays on both scales, utilization, two ratios.
    for name, target, rows in (("fig8", fig8_target("DualPI2"), [2, 0, 0] * 2 + [1, 0, 0] * 3 + [0] * 3),
                               ("fig12", fig12_target(), [3, 2, 3])):
        cell = {"fig8": tables.fig8_cell, "fig12": tables.fig12_cell}[name](cells, target)
        figure = plots.FIGURES[name](cells, [(cell, target)])
        equal(drawn(figure), [n + more for n, more in zip(DRAWN[name][1], rows, strict=True)], f"{name}, crosses")
        plots.plt.close(figure)


@test
def figures_take_the_web_packets_too():
    with Made() as made:
        place = made.run(job("fig10", "120mbit-10ms"))
        with open(f"{place}/histogram.csv", "w", encoding="ascii") as file:
            file.write("group,delay_us_from,delay_us_to,packets\nA,0,1000,98\nWA,1000,5000,2\nB,0,9000,1\n")
        made.run(job("fig11", "120mbit-10ms"))
        made.run(job("fig11", "120mbit-10ms", "pie"))
        made.run(job("fig11", "4mbit-10ms"))
        cells = made.cells()
        for name, wanted in (("fig10", ["fig10 dualpi2", "fig11 pie"]), ("fig11", ["fig11 dualpi2", "fig11 pie"])):
            equal([f"{c.experiment} {c.aqm}" for c in plots.of_web(cells, name) if c.case == plots.WEB_CASE], wanted)
        one = cells[0].one
        equal(one.side("A"), ["A", "WA"])
        equal(plots.side_delay_ms(one, "A"), {"mean": 1.08, "p1": 1.0, "p99": 5.0})


@test
def report_of_everything_is_written_with_its_pictures():
    made = everything()
    with redirect_stdout(io.StringIO()):
        report.main(made.directory, f"{made.directory}/.out")
    with open(f"{made.directory}/.out/report.md", encoding="utf-8") as file:
        text = file.read()
    for name in DRAWN:
        assert f"![{name}]({name}.png)" in text, name
        assert os.path.getsize(f"{made.directory}/.out/{name}.png") > 5000, name
    equal(text.count("\n\n\n"), 0)
    for table in (t for t in text.split("\n\n") if t.startswith("|")):
        equal(len({line.count("|") for line in table.splitlines()}), 1, table[:200])
    equal(len(os.listdir(f"{made.directory}/.out/flent")), sum(len(c.runs) for c in made.cells()))


@test
def report_without_figures_names_them():
    with Made() as made:
        made.run(job("fig4", "*"))
        with redirect_stdout(io.StringIO()):
            report.main(made.directory, f"{made.directory}/.out", brief=True)
        equal(os.listdir(f"{made.directory}/.out"), ["report.md"])
        text = report.page(made.cells(), plots.draw(made.cells(), f"{made.directory}/.out", {}))
        assert "![fig4]" in text and "Not run, so not drawn: fig2, fig6" in text, text[-300:]


@test
def flent_file_has_its_series():
    with Made() as made:
        made.run(job("fig12", "l4s-50mbit-reno"))
        path = flentfile.write(made.cells()[0].one, made.directory)
        with open(path, "rb") as file:
            packed = file.read()
        equal(packed[4:8], bytes(4), "time of writing")
        data = json.loads(gzip.decompress(packed))
        equal(data["version"], 4)
        equal({k for k in data["results"] if not k.endswith(("avg", "sum", "totals"))},
              {*flentfile.UPLOADS[:3], *flentfile.PINGS[:3]})
        equal({len(v) for v in [*data["results"].values(), data["x_values"]]}, {SECONDS})
        equal(data["results"]["TCP upload sum"], [3.0 * n for n in range(1, SECONDS + 1)])
        equal(data["results"]["Ping (ms) avg"], [2.0] * SECONDS)
        equal(data["raw_values"]["TCP upload BE"][0], {"t": 10**9 + data["x_values"][0], "val": 1.0})


@test
def damaged_results_are_named():
    def refused(wanted, name, spoil):
        with Made() as made:
            place = made.run(job("fig10", "120mbit-10ms"))
            spoil(f"{place}/{name}")
            try:
                report.main(made.directory, f"{made.directory}/.out")
            except store.StoreError as error:
                for word in (*wanted, name if name != "meta.json" else place):
                    assert word in str(error), error
                equal(str(error).count("\n"), 0)
                return
            raise AssertionError(f"{name} was not refused")

    def write(text):
        def spoil(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return spoil

    def cut(path):
        with open(path, "r+", encoding="utf-8") as file:
            file.truncate(os.path.getsize(path) - 5)

    for name in ("summary.json", "job.json"):
        refused(["run it again"], name, os.remove)
        refused(["run it again"], name, cut)
    for name in ("summary.json", "job.json"):
        refused(["damaged", "run it again"], name, write("{}"))
    refused(["damaged", "run it again"], "summary.json", write("[]"))
    refused(["format 0"], "meta.json", write('{"format": 0}'))
    for name in ("seconds.csv", "histogram.csv"):
        refused(["damaged", "run it again"], name, write("group,what\nA,1\n"))
        refused(["damaged", "run it again"], name, cut)


@test
def directory_without_results_is_named():
    with Made() as made:
        for path in (made.directory, f"{made.directory}/nowhere"):
            try:
                results.load(path)
            except store.StoreError as error:
                assert path in str(error) and "run an experiment" in str(error), error
            else:
                raise AssertionError(path)


@test
def efficiency_is_ideal_over_taken():
    with Made() as made:
        made.run(job("fig9", "*"))
        cell = made.cells()[0].one
        found = plots.efficiency(cell, cell.groups("web")[0])
        # Without the object of the warm-up; the one that did not end, of 300 kB, is 0.
        equal([round(b) for b, *_ in found], [round(3 ** (k + 0.5)) for k in (6, 7, 8, 9, 10, 11)])
        equal(found[-1][1:], (0, 0, 0))
        size, mean, low, high = found[0]
        ideal = 0.01 + 1000 * 8 / 40e6
        assert math.isclose(mean, ideal / 0.05) and low == high == mean and 729 < size < 2187, found[0]


if __name__ == "__main__":
    main()
