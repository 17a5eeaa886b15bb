# SPDX-License-Identifier: GPL-2.0-only
"""Results of the lab on disk: EXPERIMENT/CASE/AQM/SENDER/seed-N/, one directory a finished run.

A run is made in .partial/ and renamed into its place when it is complete, so that what stands in its place is whole.
meta.json in it says what it was made of. Nothing here knows what the other files mean.
"""

import fcntl
import json
import os
import shutil
import typing

FORMAT = 2  # 1 had no SENDER in the path


class StoreError(Exception):
    """What is wrong with the results, and what to do, in one line."""


class Found(typing.NamedTuple):
    """A finished run: what its path says, its directory, and meta.json."""

    experiment: str
    case: str
    aqm: str
    sender: str
    seed: int
    directory: str
    meta: dict


def sender(job):
    """The sender that a run is about: that of the first L4S group, else of the first with TCP.

    It is a congestion control, Classic ECN before it ("ecn-cubic"), or a name of senders.toml that the job has.
    """
    having = [g for g in job["groups"] if "cc" in g]
    first = next((g for g in having if g["ecn"] == "l4s"), having[0] if having else None)
    if first is None:
        return "udp"
    return first.get("sender") or "ecn-" * (first["ecn"] == "classic") + first["cc"]


def label_of(cell, seed):
    """How a run of a cell (experiment, case, AQM, sender) is called, its path in the results too."""
    return "/".join((*cell, f"seed-{seed}"))


def label(job):
    """How the run of a job is called."""
    return label_of((job["experiment"], job["case"], job["aqm"], sender(job)), job["seed"])


def read_json(path):
    """A JSON file; StoreError if it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read ({error}); remove its directory and run it again") from None


def write_json(path, what):
    """Write a JSON file, readable for people."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(what, file, indent=1)
        file.write("\n")


def made_with(meta):
    """The module and the method that a run was made with, short: "module 0123abcd, method 4567cdef"."""
    made = meta.get("made_of", {})
    return ", ".join(f"{what} {(made.get(what) or 'none')[:8]}" for what in ("module", "method"))


def mixtures(runs, most=4):
    """A line for each experiment and AQM whose runs were not all made alike; runs as Store.runs() gives them."""
    found = {}
    for run in runs:
        found.setdefault((run.experiment, run.aqm), {}).setdefault(made_with(run.meta), []).append(
            f"{run.case}/{run.sender}/seed-{run.seed}")
    return [f"{experiment}, {aqm}: " + "; ".join(
        f"with {how} {', '.join(cells[:most])}" + f" and {len(cells) - most} more" * (len(cells) > most)
        for how, cells in ways.items()) for (experiment, aqm), ways in found.items() if len(ways) > 1]


def free_bytes(path):
    """Bytes free where path is, or will be."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


class Store:
    """A results directory."""

    def __init__(self, directory):
        """directory: where the results are, or will be."""
        self.directory = os.path.abspath(directory)
        self.partial = os.path.join(self.directory, ".partial")
        self.failed = os.path.join(self.directory, ".failed")
        self._lock = None

    def lock(self):
        """Keep other runs out until this process ends, and clear away what an interrupted one left."""
        os.makedirs(self.directory, exist_ok=True)
        # Machines must not inherit the lock; Python's files are not inherited.
        self._lock = open(os.path.join(self.directory, ".lock"), "w", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"another lab run is at work in {self.directory}; wait for it, or give --results "
                             "another directory") from None
        for name in os.listdir(self.partial) if os.path.isdir(self.partial) else ():
            # A finished run that was about to be replaced.
            place = os.path.join(self.directory, name.removesuffix(".old").replace("+", "/"))
            if name.endswith(".old") and not os.path.exists(place):
                os.rename(os.path.join(self.partial, name), place)
        shutil.rmtree(self.partial, ignore_errors=True)
        os.makedirs(self.partial)
        os.makedirs(self.failed, exist_ok=True)

    def place(self, job):
        """Where the finished run of a job is, or will be."""
        return os.path.join(self.directory, label(job))

    def begin(self, job):
        """An empty directory for a run, with job.json in it."""
        out = os.path.join(self.partial, label(job).replace("/", "+"))
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        write_json(os.path.join(out, "job.json"), job)
        return out

    def finish(self, job, out, meta):
        """Move a complete run into its place; what stood there goes, but lock() brings it back if we are killed."""
        write_json(os.path.join(out, "meta.json"), {"format": FORMAT} | meta)
        place = self.place(job)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        old = out + ".old"
        if os.path.exists(place):
            os.rename(place, old)
        os.rename(out, place)
        shutil.rmtree(old, ignore_errors=True)

    def give_up(self, job, out, log):
        """Remove an unfinished run, but keep its log. Returns where."""
        kept = os.path.join(self.failed, label(job).replace("/", "+") + ".log")
        if os.path.exists(log):
            os.replace(log, kept)
        shutil.rmtree(out, ignore_errors=True)
        return kept

    def meta(self, job):
        """meta.json of a job's finished run, None if there is none; StoreError if its format is another one."""
        path = os.path.join(self.place(job), "meta.json")
        return self._checked(path) if os.path.exists(path) else None

    def _checked(self, path):
        meta = read_json(path)
        found = meta.get("format") if isinstance(meta, dict) else None
        if found != FORMAT:
            raise StoreError(f"{os.path.dirname(path)} has format {found}, this lab reads {FORMAT}: move "
                             f"{self.directory} away or give --results another directory")
        return meta

    def runs(self):
        """All finished runs in the order of their paths, [Found]; StoreError if one is of another format."""
        found = []
        for directory, below, files in os.walk(self.directory):
            below[:] = sorted(b for b in below if not b.startswith("."))
            parts = os.path.relpath(directory, self.directory).split(os.sep)
            if len(parts) in (4, 5) and "meta.json" in files and parts[-1].removeprefix("seed-").isdigit():
                meta = self._checked(os.path.join(directory, "meta.json"))
                found.append(Found(*parts[:4], int(parts[4].removeprefix("seed-")), directory, meta))
                below.clear()
        return found
