#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Packets in many pages, and pages that belong to somebody else: to the sender, a file, another packet.

The rule is that of test_packets.py: a packet that comes out is the one that went in, except for ECT that became CE and,
with IPv4, the header's checksum; nothing changes where no IP header is; no copy of it elsewhere changes; what does not
come out is counted as dropped; the kernel prints no warning. What went in is taken from a copy of the packet that never
met an AQM.

The environment: DUALPI2_BUFFERS_MOVE, set by fuzz/test_moving_buffers.py: what it breaks in the kernel is left out.
"""
import contextlib
import mmap
import os
import socket
import threading

import frames
import hostile
import lib
from frames import ETH_HLEN, ETH_P_8021Q, IP_TYPES, ether, ipv4, ipv6, tagged, udp
from hostile import ROOMY, Mirror, number_in, numbered, outermost_ip, start_queue
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_equal, test
from packets import ELSEWHERE, MARK_ALL_L

SO_ZEROCOPY, MSG_ZEROCOPY, UDP_SEGMENT = 60, 0x4000000, 103
PAGE = mmap.PAGESIZE


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
                sent.append(ether(number, IP_TYPES[version], (ipv4 if version == 4 else ipv6)(payload, ecn), ELSEWHERE))
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
                frame = tagged(n, [(ETH_P_8021Q, 17)], IP_TYPES[version], made, ELSEWHERE)
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


if __name__ == "__main__":
    lib.main()
