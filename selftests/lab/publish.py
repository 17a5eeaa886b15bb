# SPDX-License-Identifier: GPL-2.0-only
"""Write evaluation/: tables of the campaign's runs, and of them alone the README and the pages.

collect() adds the results to the tables (published.py) and to manifest.json; files() makes claims.csv and the pages of
those, so that anyone who has the repository can check that they say what the tables say: problems().
"""

import csv
import fnmatch
import io
import itertools
import os
import shutil

import campaign
import claims
import pages
import published
import results
import runs
import store
from readme import readme

SERIES_POINTS = 36  # steps of 5 s for the nine phases of 20 s in vdq-phases
KEY = ("experiment", "case", "aqm", "sender", "seed", "group")
LEVELS = ("mean", "p1", "p25", "p50", "p75", "p90", "p99", "p99_9", "max")
# Of the row of the group "all", the figures and what the whole run was made of; of the others, the group.
CELLS = (*KEY, "class", "cc", "flows", "rtt_ms", "packets", "mbit", "mbit_per_flow", *(f"delay_{x}_ms" for x in LEVELS),
         "mark_pct", "drop_pct", "window_bytes", "jain", "srtt_ms", "cwnd_packets", "goodput_mbit", "util_mean",
         "util_p1", "rate_mbit", "warmup_s", "seconds",
         "module", "method", "kernel", "commit", "sightings_sha256", "job", "wall_s", "tc_line", "counters")
# Of the many counters of `tc -s`, those that say what an AQM did.
COUNTERS = {"sent", "drops", "dropped", "dropped-limit", "dropped-aqm", "dropped-overload", "ecn-mark",
            "ecn_mark", "step-mark", "marked", "marked-classic", "marked-coupled", "marked-native", "overlimit",
            "drop_overlimit"}
SERIES = (*KEY, "what", "begin_s", "step_s", "values")
FIGURES = (*KEY[:5], "figure", "value")
COLUMNS = dict(zip(published.TABLES, (CELLS, SERIES, FIGURES)))
MADE = ("html", "img")  # directories with nothing but what is made of the tables
FIRST_WORDS = 12  # of digests and commits


def text(value):
    """A field of a CSV file: numbers with some significant digits, nothing for None."""
    return "" if value is None else f"{value:.{claims.DIGITS}g}" if isinstance(value, float) else str(value)


def texts(columns, rows):
    """Rows as a CSV file has them: all columns, as text; what a row lacks is empty."""
    return [{key: text(row.get(key)) for key in columns} for row in rows]


def csv_of(columns, rows):
    """The text of a CSV file."""
    file = io.StringIO()
    out = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="raise")
    out.writeheader()
    out.writerows(rows)
    return file.getvalue()


def figures(part):
    """The columns of CELLS that measure.py gives of a group or of all."""
    found = {f"delay_{level}_ms": part.get("delay_ms", {}).get(level) for level in LEVELS}
    found |= {key: part.get(key, {}).get("mean") for key in ("mbit", "mark_pct", "drop_pct")}
    return found | {key: part.get(key) for key in ("packets", "mbit_per_flow", "window_bytes", "jain", "srtt_ms",
                                                   "cwnd_packets", "goodput_mbit")}


def counters(before, after, name=""):
    """What the qdisc's COUNTERS rose by, as words: "l4s.sent=12"; those that are in both and rose."""
    found = []
    for key in sorted(set(before or {}) & set(after or {})):
        if isinstance(after[key], dict):
            found += counters(before[key], after[key], f"{name}{key}.")
        elif (key in COUNTERS or f"{name}{key}" == "packets") and after[key] > before[key]:
            found.append(f"{name}{key}={after[key] - before[key]}")
    return found


def cell_rows(result, sender):
    """Rows of cells of one run: "all", then its groups."""
    job, meta = result.job, result.meta
    key = {k: job[k] for k in ("experiment", "case", "aqm", "seed")} | {"sender": sender}
    made = meta["made_of"]
    util = result.summary["all"]["utilization_pct"]
    yield key | figures(result.summary["all"]) | {
        "group": "all", "util_mean": util["mean"], "util_p1": util.get("p1"), "rate_mbit": result.rate_mbit,
        "warmup_s": job["warmup"], "seconds": job["seconds"], "module": made["module"], "method": made["method"],
        "kernel": made["kernel"], "commit": (meta["commit"] or "")[:FIRST_WORDS] + "+" * bool(meta["dirty"]),
        "sightings_sha256": meta["sightings_sha256"][:16], "job": published.digest(job),
        "wall_s": meta["wall_seconds"], "tc_line": meta["tc"],
        "counters": " ".join(counters(*(result.stat(when) for when in ("before", "after"))))}
    for group in job["groups"]:
        yield key | figures(result.summary["groups"][group["name"]]) | {
            "group": group["name"], "class": "l4s" if group["ecn"] in ("l4s", "ect1") else "classic",
            "cc": group.get("sender", group.get("cc", "udp")), "flows": group["count"], "rtt_ms": group["rtt_ms"]}


def series_rows(result, sender):
    """Rows of series of one run: rate and delay of each group over time, in at most SERIES_POINTS equal steps."""
    job = result.job
    key = {k: job[k] for k in ("experiment", "case", "aqm", "seed")} | {"sender": sender}
    for group in (g["name"] for g in job["groups"]):
        for what, column in (("mbit", "mbit"), ("delay_ms", "delay_mean_ms")):
            points = result.seconds(group, column)
            if not points:
                continue
            step = -(-len(points) // SERIES_POINTS)
            parts = [[v for _, v in points[n:n + step]] for n in range(0, len(points), step)]
            yield key | {"group": group, "what": what, "begin_s": points[0][0], "step_s": step,
                         "values": " ".join(f"{sum(p) / len(p):.3g}" for p in parts)}


def manifest(plan, kept, bench, cells):
    """manifest.json: the build, and of each step what was planned, done and failed, and its wall clock in minutes."""
    wall_s = {published.label(row): float(row["wall_s"]) for row in cells if row["group"] == "all"}
    logs = set(os.listdir(kept.failed)) if os.path.isdir(kept.failed) else set()
    steps = []
    for number, step in enumerate(plan.steps, 1):
        mine = [store.label(p.job) for p in plan.planned if p.step == number]
        seconds = [wall_s[label] for label in mine if label in wall_s]
        steps.append({"step": number, "title": step["title"], "planned": len(mine), "done": len(seconds),
                      "failed": sum(label.replace("/", "+") + ".log" in logs for label in mine),
                      "wall_minutes": round(sum(seconds) / 60, 1)})
    return {"bench": bench, "steps": steps}


def made(plan, said, kept):
    """The tables of the results in a store, {file: rows as text}. StoreError if a run is not as it is planned."""
    wanted = {store.label(p.job): p for p in plan.planned}
    mine = {}
    for run in kept.runs():
        if (label := store.label_of(run[:4], run.seed)) in wanted:
            if run.meta["made_of"]["job"] != wanted[label].job:
                raise store.StoreError(f"{run.directory} is not as campaign.toml plans it; `scripts/lab.sh campaign` "
                                       "runs it again")
            mine.setdefault(run[:4], []).append(results.Result(run.directory, run.meta))
    cells = [results.Cell(key, found) for key, found in mine.items()]
    rows = ([row for cell in cells for result in cell.runs for row in cell_rows(result, cell.sender)],
            [row for cell in cells for row in series_rows(cell.one, cell.sender)],
            claims.figure_rows(said, plan.planned, cells))
    return {name: texts(COLUMNS[name], found) for name, found in zip(published.TABLES, rows)}


def merged(old, new, kept):
    """Tables of two sets of runs: of `old` the runs whose labels are in kept, but for those that `new` has, too.

    Series are of one run of a cell, that of its lowest seed.
    """
    again = {published.label(row) for row in new[published.CELLS]}
    found = {name: [row for row in old[name] if published.label(row) in kept - again] + new[name]
             for name in published.TABLES}
    for rows in found.values():
        rows.sort(key=lambda row: (published.cell(row), int(row["seed"])))
    lowest = {}
    for row in found[published.SERIES]:
        lowest.setdefault(published.cell(row), row["seed"])
    found[published.SERIES] = [row for row in found[published.SERIES]
                               if row["seed"] == lowest[published.cell(row)]]
    return found


def collect(results_dir, directory, replace=False):
    """Add the campaign's runs to the tables, and write manifest.json. StoreError if they are of more than one build.

    replace: of runs of another build that are in the tables nothing stays.
    """
    plan, kept, there = campaign.Campaign(directory), store.Store(results_dir), published.Published(directory)
    _, said = claims.read(directory)
    path = os.path.join(kept.directory, campaign.BENCH)
    bench = store.read_json(path) if os.path.exists(path) else {}
    new, old = made(plan, said, kept), there.of(plan.planned, said)
    if there.jobs and (other := there.other_than(bench)):
        if not replace:
            raise store.StoreError(f"{', '.join(other)} of {len(there.jobs)} runs in {os.path.relpath(directory)} "
                                   f"differ from those in {results_dir}; --replace drops the former")
        old, there.bench = set(), {}
    tables = merged(there.tables, new, old)
    if mixed := builds(tables[published.CELLS]):
        raise store.StoreError(f"{results_dir} has runs of more than one build: {'; '.join(mixed)}")
    for name, rows in tables.items():
        path = os.path.join(directory, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        for experiment, mine in itertools.groupby(rows, lambda row: row["experiment"]):
            with open(os.path.join(path, f"{experiment}.csv"), "w", encoding="utf-8") as file:
                file.write(csv_of(COLUMNS[name], mine))
    store.write_json(os.path.join(directory, "manifest.json"),
                     manifest(plan, kept, bench | there.bench, tables[published.CELLS]))


def builds(rows):
    """Of what the rows of cells were made with more than one, as "dualpi2: 0123, 4567"; empty if all alike."""
    found = {}
    for row in rows:
        if row["group"] != "all":
            continue
        words = row["module"].split()
        named = dict(zip(words[::2], words[1::2])) if len(words) > 1 else {"dualpi2": words[0]} if words else {}
        for what, digest in (*named.items(), ("method", row["method"]), ("kernel", row["kernel"])):
            found.setdefault(what, {})[digest] = None
    return [f"{what}: {', '.join(digests)}" for what, digests in found.items() if len(digests) > 1]


class Evaluation:
    """What is in evaluation/ and is not made of it: the tables, the manifest, claims.toml and campaign.toml."""

    def __init__(self, directory=campaign.EVALUATION):
        self.papers, self.claims = claims.read(directory)
        self.verdicts = claims.VERDICTS
        self.plan = campaign.Campaign(directory)
        self.manifest = store.read_json(os.path.join(directory, "manifest.json"))
        self.cells, self.series, figures = published.Published(directory).tables.values()
        self.series_of = {}
        for row in self.series:
            self.series_of.setdefault(published.label(row), []).append(row)
        self.flows = {(published.label(row), row["group"]): int(row["flows"] or 1) for row in self.cells}
        self.mixed = builds(self.cells)
        wall_s = {}
        for row in (row for row in self.cells if row["group"] == "all"):
            cell = published.cell(row)
            wall_s[cell] = wall_s.get(cell, 0) + float(row["wall_s"])
        self.rows = texts(claims.COLUMNS, claims.table(self.claims, self.plan.planned, claims.by_cell(figures), wall_s))
        self.planned = {store.label(p.job): p for p in self.plan.planned}

    def command(self, row):
        """The command that repeats the run of a row of cells."""
        run = self.planned[published.label(row)]
        return runs.repeating(run.job, run.options, run.keep)

    @staticmethod
    def called(claim):
        """What the value of a claim is, in words."""
        return claims.called(claim)

    def groups(self, claim):
        """{(aqm, sender): [row of claims.csv]} of a claim, in the file's order."""
        found = {}
        for row in self.rows:
            if row["id"] == claim["id"]:
                found.setdefault((row["aqm"], row["sender"]), []).append(row)
        return found

    def worst(self, rows):
        """The verdict of several rows: that of the worst one."""
        return claims.worst(row["verdict"] for row in rows)

    def main(self, claim):
        """The rows by which a claim is judged: of the first AQM and sender that it names; others stand beside them."""
        found = self.groups(claim)
        if "aqms" not in claim:
            return next(iter(found.values()))
        mine = [row for (aqm, sender), rows in found.items() for row in rows
                if fnmatch.fnmatchcase(aqm, claim["aqms"][0])
                and fnmatch.fnmatchcase(sender, claim["senders"][0])]
        return mine or [{"verdict": "not run", "value": ""}]


def files(evaluation):
    """{path below evaluation/: text} of all that is made of the tables."""
    drawings = pages.drawings(evaluation)
    return {"claims.csv": csv_of(claims.COLUMNS, evaluation.rows), "README.md": readme(evaluation, drawings),
            **{f"html/{name}": page for name, page in pages.pages(evaluation).items()},
            **{f"img/{name}": drawing for name, drawing in drawings.items()}}


def problems(directory=campaign.EVALUATION):
    """What is wrong with evaluation/, a line each: mixed builds, tables that lack a claim, pages not of the tables."""
    evaluation = Evaluation(directory)
    found = [f"more than one build: {line}" for line in evaluation.mixed]
    bench = evaluation.manifest["bench"]
    found += [f"cells: a run of another {what} than manifest.json's" for what in ("method", "kernel")
              if {row[what] for row in evaluation.cells if row["group"] == "all"} - {bench.get(what)}]
    wanted = files(evaluation)
    there = {"README.md", "claims.csv"} | {f"{made}/{name}" for made in MADE
                                           if os.path.isdir(os.path.join(directory, made))
                                           for name in os.listdir(os.path.join(directory, made))}
    found += [f"{path} is not made by `scripts/lab.sh publish`" for path in sorted(there - set(wanted))]
    for path, content in wanted.items():
        try:
            with open(os.path.join(directory, path), encoding="utf-8") as file:
                same = file.read() == content
        except FileNotFoundError:
            same = False
        if not same:
            found.append(f"{path} is not what `scripts/lab.sh publish` makes of the tables")
    return found


def write(results_dir, directory=campaign.EVALUATION, replace=False):
    """Add results to evaluation/, or if there are none make its pages of its tables; returns lines on it."""
    if store.Store(results_dir).runs() or not os.path.exists(os.path.join(directory, "manifest.json")):
        collect(results_dir, directory, replace)
    evaluation = Evaluation(directory)
    for made in (os.path.join(directory, name) for name in MADE):
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
    wanted = files(evaluation)
    for path, content in wanted.items():
        with open(os.path.join(directory, path), "w", encoding="utf-8") as file:
            file.write(content)
    done = sum(row["group"] == "all" for row in evaluation.cells)
    where = os.path.relpath(directory, runs.ROOT)
    return [f"{done} of {len(evaluation.plan.planned)} runs, {len(wanted)} files in {where}"]

