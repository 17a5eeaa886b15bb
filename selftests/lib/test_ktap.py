#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""test_ktap.py - what the harness prints and its exit codes, of small programs that are written here."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from ktap import expect, expect_equal, main, test  # noqa: E402

PROGRAM = """\
import random, sys
sys.path.insert(0, {here!r})
from ktap import Failure, Skip, SKIP, each, expect, main, note, test

@test("about")
def good(): random.random()
@test
def good_too(): pass
@test(needs="virtual_time")
def clock(): pass
@test(needs="destructive")
def unload(): pass
@test(needs="long")
def hours(): pass
@test(needs="ext")
def extension(): pass
@each(("a", "b"), needs="")
def case_CASE(name): expect(name == "a", "it is b")
@test(needs="timed")
def late(): raise Failure("too late")
@test
def leaves(): sys.exit(3)
@test
def chance(): note(random.randrange(10**9))

def prepare():
    if "--absent" in sys.argv[0]: raise Skip("need root")
    SKIP["ext"] = "no extension"
    return ["head"]

main(needs={needs!r}, prepare=prepare, finish=lambda: print("# end"))
"""


def run(*args, needs="", name="program.py", **environment):
    """Exit code and lines of the program."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(PROGRAM.format(here=os.path.dirname(os.path.abspath(__file__)), needs=needs))
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("DUALPI2_", "KSFT_"))}
        done = subprocess.run([sys.executable, path, *args], env=clean | environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.replace(path, "PROGRAM").splitlines()


def results(lines):
    return [line for line in lines if line.startswith(("ok ", "not ok "))]


@test
def plan_is_first_and_each_result_has_its_number():
    code, lines = run()
    expect_equal(code, 1)
    expect_equal(lines[:3], ["KTAP version 1", "1..11", "# head"])
    expect_equal(results(lines), [
        "ok 1 good", "ok 2 good_too", "ok 3 clock # SKIP needs virtual time, see docs/TESTING.md",
        "ok 4 unload # SKIP changes this machine; use --destructive", "ok 5 hours # SKIP takes long; use --long",
        "ok 6 extension # SKIP no extension", "ok 7 case_a", "not ok 8 case_b", "not ok 9 late", "not ok 10 leaves",
        "ok 11 chance"])
    expect_equal(lines[-2:], ["# end", "# Totals: pass:4 fail:3 xfail:0 xpass:0 skip:4 error:0"])


@test
def list_prints_names_and_what_they_are_for():
    code, lines = run("--list", "-k", "good")
    expect_equal((code, lines), (0, ["good about"]))
    expect_equal(run("--list", "-k", "goo")[1], ["good about", "good_too"])


@test
def name_that_is_exact_selects_one_test():
    expect_equal(results(run("-k", "good")[1]), ["ok 1 good"])
    expect_equal(results(run("-k", "=good")[1]), ["ok 1 good"])
    expect_equal(results(run("-k", "good_")[1]), ["ok 1 good_too"])
    expect_equal(results(run("-k", "good", "-k", "case")[1]), ["ok 1 good", "ok 2 case_a", "not ok 3 case_b"])
    for pattern in ("=goo", "nothing"):
        code, lines = run("-k", pattern)
        expect_equal(code, 1, f"exit code of -k {pattern}")
        expect("no test matches" in lines[-1], lines)


@test
def exit_code_0_with_some_skipped_and_4_with_all():
    expect_equal(run("-k", "good", "-k", "clock")[0], 0)
    expect_equal(run("-k", "clock", "-k", "unload")[0], 4)
    expect_equal(run("-k", "late")[0], 1)


@test
def want_of_what_all_need_exit_code_4():
    code, lines = run(name="--absent")
    expect_equal((code, lines), (4, ["KTAP version 1", "1..0 # SKIP need root"]))


@test
def marks_in_machines_of_the_project():
    for machine, clock, hours in (("uml", "", ""), ("virtual-time", "", ""),
                                  ("tcg", " # SKIP needs virtual time, see docs/TESTING.md",
                                   " # SKIP takes long; use --long")):
        lines = run("-k", "clock", "-k", "unload", "-k", "hours", DUALPI2_VM=machine)[1]
        expect_equal(results(lines), ["ok 1 clock" + clock, "ok 2 unload", "ok 3 hours" + hours], machine)
    lines = run("-k", "unload", "-k", "hours", "--destructive", "--long")[1]
    expect_equal(results(lines), ["ok 1 unload", "ok 2 hours"])


@test
def mark_of_the_program_is_for_tests_without_one():
    code, lines = run("-k", "good", "-k", "case_a", needs="ext")
    expect_equal((code, results(lines)), (0, ["ok 1 good # SKIP no extension", "ok 2 case_a"]))


@test
def failure_by_time_on_a_slow_machine_is_expected():
    code, lines = run("-k", "late", "-k", "good", KSFT_MACHINE_SLOW="yes")
    expect_equal((code, results(lines)), (0, ["ok 1 good", "ok 2 late # XFAIL the machine is slow"]))
    expect_equal(run("-k", "case_b", KSFT_MACHINE_SLOW="yes")[0], 1)


@test
def failure_prints_the_command_that_repeats_it():
    lines = run("-k", "case")[1]
    expect("# repeat: python3 PROGRAM -k case_b" in lines, lines)
    lines = run("-k", "case", DUALPI2_SEED="7")[1]
    expect("# repeat: DUALPI2_SEED=7 python3 PROGRAM -k case_b" in lines, lines)
    lines = run("-k", "case", DUALPI2_REPEAT="scripts/run test x.py -k")[1]
    expect("# repeat: scripts/run test x.py -k case_b" in lines, lines)
    expect(not any("repeat" in line for line in run("-k", "good")[1]), "of a test that passed, too")


@test
def seed_repeats_a_test_alone_as_among_others():
    def drawn(*args, **environment):
        lines = run(*args, **environment)[1]
        return next(line for line in lines if line[2:].isdigit()), "# seed 5" in lines

    expect_equal(drawn(DUALPI2_SEED="5"), drawn("-k", "chance", DUALPI2_SEED="5"))
    expect(drawn(DUALPI2_SEED="5")[1], "the seed is not printed")
    expect(drawn(DUALPI2_SEED="5")[0] != drawn(DUALPI2_SEED="6")[0], "the seed has no effect")


if __name__ == "__main__":
    main()
