# SPDX-License-Identifier: GPL-2.0-only
"""The companions beside the other AQMs, as Markdown: one table over all, every case. claims.py judges them.

A share is the rate of the flows of a class over their part of the link, all flows alike: 1 is fair.
"""

import re
import statistics

import judge

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


def by_numbers(cell):
    """To sort cells by, those with greater numbers in the case's name later."""
    return [(float(part), "") if re.fullmatch(r"[\d.]+", part) else (-1, part)
            for part in re.split(r"(\d+(?:\.\d+)?)", cell.case)]


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
    parts.append("## All AQMs\n\nMeans over the cases of an experiment, and their range.")
    table = one_table(cells)
    parts.append(judge.markdown(["experiment", "AQM", "cases", *head], table) if table else "Not run.")
    if table:
        parts += ["## Every case", judge.markdown(["experiment", "case", "AQM", *head, "share of each group"],
                                                   case_table(cells))]
    return "\n\n".join(parts) + "\n"
