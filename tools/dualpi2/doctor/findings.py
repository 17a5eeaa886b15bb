# SPDX-License-Identifier: GPL-2.0-only
"""A finding of the doctor and how it is printed; numbers and commands as text."""

import itertools
import shlex

from ..kernel import text

# What `dualpi2 up` makes.
UP_HANDLES = ("d50:", "d51:")
UP_ALIAS = "dualpi2 of "
FAULT, NOTE, UNKNOWN = "fault", "note", "unknown"


class Finding:
    """One finding: its id, the device, the evidence in one line, and one command.

    fixes      the command is a fix; otherwise it is a check, or a fix under a condition
    condition  what must be true before the command is run; only a person can know it
    host       the other host that the command is for
    manual     the command is an instruction for a person, not a line for the shell
    level      FAULT, NOTE (nothing is wrong with this device) or UNKNOWN (not enough evidence)
    netns      the network namespace of the device, None: that of the caller
    """

    netns = None

    def __init__(self, kind, device, verdict, command="", fixes=True, condition="", host="", manual=False,
                 level=FAULT):
        self.kind = kind
        self.device = device
        self.verdict = verdict
        self.command = command
        self.fixes = fixes and bool(command) and not host and not manual
        self.condition = condition
        self.host = host
        self.manual = manual
        self.level = level

    def as_dict(self):
        command = self.line()
        fix = command if self.fixes or self.condition or self.host or self.manual else None
        # "mends" is the key of version 2.4, for scripts that read it.
        return {"id": self.kind, "level": self.level, "device": self.device, "host": self.host or None,
                "verdict": self.verdict, "command": command, "fix": fix or None, "fixes": self.fixes,
                "mends": self.fixes, "condition": self.condition or None}

    def line(self):
        """The command as the caller must run it."""
        if not self.netns or not self.command or self.host or self.manual:
            return self.command
        enter = ["nsenter", "--net=" + self.netns] if "/" in self.netns else ["ip", "netns", "exec", self.netns]
        several = any(sign in self.command for sign in ("&&", ";", "|"))
        return f"{shlex.join(enter)} {'sh -c ' + shlex.quote(self.command) if several else self.command}"

    def text(self):
        """One line, and a second one with the command."""
        lines = [f"{self.level} {self.kind} {self.device}: {self.verdict}"]
        if self.host:
            lines.append(f"  on {self.host} run: {self.command}")
        elif self.condition:
            lines.append(f"  fix, if {self.condition}: {self.line()}")
        elif self.command:
            lines.append(f"  {'fix' if self.fixes or self.manual else 'check'}: {self.line()}")
        return "\n".join(map(printable, lines))

    def unfit(self):
        """Why --fix cannot run the command, "" if it can."""
        if self.host:
            return f"the finding concerns another host; on {self.host} run: {self.command}"
        if self.manual or not self.fixes and not self.condition:
            return "no command fixes this finding; see the line below it"
        args = shlex.split(self.command)
        if args[0] == "for" or "&&" in args:
            # If a later step fails, the device can be left without a qdisc.
            return "the fix has several steps, which can fail halfway; run them yourself"
        return "the command needs values that only you know" if "RATE" in args else ""


class Diagnosis:
    """All findings of a device.

    findings  faults, the most fundamental one first
    notes     findings that need no change
    doubts    why no verdict is possible; empty if there are faults
    """

    def __init__(self):
        self.findings = []
        self.notes = []
        self.checks = []
        self.doubts = []

    def verdict(self):
        if self.findings:
            return "fault"
        return "unknown" if self.doubts else "healthy"


def printable(line):
    """On one line, without control characters: a device may have any name."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def bits(bytes_per_second):
    """A rate for a person."""
    return text.bits(8 * bytes_per_second)


def tc_rate(bytes_per_second):
    """A rate for tc, exact."""
    rate = int(bytes_per_second * 8)
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if rate and rate % size == 0:
            return f"{rate // size}{unit}"
    return f"{rate}bit"


def below_rate(bytes_per_second, direction):
    """Rate for a shaper, which must be slower than the link, in whole kbit/s: 95 % of the link's, for a download
    ("ingress") 90 %, as in docs/guides/rates.md.
    """
    return f"{max(int(bytes_per_second * 8 * (90 if direction == 'ingress' else 95) / 100000), 8)}kbit"


def count(number, what="packet"):
    return f"{number} {what}{'' if number == 1 else 's'}"


def quoted(word):
    return shlex.quote(word)


def numbers(version):
    """A version as numbers, for comparisons: 2.10 is above 2.9."""
    found = []
    for part in (version or "").split("."):
        digits = "".join(itertools.takewhile(str.isdigit, part))
        if not digits:
            break
        found.append(int(digits))
    return found


def base_device(facts, device):
    """The device that `dualpi2 up` was given; another one than `device` for an ifb device that it made."""
    alias = facts["links"].get(device, {}).get("alias") or ""
    return alias[len(UP_ALIAS):] if alias.startswith(UP_ALIAS) else facts["device"]


def change(facts, one, options, up_options=""):
    """The line that changes some options of a dualpi2 and keeps all others.

    up_options  the same for `dualpi2 set`, if not after --
    """
    device = one["device"]
    if one["handle"] in UP_HANDLES:
        return f"dualpi2 set {quoted(base_device(facts, device))} {up_options or '-- ' + options}"
    # The kernel gives its default qdisc no handle; such a qdisc can only be replaced.
    verb = "change" if one["handle"] else "replace"
    handle = f" handle {one['handle']}" if one["handle"] else ""
    return f"tc qdisc {verb} dev {quoted(device)} {one['where']}{handle} {one['kind']} {options}"
