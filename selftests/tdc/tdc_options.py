# SPDX-License-Identifier: GPL-2.0-only
"""The options of tc for cases.py: from the list of options, and by hand what is special to one of them.

What every option must do is derived: its minimum, maximum and default are accepted, one less and one more are rejected,
and a change of it alone leaves the others. Such a case has an id by hand where it is in BY_HAND, else one that
begins with e.
"""

import os
import re
import sys
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests/lib"))

import option_list  # noqa: E402
from netlink import Header  # noqa: E402

ABSENT = object()           # a key that JSON does not have
US_RANGE = "1 us to 4294967 us"
GAIN_RANGE = "1/256 Hz to (2^31 - 1)/256 Hz"

# What tc calls a value; the unit that its text ends in where that is always the same; units of numbers on the command
# line, for comparisons.
KINDS = {
    "TIME": ("time", "", {"": 1, "us": 1, "ms": 1000, "s": 1000000}),
    "PACKETS": ("number of packets", "p", {"": 1, "p": 1}),
    "BYTES": ("number of bytes", "B", {"": 1, "B": 1, "k": 1024}),
    "LENGTH": ("number of bytes", "", {"": 1}),
    "RATE": ("rate", "", {"": .125, "bit": .125, "kbit": 125, "mbit": 125e3, "tbit": 125e9, "bps": 1, "mibit": 131072}),
    "GAIN": ("number of Hz", "", {"": 256}),
    "NUMBER": ("number", "", {"": 1}),
    "PERCENT": ("percentage", "%", {"": 1, "%": 1}),
    "DSCPS": ("list of DSCPs", "", {"": 1}),
}

# By keyword, or the keyword of the default: a default that follows from other options; other: a value that is not the
# default; and the cases: accepted, {id: (value, JSON)}; alone, {id: (value, JSON or as text shows it)}: changed with
# "other" for all other options, or with defaults; beyond and wrong, {id: value}: rejected by tc, as out of range or as
# of another kind; kernel, {id: (value, reason)}: accepted by the stock tc and rejected by the kernel.
BY_HAND = {
    "limit": {"other": 2000, "accepted": {"d315": ("5p", 5)}, "alone": {"d22b": ("77", 77)},
        "beyond": {"d235": "4294967296", "d329": "0", "d32a": "4294967296"}, "wrong": {"d23b": "-1", "d341": "-1",
        "d342": "1.5"}},
    "memlimit": {"default": 30280000, "other": 3000000, "accepted": {"d20f": ("1", 1), "d210": ("4294967295",
        4294967295), "d316": ("5000B", 5000), "d317": ("4k", 4096)}, "alone": {"d22c": ("4321", 4321)},
        "beyond": {"d236": "4294967296", "d32b": "0", "d32c": "4294967296"}},
    "target": {"other": 20000, "accepted": {"d211": ("1us", 1), "d212": ("4294967us", 4294967), "d312": ("4.294967s",
        4294967)}, "alone": {"d22d": ("7ms", 7000)}, "beyond": {"d32d": "0", "d32e": "4294968us"},
        "wrong": {"d23e": "soon", "d340": "soon"}, "kernel": {"d2c0": ("4294968us", US_RANGE)}},
    "tupdate": {"other": 21000, "accepted": {"d213": ("100us", 100), "d214": ("4294967us", 4294967)},
        "alone": {"d22e": ("8ms", 8000)}, "beyond": {"d32f": "4294968us", "d330": "99us", "d331": "1us"},
        "kernel": {"d2c1": ("99us", "100 us to 4294967 us"), "d2c2": ("4294968us", "100 us to 4294967 us")}},
    "alpha": {"other": ("0.25", 0.25), "accepted": {"d215": ("0.00390625", 0.00390625), "d216": ("8388607", 8388610),
        "d313": ("8388607.99609375", 8388610)}, "alone": {"d22f": ("0.5", 0.5)}, "beyond": {"d332": "0",
        "d333": "0.001", "d334": "8388608"}, "wrong": {"d23c": "-1", "d23d": "fast"}, "kernel": {"d2c3": ("0",
        GAIN_RANGE), "d2c5": ("8388608", GAIN_RANGE)}},
    "beta": {"other": ("3.5", 3.5), "accepted": {"d217": ("0.00390625", 0.00390625), "d218": ("8388607", 8388610),
        "d314": ("8388607.99609375", 8388610)}, "alone": {"d230": ("4.75", 4.75)}, "beyond": {"d335": "0",
        "d336": "8388608"}, "kernel": {"d2c4": ("0", GAIN_RANGE), "d2c6": ("8388608", GAIN_RANGE)}},
    "step_thresh": {"other": 2000, "accepted": {"d219": ("1us", 1), "d21a": ("4294967us", 4294967), "d311": ("0us",
        0)}, "alone": {"d231": ("700us", 700)}, "beyond": {"d238": "4294967296p", "d337": "4294968us", "d338": "0p",
        "d339": "4294967295p"}, "wrong": {"d23f": "5q"}, "kernel": {"d2c7": ("4294968us", "at most 4294967 us"),
        "d2c8": ("4294967295p", "1 to 4294967294 packets")}},
    "min_qlen_step": {"other": 3, "accepted": {"d21d": ("0", 0), "d21e": ("4294967295", 4294967295), "d318": ("5p",
        5)}, "alone": {"d232": ("9", 9)}, "beyond": {"d237": "4294967296", "d33a": "4294967296"}},
    "coupling_factor": {"other": 4, "accepted": {"d21f": ("1", 1), "d220": ("255", 255)}, "alone": {"d233": ("3", 3)},
        "beyond": {"d239": "256", "d33b": "0", "d33c": "256"}, "kernel": {"d2c9": ("0", "1 to 255")}},
    "classic_protection": {"other": 20, "accepted": {"d221": ("0", 0), "d222": ("100", 100), "d319": ("50%", 50)},
        "alone": {"d234": ("30", 30)}, "beyond": {"d23a": "101", "d33d": "101", "d33e": "101%"}},
    "l4s_ect": {"other": "any_ect", "accepted": {"d310": ("cla_ect", "cla-ect")}, "alone": {"d31f": ("cla_ect",
        "cla_ect")}},
    "ramp": {"default": 400, "other": 300, "accepted": {"d307": ("0us", 0), "d308": ("1us", 1), "d309": ("4294967us",
        4294967), "d30a": ("400", 400), "d30b": ("1.5ms", 1500)}, "alone": {"d320": ("7us", "7us")},
        "beyond": {"d33f": "4294968us"}},
    "recur": {"accepted": {"d30c": ("recur", "recur"), "d30d": ("random", "random")}, "alone": {"d31e": ("random",
        "random")}},
    "p_cmax": {"other": 30, "accepted": {"d34c": ("0", 0), "d34d": ("1%", 1), "d34e": ("100", 100)},
        "alone": {"d356": ("30", "30")}, "beyond": {"d35d": "101"}, "wrong": {"d35e": "0.5"}},
    "hist_c": {"other": 100, "accepted": {"d34f": ("1us", 1), "d350": ("16384us", 16384)}, "alone": {"d358": ("100us",
        "100us")}, "beyond": {"d35f": "0", "d360": "16385us"}},
    "hist_l": {"other": 9, "accepted": {"d351": ("1us", 1), "d369": ("16.384ms", 16384)}, "alone": {"d359": ("9us",
        "9us")}, "beyond": {"d361": "0", "d362": "16385us"}, "wrong": {"d363": "wide"}},
    "overload_report": {"other": 2000000, "accepted": {"d353": ("0", 0), "d354": ("100ms", 100000),
        "d355": ("4294967295us", 4294967295)}, "alone": {"d35a": ("2s", "2s")}, "beyond": {"d36a": "1us",
        "d365": "99999us", "d366": "4294967296us"}, "wrong": {"d367": "never"}},
    "bandwidth": {"other": 2500000, "accepted": {"d370": ("8kbit", 1000), "d371": ("40mbit", 5000000),
        "d372": ("2500000bps", 2500000), "d373": ("8mibit", 1048576), "d374": ("34359738368", 4294967296),
        "d375": ("1Tbit", 125000000000)}, "beyond": {"d3a8": "1bit", "d3a9": "0", "d3aa": "10tbit"},
        "wrong": {"d3ab": "40mb", "d3ac": "-40mbit", "d3ad": "unlimited"}},
    "overhead": {"key": "overhead mpu framing", "default": ("", (0, 0, "raw")), "other": ("-4 mpu 64 ptm", (-4, 64,
        "ptm")), "beyond": {"d3ae": "-65", "d3af": "257"}, "wrong": {"d3b0": "1.5"}},
    "mpu": {"key": "", "default": ("", ABSENT), "other": ("", ABSENT), "beyond": {"d3b1": "257"},
        "wrong": {"d3b2": "-1"}},
    "egress": {"accepted": {"d391": ("ingress", True), "d393": ("egress", False)}, "alone": {"d3a1": ("ingress",
        "ingress")}},
    "nqb": {"other": ("2,46", "2,46"), "accepted": {"d394": ("46,0x2d,0,63", "0,45,46,63"),
        "d3d1": ("EF,cs5,LE", "1,40,46")},
        "alone": {"d3a3": ("46,0x2d", "45,46")}, "beyond": {"d3b8": "64"}, "wrong": {"d3ba": "efs"}},
    "burst_max": {"other": 8000, "accepted": {"d396": ("0", 0), "d397": ("100ms", 100000)}, "alone": {"d3a6": ("8ms",
        "8ms")}, "beyond": {"d3bb": "100001us"}, "wrong": {"d3bc": "long"}},
    "no_bypass": {"other": "no_bypass", "accepted": {"d3be": ("bypass", True), "d3bf": ("no_bypass", False)},
        "alone": {"d3c1": ("bypass", "bypass")}},
    "l4s": {"accepted": {"d30e": ("l4s", True), "d30f": ("no_l4s", False)}, "alone": {"d31d": ("no_l4s", "no_l4s")}},
}


@dataclass
class Option:
    """An option of tc, or flags that exclude each other (keyword: "")."""
    keyword: str
    key: str                    # in JSON; three for the framing
    default: tuple              # as text shows it, without unit, and in JSON
    other: tuple                # likewise: a value that is not the default
    kind: str = ""              # text that says what a value is
    range: str = ""             # as an error message has it
    unit: str = ""              # that the text of a number ends in
    # see BY_HAND
    accepted: dict = field(default_factory=dict)
    alone: dict = field(default_factory=dict)
    beyond: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)
    kernel: dict = field(default_factory=dict)

    def args(self, value):
        return f"{self.keyword} {value}".strip()

    def text(self, value):
        """As tc shows the option; "" if it does not."""
        if self.kind == KINDS["GAIN"][0]:
            value = f"{float(value):f}"
        return value and self.args(value + self.unit)

    def json(self, value):
        if value is ABSENT:
            return {}
        return dict(zip(self.key.split(), value)) if " " in self.key else {self.key: value}

    def is_shown_as(self, text):
        word = text.split()[0]
        if self.keyword:
            return word in (self.keyword, f"no_{self.keyword}")
        return word in (self.default[0], self.other[0], *(value for value, _ in self.accepted.values()))


def shown(kind, number):
    """A number of an attribute as tc shows it, without the unit of KINDS."""
    if kind == "TIME":
        size, unit = next(((size, unit) for size, unit in ((1000000, "s"), (1000, "ms")) if number >= size), (1, "us"))
        return f"{number / size:.10g}{unit}"
    if kind == "RATE":
        bits, unit = number * 8, 0
        while bits and bits % 1000 == 0 and unit < 4:
            bits, unit = bits // 1000, unit + 1
        return f"{bits}{('', 'K', 'M', 'G', 'T')[unit]}bit"
    if kind == "DSCPS":
        return ",".join(str(bit) for bit in range(64) if number >> bit & 1)
    return f"{number / 256:f}" if kind == "GAIN" else str(number)


def amount(kind, text):
    """The number of an attribute that a text of the command line stands for; None: it is of another kind."""
    number, unit = re.fullmatch(r"(-?[\d.]+)(\D*)", text).groups()
    factor = KINDS[kind][2].get(unit.lower() if kind == "RATE" else unit)
    return factor and round(float(number) * factor)


def in_json(kind, number):
    return float(f"{number / 256:g}") if kind == "GAIN" else shown(kind, number) if kind == "DSCPS" else number


def range_of(row):
    kind, unit = ("NUMBER" if row.kind == "DSCPS" else row.kind), KINDS[row.kind][1]
    low, high = shown(kind, int(row.min)), shown(kind, int(row.max))
    before = f"{shown(kind, 0)}{unit}, or " if row.zero == "ALLOWED" else "names, or " if row.kind == "DSCPS" else ""
    return f"{before}{low}{unit} to {high}{unit}"


def with_value(row, more):
    """The option of a row, with MORE rows for values of the same keyword."""
    hand = dict(BY_HAND.get(row.word, {}))
    default = hand.pop("default", None) or SOURCE.number(row.default)
    other = hand.pop("other", None) or int(row.max if default != int(row.max) else row.min)
    default, other = (value if isinstance(value, tuple) else
                      ("" if (value == int(row.default) if row.zero == "DEFAULT" else
                             not value and row.zero in ("HIDDEN", "KEYWORD")) else shown(row.kind, value),
                       in_json(row.kind, value)) for value in (default, other))
    option = Option(row.word, hand.pop("key", row.key), default, other, KINDS[row.kind][0],
                    ", or ".join(map(range_of, [row, *more])), KINDS[row.kind][1], **hand)
    add_edges(row, option)
    return option


def add_edges(row, option):
    """The cases that every option must have, unless BY_HAND has them."""
    if row.kind in ("DSCPS", "LENGTH"):     # these are lists; those of LENGTH depend on the framing
        return
    kind, low, high = row.kind, int(row.min), int(row.max)
    accepted = {amount(kind, text) for text, _ in option.accepted.values()}
    beyond = {amount(kind, text) for text in option.beyond.values()}
    number = SOURCE.number("TCA_DUALPI2_" + "EXT_" * row.ext + row.attr) + 32 * row.ext
    for edge, value in enumerate((low, high)):
        if value not in accepted:
            option.accepted[f"e{number:02x}{edge}"] = (plain(kind, value), in_json(kind, value))
    for edge, value in enumerate((low - 1, high + 1), 2):
        if value >= 0 and value not in beyond and not (value == 0 and row.zero == "ALLOWED"):
            option.beyond[f"e{number:02x}{edge}"] = plain(kind, value)
    if not option.alone and row.attr != "BANDWIDTH":    # which the limits follow
        option.alone[f"e{number:02x}4"] = (option.other[0], option.other[0])


def plain(kind, number):
    """On the command line."""
    return f"{number / 256:.8f}" if kind == "GAIN" else f"{number}{dict(TIME='us', RATE='bps').get(kind, '')}"


def of_choice(choice, rows):
    """The option of a CHOICE."""
    texts = {row.word: (row.word if row.shown == "SHOWN" else "",
                        ABSENT if row.key is None else row.value == "1" if row.macro == "SWITCH" else row.json)
             for row in rows}
    default = next(row.word for row in rows if row.value == choice.default)
    hand = dict(BY_HAND.get(default, {}))
    other = hand.pop("other", None) or next(word for word in texts if word != default)
    option = Option("", next(row.key for row in rows if row.key), texts[default], texts[other], **hand)
    if choice.attr == "BYPASS":     # not with a bandwidth
        return option
    number = SOURCE.number("TCA_DUALPI2_" + "EXT_" * choice.ext + choice.attr) + 32 * choice.ext
    for edge, (word, (_, value)) in enumerate(texts.items()):
        if word not in [given for given, _ in option.accepted.values()]:
            option.accepted[f"e{number:02x}{edge}"] = (word, value)
    if not option.alone and option.other[0]:
        option.alone[f"e{number:02x}4"] = (other, option.other[0])
    return option


def options(ext):
    """In the order of their text."""
    rows = [row for row in ROWS if row.ext == ext]
    for row in rows:
        same = [other for other in rows if other.attr == row.attr]
        if row.macro == "VALUE" and row.line != "0":
            yield with_value(row, [other for other in rows if other is not row and other.macro == "VALUE" and
                                   other.word == row.word])
        elif row.macro == "CHOICE" and row.attr != "FRAMING":   # that is with overhead
            yield of_choice(row, [other for other in same if other.macro in ("WORD", "SWITCH")])


SOURCE = Header("include/uapi/linux/dualpi2.h", option_list.PATH)
ROWS = [row for row in option_list.rows(SOURCE.text) if row.macro not in ("DERIVED", "PRESET", "RTT")]
IN_TREE, OUR_OWN = list(options(False)), list(options(True))
