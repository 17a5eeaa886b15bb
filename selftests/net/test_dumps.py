#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Readers of dumps with small buffers, many instances and changes meanwhile, and notifications of changes.
"""
import contextlib
import os
import random
import select
import socket
import struct
import time

import lib
from lib import ECT1, NOT_ECT, Stream, each, expect, expect_equal, note, pack, tc, test
from mq import MqNet
from parents import CALM, ECNS, Tree

class Reader:
    """A dump that is read with a small buffer."""

    def __init__(self, netns, msg_type, dev, size):
        with lib.in_netns(netns):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            index = socket.if_nametoindex(dev)
        self.size = size
        self.handles = []       # of what was whole
        self.sock.send(lib.message(msg_type, lib.NLM_F_DUMP, lib.tcmsg(index)))

    def read(self):
        """(types of the whole messages, whether anything was cut off) to the end of the dump."""
        kinds, cut = [], False
        while 3 not in kinds:
            if not select.select([self.sock], [], [], 5)[0]:
                break
            data, _, flags, _ = self.sock.recvmsg(self.size)
            cut |= bool(flags & socket.MSG_TRUNC)
            while len(data) >= 16:
                size, kind = struct.unpack_from("IH", data)
                if size > len(data):
                    break
                kinds.append(kind)
                if kind != 3:
                    self.handles.append(struct.unpack_from("I", data, 24)[0])
                data = data[(size + 3) & ~3:]
        return kinds, cut


def every_bucket(tree):
    """Make statistics as long as they get: packets of each queue in its last bucket, 15.7 to 16.8 ms.

    Packets of 100 bytes leave every 0.4 ms; 200 at once wait for 0, 0.4, 0.8 ms and so on.
    """
    tree.change(hist_c=1, hist_l=1)
    for ecn in (NOT_ECT, ECT1):
        for _ in range(200):
            tree.mix.send(ecn, 100)
        tree.drain()
    st = tree.leaf()
    for queue in "cl":
        hist = st[queue]["delay"]["hist"]
        note(f"{queue}: {sum(n > 0 for n in hist)} buckets in use, the last one {hist[-1]}")
        expect(hist[-1], f"the last bucket of {queue} is empty")
    return st


def full_tree(name="tbf"):
    return Tree(name, "2mbit", **CALM)


@each((512, 1024, 4096), ("bad input",), name=lambda size: f"{size}_bytes", needs="timed ext")
def reader_with_a_buffer_of_CASE_is_told_and_a_larger_one_works(size):
    """The kernel truncates a dump and sets a flag; the next dump with room is complete."""
    with full_tree() as tree:
        every_bucket(tree)
        for msg_type in (lib.RTM_GETQDISC, lib.RTM_GETTCLASS):
            kinds, cut = Reader(tree.netns, msg_type, "d0", size).read()
            note(f"type {msg_type}: {kinds}, cut {cut}")
            expect(cut or kinds[-1:] == [3], "neither whole nor marked as cut")
            if size < 4096:
                expect(cut, "a message of 2.9 kB in so small a buffer was not marked as cut")
        tree.check_all()


@test("bad input")
def reader_of_many_instances_gets_each_once():
    """More than fits one message of the dump: it is resumed, qdisc by qdisc and class by class."""
    with Tree("mq", "20mbit", **CALM) as tree:
        tree.change(hist_c=1, hist_l=1)
        for n in range(600):
            tree.mix.socket(ECNS[n % 4], False).setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0)
            tree.mix.send(ECNS[n % 4], 300)
        tree.drain()
        for _ in range(20):
            names = [q["handle"] for q in lib.qdisc_dump(tree.netns, "d0") if q["kind"] == "dualpi2"]
            expect_equal(sorted(names), sorted(tree.leaves), "qdiscs")
            names = [c["handle"] for c in lib.class_dump(tree.netns, "d0") if c["kind"] == "dualpi2"]
            expect_equal(sorted(names), sorted(f"{h}{minor}" for h in tree.leaves for minor in (1, 3)), "classes")
        for msg_type, dump in ((lib.RTM_GETQDISC, lib.qdisc_dump), (lib.RTM_GETTCLASS, lib.class_dump)):
            want = [lib.handle_number(one["handle"]) for one in dump(tree.netns, "d0")]
            for size in (4096, 5000, 6000, 8192):
                reader = Reader(tree.netns, msg_type, "d0", size)
                kinds, cut = reader.read()
                expect_equal((kinds[-1], cut), (3, False), f"end of the dump with a buffer of {size} bytes, cut")
                expect_equal(reader.handles, want, f"what was dumped to a buffer of {size} bytes")
        tree.check_all()


@test("bad input")
def reader_during_changes_and_deletes_sees_whole_qdiscs_or_none():
    """Another process changes, deletes and makes qdiscs all the time, with traffic."""
    with Tree("htb", "10mbit") as tree:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                rng = random.Random(7)
                for n in range(300):
                    tree.change(limit=rng.randint(1, 50), hist_c=rng.randint(1, 16384), p_cmax=rng.randint(0, 100))
                    tree.mix.send(ECNS[n % 4], 300)
                    time.sleep(0.002)
                    if n % 10 == 9:
                        lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", "10:", "1:10")
                        tree.add("10:", "1:10")
                code = 0
            finally:
                os._exit(code)
        seen = dumps = 0
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            dumps += 1
            for qdisc in lib.qdisc_dump(tree.netns, "d0"):
                if qdisc["kind"] == "dualpi2":
                    st = dict(qdisc["stats"], knobs=lib.unpack(qdisc["options"]), **lib.parse_xstats(qdisc["app"]))
                    lib.check_identities(st)
                    seen += 1
            for one in lib.class_dump(tree.netns, "d0"):
                if one["kind"] == "dualpi2":
                    lib.parse_xstats(one["app"])
            time.sleep(0.001)
        expect_equal(os.waitstatus_to_exitcode(status), 0, "the process that changes")
        note(f"{dumps} dumps, {seen} qdiscs")
        expect(seen > 20, f"only {seen} qdiscs were seen")


@contextlib.contextmanager
def told(netns):
    """What listeners to rtnetlink are told of qdiscs: yields a function, (type, handle, kind) of each message; its
    `stats` has the last statistics of each handle.
    """
    with lib.in_netns(netns):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        sock.bind((0, 1 << 3))      # RTNLGRP_TC

    def heard():
        found = []
        while select.select([sock], [], [], 0.2)[0]:
            data = sock.recv(1 << 16)
            size = len(data)
            while len(data) >= 16:
                length, kind = struct.unpack_from("IH", data)
                _, _, handle, _, _ = struct.unpack_from("BxxxiIII", data, 16)
                one = lib.attrs(data[36:length])
                found.append((kind, f"{handle >> 16:x}:", one[lib.TCA_KIND].rstrip(b"\0").decode()))
                app = lib.attrs(one[lib.TCA_STATS2]).get(lib.TCA_STATS_APP)
                if app or found[-1][2] == "dualpi2":
                    heard.stats[found[-1][1]] = lib.parse_xstats(app)
                data = data[(length + 3) & ~3:]
            note(f"{size} bytes: {found}")
        return found

    heard.stats = {}
    with sock:
        yield heard


@test("bad input", needs="timed ext")
def notification_of_a_full_histogram_is_sent():
    """Change, deletion and replacement by another kind are told, with the statistics.  A message of the kernel has
    room for 3776 bytes.
    """
    with full_tree() as tree, told(tree.netns) as heard:
        every_bucket(tree)
        heard()
        tree.change(target=16000)
        expect_equal(heard(), [(lib.RTM_NEWQDISC, "10:", "dualpi2")], "after a change")
        create = lib.NLM_F_CREATE | lib.NLM_F_REPLACE
        expect_equal(lib.tc_request(tree.netns, lib.RTM_NEWQDISC, create, "d0", "11:", "1:1", "pfifo"), (0, ""),
                     "replace")
        expect_equal(heard(), [(lib.RTM_DELQDISC, "10:", "dualpi2"), (lib.RTM_NEWQDISC, "11:", "pfifo")],
                     "after a replacement")
        tree.add("10:", "1:1", create)
        heard()
        every_bucket(tree)
        heard()
        expect_equal(lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", "10:", "1:1"), (0, ""), "delete")
        kinds = heard()
        expect((lib.RTM_DELQDISC, "10:", "dualpi2") in kinds, f"after a deletion: {kinds}")


@test("bad input", needs="ext")
def begin_and_end_of_dualpi2_mq_are_told():
    """The begin before it has taken the queues from a qdisc that counted packets, the end after it has lost them."""
    with MqNet() as net, told(net.rtr) as heard:
        tc("qdisc replace dev down root handle 20: mq", net.rtr)
        tc("qdisc replace dev down parent 20:2 dualpi2", net.rtr)
        net.traffic(0.2, *(Stream(f"s{n}", bps=1e6, source="rtr") for n in range(8)))
        heard()
        tc("qdisc replace dev down root handle 30: dualpi2_mq bandwidth 20mbit", net.rtr)
        expect((lib.RTM_NEWQDISC, "30:", "dualpi2_mq") in heard(), "begin")
        expect_equal(lib.arrived(heard.stats["30:"]["c"]["counters"]), 0, "packets that arrived before")
        tc("qdisc del dev down root", net.rtr)
        expect((lib.RTM_DELQDISC, "30:", "dualpi2_mq") in heard(), "end")


@test("bad input", needs="timed ext")
def notification_of_a_dualpi2_replaced_by_another_tells_of_both():
    """Both are told in one message, which has no room for the histograms of a full one and another one."""
    with full_tree() as tree, told(tree.netns) as heard:
        for fill in (False, True):
            if fill:
                every_bucket(tree)
                heard()
            expect_equal(lib.tc_request(tree.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "d0",
                                        "12:" if fill else "10:", "1:1", "dualpi2", pack(**CALM)), (0, ""), "replace")
            got = heard()
            if not fill:
                expect_equal(got, [(lib.RTM_NEWQDISC, "10:", "dualpi2")], "after a change")
                continue
            expect_equal(got, [(lib.RTM_DELQDISC, "10:", "dualpi2"), (lib.RTM_NEWQDISC, "12:", "dualpi2")],
                         "after a replacement")
            expect("12:" in tree.dump(), "the new one is not there")


@test("bad input")
def statistics_have_one_copy_in_a_message():
    """TCA_STATS2 alone: the older TCA_XSTATS would be the same bytes again."""
    with Tree("htb") as tree, lib.Socket(tree.netns) as sock:
        for data in sock.dump(lib.RTM_GETQDISC, lib.tcmsg(lib.ifindex(tree.netns, "d0"))):
            found = lib.attrs(data[lib.TCMSG_LEN:])
            if found[lib.TCA_KIND] == b"dualpi2\0":
                expect(lib.TCA_XSTATS not in found, "TCA_XSTATS is sent")
                expect(lib.TCA_STATS_APP in lib.attrs(found[lib.TCA_STATS2]), "no TCA_STATS_APP")


if __name__ == "__main__":
    # Where the traffic's receiver does not run for a second, packets are lost after the qdisc.
    lib.main(needs="timed ext")
