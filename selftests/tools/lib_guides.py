# SPDX-License-Identifier: GPL-2.0-only
"""Reads the guides, and runs each from top to bottom on a machine, for test_guides.py."""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
import types

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests/net"))

import lib  # noqa: E402
from installed import TOOLS  # noqa: E402
from lib import ECT1, NOT_ECT, Failure, Net, Skip, Stream, Traffic, note, run, tc, test  # noqa: E402
from lib_wireguard import tunnel  # noqa: E402

GUIDES = sorted(glob.glob(os.path.join(ROOT, "docs/guides/*.md")))
TABLE_LENGTH = 5            # a guide with more sections than this has a table of contents
SUBSCRIBERS = (11, 12, 211)


# Reading

class Block:
    """Commands of a guide, and the comment and the expected output next to them. name or reason is None."""

    def __init__(self, guide, line, name, reason, commands):
        self.guide = guide
        self.line = line
        self.name = name
        self.reason = reason
        self.commands = commands
        self.shown = []

    def __str__(self):
        return f"{self.guide}:{self.line}"


def blocks_of(text, guide):
    """The sh blocks of a guide, in order."""
    found, comment, inside, last = [], None, None, None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is not None:
            if line != "```":
                inside.append(line)
                continue
            inside = None
        elif line.startswith("```"):
            language, inside = line[3:], []
            if language == "sh":
                last = Block(guide, number, *(comment or (None, None)), inside)
                found.append(last)
            elif language == "text":
                if not last:
                    raise Failure(f"{guide}:{number}: output without commands")
                last.shown, last = inside, None
            comment = None
        elif match := re.fullmatch(r"<!-- (?:test: ([a-z0-9-]+)|not run: (.+)) -->", line):
            comment, last = match.groups(), None
        elif line.startswith("#"):
            comment = last = None
        elif line.strip():
            comment = None
    if inside is not None:
        raise Failure(f"{guide}: a block has no end")
    return found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def guide_blocks(path):
    return blocks_of(read(path), os.path.basename(path))


def all_blocks():
    return [block for path in GUIDES for block in guide_blocks(path)]


def comment_in(line):
    """Is there a shell comment in the line? An interactive zsh reads it as arguments."""
    return re.search(r"(^|\s)#(\s|$)", line) is not None


def expect_printed(printed, wanted, what):
    """The output is these lines: "..." stands for anything in a line, and alone for any lines; blanks are alike."""
    def pattern(line):
        return " *.* *".join(re.escape(" ".join(part.split())) for part in line.split("..."))

    whole = "".join(r"(?:.*\n)*?" if line.strip() == "..." else pattern(line) + "\n" for line in wanted)
    lines = "".join(" ".join(line.split()) + "\n" for line in printed.splitlines())
    if not re.fullmatch(whole, lines):
        shown = "\n".join(wanted) or "nothing"
        raise Failure(f"{what}: the guide shows\n{shown}\nprinted was\n{printed[:4000]}")


# Running

@contextlib.contextmanager
def programs():
    """A directory with dualpi2 and dualpi2-top."""
    directory = f"/tmp/dualpi2-guides-{os.getpid()}-{next(lib._serial)}"
    os.mkdir(directory)
    for name in ("dualpi2", "dualpi2-top"):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\nexec {TOOLS}/bin/{name} "$@"\n')
        os.chmod(path, 0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def execute(block, netns, directory):
    """Run the commands in a namespace (None: that of this machine), compare the output, and return it."""
    env = dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}", LC_ALL="C.UTF-8", COLUMNS="120")
    place = os.path.join(directory, "guide")
    os.makedirs(place, exist_ok=True)
    # By ip, because /sys shows the devices of the namespace that mounted it.
    within = ["ip", "netns", "exec", netns] if netns else []
    done = subprocess.run([*within, "sh", "-eu", "-c", "\n".join(block.commands)], text=True, env=env, cwd=place,
                          check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failure(f"{block}: code {done.returncode}: {done.stdout[-3000:]}")
    expect_printed(done.stdout, block.shown, block)
    return done.stdout


class Machine(Net):
    """The reader's router: devices and addresses, no qdisc, no filter. lib.Net with its router's devices renamed.

    eth0 (4 transmit queues) faces the ISP or the subscribers, eth1 the other side; ppp0 and eth2 with VLANs 101 to 103
    lead nowhere; wg0 is a WireGuard tunnel to the receiver. The receiver is 192.0.2.1, and some of the subscribers.
    """

    link_args = ("numtxqueues", "4", "numrxqueues", "4")

    def __init__(self, directory):
        super().__init__()
        self.directory = directory

    def _link(self, end, dev, middle, port, side):
        super()._link(end, dev, middle, {"up": "eth1", "down": "eth0"}[port], side)

    def _build(self, stack):
        super()._build(stack)
        run(["ip", "-batch", "-"], self.rtr, stdin="".join(f"{line}\n" for line in (
            "link add ppp0 type dummy", "link set ppp0 up", "link add eth2 type dummy", "link set eth2 up",
            *(f"link add link eth2 name eth2.{vid} type vlan id {vid}" for vid in range(101, 104)),
            *(f"link set eth2.{vid} up" for vid in range(101, 104)),
            "route add default via 10.2.0.1", "addr add 100.64.0.1/16 dev eth0",
            "route add 2001:db8::/32 via fd02::1 dev eth0",
            *(f"neigh add 100.64.0.{host} lladdr 02:00:00:00:02:01 nud permanent dev eth0" for host in SUBSCRIBERS))))
        run(["ip", "-batch", "-"], self.rcv, stdin="addr add 192.0.2.1/32 dev lo\n" + "".join(
            f"addr add 100.64.0.{host}/16 dev eth0\naddr add 2001:db8:{host}::1/128 dev lo\n" for host in SUBSCRIBERS))
        tunnel(self)

    def run(self, block, netns=None):
        """Run a block in the namespace of the router, or in another one; what it printed."""
        if "qdisc change" not in "\n".join(block.commands):
            return execute(block, netns or self.rtr, self.directory)
        before = self.tree()
        printed = execute(block, netns or self.rtr, self.directory)
        lib.expect_equal(self.tree(), before, f"{block}: qdiscs and classes after `tc qdisc change`")
        return printed

    def tree(self):
        """All qdiscs and classes, by kind, handle and parent."""
        found = []
        for dev in ("eth0", "eth1", "dp2-eth0", "wg0"):
            for what in ("qdisc", "class"):
                lines = tc(f"{what} show dev {dev}", self.rtr, check=False).stdout.splitlines()
                found += [(dev, *line.split()[:5]) for line in lines if "dualpi2 d50:1" not in line]
        return sorted(found)

    def state(self):
        """What a guide must leave as it was."""
        links = [line.split()[0] for line in run("ip -br link", self.rtr).stdout.splitlines()]
        return [links, *(run(command, self.rtr).stdout for command in ("tc qdisc show", "nft list ruleset"))]

    def back(self):
        """The same for traffic in the other direction, which arrives by eth0."""
        return types.SimpleNamespace(snd=self.rcv, rtr=self.rtr, rcv=self.snd)


STEPS = {}          # name of a block: function of a machine and the block
OUTCOMES = {}       # name of a block: None if it was run, or why it was not


def step(name):
    """Registers what is done and checked at a block <!-- test: NAME -->; it calls machine.run(block) itself."""
    def register(function):
        STEPS[name] = function
        return function
    return register


def follow(name):
    """Run a guide from top to bottom on a new machine."""
    with programs() as directory, Machine(directory) as machine:
        before = machine.state()
        for block in guide_blocks(os.path.join(ROOT, "docs/guides", name + ".md")):
            if block.reason:
                continue
            try:
                STEPS.get(block.name, Machine.run)(machine, block)
                OUTCOMES[block.name] = None
            except Skip as skip:
                note(f"{block} left out: {skip}")
                OUTCOMES[block.name] = str(skip)
        for now, then in zip(machine.state(), before):
            lib.expect_equal(now, then, f"{name}: what is left at the end")


def guide(name):
    """Registers the test that follows a guide."""
    def run_it():
        if name == "prometheus-grafana" and run(["python3", "-c", "import prometheus_client"], check=False).returncode:
            raise Skip("Python's prometheus_client is not installed")
        if name == "flent" and not shutil.which("flent"):
            raise Skip("flent is not installed")
        follow(name)
    run_it.__name__ = "guide_" + name.replace("-", "_")
    test(name)(run_it)


def part(name, of):
    """Registers a test for a block that some kernels cannot run."""
    def run_it():
        if name not in OUTCOMES:
            follow(of)
        if OUTCOMES[name]:
            raise Skip(OUTCOMES[name])
    run_it.__name__ = "guide_" + name.replace("-", "_")
    test(name)(run_it)


# For the steps

@contextlib.contextmanager
def flowing(where, *streams, seconds=60, warmup=1):
    """Traffic in the background."""
    traffic = Traffic(where, seconds, streams, 0)
    time.sleep(warmup)
    try:
        yield
    finally:
        traffic.kill()


def options(netns, dev, handle=None):
    """The options of a dualpi2 as JSON: of this handle, or of the root."""
    found = json.loads(tc(f"-json qdisc show dev {dev}", netns).stdout)
    for one in found:
        if one["kind"] == "dualpi2" and (one["handle"] == handle if handle else one.get("root")):
            return one["options"]
    raise Failure(f"no dualpi2 {handle or 'at the root'} on {dev}: {found}")


def leaves(netns, dev="eth0"):
    """Every dualpi2 of a device, as JSON."""
    return [one for one in json.loads(tc(f"-json qdisc show dev {dev}", netns).stdout) if one["kind"] == "dualpi2"]


def load(mbit, share_l=0.4, over=1.03, dst="10.2.0.1"):
    """Slightly more than a link carries: L4S, and Classic packets of which as many are dropped as TCP would bear."""
    rate = mbit * 1e6 * over
    return (Stream("l", ecn=ECT1, bps=rate * share_l, jitter=1, dst=dst),
            Stream("c", ecn=NOT_ECT, bps=rate * (1 - share_l), jitter=1, dst=dst))

