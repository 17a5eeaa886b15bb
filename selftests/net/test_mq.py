#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=6.1,6.12,7.2
"""dualpi2_mq: one rate, one controller and one set of limits over all transmit queues, on a veth with four of them.

A filter puts each stream into the transmit queue that its test says. The arithmetic of the shared clock is tested in
selftests/unit. Linux 5.10 has no filter that chooses the transmit queue.
"""
import time

import lib
from lib import (CE, ECT0, ECT1, NLM_F_CREATE, NLM_F_REPLACE, RTM_NEWQDISC, Net, Stream, each, expect, expect_between,
                 expect_equal, note, pack, run, tc, tc_request, test)
from mq import QUEUES, Mq, mq_net

RATE = 20e6
MTU_US = 1514 * 8 / RATE * 1e6


def rate_of(q, seconds, *streams):
    """What the root forwards from the second second on, bit/s, and the streams' results."""
    run_, samples = q.net.sampled(q, seconds, *streams, warmup=1, every=0.25)
    bits = [8 * sum(st[queue]["counters"]["forwarded_bytes"] for queue in ("c", "l"))
            for st in (samples[0], samples[-1])]
    return (bits[1] - bits[0]) / (samples[-1]["at"] - samples[0]["at"]), run_


# Streams that saturate the link: which queue each is in, and its rate.
LOADS = {
    "one_queue": [(0, RATE * 1.2)],
    "all_queues_alike": [(queue, RATE * .3) for queue in range(QUEUES)],
    "one_queue_others_5_percent": [(0, RATE * 1.2)] + [(queue, RATE * .05) for queue in range(1, QUEUES)],
    "two_in_one_queue": [(0, RATE * .4), (0, RATE * .4), (1, RATE * .4)],
}


@each(LOADS, needs="virtual_time ext")
def mq_CASE_sends_at_the_rate(load):
    with Mq(mq_net(), [queue for queue, _ in LOADS[load]], bandwidth=int(RATE / 8)) as q:
        bps, run_ = rate_of(q, 11, *(Stream(f"s{n}", bps=rate) for n, (_, rate) in enumerate(LOADS[load])))
        note(f"{load}: {bps / RATE:.5%} of the rate; "
             + ", ".join(f"{r.received * 8000 / 10e6:.2f} Mbit/s" for r in run_.values()))
        # Two horizons of 2.4 ms in a window of 10 s.
        expect_between(bps / RATE, .9995, 1.0005)


@test(needs="ext")
def mq_options_and_children_are_listed():
    with Mq(mq_net(), bandwidth=int(RATE / 8), coupling=3) as q:
        root = q.stats()
        expect_equal((root["knobs"]["bandwidth"], root["knobs"]["coupling"]), (int(RATE / 8), 3))
        expect_equal(sorted((child["parent"], child["knobs"]["bandwidth"], child["knobs"]["coupling"])
                            for child in q.children()), [(f"10:{n + 1}", int(RATE / 8), 3) for n in range(QUEUES)])
        q.change(coupling=4)
        expect_equal({child["knobs"]["coupling"] for child in q.children()} | {q.stats()["knobs"]["coupling"]}, {4})


@test(needs="ext")
def mq_is_refused_below_another_qdisc():
    net = mq_net()
    tc("qdisc add dev down root handle 1: prio", net.rtr)
    try:
        error, text = tc_request(net.rtr, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, "down", "10:", "1:1",
                                 "dualpi2_mq")
        expect(error and "must be the root qdisc" in text, f"{error}: {text}")
    finally:
        tc("qdisc del dev down root", net.rtr)


@test(needs="ext")
def mq_child_replacement_and_change_are_refused():
    with Mq(mq_net(), bandwidth=int(RATE / 8)) as q:
        error, text = tc_request(q.netns, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, "down", "20:", "10:1", "pfifo")
        expect(error and "cannot be replaced" in text, f"graft: {error}: {text}")
        expect(tc_request(q.netns, RTM_NEWQDISC, 0, "down", 0, "10:1", "dualpi2", pack(coupling=5))[0], "change")
        expect_equal({child["knobs"]["coupling"] for child in q.children()}, {2})


@test()
def mq_l4s_does_not_wait_for_classic_in_other_queues():
    """Classic in three queues saturates the link, L4S is in the fourth."""
    with Mq(mq_net(), [0, 1, 2, 3], bandwidth=int(RATE / 8)) as q:
        _, run_ = rate_of(q, 4, Stream("l", ecn=ECT1, bps=RATE / 20, jitter=1),
                          *(Stream(f"c{n}", bps=RATE / 2) for n in range(3)))
        note(f"L4S: P99 {run_['l'].delay_us['p99']} us; Classic: mean {run_['c1'].delay_us['mean']} us")
        expect_equal(run_["l"].lost, 0)
        # The serialization time of its own packets before it, of which jitter makes two.
        expect_between(run_["l"].delay_us["max"], 0, 2 * MTU_US)


@test()
def mq_probability_is_the_same_in_all_children():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8)) as q:
        running = q.net.start(4, *(Stream(f"c{n}", bps=RATE / 3) for n in range(QUEUES)))
        time.sleep(3)
        root, children = q.stats(), q.children()
        running.wait()
        expect(root["p"] > 0, "no congestion")
        # All took over the same update, or two of them the one before.
        expect(len({child["p"] for child in children} | {root["p"]}) <= 2, f"{root['p']}: {[c['p'] for c in children]}")


@each((0, 1), name=lambda early: "at_enqueue" if early else "at_dequeue")
def mq_classic_in_one_queue_gets_signals_CASE_for_the_delay_of_all(early):
    """A queue with little backlog of its own is not low while others have a backlog."""
    with Mq(mq_net(), [0, 1], bandwidth=int(RATE / 8), drop_early=early) as q:
        _, run_ = rate_of(q, 6, Stream("big", bps=RATE), Stream("small", ecn=ECT0, bps=RATE / 40))
        expect(run_["small"].ecn[CE] > 0, f"no mark of {run_['small'].received}; p {q.stats()['p']}")


@test(needs="virtual_time ext")
def mq_limit_is_that_of_all_queues():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8), limit=200, target=1000000) as q:
        _, samples = q.net.sampled(q, 4, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)), warmup=1)
        longest = max(st["qlen"] for st in samples)
        note(f"at most {longest} packets")
        # Each queue may be ahead by a packet.
        expect_between(longest, 150, 200 + QUEUES)
        expect(samples[-1]["c"]["counters"]["not_ect_dropped_limit"] > 0, "no drop")


@test(needs="virtual_time ext")
def mq_overload_is_reported_for_all_or_for_each_queue():
    """Without bandwidth each queue has a p' of its own, which starts from that of all."""
    net = mq_net()
    with lib.overload_listener(net.rtr) as listener, Mq(net, [1, 2, 3], bandwidth=int(RATE / 8)) as q:
        running = net.start(4, *(Stream(f"c{n}", bps=4 * RATE) for n in range(3)))
        of_all = listener.take(2)
        q.change(bandwidth=0)
        time.sleep(.1)
        of_first = []
        for _ in range(20):
            # They step at moments of their own, so within a period another one is the highest.
            time.sleep(.001)
            highest, (first, *others) = q.stats()["p"], (child["p"] for child in q.children())
            expect_equal(highest, max(first, *others), "p'")
            of_first.append(first == highest)
        expect(not all(of_first), "the first child always had the highest p'")
        of_each = listener.take(10)
        running.wait()
        for report in of_all + of_each:
            note(report)
        expect_equal([(one["event"], one["handle"], one["parent"]) for one in of_all],
                     [("begin", 0x100000, 0xffffffff)])
        expect_equal({one["handle"] for one in of_each}, {0x100000})
        for event in ("begin", "end"):
            expect_equal({one["parent"] for one in of_each if one["event"] == event} - {0x100001},
                         {0x100002, 0x100003, 0x100004}, event)
        root, children = q.stats(), q.children()
        for name in ("overload_count", "overload_ns"):
            expect_equal(root[name], sum(child[name] for child in children), name)
        expect_equal(root["overload_info"]["reports"], len(of_all + of_each), "reports")


@test()
def mq_throttled_counts_each_wait_once():
    with Mq(mq_net(), [0], bandwidth=int(RATE / 8)) as q:
        q.net.traffic(2, Stream("c", bps=2 * RATE))
        st = q.stats()
        expect_between(st["link"]["throttled"], 1, st["c"]["counters"]["forwarded"])


@test()
def mq_without_bandwidth_passes_everything():
    with Mq(mq_net(), range(QUEUES)) as q:
        run_ = q.net.traffic(2, *(Stream(f"s{n}", bps=RATE) for n in range(QUEUES)))
        expect_equal([result.lost for result in run_.values()], [0] * QUEUES)


@test(needs="virtual_time ext")
def mq_rate_changes_at_once_in_all_queues():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 80)) as q:
        running = q.net.start(7, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)))
        time.sleep(2)
        for bps in (RATE, 0, RATE / 2):
            q.change(bandwidth=int(bps / 8))
            time.sleep(.2)
            before, begun = q.stats(), time.monotonic()
            time.sleep(1)
            after, seconds = q.stats(), time.monotonic() - begun
            if bps:
                got = 8 * (after["c"]["counters"]["forwarded_bytes"] - before["c"]["counters"]["forwarded_bytes"])
                expect_between(got / seconds / bps, .998, 1.002, f"{bps:.0f}")
        running.wait()


@test()
def mq_link_down_with_a_backlog_purges_and_goes_on():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8)) as q:
        q.was_reset = True
        running = q.net.start(4, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)))
        time.sleep(1)
        run("ip link set dev down down", q.netns)
        expect_equal(q.stats()["qlen"], 0)
        run("ip link set dev down up", q.netns)
        running.wait()
        expect(q.stats()["c"]["counters"]["not_ect_dropped_purge"] > 0, "nothing was purged")


@test(needs="destructive ext")
def mq_is_refused_as_default_qdisc():
    """The core would not attach its children to a device with one queue. The same device takes dualpi2."""
    path = "/proc/sys/net/core/default_qdisc"
    with open(path, encoding="ascii") as file:
        before = file.read()
    net = mq_net()
    run("modprobe ifb numifbs=0")
    try:
        for kind in ("dualpi2", "dualpi2_mq"):
            with open(path, "w", encoding="ascii") as file:
                file.write(kind)
            run("ip link add one type ifb", net.rtr)
            run("ip link set dev one up", net.rtr)
            shown = tc("qdisc show dev one", net.rtr).stdout
            note(f"{kind}: {shown}")
            expect_equal(f"qdisc {kind} " in shown, kind == "dualpi2", f"{kind} attached")
            run("ip link del one", net.rtr)
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)
        run("ip link del one", net.rtr, check=False)


@test()
def mq_limits_end_with_the_bandwidth():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8), limit=40, target=1000000) as q:
        q.net.traffic(1, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)))
        expect(all(child["knobs"]["limit"] < 40 for child in q.children()), "each child has a part of the limit")
        q.change(bandwidth=0)
        expect_equal([child["knobs"]["limit"] for child in q.children()], [40] * QUEUES)


@test(needs="ext")
def mq_fewer_queues_hide_their_children():
    with Mq(mq_net(), bandwidth=int(RATE / 8)) as q:
        try:
            run("ethtool -L down tx 2", q.netns)
            expect_equal(sorted(child["parent"] for child in q.children()), ["10:1", "10:2"])
        finally:
            run(f"ethtool -L down tx {QUEUES}", q.netns)
        expect_equal(len(q.children()), QUEUES)


@test(needs="virtual_time ext")
def mq_of_one_queue_is_accepted():
    with Net() as net, Mq(net, [0], bandwidth=int(RATE / 8)) as q:
        bps, _ = rate_of(q, 6, Stream("c", bps=2 * RATE))
        # Two horizons of 2.4 ms in a window of 5 s.
        expect_between(bps / RATE, .999, 1.001)
        expect_equal(len(q.children()), 1)


if __name__ == "__main__":
    lib.main(needs="timed ext")
