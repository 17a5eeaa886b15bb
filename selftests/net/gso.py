# SPDX-License-Identifier: GPL-2.0-only
"""GSO packets of every type with headers that are right or lie, and a rig that shows each of them with and
without an AQM.

    with GsoRig("500kbit", **MARK_ALL_L) as rig:
        send, reference = rig.both_ways()
        for k in GSO:
            send(*k.build(100, ECT1, k.versions[0]))
        rig.out.drain(), reference()        the segments as they left, and as they are where no AQM is

This is not the place for tests.
"""

from collections import namedtuple

import frames
import hostile
from frames import (ETH_HLEN, ETH_P_8021AD, ETH_P_8021Q, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, ETH_P_PPP_SES, ether, ipv4,
                    ipv6, pppoe, tagged, tcp, udp)
from hostile import vnet
from lib import expect_equal
from packets import ELSEWHERE, Rig

# GSO: what a virtio header says of a frame, from a packet socket and over a bridge from a TAP device

# build(number, ecn, version) -> (virtio header, frame)
Gso = namedtuple("Gso", "name build versions")
GSO = []
TCP4, UFO, TCP6, UDP_L4, ECN_BIT = 1, 3, 4, 5, 0x80


def body(length):
    return bytes(i * 7 + 1 & 0xFF for i in range(length))


def packet(version, payload, ecn, proto, **more):
    return hostile.with_partial((ipv4 if version == 4 else ipv6)(payload, ecn, proto=proto, **more))


def gso(name, proto, payload, size, *, segment=udp, kind=None, versions=(4, 6), ip=None, wrap=None, broken=None,
        **lies):
    """A kind of GSO packet.  payload: bytes behind the transport header that segment() makes; size: gso_size;
    kind: gso_type; ip: more for ipv4(); wrap: (number, type, packet) -> (frame, where the packet is); broken:
    changes the packet; lies: fields of the virtio header.  What is callable gets the version of IP, a lie the
    honest fields and the frame.
    """
    def build(number, ecn, version):
        whole = segment(body(payload))
        inner = packet(version, whole, ecn, proto, **((ip or {}) if version == 4 else {}))
        ethertype = ETH_P_IP if version == 4 else ETH_P_IPV6
        frame, l3 = (wrap or plain)(number, ethertype, broken(inner) if broken else inner)
        l4 = l3 + hostile.l4_at(inner)[1]
        fields = {"gso_type": UDP_L4 if proto == 17 else tcp_type(version), "gso_size": size, "csum_start": l4,
                  "header": l4 + (8 if proto == 17 else 4 * (whole[12] >> 4)),
                  "csum_offset": hostile.CHECK_AT[proto], "flags": 1}
        if kind is not None:
            fields["gso_type"] = kind(version) if callable(kind) else kind
        fields |= {key: value(fields, frame) if callable(value) else value for key, value in lies.items()}
        return vnet(**fields), frame
    GSO.append(Gso(name, build, versions))


def gso_tcp(name, payload=5000, size=500, tcp_flags=0x10, doff=5, **more):
    gso(name, 6, payload, size, **more, segment=lambda data: tcp(
        b"\x01" * (4 * (doff - 5)) + data, seq=1000, doff=doff, flags=tcp_flags))


def tcp_type(version):
    return TCP4 if version == 4 else TCP6


def set_byte(offset, value):
    return lambda inner: inner[:offset] + bytes([value]) + inner[offset + 1:]


def plain(number, ethertype, inner):
    return ether(number, ethertype, inner, ELSEWHERE), ETH_HLEN


def behind(tags):
    return lambda number, ethertype, inner: (tagged(number, tags, ethertype, inner, ELSEWHERE),
                                             ETH_HLEN + 4 * len(tags))


def in_pppoe(number, ethertype, inner):
    ppp = frames.PPP_IP if ethertype == ETH_P_IP else frames.PPP_IPV6
    return ether(number, ETH_P_PPP_SES, pppoe(ppp, inner), ELSEWHERE), ETH_HLEN + 8


def as_arp(number, _ethertype, inner):
    return ether(number, ETH_P_ARP, inner, ELSEWHERE), ETH_HLEN


gso_tcp("tcp")
gso_tcp("tcp, last segment short", 4711)
gso_tcp("tcp, two segments", 501)
gso_tcp("tcp, gso_size 1", 300, 1)
gso_tcp("tcp, 64000 bytes", 64000, 1400)
gso_tcp("tcp, cwr with its flag", tcp_flags=0x90, kind=lambda v: tcp_type(v) | ECN_BIT)
gso_tcp("tcp, cwr and ece with its flag", tcp_flags=0xD8, kind=lambda v: tcp_type(v) | ECN_BIT)
gso_tcp("tcp, cwr without its flag", tcp_flags=0x90)
gso_tcp("tcp, the cwr flag without cwr", kind=lambda v: tcp_type(v) | ECN_BIT)
gso_tcp("tcp, fin and psh", tcp_flags=0x19)
gso_tcp("tcp, 40 bytes of options", doff=15)
gso_tcp("tcp, ip options", ip={"options": b"\x01" * 40}, versions=(4,))
gso_tcp("tcp, behind a tag", wrap=behind([(ETH_P_8021Q, 17)]))
gso_tcp("tcp, qinq", wrap=behind([(ETH_P_8021AD, 100), (ETH_P_8021Q, 17)]))
gso_tcp("tcp, pppoe", wrap=in_pppoe)
gso_tcp("tcp, type says arp", wrap=as_arp)
gso_tcp("tcp, type of the other family", kind=lambda v: TCP6 if v == 4 else TCP4)
gso_tcp("tcp, said to be udp", kind=UDP_L4)
gso_tcp("tcp, said to be ufo", kind=UFO)
gso_tcp("tcp, unknown type", kind=7)
gso_tcp("tcp, gso_size 0", size=0)
gso_tcp("tcp, gso_size that of the payload", 500)
gso_tcp("tcp, gso_size one less than the payload", 501, 500)
gso_tcp("tcp, gso_size beyond the frame", size=20000)
gso_tcp("tcp, gso_size 65535", size=65535)
gso_tcp("tcp, hdr_len 0", header=0)
gso_tcp("tcp, hdr_len 14", header=14)
gso_tcp("tcp, hdr_len the frame's", header=lambda f, frame: len(frame))
gso_tcp("tcp, hdr_len beyond the frame", header=lambda f, frame: len(frame) + 100)
gso_tcp("tcp, hdr_len 65535", header=65535)
gso_tcp("tcp, csum_start beyond the frame", csum_start=lambda f, frame: len(frame) + 2)
gso_tcp("tcp, csum_start 65535", csum_start=65535)
gso_tcp("tcp, csum_start 0", csum_start=0)
gso_tcp("tcp, csum_start at the ip header", csum_start=ETH_HLEN)
gso_tcp("tcp, csum_start in the payload", csum_start=lambda f, frame: f["csum_start"] + 100)
gso_tcp("tcp, csum_offset 65535", csum_offset=65535)
gso_tcp("tcp, csum_offset of udp", csum_offset=6)
gso_tcp("tcp, checksum not asked for", flags=0)
gso_tcp("tcp, doff 4", broken=lambda p: set_byte(hostile.l4_at(p)[1] + 12, 0x40)(p))
gso_tcp("tcp, doff 15 beyond the end", 10, 5, broken=lambda p: set_byte(hostile.l4_at(p)[1] + 12, 0xF0)(p))
gso_tcp("tcp, no ip version", broken=set_byte(0, 0x05))
gso_tcp("tcp, ip total length 0",
        broken=lambda p: p[:2] + b"\0\0" + p[4:] if p[0] >> 4 == 4 else p[:4] + b"\0\0" + p[6:])
gso_tcp("tcp, protocol field says udp", broken=lambda p: set_byte(9 if p[0] >> 4 == 4 else 6, 17)(p))
gso_tcp("tcp, protocol field says ipip", broken=lambda p: set_byte(9 if p[0] >> 4 == 4 else 6, 4)(p))
gso_tcp("tcp, is a fragment", ip={"frag": 0x2000}, versions=(4,))
gso_tcp("tcp, ihl 15 beyond the headers", broken=set_byte(0, 0x4F), versions=(4,))
gso_tcp("tcp, ihl 4", broken=set_byte(0, 0x44), versions=(4,))
gso("udp_l4", 17, 5000, 500)
gso("udp_l4, last segment short", 17, 4711, 500)
gso("udp_l4, gso_size 1", 17, 60, 1)
gso("udp_l4, behind a tag", 17, 5000, 500, wrap=behind([(ETH_P_8021Q, 17)]))
gso("udp_l4, gso_size beyond the frame", 17, 500, 20000)
gso("udp_l4, said to be tcp", 17, 5000, 500, kind=tcp_type)
gso("udp_l4, hdr_len 0", 17, 5000, 500, header=0)
gso("udp_l4, csum_start beyond the frame", 17, 5000, 500, csum_start=9999)
gso("ufo", 17, 5000, 1480, kind=UFO)
gso("ufo, gso_size 9", 17, 500, 9, kind=UFO)
gso("ufo, last fragment short", 17, 3001, 1400, kind=UFO)

# Not GSO, but a checksum that the device is to fill in.
for text, fields in (("checksum left to the device", {}), ("csum_start beyond the frame", {"csum_start": 2000}),
                     ("csum_offset beyond the frame", {"csum_offset": 2000}),
                     ("csum_start at the last byte", {"csum_start": ETH_HLEN + 519})):
    gso_tcp(f"no gso, {text}", 500, 0, kind=0, **fields)


class GsoRig(Rig):
    """Rig with a device `ref` that gets the same without an AQM."""

    def tap(self, stack, name):
        if name != "in":
            return super().tap(stack, name)
        tun = hostile.Tun(self.netns, name, frames.IFF_TAP | hostile.IFF_VNET_HDR, args="arp off")
        stack.callback(tun.close)
        return tun

    def both_ways(self):
        """Returns send(virtio header, frame) -> was it accepted, and what drains the reference."""
        if self.bridge:
            return lambda head, frame: self.inp.send(frame, head), lambda: self.side.drain(10)
        ref = self.tap(self.stack, "ref")
        sockets = [hostile.VnetSocket(self.netns, name) for name in ("ref", "out")]
        for sock in sockets:
            self.stack.callback(sock.close)

        def send(head, frame):
            taken = [sock.send(frame, head) for sock in sockets]
            expect_equal(taken[1], taken[0], "accepted for the device with dualpi2, for the other")
            return taken[0]
        return send, lambda: ref.drain()
