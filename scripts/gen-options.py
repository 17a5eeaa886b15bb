#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What is written from the list of options, include/uapi/linux/dualpi2_options.h: in the manual the synopsis, the bash
completion, and the presets that the command dualpi2 knows, each between two markers.

usage: gen-options.py               write all
       gen-options.py --check       say which is not up to date
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


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


TEXT = read(option_list.PATH)
ROWS = list(option_list.rows(TEXT))
PRESETS = [row.word for row in ROWS if row.macro == "PRESET"]
TABLE = "".join(f'    "{row.word}": ({row.overhead}, {row.mpu}, "{row.framing.lower()}"),\n'
                for row in ROWS if row.macro == "PRESET")
PRESET_LINE = int(re.search(r"DUALPI2_PRESET_LINE\s+(\d+)", TEXT)[1])
DEFAULTS = {row.attr: row.default for row in ROWS if row.macro in ("VALUE", "CHOICE")}


def groups():
    """Lists of rows that set one option, and PRESETS, in the order of tc's usage."""
    found = {}
    for row in ROWS:
        if row.macro in ("CHOICE", "PRESET"):
            continue
        if row.line != "0":
            group = found.setdefault((int(row.line), len(found)), [])
        group.append(row)
    return [group for _, group in sorted([*found.items(), ((PRESET_LINE, 0), PRESETS)], key=lambda item: item[0])]


def has_value(row):
    return row.macro in ("VALUE", "DERIVED")


def synopsis_of(group):
    if group is PRESETS:
        return ["[", ".I PRESET", "[", r".B ether\-vlan", "]... ]"]
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


def completion():
    def one_of(words):
        return wrapped(f"_tc_one_of_list '{' '.join(words)}'")

    def wrapped(text, first="    ", later="        ", end=" \\\n"):
        return end.join(textwrap.wrap(text, 77, initial_indent=first, subsequent_indent=later,
                                      break_on_hyphens=False)) + "\n"

    options = [group for group in groups() if group is not PRESETS]
    values = [row.word for group in options for row in group[:1] if has_value(row)]
    alone = [group[0].word for group in options if has_value(group[0]) and has_value(group[-1])]
    case = wrapped(" ".join(f"{word}|" for word in values)[:-1] + ")", " " * 8, " " * 8, "\\\n").replace("| ", "|")
    text = f"    case $prev in\n{case}            return 0\n            ;;\n    esac\n"
    text += wrapped(f"_tc_once_attr '{' '.join([*alone, 'ether-vlan'])}'")
    for group in groups():
        if group is PRESETS:
            text += one_of(PRESETS)
        elif group[0].word not in alone:
            text += one_of([row.word for row in group])
    return text


def with_lists(name, before, after, text):
    """The file with TEXT between the lines that are the markers."""
    head, found, rest = read(name).partition(before + "\n")
    tail = rest[rest.index(after + "\n"):]
    assert found
    return head + found + text + tail


def main():
    if sys.argv[1:] == ["--extension"]:
        words = [row.word for row in ROWS if row.macro not in ("CHOICE", "PRESET", "DERIVED") and row.ext]
        print(textwrap.fill(", ".join([*words, "presets of link layers"]), 78, break_on_hyphens=False))
        return
    command, = (name for name in glob.glob("tools/**/*.py", root_dir=ROOT, recursive=True)
                if "\n    # presets\n" in read(name))
    for name, text in ((MANUAL, with_lists(MANUAL, r'.\" options', r'.\" end', synopsis())),
                       (COMPLETION, with_lists(COMPLETION, "    # options", "    # end", completion())),
                       (command, with_lists(command, "    # presets", "    # end", TABLE))):
        if sys.argv[1:] == ["--check"]:
            if read(name) != text:
                print(f"{name}: the options are not those of {option_list.PATH}; run scripts/gen-options.py")
            continue
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
