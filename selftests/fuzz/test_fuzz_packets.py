#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
"""
test_fuzz_packets.py - random damage to frames of known shapes, through a dualpi2 that marks all it may and one
that drops all it may, each compared byte by byte where it comes out.

A parser written from the RFCs, hostile.outermost_ip(), finds the IP header of a damaged frame. Frames go in by
packet socket and packet ring, where what went in is known, and with random virtio headers by a TAP device over a
bridge, where a port without an AQM has the reference.

The environment: DUALPI2_FUZZ_FRAMES (20000, all ways together), DUALPI2_FUZZ_SEED (1; the same seed makes
the same frames).  A frame that fails is printed as corpus/packets.txt has it: virtio header or "-", then the frame,
in hexadecimal.
"""
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))

import frames  # noqa: E402
import hostile  # noqa: E402
import lib  # noqa: E402
from frames import ETH_P_8021AD, ETH_P_8021Q, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, ETH_P_MPLS, ETH_P_PPP_SES  # noqa: E402
from gso import GSO, TCP4, UFO, GsoRig  # noqa: E402
from hostile import ROOMY, outermost_ip  # noqa: E402
from lib import ECT0, ECT1, NOT_ECT, expect, expect_equal, test  # noqa: E402
from packets import ECNS, ELSEWHERE, KINDS, MARK_ALL, MARK_ALL_L, MTU, START, Load  # noqa: E402

FRAMES = int(os.environ.get("DUALPI2_FUZZ_FRAMES") or "20000")
SEED = os.environ.get("DUALPI2_FUZZ_SEED") or "1"
BATCH = 400
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/packets.txt")
ADDRESSES = 12      # bytes that stay: the receiver finds a frame by its source address
TYPES = (ETH_P_8021Q, ETH_P_8021AD, ETH_P_IP, ETH_P_IPV6, ETH_P_ARP, ETH_P_MPLS, ETH_P_PPP_SES, 0, 46, 0x5FF, 0x600,
         0xFFFF)
BYTES = (0, 1, 2, 3, 4, 5, 0x0F, 0x40, 0x44, 0x45, 0x46, 0x4F, 0x60, 0x61, 0x63, 0x7F, 0x80, 0x81, 0x88, 0xFE, 0xFF)


class Mutator:
    """Frames and virtio headers with damage, always the same for a seed."""

    def __init__(self, name):
        self.rnd = random.Random(f"{SEED} {name}")
        self.seeds = [(hostile.NO_VNET, k.build(0, ecn)) for k in KINDS for ecn in ECNS]
        self.gso = [k.build(0, ecn, version) for k in GSO for version in k.versions
                    for ecn in (ECT1, NOT_ECT)]
        with open(CORPUS, encoding="ascii") as text:
            for line in text:
                if line.strip() and not line.startswith(("#", "==")):
                    head, frame = line.split()
                    pair = (hostile.NO_VNET if head == "-" else bytes.fromhex(head), bytes.fromhex(frame))
                    (self.seeds if head == "-" else self.gso).append(pair)

    def damage(self, data):
        """One change anywhere behind the addresses."""
        rnd = self.rnd
        # Near the front is where it matters.
        at = min(ADDRESSES + int(rnd.expovariate(1 / 25)), len(data) - 1)
        what = rnd.randrange(12)
        if what < 2:
            data[at] ^= 1 << rnd.randrange(8)
        elif what < 4:
            data[at] = rnd.choice(BYTES)
        elif what == 4:
            del data[max(at, frames.ETH_HLEN):]
        elif what == 5:
            data += rnd.randbytes(rnd.randrange(1, 64)) if hasattr(rnd, "randbytes") else bytes(rnd.randrange(1, 64))
        elif what == 6:
            other = rnd.choice(self.seeds)[1]
            start = rnd.randrange(ADDRESSES, len(other))
            data[at:] = other[start:]
        elif what == 7:
            data[ADDRESSES:ADDRESSES] = struct.pack("!HH", rnd.choice(TYPES[:2]), rnd.randrange(65536))
        elif what == 8:
            del data[ADDRESSES:ADDRESSES + 4]
        elif what == 9:
            struct.pack_into("!H", data, ADDRESSES, rnd.choice(TYPES))
        elif what == 10:
            size = rnd.randrange(1, 24)
            data[at:at] = data[at:at + size]
        else:
            ip = outermost_ip(bytes(data))
            if ip is not None:
                data[ip + 1] ^= rnd.randrange(1, 4) << (4 if data[ip] >> 4 == 6 else 0)

    def mutate(self, frame, most):
        data = bytearray(frame)
        for _ in range(min(int(self.rnd.expovariate(0.5)), 12)):
            self.damage(data)
            # A packet socket takes whole Ethernet headers only.
            if len(data) < frames.ETH_HLEN:
                data += bytes(frames.ETH_HLEN - len(data))
        return data[:most]

    def frame(self, number):
        data = self.mutate(self.rnd.choice(self.seeds)[1], MTU + frames.ETH_HLEN)
        data[:ADDRESSES] = ELSEWHERE + frames.source(number)
        return bytes(data)

    def described(self, number):
        """(virtio header, frame)"""
        head, frame = self.rnd.choice(self.gso if self.rnd.randrange(3) else self.seeds)
        data = self.mutate(frame, 65000) if self.rnd.randrange(4) else bytearray(frame)
        data[:ADDRESSES] = ELSEWHERE + frames.source(number)
        fields = list(struct.unpack("@BBHHHH", head))
        for _ in range(self.rnd.choice((0, 0, 0, 1, 1, 2, 6))):
            at = self.rnd.randrange(6)
            fields[at] = self.rnd.choice((0, 1, 4, 5, 0x81, 0x84) if at == 1 else (0, 1, 2, 3, 4) if at == 0 else
                                         (0, 1, 14, 34, 54, 500, len(data), 65535, self.rnd.randrange(65536)))
        # The kernel cuts UFO over IPv6 in memory that it shares with clones, AQM or not.
        if fields[1] & 0x7F == UFO:
            fields[1] = TCP4
        # A device that is told to write its checksum over that of IP leaves none to compare a mark with.
        ip = outermost_ip(bytes(data))
        if ip is not None and abs(fields[4] + fields[5] - (ip + 10)) < 2:
            fields[0] &= ~1
        # One byte a segment is one kind of damage; a thousand of them would be nothing but that.
        if fields[3] and len(data) // fields[3] > 200:
            fields[3] = len(data) // 50
        head = struct.pack("@BBHHHH", *(value & (0xFF if n < 2 else 0xFFFF) for n, value in enumerate(fields)))
        return head, bytes(data)


def complain(what, head, frame):
    """A frame that fails, as the corpus holds it."""
    lib.note(f"{what}\n{head.hex() if head else '-'} {frame.hex()}")


def batches(total, most=BATCH):
    """Sizes of the parts that fit the queues."""
    while total > 0:
        yield min(total, most)
        total -= most


def tell(kind, frames_, counts):
    lib.note(f"seed {SEED}: {frames_} frames by {kind}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))


def judge_batch(sent, got, counts, allowed):
    """Compare what came with what was sent; allowed(ip, codepoint, verdict)."""
    bad = 0
    for number, frame in sent.items():
        ip = outermost_ip(frame)
        codepoint = None if ip is None else frames.ecn_of(frame, ip)
        copies = got.get(number, [])
        verdict = frames.judge(frame, copies[0], ip) if copies else "lost"
        if len(copies) > 1:
            verdict = f"came {len(copies)} times"
        counts[verdict if verdict in counts else "wrong"] += 1
        if not allowed(ip, codepoint, verdict):
            counts["wrong"] += 1
            bad += 1
            if bad <= 3:
                complain(f"header at {ip}, codepoint {codepoint}: {verdict}; came: "
                         f"{copies[0].hex() if copies else 'nothing'}", None, frame)
    stray = set(got) - set(sent)
    expect(not stray, f"frames {sorted(stray)[:5]} came from nowhere")
    expect(not bad, f"{bad} frames of a batch are wrong, seed {SEED}")


def marking_rule(ip, codepoint, verdict):
    return verdict == ("marked" if ip is not None and codepoint in (ECT1, ECT0) else "same")


def dropping_rule(ip, codepoint, verdict):
    if verdict == "lost":
        return ip is None or codepoint == NOT_ECT
    return verdict == "same" or (verdict == "marked" and codepoint in (ECT1, ECT0))


def scoring_rule(ip, codepoint, verdict):
    """What is alone in the queue is not marked."""
    return verdict == "same" or marking_rule(ip, codepoint, verdict)


def fuzz_marks(way, total, name=None, rule=marking_rule, wait=0, **knobs):
    """Statistics of a dualpi2 through which this many frames went, each marked as the rule says. With wait, the L4S
    queue has been there for so many seconds when they come.
    """
    counts = {"same": 0, "marked": 0, "lost": 0, "wrong": 0}
    mutator = Mutator(name or way)
    first = 0       # of those before the frames that are judged, how many were marked
    with hostile.no_splat(), GsoRig("50kbit", ecn_mask=lib.ANY_ECT, **ROOMY, **MARK_ALL_L, **knobs) as rig:
        # A ring has so many slots, each for one frame.
        for size in batches(total, frames.RingSender.SLOTS - START if way == "ring" else BATCH):
            injector = rig.injector(way)
            load = Load(injector)
            load.start()
            if wait:
                load.fill(10, ECT1, 1514)
                time.sleep(wait)
            begin = len(load.sent)
            for _ in range(size):
                number = len(load.sent) + 1
                frame = mutator.frame(number)
                if way == "ring":
                    frame = frame[:injector.ROOM]
                load.sent[number] = ("fuzz", frame, None, None)
                injector.send(frame)
            got = rig.out.drain(4)
            sent = {n: item[1] for n, item in load.sent.items() if n > begin}
            for number in range(1, begin + 1):
                frame = load.sent[number][1]
                ip = outermost_ip(frame)
                first += [frames.judge(frame, came, ip) for came in got.pop(number, [])].count("marked")
            if way == "ring":
                for slot, item in enumerate(load.sent.values()):
                    expect_equal(injector.content(slot, len(item[1])), item[1], "the sender's pages")
            judge_batch(sent, got, counts, rule)
        st = rig.check()
        expect_equal((st["mark_failed"], st["drops"]), (0, 0), "failed marks, drops")
        expect_equal(st["l"]["marked_native"] + st["c"]["marked_native"], counts["marked"] + first, "native marks")
        tell(name or way, total, counts)
        return st


@test("fuzz")
def frames_from_a_packet_socket_all_marked_byte_exact():
    fuzz_marks("socket", FRAMES * 3 // 10)


@test("fuzz")
def frames_that_are_scored_byte_exact_in_either_queue():
    st = fuzz_marks("socket", FRAMES // 10, "qprotect", scoring_rule, 2, qprotect=1, bandwidth=5000)
    lib.note(f"queue protection: {st['qprotect']}")
    expect(st["qprotect"]["scored"] > FRAMES // 50, "hardly any frame was scored")
    expect(st["qprotect"]["redirected"] > FRAMES // 200, "hardly any frame was redirected")


@test("fuzz")
def frames_from_a_packet_ring_all_marked_byte_exact():
    fuzz_marks("ring", FRAMES // 10)


@test("fuzz")
def frames_from_a_packet_socket_dropped_and_counted():
    """p_C is 1: Not-ECT and non-IP packets are dropped except for one in 65; the rest comes unchanged."""
    counts = {"same": 0, "marked": 0, "lost": 0, "wrong": 0}
    mutator = Mutator("drop")
    total = FRAMES * 2 // 10
    with hostile.no_splat(), GsoRig("1mbit", **ROOMY, **MARK_ALL) as rig:
        for size in batches(total):
            load = Load(rig.injector("socket"))
            load.fill(4, ECT0, 1514)
            for _ in range(size):
                number = len(load.sent) + 1
                load.sent[number] = ("fuzz", mutator.frame(number), None, None)
                load.injector.send(load.sent[number][1])
            load.fill(6, ECT0, 1514)
            judge_batch({n: item[1] for n, item in load.sent.items()}, rig.out.drain(4), counts, dropping_rule)
        st = rig.check()
        expect_equal((st["c"]["dropped_aqm"], st["drops"], st["mark_failed"]), (counts["lost"], counts["lost"], 0),
                     "dropped by AQM, drops, failed marks")
        expect(counts["lost"] > total // 4, "too few drops for a test")
        tell("drop", total, counts)


def without_checksum(found, head, frame):
    """A checksum that the device is to compute over bytes of the IP header too, as a lying description wants it,
    changes when that is marked: then the place for it is no part of the comparison.
    """
    flags, _, _, _, start, offset = struct.unpack("@BBHHHH", head)
    ip = outermost_ip(frame)
    if not flags & 1 or ip is None or start >= ip + 20:
        return found
    at = start + offset
    return [f[:at] + bytes(len(f[at:at + 2])) + f[at + 2:] for f in found]


def all_that_leaves(rig):
    """The shaper counts the headers that a lying description adds to each segment: megabytes, in the worst case,
    after which it says nothing for minutes.  So ask the qdisc when it is over.
    """
    got = {}
    for _ in range(1000):
        over = not rig.stats()["qlen"]
        for number, found in rig.out.drain(4).items():
            got.setdefault(number, []).extend(found)
        if over:
            return got
    raise lib.Failure("packets stay in the queue")


def described_over_a_bridge(split, total):
    counts = {"same": 0, "marked": 0, "lost": 0, "refused": 0}
    mutator = Mutator(f"bridge {split}")
    with hostile.no_splat(), GsoRig("200kbit", bridge=True, ecn_mask=lib.ANY_ECT, split_gso=split, **ROOMY,
                                    **MARK_ALL_L) as rig:
        filler = frames.Sender(rig.netns, "out")
        rig.stack.callback(filler.close)
        for size in batches(total):
            load = Load(filler)
            # The first ones are not marked; those that follow are before them at the shaper.
            load.fill(12, ECT1, 1514)
            sent = {}
            for number in range(1000, 1000 + size):
                head, frame = mutator.described(number)
                sent[number] = (head, frame)
                counts["refused"] += not rig.inp.send(frame, head)
            after = {n: f for n, f in all_that_leaves(rig).items() if n >= 1000}
            before = rig.side.drain(9)

            def ip_of(frame):
                tagged, = struct.unpack_from("!H", frame, 12)
                return outermost_ip(frame, int(tagged in (ETH_P_8021Q, ETH_P_8021AD)))
            bad = []
            for number in sorted(set(before) | set(after)):
                came, went = (without_checksum(found.get(number, []), *sent[number]) for found in (before, after))
                result, wrong = hostile.pair_up({number: came}, {number: went} if went else {}, ip_of)
                for _, codepoint, verdict in result:
                    if verdict != ("marked" if codepoint in (ECT1, ECT0) else "same"):
                        wrong.append(f"{number}, codepoint {codepoint}: {verdict}")
                    counts[verdict if verdict in counts else "lost"] += 1
                if wrong:
                    bad.append(wrong[0])
                    if len(bad) <= 3:
                        complain(wrong[0], *sent[number])
            expect(not bad, f"{len(bad)} frames of a batch are wrong, seed {SEED}")
        st = rig.stats()
        expect_equal((st["qlen"], st["backlog"], st["memory_used"], st["mark_failed"]), (0, 0, 0, 0),
                     "left, failed marks")
        if split:
            lib.check_identities(st)
        tell(f"bridge, split {split}", total, counts)


@test("fuzz")
def frames_with_virtio_headers_over_a_bridge_split_all_marked_byte_exact():
    described_over_a_bridge(1, FRAMES * 2 // 10)


@test("fuzz")
def frames_with_virtio_headers_over_a_bridge_not_split_all_marked_byte_exact():
    described_over_a_bridge(0, FRAMES // 10)


if __name__ == "__main__":
    lib.main()
