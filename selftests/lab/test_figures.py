#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of the figures that claims are about, on results that are made up: no machine runs. KTAP."""

import math
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import figures
from ktap import expect_equal as equal, main, test
from made import Made, job, raw

FIG6, DEPLOY, POLICY = ("fig6", "40mbit-10ms"), ("deploy", "l4s-cubic-2bdp"), ("vdq-policy", "1-each")
OFFERED = 50 * 1512 / 1470      # Mbit/s on the wire, of a payload of 50
HALF_LOST = {"A": {"drop": 50}, "B": {"drop": 50}, "U": {"drop": 50}}
ACCOUNT = {"presented": 1000, **{f"dropped-{cause}": 0 for cause in ("limit", "memory", "early", "aqm", "overload")}}
CASES = (  # figure, experiment and case, figures of the run, more for Made.run(), value
    # A packet lost in each of six seconds of 10,000; the first 5 s of a run do not count.
    ("l_drop", FIG6, {"A": {"dropped": 1}}, {}, 100 / 10001), ("l_drop", FIG6, {}, {}, 0),
    ("l_drop", DEPLOY, {"A": {"dropped": 1, "lost_at": 4}}, {}, 0),
    ("l_drop", DEPLOY, {"A": {"dropped": 1, "lost_at": 5}}, {}, 100 / 10001),
    ("l_drop", FIG6, {"A": {"drop": 9}, "B": {"drop": 30}}, {}, None),
    # By the qdisc's account, which knows the queue and the cause.
    ("l_drop", FIG6, {"A": {"dropped": 1}}, {"l4s": ACCOUNT}, 0),
    ("l_drop", FIG6, {"A": {"drop": 9}, "B": {"drop": 30}}, {"l4s": {**ACCOUNT, "dropped-overload": 90}}, 0),
    ("l_drop", FIG6, {}, {"l4s": {**ACCOUNT, "dropped-limit": 1, "dropped-memory": 2, "dropped-early": 4,
                                  "dropped-aqm": 8}}, 1.5),
    ("l_drop", FIG6, {}, {"l4s": {**ACCOUNT, "presented": 0}}, None),
    ("l_p50_over_native", FIG6, {"A": {"p50": 0.5}}, {}, 0.5),
    ("l_p50_over_native", ("fig6", "4mbit-10ms"), {"A": {"p50": 6.056}}, {}, 1),
    ("l_p50_over_native", ("fig8", "A5-alone-reno"), {}, {}, None),
    ("udp_points", ("fig12", "l4s-50mbit-cubic"), {"U": {"mbit": OFFERED + 2}}, {}, 2),
    ("udp_points", ("fig12", "l4s-100mbit-cubic"), {}, {}, None), ("udp_points", FIG6, {}, {}, None),
    # 2 (3.1953 * 1.2 ms - 0.15625 * 13.8 ms) of 10,000 packets: 33.6; nothing below 0.7 ms.
    ("coupled_over_bound", ("fig8", "A5-alone-reno"), {"all": {"max": 1.2}}, {"coupled": 33}, 33 / 33.562),
    ("coupled_over_bound", ("fig8", "A5-alone-reno"), {"all": {"max": 0.69}}, {"coupled": 0}, 0),
    ("coupled_over_bound", ("fig8", "A5-alone-reno"), {"all": {"max": 0.69}}, {"coupled": 1}, math.inf),
    ("coupled_over_bound", ("fig8", "A5-alone-reno"), {"all": {"max": 1.2}}, {}, None),
    ("coupled_over_bound", ("fig8", "A5-B5-reno"), {"all": {"max": 1.2}}, {"coupled": 33}, None),
    ("drops_in_overload", ("fig12", "l4s-200mbit-cubic"), HALF_LOST, {}, 1),
    ("drops_in_overload", ("fig12", "l4s-100mbit-cubic"), HALF_LOST, {}, None),
    ("marks_in_overload", ("fig12", "l4s-200mbit-cubic"), {"A": {"mark": 99.5}}, {}, 99.5),
    ("ect0_mark", ("deploy", "l4s-ecn-cubic-2bdp"), {"B": {"mark": 3}}, {}, 3), ("ect0_mark", DEPLOY, {}, {}, None),
    ("ect0_drop", ("deploy", "l4s-ecn-cubic-2bdp"), {"B": {"dropped": 1}}, {}, 100 / 10001),
    # Of 5 objects and one that did not end, those below 50 kB: 1, 3, 9, 27 kB took 0.05, 0.25, 0.45, 0.65 s.
    ("late_objects", ("fig9", "40mbit-10ms"), {}, {}, 50), ("late_objects", FIG6, {}, {}, None),
    ("gold_silver_l4s", POLICY, {"A-gold": {"flow_mbit": 40}, "A-silver": {"flow_mbit": 10}}, {}, 4),
    ("gold_silver_l4s", POLICY, {"A-gold": {"flow_mbit": 40}, "A-silver": {"flow_mbit": 9}}, {}, None),
    ("gold_silver_classic", POLICY, {"B-gold": {"flow_mbit": 30}, "B-silver": {"flow_mbit": 10}}, {}, 3),
    ("a_share", ("deploy-flows", "A5-B5"), {"A": {"flow_mbit": 8}}, {}, 0.8),
    ("a_share", ("fig7", "A0-B10-reno"), {}, {}, None),
    ("l_share", ("vdq-equal", "A10-B1"), {"A": {"flow_mbit": 100}}, {}, 1.1),
    ("c_share", ("vdq-equal", "A10-B10"), {"B": {"flow_mbit": 40}}, {}, 0.8),
    ("rate_ratio_b_a", FIG6, {"A": {"flow_mbit": 4}, "B": {"flow_mbit": 1}}, {}, 0.25),
    ("a_above_base_ms", DEPLOY, {"A": {"srtt_ms": 10.25}}, {}, 0.25), ("a_above_base_ms", DEPLOY, {}, {}, None),
    ("a_above_base_ms", ("fig7", "A0-B10-reno"), {}, {}, None),
    ("apart_mbit", FIG6, {"A": {"flow_mbit": 4}, "B": {"flow_mbit": 5}}, {}, 1),
    ("coupling", FIG6, {"A": {"mark": 25}, "B": {"drop": 1}}, {}, 1.25),
    ("delay_over_target", ("csaqm-cc", "dctcp-2-5ms-K2"), {}, {"aqm": "csaqm"}, 0.5),
    ("delay_over_target", ("csaqm-cc", "dctcp-2-5ms-K2"), {}, {"aqm": "step"}, None),
    ("highest_second_ms", FIG6, {}, {"delays": [1, 9, 2]}, 9),
    ("spread_ms", FIG6, {}, {"delays": [1, 3]}, math.sqrt(2)),
)


@test
def figures_have_the_value_that_they_are_called_by():
    for name, (experiment, case), given, more, wanted in CASES:
        with Made() as made:
            aqm = more.get("aqm", "vdq_csaqm" if "vdq" in experiment else "dualpi2")
            made.run(job(experiment, case, aqm), given, **{k: v for k, v in more.items() if k != "aqm"})
            got = figures.FIGURES[name][0](made.cells()[0].one)
        what = (name, case, given, got, wanted)
        assert (got is None) == (wanted is None), what
        assert got is None or math.isclose(got, wanted, rel_tol=1e-4, abs_tol=1e-9), what


@test
def peaks_after_a_slower_link_are_seen():
    def peaks(*delays, at=100):
        one = job("pi2-fig12", "100-20-100mbit")
        one["changes"][1]["at"] = at
        with Made() as made:
            place = made.run(one)
            if delays:
                raw(place, [d for delay, count in delays for d in [delay] * count])
            result = made.cells()[0].one
            return [figures.FIGURES[name][0](result) for name in ("peak_ms", "further_peaks")]
    equal(peaks((300, 1), (20, 499), (249, 5), (50, 10), (99, 3), (20, 9)), [249, 0])
    equal(peaks((20, 500), (249, 5), (50, 10), (101, 3), (20, 9)), [249, 1])
    equal(peaks(), [None, None])
    # What comes after the next change is another matter.
    equal(peaks((20, 500), (100, 50), (400, 3), at=55), [100, 0])


if __name__ == "__main__":
    main()
