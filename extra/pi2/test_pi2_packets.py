#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_pi2_packets.py - the qdisc pi2: GSO, parents, packets of every kind, options, statistics, the module.
"""

import contextlib
import errno
import functools
import json
import os
import shlex
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra

import frames
import hostile
import lib
import packets
from lib import (CE, CODEPOINTS, ECT0, ECT1, NOT_ECT, Failure, Net, Stream, each, expect, expect_between, expect_equal,
                 run, shared_net, tc, test)
from parents import AGREEING, Account, Kind, Tree
from lib_pi2 import KNOBS, DEFAULTS, LONGEST_US, ECN_OF, RISING, AT_CAP, CALM, encode, total, check_accounts, of, Pi2

# GSO, parents

def account(st):
    """For Tree.check_all()."""
    return Account([st[name]["arrived"] for name in CODEPOINTS], total(st, "forwarded"),
                   total(st, "dropped_aqm", "dropped_limit", "purged"))


PI2 = Kind("pi2", encode, of, check_accounts, account)


@each(AGREEING)
def parent_CASE_agrees_with_its_child(name):
    """Packets and GSO packets of all codepoints, in a queue that runs full, empty, and drops."""
    with Tree(name, "1mbit", kind=PI2, limit=30, target=2000, tupdate=2000, alpha=2000, beta=2000) as tree:
        for turn in range(10):
            for _ in range(15):
                for ecn in (NOT_ECT, ECT1, ECT0, CE):
                    tree.mix.send(ecn, 300 + 100 * turn)
            tree.check_now("packets")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
        for ecn in 5 * (NOT_ECT, ECT1, ECT0, CE):
            tree.mix.send(ecn, 500)
        tree.change(limit=5)
        tree.check_now("a lower limit")
        leaves = tree.check_all()
        if name not in ("root", "qfq_alone", "mq"):
            for kind in ("dropped_limit", "dropped_aqm", "purged", "marked"):
                # netem has taken out what a lower limit could purge.
                expect((name, kind) == ("netem", "purged") or total(leaves[0], kind) > 4, f"{kind}: {leaves[0]}")
        tree.change(limit=30)
        for turn in range(12):
            for ecn in (NOT_ECT, ECT1, ECT0, CE):
                tree.mix.send(ecn, 300 + 100 * turn)
                tree.check_now("a packet")
                tree.mix.gso(ecn, 2 + turn, 700, 100 + turn, v6=bool(turn & 1))
                tree.check_now("a GSO packet")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
        tree.check_all(exact_drops=False)
        # And it is not stuck.
        for _ in range(5):
            tree.mix.send(ECT1)
        tree.check_all(exact_drops=False)


@each(lib_extra.ONE_PARENTS)
def gso_of_which_one_segment_fits_under_CASE_counts_as_that_segment(name):
    """A limit of one packet, and the queue is empty: parents half-way up are, too."""
    with hostile.no_splat(), Tree(name, lib_extra.ONE_RATE, kind=PI2, limit=1, **CALM) as tree:
        lib_extra.one_segment_counts_as_itself(tree, check_accounts)


@each(lib_extra.ONE_GOES, name="_with_".join)
def gso_of_which_one_segment_fits_under_CASE_leaves_no_bytes(case):
    name, what = case
    with hostile.no_splat(), Tree(name, lib_extra.ONE_RATE, kind=PI2, limit=1, **CALM) as tree:
        lib_extra.one_segment_goes(tree, functools.partial(check_accounts, was_reset=what == "reset"), what)


@each(lib_extra.ONE_PARENTS)
def gso_cut_by_drop_enqueue_under_CASE_parent_agrees(name):
    """Drops anywhere in the burst: with k = 2 a quarter of the segments, with k = 1 all but the first few."""
    with hostile.no_splat(), Tree(name, "1mbit", kind=PI2, drop_enqueue=1, **AT_CAP) as tree:
        for k in (2, 1):
            tree.change(coupling=k)
            for _ in range(25):
                tree.mix.gso(NOT_ECT, 10, 500)
                tree.check_now("drop_enqueue")
                time.sleep(0.01)
            tree.drain()
        st = tree.check_all(exact_drops=False)[0]
        expect_between(total(st, "dropped_aqm"), 100, 400, "dropped on arrival, of 500")
        expect_equal(total(st, "dropped_limit", "purged"), 0, "other drops")


@test()
def gso_is_split_whole_lists_too_and_each_segment_gets_its_own_signal():
    with Net(offloads=True) as net, Pi2(net, limit=100000, coupling=1, **AT_CAP) as q:
        result = net.traffic(4, *(Stream(name, ecn=ECN_OF[name], pps=1600, size=1000, gso=8, burst=8)
                                  for name in ("ect1", "ect0", "ce")))
        q.until_idle()
        st = q.stats()
        for name in ("ect1", "ect0"):
            expect_equal(st[name]["arrived"], result[name].sent_ever, f"{name}: segments")
            expect(st[name]["marked"] > 0.95 * st[name]["forwarded"] > 1000, f"{name}: marked, {st[name]}")
            expect_equal(result[name].ecn[CE], st[name]["marked"], f"{name}: CE at the receiver")
        expect_equal(st["gso_failed"], 0, "not split")


@test()
def parent_multiq_gets_what_it_peeked_at():
    """multiq answers tbf's peek with a packet of its child's, and then takes that."""
    with Tree("tbf_multiq", "100kbit", kind=PI2, **CALM) as tree:
        for number in range(40):
            tree.mix.send(number % 4, 500)
        expect(max(total(st, "forwarded") for st in tree.check_all()) >= 10, "a child had ten packets")


# Packets

def rig_of(rate, cls=lib_extra.Rig, bridge=False, **knobs):
    """TAP devices, and pi2 on one of them."""
    return cls(rate, [("10:", "1:10", "pi2", encode(**knobs))], of, check_accounts, bridge)


def in_parts(injector, per_kind):
    """The kinds that may come this way, as many at a time as the sender has room for."""
    kinds = list(packets.kinds_for(injector))
    size = (frames.RingSender.SLOTS - 2 * FILLERS) // per_kind if injector == "ring" else len(kinds)
    return [kinds[begin:begin + size] for begin in range(0, len(kinds), size)]


# So many of 400 bytes are more than two packets of full size.
FILLERS = 10


@each(("socket", "ring", "bridge"))
def kinds_by_CASE_are_marked_byte_exact_or_left_alone(injector):
    """Every kind of frame with an ECN field, with every codepoint, where every ECT packet is marked."""
    with rig_of("100kbit", bridge=injector == "bridge", coupling=1, **AT_CAP) as rig:
        marks = 0
        for part in in_parts(injector, 3):
            load = packets.Load(rig.injector(injector))
            load.fill(FILLERS, CE, 400)
            for name, build, ip in part:
                for ecn in (ECT1, ECT0, CE) if ip is not None else ():
                    load.send(name, build, ip, ecn)
            load.fill(FILLERS, CE, 400)
            result = load.verdicts(rig.out.drain(4))
            wrong = [r for r in result if r[3] != ("same" if r[1] == CE else "marked")]
            expect(not wrong, f"{len(wrong)} of {len(result)} wrong: {wrong[:8]}")
            marks += sum(verdict == "marked" for *_, verdict in result)
        st = rig.check()[0]
        expect_equal((total(st, "marked"), st["mark_failed"], st["unparsed"]), (marks, 0, 0),
                     "marked, failed, unparsed")
        expect(marks > 80, f"{marks} marks")


@each(("socket", "ring", "bridge"))
def kinds_by_CASE_count_by_their_codepoint_and_garbage_as_not_ect(injector):
    """While no signals are given everything goes through unchanged."""
    with rig_of("1mbit", bridge=injector == "bridge", **CALM) as rig:
        sent, unparsed = [0] * 4, 0
        for part in in_parts(injector, 4):
            load = packets.Load(rig.injector(injector))
            for name, build, ip in part:
                for ecn in range(4):
                    before = len(load.sent)
                    load.send(name, build, ip, ecn)
                    if len(load.sent) > before:
                        sent[NOT_ECT if ip is None else ecn] += 1
                        unparsed += ip is None
            expect_equal({verdict for *_, verdict in load.verdicts(rig.out.drain(4))}, {"same"}, "what became of them")
        st = rig.check()[0]
        expect_equal([st[name]["arrived"] for name in CODEPOINTS], sent, "arrived, by codepoint")
        expect_equal(st["unparsed"], unparsed, "unparsed")
        expect(unparsed > 20, f"{unparsed} without an IP header")


@test()
def garbage_is_dropped_as_not_ect():
    with rig_of("100kbit", coupling=1, **AT_CAP) as rig:
        load = packets.Load(rig.injector("socket"))
        load.fill(8, CE, 1514)
        count = 0
        for name, build, ip in packets.kinds_for("socket"):
            if ip is None:
                load.send(name, build, ip, ECT1)
                count += 1
        load.fill(8, CE, 1514)
        result = load.verdicts(rig.out.drain(4))
        st = rig.check()[0]
        lost = sum(verdict == "lost" for *_, verdict in result)
        expect_equal(st["not_ect"]["dropped_aqm"], lost, "dropped, lost")
        expect_between(lost, count - 2 - count // 65, count, f"lost of {count}")


@test()
def last_packet_is_not_dropped_however_long_it_is():
    """It alone is more than two packets of full size; a parent is not to see its child run empty inside dequeue."""
    with rig_of("400kbit", coupling=1, **AT_CAP) as rig:
        for turn in range(1, 4):
            load = packets.Load(rig.injector("socket"))
            load.fill(12, NOT_ECT, 5000)
            verdicts = [verdict for *_, verdict in load.verdicts(rig.out.drain(4))]
            # One leaves at once, before p' has risen.
            expect_equal((verdicts[-1], verdicts.count("same")), ("same", 2), f"the last one, in turn {turn}")
        rig.check()


@test()
def last_packet_is_dropped_with_drop_enqueue():
    """It was not queued yet: no parent sees a child become empty. p' rises under load, and stays."""
    with rig_of("400kbit", coupling=1, drop_enqueue=1, **RISING) as rig:
        load = packets.Load(rig.injector("socket"))
        load.fill(24, NOT_ECT, 5000)
        load.verdicts(rig.out.drain(4))
        before = rig.check()[0]
        for _ in range(10):
            load.fill(1, NOT_ECT, 5000)
            time.sleep(0.3)
        st = rig.check()[0]
        expect_equal(st["max_packets"], before["max_packets"], "packets in the queue, maximum")
        expect_between(st["p"], 0.95, 1, "p'")
        expect_between(total(st, "dropped_aqm") - total(before, "dropped_aqm"), 9, 10, "dropped of 10")


@test()
def gso_of_every_kind_and_lie_is_accounted_for():
    with hostile.no_splat(), rig_of("1mbit", lib_extra.GsoRig, **CALM) as rig:
        lib_extra.every_gso(rig, ECT1, lambda st: total(st, "forwarded"), lambda st: total(st, "arrived"))


@test()
def ipv6_and_vlan_are_marked():
    with Net() as net:
        net.vlan(7)
        with Pi2(net, limit=100000, coupling=1, **AT_CAP) as q:
            dsts = {"v4": "10.2.0.1", "v6": "fd02::1", "vlan4": "10.3.0.1", "vlan6": "fd03::1"}
            result = net.traffic(4, *(Stream(f"{where}_{ecn}", ecn=ecn, bps=2e6, dst=dst)
                                      for where, dst in dsts.items() for ecn in (ECT1, ECT0)), warmup=1)
            q.until_idle()
            for stream in result.values():
                expect(stream.marked > 0.99 and stream.received > 500,
                       f"{stream.name}: {stream.marked:.3f} of {stream.received}")


# Options

BOUNDS = {"limit": (1, 2**32 - 1), "target": (1, LONGEST_US), "tupdate": (100, LONGEST_US), "alpha": (1, 2**31 - 1),
          "beta": (1, 2**31 - 1), "coupling": (1, 255), "ecn": (0, 1), "signal": (0, 1), "drop_enqueue": (0, 1),
          "square": (0, 1)}
BEYOND = {"limit": (0,), "target": (0, LONGEST_US + 1, 2**32 - 1), "tupdate": (0, 99, LONGEST_US + 1),
          "alpha": (0, 2**31, 2**32 - 1), "beta": (0, 2**31, 2**32 - 1), "coupling": (0,), "ecn": (2, 255),
          "signal": (2, 255), "drop_enqueue": (2, 255), "square": (2, 255)}
RANGE = {"limit": "limit must be at least 1 packet", "target": "target must be 1 us to 4294967 us",
         "tupdate": "tupdate must be 100 us to 4294967 us", "alpha": "alpha must be 1/256 Hz to (2^31 - 1)/256 Hz",
         "beta": "beta must be 1/256 Hz to (2^31 - 1)/256 Hz", "coupling": "coupling_factor must be 1 to 255",
         "ecn": "ecn must be 0 or 1", "signal": "signal must be 0 (recur) or 1 (random)",
         "drop_enqueue": "drop_enqueue must be 0 (drop_dequeue) or 1 (drop_enqueue)",
         "square": "square must be 0 (no_square) or 1 (square)"}
# Two words each, by the key in JSON; the first one sets 0.
FLAGS = {"ecn": ("noecn", "ecn"), "drop-enqueue": ("drop_dequeue", "drop_enqueue"), "square": ("no_square", "square")}


@test()
def options_not_given_have_their_defaults():
    with Pi2(shared_net()) as q:
        expect_equal(q.stats()["knobs"], DEFAULTS, "defaults")
    with Pi2(shared_net(), args="") as q:
        expect_equal(q.stats()["knobs"], DEFAULTS, "defaults by tc")


@each(BOUNDS)
def option_CASE_is_accepted_at_its_bounds_and_refused_beyond(name):
    with Pi2(shared_net(), limit=77, coupling=3) as q:
        q.ecn_was_off = True
        state = DEFAULTS | {"limit": 77, "coupling": 3}
        for value in BOUNDS[name]:
            state[name] = value
            q.set(**{name: value})
            expect_equal(q.stats()["knobs"], state, f"after {name} {value}")
        for value in BEYOND[name]:
            # What is right in the same request is not applied either.
            first, last = (encode(limit=5), b"") if name != "limit" else (b"", encode(target=5))
            for options in (first + encode(**{name: value}) + last, encode(**{name: value})):
                expect_equal(q.change(options), (errno.EINVAL, "pi2: " + RANGE[name]), f"{name} {value}")
            expect_equal(q.stats()["knobs"], state, f"after {name} {value}")
            expect_equal(lib_extra.request(q.netns, "up", "20:", "root", "pi2", encode(**{name: value})),
                         (errno.EINVAL, "pi2: " + RANGE[name]), f"new with {name} {value}")


@each(BOUNDS)
def option_CASE_of_wrong_length_or_twice_is_refused(name):
    with Pi2(shared_net()) as q:
        kind, form = KNOBS[name]
        word = "coupling_factor" if name == "coupling" else name
        lib_extra.refuses_malformed(q.change, "pi2", word, kind, struct.pack(form, DEFAULTS[name]))
        expect_equal(q.stats()["knobs"], DEFAULTS, "options afterwards")


@test()
def option_that_is_unknown_is_refused():
    with Pi2(shared_net()) as q:
        lib_extra.refuses_unknown(q.change, "pi2", encode(limit=5), (0, 11, 12, 100, 0x3fff))
        expect_equal(q.stats()["knobs"], DEFAULTS, "options afterwards")


ARGS = {
    "limit 1": {"limit": 1}, "limit 4294967295p": {"limit": 2**32 - 1}, "limit 12p": {"limit": 12},
    "limit 1e3": {"limit": 1000},
    "target 1us": {"target": 1}, "target 5ms": {"target": 5000}, "target 1.5ms": {"target": 1500},
    "target 4.294967s": {"target": LONGEST_US}, "target 7": {"target": 7}, "target 2.6us": {"target": 3},
    "tupdate 100us": {"tupdate": 100}, "tupdate 1s": {"tupdate": 1000000}, "tupdate 3msecs": {"tupdate": 3000},
    "alpha 0.3125": {"alpha": 80}, "alpha 0.625Hz": {"alpha": 160}, "alpha 0.00390625": {"alpha": 1},
    "beta 3.125": {"beta": 800}, "beta 8388607.99609375": {"beta": 2**31 - 1},
    "coupling_factor 1": {"coupling": 1}, "coupling_factor 255": {"coupling": 255},
    "ecn": {"ecn": 1}, "noecn": {"ecn": 0}, "signal recur": {"signal": 0}, "signal random": {"signal": 1},
    "drop_dequeue": {"drop_enqueue": 0}, "drop_enqueue": {"drop_enqueue": 1},
    "square": {"square": 1}, "no_square": {"square": 0},
    "limit 5 target 1ms tupdate 2ms alpha 1 beta 2 coupling_factor 3 noecn signal random drop_enqueue no_square":
        {"limit": 5, "target": 1000, "tupdate": 2000, "alpha": 256, "beta": 512, "coupling": 3, "ecn": 0, "signal": 1,
         "drop_enqueue": 1, "square": 0},
}
TIMES = "1us to 4.294967s"
GAINS = "0.00390625Hz to 8388607.99609375Hz"
WRONG_ARGS = {
    "limit": "limit: the value is missing; expected 1p to 4294967295p",
    "limit 0": 'limit: "0" is not in range; expected 1p to 4294967295p',
    "limit 4294967296": 'limit: "4294967296" is not in range; expected 1p to 4294967295p',
    "limit 1.5": 'limit: "1.5" is not a number of packets; expected 1p to 4294967295p',
    "limit -1": 'limit: "-1" is not a number of packets; expected 1p to 4294967295p',
    "limit 0x10": 'limit: "0x10" is not a number of packets; expected 1p to 4294967295p',
    "limit 5ms": 'limit: "5ms" is not a number of packets; expected 1p to 4294967295p',
    "limit 1111111111111111111111111": 'limit: "1111111111111111111111111" is not in range; '
                                       "expected 1p to 4294967295p",
    "limit ''": 'limit: "" is not a number of packets; expected 1p to 4294967295p',
    "target 0": f'target: "0" is not in range; expected {TIMES}',
    "target 0.4us": f'target: "0.4us" is not in range; expected {TIMES}',
    "target 5s": f'target: "5s" is not in range; expected {TIMES}',
    "target 1.2.3ms": f'target: "1.2.3ms" is not a time; expected {TIMES}',
    "target .": f'target: "." is not a time; expected {TIMES}',
    "target nan": f'target: "nan" is not a time; expected {TIMES}',
    "target 5m": f'target: "5m" is not a time; expected {TIMES}',
    "tupdate 99us": 'tupdate: "99us" is not in range; expected 100us to 4.294967s',
    "alpha 0": f'alpha: "0" is not in range; expected {GAINS}',
    "beta 8388608": f'beta: "8388608" is not in range; expected {GAINS}',
    "beta 1kHz": f'beta: "1kHz" is not a number of Hz; expected {GAINS}',
    "coupling_factor 0": 'coupling_factor: "0" is not in range; expected 1 to 255',
    "coupling_factor 256": 'coupling_factor: "256" is not in range; expected 1 to 255',
    "coupling_factor two": 'coupling_factor: "two" is not a number; expected 1 to 255',
    "signal": "signal: the value is missing; expected recur or random",
    "signal both": 'signal: "both" is unknown; expected recur or random',
    "ecn noecn": "noecn: conflicts with ecn; use one of the two",
    "drop_enqueue drop_dequeue": "drop_dequeue: conflicts with drop_enqueue; use one of the two",
    "square no_square": "no_square: conflicts with square; use one of the two",
    "limit 5 limit 5": 'limit: given twice, the second time with "5"; expected once',
    "signal recur signal recur": 'signal: given twice, the second time with "recur"; expected once',
    "bytemode": 'unknown option "bytemode"; see: tc qdisc add pi2 help',
    "dq_rate_estimator": 'unknown option "dq_rate_estimator"; see: tc qdisc add pi2 help',
}


@test()
def words_say_what_the_options_say():
    with Pi2(shared_net(), args="") as q:
        q.ecn_was_off = True
        state = dict(DEFAULTS)
        for args, knobs in ARGS.items():
            tc(f"qdisc change dev down parent 1:10 handle 10: pi2 {args}", q.netns)
            state |= knobs
            expect_equal(q.stats()["knobs"], state, args)


@test()
def words_that_are_wrong_are_refused_with_a_text():
    with Pi2(shared_net(), args="limit 77") as q:
        for args, text in WRONG_ARGS.items():
            right = "beta 9" if args.startswith("target") else "target 9ms"
            done = tc(f"qdisc change dev down parent 1:10 handle 10: pi2 {right} {args}", q.netns, check=False)
            expect(done.returncode, f"{args} was accepted")
            expect_equal(done.stderr.splitlines()[0], f"pi2: {text}", args)
        expect_equal(q.stats()["knobs"], DEFAULTS | {"limit": 77}, "options afterwards")
        done = tc("qdisc add dev down root pi2 help", q.netns, check=False)
        expect(done.returncode and done.stderr.startswith("Usage: ... pi2 [ limit PACKETS ]"), done.stderr)
        for word in ("limit", "target", "tupdate", "alpha", "beta", "coupling_factor", "ecn", "noecn", "signal",
                     "recur", "random", "drop_enqueue", "drop_dequeue", "square", "no_square"):
            expect(word in done.stderr.split(), f"{word} is not in the help")


def once(pairs):
    """A JSON object in which each name is unique, those of tc and those of the kind."""
    names = [name for name, _ in pairs]
    expect_equal(sorted(set(names)), sorted(names), "names")
    return dict(pairs)


def shown(q):
    """(args of the options as text, the options as JSON, all of JSON, text with statistics)"""
    line = tc("qdisc show dev down", q.netns).stdout
    line = next(one for one in line.splitlines() if one.startswith("qdisc pi2 10:"))
    whole = next(one for one in json.loads(tc("-s -j qdisc show dev down", q.netns).stdout, object_pairs_hook=once)
                 if one.get("handle") == "10:")
    return line.split("parent 1:10", 1)[1], whole["options"], whole, tc("-s qdisc show dev down", q.netns).stdout


@each((0, 1, 2, 3), name=lambda n: ("defaults", "least", "greatest", "others")[n])
def options_shown_of_CASE_set_the_same_again(number):
    """Of text and of JSON, which has six digits of a gain."""
    knobs = ({}, {name: bounds[0] for name, bounds in BOUNDS.items()},
             {name: bounds[1] for name, bounds in BOUNDS.items()},
             {"limit": 1234567, "target": 123456, "tupdate": 1000001, "alpha": 41, "beta": 819, "coupling": 17,
              "ecn": 0, "signal": 1, "drop_enqueue": 1, "square": 0})[number]
    with Pi2(shared_net(), **knobs) as q:
        q.ecn_was_off = True
        want = DEFAULTS | knobs
        text, options, *_ = shown(q)
        q.set(**{name: not want[name] if BOUNDS[name] == (0, 1) else 3 if name in ("limit", "coupling") else 500
                 for name in KNOBS})
        expect(not set(q.stats()["knobs"].items()) & set(want.items()), "all is different")
        tc(["qdisc", "change", "dev", "down", "parent", "1:10", "handle", "10:", "pi2", *text.split()], q.netns)
        expect_equal(q.stats()["knobs"], want, f"from the text {text}")
        if number == 2:
            return
        args = [FLAGS[key][value] if key in FLAGS else f"{key.replace('-', '_')} {value}"
                for key, value in options.items()]
        q.set(limit=3, alpha=999, ecn=not want["ecn"], drop_enqueue=not want["drop_enqueue"],
              square=not want["square"])
        tc(["qdisc", "change", "dev", "down", "parent", "1:10", "handle", "10:", "pi2", *shlex.split(" ".join(args))],
           q.netns)
        expect_equal(q.stats()["knobs"], want, f"from JSON {options}")


@test()
def statistics_as_text_and_json_are_those_of_netlink():
    with Net() as net, Pi2(net, limit=100, target=2000) as q:
        _, _, whole, _ = shown(q)
        expect_equal(whole["delay-mean-ns"], None, "mean delay of no packet")
        net.traffic(8, *(Stream(name, ecn=ECN_OF[name], bps=8e6) for name in CODEPOINTS))
        q.until_idle()
        q.set(tupdate=LONGEST_US)
        st = q.stats()
        _, _, whole, text = shown(q)
        for name in CODEPOINTS:
            as_json = whole[name.replace("_", "-")]
            expect_equal({key.replace("-", "_"): value for key, value in as_json.items()}, st[name], name)
        for key in ("arrived_bytes", "forwarded_bytes", "dropped_bytes", "purged_bytes", "delay_sum_ns", "delay_max_ns",
                    "delay_ns", "capped_count", "capped_ns", "mark_failed", "gso_failed", "unparsed", "max_packets"):
            expect_equal(whole[key.replace("_", "-")], st[key], key)
        for key in ("packets", "bytes"):
            expect_equal(whole[f"queued-{key}"], st[key], f"{key} that wait")
        expect_equal(whole["delay-mean-ns"], st["delay_sum_ns"] // total(st, "forwarded"), "mean")
        expect_equal(whole["capped"], bool(st["capped"]), "capped")
        for key, p in (("prob", "p"), ("prob-classic", "p_c"), ("prob-scalable", "p_s")):
            expect(abs(whole[key] - st[p]) < 2e-6, f"{key}: {whole[key]}, {st[p]}")
        for line in (f"ect0: arrived {st['ect0']['arrived']} forwarded {st['ect0']['forwarded']} marked "
                     f"{st['ect0']['marked']} dropped (aqm 0, limit {st['ect0']['dropped_limit']}, purged 0)",
                     f"queued 0 (0 bytes) max {st['max_packets']}",
                     f"bytes: arrived {st['arrived_bytes']} forwarded {st['forwarded_bytes']} dropped "
                     f"{st['dropped_bytes']} purged 0", "mark_failed 0 gso_failed 0 unparsed 0"):
            expect(line in text, f"{line} is not in {text}")


@test()
def idle_instance_forgets_its_p():
    """Without a timer: what a dump shows, and what the next packet meets, is what updates would have led to."""
    with Net() as net, Pi2(net, limit=100) as q:
        net.start(60, Stream("flood", bps=20e6, stop=4))
        for state in ("packets", "no packets"):
            for _ in range(1000):
                if bool(q.stats()["packets"]) == (state == "packets") and q.stats()["capped_count"]:
                    break
                time.sleep(0.01)
            else:
                raise Failure(f"never {state}")
        # The fall of the delay counts with the first update after it.
        time.sleep(0.05)
        first = q.stats()["p"]
        expect_between(first, 0.15, 0.4, "p' when the queue is empty")
        time.sleep(0.4)
        # 20 ms below the target, at 0.3125 Hz, every 32 ms.
        expect_between(first - q.stats()["p"], 0.3125 * 0.02 * 0.36 / 0.032, 0.3125 * 0.02 * 0.44 / 0.032,
                       "fall of p' in 400 ms without packets")
        time.sleep(5)
        expect_equal(q.stats()["prob"], 0, "p' after 5 s without packets")


@test()
def module_goes_when_no_instance_is_left():
    with Net() as net:
        with Pi2(net):
            expect(run("rmmod sch_pi2", check=False).returncode, "the module went with an instance")
        run("rmmod sch_pi2")
        lib_extra.load("pi2")
        with contextlib.ExitStack() as stack:
            stack.enter_context(Pi2(net))


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("pi2"))
