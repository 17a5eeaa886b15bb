#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Options, limits, links and parents that change while packets are queued: no packet and no byte goes uncounted, and a
change that is rejected changes nothing.

Offered is what the sender counts, delivered what the device counts; neither comes from a qdisc. The device is a dummy,
in a namespace of its own. Whether packets are the right ones and unharmed is test_packets.py's business, whether marks
and drops are the right ones that of others.
"""
import random
import socket
import time

import lib
from lib import ECT1, NOT_ECT, each, expect, expect_equal, pack, test
from options import OPTIONS, outside, some_value
from parents import CALM, ECNS, HARSH, Tree

PARENTS = ("tbf", "htb", "hfsc", "drr", "qfq", "ets", "prio", "netem", "mq")
PEEKING = ("tbf", "hfsc", "qfq")


# B. Change, purge, reset and requeue

@each(PEEKING, ("C2",))
def c02_change_under_CASE_with_a_peeked_packet_keeps_memory_account(name):
    """Limits go to 1 and back while the parent holds a packet that it has only peeked at."""
    with Tree(name, "2mbit", **CALM) as tree:
        for ecns in ((NOT_ECT,), (ECT1,), ECNS):
            for shrink in ({"limit": 1}, {"memory_limit": 1}, {"limit": 3}, {"memory_limit": 5000}):
                for n in range(30):
                    tree.mix.send(ecns[n % len(ecns)], 500)
                for _ in range(4):
                    tree.change(**shrink)
                    tree.check_now(f"after {shrink}")
                    time.sleep(0.003)
                    tree.mix.send(ecns[0], 500)
                tree.change(limit=10000, memory_limit=2**31)
                tree.check_empty(f"after {shrink}")
        tree.check_all()
        # The in-tree one drops everything from here on.
        before = tree.sent()
        for n in range(50):
            tree.mix.send(ECNS[n % 4], 500)
        tree.check_all()
        expect_equal(tree.sent() - before, 50, "packets through afterwards")


@each(("tbf", "htb"), ("C3",))
def c03_classic_queue_purged_by_change_under_CASE_leaves_no_age(name):
    with Tree(name, "100kbit") as tree:
        for _ in range(100):
            tree.mix.send(NOT_ECT, 200)
        tree.change(memory_limit=1)
        st = tree.leaf()
        expect_equal((st["c"]["packets"], st["delay_c"], st["delay_l"]), (0, 0, 0),
                     "packets in C, delay_c, delay_l after the purge")
        tree.drain()
        time.sleep(2)
        st = tree.leaf()
        expect_equal((st["delay_c"], st["delay_l"], st["prob"], st["overload"]), (0, 0, 0, 0),
                     "delay_c, delay_l, prob, overload of a qdisc that was idle for 2 s")
        # Three of these take 15 ms, so that by themselves they are no reason for a signal.
        tree.change(memory_limit=10**6)
        for _ in range(3):
            tree.mix.send(ECT1, 64)
        leaves = tree.check_all()
        expect_equal(leaves[0]["l"]["sent"], 3, "L4S packets through")
        expect_equal(leaves[0]["l"]["marked_coupled"], 0, "coupled marks of a qdisc that was idle")


@test("C3")
def c03_l4s_queue_purged_by_change_leaves_no_age():
    with Tree("tbf", "100kbit") as tree:
        for _ in range(100):
            tree.mix.send(ECT1, 200)
        tree.change(memory_limit=1)
        st = tree.leaf()
        expect_equal((st["l"]["packets"], st["delay_c"], st["delay_l"]), (0, 0, 0),
                     "packets in L, delay_c, delay_l after the purge")
        tree.drain()
        time.sleep(2)
        st = tree.leaf()
        expect_equal((st["delay_l"], st["prob"], st["memory_used"]), (0, 0, 0), "delay_l, prob, memory_used")


@test("change")
def change_of_limit_drops_oldest_classic_first():
    with Tree("tbf", "8kbit", **CALM) as tree:
        for n in range(80):
            tree.mix.send(NOT_ECT if n % 2 else ECT1, 200)
        before = tree.leaf()
        expect(before["c"]["packets"] > 5 and before["qlen"] > 30, "too few packets for a test")
        tree.change(limit=25)
        st = tree.leaf()
        # A packet that tbf has peeked at counts as sent, and stays in tbf.
        gone = before["qlen"] - 25
        from_c = min(gone, before["c"]["packets"])
        expect_equal(st["qlen"], 25, "qlen after limit 25")
        expect_equal((st["c"]["dropped_purge"], st["l"]["dropped_purge"], st["drops"]),
                     (from_c, gone - from_c, gone), "purged from C, from L, drops")


OLD_COUNTERS = ("enqueued", "enqueued_bytes", "sent", "sent_bytes", "dropped_limit", "dropped_memory",
                "dropped_early", "dropped_aqm", "dropped_overload", "dropped_purge", "marked_classic",
                "marked_coupled", "marked_native", "arrived_ce")


@each(("tbf", "htb", "hfsc", "qfq", "mq"), ("C9",))
def c09_link_down_with_backlog_under_CASE_empties_and_keeps_counters(name):
    # The kernel chooses at random which queues of mq the flows share; each must have a backlog.
    burst = 800 if name == "mq" else 200
    with Tree(name, "1mbit", drop_overload=0, **HARSH) as tree:
        for n in range(burst):
            tree.mix.send(ECNS[n % 4], 500)
        time.sleep(0.3)
        for _ in range(3):
            before = tree.dump()
            expect(name == "hfsc" or any(before[h]["overload"] for h in tree.leaves), "no overload to be ended")
            queued = sum(before[h][q]["packets"] for h in tree.leaves for q in "cl")
            expect(queued > 20, f"only {queued} packets queued")
            lib.run("ip link set dev d0 down", tree.netns)
            after = tree.dump()
            for st in after.values():
                expect_equal((st["qlen"], st["backlog"]), (0, 0), f"qlen and backlog of {st['kind']}")
            for handle in tree.leaves:
                old, new = before[handle], after[handle]
                expect_equal((new["memory_used"], new["prob"], new["delay_c"], new["delay_l"], new["overload"]),
                             (0, 0, 0, 0, 0), "memory_used, prob, delay_c, delay_l, overload")
                for q in "cl":
                    for key in OLD_COUNTERS:
                        expect(new[q][key] >= old[q][key], f"{q} {key} fell from {old[q][key]} to {new[q][key]}")
                    expect_equal(new[q]["enqueued"], new[q]["sent"] + new[q]["dropped_aqm"]
                                 + new[q]["dropped_overload"] + new[q]["dropped_purge"],
                                 f"{q}: enqueued, against sent and dropped")
                expect(new["overload_ns"] >= old["overload_ns"], "overload_ns fell")
                expect(new["overload_count"] >= old["overload_count"], "overload_count fell")
            lib.run("ip link set dev d0 up", tree.netns)
            got = tree.delivered()[0]
            for n in range(burst):
                tree.mix.send(ECNS[n % 4], 500)
            time.sleep(0.3)
            # hfsc of Linux 6.1 takes a class that was active at its reset for active ever after, with
            # a pfifo as its child too, and never serves it again.
            expect(name == "hfsc" or tree.delivered()[0] > got, "nothing flows after link up")
        if name != "hfsc":
            tree.drain()


@each(PARENTS, ("2025-39677",))
def tree_CASE_replaced_with_backlog_starts_anew(name):
    """The whole tree, then dualpi2 alone, is replaced while it holds packets."""
    with Tree(name, "1mbit", **CALM) as tree:
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
        lib.tc("qdisc replace dev d0 root handle 7: pfifo", tree.netns)
        lib.tc("qdisc del dev d0 root", tree.netns)
        tree.build()
        st = tree.dump()
        for handle in tree.leaves:
            expect_equal([st[handle]["qlen"], st[handle]["packets"], st[handle]["c"]["enqueued"]], [0, 0, 0],
                         "qlen, packets, enqueued of the new one")
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
        tree.check_now("before replacing the leaf")
        for handle, parent in tree.leaves.items():
            lib.tc(f"qdisc replace dev d0 parent {parent} handle 6{handle} pfifo", tree.netns)
        dump = tree.dump()
        for st in dump.values():
            # At most the packet that one of the upper ones peeked at, and that is its own now.
            expect(st["kind"] == "netem" or "netem" in name or (st["qlen"], st["backlog"]) in ((0, 0), (1, 500)),
                   f"{st['kind']} {st['handle']} holds {st['qlen']} packets, {st['backlog']} bytes")
        got = tree.delivered()[0]
        for n in range(20):
            tree.mix.send(ECNS[n % 4], 500)
        tree.drain()
        expect(tree.delivered()[0] >= got + 20, "packets through the pfifo")
        # Without virtual time 20 packets may wait so long that the controller drops some.
        options = None if lib.VIRTUAL_TIME else pack(**CALM)
        for handle, parent in tree.leaves.items():
            expect_equal(lib.tc_request(tree.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "d0",
                                        handle, parent, "dualpi2", options), (0, ""), "replace by dualpi2")
        for n in range(20):
            tree.mix.send(ECNS[n % 4], 500)
        dump = tree.check_empty()
        expect_equal(sum(dump[h]["packets"] for h in tree.leaves), 20, "packets through the new dualpi2")


# D. Change under traffic

def whole_options(tree):
    return next(q["options"] for q in lib.qdisc_dump(tree.netns, "d0") if q["kind"] == "dualpi2")


# Packets of a limit that some test reaches.
VALID = OPTIONS | {"limit": OPTIONS["limit"]._replace(max=20000)}


@test("house style 4")
def change_refused_under_traffic_changes_nothing():
    """Valid options, then one that is not: under load the dump stays the same, byte for byte."""
    rng = random.Random(3)
    with Tree("htb", "2mbit", limit=500, memory_limit=10**6) as tree:
        tried = 0
        for name, option in OPTIONS.items():
            for value in outside(option):
                good = {other: some_value(rng, VALID[other]) for other in rng.sample(sorted(set(VALID) - {name}), 8)}
                if "step_thresh_us" in good:
                    good.pop("step_thresh_pkts", None)
                if name.startswith("step_thresh"):
                    good.pop("step_thresh_us", None)
                    good.pop("step_thresh_pkts", None)
                before = whole_options(tree)
                queued = tree.leaf()["c"]["dropped_purge"]
                for n in range(10):
                    tree.mix.send(ECNS[n % 4], 500)
                expect_equal(tree.try_change(pack(**good, **{name: value})), 22, f"error of {name} {value}")
                expect(whole_options(tree) == before, f"{name} {value} was refused and changed something")
                expect_equal(tree.leaf()["c"]["dropped_purge"], queued, "packets purged by a refused change")
                tried += 1
        lib.note(f"{tried} refused changes")
        tree.check_all()


def random_change(rng, tree, without=()):
    """Change one to six options, return what was asked for."""
    names = rng.sample(sorted(set(VALID) - set(without)), rng.randint(1, 6))
    knobs = {name: some_value(rng, VALID[name]) for name in names}
    if "step_thresh_us" in knobs:
        knobs.pop("step_thresh_pkts", None)
    # These exclude each other, whichever was there before.
    if knobs.get("bypass"):
        knobs["bandwidth"] = 0
    elif knobs.get("bandwidth"):
        knobs["bypass"] = 0
    tree.change(**knobs)
    return knobs


@each(("tbf", "htb", "qfq"), ("reliability scoreboard 2",), needs="long ext")
def change_of_every_option_500_times_under_CASE_accounts_agree(name):
    """Random valid values between packets of all kinds; what was set is what is shown."""
    rng = random.Random(500)
    shown = {}
    with Tree(name, "10mbit") as tree:
        for round_ in range(500):
            # qfq of 6.1 WARNs of any child that shapes.
            asked = random_change(rng, tree, without=("bandwidth",) if name == "qfq" else ())
            if "step_thresh_us" in asked:
                shown.pop("step_thresh_pkts", None)
            if "step_thresh_pkts" in asked:
                shown.pop("step_thresh_us", None)
            shown |= asked
            if {"overhead", "mpu"} & set(asked) and "framing" not in asked and not shown.get("framing"):
                shown["framing"] = lib.NOATM
            if set(lib.EXT_KNOBS) & set(asked) and shown.get("framing") == lib.RAW:
                shown |= {"overhead": 0, "mpu": 0}
            tree.mix.send(rng.choice(ECNS), rng.choice((64, 1514)))
            if round_ % 4 == 0 and name != "tbf":
                # Not split by a parent; with no_split_gso the core counts segments, we packets.
                tree.change(split_gso=1)
                shown["split_gso"] = 1
                tree.mix.gso(rng.choice(ECNS), rng.randint(2, 12), 300)
            if round_ % 10 == 0:
                st = tree.leaf()
                wrong = {k: (v, st["knobs"].get(k)) for k, v in shown.items()
                         if st["knobs"].get(k) != v and not (k == "ramp_us" and "step_thresh_pkts" in shown)}
                expect(not wrong, f"asked for, shown: {wrong}")
                time.sleep(0.002)
        tree.change(limit=10000, memory_limit=2**32 - 1, coupling=2, bandwidth=0, **HARSH)
        tree.drain()
        before = tree.sent()
        st = tree.leaf()
        st["was_early"] = True
        lib.check_identities(st)
        dropped = sum(st[q][key] for q in "cl" for key in st[q] if key.startswith("dropped_"))
        expect_equal(st["packets"] + dropped, tree.mix.offered, "sent + dropped, against offered")
        expect_equal(st["memory_used"], 0, "memory_used")
        time.sleep(5)
        for _ in range(10):
            tree.mix.send(NOT_ECT, 200)
        tree.drain()
        expect_equal(tree.sent() - before, 10, "packets through afterwards")


@each(("recur", "random"), ("R27", "R28"))
def every_codepoint_in_every_queue_with_CASE_signals_accounts_agree(name):
    """All codepoints in their own queue and, by priority, in the other one; signals on departure and on
    arrival, below overload and in it.
    """
    with Tree("htb", "1mbit", signal=int(name == "random"), step_thresh_us=50, ramp_us=100, limit=300, **HARSH) as tree:
        for early in (0, 1):
            for overload in (0, 1):
                tree.change(drop_early=early, drop_overload=overload)
                for n in range(600):
                    sock = tree.mix.socket(ECNS[n % 4], False)
                    priority = (0, 0x100001, 0x100002, 0x100003)[n // 4 % 4]
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
                    tree.mix.send(ECNS[n % 4], 300)
                    time.sleep(0.001)
                tree.drain()
        st = tree.check_all()[0]
        marked = ("marked_classic", "marked_coupled")
        for q, keys in (("c", ("dropped_aqm", "dropped_early", "dropped_overload", *marked)),
                        ("l", ("dropped_aqm", "dropped_overload", "marked_native", *marked))):
            for key in keys:
                expect(st[q][key] > 0, f"the load caused no {key} of {q}")


@test("R5", needs="virtual_time ext")
def idle_time_with_the_greatest_gains_forgets_and_does_not_wrap():
    with Tree("htb", "1mbit", drop_overload=0, target=1, tupdate=100, alpha=2**31 - 1, beta=2**31 - 1) as tree:
        for _ in range(100):
            tree.mix.send(ECT1, 500)
        time.sleep(0.05)
        expect(tree.leaf()["prob"] > 0, "p' did not rise")
        tree.change(target=4294967)
        tree.drain()
        for pause in (0.001, 5, 5000):
            # The integral of one period has its maximum with the maximum of these.
            tree.change(tupdate=100 if pause < 5000 else 4294967)
            time.sleep(pause)
            expect_equal(tree.leaf()["prob"], 0, f"p' in a pause of {pause} s")
            tree.mix.send(ECT1, 500)
            time.sleep(0.1)
            expect_equal(tree.leaf()["prob"], 0, f"p' after a pause of {pause} s")
        tree.check_all()


if __name__ == "__main__":
    # Packets leave while a test looks, on a slow machine more of them than it expects.
    lib.main(needs="timed ext")
