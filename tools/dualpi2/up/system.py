# SPDX-License-Identifier: GPL-2.0-only
"""ip and tc: what they say of the kernel now, and running one line of theirs. Nothing is decided here.

All is asked of this network namespace by netlink; /sys may be that of another one.
"""

import json
import os
import re
import shutil
import subprocess

from .. import Trouble

CLSACT_INGRESS, CLSACT_EGRESS = "ingress", "egress"


class Failed(Exception):
    """A line of ip or tc that failed, with what it said."""

    def __init__(self, words, said):
        super().__init__(said)
        self.words = words
        self.said = said


class Unreadable(Trouble):
    """It is no JSON."""


def _program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Trouble(f"there is no command {name} here; install it (Debian: apt install iproute2, "
                      "Fedora: dnf install iproute iproute-tc)")
    return path


def run(words):
    """Run a line that begins with ip or tc; what it printed."""
    done = subprocess.run([_program(words[0]), *words[1:]], text=True, errors="replace", capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failed(words, " ".join((done.stderr.strip() or done.stdout.strip() or "no reason given").split()))
    return done.stdout


def _json(words):
    try:
        text = run(words)
    except Failed as failed:
        if "Cannot find device" in failed.said or "does not exist" in failed.said:
            return []
        raise Trouble(f"cannot ask the kernel: `{' '.join(words)}` said: {failed.said}") from failed
    try:
        return [item for item in json.loads(text or "[]") if item]
    except ValueError as error:
        raise Unreadable(f"cannot read what `{' '.join(words)}` printed; update iproute2") from error


class Device:
    """A network device as it is now."""

    def __init__(self, found):
        self.name = found["ifname"]
        self.index = found["ifindex"]
        self.flags = found.get("flags", [])
        self.alias = found.get("ifalias", "")
        self.kind = found.get("linkinfo", {}).get("info_kind", "")
        self.up = "UP" in self.flags
        self.loopback = "LOOPBACK" in self.flags


def devices():
    """Every device of this namespace."""
    return [Device(found) for found in _json(["ip", "-details", "-json", "link", "show"]) if "ifname" in found]


def qdiscs(dev):
    """Every qdisc of a device, as tc says it."""
    words = ["tc", "-json", "qdisc", "show", "dev", dev]
    try:
        return _json(words)
    except Unreadable:
        # tc of iproute2 5.10 does not know how to say hfsc's options in JSON. Ours never stands beside that.
        lines = re.findall(r"^qdisc (\S+) (\S+) (root)?", run([words[0], *words[2:]]), re.M)
        return [{"kind": kind, "handle": handle, "root": bool(root)} for kind, handle, root in lines]


def root_qdisc(dev):
    """The qdisc at the root, None if it is the kernel's own choice, which has no handle."""
    for qdisc in qdiscs(dev):
        if qdisc.get("root") and qdisc.get("handle", "0:") != "0:":
            return qdisc
    return None


def ingress_qdisc(dev):
    """"clsact", "ingress" or None."""
    for qdisc in qdiscs(dev):
        if qdisc["kind"] in ("clsact", "ingress"):
            return qdisc["kind"]
    return None


def filters(dev, side):
    """(pref, kind, devices that it sends to) of each filter on a side of clsact."""
    found = {}
    words = ["tc", "-json", "filter", "show", "dev", dev, side]
    try:
        items = _json(words)
    except Unreadable:
        # tc of iproute2 5.10 with u32.
        items = []
        for line in run([words[0], *words[2:]]).splitlines():
            if head := re.match(r"filter .*?\bpref (\d+) (\S+)", line):
                items.append({"pref": int(head.group(1)), "kind": head.group(2), "options": {"actions": []}})
            elif items and (to := re.search(r"\(Egress Redirect to device (\S+)\)", line)):
                items[-1]["options"]["actions"].append({"to_dev": to.group(1)})
    for item in items:
        options = item.get("options") or {}
        targets = found.setdefault((item.get("pref"), item.get("kind")), set())
        targets |= {action["to_dev"] for action in options.get("actions", []) if "to_dev" in action}
    return [(pref, kind, sorted(targets)) for (pref, kind), targets in found.items()]


def tc_knows():
    """"ours" if tc has our plugin, "other" if it knows another dualpi2, else ""."""
    done = subprocess.run([_program("tc"), "qdisc", "add", "dev", "lo", "root", "dualpi2", "help"], text=True,
                          errors="replace", capture_output=True, stdin=subprocess.DEVNULL, check=False)
    said = done.stdout + done.stderr
    if "bandwidth" in said:
        return "ours"
    return "other" if "step_thresh" in said else ""
