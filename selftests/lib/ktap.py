# SPDX-License-Identifier: GPL-2.0-only
"""The harness of all tests in Python: registration, marks, assertions, and KTAP on standard output.

    from ktap import expect_equal, main, test

    @test("RFC 9331 5.1", needs="ext")
    def ecn_ect1_goes_to_l():
        expect_equal(...)

    if __name__ == "__main__":
        main()

This is not the place for anything that needs a network or a kernel: that is net/lib.py.

test(*about, needs=None)    registers a test, also as plain @test; about: the requirements or faults it is for
each(cases, about=(), name=str, needs=None)     registers a test for each case, which is its argument; CASE in its
                        name becomes name(case)
expect(condition, text) expect_equal(got, want, what) expect_between(got, low, high, what); assert works, too
note(text)              a diagnostic line, printed before the result
VIRTUAL_TIME            does the clock stand still while the kernel computes?
Skip(reason)            raise it where the test cannot run; in prepare(), the program ends with exit code 4
report(verdicts, lines=())  prints verdicts that a program has made by itself
main(needs=(), prepare=None, finish=None)   runs the tests and exits; needs: marks of tests that have none of their own

Marks, several in one string: "virtual_time ext"
    virtual_time    needs a clock that stands still while the kernel computes; skipped on other machines
    long            sleeps or computes long: needs --long, or virtual time
    timed           judges times: with KSFT_MACHINE_SLOW set, a failure is an expected one (XFAIL)
    destructive     changes the machine outside of its own network namespaces: needs --destructive, which a machine
                    of scripts/run-vm.sh implies
    others          skipped with the text that SKIP, a dict of prepare()'s, has for them

Options: --list, --destructive, --long, -k NAME (repeatable): the test of this name; if there is none, those with NAME
in their names; "=NAME" is never a part of a name.
Exit code: 0; 1 a test failed, or -k matches none; 4 all were skipped, or something that all need is missing.
Environment: DUALPI2_VM (set in machines of scripts/run-vm.sh), KSFT_MACHINE_SLOW; DUALPI2_SEED, the seed of module
random before each test; DUALPI2_REPEAT, the command to which the name of a failed test is appended for the line
"# repeat: ...".
"""

import argparse
import math
import os
import random
import shlex
import sys
import time
import traceback

SKIP = {}               # mark: why its tests cannot run here
MACHINE = os.environ.get("DUALPI2_VM")
VIRTUAL_TIME = MACHINE in ("virtual-time", "uml")
_tests = []
_notes = []
_HELPERS = ("ktap.py", "lib.py", "netlink.py")


class Failure(Exception):
    """A test's expectation was not met."""


class Skip(Exception):
    """Something that the test needs is missing."""


def test(*about, needs=None):
    """Register a test."""
    def register(function):
        function.about = about
        function.needs = needs
        _tests.append(function)
        return function
    if len(about) == 1 and callable(about[0]):
        function, about = about[0], ()
        return register(function)
    return register


def each(cases, about=(), name=str, needs=None):
    """Register a test for each case."""
    def register(function):
        for item in cases:
            def case(item=item):
                function(item)
            case.__name__ = function.__name__.replace("CASE", name(item))
            case.__doc__ = function.__doc__
            test(*about, needs=needs)(case)
        return function
    return register


def note(text):
    """A diagnostic line of the running test."""
    _notes.append(str(text))


def expect(condition, text):
    """Fail with a text unless the condition holds."""
    if not condition:
        raise Failure(text)


def expect_equal(got, want, what=""):
    """Fail unless both are the same."""
    if got != want:
        raise Failure(f"{what or 'value'}: got {got!r}, expected {want!r}")


def expect_between(got, low, high, what=""):
    """Fail unless low <= got <= high; the value is shown either way."""
    note(f"{what}: {got:.6g} in [{low:.6g}, {high:.6g}]")
    if not low <= got <= high or math.isnan(got):
        raise Failure(f"{what}: {got:.6g} is not in [{low:.6g}, {high:.6g}]")


def _seed():
    if "DUALPI2_SEED" in os.environ:
        random.seed(os.environ["DUALPI2_SEED"])


def _repeat(name):
    """The command that runs one test alone."""
    prefix = os.environ.get("DUALPI2_REPEAT")
    if not prefix:
        seed = os.environ.get("DUALPI2_SEED")
        prefix = f"python3 {shlex.quote(os.path.abspath(sys.argv[0]))} -k"
        if seed:
            prefix = f"DUALPI2_SEED={shlex.quote(seed)} {prefix}"
    return f"{prefix} {shlex.quote(name)}"


def _why_not(needs):
    """Why a test with these marks cannot run here, or None."""
    return next((SKIP[mark] for mark in needs if mark in SKIP), None)


def _run_one(number, function, needs):
    """Run a test and print its result, which is returned: pass, fail, xfail or skip."""
    _notes.clear()
    _seed()
    before = time.monotonic()
    result, directive = "pass", ""
    try:
        if reason := _why_not(needs):
            raise Skip(reason)
        function()
    except Skip as reason:
        result, directive = "skip", f" # SKIP {reason}"
    except (Exception, SystemExit) as error:
        result = "fail"
        frame = traceback.extract_tb(error.__traceback__)
        mine = [f for f in frame if os.path.basename(f.filename) not in _HELPERS] or frame
        note(f"{type(error).__name__}: {error} (line {mine[-1].lineno})")
        if not isinstance(error, (Failure, OSError)):
            for line in traceback.format_exc().splitlines():
                note(line)
        if "timed" in needs and os.environ.get("KSFT_MACHINE_SLOW"):
            result, directive = "xfail", " # XFAIL the machine is slow"
        note(f"repeat: {_repeat(function.__name__)}")
    for line in _notes:
        for part in line.splitlines():
            print("# " + part)
    print(f"# {time.monotonic() - before:.1f} s")
    print(("not ok" if result == "fail" else "ok") + f" {number} {function.__name__}{directive}", flush=True)
    return result


def _chosen(patterns):
    """The tests that -k asks for."""
    names = {function.__name__ for function in _tests}

    def matches(name):
        return any(name == part.lstrip("=") if part.startswith("=") or part in names else part in name
                   for part in patterns)

    return [function for function in _tests if not patterns or matches(function.__name__)]


def report(verdicts, lines=(), as_ktap=True):
    """Print what a program has judged, [(name, good)], below some lines; return its exit code.

    Without as_ktap only the lines and what failed.
    """
    if as_ktap:
        print(f"KTAP version 1\n1..{len(verdicts)}")
    for line in lines:
        print(f"# {line}".rstrip() if as_ktap else line)
    for number, (name, good) in enumerate(verdicts, 1):
        if as_ktap:
            print(f"{'' if good else 'not '}ok {number} {name}")
        elif not good:
            print(f"FAILED: {name}")
    return 0 if all(good for _, good in verdicts) else 1


def main(needs=(), prepare=None, finish=None):
    """Run the registered tests as a KTAP program.  prepare() runs before the plan is printed, and may return lines for
    the head of the log; finish() after the last test.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="print the names of the tests and what they are for")
    parser.add_argument("--destructive", action="store_true", help="also run the tests that change this machine")
    parser.add_argument("--long", action="store_true", help="also run the tests that take long without virtual time")
    parser.add_argument("-k", action="append", metavar="NAME", help="only the test of this name, or those matching")
    args = parser.parse_args()
    chosen = _chosen(args.k)
    if args.list:
        for function in chosen:
            print(function.__name__, *function.about)
        return
    if not chosen:
        sys.exit(f"no test matches {args.k}; --list prints the names" if args.k else "there are no tests")
    if not VIRTUAL_TIME:
        SKIP["virtual_time"] = "needs virtual time, see docs/TESTING.md"
        if not args.long:
            SKIP["long"] = "takes long; use --long"
    if not MACHINE and not args.destructive:
        SKIP["destructive"] = "changes this machine; use --destructive"
    _seed()
    print("KTAP version 1")
    try:
        head = prepare() if prepare else None
    except Skip as reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(4)
    print(f"1..{len(chosen)}")
    for line in head or ():
        print("# " + line)
    if "DUALPI2_SEED" in os.environ:
        print(f"# seed {os.environ['DUALPI2_SEED']}")
    sys.stdout.flush()
    try:
        results = []
        for number, function in enumerate(chosen, 1):
            marks = needs if function.needs is None else function.needs
            results.append(_run_one(number, function, marks.split() if isinstance(marks, str) else marks))
    finally:
        if finish:
            finish()
    count = {name: results.count(name) for name in ("pass", "fail", "xfail", "skip")}
    print("# Totals: pass:{pass} fail:{fail} xfail:{xfail} xpass:0 skip:{skip} error:0".format(**count), flush=True)
    sys.exit(1 if count["fail"] else 4 if count["skip"] == len(results) else 0)
