#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_ppv.py - the qdisc ppv: values by throughput-value functions, classes, what carries a value, its options, its
accounts and those of what is above and below it.

Marks are read from the packets as they leave the device (lib_values.MarkTap), Identifications at the other end. The
function is worked out here in floating point, and distributions are compared by their greatest distance, with an
error of the first kind of 1e-9. This is not the place for the arithmetic of the meter and of functions
(selftests/unit).

DUALPI2_EXTRA is the directory with sch_ppv.ko and sch_csaqm.ko; TC_LIB_DIR has q_ppv.so.
"""
import errno
import functools
import json
import math
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import (ECNS, IPV4_ID, KNOBS, MARK, Wire, check_accounts, of, pack, total, tvf, tvfs)

import frames
import hostile
import lib
import packets
from gso import GSO, GsoRig
from lib import (CE, ECT0, ECT1, NOT_ECT, Failure, Net, Stream, each, expect, expect_between,
                 expect_equal, note, run, tc, test)
from trees import AGREEING, Account, Kind, Tree, spare_qfq

MBIT = 125000
# Figure 1 of the paper, in bytes per second and coded values: Gold is 10^8 / x for x Mbit/s; Silver half of its rate
# up to 10 Mbit/s, a quarter beyond; one decade of the value is 6553.5.
GOLD = [(1250, 65535), (125000000000, 13107)]
BUILT_IN = 4
LINE = [(1000, 60000), (1000000000, 1000)]


def coded(points, rate):
    """TVF(rate): straight in logarithms between two points, flat outside of them."""
    if rate <= points[0][0]:
        return points[0][1]
    for (low, high_value), (high, low_value) in zip(points, points[1:]):
        if rate < high:
            return high_value - (high_value - low_value) * math.log(rate / low) / math.log(high / low)
    return points[-1][1]


def expect_law(values, points, rate, what=""):
    """The values are TVF(x) of x that are uniform in [0, rate]."""
    n = len(values)
    values = sorted(values)
    worst = 0
    # For each value: of all packets so many are at or below it, for which TVF^-1 is at or beyond a rate.
    steps = 400
    for step in range(1, steps):
        x = rate * step / steps
        edge = coded(points, x)
        # Values are rounded down, and logarithms to 16 bits.
        low = sum(1 for value in values if value < edge - 2)
        high = sum(1 for value in values if value <= edge + 2)
        want = n * (1 - step / steps)
        worst = max(worst, (low - want) / n, (want - high) / n)
    bound = math.sqrt(math.log(2e9) / 2 / n)
    note(f"{what}: {n} values, {values[0]}..{values[-1]}, distance {worst:.4f} of {bound:.4f}")
    expect(worst < bound, f"{what}: the distance of the distributions is {worst:.4f}, at most {bound:.4f}")


class PpvWire(Wire):
    """A wire with ppv; functions are {number: points}."""

    def __init__(self, functions=None, lines="", parent=None, **knobs):
        self.functions = functions or {}
        super().__init__("ppv", lines=lines, parent=parent, options=self.words(knobs, self.functions))

    @staticmethod
    def words(knobs, functions):
        return pack("ppv", **knobs) + b"".join(tvf(number, points) for number, points in functions.items())

    def __enter__(self):
        super().__enter__()
        try:
            self.watch()
        except BaseException:
            self.closing.close()
            raise
        return self

    def set(self, functions=None, **knobs):
        expect_equal(self.request(self.words(knobs, functions or {})), (0, ""), f"change of {knobs}")

    def child(self, kind, handle="30:", parent="10:1", options=None, flags=lib.NLM_F_CREATE | lib.NLM_F_REPLACE):
        """Another one below ppv."""
        expect_equal(lib_extra.request(self.netns, "w0", handle, parent, kind, options, flags), (0, ""),
                     f"add of {kind}")

    def values(self):
        """The lower halves of the marks of all that left."""
        return [mark & 0xffff for _, mark in self.marks()]

    def stream(self, rate, count, size=1000, **more):
        """A constant rate in bytes per second."""
        begun = time.monotonic()
        for n in range(count):
            left = begun + n * size / rate - time.monotonic()
            if left > 0:
                time.sleep(left)
            self.send(self.frame(size), **more)


# Values

LAWS = {"gold": ({}, GOLD, 1), "line": ({5: LINE}, LINE, 5), "one_point": ({6: [(1, 777)]}, [(1, 777)], 6),
        "knee": ({7: [(1, 65535), (50000, 65000), (50001, 20000), (100000, 10000), (10**6, 1)]},
                 [(1, 65535), (50000, 65000), (50001, 20000), (100000, 10000), (10**6, 1)], 7),
        "32_points": ({8: (points := [(1000 * 2**n, 65535 - 2000 * n) for n in range(26)] +
                           [(1000 * 2**25 + n * 10**6, 15535 - n) for n in range(1, 7)])}, points, 8)}


def in_carry(case):
    return f"{case[0]}_in_{('mark', 'id')[case[1]]}"


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
            # Receivers get the outermost tag beside the frame.
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
        for words in ("class add dev w0 parent 10: classid 10:7 ppv", "class del dev w0 classid 10:1",
                      "class change dev w0 classid 10:1 ppv"):
            expect(tc(words, wire.netns, check=False).returncode, f"{words} was accepted")
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


# Options

DEFAULTS = {"default": 1, "window": 100000, "carry": 0}
BOUNDS = {"default": (1, 4), "window": (1000, 1000000), "carry": (0, 1)}
BEYOND = {"default": (0, 17, 2**32 - 1), "window": (0, 999, 1000001, 2**32 - 1), "carry": (2, 255)}
RANGE = {"default": "ppv: default must be 1 to 16", "window": "ppv: window must be 1000 us to 1000000 us",
         "carry": "ppv: carry must be 0 (mark) or 1 (ipv4_id)"}
RISE = "ppv: tvf: each rate must be beyond the one before by 1/50000"
FALL = "ppv: tvf must fall: each value must be below the one before"
RATES = "ppv: tvf: rates must be 8 bit/s to 1 Tbit/s"
VALUES = "ppv: tvf: coded values must be 1 to 65535"
SHAPE = "ppv: tvf wants a number of 4 bytes and an array of points"
TWICE = "ppv: tvf: number or points given twice"
NUMBER = "ppv: number of a tvf must be 1 to 16"
MANY = [(1000 + n, 65535 - n) for n in range(33)]


def raw_tvf(*inner):
    return lib.attr(4 | lib.NLA_F_NESTED, b"".join(inner))


def number_of(value, form="I"):
    return lib.attr(1, struct.pack(form, value))


def points_of(points, pad=0):
    return lib.attr(2, b"".join(struct.pack("QII", rate, value, pad) for rate, value in points))


# As many as there can be, in one function and in all together.
THIRTY_TWO = [(1000 * 2**min(n, 25) + 10**10 * max(0, n - 25), 65535 - n) for n in range(32)]
TOGETHER = 64
TOO_MANY = "ppv: all tvf together must have 64 points at most"

BAD = {
    "empty": (tvf(5, []), "ppv: tvf must have a point at least"),
    "of_33_points": (tvf(5, [(1000 * 2**(n % 20) + 10**9 * (n // 20), 65535 - n) for n in range(33)]),
                     "ppv: tvf must have 32 points at most"),
    "of_2000_points": (tvf(5, [(1, 1)] * 2000), "ppv: tvf must have 32 points at most"),
    "of_rate_0": (tvf(5, [(0, 5)]), RATES),
    "of_a_rate_beyond_1_tbit": (tvf(5, [(125000000001, 5)]), RATES),
    "of_the_greatest_rate": (tvf(5, [(1, 7), (2**64 - 1, 5)]), RATES),
    "with_equal_rates": (tvf(5, [(1000, 7), (1000, 5)]), RISE),
    "with_rates_that_fall": (tvf(5, [(1000, 7), (999, 5)]), RISE),
    "with_rates_too_near": (tvf(5, [(10**9, 7), (10**9 + 1, 5)]), RISE),
    "with_rates_that_fall_in_the_end": (tvf(5, [(1000 * 2**n, 65000 - n) for n in range(20)] + [(5, 2)]), RISE),
    "with_equal_values": (tvf(5, [(1000, 7), (2000, 7)]), FALL),
    "with_values_that_rise": (tvf(5, [(1000, 7), (2000, 8)]), FALL),
    "of_value_0": (tvf(5, [(1000, 7), (2000, 0)]), VALUES),
    "of_value_65536": (tvf(5, [(1000, 65536), (2000, 5)]), VALUES),
    "with_padding": (raw_tvf(number_of(5), points_of([(1000, 7)], 1)), "ppv: tvf: padding of a point must be 0"),
    "of_15_bytes": (raw_tvf(number_of(5), lib.attr(2, struct.pack("QII", 1000, 7, 0)[:15])), SHAPE),
    "of_17_bytes": (raw_tvf(number_of(5), lib.attr(2, struct.pack("QII", 1000, 7, 0) + b"\0")), SHAPE),
    "without_number": (raw_tvf(points_of([(1000, 7)])), SHAPE),
    "without_points": (raw_tvf(number_of(5)), SHAPE),
    "of_nothing": (raw_tvf(), SHAPE),
    "with_a_number_of_a_byte": (raw_tvf(number_of(5, "B"), points_of([(1000, 7)])), SHAPE),
    "with_a_number_of_8_bytes": (raw_tvf(number_of(5, "Q"), points_of([(1000, 7)])), SHAPE),
    "of_number_0": (tvf(0, LINE), NUMBER),
    "of_number_17": (tvf(17, LINE), NUMBER),
    "of_the_greatest_number": (tvf(2**32 - 1, LINE), NUMBER),
    "given_twice": (tvf(5, LINE) + tvf(6, LINE) + tvf(5, [(1, 1)]), "ppv: one tvf given twice"),
    "with_two_numbers": (raw_tvf(number_of(5), number_of(6), points_of(LINE)), TWICE),
    "with_points_twice": (raw_tvf(number_of(5), points_of(LINE), points_of(LINE)), TWICE),
    "with_an_unknown_attribute": (raw_tvf(number_of(5), points_of(LINE), lib.attr(3, b"")),
                                  "ppv: unknown attribute in tvf"),
    "with_attribute_0": (raw_tvf(lib.attr(0, b"1234"), number_of(5), points_of(LINE)), "ppv: unknown attribute in tvf"),
    "cut_short": (raw_tvf(number_of(5), points_of(LINE), b"\x02\0\0\0"), SHAPE),
    "longer_than_its_nest": (raw_tvf(number_of(5), struct.pack("HH", 200, 2) + bytes(32)), SHAPE),
}


@each(BAD)
def tvf_CASE_is_refused_and_nothing_is_applied(name):
    attribute, text = BAD[name]
    with PpvWire({9: LINE}) as wire:
        before = wire.stats()["raw"]
        for options in (attribute, pack("ppv", window=5000, default=2) + tvf(10, LINE) + attribute,
                        attribute + pack("ppv", carry=1) + tvf(1, LINE)):
            expect_equal(wire.request(options), (errno.EINVAL, text), name)
            expect(wire.stats()["raw"] == before, "options afterwards")
        lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
        wire.options = attribute
        expect_equal(wire.add(), (errno.EINVAL, text), f"new, {name}")
        wire.options = b""
        expect_equal(wire.add(), (0, ""), "new")


@test()
def tvf_at_its_bounds_is_taken():
    good = ([(1, 1)], [(125000000000, 65535)], [(1, 65535), (125000000000, 1)], [(10**9, 7), (10**9 + 20000, 6)],
            THIRTY_TWO)
    with PpvWire() as wire:
        for number in range(1, 17):
            for points in good:
                wire.set({number: points})
                expect_equal(tvfs(wire.stats()["raw"])[number], points, f"function {number}")
            wire.set({number: [(1, 1)]})


@each(BOUNDS)
def option_CASE_is_taken_at_its_bounds_and_refused_beyond(name):
    with PpvWire() as wire:
        state = dict(DEFAULTS)
        expect_equal(wire.stats()["knobs"], state, "defaults")
        for value in (*BOUNDS[name], state[name]):
            state[name] = value
            wire.set(**{name: value})
            expect_equal(wire.stats()["knobs"], state, f"after {name} {value}")
        before = wire.stats()["raw"]
        kind, form = KNOBS["ppv"][name]
        good = struct.pack(form, state[name])
        for bad, text in (*((struct.pack(form, value), RANGE[name]) for value in BEYOND[name]),
                          *((bytes(size), f"ppv: attribute of wrong length: {name}")
                            for size in {0, 1, 3, 4, 5, 8} - {len(good)})):
            one = lib.attr(kind, bad)
            for options in (one, tvf(8, LINE) + one, one + tvf(8, LINE)):
                expect_equal(wire.request(options), (errno.EINVAL, text), f"{name} {bad}")
        expect_equal(wire.request(lib.attr(kind, good) * 2),
                     (errno.EINVAL, f"ppv: attribute given twice: {name}"), "twice")
        for other in (0, 5, 6, 100, 0x3fff):
            expect_equal(wire.request(tvf(8, LINE) + lib.attr(other, bytes(4))),
                         (errno.EINVAL, "ppv: unknown attribute"), f"attribute {other}")
        expect_equal(wire.request(tvf(8, LINE) + b"\2\0\0\0"),
                     (errno.EINVAL, "ppv: bytes left over after the attributes"), "left over")
        expect(wire.stats()["raw"] == before, "options afterwards")


@test()
def option_default_without_its_function_is_refused():
    text = "ppv: default must be the number of a tvf that there is"
    with PpvWire() as wire:
        before = wire.stats()["raw"]
        for options in (pack("ppv", default=5), pack("ppv", default=16) + tvf(15, LINE)):
            expect_equal(wire.request(options), (errno.EINVAL, text), "default")
        expect(wire.stats()["raw"] == before, "options afterwards")
        expect_equal(wire.request(pack("ppv", default=16) + tvf(16, LINE)), (0, ""), "both at once, in any order")
        expect_equal(wire.request(tvf(15, LINE) + pack("ppv", default=15)), (0, ""), "both at once, in any order")


@test()
def options_shown_and_set_again_change_no_byte():
    rng = random.Random(19)
    with PpvWire() as wire:
        state = DEFAULTS, tvfs(wire.stats()["raw"])
        for turn in range(60):
            functions = {}
            for number in rng.sample(range(1, 17), rng.randint(0, 3)):
                count = rng.choice((1, 2, 3, 5, 32 if number < 3 else 7))
                rates = sorted(rng.sample([2**n for n in range(1, 36)] + [3 * 2**n for n in range(34)], count))
                values = sorted(rng.sample(range(1, 65536), count), reverse=True)
                functions[number] = list(zip(rates, values))
            knobs = {"window": rng.randrange(1000, 1000001), "carry": rng.randrange(2), "default": rng.randrange(1, 5)}
            knobs = {name: knobs[name] for name in rng.sample(list(knobs), rng.randint(0, 3))}
            before = state
            state = state[0] | knobs, state[1] | functions
            if sum(map(len, state[1].values())) > TOGETHER:
                state = before
                expect_equal(wire.request(wire.words(knobs, functions)), (errno.EINVAL, TOO_MANY), f"turn {turn}")
                continue
            wire.set(functions, **knobs)
            st = wire.stats()
            expect_equal((st["knobs"], tvfs(st["raw"])), state, f"turn {turn}")
            expect_equal(wire.request(st["raw"]), (0, ""), "what was shown, set again")
            expect(wire.stats()["raw"] == st["raw"], "what is shown then")
            if turn % 10 == 9:
                lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
                wire.options = st["raw"]
                expect_equal(wire.add(), (0, ""), "what was shown, for a new one")
                expect(wire.stats()["raw"] == st["raw"], "what a new one shows")
        expect(len(tvfs(wire.stats()["raw"])) > 10, "functions in the end")


@each((4, 16), name=lambda count: f"{count}_functions")
def options_of_CASE_with_all_points_are_shown(count):
    """All that can be set can be seen: in a dump that begins with it, by tc, and listeners hear of it."""
    functions = {n: [(rate + n, value) for rate, value in THIRTY_TWO[:TOGETHER // count]] for n in range(1, count + 1)}
    with PpvWire(functions) as wire:
        expect_equal(wire.request(tvf(16, THIRTY_TWO[:TOGETHER // count + 1 if count == 16 else 1])),
                     (errno.EINVAL, TOO_MANY), "one more")
        found = [qdisc for qdisc in lib.qdisc_dump(wire.netns, "w0") if qdisc["handle"] == "10:"]
        expect_equal(len(found), 1, "qdiscs 10: in a dump")
        expect(tvfs(found[0]["options"]) == functions, "functions of the dump")
        shown = json.loads(tc("-j qdisc show dev w0", wire.netns).stdout)
        expect([qdisc for qdisc in shown if qdisc.get("handle") == "10:"], f"tc shows {shown}")
        with lib.in_netns(wire.netns):
            listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        with listener:
            listener.bind((0, 1 << 3))      # RTNLGRP_TC
            listener.settimeout(1)
            for what, handle, flags in (("a change", "10:", 0),
                                        ("a replacement", "11:", lib.NLM_F_CREATE | lib.NLM_F_REPLACE)):
                options = found[0]["options"]
                expect_equal(lib_extra.request(wire.netns, "w0", handle, "root", "ppv", options, flags), (0, ""), what)
                try:
                    data = listener.recv(1 << 18)
                except TimeoutError:
                    raise Failure(f"{what} is not told to listeners") from None
                expect(b"ppv" in data, "another message")


@test()
def ppv_below_ppv_is_refused():
    """A packet has one value; and a chain of them, each of whose classes has the child, would be searched for ever."""
    with Wire("ppv") as wire:
        for parent, words in (("10:1", "ppv"), ("10:2", "ppv default 2")):
            done = lib.tc(f"qdisc add dev w0 parent {parent} handle 30: {words}", wire.netns, check=False)
            expect(done.returncode, f"{words} at {parent} was accepted")
            expect("ppv: no ppv below ppv: packets have one value" in done.stderr, done.stderr)
        lib.tc("qdisc add dev w0 parent 10:1 handle 30: vdq_csaqm bandwidth 10mbit", wire.netns)
        shown = json.loads(lib.tc("-j qdisc show dev w0", wire.netns).stdout)
        expect_equal([qdisc["kind"] for qdisc in shown], ["ppv", "vdq_csaqm"], "qdiscs")


# Accounts

PPV = Kind("ppv", functools.partial(pack, "ppv"), of, lambda st: None,
           lambda st: Account([st["valued"] + st["not_valued"]], st["packets"], st["drops"]))


class PpvTree(Tree):
    """A tree with ppv at its leaves and a pfifo below each."""

    def __init__(self, name, rate="1mbit", options=None, **more):
        self.child_options = options or struct.pack("I", 1000)
        super().__init__(name, rate, kind=PPV, **more)

    def add(self, handle, parent, flags=lib_extra.ADD):
        super().add(handle, parent, flags)
        self.put(handle)

    def below(self, handle):
        return f"5{handle}"

    def put(self, handle, child=None, options=None):
        below = self.below(handle) if child is None else "77:"
        expect_equal(lib_extra.request(self.netns, "d0", below, handle + "1", child or "pfifo",
                                       options or self.child_options, lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""),
                     "add of the child")

    def above(self, dump):
        return [st for st in super().above(dump) if not st["parent"].startswith(tuple(self.leaves))]

    def check_dump(self, dump, text):
        """What one segment is shorter than its GSO packet, of which the others were not taken, parents count until it
        leaves, and ppv does, too.
        """
        for handle in self.leaves:
            st, child = dump[handle], dump[self.below(handle)]
            expect_equal(st["qlen"], child["qlen"], f"{text}: qlen of ppv, of its child")
            more = st["backlog"] - child["backlog"]
            expect(more == 0 or st["qlen"] and 0 < more < 65536, f"{text}: {more} bytes more than the child")
        self.check_sums({h: st for h, st in dump.items() if not st["parent"].startswith(tuple(self.leaves))}, text)


@each(AGREEING)
def parent_CASE_agrees_with_ppv_and_its_child(name):
    """Packets and GSO packets into a child that has room for a few."""
    with hostile.no_splat(), PpvTree(name, options=struct.pack("I", 7)) as tree:
        for turn in range(10):
            for ecn in ECNS:
                tree.mix.send(ecn, 300 + 100 * turn)
                tree.check_now("a packet")
                tree.mix.gso(ecn, 9 + turn, 700, 100 + turn, v6=bool(turn & 1))
                tree.check_now("a GSO packet")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
        leaves = tree.check_all(exact_drops=False)
        if name not in ("root", "qfq_alone"):
            expect(sum(st["child_dropped"] for st in leaves) > 50, "packets were dropped")
        for st in leaves:
            expect_equal(st["child_dropped"], st["drops"], "child_dropped, drops")
        for _ in range(5):
            tree.mix.send(ECT1)
        tree.check_all(exact_drops=False)


@each(("htb", "htb_drr", "htb_ets", "htb_prio", "hfsc", "tbf", "prio"))
def child_of_one_packet_below_CASE_leaves_right_sums(name):
    """One segment of a GSO packet is taken, the others are not."""
    with hostile.no_splat(), PpvTree(name, "100kbit", options=struct.pack("I", 1)) as tree:
        for _ in range(4):
            tree.mix.send(NOT_ECT, 1000)
            tree.drain()
        for segments in (2, 5, 10, 3):
            tree.mix.gso(ECT0, segments, 1000, 300)
            tree.check_now(f"one of {segments}")
            tree.mix.send(ECT0, 500)
            tree.check_now("and one that has no room")
            tree.drain()
            dump = tree.check_now("and it left")
            for st in dump.values():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"left in {st['kind']}")
        tree.check_all(exact_drops=False)


@each(("root", *(name for name in lib_extra.ONE_PARENTS if name != "tbf")))
def child_that_drops_its_one_segment_below_CASE_leaves_nothing_in_parents(name):
    """csaqm takes one segment of a GSO packet, and its work drops it, while nobody dequeues."""
    spare_qfq(name)
    longest = 4294967
    with hostile.no_splat(), PpvTree(name, "100mbit", mtu=9000, carry=IPV4_ID) as tree:
        # Two packets of 8000 bytes have no room. Values are those of the sockets.
        tree.put("10:", "csaqm", pack("csaqm", bandwidth=MBIT, target=1, buffer=1))
        for ecn, value in ((ECT0, 40000), (NOT_ECT, 7)):
            tree.mix.socket(ecn, False).setsockopt(socket.SOL_SOCKET, socket.SO_MARK, value)
        for _ in range(20):
            tree.mix.send(ECT0, 1000)
        expect_equal(lib_extra.request(tree.netns, "d0", "77:", "10:1", "csaqm", pack("csaqm", tupdate=longest), 0),
                     (0, ""), "change of csaqm")
        expect_equal(of(lib_extra.found(tree.netns, "d0", "77:"))["c"]["threshold"], 40001, "threshold")
        tree.drain()
        # The virtual queue is empty then.
        time.sleep(1)
        for segments in (2, 3):
            before = total(of(lib_extra.found(tree.netns, "d0", "77:")), "dropped_value")
            tree.mix.gso(NOT_ECT, segments, 8000, 7000)
            time.sleep(0.1)
            lib_extra.check_zero(tree, "after the work")
            after = total(of(lib_extra.found(tree.netns, "d0", "77:")), "dropped_value")
            expect_equal(after - before, 1, "dropped_value")
            tree.mix.send(ECT0, 500)
            tree.drain()


@each([(parent, what) for parent in ("htb", "htb_prio", "htb_drr", "hfsc") for what in ("replace", "delete", "reset")
       # hfsc takes a class that was active at its reset for active ever after, whatever its child is.
       if (parent, what) != ("hfsc", "reset")],
      name=lambda case: f"{case[0]}_with_{case[1]}")
def child_that_goes_below_CASE_leaves_nothing_in_parents(case):
    """One segment of a GSO packet waits, and leaves by no dequeue: nobody counts its bytes, or those of the others."""
    name, what = case
    with hostile.no_splat(), PpvTree(name, "20kbit", options=struct.pack("I", 1)) as tree:
        for segments in (5, 3, 2):
            # The shaper's bucket is empty then.
            for _ in range(4):
                tree.mix.send(NOT_ECT, 1000)
                tree.drain()
            for _ in range(3):
                tree.mix.gso(ECT0, segments, 1000, 300)
                if tree.dump()["10:"]["qlen"]:
                    break
            expect_equal(tree.dump()["10:"]["qlen"], 1, "packets that wait")
            if what == "replace":
                tree.put("10:", "bfifo", struct.pack("I", 100000))
                tree.put("10:")
            elif what == "delete":
                expect_equal(lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", tree.below("10:"), "10:1"), (0, ""),
                             "deletion of the child")
            else:
                run("ip link set dev d0 down", tree.netns)
            for handle, st in tree.dump().items():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"left in {st['kind']} {handle}")
            if what == "delete":
                tree.put("10:")
            elif what == "reset":
                run("ip link set dev d0 up", tree.netns)
        tree.mix.send(NOT_ECT, 1000)
        for handle, st in tree.drain().items():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"left in {st['kind']} {handle} in the end")


@test()
def child_may_be_replaced_and_deleted_under_traffic():
    with hostile.no_splat(), Net() as net:
        rng = random.Random(3)
        try:
            run(["tc", "-batch", "-"], net.rtr, stdin="""\
qdisc add dev down root handle 1: htb default 10
class add dev down parent 1: classid 1:10 htb rate 4mbit ceil 4mbit burst 1514 cburst 1514 quantum 1514
""")
            expect_equal(lib_extra.request(net.rtr, "down", "10:", "1:10", "ppv", None), (0, ""), "add of ppv")
            load = net.start(6, *(Stream(str(ecn), ecn=ecn, bps=1.5e6, burst=4) for ecn in ECNS))
            children = {"pfifo": struct.pack("I", 20), "bfifo": struct.pack("I", 20000),
                        "csaqm": pack("csaqm", bandwidth=3 * MBIT), "vdq_csaqm": pack("vdq_csaqm", bandwidth=3 * MBIT),
                        "fq_codel": None}
            kinds = set()
            for turn in range(60):
                kind = rng.choice(list(children))
                error, text = lib_extra.request(net.rtr, "down", f"{0x30 + turn:x}:", f"10:{rng.randrange(1, 5)}", kind,
                                                children[kind], lib.NLM_F_CREATE | lib.NLM_F_REPLACE)
                expect_equal((error, text), (0, ""), f"{kind} below ppv")
                kinds.add(kind)
                time.sleep(0.05)
                if turn % 10 == 5:
                    expect_equal(lib.tc_request(net.rtr, lib.RTM_DELQDISC, 0, "down", f"{0x30 + turn:x}:", "10:1"),
                                 (0, ""), "deletion")
                    time.sleep(0.02)
                if turn % 20 == 7:
                    options = pack("ppv", window=1000 + turn)
                    expect_equal(lib_extra.request(net.rtr, "down", "10:", "1:10", "ppv", options,
                                                   lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "replace by itself")
            expect_equal(lib_extra.request(net.rtr, "down", "99:", "10:1", "pfifo", struct.pack("I", 50),
                                           lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "pfifo in the end")
            result = load.wait()
            for _ in range(100):
                dump = {qdisc["handle"]: of(qdisc) for qdisc in lib.qdisc_dump(net.rtr, "down")}
                if not any(st["qlen"] for st in dump.values()):
                    break
                time.sleep(0.05)
            for st in dump.values():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"left in {st['kind']}")
            st = dump["10:"]
            sent, received = (sum(getattr(r, key) for r in result.values()) for key in ("sent_ever", "received"))
            expect_equal(st["valued"] + st["not_valued"], sent, "valued and not, sent")
            expect_equal(st["packets"], received, "packets, received")
            expect_equal(sent, received + st["drops"], "sent, received + dropped")
            expect(len(kinds) == len(children), f"children: {kinds}")
        finally:
            net._kill_traffic()
            tc("qdisc del dev down root", net.rtr, check=False)


@test()
def reset_forgets_flows_and_counters_go_on():
    with PpvWire({5: [(10000, 60000), (10010, 1)]}, default=5) as wire:
        wire.child("pfifo", options=struct.pack("I", 100))
        wire.stream(100 * MBIT, 500)
        expect_equal(min(wire.values()), 1, "values")
        run("ip link set dev w0 down", wire.netns)
        run("ip link set dev w0 up", wire.netns)
        wire.marks()
        wire.send(wire.frame(1000))
        expect_equal(wire.values(), [60000], "value of the first packet")
        st = wire.stats()
        expect_equal((st["flows_new"], st["valued"]), (2, 501), "flows, valued")


# GSO, packets

@each((MARK, IPV4_ID), name=lambda carry: ("mark", "id")[carry])
def gso_segments_have_values_of_their_own(carry):
    """Of 20 segments each 80 ms and a window of 100 ms: 5000 bytes are left of what came before, the k-th segment sees
    k kB more, ten times as much a second.
    """
    with PpvWire({5: LINE}, default=5, carry=carry) as wire:
        begun = time.monotonic()
        for n in range(130):
            if n == 10:
                wire.arrivals()
                wire.marks()
            left = begun + n * 0.08 - time.monotonic()
            if left > 0:
                time.sleep(left)
            wire.gso(946 * 20, 946, ident=7)
        got = wire.arrivals()
        values = wire.values() if carry == MARK else [struct.unpack_from("!H", frame, 18)[0] for _, _, frame in got]
        expect_equal(len(values), 2400, "segments")
        for _, _, frame in got:
            expect_equal(frames.checksum(frame[14:34]), 0, "checksum of the header")
        st = wire.stats()
        expect_equal((st["valued"], st["gso_failed"], st["flows_new"]), (2600, 0, 1), "valued, not split, flows")
        # The x of TVF(x), in parts of the segment's rate.
        parts = sorted(rate_of(LINE, value) / (60000 + 10000 * (n % 20)) for n, value in enumerate(values))
        worst = max(abs(part - n / 2400) for n, part in enumerate(parts))
        note(f"distance {worst:.4f}")
        expect(worst < math.sqrt(math.log(2e9) / 2 / 2400) + 0.02, f"x is not uniform: {worst:.3f} off")


def rate_of(points, value):
    """TVF^-1 of a function of two points; what is flat is the first rate."""
    (low, high_value), (high, low_value) = points
    return low * (high / low) ** ((high_value - value) / (high_value - low_value))


class PpvRig(packets.Rig):
    """TAP devices, and ppv with a csaqm below it on one of them."""

    def __init__(self, rate, bridge=False, **knobs):
        super().__init__(rate, bridge)
        self.ppv = knobs

    def add(self):
        expect_equal(lib_extra.request(self.netns, "out", "10:", "1:10", "ppv", pack("ppv", **self.ppv)), (0, ""),
                     "add of ppv")
        expect_equal(lib_extra.request(self.netns, "out", "20:", "10:1", "csaqm", pack(
            "csaqm", bandwidth=1000 * MBIT, limit=100000, buffer=4000000, target=4000000,
            carry=self.ppv.get("carry", 0))), (0, ""), "csaqm")

    def stats(self):
        return of(lib_extra.found(self.netns, "out"))

    def csaqm(self):
        return of(lib_extra.found(self.netns, "out", "20:"))

    def check(self):
        st, below = self.stats(), self.csaqm()
        check_accounts(below)
        for one in (st, below, self.parent()):
            expect_equal((one["qlen"], one["backlog"]), (0, 0), "left")
        expect_equal(below["packets"], st["packets"], "packets of csaqm, of ppv")
        return st, below


class PpvGsoRig(GsoRig, PpvRig):
    """The same with virtio headers."""

    def __init__(self, rate, **knobs):
        PpvRig.__init__(self, rate, **knobs)


@each([(how, carry) for how in ("socket", "ring", "bridge") for carry in (MARK, IPV4_ID)],
      name=in_carry)
def frames_of_every_kind_by_CASE_have_a_value_or_are_left_alone(case):
    """With the mark every frame has one and not a bit changes; with the Identification those of atomic IPv4."""
    injector, carry = case
    with PpvRig("20mbit", bridge=injector == "bridge", carry=carry) as rig:
        kinds = list(packets.kinds_for(injector))
        if injector == "ring":
            kinds = kinds[:frames.RingSender.SLOTS // 4 - 1]
        load = packets.Load(rig.injector(injector))
        atomic = 0
        for name, build, ip in kinds:
            for ecn in ECNS:
                before = len(load.sent)
                load.send(name, build, ip, ecn)
                if len(load.sent) > before and ip is not None:
                    frame = load.sent[len(load.sent)][1]
                    atomic += frame[ip] >> 4 == 4 and frame[ip + 6:ip + 8] == b"\x40\0"
        # None of these has DF, so some do.
        special = {}
        for number in range(5000, 5020 if injector != "ring" else 5003):
            frame = frames.ether(number, frames.ETH_P_IP, frames.ipv4(frames.udp(bytes(300)), frag=0x4000, ident=1),
                                 packets.ELSEWHERE)
            special[number] = frame
            load.injector.send(frame)
        got = rig.out.drain(4)
        for number, frame in special.items():
            now = got.pop(number)[0]
            expect_equal(now == frame, carry == MARK, "an atomic packet as it was")
            expect(now[:18] + now[20:24] + now[26:] == frame[:18] + frame[20:24] + frame[26:], "the rest of it")
            expect_equal(frames.checksum(now[14:34]), 0, "its checksum")
        if carry == MARK or not atomic:
            expect_equal({verdict for *_, verdict in load.verdicts(got)}, {"same"}, "what became of them")
        st, below = rig.check()
        count = len(load.sent) + len(special)
        expect_equal((st["valued"], st["not_valued"]), (count, 0) if carry == MARK else
                     (atomic + len(special), count - atomic - len(special)), "valued, not valued")
        expect_equal(total(below, "arrived"), count, "arrived at csaqm")
        expect_equal(total(below, "no_value"), 0 if carry == MARK else count - atomic - len(special),
                     "without a value at csaqm")


@test()
def gso_of_every_kind_is_accounted_for():
    """Headers that lie, too: what cannot be split is dropped and counted."""
    with hostile.no_splat(), PpvGsoRig("50mbit") as rig:
        send, reference = rig.both_ways()
        taken = 0
        for number, k in enumerate(GSO, 1):
            for version in k.versions:
                head, frame = k.build(number, ECT0, version)
                taken += bool(send(head, frame))
        came = sum(len(copies) for copies in rig.out.drain(4).values())
        reference()
        st, below = rig.check()
        expect_equal(came, st["packets"], "packets at the device, of ppv")
        expect_equal(st["drops"], st["gso_failed"], "drops, not split")
        expect_equal((total(below, "no_value"), total(below, "arrived")), (0, st["valued"]), "at csaqm")
        expect(taken > 40 and st["valued"] > 400, f"{taken} taken, {st['valued']} valued")
        note(f"{taken} taken, {st['valued']} valued, {st['gso_failed']} not split")


# Instances, modules, tc

@test()
def instances_do_not_know_each_other():
    lines = "qdisc add dev w0 root handle 1: prio bands 2 priomap 0 1" + 14 * " 0" + "\n"
    with PpvWire({5: [(1, 500)]}, lines=lines, parent="1:1", default=5) as wire:
        other = PpvWire.words({"default": 6}, {6: [(1, 600)]})
        expect_equal(lib_extra.request(wire.netns, "w0", "20:", "1:2", "ppv", other), (0, ""), "add of another one")
        for priority in (0, 1, 0, 1, 1):
            wire.send(wire.frame(1000), priority=priority)
        expect_equal(wire.values(), [500, 600, 500, 600, 600], "values")
        dump = wire.dump()
        expect_equal((dump["10:"]["valued"], dump["20:"]["valued"]), (2, 3), "valued")
        expect_equal((set(tvfs(dump["10:"]["raw"])), set(tvfs(dump["20:"]["raw"]))), ({1, 2, 3, 4, 5}, {1, 2, 3, 4, 6}),
                     "functions")


@test()
def module_with_instances_stays_and_goes_without():
    with PpvWire() as wire:
        tc("filter add dev w0 parent 10: protocol ip prio 1 u32 match u32 0 0 classid 10:2", wire.netns)
        wire.stream(MBIT, 20)
        expect(run("rmmod sch_ppv", check=False).returncode, "the module went with an instance")
        tc("qdisc del dev w0 root", wire.netns)
        lib_extra.goes("ppv")
        expect_equal(wire.add(), (0, ""), "add again")


@test()
def storm_of_changes_leaves_nothing():
    rng = random.Random(23)
    with hostile.no_splat(), PpvWire() as wire:
        for _ in range(200):
            for _ in range(rng.randrange(8)):
                wire.send(wire.frame(rng.choice((342, 1514)), rng.choice(ECNS), flow=rng.randrange(50)),
                          priority=0x100000 | rng.randrange(20), may_drop=True)
            if rng.randrange(3) == 0:
                wire.gso(5000, 500)
            action = rng.randrange(7)
            if action == 0:
                wire.set({rng.randrange(1, 17): LINE}, window=rng.randrange(1000, 100000))
            elif action == 1:
                wire.set({rng.randrange(1, 17): GOLD}, carry=rng.randrange(2))
            elif action == 2:
                expect_equal(wire.add(lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "replace by itself")
            elif action == 3:
                lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
                expect_equal(wire.add(), (0, ""), "add")
            elif action == 4:
                kind = rng.choice(("csaqm", "vdq_csaqm"))
                wire.child(kind, {"csaqm": "30:", "vdq_csaqm": "31:"}[kind], "10:2",
                           pack(kind, bandwidth=rng.choice((1000, MBIT)), target=1))
            elif action == 5:
                run("ip link set dev w0 down", wire.netns)
                run("ip link set dev w0 up", wire.netns)
            else:
                tc("filter replace dev w0 parent 10: protocol ip prio 3 handle 1 basic "
                   f"classid 10:{rng.randrange(1, 9)}", wire.netns)
            time.sleep(rng.choice((0, 0, 0.001, 0.02)))
        lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
        expect_equal(wire.add(), (0, ""), "add in the end")
        wire.arrivals()
        wire.send(wire.frame())
        expect_equal(len(wire.arrivals()), 1, "a packet through in the end")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("ppv", "csaqm"))
