#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions that a packet costs in a qdisc, in a machine where one instruction is one nanosecond.

Packets are sent to a dummy device, and how long that takes is in virtual time the number of instructions, from the
making of a packet to its end. So only differences between two modules, or between two qdiscs, mean something. Where the
queue is empty pktgen sends; it cannot leave packets in a queue, nor make GSO packets, so this program does that itself.
scripts/bench.sh builds the modules and starts the machine; this is the half in it.

usage: cost.py [--set stats|compare|marking|check|companions] [--only TEXT] [--repeat N] [--packets N] NAME=MODULE.ko|
               NAME=in-tree:MODULE.ko|NAME=KIND:MODULE.ko|NAME=qdisc:KIND|NAME=none...

Prints one JSON object: {"loads": {LOAD: {NAME: [instructions per packet, one for each repetition]}}}. A
qdisc:KIND is one of the kernel, for comparison; in-tree: is the in-tree dualpi2, which has fewer options;
KIND:MODULE.ko is one of the companions in extra; none is no qdisc; no-stats is the NAME of a module built to count
nothing. Every subject is measured once before any is measured again. Each load is checked: every packet must have
left, and been marked only where that is asked for.
"""

import argparse
import gc
import glob
import itertools
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections import namedtuple

DEV, MANY_QUEUES = "bench0", "bench1"
PKTGEN = "/proc/net/pktgen"
SO_SNDBUFFORCE, SOL_PACKET, PACKET_VNET_HDR, CLOCK_MONOTONIC_COARSE = 32, 263, 15, 6
ECN = {"classic": 0, "l4s": 1, "ect0": 2}
# Nothing is marked or dropped by the AQM, or L4S packets by the native marker.
NATIVE = "memlimit 500mb target 4s tupdate 4s"
QUIET = {"dualpi2": NATIVE + " step_thresh 4s", "codel": "target 4s interval 4s", "pie": "target 4s tupdate 4s",
         "fq_codel": "target 4s interval 4s memory_limit 500mb", "cake": "memlimit 500mb rtt 1000s",
         "fq": "flow_limit 100000", "pi2": "target 4s tupdate 4s", "csaqm": "bandwidth 1tbit buffer 4s target 4s",
         "vdq_csaqm": "bandwidth 1tbit"}
NO_LIMIT = ("cake", "ppv")  # the one knows memory only, the other has no queue
# What each qdisc calls the splitting of GSO packets, and not; the others take them whole.
SPLIT = {"dualpi2": ("split_gso", "no_split_gso"), "cake": ("split-gso", "no-split-gso")}

# parent: where the qdisc is; ecn: the codepoint; marked: share of packets that is marked; waiting: packets that wait
# for each other, 0 with an empty queue; size: bytes of a packet; gso: "split" or "whole", packets of SEGMENTS segments;
# options: more options, for this module alone; prime: options under which packets wait once, before the load's are set
Load = namedtuple("Load", "parent ecn marked waiting size gso options prime", defaults=(False, 0, 1000, None, "", ""))
STATS = {
    "root, queue empty, Classic": Load("root", "classic"),
    "root, queue empty, L4S": Load("root", "l4s"),
    "below prio, queue empty, Classic": Load("prio", "classic"),
    "below prio, queue empty, L4S": Load("prio", "l4s"),
    "below tbf, packets waiting, Classic": Load("tbf", "classic", waiting=100),
    "below tbf, packets waiting, L4S": Load("tbf", "l4s", waiting=100),
    "below tbf, packets waiting, L4S, all marked": Load("tbf", "l4s", marked=1, waiting=100),
}
# Options of dualpi2 that are measured.
OPTIONS = ("bandwidth 1tbit", "docsis", "bandwidth 1tbit docsis", "no_nqb", "nqb 45,46", "drop_enqueue", "random",
           "ramp 0", "step_thresh 100000p", "min_qlen_step 2", "burst_max 0", "no_l4s", "any_ect", "no_split_gso",
           "ingress", "overload_report 0")
SEGMENTS, SEGMENT = 10, 1448
GSO_PACKETS, ROUNDS = 10, 12
# Of a loop that does nothing while htb waits for 8 ms and the packets leave, which takes turns with it; some 70 ms.
STEPS = 1000000
WORDS = {"classic": "Classic", "l4s": "L4S"}
# What lets hardly a packet pass, and all. Once htb has begun to wait, for 8 ms here, a new rate does not end that.
SHUT = {"tbf": "rate 8kbit burst 1100 limit 500mb",
        "htb": "rate 1mbit ceil 1mbit burst 1000 cburst 1000 quantum 60000"}
OPEN = {"tbf": "rate 100gbit burst 100mb limit 500mb",
        "htb": "rate 100gbit ceil 100gbit burst 100mb cburst 100mb quantum 60000"}


def compare_loads():
    """The loads under which all qdiscs are compared."""
    loads = {}
    for parent in ("root", "prio"):
        for size in (1000, 64, 1500):
            for ecn, word in WORDS.items():
                where = "root" if parent == "root" else f"below {parent}"
                loads[f"{where}, queue empty, {f'{size} B, ' * (size != 1000)}{word}"] = Load(parent, ecn, size=size)
    for parent in ("htb", "tbf", "mq"):
        for ecn, word in WORDS.items():
            loads[f"below {parent}, queue empty, {word}"] = Load(parent, ecn)
    for parent, most in (("tbf", (10, 1000, 10000)), ("htb", (10000,))):
        for waiting in most:
            for ecn, word in WORDS.items():
                loads[f"below {parent}, {waiting} packets waiting, {word}"] = Load(parent, ecn, waiting=waiting)
    loads["below tbf, 1000 packets waiting, L4S, all marked"] = Load("tbf", "l4s", marked=1, waiting=1000)
    for gso in ("whole", "split"):
        for ecn, word in WORDS.items():
            loads[f"below prio, queue empty, GSO of {SEGMENTS} {gso}, {word}"] = Load("prio", ecn, gso=gso)
    for options in OPTIONS:
        for ecn, word in WORDS.items():
            loads[f"below prio, queue empty, {word}: {options}"] = Load("prio", ecn, options=options)
    for ecn, word in WORDS.items():
        loads[f"root, queue empty, {word}: bypass"] = Load("root", ecn, options="bypass")
    return loads


def check_loads():
    """The few under which a change is held against what was."""
    loads = {name: load for name, load in STATS.items() if not load.waiting}
    for ecn, word in WORDS.items():
        loads[f"below tbf, 100 packets waiting, {word}"] = Load("tbf", ecn, waiting=100)
    return loads


def companion_loads():
    """Those under which the companions in extra are compared with dualpi2, with and without its shaper."""
    return {f"{name}{': ' * bool(more)}{more}": load._replace(options=more) for name, load in check_loads().items()
            for more in ("", "bandwidth 1tbit")}


# Without drops in overload p' stops at 0.1 here. RISE takes it there while packets wait, HELD keeps it.
HELD = "overflow p_cmax 1 coupling_factor 1 target 16ms tupdate 4s alpha 0.004 beta 0.004"
RISE = "overflow p_cmax 1 coupling_factor 1 target 16ms tupdate 100us alpha 100 beta 0.004"
# Packets are scored and none is redirected.
SCORE = "qprotect qprotect_delay 4s"


def marking_loads():
    """Those under which packets are marked, with the share of them that is."""
    loads = {f"below htb, 1000 packets waiting, {word}": Load("htb", ecn, waiting=1000) for ecn, word in WORDS.items()}
    for name, ecn, share, options in (("L4S, 1 % marked", "l4s", 0.01, "step_thresh 400ms ramp 800ms"),
                                    ("L4S, all marked", "l4s", 1, "step_thresh 0 ramp 0"),
                                    ("L4S, all marked, ramp", "l4s", 1, "step_thresh 0 ramp 1us"),
                                    ("L4S, all marked, scored", "l4s", 1, f"step_thresh 0 ramp 1us {SCORE}")):
        loads[f"below htb, 1000 packets waiting, {name}"] = Load("htb", ecn, share, 1000, options=options)
    for name, ecn, share in (("L4S, p' 10 %, 10 % marked", "l4s", 0.1), ("ECT(0), p' 10 %, 1 % marked", "ect0", 0.01)):
        loads[f"below htb, 1000 packets waiting, {name}"] = Load("htb", ecn, share, 1000, options=HELD, prime=RISE)
    return loads


SETS = {"stats": lambda: STATS, "compare": compare_loads, "marking": marking_loads, "check": check_loads,
        "companions": companion_loads}
COMPANIONS = ("pi2", "csaqm", "vdq_csaqm", "ppv")


def fail(text):
    """End the program with one line and code 1."""
    sys.exit(f"bench: {text}")


def run(command, text=None, check=True):
    """Run a command with TEXT as its input; returns what it prints. Its failure ends the program and is printed."""
    done = subprocess.run(command.split(), input=text, text=True, capture_output=True, check=False)
    if check and done.returncode:
        fail(f"`{command}` failed: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def write(path, text):
    """Tell pktgen, or the kernel, something."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text + "\n")
    except OSError as error:
        fail(f"'{text}' to {path}: {error.strerror}")


def by_pktgen(packets, ecn, size=1000, dev=DEV):
    """Let pktgen send; returns the nanoseconds it took."""
    write(f"{PKTGEN}/kpktgend_0", "rem_device_all")
    write(f"{PKTGEN}/kpktgend_0", f"add_device {dev}")
    for command in (f"count {packets}", f"pkt_size {size}", "delay 0", "clone_skb 0", "xmit_mode queue_xmit",
                  "dst 192.0.2.2", "dst_mac 02:00:00:00:00:02", f"tos {ECN[ecn]:02x}"):
        write(f"{PKTGEN}/{dev}", command)
    write(f"{PKTGEN}/pgctrl", "start")
    with open(f"{PKTGEN}/{dev}", encoding="ascii") as file:
        said = file.read()
    took = re.search(r"Result: OK: (\d+)\(", said)
    sent = re.search(r"pkts-sofar: (\d+)\s+errors: (\d+)", said)
    if not took or not sent or (int(sent[1]), int(sent[2])) != (packets, 0):
        fail(f"pktgen did not send {packets} packets: {' '.join(said.split())}")
    return int(took[1]) * 1000


def headers(ecn, protocol, length):
    """Ethernet and IPv4 before so many bytes; ecn is a name or a codepoint."""
    header = struct.pack("!BBHHHBBHII", 0x45, ECN.get(ecn, ecn), 20 + length, 0, 0, 64, protocol, 0, 0xc0000201,
                         0xc0000202)
    total = sum(struct.unpack("!10H", header))
    checksum = ~(total + (total >> 16)) & 0xffff
    return bytes.fromhex("020000000002 020000000001 0800") + header[:10] + struct.pack("!H", checksum) + header[12:]


def frame(ecn, size=1000):
    """A frame of so many bytes with UDP in IPv4."""
    return headers(ecn, 17, size - 34) + struct.pack("!HHHH", 9, 9, size - 34, 0) + bytes(size - 42)


def gso_frame(ecn):
    """A virtio header and a frame with TCP in IPv4, SEGMENTS segments in one; checksums are left to the device."""
    needs_checksum, tcp_ipv4, at, length = 1, 1, 34, 20 + SEGMENTS * SEGMENT
    pseudo = sum(struct.unpack("!6H", struct.pack("!IIHH", 0xc0000201, 0xc0000202, 6, length)))
    pseudo = (pseudo & 0xffff) + (pseudo >> 16)
    tcp = struct.pack("!HHIIBBHHH", 9, 9, 1, 1, 0x50, 0x10, 1000, pseudo, 0)
    virtio = struct.pack("=BBHHHH", needs_checksum, tcp_ipv4, at + 20, SEGMENT, at, 16)
    return virtio + headers(ecn, 6, length) + tcp + bytes(SEGMENTS * SEGMENT)


def packet_socket(gso=False):
    """A socket for frames."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((DEV, 0x0800))
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
    sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, int(gso))
    return sock


def by_socket(sock, packets, data):
    """Send a frame so many times; returns the nanoseconds it took."""
    send = sock.send
    # Begin right behind a tick of the clock, which costs as much as some packets: with 100 of them this is over
    # before the next one, of 1000 in a second.
    tick = time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE)
    while tick == time.clock_gettime_ns(CLOCK_MONOTONIC_COARSE):
        pass
    began = time.perf_counter_ns()
    try:
        for _ in range(packets):
            send(data)
    except OSError as error:
        fail(f"a packet cannot be sent: {error.strerror}")
    return time.perf_counter_ns() - began


def counters(dev=DEV):
    """[what a qdisc on a device says of itself], of those under test."""
    text = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", dev], text=True, capture_output=True,
                          check=True).stdout
    return [q for q in json.loads(text) if q.get("handle") in ("10:", "11:")]


def marks(said):
    """Marks of a qdisc, wherever its JSON has them."""
    if isinstance(said, list):
        return sum(marks(part) for part in said)
    if not isinstance(said, dict):
        return 0
    return sum(value if key in ("ecn_mark", "ecn-mark", "ce_mark") else marks(value) for key, value in said.items())


def left(dev):
    """Packets that have left a device."""
    with open(f"/sys/class/net/{dev}/statistics/tx_packets", encoding="ascii") as file:
        return int(file.read())


def set_rate(parent, rates):
    """Shut the qdisc that makes packets wait, or open it."""
    what = {"tbf": "qdisc change dev {} root handle 1: tbf", "htb": "class change dev {} parent 1: classid 1:1 htb"}
    run(f"tc {what[parent].format(DEV)} {rates[parent]}")


def idle_until_empty():
    """Nanoseconds that the processor takes for as many steps as always, while what htb held back leaves."""
    began = time.perf_counter_ns()
    for _ in itertools.repeat(None, STEPS):  # a range makes numbers, which takes now longer, now less
        pass
    return time.perf_counter_ns() - began


def fill_and_empty(parent, kind, packets, data, check, waiting=lambda: None):
    """Nanoseconds that it takes to queue packets while their parent lets none pass, and to send all of them, one more
    with them, when it does."""
    with packet_socket() as sock:
        took = by_socket(sock, packets, data)
        # Some pass before it shuts; htb lets one pass every 8 ms.
        most = 5 if parent == "tbf" else 5 + took / 7e6
        if check and not packets - most <= (waits := counters()[0]["qlen"]) <= packets:
            fail(f"of {packets} packets {waits} wait in {kind} below {parent}, which should let none pass")
        waiting()
        set_rate(parent, OPEN)
        if parent == "htb":
            took += idle_until_empty()
        took += by_socket(sock, 1, data)
        if check and (waits := counters()[0]["qlen"]):
            fail(f"{waits} packets stay in {kind} below {parent}, which should let all pass")
    set_rate(parent, SHUT)
    return took


def install(load, kind, options):
    """Put a qdisc where a load wants it."""
    dev = MANY_QUEUES if load.parent == "mq" else DEV
    ours = f"{kind} {options}"
    if load.parent == "root":
        run(f"tc qdisc add dev {dev} root handle 10: {ours}")
        return
    # One band, or class, takes all: what has no other word on it has priority 0.
    parents = {"prio": "prio bands 2 priomap" + " 0" * 16, "tbf": f"tbf {(SHUT if load.waiting else OPEN)['tbf']}",
             "htb": "htb default 1", "mq": "mq"}
    run(f"tc qdisc add dev {dev} root handle 1: {parents[load.parent]}")
    if load.parent == "htb":
        run(f"tc class add dev {dev} parent 1: classid 1:1 htb {(SHUT if load.waiting else OPEN)['htb']}")
    run(f"tc qdisc add dev {dev} parent 1:1 handle 10: {ours}")
    if load.parent == "mq":
        run(f"tc qdisc add dev {dev} parent 1:2 handle 11: {ours}")


def options_of(load, kind, most):
    """Arguments of tc for a qdisc that must hold so many packets under a load."""
    options = [] if kind in NO_LIMIT else [f"limit {most + 1}"]
    options.append(NATIVE if load.marked and not load.options and kind == "dualpi2" else QUIET.get(kind, ""))
    if load.gso and kind in SPLIT:
        options.append(SPLIT[kind][load.gso == "whole"])
    if load.options and kind == "dualpi2":
        # tc refuses an option that is given twice.
        for option in load.options.split():
            options = [re.sub(rf"\b{option} \S+", "", w) for w in options]
        options.append(load.options)
    return " ".join(options)


def suits(load, what):
    """Whether a load says something of a subject, as it is on the command line."""
    if what == "none":
        return load.parent == "root" and not load.waiting
    if load.options:
        return ":" not in what or (load.marked and what == "qdisc:pfifo")
    # What splits none has been seen with "whole"; pfifo is what all are held against.
    return load.gso != "split" or kind_of(what) in (*SPLIT, "pfifo")


def kind_of(what):
    """What tc calls a subject; None for none."""
    if what == "none":
        return None
    kind, colon, rest = what.partition(":")
    if colon and kind == "qdisc":
        return rest
    return kind if colon and kind in COMPANIONS else "dualpi2"


def measure(name, load, kind, packets, counts):
    """Instructions per packet under one load, which has that name, in a qdisc that counts marks or does not."""
    dev, each = MANY_QUEUES if load.parent == "mq" else DEV, 1
    packets = load.waiting or (GSO_PACKETS if load.gso else packets)
    if kind:
        first = load._replace(options=load.prime or load.options)
        install(load, kind, options_of(first, kind, packets * (SEGMENTS if load.gso else 1)))
    if load.prime and kind == "dualpi2":
        def hold():
            time.sleep(0.1)
            run(f"tc qdisc change dev {dev} parent 1:1 handle 10: dualpi2 {options_of(load, kind, packets)}")
        fill_and_empty(load.parent, kind, packets, frame(load.ecn, load.size), False, hold)
    before = left(dev)
    if load.waiting:
        # The first time the allocator lays in its stock. The least counts, as with repetitions; one more packet lets
        # the others go. Where there are many packets, many ticks of the clock are among them anyway.
        rounds, sent, data = ROUNDS if packets <= 1000 else 3, packets + 1, frame(load.ecn, load.size)
        found = [fill_and_empty(load.parent, kind, packets, data, n == 0 or load.parent == "htb") / sent
                 for n in range(rounds)]
        took = min(found[1:])
    elif load.gso:
        rounds, sent, data = ROUNDS, packets, gso_frame(load.ecn)
        each = SEGMENTS if load.gso == "split" and kind in SPLIT else 1
        with packet_socket(gso=True) as sock:
            took = min([by_socket(sock, packets, data) / packets for _ in range(rounds)][1:])
    else:
        # Undisturbed rounds cost the same to the instruction; the first, and one in five of the others, costs more.
        rounds, sent = 5, packets
        took = min(by_pktgen(packets, load.ecn, load.size, dev) for _ in range(rounds)) / packets
    if (out := left(dev) - before) != rounds * sent * each:
        fail(f"{kind or 'no qdisc'}: {out} packets left instead of {rounds * sent * each} ({name})")
    if kind and counts:
        marked, want = marks(counters(dev)), rounds * sent * load.marked if kind == "dualpi2" else 0
        # Some pass before tbf shuts, one it has peeked at by then, and the last one hardly waits.
        if not want / 2 - 5 * rounds * bool(want) <= marked <= want * (1 if load.marked == 1 else 2):
            fail(f"{kind}: {marked} packets were marked instead of {want} ({name})")
    if kind:
        run(f"tc qdisc del dev {dev} root")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--set", choices=SETS, default="stats")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--packets", type=int, default=5000)
    parser.add_argument("--only", default="", help="loads whose name has this in it")
    parser.add_argument("subject", nargs="+", metavar="NAME=MODULE.ko|in-tree:MODULE.ko|qdisc:KIND|none")
    args = parser.parse_args()
    subjects = dict(word.split("=", 1) for word in args.subject)
    loads = {name: load for name, load in SETS[args.set]().items() if args.only in name}

    if os.environ.get("DUALPI2_VM") != "virtual-time":
        fail("instructions can only be counted in virtual time; start this by scripts/bench.sh")
    parents = {load.parent for load in loads.values()} - {"root", "mq"}
    for module in ("pktgen", "dummy", *(f"sch_{parent}" for parent in sorted(parents))):
        run(f"modprobe {module}")
    for name, what in subjects.items():
        if what.startswith("qdisc:") and subprocess.run(["modprobe", f"sch_{kind_of(what)}"], check=False,
                                                        capture_output=True).returncode and what != "qdisc:pfifo":
            fail(f"Linux {os.uname().release} has no module of {kind_of(what)}; leave it out by --without {name}")
    if not os.path.exists(f"{PKTGEN}/kpktgend_0"):
        fail("this kernel has no pktgen; use one with CONFIG_NET_PKTGEN, as Debian's are")
    # No packets but those that are sent here.
    if os.path.exists("/proc/sys/net/ipv6/conf/default/disable_ipv6"):
        write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    run(f"ip link add {DEV} type dummy")
    run(f"ip link add {MANY_QUEUES} numtxqueues 2 type dummy")
    for dev in (DEV, MANY_QUEUES):
        run(f"ip link set {dev} address 02:00:00:00:00:01 up")
    # All that waits goes in one go.
    write("/proc/sys/net/core/dev_weight", "1000000")
    # Pages that the allocator gives back and takes again, and clears, are a matter of what was before.
    for path in glob.glob("/sys/kernel/slab/*/min_partial"):
        write(path, "100000")

    gc.disable()
    found = {name: {n: [] for n, what in subjects.items() if suits(load, what)} for name, load in loads.items()}
    for _ in range(args.repeat):
        for name, what in subjects.items():
            kind = kind_of(what)
            module = None if what == "none" or what.startswith("qdisc:") else what.rpartition(":")[2]
            if module:
                run(f"insmod {module}")
            for load, counted in found.items():
                if name in counted:
                    counted[name].append(measure(load, loads[load], kind, args.packets, name != "no-stats"))
            if module:
                run(f"rmmod {os.path.basename(module).removesuffix('.ko')}")
    result = {"kernel": os.uname().release, "packets": args.packets, "loads": found}
    print(json.dumps(result if args.set == "stats" else {"bench": args.set} | result))


if __name__ == "__main__":
    main()
