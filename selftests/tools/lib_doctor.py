# SPDX-License-Identifier: GPL-2.0-only
"""Calls of `dualpi2 doctor` in the router of lib.Net, for test_doctor.py and test_doctor_path.py."""

import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))

from installed import TOOLS  # noqa: E402
from lib import ECT1, NOT_ECT, Stream, expect, expect_equal, note, run, tc  # noqa: E402

DUALPI2 = os.path.join(TOOLS, "bin/dualpi2")
LINK = 10e6
# A little more than the link takes: a queue, and no overload.
L4S = (Stream("l", ecn=ECT1, bps=4e6, jitter=1), Stream("c", ecn=NOT_ECT, bps=6.3e6, jitter=1))
CLASSIC = (Stream("c", ecn=NOT_ECT, bps=10.3e6, jitter=1),)


def ask(netns, device="down", watch=2, args="", env=None):
    """The doctor's answer as a dict with "code"; one that cannot be read is an error of its own."""
    done = run(["ip", "netns", "exec", netns, *(env or []), DUALPI2, "doctor", device, "--json", "--watch", str(watch),
                *args.split()], check=False)
    expect(not done.stderr, f"it printed errors: {done.stderr}")
    found = json.loads(done.stdout)
    expect_equal(done.returncode, {"healthy": 0, "fault": 1, "unknown": 3}[found["verdict"]], "exit code")
    return found


def ids(found):
    """Of the faults."""
    return [one["id"] for one in found["findings"]]


def notes(found):
    return [one["id"] for one in found["notes"]]


def expect_first(found, kind, *texts):
    """The first fault, or the first note if there is no fault; of this kind, which contains these texts."""
    findings = found["findings"] + found["notes"]
    for one in findings:
        note(f"{one['id']}: {one['device']}: {one['verdict']} | {one['command']}")
    expect_equal([one["id"] for one in findings[:1]], [kind], f"first finding (doubts: {found['doubts']})")
    first = findings[0]
    for text in texts:
        expect(text in first["verdict"] + " | " + first["command"], f"'{text}' is not in: {first}")
    expect("\n" not in first["verdict"] + first["command"], "more than one line")
    return first


def repair(found, netns):
    """Run the command."""
    expect(found["fixes"], "the command does not repair it")
    run(["ip", "netns", "exec", netns, "sh", "-c", found["command"]])


@contextlib.contextmanager
def flowing(net, *streams, seconds=60):
    """Traffic meanwhile."""
    traffic = net.start(seconds, *streams)
    time.sleep(1)
    try:
        yield
    finally:
        traffic.kill()
        net.running.remove(traffic)


@contextlib.contextmanager
def qdisc(net, args, device="down", parent="root"):
    """A qdisc on the router for a while."""
    tc(f"qdisc add dev {device} {parent} {args}", net.rtr)
    try:
        yield
    finally:
        tc(f"qdisc del dev {device} {parent}", net.rtr, check=False)
        tc(f"qdisc del dev {device} root", net.rtr, check=False)


def expect_repaired(net, kind, first, device="down", streams=L4S, **more):
    """The command makes it go; whatever is found then is another thing."""
    repair(first, net.rtr)
    with flowing(net, *streams):
        found = ask(net.rtr, device, **more)
    note(f"then: {found['verdict']} {ids(found)} {found['doubts']}")
    expect(kind not in ids(found), f"{kind} is still there: {found['findings']}")
    return found


@contextlib.contextmanager
def ifb(net, args):
    """What arrives at `up` goes through ifb7, which has this qdisc."""
    run("ip link add ifb7 type ifb", net.rtr)
    run("ip link set ifb7 up", net.rtr)
    tc("qdisc add dev up clsact", net.rtr)
    try:
        tc("filter add dev up ingress matchall action mirred egress redirect dev ifb7", net.rtr)
        tc(f"qdisc add dev ifb7 root {args}", net.rtr)
        yield
    finally:
        tc("qdisc del dev up clsact", net.rtr)
        run("ip link del ifb7", net.rtr)
