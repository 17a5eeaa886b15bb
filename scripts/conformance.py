#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""docs/CONFORMANCE.md: each requirement, where it is met and which tests show it.

usage: conformance.py               write the page
       conformance.py --check       say what is wrong with it or with what it is made of, if anything
       conformance.py --results DIR say which of the tests that it names did not pass; DIR has the logs of scripts/run

What a row says stands in docs/conformance.toml. Its tests are those that name it, @test("R12"), as the test
programs list them (--list), and the few of the table itself that cannot. In the logs a test counts if it
passed under one kernel or more, was skipped on the others at most, and failed nowhere.

This does not judge whether a test shows what its row says: that was done by hand.
"""

import collections
import glob
import os
import re
import subprocess
import sys
import textwrap
import tomllib

import results

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = "docs/conformance.toml"
PAGE = "docs/CONFORMANCE.md"
SOURCES = ("sch_dualpi2.c", *sorted(glob.glob("include/net/*.h", root_dir=ROOT)),
           *sorted(glob.glob("include/qdisc/*.h", root_dir=ROOT)),
           *sorted(glob.glob("iproute2-patch/tc/q_*", root_dir=ROOT)))
# Directories of test programs that know --list, anywhere; others want to be on a test machine first.
SELF_LISTED = ("net", "fuzz", "tdc")
TAG = re.compile(r"[RGN]\d+")
DEFINITION = re.compile(r"^(?:[a-z][\w *]*[ *])?(\w+)\((?!.*;$)", re.M)
KEYS = {"where", "level", "says", "code", "ours", "note", "kernel", "tests"}
LEVELS = ("MUST", "MUST NOT", "SHOULD", "MAY", "guidance", "goal")
OURS = ("met", "partly", "not met", "not yet", "not used")
KERNEL = ("yes", "partly", "no", "unused")
HEAD = """\
What RFC 9332 requires of a qdisc, with section 5 of RFC 9331; the functions of this module that meet each requirement,
and the tests that show it. Each row also states what the dualpi2 of Linux 7.3 does, from its source: that qdisc was not
tested."""
MADE = f"""\
Made by `scripts/conformance.py` of `{SOURCE}` and of the tests, which say themselves which rows they are for.
`make check` fails if this page is not up to date, if it names a function or a test that does not exist, or if a test
that it names did not pass. Those of PROGRAM are in `selftests/*/test_PROGRAM.py`, those of unit in `selftests/unit`.
That a test shows what its row says was judged by hand."""
SECTIONS = (
    ("RFC 9331, section 5", "What RFC 9332, 2.5.1, takes over from there.", "R1", "R19"),
    ("RFC 9332, section 2.5.1", "Queues, scheduler, codepoints where they are not expected.", "R20", "R30"),
    ("RFC 9332, section 2.5.2", "Management.", "R31", "R40"),
    ("Goals of RFC 9332", "Not in capitals there, and worth a test.", "G1", "G10"),
    ("RFC 9956", "What non-queue-building traffic needs of a node, after draft-ietf-tsvwg-nqb-33. Nothing is built for "
     "it yet; what is met is met by filters.", "N1", "N10"),
)


def path(*names):
    return os.path.join(ROOT, *names)


def read(*names):
    with open(path(*names), encoding="utf-8") as file:
        return file.read()


def rows():
    """The table, in order."""
    return tomllib.loads(read(SOURCE))


def listed(program):
    """[(test, tags)] of a test program in Python: as it lists them itself, or by their decorators."""
    if program.split("/")[1] not in SELF_LISTED:
        return [(name, re.findall(r'"([^"]*)"', about or ""))
                for about, name in re.findall(r"^@test(?:\((.*)\))?\ndef (\w+)", read(program), re.M)]
    # The page has the tests of check, also where check-long asks for more.
    env = {name: value for name, value in os.environ.items() if not name.startswith("DUALPI2_TEST_")}
    done = subprocess.run([sys.executable, "-B", path(program), "--list"], text=True, capture_output=True, check=False,
                          env=env)
    if done.returncode:
        sys.exit(f"conformance.py: {program} --list: {done.stderr.strip() or 'failed'}")
    return [(words[0], words[1:]) for words in map(str.split, done.stdout.splitlines())]


def tests():
    """{"program/test": tags} of all there are; the program as its log is named, but for the kernel."""
    found = {}
    for program in sorted(glob.glob("selftests/*/test_*.py", root_dir=ROOT) +
                          glob.glob("extra/*/test_*.py", root_dir=ROOT)):
        suite = os.path.basename(program).removeprefix("test_").removesuffix(".py")
        for name, about in listed(program):
            found[f"{suite}/{name}"] = [tag for tag in about if TAG.fullmatch(tag)]
    for source in glob.glob("selftests/unit/test_*.c", root_dir=ROOT):
        for name in re.findall(r"^(?:\tTEST|UNIT_TEST)\((\w+)\)", read(source), re.M):
            found[f"unit/{name}"] = ()
    return found


def shown_by(table, known):
    """{row: names of its tests, in the order of programs}."""
    found = {row: list(entry.get("tests", ())) for row, entry in table.items()}
    for name, tags in known.items():
        for tag in dict.fromkeys(tags):
            if tag in found and name not in found[tag]:
                found[tag].append(name)
    return {row: sorted(names, key=lambda name: name.split("/")[0]) for row, names in found.items()}


def complaints(table, known, shown):
    """All that is wrong, a line each."""
    wanted = [f"{first[0]}{number}" for _, _, first, last in SECTIONS
              for number in range(int(first[1:]), int(last[1:]) + 1)]
    if list(table) != wanted:
        yield f"{SOURCE}: rows are not {' '.join(wanted)}"
    defined = {name for source in SOURCES for name in DEFINITION.findall(read(source))}
    for row, entry in table.items():
        if unknown := entry.keys() - KEYS:
            yield f"{SOURCE}: {row}: unknown key {', '.join(sorted(unknown))}"
        if missing := KEYS - {"note", "tests"} - entry.keys():
            yield f"{SOURCE}: {row}: no {', '.join(sorted(missing))}"
            continue
        for key, value, allowed in (("level", entry["level"], LEVELS), ("ours", entry["ours"], OURS),
                                    ("kernel", entry["kernel"].partition(":")[0], KERNEL)):
            if value not in allowed:
                yield f"{SOURCE}: {row}: {key} is none of {', '.join(allowed)}"
        for name in entry["code"]:
            if name not in defined:
                yield f"{SOURCE}: {row}: no function {name} in {', '.join(SOURCES)}"
        for name in entry.get("tests", ()):
            if name not in known:
                yield f"{SOURCE}: {row}: no test {name}"
        if entry["ours"] == "met":
            if not entry["code"]:
                yield f"{SOURCE}: {row} is met, and no function does it"
            if not shown[row] and (row.startswith("R") or not entry.get("note")):
                yield f"{row} is met, and no test says so"
        elif not entry.get("note"):
            yield f"{SOURCE}: {row} is {entry['ours']}, and no note says why"
    for name, tags in known.items():
        for tag in tags:
            if tag not in table:
                yield f"{name}: there is no row {tag}"


def paragraph(text, indent=""):
    """Wrapped; what follows the first line of an item of a list stands below its text."""
    return textwrap.fill(text, 120, initial_indent=indent, subsequent_indent=indent + "  " * text.startswith("- "),
                         break_long_words=False, break_on_hyphens=False)


def of_tests(names):
    """Names, those of one program together."""
    programs = collections.defaultdict(list)
    for name in names:
        program, _, test = name.partition("/")
        programs[program].append(f"`{test}`")
    return "; ".join(f"{program}: {', '.join(names)}" for program, names in programs.items())


def row_lines(row, entry, names):
    """A row of the page."""
    yield paragraph(f"- **{row}**, {entry['where']}, {entry['level']}: **{entry['ours']}**. {entry['says']}")
    if entry.get("note"):
        yield paragraph(f"- {entry['note']}", "  ")
    if entry["code"]:
        yield paragraph("- In " + ", ".join(f"`{name}()`" for name in entry["code"]), "  ")
    if names:
        yield paragraph("- Tests in " + of_tests(names), "  ")
    elif entry["ours"] == "met":
        yield "  - No test in `make check`"
    yield paragraph(f"- In the kernel: {entry['kernel']}", "  ")


def counts(table, verdict, words):
    found = collections.Counter(verdict(entry) for entry in table.values())
    return [str(found[word]) for word in words]


def page(table, shown):
    """The whole page."""
    parts = {"R": {}, "G": {}, "N": {}}
    for row, entry in table.items():
        parts[row[0]][row] = entry
    required = parts["R"]
    words = ("met", "partly", "not met", "not used")
    as_ours = {"yes": "met", "no": "not met", "unused": "not used", "partly": "partly", "not yet": "not met"}
    lines = [
        "# Conformance", "",
        paragraph(HEAD), "", paragraph(MADE), "",
        "| requirements | " + " | ".join(words) + " |", "|---" * (len(words) + 1) + "|",
    ]
    for name, verdict in (("this qdisc", lambda e: as_ours.get(e["ours"], e["ours"])),
                          ("that of Linux 7.3", lambda e: as_ours[e["kernel"].partition(":")[0]])):
        for title, levels in ((f"all {len(required)}", LEVELS), ("MUST", LEVELS[:2]), ("SHOULD", LEVELS[2:3]),
                              ("MAY, guidance", LEVELS[3:])):
            some = {row: entry for row, entry in required.items() if entry["level"] in levels}
            lines.append(f"| {name}: {title} | " + " | ".join(counts(some, verdict, words)) + " |")
    named = {name for row in required for name in shown[row]}
    bare = [row for row in required if not shown[row]]
    falls = [f"{row} ({entry['ours']})" for row, entry in table.items() if entry["ours"] != "met"]
    lines += ["", paragraph(f"{len(named)} tests show these {len(required)}; without one: {', '.join(bare) or 'none'}. "
                            f"Other than met, of all rows below: {', '.join(falls) or 'none'}.")]
    for title, about, first, last in SECTIONS:
        lines += ["", f"## {title}", "", paragraph(about), ""]
        for row, entry in table.items():
            if row[0] == first[0] and int(first[1:]) <= int(row[1:]) <= int(last[1:]):
                lines += row_lines(row, entry, shown[row])
    return "\n".join(lines) + "\n"


def outcomes(logs):
    """{"suite of this run": (passed, failed, skipped)}; one without a code is of an earlier run."""
    found = {}
    for code in glob.glob(os.path.join(logs, "*.code")):
        log = code.removesuffix(".code") + ".log"
        if os.path.exists(log):
            passed, failed, skipped, _ = results.read(log)
            found[os.path.basename(code).removesuffix(".code")] = (
                set(passed), set(failed), {name.partition(":")[0] for name in skipped})
    return found


def trouble(name, suites):
    """Why a test does not count as passed, or None."""
    program, _, test = name.partition("/")
    runs = [found for suite, found in suites.items() if suite == program or suite.endswith("-" + program)]
    if any(test in failed for _, failed, _ in runs):
        return "failed"
    if any(test in passed for passed, _, _ in runs):
        return None
    return "was skipped" if any(test in skipped for *_, skipped in runs) else "did not run"


def not_passed(table, shown, logs):
    """Print the tests that the page names and that did not pass."""
    suites = outcomes(logs)
    wrong = [f"{name} of {row}: {why}" for row in table for name in shown[row] if (why := trouble(name, suites))]
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    table, known = rows(), tests()
    shown = shown_by(table, known)
    wrong = list(complaints(table, known, shown))
    if sys.argv[1:2] == ["--results"] and len(sys.argv) == 3:
        return not_passed(table, shown, sys.argv[2])
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__.split("\n\n")[1])
    if not wrong:
        text = page(table, shown)
        if not sys.argv[1:]:
            with open(path(PAGE), "w", encoding="utf-8") as file:
                file.write(text)
        elif not os.path.exists(path(PAGE)) or read(PAGE) != text:
            wrong.append(f"{PAGE} is not up to date: run scripts/conformance.py")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
