# SPDX-License-Identifier: GPL-2.0-only
"""The small harness of tests that need no kernel: @test functions, a failed assertion fails, KTAP on stdout."""

import sys
import traceback

_tests = []


def test(function):
    """Register a test; its name says what it shows."""
    _tests.append(function)
    return function


def equal(got, want, what=""):
    """Fail unless got equals want; what: said of them then."""
    assert got == want, f"{what}{': ' if what else ''}{got!r} is not {want!r}"


def main():
    """Run the tests whose names have one of the program's arguments in them, or all; the exit code."""
    chosen = [t for t in _tests if not sys.argv[1:] or any(part in t.__name__ for part in sys.argv[1:])]
    print(f"KTAP version 1\n1..{len(chosen)}", flush=True)
    failed = 0
    for number, function in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} {function.__name__}", flush=True)
        except (Exception, SystemExit):
            failed += 1
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()[-12:]), end="")
            print(f"not ok {number} {function.__name__}", flush=True)
    return 1 if failed or not chosen else 0
