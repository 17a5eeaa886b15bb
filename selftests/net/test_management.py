#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: check kernel=6.1 -- -k trace
# suite: long kernel=stock
"""What an operator sees of dualpi2: counters, classes, delays, overload, the tracepoint.

Each number is held against one that does not come from the qdisc: what the sender sent, what the receiver got and
when, how long the test let an overload last.  lib.py's check_identities() and check_classes(), which every test ends
with, hold the numbers against each other.

What tc prints of them is iproute2-patch's business, how well the histogram does with real TCP the lab's.
"""

import contextlib
import errno
import math
import os
import random
import select
import socket
import struct
import time

import lib
from lib import (
    CAUSES,
    CE,
    CODEPOINTS,
    ECT0,
    ECT1,
    NOT_ECT,
    Failure,
    Skip,
    Stream,
    dropped,
    each,
    expect,
    expect_between,
    expect_equal,
    note,
    pack,
    shared_net,
    test,
)
from trees import CALM, ECNS, HARSH, Tree

R = 10e6        # bit/s
MS = 1000000    # ns
ECT = ("ect1", "ect0", "ce")

# Which queue a codepoint goes to.
QUEUE = {NOT_ECT: "c", ECT0: "c", ECT1: "l", CE: "l"}


def counters(st):
    return {queue: st[queue]["counters"] for queue in "cl"}


# Counters, against sender and receiver

def expect_counters(st, streams, result, queue_of, causes=()):
    """Both queues count what was sent into them, by codepoint, and what was received of it; what was lost was dropped
    for one of these causes.
    """
    for queue, n in counters(st).items():
        mine = [s for s in streams if queue_of(s) == queue]
        size = {s: s.words["size"] for s in mine}
        ecn = {s: s.words["tos"] & 3 for s in mine}
        for number, name in enumerate(CODEPOINTS):
            expect_equal(n[f"arrived_{name}"], sum(result[s.name].sent_ever for s in mine if ecn[s] == number),
                         f"{queue}: arrived_{name}")
        sent_bytes = sum(result[s.name].sent_ever * size[s] for s in mine)
        received_bytes = sum(result[s.name].received * size[s] for s in mine)
        expect_equal(n["arrived_bytes"], sent_bytes, f"{queue}: arrived_bytes")
        expect_equal(n["forwarded"], sum(result[s.name].received for s in mine), f"{queue}: forwarded")
        expect_equal(n["forwarded_bytes"], received_bytes, f"{queue}: forwarded_bytes")
        for kind, wanted in (("not_ect", (NOT_ECT,)), ("ect", (ECT1, ECT0, CE))):
            lost = sum(result[s.name].lost for s in mine if ecn[s] in wanted)
            expect_equal(sum(n[f"{kind}_dropped_{cause}"] for cause in causes), lost,
                         f"{queue}: {kind} dropped by {causes}, against lost")
            expect_equal(sum(n[f"{kind}_dropped_{cause}"] for cause in CAUSES), lost,
                         f"{queue}: {kind} dropped for any cause, against lost")
        before = sum(dropped(n, cause) for cause in ("limit", "memory", "purge"))
        expect_equal(n["presented"], sum(result[s.name].sent_ever for s in mine) - before, f"{queue}: presented")
        for name, some in (("arrival", ("limit", "memory", "early")), ("aqm", ("aqm", "overload")),
                           ("purge", ("purge",))):
            if set(causes) <= set(some):
                expect_equal(n[f"dropped_{name}_bytes"], sent_bytes - received_bytes, f"{queue}: dropped_{name}_bytes")
        ce = sum(result[s.name].ecn[CE] for s in mine if ecn[s] != CE)
        expect_equal(n["marked_classic"] + n["marked_coupled"] + n["marked_native"], ce, f"{queue}: marks")


def mixed_streams(pps=40, count=40, v6=True, **words):
    """One stream of each codepoint and family, no two of a size."""
    found = []
    for ecn in ECNS:
        for dst in ("10.2.0.1", "fd02::1") if v6 else ("10.2.0.1",):
            found.append(Stream(f"{CODEPOINTS[ecn]} {dst}", ecn=ecn, pps=pps, count=count,
                                size=200 + 50 * len(found), dst=dst, **words))
    return found


def by_codepoint(stream):
    return QUEUE[stream.words["tos"] & 3]


@test("R36")
def counters_of_a_mix_count_each_codepoint_in_its_queue():
    net = shared_net()
    with net.aqm() as q:
        streams = mixed_streams()
        result = net.traffic(1.5, *streams)
        q.until_idle()
        expect_counters(q.stats(), streams, result, by_codepoint)
        expect_equal([one.received for one in result.values()], [40] * 8, "received of each")


@each(("c", "l", "unmarked"), ("R36",))
def counters_of_a_mix_that_a_filter_sends_to_CASE_count_each_codepoint_there(name):
    net = shared_net()
    with net.aqm() as q:
        q.filter(f"protocol all prio 1 matchall classid 10:{ {'c': 3, 'l': 1, 'unmarked': 2}[name]}")
        streams = mixed_streams()
        result = net.traffic(1.5, *streams)
        q.until_idle()
        expect_counters(q.stats(), streams, result, lambda _: "c" if name == "c" else "l")


@test("R36", "R19")
def counters_of_gso_split_are_segments_and_not_split_are_packets():
    """UDP in packets of 10 segments, of both families.  Unsplit the kernel counts ten headers as well."""
    net = shared_net()
    for split in (1, 0):
        with net.aqm(split_gso=split, rate=100e6, **CALM) as q:
            streams = [Stream(f"{ecn} {dst}", ecn=ecn, pps=20, gso=10, count=100, size=500 + 100 * ecn, dst=dst,
                              source="rtr") for ecn in ECNS for dst in ("10.2.0.1", "fd02::1")]
            result = net.traffic(1.2, *streams)
            q.until_idle()
            st = q.stats()
            for queue, n in counters(st).items():
                mine = [s for s in streams if by_codepoint(s) == queue]
                for number, name in enumerate(CODEPOINTS):
                    segments = sum(result[s.name].sent_ever for s in mine if s.words["tos"] & 3 == number)
                    expect_equal(n[f"arrived_{name}"], segments // (1 if split else 10), f"{queue}: arrived_{name}")
                size = sum(result[s.name].sent_ever * s.words["size"] for s in mine)
                expect_equal((n["arrived_bytes"], n["presented_bytes"], n["forwarded_bytes"]), (size,) * 3,
                             f"{queue}: bytes arrived, presented, forwarded")
                expect_equal(n["presented"], n["forwarded"], f"{queue}: presented and forwarded")
                expect_equal(sum(result[s.name].lost for s in mine), 0, "lost")
            if not split:
                # What follows holds of packets; the core counts segments.
                st["packets"] = st["c"]["sent"] + st["l"]["sent"]
                lib.check_identities(st)
                q.check = lambda: None


def overflow(knobs, queue, cause):
    """150 packets of each codepoint at once into one queue of a slow link; what is lost is counted for one cause.  More
    would be lost on their way to the router, which takes 1000 at once.
    """
    net = shared_net()
    with net.aqm(rate=200000, **knobs, **CALM) as q:
        q.filter(f"protocol all prio 1 matchall classid 10:{3 if queue == 'c' else 2}")
        streams = mixed_streams(pps=150, count=150, v6=False, burst=150)
        result = net.traffic(1, *streams)
        q.until_idle(120)
        st = q.stats()
        expect_counters(st, streams, result, lambda _: queue, (cause,))
        for kind in ("not_ect", "ect"):
            expect(st[queue]["counters"][f"{kind}_dropped_{cause}"] > 100, f"hardly a {kind} packet was dropped")
        expect_equal(st[queue]["counters"]["arrived_ce"], 150, "arrived_ce, those refused on arrival too")


@each(("c", "l"), ("R36",))
def drops_by_limit_of_CASE_are_counted_by_kind(name):
    overflow({"limit": 20}, name, "limit")


@each(("c", "l"), ("R36",))
def drops_by_memlimit_of_CASE_are_counted_by_kind(name):
    overflow({"memory_limit": 20000}, name, "memory")


@test("R36", needs="timed ext")
def drops_by_the_aqm_below_overload_are_of_not_ect_only():
    net = shared_net()
    with net.aqm(drop_overload=0) as q:
        streams = [Stream("not", bps=0.55 * R, size=1000), Stream("ect0", ecn=ECT0, bps=0.3 * R, size=900),
                   Stream("ect1", ecn=ECT1, bps=0.25 * R, size=800)]
        result = net.traffic(6, *streams)
        q.until_idle()
        st = q.stats()
        expect_counters(st, streams, result, by_codepoint, ("aqm",))
        expect(st["c"]["counters"]["not_ect_dropped_aqm"] > 20, "hardly a drop")
        expect_equal(st["c"]["counters"]["ect_dropped_aqm"], 0, "ECT dropped below overload")


@test("R36", needs="timed ext")
def drops_by_the_aqm_of_ect1_without_l4s_are_counted_as_ect():
    """With l4s off ECT(1) is treated as Not-ECT (RFC 9331 5.1), but it did arrive with ECT(1)."""
    net = shared_net()
    with net.aqm(l4s=0, drop_overload=0) as q:
        streams = [Stream("not", bps=0.55 * R, size=1000), Stream("ect1", ecn=ECT1, bps=0.55 * R, size=900)]
        result = net.traffic(6, *streams)
        q.until_idle()
        st = q.stats()
        expect_counters(st, streams, result, lambda _: "c", ("aqm",))
        for kind in ("not_ect", "ect"):
            expect(st["c"]["counters"][f"{kind}_dropped_aqm"] > 20, f"hardly a {kind} packet was dropped")


@test("R36", needs="timed ext")
def drops_in_overload_are_counted_by_kind_in_both_queues():
    """1.5 times the rate; of Not-ECT some is dropped before it begins."""
    net = shared_net()
    with net.aqm() as q:
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 classid 10:1")
        streams = [Stream("not in c", bps=0.3 * R, size=1000), Stream("not in l", bps=0.3 * R, size=900),
                   Stream("ect0", ecn=ECT0, bps=0.3 * R, size=800), Stream("ect1", ecn=ECT1, bps=0.3 * R, size=700),
                   Stream("ce", ecn=CE, bps=0.3 * R, size=600)]
        result = net.traffic(8, *streams)
        q.until_idle()
        st = q.stats()
        expect_counters(st, streams, result, lambda s: "l" if s.name == "not in l" else by_codepoint(s),
                        ("aqm", "overload"))
        for queue, n in counters(st).items():
            for kind in ("not_ect", "ect"):
                expect(n[f"{kind}_dropped_overload"] > 100, f"{queue}: hardly a {kind} packet was dropped in overload")
            expect_equal(n["ect_dropped_aqm"], 0, f"{queue}: ECT dropped below overload")


@test("R36", needs="timed ext")
def drops_early_are_counted_as_presented():
    """With drop_enqueue: a drop on arrival, by the AQM."""
    net = shared_net()
    with net.aqm(drop_early=1, drop_overload=0) as q:
        streams = [Stream("not", bps=0.85 * R, size=1000), Stream("ect1", ecn=ECT1, bps=0.3 * R, size=900)]
        result = net.traffic(6, *streams)
        q.until_idle()
        st = q.stats()
        expect_counters(st, streams, result, by_codepoint, ("early",))
        n = st["c"]["counters"]
        expect(n["not_ect_dropped_early"] > 20, "hardly a drop")
        expect_equal((n["presented"], n["presented_bytes"]), (result["not"].sent_ever, result["not"].sent_ever * 1000),
                     "presented")


@test("R36")
def drops_by_change_of_the_limit_are_counted_by_kind():
    """Purged packets never came to the AQM.  Those of the other queue stay as long as there are Classic ones."""
    net = shared_net()
    with net.aqm(rate=200000, **CALM) as q:
        streams = mixed_streams(pps=60, count=60, v6=False, burst=60)
        traffic = net.start(1, *streams)
        time.sleep(0.5)
        q.change(limit=40)
        result = traffic.wait()
        q.until_idle(60)
        st = q.stats()
        expect_counters(st, streams, result, by_codepoint, ("purge",))
        for queue, n in counters(st).items():
            expect(dropped(n, "purge") > 20, f"{queue}: hardly a packet was purged")
            expect_equal(n["presented"], n["forwarded"], f"{queue}: presented")
        expect_equal(st["c"]["counters"]["forwarded"] + dropped(st["c"]["counters"], "purge"), 120, "C")


def rises(st, key):
    """Counters of both queues that must never fall."""
    return {(queue, name): value for queue in "cl" for name, value in st[queue][key].items()
            if name not in ("queued", "queued_bytes", "hist", "pad")}


@each(("root", "htb", "tbf", "qfq", "mq"), ("R36", "C9"))
def link_flap_under_CASE_resets_no_counter_and_counts_what_it_purged(name):
    with Tree(name, "1mbit", hist_c=1000, drop_overload=0, **HARSH) as tree:
        for round_ in range(3):
            for n in range(200):
                tree.mix.send(ECNS[n % 4], 500)
            time.sleep(0.05)
            before = tree.dump()
            lib.run("ip link set dev d0 down", tree.netns)
            after = tree.dump()
            queued = sum(before[handle][queue]["counters"]["queued"] for handle in tree.leaves for queue in "cl")
            expect(name == "root" or queued > 20, f"only {queued} packets were queued")
            for handle in tree.leaves:
                old, new = before[handle], after[handle]
                for key in ("counters", "delay"):
                    was, now = rises(old, key), rises(new, key)
                    fell = {what: (was[what], now[what]) for what in was if now[what] < was[what]}
                    expect(not fell, f"round {round_}: {fell} fell")
                for queue in "cl":
                    n, was = new[queue]["counters"], old[queue]["counters"]
                    expect_equal((n["queued"], n["queued_bytes"]), (0, 0), f"{queue}: queued after the link went down")
                    expect_equal(lib.arrived(n), n["presented"] + dropped(n, "limit", "memory", "purge"),
                                 f"{queue}: arrived")
                    # What was queued was sent meanwhile, dropped by the AQM, or purged.
                    expect_equal(n["presented"] - was["presented"] + dropped(n, "purge") - dropped(was, "purge"),
                                 was["queued"], f"{queue}: presented and purged, against queued before")
                    expect_equal(new[queue]["delay"]["generation"], old[queue]["delay"]["generation"],
                                 f"{queue}: generation of the histogram")
                    expect(all(a <= b for a, b in zip(old[queue]["delay"]["hist"], new[queue]["delay"]["hist"])),
                           f"{queue}: a bucket fell")
                for key in ("count", "total_ns", "reports"):
                    expect(new["overload_info"][key] >= old["overload_info"][key], f"{key} of overload fell")
                expect_equal(new["overload_info"]["now"], 0, "in overload with the link down")
            lib.run("ip link set dev d0 up", tree.netns)
        leaves = [tree.dump()[handle] for handle in tree.leaves]
        tree.check_codepoints(leaves)
        for st in leaves:
            lib.check_identities(st | {"was_reset": True})
            lib.check_classes(tree.netns, "d0", st["handle"])


@test("R36")
def link_flap_of_the_peer_resets_no_counter():
    """The carrier goes, which resets the qdisc as well."""
    net = shared_net()
    with net.aqm(rate=3e5, **CALM) as q:
        traffic = net.start(2, *mixed_streams(pps=100, count=200, v6=False))
        time.sleep(0.5)
        lib.run("ip link set dev eth0 down", net.rcv)
        try:
            time.sleep(0.3)
            before = q.stats()
        finally:
            lib.run("ip link set dev eth0 up", net.rcv)
            lib.run(["ip", "-batch", "-"], net.rcv, stdin="""\
addr replace fd02::1/64 dev eth0 nodad
neigh replace 10.2.0.2 lladdr 02:00:00:00:02:02 nud permanent dev eth0
neigh replace fd02::2 lladdr 02:00:00:00:02:02 nud permanent dev eth0
route replace default via 10.2.0.2
route replace default via fd02::2 dev eth0
""")
            lib.run(["ip", "-batch", "-"], net.rtr, stdin="""\
neigh replace 10.2.0.1 lladdr 02:00:00:00:02:01 nud permanent dev down
neigh replace fd02::1 lladdr 02:00:00:00:02:01 nud permanent dev down
""")
        q.was_reset = True
        traffic.wait()
        q.until_idle()
        after = q.stats()
        expect(sum(dropped(n, "purge") for n in counters(before).values()) > 0, "nothing was purged")
        for key in ("counters", "delay"):
            was, now = rises(before, key), rises(after, key)
            expect(all(now[what] >= was[what] for what in was), "a counter fell")
        expect(after["l"]["counters"]["forwarded"] > before["l"]["counters"]["forwarded"], "nothing flows after it")


# Classes

def class_names(netns, dev="d0", handle=0):
    return [(c["kind"], c["handle"], c["parent"]) for c in lib.class_dump(netns, dev, handle)]


@each(("root", "htb", "tbf", "prio", "mq"), ("R36",))
def classes_under_CASE_are_two_and_show_what_the_qdisc_shows(name):
    with Tree(name, "2mbit") as tree:
        for handle in tree.leaves:
            expect_equal(class_names(tree.netns, handle=handle),
                         [("dualpi2", f"{handle}1", handle), ("dualpi2", f"{handle}3", handle)],
                         f"classes of {handle}")
        for round_ in range(6):
            for n in range(100):
                tree.mix.send(ECNS[n % 4], 500 + 10 * round_)
            for handle in tree.leaves:
                lib.check_classes(tree.netns, "d0", handle)
            time.sleep(0.02)
        tree.check_all()
        shown = lib.tc("-s class show dev d0", tree.netns).stdout
        for handle in tree.leaves:
            for minor in (1, 3):
                expect(f"class dualpi2 {handle}{minor} " in shown, f"tc shows no class {handle}{minor}: {shown}")
        for parent in tree.leaves.values():
            where = "root" if parent == "root" else f"parent {parent}"
            lib.tc(f"qdisc del dev d0 {where}", tree.netns)
        expect(not [c for c in class_names(tree.netns) if c[0] == "dualpi2"], "classes of qdiscs that are gone")


@test("R36", needs="destructive ext")
def classes_of_a_qdisc_without_a_handle_are_dumped():
    """A qdisc that the core attached by itself, as default_qdisc, has no handle: its classes are 0:1 and 0:3, as those
    of any other there.
    """
    with open("/proc/sys/net/core/default_qdisc", encoding="ascii") as file:
        before = file.read()
    with Tree("root") as tree, contextlib.ExitStack() as stack:
        stack.callback(lib._sysctl, "net.core.default_qdisc", before)
        lib._sysctl("net.core.default_qdisc", "dualpi2")
        if lib.run("modprobe ifb numifbs=0", check=False).returncode:
            raise Skip("no ifb, and a dummy device gets no default qdisc")
        lib.run("ip link add d1 numtxqueues 2 type ifb", tree.netns)
        lib.run("ip link set dev d1 up", tree.netns)
        kinds = [q["kind"] for q in lib.qdisc_dump(tree.netns, "d1")]
        expect_equal(kinds, ["mq", "dualpi2", "dualpi2"], "qdiscs")
        classes = [c for c in lib.class_dump(tree.netns, "d1") if c["kind"] == "dualpi2"]
        expect_equal([c["handle"] for c in classes], ["0:1", "0:3"] * 2, "classes")
        for one in classes:
            st = lib.parse_xstats(one["app"])
            expect(("counters" in st["l"]) == (one["handle"] == "0:1") and
                   ("counters" in st["c"]) == (one["handle"] == "0:3"), f"statistics of {one['handle']}")
        lib.tc("-s class show dev d1", tree.netns)


def expect_refused(got, errors, what):
    note(f"{what}: {errno.errorcode.get(got[0], got[0])} {got[1]}")
    expect(got[0] in errors, f"{what}: {os.strerror(got[0])}, {got[1]!r}")


@test("R36")
def class_requests_are_refused_and_change_nothing():
    """Nothing can be made, changed, deleted, asked for alone or put below: not of the two, nor of others."""
    with Tree("htb", "2mbit", **CALM) as tree:
        for n in range(40):
            tree.mix.send(ECNS[n % 4], 500)
        tree.drain()
        before = [(c["handle"], c["stats"], c["app"]) for c in lib.class_dump(tree.netns, "d0", "10:")]
        no = (errno.EOPNOTSUPP, errno.ENOENT, errno.EINVAL)
        for name in ("10:1", "10:2", "10:3", "10:4", "10:ffff"):
            for flags, what in ((lib.NLM_F_CREATE | lib.NLM_F_EXCL, "add"), (0, "change"),
                                (lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "replace")):
                expect_refused(lib.tc_request(tree.netns, lib.RTM_NEWTCLASS, flags, "d0", name, "10:", "dualpi2",
                                              pack(limit=5)), no, f"{what} of class {name}")
            expect_refused(lib.tc_request(tree.netns, lib.RTM_DELTCLASS, 0, "d0", name, "10:"), no, f"del of {name}")
            # The kernel asks the qdisc's find(), which has none, as with fq_codel.
            expect_refused(lib.tc_request(tree.netns, lib.RTM_GETTCLASS, 0, "d0", name, "10:"), (errno.ENOENT,),
                           f"get of {name}")
            expect_refused(lib.tc_request(tree.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_REPLACE, "d0",
                                          "77:", name, "pfifo"), no, f"pfifo below {name}")
            expect_refused(lib.tc_request(tree.netns, lib.RTM_DELQDISC, 0, "d0", 0, name), no, f"del below {name}")
            for where in ("parent", "parent 10: classid"):
                done = lib.tc(f"filter add dev d0 {where} {name} protocol all matchall", tree.netns, check=False)
                if where == "parent":
                    expect(done.returncode, f"a filter on class {name} was accepted")
                    note(done.stderr.strip().replace("\n", " "))
        after = [(c["handle"], c["stats"], c["app"]) for c in lib.class_dump(tree.netns, "d0", "10:")]
        expect_equal([c[:2] for c in after], [c[:2] for c in before], "classes afterwards")
        expect_equal([c["handle"] for c in lib.qdisc_dump(tree.netns, "d0")], ["1:", "10:"], "qdiscs afterwards")
        tree.check_all()


@test("R36")
def class_names_in_filters_work_with_classes_that_are_shown():
    """classid of each class, by filter and by priority; the counters of the class count them."""
    with Tree("htb", "10mbit", step_thresh_us=10**6, **CALM) as tree:
        for words in ("ip prio 1 flower ip_proto udp dst_port 9 classid 10:3", "ipv6 prio 2 matchall classid 10:1"):
            lib.tc(f"filter add dev d0 parent 10: protocol {words}", tree.netns)
        for _ in range(10):
            tree.mix.send(ECT1, 500)
            tree.mix.send(NOT_ECT, 500, v6=True)
        tree.check_all()
        st = tree.leaf()
        expect_equal((st["c"]["counters"]["arrived_ect1"], st["l"]["counters"]["arrived_not_ect"]), (10, 10),
                     "in C by v4, in L by v6")
        expect_equal([c["stats"]["packets"] for c in lib.class_dump(tree.netns, "d0", "10:")], [10, 10], "by class")


# Delays

def expect_delays(delay, waits_ns, slack_ns, what):
    """The histogram says what the packets say that waited so long; each may be off by this much.

    The packet of a rank may then be off by as much, and by a bucket, and so may the mean and the maximum.  On an
    emulated machine single packets are held up elsewhere for longer, between the queue and the receiver.
    """
    waits = sorted(waits_ns)
    last_slack_ns = slack_ns if lib.user_mode_linux() else 10 * slack_ns
    expect_equal(sum(delay["hist"]) + delay["beyond"], len(waits), f"{what}: packets in the histogram")
    for part in (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1):
        want = waits[math.ceil(part * len(waits)) - 1]
        low, high = lib.percentile(delay, part)
        note(f"{what}: P{part * 100:g} is in {low / 1e6:.3f}..{high / 1e6:.3f} ms, packets say {want / 1e6:.3f} ms")
        slack = slack_ns if part < 0.99 else last_slack_ns
        expect(low - slack <= want <= high + slack,
               f"{what}: P{part * 100:g} {low}..{high} ns, packets: {want} ns")
    mean = sum(waits) / len(waits)
    expect_between(delay["sum_ns"] / len(waits) / 1e6, (mean - slack_ns) / 1e6, (mean + slack_ns) / 1e6,
                   f"{what}: mean, ms")
    expect_between(delay["max_ns"] / 1e6, (waits[-1] - last_slack_ns) / 1e6, (waits[-1] + last_slack_ns) / 1e6,
                   f"{what}: maximum, ms")


def queue_waits(result):
    """How long packets waited by what the receiver saw, in ns; what a packet takes elsewhere, the least shows."""
    delays = [delay for _, delay, _ in result.records if delay is not None]
    return [delay - min(delays) for delay in delays]


# What a packet takes outside of the queue differs by less than this; on an emulated machine that runs an instruction
# a nanosecond it is a tenth of a millisecond.
def elsewhere_ns():
    return 5000 if lib.user_mode_linux() else 150000


@each(("c", "l"), ("R37",), needs="virtual_time ext")
def delay_of_CASE_that_is_constant_is_in_its_bucket(name):
    """A burst makes a queue, then packets come as fast as they leave: each waits as long as the one before."""
    net = shared_net()
    packet_ns = 8 * MS      # 1000 bytes at 1 Mbit/s
    with net.aqm(rate=1e6, **CALM) as q:
        q.filter(f"protocol all prio 1 matchall classid 10:{3 if name == 'c' else 2}")
        first = net.start(6, Stream("first", pps=1, burst=7, count=7, trace=True),
                          Stream("then", pps=125, start=packet_ns / 2 / 1e9, trace=True))
        result = first.wait()
        q.until_idle()
        st = q.stats()
        delay = st[name]["delay"]
        waits = queue_waits(result["first"])
        # A packet of the second stream finds 4 or 5 others and half of one.
        base = min(d for _, d, _ in result["first"].records)
        waits += [d - base for _, d, _ in result["then"].records]
        steady = sorted(waits)[len(waits) // 2]
        expect(4 * packet_ns < steady < 6 * packet_ns, f"no standing queue: {steady} ns")
        expect_delays(delay, waits, elsewhere_ns(), name)
        number = lib.bucket_of(delay, steady)
        expect(sum(delay["hist"][number - 1:number + 2]) > 700, f"buckets around {number}: {delay['hist']}")
        other = st["cl"["lc".index(name)]]["delay"]
        expect_equal((sum(other["hist"]), other["sum_ns"], other["max_ns"], other["beyond"]), (0, 0, 0, 0),
                     "delays of the other queue")


@each((4e6, 40e6, 200e6), ("R37", "R38"), name=lambda rate: f"{rate / 1e6:.0f}_mbit", needs="virtual_time ext")
def delay_at_CASE_percentiles_are_those_of_the_receiver(rate):
    """Overload by unresponsive streams with pauses, so that delays are of all sizes, in both queues."""
    net = shared_net()
    seconds = 20 if rate < 10e6 else 2 if rate < 100e6 else 0.6
    with net.aqm(rate=rate) as q:
        result = net.traffic(seconds, Stream("c", bps=0.75 * rate, size=1500, jitter=1, trace=True),
                             Stream("l", ecn=ECT1, bps=0.3 * rate, size=1500, jitter=1, burst=3, trace=True))
        q.until_idle()
        st = q.stats()
        for name in "cl":
            expect_delays(st[name]["delay"], queue_waits(result[name]), elsewhere_ns(), name)


@test("R37")
def delay_histogram_edges_are_as_documented():
    """Eight buckets of one unit, then eight in each octave, so that none is wider than 1/8 of where it begins."""
    with Tree("root") as tree:
        for name, unit in (("c", 65536), ("l", 8192)):
            delay = tree.leaf()[name]["delay"]
            expect_equal((delay["unit_ns"], delay["buckets"], delay["generation"]), (unit, 96, 1), f"unit of {name}")
            edges = lib.bucket_edges(delay)
            expect_equal(edges[:10], [n * unit for n in range(10)], "first edges")
            expect(all(8 * (b - a) <= a for a, b in zip(edges[8:], edges[9:])), f"a bucket is too wide: {edges}")
            expect_equal(edges[96], unit << 14, "end of the last")
        for us, unit in ((1, 1024), (2, 2048), (8, 8192), (9, 16384), (64, 65536), (65, 65536), (66, 131072),
                         (1000, 1 << 20), (16384, 1 << 24)):
            tree.change(hist_c=us, hist_l=us)
            st = tree.leaf()
            expect_equal((st["c"]["delay"]["unit_ns"], st["l"]["delay"]["unit_ns"]), (unit, unit), f"unit of {us} us")
            expect_equal((st["knobs"]["hist_c"], st["knobs"]["hist_l"]), (us, us), "shown")


@test("R37")
def delay_edges_changed_begin_anew_and_leave_counters_alone():
    with Tree("htb", "2mbit", **CALM) as tree:
        def fill():
            for n in range(40):
                tree.mix.send(ECNS[n % 4], 500)
            return tree.check_empty()["10:"]

        before = fill()
        # Other options, and the same again, begin nothing.
        for knobs in ({"target": 20000}, {"hist_c": 64, "hist_l": 8}, {"limit": 1000}):
            tree.change(**knobs)
            expect_equal(tree.leaf()["c"]["delay"], before["c"]["delay"], f"delays of C after {knobs}")
            expect_equal(tree.leaf()["l"]["delay"], before["l"]["delay"], f"delays of L after {knobs}")
        tree.change(hist_c=200)
        st = tree.leaf()
        expect_equal(st["c"]["delay"] | {"hist": sum(st["c"]["delay"]["hist"])},
                     {"sum_ns": 0, "max_ns": 0, "beyond": 0, "unit_ns": 262144, "buckets": 96, "pad": 0, "hist": 0,
                      "generation": before["c"]["delay"]["generation"] + 1}, "delays of C after hist_c")
        expect_equal(st["l"]["delay"], before["l"]["delay"], "delays of L after hist_c")
        expect_equal(counters(st), counters(before), "counters after hist_c")
        tree.change(hist_l=1)
        st = tree.leaf()
        expect_equal(st["l"]["delay"]["generation"], before["l"]["delay"]["generation"] + 1, "generation of L")
        after = fill()
        for name in "cl":
            expect_equal(sum(after[name]["delay"]["hist"]) + after[name]["delay"]["beyond"], 20,
                         f"{name}: packets since it began anew")
            expect_equal(after[name]["counters"]["forwarded"], 40, f"{name}: forwarded ever")


@test("R37")
def delay_edges_changed_with_a_backlog_count_what_leaves_afterwards():
    with Tree("htb", "1mbit", **CALM) as tree:
        for n in range(100):
            tree.mix.send(ECNS[n % 4], 500)
        tree.change(hist_c=1000, hist_l=1000)
        st = tree.leaf()
        left = {name: st[name]["counters"]["queued"] for name in "cl"}
        done = {name: sum(st[name]["delay"]["hist"]) for name in "cl"}
        expect(left["c"] > 20 and left["l"] > 20, "hardly a backlog")
        st = tree.check_empty()["10:"]
        for name in "cl":
            expect_equal(sum(st[name]["delay"]["hist"]) - done[name], left[name], f"{name}: packets in the histogram")


@each(("c", "l"), ("R37",), needs="virtual_time ext")
def delay_of_CASE_beyond_the_last_bucket_is_counted_and_not_lost(name):
    """The last bucket ends at 16.8 ms; packets wait for up to 240 ms.

    Those that come alone, before, tell what a packet takes elsewhere; the first of a burst may take longer.
    """
    net = shared_net()
    with net.aqm(rate=1e6, hist_c=1, hist_l=1, **CALM) as q:
        q.filter(f"protocol all prio 1 matchall classid 10:{3 if name == 'c' else 2}")
        result = net.traffic(2, Stream("alone", pps=50, count=20, trace=True),
                             Stream("one", start=0.5, pps=31, burst=31, count=31, trace=True))
        q.until_idle()
        delay = q.stats()[name]["delay"]
        delays = [[delay for _, delay, _ in result[which].records] for which in ("alone", "one")]
        base = min(delays[0])
        waits = [delay - base for which in delays for delay in which]
        end = lib.bucket_edges(delay)[-1]
        expect_equal(end, 1024 << 14, "end of the last bucket")
        expect_equal(delay["beyond"], sum(wait >= end for wait in waits), "packets beyond it")
        expect(delay["beyond"] > 20 and sum(delay["hist"]) > 20, "a lopsided test")
        expect_delays(delay, waits, elsewhere_ns(), name)
        # Another one beyond it that is not the greatest.
        again = net.traffic(1, Stream("two", pps=8, burst=8, count=8, trace=True))
        q.until_idle()
        after = q.stats()[name]["delay"]
        expect_equal(after["max_ns"], delay["max_ns"], "maximum after shorter ones")
        expect_equal(after["beyond"] - delay["beyond"], sum(d - base >= end for _, d, _ in again["two"].records),
                     "packets beyond it, later")


# Overload

def overload(seconds, load=0.75, stop=None):
    """Streams of so many times the rate into each queue, in overload from about 0.2 s on."""
    return [Stream("c", bps=load * R, stop=stop or seconds), Stream("l", ecn=ECT1, bps=load * R, stop=stop or seconds)]


def seen_overload(q, seconds):
    """When overload began and ended as somebody saw it who looked often: CLOCK_REALTIME."""
    begin = end = None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        now = q.stats()["overload"]
        if now and begin is None:
            begin = time.time()
        if begin is not None and end is None and not now:
            end = time.time()
        time.sleep(0.02)
    return begin, end


@each((False, True), ("R39",), name=lambda watched: "watched" if watched else "alone", needs="virtual_time ext")
def overload_of_2_s_CASE_is_reported_once_with_its_begin_and_end(watched):
    """Traffic ends with it.  That somebody looks at the statistics changes nothing."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm() as q:
        begun = time.time()
        traffic = net.start(2.3, *overload(2.3))
        if watched:
            seen = seen_overload(q, 8)
            note(f"seen from {seen[0] - begun:.2f} to {seen[1] - begun:.2f} s")
        reports = listener.take(1 if watched else 9)
        traffic.wait()
        for report in reports:
            note(report | {"start_ns": report["start_ns"] / 1e9 - begun, "at": report["at"] - begun})
        expect_equal([r["event"] for r in reports], ["begin", "end"], "reports")
        begin, end = reports
        with lib.in_netns(net.rtr):
            index = socket.if_nametoindex("down")
        for report in reports:
            expect_equal((report["ifindex"], report["handle"], report["parent"], report["count"]),
                         (index, 0x100000, 0x10010, 1), "ifindex, handle, parent, count")
            expect(abs(report["start_ns"] - begin["start_ns"]) < MS, "start of the begin's report and the end's")
        # p' is at 1/2 when the Classic queue's head has waited for 156 ms at most, less with the integral term:
        # 0.1 s if all of that queue waits behind L4S, 0.3 s if both share the rate.
        expect_between(begin["start_ns"] / 1e9 - begun, 0.1, 0.5, "begin, s after the load's")
        expect_between(end["duration_ns"] / 1e9, 1.8, 2.2, "duration, s")
        expect(begin["duration_ns"] < 0.1e9, f"duration at the begin: {begin['duration_ns']} ns")
        if not watched:
            expect_between(begin["at"] - begin["start_ns"] / 1e9, 0, 0.1, "report of the begin, s after it")
            expect_between(end["at"] - (end["start_ns"] + end["duration_ns"]) / 1e9, 0, 2.5,
                           "report of the end, s after it")
        st = q.stats()
        info = st["overload_info"]
        expect_equal((info["count"], info["now"], info["reports"]), (1, 0, 2), "count, now, reports")
        expect(abs(info["start_ns"] - begin["start_ns"]) < 1 * MS, "start by statistics and by report")
        expect_equal((info["duration_ns"], info["total_ns"]), (end["duration_ns"],) * 2, "duration, total")


@test("R39", needs="virtual_time ext")
def overload_under_way_is_in_the_statistics():
    net = shared_net()
    with net.aqm() as q:
        begun = time.time()
        traffic = net.start(4, *overload(4))
        time.sleep(1.5)
        first = q.stats()["overload_info"]
        time.sleep(1)
        second = q.stats()["overload_info"]
        expect_equal((first["now"], second["now"], second["count"]), (1, 1, 1), "now, count")
        expect_between(first["start_ns"] / 1e9 - begun, 0.1, 0.5, "begin, s after the load's")
        expect(abs(first["start_ns"] - second["start_ns"]) < MS, "start moved")
        expect_between((second["duration_ns"] - first["duration_ns"]) / 1e9, 0.98, 1.1, "more a second later, s")
        traffic.wait()
        time.sleep(3)
        third = q.stats()["overload_info"]
        time.sleep(1)
        expect_equal(q.stats()["overload_info"], third, "the last overload, when it is over")
        expect_equal(third["now"], 0, "now")


@each((0.6, 0.55), ("R40", "C18"), name=lambda load: f"{load * 200:.0f}_percent", needs="virtual_time ext")
def overload_at_its_edge_by_CASE_makes_one_report_a_period_at_most(load):
    net = shared_net()
    for period in (0.5, 2):
        with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=int(period * 1e6)) as q:
            traffic = net.start(12, *overload(10, load))
            reports = listener.take(15)
            traffic.wait()
            note(f"period {period}: {[(r['event'], r['count'], r['duration_ns'] / 1e9) for r in reports]}")
            times = [r["at"] for r in reports]
            expect(all(b - a > period - 0.01 for a, b in zip(times, times[1:])), f"reports at {times}")
            expect(reports or not q.stats()["overload_count"], "no report of an overload")
            if reports:
                expect_equal(reports[-1]["event"], "end", "the last report")
            info = q.stats()["overload_info"]
            expect_equal(info["reports"], len(reports), "reports by the statistics")
            ends = [r for r in reports if r["event"] == "end"]
            expect_equal(sum(r["count"] for r in ends), info["count"], "overloads in all reports of an end")
            expect_equal(sum(r["duration_ns"] for r in ends), info["total_ns"], "time in all reports of an end")


def flap(net, times, on=0.6, off=1.2):
    """Overloads one after the other: loads of 1.5 times the rate with pauses."""
    return [Stream(f"{name}{n}", ecn=ecn, bps=0.75 * R, start=n * (on + off), stop=n * (on + off) + on)
            for n in range(times) for name, ecn in (("c", NOT_ECT), ("l", ECT1))]


@test("R40", needs="virtual_time ext")
def overloads_that_flap_are_added_up_in_one_report_a_period():
    """Five in 9 s and a period of 4 s: what happens within it is in the report that ends it."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=4000000) as q:
        traffic = net.start(9.5, *flap(net, 5))
        reports = listener.take(20)
        traffic.wait()
        note([(r["event"], r["count"], r["duration_ns"] / 1e9) for r in reports])
        info = q.stats()["overload_info"]
        expect_equal(info["count"], 5, "overloads")
        times = [r["at"] for r in reports]
        expect(all(b - a > 3.99 for a, b in zip(times, times[1:])), f"reports at {times}")
        ends = [r for r in reports if r["event"] == "end"]
        expect_equal(sum(r["count"] for r in ends), 5, "overloads in all reports")
        expect_equal(sum(r["duration_ns"] for r in ends), info["total_ns"], "their time")
        expect(len(reports) <= 4, f"{len(reports)} reports")


@test("R39", needs="timed ext")
def overload_with_overload_report_0_is_not_reported_and_still_counted():
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=0) as q:
        net.traffic(1.5, *overload(1.5))
        time.sleep(3)
        expect_equal(listener.take(0.5), [], "reports")
        info = q.stats()["overload_info"]
        expect_equal((info["count"], info["now"], info["reports"]), (1, 0, 0), "count, now, reports")
        time.sleep(0.2)
        # What happened meanwhile is past when reports are switched on.
        q.change(overload_report=100000)
        net.traffic(0.2, Stream("l", ecn=ECT1, pps=100))
        expect_equal(listener.take(1), [], "reports of what is long past")
        net.traffic(1.5, *overload(1.5))
        reports = listener.take(3)
        expect_equal([(r["event"], r["count"]) for r in reports], [("begin", 1), ("end", 1)], "reports, switched on")


@test("R39", needs="timed ext")
def overload_is_heard_in_the_namespace_of_its_device_only_and_by_anybody_there():
    """Also by a process without privileges: a child as nobody listens and writes down what it hears."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as here, lib.overload_listener(net.rcv) as there, \
            lib.overload_listener(net.rtr) as too, nobody_listens(net.rtr) as nobody, net.aqm():
        net.traffic(1.5, *overload(1.5))
        reports = here.take(4)
        expect_equal([r["event"] for r in reports], ["begin", "end"], "reports in the device's namespace")
        expect_equal([r["event"] for r in too.take(0.1)], ["begin", "end"], "reports to a second listener")
        expect_equal(there.take(0.1), [], "reports in another namespace")
        expect_equal(nobody(), "begin end", "reports to a process without privileges")


def be_nobody():
    """Give up all privileges."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


@contextlib.contextmanager
def nobody_listens(netns):
    """A process of uid 65534 that listens until it is asked what it heard."""
    ask, answer = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        # Or it would wait for itself when a test fails and nobody asks.
        os.close(ask[1])
        os.close(answer[0])
        try:
            with lib.in_netns(netns):
                be_nobody()
                heard = "nothing"
                try:
                    listener = lib.OverloadListener(None)
                    os.write(answer[1], b"ready\n")
                    select.select([ask[0]], [], [])
                    heard = " ".join(r["event"] for r in listener.take(0.1))
                except OSError as error:
                    os.write(answer[1], b"ready\n")
                    heard = f"refused: {error.strerror}"
                os.write(answer[1], heard.encode())
        finally:
            os._exit(0)
    os.read(answer[0], 100)

    def result():
        os.write(ask[1], b"?")
        return os.read(answer[0], 1000).decode()

    try:
        yield result
    finally:
        for fd in (*ask, *answer):
            os.close(fd)
        os.waitpid(pid, 0)


@test("R39", needs="timed ext")
def overload_of_a_qdisc_in_another_namespace_than_the_first_is_heard_there():
    """The device moves to another namespace: from then on it is heard there.  A move deletes the qdisc, so that it is
    a new one.
    """
    net = shared_net()
    with contextlib.ExitStack() as stack:
        other = f"dpo{os.getpid()}"
        lib.quiet_netns(stack, other)
        here, there = (stack.enter_context(lib.overload_listener(name)) for name in (net.rtr, other))
        lib.run("ip link add m0 type dummy", net.rtr)
        lib.run(f"ip link set m0 netns {other}", net.rtr)
        lib.run("ip link set m0 up", other)
        lib.run("ip addr add 10.9.0.1/24 dev m0", other)
        lib.run("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev m0", other)
        lib.tc("qdisc add dev m0 root handle 1: tbf rate 1mbit burst 1514 limit 100000000", other)
        expect_equal(lib.tc_request(other, lib.RTM_NEWQDISC, lib.NLM_F_CREATE, "m0", "10:", "1:1", "dualpi2",
                                    pack(overload_report=100000, **HARSH)), (0, ""), "add")
        send_at_twice(other, "10.9.0.2", 1e6, 1)
        reports = there.take(3)
        expect_equal(reports[0]["event"] if reports else None, "begin", "first report in the device's namespace")
        expect_equal(here.take(0.1), [], "reports in the old one")
        with lib.in_netns(other):
            expect_equal(reports[0]["ifindex"], socket.if_nametoindex("m0"), "ifindex")


def send_at_twice(netns, to, rate, seconds):
    """Packets of 500 bytes at twice the rate."""
    with lib.in_netns(netns):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((to, 9))
    with sock:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(5):
                sock.send(b"o" * 458)
            time.sleep(5 * 500 * 8 / (2 * rate))


@test("R39", needs="virtual_time ext")
def overload_of_a_qdisc_that_is_deleted_is_reported_as_ended():
    """Whatever time has passed since the begin was reported: who heard of it hears of its end, once."""
    net = shared_net()
    for wait in (0, 0.05, 0.2, 0.9):
        with lib.overload_listener(net.rtr) as listener:
            with net.aqm(overload_report=500000) as q:
                traffic = net.start(1.2, *overload(1.2))
                expect_equal((listener.next(5) or {}).get("event"), "begin", "first report")
                time.sleep(wait)
                expect_equal(q.stats()["overload"], 1, "in overload")
                lib.tc("qdisc del dev down root", net.rtr)
                expect_equal([(r["event"], r["count"]) for r in listener.take(2)], [("end", 1)],
                             "reports after the qdisc is gone")
                traffic.kill()
                q.check = lambda: None


@test("R39")
def overload_of_a_namespace_that_ends_is_no_trouble():
    """With a report due and traffic queued."""
    for wait in (0.01, 0.3):
        with Tree("tbf", "1mbit", overload_report=100000, **HARSH) as tree:
            with lib.overload_listener(tree.netns) as listener:
                send_at_twice(tree.netns, "10.7.0.2", 1e6, 0.5)
                expect_equal((listener.next(5) or {}).get("event"), "begin", "first report")
                send_at_twice(tree.netns, "10.7.0.2", 1e6, wait)
                lib.run(["ip", "netns", "del", tree.netns])
    time.sleep(1.5)


@test("R39", needs="destructive ext")
def overload_listener_stays_when_the_module_goes_and_comes():
    """The module can be removed with a listener there, who is then silent; the family is gone with it."""
    module = "/sys/module/sch_dualpi2"
    with open(f"{module}/refcnt", encoding="ascii") as file:
        if file.read().strip() != "0":
            raise Failure("the module is in use before the test")
    with lib.overload_listener(None) as listener:
        lib.run("rmmod sch_dualpi2")
        with lib.Socket(None, lib.NETLINK_GENERIC) as sock:
            expect_equal(lib.genl_family(sock, "dualpi2"), (None, {}), "family without the module")
        expect_equal(listener.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0, "error of the listener")
        lib.load_module()
    with lib.overload_listener(None):
        pass


@each((0, 10, 25, 50, 90), ("R30", "R35"), name=lambda pct: f"{pct}_percent" if pct else "default",
      needs="virtual_time ext")
def overload_with_p_cmax_CASE_begins_there_in_both_queues(percent):
    """p' rises until both queues drop; what was sampled says at which p_C that is: the first p_C in overload is not
    below it, the last one before is.  One flag for both: from there on ECT is dropped in both.
    """
    net = shared_net()
    p_cmax = (percent or 25) / 100
    load = 0.75 if percent < 40 else 5 if percent == 90 else 1.5
    with net.aqm(p_cmax=percent) as q:
        result, samples = net.sampled(q, 3, Stream("c", ecn=ECT0, bps=load * R), Stream("l", ecn=ECT1, bps=load * R),
                                      every=0.005)
        first = next((n for n, st in enumerate(samples) if st["overload"]), None)
        expect(first, "no overload")
        before, after = samples[first - 1], samples[first]
        note(f"p_C {before['p_c']:.4f} before, {after['p_c']:.4f} in overload")
        expect(before["p_c"] < p_cmax <= after["p_c"], f"overload began between {before['p_c']} and {after['p_c']}")
        for name in "cl":
            expect_equal(before[name]["counters"]["ect_dropped_overload"], 0, f"{name}: dropped before it")
            expect(result[name].lost > 10, f"{name}: hardly a loss")
        # It ends at half of that.
        out = [st["p_c"] for st in samples[first:] if not st["overload"]]
        expect(all(p < p_cmax for p in out), f"out of overload at {out}")
        expect_equal(q.stats()["knobs"]["p_cmax"], percent, "p_cmax shown")


@test("R30", "R40", needs="virtual_time ext")
def overload_state_outlasts_the_shedding_by_8_updates():
    """What is dropped for overload goes by p_C alone; the state, for count and reports, ends when p_C has been below
    p_Cmax for 8 updates of 16 ms, and its end is when it fell.  1.5 times the rate, then 1.15 times of Not-ECT, which
    takes p_C from 1/3 to 0.13.
    """
    hold = 8 * 0.016
    net = shared_net()
    with net.aqm() as q:
        _, samples = net.sampled(q, 7, Stream("c", ecn=ECT0, bps=0.75 * R, stop=3),
                                 Stream("l", ecn=ECT1, bps=0.75 * R, stop=3),
                                 Stream("then", bps=1.05 * R, start=3), Stream("ect0", ecn=ECT0, bps=0.1 * R, start=3),
                                 every=0.002)
        after = [st for st in samples if st["at"] > 3]
        fell = 1 + max(n for n, st in enumerate(after) if st["p_c"] >= 1 / 4)
        ended = next(n for n, st in enumerate(after) if not st["overload"])
        note(f"p_C fell at {after[fell]['at']:.3f} s, the state ended at {after[ended]['at']:.3f} s")
        expect_between(after[ended]["at"] - after[fell]["at"], hold - 0.02, hold + 0.02, "the state lasted on, s")
        for kind in ("ect", "not_ect"):
            for queue in "cl":
                expect_equal(len({st[queue]["counters"][f"{kind}_dropped_overload"] for st in after[fell:]}), 1,
                             f"{queue}: numbers of {kind} dropped for overload since p_C fell")
        aqm = [st["c"]["counters"]["not_ect_dropped_aqm"] for st in after]
        expect(aqm[ended] > aqm[fell], "nothing was dropped below overload while the state lasted")
        info = q.stats()["overload_info"]
        begun = next(st["at"] for st in samples if st["overload"])
        expect_equal((info["count"], info["now"]), (1, 0), "count, now")
        expect_between(info["duration_ns"] / 1e9 - (after[fell]["at"] - begun), -0.02, 0.02,
                       "duration less that of what was seen, s")


# The tracepoint

TRACING = "/sys/kernel/tracing"
EVENT = f"{TRACING}/events/dualpi2/dualpi2_verdict"


@contextlib.contextmanager
def tracing(on=True):
    """The tracepoint switched on; yields a function that gives what was traced, a list of dicts."""
    if not os.path.exists(f"{TRACING}/trace"):
        if not os.path.isdir(TRACING):
            if lib.user_mode_linux():
                raise Skip("this user-mode Linux has no tracer; stock kernels run this test")
            raise Failure("the kernel has no tracer")
        lib.run(f"mount -t tracefs tracefs {TRACING}")
    expect(os.path.isdir(EVENT), f"no {EVENT}")

    def put(name, text):
        with open(name, "w", encoding="ascii") as file:
            file.write(text)

    def take():
        with open(f"{TRACING}/trace", encoding="ascii", errors="replace") as file:
            lines = [line.split("dualpi2_verdict: ", 1)[1] for line in file if "dualpi2_verdict: " in line]
        return [dict(word.split("=", 1) for word in line.split()) for line in lines]

    put(f"{TRACING}/buffer_size_kb", "16384")
    put(f"{TRACING}/trace", "")
    put(f"{EVENT}/enable", "1" if on else "0")
    try:
        yield take
    finally:
        put(f"{EVENT}/enable", "0")


@test("tracepoint", needs="destructive ext")
def tracepoint_format_has_the_fields_that_are_documented():
    with tracing(False):
        with open(f"{EVENT}/format", encoding="ascii") as file:
            text = file.read()
        for field in ("ifindex", "handle", "queue", "ecn", "profile", "len", "sojourn_ns", "p_q32", "p_c_q32",
                      "p_cl_q32", "verdict"):
            expect(f" {field};" in text, f"no field {field}: {text}")


@test("tracepoint", needs="destructive ext")
def tracepoint_switched_off_traces_nothing():
    net = shared_net()
    with tracing(False) as take, net.aqm():
        net.traffic(1, *overload(1))
        expect_equal(take(), [], "traced")


@test("tracepoint", needs="destructive ext")
def traced_drops_have_reasons_that_tell_aqm_overload_and_limit_apart():
    """What dropwatch shows, by skb:kfree_skb. Before 7.2 the kernel has one reason for all of them."""
    net = shared_net()
    event = f"{TRACING}/events/skb/kfree_skb/enable"
    loads = (({}, "dropped_aqm", [Stream("x", bps=1.2 * R)]),
             ({"p_cmax": 25}, "dropped_overload", [Stream("x", ecn=ECT1, bps=2 * R)]),
             ({"limit": 5}, "dropped_limit", [Stream("x", ecn=ECT1, bps=2 * R)]))
    reasons = {}
    with tracing(False):
        for knobs, cause, streams in loads:
            with net.aqm(**knobs) as q:
                with open(f"{TRACING}/trace", "w", encoding="ascii"), open(event, "w", encoding="ascii") as file:
                    file.write("1")
                net.traffic(3, *streams)
                with open(event, "w", encoding="ascii") as file:
                    file.write("0")
                q.until_idle()
                st = q.stats()
            with open(f"{TRACING}/trace", encoding="ascii", errors="replace") as file:
                seen = [line.rsplit("reason: ", 1)[1].strip() for line in file if "kfree_skb: " in line]
            dropped_here = st["c"][cause] + st["l"][cause]
            expect(dropped_here > 100, f"only {dropped_here} {cause}")
            reasons[cause] = max(set(seen), key=seen.count)
            note(f"{cause}: {dropped_here}, traced: { {reason: seen.count(reason) for reason in set(seen)} }")
            expect_equal(seen.count(reasons[cause]), st["drops"], f"packets with the reason {reasons[cause]}")
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    expect_equal(len(set(reasons.values())), 3 if release >= (7, 2) else 1, f"reasons {reasons}")
    expect(not any("NOT_SPECIFIED" in reason for reason in reasons.values()), f"no reason: {reasons}")


def traced_counts(events, **want):
    return sum(all(event.get(key) == value for key, value in want.items()) for event in events)


@test("tracepoint", needs="destructive ext")
def tracepoint_tells_every_decision_of_both_queues():
    """Overload and before, all codepoints: verdicts agree with the counters, delays with the histogram."""
    net = shared_net()
    with tracing() as take, net.aqm(rate=2e6) as q:
        streams = [Stream(name, ecn=ecn, bps=0.4e6 * 2, size=500 + 100 * ecn) for ecn, name in enumerate(CODEPOINTS)]
        result = net.traffic(4, *streams)
        q.until_idle()
        events = take()
        st = q.stats()
        note(events[:2])
        with lib.in_netns(net.rtr):
            index = socket.if_nametoindex("down")
        expect_equal({(event["ifindex"], event["handle"]) for event in events}, {(str(index), "10:")},
                     "ifindex and handle")
        for queue, n in counters(st).items():
            mine = [event for event in events if event["queue"].lower()[0] == queue]
            expect_equal(len(mine), n["presented"], f"{queue}: decisions")
            expect_equal(sum(int(event["len"]) for event in mine), n["presented_bytes"], f"{queue}: their bytes")
            for verdict, key in (("mark_classic", "marked_classic"), ("mark_native", "marked_native"),
                                 ("mark_coupled", "marked_coupled")):
                # A decision to mark is one also where the packet carries CE already.
                with_ce = traced_counts(mine, verdict=verdict, ecn=str(CE))
                expect_equal(traced_counts(mine, verdict=verdict) - with_ce, n[key], f"{queue}: {key}")
            for verdict, cause in (("drop_aqm", "aqm"), ("drop_overload", "overload")):
                expect_equal(traced_counts(mine, verdict=verdict), dropped(n, cause), f"{queue}: {verdict}")
            waits = [int(event["sojourn_ns"]) for event in mine if not event["verdict"].startswith("drop")]
            delay = st[queue]["delay"]
            expect_equal((len(waits), sum(waits), max(waits)), (n["forwarded"], delay["sum_ns"], delay["max_ns"]),
                         f"{queue}: packets, sum and maximum of their delays")
            hist = [0] * delay["buckets"]
            for wait in waits:
                hist[lib.bucket_of(delay, wait)] += 1
            expect_equal(hist, delay["hist"], f"{queue}: histogram")
        for ecn, name in enumerate(CODEPOINTS):
            seen = [event for event in events if event["ecn"] == str(ecn)]
            expect_equal(len(seen), result[name].sent_ever, f"decisions on {name}")
            expect_equal({event["queue"].lower()[0] for event in seen}, {QUEUE[ecn]}, f"queue of {name}")
            expect_equal({event["len"] for event in seen}, {str(500 + 100 * ecn)}, f"length of {name}")
        for event in events:
            p, p_c, p_cl = (int(event[key]) for key in ("p_q32", "p_c_q32", "p_cl_q32"))
            expect(abs(p * p / 2**32 - p_c) <= 1 and p_cl == min(2 * p, 2**32), f"probabilities of {event}")


# Bad readers

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
    """The kernel cuts off what does not fit, and says so; the next dump with room is whole."""
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
    """What listeners to rtnetlink are told of qdiscs: yields a function, (type, handle, kind) of each message."""
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
                if found[-1][2] == "dualpi2":
                    lib.parse_xstats(lib.attrs(one[lib.TCA_STATS2])[lib.TCA_STATS_APP])
                data = data[(length + 3) & ~3:]
            note(f"{size} bytes: {found}")
        return found

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
def reader_without_privileges_sees_all_and_changes_nothing():
    with Tree("htb", "2mbit", **CALM) as tree:
        for n in range(40):
            tree.mix.send(ECNS[n % 4], 500)
        tree.drain()
        ends = os.pipe()
        pid = os.fork()
        if not pid:
            said = "nothing"
            try:
                with open(f"/run/netns/{tree.netns}", encoding="ascii") as there:
                    lib.setns(there)
                be_nobody()
                lib.check_classes(None, "d0", "10:")
                answer = lib.tc_request(None, lib.RTM_NEWQDISC, 0, "d0", "10:", "1:10", "dualpi2", pack(limit=7))
                said = errno.errorcode.get(answer[0], "accepted")
            except (Failure, OSError) as error:
                said = str(error)
            finally:
                os.write(ends[1], said.encode())
                os._exit(0)
        os.waitpid(pid, 0)
        expect_equal(os.read(ends[0], 1000).decode(), "EPERM", "answer to a change by nobody")
        for end in ends:
            os.close(end)
        expect(tree.leaf()["knobs"]["limit"] != 7, "the limit was changed")
        tree.check_all()


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
