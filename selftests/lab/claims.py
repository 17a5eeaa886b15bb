# SPDX-License-Identifier: GPL-2.0-only
"""What the papers claim, and what the campaign's runs say of it: evaluation/claims.toml and results become claims.csv.

A claim is a figure of some cells with bounds. Of each of its cells there is a row for each AQM and sender that the
campaign runs it with: the mean over the seeds with its 95 % interval, and a verdict. What was not run is not judged.
"""

import fnmatch
import math
import os
import statistics

import campaign
import judge
import results
import scenario
from figures import FIGURES

KINDS = ("number", "direction", "shape")
NOT_RUN, UNSUPPORTED = "not run", "unsupported"
# From worst to best: of several cells the first of these is the verdict of a claim.
VERDICTS = ("contradicted", "within noise", "direction only", "reproduced", NOT_RUN, UNSUPPORTED)
COLUMNS = ("id", "paper", "place", "aqm", "sender", "experiment", "case", "figure", "value", "sd", "n", "ci95_low",
           "ci95_high", "paper_value", "bound_low", "bound_high", "bound_from", "verdict", "why", "wall_s")
DIGITS = 5  # significant ones, of the CSV files
WORDS = ("experiment", "case", "aqm", "sender")  # of a cell
# Student's t for 95 %, two-sided, by degrees of freedom; beyond them the normal distribution's.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
BOUND_IS = ("absolute", "times", "points", "ratio")  # of the paper's value, but for "absolute"; "ratio": judge.py's
POOLS = {"geometric": statistics.geometric_mean, "mean": statistics.fmean}
PAIR = ("two numbers, the lower first", lambda v: isinstance(v, list) and len(v) == 2 and all(
    isinstance(x, (int, float)) for x in v) and v[0] <= v[1])
NUMBER = ("a number", lambda v: isinstance(v, (int, float)) and not isinstance(v, bool))
TARGETS = {"file": scenario.TEXT, "column": scenario.TEXT}
CLAIM = {"id": scenario.NAME, "paper": scenario.TEXT, "place": scenario.TEXT, "words": scenario.TEXT,
         "kind": scenario.one_of(KINDS)}
RUN = {"figure": scenario.one_of(tuple(FIGURES)), "experiments": scenario.NAMES, "cases": campaign.NAMES,
       "aqms": scenario.NAMES, "senders": scenario.NAMES, "bound": PAIR, "bound_is": scenario.one_of(BOUND_IS),
       "bound_from": scenario.one_of(("paper", "project")), "over": scenario.TEXT, "paper_value": NUMBER,
       "direction": PAIR, "targets": scenario.TABLE, "pool": scenario.one_of(tuple(POOLS)), "note": scenario.TEXT,
       "finding": scenario.POSITIVE}
DEFAULTS = {"cases": ["*"], "bound_is": "absolute", "bound": [-math.inf, math.inf], "over": None, "paper_value": None,
            "direction": None, "targets": None, "pool": None, "note": "", "finding": None}
PAPER = {"name": scenario.TEXT, "title": scenario.TEXT}
MORE = {"authors": scenario.TEXT, "year": scenario.COUNT}


def read(directory=campaign.EVALUATION):
    """(papers, claims) of DIRECTORY/claims.toml, checked; ScenarioError says what is wrong."""
    where = "claims.toml"
    table = scenario.read(os.path.join(directory, where))
    scenario.check(table, {"paper": scenario.TABLE, "claim": scenario.TABLES}, where)
    for name, paper in table["paper"].items():
        scenario.check(paper, PAPER | {key: MORE[key] for key in MORE if key in paper}, f"{where}: {name}")
    claims, seen = [], set()
    for claim in table["claim"]:
        here = f"{where}: {claim.get('id')}"
        if "unsupported" in claim:
            scenario.check(claim, CLAIM | {"unsupported": scenario.TEXT}, here)
        else:
            scenario.check(claim, CLAIM | {k: rule for k, rule in RUN.items() if k in claim or k not in DEFAULTS}, here)
            if claim.get("targets"):
                scenario.check({k: v for k, v in claim["targets"].items() if k != "aqm"}, TARGETS, here)
            claim = DEFAULTS | claim
            if claim["bound_is"] != "absolute" and claim["paper_value"] is None and not claim["targets"]:
                raise scenario.ScenarioError(f"{here}: bound_is = '{claim['bound_is']}' needs a value of the paper")
        if claim["id"] in seen or claim["paper"] not in table["paper"]:
            raise scenario.ScenarioError(f"{here}: twice, or of no paper of {', '.join(table['paper'])}")
        seen.add(claim["id"])
        claims.append(claim)
    return table["paper"], claims


def interval(values):
    """(mean, standard deviation, low, high) of the seeds' values, 95 % by Student's t; of one seed only the mean."""
    mean = statistics.fmean(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, None, None, None
    deviation, freedom = statistics.stdev(values), len(values) - 1
    t = T95[freedom - 1] if freedom <= len(T95) else statistics.NormalDist().inv_cdf(0.975)
    half = t * deviation / math.sqrt(len(values))
    return mean, deviation, mean - half, mean + half


def verdict(low, high, bound, direction=None):
    """Of an interval (of one seed: the value twice) against a bound, both included, and a looser one.

    Wholly inside: reproduced. Wholly outside: contradicted, or "direction only" if it is inside of `direction`.
    """
    if bound[0] <= low and high <= bound[1]:
        return "reproduced"
    if high < bound[0] or low > bound[1]:
        return "direction only" if direction and direction[0] <= low and high <= direction[1] else "contradicted"
    return "within noise"


def verdict_of(claim, row):
    """The verdict of a row of claims.csv, by its own value, interval and value of the paper."""
    value, low, high, paper = (None if row[key] in ("", None) else float(row[key])
                               for key in ("value", "ci95_low", "ci95_high", "paper_value"))
    return verdict(*((value, value) if low is None else (low, high)), bounds(claim, paper), claim["direction"])


def rounded(value):
    """A number as claims.csv has it; verdicts are of this one."""
    return None if value is None else float(f"{value:.{DIGITS}g}")


def worst(verdicts):
    """The verdict of several rows: that of the worst one that was run, else "not run"; see VERDICTS."""
    return min(verdicts, key=VERDICTS.index, default=NOT_RUN)


def bounds(claim, paper):
    """(low, high) for a cell whose value in the paper is this, or None where the paper has none."""
    low, high = claim["bound"]
    return {"absolute": lambda: (low, high), "times": lambda: (low * paper, high * paper), "points": lambda: (
        paper + low, paper + high), "ratio": lambda: judge.ratio_bounds(paper)}[claim["bound_is"]]()


def paper_values(claim):
    """{case: value} of the claim's targets; None in place of it if it has none."""
    if not claim["targets"]:
        return None
    wanted = claim["targets"]
    return {row["case"]: float(row[wanted["column"]]) for row in judge.targets(wanted["file"])
            if wanted.get("aqm") in (None, row.get("aqm")) and row[wanted["column"]]}


def cells_of(planned):
    """[(experiment, case, aqm, sender)] of the campaign's runs, each once, in their order."""
    return list(dict.fromkeys(tuple(run.words().values()) for run in planned))


def of_claim(claim, cells):
    """Those of cells_of() that a claim is about, by its AQMs, then its senders."""
    found = {}
    for cell in cells:
        ranks = [next((n for n, p in enumerate(claim[key + "s"]) if fnmatch.fnmatchcase(word, p)), None)
                 for key, word in zip(WORDS, cell)]
        if None not in ranks:
            found[cell] = ranks[2:]
    return sorted(found, key=found.get)


def called(claim):
    """What the value of a claim is, in words."""
    return FIGURES[claim["figure"]][1] + f", over that of {claim['over']}" * bool(claim["over"])


def figures_wanted(claims, planned):
    """{cell: set of figures} that the claims need of the campaign's runs, cells as of_claim() has them."""
    found, all_cells = {}, cells_of(planned)
    for claim in claims:
        if "unsupported" in claim:
            continue
        for key in of_claim(claim, all_cells):
            found.setdefault(key, set()).add(claim["figure"])
            if claim["over"]:
                for peer in all_cells:
                    if peer[:3] == (*key[:2], claim["over"]):
                        found.setdefault(peer, set()).add(claim["figure"])
    return found


def figure_rows(claims, planned, cells):
    """Rows of the table figures: what the claims need of each finished run; the value is None where a run has none."""
    wanted = figures_wanted(claims, planned)
    for cell in cells:
        key = (cell.experiment, cell.case, cell.aqm, cell.sender)
        for name in sorted(wanted.get(key, ())):
            for run in cell.runs:
                value = FIGURES[name][0](run)
                # Some are numpy's, with which module statistics cannot do all.
                yield dict(zip(WORDS, key)) | {"seed": run.job["seed"], "figure": name,
                                               "value": rounded(None if value is None else float(value))}


def by_cell(rows):
    """{cell: {figure: {seed: value}}} of rows of the table figures, numbers or text; value None: the run has none."""
    found = {}
    for row in rows:
        value = None if row["value"] in ("", None) else float(row["value"])
        found.setdefault(tuple(row[k] for k in WORDS), {}).setdefault(row["figure"], {})[int(row["seed"])] = value
    return found


def by_seed(claim, key, figures):
    """{seed: value} of a claim's figure in a cell, over that of its peer if it has one; only seeds that have one."""
    values = figures[key][claim["figure"]]
    if claim["over"]:
        peers = [peer for peer, found in figures.items() if peer[:3] == (*key[:2], claim["over"])
                 and claim["figure"] in found]
        peer = next((p for p in peers if p[3] == key[3]), peers[0] if len(peers) == 1 else None)
        under = figures[peer][claim["figure"]] if peer else {}
        values = {seed: v / under[seed] if v is not None and under.get(seed) else None for seed, v in values.items()}
    return {seed: v for seed, v in values.items() if v is not None}


def pooled(claim, found):
    """[(key, {seed: value}, cells)]: one entry a cell, or where a claim pools its cells one an AQM and sender."""
    if not claim["pool"]:
        return [(key, values, [key]) for key, values in found]
    groups = {}
    for key, values in found:
        groups.setdefault((key[0], f"{claim['cases'][0]}", *key[2:]), []).append((values, key))
    return [(key, {seed: POOLS[claim["pool"]]([v[seed] for v, _ in mine])
                   for seed in set.intersection(*(set(v) for v, _ in mine))}, [k for _, k in mine])
            for key, mine in groups.items()]


def rows_of(claim, cells, figures, wall_s):
    """The rows of claims.csv of one claim, as dictionaries by COLUMNS; cells: of cells_of(), others as for table()."""
    base = {key: claim[key] for key in ("id", "paper", "place")}
    if "unsupported" in claim:
        return [base | {"verdict": UNSUPPORTED, "why": claim["unsupported"]}]
    base |= {"figure": claim["figure"], "bound_from": claim["bound_from"]}
    paper, rows = paper_values(claim), []
    wanted = [key for key in of_claim(claim, cells) if paper is None or key[1] in paper]
    ran = [key for key in wanted if claim["figure"] in figures.get(key, ())]
    found = [(key, values) for key in ran if (values := by_seed(claim, key, figures))]
    for key, values, mine in pooled(claim, found):
        if values:
            rows.append(base | judged(claim, key, values, paper[key[1]] if paper else claim["paper_value"]) | {
                "wall_s": round(sum(wall_s[k] for k in mine))})
    rows += [base | dict(zip(WORDS, key)) | {"verdict": NOT_RUN} for key in wanted if key not in ran]
    return rows or [base | {"verdict": NOT_RUN, "why": "no run of the campaign shows it"}]


def judged(claim, key, values, paper):
    """The part of a row that depends on its values."""
    mean, deviation, low, high, paper = map(rounded, (*interval(list(values.values())), paper))
    least, most = bounds(claim, paper)
    said = verdict_of(claim, {"value": mean, "ci95_low": low, "ci95_high": high, "paper_value": paper})
    check = judge.Check(called(claim), results.Value(mean, min(values.values()), max(values.values()),
                                                                   len(values)), least, most, paper)
    return dict(zip(WORDS, key)) | {
        "value": mean, "sd": deviation, "n": len(values), "ci95_low": low, "ci95_high": high, "paper_value": paper,
        "bound_low": least, "bound_high": most, "verdict": said,
        "why": "" if said == "reproduced" else check.why() or "the interval crosses the bound"}


def table(claims, planned, figures, wall_s):
    """All rows of claims.csv; figures: of by_cell(); wall_s: {cell: seconds that its runs took}."""
    cells = cells_of(planned)
    return [row for claim in claims for row in rows_of(claim, cells, figures, wall_s)]
