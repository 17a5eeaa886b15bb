# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of TCP Prague (tcp_prague.c) share: the module, hosts with a link between them, flows.

Real TCP between namespaces, in virtual time; the arithmetic alone is tested by unit, the figures are the lab's
(docs/PRAGUE.md). On a kernel without Accurate ECN the one test left is that the module says so.

DUALPI2_PRAGUE is tcp_prague.ko.
"""

import contextlib
import functools
import json
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import lib
from lib import CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_equal, in_netns, run, tc, test
from tcp import READ_BYTES

MODULE = os.environ.get("DUALPI2_PRAGUE", "")
NAMES = {NOT_ECT: "not-ect", ECT1: "ect1", ECT0: "ect0", CE: "ce"}
TCP_CONGESTION, TCP_MAXSEG, IPPROTO_MPTCP = 13, 2, 262
ADDRESSES = {socket.AF_INET: ("10.1.0.1", "10.2.0.1"), socket.AF_INET6: ("fd01::1", "fd02::1")}
PACKET_BITS = 1500 * 8
PARAMETERS = "/sys/module/tcp_prague/parameters"


def has_accecn():
    """Does this kernel have Accurate ECN? Linux 7 has."""
    return int(os.uname().release.split(".", maxsplit=1)[0]) >= 7


def load(*words, check=True):
    """Load the module, with parameters."""
    return run(["insmod", MODULE, *words], check=check)


@contextlib.contextmanager
def loaded(*words):
    """The module, and its removal, which fails as long as a socket has it."""
    load(*words)
    try:
        # In a namespace that is not the first not even root may choose others.
        run("sysctl -qw net.ipv4.tcp_allowed_congestion_control='reno cubic prague'")
        yield
    finally:
        remove()


def remove():
    """Remove the module; sockets that were closed are gone at once, or after a last answer."""
    for _ in range(100):
        done = run("rmmod tcp_prague", check=False)
        if not done.returncode:
            return
        time.sleep(0.1)
    raise Failure(f"the module cannot be removed: {done.stderr.strip()}")


@contextlib.contextmanager
def removed():
    """Without the module, for a while."""
    remove()
    try:
        yield
    finally:
        load()


def references():
    """How many there are to the module."""
    with open("/sys/module/tcp_prague/refcnt", encoding="ascii") as file:
        return int(file.read())


def sysctl(netns, name, value):
    """Set a sysctl in a namespace."""
    run(["sysctl", "-qw", f"{name}={value}"], netns)


class Bench(lib.Net):
    """snd - rtr - rcv, with Prague loaded, a receiver that knows Accurate ECN and counters of codepoints in rtr."""

    def __init__(self, rtt_ms=10, accecn=True, offloads=False, parameters=()):
        super().__init__(offloads)
        self.rtt_ms, self.accecn, self.parameters = rtt_ms, accecn, parameters

    def _build(self, stack):
        super()._build(stack)
        stack.enter_context(loaded(*self.parameters))
        for netns in (self.snd, self.rcv):
            sysctl(netns, "net.ipv4.tcp_no_metrics_save", 1)
            sysctl(netns, "net.ipv4.tcp_rmem", "4096 131072 33554432")
            sysctl(netns, "net.ipv4.tcp_wmem", "4096 16384 33554432")
        sysctl(self.snd, "net.ipv4.tcp_ecn", 0)
        sysctl(self.rcv, "net.ipv4.tcp_ecn", 5 if self.accecn else 2)
        tc("qdisc add dev eth0 root handle 1: fq limit 100000 flow_limit 100000 quantum 1514 initial_quantum 1514",
           self.snd)
        if self.rtt_ms:
            tc(f"qdisc add dev eth0 root handle 1: netem limit 100000 delay {self.rtt_ms}ms", self.rcv)
        rules = ["table inet codepoints {"]
        rules += [f"counter {kind}_{ecn} {{ }}" for kind in ("syn", "rest") for ecn in range(4)]
        rules += ["chain from_snd { type filter hook prerouting priority -500;"]
        rules += [f'iifname "up" tcp flags & syn {"!=" if kind == "syn" else "=="} 0 {family} ecn {name} '
                  f"counter name {kind}_{ecn}" for kind in ("syn", "rest") for ecn, name in NAMES.items()
                  for family in ("ip", "ip6")]
        self.nft("\n".join([*rules, "}", "}"]))
        self.flows = stack.enter_context(contextlib.ExitStack())

    def nft(self, text):
        """Rules of nft in rtr."""
        run("nft -f -", self.rtr, stdin=text)

    def link(self, words):
        """The qdiscs of the way to the receiver, in words of tc, without "qdisc add dev down"."""
        tc(f"qdisc replace dev down {words}", self.rtr)

    def limit(self, mbit, words="pfifo limit 1000"):
        """A bottleneck on that way, with a qdisc."""
        tc("qdisc add dev down root handle 1: htb default 10", self.rtr)
        tc(f"class add dev down parent 1: classid 1:10 htb rate {mbit}mbit ceil {mbit}mbit burst 1514 cburst 1514 "
           "quantum 1514", self.rtr)
        tc(f"qdisc add dev down parent 1:10 handle 10: {words}", self.rtr)

    def sent(self, kind="rest"):
        """[packets that snd sent with each codepoint]: of SYNs, or of the rest."""
        found = {c["counter"]["name"]: c["counter"]["packets"]
                 for c in json.loads(run("nft -j list counters table inet codepoints", self.rtr).stdout)["nftables"]
                 if "counter" in c}
        return [found[f"{kind}_{ecn}"] for ecn in range(4)]

    def forget(self):
        """Set these counters to zero."""
        run("nft reset counters table inet codepoints", self.rtr)

    def flow(self, *args, **keywords):
        """A connection, until the bench ends."""
        return self.flows.enter_context(Flow(self, *args, **keywords))

    def accepted(self, *args, **keywords):
        """The same of one that snd accepts."""
        return self.flows.enter_context(Accepted(self, *args, **keywords))


class Flow:
    """A connection from snd to rcv that has always data to send, while pump() runs."""

    # Nobody looks at them.
    block, sink = bytes(1 << 17), bytearray(1 << 20)
    received = 0

    def __init__(self, net, cc="prague", family=socket.AF_INET, protocol=0, mss=None, receive=None, mapped=False,
                 dst=None, ecn=False):
        self.cc = cc
        near, far = ADDRESSES[family]
        far = dst or far
        if ecn:
            run(f"ip route replace {far}/32 via 10.1.0.2 dev eth0 features ecn", net.snd)
        with in_netns(net.rcv):
            listener = socket.socket(family, socket.SOCK_STREAM, protocol)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if receive:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            if mss:
                listener.setsockopt(socket.IPPROTO_TCP, TCP_MAXSEG, mss)
            listener.bind((far, 0))
            listener.listen(1)
        where = listener.getsockname()
        with in_netns(net.snd):
            self.socket = socket.socket(socket.AF_INET6 if mapped else family, socket.SOCK_STREAM, protocol)
        self.choose(cc)
        self.socket.bind(("::ffff:" + near if mapped else near, 0))
        self.socket.settimeout(60)
        self.socket.connect(("::ffff:" + where[0] if mapped else where[0], where[1]))
        self.peer, _ = listener.accept()
        listener.close()
        self.socket.setblocking(False)
        self.peer.setblocking(False)
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.socket.fileno() < 0:
            return
        # At once, so that the module can be removed.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.peer.close()

    def choose(self, cc):
        """Another congestion control."""
        self.socket.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())

    def chosen(self):
        """The congestion control that is in use."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()

    def info(self):
        """Some of struct tcp_info."""
        data = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        words = struct.unpack_from("24I", data, 8)
        return {"rtt_us": words[15], "ssthresh": words[17], "cwnd": words[18], "retrans": words[23],
                "pacing": struct.unpack_from("Q", data, 104)[0], "acked": struct.unpack_from("Q", data, 120)[0],
                "delivered": struct.unpack_from("I", data, 192)[0], "ce": struct.unpack_from("I", data, 196)[0]}

    def read(self):
        """Take in what has come."""
        with contextlib.suppress(BlockingIOError):
            self.received += self.peer.recv_into(self.sink)

    def write(self):
        """Give the kernel what it takes."""
        with contextlib.suppress(BlockingIOError):
            self.socket.send(self.block)


class Accepted(Flow):
    """One that rcv asks for, as of a server that sends; cc: what its listener chooses, None: nothing."""

    def __init__(self, net, cc="prague", family=socket.AF_INET, mapped=False):
        near, far = ADDRESSES[family]
        with in_netns(net.snd):
            listener = socket.socket(socket.AF_INET6 if mapped else family)
        if cc:
            listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        listener.bind(("::" if mapped else near, 0))
        listener.listen(1)
        with in_netns(net.rcv):
            self.peer = socket.socket(family)
        self.peer.bind((far, 0))
        self.peer.settimeout(60)
        self.peer.connect((near, listener.getsockname()[1]))
        self.socket, _ = listener.accept()
        listener.close()
        self.socket.setblocking(False)
        self.peer.setblocking(False)


def pump(seconds, *flows, sending=True, others=()):
    """Keep flows busy for so long; others: {fd: function} to serve meanwhile."""
    poll, serve = select.epoll(), dict(others)
    for flow in flows:
        serve[flow.peer.fileno()] = flow.read
        poll.register(flow.peer, select.EPOLLIN)
        if sending:
            serve[flow.socket.fileno()] = flow.write
            poll.register(flow.socket, select.EPOLLOUT)
    for number in others:
        poll.register(number, select.EPOLLIN)
    end = time.monotonic() + seconds
    with poll:
        while (left := end - time.monotonic()) > 0:
            for number, _ in poll.poll(left):
                serve[number]()


def rates(seconds, *flows):
    """[Mbit/s of IP that each flow delivers while they are kept busy for so long]."""
    before = [f.info()["delivered"] for f in flows]
    pump(seconds, *flows)
    return [(f.info()["delivered"] - b) * PACKET_BITS / 1e6 / seconds for f, b in zip(flows, before, strict=True)]


def only(counts, *codepoints):
    """That packets were sent, and with these codepoints alone."""
    expect(sum(counts[c] for c in codepoints) > 20, f"packets were sent: {counts}")
    expect_equal([NAMES[c] for c in range(4) if counts[c] and c not in codepoints], [],
                 f"codepoints but {', '.join(NAMES[c] for c in codepoints)}, of {counts}")


def from_the_begin(net, flow, cc, codepoint):
    """That a flow has this congestion control, sends this codepoint alone, and fills 10 Mbit/s, nearly."""
    pump(2, flow)
    expect_equal(flow.chosen(), cc, "congestion control")
    only(net.sent(), codepoint)
    expect(flow.received > 1.5e6, f"2 s at 10 Mbit/s brought {flow.received} bytes")


def afterwards(net, flow, cc, codepoint, seconds=1):
    """That from now on a flow has this congestion control and sends this codepoint alone."""
    net.forget()
    pump(seconds, flow)
    expect_equal(flow.chosen(), cc, "congestion control")
    only(net.sent(), codepoint)


def on_accecn(function):
    """Tests for kernels with Accurate ECN alone."""
    return test()(function) if has_accecn() else function


def each(cases):
    """lib.each() for these: {what stands for CASE in the name: the test's argument}."""
    def register(function):
        @functools.wraps(function)
        def one(item):
            function(item[1])
        return lib.each(cases.items() if has_accecn() else (), (), lambda item: item[0])(one)
    return register


def prepare():
    if not MODULE:
        raise lib.Skip("need TCP Prague; set DUALPI2_PRAGUE to the path of tcp_prague.ko")
