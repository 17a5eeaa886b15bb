# SPDX-License-Identifier: GPL-2.0-only
"""Capacity traces in the format of Mahimahi, and four examples. Asks no kernel.

A line of a trace is one opportunity to send a packet of 1500 bytes: its time in milliseconds, not before that of the
line above. The trace repeats after its last time. The opportunity at time t belongs to the millisecond that ends at t;
0 counts as 1, so that each repetition has the same opportunities.
"""

import bisect
import io
import random
import re

from . import Trouble

PACKET_BYTES = 1500
# A day.
MS_MAX = 86_400_000
FILE_BYTES_MAX = 64 << 20


class Trace:
    """The times of all opportunities in ms, the last one being the length of the trace."""

    def __init__(self, times):
        self.times = [max(time, 1) for time in times]
        self.length_ms = self.times[-1]

    def bytes_until(self, ms):
        """What the link can send from the start until then."""
        rounds, rest = divmod(ms, self.length_ms)
        return PACKET_BYTES * (rounds * len(self.times) + bisect.bisect_right(self.times, rest))

    def rate(self, begin_ms, end_ms):
        """The mean rate in a time, bytes/s."""
        return (self.bytes_until(end_ms) - self.bytes_until(begin_ms)) * 1000 // (end_ms - begin_ms)


def _shown(text):
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return f"'{text if len(text) <= 100 else text[:97] + '...'}'"


def parse(data, name):
    """The trace in the bytes of a file. Trouble names the file, the line and the value."""
    times = []
    for number, line in enumerate(io.BytesIO(data), 1):
        text = line.decode("ascii", "replace").strip()
        where = f"{_shown(name)}, line {number}: {_shown(text)}"
        if not re.fullmatch("[0-9]{1,12}", text, re.A) or int(text) > MS_MAX:
            raise Trouble(f"{where} is not a time; write whole milliseconds, 0 to {MS_MAX}", 2)
        if times and int(text) < times[-1]:
            raise Trouble(f"{where} is before '{times[-1]}' in the line above; the times must not decrease", 2)
        times.append(int(text))
    if not times:
        raise Trouble(f"{_shown(name)} is empty; write one time in milliseconds per line, one for each 1500 bytes", 2)
    if not times[-1]:
        raise Trouble(f"{_shown(name)}, line {len(times)}: the last time is '0'; a trace lasts at least 1 ms", 2)
    return Trace(times)


def read(path):
    """The trace in a file."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise Trouble(f"cannot read {_shown(path)}: {getattr(error, 'strerror', None) or error}; for a first trace, "
                      "run: dualpi2 play --example lte >lte.trace") from error
    if len(data) > FILE_BYTES_MAX:
        raise Trouble(f"{_shown(path)} is longer than {FILE_BYTES_MAX >> 20} MiB; play a shorter part", 2)
    return parse(data, path)


# The examples are models made for this project, not recordings, and their numbers are our choice. They have only what
# makes such a link hard for a queue. A model yields pairs of milliseconds and the rate in that time, Mbit/s. No
# function of the C library is used, so that Python 3.9 to 3.14 print the same bytes.

def _noise(rng):
    return 2 * rng.random() - 1


def _lte(rng):
    """A car in an LTE network, 30 s: path loss over seconds, fading in slots of 20 ms, and a handover of 120 ms
    without capacity every 9 s. 1 to 45 Mbit/s.
    """
    path, fading = 18, 0
    for slot in range(1500):
        path += 0.02 * (18 - path) + 3 * _noise(rng)
        fading = 0.7 * fading + 4 * _noise(rng)
        yield 20, 0 if slot % 450 >= 444 else min(max(path + fading, 1), 45)


def _5g(rng):
    """A pedestrian in a 5G network, 20 s: 140 Mbit/s in the line of sight, for 2 s in the mean, and 20 Mbit/s behind
    an obstacle, for 0.3 s. The rate changes over some 40 ms and varies by 15 % in slots of 10 ms.
    """
    rate, clear = 140, True
    for _ in range(2000):
        clear = rng.random() >= 0.005 if clear else rng.random() < 0.03
        rate += 0.3 * ((140 if clear else 20) - rate)
        yield 10, rate * (1 + 0.15 * _noise(rng))


def _wifi(rng):
    """A busy Wi-Fi network, 20 s: aggregates of 8 to 42 packets, each at once, 2 to 11 ms from each other. Their size
    follows the rate of the radio, which changes every 0.5 s. About every 2 s another network takes 60 to 120 ms.
    """
    at, size = 0, 25
    while at < 20000:
        if rng.random() < 0.0025:
            gap = 60 + int(60 * rng.random())
        else:
            gap = 1 + int(10 * rng.random() * rng.random())
        if (at + gap + 1) // 500 > at // 500:
            size = min(max(size + int(24 * rng.random()) - 12, 8), 42)
        gap = min(gap, max(20000 - at - 1, 0))
        at += gap + 1
        yield gap, 0
        yield 1, 12 * size


def _satellite(rng):
    """A network of satellites in low orbits, 30 s: every 15 s another satellite, with 90 ms without capacity and then
    another rate of 40 to 160 Mbit/s, which varies by 8 % every 100 ms.
    """
    for _ in range(2):
        rate = 40 + 120 * rng.random()
        yield 90, 0
        yield 10, rate
        for _ in range(149):
            yield 100, rate * (1 + 0.08 * _noise(rng))


EXAMPLES = {"lte": _lte, "5g": _5g, "wifi": _wifi, "satellite": _satellite}


def example(name):
    """The times of an example."""
    times, at, credit = [], 0, 0
    for duration, rate in EXAMPLES[name](random.Random(name)):
        for _ in range(duration):
            at += 1
            credit += rate * 125
            while credit >= PACKET_BYTES:
                credit -= PACKET_BYTES
                times.append(at)
    return times
