#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""
test_link.py - the link behind dualpi2: its own shaper, lengths on the link, ingress mode, NQB, bursts.

When a packet left is what the other end of a veth says, by the kernel's stamp on arrival; how long it should have
taken is worked out here from its bytes. On the kernels of scripts/debug-kernel.sh, where computing takes no time, the
two agree to the nanosecond; under QEMU, where an instruction takes one, to what it costs to send a packet.

This is not the place for the arithmetic (selftests/unit/test_link.c), the words of tc, or how well senders do behind
it (selftests/lab).
"""
import itertools
import random
import socket
import struct
import time

import frames
import hostile
import lib
from lib import (
    ATM,
    CE,
    ECT0,
    ECT1,
    NOATM,
    NOT_ECT,
    PTM,
    RAW,
    Stream,
    each,
    expect,
    expect_between,
    expect_equal,
    note,
    pack,
    shared_net,
    test,
)
from options import OPTIONS, outside, some_value
from trees import CALM, ECNS, RED, SFB, SHAPER_PARENTS, UDP_SEGMENT, Tree, spare_qfq
from wire import COST_NS, EXACT, MS, ROOMY, SEC, Wire, bits, expect_schedule, stamps

NQB = 45


# The shaper

RATES = (100e3, 1e6, 4e6, 40e6, 200e6, 1e9, 10e9) if EXACT else (100e3, 1e6, 4e6, 40e6)


@each(RATES, ("shaper",), lambda rate: f"{rate:.0f}bit")
def shaper_CASE_packets_leave_at_their_time(rate):
    """Of all sizes and both queues, all at once: each a packet's time after the one before."""
    rng = random.Random(3)
    with Wire(bandwidth=bits(rate)) as wire:
        some = {}
        for _ in range(60 if rate < 1e6 else 400):
            frame = wire.udp(rng.choice((46, 200, 1000, 1500)), rng.choice(ECNS))
            some[frames.number_of(frame)] = len(frame)
        begun = time.clock_gettime_ns(time.CLOCK_REALTIME)
        numbers = itertools.count(1)
        rng = random.Random(3)
        wire.numbers = numbers
        for _ in some:
            wire.send(wire.udp(rng.choice((46, 200, 1000, 1500)), rng.choice(ECNS)))
        wire.idle()
        got = wire.arrivals()
        expect_equal({number for _, number, _ in got}, set(some), "packets that left")
        expect_between((got[0][0] - begun) / 1000, 0, 1 if EXACT else 5000, "wait of the first one, us")
        expect_schedule(stamps(got), [some[number] for _, number, _ in got], bits(rate), f"{rate:.0f} bit/s")


@test("shaper")
def shaper_rate_with_and_without_gso_and_overhead_is_exact():
    """At 4, 40 and 200 Mbit/s the link takes what was given to it, to 0.1 %: single packets, GSO packets that are
    split, and whole ones.
    """
    parts, ip = 20, 1040        # segments of a GSO packet; bytes of each, IP and TCP headers included
    with Wire(bandwidth=1000) as wire:
        for rate, (framing, overhead), (gso, split) in itertools.product(
                (4e6, 40e6, 200e6) if EXACT else (4e6, 40e6),
                ((RAW, 0), (NOATM, 38), (ATM, 40), (PTM, 30)), ((0, 1), (1, 1), (1, 0))):
            wire.change(bandwidth=bits(rate), split_gso=split, framing=framing,
                        **({"overhead": overhead} if framing else {}))
            count = 60 if rate < 1e7 else 400
            for _ in range(count // parts):
                if gso:
                    expect(wire.gso(1000 * parts, 1000), "a GSO packet was refused")
                else:
                    wire.send(*(wire.udp(ip) for _ in range(parts)))
            wire.idle()
            got = stamps(wire.arrivals())
            one = ip + 14 if framing == RAW else wire_bytes(framing, ip, overhead)
            whole = gso and not split
            expect_equal(len(got), count // parts if whole else count, "frames at the far end")
            passed = (len(got) - 1) * one * (parts if whole else 1)
            error = passed * SEC / bits(rate) / (got[-1] - got[0]) - 1
            note(f"{rate / 1e6:.0f} Mbit/s, framing {framing}, gso {gso}, split {split}: {100 * error:+.4f} %")
            expect(abs(error) <= 0.001, f"rate error {100 * error:.3f} %")
        # GSO packets that left whole are as many packets as they have segments.
        wire.change(split_gso=0)


@test("shaper")
def shaper_after_idle_time_gives_no_burst():
    with Wire(bandwidth=bits(10e6)) as wire:
        for pause in (0, 0.001, 0.005, 0.02, 1, 10):
            wire.send(wire.udp(986))
            wire.idle()
            time.sleep(pause)
            wire.arrivals()
            wire.send(*(wire.udp(986) for _ in range(20)))
            wire.idle()
            expect_schedule(stamps(wire.arrivals()), [1000] * 20, bits(10e6), f"after {pause} s")


@test("shaper")
def shaper_off_lets_all_through_at_once():
    with Wire() as wire:
        wire.send(*(wire.udp(986) for _ in range(50)))
        got = wire.arrivals()
        expect_equal(len(got), 50, "packets at the far end")
        expect(EXACT is False or got[-1][0] == got[0][0], "packets waited")
        st = wire.stats()
        expect_equal((st["link"]["throttled"], st["overlimits"], st["knobs"]["bandwidth"]), (0, 0, 0),
                     "throttled, overlimits, bandwidth")


@test("shaper")
def shaper_of_any_rate_shows_itself_and_counts_waits():
    with Wire() as wire:
        for rate in (1000, 1001, 2**32, 2**32 - 1, 125000000000):
            wire.change(bandwidth=rate)
            st = wire.stats()
            expect_equal((st["knobs"]["bandwidth"], st["link"]["drain_rate"]), (rate, rate), "bandwidth, drain_rate")
        wire.change(bandwidth=bits(8e6))
        before = wire.stats()
        wire.send(*(wire.udp(986) for _ in range(10)))
        wire.idle()
        st = wire.stats()
        waits = st["link"]["throttled"] - before["link"]["throttled"]
        expect_equal(st["overlimits"] - before["overlimits"], waits, "overlimits, against throttled")
        # Nine packets waited; each one that came meanwhile asked too.
        expect_between(waits, 9, 20, "times that packets waited")


@test("shaper")
def shaper_change_of_rate_takes_effect_with_the_next_packet():
    """Up, down and off while packets wait: no stall, no burst."""
    one = 1000
    for first, then in ((1e6, 100e6), (100e6, 1e6), (1e6, 1e6), (64e3, 1e9), (1e9, 64e3), (10e6, 0)):
        with Wire(bandwidth=bits(first)) as wire:
            wire.send(*(wire.udp(one - 14) for _ in range(60)))
            time.sleep(5.5 * one / bits(first))
            wire.change(bandwidth=bits(then))
            at = time.clock_gettime_ns(time.CLOCK_REALTIME)
            wire.idle()
            got = stamps(wire.arrivals())
            expect_equal(len(got), 60, "packets that left")
            after = [ns for ns in got if ns > at]
            if not then:
                expect(got[-1] - at <= 60 * COST_NS, f"{got[-1] - at} ns until the last one, without a shaper")
                continue
            if len(after) < 2:
                expect(not EXACT, "all had left before the change")
                continue
            expect(after[0] - at <= SEC * 1514 / bits(then) + COST_NS,
                   f"{first:.0f} to {then:.0f} bit/s: {after[0] - at} ns until the first one")
            expect_schedule(after, [one] * len(after), bits(then), f"{first:.0f} to {then:.0f} bit/s")


@test("shaper")
def shaper_turned_on_while_packets_wait_gives_no_burst():
    """They wait for a parent of twice the rate, which takes whatever comes."""
    with Wire(parent="1:10", lines="""\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 8mbit ceil 8mbit burst 1600 cburst 1600 quantum 1514
""") as wire:
        wire.send(*(wire.udp(986) for _ in range(60)))
        time.sleep(0.02)
        wire.change(bandwidth=bits(4e6))
        at = time.clock_gettime_ns(time.CLOCK_REALTIME)
        wire.idle()
        got = [ns for ns in stamps(wire.arrivals()) if ns > at]
        expect(len(got) > 30, f"only {len(got)} packets left after the change")
        expect(got[0] - at <= MS + COST_NS, f"the first one left after {got[0] - at} ns")
        # The first one may have waited for the parent, which the second one need not.
        expect_schedule(got[1:], [1000] * (len(got) - 1), bits(4e6), "after the change")


@test("shaper")
def shaper_below_a_slower_parent_saves_up_no_more_than_its_lateness():
    """Each packet of 2 ms leaves 38 ms late, until the parent is faster. With exact timers the shaper catches up on
    1 ms of that.
    """
    with Wire(parent="1:10", bandwidth=bits(4e6), lines="""\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 200kbit ceil 200kbit burst 1600 cburst 1600 quantum 1514
""") as wire:
        wire.send(*(wire.udp(986) for _ in range(60)))
        time.sleep(0.4)
        lib.tc("class change dev w0 parent 1: classid 1:10 htb rate 100mbit ceil 100mbit burst 1600 cburst 1600 "
               "quantum 1514", wire.netns)
        wire.idle()
        got = stamps(wire.arrivals())
        expect_equal(len(got), 60, "packets that arrived")
        # Those of the parent's burst first.
        expect(got[10] - got[2] > 300 * MS, "at first they go at the parent's rate")
        after = got[-46:]
        expect_between((after[-1] - after[0]) / MS, 45 * 2 - (3 if EXACT else 12), 45 * 2 + 1,
                       "ms for the last 46 packets")


@test("shaper")
def shaper_unrelated_change_gives_no_waiting_time_away():
    """A GSO packet of 40 kB takes its time, whatever is changed meanwhile."""
    with Wire(bandwidth=bits(10e6), split_gso=0) as wire:
        expect(wire.gso(40000, 1000), "refused")
        wire.send(wire.udp(986))
        for n in range(20):
            wire.change(target=4294967 - n)
            time.sleep(0.001)
        wire.idle()
        got = wire.arrivals()
        expect_schedule(stamps(got), [40 * 1054, 1000], bits(10e6), "a large packet and a small one")


# Lengths on the link

def wire_bytes(framing, ip, overhead=0, mpu=0):
    """Cell by cell."""
    length = max(ip + overhead, mpu, 1)
    if framing == ATM:
        return len(range(0, length, 48)) * 53
    if framing == PTM:
        return length + len(range(0, length, 64))
    return length


FRAMINGS = [(framing, overhead, mpu) for framing in (NOATM, ATM, PTM) for overhead, mpu in
            ((0, 0), (38, 84), (18, 64), (44, 0), (-14, 0), (-64, 0), (256, 256), (4, 96))]


@test("framing")
def framing_of_each_kind_takes_its_time():
    """IP packets of every length class at 1 Mbit/s, IPv4 and IPv6, and what is no IP at all."""
    for framing, overhead, mpu in FRAMINGS:
        with Wire(bandwidth=bits(1e6), framing=framing, overhead=overhead, mpu=mpu) as wire:
            sizes = (46, 47, 48, 49, 63, 64, 65, 96, 97, 128, 500, 1499, 1500)
            frames_ = [wire.udp(size, v6=size > 48 and size % 2) for size in sizes]
            frames_.append(frames.ether(next(wire.numbers), 0x88B5, bytes(100)))
            wire.send(*frames_)
            wire.idle()
            got = wire.arrivals()
            # In order: all of them are Not-ECT.
            expect_equal([number for _, number, _ in got], [frames.number_of(f) for f in frames_], "order")
            expect_schedule(stamps(got), [wire_bytes(framing, len(f) - 14, overhead, mpu) for f in frames_], bits(1e6),
                            f"framing {framing} overhead {overhead} mpu {mpu}")


@test("framing", "gso")
def framing_of_gso_packets_of_udp_is_that_of_their_segments():
    """A UDP header is shorter than one of TCP."""
    with Wire(bandwidth=bits(10e6)) as wire:
        with lib.in_netns(wire.netns):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sock:
            sock.connect(("10.7.0.2", 9))
            for (framing, overhead, mpu), split in itertools.product(((NOATM, 38, 84), (ATM, 40, 0)), (0, 1)):
                wire.change(framing=framing, overhead=overhead, mpu=mpu, split_gso=split)
                sock.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
                sock.send(bytes(9500))
                wire.send(wire.udp(100))
                wire.idle()
                segments = [wire_bytes(framing, 28 + min(1000, 9500 - at), overhead, mpu)
                            for at in range(0, 9500, 1000)]
                expect_schedule(stamps(wire.arrivals()), (segments if split else [sum(segments)]) + [0], bits(10e6),
                                f"framing {framing} overhead {overhead}, split {split}")
        # The qdisc's own counter has the segments of those that stay whole, too: the identities are not for these.
        lib.tc("qdisc del dev w0 root", wire.netns)


@test("framing", "gso")
def framing_of_gso_packets_is_that_of_their_segments():
    """Each segment has headers of its own, whether or not dualpi2 splits."""
    with Wire(bandwidth=bits(10e6)) as wire:
        for (framing, overhead, mpu), v6, (payload, part), split in itertools.product(
                ((NOATM, 38, 84), (ATM, 40, 0), (PTM, 30, 0), (NOATM, -64, 0), (ATM, 10, 100)), (False, True),
                ((10000, 1000), (9999, 1400), (1001, 1000), (30, 10), (60000, 536)), (0, 1)):
            wire.change(framing=framing, overhead=overhead, mpu=mpu, split_gso=split)
            expect(wire.gso(payload, part, v6=v6), "refused")
            wire.send(wire.udp(100))
            wire.idle()
            header = 60 if v6 else 40
            segments = [wire_bytes(framing, header + min(part, payload - at), overhead, mpu)
                        for at in range(0, payload, part)]
            expect_schedule(stamps(wire.arrivals()), (segments if split else [sum(segments)]) + [0], bits(10e6),
                            f"framing {framing} overhead {overhead}, {len(segments)} segments, split {split}")
        wire.change(split_gso=0)


@test("framing")
def framing_raw_takes_what_the_kernel_says():
    """With the size table of a parent, too, and with what the kernel adds to GSO packets for their headers."""
    with Wire(bandwidth=bits(1e6), framing=RAW, parent="1:1", lines=f"""\
qdisc add dev w0 root stab overhead 24 mpu 100 linklayer ethernet handle 1: prio bands 2 priomap {"0 " * 16}
""") as wire:
        # The size table counts in steps of 4 bytes.
        sizes = (46, 60, 498, 1498)
        wire.send(*(wire.udp(size) for size in sizes))
        wire.idle()
        expect_schedule(stamps(wire.arrivals()), [max(size + 14 + 24, 100) for size in sizes], bits(1e6), "stab")
        # And with a framing, the table counts no more.
        wire.change(framing=NOATM, overhead=18)
        wire.send(*(wire.udp(size) for size in sizes))
        wire.idle()
        expect_schedule(stamps(wire.arrivals()), [size + 18 for size in sizes], bits(1e6), "overhead beside stab")
    for split in (0, 1):
        with Wire(bandwidth=bits(10e6), split_gso=split) as wire:
            expect(wire.gso(10000, 1000), "refused")
            wire.send(wire.udp(100))
            wire.idle()
            expect_schedule(stamps(wire.arrivals()), ([1054] * 10 if split else [10540]) + [0], bits(10e6), "raw GSO")


@test("framing")
def framing_of_jumbo_packets_takes_its_time():
    for framing in (RAW, ATM, PTM):
        with Wire(mtu=9000, bandwidth=bits(10e6), framing=framing) as wire:
            wire.send(*(wire.udp(size) for size in (9000, 1500, 8999, 8928)))
            wire.idle()
            want = [size + 14 if framing == RAW else wire_bytes(framing, size) for size in (9000, 1500, 8999, 8928)]
            expect_schedule(stamps(wire.arrivals()), want, bits(10e6), f"framing {framing}")


# Ingress mode

@test("ingress")
def ingress_drops_take_their_time_of_the_link():
    """The limit drops 30 of 40 packets: those that are left pay for them, each half as much as for itself."""
    for ingress in (0, 1):
        with Wire(bandwidth=bits(10e6), ingress=ingress, limit=10) as wire:
            taken = wire.offer(*(wire.udp(986) for _ in range(40)))
            wire.idle()
            got = stamps(wire.arrivals())
            expect_equal(len(got), taken, "packets that left, against taken")
            expect_between(taken, 10, 13, "packets taken")
            if not EXACT:
                continue
            # The first one left before any was dropped.
            each_ns = SEC * 1000 // bits(10e6) * (2 + ingress) // 2
            expect_between(max(abs(b - a - each_ns) for a, b in itertools.pairwise(got[1:])), 0, 1024,
                           f"ingress {ingress}: time of a packet, ns from {each_ns}")


@test("ingress")
def ingress_debt_is_paid_and_no_more():
    """Over all, what passed and what was dropped took the link as long as it takes."""
    with Wire(bandwidth=bits(10e6), ingress=1, limit=20) as wire:
        begun = wire.stats()
        taken = wire.offer(*(wire.udp(986) for _ in range(40)))
        lost = 40 - taken
        # As many again, one by one as there is room.
        sent = taken
        while sent < 200:
            if wire.stats()["qlen"] < 15:
                wire.send(*(wire.udp(986) for _ in range(5)))
                sent += 5
            time.sleep(0.0005)
        st = wire.idle()
        got = stamps(wire.arrivals())
        expect_equal(st["c"]["dropped_limit"] - begun["c"]["dropped_limit"], lost, "dropped")
        took = got[-1] - got[0]
        want = (len(got) - 1 + lost) * 1000 * SEC / bits(10e6)
        expect(abs(took - want) <= COST_NS + 3,
               f"{len(got)} packets and {lost} dropped ones took {took} ns, not {want:.0f}")


@test("ingress")
def ingress_debt_is_paid_by_idle_time_and_purges_owe_nothing():
    with Wire(bandwidth=bits(1e6), ingress=1, limit=5) as wire:
        # 400 * 8 ms would be 3.2 s.
        wire.offer(*(wire.udp(986) for _ in range(400)))
        wire.idle()
        before = stamps(wire.arrivals())
        # 100 ms at most are owed, and the link is idle for longer.
        time.sleep(1)
        wire.change(limit=100)
        wire.send(*(wire.udp(986) for _ in range(60)))
        wire.idle()
        got = stamps(wire.arrivals())
        owed = got[-1] - got[0] - 59 * 8 * MS
        expect(abs(owed) <= COST_NS + 1024, f"{owed} ns were owed after idle time")
        note(f"{len(before)} packets had paid before")
        # What a change purges has not come in vain.
        wire.send(*(wire.udp(986) for _ in range(60)))
        wire.change(limit=10)
        wire.idle()
        got = stamps(wire.arrivals())
        st = wire.stats()
        expect(st["c"]["dropped_purge"] > 40, "nothing was purged")
        expect_schedule(got, [1000] * len(got), bits(1e6), "after a purge")


# Limits

@test("limits", "C11", needs="ext")
def limits_follow_the_rate_unless_given():
    mtu = 1514
    with Wire(calm=False, mtu=1500) as wire:
        def limits():
            st = wire.stats()
            expect_equal(st["memory_limit"], st["knobs"]["memory_limit"], "memory_limit twice")
            expect_equal(st["link"]["limit_pkts"], st["knobs"]["limit"], "limit twice")
            return st["knobs"]["limit"], st["knobs"]["memory_limit"]

        expect_equal(limits(), (10000, 2 * mtu * 10000), "without a rate")
        for rate in (1000, bits(4e6), bits(40e6), bits(1e9), bits(10e9), 125000000000):
            wire.change(bandwidth=rate)
            # 250 ms or 16 MB, at least twice the effective target.
            target = max(15e-3, 2.5 * mtu / rate - 15e-3)
            room = max(min(rate / 4, 2**24), 2 * target * rate)
            want = max(room / 64, 1000), min(max(2 * room, 512 * mtu), 2**32 - 1)
            for got, expected, what in zip(limits(), want, ("limit", "memlimit")):
                expect_between(got, expected * 0.9999 - 1, expected * 1.0001 + 1, f"{what} with {rate} bytes/s")
        wire.change(bandwidth=0)
        expect_equal(limits(), (10000, 2 * mtu * 10000), "without a rate again")
        wire.change(bandwidth=bits(40e6), memory_limit=54321)
        expect_equal(limits(), (bits(40e6) // 256, 54321), "with a limit of memory")
        wire.change(bandwidth=bits(4e6))
        expect_equal(limits(), (1953, 54321), "at another rate")
        wire.change(limit=77)
        wire.change(bandwidth=bits(400e6))
        expect_equal(limits(), (77, 54321), "with both")


@test("limits", needs="ext")
def limits_that_fall_with_the_rate_purge():
    with Wire(calm=False, **{**CALM, "target": 15000}, memory_limit=2**31, bandwidth=bits(10e6)) as wire:
        expect_equal(wire.stats()["link"]["limit_pkts"], 4882, "limit at 10 Mbit/s")
        wire.send(*(wire.udp(100) for _ in range(3000)))
        held = wire.stats()["qlen"]
        expect(held > 2000 or not EXACT, f"only {held} packets wait")
        wire.change(bandwidth=bits(100e3))
        st = wire.stats()
        expect(st["qlen"] <= 1000, f"{st['qlen']} packets wait with a limit of 1000")
        wire.change(bandwidth=bits(1e9))
        lib.check_identities(wire.stats())


# NQB

def into_l(wire, ecn, dscp, v6=False):
    """Does such a packet go to L?"""
    before = wire.stats()
    wire.send(wire.udp(200, ecn, dscp, v6))
    after = wire.stats()
    new = {q: lib.arrived(after[q]["counters"]) - lib.arrived(before[q]["counters"]) for q in "cl"}
    expect_equal(sum(new.values()), 1, "packets that came")
    return bool(new["l"])


@test("NQB", "N1", "N2", "N9", needs="ext")
def nqb_dscp_45_goes_to_l_and_others_do_not():
    with Wire() as wire:
        expect_equal(wire.stats()["knobs"]["nqb"], 1 << NQB, "nqb by default")
        count = 0
        for v6 in (False, True):
            for dscp in range(64):
                for ecn in ECNS:
                    want = ecn in (ECT1, CE) or dscp == NQB
                    expect_equal(into_l(wire, ecn, dscp, v6), want, f"DSCP {dscp}, ECN {ecn}, IPv6 {v6}: to L")
                    count += dscp == NQB and ecn in (NOT_ECT, ECT0)
        st = wire.stats()["link"]
        expect_equal((st["nqb_arrived"], st["nqb_dropped"]), (count, 0), "nqb_arrived, nqb_dropped")
        # ECT(1) of that DSCP would have come anyway.
        expect_equal(count, 4, "packets of DSCP 45 for which it mattered")


@test("NQB", "N3", "N4", needs="ext")
def nqb_list_is_what_was_set():
    with Wire() as wire:
        for mask in (0, 1, 1 << 63, (1 << 2) | (1 << 40) | (1 << 45), 2**64 - 1):
            wire.change(nqb=mask)
            expect_equal(wire.stats()["knobs"]["nqb"], mask, "nqb")
            for dscp in (0, 1, 2, 40, 44, 45, 46, 62, 63):
                for ecn in (NOT_ECT, ECT0):
                    expect_equal(into_l(wire, ecn, dscp), bool(mask >> dscp & 1), f"mask {mask:#x}, DSCP {dscp}: to L")
        # Off, and on again.
        wire.change(nqb=0)
        before = wire.stats()["link"]["nqb_arrived"]
        wire.send(*(wire.udp(200, NOT_ECT, NQB) for _ in range(5)))
        expect_equal(wire.stats()["link"]["nqb_arrived"], before, "nqb_arrived with nqb off")


@test("NQB", needs="ext")
def nqb_without_l4s_still_goes_to_l():
    with Wire(l4s=0) as wire:
        expect(into_l(wire, NOT_ECT, NQB) and into_l(wire, ECT0, NQB), "NQB does not go to L without l4s")
        expect(not into_l(wire, ECT1, 0), "ECT(1) goes to L without l4s")
        expect(not into_l(wire, ECT1, NQB), "ECT(1) is treated in another way with DSCP 45")


@test("NQB", "R13", needs="ext")
def nqb_is_overruled_by_what_is_local():
    """A filter, and skb->priority, come before the packet's own marks (RFC 9331 5.4)."""
    with Wire() as wire:
        before = wire.stats()["link"]["nqb_arrived"]
        lib.tc("filter add dev w0 parent 10: protocol all prio 1 matchall classid 10:3", wire.netns)
        expect(not into_l(wire, NOT_ECT, NQB), "a filter to Classic is ignored")
        lib.tc("filter del dev w0 parent 10: prio 1", wire.netns)
        lib.tc("filter add dev w0 parent 10: protocol all prio 1 matchall classid 10:1", wire.netns)
        expect(into_l(wire, NOT_ECT, NQB), "a filter to L is ignored")
        lib.tc("filter del dev w0 parent 10: prio 1", wire.netns)
        wire.sender.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x100003)
        expect(not into_l(wire, ECT0, NQB), "skb->priority to Classic is ignored")
        wire.sender.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0)
        expect_equal(wire.stats()["link"]["nqb_arrived"], before, "nqb_arrived by what is local")
        expect(into_l(wire, ECT0, NQB), "NQB")


# Not more than 10 ms of the link: packets of 1514 bytes that fit at once.
NQB_CASES = {bits(4e6): 5000, bits(40e6): 50000, bits(100e6): 125000, bits(1e6): 3028, 1000: 3028}


@test("NQB", "N5", "N6")
def nqb_limit_is_ten_milliseconds_of_the_shaper():
    for rate, limit in NQB_CASES.items():
        # Without the native marker, which drops what cannot be marked.
        with Wire(bandwidth=rate, step_thresh_us=4000000) as wire:
            expect_equal(wire.stats()["link"]["nqb_limit_bytes"], limit, f"nqb_limit_bytes at {rate} bytes/s")
            # A Classic packet is on the link meanwhile.
            wire.send(wire.udp(1500))
            taken = wire.offer(*(wire.udp(1500, NOT_ECT, NQB) for _ in range(200)))
            st = wire.stats()
            fit = limit // 1514
            if EXACT:
                expect_equal(taken, fit, f"packets of NQB taken at {rate} bytes/s")
            expect_equal((st["link"]["nqb_arrived"], st["link"]["nqb_dropped"]), (200, 200 - taken),
                         "nqb_arrived, nqb_dropped")
            expect_equal((st["l"]["dropped_limit"], st["drops"]), (200 - taken, 200 - taken),
                         "dropped_limit of L, drops")
            # It is theirs alone.
            wire.send(*(wire.udp(1500, ECT1) for _ in range(20)), *(wire.udp(1500, ECT1, NQB) for _ in range(20)),
                      *(wire.udp(1500, NOT_ECT) for _ in range(20)))
            expect_equal(wire.stats()["drops"], 200 - taken, "drops of others")
            # And when they have left there is room again, for as many.
            wire.change(bandwidth=max(rate, bits(10e6)))
            wire.idle()
            wire.change(bandwidth=rate)
            if rate > 1000:
                wire.send(wire.udp(1500))
                again = wire.offer(*(wire.udp(1500, ECT0, NQB) for _ in range(200)))
                expect(not EXACT or again == fit, f"{again} packets fit after the first {fit} had left")
            wire.change(bandwidth=bits(1e9))


@test("NQB")
def nqb_below_its_limit_is_never_dropped():
    """As much as the link takes, in bunches of 9 ms, beside a backlog of Classic that yields."""
    with Wire(bandwidth=bits(10e6)) as wire:
        wire.send(*(wire.udp(1000) for _ in range(100)))
        for _ in range(20):
            wire.send(*(wire.udp(486, NOT_ECT, NQB) for _ in range(22)))
            time.sleep(0.016)
        st = wire.idle()
        expect_equal((st["link"]["nqb_arrived"], st["link"]["nqb_dropped"]), (440, 0), "nqb_arrived, nqb_dropped")


@test("NQB", "N5")
def nqb_packet_longer_than_its_limit_passes_alone():
    with Wire(mtu=9000, bandwidth=bits(4e6), step_thresh_us=4000000) as wire:
        for _ in range(3):
            wire.send(wire.udp(9000, NOT_ECT, NQB))
            st = wire.idle()
        expect_equal((st["link"]["nqb_arrived"], st["link"]["nqb_dropped"]), (3, 0), "nqb_arrived, nqb_dropped")
        expect_equal(len(wire.arrivals()), 3, "packets that came")


@test("NQB", needs="ext")
def nqb_of_dscp_0_is_not_what_has_no_ip_header():
    with Wire(nqb=1) as wire:
        wire.send(bytes.fromhex("02000000000202000000000108060001080006040001") + bytes(38), wire.udp(100, NOT_ECT, 0))
        st = wire.idle()
        expect_equal((st["c"]["enqueued"], st["l"]["enqueued"]), (1, 1), "packets in C, in L")
        expect_equal(st["unparsed"], 1, "unparsed")


@test("NQB", needs="virtual_time ext")
def nqb_bytes_are_forgotten_with_the_packets():
    """By a reset, and by a change that purges."""
    with Wire(bandwidth=bits(4e6)) as wire:
        def fill():
            wire.change(bandwidth=1000)
            wire.change(bandwidth=bits(4e6))
            wire.send(wire.udp(1500))
            return wire.offer(*(wire.udp(486, NOT_ECT, NQB) for _ in range(50)))

        first = fill()
        expect_between(first, 9, 12, "packets of 500 bytes in 10 ms of 4 Mbit/s")
        wire.was_reset = True
        lib.run("ip link set dev w0 down", wire.netns)
        lib.run("ip link set dev w0 up", wire.netns)
        time.sleep(0.1)
        expect_equal(wire.stats()["qlen"], 0, "qlen after a reset")
        expect_between(fill(), first - 1, first + 1, "packets that fit after a reset")
        wire.change(limit=1)
        wire.change(limit=1000)
        expect_between(fill(), first - 2, first + 1, "packets that fit after a purge")
        wire.idle()


@test("NQB", "N5")
def nqb_limit_without_a_rate_is_a_delay_until_one_is_seen():
    """Below a parent of 8 Mbit/s: 10 ms in the L4S queue, then 10 ms of the rate that was seen, or two packets."""
    with Wire(parent="1:10", lines="""\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 8mbit ceil 8mbit burst 1514 cburst 1514 quantum 1514
""") as wire:
        expect_equal((wire.stats()["link"]["nqb_limit_bytes"], wire.stats()["link"]["drain_rate"]), (0, 0),
                     "nqb_limit_bytes, drain_rate before any packet")
        # 40 packets of 1 ms: all that come at once have a head that does not wait yet.
        expect_equal(wire.offer(*(wire.udp(986, NOT_ECT, NQB) for _ in range(40))), 40, "of 40 at once")
        wire.idle()
        wire.send(*(wire.udp(986) for _ in range(200)))
        wire.idle()
        time.sleep(0.05)
        wire.send(wire.udp(986))
        st = wire.idle()
        expect_between(st["link"]["drain_rate"], 970000, 1030000, "bytes/s that were seen of 1000000")
        expect_between(st["link"]["nqb_limit_bytes"], 9700, 10300, "nqb_limit_bytes")
        lib.tc("class change dev w0 parent 1: classid 1:10 htb rate 400kbit ceil 400kbit burst 1514 cburst 1514 "
               "quantum 1514", wire.netns)
        wire.send(*(wire.udp(986) for _ in range(200)))
        st = wire.idle()
        expect_between(st["link"]["drain_rate"], 48000, 53000, "bytes/s that were seen of 50000")
        expect_equal(st["link"]["nqb_limit_bytes"], 3028, "nqb_limit_bytes of a slow link")
        # Time in which there is nothing to send is no time of the link.
        time.sleep(5)
        wire.send(*(wire.udp(986) for _ in range(20)))
        expect_between(wire.idle()["link"]["drain_rate"], 48000, 53000, "bytes/s after idle time")


@test("NQB", "gso")
def nqb_segments_count_one_by_one():
    for split in (0, 1):
        with Wire(bandwidth=bits(4e6), split_gso=split) as wire:
            wire.send(wire.udp(1500))
            for _ in range(3):
                wire.gso(10000, 500, NOT_ECT, NQB)
            st = wire.stats()
            lib.check_identities(st)
            expect(st["link"]["nqb_dropped"] > 0, "no packet was dropped")
            expect_equal(st["link"]["nqb_dropped"], st["l"]["dropped_limit"], "nqb_dropped, dropped_limit")
            expect_equal(st["link"]["nqb_arrived"], lib.arrived(st["l"]["counters"]), "nqb_arrived, arrived at L")
            wire.idle()
            # No byte of it is left in the account.
            expect_between(wire.offer(*(wire.udp(486, NOT_ECT, NQB) for _ in range(50))), 10, 12, "packets that fit")


# The native marker: bursts, and the delay behind a packet

@test("marker", "G9")
def marker_with_a_rate_goes_by_the_delay_behind():
    """20 packets of 200 us each at once: those that leave first have the most behind them."""
    with Wire(bandwidth=bits(40e6), burst_max=0, calm=False, step_thresh_us=1000, ramp_us=400, **CALM) as wire:
        time.sleep(0.1)
        some = [wire.udp(986, ECT1) for _ in range(21)]
        wire.send(*some)
        wire.idle()
        st = wire.stats()
        marked = st["l"]["marked_native"]
    with Wire(burst_max=0, calm=False, step_thresh_us=1000, ramp_us=400, parent="1:10", **CALM, lines="""\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 40mbit ceil 40mbit burst 1514 cburst 1514 quantum 1514
""") as wire:
        wire.send(*(wire.udp(986, ECT1) for _ in range(21)))
        wire.idle()
        note(f"{marked} of 21 packets marked by the delay behind, {wire.stats()['l']['marked_native']} by their own")
    if EXACT:
        # The first leaves with nothing behind it; of the others number i has (20 - i) * 200 us behind it: at 1.2 ms and
        # more all are marked, at 0.8 ms and less none is, and in between lies number 15 with 1 ms.
        expect_between(marked, 14, 15, "packets marked by what is behind them")


def which_are_marked(wire, count, size=986):
    """Send so many at once; numbers, from 0, of those that came out marked."""
    some = [wire.udp(size, ECT1) for _ in range(count)]
    first = frames.number_of(some[0])
    wire.marked = []
    wire.send(*some)
    wire.idle()
    return [number - first for _, number, frame in wire.stamped.read() if frames.ecn_of(frame, frames.ETH_HLEN) == CE]


@test("marker", "G9", "R10")
def marker_with_a_rate_marks_the_first_of_a_burst_not_the_last():
    with Wire(bandwidth=bits(40e6), burst_max=0, calm=False, step_thresh_us=1000, ramp_us=400, **CALM) as wire:
        time.sleep(0.1)
        wire.arrivals()
        marked = which_are_marked(wire, 21)
        note(f"marked: {marked}")
        expect(marked, "no packet was marked")
        expect(max(marked) <= 16, f"number {max(marked)} of 20 has less than 0.8 ms behind it, and was marked")
        expect(min(marked) <= 2, f"the first one marked is number {min(marked)}")


def ramp(st):
    return st["link"]["ramp_min_ns"], st["link"]["ramp_max_ns"]


def base(st):
    """The ramp where no bursts are to be tolerated."""
    middle, width = st["knobs"]["step_thresh_us"], st["knobs"]["ramp_us"]
    return (middle - width // 2) * 1000, (middle + width // 2) * 1000


SHAPED = (("shaper", {"shaper": "none", "bandwidth": bits(40e6)}), ("htb", {"shaper": "htb", "rate": 40e6}))


@each(SHAPED, ("bursts",), lambda case: case[0])
def bursts_of_none_leave_the_ramp_alone_behind_CASE(case):
    """Smooth arrivals at any load, and what jitter makes of them."""
    net = shared_net()
    with net.aqm(**case[1]) as q:
        for load in (0.3, 0.7, 0.95):
            for size in (300, 1000, 1514):
                net.traffic(1, Stream("l", ecn=ECT1, bps=load * 40e6, size=size))
                st = q.stats()
                note(f"{load} of 40 Mbit/s in packets of {size}: burst {st['link']['burst_ns']} ns, ramp {ramp(st)}")
                expect_equal(ramp(st), base(st), f"ramp at {load} of the link in packets of {size}")


@each(SHAPED, ("bursts",), lambda case: case[0])
def bursts_of_four_milliseconds_move_the_ramp_behind_CASE(case):
    """Aggregates of 20 kB at 40 Mbit/s; when arrivals are smooth again, it comes back."""
    net = shared_net()
    with net.aqm(burst_max=5000, **case[1]) as q:
        net.traffic(2, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000, burst=20))
        st = q.stats()
        note(f"aggregates of 4 ms: burst {st['link']['burst_ns']} ns, ramp {ramp(st)}, "
             f"drain {st['link']['drain_rate']}")
        expect_between(ramp(st)[0] / MS, 3.6, 5, "ramp_min, ms")
        expect(ramp(st)[1] - ramp(st)[0] >= base(st)[1] - base(st)[0], "the ramp got narrower")
        expect_equal(st["link"]["burst_ns"], ramp(st)[0], "burst_ns, ramp_min_ns")
        net.traffic(2, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000))
        st = q.stats()
        expect_equal(ramp(st), base(st), "ramp after 2 s of smooth arrivals")
        expect(st["link"]["burst_ns"] <= MS, "bursts still tolerated")


@each(SHAPED, ("bursts",), lambda case: case[0])
def bursts_longer_than_burst_max_are_load_behind_CASE(case):
    net = shared_net()
    with net.aqm(**case[1], drop_overload=1, burst_max=5000) as q:
        net.traffic(2, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000, burst=50))
        st = q.stats()
        note(f"aggregates of 10 ms: burst {st['link']['burst_ns']} ns, ramp {ramp(st)}")
        expect_equal(ramp(st), base(st), "ramp with aggregates of 10 ms")
        q.change(burst_max=20000)
        net.traffic(2, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000, burst=50))
        st = q.stats()
        note(f"and with burst_max 20 ms: burst {st['link']['burst_ns']} ns, ramp {ramp(st)}")
        expect_between(ramp(st)[0] / MS, 9, 20, "ramp_min with burst_max 20 ms")
        # A flood has no end, and gets none of it.
        net.traffic(3, Stream("l", ecn=ECT1, bps=6 * 40e6, size=1000))
        q.until_idle()
        # Where sending takes time, pauses make bursts of it.
        if EXACT:
            expect_between(q.stats()["link"]["burst_ns"] / MS, 0, 1, "burst_ns after a flood, ms")


@test("bursts")
def bursts_are_not_tolerated_where_they_are_not_wanted():
    net = shared_net()
    for knobs in ({}, {"step_thresh_pkts": 5, "burst_max": 5000}):
        with net.aqm(shaper="none", bandwidth=bits(40e6), **knobs) as q:
            net.traffic(1.5, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000, burst=20))
            st = q.stats()
            expect_equal(st["link"]["burst_ns"], 0, f"burst_ns with {knobs}")
            expect(knobs or ramp(st) == base(st), f"ramp {ramp(st)} by default")
    # It can be turned off while it is in use.
    with net.aqm(shaper="none", bandwidth=bits(40e6), burst_max=5000) as q:
        net.traffic(1.5, Stream("l", ecn=ECT1, bps=0.8 * 40e6, size=1000, burst=20))
        expect(ramp(q.stats())[0] > 3 * MS, "no bursts seen")
        q.change(burst_max=2000)
        expect(q.stats()["link"]["burst_ns"] <= 2 * MS, f"burst_max 2 ms: {q.stats()['link']}")
        q.change(burst_max=0)
        st = q.stats()
        expect_equal((st["link"]["burst_ns"], *ramp(st)), (0, *base(st)), "burst_ns, ramp after burst_max 0")


# Options

LINK_OPTIONS = {name: OPTIONS[name] for name in
                ("bandwidth", "framing", "overhead", "mpu", "ingress", "nqb", "burst_max")}


def link_options(knobs):
    return {name: knobs[name] for name in LINK_OPTIONS}


@test("options", needs="ext")
def options_shown_and_set_again_change_no_byte():
    rng = random.Random(5)
    with Wire(calm=False) as wire:
        defaults = {name: option.default for name, option in LINK_OPTIONS.items()}
        expect_equal(link_options(wire.stats()["knobs"]), defaults, "defaults")
        for _ in range(200):
            some = {name: rng.choice((defaults[name], some_value(rng, LINK_OPTIONS[name])))
                    for name in rng.sample(list(LINK_OPTIONS), rng.randint(1, len(LINK_OPTIONS)))}
            before = wire.stats()["knobs"]
            wire.change(**some)
            now = wire.stats()["knobs"]
            want = before | some
            if ("overhead" in some or "mpu" in some) and "framing" not in some and before["framing"] == RAW:
                want["framing"] = NOATM
            if want["framing"] == RAW:
                want["overhead"] = want["mpu"] = 0
            expect_equal(link_options(now), link_options(want), f"after {some}")
            shown = wire.options()
            expect_equal(wire.request(shown), (0, ""), "what was shown, set again")
            expect_equal(wire.options(), shown, "what is shown then")
            # And for a new one.
            if rng.randrange(10) == 0:
                lib.tc("qdisc del dev w0 root", wire.netns)
                expect_equal(lib.tc_request(wire.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "w0",
                                            "10:", "root", "dualpi2", shown), (0, ""), "what was shown, for a new one")
                expect_equal(wire.options(), shown, "what a new one shows")


@test("options", needs="ext")
def options_out_of_range_are_refused_and_change_nothing():
    with Wire(bandwidth=bits(4e6), framing=ATM, overhead=40, mpu=3, ingress=1, nqb=7, burst_max=9) as wire:
        before = wire.options()
        for name, option in LINK_OPTIONS.items():
            for value in outside(option):
                number, text = wire.request(pack(target=1, **{name: value}))
                expect_equal(number, 22, f"error of {name} {value}")
                expect_equal(text, f"dualpi2: {option.word} must be {option.range}", f"text of {name} {value}")
                expect_equal(wire.options(), before, f"options after {name} {value} was refused")
        for name, (kind, form) in lib.EXT_KNOBS.items():
            good = lib.attr(kind, struct.pack(form, wire.stats()["knobs"][name]))
            size = struct.calcsize(form)
            for payload in {0, 1, 4, 8, size - 1, size + 1} - {size}:
                bad = lib.attr(lib.EXT | lib.NLA_F_NESTED, lib.attr(kind, bytes(payload)))
                number, text = wire.request(bad)
                expect_equal((number, "length" in text), (22, True), f"{name} of {payload} bytes: {text!r}")
            number, text = wire.request(lib.attr(lib.EXT | lib.NLA_F_NESTED, good + good))
            expect_equal((number, "twice" in text), (22, True), f"{name} given twice: {text!r}")
        expect_equal(wire.options(), before, "options after all refusals")


# While packets wait for the shaper

def throttled(wire, count=60):
    """Packets of all codepoints that wait for a shaper of 100 kbit/s."""
    wire.send(*(wire.udp(500, ECNS[n % 4]) for n in range(count)))
    expect(wire.stats()["qlen"] >= count - 3, "the packets do not wait")


@test("throttled")
def throttled_changes_of_all_kinds_keep_the_queue_alive():
    """After each of them the queue goes on by itself: no further packet comes that could wake it."""
    with Wire(bandwidth=bits(100e3)) as wire:
        for knobs in ({"bandwidth": bits(200e3)}, {"bandwidth": 0}, {"framing": ATM, "overhead": 40}, {"framing": RAW},
                      {"ingress": 1}, {"limit": 20}, {"limit": 1}, {"memory_limit": 1}, {"split_gso": 0}, {"nqb": 0},
                      {"burst_max": 0}, {"target": 1000}, {"bandwidth": 1000}, {"bandwidth": 125000000000}):
            # With the target of a turn before packets would be dropped at 8 kbit/s.
            wire.change(**ROOMY, **CALM, bandwidth=bits(100e3))
            throttled(wire)
            wire.change(**knobs)
            if knobs == {"bandwidth": 1000}:
                time.sleep(2)
                expect_between(wire.stats()["qlen"], 50, 59, "packets that wait at 8 kbit/s after 2 s")
                wire.change(bandwidth=bits(10e6))
            st = wire.idle()
            lib.check_identities(st)
        expect_equal(st["memory_used"], 0, "memory_used")


@test("throttled", needs="ext")
def throttled_queue_that_a_change_emptied_holds_nobody():
    """The next packet would leave in 1.5 s, but for a change of the rate when there was none."""
    with Wire(bandwidth=1000) as wire:
        wire.send(*(wire.udp(1486) for _ in range(3)))
        wire.change(memory_limit=1)
        expect_equal(wire.stats()["qlen"], 0, "packets after the purge")
        wire.change(memory_limit=10**7, bandwidth=bits(1e9))
        wire.arrivals()
        begun = time.clock_gettime_ns(time.CLOCK_REALTIME)
        wire.send(wire.udp(1000))
        wire.idle()
        took = stamps(wire.arrivals())[0] - begun
        expect(took <= MS + COST_NS, f"it left after {took} ns")


@test("throttled", needs="virtual_time ext")
def throttled_reset_delete_replace_and_link_down_leave_nothing():
    """Whoever waited is not woken for a qdisc that is gone, nor is one that is there forgotten."""
    with hostile.no_splat(), Wire(bandwidth=bits(100e3)) as wire:
        for round_ in range(6):
            throttled(wire)
            lib.run("ip link set dev w0 down", wire.netns)
            wire.was_reset = True
            st = wire.stats()
            expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left after link down")
            lib.run("ip link set dev w0 up", wire.netns)
            wire.arrivals()
            wire.send(*(wire.udp(500) for _ in range(5)))
            wire.idle()
            expect_schedule(stamps(wire.arrivals()), [514] * 5, bits(100e3), "after link up")
            throttled(wire)
            lib.tc("qdisc del dev w0 root", wire.netns)
            time.sleep((0, 0.001, 0.1)[round_ % 3])
            wire.add()
            throttled(wire)
            lib.tc("qdisc replace dev w0 root handle 7: pfifo", wire.netns)
            lib.tc("qdisc del dev w0 root", wire.netns)
            wire.add()
            wire.was_reset = False
            throttled(wire)
            wire.change(bandwidth=0)
            wire.idle()
            wire.change(bandwidth=bits(100e3))


@test("throttled", needs="ext")
def throttled_device_that_goes_takes_all_along():
    with hostile.no_splat():
        for how in ("ip link del dev w0", "ip link set dev w0 down"):
            with Wire(bandwidth=bits(100e3)) as wire:
                throttled(wire)
                lib.run(how, wire.netns)
                if "del" in how:
                    time.sleep(0.2)
                    # The end of Wire has nothing to look at.
                    wire.there = lambda: False
                else:
                    wire.was_reset = True
        # The namespace goes with packets in it.
        with Wire(bandwidth=bits(100e3)) as wire:
            throttled(wire)
            wire.there = lambda: False
        time.sleep(0.5)


@test("throttled", needs="ext")
def throttled_added_and_deleted_again_and_again():
    with hostile.no_splat(), Wire(bandwidth=bits(100e3)) as wire:
        for n in range(100):
            wire.send(*(wire.udp(500, ECNS[n % 4]) for n in range(5)))
            if n % 3 == 0:
                wire.change(bandwidth=bits(50e3 + n))
            lib.tc_request(wire.netns, lib.RTM_DELQDISC, 0, "w0", 0, "root")
            if n % 10 == 0:
                time.sleep(0.01)
            wire.add()
        wire.send(*(wire.udp(500) for _ in range(5)))


# Parents

@each(SHAPER_PARENTS, ("parents",))
def parent_CASE_of_a_shaper_lets_all_through_at_its_rate(name):
    """The parent has more to give than the shaper takes, and finds no packet though there are some."""
    spare_qfq(name)
    with hostile.no_splat(), Tree(name, "100mbit", bandwidth=bits(1e6), **CALM | ROOMY) as tree:
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
        if name not in ("mq", "netem"):
            tree.check_now("while packets wait")
            expect(tree.leaf()["qlen"] > 90, "the packets do not wait")
        tree.drain()
        took = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begun) / SEC
        want = 99 * 500 / bits(1e6) / len(tree.leaves)
        note(f"{took:.3f} s for {want:.3f} s of the link")
        if name != "mq":
            # Looking takes a while, and a parent that peeks lets one packet go ahead.
            expect(want * 0.97 <= took <= want + 0.2, f"100 packets took {took} s, not {want}")
        # GSO packets, whole and split, and a change meanwhile.
        for n in range(20):
            tree.mix.gso(ECNS[n % 4], 10, 500)
        tree.change(bandwidth=bits(50e6))
        tree.change(split_gso=0)
        for n in range(20):
            tree.mix.gso(ECNS[n % 4], 10, 500)
        tree.check_empty()


@each(SHAPER_PARENTS, ("parents",), needs="ext")
def parent_CASE_of_a_shaper_survives_reset_and_deletion_while_it_waits(name):
    spare_qfq(name)
    with hostile.no_splat(), Tree(name, "100mbit", bandwidth=bits(100e3), **CALM | ROOMY) as tree:
        for n in range(60):
            tree.mix.send(ECNS[n % 4], 500)
        tree.change(bandwidth=bits(50e3))
        tree.change(limit=10)
        tree.check_now("after a purge")
        lib.run("ip link set dev d0 down", tree.netns)
        for handle, st in tree.dump().items():
            expect(st["kind"] == "netem" or (st["qlen"], st["backlog"]) == (0, 0),
                   f"{st['kind']} {handle} holds {st['qlen']} packets after a reset")
        lib.run("ip link set dev d0 up", tree.netns)
        for n in range(20):
            tree.mix.send(ECNS[n % 4], 500)
        time.sleep(0.05)
        for handle, parent in tree.leaves.items():
            lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", handle, parent)
        time.sleep(0.5)
        for handle, parent in tree.leaves.items():
            tree.add(handle, parent, lib.NLM_F_CREATE | lib.NLM_F_REPLACE)
        # hfsc takes a class that was active at its reset for active ever after, whatever its child is.
        if "hfsc" in name:
            return
        got = tree.delivered()[0]
        for n in range(20):
            tree.mix.send(ECNS[n % 4], 500)
        tree.drain()
        expect(tree.delivered()[0] >= got + 20, "packets through the new one")


@each({"red": RED, "sfb": SFB}.items(), ("parents",), lambda case: case[0])
def parent_CASE_below_a_shaper_of_its_own_lets_all_through(case):
    """These put a queue of their own in; dualpi2 is below."""
    name, line = case
    line = line.replace("d0 parent {over}", "w0 root")
    with Wire(parent="2:1", bandwidth=bits(1e6), lines=line) as wire:
        wire.send(*(wire.udp(486, ECNS[n % 4]) for n in range(50)))
        wire.idle()
        got = wire.arrivals()
        expect_schedule(stamps(got), [500] * 50, bits(1e6), name)


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
