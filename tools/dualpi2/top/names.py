# SPDX-License-Identifier: GPL-2.0-only
"""Names for qdiscs, of subscribers for example, from a file. Lines: "HANDLE NAME" or "DEV HANDLE NAME"; # comments."""

from .. import Trouble
from ..kernel.netlink import handle_text


class Names:
    """Names by device and handle. An entry without a device counts for all devices; one with a device comes first."""

    def __init__(self, path=None):
        self.found = {}
        if not path:
            return
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except UnicodeDecodeError:
            raise Trouble(f"cannot read '{path}': not valid UTF-8; save it as UTF-8") from None
        except OSError as error:
            raise Trouble(f"cannot read '{path}' ({error.strerror}); see --names in dualpi2-top(8)") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.strip().startswith("#"):
                self._line(line, f"{path}:{number}")

    def _line(self, line, place):
        # Names of devices contain no colon, handles always do.
        device = "" if ":" in line.split()[0] else line.split()[0]
        fields = line.split(None, 2 if device else 1)[1 if device else 0:]
        if len(fields) != 2:
            raise Trouble(f"{place}: expected 'HANDLE NAME' or 'DEV HANDLE NAME', got '{line.strip()}'")
        handle, name = fields[0], fields[1].strip()
        major, colon, minor = handle.partition(":")
        try:
            if not colon or minor:
                raise ValueError
            number = int(major, 16)
            if not 0 < number < 0x10000:
                raise ValueError
        except ValueError:
            raise Trouble(f"{place}: invalid handle '{handle}'; write it as tc does, for example 10b:") from None
        # A name is printed on a terminal: no control characters.
        name = "".join(letter if letter.isprintable() else "?" for letter in name)
        self.found[device, handle_text(number << 16)] = name

    def get(self, device, handle):
        """The name of a qdisc, None without one."""
        return self.found.get((device, handle), self.found.get(("", handle)))
