#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off
# suite: long kernel=stock
"""The link downstream of dualpi2: lengths on it, ingress mode, limits and marker that follow its rate, bursts.

When a packet left is what the other end of a veth says, by the kernel's stamp on arrival; how long it should have
taken is worked out here from its bytes. On the kernels of scripts/debug-kernel.sh, where computing takes no time, the
two agree to the nanosecond; under QEMU, where an instruction takes one, to what it costs to send a packet.

This is not the place for the arithmetic (selftests/unit), the options of tc, or how well senders do over it
(selftests/lab).
"""
import itertools
import random
import socket
import struct
import time

import frames
import lib
from lib import (ATM, CE, ECT1, NOATM, PTM, RAW, Stream, each, expect, expect_between, expect_equal, note, pack,
                 shared_aqm, shared_net, test)
from options import OPTIONS, outside, some_value
from parents import CALM, UDP_SEGMENT
from wire import COST_NS, EXACT, MS, SEC, Wire, bits, expect_schedule, stamps, wire_bytes

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
        expect_schedule(stamps(wire.arrivals()), [size + 18 for size in sizes], bits(1e6), "overhead and stab")
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
        # At most 100 ms are charged for drops, and the link is idle for longer.
        time.sleep(1)
        wire.change(limit=100)
        wire.send(*(wire.udp(986) for _ in range(60)))
        wire.idle()
        got = stamps(wire.arrivals())
        owed = got[-1] - got[0] - 59 * 8 * MS
        expect(abs(owed) <= COST_NS + 1024, f"{owed} ns were charged after idle time")
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
    with shared_aqm(**case[1]) as (net, q):
        for load in (0.3, 0.7, 0.95):
            for size in (300, 1000, 1514):
                net.traffic(1, Stream("l", ecn=ECT1, bps=load * 40e6, size=size))
                st = q.stats()
                note(f"{load} of 40 Mbit/s in packets of {size}: burst {st['link']['burst_ns']} ns, ramp {ramp(st)}")
                expect_equal(ramp(st), base(st), f"ramp at {load} of the link in packets of {size}")


@each(SHAPED, ("bursts",), lambda case: case[0])
def bursts_of_four_milliseconds_move_the_ramp_behind_CASE(case):
    """Aggregates of 20 kB at 40 Mbit/s; when arrivals are smooth again, it comes back."""
    with shared_aqm(burst_max=5000, **case[1]) as (net, q):
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
    with shared_aqm(**case[1], drop_overload=1, burst_max=5000) as (net, q):
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


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
