#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions that a packet costs in a qdisc, in a machine where one instruction is one nanosecond.

Packets are sent to a dummy device, and how long that takes is in virtual time the number of instructions, from the
making of a packet to its end. So only differences between two modules, or between two qdiscs, mean something. Where the
queue is empty pktgen sends; it cannot leave packets in a queue, so this program fills one and lets it go by itself.
scripts/bench.sh builds the modules and starts the machine; this is the half in it.

usage: cost.py [--repeat N] [--packets N] NAME=MODULE.ko|NAME=qdisc:KIND...

Prints one JSON object: {"loads": {LOAD: {NAME: [instructions per packet, one for each repetition]}}}. A
qdisc:KIND is one of the kernel's own, for comparison. Every module is measured once before any is measured again.
"""

import argparse
import gc
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

DEV = "bench0"
PKTGEN = "/proc/net/pktgen"
SO_SNDBUFFORCE, CLOCK_MONOTONIC_COARSE = 32, 6
ECN = {"classic": 0, "l4s": 1}  # Not-ECT, ECT(1)
# Nothing is marked or dropped by the AQM, or L4S packets by the native marker.
QUIET, NATIVE = "memlimit 500mb target 4s tupdate 4s step_thresh 4s", "memlimit 500mb target 4s tupdate 4s"
# load: (where the qdisc is, codepoint, its options, whether packets wait for each other)
LOADS = {
    "root, queue empty, Classic": ("root", "classic", QUIET, False),
    "root, queue empty, L4S": ("root", "l4s", QUIET, False),
    "below prio, queue empty, Classic": ("prio", "classic", QUIET, False),
    "below prio, queue empty, L4S": ("prio", "l4s", QUIET, False),
    "below tbf, packets waiting, Classic": ("tbf", "classic", QUIET, True),
    "below tbf, packets waiting, L4S": ("tbf", "l4s", QUIET, True),
    "below tbf, packets waiting, L4S, all marked": ("tbf", "l4s", NATIVE, True),
}
WAITING, ROUNDS = 100, 6
SHUT, OPEN = "rate 8kbit burst 1100 limit 500mb", "rate 100gbit burst 100mb limit 500mb"


def fail(words):
    """End the program with one line and code 1."""
    sys.exit(f"bench: {words}")


def run(words):
    """Run a command; its failure ends the program with its words."""
    done = subprocess.run(words.split(), text=True, capture_output=True, check=False)
    if done.returncode:
        fail(f"`{words}` failed: {' '.join((done.stderr or done.stdout).split())}")


def write(path, text):
    """Tell pktgen, or the kernel, something."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text + "\n")
    except OSError as error:
        fail(f"'{text}' to {path}: {error.strerror}")


def by_pktgen(packets, ecn):
    """Let pktgen send; returns the nanoseconds it took."""
    write(f"{PKTGEN}/kpktgend_0", "rem_device_all")
    write(f"{PKTGEN}/kpktgend_0", f"add_device {DEV}")
    for words in (f"count {packets}", "pkt_size 1000", "delay 0", "clone_skb 0", "xmit_mode queue_xmit",
                  "dst 192.0.2.2", "dst_mac 02:00:00:00:00:02", f"tos {ECN[ecn]:02x}"):
        write(f"{PKTGEN}/{DEV}", words)
    write(f"{PKTGEN}/pgctrl", "start")
    with open(f"{PKTGEN}/{DEV}", encoding="ascii") as file:
        said = file.read()
    took = re.search(r"Result: OK: (\d+)\(", said)
    sent = re.search(r"pkts-sofar: (\d+)\s+errors: (\d+)", said)
    if not took or not sent or (int(sent[1]), int(sent[2])) != (packets, 0):
        fail(f"pktgen did not send {packets} packets: {' '.join(said.split())}")
    return int(took[1]) * 1000


def frame(ecn):
    """A frame of 1000 bytes with UDP in IPv4."""
    header = struct.pack("!BBHHHBBHII", 0x45, ECN[ecn], 986, 0, 0, 64, 17, 0, 0xc0000201, 0xc0000202)
    total = sum(struct.unpack("!10H", header))
    checksum = ~(total + (total >> 16)) & 0xffff
    return bytes.fromhex("020000000002 020000000001 0800") + header[:10] + struct.pack("!H", checksum) + header[12:] + \
        struct.pack("!HHHH", 9, 9, 966, 0) + bytes(958)


def by_socket(sock, packets, data):
    """Send a frame so many times; returns the nanoseconds it took."""
    send = sock.send
    # Begin right behind a tick of the clock, which costs as much as some packets: with WAITING packets this is over
    # before the next one, of 1000 in a second.
    tick = time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE)
    while tick == time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE):
        pass
    began = time.perf_counter_ns()
    for _ in range(packets):
        send(data)
    return time.perf_counter_ns() - began


def backlog(kind):
    """Packets that wait in the qdisc 10: under test."""
    text = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", DEV], text=True, capture_output=True,
                          check=True).stdout
    return next(q["qlen"] for q in json.loads(text) if q["kind"] == kind and q["handle"] == "10:")


def fill_and_empty(kind, packets, ecn, check):
    """Nanoseconds that it takes to queue packets while tbf lets none pass, and for one more to take all with it."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.bind((DEV, 0x0800))
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
        data = frame(ecn)
        took = by_socket(sock, packets, data)
        # Some pass before it shuts.
        if check and not packets - 5 <= backlog(kind) <= packets:
            fail(f"of {packets} packets {backlog(kind)} wait in {kind} below tbf, which should let none pass")
        run(f"tc qdisc change dev {DEV} root handle 1: tbf {OPEN}")
        took += by_socket(sock, 1, data)
        if check and backlog(kind):
            fail(f"{backlog(kind)} packets stay in {kind} below tbf, which should let all pass")
    run(f"tc qdisc change dev {DEV} root handle 1: tbf {SHUT}")
    return took


def measure(load, kind, packets):
    """Instructions per packet under one load."""
    parent, ecn, options, waiting = LOADS[load]
    packets = min(packets, WAITING) if waiting else packets
    options = f"limit {packets + 1} " + (options if kind == "dualpi2" else "")
    if parent == "root":
        run(f"tc qdisc add dev {DEV} root handle 10: {kind} {options}")
    else:
        # One band takes all: what has no other word on it has priority 0.
        run(f"tc qdisc add dev {DEV} root handle 1: " +
            ("prio bands 2 priomap" + " 0" * 16 if parent == "prio" else f"tbf {SHUT}"))
        run(f"tc qdisc add dev {DEV} parent 1:1 handle 10: {kind} {options}")
    if waiting:
        # The first time the allocator lays in its stock. The least counts, as with repetitions.
        found = [fill_and_empty(kind, packets, ecn, n == 0) / packets for n in range(ROUNDS)]
        took = min(found[1:])
    else:
        took = by_pktgen(packets, ecn) / packets
    run(f"tc qdisc del dev {DEV} root")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--packets", type=int, default=10000)
    parser.add_argument("subject", nargs="+", metavar="NAME=MODULE.ko|NAME=qdisc:KIND")
    args = parser.parse_args()
    subjects = dict(word.split("=", 1) for word in args.subject)

    if os.environ.get("DUALPI2_VM") != "virtual-time":
        fail("instructions can only be counted in virtual time; start this by scripts/bench.sh")
    for module in ("pktgen", "dummy", "sch_tbf", "sch_prio"):
        run(f"modprobe {module}")
    if not os.path.exists(f"{PKTGEN}/kpktgend_0"):
        fail("this kernel has no pktgen; use one with CONFIG_NET_PKTGEN, as Debian's are")
    run(f"ip link add {DEV} type dummy")
    run(f"ip link set {DEV} address 02:00:00:00:00:01 up")
    # All that waits goes in one go.
    write("/proc/sys/net/core/dev_weight", "1000000")

    gc.disable()
    found = {load: {name: [] for name in subjects} for load in LOADS}
    for _ in range(args.repeat):
        for name, what in subjects.items():
            kind = what.removeprefix("qdisc:") if what.startswith("qdisc:") else "dualpi2"
            if kind == "dualpi2":
                run(f"insmod {what}")
            for load in LOADS:
                found[load][name].append(measure(load, kind, args.packets))
            if kind == "dualpi2":
                run("rmmod sch_dualpi2")
    print(json.dumps({"kernel": os.uname().release, "packets": args.packets, "loads": found}))


if __name__ == "__main__":
    main()
