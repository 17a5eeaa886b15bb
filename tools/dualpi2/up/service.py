# SPDX-License-Identifier: GPL-2.0-only
"""The systemd unit that runs `dualpi2 up` when a device appears. Runs systemctl only."""

import os
import re
import shutil
import subprocess

from .. import Trouble


# False in another network namespace than that of systemd.
available = True


def unit(device):
    """Name of the unit; systemd escapes a "-" in an instance."""
    def escaped(found):
        return "".join(f"\\x{byte:02x}" for byte in found.group().encode())

    return f"dualpi2@{re.sub('[^A-Za-z0-9:_.]', escaped, device)}.service"


def _systemctl(*args):
    return subprocess.run(["systemctl", *args], text=True, errors="replace", capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)


def _failed(verb, device, done):
    return Trouble(f"systemctl cannot {verb} '{unit(device)}': {' '.join(done.stderr.split())}; see: systemctl status "
                   f"'{unit(device)}'")


def running():
    """Does systemd manage this machine?"""
    return available and os.path.isdir("/run/systemd/system") and shutil.which("systemctl") is not None


def check(device):
    """Raise Trouble if --persist is not possible, before anything is changed."""
    if not running():
        raise Trouble("--persist needs systemd, which is not running; omit --persist and run `dualpi2 up "
                      f"{device} ...` at boot (OpenWrt: use sqm-scripts with dualpi2.qos)")
    if _systemctl("cat", "dualpi2@.service").returncode:
        raise Trouble("--persist needs the unit dualpi2@.service; install the package dualpi2-tools, or copy the unit "
                      "to /etc/systemd/system and run: systemctl daemon-reload")


def enable(device):
    """Start the unit, and enable it for each boot."""
    done = _systemctl("enable", unit(device))
    if not done.returncode:
        # Not a restart, which would remove the qdiscs first: they are already set up.
        done = _systemctl("start", unit(device))
    if done.returncode:
        raise _failed("enable", device, done)


def active(device):
    """Is the unit active?"""
    return not _systemctl("is-active", "--quiet", unit(device)).returncode


def enabled(device):
    """Will the unit run at the next boot?"""
    return running() and not _systemctl("is-enabled", "--quiet", unit(device)).returncode


def not_at_boot(device):
    """Disable the unit; the qdiscs stay until the next boot."""
    if running():
        _systemctl("disable", unit(device))


def disable(device):
    """Stop and disable the unit, which removes the qdiscs."""
    if not running() or not (enabled(device) or active(device)):
        return
    done = _systemctl("disable", "--now", unit(device))
    if done.returncode:
        raise _failed("disable", device, done)
