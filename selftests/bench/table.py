#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a table of what cost.py or shaper.py counted, and judge the cost of the statistics or of the shaper.

usage: table.py [--ktap] [--most N] RESULT.json...

Exit code 1 if the statistics cost more than N instructions per packet, or if the shaper costs more than cake's. Of each
figure's repetitions the least counts: what an interrupt adds is not the qdisc's.
"""

import argparse
import json
import statistics
import sys

MOST = 15


def rows(result):
    """[(load, {name: least}, {name: greatest less least})] of one result."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--most", type=float, default=MOST, help=f"instructions per packet (default {MOST})")
    parser.add_argument("--ktap", action="store_true")
    parser.add_argument("result", nargs="+")
    args = parser.parse_args()
    checks, lines = [], []
    for path in args.result:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        more, verdicts = shaper_judged(result) if result.get("bench") == "shaper" else \
            statistics_judged(result, args.most)
        lines += more
        checks += verdicts
    if args.ktap:
        print(f"KTAP version 1\n1..{len(checks)}")
    print("\n".join(f"# {line}".rstrip() if args.ktap else line for line in lines))
    for number, (name, good) in enumerate(checks, 1):
        if args.ktap:
            print(f"{'' if good else 'not '}ok {number} {name}")
        elif not good:
            print(f"FAILED: {name}")
    return 0 if all(good for _, good in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
