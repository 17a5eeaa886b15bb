#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug kmemleak
# suite: long kernel=stock
"""Filters and their actions: every verdict that a stock kernel's classifiers and actions can give, and each packet
counted once, whatever became of it. What the qdisc does with the packets it keeps is tested elsewhere.
"""
import ctypes
import os
import socket
import struct
import sys
import time

import frames
import lib
from frames import ether, ipv4, ipv6
from lib import ECT1, NOT_ECT, each, expect, expect_equal, pack, test
from packets import ECNS, Bed

# tc arguments of a filter that matches all, and what becomes of 40 packets, 10 of each codepoint:
# C, L, filter_dropped, drops, on the device, redirected
VERDICTS = {
    "drop": ("matchall action drop", (0, 0, 40, 40, 0, 0)),
    "redirect": ("matchall action mirred egress redirect dev side", (0, 0, 0, 0, 0, 40)),
    "mirror": ("matchall action mirred egress mirror dev side", (20, 20, 0, 0, 40, 40)),
    "trap": ("matchall action trap", (0, 0, 0, 0, 0, 0)),
    "ok": ("matchall action ok", (20, 20, 0, 0, 40, 0)),
    "pipe": ("matchall action pipe", (20, 20, 0, 0, 40, 0)),
    "continue": ("matchall action continue", (20, 20, 0, 0, 40, 0)),
    # The core gives up after some rounds, and says drop.
    "reclassify": ("matchall action reclassify", (0, 0, 40, 40, 0, 0)),
    # A token bucket for one packet of 60 bytes, not refilled in the time of the test.
    "police": ("matchall action police rate 8bit burst 60 mtu 2000 conform-exceed drop/ok", (1, 0, 39, 39, 1, 0)),
    "ok_classid_1": ("matchall classid 10:1 action ok", (0, 40, 0, 0, 40, 0)),
    "pipe_classid_3": ("matchall classid 10:3 action pipe", (40, 0, 0, 0, 40, 0)),
    "drop_classid_1": ("matchall classid 10:1 action drop", (0, 0, 40, 40, 0, 0)),
    "redirect_classid_1": ("matchall classid 10:1 action mirred egress redirect dev side", (0, 0, 0, 0, 0, 40)),
    # The filter's own word comes too late for it, the ECN field does not.
    "pedit_to_ect1": ("matchall action pedit ex munge ip dsfield set 1 retain 3 pipe csum ip", (0, 40, 0, 0, 40, 0)),
    "pedit_to_not_ect": ("matchall action pedit ex munge ip dsfield set 0 retain 3 pipe csum ip", (40, 0, 0, 0, 40, 0)),
    "skbedit_priority_1": ("matchall action skbedit priority 10:1", (20, 20, 0, 0, 40, 0)),
}


@each(VERDICTS, ("RFC 9331 5.4", "2023-23455"))
def filter_verdict_CASE_counted_once(name):
    filter_args, want = VERDICTS[name]
    with Bed() as bed:
        bed.filter(filter_args, "ip")
        expect_equal(bed.outcome(), (40, *want), "offered, C, L, filter_dropped, drops, sent, redirected")
        bed.no_filter()
        expect_equal(bed.outcome(), (40, 20, 20, 0, 0, 40, 0), "the same after the filter is gone")


# classid: how many of 10 packets of each codepoint go to L
CLASSES = {
    "10:0": (0, 10, 0, 10), "10:1": (10,) * 4, "10:2": (10,) * 4, "10:3": (0,) * 4,
    "10:4": (0,) * 4, "10:ffff": (0,) * 4, "77:0": (0, 10, 0, 10), "77:1": (10,) * 4, "77:3": (0,) * 4,
}


@test("RFC 9331 5.4.1", "R16")
def filter_classid_before_ecn_decides_the_queue():
    """1 and 2 are the L4S queue, 3 and above the Classic one, 0 says nothing; the major number, which
    a filter may leave out, does not count.
    """
    with Bed() as bed:
        for classid, want in CLASSES.items():
            bed.filter(f"matchall classid {classid}")
            for packet in (ipv4, ipv6):
                for ecn, in_l in zip(ECNS, want):
                    expect_equal(bed.outcome(ecns=(ecn,), packet=packet), (10, 10 - in_l, in_l, 0, 0, 10, 0),
                                 f"classid {classid}, codepoint {ecn}")
            bed.no_filter()


@test("bf83ee45874e")
def filter_that_matches_nothing_leaves_it_to_ecn():
    """The control block is dirty from another qdisc that the packet went through."""
    with Bed() as bed:
        lib.run(["ip", "-batch", "-"], bed.netns, stdin="""\
link add link out name out.5 type vlan id 5
link set dev out.5 up
""")
        lib.tc("qdisc add dev out.5 root handle 10: pfifo", bed.netns)
        bed.filter("u32 match u32 0x12345678 0xffffffff at 0")
        bed.sender = frames.Sender(bed.netns, "out.5")
        expect_equal(bed.outcome(), (40, 20, 20, 0, 0, 40, 0), "offered, C, L, filter_dropped, drops, sent, aside")
        bed.sender.close()


@test("R13", "R16", "RFC 9331 5.4")
def filter_kinds_of_a_stock_kernel_choose_the_queue():
    """Each sends Not-ECT to L, and ECT(1) to C.  (bpf: below.)"""
    lines = {
        "u32": "u32 match u8 {ecn} 3 at 1 flowid 10:{cls}",
        "flower": "flower ip_tos {ecn}/3 classid 10:{cls}",
        "basic": "basic match 'cmp(u8 at 1 layer 1 mask 3 eq {ecn})' flowid 10:{cls}",
        "fw": "handle 5 fw classid 10:{cls}",
    }
    with Bed() as bed:
        bed.sender.sock.setsockopt(socket.SOL_SOCKET, 36, 5)        # SO_MARK
        for kind, line in lines.items():
            for ecn, cls, want in ((NOT_ECT, 1, (0, 10)), (ECT1, 3, (10, 0))):
                bed.filter(line.format(ecn=ecn, cls=cls), "ip")
                expect_equal(bed.outcome(ecns=(ecn,))[1:3], want, f"C, L of codepoint {ecn} with {kind}")
                bed.no_filter()


# BPF without a compiler: a program is a few instructions

def bpf_program(*instructions):
    """Load a classifier and return its file descriptor."""
    code = b"".join(struct.pack("<BBhi", *i) for i in instructions)
    text = ctypes.create_string_buffer(code)
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQ", 3, len(instructions), ctypes.addressof(text), ctypes.addressof(licence))
    attr = ctypes.create_string_buffer(attr + bytes(128 - len(attr)))
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(321, 5, attr, 128)    # bpf(BPF_PROG_LOAD)
    if fd < 0:
        raise lib.Skip(f"no BPF: {os.strerror(ctypes.get_errno())}")
    return fd


def pinned(name, *instructions):
    fd = bpf_program(*instructions)
    path = f"/sys/fs/bpf/{name}"
    buffer = ctypes.create_string_buffer(path.encode())
    attr = ctypes.create_string_buffer(struct.pack("<QI", ctypes.addressof(buffer), fd) + bytes(116))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(321, 6, attr, 128) < 0:     # BPF_OBJ_PIN
        raise lib.Skip(f"no BPF file system: {os.strerror(ctypes.get_errno())}")
    os.close(fd)
    return path


def mov(register, value):
    return (0xB7, register, 0, value)


@test("2026-64530")
def filter_conntrack_takes_fragments_and_gives_the_packet_back():
    """act_ct keeps the first fragment and reports it: neither sent nor dropped. The second fragment releases both."""
    with Bed() as bed:
        done = lib.tc("filter add dev out parent 10: protocol ip prio 1 matchall action ct", bed.netns, check=False)
        if done.returncode:
            raise lib.Skip(f"no act_ct: {done.stderr.splitlines()[0] if done.stderr else ''}")
        whole = frames.udp(b"f" * 64)
        for n, (frag, part) in enumerate(((0x2000, whole[:40]), (5, whole[40:]))):
            bed.sender.send(ether(n, 0x0800, ipv4(part, ecn=ECT1, ident=77, frag=frag)))
            time.sleep(0.1)
            st = bed.stats()
            expect_equal((st["filter_dropped"], st["drops"], st["l"]["enqueued"]), (0, 0, n),
                         f"dropped by the filter, drops, queued after fragment {n + 1}")
        lib.check_identities(bed.stats())


@test("R16")
def classes_are_names_only():
    """Those of the two queues are shown, and nothing can be attached to them."""
    with Bed() as bed:
        shown = lib.tc("class show dev out parent 10:", bed.netns).stdout
        expect_equal([line.split() for line in shown.splitlines()],
                     [["class", "dualpi2", f"10:{minor}", "parent", "10:"] for minor in (1, 3)], "classes")
        for args in ("qdisc add dev out parent 10:1 pfifo", "class add dev out parent 10: classid 10:1 htb rate 1mbit",
                      "class del dev out classid 10:1", "filter add dev out parent 10:1 matchall classid 10:1"):
            done = lib.tc(args, bed.netns, check=False)
            expect(done.returncode != 0 and done.stderr, f"`tc {args}` was accepted, or refused without a word")
        bed.send()
        expect_equal([q["kind"] for q in lib.qdisc_dump(bed.netns, "out")], ["htb", "dualpi2"], "qdiscs")


EXIT = (0x95, 0, 0, 0)
CALL_REDIRECT = (0x85, 0, 0, 23)


@test("2026-68441", needs="destructive ext")
def filter_bpf_every_verdict_counted_once():
    """TC_ACT_*: -1 and above 6 but REDIRECT say nothing (the classifier's own rule), 2 and 5 are
    stolen, 7, without or with a helper that says where to, is not possible and is a drop.
    """
    keep, drop, stolen = (20, 20, 0, 0, 40, 0), (0, 0, 40, 40, 0, 0), (0,) * 6
    want = {-1: keep, 0: keep, 1: keep, 2: drop, 3: keep, 4: stolen, 5: keep, 6: keep, 7: drop, 8: stolen,
            9: keep, 99: keep}
    with Bed() as bed:
        with lib.in_netns(bed.netns):
            side, out = socket.if_nametoindex("side"), socket.if_nametoindex("out")
        programs = {f"verdict {value}": ((mov(0, value), EXIT), result) for value, result in want.items()}
        programs["redirect to side"] = ((mov(1, side), mov(2, 0), CALL_REDIRECT, EXIT), drop)
        programs["redirect to out"] = ((mov(1, out), mov(2, 1), CALL_REDIRECT, EXIT), drop)
        for n, (name, (code, result)) in enumerate(programs.items()):
            path = pinned(f"dp{os.getpid()}-{n}", *code)
            try:
                bed.filter(f"bpf da object-pinned {path}")
                expect_equal(bed.outcome(), (40, *result), f"{name}: offered, C, L, filter_dropped, drops, sent, aside")
                bed.no_filter()
            finally:
                os.unlink(path)


@test("2023-4206")
def filter_added_and_deleted_under_traffic_accounts_agree():
    """60 times, with packets queued, then dualpi2 goes with its filters in place."""
    filters = [text for text, _ in VERDICTS.values() if "reclassify" not in text]
    # No signal: the AQM may drop a Not-ECT packet that a filter sends to the L4S queue.
    with Bed("2mbit", target=4294967, alpha=1, beta=1, step_thresh_us=4294967) as bed:
        offered = stolen = 0
        for n in range(60):
            offered += bed.send(count=1)
            word = filters[n % len(filters)]
            bed.filter(word, "ip")
            count = bed.send(count=1)
            offered += count
            # These are dropped by nobody.
            stolen += count if "redirect" in word or "trap" in word else 0
            if n % 3:
                bed.no_filter()
            else:
                lib.tc("filter replace dev out parent 10: protocol ip prio 1 u32 match u32 0 0 flowid 10:3",
                       bed.netns, check=False)
                bed.no_filter()
        time.sleep(5)
        st = bed.stats()
        lib.check_identities(st)
        expect_equal(st["packets"] + st["filter_dropped"] + stolen, offered, "sent, dropped, stolen, against offered")
        for _ in range(5):
            bed.send(count=5)
            for n in range(4):
                lib.tc(f"filter add dev out parent 10: protocol ip prio {n + 2} matchall classid 10:{n}", bed.netns)
            bed.send(count=5)
            lib.tc("qdisc del dev out parent 1:10", bed.netns)
            lib.tc("qdisc del dev out root", bed.netns)
            bed.add()


# Packets past the qdisc

def passed(bed):
    """Of 40 packets, those that the kernel counts as sent by the qdisc, that its queues saw, and on the device."""
    def now():
        st = bed.stats()
        return st["packets"], st["c"]["enqueued"] + st["l"]["enqueued"], bed.sent("out")
    before = now()
    expect_equal(bed.send(), 40)
    time.sleep(0.05)
    return tuple(b - a for a, b in zip(before, now()))


@test("R16")
def bypass_is_for_empty_root_queues_without_filters():
    """Off, on and off again; requests about filters do not end it, a filter does, until it is asked for again."""
    def put(flags, **knobs):
        expect_equal(lib.tc_request(bed.netns, lib.RTM_NEWQDISC, flags, "out", "10:", "root", "dualpi2",
                                    pack(**knobs)), (0, ""), f"dualpi2 at the root, {knobs}")

    with Bed() as bed:
        for knobs, queued in (({}, 40), ({"bypass": 1}, 0)):
            lib.tc("qdisc del dev out root", bed.netns)
            put(lib.NLM_F_CREATE | lib.NLM_F_EXCL, target=15000, **knobs)
            expect_equal(passed(bed), (40, queued, 40), f"sent, queued, on the device with {knobs}")
        for bypass in (0, 1):
            put(0, bypass=bypass)
            expect_equal(passed(bed), (40, 40 * (not bypass), 40), f"the same after a change to bypass {bypass}")
        expect_equal(lib.tc("filter show dev out parent 10:", bed.netns).stdout.strip(), "", "filters")
        for request in ("get", "del"):
            lib.tc(f"filter {request} dev out parent 10: protocol all prio 1 handle 1 u32", bed.netns, check=False)
        expect_equal(passed(bed), (40, 0, 40), "the same after requests about filters that are not there")
        bed.filter("matchall classid 10:1")
        expect_equal(passed(bed), (40, 40, 40), "the same with a filter")
        put(0, bypass=1)
        expect_equal(passed(bed), (40, 40, 40), "the same with a filter after a change")
        bed.no_filter()
        put(0, bypass=1)
        expect_equal(passed(bed), (40, 0, 40), "the same after it is gone and a change")
    with Bed(bypass=1) as bed:
        expect_equal(passed(bed), (40, 40, 40), "the same below htb")


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("needs fork()")
    lib.main()
