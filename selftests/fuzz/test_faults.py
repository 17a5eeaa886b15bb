#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug kmemleak
"""
test_faults.py - every allocation fails once.

For each operation the first call of the kernel that can fail does so, then the second, and so on until the
operation has no more of them (/proc/thread-self/fail-nth). Each time the operation succeeds, or it returns an
error and leaves everything as it was; lost packets are counted; afterwards the same operation works. A
half-made qdisc would show as one that cannot be added, deleted or unloaded.

It needs a kernel with fault injection, which no distribution ships: scripts/debug-kernel.sh. kmemleak finds
leaks: the machine reads it after each program (scripts/vm/init.sh).
"""
import contextlib
import os
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NET = os.path.join(os.path.dirname(HERE), "net")
sys.path.insert(0, NET)

import lib                                                              # noqa: E402
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal, pack, test   # noqa: E402

DEBUG = "/sys/kernel/debug"
FAIL_NTH = "/proc/thread-self/fail-nth"
ECNS = (NOT_ECT, ECT1, ECT0, CE)
UDP_SEGMENT = 103
# More than any operation here needs: one that never ends is an error.
MANY = 2000
# More faults than any test meets in one place.
TIMES = 1000000

# No time passes in a sender's call: a packet is marked if more than one packet of its burst is behind it.
MARKING = {"step_thresh_pkts": 1}


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def arm():
    """Let fail-nth reach every allocation, also those that may sleep."""
    if not os.path.exists(FAIL_NTH):
        raise lib.Skip("the kernel has no fault injection")
    for knob in ("failslab/ignore-gfp-wait", "fail_page_alloc/ignore-gfp-wait", "fail_page_alloc/ignore-gfp-highmem"):
        write(f"{DEBUG}/{knob}", "N")
    write(f"{DEBUG}/fail_page_alloc/min-order", 0)
    # A stack trace of each fault would fill the log.
    for kind in ("failslab", "fail_page_alloc", "fail_skb_realloc"):
        write(f"{DEBUG}/{kind}/verbose", 0)


def sweep(operation, restore):
    """Run operation() once for each fault it can meet; restore(nth, result) checks and cleans up.

    Returns how many faults there were. The file is open before, so that opening it meets none.
    """
    fd = os.open(FAIL_NTH, os.O_RDWR)
    try:
        for nth in range(1, MANY):
            os.pwrite(fd, b"%d" % nth, 0)
            try:
                result = operation()
            finally:
                left = int(os.pread(fd, 16, 0).rstrip(b"\0\n") or b"0")
                os.pwrite(fd, b"0", 0)
            restore(nth, result)
            if left:
                return nth - 1
    finally:
        os.close(fd)
    raise Failure(f"there was still a fault to meet after {MANY}")


class Bed:
    """A namespace with dummy devices: d0 with four transmit queues, d1 for what is mirrored."""

    def __init__(self, *qdiscs):
        self.netns = f"dpf{os.getpid()}"
        self.qdiscs = qdiscs

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.quiet_netns(stack, self.netns)
            lib.run(["ip", "-batch", "-"], self.netns, stdin="""\
link add d0 numtxqueues 4 type dummy
link add d1 type dummy
link set dev d0 up
link set dev d1 up
addr add 10.9.0.1/24 dev d0
neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 nud permanent dev d0
""")
            for args in self.qdiscs:
                lib.tc(args, self.netns)
            self.sock = stack.enter_context(lib.Socket(self.netns)).sock
            self.index = lib.ifindex(self.netns, "d0")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def message(self, kind, flags, parent, handle, options=None, name=b"dualpi2\0", more=b""):
        body = lib.tcmsg(self.index, handle, parent)
        if name:
            body += lib.attr(lib.TCA_KIND, name)
        if options is not None:
            body += lib.attr(lib.TCA_OPTIONS | lib.NLA_F_NESTED, options)
        return lib.message(kind, flags | lib.NLM_F_ACK, body + more)

    def ask(self, message):
        """Send a message; the kernel's answer as an error number. Without an answer for want of memory, ENOBUFS."""
        try:
            self.sock.send(message)
        except OSError as error:
            return error.errno
        self.sock.setblocking(False)
        try:
            while True:
                answer = self.sock.recv(1 << 17)
                while len(answer) >= 16:
                    size, kind = struct.unpack_from("IH", answer)
                    if kind == 2:
                        return -struct.unpack_from("i", answer, 16)[0]
                    if kind == 3:
                        return 0
                    answer = answer[(size + 3) & ~3:]
        except BlockingIOError:
            return 0 if self.answered else 105
        except OSError as error:
            return error.errno
        finally:
            self.sock.setblocking(True)

    answered = False

    def flush(self):
        """Forget answers that came late."""
        self.sock.setblocking(False)
        with contextlib.suppress(OSError):
            while True:
                self.sock.recv(1 << 17)
        self.sock.setblocking(True)

    def dump(self):
        return lib.qdisc_dump(self.netns, "d0")

    def ours(self):
        return [q for q in self.dump() if q["kind"] == "dualpi2"]


def note_faults(what, faults, least):
    lib.note(f"{what}: {faults} faults")
    expect(faults >= least, f"{what} met {faults} faults only: this tests nothing")


CREATE = lib.NLM_F_CREATE | lib.NLM_F_EXCL
OPTIONS = pack(limit=77, target=5000, coupling=3, step_thresh_us=2000, l4s=1, ramp_us=300)
HTB = ("qdisc add dev d0 root handle 1: htb default 10", "class add dev d0 parent 1: classid 1:10 htb rate 1mbit")


@test("fail-nth")
def add_with_each_allocation_failing_once_is_whole_or_not_there():
    arm()
    for parent, qdiscs in (("root", ()), ("1:10", HTB)):
        with Bed(*qdiscs) as bed:
            message = bed.message(lib.RTM_NEWQDISC, CREATE, parent, "10:", OPTIONS)
            want = {"limit": 77, "target": 5000, "coupling": 3, "step_thresh_us": 2000, "ramp_us": 300}

            def restore(nth, error, bed=bed, parent=parent, message=message, want=want):
                found = bed.ours()
                if not found:
                    expect(error, f"fault {nth}: no error, and no qdisc")
                    bed.flush()
                    expect_equal(bed.ask(message), 0, f"after fault {nth}: the same again")
                else:
                    # The notification or the acknowledgement may get lost; the qdisc is there then.
                    expect_equal(len(found), 1, f"fault {nth}: number of qdiscs")
                    knobs = lib.unpack(found[0]["options"])
                    expect_equal({k: knobs[k] for k in want}, want, f"fault {nth}: options")
                bed.flush()
                expect_equal(lib.tc_request(bed.netns, lib.RTM_DELQDISC, 0, "d0", "10:", parent), (0, ""), "delete")

            note_faults(f"add at {parent}", sweep(lambda b=bed, m=message: b.ask(m), restore), 4)


def whole_or_pfifo(bed, kind):
    """restore() of sweep() for a root of this kind with four dualpi2 below, added in place of a pfifo."""
    def restore(nth, error):
        kinds = sorted(q["kind"] for q in bed.dump())
        if kind in kinds:
            expect_equal(kinds, ["dualpi2"] * 4 + [kind], f"fault {nth}: qdiscs")
        else:
            expect(error, f"fault {nth}: no error, and no {kind}")
            expect_equal(kinds, ["pfifo"], f"fault {nth}: qdiscs")
        bed.flush()
        lib.tc("qdisc replace dev d0 root handle 1: pfifo", bed.netns)
    return restore


@test("fail-nth")
def add_of_mq_with_dualpi2_children_with_each_allocation_failing_once_is_whole():
    """With dualpi2 as the default, one message makes five qdiscs."""
    arm()
    path = "/proc/sys/net/core/default_qdisc"
    with open(path, encoding="ascii") as file:
        old = file.read()
    try:
        write(path, "dualpi2")
        with Bed("qdisc add dev d0 root handle 1: pfifo") as bed:
            message = bed.message(lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "root", "7:", None, b"mq\0")

            note_faults("add of mq", sweep(lambda: bed.ask(message), whole_or_pfifo(bed, "mq")), 8)
    finally:
        write(path, old)


@test("fail-nth")
def add_of_dualpi2_mq_with_each_allocation_failing_once_is_whole():
    """Its children are made before it is attached, and freed with it if one of them fails."""
    arm()
    with Bed("qdisc add dev d0 root handle 1: pfifo") as bed:
        message = bed.message(lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "root", "7:",
                              pack(bandwidth=10**6), b"dualpi2_mq\0")
        # The number of allocations before the children differs by a few each time, so that one sweep can miss some.
        for _ in range(6):
            note_faults("add of dualpi2_mq", sweep(lambda: bed.ask(message), whole_or_pfifo(bed, "dualpi2_mq")), 8)


@test("fail-nth")
def change_with_each_allocation_failing_once_is_whole_or_nothing():
    """The limits shrink below the backlog: a rejected change has dropped nothing."""
    arm()
    with Bed(*HTB) as bed:
        expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, "1:10", "10:")), 0, "add")
        load = Load(bed)
        for knobs in ({"limit": 3, "target": 9999}, {"memory_limit": 9000, "signal": 1}):
            before = {}

            def operation(knobs=knobs, before=before):
                return bed.ask(bed.message(lib.RTM_NEWQDISC, 0, "1:10", "10:", pack(**knobs)))

            def prepare(before=before):
                bed.flush()
                expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, 0, "1:10", "10:", pack(
                    limit=500, memory_limit=10**6, target=15000, signal=0))), 0, "change back")
                bed.flush()
                load.send(30)
                before |= lib.stats(bed.netns, "d0")

            def restore(nth, error, knobs=knobs, before=before, prepare=prepare):
                now = lib.stats(bed.netns, "d0")
                lib.check_identities(now)
                done = {k: now["knobs"][k] for k in knobs} == knobs
                same = now["knobs"] == before["knobs"]
                expect(done or same, f"fault {nth}: half of the change is there: {now['knobs']}")
                expect(done or error, f"fault {nth}: no error, and no change")
                if not done:
                    expect_equal([now[q]["dropped_purge"] for q in "cl"], [before[q]["dropped_purge"] for q in "cl"],
                                 f"fault {nth}: dropped by a change that was refused")
                prepare()

            prepare()
            note_faults(f"change of {sorted(knobs)}", sweep(operation, restore), 2)


@test("fail-nth")
def dump_replace_filter_and_delete_with_each_allocation_failing_once_leave_nothing_half():
    arm()
    with Bed(*HTB) as bed:
        add = bed.message(lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "1:10", "10:", OPTIONS)
        expect_equal(bed.ask(add), 0, "add")
        load = Load(bed)
        dump = lib.message(lib.RTM_GETQDISC, lib.NLM_F_DUMP, lib.tcmsg(bed.index))

        def same(nth, _error):
            bed.flush()
            expect_equal(len(bed.ours()), 1, f"fault {nth}: number of qdiscs")

        bed.answered = True
        note_faults("dump", sweep(lambda: bed.ask(dump), same), 1)
        bed.answered = False
        get = bed.message(lib.RTM_GETQDISC, 0, "1:10", "10:", name=b"")
        note_faults("get", sweep(lambda: bed.ask(get), same), 1)

        # matchall with a classid, on dualpi2 itself: TCA_OPTIONS { TCA_MATCHALL_CLASSID }.
        body = struct.pack("BxxxiIII", 0, bed.index, 1, 0x100000, 1 << 16 | 0x0300) + \
            lib.attr(lib.TCA_KIND, b"matchall\0") + \
            lib.attr(lib.TCA_OPTIONS | lib.NLA_F_NESTED, lib.attr(1, struct.pack("I", 0x100001)))
        make = lib.message(44, CREATE | lib.NLM_F_ACK, body)

        def without_filter(nth, error):
            bed.flush()
            shown = lib.tc("filter show dev d0 parent 10:", bed.netns).stdout
            expect(error or "matchall" in shown, f"fault {nth}: no error, and no filter")
            load.send(4)
            lib.tc("filter del dev d0 parent 10:", bed.netns, check=False)
            expect_equal(lib.tc("filter show dev d0 parent 10:", bed.netns).stdout, "", f"fault {nth}: filters left")

        note_faults("filter", sweep(lambda: bed.ask(make), without_filter), 3)

        def again(nth, _error):
            bed.flush()
            expect_equal(len(bed.ours()), 1, f"fault {nth}: number of qdiscs")
            load.send(8)
            lib.check_identities(lib.stats(bed.netns, "d0"))

        replace = bed.message(lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "1:10", "10:", OPTIONS)
        note_faults("replace of the options", sweep(lambda: bed.ask(replace), again), 1)
        other = iter(range(0x20, 0x2000))

        def graft():
            return bed.ask(bed.message(lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "1:10",
                                       f"{next(other):x}:", OPTIONS))

        def one(nth, _error):
            bed.flush()
            found = bed.ours()
            expect_equal(len(found), 1, f"fault {nth}: number of qdiscs")
            load.send(8)
            lib.check_identities(lib.stats(bed.netns, "d0", found[0]["handle"]))

        note_faults("replace of the qdisc", sweep(graft, one), 4)
        handle = bed.ours()[0]["handle"]
        delete = bed.message(lib.RTM_DELQDISC, 0, "1:10", handle, name=b"")

        def gone(nth, error):
            bed.flush()
            # htb gives the class a pfifo, or where there is no memory for it, nothing: then packets are dropped.
            expect(not bed.ours() or error, f"fault {nth}: no error, and still there")
            if not bed.ours():
                expect_equal(lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "d0",
                                            handle, "1:10", "dualpi2", None), (0, ""), f"fault {nth}: add again")
            load.send(8)

        note_faults("delete", sweep(lambda: bed.ask(delete), gone), 1)


class Load:
    """A socket whose packets go through d0, sent from this very thread."""

    def __init__(self, bed):
        with lib.in_netns(bed.netns):
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bed.stack.callback(self.udp.close)
        self.udp.connect(("10.9.0.2", 9))
        self.udp.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)      # SO_SNDBUFFORCE

    def send(self, count, size=500):
        for n in range(count):
            self.udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECNS[n % 4])
            self.udp.send(bytes(size))

    def gso(self, ecn, segments, size=500):
        """One GSO packet; returns the error of the sender."""
        try:
            self.udp.send(bytes(segments * size))
            return 0
        except OSError as error:
            return error.errno


def sums(st):
    return sum(st[q]["enqueued"] + st[q]["dropped_limit"] + st[q]["dropped_memory"] for q in "cl")


@test("fail-nth", "R19")
def gso_packet_with_each_allocation_failing_once_is_sent_or_counted():
    """The packet is split when it is queued. If a segment cannot be made, the whole packet is dropped and counted
    once; the sender has an error only for what it could not hand over.
    """
    arm()
    for qdiscs, parent in (((), "root"), (HTB, "1:10")):
        with Bed(*qdiscs) as bed:
            expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, parent, "10:")), 0, "add")
            load = Load(bed)
            load.udp.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 500)
            failed = []
            was = {}

            def restore(nth, error, bed=bed, failed=failed, was=was):
                st = lib.stats(bed.netns, "d0")
                lib.check_identities(st)
                whole, lost = sums(st) - was["sums"], st["gso_failed"] - was["lost"]
                expect((whole, lost) in ((10, 0), (0, 1), (0, 0)), f"fault {nth}: {whole} segments, {lost} failures")
                expect((whole, lost) != (0, 0) or error, f"fault {nth}: a packet is lost and not counted")
                expect_equal(st["drops"] - was["drops"] - lost, sum(
                    st[q]["dropped_limit"] + st[q]["dropped_memory"] for q in "cl") - was["full"], "drops")
                failed.append(lost)
                remember(st)

            def remember(st, was=was):
                was |= {"sums": sums(st), "lost": st["gso_failed"], "drops": st["drops"],
                        "full": sum(st[q]["dropped_limit"] + st[q]["dropped_memory"] for q in "cl")}

            remember(lib.stats(bed.netns, "d0"))
            for ecn in (ECT1, NOT_ECT):
                load.udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
                faults = sweep(lambda load=load, ecn=ecn: load.gso(ecn, 10), restore)
                note_faults(f"GSO at {parent}", faults, 10)
            expect(sum(failed) >= 10, f"only {sum(failed)} of the faults hit the splitting")


@contextlib.contextmanager
def no_memory_in(place):
    """Every allocation fails in PLACE, a function of the kernel or a "[module]" with all that it calls, in whatever
    context. Yields a function that tells how many have.
    """
    with open("/proc/kallsyms", encoding="ascii") as file:
        code = sorted((int(word[0], 16), word[2:]) for word in map(str.split, file) if word[1] in "tT")
    inside = [address for address, names in code if place in names]
    expect(inside, f"{place} is not in /proc/kallsyms")
    end = min(address for address, _ in [*code, (2**64 - 1, "")] if address > inside[-1])
    knobs = {"require-start": hex(inside[0]), "require-end": hex(end), "stacktrace-depth": 30, "times": TIMES,
             "interval": 1, "task-filter": "N", "probability": 100}
    for knob, value in knobs.items():
        write(f"{DEBUG}/failslab/{knob}", value)
    try:
        yield lambda: TIMES - int(read(f"{DEBUG}/failslab/times"))
    finally:
        write(f"{DEBUG}/failslab/probability", 0)
        write(f"{DEBUG}/failslab/require-start", 0)
        write(f"{DEBUG}/failslab/require-end", hex(2**64 - 1))


class Clones:
    """An htb class with dualpi2, to which each packet comes after it was mirrored, so that its header is shared."""

    def __init__(self, bed, **knobs):
        self.bed = bed
        expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, "1:10", "10:", pack(**knobs))), 0, "add")
        lib.tc("qdisc add dev d1 root netem delay 100s limit 100000", bed.netns)
        lib.tc("filter add dev d0 parent 1: matchall classid 1:10 action mirred egress mirror dev d1", bed.netns)
        self.udp = Load(bed).udp
        self.udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT1)

    def burst(self, failures=lambda: 0):
        """Send 40 packets; how many were marked, how many not for want of memory, and by how much failures() grew."""
        before = lib.stats(self.bed.netns, "d0")
        failed = failures()
        for _ in range(40):
            self.udp.send(bytes(500))
        time.sleep(1)
        failed = failures() - failed
        st = lib.stats(self.bed.netns, "d0")
        lib.check_identities(st)
        expect_equal((st["qlen"], st["packets"] - before["packets"]), (0, 40), "left, sent")
        return st["ecn_mark"] - before["ecn_mark"], st["mark_failed"] - before["mark_failed"], failed


@test("failslab", "clone isolation")
def mark_of_a_clone_without_memory_for_its_header_leaves_it_unmarked_and_counted():
    """The header must be copied to be marked. Where there is no memory for that, the packet leaves unmarked."""
    arm()
    with Bed(*HTB) as bed:
        clones = Clones(bed, **MARKING)
        marked, failed, _ = clones.burst()
        expect(marked > 30 and not failed, f"with memory: {marked} marked, {failed} not")
        with no_memory_in("skb_ensure_writable") as failures:
            expect_equal(clones.burst(failures), (0, marked, marked), "marked, not for want of memory, copies tried")
        expect_equal(clones.burst(), (marked, 0, 0), "marked, not marked afterwards")


@test("failslab", "C22")
def clones_that_are_not_marked_are_not_copied():
    """What would copy a header finds no memory, which is counted. An instance asks for some at its first packet."""
    arm()
    with Bed(*HTB) as bed:
        clones = Clones(bed, step_thresh_us=4000000, target=4000000)
        clones.burst()
        with no_memory_in("[sch_dualpi2]") as failures:
            expect_equal(clones.burst(failures), (0, 0, 0), "marked, not for want of memory, copies tried")
            expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, 0, "1:10", "10:", pack(**MARKING))), 0, "change")
            marked, failed, tried = clones.burst(failures)
        expect(failed > 30, f"{failed} packets were to be marked")
        expect_equal((marked, tried), (0, failed), "marked, copies tried")


@test("failslab", "histogram")
def packets_without_memory_for_a_histogram_are_counted_and_the_next_one_tries_again():
    """What an instance has from its first packet on cannot be allocated: packets go on, each is counted, and only the
    histogram lacks them. With memory again the next packet is in it.
    """
    arm()
    # Packets that wait for longer than the target are dropped.
    with Bed(HTB[0], HTB[1].replace("1mbit", "100mbit")) as bed:
        expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, "1:10", "10:")), 0, "add")
        load = Load(bed)

        def delays():
            st = lib.stats(bed.netns, "d0")
            lib.check_identities(st | {"had_no_memory": True})
            expect_equal((st["qlen"], st["drops"]), (0, 0), "queued, dropped")
            return [(st[q]["counters"]["forwarded"], sum(st[q]["delay"]["hist"]) + st[q]["delay"]["beyond"],
                     st[q]["delay"]["max_ns"] > 0, st[q]["delay"]["generation"]) for q in "cl"]

        with no_memory_in("dualpi2_activate"):
            load.send(40)
            time.sleep(1)
            expect_equal(delays(), [(20, 0, False, 1)] * 2, "forwarded, in the histogram, maximum; without memory")
            expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, 0, "1:10", "10:", pack(hist_c=100))), 0, "change")
            load.send(40)
            time.sleep(1)
            expect_equal([found[:2] for found in delays()], [(40, 0)] * 2, "the same after a change")
        load.send(40)
        time.sleep(1)
        expect_equal([found[:2] for found in delays()], [(60, 20)] * 2, "forwarded, in the histogram; with memory")


@test("failslab", "R39")
def overload_without_memory_for_its_report_is_reported_when_there_is_some():
    """With the first packet that finds memory. 1,000 packets need 4 s, and overload begins at 1 %."""
    arm()
    with Bed(*HTB) as bed, lib.overload_listener(bed.netns) as listener:
        expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, "1:10", "10:", pack(p_cmax=1))), 0, "add")
        load = Load(bed)
        with no_memory_in("dualpi2_activate"):
            load.send(1000)
            time.sleep(0.2)
            expect(lib.stats(bed.netns, "d0")["overload"], "no overload")
            expect_equal(listener.take(0.2), [], "reports without memory")
        load.send(10)
        expect_equal(len(listener.take(0.5)), 1, "reports with memory")


@test("failslab", "queue protection")
def queue_protection_without_memory_redirects_nothing_and_tries_again():
    """The buckets cannot be allocated: each try is counted, at most one in an update of the controller."""
    arm()
    with Bed(*HTB) as bed:
        expect_equal(bed.ask(bed.message(lib.RTM_NEWQDISC, CREATE, "1:10", "10:", pack(qprotect=1))), 0, "add")
        load = Load(bed)

        def protection():
            return lib.tc_stats(bed.netns, "d0")["qprotect"]

        def congest():
            for _ in range(3):
                load.send(80)
                time.sleep(1)

        with no_memory_in("dualpi2_qprotect_arm"):
            congest()
            found = protection()
            expect(found["alloc-failed"] >= 2 and not found["buckets"], f"without memory: {found}")
        congest()
        expect(protection()["buckets"], "no buckets with memory")


if __name__ == "__main__":
    lib.main()
