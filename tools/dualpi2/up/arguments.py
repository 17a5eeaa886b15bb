# SPDX-License-Identifier: GPL-2.0-only
"""Rates, times and link layers as text: text in, numbers out. Runs no command and asks no kernel.

tc is not asked to look up a link layer: a change in place keeps the options that it does not name, so overhead, mpu
and framing are always named.
"""

import fractions
import re
import shlex
from typing import NamedTuple, Optional

from .. import Trouble
from ..parser import nearest

# Bit/s, as in tc-dualpi2(8).
RATE_MIN, RATE_MAX = 8_000, 10**12
OVERHEAD_MIN, OVERHEAD_MAX, MPU_MAX = -64, 256, 256
ETHER_VLAN, ETHER_VLANS = 4, 3
RTT_MIN_US, RTT_MAX_US = 1_000, 8_500_000

# Keywords of cake for the RTT: max_rtt and typical_rtt of tc. The first and the last are the nearest values in range;
# cake has 100 us and 1 h.
RTTS = {
    "datacentre": ("300us", "100us"),
    "lan": ("1ms", None),
    "metro": ("10ms", None),
    "regional": ("30ms", None),
    "internet": ("100ms", None),
    "oceanic": ("300ms", None),
    "satellite": ("1s", None),
    "interplanetary": ("8s", None),
}
# Keywords of cake for the link layer: overhead, mpu, framing.
PRESETS = {
    # presets
    "conservative": (48, 0, "atm"),
    "ipoa-vcmux": (8, 0, "atm"),
    "ipoa-llcsnap": (16, 0, "atm"),
    "bridged-vcmux": (24, 0, "atm"),
    "bridged-llcsnap": (32, 0, "atm"),
    "pppoa-vcmux": (10, 0, "atm"),
    "pppoa-llc": (14, 0, "atm"),
    "pppoe-vcmux": (32, 0, "atm"),
    "pppoe-llcsnap": (40, 0, "atm"),
    "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"),
    "docsis": (18, 64, "noatm"),
    "ethernet": (38, 84, "noatm"),
    # end
}
FRAMINGS = ("raw", "noatm", "atm", "ptm")
# Values of --queues, and the qdisc of each.
QUEUES = {"one": "dualpi2", "all": "dualpi2_mq"}

# Options of tc whose value can begin with a letter; all other values begin with a digit, a sign or a dot.
VALUES_OF_LETTERS = ("nqb",)


class Rate(NamedTuple):
    """A rate in bytes/s, and as text for tc and for people."""
    text: str
    bytes_s: int
    hint: Optional[str] = None


class Link(NamedTuple):
    """What the link adds to each packet."""
    framing: str
    overhead: int
    mpu: int

    def tc(self):
        """All three as arguments for tc."""
        if self.framing == "raw":
            return ["raw"]
        return ["overhead", str(self.overhead), "mpu", str(self.mpu), self.framing]


RAW = Link("raw", 0, 0)


def rate(text, option):
    """A rate as in tc; 20M, 20Mbit/s and "20 Mbit/s" are accepted, too."""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}) ?(?:([kmgt])(i?))?(bit(?:/s)?|bps)?", text,
                         re.I)
    if not found or (found.group(3) and not found.group(4)):
        raise Trouble(f"{option}: '{text}' is not a rate; write a rate such as 20mbit, 500kbit or 2.5gbit", 2)
    number, prefix, binary, unit = found.groups()
    unit = (unit or "").lower()
    factor = (1024 if binary else 1000) ** (" kmgt".index(prefix.lower()) if prefix else 0)
    bits = fractions.Fraction(number) * factor * (8 if unit == "bps" else 1)
    hint = None
    if unit == "bps":
        hint = f"{option}: '{text}' is in bytes per second, as in tc; for bits per second, write {text[:-3]}bit"
    elif not prefix and not unit:
        hint = f"{option}: '{text}' is in bit/s, as in tc; for kbit/s, write {text}kbit"
    if not RATE_MIN <= bits <= RATE_MAX:
        raise Trouble(hint or f"{option}: '{text}' is out of range; write a rate from 8kbit to 1tbit", 2)
    if prefix and not unit or "/" in unit or " " in text:
        text = f"{number}{prefix or ''}{binary or ''}{unit.partition('/')[0] or 'bit'}"
    return Rate(text, int(bits / 8), hint)


def rtt(text):
    """A time as in tc, or a keyword of cake: arguments for tc."""
    if text in RTTS:
        longest, typical = RTTS[text]
        return ["max_rtt", longest] + (["typical_rtt", typical] if typical else [])
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(us|ms|s)", text)
    if not found:
        raise Trouble(f"--rtt: '{text}' is not a time{nearest(text, RTTS)}; write a time such as 100ms, or one of "
                      f"{', '.join(RTTS)}", 2)
    us = fractions.Fraction(found.group(1)) * {"us": 1, "ms": 1000, "s": 10**6}[found.group(2)]
    if not RTT_MIN_US <= us <= RTT_MAX_US:
        raise Trouble(f"--rtt: '{text}' is out of range; write a time from 1ms to 8.5s", 2)
    return ["max_rtt", text]


def queues(text):
    """The kind of qdisc for a value of --queues."""
    if text not in QUEUES:
        raise Trouble(f"--queues: '{text}' is neither {' nor '.join(QUEUES)}{nearest(text, QUEUES)}", 2)
    return QUEUES[text]


def by_name(options):
    """Options of tc as lists, each of which begins with the name of the option."""
    found = []
    for word in options:
        if found and (not word[:1].isalpha() or (found[-1][0] in VALUES_OF_LETTERS and len(found[-1]) == 1)):
            found[-1].append(word)
        else:
            found.append([word])
    return found


def merged(old, new):
    """Options of tc: those of new, and those of old that new does not name."""
    named = {group[0] for group in by_name(new)}
    return [word for group in by_name(old) if group[0] not in named for word in group] + list(new)


def split(text, name):
    """The text as a shell splits it."""
    try:
        return shlex.split(text or "")
    except ValueError as error:
        raise Trouble(f"{name}: unclosed quotation mark in '{text}'; close or remove it", 2) from error


def _number(keywords, name, low, high):
    if not keywords:
        raise Trouble(f"--link: {name} needs a number of bytes, {low} to {high}", 2)
    text = keywords.pop(0)
    if not re.fullmatch(r"-?[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise Trouble(f"--link: {name} '{text}' is not a number from {low} to {high} (bytes)", 2)
    return int(text)


def _unknown_link(word):
    known = [*PRESETS, *FRAMINGS, "overhead", "mpu", "ether-vlan"]
    return Trouble(f"--link: unknown keyword '{word}'{nearest(word, known)}; use overhead BYTES, mpu BYTES, "
                   f"{', '.join(FRAMINGS)}, ether-vlan or one of {', '.join(PRESETS)}", 2)


def link(text):
    """A link layer in keywords of cake; an empty one is RAW."""
    keywords = split(text, "--link")
    framing = overhead = preset = None
    mpu = vlans = 0
    while keywords:
        word = keywords.pop(0)
        if word in PRESETS:
            if preset:
                raise Trouble(f"--link: '{preset}' and '{word}' are both link layers; use one of them", 2)
            preset = word
            overhead, mpu, framing = PRESETS[word]
        elif word in FRAMINGS:
            framing = word
        elif word == "overhead":
            overhead = _number(keywords, word, OVERHEAD_MIN, OVERHEAD_MAX)
        elif word == "mpu":
            mpu = _number(keywords, word, 0, MPU_MAX)
        elif word == "ether-vlan":
            if overhead is None or vlans == ETHER_VLANS:
                raise Trouble(f"--link: ether-vlan must follow a preset or an overhead, at most {ETHER_VLANS} times", 2)
            vlans += 1
            overhead += ETHER_VLAN
            if overhead > OVERHEAD_MAX:
                raise Trouble(f"--link: the overhead with ether-vlan is {overhead} bytes; the maximum is "
                              f"{OVERHEAD_MAX}", 2)
        else:
            raise _unknown_link(word)
    if framing == "raw":
        if overhead or mpu or preset:
            raise Trouble(f"--link: '{text}' combines raw with an overhead or mpu; remove one of them", 2)
        return RAW
    if framing is None and overhead is None and not mpu:
        return RAW
    return Link(framing or "noatm", overhead or 0, mpu)
