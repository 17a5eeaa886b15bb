#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock
"""
test_csaqm_queues.py - the qdiscs csaqm and vdq_csaqm: the shaper, thresholds, signals, virtual queues, each packet.
"""

import itertools
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import (DROPS, ECNS, EXACT, KINDS, KNOBS, LONGEST_US, SEC, VALUE_MAX, Model, Wire, check_accounts,
                        ecn_of, state_of, total)

import frames
import lib
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, each, expect, expect_between, expect_equal, note, test
from lib_csaqm import MBIT, CALM, SLOW, ROOMY, gated, refresh, text_of, fill, wire_frame

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
    with gated("vdq_csaqm", bandwidth=1000 * MBIT, **CALM["vdq_csaqm"]) as (wire, model):
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
        with gated(kind, **knobs) as (wire, model):
            for _ in range(12):
                fill(wire, model, rng, 30, VALUES[name])
                model.update()
                st = refresh(wire)
                expect_equal(state_of(st), model.state(), f"{sum(map(len, model.records.values()))} records")
            expect(st["c"]["threshold"] or knobs["bandwidth"] > 40 * MBIT, "there was a threshold")


@each(KINDS)
def threshold_of_CASE_is_none_at_the_target_and_one_beyond_it(kind):
    bandwidth = 40 * MBIT
    with gated(kind, bandwidth=bandwidth) as (wire, model):
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
    with gated(kind, bandwidth=40 * MBIT, tupdate=500000) as (wire, model):
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
    with gated(kind, **knobs) as (wire, model):
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
    with gated(kind, **knobs) as (wire, model):
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
    """Below the link's rate and above that of a virtual queue, the queue is idle until the virtual queue is full."""
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
        expect_equal(state_of(st), dict.fromkeys("cl", (0, 0, 0, 0)), "state after a minute")
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
        for hours in (1 / 60, 2.5):
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
            raise Failure(f"{number} left, and the queue is idle")
        gone = model.leave()
        mine, verdict = gone[-1]
        expect(verdict != "drop", f"{number} left, and all are to be dropped: {gone}")
        now = "pass" if ecn == sent[number][2] else "mark"
        if not any(model.waiting.values()):
            free = ns + sent[number][0] * SEC // knobs["bandwidth"] - 1024
        expect_equal((number, now), (mine, verdict), f"what left, value {sent[number][1]} at {model.threshold}")
    rest = model.leave()
    expect(not rest or rest[-1][1] == "drop", f"{rest} did not leave")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("csaqm", "ppv"))
