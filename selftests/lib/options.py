# SPDX-License-Identifier: GPL-2.0-only
"""The options of dualpi2, for tests that go through all of them: read from the sources of the module.

    OPTIONS["target"]       Option(name="target", ext=False, number=3, format="I", least=1, greatest=4294967,
                            default=15000, or_zero=False, word="target", range="1 us to 4294967 us")
    outside(option)         values that its attribute can hold and the kernel must refuse
    some_value(rng, option) a value that the kernel must accept

Names are as in the uapi header, in lower case; word and range are those of the kernel's messages.  A default of None
follows from other options.  Tests of the ranges themselves need a table that does not come from the module: that of
net/test_netlink.py, which fails if this one differs.
"""

import re
import struct
from collections import namedtuple

from netlink import EXT_KNOBS, KNOBS, Header

Option = namedtuple("Option", "name ext number format least greatest default or_zero word range")


def limits(option):
    """Least and greatest value that the attribute can hold."""
    bits, signed = 8 * struct.calcsize("=" + option.format), option.format.islower()
    return (-1 << bits - 1, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def outside(option):
    """Values beside the range, and at and between the ends of what the attribute can hold."""
    low, high = limits(option)
    some = {option.least - 1, option.greatest + 1, 0, 1, (high + 1) // 2, low, high}
    return sorted(value for value in some if low <= value <= high and not option.least <= value <= option.greatest and
                  not (option.or_zero and value == 0))


def some_value(rng, option):
    """Half of them near the ends, where arithmetic breaks."""
    low, high = option.least, option.greatest
    if rng.random() < 0.5:
        return rng.choice((low, min(low + 1, high), max(high - 1, low), high))
    return int(low + (high - low) * rng.random() ** 4)


def _options():
    source = Header("include/uapi/linux/dualpi2.h", "include/net/dualpi2_link.h", "include/net/dualpi2.h",
                    "sch_dualpi2.c")
    init = re.search(r"void dualpi2_config_init\(.*?\n\}", source.code, re.S)[0]
    defaults = {member: source.number(value) for member, value in re.findall(r"\.(\w+) = (.*?),\n", init)}
    derived = re.findall(r"bool (\w+)_is_set;", source.code)
    rows = {(bool(ext), source.number(f"TCA_DUALPI2_{ext}{place}")): row for ext, place, *row in re.findall(
        r'\[TCA_DUALPI2_(EXT_)?(\w+)\] =\s+'
        r'DUALPI2_KNOB(_OR_ZERO)?\((\w+),\s+(\S+),\s+(\S+),\s+"(\w+)",\s+"(.*?)"\)', source.code)}
    for ext, knobs in ((False, KNOBS), (True, EXT_KNOBS)):
        for name, (number, form) in knobs.items():
            # The one without a row is a set of bits, of which any is good.
            or_zero, member, least, greatest, word, text = rows.pop(
                (ext, number), ("", name, "0", "U64_MAX", name, None))
            option = Option(name, ext, number, form, source.number(least), source.number(greatest),
                            defaults.get(member, 0), bool(or_zero), word, text)
            is_derived = name.removesuffix("_us") in derived or not option.least <= option.default <= option.greatest
            yield name, option._replace(default=None) if is_derived and not or_zero else option
    assert not rows, f"options that are not in the header: {rows}"


OPTIONS = dict(_options())
