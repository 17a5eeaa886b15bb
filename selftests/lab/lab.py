#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The lab's command line: list the papers' experiments, run them, compare AQMs, write the report.

What an experiment is stands in scenarios/, how runs are made in runs.py, how their
results are kept in store.py, what is drawn and written of them in report.py.
"""

import argparse
import fnmatch
import math
import os
import re
import sys
import time

import campaign
import runs
import scenario
import store

RESULTS = os.path.join(runs.BUILD, "lab", "results")
REPORT = os.path.join(runs.BUILD, "lab", "report")


class Parser(argparse.ArgumentParser):
    """One line for what is wrong, in place of the whole usage."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def duration(seconds):
    """Text like "1 h 05 min", "3 min", "40 s" of seconds, 0 or more."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def at_least_1(text):
    """An argument that is a whole number, 1 or more."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of 1 or more")
    return int(text)


def seed_range(text):
    """The seeds of "3" (1, 2, 3) or "2-4" (2, 3, 4)."""
    found = re.fullmatch(r"(?:([1-9]\d*)-)?([1-9]\d*)", text)
    if not found or int(found[1] or 1) > int(found[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number of seeds nor a range like 2-4")
    return range(int(found[1] or 1), int(found[2]) + 1)


def known_times(results):
    """Pairs (predicted, measured) of the finished runs, the latest last, for the planner."""
    found = sorted(results.runs(), key=lambda run: os.path.getmtime(run.directory))
    return [(run.meta["predicted_seconds"], run.meta["wall_seconds"]) for run in found]


def jobs_of(args):
    """Jobs that the arguments of `run` mean: (job, whether to keep raw data, options that repeat it)."""
    aqms = args.aqm.split(",") if args.aqm else None
    found, cases = [], []
    for name in scenario.matching(args.experiment, scenario.names(), "experiment"):
        experiment = scenario.Experiment(name, l4s_cc=args.l4s)
        keep = args.keep_raw or experiment.keep_raw
        found += [(job, keep, campaign.options(args.l4s, args.seconds))
                  for job in experiment.jobs(aqms, args.case, args.seeds, args.seconds)]
        cases += experiment.cases()
    if not found:
        raise scenario.ScenarioError(f"no case '{args.case}' in {', '.join(args.experiment)}; there are "
                                     f"{', '.join(cases)}")
    return found


def directory_of(args):
    """Where `run` puts its results: those of another length must not replace the experiment's own."""
    return RESULTS + f"-{args.seconds}s" * bool(args.seconds) if args.results == RESULTS else args.results


def do_list(args):
    """Print the experiments, or the cases of one."""
    planner = runs.Planner(known_times(store.Store(args.results)))
    for name in [args.experiment] if args.experiment else scenario.names():
        experiment = scenario.Experiment(name)
        jobs = experiment.jobs()
        time_ = duration(planner.left(jobs, [], args.jobs))
        print(f"{name:12} {len(jobs):4} runs {time_:>10}  {experiment.title}")
        if args.experiment:
            for case in dict.fromkeys(job["case"] for job in jobs):
                print(f"  {case:24} " + " ".join(job["aqm"] for job in jobs if job["case"] == case))
    if args.experiment:
        print(f"AQMs there are: {', '.join(scenario.aqms())}")
    return 0


def stale_because(meta, made_of):
    """Why a finished run is not what would be made today; empty if it is."""
    was = meta["made_of"]
    changed = [k for k in ("kernel", "module", "method", "prague") if was.get(k) != made_of.get(k)]
    changed += [k for k in made_of["job"] if was["job"].get(k) != made_of["job"][k]]
    return changed


def select(wanted, results, bench):
    """Of jobs_of() those that are still to be run; says how many are done and which are stale."""
    todo, done, stale = [], 0, {}
    for job, keep, options in wanted:
        meta = results.meta(job)
        if meta is None:
            todo.append((job, keep, options))
            continue
        changed = stale_because(meta, bench.made_of(job))
        if not changed and keep and not os.path.exists(os.path.join(results.place(job), "sightings")):
            changed = ["--keep-raw"]
        if changed:
            stale.setdefault(", ".join(changed), []).append(store.label(job))
            todo.append((job, keep, options))
        else:
            done += 1
    if done:
        print(f"{done} of {len(wanted)} runs are finished already")
    for why, labels in stale.items():
        print(f"{len(labels)} finished with another {why}, run again: {labels[0]}{' ...' if labels[1:] else ''}")
    return todo


class Progress:
    """The line of progress, and a line for each run that failed."""

    def __init__(self, planner, jobs):
        self.planner, self.jobs, self.told = planner, jobs, set()

    def __call__(self, all_runs, began):
        for run in all_runs:
            if run in self.told:
                continue
            if run.failure:
                runs.say(f"{run.name}: FAILED: {run.failure}; log: {run.log}", over=False)
            elif run.done:
                self.planner.learn(runs.predicted_s(run.job), run.wall_s)
            if run.failure or run.done:
                self.told.add(run)
        now = time.monotonic()
        busy = [r for r in all_runs if r.process and r not in self.told]
        left = self.planner.left([r.job for r in all_runs if not r.process],
                                 [(r.job, now - r.began, r.progress()) for r in busy], self.jobs)
        failed = sum(bool(r.failure) for r in all_runs)
        parts = [f"{r.name.removesuffix('/seed-1')} {r.progress():.0%}" for r in busy]
        runs.say(f"[{duration(now - began)}] {len(self.told)}/{len(all_runs)}" +
                 (f", {failed} failed" if failed else "") + f", {duration(left)} left: " + "  ".join(parts))


def do_run(args):
    """Run what is not finished; 0 if all of it is then, 1 if something failed."""
    wanted, results = jobs_of(args), store.Store(directory_of(args))
    if args.plan:
        planner = runs.Planner(known_times(results))
        for job, *_ in wanted:
            print(f"{store.label(job):48} {duration(planner.seconds(job)):>8}"
                  f"{'  finished' if results.meta(job) else ''}\n    tc qdisc add ... {job['qdisc']}" +
                  f"\n    tc qdisc add ... {job.get('child')}" * ("child" in job))
        total = planner.left([job for job, *_ in wanted], [], args.jobs)
        print(f"{len(wanted)} runs, about {duration(total)} with {args.jobs} at a time")
        return 0
    return execute(wanted, results, args)


def do_campaign(args):
    """Run the steps of the campaign; 0 if all that was wanted is finished then, 1 if something failed."""
    plan = campaign.Campaign(args.evaluation)
    wanted = plan.wanted(args.step, {key: getattr(args, key) for key in campaign.FILTERS}, args.seeds)
    results = store.Store(args.results)
    import claims     # (numpy takes its time to load)
    import published
    there = published.Published(args.evaluation)
    labels = set() if args.again else there.of(plan.planned, claims.read(args.evaluation)[1])
    if args.plan:
        planner = runs.Planner(known_times(results))
        print("\n".join(campaign.overview(wanted, results, labels,
                                          lambda todo: duration(planner.left(todo, [], args.jobs)))))
        return 0

    def begin(bench):
        campaign.pin(results, bench)
        if not (other := there.other_than(bench.identity())):
            return labels
        if labels:
            print(f"{len(labels)} runs in {os.path.relpath(args.evaluation)} are of another {', '.join(other)}, "
                  "run again")
        return set()
    return execute([(p.job, p.keep, p.options) for p in wanted], results, args, begin)


def execute(wanted, results, args, begin=None):
    """Run what is not finished of (job, whether to keep raw data, options).

    begin: called with the bench; returns labels of runs that need not be made.
    """
    directory, planner = results.directory, runs.Planner(known_times(results))
    results.lock()
    bench = runs.Bench(*(any(uses(job) for job, *_ in wanted) for uses in (
        runs.of_companions, runs.uses_udp_prague, runs.is_time_shifted)))
    published = begin(bench) if begin else set()
    if mine := sum(store.label(job) in published for job, *_ in wanted):
        print(f"{mine} of {len(wanted)} runs are published already")
    todo = select([one for one in wanted if store.label(one[0]) not in published], results, bench)
    if not todo:
        print(f"nothing to run; results are in {directory}")
        return 0
    obstacles = list(runs.obstacles([job for job, *_ in todo], args.jobs, directory, any(keep for _, keep, _ in todo)))
    for what in obstacles:
        print(f"lab: {what}", file=sys.stderr)
    if obstacles:
        return 1
    total = duration(planner.left([job for job, *_ in todo], [], args.jobs))
    print(f"{len(todo)} runs, {args.jobs} at a time: about {total}", flush=True)
    started = [runs.JobRun(job, bench, results, args.timeout or
                           max(runs.LEAST_LIMIT_S, math.ceil(runs.PATIENCE * planner.seconds(job))), keep, options)
               for job, keep, options in todo]
    runs.run_all(started, bench.built, args.jobs, Progress(planner, args.jobs))
    failed = [r for r in started if r.failure]
    print(f"{len(started) - len(failed)} runs finished, {len(failed)} failed; results are in {directory}")
    for run in failed:
        print(f"  {run.name}: {run.failure}")
    return 1 if failed else 0


def do_report(args):
    """Write the report of the results."""
    if not store.Store(args.results).runs():
        raise store.StoreError(f"no results in {args.results}; make some with `scripts/lab.sh run`")
    import report  # (matplotlib takes its time to load)
    report.main(args.results, args.out, args.brief, l4s_of(args))
    return 0


def do_publish(args):
    """Write evaluation/ from the campaign's results."""
    import publish  # (numpy takes its time to load)
    print("\n".join(publish.write(args.results, args.evaluation, args.replace)))
    return 0


def l4s_of(args):
    """The L4S sender whose runs are meant: that of --l4s, or senders.toml's own, or the only one that was run."""
    there = {run.sender for run in store.Store(args.results).runs()} & set(scenario.scalable())
    own = scenario.senders()["l4s"]["cc"]
    if args.l4s or not there or own in there:
        return args.l4s or own
    if len(there) > 1:
        raise store.StoreError(f"{args.results} has runs with {', '.join(sorted(there))}; choose one with --l4s")
    return there.pop()


def do_companions(args):
    """Print what the companions did beside the other AQMs."""
    import companions  # (numpy and matplotlib take their time to load)
    import results
    print(companions.page(results.load(args.results, l4s_of(args))), end="")
    return 0


def figures(found):
    """What `compare` shows of a run: A's P99 and mean delay in ms, utilization in %, rate of an A flow over a B flow.

    None for what the run does not have.
    """
    import results  # (numpy takes its time to load)
    run = results.Result(found.directory, found.meta)
    return (run.of("A", "delay_ms", "p99"), run.of("A", "delay_ms"), run.figure("all", "utilization_pct"),
            run.rate_ratio())


def mean(values):
    """The mean of values, None if one of them is None."""
    return None if None in values or not values else sum(values) / len(values)


def comparison(left, right, pattern="*"):
    """Lines of a Markdown table of all cells that both sides have.

    left, right: {(experiment, case, ...): {seed: Found}}; of
    several seeds the mean of those that both have.
    """
    head = ["cell", "seeds", "A P99 ms", "", "ratio", "A mean ms", "", "ratio", "utilization %", "", "rate A/B", ""]
    rows, logs = [], []
    for cell in left:
        seeds = sorted(set(left[cell]) & set(right.get(cell, ())))
        if not seeds or not fnmatch.fnmatchcase(cell[1], pattern):
            continue
        a, b = ([mean(column) for column in zip(*(figures(side[cell][s]) for s in seeds), strict=True)]
                for side in (left, right))
        row = ["/".join(cell), str(len(seeds))]
        for n, (digits, ratio) in enumerate(((3, True), (3, True), (2, False), (2, False))):
            row += ["-" if v is None else f"{v:.{digits}f}" for v in (a[n], b[n])]
            if ratio:
                row.append(f"{a[n] / b[n]:.2f}" if a[n] is not None and b[n] else "-")
        rows.append(row)
        if a[0] and b[0]:
            logs.append(math.log(a[0] / b[0]))
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))])
             + " |" for r in [head, ["-" * w for w in widths], *rows]]
    if logs:
        lines += ["", f"cells: {len(rows)}; P99 ratio: geometric mean {math.exp(sum(logs) / len(logs)):.3f}, "
                  f"{math.exp(min(logs)):.2f} to {math.exp(max(logs)):.2f}"]
    return lines if rows else []


def cells(found, aqm=None):
    """{cell: {seed: Found}} of runs: cells are (experiment, case) of one AQM, or (experiment, case, aqm, sender)."""
    made = {}
    for run in found:
        if aqm in (None, run.aqm):
            made.setdefault(run[:2] if aqm else run[:4], {})[run.seed] = run
    return made


def do_compare(args):
    """Print the table of two AQMs in one results directory, or of two results directories."""
    if os.path.isdir(args.a) and os.path.isdir(args.b):
        sides = [cells(store.Store(d).runs()) for d in (args.a, args.b)]
    else:
        for name in (args.a, args.b):
            scenario.matching([name], scenario.aqms(), "AQM or directory")
        import results  # (numpy takes its time to load)
        found = results.of_sender(store.Store(args.results).runs(), l4s_of(args))
        sides = [cells(found, name) for name in (args.a, args.b)]
    lines = comparison(*sides, args.case)
    if not lines:
        raise store.StoreError(f"{args.a} and {args.b} have no cell in common; make some with "
                               f"`scripts/lab.sh run EXPERIMENT --aqm {args.a},{args.b}`")
    for name, side in zip((args.a, args.b), sides, strict=True):
        made = [run for seeds in side.values() for run in seeds.values()]
        for line in store.mixtures(made):
            print(f"WARNING, not all made alike: {line}")
        print(f"{name}: {'; '.join(sorted({store.made_with(run.meta) for run in made}))}")
    print(f"Left of each pair: {args.a}, right: {args.b}. A is the group named A, B the one named B.\n")
    print("\n".join(lines))
    return 0


def campaign_arguments(sub, name, jobs):
    """The arguments of `campaign` and `publish`."""
    sub.add_argument("--evaluation", default=campaign.EVALUATION, metavar="DIR",
                     help="where claims.toml and campaign.toml are (default: evaluation)")
    if name == "publish":
        sub.add_argument("--replace", action="store_true", help="drop published runs of another build")
        return
    sub.add_argument("--step", type=campaign.numbers, metavar="N,...", help="only these steps: 1,3-5")
    for key in campaign.FILTERS:
        sub.add_argument(f"--{key}", metavar="PATTERN,...", help=f"only these {campaign.FILTERS[key]}")
    sub.add_argument("--seeds", type=seed_range, metavar="N|FROM-TO", help="only these seeds (default: the steps')")
    sub.add_argument("--jobs", **jobs)
    sub.add_argument("--timeout", type=at_least_1, metavar="S", help="wall clock that a machine may take")
    sub.add_argument("--again", action="store_true", help="runs that are published, too")
    sub.add_argument("--plan", "--dry-run", action="store_true", help="only say what would run, and how long")


def parser():
    """The arguments."""
    top = Parser(prog="lab", description=__doc__.split("\n", maxsplit=1)[0])
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)

    def command(name, function, text, directory=RESULTS):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        sub.add_argument("--results", default=directory, metavar="DIR",
                         help=f"default: {os.path.relpath(directory, runs.ROOT)}")
        return sub

    processors = len(os.sched_getaffinity(0))
    jobs = {"type": at_least_1, "default": processors, "metavar": "N",
            "help": f"machines at a time (default: one a processor, {processors})"}
    one_sender = {"choices": scenario.scalable(), "metavar": "CC", "help": "only runs with this L4S sender (default: "
                  "that of senders.toml, or the only one there is), and those without one"}
    sub = command("list", do_list, "what experiments there are, how many runs, how long")
    sub.add_argument("experiment", nargs="?", help="show its cases")
    sub.add_argument("--jobs", **jobs)
    sub = command("run", do_run, "run experiments; what is finished is not run again")
    sub.add_argument("experiment", nargs="+", help="names or patterns, as `list` shows them")
    sub.add_argument("--case", default="*", metavar="PATTERN", help="only these cases")
    sub.add_argument("--aqm", metavar="NAME,...", help="these AQMs (names or patterns) in place of the experiment's")
    sub.add_argument("--jobs", **jobs)
    sub.add_argument("--seeds", type=seed_range, default=range(1, 2), metavar="N|FROM-TO",
                     help="repetitions, each with another seed (default 1)")
    sub.add_argument("--seconds", type=at_least_1, metavar="N",
                     help="measured seconds, in place of the experiment's; goes to build/lab/results-Ns")
    sub.add_argument("--l4s", choices=scenario.instead(), metavar="CC",
                     help="congestion control, or variant in senders.toml, in place of the L4S sender's (prague)")
    sub.add_argument("--keep-raw", action="store_true",
                     help="keep the sightings of every packet (48 bytes each) and a capture of the first 5 s")
    sub.add_argument("--timeout", type=at_least_1, metavar="S", help="wall clock that a machine may take")
    sub.add_argument("--plan", "--dry-run", action="store_true", help="only say what would run, and how long")
    for command_, function, text in (
            ("campaign", do_campaign, "run the steps of evaluation/campaign.toml; what is finished is not run again"),
            ("publish", do_publish, "write evaluation/ from the results of the campaign")):
        campaign_arguments(command(command_, function, text, campaign.RESULTS), command_, jobs)
    sub = command("report", do_report, "draw the figures and write the report page")
    sub.add_argument("--out", default=REPORT, metavar="DIR", help="default: build/lab/report")
    sub.add_argument("--brief", action="store_true", help="the tables only, without pictures and files for flent")
    sub.add_argument("--l4s", **one_sender)
    sub = command("companions", do_companions, "PI2, STEP, CSAQM and VDQ-CSAQM beside the other AQMs, as Markdown")
    sub.add_argument("--l4s", **one_sender)
    sub = command("compare", do_compare, "two AQMs, or two results directories, in all cells that both have")
    sub.add_argument("a", metavar="A")
    sub.add_argument("b", metavar="B")
    sub.add_argument("--l4s", **one_sender)
    sub.add_argument("--case", default="*", metavar="PATTERN", help="only these cases")
    return top


def main(words=None):
    """Run the command of the words (or of the program's arguments); the exit code is 2 for bad input, 1 for failure."""
    try:
        args = parser().parse_args(words)
        return args.function(args)
    except scenario.ScenarioError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except (store.StoreError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nlab: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
