#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_csaqm_parents.py - the qdiscs csaqm and vdq_csaqm: the last packet, parents, GSO, packets of every kind, instances.
"""

import contextlib
import functools
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_extra import check_zero
from lib_values import (DROPS, ECNS, IPV4_ID, KINDS, LONGEST_US, VALUE_MAX, ValueTree, Wire, check_accounts, of,
                        pack, state_of, total, tvf)

import frames
import hostile
import lib
import packets
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, Net, Stream, each, expect, expect_equal, note, run, tc
from parents import AGREEING, ONE_LEAF, spare_qfq
from lib_csaqm import MBIT, CALM, SLOW, ROOMY, gated, refresh, text_of, carried

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
            # It waits for the serialization time of the first one.
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
    with gated(kind, bandwidth=40 * MBIT, **SLOW | ROOMY[kind]) as (wire, model):
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

def rig_of(cls, rate, kind, bridge=False, **knobs):
    """TAP devices, and one of the kinds on one of them."""
    return cls(rate, [("10:", "1:10", kind, pack(kind, **knobs))], of, check_accounts, bridge)


@each([(kind, how) for kind in KINDS for how in ("socket", "ring", "bridge")], name=text_of)
def frames_of_every_kind_below_CASE_are_marked_byte_exact_or_left_alone(case):
    """Values are in the Identification, so that next to nothing has one: all that can be is marked, all else dropped
    or unchanged.
    """
    kind, injector = case
    with rig_of(lib_extra.Rig, "1mbit", kind, bridge=injector == "bridge", bandwidth=1000 * MBIT, target=1,
                tupdate=LONGEST_US, carry=IPV4_ID, limit=100000, buffer=LONGEST_US,
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
                     "thresholds recomputed")
        threshold = rig.stats()["c"]["threshold"]
        expect_equal(threshold, 1, "all is beyond the target, and has value 0")
        result = load.verdicts(rig.out.drain(6))
        st = rig.check()[0]
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
    with hostile.no_splat(), rig_of(lib_extra.GsoRig, "50mbit", kind, bandwidth=100 * MBIT, limit=100000,
                                    **CALM[kind]) as rig:
        lib_extra.every_gso(rig, ECT0, lambda st: total(st, "forwarded"), lambda st: total(st, "arrived"))


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
    """Two unresponsive streams with 1.5 times the link rate together: one value has all of it."""
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
