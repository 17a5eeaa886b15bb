# SPDX-License-Identifier: GPL-2.0-only
"""The steps of the guide on flent. They need flent, netperf and irtt: selftests/flent.sh runs them."""

import glob
import gzip
import json
import os
import re
import shutil

import lib_guides
from lib_guides import Failure, note, step, tc

from lib import expect, expect_between, run

NETEM_MS = 10
RATE_MBIT = 40


def place(machine, name):
    """The one file of this name that a block has left."""
    found = glob.glob(os.path.join(machine.directory, "guide", name))
    if len(found) != 1:
        raise Failure(f"{name}: {len(found)} files")
    return found[0]


@step("flent-install")
def flent_install(machine, block):
    """What apt-get installs is there; the file is copied from this tree."""
    expect(block.commands[0].startswith("apt-get install flent netperf irtt iperf3 "), "packages")
    for name in ("flent", "netperf", "netserver", "irtt", "iperf3"):
        expect(shutil.which(name), f"{name} is not installed")
    source, target = re.fullmatch(r"cp (\S+) (\S+)", block.commands[1]).groups()
    shutil.copy(os.path.join(lib_guides.ROOT, source), target)
    tc(f"qdisc add dev eth0 root netem delay {NETEM_MS}ms limit 10000", machine.rcv)


@step("flent-server")
def flent_server(machine, block):
    machine.run(block, machine.rcv)


def mean(values, begin, end):
    """Of the values in the middle of the measurement, which has one each 0.2 s."""
    inside = [value for value in values[int(begin / 0.2):int(end / 0.2)] if value is not None]
    expect(len(inside) > 20, f"only {len(inside)} values")
    return sum(inside) / len(inside)


@step("flent-run")
def flent_run(machine, block):
    printed = machine.run(block, machine.snd)
    if not glob.glob(os.path.join(machine.directory, "guide", "l4s-*.flent.gz")):
        raise Failure(f"flent left no data file: {printed}")
    with gzip.open(place(machine, "l4s-*.flent.gz"), "rt") as file:
        results = json.load(file)["results"]
    found = {name: mean(results[name], 8, 24) for name in ("TCP L4S sum", "TCP Classic sum", "RTT L4S", "RTT Classic")}
    note(str(found))
    expect_between(found["TCP L4S sum"] + found["TCP Classic sum"], 0.9 * RATE_MBIT, RATE_MBIT, "Mbit/s of both")
    for name in ("TCP L4S sum", "TCP Classic sum"):
        expect(found[name] > 0.3 * RATE_MBIT, f"{name}: {found[name]:.1f} Mbit/s")
    expect_between(found["RTT L4S"], NETEM_MS, NETEM_MS + 2, "RTT L4S")
    expect_between(found["RTT Classic"], NETEM_MS + 10, NETEM_MS + 25, "RTT Classic")
    for name in ("RTT L4S", "RTT Classic"):
        expect_between(mean(results[name], 0, 4.4), NETEM_MS, NETEM_MS + 0.5, f"{name} before the uploads")
    for name in ("rates_and_delays.png", "delays_cdf.png"):
        with open(place(machine, name), "rb") as file:
            image = file.read()
        expect(image.startswith(b"\x89PNG") and len(image) > 20000, f"{name}: {len(image)} bytes")
    if os.environ.get("DUALPI2_PLOTS"):
        for name in ("*.png", "*.flent.gz"):
            for path in glob.glob(os.path.join(machine.directory, "guide", name)):
                shutil.copy(path, os.environ["DUALPI2_PLOTS"])


@step("flent-iperf3")
def flent_iperf3(machine, block):
    printed = machine.run(block, machine.snd)
    l4s, classic = (float(average) for average in re.findall(r"= [\d.]+/([\d.]+)/", printed))
    expect_between(l4s, NETEM_MS, NETEM_MS + 2, "ping with ECT(1)")
    expect_between(classic, NETEM_MS + 10, NETEM_MS + 20, "ping with Not-ECT")
    rate = float(re.search(r"([\d.]+) Mbits/sec", printed).group(1))
    expect_between(rate, 0.9 * RATE_MBIT, RATE_MBIT, "iperf3 Mbit/s")


@step("flent-undo")
def flent_undo(machine, block):
    machine.run(block, machine.rcv)
    run("tc qdisc del dev eth0 root", machine.rcv)
