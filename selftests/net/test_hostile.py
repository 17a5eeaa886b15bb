#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: check kernel=6.1
# suite: long kernel=stock
"""
test_hostile.py - packets that dualpi2 meets in the field and that test_packets.py does not make: GSO of every
type with headers that lie, packets in many pages, pages that belong to somebody else, devices without a
link-layer header, tunnels, defragmented packets, strange stamps, lengths and MTUs.

The rule is that of test_packets.py: a packet that comes out is the one that went in, but for ECT that became
CE and, with IPv4, the header's checksum; nothing changes where no IP header is; no copy of it elsewhere
changes; what does not come out is counted as dropped; the kernel does not complain. What went in is taken
from a copy of the packet that never met an AQM.

Each kind is a row of a table here, in gso.py or in packets.py; the last test says how many there are.

The environment: DUALPI2_BUFFERS_MOVE, set by fuzz/test_faults.py: what that does to the kernel itself is left out.
"""
import contextlib
import mmap
import os
import socket
import struct
import threading
import time
from collections import namedtuple

import frames
import hostile
import lib
from frames import ETH_HLEN, ETH_P_8021AD, ETH_P_8021Q, ETH_P_IP, ETH_P_IPV6, ether, ipv4, ipv6, tagged, udp
from gso import GSO, GsoRig
from hostile import ROOMY, Mirror, number_in, numbered, outermost_ip
from lib import CE, ECT0, ECT1, NOT_ECT, each, expect, expect_equal, test
from packets import ELSEWHERE, KINDS, MARK_ALL, MARK_ALL_L, START, Load

# Names of the kinds that this program has, by group.
CENSUS = {}


def census(group, names):
    CENSUS.setdefault(group, {}).update(dict.fromkeys(names))


# GSO

census("gso", (f"{k.name}, ipv{v}" for k in GSO for v in k.versions))


def send_kinds(send, ecns, kinds=GSO, pause=0.0, first=lambda: None):
    """Send every kind; returns {number: (name, codepoint)} and the names that the kernel did not take."""
    names, refused = {}, []
    built = [(f"{k.name}, ipv{version}", ecn, k.build, version)
             for k in kinds for version in k.versions for ecn in ecns]
    # All are made before first() fills the queue, so that it does not run empty meanwhile.
    built = [(number, name, ecn, *build(number, ecn, version))
             for number, (name, ecn, build, version) in enumerate(built, 100)]
    first()
    for number, name, ecn, head, frame in built:
        if pause:
            time.sleep(pause)
        if send(head, frame):
            names[number] = (name, ecn)
        else:
            refused.append(name)
    return names, sorted(set(refused))


def verdicts(names, before, after, beside=False):
    """[(name, codepoint on the wire, ip, verdict)] of every packet that an AQM without faults would let out."""
    def ip_of(frame):
        tagged_ = struct.unpack_from("!H", frame, 12)[0] in (ETH_P_8021Q, ETH_P_8021AD)
        return outermost_ip(frame, int(beside and tagged_))
    known, came = ({names[n]: [without_random(frame, ip_of(frame)) for frame in got[n]] for n in got if n in names}
                   for got in (before, after))
    result, wrong = hostile.pair_up(known, came, ip_of)
    expect(not wrong, f"{len(wrong)} of {len(result)} wrong: " + "; ".join(wrong[:8]))
    return [(name, codepoint, verdict) for (name, _), codepoint, verdict in result]


def without_random(frame, ip):
    """The kernel gives IPv6 fragments of UFO a number, another for each copy that it cuts."""
    if ip is not None and frame[ip] >> 4 == 6 and frame[ip + 6] == 44 and len(frame) >= ip + 48:
        return frame[:ip + 44] + bytes(4) + frame[ip + 48:]
    return frame


def tell(result, refused=()):
    lib.note(f"{len({name for name, *_ in result})} kinds, {len(result)} packets: " + ", ".join(
        f"{sum(v == verdict for *_, v in result)} {verdict}" for verdict in ("same", "marked", "lost")))
    if refused:
        lib.note(f"{len(refused)} kinds that this kernel does not take: " + "; ".join(refused))


def gso_marked(bridge, split, root_words=""):
    """Every segment of an ECT packet is marked, none of another, and nothing else changes."""
    with hostile.no_splat(), GsoRig("500kbit", bridge=bridge, ecn_mask=lib.ANY_ECT, split_gso=split,
                                    root_words=root_words, **ROOMY, **MARK_ALL_L) as rig:
        send, reference = rig.both_ways()
        load = Load(frames.Sender(rig.netns, "out"))
        rig.stack.callback(load.injector.close)
        # htb has to be out of tokens, and two packets have to wait, before every one that follows is marked.
        # The kernel cuts UFO over IPv6 in memory that it shares with clones, AQM or not.
        kinds = [k if not bridge or "ufo" not in k.name else k._replace(versions=(4,)) for k in GSO]
        names, refused = send_kinds(send, (ECT1, ECT0, NOT_ECT, CE), kinds,
                                    first=lambda: load.fill(60, ECT1, 1514))
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after, bridge)
        wrong = [row for row in result if row[2] != ("marked" if row[1] in (ECT1, ECT0) else "same")]
        expect(not wrong, f"{len(wrong)} of {len(result)} packets: " + "; ".join(map(str, wrong[:8])))
        tell(result, refused)
        st = rig.stats()
        # Without the split the core counts as many packets as gso_segs says.
        if split:
            rig.check()
        expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0),
                     "left, failed marks")
        sent = sum(st[q]["sent"] for q in "cl")
        if split:
            expect_equal(sent, len(result) + 60, "packets sent, packets at the receiver")
            expect_equal(st["drops"], st["gso_failed"], "drops, packets that no device could segment")


@test("GSO", needs="long ext")
def gso_kinds_from_a_packet_socket_split_every_segment_marked():
    gso_marked(False, 1)


@test("GSO", needs="long ext")
def gso_kinds_from_a_packet_socket_not_split_every_segment_marked():
    gso_marked(False, 0)


@test("GSO", "clone isolation", needs="long ext")
def gso_kinds_over_a_bridge_split_other_port_unmarked():
    gso_marked(True, 1)


@test("GSO", "clone isolation", needs="long ext")
def gso_kinds_over_a_bridge_not_split_other_port_unmarked():
    gso_marked(True, 0)


@test("GSO", "C20", needs="long ext")
def gso_kinds_with_a_size_table_every_segment_marked():
    gso_marked(False, 1, "stab overhead 24 linklayer atm")


def expect_dropped(result, st, *reasons):
    """What is missing was counted, each packet once."""
    lost = sum(verdict == "lost" for *_, verdict in result)
    counted = sum(st[q][reason] for q in "cl" for reason in reasons)
    expect(lost > 50, f"only {lost} packets were dropped, too few for a test")
    expect_equal((counted, st["drops"]), (lost, lost + st["gso_failed"]), "counted as dropped, drops; missing")
    wrong = [row for row in result if row[2] == "marked" and row[1] not in (ECT0, ECT1)]
    expect(not wrong, f"marked without ECT: {wrong[:8]}")


@test("GSO", needs="timed ext")
def gso_kinds_dropped_by_the_aqm_counted_and_rest_unchanged():
    """p_C is 1: Not-ECT packets are dropped at departure, but for one in 65."""
    with hostile.no_splat(), GsoRig("1mbit", **ROOMY, **MARK_ALL) as rig:
        send, reference = rig.both_ways()
        load = Load(frames.Sender(rig.netns, "out"))
        rig.stack.callback(load.injector.close)
        names, refused = send_kinds(send, (NOT_ECT,), first=lambda: load.fill(4, ECT0, 1514))
        load.fill(6, ECT0, 1514)
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after)
        tell(result, refused)
        expect_dropped(result, rig.check(), "dropped_aqm")


@test("GSO", "05ed733b65ab", needs="long ext")
def gso_kinds_with_room_for_some_segments_rest_counted():
    """The queue is at its limit all the time: of each packet as many segments fit as have left."""
    with hostile.no_splat(), GsoRig("300kbit", limit=25, **MARK_ALL_L) as rig:
        send, reference = rig.both_ways()
        names, refused = send_kinds(send, (NOT_ECT, ECT1), pause=0.05)
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after)
        tell(result, refused)
        by_kind = {}
        for name, codepoint, verdict in result:
            by_kind.setdefault((name, codepoint), set()).add(verdict == "lost")
        cut = sum(len(seen) == 2 for seen in by_kind.values())
        lib.note(f"{cut} packets of which some segments fitted")
        expect(cut > 10, "too few packets of which only a part fitted")
        expect_dropped(result, rig.check(), "dropped_limit")


@test("GSO", needs="long ext")
def gso_kinds_to_a_device_that_segments_marked_as_a_whole():
    """`out` takes TSO: with no_split_gso the packet that is marked leaves in one piece."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L | {"split_gso": 0}, "500kbit") as rig:
        tso = rig.device(rig.stack, "tso", frames.IFF_TAP | hostile.IFF_VNET_HDR, words="arp off",
                         offload=hostile.TUN_F_CSUM | hostile.TUN_F_TSO4 | hostile.TUN_F_TSO6 | hostile.TUN_F_TSO_ECN)
        rig.on("tso")
        sock = rig.keep(hostile.VnetSocket(rig.netns, "tso"))
        rig.keep(filler := frames.Sender(rig.netns, "tso"))

        def fill():
            for number in range(1, 61):
                filler.send(ether(number, ETH_P_IP, ipv4(udp(bytes(1472)), ECT1), ELSEWHERE))
        whole = 0
        sent, _ = send_kinds(lambda head, frame: sock.send(frame, head), (ECT1, NOT_ECT), first=fill)
        got = tso.drain(4)
        marked = 0
        built = {(f"{k.name}, ipv{v}", ecn): (k.build, v) for k in GSO for v in k.versions for ecn in (ECT1, NOT_ECT)}
        for number, (name, ecn) in sent.items():
            build, version = built[name, ecn]
            frame = build(number, ecn, version)[1]
            copies = got.get(number, [])
            if len(copies) != 1 or len(copies[0]) != len(frame):
                continue        # cut by the core: not a kind that this device takes
            whole += 1
            ip = outermost_ip(frame)
            verdict = frames.judge(frame, copies[0], ip)
            want = "marked" if ip is not None and ecn == ECT1 else "same"
            # What is no GSO packet after all got its checksum.
            if verdict != want and len(frame) <= 1514:
                whole -= 1
                continue
            expect_equal(verdict, want, f"{name}, codepoint {ecn}")
            marked += verdict == "marked"
        lib.note(f"{whole} packets left in one piece, {marked} marked")
        expect(marked > 30, "too few packets were marked as a whole")
        st = rig.stats()
        expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0), "left, failed")


# Devices without a link-layer header, and tunnels

# words: of ip link add; outer: version of the outer header; head: bytes in front of the inner packet;
# inner: versions that it carries; ether: it carries Ethernet frames; mod: module
Tunnel = namedtuple("Tunnel", "name words outer head inner ether mod")
V4 = "local 10.8.0.1 remote 10.8.0.2 ttl 64"
V6 = "local fd08::1 remote fd08::2"
TUNNELS = [
    Tunnel("ipip", f"t0 type ipip {V4}", 4, 34, (4,), False, "ipip"),
    Tunnel("sit", f"t0 type sit mode any {V4}", 4, 34, (4, 6), False, "sit"),
    Tunnel("gre", f"t0 type gre {V4}", 4, 38, (4, 6), False, "ip_gre"),
    Tunnel("gretap", f"t0 type gretap {V4}", 4, 38, (4, 6), True, "ip_gre"),
    Tunnel("ip6ip6", f"t0 type ip6tnl mode any {V6} encaplimit none", 6, 54, (4, 6), False, "ip6_tunnel"),
    Tunnel("ip6gre", f"t0 type ip6gre {V6} encaplimit none tclass inherit", 6, 58, (4, 6), False, "ip6_gre"),
    Tunnel("ip6gretap", f"t0 type ip6gretap {V6} encaplimit none tclass inherit", 6, 58, (4, 6), True, "ip6_gre"),
    Tunnel("vxlan", f"t0 type vxlan id 7 {V4} dstport 4789 dev out", 4, 50, (4, 6), True, "vxlan"),
    Tunnel("vxlan over ipv6", f"t0 type vxlan id 7 {V6} dstport 4789 dev out", 6, 70, (4, 6), True, "vxlan"),
]
census("tunnel, outer header", (f"{t.name}, inner ipv{v}" for t in TUNNELS for v in t.inner))
census("tunnel, gso inside", (f"{t.name}, inner ipv{v}" for t in TUNNELS for v in t.inner))
census("no link-layer header", [f"{t.name}, ipv{v}" for t in TUNNELS if not t.ether for v in t.inner] +
       [f"{name}, ipv{v}" for name in ("tun", "wireguard") for v in (4, 6)])
INNER_TYPE = {4: ETH_P_IP, 6: ETH_P_IPV6}


def tunnel_up(rig, tunnel):
    hostile.module(tunnel.mod, f"/sys/module/{tunnel.mod.replace('-', '_')}")
    hostile.linked(rig.netns, tunnel.words)
    lib.run("ip link set t0 mtu 1400 up" + (" arp off" if tunnel.ether else ""), rig.netns)


def inner_packet(number, version, ecn, size=32):
    return (ipv4 if version == 4 else ipv6)(udp(numbered(number, size)), ecn)


def send_inner(rig, dev, ether_, versions, ecns):
    """Packets into a device, numbered; returns the socket's descriptions {number: packet}."""
    sent = {}
    if ether_:
        sender = rig.keep(frames.Sender(rig.netns, dev))
    else:
        sender = rig.keep(hostile.L3Socket(rig.netns, dev))
    for n in range(60):
        version, ecn = versions[n % len(versions)], ecns[n % len(ecns)] if n > START else ECT1
        inner = inner_packet(n, version, ecn, 32 if n > START else 1200)
        if ether_:
            inner = ether(n, INNER_TYPE[version], inner, ELSEWHERE)
            sender.send(inner)
        else:
            sender.send(inner, INNER_TYPE[version])
        sent[n] = inner
    return sent


def expect_marked(result, above, wanted=lambda ecn: ecn == ECT1):
    late = [row for row in result if row[0] > above]
    wrong = [row for row in late if row[2] != ("marked" if row[1] is not None and wanted(row[1]) else "same")]
    expect(not wrong, f"{len(wrong)} of {len(late)} packets: {wrong[:8]}")
    count = sum(row[2] == "marked" for row in result)
    expect(count > 5, f"only {count} packets were marked")
    return count


def tunnel_name(tunnel):
    return tunnel.name.replace(" ", "_")


@each(TUNNELS, ("RFC 6040",), tunnel_name, needs="long ext")
def tunnel_CASE_outer_header_marked_inner_bytes_equal(tunnel):
    """dualpi2 is on the device below the tunnel."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig:
        tunnel_up(rig, tunnel)
        rig.on("out")
        sent = send_inner(rig, "t0", tunnel.ether, tunnel.inner, (ECT1, NOT_ECT, ECT1, ECT1, NOT_ECT))
        after, before = rig.collect()
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong[:8]))
        expect_equal(sorted(after), sorted(sent), "packets that came")
        marked = expect_marked(result, START)
        for number, copies in after.items():
            expect_equal(copies[0][tunnel.head:], sent[number], f"inner bytes of packet {number}")
        st = rig.check()
        expect_equal((st["l"]["marked_native"], st["mark_failed"]), (marked, 0), "native marks, failed")
        lib.note(f"{len(result)} packets, {marked} marked")


@each([t for t in TUNNELS if not t.ether] + [Tunnel("tun", None, 4, 0, (4, 6), False, "tun")], ("RFC 6040",),
      tunnel_name, needs="long ext")
def egress_on_CASE_itself_header_marked_right_there(tunnel):
    """The packet has no link-layer header when dualpi2 sees it."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig:
        if tunnel.words:
            tunnel_up(rig, tunnel)
            source = rig.out
        else:
            source = rig.device(rig.stack, "t0", hostile.IFF_TUN)
        rig.on("t0", l3=True)
        send_inner(rig, "t0", False, tunnel.inner, (ECT1, NOT_ECT, ECT0, CE, ECT1))
        rig.out = source
        after, before = rig.collect()
        after = {n: [frame[tunnel.head:] for frame in got] for n, got in after.items()}
        result, wrong = hostile.pair_up(before, after, hostile.l3_ip)
        expect(not wrong, "; ".join(wrong[:8]))
        expect_equal(sum(verdict == "lost" for *_, verdict in result), 0, "lost")
        marked = expect_marked(result, START)
        st = rig.check()
        expect_equal((st["l"]["marked_native"], st["mark_failed"], st["unparsed"]), (marked, 0, 0),
                     "native marks, failed, unparsed")
        lib.note(f"{len(result)} packets, {marked} marked")


def inner_gso(number, version, ecn, ether_):
    """A GSO packet for the inside of a tunnel: virtio header, frame, and its segments' number."""
    k = GSO[0]
    head, frame = k.build(number, ecn, version)
    if ether_:
        return head, frame
    gso_flags, gso_type, header, size, start, offset = struct.unpack("@BBHHHH", head)
    head = struct.pack("@BBHHHH", gso_flags, gso_type, header - ETH_HLEN, size, start - ETH_HLEN, offset)
    return head, frame[ETH_HLEN:]


class L3VnetSocket(hostile.VnetSocket):
    """The same for a device without link-layer header."""

    def __init__(self, netns, dev):
        super().__init__(netns, dev)
        self.dev = dev

    def send(self, frame, head=hostile.NO_VNET):
        try:
            self.sock.sendto(head + frame, (self.dev, INNER_TYPE[frame[0] >> 4]))
        except OSError as error:
            return error.errno == 105       # ENOBUFS
        return True


@each(TUNNELS, ("RFC 6040",), tunnel_name, needs="long ext")
def tunnel_CASE_with_gso_inside_outer_marked_segments_equal(tunnel):
    """The tunnel hands down a GSO packet with two headers: each segment gets its mark in the outer one."""
    for split in (1, 0):
        with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L | {"split_gso": split}, "300kbit") as rig:
            tunnel_up(rig, tunnel)
            rig.on("out")
            sender = rig.keep((hostile.VnetSocket if tunnel.ether else L3VnetSocket)(rig.netns, "t0"))
            filler = rig.keep(frames.Sender(rig.netns, "out"))
            for number in range(1, 11):
                filler.send(ether(number, ETH_P_IP, ipv4(udp(bytes(1400)), ECT1), ELSEWHERE))
            wanted = 0
            for n in range(10):
                version = tunnel.inner[n % len(tunnel.inner)]
                head, frame = inner_gso(500 + n, version, (ECT1, NOT_ECT)[n // 2 % 2], tunnel.ether)
                expect(sender.send(frame, head), "the tunnel refused it")
                wanted += 10
            after, before = ([f for f in tun.all(wait) if len(f) > tunnel.head + 500 and frames.number_of(f) is None]
                             for tun, wait in ((rig.out, 4), (rig.ref, 0.1)))
            if not before and not after:
                # Before "ip6_gre: fix hardware header length for NBMA tunnels" (6.1.188), ip6gretap drops what a
                # packet socket gives it to split.
                raise lib.Skip(f"no segment leaves {tunnel.name}: none reaches the mirror before the AQM either")
            at = tunnel.head + (ETH_HLEN if tunnel.ether else 0)
            # Those of one codepoint are in one queue and keep their order.
            before_by, after_by = ({ecn: [f for f in got if frames.ecn_of(f[at:], 0) == ecn] for ecn in range(4)}
                                   for got in (before, after))
            result, wrong = hostile.pair_up(before_by, after_by, outermost_ip)
            expect(not wrong, "; ".join(wrong[:8]))
            bad = [row for row in result if row[2] != ("marked" if row[1] == ECT1 else "same")]
            expect(not bad, f"{len(bad)} of {len(result)} packets: {bad[:5]}")
            expect_equal((len(result), sum(row[2] == "marked" for row in result)), (wanted, wanted * 6 // 10),
                         "segments, marked")
            for frame in after:
                inner = frame[at:]
                expect(hostile.checksums_are_right(inner), f"a checksum inside is wrong: {inner[:40].hex()}")
                expect(frames.ecn_of(inner, 0) in (NOT_ECT, ECT1), "the inner header was marked")
            st = rig.stats()
            expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0),
                         "left, failed")
            lib.note(f"split {split}: {len(result)} segments, {sum(r[2] == 'marked' for r in result)} marked, "
                     f"{st['l']['sent'] - 10} and {st['c']['sent']} packets in L and C")


# Whose pages?

SO_ZEROCOPY, MSG_ZEROCOPY, UDP_SEGMENT = 60, 0x4000000, 103
PAGE = mmap.PAGESIZE
census("pages", ("17 fragments from a packet ring, ipv4", "17 fragments from a packet ring, ipv6",
                 "msg_zerocopy udp, ipv4", "msg_zerocopy udp, ipv6", "msg_zerocopy udp gso",
                 "sendfile to a udp socket", "ip header in the page cache, vxlan and bridge, ipv4",
                 "ip header in the page cache, vxlan and bridge, ipv6", "shared packet from pktgen",
                 "sniffer on the device", "huge truesize, tiny data"))


def start_queue(rig, dev="out"):
    """A standing queue, so that everything which follows is marked."""
    filler = rig.keep(frames.Sender(rig.netns, dev))
    for number in range(1, 11):
        filler.send(ether(number, ETH_P_IP, ipv4(udp(bytes(1400)), ECT1), ELSEWHERE))


class BigRing(frames.RingSender):
    """Slots for frames of 64 KB, which lie in 17 pages."""

    SLOT = BLOCK = 1 << 17
    PER_BLOCK = 1
    BLOCKS = SLOTS = 8
    ROOM = SLOT - 32


@test("geometry", needs="timed ext")
def frame_in_17_pages_of_the_sender_marked_pages_unchanged():
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L, "1mbit", mtu=65521) as rig:
        rig.on("out", mirror=False)
        start_queue(rig)
        ring = rig.keep(BigRing(rig.netns, "out"))
        sent = []
        for version in (4, 6):
            for ecn in (ECT1, NOT_ECT):
                number = 100 + len(sent)
                payload = udp(numbered(number, 65521 - (28 if version == 4 else 48)))
                sent.append(ether(number, INNER_TYPE[version],
                                  (ipv4 if version == 4 else ipv6)(payload, ecn), ELSEWHERE))
                expect(ring.send(sent[-1]), "not queued")
        after, before = rig.collect()
        for slot, frame in enumerate(sent):
            expect_equal(ring.content(slot, len(frame)), frame, "the sender's pages")
        result, wrong = hostile.pair_up({n: [f] for n, f in enumerate(sent, 100)}, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        expect_equal([verdict for *_, verdict in result], ["marked", "same"] * 2, "verdicts")
        rig.check()


@test("sharing", needs="timed ext")
def zerocopy_from_a_udp_socket_marked_pages_unchanged():
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L, "500kbit", mtu=9000) as rig:
        rig.on("out")
        start_queue(rig)
        pages = mmap.mmap(-1, 16 * PAGE)
        kept = b"".join(numbered(n, 2048) for n in range(32))
        pages[:] = kept
        view = memoryview(pages)
        for version in (4, 6):
            sock = rig.udp(version)
            sock.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
            for n in range(0, 32, 2):
                sock.send(view[n * 2048:(n + 2) * 2048 - 50], MSG_ZEROCOPY)
            sock.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1024)
            with contextlib.suppress(OSError):      # kernels that do not take both
                sock.send(view[:8 * 1024], MSG_ZEROCOPY)
        after, before = rig.collect()
        view.release()
        expect_equal(pages[:], kept, "the sender's pages")
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        expect_equal({verdict for *_, verdict in result}, {"marked"}, "verdicts")
        expect(len(result) >= 32, f"only {len(result)} packets")
        lib.note(f"{len(result)} packets")
        rig.check()


def in_memory_file(content):
    """A file whose pages are the page cache's."""
    fd = os.memfd_create("hostile") if hasattr(os, "memfd_create") else os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    os.write(fd, content)
    return fd


def file_content(fd, size):
    return os.pread(fd, size, 0)


@test("page cache", needs="timed ext")
def sendfile_to_a_udp_socket_marked_file_unchanged():
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L, "500kbit", mtu=9000) as rig:
        rig.on("out")
        start_queue(rig)
        content = b"".join(numbered(n, PAGE) for n in range(16))
        fd = in_memory_file(content)
        for version in (4, 6):
            sock = rig.udp(version)
            for n in range(16):
                expect_equal(os.sendfile(sock.fileno(), fd, n * PAGE, PAGE), PAGE, "bytes sent")
        after, before = rig.collect()
        expect_equal(file_content(fd, len(content)), content, "the file")
        os.close(fd)
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        expect_equal((len(result), {verdict for *_, verdict in result}), (32, {"marked"}), "packets, verdicts")
        rig.check()


@test("page cache", needs="timed ext")
def ip_header_in_the_page_cache_behind_vxlan_and_a_bridge_marked_file_unchanged():
    """A file holds VXLAN payloads, whole frames.  sendfile() puts its pages into UDP datagrams; VXLAN takes
    the outer headers off and a bridge forwards what is left: an IP header that lies in the page cache.
    """
    hostile.module("vxlan", "/sys/module/vxlan")
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L, "200kbit", mtu=4000) as rig:
        hostile.linked(rig.netns, "v0 type veth peer name v1")
        hostile.linked(rig.netns, "br0 type bridge mcast_snooping 0")
        with contextlib.ExitStack() as stack:
            peer = f"{rig.netns}p"
            lib.run(["ip", "netns", "add", peer])
            stack.callback(lib.run, ["ip", "netns", "del", peer], check=False)
            lib.run(f"ip link set v1 netns {peer}", rig.netns)
            lib.run(["ip", "-batch", "-"], peer, stdin="""\
link set v1 mtu 9000 address 02:00:00:00:09:02 up
addr add 10.9.0.2/24 dev v1
neigh add 10.9.0.1 lladdr 02:00:00:00:09:01 nud permanent dev v1
""")
            lib.run(["ip", "-batch", "-"], rig.netns, stdin="""\
link set v0 mtu 9000 address 02:00:00:00:09:01 up
addr add 10.9.0.1/24 dev v0
link add x0 type vxlan id 7 local 10.9.0.1 remote 10.9.0.2 dstport 4789 dev v0
link set x0 mtu 4000 master br0 up
link set out master br0
link set br0 up
""")
            # Aggregation would have pulled the header out of the page.
            lib.run("ethtool -K x0 gro off", rig.netns)
            lib.run("ethtool -K v0 gro off", rig.netns)
            rig.on("out", mirror=False)
            start_queue(rig)
            records = []
            for n in range(32):
                version, ecn = (4, 6)[n % 2], (ECT1, NOT_ECT)[n // 2 % 2]
                made = (ipv4 if version == 4 else ipv6)(udp(numbered(n, 1000)), ecn)
                # Behind a tag, because VXLAN pulls the IP header of other frames out of the page (2024).
                frame = tagged(n, [(ETH_P_8021Q, 17)], INNER_TYPE[version], made, ELSEWHERE)
                records.append(b"\x08\0\0\0\0\0\x07\0" + frame)
            content = b"".join(record.ljust(PAGE, b"\0") for record in records)
            fd = in_memory_file(content)
            with lib.in_netns(peer):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.connect(("10.9.0.1", 4789))
            for n, record in enumerate(records):
                expect_equal(os.sendfile(sock.fileno(), fd, n * PAGE, len(record)), len(record), "bytes sent")
            after, _ = rig.collect()
            sock.close()
            expect_equal(file_content(fd, len(content)), content, "the file")
            os.close(fd)
            result, wrong = hostile.pair_up({n: [r[8:]] for n, r in enumerate(records)}, after, outermost_ip)
            expect(not wrong, "; ".join(wrong))
            bad = [row for row in result if row[2] != ("marked" if row[1] == ECT1 else "same")]
            expect(not bad, f"{bad[:8]}")
            rig.check()


@test("sharing", needs="virtual_time ext")
def packet_that_pktgen_still_holds_not_marked_and_counted():
    """pktgen keeps the last packet until it is sent: two users, so it may not be written to."""
    if "DUALPI2_BUFFERS_MOVE" in os.environ:
        raise lib.Skip("fail_skb_realloc moves shared packets, which the kernel takes for a bug of its own")
    hostile.module("pktgen", "/proc/net/pktgen")
    # pktgen waits for it in a loop that does nothing else: the link is fast, so that it is short.
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L, "400mbit") as rig:
        rig.on("out", mirror=False)     # it would make a copy of its own
        with lib.in_netns(rig.netns):
            if not os.path.exists("/proc/net/pktgen/kpktgend_0"):
                raise lib.Skip("pktgen has no thread here")

            def say(name, *lines):
                for line in lines:
                    with open(f"/proc/net/pktgen/{name}", "w", encoding="ascii") as file:
                        file.write(line + "\n")
            say("kpktgend_0", "rem_device_all", "add_device out")
            say("out", "count 8", "delay 0", "pkt_size 1400", "xmit_mode queue_xmit", "dst 10.8.0.2",
                f"dst_mac {':'.join(f'{b:02x}' for b in ELSEWHERE)}", "tos 01")
            # The writer sleeps until the last packet is free, which somebody has to read.
            starter = threading.Thread(target=lambda: say("pgctrl", "start"))
            starter.start()
            got = [frame for frame in rig.out.all(2) if len(frame) == 1400]
            starter.join(60)
            expect(not starter.is_alive(), "pktgen still waits for its last packet")
            say("kpktgend_0", "rem_device_all")
        codepoints = [frames.ecn_of(frame, ETH_HLEN) for frame in got]
        lib.note(f"codepoints {codepoints}")
        expect_equal((len(got), codepoints[-1]), (8, ECT1), "packets, codepoint of the last")
        expect(codepoints.count(CE) >= 3, "too few marks")
        expect(all(frames.checksum(frame[14:34]) == 0 for frame in got), "IPv4 checksum")
        expect_equal(rig.check()["mark_failed"], 1, "failed marks")


@test("sharing", needs="timed ext")
def sniffer_on_the_device_sees_what_left_and_keeps_it():
    """A packet socket has copies of what went out; they share its memory, and a mark comes before."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig:
        rig.on("out")
        sniffer = rig.keep(frames.Receiver(rig.netns, "out"))
        sniffer.sock.setsockopt(frames.SOL_PACKET, frames.PACKET_IGNORE_OUTGOING, 0)
        start_queue(rig)
        for n in range(20):
            rig.udp(4, (ECT1, NOT_ECT)[n % 2]).send(numbered(n))
        after, before = rig.collect()
        seen = {}
        while (frame := sniffer.read()) is not None:
            if number_in(frame) is not None:
                seen.setdefault(number_in(frame), []).append(frame)
        expect_equal(seen, after, "what the sniffer has, what came")
        result, wrong = hostile.pair_up(before, after, outermost_ip)
        expect(not wrong, "; ".join(wrong))
        expect_equal([verdict for *_, verdict in result], ["marked", "same"] * 10, "verdicts")
        rig.check()


@test("truesize", needs="long ext")
def tiny_packets_with_huge_truesize_charged_as_memory():
    """64 KB frames that an IP router cuts to the 60 bytes their header admits to keep their memory."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L | {"memory_limit": 1500000}, mtu=1500) as rig:
        source = rig.device(rig.stack, "in", frames.IFF_TAP, mtu=65521, words="address 02:00:00:00:0a:01")
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


# What the stack makes: reassembled, aggregated, stamped

census("stack", ("defragmented by conntrack, ipv4", "defragmented by conntrack, ipv6", "fraglist from gro, split",
                 "fraglist from gro, not split", "fraglist from gro, marked on arrival", "SO_TXTIME in the past",
                 "SO_TXTIME in the future"))


def router_in(rig, gro=False):
    """A TAP device whose packets are forwarded to `out`."""
    flags = frames.IFF_TAP | (hostile.IFF_NAPI if gro else 0)
    source = rig.device(rig.stack, "in", flags, mtu=9000, words="address 02:00:00:00:0a:01")
    lib.run(["ip", "-batch", "-"], rig.netns, stdin="""\
addr add 10.10.0.1/24 dev in
addr add fd0a::1/64 dev in nodad
""")
    return source


ROUTER = bytes.fromhex("020000000a01")


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
            # Identification and offset of IPv4; IPv6 has them behind its header, and the router chose anew.
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


census("stack", ("sctp gso", "big tcp, ipv4", "big tcp, ipv6", "tcp sendfile, forwarded"))


def stream(net, family, kind, proto, size, file=False):
    """Send so many bytes from snd to rcv; True if they came as they were."""
    address = "10.2.0.1" if family == socket.AF_INET else "fd02::1"
    with lib.in_netns(net.rcv):
        server = socket.socket(family, kind, proto)
    with lib.in_netns(net.snd):
        client = socket.socket(family, kind, proto)
    with contextlib.closing(server), contextlib.closing(client):
        if family == socket.AF_INET:
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        server.bind((address, 7000))
        server.listen(1)
        got = []

        def receive():
            peer, _ = server.accept()
            with contextlib.closing(peer):
                while data := peer.recv(1 << 20):
                    got.append(data)
        reader = threading.Thread(target=receive, daemon=True)
        reader.start()
        content = bytes(range(251)) * (size // 251 + 1)
        client.settimeout(60)
        client.connect((address, 7000))
        if file:
            fd = in_memory_file(content)
            client.settimeout(None)
            at = 0
            while at < len(content):
                at += os.sendfile(client.fileno(), fd, at, len(content) - at)
            expect_equal(file_content(fd, len(content)) == content, True, "the file is as it was")
        else:
            for at in range(0, len(content), 20000):
                client.sendall(content[at:at + 20000])
        client.shutdown(socket.SHUT_WR) if proto != 132 else client.close()
        reader.join(120)
        if file:
            expect_equal(file_content(fd, len(content)) == content, True, "the file is as it was")
            os.close(fd)
        expect(not reader.is_alive(), "the stream did not end")
        expect(b"".join(got) == content, f"of {len(content)} bytes {len(b''.join(got))} came, or others")


@test("GSO", needs="timed ext")
def sctp_gso_data_arrives_and_accounts_agree():
    if "DUALPI2_BUFFERS_MOVE" in os.environ:
        raise lib.Skip("the kernel's sctp_unpack_cookie() itself reads a buffer that has moved")
    hostile.module("sctp", "/proc/net/sctp")
    with hostile.no_splat(), lib.Net(offloads=True) as net:
        for split in (1, 0):
            with net.aqm(20e6, split_gso=split, ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as q:
                stream(net, socket.AF_INET, socket.SOCK_STREAM, 132, 300000)
                q.until_idle()
                st = q.stats()
                lib.note(f"split {split}: {sum(st[c]['enqueued'] for c in 'cl')} packets, "
                         f"{sum(st[c]['enqueued_bytes'] for c in 'cl')} bytes, {st['ecn_mark']} marked")
                if not split:       # the core counts segments
                    expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")
                    q.check = lambda: None


@test("GSO", "BIG TCP", needs="timed ext")
def big_tcp_data_arrives_and_accounts_agree():
    with hostile.no_splat(), lib.Net(offloads=True) as net:
        size = 8 * 65535        # the most that a kernel takes, 512 KB
        for netns, dev in ((net.snd, "eth0"), (net.rtr, "up"), (net.rtr, "down"), (net.rcv, "eth0")):
            done = lib.run(f"ip link set dev {dev} gso_max_size {size} gro_max_size {size}", netns, check=False)
            if done.returncode:
                raise lib.Skip(f"no gso_max_size of {size}: {done.stderr.strip()[:80]}")
            lib.run(f"ip link set dev {dev} gso_ipv4_max_size {size} gro_ipv4_max_size {size}", netns, check=False)
        for family in (socket.AF_INET6, socket.AF_INET):
            for split in (0, 1):
                with net.aqm(1e9, split_gso=split, limit=100000) as q:
                    stream(net, family, socket.SOCK_STREAM, 0, 4000000)
                    q.until_idle()
                    st = q.stats()
                    packets = sum(st[c]["enqueued"] for c in "cl")
                    lib.note(f"{'ipv4' if family == socket.AF_INET else 'ipv6'}, split {split}: {packets} packets of "
                             f"{sum(st[c]['enqueued_bytes'] for c in 'cl') // packets} bytes, "
                             f"{st['max_memory_used']} bytes of memory at most")
                    expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["gso_failed"]), (0, 0, 0, 0),
                                 "left, failed")
                    if not split:
                        q.check = lambda: None


@test("page cache", needs="timed ext")
def sendfile_by_tcp_marked_and_forwarded_file_unchanged():
    with hostile.no_splat(), lib.Net(offloads=True) as net:
        for netns in (net.snd, net.rcv):
            with lib.in_netns(netns), open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
                file.write("1")
        with net.aqm(20e6, ecn_mask=lib.ANY_ECT, **MARK_ALL_L) as q:
            for family in (socket.AF_INET, socket.AF_INET6):
                stream(net, family, socket.SOCK_STREAM, 0, 300000, file=True)
            q.until_idle()
            st = q.stats()
            expect(st["ecn_mark"] > 20, f"only {st['ecn_mark']} marks")
            expect_equal(st["mark_failed"], 0, "failed marks")
            lib.note(f"{st['ecn_mark']} marks")


@test("WireGuard", needs="long ext")
def wireguard_device_and_device_below_marked_inner_packets_equal():
    hostile.module("wireguard", "/sys/module/wireguard")
    for where in ("w0", "v0"):
        with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L) as rig, contextlib.ExitStack() as stack:
            peer = f"{rig.netns}p"
            lib.run(["ip", "netns", "add", peer])
            stack.callback(lib.run, ["ip", "netns", "del", peer], check=False)
            lib.run("ip link add v0 type veth peer name v1", rig.netns)
            lib.run(f"ip link set v1 netns {peer}", rig.netns)
            ends = []
            for netns, mine in ((rig.netns, 1), (peer, 2)):
                lib.run(["ip", "-batch", "-"], netns, stdin=f"""\
link set v{mine - 1} mtu 1500 up
addr add 10.9.0.{mine}/24 dev v{mine - 1}
""")
                ends.append(hostile.WireGuard(netns, f"w{mine - 1}", bytes([mine * 8]) * 31 + b"\x40", 5000 + mine))
            ends[0].peer(ends[1], "10.9.0.2")
            ends[1].peer(ends[0], "10.9.0.1")
            for netns, mine in ((rig.netns, 1), (peer, 2)):
                lib.run(["ip", "-batch", "-"], netns, stdin=f"""\
link set w{mine - 1} mtu 1400 up
addr add 10.7.0.{mine}/24 dev w{mine - 1}
addr add fd07::{mine}/64 dev w{mine - 1} nodad
""")
            lib.run("ip route add 10.6.0.0/16 dev w0", rig.netns)
            time.sleep(4)
            sender = rig.keep(hostile.L3Socket(rig.netns, "w0"))
            sender.send(ipv4(udp(b"hello"), src="10.7.0.1", dst="10.7.0.2"), ETH_P_IP)
            time.sleep(2)       # handshake
            rig.on(where, l3=where == "w0")
            with lib.in_netns(peer):
                sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(frames.ETH_P_ALL))
                sock.bind(("w1", frames.ETH_P_ALL))
                sock.setsockopt(frames.SOL_PACKET, frames.PACKET_IGNORE_OUTGOING, 1)
                sock.settimeout(3)
            sent = {}
            for n in range(60):
                sent[n] = inner_packet(n, (4, 6)[n % 2], (ECT1, ECT1, NOT_ECT)[n % 3] if n > START else ECT1,
                                       32 if n > START else 1200)
                sender.send(sent[n], INNER_TYPE[(4, 6)[n % 2]])
            got = {}
            with contextlib.closing(sock), contextlib.suppress(socket.timeout):
                while True:
                    frame = sock.recv(1 << 16)
                    got.setdefault(number_in(frame), []).append(frame)
            got.pop(None, None)
            result, wrong = hostile.pair_up({n: [p] for n, p in sent.items()}, got, hostile.l3_ip)
            expect(not wrong, f"{where}: " + "; ".join(wrong[:5]))
            expect_equal(sum(verdict == "lost" for *_, verdict in result), 0, f"{where}: lost")
            # RFC 6040: the mark on the outside comes out as a mark of the packet inside.
            marked = expect_marked(result, START + 1)
            st = rig.check()
            expect_equal(st["mark_failed"], 0, "failed marks")
            lib.note(f"{where}: {len(result)} packets, {marked} marked")


# Stamps, lengths, MTUs

census("metadata", ["priority handle:0 to handle:65535", "stab of 2 GiB less 1", "stab of minus 2 GiB",
                    "mtu 68, ipv4", "mtu cut while the queue is full", "mtu 65521"])


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


@test("05ed733b65ab", needs="long ext")
def one_segment_of_a_gso_packet_left_in_an_empty_tree_kernel_does_not_complain():
    """Two classful parents, limit 1, nothing queued: one segment is queued, so that only the number of bytes
    differs from what the parents will count.  Kernels before summer 2025 warn of an update by 0 packets that
    meets an empty qdisc half-way up, and newer ones tell its parent that a class which was never active went
    empty.  Then a second packet goes through: the tree still works.
    Handles 2: and 15: have the same hash.
    """
    for shaper, middle in (("htb", "drr"), ("htb", "qfq"), ("hfsc", "drr"), ("hfsc", "qfq"), ("htb", "ets")):
        with hostile.no_splat(), GsoRig("1gbit") as rig:
            lib.run("tc qdisc del dev out root", rig.netns)
            over = "class add dev out parent 1: classid 1:10 " + {
                "htb": "htb rate 1mbit burst 1514 cburst 1514 quantum 1514",
                "hfsc": "hfsc sc rate 1mbit ul rate 1mbit"}[shaper]
            below = {"drr": "class add dev out parent 2: classid 2:1 drr quantum 1514\n"
                            "filter add dev out parent 2: matchall classid 2:1",
                     "qfq": "class add dev out parent 2: classid 2:1 qfq weight 1 maxpkt 2048\n"
                            "filter add dev out parent 2: matchall classid 2:1", "ets": ""}[middle]
            words = f"{middle} bands 1 quanta 1514" if middle == "ets" else middle
            done = lib.run(["tc", "-batch", "-"], rig.netns, check=False, stdin=f"""\
qdisc add dev out root handle 1: {shaper} default 10
{over}
qdisc add dev out parent 1:10 handle 2: {words}
{below}
{over.replace("1:10", "1:11")}
qdisc add dev out parent 1:11 handle 15: pfifo
""")
            if done.returncode:
                raise lib.Skip(f"no {shaper} over {middle}: {done.stderr.strip()[:80]}")
            error, text = lib.tc_request(rig.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                         "2:1", "dualpi2", lib.pack(limit=1))
            expect_equal((error, text), (0, ""), "add of dualpi2")
            sender = hostile.VnetSocket(rig.netns, "out")
            rig.stack.callback(sender.close)
            for number in range(1, 11):
                head, frame = GSO[0].build(number, ECT1, 4)
                expect(sender.send(frame, head), "refused")
                sums = {q["handle"]: (q["stats"]["qlen"], q["stats"]["backlog"]) for q in
                        lib.qdisc_dump(rig.netns, "out") if q["handle"] in ("1:", "2:", "10:")}
                # One that was peeked at is in a parent alone.
                expect(sums["1:"] == sums["2:"] and sums["2:"] in (sums["10:"], (1, 554)),
                       f"{shaper} over {middle}: qlen and backlog {sums}")
                time.sleep(0.05)
            got = rig.out.drain(2)
            expect_equal({n: len(f) for n, f in got.items()}, dict.fromkeys(range(1, 11), 1),
                         f"{shaper} over {middle}: segments that came")
            for handle in ("1:", "2:", "10:"):
                st = lib.stats(rig.netns, "out", handle)
                expect_equal((st["qlen"], st["backlog"], st["packets"]), (0, 0, 10),
                             f"{shaper} over {middle}, {handle}")


census("gso", ["one segment left under two parents"])


@test("scoreboard")
def census_of_kinds():
    """How many kinds of packets this program and test_packets.py send."""
    groups = {name: len(kinds) for name, kinds in CENSUS.items()}
    for name, count in groups.items():
        lib.note(f"{count:4} {name}")
    lib.note(f"{len(KINDS):4} frames of test_packets.py")
    lib.note(f"{sum(groups.values()) + len(KINDS)} kinds")
    expect_equal(len(set(k.name for k in KINDS)), len(KINDS), "names of kinds")


if __name__ == "__main__":
    lib.main()
