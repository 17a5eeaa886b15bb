#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run one job, a dumbbell experiment, inside a test machine and leave its raw data.

snd ---- rtr ==== rcv: the link rtr-rcv has the rate, through htb with bursts of one packet, and the queue discipline
under test as its child; or by that queue discipline alone, where it shapes by itself. The base RTTs are netem's, one
for each that groups of flows have, on the way back. traffic.py makes the flows, paced by fq but for groups without
pacing. Every packet is seen before and behind the queue by delaymeter. Where packets come in aggregates there is a
network namespace agg between snd and rtr.

A job (job.py) is a JSON file (--job); the options --rate, --rtt, --aqm and --flow are a shorthand for a job of one L4S
and one Classic class of flows. This is the half that runs in the machine; measure.py evaluates what it left (run.json,
sightings, web.csv, tcp.csv), and neither knows the qdisc from inside.
"""

import argparse
import errno
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from job import (FORMAT, MOST_RTTS, UDP_PRAGUE, JobError, aggregated, bits_per_second, check, parameters,
                 uses_udp_prague)

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = ("snd", "rtr", "rcv")
CHILD = "parent 10:1 handle 20:"
# A quantum of one packet: fq paces UDP, which has no departure times of its own, quantum by quantum.
FQ = "fq limit 100000 flow_limit 100000 quantum 1514 initial_quantum 1514"
PRAGUE_PARAMETERS = "/sys/module/tcp_prague/parameters"
PACKET_BITS = 1514 * 8
SCRATCH = "/tmp/lab"
ROUND_NS = 10 * 10**9  # longer than a machine takes to start
RNDRESEEDCRNG = 0x5207  # linux/random.h
# More than 200 Mbit/s and 100 ms of base RTT need, with as much queue again.
TCP_MEMORY = "net.ipv4.tcp_rmem='4096 131072 33554432' net.ipv4.tcp_wmem='4096 16384 33554432'"


def fail(words):
    """End the program with one line and code 1."""
    sys.exit(f"dumbbell: {words}")


def first_words(text):
    """What a program complained of, in one line and without the usage that tc adds."""
    return " ".join(text.split()).split(" Usage:")[0]


def run(command, check=True):
    """Run a shell command; on failure end the program with its words."""
    done = subprocess.run(command, shell=True, text=True, capture_output=True)
    if check and done.returncode:
        fail(f"`{command}` failed: {first_words(done.stderr.strip() or done.stdout)}")
    return done.stdout


def in_ns(name, command):
    """run() in a network namespace."""
    return run(f"ip netns exec {name} {command}")


def rtt_ms(text):
    """Milliseconds of "10ms" or "500us"."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)", text)
    if not found:
        fail(f"'{text}' is no time; write it like 10ms")
    return float(found[1]) * {"us": 0.001, "ms": 1, "s": 1000}[found[2]]


def simple_job(rate, rtt, aqm, flows, warmup, seconds, module):
    """Job of the short options: flows are "l:CC", sent as ECT(1), and "c:CC" or "c:CC-ecn"."""
    groups = []
    for name in "lc":
        of_class = [f.split(":")[1] for f in flows if f.split(":")[0] == name]
        if len(set(of_class)) > 1:
            fail(f"flows of class {name} differ ({', '.join(of_class)}); write a job for that")
        cc = of_class[0] if of_class else "cubic"
        groups.append({"name": name, "kind": "tcp", "cc": cc.removesuffix("-ecn"), "count": len(of_class),
                       "ecn": "l4s" if name == "l" else "classic" if cc.endswith("-ecn") else "off",
                       "rtt_ms": rtt_ms(rtt), "start": 0, "stop": None})
    if sum(g["count"] for g in groups) != len(flows):
        fail(f"cannot read the flows {' '.join(flows)}; write them like l:dctcp and c:cubic-ecn")
    return checked({"format": FORMAT, "experiment": "simple", "case": "", "aqm": aqm.split()[0], "seed": 1,
                    "rate": rate.lower(), "changes": [], "module": module, "qdisc": aqm, "warmup": warmup,
                    "seconds": seconds, "groups": groups, "jitter": False})


def read_job(path):
    """The job in a file, checked."""
    try:
        with open(path, encoding="utf-8") as file:
            return checked(json.load(file))
    except (OSError, ValueError) as error:
        fail(f"cannot read the job {path}: {error}")


def checked(job):
    """The job; ends the program with one line if this program cannot run it."""
    try:
        check(job)
    except JobError as error:
        fail(error)
    return job


def begin_afresh():
    """Make the run independent of what the machine did before, above all of how much there was to unpack.

    Until here the clock and the random numbers depend on the size of the repository and on its path. So wait for a
    round time, and let the kernel begin new random numbers, which depend on the machine's seed alone. A stock kernel
    that has not gathered enough for that yet goes on with those that it has.
    """
    # In integers, because a float of the time is exact to 238 ns. Half a step of UML early, because timers round up.
    time.sleep(max(0, ROUND_NS - time.time_ns() % ROUND_NS - 128) / 1e9)
    with open("/dev/urandom", "rb") as file:
        try:
            fcntl.ioctl(file, RNDRESEEDCRNG)
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise


def load_module(job, paths, companions=None):
    """Load the module that the job names; paths: name -> file, or None where the caller gave none.

    companions: the directory of their modules, of which a job names a list.
    """
    if job["module"] is None:
        return
    if isinstance(job["module"], list):
        for name in job["module"]:
            path = os.path.join(companions or "", f"sch_{name}.ko")
            if not os.path.exists(path):
                fail(f"the job wants the module {name}, and there is no {path}; see --companions")
            run(f"insmod {shlex.quote(path)}")
        return
    if job["module"] not in paths:
        fail(f"the job wants the module '{job['module']}'; there are {', '.join(paths)}")
    path = paths[job["module"]]
    if not path or not os.path.exists(path):
        fail(f"the job wants the module {job['module']}, and {path or 'no file'} was given for it; "
             "see --module and --in-tree")
    run(f"insmod {shlex.quote(path)}")


def allow_congestion_control(job, prague):
    """Let the namespaces use what the job needs; the kernel keeps some for the first one. prague: tcp_prague.ko."""
    wanted = sorted({g["cc"] for g in job["groups"] if "cc" in g} - set(UDP_PRAGUE))
    if "prague" in wanted:
        if not prague or not os.path.exists(prague):
            fail(f"the job wants TCP Prague, and {prague or 'no file'} was given for it; see --prague")
        # pi2 is one queue of some 20 ms that marks ECT(1) for Prague: the detection would take it for Classic ECN.
        detection = " classic_queue_us=0" if job["qdisc"].split()[0] == "pi2" else ""
        run(f"insmod {shlex.quote(prague)}{detection}")
        set_parameters(parameters(job))
    if os.path.exists(f"/lib/modules/{os.uname().release}/kernel"):
        run(f"modprobe -a {' '.join('tcp_' + cc for cc in wanted if cc != 'reno')} sch_fq sch_htb sch_netem", False)
    there = run("sysctl -n net.ipv4.tcp_available_congestion_control").split()
    for cc in wanted:
        if cc not in there:
            fail(f"this kernel has no congestion control '{cc}'; it has {', '.join(there)}")
    allowed = run("sysctl -n net.ipv4.tcp_allowed_congestion_control").split()
    run("sysctl -qw net.ipv4.tcp_allowed_congestion_control='" + " ".join([*allowed, *wanted]) + "'")


def set_parameters(wanted, directory=PRAGUE_PARAMETERS):
    """Set parameters of tcp_prague, {name: number, true or false}."""
    for name, value in wanted.items():
        if name not in os.listdir(directory):
            fail(f"tcp_prague has no parameter '{name}'; it has {', '.join(sorted(os.listdir(directory)))}")
        try:
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write("NY"[value] if isinstance(value, bool) else str(value))
        except OSError as error:
            fail(f"tcp_prague rejects {name} = {value}: {error.strerror}")


def build_pacing(job):
    """fq at the sender's device; packets of groups without pacing bypass it."""
    unpaced = [net for net, group in enumerate(job["groups"], 1) if group.get("pacing") is False]
    if not unpaced:
        in_ns("snd", f"tc qdisc add dev to_rtr root handle 1: {FQ}")
        return
    in_ns("snd", f"tc qdisc add dev to_rtr root handle 1: prio bands 2 priomap{' 0' * 16}")
    in_ns("snd", f"tc qdisc add dev to_rtr parent 1:1 handle 2: {FQ}")
    in_ns("snd", "tc qdisc add dev to_rtr parent 1:2 handle 3: pfifo limit 100000")
    for net in unpaced:
        in_ns("snd", f"tc filter add dev to_rtr parent 1: protocol ip u32 match ip src 10.8.{net}.0/24 flowid 1:2")


def build_topology(job):
    """Namespaces, links without offloads, pacing at the sender and the delays on the way back."""
    links = [("snd", "rtr"), ("rtr", "rcv")]
    if aggregated(job):
        links[:1] = [("snd", "agg"), ("agg", "rtr")]
    for name in dict.fromkeys(n for link in links for n in link):
        run(f"ip netns add {name}")
        in_ns(name, "ip link set lo up")
        in_ns(name, "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1 "
                    "net.ipv4.tcp_ecn=0 net.ipv6.conf.all.disable_ipv6=1 net.ipv4.ip_local_port_range='1024 65000' "
                    f"{TCP_MEMORY}")
    for a, b in links:
        # As if agg were not there.
        ends = [(a, "to_" + ("rtr" if b == "agg" else b)), (b, "to_" + ("snd" if a == "agg" else a))]
        run("ip link add {1} netns {0} type veth peer name {3} netns {2}".format(*ends[0], *ends[1]))
        for name, dev in ends:
            in_ns(name, f"ethtool -K {dev} tso off gso off gro off")
            # One address at both ends spares asking for it, which would hold each flow's first packet for an RTT.
            in_ns(name, f"ip link set {dev} address 02:00:00:00:00:01 arp off txqueuelen 10000 up")
    in_ns("rtr", "ip addr add 10.8.0.1/16 dev to_snd")
    in_ns("rtr", "ip addr add 10.9.0.1/16 dev to_rcv")
    in_ns("snd", "ip route add default via 10.8.0.1 onlink dev to_rtr")
    in_ns("rcv", "ip route add default via 10.9.0.1 onlink dev to_rtr")
    build_pacing(job)
    in_ns("rcv", f"tc qdisc add dev to_rtr root handle 1: prio bands {MOST_RTTS} priomap{' 0' * 16}")
    set_rtts(job, "add")
    if aggregated(job):
        build_aggregation(job)


def build_aggregation(job):
    """Hold the packets of the groups that want it in agg, each group's by itself, and let them go together."""
    in_ns("agg", "ip route add 10.8.0.0/16 dev to_snd")
    in_ns("agg", "ip route add default dev to_rtr")
    # Other packets take band 1, which never holds one, because the device has no rate.
    in_ns("agg", f"tc qdisc add dev to_rtr root handle 1: prio bands {MOST_RTTS} priomap{' 0' * 16}")
    for band, (net, time_ms) in enumerate(aggregated(job), 2):
        slot = f"{time_ms * 1000:.0f}us"
        in_ns("agg", f"tc qdisc add dev to_rtr parent 1:{band:x} handle {0x10 + band:x}: netem limit 100000 "
                     f"slot {slot} {slot}")
        in_ns("agg", f"tc filter add dev to_rtr parent 1: protocol ip u32 match ip src 10.8.{net}.0/24 "
                     f"flowid 1:{band:x}")


def jitter_us(job):
    """Half the time in us that the link takes for a packet; 0 where the job's machine has jitter of its own.

    Without, packets of a flow arrive at one moment of another's transmission for ever, and delays are of a few values
    only. A random time of up to one packet's takes that away (Floyd, Jacobson, "Traffic Phase Effects in
    Packet-Switched Gateways", 1991), and keeps the order: ACKs are further apart.
    """
    if not job.get("jitter", True):
        return 0.0
    fastest = max(bits_per_second(r) for r in (job["rate"], *(c["rate"] for c in job["changes"])))
    return PACKET_BITS / fastest * 1e6 / 2


def set_rtts(job, verb):
    """Delay what goes back to each group's addresses; verb is "add", or "change" for other times of the same groups.

    The mean is the RTT; jitter_us() says how much less or more it is.
    """
    times = sorted({g["rtt_ms"] for g in job["groups"]})
    jitter = jitter_us(job)
    for band, time_ms in enumerate(times, 1):
        in_ns("rcv", f"tc qdisc {verb} dev to_rtr parent 1:{band:x} handle {0x10 + band:x}: netem limit 100000 "
                     f"delay {time_ms * 1000:.3f}us {min(jitter, time_ms * 1000):.3f}us")
    for net, group in enumerate(job["groups"], 1):
        if verb == "add":
            in_ns("rcv", f"tc filter add dev to_rtr parent 1: protocol ip u32 match ip dst 10.8.{net}.0/24 "
                         f"flowid 1:{times.index(group['rtt_ms']) + 1:x}")


def add_flows(job):
    """Give each flow a pair of addresses, and routes that choose its congestion control; returns the table of flows."""
    flows, batch = [], {name: [] for name in NETS}
    l4s = []
    for net, group in enumerate(job["groups"], 1):
        options = ""
        if "cc" in group and group["cc"] not in UDP_PRAGUE:
            options = f"congctl {group['cc']}" + ("" if group["ecn"] == "off" else " features ecn")
        if group["kind"] != "udp" and group["ecn"] == "l4s" and group["cc"] not in ("prague", *UDP_PRAGUE):
            l4s.append(net)
        for number in range(1, group.get("count", 1) + 1):
            src, dst = f"10.8.{net}.{number}", f"10.9.{net}.{number}"
            batch["snd"] += [f"addr add {src}/32 dev to_rtr",
                             f"route add {dst}/32 via 10.8.0.1 onlink dev to_rtr src {src} {options}"]
            batch["rcv"] += [f"addr add {dst}/32 dev to_rtr",
                             f"route add {src}/32 via 10.9.0.1 onlink dev to_rtr src {dst} {options}"]
            batch["rtr"] += [f"route add {src}/32 dev to_snd", f"route add {dst}/32 dev to_rcv"]
            flows.append({**group, "group": group["name"], "number": number, "src": src, "dst": dst})
    if any(g.get("cc") == "prague" for g in job["groups"]):
        # Accurate ECN for who asks for it, which only Prague does.
        in_ns("rcv", "sysctl -qw net.ipv4.tcp_ecn=5")
    os.makedirs(SCRATCH, exist_ok=True)
    for name, lines in batch.items():
        with open(f"{SCRATCH}/routes", "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        in_ns(name, f"ip -batch {SCRATCH}/routes")
    for name, net in (("snd", 8), ("rcv", 9)):
        in_ns(name, "nft add table ip lab")
        in_ns(name, "nft 'add chain ip lab out { type filter hook postrouting priority 0; }'")
        if l4s:
            # ECT(0), which is all that TCP sends, becomes ECT(1).
            sources = ", ".join(f"10.{net}.{number}.0/24" for number in l4s)
            in_ns(name, f"nft 'add rule ip lab out ip saddr {{ {sources} }} ip ecn ect0 ip ecn set ect1'")
    # A flow that was stopped is silent. These answers of the kernel all have identification 0, besides.
    in_ns("snd", "nft add rule ip lab out tcp flags rst drop")
    in_ns("snd", "nft add rule ip lab out icmp type destination-unreachable drop")
    return flows


def set_rate(job, rate, tc, verb="change"):
    """The link's rate, in tc's words, at the qdisc that shapes; verb is "add" for the first time."""
    if "child" in job:
        in_ns("rtr", f"{tc} qdisc {verb} dev to_rcv {CHILD} {job['child'].split()[0]} bandwidth {rate}")
        return
    if job.get("shaper") == "own":
        in_ns("rtr", f"{tc} qdisc {verb} dev to_rcv root handle 10: {job['qdisc'].split()[0]} bandwidth {rate}")
        return
    in_ns("rtr", f"tc class {verb} dev to_rcv parent 1: classid 1:10 htb rate {rate} ceil {rate} "
                 "burst 1514 cburst 1514 quantum 1514")


def build_bottleneck(job, tc):
    """The link, the qdisc under test, its child, and which groups are in which class; returns the qdiscs' commands."""
    where = "root"
    if job.get("shaper") != "own":
        where = "parent 1:10"
        in_ns("rtr", "tc qdisc add dev to_rcv root handle 1: htb default 10 direct_qlen 1000")
        set_rate(job, job["rate"], tc, "add")
    command = f"{tc} qdisc add dev to_rcv {where} handle 10: {job['qdisc']}"
    done = subprocess.run(f"ip netns exec rtr {command}", shell=True, text=True, capture_output=True)
    if done.returncode:
        kind = job["qdisc"].split()[0]
        words = first_words(done.stderr)
        if "qdisc kind is unknown" in words or "Unknown qdisc" in words:
            fail(f"there is no qdisc '{kind}' in this kernel or this tc ({words}); leave it out")
        fail(f"tc refuses `{job['qdisc']}`: {words}")
    if "child" in job:
        command += f"; {tc} qdisc add dev to_rcv {CHILD} {job['child']}"
        in_ns("rtr", command.partition("; ")[2])
    for net, group in enumerate(job["groups"], 1):
        if "tvf" in group:
            in_ns("rtr", f"tc filter add dev to_rcv parent 10: protocol ip u32 match ip src 10.8.{net}.0/24 "
                         f"flowid 10:{group['tvf']:x}")
    return command


def queue_stats(tc):
    """What the qdisc under test says of itself, as tc -s -j shows it, and under "child" what its child says."""
    found = {q.get("handle"): q for q in json.loads(in_ns("rtr", f"{tc} -s -j qdisc show dev to_rcv"))}
    return found["10:"] | ({"child": found["20:"]} if "20:" in found else {})


class Child:
    """A program that says "ready", and whose death before its time is the run's failure."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            self.complain(self.process.communicate()[1])

    def complain(self, words):
        lines = words.strip().splitlines()
        fail(f"{self.name}: {lines[-1] if lines else 'ended early'} (code {self.process.returncode})")

    def check(self):
        """End the program if this one has ended."""
        if self.process.poll() is not None:
            self.complain(self.process.communicate()[1])

    def end(self):
        """Wait for its end; returns what it said."""
        out, words = self.process.communicate(timeout=300)
        if self.process.returncode:
            self.complain(words)
        return out


def sleep_until(seconds):
    """Sleep until this time of CLOCK_REALTIME, in seconds."""
    time.sleep(max(0, seconds - time.time()))


def measure(job, flows, delaymeter, tc, udp_prague, capture=False):
    """Run the flows; returns what run.json needs, leaves sightings, web.csv, tcp.csv and a capture in SCRATCH."""
    given = f"{SCRATCH}/flows.json"
    if uses_udp_prague(job) and not udp_prague:
        fail("the job wants udp_prague; see --udp-prague")
    with open(given, "w", encoding="utf-8") as file:
        json.dump({"job": job, "flows": flows, "udp_prague": udp_prague}, file)
    meter = Child("delaymeter", ["ip", "netns", "exec", "rtr", delaymeter, "to_snd", "to_rcv", "10.8",
                                 f"{SCRATCH}/sightings", *[f"{SCRATCH}/capture.pcap"] * capture])
    traffic = Child("traffic", [sys.executable, os.path.join(HERE, "traffic.py"), given, SCRATCH])
    # A round time, as in begin_afresh(); in 100 ms the programs are ready.
    result = {"start_ns": (int(time.time() + 0.1) + 1) * 10**9}
    started = result["start_ns"] / 1e9
    traffic.process.stdin.write(f"{result['start_ns']}\n")
    traffic.process.stdin.flush()
    total = job["warmup"] + job["seconds"]
    # The statistics come first where a change of the rate is due at the same time.
    todo = [(job["warmup"], lambda: result.update(before=queue_stats(tc))),
            *((c["at"], lambda rate=c["rate"]: set_rate(job, rate, tc)) for c in job["changes"]),
            *((n, lambda n=n: print(f"progress {n}/{total}", flush=True)) for n in range(1, int(total) + 1)),
            (total, lambda: result.update(after=queue_stats(tc)))]
    for when, function in sorted(todo, key=lambda item: item[0]):
        sleep_until(started + when)
        traffic.check()
        meter.check()
        function()
    # What came before the end shall leave as it would have, too.
    sleep_until(started + total + 1)
    traffic.check()
    failed = json.loads(traffic.end())
    for _ in range(60):
        if not queue_stats(tc)["backlog"]:
            break
        time.sleep(0.5)
    time.sleep(0.1)
    meter.process.send_signal(signal.SIGTERM)
    meter.end()
    return result | {"failed_flows": failed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--job", help="file; instead of the options down to --seconds")
    parser.add_argument("--rate", default="40mbit")
    parser.add_argument("--rtt", default="10ms")
    parser.add_argument("--aqm", default="dualpi2", help="kind and options, as for tc qdisc add")
    parser.add_argument("--flow", action="append", metavar="l:CC|c:CC[-ecn]")
    parser.add_argument("--warmup", type=int, default=10, help="seconds left out")
    parser.add_argument("--seconds", type=int, default=60, help="seconds measured")
    parser.add_argument("--tc", default="tc")
    parser.add_argument("--delaymeter", required=True)
    parser.add_argument("--module", help="our sch_dualpi2.ko")
    parser.add_argument("--in-tree", help="the kernel's own sch_dualpi2.ko")
    parser.add_argument("--prague", help="tcp_prague.ko")
    parser.add_argument("--udp-prague", help="directory of the programs of udp_prague")
    parser.add_argument("--companions", help="directory of the companions' modules")
    parser.add_argument("--capture", action="store_true", help="leave capture.pcap: the link's first 5 s, headers only")
    parser.add_argument("--out", required=True, help="directory for the results")
    args = parser.parse_args()
    if args.job:
        job = read_job(args.job)
    else:
        job = simple_job(args.rate, args.rtt, args.aqm, args.flow or ["l:dctcp", "c:cubic"], args.warmup, args.seconds,
                         "dualpi2" if args.module else None)

    begin_afresh()
    load_module(job, {"dualpi2": args.module, "dualpi2-time-shift": args.module, "dualpi2-in-tree": args.in_tree},
                args.companions)
    allow_congestion_control(job, args.prague)
    build_topology(job)
    flows = add_flows(job)
    command = build_bottleneck(job, args.tc)
    result = {"job": job, "kernel": os.uname().release, "tc": command, "flows": flows}
    result |= measure(job, flows, args.delaymeter, args.tc, args.udp_prague, args.capture)
    os.makedirs(args.out, exist_ok=True)
    for name in ("sightings", "web.csv", "tcp.csv", "capture.pcap"):
        if os.path.exists(f"{SCRATCH}/{name}"):
            shutil.copyfile(f"{SCRATCH}/{name}", os.path.join(args.out, name))
    with open(os.path.join(args.out, "run.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
