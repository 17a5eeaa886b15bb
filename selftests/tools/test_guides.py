# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top
# suite: check kernel=6.1 -- -k guide_vpn_xfrm
"""The commands of docs/guides, run as they stand there. KTAP on stdout.

In a guide each block of commands (```sh) follows a comment that says what becomes of it:

    <!-- test: NAME -->         the scene of this name runs it, in a network namespace with the guide's device names;
                                all blocks of one name one after the other, in the same one
    <!-- not run: REASON -->    it cannot be; the number of these is printed

What must hold stands in the guide, too. A line "# -> TEXT" in a block: the commands since the last such line have
printed a line with this text. A ```text block right after it: the commands have printed these lines, in this order.
"..." stands for anything, and runs of blanks are all alike.

A block without a comment, a name without a scene and a scene without a block are failures. Not here: whether the
sentences of the guides are true, but for what the scenes check besides.
"""

import contextlib
import json
import os
import re
import socket
import struct
import time

from lib_guides import (GUIDES, NQB, Play, Router, SCENES, all_blocks, blocks_of, devices, flowing, load, options,
                        programs, scene)
import lib
from lib import (CE, ECT0, ECT1, NOT_ECT, Failure, Skip, Stream, Traffic, attr, expect, expect_between, expect_equal,
                 in_netns, main, note, run, tc, test)


# The convention itself

@test("every block is spoken for")
def guides_blocks_all_have_a_test_or_a_reason():
    found = all_blocks()
    expect(len(GUIDES) == 4 and len(found) > 20, f"{len(GUIDES)} guides, {len(found)} blocks")
    for block in found:
        expect(block.name or block.reason, f"{block}: no comment says which test runs it, or why none can")
        expect(not block.name or block.name in SCENES, f"{block}: there is no scene {block.name}")
    for name in SCENES:
        expect(any(block.name == name for block in found), f"scene {name} has no block")
    left_out = [block for block in found if block.reason]
    note(f"{len(found) - len(left_out)} blocks are run, {len(left_out)} are not:")
    for block in left_out:
        note(f"{block}: {block.reason}")
    expect(len(left_out) <= 4, f"{len(left_out)} blocks are not run")


@test("links")
def guides_links_lead_to_files():
    for path in GUIDES:
        with open(path, encoding="utf-8") as file:
            for target in re.findall(r"\]\((?!https?:)([^)#]+)", file.read()):
                expect(os.path.exists(os.path.join(os.path.dirname(path), target)),
                       f"{os.path.basename(path)}: {target} is not there")


def refused(text, *words):
    """A guide with this text must fail, and say these words."""
    with programs() as directory:
        try:
            blocks = blocks_of(text, "x.md")
            play = Play(blocks, directory)
            while play.left:
                play(None)
        except Failure as failure:
            for word in words:
                expect(word in str(failure), f"{word!r} is not in: {failure}")
            return
    raise Failure(f"not refused: {text!r}")


@test("a guide that is wrong")
def guides_wrong_ones_fail():
    block = "<!-- test: x -->\n```sh\n{}\n```\n"
    refused(block.format("echo 1\nfalse\necho 2"), "x.md:2", "code 1")
    refused(block.format("echo $missing_one"), "missing_one")
    refused(block.format("echo one\n# -> two"), "'two'")
    refused(block.format("echo one\n# -> one\necho two\n# -> one"), "'one'")
    refused(block.format("echo a b") + "```text\na ... c\n```\n", "'a ... c'")
    refused(block.format("echo a; echo b") + "```text\nb\na\n```\n", "'a'")
    refused("```sh\necho\n", "no end")
    found = blocks_of("<!-- test: x -->\n\n```sh\necho\n```\n\nWords.\n\n```sh\necho\n```\n<!-- not run: y -->\n"
                      "```sh\n```\nWords\n```text\nno\n```\n", "x.md")
    expect_equal([(one.name, one.reason, one.shown) for one in found],
                 [("x", None, []), (None, None, []), (None, "y", [])])


@test("a guide that is right")
def guides_right_one_passes():
    text = ("<!-- test: x -->\n```sh\necho a   b 17\n# -> a b ...7\necho c\n```\n\n```text\nb ...\nc\n```\n"
            "<!-- test: x -->\n```sh\ncat <<EOF\nseen\nEOF\n```\n")
    with programs() as directory:
        play = Play(blocks_of(text, "x.md"), directory)
        expect_equal((play(None), play(None)), ("a b 17\nc\n", "seen\n"))


# Home router

@scene("home-up")
def home_up(play):
    with Router() as net:
        before = tc("qdisc show", net.rtr).stdout, run("ip -br link", net.rtr).stdout
        play(net.rtr)
        for dev, rate in (("eth0", 19), ("dp2-eth0", 90)):
            expect_equal(options(net.rtr, dev)["bandwidth"], rate * 125000, dev)
            where, dst = (net, "10.2.0.1") if dev == "eth0" else (net.back(), "10.1.0.1")
            found = Traffic(where, 8, load(rate, dst=dst), 3).wait()
            expect_between(found["l"].delay_us["p99"], 0, 2000, f"{dev}: P99 of L4S, us")
            expect_between(found["c"].delay_us["mean"], 10000, 20000, f"{dev}: Classic, us")
        with flowing(net, *load(19)):
            play(net.rtr)       # doctor
        play(net.rtr)           # the counters
        play(net.rtr)           # another rate
        expect_equal(options(net.rtr, "dp2-eth0")["bandwidth"], 85 * 125000)
        play(net.rtr)           # down
        expect_equal((tc("qdisc show", net.rtr).stdout, run("ip -br link", net.rtr).stdout), before)


@scene("home-dsl")
def home_dsl(play):
    with devices("ppp0") as (here, _):
        before = tc("qdisc show", here).stdout
        play(here)
        expect_equal(tc("qdisc show", here).stdout, before, "after --dry-run")


@scene("home-options")
def home_options(play):
    with devices("eth0") as (here, _):
        play(here)
        expect_equal(options(here, "eth0")["nqb"], [45, 46])
        play(here)
        expect_equal((options(here, "eth0")["burst-max"], options(here, "eth0")["nqb"]), (8000, [45]))


@scene("home-host")
def home_host(play):
    if not os.path.exists("/proc/sys/net/ipv4/tcp_ecn_option"):
        raise Skip("this kernel has no AccECN")
    with devices("eth0") as (here, _):
        play(here)


# ISP edge

SUBSCRIBERS = 200


@scene("isp-htb")
def isp_htb(play):
    with Router() as net:
        for netns, dev in ((net.rtr, "eth0"), (net.rcv, "eth0")):
            run(f"ip addr add 100.64.0.{1 if netns == net.rtr else 2}/16 dev {dev}", netns)
        for host in (11, 12):
            run(f"ip addr add 100.64.0.{host}/16 dev eth0", net.rcv)
            run(f"ip neigh add 100.64.0.{host} lladdr 02:00:00:00:02:01 nud permanent dev eth0", net.rtr)
        before = kmalloc_4k()
        play(net.rtr)           # the script
        leaves = [one for one in json.loads(tc("-json qdisc show dev eth0", net.rtr).stdout)
                  if one["kind"] == "dualpi2"]
        expect_equal((len(leaves), len({one["handle"] for one in leaves})), (SUBSCRIBERS, SUBSCRIBERS), "leaves")
        # A kernel with sanitizers frees late, and says so late.
        if before is not None and not lib.user_mode_linux():
            expect_between(kmalloc_4k() - before, SUBSCRIBERS * 0.9, SUBSCRIBERS * 1.3, "allocations of 4 kB")
        streams = [Stream(f"{kind}{host}", ecn=ecn, bps=bps, jitter=1, dst=f"100.64.0.{host}", count=None)
                   for host in (11, 12) for kind, ecn, bps in (("l", ECT1, 20e6), ("c", NOT_ECT, 32e6))]
        result = Traffic(net, 5, streams, 1).wait()
        for host in (11, 12):
            bits = sum(result[f"{kind}{host}"].received for kind in "lc") * 1000 * 8 / 4
            expect_between(bits / 50e6, 0.98, 1.02, f"subscriber {host}: part of the rate sold")
            expect(result[f"l{host}"].delay_us["p99"] < 2000, f"L P99 {result[f'l{host}'].delay_us['p99']} us")
        play(net.rtr)           # what is seen of one
        play(net.rtr)           # another rate
        play(net.rtr)           # metrics


def kmalloc_4k():
    """Allocations of 4 kB in use; None if the kernel does not say."""
    try:
        with open("/proc/slabinfo", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.split()[0] in ("kmalloc-4k", "kmalloc-cg-4k"))
    except OSError:
        return None


@scene("isp-device")
def isp_device(play):
    with devices("eth1") as (here, _):
        for vid in range(101, 104):
            run(f"ip link add link eth1 name eth1.{vid} type vlan id {vid}", here)
            run(f"ip link set eth1.{vid} up", here)
        play(here)
        for vid in range(101, 104):
            found = options(here, f"eth1.{vid}")
            expect_equal((found["bandwidth"], found["overhead"]), (50_000_000 // 8, 42), f"eth1.{vid}")


@scene("isp-policy")
def isp_policy(play):
    with Router(up="eth1") as net:
        tc("qdisc add dev eth0 root handle 10: dualpi2 bandwidth 10mbit", net.rtr)

        def nqb_seen():
            """Of 100 packets with DSCP 45: how many were taken for NQB, and how many lost the DSCP."""
            before = lib.stats(net.rtr, "eth0", "10:")
            found = Traffic(net, 1, [Stream("nqb", dscp=NQB, pps=100), Stream("l", dscp=NQB, ecn=ECT1, pps=100)],
                            0).wait()
            after = lib.stats(net.rtr, "eth0", "10:")
            expect_equal((found["nqb"].lost, found["l"].lost), (0, 0), "packets lost")
            ect1 = after["l"]["counters"]["arrived_ect1"] - before["l"]["counters"]["arrived_ect1"]
            expect_between(ect1, 95, 101, "packets with ECT(1)")
            return after["link"]["nqb_arrived"] - before["link"]["nqb_arrived"], found["nqb"].dscp_changed

        expect_between(nqb_seen()[0], 95, 101, "packets taken for NQB before")
        play(net.rtr)           # washed off at the border
        nqb, changed = nqb_seen()
        expect(not nqb and changed >= 95, f"{nqb} packets taken for NQB, {changed} without their DSCP")
        tc("qdisc del dev eth1 clsact", net.rtr)
        play(net.rtr)           # no_nqb
        expect_equal(nqb_seen(), (0, 0), "packets taken for NQB, DSCPs changed")
        play(net.rtr)           # overload
        expect_equal(options(net.rtr, "eth0")["p-cmax"], 20)


# Data centre

@scene("dc-root")
def dc_root(play):
    with devices("eth0") as (here, _):
        play(here)


@scene("dc-mq")
def dc_mq(play):
    with devices("eth0", words="numtxqueues 4 numrxqueues 4") as (here, _):
        play(here)
        leaves = [one for one in json.loads(tc("-json qdisc show dev eth0", here).stdout) if one["kind"] == "dualpi2"]
        expect_equal(sorted(one["parent"] for one in leaves), ["1:1", "1:2", "1:3", "1:4"])
        for one in leaves:
            expect_equal((one["options"]["limit"], one["options"]["target"]), (25000, 166), one["parent"])


@scene("dc-default")
def dc_default(play):
    # The setting is of the whole machine.
    with open("/proc/sys/net/core/default_qdisc", encoding="ascii") as file:
        before = file.read()
    try:
        play(None)
        run("ip link add dpg0 type ifb")
        run("ip link set dpg0 up")
        expect("dualpi2" in tc("qdisc show dev dpg0").stdout, tc("qdisc show dev dpg0").stdout)
    finally:
        run("ip link del dpg0", check=False)
        with open("/proc/sys/net/core/default_qdisc", "w", encoding="ascii") as file:
            file.write(before)


@scene("dc-ect")
def dc_ect(play):
    with Router() as net:
        tc("qdisc add dev eth0 root handle 10: dualpi2 bandwidth 10mbit", net.rtr)
        play(net.rtr)
        Traffic(net, 1, [Stream("dctcp", ecn=ECT0, bps=2e6)], 0).wait()
        st = lib.stats(net.rtr, "eth0", "10:")
        expect(st["l"]["enqueued"] > 200 and not st["c"]["enqueued"], f"ECT(0): {st['l']}, {st['c']}")


# VPN

NESTED = lib.NLA_F_NESTED


def lags(streams, run_):
    """Of each packet that came, in a tunnel that numbers them as they were sent: how far it was behind the newest."""
    sent = sorted((begin, delay) for one in streams for begin, delay, _ in run_[one.name].records)
    order = sorted((begin + delay, number) for number, (begin, delay) in enumerate(sent) if delay is not None)
    found, newest = [], -1
    for _, number in order:
        found.append(max(newest - number, 0))
        newest = max(newest, number)
    return found


def wireguard(netns, name, **values):
    """Ask for a WireGuard device, or set it up; its public key. There may be no wg(8)."""
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


@contextlib.contextmanager
def tunnel():
    """WireGuard from the router to the receiver, 10.9.0.1 behind it; the sender's packets for that go through it."""
    with Router() as net:
        ends = ((net.rtr, "10.2.0.1", 2), (net.rcv, "10.2.0.2", 1))
        for netns, _, host in ends:
            if run("ip link add wg0 type wireguard", netns, check=False).returncode:
                raise Skip("this kernel has no WireGuard")
            run(f"ip addr add 10.9.0.{host}/24 dev wg0", netns)
            wireguard(netns, "wg0", private=bytes([host] * 31 + [64]), port=51820)
            run("ip link set wg0 mtu 1440 up", netns)
        keys = [wireguard(netns, "wg0") for netns, _, _ in ends]
        for (netns, far, host), key in zip(ends, reversed(keys)):
            wireguard(netns, "wg0", private=bytes([host] * 31 + [64]), port=51820, peer=(key, far))
        run("ip route add 10.1.0.0/24 dev wg0", net.rcv, check=False)
        # The handshake.
        Traffic(net, 2, [Stream("first", pps=10, dst="10.9.0.1")], 0).wait()
        yield net


def through(net, mbit, seconds=8):
    """Packets of both kinds, a little more than the link takes, through the tunnel; the Run and the lags."""
    streams = [Stream(name, ecn=ecn, bps=mbit * 1e6 * part, size=1400, jitter=1, dst="10.9.0.1", trace=True)
               for name, ecn, part in (("l", ECT1, 0.48), ("c", NOT_ECT, 0.48))]
    found = Traffic(net, seconds, streams, 3).wait()
    return found, lags(streams, found)


@scene("vpn-order")
def vpn_order(play):
    with tunnel() as net:
        play(net.rtr)
        found, behind = through(net, 40)
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
        dropped = sum(lib.stats(net.rtr, "eth0", "1:")[queue][f"dropped_{cause}"] for queue in "lc"
                      for cause in lib.CAUSES)
        expect_equal((lost, dropped > 0), (dropped, True), "packets lost, and dropped by dualpi2")
        # A mark of the outer packet comes through.
        expect(found["l"].ecn[CE] > 0 and not found["c"].ecn[CE], f"marks: {found['l'].ecn} {found['c'].ecn}")
        # A mark from before the tunnel: what the outer packet says of it.
        before = lib.stats(net.rtr, "eth0", "1:")
        Traffic(net, 1, [Stream("ce", ecn=CE, pps=100, dst="10.9.0.1")], 0).wait()
        after = lib.stats(net.rtr, "eth0", "1:")
        ect0 = after["c"]["counters"]["arrived_ect0"] - before["c"]["counters"]["arrived_ect0"]
        expect(ect0 > 90, f"packets that came to the tunnel with CE: {ect0} are ECT(0) outside")


@scene("vpn-queue")
def vpn_queue(play):
    with tunnel() as net:
        tc("qdisc add dev eth0 root handle 1: dualpi2 bandwidth 40mbit", net.rtr)
        play(net.rtr)
        found, behind = through(net, 40)
        expect_equal(max(behind), 0, "packets behind")
        expect(found["l"].ecn[CE] > 0, "ECT(1) is not marked in the Classic queue")
        # ESP is filtered, too.
        before = lib.stats(net.rtr, "eth0", "1:")
        raw_packets(net, 20, socket.IPPROTO_ESP)
        after = lib.stats(net.rtr, "eth0", "1:")
        expect_equal([after[queue]["enqueued"] - before[queue]["enqueued"] for queue in "cl"], [20, 0], "ESP packets")


def raw_packets(net, number, protocol):
    """So many packets with ECT(1) of an IP protocol, from the sender to the receiver."""
    with in_netns(net.snd), socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT1)
        for _ in range(number):
            sock.sendto(bytes(100), ("10.2.0.1", 0))
    time.sleep(0.5)


@scene("vpn-device")
def vpn_device(play):
    with tunnel() as net:
        play(net.rtr)
        found, _ = through(net, 38)
        expect_between(found["l"].delay_us["p99"], 0, 2500, "P99 of L4S, us")
        expect_between(found["c"].delay_us["mean"], 10000, 20000, "Classic, us")
        # 60 bytes of the tunnel and 14 of Ethernet for each packet of 1386 bytes.
        packets = found["l"].received + found["c"].received
        expect_between(packets * (1386 + 74) * 8 / 5 / 38e6, 0.98, 1.005, "part of the rate that was given")
        with flowing(net, *load(37, dst="10.9.0.1")):
            play(net.rtr)       # doctor


@scene("vpn-xfrm")
def vpn_xfrm(play):
    with devices("eth0") as (here, _):
        if run("ip xfrm state", here, check=False).returncode:
            raise Skip("this kernel has no IPsec")
        play(here)


if __name__ == "__main__":
    main()
