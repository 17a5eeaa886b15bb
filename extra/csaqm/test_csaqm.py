#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_csaqm.py - the qdiscs csaqm and vdq_csaqm: their options, the shaper, virtual queues, thresholds, signals,
accounts, and what parents make of them.

What is expected is worked out by lib_values.Model, which knows each record of a virtual queue and sorts them. Most of
it is counted with a gate in front, behind which nothing moves: there is no time in it. Where time is part of the
question, kernels of scripts/debug-kernel.sh, on which computing takes none, agree to the last packet.

Packets have their values from the mark of a packet socket. This is not the place for the arithmetic of one virtual
queue (selftests/unit), nor for what values are good for (selftests/lab).

DUALPI2_EXTRA is the directory with sch_csaqm.ko and sch_ppv.ko.
"""
import contextlib
import errno
import functools
import itertools
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_extra import check_zero
from lib_values import (DEFAULTS, DROPS, ECNS, EXACT, IPV4_ID, KINDS, KNOBS, LONGEST_US, SEC, VALUE_MAX, Model,
                        ValueTree, Wire, check_accounts, ecn_of, of, pack, primed, state_of, total, tvf)

import frames
import hostile
import lib
import packets
from gso import GSO, GsoRig
from lib import (CE, ECT0, ECT1, NOT_ECT, Failure, Net, Stream, each, expect, expect_between,
                 expect_equal, note, run, tc, test)
from trees import AGREEING, ONE_LEAF, spare_qfq

MBIT = 125000
# Nothing gets a signal, nothing is dropped by the buffers.
CALM = {kind: {name: LONGEST_US for name in KNOBS[kind] if name.startswith(("target", "buffer"))} for kind in KINDS}
# A threshold that was computed stays for as long as a test takes.
SLOW = {"tupdate": LONGEST_US}
ROOMY = {kind: {name: LONGEST_US for name in KNOBS[kind] if name.startswith("buffer")} | {"limit": 100000}
         for kind in KINDS}


def refresh(wire):
    """Have the thresholds computed now; the statistics with them."""
    wire.set(bandwidth=wire.knobs["bandwidth"])
    return wire.stats()


# Options

BOUNDS = {"bandwidth": (1000, 125000000000), "limit": (1, 1048576), "tupdate": (100, LONGEST_US),
          "target": (1, LONGEST_US), "buffer": (1, LONGEST_US), "carry": (0, 1), "ecn": (0, 1),
          "target_l": (1, LONGEST_US), "buffer_l": (1, LONGEST_US), "vrate": (900, 1000), "vrate_l": (1, 984)}
BEYOND = {"bandwidth": (1, 999, 125000000001, 2**63, 2**64 - 1), "limit": (0, 1048577, 2**32 - 1),
          "tupdate": (0, 99, LONGEST_US + 1), "target": (0, LONGEST_US + 1), "buffer": (0, LONGEST_US + 1),
          "carry": (2, 255), "ecn": (2, 255), "target_l": (0, LONGEST_US + 1), "buffer_l": (0, LONGEST_US + 1),
          "vrate": (0, 1001, 2**32 - 1), "vrate_l": (0, 1001, 2**32 - 1)}
TIME = "must be 1 us to 4294967 us"
RANGE = {"bandwidth": "must be 8 kbit/s to 1 Tbit/s", "limit": "must be 1 to 1048576 packets",
         "tupdate": "must be 100 us to 4294967 us", "target": TIME, "buffer": TIME, "carry": "must be 0 (mark) or 1 "
         "(ipv4_id)", "ecn": "must be 0 or 1", "target_l": TIME, "buffer_l": TIME, "vrate": "must be 0.001 to 1",
         "vrate_l": "must be 0.001 to 1"}
# Least, greatest and default limit follow from the bandwidth.
SOME = {"bandwidth": 1000 * MBIT, "limit": 7777}
OPTIONS = [(kind, name) for kind in KINDS for name in KNOBS[kind]]


def text_of(case):
    return "_".join(case)


@each(KINDS)
def option_bandwidth_of_CASE_has_to_be_given(kind):
    text = f"{kind}: bandwidth has to be given"
    with Wire() as wire:
        for options in (None, b"", pack(kind, limit=5, target=5)):
            expect_equal(lib_extra.request(wire.netns, "w0", "10:", "root", kind, options), (errno.EINVAL, text),
                         f"{kind} with {options}")
        wire.kind = kind
        expect_equal(wire.add(bandwidth=1000), (0, ""), "add")
        # It is there already.
        wire.set(limit=5)
        expect_equal(wire.stats()["knobs"], DEFAULTS[kind] | {"bandwidth": 1000, "limit": 5}, "options")


@each(KINDS)
def options_of_CASE_not_given_have_their_defaults(kind):
    with Wire(kind, bandwidth=100 * MBIT) as wire:
        # A packet for each 256 bytes of the (Classic) virtual queue.
        limit = 100 * MBIT // 2 // 256 if kind == "csaqm" else 100 * MBIT // 4 // 256
        expect_equal(wire.stats()["knobs"], DEFAULTS[kind] | {"bandwidth": 100 * MBIT, "limit": limit}, "defaults")
        wire.set(bandwidth=1000)
        expect_equal(wire.stats()["knobs"]["limit"], 1000, "limit of 8 kbit/s")
        wire.set(bandwidth=125000000000)
        expect_equal(wire.stats()["knobs"]["limit"], 1 << 20, "limit of 1 Tbit/s")
        wire.set(limit=33)
        wire.set(bandwidth=100 * MBIT)
        expect_equal(wire.stats()["knobs"]["limit"], 33, "limit that was set")


@each(OPTIONS, name=text_of)
def option_CASE_is_taken_at_its_bounds_and_refused_beyond(case):
    kind, name = case
    with Wire(kind, **SOME) as wire:
        state = DEFAULTS[kind] | SOME
        for value in BOUNDS[name] + ((state[name],) if name != "limit" else ()):
            state[name] = value
            wire.set(**{name: value})
            expect_equal(wire.stats()["knobs"], state, f"after {name} {value}")
        other = pack(kind, **({"target": 5} if name != "target" else {"limit": 5}))
        before = wire.stats()["raw"]
        for value in BEYOND[name]:
            bad = pack(kind, **{name: value})
            for options in (bad, other + bad, bad + other):
                expect_equal(wire.request(options), (errno.EINVAL, f"{kind}: {name} {RANGE[name]}"), f"{name} {value}")
                expect_equal(wire.stats()["raw"], before, f"options after {name} {value}")
        tc("qdisc del dev w0 root", wire.netns)
        for value in BEYOND[name]:
            expect_equal(wire.add(**{name: value}), (errno.EINVAL, f"{kind}: {name} {RANGE[name]}"),
                         f"new with {name} {value}")
        expect_equal(wire.add(**{name: BOUNDS[name][0]}), (0, ""), "new at the bound")


@each(OPTIONS, name=text_of)
def option_CASE_of_wrong_length_or_twice_is_refused(case):
    kind, name = case
    with Wire(kind, **SOME) as wire:
        before = wire.stats()["raw"]
        number, form = KNOBS[kind][name]
        good = struct.pack(form, BOUNDS[name][1])
        for size in {0, 1, 3, 4, 5, 8, 9, 12} - {len(good)}:
            expect_equal(wire.request(lib.attr(number, bytes(size))),
                         (errno.EINVAL, f"{kind}: attribute of wrong length: {name}"), f"{name} of {size} bytes")
        expect_equal(wire.request(lib.attr(number, good) * 2),
                     (errno.EINVAL, f"{kind}: attribute given twice: {name}"), "twice")
        expect_equal(wire.stats()["raw"], before, "options afterwards")


@each(KINDS)
def option_of_CASE_that_is_unknown_is_refused(kind):
    """Those of vdq_csaqm are unknown to csaqm."""
    with Wire(kind, **SOME) as wire:
        before = wire.stats()["raw"]
        for number in (0, 1, 13, 14, 100, 0x3fff, *((9, 10, 11, 12) if kind == "csaqm" else ())):
            expect_equal(wire.request(pack(kind, limit=5) + lib.attr(number, struct.pack("I", 1))),
                         (errno.EINVAL, f"{kind}: unknown attribute"), f"attribute {number}")
        expect_equal(wire.request(pack(kind, limit=5) + b"\2\0\0\0"),
                     (errno.EINVAL, f"{kind}: bytes left over after the attributes"), "left over")
        expect_equal(wire.stats()["raw"], before, "options afterwards")


@test()
def option_vrate_l_beyond_vrate_is_refused():
    text = "vdq_csaqm: vrate_l must not be beyond vrate"
    with Wire("vdq_csaqm", **SOME) as wire:
        before = wire.stats()["raw"]
        for values in ({"vrate_l": 985}, {"vrate": 899}, {"vrate": 500, "vrate_l": 501}, {"limit": 1, "vrate_l": 1000}):
            expect_equal(wire.request(pack("vdq_csaqm", **values)), (errno.EINVAL, text), str(values))
        expect_equal(wire.stats()["raw"], before, "options afterwards")
        # In one request either may come first; the same is not beyond.
        for values in ({"vrate_l": 1000, "vrate": 1000}, {"vrate": 1, "vrate_l": 1}, {"vrate_l": 7, "vrate": 7}):
            wire.set(**values)
            now = wire.stats()["knobs"]
            expect_equal({key: now[key] for key in values}, values, "shares")


@each(KINDS)
def options_of_CASE_shown_and_set_again_change_no_byte(kind):
    rng = random.Random(11)
    with Wire(kind, bandwidth=MBIT, limit=1000) as wire:
        for turn in range(60):
            values = {"bandwidth": rng.choice((1000, 125000000000, rng.randrange(1000, 10**9))),
                      "limit": rng.choice((1, 2, 1000, rng.randrange(1, 20000))), "carry": rng.randrange(2),
                      "ecn": rng.randrange(2), "tupdate": rng.randrange(100, LONGEST_US),
                      "vrate": rng.randrange(900, 1001), "vrate_l": rng.randrange(1, 901)}
            values |= {name: rng.choice((1, LONGEST_US, rng.randrange(1, LONGEST_US)))
                       for name in ("target", "buffer", "target_l", "buffer_l")}
            values = {name: values[name] for name in rng.sample(list(KNOBS[kind]), rng.randint(1, len(KNOBS[kind])))}
            want = wire.stats()["knobs"] | values
            wire.set(**values)
            st = wire.stats()
            expect_equal(st["knobs"], want, f"after {values}")
            expect_equal(wire.request(st["raw"]), (0, ""), "what was shown, set again")
            expect_equal(wire.stats()["raw"], st["raw"], "what is shown then")
            if turn % 10 == 9:
                tc("qdisc del dev w0 root", wire.netns)
                wire.options = st["raw"]
                expect_equal(wire.add(), (0, ""), "what was shown, for a new one")
                expect_equal(wire.stats()["raw"], st["raw"], "what a new one shows")


# The shaper

@each([(kind, rate) for kind in KINDS for rate in (100e3, 1e6, 10e6, *((200e6, 1e9) if EXACT else ()))],
      name=lambda case: f"{case[0]}_at_{case[1]:.0f}bit")
def rate_of_CASE_is_exact(case):
    """Packets of all sizes, each at its time after the one before, for as long as it takes."""
    kind, rate = case
    rng = random.Random(5)
    with Wire(kind, bandwidth=int(rate) // 8, **CALM[kind]) as wire:
        some = [wire.frame(rng.choice((60, 214, 1014, 1514)), rng.choice(ECNS))
                for _ in range(60 if rate < 1e6 else 400)]
        wire.send(*some, value=9)
        wire.idle()
        got = wire.arrivals()
        expect_equal(sorted(number for _, number, _ in got), [frames.number_of(f) for f in some], "packets that left")
        worst = sent = 0
        for ns, _, frame in got:
            late = ns - got[0][0] - sent * SEC / (int(rate) // 8)
            worst = max(worst, abs(late), key=abs)
            # A timer of user-mode Linux runs at a multiple of 1024 ns.
            expect(abs(late) <= (2048 if EXACT else 500000) + 1e-6 * (ns - got[0][0]),
                   f"{late} ns late after {sent} bytes")
            sent += len(frame)
        note(f"{len(got)} packets in {(got[-1][0] - got[0][0]) / SEC:.3f} s, at most {worst:.0f} ns off")
        st = wire.stats()
        expect_equal(total(st, *DROPS), 0, "drops")
        expect(st["throttled"] == st["overlimits"] >= len(got) // 2, f"throttled {st['throttled']}")


@each(KINDS)
def rate_of_CASE_holds_after_idle_time(kind):
    with Wire(kind, bandwidth=10 * MBIT, **CALM[kind]) as wire:
        for pause in (0, 0.001, 0.01, 1, 100):
            wire.send(wire.frame(), value=9)
            wire.idle()
            time.sleep(pause)
            wire.arrivals()
            wire.send(*(wire.frame() for _ in range(10)))
            wire.idle()
            got = wire.arrivals()
            expect_between((got[-1][0] - got[0][0]) / 1e6, 7.2 - (0.002 if EXACT else 0.5), 7.2 + 0.5,
                           f"ms for nine packets after {pause} s")


@test()
def priority_of_l4s_packets_is_strict():
    """Each codepoint to its queue; whatever waits for L goes before Classic ones."""
    with Wire("vdq_csaqm", gate=True, bandwidth=1000 * MBIT, **CALM["vdq_csaqm"]) as wire:
        model = Model("vdq_csaqm", bandwidth=1000 * MBIT, **CALM["vdq_csaqm"])
        primed(wire, model)
        some = [wire.frame(500, ECNS[n % 4]) for n in range(40)]
        wire.send(*some, value=9)
        st = wire.stats()
        expect_equal((st["l"]["packets"], st["c"]["packets"]), (20, 21), "packets in L and in C")
        wire.open()
        wire.idle()
        mine = [frames.number_of(frame) for frame in some]
        want = [n for n, frame in zip(mine, some) if ecn_of(frame) in (ECT1, CE)]
        want += [n for n in mine if n not in want]
        expect_equal([number for _, number, _ in wire.arrivals() if number in mine], want,
                     "L first, each queue in order")
    # Classic packets wait for a shaper; the L4S packet that comes waits for one of them at most.
    with Wire("vdq_csaqm", bandwidth=MBIT, **CALM["vdq_csaqm"]) as wire:
        wire.send(*(wire.frame() for _ in range(50)), value=9)
        time.sleep(0.1)
        late = wire.frame(ecn=ECT1)
        wire.send(late)
        wire.idle()
        numbers = [number for _, number, _ in wire.arrivals()]
        expect_between(numbers.index(frames.number_of(late)), 12, 15, "place of the L4S packet of 51")


# Thresholds

def fill(wire, model, rng, count, values, ecns=ECNS, sizes=(342, 700, 1014, 1514)):
    """Random packets into both."""
    sent = {}
    for _ in range(count):
        frame = wire.frame(rng.choice(sizes), rng.choice(ecns))
        number, value = frames.number_of(frame), rng.choice(values)
        taken = wire.send(frame, value=value, may_drop=True)
        expect_equal(bool(taken), model.arrive(number, len(frame), value, ecn_of(frame)), f"packet {number} taken")
        sent[number] = (len(frame), value, ecn_of(frame))
    return sent


VALUES = {"one": [20000], "two": [100, 65535], "close": range(1000, 1010),
          "edges": [0, 1, 255, 256, 65280, 65534, 65535], "all": range(65536)}


@each([(kind, name) for kind in KINDS for name in VALUES], name=text_of)
def threshold_of_CASE_is_that_of_sorted_records(case):
    """Filled packet by packet behind a gate: threshold, lengths, drops on arrival, as by brute force."""
    kind, name = case
    rng = random.Random(7)
    for knobs in ({}, {"target": 20000, "tupdate": 100}, {"bandwidth": 300 * MBIT}):
        knobs = {"bandwidth": 40 * MBIT} | knobs
        if kind == "vdq_csaqm":
            knobs |= {"target_l": 3000}
        with Wire(kind, gate=True, **knobs) as wire:
            model = Model(kind, **knobs)
            primed(wire, model)
            for _ in range(12):
                fill(wire, model, rng, 30, VALUES[name])
                model.update()
                st = refresh(wire)
                expect_equal(state_of(st), model.state(), f"{sum(map(len, model.records.values()))} records")
            expect(st["c"]["threshold"] or knobs["bandwidth"] > 40 * MBIT, "there was a threshold")


@each(KINDS)
def threshold_of_CASE_is_none_at_the_target_and_one_beyond_it(kind):
    bandwidth = 40 * MBIT
    with Wire(kind, gate=True, bandwidth=bandwidth) as wire:
        model = Model(kind, bandwidth)
        primed(wire, model)
        for name, ecn in (("l", ECT1), ("c", ECT0)) if kind == "vdq_csaqm" else (("c", ECT1),):
            while (left := model.target[name] - model.length(name)) >= 320:
                frame = wire.frame(min(left, 1400) if not 0 < left - 1400 < 320 else 700, ecn)
                wire.send(frame, value=500)
                model.arrive(frames.number_of(frame), len(frame), 500, ecn)
            model.update()
            expect_equal((model.length(name), model.threshold[name]), (model.target[name], 0), "at the target")
            expect_equal(state_of(refresh(wire)), model.state(), "at the target")
            frame = wire.frame(60, ecn)
            wire.send(frame, value=400)
            model.arrive(frames.number_of(frame), 60, 400, ecn)
            model.update()
            expect_equal(model.threshold[name], 401, "beyond the target")
            expect_equal(state_of(refresh(wire)), model.state(), "beyond the target")


@each(KINDS)
def threshold_of_CASE_is_computed_every_tupdate_and_no_more(kind):
    with Wire(kind, gate=True, bandwidth=40 * MBIT, tupdate=500000) as wire:
        model = Model(kind, 40 * MBIT)
        primed(wire, model)
        rng = random.Random(3)
        refresh(wire)
        before = wire.stats()["updates"]
        fill(wire, model, rng, 300, range(65536))
        time.sleep(0.3)
        st = wire.stats()
        expect_equal((st["updates"], st["c"]["threshold"], st["l"]["threshold"]), (before, 0, 0), "not due yet")
        time.sleep(0.25)
        model.update()
        fill(wire, Model(kind, 40 * MBIT), rng, 1, [65535], (NOT_ECT,), (60,))
        st = wire.stats()
        expect_equal((st["updates"], st["c"]["threshold"], st["l"]["threshold"]),
                     (before + 1, model.threshold["c"], model.threshold["l"]), "due with the packet that came")
        # Long after: one, however many were due.
        time.sleep(10.2)
        expect_equal(wire.stats()["updates"], before + 2, "updates after 10 s")


@each([(kind, ecn) for kind in KINDS for ecn in (1, 0)], name=lambda case: case[0] + ("" if case[1] else "_noecn"))
def signals_of_CASE_go_to_values_below_the_threshold_and_no_others(case):
    """Every packet: marked, dropped or as it was."""
    kind, ecn = case
    knobs = SLOW | {"bandwidth": 40 * MBIT, "ecn": ecn} | ROOMY[kind]
    with Wire(kind, gate=True, **knobs) as wire:
        model = Model(kind, **knobs)
        primed(wire, model)
        rng = random.Random(21)
        sent = fill(wire, model, rng, 500, range(65536))
        # Two values that the threshold is next to.
        model.update()
        edge = max(model.threshold.values())
        for value in (edge - 1, edge, edge + 1) * 8:
            sent |= fill(wire, model, rng, 1, [value])
        model.update()
        expect_equal(state_of(refresh(wire)), model.state(), "before the gate opens")
        want = {}
        while any(model.waiting.values()):
            want |= dict(model.leave())
        wire.arrivals()
        wire.open()
        wire.idle()
        got = {number: frame for _, number, frame in wire.arrivals()}
        wrong = []
        for number, (size, value, was) in sent.items():
            verdict = want[number]
            now = "drop" if number not in got else "mark" if ecn_of(got[number]) != was else "pass"
            if now != verdict or (now == "mark" and ecn_of(got[number]) != CE):
                wrong.append((number, size, value, was, verdict, now))
            elif now != "drop":
                frame = wire_frame(number, size, was)
                if frames.judge(frame, got[number], frames.ETH_HLEN) != ("marked" if now == "mark" else "same"):
                    wrong.append((number, "damaged"))
        expect(not wrong, f"thresholds {model.threshold}: {len(wrong)} of {len(sent)}: {wrong[:8]}")
        st = wire.stats()
        # The first packet is none of these.
        expect_equal((total(st, "marked"), total(st, "dropped_value")),
                     tuple(sum(want[n] == verdict for n in sent) for verdict in ("mark", "drop")), "marked, dropped")
        for verdict in ("pass", "mark", "drop"):
            kinds = {sent[n][2] for n in sent if want[n] == verdict}
            expect_equal(kinds, {"pass": set(ECNS), "mark": {ECT1, ECT0} if ecn else {ECT1},
                                 "drop": {NOT_ECT} if ecn else {NOT_ECT, ECT0}}[verdict], f"codepoints: {verdict}")


@each(KINDS)
def signals_of_CASE_reach_what_is_behind_many_drops(kind):
    """One call drops so many packets and no more, and lets one pass then; but what can be marked is marked."""
    knobs = SLOW | {"bandwidth": 40 * MBIT} | ROOMY[kind]
    with Wire(kind, gate=True, **knobs) as wire:
        model = Model(kind, **knobs)
        primed(wire, model)
        for _ in range(4):
            for ecn, count in ((NOT_ECT, 64), (ECT0, 1), (NOT_ECT, 200), (ECT0, 3)):
                wire.send(*(wire.frame(1000, ecn) for _ in range(count)), value=5)
        expect(refresh(wire)["c"]["threshold"] == 6, "threshold")
        wire.arrivals()
        wire.open()
        wire.idle()
        got = wire.arrivals()
        expect_equal([ecn_of(frame) for _, _, frame in got].count(ECT0), 1, "not marked, but the first one of all")
        expect_equal(total(wire.stats(), "marked"), 16, "marked")
        expect(len(got) <= 1 + 16 + 4 * 5, f"{len(got)} left")


def wire_frame(number, size, ecn):
    """What Wire.frame() made."""
    return frames.ether(number, frames.ETH_P_IP, frames.ipv4(frames.udp(bytes(size - 42)), ecn, frag=0x4000))


# Virtual queues in time

@each(KINDS)
def virtual_queue_of_CASE_is_served_at_its_part_of_what_is_sent(kind):
    """While there is always something to send: arrived less its share of what was sent, to the byte."""
    with Wire(kind, bandwidth=8 * MBIT, **ROOMY[kind]) as wire:
        rng = random.Random(2)
        some = [wire.frame(rng.choice((342, 1000, 1514)), rng.choice((ECT1, ECT0))) for _ in range(400)]
        wire.send(*some, value=VALUE_MAX)
        came = {"c": sum(map(len, some)),
                "l": sum(len(frame) for frame in some if ecn_of(frame) == ECT1 and kind == "vdq_csaqm")}
        shares = {"c": 984 if kind == "vdq_csaqm" else 1000, "l": 900}
        looks = 0
        for _ in range(15):
            time.sleep(0.02)
            st = wire.moment()["10:"]
            if not st["qlen"]:
                break
            for name in "cl":
                want = max(0, came[name] - st["bytes"] * shares[name] // 1000)
                expect_equal(st[name]["virtual_bytes"], want, f"{name} after {st['bytes']} bytes")
            looks += st["qlen"] > 0
        expect(looks > 5, f"{looks} looks")
        wire.idle()


@each([(name, share) for name in "cl" for share in (1, 500, 984, 1000)] + [("csaqm", 1000)],
      name=lambda case: f"{case[0]}_at_{case[1]}")
def virtual_queue_CASE_is_served_while_nothing_is_sent(case):
    """A packet's length of a slow queue is left when the link gets idle, and goes at its rate."""
    name, share = case
    kind, name = ("csaqm", "c") if name == "csaqm" else ("vdq_csaqm", name)
    knobs = {"bandwidth": MBIT} | ROOMY[kind]
    with Wire(kind, **knobs) as wire:
        if kind == "vdq_csaqm":
            # Not served while packets leave; at the rate in question from then on.
            wire.set(vrate_l=1, vrate=1)
        count = 100
        wire.send(*(wire.frame(1000, ECT1) for _ in range(count)), value=VALUE_MAX)
        wire.idle()
        # The last packet left, and the link is busy with it.
        time.sleep(0.02)
        if kind == "csaqm":
            expect_equal(wire.stats()["c"]["virtual_bytes"], 0, "as long as the queue")
            return
        wire.set(vrate=max(share, 1), vrate_l=share if name == "l" else 1)
        rate = MBIT * share / 1000
        before, first = time.clock_gettime_ns(time.CLOCK_MONOTONIC), wire.stats()[name]["virtual_bytes"]
        expect(first > 0.99 * count * 1000, f"{first} bytes at first")
        time.sleep(0.5 * first / rate if share > 1 else 5)
        second, after = wire.stats()[name]["virtual_bytes"], time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        passed = (after - before) / SEC * rate
        expect_between((first - second) / passed, 0.9999 - 2 / passed if EXACT else 0.99, 1.0001 + 2 / passed,
                       f"of {passed:.0f} bytes served in {(after - before) / SEC:.3f} s")
        time.sleep(0.6 * first / rate if share > 1 else 5)
        if share > 1:
            expect_equal(wire.stats()[name]["virtual_bytes"], 0, "bytes in the end")


@test()
def virtual_queue_is_served_though_somebody_looks_at_it_all_the_time():
    """At 1000 bytes per second, a thousand looks a second: the parts of a byte are not lost."""
    with Wire("vdq_csaqm", bandwidth=1000, vrate=500, vrate_l=500) as wire:
        wire.send(*(wire.frame(1500, ECT1) for _ in range(3)), value=VALUE_MAX)
        wire.idle()
        time.sleep(1.6)
        before, first = time.clock_gettime_ns(time.CLOCK_MONOTONIC), wire.stats()["l"]["virtual_bytes"]
        expect(first > 500, f"{first} bytes")
        for _ in range(700):
            time.sleep(0.0009)
            wire.stats()
        passed = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before) / SEC * 500
        expect_between(first - wire.stats()["l"]["virtual_bytes"], passed - 3, passed + 3, "bytes that were served")


@each(KINDS)
def virtual_queue_of_CASE_that_is_full_lets_packets_in_as_it_is_served(kind):
    """Below the link's rate and beyond that of a virtual queue nothing waits, until that one is full."""
    with Wire(kind, bandwidth=8 * MBIT, **({"vrate": 900} if kind == "vdq_csaqm" else {})) as wire:
        for ecn in (ECT1, ECT0):
            sent, begun = 0, time.monotonic()
            # 0.99 of the rate. 50 ms are full after 0.6 s, 250 ms after 2.8 s.
            for n in range(3960):
                left = begun + n / 990 - time.monotonic()
                if left > 0:
                    time.sleep(left)
                sent += wire.send(wire.frame(1000, ecn), value=VALUE_MAX, may_drop=True)
                if n == 2969:
                    wire.idle()
                    wire.arrivals()
            wire.idle()
            got = len(wire.arrivals())
            expect_between(got / 990, 0.88, 1, "of what came in the last second")
            expect((sent < 3960) == (kind == "vdq_csaqm"), f"{sent} of 3960 were taken")
            time.sleep(10)
            expect_equal(total(wire.stats(), "virtual_bytes"), 0, "bytes after ten seconds without packets")
            wire.send(*(wire.frame(1000, ecn) for _ in range(5)))
            wire.idle()
            expect_equal(len(wire.arrivals()), 5, "packets after that")


@each(KINDS)
def virtual_queue_of_CASE_has_nothing_of_what_was_served_long_ago(kind):
    """Hundreds of records are served by one idle time: packets that come find their places free, and thresholds are
    those of what came since.
    """
    knobs = {"bandwidth": MBIT, "limit": 1000} | {name: LONGEST_US for name in KNOBS[kind] if name.startswith("buffer")}
    with Wire(kind, **knobs) as wire:
        if kind == "vdq_csaqm":
            wire.set(vrate_l=1, vrate=1)
        for _ in range(3):
            wire.send(*(wire.frame(100, ECT1) for _ in range(300)), value=VALUE_MAX)
            wire.idle()
        if kind == "vdq_csaqm":
            wire.set(vrate=984, vrate_l=900)
        time.sleep(60)
        st = wire.stats()
        expect_equal(state_of(st), {name: (0, 0, 0, 0) for name in "cl"}, "state after a minute")
        before = total(st, "forwarded")
        model, rng = Model(kind, **knobs), random.Random(30)
        # The link is busy until they have been looked at, also where sending takes time.
        for size in (400, 700):
            for _ in range(450):
                frame, value = wire.frame(size, ECT1), rng.randrange(60000)
                expect(wire.send(frame, value=value, may_drop=True), f"dropped: {wire.stats()}")
                model.arrive(frames.number_of(frame), size, value, ECT1)
            time.sleep(0.01)
            wire.set(bandwidth=MBIT)
            st = wire.moment()["10:"]
            while total(st, "forwarded") > before:
                model.leave()
                before += 1
            model.update()
            expect_equal(state_of(st), model.state(), f"with packets of {size}")
            # Thresholds of later are of no interest.
            model.threshold = {"c": 0, "l": 0}
        expect(st["c"]["threshold"] > 0, "there was a threshold")


@each(KINDS)
def clock_of_CASE_may_stand_for_hours(kind):
    with Wire(kind, bandwidth=8 * MBIT, **SLOW) as wire:
        for hours in (1, 2.5):
            rng = random.Random(hours)
            before = total(wire.stats(), "arrived")
            wire.send(*(wire.frame(1000, rng.choice(ECNS)) for _ in range(45)), value=rng.randrange(1, 65536))
            wire.idle()
            time.sleep(3600 * hours)
            st = wire.stats()
            expect_equal(state_of(st), {"c": (0, 0, 0, 0), "l": (0, 0, 0, 0)}, f"state after {hours} hours")
            expect_equal(total(st, "arrived") - before, 45, "arrived")
            wire.arrivals()
            wire.send(*(wire.frame(1000) for _ in range(10)), value=1)
            wire.idle()
            got = wire.arrivals()
            expect_between((got[-1][0] - got[0][0]) / 1e6, 8.9, 9.5, "ms for ten packets of 1 ms each")


# Buffers

@each(KINDS)
def buffer_of_CASE_is_of_so_many_bytes(kind):
    """50 ms and 200 ms, 500 ms: packets beyond them are dropped and counted, however short they are."""
    with Wire(kind, gate=True, bandwidth=8 * MBIT) as wire:
        model = Model(kind, 8 * MBIT)
        primed(wire, model)
        rng = random.Random(4)
        sizes = {"csaqm": {"c": 500000}, "vdq_csaqm": {"c": 200000, "l": 50000}}[kind]
        for ecn, queue in ((ECT1, "l"), (CE, "l"), (ECT0, "c"), (NOT_ECT, "c")):
            queue = queue if kind == "vdq_csaqm" else "c"
            expect_equal(model.buffer[queue], sizes[queue], "buffer of the model")
            before = wire.stats()[queue]
            count = 2 * sizes[queue] // 900
            fill(wire, model, rng, count, range(65536), (ecn,))
            st = wire.stats()[queue]
            expect(sizes[queue] - 342 < st["bytes"] <= sizes[queue], f"{st['bytes']} bytes in {queue}")
            expect_equal(st["arrived"] - before["arrived"], count, "arrived")
            expect_equal((st["dropped_buffer"] - before["dropped_buffer"], st["dropped_limit"]),
                         (count - (st["packets"] - before["packets"]), 0), "dropped_buffer, dropped_limit")
        model.update()
        expect_equal(state_of(refresh(wire)), model.state(), "in the end")
        st = wire.dump()
        expect_equal(st["10:"]["drops"], total(st["10:"], "dropped_buffer"), "drops of the qdisc")
        expect_equal((st["1:"]["qlen"], st["1:"]["backlog"]), (st["10:"]["qlen"], st["10:"]["backlog"]),
                     "in htb, below")


@each(KINDS)
def buffer_of_CASE_that_is_empty_takes_a_packet_of_any_length(kind):
    """At low rates the buffers are less than a large packet; a second one has no place."""
    small = {name: 1 for name in KNOBS[kind] if name.startswith("buffer")}
    with Wire(kind, mtu=9000, bandwidth=MBIT, **CALM[kind] | small) as wire:
        for ecn in ECNS:
            before = wire.stats()
            for _ in range(5):
                expect_equal(wire.send(wire.frame(9014, ecn), value=VALUE_MAX, may_drop=True), 1, "taken")
                time.sleep(0.1)
            # While the first one is on the link, the next one waits for it, and is all that the buffer takes.
            got = [wire.send(wire.frame(9014, ecn), may_drop=True) for _ in range(5)]
            expect(1 <= sum(got) <= 2, f"taken: {got}")
            time.sleep(1)
            st = wire.idle()["10:"]
            expect_equal(total(st, "dropped_buffer") - total(before, "dropped_buffer"), 5 - sum(got), "dropped_buffer")
            expect_equal(len(wire.arrivals()), 5 + sum(got), "packets that left")


@test()
def buffer_of_a_virtual_queue_is_of_so_many_bytes_and_records():
    """Nothing waits, and yet nothing more is taken: it is not served here."""
    slow = {"bandwidth": 8 * MBIT, "vrate": 1, "vrate_l": 1}
    with Wire("vdq_csaqm", **slow) as wire:
        for _ in range(60):
            wire.send(wire.frame(1000, ECT1), value=VALUE_MAX, may_drop=True)
            time.sleep(0.0012)
        st = wire.stats()
        # Each that leaves has taken a byte of each with it, idle time another.
        expect_between(st["l"]["arrived"] - st["l"]["dropped_buffer"], 50, 51, "in an L4S virtual queue of 50 ms")
        expect_equal((st["l"]["packets"], st["l"]["dropped_limit"]), (0, 0), "waiting, dropped_limit")
        for _ in range(220):
            wire.send(wire.frame(1000, ECT0), value=VALUE_MAX, may_drop=True)
            time.sleep(0.0012)
        st = wire.stats()
        expect_between(total(st, "arrived") - total(st, "dropped_buffer"), 250, 251, "in a Classic one of 250 ms")
    with Wire("vdq_csaqm", **slow, **ROOMY["vdq_csaqm"] | {"limit": 30}) as wire:
        for _ in range(50):
            wire.send(wire.frame(1000, ECT1), value=VALUE_MAX, may_drop=True)
            time.sleep(0.0012)
        st = wire.stats()
        expect_equal((st["l"]["forwarded"], st["l"]["dropped_buffer"], st["l"]["dropped_limit"]), (30, 20, 0),
                     "forwarded, dropped_buffer, dropped_limit with a limit of 30 records")


@each(KINDS)
def limit_of_CASE_is_of_so_many_packets(kind):
    with Wire(kind, gate=True, bandwidth=100 * MBIT, limit=20) as wire:
        model = Model(kind, 100 * MBIT, limit=20)
        primed(wire, model)
        fill(wire, model, random.Random(1), 50, range(65536), sizes=(60,))
        st = wire.stats()
        expect_equal((st["qlen"], total(st, "dropped_limit"), total(st, "dropped_buffer")), (20, 31, 0),
                     "packets, dropped_limit, dropped_buffer")
        model.update()
        expect_equal(state_of(refresh(wire)), model.state(), "state")


# Values

def carried(case):
    return f"{case[0]}_{('mark', 'ipv4_id')[case[1]]}"


@each([(kind, carry) for kind in KINDS for carry in (0, 1)], name=carried)
def value_of_CASE_is_read_where_it_is_carried(case):
    """Packets without one count as value 0, are counted, and are the first to get a signal."""
    kind, carry = case
    with Wire(kind, gate=True, bandwidth=40 * MBIT, carry=carry, **SLOW) as wire:
        model = Model(kind, 40 * MBIT)
        primed(wire, model)
        # What primed the gate has an Identification of 0.
        none = {"c": wire.stats()["c"]["arrived"] if carry == IPV4_ID else 0, "l": 0}
        if carry == IPV4_ID:
            model.records["c"][0][1] = 0
            model.waiting["c"] = [(*packet[:2], 0, packet[3]) for packet in model.waiting["c"]]
        rng = random.Random(8)
        for _ in range(400):
            value, ecn = rng.choice((0, 0, 1, 30000, 65535, rng.randrange(65536))), rng.choice(ECNS)
            how = rng.choice(("plain", "plain", "v6", "no_df", "first", "last", "reserved", "vlan"))
            frag = {"no_df": 0, "first": 0x6000, "last": 0x4010, "reserved": 0xc000}.get(how, 0x4000)
            wrong = rng.randrange(65536)
            frame = wire.frame(1000, ecn, v6=how == "v6", ident=value if carry == IPV4_ID else wrong, frag=frag,
                               tags=[(0x8100, 7)] if how == "vlan" else ())
            # The upper half of the mark is somebody else's.
            wire.send(frame, value=wrong << 16 | (value if carry != IPV4_ID else wrong ^ 1))
            if carry == IPV4_ID and how not in ("plain", "vlan"):
                value = 0
            queue = model.queue_of(ecn)
            none[queue] += not value
            model.arrive(frames.number_of(frame), len(frame), value, ecn)
        model.update()
        st = refresh(wire)
        expect_equal(state_of(st), model.state(), "state")
        expect_equal({name: st[name]["no_value"] for name in "cl"}, none, "no_value")
        expect(model.threshold["c"] > 0 < none["c"], "those without a value are below the threshold")
        want = {}
        while any(model.waiting.values()):
            want |= dict(model.leave())
        wire.open()
        wire.idle()
        st = wire.stats()
        expect_equal((total(st, "marked"), total(st, "dropped_value")),
                     tuple(sum(verdict == name for verdict in want.values()) for name in ("mark", "drop")), "signals")


# Changes

@each(KINDS)
def change_of_CASE_of_the_limit_moves_records(kind):
    """Down: the oldest packets are dropped, Classic ones first, and what virtual queues had of the oldest is gone."""
    knobs = {"bandwidth": 100 * MBIT, "limit": 1000}
    with Wire(kind, gate=True, **knobs) as wire:
        model = Model(kind, **knobs)
        primed(wire, model)
        rng = random.Random(6)
        fill(wire, model, rng, 300, range(65536))
        for limit in (1000, 301, 300, 2000, 150, 40, 500, 1):
            before = total(wire.stats(), "purged")
            wire.set(limit=limit)
            expected = 0
            for name in "cl":
                while model.waiting[name] and sum(map(len, model.waiting.values())) > limit:
                    model.purge(name)
                    expected += 1
            expect_equal(total(wire.stats(), "purged") - before, expected, f"purged by limit {limit}")
            model.forget(limit)
            model.limit = limit
            model.update()
            st = refresh(wire)
            expect_equal(state_of(st), model.state(), f"limit {limit}")
            expect_equal(st["qlen"], min(limit, sum(map(len, model.waiting.values()))), "packets")
            dump = wire.dump()
            expect_equal((dump["1:"]["qlen"], dump["1:"]["backlog"]), (st["qlen"], st["backlog"]), f"in htb, {limit}")
            check_accounts(st)
            fill(wire, model, rng, 20, range(65536))
        wire.open()
        wire.idle()


def root_locks(action):
    """How often this process takes the lock of a root qdisc in action(); None if the kernel does not trace locks."""
    tracing = "/sys/kernel/tracing"
    if os.path.isdir(tracing) and not os.path.exists(f"{tracing}/trace"):
        run(f"mount -t tracefs tracefs {tracing}")
    event = f"{tracing}/events/lock/lock_acquire"
    if not os.path.isdir(event):
        action()
        return None

    def put(name, text):
        with open(name, "w", encoding="ascii") as file:
            file.write(text)

    put(f"{tracing}/buffer_size_kb", "16384")
    put(f"{tracing}/trace", "")
    put(f"{tracing}/set_event_pid", str(os.getpid()))
    put(f"{event}/enable", "1")
    try:
        action()
    finally:
        put(f"{event}/enable", "0")
        put(f"{tracing}/set_event_pid", "")
    with open(f"{tracing}/trace", encoding="ascii", errors="replace") as file:
        return sum("&sch->root_lock_key" in line for line in file if "lock_acquire: " in line)


@each(KINDS)
def change_of_CASE_of_the_limit_moves_some_records_at_a_time(kind):
    """Packets wait for the lock while 4096 records are moved, not while all are."""
    count, size, virtual = 20000, 100, "cl" if kind == "vdq_csaqm" else "c"
    with Wire(kind, gate=True, bandwidth=1000 * MBIT, target=1, **ROOMY[kind] | SLOW) as wire:
        primed(wire, Model(kind, 1000 * MBIT, **ROOMY[kind]))
        # Behind the gate there is one packet of 1000 bytes, which is not in the L4S queue.
        wire.send(*(wire.frame(size, ECT1) for _ in range(count)), value=9)
        for limit, left in ((200000, count), (count // 2, count // 2)):
            locks = root_locks(functools.partial(wire.set, limit=limit))
            st = refresh(wire)
            expect_equal({name: st[name]["virtual_bytes"] for name in virtual},
                         {name: left * size + (900 + size if name == "c" and left == count else 0) for name in virtual},
                         "virtual bytes")
            expect_equal((st["qlen"], st["c"]["threshold"]), (left + (left == count), 10), "packets, threshold")
            check_accounts(st)
            if locks is not None:
                # Once for the change itself; records that are lost are removed before.
                calls = (locks - 1) / len(virtual)
                expect_between(calls, -(-left // 4096), 1 + count // 4096, "times that the lock was taken for a queue")
        wire.open()
        wire.idle()


@each(KINDS)
def change_of_CASE_of_buffers_drops_the_oldest(kind):
    knobs = {"bandwidth": 8 * MBIT, "limit": 5000}
    with Wire(kind, gate=True, **knobs) as wire:
        model = Model(kind, **knobs)
        primed(wire, model)
        rng = random.Random(9)
        fill(wire, model, rng, 250, range(65536))
        for more in ({"buffer": 100000}, {"buffer": 30000}, {"bandwidth": 4 * MBIT}, {"buffer": 1}, {"buffer": 500000},
                     {"buffer_l": 20000}, {"buffer_l": 1}, {"bandwidth": 8 * MBIT}):
            if kind == "csaqm" and "buffer_l" in more:
                continue
            knobs |= more
            wire.set(**more)
            wire.knobs = knobs
            now = Model(kind, **knobs)
            now.waiting, now.records, now.frac = model.waiting, model.records, model.frac
            model = now
            for name in "cl":
                while sum(packet[1] for packet in model.waiting[name]) > model.buffer[name]:
                    model.purge(name)
            model.update()
            st = refresh(wire)
            expect_equal(state_of(st), model.state(), f"after {more}")
            check_accounts(st)
            fill(wire, model, rng, 20, range(65536))
        wire.open()
        wire.idle()


@each([(kind, first, then) for kind in KINDS for first, then in ((1e6, 100e6), (100e6, 1e6), (64e3, 1e9))],
      name=lambda case: f"{case[0]}_from_{case[1]:.0f}_to_{case[2]:.0f}")
def change_of_rate_of_CASE_takes_effect_with_the_next_packet(case):
    kind, first, then = case
    one = 1000
    with Wire(kind, bandwidth=int(first) // 8, **CALM[kind]) as wire:
        # As many as the least of the buffers, at the lower rate, has room for.
        count = 30
        wire.send(*(wire.frame(one) for _ in range(count)), value=9)
        time.sleep(5.5 * one / (int(first) // 8))
        wire.set(bandwidth=int(then) // 8)
        at = time.clock_gettime_ns(time.CLOCK_REALTIME)
        wire.idle()
        got = [ns for ns, _, _ in wire.arrivals()]
        expect_equal(len(got), count, "packets that left")
        after = [ns for ns in got if ns > at]
        if len(after) < 2:
            expect(not EXACT, "all had left before the change")
            return
        gap = one * SEC / (int(then) // 8)
        slack = 2048 if EXACT else 500000
        expect(after[0] - at <= gap * 1.514 + slack, f"{after[0] - at} ns until the first one")
        for n, ns in enumerate(after):
            expect(abs(ns - after[0] - n * gap) <= slack + 1e-6 * n * gap, f"{ns - after[0]} ns for {n} packets")


@each(KINDS)
def changes_of_CASE_under_traffic_lose_nothing(kind):
    """Of all options, while packets come and go: accounts fit at any time, and the queue lives on."""
    rng = random.Random(13)
    with Wire(kind, lines="qdisc add dev w0 root handle 1: prio bands 2 priomap" + 16 * " 0" + "\n", parent="1:1",
              bandwidth=4 * MBIT, limit=100, **({"vrate_l": 1} if kind == "vdq_csaqm" else {})) as wire:
        sent = came = 0
        for turn in range(150):
            for _ in range(rng.randrange(12)):
                frame = wire.frame(rng.choice((342, 1000, 1514)), rng.choice(ECNS))
                wire.send(frame, value=rng.choice((0, 1, 30000, 60000)), may_drop=True)
                sent += 1
            values = {"bandwidth": rng.choice((1, 4, 40)) * MBIT, "limit": rng.choice((1, 5, 50, 100, 1000)),
                      "target": rng.choice((1, 5000, 100000)), "buffer": rng.choice((1, 20000, 200000)),
                      "tupdate": rng.choice((100, 10000, 1000000)), "ecn": rng.randrange(2)}
            if kind == "vdq_csaqm":
                values |= {"target_l": rng.choice((1, 1000)), "buffer_l": rng.choice((1, 50000)), "vrate":
                           rng.randrange(500, 1001), "vrate_l": rng.randrange(1, 501)}
            wire.set(**{name: values[name] for name in rng.sample(list(values), 2)})
            dump = wire.moment()
            st = dump["10:"]
            check_accounts(st)
            expect_equal(total(st, "arrived"), sent, "arrived, sent")
            expect_equal((dump["1:"]["qlen"], dump["1:"]["backlog"]), (st["qlen"], st["backlog"]), "in prio")
            expect(st["qlen"] <= max(st["knobs"]["limit"], 1), f"{st['qlen']} packets, limit {st['knobs']['limit']}")
            time.sleep(rng.choice((0, 0.0001, 0.003, 0.02)))
            if turn % 50 == 49:
                st = wire.idle()["10:"]
                came += len(wire.arrivals())
                expect_equal(came, total(st, "forwarded"), "at the other end, forwarded")
                wire.set(bandwidth=40 * MBIT, limit=100, buffer=200000, target=5000)
        expect(total(st, "dropped_value") > 20 and total(st, "marked") > 20 and total(st, "purged") > 20,
               f"not all happened: {st}")


# Replay

@each([(kind, seed) for kind in KINDS for seed in (1, 2, 3)], name=lambda case: f"{case[0]}_{case[1]}")
def replay_of_CASE_says_the_same_of_each_packet(case):
    """Random traffic of one busy period, half as much again as the link takes; thresholds change all the time.

    The model gets the times of arrivals and of departures, and says which packet it is, and what was lost on the way.
    Where computing takes time, thresholds are those of a moment that is not known: then the accounts have to do.
    """
    kind, seed = case
    rng = random.Random(seed)
    knobs = {"bandwidth": 8 * MBIT, "tupdate": 7000} | ({"target": 8000, "buffer": 60000, "buffer_l": 15000}
                                                          if kind == "vdq_csaqm" else {"buffer": 60000})
    with Wire(kind, **knobs) as wire:
        events, sent = [], {}
        end = time.monotonic() + 0.8
        count = 60
        while time.monotonic() < end:
            for _ in range(count):
                frame = wire.frame(rng.choice((342, 1000, 1514)), rng.choice(ECNS))
                number, value = frames.number_of(frame), rng.choice((rng.randrange(65536), 0, 50000))
                events.append((time.clock_gettime_ns(time.CLOCK_REALTIME), "came", number))
                taken = wire.send(frame, value=value, may_drop=True)
                sent[number] = (len(frame), value, ecn_of(frame), bool(taken))
            count = rng.randrange(1, 25)
            time.sleep(rng.uniform(0, 0.009))
        # Who looks at it has thresholds computed.
        time.sleep(1)
        st = wire.stats()
        expect_equal(st["qlen"], 0, "left")
        check_accounts(st)
        got = wire.arrivals()
        expect_equal((total(st, "arrived"), total(st, "forwarded")), (len(sent), len(got)), "arrived, forwarded")
        expect(min(total(st, name) for name in ("dropped_value", "marked", "dropped_buffer")) > 30, f"too few: {st}")
        if not EXACT:
            note("accounts only")
            return
        events += [(ns, "left", (number, ecn_of(frame))) for ns, number, frame in got]
        replay(kind, knobs, sent, events)


def replay(kind, knobs, sent, events):
    """Compare a busy period with the model.

    A packet that leaves when others come, which is at a timer's tick both, did so before them or, as the first packet
    of all, when the first one of them was there.
    """
    came = {ns for ns, what, _ in events if what == "came"}
    ties = sorted({ns for ns, what, _ in events if what == "left" and ns in came})
    failure = None
    for first in itertools.product((False, True), repeat=len(ties) - 1):
        places = dict(zip(ties, (True, *first)))
        order = []
        for ns in sorted({event[0] for event in events}):
            now = [event for event in events if event[0] == ns]
            now.sort(key=lambda event: event[1] == "came")
            left = sum(event[1] == "left" for event in now)
            if places.get(ns):
                now.insert(0, now.pop(left))
            order += now
        try:
            replay_in_order(kind, knobs, sent, order)
            return
        except Failure as error:
            failure = failure or error
    raise failure


def replay_in_order(kind, knobs, sent, events):
    """The same of events of which it is known which was first."""
    model = Model(kind, **knobs)
    due = 0
    free = None
    for ns, what, which in events:
        if free and ns >= free:
            raise Failure("the link was idle: this is not one busy period")
        free = None
        if ns >= due:
            model.update()
            due = ns + knobs["tupdate"] * 1000
        if what == "came":
            size, value, ecn, taken = sent[which]
            expect_equal(model.arrive(which, size, value, ecn), taken, f"{which} of {len(sent)} taken")
            continue
        number, ecn = which
        if not any(model.waiting.values()):
            raise Failure(f"{number} left, and nothing waits")
        gone = model.leave()
        mine, verdict = gone[-1]
        expect(verdict != "drop", f"{number} left, and all are to be dropped: {gone}")
        now = "pass" if ecn == sent[number][2] else "mark"
        if not any(model.waiting.values()):
            free = ns + sent[number][0] * SEC // knobs["bandwidth"] - 1024
        expect_equal((number, now), (mine, verdict), f"what left, value {sent[number][1]} at {model.threshold}")
    rest = model.leave()
    expect(not rest or rest[-1][1] == "drop", f"{rest} did not leave")


# The last packet

def late_threshold(tree):
    """The queue is empty, and what has a value below 40001 gets a signal for some seconds."""
    tree.value(ECT0, 40000)
    tree.value(NOT_ECT, 30000)
    tree.value(ECT1, VALUE_MAX)
    for _ in range(30):
        tree.mix.send(ECT0, 1000)
    time.sleep(0.005)           # netem has them first
    tree.change(tupdate=LONGEST_US)
    for handle in tree.leaves:
        expect_equal(tree.dump()[handle]["c"]["threshold"], 40001, f"threshold of {handle}")
    tree.drain()


@each([(kind, name) for kind in KINDS for name in ONE_LEAF], name=text_of)
def last_packet_below_CASE_that_is_to_be_dropped_is(case):
    """It is alone, so that no dequeue may drop it; soon it is gone, is counted, and nobody counts on it any more."""
    kind, name = case
    spare_qfq(name)
    with hostile.no_splat(), ValueTree(name, kind, "100mbit", bandwidth=10 * MBIT, target=1,
                                       buffer=LONGEST_US) as tree:
        late_threshold(tree)
        for turn, more in enumerate((0, 0, 1, 2, 5)):
            before = tree.dump()["10:"]
            got = tree.delivered()[0]
            tree.mix.send(NOT_ECT, 500)
            # Others that come behind it, or before it is gone, leave.
            for _ in range(more):
                tree.mix.send(ECT1, 500)
            time.sleep(0.1)
            dump = tree.dump()
            for handle, st in dump.items():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"turn {turn}: left in {st['kind']} {handle}")
            st = dump["10:"]
            check_accounts(st)
            expect_equal(total(st, "dropped_value") - total(before, "dropped_value"), 1, "dropped_value")
            expect_equal(tree.delivered()[0] - got, more, "delivered")
        for _ in range(20):
            tree.mix.send(ECT1, 500)
        tree.check_all(exact_drops=False)


NEIGHBOURS = {
    "drr": "qdisc add dev w0 root handle 1: drr\n" + "".join(
        f"class add dev w0 parent 1: classid 1:{n} drr quantum 1514\n" for n in (1, 2)),
    "hfsc": "qdisc add dev w0 root handle 1: hfsc default 2\n" + "".join(
        f"class add dev w0 parent 1: classid 1:{n} hfsc sc rate 100mbit\n" for n in (1, 2)),
    "ets": "qdisc add dev w0 root handle 1: ets bands 2 quanta 1514 1514\n",
    "qfq": "qdisc add dev w0 root handle 1: qfq\n" + "".join(
        f"class add dev w0 parent 1: classid 1:{n} qfq weight 1 maxpkt 2048\n" for n in (1, 2)),
    "prio": "qdisc add dev w0 root handle 1: prio bands 2 priomap" + 16 * " 0" + "\n",
}


@each([(kind, name) for kind in KINDS for name in NEIGHBOURS], name=text_of)
def last_packet_of_CASE_holds_up_no_other_class(case):
    """Packets of another class wait behind it in the parent, and leave once it is gone, though none comes any more."""
    kind, name = case
    spare_qfq(name)
    with hostile.no_splat(), Wire(kind, lines=NEIGHBOURS[name], parent="1:1", bandwidth=MBIT, target=1,
                                  buffer=LONGEST_US) as wire:
        expect_equal(lib_extra.request(wire.netns, "w0", "20:", "1:2", "pfifo", struct.pack("I", 100),
                                       lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "the other class")
        wire.send(*(wire.frame(1000, ECT0) for _ in range(20)), value=40000, priority=0x10001)
        wire.set(tupdate=LONGEST_US)
        expect_equal(wire.stats()["c"]["threshold"], 40001, "threshold")
        wire.idle()
        for _ in range(5):
            wire.arrivals()
            dropped = total(wire.stats(), "dropped_value")
            # It waits for the first one's time on the link.
            wire.send(wire.frame(1000, ECT0), value=VALUE_MAX)
            wire.send(wire.frame(1000, NOT_ECT), value=7)
            wire.send(*(wire.frame(1000) for _ in range(5)), priority=0x10002)
            time.sleep(0.5)
            expect_equal(len(wire.arrivals()), 6, "packets that left")
            dump = wire.dump()
            for handle, st in dump.items():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"left in {st['kind']} {handle}")
            expect_equal(total(dump["10:"], "dropped_value") - dropped, 1, "dropped_value")
            wire.send(priority=0x10001)


@each(KINDS)
def last_packet_of_CASE_put_aside_does_not_outlive_its_qdisc(kind):
    """Reset, change, deletion, replacement and the end of the device, before the work that would drop it."""
    with hostile.no_splat():
        for what in ("ip link set dev d0 down", "tc qdisc del dev d0 root", "tc qdisc replace dev d0 root pfifo",
                     "ip link del dev d0", "change", "limit", None):
            for name in ("root", "htb", "prio"):
                with ValueTree(name, kind, "100mbit", bandwidth=10 * MBIT, target=1, buffer=LONGEST_US) as tree:
                    late_threshold(tree)
                    tree.mix.send(NOT_ECT, 500)
                    if what == "change":
                        tree.change(bandwidth=MBIT)
                    elif what == "limit":
                        tree.change(limit=1)
                        tree.mix.send(ECT1, 500)
                    elif what:
                        run(what, tree.netns)
                    if what in (None, "change", "limit"):
                        time.sleep(0.1)
                        st = tree.dump()["10:"]
                        expect_equal((st["qlen"], total(st, "dropped_value")), (0, 1), "left, dropped_value")
                        tree.mix.send(ECT1, 500)
                        tree.drain()
                        check_accounts(tree.dump()["10:"])
        time.sleep(0.2)


@each(KINDS)
def last_packet_of_CASE_keeps_nobody_waiting(kind):
    """A sender with room for one packet alone goes on: it is told that the packet is gone."""
    with ValueTree("root", kind, bandwidth=10 * MBIT, target=1, buffer=LONGEST_US) as tree:
        late_threshold(tree)
        sock = tree.mix.socket(NOT_ECT, False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
        sock.settimeout(5)
        for _ in range(10):
            tree.mix.send(NOT_ECT, 1400)
        time.sleep(0.1)
        st = tree.dump()["10:"]
        expect_equal((total(st, "dropped_value"), st["qlen"]), (10, 0), "dropped_value, left")


# Parents, GSO

def gso_mix(tree, ecn, segments, size=1000, last=None, v6=False, value=0):
    tree.value(ecn, value, v6)
    tree.mix.gso(ecn, segments, size, last, v6)


@each([(kind, name) for kind in KINDS for name in AGREEING], name=text_of)
def parent_of_CASE_agrees_with_its_child(case):
    """Packets and GSO packets of all codepoints, in a queue that runs full, empty, and drops; with a shaper of its own
    that is slower than the parent's, then with one that never waits.
    """
    kind, name = case
    spare_qfq(name)
    with hostile.no_splat(), ValueTree(name, kind, "2mbit", bandwidth=MBIT, limit=40, target=1, tupdate=2000) as tree:
        for turn in range(8):
            for ecn in ECNS:
                tree.value(ecn, 1 + 8000 * ((turn * 3 + ecn) % 8))
                tree.mix.send(ecn, 300 + 100 * turn)
                gso_mix(tree, ecn, 2 + turn, 700, 100 + turn, v6=bool(turn & 1), value=1 + 8000 * (turn + ecn) // 2)
                tree.check_now("a GSO packet")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
            if turn == 4:
                tree.change(bandwidth=1000 * MBIT)
        tree.change(limit=5)
        tree.check_now("a lower limit")
        leaves = tree.check_all(exact_drops=False)
        expect(name == "mq" or sum(total(st, *DROPS) for st in leaves) > 10, "packets were dropped")
        # And it is not stuck.
        for _ in range(5):
            tree.mix.send(ECT1)
        tree.check_all(exact_drops=False)


@each(KINDS)
def gso_of_CASE_is_split_and_each_segment_has_the_value(kind):
    with Wire(kind, gate=True, bandwidth=40 * MBIT, **SLOW | ROOMY[kind]) as wire:
        model = Model(kind, 40 * MBIT, **ROOMY[kind])
        primed(wire, model)
        rng = random.Random(12)
        for _ in range(30):
            parts, ecn, value = rng.randrange(2, 12), rng.choice(ECNS), rng.randrange(65536)
            last = rng.randrange(100, 1001)
            wire.gso(1000 * (parts - 1) + last, 1000, ecn, value)
            for n in range(parts):
                model.arrive(0, (1000 if n < parts - 1 else last) + 54, value, ecn)
        model.update()
        dump = wire.dump()
        st = refresh(wire)
        expect_equal(state_of(st), model.state(), "state")
        expect_equal((dump["1:"]["qlen"], dump["1:"]["backlog"]), (st["qlen"], st["backlog"]), "in htb")
        want = []
        while any(model.waiting.values()):
            want += model.leave()
        wire.open()
        wire.idle()
        st = wire.stats()
        expect_equal((total(st, "marked"), total(st, "dropped_value"), st["gso_failed"]),
                     (*(sum(verdict == name for _, verdict in want) for name in ("mark", "drop")), 0),
                     "marked, dropped, not split")


@each([(kind, name) for kind in KINDS for name in lib_extra.ONE_PARENTS], name=text_of)
def gso_of_which_one_segment_fits_below_CASE_counts_as_that_segment(case):
    """A limit of one packet, and the queue is empty: parents half-way up are, too."""
    kind, name = case
    with hostile.no_splat(), ValueTree(name, kind, lib_extra.ONE_RATE, bandwidth=1000 * MBIT, limit=1,
                                       **CALM[kind]) as tree:
        lib_extra.one_segment_counts_as_itself(tree, check_accounts)


@each([(kind, *case) for kind in KINDS for case in lib_extra.ONE_GOES], name=text_of)
def gso_of_which_one_segment_fits_below_CASE_leaves_no_bytes(case):
    kind, name, what = case
    with hostile.no_splat(), ValueTree(name, kind, lib_extra.ONE_RATE, bandwidth=1000 * MBIT, limit=1,
                                       **CALM[kind]) as tree:
        lib_extra.one_segment_goes(tree, functools.partial(check_accounts, was_reset=what == "reset"), what)


# tbf splits segments of 8000 bytes, or drops them.
@each([(kind, name) for kind in KINDS for name in ("root", *lib_extra.ONE_PARENTS) if name != "tbf"], name=text_of)
def gso_of_which_one_segment_fits_below_CASE_is_dropped_when_aside(case):
    """It fits because the queue is empty; its value is below the threshold: the work drops it, without a dequeue."""
    kind, name = case
    spare_qfq(name)
    with hostile.no_splat(), ValueTree(name, kind, "100mbit", mtu=9000, bandwidth=MBIT, target=1,
                                       buffer=1) as tree:
        late_threshold(tree)
        # Nothing is left in virtual queues.
        time.sleep(1)
        for segments in (2, 3):
            before = tree.leaf()
            tree.mix.gso(NOT_ECT, segments, 8000, 7000)
            time.sleep(0.1)
            check_zero(tree, "after the work")
            st = tree.leaf()
            check_accounts(st)
            expect_equal([total(st, key) - total(before, key) for key in ("dropped_value", "dropped_buffer")],
                         [1, segments - 1], "dropped_value, dropped_buffer")
            tree.mix.send(ECT1, 500)
            tree.drain()
        tree.check_all(exact_drops=False)


# Packets

class CsaqmRig(packets.Rig):
    """TAP devices, and one of the kinds on one of them."""

    def __init__(self, rate, kind, bridge=False, **knobs):
        super().__init__(rate, bridge)
        self.kind, self.csaqm = kind, knobs

    def add(self):
        expect_equal(lib_extra.request(self.netns, "out", "10:", "1:10", self.kind, pack(self.kind, **self.csaqm)),
                     (0, ""), f"add of {self.kind}")

    def stats(self):
        return of(lib_extra.found(self.netns, "out"))

    def check(self):
        st = self.stats()
        check_accounts(st)
        expect_equal((st["qlen"], st["backlog"]), (0, 0), "left")
        parent = self.parent()
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        return st


class CsaqmGsoRig(GsoRig, CsaqmRig):
    """The same with virtio headers."""

    def __init__(self, rate, kind, **knobs):
        CsaqmRig.__init__(self, rate, kind, **knobs)


@each([(kind, how) for kind in KINDS for how in ("socket", "ring", "bridge")], name=text_of)
def frames_of_every_kind_below_CASE_are_marked_byte_exact_or_left_alone(case):
    """Values are in the Identification, so that next to nothing has one: all that can be is marked, all else dropped
    or unchanged.
    """
    kind, injector = case
    with CsaqmRig("1mbit", kind, bridge=injector == "bridge", bandwidth=1000 * MBIT, target=1, tupdate=LONGEST_US,
                  carry=IPV4_ID, limit=100000, buffer=LONGEST_US,
                  **({"target_l": 1, "buffer_l": LONGEST_US} if kind == "vdq_csaqm" else {})) as rig:
        kinds = list(packets.kinds_for(injector))
        if injector == "ring":
            kinds = kinds[:(frames.RingSender.SLOTS - 20) // 4]
        load = packets.Load(rig.injector(injector))
        load.fill(8, CE, 1514)
        load.fill(8, ECT0, 1514)
        unparsed = 0
        for name, build, ip in kinds:
            for ecn in ECNS:
                before = len(load.sent)
                load.send(name, build, ip, ecn)
                unparsed += ip is None and len(load.sent) > before
        expect_equal(lib_extra.request(rig.netns, "out", "10:", "1:10", kind, pack(kind, limit=100000), 0), (0, ""),
                     "thresholds anew")
        threshold = rig.stats()["c"]["threshold"]
        expect_equal(threshold, 1, "all is beyond the target, and has value 0")
        result = load.verdicts(rig.out.drain(6))
        st = rig.check()
        expect_equal((st["unparsed"], st["mark_failed"]), (unparsed, 0), "unparsed, mark_failed")
        # Behind 64 drops one packet leaves as it is; before the change some had left.
        seen = {}
        for _, ecn, ip, verdict in result[16:]:
            codepoint = NOT_ECT if ip is None else ecn
            seen.setdefault(codepoint, []).append(verdict)
        expect(set(seen[CE]) == {"same"}, f"CE: {set(seen[CE])}")
        for codepoint in (ECT1, ECT0):
            expect(seen[codepoint].count("lost") == 0, f"lost, of codepoint {codepoint}")
            unmarked = [r[0] for r in result[16:] if r[1] == codepoint and r[2] is not None and r[3] != "marked"]
            expect(len(unmarked) <= 12, f"not marked: {unmarked}")
        expect(seen[NOT_ECT].count("lost") > 0.9 * len(seen[NOT_ECT]), f"{seen[NOT_ECT].count('lost')} lost")
        expect_equal(sum(v == "marked" for *_, v in result), total(st, "marked"), "marked")
        expect_equal(sum(v == "lost" for *_, v in result), total(st, "dropped_value"), "lost, dropped_value")


@each(KINDS)
def gso_of_every_kind_below_CASE_is_accounted_for(kind):
    """Headers that lie, too: what cannot be split is dropped and counted."""
    with hostile.no_splat(), CsaqmGsoRig("50mbit", kind, bandwidth=100 * MBIT, limit=100000, **CALM[kind]) as rig:
        send, reference = rig.both_ways()
        taken = 0
        for number, k in enumerate(GSO, 1):
            for version in k.versions:
                head, frame = k.build(number, ECT0, version)
                taken += bool(send(head, frame))
        came = sum(len(copies) for copies in rig.out.drain(4).values())
        reference()
        st = rig.check()
        expect_equal(came, total(st, "forwarded"), "packets at the device, forwarded")
        expect(taken > 40 and total(st, "arrived") > 400, f"{taken} taken, {total(st, 'arrived')} arrived")
        note(f"{taken} taken, {total(st, 'arrived')} arrived, {st['gso_failed']} not split")


# Instances, modules, and with ppv

@contextlib.contextmanager
def valued(net, kind, functions, carry=0, **knobs):
    """ppv with the functions and one of the kinds below it, on rtr's `down`."""
    try:
        expect_equal(lib_extra.request(net.rtr, "down", "10:", "root", "ppv", pack("ppv", carry=carry) + b"".join(
            tvf(number, points) for number, points in functions.items())), (0, ""), "add of ppv")
        expect_equal(lib_extra.request(net.rtr, "down", "20:", "10:1", kind, pack(kind, carry=carry, **knobs)), (0, ""),
                     f"add of {kind}")
        yield lambda: {qdisc["handle"]: of(qdisc) for qdisc in lib.qdisc_dump(net.rtr, "down")}
    finally:
        net._kill_traffic()
        tc("qdisc del dev down root", net.rtr, check=False)


def class_of(number):
    """skb->priority for a class of ppv."""
    return 0x100000 | number


def until_idle(dump):
    for _ in range(400):
        if not any(st["qlen"] for st in dump().values()):
            return dump()
        time.sleep(0.05)
    raise Failure("the queue is not empty after 20 s")


@each([(kind, carry) for kind in KINDS for carry in (0, 1)], name=carried)
def overload_of_CASE_hits_the_lower_value_alone(case):
    """Two streams that do not answer, together half as much again as the link takes: one value has all of it."""
    kind, carry = case
    with Net() as net, valued(net, kind, {1: [(1, 50000)], 2: [(1, 20000)]}, carry, bandwidth=10 * MBIT) as dump:
        # What cannot be dropped is less than the rate.
        streams = [Stream(f"{name}{ecn}", ecn=ecn, bps=bps, source="rtr", priority=class_of(number))
                   for number, name, ecn, bps in ((1, "high", NOT_ECT, 3e6), (1, "high", ECT0, 3e6),
                                                  (2, "low", ECT0, 3e6), (2, "low", NOT_ECT, 6e6))]
        result = net.traffic(10, *streams)
        ended = until_idle(dump)
        st = ended["20:"]
        check_accounts(st)
        note(", ".join(f"{name}: lost {r.loss:.3f} marked {r.marked:.3f}" for name, r in result.items()))
        for ecn in (NOT_ECT, ECT0):
            high, low = result[f"high{ecn}"], result[f"low{ecn}"]
            expect_equal((high.lost, high.ecn[CE]), (0, 0), "signals of the high value")
            if ecn == NOT_ECT:
                expect(low.loss > 0.5, f"drops of the low value: {low.loss:.3f}")
            else:
                expect(low.marked > 0.5, f"marks of the low value: {low.marked:.3f}")
        expect_equal(total(st, "arrived"), sum(r.sent_ever for r in result.values()), "arrived, sent")
        expect_equal(total(st, "dropped_value", "dropped_buffer"),
                     sum(r.lost for r in result.values()), "dropped, lost")
        expect_equal(total(st, "no_value"), 0, "without a value")
        expect_equal(ended["10:"]["valued"], total(st, "arrived"), "valued, arrived")


@each(KINDS)
def accounts_of_CASE_agree_with_sender_and_receiver(kind):
    """All codepoints, both IP versions, in bursts, far beyond the rate; at any time."""
    points = [(1250, 65535), (125000000000, 13107)]
    with Net() as net, valued(net, kind, {1: points}, bandwidth=10 * MBIT) as dump:
        streams = [Stream(f"{ecn}{six}", ecn=ecn, bps=2.2e6, jitter=0.5, burst=3, dst="fd02::1" if six else "10.2.0.1")
                   for ecn in ECNS for six in (0, 1)]
        load, seen = net.start(6, *streams), 0
        for _ in range(50):
            time.sleep(0.1)
            one, two = dump(), dump()
            # Packets that go while a dump is made are in some of its numbers.
            if all(one[h][name] == two[h][name] for h in one for name in ("packets", "qlen", "backlog")) and \
               total(one["20:"], "arrived") == total(two["20:"], "arrived"):
                seen += 1
                check_accounts(one["20:"])
                expect_equal((one["10:"]["qlen"], one["10:"]["backlog"]), (one["20:"]["qlen"], one["20:"]["backlog"]),
                             "in ppv, below")
        result = load.wait()
        # Time goes on while stock kernels compute.
        note(f"{seen} of 50 dumps twice")
        expect(seen > 25 or os.environ.get("DUALPI2_KERNEL") != "debug", "most dumps were made twice")
        ended = until_idle(dump)
        st = ended["20:"]
        check_accounts(st)
        expect_equal(total(st, "arrived"), sum(r.sent_ever for r in result.values()), "arrived, sent")
        expect_equal(total(st, *DROPS), sum(r.lost for r in result.values()), "dropped, lost")
        expect_equal(total(st, "forwarded"), sum(r.received for r in result.values()), "forwarded, received")
        # What came with CE has it; what else has it was marked here.
        expect_equal(sum(r.ecn[CE] for r in result.values()),
                     total(st, "marked") + sum(result[f"{CE}{six}"].received for six in (0, 1)), "CE at the receiver")
        expect_equal(sum(result[f"{NOT_ECT}{six}"].ecn[CE] for six in (0, 1)), 0, "CE on Not-ECT")
        expect(total(st, "marked") > 100 < total(st, "dropped_value"), "there were marks and drops")
        expect_equal((ended["10:"]["qlen"], ended["10:"]["backlog"]), (0, 0), "left in ppv")
        expect_equal(ended["10:"]["drops"], total(st, *DROPS), "drops of ppv")


@each(KINDS)
def instances_of_CASE_do_not_know_each_other(kind):
    """One is full and has a threshold, the other one is empty; one goes, the other one stays."""
    with Wire(kind, lines="qdisc add dev w0 root handle 1: prio bands 2 priomap" + 16 * " 0" + "\n", parent="1:1",
              bandwidth=MBIT, **CALM[kind] | {"limit": 1000}) as wire:
        other = {"csaqm": "vdq_csaqm", "vdq_csaqm": "csaqm"}[kind]
        for handle, which in (("20:", other), ("30:", kind)):
            expect_equal(lib_extra.request(wire.netns, "w0", handle, "1:2", which, pack(which, bandwidth=2 * MBIT),
                                           lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "another one")
            wire.send(*(wire.frame() for _ in range(20)), value=7)
            st = wire.dump()
            expect_equal((total(st[handle], "arrived"), st[handle]["c"]["virtual_bytes"]), (0, 0), "of the other one")
            expect(st["10:"]["qlen"] > 15, "packets wait")
        expect_equal(lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", "30:", "1:2"), (0, ""), "deletion of one")
        wire.idle()
        expect_equal(wire.stats()["c"]["forwarded"], 40, "forwarded")


@each(KINDS)
def module_with_instances_of_CASE_stays_and_goes_without(kind):
    with Wire(kind, bandwidth=MBIT, target=1) as wire:
        wire.send(*(wire.frame() for _ in range(20)), value=7)
        expect(run("rmmod sch_csaqm", check=False).returncode, "the module went with an instance")
        tc("qdisc del dev w0 root", wire.netns)
        lib_extra.goes("csaqm")
        expect_equal(wire.add(), (0, ""), "add again")


@each(KINDS)
def storm_of_adding_changing_and_deleting_CASE_leaves_nothing(kind):
    rng = random.Random(17)
    with hostile.no_splat(), Wire(kind, bandwidth=MBIT, target=1, tupdate=100) as wire:
        for _ in range(150):
            for _ in range(rng.randrange(8)):
                wire.send(wire.frame(rng.choice((342, 1514)), rng.choice(ECNS)), value=rng.randrange(65536),
                          may_drop=True)
            action = rng.randrange(6)
            if action == 0:
                wire.set(limit=rng.choice((1, 10, 1000)))
            elif action == 1:
                wire.set(bandwidth=rng.choice((1000, MBIT, 1000 * MBIT)))
            elif action == 2:
                expect_equal(wire.add(lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "replace by itself")
            elif action == 3:
                tc_kind = rng.choice(("pfifo", "csaqm", "vdq_csaqm"))
                lib_extra.request(wire.netns, "w0", "77:", "root", tc_kind, struct.pack("I", 10) if tc_kind == "pfifo"
                                  else pack(tc_kind, bandwidth=MBIT), lib.NLM_F_CREATE | lib.NLM_F_REPLACE)
                lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
                wire.was_reset = False
                expect_equal(wire.add(), (0, ""), "add")
            elif action == 4:
                lib.run("ip link set dev w0 down", wire.netns)
                wire.was_reset = True
                st = wire.stats()
                expect_equal((st["qlen"], st["backlog"], total(st, "packets", "bytes", "virtual_bytes", "threshold")),
                             (0, 0, 0), "left by a reset")
                lib.run("ip link set dev w0 up", wire.netns)
            check_accounts(wire.moment()["10:"], wire.was_reset)
            time.sleep(rng.choice((0, 0, 0.001, 0.02)))
        wire.set(bandwidth=1000 * MBIT)
        wire.idle()
        wire.arrivals()
        wire.send(wire.frame(ecn=CE))
        wire.idle()
        expect_equal(len(wire.arrivals()), 1, "a packet through in the end")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("csaqm", "ppv"))
