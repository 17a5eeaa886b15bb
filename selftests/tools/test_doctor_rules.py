#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Tests of dualpi2 doctor without a kernel: its rules on made-up facts, and what it reads of packets. KTAP on stdout.

Each fault is one change to the facts of a healthy link, so that a rule that answers to something else shows.
That real faults lead to such facts is shown in test_doctor.py.
"""

import copy

from lib_rules import classic_only, flow, found, healthy, nothing_waits, one, queue
from dualpi2.doctor import rules
from ktap import expect_equal as equal, main, test


def syn(offer, answer, number=1, src="10.1.0.1"):
    """A handshake of such a flow."""
    return {"src": src, "sport": 1000 + number, "dst": "10.2.0.1", "dport": 80, "proto": 6, "offer": offer,
            "answer": answer, "sent_here": False, "devices": ["eth1", "eth0"]}


def noted(facts):
    """Ids of the notes. A note alone is not a fault."""
    result = rules.diagnose(facts)
    equal(result.findings, [])
    return [note.kind for note in result.notes]


def first(facts, kind, *texts):
    """The first fault, or the first note if there is no fault; of this kind, which contains these texts."""
    result = rules.diagnose(facts)
    findings = result.findings + result.notes
    assert findings and findings[0].kind == kind, [finding.text() for finding in findings]
    said = findings[0].text().replace("\n  ", "; ")
    for text in texts:
        assert text in said, f"{text!r} is not in: {said}"
    assert "\n" not in said and said.startswith(f"{findings[0].level} {kind} "), said
    return findings[0]


def found_line(facts):
    """The first finding as it is printed."""
    return rules.diagnose(facts).findings[0].text()


@test
def healthy_link_has_no_finding():
    result = rules.diagnose(healthy())
    equal([finding.text() for finding in result.findings], [])
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
    first(facts, "no-device", "disappeared during the observation")


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
    first(facts, "no-module", "fix: install dualpi2-dkms 9.1.0 or later (docs/INSTALL.md)")
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
                 "sch_dualpi2 && tc qdisc add dev eth0 root handle 1: dualpi2").fixes
    # One that is used elsewhere, too, or that nobody knows the users of, cannot be unloaded.
    for users, handle in ((2, "1:"), (None, "1:"), (1, "")):
        facts["module"]["users"], one(facts)["handle"] = users, handle
        finding = first(facts, "module-not-ours", "reboot")
        equal(finding.fixes, False, f"{users} users, handle '{handle}'")
    facts["module"].update(loaded=False, builtin=True, version=None)
    first(facts, "module-not-ours", "built into")


@test
def older_module_of_ours_has_no_shaper():
    facts = healthy()
    facts["module"].update(version="2.2.0", ours="2.9.0", installed_version="2.2.0", sources=["2.2.0"])
    first(facts, "module-not-ours", "an old version of this project (2.2.0)", "install dualpi2-dkms 2.9.0")
    facts["module"]["sources"] = ["2.2.0", "2.10.0"]
    first(facts, "module-not-ours", "dkms install sch-dualpi2/2.10.0")
    facts["module"]["installed_version"] = "2.10.0"
    first(facts, "module-not-ours", "2.10.0 is installed", "modprobe -r")
    facts = healthy()
    del one(facts)["options"]["bandwidth"]
    first(facts, "module-not-ours", "without a shaper")


@test
def tc_without_dualpi2_or_with_the_kernels_own_is_told():
    for missing, text in (("found", "missing"), ("dualpi2", "does not support"), ("extension", "in-tree"),
                           ("bandwidth", "old plugin")):
        facts = healthy()
        facts["tc"][missing] = False
        first(facts, "tc-not-ours", text)


@test
def qdisc_in_place_of_dualpi2_is_named():
    facts = healthy()
    facts["targets"][0]["dualpi2"] = []
    facts["qdiscs"] = [{"device": "eth0", "kind": "fq_codel", "name": "fq_codel 0:", "handle": "", "where": "root",
                        "shaper": None, "leaf": None, "packets": 5000, "bytes": 5000000, "drops": 0, "waiting": 0.0,
                        "most": 0}]
    # What passes is not what the link could carry.
    finding = first(facts, "no-dualpi2", "fq_codel 0:", "no backlog",
                    "if you know the rates of the link: dualpi2 up eth0 --download RATE --upload RATE")
    equal((finding.fixes, "bit" in finding.text(), "--replace" in finding.text()), (False, False, False))
    facts["qdiscs"][0]["handle"] = "8001:"
    first(facts, "no-dualpi2", "--upload RATE --replace")
    facts["qdiscs"][0]["waiting"] = 1.0
    equal(first(facts, "no-dualpi2").command, "tc qdisc replace dev eth0 root dualpi2")
    facts["qdiscs"][0].update(kind="tbf", name="tbf 8001:", shaper={"rate": 125000, "burst_ns": 0}, leaf="8001:1")
    first(facts, "no-dualpi2", "tc qdisc replace dev eth0 parent 8001:1 dualpi2")
    facts["qdiscs"][0].update(kind="cake", name="cake 8001:", leaf=None,
                              shaper={"rate": 125000, "burst_ns": 0, "options": " overhead 18 mpu 64 noatm"})
    first(facts, "no-dualpi2", "tc qdisc replace dev eth0 root dualpi2 bandwidth 1mbit overhead 18 mpu 64 noatm")
    facts["qdiscs"] = []
    first(facts, "no-dualpi2", "no qdisc")


@test
def what_was_set_up_below_another_qdisc_is_not_removed():
    shaping = {"rate": 0, "burst_ns": 0}
    for kind, shaper_, leaf, below, fixes in (
            ("htb", shaping, "1:10", None, True), ("htb", shaping, "1:10", "fq_codel", True),
            ("htb", shaping, "1:10", "prio", False), ("htb", shaping, None, None, False),
            ("hfsc", shaping, None, None, False), ("netem", {"rate": 125000, "burst_ns": 0}, None, None, False),
            ("prio", None, None, None, False), ("ets", None, None, None, False), ("mqprio", None, None, None, False),
            ("drr", None, None, None, False), ("taprio", None, None, None, False)):
        facts = healthy()
        facts["targets"][0]["dualpi2"] = []
        common = {"device": "eth0", "packets": 5000, "bytes": 5000000, "drops": 0, "waiting": 1.0, "most": 0}
        facts["qdiscs"] = [dict(common, kind=kind, name=kind + " 1:", handle="1:", where="root", shaper=shaper_,
                                leaf=leaf)]
        if below:
            facts["qdiscs"].append(dict(common, kind=below, name=below + " 2:", handle="2:", where="parent 1:10",
                                        shaper=None, leaf=None))
        finding = first(facts, "no-dualpi2", kind)
        equal(finding.fixes, fixes, f"{kind} {leaf} {below}")
        equal(finding.command, "tc -s class show dev eth0" if not fixes else "tc qdisc replace dev eth0 "
              f"{'parent ' + leaf if leaf else 'root'} dualpi2", kind)
        # The same of a device below.
        facts = nothing_waits(healthy())
        facts["shapers"] = [shaper(kind=kind, leaf=leaf, below=below or "pfifo", rate=0)]
        equal(first(facts, "shaper-elsewhere").fixes, bool(fixes and leaf), f"{kind} {leaf} {below} elsewhere")
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
    for options, args in (({"l4s": 0}, "-- l4s"), ({"ecn_mask": 2}, "-- l4s_ect"),
                           ({"step_thresh_us": 20000}, "-- step_thresh 1ms")):
        for handle in ("1:", "d50:", "d51:"):
            facts = healthy()
            one(facts)["handle"] = handle
            one(facts)["options"].update(options)
            line = found_line(facts)
            equal(f"fix: dualpi2 set eth0 {args}" in line, handle != "1:", line)


@test
def filter_is_blamed_only_for_ect1_in_the_classic_queue():
    facts = healthy()
    one(facts)["seen"]["classic"] = queue(not_ect=3000, ect1=3000, p95_ms=20)
    assert not first(facts, "filter", "SO_PRIORITY").fixes
    one(facts)["filters"] = [{"kind": "u32", "pref": 4, "class": 0x10001, "actions": []},
                             {"kind": "u32", "pref": 9, "class": 0x10003, "actions": []}]
    # An operator attached it, for example for the packets of a tunnel: no command deletes it.
    equal(first(facts, "filter", "filter u32 pref 9", "check: tc -s filter show dev eth0 parent 1:").level, "note")
    equal((noted(facts), rules.diagnose(facts).verdict()), (["filter"], "healthy"))
    one(facts)["seen"]["classic"] = queue(not_ect=3000, ect1=7, p95_ms=20)
    equal(noted(facts), [], "seven packets")


def shaper(**given):
    """tbf on the device below."""
    return dict({"device": "eth1", "kind": "tbf", "name": "tbf 1:", "where": "root", "rate": 125000, "leaf": "1:1",
                 "managed": False, "relation": "below", "below": "pfifo", "options": "",
                 "packets": 5000, "bytes": 5000000, "drops": 10,
                 "overlimits": 9, "waiting": 1.0, "most": 50}, **given)


@test
def shaper_elsewhere_is_blamed_if_it_has_the_queue():
    facts = nothing_waits(healthy())
    facts["shapers"] = [shaper()]
    first(facts, "shaper-elsewhere", "tbf 1: on eth1 (a lower device)", "tc qdisc replace dev eth1 parent 1:1 dualpi2")
    for other in (shaper(waiting=0.0, drops=0), shaper(packets=3), shaper(relation="beside", packets=100, drops=0)):
        facts["shapers"] = [other]
        equal(found(facts), [], str(other))
    facts["shapers"] = [shaper(relation="beside", kind="cake", leaf=None, options=" overhead 8 mpu 0 atm")]
    first(facts, "shaper-elsewhere", "tc qdisc replace dev eth1 root dualpi2 bandwidth 1mbit overhead 8 mpu 0 atm")
    facts["shapers"] = [shaper(kind="cake", leaf=None, rate=0)]
    equal(first(facts, "shaper-elsewhere").fixes, False, "without a rate")
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
    finding = first(facts, "no-queue", "P99 of the delay is 0.00us", "6000 packets", "the transfer is too small",
                    "; fix, if 9.60 Mbit/s is the rate of the link: tc qdisc change dev eth0 root handle 1: dualpi2 "
                    "bandwidth 9120kbit")
    # The link may just not be busy.
    equal((finding.fixes, finding.as_dict()["condition"]), (False, "9.60 Mbit/s is the rate of the link"))
    # A command for one queue does not shape the link.
    facts["targets"][0]["dualpi2"] *= 2
    first(facts, "no-queue", "check: tc -s qdisc show dev eth0")
    del facts["targets"][0]["dualpi2"][1]
    # What `dualpi2 up` made keeps its link layer and the other direction.
    one(facts)["handle"] = "d50:"
    facts["targets"].append(dict(copy.deepcopy(healthy()["targets"][0]), direction="ingress", device="dp2-eth0"))
    equal(first(facts, "no-queue").command, "dualpi2 set eth0 --upload 9120kbit")
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
    first(facts, "no-queue", "6000 packets at 9.60 Mbit/s, 5975 of them by bypass")
    equal(found(facts), ["no-queue"])
    # As many as that do not wait without it.
    one(facts)["options"]["bypass"] = 0
    result = rules.diagnose(facts)
    equal((result.verdict(), result.findings), ("unknown", []))
    assert "only 25 packets arrived" in result.doubts[0]
    # A link with a queue lets few pass.
    facts = healthy()
    one(facts)["options"].update(bandwidth=0, bypass=1)
    one(facts)["seen"]["packets"] += 50
    equal(found(facts), [])


@test
def l4s_past_a_bypass_is_not_taken_for_none():
    """The Classic queue counts its bursts; L4S packets between them bypass the qdisc. The observed packets show it."""
    facts = healthy()
    one(facts)["options"].update(bandwidth=0, bypass=1)
    one(facts)["seen"].update(l4s=queue(), classic=queue(not_ect=3500, p95_ms=20, dropped=40))
    equal(found(facts), [])
    one(facts)["options"]["bypass"] = 0
    equal(noted(facts), ["no-ect1"])
    # And if there is none, there is none.
    one(facts)["options"]["bypass"] = 1
    facts["packets"]["devices"]["eth0"]["out"]["ecn"] = [6000, 0, 0, 0]
    facts["packets"]["flows"] = []
    first(facts, "no-ect1", "no ECT(1) packets", "Not-ECT 6000")


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
    assert not first(facts, "unparsed", "MPLS", "3000 of 6000").fixes
    facts["packets"]["devices"]["eth0"]["out"]["other"] = {"0x8864": 2000}
    facts["links"]["ppp0"] = dict(facts["links"]["eth0"], name="ppp0", type=512)
    first(facts, "unparsed", "PPPoE", "fix: dualpi2 up ppp0 --upload 10mbit --link pppoe-ptm")
    one(facts)["options"]["bandwidth"] = 0
    equal(first(facts, "unparsed", "--upload 9059kbit", "if 9.54 Mbit/s is the rate").fixes, False, "a guess")
    one(facts)["options"]["bandwidth"] = 1250000
    one(facts)["seen"]["unparsed"] = 299
    equal(found(facts), [], "ARP now and then")


@test
def bleaching_on_this_host_is_named_with_its_rule():
    facts = classic_only(healthy())
    facts["packets"]["flows"] = [flow(1, eth1_in=[0, 3000, 0, 0], eth0_out=[3000, 0, 0, 0])]
    assert not first(facts, "bleached", "arrives on eth1 as ECT(1)", "leaves eth0 as Not-ECT").fixes
    facts["rewriters"] = [{"where": "nft ip mangle forward", "rule": "ecn set",
                           "command": "nft delete rule ip mangle forward handle 3"}]
    first(facts, "bleached", "nft ip mangle forward", "handle 3")
    # Of several, nobody knows which.
    facts["rewriters"].append({"where": "iptables", "rule": "TOS", "command": "iptables -t mangle -D FORWARD"})
    finding = first(facts, "bleached", "2 rules", "iptables, nft ip mangle forward", "nft -a list ruleset")
    equal(finding.fixes, False)
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
    first(facts, "bleached", "arrives on eth1 as ECT(1)")
    # Another flow to the same server is not proof of it if this one was seen coming.
    facts["packets"]["flows"].append(flow(1, eth1_in=[3000, 0, 0, 0]))
    equal(noted(facts), ["no-ect1"])


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
    finding = first(facts, "bleached", "on this host or upstream of it")
    equal((finding.fixes, "nft" in finding.text()), (False, False))


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
    assert not first(facts, "bleached", "negotiated AccECN", "upstream of eth1").fixes
    facts["packets"]["flows"][0]["at"]["eth0 out"]["data"] = [3, 0, 0, 0]
    equal(noted(facts), ["no-ect1"], "a flow of acknowledgements")
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
        finding = first(facts, "no-accecn", who, f"; on {who} run: sysctl -w net.ipv4.tcp_ecn=3")
        equal((finding.as_dict()["host"], finding.fixes), (who, False))
        equal(found(facts), ["no-accecn"])
    facts = classic_only(healthy())
    facts["packets"]["syns"] = [syn("none", "none"), syn("accecn", None)]
    equal(noted(facts), ["no-ect1"], "no ECN asked for, or no answer seen")
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
    first(facts, "no-ect1", "Not-ECT 6000", "nothing to change on this device")
    equal(noted(facts), ["no-ect1"])
    equal(rules.diagnose(facts).notes[0].command, "")
    equal(rules.diagnose(facts).verdict(), "healthy")
    one(facts)["seen"]["l4s"] = queue(ce=5)
    equal(noted(facts), [], "CE alone")


@test
def step_in_packets_is_a_fault_where_packets_are_bundled():
    facts = healthy()
    del one(facts)["options"]["step_thresh_us"]
    one(facts)["options"]["step_thresh_pkts"] = 30
    equal(found(facts), [], "no offloads")
    facts["links"]["eth1"]["offloads"] = {"gro": True}
    first(facts, "gro-step-packets", "30 packets", "GRO is on for eth1", "step_thresh 1ms")
    facts["packets"]["devices"]["eth1"]["in"]["large"] = 12
    first(facts, "gro-step-packets", "12 GSO packets arrived on eth1")
    facts["links"]["eth1"]["offloads"] = {}
    facts["packets"]["devices"]["eth1"]["in"]["large"] = 0
    facts["links"]["eth0"]["offloads"] = {"gso": True}
    one(facts)["options"]["split_gso"] = 0
    first(facts, "gro-step-packets", "GSO is on for eth0", "no_split_gso")


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
    first(facts, "parent-burst", "50.0ms", "62500 bytes at 10.0 Mbit/s",
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
    first(facts, "pppoe-overhead", "pppoe-ptm", "fix, if the link is PPPoE:")
    facts["pppoe"] = ["eth1"]
    assert "if it is" not in first(facts, "pppoe-overhead").text()
    one(facts)["handle"] = "d50:"
    first(facts, "pppoe-overhead", "fix: dualpi2 set eth0 --link pppoe-ptm")
    one(facts)["options"]["framing"] = 1
    equal(found(facts), [], "with an overhead")
    one(facts)["options"].update(framing=0, bandwidth=0)
    one(facts)["shaped_by"] = {"qdisc": "htb 1:", "kind": "htb", "classes": []}
    equal(found(facts), [], "without a shaper of its own")
    facts = healthy()
    facts["pppoe"] = ["eth0"]
    first(facts, "pppoe-overhead", "the device of a PPPoE session")


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
          "fix, if this flow is unresponsive:")
    one(facts)["seen"].update(overload_s=0.9)
    equal(found(facts), [], "a moment of it")


@test
def most_fundamental_comes_first():
    facts = classic_only(under_htb(healthy(), (1250000, 1250000, 5 * 10**7, 5 * 10**7)))
    one(facts)["options"]["step_thresh_us"] = 20000
    equal(found(facts), ["step-huge", "parent-burst"])
    facts["tc"]["extension"] = False
    equal(found(facts)[0], "tc-not-ours")


if __name__ == "__main__":
    main()
