# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's netlink: all qdiscs, and reports of overload.

Python's own sockets, and no library: pyroute2 decodes statistics by the kind of qdisc, of which it does not know
this one; a dump that a change has cut through it reports from 0.7.4 on only; and between Debian 11 and 14 its
interface was made anew.
"""

import contextlib
import ctypes
import errno
import os
import socket
import struct

from .. import Trouble
from .stats import attributes

NETLINK_GENERIC = 16
RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLMSG_ERROR, NLMSG_DONE, NLMSG_OVERRUN = 2, 3, 4
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR = 1, 4, 0x300, 0x10
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NETLINK_DROP_MEMBERSHIP = 270, 1, 2
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2 = 1, 2, 4, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8
GENL_ID_CTRL, CTRL_NEWFAMILY, CTRL_DELFAMILY, CTRL_GETFAMILY = 16, 1, 2, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
CTRL_ATTR_MCAST_GRP_NAME, CTRL_ATTR_MCAST_GRP_ID = 1, 2
GENL_NAME, GENL_GROUP = "dualpi2", "overload"
CMD_BEGIN, CMD_END = 1, 2
A_IFINDEX, A_HANDLE, A_PARENT, A_START_NS, A_DURATION_NS, A_COUNT = 2, 3, 4, 5, 6, 7
CLONE_NEWNET = 0x40000000
TC_H_ROOT, TC_H_INGRESS = 0xffffffff, 0xfffffff1

# The kernel fills what it is offered, 32 KiB at most; a message is smaller than this by far.
BUFFER = 1 << 18
DUMPS_AT_MOST = 10


class Interrupted(Exception):
    """What was dumped changed meanwhile."""


class Qdisc:
    """One dualpi2 as the kernel names it, with the raw statistics."""

    def __init__(self, ifindex, device, handle, parent, app, basic):
        self.ifindex = ifindex
        self.device = device
        self.handle = handle
        self.parent = parent
        self.app = app
        self.basic = basic


def handle_text(number):
    """As tc writes it."""
    if number == TC_H_ROOT:
        return "root"
    if number >= TC_H_INGRESS:
        return "ingress"
    if 0 < number < 1 << 16:        # below a qdisc without a handle, as children of a default mq are
        return f":{number:x}"
    return f"{number >> 16:x}:" + (f"{number & 0xffff:x}" if number & 0xffff else "")


@contextlib.contextmanager
def namespace(name):
    """Be in a network namespace, named as `ip netns` does; None is the present one."""
    if name is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as here:
        _enter(libc, name)
        try:
            yield
        finally:
            libc.setns(here.fileno(), CLONE_NEWNET)


def _enter(libc, name):
    try:
        with open(name if "/" in name else "/run/netns/" + name, "rb") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
    except FileNotFoundError:
        raise Trouble(f"there is no network namespace {name}; `ip netns` lists them") from None
    except PermissionError:
        raise Trouble(f"not allowed to enter network namespace {name}; run it as root") from None
    except OSError as error:
        raise Trouble(f"cannot enter {name} ({error.strerror}); `ip netns` lists the network namespaces") from None


def _socket(family):
    try:
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
        sock.bind((0, 0))
        return sock
    except OSError as error:
        raise Trouble(f"cannot ask the kernel by netlink ({error.strerror}); run it outside of the container or "
                      "service that forbids AF_NETLINK, or allow that there") from None


def _receive(sock):
    """The messages of one datagram: (type, flags, sequence, payload)."""
    data, _, flags, _ = sock.recvmsg(BUFFER)
    if flags & socket.MSG_TRUNC:
        raise Trouble(f"the kernel's answer is longer than {BUFFER} bytes; please report this")
    at = 0
    while at + 16 <= len(data):
        size, kind, flags, sequence = struct.unpack_from("=IHHI", data, at)
        if size < 16 or at + size > len(data):
            break
        yield kind, flags, sequence, data[at + 16:at + size]
        at += (size + 3) & ~3


class Kernel:
    """A routing socket that lists the dualpi2 of a network namespace."""

    def __init__(self, netns=None):
        self.netns = netns
        self.sequence = 0
        self.names = {}
        with namespace(netns):
            self.sock = _socket(socket.NETLINK_ROUTE)

    def close(self):
        self.sock.close()

    def fileno(self):
        return self.sock.fileno()

    def qdiscs(self, ifindex=0):
        """Every dualpi2, as a list of Qdisc in the kernel's order; one that vanishes meanwhile is left out."""
        for _ in range(DUMPS_AT_MOST):
            try:
                messages = self._dump(ifindex)
                break
            except Interrupted:
                continue
        else:
            # Each message is sound; only the list may lack one that moved.
            messages = self._dump(ifindex, patient=True)
        found = {}
        self.names = {}
        for data in messages:
            qdisc = self._parse(data, ifindex)
            if qdisc:
                found[qdisc.ifindex, qdisc.parent, qdisc.handle] = qdisc
        return list(found.values())

    def _dump(self, ifindex, patient=False):
        self.sequence += 1
        body = struct.pack("=BxxxiIII", 0, ifindex, 0, 0, 0)
        self.sock.send(struct.pack("=IHHII", 16 + len(body), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP,
                                   self.sequence, 0) + body)
        found = []
        interrupted = False
        while True:
            for kind, flags, sequence, data in _receive(self.sock):
                if sequence != self.sequence:       # of a dump that was given up
                    continue
                interrupted |= bool(flags & NLM_F_DUMP_INTR)
                if kind == NLMSG_DONE:
                    if interrupted and not patient:
                        raise Interrupted
                    return found
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", data)[0]
                    if number in (errno.EINTR, errno.EAGAIN, errno.EBUSY) and not patient:
                        raise Interrupted
                    raise Trouble(f"the kernel does not list its qdiscs: {os.strerror(number)}; run it as root, or "
                                  "where `tc qdisc show` works")
                if kind == RTM_NEWQDISC:
                    found.append(data)

    def _parse(self, data, wanted):
        if len(data) < 20:
            return None
        _, ifindex, handle, parent, _ = struct.unpack_from("=BxxxiIII", data)
        found = dict(attributes(data[20:]))
        if found.get(TCA_KIND, b"").rstrip(b"\0") != b"dualpi2" or wanted not in (0, ifindex):
            return None
        stats2 = dict(attributes(found.get(TCA_STATS2, b"")))
        basic = {}
        if len(stats2.get(TCA_STATS_BASIC, b"")) >= 12:
            basic["stats_bytes"], basic["stats_packets"] = struct.unpack_from("=QI", stats2[TCA_STATS_BASIC])
        if len(stats2.get(TCA_STATS_PKT64, b"")) >= 8:
            basic["stats_packets"] = struct.unpack_from("=Q", stats2[TCA_STATS_PKT64])[0]
        if len(stats2.get(TCA_STATS_QUEUE, b"")) >= 12:
            basic["qlen"], basic["backlog"], basic["drops"] = struct.unpack_from("=III", stats2[TCA_STATS_QUEUE])
        device = self.name(ifindex)
        if device is None:
            return None
        app = stats2.get(TCA_STATS_APP) or found.get(TCA_XSTATS, b"")
        return Qdisc(ifindex, device, handle, parent, app, basic)

    def name(self, ifindex):
        """A device's name, None if it is gone."""
        if ifindex not in self.names:
            try:
                with namespace(self.netns):
                    name = socket.if_indextoname(ifindex)
                # A name may hold any byte but a blank, "/" and ":", commands for the terminal too.
                self.names[ifindex] = "".join(letter if letter.isprintable() else "?" for letter in name)
            except (OSError, OverflowError):
                self.names[ifindex] = None
        return self.names[ifindex]

    def ifindex(self, device):
        """The number of a device."""
        try:
            with namespace(self.netns):
                return socket.if_nametoindex(device)
        except OSError:
            raise Trouble(f"there is no device {device}; `ip link` lists them") from None


class Reports:
    """Reports of overload, as they come: by generic netlink, to whoever listens."""

    def __init__(self, netns=None):
        self.kernel = Kernel(netns)
        with namespace(netns):
            self.sock = _socket(NETLINK_GENERIC)
        self.group = None
        self.family = None
        # Also of families that come and go, because the module may be loaded anew.
        self.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, GENL_ID_CTRL)
        self._send_getfamily()
        self._await_answer()

    def fileno(self):
        return self.sock.fileno()

    def _send_getfamily(self):
        name = GENL_NAME.encode() + b"\0"
        body = struct.pack("=BBH", CTRL_GETFAMILY, 1, 0) + struct.pack("=HH", 4 + len(name), CTRL_ATTR_FAMILY_NAME)
        body += name + b"\0" * (-len(name) % 4)
        self.sock.send(struct.pack("=IHHII", 16 + len(body), GENL_ID_CTRL, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)

    def _await_answer(self):
        while True:
            for kind, _, sequence, data in _receive(self.sock):
                if kind == GENL_ID_CTRL:
                    self._family(data)
                elif kind == NLMSG_ERROR and sequence == 1:
                    number = -struct.unpack_from("=i", data)[0]
                    if self.group is None:
                        raise Trouble(
                            "the loaded dualpi2 reports no overload; load the module of version 2.2 or later "
                            "(modprobe sch_dualpi2; modinfo -F version sch_dualpi2 tells which there is)"
                            + ("" if number in (0, errno.ENOENT) else f" ({os.strerror(number)})"))
                    return

    def _family(self, data):
        found = dict(attributes(data[4:]))
        if found.get(CTRL_ATTR_FAMILY_NAME, b"").rstrip(b"\0").decode("ascii", "replace") != GENL_NAME:
            return
        if data[0] == CTRL_DELFAMILY:
            self.group = self.family = None
            return
        if data[0] != CTRL_NEWFAMILY or len(found.get(CTRL_ATTR_FAMILY_ID, b"")) < 2:
            return
        self.family = struct.unpack_from("=H", found[CTRL_ATTR_FAMILY_ID])[0]
        for _, group in attributes(found.get(CTRL_ATTR_MCAST_GROUPS, b"")):
            group = dict(attributes(group))
            if group.get(CTRL_ATTR_MCAST_GRP_NAME, b"").rstrip(b"\0") == GENL_GROUP.encode():
                self.group = struct.unpack_from("=I", group[CTRL_ATTR_MCAST_GRP_ID])[0]
                self.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, self.group)

    def wait(self):
        """Block, and return a list of reports as dicts; {"lost": True} where some did not fit the socket's buffer."""
        try:
            messages = list(_receive(self.sock))
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            return [{"lost": True}]
        found = []
        for kind, _, _, data in messages:
            if kind == GENL_ID_CTRL:
                self._family(data)
            elif kind == self.family and len(data) >= 4 and data[0] in (CMD_BEGIN, CMD_END):
                found.append(self._report(data))
        return found

    def _report(self, data):
        report = {"event": "begin" if data[0] == CMD_BEGIN else "end"}
        forms = {A_IFINDEX: ("ifindex", "=I"), A_HANDLE: ("handle", "=I"), A_PARENT: ("parent", "=I"),
                 A_START_NS: ("start_ns", "=Q"), A_DURATION_NS: ("duration_ns", "=Q"), A_COUNT: ("count", "=I")}
        for kind, payload in attributes(data[4:]):
            name, form = forms.get(kind, (None, "="))
            if name and len(payload) >= struct.calcsize(form):
                report[name] = struct.unpack_from(form, payload)[0]
        self.kernel.names = {}
        report["device"] = self.kernel.name(report.get("ifindex", 0))
        for name in ("handle", "parent"):
            if name in report:
                report[name] = handle_text(report[name])
        return report
