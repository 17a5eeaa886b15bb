# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 doctor DEV: why there is no L4S here, in one line with the command that mends it.

Options and output only: the facts come from probe, what follows from them from rules. It changes
nothing and sends nothing.

Exit code: 0 healthy, 1 a fault, 2 usage, 3 it cannot tell.
"""

import argparse
import json
import os
import shlex
import sys

from .. import Trouble
from . import net, probe, rules

HEALTHY, FAULT, USAGE, UNKNOWN = 0, 1, 2, 3
CODES = {"healthy": HEALTHY, "fault": FAULT, "unknown": UNKNOWN}


def _seconds(words):
    try:
        value = float(words[:-1] if words[-1:] == "s" else words)
    except ValueError:
        value = 0
    if not 0.5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"'{words}' is no time to watch for; give seconds from 0.5 to 3600")
    return value


def _options(words):
    parser = argparse.ArgumentParser(
        prog="dualpi2 doctor", description="Why there is no L4S on a device, and the command that mends it. Nothing is "
        "changed or sent. Exit code: 0 healthy, 1 a fault, 3 it cannot tell.",
        epilog="Let it watch while a transfer that should use L4S is running; connections that begin meanwhile tell "
        "most.")
    parser.add_argument("device", metavar="DEV", help="the device that dualpi2 is on, or should be")
    parser.add_argument("--watch", type=_seconds, default=5.0, metavar="SECONDS", help="look for so long (5)")
    parser.add_argument("-v", "--verbose", action="store_true", help="every check, with what was seen")
    parser.add_argument("--json", action="store_true", help="as JSON; with -v the facts, too")
    return parser.parse_args(words)


def _as_json(options, facts, result):
    found = {"device": options.device, "verdict": result.verdict(),
             "findings": [finding.as_dict() for finding in result.findings], "doubts": result.doubts,
             "checks": result.checks}
    if options.verbose:
        found["facts"] = facts
    return json.dumps(found)


def _as_text(options, facts, result):
    lines = []
    if options.verbose:
        lines += [rules.printable(f"{check['result']:8}{check['id']:18}{check['seen']}")
                  for check in result.checks]
    if result.findings:
        first, *others = result.findings
        lines += [finding.line() for finding in others] if options.verbose else []
        more = f" (and then: {', '.join(finding.kind for finding in others)}; -v shows them)" if others else ""
        lines.append(first.line() + ("" if options.verbose else more))
    elif result.doubts:
        lines.append(rules.printable(f"unknown: {options.device}: {'; '.join(result.doubts)}"))
    else:
        lines.append(rules.printable(f"healthy: {options.device}: " + health(facts)))
    return "\n".join(lines)


def health(facts):
    """What is well, in a few words."""
    parts = []
    for target in rules.targets(facts):
        if target.loaded() and target.queued():
            delays = [seen["l4s"]["p99_ns"] for seen in target.seen if "p99_ns" in seen["l4s"]]
            parts.append(f"{target.direction} {rules.bits(target.rate)}, {target.arrived()[0]['ect1']} ECT(1) "
                         f"packets, {target.sum('l4s', 'marked')} marked here"
                         + (f", P99 of their delay {rules.delay(max(delays))}" if delays else ""))
    return "; ".join(parts)


def main(words=None):
    """The program; its exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    options = _options(words)
    try:
        if not net.is_root():
            raise Trouble("only root may look at packets and filters; run: sudo dualpi2 doctor "
                          + shlex.quote(options.device), UNKNOWN)
        facts = probe.facts(options.device, options.watch)
        result = rules.diagnose(facts)
        return _say(_as_json(options, facts, result) if options.json else _as_text(options, facts, result),
                    CODES[result.verdict()])
    except Trouble as trouble:
        print(f"dualpi2 doctor: {trouble}", file=sys.stderr)
        return UNKNOWN
    except KeyboardInterrupt:
        return 130
    except PermissionError as error:
        print(f"dualpi2 doctor: not allowed to look at packets ({error.strerror}); run it as root outside of the "
              "container", file=sys.stderr)
        return UNKNOWN
    except OSError as error:
        print(f"dualpi2 doctor: cannot look at {error.filename or options.device} ({error.strerror or error}); try "
              "again, or see what `dmesg` says", file=sys.stderr)
        return UNKNOWN


def _say(text, code):
    """Print it; the exit code, which is no verdict if nobody could read it."""
    try:
        print(text, flush=True)
        return code
    except OSError as error:
        # What is left in it would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"dualpi2 doctor: cannot write the answer ({error.strerror}); see whether the disk is full",
                  file=sys.stderr)
        return UNKNOWN
