#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
tc_line.py - run tc_line, the fuzzer of the tc front end: its corpus, then random inputs of each kind.

With the same seed and number of lines a run is the same to the bit: -use_cmp=0, because what libFuzzer learns from
comparisons depends on addresses. A failing input is made smaller and printed as corpus/tc.txt has it.

The environment: DUALPI2_FUZZ_LINES, number of command lines (1000000); DUALPI2_FUZZ_SEED (1).
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "selftests/lib"))

from ktap import Failure, each, expect, expect_equal, main, note, test  # noqa: E402

PROGRAM = os.path.join(ROOT, "build/fuzz/tc_line")
LINES = int(os.environ.get("DUALPI2_FUZZ_LINES") or 1000000)
SEED = os.environ.get("DUALPI2_FUZZ_SEED") or "1"
# Kind, name of the test, and its share: one in so many of the number of lines.
PARTS = {
    "line": ("command_lines_random_hold", 1),
    "values": ("options_of_a_kernel_come_back", 8),
    "options": ("options_random_hold", 8),
    "xstats": ("statistics_random_hold", 8),
}


def corpus():
    """(name, kind, bytes) of each case."""
    with open(os.path.join(HERE, "corpus/tc.txt"), encoding="ascii") as file:
        for line in file:
            if not line.startswith("#") and line.strip():
                name, _, rest = line.rstrip("\n").split(": ", 2)
                kind, _, text = rest.partition(" ")
                yield name, kind, ("".join(word + "\n" for word in shlex.split(text)).encode() if kind == "line" else
                                   bytes.fromhex(text))


def as_case(kind, data):
    if kind != "line":
        return f"{kind} {data.hex()}"
    return f"{kind} " + shlex.join(data.decode(errors="backslashreplace").split("\n")[:-1])


def run(kind, work, *arguments):
    """(exit code, output)"""
    done = subprocess.run([PROGRAM, "-timeout=10", "-artifact_prefix=" + work + "/", *arguments],
                          capture_output=True, text=True, errors="replace", check=False,
                          env=dict(os.environ, DUALPI2_FUZZ_KIND=kind))
    return done.returncode, done.stdout + done.stderr


def fault(output):
    """What the fuzzer or a sanitizer says."""
    lines = re.findall(r"^.*(?:FAULT:|ERROR: |runtime error: ).*$", output, re.M)
    return "\n".join(lines)[:1000] or output[-1000:]


def unpack(directory, kind):
    """The cases of one kind as files; returns their paths."""
    os.mkdir(directory)
    paths = []
    for name, of, data in corpus():
        if of == kind:
            paths.append(os.path.join(directory, name))
            with open(paths[-1], "wb") as file:
                file.write(data)
    return paths


@test()
def corpus_replayed_holds():
    cases = 0
    with tempfile.TemporaryDirectory() as work:
        for kind in ("line", "dump", "options", "xstats"):
            paths = unpack(os.path.join(work, kind), kind)
            cases += len(paths)
            code, output = run(kind, work, *paths)
            last = re.findall(r"^Running: .*/(.*)$", output, re.M)[-1:]
            expect(paths and not code, f"{kind}, case {last}: {fault(output)}")
    expect_equal(cases, len(list(corpus())), "cases run")
    note(f"{cases} cases")


@each(PARTS, name=lambda kind: PARTS[kind][0])
def CASE(kind):
    count = -(-LINES // PARTS[kind][1])
    with tempfile.TemporaryDirectory() as work:
        seeds, found = os.path.join(work, "seeds"), os.path.join(work, "found")
        os.mkdir(found)
        unpack(seeds, kind)
        code, output = run(kind, work, "-max_len=4096", f"-seed={SEED}", f"-runs={count}", "-reload=0", "-use_cmp=0",
                           "-len_control=0", found, seeds)
        if code:
            raise Failure(f"{fault(output)}\n{smaller(kind, work)}")
    inputs, taken = map(int, re.search(r"inputs:(\d+) accepted:(\d+)", output).groups())
    note(f"{inputs} inputs, {taken} accepted")
    expect(inputs >= count, f"{inputs} inputs of {count}")
    if kind == "values":
        expect_equal(taken, inputs, "dumps that came back")
    # If the front end accepts hardly any line, this is no test.
    if kind == "line" and count >= 1000:
        expect(taken > inputs / 20, f"only {taken} of {inputs} lines were accepted")


def smaller(kind, work):
    """The failing input as a case of the corpus, made smaller."""
    names = [name for name in os.listdir(work) if name.startswith(("crash-", "timeout-", "leak-", "oom-"))]
    if not names:
        return "no input was kept"
    path, small = os.path.join(work, names[0]), os.path.join(work, "smaller")
    run(kind, work, "-minimize_crash=1", "-runs=20000", "-max_total_time=20", "-exact_artifact_path=" + small, path)
    with open(small if os.path.exists(small) else path, "rb") as file:
        return as_case(kind, file.read())


if __name__ == "__main__":
    main()
