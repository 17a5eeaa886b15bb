# SPDX-License-Identifier: GPL-2.0-only
"""Lists devices and qdiscs by netlink, because /sys may belong to another network namespace, and runs ip and tc.
Decides nothing.
"""

import json
import os
import re
import shutil
import shlex
import socket
import struct
import subprocess
import sys

from .. import Trouble
from ..kernel import netlink
from ..kernel.qdisc import KINDS, Qdisc

CLSACT_INGRESS, CLSACT_EGRESS = "ingress", "egress"
# <linux/if_link.h>, <linux/if.h>
IFINFOMSG = "=BxHiII"
IFLA_IFALIAS, IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES = 20, 31, 32
IFF_UP, IFF_LOOPBACK = 1, 8
# Set by -v: print each line that changes something, before it runs.
verbose = False


class Failed(Exception):
    """A line of ip or tc that failed, with its message."""

    def __init__(self, command, said):
        super().__init__(said)
        self.command = command
        self.said = said


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


class Device:
    """A network device, from the payload of a message."""

    def __init__(self, data):
        _, _, self.index, flags, _ = struct.unpack_from(IFINFOMSG, data)
        found = netlink.attrs(data[struct.calcsize(IFINFOMSG):])
        self.name, self.alias = _text(found.get(netlink.IFLA_IFNAME)), _text(found.get(IFLA_IFALIAS))
        self.kind = _text(netlink.attrs(found.get(netlink.IFLA_LINKINFO, b"")).get(netlink.IFLA_INFO_KIND))
        self.tx_queues = int.from_bytes(found.get(IFLA_NUM_TX_QUEUES, b""), sys.byteorder) or 1
        # A kernel for one processor does not tell.
        self.rx_queues = int.from_bytes(found.get(IFLA_NUM_RX_QUEUES, b""), sys.byteorder) or self.tx_queues
        self.up = bool(flags & IFF_UP)
        self.loopback = bool(flags & IFF_LOOPBACK)


def _text(data):
    return (data or b"").split(b"\0")[0].decode("utf-8", "replace")


def _dump(kind, payload):
    try:
        with netlink.Socket() as kernel:
            return kernel.dump(kind, payload)
    except OSError as error:
        raise Trouble(f"cannot list devices or qdiscs ({error.strerror}); run it as root, or where `tc qdisc show` "
                      "works") from error


def devices():
    """All devices of this network namespace."""
    return [Device(data) for data in _dump(netlink.RTM_GETLINK, bytes(struct.calcsize(IFINFOMSG)))]


def qdiscs(dev):
    """All qdiscs of a device: kind, handle as tc writes it, parent, and bandwidth in bytes/s (None: not dualpi2's)."""
    try:
        index = socket.if_nametoindex(dev)
    except OSError:
        return []
    found = []
    # Only newer kernels list those of one device alone.
    for one in map(Qdisc, _dump(netlink.RTM_GETQDISC, netlink.tcmsg(0))):
        if one.ifindex == index:
            bandwidth = one.dualpi2_options().get("bandwidth") if one.kind in KINDS else None
            found.append({"kind": one.kind, "handle": netlink.handle_text(one.handle), "parent": one.parent,
                          "bandwidth": bandwidth})
    return found


def root_qdisc(dev):
    """The root qdisc, None if it is the default qdisc, which has no handle."""
    for qdisc in qdiscs(dev):
        if qdisc["parent"] == netlink.TC_H_ROOT and qdisc["handle"] != "0:":
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
        printed = run(command)
    except Failed as failed:
        if "Cannot find device" in failed.said or "does not exist" in failed.said:
            return []
        raise Trouble(f"`{' '.join(command)}` failed: {failed.said}; run it to see whether iproute2 works") from failed
    try:
        items = [item for item in json.loads(printed or "[]") if item]
    except ValueError:
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
