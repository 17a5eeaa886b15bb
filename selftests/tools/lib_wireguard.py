# SPDX-License-Identifier: GPL-2.0-only
"""A WireGuard tunnel between two namespaces of lib.Net, by netlink."""

import socket
import struct

import lib
from lib import attr, run

NESTED = lib.NLA_F_NESTED


def wireguard(netns, name, **values):
    """Set up a WireGuard device, or return its public key. There may be no wg(8)."""
    private, port, peer = (values.get(key) for key in ("private", "port", "peer"))
    body = struct.pack("BBH", 1 if values else 0, 1, 0) + attr(2, name.encode() + b"\0")
    if values:
        body += attr(3, private) + attr(6, struct.pack("H", port))
    if peer:
        key, address = peer
        endpoint = struct.pack("=HH", socket.AF_INET, socket.htons(port)) + socket.inet_aton(address) + bytes(8)
        allowed = attr(1, struct.pack("H", socket.AF_INET)) + attr(2, bytes(4)) + attr(3, b"\0")
        one = attr(1, key) + attr(4, endpoint) + attr(9 | NESTED, attr(1 | NESTED, allowed))
        body += attr(8 | NESTED, attr(1 | NESTED, one))
    with lib.Socket(netns, lib.NETLINK_GENERIC) as sock:
        family, _ = lib.genl_family(sock, "wireguard")
        if values:
            if error := sock.request(family, 0, body).error:
                raise OSError(error, "wireguard")
            return key if peer else None
        return next(filter(None, (lib.attrs(data[4:]).get(4) for data in sock.dump(family, body))), None)


def tunnel(machine):
    """WireGuard from the router to the receiver, 10.9.0.1 behind it; the sender's packets for that go through it."""
    ends = ((machine.rtr, "10.2.0.1", 2), (machine.rcv, "10.2.0.2", 1))
    for netns, _, host in ends:
        run("ip link add wg0 type wireguard", netns)
        run(f"ip addr add 10.9.0.{host}/24 dev wg0", netns)
        wireguard(netns, "wg0", private=bytes([host] * 31 + [64]), port=51820)
        run("ip link set wg0 mtu 1440 up", netns)
    keys = [wireguard(netns, "wg0") for netns, _, _ in ends]
    for (netns, far, host), key in zip(ends, reversed(keys)):
        wireguard(netns, "wg0", private=bytes([host] * 31 + [64]), port=51820, peer=(key, far))
