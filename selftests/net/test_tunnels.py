#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Devices without a link-layer header, and tunnels of every kind, with and without GSO inside.

The rule is that of test_packets.py: a packet that comes out is the one that went in, except for ECT that became CE and,
with IPv4, the header's checksum; nothing changes where no IP header is; no copy of it elsewhere changes; what does not
come out is counted as dropped; the kernel prints no warning. What went in is taken from a copy of the packet that never
met an AQM.
"""
import contextlib
import socket
import struct
import time

import frames
import hostile
import lib
from frames import ETH_HLEN, ETH_P_IP, IP_TYPES, ether, ipv4, ipv6, udp
from gso import GSO
from hostile import ROOMY, TUNNELS, Tunnel, Mirror, number_in, numbered, outermost_ip
from lib import CE, ECT0, ECT1, NOT_ECT, each, expect, expect_equal, test
from packets import ELSEWHERE, MARK_ALL_L, START

def tunnel_up(rig, tunnel):
    hostile.module(tunnel.mod, f"/sys/module/{tunnel.mod.replace('-', '_')}")
    hostile.linked(rig.netns, tunnel.args)
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
            inner = ether(n, IP_TYPES[version], inner, ELSEWHERE)
            sender.send(inner)
        else:
            sender.send(inner, IP_TYPES[version])
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
        if tunnel.args:
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
            self.sock.sendto(head + frame, (self.dev, IP_TYPES[frame[0] >> 4]))
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
                sender.send(sent[n], IP_TYPES[(4, 6)[n % 2]])
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


if __name__ == "__main__":
    lib.main()
