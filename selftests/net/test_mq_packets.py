#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=6.1,6.12,7.2
"""dualpi2_mq: packets of every class, GSO, drops, an idle link, another MTU. See test_mq.py for rate and options."""
import time

import lib
from lib import CE, ECT0, ECT1, Net, Stream, each, expect, expect_between, expect_equal, note, run, tc, test
from mq import QUEUES, Mq, MqNet, mq_net

RATE = 20e6
NQB = 45


def both(st, counter):
    """A counter of both queues together."""
    return st["c"]["counters"][counter] + st["l"]["counters"][counter]


@test()
def mq_both_classes_in_one_queue_share_it():
    """Classic keeps its tenth next to L4S that fills the link, small packets that are sent in advance included."""
    with Mq(mq_net(), [0, 0, 0], bandwidth=int(RATE / 8)) as q:
        run_ = q.net.traffic(3, Stream("c", bps=RATE), Stream("l", ecn=ECT1, bps=RATE),
                             Stream("small", ecn=ECT1, bps=1e6, size=100), warmup=1)
        share = run_["c"].received * 8000 / 2 / RATE
        note(f"Classic {share:.1%}, L4S marked {run_['l'].marked:.1%}")
        expect_between(share, .08, .5)
        expect(run_["l"].ecn[CE], "no L4S packet was marked")


@test()
def mq_small_l4s_packets_leave_before_classic_of_other_queues():
    with Mq(mq_net(), [0, 1], bandwidth=int(1e9 / 8)) as q:
        run_ = q.net.traffic(0.5, Stream("l", ecn=ECT1, pps=20000, size=60), Stream("c", bps=1.1e9, size=1514))
        note(f"L4S: longest {run_['l'].delay_us['max']} us")
        expect_equal(run_["l"].lost, 0)
        # A horizon of 48 us, half of it for the ticket of L4S, and the timer.
        expect_between(run_["l"].delay_us["max"], 0, 100)


@each({"dropped": {}, "dropped_or_marked_without_overload_drops": {"drop_overload": 0}})
def mq_nqb_is_CASE_in_l4s(case):
    knobs = {"dropped": {}, "dropped_or_marked_without_overload_drops": {"drop_overload": 0}}[case]
    with Mq(mq_net(), [0, 0], bandwidth=int(RATE / 8), **knobs) as q:
        run_ = q.net.traffic(3, Stream("n", dscp=NQB, bps=1.5 * RATE), Stream("e", ecn=ECT0, dscp=NQB, bps=1e6))
        st = q.stats()
        note(f"{st['l']['counters']}")
        expect(st["link"]["nqb_arrived"] and st["l"]["counters"]["not_ect_dropped_aqm"], "no NQB packet dropped")
        if knobs:
            expect(run_["e"].ecn[CE], "no ECT(0) NQB packet marked")


@test()
def mq_queue_protection_acts_in_each_queue():
    """One sender into a queue sends more than the rate; who sends into another queue is not redirected."""
    with Mq(mq_net(), [0, 1, 0, 0], bandwidth=int(RATE / 8), qprotect=1) as q:
        q.net.traffic(3, Stream("hostile", ecn=ECT1, bps=1.5 * RATE), Stream("honest", ecn=ECT1, bps=1e6, size=300),
                      Stream("n", dscp=NQB, bps=1e6, size=300), Stream("e", ecn=ECT0, dscp=NQB, bps=1e6, size=300))
        arrived = {child["parent"]: child["c"]["counters"]["arrived_ect1"] for child in q.children()}
        note(f"ECT(1) in the Classic queue of each child: {arrived}")
        expect(arrived.pop("10:1"), "nothing was redirected")
        expect_equal(set(arrived.values()), {0}, "redirected in other queues")


@test()
def mq_nqb_that_cannot_be_marked_is_protected_against():
    with Mq(mq_net(), [0], bandwidth=int(RATE / 8), qprotect=1) as q:
        q.net.traffic(3, Stream("n", dscp=NQB, bps=1.5 * RATE))
        st = q.stats()["qprotect"]
        note(f"{st}")
        expect(st["redirected"] > 0, "nothing was redirected")


@test()
def mq_ingress_charges_drops():
    """Forwarded packets keep two thirds of the rate at least."""
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8), ingress=1, limit=50) as q:
        q.net.start(3, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)))
        time.sleep(1)
        before, begun = both(q.stats(), "forwarded_bytes"), time.monotonic()
        time.sleep(2)
        after, seconds = both(q.stats(), "forwarded_bytes"), time.monotonic() - begun
        share = (after - before) * 8 / seconds / RATE
        note(f"{share:.1%} of the rate")
        expect_between(share, .66, .69)


@test()
def mq_gso_counts_as_its_segments():
    with MqNet(offloads=True) as net:
        for split in (1, 0):
            with Mq(net, range(QUEUES), bandwidth=int(RATE / 8), split_gso=split) as q:
                run_ = net.traffic(2, *(Stream(f"g{n}", ecn=n % 2, pps=50, gso=10) for n in range(QUEUES)))
                q.until_idle()
                expect_equal([one.lost for one in run_.values()], [0] * QUEUES, f"split {split}: lost")
                expect_equal(both(q.stats(), "forwarded"), sum(one.sent_ever for one in run_.values()) //
                             (1 if split else 10), f"split {split}: packets")


@test(needs="long timed ext")
def mq_idle_link_forgets_the_probability():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8)) as q:
        q.net.traffic(2, *(Stream(f"c{n}", bps=RATE) for n in range(QUEUES)))
        expect(q.stats()["p"] > .05, "no congestion")
        time.sleep(30)
        q.net.traffic(.1, Stream("c0", bps=1e6))
        expect_equal(q.stats()["p"], 0)


@test()
def mq_follows_the_mtu():
    with Mq(mq_net(), range(QUEUES), bandwidth=int(RATE / 8)) as q:
        try:
            for mtu in (1000, 1500):
                run(f"ip link set dev down mtu {mtu}", q.netns)
                run_ = q.net.traffic(1, *(Stream(f"c{n}", bps=RATE / 8, size=900) for n in range(QUEUES)))
                expect_equal([one.lost for one in run_.values()], [0] * QUEUES, f"MTU {mtu}: lost")
        finally:
            run("ip link set dev down mtu 1500", q.netns)


@test(needs="ext")
def mq_classes_of_many_queues_are_listed():
    """More than fit into one message."""
    with Net() as net:
        run("ip link add many numtxqueues 400 type dummy", net.rtr)
        run("ip link set dev many up", net.rtr)
        tc("qdisc add dev many root handle 10: dualpi2_mq bandwidth 1gbit", net.rtr)
        found = [one["handle"] for one in lib.class_dump(net.rtr, "many", 0x100000) if one["kind"] == "dualpi2_mq"]
        expect_equal(sorted(found), sorted(f"10:{n:x}" for n in range(1, 401)))


if __name__ == "__main__":
    lib.main(needs="timed ext")
