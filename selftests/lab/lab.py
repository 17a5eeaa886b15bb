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
    found = sorted(results.runs(), key=lambda run: os.path.getmtime(run[4]))
    return [(run[5]["predicted_seconds"], run[5]["wall_seconds"]) for run in found]


def jobs_of(args):
    """Jobs that the arguments of `run` mean, with whether to keep raw data of each: pairs."""
    aqms = args.aqm.split(",") if args.aqm else None
    found, cases = [], []
    for name in scenario.matching(args.experiment, scenario.names(), "experiment"):
        experiment = scenario.Experiment(name, l4s_cc=args.l4s)
        keep = args.keep_raw or experiment.keep_raw
        found += [(job, keep) for job in experiment.jobs(aqms, args.case, args.seeds, args.seconds)]
        cases += experiment.cases()
    if not found:
        raise scenario.ScenarioError(f"no case '{args.case}' in {', '.join(args.experiment)}; there are "
                                     f"{', '.join(cases)}")
    return found


def directory_of(args):
    """Where `run` puts its results: those of another length or sender must not replace the experiment's own."""
    if args.results != RESULTS:
        return args.results
    return RESULTS + (f"-{args.l4s}" if args.l4s else "") + (f"-{args.seconds}s" if args.seconds else "")


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
    """Of pairs (job, keep raw) those that are still to be run; says how many are done and which are stale."""
    todo, done, stale = [], 0, {}
    for job, keep in wanted:
        meta = results.meta(job)
        if meta is None:
            todo.append((job, keep))
            continue
        changed = stale_because(meta, bench.made_of(job))
        if not changed and keep and not os.path.exists(os.path.join(results.place(job), "sightings")):
            changed = ["--keep-raw"]
        if changed:
            stale.setdefault(", ".join(changed), []).append(store.label(job))
            todo.append((job, keep))
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
    wanted = jobs_of(args)
    directory = directory_of(args)
    results = store.Store(directory)
    planner = runs.Planner(known_times(results))
    if args.plan:
        total = planner.left([job for job, _ in wanted], [], args.jobs)
        for job, _ in wanted:
            print(f"{store.label(job):48} {duration(planner.seconds(job)):>8}"
                  f"{'  finished' if results.meta(job) else ''}\n    tc qdisc add ... {job['qdisc']}" +
                  f"\n    tc qdisc add ... {job.get('child')}" * ("child" in job))
        print(f"{len(wanted)} runs, about {duration(total)} with {args.jobs} at a time")
        return 0
    results.lock()
    bench = runs.Bench(*(any(uses(job) for job, _ in wanted) for uses in (runs.of_companions, runs.uses_udp_prague)))
    todo = select(wanted, results, bench)
    if not todo:
        print(f"nothing to run; results are in {directory}")
        return 0
    obstacles = list(runs.obstacles([job for job, _ in todo], args.jobs, directory, any(keep for _, keep in todo)))
    for what in obstacles:
        print(f"lab: {what}", file=sys.stderr)
    if obstacles:
        return 1
    total = duration(planner.left([job for job, _ in todo], [], args.jobs))
    print(f"{len(todo)} runs, {args.jobs} at a time: about {total}", flush=True)
    options = (f" --l4s {args.l4s}" if args.l4s else "") + (f" --seconds {args.seconds}" if args.seconds else "")
    started = [runs.JobRun(job, bench, results, args.timeout or
                           max(runs.LEAST_LIMIT_S, math.ceil(runs.PATIENCE * planner.seconds(job))), keep, options)
               for job, keep in todo]
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
    report.main(args.results, args.out, args.brief)
    return 0


def do_companions(args):
    """Print what the companions did beside the other AQMs."""
    import companions  # (numpy and matplotlib take their time to load)
    import results
    print(companions.page(results.load(args.results)), end="")
    return 0


def figures(directory, meta):
    """What `compare` shows of a run: A's P99 and mean delay in ms, utilization in %, rate of an A flow over a B flow.

    None for what the run does not have.
    """
    import results  # (numpy takes its time to load)
    run = results.Result(directory, meta)
    return (run.of("A", "delay_ms", "p99"), run.of("A", "delay_ms"), run.figure("all", "utilization_pct"),
            run.rate_ratio())


def mean(values):
    """The mean of values, None if one of them is None."""
    return None if None in values or not values else sum(values) / len(values)


def comparison(left, right, pattern="*"):
    """Lines of a Markdown table of all cells that both sides have.

    left, right: {(experiment, case, ...): {seed: (directory, meta)}}; of
    several seeds the mean of those that both have.
    """
    head = ["cell", "seeds", "A P99 ms", "", "ratio", "A mean ms", "", "ratio", "utilization %", "", "rate A/B", ""]
    rows, logs = [], []
    for cell in left:
        seeds = sorted(set(left[cell]) & set(right.get(cell, ())))
        if not seeds or not fnmatch.fnmatchcase(cell[1], pattern):
            continue
        a, b = ([mean(column) for column in zip(*(figures(*side[cell][s]) for s in seeds), strict=True)]
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


def cells(results, aqm=None):
    """{cell: {seed: (directory, meta)}}: cells are (experiment, case) of one AQM, or (experiment, case, aqm) of all."""
    found = {}
    for experiment, case, name, seed, directory, meta in results.runs():
        if aqm in (None, name):
            found.setdefault((experiment, case) if aqm else (experiment, case, name), {})[seed] = directory, meta
    return found


def do_compare(args):
    """Print the table of two AQMs in one results directory, or of two results directories."""
    if os.path.isdir(args.a) and os.path.isdir(args.b):
        sides = [cells(store.Store(d)) for d in (args.a, args.b)]
    else:
        for name in (args.a, args.b):
            scenario.matching([name], scenario.aqms(), "AQM or directory")
        sides = [cells(store.Store(args.results), name) for name in (args.a, args.b)]
    lines = comparison(*sides, args.case)
    if not lines:
        raise store.StoreError(f"{args.a} and {args.b} have no cell in common; make some with "
                               f"`scripts/lab.sh run EXPERIMENT --aqm {args.a},{args.b}`")
    for name, side in zip((args.a, args.b), sides, strict=True):
        # Keys of a side are (experiment, case), with the AQM if it was not chosen.
        made = [(*(*cell, name)[:3], seed, *run) for cell, seeds in side.items() for seed, run in seeds.items()]
        for line in store.mixtures(made):
            print(f"WARNING, not all made alike: {line}")
        print(f"{name}: {'; '.join(sorted({store.made_with(run[-1]) for run in made}))}")
    print(f"Left of each pair: {args.a}, right: {args.b}. A is the group named A, B the one named B.\n")
    print("\n".join(lines))
    return 0


def parser():
    """The arguments."""
    top = Parser(prog="lab", description=__doc__.split("\n", maxsplit=1)[0])
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)

    def command(name, function, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        sub.add_argument("--results", default=RESULTS, metavar="DIR", help="default: build/lab/results")
        return sub

    processors = len(os.sched_getaffinity(0))
    jobs = {"type": at_least_1, "default": processors, "metavar": "N",
            "help": f"machines at a time (default: one a processor, {processors})"}
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
    sub.add_argument("--l4s", choices=scenario.CCS, metavar="CC",
                     help="congestion control of L4S senders (prague), in place of that in senders.toml; goes to "
                     "build/lab/results-CC")
    sub.add_argument("--keep-raw", action="store_true", help="keep the sightings of every packet (48 bytes each)")
    sub.add_argument("--timeout", type=at_least_1, metavar="S", help="wall clock that a machine may take")
    sub.add_argument("--plan", "--dry-run", action="store_true", help="only say what would run, and how long")
    sub = command("report", do_report, "draw the figures and write the report page")
    sub.add_argument("--out", default=REPORT, metavar="DIR", help="default: build/lab/report")
    sub.add_argument("--brief", action="store_true", help="the tables only, without pictures and files for flent")
    command("companions", do_companions, "PI2, STEP, CSAQM and VDQ-CSAQM beside the other AQMs, as Markdown")
    sub = command("compare", do_compare, "two AQMs, or two results directories, in all cells that both have")
    sub.add_argument("a", metavar="A")
    sub.add_argument("b", metavar="B")
    sub.add_argument("--case", default="*", metavar="PATTERN", help="only these cases")
    return top


def main(words=None):
    """Run the command of the words (or of the program's arguments); the exit code is 2 for bad input, 1 for failure."""
    args = parser().parse_args(words)
    try:
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
