#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Show the main job: an L4S and a Classic flow share a link, under three qdiscs."""

import argparse
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


def plot(directories, path):
    """Delay over time for each qdisc, and how often which delay is exceeded."""
    figure, axes = plt.subplots(1, len(directories) + 1, figsize=(4.2 * (len(directories) + 1), 4),
                                layout="constrained")
    styles = ("-", "--", ":")
    for (name, directory), axis, style in zip(directories.items(), axes, styles):
        run, came, went, _ = measure.load(directory)
        second = (went["ns"] - run["start_ns"]).astype(float) / 1e9
        delay = (went["ns"] - came["ns"]).astype(float) / 1e6
        begin = run["job"]["warmup"]
        inside = (second >= begin) & (second < begin + run["job"]["seconds"])
        for kind in ("c", "l"):
            mine = inside & ((went["saddr"] >> 8 & 0xff) == measure.CLASSES[kind])
            axis.plot(second[mine], delay[mine], ".", ms=1, color=COLORS[kind], label=NAMES[kind], rasterized=True)
            ordered = np.sort(delay[mine])
            axes[-1].plot(ordered, 1 - np.arange(len(ordered)) / len(ordered), style, color=COLORS[kind],
                          label=f"{name}, {NAMES[kind]}")
        axis.set(title=name, xlabel="time (s)", yscale="log", ylim=(0.01, 100))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("queue delay of each packet (ms)")
    axes[0].legend(markerscale=10, loc="lower right")
    axes[-1].set(title="packets delayed by more", xlabel="queue delay (ms)", xscale="log", yscale="log",
                 xlim=(0.01, 100), ylim=(1e-4, 1))
    axes[-1].grid(alpha=0.3)
    axes[-1].legend(fontsize=7, loc="lower left")
    figure.suptitle("40 Mbit/s, 10 ms base RTT, one L4S and one Classic flow")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="seconds measured (default 20)")
    parser.add_argument("--out", default=os.path.join(runs.BUILD, "demo"))
    args = parser.parse_args()
    os.makedirs(os.path.join(runs.BUILD, "lab"), exist_ok=True)
    built = runs.prepare()
    todo = {name: runs.Run(name, aqm=aqm, rate="40mbit", rtt="10ms", warmup=8, seconds=args.seconds)
            for name, aqm in QDISCS.items()}
    try:
        print("One L4S flow (DCTCP, sent as ECT(1)) and one Classic flow (CUBIC) share 40 Mbit/s with 10 ms\n"
              "base RTT: real TCP of a stock Debian kernel, in virtual time. Three runs follow.", flush=True)
        runs.run_all(list(todo.values()), built)
        results = {name: measure.evaluate(run.out) for name, run in todo.items()}
        os.makedirs(args.out, exist_ok=True)
        picture = os.path.join(args.out, "delays.png")
        plot({name: run.out for name, run in todo.items()}, picture)
    finally:
        for run in todo.values():
            shutil.rmtree(run.out, ignore_errors=True)
    text = table(results)
    with open(os.path.join(args.out, "table.txt"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print(f"\n{text}\n\nDelays of every packet: {picture}")


if __name__ == "__main__":
    main()
