# SPDX-License-Identifier: GPL-2.0-only
"""Devices, qdiscs, classes and filters of the kernel, for the doctor: netlink in, dicts out.

Reads only, and does not use tc, which may be at fault. The conclusions are in rules. Statistics of dualpi2 are decoded
by kernel.stats.
"""

import ctypes
import fcntl
import os
import socket
import struct

from ..kernel import netlink, qdisc
from ..kernel.netlink import TCA_KIND, TCA_OPTIONS, TCMSG_LEN, attr_list, attrs, handle_text, tcmsg

IFLA_MTU, IFLA_LINK, IFLA_MASTER, IFLA_IFALIAS, IFLA_STATS64 = 4, 5, 10, 20, 23
IFLA_NUM_TX_QUEUES, IFLA_NETNSID = 31, 37
RTF_UP, RTF_REJECT = 1, 0x200
IFA_ADDRESS, IFA_LOCAL = 1, 2
PSCHED_NS = 64          # one tick of the kernel's packet scheduler, since 2009
TC_INGRESS, TC_CLSACT_INGRESS, TC_CLSACT_EGRESS = 0xffff0000, 0xfffffff2, 0xfffffff3
CLSACT_HANDLE = 0xffff0000
L4S_MINOR = 1

CAKE_ATM, CAKE_OVERHEAD, CAKE_RAW, CAKE_MPU, CAKE_INGRESS = 4, 6, 12, 14, 15
PEDIT_PARMS, PEDIT_PARMS_EX, PEDIT_KEYS_EX, PEDIT_HTYPE = 2, 4, 5, 1
PEDIT_NETWORK, PEDIT_IP4, PEDIT_IP6 = 0, 2, 3
LINKLAYER_ATM = 2
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86dd

# Attributes of the class and of the actions of a filter, by kind.
FILTER_CLASS = {"matchall": 1, "u32": 1, "flower": 1, "basic": 1, "fw": 1, "bpf": 3}
FILTER_ACTIONS = {"matchall": 2, "u32": 7, "flower": 3, "basic": 3, "fw": 4, "bpf": 1}


def _u32(data, default=0):
    return struct.unpack_from("=I", data)[0] if data and len(data) >= 4 else default


def _u16(data):
    return struct.unpack_from("=H", data)[0] if data and len(data) >= 2 else 0


def _text(data):
    return (data or b"").split(b"\0")[0].decode("utf-8", "replace")


class Asker(netlink.Socket):
    """A routing socket of this network namespace."""

    def dump(self, kind, payload):
        """The messages of a dump; empty if the kernel rejects it."""
        try:
            return super().dump(kind, payload)
        except OSError:
            return []

    def links(self):
        """All devices, by ifindex."""
        return {link["ifindex"]: link for link in map(_link, self.dump(netlink.RTM_GETLINK, bytes(16))) if link}

    def addresses(self):
        """The host's own addresses, as text."""
        found = set()
        for data in self.dump(netlink.RTM_GETADDR, struct.pack("=8x")):
            known = attrs(data[8:])
            address = known.get(IFA_LOCAL) or known.get(IFA_ADDRESS) or b""
            if len(address) in (4, 16):
                found.add(socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address))
        return found

    def qdiscs(self):
        """All qdiscs of the namespace, as Qdisc, without the children of a dualpi2_mq."""
        return qdisc.without_children([Qdisc(data) for data in self.dump(netlink.RTM_GETQDISC, tcmsg(0))
                                       if len(data) >= TCMSG_LEN])

    def classes(self, ifindex):
        """Classes of a device that have a rate: {number: {"parent", "kind", "rate", "burst_ns", ...}}."""
        found = {}
        for data in self.dump(netlink.RTM_GETTCLASS, tcmsg(ifindex)):
            if len(data) < TCMSG_LEN:
                continue
            _, index, handle, parent, info = struct.unpack_from("=BxxxiIII", data)
            known = attrs(data[TCMSG_LEN:])
            if index != ifindex:
                continue
            kind = _text(known.get(TCA_KIND))
            found[handle] = {"handle": handle, "parent": parent, "kind": kind, "leaf": info}
            if kind == "htb":
                found[handle].update(_htb_class(known.get(TCA_OPTIONS, b"")))
        return found

    def l4s_flows(self, ifindex, handle):
        """Flows with a score of the dualpi2 with this handle, the highest first; see stats.qprotect_flow()."""
        for data in self.dump(netlink.RTM_GETTCLASS, tcmsg(ifindex, parent=handle)):
            if len(data) >= TCMSG_LEN:
                found = qdisc.Qdisc(data)
                if (found.ifindex, found.kind, found.handle) == (ifindex, "dualpi2", handle | L4S_MINOR):
                    return found.sample().flows
        return []

    def filters(self, ifindex, parent):
        """Filters at a qdisc: dicts of kind, pref, protocol, class and actions."""
        found = []
        for data in self.dump(netlink.RTM_GETTFILTER, tcmsg(ifindex, parent=parent)):
            if len(data) < TCMSG_LEN:
                continue
            _, index, handle, above, info = struct.unpack_from("=BxxxiIII", data)
            known = attrs(data[TCMSG_LEN:])
            kind = _text(known.get(TCA_KIND))
            inner = attrs(known.get(TCA_OPTIONS, b""))
            # The dump has each preference twice, once without options.
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
    known = attrs(data[16:])
    info = attrs(known.get(netlink.IFLA_LINKINFO, b""))
    # struct rtnl_link_stats64 begins with packets and bytes, received and sent.
    counts = known.get(IFLA_STATS64, b"")
    counts = struct.unpack_from("=4Q", counts) if len(counts) >= 32 else (0, 0, 0, 0)
    return {"ifindex": index, "name": _text(known.get(netlink.IFLA_IFNAME)), "type": kind, "up": bool(flags & 1),
            "loopback": bool(flags & 8), "mtu": _u32(known.get(IFLA_MTU)), "lower": _u32(known.get(IFLA_LINK)),
            "elsewhere": IFLA_NETNSID in known, "master": _u32(known.get(IFLA_MASTER)),
            "alias": _text(known.get(IFLA_IFALIAS)), "tx_queues": _u32(known.get(IFLA_NUM_TX_QUEUES), 1),
            "kind": _text(info.get(netlink.IFLA_INFO_KIND)), "rx_packets": counts[0], "tx_packets": counts[1]}


def _actions(data, protocol):
    found = []
    for _, action in attr_list(data):
        known = attrs(action)
        kind = _text(known.get(1))
        inner = attrs(known.get(2, b""))
        one = {"kind": kind}
        if kind == "mirred" and len(inner.get(2, b"")) >= 28:
            one["how"], one["ifindex"] = struct.unpack_from("=iI", inner[2], 20)
        elif kind == "pedit":
            headers = [_u16(attrs(key).get(PEDIT_HTYPE))
                       for _, key in attr_list(inner.get(PEDIT_KEYS_EX, b""))]
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
        # The mask has the bits that stay. The ECN field is in byte 1: the low bits for IPv4, the middle ones for IPv6.
        for family, field in ((PEDIT_IP4, 0x03), (PEDIT_IP6, 0x30)):
            if (offset == 0 and header in (PEDIT_NETWORK, family) and family in families and
                    data[at + 1] & field != field):
                return True
    return False


def _cake_options(options):
    """The link layer of cake as options of dualpi2; "" without an overhead."""
    keywords = [] if CAKE_RAW in options else [
        f"overhead {struct.unpack('=i', (options.get(CAKE_OVERHEAD) or bytes(4))[:4])[0]}",
        f"mpu {_u32(options.get(CAKE_MPU))}", {1: "atm", 2: "ptm"}.get(_u32(options.get(CAKE_ATM)), "noatm")]
    return "".join(" " + word for word in keywords + (["ingress"] if _u32(options.get(CAKE_INGRESS)) else []))


def _link_layer(spec):
    """The link layer in a struct tc_ratespec, as options of htb and tbf; "" without one."""
    layer, overhead, mpu = struct.unpack_from("=xBH2xH", spec)
    return (f" overhead {overhead}" if overhead else "") + (f" mpu {mpu}" if mpu else "") + (
        " linklayer atm" if layer & 15 == LINKLAYER_ATM else "")


def _htb_class(options):
    known = attrs(options)
    form = known.get(1, b"")
    if len(form) < 44:
        return {}
    rate, ceil = struct.unpack_from("=8xI", form)[0], struct.unpack_from("=8xI", form, 12)[0]
    burst, cburst, quantum, _, prio = struct.unpack_from("=5I", form, 24)
    for attribute, is_ceil in ((6, False), (7, True)):      # TCA_HTB_RATE64, CEIL64
        if len(known.get(attribute, b"")) >= 8:
            value = struct.unpack_from("=Q", known[attribute])[0]
            rate, ceil = (rate, value) if is_ceil else (value, ceil)
    # Both are the time that the burst takes at its rate.
    return {"rate": rate, "ceil": ceil, "burst_ns": burst * PSCHED_NS, "cburst_ns": cburst * PSCHED_NS,
            "quantum": quantum, "prio": prio, "link_layer": _link_layer(form)}


class Qdisc(qdisc.Qdisc):
    """One qdisc of a dump."""

    def shaper(self):
        """{"rate": bytes/s, "burst_ns"} of a qdisc that shapes, None of another; htb and hfsc have classes for it."""
        known = attrs(self.options)
        if self.kind in ("htb", "hfsc"):
            return {"rate": 0, "burst_ns": 0}
        if self.kind == "tbf" and len(known.get(1, b"")) >= 36:
            form = known[1]
            rate = struct.unpack_from("=Q", known[4])[0] if len(known.get(4, b"")) >= 8 else _u32(form[8:])
            peak = struct.unpack_from("=Q", known[5])[0] if len(known.get(5, b"")) >= 8 else _u32(form[20:])
            return {"rate": rate, "burst_ns": _u32(form[28:]) * PSCHED_NS, "limit": _u32(form[24:]), "peak": peak,
                    "peak_burst": _u32(form[32:]) * PSCHED_NS * peak // 10**9, "link_layer": _link_layer(form)}
        if self.kind in ("cake", "cake_mq") and len(known.get(2, b"")) >= 8:
            rate = struct.unpack_from("=Q", known[2])[0]
            return {"rate": rate, "burst_ns": 0, "options": _cake_options(known)} if rate else None
        if self.kind == "netem":
            known = attrs(self.options[24:])      # behind struct tc_netem_qopt
            rate = _u32(known.get(6))
            if len(known.get(8, b"")) >= 8:
                rate = struct.unpack_from("=Q", known[8])[0]
            return {"rate": rate, "burst_ns": 0} if rate else None
        if self.kind in qdisc.KINDS:
            rate = self.dualpi2_options().get("bandwidth", 0)
            return {"rate": rate, "burst_ns": 0} if rate else None
        return None

    def where(self):
        """The place as arguments of tc: "root" or "parent 1:10"."""
        text = handle_text(self.parent)
        return text if text in ("root", "ingress") else "parent " + text

    def name(self):
        return f"{self.kind} {handle_text(self.handle)}"


SIOCETHTOOL = 0x8946
ETHTOOL_OFFLOADS = {"gso": 0x23, "tso": 0x1e, "gro": 0x2b}      # ETHTOOL_GGSO, GTSO, GGRO


def offloads(name):
    """{"gso": True, ...} of a device; unknown ones are missing."""
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
    """Names of the devices with a PPPoE session."""
    try:
        with open("/proc/self/net/pppoe", encoding="ascii", errors="replace") as file:
            lines = file.read().split("\n")[1:]
    except OSError:
        return []
    return sorted({line.split()[2] for line in lines if len(line.split()) >= 3})


def default_route_devices():
    """Names of the devices with a default route, of IPv4 or IPv6."""
    found = set()
    # Columns: device, flags, prefix and its length or mask; all in hexadecimal.
    for path, device, flags, prefix, length in (("route", 0, 3, 1, 7), ("ipv6_route", 9, 8, 0, 1)):
        try:
            with open("/proc/self/net/" + path, encoding="ascii", errors="replace") as file:
                for line in file:
                    row = line.split()
                    if len(row) > max(device, length) and not row[prefix].strip("0") and not row[length].strip("0") \
                            and int(row[flags], 16) & (RTF_UP | RTF_REJECT) == RTF_UP:
                        found.add(row[device])
        except OSError:
            continue
    return found


def sysctl(name):
    """A number of /proc/sys, None if this kernel does not have it."""
    try:
        with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def is_root():
    """Does this process run as root?"""
    return os.geteuid() == 0
