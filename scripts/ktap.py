#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Add up the KTAP results in log files and print one line in the end.

Every log is the output of one suite, "NAME=FILE=EXIT-CODE".  A suite that ended
in failure without a failed test, or that announced more tests than it reported,
counts as one failed test more: silence is not success.
"""

import re
import sys

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


def main():
    totals = [0, 0, 0]
    for argument in sys.argv[1:]:
        suite, path, code = argument.split("=")
        passed, failed, skipped, planned = read(path)
        reported = len(passed) + len(failed) + len(skipped)
        if reported < planned:
            failed.append(f"{planned - reported} tests were announced and not run")
        if int(code) and not failed:
            failed.append(f"ended with code {code}")
        if not reported:
            failed.append("ran no test")
        for name in failed:
            print(f"FAILED {suite}: {name} (see {path})")
        for name in skipped:
            print(f"SKIPPED {suite}: {name}")
        print(f"{suite:12} {len(passed):5} passed, {len(failed)} failed, {len(skipped)} skipped")
        for index, names in enumerate((passed, failed, skipped)):
            totals[index] += len(names)
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
