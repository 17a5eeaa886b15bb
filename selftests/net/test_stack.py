#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Packets as the kernel's stack makes them: reassembled by conntrack, aggregated by GRO, with a time to be sent, with
any priority; and strange lengths and MTUs.

The rule is that of test_packets.py: a packet that comes out is the one that went in, except for ECT that became CE and,
with IPv4, the header's checksum; nothing changes where no IP header is; no copy of it elsewhere changes; what does not
come out is counted as dropped; the kernel prints no warning. What went in is taken from a copy of the packet that never
met an AQM.
"""
import contextlib
import os
import socket
import struct
import time

import frames
import hostile
import lib
from frames import ETH_P_IP, ETH_P_IPV6, ether, ipv4, ipv6, udp
from gso import GSO, GsoRig
from hostile import ROOMY, Mirror, number_in, numbered, outermost_ip, start_queue
from lib import ECT0, ECT1, NOT_ECT, expect, expect_equal, test
from packets import ELSEWHERE, MARK_ALL, MARK_ALL_L

def router_in(rig, gro=False):
    """A TAP device whose packets are forwarded to `out`."""
    flags = frames.IFF_TAP | (hostile.IFF_NAPI if gro else 0)
    source = rig.device(rig.stack, "in", flags, mtu=9000, args="address 02:00:00:00:0a:01")
    lib.run(["ip", "-batch", "-"], rig.netns, stdin="""\
addr add 10.10.0.1/24 dev in
addr add fd0a::1/64 dev in nodad
""")
    return source


ROUTER = bytes.fromhex("020000000a01")


@test("truesize", needs="long ext")
def tiny_packets_with_huge_truesize_charged_as_memory():
    """64 KB frames that an IP router cuts to the 60 bytes their header admits to keep their memory."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L | {"memory_limit": 1500000}, mtu=1500) as rig:
        source = rig.device(rig.stack, "in", frames.IFF_TAP, mtu=65521, args="address 02:00:00:00:0a:01")
        lib.run("ip addr add 10.10.0.1/24 dev in", rig.netns)
        rig.on("out")
        start_queue(rig)
        for n in range(60):
            packet_ = ipv4(udp(numbered(n)), (ECT1, NOT_ECT)[n % 2], src="10.10.0.2", dst="10.8.0.2")
            source.send(ROUTER + frames.source(n) + b"\x08\0" + packet_ + bytes(60000))
        st = rig.stats()
        after, before = rig.collect()
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        lost = sum(verdict == "lost" for *_, verdict in result)
        expect(20 * st["backlog"] < st["memory_used"] <= 1500000,
               f"{st['memory_used']} bytes of memory charged for a backlog of {st['backlog']}")
        after_st = rig.check()
        expect_equal(sum(after_st[q]["dropped_memory"] for q in "cl"), lost, "dropped for memory, missing")
        expect(20 < lost < 60, f"{lost} lost")
        lib.note(f"{st['memory_used']} bytes for {st['backlog']}, {lost} dropped")


@test("conntrack", needs="long ext")
def packets_defragmented_by_conntrack_marked_and_whole():
    """conntrack puts fragments together, and what is sent is cut from a chain of them."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig:
        done = lib.run(["nft", "-f", "-"], rig.netns, check=False, stdin="""\
table inet t {
	chain c {
		type filter hook forward priority 0;
		ct state established counter
	}
}
""")
        if done.returncode:
            raise lib.Skip(f"no conntrack by nft here: {done.stderr.strip()[:80]}")
        source = router_in(rig)
        rig.on("out")
        start_queue(rig)
        payloads = {}
        for n in range(12):
            whole = udp(numbered(n, 3000), sport=1000 + n)
            if n % 2:
                payloads[n] = hostile.with_checksum(ipv6(whole, src="fd0a::2", dst="fd08::2"))[40:]
                made = [(ETH_P_IPV6, ipv6(struct.pack("!BBHI", 17, 0, at | (at + 1200 < len(whole)), n)
                                          + payloads[n][at:at + 1200], ECT1, proto=44, src="fd0a::2", dst="fd08::2"))
                        for at in range(0, len(whole), 1200)]
            else:
                payloads[n] = whole
                made = [(ETH_P_IP, ipv4(whole[at:at + 1200], ECT1, ident=n + 1, src="10.10.0.2", dst="10.8.0.2",
                                        frag=at // 8 | 0x2000 * (at + 1200 < len(whole))))
                        for at in range(0, len(whole), 1200)]
            for kind_, packet_ in made:
                source.send(ROUTER + frames.source(n) + struct.pack("!H", kind_) + packet_)
        after, before = ([f for f in tun.all(wait) if frames.number_of(f) is None]
                         for tun, wait in ((rig.out, 4), (rig.ref, 0.1)))
        before, after = ([f for f in got if b"\xa5" * 32 in f] for got in (before, after))
        result, wrong = hostile.pair_up({0: before}, {0: after}, outermost_ip)
        expect(not wrong, "; ".join(wrong[:5]))
        expect_equal((len(result), {verdict for *_, verdict in result}), (36, {"marked"}), "fragments, verdicts")
        found = {}
        for frame in after:
            # Identification and offset of IPv4; IPv6 has them behind its header, and the router chooses its own.
            if frame[12:14] == b"\x08\0":
                ident, at = struct.unpack_from("!HH", frame, 18)
                found.setdefault((4, ident), {})[at & 0x1FFF] = frame[34:]
            else:
                at, ident = struct.unpack_from("!HI", frame, 56)
                found.setdefault((6, ident), {})[at >> 3] = frame[62:]
        wholes = [b"".join(part for _, part in sorted(parts.items())) for parts in found.values()]
        expect_equal({number_in(whole): whole for whole in wholes}, payloads, "payloads")
        rig.check()


def forwarded(netns):
    """IpForwDatagrams; a list of packets counts once."""
    with lib.in_netns(netns), open("/proc/thread-self/net/snmp", encoding="ascii") as file:
        names, values = [line.split() for line in file if line.startswith("Ip:")]
    return int(values[names.index("ForwDatagrams")])


def fraglist(split, early=False):
    """Twenty packets that GRO makes lists of (that it does is asked of the router), each to come out alone."""
    if os.uname().release.startswith("5.10."):
        raise lib.Skip("skb_segment_list() of 5.10 WARNs about lists of packets from a TAP, below a pfifo, too")
    knobs = dict(MARK_ALL, drop_early=1) if early else dict(MARK_ALL_L)
    with hostile.no_splat(), Mirror(ROOMY | knobs | {"split_gso": split}, "300kbit") as rig:
        source = router_in(rig, gro=True)
        done = lib.run("ethtool -K in gro on rx-gro-list on", rig.netns, check=False)
        if done.returncode:
            raise lib.Skip(f"no rx-gro-list: {done.stderr.strip()}")
        lib.run(["unshare", "-m", "sh", "-c",
                 "mount -t sysfs none /sys && echo 20000000 >/sys/class/net/in/gro_flush_timeout"], rig.netns)
        rig.on("out")
        ecn = ECT0 if early else ECT1
        if early:
            # p_C has to be 1 before they come.
            filler = rig.keep(frames.Sender(rig.netns, "out"))
            for number in range(1, 9):
                filler.send(ether(number, ETH_P_IP, ipv4(udp(bytes(1400)), ECT0), ELSEWHERE))
            time.sleep(0.1)
        else:
            start_queue(rig)
        made = {}
        for n in range(20):
            packet_ = hostile.with_checksum(ipv4(udp(numbered(n, 500)), ecn, ident=n, frag=0x4000, src="10.10.0.2",
                                                 dst="10.8.0.2"))
            made[n] = packet_
            source.send(ROUTER + frames.source(0) + b"\x08\0" + packet_)
        time.sleep(0.05)
        lists = forwarded(rig.netns)
        expect(1 <= lists <= 5, f"20 packets were forwarded as {lists}")
        queued = rig.stats()["qlen"]
        expect(early or queued >= 19, f"{queued} queued: lists are to be split, whatever split_gso says")
        after, before = rig.collect()
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong[:5]))
        st = rig.stats()
    expect_equal(st["mark_failed"], 0, "failed marks")
    expect_equal(sorted(after), sorted(made), "packets that came")
    for n, copies in after.items():
        expect_equal(copies[0][14 + 20:], made[n][20:], f"payload of {n}")
        expect_equal(frames.checksum(copies[0][14:34]), 0, f"IPv4 checksum of {n}")
    return result, st


@test("GSO", "fraglist", needs="long ext")
def fraglist_from_gro_split_every_packet_marked():
    result, _ = fraglist(1)
    expect_equal({verdict for *_, verdict in result}, {"marked"}, "verdicts")


@test("GSO", "fraglist", needs="long ext")
def fraglist_from_gro_not_split_every_packet_marked():
    """A list has a header for each packet, and a mark on the first would reach that one alone."""
    result, _ = fraglist(0)
    expect_equal({verdict for *_, verdict in result}, {"marked"}, "verdicts")


@test("GSO", "fraglist", needs="long ext")
def fraglist_from_gro_marked_on_arrival_no_mark_fails():
    """drop_enqueue decides while the head of the list has a second user: the split."""
    _, st = fraglist(1, early=True)
    expect(st["c"]["marked_classic"] > 10, "too few marks for a test")


@test("SO_TXTIME", needs="long ext")
def stamps_in_the_past_and_future_do_not_matter():
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig:
        rig.on("out")
        start_queue(rig)
        sock = rig.udp(4)
        sock.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        stamps = [1, now - 10**9, now, now + 10**6, now + 10**9, now + 10**12, 2**63 - 1, 2**64 - 1]
        for n, stamp in enumerate(stamps):
            sock.sendmsg([numbered(n)], [(socket.SOL_SOCKET, 61, struct.pack("Q", stamp))])
        # The age of the first in the queue is the time since it came, whatever its stamp says.
        begun = time.monotonic()
        while (st := rig.stats())["qlen"]:
            expect(st["delay_l"] <= (time.monotonic() - begun + 1) * 1e6, f"an age of {st['delay_l']} us")
            time.sleep(0.001)
        after, before = rig.collect()
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        expect_equal([verdict for *_, verdict in result], ["marked"] * len(stamps), "verdicts")
        st = rig.check()
        expect(st["delay_l"] == 0, "an age without packets")


@test("SO_PRIORITY")
def priority_with_every_minor_number_queue_as_documented():
    """10:1 and 10:2 are L, 10:3 is Classic; every other one says nothing."""
    with hostile.no_splat(), Mirror(ROOMY, "1gbit") as rig:
        rig.on("out", mirror=False)
        sender = rig.keep(frames.Sender(rig.netns, "out"))
        frame = ether(1, ETH_P_IP, ipv4(), ELSEWHERE)
        rig.out.forget()
        before = rig.stats()
        minors = sorted({*range(20), *range(0, 65536, 257), *range(65516, 65536), 0x7FFF, 0x8000})
        for minor in minors:
            sender.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x100000 | minor)
            sender.send(frame)
        got = rig.out.all(1)
        expect_equal(got, [frame] * len(minors), "frames")
        st = rig.check()
        expect_equal((st["l"]["enqueued"] - before["l"]["enqueued"], st["c"]["enqueued"] - before["c"]["enqueued"]),
                     (2, len(minors) - 2), "L, C")


@test("C20")
def size_table_of_2_gib_bytes_bounded_and_nothing_hangs():
    for overhead in (2**31 - 1, -2**31, 2**20, 70000):
        with hostile.no_splat(), GsoRig("32gbit") as rig:
            lib.run("tc qdisc del dev out root", rig.netns)
            lib.tc(f"qdisc add dev out root handle 10: stab overhead {overhead} dualpi2", rig.netns)
            sender = frames.Sender(rig.netns, "out")
            rig.stack.callback(sender.close)
            vnets = hostile.VnetSocket(rig.netns, "out")
            rig.stack.callback(vnets.close)
            sent = [ether(n, ETH_P_IP, ipv4(ecn=n % 4), ELSEWHERE) for n in range(1, 41)]
            for frame in sent:
                sender.send(frame)
            before = lib.stats(rig.netns, "out")
            head, frame = GSO[0].build(99, ECT1, 4)
            vnets.send(frame, head)
            segments = lib.stats(rig.netns, "out")["bytes"] - before["bytes"]
            # Ten segments, each from one byte to what the newest kernels bound a packet by.
            expect(10 <= segments <= 10 << 20, f"{segments} bytes for ten segments, overhead {overhead}")
            got = rig.out.drain()
            expect_equal([got[n] for n in range(1, 41)], [[frame] for frame in sent], f"frames, overhead {overhead}")
            expect_equal(len(got[99]), 10, "segments")
            st = lib.stats(rig.netns, "out")
            lib.check_identities(st)
            expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")
            lib.note(f"overhead {overhead}: {st['bytes'] // st['packets']} bytes a packet, credit {st['credit']}")


@test("MTU", needs="long ext")
def mtu_cut_while_the_queue_is_full_everything_accounted():
    """From 65521 to 68 and back: the memory limit follows, frames that wait are let out or counted."""
    with hostile.no_splat(), Mirror(MARK_ALL_L, "10mbit", mtu=65521) as rig:
        rig.on("out")
        rig.out.forget()
        sender = rig.keep(frames.Sender(rig.netns, "out"))
        sent = {}

        def send(count, size):
            for _ in range(count):
                n = len(sent)
                sent[n] = ether(n, ETH_P_IP, ipv4(udp(numbered(n, size)), (ECT1, NOT_ECT)[n % 2]), ELSEWHERE)
                with contextlib.suppress(OSError):
                    sender.send(sent[n])
        send(40, 60000)
        for mtu, size in ((68, 12), (1500, 1400), (68, 12), (65521, 60000)):
            lib.run(f"ip link set out mtu {mtu}", rig.netns)
            time.sleep(0.05)
            send(40, size)
        # The kernel speaks up at each MTU that is enough for IPv6.
        after, before = rig.collect(6, uninvited=True)
        result, wrong = hostile.pair_up({n: [f] for n, f in sent.items()} | {None: before.get(None, [])}, after,
                                        outermost_ip)
        expect(not wrong, "; ".join(wrong[:5]))
        st = rig.check()
        lost = sum(verdict == "lost" for *_, verdict in result)
        drops = sum(st[q][key] for q in "cl" for key in st[q] if key.startswith("dropped_"))
        expect_equal(drops, lost, "counted as dropped, missing")
        expect(any(verdict == "marked" for *_, verdict in result), "no mark")
        lib.note(f"{len(result)} frames, {lost} lost, memlimit {st['memory_limit']}")


if __name__ == "__main__":
    lib.main()
