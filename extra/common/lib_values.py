# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of csaqm, vdq_csaqm and ppv share: netlink, a wire on which each frame has a value, queues by brute
force, trees.

    with Wire("vdq_csaqm", bandwidth=125000) as wire:
        wire.send(wire.frame(1000, ECT1), value=30000)
        wire.idle()
        wire.arrivals()             [(ns, number, frame)] at the other end
        wire.marks()                [(number, mark)] of frames as they left the device
    pack(kind, limit=5)             TCA_OPTIONS; unpack(kind, options) the reverse
    of(qdisc)                       one of lib.qdisc_dump(), its statistics and options decoded
    check_accounts(st)              raise Failure unless the counters fit together
    Model(kind, knobs)              virtual queues record by record, thresholds by sorting
    ValueTree(name, kind, knobs)    parents.Tree with the qdisc at its leaves

The numbers in here come from the papers and from the comments of *_uapi.h, not from the code of the qdiscs.
"""

import contextlib
import ctypes
import errno
import functools
import socket
import struct
import time

import lib_extra

import frames
import lib
import wire
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal
from parents import Account, Kind, Tree

KINDS = ("csaqm", "vdq_csaqm")
ECNS = (NOT_ECT, ECT1, ECT0, CE)
HEADER = lib.Header("extra/csaqm/csaqm_uapi.h", "extra/ppv/ppv_uapi.h")
ALL = HEADER.attributes("TCA_CSAQM_")
KNOBS = {"csaqm": {name: knob for name, knob in ALL.items()
                   if knob[0] <= HEADER.number("TCA_CSAQM_ECN") or name == "arrival_drop"},
         "vdq_csaqm": {name: knob for name, knob in ALL.items() if name != "arrival_drop"},
         "ppv": HEADER.attributes("TCA_PPV_")}
# The limit that is shown follows the buffers.
DEFAULTS = {"csaqm": {"tupdate": 5000, "target": 5000, "buffer": 500000, "carry": 0, "ecn": 1, "arrival_drop": 0},
            "vdq_csaqm": {"tupdate": 10000, "target": 20000, "buffer": 200000, "carry": 0, "ecn": 1, "target_l": 1000,
                          "buffer_l": 50000, "vrate": 984, "vrate_l": 900}}
MARK, IPV4_ID = (HEADER.number(f"TC_PPV_CARRY_{name}") for name in ("MARK", "IPV4_ID"))
LONGEST_US = 4294967
TVF = HEADER.number("TCA_PPV_TVF")
MTU_BYTES = 1514
VALUE_MAX = 65535

XSTATS = {kind: HEADER.layout(f"tc_{name}_xstats") for kind, name in
          (("csaqm", "csaqm"), ("vdq_csaqm", "csaqm"), ("ppv", "ppv"))}

SO_PRIORITY, SO_ATTACH_FILTER, SO_MARK = 12, 26, 36
SEC = 1000000000
EXACT = lib.user_mode_linux()


# Netlink

def pack(kind, **values):
    """Options of a kind."""
    return lib.encode(KNOBS[kind], **values)


def unpack(kind, options):
    """The reverse."""
    return lib.decode(KNOBS[kind], options)


def tvf(number, points):
    """A function as an attribute; points are (bytes per second, coded value)."""
    return lib.attr(TVF | lib.NLA_F_NESTED, lib.attr(1, struct.pack("I", number)) + lib.attr(
        2, b"".join(struct.pack("QII", rate, value, 0) for rate, value in points)))


def tvfs(options):
    """{number: points} of all functions that are shown."""
    nests = [lib.attrs(data) for kind, data in lib.attr_list(options) if kind & lib.NLA_TYPE_MASK == TVF]
    return {struct.unpack("I", nest[1])[0]: [point[:2] for point in struct.iter_unpack("QII", nest[2])]
            for nest in nests}


def of(qdisc):
    """Statistics and options."""
    kind = qdisc["kind"]
    st = dict(qdisc["stats"], kind=kind, handle=qdisc["handle"], parent=qdisc["parent"], raw=qdisc["options"])
    if kind in XSTATS:
        expect_equal(len(qdisc["app"]), XSTATS[kind].size, "bytes of TCA_STATS_APP")
        for name, value in XSTATS[kind].read(qdisc["app"]).items():
            queue, _, field = name.rpartition(".")
            (st.setdefault(queue, {}) if queue else st)[field] = value
        st["knobs"] = unpack(kind, qdisc["options"])
    return st


def total(st, *names):
    """Of both queues."""
    return sum(st[queue][name] for queue in "cl" for name in names)


DROPS = ("dropped_value", "dropped_buffer", "dropped_limit", "purged")


def check_accounts(st, was_reset=False):
    """Fail unless every packet that arrived was forwarded, dropped or purged, or waits, and the rest fits, too.

    A reset purges without counting in the qdisc's own drops.  A packet that a parent peeked at is forwarded, and still
    in qlen and backlog.
    """
    same, wrong = [], []
    for name in "cl":
        q = st[name]
        same.append((q["arrived"], q["forwarded"] + sum(q[key] for key in DROPS) + q["packets"],
                     f"{name}: arrived and forwarded + dropped + purged + waiting"))
        if not q["packets"]:
            same.append((q["bytes"], 0, f"{name}: bytes of no packets"))
        if q["marked"] > q["forwarded"] or q["no_value"] > q["arrived"] or q["delay_max_ns"] > q["delay_sum_ns"] or \
           q["threshold"] > 65536 or q["bytes"] < q["packets"]:
            wrong.append(f"{name}: {q}")
    if st["kind"] == "csaqm":
        same.append((set(st["l"].values()), {0}, "all of l of csaqm"))
    same += [(total(st, "forwarded"), st["packets"], "forwarded and packets of the qdisc")]
    if not was_reset:
        same.append((st["drops"], total(st, *DROPS) + st["gso_failed"], "drops and all that was dropped"))
    held = st["qlen"] - total(st, "packets")
    if not held:
        same.append((st["backlog"], total(st, "bytes"), "backlog and bytes that wait"))
    if held not in (0, 1):
        wrong.append(f"qlen {st['qlen']} with {total(st, 'packets')} packets queued")
    wrong += [f"{what}: {one} != {other}" for one, other, what in same if one != other]
    if wrong:
        raise Failure("counters do not fit together: " + "; ".join(wrong))


# The reference

class Model:
    """Virtual queues by brute force: a list of records each, nothing summed up, thresholds by sorting."""

    def __init__(self, kind, bandwidth, **knobs):
        self.dual = kind == "vdq_csaqm"
        self.knobs = DEFAULTS[kind] | knobs | {"bandwidth": bandwidth}
        at_least = 2 * MTU_BYTES
        self.share = {"c": self.knobs.get("vrate", 1000), "l": self.knobs.get("vrate_l", 0)}
        self.target = {name: max(bandwidth * self.share[name] // 1000 * self.knobs.get(key, 0) // 1000000, at_least)
                       for name, key in (("c", "target"), ("l", "target_l"))}
        self.buffer = {name: max(bandwidth * self.knobs.get(key, 0) // 1000000, 2 * at_least)
                       for name, key in (("c", "buffer"), ("l", "buffer_l"))}
        self.vbuffer = {"c": self.buffer["c"] + (self.buffer["l"] if self.dual else 0), "l": self.buffer["l"]}
        self.limit = self.knobs.get("limit") or min(max(self.vbuffer["c"] // 256, 1000), 1 << 20)
        self.records = {"c": [], "l": []}
        self.frac = {"c": 0, "l": 0}
        self.threshold = {"c": 0, "l": 0}
        # (number, bytes, value, ecn) of each that waits
        self.waiting = {"c": [], "l": []}
        # numbers of those that were dropped for one that arrived
        self.replaced = []

    def queue_of(self, ecn):
        return "l" if self.dual and ecn in (ECT1, CE) else "c"

    def related(self, queue):
        """Virtual queues that a packet of this queue is in."""
        return ("c", "l") if queue == "l" else ("c",)

    def length(self, name):
        return sum(size for size, _ in self.records[name])

    def is_full(self, queue, size):
        """Whether there is no room for a packet.  What is empty takes a packet of any length."""
        waiting = sum(packet[1] for packet in self.waiting[queue])
        return (waiting and waiting + size > self.buffer[queue]) or \
            any((self.records[name] and self.length(name) + size > self.vbuffer[name]) or
                len(self.records[name]) >= self.limit for name in self.related(queue))

    def arrive(self, number, size, value, ecn):
        """False if it is dropped."""
        queue = self.queue_of(ecn)
        if sum(map(len, self.waiting.values())) >= self.limit:
            return False
        # At most 64 for one, and the last one stays.
        for _ in range(min(64, len(self.waiting[queue]) - 1) if self.knobs.get("arrival_drop") else 0):
            if not self.is_full(queue, size) or not self.waiting[queue][0][2] < self.threshold[queue] <= value:
                break
            self.replaced.append(self.purge(queue))
        if self.is_full(queue, size):
            return False
        self.waiting[queue].append((number, size, value, ecn))
        for name in self.related(queue):
            self.records[name].append([size, value])
        return True

    def take(self, name, size):
        """Take bytes from the oldest records."""
        records = self.records[name]
        while records and size:
            part = min(size, records[0][0])
            records[0][0] -= part
            size -= part
            if not records[0][0]:
                del records[0]

    def serve(self, size):
        """The link was busy with so many bytes, or idle for as long."""
        for name in "cl" if self.dual else "c":
            whole, self.frac[name] = divmod(size * self.share[name] + self.frac[name], 1000)
            self.take(name, whole)
            if not self.records[name]:
                self.frac[name] = 0

    def drop(self, queue, size):
        """A packet left its queue otherwise."""
        for name in self.related(queue):
            self.take(name, size)

    def purge(self, queue):
        """The oldest one is dropped by a change."""
        number, size, _, _ = self.waiting[queue].pop(0)
        self.drop(queue, size)
        return number

    def forget(self, size):
        """A virtual queue has no more than so many records any more."""
        for name in "cl":
            del self.records[name][:max(0, len(self.records[name]) - size)]

    def update(self):
        """New thresholds: the smallest value so that what is at or beyond it is within the target."""
        for name in "cl":
            left, found = self.target[name], 0
            if self.length(name) > left:
                for size, value in sorted(self.records[name], key=lambda record: -record[1]):
                    left -= size
                    if left < 0:
                        # The whole value is too much.
                        found = value + 1
                        break
            self.threshold[name] = found

    def verdict(self, queue, value, ecn):
        """"pass", "mark" or "drop" of a packet that is to leave."""
        if value >= max(self.threshold[name] for name in self.related(queue)) or ecn == CE:
            return "pass"
        return "mark" if ecn == ECT1 or (ecn == ECT0 and self.knobs["ecn"]) else "drop"

    def leave(self):
        """The link asks for a packet: [(number, verdict)], the last of which is sent, if there is one."""
        found = []
        while any(self.waiting.values()):
            queue = "l" if self.waiting["l"] else "c"
            number, size, value, ecn = self.waiting[queue].pop(0)
            verdict = self.verdict(queue, value, ecn)
            found.append((number, verdict))
            if verdict != "drop":
                self.serve(size)
                break
            self.drop(queue, size)
        return found

    def state(self):
        """What is to be shown."""
        return {name: (self.length(name), self.threshold[name], len(self.waiting[name]),
                       sum(packet[1] for packet in self.waiting[name])) for name in "cl"}


def state_of(st):
    """The same of a qdisc."""
    return {name: (q["virtual_bytes"], q["threshold"], q["packets"], q["bytes"])
            for name, q in ((name, st[name]) for name in "cl")}


# The wire

class MarkTap:
    """The skb marks of frames that leave a device, which packet sockets do not report: four sockets get copies cut
    to the length that a byte of the mark says.  Frames must have at least 320 bytes.
    """

    SHORTEST = 64

    def __init__(self, netns, dev):
        self.sockets = []
        for shift in (0, 8, 16, 24):
            # ld mark; rsh shift; and 255; add 64; ret A
            code = b"".join(struct.pack("HBBI", *line) for line in (
                (0x20, 0, 0, 0xfffff014), (0x74, 0, 0, shift), (0x54, 0, 0, 255), (0x04, 0, 0, self.SHORTEST),
                (0x16, 0, 0, 0)))
            held = ctypes.create_string_buffer(code, len(code))
            with lib.in_netns(netns):
                sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
                sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                                struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(held)))
                sock.setsockopt(socket.SOL_SOCKET, frames.SO_RCVBUFFORCE, 1 << 30)
                sock.bind((dev, frames.ETH_P_ALL))
            sock.setblocking(False)
            self.sockets.append(sock)

    def read(self):
        """[(number, mark)] since the last time."""
        columns = []
        for sock in self.sockets:
            column = []
            while True:
                try:
                    data, sender = sock.recvfrom(1 << 16)
                except BlockingIOError:
                    break
                except OSError as error:
                    # Once, of a device that went down.
                    if error.errno != errno.ENETDOWN:
                        raise
                    continue
                if sender[2] == frames.PACKET_OUTGOING and frames.number_of(data) is not None:
                    column.append((frames.number_of(data), len(data) - self.SHORTEST))
            columns.append(column)
        expect(len(set(map(len, columns))) == 1, "copies of frames that left were lost")
        return [(parts[0][0], sum(part[1] << 8 * n for n, part in enumerate(parts))) for parts in zip(*columns)]

    def close(self):
        for sock in self.sockets:
            sock.close()


class Wire(wire.Wire):
    """Two namespaces and a veth from w0, which has the qdisc 10:, to w1, where each frame is stamped.

    gate=True puts it under an htb that lets a packet through now and then, until .open(): virtual queues stand still,
    for they are served when packets leave, or when there are none.
    """

    addresses = ""
    GATE = """\
qdisc add dev w0 root handle 1: htb default 10
class add dev w0 parent 1: classid 1:10 htb rate 8bit ceil 8bit burst 1 cburst 1 quantum 1514
"""

    def __init__(self, kind=None, gate=False, lines="", parent=None, mtu=1500, options=None, **knobs):
        super().__init__(mtu, parent or ("1:10" if gate else "root"), self.GATE if gate else lines, calm=False, **knobs)
        self.kind, self.options, self.tap = kind, options, None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.connect(stack)
            if self.kind:
                expect_equal(self.add(), (0, ""), f"add of {self.kind}")
            self.closing = stack.pop_all()
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self.kind in KINDS and "10:" in self.dump():
                check_accounts(self.stats(), self.was_reset)
        finally:
            self.closing.__exit__(kind, error, trace)

    # The qdisc

    def add(self, flags=lib_extra.ADD, **knobs):
        """(error number, text)"""
        options = self.options if self.options is not None else pack(self.kind, **self.knobs | knobs)
        return lib_extra.request(self.netns, "w0", "10:", self.parent, self.kind, options, flags)

    def request(self, options, flags=0):
        """Change it; (error number, text)."""
        return lib_extra.request(self.netns, "w0", "10:", self.parent, self.kind, options, flags)

    def set(self, **knobs):
        expect_equal(self.request(pack(self.kind, **knobs)), (0, ""), f"change of {knobs}")

    def dump(self):
        """{handle: statistics} of all."""
        return {qdisc["handle"]: of(qdisc) for qdisc in lib.qdisc_dump(self.netns, "w0")}

    def stats(self, handle="10:"):
        return self.dump()[handle]

    def moment(self):
        """All, while nothing moved."""
        for _ in range(100):
            one, two = self.dump(), self.dump()
            if all(one[h][key] == two[h][key] for h in one for key in ("qlen", "packets", "drops")):
                return one
        raise Failure("no two dumps are of one moment")

    def idle(self, seconds=200):
        """Wait until nothing is queued anywhere."""
        until, pause = time.monotonic() + seconds, 0.05
        while time.monotonic() < until:
            dump = self.dump()
            if not any(st["qlen"] for st in dump.values()):
                for handle, st in dump.items():
                    expect_equal((st["backlog"], st["qlen"]), (0, 0), f"backlog and qlen of {st['kind']} {handle}")
                return dump
            time.sleep(pause)
            pause = min(1.1 * pause, 1)
        raise Failure(f"after {seconds} s: " + ", ".join(
            f"{st['kind']} holds {st['qlen']} packets" for st in dump.values() if st["qlen"]))

    def open(self):
        """Let all go that waits behind the gate, and whatever comes then."""
        lib.tc("class change dev w0 parent 1: classid 1:10 htb rate 10gbit ceil 10gbit burst 15140 cburst 15140 "
               "quantum 1514", self.netns)

    # Packets

    def frame(self, size=1000, ecn=NOT_ECT, v6=False, ident=0, frag=0x4000, flow=9, dscp=0, tags=()):
        """A UDP packet that has so many bytes with the Ethernet header and its tags."""
        number = next(self.numbers)
        size -= frames.ETH_HLEN + 4 * len(tags)
        if v6:
            inner = frames.ipv6(frames.udp(bytes(size - 48), flow, 9), ecn, dscp)
        else:
            inner = frames.ipv4(frames.udp(bytes(size - 28), flow, 9), ecn, dscp, ident=ident, frag=frag)
        kind = frames.ETH_P_IPV6 if v6 else frames.ETH_P_IP
        return frames.tagged(number, tags, kind, inner) if tags else frames.ether(number, kind, inner)

    def send(self, *some, value=None, priority=None, may_drop=False):
        """Send frames; value is the mark of all; how many were taken."""
        if value is not None:
            self.sender.sock.setsockopt(socket.SOL_SOCKET, SO_MARK, struct.pack("I", value))
        if priority is not None:
            self.sender.sock.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, struct.pack("I", priority))
        taken = sum(self.sender.send(frame) for frame in some)
        expect(may_drop or taken == len(some), "the qdisc rejected a packet")
        return taken

    def gso(self, payload, part, ecn=NOT_ECT, value=None, v6=False, ident=0, flow=9):
        """TCP segments with so much payload each, as one packet; what virtio says of it was believed."""
        if value is not None:
            self.vnet.sock.setsockopt(socket.SOL_SOCKET, SO_MARK, value)
        return super().gso(payload, part, ecn, v6=v6, sport=flow, ident=ident, frag=0x4000)

    def arrivals(self):
        """[(ns, number, frame)] of what came since the last time."""
        return self.stamped.read()

    def watch(self):
        """Marks are looked at from here on."""
        self.tap = MarkTap(self.netns, "w0")
        self.closing.callback(self.tap.close)

    def marks(self):
        """[(number, mark)] of frames that left the device."""
        return self.tap.read()


def primed(wire, model):
    """Packets until one stays behind the gate; the virtual queues had nothing in them when it came."""
    for _ in range(10):
        frame = wire.frame(1000, ECT0)
        wire.send(frame, value=VALUE_MAX)
        time.sleep(0.1)
        if wire.stats()["qlen"]:
            expect(model.arrive(frames.number_of(frame), len(frame), VALUE_MAX, ECT0), "the model has no room")
            return
    raise Failure("the gate lets all through")


def ecn_of(frame):
    return frames.ecn_of(frame, frames.ETH_HLEN)


# Trees

def account(st):
    """For Tree.check_all()."""
    return Account([total(st, "arrived")], total(st, "forwarded"), total(st, *DROPS))


TREE_KINDS = {kind: Kind(kind, functools.partial(pack, kind), of, check_accounts, account) for kind in KINDS}


class ValueTree(Tree):
    """A tree with one of the kinds at its leaves."""

    def __init__(self, name, kind, rate="10mbit", **knobs):
        super().__init__(name, rate, kind=TREE_KINDS[kind], **knobs)

    def value(self, ecn, value, v6=False):
        """All that Mix sends of this codepoint from here on has it."""
        self.mix.socket(ecn, v6).setsockopt(socket.SOL_SOCKET, SO_MARK, value)
