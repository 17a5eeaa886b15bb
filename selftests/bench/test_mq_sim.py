#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""The shared clock in the simulator: rate, fairness and delay, next to cake_mq's rule. KTAP on stdout."""

import functools
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import mq_sim  # noqa: E402
from ktap import expect, expect_between as between, main, test  # noqa: E402

WORK = tempfile.TemporaryDirectory()
FOUR = ["C:0:10"] * 4


@functools.cache
def program():
    return mq_sim.build(WORK.name)


def run(mode, *flows):
    """1 Gbit/s, 4 queues, as long as in mq_sim.py's table; a horizon is 48 us, a packet 12 us."""
    return mq_sim.simulate(program(), mode, 1000, 4, flows, *mq_sim.times(1000))


@test()
def mq_sim_small_packets_of_others_cost_no_rate():
    flows = FOUR + [f"u:{i}:5:100" for i in range(1, 4)]
    between(run("mq", *flows)["use"][0], .999, 1.0005, "use with the shared clock")
    between(run("cake", *flows)["use"][0], .2, .3, "use with cake_mq's rule")


@test()
def mq_sim_three_flows_in_a_queue_get_as_much_each_as_one_alone():
    flows = ["C:0:10"] * 3 + ["C:1:10"]
    rates = mq_sim.means(run("mq", *flows))
    between(max(rates.values()) / min(rates.values()), 1, 1.15, "ratio with the shared clock")
    rates = mq_sim.means(run("cake", *flows))
    between(rates["C1"] / rates["C0"], 2.5, 3.5, "ratio with cake_mq's rule")


@test()
def mq_sim_l4s_delay_is_near_that_of_one_instance():
    flows = ("L:0:10", "L:1:10", "C:2:10", "C:3:10")
    one, many = run("one", *flows), run("mq", *flows)
    # two horizons of 48 us
    expect(many["l_wait"][1] <= min(one["l_wait"][1] + 96, 150), f"P99 {many['l_wait'][1]} us, one {one['l_wait'][1]}")
    expect(run("cake", *flows)["l_wait"][1] > 500, "cake_mq's rule is as good")
    between(many["use"][0], .999, 1.0005, "use")


@test()
def mq_sim_overload_by_l4s_leaves_classic_a_part():
    result = run("mq", "U:0:600", "U:1:600", "C:2:10")
    between(result["use"][0], .999, 1.0005, "use")
    expect(mq_sim.means(result)["C2"] > 1, f"Classic gets {mq_sim.means(result)['C2']} Mbit/s")


@test()
def mq_sim_behind_the_clock_no_more_than_the_bound():
    flows = FOUR + [f"u:{i}:500:1500:1:3" for i in range(1, 4)]
    # The header's bound: Classic ticket, L4S ticket, debts, a packet for each queue and class, early ones. No timer is
    # later than 108 us, in which the link makes up for as much, and each queue for its ticket of 48 us at most.
    between(run("mq", *flows)["behind"][1], 0, 48 + 24 + 24 + 8 * 12 + 2 * 2 + 108 + 48, "us behind")


if __name__ == "__main__":
    sys.exit(main())
