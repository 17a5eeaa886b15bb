#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Hours of traffic through one dualpi2, each judged by itself.

One machine, one qdisc that is never recreated. An hour is 59 minutes at 4 Mbit/s and 25 ms, one minute at 40 Mbit/s
and 10 ms (the rate is changed in place) and a pause, in turn of 4.3 s, 71 minutes and 49.7 days, where numbers of 32
bits and of microseconds wrap. Flows are one of DCTCP, sent as ECT(1), and one of CUBIC. The RTT is a microsecond
longer each hour: machines do the same after equal times, nearly whatever their seeds are. The bands are those of
accept.py; besides, the counters fit together, memory does not grow, and what comes after the pause is neither marked
nor dropped.

This is the half that runs in the machine, scripts/torture.sh boots it. A line of JSON an hour goes to --out.
What is measured is the qdisc's delay of every packet, by delaymeter, as in all experiments here.
"""

import argparse
import json
import os
import shutil
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import accept                                                           # noqa: E402
import dumbbell                                                         # noqa: E402
import lib                                                              # noqa: E402
import measure                                                          # noqa: E402

PAUSES_S = (4.3, 71 * 60, 49.7 * 86400)
# Case of accept.py, seconds of warm-up left out, seconds measured.
LEGS = (("4-25", 10, 3530), ("40-10", 10, 50))


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--first", type=int, required=True, help="number of the first hour")
    parser.add_argument("--last", type=int, required=True, help="number of the last hour")
    parser.add_argument("--delaymeter", required=True)
    parser.add_argument("--module", required=True)
    parser.add_argument("--out", required=True, help="file to append to")
    return parser.parse_args(argv)


def job_for(case, warmup, seconds):
    """The leg's job: one flow of each class, through the qdisc that is there."""
    return dumbbell.simple_job(*accept.CASES[case], "dualpi2", ["l:dctcp", "c:cubic"], warmup, seconds, "dualpi2")


def leg(job, flows, delaymeter):
    """Run one leg on the topology that is there; returns what measure.py makes of it."""
    dumbbell.set_rate(job, job["rate"], "tc")
    dumbbell.set_rtts(job, "change")
    result = dumbbell.measure(job, flows, delaymeter, "tc", None)
    out = f"/tmp/soak-{os.getpid()}"
    os.makedirs(out, exist_ok=True)
    try:
        os.rename(f"{dumbbell.SCRATCH}/sightings", f"{out}/sightings")
        result |= {"job": job, "flows": flows, "kernel": os.uname().release}
        with open(f"{out}/run.json", "w", encoding="utf-8") as file:
            json.dump(result, file)
        return measure.evaluate(out)
    finally:
        shutil.rmtree(out, ignore_errors=True)


def after_a_pause(seconds):
    """Marks and drops among 40 packets that come slowly after a pause; there should be none."""
    time.sleep(seconds)
    before = lib.stats("rtr", "to_rcv")
    with lib.in_netns("snd"):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for n in range(40):
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, n % 2)
        sock.sendto(bytes(100), ("10.9.2.1", 9))
        time.sleep(0.02)
    sock.close()
    after = lib.stats("rtr", "to_rcv")
    return sum(after[key] - before[key] for key in ("ecn_mark", "drops"))


def memory():
    """What the kernel holds, without caches that it can drop at any time, and apart from it what the programs hold."""
    with open("/proc/meminfo", encoding="ascii") as file:
        info = {line.split(":")[0]: int(line.split()[1]) for line in file}
    others = ("MemFree", "Buffers", "Cached", "AnonPages", "SReclaimable")
    return {"memory_kb": info["MemTotal"] - sum(info[key] for key in others),
            "programs_kb": info["AnonPages"] + info["Shmem"]}


def hour(args, flows, number):
    """One hour; returns its record."""
    record = {"hour": number, "missed": [], "legs": {}}
    for case, warmup, seconds in LEGS:
        job = job_for(case, warmup, seconds)
        for group in job["groups"]:
            group["rtt_ms"] += number / 1000
        r = leg(job, flows, args.delaymeter)
        record["legs"][case] = {
            "l_mean_ms": r["l"]["delay_ms"]["mean"], "l_p99_ms": r["l"]["delay_ms"]["p99"],
            "c_mean_ms": r["c"]["delay_ms"]["mean"], "ratio": r["l"]["mbit"] / r["c"]["mbit"],
            "utilization_pct": r["utilization_pct"], "packets": sum(r[q]["delay_ms"]["packets"] for q in "lc")}
        for what, value, least, greatest in accept.bounds(case, r):
            if not least <= value <= greatest:
                record["missed"].append(f"{case}: {what}: {value:.4g} ({least:g} to {greatest:g})")
    signals = after_a_pause(PAUSES_S[number % len(PAUSES_S)])
    if signals:
        record["missed"].append(f"{signals} marks and drops after a pause")
    st = lib.stats("rtr", "to_rcv")
    try:
        lib.check_identities(st)
    except lib.Failure as error:
        record["missed"].append(str(error))
    if (st["qlen"], st["backlog"], st["memory_used"]) != (0, 0, 0):
        record["missed"].append(f"left: {st['qlen']} packets, {st['backlog']} bytes, {st['memory_used']} of memory")
    return record | memory() | {"packets": st["packets"], "uptime_s": round(time.monotonic())}


def report(path):
    """Print the ranges of all hours in a file, and what was missed. Returns 0 if nothing was."""
    with open(path, encoding="utf-8") as file:
        hours = [json.loads(line) for line in file]
    missed = [f"hour {h['hour']}: {m}" for h in hours for m in h["missed"]]
    seen = {}
    for h in hours:
        first = seen.setdefault(json.dumps(h["legs"]), h["hour"])
        if first != h["hour"]:
            missed.append(f"hour {h['hour']} repeats hour {first}")
    for case in hours[0]["legs"] if hours else ():
        legs = [h["legs"][case] for h in hours]
        print(f"# {case}: " + ", ".join(
            f"{key} {min(leg[key] for leg in legs):.4g} to {max(leg[key] for leg in legs):.4g}" for key in legs[0]))
    # The memory of a machine's kernel at the end of each of its hours but the first, when all caches are filled.
    runs, before = [], 0
    for h in hours:
        if not runs or h["uptime_s"] < before:
            runs.append((h["hour"], []))
        before = h["uptime_s"]
        runs[-1][1].append(h["memory_kb"])
    for first, held in runs:
        held = held[1:] or held
        print(f"# the kernel's memory from hour {first} on, kB: {held[0]} ... {held[-1]}, at most {max(held)}")
        if len(held) > 2 and max(held[len(held) // 2:]) > 1.1 * max(held[:len(held) // 2]):
            missed.append(f"the kernel's memory from hour {first} on grew: {held}")
    if hours:
        programs = [h["programs_kb"] for h in hours]
        print(f"# the programs' memory, kB: {min(programs)} to {max(programs)}")
    for text in missed:
        print(f"# MISSED {text}")
    print(f"{len(hours)} hours, {len(missed)} missed")
    return 1 if missed or not hours else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--report":
        sys.exit(report(sys.argv[2]))
    args = parse(sys.argv[1:])
    job = job_for(*LEGS[0])
    dumbbell.load_module(job, {"dualpi2": args.module})
    dumbbell.allow_congestion_control(job, None)
    dumbbell.build_topology(job)
    flows = dumbbell.add_flows(job)
    dumbbell.build_bottleneck(job, "tc")
    for number in range(args.first, args.last + 1):
        record = hour(args, flows, number)
        with open(args.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print("hour " + json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
