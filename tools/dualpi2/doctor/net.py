# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel says of devices, qdiscs, classes and filters, for the doctor: netlink in, dicts out.

It asks and never changes anything, and does without tc, which may be the thing that is wrong. What a number means for
L4S is not said here: see rules. Statistics of dualpi2 are decoded by kernel.stats.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct

from .. import Trouble
from ..kernel import stats
from ..kernel.netlink import handle_text
from ..kernel.stats import attributes

RTM_GETLINK, RTM_GETADDR, RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER = 18, 22, 38, 42, 46
NLM_F_REQUEST, NLM_F_DUMP, NLM_F_DUMP_INTR = 1, 0x300, 0x10
NLMSG_ERROR, NLMSG_DONE = 2, 3
IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_MASTER, IFLA_LINKINFO, IFLA_NETNSID = 3, 4, 5, 10, 18, 37
IFLA_STATS64 = 23
IFA_ADDRESS, IFA_LOCAL = 1, 2
TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_STAB = 1, 2, 7, 8
STATS_BASIC, STATS_QUEUE, STATS_APP, STATS_PKT64 = 1, 3, 4, 8
PSCHED_NS = 64          # one tick of the kernel's packet scheduler, since 2009
TC_INGRESS, TC_CLSACT_INGRESS, TC_CLSACT_EGRESS = 0xffff0000, 0xfffffff2, 0xfffffff3
CLSACT_HANDLE = 0xffff0000

# TCA_DUALPI2_*: type and form; of the second dict within TCA_DUALPI2_EXT.
OPTIONS = {"limit": (1, "=I"), "memlimit": (2, "=I"), "target_us": (3, "=I"), "tupdate_us": (4, "=I"),
           "step_pkts": (7, "=I"), "step_us": (8, "=I"), "coupling": (10, "=B"), "drop_overload": (11, "=B"),
           "ecn_mask": (14, "=B"), "split_gso": (15, "=B")}
EXT = 0x0d50
EXT_OPTIONS = {"l4s": (1, "=B"), "ramp_us": (2, "=I"), "p_cmax": (4, "=B"), "bandwidth": (9, "=Q"),
               "framing": (10, "=B"), "overhead": (11, "=i"), "mpu": (12, "=I"), "ingress": (13, "=B"),
               "nqb": (14, "=Q"), "burst_max_us": (15, "=I"), "bypass": (16, "=B")}

CAKE_ATM, CAKE_OVERHEAD, CAKE_RAW, CAKE_MPU, CAKE_INGRESS = 4, 6, 12, 14, 15
PEDIT_PARMS, PEDIT_PARMS_EX, PEDIT_KEYS_EX, PEDIT_HTYPE = 2, 4, 5, 1
PEDIT_NETWORK, PEDIT_IP4, PEDIT_IP6 = 0, 2, 3
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86dd

# Where a filter keeps its class and its actions, by kind.
FILTER_CLASS = {"matchall": 1, "u32": 1, "flower": 1, "basic": 1, "fw": 1, "bpf": 3}
FILTER_ACTIONS = {"matchall": 2, "u32": 7, "flower": 3, "basic": 3, "fw": 4, "bpf": 1}


def _u32(data, default=0):
    return struct.unpack_from("=I", data)[0] if data and len(data) >= 4 else default


def _u16(data):
    return struct.unpack_from("=H", data)[0] if data and len(data) >= 2 else 0


def _text(data):
    return (data or b"").split(b"\0")[0].decode("utf-8", "replace")


class Asker:
    """A routing socket of this network namespace."""

    def __init__(self):
        self.sequence = 0
        try:
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
            self.sock.bind((0, 0))
        except OSError as error:
            raise Trouble(f"cannot ask the kernel by netlink ({error.strerror}); run it outside of the container that "
                          "forbids it", 3) from error

    def close(self):
        self.sock.close()

    def dump(self, kind, body):
        """The messages of a dump; again while something changes during it, ten times at most."""
        for _ in range(10):
            found, whole = self._dump(kind, body)
            if whole:
                break
        return found

    def _dump(self, kind, body):
        self.sequence += 1
        self.sock.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_DUMP, self.sequence, 0) + body)
        found, whole = [], True
        while True:
            data = self.sock.recv(1 << 18)
            at = 0
            while at + 16 <= len(data):
                size, answer, flags, sequence = struct.unpack_from("=IHHI", data, at)
                if size < 16:
                    break
                payload = data[at + 16:at + size]
                at += (size + 3) & ~3
                if sequence != self.sequence:
                    continue
                whole = whole and not flags & NLM_F_DUMP_INTR
                if answer == NLMSG_DONE:
                    return found, whole
                if answer == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", payload)[0]
                    return found, number not in (errno.EINTR, errno.EAGAIN, errno.EBUSY)
                found.append(payload)

    def links(self):
        """Every device, by its number."""
        return {link["ifindex"]: link for link in map(_link, self.dump(RTM_GETLINK, struct.pack("=16x"))) if link}

    def addresses(self):
        """The host's own addresses, as text."""
        found = set()
        for data in self.dump(RTM_GETADDR, struct.pack("=8x")):
            known = dict(attributes(data[8:]))
            address = known.get(IFA_LOCAL) or known.get(IFA_ADDRESS) or b""
            if len(address) in (4, 16):
                found.add(socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address))
        return found

    def qdiscs(self):
        """Every qdisc of the namespace, raw: see Qdisc."""
        return [Qdisc(data) for data in self.dump(RTM_GETQDISC, struct.pack("=20x")) if len(data) >= 20]

    def classes(self, ifindex):
        """Classes of a device that have a rate: {number: {"parent", "kind", "rate", "burst_ns", ...}}."""
        found = {}
        for data in self.dump(RTM_GETTCLASS, struct.pack("=BxxxiIII", 0, ifindex, 0, 0, 0)):
            if len(data) < 20:
                continue
            _, index, handle, parent, info = struct.unpack_from("=BxxxiIII", data)
            known = dict(attributes(data[20:]))
            if index != ifindex:
                continue
            kind = _text(known.get(TCA_KIND))
            found[handle] = {"handle": handle, "parent": parent, "kind": kind, "leaf": info}
            if kind == "htb":
                found[handle].update(_htb_class(known.get(TCA_OPTIONS, b"")))
        return found

    def filters(self, ifindex, parent):
        """Filters at a qdisc: dicts of kind, pref, protocol, class and actions."""
        found = []
        for data in self.dump(RTM_GETTFILTER, struct.pack("=BxxxiIII", 0, ifindex, 0, parent, 0)):
            if len(data) < 20:
                continue
            _, index, handle, above, info = struct.unpack_from("=BxxxiIII", data)
            known = dict(attributes(data[20:]))
            kind = _text(known.get(TCA_KIND))
            inner = dict(attributes(known.get(TCA_OPTIONS, b"")))
            # Each preference comes twice, once without what it does.
            if index != ifindex or not inner:
                continue
            protocol = socket.ntohs(info & 0xffff)
            found.append({"kind": kind, "parent": above, "pref": info >> 16, "handle": handle, "protocol": protocol,
                          "class": _u32(inner.get(FILTER_CLASS.get(kind))),
                          "actions": _actions(inner.get(FILTER_ACTIONS.get(kind), b""), protocol)})
        return found


def _link(data):
    if len(data) < 16:
        return None
    _, kind, index, flags, _ = struct.unpack_from("=BxHiII", data)
    known = dict(attributes(data[16:]))
    info = dict(attributes(known.get(IFLA_LINKINFO, b"")))
    # struct rtnl_link_stats64 begins with packets and bytes, received and sent.
    counts = known.get(IFLA_STATS64, b"")
    counts = struct.unpack_from("=4Q", counts) if len(counts) >= 32 else (0, 0, 0, 0)
    return {"ifindex": index, "name": _text(known.get(IFLA_IFNAME)), "type": kind, "up": bool(flags & 1),
            "loopback": bool(flags & 8), "mtu": _u32(known.get(IFLA_MTU)), "lower": _u32(known.get(IFLA_LINK)),
            "elsewhere": IFLA_NETNSID in known, "master": _u32(known.get(IFLA_MASTER)),
            "kind": _text(info.get(1)), "rx_packets": counts[0], "tx_packets": counts[1]}


def _actions(data, protocol):
    found = []
    for _, action in attributes(data):
        known = dict(attributes(action))
        kind = _text(known.get(1))
        inner = dict(attributes(known.get(2, b"")))
        one = {"kind": kind}
        if kind == "mirred" and len(inner.get(2, b"")) >= 28:
            one["how"], one["ifindex"] = struct.unpack_from("=iI", inner[2], 20)
        elif kind == "pedit":
            headers = [_u16(dict(attributes(key)).get(PEDIT_HTYPE))
                       for _, key in attributes(inner.get(PEDIT_KEYS_EX, b""))]
            one["ecn"] = pedit_writes_ecn(inner.get(PEDIT_PARMS_EX) or inner.get(PEDIT_PARMS) or b"", protocol, headers)
        elif kind == "skbmod":
            # struct tc_skbmod: tc_gen and u64 flags; 0x10 is SKBMOD_F_ECN, which sets CE only.
            one["ecn"] = False
        found.append(one)
    return found


def pedit_writes_ecn(data, protocol=0, headers=()):
    """Does an action of this struct tc_pedit_sel write a bit of the ECN field? IPv4 and IPv6 have it in one word.

    protocol: that of the filter. headers: of each key which header it counts from (`pedit ex`), else that of IP.
    """
    if len(data) < 24:
        return False
    families = {ETH_P_IP: (PEDIT_IP4,), ETH_P_IPV6: (PEDIT_IP6,)}.get(protocol, (PEDIT_IP4, PEDIT_IP6))
    for number in range(data[20]):
        at = 24 + 24 * number
        if at + 24 > len(data):
            break
        offset = struct.unpack_from("=I", data, at + 8)[0]
        header = headers[number] if number < len(headers) else PEDIT_NETWORK
        # The mask says what stays. The ECN field is in the low bits of IPv4's byte 1, or the middle of IPv6's.
        for family, field in ((PEDIT_IP4, 0x03), (PEDIT_IP6, 0x30)):
            if (offset == 0 and header in (PEDIT_NETWORK, family) and family in families and
                    data[at + 1] & field != field):
                return True
    return False


def _cake_words(options):
    """What cake counts of the link, in dualpi2's words; "" of one that was given no overhead."""
    words = [] if CAKE_RAW in options else [
        f"overhead {struct.unpack('=i', (options.get(CAKE_OVERHEAD) or bytes(4))[:4])[0]}",
        f"mpu {_u32(options.get(CAKE_MPU))}", {1: "atm", 2: "ptm"}.get(_u32(options.get(CAKE_ATM)), "noatm")]
    return "".join(" " + word for word in words + (["ingress"] if _u32(options.get(CAKE_INGRESS)) else []))


def _htb_class(options):
    known = dict(attributes(options))
    form = known.get(1, b"")
    if len(form) < 44:
        return {}
    rate, ceil = struct.unpack_from("=8xI", form)[0], struct.unpack_from("=8xI", form, 12)[0]
    burst, cburst, quantum, _, prio = struct.unpack_from("=5I", form, 24)
    for attribute, is_ceil in ((6, False), (7, True)):      # TCA_HTB_RATE64, CEIL64
        if len(known.get(attribute, b"")) >= 8:
            value = struct.unpack_from("=Q", known[attribute])[0]
            rate, ceil = (rate, value) if is_ceil else (value, ceil)
    # Either is the time that it lasts at its rate.
    return {"rate": rate, "ceil": ceil, "burst_ns": burst * PSCHED_NS, "cburst_ns": cburst * PSCHED_NS,
            "quantum": quantum, "prio": prio}


class Qdisc:
    """One qdisc of a dump."""

    def __init__(self, data):
        _, self.ifindex, self.handle, self.parent, _ = struct.unpack_from("=BxxxiIII", data)
        known = dict(attributes(data[20:]))
        self.kind = _text(known.get(TCA_KIND))
        self.options = known.get(TCA_OPTIONS, b"")
        self.sized = TCA_STAB in known
        inner = dict(attributes(known.get(TCA_STATS2, b"")))
        self.app = inner.get(STATS_APP, b"")
        basic, queue = inner.get(STATS_BASIC, b""), inner.get(STATS_QUEUE, b"")
        self.bytes, self.packets = struct.unpack_from("=QI", basic) if len(basic) >= 12 else (0, 0)
        if len(inner.get(STATS_PKT64, b"")) >= 8:
            self.packets = struct.unpack_from("=Q", inner[STATS_PKT64])[0]
        self.qlen, self.backlog, self.drops, _, self.overlimits = (
            struct.unpack_from("=5I", queue) if len(queue) >= 20 else (0, 0, 0, 0, 0))

    @property
    def key(self):
        return self.ifindex, self.parent, self.handle

    def sample(self):
        """The statistics of a dualpi2."""
        return stats.Sample(self.app, self.bytes, self.packets, self.qlen, self.backlog, self.drops)

    def dualpi2_options(self):
        """Its options by name; what this kernel's dualpi2 does not have is missing."""
        known = dict(attributes(self.options))
        ext = dict(attributes(known.get(EXT, b"")))
        found = {name: struct.unpack_from(form, source[number])[0]
                 for names, source in ((OPTIONS, known), (EXT_OPTIONS, ext))
                 for name, (number, form) in names.items()
                 if len(source.get(number, b"")) >= struct.calcsize(form)}
        found["extended"] = EXT in known
        return found

    def shaper(self):
        """{"rate": bytes/s, "burst_ns"} of a qdisc that shapes, None of another; htb and hfsc have classes for it."""
        known = dict(attributes(self.options))
        if self.kind in ("htb", "hfsc"):
            return {"rate": 0, "burst_ns": 0}
        if self.kind == "tbf" and len(known.get(1, b"")) >= 36:
            form = known[1]
            rate = struct.unpack_from("=Q", known[4])[0] if len(known.get(4, b"")) >= 8 else _u32(form[8:])
            return {"rate": rate, "burst_ns": _u32(form[28:]) * PSCHED_NS, "limit": _u32(form[24:])}
        if self.kind in ("cake", "cake_mq") and len(known.get(2, b"")) >= 8:
            rate = struct.unpack_from("=Q", known[2])[0]
            return {"rate": rate, "burst_ns": 0, "words": _cake_words(known)} if rate else None
        if self.kind == "netem":
            known = dict(attributes(self.options[24:]))      # behind struct tc_netem_qopt
            rate = _u32(known.get(6))
            if len(known.get(8, b"")) >= 8:
                rate = struct.unpack_from("=Q", known[8])[0]
            return {"rate": rate, "burst_ns": 0} if rate else None
        if self.kind == "dualpi2":
            rate = self.dualpi2_options().get("bandwidth", 0)
            return {"rate": rate, "burst_ns": 0} if rate else None
        return None

    def where(self):
        """As tc wants it: "root" or "parent 1:10"."""
        text = handle_text(self.parent)
        return text if text in ("root", "ingress") else "parent " + text

    def name(self):
        return f"{self.kind} {handle_text(self.handle) if self.handle else '0:'}"


SIOCETHTOOL = 0x8946
ETHTOOL_OFFLOADS = {"gso": 0x23, "tso": 0x1e, "gro": 0x2b}      # ETHTOOL_GGSO, GTSO, GGRO


def offloads(name):
    """{"gso": True, ...} of a device; what it does not tell is missing."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for offload, command in ETHTOOL_OFFLOADS.items():
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            request = struct.pack("16sP16x", name.encode(errors="surrogateescape"), ctypes.addressof(value))
            try:
                fcntl.ioctl(sock, SIOCETHTOOL, request)
            except OSError:
                continue
            found[offload] = bool(_u32(value.raw[4:]))
    return found


def pppoe_devices():
    """Names of the devices that carry a PPPoE session."""
    try:
        with open("/proc/self/net/pppoe", encoding="ascii", errors="replace") as file:
            lines = file.read().split("\n")[1:]
    except OSError:
        return []
    return sorted({line.split()[2] for line in lines if len(line.split()) >= 3})


def sysctl(name):
    """A number of /proc/sys, None if this kernel has not got it."""
    try:
        with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def is_root():
    """May this process ask all that it has to?"""
    return os.geteuid() == 0
