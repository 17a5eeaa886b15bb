#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Capacity traces without a kernel: reading, rates, the examples, and the errors of `dualpi2 play`. KTAP on stdout."""

import os
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../lib"), os.path.join(HERE, "../../tools")]

from ktap import each, expect, expect_between, expect_equal, main, test  # noqa: E402

from dualpi2 import Trouble, play, traces  # noqa: E402

TIME = " is not a time; write whole milliseconds, 0 to 86400000"
BAD = {
    "empty": (b"", "'x' is empty; write one time in milliseconds per line, one for each 1500 bytes"),
    "empty_line": (b"1\n\n2\n", "'x', line 2: ''" + TIME),
    "word": (b"1\nfast\n", "'x', line 2: 'fast'" + TIME),
    "fraction": (b"1.5\n", "'x', line 1: '1.5'" + TIME),
    "negative": (b"-1\n", "'x', line 1: '-1'" + TIME),
    "two_numbers": (b"1 2\n", "'x', line 1: '1 2'" + TIME),
    "digits_of_others": ("\u0663\n".encode(), "'x', line 1: '\ufffd\ufffd'" + TIME),
    "day_and_1_ms": (b"86400001\n", "'x', line 1: '86400001'" + TIME),
    "huge": (b"1\n" + b"9" * 5000, "'x', line 2: '" + 97 * "9" + "...'" + TIME),
    "binary": (b"\0\x1b[31m\n", "'x', line 1: '??[31m'" + TIME),
    "decreasing": (b"5\n7\n6\n", "'x', line 3: '6' is before '7' in the line above; the times must not decrease"),
    "without_time": (b"0\n0\n", "'x', line 2: the last time is '0'; a trace lasts at least 1 ms"),
}
# Length in ms, lines, checksum of the text, and steps of 50 ms without capacity.
EXAMPLES = {"lte": (30000, 45581, 2771085888, 6), "5g": (20000, 221493, 3561318532, 0),
            "wifi": (20000, 148615, 1824398208, 10), "satellite": (30000, 209035, 1565420105, 2)}
FIRST = "; for a first trace, run: dualpi2 play --example lte >lte.trace"
STEP = " is not a step; write a time from 10ms to 10s; see: dualpi2 play --help"
ARGUMENTS = {
    "trace_missing": ("eth0", 2, "dualpi2 play: TRACE is missing; see: dualpi2 play --help"),
    "trace_not_there": ("eth0 /nowhere", 1, "dualpi2: cannot read '/nowhere': No such file or directory" + FIRST),
    "trace_is_a_directory": ("eth0 /", 1, "dualpi2: cannot read '/': Is a directory" + FIRST),
    "trace_is_endless": ("eth0 /dev/zero", 2, "dualpi2: '/dev/zero' is longer than 64 MiB; play a shorter part"),
    "trace_is_empty": ("eth0 /dev/null", 2, "dualpi2: '/dev/null' is empty; write one time in milliseconds per line, "
                       "one for each 1500 bytes"),
    "step_short": ("eth0 x --step 9ms", 2, "dualpi2 play: --step: '9ms'" + STEP),
    "step_without_unit": ("eth0 x --step 50", 2, "dualpi2 play: --step: '50'" + STEP),
    "length_0": ("eth0 x --for 0", 2, "dualpi2 play: --for: '0' is not a time; write seconds, 0.001 to 86400; see: "
                 "dualpi2 play --help"),
    "example_misspelled": ("--example let", 2, "dualpi2 play: --example: invalid argument 'let' (did you mean 'lte'?); "
                           "allowed are lte, 5g, wifi, satellite; see: dualpi2 play --help"),
}


def dualpi2(*words):
    """(code, stdout, stderr)."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "../../tools/bin/dualpi2"), *words], text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@each(BAD)
def trace_CASE_is_rejected_in_one_line(name):
    data, message = BAD[name]
    try:
        traces.parse(data, "x")
    except Trouble as trouble:
        expect_equal((str(trouble), trouble.code), (message, 2))
    else:
        expect(False, "accepted")


@each(ARGUMENTS)
def argument_CASE_is_rejected_in_one_line(name):
    words, code, message = ARGUMENTS[name]
    expect_equal(dualpi2("play", *words.split()), (code, "", message + "\n"))


@test
def trace_repeats_after_its_last_time():
    trace = traces.parse(b"0\n2\r\n2\n5", "x")
    expect_equal([trace.bytes_until(ms) // 1500 for ms in range(12)], [0, 1, 3, 3, 3, 4, 5, 7, 7, 7, 8, 9])
    expect_equal(trace.bytes_until(5 * 10**9), 4 * 10**9 * 1500)


@test
def rates_of_the_steps_add_up_to_the_trace():
    trace = traces.Trace([3, 3, 40, 99, 120, 120, 121])
    for step in (1, 11, 50, 121, 1000):
        edges = [*range(0, 242, step), 242]
        # Rates are whole bytes per second.
        expect_between(sum(trace.rate(*pair) * (pair[1] - pair[0]) / 1000 for pair in zip(edges, edges[1:])),
                       14 * 1500 - 1, 14 * 1500 + 1e-6, f"bytes in steps of {step} ms")
    expect_equal([trace.rate(begin, begin + 1) for begin in (2, 3, 120)], [3 * 10**6, 0, 1500 * 1000])


@each(EXAMPLES)
def example_CASE_is_the_same_everywhere(name):
    code, printed, said = dualpi2("play", "--example", name)
    trace = traces.parse(printed.encode(), name)
    rates = [trace.rate(at, at + 50) for at in range(0, trace.length_ms, 50)]
    expect_equal((code, said), (0, ""))
    expect_equal((trace.length_ms, len(trace.times), zlib.crc32(printed.encode()), rates.count(0)), EXAMPLES[name])
    expect(max(rates) < 200e6 / 8, f"{max(rates)} bytes/s")


@test
def report_names_outages_late_steps_and_an_early_end():
    queue = {"packets": 0, "bytes": 0, "delay": None, "marked": 0, "dropped": dict.fromkeys(play.DROP_CAUSES, 1)}
    lines = play.text({
        "device": "eth0", "handle": "d50:", "complete": False, "seconds": 1.25, "step_ms": 50, "steps": 25,
        "skipped_steps": 2, "bits_per_second": {"minimum": 8000, "mean": 5e6, "maximum": 1e7}, "outage_seconds": 0.1,
        "capacity_bytes": 781250, "sent_bytes": 785000, "utilization": 1.0048, "restored_bits_per_second": 19000000,
        "queues": {"l4s": queue, "classic": queue}}).splitlines()
    expect_equal(lines, [
        "eth0 d50: 1.25 s, 25 steps of 50 ms, ended early",
        "rate: minimum 8.00 kbit/s, mean 5.00 Mbit/s, maximum 10.0 Mbit/s",
        "outages: 0.10 s, played at 8.00 kbit/s",
        "skipped: 2 steps, because this machine was late",
        "sent: 785 kB of 781 kB, utilization 100.5 %",
        "class    packets  mean  P50  P99  marked  dropped  at limits",
        "l4s            0     -    -    -       0        6          3",
        "classic        0     -    -    -       0        6          3",
        "restored: 19.0 Mbit/s"])


if __name__ == "__main__":
    main()
