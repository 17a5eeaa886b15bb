#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Demonstrate dualpi2: one L4S and one Classic flow share a link, compared with other qdiscs.

Leaves table.txt, delays.json and delays.svg in build/demo. --draw FILE draws FILE from an existing delays.json and runs
nothing; docs/img/demo-delays.svg is made that way. The same delays.json gives the same SVG, byte for byte.
"""

import argparse
import json
import os
import shutil

import matplotlib
import measure
import numpy as np
import runs

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

QDISCS = {"dualpi2": "dualpi2", "fq_codel": "fq_codel ecn", "pfifo": "pfifo limit 100"}
COLORS = {"l": "tab:blue", "c": "tab:orange"}
NAMES = {"l": "L4S (DCTCP)", "c": "Classic (CUBIC)"}
INTERVAL = 0.25  # seconds


def table(results):
    head = (f"{'qdisc':9} {'flow':16} {'mean':>7} {'P50':>7} {'P99':>7} ms  {'Mbit/s':>7}  "
            f"{'CE marks':>8}  {'dropped':>8}")
    lines = [head, "-" * len(head)]
    for name, r in results.items():
        for kind, flow in NAMES.items():
            d = r[kind]["delay_ms"]
            lines.append(f"{name:9} {flow:16} {d['mean']:7.2f} {d['p50']:7.2f} {d['p99']:7.2f}     "
                         f"{r[kind]['mbit']:7.2f}  {r[kind]['marked_pct']:7.2f}%  {r[kind]['lost_pct']:7.3f}%")
        lines.append(f"{'':9} {'both':16} {'':29}  {r['l']['mbit'] + r['c']['mbit']:7.2f}  "
                     f"({r['utilization_pct']:.2f} % of the link)")
    return "\n".join(lines)


def over_time(directory):
    """Median and P99 of the delays of each class in each interval of the measured seconds."""
    run, came, went, _ = measure.load(directory)
    second = (went["ns"] - run["start_ns"]).astype(float) / 1e9 - run["job"]["warmup"]
    delay = (went["ns"] - came["ns"]).astype(float) / 1e6
    rows = {}
    for kind, number in measure.CLASSES.items():
        mine = (went["saddr"] >> 8 & 0xff) == number
        rows[kind] = []
        for interval in range(round(run["job"]["seconds"] / INTERVAL)):
            begin = interval * INTERVAL
            ordered = np.sort(delay[mine & (second >= begin) & (second < begin + INTERVAL)])
            if len(ordered):
                rows[kind].append([begin + INTERVAL / 2, *(round(measure.percentile(ordered, level), 4)
                                                          for level in (50, 99))])
    return rows


def plot(results, path):
    """Median (line) and P99 (upper end of the shade) of the delay over time, one panel for each qdisc."""
    plt.rcParams.update({"svg.hashsalt": "dualpi2", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, len(results), figsize=(10, 3.4), sharey=True, layout="constrained")
    for (name, result), axis in zip(results.items(), axes):
        for kind in ("c", "l"):
            second, p50, p99 = zip(*result[kind]["over_time"])
            axis.plot(second, p50, color=COLORS[kind], lw=1.2,
                      label=f"{NAMES[kind]}: P99 {result[kind]['delay_ms']['p99']:.1f} ms")
            axis.fill_between(second, p50, p99, color=COLORS[kind], alpha=0.25, lw=0)
        axis.set(title=name, xlabel="time (s)", yscale="log", ylim=(0.05, 100), yticks=(0.1, 1, 10, 100),
                 yticklabels=("0.1", "1", "10", "100"))
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right", fontsize=8)
    axes[0].set_ylabel("queueing delay (ms)")
    figure.suptitle("40 Mbit/s, 10 ms base RTT, one L4S flow (DCTCP) and one Classic flow (CUBIC)\n"
                    f"line: median of {INTERVAL} s; shade: up to the P99", fontsize=10)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="seconds measured (default 20)")
    parser.add_argument("--out", default=os.path.join(runs.BUILD, "demo"), help="directory (default build/demo)")
    parser.add_argument("--draw", metavar="FILE", help="only draw FILE from delays.json of an earlier run")
    args = parser.parse_args()
    data = os.path.join(args.out, "delays.json")
    if args.draw:
        if not os.path.exists(data):
            parser.error(f"{data} is missing; run make demo first")
        with open(data, encoding="utf-8") as file:
            plot(json.load(file), args.draw)
        return
    os.makedirs(os.path.join(runs.BUILD, "lab"), exist_ok=True)
    built = runs.prepare()
    todo = {name: runs.Run(name, aqm=aqm, rate="40mbit", rtt="10ms", warmup=8, seconds=args.seconds)
            for name, aqm in QDISCS.items()}
    try:
        print("One L4S flow (DCTCP, sent as ECT(1)) and one Classic flow (CUBIC) share 40 Mbit/s with 10 ms\n"
              "base RTT: real TCP of a stock Debian kernel, in virtual time. Three runs follow.", flush=True)
        runs.run_all(list(todo.values()), built)
        results = {name: measure.evaluate(run.out) for name, run in todo.items()}
        for name, run in todo.items():
            for kind, rows in over_time(run.out).items():
                results[name][kind]["over_time"] = rows
    finally:
        for run in todo.values():
            shutil.rmtree(run.out, ignore_errors=True)
    os.makedirs(args.out, exist_ok=True)
    with open(data, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    picture = os.path.join(args.out, "delays.svg")
    plot(results, picture)
    text = table(results)
    with open(os.path.join(args.out, "table.txt"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print(f"\n{text}\n\nDelays over time: {picture}")


if __name__ == "__main__":
    main()
