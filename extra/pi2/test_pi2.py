#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=stock
"""
test_pi2.py - the qdisc pi2: its probabilities and their caps, the delay that TCP gets, its accounts.

The arithmetic alone is tested by unit/test_pi2.c. Open-loop streams see fixed probabilities, because p' stands still
while the next update is four seconds away.
"""

import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_extra import Bulk

import lib
from lib import CE, CODEPOINTS, ECT0, Net, Stream, each, expect, expect_between, expect_equal, run, tc, test
from lib_pi2 import DEFAULTS, RANDOM, LONGEST_US, ECN_OF, RISING, AT_CAP, CALM, encode, total, check_accounts, Pi2, new

# Probabilities

def freeze(q, want):
    """Have p' rise to about this under overload, and stand still for four seconds."""
    q.set(**RISING)
    for _ in range(3000):
        if q.stats()["p"] >= want:
            break
        time.sleep(0.01)
    q.set(tupdate=LONGEST_US)
    p = q.stats()["p"]
    expect_between(p, want, want + 0.03, "p' when it was stopped")
    return p


def measured(q, seconds):
    """What is counted in this time, during which p' does not change."""
    before = q.stats()
    time.sleep(seconds)
    after = q.stats()
    expect_equal(after["prob"], before["prob"], "p' before and after")
    expect(after["packets"] > 100 < before["packets"], "the queue is never short")
    return new(after, before), after


def law(knobs, want, streams=("not_ect", "ect1", "ect0", "ce")):
    """Signals of open-loop streams at one p': how often each kind gets one."""
    k, power = knobs.get("coupling", 2), 1 + knobs.get("square", 1)
    with Net() as net, Pi2(net, rate=20e6, **({"limit": 1000000} | knobs)) as q:
        net.start(60, *(Stream(name, ecn=ECN_OF[name], bps=24e6 / len(streams)) for name in streams))
        p = freeze(q, want)
        n, st = measured(q, 3.5)
        expect_between(st["p_s"], k * p - 1e-6, k * p + 1e-6, "p_s")
        expect_between(st["p_c"], p**power - 1e-6, p**power + 1e-6, "p_c")
        return p, n


def close(signals, packets, p, what):
    """Within five standard deviations of independent signals, and two signals."""
    slack = 5 * math.sqrt(packets * p * (1 - min(p, 1))) + 2
    expect(packets > 1000, f"{packets} packets")
    expect_between(signals, packets * p - slack, packets * p + slack, what)


@each((0.05, 0.15, 0.35, 0.47), name=lambda p: f"{p * 100:.0f}_percent")
def law_at_p_CASE_marks_scalable_with_k_p_and_classic_with_its_square(want):
    p, n = law({}, want)
    not_ect, ect0, ect1 = n["not_ect"], n["ect0"], n["ect1"]
    close(ect1["marked"], ect1["forwarded"], 2 * p, "marks of ECT(1)")
    close(ect0["marked"], ect0["forwarded"], p * p, "marks of ECT(0)")
    came = not_ect["forwarded"] + not_ect["dropped_aqm"]
    close(not_ect["dropped_aqm"], came, p * p, "drops of Not-ECT")
    # Evenly spaced: over each stream of signals, never more than two away.
    expect_between(ect1["marked"], 2 * p * ect1["forwarded"] - 2, 2 * p * ect1["forwarded"] + 2, "marks of ECT(1)")
    classic = (came + ect0["forwarded"]) * p * p
    expect_between(not_ect["dropped_aqm"] + ect0["marked"], classic - 2, classic + 2, "Classic signals")
    expect_equal((n["ce"]["marked"], n["ce"]["dropped_aqm"]), (0, 0), "signals of CE")
    expect(n["ce"]["forwarded"] > 1000, "CE goes through")


@test()
def law_with_random_signals_is_the_same():
    off = []
    for _ in range(3):
        p, n = law({"signal": RANDOM}, 0.3)
        came = n["not_ect"]["forwarded"] + n["not_ect"]["dropped_aqm"]
        close(n["ect1"]["marked"], n["ect1"]["forwarded"], 2 * p, "marks of ECT(1)")
        close(n["ect0"]["marked"], n["ect0"]["forwarded"], p * p, "marks of ECT(0)")
        close(n["not_ect"]["dropped_aqm"], came, p * p, "drops of Not-ECT")
        off += [abs(n["ect1"]["marked"] - 2 * p * n["ect1"]["forwarded"]),
                abs(n["ect0"]["marked"] + n["not_ect"]["dropped_aqm"] - p * p * (came + n["ect0"]["forwarded"]))]
        # Not evenly spaced. By chance one turn in 350 looks as if they were.
        if max(off) > 2:
            break
    expect(max(off) > 2, f"random signals are {off} away from their number")


@each((1, 4), name=lambda k: f"k_{k}")
def law_with_CASE_follows_the_factor(k):
    p, n = law({"coupling": k}, 0.2)
    close(n["ect1"]["marked"], n["ect1"]["forwarded"], k * p, "marks of ECT(1)")
    close(n["ect0"]["marked"], n["ect0"]["forwarded"], p * p, "marks of ECT(0)")


@each((1, 2), name=lambda k: f"k_{k}")
def law_without_the_square_and_CASE_is_linear(k):
    p, n = law({"coupling": k, "square": 0}, 0.3)
    came = n["not_ect"]["forwarded"] + n["not_ect"]["dropped_aqm"]
    close(n["ect1"]["marked"], n["ect1"]["forwarded"], k * p, "marks of ECT(1)")
    close(n["ect0"]["marked"], n["ect0"]["forwarded"], p, "marks of ECT(0)")
    close(n["not_ect"]["dropped_aqm"], came, p, "drops of Not-ECT")


@test()
def law_changes_with_the_square_at_once():
    with Net() as net, Pi2(net, rate=40e6, limit=1000000) as q:
        net.start(20, Stream("all", ecn=ECT0, bps=48e6))
        p = freeze(q, 0.3)
        for square in (0, 1, 0):
            q.set(square=square)
            expect_between(q.stats()["p_c"], p**(1 + square) - 1e-6, p**(1 + square) + 1e-6, f"p_c, square {square}")


@test()
def law_with_noecn_drops_ect0_and_still_marks_ect1():
    p, n = law({"ecn": 0}, 0.4)
    came = n["ect0"]["forwarded"] + n["ect0"]["dropped_aqm"]
    close(n["ect0"]["dropped_aqm"], came, p * p, "drops of ECT(0)")
    expect_equal(n["ect0"]["marked"], 0, "marks of ECT(0)")
    close(n["ect1"]["marked"], n["ect1"]["forwarded"], 2 * p, "marks of ECT(1)")


@test()
def law_marks_come_out_as_ce_and_nothing_else_changes():
    """What the receiver sees, of each codepoint, with the p' of a whole run."""
    streams = [Stream(name, ecn=ECN_OF[name], bps=3e6, dscp=40) for name in CODEPOINTS]
    with Net() as net, Pi2(net, limit=1000000, **RISING) as q:
        result = net.traffic(12, *streams)
        q.until_idle()
        st = q.stats()
        for name in CODEPOINTS:
            got, n = result[name], st[name]
            expect_equal(got.dscp_changed, 0, f"{name}: DSCPs changed")
            want = [0] * 4
            want[CE] = n["marked"]
            want[ECN_OF[name]] += n["forwarded"] - n["marked"]
            expect_equal(got.ecn, want, f"{name}: codepoints at the receiver")
            expect_equal(n["arrived"], got.sent_ever, f"{name}: arrived and sent")
            expect_equal(got.lost, n["dropped_aqm"] + n["dropped_limit"], f"{name}: lost and dropped")
        expect(st["ect1"]["marked"] > 100 < st["ect0"]["marked"] and st["not_ect"]["dropped_aqm"] > 100,
               f"there were signals: {st}")


@test()
def no_signal_while_less_than_two_packets_of_full_size_wait():
    """At the cap, one packet of 1514 bytes after the other, each gone before the next."""
    with Net() as net, Pi2(net, limit=100, **RISING) as q:
        net.traffic(5, Stream("flood", bps=20e6))
        q.until_idle()
        before = q.stats()
        # With this target nothing makes p' fall.
        expect(before["p"] > 0.4, f"p' is {before['p']}")
        result = net.traffic(5, *(Stream(name, ecn=ECN_OF[name], pps=50, size=1514, start=0.005 * number)
                                  for number, name in enumerate(CODEPOINTS)))
        q.until_idle()
        st = q.stats()
        n = new(st, before)
        expect_equal([(c["forwarded"] > 200, c["marked"], c["dropped_aqm"]) for c in n.values()], [(True, 0, 0)] * 4,
                     "forwarded, signals")
        expect_equal([result[name].lost for name in CODEPOINTS], [0] * 4, "lost")
        expect(st["p"] > 0.4, f"p' is {st['p']}")


# Caps

@each(((1, 1), (2, 1), (4, 1), (2, 0)), name=lambda case: f"k_{case[0]}" + ("" if case[1] else "_no_square"))
def cap_with_CASE_holds_under_unresponsive_overload_and_the_limit_takes_over(case):
    """Three times the link's rate: far more than the caps can hold back, but with k = 1, where all is dropped."""
    k, square = case
    p_c = 1 / k**(1 + square)
    names = ("ect1", "ect0", "ce") if k == 1 else CODEPOINTS
    with Net() as net, Pi2(net, limit=500, coupling=k, tupdate=4000, square=square) as q:
        net.start(100, *(Stream(name, ecn=ECN_OF[name], bps=30e6 / len(names), jitter=2) for name in names))
        for _ in range(3000):
            if q.stats()["capped"]:
                break
            time.sleep(0.01)
        time.sleep(1)
        before = q.stats()
        time.sleep(10)
        st = q.stats()
        n = new(st, before)
        expect_between(st["p"], 1 / k - 1e-9, 1 / k + 1e-9, "p'")
        expect_between(st["p_c"], p_c - 1e-8, p_c + 1e-8, "p_c")
        expect_equal(st["prob_scalable"], 2**32 - 1, "p_s")
        expect_equal(n["ect1"]["marked"], n["ect1"]["forwarded"], "marks of ECT(1), forwarded")
        close(n["ect0"]["marked"], n["ect0"]["forwarded"], p_c, "marks of ECT(0)")
        if k > 1:
            came = n["not_ect"]["forwarded"] + n["not_ect"]["dropped_aqm"]
            close(n["not_ect"]["dropped_aqm"], came, p_c, "drops of Not-ECT")
        for name in names:
            expect(n[name]["dropped_limit"] > 1000, f"{name}: tail drop takes over, {n[name]}")
        expect_between(st["packets"], 480, 500, "packets in the queue")
        expect_equal(st["max_packets"], 500, "most packets ever")
        expect_equal((st["capped"], st["capped_count"]), (1, before["capped_count"]), "capped, times")
        expect_between((st["capped_ns"] - before["capped_ns"]) / 1e9, 9.5, 10.5, "time at the caps in 10 s")
        expect_between(total(st, "forwarded") - total(before, "forwarded"), 11500, 13000, "forwarded in 10 s")


@each((0, 1), name=lambda early: ("drop_dequeue", "drop_enqueue")[early])
def cap_of_k_1_lets_drops_hold_unresponsive_overload_with_CASE(early):
    """Three times the link's rate, Not-ECT: p_c is 2/3, where k = 2 has 1/4 and a full queue. The estimate of the delay
    counts all that is queued, and with drop_dequeue two thirds of that are never sent.
    """
    with Net() as net, Pi2(net, limit=2000, coupling=1, drop_enqueue=early) as q:
        net.start(25, Stream("flood", bps=30e6))
        time.sleep(10)
        before = q.stats()
        time.sleep(10)
        st = q.stats()
        n = new(st, before)["not_ect"]
        expect_between(n["dropped_aqm"] / n["arrived"], 0.64, 0.7, "dropped by the AQM")
        expect_between(st["p_c"], 0.6, 0.75, "p_c")
        expect_equal((n["dropped_limit"], st["capped"]), (0, 0), "drops by the limit, capped")
        delay = (st["delay_sum_ns"] - before["delay_sum_ns"]) / n["forwarded"] / 1e6
        expect_between(delay / (1 if early else 1 / 3), 16, 23, "mean delay that the controller sees, ms, of 20")


@test()
def cap_ends_when_the_overload_does():
    with Net() as net, Pi2(net, limit=500) as q:
        net.traffic(5, Stream("flood", bps=30e6))
        q.until_idle()
        # The first estimates of the delay may be off: it may be there twice.
        times = q.stats()["capped_count"]
        expect_between(times, 1, 2, "times at the caps")
        time.sleep(10)
        st = q.stats()
        expect_equal((st["capped"], st["prob"], st["capped_count"]), (0, 0, times), "capped, p', times after 10 s")
        expect_between(st["capped_ns"] / 1e9, 4, 5.5, "time at the caps, of 5 s and 500 packets")


@test()
def drops_of_one_dequeue_are_at_most_64():
    """With k = 1 and p' of 1 all of Not-ECT is to go: one of 65 is let through, and the last one."""
    with Net() as net, Pi2(net, rate=100e3, limit=10000, **CALM) as q:
        load = net.start(40, Stream("pile", pps=10000, size=200, count=1301))
        time.sleep(1)
        waiting = q.stats()["packets"]
        expect(waiting > 1000, f"{waiting} packets wait")
        before = q.stats()
        q.set(coupling=1, **AT_CAP)
        load.wait()
        q.until_idle()
        n = new(q.stats(), before)["not_ect"]
        expect_equal(n["forwarded"] + n["dropped_aqm"], waiting, "forwarded and dropped")
        # The last ones are too few for a signal: less than two packets of full size.
        low = 2 * 1514 // 200
        expect_between(n["forwarded"], (waiting - low) // 65, waiting // 65 + low + 1, "forwarded")


# drop_enqueue

PILE = 300


def pile(net, *more, **streams):
    """Start so many packets of each codepoint, and more streams; at 100 kbit/s they wait."""
    first = [Stream(name, ecn=ecn, pps=2000, size=200, count=PILE) for name, ecn in streams.items()]
    load = net.start(30, *first, *more)
    time.sleep(1)
    return load


@test()
def drop_enqueue_decides_on_arrival():
    """No signal for the first ones, which came with p' = 0, and all for those that come while it is 1."""
    second = [Stream(name, ecn=ECN_OF[name], pps=2000, size=200, count=PILE, start=2) for name in CODEPOINTS]
    with Net() as net, Pi2(net, rate=100e3, coupling=1, drop_enqueue=1, **CALM) as q:
        load = pile(net, *second, first=ECT0)
        q.set(**AT_CAP)
        time.sleep(0.1)
        before = q.stats()
        expect(before["packets"] > PILE / 2 and before["p"] > 0.999, f"packets wait, p' is 1: {before}")
        time.sleep(1.2)
        n = new(q.stats(), before)
        # Before any of them could leave.
        expect_equal((n["not_ect"]["dropped_aqm"], n["ect0"]["marked"], n["ect1"]["forwarded"]), (PILE, 0, 0),
                     "dropped on arrival, marked, forwarded")
        result = load.wait()
        q.until_idle()
        st = q.stats()
        check_accounts(st)
        expect_equal((result["first"].ecn[ECT0], result["first"].ecn[CE]), (PILE, 0), "codepoints of the first ones")
        expect_equal([result[name].ecn[CE] for name in CODEPOINTS], [0, PILE, PILE, PILE], "CE at the receiver")
        expect_equal([st[name]["marked"] for name in CODEPOINTS], [0, PILE, PILE, 0], "marked")
        expect_equal((result["not_ect"].lost, total(st, "dropped_aqm"), total(st, "dropped_limit")), (PILE, PILE, 0),
                     "lost, dropped")


@each((0, 1), name=lambda early: ("off", "on")[early])
def drop_enqueue_turned_CASE_gives_each_packet_one_decision(early):
    """Turned off: packets that were decided on arrival, with p' = 0, leave as they are. Turned on: those that were
    not get their decision at departure.
    """
    with Net() as net, Pi2(net, rate=100e3, coupling=1, drop_enqueue=not early, **CALM) as q:
        load = pile(net, queued=ECT0)
        before = q.stats()
        q.set(drop_enqueue=early, **AT_CAP)
        load.wait()
        q.until_idle()
        n = new(q.stats(), before)["ect0"]
        # The last ones are too few for a signal.
        low = 2 * 1514 // 200 + 1
        expect(n["forwarded"] > 2 * low, f"{n['forwarded']} waited")
        if early:
            expect_between(n["marked"], n["forwarded"] - low, n["forwarded"], "marked")
        else:
            expect_equal(n["marked"], 0, "marked")


@test()
def drop_enqueue_gives_the_same_probabilities():
    """Of what arrives: marks are counted when the packet leaves, and these wait."""
    with Net() as net, Pi2(net, rate=20e6, limit=1000000, drop_enqueue=1) as q:
        load = net.start(20, *(Stream(name, ecn=ECN_OF[name], bps=8e6) for name in ("not_ect", "ect1", "ect0")))
        p = freeze(q, 0.35)
        n, _ = measured(q, 3.5)
        n = n["not_ect"]
        close(n["dropped_aqm"], n["arrived"], p * p, "drops of Not-ECT")
        expect(n["forwarded"] < n["arrived"] - n["dropped_aqm"], "the queue grows")
        load.wait()
        q.until_idle()
        st = q.stats()
        check_accounts(st)
        expect(st["ect0"]["marked"] > 100 < st["ect1"]["marked"], f"marks: {st}")


# Delay

@each(("reno", "cubic", "cubic_with_ecn", "reno_with_drop_enqueue"))
def target_is_held_by_CASE(kind):
    """Flows of one kind, 10 ms of round-trip time and 20 ms of queue."""
    with Net() as net, Pi2(net, drop_enqueue="drop_enqueue" in kind) as q:
        tc("qdisc add dev eth0 root netem delay 10ms limit 100000", net.rcv)
        for netns in (net.snd, net.rcv):
            run(f"sysctl -qw net.ipv4.tcp_ecn={int(kind.endswith('ecn'))}", netns)
        with Bulk(net, kind.split("_", maxsplit=1)[0], 5) as flows:
            flows.run(15)
            before = q.stats()
            received = flows.received
            flows.run(40)
            st = q.stats()
            n = new(st, before)
            delay = (st["delay_sum_ns"] - before["delay_sum_ns"]) / sum(c["forwarded"] for c in n.values()) / 1e6
            expect_between(delay, 17, 23, "mean delay in the queue, ms, of 20")
            expect_between((flows.received - received) * 8 / 40e6, 8.8, 9.7, "goodput, Mbit/s of 10")
            expect_equal(st["capped_count"], before["capped_count"], "times at the caps")
            kind_of, other = ("ect0", "not_ect") if kind.endswith("ecn") else ("not_ect", "ect0")
            expect(n[kind_of]["forwarded"] > 30000 > 1000 > n[other]["forwarded"], f"codepoints: {n}")
            signals = n["ect0"]["marked"] if kind.endswith("ecn") else n["not_ect"]["dropped_aqm"]
            expect(signals > 100, f"{signals} signals")
            if kind.endswith("ecn"):
                expect_equal(n["ect0"]["dropped_aqm"], 0, "drops of ECT(0)")
            expect_equal(total(st, "dropped_limit"), total(before, "dropped_limit"), "drops by the limit")


@each((5000, 50000), name=lambda us: f"{us // 1000}_ms")
def target_of_CASE_is_held(target):
    with Net() as net, Pi2(net, target=target, rate=20e6) as q:
        tc("qdisc add dev eth0 root netem delay 10ms limit 100000", net.rcv)
        with Bulk(net, "reno", 10) as flows:
            flows.run(15)
            before = q.stats()
            flows.run(40)
            st = q.stats()
            n = new(st, before)
            delay = (st["delay_sum_ns"] - before["delay_sum_ns"]) / sum(c["forwarded"] for c in n.values()) / 1e3
            expect_between(delay / target, 0.8, 1.25, "mean delay in the queue, of the target")


@test()
def delay_counted_is_the_delay_measured():
    with Net() as net, Pi2(net, limit=200, **CALM) as q:
        result = net.traffic(10, Stream("all", bps=20e6, ecn=ECT0), warmup=1)
        q.until_idle()
        st = q.stats()
        mean_us = st["delay_sum_ns"] / total(st, "forwarded") / 1e3
        # 200 packets of 1000 bytes and what the shaper holds; the first second is shorter.
        expect_between(mean_us / result["all"].delay_us["mean"], 0.97, 1.01, "mean counted, measured")
        greatest = st["delay_max_ns"] / 1e3 / result["all"].delay_us["max"]
        expect_between(greatest, 0.98, 1.01, "maximum counted, measured")
        net.traffic(2, Stream("few", pps=10))
        expect_equal(q.stats()["delay_max_ns"], st["delay_max_ns"], "maximum after shorter ones")


@test()
def delay_is_known_at_once_when_the_link_gets_slower():
    """Ages of packets grow by a second a second; the rate of departures tells after 16 KiB how long all will wait."""
    with Net() as net, Pi2(net, limit=200, target=LONGEST_US, tupdate=50000, alpha=1, beta=256) as q:
        net.start(30, Stream("all", bps=20e6, ecn=ECT0))
        time.sleep(5)
        expect_equal(q.stats()["prob"], 0, "p' while the delay stays as it is")
        net.shaper_rate(1e6)
        time.sleep(0.4)
        # 0.16 s become 1.6 s.
        expect_between(q.stats()["p"], 0.45, 0.5, "p' after 0.4 s")


# Accounts

@each(("htb", "tbf", "none", "htb_with_drop_enqueue"))
def accounts_under_CASE_fit_at_any_time(kind):
    shaper, _, option = kind.partition("_with_")
    with Net() as net, Pi2(net, shaper=shaper, limit=60, target=5000, **({option: 1} if option else {})) as q:
        streams = [Stream(name + ("6" if six else ""), ecn=ECN_OF[name], bps=1.7e6, jitter=0.5, burst=3,
                          dst="fd02::1" if six else "10.2.0.1") for name in CODEPOINTS for six in (False, True)]
        load = net.start(10, *streams)
        moments = 0
        for _ in range(150):
            moments += q.check()
            time.sleep(0.05)
        expect(moments > 20, f"only {moments} moments were compared")
        result = load.wait()
        q.until_idle()
        st = q.stats()
        check_accounts(st)
        expect_equal((st["qlen"], st["backlog"]), (0, 0), "left in the queue")
        for name in CODEPOINTS:
            sent = sum(result[n].sent_ever for n in (name, name + "6"))
            lost = sum(result[n].lost for n in (name, name + "6"))
            expect_equal(st[name]["arrived"], sent, f"{name}: arrived, sent")
            expect_equal(st[name]["dropped_aqm"] + st[name]["dropped_limit"], lost, f"{name}: dropped, lost")
        if shaper != "none":
            expect(total(st, "dropped_limit") > 100 and total(st, "marked") > 100, "there were drops and marks")
        expect_equal((st["unparsed"], st["mark_failed"], st["gso_failed"]), (0, 0, 0), "failures")


@test()
def limit_lowered_drops_the_oldest():
    with Net() as net, Pi2(net, rate=80e3, **CALM) as q:
        load = net.start(20, Stream("pile", pps=5000, size=1000, count=100, trace=True))
        time.sleep(2)
        before = q.stats()
        q.set(limit=10)
        st = q.stats()
        expect_equal((st["packets"], st["qlen"]), (10, 10), "packets queued")
        expect_equal(st["not_ect"]["purged"], before["packets"] - 10, "purged")
        expect_equal(st["drops"] - before["drops"], before["packets"] - 10, "drops of the qdisc")
        q.check()
        parent = lib.stats(net.rtr, "down", "1:")
        expect_equal((parent["qlen"], parent["backlog"]), (st["qlen"], st["backlog"]), "qlen and backlog of the parent")
        came = [delay is not None for _, delay, _ in load.wait()["pile"].records]
        first = came.index(False)
        expect_equal(came, [True] * first + [False] * (90 - first) + [True] * 10, "which packets came")
        expect(first < 40, f"{first} had left before")


@test()
def limit_lowered_under_traffic_holds_at_once():
    with Net() as net, Pi2(net, **CALM) as q:
        load = net.start(12, *(Stream(name, ecn=ECN_OF[name], bps=5e6) for name in CODEPOINTS))
        time.sleep(1)
        for limit in (700, 300, 200, 50, 7, 1, 400, 2):
            q.set(limit=limit)
            st = q.stats()
            expect(st["qlen"] <= limit, f"{st['qlen']} packets with a limit of {limit}")
            q.check()
            parent = lib.stats(net.rtr, "down", "1:")
            expect(parent["qlen"] <= limit + 1, f"{parent['qlen']} packets in the parent")
            time.sleep(1)
        expect(all(st[name]["purged"] > 50 for name in CODEPOINTS), f"purged of all kinds: {st}")
        load.wait()
        q.until_idle()


@test()
def replaced_and_deleted_under_traffic():
    with Net() as net:
        for turn in range(6):
            with Pi2(net, limit=300, target=5000) as q:
                net.start(3, *(Stream(name, ecn=ECN_OF[name], bps=5e6) for name in CODEPOINTS))
                time.sleep(1)
                # A replace of the same kind is a change: counters and packets stay.
                before = q.stats()
                expect_equal(lib_extra.request(net.rtr, "down", "10:", "1:10", "pi2", encode(target=10000),
                                               lib.NLM_F_CREATE | lib.NLM_F_REPLACE), (0, ""), "replace")
                st = q.stats()
                expect(total(st, "arrived") >= total(before, "arrived") > 1000, "counters go on")
                expect_equal(st["knobs"], DEFAULTS | {"limit": 300, "target": 10000}, "options after a replace")
                if turn % 2:
                    tc("qdisc replace dev down parent 1:10 handle 11: pfifo", net.rtr)
                    tc("qdisc replace dev down parent 1:10 handle 10: pi2", net.rtr)
                    time.sleep(0.5)
                    expect(total(q.stats(), "forwarded") > 100, "the new one forwards")


@test()
def link_flap_purges_and_counters_go_on():
    with Net() as net, Pi2(net, rate=200e3, **RISING) as q:
        q.was_reset = True
        load = net.start(6, *(Stream(name, ecn=ECN_OF[name], pps=100, size=500) for name in CODEPOINTS))
        time.sleep(2)
        waiting = q.stats()
        expect(waiting["packets"] > 100, f"{waiting['packets']} packets wait")
        expect(waiting["p"] > 0.4, f"p' is {waiting['p']}")
        run("ip link set dev down down", net.rtr)
        st = q.stats()
        expect_equal((st["packets"], st["qlen"], st["bytes"]), (0, 0, 0), "packets after the link went down")
        expect(total(st, "purged") >= waiting["packets"] > 0, "purged")
        expect_equal((st["prob"], st["capped"]), (0, 0), "p' after a reset")
        run("ip link set dev down up", net.rtr)
        run("ip neigh replace 10.2.0.1 lladdr 02:00:00:00:02:01 nud permanent dev down", net.rtr)
        time.sleep(2)
        load.wait()
        q.until_idle()
        expect(total(q.stats(), "forwarded") > total(st, "forwarded"), "it forwards again")


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("pi2"))
