# SPDX-License-Identifier: GPL-2.0-only
"""The commands dualpi2 and dualpi2-top.

    parser    argparse with errors of one line
    cli       commands and options of dualpi2
    kernel    netlink and statistics: bytes in, numbers out
    traces    capacity traces: text in, rates out; the examples
    play      dualpi2 play: a capacity trace through the shaper of a device
    up        dualpi2 up, set, down, status and list: both directions of a link in one command
    doctor    dualpi2 doctor: why there is no L4S on a device
    top       dualpi2-top: every dualpi2 of a machine, on a terminal, as JSON and as metrics
"""

import os
import re

_HERE = os.path.dirname(os.path.abspath(__file__))


class Trouble(Exception):
    """What went wrong and what to do, in one sentence, for a person."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def version() -> str:
    """Of this project: a package has a file of it, the source tree says it in the module."""
    try:
        with open(os.path.join(_HERE, "VERSION"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        with open(os.path.join(_HERE, "../../sch_dualpi2.c"), encoding="utf-8") as file:
            found = re.search(r'#define DUALPI2_VERSION\s+"([^"]+)"', file.read())
    except OSError:
        found = None
    return found.group(1) if found else "unknown"
