# SPDX-License-Identifier: GPL-2.0-only
"""The systemd unit that repeats `dualpi2 up` when a device appears. systemctl is asked, nothing else."""

import os
import re
import shutil
import subprocess

from .. import Trouble


def unit(device):
    """Its name; systemd spells a "-" in an instance otherwise."""
    def spelled(found):
        return "".join(f"\\x{byte:02x}" for byte in found.group().encode())

    return f"dualpi2@{re.sub('[^A-Za-z0-9:_.]', spelled, device)}.service"


def _systemctl(*words):
    return subprocess.run(["systemctl", *words], text=True, errors="replace", capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)


def running():
    """Is systemd in charge here?"""
    return os.path.isdir("/run/systemd/system") and shutil.which("systemctl") is not None


def check(device):
    """Before anything is changed: can it last?"""
    if not running():
        raise Trouble("--persist needs systemd, which does not run here; leave it out and have your system run "
                      f"`dualpi2 up {device} ...` at boot (OpenWrt: sqm-scripts with dualpi2.qos)")
    if _systemctl("cat", "dualpi2@.service").returncode:
        raise Trouble("--persist needs the unit dualpi2@.service; install the package dualpi2-tools, or copy it to "
                      "/etc/systemd/system and run: systemctl daemon-reload")


def enable(device):
    """From now on, and at each boot."""
    done = _systemctl("enable", unit(device))
    if not done.returncode:
        # One that is active stays so: what it would do is done, and a restart would take the link down first.
        done = _systemctl("start", unit(device))
    if done.returncode:
        raise Trouble(f"systemctl cannot enable {unit(device)} ({' '.join(done.stderr.split())}); see: systemctl "
                      f"status '{unit(device)}'")


def active(device):
    """Did it run?"""
    return not _systemctl("is-active", "--quiet", unit(device)).returncode


def enabled(device):
    """Will it run at the next boot?"""
    return running() and not _systemctl("is-enabled", "--quiet", unit(device)).returncode


def not_at_boot(device):
    """Not at the next boot; nothing changes now."""
    if running():
        _systemctl("disable", unit(device))


def disable(device):
    """Neither now nor at the next boot; what it set up goes with it."""
    if not running() or not (enabled(device) or active(device)):
        return
    done = _systemctl("disable", "--now", unit(device))
    if done.returncode:
        raise Trouble(f"systemctl cannot disable {unit(device)}: {' '.join(done.stderr.split())}")
