#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Tests of dualpi2 doctor without a kernel: what it reads of packets and of rules, and its command line."""

import io
import json
import os
import struct
import subprocess
import sys
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout

from lib_rules import ROOT, classic_only, healthy, nothing_waits
from dualpi2.doctor import cli as doctor, net, packets, probe, rules
from ktap import expect_equal as equal, main, test


# What is read of packets

def interpret(code, protocol, data, random):
    """A classic BPF machine: bytes to take."""
    a = x = at = 0
    while True:
        op, yes, no, value = code[at]
        at += 1
        if op == 0x06:
            return value
        try:
            if op == 0x20:
                a = random if value == 0xfffff000 + 56 else None
            elif op == 0x28:
                a = protocol if value == 0xfffff000 else struct.unpack_from("!H", data, value)[0]
            elif op == 0x30:
                a = data[value]
            elif op == 0x50:
                a = data[x + value]
            elif op == 0xb1:
                x = 4 * (data[value] & 15)
            elif op == 0x54:
                a &= value
            else:
                at += (yes if (a == value if op == 0x15 else a & value) else no)
        except (IndexError, struct.error):
            return 0


def ipv4(ecn=0, proto=6, flags=0x10, options=b"", offset=0, payload=b""):
    """A packet."""
    body = struct.pack("!HHIIHHHH", 1001, 80, 0, 0, 5 << 12 | flags, 0, 0, 0) if proto == 6 else bytes.fromhex(
        "03e900500000") + b"\0\0"
    length = 20 + len(options) + len(body) + len(payload)
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | (5 + len(options) // 4), ecn, length, 0, offset, 64, proto, 0,
                       bytes((10, 1, 0, 1)), bytes((10, 2, 0, 1)))
    return head + options + body + payload


def ipv6(ecn=0, flags=0x10, payload=b""):
    """A packet."""
    body = struct.pack("!HHIIHHHH", 1001, 80, 0, 0, 5 << 12 | flags, 0, 0, 0) + payload
    return struct.pack("!IHBB", 6 << 28 | ecn << 20, len(body), 6, 64) + b"\xfd" + b"\0" * 14 + b"\1" + (
        b"\xfd" + b"\0" * 14 + b"\2") + body


@test
def filter_takes_every_syn_and_some_of_the_rest():
    code = packets.program(8)
    for protocol, data, taken in (
            (0x0800, ipv4(flags=0x02), True), (0x0800, ipv4(flags=0x12), True), (0x0800, ipv4(flags=0x10), False),
            (0x0800, ipv4(flags=0x02, options=b"\1" * 8), True), (0x0800, ipv4(flags=0x10, options=b"\2" * 8), False),
            (0x0800, ipv4(flags=0x02, offset=1), False), (0x0800, ipv4(proto=17), False),
            (0x86dd, ipv6(flags=0x02), True), (0x86dd, ipv6(flags=0x10), False), (0x0806, bytes(28), False)):
        equal(bool(interpret(code, protocol, data, 5)), taken, f"{protocol:x} {data.hex()}")
        assert interpret(code, protocol, data, 16), "the filter rejects the eighth packet"
    equal([packets.one_in(rate) for rate in (0, 3000, 3001, 100000)], [1, 1, 2, 64])


@test
def headers_are_read_under_tags_and_pppoe():
    for protocol, data in ((0x0800, ipv4(3, payload=b"x" * 7)), (0x86dd, ipv6(3, payload=b"x" * 7)),
                           (0x8100, b"\0\5\x08\0" + ipv4(3, payload=b"x" * 7)),
                           (0x8864, b"\x11\0\0\1\0\0\0\x21" + ipv4(3, payload=b"x" * 7)),
                           (0x8864, b"\x11\0\0\1\0\0\0\x57" + ipv6(3, payload=b"x" * 7))):
        packet, _ = packets.parse(data, protocol)
        equal((packet.ecn, packet.payload, packet.sport, packet.dport, packet.flags), (3, 7, 1001, 80, 0x10))
    for protocol, data in ((0x8847, bytes(40)), (0x0800, b"\x45\0"), (0x0800, bytes(40)), (0x86dd, ipv4()),
                           (0x8864, b"\x11\0\0\1\0\0\xc0\x21")):
        equal(packets.parse(data, protocol), (None, protocol))
    for size in range(60):
        packets.parse(ipv4()[:size], 0x0800)
        packets.parse(ipv6()[:size], 0x86dd)


@test
def handshakes_are_read_as_rfc_9768_says():
    equal([packets.offer(flags) for flags in (0x1c2, 0x0c2, 0x002, 0x142)], ["accecn", "ecn", "none", "none"])
    table = {0b010: "accecn", 0b011: "accecn", 0b100: "accecn", 0b110: "accecn", 0b001: "ecn", 0b101: "ecn",
             0b000: "none", 0b111: "none"}
    equal({bits: packets.answer(0x12 | bits << 6) for bits in table}, table)
    tally = packets.Tally()
    tally.add("eth0", 1500, False, 0x0800, 60, ipv4(flags=0x1c2))
    tally.add("eth1", 1500, True, 0x0800, 60, ipv4(flags=0x0c2))
    # The answer comes the other way.
    back = bytearray(ipv4(flags=0x092))
    back[12:16], back[16:20] = back[16:20], back[12:16]
    back[20:22], back[22:24] = back[22:24], back[20:22]
    tally.add("eth1", 1500, False, 0x0800, 60, bytes(back))
    tally.add("eth1", 1500, True, 0x0800, 5000, ipv4(1, payload=b"x"))
    counted = json.loads(json.dumps(tally.as_dict()))
    [handshake] = counted["syns"]
    equal((handshake["offer"], handshake["answer"], handshake["devices"]), ("accecn", "accecn", ["eth0", "eth1"]))
    equal(counted["flows"][0]["at"]["eth1 out"]["data"], [0, 1, 0, 0])
    equal(counted["devices"]["eth1"]["out"]["large"], 1)


# What is read of rules

def pedit(*keys):
    """struct tc_pedit_sel of (mask bytes, offset)."""
    return bytes(20) + bytes((len(keys), 0, 0, 0)) + b"".join(
        mask + struct.pack("=5I", 0, offset, 0, 0, 0) for mask, offset in keys)


@test
def pedit_is_blamed_for_the_ecn_field_alone():
    # Without the filter's protocol it may be either's; with it, a DSCP alone is just that.
    dscp4, dscp6, ecn4, ecn6 = ("ff03ffff", "f03fffff", "fffcffff", "ffcfffff")
    for mask, protocol, headers, guilty in (
            (dscp4, 0x0800, (), False), (dscp4, 0x0800, (0,), False), (dscp4, 0x0800, (2,), False),
            (dscp4, 0x0003, (2,), False), (dscp6, 0x86dd, (3,), False), (dscp6, 0x86dd, (), False),
            (ecn4, 0x0800, (), True), (ecn4, 0x0800, (2,), True), (ecn4, 0x0003, (2,), True),
            (ecn6, 0x86dd, (), True), (ecn6, 0x86dd, (3,), True), (ecn4, 0x86dd, (), False), (ecn6, 0x0800, (), False),
            (ecn4, 0x0003, (0,), True), (ecn6, 0x0003, (0,), True),
            ("00000000", 0x0800, (1,), False), ("00000000", 0x0800, (4,), False), ("00000000", 0x0800, (5,), False)):
        equal(net.pedit_writes_ecn(pedit((bytes.fromhex(mask), 0)), protocol, headers), guilty,
              f"{mask} {protocol:x} {headers}")
    for mask, offset, guilty in (("ff00ffff", 0, True), ("fffcffff", 0, True), ("ff03ffff", 0, True),
                                 ("ffffffff", 0, False), ("00ffffff", 0, False), ("ff00ffff", 8, False)):
        equal(net.pedit_writes_ecn(pedit((bytes.fromhex(mask), offset))), guilty, f"{mask} at {offset}")
    # The DSCP of IPv4 alone has the low two bits left, and overlaps those of IPv6.
    equal(net.pedit_writes_ecn(pedit((bytes.fromhex("ffffffff"), 0), (bytes.fromhex("ff00ffff"), 0))), True)
    equal(net.pedit_writes_ecn(b""), False)
    equal(net.pedit_writes_ecn(pedit((bytes(4), 0))[:40]), False)


@test
def nft_is_blamed_for_the_ecn_field_alone():
    for payload, guilty in (({"protocol": "ip", "field": "ecn"}, True), ({"protocol": "ip6", "field": "ecn"}, True),
                            ({"protocol": "ip", "field": "dscp"}, False), ({"base": "nh", "offset": 8, "len": 8}, True),
                            ({"base": "nh", "offset": 16, "len": 16}, False),
                            ({"base": "th", "offset": 8, "len": 8}, False)):
        equal(probe._nft_writes_ecn({"mangle": {"key": {"payload": payload}, "value": 0}}), guilty, str(payload))
    for statement in ({"counter": {}}, {"mangle": {"key": {"meta": {}}}}, "accept", {"mangle": {"key": "x"}}):
        equal(probe._nft_writes_ecn(statement), False, str(statement))


@test
def iptables_is_blamed_for_the_ecn_field_alone():
    text = ("-A FORWARD -j TOS --set-tos 0x00/0xff\n-A FORWARD -j TOS --set-tos 0x00/0xfc\n"
            "-A OUTPUT -j DSCP --set-dscp 0x08\n-A INPUT -j ECN --ecn-ip-ect 0\n")
    text += '-A FORWARD -m comment --comment "a; reboot \\"$(x)" -j ECN --ecn-ip-ect 0\n'
    text += '-A FORWARD -m comment --comment "unbalanced -j ECN --ecn-ip-ect 0\n'

    def rules(variant, tables):
        asked = []

        def output(command):
            asked.append(command)
            return (f"iptables v1.8.9 ({variant})" if command[1] == "-V" else text), 0
        with unittest.mock.patch.object(probe, "_output", output), \
             unittest.mock.patch.object(probe, "_read", lambda path: tables if "ip_tables" in path else ""):
            return [rule["command"] for rule in probe._iptables() if rule["where"] == "iptables"], asked

    want = ["iptables -t mangle -D FORWARD -j TOS --set-tos 0x00/0xff",
            "iptables -t mangle -D INPUT -j ECN --ecn-ip-ect 0",
            "iptables -t mangle -D FORWARD -m comment --comment 'a; reboot \"$(x)' -j ECN --ecn-ip-ect 0"]
    equal(rules("nf_tables", "")[0], want)
    equal(rules("legacy", "filter\nmangle\n")[0], want)
    # The older one would load its modules.
    equal(rules("legacy", "filter\n"), ([], [["iptables", "-V"], ["ip6tables", "-V"]]))


@test
def commands_are_quoted_for_the_shell():
    class Asker:
        def filters(self, _, parent):
            return [{"kind": "u32", "pref": 7, "actions": [{"kind": "pedit", "ecn": True}]}] if (
                parent == net.TC_CLSACT_INGRESS) else []

    with unittest.mock.patch.object(probe, "_output", lambda command: ("", None)):
        rule, = probe.rewriters({3: {"ifindex": 3, "name": "e;reboot"}}, Asker())
    equal(rule["command"], "tc filter del dev 'e;reboot' ingress pref 7")
    listed = json.dumps({"nftables": [{"rule": {"family": "ip", "table": "a b", "chain": "c", "handle": 3, "expr": [
        {"mangle": {"key": {"payload": {"protocol": "ip", "field": "ecn"}}, "value": 0}}]}}]})
    with unittest.mock.patch.object(probe, "_output", lambda command: (listed, 0)):
        equal(probe._nft()[0]["command"], "nft delete rule ip 'a b' c handle 3")


@test
def link_layer_of_cake_is_kept():
    def options(raw=None, **given):
        names = {"overhead": net.CAKE_OVERHEAD, "mpu": net.CAKE_MPU, "atm": net.CAKE_ATM,
                 "ingress": net.CAKE_INGRESS}
        found_options = {names[name]: struct.pack("=i", value) for name, value in given.items()}
        return found_options if raw is None else {**found_options, net.CAKE_RAW: bytes(4)}

    for given, args in (({"overhead": 18, "mpu": 64, "atm": 0, "ingress": 0}, " overhead 18 mpu 64 noatm"),
                         ({"overhead": -4, "mpu": 0, "atm": 1, "ingress": 1}, " overhead -4 mpu 0 atm ingress"),
                         ({"overhead": 30, "mpu": 0, "atm": 2}, " overhead 30 mpu 0 ptm"),
                         ({"raw": 1, "overhead": 0, "atm": 0}, ""), ({"raw": 1, "ingress": 1}, " ingress")):
        equal(net._cake_options(options(**given)), args)


class FakeAsker:
    """Has the classes of a device; its looks are made up."""

    def __init__(self, classes):
        self.found = classes

    def classes(self, _):
        return self.found


class FakeWatch:
    """Qdiscs with packets that they sent."""

    def __init__(self, classes, *qdiscs):
        self.asker = FakeAsker(classes)
        self.last = {qdisc.key: qdisc for qdisc in qdiscs}

    def grown(self, key):
        return {"packets": self.last[key].packets}


def raw_qdisc(kind, handle, parent, packets=0):
    """As in a dump."""
    def attr(number, data):
        return struct.pack("=HH", 4 + len(data), number) + data + bytes(-len(data) % 4)

    made = net.Qdisc(struct.pack("=BxxxiIII", 0, 2, handle, parent, 0) + attr(1, kind.encode() + b"\0"))
    made.packets = packets
    return made


@test
def leaf_is_where_the_packets_are_or_unknown():
    def tree(kind, *leaves):
        return {0x10001: {"parent": 0xffffffff, "kind": kind}, **{
            handle: {"parent": 0x10001, "kind": kind} for handle in leaves}}

    root = raw_qdisc("htb", 0x10000, 0xffffffff, 1000)
    few, many = raw_qdisc("sfq", 0x20000, 0x10010, 100), raw_qdisc("fq", 0x30000, 0x10020, 900)
    for what, classes, children, want in (
            ("the busiest", tree("htb", 0x10010, 0x10020), (few, many), ("1:20", "fq")),
            ("a hidden one", tree("htb", 0x10010, 0x10020), (few,), (None, None)),
            ("a hidden one alone", tree("htb", 0x10010), (), ("1:10", "pfifo")),
            ("two hidden ones", tree("htb", 0x10010, 0x10020), (), (None, None)),
            ("no class", {}, (), (None, None))):
        equal(probe._leaf(root, FakeWatch(classes, root, *children)), want, what)
    hfsc = raw_qdisc("hfsc", 0x10000, 0xffffffff, 1000)
    classes = {0x10000: {"parent": 0xffffffff, "kind": "hfsc"}, 0x10010: {"parent": 0x10000, "kind": "hfsc"}}
    equal(probe._leaf(hfsc, FakeWatch(classes, hfsc)), ("1:10", "pfifo"))
    prio = raw_qdisc("prio", 0x10000, 0xffffffff, 1000)
    equal(probe._leaf(prio, FakeWatch({}, prio, few)), (None, None))
    tbf = raw_qdisc("tbf", 0x10000, 0xffffffff)
    equal(probe._leaf(tbf, FakeWatch({}, tbf)), ("1:1", "pfifo"))


# The command

def run(facts, *args):
    """(code, output) of the doctor on these facts."""
    out, err = io.StringIO(), io.StringIO()
    patch = unittest.mock.patch.object
    with patch(probe, "facts", lambda *_: facts), patch(net, "is_root", lambda: True), \
         redirect_stdout(out), redirect_stderr(err):
        code = doctor.main(["eth0", *args])
    equal(err.getvalue(), "")
    return code, out.getvalue()


@test
def exit_code_tells_fault_from_doubt():
    equal(run(healthy())[0], 0)
    idle, faulty = nothing_waits(healthy()), healthy()
    faulty["up"] = False
    equal(run(idle)[0], 3)
    equal(run(faulty)[0], 1)
    for facts, lines in ((healthy(), 1), (classic_only(healthy()), 2), (idle, 1), (faulty, 2)):
        equal(run(facts)[1].count("\n"), lines)
        equal(json.loads(run(facts, "--json")[1])["verdict"], rules.diagnose(facts).verdict())
        equal(json.loads(run(facts, "--json", "-v")[1])["facts"]["device"], "eth0")
        assert run(facts, "-v")[1].count("\n") > len(rules.RULES)


@test
def what_goes_wrong_is_no_verdict():
    patch = unittest.mock.patch.object
    for error, text in ((OSError(5, "Input/output error"), "Input/output error"),
                         (PermissionError(1, "no"), "outside of the container"),
                         (FileNotFoundError(2, "No such file", "/proc/x"), "/proc/x")):
        def fail(*_, error=error):
            raise error
        out, err = io.StringIO(), io.StringIO()
        with patch(probe, "facts", fail), patch(net, "is_root", lambda: True), redirect_stdout(out), \
             redirect_stderr(err):
            equal(doctor.main(["eth0"]), 3, str(error))
        equal((out.getvalue(), err.getvalue().count("\n")), ("", 1))
        assert text in err.getvalue(), err.getvalue()


@test
def answer_that_nobody_reads_is_no_verdict():
    program = ("import sys; sys.path.insert(0, sys.argv[1]); from dualpi2.doctor import cli as doctor; "
               "sys.exit(doctor._say('x', 1))")
    read, write = os.pipe()
    os.close(read)
    for out, said in ((write, 0), (os.open("/dev/full", os.O_WRONLY), 1)):
        done = subprocess.run([sys.executable, "-B", "-c", program, os.path.join(ROOT, "tools")], stdout=out,
                              stderr=subprocess.PIPE, check=False, env={})
        equal((done.returncode, done.stderr.count(b"\n")), (3, said), str(done.stderr))


@test
def rates_are_those_that_tc_reads():
    equal([rules.tc_rate(rate) for rate in (1250000, 125000000, 1000, 999, 125125)],
          ["10mbit", "1gbit", "8kbit", "7992bit", "1001kbit"])
    equal(rules.below_rate(1250000, "egress"), "9500kbit")
    equal(rules.below_rate(1250000, "ingress"), "9000kbit")
    equal(rules.below_rate(0, "egress"), "8kbit")


if __name__ == "__main__":
    main()
