#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a table of what cost.py or shaper.py counted, and judge it: the cost of the statistics or of the shaper, or
of the whole module compared with the baseline.

usage: table.py [--ktap] [--most N] [--baseline FILE] [--save-baseline FILE] RESULT.json...
       table.py [--baseline FILE] --knows X.Y

Exit code 1 if the statistics cost more than N instructions per packet, if the shaper costs more than cake's, if the
module costs more than the baseline says, if vdq_csaqm costs more than twice dualpi2 with its shaper, or if
figures do not repeat. Of each figure's repetitions the minimum counts, because an interrupt is not the qdisc's;
against the baseline, where packets wait, the median counts, see figures(). --save-baseline writes a baseline and does
not judge.
"""

import argparse
import json
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

from ktap import report  # noqa: E402

MOST = 15
# Maximum cost of vdq_csaqm, as a multiple of dualpi2 with its shaper.
COMPANION_MOST, SHAPER = 2, "bandwidth 1tbit"
OURS, IN_TREE, PFIFO, NO_QDISC = "dualpi2", "in-tree", "pfifo", "no qdisc"
# All that are compared. The empty ones of these are bypassed at the root, and at a queue of mq: no packet sees them.
SUBJECTS = (NO_QDISC, PFIFO, "codel", "fq_codel", "pie", "fq", "cake", IN_TREE, OURS)
BYPASSED = (PFIFO, "codel", "fq_codel")
# Repetitions that differ by more are no figure.
REPEATS_PCT = 0.5
# A change of the cost is told from this on; fewer instructions than that come and go with the length of an interrupt.
CHANGE_PCT, CHANGE_INSTRUCTIONS = 2, 2
# Where packets wait there is one interrupt more or less among a hundred: 10.4 to 10.7 a packet in 2 of 12 repetitions.
CHANGE_WAITING = 12
BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline.json")
SAVE = "scripts/bench.sh compare --save-baseline"


class BadInputError(Exception):
    """What is asked for cannot be done with what there is; says in one line why."""


def rows(result):
    """[(load, {name: minimum}, {name: maximum - minimum})] of one result."""
    return [(load, {n: min(v) for n, v in found.items()}, {n: max(v) - min(v) for n, v in found.items()})
            for load, found in result["loads"].items()]


def cost(least, part):
    """What a part costs: the module as it is, less the one without that part; None if that was not measured."""
    return least["now"] - least[part] if part in least else None


def shaper_costs(least):
    """{what was asked of the shaper: (what dualpi2's costs, what cake's costs)} under one load."""
    return {variant: tuple(least[f"{name}, {variant}"] - least[f"{name}, none"] for name in ("dualpi2", "cake"))
            for variant in (n.split(", ", 1)[1] for n in least if n.startswith("dualpi2, ")) if variant != "none"}


def shaper_judged(result):
    """(lines, checks) of what shaper.py counted: a check is (name, whether it holds)."""
    head = [f"Linux {result['kernel']}", "asked of it", "dualpi2: without", "with", "cost", "cake: without", "with",
            "cost", "dualpi2's / cake's", "spread"]
    lines, checks = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)], []
    for load, least, spread in rows(result):
        for variant, (ours, cakes) in shaper_costs(least).items():
            cells = [load, variant]
            for name, extra in (("dualpi2", ours), ("cake", cakes)):
                cells += [f"{least[f'{name}, none']:.0f}", f"{least[f'{name}, {variant}']:.0f}", f"{extra:+.0f}"]
            cells += [f"{ours / cakes:.2f}" if cakes > 0 else "-", f"{max(spread.values()):.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
            checks.append((f"shaper_costs_no_more_than_cakes {load}: {variant} on {result['kernel']}", ours <= cakes))
    return [*lines, ""], checks


def statistics_judged(result, most):
    """(lines, checks) of what cost.py counted: a check is (name, whether it holds)."""
    costs = {load: cost(least, "no-stats") for load, least, _ in rows(result)}
    worst = max(costs, key=costs.get)
    lines = [*table(result), "", f"Statistics: {statistics.fmean(costs.values()):.1f} instructions per packet on "
             f"average, {costs[worst]:.1f} at most ({worst}); {most:g} allowed.", ""]
    # Where nothing at all is saved the macro empties nothing, and the figure says nothing.
    return lines, [(f"statistics_cost_at_most_{most:g}_instructions on {result['kernel']}", costs[worst] <= most),
                   (f"module_without_statistics_is_cheaper on {result['kernel']}", min(costs.values()) > 0)]


def series(result):
    """The kernel's series, like 7.2."""
    return ".".join(re.split(r"[.+-]", result["kernel"])[:2])


def unsteady(result):
    """Figures whose repetitions differ by too much, a line of each."""
    return [f"{name}, {load}: {min(v):.1f} to {max(v):.1f} instructions" for load, found in result["loads"].items()
            for name, v in found.items() if max(v) - min(v) > REPEATS_PCT / 100 * min(v)]


def steady(result):
    """(lines, checks): whether the figures of a result repeat."""
    lines = unsteady(result)
    return [f"Does not repeat: {line}" for line in lines], \
        [(f"figures_repeat_within_{REPEATS_PCT}_per_cent on {result['kernel']}", not lines)]


def base(load):
    """What the qdiscs under a load are held against."""
    return NO_QDISC if load.startswith("root") else PFIFO


def cell(name, load, least):
    """One qdisc's figures under one load."""
    if name not in least:
        return "-"
    bypassed = "*" * (name in BYPASSED and load.startswith(("root, queue empty", "below mq")))
    over = f" ({least[name] - least[base(load)]:+.0f})" if base(load) != name else ""
    return f"{least[name]:.0f}{over}{bypassed}"


def options_of(result):
    """{option, and parent unless prio: {codepoint: (additional cost of a packet, spread)}}, of dualpi2."""
    found = {}
    for load, least, spread in rows(result):
        place, _, option = load.partition(": ")
        if option:
            without = min(result["loads"][place][OURS])
            where = "" if place.startswith("below prio, ") else f" ({place.split(', ')[0]})"
            found.setdefault(option + where, {})[place.rsplit(", ", 1)[1]] = (least[OURS] - without, spread[OURS])
    return found


def compared(result):
    """Lines of Markdown: all qdiscs under all loads, and what the options of dualpi2 cost."""
    names = [n for n in SUBJECTS if any(n in found for found in result["loads"].values())]
    head = [f"Linux {result['kernel']}", *names, "over", "spread"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(names) + "---|---:|"]
    for load, least, spread in rows(result):
        if ": " not in load:
            cells = [load, *(cell(n, load, least) for n in names), base(load), f"{max(spread.values()):.1f}"]
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Instructions per packet (of GSO, per packet before it is split), in brackets over what \"over\" "
              f"says. Nothing is marked or dropped, where not said. {IN_TREE}: the in-tree dualpi2. -: takes no part; "
              "what does not in \"split\" sends all whole, as pfifo does there. *: bypassed: an empty "
              f"{', '.join(BYPASSED)} does not see the packet.", ""]
    if missing := [n for n in SUBJECTS if n not in names]:
        lines += [f"Left out: {', '.join(missing)}.", ""]
    if options := options_of(result):
        lines += [f"| {OURS} below prio, or (elsewhere), queue empty | Classic | L4S | spread |",
                  "|---|---:|---:|---:|"]
        for option, costs in options.items():
            lines.append(f"| {option} | " + " | ".join(f"{costs[word][0]:+.0f}" for word in ("Classic", "L4S")) +
                         f" | {max(s for _, s in costs.values()):.1f} |")
        lines += ["", "Instructions per packet over those with the quiet settings alone.", ""]
    return lines


def companions(result):
    """(lines, checks): the companions compared with dualpi2; vdq_csaqm, which has a shaper, with dualpi2's shaper."""
    names, last = list(next(iter(result["loads"].values()))), "vdq_csaqm"
    names = [n for n in SUBJECTS if n in names] + [n for n in names if n not in SUBJECTS]
    head = [f"Linux {result['kernel']}", *names, f"{OURS} {SHAPER}", "over", f"{last} / {OURS} {SHAPER}", "spread"]
    lines, checks = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 4) + "---:|---|---:|---:|"], []
    found = {load: (least, spread) for load, least, spread in rows(result)}
    for load, (least, spread) in found.items():
        if ": " in load:
            continue
        least["shaped"], floor = found[f"{load}: {SHAPER}"][0][OURS], least[base(load)]
        ratio = (least[last] - floor) / (least["shaped"] - floor)
        cells = [load, *(cell(n, load, least) for n in [*names, "shaped"]), base(load), f"{ratio:.2f}",
                 f"{max(spread.values()):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
        checks.append((f"{last}_costs_at_most_{COMPANION_MOST}_of_{OURS} {load} on {result['kernel']}",
                       ratio <= COMPANION_MOST))
    return [*lines, ""], checks


def bars(result, place):
    """[(qdisc, {codepoint: instructions over pfifo})] at one place, the cheapest first; for the plot."""
    found = {}
    for word in ("Classic", "L4S"):
        counted = result["loads"][f"{place}, {word}"]
        for name, values in counted.items():
            if name != PFIFO:
                found.setdefault(name, {})[word] = min(values) - min(counted[PFIFO])
    return sorted(found.items(), key=lambda item: max(item[1].values()))


def figures(result):
    """{load: cost of dualpi2 more than pfifo} of what check counts.

    Where packets wait, of repetitions the median: some have an interrupt less. Elsewhere the minimum, which is exact.
    """
    def of(load, counted):
        return (statistics.median if "waiting" in load else min)(counted)

    return {load: round(of(load, found[OURS]) - of(load, found[PFIFO]), 1) for load, found in result["loads"].items()}


def read_baseline(path):
    """{series: {"release": of the kernel, "over_pfifo": {load: instructions}}}."""
    try:
        with open(path, encoding="utf-8") as file:
            saved = json.load(file)
        for entry in saved.values():
            entry["release"].split()
            assert entry["over_pfifo"] and all(isinstance(v, (int, float)) for v in entry["over_pfifo"].values())
    except FileNotFoundError:
        raise BadInputError(f"no baseline in {path}; write one by {SAVE}") from None
    except (OSError, ValueError, AttributeError, KeyError, TypeError, AssertionError):
        raise BadInputError(f"{path} is no baseline; remove it and write one by {SAVE}") from None
    return saved


def save_baseline(path, results):
    """Write the figures of these results; those of other kernels stay as they are."""
    saved = read_baseline(path) if os.path.exists(path) else {}
    for result in results:
        saved[series(result)] = {"release": result["kernel"], "over_pfifo": figures(result)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(sorted(saved.items())), file, indent=1)
        file.write("\n")
    return [f"Saved in {os.path.relpath(path)}: {', '.join(series(r) for r in results)}", ""]


def entry_of(saved, kernel):
    """What the baseline has of one kernel."""
    if kernel not in saved:
        raise BadInputError(f"the baseline knows Linux {', '.join(saved)}, not {kernel}; add it by {SAVE} --kernel "
                            f"{kernel}")
    return saved[kernel]


def compared_with_baseline(result, saved, every):
    """(lines, checks): dualpi2 less pfifo, compared with the same of the baseline; every: also loads that cost as much,
    whose last digit is another in each run.
    """
    kernel = series(result)
    was, now = entry_of(saved, kernel)["over_pfifo"], figures(result)
    if set(was) != set(now):
        raise BadInputError(f"the baseline for Linux {kernel} is of other loads than are counted today; write it again "
                            f"by {SAVE} --kernel {kernel}")
    head = [f"Linux {result['kernel']}, over pfifo", "baseline", "now", "change"]
    lines, checks, fell = ["| " + " | ".join(head) + " |", "|---|---:|---:|---:|"], [], []
    for load, figure in now.items():
        change = figure - was[load]
        least = max(CHANGE_PCT / 100 * abs(was[load]), CHANGE_WAITING if "waiting" in load else CHANGE_INSTRUCTIONS)
        digits = 1 if change > least else 0  # tenths do not repeat from run to run
        before, after = round(was[load], digits), round(figure, digits)
        percent = f" ({(after - before) / was[load] * 100:+.{digits}f} %)" if was[load] else ""
        if every or abs(change) > least:
            cells = [load, f"{before:.{digits}f}", f"{after:.{digits}f}", f"{after - before:+.{digits}f}{percent}"]
            lines.append("| " + " | ".join(cells) + " |")
        checks.append((f"costs_no_more_than_the_baseline {load} on {kernel}", change <= least))
        if change < -least:
            fell.append(load)
    lines += ["", f"A rise by more than {CHANGE_PCT} % and more than {CHANGE_INSTRUCTIONS} instructions "
              f"({CHANGE_WAITING} where packets wait) fails. Baseline: Linux {saved[kernel]['release']}.", ""]
    if fell:
        lines += [f"Cheaper than the baseline: {'; '.join(fell)}. Save it: {SAVE} --kernel {kernel}", ""]
    return lines, checks


def table(result):
    """Lines of Markdown."""
    names = list(next(iter(result["loads"].values())))
    head = [f"Linux {result['kernel']}", *names, "statistics", "tracepoint", "spread"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for load, least, spread in rows(result):
        parts = [cost(least, part) for part in ("no-stats", "no-trace")]
        cells = [*(f"{least[n]:.1f}" for n in names), *("-" if p is None else f"{p:+.1f}" for p in parts),
                 f"{max(spread.values()):.1f}"]
        lines.append(f"| {load} | " + " | ".join(cells) + " |")
    return lines


def judged(result, args, saved):
    """(lines, checks) of one result."""
    bench = result.get("bench")
    if bench == "shaper":
        return shaper_judged(result)
    if bench == "compare":
        lines, checks = steady(result)
        return compared(result) + lines, checks
    if bench == "marking":
        lines, checks = steady(result)
        head = [f"| Linux {result['kernel']} | {OURS}, over pfifo |", "|---|---:|"]
        return head + [f"| {load} | {figure:.0f} |" for load, figure in figures(result).items()] + lines, checks
    if bench == "companions":
        lines, checks = companions(result)
        more, verdicts = steady(result)
        return lines + more, checks + verdicts
    if bench == "check":
        lines, checks = steady(result)
        if saved is None:
            return lines, checks
        more, verdicts = compared_with_baseline(result, saved, not args.ktap)
        return more + lines, verdicts + checks
    return statistics_judged(result, args.most)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--most", type=float, default=MOST, help=f"instructions per packet (default {MOST})")
    parser.add_argument("--ktap", action="store_true")
    parser.add_argument("--baseline", default=BASELINE, metavar="FILE")
    parser.add_argument("--save-baseline", metavar="FILE")
    parser.add_argument("--knows", metavar="X.Y", help="say only whether the baseline has that kernel")
    parser.add_argument("result", nargs="*")
    args = parser.parse_args()
    checks, lines, results = [], [], []
    try:
        if args.knows:
            entry_of(read_baseline(args.baseline), args.knows)
            return 0
        for path in args.result:
            with open(path, encoding="utf-8") as file:
                results.append(json.load(file))
        checking = [r for r in results if r.get("bench") == "check"]
        saved = read_baseline(args.baseline) if checking and not args.save_baseline else None
        for result in results:
            more, verdicts = judged(result, args, saved)
            lines += more
            checks += verdicts
        if args.save_baseline and all(good for _, good in checks):
            lines += save_baseline(args.save_baseline, checking)
    except BadInputError as error:
        sys.exit(f"bench: {error}")
    return report(checks, lines, args.ktap)


if __name__ == "__main__":
    sys.exit(main())
