#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""test_basics.py - what every dualpi2 does, this project's and an in-tree one.

It uses only the options and statistics of Linux 6.17, and judges no time. All of it is tested elsewhere in more
detail, by tests that need the extension; this program is for kernels without it.
"""
import contextlib
import os
import struct
import time

import frames
import lib
from lib import CE, ECT0, ECT1, NOT_ECT, each, expect, expect_equal, pack, test

CODEPOINTS = {"not_ect": NOT_ECT, "ect0": ECT0, "ect1": ECT1, "ce": CE}
HTB = """\
qdisc add dev d0 root handle 1: htb default 10
class add dev d0 parent 1: classid 1:10 htb rate {0} ceil {0} burst 1514 cburst 1514 quantum 1514
"""
# Attribute of struct tc_dualpi2_xstats: what the classifier counts.
IN_QUEUE = {NOT_ECT: "packets_in_c", ECT0: "packets_in_c", ECT1: "packets_in_l", CE: "packets_in_l"}
# Another value for each option of Linux 6.17 that is no default.
OTHERS = {"limit": 5000, "target": 20000, "tupdate": 20000, "alpha": 100, "beta": 1000, "step_thresh_us": 2000,
          "coupling": 4, "drop_overload": 0, "drop_early": 1, "c_protection": 20, "ecn_mask": 3, "split_gso": 0}


@contextlib.contextmanager
def device(rate, **knobs):
    """A namespace with d0, which has htb with dualpi2 as its child; yields its name and a sender."""
    name = f"dpb{os.getpid()}-{next(lib._serial)}"
    with contextlib.ExitStack() as stack:
        lib.quiet_netns(stack, name)
        lib.run("ip link add d0 type dummy", name)
        lib.run("ip link set dev d0 up", name)
        lib.run(["tc", "-batch", "-"], name, stdin=HTB.format(rate))
        add(name, **knobs)
        sender = frames.Sender(name, "d0")
        stack.callback(sender.close)
        yield name, sender


def request(name, flags, **knobs):
    return lib.tc_request(name, lib.RTM_NEWQDISC, flags, "d0", "10:", "1:10", "dualpi2",
                          pack(**knobs) if knobs else None)


def add(name, **knobs):
    expect_equal(request(name, lib.NLM_F_CREATE | lib.NLM_F_EXCL, **knobs), (0, ""), "add of dualpi2")


def packet(number, ecn, version=4):
    payload = frames.udp(bytes(200))
    if version == 4:
        return frames.ether(number, frames.ETH_P_IP, frames.ipv4(payload, ecn))
    return frames.ether(number, frames.ETH_P_IPV6, frames.ipv6(payload, ecn))


def drained(name):
    """Statistics of dualpi2 when its queues are empty."""
    for _ in range(1200):
        st = lib.stats(name, "d0")
        if not st["qlen"]:
            return st
        time.sleep(0.05)
    raise lib.Failure(f"{st['qlen']} packets are queued after 60 s")


@each((4, 6), name=lambda version: f"ipv{version}")
def basics_of_ecn_in_CASE_decide_the_queue(version):
    with device("1gbit") as (name, sender):
        for codepoint, ecn in CODEPOINTS.items():
            before = lib.stats(name, "d0")
            for number in range(20):
                sender.send(packet(number, ecn, version))
            after = drained(name)
            new = {key: after[key] - before[key] for key in ("packets_in_c", "packets_in_l")}
            expect_equal(new, dict.fromkeys(new, 0) | {IN_QUEUE[ecn]: 20}, f"{codepoint}: packets in the queues")


@test
def basics_of_packets_below_the_rate_all_forwarded():
    with device("1gbit") as (name, sender):
        size = 0
        for number in range(400):
            frame = packet(number, number % 4)
            sender.send(frame)
            size += len(frame)
        st = drained(name)
        expect_equal((st["packets"], st["bytes"], st["drops"]), (400, size, 0), "packets, bytes, drops")
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "qlen, backlog, memory")


@test
def basics_of_the_limit_offered_is_queued_and_dropped():
    with device("8kbit", limit=50) as (name, sender):
        for number in range(200):
            sender.send(packet(number, number % 4))
        st = lib.stats(name, "d0")
        expect(st["drops"] >= 100, f"only {st['drops']} drops")
        expect_equal(st["packets"] + st["drops"] + st["qlen"], 200, "sent + dropped + queued")


@test
def basics_of_options_set_are_shown():
    with device("1gbit") as (name, _):
        default = lib.stats(name, "d0")["knobs"]
        for knob, value in OTHERS.items():
            expect(default[knob] != value, f"{knob}: {value} is the default")
        expect_equal(request(name, 0, **OTHERS), (0, ""), "change of all options")
        shown = lib.stats(name, "d0")["knobs"]
        # A gain is kept in a unit of its own.
        for knob in OTHERS:
            slack = 1 if knob in ("alpha", "beta") else 0
            expect(abs(shown[knob] - OTHERS[knob]) <= slack, f"{knob}: {shown[knob]}, set to {OTHERS[knob]}")


@each({"coupling": struct.pack("B", 0), "c_protection": struct.pack("B", 101), "ecn_mask": struct.pack("B", 9),
       "drop_early": struct.pack("B", 2), "limit": b"\0"}.items(), name=lambda case: case[0])
def basics_of_a_bad_CASE_refused_and_nothing_changed(case):
    knob, payload = case
    with device("1gbit") as (name, _):
        before = lib.stats(name, "d0")["knobs"]
        error, _ = lib.tc_request(name, lib.RTM_NEWQDISC, 0, "d0", "10:", "1:10", "dualpi2",
                                  lib.attr(lib.KNOBS[knob][0], payload))
        expect(error, "it was accepted")
        expect_equal(lib.stats(name, "d0")["knobs"], before, "options")


@test
def basics_of_deletion_with_a_backlog_leaves_nothing_in_the_parent():
    with device("8kbit") as (name, sender):
        for number in range(60):
            sender.send(packet(number, number % 4))
        expect(lib.stats(name, "d0")["qlen"] > 30, "too few packets queued")
        expect_equal(lib.tc_request(name, lib.RTM_DELQDISC, 0, "d0", "10:", "1:10"), (0, ""), "deletion")
        parent = lib.stats(name, "d0", "1:")
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "qlen and backlog of htb")
        add(name)
        sender.send(packet(0, ECT1))


if __name__ == "__main__":
    lib.main(needs="")
