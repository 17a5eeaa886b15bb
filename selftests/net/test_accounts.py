#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""
test_accounts.py - every packet and every byte is accounted for, here and in the parents.

dualpi2 stands under each qdisc that can have children, is offered a known number of packets, is
changed, emptied, taken away and reset while packets are queued, and then: queues and memory are
empty up the whole tree, what was sent and what was dropped add up to what was offered, and the
device got what was sent.  Offered is what the sender counts, delivered what the device counts;
neither comes from a qdisc.

The device is a dummy, in a namespace of its own.  Whether packets are the right ones and unharmed is
test_packets.py's business, whether marks and drops are the right ones that of others.
"""
import contextlib
import os
import random
import socket
import time

import frames
import lib
from lib import ECT1, NOT_ECT, each, expect, expect_equal, pack, test
from options import OPTIONS, outside, some_value
from trees import CALM, ECNS, HARSH, Mix, Tree

PARENTS = ("tbf", "htb", "hfsc", "drr", "qfq", "ets", "prio", "netem", "mq")
PEEKING = ("tbf", "hfsc", "qfq")
# These do not split GSO packets themselves.
GSO_PARENTS = ("htb", "hfsc", "htb_drr", "htb_qfq", "htb_ets", "htb_prio", "hfsc_qfq")


# A. Accounting under every parent

@each(PARENTS, ("reliability 2.4",))
def tree_CASE_mixed_overload_accounts_agree(name):
    """All codepoints and sizes at several times the rate, with a limit that is often reached and a
    controller that drops at departure.
    """
    rng = random.Random(1)
    # mq has four of them.
    with Tree(name, "1mbit" if name == "mq" else "5mbit", limit=60, **HARSH) as tree:
        samples = 0
        for round_ in range(12):
            # Below overload in the first half: p' stops at 1/k.
            if round_ in (0, 6):
                tree.change(drop_overload=round_ // 6)
            for _ in range(90):
                tree.mix.send(rng.choice(ECNS), rng.choice((64, 200, 1000, 1514)), rng.random() < 0.3)
            for _ in range(4):
                samples += tree.sample()
            time.sleep(rng.choice((0.002, 0.02, 0.1)))
        expect(samples >= 5, f"only {samples} samples were of one moment")
        leaves = tree.check_all()
        for key in ("dropped_aqm", "dropped_overload", "dropped_limit"):
            expect(name == "mq" or sum(st["c"][key] + st["l"][key] for st in leaves) > 0,
                   f"the load caused no {key}")


@each(("tbf", "mq") + GSO_PARENTS, ("05ed733b65ab",))
def tree_CASE_gso_overload_accounts_agree(name):
    """The same with GSO packets of 2 to 40 segments among the others."""
    rng = random.Random(2)
    with Tree(name, "10mbit", limit=150, **HARSH) as tree:
        for _ in range(20):
            for _ in range(5):
                ecn = rng.choice(ECNS)
                tree.mix.gso(ecn, rng.randint(2, 40), rng.choice((200, 1000)), v6=rng.random() < 0.3)
                tree.mix.send(ecn, 500)
            tree.sample()
            time.sleep(rng.choice((0.01, 0.05)))
        # Parents learn of the segments that did not fit only that they are not there.
        tree.check_all(exact_drops=False)


@test("mq")
def mq_children_without_shaper_accounts_agree():
    """dualpi2 directly under mq: nothing waits, everything is counted."""
    with Tree("mq") as tree:
        lib.tc("qdisc replace dev d0 root handle 1: mq", tree.netns)
        for n in range(1, 5):
            tree.leaves[f"2{n}:"] = f"1:{n}"
            lib.tc(f"qdisc del dev d0 parent 1:{n}", tree.netns, check=False)
            tree.add(f"2{n}:", f"1:{n}")
        for n in range(400):
            tree.mix.send(ECNS[n % 4], 300, n % 3 == 0)
        dump = tree.check_empty()
        expect_equal(sum(dump[handle]["packets"] for handle in tree.leaves), 400, "packets of all four")
        expect_equal(dump["1:"]["packets"], 400, "packets of mq")
        expect_equal(tree.sent(), 400, "packets at the device")


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
        # A packet that tbf holds is on its way; it counts, and is not taken back.
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
    # mq hashes flows to queues that have this rate each: any one flow is to have a backlog.
    packets = 800 if name == "mq" else 200
    with Tree(name, "1mbit", drop_overload=0, **HARSH) as tree:
        for n in range(packets):
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
            for n in range(packets):
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


@test("requeue")
def requeue_by_a_stopped_device_accounts_agree():
    """ifb with room for one packet stops its queue after each; with two transmit queues the stack
    finds out only after it took the next packet from the qdisc, and gives it back.
    """
    with contextlib.ExitStack() as stack:
        netns = f"dpr{os.getpid()}"
        lib.quiet_netns(stack, netns)
        if lib.run("modprobe ifb numifbs=0", check=False).returncode:
            raise lib.Skip("no ifb")
        lib.run(["ip", "-batch", "-"], netns, stdin="""\
link add v0 type veth peer name v1
link add ifb0 numtxqueues 2 numrxqueues 2 type ifb
link set dev ifb0 txqueuelen 1 up
link set dev v0 up
link set dev v1 up
addr add 10.7.0.1/24 dev v0
neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 nud permanent dev v0
""")
        lib.run("ethtool -K v0 tso off gso off tx-udp-segmentation off", netns)
        lib.run(["tc", "-batch", "-"], netns, stdin="""\
qdisc add dev v1 clsact
filter add dev v1 ingress matchall action mirred egress redirect dev ifb0
""")
        for handle, knobs in (("a:", CALM | {"limit": 20}), ("b:", HARSH)):
            lib.tc("qdisc del dev ifb0 root", netns, check=False)
            expect_equal(lib.tc_request(netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "ifb0",
                                        handle, "root", "dualpi2", pack(**knobs)), (0, ""), "add")
            mix = Mix(netns)
            stack.callback(mix.close)
            for n in range(40):
                mix.gso(ECNS[n % 4], 20 + n % 21, 200)
                if n % 4 == 3:
                    # In the middle of it, with packets given back.
                    lib.tc_request(netns, lib.RTM_NEWQDISC, 0, "ifb0", handle, "root", "dualpi2",
                                   pack(limit=1 + n % 8))
                    lib.tc_request(netns, lib.RTM_NEWQDISC, 0, "ifb0", handle, "root", "dualpi2",
                                   pack(limit=knobs.get("limit", 10000)))
            time.sleep(0.5)
            st = lib.stats(netns, "ifb0", handle)
            lib.check_identities(st)
            lib.note(f"{st['requeues']} requeues, at most {st['maxq']} queued, {st['drops']} dropped")
            expect(st["requeues"] > 10, "the device gave too few packets back")
            expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")
            expect_equal(st["packets"] + st["drops"], mix.offered, "sent and dropped, against offered")


# C. Limits

def default_memory(limit, mtu):
    """Two packets of the MTU, Ethernet header included, for each packet of the limit."""
    return min(2 * (mtu + 14) * limit, 2**32 - 1)


@test("C24")
def c24_memlimit_of_the_user_survives_change_of_limit():
    with Tree("htb", memory_limit=123456) as tree:
        tree.change(limit=5)
        expect_equal(tree.leaf()["memory_limit"], 123456, "memlimit after change of limit")
        tree.change(target=20000)
        lib.run("ip link set dev d0 mtu 9000", tree.netns)
        tree.mix.send(ECT1)
        st = tree.leaf()
        expect_equal((st["memory_limit"], st["knobs"]["memory_limit"], st["knobs"]["limit"]),
                     (123456, 123456, 5), "memlimit, memlimit shown, limit")


@test("C24", needs="virtual_time ext")
def c24_default_memlimit_follows_limit_and_mtu():
    with Tree("htb", "1mbit", **CALM) as tree:
        expect_equal(tree.leaf()["memory_limit"], default_memory(10000, 1500), "memlimit")
        tree.change(limit=77)
        expect_equal(tree.leaf()["memory_limit"], default_memory(77, 1500), "memlimit with limit 77")
        lib.run("ip link set dev d0 mtu 3000", tree.netns)
        time.sleep(0.02)        # tupdate: an idle qdisc looks when traffic comes after it
        tree.mix.send(ECT1)
        expect_equal(tree.leaf()["memory_limit"], default_memory(77, 3000), "after MTU 3000, queue empty")
        for _ in range(70):
            tree.mix.send(ECT1)
        lib.run("ip link set dev d0 mtu 5000", tree.netns)
        time.sleep(0.03)
        expect_equal(tree.leaf()["memory_limit"], default_memory(77, 5000), "after MTU 5000, queue not empty")
        lib.run("ip link set dev d0 mtu 1500", tree.netns)
        tree.change(target=4000000)
        expect_equal(tree.leaf()["memory_limit"], default_memory(77, 1500), "after MTU 1500 and a change")
        tree.check_all()


@test("limit 1", "pfifo_tail_enqueue")
def limit_1_one_packet_at_a_time():
    with Tree("tbf", "100kbit", limit=1) as tree:
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
            st = tree.leaf()
            expect(st["qlen"] <= 1, f"{st['qlen']} packets queued")
        tree.mix.gso(ECT1, 10, 500)
        leaves = tree.check_all(exact_drops=False)
        expect_equal(leaves[0]["maxq"], 1, "most ever queued")
        expect(leaves[0]["c"]["dropped_limit"] > 0 and leaves[0]["l"]["dropped_limit"] > 0, "no drops by limit")


@test("limit 1")
def memlimit_1_one_packet_at_a_time_passes_and_all_is_counted():
    with Tree("tbf", "1mbit", memory_limit=1) as tree:
        for n in range(20):
            tree.mix.send(ECNS[n % 4], 500)
        st = tree.check_all()[0]
        # With one that tbf peeked at.
        expect(st["maxq"] <= 2, f"{st['maxq']} packets were queued")
        expect_equal(sum(st[q][key] for q in "cl" for key in ("sent", "dropped_memory")), 20,
                     "sent or dropped by memory")
        expect(st["c"]["dropped_memory"] and st["l"]["dropped_memory"], "no drops by memory")


@test("3c01f1ca5dfc")
def mtu_extremes_add_send_change_delete():
    """68 to 2147483647: the default memlimit saturates, and nothing else is out of order."""
    for mtu in (68, 576, 9000, 65535, 2**31 - 20, 2**31 - 1):
        for name in ("root", "htb"):
            with Tree(name, mtu=mtu, **CALM) as tree:
                sender = frames.Sender(tree.netns, "d0")
                for n in range(40):
                    sender.send(frames.ether(n, 0x0800, frames.ipv4(ecn=n % 4)))
                if mtu > 65535:
                    # As long as a packet socket can: 64 KiB are one packet.
                    sender.send(frames.ether(41, 0x0800, frames.ipv4(bytes(65000), ecn=ECT1, total=65020)))
                st = tree.drain()["10:"]
                # psched_mtu() of 2^31 + 13 counts as 2^31 - 1.
                want = min(2 * min(mtu + 14, 2**31 - 1) * 10000, 2**32 - 1)
                expect_equal(st["memory_limit"], want, f"memlimit with MTU {mtu}")
                expect_equal(tree.sent(), 40 + (mtu > 65535), f"packets with MTU {mtu}")
                tree.change(limit=1)
                want = min(2 * min(mtu + 14, 2**31 - 1), 2**32 - 1)
                expect_equal(tree.leaf()["memory_limit"], want, f"memlimit with MTU {mtu} and limit 1")
                expect(abs(tree.leaf()["credit"]) <= 99 * 2**24, "credit out of bounds")
                tree.change(limit=2**32 - 1)
                expect_equal(tree.leaf()["memory_limit"], 2**32 - 1, f"memlimit with MTU {mtu} and limit 2^32-1")
                sender.close()
                lib.tc("qdisc del dev d0 root", tree.netns)


# D. Change under traffic

def whole_options(tree):
    return next(q["options"] for q in lib.qdisc_dump(tree.netns, "d0") if q["kind"] == "dualpi2")


# Packets of a limit that some test reaches.
VALID = OPTIONS | {"limit": OPTIONS["limit"]._replace(greatest=20000)}


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
            # The integral of one period is greatest with the greatest of these.
            tree.change(tupdate=100 if pause < 5000 else 4294967)
            time.sleep(pause)
            expect_equal(tree.leaf()["prob"], 0, f"p' in a pause of {pause} s")
            tree.mix.send(ECT1, 500)
            time.sleep(0.1)
            expect_equal(tree.leaf()["prob"], 0, f"p' after a pause of {pause} s")
        tree.check_all()


# E. GSO

@each(GSO_PARENTS, ("05ed733b65ab",))
def gso_cut_by_the_limit_at_every_segment_under_CASE_parent_agrees(name):
    """Of ten segments none, one, two ... ten fit."""
    with Tree(name, "1mbit", **CALM) as tree:
        for fits in range(11):
            tree.change(limit=100)
            # tbf and htb let the first ones go, and may hold one that they peeked at.
            for _ in range(20):
                tree.mix.send(ECT1, 1000)
            limit = max(tree.leaf()["qlen"] + fits, 1)
            tree.change(limit=limit)
            before = tree.leaf()
            room = min(limit - before["qlen"], 10)
            tree.mix.gso(NOT_ECT if fits % 2 else ECT1, 10, 500)
            st = tree.leaf()
            tree.check_now(f"{room} of 10 fit")
            # A packet may leave in between and make room for one more.
            new = sum(st[q]["enqueued"] - before[q]["enqueued"] for q in "cl")
            left = st["packets"] - before["packets"]
            expect(room <= new <= room + left, f"{new} of 10 were queued where {room} fit")
            tree.check_empty(f"{fits} of 10 fit")
        tree.check_all(exact_drops=False)


@each(GSO_PARENTS, ("05ed733b65ab",))
def gso_into_an_empty_tree_under_CASE_with_room_for_k_parent_agrees(name):
    """The tree is empty when the packet comes: with limit k, k segments are queued."""
    with Tree(name, "1mbit", **CALM) as tree:
        for limit in (1, 2, 3, 9, 10):
            tree.change(limit=limit)
            tree.mix.gso(ECT1, 10, 500)
            tree.check_now(f"limit {limit}")
            tree.check_empty(f"limit {limit}")
        tree.check_all(exact_drops=False)
        expect_equal(tree.leaf()["l"]["sent"], 1 + 2 + 3 + 9 + 10, "segments sent")


@each(GSO_PARENTS, ("05ed733b65ab",))
def gso_all_but_the_last_refused_by_memlimit_under_CASE_parent_agrees(name):
    """The first segment is always queued; of the others only the last one, which is short, may fit."""
    with Tree(name, "1mbit", **CALM) as tree:
        tree.mix.gso(ECT1, 10, 1514)
        tree.check_empty()
        large = tree.leaf()["max_memory_used"] // 10
        for room in (large // 2, large + large // 2, 3 * large + large // 2):
            tree.change(memory_limit=room)
            before = tree.leaf()
            tree.mix.gso(NOT_ECT, 10, 1514, last=100)
            tree.check_now(f"memlimit {room}")
            tree.check_empty(f"memlimit {room}")
            st = tree.leaf()
            whole = room // large
            expect_equal(st["c"]["enqueued"] - before["c"]["enqueued"], whole + 1, f"queued with memlimit {room}")
            expect_equal(st["c"]["enqueued_bytes"] - before["c"]["enqueued_bytes"],
                         whole * 1514 + 100 if whole else 1514,
                         f"bytes with memlimit {room}")
        tree.check_all(exact_drops=False)


@each(GSO_PARENTS, ("05ed733b65ab",), needs="virtual_time ext")
def gso_cut_by_drop_enqueue_under_CASE_parent_agrees(name):
    """Drops anywhere in the burst: Not-ECT on arrival with p_C = 1/4, and 1."""
    with Tree(name, "1mbit", drop_early=1, drop_overload=0, **HARSH) as tree:
        for k in (2, 1):
            tree.change(coupling=k)
            for _ in range(25):
                tree.mix.gso(NOT_ECT, 10, 500)
                tree.check_now("drop_enqueue")
                time.sleep(0.01)
            tree.drain()
        leaves = tree.check_all(exact_drops=False)
        expect(leaves[0]["c"]["dropped_early"] > 20, "too few drops on arrival")


@each(("htb", "qfq_alone"), ("R19",))
def gso_split_under_CASE_every_segment_is_a_packet(name):
    with Tree(name, "100mbit", **CALM) as tree:
        for v6 in (False, True):
            for segments, size in ((2, 64), (10, 1000), (43, 1474)):
                before = tree.dump()["10:"]
                tree.mix.gso(ECT1, segments, size + 20 * v6, v6=v6)
                st = tree.check_empty()["10:"]
                expect_equal((st["packets"] - before["packets"], st["bytes"] - before["bytes"]),
                             (segments, segments * (size + 20 * v6)), "packets and bytes")
        tree.check_all()


@test("R19")
def gso_not_split_is_one_packet():
    with Tree("htb", "100mbit", split_gso=0, **CALM) as tree:
        tree.mix.gso(ECT1, 10, 1000)
        st = tree.drain()["10:"]
        expect_equal((st["l"]["enqueued"], st["l"]["sent"], st["maxq"]), (1, 1, 1), "enqueued, sent, maxq")
        # The core counts ten headers where there is one in memory, and ten packets.
        expect_equal((st["packets"], st["bytes"], st["l"]["sent_bytes"]), (10, 10000, 10000),
                     "packets, bytes, bytes of L")
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left")


def stab_bytes(words, where, gso):
    """Byte counters of tree and leaf for the same datagrams, in one GSO packet each or not."""
    with Tree("root" if where == "alone" else "htb", "100mbit", stab=f"stab {words}" if where == "parent" else "",
              # A later change would take the size table away; a lone one has no queue to calm.
              words=f"stab {words} dualpi2" if where == "alone" else None,
              **({} if where == "alone" else CALM)) as tree:
        for size in (64, 200, 1000, 1474):
            for v6 in (False, True):
                if gso:
                    tree.mix.gso(ECT1, 10, size + 20 * v6, v6=v6)
                    tree.mix.gso(NOT_ECT, 7, size + 20 * v6, v6=v6)
                else:
                    for ecn in [ECT1] * 10 + [NOT_ECT] * 7:
                        tree.mix.send(ecn, size + 20 * v6, v6)
        dump = tree.check_empty()
        leaf = dump["10:"]
        return [leaf["packets"], leaf["bytes"], leaf["c"]["sent_bytes"], leaf["l"]["sent_bytes"]] + \
            [dump["1:"]["bytes"] for _ in range(where == "parent")]


STABS = {"ethernet": "overhead 100 linklayer ethernet", "atm": "overhead 40 linklayer atm",
         "mpu": "mpu 84 overhead -10 linklayer ethernet", "adsl": "mtu 2047 tsize 128 overhead 10 linklayer adsl",
         "short": "mtu 511 tsize 64 overhead 4 mpu 84 linklayer ethernet"}

# 17 packets of four sizes in two families, each 100 bytes longer on the link.
STAB_ETHERNET = [136, 17 * (2 * (64 + 200 + 1000 + 1474) + 4 * 20) + 136 * 100]


@each(STABS, ("C20",))
def c20_stab_CASE_of_the_parent_same_bytes_with_and_without_gso(name):
    with_gso, without = (stab_bytes(STABS[name], "parent", gso) for gso in (True, False))
    lib.note(f"packets, bytes, C, L, parent: {without}")
    if name == "ethernet":
        expect_equal(without[:2], STAB_ETHERNET, "packets and bytes without GSO")
    expect_equal(with_gso, without, "with GSO, against without")


@each(("ethernet", "atm"), ("C20",))
def c20_stab_CASE_of_a_lone_dualpi2_same_bytes_with_and_without_gso(name):
    with_gso, without = (stab_bytes(STABS[name], "alone", gso) for gso in (True, False))
    if name == "ethernet":
        expect_equal(without[:2], STAB_ETHERNET, "packets and bytes without GSO")
    expect_equal(with_gso, without, "with GSO, against without")


# C19. Work per dequeue

@each(("htb", "tbf"), ("C19",), needs="virtual_time ext")
def c19_dequeue_under_CASE_at_probability_1_forwards_while_packets_wait(name):
    """p_C = 1 and a full queue: after at most 64 drops one packet goes.

    The queue is filled while the controller sleeps, then p_C goes to 1.  Of n packets at least n / 65
    leave; a dequeue without a bound would leave one.  Between two packets lies the time of one on the
    link, 160 us, and the work of one dequeue; 4 ms allow 60 us for each of 64 drops.
    """
    with Tree(name, "10mbit", limit=10000, **CALM) as tree:
        for _ in range(225):
            tree.mix.gso(NOT_ECT, 44, 200)
        tree.change(coupling=1, target=1, tupdate=100, alpha=2**31 - 1, beta=2**31 - 1, p_cmax=100)
        first = tree.leaf()
        expect(first["qlen"] > 5000, f"only {first['qlen']} packets queued")
        samples = []
        while True:
            got, now, st = tree.sent(), time.monotonic(), tree.leaf()
            samples.append((got, now, st["qlen"]))
            if not st["qlen"]:
                break
            time.sleep(0.002)
        leaves = tree.check_all(exact_drops=False)
        expect_equal(leaves[0]["c"]["dropped_limit"] + leaves[0]["c"]["dropped_memory"], 0, "tail drops")
        forwarded = leaves[0]["packets"] - first["packets"]
        expect(forwarded >= first["qlen"] // 65, f"of {first['qlen']} packets only {forwarded} were forwarded")
        expect(leaves[0]["c"]["dropped_overload"] > first["qlen"] // 2, "too few drops for a test")
        for (got, then, queued), (later, now, _) in zip(samples, samples[1:]):
            if queued and now - then > 0.004:
                expect(later > got, f"no packet left in {now - then:.3f} s although {queued} waited")


if __name__ == "__main__":
    # Packets leave while a test looks, on a slow machine more of them than it expects.
    lib.main(needs="timed ext")
