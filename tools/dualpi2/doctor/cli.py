# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 doctor: options and output. The facts come from probe, the conclusions from rules.

Nothing is changed without --fix, and nothing is sent.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys

from .. import Trouble
from ..kernel.netlink import namespace
from ..parser import Parser
from . import findings, net, probe, rules

HEALTHY, FAULT, USAGE, UNKNOWN = 0, 1, 2, 3
CODES = {"healthy": HEALTHY, "fault": FAULT, "unknown": UNKNOWN}
EPILOG = """examples:
  dualpi2 doctor eth0
  dualpi2 doctor eth0 --watch 20 -v

Run it during a transfer that should use L4S, and start connections meanwhile: their handshakes show whether both ends
negotiate AccECN.

exit status:
  0   healthy; there may be notes
  1   a fault was found
  2   invalid option or value
  3   no verdict: too little traffic, not permitted, or an error
  130 ended by Ctrl-C

See dualpi2(8) for all findings."""


def _seconds(text):
    try:
        value = float(text[:-1] if text[-1:] == "s" else text)
    except ValueError:
        value = 0
    if not 0.5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; give seconds, 0.5 to 3600")
    return value


def parser():
    """The parser of dualpi2 doctor."""
    found = Parser(prog="dualpi2 doctor", epilog=EPILOG, description="Find out why a device has no L4S, and print the "
                   "command that fixes it. Sends nothing, and changes nothing\nwithout --fix.")
    found.add_argument("device", metavar="DEV", nargs="?", help="the device to check (default: all with dualpi2 or "
                       "a default route)")
    found.add_argument("--watch", type=_seconds, default=5.0, metavar="SECONDS",
                       help="observation time in seconds, 0.5 to 3600 (default: 5)")
    found.add_argument("--fix", action="store_true", help="run the command of the first finding, after a question, and "
                       "check again; needs DEV")
    found.add_argument("-y", "--yes", action="store_true", help="answer yes to the question of --fix")
    found.add_argument("-v", "--verbose", action="store_true", help="print every check and what it saw")
    found.add_argument("-n", "--netns", metavar="NETNS", help="work in this network namespace of `ip netns`")
    found.add_argument("-j", "--json", action="store_true", help="print JSON; with -v also the facts")
    return found


def _options(args):
    options = parser().parse_args(args)
    if options.fix and (options.json or not options.device):
        parser().error("--fix cannot be used with --json" if options.json else "--fix needs DEV")
    return options


def _as_dict(options, facts, result):
    found = {"device": facts["device"], "verdict": result.verdict(),
             "findings": [finding.as_dict() for finding in result.findings],
             "notes": [note.as_dict() for note in result.notes], "doubts": result.doubts, "checks": result.checks}
    if options.verbose:
        found["facts"] = facts
    return found


def _as_text(options, facts, result):
    lines = []
    if options.verbose:
        lines += [findings.printable(f"{check['result']:8}{check['id']:18}{check['seen']}") for check in result.checks]
    lines += [finding.text() for finding in result.findings]
    if result.verdict() == "healthy":
        seen = health(facts)
        lines.append(findings.printable(f"healthy {facts['device']}" + (f": {seen}" if seen else "")))
    lines += [findings.printable(f"unknown {facts['device']}: {doubt}") for doubt in result.doubts]
    return "\n".join(lines + [note.text() for note in result.notes])


def health(facts):
    """Rates, marks and delays of the directions with a backlog."""
    parts = []
    for target in rules.targets(facts):
        if target.loaded() and target.queued():
            delays = [seen["l4s"]["p99_ns"] for seen in target.seen if "p99_ns" in seen["l4s"]]
            parts.append(f"{target.direction} {findings.bits(target.rate)}, {target.arrived()[0]['ect1']} ECT(1) "
                         f"packets, {target.sum('l4s', 'marked')} marked here"
                         + (f", L4S delay P99 {rules.delay(max(delays))}" if delays else ""))
    return "; ".join(parts)


def _worst(results):
    """The verdict of several devices."""
    found = {result.verdict() for result in results}
    return next(verdict for verdict in ("fault", "unknown", "healthy") if verdict in found)


def _check(options):
    if not net.is_root():
        raise Trouble("needs root, to read packet headers and filters; run: sudo dualpi2 doctor "
                      + (shlex.quote(options.device) if options.device else ""))
    if options.device:
        all_facts = [probe.facts(options.device, options.watch)]
    else:
        names = probe.devices()
        if not names:
            raise Trouble("no device has dualpi2 or a default route; name one: dualpi2 doctor DEV")
        all_facts = probe.facts_of(names, options.watch)
    results = [_diagnose(options, facts) for facts in all_facts]
    code = CODES[_worst(results)]
    if options.json:
        found = [_as_dict(options, facts, result) for facts, result in zip(all_facts, results)]
        return _say(json.dumps(found[0] if options.device else found), code)
    code = _say("\n".join(_as_text(options, *both) for both in zip(all_facts, results)), code)
    return _fix(options, results[0], code) if options.fix else code


def _diagnose(options, facts):
    found = rules.diagnose(facts)
    for finding in found.findings + found.notes:
        finding.netns = options.netns
    return found


def _fix(options, result, code):
    """Run the command of the first finding, and check the device again."""
    if not result.findings:
        return code
    finding = result.findings[0]
    why = finding.unfit()
    if not why and finding.condition and not _terminal():
        why = f"only you know whether {finding.condition}; run the command yourself"
    if why:
        return _refuse(finding, why)
    print(findings.printable(f"run: {finding.line()}"), flush=True)
    # --yes cannot answer a question about the link.
    if (finding.condition or not options.yes) and not _ask(
            (f"Is it true that {finding.condition}, and r" if finding.condition else "R") + "un this command?"):
        return _refuse(finding, "not confirmed, nothing was changed; answer y on a terminal, or add --yes")
    try:
        code = subprocess.run(shlex.split(finding.line()), check=False).returncode
    except FileNotFoundError:
        code = 127
    if code:
        return _refuse(finding, f"`{finding.line()}` failed with exit status {code}; see its message above")
    facts = probe.facts(options.device, options.watch)
    again = _diagnose(options, facts)
    remains = any((one.kind, one.device) == (finding.kind, finding.device) for one in again.findings)
    # Another fault can keep the rule from running.
    checked = any(check["id"] == finding.kind and check["result"] != "skipped" for check in again.checks)
    state = "not fixed" if remains else "fixed" if checked else "not checked"
    line = findings.printable(f"{state} {finding.kind} {finding.device}")
    return _say(f"{line}\n{_as_text(options, facts, again)}", CODES[again.verdict()])


def _refuse(finding, why):
    print(findings.printable(f"dualpi2 doctor: --fix: {finding.kind}: {why}"), file=sys.stderr)
    return FAULT


def _terminal():
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(question):
    if not _terminal():
        return False
    print(f"dualpi2 doctor: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def main(args=None):
    """The program; returns its exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    options = _options(args)
    try:
        with namespace(options.netns):
            return _check(options)
    except Trouble as trouble:
        print(f"dualpi2 doctor: {trouble}", file=sys.stderr)
        return UNKNOWN
    except KeyboardInterrupt:
        return 130
    except PermissionError as error:
        print(f"dualpi2 doctor: not permitted to read packet headers ({error.strerror}); run it as root outside of the "
              "container", file=sys.stderr)
        return UNKNOWN
    except OSError as error:
        print(f"dualpi2 doctor: cannot read {error.filename or options.device} ({error.strerror or error}); try again, "
              "or check dmesg", file=sys.stderr)
        return UNKNOWN


def _say(text, code):
    """Print the text; returns the exit code, which is no verdict if the text could not be written."""
    try:
        print(text, flush=True)
        return code
    except OSError as error:
        # The buffer would be written again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"dualpi2 doctor: cannot write the output ({error.strerror}); check that the disk is not full",
                  file=sys.stderr)
        return UNKNOWN
