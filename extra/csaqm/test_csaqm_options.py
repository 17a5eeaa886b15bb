#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_csaqm_options.py - the qdiscs csaqm and vdq_csaqm: options, buffers, where values are read, changes.
"""

import errno
import functools
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import (DEFAULTS, ECNS, EXACT, IPV4_ID, KINDS, KNOBS, LONGEST_US, SEC, VALUE_MAX, Model, Wire,
                        check_accounts, pack, primed, state_of, total)

import frames
import lib
from lib import CE, ECT0, ECT1, NOT_ECT, each, expect, expect_between, expect_equal, run, tc, test
from lib_csaqm import MBIT, CALM, SLOW, ROOMY, gated, refresh, text_of, fill, carried

# Options

BOUNDS = {"bandwidth": (1000, 125000000000), "limit": (1, 1048576), "tupdate": (100, LONGEST_US),
          "target": (1, LONGEST_US), "buffer": (1, LONGEST_US), "carry": (0, 1), "ecn": (0, 1),
          "target_l": (1, LONGEST_US), "buffer_l": (1, LONGEST_US), "vrate": (900, 1000), "vrate_l": (1, 984),
          "arrival_drop": (0, 1)}
BEYOND = {"bandwidth": (1, 999, 125000000001, 2**63, 2**64 - 1), "limit": (0, 1048577, 2**32 - 1),
          "tupdate": (0, 99, LONGEST_US + 1), "target": (0, LONGEST_US + 1), "buffer": (0, LONGEST_US + 1),
          "carry": (2, 255), "ecn": (2, 255), "target_l": (0, LONGEST_US + 1), "buffer_l": (0, LONGEST_US + 1),
          "vrate": (0, 1001, 2**32 - 1), "vrate_l": (0, 1001, 2**32 - 1), "arrival_drop": (2, 255)}
TIME = "must be 1 us to 4294967 us"
RANGE = {"bandwidth": "must be 8 kbit/s to 1 Tbit/s", "limit": "must be 1 to 1048576 packets",
         "tupdate": "must be 100 us to 4294967 us", "target": TIME, "buffer": TIME, "carry": "must be 0 (mark) or 1 "
         "(ipv4_id)", "ecn": "must be 0 or 1", "target_l": TIME, "buffer_l": TIME, "vrate": "must be 0.001 to 1",
         "vrate_l": "must be 0.001 to 1", "arrival_drop": "must be 0 or 1"}
# Minimum, maximum and default limit follow from the bandwidth.
SOME = {"bandwidth": 1000 * MBIT, "limit": 7777}
OPTIONS = [(kind, name) for kind in KINDS for name in KNOBS[kind]]


@each(KINDS)
def option_bandwidth_of_CASE_has_to_be_given(kind):
    text = f"{kind}: bandwidth is required"
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
        lib_extra.refuses_malformed(wire.request, kind, name, number, struct.pack(form, BOUNDS[name][1]))
        expect_equal(wire.stats()["raw"], before, "options afterwards")


@each(KINDS)
def option_of_CASE_that_is_unknown_is_refused(kind):
    """Those of one alone are unknown to the other."""
    with Wire(kind, **SOME) as wire:
        before = wire.stats()["raw"]
        lib_extra.refuses_unknown(wire.request, kind, pack(kind, limit=5),
                                  (0, 1, 14, 15, 100, 0x3fff, *((9, 10, 11, 12) if kind == "csaqm" else (13,))))
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
                      "vrate": rng.randrange(900, 1001), "vrate_l": rng.randrange(1, 901),
                      "arrival_drop": rng.randrange(2)}
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


# Buffers

@each(KINDS)
def buffer_of_CASE_is_of_so_many_bytes(kind):
    """50 ms and 200 ms, 500 ms: packets beyond them are dropped and counted, however short they are."""
    with gated(kind, bandwidth=8 * MBIT) as (wire, model):
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


@each((0, 1))
def buffer_that_is_full_drops_by_value_with_arrival_drop_CASE(arrival_drop):
    """Each packet, as the model has it: of the queue with the option, otherwise the one that arrives."""
    knobs = {"bandwidth": 5000, "buffer": 4000000, "target": 1000000, "arrival_drop": arrival_drop} | SLOW
    with Wire("csaqm", **knobs) as wire:
        model, rng = Model("csaqm", **knobs), random.Random(17)
        # On the link for 0.2 s, while the others arrive.
        fill(wire, model, rng, 1, (VALUE_MAX,), (ECT0,), (1000,))
        model.leave()
        fill(wire, model, rng, 40, range(65536), sizes=(400, 700, 1000))
        model.update()
        expect_equal(state_of(refresh(wire)), model.state(), "full")
        for turn in range(60):
            fill(wire, model, rng, 1, range(65536), sizes=(60, 400, 1000))
            st = wire.stats()
            expect_equal(state_of(st), model.state(), f"packet {turn}")
            expect_equal(st["c"]["dropped_value"], len(model.replaced), "dropped_value")
            check_accounts(st)
        expect_between(len(model.replaced), 2 * arrival_drop, 60 * arrival_drop, "packets that gave way")
        want = {}
        while any(model.waiting.values()):
            want |= dict(model.leave())
        wire.idle()
        expect_equal([number for _, number, _ in wire.arrivals()][1:],
                     [number for number, verdict in want.items() if verdict != "drop"], "packets that left")


@test()
def buffer_with_arrival_drop_keeps_the_last_packet():
    """It is below the threshold and in the way, but parents may not see a child become empty."""
    lines = "qdisc add dev w0 root handle 1: drr\nclass add dev w0 parent 1: classid 1:1 drr\n" \
            "filter add dev w0 parent 1: matchall classid 1:1\n"
    with Wire("csaqm", mtu=9000, lines=lines, parent="1:1", bandwidth=5000, target=1, buffer=1, arrival_drop=1,
              **SLOW) as wire:
        wire.send(wire.frame(60, ECT0), value=VALUE_MAX)
        wire.send(wire.frame(3500, ECT0), value=9)
        expect_equal(refresh(wire)["c"]["threshold"], 10, "threshold")
        expect_equal(wire.send(wire.frame(3500, ECT0), value=VALUE_MAX, may_drop=True), 0, "taken, beyond 6056 bytes")
        st = wire.stats()
        expect_equal((st["c"]["packets"], st["c"]["dropped_buffer"], st["c"]["dropped_value"]), (1, 1, 0),
                     "packets, dropped_buffer, dropped_value")
        # Two that wait: one may go.
        wire.send(wire.frame(1000, ECT0), value=VALUE_MAX)
        expect_equal(wire.send(wire.frame(3500, ECT0), value=VALUE_MAX), 1, "taken")
        dump = wire.dump()
        expect_equal((dump["10:"]["c"]["packets"], dump["10:"]["c"]["dropped_value"]), (2, 1), "packets, dropped_value")
        expect_equal((dump["1:"]["qlen"], dump["1:"]["backlog"]), (2, 4500), "in drr")
        wire.idle()
        expect_equal(len(wire.arrivals()), 3, "packets that left")


@test()
def buffer_of_a_virtual_queue_is_of_so_many_bytes_and_records():
    """The queue is idle, but the qdisc accepts no more packets: the virtual queue is not served here."""
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
    with gated(kind, bandwidth=100 * MBIT, limit=20) as (wire, model):
        fill(wire, model, random.Random(1), 50, range(65536), sizes=(60,))
        st = wire.stats()
        expect_equal((st["qlen"], total(st, "dropped_limit"), total(st, "dropped_buffer")), (20, 31, 0),
                     "packets, dropped_limit, dropped_buffer")
        model.update()
        expect_equal(state_of(refresh(wire)), model.state(), "state")


# Values


@each([(kind, carry) for kind in KINDS for carry in (0, 1)], name=carried)
def value_of_CASE_is_read_where_it_is_carried(case):
    """Packets without one count as value 0, are counted, and are the first to get a signal."""
    kind, carry = case
    with gated(kind, bandwidth=40 * MBIT, carry=carry, **SLOW) as (wire, model):
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
    with gated(kind, **knobs) as (wire, model):
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
    with Wire(kind, gate=True, bandwidth=1000 * MBIT, target=1000, **ROOMY[kind] | SLOW) as wire:
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
    with gated(kind, **knobs) as (wire, model):
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
            if kind == "csaqm":
                values["arrival_drop"] = rng.randrange(2)
            else:
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


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("csaqm", "ppv"))
