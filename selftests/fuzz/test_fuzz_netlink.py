#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
"""
test_fuzz_netlink.py - the netlink fuzzer as a test: its corpus, a run, and what the run reached.

What is compared with what is in netlink.c; here it is run, and it is checked that it did what it says:
messages answered, nothing left behind. Which blocks of the module it reached, with the other programs,
is coverage.py's business.

It is not the place for single cases of messages: those are in selftests/net/test_netlink.py.

The environment: DUALPI2_FUZZ_MESSAGES, how many (1000000 in user-mode Linux, else 20000); DUALPI2_FUZZ_SEED (1).
"""
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import lib  # noqa: E402
from lib import Failure, expect, expect_equal, note, test  # noqa: E402

CORPUS = os.path.join(HERE, "corpus/netlink")
WORK = f"/tmp/dualpi2-fuzz-{os.getpid()}"


def messages():
    return int(os.environ.get("DUALPI2_FUZZ_MESSAGES") or (1000000 if lib.user_mode_linux() else 20000))


def state():
    """Qdiscs and devices of this namespace, and users of the module."""
    with open("/sys/module/sch_dualpi2/refcnt", encoding="ascii") as file:
        users = int(file.read())
    links = sorted(name for name in os.listdir("/sys/class/net"))
    qdiscs = lib.run("tc qdisc show").stdout
    return users, links, qdiscs


def fuzz(*words):
    """Run the fuzzer; its words go to stderr as they come, the last of them into the result."""
    with subprocess.Popen([lib.program("fuzz/netlink"), *words], stderr=subprocess.PIPE, text=True) as process:
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
    found = {name: int(re.search(rf"(\d+) {word}", line)[1]) for name, word in
             (("messages", "messages"), ("made", "made"), ("changed", "changed"),
              ("checked", "checked"), ("unsure", "unsure"), ("frames", "frames"),
              ("classes", "classes"), ("reports", "reports"), ("blocks", "blocks"))}
    found["refused"] = float(re.search(r"([\d.]+) % refused", line)[1])
    found["refused_by_dualpi2"] = float(re.search(r"([\d.]+) % by dualpi2", line)[1])
    return found


@test()
def fuzz_corpus_replayed_without_a_fault():
    """Each file: what once reached a new block, and what once was a fault."""
    files = glob.glob(CORPUS + "/*.txt")
    expect(files, f"no corpus in {CORPUS}")
    before = state()
    lines = fuzz("--messages", "0", "--corpus", CORPUS)
    expect(any(f"corpus: {len(files)} sequences" in line for line in lines),
           f"not all of {len(files)} files were run")
    expect(ended(lines)["messages"] >= len(files), "the corpus holds hardly a message")
    expect_equal(state(), before, "devices, qdiscs and users of the module")


@test()
def fuzz_run_all_answered_as_predicted():
    wanted = messages()
    before = state()
    os.makedirs(WORK, exist_ok=True)
    if os.path.isdir(CORPUS):
        shutil.copytree(CORPUS, WORK + "/corpus", dirs_exist_ok=True)
    else:
        os.makedirs(WORK + "/corpus", exist_ok=True)
    failure = os.path.join(lib.ROOT, "build/fuzz/failure.txt")
    os.makedirs(os.path.dirname(failure), exist_ok=True)
    found = ended(fuzz("--messages", str(wanted), "--seed", os.environ.get("DUALPI2_FUZZ_SEED", "1"),
                       "--corpus", WORK + "/corpus", "--fail", failure))
    expect(found["messages"] >= wanted, f"{found['messages']} messages were answered of {wanted}")
    # A run that refuses all, or accepts all, or has no idea of what is there, shows nothing.
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
