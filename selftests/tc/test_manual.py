#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""Runs the commands of tc-dualpi2(8) as a reader sees them: from the rendered page, build/man/tc-dualpi2.8.txt.

A command begins with "# ", and continues in the lines below that are indented further. Each test has a namespace of its
own, and prepares nothing in it.
"""
import json
import os
import re
import sys

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests/net"))

import lib                                                              # noqa: E402
from lib import ECT1, Net, Stream, expect, expect_equal, note, test     # noqa: E402

PAGE = os.path.join(ROOT, "build/man/tc-dualpi2.8.txt")
CHANGES, SHAPER, EXAMPLES = "CHANGING OPTIONS", "SHAPER AND LINK LAYER", "EXAMPLES"
# Their commands change or show the qdisc of CHANGES.
AFTER_CHANGES = ("VERIFYING THAT IT WORKS", "NQB", "BURSTS")


def commands():
    """{section: its commands}, each a text for the shell."""
    found, section, column = {}, None, None
    with open(PAGE, encoding="utf-8") as file:
        for line in file.read().splitlines():
            indent = len(line) - len(line.lstrip())
            if line and not indent:
                section, column = line, None
            elif line.lstrip().startswith("# "):
                column = indent
                found.setdefault(section, []).append(line.lstrip()[2:])
            elif column is not None and line.strip() and indent > column:
                found[section][-1] += "\n" + line.strip()
            else:
                column = None
    return found


def qdiscs(netns):
    """(handle, kind) of those that were added."""
    return [(q["handle"], q["kind"]) for q in json.loads(lib.tc("-j qdisc show", netns).stdout) if q["handle"] != "0:"]


def run_all(net, texts):
    """What the last one prints. A change leaves the same qdiscs, and statistics have packets."""
    output = ""
    for text in texts:
        note(text.replace("\n", " "))
        before = qdiscs(net.snd)
        if " -s " in text:
            net.traffic(0.2, Stream("l", ecn=ECT1, bps=1e6), Stream("c", bps=1e6))
        output = lib.run(["bash", "-o", "pipefail", "-c", text], net.snd).stdout
        if " change " in text:
            expect_equal(qdiscs(net.snd), before, "qdiscs after a change")
    return output


@test()
def every_command_is_in_a_section_that_is_run():
    found = commands()
    expect_equal(set(found), {CHANGES, SHAPER, EXAMPLES, *AFTER_CHANGES}, "sections with commands")
    expect(sum(map(len, found.values())) >= 20, f"only {found}")


@test()
def every_change_names_the_handle():
    """Without it, tc replaces a root of another kind, with all its classes."""
    for text in sum(commands().values(), []):
        expect("qdisc change" not in text or re.search(r" handle \w+: dualpi2 ", text), text)


@test()
def commands_that_change_options_work():
    found = commands()
    with Net() as net:
        run_all(net, found[CHANGES] + [text for name in AFTER_CHANGES for text in found[name]])
        options = json.loads(lib.tc("-j qdisc show dev eth0", net.snd).stdout)[0]["options"]
        expect_equal((options["target"], options["nqb"], options["burst-max"]), (20000, [45, 46], 8000), "options")


@test()
def commands_of_the_shaper_work():
    with Net() as net:
        run_all(net, commands()[SHAPER])
        found = {q["dev"]: q["options"] for q in json.loads(lib.tc("-j qdisc show", net.snd).stdout)
                 if q["kind"] == "dualpi2"}
        shown = {dev: [options[key] for key in ("bandwidth", "overhead", "framing", "ingress")]
                 for dev, options in found.items()}
        expect_equal(shown, {"eth0": [4500000, 34, "ptm", False], "ifb0": [11250000, 18, "noatm", True]}, "options")


@test()
def commands_of_the_examples_work():
    """The last one prints the 99th percentiles as JSON."""
    with Net() as net:
        output = json.loads(run_all(net, commands()[EXAMPLES]))
        expect_equal(list(output), ["c", "l"], "keys")
        expect(all(isinstance(ns, int) for ns in output.values()), f"{output}")


if __name__ == "__main__":
    lib.main()
