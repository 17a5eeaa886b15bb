#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off
# suite: long kernel=stock
"""Counters of arrivals, departures, marks and drops, and the classes that show them.

Each number is compared with one that does not come from the qdisc: what the sender sent and what the receiver got.
lib.py's check_identities() and check_classes(), which every test ends with, compare the numbers with each other.

What tc prints of them is tested in selftests/tc.
"""
import contextlib
import errno
import os
import time

import lib
from lib import (CAUSES, CE, CODEPOINTS, ECT0, ECT1, NOT_ECT, Skip, Stream, dropped, each, expect, expect_equal, note,
                 pack, shared_aqm, shared_net, test)
from parents import CALM, ECNS, HARSH, Tree

R = 10e6        # bit/s
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
        size = {s: s.fields["size"] for s in mine}
        ecn = {s: s.fields["tos"] & 3 for s in mine}
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


def mixed_streams(pps=40, count=40, v6=True, **args):
    """One stream of each codepoint and family, no two of a size."""
    found = []
    for ecn in ECNS:
        for dst in ("10.2.0.1", "fd02::1") if v6 else ("10.2.0.1",):
            found.append(Stream(f"{CODEPOINTS[ecn]} {dst}", ecn=ecn, pps=pps, count=count,
                                size=200 + 50 * len(found), dst=dst, **args))
    return found


def by_codepoint(stream):
    return QUEUE[stream.fields["tos"] & 3]


@test("R36")
def counters_of_a_mix_count_each_codepoint_in_its_queue():
    with shared_aqm() as (net, q):
        streams = mixed_streams()
        result = net.traffic(1.5, *streams)
        q.until_idle()
        expect_counters(q.stats(), streams, result, by_codepoint)
        expect_equal([one.received for one in result.values()], [40] * 8, "received of each")


@each(("c", "l", "unmarked"), ("R36",))
def counters_of_a_mix_that_a_filter_sends_to_CASE_count_each_codepoint_there(name):
    with shared_aqm() as (net, q):
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
                    segments = sum(result[s.name].sent_ever for s in mine if s.fields["tos"] & 3 == number)
                    expect_equal(n[f"arrived_{name}"], segments // (1 if split else 10), f"{queue}: arrived_{name}")
                size = sum(result[s.name].sent_ever * s.fields["size"] for s in mine)
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
    with shared_aqm(rate=200000, **knobs, **CALM) as (net, q):
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
    with shared_aqm(drop_overload=0) as (net, q):
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
    with shared_aqm(l4s=0, drop_overload=0) as (net, q):
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
    with shared_aqm() as (net, q):
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
    with shared_aqm(drop_early=1, drop_overload=0) as (net, q):
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
    with shared_aqm(rate=200000, **CALM) as (net, q):
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
    with shared_aqm(rate=3e5, **CALM) as (net, q):
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
        shown = lib.tc("-s -d class show dev d0", tree.netns).stdout
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
        expect_equal([c["handle"] for c in classes], [":1", ":3"] * 2, "classes")
        for one in classes:
            st = lib.parse_xstats(one["app"])
            expect(("l" in st) == (one["handle"] == ":1") and ("c" in st) == (one["handle"] == ":3"),
                   f"statistics of {one['handle']}")
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
        for args in ("ip prio 1 flower ip_proto udp dst_port 9 classid 10:3", "ipv6 prio 2 matchall classid 10:1"):
            lib.tc(f"filter add dev d0 parent 10: protocol {args}", tree.netns)
        for _ in range(10):
            tree.mix.send(ECT1, 500)
            tree.mix.send(NOT_ECT, 500, v6=True)
        tree.check_all()
        st = tree.leaf()
        expect_equal((st["c"]["counters"]["arrived_ect1"], st["l"]["counters"]["arrived_not_ect"]), (10, 10),
                     "in C by v4, in L by v6")
        expect_equal([c["stats"]["packets"] for c in lib.class_dump(tree.netns, "d0", "10:")], [10, 10], "by class")


if __name__ == "__main__":
    # Where the traffic's receiver does not run for a second, packets are lost after the qdisc.
    lib.main(needs="timed ext")
