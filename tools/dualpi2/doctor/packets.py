# SPDX-License-Identifier: GPL-2.0-only
"""Packets of the host's devices, counted by ECN codepoint and flow from a sample of headers, for the doctor.

A packet socket with a filter in the kernel receives each SYN and a sample of all other packets. Only headers are read,
nothing is sent, and only the counters are kept. The conclusions are in rules.
"""

import contextlib
import ctypes
import select
import socket
import struct
import time

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6, ETH_P_PPPOE = 0x0003, 0x0800, 0x86dd, 0x8864
ETH_P_VLANS = (0x8100, 0x88a8)
PPP_PROTOCOLS = {0x0021: ETH_P_IP, 0x0057: ETH_P_IPV6}
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_AUXDATA, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 263, 8, 26, 33
TCP, UDP = 6, 17
SNAP = 160                  # bytes of a packet: IPv6 with some options, and TCP
FLOWS_AT_MOST = 4096
SAMPLES_A_SECOND = 3000     # packets/s that Python parses with little CPU time
BUFFER = 4 << 20

LOAD, LOAD_HALF, LOAD_BYTE, HEADER_LENGTH, LOAD_BYTE_X, AND, RETURN = 0x20, 0x28, 0x30, 0xb1, 0x50, 0x54, 0x06
EQUAL, BITS = 0x15, 0x45
SPECIAL = 0xfffff000        # SKF_AD_OFF: metadata of the packet; protocol at 0, a random number at 56


def program(one_in):
    """The filter: every SYN, and one of `one_in` (a power of two) other packets. Offsets are from the IP header."""
    code = [
        (None, LOAD_HALF, SPECIAL + 0, None, None),
        (None, EQUAL, ETH_P_IP, "v4", "not v4"),
        ("v4", LOAD_BYTE, 9, None, None),
        (None, EQUAL, TCP, "tcp", "sample"),
        ("tcp", LOAD_HALF, 6, None, None),
        (None, BITS, 0x1fff, "sample", "first"),        # a later fragment has no TCP header
        ("first", HEADER_LENGTH, 0, None, None),
        (None, LOAD_BYTE_X, 13, None, None),
        (None, BITS, 0x02, "take", "sample"),
        ("not v4", EQUAL, ETH_P_IPV6, "v6", "sample"),
        ("v6", LOAD_BYTE, 6, None, None),
        (None, EQUAL, TCP, "tcp6", "sample"),
        ("tcp6", LOAD_BYTE, 53, None, None),
        (None, BITS, 0x02, "take", "sample"),
        ("sample", LOAD, SPECIAL + 56, None, None),
        (None, AND, one_in - 1, None, None),
        (None, EQUAL, 0, "take", "leave"),
        ("leave", RETURN, 0, None, None),
        ("take", RETURN, SNAP, None, None),
    ]
    at = {label: number for number, (label, *_) in enumerate(code) if label}
    return [(op, at[yes] - number - 1 if yes else 0, at[no] - number - 1 if no else 0, value)
            for number, (_, op, value, yes, no) in enumerate(code)]


def one_in(packets_a_second):
    """The sampling interval in packets: a power of two."""
    found = 1
    while packets_a_second / found > SAMPLES_A_SECOND and found < 1 << 16:
        found *= 2
    return found


class Packet:
    """The header fields that the doctor needs."""

    __slots__ = ("src", "dst", "proto", "sport", "dport", "ecn", "payload", "flags")

    def key(self):
        return self.src, self.sport, self.dst, self.dport, self.proto


def parse(data, protocol):
    """(Packet, protocol) of data that begins at the network header; None for an unknown protocol."""
    while True:
        if protocol in ETH_P_VLANS and len(data) >= 4:
            protocol, data = struct.unpack_from("!H", data, 2)[0], data[4:]
        elif protocol == ETH_P_PPPOE and len(data) >= 8:
            inner = struct.unpack_from("!H", data, 6)[0]
            if inner not in PPP_PROTOCOLS:
                return None, protocol
            protocol, data = PPP_PROTOCOLS[inner], data[8:]
        else:
            break
    packet = Packet()
    if protocol == ETH_P_IP and len(data) >= 20 and data[0] >> 4 == 4:
        length = 4 * (data[0] & 15)
        packet.ecn = data[1] & 3
        packet.proto = data[9]
        packet.src, packet.dst = (socket.inet_ntop(socket.AF_INET, data[at:at + 4]) for at in (12, 16))
        rest = struct.unpack_from("!H", data, 2)[0] - length
        if struct.unpack_from("!H", data, 6)[0] & 0x1fff:
            data = b""
    elif protocol == ETH_P_IPV6 and len(data) >= 40 and data[0] >> 4 == 6:
        length = 40
        packet.ecn = data[1] >> 4 & 3
        packet.proto = data[6]
        packet.src, packet.dst = (socket.inet_ntop(socket.AF_INET6, data[at:at + 16]) for at in (8, 24))
        rest = struct.unpack_from("!H", data, 4)[0]
    else:
        return None, protocol
    data = data[length:]
    packet.sport = packet.dport = packet.flags = 0
    packet.payload = rest
    if packet.proto in (TCP, UDP) and len(data) >= 4:
        packet.sport, packet.dport = struct.unpack_from("!HH", data)
    if packet.proto == TCP and len(data) >= 14:
        packet.flags = struct.unpack_from("!H", data, 12)[0] & 0x1ff
        packet.payload = rest - 4 * (data[12] >> 4)
    return packet, protocol


SYN, ACK, ECE, CWR, AE = 0x002, 0x010, 0x040, 0x080, 0x100


def offer(flags):
    """The ECN mode that a SYN requests: "accecn", "ecn" (RFC 3168) or "none"."""
    return {AE | CWR | ECE: "accecn", CWR | ECE: "ecn"}.get(flags & (AE | CWR | ECE), "none")


def answer(flags):
    """The ECN mode that a SYN-ACK accepts, by the same names; RFC 9768, table 2."""
    found = flags & (AE | CWR | ECE)
    if found in (CWR, CWR | ECE, AE, AE | CWR):
        return "accecn"
    return "ecn" if found in (ECE, AE | ECE) else "none"


class Tally:
    """Counters of the packets seen."""

    def __init__(self, one=1):
        self.one_in = one
        self.seen = 0
        self.devices = {}
        self.flows = {}
        self.syns = {}

    def add(self, device, mtu, outgoing, protocol, length, data):
        """Count a packet; `device` is a name, `data` begins at the network header."""
        self.seen += 1
        side = self.devices.setdefault(device, {}).setdefault(
            "out" if outgoing else "in", {"ecn": [0, 0, 0, 0], "large": 0, "other": {}})
        packet, protocol = parse(data, protocol)
        if packet is None:
            name = f"0x{protocol:04x}"
            if len(side["other"]) < 64 or name in side["other"]:
                side["other"][name] = side["other"].get(name, 0) + 1
            return
        side["ecn"][packet.ecn] += 1
        # A GSO packet has the payload of several packets.
        side["large"] += length > mtu + 100
        if packet.proto == TCP and packet.flags & SYN:
            self._syn(packet, outgoing, device)
            return
        key = packet.key()
        if key not in self.flows and len(self.flows) >= FLOWS_AT_MOST:
            return
        place = self.flows.setdefault(key, {}).setdefault(
            (device, "out" if outgoing else "in"), {"ecn": [0, 0, 0, 0], "data": [0, 0, 0, 0], "bytes": 0})
        place["ecn"][packet.ecn] += 1
        place["bytes"] += length
        if packet.payload > 0:
            place["data"][packet.ecn] += 1

    def _syn(self, packet, outgoing, device):
        forward = not packet.flags & ACK
        key = packet.key() if forward else (packet.dst, packet.dport, packet.src, packet.sport, packet.proto)
        if key not in self.syns and len(self.syns) >= FLOWS_AT_MOST:
            return
        found = self.syns.setdefault(key, {"offer": None, "answer": None, "sent_here": False, "devices": []})
        if device not in found["devices"]:
            found["devices"].append(device)
        if forward:
            # A repeated SYN requests no ECN; the first one counts.
            found["offer"] = found["offer"] or offer(packet.flags)
            found["sent_here"] |= outgoing
        else:
            found["answer"] = answer(packet.flags)

    def as_dict(self):
        """All counters, for JSON."""
        return {
            "one_in": self.one_in, "seen": self.seen, "devices": self.devices,
            "flows": [dict(_names(key), at={f"{device} {side}": counts for (device, side), counts in places.items()})
                      for key, places in self.flows.items()],
            "syns": [dict(_names(key), **found) for key, found in self.syns.items()],
        }


def _names(key):
    return dict(zip(("src", "sport", "dst", "dport", "proto"), key))


class Capture:
    """A packet socket. `links` are the devices, {ifindex: dict} of net."""

    def __init__(self, links, packets_a_second):
        self.links = {link["name"]: link for link in links.values()}
        self.tally = Tally(one_in(packets_a_second))
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC,
                                  socket.htons(ETH_P_ALL))
        code = b"".join(struct.pack("=HBBI", *row) for row in program(self.tally.one_in))
        held = ctypes.create_string_buffer(code)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                             struct.pack("@HP", len(code) // 8, ctypes.addressof(held)))
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        # Packets that arrived before the filter was attached.
        with contextlib.suppress(BlockingIOError):
            for _ in range(BUFFER // SNAP):
                self.sock.recv(1, socket.MSG_DONTWAIT)

    def close(self):
        self.sock.close()

    def until(self, deadline):
        """Count packets until this time."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return
            self._take()

    def _take(self):
        try:
            data, control, _, address = self.sock.recvmsg(SNAP, 64, socket.MSG_DONTWAIT)
        except OSError:
            return
        link = self.links.get(address[0])
        if link is None or link["loopback"]:
            return
        length, protocol = len(data), address[1]
        for level, kind, payload in control:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and len(payload) >= 8:
                length = struct.unpack_from("=I", payload, 4)[0]
        self.tally.add(link["name"], link["mtu"], address[2] == PACKET_OUTGOING, protocol, length, data)
