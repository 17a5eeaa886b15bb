# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of ppv share: throughput-value functions in floating point, a wire on which each frame has a value.

Marks are read from the packets as they leave the device (lib_values.MarkTap), Identifications at the other end.
Distributions are compared by their maximum distance, with an error of the first kind of 1e-9. This is not the place
for the arithmetic of the meter and of functions (unit/).

DUALPI2_EXTRA is the directory with sch_ppv.ko and sch_csaqm.ko; TC_LIB_DIR has q_ppv.so.
"""

import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra
from lib_values import Wire, pack, tvf

import lib
from lib import expect, expect_equal, note

MBIT = 125000
# Figure 1 of the paper, in bytes per second and coded values: Gold is 10^8 / x for x Mbit/s; Silver half of its rate
# up to 10 Mbit/s, a quarter beyond; one decade of the value is 6553.5.
GOLD = [(1250, 65535), (125000000000, 13107)]
LINE = [(1000, 60000), (1000000000, 1000)]


def coded(points, rate):
    """TVF(rate): straight in logarithms between two points, flat outside of them."""
    if rate <= points[0][0]:
        return points[0][1]
    for (low, high_value), (high, low_value) in zip(points, points[1:]):
        if rate < high:
            return high_value - (high_value - low_value) * math.log(rate / low) / math.log(high / low)
    return points[-1][1]


def expect_law(values, points, rate, what=""):
    """The values are TVF(x) of x that are uniform in [0, rate]."""
    n = len(values)
    values = sorted(values)
    worst = 0
    # For each value: of all packets so many are at or below it, for which TVF^-1 is at or beyond a rate.
    steps = 400
    for step in range(1, steps):
        x = rate * step / steps
        edge = coded(points, x)
        # Values are rounded down, and logarithms to 16 bits.
        low = sum(1 for value in values if value < edge - 2)
        high = sum(1 for value in values if value <= edge + 2)
        want = n * (1 - step / steps)
        worst = max(worst, (low - want) / n, (want - high) / n)
    bound = math.sqrt(math.log(2e9) / 2 / n)
    note(f"{what}: {n} values, {values[0]}..{values[-1]}, distance {worst:.4f} of {bound:.4f}")
    expect(worst < bound, f"{what}: the distance of the distributions is {worst:.4f}, at most {bound:.4f}")


class PpvWire(Wire):
    """A wire with ppv; functions are {number: points}."""

    def __init__(self, functions=None, lines="", parent=None, **knobs):
        self.functions = functions or {}
        super().__init__("ppv", lines=lines, parent=parent, options=self.encoded(knobs, self.functions))

    @staticmethod
    def encoded(knobs, functions):
        return pack("ppv", **knobs) + b"".join(tvf(number, points) for number, points in functions.items())

    def __enter__(self):
        super().__enter__()
        try:
            self.watch()
        except BaseException:
            self.closing.close()
            raise
        return self

    def set(self, functions=None, **knobs):
        expect_equal(self.request(self.encoded(knobs, functions or {})), (0, ""), f"change of {knobs}")

    def child(self, kind, handle="30:", parent="10:1", options=None, flags=lib.NLM_F_CREATE | lib.NLM_F_REPLACE):
        """Another one below ppv."""
        expect_equal(lib_extra.request(self.netns, "w0", handle, parent, kind, options, flags), (0, ""),
                     f"add of {kind}")

    def values(self):
        """The lower halves of the marks of all that left."""
        return [mark & 0xffff for _, mark in self.marks()]

    def stream(self, rate, count, size=1000, **more):
        """A constant rate in bytes per second."""
        begun = time.monotonic()
        for n in range(count):
            left = begun + n * size / rate - time.monotonic()
            if left > 0:
                time.sleep(left)
            self.send(self.frame(size), **more)


def in_carry(case):
    return f"{case[0]}_in_{('mark', 'id')[case[1]]}"
