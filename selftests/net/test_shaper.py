#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""dualpi2's own shaper: when packets leave, what happens while packets wait for it, its parents.

When a packet left is what the other end of a veth says, by the kernel's stamp on arrival; how long it should have
taken is worked out here from its bytes. On the kernels of scripts/debug-kernel.sh, where computing takes no time, the
two agree to the nanosecond; under QEMU, where an instruction takes one, to what it costs to send a packet.

This is not the place for the arithmetic (selftests/unit/test_clock.c) or the options of tc.
"""
import itertools
import random
import time

import frames
import hostile
import lib
from lib import ATM, NOATM, PTM, RAW, each, expect, expect_between, expect_equal, note, test
from parents import CALM, ECNS, RED, SFB, SHAPER_PARENTS, Tree, spare_qfq
from wire import COST_NS, EXACT, MS, ROOMY, SEC, Wire, bits, expect_schedule, stamps, wire_bytes

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
            expect_equal(len(got), count // parts if whole else count, "frames at the receiver")
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
        expect_equal(len(got), 50, "packets at the receiver")
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
                expect_between(wire.stats()["qlen"], 50, 59, "backlog in packets at 8 kbit/s after 2 s")
                wire.change(bandwidth=bits(10e6))
            st = wire.idle()
            lib.check_identities(st)
        expect_equal(st["memory_used"], 0, "memory_used")


@test("throttled", needs="ext")
def throttled_queue_that_a_change_emptied_holds_nobody():
    """The next packet would leave in 1.5 s, unless a change set a rate where there was none."""
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
