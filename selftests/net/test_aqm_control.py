#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock
"""The controller, the coupling, overload, and the signals they lead to.

Unresponsive streams take the place of TCP: with Classic traffic of c and L4S traffic of l times the link's rate R, the
queue stops growing only where the drops shed the excess. Below overload only Not-ECT is dropped, with p_C = (c + l - 1)
/ c, so that p' = sqrt(p_C) and p_CL = k p' follow. In overload everything is dropped alike: p_C = 1 - 1 / (c + l).

Figures "within 3 %" are the project's own bound for the steady state. A signal that is spaced evenly comes n p - 3/2 to
n p + 1/2 times in n packets (dualpi2_accumulate()), so that its own error is at most 2/n.
"""

import math
import os
import time

from lib import (CE, ECT0, ECT1, NOT_ECT, RANDOM, RECUR, Skip, Stream, expect, expect_between, expect_equal, main, note,
                 run, shared_aqm, shared_net, test)

R = 10e6        # bit/s
T_US = 800      # of one packet of 1000 bytes
TARGET_US = 15000
ALPHA = 41 / 256
BETA = 819 / 256
TUPDATE = 0.016
HOLD = 8 * TUPDATE      # overload is over when it has not come back for so long


def expect_near(got, want, what, part=0.03):
    """Within 3 %."""
    expect_between(got, want * (1 - part), want * (1 + part), what)


def mean(values):
    return sum(values) / len(values)


def sigma_of_mean(values):
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / len(values) / len(values))


def expect_steady(k, c, l, **knobs):
    """p_C and p_CL at the receiver and in the statistics."""
    p_c = (c + l - 1) / c
    p_cl = k * math.sqrt(p_c)
    with shared_aqm(coupling=k, **knobs) as (net, q):
        result, samples = net.sampled(q, 24, Stream("c", bps=c * R), Stream("l", ecn=ECT1, bps=l * R), warmup=14)
        one = result["l"]
        expect_equal(one.lost, 0, "loss of ECT(1)")
        expect_near(result["c"].loss, p_c, "loss of Not-ECT")
        expect_near(one.marked, p_cl, "marks of ECT(1)")
        expect_near(math.sqrt(mean([st["p_c"] for st in samples])), math.sqrt(p_c), "mean prob_c, root")
        expect_near(mean([st["p_cl"] for st in samples]), p_cl, "mean prob_cl")
        # The receiver and the statistics tell the same: the marks are spaced
        # evenly, so that only the sampling of p_CL leaves an error.
        shown = [st["p_cl"] for st in samples]
        slack = 2 / one.sent + 4 * sigma_of_mean(shown)
        expect_between(one.marked - mean(shown), -slack, slack, "marks less prob_cl")
        # In the beginning a hiccup of the machine may make a queue.
        expect_equal(samples[-1]["step_marks"] - samples[0]["step_marks"], 0, "native marks")
        return q.stats()


@test("R35", "R8", "R21", "R25")
def steady_state_k1_marks_with_the_root_of_the_drops():
    expect_steady(1, 0.8, 0.4)


@test("R20", "R8", "R21", "R25", "C10")
def steady_state_k2_marks_with_twice_the_root_of_the_drops():
    expect_steady(2, 0.8, 0.3)


@test("R35", "R8", "R21", "R25")
def steady_state_k4_marks_with_four_times_the_root_of_the_drops():
    expect_steady(4, 0.8, 0.225)


@test("R8")
def steady_state_with_drop_enqueue_is_the_same():
    st = expect_steady(2, 0.8, 0.3, drop_early=1)
    expect_equal(st["c"]["dropped_aqm"], 0, "drops at departure")
    expect(st["c"]["dropped_early"] > 0, "no drop on arrival")


@test("R9")
def steady_state_ect0_is_marked_as_often_as_not_ect_is_dropped():
    """Half of each. Marks do not shed load, so p_C = 0.1/0.55, and the drops are as many as balance the load. That a
    signal falls on the one or the other is at most as uneven as a coin.
    """
    p_c = 0.1 / 0.55
    with shared_aqm() as (net, q):
        result = net.traffic(26, Stream("not", bps=0.55 * R, jitter=1),
                             Stream("ect0", ecn=ECT0, bps=0.55 * R, jitter=1), warmup=12)
        expect_equal(result["ect0"].lost, 0, "loss of ECT(0)")
        signals = result["not"].lost + result["ect0"].ecn[CE]
        expect_near(result["not"].lost, p_c * result["not"].sent, "drops of Not-ECT")
        slack = 5 * math.sqrt(signals) / 2
        expect_between(result["not"].lost - signals / 2, -slack, slack, "drops less half the signals")
        expect_equal(q.stats()["c"]["marked_classic"], q.stats()["ecn_mark"], "marks in C")


@test("R33", "R5")
def steady_state_classic_delay_is_at_the_target():
    """The controller holds the age of the head at the target, and sees it when a
    packet is about to leave: within one packet of what each packet waits.
    """
    net = shared_net()
    for target_us in (TARGET_US, 5000):
        with net.aqm(target=target_us):
            one = net.traffic(16, Stream("c", bps=1.2 * R), warmup=8)["c"]
            expect_near(one.loss, 0.2 / 1.2, "loss")
            expect_between(one.delay_us["mean"], target_us - T_US, target_us + T_US, "mean delay, us")


@test("C16")
def c16_slow_link_classic_delay_is_at_the_target():
    """1 Mbit/s, where a packet takes 12 ms: the signal must not wait for three of them (36 ms).
    """
    packet_us = 1514 * 8
    net = shared_net()
    for drop_early in (0, 1):
        with net.aqm(rate=1e6, drop_early=drop_early):
            one = net.traffic(60, Stream("c", bps=1.2e6, size=1514), warmup=30)["c"]
            expect_between(one.delay_us["mean"], TARGET_US - packet_us, TARGET_US + packet_us,
                           f"mean delay, us, drop_early {drop_early}")


# Codepoints where they are not expected

@test("R18", "R29", "C4")
def c04_ect1_in_classic_is_marked_with_the_coupled_probability():
    with shared_aqm() as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:3")
        result = net.traffic(20, Stream("not", bps=0.8 * R), Stream("ect1", ecn=ECT1, bps=0.3 * R), warmup=12)
        st = q.stats()
        expect_equal(st["l"]["enqueued"], 0, "packets in L")
        expect_equal(result["ect1"].lost, 0, "loss of ECT(1)")
        expect_near(result["not"].loss, 0.125, "loss of Not-ECT")
        expect_near(result["ect1"].marked, 2 * math.sqrt(0.125), "marks of ECT(1)")
        expect_equal(st["c"]["marked_coupled"], st["ecn_mark"], "marks")


@test("R26", "C5")
def c05_ect0_in_l_is_marked_with_the_square():
    """(p_L/k)^2, which is p_C where the native marker is silent."""
    with shared_aqm() as (net, q):
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 classid 10:1")
        result = net.traffic(20, Stream("not", bps=0.8 * R), Stream("ect0", ecn=ECT0, bps=0.3 * R), warmup=12)
        st = q.stats()
        expect_equal(st["l"]["enqueued"], result["ect0"].sent_ever, "packets in L")
        expect_equal(result["ect0"].lost, 0, "loss of ECT(0)")
        expect_near(result["not"].loss, 0.125, "loss of Not-ECT in C")
        expect_near(result["ect0"].marked, 0.125, "marks of ECT(0) in L")


@test("R28", "C5")
def c05_not_ect_in_l_is_dropped_with_the_square():
    """Both are dropped then, so that p_C = 1 - 1/1.1."""
    with shared_aqm() as (net, q):
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 classid 10:1")
        result = net.traffic(20, Stream("c", bps=0.8 * R), Stream("l", bps=0.3 * R), warmup=12)
        expect_equal(q.stats()["l"]["enqueued"], result["l"].sent_ever, "packets in L")
        expect_near(result["c"].loss, 1 - 1 / 1.1, "loss in C")
        expect_near(result["l"].loss, 1 - 1 / 1.1, "loss in L")


@test("R28", "C5")
def c05_not_ect_in_l_beyond_the_step_is_not_all_dropped():
    """Bursts of 7 packets of 1250 bytes: numbers 3 to 6 wait for 1.8 ms and more (test_aqm_queues.py says why), and
    where one of them is dropped number 3 or 4 is, so that its successors still wait beyond the step. At (1/2)^2 that is
    a quarter of 30 to 40 packets in 10 bursts, spaced evenly.
    """
    with shared_aqm(ramp_us=0) as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:1")
        one = net.traffic(1, Stream("l", pps=70, burst=7, size=1250))["l"]
        expect_between(one.lost, 30 / 4 - 3 / 2, 40 / 4 + 1 / 2, "lost")
        expect_equal(q.stats()["l"]["dropped_aqm"], one.lost, "l: dropped_aqm")
        expect_equal(q.stats()["p"], 0, "p'")


@test("R27")
def l_unmarked_below_overload_is_left_alone():
    net = shared_net()
    for ecn in (NOT_ECT, ECT1):
        with net.aqm() as q:
            q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 classid 10:2")
            one = net.traffic(6, Stream("c", bps=0.8 * R), Stream("l", ecn=ecn, bps=0.3 * R))["l"]
            expect_equal(one.ecn[ecn], one.sent_ever, "packets that arrived as sent")
            expect(q.stats()["p"] > 0, "there was no pressure at all")
            expect_equal(q.stats()["l"]["enqueued"], one.sent_ever, "packets in L")


@test("R30", "C17")
def c17_l_unmarked_in_overload_is_dropped_alike():
    with shared_aqm() as (net, q):
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5001 classid 10:2")
        result = net.traffic(16, Stream("c", bps=0.75 * R), Stream("l", bps=0.75 * R), warmup=8)
        expect_near(result["c"].loss, 1 / 3, "loss in C")
        expect_near(result["l"].loss, 1 / 3, "loss in L")


# Overload

@test("R4", "R30")
def overload_both_queues_lose_alike_until_it_ends():
    """c = l = 0.75. p' rises to 0.577, so that p_CL is 1 and all that remains of L is marked. Then half the rate goes
    on arriving. Overload ends with the queue, or when p', which falls by the integral term alone, is below 1/2. That is
    known after HOLD, when it has not come back.
    """
    stop, end = 16, 22
    with shared_aqm() as (net, q):
        traffic = net.start(end, Stream("ect0", ecn=ECT0, bps=0.375 * R, stop=stop, jitter=1),
                            Stream("not", bps=0.375 * R, stop=stop, jitter=1),
                            Stream("ect1", ecn=ECT1, bps=0.75 * R, stop=stop),
                            Stream("later c", bps=0.25 * R, start=stop, trace=True),
                            Stream("later l", ecn=ECT1, bps=0.25 * R, start=stop, trace=True),
                            warmup=8)
        begun = time.monotonic()
        samples = []
        while time.monotonic() - begun < end:
            samples.append(q.stats() | {"at": time.monotonic()})
            time.sleep(0.02)
        result = traffic.wait()
        st = q.stats()

        c_sent = result["ect0"].sent + result["not"].sent
        c_lost = result["ect0"].lost + result["not"].lost
        expect_near(c_lost / c_sent, 1 / 3, "loss in C")
        expect_near(result["ect1"].loss, 1 / 3, "loss in L")
        # Whether a drop hits one or the other in C is at most as uneven as a coin.
        slack = 5 * math.sqrt(c_lost) / 2
        expect_between(result["ect0"].lost - c_lost / 2, -slack, slack, "drops of ECT(0) less half of those in C")
        expect_equal(result["ect0"].ecn[CE], 0, "marks of ECT(0) while it is dropped")
        expect_equal(result["ect1"].ecn[CE], result["ect1"].received, "ECT(1) that remained, CE")

        # What waited at the end, a target's length, is still dropped from, and the packets that came meanwhile.
        for name in ("later c", "later l"):
            last = max((sent for sent, delay, _ in result[name].records if delay is None), default=stop * 1e9)
            expect_between((last / 1e9 - stop) * 1000, 0, 2 * TARGET_US / 1000,
                           f"last loss of {name}, ms after the load's end")

        inside = [s["at"] for s in samples if s["overload"]]
        expect_equal(st["overload_count"], 1, "overloads")
        expect_equal(st["overload"], 0, "in overload at the end")
        step = max(b["at"] - a["at"] for a, b in zip(samples, samples[1:]))
        expect_between(st["overload_ns"] / 1e9, inside[-1] - inside[0] - HOLD - TUPDATE,
                       inside[-1] - inside[0] - HOLD + 2 * step, "overload_ns, s")
        # At the earliest when an update finds the queue empty; at the latest when p' has fallen to the edge, should
        # every update meet one of the packets that go on arriving.  Delays are off by one packet at most, each way.
        slope = ALPHA * TARGET_US / 1e6 / TUPDATE
        fall = (math.sqrt(1 / 3) - 1 / 2 - BETA * TARGET_US / 1e6) / slope
        slack = 2 * BETA * T_US / 1e6 / slope + 0.05
        expect_between(inside[-1] - begun - stop - HOLD, 0, fall * TARGET_US / (TARGET_US - T_US) + slack,
                       "overload after the load, s")


@test("R30", "C18")
def c18_overload_at_its_edge_begins_once_and_queues_stay_short():
    """c = l = 0.6: without shedding p_C would go to 1/3, with it to 1/6, on either side of the 1/4 where it begins.
    p_C stays at the edge, and packets are shed a part s of the time: C loses 1/4, and L 1/4 of s, such that
    0.2 R are lost in all.  To whoever counts overloads it is one.
    """
    with shared_aqm() as (net, q):
        result = net.traffic(20, Stream("c", bps=0.6 * R), Stream("l", ecn=ECT1, bps=0.6 * R, trace=True), warmup=12)
        st = q.stats()
        expect_equal(st["overload_count"], 1, "overloads")
        expect_between(st["overload_ns"] / 1e9, 14, 20, "time in overload, s")
        expect_near(result["c"].loss, 1 / 4, "loss in C")
        expect_near(result["c"].loss + result["l"].loss, 0.2 / 0.6, "loss in C and in L")
        expect_near(result["l"].marked, 1, "ECT(1) that remained, marked")
        # A state with a memory would let p_C, and L's delay with it, swing between the two.
        late = [delay / 1e6 for sent, delay, _ in result["l"].records if sent > 12e9 and delay is not None]
        expect_between(max(late), 0, 2 * TARGET_US / 1000, "maximum delay in L, ms")


@test("RFC 9332 4.2.3")
def overload_with_overflow_l_is_never_dropped_by_the_aqm():
    """p' stops at 1/k; delay grows instead, up to the limit of 100 packets."""
    with shared_aqm(drop_overload=0, limit=100, p_cmax=25) as (net, q):
        result, samples = net.sampled(q, 6, Stream("c", bps=0.75 * R), Stream("l", ecn=ECT1, bps=0.75 * R), warmup=3)
        st = q.stats()
        for name in ("dropped_aqm", "dropped_overload"):
            expect_equal(st["l"][name], 0, f"{name} of L")
        expect_equal(st["c"]["dropped_overload"], 0, "dropped_overload of C")
        expect_equal({s["p"] for s in samples}, {0.5}, "p'")
        expect_equal({round(s["p_cl"], 6) for s in samples}, {1.0}, "p_CL")
        expect_equal(st["maxq"], 100, "most packets queued")
        expect(st["c"]["dropped_limit"] + st["l"]["dropped_limit"] > 0, "nothing overflowed")
        expect_equal(result["l"].ecn[CE], result["l"].received, "L that remained, CE")


# Time

@test("C1")
def c01_stalled_link_takes_p_to_its_end():
    """A link that stands still for 400 ms with a backlog: the next update adds at least beta 0.4 s = 1.28. 32 bits that
    wrap would leave 0.28 and whatever the integral term adds.
    """
    with shared_aqm(shaper="tbf", bandwidth=12500000) as (net, q):
        traffic = net.start(3, Stream("c", bps=0.5 * R))
        time.sleep(1)
        expect_equal(q.stats()["p"], 0, "p' before")
        net.tbf_rate(8000)
        time.sleep(0.4)
        net.tbf_rate(R)
        highest = 0
        begun = time.monotonic()
        while time.monotonic() - begun < 0.1:
            highest = max(highest, q.stats()["p"])
            time.sleep(0.001)
        traffic.wait()
        expect_between(highest, 1 - 2**-31, 1, "p' after the stall")
        expect_equal(q.stats()["overload_count"], 1, "overloads")


@test("C1")
def c01_stall_that_ends_takes_p_back():
    """The fall of the delay is as steep as the rise was, and must not wrap either:
    after two updates without a queue p' is at most 1 - beta 0.4 s + ..., that is 0.
    """
    with shared_aqm(shaper="tbf") as (net, q):
        traffic = net.start(3, Stream("c", bps=0.5 * R))
        time.sleep(1)
        net.tbf_rate(8000)
        time.sleep(0.4)
        net.tbf_rate(R)
        time.sleep(0.5)
        expect_between(q.stats()["p"], 0, 0.01, "p' half a second after the stall")
        traffic.wait()
        expect_equal(q.stats()["overload"], 0, "in overload")


def raise_p(net):
    """Load until p' is about 0.45."""
    net.traffic(3, Stream("c", bps=1.25 * R))


def slope_of_idle():
    """How fast p' falls while nothing is queued, per second."""
    return ALPHA * TARGET_US / 1e6 / TUPDATE


@test("C12", "C13")
def c13_idle_p_falls_by_time_however_often_it_is_read():
    """Reading brings p' up to date.  Reads from 2 ms apart to 1 s apart show one
    line, since each update counts for the time it stands for.
    """
    with shared_aqm() as (net, q):
        raise_p(net)
        begun = time.monotonic()
        first = q.stats()["p"]
        expect(first > 0.15, f"p' is only {first} at the start")
        for gap in (0.002, 0.02, 0.1, 0.4):
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                time.sleep(gap)
                at = time.monotonic() - begun
                got = q.stats()["p"]
            # The last update is at most one period old, and so was the first one.
            slack = slope_of_idle() * (TUPDATE + 0.005)
            expect_between(got - max(0, first - at * slope_of_idle()), -slack, slack,
                           f"p' less the line, at {at:.2f} s, reads {gap} s apart")


@test("C12")
def c12_idle_p_falls_to_0_without_anybody_looking():
    with shared_aqm() as (net, q):
        raise_p(net)
        time.sleep(1 / slope_of_idle())
        st = q.stats()
        expect_equal((st["p"], st["p_c"], st["p_cl"]), (0, 0, 0), "probabilities")
        expect_equal((st["delay_c"], st["delay_l"]), (0, 0), "delays")
        # Nor does the first packet find an old p'.
        raise_p(net)
        time.sleep(1 / slope_of_idle())
        one = net.traffic(0.1, Stream("l", ecn=ECT1, pps=100, burst=3, count=3))["l"]
        expect_equal(one.ecn, [0, 3, 0, 0], "three packets at once after the idle time")


@test("C13")
def c13_sparse_traffic_p_moves_by_time_and_not_by_updates():
    """A standing queue of constant delay D on a link of 20 packets a second: an update only every 50 ms, and yet p'
    rises by alpha (D - target) / tupdate a second. Counted by updates it would be 16/50 of that. D is what the packets
    show; they are in class 2 so that none is lost.
    """
    alpha, target_us = 8, 100000
    with shared_aqm(rate=160000, alpha=alpha, target=target_us, p_cmax=100) as (net, q):
        q.filter("protocol all prio 1 matchall classid 10:2")
        traffic = net.start(6, Stream("first", pps=20, burst=5, count=5), Stream("then", pps=20, start=0.025), warmup=1)
        time.sleep(2)
        ends = []
        for _ in range(2):
            # Wait for an update: its moment is known to the gap between two reads.
            old = q.stats()["p"]
            while (new := q.stats()["p"]) == old:
                time.sleep(0.002)
            ends.append((time.monotonic(), new))
            time.sleep(2)
        delay_us = traffic.wait()["then"].delay_us
        note(f"delay {delay_us}")
        rise = (ends[1][1] - ends[0][1]) / (ends[1][0] - ends[0][0])
        low, high = (alpha / 256 * (delay_us[key] - target_us) / 1e6 / TUPDATE for key in ("min", "max"))
        # 3 ms per end of 2 s are 0.3 %; the delay includes 0.2 ms outside of the queue.
        expect(low > 0.05, "the delay is too short to tell")
        expect_between(rise, low * 0.98, high * 1.01, "p' per second")


# Signals

def gaps(records, is_signal):
    """Distances between signals, in packets."""
    found = [index for index, record in enumerate(records) if is_signal(record)]
    return [b - a for a, b in zip(found, found[1:])]


def variance(values):
    middle = mean(values)
    return sum((v - middle) ** 2 for v in values) / (len(values) - 1)


def signals(signal):
    """c = 0.95, l = 0.15: p_C = 2/19, p_CL = 0.649."""
    net = shared_net()
    with net.aqm(signal=signal):
        result = net.traffic(26, Stream("c", bps=0.95 * R, trace=True), Stream("l", ecn=ECT1, bps=0.15 * R), warmup=10)
        records = [r for r in result["c"].records if r[0] >= 10e9]
        return result, gaps(records, lambda record: record[1] is None)


@test("G6", "C15")
def c15_signal_recur_spaces_drops_evenly():
    """Two dithers of +-1/2 of 1/p, and packets as such: a variance of 1/6 of that
    of the geometric distribution; 1/3 leaves room for the movement of p'.
    """
    p_c = 0.1 / 0.95
    result, found = signals(RECUR)
    expect_near(result["c"].loss, p_c, "drops")
    expect_near(result["l"].marked, 2 * math.sqrt(p_c), "marks")
    expect_between(variance(found) / ((1 - p_c) / p_c**2), 0.05, 1 / 3, "variance of gaps / geometric")
    expect(max(found) <= 2 / p_c * 1.1 + 1, f"a gap of {max(found)} packets")


@test("C15")
def signal_random_makes_gaps_geometric():
    """The same means.  An estimate of the geometric variance from M gaps has a
    relative sigma of sqrt(8 / M), its kurtosis being 9.
    """
    p_c = 0.1 / 0.95
    result, found = signals(RANDOM)
    slack = 5 * math.sqrt(8 / len(found))
    expect_between(variance(found) / ((1 - p_c) / p_c**2), 1 - slack, 1 + slack, "variance of gaps / geometric")
    sent = result["c"].sent
    slack = 5 * math.sqrt(sent * p_c * (1 - p_c))
    expect_between(result["c"].lost - sent * p_c, -slack, slack, "drops less the expected")
    p_cl = 2 * math.sqrt(p_c)
    sent = result["l"].sent
    slack = 5 * math.sqrt(sent * p_cl * (1 - p_cl)) + 0.03 * sent * p_cl
    expect_between(result["l"].ecn[CE] - sent * p_cl, -slack, slack, "marks less the expected")


@test("C12")
def c12_idle_instances_start_no_timer():
    """100 of them for 4 s.  A timer each would start 25000 times; once each would
    be 100.  Starts are counted, and not interrupts: a kernel may tick anyway.
    """
    net = shared_net()
    without = timer_starts(4)
    net.idle_instances(100)
    try:
        time.sleep(1)
        expect_between(timer_starts(4) - without, -100, 99, "timer starts in 4 s, more than without")
        with open("/proc/timer_list", encoding="ascii") as file:
            expect("dualpi2" not in file.read(), "there is a timer of dualpi2")
    finally:
        net.idle_instances(0)


def timer_starts(seconds):
    """How often the kernel started a timer, of either kind, while nothing runs."""
    tracing = "/sys/kernel/tracing"
    if not os.path.exists(f"{tracing}/trace"):
        if not os.path.isdir(tracing):
            raise Skip("the kernel has no tracer")
        run(f"mount -t tracefs tracefs {tracing}")

    def put(name, text):
        with open(f"{tracing}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    events = ("events/timer/timer_start/enable", "events/timer/hrtimer_start/enable")
    put("buffer_size_kb", "16384")
    put("trace", "")
    for event in events:
        put(event, "1")
    try:
        time.sleep(seconds)
    finally:
        for event in events:
            put(event, "0")
    with open(f"{tracing}/trace", encoding="ascii", errors="replace") as file:
        return sum("timer_start:" in line for line in file)


if __name__ == "__main__":
    main(needs="virtual_time ext")
