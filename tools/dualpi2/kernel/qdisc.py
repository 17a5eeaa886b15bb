# SPDX-License-Identifier: GPL-2.0-only
"""Qdiscs of a network namespace, and overload reports of dualpi2."""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Any, Optional

from .. import Trouble
from . import netlink
from .layout import HEADER
from .netlink import Answer, attr, attrs, decode, encode, handle_text
from .stats import Sample

FAMILY, GROUP = HEADER.string("DUALPI2_GENL_NAME"), HEADER.string("DUALPI2_GENL_GROUP")
EVENTS = {HEADER.number("DUALPI2_CMD_OVERLOAD_" + name): name.lower() for name in ("BEGIN", "END")}
REPORT = HEADER.attributes("DUALPI2_A_")

# Options: {name: (attribute type, struct format)}; those of EXT_OPTIONS are nested in TCA_DUALPI2_EXT.
OPTIONS, EXT_OPTIONS = HEADER.attributes("TCA_DUALPI2_"), HEADER.attributes("TCA_DUALPI2_EXT_")
EXT = HEADER.number("TCA_DUALPI2_EXT")


# The second one has a dualpi2 for each transmit queue, and their sums.
KINDS = ("dualpi2", "dualpi2_mq")


class Qdisc:
    """One qdisc or class, from the payload of a message."""

    device: Optional[str] = None

    def __init__(self, data: bytes) -> None:
        self.ifindex: int
        self.handle: int
        self.parent: int
        _, self.ifindex, self.handle, self.parent, self.info = struct.unpack_from("=BxxxiIII", data)
        found = attrs(data[netlink.TCMSG_LEN:])
        self.kind = found.get(netlink.TCA_KIND, b"").split(b"\0")[0].decode("utf-8", "replace")
        self.options = found.get(netlink.TCA_OPTIONS, b"")
        self.sized = netlink.TCA_STAB in found
        inner = attrs(found.get(netlink.TCA_STATS2, b""))
        self.app = inner.get(netlink.TCA_STATS_APP) or found.get(netlink.TCA_XSTATS, b"")
        basic, queue = inner.get(netlink.TCA_STATS_BASIC, b""), inner.get(netlink.TCA_STATS_QUEUE, b"")
        self.bytes, self.packets = struct.unpack_from("=QI", basic) if len(basic) >= 12 else (0, 0)
        if len(inner.get(netlink.TCA_STATS_PKT64, b"")) >= 8:
            self.packets = struct.unpack_from("=Q", inner[netlink.TCA_STATS_PKT64])[0]
        self.qlen, self.backlog, self.drops, self.requeues, self.overlimits = (
            struct.unpack_from("=5I", queue) if len(queue) >= 20 else (0, 0, 0, 0, 0))

    @property
    def key(self) -> tuple[int, int, int]:
        """Unique key in a network namespace."""
        return self.ifindex, self.parent, self.handle

    def sample(self) -> Sample:
        """The statistics of a dualpi2."""
        return Sample(self.app, self.bytes, self.packets, self.qlen, self.backlog, self.drops)

    def dualpi2_options(self) -> dict[str, int]:
        """The options of a dualpi2 by attribute name, without those that this kernel lacks.

        "extended": this is the out-of-tree module.
        """
        known = attrs(self.options)
        return {**decode(OPTIONS, self.options), **decode(EXT_OPTIONS, known.get(EXT, b"")), "extended": EXT in known}


def without_children(qdiscs: list[Any]) -> list[Any]:
    """All qdiscs but the children of a dualpi2_mq: its statistics are their sums."""
    roots = {(one.ifindex, one.handle >> 16) for one in qdiscs if one.kind == "dualpi2_mq"}
    return [one for one in qdiscs if one.handle or (one.ifindex, one.parent >> 16) not in roots]


class Kernel:
    """A routing socket that lists the dualpi2 qdiscs of a network namespace."""

    def __init__(self, netns: Optional[str] = None) -> None:
        self.netns = netns
        self.names: dict[int, Optional[str]] = {}
        self.socket = netlink.Socket(netns)

    def qdiscs(self, ifindex: int = 0) -> list[Qdisc]:
        """All dualpi2 qdiscs in the order of the kernel, without those removed during the dump.

        A dualpi2_mq is one of them, without its children.
        """
        try:
            messages = self.socket.dump(netlink.RTM_GETQDISC, netlink.tcmsg(ifindex))
        except OSError as error:
            raise Trouble(f"cannot list qdiscs ({error.strerror}); run it as root, or where "
                          "`tc qdisc show` works") from None
        found = {}
        self.names = {}
        for data in messages:
            if len(data) < netlink.TCMSG_LEN:
                continue
            qdisc = Qdisc(data)
            if qdisc.kind in KINDS and ifindex in (0, qdisc.ifindex):
                qdisc.device = self.name(qdisc.ifindex)
                if qdisc.device is not None:
                    found[qdisc.key] = qdisc
        return without_children(list(found.values()))

    def change(self, qdisc: Qdisc, **options: int) -> Answer:
        """Change options of EXT_OPTIONS in place, by attribute name; all others stay as they are."""
        nest = attr(EXT | netlink.NLA_F_NESTED, encode(EXT_OPTIONS, **options))
        return self.socket.request(netlink.RTM_NEWQDISC, 0, netlink.tcmsg(qdisc.ifindex, qdisc.handle, qdisc.parent)
                                   + attr(netlink.TCA_KIND, qdisc.kind.encode() + b"\0")
                                   + attr(netlink.TCA_OPTIONS | netlink.NLA_F_NESTED, nest))

    def name(self, ifindex: int) -> Optional[str]:
        """A device's name, None if it was removed."""
        if ifindex not in self.names:
            try:
                with netlink.namespace(self.netns):
                    name = socket.if_indextoname(ifindex)
                # A name may contain escape sequences: any byte except blank, "/" and ":" is valid.
                self.names[ifindex] = "".join(letter if letter.isprintable() else "?" for letter in name)
            except (OSError, OverflowError):
                self.names[ifindex] = None
        return self.names[ifindex]

    def ifindex(self, device: str) -> int:
        """A device's index."""
        try:
            with netlink.namespace(self.netns):
                return socket.if_nametoindex(device)
        except OSError:
            raise Trouble(f"there is no device {device}; `ip link` lists them") from None


class Reports:
    """Overload reports, received by generic netlink."""

    def __init__(self, netns: Optional[str] = None) -> None:
        self.kernel = Kernel(netns)
        self.socket = netlink.Socket(netns, netlink.NETLINK_GENERIC)
        self.group: Optional[int] = None
        self.family: Optional[int] = None
        # The module may be reloaded: follow families that are added and removed.
        self.socket.join(netlink.GENL_ID_CTRL)
        self.socket.send(netlink.GENL_ID_CTRL, netlink.NLM_F_ACK, netlink.family_request(FAMILY))
        self._await_answer()

    def fileno(self) -> int:
        """For select()."""
        return self.socket.fileno()

    def _await_answer(self) -> None:
        while True:
            for kind, _, sequence, data in self.socket.receive():
                if kind == netlink.GENL_ID_CTRL:
                    self._family(data)
                elif kind == netlink.NLMSG_ERROR and sequence == self.socket.sequence:
                    number = -struct.unpack_from("=i", data)[0]
                    if self.group is None:
                        raise Trouble(
                            "the loaded dualpi2 sends no overload reports; load version 2.2 or later "
                            "(modprobe sch_dualpi2; modinfo -F version sch_dualpi2 prints the version)"
                            + ("" if number in (0, errno.ENOENT) else f" ({os.strerror(number)})"))
                    return

    def _family(self, data: bytes) -> None:
        name, number, groups = netlink.family_answer(data)
        if name != FAMILY:
            return
        if data[0] == netlink.CTRL_DELFAMILY:
            self.group = self.family = None
        elif data[0] == netlink.CTRL_NEWFAMILY and number is not None:
            self.family = number
            if GROUP in groups:
                self.group = groups[GROUP]
                self.socket.join(self.group)

    def wait(self) -> list[dict[str, Any]]:
        """Wait and return a list of reports; {"lost": True} if the socket's buffer overflowed."""
        try:
            messages = self.socket.receive()
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            return [{"lost": True}]
        found = []
        for kind, _, _, data in messages:
            if kind == netlink.GENL_ID_CTRL:
                self._family(data)
            elif kind == self.family and len(data) >= 4 and data[0] in EVENTS:
                found.append(self._report(data))
        return found

    def _report(self, data: bytes) -> dict[str, Any]:
        report: dict[str, Any] = {"event": EVENTS[data[0]], **decode(REPORT, data[4:])}
        self.kernel.names = {}
        report["device"] = self.kernel.name(report.get("ifindex", 0))
        for name in ("handle", "parent"):
            if name in report:
                report[name] = handle_text(report[name])
        return report
