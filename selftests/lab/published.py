# SPDX-License-Identifier: GPL-2.0-only
"""The tables of runs in evaluation/: which runs they have, and whether a campaign may go on from them.

The results of a run take megabytes and stay on the machine that made them; its rows stay here. So a campaign may be run
in parts, on several machines, as long as the build is the same.
"""

import csv
import glob
import hashlib
import json
import os

import claims
import store

# Each is a directory with a file for each experiment, so that a file and its changes can be read.
CELLS, SERIES, FIGURES = TABLES = ("cells", "series", "figures")


def read_csv(path):
    """Rows of a CSV file as {column: text}."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_table(directory):
    """Rows of all files of a table, by experiment; none if there is no such directory."""
    paths = sorted(glob.glob(f"{glob.escape(directory)}/*.csv"), key=lambda path: path.removesuffix(".csv"))
    return [row for path in paths for row in read_csv(path)]


def cell(row):
    """The cell that a row of a table is of, as claims.cells_of() has it."""
    return tuple(row[key] for key in claims.WORDS)


def label(row):
    """The run that a row of a table is of, as store.label() calls it."""
    return store.label_of(cell(row), row["seed"])


def digest(job):
    """The column "job" of cells: 16 hexadecimal digits of all that a job says."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:16]


class Published:
    """What is in DIRECTORY, which may have no tables yet."""

    def __init__(self, directory):
        self.tables = {name: read_table(os.path.join(directory, name)) for name in TABLES}
        path = os.path.join(directory, "manifest.json")
        self.bench = store.read_json(path)["bench"] if os.path.exists(path) else {}
        self.jobs = {label(row): row.get("job") for row in self.tables[CELLS] if row["group"] == "all"}

    def other_than(self, bench):
        """What of a build, {what: digest}, is not as it was for these runs: ["method"]; empty for the same build."""
        return sorted(key for key in self.bench.keys() & bench.keys() - {"commit", "dirty"}
                      if self.bench[key] != bench[key])

    def of(self, planned, said):
        """Labels of those of the planned runs that are here as they are planned, with all figures that claims need."""
        wanted, there = claims.figures_wanted(said, planned), {}
        for row in self.tables[FIGURES]:
            there.setdefault(label(row), set()).add(row["figure"])
        return {name for p in planned if self.jobs.get(name := store.label(p.job)) == digest(p.job)
                and wanted.get(tuple(p.words().values()), set()) <= there.get(name, set())}
