# SPDX-License-Identifier: GPL-2.0-only
"""The state of each device in /run, and its saved configuration in /etc. Reads and writes files only."""

import contextlib
import fcntl
import glob
import json
import os
import re
import socket
import sys

from .. import Trouble

RUN = "/run/dualpi2"
SO_NETNS_COOKIE = 71
ETC = "/etc/dualpi2"
KEYS = ("DOWNLOAD", "UPLOAD", "LINK", "RTT", "QUEUES", "OPTIONS", "REPLACE")


def _directory():
    """Each network namespace has its own directory, because names and indices of devices are its own."""
    here = os.stat("/proc/self/ns/net").st_ino
    try:
        first = os.stat("/proc/1/ns/net").st_ino
    except OSError:
        first = here
    if here == first:
        return RUN
    # The kernel reuses the inode number of a deleted namespace, but not its cookie (Linux 5.14).
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        here = "c" + str(int.from_bytes(one.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), sys.byteorder))
    return os.path.join(RUN, f"netns-{here}")


def _tidy(directory):
    for path in (directory, RUN):
        with contextlib.suppress(OSError):
            os.rmdir(path)


@contextlib.contextmanager
def lock():
    """One `up`, `set` or `down` at a time. The directory is the lock, so that no lock file is left."""
    while True:
        try:
            os.makedirs(RUN, mode=0o755, exist_ok=True)
            handle = os.open(RUN, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Trouble(f"cannot write to '{error.filename}': {error.strerror}; run it as root") from error
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            if os.fstat(handle).st_ino == os.stat(RUN).st_ino:
                break
        except FileNotFoundError:
            pass
        # The process that held the lock has removed the directory.
        os.close(handle)
    try:
        yield
        _tidy(_directory())
    finally:
        os.close(handle)


def load_all():
    """All states of this network namespace."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(_directory()), "*.json"))):
        try:
            with open(path, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state.get("device"), str) or not isinstance(state.get("ifindex"), int):
                raise ValueError("it names no device")
        except (OSError, ValueError, AttributeError) as error:
            raise Trouble(f"cannot read '{path}': {error}; delete it and run the command again") from error
        found.append(state)
    return found


def save(state):
    """Replace the file in one step."""
    directory = _directory()
    os.makedirs(directory, mode=0o755, exist_ok=True)
    path = os.path.join(directory, state["device"] + ".json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def forget(device):
    """Delete the state of a device."""
    directory = _directory()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, device + ".json"))
    _tidy(directory)


def config_path(device):
    """Path of the saved configuration, which is applied at boot."""
    return os.path.join(ETC, device + ".conf")


def save_config(device, values):
    """Save a configuration."""
    text = (f"# Configuration of dualpi2@.service for {device}, see dualpi2(8). After an edit, run: dualpi2 up "
            f"{device} --from-config\n")
    write_config(device, (text + "".join(f'{key}="{values[key]}"\n' for key in KEYS if values.get(key))).encode())


def write_config(device, content):
    """Replace the file in one step."""
    path = config_path(device)
    try:
        os.makedirs(ETC, mode=0o755, exist_ok=True)
        with open(path + ".new", "wb") as file:
            file.write(content)
        os.replace(path + ".new", path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path + ".new")
        raise Trouble(f"cannot write '{path}': {error.strerror}; check that {ETC} is writable and not full") from error


def read_config(device):
    """Bytes of the saved configuration, None if there is none."""
    try:
        with open(config_path(device), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def load_config(device):
    """The saved configuration as a dict of KEYS."""
    path, found = config_path(device), {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except UnicodeDecodeError as error:
        raise Trouble(f"{path}: not valid UTF-8; restore or delete it") from error
    except OSError as error:
        raise Trouble(f"cannot read '{path}': {error.strerror}; create it with: dualpi2 up {device} --download RATE "
                      "--upload RATE --persist") from error
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"""\s*([A-Z]+)=("([^"]*)"|'([^']*)'|[^\s"']*)\s*""", line)
        if not match or match.group(1) not in KEYS:
            raise Trouble(f"{path}, line {number}: '{line.strip()}' is invalid; write KEY=\"VALUE\", with a key of "
                          f"{', '.join(KEYS)}")
        bare = match.group(2)
        found[match.group(1)] = bare[1:-1] if bare[:1] in ("'", '"') else bare
    return found


def forget_config(device):
    """Delete the saved configuration."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(config_path(device))
    with contextlib.suppress(OSError):
        os.rmdir(ETC)
