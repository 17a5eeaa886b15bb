#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
"""Runs the commands of README.md's section on the home router, from top to bottom in one network namespace, and
compares what they print. KTAP on stdout."""

import contextlib
import os
import re
import subprocess
import sys

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests/net"))

import lib  # noqa: E402
from installed import TOOLS  # noqa: E402
from lib import expect, expect_equal, main, run, tc, test  # noqa: E402

SECTION = "## Home router in three commands\n"
NOTHING_PRINTED = ("dualpi2 down",)


def blocks():
    """[(language, text)] of the section."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        section = file.read().partition(SECTION)[2].partition("\n## ")[0]
    return re.findall(r"^```(sh|text)\n(.*?)^```$", section, re.M | re.S)


@test("README")
def readme_commands_work_and_leave_nothing():
    found = blocks()
    expect(sum(language == "sh" for language, _ in found) >= 4, f"blocks: {found}")
    with contextlib.ExitStack() as stack:
        here = f"dpreadme{os.getpid()}"
        lib.quiet_netns(stack, here)
        run("ip link add eth0 type dummy", here)
        run("ip link set eth0 up", here)
        before = run("ip -br link", here).stdout
        for number, (language, text) in enumerate(found):
            if language == "text":
                continue
            # Without traffic the doctor cannot tell how it is (3).
            allowed = (0, 3) if "doctor" in text else (0,)
            done = subprocess.run(["ip", "netns", "exec", here, "bash", "-euc", text], capture_output=True, text=True,
                                  env=dict(os.environ, PATH=f"{TOOLS}/bin:{os.environ['PATH']}"), check=False)
            expect(done.returncode in allowed, f"{text}: code {done.returncode}: {done.stdout}{done.stderr}")
            if text.startswith(NOTHING_PRINTED):
                expect_equal(done.stdout, "", text)
                expect_equal(run("ip -br link", here).stdout, before, "devices")
                expect("dualpi2" not in tc("qdisc show", here).stdout, "a dualpi2 is left")
            if number + 1 < len(found) and found[number + 1][0] == "text" and done.returncode == 0:
                wanted = re.escape(found[number + 1][1]).replace(r"\.\.\.", ".*")
                expect(re.fullmatch(wanted, done.stdout), f"{text}: printed {done.stdout!r}")


if __name__ == "__main__":
    main()
