#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off needs=udp-prague
# suite: long kernel=7.2,ect1 needs=udp-prague
"""
test_prague_udp.py - TCP Prague and udp_prague, an L4S sender of other authors, in one L4S queue.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import lib
from lib import expect, expect_between, note
from lib_prague import Bench, pump, on_accecn, prepare
from udp_prague import need_udp_prague, udp_prague

MBIT = 20
FRAME_BITS = 1514 * 8        # as the qdisc counts a packet of either


@on_accecn
def prague_and_udp_prague_share_the_l4s_queue():
    """Within a factor of 1.25. With late_cut, Prague starves, which shows that this bottleneck tells them apart."""
    ratios = {}
    for late_cut in "NY":
        with Bench(rtt_ms=20, parameters=(f"late_cut={late_cut}",)) as net:
            net.limit(MBIT, "dualpi2")
            flow = net.flow()
            with udp_prague(net):
                pump(8, flow)
                before, bytes_before = flow.info(), lib.stats(net.rtr, "down", "10:")["l"]["enqueued_bytes"]
                pump(16, flow)
                after, bytes_after = flow.info(), lib.stats(net.rtr, "down", "10:")["l"]["enqueued_bytes"]
            tcp = (after["delivered"] - before["delivered"]) * FRAME_BITS / 16e6
            both = (bytes_after - bytes_before) * 8 / 16e6
            ratios[late_cut] = tcp / (both - tcp)
            note(f"late_cut={late_cut}: Prague {tcp:.2f}, both {both:.2f} Mbit/s, ratio {ratios[late_cut]:.2f}")
            expect(both > 0.95 * MBIT, f"both have {both:.2f} Mbit/s of {MBIT}")
    expect_between(ratios["N"], 0.8, 1.25, "rate of Prague's, of udp_prague's")
    expect(ratios["Y"] < 0.8, f"with late_cut the ratio is {ratios['Y']:.2f}: this bottleneck tells nothing")


def need_both():
    prepare()
    need_udp_prague()


if __name__ == "__main__":
    lib.main(prepare=need_both)
