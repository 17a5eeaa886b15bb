# SPDX-License-Identifier: GPL-2.0-only
"""What the doctor concludes: facts in (probe), findings out, the most fundamental first.

Pure: no socket, no clock, no file. A rule asks one question and answers with a Finding, or with None and what it saw.
Which numbers count as what is decided here and nowhere else.
"""

import itertools
import shlex

from ..kernel import text
from ..kernel.layout import HEADER
from ..kernel.text import delay

# A packet that waits longer than this has waited for another one: twice the first bucket of the Classic queue.
WAITED_NS = 131_072
# Fewer say nothing about who sends them; smaller ones are acknowledgements, and those are not ECT.
PACKETS_AT_LEAST = 100
MEAN_BYTES_AT_LEAST = 300
# A bottleneck is one when it makes packets wait most of the time.
WAITING_SHARE = 0.5
FLOW_PACKETS_AT_LEAST = 8
UNPARSED_SHARE, UNPARSED_AT_LEAST = 0.05, 20
MISPLACED_SHARE = 0.1
OVERLOAD_SHARE = 0.2
ETHERNET = 14
L4S_ECT, CLA_ECT, ANY_ECT = (HEADER.number(f"TC_DUALPI2_ECN_MASK_{name}") for name in ("L4S_ECT", "CLA_ECT", "ANY_ECT"))
ARPHRD_PPP = 512
FRAMING_RAW = HEADER.number("TC_DUALPI2_FRAMING_RAW")
CLASSIC_MINOR = 3
HARMLESS_ETHERTYPES = {"0x0806", "0x88cc", "0x888e", "0x0004", "0x8809"}
ETHERTYPES = {"0x8847": "MPLS", "0x8848": "MPLS", "0x8864": "PPPoE", "0x8863": "PPPoE discovery", "0x0806": "ARP",
              "0x88e5": "MACsec", "0x894f": "NSH", "0x22f3": "TRILL", "0x88e7": "PBB"}
PROTOCOLS = {6: "tcp", 17: "udp"}
# The shaper came with this version.
SHAPER_SINCE = [2, 3]
# What `dualpi2 up` makes.
UP_HANDLES = ("d50:", "d51:")
# Qdiscs with nothing below them that somebody had to set up: one of dualpi2 can take their place. mq is the kernel's.
SIMPLE = ("noqueue", "pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop", "fq", "fq_codel", "codel", "pie", "fq_pie",
          "sfq", "sfb", "red", "gred", "choke", "hhf", "mq", "cake", "cake_mq")
SHAPERS_WITH_LEAVES = ("htb", "hfsc", "tbf")


class Finding:
    """One fault: what, where, the evidence in one line, and one command.

    mends: it is the cure, and not a look. condition: what only a person can know, and has to be so before it is run.
    """

    def __init__(self, kind, device, verdict, command, mends=True, condition=""):
        self.kind = kind
        self.device = device
        self.verdict = verdict
        self.command = command
        self.mends = mends
        self.condition = condition

    def as_dict(self):
        return {"id": self.kind, "device": self.device, "verdict": self.verdict, "command": self.command,
                "mends": self.mends, "condition": self.condition or None}

    def line(self):
        words = ["mend it"] if self.mends else [] if self.condition else ["look"]
        words += [f"if {self.condition}"] if self.condition else []
        return printable(f"{self.kind}: {self.device}: {self.verdict}; {', '.join(words)}: {self.command}")


class Diagnosis:
    """All that was found. doubts: why no verdict is possible, if there are no findings."""

    def __init__(self):
        self.findings = []
        self.checks = []
        self.doubts = []

    def verdict(self):
        if self.findings:
            return "fault"
        return "unknown" if self.doubts else "healthy"


# Words

def printable(text):
    """On one line, and without commands for the terminal: a device may have any name."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def bits(bytes_per_second):
    """A rate for a person."""
    return text.bits(8 * bytes_per_second)


def tc_rate(bytes_per_second):
    """A rate for tc, exact."""
    rate = int(bytes_per_second * 8)
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if rate and rate % size == 0:
            return f"{rate // size}{unit}"
    return f"{rate}bit"


def below_rate(bytes_per_second):
    """95 % of it, in whole kbit/s: the shaper has to be slower than what is behind."""
    return f"{max(int(bytes_per_second * 8 * 0.95 / 1000), 8)}kbit"


def count(number, what="packet"):
    return f"{number} {what}{'' if number == 1 else 's'}"


def _quoted(words):
    return shlex.quote(words)


def numbers(version):
    """A version as numbers, to be compared: 2.10 is above 2.9."""
    found = []
    for part in (version or "").split("."):
        digits = "".join(itertools.takewhile(str.isdigit, part))
        if not digits:
            break
        found.append(int(digits))
    return found


def change(one, words):
    """The line that changes a dualpi2; one that the kernel attached of its own accord has no handle and is replaced."""
    verb = "change" if one["handle"] else "replace"
    handle = f" handle {one['handle']}" if one["handle"] else ""
    return f"tc qdisc {verb} dev {_quoted(one['device'])} {one['where']}{handle} dualpi2 {words}"


def lasting(one, words):
    """Where else it has to be said, or the next `dualpi2 up` takes it back."""
    return f" (made by `dualpi2 up`: add to that line, too: {words})" if one["handle"] in UP_HANDLES else ""


def up_line(facts, device, rate):
    """`dualpi2 up` with this rate for one direction; the other one keeps its own, which would else be removed."""
    root, words = "", []
    for raw in facts["targets"]:
        name = "--download" if raw["direction"] == "ingress" else "--upload"
        if raw["device"] == device:
            words.append(f"{name} {below_rate(rate)}")
        else:
            words += [f"{name} {tc_rate(one['options']['bandwidth'])}" for one in raw["dualpi2"][:1]
                      if one["options"].get("bandwidth")]
        # It has no shaper: nothing that somebody set up is lost with it.
        if raw["device"] == device == facts["device"]:
            root = "".join(" --replace" for one in raw["dualpi2"]
                           if one["where"] == "root" and one["handle"] and one["handle"] not in UP_HANDLES)
    return f"dualpi2 up {_quoted(facts['device'])} {' '.join(sorted(words))}{root}"


# Facts that several rules need

class Target:
    """One direction of the device, and what its dualpi2 (or all of them) did during the watch."""

    def __init__(self, facts, raw):
        self.facts = facts
        self.device = raw["device"]
        self.direction = raw["direction"]
        self.all = raw["dualpi2"]
        self.seen = [one["seen"] for one in self.all if one["seen"]]

    def sum(self, *names):
        """A number of all of them, by its path."""
        total = 0
        for value in self.seen:
            for name in names:
                value = value.get(name) if isinstance(value, dict) else None
            total += value or 0
        return total

    def passed(self, what="packets"):
        """Packets, or "bytes", that bypass sent past the queues: the kernel counts them, dualpi2 does not.

        Packets are at most so many: the kernel counts the segments of one that is queued whole. Bytes are exact.
        """
        total = 0
        for one in self.all:
            seen = one["seen"]
            if seen and one["options"].get("bypass"):
                left = seen["bytes"] - seen["l4s"]["forwarded_bytes"] - seen["classic"]["forwarded_bytes"]
                if what == "packets" and left > 0:
                    left = seen["packets"] - seen["l4s"]["forwarded"] - seen["classic"]["forwarded"]
                total += max(left, 0)
        return total

    @property
    def packets(self):
        return self.sum("l4s", "packets") + self.sum("classic", "packets") + self.passed()

    @property
    def bytes(self):
        return self.sum("l4s", "bytes") + self.sum("classic", "bytes") + self.passed("bytes")

    @property
    def rate(self):
        """Bytes a second that left."""
        seconds = max((one["seconds"] for one in self.seen), default=0)
        left = self.sum("l4s", "forwarded_bytes") + self.sum("classic", "forwarded_bytes") + self.passed("bytes")
        return left / seconds if seconds else 0

    def loaded(self):
        """Was there enough to judge by, and more than acknowledgements?"""
        return self.packets >= PACKETS_AT_LEAST and (self.bytes >= MEAN_BYTES_AT_LEAST * self.packets or self.queued())

    def queued(self):
        """Did packets wait?"""
        # Delays are those of the others: they say nothing of a link where most went past.
        mostly_passed = 2 * self.passed("bytes") > self.bytes
        return any(one["waiting"] >= WAITING_SHARE for one in self.all) or any(
            seen[queue].get("p95_ns", 0) > WAITED_NS and not mostly_passed or seen[queue]["marked"]
            or seen[queue]["dropped"] for seen in self.seen for queue in ("l4s", "classic"))

    def shaped(self):
        """Is one of them behind a shaper, or one itself?"""
        return any(one["options"].get("bandwidth") or one["shaped_by"] for one in self.all)

    def arrived(self):
        """Packets by codepoint: what the qdiscs counted, else what was seen leaving; and whether all were counted."""
        if not self.passed() and all(seen[queue]["arrived"]["ect1"] is not None
                                     for seen in self.seen for queue in ("l4s", "classic")):
            return {ecn: self.sum("l4s", "arrived", ecn) + self.sum("classic", "arrived", ecn)
                    for ecn in ("not_ect", "ect1", "ect0", "ce")}, True
        seen = self.facts["packets"]["devices"].get(self.device, {}).get("out", {}).get("ecn", [0, 0, 0, 0])
        return dict(zip(("not_ect", "ect1", "ect0", "ce"), seen)), False

    def has_l4s(self):
        found = self.arrived()[0]
        return bool(found["ect1"] + found["ce"])

    def slowest(self):
        """The longest delay that 99 of 100 packets of a queue had at most, None if unknown."""
        return max((seen[queue]["p99_ns"] for seen in self.seen for queue in ("l4s", "classic")
                    if "p99_ns" in seen[queue]), default=None)


def targets(facts):
    """Those with a dualpi2."""
    return [Target(facts, raw) for raw in facts["targets"] if raw["dualpi2"]]


def instances(facts):
    return [one for raw in facts["targets"] for one in raw["dualpi2"]]


def ethernet_link(facts, name):
    return facts["links"].get(name, {})


# The rules: (facts) -> (Finding or None, what was seen)

def no_device(facts):
    if facts["exists"]:
        return None, f"{facts['device']} is there"
    there = ", ".join(facts["devices"][:12]) or "none"
    text = "it went away meanwhile" if facts.get("vanished") else "there is no such device"
    return Finding("no-device", facts["device"], f"{text}; there are: {there}", "ip -br link", mends=False), ""


def device_down(facts):
    if facts["up"]:
        return None, "it is up"
    name = facts["device"]
    return Finding("device-down", name, "the device is down, no packet can leave",
                   f"ip link set dev {_quoted(name)} up"), ""


def _install(module):
    # Not what is too old, too.
    sources = [one for one in module["sources"] if numbers(one) > numbers(module["version"])]
    if sources:
        return f"dkms install sch-dualpi2/{max(sources, key=numbers)}"
    return _package(module, "dkms", "all")


def _package(module, name, kind):
    """The line that installs a package of this project."""
    version = module["ours"] if module["ours"][:1].isdigit() else "*"
    if module["packager"] == "dnf":
        return f"dnf install ./dualpi2-{name}-{version}-*.rpm"
    return f"apt install ./dualpi2-{name}_{version}_{kind}.deb"


def no_module(facts):
    module = facts["module"]
    if module["loaded"] or module["builtin"]:
        return None, f"loaded, version {module['version'] or 'unknown'}"
    if module["installed"]:
        return None, "installed, not loaded yet: the first use does that"
    return Finding("no-module", facts["device"], f"kernel {facts['kernel']} has no module sch_dualpi2, loaded or "
                   f"installed", _install(module)), ""


def is_ours(text, ours):
    """Versions of this project begin with 2; the kernel's own has 1.0 or none."""
    major = (text or "0").split(".")[0]
    return major.isdigit() and int(major) >= int(ours.split(".")[0] if ours[:1].isdigit() else 2)


def module_not_ours(facts):
    module = facts["module"]
    if not module["loaded"] and not module["builtin"]:
        return None, "none is loaded"
    bare = [one for one in instances(facts) if one["level"] in ("basic", "none")]
    old = [one for one in instances(facts) if "bandwidth" not in one["options"]]
    ours = is_ours(module["version"], module["ours"])
    if ours and not bare and not old and numbers(module["version"]) >= SHAPER_SINCE:
        return None, f"version {module['version']}"
    if ours and not bare:
        verdict = f"the loaded dualpi2 is an old one of this project (version {module['version']}): it has no shaper"
    else:
        text = (f"the statistics of {bare[0]['name']} lack this project's counters" if ours else
                f"version {module['version'] or 'unknown'}")
        verdict = (f"the loaded dualpi2 is not this project's ({text}): it has no shaper, and cannot tell who sends "
                   "what")
    if module["builtin"] and not module["loaded"]:
        return Finding("module-not-ours", facts["device"], f"dualpi2 is built into kernel {facts['kernel']} and cannot "
                       "be replaced: its shaper and counters are missing", "apt-cache search linux-image",
                       mends=False), ""
    installed = module["installed_version"]
    if not is_ours(installed, module["ours"]) or ours and numbers(installed) <= numbers(module["version"]):
        return Finding("module-not-ours", facts["device"], verdict, _install(module)), ""
    mine = instances(facts)
    verdict += f"; {installed} is installed, and not loaded"
    # Each qdisc holds the module, those of other devices and namespaces too; one without a handle cannot be deleted.
    if module["users"] != len(mine) or not all(one["handle"] for one in mine):
        return Finding("module-not-ours", facts["device"], f"{verdict}: other devices use the old one", "reboot",
                       mends=False), ""
    device = [f"dev {_quoted(one['device'])} {one['where']}" for one in mine]
    command = " && ".join([f"tc qdisc del {where}" for where in device] +
                          ["modprobe -r sch_dualpi2", "modprobe sch_dualpi2"] +
                          [f"tc qdisc add {where} handle {one['handle']} dualpi2" for where, one in zip(device, mine)])
    return Finding("module-not-ours", facts["device"], verdict + (", the line sets its defaults" if mine else ""),
                   command), ""


def tc_not_ours(facts):
    tc = facts["tc"]
    package = _package(facts["module"], "tools", "*")
    if not tc["found"]:
        return Finding("tc-not-ours", facts["device"], "there is no tc",
                       f"{facts['module']['packager'] or 'apt'} install iproute2"), ""
    if not tc["dualpi2"]:
        return Finding("tc-not-ours", facts["device"], f"tc {tc['version'] or ''} does not know dualpi2: its plugin "
                       "q_dualpi2.so is missing", package), ""
    if not tc["extension"]:
        return Finding("tc-not-ours", facts["device"], f"tc {tc['version'] or ''} knows only the kernel's own dualpi2, "
                       "not bandwidth and its like: the plugin q_dualpi2.so is missing", package), ""
    if not tc["bandwidth"]:
        return Finding("tc-not-ours", facts["device"], f"tc {tc['version'] or ''} has an old plugin q_dualpi2.so: it "
                       "does not know bandwidth", package), ""
    return None, f"tc {tc['version'] or ''} with the plugin"


def no_dualpi2(facts):
    if targets(facts):
        return None, ", ".join(f"{one['name']} on {one['device']}" for one in instances(facts)[:4])
    name = facts["device"]
    here = [one for one in facts["qdiscs"] if one["device"] == name]
    root = next((one for one in here if one["where"] == "root"), None)
    if root is None:
        return Finding("no-dualpi2", name, "there is no qdisc on it", f"tc qdisc replace dev {_quoted(name)} root "
                       "dualpi2"), ""
    verdict = f"its qdisc is {root['name']}, not dualpi2"
    command = f"tc qdisc replace dev {_quoted(name)} "
    if root["kind"] in SHAPERS_WITH_LEAVES and root["leaf"]:
        at = f"parent {root['leaf']}"
        there = next((one["kind"] for one in here if one["where"] == at), "pfifo")
        verdict += f", nor below that at {root['leaf']}"
        if there in SIMPLE:
            return Finding("no-dualpi2", name, verdict, f"{command}{at} dualpi2"), ""
    if root["kind"] not in SIMPLE:
        # It would go with all that was set up below it.
        return Finding("no-dualpi2", name, f"{verdict}: put dualpi2 at the class that has the traffic",
                       f"tc -s class show dev {_quoted(name)}", mends=False), ""
    if root["shaper"]:
        return Finding("no-dualpi2", name, verdict, f"{command}root dualpi2 bandwidth "
                       f"{tc_rate(root['shaper']['rate'])}{root['shaper'].get('words', '')}"), ""
    if root["packets"] >= PACKETS_AT_LEAST and root["waiting"] < WAITING_SHARE and root["bytes"] >= (
            MEAN_BYTES_AT_LEAST * root["packets"]):
        replace = " --replace" if root["handle"] else ""
        return Finding("no-dualpi2", name, f"{verdict}, and nothing waits there: the bottleneck is elsewhere",
                       f"dualpi2 up {_quoted(name)} --download RATE --upload RATE{replace}", mends=False,
                       condition="you know the rates of the link"), ""
    return Finding("no-dualpi2", name, verdict, f"{command}root dualpi2"), ""


def l4s_off(facts):
    for one in instances(facts):
        if one["options"].get("l4s") == 0:
            return Finding("l4s-off", one["device"], f"{one['name']} has no_l4s: it treats ECT(1) as Not-ECT"
                           + lasting(one, "-- l4s"), change(one, "l4s")), ""
    return None, "L4S is on"


def wrong_mask(facts):
    for one in instances(facts):
        mask = one["options"].get("ecn_mask", L4S_ECT)
        if mask == CLA_ECT:
            return Finding("wrong-mask", one["device"], f"{one['name']} has cla_ect: ECT(0) goes to the L4S queue, "
                           "ECT(1) to the Classic one" + lasting(one, "-- l4s_ect"), change(one, "l4s_ect")), ""
        ect0 = ((one["seen"] or {}).get("l4s", {}).get("arrived", {}).get("ect0")) or 0
        if mask == ANY_ECT and ect0 >= FLOW_PACKETS_AT_LEAST:
            return Finding("wrong-mask", one["device"], f"{one['name']} has any_ect: {count(ect0)} of Classic ECN "
                           "(ECT(0)) came to the L4S queue" + lasting(one, "-- l4s_ect"),
                           change(one, "l4s_ect")), ""
    return None, "ECT(1) and CE to the L4S queue"


def filter_to_classic(facts):
    for one in instances(facts):
        seen = one["seen"]
        if not seen or one["options"].get("l4s") == 0 or one["options"].get("ecn_mask", L4S_ECT) == CLA_ECT:
            continue
        here = seen["classic"]["arrived"].get("ect1") or 0
        there = seen["l4s"]["arrived"].get("ect1") or 0
        if here < FLOW_PACKETS_AT_LEAST or here < MISPLACED_SHARE * (here + there):
            continue
        guilty = [item for item in one["filters"] if item["class"] & 0xffff == CLASSIC_MINOR]
        text = f"{here} of {count(here + there)} with ECT(1) came to the Classic queue of {one['name']}"
        if guilty:
            pref = guilty[0]["pref"]
            return Finding("filter", one["device"], f"{text}: the filter {guilty[0]['kind']} pref {pref} sends "
                           "them there", f"tc filter del dev {_quoted(one['device'])} parent {one['handle']} pref "
                           f"{pref}"), ""
        return Finding("filter", one["device"], f"{text}: their priority says so (SO_PRIORITY, skbedit, or a "
                       "firewall's classify)", f"tc filter show dev {_quoted(one['device'])} parent {one['handle']}",
                       mends=False), ""
    return None, "none sends ECT(1) to the Classic queue"


def _elsewhere(facts):
    """The shaper of another device that has the queue, None if there is none."""
    ours = targets(facts)
    if any(target.queued() for target in ours):
        return None
    most = max((target.packets for target in ours), default=0)
    found = []
    for one in facts["shapers"]:
        if one["packets"] < PACKETS_AT_LEAST / 2 or one["waiting"] < WAITING_SHARE and not one["drops"]:
            continue
        # What is beside may have nothing to do with this device, unless as many packets pass it.
        if one["relation"] == "beside" and not most / 3 <= one["packets"] + one["drops"] <= 3 * most:
            continue
        found.append(one)
    order = {"below": 0}
    return min(found, key=lambda one: (order.get(one["relation"], 1), -one["waiting"]), default=None)


def _netns(one):
    return f"ip netns exec {_quoted(one['netns'])} " if one.get("netns") else ""


def _bound(facts):
    """Does a shaper elsewhere have packets waiting?"""
    return _elsewhere(facts) is not None


def shaper_elsewhere(facts):
    one = _elsewhere(facts)
    if one is None:
        return None, "no other shaper of this host makes packets wait" if facts["shapers"] else "no other shaper here"
    if one["managed"]:
        return None, f"the queue is on {one['device']}, in {one['name']}, which has dualpi2"
    device = _quoted(one["device"])
    prefix = _netns(one)
    mends = True
    if one["kind"] in SHAPERS_WITH_LEAVES and one["leaf"] and one["below"] in SIMPLE:
        command = f"{prefix}tc qdisc replace dev {device} parent {one['leaf']} dualpi2"
    elif one["kind"] in SIMPLE and one["rate"]:
        command = (f"{prefix}tc qdisc replace dev {device} {one['where']} dualpi2 bandwidth {tc_rate(one['rate'])}"
                   f"{one['words']}")
    else:
        command, mends = f"{prefix}tc -s {'class' if one['kind'] != 'netem' else 'qdisc'} show dev {device}", False
    waits = f"up to {count(one['most'])} wait there" if one["most"] else ""
    drops = f"{one['drops']} were dropped there" if one["drops"] else ""
    return Finding("shaper-elsewhere", facts["device"], f"the queue is in {one['name']} on {one['device']} "
                   f"({one['relation']}): {' and '.join(filter(None, (waits, drops)))}, none here", command,
                   mends), ""


def no_queue(facts):
    for target in targets(facts):
        if target.shaped() or not target.loaded() or target.queued() or _bound(facts):
            continue
        one = target.all[0]
        slowest = target.slowest()
        text = f"P99 of the delay is {delay(slowest)}" if slowest is not None else "no mark, no drop, never a backlog"
        passed = f", {target.passed()} of them past it by bypass" if target.passed() else ""
        verdict = (f"nothing ever waits in {one['name']} ({text}, {count(target.packets)} at {bits(target.rate)}"
                   f"{passed}, no shaper): either the transfer is too small, or the bottleneck is elsewhere")
        return Finding("no-queue", one["device"], verdict, up_line(facts, target.device, target.rate), mends=False,
                       condition="that is all the link carries"), ""
    return None, "; ".join(f"{target.device}: {'packets wait' if target.queued() else 'no packet waits'}"
                           + (", shaped" if target.shaped() else "") for target in targets(facts)) or "not looked at"


def unparsed(facts):
    for target in targets(facts):
        number, whole = target.sum("unparsed"), target.packets - target.passed()
        if number < UNPARSED_AT_LEAST or number < UNPARSED_SHARE * whole:
            continue
        others = facts["packets"]["devices"].get(target.device, {}).get("out", {}).get("other", {})
        others = {name: seen for name, seen in others.items() if name not in HARMLESS_ETHERTYPES}
        kind = max(others, key=others.get, default=None)
        text = ETHERTYPES.get(kind, f"ethertype {kind}") if kind else "unknown"
        device = _quoted(target.device)
        ppp = [link["name"] for link in facts["links"].values() if link["type"] == ARPHRD_PPP]
        verdict = (f"{number} of {count(whole)} have no IP header that can be read here ({text}): all of them are "
                   "Classic")
        if kind == "0x8864" and ppp:
            rate = next((one["options"]["bandwidth"] for one in target.all if one["options"].get("bandwidth")), 0)
            return Finding("unparsed", target.device, verdict, f"tc qdisc replace dev {_quoted(ppp[0])} root dualpi2 "
                           f"bandwidth {tc_rate(rate) if rate else below_rate(target.rate)} pppoe-ptm", bool(rate),
                           "" if rate else "that is all the link carries"), ""
        return Finding("unparsed", target.device, verdict + "; put dualpi2 where they have one, before it is hidden",
                       f"tcpdump -nei {device} -c 10 not ip and not ip6 and not arp", mends=False), ""
    return None, "every IP header could be read" if targets(facts) else "not looked at"


def _flows_at(facts, target):
    """(flow, counts where it leaves the target, [(place, counts) where it enters the host], could others be it).

    Behind NAT one end has another name: then what enters is another flow, and is taken for this one only if no other
    flow can be meant by it, neither among those that enter nor among those that leave.
    """
    out = f"{target.device} out"
    entering, leaving = {}, {}
    for number, flow in enumerate(facts["packets"]["flows"]):
        for place, counts in flow["at"].items():
            if place.endswith(" in") and place != f"{target.device} in":
                for key in _loosely(flow):
                    entering.setdefault(key, {}).setdefault(number, []).append((place[:-3], counts))
        # What is sent to an ifb device has only arrived.
        if any(place == out or place.endswith(" out") and facts["links"].get(place[:-4], {}).get("kind") != "ifb"
               for place in flow["at"]):
            for key in _loosely(flow)[1:]:
                leaving[key] = leaving.get(key, 0) + 1
    for flow in facts["packets"]["flows"]:
        if out not in flow["at"]:
            continue
        exact, *loose = _loosely(flow)
        found = entering.get(exact, {})
        some = [key for key in loose if key in entering]
        for key in some:
            if not found and leaving[key] == 1 and len(entering[key]) == 1:
                found = entering[key]
        yield flow, flow["at"][out], [at for places in found.values() for at in places], not found and bool(some)


def _loosely(flow):
    both = (flow["proto"], flow["src"], flow["sport"], flow["dst"], flow["dport"])
    return [both, ("to", flow["proto"], flow["dst"], flow["dport"]),
            ("from", flow["proto"], flow["src"], flow["sport"])]


def _scalable(counts):
    return counts["ecn"][1] + counts["ecn"][3]


def _flow_name(flow):
    return (f"{PROTOCOLS.get(flow['proto'], flow['proto'])} {flow['src']}:{flow['sport']} > "
            f"{flow['dst']}:{flow['dport']}")


def bleached(facts):
    agreed = {(syn["src"], syn["sport"], syn["dst"], syn["dport"]) for syn in facts["packets"]["syns"]
              if syn["offer"] == syn["answer"] == "accecn"}
    for target in targets(facts):
        for flow, here, entering, unsure in _flows_at(facts, target):
            # CE is of a scalable flow, unless it was ECT(0) before a queue marked it.
            if sum(here["ecn"]) < FLOW_PACKETS_AT_LEAST or here["ecn"][1] or here["ecn"][3] and not here["ecn"][2]:
                continue
            sent = [(place, counts) for place, counts in entering if _scalable(counts) >= FLOW_PACKETS_AT_LEAST]
            left = "ECT(0)" if here["ecn"][2] > here["ecn"][0] else "Not-ECT"
            if sent:
                place, counts = sent[0]
                return _bleached(facts, target, f"{_flow_name(flow)} comes to {place} as ECT(1) ({_scalable(counts)} "
                                 f"of {count(sum(counts['ecn']))}) and leaves {target.device} as {left}", place), ""
            ends = (flow["src"], flow["sport"], flow["dst"], flow["dport"])
            ours = ends in agreed or ends[2:] + ends[:2] in agreed
            if ours and here["data"][0] >= FLOW_PACKETS_AT_LEAST and not any(here["data"][1:]):
                before = any(not any(counts["ecn"][1:]) for _, counts in entering)
                place = entering[0][0] if before else None
                text = f"before {place}" if before else "on this host" + (" or before" if unsure else "")
                return _bleached(facts, target, f"{_flow_name(flow)} agreed on AccECN, and none of its "
                                 f"{count(here['data'][0], 'data packet')} is ECT: bleached {text}", place,
                                 before or unsure), ""
    return None, "no flow loses its ECT(1) here" if targets(facts) else "not looked at"


def _bleached(facts, target, text, place, before=False):
    rules = [] if before else facts["rewriters"]
    if len(rules) > 1:
        places = ", ".join(sorted({rule["where"] for rule in rules}))
        return Finding("bleached", target.device, f"{text}: {count(len(rules), 'rule')} of this host may write the ECN "
                       f"field ({places})", "nft -a list ruleset", mends=False)
    if rules:
        return Finding("bleached", target.device, f"{text}: {rules[0]['where']} has a rule that writes the ECN field",
                       rules[0]["command"])
    return Finding("bleached", target.device, text, f"tcpdump -nvi {_quoted(place or target.device)} -c 20 "
                   "'ip[1] & 3 != 1'", mends=False)


def _without_l4s(facts):
    """Directions with traffic and no L4S, unless the other one has some: then there are those who speak it."""
    known = targets(facts)
    if any(target.has_l4s() for target in known):
        return []
    return [target for target in known if target.loaded()]


def no_accecn(facts):
    accecn_here = facts["sysctl"]["tcp_ecn_option"] is not None
    for target in _without_l4s(facts):
        for syn in facts["packets"]["syns"]:
            if not {target.device, facts["device"]} & set(syn["devices"]):
                continue
            if syn["offer"] == "ecn":
                who, text = syn["src"], "asks for the ECN of RFC 3168 only (SYN without AE)"
            elif syn["offer"] == "accecn" and syn["answer"] in ("ecn", "none"):
                who, text = syn["dst"], f"answers AccECN with {'RFC 3168' if syn['answer'] == 'ecn' else 'no ECN'}"
            else:
                continue
            local = who in facts["addresses"]
            verdict = f"{who} {'(this host) ' if local else ''}{text}, and none of {count(target.packets)} is ECT(1)"
            if local and not accecn_here:
                return Finding("no-accecn", target.device, f"{verdict}: kernel {facts['kernel']} has no AccECN, Linux "
                               "6.18 has", "apt-cache search linux-image", mends=False), ""
            return Finding("no-accecn", target.device, verdict + ("" if local else f"; to be mended on {who}"),
                           "sysctl -w net.ipv4.tcp_ecn=3"), ""
    return None, f"{count(len(facts['packets']['syns']), 'handshake')} seen"


def no_ect1(facts):
    for target in _without_l4s(facts):
        found, exact = target.arrived()
        if not exact and sum(found.values()) < PACKETS_AT_LEAST:
            continue
        agreed = sum(1 for syn in facts["packets"]["syns"] if syn["offer"] == syn["answer"] == "accecn")
        text = f", though {count(agreed, 'connection')} agreed on AccECN" if agreed else ""
        senders = "the sender's congestion control is not a scalable one" if agreed else "no sender speaks L4S"
        return Finding("no-ect1", target.device,
                       f"none of {count(sum(found.values()))} is ECT(1) or CE (Not-ECT {found['not_ect']}, ECT(0) "
                       f"{found['ect0']}){text}: {senders}; to be mended on the senders",
                       "sysctl -w net.ipv4.tcp_ecn=3 net.ipv4.tcp_congestion_control=prague"), ""
    return None, "; ".join("{}: ECT(1) {ect1}, CE {ce}, ECT(0) {ect0}, Not-ECT {not_ect}".format(
        target.device, **target.arrived()[0]) for target in targets(facts)) or "not looked at"


def gro_step_packets(facts):
    for one in instances(facts):
        packets = one["options"].get("step_thresh_pkts")
        if packets is None:
            continue
        sides = facts["packets"]["devices"]
        large = {name: side["large"] for name, found in sides.items() for side in found.values() if side["large"]}
        bundling = [name for name, link in facts["links"].items() if name != one["device"] and
                    link.get("offloads", {}).get("gro") and name in sides]
        sending = facts["links"].get(one["device"], {}).get("offloads", {})
        if large:
            name = max(large, key=large.get)
            text = f"{count(large[name], 'bundle')} of packets came by {name}"
        elif bundling:
            text = f"GRO is on at {bundling[0]}"
        elif sending.get("gso") or sending.get("tso"):
            text = f"GSO is on at {one['device']}"
        else:
            continue
        whole = "" if one["options"].get("split_gso", 1) else ", and no_split_gso counts a bundle as one"
        return Finding("gro-step-packets", one["device"], f"step_thresh of {one['name']} is {count(packets)}, and "
                       f"{text}{whole}: a burst of one flow is marked as if it were a queue"
                       + lasting(one, "-- step_thresh 1ms"),
                       change(one, "step_thresh 1ms")), ""
    return None, "step_thresh is a time, or no packets are bundled"


def step_ns(one, rate=0):
    """step_thresh as a time, None if it is not known."""
    options = one["options"]
    if "step_thresh_us" in options:
        return options["step_thresh_us"] * 1000
    if "step_thresh_pkts" in options and rate:
        return options["step_thresh_pkts"] * 1514 * 10**9 // rate
    return None


def _burst(shaper):
    """(ns, rate) of what a shaping parent lets through at once. Of htb's classes the strictest counts."""
    if shaper["kind"] == "tbf":
        return shaper["burst_ns"], shaper["rate"]
    found = []
    for number, level in enumerate(shaper.get("classes", [])):
        top = number == len(shaper["classes"]) - 1
        # Up to its rate it needs nobody; above it borrows, and cburst is what counts.
        alone = top and level["rate"] == level["ceil"]
        found.append((min(level["burst_ns"], level["cburst_ns"]) if alone else level["cburst_ns"], level["ceil"]))
    return min(found, default=(0, 0))


def parent_burst(facts):
    for one in instances(facts):
        shaper = one["shaped_by"]
        if not shaper or shaper["kind"] not in ("tbf", "htb"):
            continue
        burst, rate = _burst(shaper)
        step = step_ns(one, rate)
        largest = ethernet_link(facts, one["device"]).get("mtu", 1500) + ETHERNET
        size = burst * rate // 10**9
        # Two packets, because of one alone no parent can do without, and each rounds up.
        if step is None or burst <= step or size <= 2 * largest:
            continue
        device, at_once = _quoted(one["device"]), max(largest, 1514)
        verdict = (f"{shaper['qdisc']} above {one['name']} lets {delay(burst)} through at once ({size} bytes at "
                   f"{bits(rate)}), step_thresh is {delay(step)}: the queue is emptied before it can be marked")
        if shaper["kind"] == "tbf":
            command = (f"tc qdisc change dev {device} {shaper['where']} handle {shaper['handle']} tbf rate "
                       f"{tc_rate(rate)} burst {at_once} limit {max(shaper.get('limit', 0), 1000000)}")
        else:
            level = shaper["classes"][0]
            command = (f"tc class change dev {device} parent {level['parent']} classid {level['handle']} htb rate "
                       f"{tc_rate(level['rate'])} ceil {tc_rate(level['ceil'])} burst {at_once} cburst {at_once}"
                       f" prio {level['prio']} quantum {level['quantum']}")
        return Finding("parent-burst", one["device"], verdict, command), ""
    return None, "no shaping parent lets more through at once than step_thresh"


def step_huge(facts):
    for one in instances(facts):
        step, target = step_ns(one), one["options"].get("target", 15000) * 1000
        if step is not None and step > target:
            return Finding("step-huge", one["device"], f"step_thresh of {one['name']} is {delay(step)}, beyond the "
                           f"Classic target of {delay(target)}: the L4S queue is no shorter than the other"
                           + lasting(one, "-- step_thresh 1ms"),
                           change(one, "step_thresh 1ms")), ""
    return None, "step_thresh is below target"


def pppoe_overhead(facts):
    vlan = ""
    for one in instances(facts):
        if not one["options"].get("bandwidth") or one["options"].get("framing", FRAMING_RAW) != FRAMING_RAW:
            continue
        # An ifb has the packets of the device itself.
        link = facts["links"].get(facts["device"], {})
        # A tag alone is no fault: the rate that was given may well leave room for four bytes.
        if link.get("kind") == "vlan":
            vlan = f"; {facts['device']} is a VLAN: `ethernet ether-vlan` counts its tag"
        if link.get("type") == ARPHRD_PPP:
            text = "a PPP link"
        elif facts["device"] in facts["pppoe"]:
            text = "under a PPPoE session"
        else:
            continue
        return Finding("pppoe-overhead", one["device"], f"the shaper of {one['name']} does not count what the link "
                       f"adds to a packet ({facts['device']} is {text}): small packets overrun the line"
                       + lasting(one, "--link pppoe-ptm"), change(one, "pppoe-ptm"),
                       condition="" if facts["pppoe"] else "it is PPPoE"), ""
    return None, "the shaper's lengths are those of the link, or it has none" + vlan


def overload(facts):
    for one in instances(facts):
        seen = one["seen"]
        if not seen or not seen["overload_now"] and seen["overload_s"] < OVERLOAD_SHARE * seen["seconds"]:
            continue
        if seen["overload_s"] < OVERLOAD_SHARE * seen["seconds"]:
            continue
        rate = (seen["l4s"]["forwarded_bytes"] + seen["classic"]["forwarded_bytes"]) / seen["seconds"]
        text = (f"{one['name']} was in overload for {seen['overload_s']:.1f} of {seen['seconds']:.1f} s: both queues "
                f"drop ({count(seen['l4s']['dropped'] + seen['classic']['dropped'])})")
        flow = _biggest(facts, one["device"])
        if flow is None or flow["proto"] not in PROTOCOLS or not one["handle"]:
            return Finding("overload", one["device"], text, f"tc -s class show dev {_quoted(one['device'])}",
                           mends=False), ""
        protocol = "ipv6" if ":" in flow["dst"] else "ip"
        return Finding("overload", one["device"], f"{text}; most is of {_flow_name(flow)}",
                       f"tc filter add dev {_quoted(one['device'])} parent {one['handle']} protocol {protocol} flower "
                       f"ip_proto {PROTOCOLS[flow['proto']]} dst_ip {flow['dst']} dst_port {flow['dport']} action "
                       f"police rate {tc_rate(int(rate / 2))} burst 30k conform-exceed drop/pass",
                       condition="that is the one that does not slow down"), ""
    return None, "not in overload"


def _biggest(facts, device):
    found = [(max(counts["bytes"] for counts in flow["at"].values()), number)
             for number, flow in enumerate(facts["packets"]["flows"]) if f"{device} out" in flow["at"]]
    return facts["packets"]["flows"][max(found)[1]] if found else None


# (id, function, what it needs: "" nothing, "device", "dualpi2")
RULES = (
    ("no-device", no_device, ""),
    ("no-module", no_module, "device"),
    ("module-not-ours", module_not_ours, "device"),
    ("tc-not-ours", tc_not_ours, "device"),
    ("device-down", device_down, "device"),
    ("no-dualpi2", no_dualpi2, "device"),
    ("l4s-off", l4s_off, "dualpi2"),
    ("wrong-mask", wrong_mask, "dualpi2"),
    ("filter", filter_to_classic, "dualpi2"),
    ("shaper-elsewhere", shaper_elsewhere, "dualpi2"),
    ("no-queue", no_queue, "dualpi2"),
    ("unparsed", unparsed, "dualpi2"),
    ("bleached", bleached, "dualpi2"),
    ("no-accecn", no_accecn, "dualpi2"),
    ("no-ect1", no_ect1, "dualpi2"),
    ("overload", overload, "dualpi2"),
    ("step-huge", step_huge, "dualpi2"),
    ("gro-step-packets", gro_step_packets, "dualpi2"),
    ("parent-burst", parent_burst, "dualpi2"),
    ("pppoe-overhead", pppoe_overhead, "dualpi2"),
)
# One fault shows as another, too: what is listed here is not said once the first was found.
SILENCED = {
    "l4s-off": ("filter", "no-ect1"),
    "wrong-mask": ("filter",),
    "bleached": ("no-accecn", "no-ect1"),
    "unparsed": ("no-accecn", "no-ect1"),
    "no-accecn": ("no-ect1",),
    "device-down": ("no-dualpi2",),
    "no-module": ("module-not-ours", "no-dualpi2"),
}


def _doubts(facts):
    """Why this is not health: no traffic, or nothing that waits."""
    found = []
    known = targets(facts)
    seconds = facts["seconds"]
    for target in known:
        if not target.loaded():
            found.append((target, f"only {count(target.packets)} came to {target.device} in {seconds:g} s, too few or "
                          "too small to tell: start a transfer and ask again"))
        elif not target.queued():
            other = _elsewhere(facts)
            if other and other["managed"]:
                found.append((target, f"no packet waits on {target.device}: the queue is in {other['name']} on "
                              f"{other['device']}, which has dualpi2: {_netns(other)}dualpi2 doctor "
                              f"{_quoted(other['device'])}"))
            else:
                found.append((target, f"no packet waits on {target.device}, {bits(target.rate)} are less than its "
                              "shaper lets through: start a larger transfer; if one is running, its bottleneck is "
                              f"elsewhere and slower, set the shaper to {below_rate(target.rate)}"))
    # One direction with a queue is health, though the other one is idle.
    return [text for _, text in found] if len(found) == len(known) else []


def diagnose(facts):
    """The Diagnosis."""
    result = Diagnosis()
    silent = set()
    for kind, rule, needs in RULES:
        if needs and not facts["exists"] or needs == "dualpi2" and not targets(facts):
            continue
        if kind in silent:
            result.checks.append({"id": kind, "result": "skipped", "seen": "follows from another fault"})
            continue
        finding, seen = rule(facts)
        if finding:
            result.findings.append(finding)
            silent.update(SILENCED.get(kind, ()))
        result.checks.append({"id": kind, "result": "fault" if finding else "ok",
                              "seen": finding.verdict if finding else seen})
    if facts["exists"] and not result.findings:
        result.doubts = _doubts(facts)
    return result
