#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""test_parents.py - every operation under every parent leaves all counters at zero.

Sixteen parents, nine operations: a cell of the matrix builds a tree, fills it, waits until the parent has peeked at a
packet in dualpi2 (and once more: until packets wait and it has not), does the operation while packets come and go, and
looks at the sums up the tree after each step. Then everything drains, qlen, backlog and memory are 0 everywhere, what
was offered is sent or dropped, and 20 more packets get through.

A parent may have faults of its own. Such a cell is in PARENT_FAULTS with the reason, and passes only
if the same cell with pfifo in place of dualpi2 goes wrong at the same step. It is not a place for load
(test_accounts.py, fuzz/storm.c), nor for whether the right packets are dropped.
"""
import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import time

import lib
from lib import NOT_ECT, Failure, expect, expect_equal, pack, test
from parents import CALM, ECNS, LS, PARENTS, QUEUES, TAPRIO, TBF_CHANGE, Mix, Tree

BITS = 200e3
SIOCSIFMTU, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8922, 0x8913, 0x8914, 1
# Nothing is dropped but by what the test does.
KNOBS = CALM | {"limit": 1000}

# Cells in which a stock kernel's parent goes wrong by itself.
PARENT_FAULTS = {
    ("cbs", "reset"): "its reset leaves the packets in its child",
    ("taprio", "delete"): "it takes itself for its own child, so that no child can be deleted",
    ("hfsc", "reset"): "a class that was active at the reset is taken for active ever after, and not served",
}

# Figures that a parent has wrong whatever its child is, so that the cells take the sum of its children instead:
# multiq counts no bytes, and subtracts those that are dropped; taprio is not told what its children drop or split.
# The tests *_is_wrong_about_*_whatever_its_child show it with pfifo.
UNTOLD = {"multiq": ("backlog",), "taprio": ("qlen", "backlog")}


# The bench

class Tc:
    """One tc that takes line after line: starting a program for each costs more than the tests."""

    def __init__(self, netns):
        with lib.in_netns(netns):
            self.process = subprocess.Popen(["tc", "-force", "-batch", "-"], stdin=subprocess.PIPE,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1)

    def do(self, lines):
        """Returns its error message, or ""."""
        # The error about this keyword is the answer.
        self.process.stdin.write(lines + "wait\n")
        self.process.stdin.flush()
        said = []
        while True:
            line = self.process.stderr.readline()
            if not line:
                raise Failure("tc ended: " + " ".join(said))
            if 'Object "wait"' in line:
                self.process.stderr.readline()      # Command failed
                return "; ".join(said)
            if not line.startswith("Warning: "):
                said.append(line.strip())

    def close(self):
        self.process.stdin.close()
        self.process.stderr.close()
        self.process.wait()


class Bench(Tree):
    """One device for all cells; dualpi2, or pfifo for comparison, at the leaves of one tree."""

    KEEPS_PEEKED = (*Tree.KEEPS_PEEKED, "cbs")

    def __init__(self):
        self.netns = f"dpp{os.getpid()}"
        self.leaves = {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.quiet_netns(stack, self.netns)
            with lib.in_netns(self.netns):
                self.control = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            lib.run(["ip", "-batch", "-"], self.netns, stdin=f"""\
link add d0 numtxqueues {QUEUES} type dummy
link set dev d0 up
addr add 10.7.0.1/24 dev d0
""")
            self.tc = Tc(self.netns)
            stack.callback(self.tc.close)
            self.mixes = [Mix(self.netns, 2), Mix(self.netns, 3)]
            for mix in self.mixes:
                stack.callback(mix.close)
            self.stack = stack.pop_all()
        return self

    # One cell

    def plant(self, lines, leaves, child):
        """A new tree, with nothing in it."""
        self.child, self.where, self.sent_to = child, "build", 0
        self.drops_by_reset = dict.fromkeys(leaves, 0)
        self.rebuild(lines, leaves)
        for mix in self.mixes:
            mix.offered = 0
        self.turn = 0
        self.unseen = set()

    def rebuild(self, lines, leaves):
        self.uproot()
        self.lines, self.leaves = lines, dict(leaves)
        self.do(lines.format(rate=f"{BITS:.0f}"))
        for handle in leaves:
            self.add_leaf(handle)
        self.restart_schedule()

    def restart_schedule(self):
        """taprio's ends with a reset, and old kernels reset it at each graft, with its gates as they are."""
        if "taprio" in self.lines:
            self.do(TAPRIO.format(verb="replace", start="1", closed=48000000))

    def uproot(self):
        lib.tc_request(self.netns, lib.RTM_DELQDISC, 0, "d0", 0, "root")

    def do(self, lines):
        said = self.tc.do(lines)
        expect(not said, f"tc: {said}; of: {lines}")

    def add_leaf(self, handle, kind=None, new_handle=None, flags=lib.NLM_F_CREATE | lib.NLM_F_REPLACE):
        kind = kind or self.child
        options = pack(**KNOBS) if kind == "dualpi2" else None
        number, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, flags, "d0", new_handle or handle,
                                      self.leaves[handle], kind, options)
        if number:
            raise Failure(f"add of {kind}: {os.strerror(number)}: {text}")

    def change_leaves(self, **knobs):
        """pfifo has but a limit; what dualpi2 has besides, the comparison has to do without."""
        for handle, st in self.dump().items():
            if handle not in self.leaves or st["kind"] not in ("dualpi2", "pfifo"):
                continue
            options = pack(**knobs) if st["kind"] == "dualpi2" else struct.pack("I", knobs.get("limit", 1000))
            if st["kind"] == "pfifo" and "limit" not in knobs:
                continue
            # By its handle alone: old kernels do not find what is below taprio.
            number, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, 0, "d0", handle, 0, st["kind"], options)
            expect_equal((number, text), (0, ""), f"change {knobs}")

    def offered(self):
        return sum(mix.offered for mix in self.mixes)

    def send(self, number=6, size=None):
        """Packets of all codepoints, small and large, one in five a GSO packet."""
        for _ in range(number):
            self.turn += 1
            mix, ecn = self.mixes[self.turn % 2], ECNS[self.turn // 2 % 4]
            if self.turn % 5 == 4 and size is None:
                mix.gso(ecn, 4, 300)
            else:
                mix.send(ecn, size or (100, 500, 1000)[self.turn % 3])

    @staticmethod
    def held(st):
        """Packets that a parent peeked at and that are still in dualpi2."""
        return st["qlen"] - st["c"]["packets"] - st["l"]["packets"]

    def fill(self, state):
        """Packets wait at the leaves, and one of them was peeked at, or none."""
        # Two long ones are gone at once, and make a shaper wait.
        for _ in range(2):
            self.mixes[0].send(NOT_ECT, 1500)
        self.send(20)
        for attempt in range(80):
            dump = self.dump()
            leaves = [dump[handle] for handle in self.leaves]
            waiting = sum(st["qlen"] for st in leaves)
            if self.child != "dualpi2":
                if waiting >= 6:
                    return
            elif waiting >= 6 and any(self.held(st) for st in leaves) == (state == "peeked"):
                return
            if waiting < 15:
                self.send(6)
            time.sleep(0.003 if attempt % 2 else 0.011)
        raise Failure(f"{waiting} packets wait, and never was one of them {state}")

    def check_sums(self, dump, text):
        """Where a child is in no dump, its parent holds more than is seen."""
        if self.unseen:
            dump = dump.copy()
            for handle in self.unseen & dump.keys():
                extra, size = (dump[handle][key] - sum(
                    st[key] for st in dump.values() if st["parent"].startswith(handle)) for key in ("qlen", "backlog"))
                expect(extra >= 0 and size >= 0 and (not extra) == (not size),
                       f"{text}: {extra} packets, {size} bytes in what is not seen below {handle}")
                dump["unseen" + handle] = {"parent": handle + "ffff", "kind": "unseen", "handle": "unseen:",
                                           "qlen": extra, "backlog": size}
        super().check_sums(dump, text)

    def dump(self):
        """As Tree's, except for what a parent does not know itself; see UNTOLD."""
        found = super().dump()
        # From the leaves up.
        for handle, st in reversed(found.items()):
            for key in UNTOLD.get(st["kind"], ()):
                st["own_" + key] = st[key]
                st[key] = sum(child[key] for child in found.values() if child["parent"].startswith(handle))
        return found

    def check(self, where):
        """Sums up the tree and identities of every dualpi2, at one moment. Returns the dump."""
        self.where = where
        dump = self.moment(where)
        self.check_sums(dump, where)
        for handle, st in dump.items():
            if st["kind"] == "dualpi2":
                # A reset purges and does not count drops.
                uncounted = self.drops_by_reset.get(handle, 0)
                if "taprio" in self.lines:
                    # Old kernels reset all at each graft below it, and nobody sees how much it was.
                    lost = sum(st[q][key] for q in "cl" for key in st[q] if key.startswith("dropped_")) - st["drops"]
                    uncounted = min(max(lost, 0), sum(st[q]["dropped_purge"] for q in "cl"))
                lib.check_identities(st | {"drops": st["drops"] + uncounted})
        return dump

    def drain(self, seconds=20):
        for _ in range(seconds * 10):
            dump = self.dump()
            if not any(st["qlen"] for st in dump.values()):
                return dump
            time.sleep(max(0.02, min(1, sum(st["backlog"] for st in dump.values() if st["parent"] == "root")
                                     * 8 / BITS / 2)))
        raise Failure(f"{self.where}: after {seconds} s: " + ", ".join(
            f"{st['kind']} holds {st['qlen']} packets" for st in dump.values() if st["qlen"]))

    def check_zero(self, where):
        """Nothing is left anywhere."""
        self.where = where
        self.drain()
        dump = self.check(where)
        for handle, st in dump.items():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"{where}: qlen and backlog of {st['kind']} {handle}")
            if st["kind"] == "dualpi2":
                expect_equal(st["memory_used"], 0, f"{where}: memory_used of {handle}")
        return dump

    def check_offered(self, dump):
        """All that was offered came to a leaf and left it; for cells whose leaves were there all the time."""
        if self.child != "dualpi2":
            return
        came = sum(st[q]["enqueued"] + st[q]["dropped_limit"] + st[q]["dropped_memory"] + st[q]["dropped_early"]
                   for st in (dump[h] for h in self.leaves) for q in "cl")
        came += sum(dump[h]["filter_dropped"] + dump[h]["gso_failed"] for h in self.leaves)
        expect_equal(came, self.offered(), f"{self.where}: packets that came to dualpi2, against offered")

    def check_twenty(self):
        """It works as before."""
        self.where = "20 more packets"
        before = self.delivered()[0]
        self.send(20, 200)
        self.check_zero(self.where)
        expect_equal(self.delivered()[0] - before, 20, "packets through afterwards")

    # What ip(8) does, without starting it.

    def set_mtu(self, mtu):
        fcntl.ioctl(self.control, SIOCSIFMTU, struct.pack("16si20x", b"d0", mtu))

    def set_up(self, up):
        flags = struct.unpack_from("16sH", fcntl.ioctl(self.control, SIOCGIFFLAGS, struct.pack("16sH22x", b"d0", 0)))[1]
        fcntl.ioctl(self.control, SIOCSIFFLAGS,
                    struct.pack("16sH22x", b"d0", flags | IFF_UP if up else flags & ~IFF_UP))


# Operations: each is done to a full tree, and says whether every packet that was offered came to the
# leaves that there are now.

def limits(bench, parent):
    """Limits go down, packet by packet and at once, while the parent may hold one."""
    for knobs in ({"limit": 12}, {"limit": 5, "memory_limit": 20000}, {"memory_limit": 3000}, {"limit": 1},
                  {"memory_limit": 1}):
        bench.change_leaves(**knobs)
        bench.check(f"after {knobs}")
        bench.send(3)
        bench.check(f"after {knobs} and more packets")
    bench.change_leaves(limit=1000, memory_limit=2**31)
    return True


def replace(bench, parent):
    """By itself, by one with another handle, by pfifo."""
    before = bench.dump()
    for handle in bench.leaves:
        bench.add_leaf(handle, flags=lib.NLM_F_REPLACE)
        # A replacement of itself is a change, and forgets nothing.
        st = bench.dump()[handle]
        expect(st["packets"] >= before[handle]["packets"], "replaced by itself, and its counters are reset")
        if bench.child == "dualpi2":
            expect(all(st[q]["enqueued"] >= before[handle][q]["enqueued"] for q in "cl"),
                   "replaced by itself, and its counters are reset")
    bench.check("replaced by itself")
    bench.send()
    for kind in (bench.child, "pfifo", bench.child):
        for handle in bench.leaves:
            bench.add_leaf(handle, kind, new_handle="7" + handle if kind != "pfifo" else "8" + handle)
            bench.check(f"replaced by another {kind}")
            bench.send(3)
        bench.send()
        bench.check(f"traffic through another {kind}")
    for handle in bench.leaves:
        bench.add_leaf(handle)
        bench.check("replaced by the old handle")
    return False


def delete(bench, parent):
    for handle, where in bench.leaves.items():
        number, text = lib.tc_request(bench.netns, lib.RTM_DELQDISC, 0, "d0", handle, where)
        expect_equal((number, text), (0, ""), "delete")
        # Some parents take a fifo then, which is in no dump.
        bench.unseen.add(where.split(":")[0] + ":")
        dump = bench.check("deleted")
        expect(handle not in dump, "deleted, and there")
        bench.send(3)
        bench.check("traffic where dualpi2 was")
    for handle in bench.leaves:
        bench.add_leaf(handle)
    bench.unseen.clear()
    bench.check("added again")
    bench.send()
    bench.check("added again, with traffic")
    return False


def graft(bench, parent):
    """Into another qdisc and out of it, and requests that are rejected."""
    for number, (handle, where) in enumerate(bench.leaves.items(), 1):
        if bench.child == "dualpi2":
            for options in (pack(limit=0), pack(coupling=0), b"\x05\x00\x01\x00"):
                expect_equal(lib.tc_request(bench.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "d0",
                                            "99:", where, "dualpi2", options)[0], 22, "error of a bad replacement")
                bench.check("a replacement was refused")
        inner = f"6{number}:"
        bench.do(f"qdisc replace dev d0 parent {where} handle {inner} prio bands 2 priomap" + 16 * " 0" + "\n")
        bench.check("a prio put in its place")
        bench.leaves[handle] = inner + "1"
        bench.add_leaf(handle)
        bench.send(8)
        bench.check("below a prio in its place")
        bench.leaves[handle] = where
        bench.add_leaf(handle, new_handle=f"7{number}:")
        bench.check("out of the prio")
        bench.send(4)
        bench.add_leaf(handle)
        bench.check("back in its place")
    return False


def reset(bench, parent):
    """The link goes down and up."""
    for _ in range(2):
        before = bench.dump()
        bench.where = "link down"
        bench.set_up(False)
        after = bench.dump()
        for handle in bench.leaves if bench.child == "dualpi2" else ():
            old, new = before[handle], after[handle]
            bench.drops_by_reset[handle] += sum(new[q]["dropped_purge"] - old[q]["dropped_purge"] for q in "cl")
            expect_equal((new["memory_used"], new["qlen"], new["backlog"], new["delay_c"], new["delay_l"]),
                         (0, 0, 0, 0, 0), "memory_used, qlen, backlog, delays after a reset")
        for st in bench.check("link down").values():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"qlen and backlog of {st['kind']} after a reset")
        bench.set_up(True)
        bench.restart_schedule()
        bench.send(15)
        bench.check("link up")
    # netem empties its own queue too.
    return "netem" not in bench.lines


def filters(bench, parent):
    """On dualpi2, then on the parent; one of the verdicts is to drop."""
    places = []
    if bench.child == "dualpi2":
        places += [(handle, (f"classid {handle}1", f"classid {handle}3", "action drop", "action pass"))
                   for handle in bench.leaves]
    if parent.filters:
        places.append((parent.filters, (f"classid {next(iter(bench.leaves.values()))}", "action drop", "action pass")))
    else:
        bench.where = "a filter on a parent that takes none"
        place = "2:" if "handle 2:" in bench.lines else "1:"
        said = bench.tc.do(f"filter add dev d0 parent {place} protocol ip prio 9 matchall action pass\n")
        expect(said, "a filter where none can be")
        lib.note("the parent takes no filters")
    for handle, verdicts in places:
        # On a parent, before those that the tree came with. basic can be replaced in place, and matches all.
        where = f"dev d0 parent {handle} protocol ip prio 3"
        for number, verdict in enumerate(verdicts):
            bench.do(f"filter {'replace' if number else 'add'} {where} handle 1 basic {verdict}\n")
            # A filter drops a GSO packet whole, and it is one then.
            bench.send(5, 300)
            bench.check(f"filter {verdict} on {handle}")
        bench.do(f"filter del {where}\n")
        bench.send(3)
        bench.check(f"filter of {handle} deleted")
    # Where the parent has a filter that drops, not all comes to the leaves.
    return not parent.filters


def mtu(bench, parent):
    for size in (9000, 576, 68, 1500):
        bench.set_mtu(size)
        bench.check(f"mtu {size}")
        # None that IP would cut into fragments.
        if size >= 576:
            bench.send(4, 300)
        bench.change_leaves(limit=900 + size % 100)
        bench.check(f"mtu {size} and a change")
    return True


def teardown(bench, parent):
    """The whole tree goes, once by itself, once for another root."""
    lines, leaves = bench.lines, bench.leaves
    bench.uproot()
    expect(not any(st["kind"] == "dualpi2" for st in bench.dump().values()), "a dualpi2 without a tree")
    bench.send(3)
    bench.rebuild(lines, leaves)
    bench.send(20)
    bench.check("built again")
    bench.do("qdisc replace dev d0 root handle 9: pfifo limit 1000\n")
    bench.check("another root")
    bench.send(3)
    bench.rebuild(lines, leaves)
    bench.send()
    bench.check("built a third time")
    return False


def parent_change(bench, parent):
    """Another rate, weight, quantum, number of bands or schedule."""
    lines = parent.change
    if not lines:
        if "tbf" in bench.lines:
            lines = "".join(TBF_CHANGE.format(where=f"parent 1:{n}", handle=f"1{n}:", rate="300kbit")
                            for n in range(1, QUEUES + 1))
        else:
            lines = "".join(f"class change dev d0 parent 1{n}: classid 1{n}:10 htb rate 300kbit ceil 300kbit "
                            "burst 3000 cburst 3000 quantum 3000\n" for n in range(1, QUEUES + 1))
    if bench.lines == LS + "":
        lines = lines.replace("sc rate", "ls rate")
    lines = lines.replace("{over}", "1:1" if "tbf" in bench.lines else "1:10")
    for _ in range(2):
        bench.do(lines)
        dump = bench.check("parent changed")
        bench.send()
        bench.check("parent changed, with traffic")
        if parent.takes_child:
            expect(not any(handle in dump for handle in bench.leaves), "the parent kept its child")
            for handle in bench.leaves:
                bench.add_leaf(handle)
            bench.send()
            bench.check("put below the parent again")
    return not parent.takes_child


OPERATIONS = (limits, replace, delete, graft, reset, filters, mtu, teardown, parent_change)


_bench = []


def shared_bench():
    """The one bench, made at first use."""
    if not _bench:
        _bench.append(lib._shared.enter_context(Bench()))
    return _bench[0]


def run_cell(bench, parent, operation, state, child):
    """Do it; raises Failure, and then bench.where says at which step."""
    try:
        bench.plant(*parent.trees[state], child)
        bench.fill(state)
        bench.check("full")
        counted = operation(bench, parent)
        bench.change_leaves(limit=1000)
        bench.restart_schedule()
        dump = bench.check_zero("drained")
        if counted:
            bench.check_offered(dump)
        bench.check_twenty()
    finally:
        bench.set_up(True)
        bench.set_mtu(1500)
        bench.uproot()


def cell(name, operation):
    """One cell of the matrix, with and without a packet that the parent peeked at."""
    parent, bench = PARENTS[name], shared_bench()
    fault = PARENT_FAULTS.get((name, operation.__name__))
    for state, tree in parent.trees.items():
        if not tree:
            lib.note(f"this parent leaves no packet {state}")
            continue
        try:
            run_cell(bench, parent, operation, state, "dualpi2")
            if fault:
                lib.note(f"{state}: this kernel has not the fault: {fault}")
            continue
        except Failure as error:
            where, failure = bench.where, error
        try:
            run_cell(bench, parent, operation, state, "pfifo")
            other = "is right"
        except Failure as error:
            other = f"{bench.where}: {error}"
            if fault and bench.where == where:
                lib.note(f"{state}: the parent's own fault: {fault}: {failure}; with pfifo too: {error}")
                continue
        raise Failure(f"{state}, {where}: {failure}; pfifo in its place: {other}")


def register():
    for name in PARENTS:
        for operation in OPERATIONS:
            def parent_cell(name=name, operation=operation):
                cell(name, operation)
            parent_cell.__name__ = f"parent_{name}_{operation.__name__}_accounts_agree"
            parent_cell.__doc__ = operation.__doc__
            # hfsc does not serve the class after a reset, and each step waits long until that is plain.
            needs = "long ext" if operation is filters or (name, operation) == ("hfsc", reset) else None
            test("reliability scoreboard 7", needs=needs)(parent_cell)


register()


def untold(name, child):
    """Is the parent wrong about packets that its child purged when it was replaced?"""
    bench = shared_bench()
    kind = PARENTS[name]
    try:
        bench.plant(*(kind.trees["unpeeked"] or kind.trees["peeked"]), child)
        bench.fill("unpeeked" if kind.trees["unpeeked"] else "peeked")
        for handle in bench.leaves:
            bench.add_leaf(handle, new_handle="7" + handle)
        return [st["own_" + key] != st[key] for st in bench.check("replaced").values() if st["kind"] == name
                for key in UNTOLD[name]]
    finally:
        bench.uproot()


@test("reliability scoreboard 7")
def multiq_is_wrong_about_bytes_whatever_its_child():
    both = [untold("multiq", child) for child in ("pfifo", "dualpi2")]
    lib.note(f"wrong backlog with pfifo, with dualpi2: {both}")
    expect_equal(both[1], both[0], "wrong with dualpi2, against with pfifo")


@test("reliability scoreboard 7")
def taprio_is_wrong_about_purged_packets_whatever_its_child():
    both = [untold("taprio", child) for child in ("pfifo", "dualpi2")]
    lib.note(f"wrong qlen and backlog with pfifo, with dualpi2: {both}")
    expect_equal(both[1], both[0], "wrong with dualpi2, against with pfifo")


if __name__ == "__main__":
    lib.main()
