# SPDX-License-Identifier: GPL-2.0-only
"""The companions beside the other AQMs, as Markdown: what was to be shown of them, one table over all, every case.

Bounds are those that the project set itself beforehand; they stand here once each. A share is the rate of the flows of
a class over their part of the link, all flows alike: 1 is fair. Checks and tables are the report's.
"""

import math
import re
import statistics

import judge
import report
import statements
import results

PEAKS = 2                       # peak of PIE over that of PI2, and PI2 does not rise above 100 ms again
BALANCE = (0.7, 1.4)            # CUBIC : DCTCP under PI2
SHARE_WITHIN = 0.20             # of a class of so many flows or more:
SHARE_FLOWS = 10
GOLD_SILVER, GOLD_WITHIN = 4, 0.20
SILVER_MBIT = 10                # from here on
PREFIXES = ("vdq-", "csaqm-")
# In this order in the tables.
AQMS = ("dualpi2", "pi2", "step", "step-dualpi2", "csaqm", "vdq_csaqm", "vdq_csaqm-1ms", "pie", "fq_codel", "cake")


def share(result, names):
    """Mean rate of the flows of these groups, over what each flow would have of the link if all had the same."""
    flows = sum(g["count"] for g in result.job["groups"])
    mine = [g for g in result.job["groups"] if g["name"] in names]
    rate = sum(result.summary["groups"][g["name"]]["mbit_per_flow"] * g["count"] for g in mine)
    return rate / sum(g["count"] for g in mine) / (result.rate_mbit / flows) if mine else None


def class_share(l4s):
    """share() of a class, as a figure of a result; None if there is no such flow."""
    return lambda result: share(result, [g["name"] for g in result.groups("tcp", l4s)])


def jain(result):
    """Jain's index of all flows."""
    return result.summary["all"].get("jain")


def of(cells, experiment, aqm):
    """The cells of an experiment and an AQM by case, 2 before 10."""
    return {c.case: c for c in sorted(cells, key=by_numbers) if (c.experiment, c.aqm) == (experiment, aqm)}


def by_numbers(cell):
    """To sort cells by, those with greater numbers in the case's name later."""
    return [(float(part), "") if re.fullmatch(r"[\d.]+", part) else (-1, part)
            for part in re.split(r"(\d+(?:\.\d+)?)", cell.case)]


def peaks(cells):
    """PI2 paper, Fig. 12, and with other numbers of flows, which are not judged."""
    for experiment in ("pi2-fig12", "pi2-fig12-flows"):
        judged, pie = experiment == "pi2-fig12", of(cells, experiment, "pie")
        for case, cell in of(cells, experiment, "pi2").items():
            one, other = (c and c.value(statements.peak_ms) for c in (cell, pie.get(case)))
            if other:
                yield judge.Row([f"Fig. 12, {case}: peak"], [
                    judge.Check("PIE's peak over PI2's", ratio(other, one), PEAKS, paper=510 / 250, judged=judged),
                    judge.Check("further peaks of PI2", cell.value(statements.further_peaks), most=0, judged=judged)],
                    [f"{other.mean:.0f} : {one.mean:.0f} ms", "510 : 250"])


def ratio(over, under):
    """One Value over another, by their means; None without one of them."""
    if not over or not under or not under.mean:
        return None
    mean = over.mean / under.mean
    return results.Value(mean, mean, mean, min(over.seeds, under.seeds))


def balance(result):
    """Rate of a B flow over that of an A flow: CUBIC : DCTCP."""
    found = result.rate_ratio()
    return 1 / found if found else None


def balances(cells):
    """PI2 paper, Fig. 15: PIE has no bound."""
    for aqm, paper in (("pi2", "about 1"), ("pie", "about 0.1")):
        for a in ("dctcp", "cubic"):
            mine = [c for case, c in of(cells, "pi2-fig15", aqm).items() if case.startswith(a + "-")]
            found = {c.case: v for c in mine if (v := c.value(balance))}
            if not found:
                continue
            judged = (aqm, a) == ("pi2", "dctcp")
            yield judge.Row([f"Fig. 15, {aqm}: CUBIC : {'DCTCP' if a == 'dctcp' else 'ECN-CUBIC'}"], [
                judge.Check(case, value, *BALANCE, judged=judged) for case, value in found.items()],
                [f"{geometric(v.mean for v in found.values()):.2f}, {min(v.mean for v in found.values()):.2f} to "
                 f"{max(v.mean for v in found.values()):.2f} in {len(found)} cells",
                 paper if a == "dctcp" else "about 1"])


def geometric(found):
    """Geometric mean of values above 0."""
    return math.exp(statistics.fmean(math.log(v) for v in found))


def shares(cells):
    """VDQ-CSAQM paper, Fig. 3; dualpi2 stands beside it."""
    for aqm in ("vdq_csaqm", "vdq_csaqm-1ms", "dualpi2"):
        for case, cell in of(cells, "vdq-equal", aqm).items():
            checks = []
            for name, l4s in (("L4S", True), ("Classic", False)):
                if flows := sum(g["count"] for g in cell.one.groups("tcp", l4s)):
                    checks.append(judge.Check(
                        f"share of {name}", cell.value(class_share(l4s)), 1 - SHARE_WITHIN, 1 + SHARE_WITHIN,
                        judged=aqm == "vdq_csaqm" and flows >= SHARE_FLOWS))
            yield judge.Row([f"Fig. 3, {aqm}, {case}: shares"], checks,
                             [", ".join(f"{c.what[9:]} {judge.shown(c.value, 2)}" for c in checks), "near 1"])


def fairer(cells):
    """VDQ-CSAQM paper, Fig. 4: Jain's index, dualpi2's the bound."""
    peers = of(cells, "vdq-rtt", "dualpi2")
    for case, cell in of(cells, "vdq-rtt", "vdq_csaqm").items():
        mine, other = (c and c.value(jain) for c in (cell, peers.get(case)))
        if other:
            yield judge.Row([f"Fig. 4, {case}: Jain's index"],
                             [judge.Check("that of vdq_csaqm", mine, math.nextafter(other.mean, 2))],
                             [f"{mine.mean:.3f}, dualpi2 {other.mean:.3f}", "higher"])


def policies(cells):
    """VDQ-CSAQM paper, Fig. 5: Gold over Silver in each class, where Silver has its 10 Mbit/s."""
    for aqm in ("vdq_csaqm", "vdq_csaqm-1ms", "csaqm"):
        for case, cell in of(cells, "vdq-policy", aqm).items():
            checks = []
            for name in "AB":
                gold, silver = (cell.value(lambda r, g=f"{name}-{kind}": r.summary["groups"][g]["mbit_per_flow"])
                                for kind in ("gold", "silver"))
                checks.append(judge.Check(
                    f"{'L4S' if name == 'A' else 'Classic'} Gold : Silver", ratio(gold, silver),
                    GOLD_SILVER * (1 - GOLD_WITHIN), GOLD_SILVER * (1 + GOLD_WITHIN),
                    judged=aqm == "vdq_csaqm" and silver.mean >= SILVER_MBIT))
            yield judge.Row([f"Fig. 5, {aqm}, {case}"], checks, [
                ", ".join(f"{c.what} {judge.shown(c.value, 2)}" for c in checks), "4"])


def target_rows(cells):
    """A Row for each thing to be shown of which there are runs."""
    return [row for function in (peaks, balances, shares, fairer, policies) for row in function(cells)]


COLUMNS = (  # name, figure, digits
    ("utilization %", judge.utilization_pct, 1),
    ("Jain", jain, 3),
    ("share L4S", class_share(True), 2),
    ("share Classic", class_share(False), 2),
    ("L4S mean ms", lambda r: r.of_class(True, "delay_ms"), 2),
    ("P99", lambda r: r.of_class(True, "delay_ms", "p99"), 2),
    ("Classic mean ms", lambda r: r.of_class(False, "delay_ms"), 2),
    ("P99", lambda r: r.of_class(False, "delay_ms", "p99"), 2),
)


def compared(cells):
    """The cells that the tables are of, by experiment and AQM."""
    found = {}
    for cell in sorted(cells, key=by_numbers):
        if cell.experiment.startswith(PREFIXES):
            found.setdefault((cell.experiment, cell.aqm), []).append(cell)
    order = {aqm: n for n, aqm in enumerate(AQMS)}
    return dict(sorted(found.items(), key=lambda item: (item[0][0], order.get(item[0][1], len(order)))))


def over_cases(cells, figure, digits):
    """Mean of a figure over cells and its range; "–" if none has it."""
    found = [v.mean for c in cells if (v := c.value(figure)) is not None]
    if not found:
        return "–"
    mean, *edges = (f"{v:.{digits}f}" for v in (statistics.fmean(found), min(found), max(found)))
    return mean + (f" [{edges[0]} to {edges[1]}]" if len(found) > 1 else "")


def one_table(cells):
    """A line for each experiment and AQM, means and ranges over its cases, [[text]]."""
    return [[experiment, aqm, str(len(mine)), *(over_cases(mine, f, d) for _, f, d in COLUMNS)]
            for (experiment, aqm), mine in compared(cells).items()]


def case_table(cells):
    """A line for each case and AQM, with the share of each group, [[text]]."""
    return [[experiment, cell.case, aqm, *(judge.shown(cell.value(f), d) for _, f, d in COLUMNS), ", ".join(
        f"{g['name']} {judge.shown(cell.value(lambda r, n=g['name']: share(r, [n])), 2)}" for g in cell.job["groups"])]
            for (experiment, aqm), mine in compared(cells).items() for cell in mine]


def page(cells):
    """The whole as Markdown."""
    head = [name for name, *_ in COLUMNS]
    parts = ["# The companions beside the other AQMs",
             "Shares are of what a flow has if all have the same part of the link; delays of the packets of a class. "
             "A case is a phase of the paper's."]
    rows = target_rows(cells)
    parts.append("## To be shown")
    parts.append(report.verdict_table(["", "here", "the paper's", "", "why"], rows) if rows else "Not run.")
    parts.append("## All AQMs\n\nMeans over the cases of an experiment, and their range.")
    table = one_table(cells)
    parts.append(judge.markdown(["experiment", "AQM", "cases", *head], table) if table else "Not run.")
    if table:
        parts += ["## Every case", judge.markdown(["experiment", "case", "AQM", *head, "share of each group"],
                                                   case_table(cells))]
    return "\n\n".join(parts) + "\n"
