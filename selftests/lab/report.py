#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare every target of the papers with the results of runs, on one page of Markdown.

The papers' numbers are in targets/, the bounds are those that the project set itself beforehand and stand once each in
judge.py and tables.py, and here for what no paper has. Nothing is judged that was not run, and where a
paper gives no number a value stands without a verdict.
A value is the mean over the seeds, with [least to most] where there are several, and it is the mean that is judged.
Pictures are plots.py's, flent's files flentfile.py's; how a figure is measured is measure.py's matter.
"""

import argparse
import os
import sys

import flentfile
import plots
import results
import runs
import store
from judge import (OURS, IN_TREE, Check, Row, a_mean_ms, a_p99_ms, b_mean_ms, b_p99_ms, utilization_pct, rate_ratio,
                   targets, shown, cell_text, markdown, ours_with, named, by_case, over_value)
from tables import (FIG8_COLUMNS, PAPER_AQMS, deploy_flows_rows, deploy_rows, fig12_cell, fig12_rows, fig8_cell,
                    fig8_rows)

OWN_LEVELS = ("p50", "p90", "p99", "p99_9")
TO_OURS, TO_IN_TREE = "ratio to this module", "ratio to in-tree"
SHAPER_RATIO = 0.7          # L P99 with the own shaper, of that in-tree
BURST_MBIT = 36             # of 40, for an L4S flow that comes in aggregates
SMOOTH_WITHIN = 0.02        # L P99 with tolerance of bursts, of that without, where there are none
OWN_WITHIN_PCT = 6          # P99 as the qdisc has it, of the one seen: half of the widest bucket


# This module and the in-tree dualpi2

def in_tree_rows(cells):
    """Every case with an L4S sender A that either dualpi2 ran: A's P99, its ratio, utilization, rate ratio, [[text]].

    Empty if the one in the kernel was not run at all.
    """
    if IN_TREE not in {c.aqm for c in cells}:
        return []
    pairs = {}
    for cell in cells:
        sender = cell.one.sender("A")
        if cell.aqm in (OURS, IN_TREE) and sender and sender["ecn"] in results.L4S:
            pairs.setdefault((cell.experiment, cell.case), {})[cell.aqm] = cell
    rows = []
    for (experiment, case), pair in pairs.items():

        def both(figure, digits, pair=pair):
            found = [aqm in pair and pair[aqm].value(figure) for aqm in (OURS, IN_TREE)]
            return found, " / ".join("not run" if v is False else shown(v, digits) for v in found)
        p99, text = both(a_p99_ms, 3)
        ratio = f"{p99[0].mean / p99[1].mean:.2f}" if all(p99) and p99[1].mean else "–"
        rows.append([f"{experiment} {case}", text, ratio, both(utilization_pct, 2)[1], both(rate_ratio, 2)[1]])
    return rows


# The shaper, and bursts

SHAPER = "dualpi2-shaper"
TOLERANT = ("dualpi2-burst", "dualpi2-shaper-burst")     # with burst_max 5 ms
SHAPER_FIGURES = (("L mean ms", a_mean_ms, 3), ("L P99 ms", a_p99_ms, 3), ("C mean ms", b_mean_ms, 2),
                  ("C P99 ms", b_p99_ms, 2), ("rate L : C", rate_ratio, 2), ("utilization %", utilization_pct, 2))


def shaper_rows(cells):
    """A Row for each link: L P99 with the own shaper over that as a child of htb, and of the in-tree dualpi2."""
    rows = []
    for case, aqms in by_case(cells, "shaper").items():
        p99 = {aqm: cell.value(a_p99_ms) for aqm, cell in aqms.items()}
        checks = [Check(what, over_value(p99.get(SHAPER), p99.get(aqm)), most=SHAPER_RATIO, judged=judged)
                  for what, aqm, judged in ((TO_OURS, OURS, False), (TO_IN_TREE, IN_TREE, True))
                  if p99.get(SHAPER) and p99.get(aqm)]
        texts = {c.what: cell_text(c, 2) for c in checks}
        rows.append(Row([case], checks or None, [
            *(shown(p99.get(aqm)) for aqm in (SHAPER, OURS, IN_TREE)),
            texts.get(TO_OURS, "–"), texts.get(TO_IN_TREE, "–")]))
    return rows


def shaper_table(cells):
    """All figures of each run with a shaper, [[text]]."""
    return [[case, aqm, *(shown(cell.value(figure), digits) for _, figure, digits in SHAPER_FIGURES)]
            for case, aqms in by_case(cells, "shaper").items() for aqm, cell in aqms.items()]


def aggregated(cell):
    """Whether the first group comes in aggregates."""
    return bool(cell.job["groups"][0].get("aggregate_ms"))


def burst_rows(cells):
    """A Row for each case: an L4S flow alone in aggregates has its link, a smooth one the P99 that it would have."""
    rows = []
    for case, aqms in by_case(cells, "bursts").items():
        checks, one = [], next(iter(aqms.values()))
        for aqm in TOLERANT:
            if aqm not in aqms:
                continue
            if aggregated(one):
                judged = len(one.job["groups"]) == 1
                checks.append(Check(f"{aqm}: L Mbit/s", aqms[aqm].value(lambda r: r.of("A", "mbit")), BURST_MBIT,
                                    judged=judged))
            elif aqm == TOLERANT[0] and OURS in aqms:
                checks.append(Check("L P99, of that with burst_max 0", over_value(
                    *(aqms[a].value(a_p99_ms) for a in (aqm, OURS))), 1 - SMOOTH_WITHIN, 1 + SMOOTH_WITHIN))
        rows.append(Row([case], checks or None, ["; ".join(f"{c.what} {cell_text(c, 2)}" for c in checks) or "–"]))
    return rows


def burst_table(cells):
    """All figures of each run with bursts, [[text]]."""
    return [[case, aqm, shown(cell.value(lambda r: r.of("A", "mbit")), 2),
             *(shown(cell.value(f), d) for f, d in ((utilization_pct, 2), (a_mean_ms, 3), (a_p99_ms, 3))),
             shown(cell.value(lambda r: r.summary["groups"]["A"].get("aggregates", {}).get("packets", {}).get("mean")),
                   1)]
            for case, aqms in by_case(cells, "bursts").items() for aqm, cell in aqms.items()]


# Accuracy of the lab

def repeated(cells, again):
    """The Row on runs that another directory repeats: made of the same, they must have seen the same packets."""
    second = {store.label(r.job): r.meta for c in again for r in c.runs}
    checks = []
    for result in (r for c in cells for r in c.runs):
        mine, other = result.meta, second.get(store.label(result.job), {})
        digests = [m.get("sightings_sha256") for m in (mine, other)]
        if None not in digests and mine["made_of"] == other["made_of"]:
            same = float(digests[0] == digests[1])
            checks.append(Check(f"{store.label(result.job)}: the same", results.Value(same, same, same, 1), least=1))
    text = f"{sum(c.value.mean for c in checks):.0f} of {len(checks)} repeated runs saw the same packets at the same ns"
    return Row(["two runs of the same seed are the same to the bit"], checks or None, [text if checks else (
        f"the commands in meta.json repeat runs in {runs.AGAIN}; selftests/lab/test_smoke.py repeats two")])


def own_off(which, level, queue, span):
    """How far the qdisc's own figure is from what was seen, of a result: in per cent ("pct") or buckets ("buckets").

    None if the qdisc says nothing of it.
    """
    def figure(result):
        found = result.summary.get("own", {}).get(queue, {}).get(span, {}).get(level)
        if not found:
            return None
        off = abs(found["own_ms"] - found["seen_ms"])
        if which == "pct":
            return off / found["seen_ms"] * 100 if found["seen_ms"] else None
        return off / (found["to_ms"] - found["from_ms"])
    return figure


QUEUES, SPANS = ("l4s", "classic"), {"measured": "of the measured seconds", "since_start": "as tc prints it"}


def own_percentiles(cells):
    """The Row on what the qdisc says of its delays, in the runs that are there for that; see OWN_WITHIN_PCT."""
    checks = []
    for cell in ours_with(cells, "percentiles"):
        for queue in QUEUES:
            for span, words in SPANS.items():
                for level in OWN_LEVELS:
                    what = f"{named(cell)}: {queue} {level} {words}"
                    if value := cell.value(own_off("buckets", level, queue, span)):
                        checks.append(Check(f"{what}, buckets off", value, most=1))
                    if level == "p99" and (value := cell.value(own_off("pct", level, queue, span))):
                        checks.append(Check(f"{what}, % off", value, most=OWN_WITHIN_PCT))
    good = sum(c.verdict() == "reached" for c in checks)
    return Row(["what `tc -s` prints of delays is what was seen: P50 to P99.9 within one bucket, P99 within "
                f"{OWN_WITHIN_PCT} %"], checks or None, [f"{good} of {len(checks)} hold" if checks else (
                    "`scripts/lab.sh run percentiles` runs what shows it")])


def own_rows(cells):
    """The qdisc's own figures / what was seen, and how far apart, for own_percentiles(), [[text]]."""
    rows = []
    for cell in sorted(ours_with(cells, "percentiles"), key=lambda c: c.one.rate_mbit):
        for queue in QUEUES:
            for span, words in SPANS.items():
                found = cell.one.summary.get("own", {}).get(queue, {}).get(span)
                if not found:
                    continue
                texts = [f"{f['own_ms']:.3f} / {f['seen_ms']:.3f} ({(f['own_ms'] / f['seen_ms'] - 1) * 100:+.1f} %)"
                         if (f := found.get(level)) and f["seen_ms"] else "–" for level in ("mean", *OWN_LEVELS, "max")]
                rows.append([cell.case, queue, words, f"{found['packets']['own']} / {found['packets']['seen']}",
                             *texts])
    return rows


def lab_rows(cells, again):
    """A Row for each thing that the lab claims of itself."""
    return [repeated(cells, again), own_percentiles(cells)]


# The page

def shorten(text, parts=4):
    """The first few of many reasons."""
    found = text.split("; ")
    return text if len(found) <= parts else "; ".join(found[:parts]) + f"; and {len(found) - parts} more"


def count(rows):
    """How many rows there are of each verdict, as text."""
    found = [r.verdict() for r in rows]
    return [str(found.count(v)) for v in ("reached", "missed", "not run", "value")]


def verdict_table(head, rows, experiment=None):
    """Table of rows with their verdicts, and under it what was not run, and which experiment would."""
    ran = [r for r in rows if r.checks is not None]
    left = "; ".join(" ".join(r.label) for r in rows if r.checks is None)
    parts = [markdown(head, [[*r.label, *r.cells, r.verdict(), shorten(r.why())] for r in ran])] if ran else []
    hint = f" `scripts/lab.sh run {experiment}` runs them." if experiment else ""
    return "\n\n".join(parts + [f"Not run: {left}.{hint}"] * bool(left))


def shaper_parts(cells, rows):
    """The section on the shaper, as a list of paragraphs."""
    parts = [f"## Shaper\n\nOne flow each, L is DCTCP. To reach: L P99 ≤ {SHAPER_RATIO} of that of the in-tree "
             "dualpi2 as a child of htb. The ratio to this module as a child of htb is a value."]
    if not rows:
        return [*parts, "Not run. `scripts/lab.sh run shaper` runs it."]
    return [*parts, verdict_table(["link, RTT", "L P99 ms: own shaper", "this module, child of htb",
                                   "in-tree, child of htb", TO_OURS, TO_IN_TREE, "", "why"],
                                  rows, "shaper"),
            markdown(["link, RTT", "", *(name for name, *_ in SHAPER_FIGURES)], shaper_table(cells))]


def burst_parts(cells, rows):
    """The section on bursts, as a list of paragraphs."""
    parts = ["## Bursts\n\n40 Mbit/s; the case is aggregation (0: none), RTT, and what shares the link. "
             f"To reach: alone, in aggregates, ≥ {BURST_MBIT} Mbit/s with burst_max 5 ms; without aggregation L P99 as "
             f"with burst_max 0, within {SMOOTH_WITHIN:.0%}."]
    if not rows:
        return [*parts, "Not run. `scripts/lab.sh run bursts` runs it."]
    return [*parts, verdict_table(["case", "", "", "why"], rows, "bursts"),
            markdown(["case", "AQM", "L Mbit/s", "utilization %", "L mean ms", "L P99 ms", "packets in an aggregate"],
                     burst_table(cells))]


def page(cells, pictures=None, again=()):
    """The report as Markdown; `pictures`: {figure: file or None}, left out if None; `again`: cells of repeated runs."""
    fig8 = {aqm: fig8_rows(cells, aqm) for aqm in PAPER_AQMS}
    fig12, own = fig12_rows(cells), lab_rows(cells, again)
    shaper, bursts = shaper_rows(cells), burst_rows(cells)
    all_runs = [r for c in cells for r in c.runs]
    mixed = store.mixtures(store.Found(c.experiment, c.case, c.aqm, c.sender, r.job["seed"], r.path, r.meta)
                           for c in cells for r in c.runs)
    made = sorted({f"commit {(r.meta.get('commit') or 'unknown')[:12]}{' with changes' * bool(r.meta.get('dirty'))}, "
                   f"kernel {r.meta.get('made_of', {}).get('kernel', 'unknown')}" for r in all_runs})
    seconds = " or ".join(f"{s:g}" for s in sorted({r.seconds_measured for r in all_runs}))
    low = sorted({g.get("sender", g["cc"]) for r in all_runs for g in r.groups("tcp", True)})
    columns = [c[1] for c in FIG8_COLUMNS]
    parts = [
        "# The papers' targets and our runs",
        *(f"**WARNING, not all made alike:** {line}" for line in mixed),
        f"{len(all_runs)} runs of {len(cells)} cells, {seconds} s measured. Made of {'; '.join(made)}; "
        f"{'; '.join(sorted({store.made_with(r.meta) for r in all_runs}))}. "
        f"L4S senders: {', '.join(low) or 'none'}; the papers' are Prague, which counts RTTs below 25 ms as 25 ms. "
        "\"this module / the paper\"; a miss is **bold**; [least to most] over the seeds, whose mean is judged. "
        "\"value\": the paper gives no number to reach.",
        markdown(["", "reached", "missed", "not run", "value"], [
            *([f"Fig. 8, {aqm}", *count(rows)] for aqm, rows in fig8.items()),
            ["Fig. 12", *count(fig12)], ["the shaper", *count(shaper)],
            ["bursts", *count(bursts)], ["accuracy of the lab", *count(own)]])]
    for aqm, rows in fig8.items():
        parts.append(f"## Fig. 8, {aqm}\n\n" + (
            "To reach: A (L4S) mean and P99 ≤ the paper's, utilization ≥, rate ratio within 20 % of it or closer to 1 "
            "(1/2 is as close as 2); "
            "B's delays are not judged." if PAPER_AQMS[aqm] == OURS else
            "To reach: all six columns within 20 % of the paper's. Utilization within 20 % of 100 % proves little."))
        parts.append(verdict_table(["B's", "RTTs (ms)", *columns, "", "why"], rows, "fig8"))
    parts.append("## Fig. 12, DualPI2 in overload\n\nTo reach: UDP's share of the link within 3 points, L (TCP) mean "
                 "and P99 ≤ the paper's, L mark over 2√(C drop) (100 % at most) within 3 % of 1, and where UDP alone "
                 "has to lose over 25 %, drops of both classes (with UDP) equal within 10 % (the "
                 "paper's drops are of TCP alone).")
    parts.append(verdict_table(["C", "UDP", "Mbit/s", "UDP share %", "L mean ms", "L P99 ms", "L mark / 2√(C drop)",
                                "L drop / C drop", "C drop %", "", "why"], fig12, "fig12"))
    parts.append("## This module and the in-tree dualpi2")
    rows = in_tree_rows(cells)
    parts.append(markdown(["cell", "A P99 ms", "ratio", "utilization %", "A : B"], rows) if rows else "Not run.")
    parts += shaper_parts(cells, shaper) + burst_parts(cells, bursts)
    parts.append("## Partial deployment\n\n100 Mbit/s, 10 ms, A is L4S. The paper's rates are goodput (5 % less), its "
                 "delays the senders' smoothed RTT less the base RTT.")
    rows = deploy_rows(cells)
    parts.append(markdown(["B", "AQM", "BDP", "A Mbit/s", "B Mbit/s", "A ms", "B ms"], rows) if rows else "Not run.")
    parts.append("Many flows, buffers of 2 BDP; the paper's delays are those of the first flow. Rates are of a flow.")
    rows = deploy_flows_rows(cells)
    parts.append(markdown(["A : B", "AQM", "A Mbit/s", "B Mbit/s", "A ms", "B ms"], rows) if rows else "Not run.")
    parts.append("## Accuracy of the lab")
    parts.append(markdown(["claim", "", "", "why"], [[*r.label, *r.cells, r.verdict(), shorten(r.why())] for r in own]))
    if rows := own_rows(cells):
        parts.append("The qdisc's own figures / those of the packets seen, in ms. Of the measured seconds the qdisc "
                     "knows no greatest delay: it keeps that since the start only.")
        parts.append(markdown(["link", "queue", "", "packets", "mean", "P50", "P90", "P99", "P99.9", "max"], rows))
    if pictures is not None:
        parts.append("## Figures")
        parts += [f"![{name}]({file})" for name, file in pictures.items() if file]
        left = [name for name, file in pictures.items() if not file]
        if left:
            parts.append(f"Not run, so not drawn: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


def main(results_dir, out_dir, brief=False, l4s=None):
    """Write out_dir/report.md, and without `brief` the pictures and files for flent next to it; l4s: results.load()'s.

    Says where it is. results.StoreError if there are no results, or one cannot be read.
    """
    cells = results.load(results_dir, l4s)
    again = os.path.join(runs.ROOT, runs.AGAIN)
    again = results.load(again) if store.Store(again).runs() else []
    os.makedirs(out_dir, exist_ok=True)
    pictures = None
    if not brief:
        paper = {name: [(cell, target) for target in targets(f"{name}.csv") if (cell := find(cells, target))]
                 for name, find in (("fig8", fig8_cell), ("fig12", fig12_cell))}
        pictures = plots.draw(cells, out_dir, paper)
        os.makedirs(os.path.join(out_dir, "flent"), exist_ok=True)
        for result in (r for c in cells for r in c.runs):
            flentfile.write(result, os.path.join(out_dir, "flent"))
    path = os.path.join(out_dir, "report.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(cells, pictures, again))
    print(f"report: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results", help="directory of results")
    parser.add_argument("out", help="directory for report.md and the pictures")
    parser.add_argument("--brief", action="store_true", help="the tables only, without pictures and files for flent")
    args = parser.parse_args()
    try:
        main(args.results, args.out, args.brief)
    except (results.StoreError, OSError) as error:
        sys.exit(f"report: {error}")
