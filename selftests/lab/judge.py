# SPDX-License-Identifier: GPL-2.0-only
"""Values against bounds: what a check and a row of the report are, and the figures of a result.

The papers' numbers are in targets/. A bound that several parts of the report use stands here once.
"""

import csv
import dataclasses
import math
import os

import plots
import results

HERE = os.path.dirname(os.path.abspath(__file__))
INF = math.inf

OURS, IN_TREE = plots.OURS, "dualpi2-in-tree"

WITHIN = 0.20               # rate ratio, and the rows of PIE and FQ-CoDel, of the paper's
SHARE_POINTS = 3            # UDP's share of the link
COUPLING_WITHIN = 0.03      # L mark against 2 sqrt(C drop)
DROPS_WITHIN = 0.10         # drops of both classes in overload
OVERLOAD_PCT = 25           # Classic drop from which on it is overload: 100 % / k^2 with k = 2


@dataclasses.dataclass
class Check:
    """A value against its bounds, both included; `value` None: the run gave none. `because`: why a miss may be."""

    what: str
    value: results.Value | None
    least: float = -INF
    most: float = INF
    paper: float | None = None
    step: float = 0             # a paper's figure stands for all up to this much more
    judged: bool = True
    because: str = ""

    def verdict(self):
        """"reached" or "missed"; "value" if there is nothing to reach."""
        if not self.judged:
            return "value"
        good = self.value and not self.value.lacking and self.least <= self.value.mean <= self.most
        return "reached" if good else "missed"

    def why(self):
        """By how much it is missed, and what the seeds and the paper's own resolution say of it; "" if it is not."""
        if self.verdict() != "missed":
            return ""
        if not self.value:
            return f"{self.what}: the run gave none"
        if self.value.lacking:
            return f"{self.what}: no figure in {self.value.lacking} of {self.value.lacking + self.value.seeds} seeds"
        mean = self.value.mean
        bound = self.most if mean > self.most else self.least
        text = f"{self.what} {mean:.4g}, to reach {'≤' if mean > self.most else '≥'} {bound:.4g}"
        if bound:
            off = (mean / bound - 1) * 100
            text += f" ({off:+.0f} %)" if abs(off) >= 10 else f" ({off:+.2g} %)"
        if 0 < mean - self.most <= self.step:
            text += ", less than a step of the paper's scale"
        if any(self.least <= v <= self.most for v in (self.value.least, self.value.most)):
            text += ", reached by some seeds"
        return text + (f" ({self.because})" if self.because else "")


@dataclasses.dataclass
class Row:
    """A line of the report: what it is of, and its checks; None: not run."""

    label: list
    checks: list | None
    cells: list = ()

    def verdict(self):
        if self.checks is None:
            return "not run"
        found = {c.verdict() for c in self.checks}
        return next((v for v in ("missed", "reached", "value") if v in found), "not run")

    def why(self):
        return "; ".join(filter(None, (c.why() for c in self.checks or [])))


# Figures of a result, in the unit that the name ends in

def a_mean_ms(result):
    """Mean queue delay of A's packets in ms; as with all of these, None if the run has none."""
    return result.of("A", "delay_ms")


def a_p99_ms(result):
    """99th percentile of A's queue delay in ms."""
    return result.of("A", "delay_ms", "p99")


def l_p99_ms(result):
    """99th percentile of the queue delay in ms of all L4S packets, web objects' too."""
    return result.of_class(True, "delay_ms", "p99")


def b_mean_ms(result):
    """Mean queue delay of B's packets in ms."""
    return result.of("B", "delay_ms")


def b_p99_ms(result):
    """99th percentile of B's queue delay in ms."""
    return result.of("B", "delay_ms", "p99")


def utilization_pct(result):
    """Mean of the seconds' utilization in per cent of the link."""
    return result.figure("all", "utilization_pct")


rate_ratio = results.Result.rate_ratio


def classic_drop_pct(result):
    """Packets lost of all of the Classic groups in per cent."""
    return result.class_drop_pct(False)


def targets(name):
    """Rows of targets/NAME as {column: text}; numbers are the caller's to make."""
    with open(os.path.join(HERE, "targets", name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def shown(value, digits=3):
    """"1.23", or with several seeds "1.23 [1.20 to 1.25]"; "–" for None."""
    if value is None:
        return "–"
    text = f"{value.mean:.{digits}f}"
    if value.seeds > 1:
        text += f" [{value.least:.{digits}f} to {value.most:.{digits}f}]"
    return text + f" (none in {value.lacking} of {value.lacking + value.seeds})" * bool(value.lacking)


def cell_text(check, digits):
    """Ours / the paper's, ours in bold where it misses its bound."""
    ours = shown(check.value, digits)
    if check.verdict() == "missed":
        ours = f"**{ours}**"
    return ours if check.paper is None else f"{ours} / {check.paper:.{digits}f}"


def markdown(head, rows):
    """A table of Markdown; rows are lists of text."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def step_ms(ms):
    """Resolution of the paper's delays at a delay: the qdisc there kept 7 bits of a float in units of 32.768 us."""
    return 0.032768 * 2 ** max(0, math.floor(math.log2(max(ms, 1e-9) / 4.194304)))


def ratio_bounds(paper):
    """A rate ratio is good within 20 % of the paper's, or if it is closer to 1 on a scale of ratios."""
    away = max(paper, 1 / paper)
    return min((1 - WITHIN) * paper, 1 / away), max((1 + WITHIN) * paper, away)


# Cells of the results

def ours_with(cells, experiment=None):
    """Our cells of one experiment, or of all: but for the smoke runs, too short to prove anything, and bursts."""
    return [c for c in cells if c.aqm == OURS and experiment in (None, c.experiment)
            and c.experiment not in ("smoke", "bursts")]


def named(cell):
    """How a cell is called in reasons."""
    return f"{cell.experiment} {cell.case} {cell.aqm}"


def of(experiment, wanted=lambda cell: True):
    """What picks the cells of one experiment that are wanted, for for_prague()."""
    return lambda cells: [c for c in cells if c.experiment == experiment and wanted(c)]


def flows_of(a, b):
    """Whether a cell or a result has these numbers of flows, for of()."""
    return lambda one: [g["count"] for g in one.job["groups"]] == [a, b]


def by_case(cells, experiment):
    """{case: {aqm: cell}} of one experiment, in the order of the results."""
    found = {}
    for cell in cells:
        if cell.experiment == experiment:
            found.setdefault(cell.case, {})[cell.aqm] = cell
    return dict(sorted(found.items(), key=lambda item: (next(iter(item[1].values())).one.rate_mbit, item[0])))


def over_value(value, other):
    """The mean of a Value over that of another one, as a Value; None without both."""
    return results.Value(*(value.mean / other.mean,) * 3, 1) if value and other and other.mean else None
