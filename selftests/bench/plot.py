#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Draw what the qdiscs cost over pfifo, from what cost.py counted: dualpi2 in colour, others in grey.

usage: plot.py IMAGE RESULT.json...     one row of bars for each kernel
"""

import json
import os
import sys

import matplotlib
import table

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

PLACES = ("below prio, queue empty", "below tbf, 1000 packets waiting")
COLOURS = {"Classic": ("tab:orange", "0.65"), "L4S": ("tab:blue", "0.35")}  # of dualpi2, of another


def draw(axis, found):
    """Bars of one place, the cheapest qdisc on top."""
    for offset, (word, colours) in zip((-0.2, 0.2), COLOURS.items()):
        bars = axis.barh([n + offset for n in range(len(found))], [costs[word] for _, costs in found], 0.38,
                         color=[colours[name != table.OURS] for name, _ in found])
        axis.bar_label(bars, fmt=f"%+.0f {word}", padding=3, fontsize=7)
    names = [f"Linux' own {table.OURS}" if name == table.IN_TREE else name for name, _ in found]
    axis.set_yticks(range(len(found)), names)
    axis.invert_yaxis()
    axis.margins(x=0.25)
    axis.axvline(0, color="black", lw=0.8)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: plot.py IMAGE RESULT.json...")
    results = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            results.append(json.load(file))
    figure, axes = plt.subplots(len(results), len(PLACES), figsize=(5.5 * len(PLACES), 4.2 * len(results)),
                                squeeze=False, layout="constrained")
    for line, result in zip(axes, results):
        for axis, place in zip(line, PLACES):
            draw(axis, table.bars(result, place))
            axis.set(title=f"{place}, Linux {table.series(result)}", xlabel="instructions per packet over pfifo")
    figure.savefig(sys.argv[1])
    print(f"plot: {os.path.relpath(sys.argv[1])}", file=sys.stderr)


if __name__ == "__main__":
    main()
