#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: long kernel=plain
"""How much of the rate dualpi2_mq, cake_mq, mq with one dualpi2 per queue, and one dualpi2 use, in one run.

UDP saturates one transmit queue of four; the other three send 100-byte packets now and then. The plain kernel has
cake_mq, and computing takes no time on it.
"""
import json
import time

import lib
from lib import NLM_F_CREATE, NLM_F_REPLACE, RTM_NEWQDISC, Stream, expect_between, note, pack, run, tc, tc_request, test
from netlink import attr
from mq import QUEUES, mq_net

RATE = 100e6
SECONDS, WARMUP = 4, 1
TCA_CAKE_BASE_RATE64 = 2
# Bit/s of each of the three other queues.
OTHERS = (0, 0.1e6, 0.5e6, 5e6)


def attach(net, kind):
    """One qdisc, or one for each queue with its part of the rate."""
    whole, part = pack(bandwidth=int(RATE / 8)), pack(bandwidth=int(RATE / 8 / QUEUES))
    requests = {
        "dualpi2_mq": [("root", "10:", "dualpi2_mq", whole)],
        "cake_mq": [("root", "10:", "cake_mq", attr(TCA_CAKE_BASE_RATE64, int(RATE / 8).to_bytes(8, "little")))],
        "mq + dualpi2": [("root", "10:", "mq", None)] + [(f"10:{n + 1}", f"{n + 20}:", "dualpi2", part)
                                                         for n in range(QUEUES)],
        "dualpi2": [("root", "10:", "dualpi2", whole)],
    }[kind]
    for parent, handle, name, options in requests:
        error, text = tc_request(net.rtr, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, "down", handle, parent, name,
                                 options)
        if error:
            raise lib.Failure(f"{name}: {error}: {text}")


def sent_bytes(net):
    """What rtr's `down` has sent."""
    return json.loads(run("ip -s -j link show dev down", net.rtr).stdout)[0]["stats64"]["tx"]["bytes"]


def used(net, kind, bps):
    """The part of the rate that arrives after the warm-up."""
    attach(net, kind)
    try:
        tc("qdisc add dev down clsact", net.rtr)
        for number in range(QUEUES):
            tc(f"filter add dev down egress protocol ip flower ip_proto udp dst_port {5000 + number} "
               f"action skbedit queue_mapping {number}", net.rtr)
        streams = [Stream("heavy", bps=1.5 * RATE, size=1514)]
        streams += [Stream(f"light{n}", bps=bps, size=114) for n in range(QUEUES - 1) if bps]
        running = net.start(SECONDS, *streams)
        time.sleep(WARMUP)
        before, begun = sent_bytes(net), time.monotonic()
        time.sleep(SECONDS - WARMUP - .5)
        sent, seconds = sent_bytes(net) - before, time.monotonic() - begun
        running.wait()
        return sent * 8 / seconds / RATE
    finally:
        tc("qdisc del dev down clsact", net.rtr, check=False)
        tc("qdisc del dev down root", net.rtr)


@test()
def mq_uses_the_whole_rate_with_unequal_demand():
    net = mq_net()
    kinds = ("dualpi2_mq", "cake_mq", "mq + dualpi2", "dualpi2")
    note("| Mbit/s of each other queue | " + " | ".join(kinds) + " |")
    note("|---:|" + "---:|" * len(kinds))
    worst = 1
    for bps in OTHERS:
        found = [used(net, kind, bps) for kind in kinds]
        note(f"| {bps / 1e6:g} | " + " | ".join(f"{part:.2%}" for part in found) + " |")
        worst = min(worst, found[0])
    expect_between(worst, .999, 1.001)


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
