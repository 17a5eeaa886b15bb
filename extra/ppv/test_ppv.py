#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock
"""
test_ppv.py - the qdisc ppv: values by throughput-value functions, classes, what carries a value, flows.
"""

import math
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import IPV4_ID, MARK, tvfs

import frames
import lib
from lib import CE, each, expect, expect_between, expect_equal, run, tc, test
from lib_ppv import MBIT, GOLD, LINE, coded, expect_law, PpvWire, in_carry

# Values

LAWS = {"gold": ({}, GOLD, 1), "line": ({5: LINE}, LINE, 5), "one_point": ({6: [(1, 777)]}, [(1, 777)], 6),
        "knee": ({7: [(1, 65535), (50000, 65000), (50001, 20000), (100000, 10000), (10**6, 1)]},
                 [(1, 65535), (50000, 65000), (50001, 20000), (100000, 10000), (10**6, 1)], 7),
        "32_points": ({8: (points := [(1000 * 2**n, 65535 - 2000 * n) for n in range(26)] +
                           [(1000 * 2**25 + n * 10**6, 15535 - n) for n in range(1, 7)])}, points, 8)}


@each([(name, carry) for name in LAWS for carry in (MARK, IPV4_ID)], name=in_carry)
def values_of_CASE_are_those_of_uniform_rates(case):
    """A stream of 1 Mbit/s, from when its rate is known."""
    name, carry = case
    functions, points, number = LAWS[name]
    with PpvWire(functions, default=number, carry=carry) as wire:
        wire.stream(MBIT, 100)
        wire.arrivals()
        wire.marks()
        wire.stream(MBIT, 2000)
        got, marks = wire.arrivals(), wire.values()
        expect_equal((len(got), len(marks)), (2000, 2000), "packets")
        ids = [struct.unpack_from("!H", frame, 18)[0] for _, _, frame in got]
        expect_equal(set(marks if carry else ids), {0}, "what does not carry them")
        expect_law(ids if carry else marks, points, MBIT, name)
        for _, _, frame in got:
            expect_equal(frames.checksum(frame[14:34]), 0, "checksum of the header")
        st = wire.stats()
        expect_equal((st["valued"], st["not_valued"], st["no_function"], st["packets"], st["drops"]),
                     (2100, 0, 0, 2100, 0), "valued, not valued, no function, packets, drops")


@test()
def values_of_built_in_functions_share_as_the_paper_says():
    """At one value Gold has twice the rate of Silver until that has 10 Mbit/s, which it keeps until Gold has 40; from
    there on four times.  Background has a hundredth; Voice comes before others up to 64 kbit/s.
    """
    names = {1: "gold", 2: "silver", 3: "background", 4: "voice"}
    with PpvWire() as wire:
        found = tvfs(wire.stats()["raw"])
        expect_equal(set(found), set(names), "functions that are built in")

        def beyond(number, value):
            """The rate at which a function is at this value, in bit/s."""
            low, high = 1.0, 1e12
            for _ in range(200):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if coded(found[number], middle / 8) > value else (low, middle)
            return low

        for rate, share in ((20e3, 2), (1e6, 2), (9.9e6, 2), (11e6, 4), (100e6, 4), (10e9, 4)):
            value = coded(found[2], rate / 8)
            expect_between(beyond(1, value) / rate, share - 0.02, share + 0.02, f"Gold for Silver's {rate:.0f} bit/s")
        for gold in (21e6, 30e6, 39e6):
            expect_between(beyond(2, coded(found[1], gold / 8)) / 1e6, 9.99, 10.01, f"Silver for Gold's {gold:.0f}")
        for gold in (3e6, 1e9):
            expect_between(gold / beyond(3, coded(found[1], gold / 8)), 99, 101, "Gold : Background")
            expect(coded(found[4], 63.9e3 / 8) >= coded(found[1], 20e3 / 8) - 1, "Voice before Gold")
        # And by packets: 8 Mbit/s of Gold and of Silver, beyond the value that leaves Silver 2 Mbit/s.
        value = coded(found[2], 2e6 / 8)
        share = {}
        for number in (1, 2):
            wire.set(default=number)
            wire.stream(8 * MBIT, 200)
            wire.marks()
            wire.stream(8 * MBIT, 12000)
            share[number] = sum(v > value for v in wire.values()) / 12000
        expect_between(share[2], 0.2, 0.3, "of Silver beyond")
        expect_between(share[1] / share[2], 1.8, 2.2, "Gold : Silver")


@test()
def values_of_flows_are_those_of_their_own_rates():
    """Two flows, one of ten times the other's rate: by ports, by IPv6, by addresses."""
    with PpvWire({5: LINE}, default=5) as wire:
        for kind, slow, fast in (("ports", {"flow": 1}, {"flow": 2}), ("v6", {"v6": True, "flow": 3},
                                                                      {"v6": True, "flow": 4})):
            wire.set(window=100001 if kind == "v6" else 100000)
            numbers = {}
            begun = time.monotonic()
            for n in range(11 * 300):
                which = "slow" if n % 11 == 5 else "fast"
                frame = wire.frame(1000, **(slow if which == "slow" else fast))
                numbers[frames.number_of(frame)] = which, n
                left = begun + n * 0.0008 - time.monotonic()
                if left > 0:
                    time.sleep(left)
                wire.send(frame)
            found = {"slow": [], "fast": []}
            for number, mark in wire.marks():
                which, n = numbers[number]
                if n > 150:
                    found[which].append(mark & 0xffff)
            # 1250 packets a second, one in eleven is slow.
            for which, rate in (("slow", 1250000 / 11), ("fast", 1250000 * 10 / 11)):
                expect_law(found[which], LINE, rate, f"{kind}, {which}")
        expect_equal(wire.stats()["flows_evicted"], 0, "evicted")


@test()
def values_after_a_pause_are_those_of_a_new_flow():
    """A flow's first packet counts for one in a window: its rate is 10 kB/s, at most."""
    with PpvWire({5: [(10000, 60000), (10010, 1)]}, default=5) as wire:
        for _ in range(300):
            wire.send(wire.frame(1000))
            time.sleep(0.11)
        expect_equal(set(wire.values()), {60000}, "values")
        wire.stream(100 * MBIT, 1000)
        expect(min(wire.values()) == 1, "values of a fast flow")
        time.sleep(0.2)
        wire.marks()
        wire.send(wire.frame(1000))
        expect_equal(wire.values(), [60000], "after a pause")
        st = wire.stats()
        expect_equal((st["flows_new"], st["flows_evicted"]), (1, 0), "flows")


@test()
def values_follow_the_window():
    """Ten packets at once count for more in a shorter one."""
    with PpvWire({5: [(1, 60000), (10**6, 59999), (10**6 + 100, 2), (10**9, 1)]}, default=5) as wire:
        for window, slow in ((1000, False), (1000000, True)):
            wire.set(window=window)
            wire.marks()
            for _ in range(300):
                wire.send(*(wire.frame(1000) for _ in range(10)))
                time.sleep(0.05)
            # 200 kB/s over a second, 10 MB/s over a millisecond.
            got = wire.values()
            expect_equal(min(got) >= 59999, slow, f"window {window}: {min(got)}..{max(got)}")


@test()
def values_in_the_mark_leave_its_other_half_alone():
    with PpvWire({5: LINE}, default=5) as wire:
        rng = random.Random(4)
        marks = {}
        for _ in range(300):
            frame = wire.frame(1000)
            marks[frames.number_of(frame)] = mark = rng.randrange(2**32)
            wire.send(frame, value=mark)
        got = wire.marks()
        expect_equal([(number, mark >> 16) for number, mark in got],
                     [(number, mark >> 16) for number, mark in marks.items()], "upper half")
        expect(all(1000 <= mark & 0xffff <= 60000 for _, mark in got), "lower half")
        # By identification the mark is not touched.
        wire.set(carry=IPV4_ID)
        for _ in range(50):
            wire.send(wire.frame(1000), value=0x1234abcd)
        expect_equal({mark for _, mark in wire.marks()}, {0x1234abcd}, "marks")


@test()
def values_in_the_identification_are_for_atomic_packets_alone():
    """A packet that is a fragment, may become one or is IPv6 stays as it is, and is counted."""
    with PpvWire({5: LINE}, default=5, carry=IPV4_ID) as wire:
        count, sent = 0, {}
        for frag in (0, 0x2000, 0x6000, 0x4001, 0x2010, 0x10, 0x8000, 0xc000, 0x4000):
            for more in ({}, {"tags": [(0x8100, 5)]}, {"tags": [(0x88a8, 5), (0x8100, 6)]}, {"ecn": CE, "dscp": 63}):
                frame = wire.frame(1000, frag=frag, ident=0x1111, **more)
                sent[frames.number_of(frame)] = frame, frag == 0x4000, frames.ETH_HLEN + 4 * len(more.get("tags", ()))
                wire.send(frame)
        for more in ({}, {"tags": [(0x8100, 5)]}):
            frame = wire.frame(1000, v6=True, **more)
            sent[frames.number_of(frame)] = frame, False, None
            wire.send(frame)
        # The Identification is in what AH signs.
        packet = frames.ipv4(bytes(900), frag=0x4000, proto=51)
        frame = frames.ether(next(wire.numbers), 0x0800, packet)
        sent[frames.number_of(frame)] = frame, False, None
        wire.send(frame)
        # Headers that are damaged stay as damaged as they were.
        for check in (0, 0xffff, 0x1234):
            packet = frames.ipv4(frames.udp(bytes(900)), frag=0x4000, check=check)
            frame = frames.ether(next(wire.numbers), 0x0800, packet)
            sent[frames.number_of(frame)] = frame, True, frames.ETH_HLEN
            wire.send(frame)
        got = {number: frame for _, number, frame in wire.arrivals()}
        expect_equal(set(got), set(sent), "packets")
        for number, (frame, atomic, at) in sent.items():
            count += atomic
            # Receivers get the outermost tag outside of the frame.
            now = got[number]
            if len(now) < len(frame):
                now = frame[:12] + frame[12:16] + now[12:]
            if not atomic:
                expect(now == frame, f"packet {number} was changed")
                continue
            value = now[at + 4:at + 6]
            expect(value != frame[at + 4:at + 6], f"packet {number} has no value")
            expect_equal(now[:at + 4] + now[at + 6:at + 10] + now[at + 12:],
                         frame[:at + 4] + frame[at + 6:at + 10] + frame[at + 12:], f"packet {number} otherwise")

            # How wrong the checksum is; 0 and 0xffff are the same number.
            was, off = (frames.checksum(one[at:at + 20]) % 0xffff for one in (frame, now))
            expect_equal(off, was, f"packet {number}: error of the checksum")
        st = wire.stats()
        expect_equal((st["valued"], st["not_valued"]), (count, len(sent) - count), "valued, not valued")


@test()
def values_of_fragments_are_those_of_one_flow():
    with PpvWire({5: LINE}, default=5) as wire:
        for frag in (0x2000, 0x2032, 0x0064):
            wire.send(wire.frame(400, frag=frag, flow=frag))
        st = wire.stats()
        expect_equal((st["flows_new"], st["valued"]), (1, 3), "flows, valued")
        expect(all(wire.values()), "marks")


# Classes

CONSTANT = {n: [(1, 1000 * n)] for n in range(1, 17)}


@test()
def class_is_that_of_priority_then_filter_then_default():
    with PpvWire(CONSTANT, default=7) as wire:
        def value(priority=0, **more):
            wire.send(wire.frame(1000, **more), priority=priority)
            return wire.values()[-1] // 1000

        expect_equal(value(), 7, "default")
        for number in range(1, 17):
            expect_equal(value(priority=0x100000 | number), number, f"priority 10:{number:x}")
        for priority in (0x100000, 0x100011, 0x10ffff, 0x200003, 3, 0xffffffff):
            expect_equal(value(priority=priority), 7, f"priority {priority:x}")
        for n, classid in enumerate(("10:1", "10:9", "10:10", "10:11", "1:2", "10:ffff"), 1):
            tc(f"filter add dev w0 parent 10: protocol ip prio {n} u32 match ip dsfield {4 * n} 0xfc classid {classid}",
               wire.netns)
        for n, want in ((1, 1), (2, 9), (3, 16), (4, 7), (6, 7)):
            expect_equal(value(dscp=n), want, f"by filter {n}")
        expect_equal(value(priority=0x100003, dscp=2), 3, "priority goes before filters")
        expect_equal(value(dscp=10), 7, "no filter matches")
        wire.set(default=2)
        expect_equal((value(), value(dscp=2), value(dscp=4)), (2, 9, 2), "another default")
        tc("filter del dev w0 parent 10:", wire.netns)
        expect_equal(value(dscp=2), 2, "filters are gone")
        st = wire.stats()
        expect_equal((st["valued"], st["not_valued"], st["no_function"], st["filter_dropped"]),
                     (st["packets"], 0, 0, 0), "all have values")


@test()
def class_without_a_function_gives_no_value():
    with PpvWire() as wire:
        for priority in (0x100001, 0x100005, 0x100010, 0x100004):
            wire.send(wire.frame(1000), priority=priority, value=0xab0000)
        got = [mark for _, mark in wire.marks()]
        expect_equal([bool(mark & 0xffff) for mark in got], [True, False, False, True], "values")
        expect_equal([mark >> 16 for mark in got], [0xab] * 4, "upper halves")
        st = wire.stats()
        expect_equal((st["valued"], st["not_valued"], st["no_function"]), (2, 2, 2), "valued, not valued, no function")
        # GSO packets of such a class count as the packets that they are.
        wire.vnet.sock.setsockopt(socket.SOL_SOCKET, 12, struct.pack("I", 0x100005))
        wire.gso(5000, 500)
        st = wire.stats()
        expect_equal((st["not_valued"], st["no_function"]), (12, 12), "not valued, no function")
        # It gets one.
        wire.set({5: [(1, 5)]})
        wire.marks()
        wire.send(wire.frame(1000), priority=0x100005)
        expect_equal(wire.values(), [5], "value")


@test()
def class_filters_may_drop_and_take_packets():
    lines = """\
qdisc add dev w0 root handle 1: prio bands 2 priomap""" + 16 * " 0" + "\n"
    with PpvWire(CONSTANT, lines=lines, parent="1:1") as wire:
        run("ip link add d1 up type dummy", wire.netns)
        for n, action in enumerate(("drop", "mirred egress redirect dev d1", "pass", "skbedit mark 0x77770000 pass",
                                    "pedit munge ip dsfield set 0 retain 0xfc pass"), 1):
            said = tc(f"filter add dev w0 parent 10: protocol ip prio {n} u32 match ip dsfield {4 * n} 0xfc "
                      f"classid 10:{n} action {action}", wire.netns, check=False)
            expect(not said.returncode, f"{action}: {said.stderr}")
        for n in range(6):
            for _ in range(10):
                wire.send(wire.frame(1000, dscp=n), may_drop=True)
        got = wire.marks()
        expect_equal([mark & 0xffff for _, mark in got], [1000] * 10 + [3000] * 10 + [4000] * 10 + [5000] * 10,
                     "values")
        expect_equal({mark >> 16 for _, mark in got[20:30]}, {0x7777}, "mark by a filter")
        dump = wire.dump()
        st = dump["10:"]
        expect_equal((st["filter_dropped"], st["drops"], st["packets"], st["qlen"], st["backlog"]), (10, 10, 40, 0, 0),
                     "filter_dropped, drops, packets, qlen, backlog")
        expect_equal((dump["1:"]["packets"], dump["1:"]["qlen"], dump["1:"]["backlog"]), (40, 0, 0), "of prio")


@test()
def class_list_shows_functions():
    with PpvWire() as wire:
        def shown():
            return sorted(c["handle"] for c in lib.class_dump(wire.netns, "w0") if c["handle"].startswith("10:"))

        expect_equal(shown(), [f"10:{n}" for n in range(1, 5)], "classes")
        wire.set({16: LINE, 9: LINE})
        expect_equal(shown(), sorted(["10:1", "10:2", "10:3", "10:4", "10:9", "10:10"]), "classes")
        for args in ("class add dev w0 parent 10: classid 10:7 ppv", "class del dev w0 classid 10:1",
                      "class change dev w0 classid 10:1 ppv"):
            expect(tc(args, wire.netns, check=False).returncode, f"{args} was accepted")
        expect_equal(len(shown()), 6, "classes afterwards")
        # There is one qdisc below, whatever class it was put into.
        for handle, parent in (("31:", "10:1"), ("32:", "10:9"), ("33:", "10:10")):
            wire.child("pfifo", handle, parent, struct.pack("I", 33))
            wire.send(wire.frame(1000))
            expect_equal(set(wire.dump()), {"10:", handle}, "qdiscs")
        expect_equal(wire.dump()["33:"]["packets"], 1, "packets of the last child")
        expect(lib_extra.request(wire.netns, "w0", "40:", "10:11", "pfifo", struct.pack("I", 3))[0], "class 17")


# Flows

@test()
def flows_more_than_the_table_has_are_counted_and_valued():
    with PpvWire({5: LINE}, default=5, window=1000000) as wire:
        for _ in range(2):
            for flow in range(5000):
                wire.send(wire.frame(340, flow=flow))
                # Of those that came at one time none is the oldest.
                if flow % 10 == 0:
                    time.sleep(0.0001)
        st = wire.stats()
        expect_equal((st["valued"], st["packets"]), (10000, 10000), "valued, packets")
        # 1024 sets of 4. Of flows in a set with more than 4, each is new each time it comes in turn: these are 72 % of
        # all if hashes are random, and 3615 places are taken.
        expect_between(st["flows_new"], 8200, 9000, "flows_new")
        expect_between(st["flows_new"] - st["flows_evicted"], 3450, 4096, "not in the place of an active one")
        expect(all(wire.values()), "values")
        time.sleep(2)
        before = wire.stats()
        for flow in range(10000, 11000):
            wire.send(wire.frame(340, flow=flow))
        st = wire.stats()
        # One may have the hash of another that was here.
        expect_between(st["flows_new"] - before["flows_new"], 997, 1000, "flows after two seconds")
        # Places of those long gone are free; a thousand have them nearly all to themselves.
        expect_between(st["flows_evicted"] - before["flows_evicted"], 0, 40, "evicted after two seconds")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("ppv", "csaqm"))
