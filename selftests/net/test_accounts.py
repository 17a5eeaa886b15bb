#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Every packet and every byte is accounted for, here and in the parents.

dualpi2 is the child of each qdisc that can have children and is offered a known number of packets. Afterwards queues
and memory are empty up to the root, and what was sent and what was dropped add up to what was offered.

Offered is what the sender counts, delivered what the device counts; neither comes from a qdisc. The device is a dummy,
in a namespace of its own. Whether packets are the right ones and unharmed is test_packets.py's business, whether marks
and drops are the right ones that of others.
"""
import contextlib
import os
import random
import time

import frames
import lib
from lib import ECT1, NOT_ECT, each, expect, expect_equal, pack, test
from parents import CALM, ECNS, HARSH, Mix, Tree

PARENTS = ("tbf", "htb", "hfsc", "drr", "qfq", "ets", "prio", "netem", "mq")
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
            expect(name == "mq" or sum(st["c"][key] + st["l"][key] for st in leaves) > 0, f"the load caused no {key}")


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
    """dualpi2 as a child of mq: no backlog, all packets are counted."""
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
                    lib.tc_request(netns, lib.RTM_NEWQDISC, 0, "ifb0", handle, "root", "dualpi2", pack(limit=1 + n % 8))
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


def stab_bytes(args, where, gso):
    """Byte counters of tree and leaf for the same datagrams, in one GSO packet each or not."""
    with Tree("root" if where == "alone" else "htb", "100mbit", stab=f"stab {args}" if where == "parent" else "",
              # A later change would take the size table away; a lone one has no queue to calm.
              args=f"stab {args} dualpi2" if where == "alone" else None,
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
