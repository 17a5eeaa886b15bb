# SPDX-License-Identifier: GPL-2.0-only
"""What the tests with hostile packets share: a parser that says where the outermost IP header of a frame
is, virtio headers that lie, devices without an Ethernet header, and a rig in which every packet is seen
twice: as it was before dualpi2 and as it left.

    with Mirror(MARK_ALL_L) as rig:
        rig.on("out")
        rig.udp(4, ECT1).send(numbered(1))
        after, before = rig.collect()
        pair_up(before, after, outermost_ip)    [(number, codepoint, "same" | "marked" | "lost")], damage

The reference is a copy that a filter of the parent took (mirred), or the same frame sent to a device without an AQM:
what the kernel does to a packet on its own account happens to both. This is not the place for tests.
"""

import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import struct
import time
from collections import namedtuple

import frames
import lib
from frames import ETH_P_8021AD, ETH_P_8021Q, ETH_P_IP, ETH_P_IPV6, ETH_P_PPP_SES
from lib import ECT1, expect, expect_equal
from packets import ELSEWHERE, MTU

TAGS_MAX = 8
# Nothing may be lost to the limits unless a test wants it.
ROOMY = {"limit": 1000000, "memory_limit": 1 << 31}

# Tunnels. args: of ip link add; outer: version of the outer header; head: bytes in front of the inner packet;
# inner: versions that it carries; ether: it carries Ethernet frames; mod: module
Tunnel = namedtuple("Tunnel", "name args outer head inner ether mod")
V4 = "local 10.8.0.1 remote 10.8.0.2 ttl 64"
V6 = "local fd08::1 remote fd08::2"
TUNNELS = [
    Tunnel("ipip", f"t0 type ipip {V4}", 4, 34, (4,), False, "ipip"),
    Tunnel("sit", f"t0 type sit mode any {V4}", 4, 34, (4, 6), False, "sit"),
    Tunnel("gre", f"t0 type gre {V4}", 4, 38, (4, 6), False, "ip_gre"),
    Tunnel("gretap", f"t0 type gretap {V4}", 4, 38, (4, 6), True, "ip_gre"),
    Tunnel("ip6ip6", f"t0 type ip6tnl mode any {V6} encaplimit none", 6, 54, (4, 6), False, "ip6_tunnel"),
    Tunnel("ip6gre", f"t0 type ip6gre {V6} encaplimit none tclass inherit", 6, 58, (4, 6), False, "ip6_gre"),
    Tunnel("ip6gretap", f"t0 type ip6gretap {V6} encaplimit none tclass inherit", 6, 58, (4, 6), True, "ip6_gre"),
    Tunnel("vxlan", f"t0 type vxlan id 7 {V4} dstport 4789 dev out", 4, 50, (4, 6), True, "vxlan"),
    Tunnel("vxlan over ipv6", f"t0 type vxlan id 7 {V6} dstport 4789 dev out", 6, 70, (4, 6), True, "vxlan"),
]


# The independent parser

def outermost_ip(frame, beside=0):
    """Where the outermost IP header of an Ethernet frame is, or None: RFC 791 (version 4, at least 20
    bytes, header length at least 5 words), RFC 8200 (version 6, 40 bytes), IEEE 802.1Q tags (at most 8
    that are in the frame, and `beside` that are not, when the qdisc sees it), PPPoE sessions (RFC 2516).
    """
    at, tags = 12, 0
    while True:
        if len(frame) < at + 2:
            return None
        kind, = struct.unpack_from("!H", frame, at)
        if kind not in (ETH_P_8021Q, ETH_P_8021AD):
            break
        at += 4
        tags += 1
        if tags > TAGS_MAX + beside:
            return None
    at += 2
    if kind == ETH_P_PPP_SES:
        if len(frame) < at + 8 or frame[at] != 0x11 or frame[at + 1]:
            return None
        kind = {0x0021: ETH_P_IP, 0x0057: ETH_P_IPV6}.get(struct.unpack_from("!H", frame, at + 6)[0])
        at += 8
    if kind == ETH_P_IP and len(frame) >= at + 20 and frame[at] >> 4 == 4 and frame[at] & 15 >= 5:
        return at
    if kind == ETH_P_IPV6 and len(frame) >= at + 40 and frame[at] >> 4 == 6:
        return at
    return None


def l3_ip(packet):
    """The same for a device without link-layer header."""
    if len(packet) >= 20 and packet[0] >> 4 == 4 and packet[0] & 15 >= 5:
        return 0
    return 0 if len(packet) >= 40 and packet[0] >> 4 == 6 else None


# Layer 4

def pseudo(src, dst, proto, length):
    """The sum over a pseudo header, which a sender leaves in the checksum field for the device."""
    return ~frames.checksum(src + dst + struct.pack("!II", length, proto)) & 0xFFFF


def addresses(packet):
    return (packet[12:16], packet[16:20]) if packet[0] >> 4 == 4 else (packet[8:24], packet[24:40])


def l4_at(packet):
    """(protocol, offset) of what follows the IP header and IPv6 extension headers."""
    if packet[0] >> 4 == 4:
        return packet[9], 4 * (packet[0] & 15)
    proto, at = packet[6], 40
    while proto in (0, 43, 60):
        proto, at = packet[at], at + 8 * (packet[at + 1] + 1)
    return proto, at


CHECK_AT = {6: 16, 17: 6, 132: 8}


def with_partial(packet):
    """An IP packet whose transport checksum holds the pseudo header's sum."""
    proto, at = l4_at(packet)
    total = pseudo(*addresses(packet), proto, len(packet) - at)
    out = bytearray(packet)
    struct.pack_into("!H", out, at + CHECK_AT[proto], total)
    return bytes(out)


def with_checksum(packet):
    """An IP packet with the transport checksum that is right."""
    proto, at = l4_at(packet)
    out = bytearray(packet)
    struct.pack_into("!H", out, at + CHECK_AT[proto], 0)
    total = frames.checksum(struct.pack("!HH", pseudo(*addresses(packet), proto, len(packet) - at), 0)
                            + bytes(out[at:]))
    struct.pack_into("!H", out, at + CHECK_AT[proto], total or 0xFFFF)
    return bytes(out)


def checksums_are_right(packet):
    """Of the IPv4 header and of TCP or UDP in it."""
    if packet[0] >> 4 == 4 and frames.checksum(packet[:4 * (packet[0] & 15)]):
        return False
    proto, at = l4_at(packet)
    if proto not in (6, 17):
        return True
    return frames.checksum(struct.pack("!HH", pseudo(*addresses(packet), proto, len(packet) - at), 0)
                           + packet[at:]) == 0


# Devices

TUNSETOFFLOAD = 0x400454D0
IFF_TUN, IFF_NAPI, IFF_VNET_HDR = 0x0001, 0x0010, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN = 1, 2, 4, 8
VNET_LEN = 10
NO_VNET = bytes(VNET_LEN)


class Tun(frames.Tap):
    """A TUN or TAP device with the flags that are wanted."""

    def __init__(self, netns, name, flags, mtu=MTU, offload=0, args=""):
        self.name, self.flags = name, flags
        if not os.path.exists("/dev/net/tun"):
            lib.run("modprobe tun")
        with lib.in_netns(netns):
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            self.fds = [self.fd]
            fcntl.ioctl(self.fd, frames.TUNSETIFF, struct.pack("16sH22x", name.encode(), flags | frames.IFF_NO_PI))
            if offload:
                fcntl.ioctl(self.fd, TUNSETOFFLOAD, offload)
        lib.run(f"ip link set {name} txqueuelen 10000 mtu {mtu} {args} up", netns)

    def send(self, frame, head=NO_VNET):
        """False if the device rejected it."""
        if self.flags & IFF_VNET_HDR:
            frame = head + frame
        try:
            os.write(self.fd, frame)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return True

    def all(self, idle=0.5):
        """Everything that comes, in order."""
        got = []
        while select.select(self.fds, [], [], idle)[0]:
            while (frame := self.read()) is not None:
                got.append(frame[VNET_LEN:] if self.flags & IFF_VNET_HDR else frame)
        return got

    def drain(self, idle=0.5):
        got = {}
        for frame in self.all(idle):
            number = frames.number_of(frame)
            if number is not None:
                got.setdefault(number, []).append(frame)
        return got


def vnet(gso_type=0, gso_size=0, header=0, csum_start=0, csum_offset=0, flags=1):
    """A virtio_net_hdr, which may lie."""
    return struct.pack("@BBHHHH", flags, gso_type, header, gso_size, csum_start, csum_offset)


class VnetSocket:
    """A packet socket that sends what a virtio header describes."""

    def __init__(self, netns, dev):
        with lib.in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.sock.bind((dev, 0))
        self.sock.setsockopt(frames.SOL_PACKET, frames.PACKET_VNET_HDR, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, frames.SO_SNDBUFFORCE, 1 << 30)

    def send(self, frame, head=NO_VNET):
        """False if the kernel rejected the virtio header; True if the qdisc dropped the packet."""
        try:
            self.sock.send(head + frame)
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return True
            if error.errno not in (errno.EINVAL, errno.EMSGSIZE, errno.ENETDOWN):
                raise
            return False
        return True

    def close(self):
        self.sock.close()


class L3Socket:
    """Sends whole packets from a device without link-layer header, through its qdisc."""

    def __init__(self, netns, dev):
        with lib.in_netns(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.dev = dev
        self.sock.setsockopt(socket.SOL_SOCKET, frames.SO_SNDBUFFORCE, 1 << 30)

    def send(self, packet, ethertype):
        with contextlib.suppress(OSError):      # told of a drop
            self.sock.sendto(packet, (self.dev, ethertype))

    def close(self):
        self.sock.close()


# The rig with a mirror

MARK = b"kind"


def numbered(number, size=32):
    """A payload by which a packet is found again, however it was wrapped."""
    return (MARK + struct.pack("!I", number)).ljust(size, b"\xa5")


def number_in(frame):
    at = frame.find(MARK)
    return struct.unpack_from("!I", frame, at + 4)[0] if at >= 0 and len(frame) >= at + 8 else None


UNDER = """\
link set dev lo up
addr add 10.8.0.1/24 dev out
addr add fd08::1/64 dev out nodad
neigh add 10.8.0.2 lladdr 02:00:00:00:08:02 nud permanent dev out
neigh add fd08::2 lladdr 02:00:00:00:08:02 nud permanent dev out
"""


class Mirror:
    """A namespace with the TAP device `out`, 10.8.0.1 and fd08::1, and a device `ref`.  htb and dualpi2 are
    on `out`, or on another device (see on()), and what comes to htb is mirrored to `ref`.
    """

    serial = iter(range(1000))

    def __init__(self, knobs, rate="100kbit", mtu=1500):
        self.netns = f"dph{os.getpid()}-{next(self.serial)}"
        self.knobs, self.rate, self.mtu = knobs, rate, mtu
        self.dev = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.run(["ip", "netns", "add", self.netns])
            stack.callback(lib.run, ["ip", "netns", "del", self.netns], check=False)
            self.sysctl("ipv6/conf/default/accept_dad", 0)
            self.sysctl("ipv6/conf/default/addr_gen_mode", 1)
            self.sysctl("ipv6/conf/default/router_solicitations", 0)
            self.sysctl("ipv6/conf/all/forwarding", 1)
            self.sysctl("ipv4/ip_forward", 1)
            self.out = self.device(stack, "out", frames.IFF_TAP, args="arp off address 06:00:00:00:08:01")
            lib.run(["ip", "-batch", "-"], self.netns, stdin=UNDER)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def sysctl(self, name, value):
        with lib.in_netns(self.netns), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def device(self, stack, name, flags, **more):
        tun = Tun(self.netns, name, flags, **({"mtu": self.mtu} | more))
        stack.callback(tun.close)
        return tun

    def keep(self, closable):
        self.stack.callback(closable.close)
        return closable

    def on(self, dev, l3=False, mirror=True):
        """Put htb, dualpi2 and the mirror on a device."""
        self.dev = dev
        time.sleep(4)       # for the last repeated MLD report
        self.ref = self.device(self.stack, "ref", IFF_TUN if l3 else frames.IFF_TAP, mtu=65521,
                               args="" if l3 else "arp off")
        lib.run(["tc", "-batch", "-"], self.netns, stdin=f"""\
qdisc add dev {dev} root handle 1: htb default 10 direct_qlen 1000
class add dev {dev} parent 1: classid 1:10 htb rate {self.rate} ceil {self.rate} burst 1514 cburst 1514 quantum 1514
"""+ (f"filter add dev {dev} parent 1: matchall action mirred egress mirror dev ref continue\n" if mirror else ""))
        error, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, dev, "10:",
                                     "1:10", "dualpi2", lib.pack(**self.knobs))
        expect_equal((error, text), (0, ""), "add of dualpi2")
        return self

    def change(self, **knobs):
        error, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, 0, self.dev, "10:", "1:10", "dualpi2",
                                     lib.pack(**knobs))
        expect_equal((error, text), (0, ""), f"change of {knobs}")

    def udp(self, version=4, tos=ECT1):
        """A UDP socket from this rig's address to what is behind `out`."""
        with lib.in_netns(self.netns):
            sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
        if version == 4:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
        sock.setsockopt(socket.SOL_SOCKET, frames.SO_SNDBUFFORCE, 1 << 30)
        sock.connect(("10.8.0.2" if version == 4 else "fd08::2", 4789))
        return self.keep(sock)

    def stats(self):
        return lib.stats(self.netns, self.dev)

    def check(self):
        st = self.stats()
        lib.check_identities(st)
        expect_equal((st["qlen"], st["backlog"], st["memory_used"]), (0, 0, 0), "left in dualpi2")
        parent = lib.stats(self.netns, self.dev, "1:")
        expect_equal((parent["qlen"], parent["backlog"]), (0, 0), "left in htb")
        return st

    def collect(self, idle=4, uninvited=False):
        """({number: [packet at out]}, {number: [packet before the AQM]}); uninvited: what the kernel sent from
        `out` on its own account has number None, else it is left out.
        """
        both = []
        for tun, wait in ((self.out, idle), (self.ref, 0.1)):
            got = {}
            for frame in tun.all(wait):
                number = number_in(frame)
                if number is not None or (uninvited and frame[6:12] == bytes.fromhex("060000000801")):
                    got.setdefault(number, []).append(frame)
            both.append(got)
        return both


def pair_up(before, after, ip_of, strip=lambda frame: frame):
    """[(number, codepoint or None, verdict)] of each packet in `before`, of which `after` may lack some.
    Of a number's packets the order is kept, so each that came is looked for from where the last was.
    """
    result, wrong = [], []
    for number, originals in before.items():
        copies = [strip(frame) for frame in after.get(number, [])]
        at = 0
        for original in originals:
            ip = ip_of(original)
            codepoint = None if ip is None else frames.ecn_of(original, ip)
            verdict = frames.judge(original, copies[at], ip) if at < len(copies) else "lost"
            if verdict in ("same", "marked"):
                at += 1
            elif verdict != "lost":
                left = len(originals) - originals.index(original)
                if len(copies) - at >= left:
                    wrong.append(f"{number}, codepoint {codepoint}: {verdict}")
                    at += 1
                else:
                    verdict = "lost"
            result.append((number, codepoint, verdict))
        if at < len(copies):
            wrong.append(f"{number}: {len(copies) - at} of {len(copies)} packets are like none before")
    stray = set(after) - set(before)
    if stray:
        wrong.append(f"packets {sorted(stray)[:5]} came from nowhere")
    return result, wrong


def module(name, path=None):
    """Skip unless the kernel has it, as a module or built in."""
    if lib.run(["modprobe", name], check=False).returncode and not (path and os.path.exists(path)):
        raise lib.Skip(f"this kernel has no {name}")


def linked(netns, args):
    """`ip link add`; Skip where the kernel or ip does not know such a device."""
    done = lib.run(["ip", "link", "add", *args.split()], netns, check=False)
    if done.returncode:
        raise lib.Skip(f"no such device here: {args.split(' type ')[1].split()[0]}: {done.stderr.strip()}")


SPLAT = re.compile(r"\] (RIP: |Call Trace:|BUG:|WARNING: |UBSAN: |KASAN: |Oops|general protection)|unreferenced object")


@contextlib.contextmanager
def no_splat():
    """Fail if the kernel prints a warning during the test."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    said = []
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield
        while True:
            try:
                said.append(os.read(log, 8192).decode(errors="replace").split(";", 1)[-1].split("\n")[0])
            except BlockingIOError:
                break
            except BrokenPipeError:     # overwritten; go on with what is left
                continue
    finally:
        os.close(log)
    bad = [line for line in said if SPLAT.search("] " + line)]
    expect(not bad, "kernel warnings: " + "; ".join(bad[:3]))


# WireGuard, whose own tool is no part of the test machines

class WireGuard:
    """A WireGuard device in a namespace, configured by generic netlink."""

    def __init__(self, netns, dev, private, port):
        self.netns, self.dev, self.port = netns, dev, port
        linked(netns, f"{dev} type wireguard")
        self.request(1, lib.attr(3, private) + lib.attr(6, struct.pack("H", port)))
        for data in self.request(0):
            self.public = lib.attrs(data[4:]).get(4, b"")[:32]

    def peer(self, other, endpoint):
        """Everything goes to one peer."""
        allowed = b"".join(lib.attr(n | 0x8000, lib.attr(1, struct.pack("H", family)) + lib.attr(2, bytes(size)) +
                                    lib.attr(3, b"\0"))
                           for n, (family, size) in enumerate(((socket.AF_INET, 4), (socket.AF_INET6, 16))))
        address = (struct.pack("=H", socket.AF_INET) + struct.pack("!H", other.port) + socket.inet_aton(endpoint) +
                   bytes(8))
        self.request(1, lib.attr(8 | 0x8000, lib.attr(0x8000, lib.attr(1, other.public) + lib.attr(4, address) +
                                                      lib.attr(9 | 0x8000, allowed))))

    def request(self, command, payload=None):
        """Send a command; without a payload it asks for a dump."""
        body = struct.pack("BBH", command, 1, 0) + lib.attr(2, self.dev.encode() + b"\0")
        with lib.Socket(self.netns, lib.NETLINK_GENERIC) as sock:
            family, _ = lib.genl_family(sock, "wireguard")
            if payload is None:
                return sock.dump(family, body)
            if error := sock.request(family, 0, body + payload).error:
                raise OSError(error, os.strerror(error))
            return []


def start_queue(rig, dev="out"):
    """A standing queue, so that everything which follows is marked."""
    filler = rig.keep(frames.Sender(rig.netns, dev))
    for number in range(1, 11):
        packet = frames.ipv4(frames.udp(bytes(1400)), ECT1)
        filler.send(frames.ether(number, ETH_P_IP, packet, ELSEWHERE))
