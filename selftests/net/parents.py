# SPDX-License-Identifier: GPL-2.0-only
"""All parents that tests put a qdisc below, traffic into these trees, and the sums that must agree in them at any time.

    with Tree("htb_qfq", "1mbit", limit=60) as tree:
        tree.mix.send(ECT1, 500)
        tree.check_now("with a packet")
        tree.check_all()

TREES are trees with dualpi2 at the leaves, or with another Kind.  PARENTS says of each parent how to build it so that
it holds a packet that it has peeked at, or does not, and what to change in it.
Offered is what the sender counts, delivered what the device counts; neither comes from a qdisc.
This is not the place for tests, nor for what lib.py does for a single dualpi2.
"""

import contextlib
import os
import socket
import time
from collections import namedtuple

import lib
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal, pack

UDP_SEGMENT = 103
SO_SNDBUFFORCE = 32
ECNS = (NOT_ECT, ECT1, ECT0, CE)
UDP_HEADERS = 42        # Ethernet, IPv4, UDP

# p' goes from 0 to 1 within some 100 ms of standing queue and back: drops at departure, in overload and out of it.
HARSH = {"target": 1000, "tupdate": 1000, "alpha": 1000, "beta": 1000, "p_cmax": 25}
# The controller does nothing.
CALM = {"target": 4294967, "alpha": 1, "beta": 1}

# Trees: lines for tc -batch, and the handle and the parent of each leaf.  {over} is where a part goes, {rate} the
# rate in it.

QUEUES = 4              # of a device that has more than one
ALL_ZERO = "priomap" + 16 * " 0" + "\n"
TBF = "qdisc add dev d0 root handle 1: tbf rate {rate} burst 4000 limit 100000000\n"
HTB = """\
qdisc add dev d0 root handle 1: htb default 10
class add dev d0 parent 1: classid 1:10 htb rate {rate} ceil {rate} burst 1514 cburst 1514 quantum 1514
"""
HFSC = """\
qdisc add dev d0 root handle 1: hfsc default 10
class add dev d0 parent 1: classid 1:10 hfsc sc rate {rate} ul rate {rate}
"""
LS = HFSC.replace("sc rate", "ls rate")
PRIO = "qdisc add dev d0 parent {over} handle 2: prio bands 2 " + ALL_ZERO
NETEM = "qdisc add dev d0 parent {over} handle 2: netem delay 1ms limit 100000\n"
MULTIQ = "qdisc add dev d0 parent {over} handle 2: multiq\n"
RED = ("qdisc add dev d0 parent {over} handle 2: red limit 1000000 min 100000 max 300000 avpkt 1000 burst 170 "
       "bandwidth 1mbit\n")
# sfb keeps the hash of a packet where its child may keep its own data, and forgets it: the counters
# of its bins grow, whatever the child is that does so. They are never reached here.
SFB = ("qdisc add dev d0 parent {over} handle 2: sfb limit 20000 max 10000 target 9999 increment 0.001 "
       "decrement 0.0001\n")
CBS = ("qdisc add dev d0 root handle 1: cbs hicredit 1514 locredit -1514 idleslope 200 sendslope -9800 "
       "offload 0\n")
MQ = "qdisc add dev d0 root handle 1: mq\n"
MQPRIO = "qdisc add dev d0 root handle 1: mqprio num_tc 1 map" + 16 * " 0" + f" queues {QUEUES}@0 hw 0\n"
# The gate is open for 2 ms of 50, in which a 10 Mbit/s link takes 2500 bytes.
TAPRIO = ("qdisc {verb} dev d0 parent root handle 1: taprio num_tc 1 map" + 16 * " 0" + f" queues {QUEUES}@0 "
          "base-time {start} sched-entry S 01 2000000 sched-entry S 00 {closed} clockid CLOCK_TAI\n")
# Below each queue of a device: a shaper that peeks, and one that does not.
PEEKED = "".join(TBF.replace("root handle 1:", f"parent 1:{n} handle 1{n}:") for n in range(1, QUEUES + 1))
UNPEEKED = "".join(f"""\
qdisc add dev d0 parent 1:{n} handle 1{n}: htb default 10
class add dev d0 parent 1{n}: classid 1{n}:10 htb rate {{rate}} ceil {{rate}} burst 1514 cburst 1514 quantum 1514
"""for n in range(1, QUEUES + 1))
# Everything to the first class, or what goes to 10.7.0.3 to the second one.
WHOLE = "filter add dev d0 parent 2: matchall classid 2:1\n"
SPLIT = """\
filter add dev d0 parent 2: protocol ip prio 101 u32 match ip dst 10.7.0.3/32 classid 2:2
filter add dev d0 parent 2: protocol ip prio 102 u32 match u32 0 0 classid 2:1
"""


def classes(kind, number, args):
    """drr or qfq with so many classes."""
    return f"qdisc add dev d0 parent {{over}} handle 2: {kind}\n" + "".join(
        f"class add dev d0 parent 2: classid 2:{n} {kind} {args.format(n=n)}\n" for n in range(1, number + 1))


def ets(args):
    """ets with two bands."""
    return f"qdisc add dev d0 parent {{over}} handle 2: ets bands 2 {args} {ALL_ZERO}"


DRR, QFQ = classes("drr", 1, "quantum 1514") + WHOLE, classes("qfq", 1, "weight {n} maxpkt 2048") + WHOLE
ETS = ets("quanta 1514 1514")
WHERE = {TBF: "1:1", HTB: "1:10", HFSC: "1:10", LS: "1:10"}


def each_queue(parent):
    return {f"2{n}:": parent.format(n=n) for n in range(1, QUEUES + 1)}


def below(over, lines="", leaves=None):
    """A tree of a shaper and what is below it, if anything; with one leaf by default."""
    return over + lines.replace("{over}", WHERE[over]), leaves or {"10:": "2:1" if lines else WHERE[over]}


TREES = {
    "root": ("", {"10:": "root"}),
    "tbf": below(TBF), "htb": below(HTB), "hfsc": below(HFSC),
    "drr": below(TBF, DRR), "qfq": below(TBF, QFQ), "ets": below(TBF, ETS), "prio": below(TBF, PRIO),
    "netem": below(TBF, NETEM),
    "mq": (MQ + PEEKED, each_queue("1{n}:1")),
    # tbf splits GSO packets itself, these do not; hfsc looks at the length of the next packet.
    "htb_drr": below(HTB, DRR), "htb_qfq": below(HTB, QFQ), "htb_ets": below(HTB, ETS), "htb_prio": below(HTB, PRIO),
    "hfsc_qfq": below(HFSC, QFQ),
    # No shaper: the device takes everything at once.
    "qfq_alone": (QFQ.replace("parent {over}", "root"), {"10:": "2:1"}),
    # tbf peeks through multiq, which does not count its backlog: no tree to agree with.
    "tbf_multiq": below(TBF, MULTIQ, each_queue("2:{n}")),
}
AGREEING = tuple(name for name in TREES if name != "tbf_multiq")
# For a leaf with a shaper of its own.
SHAPER_PARENTS = tuple(name for name in AGREEING if name != "qfq_alone")
ONE_LEAF = tuple(name for name in SHAPER_PARENTS if name != "mq")


def spare_qfq(name):
    """Not every kernel's qfq bears with a child that has packets and gives none."""
    if "qfq" in name and int(os.uname().release.split(".", maxsplit=1)[0]) < 7:
        raise lib.Skip("qfq of this kernel WARNs of any child that shapes")


# Parents

class Parent:
    """One parent: how to build it so that it peeks at a leaf or does not, and what to change in it."""

    def __init__(self, change, peeked=None, unpeeked=None, filters=None, takes_child=False):
        self.trees = {"peeked": peeked, "unpeeked": unpeeked}
        self.change = change
        self.filters = filters          # handle of the qdisc that takes filters
        self.takes_child = takes_child  # a change of it puts a fifo in place of its child


TWO = {"10:": "2:1", "20:": "2:2"}


def over(lines, leaves=None):
    """Under tbf, which peeks, and under htb, which does not."""
    return {"peeked": below(TBF, lines, leaves), "unpeeked": below(HTB, lines, leaves)}


TBF_CHANGE = "qdisc change dev d0 {where} handle {handle} tbf rate {rate} burst 3000 limit 100000000\n"

# Why these: all classful qdiscs of the stock kernels that can have dualpi2 below them, ets twice
# because its two kinds of bands dequeue in different ways. Left out: dsmark, atm and cbq, which are gone
# from new kernels; etf, plug, choke, gred, skbprio and teql have no children; fq and the like neither.
PARENTS = {
    # tbf peeks at whatever waits, so that there is no backlog without a peeked packet.
    "tbf": Parent(TBF_CHANGE.format(where="root", handle="1:", rate="300kbit"), peeked=TREES["tbf"]),
    # htb, ets strict, netem, cbs, mq and mqprio only ever dequeue.
    "htb": Parent("class change dev d0 parent 1: classid 1:10 htb rate 300kbit ceil 300kbit burst 3000 "
                  "cburst 3000 quantum 3000\n", unpeeked=TREES["htb"], filters="1:"),
    # Real-time service needs the length of the next packet, link sharing does not.
    "hfsc": Parent("class change dev d0 parent 1: classid 1:10 hfsc sc rate 300kbit ul rate 300kbit\n",
                   peeked=TREES["hfsc"], unpeeked=below(LS), filters="1:"),
    "drr": Parent("class change dev d0 parent 2: classid 2:1 drr quantum 3000\n",
                  peeked=below(HTB, classes("drr", 2, "quantum 100") + SPLIT, TWO),
                  unpeeked=below(HTB, classes("drr", 2, "quantum 100") + WHOLE), filters="2:"),
    # qfq peeks at enqueue and at dequeue, taprio whenever a gate opens.
    "qfq": Parent("class change dev d0 parent 2: classid 2:1 qfq weight 3 maxpkt 1600\n",
                  peeked=below(HTB, classes("qfq", 2, "weight {n} maxpkt 2048") + SPLIT, TWO), filters="2:"),
    "ets_strict": Parent("qdisc change dev d0 parent 1:10 handle 2: ets bands 3 strict 3\n",
                         unpeeked=below(HTB, ets("strict 2") + SPLIT, TWO), filters="2:"),
    "ets_quantum": Parent("qdisc change dev d0 parent 1:10 handle 2: ets bands 3 strict 1 quanta 500 700\n",
                          peeked=below(HTB, ets("quanta 100 100") + SPLIT, TWO),
                          unpeeked=below(HTB, ets("quanta 100 100") + WHOLE), filters="2:"),
    "prio": Parent("qdisc change dev d0 parent {over} handle 2: prio bands 2 priomap" + 16 * " 1" + "\n",
                   **over(PRIO.replace("bands 2", "bands 3") + SPLIT, TWO), filters="2:"),
    "multiq": Parent(MULTIQ.replace("add", "change"), filters="2:",
                     **over(MULTIQ, {f"{n}0:": f"2:{n}" for n in range(1, QUEUES + 1)})),
    "netem": Parent("qdisc change dev d0 parent 1:1 handle 2: netem delay 3ms limit 1000\n",
                    unpeeked=TREES["netem"]),
    "red": Parent(RED.replace("add", "change", 1).replace("300000", "310000"), **over(RED), takes_child=True),
    "sfb": Parent(SFB.replace("add", "change", 1).replace("9999", "9998"), **over(SFB), filters="2:",
                  takes_child=True),
    "cbs": Parent(CBS.replace("add", "change", 1).replace("200 sendslope -9800", "300 sendslope -9700"),
                  unpeeked=(CBS, {"10:": "1:1"})),
    # These two cannot be changed, and no device here is slow: what is changed is the shaper below.
    "mq": Parent("", peeked=TREES["mq"], unpeeked=(MQ + UNPEEKED, each_queue("1{n}:10"))),
    "mqprio": Parent("", peeked=(MQPRIO + PEEKED, each_queue("1{n}:1")),
                     unpeeked=(MQPRIO + UNPEEKED, each_queue("1{n}:10"))),
    "taprio": Parent(TAPRIO.format(verb="replace", start="1", closed=38000000),
                     peeked=(TAPRIO.format(verb="add", start="0", closed=48000000), each_queue("1:{n}"))),
}


# Tree

# What Tree has to know of the qdisc at its leaves: encode(**knobs) -> TCA_OPTIONS; read(qdisc of a dump) -> statistics;
# check(statistics) raises Failure unless they fit together; account(statistics) -> Account.
Kind = namedtuple("Kind", "name encode read check account")
# Packets that arrived, by codepoint or in all, that were forwarded, dropped, and lost without being told to parents.
Account = namedtuple("Account", "arrived forwarded dropped lost", defaults=(0,))


def _account(st):
    """Of what could not be split or was filtered, dualpi2 does not count the codepoint."""
    lost = st["filter_dropped"] + st["gso_failed"]
    dropped = sum(st[q][key] for q in "cl" for key in st[q] if key.startswith("dropped_"))
    forwarded = st["c"]["sent"] + st["l"]["sent"]
    by_ecn = [sum(st[q]["counters"][f"arrived_{name}"] for q in "cl") for name in lib.CODEPOINTS]
    return Account([forwarded + dropped + lost] if lost else by_ecn, forwarded, dropped, lost)


DUALPI2 = Kind("dualpi2", pack, lambda qdisc: lib.parse_xstats(qdisc["app"]) | {"knobs": lib.unpack(qdisc["options"])},
               lib.check_identities, _account)


class Tree:
    """A namespace with a dummy device d0, and a tree of qdiscs with dualpi2 or another kind at its leaves."""

    serial = iter(range(1000))
    kind = DUALPI2
    passed = False                      # was bypass on, so that not all that came was counted?

    def __init__(self, name, rate="10mbit", mtu=1500, stab="", args=None, kind=DUALPI2, **knobs):
        self.name, self.rate, self.mtu, self.stab, self.args, self.kind = name, rate, mtu, stab, args, kind
        self.knobs = knobs
        self.netns = f"dpa{os.getpid()}-{next(self.serial)}"
        # Handle of each leaf, and its parent.
        self.lines, leaves = TREES[name]
        self.leaves = dict(leaves)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            lib.run(["ip", "netns", "add", self.netns])
            stack.callback(lib.run, ["ip", "netns", "del", self.netns], check=False)
            with lib.in_netns(self.netns):
                for name, value in (("accept_dad", 0), ("addr_gen_mode", 1), ("router_solicitations", 0)):
                    with open(f"/proc/sys/net/ipv6/conf/default/{name}", "w", encoding="ascii") as file:
                        file.write(str(value))
            lib.run(["ip", "-batch", "-"], self.netns, stdin=f"""\
link add d0 mtu {self.mtu} numtxqueues {len(self.leaves)} type dummy
link set dev d0 up
"""+ ("""\
addr add 10.7.0.1/24 dev d0
addr add fd07::1/64 dev d0 nodad
"""if self.mtu >= 1280 else ""))
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
        if self.args is not None:
            where = "root" if parent == "root" else f"parent {parent}"
            lib.tc(f"qdisc add dev d0 {where} handle {handle} {self.args}", self.netns)
            if self.knobs:
                self.change(**self.knobs)
            return
        expect_equal(self.request(handle, parent, self.knobs, flags), (0, self.warning()), f"add of {self.kind.name}")

    def warning(self):
        """What dualpi2 says of a shaper as a child of this parent."""
        shapes = self.kind is DUALPI2 and self.knobs.get("bandwidth")
        if not shapes or not self.name.endswith(("hfsc", "drr", "qfq")):
            return ""
        return ("dualpi2: bandwidth in a child of qfq, drr or hfsc stalls other classes of the parent; "
                "set the rate in a parent, or use htb")

    def request(self, handle, parent, knobs, flags=0):
        """(errno, text)"""
        return lib.tc_request(self.netns, lib.RTM_NEWQDISC, flags, "d0", handle, parent, self.kind.name,
                              self.kind.encode(**knobs) if knobs else None)

    def try_change(self, options, handle="10:"):
        """Returns the error number of a change."""
        return lib.tc_request(self.netns, lib.RTM_NEWQDISC, 0, "d0", handle, self.leaves[handle],
                              self.kind.name, options)[0]

    def change(self, **knobs):
        for handle, parent in self.leaves.items():
            expect_equal(self.request(handle, parent, knobs), (0, self.warning()), f"change {knobs}")

    def dump(self):
        """{handle: statistics} of all qdiscs, the leaves' own included; "passed_on" is packets and bytes."""
        found = {}
        for qdisc in lib.qdisc_dump(self.netns, "d0"):
            st = found[qdisc["handle"]] = dict(qdisc["stats"], kind=qdisc["kind"], handle=qdisc["handle"],
                                               parent=qdisc["parent"])
            st["passed_on"] = st["packets"], st["bytes"]
            if qdisc["kind"] == self.kind.name:
                st |= self.kind.read(qdisc)
                st["was_passed"] = self.passed
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

    def moment(self, text):
        """A dump of one moment: the parts of a dump are not, but two with the same counters are."""
        for _ in range(100):
            if dump := self.try_moment():
                return dump
        raise Failure(f"{text}: no two dumps are of one moment")

    def try_moment(self):
        """The same; None if packets moved between the parts of the dump."""
        one, two = self.dump(), self.dump()
        same = one.keys() == two.keys() and all(
            one[h][key] == two[h][key] for h in one for key in ("qlen", "backlog", "drops", "passed_on"))
        return one if same else None

    def check_dump(self, dump, text):
        """The leaves' accounts, and the sums up the tree."""
        self.check_sums(dump, text)
        for handle in self.leaves:
            self.kind.check(dump[handle])

    def sample(self):
        """Check all at one moment; False if there was none."""
        dump = self.try_moment()
        if dump:
            self.check_dump(dump, "under traffic")
        return bool(dump)

    def check_now(self, text):
        """The same, until there was such a moment.  Returns the dump."""
        dump = self.moment(text)
        self.check_dump(dump, text)
        return dump

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
            self.kind.check(dump[handle])
            if self.kind is DUALPI2:
                expect_equal(dump[handle]["memory_used"], 0, f"{text}: memory_used")
                lib.check_classes(self.netns, "d0", handle)
        return dump

    def check_codepoints(self, leaves):
        """What was sent arrived at the leaves, each codepoint by itself where they count so."""
        arrived = [self.kind.account(st).arrived for st in leaves]
        if all(len(one) == len(ECNS) for one in arrived):
            expect_equal([sum(column) for column in zip(*arrived)], self.mix.by_ecn, "arrived by codepoint, offered")
        else:
            expect_equal(sum(map(sum, arrived)), self.mix.offered, "arrived, offered")

    def check_all(self, offered=None, exact_drops=True):
        """Empty, and offered = delivered + dropped, and all levels agree.  Returns the leaves' statistics.

        A parent that is told of a GSO packet of which some segments were dropped does not count these: drops are not
        exact then.
        """
        dump = self.check_empty()
        leaves = [dump[handle] for handle in self.leaves]
        accounts = [self.kind.account(st) for st in leaves]
        forwarded, dropped, lost = (sum(getattr(one, name) for one in accounts)
                                    for name in ("forwarded", "dropped", "lost"))
        packets, size = map(sum, zip(*(st["passed_on"] for st in leaves)))
        if offered is None:
            offered = self.mix.offered
            self.check_codepoints(leaves)
        lib.note(f"offered {offered}, sent {packets}, dropped {dropped}")
        expect_equal(packets + dropped + lost, offered, "sent + dropped, against offered")
        expect_equal(self.sent(), packets, "packets at the device, against sent")
        expect_equal(forwarded, packets, "forwarded by the leaves, against sent")
        for st in self.above(dump):
            # mq counts its children's.
            if len(leaves) > 1 and st["kind"] != "mq":
                continue
            expect_equal(st["passed_on"], (packets, size), f"packets and bytes of {st['kind']}")
            if st["kind"] != "netem":
                expect(st["drops"] == dropped if exact_drops else st["drops"] <= dropped,
                       f"drops of {st['kind']}: {st['drops']}, dropped: {dropped}")
        return leaves

    def above(self, dump):
        """Statistics of the parents of leaves."""
        return [st for handle, st in dump.items() if handle not in self.leaves]


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
