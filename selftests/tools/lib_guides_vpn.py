# SPDX-License-Identifier: GPL-2.0-only
"""The steps of the guide on VPNs."""

import socket
import struct
import time

import lib
from lib import (CE, ECT1, NOT_ECT, Skip, Stream, Traffic, expect, expect_between, expect_equal, in_netns, note,
                 run)
from lib_guides import flowing, load, step

def handshake(machine):
    Traffic(machine, 2, [Stream("first", pps=10, dst="10.9.0.1")], 0).wait()


def lags(streams, run_):
    """Of each packet that came, in a tunnel that numbers them as they were sent: how far it was behind the newest."""
    sent = sorted((begin, delay) for one in streams for begin, delay, _ in run_[one.name].records)
    order = sorted((begin + delay, number) for number, (begin, delay) in enumerate(sent) if delay is not None)
    found, newest = [], -1
    for _, number in order:
        found.append(max(newest - number, 0))
        newest = max(newest, number)
    return found


SECONDS, WARMUP = 6, 3


def through(net, mbit):
    """Packets of both kinds, slightly more than the link carries, through the tunnel; the Run and the lags."""
    streams = [Stream(name, ecn=ecn, bps=mbit * 1e6 * 0.48, size=1400, jitter=1, dst="10.9.0.1", trace=True)
               for name, ecn in (("l", ECT1), ("c", NOT_ECT))]
    found = Traffic(net, SECONDS, streams, WARMUP).wait()
    return found, lags(streams, found)


@step("vpn-order")
def vpn_order(machine, block):
    machine.run(block)
    handshake(machine)
    found, behind = through(machine, 40)
    share = {size: sum(1 for lag in behind if lag >= size) / len(behind) for size in (32, 64, 128)}
    note(f"{len(behind)} packets, {max(behind)} behind at most; beyond a window of " +
         ", ".join(f"{size}: {100 * part:.2f} %" for size, part in share.items()))
    note(f"Classic: {found['c'].delay_us}")
    # What the guide says.
    expect_between(max(behind), 65, 127, "places late")
    expect_between(share[32], 0.3, 0.5, "part of the packets that a window of 32 would drop")
    expect_between(share[64], 0.02, 0.2, "part of the packets that a window of 64 would drop")
    expect(found["c"].delay_us["mean"] - found["l"].delay_us["mean"] > 10000, "both kinds wait alike")
    lost = sum(delay is None for kind in "lc" for _, delay, _ in found[kind].records)
    dropped = sum(lib.stats(machine.rtr, "eth0", "d50:")[queue][f"dropped_{cause}"] for queue in "lc"
                  for cause in lib.CAUSES)
    expect_equal((lost, dropped > 0), (dropped, True), "packets lost, and dropped by dualpi2")
    # The inner packet gets a mark of the outer one.
    expect(found["l"].ecn[CE] > 0 and not found["c"].ecn[CE], f"marks: {found['l'].ecn} {found['c'].ecn}")
    # A mark from before the tunnel: what the outer packet says of it.
    before = lib.stats(machine.rtr, "eth0", "d50:")
    Traffic(machine, 1, [Stream("ce", ecn=CE, pps=100, dst="10.9.0.1")], 0).wait()
    after = lib.stats(machine.rtr, "eth0", "d50:")
    ect0 = after["c"]["counters"]["arrived_ect0"] - before["c"]["counters"]["arrived_ect0"]
    expect(ect0 > 90, f"packets that came to the tunnel with CE: {ect0} are ECT(0) outside")


def in_which_queue(machine, packets):
    """Send ECT(1) packets both ways through the router; {device: number in (Classic, L4S)}."""
    found = {}
    for dev, net, v4, v6 in (("eth0", machine, "10.2.0.1", "fd02::1"),
                             ("dp2-eth0", machine.back(), "10.1.0.1", "fd01::1")):
        before = lib.stats(machine.rtr, dev, "d50:")
        with in_netns(net.snd):
            for family, address in ((socket.AF_INET, v4), (socket.AF_INET6, v6)):
                packets(family, address)
        time.sleep(0.5)
        after = lib.stats(machine.rtr, dev, "d50:")
        found[dev] = tuple(after[queue]["enqueued"] - before[queue]["enqueued"] for queue in "cl")
    return found


def raw(protocol, *starts):
    """A function for in_which_queue(): 40 packets of this protocol with ECT(1), which begin like this in turn."""
    def send(family, address):
        with socket.socket(family, socket.SOCK_RAW, protocol) as sock:
            if family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT1)
            else:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, ECT1)
            for number in range(40):
                sock.sendto(starts[number % len(starts)] + bytes(100), (address, 0))
    return send


def udp(port):
    """Packets to this port, and from it."""
    ports = ((40000, port), (port, 40000))
    return raw(socket.IPPROTO_UDP, *(struct.pack("!HHHH", *pair, 108, 0) for pair in ports))


def expect_classic(machine, packets, what):
    for dev, (classic, l4s) in in_which_queue(machine, packets).items():
        expect(classic >= 80 and l4s == 0, f"{what} by {dev}: {classic} Classic, {l4s} L4S; 80 were sent")


@step("vpn-queue")
def vpn_queue(machine, block):
    before = in_which_queue(machine, udp(51820))
    expect(min(l4s for _, l4s in before.values()) >= 80, f"without filters: {before}")
    machine.run(block)
    found, behind = through(machine, 40)
    expect_equal(max(behind), 0, "packets behind")
    expect(found["l"].ecn[CE] > 0, "ECT(1) is not marked in the Classic queue")
    expect_classic(machine, udp(51820), "WireGuard")


@step("vpn-queue-ipsec")
def vpn_queue_ipsec(machine, block):
    machine.run(block)
    expect_classic(machine, udp(4500), "UDP port 4500")
    expect_classic(machine, raw(socket.IPPROTO_ESP, b""), "ESP")


@step("vpn-device")
def vpn_device(machine, block):
    machine.run(block)
    found, _ = through(machine, 38)
    expect_between(found["l"].delay_us["p99"], 0, 2500, "P99 of L4S, us")
    expect_between(found["c"].delay_us["mean"], 10000, 20000, "Classic, us")
    # 60 bytes of the tunnel and 14 of Ethernet for each packet of 1386 bytes.
    bits = (found["l"].received + found["c"].received) * (1386 + 74) * 8
    expect_between(bits / (SECONDS - WARMUP) / 38e6, 0.98, 1.005, "part of the rate that was given")


@step("vpn-doctor")
def vpn_doctor(machine, block):
    with flowing(machine, *load(37, dst="10.9.0.1")):
        machine.run(block)


@step("vpn-xfrm")
def vpn_xfrm(machine, block):
    if run("ip xfrm state", machine.rtr, check=False).returncode:
        raise Skip("this kernel has no IPsec")
    machine.run(block)
