# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the companion qdiscs add to selftests/net/lib.py: loading their modules, a qdisc of any kind
under a shaper, TCP.

    load("pi2")                     DUALPI2_EXTRA/sch_pi2.ko, once; without DUALPI2_EXTRA by modprobe
    goes("pi2")                     remove it and load it again
    found(netns, dev, handle)       one qdisc of lib.qdisc_dump()
    request(netns, dev, handle, parent, kind, options, flags=ADD)    (errno, text) of a qdisc message
    Bulk(net, "cubic", 3)           that many TCP connections from snd to rcv; .run(seconds), .received
    refuses_unknown(request, kind, ...), refuses_malformed(request, kind, ...)        the same test for each kind
    one_segment_counts_as_itself(tree, check), one_segment_goes(tree, check, what)    the same
    every_gso(rig, ecn, ...)        the same, on a GsoRig
    Rig(rate, qdiscs, of, check, bridge=False), GsoRig(...)     packets.Rig and gso.GsoRig with other qdiscs
"""

import contextlib
import errno
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import gso
import lib
import packets
from lib import ECT0, NOT_ECT, Failure, Skip, expect, expect_between, expect_equal, in_netns, note, run
from tcp import READ_BYTES

ADD = lib.NLM_F_CREATE | lib.NLM_F_EXCL
TCP_CONGESTION = 13


def module(name):
    """Where the module of a companion is; None: wherever modprobe finds it."""
    directory = os.environ.get("DUALPI2_EXTRA")
    return os.path.join(directory, f"sch_{name}.ko") if directory else None


def load(*names):
    """Load companions' modules unless they are loaded."""
    for name in names:
        if not os.path.exists(f"/sys/module/sch_{name}"):
            path = module(name)
            if run(["insmod", path] if path else ["modprobe", f"sch_{name}"], check=bool(path)).returncode:
                raise Skip(f"need sch_{name}; `make extra` builds it, set DUALPI2_EXTRA to the directory")


def goes(name):
    """Remove a companion's module, of which there are no instances, and load it again.

    Namespaces of other tests go when the kernel has time for it.
    """
    for _ in range(200):
        if not run(["rmmod", f"sch_{name}"], check=False).returncode:
            break
        time.sleep(0.05)
    expect(not os.path.exists(f"/sys/module/sch_{name}"), "it is still there")
    load(name)


def found(netns, dev, handle="10:"):
    """One qdisc."""
    for qdisc in lib.qdisc_dump(netns, dev):
        if qdisc["handle"] == handle:
            return qdisc
    raise Failure(f"no qdisc {handle} on {dev}")


def request(netns, dev, handle, parent, kind, options, flags=ADD):
    """Add, change or replace a qdisc; (error number, text)."""
    return lib.tc_request(netns, lib.RTM_NEWQDISC, flags, dev, handle, parent, kind, options)


class Bulk:
    """TCP connections from snd to rcv that have always data to send; a context manager."""

    def __init__(self, net, congestion="cubic", number=1, address="10.2.0.1"):
        self.received = 0
        self.sink, self.block = bytearray(1 << 20), bytes(1 << 17)
        self.senders, self.receivers = [], []
        with in_netns(net.rcv):
            listener = socket.create_server((address, 0))
        with listener:
            for _ in range(number):
                with in_netns(net.snd):
                    sender = socket.socket()
                sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
                sender.settimeout(60)
                sender.connect(listener.getsockname())
                self.senders.append(sender)
                self.receivers.append(listener.accept()[0])
        for sock in self.receivers:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        for sock in self.senders + self.receivers:
            sock.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in self.senders:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for sock in self.senders + self.receivers:
            sock.close()

    def run(self, seconds):
        """Keep them busy for so long."""
        end = time.monotonic() + seconds
        sockets = {sock.fileno(): sock for sock in self.senders + self.receivers}
        with select.epoll() as poll:
            for sock in self.senders:
                poll.register(sock, select.EPOLLOUT)
            for sock in self.receivers:
                poll.register(sock, select.EPOLLIN)
            while (left := end - time.monotonic()) > 0:
                for number, event in poll.poll(left):
                    with contextlib.suppress(BlockingIOError):
                        if event & select.EPOLLIN:
                            self.received += sockets[number].recv_into(self.sink)
                        else:
                            sockets[number].send(self.block)


def refuses_unknown(change, kind, good, numbers):
    """change(options) rejects attributes of these numbers, and bytes behind the last one; good: right options."""
    for number in numbers:
        expect_equal(change(good + lib.attr(number, struct.pack("I", 1))),
                     (errno.EINVAL, f"{kind}: unknown attribute"), f"attribute {number}")
    expect_equal(change(good + b"\2\0\0\0"),
                 (errno.EINVAL, f"{kind}: bytes left over after the attributes"), "left over")


def refuses_malformed(change, kind, word, number, good):
    """change(options) rejects the option with another length than that of its value, good, and given twice."""
    for size in {0, 1, 3, 4, 5, 8, 9, 12, 16} - {len(good)}:
        expect_equal(change(lib.attr(number, bytes(size))),
                     (errno.EINVAL, f"{kind}: attribute of wrong length: {word}"), f"{word} of {size} bytes")
    expect_equal(change(lib.attr(number, good) * 2), (errno.EINVAL, f"{kind}: attribute given twice: {word}"), "twice")


# Packets of every kind

class Rig(packets.Rig):
    """TAP devices with companions on one of them: (handle, parent, kind, options) of each. of() decodes one of
    lib.qdisc_dump(), check() are the accounts of the last.
    """

    def __init__(self, rate, qdiscs, of, check, bridge=False):
        super().__init__(rate, bridge)
        self.qdiscs, self.of, self.check_accounts = qdiscs, of, check

    def add(self):
        for handle, parent, kind, options in self.qdiscs:
            expect_equal(request(self.netns, "out", handle, parent, kind, options), (0, ""), f"add of {kind}")

    def stats(self, handle="10:"):
        return self.of(found(self.netns, "out", handle))

    def check(self):
        """The statistics of each, with nothing queued."""
        all_of = [self.stats(handle) for handle, *_ in self.qdiscs]
        self.check_accounts(all_of[-1])
        for st in (*all_of, self.parent()):
            expect_equal((st["qlen"], st["backlog"]), (0, 0), "left")
        return all_of


class GsoRig(gso.GsoRig, Rig):
    """The same with virtio headers."""


def every_gso(rig, ecn, forwarded, arrived):
    """GSO packets of every kind, with headers that lie, too: what cannot be split is dropped and counted.
    forwarded(st) and arrived(st) are packets of the first qdisc. Returns the statistics of each.
    """
    send, reference = rig.both_ways()
    taken = 0
    for number, kind in enumerate(gso.GSO, 1):
        for version in kind.versions:
            head, frame = kind.build(number, ecn, version)
            taken += bool(send(head, frame))
    came = sum(len(copies) for copies in rig.out.drain(4).values())
    reference()
    all_of = rig.check()
    st = all_of[0]
    expect_equal(came, forwarded(st), "packets at the device, forwarded")
    expect(taken > 40 and arrived(st) > 400, f"{taken} taken, {arrived(st)} arrived")
    note(f"{taken} taken, {arrived(st)} arrived, {st['gso_failed']} not split")
    return all_of


# One segment of a GSO packet, in an empty qdisc with a limit of one packet

ONE, LAST = 1000, 300
ONE_RATE = "20kbit"
# One where the parent peeks (tbf, hfsc), where a parent half-way up does (qfq), and where none does.
ONE_PARENTS = ("tbf", "htb", "hfsc", "htb_drr", "htb_qfq", "htb_ets", "htb_prio")
# hfsc takes a class that was active at its reset for active ever after, whatever its child is.
ONE_GOES = [(name, what) for name in ONE_PARENTS for what in ("more", "trim", "reset", "delete", "replace")
            if (name, what) != ("hfsc", "reset")]


def empty_bucket(tree):
    """From here on the shaper sends at its rate."""
    for _ in range(4):
        tree.mix.send(NOT_ECT, ONE)
        tree.drain()


def one_segment_waits(tree, check, segments):
    """Send a GSO packet, of which one segment is queued. It counts as itself here and in the parents."""
    tree.mix.gso(ECT0, segments, ONE, LAST)
    dump = tree.moment("one segment")
    tree.check_sums(dump, "one segment")
    st = dump["10:"]
    expect_equal((st["qlen"], st["backlog"]), (1, ONE), "packets and bytes of the backlog")
    check(st)


def check_zero(tree, text):
    """Nothing is queued, and nobody counts on anything."""
    for handle, st in tree.drain().items():
        expect_equal((st["qlen"], st["backlog"]), (0, 0), f"{text}: qlen and backlog of {st['kind']} {handle}")


def one_segment_counts_as_itself(tree, check):
    """The qdisc's bytes, and what the shaper takes for them, are those of the segment, not of the GSO packet."""
    empty_bucket(tree)
    begun, before, got = time.monotonic(), tree.dump()["10:"]["passed_on"], tree.delivered()
    # tbf splits what is longer than its burst itself.
    sizes = (2, 3, 3, 2, 3) if tree.name == "tbf" else (2, 5, 10, 3, 7)
    for segments in sizes:
        one_segment_waits(tree, check, segments)
        check_zero(tree, "after the segment")
    passed = time.monotonic() - begun
    count = len(sizes)
    for text, was, now in (("bytes of the qdisc", before, tree.dump()["10:"]["passed_on"]),
                           ("bytes at the device", got, tree.delivered())):
        expect_equal([b - a for a, b in zip(was, now)], [count, count * ONE], f"packets and {text}")
    # Between two looks there are 50 ms.
    expect_between(passed, (count - 1) * 0.4, count * 0.47, "seconds at 2500 bytes per second")
    tree.check_all(exact_drops=False)


def one_segment_goes(tree, check, what):
    """While it waits: another packet comes, the limit drops one, or the qdisc is reset, deleted or replaced."""
    parent = tree.leaves["10:"]
    for segments in (3, 2):
        empty_bucket(tree)
        one_segment_waits(tree, check, segments)
        if what in ("more", "trim"):
            tree.change(limit=2)
            tree.mix.send(ECT0, 500)
            dump = tree.moment("another one")
            tree.check_sums(dump, "another one")
            expect_equal((dump["10:"]["qlen"], dump["10:"]["backlog"]), (2, ONE + 500), "two packets")
            check(dump["10:"])
            if what == "trim":
                tree.change(limit=1)
                dump = tree.check_now("a lower limit")
                # The oldest goes, unless it was peeked at.
                expect_equal(dump["10:"]["qlen"], 1, "packets after the change")
                expect(dump["10:"]["backlog"] in (ONE, 500), f"{dump['10:']['backlog']} bytes after the change")
            check_zero(tree, what)
            check(tree.dump()["10:"])
            tree.change(limit=1)
            continue
        if what == "reset":
            run("ip link set dev d0 down", tree.netns)
        elif what == "delete":
            expect_equal(lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", "10:", parent), (0, ""), "deletion")
        else:
            expect_equal(request(tree.netns, "d0", "77:", parent, "bfifo", struct.pack("I", 100000),
                                 lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "replacement")
        for handle, st in tree.dump().items():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"after {what}: left in {st['kind']} {handle}")
        if what == "reset":
            run("ip link set dev d0 up", tree.netns)
        else:
            if what == "replace":
                expect_equal(lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", "77:", parent), (0, ""), "deletion")
            tree.add("10:", parent)
        # Nor is anything stuck.
        tree.mix.send(NOT_ECT, 500)
        check_zero(tree, "afterwards")
