#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of evaluation/, of the campaign, of claims and verdicts. KTAP, about 20 s.

The results are made up; no machine is booted, see mock_machine.py. The first tests are of evaluation/ itself.
"""

import copy
import math
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "lib"))

from lib_evaluation import CLAIM, PLAN, directory, refused  # noqa: E402
from mock_machine import WORK, Place, holds, main  # noqa: E402

import campaign  # noqa: E402
import claims    # noqa: E402
import judge     # noqa: E402
import lab       # noqa: E402
import publish   # noqa: E402
import readme    # noqa: E402
import results   # noqa: E402
import runs      # noqa: E402
import scenario  # noqa: E402
import store     # noqa: E402
from ktap import expect_equal as equal, test  # noqa: E402
from made import Made, job, jobs, raw  # noqa: E402

# evaluation/ itself

@test
def evaluation_is_what_publish_makes_of_its_tables():
    equal(publish.problems(), [])
    with open(os.path.join(campaign.EVALUATION, "README.md"), encoding="utf-8") as file:
        assert file.read().count("\n") <= readme.MOST_LINES


@test
def evaluation_that_was_edited_is_found():
    pages = (("README.md", "# Evaluation", "# Results"), ("html/claims.html", "<td>", "<td>x"),
             ("html/more.html", None, "x"), ("html/matrix.html", None, None), ("img/more.svg", None, "x"),
             ("img/fig8-ratio.svg", "<title>", "<title>x"), ("img/fig6-ratio.svg", None, None))
    tables = (("claims.csv", "contradicted", "x"), ("manifest.json", '"planned": ', '"planned": 1'))
    for edits in (pages, *((edit,) for edit in tables)):
        made = os.path.join(tempfile.mkdtemp(dir=WORK), "evaluation")
        shutil.copytree(campaign.EVALUATION, made)
        for path, old, new in edits:
            edit_file(os.path.join(made, path), old, new)
        found = publish.problems(made)
        assert found and all("publish" in line for line in found), (edits, found)
        if edits is pages:
            equal(sorted(line.split()[0] for line in found), sorted(path for path, *_ in pages))


def edit_file(path, old, new):
    """Replace the first of a text in it; without an old text write it, without a new one remove it."""
    if not new:
        os.remove(path)
        return
    text = new
    if old:
        with open(path, encoding="utf-8") as before:
            text = before.read()
        assert old in text, path
        text = text.replace(old, new, 1)
    with open(path, "w", encoding="utf-8") as after:
        after.write(text)


@test
def claims_are_of_runs_that_the_campaign_plans():
    _, said = claims.read()
    planned = campaign.Campaign().planned
    for claim in said:
        if "unsupported" in claim:
            continue
        first = claim | {key: claim[key][:1] for key in ("aqms", "senders")}
        found = claims.of_claim(first, claims.cells_of(planned))
        assert found, claim["id"]
        if claim["over"]:
            peers = {(p.job["experiment"], p.job["case"]) for p in planned if p.job["aqm"] == claim["over"]}
            assert any(key[:2] in peers for key in found), claim["id"]
        if claim["targets"]:
            assert set(claims.paper_values(claim)) & {key[1] for key in found}, claim["id"]


@test
def targets_name_cases_of_their_experiments():
    for file, experiment in (("fig8", "fig8"), ("fig12", "fig12"), ("deploy-flows", "deploy-flows"),
                             ("partial-deployment", "deploy")):
        cases = scenario.Experiment(experiment).cases()
        equal({row["case"] for row in judge.targets(f"{file}.csv")} - set(cases), set())


# The campaign

@test
def campaign_runs_seed_1_of_every_step_first():
    plan = campaign.Campaign(directory())
    labels = [(p.step, store.label(p.job)) for p in plan.planned]
    # PIE's run has no L4S sender: it is one run, whatever takes its place.
    equal(labels, [(1, "fig8/A5-B5-cubic/dualpi2/prague/seed-1"), (1, "fig8/A5-B5-cubic/dualpi2/dctcp/seed-1"),
                   (2, "fig8/A5-B5-cubic/pie/ecn-cubic/seed-1"),
                   (1, "fig8/A5-B5-cubic/dualpi2/prague/seed-2"), (1, "fig8/A5-B5-cubic/dualpi2/dctcp/seed-2")])
    equal({p.options for p in plan.planned}, {" --l4s prague --seconds 50", " --l4s dctcp --seconds 50"})
    equal({p.job["seconds"] for p in plan.planned}, {50})
    for given, wanted in ((({2},), [2]), ((None, {"sender": "dctcp,ecn-*"}), [1, 2, 4]), ((None, None, [2]), [3, 4]),
                          ((None, {"aqm": "pie"}), [2])):
        equal(plan.wanted(*given), [plan.planned[n] for n in ([2] if wanted == [2] else wanted)], given)
    holds(refused(plan.wanted, {3}), "no run of the campaign")


@test
def campaign_in_error_is_rejected():
    for plan, *parts in (
            (PLAN.replace("seconds = 50", "seconds = 50, x = 1", 1), "step 1", "unknown key 'x'"),
            (PLAN.replace('["fig8"]', '["fig99"]', 1), "fig99"), (PLAN.replace("dctcp", "vegas", 1), "vegas"),
            (PLAN.replace("seconds = 50", "seconds = 60", 1).replace('"pie"', '"dualpi2"'),
             "steps 1 and 2 plan fig8/A5-B5-cubic/dualpi2/prague/seed-1 in two ways"),
            (PLAN.replace("seeds = 2", "seeds = 0"), "seeds = 0")):
        holds(refused(lambda p=plan: campaign.Campaign(directory(p)).planned), *parts)


@test
def campaign_continues_and_shows_what_is_left():
    place, made = Place(), directory()
    words = ("campaign", "--evaluation", made, "--jobs", "2")
    code, out, _ = place.lab(*words, "--plan")
    holds(out, "seed 1, step  1:    2 runs,    0 finished", "seed 2, step  1:    2 runs", "5 runs, 0 finished, about ")
    equal((code, place.pids()), (0, []))
    code, out, _ = place.lab(*words, "--step", "1", "--seeds", "1")
    holds(out, "2 runs finished, 0 failed")
    meta = place.store.runs()[0].meta
    holds(meta["command"], "run fig8 --case A5-B5-cubic --aqm dualpi2 --seeds 1-1 --l4s dctcp --seconds 50 --results")
    code, out, _ = place.lab(*words)
    holds(out, "2 of 5 runs are finished already", "3 runs finished, 0 failed")
    equal([run[3:5] for run in place.store.runs()], [("dctcp", 1), ("dctcp", 2), ("prague", 1), ("prague", 2),
                                                      ("ecn-cubic", 1)])
    holds(place.lab(*words)[1], "nothing to run")
    holds(place.lab(*words, "--plan")[1], "5 runs, 5 finished")


@test
def campaign_of_another_build_stops():
    place, bench = Place(), runs.Bench()
    place.store.lock()
    campaign.pin(place.store, bench)
    campaign.pin(place.store, bench)
    # What this part does not need may come later, and stays then.
    bench.companions = {}
    campaign.pin(place.store, bench)
    bench.commit = "another"
    campaign.pin(place.store, bench)
    for key in ("module", "kernel", "prague_module"):
        other = copy.copy(bench)
        setattr(other, key, "other")
        holds(refused(campaign.pin, place.store, other), {"module": "dualpi2", "prague_module": "prague"}.get(key, key),
              "changed since the campaign", "--results DIR")
    method, runs.METHOD = runs.METHOD, runs.METHOD[1:]
    try:
        holds(refused(campaign.pin, place.store, bench), "method changed")
    finally:
        runs.METHOD = method


# The sender of a run

@test
def sender_is_that_of_the_first_l4s_group():
    for experiment, case, aqm, l4s, wanted in (
            ("fig8", "A5-B5-cubic", "dualpi2", None, "dctcp"), ("fig8", "A5-B5-cubic", "dualpi2", "prague", "prague"),
            ("fig8", "A5-B5-cubic", "pie", "prague", "ecn-cubic"),
            ("fig8", "A5-B5-cubic", "dualpi2", "dctcp-unpaced", "dctcp-unpaced"),
            ("fig8", "A5-B5-cubic", "dualpi2", "ecn-cubic", "ecn-cubic"),
            ("deploy", "l4s-cubic-2bdp", "fifo", "cubic", "cubic"), ("pi2-fig12", "*", "pi2", None, "reno"),
            ("pi2-fig19", "A0-B10", "pi2", "prague", "cubic"), ("vdq-cc", "1-each", "vdq_csaqm", None, "dctcp"),
            ("deploy", "l4s-bbr-2bdp", "fifo", "udp_prague-no-fallback", "udp_prague-no-fallback")):
        one, = scenario.Experiment(experiment, l4s_cc=l4s).jobs([aqm], case)
        equal(store.sender(one), wanted, (experiment, case, l4s))
    groups = [{"kind": "udp"}, {"cc": "cubic", "ecn": "classic"}, {"cc": "prague", "ecn": "l4s"}]
    equal([store.sender({"groups": groups[:n]}) for n in (1, 2, 3)], ["udp", "ecn-cubic", "prague"])


@test
def report_is_of_one_sender():
    place = Place()
    with Made() as made:
        given = {"A": {"p99": 1.0}}
        made.run(job("fig8", "A5-B5-cubic", "pie"), given)
        for l4s in ("prague", "udp_prague"):
            made.run(scenario.Experiment("fig8", l4s_cc=l4s).jobs(["dualpi2"], "A5-B5-cubic")[0], given)
        found = made.store.runs()
        equal([(r.aqm, r.sender) for r in results.of_sender(found, "prague")],
              [("dualpi2", "prague"), ("pie", "ecn-cubic")])
        equal(len(results.of_sender(found, None)), 3)
        args = lab.parser().parse_args(["report", "--results", made.directory])
        holds(refused(lab.l4s_of, args), "prague, udp_prague", "--l4s")
        made.run(scenario.Experiment("fig8").jobs(["dualpi2"], "A5-B5-cubic")[0], given)
        equal(lab.l4s_of(args), "dctcp")
        equal(lab.l4s_of(lab.parser().parse_args(["report", "--l4s", "prague"])), "prague")
        # A variant is an L4S sender by its name.
        made.run(scenario.Experiment("fig8", l4s_cc="dctcp-unpaced").jobs(["dualpi2"], "A5-B10-cubic")[0], given)
        equal({r.sender for r in results.of_sender(made.store.runs(), "prague")}, {"prague", "ecn-cubic"})
        equal(lab.l4s_of(lab.parser().parse_args(["compare", "a", "b", "--l4s", "prague-rtt0"])), "prague-rtt0")
    args = lab.parser().parse_args(["report", "--results", place.results])
    equal(lab.l4s_of(args), "dctcp")


@test
def results_without_a_sender_in_their_path_are_rejected():
    place = Place()
    old = os.path.join(place.results, "fig8", "A5-B5-cubic", "pie", "seed-1")
    os.makedirs(old)
    store.write_json(os.path.join(old, "meta.json"), {"format": 1})
    holds(refused(place.store.runs), "has format 1", "move")


# Verdicts

@test
def verdict_is_of_the_whole_interval():
    for low, high, direction, wanted in (
            (1, 1, None, "reproduced"), (2, 2, None, "reproduced"), (0.99, 0.99, None, "contradicted"),
            (1, 2, None, "reproduced"), (0.9, 1.5, None, "within noise"), (1.5, 2.1, None, "within noise"),
            (0.5, 2.5, None, "within noise"), (2.1, 2.5, None, "contradicted"), (2.1, 2.5, (1, 3), "direction only"),
            (2.1, 3.1, (1, 3), "contradicted"), (0.9, 1.5, (0, 3), "within noise")):
        equal(claims.verdict(low, high, (1, 2), direction), wanted, (low, high, direction))
    equal(claims.worst(["reproduced", "within noise", "not run"]), "within noise")
    equal(claims.worst(["reproduced", "not run"]), "reproduced")
    equal(claims.worst(["within noise", "contradicted", "direction only"]), "contradicted")
    equal(claims.worst([]), "not run")


@test
def interval_is_students():
    equal(claims.interval([3.0]), (3.0, None, None, None))
    mean, deviation, low, high = claims.interval([1.0, 2.0, 3.0])
    # 4.303 / sqrt(3)
    equal((mean, deviation, round(low, 4), round(high, 4)), (2.0, 1.0, -0.4843, 4.4843))
    many = claims.interval([float(n % 2) for n in range(100)])
    equal(round(many[3] - many[0], 4), round(1.95996 * math.sqrt(25 / 99) / 10, 4))


def said(claim, *made_runs):
    """Rows of claims.csv of one claim, {(aqm, sender, case): row}: its keys beside CLAIM's; runs: (job, figures)."""
    _, (read,) = claims.read(directory(said=CLAIM + "\n".join(f"{k} = {v}" for k, v in claim.items()) + "\n"))
    with Made() as made:
        planned = []
        for one, given in made_runs:
            planned.append(campaign.Planned(1, one, False, ""))
            if given is not None:
                made.run(one, given)
        cells = made.cells() if any(given is not None for _, given in made_runs) else []
        return {(r.get("aqm"), r.get("sender"), r.get("case")): r for r in judged(read, planned, cells)}


def judged(claim, planned, cells):
    """Rows of claims.csv of one claim, of these cells; each run took 2 s."""
    figures = claims.by_cell(list(claims.figure_rows([claim], planned, cells)))
    return claims.table([claim], planned, figures, {
        (c.experiment, c.case, c.aqm, c.sender): 2 * len(c.runs) for c in cells})


def seeds(*means, case="A5-B5-cubic", aqm="dualpi2"):
    """Runs of one cell with these mean delays of A, a seed each; None: planned and not run."""
    return [(one, mean if mean is None else {"A": {"mean": mean}})
            for one, mean in zip(jobs("fig8", case, [aqm], range(1, 1 + len(means))), means)]


CELL = ("dualpi2", "dctcp", "A5-B5-cubic")


@test
def claim_of_one_seed_is_judged_by_its_value():
    for mean, wanted in ((1.0, "reproduced"), (1.01, "contradicted")):
        row = said({}, *seeds(mean))[CELL]
        equal((row["verdict"], row["value"], row["n"], row["ci95_low"], row["wall_s"]), (wanted, mean, 1, None, 2))
    equal(said({"direction": "[0, 2]"}, *seeds(1.5))[CELL]["verdict"], "direction only")
    holds(said({}, *seeds(1.5))[CELL]["why"], "A mean, ms 1.5, to reach ≤ 1 (+50 %)")


@test
def claim_of_several_seeds_may_be_within_noise():
    for means, wanted in (((0.5, 0.51, 0.49), "reproduced"), ((0.7, 0.9, 0.8), "within noise"),
                          ((1.0, 1.1, 1.2), "within noise"), ((1.5, 1.51, 1.49), "contradicted")):
        row = said({}, *seeds(*means))[CELL]
        equal((row["verdict"], row["n"], bool(row["why"])), (wanted, len(means), wanted != "reproduced"), means)


@test
def claim_of_peaks_of_several_seeds_has_plain_numbers():
    # Of the sightings, and so of numpy.
    two = jobs("pi2-fig12", "*", ["pi2"], (1, 2))
    _, (read,) = claims.read(directory(said=CLAIM.replace("a_mean_ms", "further_peaks").replace('"fig8"', '"pi2-fig12"')
                                       .replace("A5-B5-*", "*").replace('["dualpi2"]', '["pi2"]')
                                       .replace('["prague", "dctcp"]', '["reno"]')))
    with Made() as made:
        for one in two:
            raw(made.run(one), [20] * 500 + [200] * 5 + [20] * 5 + [200] * 5)
        row, = judged(read, [campaign.Planned(1, one, True, "") for one in two], made.cells())
    equal((row["value"], row["sd"], row["verdict"]), (1.0, 0.0, "reproduced"))


@test
def claim_that_was_not_run_says_so():
    found = said({}, *seeds(None))
    equal([row["verdict"] for row in found.values()], ["not run"])
    equal(list(found), [CELL])
    # A part of the cells is judged, and says what is left.
    found = said({}, *seeds(0.5), *seeds(None, case="A5-B5-reno"))
    equal([row["verdict"] for row in found.values()], ["reproduced", "not run"])
    equal(readme.summary([{k: publish.text(v) for k, v in ({"value": None} | row).items()} for row in found.values()]),
          "0.5 (1 seed); 1 not run")
    row, = said({}, *seeds(0.5, aqm="pie")).values()
    equal((row["verdict"], row["why"]), ("not run", "no run of the campaign shows it"))


@test
def claim_may_be_bounded_by_the_papers_values():
    row = next(t for t in judge.targets("fig8.csv") if (t["aqm"], t["case"]) == ("DualPI2", "A5-B5-cubic"))
    target = float(row["a_mean_ms"])
    given = {"targets": '{ file = "fig8.csv", column = "a_mean_ms", aqm = "DualPI2" }'}
    for how, mean, wanted in (("times", target, "reproduced"), ("times", target * 1.01, "contradicted"),
                              ("points", target + 1, "reproduced"), ("points", target + 1.01, "contradicted"),
                              ("ratio", judge.ratio_bounds(target)[1] * 0.99, "reproduced"),
                              ("ratio", judge.ratio_bounds(target)[1] * 1.01, "contradicted")):
        row = said(given | {"bound_is": f'"{how}"'}, *seeds(mean))[CELL]
        equal((row["verdict"], row["paper_value"]), (wanted, target), (how, mean))
    # A case that the paper has no value of is no part of it.
    text = {"targets": '{ file = "fig8.csv", column = "b_mean_ms", aqm = "DualPI2" }', "bound_is": '"times"'}
    equal(list(claims.paper_values(claims.read(directory(said=CLAIM + "".join(
        f"{k} = {v}\n" for k, v in text.items())))[1][0]))[:2], ["A5-B5-cubic", "A5-B10-cubic"])


@test
def claim_over_a_peer_is_of_the_same_seed():
    peers = seeds(1.0, 4.0, aqm="pie")
    row = said({"over": '"pie"'}, *seeds(0.5, 2.0), *peers)[CELL]
    equal((row["value"], row["n"], row["sd"]), (0.5, 2, 0.0))
    row = said({"over": '"pie"'}, *seeds(0.5, 2.0), *peers[:1])[CELL]
    equal((row["value"], row["n"]), (0.5, 1))
    row, = said({"over": '"pie"'}, *seeds(0.5)).values()
    equal((row["verdict"], row["why"]), ("not run", "no run of the campaign shows it"))


@test
def claim_may_pool_its_cells():
    two = [*seeds(0.5, 0.8), *seeds(2.0, 0.2, case="A5-B5-reno")]
    row, = said({"pool": '"geometric"'}, *two).values()
    equal([round(row[k], 6) for k in ("value", "n")] + [row["case"]], [0.7, 2, "A5-B5-*"])
    row, = said({"pool": '"mean"'}, *two).values()
    equal(round(row["value"], 6), round((1.25 + 0.5) / 2, 6))


@test
def claims_in_error_are_rejected():
    for text, *parts in (
            (CLAIM + "x = 1\n", "mean", "unknown key 'x'"), (CLAIM.replace("a_mean_ms", "speed"), "figure = 'speed'"),
            (CLAIM.replace("bound = [0, 1]", "bound = [1, 0]"), "bound = [1, 0]"),
            (CLAIM.replace('bound_from = "paper"\n', ""), "bound_from is missing"),
            (CLAIM.replace('paper = "p"', 'paper = "q"'), "of no paper"), (CLAIM + CLAIM.partition("\n\n")[2], "twice"),
            (CLAIM + 'bound_is = "times"\n', "needs a value of the paper")):
        holds(refused(claims.read, directory(said=text)), *parts)
    text = CLAIM.partition("kind =")[0] + 'kind = "shape"\nunsupported = "no sender"\n'
    (row,) = claims.table(claims.read(directory(said=text))[1], [], {}, {})
    equal((row["verdict"], row["why"]), ("unsupported", "no sender"))


if __name__ == "__main__":
    main()
