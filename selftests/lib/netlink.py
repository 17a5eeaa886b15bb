# SPDX-License-Identifier: GPL-2.0-only
"""Netlink for all tests in Python: layouts and numbers from the uapi headers, one codec, one client.

    HEADER.number("TCA_DUALPI2_EXT")    a constant, or an expression of constants, of a header
    HEADER.layout("tc_dualpi2_delay")   a struct: .names, .size, .read(data) -> dict, .write(values) -> bytes
    HEADER.attributes("TCA_DUALPI2_")   {name: (type, struct format)} of the attributes that are one number
    attr(type, payload)                 an attribute; attrs(data) -> {type: payload}, attr_list(data) -> pairs in order
    encode(knobs, limit=5)              attributes of such a table; decode(knobs, data) -> {name: value}
    pack(limit=5, l4s=0)                TCA_OPTIONS of dualpi2, by KNOBS and EXT_KNOBS; unpack(options) the reverse
    parse_xstats(app)                   TCA_STATS_APP of dualpi2 as a dict, see net/lib.py
    Socket(netns, protocol)             .send(kind, flags, payload) .messages() .request(...) -> Answer .dump(...)
    tc_request(netns, type, flags, dev, handle, parent, kind, options)      (errno, extack text)
    qdisc_dump(netns, dev)  class_dump(netns, dev, handle)                  lists of dicts
    overload_listener(netns)            context manager: listens to the reports of overload there; .take(seconds) waits
                                        so long, .next(seconds) for one: dicts as OVERLOAD_REPORT says, with "event"
                                        "begin" or "end" and "at"; genl_family(sock, name) -> (number, {group: number})
    in_netns(name)                      context manager: this process is in the namespace

A field or number that the header changes is read with its new place here.  That the ABI did not change is tested by
what does not read the header: the tables in net/test_netlink.py and dualpi2-top's.
"""

import contextlib
import ctypes
import os
import re
import select
import socket
import struct
import time
from collections import namedtuple

from ktap import Failure

_SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(_SELFTESTS)
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


# Headers

class Layout:
    """A struct: names of its fields, those of structs and arrays within it as "c.enqueued" or "codepoint.0.arrived"."""

    def __init__(self, fields):
        self.fields = fields
        self.names = tuple(name for name, _ in fields)
        self.format = "=" + "".join(form for _, form in fields)
        self.size = struct.calcsize(self.format)

    def read(self, data):
        """{name: value}.  The struct of a kernel may be longer than ours, or shorter: the rest is 0."""
        return dict(zip(self.names, struct.unpack(self.format, data[:self.size].ljust(self.size, b"\0"))))

    def write(self, values):
        """Bytes; fields that are not given are 0."""
        unknown = set(values) - set(self.names)
        assert not unknown, f"the struct has no {unknown}"
        return struct.pack(self.format, *[values.get(name, 0) for name in self.names])


class Header:
    """Constants, structs and attributes of C headers as simple as those of this project."""

    FORMATS = {"u8": "B", "u32": "I", "s32": "i", "u64": "Q"}

    def __init__(self, *paths):
        self.text = ""
        for path in paths:
            # Beside installed tests, where there is no repository.
            root = ROOT if os.path.exists(os.path.join(ROOT, path)) else _SELFTESTS
            with open(os.path.join(root, path), encoding="utf-8") as file:
                self.text += file.read()
        self.code = re.sub(r"/\*.*?\*/", "", self.text, flags=re.S)
        self.defines = dict(re.findall(r"^#define\s+(\w+)[ \t]+(.*\S)", self.code, re.M))
        self.numbers = {"true": 1, "false": 0, "U32_MAX": 2**32 - 1, "U64_MAX": 2**64 - 1}
        for body in re.findall(r"^enum[^{;]*\{(.*?)\}", self.code, re.M | re.S):
            value = -1
            for item in filter(None, map(str.strip, body.split(","))):
                name, _, given = map(str.strip, item.partition("="))
                value = self.number(given) if given else value + 1
                self.numbers[name] = value

    def number(self, text):
        """The value of an expression of constants in C."""
        text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[UL]+\b", r"\1", text)
        text = re.sub(r"\b[A-Za-z_]\w*", lambda word: str(
            self.numbers[word[0]] if word[0] in self.numbers else self.number(self.defines[word[0]])), text)
        return eval(text.replace("/", "//"), {"__builtins__": {}})

    def string(self, name):
        """The value of a constant that is a string."""
        return self.defines[name].strip('"')

    def layout(self, name):
        """A struct."""
        return Layout(self._fields(name))

    def _fields(self, name):
        body = re.search(r"struct " + name + r" \{(.*?)\n\};", self.code, re.S)[1]
        found = []
        for kind, field, count in re.findall(r"((?:struct )?\w+)\s+(\w+)(?:\[(\w+)\])?;", body):
            for place in [f"{field}.{n}" for n in range(self.number(count))] if count else [field]:
                if kind.startswith("struct "):
                    found += [(f"{place}.{inner}", form) for inner, form in self._fields(kind[7:])]
                else:
                    found.append((place, self.FORMATS[kind.strip("_")]))
        return found

    def attributes(self, prefix):
        """{name: (type, struct format)} of the attributes that are one number, which their comments begin with."""
        body = re.search(rf"\b{prefix}UNSPEC,(.*?)__{prefix}MAX", self.text, re.S)[1]
        return {name.lower(): (self.numbers[prefix + name], self.FORMATS[kind])
                for name, kind in re.findall(rf"\b{prefix}(\w+),\s*/\* ([us]\d+)[, ]", body)}


HEADER = Header("include/uapi/linux/dualpi2.h")

# Knob: attribute type, struct format; of the second dict within TCA_DUALPI2_EXT.
KNOBS = HEADER.attributes("TCA_DUALPI2_")
EXT = HEADER.number("TCA_DUALPI2_EXT")
# tc and the messages call the option so.
EXT_KNOBS = {{"report": "overload_report"}.get(name, name): knob
             for name, knob in HEADER.attributes("TCA_DUALPI2_EXT_").items()}
L4S_ECT, CLA_ECT, ANY_ECT = (HEADER.number(f"TC_DUALPI2_ECN_MASK_{name}") for name in ("L4S_ECT", "CLA_ECT", "ANY_ECT"))
RECUR, RANDOM = (HEADER.number(f"TC_DUALPI2_SIGNAL_{name}") for name in ("RECUR", "RANDOM"))
RAW, NOATM, ATM, PTM = (HEADER.number(f"TC_DUALPI2_FRAMING_{name}") for name in ("RAW", "NOATM", "ATM", "PTM"))

# Statistics: the structs, and the fields of some of them.
XSTATS, EXT_XSTATS = HEADER.layout("tc_dualpi2_xstats"), HEADER.layout("tc_dualpi2_ext_xstats")
QUEUE_XSTATS = HEADER.layout("tc_dualpi2_queue_xstats").names
EXT_XSTATS_TAIL = EXT_XSTATS.names[2 + 2 * len(QUEUE_XSTATS):]
EXT_OFFSET, EXT_MAGIC = (HEADER.number(f"TC_DUALPI2_EXT_XSTATS_{name}") for name in ("OFFSET", "MAGIC"))
STATS_C, STATS_L, STATS_OVERLOAD, STATS_LINK = (
    HEADER.number(f"TCA_DUALPI2_STATS_{name}") for name in ("C", "L", "OVERLOAD", "LINK"))
QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST = (
    HEADER.number(f"TCA_DUALPI2_QUEUE_{name}") for name in ("COUNTERS", "DELAY", "HIST"))
COUNTERS, DELAY, OVERLOAD, LINK = (HEADER.layout(f"tc_dualpi2_{name}") for name in
                                   ("counters", "delay", "overload", "link"))

# A report of overload: attribute type and struct format.
OVERLOAD_EVENTS = {HEADER.number(f"DUALPI2_CMD_OVERLOAD_{name}"): name.lower() for name in ("BEGIN", "END")}
OVERLOAD_REPORT = HEADER.attributes("DUALPI2_A_")
FAMILY, GROUP = HEADER.string("DUALPI2_GENL_NAME"), HEADER.string("DUALPI2_GENL_GROUP")


# Attributes.  These are in the headers of every kernel: <linux/netlink.h>, <linux/rtnetlink.h>, <linux/gen_stats.h>.

NETLINK_GENERIC, GENL_ID_CTRL, SOL_NETLINK = 16, 16, 270
NETLINK_ADD_MEMBERSHIP, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 1, 10, 11, 12
NLMSG_HDRLEN, TCMSG_LEN, NLMSG_ERROR, NLMSG_DONE = 16, 20, 2, 3
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS = 1, 2
RTM_NEWLINK, RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 16, 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLA_F_NESTED, NLA_F_NET_BYTEORDER, NLA_TYPE_MASK = 0x8000, 0x4000, 0x3fff
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 3, 18, 1
TC_H_ROOT = 0xffffffff
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2 = 1, 2, 4, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8


def align(length):
    """The length up to where the next attribute or message begins."""
    return (length + 3) & ~3


def attr(kind, payload=b"", length=None):
    """One netlink attribute; LENGTH overrides what its header says."""
    return struct.pack("=HH", 4 + len(payload) if length is None else length, kind) + payload + bytes(-len(payload) % 4)


def attr_list(data):
    """[(type with its flags, payload)] of attributes, in their order."""
    found = []
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found.append((kind, data[4:size]))
        data = data[align(size):]
    return found


def attrs(data):
    """Attributes as {type: payload}; the last of a type wins."""
    return {kind & NLA_TYPE_MASK: payload for kind, payload in attr_list(data)}


def encode(knobs, **values):
    """Numbers as attributes; KNOBS is {name: (type, struct format)}."""
    return b"".join(attr(knobs[name][0], struct.pack(knobs[name][1], value)) for name, value in values.items())


def decode(knobs, data):
    """{name: value} of all that are there."""
    there = attrs(data)
    return {name: struct.unpack_from(form, there[kind])[0] for name, (kind, form) in knobs.items() if kind in there}


def pack(**knobs):
    """Knobs of dualpi2 as the payload of TCA_OPTIONS."""
    plain, ext = ({name: value for name, value in knobs.items() if (name in KNOBS) == is_plain}
                  for is_plain in (True, False))
    return encode(KNOBS, **plain) + (attr(EXT | NLA_F_NESTED, encode(EXT_KNOBS, **ext)) if ext else b"")


def unpack(options):
    """The reverse of pack()."""
    return decode(KNOBS, options) | decode(EXT_KNOBS, attrs(options).get(EXT, b""))


def handle_number(text):
    """The number of "10:", "1:10", "root" or a number."""
    if not isinstance(text, str):
        return text
    if text == "root":
        return TC_H_ROOT
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def handle_text(number):
    """The reverse."""
    if number in (0, TC_H_ROOT):
        return "root" if number else "0:"
    return f"{number >> 16:x}:" + (f"{number & 0xffff:x}" if number & 0xffff else "")


# Messages

def setns(file):
    """This process is in the network namespace of an open file from here on."""
    if libc.setns(file.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def in_netns(name):
    """Be in a network namespace for a while; None is the present one."""
    if name is None:
        yield
        return
    with open("/proc/self/ns/net", encoding="ascii") as here, \
         open(f"/run/netns/{name}", encoding="ascii") as there:
        setns(there)
        try:
            yield
        finally:
            setns(here)


def ifindex(netns, dev):
    """The number of a device."""
    with in_netns(netns):
        return socket.if_nametoindex(dev)


def tcmsg(index, handle=0, parent=0):
    """struct tcmsg."""
    return struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, handle_number(handle), handle_number(parent), 0)


def message(kind, flags, payload, seq=1):
    """A request with its header."""
    return struct.pack("=IHHII", NLMSG_HDRLEN + len(payload), kind, flags | NLM_F_REQUEST, seq, 0) + payload


# offset: where in the request the fault is; text and offset are None if the kernel sends none.
Answer = namedtuple("Answer", "error text offset")


class Socket:
    """A netlink socket in a namespace, and a context manager."""

    def __init__(self, netns=None, protocol=socket.NETLINK_ROUTE):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK):
            with contextlib.suppress(OSError):
                self.sock.setsockopt(SOL_NETLINK, option, 1)
        self.seq = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, kind, flags, payload):
        """A request."""
        self.seq += 1
        self.sock.send(message(kind, flags, payload, self.seq))

    def messages(self):
        """(type, flags, payload) of the answers to the last request, without end."""
        while True:
            data = self.sock.recv(1 << 18)
            while len(data) >= NLMSG_HDRLEN:
                size, kind, flags, seq, _ = struct.unpack_from("=IHHII", data)
                if seq == self.seq:
                    yield kind, flags, data[NLMSG_HDRLEN:size]
                data = data[align(size):]

    def request(self, kind, flags, payload):
        """Send a request and return the Answer."""
        self.send(kind, flags | NLM_F_ACK, payload)
        for answer, answer_flags, data in self.messages():
            if answer != NLMSG_ERROR:
                continue
            skip = 4 + (NLMSG_HDRLEN if answer_flags & NLM_F_CAPPED else struct.unpack_from("=I", data, 4)[0])
            said = attrs(data[skip:]) if answer_flags & NLM_F_ACK_TLVS else {}
            offset = said.get(NLMSGERR_ATTR_OFFS)
            return Answer(-struct.unpack_from("=i", data)[0],
                          said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode() or None,
                          offset and struct.unpack("=I", offset)[0])
        raise AssertionError("no answer")

    def dump(self, kind, payload):
        """The payloads of all messages that a dump consists of."""
        self.send(kind, NLM_F_DUMP, payload)
        found = []
        for answer, _, data in self.messages():
            if answer == NLMSG_DONE:
                return found
            if answer == NLMSG_ERROR:
                raise Failure("dump: " + os.strerror(-struct.unpack_from("=i", data)[0]))
            found.append(data)
        raise AssertionError("no end of the dump")


def tc_request(netns, msg_type, flags, dev, handle=0, parent="root", kind=None, options=None):
    """Send one qdisc message; return (errno, text of the extack)."""
    body = tcmsg(ifindex(netns, dev), handle, parent)
    if kind is not None:
        body += attr(TCA_KIND, kind.encode() + b"\0")
    if options is not None:
        body += attr(TCA_OPTIONS | NLA_F_NESTED, options)
    with Socket(netns) as sock:
        answer = sock.request(msg_type, flags, body)
    return answer.error, answer.text or ""


def qdisc_dump(netns, dev):
    """Every qdisc of a device."""
    return _dump(netns, dev, RTM_GETQDISC, 0)


def class_dump(netns, dev, handle=0):
    """Every class of a qdisc, or of a device."""
    return _dump(netns, dev, RTM_GETTCLASS, handle)


def _dump(netns, dev, msg_type, parent):
    index = ifindex(netns, dev)
    found = []
    with Socket(netns) as sock:
        for data in sock.dump(msg_type, tcmsg(index, 0, parent)):
            _, number, handle, above, _ = struct.unpack_from("=BxxxiIII", data)
            if number == index:
                found.append(_parse_qdisc(handle, above, attrs(data[TCMSG_LEN:])))
    return found


def _parse_qdisc(handle, parent, found):
    stats2 = attrs(found.get(TCA_STATS2, b""))
    size, packets = struct.unpack_from("=QI", stats2.get(TCA_STATS_BASIC, b"\0" * 16))
    if TCA_STATS_PKT64 in stats2:
        packets = struct.unpack_from("=Q", stats2[TCA_STATS_PKT64])[0]
    queue = struct.unpack_from("=5I", stats2.get(TCA_STATS_QUEUE, b"\0" * 20))
    return {
        "kind": found[TCA_KIND].rstrip(b"\0").decode(),
        "handle": handle_text(handle), "parent": handle_text(parent),
        "options": found.get(TCA_OPTIONS),
        "stats": {"bytes": size, "packets": packets}
                 | dict(zip(("qlen", "backlog", "drops", "requeues", "overlimits"), queue)),
        "app": stats2.get(TCA_STATS_APP),
    }


def parse_xstats(app):
    """Both structs of TCA_STATS_APP in one dict; no "c" without the extension."""
    st = XSTATS.read(app)
    st["p"] = st["prob"] / 2**32
    own = app[EXT_OFFSET:]
    ext = EXT_XSTATS.read(own)
    if ext["magic"] != EXT_MAGIC:
        return st
    if any(app[XSTATS.size:EXT_OFFSET]):
        raise Failure("the gap between the statistics is not zero")
    found = attrs(own[ext["size"]:])
    ext = EXT_XSTATS.read(own[:ext["size"]])
    st |= {name: ext[name] for name in EXT_XSTATS_TAIL}
    st["p_c"], st["p_cl"] = st["prob_c"] / 2**32, st["prob_cl"] / 2**32
    for queue, kind in (("c", STATS_C), ("l", STATS_L)):
        st[queue] = {name: ext[f"{queue}.{name}"] for name in QUEUE_XSTATS}
        if kind not in found:
            continue
        nest = attrs(found[kind])
        st[queue]["counters"] = COUNTERS.read(nest[QUEUE_COUNTERS])
        st[queue]["delay"] = delay = DELAY.read(nest[QUEUE_DELAY])
        # The last words of a qdisc that goes are without it.
        data = nest.get(QUEUE_HIST, b"")
        hist = struct.unpack(f"={len(data) // 8}Q", data)
        if len(hist) > delay["buckets"] or (hist and not hist[-1]):
            raise Failure(f"{queue}: {len(hist)} buckets were sent of {delay['buckets']}, the last one {hist[-1]}")
        delay["hist"] = [*hist, *[0] * (delay["buckets"] - len(hist))]
    if STATS_OVERLOAD in found:
        st["overload_info"] = OVERLOAD.read(found[STATS_OVERLOAD])
    if STATS_LINK in found:
        st["link"] = LINK.read(found[STATS_LINK])
    return st


# Reports of overload

def genl_family(sock, name):
    """The number of a generic netlink family, and those of its groups; None, {} if there is none."""
    sock.send(GENL_ID_CTRL, NLM_F_ACK, struct.pack("=BBH", 3, 1, 0) + attr(2, name.encode() + b"\0"))
    family, groups = None, {}
    for kind, _, data in sock.messages():
        if kind == NLMSG_ERROR:     # after the answer
            break
        found = attrs(data[4:])
        family = struct.unpack("=H", found[1])[0]
        for group in attrs(found.get(7, b"")).values():
            one = attrs(group)
            groups[one[1].rstrip(b"\0").decode()] = struct.unpack("=I", one[2])[0]
    return family, groups


class OverloadListener(Socket):
    """Who listens to the reports of overload in a namespace."""

    def __init__(self, netns):
        super().__init__(netns, NETLINK_GENERIC)
        self.family, groups = genl_family(self, FAMILY)
        if GROUP not in groups:
            raise Failure(f"no generic netlink family {FAMILY} with a group {GROUP} in {netns}: {groups}")
        self.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, groups[GROUP])

    def next(self, seconds=10):
        """The next report, None if there is none in this time; each is one message."""
        if not select.select([self.sock], [], [], seconds)[0]:
            return None
        data = self.sock.recv(1 << 16)
        size, kind, _ = struct.unpack_from("=IHH", data)
        command, version = struct.unpack_from("=BB", data, 16)
        if kind != self.family or size != len(data) or version != 1 or command not in OVERLOAD_EVENTS:
            raise Failure(f"no report: message of type {kind}, command {command}, {size} of {len(data)} bytes")
        return decode(OVERLOAD_REPORT, data[20:]) | {"event": OVERLOAD_EVENTS[command], "at": time.time()}

    def take(self, seconds):
        """All that comes in this time."""
        until, found = time.monotonic() + seconds, []
        while (left := until - time.monotonic()) > 0:
            if report := self.next(left):
                found.append(report)
        return found


overload_listener = OverloadListener
