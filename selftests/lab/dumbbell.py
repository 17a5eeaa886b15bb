#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run one dumbbell experiment inside a test machine and leave its raw data.

snd ---- rtr ==== rcv: the link rtr-rcv has the rate, through htb with bursts of
one packet, and the queue discipline under test as its child.  The base RTT is
netem's, on the way back.  Flows are TCP of this kernel, paced by fq; a flow of
class "l" is DCTCP whose packets are sent as ECT(1), a flow of class "c" is a
Classic congestion control.  Every packet is seen before and behind the queue by
delaymeter.

This is the half that runs in the machine; measure.py evaluates what it left,
and neither knows the qdisc from inside.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

NETS = ("snd", "rtr", "rcv")


def run(command, check=True):
    """Run a shell command; on failure end the program with its words."""
    done = subprocess.run(command, shell=True, text=True, capture_output=True)
    if check and done.returncode:
        sys.exit(f"dumbbell: `{command}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def in_ns(name, command):
    return run(f"ip netns exec {name} {command}")


def rtt_us(text):
    """Microseconds of "10ms" or "500us"."""
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s)", text).groups()
    return round(float(number) * {"us": 1, "ms": 1000, "s": 1_000_000}[unit])


def build_topology(args):
    for name in NETS:
        run(f"ip netns add {name}")
    for a, b in (("snd", "rtr"), ("rtr", "rcv")):
        run(f"ip link add to_{b} netns {a} type veth peer name to_{a} netns {b}")
        for name, dev in ((a, f"to_{b}"), (b, f"to_{a}")):
            in_ns(name, f"ethtool -K {dev} tso off gso off gro off")
            in_ns(name, f"ip link set {dev} txqueuelen 10000 up")
    for name in NETS:
        in_ns(name, "ip link set lo up")
        in_ns(name, "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1 "
                    "net.ipv4.tcp_ecn=0 net.ipv6.conf.all.disable_ipv6=1")
    in_ns("rtr", "ip addr add 10.8.0.1/16 dev to_snd")
    in_ns("rtr", "ip addr add 10.9.0.1/16 dev to_rcv")
    in_ns("snd", "ip route add default via 10.8.0.1 onlink dev to_rtr")
    in_ns("rcv", "ip route add default via 10.9.0.1 onlink dev to_rtr")
    in_ns("rcv", f"tc qdisc add dev to_rtr root netem limit 100000 delay {rtt_us(args.rtt)}us")
    in_ns("snd", "tc qdisc add dev to_rtr root handle 1: fq limit 100000 flow_limit 100000")


def add_flow(number, flow):
    """Give a flow, "l:dctcp" or "c:cubic", a pair of addresses of its own."""
    kind, cc = flow.split(":")
    ecn = kind == "l" or cc.endswith("-ecn")
    cc = cc.removesuffix("-ecn")
    options = f"congctl {cc}" + (" features ecn" if ecn else "")
    net = {"l": 1, "c": 2}[kind]
    src, dst = f"10.8.{net}.{number}", f"10.9.{net}.{number}"
    in_ns("snd", f"ip addr add {src}/32 dev to_rtr")
    in_ns("rcv", f"ip addr add {dst}/32 dev to_rtr")
    in_ns("snd", f"ip route add {dst}/32 via 10.8.0.1 onlink dev to_rtr src {src} {options}")
    in_ns("rcv", f"ip route add {src}/32 via 10.9.0.1 onlink dev to_rtr src {dst} {options}")
    in_ns("rtr", f"ip route add {src}/32 dev to_snd")
    in_ns("rtr", f"ip route add {dst}/32 dev to_rcv")
    return {"kind": kind, "cc": cc, "src": src, "dst": dst, "ecn": ecn}


def mark_as_l4s():
    """The L4S flows' ECT(0), which is all that DCTCP sends, becomes ECT(1)."""
    in_ns("snd", "nft add table ip lab")
    in_ns("snd", "nft 'add chain ip lab out { type filter hook postrouting priority 0; }'")
    in_ns("snd", "nft add rule ip lab out ip saddr 10.8.1.0/24 ip ecn ect0 ip ecn set ect1")
    in_ns("rcv", "nft add table ip lab")
    in_ns("rcv", "nft 'add chain ip lab out { type filter hook postrouting priority 0; }'")
    in_ns("rcv", "nft add rule ip lab out ip saddr 10.9.1.0/24 ip ecn ect0 ip ecn set ect1")


def build_bottleneck(args):
    dev = "dev to_rcv"
    in_ns("rtr", f"tc qdisc add {dev} root handle 1: htb default 10 direct_qlen 1000")
    in_ns("rtr", f"tc class add {dev} parent 1: classid 1:10 htb rate {args.rate} ceil {args.rate} "
                 "burst 1514 cburst 1514 quantum 1514")
    in_ns("rtr", f"{args.tc} qdisc add {dev} parent 1:10 handle 10: {args.aqm}")


def queue_stats(args):
    text = in_ns("rtr", f"{args.tc} -s -j qdisc show dev to_rcv")
    return next((q for q in json.loads(text) if q.get("handle") == "10:"), None)


def measure(args, flows):
    receivers = [subprocess.Popen(
        ["ip", "netns", "exec", "rcv", "iperf3", "-s", "-1", "-B", f["dst"], "-p", "5201"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for f in flows]
    raw = os.path.join("/tmp", "sightings")
    meter = subprocess.Popen(
        ["ip", "netns", "exec", "rtr", args.delaymeter, "to_snd", "to_rcv", "10.8", raw],
        stderr=subprocess.PIPE, text=True)
    if meter.stderr.readline() != "ready\n":
        sys.exit("dumbbell: delaymeter did not start: " + meter.stderr.read())
    time.sleep(0.5)
    total = args.warmup + args.seconds
    senders = [subprocess.Popen(
        ["ip", "netns", "exec", "snd", "iperf3", "-c", f["dst"], "-B", f["src"], "-p", "5201",
         "-t", str(total + 1)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for f in flows]
    started = time.time_ns()
    before = None
    for second in range(total):
        if second == args.warmup:
            before = queue_stats(args)
        time.sleep(max(0, started / 1e9 + second + 1 - time.time()))
        print(f"progress {second + 1}/{total}", flush=True)
    after = queue_stats(args)
    for process in senders:
        _, err = process.communicate(timeout=300)
        if process.returncode:
            sys.exit("dumbbell: iperf3: " + err.strip())
    for process in receivers:
        process.wait(timeout=300)
    meter.send_signal(signal.SIGTERM)
    complaint = meter.stderr.read()
    if meter.wait(timeout=60):
        sys.exit("dumbbell: delaymeter: " + complaint.strip())
    return {"start_ns": started, "raw": raw, "before": before, "after": after}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rate", default="40mbit")
    parser.add_argument("--rtt", default="10ms")
    parser.add_argument("--aqm", default="dualpi2", help="kind and options, as for tc qdisc add")
    parser.add_argument("--flow", action="append", metavar="l:CC|c:CC[-ecn]")
    parser.add_argument("--warmup", type=int, default=10, help="seconds left out")
    parser.add_argument("--seconds", type=int, default=60, help="seconds measured")
    parser.add_argument("--tc", default="tc")
    parser.add_argument("--delaymeter", required=True)
    parser.add_argument("--module", help="sch_dualpi2.ko to load")
    parser.add_argument("--out", required=True, help="directory for the results")
    args = parser.parse_args()
    args.flow = args.flow or ["l:dctcp", "c:cubic"]

    if args.module:
        run(f"insmod {shlex.quote(args.module)}")
    run("modprobe -a tcp_dctcp sch_fq sch_htb sch_netem")
    allowed = run("sysctl -n net.ipv4.tcp_allowed_congestion_control").split()
    run("sysctl -qw net.ipv4.tcp_allowed_congestion_control='" + " ".join([*allowed, "dctcp"]) + "'")
    build_topology(args)
    flows = [add_flow(n, f) for n, f in enumerate(args.flow, 1)]
    mark_as_l4s()
    build_bottleneck(args)
    result = measure(args, flows)
    raw = result.pop("raw")
    os.makedirs(args.out, exist_ok=True)
    result |= {"flows": flows, "kernel": os.uname().release, "args": vars(args)}
    run(f"cp {raw} {shlex.quote(args.out)}/sightings")
    with open(os.path.join(args.out, "run.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
