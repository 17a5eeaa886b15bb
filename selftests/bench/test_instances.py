#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""The judge of idle instances can fail. KTAP on stdout."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

from ktap import expect_equal as equal, main, test  # noqa: E402

# What runs in a machine without any, in a minute.
NOISE = {"tick_nohz_handler": 15000, "delayed_work_timer_fn": 70, "vmstat_update": 60}
CHECKS = 6


def judged(ran=(), idle=60_000_000, cache=2048, busy=20_000_000, marks=6, options=("--ktap",)):
    """(exit code, stdout, stderr) of what was found with a thousand idle instances in a minute.

    ran: what ran, without noise; idle: instructions meanwhile, 50 million without instances; busy: those of 20 ms.
    """
    rest = {"seconds": 60, "instances": 1000, "ran": {**NOISE, **dict(ran)}, "counts": [4, 5]}
    none = {"seconds": 60, "instances": 1000, "ran": NOISE, "counts": [2, 3]}
    # At the boot there is more to do.
    busier = {**none, "ran": {**NOISE, "vmstat_update": 9999}, "counts": [0, 3]}
    result = {"bench": "instances", "kernel": "7.2", "seconds": 60, "most": 10000, "marks": marks,
              "busy": {"counts": [0, 1], "ns": 20_000_000}, "none": [busier, none],
              "pfifo": [["qdisc_alloc", 384, 512]],
              "kinds": {"pfifo": {"asks": [["qdisc_alloc", 384, 512]], "rest": {}, "memory": {"new": 0}},
                        "ours": {"asks": [["tcf_block_get_ext", 1264, 2048], ["qdisc_alloc", 2000, cache]],
                                 "rest": {"new": rest, "overload": rest}, "memory": {"new": 5000, "most": 5100},
                                 "shown": [10000, 30000, 9000, 1500]}}}
    counts = (10, 10 + busy, 100, 100 + 50_000_000, 200, 200 + idle)
    with tempfile.TemporaryDirectory() as where:
        paths = [os.path.join(where, name) for name in ("result", "counts")]
        for path, text in zip(paths, (json.dumps(result), "".join(f"{n}\n" for n in counts)), strict=True):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        done = subprocess.run([sys.executable, os.path.join(HERE, "instances.py"), "judge", *options, *paths],
                              text=True, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def failed(**found):
    """Names of the checks that fail."""
    code, text, error = judged(**found)
    equal(error, "")
    equal(text.count("\nok ") + text.count("\nnot ok "), CHECKS, text)
    names = [line.split(" ", 3)[3] for line in text.splitlines() if line.startswith("not ok ")]
    equal(code, 1 if names else 0)
    return names


@test
def rest_without_wakeups_passes():
    equal(failed(), [])
    # A kernel does not do the same in every minute.
    equal(failed(ran={"vmstat_update": 63, "neigh_periodic_work": 2}), [])


@test
def one_wakeup_of_a_qdisc_fails():
    for name in ("pie_timer [sch_pie]", "dualpi2_report_work [sch_dualpi2]", "qdisc_watchdog"):
        equal(failed(ran={name: 1}), ["no_wakeup_at_rest new on 7.2", "no_wakeup_at_rest overload on 7.2"])


@test
def work_under_another_name_fails_once_each_instance_did_it():
    equal(failed(ran={"vmstat_update": 60 + 999}), [])
    equal(len(failed(ran={"vmstat_update": 60 + 1000})), 2)
    # It stands for the work that it brings about.
    equal(failed(ran={"delayed_work_timer_fn": 5000}), [])


@test
def instructions_at_rest_beyond_the_bound_fail():
    # 0.1 % of a minute are 60 million.
    equal(failed(idle=110_000_000), [])
    equal(failed(idle=110_000_060), ["cpu_at_rest_at_most_0.1_percent new on 7.2",
                                     "cpu_at_rest_at_most_0.1_percent overload on 7.2"])


@test
def larger_cache_for_the_qdisc_fails():
    equal(failed(cache=4096), ["qdisc_and_private_data_from_a_cache_of_2048_bytes on 7.2"])


@test
def plugin_that_counts_wrong_fails():
    equal(failed(busy=20_030_000), ["plugin_counts_what_the_clock_does on 7.2"])
    text = "the plugin counted 6 times, not 7; run scripts/bench.sh instances again"
    equal(judged(marks=7), (1, "", f"bench: {text}\n"))


@test
def table_adds_the_pfifo_that_was_replaced():
    code, text, _ = judged(options=(), cache=4096)
    equal(code, 1)
    assert "| ours | 2,000 | 4,096 | 6,144 | 5,512 | - | 5,612 |" in text, text
    assert "| ours | new | 60 | 0.000 | 0.000 | 0.01667 |  |" in text, text
    assert "| ours | 10,000 | 30,000 | 9,000 | 1,500 |" in text and "| pfifo | - | - | - | - |" in text, text
    assert "FAILED: qdisc_and_private_data_from_a_cache_of_2048_bytes on 7.2" in text, text


if __name__ == "__main__":
    main()
