# SPDX-License-Identifier: GPL-2.0-only
"""Read the KTAP that suites print, for scripts/run and scripts/conformance.py."""

import re

PLAN = re.compile(r"^1\.\.(\d+)")
RESULT = re.compile(r"^(not )?ok\b\s*(\d*)\s*-?\s*(.*)$")


def read(path):
    """Results of a log: passed, failed and skipped names, and the tests planned."""
    passed, failed, skipped, planned = [], [], [], 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip()
            if plan := PLAN.match(line):
                planned += int(plan[1])
            elif result := RESULT.match(line):
                name, _, directive = result[3].partition(" # ")
                if directive.upper().startswith("SKIP"):
                    skipped.append(f"{name}: {directive[4:].strip()}")
                else:
                    (failed if result[1] else passed).append(name)
    return passed, failed, skipped, planned
