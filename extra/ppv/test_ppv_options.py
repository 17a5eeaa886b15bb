#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_ppv_options.py - the qdisc ppv: options, functions as options, instances, the module.
"""

import errno
import json
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import ECNS, KNOBS, Wire, pack, tvf, tvfs

import hostile
import lib
from lib import Failure, each, expect, expect_equal, run, tc, test
from lib_ppv import MBIT, GOLD, LINE, PpvWire

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
        for value in BEYOND[name]:
            one = pack("ppv", **{name: value})
            for options in (one, tvf(8, LINE) + one, one + tvf(8, LINE)):
                expect_equal(wire.request(options), (errno.EINVAL, RANGE[name]), f"{name} {value}")
        for change in (wire.request, lambda options: wire.request(tvf(8, LINE) + options),
                       lambda options: wire.request(options + tvf(8, LINE))):
            lib_extra.refuses_malformed(change, "ppv", name, kind, good)
        lib_extra.refuses_unknown(wire.request, "ppv", tvf(8, LINE), (0, 5, 6, 100, 0x3fff))
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
                expect_equal(wire.request(wire.encoded(knobs, functions)), (errno.EINVAL, TOO_MANY), f"turn {turn}")
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
        for parent, args in (("10:1", "ppv"), ("10:2", "ppv default 2")):
            done = lib.tc(f"qdisc add dev w0 parent {parent} handle 30: {args}", wire.netns, check=False)
            expect(done.returncode, f"{args} at {parent} was accepted")
            expect("ppv: no ppv below ppv: packets have one value" in done.stderr, done.stderr)
        lib.tc("qdisc add dev w0 parent 10:1 handle 30: vdq_csaqm bandwidth 10mbit", wire.netns)
        shown = json.loads(lib.tc("-j qdisc show dev w0", wire.netns).stdout)
        expect_equal([qdisc["kind"] for qdisc in shown], ["ppv", "vdq_csaqm"], "qdiscs")


# Instances, modules, tc

@test()
def instances_do_not_know_each_other():
    lines = "qdisc add dev w0 root handle 1: prio bands 2 priomap 0 1" + 14 * " 0" + "\n"
    with PpvWire({5: [(1, 500)]}, lines=lines, parent="1:1", default=5) as wire:
        other = PpvWire.encoded({"default": 6}, {6: [(1, 600)]})
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
