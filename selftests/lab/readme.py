# SPDX-License-Identifier: GPL-2.0-only
"""The README of the evaluation, made of its tables: verdicts by paper, findings, what was not reproduced, commands."""

import math
import textwrap

MOST_LINES = 120
WHERE = ("""\
[The pages](html/index.html) (package dualpi2-doc) have figures and every cell; open them in a browser. `cells/` has
a row for each run and group, `claims.csv` one for each claim. How runs are made: [LAB](../docs/LAB.md).""", "")
VERDICTS_ARE = """\
With several seeds a claim is reproduced if the 95 % interval of the mean is inside its bound, contradicted if it is
outside, else within noise. With one seed its value is judged. "direction only": the number is missed, but the effect
has the paper's sign. Of several cells the worst verdict counts. A bound is the paper's, or the project's where the
paper has none."""
REPEAT = """
## Repeat

```sh
scripts/lab.sh campaign --plan                     # steps, runs, time left
scripts/lab.sh campaign                            # what is not published yet; continues after an interruption
scripts/lab.sh campaign --experiment fig8 --sender prague --seeds 1 --again    # what is published, too
scripts/lab.sh publish                             # adds it to this directory
```

A cell page has the command of one run. The same seed repeats a run to the bit with the same build of kernel and module.
Differences from the papers' testbeds: [LAB](../docs/LAB.md#differences-from-the-papers-testbed).
The data in this directory are under CC0-1.0.
"""


def number(value):
    """A number of a CSV file, as text for people; "" for an empty field."""
    if value in ("", None):
        return ""
    value = float(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bound(row):
    """The bound of a row of claims.csv in words."""
    if row.get("bound_low", "") == "":
        return ""
    low, high = float(row["bound_low"]), float(row["bound_high"])
    if low in (0, -math.inf) and high != 0:
        return f"≤ {high:.3g}"
    return f"≥ {low:.3g}" if math.isinf(high) else f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def value(row):
    """The value of a row with its interval, or how few seeds it is of."""
    if row["value"] == "":
        return ""
    seeds = int(row["n"])
    if seeds == 1:
        return f"{number(row['value'])} (1 seed)"
    return f"{number(row['value'])} [{number(row['ci95_low'])} to {number(row['ci95_high'])}] ({seeds} seeds)"


def summary(rows):
    """What rows of one claim give: the value of one, or the range of several and how many hold; how many are left."""
    ran = [row for row in rows if row["value"] != ""]
    left = f"; {len(rows) - len(ran)} not run" * (len(ran) < len(rows))
    if len(ran) <= 1:
        return value(ran[0]) + left if ran else ""
    values = sorted(float(row["value"]) for row in ran)
    good = sum(row["verdict"] == "reproduced" for row in ran)
    return f"{number(values[0])} to {number(values[-1])}, {good} of {len(ran)} cells{left}"


def paper_said(claim, rows):
    """The bounds of the rows, and where they are from; the one bound, or that there are several."""
    found = list(dict.fromkeys(bound(row) for row in rows if bound(row)))
    text = found[0] if len(found) == 1 else "a value a cell" if found else ""
    return f"{text} ({claim['bound_from']})" if text else ""


def made_of(evaluation):
    """What all runs were made with, in a sentence; or that there is none yet."""
    bench = evaluation.manifest["bench"]
    if not bench:
        return "Nothing was run yet."
    return (f"All runs are of one build, begun at commit {(bench['commit'] or 'unknown')[:12]}"
            f"{' with uncommitted changes' * bool(bench['dirty'])}: module `{bench['dualpi2']}`, method "
            f"`{bench['method']}`, kernel `{bench['kernel']}`.")


def counts(evaluation, paper):
    """{verdict: number of claims} of a paper."""
    found = [evaluation.worst(evaluation.main(claim)) for claim in evaluation.claims if claim["paper"] == paper]
    return {verdict: found.count(verdict) for verdict in evaluation.verdicts}


def finding(evaluation, claim):
    """A sentence on a claim: what the paper says, what was found with what, and the verdict."""
    rows = evaluation.main(claim)
    text = f"{claim['words']} ({evaluation.papers[claim['paper']]['name']}, {claim['place']})"
    if not (found := summary(rows)):
        return f"{text}: {evaluation.worst(rows)}."
    return (f"{text}: **{evaluation.worst(rows)}**. {evaluation.called(claim)}: {found}, bound "
            f"{paper_said(claim, rows)}; {' with '.join(named(rows))}.")


def findings(evaluation):
    """The claims that are findings, in their order."""
    return sorted((claim for claim in evaluation.claims if claim.get("finding")), key=lambda claim: claim["finding"])


def drawing_file(claim):
    """The name of the drawing of a finding, below evaluation/img."""
    return f"{claim['id']}.svg"


def done(evaluation):
    """How much of the campaign was run, in a sentence."""
    runs = sum(row["group"] == "all" for row in evaluation.cells)
    return (f"What {len(evaluation.papers)} papers claim on AQMs for L4S, and what this project measured of it: {runs} "
            f"of {len(evaluation.plan.planned)} planned runs.")


def named(rows):
    """The AQMs, and the senders, of rows: [text, text]; empty if there are none."""
    return [", ".join(found) for key in ("aqm", "sender")
            if (found := list(dict.fromkeys(row[key] for row in rows if row.get(key))))]


def readme(evaluation, drawings):
    """The whole page; drawings: the names of those that there are."""
    minutes = sum(step["wall_minutes"] for step in evaluation.manifest["steps"])
    shown = evaluation.verdicts
    lines = [
        "<!-- Made by `scripts/lab.sh publish`; do not edit. -->", "# Evaluation", "",
        f"{done(evaluation)} They took {minutes:.0f} minutes of wall clock. {made_of(evaluation)}", *WHERE,
        "| paper | " + " | ".join(shown) + " |", "|---|" + "---|" * len(shown)]
    for name, paper in evaluation.papers.items():
        found = counts(evaluation, name)
        lines.append(f"| [{paper['name']}](html/paper-{name}.html): {paper['title']} | " +
                     " | ".join(str(found[v]) for v in shown) + " |")
    lines += ["", VERDICTS_ARE, "", "## Findings", ""]
    for n, claim in enumerate(findings(evaluation), 1):
        lines.append(f"{n}. {finding(evaluation, claim)}")
        if drawing_file(claim) in drawings:
            lines += ["", f"   ![{claim['words']}](img/{drawing_file(claim)})", ""]
    lines += ["", "## Other claims", "",
              "[All claims](html/claims.html), with other senders and unsupported ones. Those not reproduced:", "",
              "| claim | place | AQM, sender | value | bound (of) | verdict |", "|---|---|---|---|---|---|"]
    named_only = {"reproduced": [], "not run": []}
    for claim in evaluation.claims:
        if "unsupported" in claim or claim["finding"]:
            continue
        rows = evaluation.main(claim)
        verdict = evaluation.worst(rows)
        if verdict in named_only:
            named_only[verdict].append(claim["id"])
            continue
        verdict = f"**{verdict}**" if verdict == "contradicted" else verdict
        lines.append(f"| {claim['id']}: {claim['words']} | {claim['place']} | {'; '.join(named(rows))} | "
                     f"{summary(rows)} | {paper_said(claim, rows)} | {verdict} |")
    for verdict, found in named_only.items():
        if found:
            lines += ["", *textwrap.wrap(f"{verdict.capitalize()}: {', '.join(found)}.", 120, break_on_hyphens=False)]
    return "\n".join([*lines, REPEAT])
