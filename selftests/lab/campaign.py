# SPDX-License-Identifier: GPL-2.0-only
"""The campaign: which runs evaluation/campaign.toml plans, in which order, and the one build that makes them all.

Seed 1 of every step comes before seed 2 of any, so that whenever it stops, all tables are whole.
"""

import fnmatch
import functools
import os
import typing

import runs
import scenario
import store

EVALUATION = os.path.join(runs.ROOT, "evaluation")
RESULTS = os.path.join(runs.BUILD, "lab", "campaign")
BENCH = "bench.json"  # in the results: the build of all runs
FILTERS = {"experiment": "experiments", "case": "cases", "aqm": "AQMs", "sender": "senders"}

NAMES = ("a list of names", lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v))
STEP = {"title": scenario.TEXT, "seeds": scenario.POSITIVE, "runs": scenario.TABLES}
RUNS = {"experiments": scenario.NAMES, "cases": NAMES, "aqms": NAMES, "senders": NAMES, "seconds": scenario.COUNT,
        "seeds": scenario.COUNT}
# Of a table of runs: all cases, the experiment's own AQMs, sender and length, and the step's seeds.
DEFAULTS = {"cases": ["*"], "aqms": [], "senders": [], "seconds": 0, "seeds": 0}


class Planned(typing.NamedTuple):
    """A run of the campaign: the number of its step, its job, and for lab.execute() the rest."""

    step: int
    job: dict
    keep: bool
    options: str

    def words(self):
        """What the filters of the command line compare, by their names."""
        return {key: self.job[key] for key in ("experiment", "case", "aqm")} | {"sender": store.sender(self.job)}


def options(l4s, seconds):
    """The options of `lab run` that repeat a job with another L4S sender or of another length."""
    return f" --l4s {l4s}" * bool(l4s) + f" --seconds {seconds}" * bool(seconds)


def numbers(text):
    """{1, 3, 4} of "1,3-4"."""
    found = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def matches(patterns, word):
    """Whether a word is one that the patterns, separated by commas, mean; None means all."""
    return patterns is None or any(fnmatch.fnmatchcase(word, p) for p in patterns.split(","))


class Campaign:
    """The steps of campaign.toml, read and checked."""

    def __init__(self, directory=EVALUATION):
        """Read DIRECTORY/campaign.toml; ScenarioError says what is wrong with it."""
        where = "campaign.toml"
        table = scenario.read(os.path.join(directory, where))
        scenario.check(table, {"step": scenario.TABLES}, where)
        self.steps = table["step"]
        for number, step in enumerate(self.steps, 1):
            scenario.check(step, STEP, f"{where}: step {number}")
            step["runs"] = [DEFAULTS | entry for entry in step["runs"]]
            for entry in step["runs"]:
                scenario.check(entry, RUNS, f"{where}: step {number}: runs")

    @functools.cached_property
    def planned(self):
        """All runs in their order, [Planned]; a run that two steps have is of the first."""
        found = {}
        for number, step in enumerate(self.steps, 1):
            for entry in step["runs"]:
                for one in self._of_entry(number, entry, range(1, (entry["seeds"] or step["seeds"]) + 1)):
                    first = found.setdefault(store.label(one.job), one)
                    if first.job != one.job:
                        raise scenario.ScenarioError(f"campaign.toml: steps {first.step} and {number} plan "
                                                     f"{store.label(one.job)} in two ways")
        return sorted(found.values(), key=lambda p: (p.job["seed"], p.step))

    @staticmethod
    def _of_entry(number, entry, seeds):
        for name in scenario.matching(entry["experiments"], scenario.names(), "experiment"):
            for sender in entry["senders"] or [None]:
                experiment = scenario.Experiment(name, l4s_cc=sender)
                for case in entry["cases"]:
                    for job in experiment.jobs(entry["aqms"] or None, case, seeds, entry["seconds"] or None):
                        yield Planned(number, job, experiment.keep_raw, options(sender, entry["seconds"]))

    def wanted(self, steps=None, filters=None, seeds=None):
        """Those of them that are of these steps and seeds, and whose words match all filters, {name: patterns}."""
        found = [p for p in self.planned if (steps is None or p.step in steps)
                 and (seeds is None or p.job["seed"] in seeds)
                 and all(matches(patterns, p.words()[key]) for key, patterns in (filters or {}).items())]
        if not found:
            raise scenario.ScenarioError("no run of the campaign is of these steps, seeds and names")
        return found


def overview(wanted, results, published, time_left):
    """Lines for `campaign --plan`: each step, each seed, what is finished, and time_left(jobs) of the rest.

    published: labels of runs that need not be run again.
    """
    def of_rest(mine):
        return [p.job for p in mine if results.meta(p.job) is None and store.label(p.job) not in published]

    for seed in sorted({p.job["seed"] for p in wanted}):
        for step in sorted({p.step for p in wanted if p.job["seed"] == seed}):
            mine = [p for p in wanted if (p.step, p.job["seed"]) == (step, seed)]
            todo = of_rest(mine)
            yield f"seed {seed}, step {step:2}: {len(mine):4} runs, {len(mine) - len(todo):4} finished, " \
                  f"{time_left(todo):>10} left"
    todo = of_rest(wanted)
    yield f"{len(wanted)} runs, {len(wanted) - len(todo)} finished, about {time_left(todo)} left"


def pin(results, bench):
    """Keep the build of the first run for all others; StoreError if today's is another one."""
    path, now = os.path.join(results.directory, BENCH), bench.identity()
    was = store.read_json(path) if os.path.exists(path) else {"commit": bench.commit, "dirty": bench.dirty}
    changed = [key for key in now if was.get(key, now[key]) != now[key]]
    if changed:
        raise store.StoreError(
            f"{', '.join(changed)} changed since the campaign in {results.directory} began at commit "
            f"{(was['commit'] or 'unknown')[:12]}: check that out, or begin another campaign with --results DIR")
    store.write_json(path, was | now)
