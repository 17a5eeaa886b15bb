# SPDX-License-Identifier: GPL-2.0-only
"""Runs ip and tc, and parses what they print. Decides nothing.

Reads devices and qdiscs by netlink only: /sys may belong to another network namespace.
"""

import json
import os
import re
import shutil
import shlex
import subprocess
import sys

from .. import Trouble

CLSACT_INGRESS, CLSACT_EGRESS = "ingress", "egress"
# Set by -v: print each line that changes something, before it runs.
verbose = False


class Failed(Exception):
    """A line of ip or tc that failed, with its message."""

    def __init__(self, command, said):
        super().__init__(said)
        self.command = command
        self.said = said


class Unreadable(Trouble):
    """The output is not JSON."""


def _program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Trouble(f"command '{name}' not found; install it (Debian: apt install iproute2, Fedora: dnf install "
                      "iproute iproute-tc)")
    return path


def run(command):
    """Run a line of ip or tc; returns what it printed."""
    done = subprocess.run([_program(command[0]), *command[1:]], text=True, errors="replace", capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failed(command, " ".join((done.stderr.strip() or done.stdout.strip() or "no reason given").split()))
    return done.stdout


def change(command):
    """Run a line of ip or tc that changes something."""
    if verbose:
        print("+ " + shlex.join(command), file=sys.stderr, flush=True)
    return run(command)


def _json(command):
    try:
        text = run(command)
    except Failed as failed:
        if "Cannot find device" in failed.said or "does not exist" in failed.said:
            return []
        raise Trouble(f"`{' '.join(command)}` failed: {failed.said}; run it to see whether iproute2 works") from failed
    try:
        return [item for item in json.loads(text or "[]") if item]
    except ValueError as error:
        raise Unreadable(f"`{' '.join(command)}` printed invalid JSON; update iproute2") from error


class Device:
    """A network device."""

    def __init__(self, found):
        self.name = found["ifname"]
        self.index = found["ifindex"]
        self.flags = found.get("flags", [])
        self.alias = found.get("ifalias", "")
        self.kind = found.get("linkinfo", {}).get("info_kind", "")
        self.tx_queues = found.get("num_tx_queues", 1)
        # A kernel for one processor does not tell.
        self.rx_queues = found.get("num_rx_queues", self.tx_queues)
        self.up = "UP" in self.flags
        self.loopback = "LOOPBACK" in self.flags


def devices():
    """All devices of this network namespace."""
    return [Device(found) for found in _json(["ip", "-details", "-json", "link", "show"]) if "ifname" in found]


def qdiscs(dev):
    """All qdiscs of a device, as tc prints them."""
    command = ["tc", "-json", "qdisc", "show", "dev", dev]
    try:
        return _json(command)
    except Unreadable:
        # iproute2 5.10 prints hfsc's options as text. dualpi2 is never on the same device.
        lines = re.findall(r"^qdisc (\S+) (\S+) (root)?", run([command[0], *command[2:]]), re.M)
        return [{"kind": kind, "handle": handle, "root": bool(root)} for kind, handle, root in lines]


def root_qdisc(dev):
    """The root qdisc, None if it is the default qdisc, which has no handle."""
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
    """(pref, kind, devices that it redirects to) of each filter on a side of clsact."""
    found = {}
    command = ["tc", "-json", "filter", "show", "dev", dev, side]
    try:
        items = _json(command)
    except Unreadable:
        # iproute2 5.10 prints u32 as text.
        items = []
        for line in run([command[0], *command[2:]]).splitlines():
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
    """"plugin" if tc has this project's plugin, "other" if it has another dualpi2, else ""."""
    done = subprocess.run([_program("tc"), "qdisc", "add", "dev", "lo", "root", "dualpi2", "help"], text=True,
                          errors="replace", capture_output=True, stdin=subprocess.DEVNULL, check=False)
    said = done.stdout + done.stderr
    if "bandwidth" in said:
        return "plugin"
    return "other" if "step_thresh" in said else ""


def module_version():
    """Version of the loaded module: "" if it has none, None if it is not loaded."""
    if not os.path.exists("/sys/module/sch_dualpi2"):
        return None
    try:
        with open("/sys/module/sch_dualpi2/version", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
