# SPDX-License-Identifier: GPL-2.0-only
"""Raw frames: built by struct, sent and received through AF_PACKET, compared byte by byte.

Every frame carries its number in the source address, because a frame that was cut short has no other room for it. What
may happen to a frame on its way through an AQM is defined here, in judge(), from RFC 3168 and RFC 791 alone.

This is not the place for network set-up or for the qdisc's statistics; see lib.py.
"""

import errno
import fcntl
import mmap
import os
import select
import socket
import struct

from lib import ECT0, ECT1, NOT_ECT, in_netns, run

ETH_HLEN = 14

ETH_P_ALL = 0x0003
ETH_P_IP = 0x0800
ETH_P_ARP = 0x0806
ETH_P_8021Q = 0x8100
ETH_P_IPV6 = 0x86DD
ETH_P_MPLS = 0x8847
ETH_P_PPP_DISC = 0x8863
ETH_P_PPP_SES = 0x8864
ETH_P_8021AD = 0x88A8
ETH_P_LLDP = 0x88CC
IP_TYPES = {4: ETH_P_IP, 6: ETH_P_IPV6}

PPP_IP = 0x0021
PPP_IPV6 = 0x0057
PPP_LCP = 0xC021

IPPROTO_UDP = 17

SOL_PACKET = 263
PACKET_AUXDATA = 8
PACKET_TX_RING = 13
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
PACKET_OUTGOING = 4
TP_STATUS_AVAILABLE = 0
TP_STATUS_SEND_REQUEST = 1
TP_STATUS_VLAN_VALID = 1 << 4
TP_STATUS_VLAN_TPID_VALID = 1 << 6

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_MULTI_QUEUE = 0x0002, 0x1000, 0x0100

BROADCAST = b"\xff" * 6


def source(number):
    """A locally administered unicast address that holds a frame's number."""
    return b"\x02\x00" + struct.pack("!I", number)


def number_of(frame):
    """The number in a frame's source address, or None if a test did not send it."""
    return struct.unpack_from("!I", frame, 8)[0] if frame[6:8] == b"\x02\x00" else None


def ether(number, ethertype, payload, dst=BROADCAST):
    return dst + source(number) + struct.pack("!H", ethertype) + payload


def tags(tags_, ethertype):
    """What stands between the addresses and the payload: [(tpid, tci), ...], type."""
    return b"".join(struct.pack("!HH", *tag) for tag in tags_) + struct.pack("!H", ethertype)


def tagged(number, tags_, ethertype, payload, dst=BROADCAST):
    return dst + source(number) + tags(tags_, ethertype) + payload


def checksum(data):
    """The Internet checksum (RFC 1071) of data."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp(payload=b"", sport=9, dport=9):
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def ipv4(payload=None, ecn=NOT_ECT, dscp=0, *, ident=0, frag=0, proto=IPPROTO_UDP, version=4,
         ihl=None, options=b"", total=None, check=None, src="10.7.0.1", dst="10.7.0.2"):
    """An IPv4 packet.  ihl, version, total and check may lie."""
    payload = udp(b"x" * 18) if payload is None else payload
    words = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH4s4s", version << 4 | (words if ihl is None else ihl),
                       dscp << 2 | ecn, 4 * words + len(payload) if total is None else total,
                       ident, frag, 64, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))
    head += options
    check = checksum(head) if check is None else check
    return head[:10] + struct.pack("!H", check) + head[12:] + payload


def ipv6(payload=None, ecn=NOT_ECT, dscp=0, *, flow=0, proto=IPPROTO_UDP, version=6, length=None,
         src="fd07::1", dst="fd07::2"):
    payload = udp(b"x" * 18) if payload is None else payload
    return struct.pack("!IHBB16s16s", version << 28 | (dscp << 2 | ecn) << 20 | flow,
                       len(payload) if length is None else length, proto, 64,
                       socket.inet_pton(socket.AF_INET6, src),
                       socket.inet_pton(socket.AF_INET6, dst)) + payload


VIRTIO_NET_HDR_GSO_TCPV4 = 1
VIRTIO_NET_HDR_GSO_TCPV6 = 4


def tcp(payload, *, seq=0, doff=5, flags=0x10, sport=9, dport=9):
    """A TCP segment whose checksum is left to the device."""
    return struct.pack("!HHIIBBHHH", sport, dport, seq, 1, doff << 4, flags, 1000, 0, 0) + payload


def pppoe(ppp_proto, payload, *, code=0, session=0x1234, version_type=0x11):
    return struct.pack("!BBHHH", version_type, code, session, 2 + len(payload), ppp_proto) + payload


def ecn_of(frame, ip_offset):
    """The codepoint of the IP header at ip_offset."""
    if frame[ip_offset] >> 4 == 4:
        return frame[ip_offset + 1] & 3
    return frame[ip_offset + 1] >> 4 & 3


def with_ce(frame, ip_offset):
    """The frame after a router set CE: the field, and for IPv4 the header's checksum recomputed.

    A checksum that was wrong stays as wrong as it was (RFC 1624, equation 3): a router must not
    make a damaged header look whole.
    """
    out = bytearray(frame)
    if frame[ip_offset] >> 4 == 6:
        out[ip_offset + 1] |= 0x30
        return bytes(out)
    out[ip_offset + 1] |= 3
    end = ip_offset + 4 * (frame[ip_offset] & 15)
    check = ip_offset + 10
    if len(frame) >= end and checksum(frame[ip_offset:end]) == 0:
        out[check:check + 2] = b"\0\0"
        struct.pack_into("!H", out, check, checksum(bytes(out[ip_offset:end])))
        return bytes(out)
    old, = struct.unpack_from("!H", frame, check)
    before, = struct.unpack_from("!H", frame, ip_offset)
    after, = struct.unpack_from("!H", out, ip_offset)
    total = (~old & 0xFFFF) + (~before & 0xFFFF) + after
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", out, check, ~total & 0xFFFF)
    return bytes(out)


def judge(sent, received, ip_offset):
    """What happened to a frame: "same", "marked", or a description of the damage.

    ip_offset: of its outermost IP header, None if it has none that can be read; then not a bit may change.
    """
    if received == sent:
        return "same"
    if ip_offset is not None and ecn_of(sent, ip_offset) in (ECT1, ECT0) and \
            received == with_ce(sent, ip_offset):
        return "marked"
    if len(received) != len(sent):
        return f"damaged: {len(sent)} bytes became {len(received)}"
    at = [i for i, (a, b) in enumerate(zip(sent, received)) if a != b]
    return "damaged: " + ", ".join(f"byte {i} {sent[i]:02x} became {received[i]:02x}" for i in at[:8])


class Stamped:
    """Sees the numbered frames that come to a device, and when."""

    def __init__(self, netns, dev):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.sock.bind((dev, ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
        self.sock.setblocking(False)

    def read(self):
        """[(ns, number, frame)] since the last call."""
        found = []
        while True:
            try:
                frame, control, _, sender = self.sock.recvmsg(1 << 17, 128)
            except BlockingIOError:
                return found
            number = number_of(frame)
            if number is None or sender[2] == PACKET_OUTGOING:
                continue
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    sec, ns = struct.unpack("qq", data[:16])
                    found.append((sec * 10**9 + ns, number, frame))

    def close(self):
        self.sock.close()


class Sender:
    """Sends whole frames from a device, through its qdisc."""

    def __init__(self, netns, dev):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.sock.bind((dev, 0))
        # A queue's length of frames has to fit: the sender must never wait for the link.
        self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
        self.refused = 0

    def send(self, frame):
        """True if it was queued.  ENOBUFS is how a drop on arrival shows at a packet socket."""
        try:
            self.sock.send(frame)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self.refused += 1
            return False
        return True

    def close(self):
        self.sock.close()


class VnetSender:
    """Sends GSO frames that were never checked by anybody: a virtio_net_hdr says what they are
    (PACKET_VNET_HDR), as it comes from a guest.
    """

    def __init__(self, netns, dev):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.sock.bind((dev, 0))
        self.sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)

    def send(self, frame, gso_type, gso_size, header, csum_start, csum_offset=16):
        """header: bytes of all headers; csum_start: of the transport header."""
        head = struct.pack("@BBHHHH", 1, gso_type, header, gso_size, csum_start, csum_offset)
        try:
            self.sock.send(head + frame)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            return False
        return True

    def close(self):
        self.sock.close()


class RingSender:
    """Sends frames whose Ethernet header alone is linear: the rest stays in pages that are
    shared with this process (PACKET_TX_RING).  Slots are 16 bytes short of a page, so that the
    pages' ends cut the frames at various places, IP headers among them.
    """

    SLOT = 4096 - 16
    BLOCK = 1 << 16
    BLOCKS = 8
    PER_BLOCK = BLOCK // SLOT
    SLOTS = PER_BLOCK * BLOCKS
    DATA = 32       # TPACKET_ALIGN(sizeof(struct tpacket_hdr)): where the kernel looks for data
    ROOM = SLOT - DATA

    def __init__(self, netns, dev):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.sock.bind((dev, 0))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
        self.sock.setsockopt(SOL_PACKET, PACKET_TX_RING,
                             struct.pack("@IIII", self.BLOCK, self.BLOCKS, self.SLOT, self.SLOTS))
        self.ring = mmap.mmap(self.sock.fileno(), self.BLOCK * self.BLOCKS)
        self.slot = 0
        self.refused = 0

    def base(self, slot):
        return slot // self.PER_BLOCK * self.BLOCK + slot % self.PER_BLOCK * self.SLOT

    def ip_header_is_split(self, slot, ip_offset=ETH_HLEN):
        """Does a page end within the first 20 bytes at ip_offset of a frame in this slot?"""
        start = (self.base(slot) + self.DATA + ip_offset) % 4096
        return start + 20 > 4096

    def send(self, frame):
        """Queue a frame; True if the qdisc took it.  The slot is self.last."""
        slot = self.last = self.slot
        self.slot = (slot + 1) % self.SLOTS
        base = self.base(slot)
        status, = struct.unpack_from("@L", self.ring, base)
        if status != TP_STATUS_AVAILABLE:
            raise OSError(errno.EBUSY, "the ring is full")
        self.ring[base + self.DATA:base + self.DATA + len(frame)] = frame
        struct.pack_into("@LII", self.ring, base, TP_STATUS_SEND_REQUEST, len(frame), len(frame))
        try:
            self.sock.send(b"", socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self.refused += 1
            return False
        return True

    def content(self, slot, length):
        """What the pages of a slot hold now."""
        base = self.base(slot) + self.DATA
        return bytes(self.ring[base:base + length])

    def close(self):
        self.ring.close()
        self.sock.close()


class Frames:
    """A source of frames with read(), which gives one frame or None, and fds, which it reads."""

    def drain(self, idle=0.5):
        """All frames of this sender until none came for so many seconds: {number: [frame, ...]}."""
        got = {}
        while select.select(self.fds, [], [], idle)[0]:
            while (frame := self.read()) is not None:
                number = number_of(frame)
                if number is not None:
                    got.setdefault(number, []).append(frame)
        return got

    def forget(self):
        """Throw away what has come so far."""
        while self.read() is not None:
            pass


class Receiver(Frames):
    """Receives whole frames at a device as they were on the wire, VLAN tags included."""

    def __init__(self, netns, dev):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.sock.bind((dev, ETH_P_ALL))
        self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
        self.sock.setblocking(False)
        self.fds = [self.sock]

    def read(self):
        """One frame, or None if there is none now."""
        try:
            frame, control, _, _ = self.sock.recvmsg(1 << 17, socket.CMSG_SPACE(20))
        except BlockingIOError:
            return None
        for level, kind, data in control:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack("@IIIHHHH", data[:20])
                if status & TP_STATUS_VLAN_VALID:
                    if not status & TP_STATUS_VLAN_TPID_VALID:
                        tpid = ETH_P_8021Q
                    frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
        return frame

    def dropped(self):
        """Frames that this socket lost since last asked; they would look like losses on the way."""
        return struct.unpack("@II", self.sock.getsockopt(SOL_PACKET, 6, 8))[1]

    def close(self):
        self.sock.close()


class Tap(Frames):
    """A TAP device: read() is what left through its qdisc, to the last byte and with every tag
    in place, however damaged; send() makes it receive a frame.
    """

    def __init__(self, netns, name, mtu=1500, queue=10000, multi=0):
        flags = IFF_TAP | IFF_NO_PI | (IFF_MULTI_QUEUE if multi else 0)
        self.fds = []
        self.name = name
        if not os.path.exists("/dev/net/tun"):
            run("modprobe tun")
        with in_netns(netns):
            for _ in range(multi or 1):
                fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
                self.fds.append(fd)
        self.fd = self.fds[0]
        run(f"ip link set {name} txqueuelen {queue} mtu {mtu} arp off up", netns)

    def send(self, frame):
        os.write(self.fd, frame)

    def read(self, size=1 << 17):
        """One frame, or None if there is none now."""
        for fd in self.fds:
            try:
                return os.read(fd, size)
            except BlockingIOError:
                pass
        return None

    def close(self):
        for fd in self.fds:
            os.close(fd)
