#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a table of what cost.py counted, and judge the cost of the statistics.

usage: table.py [--ktap] [--most N] RESULT.json...      exit code 1 if they cost more than N instructions per packet

Of each figure's repetitions the least counts: what an interrupt adds is not the qdisc's.
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
        costs = {load: cost(least, "no-stats") for load, least, _ in rows(result)}
        mean = statistics.fmean(costs.values())
        worst = max(costs, key=costs.get)
        lines += [*table(result), "", f"Statistics: {mean:.1f} instructions per packet on average, {costs[worst]:.1f} "
                  f"at most ({worst}); {args.most:g} allowed.", ""]
        # Where nothing at all is saved the macro empties nothing, and the figure says nothing.
        checks += [(f"statistics_cost_at_most_{args.most:g}_instructions on {result['kernel']}",
                    costs[worst] <= args.most),
                   (f"module_without_statistics_is_cheaper on {result['kernel']}", min(costs.values()) > 0)]
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
