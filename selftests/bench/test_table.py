#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""The judges of the bench can say no. KTAP on stdout."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lab", "lib")]

import cost  # noqa: E402
import rate  # noqa: E402
import table  # noqa: E402
from ktap import expect_equal as equal, main, test  # noqa: E402


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


def judged_companions(costs):
    """The same where vdq_csaqm costs so much, pfifo 1000 and dualpi2 with its shaper 200 more."""
    return judged_of({"bench": "companions", "kernel": "7.2", "loads": {
        "below prio": {"pfifo": [1000, 1003], "dualpi2": [1150, 1150], "vdq_csaqm": [1000 + costs, 1003 + costs]},
        "below prio: bandwidth 1tbit": {"dualpi2": [1201, 1200]}}}, "--ktap")


@test
def companion_is_held_against_twice_dualpi2_with_its_shaper():
    code, text = judged_companions(400)
    equal((code, text.count("\nok ")), (0, 2), text)
    assert "| 1150 (+150) | 1400 (+400) | 1200 (+200) | pfifo | 2.00 | 3.0 |" in text, text
    code, text = judged_companions(401)
    equal(code, 1)
    assert "\nnot ok 1 vdq_csaqm_costs_at_most_2_of_dualpi2 below prio on 7.2" in text, text


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


def compared(**loads):
    """(exit code, output) of table.py for made-up counts of all qdiscs, {load with _: {qdisc: counts}}."""
    return judged_of({"bench": "compare", "kernel": "7.2.12+deb14-amd64", "loads": LOADS | loads})


def with_baseline(saved, counted, *options):
    """(exit code, output, what is in the baseline then) of table.py for dualpi2 and a pfifo that costs 2000."""
    with tempfile.TemporaryDirectory() as place:
        baseline, result = os.path.join(place, "baseline.json"), os.path.join(place, "check.json")
        if saved is not None:
            with open(baseline, "w", encoding="utf-8") as file:
                file.write(saved if isinstance(saved, str) else json.dumps(saved))
        with open(result, "w", encoding="utf-8") as file:
            json.dump({"bench": "check", "kernel": "6.1.0-56-amd64", "loads": {
                load: {"pfifo": [2001, 2000, 1995], "dualpi2": [2000 + over, 2003 + over, 1996 + over]}
                if "waiting" in load else {"pfifo": [2000, 2008], "dualpi2": [2004 + over, 2000 + over]}
                for load, over in counted.items()}}, file)
        where = ["--save-baseline", baseline] if "--save" in options else ["--baseline", baseline]
        done = subprocess.run([sys.executable, os.path.join(HERE, "table.py"), "--ktap", *where, result], text=True,
                              capture_output=True, check=False)
        if os.path.exists(baseline):
            with open(baseline, encoding="utf-8") as file:
                saved = file.read()
    return done.returncode, done.stdout + done.stderr, saved


def baseline(**loads):
    """A baseline of Linux 6.1."""
    return {"6.1": {"release": "6.1.0-55-amd64", "over_pfifo": loads}}


LOADS = {
    "root, queue empty, Classic": {"no qdisc": [1700, 1702], "pfifo": [1900, 1900], "codel": [1950, 1950],
                                   "dualpi2": [2300, 2300]},
    "below prio, queue empty, Classic": {"pfifo": [2000, 2000], "codel": [2150, 2151], "dualpi2": [2401, 2400]},
    "below prio, queue empty, L4S": {"pfifo": [2000, 2000], "codel": [2150, 2151], "dualpi2": [2451, 2450]},
    "below prio, queue empty, Classic: no_nqb": {"dualpi2": [2390, 2390]},
    "below prio, queue empty, L4S: no_nqb": {"dualpi2": [2455, 2456]},
    "root, queue empty, L4S": {"no qdisc": [1700, 1700], "pfifo": [1900, 1900], "dualpi2": [2310, 2310]},
    "root, queue empty, Classic: bypass": {"dualpi2": [2050, 2050]},
    "root, queue empty, L4S: bypass": {"dualpi2": [2070, 2070]},
}


@test
def qdiscs_are_held_against_no_qdisc_at_the_root_and_pfifo_below():
    code, text = compared()
    equal(code, 0, text)
    assert ("\n| root, queue empty, Classic | 1700 | 1900 (+200)* | 1950 (+250)* | 2300 (+600) | no qdisc | 2.0 |\n"
            in text), text
    assert "\n| below prio, queue empty, Classic | - | 2000 | 2150 (+150) | 2400 (+400) | pfifo | 1.0 |\n" in text, text
    assert "\n| no_nqb | -10 | +5 | 1.0 |\n| bypass (root) | -250 | -240 | 0.0 |\n" in text, text
    assert "Left out: fq_codel, pie, fq, cake, in-tree." in text, text


@test
def figures_that_do_not_repeat_are_refused():
    code, _ = compared(**{"below htb, queue empty, L4S": {"pfifo": [2000, 2010], "dualpi2": [2500, 2500]}})
    equal(code, 0)
    code, text = compared(**{"below htb, queue empty, L4S": {"pfifo": [2000, 2010.1], "dualpi2": [2500, 2500]}})
    equal(code, 1)
    assert "Does not repeat: pfifo, below htb, queue empty, L4S: 2000.0 to 2010.1 instructions" in text, text
    assert "FAILED: figures_repeat_within_0.5_per_cent on 7.2" in text, text


@test
def bars_of_the_plot_are_over_pfifo_the_cheapest_first():
    equal(table.bars({"loads": LOADS}, "below prio, queue empty"),
          [("codel", {"Classic": 150, "L4S": 150}), ("dualpi2", {"Classic": 400, "L4S": 450})])


@test
def module_dearer_than_the_baseline_fails():
    equal(with_baseline(baseline(a=300, b=50), {"a": 306, "b": 52})[0], 0)
    code, text, _ = with_baseline(baseline(a=300, b=50), {"a": 306.1, "b": 52})
    equal(code, 1)
    assert "\nnot ok 1 costs_no_more_than_the_baseline a on 6.1" in text and "\nok 2 " in text, text
    assert "\n# | a | 300.0 | 306.1 | +6.1 (+2.0 %) |\n" in text and "Cheaper" not in text, text
    # What costs as much has another last digit in each run, which the log of a test shall not have.
    equal("| b |" in text, False, text)
    # Below 2 instructions nothing is certain.
    code, text, _ = with_baseline(baseline(a=300, b=50), {"a": 300, "b": 52.1})
    equal((code, "\nnot ok 2 " in text), (1, True), text)


@test
def module_dearer_where_packets_wait_may_have_been_interrupted_once_more():
    loads = {"b, 100 packets waiting": 245}
    equal(with_baseline(baseline(**loads), {"b, 100 packets waiting": 257})[0], 0)
    equal(with_baseline(baseline(**loads), {"b, 100 packets waiting": 257.1})[0], 1)


@test
def module_cheaper_than_the_baseline_passes_and_asks_for_a_new_one():
    equal("Cheaper" in with_baseline(baseline(a=300, b=50), {"a": 294, "b": 48})[1], False)
    code, text, _ = with_baseline(baseline(a=300, b=50), {"a": 293.9, "b": 50})
    equal(code, 0)
    assert "Cheaper than the baseline: a. Save it: scripts/bench.sh compare --save-baseline --kernel 6.1" in text, text


@test
def unfit_baselines_are_refused():
    for saved, want in ((None, "no baseline in"), ("", "is no baseline"), ("[]", "is no baseline"),
                         ('{"6.1": {"release": 1}}', "is no baseline"), (baseline(), "is no baseline"),
                         (baseline(a="1"), "is no baseline"),
                         ({"7.2": baseline(a=1)["6.1"]}, "the baseline knows Linux 7.2, not 6.1"),
                         (baseline(b=1), "is of other loads"), (baseline(a=1, b=1), "is of other loads")):
        code, text, _ = with_baseline(saved, {"a": 1})
        equal((code, want in text, "compare --save-baseline" in text, text.count("\n")), (1, True, True, 1), text)


@test
def baseline_keeps_the_other_kernels():
    was = {"7.2": {"release": "7.2.12", "over_pfifo": {"a": 1}}}
    code, text, saved = with_baseline(was | baseline(a=5), {"a": 7.04}, "--save")
    equal((code, json.loads(saved)), (0, was | {"6.1": {"release": "6.1.0-56-amd64", "over_pfifo": {"a": 7.0}}}), text)
    equal(with_baseline(None, {"a": 7}, "--save")[0], 0)
    # Figures that do not repeat are none to be held against.
    code, _, saved = with_baseline(None, {"a": -1800}, "--save")
    equal((code, saved), (1, None))


def bench(*args):
    """(exit code, what it says on stderr) of bench.sh."""
    done = subprocess.run([os.path.join(HERE, "../../scripts/bench.sh"), *args], text=True, capture_output=True,
                          check=False)
    return done.returncode, done.stderr


@test
def what_the_bench_cannot_do_is_refused_in_one_line():
    for args, said in ((("compare", "--without", "pfifo"), "'pfifo' cannot be left out; use codel"),
                        (("compare", "--repeat", "0"), "'0' is no number of repetitions"),
                        (("check", "--repeat", "1"), "use --repeat 2 at least"),
                        (("compare", "--ktap"), "--ktap is not for compare"),
                        (("compare", "--without"), "--without needs a value"),
                        (("compare", "--before", "HEAD"), "--before is not for compare"),
                        (("check", "--save-baseline"), "--save-baseline is not for check"),
                        (("check", "--without", "fq"), "--without is not for check"),
                        (("check", "--kernel", "5.10"), "the baseline knows Linux"),
                        (("compare", "--save-baseline", "--without", "fq"), "leave --without out"),
                        (("compare", "--kernel", "debug"), "use a stock kernel like 7.2"),
                        (("check", "--kernel", "plain"), "use a stock kernel like 7.2"),
                        (("compare", "--loud"), "unknown argument '--loud'"), (("cost",), "usage: bench.sh")):
        code, text = bench(*args)
        equal((code, said in text), (1, True), f"{args}: {text}")
        equal(len([line for line in text.splitlines() if "bench" in line]), 1, text)


@test
def figures_are_counted_in_virtual_time_only():
    done = subprocess.run([sys.executable, os.path.join(HERE, "cost.py"), "pfifo=qdisc:pfifo"], text=True,
                          capture_output=True, check=False, env={})
    equal((done.returncode, done.stderr),
          (1, "bench: instructions can only be counted in virtual time; start this by scripts/bench.sh\n"))


@test
def packets_are_well_formed():
    for data, protocol, length in ((cost.frame("l4s", 64), 17, 64), (cost.frame("classic"), 17, 1000),
                                   (cost.gso_frame("l4s")[10:], 6, 54 + 10 * 1448)):
        equal((len(data), data[23], int.from_bytes(data[16:18], "big")), (length, protocol, length - 14))
        total = sum(int.from_bytes(data[n:n + 2], "big") for n in range(14, 34, 2))
        equal((total & 0xffff) + (total >> 16), 0xffff)


@test
def each_load_is_for_whom_it_says_something():
    def who(load):
        return [what for what in ("none", "qdisc:pfifo", "qdisc:codel", "qdisc:cake", "in-tree:x.ko", "x.ko")
                if cost.suits(cost.compare_loads()[load], what)]
    equal(who("root, queue empty, L4S"), ["none", "qdisc:pfifo", "qdisc:codel", "qdisc:cake", "in-tree:x.ko", "x.ko"])
    equal(who("below mq, queue empty, L4S"), ["qdisc:pfifo", "qdisc:codel", "qdisc:cake", "in-tree:x.ko", "x.ko"])
    equal(who("below prio, queue empty, GSO of 10 split, L4S"), ["qdisc:pfifo", "qdisc:cake", "in-tree:x.ko", "x.ko"])
    equal(who("below prio, queue empty, L4S: no_nqb"), ["x.ko"])
    quiet = cost.options_of(cost.Load("prio", "l4s", options="step_thresh 9p"), "dualpi2", 10)
    equal(quiet.split(), "limit 11 memlimit 500mb target 4s tupdate 4s step_thresh 9p".split())


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
    main()
