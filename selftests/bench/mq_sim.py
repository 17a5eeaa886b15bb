#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare ways to share one rate over several transmit queues, in mq_sim.c: a table in markdown.

usage: mq_sim.py [--rate MBIT] [--queues N] [--placements N] [--jobs N] [NAME]...

One instance with one queue, cake_mq's rule, and the shared clock (net/dualpi2_mq.h). NAME: only scenarios whose names
contain it. All times are simulated; a run gives the same figures on any machine.
"""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MODES = ("one", "cake", "mq")
NAMES = {"one": "one instance", "cake": "cake_mq's rule", "mq": "shared clock"}


def scenarios(rate, queues):
    """{name: (flows, options)}; the number of flows and unresponsive rates grow with the rate."""
    times, others = rate / 1000, range(1, queues)

    def many(*flows):
        return [flow for flow in flows for _ in range(max(1, int(times)))]

    four = many(*["C:0:10"] * 4)
    pairs = many(*[f"C:{i}:10" for i in others for _ in range(2)])
    probe = ["U:0:0.4:200"]
    return {
        "2 L + 2 C, each alone": (many("L:0:10", "L:1:10", "C:2:10", "C:3:10"), ()),
        "2 L in one, 2 C in another": (many("L:0:10", "L:0:10", "C:1:10", "C:1:10"), ()),
        "3 L in one, 1 C in another": (many("L:0:10", "L:0:10", "L:0:10", "C:1:10"), ()),
        "3 C in one, 1 C in another": (many("C:0:10", "C:0:10", "C:0:10", "C:1:10"), ()),
        "4 C in one, others 5 % each": (four + [f"u:{i}:{50 * times}" for i in others], ()),
        "4 C in one, others a 100-byte packet in 160 us": (four + [f"u:{i}:5:100" for i in others], ()),
        "4 C in one, others on 1 ms, off 3 ms at half the rate":
            (four + [f"u:{i}:{500 * times}:1500:1:3" for i in others], ()),
        "L probe alone, 2 C in each other": (probe + pairs, ()),
        "L probe with 8 C, 2 C in each other": (probe + many(*["C:0:10"] * 8) + pairs, ()),
        "L fills the link from all queues, 1 C": (many(*[f"L:{i}:10" for i in range(queues)] * 2, "C:0:10"), ()),
        "L overload, 2 x 60 %, 1 C": ([f"U:{i}:{600 * times}" for i in range(2)] + many("C:2:10"), ()),
        "one queue without service 20 of 200 ms, 8 C": (many(*[f"C:{i % queues}:10" for i in range(8)]), ("stall=20",)),
    }


def build(where):
    program = os.path.join(where, "mq_sim")
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/selftests/unit/include",
                    f"-I{ROOT}/include", "-o", program, f"{ROOT}/selftests/bench/mq_sim.c", "-lm"], check=True)
    return program


def simulate(program, mode, rate, queues, flows, *options):
    """{key: [figures]}; "flows": [(name, Mbit/s)]."""
    done = subprocess.run([program, mode, str(rate), str(queues), ",".join(flows), *options], check=True, text=True,
                          stdout=subprocess.PIPE)
    result = {"flows": []}
    for line in done.stdout.splitlines():
        key, *values = line.split()
        if key == "flow":
            result["flows"].append((values[0], float(values[1])))
        else:
            result[key] = [float(value) for value in values]
    return result


def jain(result):
    rates = [rate for name, rate in result["flows"] if name[0] in "LC"]
    return sum(rates) ** 2 / len(rates) / sum(rate * rate for rate in rates)


def means(result):
    """{name: mean rate of the flows of a kind in a queue}"""
    groups = {}
    for name, rate in result["flows"]:
        groups.setdefault(name, []).append(rate)
    return {name: sum(rates) / len(rates) for name, rates in groups.items()}


def kinds(result):
    """Mean rate of each kind of flow, over all queues."""
    groups = {}
    for name, rate in result["flows"]:
        groups.setdefault(name[0], []).append(rate)
    return ", ".join(f"{kind} {sum(rates) / len(rates):.1f}" for kind, rates in groups.items())


def row(name, mode, result):
    l4s = any(flow[0] in "LU" for flow, _ in result["flows"])
    wait = "/".join(f"{value:.0f}" for value in result["l_wait"]) if l4s else "-"
    groups = means(result)
    rates = ", ".join(f"{key} {rate:.0f}" for key, rate in groups.items()) if len(groups) < 6 else kinds(result)
    return (f"| {name} | {NAMES[mode]} | {100 * result['use'][0]:.2f} % | {rates} | {jain(result):.3f} | {wait} | "
            f"{result['behind'][1]:.0f} | {result['per_packet'][0]:.2f}, {result['per_packet'][1]:.2f} |")


def place(pool, program, rate, queues, placements):
    """The lines of random placements of 2 L and 2 C."""
    chance = random.Random(1)
    places = [[chance.randrange(queues) for _ in range(4)] for _ in range(placements)]
    for mode in MODES:
        runs = list(pool.map(lambda at, mode=mode: simulate(
            program, mode, rate, queues, [f"{kind}:{i}:10" for kind, i in zip("LLCC", at)
                                          for _ in range(max(1, rate // 1000))], *times(rate)), places))
        fair, use = [jain(run) for run in runs], [run["use"][0] for run in runs]
        print(f"| {placements} random placements of 2 L + 2 C | {NAMES[mode]} | least {100 * min(use):.2f} % | "
              f"| least {min(fair):.3f}, mean {sum(fair) / len(fair):.3f} | "
              f"P99 at most {max(run['l_wait'][1] for run in runs):.0f} | "
              f"{max(run['behind'][1] for run in runs):.0f} | |", flush=True)


def times(rate):
    return ("warm=3", "end=10") if rate <= 1000 else ("warm=2", "end=5")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rate", type=int, default=1000, metavar="MBIT", help="1000 or a multiple (default: 1000)")
    parser.add_argument("--queues", type=int, default=4, metavar="N", help="4 to 64 (default: 4)")
    parser.add_argument("--placements", type=int, default=24, metavar="N", help="random placements (default: 24)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.rate < 1000 or args.rate % 1000 or not 4 <= args.queues <= 64:
        sys.exit(f"mq_sim.py: --rate {args.rate} --queues {args.queues}: at least 1000, in steps of 1000; "
                 "4 to 64 queues")
    print(f"{args.rate} Mbit/s, {args.queues} queues. Rates: mean of the flows of a kind in a queue, Mbit/s. L wait: "
          "mean/P99/maximum in us, here and in a next link of that rate.\nBehind: maximum of that link's queue, us. "
          "Last column: changes and transfers of the shared line per packet.\n\n"
          "| scenario | | use | rates | Jain | L wait | behind | line |\n|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as where, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        program = build(where)
        chosen = {name: what for name, what in scenarios(args.rate, args.queues).items()
                  if not args.names or any(part in name for part in args.names)}
        runs = [(name, mode, pool.submit(simulate, program, mode, args.rate, args.queues, flows, *times(args.rate),
                                         *more))
                for name, (flows, more) in chosen.items() for mode in MODES]
        for name, mode, future in runs:
            print(row(name, mode, future.result()), flush=True)
        if not args.names and args.placements:
            place(pool, program, args.rate, args.queues, args.placements)


if __name__ == "__main__":
    main()
