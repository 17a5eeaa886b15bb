#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measure the figures that docs/DESIGN.md promises, and say which are reached.

One DCTCP flow sent as ECT(1) against one CUBIC flow, in virtual time. The
bounds are the project's targets, not what was measured.
"""

import argparse
import os
import shutil
import sys

import measure
import runs

CASES = {"40-10": ("40mbit", "10ms"), "40-25": ("40mbit", "25ms"), "4-10": ("4mbit", "10ms"), "4-25": ("4mbit", "25ms")}


def balance(rtt_ms, c_ms, l_ms):
    """Rate ratio L : C that the coupling is designed for, R_C / (1.22 R_L) (RFC 9332 C, k = 2)."""
    return (rtt_ms + c_ms) / (1.22 * (rtt_ms + l_ms))


def bounds(case, r):
    """What is promised for a case: (figure, value, least, greatest)."""
    ratio = r["l"]["mbit"] / r["c"]["mbit"]
    inf = float("inf")
    yield "packets rewritten wrongly", r["l"]["ecn_rewritten_wrongly"] + r["c"]["ecn_rewritten_wrongly"], 0, 0
    yield "L4S packets lost", r["l"]["lost"], 0, 0
    if case == "40-10":
        yield "L mean (ms)", r["l"]["delay_ms"]["mean"], 0, 0.45
        yield "L P99 (ms)", r["l"]["delay_ms"]["p99"], 0, 0.85
        yield "C mean (ms)", r["c"]["delay_ms"]["mean"], 13.5, 16.5
        yield "utilization (%)", r["utilization_pct"], 99.9, inf
        fair = balance(10, r["c"]["delay_ms"]["mean"], r["l"]["delay_ms"]["mean"])
        yield f"rate L : C, {fair:.2f} within 20 %", ratio, 0.8 * fair, 1.2 * fair
    elif case == "40-25":
        yield "rate L : C", ratio, 0.8, 1.25
    else:
        yield "rate L : C", ratio, 0.75, 1.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--aqm", default="dualpi2", help="kind and options of the qdisc")
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    wrong = set(args.case) - set(CASES)
    if wrong:
        parser.error(f"no case {', '.join(sorted(wrong))}; there are {', '.join(CASES)}")
    os.makedirs(os.path.join(runs.BUILD, "lab"), exist_ok=True)
    built = runs.prepare()
    todo = {case: runs.Run(case, aqm=args.aqm, rate=CASES[case][0], rtt=CASES[case][1], seconds=args.seconds)
            for case in args.case or CASES}
    missed = 0
    try:
        runs.run_all(list(todo.values()), built)
        for case, run in todo.items():
            r = measure.evaluate(run.out)
            print(measure.line(r))
            for what, value, least, greatest in bounds(case, r):
                good = least <= value <= greatest
                missed += not good
                print(f"  {'reached' if good else 'MISSED':8} {what}: {value:.3f} ({least:g} to {greatest:g})")
    finally:
        for run in todo.values():
            shutil.rmtree(run.out, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
