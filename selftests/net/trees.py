# SPDX-License-Identifier: GPL-2.0-only
"""Trees of qdiscs on a dummy device with dualpi2 at the leaves, traffic into them, and the sums that
must agree in them at any time.

    with Tree("htb_qfq", "1mbit", limit=60) as tree:
        tree.mix.send(ECT1, 500)
        tree.check_now("with a packet")
        tree.check_all()

Offered is what the sender counts, delivered what the device counts; neither comes from a qdisc.
This is not the place for tests, nor for what lib.py does for a single dualpi2.
"""

import contextlib
import os
import socket
import time

import lib
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal, pack

UDP_SEGMENT = 103
SO_SNDBUFFORCE = 32
ECNS = (NOT_ECT, ECT1, ECT0, CE)
UDP_HEADERS = 42        # Ethernet, IPv4, UDP

# p' goes from 0 to 1 within some 100 ms of standing queue and back: drops at departure, in overload
# and out of it.
HARSH = {"target": 1000, "tupdate": 1000, "alpha": 1000, "beta": 1000}
# The controller does nothing.
CALM = {"target": 4294967, "alpha": 1, "beta": 1}

# Trees

TBF = "qdisc add dev d0 root handle 1: tbf rate {rate} burst 4000 limit 100000000\n"
HTB = """\
qdisc add dev d0 root handle 1: htb default 10
class add dev d0 parent 1: classid 1:10 htb rate {rate} ceil {rate} burst 1514 cburst 1514 quantum 1514
"""
HFSC = """\
qdisc add dev d0 root handle 1: hfsc default 10
class add dev d0 parent 1: classid 1:10 hfsc sc rate {rate} ul rate {rate}
"""
QFQ = """\
qdisc add dev d0 parent {over} handle 2: qfq
class add dev d0 parent 2: classid 2:1 qfq weight 1 maxpkt 2048
filter add dev d0 parent 2: matchall classid 2:1
"""
DRR = """\
qdisc add dev d0 parent {over} handle 2: drr
class add dev d0 parent 2: classid 2:1 drr quantum 1514
filter add dev d0 parent 2: matchall classid 2:1
"""
ETS = "qdisc add dev d0 parent {over} handle 2: ets bands 2 quanta 1514 1514 priomap" + 16 * " 0" + "\n"
PRIO = "qdisc add dev d0 parent {over} handle 2: prio bands 2 priomap" + 16 * " 0" + "\n"
NETEM = "qdisc add dev d0 parent {over} handle 2: netem delay 1ms limit 100000\n"


def under(over, lines, where):
    """One qdisc below a shaper's class."""
    return (over + lines.replace("{over}", where), "2:1", 1)


# name: lines for tc -batch, parent of dualpi2, transmit queues of the device
TREES = {
    "tbf": (TBF, "1:1", 1),
    "htb": (HTB, "1:10", 1),
    "hfsc": (HFSC, "1:10", 1),
    "drr": under(TBF, DRR, "1:1"),
    "qfq": under(TBF, QFQ, "1:1"),
    "ets": under(TBF, ETS, "1:1"),
    "prio": under(TBF, PRIO, "1:1"),
    "netem": under(TBF, NETEM, "1:1"),
    # tbf splits GSO packets itself, these do not; hfsc looks at the length of the next packet.
    "htb_drr": under(HTB, DRR, "1:10"),
    "htb_qfq": under(HTB, QFQ, "1:10"),
    "htb_ets": under(HTB, ETS, "1:10"),
    "htb_prio": under(HTB, PRIO, "1:10"),
    "hfsc_qfq": under(HFSC, QFQ, "1:10"),
    "mq": ("qdisc add dev d0 root handle 1: mq\n" + "".join(
        f"qdisc add dev d0 parent 1:{n} handle 1{n}: tbf rate {{rate}} burst 4000 limit 100000000\n"
        for n in range(1, 5)), "1{n}:1", 4),
    "root": ("", "root", 1),
    # No shaper: the device takes everything at once.
    "qfq_alone": (QFQ.replace("parent {over}", "root"), "2:1", 1),
}


class Tree:
    """A namespace with a dummy device d0, and a tree of qdiscs with dualpi2 at its leaves."""

    serial = iter(range(1000))
    passed = False                      # was bypass on, so that not all that came was counted?

    def __init__(self, name, rate="10mbit", mtu=1500, stab="", words=None, **knobs):
        self.name, self.rate, self.mtu, self.stab, self.words = name, rate, mtu, stab, words
        self.knobs = knobs
        self.netns = f"dpa{os.getpid()}-{next(self.serial)}"
        self.lines, self.parent, self.queues = TREES[name]
        # Handle of each dualpi2, and its parent.
        self.leaves = {f"2{n}:": self.parent.format(n=n) for n in range(1, self.queues + 1)} \
            if self.queues > 1 else {"10:": self.parent}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.run(["ip", "netns", "add", self.netns])
            stack.callback(lib.run, ["ip", "netns", "del", self.netns], check=False)
            with lib.in_netns(self.netns):
                for name, value in (("accept_dad", 0), ("addr_gen_mode", 1), ("router_solicitations", 0)):
                    with open(f"/proc/sys/net/ipv6/conf/default/{name}", "w", encoding="ascii") as file:
                        file.write(str(value))
            lib.run(["ip", "-batch", "-"], self.netns, stdin=f"""\
link add d0 mtu {self.mtu} numtxqueues {self.queues} type dummy
link set dev d0 up
""" + ("""\
addr add 10.7.0.1/24 dev d0
addr add fd07::1/64 dev d0 nodad
""" if self.mtu >= 1280 else ""))
            self.build()
            self.mix = Mix(self.netns)
            stack.callback(self.mix.close)
            # What the kernel said on its own account at link up is no part of the test.
            self.before = self.delivered()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def build(self):
        lines = self.lines.format(rate=self.rate)
        if self.stab:
            lines = lines.replace("root handle", f"root {self.stab} handle", 1)
        if lines:
            lib.run(["tc", "-batch", "-"], self.netns, stdin=lines)
        for handle, parent in self.leaves.items():
            self.add(handle, parent)

    def add(self, handle, parent, flags=lib.NLM_F_CREATE | lib.NLM_F_EXCL):
        if self.words is not None:
            where = "root" if parent == "root" else f"parent {parent}"
            lib.tc(f"qdisc add dev d0 {where} handle {handle} {self.words}", self.netns)
            if self.knobs:
                self.change(**self.knobs)
            return
        error, text = lib.tc_request(self.netns, lib.RTM_NEWQDISC, flags, "d0", handle, parent,
                                     "dualpi2", pack(**self.knobs) if self.knobs else None)
        if error:
            raise Failure(f"add of dualpi2: {os.strerror(error)}: {text}")

    def try_change(self, options, handle="10:"):
        """Returns the error number of a change."""
        return lib.tc_request(self.netns, lib.RTM_NEWQDISC, 0, "d0", handle, self.leaves[handle],
                              "dualpi2", options)[0]

    def change(self, **knobs):
        for handle in self.leaves:
            expect_equal(self.try_change(pack(**knobs), handle), 0, f"change {knobs}")

    def dump(self):
        """{handle: statistics} of all qdiscs, dualpi2's own included."""
        found = {}
        for qdisc in lib.qdisc_dump(self.netns, "d0"):
            st = dict(qdisc["stats"], kind=qdisc["kind"], handle=qdisc["handle"], parent=qdisc["parent"])
            if qdisc["kind"] == "dualpi2":
                st |= lib.parse_xstats(qdisc["app"])
                st["knobs"] = lib.unpack(qdisc["options"])
                st["was_passed"] = self.passed
            found[qdisc["handle"]] = st
        return found

    def leaf(self):
        return self.dump()["10:"]

    def delivered(self):
        """(packets, bytes) that the device got."""
        with lib.in_netns(self.netns), open("/proc/self/net/dev", encoding="ascii") as file:
            numbers = next(line for line in file if line.lstrip().startswith("d0:")).split(":")[1].split()
        return int(numbers[9]), int(numbers[8])

    def sent(self):
        """Packets that the device got since the test began."""
        return self.delivered()[0] - self.before[0]

    # These take a packet out of their child when somebody peeks at them, and keep it.
    KEEPS_PEEKED = ("drr", "qfq", "ets", "htb", "hfsc")

    def check_sums(self, dump, text):
        """Each qdisc holds what its children hold, and at most one packet that was peeked at."""
        for handle, st in dump.items():
            children = [child for child in dump.values()
                        if child["parent"] not in ("root", "0:")
                        and child["parent"].split(":")[0] + ":" == handle]
            # netem has a queue of its own besides.
            if not children or st["kind"] == "netem":
                continue
            extra, size = (st[key] - sum(child[key] for child in children) for key in ("qlen", "backlog"))
            if extra == 1 and st["parent"] != "root" and st["kind"] in self.KEEPS_PEEKED:
                expect(0 < size <= 65535, f"{text}: {st['kind']} {handle} peeked at a packet of {size} bytes")
                continue
            expect_equal((extra, size), (0, 0),
                         f"{text}: qlen and backlog of {st['kind']} {handle} beyond its children's")

    def sample(self):
        """Compare sums at one moment; False if packets moved between the parts of the dump."""
        one, two = self.dump(), self.dump()
        if any(one[h][key] != two[h][key] for h in one for key in ("qlen", "backlog", "packets", "drops")):
            return False
        self.check_sums(one, "under traffic")
        for handle in self.leaves:
            lib.check_identities(one[handle])
        return True

    def check_now(self, text):
        """The same, until there was such a moment."""
        for _ in range(100):
            one, two = self.dump(), self.dump()
            if all(one[h][key] == two[h][key] for h in one for key in ("qlen", "backlog", "packets", "drops")):
                self.check_sums(one, text)
                return
        raise Failure(f"{text}: no two dumps are of one moment")

    def drain(self, seconds=120):
        """Wait until nothing is queued anywhere."""
        for _ in range(int(seconds / 0.05)):
            dump = self.dump()
            if not any(st["qlen"] for st in dump.values()):
                return dump
            time.sleep(0.05)
        raise Failure(f"after {seconds} s: " + ", ".join(
            f"{st['kind']} holds {st['qlen']} packets" for st in dump.values() if st["qlen"]))

    def check_empty(self, text="after the drain"):
        """Nothing is left anywhere.  Returns the dump."""
        dump = self.drain()
        for handle, st in dump.items():
            expect_equal((st["qlen"], st["backlog"]), (0, 0), f"{text}: qlen and backlog of {st['kind']} {handle}")
        for handle in self.leaves:
            expect_equal(dump[handle]["memory_used"], 0, f"{text}: memory_used")
            lib.check_identities(dump[handle])
            lib.check_classes(self.netns, "d0", handle)
        return dump

    def check_codepoints(self, leaves):
        """What was sent with each codepoint arrived with it, in whichever queue; of a GSO packet that could not be
        split nothing did.
        """
        if not any(st["filter_dropped"] or st["gso_failed"] for st in leaves):
            for ecn, name in enumerate(lib.CODEPOINTS):
                came = sum(st[q]["counters"][f"arrived_{name}"] for st in leaves for q in "cl")
                expect_equal(came, self.mix.by_ecn[ecn], f"arrived_{name}, against offered")

    def check_all(self, offered=None, exact_drops=True):
        """Empty, and offered = delivered + dropped, and all levels agree.  Returns the leaves' sums."""
        dump = self.check_empty()
        leaves = [dump[handle] for handle in self.leaves]
        if offered is None:
            offered = self.mix.offered
            self.check_codepoints(leaves)
        packets, size = (sum(st[key] for st in leaves) for key in ("packets", "bytes"))
        dropped = sum(st[q][key] for st in leaves for q in "cl" for key in st[q] if key.startswith("dropped_"))
        failed = sum(st["filter_dropped"] + st["gso_failed"] for st in leaves)
        lib.note(f"offered {offered}, sent {packets}, dropped {dropped}; " + ", ".join(
            f"{key} {sum(st[q][key] for st in leaves for q in 'cl')}" for key in leaves[0]["c"]
            if key.startswith("dropped_") and any(st[q][key] for st in leaves for q in "cl")))
        expect_equal(packets + dropped + failed, offered, "sent + dropped, against offered")
        expect_equal(self.sent(), packets, "packets at the device, against sent")
        expect_equal(sum(st[q]["sent"] for st in leaves for q in "cl"), packets, "sent of C and L")
        for st in dump.values():
            # mq counts its children's.
            if st["handle"] in self.leaves or (self.queues > 1 and st["kind"] != "mq"):
                continue
            expect_equal((st["packets"], st["bytes"]), (packets, size), f"packets and bytes of {st['kind']}")
            if exact_drops and st["kind"] != "netem":
                expect_equal(st["drops"], dropped, f"drops of {st['kind']}")
        return leaves


class Mix:
    """UDP sockets of each codepoint, and how many packets they sent."""

    def __init__(self, netns, host=2):
        self.host = host
        self.offered = 0
        self.by_ecn = [0] * len(ECNS)
        self.sockets = {}
        self.netns = netns

    def socket(self, ecn, v6):
        """Sockets are made when first used, because a test may have no addresses."""
        if (ecn, v6) not in self.sockets:
            with lib.in_netns(self.netns):
                sock = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
            if v6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, ecn)
            else:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
            sock.connect((f"fd07::{self.host}" if v6 else f"10.7.0.{self.host}", 9))
            self.sockets[ecn, v6] = sock
        return self.sockets[ecn, v6]

    def send(self, ecn, size=1000, v6=False):
        """One packet; size is with the Ethernet header.  The kernel does not tell a UDP socket
        about local drops, so nobody can mistake its word for an account.
        """
        self.socket(ecn, v6).send(b"u" * (size - UDP_HEADERS - 20 * v6))
        self.offered += 1
        self.by_ecn[ecn] += 1

    def gso(self, ecn, segments, size=1000, last=None, v6=False):
        """One GSO packet, each segment as long as send(size) would make it, the last of `last`."""
        payload = size - UDP_HEADERS - 20 * v6
        total = payload * segments - (size - last if last else 0)
        sock = self.socket(ecn, v6)
        sock.setsockopt(socket.SOL_UDP, UDP_SEGMENT, payload)
        sock.send(b"g" * total)
        sock.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 0)
        self.offered += segments
        self.by_ecn[ecn] += segments

    def close(self):
        for sock in self.sockets.values():
            sock.close()
