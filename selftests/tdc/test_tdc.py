#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off needs=source
# suite: long kernel=stock needs=source
"""
test_tdc.py - what tc makes of dualpi2's options: our cases and those of the kernel's tree, as KTAP.

Our cases (cases.py) are in the format of the kernel's tc-testing and run with its tdc.py too. They
are run here by a driver of their own, which needs nothing from the kernel's tree, is some ten times
as fast, and also checks that a case leaves nothing behind. The stock tc is that of DUALPI2_TC_STOCK.

DUALPI2_TC_PATCHED names tcs, with blanks between, that have our front end built in (scripts/dist/iproute2.sh).
Then these are tested and nothing else, by the cases of "dualpi2" and "dualpi2-ext"; the last, which should be
the newest, also by the kernel's cases, in the stock one's place.

The kernel's cases about dualpi2 are run by its own tdc.py with the stock tc, from the tree that
scripts/tdc.sh names (DUALPI2_TC_TESTING). They are not changed,
except for three that assert faults of the in-tree qdisc: see VARIANTS.

What options do to packets is tested in selftests/net.
"""
import ctypes
import functools
import json
import lzma
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import cases as ours                                            # noqa: E402
import lib                                                      # noqa: E402
from lib import Failure, Skip                                   # noqa: E402

TESTING = os.environ.get("DUALPI2_TC_TESTING") or "/nonexistent"
STOCK = os.environ.get("DUALPI2_TC_STOCK")
PATCHED = os.environ.get("DUALPI2_TC_PATCHED", "").split()
NO_PLUGIN = "/nonexistent"          # a stock tc would take our plugin before what it has built in
DUMMY = "dummy1"
TIMEOUT = 60


# Our cases, by our driver

class FrontEnd:
    """A tc and where it takes plugins from."""

    def __init__(self, name, tc, plugins):
        self.name = name
        self.names = {"TC": tc, "IP": "ip", "DUMMY": DUMMY}
        self.env = dict(os.environ, TC_LIB_DIR=plugins)

    def run(self, command):
        """Run one command of a case; return its code and what tdc.py takes for its output."""
        command = string.Template(command).safe_substitute(self.names)
        plain = not re.search(r'[;&|<>$`"\'*?]', command)
        done = subprocess.run(shlex.split(command) if plain else command, shell=not plain,
                              env=self.env, capture_output=True, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, check=False)
        failed = done.returncode and done.stderr
        return done.returncode, done.stderr if failed else done.stdout


@functools.cache
def namespace():
    """One for all our cases; a case leaves the device as it found it."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):   # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    lib.run(["ip", "link", "add", DUMMY, "type", "dummy"])
    lib.run(["ip", "link", "set", DUMMY, "up"])


def left_behind():
    return [qdisc["kind"] for qdisc in lib.qdisc_dump(None, DUMMY) if qdisc["kind"] != "noqueue"]


def contains(got, want):
    """As tdc.py compares JSON: keys that are wanted, and elements from the first on."""
    if isinstance(want, dict):
        return isinstance(got, dict) and all(
            key in got and contains(got[key], value) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) >= len(want) and all(map(contains, got, want))
    return type(got) is type(want) and got == want or \
        isinstance(got, (int, float)) and not isinstance(got, bool) and \
        not isinstance(want, bool) and got == want


def run_commands(front_end, stage, commands):
    for command in commands:
        command, *codes = command if isinstance(command, list) else [command, 0]
        code, output = front_end.run(command)
        if code not in codes:
            raise Failure(f"{stage}: `{command}` ended with {code}: {output.strip()}")


def verify(front_end, case):
    _, output = front_end.run(case["verifyCmd"])
    if "matchJSON" in case:
        try:
            shown = json.loads(output)
        except json.JSONDecodeError:
            raise Failure(f"no JSON: {output}") from None
        if not contains(shown, case["matchJSON"]):
            raise Failure(f'shown:  {json.dumps(shown)}\nwanted: {json.dumps(case["matchJSON"])}')
        return
    found = 0
    if output:
        found = len(re.findall(case["matchPattern"], output, re.DOTALL | re.MULTILINE))
    if found != int(case["matchCount"]):
        raise Failure(f'shown:  {output}\nwanted {case["matchCount"]} times, but found {found} '
                      f'times: {case["matchPattern"]}')


def run_case(front_end, case):
    namespace()
    try:
        run_commands(front_end, "setup", case["setup"])
        code, output = front_end.run(case["cmdUnderTest"])
        if code != int(case["expExitCode"]):
            raise Failure(f'`{case["cmdUnderTest"]}` ended with {code}, not {case["expExitCode"]}: '
                          f"{output.strip()}")
        verify(front_end, case)
        run_commands(front_end, "teardown", case["teardown"])
        if left_behind():
            raise Failure(f"left behind: {left_behind()}")
    finally:
        if left_behind():
            lib.run(["tc", "qdisc", "del", "dev", DUMMY, "root"], check=False)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def slug(text):
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def add_test(name, function, *args):
    def run():
        function(*args)

    run.__name__ = name
    lib.test()(run)


def skip(reason):
    raise Skip(reason)


def add_cases(front_end, *files):
    for file in files:
        for case in ours.all_cases()[file]:
            name = f'{slug(case["name"])}_{front_end.name}_{case["id"]}'
            if os.path.exists(front_end.names["TC"]):
                add_test(name, run_case, front_end, case)
            else:
                add_test(name, skip, "no stock tc; scripts/tc.sh builds one, name it in DUALPI2_TC_STOCK")


# The kernel's cases, by its own tdc.py

SUITES = ("tc-tests/qdiscs/dualpi2.json", "tc-tests/infra/qdiscs.json")


def gains_as_sent(tc, case):
    """C10: Linux loses part of a gain when it stores it, and the case asserts what is left.

    tc computes alpha = 0.1 * tupdate / max_rtt^2 and beta = 0.3 / max_rtt (RFC 9332 A.1), tupdate being
    the lesser of typical_rtt, by default a sixth of max_rtt, and a third of max_rtt. It sends both as
    whole multiples of 1/256 Hz, rounded down, our front end to the nearest, and our qdisc shows what it
    was sent.
    """
    rtt = {word: Fraction(ms) / 1000 for word, ms in
           re.findall(r"(max_rtt|typical_rtt) (\d+)ms", case["cmdUnderTest"])}
    longest = rtt["max_rtt"]
    tupdate = min(rtt.get("typical_rtt", longest / 6), longest / 3)
    rounding = Fraction(1, 2) if tc in PATCHED else 0
    alpha = int(Fraction(1, 10) * tupdate / longest**2 * 256 + rounding) / 256
    beta = int(Fraction(3, 10) / longest * 256 + rounding) / 256
    pattern, count = re.subn(r"alpha [0-9.]+ beta [0-9.]+$", f"alpha {alpha:f} beta {beta:f}",
                             case["matchPattern"])
    if count != 1:
        raise Failure(f'the pattern of {case["id"]} is not as known: {case["matchPattern"]}')
    return dict(case, matchPattern=pattern)


def drops_by_square(_, case):
    """C5: Linux drops every Not-ECT packet in the L4S queue beyond step_thresh, and the case needs that.

    RFC 9332 2.5.1.1 wants a likelihood that suits a Classic sender; dualpi2's is the square of the marking
    likelihood over the coupling factor. With a factor of 1 that is 1 beyond the threshold, and the
    case finds the drops inside peek that it is about.
    """
    setup = [re.sub(r"( dualpi2 step_thresh 500ms)$", r"\1 coupling_factor 1", line)
             for line in case["setup"]]
    if setup == case["setup"]:
        raise Failure(f'the setup of {case["id"]} is not as known')
    return dict(case, setup=setup)


# Cases that assert faults of Linux's qdisc are run as they are, which is reported but decides
# nothing, and in a generated copy, which must pass.
VARIANTS = {
    "2130": ("with_the_gain_that_was_set", gains_as_sent),
    "90c1": ("with_the_gain_that_was_set", gains_as_sent),
    "d3da": ("with_coupling_factor_1", drops_by_square),
}
VARIANT_ID = "ff{}"


def has_plug(case):
    return "plug" in str(case["setup"])


@functools.cache
def qfq_warns():
    """Does this kernel's qfq WARN() about a child that holds packets back, as plug does?

    Later ones report it by qdisc_warn_nonwc(), which is a line in the log and no fault.
    """
    found = subprocess.run(["modinfo", "-n", "sch_qfq"], capture_output=True, text=True, check=False)
    # The kernel that has it built in is a debug kernel, and a late one (scripts/debug-kernel.sh).
    if found.returncode or found.stdout.strip() == "(builtin)":
        return False
    with open(found.stdout.strip(), "rb") as file:
        module = file.read()
    if found.stdout.strip().endswith(".xz"):
        module = lzma.decompress(module)
    return b"qdisc_warn_nonwc" not in module


def kernel_cases():
    cases = []
    for suite in SUITES:
        cases += [case for case in load(os.path.join(TESTING, suite))
                  if "dualpi2" in json.dumps(case)]
    return cases


def python_with_pyroute2():
    """Without pyroute2, tdc.py sets up its namespaces in the background and does not wait for it."""
    for python in (sys.executable, os.path.join(os.environ.get("DUALPI2_VENV", ""), "bin/python")):
        if os.access(python, os.X_OK) and subprocess.run(
                [python, "-c", "import importlib.util, sys;"
                 'sys.exit(not importlib.util.find_spec("pyroute2"))'], check=False).returncode == 0:
            return python
    raise Skip("no pyroute2, which tdc.py needs; run scripts/setup.sh")


@functools.cache
def tdc_results(tc):
    """Run tdc.py once for everything; {id: (good, what it says)}."""
    python = python_with_pyroute2()
    cases = [case for case in kernel_cases() if not (has_plug(case) and qfq_warns())]
    variants = [dict(VARIANTS[case["id"]][1](tc, case), id=VARIANT_ID.format(case["id"][2:]))
                for case in cases if case["id"] in VARIANTS]
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "variants.json"), "w", encoding="utf-8") as file:
            json.dump(variants, file)
        with open(os.path.join(scratch, "tdc_config_local.py"), "w", encoding="utf-8") as file:
            # Before Debian 12 what is in /sbin is not in /usr/sbin too.
            file.write(f'EXTRA_NAMES = {{"TC": {tc!r}, "ETHTOOL": {shutil.which("ethtool")!r}}}\n'
                       f'ENVIR = {{"TC_LIB_DIR": {NO_PLUGIN!r}, "PATH": {os.environ["PATH"]!r}}}\n')
        report = os.path.join(scratch, "results.tap")
        done = subprocess.run(
            [python, "tdc.py", "--outfile", report, "-f", *SUITES,
             os.path.join(scratch, "variants.json"), "-e", *(case["id"] for case in cases + variants)],
            cwd=TESTING, env=dict(os.environ, PYTHONPATH=scratch, PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True, text=True, timeout=600, check=False)
        if not os.path.exists(report):
            raise Failure(f"tdc.py ended with {done.returncode} and no report:\n"
                          f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        with open(report, encoding="utf-8") as file:
            tap = file.read()
    results = {}
    for good, number, text in re.findall(r"^(ok|not ok) \d+ ([0-9a-f]{4}) - (.*?)(?=^ok|^not ok|\Z)",
                                         tap, re.DOTALL | re.MULTILINE):
        results[number] = (good == "ok" and "# skipped" not in text, text.strip())
    return results


def check_kernel_case(tc, case):
    variant = VARIANTS.get(case["id"])
    if has_plug(case) and qfq_warns():
        raise Skip("the qfq of this kernel WARNs about any child that holds packets back, as plug does "
                   "here; newer ones do not")
    results = tdc_results(tc)
    missing = (False, "no result")
    good, text = results.get(case["id"], missing)
    if variant:
        lib.note(f'{case["id"]} as it is {"passes" if good else "fails"}: {text}')
        good, text = results.get(VARIANT_ID.format(case["id"][2:]), missing)
    if not good:
        raise Failure(text)


def add_kernel_cases(tc, prefix="kernel"):
    if not tc or not os.path.exists(os.path.join(TESTING, "tdc.py")):
        what = "stock tc (scripts/tc.sh)" if not tc else "tc-testing (scripts/tdc.sh)"
        add_test(f"{prefix}_cases", skip, f"no {what}")
        return
    for case in kernel_cases():
        name = f'{prefix}_{case["id"]}_{slug(case["name"])}'
        if case["id"] in VARIANTS:
            name += "_" + VARIANTS[case["id"]][0]
        add_test(name, check_kernel_case, tc, case)


def has_unique_ids():
    """This project's ids among themselves and against the kernel's, as tdc.py requires."""
    ids = [case["id"] for cases in ours.all_cases().values() for case in cases]
    for folder, _, files in os.walk(os.path.join(TESTING, "tc-tests")):
        ids += [case["id"] for file in files if file.endswith(".json")
                for case in load(os.path.join(folder, file))]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise Failure(f"ids of more than one case: {twice}")


def has_our_options(tc, name):
    """Built in, for there is no plugin where it looks for one."""
    done = subprocess.run([tc, "qdisc", "add", "dev", "lo", "root", "dualpi2", "help"], text=True,
                          env=dict(os.environ, TC_LIB_DIR=NO_PLUGIN), capture_output=True, check=False)
    if "[ l4s | no_l4s ]" not in done.stderr:
        raise Failure(f"{tc} is not a tc with our front end: {done.stderr}")
    version = subprocess.run([tc, "-V"], text=True, capture_output=True, check=True).stdout
    lib.note(f"{name} is {version.strip()}")


def add_patched():
    add_kernel_cases(PATCHED[-1], slug(f"kernel {os.path.basename(PATCHED[-1])}"))
    for tc in PATCHED:
        name = slug(os.path.basename(tc))
        add_test(f"{name}_has_our_options_built_in", has_our_options, tc, name)
        add_cases(FrontEnd(name, os.path.abspath(tc), NO_PLUGIN), "dualpi2", "dualpi2-ext")


def main():
    if PATCHED:
        add_patched()
        lib.main()
        return
    # The kernel's cases first: they need the first network namespace, which this project's leave.
    add_kernel_cases(STOCK)
    add_test("case_ids_are_unique", has_unique_ids)
    plugin = FrontEnd("plugin", shutil.which("tc") or "/sbin/tc", os.environ["TC_LIB_DIR"])
    stock = FrontEnd("stock", STOCK or "", NO_PLUGIN)
    add_cases(plugin, "dualpi2", "dualpi2-ext")
    add_cases(stock, "dualpi2", "dualpi2-stock")
    lib.main()


if __name__ == "__main__":
    main()
