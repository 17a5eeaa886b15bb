# SPDX-License-Identifier: GPL-2.0-only
"""The rules of the doctor: facts in (probe), findings out, the most fundamental one first.

Pure: no socket, no clock, no file. A rule checks one thing and returns (Finding or None, what it saw). All thresholds
are defined here and nowhere else.
"""

from ..kernel.layout import HEADER
from ..kernel.text import delay
from .findings import (NOTE, UNKNOWN, UP_HANDLES, Diagnosis, Finding, base_device, below_rate, bits, change, count,
                       numbers, quoted, tc_rate)

# A longer delay shows a backlog: twice the first bucket of the Classic queue.
WAITED_NS = 131_072
# Minimum for a verdict on the senders. Packets smaller than this are acknowledgements, which are not ECT.
PACKETS_AT_LEAST = 100
MEAN_BYTES_AT_LEAST = 300
# A bottleneck has a backlog for at least this share of the time.
WAITING_SHARE = 0.5
FLOW_PACKETS_AT_LEAST = 8
UNPARSED_SHARE, UNPARSED_AT_LEAST = 0.05, 20
MISPLACED_SHARE = 0.1
OVERLOAD_SHARE = 0.2
# Of the time that a processor works at its limit, and that another one works; of packets, how often the shaper waits.
BUSY_SHARE, IDLE_SHARE, WAITS_SHARE = 0.95, 0.5, 0.01
ETHERNET = 14
L4S_ECT, CLA_ECT, ANY_ECT = (HEADER.number(f"TC_DUALPI2_ECN_MASK_{name}") for name in ("L4S_ECT", "CLA_ECT", "ANY_ECT"))
ARPHRD_PPP = 512
FRAMING_RAW = HEADER.number("TC_DUALPI2_FRAMING_RAW")
CLASSIC_MINOR = 3
HARMLESS_ETHERTYPES = {"0x0806", "0x88cc", "0x888e", "0x0004", "0x8809"}
ETHERTYPES = {"0x8847": "MPLS", "0x8848": "MPLS", "0x8864": "PPPoE", "0x8863": "PPPoE discovery", "0x0806": "ARP",
              "0x88e5": "MACsec", "0x894f": "NSH", "0x22f3": "TRILL", "0x88e7": "PBB"}
PROTOCOLS = {6: "tcp", 17: "udp"}
# First version with a shaper.
SHAPER_SINCE = [2, 3]
# First kernel whose software flow offload bypasses the qdiscs of such a device. Measured: 5.10 none, 6.1 and 6.12 the
# bridge, 7.2 bridge and VLAN. Not measured: PPP, which the kernel encapsulates in the same place as VLAN.
BYPASS_SINCE = {"bridge": [5, 13], "vlan": [6, 19], "ppp": [6, 19]}
# Qdiscs without children of an operator: dualpi2 can replace them. The kernel attaches mq.
SIMPLE = ("noqueue", "pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop", "fq", "fq_codel", "codel", "pie", "fq_pie",
          "sfq", "sfb", "red", "gred", "choke", "hhf", "mq", "cake", "cake_mq")
SHAPERS_WITH_LEAVES = ("htb", "hfsc", "tbf")


# Facts that several rules need

class Target:
    """One direction of the device, and what its dualpi2 instances did during the observation."""

    def __init__(self, facts, raw):
        self.facts = facts
        self.device = raw["device"]
        self.direction = raw["direction"]
        self.all = raw["dualpi2"]
        self.seen = [one["seen"] for one in self.all if one["seen"]]

    def sum(self, *names):
        """The sum of a counter, given by its path, over all instances."""
        total = 0
        for value in self.seen:
            for name in names:
                value = value.get(name) if isinstance(value, dict) else None
            total += value or 0
        return total

    def passed(self, what="packets"):
        """Packets, or "bytes", that took the bypass: the kernel counts them, dualpi2 does not.

        Bytes are exact. Packets are an upper bound: the kernel counts each segment of a GSO packet.
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
        """Forwarded bytes/s."""
        seconds = max((one["seconds"] for one in self.seen), default=0)
        left = self.sum("l4s", "forwarded_bytes") + self.sum("classic", "forwarded_bytes") + self.passed("bytes")
        return left / seconds if seconds else 0

    def loaded(self):
        """Was there enough traffic for a verdict, and more than acknowledgements?"""
        return self.packets >= PACKETS_AT_LEAST and (self.bytes >= MEAN_BYTES_AT_LEAST * self.packets or self.queued())

    def queued(self):
        """Was there a backlog?"""
        # The delays do not include bypassed packets, so they do not describe a link where most packets are bypassed.
        mostly_passed = 2 * self.passed("bytes") > self.bytes
        return any(one["waiting"] >= WAITING_SHARE for one in self.all) or any(
            seen[queue].get("p95_ns", 0) > WAITED_NS and not mostly_passed or seen[queue]["marked"]
            or seen[queue]["dropped"] for seen in self.seen for queue in ("l4s", "classic"))

    def shaped(self):
        """Does an instance shape, or has one a shaping parent?"""
        return any(one["options"].get("bandwidth") or one["shaped_by"] for one in self.all)

    def arrived(self):
        """(packets by codepoint, whether the qdiscs counted them all); otherwise packets seen leaving are counted."""
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
        """The larger P99 of the delay of both queues in ns, None if unknown."""
        return max((seen[queue]["p99_ns"] for seen in self.seen for queue in ("l4s", "classic")
                    if "p99_ns" in seen[queue]), default=None)


def targets(facts):
    """Directions with a dualpi2."""
    return [Target(facts, raw) for raw in facts["targets"] if raw["dualpi2"]]


def instances(facts):
    return [one for raw in facts["targets"] for one in raw["dualpi2"]]


def ethernet_link(facts, name):
    return facts["links"].get(name, {})


# The rules: (facts) -> (Finding or None, what was seen)

def no_device(facts):
    name = facts["device"]
    if facts["exists"]:
        return None, f"{name} exists"
    there = ", ".join(facts["devices"][:12]) or "none"
    text = "the device disappeared during the observation" if facts.get("vanished") else "there is no such device"
    return Finding("no-device", name, f"{text}; devices: {there}", "ip -br link", fixes=False), ""


def device_down(facts):
    name = facts["device"]
    if facts["up"]:
        return None, f"{name} is up"
    return Finding("device-down", name, "the device is down and sends no packets",
                   f"ip link set dev {quoted(name)} up"), ""


def _install(facts, kind, verdict):
    """A Finding whose fix is a newer module."""
    module = facts["module"]
    sources = [one for one in module["sources"] if numbers(one) > numbers(module["version"])]
    if sources:
        return Finding(kind, facts["device"], verdict, f"dkms install sch-dualpi2/{max(sources, key=numbers)}")
    return Finding(kind, facts["device"], verdict, _package(facts, "dualpi2-dkms"), manual=True)


def _package(facts, name):
    minimum = facts["module"]["ours"]
    return f"install {name}{f' {minimum} or later' if minimum[:1].isdigit() else ''} (docs/INSTALL.md)"


def no_module(facts):
    module = facts["module"]
    if module["loaded"] or module["builtin"]:
        return None, f"loaded, version {module['version'] or 'unknown'}"
    if module["installed"]:
        return None, "installed; the kernel loads it when it is first used"
    return _install(facts, "no-module", f"the module sch_dualpi2 is not installed for kernel {facts['kernel']}"), ""


def is_ours(text, ours):
    """Is this a version of this project? They begin with 2; the in-tree module has 1.0 or none."""
    major = (text or "0").split(".")[0]
    return major.isdigit() and int(major) >= int(ours.split(".")[0] if ours[:1].isdigit() else 2)


def module_not_ours(facts):
    module = facts["module"]
    if not module["loaded"] and not module["builtin"]:
        return None, "no module is loaded"
    bare = [one for one in instances(facts) if one["level"] in ("basic", "none")]
    old = [one for one in instances(facts) if "bandwidth" not in one["options"]]
    ours = is_ours(module["version"], module["ours"])
    if ours and not bare and not old and numbers(module["version"]) >= SHAPER_SINCE:
        return None, f"version {module['version']}"
    if module["builtin"] and not module["loaded"]:
        return Finding("module-not-ours", facts["device"], f"dualpi2 is built into kernel {facts['kernel']} and cannot "
                       "be replaced; it has no shaper and no counters of codepoints",
                       "use a kernel without CONFIG_NET_SCH_DUALPI2=y (docs/INSTALL.md)", manual=True), ""
    if ours and not bare:
        verdict = f"the loaded dualpi2 is an old version of this project ({module['version']}) without a shaper"
    else:
        text = (f"the statistics of {bare[0]['name']} lack this project's counters" if ours else
                f"version {module['version'] or 'unknown'}")
        verdict = (f"the loaded dualpi2 is not from this project ({text}); it has no shaper and no counters of "
                   "codepoints")
    installed = module["installed_version"]
    if not is_ours(installed, module["ours"]) or ours and numbers(installed) <= numbers(module["version"]):
        return _install(facts, "module-not-ours", verdict), ""
    return _reload(facts, f"{verdict}; version {installed} is installed, but not loaded"), ""


def _reload(facts, verdict):
    """The Finding whose fix is to load the installed module."""
    mine = instances(facts)
    # Each qdisc holds a reference, also in other network namespaces; one without a handle cannot be deleted.
    if facts["module"]["users"] != len(mine) or not all(one["handle"] for one in mine):
        return Finding("module-not-ours", facts["device"], f"{verdict}; other devices use the loaded one", "reboot",
                       manual=True)
    device = [f"dev {quoted(one['device'])} {one['where']}" for one in mine]
    command = " && ".join([f"tc qdisc del {where}" for where in device] +
                          ["modprobe -r sch_dualpi2", "modprobe sch_dualpi2"] +
                          [f"tc qdisc add {where} handle {one['handle']} {one['kind']}"
                           for where, one in zip(device, mine)])
    return Finding("module-not-ours", facts["device"], verdict + ("; the command resets all options" if mine else ""),
                   command)


def tc_not_ours(facts):
    tc = facts["tc"]
    if not tc["found"]:
        command = {"apt": "apt install iproute2", "dnf": "dnf install iproute-tc"}.get(facts["module"]["packager"])
        return Finding("tc-not-ours", facts["device"], "the program tc is missing",
                       command or "install iproute2 with tc", manual=not command), ""
    text = ("does not support dualpi2: its plugin q_dualpi2.so is missing" if not tc["dualpi2"] else
            "supports only the in-tree dualpi2: the plugin q_dualpi2.so is missing" if not tc["extension"] else
            "has an old plugin q_dualpi2.so without `bandwidth`" if not tc["bandwidth"] else "")
    if text:
        return Finding("tc-not-ours", facts["device"], f"tc {tc['version'] or ''} {text}",
                       _package(facts, "dualpi2-tools"), manual=True), ""
    return None, f"tc {tc['version'] or ''} with the plugin"


def no_dualpi2(facts):
    if targets(facts):
        return None, ", ".join(f"{one['name']} on {one['device']}" for one in instances(facts)[:4])
    name = facts["device"]
    here = [one for one in facts["qdiscs"] if one["device"] == name]
    root = next((one for one in here if one["where"] == "root"), None)
    if root is None or root["kind"] == "noqueue":
        return _ask_rates(name, "the device has no qdisc with a queue; dualpi2 needs the rates of the link"), ""
    verdict = f"the root qdisc is {root['name']}, not dualpi2"
    command = f"tc qdisc replace dev {quoted(name)} "
    if root["kind"] in SHAPERS_WITH_LEAVES and root["leaf"]:
        at = f"parent {root['leaf']}"
        there = next((one["kind"] for one in here if one["where"] == at), "pfifo")
        verdict += f", and class {root['leaf']} has no dualpi2 either"
        if there in SIMPLE:
            return Finding("no-dualpi2", name, verdict, f"{command}{at} dualpi2"), ""
    if root["kind"] not in SIMPLE:
        # Its children would be deleted together with it.
        return Finding("no-dualpi2", name, f"{verdict}; attach dualpi2 to the class that has the traffic",
                       f"tc -s class show dev {quoted(name)}", fixes=False), ""
    if root["shaper"]:
        return Finding("no-dualpi2", name, verdict, f"{command}root dualpi2 bandwidth "
                       f"{tc_rate(root['shaper']['rate'])}{root['shaper'].get('options', '')}"), ""
    if root["waiting"] >= WAITING_SHARE:
        return Finding("no-dualpi2", name, verdict, _for_each_queue(name, root, here) if root["kind"] == "mq" else
                       f"{command}root dualpi2"), ""
    if root["packets"] < PACKETS_AT_LEAST or root["bytes"] < MEAN_BYTES_AT_LEAST * root["packets"]:
        return Finding("no-dualpi2", name, f"{verdict}; it sent only {count(root['packets'])} in {facts['seconds']:g} "
                       "s, too few or too small to tell whether the bottleneck is here: start a transfer and repeat",
                       level=UNKNOWN), ""
    return _ask_rates(name, f"{verdict}, and it has no backlog: the bottleneck is elsewhere",
                      " --replace" if root["handle"] else ""), ""


def _ask_rates(name, verdict, more=""):
    return Finding("no-dualpi2", name, verdict, f"dualpi2 up {quoted(name)} --download RATE --upload RATE{more}",
                   fixes=False, condition="you know the rates of the link")


def _for_each_queue(name, mq, here):
    """The line that attaches a dualpi2 to each transmit queue. One at the root would put all of them under one lock."""
    queues = sum(one["where"].startswith(f"parent {mq['handle'] or ':'}") for one in here)
    handle, device = mq["handle"] or "1:", quoted(name)
    # An mq that the kernel attached has no handle, so no request can name its classes.
    first = "" if mq["handle"] else f"tc qdisc replace dev {device} root handle {handle} mq && "
    return (f"{first}for n in $(seq {max(queues, 1)}); do tc qdisc replace dev {device} parent {handle}$(printf %x $n) "
            "dualpi2; done")


def l4s_off(facts):
    for one in instances(facts):
        if one["options"].get("l4s") == 0:
            return Finding("l4s-off", one["device"], f"{one['name']} has no_l4s: it treats ECT(1) as Not-ECT",
                           change(facts, one, "l4s")), ""
    return None, "L4S is on"


def wrong_mask(facts):
    for one in instances(facts):
        mask = one["options"].get("ecn_mask", L4S_ECT)
        if mask == CLA_ECT:
            return Finding("wrong-mask", one["device"], f"{one['name']} has cla_ect: it puts ECT(0) into the L4S queue "
                           "and ECT(1) into the Classic queue", change(facts, one, "l4s_ect")), ""
        ect0 = ((one["seen"] or {}).get("l4s", {}).get("arrived", {}).get("ect0")) or 0
        if mask == ANY_ECT and ect0 >= FLOW_PACKETS_AT_LEAST:
            return Finding("wrong-mask", one["device"], f"{one['name']} has any_ect: it put {count(ect0)} of Classic "
                           "ECN (ECT(0)) into the L4S queue", change(facts, one, "l4s_ect")), ""
    return None, "ECT(1) and CE enter the L4S queue"


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
        text = f"{here} of {count(here + there)} with ECT(1) entered the Classic queue of {one['name']}"
        command = f"tc -s filter show dev {quoted(one['device'])} parent {one['handle']}"
        if guilty:
            # Intended: such a filter keeps the packets of a tunnel in one queue (docs/guides/vpn.md).
            return Finding("filter", one["device"], f"{text}, as the filter {guilty[0]['kind']} pref "
                           f"{guilty[0]['pref']} requests (class :3); correct for packets of a tunnel", command,
                           fixes=False, level=NOTE), ""
        return Finding("filter", one["device"], f"{text}: their priority selects it (SO_PRIORITY, skbedit or a "
                       "classify rule of the firewall)", command, fixes=False), ""
    return None, "no ECT(1) packets enter the Classic queue"


def flow_offload(facts):
    """Hardware offload bypasses all qdiscs. Software offload bypasses those of some devices, see BYPASS_SINCE."""
    name = facts["device"]
    link = facts["links"].get(name, {})
    kind = "ppp" if link.get("type") == ARPHRD_PPP else link.get("kind")
    in_software = kind in BYPASS_SINCE and numbers(facts["kernel"]) >= BYPASS_SINCE[kind]
    mine = {name, *facts["below"]}
    for table in facts["flowtables"]:
        if table["devices"] is not None and not mine & set(table["devices"]):
            continue
        if table["hardware"] or in_software:
            how = "to hardware" if table["hardware"] else "in software"
            return Finding("flow-offload", name, f"{table['where']} offloads flows {how}: their packets bypass the "
                           f"qdiscs of {name}", table["command"]), ""
    return None, "no flow offloading bypasses its qdiscs"


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
        # Another device may have other traffic, unless about as many packets pass it.
        if one["relation"] == "beside" and not most / 3 <= one["packets"] + one["drops"] <= 3 * most:
            continue
        found.append(one)
    order = {"below": 0}
    return min(found, key=lambda one: (order.get(one["relation"], 1), -one["waiting"]), default=None)


def _netns(one):
    return f"ip netns exec {quoted(one['netns'])} " if one.get("netns") else ""


RELATIONS = {"below": "a lower device", "beside": "another device"}


def shaper_elsewhere(facts):
    one = _elsewhere(facts)
    if one is None:
        return None, "no other shaper of this host has a backlog" if facts["shapers"] else "there is no other shaper"
    if one["managed"]:
        return None, f"the queue is in {one['name']} on {one['device']}, which has dualpi2"
    device = quoted(one["device"])
    prefix = _netns(one)
    fixes = True
    if one["kind"] in SHAPERS_WITH_LEAVES and one["leaf"] and one["below"] in SIMPLE:
        command = f"{prefix}tc qdisc replace dev {device} parent {one['leaf']} dualpi2"
    elif one["kind"] in SIMPLE and one["rate"]:
        command = (f"{prefix}tc qdisc replace dev {device} {one['where']} dualpi2 bandwidth {tc_rate(one['rate'])}"
                   f"{one['options']}")
    else:
        command, fixes = f"{prefix}tc -s {'class' if one['kind'] != 'netem' else 'qdisc'} show dev {device}", False
    backlog = f"a backlog of up to {count(one['most'])}" if one["most"] else ""
    drops = f"{count(one['drops'], 'drop')}" if one["drops"] else ""
    return Finding("shaper-elsewhere", facts["device"], f"the queue is in {one['name']} on {one['device']} "
                   f"({RELATIONS.get(one['relation'], one['relation'])}), with "
                   f"{' and '.join(filter(None, (backlog, drops)))}; none is here", command, fixes), ""


def no_queue(facts):
    for target in targets(facts):
        if target.shaped() or not target.loaded() or target.queued() or _elsewhere(facts):
            continue
        one = target.all[0]
        slowest = target.slowest()
        text = f"P99 of the delay is {delay(slowest)}" if slowest is not None else "no mark, no drop, no backlog"
        passed = f", {target.passed()} of them by bypass" if target.passed() else ""
        verdict = (f"no packet is queued in {one['name']} ({text}; {count(target.packets)} at {bits(target.rate)}"
                   f"{passed}; no shaper): the transfer is too small, or the bottleneck is elsewhere")
        if len(target.all) > 1:
            return Finding("no-queue", one["device"], verdict, f"tc -s qdisc show dev {quoted(one['device'])}",
                           fixes=False), ""
        rate = below_rate(target.rate, target.direction)
        ingress = target.direction == "ingress"
        return Finding("no-queue", one["device"], verdict,
                       change(facts, one, f"bandwidth {rate}{' ingress' if ingress else ''}",
                              f"--{'download' if ingress else 'upload'} {rate}"),
                       fixes=False, condition=f"{bits(target.rate)} is the rate of the link"), ""
    return None, "; ".join(f"{target.device}: {'a' if target.queued() else 'no'} backlog"
                           + (", shaped" if target.shaped() else "") for target in targets(facts)) or "not checked"


def unparsed(facts):
    for target in targets(facts):
        number, whole = target.sum("unparsed"), target.packets - target.passed()
        if number < UNPARSED_AT_LEAST or number < UNPARSED_SHARE * whole:
            continue
        others = facts["packets"]["devices"].get(target.device, {}).get("out", {}).get("other", {})
        others = {name: seen for name, seen in others.items() if name not in HARMLESS_ETHERTYPES}
        kind = max(others, key=others.get, default=None)
        text = ETHERTYPES.get(kind, f"ethertype {kind}") if kind else "unknown"
        device = quoted(target.device)
        ppp = [link["name"] for link in facts["links"].values() if link["type"] == ARPHRD_PPP]
        verdict = (f"dualpi2 found no IP header in {number} of {count(whole)} ({text}) and put them into the Classic "
                   "queue")
        if kind == "0x8864" and ppp:
            rate = next((one["options"]["bandwidth"] for one in target.all if one["options"].get("bandwidth")), 0)
            # `up` leaves what others attached to the PPP device.
            upload = tc_rate(rate) if rate else below_rate(target.rate, "egress")
            return Finding("unparsed", target.device, verdict,
                           f"dualpi2 up {quoted(ppp[0])} --upload {upload} --link pppoe-ptm", bool(rate),
                           "" if rate else f"{bits(target.rate)} is the rate of the link"), ""
        return Finding("unparsed", target.device, verdict + "; attach dualpi2 to a device whose packets begin with an "
                       "IP header", f"tcpdump -nei {device} -c 10 not ip and not ip6 and not arp", fixes=False), ""
    return None, "all packets have an IP header" if targets(facts) else "not checked"


def _flows_at(facts, target):
    """(flow, counts where it leaves the target, [(place, counts) where it enters the host], whether that is unsure).

    NAT renames one end: the entering and the leaving flow then differ. They are taken for the same flow only if no
    other entering or leaving flow matches.
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
                return _bleached(facts, target, f"{_flow_name(flow)} arrives on {place} as ECT(1) ({_scalable(counts)} "
                                 f"of {count(sum(counts['ecn']))}) and leaves {target.device} as {left}", place), ""
            ends = (flow["src"], flow["sport"], flow["dst"], flow["dport"])
            ours = ends in agreed or ends[2:] + ends[:2] in agreed
            if ours and here["data"][0] >= FLOW_PACKETS_AT_LEAST and not any(here["data"][1:]):
                before = any(not any(counts["ecn"][1:]) for _, counts in entering)
                place = entering[0][0] if before else None
                text = f"upstream of {place}" if before else "on this host" + (" or upstream of it" if unsure else "")
                return _bleached(facts, target, f"{_flow_name(flow)} negotiated AccECN, but none of its "
                                 f"{count(here['data'][0], 'data packet')} is ECT: the ECN field was cleared {text}",
                                 place, before or unsure), ""
    return None, "no flow loses ECT(1) on this host" if targets(facts) else "not checked"


def _bleached(facts, target, text, place, before=False):
    rules = [] if before else facts["rewriters"]
    if len(rules) > 1:
        places = ", ".join(sorted({rule["where"] for rule in rules}))
        return Finding("bleached", target.device, f"{text}; {count(len(rules), 'rule')} of this host can write the ECN "
                       f"field ({places})", "nft -a list ruleset", fixes=False)
    if rules:
        return Finding("bleached", target.device, f"{text}; a rule of {rules[0]['where']} writes the ECN field",
                       rules[0]["command"])
    return Finding("bleached", target.device, text, f"tcpdump -nvi {quoted(place or target.device)} -c 20 "
                   "'ip[1] & 3 != 1'", fixes=False)


def _without_l4s(facts):
    """Directions with traffic and no L4S; none if the other direction has L4S."""
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
                who, text = syn["src"], "requests only the ECN of RFC 3168 (SYN without AE)"
            elif syn["offer"] == "accecn" and syn["answer"] in ("ecn", "none"):
                who, text = syn["dst"], f"answers AccECN with {'RFC 3168' if syn['answer'] == 'ecn' else 'no ECN'}"
            else:
                continue
            local = who in facts["addresses"]
            verdict = f"{who} {'(this host) ' if local else ''}{text}, and none of {count(target.packets)} is ECT(1)"
            if local and not accecn_here:
                return Finding("no-accecn", target.device, f"{verdict}; kernel {facts['kernel']} has no AccECN",
                               "install Linux 6.18 or later", manual=True), ""
            return Finding("no-accecn", target.device, verdict, "sysctl -w net.ipv4.tcp_ecn=3",
                           host="" if local else who), ""
    return None, f"{count(len(facts['packets']['syns']), 'TCP handshake')} seen"


def no_ect1(facts):
    for target in _without_l4s(facts):
        found, exact = target.arrived()
        if not exact and sum(found.values()) < PACKETS_AT_LEAST:
            continue
        agreed = sum(1 for syn in facts["packets"]["syns"] if syn["offer"] == syn["answer"] == "accecn")
        text = f", although {count(agreed, 'connection')} negotiated AccECN" if agreed else ""
        # Not a fault of this device: most senders of the Internet use Classic congestion control.
        return Finding("no-ect1", target.device,
                       f"no ECT(1) packets in {facts['seconds']:g} s (Not-ECT {found['not_ect']}, ECT(0) "
                       f"{found['ect0']}){text}. The senders use Classic congestion control; nothing to change on this "
                       "device.", level=NOTE), ""
    return None, "; ".join("{}: ECT(1) {ect1}, CE {ce}, ECT(0) {ect0}, Not-ECT {not_ect}".format(
        target.device, **target.arrived()[0]) for target in targets(facts)) or "not checked"


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
            text = f"{count(large[name], 'GSO packet')} arrived on {name}"
        elif bundling:
            text = f"GRO is on for {bundling[0]}"
        elif sending.get("gso") or sending.get("tso"):
            text = f"GSO is on for {one['device']}"
        else:
            continue
        whole = "" if one["options"].get("split_gso", 1) else ", and no_split_gso counts a GSO packet as one"
        return Finding("gro-step-packets", one["device"], f"step_thresh of {one['name']} is {count(packets)}, and "
                       f"{text}{whole}: dualpi2 marks a burst of one flow as if it were a queue",
                       change(facts, one, "step_thresh 1ms")), ""
    return None, "step_thresh is a time, or no GSO packets arrive"


def step_ns(one, rate=0):
    """step_thresh as a time, None if it is not known."""
    options = one["options"]
    if "step_thresh_us" in options:
        return options["step_thresh_us"] * 1000
    if "step_thresh_pkts" in options and rate:
        return options["step_thresh_pkts"] * 1514 * 10**9 // rate
    return None


def _burst(shaper):
    """(burst in ns, rate) of a shaping parent; for htb, of its strictest class."""
    if shaper["kind"] == "tbf":
        return shaper["burst_ns"], shaper["rate"]
    found = []
    for number, level in enumerate(shaper.get("classes", [])):
        top = number == len(shaper["classes"]) - 1
        # A class that borrows from its parent is limited by cburst, not by burst.
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
        # Two packets: every parent needs a burst of one, and rounds it up.
        if step is None or burst <= step or size <= 2 * largest:
            continue
        device, at_once = quoted(one["device"]), max(largest, 1514)
        verdict = (f"{shaper['qdisc']}, the parent of {one['name']}, has a burst of {delay(burst)} ({size} bytes at "
                   f"{bits(rate)}), and step_thresh is {delay(step)}: the burst empties the queue before packets are "
                   "marked")
        if shaper["kind"] == "tbf":
            command = (f"tc qdisc change dev {device} {shaper['where']} handle {shaper['handle']} tbf rate "
                       f"{tc_rate(rate)} burst {at_once} limit {max(shaper.get('limit', 0), 1000000)}"
                       f"{shaper.get('link_layer', '')}")
            if shaper.get("peak"):
                command += f" peakrate {tc_rate(shaper['peak'])} minburst {shaper['peak_burst']}"
        else:
            level = shaper["classes"][0]
            command = (f"tc class change dev {device} parent {level['parent']} classid {level['handle']} htb rate "
                       f"{tc_rate(level['rate'])} ceil {tc_rate(level['ceil'])} burst {at_once} cburst {at_once}"
                       f" prio {level['prio']} quantum {level['quantum']}{level.get('link_layer', '')}")
        return Finding("parent-burst", one["device"], verdict, command), ""
    return None, "no parent has a burst longer than step_thresh"


def step_huge(facts):
    for one in instances(facts):
        step, target = step_ns(one), one["options"].get("target", 15000) * 1000
        if step is not None and step > target:
            return Finding("step-huge", one["device"], f"step_thresh of {one['name']} is {delay(step)}, above the "
                           f"Classic target of {delay(target)}: the L4S queue is as long as the Classic queue",
                           change(facts, one, "step_thresh 1ms")), ""
    return None, "step_thresh is at most target"


def pppoe_overhead(facts):
    vlan = ""
    for one in instances(facts):
        if not one["options"].get("bandwidth") or one["options"].get("framing", FRAMING_RAW) != FRAMING_RAW:
            continue
        # An ifb device has the packets of the device itself.
        link = facts["links"].get(facts["device"], {})
        # A VLAN tag alone is not a fault: the rate that was given can include its four bytes.
        if link.get("kind") == "vlan":
            vlan = f"; {facts['device']} is a VLAN device: `ethernet ether-vlan` counts its tag"
        if link.get("type") == ARPHRD_PPP:
            text = "a PPP link"
        elif facts["device"] in facts["pppoe"]:
            text = "the device of a PPPoE session"
        else:
            continue
        return Finding("pppoe-overhead", one["device"], f"the shaper of {one['name']} does not count the overhead of "
                       f"the link ({facts['device']} is {text}): small packets exceed the rate of the link",
                       change(facts, one, "pppoe-ptm", "--link pppoe-ptm"),
                       condition="" if facts["pppoe"] else "the link is PPPoE"), ""
    return None, "the shaper counts the overhead of the link, or there is no shaper" + vlan


def overload(facts):
    for one in instances(facts):
        seen = one["seen"]
        if not seen or not seen["overload_now"] and seen["overload_s"] < OVERLOAD_SHARE * seen["seconds"]:
            continue
        if seen["overload_s"] < OVERLOAD_SHARE * seen["seconds"]:
            continue
        rate = (seen["l4s"]["forwarded_bytes"] + seen["classic"]["forwarded_bytes"]) / seen["seconds"]
        text = (f"{one['name']} was in overload for {seen['overload_s']:.1f} of {seen['seconds']:.1f} s: it dropped "
                f"{count(seen['l4s']['dropped'] + seen['classic']['dropped'])} of both queues")
        flow = _biggest(facts, one["device"])
        if flow is None or flow["proto"] not in PROTOCOLS or not one["handle"]:
            return Finding("overload", one["device"], text, f"tc -s class show dev {quoted(one['device'])}",
                           fixes=False), ""
        protocol = "ipv6" if ":" in flow["dst"] else "ip"
        return Finding("overload", one["device"], f"{text}; the largest flow is {_flow_name(flow)}",
                       f"tc filter add dev {quoted(one['device'])} parent {one['handle']} protocol {protocol} flower "
                       f"ip_proto {PROTOCOLS[flow['proto']]} dst_ip {flow['dst']} dst_port {flow['dport']} action "
                       f"police rate {tc_rate(int(rate / 2))} burst 30k conform-exceed drop/pass",
                       condition="this flow is unresponsive"), ""
    return None, "not in overload"


def one_core(facts):
    shares = facts["processors"]
    if not shares or shares[0] < BUSY_SHARE or shares[-1] > IDLE_SHARE:
        return None, "no processor is at its limit while another one has time"
    for one in instances(facts):
        known = next((row for row in facts["qdiscs"]
                      if (row["device"], row["handle"]) == (one["device"], one["handle"])), None)
        if (one["kind"] != "dualpi2" or one["where"] != "root" or not one["options"].get("bandwidth") or not known
                or one["waiting"] < WAITING_SHARE or facts["links"].get(one["device"], {}).get("tx_queues", 1) < 2
                or known["overlimits"] > WAITS_SHARE * known["packets"]):
            continue
        managed = one["handle"] in UP_HANDLES
        return Finding("one-core", one["device"], f"{one['name']} has a backlog and its shaper does not wait: of "
                       f"{len(shares)} processors one works {shares[0]:.0%} of the time and another one "
                       f"{shares[-1]:.0%}, and only one at a time sends from one dualpi2",
                       f"dualpi2 set {quoted(base_device(facts, one['device']))} --queues all" if managed else
                       "replace it with dualpi2_mq and the same options, see tc-dualpi2(8)", manual=not managed), ""
    return None, "the busy processor does not slow a dualpi2 down"


def sanctioned(facts):
    for one in instances(facts):
        seen = one["seen"]
        redirected = seen["qprotect"].get("redirected", 0) if seen else 0
        if not redirected:
            continue
        text = (f"queue protection of {one['name']} redirected {count(redirected)} to the Classic queue in "
                f"{seen['seconds']:.1f} s; {count(seen['qprotect']['sanctioned'], 'flow')} under sanction now")
        worst = next((flow for flow in one.get("flows", ()) if flow["redirected"]), None)
        if worst and worst["shared"]:
            text += "; the worst are flows in the shared bucket: more flows build the queue than there are buckets"
        elif worst and worst["src"]:
            name = _flow_name(dict(worst, proto=worst["protocol"]))
            text += (f"; the worst is {name}. Its sender marks ECT(1) or an NQB DSCP, but does not slow down; correct "
                     "the sender, or clear its ECN field upstream")
        # No packet is lost by it, and other flows are protected.
        return Finding("sanctioned", one["device"], text, f"tc -s class show dev {quoted(one['device'])}", fixes=False,
                       level=NOTE), ""
    return None, "queue protection redirects no flow"


def _biggest(facts, device):
    found = [(max(counts["bytes"] for counts in flow["at"].values()), number)
             for number, flow in enumerate(facts["packets"]["flows"]) if f"{device} out" in flow["at"]]
    return facts["packets"]["flows"][max(found)[1]] if found else None


# (id, function, precondition: "" none, "device", "dualpi2")
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
    ("flow-offload", flow_offload, "dualpi2"),
    ("shaper-elsewhere", shaper_elsewhere, "dualpi2"),
    ("no-queue", no_queue, "dualpi2"),
    ("unparsed", unparsed, "dualpi2"),
    ("bleached", bleached, "dualpi2"),
    ("no-accecn", no_accecn, "dualpi2"),
    ("no-ect1", no_ect1, "dualpi2"),
    ("overload", overload, "dualpi2"),
    ("one-core", one_core, "dualpi2"),
    ("sanctioned", sanctioned, "dualpi2"),
    ("step-huge", step_huge, "dualpi2"),
    ("gro-step-packets", gro_step_packets, "dualpi2"),
    ("parent-burst", parent_burst, "dualpi2"),
    ("pppoe-overhead", pppoe_overhead, "dualpi2"),
)
# {fault: findings that follow from it, and are not reported in addition}
SILENCED = {
    "l4s-off": ("filter", "no-ect1"),
    "wrong-mask": ("filter",),
    "bleached": ("no-accecn", "no-ect1"),
    "unparsed": ("no-accecn", "no-ect1"),
    "no-accecn": ("no-ect1",),
    "flow-offload": ("shaper-elsewhere", "no-queue"),
    "device-down": ("no-dualpi2",),
    "no-module": ("module-not-ours", "no-dualpi2"),
}


def _doubts(facts):
    """Why this is not health: too little traffic, or no backlog."""
    found = []
    known = targets(facts)
    seconds = facts["seconds"]
    for target in known:
        if not target.loaded():
            found.append(f"only {count(target.packets)} arrived at {target.device} in {seconds:g} s, too few or too "
                         "small to tell: start a transfer and repeat")
        elif not target.queued():
            other = _elsewhere(facts)
            if other and other["managed"]:
                found.append(f"{target.device} has no backlog: the queue is in {other['name']} on {other['device']}, "
                             f"which has dualpi2; run: {_netns(other)}dualpi2 doctor {quoted(other['device'])}")
            else:
                found.append(f"{target.device} has no backlog: {bits(target.rate)} is below the rate of its shaper; "
                             "start a larger transfer. If one is running, the bottleneck is elsewhere and slower: set "
                             f"the shaper to {below_rate(target.rate, target.direction)}")
    # A backlog in one direction is enough, even if the other one is idle.
    return found if len(found) == len(known) else []


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
        if finding and finding.level == UNKNOWN:
            result.doubts.append(finding.verdict)
        elif finding and finding.level == NOTE:
            result.notes.append(finding)
        elif finding:
            result.findings.append(finding)
            silent.update(SILENCED.get(kind, ()))
        result.checks.append({"id": kind, "result": finding.level if finding else "ok",
                              "seen": finding.verdict if finding else seen})
    if result.findings:
        result.doubts = []
    elif facts["exists"]:
        result.doubts += _doubts(facts)
    return result
