# SPDX-License-Identifier: GPL-2.0-only
"""What net/dualpi2 uses of the kernel's package of this name. Own code."""

import os
import subprocess
import sys
import traceback

_cleanups = []
_failed = False
_any_failed = False


class KsftSkipEx(Exception):
    """The test cannot run here."""


class KsftXfailEx(Exception):
    """The test failed, which was to be expected."""


class CmdExitFailure(Exception):
    """A command failed."""


class cmd:
    """Run a command to its end; .stdout, .stderr, .ret."""

    def __init__(self, comm, fail=True, ns=None, timeout=5):
        if ns:
            comm = f"ip netns exec {ns} {comm}"
        done = subprocess.run(comm, shell=True, text=True, capture_output=True, timeout=timeout, check=False)
        self.stdout, self.stderr, self.ret = done.stdout, done.stderr, done.returncode
        if fail and self.ret:
            raise CmdExitFailure(f"Command failed: {comm}\n{self.stdout}{self.stderr}")


class NetNS:
    """A network namespace; str() is its name."""

    def __init__(self):
        self.name = f"ksft-{os.getpid()}-{len(_cleanups)}-{id(self):x}"[:40]
        ip(f"netns add {self.name}")

    def __str__(self):
        return self.name

    def __enter__(self):
        return self

    def __exit__(self, *error):
        ip(f"netns del {self.name}")


def ip(args, ns=None):
    """Run ip(8)."""
    return cmd(f"ip {'-netns ' + str(ns) if ns else ''} {args}")


def defer(func, *args, **kwargs):
    """Call a function after the test."""
    _cleanups.append((func, args, kwargs))


def ksft_pr(*objs):
    """Print a comment."""
    print("#", " ".join(map(str, objs)).replace("\n", "\n# "), flush=True)


def _check(good, *what):
    global _failed
    if not good:
        _failed = True
        ksft_pr(f"Check failed at line {sys._getframe(2).f_lineno}:", *what)


def ksft_eq(a, b, comment=""):
    """Fail unless a == b."""
    _check(a == b, a, "!=", b, comment)


def ksft_ge(a, b, comment=""):
    """Fail unless a >= b."""
    _check(a >= b, a, "<", b, comment)


def ksft_lt(a, b, comment=""):
    """Fail unless a < b."""
    _check(a < b, a, ">=", b, comment)


def _run_one(case, args):
    """Returns what follows the name of the test."""
    global _failed
    try:
        case(*args)
    except KsftSkipEx as error:
        return f" # SKIP {error}"
    except KsftXfailEx as error:
        return f" # XFAIL {error}"
    except Exception:
        _failed = True
        ksft_pr(traceback.format_exc())
    finally:
        while _cleanups:
            func, its_args, kwargs = _cleanups.pop()
            func(*its_args, **kwargs)
    return ""


def ksft_run(cases, args=()):
    """Run functions as the tests of this program."""
    global _failed, _any_failed
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    print(f"TAP version 13\n1..{len(cases)}", flush=True)
    for number, case in enumerate(cases, 1):
        _failed = False
        directive = _run_one(case, args)
        print(f"{'not ' if _failed else ''}ok {number} {name}.{case.__name__}{directive}", flush=True)
        _any_failed = _any_failed or _failed


def ksft_exit():
    """End the program."""
    sys.exit(1 if _any_failed else 0)
