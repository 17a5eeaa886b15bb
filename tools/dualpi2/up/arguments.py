# SPDX-License-Identifier: GPL-2.0-only
"""Rates and link layers as a person writes them: text in, numbers out. No command, no kernel.

The link layer is made into numbers here and not left to tc: a change in place keeps what it does not
name, so all three are always named.
"""

import fractions
import re
import shlex
from typing import NamedTuple

from .. import Trouble

# Bit/s, as in tc-dualpi2(8).
RATE_MIN, RATE_MAX = 8_000, 10**12
OVERHEAD_MIN, OVERHEAD_MAX, MPU_MAX = -64, 256, 256
ETHER_VLAN, ETHER_VLANS = 4, 3
RTT_MIN_US, RTT_MAX_US = 1_000, 8_500_000

# Cake's words: overhead, mpu, framing.
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


class Rate(NamedTuple):
    """A rate as it was written, and in bytes a second."""
    text: str
    bytes_s: int


class Link(NamedTuple):
    """What a packet is on the wire."""
    framing: str
    overhead: int
    mpu: int

    def tc(self):
        """All of it as words for tc."""
        if self.framing == "raw":
            return ["raw"]
        return ["overhead", str(self.overhead), "mpu", str(self.mpu), self.framing]


RAW = Link("raw", 0, 0)


def rate(text, option):
    """A rate in tc's words."""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:([kmgt])(i?))?(bit|bps)?", text, re.I)
    if not found or (found.group(2) and not found.group(4)):
        raise Trouble(f"{option}: '{text}' is no rate; write one like 20mbit, 500kbit or 2.5gbit", 2)
    number, prefix, binary, unit = found.groups()
    factor = (1024 if binary else 1000) ** (" kmgt".index(prefix.lower()) if prefix else 0)
    bits = fractions.Fraction(number) * factor * (8 if (unit or "").lower() == "bps" else 1)
    if not RATE_MIN <= bits <= RATE_MAX:
        raise Trouble(f"{option}: {text} is out of range; 8kbit to 1tbit is possible", 2)
    return Rate(text, int(bits / 8))


def rtt(text):
    """A time in tc's words."""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(us|ms|s)", text)
    if not found:
        raise Trouble(f"--rtt: '{text}' is no time; write one like 100ms", 2)
    us = fractions.Fraction(found.group(1)) * {"us": 1, "ms": 1000, "s": 10**6}[found.group(2)]
    if not RTT_MIN_US <= us <= RTT_MAX_US:
        raise Trouble(f"--rtt: {text} is out of range; 1ms to 8.5s is possible", 2)
    return text


def _number(words, name, low, high):
    if not words:
        raise Trouble(f"--link: {name} needs a number of bytes after it", 2)
    text = words.pop(0)
    if not re.fullmatch(r"-?[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise Trouble(f"--link: {name} {text} is not in {low} to {high} bytes", 2)
    return int(text)


def link(text):
    """A link layer in cake's words; nothing is RAW."""
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise Trouble(f"--link: an apostrophe is open in {text}; write words only", 2) from error
    framing = overhead = preset = None
    mpu = vlans = 0
    while words:
        word = words.pop(0)
        if word in PRESETS:
            if preset:
                raise Trouble(f"--link: {preset} and {word} are two link layers; give one", 2)
            preset = word
            overhead, mpu, framing = PRESETS[word]
        elif word in FRAMINGS:
            framing = word
        elif word == "overhead":
            overhead = _number(words, word, OVERHEAD_MIN, OVERHEAD_MAX)
        elif word == "mpu":
            mpu = _number(words, word, 0, MPU_MAX)
        elif word == "ether-vlan":
            if overhead is None or vlans == ETHER_VLANS:
                raise Trouble("--link: ether-vlan comes after a preset or an overhead, three times at most", 2)
            vlans += 1
            overhead += ETHER_VLAN
            if overhead > OVERHEAD_MAX:
                raise Trouble(f"--link: with ether-vlan the overhead is {overhead}; {OVERHEAD_MAX} is possible", 2)
        else:
            raise Trouble(f"--link: there is no '{word}'; give overhead N, mpu N, {', '.join(FRAMINGS)}, ether-vlan "
                          f"or one of {', '.join(PRESETS)}", 2)
    if framing == "raw":
        if overhead or mpu or preset:
            raise Trouble("--link: raw is without overhead and mpu; leave out one or the other", 2)
        return RAW
    if framing is None and overhead is None and not mpu:
        return RAW
    return Link(framing or "noatm", overhead or 0, mpu)
