#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Evaluate what dumbbell.py left: delay, rate, marks and drops of each class.

The numbers are those of the DualPI2 paper's appendix B: the delay of each
packet at its departure from the queue, and rates on the wire (with Ethernet
headers) as a share of the link.  It reads sightings of packets and nothing that
a qdisc says of itself.
"""

import argparse
import json
import os
import re

import numpy as np

SIGHTING = np.dtype([("ns", "u8"), ("saddr", ">u4"), ("seq", "u4"), ("id", "u2"), ("bytes", "u2"),
                     ("ecn", "u1"), ("outgoing", "u1"), ("pad", "u2")])
CLASSES = {"l": 1, "c": 2}  # third byte of the source address


def rate_bps(text):
    """Bits per second of tc's "40mbit"."""
    number, unit = re.fullmatch(r"([0-9.]+)([kmg]?)bit", text.lower()).groups()
    return float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[unit]


def pair(data):
    """Pair arrivals with departures.

    Sorted by identity and time, a departure follows its own arrival directly;
    an arrival that none follows is a packet that was lost.
    """
    order = np.lexsort((data["outgoing"], data["ns"], data["id"], data["seq"], data["saddr"]))
    data = data[order]
    same = ((data["saddr"][1:] == data["saddr"][:-1]) & (data["seq"][1:] == data["seq"][:-1])
            & (data["id"][1:] == data["id"][:-1]))
    arrival = data["outgoing"] == 0
    paired = np.append(same & arrival[:-1] & ~arrival[1:], False)
    came = data[paired]
    went = data[np.flatnonzero(paired) + 1]
    lost = data[arrival & ~paired]
    return came, went, lost


def summary(delay_ms):
    if not len(delay_ms):
        return {"packets": 0}
    levels = {"p50": 50, "p99": 99, "p99_9": 99.9}
    return {"packets": int(len(delay_ms)), "mean": float(delay_ms.mean()),
            **{k: float(np.percentile(delay_ms, v, method="inverted_cdf")) for k, v in levels.items()},
            "max": float(delay_ms.max())}


def load(directory):
    """One run: (description, seconds since its start, class, delay in ms, ...)."""
    with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
        run = json.load(file)
    data = np.fromfile(os.path.join(directory, "sightings"), dtype=SIGHTING)
    came, went, lost = pair(data)
    return run, came, went, lost


def evaluate(directory):
    run, came, went, lost = load(directory)
    args = run["args"]
    begin = run["start_ns"] + args["warmup"] * 10**9
    end = begin + args["seconds"] * 10**9
    inside = (went["ns"] >= begin) & (went["ns"] < end)
    came, went = came[inside], went[inside]
    lost = lost[(lost["ns"] >= begin) & (lost["ns"] < end)]
    delay_ms = (went["ns"] - came["ns"]).astype(float) / 1e6
    link = rate_bps(args["rate"])
    result = {"aqm": args["aqm"], "rate": args["rate"], "rtt": args["rtt"], "seconds": args["seconds"],
              "kernel": run["kernel"],
              "utilization_pct": float(went["bytes"].astype(np.int64).sum() * 8 / args["seconds"] / link * 100)}
    for name, number in CLASSES.items():
        mine = (went["saddr"] >> 8 & 0xff) == number
        gone = int(((lost["saddr"] >> 8 & 0xff) == number).sum())
        ecn_in, ecn_out = came["ecn"][mine], went["ecn"][mine]
        able = int((ecn_in != 0).sum())
        marked = int(((ecn_out == 3) & (ecn_in != 3)).sum())
        wrong = int(((ecn_out != ecn_in) & ~((ecn_out == 3) & (ecn_in != 0))).sum())
        result[name] = {
            "delay_ms": summary(delay_ms[mine]),
            "mbit": float(went["bytes"][mine].astype(np.int64).sum() * 8 / args["seconds"] / 1e6),
            "marked_pct": marked / able * 100 if able else 0.0,
            "lost_pct": gone / (gone + len(ecn_out)) * 100 if gone + len(ecn_out) else 0.0,
            "lost": gone, "ecn_rewritten_wrongly": wrong,
        }
    before, after = run["before"], run["after"]
    if before and after and "l4s" in after:
        result["native_marks"] = after["l4s"]["marked-native"] - before["l4s"]["marked-native"]
        result["coupled_marks"] = after["l4s"]["marked-coupled"] - before["l4s"]["marked-coupled"]
    return result


def line(r):
    low, classic = r["l"], r["c"]
    ld, cd = low["delay_ms"], classic["delay_ms"]
    ratio = low["mbit"] / classic["mbit"] if classic["mbit"] else float("inf")
    return (f"{r['aqm'][:44]:44} {r['rate']:>8} {r['rtt']:>5}  L {ld.get('mean', 0):6.3f} {ld.get('p50', 0):6.3f} "
            f"{ld.get('p99', 0):6.3f} {ld.get('p99_9', 0):6.3f}  C {cd.get('mean', 0):6.2f} {cd.get('p99', 0):6.2f}  "
            f"L/C {low['mbit']:6.2f}/{classic['mbit']:6.2f} ={ratio:5.2f}  util {r['utilization_pct']:6.2f}  "
            f"mark L {low['marked_pct']:5.2f}%  lost {low['lost']}/{classic['lost']}  "
            f"nat/coup {r.get('native_marks', '-')}/{r.get('coupled_marks', '-')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("run", nargs="+", help="directories that dumbbell.py wrote")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = [evaluate(d) for d in args.run]
    print(json.dumps(results, indent=1) if args.json else "\n".join(map(line, results)))


if __name__ == "__main__":
    main()
