#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which instructions of the module a packet executes, by function: what is behind the figures of cost.py.

A plugin of QEMU counts: selftests/bench/instructions.c. In the machine this program sends packets and prints where the
module's functions are; outside it puts the two together. scripts/bench.sh profile does both.

usage: profile.py --send LOAD MODULE.ko        in the machine; LOAD is one of cost.py's with an empty queue
       profile.py COUNTS SAID MODULE.ko [FUNCTION]
"""

import argparse
import bisect
import collections
import os
import re
import subprocess
import sys

import cost

PACKETS = 1000


def send(name, module):
    """Send packets; print their number and the addresses of all functions."""
    loads = {n: load for n, load in (cost.compare_loads() | cost.marking_loads()).items()
             if not load.gso and not load.prime and load.waiting in (0, PACKETS)}
    if name not in loads:
        cost.fail(f"no load '{name}'; there are: {'; '.join(loads)}")
    if os.environ.get("DUALPI2_VM") != "virtual-time":
        cost.fail("this is the half that runs in a machine; start it by scripts/bench.sh profile")
    load = loads[name]
    dev = cost.MANY_QUEUES if load.parent == "mq" else cost.DEV
    for what in ("pktgen", "dummy", *{f"sch_{load.parent}"} - {"sch_root", "sch_mq"}):
        cost.run(f"modprobe {what}")
    cost.run(f"insmod {module}")
    cost.run(f"ip link add {dev} numtxqueues 2 type dummy")
    cost.run(f"ip link set {dev} address 02:00:00:00:00:01 up")
    cost.install(load, "dualpi2", cost.options_of(load, "dualpi2", PACKETS))
    if load.waiting:
        cost.fill_and_empty(load.parent, "dualpi2", PACKETS, cost.frame(load.ecn, load.size), False)
    else:
        cost.by_pktgen(PACKETS, load.ecn, load.size, dev)
    print(f"PACKETS {PACKETS}")
    with open("/proc/kallsyms", encoding="ascii") as file:
        for line in file:
            address, kind, symbol = line.split(None, 2)
            if kind in "tTwW":
                print(f"SYMBOL {address} {symbol.strip()}")


def read(counts_path, said_path):
    """({address: executions per packet}, [(address, symbol)]) of one run."""
    packets, symbols = 0, []
    with open(said_path, encoding="ascii") as file:
        for line in file:
            fields = line.split(None, 2)
            if fields[:1] == ["PACKETS"]:
                packets = int(fields[1])
            elif fields[:1] == ["SYMBOL"]:
                symbols.append((int(fields[1], 16), " ".join(fields[2].split())))
    if not packets or not symbols:
        cost.fail(f"{said_path} does not say what was sent; the machine's output is there")
    with open(counts_path, encoding="ascii") as file:
        counts = {int(a, 16): int(n) / packets for a, n in (line.split() for line in file)}
    return counts, sorted(symbols)


def by_function(counts, symbols):
    """{function of the module: instructions per packet}."""
    starts, found = [address for address, _ in symbols], collections.Counter()
    for address, count in counts.items():
        at = bisect.bisect(starts, address) - 1
        if at >= 0 and symbols[at][1].endswith("[sch_dualpi2]"):
            found[symbols[at][1].split()[0]] += count
    return found


def listing(counts, symbols, module, function):
    """Lines of a function's disassembly, with executions per packet, of what at least one packet in ten executes."""
    start = next((a for a, s in symbols if s == f"{function} [sch_dualpi2]"), None)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", module], text=True,
                          capture_output=True, check=True).stdout
    offset = re.search(rf"^([0-9a-f]+) <{re.escape(function)}>:", text, re.M)
    if start is None or not offset:
        cost.fail(f"the module has no function '{function}'; leave it out for a list")
    lines = []
    for line in text.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
        count = counts.get(start + int(match[1], 16) - int(offset[1], 16), 0) if match else 0
        if count >= 0.1:
            lines.append(f"{count:6.2f}  {match[2]}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--send", metavar="LOAD")
    parser.add_argument("word", nargs="+", metavar="MODULE.ko | COUNTS SAID MODULE.ko [FUNCTION]")
    args = parser.parse_args()
    if args.send:
        send(args.send, args.word[0])
        return 0
    if len(args.word) not in (3, 4):
        parser.error("counts, what was said, the module and perhaps a function")
    counts, symbols = read(*args.word[:2])
    if len(args.word) == 4:
        print("\n".join(listing(counts, symbols, *args.word[2:])))
        return 0
    found = by_function(counts, symbols)
    print("| function | instructions per packet |\n|---|---|")
    for function, count in found.most_common():
        if count >= 0.1:
            print(f"| `{function}` | {count:.1f} |")
    print(f"| all of the module | {sum(found.values()):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
