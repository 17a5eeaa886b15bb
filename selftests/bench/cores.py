#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How many packets a second one and two processors send through a qdisc, each by its own transmit queue.

pktgen sends L4S packets to a dummy device with two transmit queues and no lock of its own, so that what the processors
wait for is in the qdisc. No packet waits in a queue: with a bandwidth, that is 100 Gbit/s. scripts/bench.sh builds the
module and starts the machine; this is the half in it. Its figures are of wall-clock time on an emulated machine:
compare them with each other, in one run.

usage: cores.py [--packets N] [--rounds N] MODULE.ko
"""

import argparse
import os
import re
import statistics
import sys

from cost import PKTGEN, fail, run, write

DEV, CPUS = "cores0", 2
FAST = "bandwidth 100gbit"
# Name, qdisc at the root, qdisc of each queue.
SUBJECTS = [("pfifo", "pfifo", ""), ("mq, pfifo each", "mq", "pfifo"),
            ("cake", "cake", ""), ("cake_mq", "cake_mq", ""),
            ("dualpi2", "dualpi2", ""), ("mq, dualpi2 each", "mq", "dualpi2"), ("dualpi2_mq", "dualpi2_mq", ""),
            ("dualpi2, bandwidth", f"dualpi2 {FAST}", ""), ("mq, dualpi2 each, bandwidth", "mq", f"dualpi2 {FAST}"),
            ("dualpi2_mq, bandwidth", f"dualpi2_mq {FAST}", "")]


def attach(root, each):
    """The qdisc of a subject in place of the one before."""
    run(f"tc qdisc del dev {DEV} root", check=False)
    run(f"tc qdisc add dev {DEV} root handle 1: {root}")
    for queue in range(CPUS if each else 0):
        run(f"tc qdisc replace dev {DEV} parent 1:{queue + 1:x} {each}")


def sent(cpus, packets):
    """Packets a second of all these processors together, without those that the qdisc refused."""
    for cpu in range(CPUS):
        write(f"{PKTGEN}/kpktgend_{cpu}", "rem_device_all")
    for cpu in range(cpus):
        write(f"{PKTGEN}/kpktgend_{cpu}", f"add_device {DEV}@{cpu}")
        for command in (f"count {packets}", "pkt_size 1000", "delay 0", "clone_skb 0", "xmit_mode queue_xmit",
                        "dst 192.0.2.2", "dst_mac 02:00:00:00:00:02", "tos 01", f"udp_src_min {1000 + cpu}",
                        f"udp_src_max {1000 + cpu}"):
            write(f"{PKTGEN}/{DEV}@{cpu}", command)
    write(f"{PKTGEN}/pgctrl", "start")
    total = 0
    for cpu in range(cpus):
        with open(f"{PKTGEN}/{DEV}@{cpu}", encoding="ascii") as file:
            said = file.read()
        pps, errors = re.search(r"(\d+)pps", said), re.search(r"errors: (\d+)", said)
        if not pps or not errors or f"pkts-sofar: {packets} " not in said:
            fail(f"pktgen did not send {packets} packets: {' '.join(said.split())}")
        total += int(pps[1]) * (packets - int(errors[1])) / packets
    return total


def main():
    """Measure all subjects, each round all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("module")
    args = parser.parse_args()
    if (os.cpu_count() or 1) < CPUS:
        fail(f"{CPUS} processors are needed")
    for module in ("pktgen", "dummy", "sch_cake"):
        run(f"modprobe {module}" + (" numdummies=0" if module == "dummy" else ""))
    run(f"insmod {args.module}")
    run(f"ip link add {DEV} numtxqueues {CPUS} type dummy")
    run(f"ip link set {DEV} up")
    for cpu in range(CPUS):
        write(f"/sys/class/net/{DEV}/queues/tx-{cpu}/xps_cpus", f"{1 << cpu:x}")
    found = {name: {cpus: [] for cpus in range(1, CPUS + 1)} for name, _, _ in SUBJECTS}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        for name, root, each in SUBJECTS:
            attach(root, each)
            for cpus, rates in found[name].items():
                rates.append(sent(cpus, args.packets))
    print("| qdisc | 1 processor, 1000 packets/s | 2 | ratio, the rounds |\n|---|---|---|---|")
    for name, rates in found.items():
        one, two = (statistics.median(rates[cpus]) for cpus in (1, CPUS))
        ratios = [b / a for a, b in zip(rates[1], rates[CPUS])]
        print(f"| {name} | {one / 1000:.0f} | {two / 1000:.0f} | {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
