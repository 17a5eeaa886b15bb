#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: long kernel=kcsan
"""No data race: packets on one CPU, requests or other packets on the other, watched by KCSAN.

storm/race.c sends and requests. A report of KCSAN is this module's if one of its two accesses is in the module or in a
function that the module called; those of the rest of the kernel are counted and named.

The environment: DUALPI2_RACE_REQUESTS, requests of each pair (default 1500).
"""
import contextlib
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import lib  # noqa: E402
from lib import Failure, each, expect, expect_equal, note, run, test  # noqa: E402
from mq import mq_device  # noqa: E402

KCSAN = "/sys/kernel/debug/kcsan"
# Frames of an access: its function, and the caller.
INNERMOST = 2
# Races that touch the module and are none of its own.
KNOWN = {
    "__dev_queue_xmit / dualpi2_apply": "the kernel reads sch->flags without a lock for a bit that never changes; a "
                                        "change of bypass sets another one under the lock, as the kernel itself does",
    "dualpi2_apply / net_tx_action": "the same read, where a stopped transmit queue goes on",
    "ktime_get / timekeeping_update_from_shadow": "the kernel's clock, whose readers try again (seqcount)",
}

WHERE = {
    "root": ("dualpi2", "root", ("root handle 10: dualpi2 bandwidth 20mbit qprotect",)),
    "tbf": ("dualpi2", "1:1", ("root handle 1: tbf rate 20mbit burst 4000 limit 100000000",
                               "parent 1:1 handle 10: dualpi2 qprotect")),
    "mq": ("dualpi2_mq", "root", ("root handle 10: dualpi2_mq bandwidth 20mbit qprotect",)),
    "mq_unlimited": ("dualpi2_mq", "root", ("root handle 10: dualpi2_mq",)),
    "mq_virtio": ("dualpi2_mq", "root", ("root handle 10: dualpi2_mq bandwidth 20mbit qprotect",)),
}
PAIRS = [f"{where}_and_{other}" for where in WHERE for other in (
    "traffic", "change", "dump", "reset", "limit", "filter", "replace", "queues")
    # The classes of dualpi2_mq are its children, which are where filters belong.
    if (where[:2], other) not in (("tb", "queues"), ("mq", "filter"))]


def kernel_log():
    """What the kernel said since the last call."""
    text = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(_log, 1 << 16):
            text += piece
    return [line.partition(";")[2] for line in text.decode(errors="replace").splitlines() if not line.startswith(" ")]


def reports(lines):
    """[(title, this module's, text)] of the reports in the log."""
    found, report = [], None
    for line in lines:
        if "BUG: KCSAN:" in line:
            # Without what the compiler adds to a name, and the module's.
            report = [re.sub(r"\.[a-z]+\.\d+| \[\w+\]", "", line.partition("data-race in ")[2])]
        elif report and line.startswith("======"):
            found.append((report[0], is_ours(report) and report[0] not in KNOWN, "\n".join(report)))
            report = None
        elif report:
            report.append(line)
    return found


def is_ours(report):
    depth = 0
    for line in report[1:]:
        if re.match(r"(read|write|race|assert)", line):
            depth = 0
        elif line.startswith(" "):
            depth += 1
            if depth <= INNERMOST and "[sch_dualpi2]" in line:
                return True
    return False


def kcsan(word):
    with open(KCSAN, "w", encoding="ascii") as file:
        file.write(word)


def watchpoints():
    """How many accesses KCSAN has watched."""
    with open(KCSAN, encoding="ascii") as file:
        return int(re.search(r"setup_watchpoints: (\d+)", file.read())[1])


def watched(name, action):
    """Runs it with KCSAN; fails for a race of this module."""
    expect_equal(os.cpu_count(), 2, "processors")
    kernel_log()
    began, before = time.monotonic(), watchpoints()
    kcsan("on")
    try:
        action()
    finally:
        kcsan("off")
    accesses = watchpoints() - before
    expect(accesses > 1000, f"{accesses} accesses watched")
    found = reports(kernel_log())
    ours = [text for _, own, text in found if own]
    note(f"{name}: {time.monotonic() - began:.0f} s, {accesses} accesses watched, {len(ours)} reports of this module, "
         f"{len(found) - len(ours)} others")
    for title in sorted({title for title, own, _ in found if not own}):
        note(f"other: {title}")
    if ours:
        raise Failure(f"{len(ours)} data races:\n" + "\n".join(ours)[:8000])


@each(PAIRS, ("reliability 4",))
def race_of_CASE_is_none(pair):
    where, other = pair.split("_and_")
    kind, parent, lines = WHERE[where]
    requests = int(os.environ.get("DUALPI2_RACE_REQUESTS") or 1500) * (4 if other == "traffic" else 1)
    with mq_device(*lines, kind="virtio" if where == "mq_virtio" else "veth") as netns:
        watched(pair, lambda: run([lib.program("fuzz/storm"), "race", "--kind", kind, "--dev", "d0", "--parent", parent,
                                   "--handle", "10:", "--with", other, "--messages", str(requests)], netns))


@each(("change", "replace"), ("reliability 4",))
def storm_of_CASE_over_dualpi2_mq_on_virtio_net_accounts_agree(mode):
    """A second thread sends and dumps. The program checks the counters."""
    count = 4 * int(os.environ.get("DUALPI2_RACE_REQUESTS") or 1500)
    command = [lib.program("fuzz/storm"), mode, "--two", "--kind", "dualpi2_mq", "--dev", "d0", "--parent", "root",
               "--handle", "10:", "--messages", str(count)]
    with mq_device("root handle 10: dualpi2_mq bandwidth 20mbit", kind="virtio") as netns:
        watched(mode, lambda: run(command, netns))


@test("reliability 4")
def race_with_the_end_of_a_namespace_is_none():
    """Packets wait, and timers send them, while another CPU takes the devices down."""
    count = int(os.environ.get("DUALPI2_RACE_REQUESTS") or 1500) // 10
    watched("netns", lambda: run([lib.program("fuzz/storm"), "netns", "--with", "netns", "--messages", str(count)]))


if __name__ == "__main__":
    _log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lib.main()
