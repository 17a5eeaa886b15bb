#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off -- -k at_20_ms_shares -k at_20_ms_with_cubic_jitter -k prague_classic_bottleneck
# suite: long kernel=plain,ect1
"""
test_prague_classic.py - TCP Prague at bottlenecks that mark ECT(1) as ECT(0): detection, shares, no false alarm.

The tables of docs/PRAGUE.md are the notes of: scripts/run test extra/prague/test_prague_classic.py --kernel plain
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import lib
from lib import expect, expect_between, expect_equal, note, run, tc
from lib_prague import PARAMETERS, Bench, pump, rates, on_accecn, each, prepare

MBIT = 40
# RED's thresholds are 5 and 15 ms at this rate.
CLASSIC = {"pie": "pie limit 2000 ecn",
           "codel": "codel limit 2000 ecn",
           "fq_codel_flows_1": "fq_codel limit 2000 flows 1 ecn",
           "red": "red limit 600000 min 25000 max 75000 avpkt 1500 burst 24 bandwidth 40mbit probability 0.1 ecn"}
L4S = {"dualpi2": "dualpi2", "fq_codel_ce_threshold": "fq_codel limit 2000 ce_threshold 1ms ecn"}
# What delays packets beside the bottleneck, in words of netem at the receiver; MS is the base RTT.
NOISE = {"still": "delay {}ms", "jitter": "delay {}ms 5ms", "slots": "delay {}ms slot 1ms 9ms"}


def detections():
    """How often the detection has triggered since the module was loaded."""
    with open(f"{PARAMETERS}/classic_detections", encoding="ascii") as file:
        return int(file.read())


def state(net, flow):
    """What ss prints as ce_state."""
    text = run(f"ss -tin sport = {flow.socket.getsockname()[1]}", net.snd).stdout
    return int(text.split("ce_state:")[1].split(",")[0])


def beside_cubic(net, rtt_ms):
    """(Mbit/s of Prague, of CUBIC with ECN, s from Prague's begin until detection or None); CUBIC is 2 s younger."""
    flows, found = [net.flow()], None
    for half in range(1, 85 if rtt_ms == 100 else 25):
        pump(0.5, *flows)
        if found is None and detections():
            found = half / 2
        if half == 4:
            flows.append(net.flow(cc="cubic", ecn=True))
    return (*rates(60 if rtt_ms == 100 else 15, *flows), found)


@each({f"{name}_at_{ms}_ms": (words, ms) for name, words in CLASSIC.items() for ms in (5, 20, 100)})
def prague_classic_CASE_shares_with_cubic(case):
    words, rtt_ms = case
    with Bench(rtt_ms=rtt_ms) as net:
        net.limit(MBIT, words)
        prague, cubic, found = beside_cubic(net, rtt_ms)
        note(f"{prague:.1f} : {cubic:.1f} Mbit/s, ratio {prague / cubic:.2f}; detected after {found} s")
        # At 100 ms CUBIC grows faster than Reno does.
        expect_between(prague / cubic, 0.25 if rtt_ms == 100 else 0.6, 2, "rate of Prague's, of CUBIC's")
        expect_equal(detections(), 1, "detections: more would be changes to Classic and back")


@each({f"{name}_at_{ms}_ms": (words, ms) for name, words in CLASSIC.items() for ms in (5, 20, 100)})
def prague_classic_CASE_undetected_starves_cubic(case):
    """That these cells tell anything."""
    words, rtt_ms = case
    with Bench(rtt_ms=rtt_ms, parameters=("classic_queue_us=0",)) as net:
        net.limit(MBIT, words)
        prague, cubic, _ = beside_cubic(net, rtt_ms)
        note(f"{prague:.1f} : {cubic:.1f} Mbit/s, ratio {prague / cubic:.2f} without detection")
        expect(prague / cubic > 2.5, f"rates are {prague:.1f} and {cubic:.1f} Mbit/s")
        expect_equal(detections(), 0, "detections")


@each({f"{name}_{mbit}_mbit_at_{ms}_ms_{'with_cubic' if cubic else 'alone'}_{noise}": (words, mbit, ms, cubic, noise)
       for name, words in L4S.items() for mbit in (4, 12, MBIT) for ms in (5, 20, 100) for cubic in (False, True)
       for noise in (NOISE if mbit == MBIT else ("still",))})
def prague_l4s_CASE_is_not_taken_for_classic(case):
    words, mbit, rtt_ms, cubic, noise = case
    with Bench(rtt_ms=rtt_ms) as net:
        tc("qdisc replace dev eth0 root handle 1: netem limit 100000 " +
           NOISE[noise].format(rtt_ms + 5 * (noise == "jitter")), net.rcv)
        net.limit(mbit, words)
        flows = [net.flow()]
        if cubic:
            flows.append(net.flow(cc="cubic", ecn=True))
        pump(5, *flows)
        got = rates(10, *flows)
        note(f"{', '.join(f'{rate:.1f}' for rate in got)} Mbit/s, {flows[0].info()['ce']} marks")
        expect(flows[0].info()["ce"] > 100, f"{flows[0].info()['ce']} marks: this bottleneck tells nothing")
        expect_equal(detections(), 0, "detections")


@on_accecn
def prague_classic_bottleneck_is_shown_and_left_again():
    """In ss and in the module's counter; and when the same bottleneck has become an L4S one."""
    with Bench(rtt_ms=20) as net:
        net.limit(20, CLASSIC["codel"])
        flow = net.flow()
        pump(0.3, flow)
        expect_equal((state(net, flow), detections()), (1, 0), "ce_state and detections after the first mark")
        pump(4, flow)
        expect_equal((state(net, flow), detections()), (2, 1), "ce_state and detections at codel")
        tc("qdisc replace dev down parent 1:10 handle 20: dualpi2", net.rtr)
        # At most 16 L4S looks, of a flow that saws now and has one in some ten round trips
        pump(15, flow)
        expect_equal((state(net, flow), detections()), (1, 1), "ce_state and detections at dualpi2")
        got = rates(2, flow)[0]
        note(f"{got:.2f} Mbit/s at dualpi2")
        expect(got > 19, f"it has {got:.2f} Mbit/s of 20 again")


if __name__ == "__main__":
    lib.main(prepare=prepare)
