# SPDX-License-Identifier: GPL-2.0-only
"""Read the kept results of runs: what report.py, plots.py and flentfile.py stand on.

Where they are is store.py's matter, what is in them measure.py's. The runs of one cell that differ only in the seed
are one Cell, and a Value is a figure of a cell over its seeds. Delays are in milliseconds, rates in Mbit/s on the wire,
shares in per cent. A result that cannot be read is a StoreError that names the file and says what to do.
"""

import csv
import dataclasses
import math
import os
import statistics

import measure
import numpy as np
import scenario
import store
from store import StoreError

L4S = ("l4s", "ect1")


def options(job):
    """The options of a job's qdisc, {word: value}, both text, of words that come in pairs after its name."""
    words = job["qdisc"].split()[1:]
    return dict(zip(words[::2], words[1::2]))


@dataclasses.dataclass(frozen=True)
class Value:
    """A figure over the seeds of a cell: mean, least, greatest, how many have it (1 or more), and how many do not."""

    mean: float
    least: float
    most: float
    seeds: int
    lacking: int = 0


class Result:
    """One run: its job, its kept results, and meta.json."""

    def __init__(self, path, meta):
        """Read a run's directory; StoreError if a file is missing or not what it should be."""
        self.path, self.meta, self._tables = path, meta, {}
        self.job = store.read_json(os.path.join(path, "job.json"))
        self.summary = store.read_json(os.path.join(path, "summary.json"))
        name = "job.json"
        try:
            self.rate_mbit = scenario.mbit_of(self.job["rate"])
            self.seconds_measured, self.warmup = float(self.job["seconds"]), float(self.job["warmup"])
            groups = [(g["name"], g["kind"], g["ecn"], g["count"], g["rtt_ms"])[0] for g in self.job["groups"]]
            name = "summary.json"
            for group in groups:
                for key in ("packets", "dropped", "delay_ms", "mbit", "mbit_per_flow", "window_bytes"):
                    self.summary["groups"][group][key]
            self.summary["all"]["utilization_pct"]["mean"]
        except (KeyError, TypeError, ValueError, scenario.ScenarioError) as error:
            raise self.damaged(name, error) from None

    def damaged(self, name, error):
        """StoreError for one of the run's files."""
        return StoreError(f"{os.path.join(self.path, name)} is damaged ({error!r}); remove its directory and "
                          "run it again")

    def table(self, name):
        """Rows of a CSV of the run, as {column: text}; empty if there is no such file."""
        if name not in self._tables:
            path = os.path.join(self.path, name)
            rows = []
            if os.path.exists(path):
                with open(path, encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))
            if any(None in row or None in row.values() for row in rows):
                raise self.damaged(name, "a row of another length")
            self._tables[name] = rows
        return self._tables[name]

    def seconds(self, group, column):
        """A column of seconds.csv for a group or "all": [(second since the start of the run, value)]."""
        try:
            return [(float(row["second"]), float(row[column])) for row in self.table("seconds.csv")
                    if row["group"] == group and row[column] != ""]
        except (KeyError, ValueError) as error:
            raise self.damaged("seconds.csv", error) from None

    def histogram(self, *groups):
        """Rising [(ms, packets)] of groups together: upper edges of histogram.csv's buckets and what is in each."""
        found = {}
        try:
            for row in self.table("histogram.csv"):
                if row["group"] in groups:
                    edge = float(row["delay_us_to"]) / 1e3
                    found[edge] = found.get(edge, 0) + int(row["packets"])
        except (KeyError, ValueError) as error:
            raise self.damaged("histogram.csv", error) from None
        return sorted(found.items())

    def web(self, group):
        """[(bytes, seconds to completion)] of a group's objects begun after the warm-up; infinite if it did not end."""
        try:
            return [(int(row["bytes"]), float(row["completion_s"] or math.inf)) for row in self.table("web.csv")
                    if row["group"] == group and float(row["start_s"]) >= self.warmup]
        except (KeyError, ValueError) as error:
            raise self.damaged("web.csv", error) from None

    def groups(self, kind=None, l4s=None):
        """The job's groups, of a kind ("tcp", "udp", "web") and of a class if said."""
        return [g for g in self.job["groups"] if kind in (None, g["kind"]) and l4s in (None, g["ecn"] in L4S)]

    def sender(self, letter):
        """The group of TCP flows called "A" or "B", as the papers call them; None if the run has none."""
        return next((g for g in self.groups("tcp") if g["name"] == letter), None)

    def side(self, letter):
        """Names of the groups that send as "A" or "B" does, web objects with the long flows; empty without that one."""
        like = self.sender(letter)
        return [g["name"] for g in self.groups() if like and g["kind"] != "udp"
                and (g["cc"], g["ecn"]) == (like["cc"], like["ecn"])]

    def of_class(self, l4s, what, key="mean"):
        """A figure of all L4S groups together, or of all Classic ones; None if there are none."""
        value = self.summary.get("classes", {}).get("l4s" if l4s else "classic", {}).get(what)
        return value.get(key) if isinstance(value, dict) else value

    def figure(self, group, what, key="mean"):
        """A figure of a group (name, or "all") from the summary, e.g. ("A", "delay_ms", "p99"); None if not there."""
        part = self.summary["all"] if group == "all" else self.summary["groups"].get(group, {})
        value = part.get(what)
        return value.get(key) if isinstance(value, dict) else None

    def of(self, letter, what, key="mean"):
        """A figure of sender "A" or "B"; None if there is no such sender."""
        group = self.sender(letter)
        return self.figure(group["name"], what, key) if group else None

    def rate_ratio(self):
        """Rate of an A flow over that of a B flow; None without both, or if B got nothing."""
        return self._ratio("mbit_per_flow")

    def window_ratio(self):
        """As rate_ratio(), of windows: rate * (mean queue delay + base RTT) (DualPI2 paper, appendix B)."""
        return self._ratio("window_bytes")

    def _ratio(self, what):
        a, b = ((self.summary["groups"][g["name"]].get(what) if (g := self.sender(x)) else None) for x in "AB")
        return a / b if a is not None and b else None

    def class_drop_pct(self, l4s):
        """Packets lost of all that the groups of a class sent; None if they sent nothing."""
        groups = [self.summary["groups"][g["name"]] for g in self.groups(l4s=l4s)]
        lost, left = (sum(g[k] for g in groups) for k in ("dropped", "packets"))
        return lost / (lost + left) * 100 if lost + left else None

    def since_pct(self, groups, column, start_s):
        """"marked" or "dropped" of all that groups sent from a second on, in per cent; None if they sent nothing."""
        there = [[(s, v) for g in groups for s, v in self.seconds(g["name"], name) if s >= start_s]
                 for name in (column, "packets", "dropped")]
        counted, left, lost = (sum(v for _, v in series) for series in there)
        sent = left + lost if column == "dropped" else left
        return counted / sent * 100 if sent else None

    def stat(self, when, *names):
        """A number of the qdisc's own statistics "before" or "after" the seconds measured; None if it has none such."""
        path = os.path.join(self.path, "run.json")
        found = store.read_json(path) if os.path.exists(path) else {}
        for name in (when, *names):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def counted(self, *names):
        """What a counter of the qdisc's own statistics rose by while it was measured; None if it has none such."""
        before, after = self.stat("before", *names), self.stat("after", *names)
        return None if before is None or after is None else after - before

    def packets(self):
        """(second of departure, delay in ms, number of the group) of each packet; None if sightings were not kept."""
        if not os.path.exists(os.path.join(self.path, "sightings")):
            return None
        run, came, went, _ = measure.load(self.path)
        return ((went["ns"] - np.uint64(run["start_ns"])) / 1e9, (went["ns"] - came["ns"]) / 1e6,
                went["saddr"] >> 8 & 0xff)


class Cell:
    """All seeds of one experiment, case, AQM and sender; `job` is the first seed's."""

    def __init__(self, key, runs):
        self.experiment, self.case, self.aqm, self.sender = key
        self.runs, self.one, self.job = runs, runs[0], runs[0].job

    def value(self, figure):
        """Value of figure(result) over the seeds; None if no seed has it."""
        found = [v for v in map(figure, self.runs) if v is not None]
        return Value(statistics.fmean(found), min(found), max(found), len(found), len(self.runs) - len(found)) \
            if found else None


def of_sender(found, l4s):
    """Of runs, those with an L4S sender, and those that have no L4S sender at all; all of them if it is None."""
    own, scalable = {run[:3] for run in found if run.sender == l4s}, scenario.scalable()
    return [run for run in found if l4s in (None, run.sender) or (run.sender not in scalable and run[:3] not in own)]


def load(directory, l4s=None):
    """All cells under a results directory, [Cell]; StoreError for what cannot be read, or if there is nothing.

    l4s: of the runs that differ in the L4S sender only those with this one.
    """
    cells = {}
    for run in of_sender(store.Store(directory).runs(), l4s):
        cells.setdefault(run[:4], []).append(Result(run.directory, run.meta))
    if not cells:
        raise StoreError(f"{directory} has no results; run an experiment first, or give --results another directory")
    return [Cell(key, runs) for key, runs in cells.items()]
