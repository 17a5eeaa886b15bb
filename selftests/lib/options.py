# SPDX-License-Identifier: GPL-2.0-only
"""The options of dualpi2, for tests that go through all of them: from the list of options (option_list.py).

    OPTIONS["target"]       Option(name="target", ext=False, number=3, format="I", min=1, max=4294967,
                            default=15000, or_zero=False, word="target", range="1 us to 4294967 us")
    outside(option)         values that its attribute can hold and the kernel must reject
    some_value(rng, option) a value that the kernel must accept

Names are as in the uapi header, in lower case; word and range are those of the kernel's messages.  A default of None
follows from other options.  Tests of the ranges themselves need a table that does not come from the module: that of
net/messages.py; net/test_netlink.py fails if this one differs.
"""

import struct
from collections import namedtuple

import option_list
from netlink import EXT_KNOBS, KNOBS, Header

Option = namedtuple("Option", "name ext number format min max default or_zero word range")


def limits(option):
    """Minimum and maximum that the attribute can hold."""
    bits, signed = 8 * struct.calcsize("=" + option.format), option.format.islower()
    return (-1 << bits - 1, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def outside(option):
    """Values outside of the range, and at and between the ends of what the attribute can hold."""
    low, high = limits(option)
    some = {option.min - 1, option.max + 1, 0, 1, (high + 1) // 2, low, high}
    return sorted(value for value in some if low <= value <= high and not option.min <= value <= option.max and
                  not (option.or_zero and value == 0))


def some_value(rng, option):
    """Half of them near the ends, where arithmetic breaks."""
    low, high = option.min, option.max
    if rng.random() < 0.5:
        return rng.choice((low, min(low + 1, high), max(high - 1, low), high))
    return int(low + (high - low) * rng.random() ** 4)


def _range(row):
    """As the messages have it."""
    if row.macro == "CHOICE":
        return row.range
    low, high, unit = row.min, row.max, row.unit
    return {
        "FROM_TO": f"{low}{unit} to {high}{unit}", "TO": f"{low} to {high}{unit}",
        "AT_MOST": f"at most {high}{unit}", "AT_LEAST": f"at least {low}{unit}",
        "ZERO_OR_AT_LEAST": f"0, or at least {low}{unit}",
        "UNLIMITED_OR_TO": f"0 (unlimited), or {low} to {high}{unit}",
        "TEXT": unit, "ANY": None}[row.range]


def _options():
    source = Header(option_list.PATH)
    for row in option_list.rows(source.text):
        if row.macro not in ("VALUE", "CHOICE"):
            continue
        name = {"REPORT": "overload_report"}.get(row.attr, row.attr.lower())
        number, form = (EXT_KNOBS if row.ext else KNOBS)[name]
        value = row.macro == "VALUE"
        low, high, default = (source.number(text) for text in (row.min, row.max, row.default))
        if value and row.kind == "DSCPS":
            high = (2 << high) - 1
        or_zero = value and row.zero in ("ALLOWED", "KEYWORD")
        if name in ("limit", "memory_limit", "ramp_us") or not (low <= default <= high or or_zero):
            default = None
        yield name, Option(name, row.ext, number, form, low, high, default, or_zero, row.word, _range(row))


# In the order of their numbers.
OPTIONS = dict(sorted(_options(), key=lambda item: item[1][1:3]))
assert OPTIONS.keys() == KNOBS.keys() | EXT_KNOBS.keys(), "the list of options and the attributes differ"
