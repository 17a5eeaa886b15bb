#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Traffic that is in L for its DSCP: which packets, and the limit of their bytes.
"""
import socket
import time

import lib
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_between, expect_equal, test
from parents import ECNS
from wire import EXACT, Wire, bits

NQB = 45


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
    """The whole link rate, in bursts of 9 ms, with a Classic backlog that yields."""
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
        # Idle time does not count as link time.
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


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
