#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What an idle qdisc costs: memory, wakeups and instructions, and what a dump of its statistics costs.

Thousands of them are the leaves of HTB's classes, on some dummy devices. One half of this runs in a machine in virtual
time, where one instruction is one nanosecond, the other judges what it found; scripts/bench.sh instances starts both.

usage: instances.py run [--seconds N] [--instances N] [--most N] KIND|NAME=MODULE.ko...
       instances.py judge [--ktap] RESULT.json COUNTS

run prints one JSON object. "NAME=MODULE.ko" is a dualpi2. Each number is of one instance:
  asks     what the kernel hands out for it, by caller: [bytes wanted, bytes of the cache that they come from], from the
           tracepoints kmem:kmalloc and kmem:kfree
  memory   bytes that SUnreclaim, VmallocUsed and Percpu of /proc/meminfo grow by where it takes the place of a class's
           own pfifo, which the table adds: of some hundred new ones, of these after a packet of each codepoint, and
           of --most new ones
  rest     for new instances, for those that carried packets, and (our module) for those that were in overload: what ran
           while nothing was sent, timers and works by function, from the tracepoints of each; and the places in COUNTS
           with the instructions before and after another such time. COUNTS is from the plugin in instructions.c: this
           program executes an instruction that tells it to count
  shown    instructions that `tc -s qdisc show` takes with --most of them, and a bare dump by netlink, with its bytes
A time lasts --seconds, but two seconds for a kind that wakes up each second: that is enough to count. Of such a kind,
and of one that there is no memory for, --instances are shown, not --most: so many might take all of the processor.
"""

import argparse
import contextlib
import ctypes
import glob
import json
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

from cost import SO_SNDBUFFORCE, fail, frame, run, write  # noqa: E402
from ktap import report  # noqa: E402
from netlink import (NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLMSG_DONE, RTM_DELQDISC, RTM_GETQDISC,      # noqa: E402
                     RTM_NEWQDISC, TCA_KIND, Socket, align, attr, tcmsg)

# Devices with so many classes each: whenever the kernel makes a class, it looks at all that are there.
CLASSES = 1000
TRACING = "/sys/kernel/tracing"
FAST, SLOW = "rate 100gbit burst 100mb cburst 100mb", "rate 8kbit ceil 8kbit burst 1100 cburst 1100"
# Kinds that take a megabyte each: the machine has no room for more.
FEW = {"cake": 250}
# By field "function". What a delayed work waits for is counted as a work.
EVENTS = ("timer/timer_expire_entry", "timer/hrtimer_expire_entry", "workqueue/workqueue_execute_start")
# Not of one user: these stand for others, which are counted themselves.
CARRIERS = ("delayed_work_timer_fn",)
# What may be attributed to a qdisc: functions of a module of qdiscs, and the timer that such a one sets in the core.
OURS = re.compile(r" \[sch_\w+\]$|^qdisc_watchdog$")
MOST_CPU, MOST_BYTES = 0.001, 2048


class Marks:
    """Asks the plugin for the number of instructions; what it answers only the host can read."""

    def __init__(self):
        self.count = 0
        self.page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.page.write(b"\x0f\x1f\x80IP2d\xc3")
        self.ask = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(self.page)))

    def __call__(self):
        self.ask()
        self.count += 1
        return self.count - 1


class Netlink(Socket):
    """Qdiscs with the options that they have by default, made, removed and shown."""

    def act(self, what, kind, flags, device, minor, more=b""):
        """Have something done to the qdisc below a class."""
        answer = self.request(kind, flags, tcmsg(device, minor + 256 << 16, 1 << 16 | minor) + more)
        if answer.error:
            fail(f"cannot {what} below class {minor}: {os.strerror(answer.error)}")

    def add(self, kind, device, minor):
        """Put a qdisc below a class."""
        self.act(f"add {kind}", RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, device, minor,
                 attr(TCA_KIND, kind.encode() + b"\0"))

    def remove(self, device, minor):
        """Take it away; the class has a pfifo of its own again."""
        self.act("remove the qdisc", RTM_DELQDISC, 0, device, minor)

    def dump(self):
        """(nanoseconds, bytes, messages) of a dump of all qdiscs."""
        chunks, recv = [], self.sock.recv
        began = time.perf_counter_ns()
        self.send(RTM_GETQDISC, NLM_F_DUMP, tcmsg(0))
        while True:
            chunk = recv(65536)
            chunks.append(chunk)
            if struct.unpack_from("=IH", chunk, len(chunk) - 20) == (20, NLMSG_DONE):
                break
        took, count = time.perf_counter_ns() - began, 0
        for chunk in chunks:
            at = 0
            while at < len(chunk):
                length, kind = struct.unpack_from("=IH", chunk, at)
                count += kind == RTM_NEWQDISC
                at += align(length)
        return took, sum(map(len, chunks)), count


class Machine:
    """The machine with its classes, and what can be done and seen in it."""

    def __init__(self, classes, seconds):
        self.seconds = seconds
        self.marks = Marks()
        self.netlink = Netlink()
        for module in ("dummy", "sch_htb"):
            run(f"modprobe {module}")
        self.devices = []
        for number in range((classes + CLASSES - 1) // CLASSES):
            name = f"bench{number}"
            run(f"ip link add {name} type dummy")
            if os.path.exists(f"/proc/sys/net/ipv6/conf/{name}"):
                write(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1")
            run(f"ip link set {name} address 02:00:00:00:00:01 up")
            run(f"tc qdisc add dev {name} root handle 1: htb")
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sock.bind((name, 0x0800))
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
            self.devices.append((name, socket.if_nametoindex(name), sock))
        self.classes_are("add", FAST, classes)

    def place(self, number):
        """((name, index and socket of the device), class) of an instance, from 0 on."""
        return self.devices[number // CLASSES], number % CLASSES + 1

    def classes_are(self, verb, rate, count):
        """Add or change the classes of the first instances."""
        lines = []
        for (name, _, _), minor in map(self.place, range(count)):
            lines.append(f"class {verb} dev {name} parent 1: classid 1:{minor:x} htb quantum 1514 {rate}\n")
        run("tc -batch -", "".join(lines))

    def options_are(self, options, count):
        """Change the first instances, which are dualpi2."""
        run("tc -batch -", "".join(f"qdisc change dev {name} parent 1:{minor:x} dualpi2 {options}\n"
                                   for (name, _, _), minor in map(self.place, range(count))))

    def add(self, kind, first, count):
        """New instances."""
        for (_, index, _), minor in map(self.place, range(first, first + count)):
            self.netlink.add(kind, index, minor)

    def remove(self, count):
        """No instances."""
        for (_, index, _), minor in map(self.place, range(count)):
            self.netlink.remove(index, minor)
        time.sleep(2)

    def send(self, first, count, codepoints=(0, 1, 2, 3)):
        """Packets for some instances."""
        frames = [frame(codepoint) for codepoint in codepoints]
        for (_, _, sock), minor in map(self.place, range(first, first + count)):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 1 << 16 | minor)
            for data in frames:
                sock.send(data)

    @contextlib.contextmanager
    def counted(self):
        """{function: how often a timer or a work of it ran meanwhile}."""
        found = {}
        for event in EVENTS:
            write(f"{TRACING}/events/{event}/trigger", "hist:keys=function.sym:size=2048")
        try:
            yield found
        finally:
            for event in EVENTS:
                with open(f"{TRACING}/events/{event}/hist", encoding="ascii") as file:
                    said = file.read()
                write(f"{TRACING}/events/{event}/trigger", "!hist:keys=function.sym:size=2048")
                if not re.search(r"Dropped: 0$", said, re.M):
                    fail(f"the histogram of {event} is incomplete: {said[-200:]}")
                for name, count in re.findall(r"\{ function: \[\w+\] (.*?) *\} hitcount: +(\d+)", said):
                    found[name] = found.get(name, 0) + int(count)

    def rest(self, instances):
        """What runs while nothing is sent."""
        time.sleep(2)
        seconds = 2
        for _ in range(2):
            with self.counted() as ran:
                time.sleep(seconds)
            if seconds == self.seconds or attributed(ran) >= instances:
                break
            seconds = self.seconds
        began = self.marks()
        time.sleep(seconds)
        return {"seconds": seconds, "instances": instances, "ran": ran, "counts": [began, self.marks()]}

    def asks(self, kind):
        """What the kernel hands out for one instance."""
        # Before the kernel has collected entropy, all hashed pointers are printed alike.
        if os.path.exists(f"{TRACING}/options/hash-ptr"):
            write(f"{TRACING}/options/hash-ptr", "0")
        with open(f"{TRACING}/set_event", "w", encoding="ascii") as file:
            file.write("kmem:kmalloc kmem:kfree\n")
        write(f"{TRACING}/trace", "")
        self.add(kind, 0, 1)
        time.sleep(1)
        write(f"{TRACING}/set_event", "")
        with open(f"{TRACING}/trace", encoding="ascii") as file:
            lines = file.read().splitlines()
        self.remove(1)
        held = {}
        for line in lines:
            pointer = re.search(r"ptr=(\S+)", line)
            if " kfree: " in line:
                held.pop(pointer[1], None)
            elif " kmalloc: " in line and re.match(rf" *\S+-{os.getpid()} ", line):
                said = re.search(r"call_site=([^+ ]+)\S* .*bytes_req=(\d+) bytes_alloc=(\d+)", line)
                held[pointer[1]] = [said[1], int(said[2]), int(said[3])]
        if not any(caller == "qdisc_alloc" for caller, _, _ in held.values()):
            fail(f"qdisc_alloc() asked for nothing for {kind}: the tracepoints of this kernel are others")
        return list(held.values())


def attributed(ran):
    """How often something of a qdisc ran."""
    return sum(count for name, count in ran.items() if OURS.search(name))


def memory():
    """(bytes that the kernel has for itself, kilobytes that are free), when all is given back that is not in use."""
    time.sleep(2)
    for path in glob.glob("/sys/kernel/slab/kmalloc-*/shrink"):
        write(path, "1")
    with open("/proc/meminfo", encoding="ascii") as file:
        said = dict(re.findall(r"^(\w+): +(\d+) kB$", file.read(), re.M))
    return sum(int(said[name]) for name in ("SUnreclaim", "VmallocUsed", "Percpu")) * 1024, int(said["MemAvailable"])


def overload(machine, count):
    """Take dualpi2's instances into overload and out of it again."""
    # Overload begins after 128 serialization times or more: with the rate of HTB these would be minutes.
    machine.options_are("bandwidth 1tbit", count)
    machine.classes_are("change", SLOW, count)
    # One a second leaves, and the others have waited for as long.
    machine.send(0, count, (0, 1, 0, 1, 0, 1))
    time.sleep(30)
    machine.classes_are("change", FAST, count)
    machine.options_are("unlimited", count)
    found = [q for q in json.loads(run("tc -s -j qdisc show")) if q["kind"] == "dualpi2"]
    for q in found:
        if not q.get("overload-count") or q["overload"] or q["overload-reports"] < 2 or q["qlen"]:
            state = {name: q.get(name) for name in ("overload-count", "overload", "overload-reports", "qlen")}
            fail(f"{q['handle']} should have been in overload, and have said so: {state}")
    if len(found) != count:
        fail(f"{len(found)} instances of {count} are shown")


def shown(machine):
    """([instructions that it takes to show all, the same by netlink alone, bytes], how many they are)."""
    with open(os.devnull, "wb") as null:
        began = time.perf_counter_ns()
        subprocess.run(["tc", "-s", "qdisc", "show"], stdout=null, check=True)
        took = time.perf_counter_ns() - began
    netlink, size, qdiscs = machine.netlink.dump()
    return [took, netlink, size], qdiscs


def measure(machine, name, kind, count, most):
    """All that is to be known of one kind."""
    found = {"asks": machine.asks(kind), "rest": {}, "memory": {}}
    other = FEW.get(kind, count)
    machine.add(kind, 0, count)
    found["rest"]["new"] = machine.rest(count)
    machine.send(0, count)
    found["rest"]["carried"] = machine.rest(count)
    if name == "ours":
        overload(machine, count)
        found["rest"]["overload"] = machine.rest(count)
    least = memory()[0]
    machine.add(kind, count, other)
    found["memory"]["new"] = (memory()[0] - least) / other
    machine.send(count, other)
    found["memory"]["carried"] = (memory()[0] - least) / other
    machine.remove(count + other)
    if not most:
        return found
    least, free = memory()
    if any(attributed(rest["ran"]) >= count for rest in found["rest"].values()) or \
            most * found["memory"]["new"] > free * 1024 * 3 / 4:
        most = count
    before, beside = shown(machine)
    machine.add(kind, 0, most)
    found["memory"]["most"] = (memory()[0] - least) / most
    after, qdiscs = shown(machine)
    if qdiscs != beside + most:
        fail(f"a dump shows {qdiscs - beside} qdiscs of {most}")
    found["shown"] = [most, *((a - b) / most for a, b in zip(after, before, strict=True))]
    machine.remove(most)
    return found


def run_all(args):
    """The half in the machine."""
    if os.environ.get("DUALPI2_VM") != "virtual-time":
        fail("instructions can only be counted in virtual time; start this by scripts/bench.sh instances")
    if not os.path.exists(f"{TRACING}/events/{EVENTS[0]}/hist"):
        fail("this kernel cannot count events; use one with CONFIG_HIST_TRIGGERS, as Debian's are")
    machine = Machine(max(2 * args.instances, args.most), args.seconds)
    began, count = time.perf_counter_ns(), machine.marks()
    while time.perf_counter_ns() < began + 20_000_000:
        pass
    took, busy = time.perf_counter_ns() - began, [count, machine.marks()]
    result = {"bench": "instances", "kernel": os.uname().release, "seconds": args.seconds, "most": args.most,
              "busy": {"counts": busy, "ns": took}, "none": [machine.rest(args.instances)],
              "pfifo": machine.asks("pfifo"), "kinds": {}}
    for word in args.kind:
        name, _, module = word.partition("=")
        if module:
            run(f"insmod {module}")
        elif name != "pfifo":
            run(f"modprobe sch_{name}")
        result["kinds"][name] = measure(machine, name, "dualpi2" if module else name, args.instances, args.most)
        if module:
            run("rmmod sch_dualpi2")
    # What a kernel does by itself is not the same each time: the lesser counts.
    result["none"].append(machine.rest(args.instances))
    result["marks"] = machine.marks.count
    print(json.dumps(result))
    return 0


def executed(counts, places):
    """Instructions between two places."""
    return counts[places[1]] - counts[places[0]]


def cpu(none, counts, rest):
    """Part of the processor that all idle instances take."""
    return (executed(counts, rest["counts"]) / rest["seconds"] -
            executed(counts, none["counts"]) / none["seconds"]) / 1e9


def wakeups(none, rest):
    """(those attributed to the qdisc, all that ran more than without instances), each per instance and second."""
    names = (rest["ran"].keys() | none["ran"].keys()) - set(CARRIERS)
    total = sum(rest["ran"].get(n, 0) / rest["seconds"] - none["ran"].get(n, 0) / none["seconds"] for n in names)
    return attributed(rest["ran"]) / rest["instances"] / rest["seconds"], total / rest["instances"]


def qdisc_bytes(kind):
    """(bytes wanted, bytes of the cache) of struct Qdisc and private data."""
    return next((wanted, cache) for caller, wanted, cache in kind["asks"] if caller == "qdisc_alloc")


def cell(number, digits=0):
    """A number for a table."""
    return "-" if number is None else f"{number:,.{digits}f}"


def tables(result, none, counts):
    """Lines of Markdown."""
    pfifo = sum(cache for _, _, cache in result["pfifo"])
    head = [f"Linux {result['kernel']}, bytes of one", "qdisc and private data", "from a cache of", "with all else",
            "measured, new", "after packets", "of all that are shown"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, kind in result["kinds"].items():
        cells = [*qdisc_bytes(kind), sum(ask[2] for ask in kind["asks"])]
        cells += [kind["memory"][n] + pfifo if n in kind["memory"] else None for n in ("new", "carried", "most")]
        lines.append("| " + " | ".join([name, *map(cell, cells)]) + " |")
    asks = (f"{caller}() {wanted:,} from {cache:,}" for caller, wanted, cache in result["kinds"]["ours"]["asks"])
    lines += ["", f"For ours: {', '.join(asks)}."]
    head = [f"{none['instances']:,} at rest", "since", "seconds", "wakeups per instance and second",
            "all that ran more", "CPU of all, %", "what"]
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, kind in result["kinds"].items():
        for since, rest in kind["rest"].items():
            mine, total = wakeups(none, rest)
            what = ", ".join(sorted(n for n in rest["ran"] if OURS.search(n)))
            cells = [name, since, str(rest["seconds"]), cell(mine, 3), cell(total, 3),
                     cell(100 * cpu(none, counts, rest), 5), what]
            lines.append("| " + " | ".join(cells) + " |")
    base = [cell(executed(counts, n["counts"]) / n["seconds"]) for n in result["none"]]
    lines += ["", f"Without instances the machine executes {base[0]} instructions a second, {base[1]} at the end.", ""]
    if any("shown" in kind for kind in result["kinds"].values()):
        head = ["of each that is shown", "of", "instructions, tc -s qdisc show", "netlink alone", "bytes"]
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for name, kind in result["kinds"].items():
            lines.append("| " + " | ".join([name, *(map(cell, kind.get("shown", [None] * 4)))]) + " |")
        lines.append("")
    return lines


def checks(result, none, counts):
    """[(name, whether it holds)]."""
    busy = result["busy"]
    found = [("plugin_counts_what_the_clock_does", abs(executed(counts, busy["counts"]) / busy["ns"] - 1) < 0.001)]
    ours = result["kinds"]["ours"]
    for since, rest in ours["rest"].items():
        mine, total = wakeups(none, rest)
        # That not one in each of them ran is the least that the noise of a kernel lets the total say.
        found += [(f"no_wakeup_at_rest {since}", not mine and total * rest["seconds"] < 1),
                  (f"cpu_at_rest_at_most_{100 * MOST_CPU:g}_percent {since}", cpu(none, counts, rest) <= MOST_CPU)]
    return [*found, (f"qdisc_and_private_data_from_a_cache_of_{MOST_BYTES}_bytes", qdisc_bytes(ours)[1] <= MOST_BYTES)]


def judge(args):
    """The half on the host."""
    with open(args.result, encoding="utf-8") as file:
        result = json.load(file)
    with open(args.counts, encoding="ascii") as file:
        counts = [int(line) for line in file]
    if len(counts) != result["marks"]:
        fail(f"the plugin counted {len(counts)} times, not {result['marks']}; run scripts/bench.sh instances again")
    none = min(result["none"], key=lambda n: executed(counts, n["counts"]))
    lines, verdicts = tables(result, none, counts), checks(result, none, counts)
    return report([(f"{name} on {result['kernel']}", good) for name, good in verdicts], lines, args.ktap)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    halves = parser.add_subparsers(required=True)
    half = halves.add_parser("run")
    half.add_argument("--seconds", type=int, default=60)
    half.add_argument("--instances", type=int, default=1000)
    half.add_argument("--most", type=int, default=10000)
    half.add_argument("kind", nargs="+", metavar="KIND|NAME=MODULE.ko")
    half.set_defaults(do=run_all)
    half = halves.add_parser("judge")
    half.add_argument("--ktap", action="store_true")
    half.add_argument("result")
    half.add_argument("counts")
    half.set_defaults(do=judge)
    args = parser.parse_args()
    return args.do(args)


if __name__ == "__main__":
    sys.exit(main())
