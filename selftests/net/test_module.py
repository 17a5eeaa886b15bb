#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug kmemleak
# suite: check kernel=6.1
# suite: long kernel=stock
"""
test_module.py - the module among the kernel's other parts: filters and their actions, loading and
unloading, default_qdisc, namespaces that go away.

Filters are tried with every verdict that a stock kernel's classifiers and actions can give; each
packet is counted once, whatever became of it.  What the qdisc does with the packets it keeps is
tested elsewhere.
"""
import contextlib
import ctypes
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

import frames
import lib
from frames import ether, ipv4, ipv6
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal, pack, test

ECNS = (NOT_ECT, ECT1, ECT0, CE)
MODULE = os.environ.get("DUALPI2_MODULE")
NAME = "sch_dualpi2"


class Bed:
    """A namespace with the dummy devices `out`, with dualpi2 under htb, and `side`."""

    serial = iter(range(1000))

    def __init__(self, rate="1gbit", **knobs):
        self.netns = f"dpm{os.getpid()}-{next(self.serial)}"
        self.rate, self.knobs = rate, knobs

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.quiet_netns(stack, self.netns)
            lib.run(["ip", "-batch", "-"], self.netns, stdin="""\
link add out type dummy
link add side type dummy
link set dev out up
link set dev side up
""")
            self.add()
            self.sender = frames.Sender(self.netns, "out")
            stack.callback(self.sender.close)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def add(self):
        lib.run(["tc", "-batch", "-"], self.netns, stdin=f"""\
qdisc add dev out root handle 1: htb default 10
class add dev out parent 1: classid 1:10 htb rate {self.rate} ceil {self.rate} burst 1514 cburst 1514 quantum 1514
""")
        expect_equal(lib.tc_request(self.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                    "1:10", "dualpi2", pack(**self.knobs)), (0, ""), "add of dualpi2")

    def filter(self, words, protocol="all"):
        lib.tc(f"filter add dev out parent 10: protocol {protocol} prio 1 {words}", self.netns)

    def no_filter(self):
        lib.tc("filter del dev out parent 10:", self.netns, check=False)

    def send(self, ecns=ECNS, count=10, packet=ipv4):
        """`count` of each codepoint; returns how many."""
        for number in range(count):
            for ecn in ecns:
                self.sender.send(ether(number, 0x86DD if packet is ipv6 else 0x0800, packet(ecn=ecn)))
        return count * len(ecns)

    def stats(self):
        return lib.stats(self.netns, "out")

    def sent(self, dev):
        """Packets that a device got."""
        with lib.in_netns(self.netns), open("/proc/self/net/dev", encoding="ascii") as file:
            return next(int(line.split(":")[1].split()[9]) for line in file if line.lstrip().startswith(dev + ":"))

    def outcome(self, **how):
        """Send some, and what became of them: offered, C, L, filter_dropped, drops, on the device, aside."""
        def now():
            st = self.stats()
            return (st["c"]["enqueued"], st["l"]["enqueued"], st["filter_dropped"], st["drops"],
                    self.sent("out"), self.sent("side"))
        before = now()
        offered = self.send(**how)
        time.sleep(0.05)
        after = now()
        lib.check_identities(self.stats())
        parent = lib.stats(self.netns, "out", "1:")
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        return (offered, *(b - a for a, b in zip(before, after)))


# H. Filters

# tc words of a filter that matches all, and what becomes of 40 packets, 10 of each codepoint:
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


def register_verdict(name):
    def case():
        words, want = VERDICTS[name]
        with Bed() as bed:
            bed.filter(words, "ip")
            expect_equal(bed.outcome(), (40, *want), "offered, C, L, filter_dropped, drops, sent, redirected")
            bed.no_filter()
            expect_equal(bed.outcome(), (40, 20, 20, 0, 0, 40, 0), "the same after the filter is gone")
    case.__name__ = f"filter_verdict_{name}_counted_once"
    test("RFC 9331 5.4", "2023-23455")(case)


for verdict in VERDICTS:
    register_verdict(verdict)


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
    words = {
        "u32": "u32 match u8 {ecn} 3 at 1 flowid 10:{cls}",
        "flower": "flower ip_tos {ecn}/3 classid 10:{cls}",
        "basic": "basic match 'cmp(u8 at 1 layer 1 mask 3 eq {ecn})' flowid 10:{cls}",
        "fw": "handle 5 fw classid 10:{cls}",
    }
    with Bed() as bed:
        bed.sender.sock.setsockopt(socket.SOL_SOCKET, 36, 5)        # SO_MARK
        for kind, line in words.items():
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
    """act_ct keeps the first fragment, and says so: neither sent nor dropped. With the second one comes the whole."""
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
        for words in ("qdisc add dev out parent 10:1 pfifo", "class add dev out parent 10: classid 10:1 htb rate 1mbit",
                      "class del dev out classid 10:1", "filter add dev out parent 10:1 matchall classid 10:1"):
            done = lib.tc(words, bed.netns, check=False)
            expect(done.returncode != 0 and done.stderr, f"`tc {words}` was accepted, or refused without a word")
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
                expect_equal(bed.outcome(), (40, *result),
                             f"{name}: offered, C, L, filter_dropped, drops, sent, aside")
                bed.no_filter()
            finally:
                os.unlink(path)


@test("2023-4206")
def filter_added_and_deleted_under_traffic_accounts_agree():
    """60 times, with packets queued, then dualpi2 goes with its filters in place."""
    words = [text for text, _ in VERDICTS.values() if "reclassify" not in text]
    with Bed("2mbit", target=4294967, alpha=1, beta=1) as bed:
        offered = stolen = 0
        for n in range(60):
            offered += bed.send(count=1)
            word = words[n % len(words)]
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
    """Off, on and off again; requests about filters do not end it, a filter does, until it is asked for anew."""
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


# I. The module

def loaded():
    return os.path.exists(f"/sys/module/{NAME}")


def users():
    with open(f"/sys/module/{NAME}/refcnt", encoding="ascii") as file:
        return int(file.read())


def wait_unused(others=0):
    """Namespaces are taken apart in the background.  Others: users that there were before the test."""
    for _ in range(600):
        if users() <= others:
            return
        time.sleep(0.05)
    raise Failure(f"{users()} users of the module are left, of {others}")


@contextlib.contextmanager
def installed():
    """The module is not loaded, but is where modprobe looks for it, alone."""
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    release = os.uname().release
    root = f"/tmp/dualpi2-modules-{os.getpid()}-{next(Bed.serial)}"
    tree = f"{root}/lib/modules/{release}"
    os.makedirs(f"{tree}/updates")
    shutil.copy(MODULE, f"{tree}/updates/{NAME}.ko")
    for name in ("modules.builtin", "modules.order"):
        with open(f"{tree}/{name}", "w", encoding="ascii"):
            pass
    if loaded():
        wait_unused()
        lib.run(["rmmod", NAME])
    lib.run(["depmod", "-b", root, release])
    lib.run(["mount", "--bind", tree, f"/lib/modules/{release}"])
    try:
        yield
    finally:
        lib.run(["umount", f"/lib/modules/{release}"])
        shutil.rmtree(root)
        lib.load_module()


@test("C12")
def modinfo_shows_both_aliases_licence_and_version():
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    found = {}
    for line in lib.run(["modinfo", MODULE]).stdout.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), []).append(value.strip())
    expect_equal(sorted(found["alias"]), ["net-sch-dualpi2", "sch_dualpi2"], "aliases")
    expect_equal(found["license"], ["GPL"], "licence")
    expect_equal(len(found["version"]), 1, "versions")
    expect(found["version"][0][0].isdigit(), f"version {found['version'][0]}")
    expect(found["description"][0] and found["author"][0], "no description or author")
    # On what notes the blocks that have run, if it is built for that.
    expect_equal(found.get("depends"), ["dualpi2_trace_pc" if "DUALPI2_TRACE_PC" in os.environ else ""], "depends")


@test("ee1ba0add3fb", needs="destructive")
def autoload_by_tc_add_without_modprobe():
    """With no options at all, and by a tc that does not know the qdisc."""
    with Bed() as bed:
        lib.tc("qdisc del dev out root", bed.netns)
        with installed():
            expect(not loaded(), "the module is loaded already")
            error, text = lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out",
                                         "10:", "root", "dualpi2", None)
            expect_equal((error, text), (0, ""), "add without TCA_OPTIONS")
            expect(loaded(), "the module is not loaded")
            bed.send()
            st = bed.stats()
            expect_equal((st["packets"], st["knobs"]["limit"]), (40, 10000), "packets, limit")
            lib.tc("qdisc del dev out root", bed.netns)
        with installed():
            with lib.in_netns(bed.netns):
                done = subprocess.run(["tc", "qdisc", "add", "dev", "out", "root", "handle", "10:", "dualpi2"],
                                      env=os.environ | {"TC_LIB_DIR": "/nonexistent"}, capture_output=True,
                                      text=True, check=False)
            expect_equal((done.returncode, done.stderr), (0, ""), "tc without the plugin")
            expect_equal(bed.stats()["kind"], "dualpi2", "kind")
            lib.tc("qdisc del dev out root", bed.netns)


@test("ee1ba0add3fb", "need 16", needs="destructive ext")
def autoload_by_default_qdisc_serves_new_devices_and_mq():
    path = "/proc/sys/net/core/default_qdisc"
    with open(path, encoding="ascii") as file:
        old = file.read()
    with Bed() as bed, contextlib.ExitStack() as stack:
        lib.tc("qdisc del dev out root", bed.netns)
        # So that its module is there when only ours can be found.
        frames.Tap(bed.netns, "tap9").close()
        with installed():
            expect(not loaded(), "the module is loaded already")
            try:
                with open(path, "w", encoding="ascii") as file:
                    file.write("dualpi2")
                expect(loaded(), "the module is not loaded")
                for name, multi in (("tap1", 0), ("tap2", 4)):
                    tap = frames.Tap(bed.netns, name, multi=multi)
                    stack.callback(tap.close)
                    kinds = [q["kind"] for q in lib.qdisc_dump(bed.netns, name)]
                    if not multi:
                        expect_equal(kinds, ["dualpi2"], "qdiscs of a new device")
                    else:
                        # As many transmit queues as the device can have, four of them in use.
                        expect_equal((kinds[0], set(kinds[1:]), len(kinds) > 4), ("mq", {"dualpi2"}, True),
                                     "qdiscs of a device with four queues")
                    sender = frames.Sender(bed.netns, name)
                    for number in range(20):
                        sender.send(ether(number, 0x0800, ipv4(ecn=ECNS[number % 4])))
                    # These qdiscs have no handle: a small priority, as from the TOS byte, is no class.
                    for priority in (1, 2, 3):
                        sender.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
                        for ecn in ECNS:
                            sender.send(ether(20 + 4 * priority + ecn, 0x0800, ipv4(ecn=ecn)))
                    sender.close()
                    expect_equal(len(tap.drain(0.1)), 32, "packets through")
                    counts = [lib.parse_xstats(q["app"]) for q in lib.qdisc_dump(bed.netns, name)
                              if q["kind"] == "dualpi2"]
                    expect_equal((sum(st["c"]["sent"] for st in counts), sum(st["l"]["sent"] for st in counts)),
                                 (16, 16), "Classic and L4S packets that dualpi2 sent")
            finally:
                with open(path, "w", encoding="ascii") as file:
                    file.write(old)
                stack.close()


@test("module unload in use", needs="destructive")
def rmmod_while_in_use_refused():
    with Bed() as bed:
        bed.send()
        expect(users() >= 1, "the module has no users")
        done = lib.run(["rmmod", NAME], check=False)
        expect(done.returncode != 0 and "in use" in done.stderr, f"rmmod: {done.returncode} {done.stderr}")
        bed.send()
        time.sleep(1)
        expect_equal(bed.stats()["packets"], 80, "packets")
        lib.tc("qdisc del dev out root", bed.netns)
        wait_unused()
        if not MODULE:
            return
        lib.run(["rmmod", NAME])
        expect(not loaded(), "still loaded")
        error, _ = lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                  "root", "no_such_qdisc", None)
        expect_equal(error, 2, "error of an unknown qdisc")
        lib.load_module()


@test("C12", needs="destructive ext")
def module_beside_another_dualpi2_is_refused_and_says_why():
    """As on a kernel with a dualpi2 of its own, which is played by this one under another name."""
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    other = f"/tmp/sch_dualpiX-{os.getpid()}.ko"
    with open(MODULE, "rb") as file:
        module = file.read()
    with open(other, "wb") as file:
        file.write(module.replace(b"sch_dualpi2\0", b"sch_dualpiX\0"))
    wait_unused()
    lib.run(["rmmod", NAME])
    lib.run(["insmod", other])
    try:
        with open("/dev/kmsg", "rb", buffering=0) as log:
            log.seek(0, os.SEEK_END)
            os.set_blocking(log.fileno(), False)
            done = lib.run(["insmod", MODULE], check=False)
            expect(done.returncode != 0 and "busy" in done.stderr, f"insmod: {done.returncode} {done.stderr}")
            expect(not loaded(), "the module is loaded")
            said = b""
            while record := log.read(8192):
                said += record
        expect(b"sch_dualpi2: the kernel has a dualpi2 already" in said, f"in the kernel log: {said}")
    finally:
        lib.run(["rmmod", "sch_dualpiX"])
        os.unlink(other)
        lib.load_module()


def packets_in_memory():
    """Packet heads that the kernel holds; per-cpu slabs make it imprecise by some hundred."""
    with open("/proc/slabinfo", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file
                   if line.startswith(("skbuff_head_cache", "skbuff_fclone_cache")))


@test("lifetime", needs="virtual_time")
def qdisc_added_and_deleted_200_times_with_backlog_leaks_nothing():
    """Each time 50 packets are queued when it goes: a leak would be 10000 packets."""
    with Bed("8kbit") as bed:
        before = packets_in_memory()
        for n in range(200):
            bed.send(count=20)
            st = bed.stats()
            expect(st["qlen"] >= 40, f"only {st['qlen']} queued")
            if n % 2:
                lib.tc("qdisc del dev out parent 1:10", bed.netns)
                left = lib.stats(bed.netns, "out", "1:")
                expect_equal((left["qlen"], left["backlog"]), (0, 0), "left in htb")
                expect_equal(lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out",
                                            "10:", "1:10", "dualpi2", None), (0, ""), "add")
            else:
                expect_equal(lib.tc_request(bed.netns, lib.RTM_DELQDISC, 0, "out", "1:", "root"), (0, ""), "delete")
                bed.add()
        lib.tc("qdisc del dev out root", bed.netns)
        time.sleep(1)
        wait_unused()
        grown = packets_in_memory() - before
        lib.note(f"{grown} packets more in memory than before")
        # KASAN keeps what is freed for a while; its kernel has kmemleak, which scripts/vm/init.sh asks at the end.
        kept = os.path.exists("/sys/kernel/debug/kmemleak")
        expect(grown < 1000 or kept, f"{grown} packets more in memory than before 10000 were queued and thrown away")


@test("netns teardown under traffic", needs="")
def netns_deleted_under_traffic_frees_everything():
    """The sender is still sending when the namespace loses its name, and is killed after it: the
    kernel takes devices, qdiscs and queued packets apart.
    """
    others = users()

    def end(pid):
        os.kill(pid, 9)
        os.waitpid(pid, 0)

    for n in range(8):
        with contextlib.ExitStack() as stack:
            with Bed("100kbit") as bed:
                lib.tc("filter add dev out parent 10: matchall classid 10:1", bed.netns)
                pid = os.fork()
                if not pid:
                    try:
                        with lib.in_netns(bed.netns):
                            sender = frames.Sender(None, "out")
                            while True:
                                for ecn in ECNS:
                                    sender.send(ether(n, 0x0800, ipv4(ecn=ecn)))
                                time.sleep(0.001)
                    finally:
                        os._exit(0)
                stack.callback(end, pid)
                for _ in range(100):
                    time.sleep(0.2)
                    if bed.stats()["qlen"] > 50:
                        break
                else:
                    raise Failure("too few packets queued")
            # The namespace's name is gone; our own socket in it too.
            time.sleep(0.05 * n)
    wait_unused(others)


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("needs fork()")
    lib.main()
