#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: check kernel=6.1
# suite: long kernel=stock
"""test_prague.py - TCP Prague (tcp_prague.c) on a kernel with Accurate ECN: what is on the wire, and how it answers.

Real TCP between namespaces, in virtual time; the arithmetic alone is tested by unit/test_prague.c,
the figures are the lab's (docs/PRAGUE.md). On a kernel without Accurate ECN the one test left is that the module
says so.

DUALPI2_PRAGUE is tcp_prague.ko.
"""
import contextlib
import ctypes
import errno
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
from lib import (CE, ECT0, ECT1, NOT_ECT, Failure, expect, expect_between, expect_equal, in_netns,
                 note, run, tc, test)

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


# What is on the wire

KINDS = {"ipv4": {}, "ipv6": {"family": socket.AF_INET6}, "ipv4_in_ipv6": {"mapped": True},
         "mptcp": {"protocol": IPPROTO_MPTCP}, "mptcp_of_ipv6": {"protocol": IPPROTO_MPTCP, "family": socket.AF_INET6}}


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


@each(KINDS)
def prague_CASE_sends_ect1_alone(kind):
    if "protocol" in kind and not os.path.exists("/proc/sys/net/mptcp"):
        raise lib.Skip("this kernel has no MPTCP; those of Debian and the debug kernel have")
    with Bench() as net:
        net.limit(10)
        from_the_begin(net, net.flow(**kind), "prague", ECT1)
        expect_equal(net.sent("syn"), [0, 1, 0, 0], "codepoints of the SYN")


# Words of accepted(), sysctls of the server, words of its route, and the SYN-ACK's codepoint
ACCEPTED = {"ipv4": ({}, {}, "", ECT1),
            "ipv6": ({"family": socket.AF_INET6}, {}, "", ECT1),
            "ipv4_in_ipv6": ({"mapped": True}, {}, "", ECT1),
            "by_default": ({"cc": None}, {"tcp_congestion_control": "prague"}, "", ECT1),
            "by_route": ({"cc": None}, {"tcp_ecn": 3}, "congctl prague", NOT_ECT),
            "after_a_cookie": ({}, {"tcp_syncookies": 2, "tcp_ecn": 3}, "", ECT1)}


@each(ACCEPTED)
def prague_accepted_CASE_sends_ect1_alone(case):
    words, values, route, syn_ack = case
    if "tcp_syncookies" in values and not os.path.exists("/proc/sys/net/ipv4/tcp_syncookies"):
        raise lib.Skip("this kernel has no SYN cookies; those of Debian have")
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 3)
        # A namespace's default holds the module.
        net.flows.callback(sysctl, net.snd, "net.ipv4.tcp_congestion_control", "cubic")
        for name, value in values.items():
            sysctl(net.snd, f"net.ipv4.{name}", value)
        if route:
            run(f"ip route replace 10.2.0.1/32 via 10.1.0.2 dev eth0 {route}", net.snd)
        net.limit(10)
        from_the_begin(net, net.accepted(**words), "prague", ECT1)
        expect_equal(net.sent("syn"), [int(n == syn_ack) for n in range(4)], "codepoints of the SYN-ACK")


@on_accecn
def prague_retransmissions_are_ect1():
    with Bench() as net:
        net.limit(10)
        flow = net.flow()
        # Only now: after two lost SYNs Accurate ECN is not asked for any more.
        tc("qdisc replace dev down parent 1:10 handle 20: netem limit 1000 loss 3%", net.rtr)
        pump(4, flow)
        expect(flow.info()["retrans"] > 5, f"{flow.info()['retrans']} retransmissions")
        expect_equal(flow.chosen(), "prague", "congestion control")
        only(net.sent(), ECT1)


@on_accecn
def prague_leaves_other_sockets_alone():
    with Bench() as net:
        net.limit(10)
        prague, cubic = net.flow(), net.flow(cc="cubic")
        pump(1, prague, cubic)
        counts = net.sent()
        only(counts, ECT1, NOT_ECT)
        expect(min(counts[ECT1], counts[NOT_ECT]) > 20, f"both sent: {counts}")
        prague.__exit__()
        afterwards(net, cubic, "cubic", NOT_ECT)


# Fallback

@each({"classic_ecn": 2, "none": 0})
def prague_receiver_with_CASE_gets_reno_without_ect(tcp_ecn):
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", tcp_ecn)
        net.limit(10)
        from_the_begin(net, net.flow(), "prague-reno", NOT_ECT)


@each({"classic_ecn": 1, "none": 0})
def prague_accepted_from_a_peer_with_CASE_is_reno_without_ect(tcp_ecn):
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", tcp_ecn)
        net.limit(10)
        from_the_begin(net, net.accepted(), "prague-reno", NOT_ECT)


@on_accecn
def prague_bleached_path_gets_reno_without_ect():
    with Bench() as net:
        net.nft("table inet bleach { chain c { type filter hook forward priority 0; ip ecn set not-ect\n}\n}")
        net.limit(10)
        flow = net.flow()
        pump(2, flow)
        afterwards(net, flow, "prague-reno", NOT_ECT)
        expect(flow.received > 2e6, f"3 s at 10 Mbit/s brought {flow.received} bytes")


@each({"without_the_option": 0, "with_few_options": 1})
def prague_peer_CASE_is_not_taken_for_a_bleached_path(tcp_ecn_option):
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn_option", tcp_ecn_option)
        net.limit(10, "dualpi2")
        flow = net.flow()
        pump(2, flow)
        expect_equal(flow.chosen(), "prague", "congestion control")
        expect(flow.info()["ce"] > 20, f"marks are told by ACE alone: {flow.info()}")
        only(net.sent(), ECT1)


@on_accecn
def prague_without_marks_answers_loss_as_reno_does():
    """On the same path, one after the other; its receiver is told nothing of marks."""
    got = {}
    for cc in ("reno", "prague"):
        with Bench(rtt_ms=30) as net:
            net.link("root netem limit 100000 loss 1%")
            flow = net.flow(cc=cc)
            pump(3, flow)
            got[cc] = rates(30, flow)[0]
    note(f"reno {got['reno']:.2f}, prague {got['prague']:.2f} Mbit/s at 1 % loss, 30 ms")
    expect_between(got["prague"] / got["reno"], 0.5, 2, "rate of Prague's, of Reno's")


# The life of a socket

@on_accecn
def prague_chosen_and_left_in_mid_life_changes_the_codepoint():
    with Bench() as net:
        sysctl(net.snd, "net.ipv4.tcp_ecn", 3)
        net.limit(10)
        flow = net.flow(cc="cubic")
        for cc, ecn in (("cubic", ECT0), ("prague", ECT1), ("cubic", ECT0), ("prague", ECT1), ("reno", ECT0)):
            flow.choose(cc)
            # What was sent before has to be through.
            pump(0.5, flow)
            afterwards(net, flow, cc, ecn, 0.5)


@on_accecn
def prague_chosen_without_accurate_ecn_becomes_reno_without_ect():
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 1)
        sysctl(net.snd, "net.ipv4.tcp_ecn", 1)
        net.limit(10)
        flow = net.flow(cc="cubic")
        pump(0.5, flow)
        expect(net.sent()[ECT0] > 20, f"Classic ECN was negotiated: {net.sent()}")
        flow.choose("prague")
        pump(0.5, flow)
        afterwards(net, flow, "prague-reno", NOT_ECT, 0.5)
        flow.choose("cubic")
        pump(0.5, flow)
        expect(net.sent()[ECT0] > 20, f"and Classic ECN again without it: {net.sent()}")


@on_accecn
def prague_connects_again_as_prague_after_a_fallback():
    with Bench() as net:
        net.limit(10)
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 0)
        flow = net.flow()
        expect_equal(flow.chosen(), "prague-reno", "congestion control")
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 5)
        with in_netns(net.rcv):
            again = socket.create_server(("10.2.0.1", 0))
        with again:
            # connect() to AF_UNSPEC disconnects.
            lib.libc.connect(flow.socket.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)
            expect_equal(flow.chosen(), "prague", "congestion control of a socket that is not connected")
            flow.socket.settimeout(10)
            flow.socket.connect(again.getsockname())
            flow.peer.close()
            flow.peer, _ = again.accept()
        flow.socket.setblocking(False)
        flow.peer.setblocking(False)
        afterwards(net, flow, "prague", ECT1)


@on_accecn
def prague_ipv6_socket_that_becomes_ipv4_goes_on():
    """IPV6_ADDRFORM gives the socket another table of functions under Prague's feet."""
    with Bench() as net:
        net.limit(10)
        flow = net.flow(mapped=True)
        pump(0.5, flow)
        flow.socket.setsockopt(socket.IPPROTO_IPV6, 1, socket.AF_INET)
        pump(0.5, flow)
        afterwards(net, flow, "prague", ECT1)


@on_accecn
def prague_fallback_that_becomes_ipv4_goes_on_without_ect():
    with Bench() as net:
        for netns in (net.snd, net.rcv):
            sysctl(netns, "net.ipv4.tcp_ecn", 1)
        net.limit(10)
        flow = net.flow(cc="cubic", mapped=True)
        flow.choose("prague")
        pump(0.5, flow)
        flow.socket.setsockopt(socket.IPPROTO_IPV6, 1, socket.AF_INET)
        pump(0.5, flow)
        afterwards(net, flow, "prague-reno", NOT_ECT)


class ChosenByBpf:
    """Have a BPF program choose the congestion control when the stack says so (BPF_SOCK_OPS_...)."""

    CONNECT, ACTIVE_ESTABLISHED = 3, 4
    PROG_LOAD, PROG_ATTACH, PROG_DETACH, SYSCALL = 5, 8, 9, 321
    SOCK_OPS, CGROUP_SOCK_OPS, SETSOCKOPT = 13, 3, 49

    def __init__(self, when, cc):
        def step(op, dst=0, src=0, off=0, imm=0):
            return struct.pack("<BBhi", op, dst | src << 4, off, imm)
        low, high = struct.unpack("<ii", cc.encode().ljust(8, b"\0"))
        code = [step(0xbf, 6, 1), step(0x61, 2, 1), step(0x55, 2, off=9, imm=when),     # if (ctx->op != when) goto end
                step(0x62, 10, off=-8, imm=low), step(0x62, 10, off=-4, imm=high),      # name on the stack
                step(0xbf, 1, 6), step(0xb7, 2, imm=socket.IPPROTO_TCP), step(0xb7, 3, imm=TCP_CONGESTION),
                step(0xbf, 4, 10), step(0x07, 4, imm=-8), step(0xb7, 5, imm=len(cc) + 1),
                step(0x85, imm=self.SETSOCKOPT), step(0xb7, imm=1), step(0x95)]
        self.code, self.licence = ctypes.create_string_buffer(b"".join(code)), ctypes.create_string_buffer(b"GPL")
        self.program = self.bpf(self.PROG_LOAD, "<IIQQ", self.SOCK_OPS, len(code), ctypes.addressof(self.code),
                                ctypes.addressof(self.licence))
        os.makedirs("/tmp/cgroup", exist_ok=True)
        if not os.path.ismount("/tmp/cgroup"):
            run("mount -t cgroup2 none /tmp/cgroup")
        self.group = os.open("/tmp/cgroup", os.O_RDONLY)

    def bpf(self, command, form, *values):
        """bpf(2)."""
        data = struct.pack(form, *values).ljust(120, b"\0")
        done = lib.libc.syscall(self.SYSCALL, command, data, len(data))
        if done < 0:
            raise Failure(f"bpf({command}): {os.strerror(ctypes.get_errno())}")
        return done

    def __enter__(self):
        if os.environ.get("DUALPI2_KERNEL") == "plain":
            raise lib.Skip("this kernel has no BPF for cgroups; those of Debian and the debug kernel have")
        self.bpf(self.PROG_ATTACH, "<IIII", self.group, self.program, self.CGROUP_SOCK_OPS, 0)
        return self

    def __exit__(self, *_):
        self.bpf(self.PROG_DETACH, "<IIII", self.group, self.program, self.CGROUP_SOCK_OPS, 0)
        os.close(self.program)
        os.close(self.group)


@on_accecn
def prague_chosen_by_bpf_before_the_handshake_is_prague():
    with Bench() as net:
        net.limit(10)
        with ChosenByBpf(ChosenByBpf.CONNECT, "prague"):
            flow = net.flow(cc="cubic")
        pump(1, flow)
        # The ACK of the handshake is sent before Prague can begin.
        expect(net.sent()[ECT0] <= 1, f"data before Prague began: {net.sent()}")
        afterwards(net, flow, "prague", ECT1)


@on_accecn
def prague_replaced_by_bpf_before_it_began_leaves_nothing():
    """The stack asks Prague of the SYN's ACK, and then lets the program choose another without a word to Prague."""
    with Bench() as net:
        net.limit(10)
        with ChosenByBpf(ChosenByBpf.ACTIVE_ESTABLISHED, "cubic"):
            flow = net.flow()
        expect_equal(flow.chosen(), "cubic", "congestion control")
        with removed():
            pump(2, flow)
            expect(flow.received > 1.5e6, f"2 s at 10 Mbit/s brought {flow.received} bytes")


@on_accecn
def prague_after_another_that_bpf_chose_begins_with_nothing_of_its_data():
    """The program chooses BBR for a socket, then the route Prague, and the stack tells neither."""
    with Bench() as net:
        net.limit(10)
        # Of the first connection the route knows where it leads; both have a reference to the module in the end.
        flow = net.flow()
        run("ip route replace 10.2.0.1/32 via 10.1.0.2 dev eth0 congctl prague", net.snd)
        with ChosenByBpf(ChosenByBpf.CONNECT, "bbr"):
            other = net.flow(cc="cubic")
        pump(1, flow, other)
        afterwards(net, other, "prague", ECT1)
        expect_equal(references(), 4, "references to the module of two sockets")
        other.__exit__()
        expect_equal(references(), 2, "references to the module of one")


# The SYN has asked for Accurate ECN, which CUBIC uses in its own way.
@each({"cubic": ("cubic", ECT0), "prague": ("prague", ECT1)})
def prague_chosen_again_as_CASE_while_it_connects(chosen):
    cc, ecn = chosen
    with Bench(rtt_ms=100) as net:
        net.limit(10)
        with in_netns(net.rcv):
            listener = socket.create_server(("10.2.0.1", 0))
        with listener:
            flow = net.flow()
            with in_netns(net.snd):
                sock = socket.socket()
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"prague")
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
            flow.__exit__()
            flow.peer, _ = listener.accept()
            flow.peer.setblocking(False)
            flow.socket = sock
        afterwards(net, flow, cc, ecn, 2)
        if cc == "cubic":
            with removed():
                pump(0.5, flow)


@on_accecn
def prague_after_a_lost_syn_begins_as_usual():
    with Bench() as net:
        net.nft("table inet lose { counter n { }\nchain c { type filter hook forward priority 0; "
                "tcp flags & (syn | ack) == syn limit rate over 1/minute burst 1 packets accept\n"
                "tcp flags & (syn | ack) == syn counter name n drop\n}\n}")
        net.limit(10)
        flow = net.flow()
        pump(2, flow)
        expect_equal(net.sent("syn"), [0, 2, 0, 0], "codepoints of the SYN, which was lost and sent again")
        expect(flow.received > 1e6, f"2 s at 10 Mbit/s brought {flow.received} bytes")


@each({cc: cc for cc in ("prague", "prague-reno")})
def prague_module_in_use_by_CASE_stays(cc):
    with Bench(accecn=cc == "prague") as net:
        net.limit(10)
        flow = net.flow()
        pump(0.5, flow)
        expect_equal(flow.chosen(), cc, "congestion control")
        expect("in use" in run("rmmod tcp_prague", check=False).stderr, "rmmod says that it is in use")
        pump(0.5, flow)
        flow.__exit__()
        with removed():
            pass


@on_accecn
def prague_is_for_who_may_choose_it():
    with Bench() as net:
        run("sysctl -qw net.ipv4.tcp_allowed_congestion_control='reno cubic'")
        with in_netns(net.snd), socket.socket() as sock:
            pid = os.fork()
            if not pid:
                os.setuid(65534)
                try:
                    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"prague")
                except OSError as error:
                    os._exit(error.errno)
                os._exit(0)
            expect_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), errno.EPERM, "the answer to another user")


@on_accecn
def prague_shows_itself_in_ss():
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        pump(3, flow)
        text = run(f"ss -tin sport = {flow.socket.getsockname()[1]}", net.snd).stdout
        note(" ".join(text.split())[-400:])
        expect(" prague " in text, f"its name is in {text}")
        alpha = int(text.split("alpha:")[1].split(",")[0].rstrip(")"))
        expect("ce_state:1" in text and 0 < alpha < 1024, f"alpha and state of CE are in {text}")
        info = flow.info()
        expect_between(alpha / 1024, 0.2 * info["ce"] / info["delivered"], 5 * info["ce"] / info["delivered"], "alpha")


# How it answers

@on_accecn
def prague_beside_cubic_keeps_l_short_and_loses_nothing():
    with Bench(rtt_ms=10) as net:
        net.limit(20, "dualpi2")
        prague, cubic = net.flow(), net.flow(cc="cubic")
        pump(5, prague, cubic)
        before = lib.stats(net.rtr, "down", "10:")
        l4s, classic = rates(10, prague, cubic)
        after = lib.stats(net.rtr, "down", "10:")
        delay = after["l"]["delay"]["sum_ns"] - before["l"]["delay"]["sum_ns"]
        sent = after["l"]["sent"] - before["l"]["sent"]
        note(f"Prague {l4s:.2f}, CUBIC {classic:.2f} Mbit/s; L {delay / sent / 1e6:.3f} ms")
        expect_between(l4s / classic, 0.5, 2, "rate of Prague's, of CUBIC's")
        expect_between(l4s + classic, 19, 20, "Mbit/s of both")
        expect(delay / sent < 1e6, f"mean delay in L is {delay / sent / 1e6} ms")
        expect_equal([after["l"][k] for k in after["l"] if k.startswith("dropped")], [0] * 6, "drops in L")


@on_accecn
def prague_flows_of_1_and_20_ms_share_alike():
    with Bench(rtt_ms=0) as net:
        # By destination: 10.2.0.1 and 10.2.0.3.
        run("ip addr add 10.2.0.3/24 dev eth0", net.rcv)
        run("ip neigh add 10.2.0.3 lladdr 02:00:00:00:02:01 nud permanent dev down", net.rtr)
        tc("qdisc add dev eth0 root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", net.rcv)
        tc("qdisc add dev eth0 parent 1:1 netem limit 100000 delay 1ms", net.rcv)
        tc("qdisc add dev eth0 parent 1:2 netem limit 100000 delay 20ms", net.rcv)
        tc("filter add dev eth0 parent 1: protocol ip u32 match ip src 10.2.0.3/32 flowid 1:2", net.rcv)
        # At lower rates the marks of so short a queue fall on the two unequally, each of which goes by its own.
        net.limit(30, "dualpi2")
        short, long = net.flow(), net.flow(dst="10.2.0.3")
        # 500 round trips first: the longer one acts by its own RTT until then, which is much the same.
        pump(12, short, long)
        got = rates(15, short, long)
        note(f"1 ms: {got[0]:.2f}, 20 ms: {got[1]:.2f} Mbit/s")
        # By RTT it would be 20. In 15 s each is marked some 1150 times, and one of them by chance more often.
        expect_between(got[0] / got[1], 1 / 1.5, 1.5, "rate at 1 ms, of that at 20 ms")


# 100 Mbit/s take the kernel with sanitizers too long.
@each({str(p).replace(".", "_"): p
       for p in (*((1, 2.4) if os.environ.get("DUALPI2_KERNEL") != "debug" else ()), 9.1, 20, 50)})
def prague_marked_at_CASE_percent_has_its_rate(percent):
    """1 / p - 1 Mbit/s, within 10 %, at round trips of 5 and 20 ms; p as it came out."""
    found = []
    for rtt_ms in (5, 20):
        with Bench(rtt_ms=rtt_ms) as net:
            net.link(f"root netem limit 100000 loss {percent}% ecn")
            flow = net.flow()
            # From slow start's end by a packet per 25 ms each 25 ms, and some hundred decreases.
            pump(15 if percent < 5 else 8, flow)
            before = flow.info()
            got = rates(120 if percent == 50 else 30 if percent < 5 else 20, flow)[0]
            after = flow.info()
            p = (after["ce"] - before["ce"]) / (after["delivered"] - before["delivered"])
            want = 1 / p - 1
            expect_between(100 * p, percent * 0.85, percent * 1.15, "% that came marked")
            note(f"{rtt_ms} ms: {got:.2f} Mbit/s, {got / want:.3f} of 1 / p - 1 at p = {100 * p:.2f} %")
            found.append(got / want)
    # With two packets in 25 ms, what one ACK more or less says is much: see docs/PRAGUE.md.
    for part in found:
        expect_between(part, *((0.9, 1.1) if percent < 50 else (0.85, 1.25)), "rate, of 1 / p - 1")


@on_accecn
def prague_timeout_while_marks_are_answered_halves_the_window():
    """The stack makes no second decrease then, and a mark's is not enough."""
    with Bench(rtt_ms=20) as net:
        net.limit(20, "dualpi2")
        flow = net.flow()
        pump(5, flow)
        # Marks go on until the moment of the loss, and are being answered in most of these.
        for _ in range(6):
            before = flow.info()
            net.nft('table inet hole {\nchain c { type filter hook forward priority 0; iifname "up" drop\n}\n}')
            pump(1, flow)
            info = flow.info()
            note(f"cwnd {before['cwnd']}, then {info['cwnd']}, ssthresh {info['ssthresh']}")
            run("nft delete table inet hole", net.rtr)
            expect(info["cwnd"] < 5, f"it timed out: cwnd is {info['cwnd']}")
            expect(info["ssthresh"] <= before["cwnd"] / 2 + 2,
                   f"ssthresh is {info['ssthresh']}, cwnd was {before['cwnd']}")
            pump(5.003, flow)
        expect(rates(2, flow)[0] > 10, "it goes on")


@on_accecn
def prague_after_an_idle_time_begins_anew():
    with Bench(rtt_ms=30) as net:
        net.limit(20, "dualpi2")
        flow = net.flow()
        pump(4, flow)
        expect(flow.info()["cwnd"] > 30, f"cwnd is {flow.info()['cwnd']}")
        pump(3, flow, sending=False)
        flow.write()
        expect(flow.info()["cwnd"] <= 10, f"cwnd is {flow.info()['cwnd']} after 3 s of silence")
        pump(1, flow)
        expect(flow.info()["cwnd"] > 30, f"cwnd is {flow.info()['cwnd']} a second later")


@on_accecn
def prague_on_a_fast_path_sends_large_bursts():
    """250 us at some Gbit/s are many packets, and TSO sends them as one, whichever side began."""
    with Bench(rtt_ms=5, offloads=True) as net:
        flow = net.flow()
        pump(2, flow)
        info = flow.info()
        packets = sum(net.sent()) - 3
        note(f"{info['delivered'] / packets:.1f} segments in a packet, {info['pacing'] * 8 / 1e9:.2f} Gbit/s")
        want = min(info["pacing"] / 4096 / 1448, 40)
        expect(want > 6, f"pacing is fast enough to tell: {want:.1f} packets in 250 us")
        expect(info["delivered"] / packets > want / 3, f"{packets} packets for {info['delivered']} segments")


@on_accecn
def prague_bursts_are_short_where_the_device_takes_large_ones():
    """What the sender hands over at once, at 20 Mbit/s with TSO: a packet, not 44, even where the RTT is next to 0."""
    with Bench(rtt_ms=0, offloads=True) as net:
        net.limit(20, "dualpi2")
        flow = net.flow()
        pump(3, flow)
        with in_netns(net.rtr):
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
            sniffer.bind(("up", 0x800))
        sizes = []

        def see():
            data = sniffer.recv(1 << 17)
            if data[26:30] == bytes((10, 1, 0, 1)):
                sizes.append(len(data))
        with sniffer:
            pump(1, flow, others={sniffer.fileno(): see})
            expect(len(sizes) > 500, f"{len(sizes)} packets were seen")
            expect(max(sizes) <= 1514, f"the largest has {max(sizes)} bytes")
            flow.choose("cubic")
            pump(1, flow, others={sniffer.fileno(): see})
            expect(max(sizes) > 5000, f"CUBIC's, after Prague, has {max(sizes)} bytes")


# Bad input

@each({"every_packet_marked": "ip ecn set ce", "marks_wiped_out": "ip ecn ce ip ecn set ect1"})
def prague_CASE_lives(rule):
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        with in_netns(net.rcv):
            run("nft -f -", stdin="table netdev bad { chain c { type filter hook ingress device eth0 priority 0; "
                f"{rule}\n}}\n}}")
        pump(3, flow)
        got = rates(5, flow)[0]
        note(f"{got:.3f} Mbit/s, {flow.info()}")
        # The least rate is 0.1 Mbit/s, and no more than the link has.
        expect_between(got, 0.05, 10, "Mbit/s")
        expect_equal(flow.chosen(), "prague", "congestion control")
        if rule == "ip ecn set ce":
            expect(got < 0.5, f"all are marked, and it sends {got:.3f} Mbit/s")


class Mangler:
    """Takes what comes back from rcv out of the kernel's hands in rtr, changes it, and sends it on to snd."""

    def __init__(self, net, change):
        self.change, self.number = change, 0
        net.nft('table inet mangle { chain c { type filter hook prerouting priority -600; iifname "down" drop\n}\n}')
        with in_netns(net.rtr):
            self.down, self.up = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
                                  for _ in range(2))
            self.down.bind(("down", 0x800))
            self.up.bind(("up", 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down.close()
        self.up.close()

    def serve(self):
        """One packet, of those that come back."""
        data = bytearray(self.down.recv(1 << 16))
        if data[26:30] != bytes((10, 2, 0, 1)) or data[23] != 6:
            return
        tcp = 14 + 4 * (data[14] & 15)
        if not data[tcp + 13] & 2:
            self.number += 1
            self.change(data, tcp, self.number)
        data[0:12] = bytes((2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2))
        end = 14 + struct.unpack_from(">H", data, 16)[0]
        data[tcp + 16:tcp + 18] = b"\0\0"
        total = sum(struct.unpack(f">{(end - 26 + 1) // 2}H", bytes(data[26:end]) + b"\0" * (end % 2)))
        total += 6 + end - tcp
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        struct.pack_into(">H", data, tcp + 16, total ^ 0xffff)
        self.up.send(data[:end])


def set_ace(data, tcp, ace):
    """The ACE field: AE, CWR, ECE."""
    data[tcp + 12] = data[tcp + 12] & ~1 | ace >> 2
    data[tcp + 13] = data[tcp + 13] & ~0xc0 | (ace & 3) << 6


def without_option(data, tcp):
    """Accurate ECN's options (172, 174) become no operation."""
    at, end = tcp + 20, tcp + 4 * (data[tcp + 12] >> 4)
    while at < end and data[at]:
        if data[at] == 1:
            at += 1
            continue
        size = data[at + 1]
        if data[at] in (172, 174):
            data[at:at + size] = b"\1" * size
        at += size


def jump(data, tcp, number):
    """ACE goes round and round."""
    set_ace(data, tcp, number * 3 & 7)
    without_option(data, tcp)


def dumb(data, tcp, _):
    """As if nothing was ever marked: 5, where ACE begins."""
    set_ace(data, tcp, 5)
    without_option(data, tcp)


def zero(data, tcp, _):
    """What no receiver with Accurate ECN sends at the begin, and later as any other number."""
    set_ace(data, tcp, 0)
    without_option(data, tcp)


def liar(data, tcp, number):
    """Options with random counters."""
    at, end = tcp + 20, tcp + 4 * (data[tcp + 12] >> 4)
    while at < end and data[at]:
        if data[at] == 1:
            at += 1
            continue
        size = data[at + 1]
        if data[at] in (172, 174):
            data[at + 2:at + size] = bytes((number * 37 + n * 101) & 0xff for n in range(size - 2))
        at += size
    set_ace(data, tcp, number * 5 & 7)


@each({f.__name__: f for f in (jump, dumb, zero, liar)})
def prague_feedback_CASE_breaks_nothing(change):
    """Whatever the peer says of marks: it sends, not faster than the path, and answers loss."""
    with Bench() as net:
        net.limit(10, "dualpi2 limit 100")
        flow = net.flow()
        with Mangler(net, change) as mangler:
            others = {mangler.down.fileno(): mangler.serve}
            pump(3, flow, others=others)
            before = flow.info()
            pump(3, flow, others=others)
            after = flow.info()
        got = (after["delivered"] - before["delivered"]) * PACKET_BITS / 3e6
        note(f"{got:.3f} Mbit/s, {after}, {mangler.number} changed")
        expect(mangler.number > 10, f"{mangler.number} packets were changed")
        expect_equal(flow.chosen(), "prague", "congestion control")
        expect_between(got, 0.05, 10, "Mbit/s")
        # The queue has 100 packets, the link 8.
        expect(2 <= after["cwnd"] < 150, f"cwnd is {after['cwnd']}")


# RTT in ms, seconds to send, bytes that come at least
@each({"rtt_0": (0, 3, 3e6), "rtt_3_s": (3000, 30, 1e5)})
def prague_at_CASE_lives(case):
    rtt_ms, seconds, least = case
    with Bench(rtt_ms=rtt_ms) as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        pump(seconds, flow)
        note(flow.info())
        expect(flow.received > least, f"{flow.received} bytes came")
        only(net.sent(), ECT1)


@each({"mss_88": {"mss": 88}, "window_of_a_packet": {"receive": 2304}})
def prague_CASE_gets_through(peer):
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow(**peer)
        pump(4, flow)
        note(flow.info())
        expect(flow.received > 1e5, f"{flow.received} bytes came")
        only(net.sent(), ECT1)


@on_accecn
def prague_route_changes_are_survived():
    with Bench(offloads=True) as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        for words in ("mtu 600", "mtu 1500", "mtu 1000 initcwnd 3", ""):
            run(f"ip route replace 10.2.0.1/32 via 10.1.0.2 dev eth0 {words}", net.snd)
            was = flow.received
            pump(1, flow)
            expect(flow.received - was > 5e5, f"{flow.received - was} bytes came with {words}")
        run("ip route replace unreachable 10.2.0.1/32", net.snd)
        pump(0.5, flow)
        run("ip route del unreachable 10.2.0.1/32", net.snd)
        pump(3, flow)
        was = flow.received
        pump(1, flow)
        expect(flow.received - was > 5e5, f"{flow.received - was} bytes came after the route was gone and came again")
        only(net.sent(), ECT1)


@on_accecn
def prague_local_drops_are_answered():
    """A queue of this host's that is too short: a drop that no mark tells of."""
    with Bench(rtt_ms=20) as net:
        tc("qdisc del dev eth0 root", net.snd)
        tc("qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 3000 limit 1600", net.snd)
        flow = net.flow()
        pump(3, flow)
        got = rates(5, flow)[0]
        note(f"{got:.2f} Mbit/s, {flow.info()}")
        expect_between(got, 6, 10, "Mbit/s through a queue of 20000 bytes")
        expect(flow.info()["cwnd"] < 60, f"cwnd is {flow.info()['cwnd']}")


# The module

RANGES = {"rtt_virt_us": (0, 100000), "transition_rounds": (0, 1000000), "least_rate_kbit": (8, 1000000)}


@each({name: name for name in RANGES})
def prague_parameter_CASE_outside_its_range_is_refused(name):
    least, most = RANGES[name]
    for value in (most + 1, least - 1, "x", ""):
        run("dmesg -C")
        done = load(f"{name}={value}", check=False)
        expect(done.returncode, f"{name}={value} was taken")
        expect(f"{name} must be a number from {least} to {most}" in run("dmesg").stdout, run("dmesg").stdout)
    with loaded(f"{name}={most}"):
        with open(f"{PARAMETERS}/{name}", "r+", encoding="ascii") as file:
            expect_equal(int(file.read()), most, name)
        with contextlib.suppress(OSError), open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as file:
            file.write(f"{most + 1}")
        with open(f"{PARAMETERS}/{name}", encoding="ascii") as file:
            expect_equal(int(file.read()), most, f"{name} after a value that is too large")
        with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as file:
            file.write(f"{least}")


if not has_accecn():
    @test()
    def prague_kernel_without_accurate_ecn_is_told():
        """One line, and no module."""
        run("dmesg -C")
        done = load(check=False)
        expect("not supported" in done.stderr, f"insmod says {done.stderr}")
        lines = [line for line in run("dmesg").stdout.splitlines() if "tcp_prague: this" in line]
        expect_equal(len(lines), 1, "lines in the kernel's log")
        expect("no Accurate ECN that a congestion control can ask for" in lines[0], lines[0])
        expect(not os.path.exists("/sys/module/tcp_prague"), "the module is there")


def prepare():
    if not MODULE:
        raise lib.Skip("need TCP Prague; set DUALPI2_PRAGUE to the path of tcp_prague.ko")


if __name__ == "__main__":
    lib.main(prepare=prepare)
