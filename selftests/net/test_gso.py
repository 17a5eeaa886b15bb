#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""GSO packets of every type, also with headers that lie. The kinds are rows of a table in gso.py.

The rule is that of test_packets.py: a packet that comes out is the one that went in, except for ECT that became CE and,
with IPv4, the header's checksum; nothing changes where no IP header is; no copy of it elsewhere changes; what does not
come out is counted as dropped; the kernel prints no warning. What went in is taken from a copy of the packet that never
met an AQM.

The last test says how many kinds of packets there are.
"""
import struct
import time

import frames
import hostile
import lib
from frames import ETH_P_8021AD, ETH_P_8021Q, ETH_P_IP, ether, ipv4, udp
from gso import GSO, GsoRig
from hostile import ROOMY, TUNNELS, Mirror, outermost_ip
from lib import CE, ECT0, ECT1, NOT_ECT, expect, expect_equal, test
from packets import ELSEWHERE, KINDS, MARK_ALL, MARK_ALL_L, Load

def send_kinds(send, ecns, kinds=GSO, pause=0.0, first=lambda: None):
    """Send every kind; returns {number: (name, codepoint)} and the names that the kernel did not take."""
    names, refused = {}, []
    built = [(f"{k.name}, ipv{version}", ecn, k.build, version)
             for k in kinds for version in k.versions for ecn in ecns]
    # All are made before first() fills the queue, so that it does not run empty meanwhile.
    built = [(number, name, ecn, *build(number, ecn, version))
             for number, (name, ecn, build, version) in enumerate(built, 100)]
    first()
    for number, name, ecn, head, frame in built:
        if pause:
            time.sleep(pause)
        if send(head, frame):
            names[number] = (name, ecn)
        else:
            refused.append(name)
    return names, sorted(set(refused))


def verdicts(names, before, after, beside=False):
    """[(name, codepoint on the wire, ip, verdict)] of every packet that an AQM without faults would let out."""
    def ip_of(frame):
        tagged_ = struct.unpack_from("!H", frame, 12)[0] in (ETH_P_8021Q, ETH_P_8021AD)
        return outermost_ip(frame, int(beside and tagged_))
    known, came = ({names[n]: [without_random(frame, ip_of(frame)) for frame in got[n]] for n in got if n in names}
                   for got in (before, after))
    result, wrong = hostile.pair_up(known, came, ip_of)
    expect(not wrong, f"{len(wrong)} of {len(result)} wrong: " + "; ".join(wrong[:8]))
    return [(name, codepoint, verdict) for (name, _), codepoint, verdict in result]


def without_random(frame, ip):
    """The kernel gives IPv6 fragments of UFO a number, another for each copy that it cuts."""
    if ip is not None and frame[ip] >> 4 == 6 and frame[ip + 6] == 44 and len(frame) >= ip + 48:
        return frame[:ip + 44] + bytes(4) + frame[ip + 48:]
    return frame


def tell(result, refused=()):
    lib.note(f"{len({name for name, *_ in result})} kinds, {len(result)} packets: " + ", ".join(
        f"{sum(v == verdict for *_, v in result)} {verdict}" for verdict in ("same", "marked", "lost")))
    if refused:
        lib.note(f"{len(refused)} kinds that this kernel rejects: " + "; ".join(refused))


def gso_marked(bridge, split, root_words=""):
    """Every segment of an ECT packet is marked, none of another, and nothing else changes."""
    with hostile.no_splat(), GsoRig("500kbit", bridge=bridge, ecn_mask=lib.ANY_ECT, split_gso=split,
                                    root_words=root_words, **ROOMY, **MARK_ALL_L) as rig:
        send, reference = rig.both_ways()
        load = Load(frames.Sender(rig.netns, "out"))
        rig.stack.callback(load.injector.close)
        # htb has to be out of tokens, and two packets have to wait, before every one that follows is marked.
        # The kernel cuts UFO over IPv6 in memory that it shares with clones, AQM or not.
        kinds = [k if not bridge or "ufo" not in k.name else k._replace(versions=(4,)) for k in GSO]
        names, refused = send_kinds(send, (ECT1, ECT0, NOT_ECT, CE), kinds, first=lambda: load.fill(60, ECT1, 1514))
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after, bridge)
        wrong = [row for row in result if row[2] != ("marked" if row[1] in (ECT1, ECT0) else "same")]
        expect(not wrong, f"{len(wrong)} of {len(result)} packets: " + "; ".join(map(str, wrong[:8])))
        tell(result, refused)
        st = rig.stats()
        # Without the split the core counts as many packets as gso_segs says.
        if split:
            rig.check()
        expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0),
                     "left, failed marks")
        sent = sum(st[q]["sent"] for q in "cl")
        if split:
            expect_equal(sent, len(result) + 60, "packets sent, packets at the receiver")
            expect_equal(st["drops"], st["gso_failed"], "drops, packets that no device could segment")


@test("GSO", needs="long ext")
def gso_kinds_from_a_packet_socket_split_every_segment_marked():
    gso_marked(False, 1)


@test("GSO", needs="long ext")
def gso_kinds_from_a_packet_socket_not_split_every_segment_marked():
    gso_marked(False, 0)


@test("GSO", "clone isolation", needs="long ext")
def gso_kinds_over_a_bridge_split_other_port_unmarked():
    gso_marked(True, 1)


@test("GSO", "clone isolation", needs="long ext")
def gso_kinds_over_a_bridge_not_split_other_port_unmarked():
    gso_marked(True, 0)


@test("GSO", "C20", needs="long ext")
def gso_kinds_with_a_size_table_every_segment_marked():
    gso_marked(False, 1, "stab overhead 24 linklayer atm")


def expect_dropped(result, st, *reasons):
    """What is missing was counted, each packet once."""
    lost = sum(verdict == "lost" for *_, verdict in result)
    counted = sum(st[q][reason] for q in "cl" for reason in reasons)
    expect(lost > 50, f"only {lost} packets were dropped, too few for a test")
    expect_equal((counted, st["drops"]), (lost, lost + st["gso_failed"]), "counted as dropped, drops; missing")
    wrong = [row for row in result if row[2] == "marked" and row[1] not in (ECT0, ECT1)]
    expect(not wrong, f"marked without ECT: {wrong[:8]}")


@test("GSO", needs="timed ext")
def gso_kinds_dropped_by_the_aqm_counted_and_rest_unchanged():
    """p_C is 1: Not-ECT packets are dropped at departure, except for one in 65."""
    with hostile.no_splat(), GsoRig("1mbit", **ROOMY, **MARK_ALL) as rig:
        send, reference = rig.both_ways()
        load = Load(frames.Sender(rig.netns, "out"))
        rig.stack.callback(load.injector.close)
        names, refused = send_kinds(send, (NOT_ECT,), first=lambda: load.fill(4, ECT0, 1514))
        load.fill(6, ECT0, 1514)
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after)
        tell(result, refused)
        expect_dropped(result, rig.check(), "dropped_aqm")


@test("GSO", "05ed733b65ab", needs="long ext")
def gso_kinds_with_room_for_some_segments_rest_counted():
    """The queue is at its limit all the time: of each packet as many segments fit as have left."""
    with hostile.no_splat(), GsoRig("300kbit", limit=25, **MARK_ALL_L) as rig:
        send, reference = rig.both_ways()
        names, refused = send_kinds(send, (NOT_ECT, ECT1), pause=0.05)
        after = rig.out.drain(4)
        result = verdicts(names, reference(), after)
        tell(result, refused)
        by_kind = {}
        for name, codepoint, verdict in result:
            by_kind.setdefault((name, codepoint), set()).add(verdict == "lost")
        cut = sum(len(seen) == 2 for seen in by_kind.values())
        lib.note(f"{cut} packets of which some segments fitted")
        expect(cut > 10, "too few packets of which only a part fitted")
        expect_dropped(result, rig.check(), "dropped_limit")


@test("GSO", needs="long ext")
def gso_kinds_to_a_device_that_segments_marked_as_a_whole():
    """`out` takes TSO: with no_split_gso the packet that is marked leaves in one piece."""
    with hostile.no_splat(), Mirror(ROOMY | MARK_ALL_L | {"split_gso": 0}, "500kbit") as rig:
        tso = rig.device(rig.stack, "tso", frames.IFF_TAP | hostile.IFF_VNET_HDR, args="arp off",
                         offload=hostile.TUN_F_CSUM | hostile.TUN_F_TSO4 | hostile.TUN_F_TSO6 | hostile.TUN_F_TSO_ECN)
        rig.on("tso")
        sock = rig.keep(hostile.VnetSocket(rig.netns, "tso"))
        rig.keep(filler := frames.Sender(rig.netns, "tso"))

        def fill():
            for number in range(1, 61):
                filler.send(ether(number, ETH_P_IP, ipv4(udp(bytes(1472)), ECT1), ELSEWHERE))
        whole = 0
        sent, _ = send_kinds(lambda head, frame: sock.send(frame, head), (ECT1, NOT_ECT), first=fill)
        got = tso.drain(4)
        marked = 0
        built = {(f"{k.name}, ipv{v}", ecn): (k.build, v) for k in GSO for v in k.versions for ecn in (ECT1, NOT_ECT)}
        for number, (name, ecn) in sent.items():
            build, version = built[name, ecn]
            frame = build(number, ecn, version)[1]
            copies = got.get(number, [])
            if len(copies) != 1 or len(copies[0]) != len(frame):
                continue        # cut by the core: not a kind that this device takes
            whole += 1
            ip = outermost_ip(frame)
            verdict = frames.judge(frame, copies[0], ip)
            want = "marked" if ip is not None and ecn == ECT1 else "same"
            # What is no GSO packet after all got its checksum.
            if verdict != want and len(frame) <= 1514:
                whole -= 1
                continue
            expect_equal(verdict, want, f"{name}, codepoint {ecn}")
            marked += verdict == "marked"
        lib.note(f"{whole} packets left in one piece, {marked} marked")
        expect(marked > 30, "too few packets were marked as a whole")
        st = rig.stats()
        expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0), "left, failed")


@test("05ed733b65ab", needs="long ext")
def one_segment_of_a_gso_packet_left_in_an_empty_tree_kernel_does_not_complain():
    """Two classful parents, limit 1, nothing queued: one segment is queued, so that only the number of bytes differs
    from what the parents will count. Kernels before summer 2025 warn of an update by 0 packets that meets an empty
    qdisc half-way up, and newer ones tell its parent that a class which was never active went empty. Then a second
    packet goes through: the tree still works. Handles 2: and 15: have the same hash.
    """
    for shaper, middle in (("htb", "drr"), ("htb", "qfq"), ("hfsc", "drr"), ("hfsc", "qfq"), ("htb", "ets")):
        with hostile.no_splat(), GsoRig("1gbit") as rig:
            lib.run("tc qdisc del dev out root", rig.netns)
            over = "class add dev out parent 1: classid 1:10 " + {
                "htb": "htb rate 1mbit burst 1514 cburst 1514 quantum 1514",
                "hfsc": "hfsc sc rate 1mbit ul rate 1mbit"}[shaper]
            below = {"drr": "class add dev out parent 2: classid 2:1 drr quantum 1514\n"
                            "filter add dev out parent 2: matchall classid 2:1",
                     "qfq": "class add dev out parent 2: classid 2:1 qfq weight 1 maxpkt 2048\n"
                            "filter add dev out parent 2: matchall classid 2:1", "ets": ""}[middle]
            args = f"{middle} bands 1 quanta 1514" if middle == "ets" else middle
            done = lib.run(["tc", "-batch", "-"], rig.netns, check=False, stdin=f"""\
qdisc add dev out root handle 1: {shaper} default 10
{over}
qdisc add dev out parent 1:10 handle 2: {args}
{below}
{over.replace("1:10", "1:11")}
qdisc add dev out parent 1:11 handle 15: pfifo
""")
            if done.returncode:
                raise lib.Skip(f"no {shaper} over {middle}: {done.stderr.strip()[:80]}")
            error, text = lib.tc_request(rig.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                         "2:1", "dualpi2", lib.pack(limit=1))
            expect_equal((error, text), (0, ""), "add of dualpi2")
            sender = hostile.VnetSocket(rig.netns, "out")
            rig.stack.callback(sender.close)
            for number in range(1, 11):
                head, frame = GSO[0].build(number, ECT1, 4)
                expect(sender.send(frame, head), "refused")
                sums = {q["handle"]: (q["stats"]["qlen"], q["stats"]["backlog"]) for q in
                        lib.qdisc_dump(rig.netns, "out") if q["handle"] in ("1:", "2:", "10:")}
                # One that was peeked at is in a parent alone.
                expect(sums["1:"] == sums["2:"] and sums["2:"] in (sums["10:"], (1, 554)),
                       f"{shaper} over {middle}: qlen and backlog {sums}")
                time.sleep(0.05)
            got = rig.out.drain(2)
            expect_equal({n: len(f) for n, f in got.items()}, dict.fromkeys(range(1, 11), 1),
                         f"{shaper} over {middle}: segments that came")
            for handle in ("1:", "2:", "10:"):
                st = lib.stats(rig.netns, "out", handle)
                expect_equal((st["qlen"], st["backlog"], st["packets"]), (0, 0, 10),
                             f"{shaper} over {middle}, {handle}")


# Kinds of packets that are sent as they are or with a fault, by group: here and in the programs named.
CENSUS = {
    "gso": [f"{k.name}, ipv{v}" for k in GSO for v in k.versions] + ["one segment left under two parents"],
    # test_tunnels.py
    "tunnel, outer header": [f"{t.name}, inner ipv{v}" for t in TUNNELS for v in t.inner],
    "tunnel, gso inside": [f"{t.name}, inner ipv{v}" for t in TUNNELS for v in t.inner],
    "no link-layer header": [f"{t.name}, ipv{v}" for t in TUNNELS if not t.ether for v in t.inner] +
                            [f"{name}, ipv{v}" for name in ("tun", "wireguard") for v in (4, 6)],
    # test_pages.py, test_stack.py
    "pages": ["17 fragments from a packet ring, ipv4", "17 fragments from a packet ring, ipv6",
              "msg_zerocopy udp, ipv4", "msg_zerocopy udp, ipv6", "msg_zerocopy udp gso", "sendfile to a udp socket",
              "ip header in the page cache, vxlan and bridge, ipv4",
              "ip header in the page cache, vxlan and bridge, ipv6", "shared packet from pktgen",
              "sniffer on the device", "huge truesize, tiny data"],
    "stack": ["defragmented by conntrack, ipv4", "defragmented by conntrack, ipv6", "fraglist from gro, split",
              "fraglist from gro, not split", "fraglist from gro, marked on arrival", "SO_TXTIME in the past",
              "SO_TXTIME in the future", "sctp gso", "big tcp, ipv4", "big tcp, ipv6", "tcp sendfile, forwarded"],
    "metadata": ["priority handle:0 to handle:65535", "stab of 2 GiB less 1", "stab of minus 2 GiB", "mtu 68, ipv4",
                 "mtu cut while the queue is full", "mtu 65521"],
}


@test("scoreboard")
def census_of_kinds():
    """How many kinds of packets these programs and test_packets.py send."""
    groups = {name: len(set(kinds)) for name, kinds in CENSUS.items()}
    for name, count in groups.items():
        lib.note(f"{count:4} {name}")
    lib.note(f"{len(KINDS):4} frames of test_packets.py")
    lib.note(f"{sum(groups.values()) + len(KINDS)} kinds")
    expect_equal(len({k.name for k in KINDS}), len(KINDS), "names of kinds")


if __name__ == "__main__":
    lib.main()
