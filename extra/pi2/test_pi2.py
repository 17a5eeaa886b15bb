#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""
test_pi2.py - the qdisc pi2: its probabilities and their caps, the delay that TCP gets, its accounts, its options.

The arithmetic alone is tested by selftests/unit. Open-loop streams see fixed probabilities, because p' stands still
while the next update is four seconds away.

DUALPI2_EXTRA is the directory with sch_pi2.ko; TC_LIB_DIR has q_pi2.so.
"""
import contextlib
import errno
import functools
import json
import math
import os
import shlex
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_extra import Bulk

import frames
import hostile
import lib
import packets
from gso import GSO, GsoRig
from lib import (CE, CODEPOINTS, ECT0, ECT1, NOT_ECT, Failure, Net, Stream, each, expect, expect_between,
                 expect_equal, note, run, shared_net, tc, test)
from trees import AGREEING, Account, Kind, Tree

HEADER = lib.Header("extra/pi2/pi2_uapi.h")
KNOBS = HEADER.attributes("TCA_PI2_")
DEFAULTS = {"limit": 10000, "target": 20000, "tupdate": 32000, "alpha": 80, "beta": 800, "coupling": 2, "ecn": 1,
            "signal": 0}
RANDOM = HEADER.number("TC_PI2_SIGNAL_RANDOM")
LONGEST_US = 4294967
XSTATS, PER_CODEPOINT = (HEADER.layout(f"tc_pi2_{name}") for name in ("xstats", "codepoint"))
ECN_OF = dict(zip(CODEPOINTS, (NOT_ECT, ECT1, ECT0, CE)))

# p' rises by less than 0.01 an update while the delay is below 200 ms.
RISING = {"target": 1, "tupdate": 10000, "alpha": 13, "beta": 1}
# p' is at its cap from the first update with a packet on, and stays.
AT_CAP = {"target": 1, "tupdate": 100, "alpha": 2**31 - 1, "beta": 2**31 - 1}

# No signals.
CALM = {"target": LONGEST_US, "alpha": 1, "beta": 1}


def encode(**values):
    return lib.encode(KNOBS, **values)


def parse(qdisc):
    """Statistics and options of one qdisc of a dump."""
    expect_equal(len(qdisc["app"]), XSTATS.size, "bytes of TCA_STATS_APP")
    st = dict(qdisc["stats"], parent=qdisc["parent"], knobs=lib.decode(KNOBS, qdisc["options"]))
    numbers = XSTATS.read(qdisc["app"])
    for number, name in enumerate(CODEPOINTS):
        st[name] = {key: numbers.pop(f"codepoint.{number}.{key}") for key in PER_CODEPOINT.names}
    st |= numbers
    for name, key in (("p", "prob"), ("p_c", "prob_classic"), ("p_s", "prob_scalable")):
        st[name] = st[key] / 2**32
    return st


def total(st, *names):
    """Packets of all codepoints."""
    return sum(st[codepoint][name] for codepoint in CODEPOINTS for name in names)


def moment(look):
    """What look() finds, at one moment if there is one: the parts of a dump are not of the same, but two dumps with
    the same counters are. If packets move all the time, "moved" is set.
    """
    for _ in range(20):
        one, two = look(), look()
        if all(one[key] == two[key] for key in ("arrived_bytes", "forwarded_bytes", "dropped_bytes", "qlen", "drops")):
            return one
    return one | {"moved": True}


def check_accounts(st, was_reset=False):
    """Fail unless every packet that arrived was forwarded, dropped or purged, or waits, and all else fits, too.

    What pi2 counts is of one moment; with the qdisc's own counters it is compared unless packets "moved".
    """
    same = [
        (total(st, "arrived"), total(st, "forwarded", "dropped_aqm", "dropped_limit", "purged") + st["packets"],
         "arrived and forwarded + dropped + purged + queued"),
        (st["arrived_bytes"], st["forwarded_bytes"] + st["dropped_bytes"] + st["purged_bytes"] + st["bytes"],
         "bytes arrived and forwarded + dropped + purged + queued"),
        ((st["not_ect"]["marked"], st["ce"]["marked"], st["ce"]["dropped_aqm"], st["ect1"]["dropped_aqm"]),
         (0, 0, 0, 0), "marks of Not-ECT and CE, drops by the AQM of CE and ECT(1)"),
    ]
    if st["knobs"]["ecn"] and not st.get("ecn_was_off"):
        same.append((st["ect0"]["dropped_aqm"], 0, "drops of ECT(0) by the AQM"))
    held = 0
    if not st.get("moved"):
        drops = total(st, "dropped_aqm", "dropped_limit", "purged") + st["gso_failed"]
        held = st["qlen"] - st["packets"]
        same += [(total(st, "forwarded"), st["packets_sent"], "forwarded and packets of the qdisc"),
                 (st["forwarded_bytes"], st["bytes_sent"], "bytes forwarded and bytes of the qdisc")]
        if not was_reset:
            same.append((st["drops"], drops, "drops of the qdisc and dropped + purged"))
        if not held:
            same.append((st["backlog"], st["bytes"], "backlog and bytes in the queue"))
    if not st["packets"]:
        same.append(((st["bytes"], st["delay_ns"]), (0, 0), "bytes and delay of an empty queue"))
    wrong = [f"{what}: {one} != {other}" for one, other, what in same if one != other]
    for codepoint in CODEPOINTS:
        n = st[codepoint]
        if n["marked"] > n["forwarded"] or n["arrived"] < n["forwarded"] + n["dropped_aqm"] + n["dropped_limit"]:
            wrong.append(f"{codepoint}: {n}")
    if held not in (0, 1):
        wrong.append(f"qlen {st['qlen']} with {st['packets']} packets in the queue")
    if st["packets"] > st["max_packets"] or st["delay_max_ns"] > st["delay_sum_ns"]:
        wrong.append(f"greatest of all: {st['max_packets']} packets, {st['delay_max_ns']} of {st['delay_sum_ns']} ns")
    k = st["knobs"]["coupling"]
    if abs(st["p_c"] - st["p"]**2) > 4 / 2**32 or abs(st["p_s"] - min(1, k * st["p"])) > (k + 2) / 2**32:
        wrong.append(f"probabilities {st['p']}, {st['p_c']}, {st['p_s']} with k = {k}")
    if st["p"] > 1 / k + 2 / 2**32:
        wrong.append(f"p' {st['p']} is beyond 1/{k}")
    if wrong:
        raise Failure("counters do not fit together: " + "; ".join(wrong))


def of(qdisc):
    """parse() with the qdisc's own counters under names that are not taken."""
    return parse(qdisc) | {"packets_sent": qdisc["stats"]["packets"], "bytes_sent": qdisc["stats"]["bytes"]}


class Pi2(lib.Aqm):
    """pi2 on rtr's `down`; its knobs go by netlink, or as words for tc."""

    kind = "pi2"
    ecn_was_off = False

    def __init__(self, net, rate=10e6, shaper="htb", words=None, **knobs):
        super().__init__(net, rate, shaper, words, knobs)

    def _request(self, flags, knobs):
        expect_equal(lib_extra.request(self.netns, self.dev, self.handle, self.parent, "pi2", encode(**knobs), flags),
                     (0, ""), f"pi2 {knobs}")

    def change(self, options):
        """Change it in place; (error number, text)."""
        return lib_extra.request(self.netns, self.dev, self.handle, self.parent, "pi2", options, 0)

    def stats(self):
        return of(lib_extra.found(self.netns, self.dev, self.handle)) | {"ecn_was_off": self.ecn_was_off}

    def until_idle(self, seconds=60):
        super().until_idle(seconds)

    def set(self, **knobs):
        expect_equal(self.change(encode(**knobs)), (0, ""), f"change of {knobs}")

    def check(self):
        """The accounts; returns whether they were of one moment."""
        st = moment(self.stats)
        check_accounts(st, self.was_reset)
        return not st.get("moved")


def new(after, before):
    """What was counted between two looks, by codepoint."""
    return {name: {key: after[name][key] - before[name][key] for key in PER_CODEPOINT.names} for name in CODEPOINTS}


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
    k = knobs.get("coupling", 2)
    with Net() as net, Pi2(net, rate=40e6, **({"limit": 1000000} | knobs)) as q:
        net.start(60, *(Stream(name, ecn=ECN_OF[name], bps=48e6 / len(streams)) for name in streams))
        p = freeze(q, want)
        n, st = measured(q, 3.5)
        expect_between(st["p_s"], k * p - 1e-6, k * p + 1e-6, "p_s")
        expect_between(st["p_c"], p * p - 1e-6, p * p + 1e-6, "p_c")
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

@each((1, 2, 4), name=lambda k: f"k_{k}")
def cap_with_CASE_holds_under_unresponsive_overload_and_the_limit_takes_over(k):
    """Three times the link's rate: far more than the caps can hold back, but with k = 1, where all is dropped."""
    names = ("ect1", "ect0", "ce") if k == 1 else CODEPOINTS
    with Net() as net, Pi2(net, limit=500, coupling=k, tupdate=4000) as q:
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
        expect_between(st["p_c"], 1 / k**2 - 1e-8, 1 / k**2 + 1e-8, "p_c")
        expect_equal(st["prob_scalable"], 2**32 - 1, "p_s")
        expect_equal(n["ect1"]["marked"], n["ect1"]["forwarded"], "marks of ECT(1), forwarded")
        close(n["ect0"]["marked"], n["ect0"]["forwarded"], 1 / k**2, "marks of ECT(0)")
        if k > 1:
            came = n["not_ect"]["forwarded"] + n["not_ect"]["dropped_aqm"]
            close(n["not_ect"]["dropped_aqm"], came, 1 / k**2, "drops of Not-ECT")
        for name in names:
            expect(n[name]["dropped_limit"] > 1000, f"{name}: tail drop takes over, {n[name]}")
        expect_between(st["packets"], 480, 500, "packets in the queue")
        expect_equal(st["max_packets"], 500, "most packets ever")
        expect_equal((st["capped"], st["capped_count"]), (1, before["capped_count"]), "capped, times")
        expect_between((st["capped_ns"] - before["capped_ns"]) / 1e9, 9.5, 10.5, "time at the caps in 10 s")
        expect_between(total(st, "forwarded") - total(before, "forwarded"), 11500, 13000, "forwarded in 10 s")


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


# Delay

@each(("reno", "cubic", "cubic_with_ecn"))
def target_is_held_by_CASE(kind):
    """Flows of one kind, 10 ms of round-trip time and 20 ms of queue."""
    with Net() as net, Pi2(net) as q:
        tc("qdisc add dev eth0 root netem delay 10ms limit 100000", net.rcv)
        for netns in (net.snd, net.rcv):
            run(f"sysctl -qw net.ipv4.tcp_ecn={int('ecn' in kind)}", netns)
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
            kind_of, other = ("ect0", "not_ect") if "ecn" in kind else ("not_ect", "ect0")
            expect(n[kind_of]["forwarded"] > 30000 > 1000 > n[other]["forwarded"], f"codepoints: {n}")
            signals = n["ect0"]["marked"] if "ecn" in kind else n["not_ect"]["dropped_aqm"]
            expect(signals > 100, f"{signals} signals")
            if "ecn" in kind:
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
        expect_between(greatest, 0.98, 1.01, "greatest counted, measured")
        net.traffic(2, Stream("few", pps=10))
        expect_equal(q.stats()["delay_max_ns"], st["delay_max_ns"], "greatest after shorter ones")


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

@each(("htb", "tbf", "none"))
def accounts_under_CASE_fit_at_any_time(shaper):
    with Net() as net, Pi2(net, shaper=shaper, limit=60, target=5000) as q:
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
        expect_equal((st["packets"], st["qlen"]), (10, 10), "packets that wait")
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


# GSO, parents

def account(st):
    """For Tree.check_all()."""
    return Account([st[name]["arrived"] for name in CODEPOINTS], total(st, "forwarded"),
                   total(st, "dropped_aqm", "dropped_limit", "purged"))


PI2 = Kind("pi2", encode, of, check_accounts, account)


@each(AGREEING)
def parent_CASE_agrees_with_its_child(name):
    """Packets and GSO packets of all codepoints, in a queue that runs full, empty, and drops."""
    with Tree(name, "1mbit", kind=PI2, limit=30, target=2000, tupdate=2000, alpha=2000, beta=2000) as tree:
        for turn in range(10):
            for _ in range(15):
                for ecn in (NOT_ECT, ECT1, ECT0, CE):
                    tree.mix.send(ecn, 300 + 100 * turn)
            tree.check_now("packets")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
        for ecn in 5 * (NOT_ECT, ECT1, ECT0, CE):
            tree.mix.send(ecn, 500)
        tree.change(limit=5)
        tree.check_now("a lower limit")
        leaves = tree.check_all()
        if name not in ("root", "qfq_alone", "mq"):
            for kind in ("dropped_limit", "dropped_aqm", "purged", "marked"):
                # netem has taken out what a lower limit could purge.
                expect((name, kind) == ("netem", "purged") or total(leaves[0], kind) > 4, f"{kind}: {leaves[0]}")
        tree.change(limit=30)
        for turn in range(12):
            for ecn in (NOT_ECT, ECT1, ECT0, CE):
                tree.mix.send(ecn, 300 + 100 * turn)
                tree.check_now("a packet")
                tree.mix.gso(ecn, 2 + turn, 700, 100 + turn, v6=bool(turn & 1))
                tree.check_now("a GSO packet")
            time.sleep(0.03 * turn)
            tree.check_now("after a while")
        tree.check_all(exact_drops=False)
        # And it is not stuck.
        for _ in range(5):
            tree.mix.send(ECT1)
        tree.check_all(exact_drops=False)


@each(lib_extra.ONE_PARENTS)
def gso_of_which_one_segment_fits_under_CASE_counts_as_that_segment(name):
    """A limit of one packet, and the queue is empty: parents half-way up are, too."""
    with hostile.no_splat(), Tree(name, lib_extra.ONE_RATE, kind=PI2, limit=1, **CALM) as tree:
        lib_extra.one_segment_counts_as_itself(tree, check_accounts)


@each(lib_extra.ONE_GOES, name="_with_".join)
def gso_of_which_one_segment_fits_under_CASE_leaves_no_bytes(case):
    name, what = case
    with hostile.no_splat(), Tree(name, lib_extra.ONE_RATE, kind=PI2, limit=1, **CALM) as tree:
        lib_extra.one_segment_goes(tree, functools.partial(check_accounts, was_reset=what == "reset"), what)


@test()
def gso_is_split_whole_lists_too_and_each_segment_gets_its_own_signal():
    with Net(offloads=True) as net, Pi2(net, limit=100000, coupling=1, **AT_CAP) as q:
        result = net.traffic(4, *(Stream(name, ecn=ECN_OF[name], pps=1600, size=1000, gso=8, burst=8)
                                  for name in ("ect1", "ect0", "ce")))
        q.until_idle()
        st = q.stats()
        for name in ("ect1", "ect0"):
            expect_equal(st[name]["arrived"], result[name].sent_ever, f"{name}: segments")
            expect(st[name]["marked"] > 0.95 * st[name]["forwarded"] > 1000, f"{name}: marked, {st[name]}")
            expect_equal(result[name].ecn[CE], st[name]["marked"], f"{name}: CE at the receiver")
        expect_equal(st["gso_failed"], 0, "not split")


@test()
def parent_multiq_gets_what_it_peeked_at():
    """multiq answers tbf's peek with a packet of its child's, and then takes that."""
    with Tree("tbf_multiq", "100kbit", kind=PI2, **CALM) as tree:
        for number in range(40):
            tree.mix.send(number % 4, 500)
        expect(max(total(st, "forwarded") for st in tree.check_all()) >= 10, "a child had ten packets")


# Packets

class Pi2Rig(packets.Rig):
    """TAP devices, and pi2 on one of them."""

    def __init__(self, rate, bridge=False, **knobs):
        super().__init__(rate, bridge)
        self.pi2 = knobs

    def add(self):
        expect_equal(lib_extra.request(self.netns, "out", "10:", "1:10", "pi2", encode(**self.pi2)), (0, ""),
                     "add of pi2")

    def stats(self):
        return of(lib_extra.found(self.netns, "out"))

    def check(self):
        st = self.stats()
        check_accounts(st)
        expect_equal((st["qlen"], st["backlog"]), (0, 0), "left in pi2")
        parent = self.parent()
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        return st


class Pi2GsoRig(GsoRig, Pi2Rig):
    """The same with virtio headers."""

    def __init__(self, rate, **knobs):
        Pi2Rig.__init__(self, rate, **knobs)


def in_parts(injector, per_kind):
    """The kinds that may come this way, as many at a time as the sender has room for."""
    kinds = list(packets.kinds_for(injector))
    size = (frames.RingSender.SLOTS - 2 * FILLERS) // per_kind if injector == "ring" else len(kinds)
    return [kinds[begin:begin + size] for begin in range(0, len(kinds), size)]


# So many of 400 bytes are more than two packets of full size.
FILLERS = 10


@each(("socket", "ring", "bridge"))
def kinds_by_CASE_are_marked_byte_exact_or_left_alone(injector):
    """Every kind of frame with an ECN field, with every codepoint, where every ECT packet is marked."""
    with Pi2Rig("100kbit", bridge=injector == "bridge", coupling=1, **AT_CAP) as rig:
        marks = 0
        for part in in_parts(injector, 3):
            load = packets.Load(rig.injector(injector))
            load.fill(FILLERS, CE, 400)
            for name, build, ip in part:
                for ecn in (ECT1, ECT0, CE) if ip is not None else ():
                    load.send(name, build, ip, ecn)
            load.fill(FILLERS, CE, 400)
            result = load.verdicts(rig.out.drain(4))
            wrong = [r for r in result if r[3] != ("same" if r[1] == CE else "marked")]
            expect(not wrong, f"{len(wrong)} of {len(result)} wrong: {wrong[:8]}")
            marks += sum(verdict == "marked" for *_, verdict in result)
        st = rig.check()
        expect_equal((total(st, "marked"), st["mark_failed"], st["unparsed"]), (marks, 0, 0),
                     "marked, failed, unparsed")
        expect(marks > 80, f"{marks} marks")


@each(("socket", "ring", "bridge"))
def kinds_by_CASE_count_by_their_codepoint_and_garbage_as_not_ect(injector):
    """While no signals are given everything goes through unchanged."""
    with Pi2Rig("1mbit", bridge=injector == "bridge", **CALM) as rig:
        sent, unparsed = [0] * 4, 0
        for part in in_parts(injector, 4):
            load = packets.Load(rig.injector(injector))
            for name, build, ip in part:
                for ecn in range(4):
                    before = len(load.sent)
                    load.send(name, build, ip, ecn)
                    if len(load.sent) > before:
                        sent[NOT_ECT if ip is None else ecn] += 1
                        unparsed += ip is None
            expect_equal({verdict for *_, verdict in load.verdicts(rig.out.drain(4))}, {"same"}, "what became of them")
        st = rig.check()
        expect_equal([st[name]["arrived"] for name in CODEPOINTS], sent, "arrived, by codepoint")
        expect_equal(st["unparsed"], unparsed, "unparsed")
        expect(unparsed > 20, f"{unparsed} without an IP header")


@test()
def garbage_is_dropped_as_not_ect():
    with Pi2Rig("100kbit", coupling=1, **AT_CAP) as rig:
        load = packets.Load(rig.injector("socket"))
        load.fill(8, CE, 1514)
        count = 0
        for name, build, ip in packets.kinds_for("socket"):
            if ip is None:
                load.send(name, build, ip, ECT1)
                count += 1
        load.fill(8, CE, 1514)
        result = load.verdicts(rig.out.drain(4))
        st = rig.check()
        lost = sum(verdict == "lost" for *_, verdict in result)
        expect_equal(st["not_ect"]["dropped_aqm"], lost, "dropped, lost")
        expect_between(lost, count - 2 - count // 65, count, f"lost of {count}")


@test()
def last_packet_is_not_dropped_however_long_it_is():
    """It alone is more than two packets of full size; a parent is not to see its child run empty inside dequeue."""
    with Pi2Rig("400kbit", coupling=1, **AT_CAP) as rig:
        for turn in range(1, 4):
            load = packets.Load(rig.injector("socket"))
            load.fill(12, NOT_ECT, 5000)
            verdicts = [verdict for *_, verdict in load.verdicts(rig.out.drain(4))]
            # One leaves at once, before p' has risen.
            expect_equal((verdicts[-1], verdicts.count("same")), ("same", 2), f"the last one, in turn {turn}")
        rig.check()


@test()
def gso_of_every_kind_and_lie_is_accounted_for():
    with hostile.no_splat(), Pi2GsoRig("1mbit", **CALM) as rig:
        send, reference = rig.both_ways()
        taken = 0
        for number, kind in enumerate(GSO):
            for version in kind.versions:
                head, frame = kind.build(100 + number, ECT1, version)
                taken += bool(send(head, frame))
        came = sum(len(copies) for copies in rig.out.drain(4).values())
        reference()
        st = rig.check()
        expect_equal(came, total(st, "forwarded"), "packets at the device, forwarded")
        expect(taken > 40 and total(st, "arrived") > 400, f"{taken} taken, {total(st, 'arrived')} arrived")
        note(f"{taken} taken, {total(st, 'arrived')} arrived, {st['gso_failed']} not split")


@test()
def ipv6_and_vlan_are_marked():
    with Net() as net:
        net.vlan(7)
        with Pi2(net, limit=100000, coupling=1, **AT_CAP) as q:
            dsts = {"v4": "10.2.0.1", "v6": "fd02::1", "vlan4": "10.3.0.1", "vlan6": "fd03::1"}
            result = net.traffic(4, *(Stream(f"{where}_{ecn}", ecn=ecn, bps=2e6, dst=dst)
                                      for where, dst in dsts.items() for ecn in (ECT1, ECT0)), warmup=1)
            q.until_idle()
            for stream in result.values():
                expect(stream.marked > 0.99 and stream.received > 500,
                       f"{stream.name}: {stream.marked:.3f} of {stream.received}")


# Options

BOUNDS = {"limit": (1, 2**32 - 1), "target": (1, LONGEST_US), "tupdate": (100, LONGEST_US), "alpha": (1, 2**31 - 1),
          "beta": (1, 2**31 - 1), "coupling": (1, 255), "ecn": (0, 1), "signal": (0, 1)}
BEYOND = {"limit": (0,), "target": (0, LONGEST_US + 1, 2**32 - 1), "tupdate": (0, 99, LONGEST_US + 1),
          "alpha": (0, 2**31, 2**32 - 1), "beta": (0, 2**31, 2**32 - 1), "coupling": (0,), "ecn": (2, 255),
          "signal": (2, 255)}
RANGE = {"limit": "limit must be at least 1 packet", "target": "target must be 1 us to 4294967 us",
         "tupdate": "tupdate must be 100 us to 4294967 us", "alpha": "alpha must be 1/256 Hz to (2^31 - 1)/256 Hz",
         "beta": "beta must be 1/256 Hz to (2^31 - 1)/256 Hz", "coupling": "coupling_factor must be 1 to 255",
         "ecn": "ecn must be 0 or 1", "signal": "signal must be 0 (recur) or 1 (random)"}


@test()
def options_not_given_have_their_defaults():
    with Pi2(shared_net()) as q:
        expect_equal(q.stats()["knobs"], DEFAULTS, "defaults")
    with Pi2(shared_net(), words="") as q:
        expect_equal(q.stats()["knobs"], DEFAULTS, "defaults by tc")


@each(BOUNDS)
def option_CASE_is_accepted_at_its_bounds_and_refused_beyond(name):
    with Pi2(shared_net(), limit=77, coupling=3) as q:
        q.ecn_was_off = True
        state = DEFAULTS | {"limit": 77, "coupling": 3}
        for value in BOUNDS[name]:
            state[name] = value
            q.set(**{name: value})
            expect_equal(q.stats()["knobs"], state, f"after {name} {value}")
        for value in BEYOND[name]:
            # What is right in the same request is not applied either.
            first, last = (encode(limit=5), b"") if name != "limit" else (b"", encode(target=5))
            for options in (first + encode(**{name: value}) + last, encode(**{name: value})):
                expect_equal(q.change(options), (errno.EINVAL, "pi2: " + RANGE[name]), f"{name} {value}")
            expect_equal(q.stats()["knobs"], state, f"after {name} {value}")
            expect_equal(lib_extra.request(q.netns, "up", "20:", "root", "pi2", encode(**{name: value})),
                         (errno.EINVAL, "pi2: " + RANGE[name]), f"new with {name} {value}")


@each(BOUNDS)
def option_CASE_of_wrong_length_or_twice_is_refused(name):
    with Pi2(shared_net()) as q:
        kind, form = KNOBS[name]
        word = "coupling_factor" if name == "coupling" else name
        good = struct.pack(form, DEFAULTS[name])
        for data in (b"", good[:-1], good + b"\0", good + good + good + good):
            expect_equal(q.change(lib.attr(kind, data)),
                         (errno.EINVAL, f"pi2: attribute of wrong length: {word}"), f"{name} of {len(data)} bytes")
        expect_equal(q.change(lib.attr(kind, good) * 2), (errno.EINVAL, f"pi2: attribute given twice: {word}"), "twice")
        expect_equal(q.stats()["knobs"], DEFAULTS, "options afterwards")


@test()
def option_that_is_unknown_is_refused():
    with Pi2(shared_net()) as q:
        for kind in (0, 9, 10, 100, 0x3fff):
            expect_equal(q.change(encode(limit=5) + lib.attr(kind, b"\1\0\0\0")),
                         (errno.EINVAL, "pi2: unknown attribute"), f"attribute {kind}")
        expect_equal(q.change(encode(limit=5) + b"\2\0\0\0"),
                     (errno.EINVAL, "pi2: bytes left over after the attributes"), "left over")
        expect_equal(q.stats()["knobs"], DEFAULTS, "options afterwards")


WORDS = {
    "limit 1": {"limit": 1}, "limit 4294967295p": {"limit": 2**32 - 1}, "limit 12p": {"limit": 12},
    "target 1us": {"target": 1}, "target 5ms": {"target": 5000}, "target 1.5ms": {"target": 1500},
    "target 4.294967s": {"target": LONGEST_US}, "target 7": {"target": 7}, "target 2.6us": {"target": 3},
    "tupdate 100us": {"tupdate": 100}, "tupdate 1s": {"tupdate": 1000000}, "tupdate 3msecs": {"tupdate": 3000},
    "alpha 0.3125": {"alpha": 80}, "alpha 0.625Hz": {"alpha": 160}, "alpha 0.00390625": {"alpha": 1},
    "beta 3.125": {"beta": 800}, "beta 8388607.99609375": {"beta": 2**31 - 1},
    "coupling_factor 1": {"coupling": 1}, "coupling_factor 255": {"coupling": 255},
    "ecn": {"ecn": 1}, "noecn": {"ecn": 0}, "signal recur": {"signal": 0}, "signal random": {"signal": 1},
    "limit 5 target 1ms tupdate 2ms alpha 1 beta 2 coupling_factor 3 noecn signal random":
        {"limit": 5, "target": 1000, "tupdate": 2000, "alpha": 256, "beta": 512, "coupling": 3, "ecn": 0, "signal": 1},
}
TIMES = "a time from 1us to 4.294967s"
GAINS = "a number of Hz from 0.00390625Hz to 8388607.99609375Hz"
WRONG_WORDS = {
    "limit": "limit: the value is missing; expected a number of packets from 1p to 4294967295p",
    "limit 0": 'limit: "0" is not in range; expected a number of packets from 1p to 4294967295p',
    "limit 4294967296": 'limit: "4294967296" is not in range; expected a number of packets from 1p to 4294967295p',
    "limit 1.5": 'limit: "1.5" is not whole; expected a number of packets from 1p to 4294967295p',
    "limit -1": 'limit: "-1" is not a number of packets; expected a number of packets from 1p to 4294967295p',
    "limit 0x10": 'limit: "0x10" is not a number of packets; expected a number of packets from 1p to 4294967295p',
    "limit 1e3": 'limit: "1e3" is not a number of packets; expected a number of packets from 1p to 4294967295p',
    "limit 5ms": 'limit: "5ms" is not a number of packets; expected a number of packets from 1p to 4294967295p',
    "limit 1111111111111111111111111": 'limit: "1111111111111111111111111" is not a number of packets; expected a '
                                       "number of packets from 1p to 4294967295p",
    "limit ''": 'limit: "" is not a number of packets; expected a number of packets from 1p to 4294967295p',
    "target 0": f'target: "0" is not in range; expected {TIMES}',
    "target 0.4us": f'target: "0.4us" is not in range; expected {TIMES}',
    "target 5s": f'target: "5s" is not in range; expected {TIMES}',
    "target 1.2.3ms": f'target: "1.2.3ms" is not a time; expected {TIMES}',
    "target .": f'target: "." is not a time; expected {TIMES}',
    "target nan": f'target: "nan" is not a time; expected {TIMES}',
    "target 5m": f'target: "5m" is not a time; expected {TIMES}',
    "tupdate 99us": 'tupdate: "99us" is not in range; expected a time from 100us to 4.294967s',
    "alpha 0": f'alpha: "0" is not in range; expected {GAINS}',
    "beta 8388608": f'beta: "8388608" is not in range; expected {GAINS}',
    "beta 1kHz": f'beta: "1kHz" is not a number of Hz; expected {GAINS}',
    "coupling_factor 0": 'coupling_factor: "0" is not in range; expected a number from 1 to 255',
    "coupling_factor 256": 'coupling_factor: "256" is not in range; expected a number from 1 to 255',
    "coupling_factor two": 'coupling_factor: "two" is not a number; expected a number from 1 to 255',
    "signal": "signal: the value is missing; expected recur or random",
    "signal both": 'signal: "both" is no way to signal; expected recur or random',
    "ecn noecn": "noecn: ecn or noecn was there already; expected once",
    "limit 5 limit 5": "limit: it was there already; expected once",
    "signal recur signal recur": "signal: it was there already; expected once",
    "bytemode": '"bytemode" is not an option; expected one of:',
    "dq_rate_estimator": '"dq_rate_estimator" is not an option; expected one of:',
}


@test()
def words_say_what_the_options_say():
    with Pi2(shared_net(), words="") as q:
        q.ecn_was_off = True
        state = dict(DEFAULTS)
        for words, knobs in WORDS.items():
            tc(f"qdisc change dev down parent 1:10 handle 10: pi2 {words}", q.netns)
            state |= knobs
            expect_equal(q.stats()["knobs"], state, words)


@test()
def words_that_are_wrong_are_refused_with_a_text():
    with Pi2(shared_net(), words="limit 77") as q:
        for words, text in WRONG_WORDS.items():
            right = "beta 9" if words.startswith("target") else "target 9ms"
            done = tc(f"qdisc change dev down parent 1:10 handle 10: pi2 {right} {words}", q.netns, check=False)
            expect(done.returncode, f"{words} was accepted")
            expect_equal(done.stderr.splitlines()[0], f"pi2: {text}", words)
        expect_equal(q.stats()["knobs"], DEFAULTS | {"limit": 77}, "options afterwards")
        done = tc("qdisc add dev down root pi2 help", q.netns, check=False)
        expect(done.returncode and done.stderr.startswith("Usage: ... pi2 [ limit PACKETS ]"), done.stderr)
        for word in ("limit", "target", "tupdate", "alpha", "beta", "coupling_factor", "ecn", "noecn", "signal",
                     "recur", "random"):
            expect(word in done.stderr.split(), f"{word} is not in the help")


def once(pairs):
    """A JSON object, each of whose names is there once: tc's own are beside those of the kind."""
    names = [name for name, _ in pairs]
    expect_equal(sorted(set(names)), sorted(names), "names")
    return dict(pairs)


def shown(q):
    """(words of the options as text, the options as JSON, all of JSON, text with statistics)"""
    line = tc("qdisc show dev down", q.netns).stdout
    line = next(one for one in line.splitlines() if one.startswith("qdisc pi2 10:"))
    whole = next(one for one in json.loads(tc("-s -j qdisc show dev down", q.netns).stdout, object_pairs_hook=once)
                 if one.get("handle") == "10:")
    return line.split("parent 1:10", 1)[1], whole["options"], whole, tc("-s qdisc show dev down", q.netns).stdout


@each((0, 1, 2, 3), name=lambda n: ("defaults", "least", "greatest", "others")[n])
def options_shown_of_CASE_set_the_same_again(number):
    """Of text and of JSON, which has six digits of a gain."""
    knobs = ({}, {name: bounds[0] for name, bounds in BOUNDS.items()},
             {name: bounds[1] for name, bounds in BOUNDS.items()},
             {"limit": 1234567, "target": 123456, "tupdate": 1000001, "alpha": 41, "beta": 819, "coupling": 17,
              "ecn": 0, "signal": 1})[number]
    with Pi2(shared_net(), **knobs) as q:
        q.ecn_was_off = True
        want = DEFAULTS | knobs
        text, options, *_ = shown(q)
        q.set(**{name: 3 if name in ("limit", "coupling") else 500 for name in KNOBS
                 if name not in ("ecn", "signal")}, ecn=not want["ecn"], signal=not want["signal"])
        expect(not set(q.stats()["knobs"].items()) & set(want.items()), "all is different")
        tc(["qdisc", "change", "dev", "down", "parent", "1:10", "handle", "10:", "pi2", *text.split()], q.netns)
        expect_equal(q.stats()["knobs"], want, f"from the text {text}")
        if number == 2:
            return
        words = [f"{key.replace('-', '_')} {value}" for key, value in options.items() if key != "ecn"]
        words.append("ecn" if options["ecn"] else "noecn")
        q.set(limit=3, alpha=999, ecn=not want["ecn"])
        tc(["qdisc", "change", "dev", "down", "parent", "1:10", "handle", "10:", "pi2", *shlex.split(" ".join(words))],
           q.netns)
        expect_equal(q.stats()["knobs"], want, f"from JSON {options}")


@test()
def statistics_as_text_and_json_are_those_of_netlink():
    with Net() as net, Pi2(net, limit=100, target=2000) as q:
        _, _, whole, _ = shown(q)
        expect_equal(whole["delay-mean-ns"], None, "mean delay of no packet")
        net.traffic(8, *(Stream(name, ecn=ECN_OF[name], bps=8e6) for name in CODEPOINTS))
        q.until_idle()
        q.set(tupdate=LONGEST_US)
        st = q.stats()
        _, _, whole, text = shown(q)
        for name in CODEPOINTS:
            as_json = whole[name.replace("_", "-")]
            expect_equal({key.replace("-", "_"): value for key, value in as_json.items()}, st[name], name)
        for key in ("arrived_bytes", "forwarded_bytes", "dropped_bytes", "purged_bytes", "delay_sum_ns", "delay_max_ns",
                    "delay_ns", "capped_count", "capped_ns", "mark_failed", "gso_failed", "unparsed", "max_packets"):
            expect_equal(whole[key.replace("_", "-")], st[key], key)
        for key in ("packets", "bytes"):
            expect_equal(whole[f"queued-{key}"], st[key], f"{key} that wait")
        expect_equal(whole["delay-mean-ns"], st["delay_sum_ns"] // total(st, "forwarded"), "mean")
        expect_equal(whole["capped"], bool(st["capped"]), "capped")
        for key, p in (("prob", "p"), ("prob-classic", "p_c"), ("prob-scalable", "p_s")):
            expect(abs(whole[key] - st[p]) < 2e-6, f"{key}: {whole[key]}, {st[p]}")
        for line in (f"ect0: arrived {st['ect0']['arrived']} forwarded {st['ect0']['forwarded']} marked "
                     f"{st['ect0']['marked']} dropped (aqm 0, limit {st['ect0']['dropped_limit']}, purged 0)",
                     f"queued 0 (0 bytes) max {st['max_packets']}",
                     f"bytes: arrived {st['arrived_bytes']} forwarded {st['forwarded_bytes']} dropped "
                     f"{st['dropped_bytes']} purged 0", "mark_failed 0 gso_failed 0 unparsed 0"):
            expect(line in text, f"{line} is not in {text}")


@test()
def idle_instance_forgets_its_p():
    """Without a timer: what a dump shows, and what the next packet meets, is what updates would have led to."""
    with Net() as net, Pi2(net, limit=100) as q:
        net.start(60, Stream("flood", bps=20e6, stop=4))
        for state in ("packets", "no packets"):
            for _ in range(1000):
                if bool(q.stats()["packets"]) == (state == "packets") and q.stats()["capped_count"]:
                    break
                time.sleep(0.01)
            else:
                raise Failure(f"never {state}")
        # The fall of the delay counts with the first update after it.
        time.sleep(0.05)
        first = q.stats()["p"]
        expect_between(first, 0.15, 0.4, "p' when the queue is empty")
        time.sleep(0.4)
        # 20 ms below the target, at 0.3125 Hz, every 32 ms.
        expect_between(first - q.stats()["p"], 0.3125 * 0.02 * 0.36 / 0.032, 0.3125 * 0.02 * 0.44 / 0.032,
                       "fall of p' in 400 ms without packets")
        time.sleep(5)
        expect_equal(q.stats()["prob"], 0, "p' after 5 s without packets")


@test()
def module_goes_when_no_instance_is_left():
    with Net() as net:
        with Pi2(net):
            expect(run("rmmod sch_pi2", check=False).returncode, "the module went with an instance")
        run("rmmod sch_pi2")
        lib_extra.load("pi2")
        with contextlib.ExitStack() as stack:
            stack.enter_context(Pi2(net))


if __name__ == "__main__":
    lib.main(prepare=lambda: lib_extra.load("pi2"))
