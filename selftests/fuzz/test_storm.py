#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug kmemleak
"""
test_storm.py - storms of changes, replacements and namespaces while packets pass, at several counts.

storm.c does the work and checks the counters of dualpi2. Here are the trees it runs in, what their parents
must show at the end, and the search for leaks: objects in the slabs between half of a run and its end,
kmemleak where the kernel has it and it is on, the kernel's warning about devices that do not go away, and
the module, which must be removable after the last qdisc, and not before.

The environment: DUALPI2_STORM_MESSAGES, changes and replacements in all (40000 in user-mode Linux, else 14000);
DUALPI2_STORM_NAMESPACES (1000, else 12); DUALPI2_STORM_SEED (1); DUALPI2_STORM_TWO, 1: a second thread, on the second
CPU, sends and dumps while the first one changes and replaces.
"""
import contextlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import lib  # noqa: E402
from lib import Failure, Skip, each, expect, expect_equal, note, test  # noqa: E402
from mq import DEVICES, NETDEVSIM, QUEUES, mq_device  # noqa: E402
from parents import Tree  # noqa: E402

KMEMLEAK = "/sys/kernel/debug/kmemleak"
# tbf, qfq and hfsc peek, htb does not, root has no parent. tbf splits GSO packets itself.
CHANGE_TREES = ("root", "tbf", "htb", "htb_qfq", "hfsc", "hfsc_qfq")
ABUSE_TREES = ("root", "tbf", "htb_qfq")
REPLACE_TREES = ("root", "tbf", "htb", "htb_qfq", "hfsc")
MQ_MODES = ("change", "replace")
PARTS = len(CHANGE_TREES) + len(ABUSE_TREES) + len(REPLACE_TREES) + len(MQ_MODES) * len(DEVICES)
SHORT, LONG = (14000, 12), (40000, 1000)


def count(which):
    name = ("DUALPI2_STORM_MESSAGES", "DUALPI2_STORM_NAMESPACES")[which]
    return int(os.environ.get(name) or (LONG if lib.user_mode_linux() else SHORT)[which])


def storm(netns, name, number, *options):
    """Run it to the end; returns what it counted."""
    command = [lib.program("fuzz/storm"), *options, "--messages", str(number),
             "--seed", os.environ.get("DUALPI2_STORM_SEED", "1")]
    if os.environ.get("DUALPI2_STORM_TWO") and options[0] != "netns":
        command.append("--two")
    with lib.in_netns(netns):
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    last = ""
    with process:
        for line in process.stderr:
            print(f"{name}: {line}", end="", file=sys.stderr, flush=True)
            last = line
        out = process.stdout.read()
    if process.returncode:
        raise Failure(f"the storm ended with {process.returncode}: {last.strip()}")
    found = json.loads(out)
    note(", ".join(f"{key} {value}" for key, value in found.items()))
    expect(found["requests"] >= number, "requests are missing")
    no_leak(found)
    return found


def no_leak(found):
    """Slabs count by pages, and objects that a CPU keeps for itself count as in use: a few in each of twenty
    slabs. A leak in one request of a thousand shows in a run of a million.
    """
    grown = found["objects_end"] - found["objects_half"]
    note(f"{grown} objects more after {found['since_half']} requests")
    expect(grown <= 500 + found["since_half"] // 1000, f"{grown} objects more in the slabs since half of the run")


def no_complaint():
    """Two scans, because an object that is being passed on during the first one looks like a leak."""
    with open("/dev/kmsg", encoding="utf-8", errors="replace") as log:
        os.set_blocking(log.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while line := os.read(log.fileno(), 1 << 16).decode(errors="replace"):
                expect("unregister_netdevice: waiting" not in line, line)
    if not os.path.exists(KMEMLEAK):
        note("no kmemleak here")
        return
    for _ in range(2):
        try:
            with open(KMEMLEAK, "w", encoding="ascii") as file:
                file.write("scan")
        except OSError:
            with open("/proc/cmdline", encoding="ascii") as cmdline:
                expect("kmemleak=on" not in cmdline.read(), "kmemleak has turned itself off")
            note("kmemleak is off: boot with kmemleak=on")
            return
        time.sleep(6)
    with open(KMEMLEAK, encoding="ascii") as file:
        found = file.read()
    expect(not found, "kmemleak: " + found[:2000])


def where(tree):
    return "--dev", "d0", "--parent", tree.leaves["10:"], "--handle", "10:"


@each(CHANGE_TREES, ("reliability scoreboard 2",))
def storm_of_changes_under_CASE_accounts_agree(name):
    with Tree(name, "10mbit", args="dualpi2") as tree:
        found = storm(tree.netns, f"change-{name}", count(0) // PARTS, "change", *where(tree))
        tree.passed = name == "root"
        expect(found["checks"] >= 2, "the counters were not checked")
        tree.check_empty()
    no_complaint()


@each(ABUSE_TREES, ("reliability scoreboard 2",))
def storm_of_changes_and_device_operations_under_CASE_accounts_agree(name):
    """A link that goes down purges without counting drops: the sum against what was offered is what counts."""
    with Tree(name, "10mbit", args="dualpi2") as tree:
        found = storm(tree.netns, f"abuse-{name}", count(0) // PARTS, "change", *where(tree), "--abuse")
        tree.passed = name == "root"
        expect(found["abuses"] > 0, "no device operations")
        for st in tree.drain().values():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"qlen and backlog of {st['kind']} {st['handle']}")
    no_complaint()


@each(REPLACE_TREES, ("reliability scoreboard 3",))
def storm_of_replacements_under_CASE_leaves_nothing(name):
    with Tree(name, "10mbit", args="dualpi2") as tree:
        storm(tree.netns, f"replace-{name}", count(0) // PARTS, "replace", *where(tree))
        tree.check_empty()
        # It still works.
        before = tree.delivered()[0]
        for _ in range(20):
            tree.mix.send(0, 200)
        tree.check_empty()
        expect_equal(tree.delivered()[0] - before, 20, "packets through afterwards")
    no_complaint()


@each((f"{mode}_{device}" for device in DEVICES for mode in MQ_MODES), ("reliability scoreboard 2",))
def storm_over_dualpi2_mq_CASE_accounts_agree(name):
    mode, device = name.split("_")
    if device == "netdevsim" and not os.path.exists(NETDEVSIM):
        raise Skip("this kernel has no netdevsim; the debug kernel has")
    with mq_device("root handle 10: dualpi2_mq bandwidth 10mbit", kind=device) as netns:
        expect_equal(sum(q["kind"] == "dualpi2" for q in lib.qdisc_dump(netns, "d0")), QUEUES, "transmit queues")
        found = storm(netns, f"mq-{name}", count(0) // PARTS, mode, "--kind", "dualpi2_mq", "--dev", "d0", "--parent",
                      "root", "--handle", "10:")
        expect(mode == "replace" or found["checks"] >= 2, "the counters were not checked")
    no_complaint()


@test("reliability scoreboard 3")
def storm_of_namespaces_that_end_under_traffic_leaves_nothing():
    found = storm(None, "netns", count(1), "netns")
    expect(found["packets"] > 10 * count(1), "too few packets")
    no_complaint()


@test("reliability 6")
def storm_over_module_goes_and_comes():
    """The last test: the module cannot be removed while there is a qdisc, can be after it, and works again."""
    with Tree("htb") as tree:
        for n in range(20):
            tree.mix.send(n % 4)
        expect(lib.run("rmmod sch_dualpi2", check=False).returncode, "removed while in use")
    for _ in range(3):
        # The end of a namespace is other threads' work.
        for _ in range(100):
            if not lib.run("rmmod sch_dualpi2", check=False).returncode:
                break
            time.sleep(0.1)
        else:
            raise Failure("the module cannot be removed after the last qdisc")
        lib.load_module()
        with Tree("htb") as tree:
            for n in range(20):
                tree.mix.send(n % 4)
            tree.check_all()
    no_complaint()


if __name__ == "__main__":
    lib.main()
