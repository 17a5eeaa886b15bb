#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The judges of the bench can say no. KTAP on stdout."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lab"))

import harness  # noqa: E402
import rate  # noqa: E402
from harness import equal, test  # noqa: E402


def judged_of(result, *options):
    """(exit code, output) of table.py for a result."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(result, file)
        file.flush()
        done = subprocess.run([sys.executable, os.path.join(HERE, "table.py"), *options, file.name], text=True,
                              capture_output=True, check=False)
    equal(done.stderr, "")
    return done.returncode, done.stdout


def judged(*options, **loads):
    """(exit code, output) of table.py for made-up counts, {load: (with statistics, without)}."""
    return judged_of({"kernel": "7.2", "packets": 9, "loads": {
        load: {"now": [now + 3, now], "no-stats": [without, without + 5]} for load, (now, without) in loads.items()
    }}, *options)


def judged_shaper(ours, cakes):
    """(exit code, output) of table.py where the shapers cost so much."""
    return judged_of({"bench": "shaper", "kernel": "7.2", "loads": {"waiting": {
        "dualpi2, none": [1000, 1003], "dualpi2, shaper": [1000 + ours, 1009 + ours],
        "cake, none": [2000, 2001], "cake, shaper": [2000 + cakes, 2000 + cakes]}}}, "--ktap")


@test
def cost_within_the_bound_passes():
    code, text = judged("--ktap", empty=(115, 100), waiting=(110, 99))
    equal((code, text.count("\nok ")), (0, 2), text)
    assert "13.0 instructions per packet on average, 15.0 at most (empty); 15 allowed" in text, text


@test
def cost_beyond_the_bound_under_one_load_fails():
    code, text = judged("--ktap", empty=(115.1, 100), waiting=(110, 99))
    equal(code, 1)
    assert "\nnot ok 1 statistics_cost_at_most_15_instructions" in text and "\nok 2 " in text, text
    code, text = judged("--most", "16", empty=(115.1, 100))
    equal((code, "FAILED" in text), (0, False))


@test
def module_that_saves_nothing_without_statistics_fails():
    code, text = judged("--ktap", empty=(115, 100), waiting=(100, 100))
    equal(code, 1)
    assert "\nok 1 " in text and "\nnot ok 2 module_without_statistics_is_cheaper" in text, text


@test
def shaper_that_costs_as_much_as_cakes_passes_and_more_fails():
    code, text = judged_shaper(500, 500)
    equal(code, 0)
    assert "\n# | waiting | shaper | 1000 | 1500 | +500 | 2000 | 2500 | +500 | 1.00 | 9 |" in text, text
    code, text = judged_shaper(501, 500)
    equal(code, 1)
    assert "\nnot ok 1 shaper_costs_no_more_than_cakes waiting: shaper on 7.2" in text, text


RATE = 1e6  # bytes/s: 1000 bytes take 1 ms
MS = 10 ** 6


def left(*times_ms, length=1000, arrived=0):
    """Departures of packets of one length."""
    return [(round(t * MS), length, arrived) for t in times_ms]


@test
def rate_error_is_of_the_times_when_a_packet_waited():
    equal(rate.rate_error_pct(left(0, 1, 2, 3), RATE), (0.0, 100.0))
    error, waited = rate.rate_error_pct(left(0, 2, 4), RATE)
    assert abs(error + 50) < 1e-9 and waited == 100, (error, waited)
    error, _ = rate.rate_error_pct(left(0, 0.998, 1.996), RATE)
    assert 0.2 < error < 0.201, error
    # Of another length each: what counts is the one that left before.
    equal(rate.rate_error_pct([(0, 2000, 0), (2 * MS, 500, 0), (2.5 * MS, 1500, 0)], RATE)[0], 0.0)
    # The second one comes when the link is idle.
    equal(rate.rate_error_pct([(0, 1000, 0), (5 * MS, 1000, 5 * MS), (6 * MS, 1000, 5 * MS)], RATE), (0.0, 50.0))
    equal(rate.rate_error_pct([(0, 1000, 0), (5 * MS, 1000, 5 * MS)], RATE), (None, 0.0))


@test
def burst_is_what_leaves_beyond_the_rate():
    equal(rate.burst(left(0, 1, 2, 3), RATE), (1.0, 0.0))
    packets, early = rate.burst(left(0, 0, 1, 2), RATE)
    assert abs(packets - 2) < 1e-9 and abs(early - MS) < 1e-3, (packets, early)
    # After an idle time of 7 ms, three at once.
    packets, _ = rate.burst(left(0, 1, 9, 9, 9, 10), RATE)
    assert abs(packets - 3) < 1e-9, packets
    # A late one is made good of.
    _, early = rate.burst(left(0, 1.0005, 2, 3), RATE)
    assert abs(early - 500) < 1e-3, early


@test
def inexact_shapers_are_not_good():
    exact = {"error_pct": -0.1, "waited_pct": 100.0, "burst": 1.5, "early_ns": 1000.0}
    assert rate.good(exact)
    for worse in ({"error_pct": 0.101}, {"error_pct": -0.101}, {"waited_pct": 49.0}, {"early_ns": 1001.0}):
        assert not rate.good(exact | worse), worse


@test
def lengths_on_the_link_are_those_of_its_frames():
    lengths = {name: [function(ip) for ip in (28, 46, 1500)] for name, function in rate.FRAMINGS.items()}
    equal(lengths, {"": [42, 60, 1514], "docsis": [64, 64, 1518], "pppoe-llcsnap": [106, 106, 33 * 53],
                    "pppoe-ptm": [59, 78, 1554]})


if __name__ == "__main__":
    sys.exit(harness.main())
