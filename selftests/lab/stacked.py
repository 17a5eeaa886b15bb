#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""dumbbell.py for AQMs made of the companions: several modules, a qdisc below another, classes of packet values.

A program of its own, so that what was run with dumbbell.py is still what it would run today.  A job is as there, but:
"module" is a list of names of modules in the directory --companions, "child" (may be left out) is what stands below
the qdisc, and has the link's rate, and a group may have "tvf", the class of its packets at the qdisc.  run.json has
what the child says of itself under "child".
"""

import argparse
import json
import os
import shlex
import sys

import dumbbell
from dumbbell import fail, in_ns, run

CHILD = "parent 10:1 handle 20:"
build_of_dumbbell, set_rate_of_dumbbell = dumbbell.build_bottleneck, dumbbell.set_rate


def load_modules(job, directory):
    """Load the modules that the job names, from a directory."""
    for name in job["module"]:
        path = os.path.join(directory, f"sch_{name}.ko")
        if not os.path.exists(path):
            fail(f"the job wants the module {name}, and there is no {path}")
        run(f"insmod {shlex.quote(path)}")


def build_bottleneck(job, tc):
    """The link, the qdisc, the one below it, and which groups are in which class; returns the commands of qdiscs."""
    commands = [build_of_dumbbell(job, tc)]
    if "child" in job:
        commands.append(f"{tc} qdisc add dev to_rcv {CHILD} {job['child']}")
        in_ns("rtr", commands[-1])
    for net, group in enumerate(job["groups"], 1):
        if "tvf" in group:
            in_ns("rtr", f"tc filter add dev to_rcv parent 10: protocol ip u32 match ip src 10.8.{net}.0/24 "
                         f"flowid 10:{group['tvf']:x}")
    return "; ".join(commands)


def set_rate(job, rate, tc, verb="change"):
    """The link's rate, in tc's words, whoever has it."""
    if "child" in job:
        in_ns("rtr", f"{tc} qdisc {verb} dev to_rcv {CHILD} {job['child'].split()[0]} bandwidth {rate}")
    else:
        set_rate_of_dumbbell(job, rate, tc, verb)


def queue_stats(tc):
    """What the qdisc says of itself, and under "child" what the one below it says."""
    found = {q.get("handle"): q for q in json.loads(in_ns("rtr", f"{tc} -s -j qdisc show dev to_rcv"))}
    return found["10:"] | ({"child": found["20:"]} if "20:" in found else {})


def main():
    """What dumbbell.main() does, with what is above in place of its own."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--companions", required=True, help="directory of their modules")
    args, sys.argv[1:] = parser.parse_known_args()
    dumbbell.load_module = lambda job, _: load_modules(job, args.companions)
    for function in (build_bottleneck, set_rate, queue_stats):
        setattr(dumbbell, function.__name__, function)
    dumbbell.main()


if __name__ == "__main__":
    main()
