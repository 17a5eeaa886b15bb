# SPDX-License-Identifier: GPL-2.0-only
"""Blocks of commands (.EX to .EE) of a manual page, as a reader sees them. Test machines have neither man nor groff."""

import re

ESCAPES = {"-": "-", "(dq": '"', "(aq": "'", "e": "\\", "&": ""}


def _rendered(line):
    if line.startswith("."):
        # A macro would consume quotation marks.
        raise ValueError(f"a macro among commands: {line}")

    def escape(match):
        return ESCAPES[match[1]]

    return re.sub(r"\\(\(..|.)", escape, line)


def examples(path):
    """The blocks, in their order."""
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", file.read(), re.M | re.S)
    return ["\n".join(map(_rendered, block.splitlines())) for block in blocks]
