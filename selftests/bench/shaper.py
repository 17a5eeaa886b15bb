#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions that a shaper costs a packet: dualpi2's and cake's, under the same loads.

As in cost.py the machine's time is instructions. What a shaper costs is the qdisc with it less the same qdisc without,
so that neither figure includes the AQM and the making of a packet. Two loads: a rate that no packet
has to wait for, which is the arithmetic alone; and one that all have to wait for, which is also a queue, a timer and
an interrupt for each. Timers run while this program waits, so it counts how often it can look at the clock meanwhile,
and how often it can when nothing is sent. scripts/bench.sh shaper builds the module and starts the machine.

usage: shaper.py [--repeat N] [--packets N] MODULE.ko

Prints one JSON object: {"bench": "shaper", "loads": {LOAD: {NAME: [instructions per packet, one each repetition]}}}.
"""

import argparse
import gc
import json
import os
import socket
import subprocess
import sys
import time

import cost
from cost import DEV, by_pktgen, fail, frame, run, write

CLOCK_MONOTONIC_COARSE = 6
# The AQMs are quiet.
QDISCS = {"dualpi2": "dualpi2 limit 100000 memlimit 500mb target 4s tupdate 4s step_thresh 4s",
          "cake": "cake besteffort flows memlimit 500mb rtt 1000ms"}
VARIANTS = {"none": "", "shaper": "bandwidth {rate}", "shaper, docsis": "bandwidth {rate} docsis"}
# load: (rate, codepoint, whether packets wait)
LOADS = {
    "no packet waits, Classic": ("1tbit", "classic", False),
    "no packet waits, L4S": ("1tbit", "l4s", False),
    "all packets wait, Classic": ("200mbit", "classic", True),
    "all packets wait, L4S": ("200mbit", "l4s", True),
}
# 100 packets of 1000 bytes leave within 4.1 ms at 200 Mbit/s, and the window is over between two ticks.
WAITING, ROUNDS, WINDOW_NS = 100, 8, 5_500_000


def tick():
    """Wait for a tick of the clock, which costs as much as some packets."""
    now = time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE)
    while now == time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE):
        pass


def looks(sock, packets, data, window_ns):
    """How often the clock can be looked at in a window that begins with sending a frame so many times."""
    send, clock, count = sock.send, time.perf_counter_ns, 0
    tick()
    end = clock() + window_ns
    for _ in range(packets):
        send(data)
    while clock() < end:
        count += 1
    return count


def look_ns(sock):
    """What a look at the clock costs: between two ticks, where nothing disturbs it."""
    found = []
    for _ in range(ROUNDS):
        few, many = (looks(sock, 0, b"", ns) for ns in (100_000, 700_000))
        found.append(600_000 / (many - few))
    return min(found)


def said():
    """What the qdisc under test says of itself."""
    text = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", DEV], text=True, capture_output=True,
                          check=True).stdout
    return next(q for q in json.loads(text) if q["handle"] == "10:")


def waiting(ecn, shaped):
    """Instructions per packet of packets that are sent at once, and may leave one by one."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.bind((DEV, 0x0800))
        sock.setsockopt(socket.SOL_SOCKET, cost.SO_SNDBUFFORCE, 1 << 29)
        data = frame(ecn)
        idle = max(looks(sock, 0, data, WINDOW_NS) for _ in range(ROUNDS))
        busy = []
        for _ in range(ROUNDS):
            before = said()
            busy.append(looks(sock, WAITING, data, WINDOW_NS))
            after = said()
            # The first one need not wait.
            waits = after["overlimits"] - before["overlimits"]
            if after["qlen"] or after["drops"] or (waits < WAITING - 1 if shaped else waits):
                fail(f"of {WAITING} packets {after['qlen']} are left, {after['drops']} dropped, and there were {waits} "
                     "waits: this load is not what it should be")
        return (idle - max(busy)) * look_ns(sock) / WAITING


def measure(load, name, variant, packets):
    """Instructions per packet of one variant of a qdisc under one load."""
    rate, ecn, waits = LOADS[load]
    run(f"tc qdisc add dev {DEV} root handle 10: {QDISCS[name]} {VARIANTS[variant].format(rate=rate)}")
    took = waiting(ecn, variant != "none") if waits else by_pktgen(packets, ecn) / packets
    run(f"tc qdisc del dev {DEV} root")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--packets", type=int, default=10000)
    parser.add_argument("module", metavar="MODULE.ko")
    args = parser.parse_args()
    if os.environ.get("DUALPI2_VM") != "virtual-time":
        fail("instructions can only be counted in virtual time; start this by scripts/bench.sh")
    for module in ("pktgen", "dummy", "sch_cake"):
        run(f"modprobe {module}")
    run(f"insmod {args.module}")
    run(f"ip link add {DEV} type dummy")
    run(f"ip link set {DEV} address 02:00:00:00:00:01 up")
    write("/proc/sys/net/core/dev_weight", "1000000")
    gc.disable()
    found = {load: {f"{n}, {v}": [] for n in QDISCS for v in VARIANTS} for load in LOADS}
    for _ in range(args.repeat):
        for load in LOADS:
            for name in QDISCS:
                for variant in VARIANTS:
                    found[load][f"{name}, {variant}"].append(measure(load, name, variant, args.packets))
    print(json.dumps({"bench": "shaper", "kernel": os.uname().release, "packets": args.packets, "loads": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
