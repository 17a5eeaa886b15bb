#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Tests of dualpi2 doctor without a kernel: the commands that it suggests and prints, and --fix. KTAP on stdout."""

import io
import json
import shlex
import struct
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout

from lib_rules import classic_only, found, healthy, nothing_waits, one
from dualpi2.doctor import cli, net, probe, rules
from dualpi2.doctor.findings import Finding
from dualpi2.kernel.netlink import attr
from dualpi2.kernel.qdisc import EXT as TCA_DUALPI2_EXT, EXT_OPTIONS, without_children
from dualpi2.up import commands, status
from ktap import expect_equal as equal, main, test


def at_its_limit():
    """One of four processors is, and eth0 has four queues."""
    facts = healthy()
    facts["processors"] = [0.99, 0.4, 0.2, 0.1]
    facts["links"]["eth0"]["tx_queues"] = 4
    return facts


@test
def one_core_at_its_limit_is_told_where_others_could_help():
    equal(found(at_its_limit()), ["one-core"])
    [finding] = rules.diagnose(at_its_limit()).findings
    assert "of 4 processors one works 99% of the time and another one 10%" in finding.verdict, finding.verdict
    assert "dualpi2_mq" in finding.command and not finding.fixes, finding.command
    managed = at_its_limit()
    one(managed)["handle"] = managed["qdiscs"][0]["handle"] = "d50:"
    [finding] = rules.diagnose(managed).findings
    equal((finding.command, finding.fixes), ("dualpi2 set eth0 --queues all", True))


@test
def one_core_is_no_finding_where_others_could_not_help():
    for where, key, value in (
            ("links", "tx_queues", 1), ("one", "kind", "dualpi2_mq"), ("one", "where", "parent 1:1"),
            ("one", "waiting", 0.0), ("options", "bandwidth", 0), ("qdisc", "overlimits", 61),
            ("facts", "processors", []), ("facts", "processors", [0.99]), ("facts", "processors", [0.9, 0.1]),
            ("facts", "processors", [0.99, 0.9])):
        facts = at_its_limit()
        part = {"links": facts["links"]["eth0"], "one": one(facts), "qdisc": facts["qdiscs"][0], "facts": facts,
                "options": one(facts)["options"]}[where]
        part[key] = value
        equal(found(facts), [], f"{key} {value}")


@test
def share_of_a_processor_is_read_from_the_kernel():
    before = probe.busy_ticks("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 20 100 5 0 5 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
                              "cpu3 1 0 0 1 0 0 0 0\nintr 1\n")
    equal(before, {"cpu0": (35, 140), "cpu1": (0, 0), "cpu3": (1, 2)})
    after = probe.busy_ticks("cpu0 10 0 20 190 5 0 15 0 0 0\ncpu1 0 0 0 0 0 0 100 0 0 0\n"
                             "cpu2 1 1 1 1 1 1 1 1\ncpu3 1 0 0 1 0 0 0 0\n")
    equal(probe.busy_shares(before, after), [1.0, 0.1])
    equal(probe.busy_ticks(""), {})


def answer(*args, facts=None, names=None, terminal=""):
    """(code, stdout, stderr) of the doctor. facts: a dict for each observation, or one for all."""
    facts = facts if isinstance(facts, list) else [facts]
    left = iter(facts[:-1])
    out, err = io.StringIO(), io.StringIO()
    patch = unittest.mock.patch.object
    stdin = io.StringIO(terminal)
    with patch(probe, "facts", lambda *_: next(left, facts[-1])), patch(net, "is_root", lambda: True), \
         patch(probe, "devices", lambda: names), patch(probe, "facts_of", lambda *_: facts), \
         patch(cli, "_terminal", lambda: bool(terminal)), patch(cli.sys, "stdin", stdin), \
         redirect_stdout(out), redirect_stderr(err):
        code = cli.main([*args])
    return code, out.getvalue(), err.getvalue()


def l4s_off():
    facts = healthy()
    one(facts)["options"]["l4s"] = 0
    return facts


def bare(kind, handle="", waiting=0.0, packets=5000, queues=0):
    """eth0 without a dualpi2, with this root qdisc."""
    facts = healthy()
    facts["targets"][0]["dualpi2"] = []
    row = {"device": "eth0", "kind": kind, "name": f"{kind} {handle or '0:'}", "handle": handle, "where": "root",
           "shaper": None, "leaf": None, "packets": packets, "bytes": 1000 * packets, "drops": 0, "waiting": waiting,
           "most": 0}
    facts["qdiscs"] = [row] + [dict(row, kind="fq_codel", where=f"parent {handle or ':'}{number:x}")
                               for number in range(1, queues + 1)]
    return facts


@test
def finding_is_a_line_and_a_line_with_the_command():
    equal(answer("eth0", facts=l4s_off())[:2], (1, "fault l4s-off eth0: dualpi2 1: has no_l4s: it treats ECT(1) as "
          "Not-ECT\n  fix: tc qdisc change dev eth0 root handle 1: dualpi2 l4s\n"))
    for more, label in (({}, "fix"), ({"fixes": False}, "check"), ({"fixes": False, "condition": "so"}, "fix, if so"),
                        ({"condition": "so"}, "fix, if so"), ({"host": "10.2.0.1"}, "on 10.2.0.1 run"),
                        ({"manual": True}, "fix")):
        equal(Finding("a", "e\n0", "why", "do", **more).text(), f"fault a e?0: why\n  {label}: do")
    facts = l4s_off()
    one(facts)["options"].update(step_thresh_us=20000)
    equal(answer("eth0", facts=facts)[1].count("\n  fix: "), 2, "each finding has its command")


@test
def commands_enter_the_network_namespace():
    for netns, command, more, line in (
            (None, "do x", {}, "do x"), ("n 1", "do x", {}, "ip netns exec 'n 1' do x"),
            ("/run/n", "do x", {}, "nsenter --net=/run/n do x"),
            ("n1", "do x && do y", {}, "ip netns exec n1 sh -c 'do x && do y'"),
            ("n1", "for i in 1 2; do x; done", {}, "ip netns exec n1 sh -c 'for i in 1 2; do x; done'"),
            ("n1", "do x", {"host": "10.2.0.1"}, "do x"), ("n1", "ask someone", {"manual": True}, "ask someone")):
        finding = Finding("a", "eth0", "why", command, **more)
        finding.netns = netns
        equal(finding.line(), line)
        assert finding.text().endswith(": " + line), finding.text()
        equal(finding.as_dict()["command"], line)


@test
def json_has_the_older_and_the_newer_keys():
    code, out, _ = answer("eth0", "--json", facts=l4s_off())
    [found] = json.loads(out)["findings"]
    equal((code, found["mends"], found["fixes"], found["host"], found["condition"]), (1, True, True, None, None))
    equal((found["command"], found["fix"]), ("tc qdisc change dev eth0 root handle 1: dualpi2 l4s",) * 2)
    check = Finding("a", "eth0", "why", "look", fixes=False).as_dict()
    equal((check["command"], check["fix"], check["fixes"]), ("look", None, False))
    for more in ({"host": "10.2.0.1"}, {"manual": True}):
        equal((Finding("a", "eth0", "why", "do", **more).fixes), False, str(more))


@test
def classic_senders_are_a_note_and_exit_0():
    code, out, err = answer("eth0", facts=classic_only(healthy()))
    equal((code, err), (0, ""))
    lines = out.split("\n")
    assert lines[0].startswith("healthy eth0: egress 9.54 Mbit/s"), out
    equal(lines[1:], ["note no-ect1 eth0: no ECT(1) packets in 5 s (Not-ECT 6000, ECT(0) 0). The senders use Classic "
                      "congestion control; nothing to change on this device.", ""])
    found = json.loads(answer("eth0", "--json", facts=classic_only(healthy()))[1])
    equal((found["verdict"], found["findings"], found["notes"][0]["id"]), ("healthy", [], "no-ect1"))


@test
def mq_keeps_a_qdisc_for_each_queue():
    command = rules.diagnose(bare("mq", "8:", 1.0, queues=17)).findings[0].command
    equal(command, "for n in $(seq 17); do tc qdisc replace dev eth0 parent 8:$(printf %x $n) dualpi2; done")
    command = rules.diagnose(bare("mq", "", 1.0, queues=4)).findings[0].command
    equal(command, "tc qdisc replace dev eth0 root handle 1: mq && for n in $(seq 4); do tc qdisc replace dev eth0 "
          "parent 1:$(printf %x $n) dualpi2; done")


@test
def link_without_traffic_or_queue_is_not_given_a_bare_dualpi2():
    for kind in ("fq_codel", "mq", "pfifo_fast"):
        code, out, _ = answer("eth0", facts=bare(kind, packets=7))
        equal((code, out.count("\n"), out.startswith("unknown eth0: the root qdisc is " + kind)), (3, 1, True), out)
        assert "start a transfer" in out and "tc qdisc" not in out, out
    for facts in (bare("noqueue"), bare("noqueue", packets=0)):
        equal(answer("eth0", facts=facts)[:2], (
            1, "fault no-dualpi2 eth0: the device has no qdisc with a queue; dualpi2 needs the rates of the link\n  "
            "fix, if you know the rates of the link: dualpi2 up eth0 --download RATE --upload RATE\n"))
    equal(answer("eth0", facts=bare("mq"))[1].split("  ")[1], "fix, if you know the rates of the link: dualpi2 up eth0 "
          "--download RATE --upload RATE\n")


@test
def set_is_suggested_for_the_device_that_up_was_given():
    facts = nothing_waits(healthy())
    one(facts)["options"]["bandwidth"] = 0
    one(facts).update(handle="d50:", device="dp2-eth0")
    facts["targets"][0].update(direction="ingress", device="dp2-eth0")
    equal(rules.diagnose(facts).findings[0].command, "dualpi2 set eth0 --download 8640kbit")
    # The doctor was asked for the ifb device itself.
    facts.update(device="dp2-eth0")
    facts["links"]["dp2-eth0"] = dict(facts["links"]["eth0"], name="dp2-eth0", kind="ifb", alias="dualpi2 of eth1")
    equal(rules.diagnose(facts).findings[0].command, "dualpi2 set eth1 --download 8640kbit")
    one(facts)["handle"] = "1:"
    equal(rules.diagnose(facts).findings[0].command,
          "tc qdisc change dev dp2-eth0 root handle 1: dualpi2 bandwidth 8640kbit ingress")


def ratespec(rate, layer=1, overhead=0, mpu=0):
    """struct tc_ratespec."""
    return struct.pack("=BBHhHI", 0, layer, overhead, 0, mpu, rate)


@test
def burst_of_a_parent_is_changed_without_losing_its_other_options():
    for spec, want in ((ratespec(1250000), ""), (ratespec(1250000, overhead=18, mpu=64), " overhead 18 mpu 64"),
                       (ratespec(1250000, 2, 10), " overhead 10 linklayer atm")):
        form = spec + ratespec(1250000) + struct.pack("=5I", 781250, 781250, 1514, 0, 1)
        found = net._htb_class(attr(1, form))
        facts = healthy()
        one(facts)["options"]["bandwidth"] = 0
        one(facts)["shaped_by"] = {"qdisc": "htb 1:", "kind": "htb", "handle": "1:", "where": "root", "classes": [
            dict(found, handle="1:10", parent="1:1")]}
        equal(rules.diagnose(facts).findings[0].command, "tc class change dev eth0 parent 1:1 classid 1:10 htb rate "
              f"10mbit ceil 10mbit burst 1514 cburst 1514 prio 1 quantum 1514{want}")
        for peak, more in ((0, ""), (2500000, " peakrate 20mbit minburst 1600")):
            form = spec + ratespec(peak) + struct.pack("=3I", 5000000, 625000, 10000 if peak else 0)
            qdisc = raw("tbf", attr(1, form))
            one(facts)["shaped_by"] = {"qdisc": "tbf 1:", "kind": "tbf", "handle": "1:", "where": "root",
                                       **qdisc.shaper()}
            equal(rules.diagnose(facts).findings[0].command, "tc qdisc change dev eth0 root handle 1: tbf rate 10mbit "
                  f"burst 1514 limit 5000000{want}{more}")


def raw(kind, options):
    """A qdisc as in a dump."""
    return net.Qdisc(struct.pack("=BxxxiIII", 0, 2, 0x10000, 0xffffffff, 0) + attr(1, kind.encode() + b"\0") +
                     attr(2, options))


@test
def dualpi2_mq_is_one_qdisc_and_keeps_its_kind():
    facts = l4s_off()
    one(facts).update(kind="dualpi2_mq", name="dualpi2_mq 1:")
    equal(answer("eth0", facts=facts)[1], "fault l4s-off eth0: dualpi2_mq 1: has no_l4s: it treats ECT(1) as Not-ECT\n"
          "  fix: tc qdisc change dev eth0 root handle 1: dualpi2_mq l4s\n")
    root, child = raw("dualpi2_mq", b""), raw("dualpi2", b"")
    child.handle, child.parent = 0, 0x10001
    equal(without_children([root, child]), [root])
    root.options = attr(TCA_DUALPI2_EXT | 0x8000, attr(EXT_OPTIONS["bandwidth"][0], struct.pack("=Q", 1250000)))
    equal(root.shaper(), {"rate": 1250000, "burst_ns": 0})


@test
def up_changes_a_dualpi2_mq_as_one():
    """In the place of the dualpi2 of `dualpi2 up`, with its handle."""
    want = commands.Want(upload="10mbit")
    old = {"egress": want.qdisc(False, False), "named": sorted(want.named())}
    for kind in ("dualpi2", "dualpi2_mq"):
        root = {"kind": kind, "handle": "d50:"}
        step = commands._root_step("eth0", root, commands.Want(upload="20mbit"), False, old)
        at = f"tc qdisc change dev eth0 root handle d50: {kind} bandwidth "
        equal((shlex.join(step.do).startswith(at + "20mbit "), shlex.join(step.undo).startswith(at + "10mbit ")),
              (True, True), f"{step.do} {step.undo}")
        with unittest.mock.patch.object(commands.system, "root_qdisc", lambda _, found=root: found):
            equal(status._side("eth0", "20mbit")["ok"], True)
    # With another handle it is of another tool.
    equal(commands._own({"kind": "dualpi2_mq", "handle": "8001:"}), False)


@test
def missing_tc_is_installed_from_the_package_that_has_it():
    facts = healthy()
    facts["tc"]["found"] = False
    for packager, want, fixes in (("apt", "apt install iproute2", True), ("dnf", "dnf install iproute-tc", True),
                                  (None, "install iproute2 with tc", False)):
        facts["module"]["packager"] = packager
        finding = rules.diagnose(facts).findings[0]
        equal((finding.command, finding.fixes), (want, fixes))


# Flow offloading

def table(**more):
    return dict({"where": "nft flowtable inet fw4 ft", "hardware": True, "devices": ["eth0", "eth1"],
                 "command": "nft delete rule x"}, **more)


@test
def offloading_that_bypasses_the_qdisc_is_a_fault():
    def found(device, kernel="7.2.12+deb14-amd64", **more):
        facts = nothing_waits(healthy())
        facts["kernel"] = kernel
        one(facts)["options"]["bandwidth"] = 0
        facts["flowtables"] = [table(**more)]
        facts["links"]["eth0"].update(device)
        return [finding.kind for finding in rules.diagnose(facts).findings]

    equal(found({}), ["flow-offload"], "and not that there is no queue")
    equal(found({}, devices=None), ["flow-offload"])
    equal(found({}, devices=["eth7"]), ["no-queue"], "other devices")
    equal(found({}, hardware=False), ["no-queue"], "software offload passes the qdisc of an Ethernet device")
    for device, since in (({"type": 512}, 3), ({"kind": "vlan"}, 3), ({"kind": "bridge"}, 1)):
        for number, kernel in enumerate(("5.10.0-46-amd64", "6.1.0-56-amd64", "6.12.117", "7.2.12+deb14-amd64")):
            equal(found(device, kernel, hardware=False), ["flow-offload" if number >= since else "no-queue"],
                  f"{device} {kernel}")
            equal(found(device, kernel), ["flow-offload"], f"{device} {kernel}: hardware")


@test
def flowtables_are_read_from_nft_and_iptables():
    ruleset = [{"metainfo": {}},
               {"flowtable": {"family": "inet", "name": "ft", "table": "fw4", "handle": 3, "hook": "ingress",
                              "prio": 0, "dev": ["lan", "wan"]}},
               {"flowtable": {"family": "inet", "name": "unused", "table": "fw4", "handle": 4, "dev": "wan"}},
               {"flowtable": {"family": "ip", "name": "soft", "table": "my", "handle": 5, "dev": "wan"}}]
    for family, table_, name in (("inet", "fw4", "ft"), ("ip", "my", "soft")):
        ruleset.append({"rule": {"family": family, "table": table_, "chain": "for ward", "handle": 9, "expr": [
            {"match": {}}, {"flow": {"op": "add", "flowtable": "@" + name}}]}})
    listed = ("table inet fw4 {\n\tflowtable ft {\n\t\thook ingress priority filter\n\t\tdevices = { lan, wan }\n"
              "\t\tflags offload\n\t}\n}\ntable ip my {\n\tflowtable soft {\n\t\tdevices = { wan }\n\t}\n}\n")
    saved = ('-P FORWARD ACCEPT\n-A FORWARD -m comment --comment "a; b" -j FLOWOFFLOAD --hw\n-A FORWARD -j ACCEPT\n')

    def output(command):
        if command[0] == "nft":
            return (json.dumps({"nftables": ruleset}) if "-j" in command else listed), 0
        if command[1] == "-V":
            return command[0] + " v1.8.9 (nf_tables)", 0
        return saved if command[0] == "iptables-save" else "", 0
    with unittest.mock.patch.object(probe, "_output", output), \
         unittest.mock.patch.object(probe, "_program", lambda name: None):
        found = probe.flowtables()
    equal([one_["command"] for one_ in found], [
        "nft delete rule inet fw4 'for ward' handle 9 && nft delete flowtable inet fw4 ft",
        "nft delete rule ip my 'for ward' handle 9 && nft delete flowtable ip my soft",
        "iptables -D FORWARD -m comment --comment 'a; b' -j FLOWOFFLOAD --hw"])
    equal([(one_["hardware"], one_["devices"]) for one_ in found], [(True, ["lan", "wan"]), (False, ["wan"]),
                                                                     (True, None)])
    # OpenWrt's firewall has its own switch.
    with unittest.mock.patch.object(probe, "_output", lambda command: ("1\n" if "uci" in command[0] else "", 0)), \
         unittest.mock.patch.object(probe, "_program", lambda name: "/sbin/" + name):
        [found] = probe.flowtables()
    assert found["hardware"] and found["command"].startswith("uci set firewall.@defaults[0].flow_offloading=0 &"), found


# All devices

@test
def devices_with_dualpi2_or_a_default_route_are_checked():
    rows = {"route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
                     "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\n"
                     "eth1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
                     "eth2\t00000000\t00000000\t0001\t0\t0\t0\t000000FE\n"
                     "eth3\t00000000\t00000000\t0201\t0\t0\t0\t00000000\n",
            "ipv6_route": f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} 00000400 1 0 00000003     wan\n"
                          f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 1 0 00200200      lo\n"
                          f"fe80{'0' * 28} 40 {'0' * 32} 00 {'0' * 32} 00000100 1 0 00000001    eth4\n"}
    with unittest.mock.patch("builtins.open", lambda path, **_: io.StringIO(rows[path.rsplit("/", 1)[1]])):
        equal(net.default_route_devices(), {"eth0", "wan"})
    facts = [healthy(), dict(l4s_off(), device="wan")]
    code, out, _ = answer(facts=facts, names=["eth0", "wan"])
    equal((code, out.count("\n")), (1, 3))
    assert out.startswith("healthy eth0: ") and "\nfault l4s-off eth0: " in out, out
    found = json.loads(answer("-j", facts=facts, names=["eth0", "wan"])[1])
    equal([(row["device"], row["verdict"]) for row in found], [("eth0", "healthy"), ("wan", "fault")])
    equal(answer(facts=[healthy(), nothing_waits(healthy())], names=["eth0", "eth1"])[0], 3, "one without a verdict")
    equal(answer(facts=[healthy()], names=[]), (3, "", "dualpi2 doctor: no device has dualpi2 or a default route; name "
                                                "one: dualpi2 doctor DEV\n"))


@test
def device_above_one_with_dualpi2_is_not_checked():
    def link(number, name, **more):
        return dict({"ifindex": number, "name": name, "loopback": False, "lower": 0, "master": 0, "elsewhere": False,
                     "kind": "", "type": 1}, **more)

    class Asker:
        def __init__(self):
            self.close = lambda: None

        def links(self):
            return {one_["ifindex"]: one_ for one_ in (
                link(2, "eth0"), link(3, "eth0.7", lower=2, kind="vlan"), link(4, "ppp0", type=512), link(5, "eth1"))}

        def qdiscs(self):
            found = raw("dualpi2", b"")
            found.ifindex = managed
            return [found]

    patch = unittest.mock.patch.object
    for managed, pppoe, want in ((2, ["eth0"], ["eth0"]), (2, [], ["eth0", "ppp0"]),
                                 (5, ["eth0"], ["eth0.7", "eth1", "ppp0"])):
        with patch(net, "Asker", Asker), patch(net, "pppoe_devices", lambda found=pppoe: found), \
             patch(net, "default_route_devices", lambda: {"eth0.7", "ppp0"}):
            equal(probe.devices(), want, f"dualpi2 on {managed}, PPPoE on {pppoe}")


# --fix

def fixing(facts, *args, terminal="", code=0):
    """(exit code, stdout, stderr, lines that ran) of --fix."""
    ran = []

    def run(line, **_):
        # No shell: a second command could run although the first one failed.
        ran.append(shlex.join(line))
        return unittest.mock.Mock(returncode=code)
    with unittest.mock.patch.object(cli.subprocess, "run", run):
        return (*answer("eth0", "--fix", *args, facts=facts, terminal=terminal), ran)


COMMAND = "tc qdisc change dev eth0 root handle 1: dualpi2 l4s"


@test
def fix_asks_prints_runs_and_checks_again():
    for args, terminal in ((["--yes"], ""), (["-y"], ""), ([], "y\n")):
        code, out, err, ran = fixing([l4s_off(), healthy()], *args, terminal=terminal)
        equal((code, ran), (0, [COMMAND]), out + err)
        lines = out.split("\n")
        equal(lines[2:4], ["run: " + COMMAND, "fixed l4s-off eth0"])
        assert lines[4].startswith("healthy eth0"), out
        equal("[y/N]" in err, bool(terminal))
    code, out, _, ran = fixing([l4s_off(), l4s_off()], "-y")
    equal((code, len(ran), "\nnot fixed l4s-off eth0\nfault l4s-off" in out), (1, 1, True), out)
    equal(fixing(healthy(), "-y")[3], [], "nothing to fix")
    # Another fault keeps the rule from running again.
    gone = dict(healthy(), exists=False)
    assert "\nnot checked l4s-off eth0\nfault no-device" in fixing([l4s_off(), gone], "-y")[1]
    code, _, err, _ = fixing(l4s_off(), "-y", code=2)
    equal((code, "failed with exit status 2" in err), (1, True), err)


@test
def fix_runs_nothing_that_is_not_confirmed():
    for terminal in ("", "n\n", "\n"):
        code, _, err, ran = fixing(l4s_off(), terminal=terminal)
        equal((code, ran, "not confirmed" in err), (1, [], True), err)
    guess = nothing_waits(healthy())
    one(guess)["options"]["bandwidth"] = 0
    code, _, err, ran = fixing(guess, "-y")
    equal((code, ran, "only you know whether 9.60 Mbit/s is the rate" in err), (1, [], True), err)
    # On a terminal --yes does not answer that question either.
    equal(fixing(guess, "-y", terminal="\n")[3], [])
    equal(fixing([guess, healthy()], terminal="y\n")[3],
          ["tc qdisc change dev eth0 root handle 1: dualpi2 bandwidth 9120kbit"])


@test
def fix_refuses_what_it_cannot_run_here():
    other = classic_only(healthy())
    other["packets"]["syns"] = [{"src": "10.1.0.1", "sport": 1001, "dst": "10.2.0.1", "dport": 80, "proto": 6,
                                 "offer": "ecn", "answer": "ecn", "sent_here": False, "devices": ["eth0"]}]
    missing = healthy()
    missing["tc"]["dualpi2"] = False
    for facts, why in ((other, "concerns another host; on 10.1.0.1 run: sysctl -w net.ipv4.tcp_ecn=3"),
                       (missing, "no command fixes"), (bare("noqueue"), "values that only you know")):
        code, _, err, ran = fixing(facts, "-y", terminal="y\n")
        equal((code, ran, err.count("\n"), why in err), (1, [], 1, True), err)
    # Several steps: the device could be left without a qdisc, or with one on half of the transmit queues.
    reload = healthy()
    reload["module"].update(version="1.0", installed_version="9.1.0")
    offload = healthy()
    offload["flowtables"] = [table(command="nft delete rule x && nft delete flowtable x")]
    for facts in (reload, offload, bare("mq", "", 1.0, queues=4), bare("mq", "8:", 1.0, queues=4)):
        code, _, err, ran = fixing(facts, "-y")
        equal((code, ran, err.count("\n"), "several steps" in err), (1, [], 1, True), err)
    for args in (["--fix"], ["eth0", "--fix", "--json"]):
        try:
            answer(*args, facts=healthy(), names=["eth0"])
            raise AssertionError(f"{args}: accepted")
        except SystemExit as error:
            equal(error.code, 2, str(args))


@test
def flows_under_sanction_are_a_note_with_the_worst():
    facts = healthy()
    worst = {"hash": 7, "score_us": 5000000, "redirected": 900, "sanctioned": 1, "family": 2, "protocol": 17,
             "shared": 0, "src": "10.1.0.1", "dst": "10.2.0.1", "sport": 5000, "dport": 53}
    one(facts)["seen"]["qprotect"] = {"redirected": 1000, "sanctioned": 1}

    def note():
        diagnosis = rules.diagnose(facts)
        equal((diagnosis.verdict(), [finding.kind for finding in diagnosis.notes]), ("healthy", ["sanctioned"]))
        return diagnosis.notes[0].text()

    one(facts)["flows"] = [dict(worst, redirected=0, sport=9), worst]
    text = note()
    for wanted in ("redirected 1000 packets", "1 flow under sanction now", "udp 10.1.0.1:5000 > 10.2.0.1:53",
                   "  check: tc -s class show dev eth0"):
        assert wanted in text, (wanted, text)
    one(facts)["flows"] = [dict(worst, shared=1, src=None, dst=None)]
    assert "shared bucket" in note() and "None" not in note(), note()
    # With qprotect_hash there are no addresses.
    one(facts)["flows"] = [dict(worst, src=None, dst=None)]
    assert "the worst" not in note() and "None" not in note(), note()
    one(facts)["flows"] = []
    assert "redirected 1000 packets" in note(), note()
    one(facts)["seen"]["qprotect"] = {"redirected": 0, "sanctioned": 0}
    equal(rules.diagnose(facts).notes, [])


if __name__ == "__main__":
    main()
