#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
"""
test_fuzz_netlink.py - the netlink fuzzer (netlink.c) as a test: its corpus, and a run.

The fuzzer compares what the kernel does with its model. Here it is checked that it did so: messages answered,
nothing left behind. coverage.py shows which blocks of the module it reached, together with the other programs.
Single cases of messages are in selftests/net/test_netlink.py and test_netlink_nests.py.

The environment: DUALPI2_FUZZ_MESSAGES, number of messages (1000000); DUALPI2_FUZZ_SEED (1).
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import lib  # noqa: E402
from lib import Failure, expect, expect_equal, note, test  # noqa: E402

CORPUS = os.path.join(HERE, "corpus/netlink.txt")


def state():
    """Qdiscs and devices of this namespace, and users of the module."""
    with open("/sys/module/sch_dualpi2/refcnt", encoding="ascii") as file:
        users = int(file.read())
    links = sorted(os.listdir("/sys/class/net"))
    qdiscs = lib.run("tc qdisc show").stdout
    return users, links, qdiscs


def fuzz(*options):
    """Run the fuzzer; its output goes to stderr as it comes, its last lines into the result."""
    with subprocess.Popen([lib.program("fuzz/netlink"), *options], stderr=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            print(line, end="", file=sys.stderr, flush=True)
    for line in lines[-3:]:
        note(line[:1000])
    if process.returncode:
        bad = [line for line in lines if "FAULT" in line or line.startswith("  ")]
        raise Failure(f"the fuzzer ended with {process.returncode}: " + "\n".join(bad)[:2000])
    return lines


def ended(lines):
    """The numbers of the last line of progress."""
    line = next(line for line in reversed(lines) if " end: " in line)
    found = {name: int(value) for value, name in re.findall(r"(\d+) ([a-z]+)(?:,|$)", line)}
    found["refused"], found["refused_by_dualpi2"] = map(float, re.findall(r"([\d.]+) %", line))
    return found


@test()
def fuzz_corpus_replayed_without_a_fault():
    """Each case: what once reached a new block, and what once was a fault."""
    with open(CORPUS, encoding="ascii") as file:
        cases = len(re.findall("^== ", file.read(), re.M))
    expect(cases, f"no case in {CORPUS}")
    before = state()
    lines = fuzz("--messages", "0", "--corpus", CORPUS)
    expect(any(f"corpus: {cases} cases" in line for line in lines), f"not all of {cases} cases were run")
    expect(ended(lines)["messages"] >= cases, "the corpus has hardly a message")
    expect_equal(state(), before, "devices, qdiscs and users of the module")


@test()
def fuzz_run_all_answered_as_predicted():
    wanted = int(os.environ.get("DUALPI2_FUZZ_MESSAGES") or 1000000)
    before = state()
    corpus = shutil.copy(CORPUS, f"/tmp/dualpi2-fuzz-{os.getpid()}.txt")    # the run appends to it
    failure = os.path.join(lib.ROOT, "build/fuzz/failure.txt")
    found = ended(fuzz("--messages", str(wanted), "--seed", os.environ.get("DUALPI2_FUZZ_SEED", "1"),
                       "--corpus", corpus, "--fail", failure))
    expect(found["messages"] >= wanted, f"{found['messages']} messages were answered of {wanted}")
    # A run in which dualpi2 rejects or accepts all messages, or that predicts little, shows nothing.
    expect(10 < found["refused"] < 90, f"{found['refused']} % of the messages were refused")
    expect(found["refused_by_dualpi2"] > 1, "hardly a message was refused by dualpi2 itself")
    expect(found["made"] > wanted / 200, f"only {found['made']} qdiscs were made")
    expect(found["changed"] > wanted / 50, f"only {found['changed']} changes were accepted")
    expect(found["checked"] > wanted / 50, f"only {found['checked']} dumps were compared")
    expect(found["unsure"] < wanted / 20, f"{found['unsure']} outcomes could not be predicted")
    expect(found["frames"] > wanted / 50, f"only {found['frames']} frames were sent")
    expect(found["classes"] > wanted / 1000, f"only {found['classes']} classes were compared")
    expect(found["reports"], "no overload was reported")
    expect_equal(state(), before, "devices, qdiscs and users of the module")


if __name__ == "__main__":
    lib.main()
