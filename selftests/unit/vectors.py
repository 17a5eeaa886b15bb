#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Expected values for the unit tests, from the formulas of RFC 9332 in exact
rational arithmetic; writes a C header to standard output.

The header is generated at build time rather than committed: so there is one
source for a value, the formula here, and nobody can edit a number to suit the
code.  It costs a fraction of a second and needs Python's standard library only.
The random inputs come from a fixed seed.

Probabilities are given in units of 2^-32 ("q32"), rounded to nearest, with a
tolerance in these units that each section derives.  Where it is 0 the value
must be exact.
"""

import math
import random
from fractions import Fraction as F

ONE = 2**32
NS = 10**9
U32_MAX = 2**32 - 1
GAIN_MAX = 2**31 - 1
TIME_MAX_US = U32_MAX // 1000

rnd = random.Random(9332)


def nearest(x):
    """Round half up."""
    return math.floor(x + F(1, 2))


def clamp(x, low, high):
    return max(low, min(high, x))


def magnitude(low, high):
    """Log-uniform integer."""
    return clamp(int(low * (high / low) ** rnd.random()), low, high)


def emit(name, fields, rows):
    print(f"static const struct {{ u64 {', '.join(fields)}; }} vec_{name}[] = {{")
    for row in rows:
        print("\t{ " + ", ".join(f"{int(value)}ULL" for value in row) + " },")
    print("};\n")


# Gain: n / 256 Hz is n/256 * 2^32 / 10^9 q32 per ns, kept times 2^24; exact to
# the nearest.
def gain_rows():
    for n in [*range(2000), *(2**i + d for i in range(11, 31) for d in (-1, 0, 1)),
              GAIN_MAX, *(rnd.randint(1, GAIN_MAX) for _ in range(2000))]:
        yield n, nearest(F(n, 256) * ONE * 2**24 / NS)


# p' += alpha * (cur - target) * elapsed / tupdate + beta * (cur - prev), clamped
# to 0..1; elapsed / tupdate counts as at most 8 (RFC 9332 A.1 figure 6; scaled
# by time, since alpha contains Tupdate).
#
# Tolerance: a gain is off by up to half a unit of 2^-24 q32 per ns, each product
# is cut by less than 1, and the ratio is cut to a multiple of 2^-16.  The first
# two errors of the integral are multiplied by the ratio.
def pi_row(alpha, beta, target_us, tupdate_us, elapsed, base, prev, cur):
    capped = min(cur, U32_MAX)
    ratio = min(F(elapsed, tupdate_us * 1000), F(8))
    ratio_error = ratio - F(math.floor(ratio * 2**16), 2**16)
    d_target = capped - target_us * 1000
    d_prev = capped - prev
    once = F(alpha, 256) * F(d_target, NS) * ONE
    exact = base + once * ratio + F(beta, 256) * F(d_prev, NS) * ONE
    tolerance = (ratio * (F(abs(d_target), 2**25) + 1) + abs(once) * ratio_error
                 + 1 + F(abs(d_prev), 2**25) + 1 + 1)
    return (alpha, beta, target_us, tupdate_us, elapsed, base, prev, cur,
            nearest(clamp(exact, 0, ONE)), math.ceil(tolerance))


def pi_rows():
    ms = 10**6
    # Steady operation at the defaults: +-1 ms around the target.
    for base in (0, ONE // 10, ONE // 4, ONE // 2, ONE):
        for prev in range(13, 18):
            for cur in range(13, 18):
                yield pi_row(41, 819, 15000, 16000, 16 * ms, base, prev * ms, cur * ms)
    # Jumps, default gains and those for RTT_max = 1 ms (alpha 33.3 Hz, beta 300 Hz).
    for alpha, beta in ((41, 819), (8533, 76800)):
        for base in (0, ONE // 3, ONE):
            for prev in (0, 3 * ms, 15 * ms, 299 * ms, 400 * ms, U32_MAX):
                for cur in (0, 3 * ms, 15 * ms, 298 * ms, 300 * ms, 320 * ms, 400 * ms,
                            U32_MAX, U32_MAX + 1, 5 * NS, 2**63, 2**64 - 1):
                    for periods in (1, 3, 8, 9, 1000):
                        yield pi_row(alpha, beta, 15000, 16000, periods * 16 * ms, base, prev, cur)
    # Anything.
    for _ in range(4000):
        tupdate_us = magnitude(100, TIME_MAX_US)
        yield pi_row(magnitude(1, GAIN_MAX), magnitude(1, GAIN_MAX), magnitude(1, TIME_MAX_US),
                     tupdate_us, int(tupdate_us * 1000 * rnd.uniform(1, 10)),
                     rnd.randint(0, ONE), magnitude(1, U32_MAX), magnitude(1, 2 * U32_MAX))
    # Small gains and delays, so that the result is mostly between 0 and 1.
    for _ in range(4000):
        tupdate_us = magnitude(100, 10**6)
        yield pi_row(magnitude(1, 1000), magnitude(1, 10000), magnitude(1, 10**5), tupdate_us,
                     int(tupdate_us * 1000 * rnd.uniform(1, 8)), rnd.randint(0, ONE),
                     magnitude(1, 20 * ms), magnitude(1, 20 * ms))


# p_C = p'^2, cut.
def square_rows():
    for p in [0, 1, 2, 65535, 65536, 65537, ONE // 2, ONE - 1, ONE,
              *(rnd.randint(0, ONE) for _ in range(1000))]:
        yield p, p * p // ONE


# p_CL = min(k p', 1), exact.
def coupled_rows():
    for k in range(1, 256):
        for p in (0, 1, ONE // k - 1, ONE // k, ONE // k + 1, ONE // (k + 1), ONE - 1, ONE,
                  rnd.randint(0, ONE), rnd.randint(0, ONE // k)):
            yield k, clamp(p, 0, ONE), min(k * clamp(p, 0, ONE), ONE)


# (p / k)^2 of RFC 9332 equation (1).  p/k may be off by 3: 1/k and the quotient
# are cut, and one bit of p; hence the square by 2 * 3 + 1.
def over_k_rows():
    for k in range(1, 256):
        for p in (0, 1, 2, ONE // 2, ONE - 1, ONE, *(rnd.randint(0, ONE) for _ in range(4))):
            yield k, p, nearest(F(p, k) ** 2 / ONE), 7


# Overload begins where k p' = 1 and ends below 1/(k sqrt 2): p_C at 1/k^2 and
# 1/(2 k^2).  The first is exact (the least q32 that is not below), the second
# within 2^-16 of itself.
def overload_rows():
    for k in range(1, 256):
        yield k, -(-ONE // k)


# Native marker (RFC 9332 A.1, laqm): 0 up to minTh, 1 from maxTh on, linear
# between; centred on the threshold, nothing below 0 or above U32_MAX; 40 % of
# the threshold wide by default.  The slope is cut to a multiple of 2^-16 q32 per
# ns and the product is cut, hence the tolerance.
def ramp_rows():
    ramps = [(1000, None), (1000, 400), (1000, 0), (1000, 1), (1000, 2000), (1000, 2001), (1000, 5000),
             (0, None), (0, 0), (0, 100), (1, None), (1, 0), (2, None), (3, None), (5, None),
             (25, None), (TIME_MAX_US, None), (TIME_MAX_US, 0), (TIME_MAX_US, TIME_MAX_US),
             (1000, TIME_MAX_US), (0, TIME_MAX_US), (TIME_MAX_US, 1), (475, 525)]
    for _ in range(50):
        ramps.append((magnitude(1, TIME_MAX_US), magnitude(1, TIME_MAX_US)))
        ramps.append((magnitude(1, TIME_MAX_US), None))
    for thresh_us, ramp_us in ramps:
        width_us = thresh_us * 40 // 100 if ramp_us is None else ramp_us
        middle, half = thresh_us * 1000, width_us * 1000 // 2
        low, high = max(middle - half, 0), min(middle + half, U32_MAX)
        for delay in {0, 1, 800000, low - 1, low, low + 1, middle - 1, middle, middle + 1,
                      high - 1, high, high + 1, U32_MAX, U32_MAX + 1, 2**63, 2**64 - 1,
                      *(rnd.randint(low, high) for _ in range(10))}:
            if delay < 0:
                continue
            if delay <= low:
                exact, tolerance = 0, 0
            elif delay >= high:
                exact, tolerance = ONE, 0
            else:
                exact = F((delay - low) * ONE, high - low)
                tolerance = math.ceil(F(high - low, 2**16) + F(3, 2))
            yield (thresh_us, ramp_us is not None, ramp_us or 0, low, high, delay,
                   nearest(exact), tolerance)


# Two MTU for each packet of the limit, at most 2^32 - 1.
def memory_rows():
    for mtu in (1, 68, 82, 576, 1514, 9014, 65535, 65550, 2**24, 2**31 - 1, 2**31 + 13, U32_MAX):
        for limit in (1, 2, 1000, 10000, 2**20, 2**31, U32_MAX):
            yield mtu, limit, min(2 * mtu * limit, U32_MAX)


# On an idle link L4S is ahead by (l_weight - c_weight) MTU of credit; lengths
# count up to 2^24, weights are 1..99.  Given times -1.
def credit_rows():
    for mtu in (68, 82, 1500, 1514, 9014, 65535, 2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1,
                2**31 + 13, U32_MAX):
        for percent in range(51):
            c_weight = clamp(percent, 1, 99)
            yield mtu, percent, min(mtu, 2**24) * (100 - 2 * c_weight)


def main():
    print("/* Made by vectors.py; do not edit. */")
    emit("gain", ["hz256", "want"], gain_rows())
    emit("pi", ["alpha", "beta", "target_us", "tupdate_us", "elapsed_ns", "base", "prev_ns", "cur_ns",
                "want", "tol"], pi_rows())
    emit("square", ["p", "want"], square_rows())
    emit("coupled", ["k", "p", "want"], coupled_rows())
    emit("over_k", ["k", "p", "want", "tol"], over_k_rows())
    emit("overload", ["k", "enter"], overload_rows())
    emit("ramp", ["thresh_us", "is_set", "ramp_us", "min_ns", "max_ns", "delay_ns", "want", "tol"],
         ramp_rows())
    emit("memory", ["mtu", "limit", "want"], memory_rows())
    emit("credit", ["mtu", "percent", "want"], credit_rows())


if __name__ == "__main__":
    main()
