# SPDX-License-Identifier: GPL-2.0-only
"""Netlink: attributes, messages and sockets.

On Python's sockets instead of pyroute2: pyroute2 decodes statistics by kind of qdisc and does not know dualpi2;
it reports interrupted dumps only since 0.7.4; and its interface changed between Debian 11 and 14.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

from .. import Trouble

# <linux/netlink.h>, <linux/genetlink.h>, <linux/rtnetlink.h>, <linux/gen_stats.h>
NETLINK_GENERIC, GENL_ID_CTRL, SOL_NETLINK = 16, 16, 270
NETLINK_ADD_MEMBERSHIP, NETLINK_DROP_MEMBERSHIP, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 1, 2, 10, 11
CTRL_NEWFAMILY, CTRL_DELFAMILY, CTRL_GETFAMILY = 1, 2, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
CTRL_ATTR_MCAST_GRP_NAME, CTRL_ATTR_MCAST_GRP_ID = 1, 2
NLMSG_HDRLEN, TCMSG_LEN, NLMSG_ERROR, NLMSG_DONE = 16, 20, 2, 3
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS = 1, 2
RTM_NEWLINK, RTM_GETLINK, RTM_GETADDR, RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 16, 18, 22, 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS, RTM_GETTFILTER = 40, 41, 42, 46
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP_INTR, NLM_F_DUMP = 1, 4, 0x10, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLA_F_NESTED, NLA_F_NET_BYTEORDER, NLA_TYPE_MASK = 0x8000, 0x4000, 0x3fff
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 3, 18, 1
TC_H_ROOT, TC_H_INGRESS = 0xffffffff, 0xfffffff1
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2, TCA_STAB = 1, 2, 4, 7, 8
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8
CLONE_NEWNET = 0x40000000

# The kernel fills at most 32 KiB of the buffer.
BUFFER = 1 << 18
DUMPS_AT_MOST = 10

Handle = Union[int, str]
libc = ctypes.CDLL(None, use_errno=True)


# Attributes

def align(length: int) -> int:
    """The length, rounded up to the alignment of netlink."""
    return (length + 3) & ~3


def attr(kind: int, payload: bytes = b"", length: Optional[int] = None) -> bytes:
    """One attribute; length overrides the length in its header."""
    return struct.pack("=HH", 4 + len(payload) if length is None else length, kind) + payload + bytes(-len(payload) % 4)


def attr_list(data: bytes) -> list[tuple[int, bytes]]:
    """[(type with flags, payload)]; stops at the first invalid length."""
    found = []
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4 or at + size > len(data):
            break
        found.append((kind, data[at + 4:at + size]))
        at += align(size)
    return found


def attrs(data: bytes) -> dict[int, bytes]:
    """{type: payload}; of several attributes of one type, the last."""
    return {kind & NLA_TYPE_MASK: payload for kind, payload in attr_list(data)}


def encode(knobs: dict[str, tuple[int, str]], **values: int) -> bytes:
    """Numbers as attributes; knobs is {name: (type, struct format)}, see layout.Header.attributes()."""
    return b"".join(attr(knobs[name][0], struct.pack(knobs[name][1], value)) for name, value in values.items())


def decode(knobs: dict[str, tuple[int, str]], data: bytes) -> dict[str, int]:
    """{name: value} of the attributes in data."""
    there = attrs(data)
    return {name: struct.unpack_from(form, there[kind])[0] for name, (kind, form) in knobs.items()
            if len(there.get(kind, b"")) >= struct.calcsize(form)}


def handle_number(text: Handle) -> int:
    """The number of "10:", "1:10", "root" or a number."""
    if not isinstance(text, str):
        return text
    if text == "root":
        return TC_H_ROOT
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def handle_text(number: int) -> str:
    """A handle as tc writes it."""
    if number == TC_H_ROOT:
        return "root"
    if number >= TC_H_INGRESS:
        return "ingress"
    if 0 < number < 1 << 16:        # child of a qdisc without a handle, such as a default mq
        return f":{number:x}"
    return f"{number >> 16:x}:" + (f"{number & 0xffff:x}" if number & 0xffff else "")


# Network namespaces

def setns(file: Any) -> None:
    """Move this process to the network namespace of an open file."""
    if libc.setns(file.fileno(), CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def namespace(name: Optional[str]) -> Iterator[None]:
    """Enter a network namespace of `ip netns` and return to the current one; None: stay."""
    if name is None:
        yield
        return
    with open("/proc/self/ns/net", "rb") as here:
        _enter(name)
        try:
            yield
        finally:
            setns(here)


def _enter(name: str) -> None:
    try:
        with open(name if "/" in name else "/run/netns/" + name, "rb") as there:
            setns(there)
    except FileNotFoundError:
        raise Trouble(f"there is no network namespace {name}; `ip netns` lists them") from None
    except PermissionError:
        raise Trouble(f"not allowed to enter network namespace {name}; run it as root") from None
    except OSError as error:
        raise Trouble(f"cannot enter {name} ({error.strerror}); `ip netns` lists the network namespaces") from None


# Messages

class Message(NamedTuple):
    """A message from the kernel, without its header."""
    kind: int
    flags: int
    sequence: int
    payload: bytes


class Answer(NamedTuple):
    """The answer to a request; text and offset (of the invalid attribute) are None if the kernel sends none."""
    error: int
    text: Optional[str]
    offset: Optional[int]

    def reason(self) -> str:
        """Why the kernel rejects the request."""
        return self.text or os.strerror(self.error)


class Interrupted(Exception):
    """The dump is inconsistent because something changed during it."""


def tcmsg(index: int, handle: Handle = 0, parent: Handle = 0) -> bytes:
    """struct tcmsg."""
    return struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, handle_number(handle), handle_number(parent), 0)


def message(kind: int, flags: int, payload: bytes, sequence: int = 1) -> bytes:
    """A request with its header."""
    return struct.pack("=IHHII", NLMSG_HDRLEN + len(payload), kind, flags | NLM_F_REQUEST, sequence, 0) + payload


def open_socket(netns: Optional[str], protocol: int) -> socket.socket:
    """A netlink socket in a network namespace."""
    try:
        with namespace(netns):
            sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        sock.bind((0, 0))
    except OSError as error:
        raise Trouble(f"cannot ask the kernel by netlink ({error.strerror}); run it outside of the container or "
                      "service that forbids AF_NETLINK, or allow that there") from None
    for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK):
        with contextlib.suppress(OSError):
            sock.setsockopt(SOL_NETLINK, option, 1)
    return sock


class Socket:
    """A netlink socket in a network namespace, and a context manager."""

    def __init__(self, netns: Optional[str] = None, protocol: int = socket.NETLINK_ROUTE) -> None:
        self.sock = open_socket(netns, protocol)
        self.sequence = 0

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def fileno(self) -> int:
        """For select()."""
        return self.sock.fileno()

    def join(self, group: int) -> None:
        """Join a multicast group."""
        self.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)

    def send(self, kind: int, flags: int, payload: bytes) -> None:
        """Send a request."""
        self.sequence += 1
        self.sock.send(message(kind, flags, payload, self.sequence))

    def receive(self) -> list[Message]:
        """Wait for a datagram and return its messages."""
        data, _, flags, _ = self.sock.recvmsg(BUFFER)
        if flags & socket.MSG_TRUNC:
            raise Trouble(f"the kernel's answer is longer than {BUFFER} bytes; please report this")
        found = []
        at = 0
        while at + NLMSG_HDRLEN <= len(data):
            size, kind, flags, sequence = struct.unpack_from("=IHHI", data, at)
            if size < NLMSG_HDRLEN or at + size > len(data):
                break
            found.append(Message(kind, flags, sequence, data[at + NLMSG_HDRLEN:at + size]))
            at += align(size)
        return found

    def messages(self) -> Iterator[Message]:
        """Answers to the last request, forever; answers to earlier requests are skipped."""
        while True:
            for found in self.receive():
                if found.sequence == self.sequence:
                    yield found

    def request(self, kind: int, flags: int, payload: bytes) -> Answer:
        """Send a request and wait for the answer."""
        self.send(kind, flags | NLM_F_ACK, payload)
        found = next(found for found in self.messages() if found.kind == NLMSG_ERROR)
        size: int = struct.unpack_from("=I", found.payload, 4)[0]
        skip = 4 + (NLMSG_HDRLEN if found.flags & NLM_F_CAPPED else size)
        said = attrs(found.payload[skip:]) if found.flags & NLM_F_ACK_TLVS else {}
        offset = said.get(NLMSGERR_ATTR_OFFS)
        return Answer(_error(found.payload), said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode() or None,
                      struct.unpack("=I", offset)[0] if offset else None)

    def dump(self, kind: int, payload: bytes) -> list[bytes]:
        """The payloads of all messages of a dump; OSError if the kernel rejects the request.

        Repeat an interrupted dump, at most ten times. After that, each message is still valid, but the list may lack
        objects that moved during the dump.
        """
        for _ in range(DUMPS_AT_MOST):
            with contextlib.suppress(Interrupted):
                return self._dump(kind, payload)
        return self._dump(kind, payload, patient=True)

    def _dump(self, kind: int, payload: bytes, patient: bool = False) -> list[bytes]:
        self.send(kind, NLM_F_DUMP, payload)
        found = []
        interrupted = False
        for answer in self.messages():
            interrupted |= bool(answer.flags & NLM_F_DUMP_INTR)
            if answer.kind == NLMSG_DONE:
                break
            if answer.kind == NLMSG_ERROR:
                number = _error(answer.payload)
                if number in (errno.EINTR, errno.EAGAIN, errno.EBUSY) and not patient:
                    raise Interrupted
                raise OSError(number, os.strerror(number))
            found.append(answer.payload)
        if interrupted and not patient:
            raise Interrupted
        return found


def _error(payload: bytes) -> int:
    number: int = struct.unpack_from("=i", payload)[0]
    return -number


# Generic netlink

def family_request(name: str) -> bytes:
    """The payload of a request for a family; send it to GENL_ID_CTRL."""
    return struct.pack("=BBH", CTRL_GETFAMILY, 1, 0) + attr(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0")


def family_answer(payload: bytes) -> tuple[str, Optional[int], dict[str, int]]:
    """(name, number or None, {group: number}) from a message of GENL_ID_CTRL."""
    found = attrs(payload[4:])
    number = found.get(CTRL_ATTR_FAMILY_ID, b"")
    groups = {}
    for _, nest in attr_list(found.get(CTRL_ATTR_MCAST_GROUPS, b"")):
        group = attrs(nest)
        if len(group.get(CTRL_ATTR_MCAST_GRP_ID, b"")) >= 4:
            groups[_text(group.get(CTRL_ATTR_MCAST_GRP_NAME))] = struct.unpack_from(
                "=I", group[CTRL_ATTR_MCAST_GRP_ID])[0]
    return (_text(found.get(CTRL_ATTR_FAMILY_NAME)), struct.unpack_from("=H", number)[0] if len(number) >= 2 else None,
            groups)


def _text(data: Optional[bytes]) -> str:
    return (data or b"").split(b"\0")[0].decode("utf-8", "replace")
