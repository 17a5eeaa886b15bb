# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2-top: every dualpi2 of a machine, on a terminal, as JSON and as metrics.

    stats     decoding, differences, percentiles: bytes in, numbers out; no socket, no clock, no terminal
    netlink   the kernel's answers, and nothing of their meaning
    watch     samples, one after the other, and what lies between two of them
    report    what is shown, as JSON and as words
    screen    the terminal: keys, sizes, what fits
    metrics   Prometheus
    cli       options, and which of these a person wants
"""

import os
import re

_HERE = os.path.dirname(os.path.abspath(__file__))


class Trouble(Exception):
    """What went wrong and what to do, in one sentence, for a person."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def version():
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
