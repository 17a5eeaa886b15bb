#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=7.2,ect1
"""
test_prague_sockets.py - TCP Prague: what is on the wire, fallback where ECN is missing, the life of a socket.
"""

import ctypes
import errno
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../selftests/net"))

import lib
from lib import ECT0, ECT1, NOT_ECT, Failure, expect, expect_between, expect_equal, in_netns, note, run, tc
from lib_prague import (TCP_CONGESTION, IPPROTO_MPTCP, removed, references, sysctl, Bench, pump, rates, only,
                        from_the_begin, afterwards, on_accecn, each, prepare)

# What is on the wire

KINDS = {"ipv4": {}, "ipv6": {"family": socket.AF_INET6}, "ipv4_in_ipv6": {"mapped": True},
         "mptcp": {"protocol": IPPROTO_MPTCP}, "mptcp_of_ipv6": {"protocol": IPPROTO_MPTCP, "family": socket.AF_INET6}}


@each(KINDS)
def prague_CASE_sends_ect1_alone(kind):
    if "protocol" in kind and not os.path.exists("/proc/sys/net/mptcp"):
        raise lib.Skip("this kernel has no MPTCP; those of Debian and the debug kernel have")
    with Bench() as net:
        net.limit(10)
        from_the_begin(net, net.flow(**kind), "prague", ECT1)
        expect_equal(net.sent("syn"), [0, 1, 0, 0], "codepoints of the SYN")


# Arguments of accepted(), sysctls of the server, options of its route, and the SYN-ACK's codepoint
ACCEPTED = {"ipv4": ({}, {}, "", ECT1),
            "ipv6": ({"family": socket.AF_INET6}, {}, "", ECT1),
            "ipv4_in_ipv6": ({"mapped": True}, {}, "", ECT1),
            "by_default": ({"cc": None}, {"tcp_congestion_control": "prague"}, "", ECT1),
            "by_route": ({"cc": None}, {"tcp_ecn": 3}, "congctl prague", NOT_ECT),
            "after_a_cookie": ({}, {"tcp_syncookies": 2, "tcp_ecn": 3}, "", ECT1)}


@each(ACCEPTED)
def prague_accepted_CASE_sends_ect1_alone(case):
    args, values, route, syn_ack = case
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
        from_the_begin(net, net.accepted(**args), "prague", ECT1)
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
        # Until its last packets have left the bottleneck, they would be counted as those of the other flow.
        pump(0.1, cubic)
        afterwards(net, cubic, "cubic", NOT_ECT)


# Fallback

@each({"classic_ecn": 2, "none": 0})
def prague_receiver_with_CASE_gets_cubic_without_ect(tcp_ecn):
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", tcp_ecn)
        net.limit(10)
        from_the_begin(net, net.flow(), "prague-cubic", NOT_ECT)


@each({"classic_ecn": 1, "none": 0})
def prague_accepted_from_a_peer_with_CASE_is_cubic_without_ect(tcp_ecn):
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", tcp_ecn)
        net.limit(10)
        from_the_begin(net, net.accepted(), "prague-cubic", NOT_ECT)


@on_accecn
def prague_fallback_answers_a_loss_as_cubic_does():
    """By 0.7, where Reno halves."""
    with Bench(rtt_ms=50, accecn=False) as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 0)
        net.limit(10)
        flow = net.flow()
        pump(4, flow)
        cwnd = flow.info()["cwnd"]
        net.nft('table inet hole {\nchain c { type filter hook forward priority 0; iifname "up" '
                "limit rate 1/minute burst 1 packets drop\n}\n}")
        pump(0.5, flow)
        info = flow.info()
        expect_between(info["ssthresh"] / cwnd, 0.65, 0.8, f"ssthresh {info['ssthresh']} after a loss, of {cwnd}")


@on_accecn
def prague_bleached_path_gets_cubic_without_ect():
    with Bench() as net:
        net.nft("table inet bleach { chain c { type filter hook forward priority 0; ip ecn set not-ect\n}\n}")
        net.limit(10)
        flow = net.flow()
        pump(2, flow)
        afterwards(net, flow, "prague-cubic", NOT_ECT)
        expect(flow.received > 2e6, f"3 s at 10 Mbit/s brought {flow.received} bytes")


@on_accecn
def prague_path_that_begins_to_clear_the_field_is_survived():
    """Not detected (docs/PRAGUE.md): the packets are Classic then, and their drops, not marks, limit the rate."""
    with Bench() as net:
        net.limit(10, "dualpi2")
        flow = net.flow()
        pump(2, flow)
        net.nft("table inet bleach { chain c { type filter hook forward priority 0; ip ecn set not-ect\n}\n}")
        pump(2, flow)
        before = flow.info()
        got = rates(5, flow)[0]
        after = flow.info()
        note(f"{got:.2f} Mbit/s, {after}")
        expect_equal((flow.chosen(), after["ce"] - before["ce"]), ("prague", 0), "congestion control, marks")
        expect_between(got, 7, 10, "Mbit/s of 10 as Classic")
        expect(after["retrans"] > before["retrans"], "the bottleneck drops in place of marks")


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
def prague_chosen_without_accurate_ecn_becomes_cubic_with_classic_ecn():
    with Bench() as net:
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 1)
        sysctl(net.snd, "net.ipv4.tcp_ecn", 1)
        net.limit(10)
        flow = net.flow(cc="cubic")
        pump(0.5, flow)
        expect(net.sent()[ECT0] > 20, f"Classic ECN was negotiated: {net.sent()}")
        flow.choose("prague")
        pump(0.5, flow)
        expect_equal(flow.chosen(), "prague-cubic", "congestion control")
        net.forget()
        pump(0.5, flow)
        counts = net.sent()
        only(counts, ECT0, NOT_ECT)
        expect(counts[ECT0] > 20, f"Classic ECN as negotiated: {counts}")
        flow.choose("cubic")
        pump(0.5, flow)
        expect(net.sent()[ECT0] > 20, f"and Classic ECN again without it: {net.sent()}")


@on_accecn
def prague_connects_again_as_prague_after_a_fallback():
    with Bench() as net:
        net.limit(10)
        sysctl(net.rcv, "net.ipv4.tcp_ecn", 0)
        flow = net.flow()
        expect_equal(flow.chosen(), "prague-cubic", "congestion control")
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
def prague_fallback_that_becomes_ipv4_goes_on():
    with Bench() as net:
        for netns in (net.snd, net.rcv):
            sysctl(netns, "net.ipv4.tcp_ecn", 1)
        net.limit(10)
        flow = net.flow(cc="cubic", mapped=True)
        flow.choose("prague")
        pump(0.5, flow)
        flow.socket.setsockopt(socket.IPPROTO_IPV6, 1, socket.AF_INET)
        pump(0.5, flow)
        net.forget()
        pump(1, flow)
        expect_equal(flow.chosen(), "prague-cubic", "congestion control")
        only(net.sent(), ECT0, NOT_ECT)


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
        if os.environ.get("DUALPI2_KERNEL") in ("plain", "ect1"):
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


@each({cc: cc for cc in ("prague", "prague-cubic")})
def prague_module_in_use_by_CASE_stays(cc):
    with Bench(accecn=cc == "prague") as net:
        net.limit(10)
        flow = net.flow()
        pump(0.5, flow)
        expect_equal(flow.chosen(), cc, "congestion control")
        expect("in use" in run("rmmod tcp_prague", check=False).stderr, "rmmod says that it is in use")
        was = flow.received
        afterwards(net, flow, cc, ECT1 if cc == "prague" else NOT_ECT)
        expect(flow.received - was > 7e5, f"1 s at 10 Mbit/s brought {flow.received - was} bytes after rmmod")
        flow.__exit__()
        with removed():
            pass


@each({"prague": True, "fallback": False})
def prague_open_socket_of_a_removed_namespace_with_CASE_goes_on(accecn):
    """The socket holds the namespace, whose name is gone, and the module."""
    with Bench(accecn=accecn) as net:
        net.limit(10)
        flow = net.flow()
        pump(0.5, flow)
        run(["ip", "netns", "del", net.snd])
        was = flow.received
        afterwards(net, flow, "prague" if accecn else "prague-cubic", ECT1 if accecn else NOT_ECT)
        expect(flow.received - was > 7e5, f"1 s at 10 Mbit/s brought {flow.received - was} bytes")
        flow.__exit__()
        with removed():
            pass


@each({"prague": True, "fallback": False})
def prague_end_of_a_namespace_with_CASE_frees_the_module(accecn):
    """With a closed socket whose last data find no way: it ends with the last retransmission, as does the namespace."""
    with Bench(accecn=accecn) as net:
        sysctl(net.snd, "net.ipv4.tcp_orphan_retries", 1)
        net.limit(10)
        flow = net.flow()
        pump(0.5, flow)
        expect_equal(flow.chosen(), "prague" if accecn else "prague-cubic", "congestion control")
        net.nft('table inet hole {\nchain c { type filter hook forward priority 0; iifname "up" drop\n}\n}')
        flow.socket.close()
        expect(references() > 0, "the closed socket holds the module")
        run(["ip", "netns", "del", net.snd])
        with removed():
            pass
        flow.peer.close()


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


if __name__ == "__main__":
    lib.main(prepare=prepare)
