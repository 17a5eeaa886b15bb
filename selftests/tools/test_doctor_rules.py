#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Tests of dualpi2 doctor without a kernel: its rules on made-up facts, and what it reads of packets. KTAP on stdout.

Each fault is one change to the facts of a healthy link, so that a rule that answers to something else shows.
That real faults lead to such facts is shown in test_doctor.py.
"""

import copy
import io
import json
import os
import struct
import subprocess
import sys
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "selftests/lib")]

from dualpi2.doctor import cli as doctor, net, packets, probe, rules  # noqa: E402
from ktap import expect_equal as equal, main, test  # noqa: E402


def queue(not_ect=0, ect1=0, ect0=0, ce=0, p95_ms=0.0, marked=0, dropped=0, size=1000):
    """What happened in one queue."""
    packets = not_ect + ect1 + ect0 + ce
    return {"arrived": {"not_ect": not_ect, "ect1": ect1, "ect0": ect0, "ce": ce}, "packets": packets,
            "bytes": size * packets, "forwarded": packets - dropped, "forwarded_bytes": size * (packets - dropped),
            "marked": marked, "dropped": dropped, "p50_ns": p95_ms * 5e5, "p95_ns": p95_ms * 1e6,
            "p99_ns": p95_ms * 1.1e6}


def healthy():
    """A link of 10 Mbit/s with a bandwidth and both kinds of traffic."""
    return copy.deepcopy({
        "device": "eth0", "exists": True, "up": True, "devices": ["eth0", "eth1"], "kernel": "6.1.0", "seconds": 5.0,
        "module": {"loaded": True, "version": "9.1.0", "builtin": False, "installed": None, "installed_version": None,
                   "sources": [], "ours": "9.1.0", "users": 1, "packager": "apt"},
        "tc": {"found": True, "version": "6.1.0", "dualpi2": True, "extension": True, "bandwidth": True},
        "links": {"eth0": {"name": "eth0", "mtu": 1500, "type": 1, "kind": "", "lower": None, "offloads": {}},
                  "eth1": {"name": "eth1", "mtu": 1500, "type": 1, "kind": "", "lower": None, "offloads": {}}},
        "pppoe": [], "addresses": ["10.0.0.1"], "below": {}, "shapers": [], "rewriters": [],
        "sysctl": {"tcp_ecn": 2, "tcp_ecn_option": None, "ip_forward": 1},
        "qdiscs": [{"device": "eth0", "kind": "dualpi2", "name": "dualpi2 1:", "handle": "1:", "where": "root",
                    "shaper": {"rate": 1250000, "burst_ns": 0}, "packets": 6000, "bytes": 6000000, "drops": 0,
                    "overlimits": 0, "waiting": 1.0, "most": 30}],
        "targets": [{"device": "eth0", "direction": "egress", "dualpi2": [{
            "device": "eth0", "handle": "1:", "name": "dualpi2 1:", "where": "root", "shaped_by": None, "filters": [],
            "options": {"step_thresh_us": 1000, "target": 15000, "ecn_mask": 1, "split_gso": 1, "l4s": 1,
                        "bandwidth": 1250000, "framing": 0},
            "link": {}, "level": "full", "waiting": 1.0, "most": 30,
            "seen": {"seconds": 5.0, "packets": 6000, "bytes": 6000000, "drops": 40, "marks": 100, "overload_s": 0.0,
                     "overload_now": False, "unparsed": 0, "l4s": queue(ect1=3000, p95_ms=1, marked=100),
                     "classic": queue(not_ect=3000, p95_ms=20, dropped=40)}}]}],
        "packets": {"one_in": 1, "seen": 12000, "devices": {
            "eth0": {"out": {"ecn": [3000, 2900, 0, 100], "large": 0, "other": {}}},
            "eth1": {"in": {"ecn": [3000, 3000, 0, 0], "large": 0, "other": {}}}},
            "flows": [flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[0, 2900, 0, 100]),
                      flow(2, eth1_in=[3000, 0, 0, 0], eth0_out=[3000, 0, 0, 0])], "syns": []}})


def flow(number, proto=6, **at):
    """A flow from 10.1.0.1 to 10.2.0.1, and where it was seen with which codepoints."""
    return {"src": "10.1.0.1", "sport": 1000 + number, "dst": "10.2.0.1", "dport": 80, "proto": proto,
            "at": {place.replace("_", " "): {"ecn": ecn, "data": ecn, "bytes": 1000 * sum(ecn)}
                   for place, ecn in at.items()}}


def syn(offer, answer, number=1, src="10.1.0.1"):
    """A handshake of such a flow."""
    return {"src": src, "sport": 1000 + number, "dst": "10.2.0.1", "dport": 80, "proto": 6, "offer": offer,
            "answer": answer, "sent_here": False, "devices": ["eth1", "eth0"]}


def one(facts):
    return facts["targets"][0]["dualpi2"][0]


def found(facts):
    """Ids of the findings."""
    return [finding.kind for finding in rules.diagnose(facts).findings]


def first(facts, kind, *words):
    """The first finding, of this kind, with these words."""
    findings = rules.diagnose(facts).findings
    assert findings and findings[0].kind == kind, [finding.line() for finding in findings]
    for word in words:
        assert word in findings[0].line(), f"{word!r} is not in: {findings[0].line()}"
    assert "\n" not in findings[0].line()
    return findings[0]


def found_line(facts):
    """The first finding as it is printed."""
    return rules.diagnose(facts).findings[0].line()


def classic_only(facts):
    """Nobody speaks L4S."""
    one(facts)["seen"].update(l4s=queue(), classic=queue(not_ect=6000, p95_ms=20, dropped=40))
    facts["packets"]["devices"]["eth0"]["out"]["ecn"] = [6000, 0, 0, 0]
    facts["packets"]["devices"]["eth1"]["in"]["ecn"] = [6000, 0, 0, 0]
    facts["packets"]["flows"] = [flow(1, eth1_in=[6000, 0, 0, 0], eth0_out=[6000, 0, 0, 0])]
    return facts


def nothing_waits(facts):
    """No queue here."""
    one(facts).update(waiting=0.0, most=0)
    one(facts)["seen"].update(l4s=queue(ect1=3000), classic=queue(not_ect=3000))
    return facts


@test
def healthy_link_has_no_finding():
    result = rules.diagnose(healthy())
    equal([finding.line() for finding in result.findings], [])
    equal((result.verdict(), result.doubts), ("healthy", []))
    equal({check["result"] for check in result.checks}, {"ok"})
    equal([check["id"] for check in result.checks], [kind for kind, _, _ in rules.RULES])


@test
def device_that_is_not_there_ends_the_questions():
    facts = {"device": "eth7", "exists": False, "devices": ["eth0"], "kernel": "6.1", "seconds": 1, "module": {},
             "tc": {}}
    first(facts, "no-device", "eth0")
    equal(found(facts), ["no-device"])
    facts["vanished"] = True
    first(facts, "no-device", "went away meanwhile")


@test
def device_that_is_down_is_to_be_set_up():
    facts = healthy()
    facts["up"] = False
    first(facts, "device-down", "ip link set dev eth0 up")


@test
def delay_of_one_packet_or_a_mark_is_a_queue():
    for change, kinds in (({"classic": queue(not_ect=3000, p95_ms=0.14)}, []),
                          ({"classic": queue(not_ect=3000, p95_ms=0.12)}, ["no-queue"]),
                          ({"l4s": queue(ect1=3000, marked=1)}, []), ({"classic": queue(not_ect=3000, dropped=1)}, [])):
        facts = nothing_waits(healthy())
        one(facts)["options"]["bandwidth"] = 0
        one(facts)["seen"].update(change)
        equal(found(facts), kinds, str(change))


@test
def module_missing_is_installed_from_its_source_if_that_is_there():
    facts = healthy()
    facts["module"].update(loaded=False, version=None)
    facts["targets"] = []
    first(facts, "no-module", "apt install ./dualpi2-dkms_9.1.0_all.deb")
    facts["module"]["packager"] = "dnf"
    first(facts, "no-module", "dnf install ./dualpi2-dkms-9.1.0-*.rpm")
    facts["module"]["sources"] = ["9.10.0", "9.2.0", "9.9.1"]
    first(facts, "no-module", "dkms install sch-dualpi2/9.10.0")
    facts["module"]["installed"] = "updates/sch_dualpi2.ko"
    first(facts, "no-dualpi2")


@test
def module_of_the_kernel_is_told_by_version_and_by_statistics():
    for version in ("1.0", None, "nonsense"):
        facts = healthy()
        facts["module"]["version"] = version
        first(facts, "module-not-ours", "dualpi2-dkms")
    facts = healthy()
    one(facts)["level"] = "basic"
    first(facts, "module-not-ours", "lack")
    facts["module"].update(version="1.0", installed_version="9.1.0")
    assert first(facts, "module-not-ours", "tc qdisc del dev eth0 root && modprobe -r sch_dualpi2 && modprobe "
                 "sch_dualpi2 && tc qdisc add dev eth0 root handle 1: dualpi2").mends
    # One that is used elsewhere, too, or that nobody knows the users of, cannot be unloaded.
    for users, handle in ((2, "1:"), (None, "1:"), (1, "")):
        facts["module"]["users"], one(facts)["handle"] = users, handle
        finding = first(facts, "module-not-ours", "reboot")
        equal(finding.mends, False, f"{users} users, handle '{handle}'")
    facts["module"].update(loaded=False, builtin=True, version=None)
    first(facts, "module-not-ours", "built into")


@test
def older_module_of_ours_has_no_shaper():
    facts = healthy()
    facts["module"].update(version="2.2.0", ours="2.9.0", installed_version="2.2.0", sources=["2.2.0"])
    first(facts, "module-not-ours", "an old one of this project (version 2.2.0)", "dualpi2-dkms_2.9.0_all.deb")
    facts["module"]["sources"] = ["2.2.0", "2.10.0"]
    first(facts, "module-not-ours", "dkms install sch-dualpi2/2.10.0")
    facts["module"]["installed_version"] = "2.10.0"
    first(facts, "module-not-ours", "2.10.0 is installed", "modprobe -r")
    facts = healthy()
    del one(facts)["options"]["bandwidth"]
    first(facts, "module-not-ours", "no shaper")


@test
def tc_without_dualpi2_or_with_the_kernels_own_is_told():
    for missing, words in (("found", "no tc"), ("dualpi2", "does not know"), ("extension", "kernel's own"),
                           ("bandwidth", "old plugin")):
        facts = healthy()
        facts["tc"][missing] = False
        first(facts, "tc-not-ours", words)


@test
def qdisc_in_place_of_dualpi2_is_named():
    facts = healthy()
    facts["targets"][0]["dualpi2"] = []
    facts["qdiscs"] = [{"device": "eth0", "kind": "fq_codel", "name": "fq_codel 0:", "handle": "", "where": "root",
                        "shaper": None, "leaf": None, "packets": 5000, "bytes": 5000000, "drops": 0, "waiting": 0.0,
                        "most": 0}]
    # What passes is not what the link could carry.
    finding = first(facts, "no-dualpi2", "fq_codel 0:", "nothing waits",
                    "if you know the rates of the link: dualpi2 up eth0 --download RATE --upload RATE")
    equal((finding.mends, "bit" in finding.line(), "--replace" in finding.line()), (False, False, False))
    facts["qdiscs"][0]["handle"] = "8001:"
    first(facts, "no-dualpi2", "--upload RATE --replace")
    facts["qdiscs"][0]["waiting"] = 1.0
    equal(first(facts, "no-dualpi2").command, "tc qdisc replace dev eth0 root dualpi2")
    facts["qdiscs"][0].update(kind="tbf", name="tbf 8001:", shaper={"rate": 125000, "burst_ns": 0}, leaf="8001:1")
    first(facts, "no-dualpi2", "tc qdisc replace dev eth0 parent 8001:1 dualpi2")
    facts["qdiscs"][0].update(kind="cake", name="cake 8001:", leaf=None,
                              shaper={"rate": 125000, "burst_ns": 0, "words": " overhead 18 mpu 64 noatm"})
    first(facts, "no-dualpi2", "tc qdisc replace dev eth0 root dualpi2 bandwidth 1mbit overhead 18 mpu 64 noatm")
    facts["qdiscs"] = []
    first(facts, "no-dualpi2", "no qdisc")


@test
def what_was_set_up_below_another_qdisc_is_not_removed():
    shaping = {"rate": 0, "burst_ns": 0}
    for kind, shaper_, leaf, below, mends in (
            ("htb", shaping, "1:10", None, True), ("htb", shaping, "1:10", "fq_codel", True),
            ("htb", shaping, "1:10", "prio", False), ("htb", shaping, None, None, False),
            ("hfsc", shaping, None, None, False), ("netem", {"rate": 125000, "burst_ns": 0}, None, None, False),
            ("prio", None, None, None, False), ("ets", None, None, None, False), ("mqprio", None, None, None, False),
            ("drr", None, None, None, False), ("taprio", None, None, None, False), ("mq", None, None, None, True)):
        facts = healthy()
        facts["targets"][0]["dualpi2"] = []
        common = {"device": "eth0", "packets": 5000, "bytes": 5000000, "drops": 0, "waiting": 1.0, "most": 0}
        facts["qdiscs"] = [dict(common, kind=kind, name=kind + " 1:", handle="1:", where="root", shaper=shaper_,
                                leaf=leaf)]
        if below:
            facts["qdiscs"].append(dict(common, kind=below, name=below + " 2:", handle="2:", where="parent 1:10",
                                        shaper=None, leaf=None))
        finding = first(facts, "no-dualpi2", kind)
        equal(finding.mends, mends, f"{kind} {leaf} {below}")
        equal(finding.command, "tc -s class show dev eth0" if not mends else "tc qdisc replace dev eth0 "
              f"{'parent ' + leaf if leaf else 'root'} dualpi2", kind)
        # The same of a device below.
        facts = nothing_waits(healthy())
        facts["shapers"] = [shaper(kind=kind, leaf=leaf, below=below or "pfifo", rate=0)]
        equal(first(facts, "shaper-elsewhere").mends, bool(mends and leaf), f"{kind} {leaf} {below} elsewhere")
        assert "bandwidth" not in found_line(facts), found_line(facts)


@test
def options_that_keep_l4s_out_are_named():
    for options, kind, word in (({"l4s": 0}, "l4s-off", "dualpi2 l4s"), ({"ecn_mask": 2}, "wrong-mask", "l4s_ect"),
                                ({"step_thresh_us": 15001}, "step-huge", "step_thresh 1ms")):
        facts = healthy()
        one(facts)["options"].update(options)
        first(facts, kind, "tc qdisc change dev eth0 root handle 1: dualpi2", word)
    facts = healthy()
    one(facts)["options"]["step_thresh_us"] = 15000
    equal(found(facts), [], "a step at the target")
    # What the kernel attached of its own accord cannot be changed in place.
    one(facts)["options"]["l4s"] = 0
    one(facts)["handle"] = ""
    first(facts, "l4s-off", "tc qdisc replace dev eth0 root dualpi2 l4s")


@test
def change_of_what_up_made_says_how_it_lasts():
    for options, words in (({"l4s": 0}, "-- l4s"), ({"ecn_mask": 2}, "-- l4s_ect"),
                           ({"step_thresh_us": 20000}, "-- step_thresh 1ms")):
        for handle in ("1:", "d50:", "d51:"):
            facts = healthy()
            one(facts)["handle"] = handle
            one(facts)["options"].update(options)
            line = found_line(facts)
            equal(f"`dualpi2 up`: add to that line, too: {words})" in line, handle != "1:", line)


@test
def filter_is_blamed_only_for_ect1_in_the_classic_queue():
    facts = healthy()
    one(facts)["seen"]["classic"] = queue(not_ect=3000, ect1=3000, p95_ms=20)
    assert not first(facts, "filter", "SO_PRIORITY").mends
    one(facts)["filters"] = [{"kind": "u32", "pref": 4, "class": 0x10001, "actions": []},
                             {"kind": "u32", "pref": 9, "class": 0x10003, "actions": []}]
    first(facts, "filter", "tc filter del dev eth0 parent 1: pref 9")
    one(facts)["seen"]["classic"] = queue(not_ect=3000, ect1=7, p95_ms=20)
    equal(found(facts), [], "seven packets")


def shaper(**given):
    """tbf on the device below."""
    return dict({"device": "eth1", "kind": "tbf", "name": "tbf 1:", "where": "root", "rate": 125000, "leaf": "1:1",
                 "managed": False, "relation": "below", "below": "pfifo", "words": "",
                 "packets": 5000, "bytes": 5000000, "drops": 10,
                 "overlimits": 9, "waiting": 1.0, "most": 50}, **given)


@test
def shaper_elsewhere_is_blamed_if_it_has_the_queue():
    facts = nothing_waits(healthy())
    facts["shapers"] = [shaper()]
    first(facts, "shaper-elsewhere", "tbf 1: on eth1 (below)", "tc qdisc replace dev eth1 parent 1:1 dualpi2")
    for other in (shaper(waiting=0.0, drops=0), shaper(packets=3), shaper(relation="beside", packets=100, drops=0)):
        facts["shapers"] = [other]
        equal(found(facts), [], str(other))
    facts["shapers"] = [shaper(relation="beside", kind="cake", leaf=None, words=" overhead 8 mpu 0 atm")]
    first(facts, "shaper-elsewhere", "tc qdisc replace dev eth1 root dualpi2 bandwidth 1mbit overhead 8 mpu 0 atm")
    facts["shapers"] = [shaper(kind="cake", leaf=None, rate=0)]
    equal(first(facts, "shaper-elsewhere").mends, False, "without a rate")
    facts["shapers"] = [shaper(managed=True)]
    result = rules.diagnose(facts)
    equal((result.verdict(), len(result.doubts)), ("unknown", 1))
    assert "dualpi2 doctor eth1" in result.doubts[0]
    facts = healthy()
    facts["shapers"] = [shaper()]
    equal(found(facts), [], "a queue here")


@test
def queue_that_never_is_needs_a_bandwidth():
    facts = nothing_waits(healthy())
    one(facts)["options"]["bandwidth"] = 0
    finding = first(facts, "no-queue", "P99 of the delay is 0 us", "6000 packets", "either the transfer is too small",
                    "; if that is all the link carries: dualpi2 up eth0 --upload 9120kbit --replace")
    # The link may just not be busy.
    equal((finding.mends, finding.as_dict()["condition"]), (False, "that is all the link carries"))
    one(facts).update(where="parent 1:2")
    assert first(facts, "no-queue").command.endswith("9120kbit"), "a hierarchy would be replaced"
    # `up` without --download would remove the download's.
    facts["targets"].append(dict(copy.deepcopy(healthy()["targets"][0]), direction="ingress", device="dp2-eth0"))
    equal(first(facts, "no-queue").command, "dualpi2 up eth0 --download 10mbit --upload 9120kbit")
    del facts["targets"][1]
    # With a shaper it is just idle.
    one(facts)["shaped_by"] = {"qdisc": "htb 1:", "kind": "htb", "classes": []}
    result = rules.diagnose(facts)
    equal((result.verdict(), result.findings), ("unknown", []))
    assert "larger transfer" in result.doubts[0]


@test
def little_traffic_is_no_verdict():
    for number, size in ((99, 1000), (5000, 100)):
        facts = nothing_waits(healthy())
        one(facts)["options"]["bandwidth"] = 0
        one(facts)["seen"].update(l4s=queue(), classic=queue(not_ect=number, size=size))
        result = rules.diagnose(facts)
        equal((result.verdict(), result.findings), ("unknown", []), f"{number} of {size} bytes")
        assert "start a transfer" in result.doubts[0]


@test
def packets_past_a_bypass_count_as_what_does_not_wait():
    """It counts hardly any on a link with no queue, and the kernel counts all."""
    facts = nothing_waits(healthy())
    one(facts)["options"].update(bandwidth=0, bypass=1)
    # The few that waited did so for long.
    one(facts)["seen"].update(packets=6000, bytes=6000000, l4s=queue(ect1=20, p95_ms=0.5),
                              classic=queue(not_ect=5, p95_ms=1))
    first(facts, "no-queue", "6000 packets at 9.6 Mbit/s, 5975 of them past it by bypass")
    equal(found(facts), ["no-queue"])
    # As many as that do not wait without it.
    one(facts)["options"]["bypass"] = 0
    result = rules.diagnose(facts)
    equal((result.verdict(), result.findings), ("unknown", []))
    assert "only 25 packets came" in result.doubts[0]
    # A link with a queue lets few pass.
    facts = healthy()
    one(facts)["options"].update(bandwidth=0, bypass=1)
    one(facts)["seen"]["packets"] += 50
    equal(found(facts), [])


@test
def l4s_past_a_bypass_is_not_taken_for_none():
    """The Classic queue counts its bursts, and L4S packets in between go past: what was seen leaving says so."""
    facts = healthy()
    one(facts)["options"].update(bandwidth=0, bypass=1)
    one(facts)["seen"].update(l4s=queue(), classic=queue(not_ect=3500, p95_ms=20, dropped=40))
    equal(found(facts), [])
    one(facts)["options"]["bypass"] = 0
    equal(found(facts), ["no-ect1"])
    # And if there is none, there is none.
    one(facts)["options"]["bypass"] = 1
    facts["packets"]["devices"]["eth0"]["out"]["ecn"] = [6000, 0, 0, 0]
    facts["packets"]["flows"] = []
    first(facts, "no-ect1", "none of 6000 packets")


@test
def idle_direction_does_not_spoil_the_other():
    facts = healthy()
    idle = nothing_waits(healthy())["targets"][0]
    idle["dualpi2"][0]["seen"].update(l4s=queue(), classic=queue(not_ect=900, size=60))
    facts["targets"].append(dict(idle, direction="ingress", device="eth1"))
    result = rules.diagnose(facts)
    equal((result.verdict(), result.findings), ("healthy", []))
    # Nor does one that Classic senders fill.
    facts["targets"][1] = dict(classic_only(healthy())["targets"][0], direction="ingress", device="eth1")
    equal(found(facts), [])


@test
def unreadable_packets_are_named_by_their_ethertype():
    facts = healthy()
    one(facts)["seen"]["unparsed"] = 3000
    facts["packets"]["devices"]["eth0"]["out"]["other"] = {"0x0806": 5000, "0x8847": 2000}
    assert not first(facts, "unparsed", "MPLS", "3000 of 6000").mends
    facts["packets"]["devices"]["eth0"]["out"]["other"] = {"0x8864": 2000}
    facts["links"]["ppp0"] = dict(facts["links"]["eth0"], name="ppp0", type=512)
    first(facts, "unparsed", "PPPoE", "mend it: tc qdisc replace dev ppp0 root dualpi2 bandwidth 10mbit pppoe-ptm")
    one(facts)["options"]["bandwidth"] = 0
    equal(first(facts, "unparsed", "bandwidth 9059kbit", "if that is all").mends, False, "a rate that is a guess")
    one(facts)["options"]["bandwidth"] = 1250000
    one(facts)["seen"]["unparsed"] = 299
    equal(found(facts), [], "ARP now and then")


@test
def bleaching_on_this_host_is_named_with_its_rule():
    facts = classic_only(healthy())
    facts["packets"]["flows"] = [flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[3000, 0, 0, 0])]
    assert not first(facts, "bleached", "comes to eth1 as ECT(1)", "leaves eth0 as Not-ECT").mends
    facts["rewriters"] = [{"where": "nft ip mangle forward", "rule": "ecn set",
                           "command": "nft delete rule ip mangle forward handle 3"}]
    first(facts, "bleached", "nft ip mangle forward", "handle 3")
    # Of several, nobody knows which.
    facts["rewriters"].append({"where": "iptables", "rule": "TOS", "command": "iptables -t mangle -D FORWARD"})
    finding = first(facts, "bleached", "2 rules", "iptables, nft ip mangle forward", "nft -a list ruleset")
    equal(finding.mends, False)
    del facts["rewriters"][1]
    equal(found(facts), ["bleached"], "and nothing that follows")
    # What became ECT(0) may be marked here, as Classic.
    facts["packets"]["flows"] = [flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[0, 0, 2900, 100])]
    first(facts, "bleached", "leaves eth0 as ECT(0)")


@test
def bleaching_is_seen_through_nat():
    facts = classic_only(healthy())
    inside = dict(flow(1, eth1_in=[0, 3000, 0, 0]), src="192.168.1.7", sport=4711)
    facts["packets"]["flows"] = [inside, flow(1, eth0_out=[3000, 0, 0, 0])]
    first(facts, "bleached", "comes to eth1 as ECT(1)")
    # Another flow to the same server is not proof of it if this one was seen coming.
    facts["packets"]["flows"].append(flow(1, eth1_in=[3000, 0, 0, 0]))
    equal(found(facts), ["no-ect1"])


@test
def flows_behind_nat_are_not_taken_for_each_other():
    def inside(number, **at):
        return dict(flow(number, **at), src="192.168.1.7")

    # Two connections to one server, one of them L4S: which is which cannot be told when both are renamed.
    facts = healthy()
    facts["packets"]["flows"] = [inside(1, eth1_in=[0, 3000, 0, 0]), inside(2, eth1_in=[3000, 0, 0, 0]),
                                 flow(3, eth0_out=[0, 2900, 0, 100]), flow(4, eth0_out=[3000, 0, 0, 0])]
    equal(found(facts), [], "two and two")
    # One of this host itself, or one that leaves by another device.
    for entering, leaving in (([inside(1, eth1_in=[0, 3000, 0, 0])], [flow(3, eth0_out=[0, 2900, 0, 100])]),
                              ([inside(1, eth1_in=[0, 3000, 0, 0])], [flow(3, eth2_out=[0, 2900, 0, 100])]),
                              ([flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[0, 3000, 0, 0])], [])):
        facts["packets"]["flows"] = [*entering, *leaving, flow(4, eth0_out=[3000, 0, 0, 0])]
        equal(found(facts), [], str(facts["packets"]["flows"]))
    # Only one leaves, but which of those that came is it?
    facts["packets"]["flows"] = [inside(1, eth1_in=[0, 3000, 0, 0]), inside(2, eth1_in=[3000, 0, 0, 0]),
                                 flow(4, eth0_out=[3000, 0, 0, 0])]
    equal(found(facts), [])
    # That it arrived by an ifb device, too, makes it no other one; nor that it entered by two devices.
    facts["links"]["ifb0"] = dict(facts["links"]["eth0"], name="ifb0", kind="ifb")
    facts["packets"]["flows"] = [inside(1, eth1_in=[0, 3000, 0, 0], br0_in=[0, 3000, 0, 0], ifb0_out=[0, 3000, 0, 0]),
                                 flow(4, eth0_out=[3000, 0, 0, 0])]
    first(facts, "bleached", "as ECT(1)")


@test
def bleaching_behind_nat_is_laid_to_nobody_where_it_cannot_be_told():
    facts = classic_only(healthy())
    facts["packets"]["syns"] = [syn("accecn", "accecn")]
    facts["rewriters"] = [{"where": "nft", "rule": "ecn set", "command": "nft delete rule ip x y handle 1"}]
    facts["packets"]["flows"] = [dict(flow(7, eth1_in=[3000, 0, 0, 0]), src="192.168.1.7"),
                                 dict(flow(8, eth1_in=[3000, 0, 0, 0]), src="192.168.1.8"),
                                 flow(1, eth0_out=[3000, 0, 0, 0]), flow(2, eth0_out=[3000, 0, 0, 0])]
    finding = first(facts, "bleached", "on this host or before")
    equal((finding.mends, "nft" in finding.line()), (False, False))


@test
def ce_is_no_bleaching():
    facts = healthy()
    facts["packets"]["flows"] = [flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[0, 0, 0, 3000])]
    equal(found(facts), [])


@test
def bleaching_before_this_host_is_told_by_accecn_without_ect():
    facts = classic_only(healthy())
    facts["packets"]["syns"] = [syn("accecn", "accecn")]
    # Whatever this host does to the field, it was empty when it came.
    facts["rewriters"] = [{"where": "nft", "rule": "ecn set", "command": "nft delete rule ip x y handle 1"}]
    assert not first(facts, "bleached", "agreed on AccECN", "before eth1").mends
    facts["packets"]["flows"][0]["at"]["eth0 out"]["data"] = [3, 0, 0, 0]
    equal(found(facts), ["no-ect1"], "a flow of acknowledgements")
    facts = classic_only(healthy())
    facts["packets"]["syns"] = [syn("accecn", "accecn")]
    facts["packets"]["flows"] = [flow(1, eth0_out=[6000, 0, 0, 0])]
    first(facts, "bleached", "on this host")


@test
def handshake_without_accecn_is_laid_to_the_right_end():
    for offer, answer, who in (("ecn", "ecn", "10.1.0.1"), ("accecn", "ecn", "10.2.0.1"),
                               ("accecn", "none", "10.2.0.1")):
        facts = classic_only(healthy())
        facts["packets"]["syns"] = [syn(offer, answer)]
        first(facts, "no-accecn", who, "to be mended on " + who)
        equal(found(facts), ["no-accecn"])
    facts = classic_only(healthy())
    facts["packets"]["syns"] = [syn("none", "none"), syn("accecn", None)]
    equal(found(facts), ["no-ect1"], "no ECN asked for, or no answer seen")
    facts["packets"]["syns"] = [syn("ecn", "ecn", src="10.0.0.1")]
    first(facts, "no-accecn", "this host", "Linux 6.18")
    facts["sysctl"]["tcp_ecn_option"] = 2
    first(facts, "no-accecn", "this host", "sysctl -w net.ipv4.tcp_ecn=3")
    facts = healthy()
    facts["packets"]["syns"] = [syn("ecn", "ecn")]
    equal(found(facts), [], "somebody else speaks L4S")


@test
def classic_traffic_alone_is_just_that():
    facts = classic_only(healthy())
    first(facts, "no-ect1", "Not-ECT 6000", "on the senders")
    equal(found(facts), ["no-ect1"])
    one(facts)["seen"]["l4s"] = queue(ce=5)
    equal(found(facts), [], "CE alone")


@test
def step_in_packets_is_a_fault_where_packets_are_bundled():
    facts = healthy()
    del one(facts)["options"]["step_thresh_us"]
    one(facts)["options"]["step_thresh_pkts"] = 30
    equal(found(facts), [], "no offloads")
    facts["links"]["eth1"]["offloads"] = {"gro": True}
    first(facts, "gro-step-packets", "30 packets", "GRO is on at eth1", "step_thresh 1ms")
    facts["packets"]["devices"]["eth1"]["in"]["large"] = 12
    first(facts, "gro-step-packets", "12 bundles of packets came by eth1")
    facts["links"]["eth1"]["offloads"] = {}
    facts["packets"]["devices"]["eth1"]["in"]["large"] = 0
    facts["links"]["eth0"]["offloads"] = {"gso": True}
    one(facts)["options"]["split_gso"] = 0
    first(facts, "gro-step-packets", "GSO is on at eth0", "no_split_gso")


def under_htb(facts, *classes):
    """htb above, its classes from the leaf to the top: (rate, ceil, burst ns, cburst ns)."""
    one(facts)["options"]["bandwidth"] = 0
    one(facts)["shaped_by"] = {"qdisc": "htb 1:", "kind": "htb", "handle": "1:", "where": "root", "classes": [
        {"handle": f"1:{10 - number}", "parent": "root" if number == len(classes) - 1 else f"1:{9 - number}",
         "rate": rate, "ceil": ceil, "burst_ns": burst, "cburst_ns": cburst, "prio": 1, "quantum": 1514}
        for number, (rate, ceil, burst, cburst) in enumerate(classes)]}
    return facts


@test
def burst_of_a_parent_counts_in_time_and_in_packets():
    ms = 10**6
    rate = 1250000
    facts = under_htb(healthy(), (rate, rate, 50 * ms, 50 * ms))
    first(facts, "parent-burst", "50 ms", "62500 bytes at 10 Mbit/s",
          "tc class change dev eth0 parent root classid 1:10 htb rate 10mbit ceil 10mbit burst 1514 cburst "
          "1514 prio 1 quantum 1514")
    for classes, what in ((((rate, rate, 2 * ms, 2 * ms),), "two packets at 10 Mbit/s"),
                          (((rate, rate, 50 * ms, 1 * ms),), "cburst alone stops it"),
                          (((rate, rate, 1 * ms, 50 * ms),), "burst alone stops it"),
                          (((rate, 2 * rate, 50 * ms, ms), (rate, rate, 50 * ms, 50 * ms)), "a strict ceiling"),
                          (((125000000, 125000000, 900000, 900000),), "a Gbit/s, less than the step")):
        equal(found(under_htb(healthy(), *classes)), [], what)
    facts = healthy()
    one(facts)["options"]["bandwidth"] = 0
    one(facts)["shaped_by"] = {"qdisc": "tbf 1:", "kind": "tbf", "handle": "1:", "where": "root", "rate": rate,
                               "burst_ns": 40 * ms, "limit": 5000000}
    first(facts, "parent-burst", "tc qdisc change dev eth0 root handle 1: tbf rate 10mbit burst 1514 limit 5000000")
    facts["links"]["eth0"]["mtu"] = 9000
    first(facts, "parent-burst", "burst 9014")


@test
def overhead_is_asked_for_where_the_link_adds_some():
    facts = healthy()
    facts["links"]["eth0"]["type"] = 512
    first(facts, "pppoe-overhead", "pppoe-ptm", "mend it, if it is PPPoE:")
    facts["pppoe"] = ["eth1"]
    assert "if it is" not in first(facts, "pppoe-overhead").line()
    one(facts)["handle"] = "d50:"
    first(facts, "pppoe-overhead", "add to that line, too: --link pppoe-ptm")
    one(facts)["options"]["framing"] = 1
    equal(found(facts), [], "with an overhead")
    one(facts)["options"].update(framing=0, bandwidth=0)
    one(facts)["shaped_by"] = {"qdisc": "htb 1:", "kind": "htb", "classes": []}
    equal(found(facts), [], "without a shaper of its own")
    facts = healthy()
    facts["pppoe"] = ["eth0"]
    first(facts, "pppoe-overhead", "under a PPPoE session")


@test
def vlan_alone_is_no_fault():
    facts = healthy()
    facts["links"]["eth0.5"] = dict(facts["links"]["eth0"], name="eth0.5", kind="vlan", lower="eth0")
    equal(found(facts), [], "one above")
    facts["links"]["eth0"]["kind"] = "vlan"
    equal(found(facts), [], "it is one")
    [seen] = [check["seen"] for check in rules.diagnose(facts).checks if check["id"] == "pppoe-overhead"]
    assert "ether-vlan" in seen, seen


@test
def overload_names_the_largest_flow():
    facts = healthy()
    one(facts)["seen"].update(overload_s=4.0, overload_now=True)
    facts["packets"]["flows"].append(flow(9, proto=17, eth1_in=[0, 9000, 0, 0], eth0_out=[0, 50, 0, 0]))
    first(facts, "overload", "4.0 of 5.0 s", "udp 10.1.0.1:1009 > 10.2.0.1:80", "tc filter add dev eth0 parent 1: "
          "protocol ip flower ip_proto udp dst_ip 10.2.0.1 dst_port 80 action police rate",
          "mend it, if that is the one that does not slow down:")
    one(facts)["seen"].update(overload_s=0.9)
    equal(found(facts), [], "a moment of it")


@test
def most_fundamental_comes_first():
    facts = classic_only(under_htb(healthy(), (1250000, 1250000, 5 * 10**7, 5 * 10**7)))
    one(facts)["options"]["step_thresh_us"] = 20000
    equal(found(facts), ["no-ect1", "step-huge", "parent-burst"])
    facts["tc"]["extension"] = False
    equal(found(facts)[0], "tc-not-ours")


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
        assert interpret(code, protocol, data, 16), "the eighth packet is not taken"
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

        def output(words):
            asked.append(words)
            return (f"iptables v1.8.9 ({variant})" if words[1] == "-V" else text), 0
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

    with unittest.mock.patch.object(probe, "_output", lambda words: ("", None)):
        rule, = probe.rewriters({3: {"ifindex": 3, "name": "e;reboot"}}, Asker())
    equal(rule["command"], "tc filter del dev 'e;reboot' ingress pref 7")
    listed = json.dumps({"nftables": [{"rule": {"family": "ip", "table": "a b", "chain": "c", "handle": 3, "expr": [
        {"mangle": {"key": {"payload": {"protocol": "ip", "field": "ecn"}}, "value": 0}}]}}]})
    with unittest.mock.patch.object(probe, "_output", lambda words: (listed, 0)):
        equal(probe._nft()[0]["command"], "nft delete rule ip 'a b' c handle 3")


@test
def link_layer_of_cake_is_kept():
    def options(raw=None, **given):
        names = {"overhead": net.CAKE_OVERHEAD, "mpu": net.CAKE_MPU, "atm": net.CAKE_ATM,
                 "ingress": net.CAKE_INGRESS}
        found_options = {names[name]: struct.pack("=i", value) for name, value in given.items()}
        return found_options if raw is None else {**found_options, net.CAKE_RAW: bytes(4)}

    for given, words in (({"overhead": 18, "mpu": 64, "atm": 0, "ingress": 0}, " overhead 18 mpu 64 noatm"),
                         ({"overhead": -4, "mpu": 0, "atm": 1, "ingress": 1}, " overhead -4 mpu 0 atm ingress"),
                         ({"overhead": 30, "mpu": 0, "atm": 2}, " overhead 30 mpu 0 ptm"),
                         ({"raw": 1, "overhead": 0, "atm": 0}, ""), ({"raw": 1, "ingress": 1}, " ingress")):
        equal(net._cake_words(options(**given)), words)


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

def run(facts, *words):
    """(code, output) of the doctor on these facts."""
    out, err = io.StringIO(), io.StringIO()
    patch = unittest.mock.patch.object
    with patch(probe, "facts", lambda *_: facts), patch(net, "is_root", lambda: True), \
         redirect_stdout(out), redirect_stderr(err):
        code = doctor.main(["eth0", *words])
    equal(err.getvalue(), "")
    return code, out.getvalue()


@test
def exit_code_tells_fault_from_doubt():
    equal(run(healthy())[0], 0)
    equal(run(classic_only(healthy()))[0], 1)
    idle = nothing_waits(healthy())
    equal(run(idle)[0], 3)
    for facts in (healthy(), classic_only(healthy()), idle):
        equal(run(facts)[1].count("\n"), 1)
        equal(json.loads(run(facts, "--json")[1])["verdict"], rules.diagnose(facts).verdict())
        equal(json.loads(run(facts, "--json", "-v")[1])["facts"]["device"], "eth0")
        assert run(facts, "-v")[1].count("\n") > len(rules.RULES)


@test
def what_goes_wrong_is_no_verdict():
    patch = unittest.mock.patch.object
    for error, words in ((OSError(5, "Input/output error"), "Input/output error"),
                         (PermissionError(1, "no"), "outside of the container"),
                         (FileNotFoundError(2, "No such file", "/proc/x"), "/proc/x")):
        def fail(*_, error=error):
            raise error
        out, err = io.StringIO(), io.StringIO()
        with patch(probe, "facts", fail), patch(net, "is_root", lambda: True), redirect_stdout(out), \
             redirect_stderr(err):
            equal(doctor.main(["eth0"]), 3, str(error))
        equal((out.getvalue(), err.getvalue().count("\n")), ("", 1))
        assert words in err.getvalue(), err.getvalue()


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
    equal(rules.below_rate(1250000), "9500kbit")
    equal(rules.below_rate(0), "8kbit")


if __name__ == "__main__":
    main()
