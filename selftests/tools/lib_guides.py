# SPDX-License-Identifier: GPL-2.0-only
"""Reads the guides and runs their commands, for test_guides.py."""

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
from lib import ECT1, NOT_ECT, Failure, Net, Stream, Traffic, expect, run, tc, test  # noqa: E402

GUIDES = sorted(glob.glob(os.path.join(ROOT, "docs/guides/*.md")))
MARK = "--here the guide says what was printed--"
NQB = 45


class Block:
    """Commands, and what stands about them. name or reason is None."""

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
    """The blocks of a guide, in order."""
    found, comment, inside, last = [], None, None, None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is not None:
            if line != "```":
                inside.append(line)
                continue
            inside = None
        elif line.startswith("```"):
            language = line[3:]
            inside = []
            if language == "sh":
                name, reason = comment or (None, None)
                last = Block(guide, number, name, reason, inside)
                found.append(last)
            elif language == "text" and last:
                last.shown = inside
                last = None
            comment = None
        elif match := re.fullmatch(r"<!-- (?:test: ([a-z0-9-]+)|not run: (.+)) -->", line):
            comment, last = match.groups(), None
        elif line.strip():
            comment = last = None
    if inside is not None:
        raise Failure(f"{guide}: a block has no end")
    return found


def all_blocks():
    found = []
    for path in GUIDES:
        with open(path, encoding="utf-8") as file:
            found += blocks_of(file.read(), os.path.basename(path))
    return found


def pieces(commands):
    """[(commands, what they must have printed)]; the last one may have nothing."""
    found, lines, wanted = [], [], []
    for line in commands:
        if line.startswith("# -> "):
            wanted.append(line[5:])
            continue
        if wanted:
            found.append((lines, wanted))
            lines, wanted = [], []
        lines.append(line)
    return [*found, (lines, wanted)]


def says(line, pattern):
    """Is the pattern in the line?"""
    parts = [re.escape(" ".join(part.split())) for part in pattern.split("...")]
    return re.search(r"\s*.*\s*".join(parts), " ".join(line.split())) is not None


def expect_said(printed, wanted, what):
    """Each of these lines, in this order."""
    lines = iter(printed.splitlines())
    for pattern in wanted:
        if not any(says(line, pattern) for line in lines):
            raise Failure(f"{what}: not printed, or not in this order: {pattern!r}; printed was:\n{printed[:3000]}")


class Play:
    """Runs the blocks of a scene, one with each call."""

    def __init__(self, blocks, directory):
        self.left = list(blocks)
        self.directory = directory

    def __call__(self, netns):
        """The next one, in a namespace (None: that of this machine); what it printed."""
        block = self.left.pop(0)
        parts = pieces(block.commands)
        script = "\n".join(f"{chr(10).join(lines)}\necho '{MARK}'" for lines, _ in parts)
        env = dict(os.environ, PATH=f"{self.directory}:{os.environ['PATH']}")
        # By ip, because /sys shows the devices of the namespace that mounted it.
        within = ["ip", "netns", "exec", netns] if netns else []
        done = subprocess.run([*within, "sh", "-eu", "-c", script], text=True, env=env, cwd=self.directory, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = done.stdout.split(MARK + "\n")
        whole = "".join(printed)
        if done.returncode:
            raise Failure(f"{block}: code {done.returncode}: {whole[-3000:]}")
        for (_, wanted), text in zip(parts, printed):
            expect_said(text, wanted, block)
        expect_said(whole, block.shown, block)
        return whole


@contextlib.contextmanager
def programs():
    """A directory with ours, by their names."""
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


SCENES = {}


def scene(name):
    """Registers a test: what a namespace must be like, and how the blocks of that name are run in it."""
    def register(function):
        def run_it():
            blocks = [block for block in all_blocks() if block.name == name]
            expect(blocks, f"no guide has a block <!-- test: {name} -->")
            with programs() as directory:
                play = Play(blocks, directory)
                function(play)
            expect(not play.left, f"not run: {', '.join(map(str, play.left))}")
        run_it.__name__ = "guide_" + name.replace("-", "_")
        SCENES[name] = function
        return test(name)(run_it)
    return register


class Router(Net):
    """lib.Net, and its router's devices are named as in the guides: eth0 is where the queue is."""

    def __init__(self, up="lan0"):
        super().__init__()
        self.up = up

    def _link(self, end, dev, middle, port, side):
        super()._link(end, dev, middle, {"up": self.up, "down": "eth0"}[port], side)

    def back(self):
        """The same for traffic that comes in by eth0."""
        return types.SimpleNamespace(snd=self.rcv, rtr=self.rtr, rcv=self.snd)


@contextlib.contextmanager
def devices(*names, words=""):
    """A namespace with these devices, up, and their peers in another one; both names."""
    tag = f"dpgd{os.getpid()}-{next(lib._serial)}"
    with contextlib.ExitStack() as stack:
        for netns in (tag, tag + "-far"):
            lib.quiet_netns(stack, netns)
        for name in names:
            run(f"ip link add {name} netns {tag} {words} type veth peer name {name} netns {tag}-far {words}")
            for netns in (tag, tag + "-far"):
                run(f"ip link set {name} up", netns)
        yield tag, tag + "-far"


@contextlib.contextmanager
def flowing(where, *streams, seconds=60, warmup=1):
    """Traffic meanwhile."""
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


def load(mbit, share_l=0.4, over=1.03, dst="10.2.0.1"):
    """A little more than a link takes: L4S, and Classic packets that are dropped as TCP would stand it."""
    rate = mbit * 1e6 * over
    return (Stream("l", ecn=ECT1, bps=rate * share_l, jitter=1, dst=dst),
            Stream("c", ecn=NOT_ECT, bps=rate * (1 - share_l), jitter=1, dst=dst))
