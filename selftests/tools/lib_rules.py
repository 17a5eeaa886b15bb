# SPDX-License-Identifier: GPL-2.0-only
"""Made-up facts, for test_doctor_rules.py and test_doctor_facts.py."""

import copy
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "selftests/lib")]

from dualpi2.doctor import rules  # noqa: E402


def found(facts):
    """Ids of the faults."""
    return [finding.kind for finding in rules.diagnose(facts).findings]


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
        "pppoe": [], "addresses": ["10.0.0.1"], "below": {}, "shapers": [], "rewriters": [], "flowtables": [],
        "processors": [0.6, 0.2],
        "sysctl": {"tcp_ecn": 2, "tcp_ecn_option": None, "ip_forward": 1},
        "qdiscs": [{"device": "eth0", "kind": "dualpi2", "name": "dualpi2 1:", "handle": "1:", "where": "root",
                    "shaper": {"rate": 1250000, "burst_ns": 0}, "packets": 6000, "bytes": 6000000, "drops": 0,
                    "overlimits": 0, "waiting": 1.0, "most": 30}],
        "targets": [{"device": "eth0", "direction": "egress", "dualpi2": [{
            "device": "eth0", "handle": "1:", "kind": "dualpi2", "name": "dualpi2 1:", "where": "root",
            "shaped_by": None, "filters": [],
            "options": {"step_thresh_us": 1000, "target": 15000, "ecn_mask": 1, "split_gso": 1, "l4s": 1,
                        "bandwidth": 1250000, "framing": 0},
            "link": {}, "level": "full", "waiting": 1.0, "most": 30,
            "seen": {"seconds": 5.0, "packets": 6000, "bytes": 6000000, "drops": 40, "marks": 100, "overload_s": 0.0,
                     "overload_now": False, "unparsed": 0, "qprotect": {"sanctioned": 0},
                     "l4s": queue(ect1=3000, p95_ms=1, marked=100),
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


def one(facts):
    return facts["targets"][0]["dualpi2"][0]


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
