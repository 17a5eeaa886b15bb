#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_ppv_parents.py - the qdisc ppv: its accounts and those of what is above and below it, GSO, packets of every kind.
"""

import functools
import math
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import ECNS, IPV4_ID, MARK, check_accounts, of, pack, total

import frames
import hostile
import lib
import packets
from lib import ECT0, ECT1, NOT_ECT, Net, Stream, each, expect, expect_equal, note, run, tc, test
from parents import AGREEING, Account, Kind, Tree, spare_qfq
from lib_ppv import MBIT, LINE, PpvWire, in_carry

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
            expect_equal(tree.dump()["10:"]["qlen"], 1, "packets queued")
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


def rig_of(rate, cls=lib_extra.Rig, bridge=False, carry=MARK):
    """TAP devices, and ppv with a csaqm below it on one of them."""
    return cls(rate, [("10:", "1:10", "ppv", pack("ppv", carry=carry)),
                      ("20:", "10:1", "csaqm", pack("csaqm", bandwidth=1000 * MBIT, limit=100000, buffer=4000000,
                                                    target=4000000, carry=carry))], of, check_accounts, bridge)


@each([(how, carry) for how in ("socket", "ring", "bridge") for carry in (MARK, IPV4_ID)],
      name=in_carry)
def frames_of_every_kind_by_CASE_have_a_value_or_are_left_alone(case):
    """With the mark every frame has one and not a bit changes; with the Identification those of atomic IPv4."""
    injector, carry = case
    with rig_of("20mbit", bridge=injector == "bridge", carry=carry) as rig:
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
        expect_equal(below["packets"], st["packets"], "packets of csaqm, of ppv")
        count = len(load.sent) + len(special)
        expect_equal((st["valued"], st["not_valued"]), (count, 0) if carry == MARK else
                     (atomic + len(special), count - atomic - len(special)), "valued, not valued")
        expect_equal(total(below, "arrived"), count, "arrived at csaqm")
        expect_equal(total(below, "no_value"), 0 if carry == MARK else count - atomic - len(special),
                     "without a value at csaqm")


@test()
def gso_of_every_kind_is_accounted_for():
    with hostile.no_splat(), rig_of("50mbit", lib_extra.GsoRig) as rig:
        st, below = lib_extra.every_gso(rig, ECT0, lambda st: st["packets"], lambda st: st["valued"])
        expect_equal(st["drops"], st["gso_failed"], "drops, not split")
        expect_equal((total(below, "no_value"), total(below, "arrived"), below["packets"]),
                     (0, st["valued"], st["packets"]), "at csaqm")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("ppv", "csaqm"))
