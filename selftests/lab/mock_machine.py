# SPDX-License-Identifier: GPL-2.0-only
"""A results directory with a mock of the machine and of the reduction, for the tests of the lab's host side.

Import it before lab and runs, which read the environment that it sets. It boots nothing: a program of its own takes the
place of run-vm.sh and of `measure.py reduce`, and writes results, hangs, fails or dies as its case says.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import ktap

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix="test-lab-")
FAKE = os.path.join(WORK, "fake")
os.environ |= {"DUALPI2_LAB_MACHINE": FAKE, "DUALPI2_LAB_REDUCE": FAKE}

import store  # noqa: E402

# Seconds until a wait fails: no result depends on how fast this machine is, so this is only for what never comes.
LAST_RESORT_S = 600

# The mock: --rw DIR makes it the machine, else it is the reduction of its last argument. $FAKE_DO is
# JSON, {case: what happens there}.
FAKE_TEXT = """#!/usr/bin/python3 -IS
import json, os, signal, sys, time
machine = "--rw" in sys.argv
out = sys.argv[sys.argv.index("--rw") + 1] if machine else sys.argv[-1]
job = json.load(open(out + "/job.json"))
do = json.loads(os.environ.get("FAKE_DO", "{}")).get(job["case"], "")
open(os.environ["FAKE_DIR"] + "/pids", "a").write("%d\\n" % os.getpid())
print("progress 1/2", flush=True)
if machine:
    if do == "hang":
        time.sleep(3600)
    if do == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        time.sleep(3600)
    if do == "limit":
        sys.exit(124)
    if do == "fail":
        sys.exit("dumbbell: no such qdisc")
    if do == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    for name in ("run.json", "sightings"):
        open(out + "/" + name, "w").write("{}")
else:
    if do == "bad data":
        sys.exit("measure: no packet was seen")
    if do != "silent":
        open(out + "/summary.json", "w").write("{}")
    for name in ("seconds.csv", "histogram.csv"):
        open(out + "/" + name, "w").write("")
    if "--keep-raw" not in sys.argv:
        os.remove(out + "/sightings")
"""


def holds(text, *parts):
    """Fail unless the text has all the parts."""
    for part in parts:
        assert part in text, f"{part!r} is not in\n{text}"


class Place:
    """A results directory of a test, and `lab` with it."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(dir=WORK)
        self.results = os.path.join(self.directory, "results")
        self.store = store.Store(self.results)

    def start(self, *args, do=None):
        """`lab ARGS` in the background. do: {case: what its machine does}."""
        env = os.environ | {"FAKE_DIR": self.directory, "FAKE_DO": json.dumps(do or {})}
        return subprocess.Popen([sys.executable, os.path.join(HERE, "lab.py"), *args, "--results", self.results],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def lab(self, *args, do=None):
        """(exit code, stdout, stderr) of `lab ARGS`."""
        process = self.start(*args, do=do)
        out, err = process.communicate(timeout=LAST_RESORT_S)
        return process.returncode, out, err

    def finished(self):
        """Cases of the finished runs."""
        return sorted({run[1] for run in self.store.runs()})

    def pids(self):
        """All processes of machines and reductions that ever started."""
        try:
            with open(os.path.join(self.directory, "pids"), encoding="ascii") as file:
                return [int(line) for line in file]
        except FileNotFoundError:
            return []

    def alive(self):
        """Those of them that still run."""
        return [p for p in self.pids() if os.path.exists(f"/proc/{p}")]


def until(condition):
    """Wait for a condition; fail if it does not come."""
    end = time.monotonic() + LAST_RESORT_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


SMOKE = ("run", "smoke", "--aqm", "dualpi2", "--jobs", "2")


def main():
    """Run the tests, with the mock in its place."""
    with open(FAKE, "w", encoding="ascii") as file:
        file.write(FAKE_TEXT)
    os.chmod(FAKE, 0o755)
    try:
        ktap.main()
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
