#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes what follows from the list of options, include/uapi/linux/dualpi2_options.h: the synopsis and the table of
options in the manual, the bash completion, and the presets of the command dualpi2. Each stands between two markers.

usage: gen-options.py               write all files
       gen-options.py --check       print the names of files that are not up to date
       gen-options.py --extension   print the keywords that only this module has
"""

import glob
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "selftests/lib"))

import option_list  # noqa: E402

MANUAL, COMPLETION = "iproute2-patch/man/man8/tc-dualpi2.8", "iproute2-patch/bash-completion/tc-dualpi2"
ARGUMENTS = {"TIME": ".I TIME", "PACKETS": ".I PACKETS", "BYTES": ".I BYTES", "LENGTH": ".I BYTES", "RATE": ".I RATE",
             "GAIN": ".I HZ", "NUMBER": ".I NUMBER", "PERCENT": ".I PERCENT", "DSCPS": ".IR DSCP [, DSCP ]..."}
WIDTH = 70      # of a line of the synopsis
# Defaults that depend on other options.
FOLLOWS = {"LIMIT": "10000; see below", "MEMORY_LIMIT": "see below", "RAMP_US": r"40% of step_thresh",
           "P_CMAX": "1/coupling_factor^2"}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


TEXT = read(option_list.PATH)
ROWS = list(option_list.rows(TEXT))
PRESETS = [row.word for row in ROWS if row.macro == "PRESET"]
RTTS = [row.word for row in ROWS if row.macro == "RTT"]
TABLE = "".join(f'    "{row.word}": ({row.overhead}, {row.mpu}, "{row.framing.lower()}"),\n'
                for row in ROWS if row.macro == "PRESET")
PRESET_LINE, RTT_LINE = (int(re.search(rf"DUALPI2_{name}_LINE\s+(\d+)", TEXT)[1]) for name in ("PRESET", "RTT"))
DEFAULTS = {row.attr: row.default for row in ROWS if row.macro in ("VALUE", "CHOICE")}


def groups():
    """Lists of rows that set one option, RTTS and PRESETS, in the order of tc's usage."""
    found = {}
    for row in ROWS:
        if row.macro in ("CHOICE", "PRESET", "RTT"):
            continue
        if row.line != "0":
            group = found.setdefault((int(row.line), len(found)), [])
        group.append(row)
    found |= {(PRESET_LINE, 0): PRESETS, (RTT_LINE, len(ROWS)): RTTS}
    return [found[key] for key in sorted(found)]


def has_value(row):
    return row.macro in ("VALUE", "DERIVED")


def synopsis_of(group):
    if group is PRESETS:
        return ["[", ".I PRESET", "[", r".B ether\-vlan", "]... ]"]
    if group is RTTS:
        return ["[", ".I RTT", "]"]
    lines = ["["]
    for number, row in enumerate(group):
        if number and has_value(row):
            lines[-1] = f".IR {lines[-1].split()[1]} | {ARGUMENTS[row.kind].split()[1]}"
            continue
        lines += ["|"] * bool(number)
        is_default = not has_value(row) and row.value == DEFAULTS[row.attr]
        lines += [f".BR {row.word} *" if is_default else f".B {row.word}"]
        lines += [ARGUMENTS[row.kind]] if has_value(row) else []
    return [*lines, "]"]


def synopsis():
    lines, column = [], 0
    for group in groups():
        part = synopsis_of(group)
        width = len(" ".join(re.sub(r"^\.\w+ |\\", "", line) for line in part)) + 1
        if column + width > WIDTH:
            lines, column = [*lines, ".br"], 0
        lines, column = lines + part, column + width
    return "\n".join(lines) + "\n"


def value(kind, number):
    """As tc prints it."""
    if kind == "TIME":
        factor, unit = (10**6, "s") if number >= 10**6 else (1000, "ms") if number >= 1000 else (1, "us")
        return f"{number / factor:.10g}{unit}"
    if kind == "RATE":
        factor, unit = (1e12, "tbit") if number * 8 >= 1e12 else (1e3, "kbit")
        return f"{number * 8 / factor:.10g}{unit}"
    if kind == "GAIN":
        return f"{number / 256:.6f}"
    return f"{number}{dict(PERCENT='%', PACKETS='p').get(kind, '')}"


def range_of(row):
    if row.kind == "DSCPS":
        return f"names, or {row.min} to {row.max}"
    zero = f"{value(row.kind, 0)}, or " if row.macro == "VALUE" and row.zero == "ALLOWED" else ""
    return f"{zero}{value(row.kind, int(row.min))} to {value(row.kind, int(row.max))}"


def default_of(group):
    first = group[0]
    if first.macro == "DERIVED":
        return ""
    keyword = [row.word for row in group if not has_value(row) and row.value == DEFAULTS[row.attr]]
    if keyword:
        return keyword[0]
    if first.attr in FOLLOWS:
        return FOLLOWS[first.attr]
    # That of DSCPS is 1 << N.
    number = int(first.default.split()[-1])
    return str(number) if first.kind == "DSCPS" else value(first.kind, number)


def table():
    """Of the manual: options with their ranges and defaults."""
    lines = [".TS", "lB lB lB", "lB2 l2 l.", "Option\tValues\tDefault", "_"]
    for group in groups():
        if group is PRESETS or group is RTTS:
            continue
        words = [row.word for row in group if not has_value(row)]
        if not has_value(group[0]):
            lines += [f"\\fRkeyword\\fP\t{' | '.join(words)}\t{default_of(group)}"]
            continue
        ranges = [range_of(row) for row in group if has_value(row)]
        cells = [", or ".join([ranges[0], *words]), *ranges[1:]]
        lines += [f"{group[0].word}\t{cells[0]}\t{default_of(group)}", *(f"\t{cell}\t" for cell in cells[1:])]
    return "\n".join(line.rstrip().replace("-", r"\-") for line in [*lines, ".TE"]) + "\n"


def completed():
    """(keywords that a value follows, lists of keywords of which one can be given), of tc; for shells."""
    found = groups()
    valued = [group[0].word for group in found if group is not PRESETS and group is not RTTS and has_value(group[0])]
    lists = [group if group is PRESETS or group is RTTS else list(dict.fromkeys(row.word for row in group))
             for group in found]
    return valued, [*lists, ["ether-vlan"]]


def completion():
    def wrapped(text, first="    ", later="        ", end=" \\\n"):
        return end.join(textwrap.wrap(text, 77, initial_indent=first, subsequent_indent=later,
                                      break_on_hyphens=False)) + "\n"

    valued, lists = completed()
    case = wrapped(" ".join(f"{word}|" for word in valued)[:-1] + ")", " " * 8, " " * 8, "\\\n").replace("| ", "|")
    text = f"    case $prev in\n{case}            return 0\n            ;;\n    esac\n"
    text += wrapped(f"_tc_once_attr '{' '.join(one[0] for one in lists if not one[1:])}'")
    return text + "".join(wrapped(f"_tc_one_of_list '{' '.join(one)}'") for one in lists if one[1:])


def with_lists(old, before, after, text):
    """The old text of a file with TEXT between the lines that are the markers."""
    head, found, rest = old.partition(before + "\n")
    tail = rest[rest.index(after + "\n"):]
    assert found
    return head + found + text + tail


def main():
    if sys.argv[1:] == ["--extension"]:
        words = [row.word for row in ROWS if row.macro not in ("CHOICE", "PRESET", "RTT", "DERIVED") and row.ext]
        print(textwrap.fill(", ".join([*words, "presets of link layers"]), 78, break_on_hyphens=False))
        return
    command, = (name for name in glob.glob("tools/**/*.py", root_dir=ROOT, recursive=True)
                if "\n    # presets\n" in read(name))
    manual = with_lists(read(MANUAL), r'.\" options', r'.\" end', synopsis())
    for name, text in ((MANUAL, with_lists(manual, r'.\" table', r'.\" end of table', table())),
                       (COMPLETION, with_lists(read(COMPLETION), "    # options", "    # end", completion())),
                       (command, with_lists(read(command), "    # presets", "    # end", TABLE))):
        if sys.argv[1:] == ["--check"]:
            if read(name) != text:
                print(f"{name}: not up to date with {option_list.PATH}; run scripts/gen-options.py")
            continue
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
