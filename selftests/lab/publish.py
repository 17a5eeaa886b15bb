# SPDX-License-Identifier: GPL-2.0-only
"""Write evaluation/: tables of the campaign's runs, and of them alone the README and the pages.

collect() makes manifest.json and the CSV files of the results; files() makes the rest of those, so that anyone who has
the repository can check that the pages say what the tables say: problems().
"""

import csv
import fnmatch
import os

import campaign
import claims
import pages
import results
import runs
import store
from readme import readme

SERIES_POINTS = 30
TABLES = ("cells.csv", "series.csv", "claims.csv")
KEY = ("experiment", "case", "aqm", "sender", "seed", "group")
LEVELS = ("mean", "p1", "p25", "p50", "p75", "p90", "p99", "p99_9", "max")
# Of the row of the group "all", the figures and what the whole run was made of; of the others, the group.
CELLS = (*KEY, "class", "cc", "flows", "rtt_ms", "packets", "mbit", "mbit_per_flow", *(f"delay_{x}_ms" for x in LEVELS),
         "mark_pct", "drop_pct", "window_bytes", "jain", "util_mean", "util_p1", "rate_mbit", "warmup_s", "seconds",
         "module", "method", "kernel", "commit", "sightings_sha256", "wall_s", "tc_line", "counters")
# Of the many counters of `tc -s`, those that say what an AQM did.
COUNTERS = {"sent", "drops", "dropped", "dropped-limit", "dropped-aqm", "dropped-overload", "ecn-mark",
            "ecn_mark", "step-mark", "marked", "marked-classic", "marked-coupled", "marked-native", "overlimit",
            "drop_overlimit"}
SERIES = (*KEY, "what", "begin_s", "step_s", "values")
FIRST_WORDS = 12  # of digests and commits


def text(value):
    """A field of a CSV file: numbers with some significant digits, nothing for None."""
    return "" if value is None else f"{value:.{claims.DIGITS}g}" if isinstance(value, float) else str(value)


def write_csv(path, columns, rows):
    """Write rows, dictionaries, with these columns; what a row lacks is empty."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="raise")
        out.writeheader()
        out.writerows({key: text(row.get(key)) for key in columns} for row in rows)


def read_csv(path):
    """Rows of a CSV file as {column: text}."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def figures(part):
    """The columns of CELLS that measure.py gives of a group or of all."""
    found = {f"delay_{level}_ms": part.get("delay_ms", {}).get(level) for level in LEVELS}
    found |= {key: part.get(key, {}).get("mean") for key in ("mbit", "mark_pct", "drop_pct")}
    return found | {key: part.get(key) for key in ("packets", "mbit_per_flow", "window_bytes", "jain")}


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
    """Rows of cells.csv of one run: "all", then its groups."""
    job, meta = result.job, result.meta
    key = {k: job[k] for k in ("experiment", "case", "aqm", "seed")} | {"sender": sender}
    made = meta["made_of"]
    util = result.summary["all"]["utilization_pct"]
    yield key | figures(result.summary["all"]) | {
        "group": "all", "util_mean": util["mean"], "util_p1": util.get("p1"), "rate_mbit": result.rate_mbit,
        "warmup_s": job["warmup"], "seconds": job["seconds"], "module": made["module"], "method": made["method"],
        "kernel": made["kernel"], "commit": (meta["commit"] or "")[:FIRST_WORDS] + "+" * bool(meta["dirty"]),
        "sightings_sha256": meta["sightings_sha256"][:16], "wall_s": meta["wall_seconds"], "tc_line": meta["tc"],
        "counters": " ".join(counters(*(result.stat(when) for when in ("before", "after"))))}
    for group in job["groups"]:
        yield key | figures(result.summary["groups"][group["name"]]) | {
            "group": group["name"], "class": "l4s" if group["ecn"] in ("l4s", "ect1") else "classic",
            "cc": group.get("cc", "udp"), "flows": group["count"], "rtt_ms": group["rtt_ms"]}


def series_rows(result, sender):
    """Rows of series.csv of one run: rate and delay of each group over time, in at most SERIES_POINTS equal steps."""
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


def manifest(plan, kept, rows):
    """manifest.json: the build, and of each step what was planned, done and failed, and its wall clock in minutes."""
    path = os.path.join(kept.directory, campaign.BENCH)
    wall = {}
    for row in rows:
        if row["group"] == "all":
            wall[(*(row[k] for k in KEY[:4]), str(row["seed"]))] = float(row["wall_s"])
    logs = set(os.listdir(kept.failed)) if os.path.isdir(kept.failed) else set()
    steps = []
    for number, step in enumerate(plan.steps, 1):
        mine = [store.label(p.job) for p in plan.planned if p.step == number]
        seconds = [wall[key] for label in mine if (key := (*(p := label.split("/"))[:4], p[4][5:])) in wall]
        steps.append({"step": number, "title": step["title"], "planned": len(mine), "done": len(seconds),
                      "failed": sum(label.replace("/", "+") + ".log" in logs for label in mine),
                      "wall_minutes": round(sum(seconds) / 60, 1)})
    return {"bench": store.read_json(path) if os.path.exists(path) else {}, "steps": steps}


def collect(results_dir, directory):
    """Write manifest.json and the tables of the campaign's runs. StoreError if they are of more than one build."""
    plan, kept = campaign.Campaign(directory), store.Store(results_dir)
    _, said = claims.read(directory)
    wanted = {store.label(p.job): p for p in plan.planned}
    mine = {}
    for run in kept.runs():
        if (label := "/".join((*run[:4], f"seed-{run.seed}"))) in wanted:
            if run.meta["made_of"]["job"] != wanted[label].job:
                raise store.StoreError(f"{run.directory} is not as campaign.toml plans it; `scripts/lab.sh campaign` "
                                       "runs it again")
            mine.setdefault(run[:4], []).append(results.Result(run.directory, run.meta))
    cells = [results.Cell(key, found) for key, found in mine.items()]
    rows = [row for cell in cells for result in cell.runs for row in cell_rows(result, cell.sender)]
    if mixed := builds([{k: text(v) for k, v in row.items()} for row in rows]):
        raise store.StoreError(f"{results_dir} has runs of more than one build: {'; '.join(mixed)}")
    series = [row for cell in cells for row in series_rows(cell.one, cell.sender)]
    judged, made = claims.table(said, plan.planned, cells), manifest(plan, kept, rows)
    for name, columns, table in zip(TABLES, (CELLS, SERIES, claims.COLUMNS), (rows, series, judged)):
        write_csv(os.path.join(directory, name), columns, table)
    store.write_json(os.path.join(directory, "manifest.json"), made)


def builds(rows):
    """Of what the rows of cells.csv were made with more than one, as "dualpi2: 0123, 4567"; empty if all alike."""
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
        self.cells, self.series, self.rows = (read_csv(os.path.join(directory, name)) for name in TABLES)
        self.mixed = builds(self.cells)
        self.planned = {store.label(p.job): p for p in self.plan.planned}

    def command(self, row):
        """The command that repeats the run of a row of cells.csv."""
        label = "/".join((*(row[key] for key in claims.WORDS), f"seed-{row['seed']}"))
        run = self.planned[label]
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
    return {"README.md": readme(evaluation), **{f"html/{name}": page for name, page in pages.pages(evaluation).items()}}


def problems(directory=campaign.EVALUATION):
    """What is wrong with evaluation/, a line each: mixed builds, tables that lack a claim, pages not of the tables."""
    evaluation = Evaluation(directory)
    found = [f"more than one build: {line}" for line in evaluation.mixed]
    bench = evaluation.manifest["bench"]
    found += [f"cells.csv: a run of another {what} than manifest.json's" for what in ("method", "kernel")
              if {row[what] for row in evaluation.cells if row["group"] == "all"} - {bench.get(what)}]
    left = {c["id"] for c in evaluation.claims} ^ {row["id"] for row in evaluation.rows}
    found += [f"claims.csv and claims.toml differ in {name}" for name in sorted(left)]
    by_id = {claim["id"]: claim for claim in evaluation.claims if "unsupported" not in claim}
    for row in evaluation.rows:
        given = claims.verdict_of(by_id[row["id"]], row) if row["value"] and row["id"] in by_id else row["verdict"]
        if row["verdict"] != given:
            found.append(f"claims.csv: {row['id']}, {row['sender']}, {row['case']}: {row['verdict']}, but its value is "
                         f"{given}")
    wanted = files(evaluation)
    there = {"README.md"} | {f"html/{name}" for name in os.listdir(os.path.join(directory, "html"))}
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


def write(results_dir, directory=campaign.EVALUATION):
    """Write evaluation/ from results, or if there are none its pages from its tables; returns lines on it."""
    if store.Store(results_dir).runs() or not os.path.exists(os.path.join(directory, "manifest.json")):
        collect(results_dir, directory)
    evaluation = Evaluation(directory)
    html = os.path.join(directory, "html")
    os.makedirs(html, exist_ok=True)
    for name in os.listdir(html):
        os.remove(os.path.join(html, name))
    wanted = files(evaluation)
    for path, content in wanted.items():
        with open(os.path.join(directory, path), "w", encoding="utf-8") as file:
            file.write(content)
    done = sum(row["group"] == "all" for row in evaluation.cells)
    where = os.path.relpath(directory, runs.ROOT)
    return [f"{done} of {len(evaluation.plan.planned)} runs, {len(wanted)} files in {where}"]

