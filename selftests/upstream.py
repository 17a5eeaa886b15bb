#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
upstream.py - run the reproducers of docs/UPSTREAM.md, in a machine. KTAP on stdout.

usage: upstream.py in-tree|module    which dualpi2 is loaded; module is this project's

A reproducer is a block of commands after the comment <!-- reproducer: NAME -->. It is run in a shell after the block
"setup", and must print the first block of text that follows with the in-tree dualpi2, and the second one with this
project's. --print shows what it prints instead.

"scripts/run-vm.sh --kernel plain" has both modules; selftests/upstream.sh loads them.
"""

import os
import re
import subprocess
import sys


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSIDE = r"((?:(?!```).)*)"
BLOCK = rf"```sh\n{INSIDE}```\n"
TEXT = rf"(?:(?!```).)*```text\n{INSIDE}```\n"


def main():
    """Run each reproducer."""
    which = sys.argv[1]
    with open(os.path.join(ROOT, "docs/UPSTREAM.md"), encoding="utf-8") as file:
        text = file.read()
    setup = re.search(rf"<!-- setup -->\n{BLOCK}", text, re.S)[1]
    found = re.findall(rf"<!-- reproducer: (\S+) -->\n{BLOCK}{TEXT}{TEXT}", text, re.S)
    print(f"KTAP version 1\n1..{len(found)}")
    bad = not found
    for number, (name, commands, *expected) in enumerate(found, 1):
        done = subprocess.run(["bash", "-c", setup + commands], capture_output=True, text=True, check=False)
        wanted = expected[which == "module"]
        good = done.stdout == wanted
        bad |= not good
        if not good or "--print" in sys.argv:
            for line in (done.stdout + done.stderr).splitlines():
                print(f"# {line}")
        print(f"{'' if good else 'not '}ok {number} - {which}_{name}", flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    main()
