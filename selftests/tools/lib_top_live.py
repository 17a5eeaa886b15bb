# SPDX-License-Identifier: GPL-2.0-only
"""Traffic, and calls of dualpi2-top, for test_top_live.py and test_top_reports.py."""

import contextlib
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))

from installed import TOOLS  # noqa: E402
from lib import CE, ECT0, ECT1, NOT_ECT, Skip, Stream, run, shared_net, tc  # noqa: E402

TOP = os.path.join(TOOLS, "bin/dualpi2-top")
MIX = (Stream("l", ecn=ECT1, bps=6e6), Stream("c", ecn=NOT_ECT, bps=3e6), Stream("e", ecn=ECT0, bps=3e6),
       Stream("ce", ecn=CE, bps=1e6))


def top(args, netns=None, check=True):
    """Run it to its end."""
    return run([TOP, *args.split()], netns, check)


def top_json(args, netns):
    """Its qdiscs, by device and handle."""
    found = json.loads(top(args, netns).stdout)
    return {(one["device"], one["handle"]): one for one in found["qdiscs"]}


@contextlib.contextmanager
def bottleneck(seconds=0, *streams, **knobs):
    """The shared net with a dualpi2 below htb, another at the root of the other device, and perhaps traffic."""
    net = shared_net()
    with net.aqm(10e6, **knobs) as q:
        tc("qdisc replace dev up root handle 20: dualpi2", net.rtr)
        try:
            q.running = net.start(seconds, *streams) if seconds else None
            yield net, q
            if q.running:
                q.running.wait()
        finally:
            tc("qdisc del dev up root", net.rtr, check=False)


def prepare():
    """What the tests need of the machine."""
    for needed in ("tmux", "promtool", "prometheus", "prometheus-node-exporter"):
        if not shutil.which(needed):
            raise Skip(f"need {needed}; run this in the tree of: scripts/root.sh bookworm top")
