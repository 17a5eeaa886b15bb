# SPDX-License-Identifier: GPL-2.0-only
"""The facts about a device that the rules of the doctor need, as one plain dict. Reads only.

    facts["device"], ["exists"], ["seconds"], ["kernel"], ["module"], ["tc"], ["links"], ["pppoe"], ["addresses"],
    ["sysctl"]
    facts["targets"]    the device's own dualpi2 and those that its arriving packets are sent to: see _instance()
    facts["qdiscs"]     the qdiscs of the device and of those below it, with what happened during the observation
    facts["shapers"]    qdiscs that shape, on other devices
    facts["packets"]    packets.Tally.as_dict()
    facts["rewriters"]  rules of this host that write the ECN field
    facts["flowtables"] flow offloading of this host

The conclusions are in rules.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time

from .. import Trouble, version
from ..kernel import stats
from ..kernel.netlink import handle_text, namespace
from ..kernel.qdisc import KINDS
from . import net, packets

LOOKS_A_SECOND = 4
# Listing this many qdiscs takes some hundredths of a second.
QDISCS_TO_LOOK_AT_OFTEN = 200
MIRRED_EGRESS_REDIRECT = 1
REWRITERS_AT_MOST = 8


def _program(name):
    """The path of a program, None if it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _output(command, env=None):
    """(output, exit code) of a program; ("", None) if it is not installed."""
    path = _program(command[0])
    if not path:
        return "", None
    try:
        done = subprocess.run([path, *command[1:]], text=True, errors="replace", capture_output=True, env=env,
                              stdin=subprocess.DEVNULL, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "", None
    return done.stdout + done.stderr, done.returncode


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def module():
    """The loaded module, and the installed ones."""
    release = os.uname().release
    there = f"/lib/modules/{release}"
    listed = re.findall(r"^([^:\n]*/sch_dualpi2\.ko[^:\n]*):", _read(there + "/modules.dep"), re.M)
    loaded = os.path.isdir("/sys/module/sch_dualpi2")
    installed = _output(["modinfo", "-F", "version", os.path.join(there, listed[0])])[0].strip() if listed else ""
    users = _read("/sys/module/sch_dualpi2/refcnt").strip()
    return {
        "loaded": loaded,
        "version": _read("/sys/module/sch_dualpi2/version").strip() or None,
        "builtin": "/sch_dualpi2.ko" in _read(there + "/modules.builtin"),
        "installed": listed[0] if listed else None,
        "installed_version": installed or None,
        "sources": sorted(name[12:] for name in _list("/usr/src") if name.startswith("sch-dualpi2-")),
        "ours": version(),
        # One reference for each qdisc, in all network namespaces.
        "users": int(users) if users.isdigit() else None,
        "packager": next((name for name in ("apt", "dnf") if _program(name)), None),
    }


def busy_ticks(text):
    """{processor: (ticks in which it worked, all ticks)} since boot, from /proc/stat."""
    found = {}
    for name, *numbers in map(str.split, text.splitlines()):
        if re.fullmatch(r"cpu\d+", name) and len(numbers) >= 8:
            ticks = [int(number) for number in numbers[:8]]
            found[name] = sum(ticks) - ticks[3] - ticks[4], sum(ticks)      # idle, and waiting for a disk
    return found


def busy_shares(before, after):
    """The share of the time in which each processor worked between two of busy_ticks(), the busiest first."""
    return sorted(((after[name][0] - work) / (after[name][1] - ticks) for name, (work, ticks) in before.items()
                   if name in after and after[name][1] > ticks), reverse=True)


def _list(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def tc():
    """Does tc support dualpi2 and all its options? Its help does not need the kernel."""
    text, code = _output(["tc", "-V"])
    found = {"found": code is not None, "version": "".join(re.findall(r"iproute2-?([\w.]+)", text)[:1]) or None}
    text, _ = _output(["tc", "qdisc", "add", "dualpi2", "help"])
    found["dualpi2"] = "coupling_factor" in text
    found["extension"] = found["dualpi2"] and "no_l4s" in text
    found["bandwidth"] = found["dualpi2"] and "bandwidth" in text
    return found


def flowtables():
    """Flow offloading of this host: [{"where", "hardware", "devices" (None: any), "command"}]."""
    if _program("uci") and _output(["uci", "-q", "get", "firewall.@defaults[0].flow_offloading"])[0].strip() == "1":
        # The firewall of OpenWrt would create its rules again.
        hardware = _output(["uci", "-q", "get", "firewall.@defaults[0].flow_offloading_hw"])[0].strip() == "1"
        off = " && ".join(f"uci set firewall.@defaults[0].flow_offloading{name}=0" for name in ("", "_hw"))
        return [{"where": "the firewall of OpenWrt", "hardware": hardware, "devices": None,
                 "command": f"{off} && uci commit firewall && /etc/init.d/firewall restart"}]
    return _nft_flowtables() + _iptables_flowtables()


def _nft_flowtables():
    tables, users = [], {}
    for item in _ruleset():
        table, rule = item.get("flowtable"), item.get("rule", {})
        if table:
            tables.append(table)
        for statement in rule.get("expr", []):
            flow = statement.get("flow") if isinstance(statement, dict) else None
            if isinstance(flow, dict) and flow.get("op") == "add":
                key = rule["family"], rule["table"], str(flow.get("flowtable")).lstrip("@")
                users.setdefault(key, []).append([rule["family"], rule["table"], rule["chain"], "handle",
                                                  str(rule["handle"])])
    hardware = _hardware_flowtables() if tables else set()
    found = []
    for table in tables:
        names = [table["family"], table["table"], table["name"]]
        lines = ["nft delete rule " + shlex.join(rule) for rule in users.get(tuple(names), [])]
        devices = table.get("dev", [])
        # Without a rule, no flow is offloaded. To delete the flowtable ends the offloading of the present flows.
        if lines:
            found.append({"where": "nft flowtable " + " ".join(names),
                          "hardware": tuple(names) in hardware,
                          "devices": [devices] if isinstance(devices, str) else devices,
                          "command": " && ".join([*lines, "nft delete flowtable " + shlex.join(names)])})
    return found


def _hardware_flowtables():
    """(family, table, name) of each flowtable with the flag "offload", which nft does not print as JSON."""
    found, table, name = set(), (), ""
    for line in _output(["nft", "list", "flowtables"])[0].split("\n"):
        fields = line.split()
        if fields[:1] == ["table"] and len(fields) >= 3:
            table = fields[1], fields[2]
        elif fields[:1] == ["flowtable"] and len(fields) >= 2:
            name = fields[1]
        elif fields[:1] == ["flags"] and "offload" in line:
            found.add((*table, name))
    return found


def _iptables_flowtables():
    found = []
    for program, line in _iptables_rules("filter"):
        if "-j FLOWOFFLOAD" in line:
            with contextlib.suppress(ValueError):
                found.append({"where": program + " FLOWOFFLOAD", "hardware": "--hw" in line.split(), "devices": None,
                              "command": shlex.join([program, "-D", *shlex.split(line[3:])])})
    return found


def rewriters(links, asker):
    """Rules of this host that write the ECN field: [{"where", "rule", "command"}]."""
    found = _nft() + _iptables()
    for link in links.values():
        for parent, side in ((net.TC_CLSACT_INGRESS, "ingress"), (net.TC_CLSACT_EGRESS, "egress"),
                             (net.TC_INGRESS, "parent ffff:")):
            for one in asker.filters(link["ifindex"], parent):
                for action in one["actions"]:
                    if action.get("ecn"):
                        found.append({"where": f"tc at {link['name']} {side}",
                                      "rule": f"{one['kind']} {action['kind']}",
                                      "command": f"tc filter del dev {shlex.quote(link['name'])} {side} pref "
                                                 f"{one['pref']}"})
    unique = {one["command"]: one for one in found}
    return list(unique.values())[:REWRITERS_AT_MOST]


def _ruleset():
    """Objects of the nftables ruleset, with handles."""
    text, code = _output(["nft", "-j", "-a", "list", "ruleset"])
    if code:
        return []
    try:
        return [item for item in json.loads(text or "{}").get("nftables", []) if isinstance(item, dict)]
    except (ValueError, AttributeError):
        return []


def _nft():
    found = []
    for rule in (item["rule"] for item in _ruleset() if "rule" in item):
        if any(_nft_writes_ecn(statement) for statement in rule.get("expr", [])):
            where = [rule["family"], rule["table"], rule["chain"]]
            found.append({"where": "nft " + " ".join(where), "rule": "ecn set",
                          "command": f"nft delete rule {shlex.join(where)} handle {rule['handle']}"})
    return found


def _nft_writes_ecn(statement):
    payload = (statement.get("mangle", {}) if isinstance(statement, dict) else {}).get("key", {})
    payload = payload.get("payload", {}) if isinstance(payload, dict) else {}
    if payload.get("field") == "ecn":
        return True
    # As raw bits of the header: 14 and 15 for IPv4, 10 and 11 for IPv6.
    if payload.get("base") == "nh":
        begin, end = payload.get("offset", 0), payload.get("offset", 0) + payload.get("len", 0)
        return begin < 16 and end > 14 or begin < 12 and end > 10
    return False


def _iptables_rules(table):
    """(program, line of iptables-save) of each rule of a table."""
    for program, names in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        # The older iptables loads the modules of a table to list it.
        if "nf_tables" not in _output([program, "-V"])[0] and table not in _read("/proc/self/net/" + names).split():
            continue
        text, code = _output([program + "-save", "-t", table])
        if code == 0:
            yield from ((program, line) for line in text.split("\n") if line.startswith("-A "))


def _iptables():
    found = []
    for program, line in _iptables_rules("mangle"):
        # --set-tos with a mask that excludes the ECN field is harmless; without a mask it writes the whole byte.
        wrote = re.search(r"-j TOS --set-tos (0x[0-9a-fA-F]+)/(0x[0-9a-fA-F]+)", line)
        tos = wrote and int(wrote.group(2), 16) & 3
        if tos or "-j ECN --ecn-ip" in line:
            # Quoted by iptables, and again for the shell: a comment may contain anything.
            with contextlib.suppress(ValueError):
                found.append({"where": program, "rule": line.split(" -j ")[1],
                              "command": shlex.join([program, "-t", "mangle", "-D", *shlex.split(line[3:])])})
    return found


# One dualpi2

def _instance(qdisc, links, owners, classes):
    """One dualpi2 of a target: its options and its shaping parent. owners: {(ifindex, major): qdisc}."""
    shaped_by = None
    above = qdisc.parent
    while above not in (0xffffffff, 0) and shaped_by is None:
        owner = owners.get((qdisc.ifindex, above >> 16))
        if owner is None or owner is qdisc:
            break
        shaper = owner.shaper()
        if shaper:
            shaped_by = {"qdisc": owner.name(), "kind": owner.kind, "handle": handle_text(owner.handle),
                         "class": handle_text(above), "where": owner.where(), "sized": owner.sized, **shaper}
            if owner.kind == "htb":
                shaped_by["classes"] = _chain(above, classes)
        above = owner.parent
    link, sample = links[qdisc.ifindex], qdisc.sample()
    return {"device": link["name"], "handle": handle_text(qdisc.handle) if qdisc.handle else "", "kind": qdisc.kind,
            "name": qdisc.name(), "where": qdisc.where(), "options": qdisc.dualpi2_options(), "shaped_by": shaped_by,
            "filters": [], "link": sample.link, "level": sample.level}


def _chain(leaf, classes):
    """The classes of htb from a leaf to its topmost parent."""
    found = []
    while leaf in classes and len(found) < 8 and "rate" in classes[leaf]:
        found.append(dict(classes[leaf], handle=handle_text(leaf), parent=handle_text(classes[leaf]["parent"])))
        leaf = classes[leaf]["parent"]
    return found


def _seen(new, old, seconds):
    """Counters of a dualpi2 between two dumps; None if it was replaced between them."""
    after, before = new.sample(), old.sample()
    interval = stats.Interval.between(after, before, seconds)
    if interval is None:
        return None
    found = {"seconds": seconds, "packets": interval.total["packets"], "bytes": interval.total["bytes"],
             "drops": interval.total["drops"], "marks": interval.total.get("ecn_mark", 0),
             "overload_s": 0.0, "overload_now": bool(after.overload.get("now"))}
    for name in ("unparsed", "filter_dropped", "gso_failed", "mark_failed"):
        if name in after.ext and name in before.ext:
            found[name] = stats.difference(after.ext[name], before.ext[name]) or 0
    if after.overload.get("total_ns") is not None and before.overload.get("total_ns") is not None:
        found["overload_s"] = max(after.overload["total_ns"] - before.overload["total_ns"], 0) / 1e9
    found["qprotect"] = dict(interval.qprotect, sanctioned=after.qprotect.get("sanctioned", 0))
    for queue in stats.QUEUES:
        counters, delays = interval.counters[queue], interval.delays[queue]
        one = {"arrived": {ecn: counters.get("arrived_" + ecn) for ecn in stats.ARRIVALS},
               "bytes": counters.get("arrived_bytes", counters.get("enqueued_bytes", 0)),
               "packets": interval.arrived(queue, None) or 0, "forwarded": counters.get("forwarded", 0),
               "forwarded_bytes": counters.get("forwarded_bytes", 0),
               "marked": interval.marked(queue) or 0, "dropped": interval.dropped(queue, None) or 0}
        if delays is not None and delays.packets:
            one.update({f"p{percent}_ns": delays.percentile_ns(percent) for percent in (50, 95, 99)})
        found[stats.QUEUE_NAMES[queue]] = one
    return found


# All of them

class Watched:
    """Dumps of all qdiscs, and the differences between the first and the last one."""

    def __init__(self, asker):
        self.asker = asker
        self.first = self._look()
        self.last = self.first
        self.looks = 0
        self.waiting = {}

    def _look(self):
        return {qdisc.key: qdisc for qdisc in self.asker.qdiscs()}

    def look(self):
        """Dump all qdiscs again."""
        self.last = self._look()
        self.looks += 1
        for key, qdisc in self.last.items():
            if qdisc.qlen:
                times, most = self.waiting.get(key, (0, 0))
                self.waiting[key] = times + 1, max(most, qdisc.qlen)

    def grown(self, key):
        """Counters of a qdisc: sent, dropped, share of the dumps with a backlog, and the largest backlog."""
        new, old = self.last[key], self.first.get(key, self.last[key])
        times, most = self.waiting.get(key, (0, 0))
        return {"packets": new.packets - old.packets & 0xffffffff, "bytes": max(new.bytes - old.bytes, 0),
                "drops": new.drops - old.drops & 0xffffffff,
                "overlimits": new.overlimits - old.overlimits & 0xffffffff,
                "waiting": times / max(self.looks, 1), "most": most}


def relation(name, links, pppoe):
    """{device: "below"} for the devices that packets of this one pass next."""
    by_name = {link["name"]: link for link in links.values()}
    found, todo = {}, [name]
    while todo:
        link = by_name.get(todo.pop())
        if link is None:
            continue
        lower = []
        if link["lower"] and not link["elsewhere"] and link["kind"] != "veth":
            lower.append(links.get(link["lower"], {}).get("name"))
        lower += [other["name"] for other in links.values() if other["master"] == link["ifindex"]]
        if link["type"] == 512:
            lower += pppoe
        for other in lower:
            if other and other != name and other not in found:
                found[other] = "below"
                todo.append(other)
    return found


def _redirects(asker, link, links, seen):
    """Names of the devices that packets arriving on a device are redirected to."""
    handles = {qdisc.kind for qdisc in seen if qdisc.ifindex == link["ifindex"]}
    found = []
    parents = ([net.TC_CLSACT_INGRESS] if "clsact" in handles else []) + (
        [net.TC_INGRESS] if "ingress" in handles else [])
    for parent in parents:
        for one in asker.filters(link["ifindex"], parent):
            for action in one["actions"]:
                if action.get("how") == MIRRED_EGRESS_REDIRECT and action["ifindex"] in links:
                    name = links[action["ifindex"]]["name"]
                    if name not in found:
                        found.append(name)
    return found


def devices():
    """Names of the devices to check: those with a dualpi2 in one direction, and those with a default route."""
    asker = net.Asker()
    try:
        links, qdiscs = asker.links(), asker.qdiscs()
        managed = {links[one.ifindex]["name"] for one in qdiscs if one.kind in KINDS and one.ifindex in links}
        sent_to = {link["name"]: set(_redirects(asker, link, links, qdiscs)) for link in links.values()}
    finally:
        asker.close()
    # An ifb device is checked together with the device that it receives from.
    received = set().union(*sent_to.values())
    ifbs = {link["name"] for link in links.values() if link["kind"] == "ifb"} & received
    pppoe = net.pppoe_devices()
    # A VLAN or PPP device needs no dualpi2 of its own if a lower device has one.
    routed = {name for name in net.default_route_devices() if not managed & set(relation(name, links, pppoe))}
    return sorted(link["name"] for link in links.values() if not link["loopback"] and (
        link["name"] in routed or link["name"] in managed - ifbs or managed & sent_to[link["name"]]))


def _beyond_veth(link):
    """Shapers in the namespace at the other end of a veth, where one is named by `ip netns`: {name: asker}."""
    found = {}
    if link["kind"] != "veth" or not link["elsewhere"]:
        return found
    for name in _list("/run/netns"):
        with contextlib.suppress(Trouble, OSError), namespace(name):
            asker = net.Asker()
            try:
                peer = asker.links().get(link["lower"])
                if peer and peer["kind"] == "veth" and peer["lower"] == link["ifindex"] and peer["elsewhere"]:
                    found[name] = asker
                    asker = None
            finally:
                if asker:
                    asker.close()
    return found


def facts(device, seconds):
    """Observe a device for this time."""
    return facts_of([device], seconds)[0]


def facts_of(names, seconds):
    """Observe several devices at the same time; a dict for each."""
    asker = net.Asker()
    links = asker.links()
    here = {link["name"]: link for link in links.values()}
    shared = {"kernel": os.uname().release, "seconds": seconds, "module": module(), "tc": tc(),
              "devices": _names(links)}
    if not set(names) & set(here):
        asker.close()
        return [dict({"device": name, "exists": False}, **shared) for name in names]
    shared.update(
        pppoe=net.pppoe_devices(), addresses=sorted(asker.addresses()),
        sysctl={name: net.sysctl("net.ipv4." + name) for name in ("tcp_ecn", "tcp_ecn_option", "ip_forward")},
        links={one["name"]: dict(one, lower=links.get(one["lower"], {}).get("name"),
                                 **({"offloads": net.offloads(one["name"])} if one["up"] else {}))
               for one in links.values() if not one["loopback"]})
    began, before = time.monotonic(), busy_ticks(_read("/proc/stat"))
    watch = Watched(asker)
    peers = {name: {peer: (one, one.links(), Watched(one)) for peer, one in _beyond_veth(here[name]).items()}
             for name in names if name in here}
    tally = _observe(asker, links, [watch, *(one[2] for found in peers.values() for one in found.values())], seconds)
    elapsed = time.monotonic() - began
    now = asker.links()
    shared.update(processors=busy_shares(before, busy_ticks(_read("/proc/stat"))))
    shared.update(packets=tally, rewriters=rewriters(links, asker), flowtables=flowtables())
    found = []
    for name in names:
        one = dict({"device": name, "exists": name in here}, **shared)
        if one["exists"] and here[name]["ifindex"] not in now:
            one.update(exists=False, vanished=True, devices=_names(now))
        elif one["exists"]:
            one["up"] = here[name]["up"]
            _state(one, here[name], links, asker, watch, elapsed)
            one["shapers"] = _shapers(watch, links, one)
            for peer, (_, other_links, other) in peers[name].items():
                beyond = dict(one, targets=[], below={})
                one["shapers"] += [dict(shaper, relation=f"beyond it, in network namespace {peer}", netns=peer)
                                   for shaper in _shapers(other, other_links, beyond)]
        found.append(one)
    for other in [asker, *(one[0] for group in peers.values() for one in group.values())]:
        other.close()
    return found


def _names(links):
    return sorted(one["name"] for one in links.values() if not one["loopback"])


def _observe(asker, links, watches, seconds):
    """Look at the qdiscs at intervals, and count packets; the packets.Tally as a dict."""
    capture = packets.Capture(links, _packets_a_second(asker))
    began = time.monotonic()
    often = len(watches[0].first) <= QDISCS_TO_LOOK_AT_OFTEN
    looks = max(int(seconds * LOOKS_A_SECOND), 2) if often else 2
    try:
        for number in range(1, looks + 1):
            capture.until(began + seconds * number / looks)
            for watch in watches:
                watch.look()
    finally:
        capture.close()
    return capture.tally.as_dict()


def _packets_a_second(asker):
    """Packets/s of the busiest device, measured for 0.2 s."""
    before = asker.links()
    time.sleep(0.2)
    return max((5 * (link["rx_packets"] + link["tx_packets"] - before[index]["rx_packets"] -
                     before[index]["tx_packets"])
                for index, link in asker.links().items() if index in before), default=0)


def _state(found, link, links, asker, watch, elapsed):
    """Qdiscs, targets and the devices below."""
    qdiscs = list(watch.last.values())
    found["below"] = relation(link["name"], links, found["pppoe"])
    found["qdiscs"] = [dict({"device": links[qdisc.ifindex]["name"], "kind": qdisc.kind, "name": qdisc.name(),
                             "handle": handle_text(qdisc.handle) if qdisc.handle else "", "where": qdisc.where(),
                             "shaper": qdisc.shaper(), "leaf": _leaf(qdisc, watch)[0]}, **watch.grown(qdisc.key))
                       for qdisc in qdiscs if qdisc.ifindex in links and links[qdisc.ifindex]["name"] in
                       {link["name"], *found["below"]}]
    found["targets"] = []
    owners = {(qdisc.ifindex, qdisc.handle >> 16): qdisc for qdisc in qdiscs if qdisc.handle}
    sides = [(link, "egress")] + [(other, "ingress") for name in _redirects(asker, link, links, qdiscs)
                                  for other in links.values() if other["name"] == name]
    for other, direction in sides:
        classes = asker.classes(other["ifindex"]) if any(
            one.kind == "htb" for one in qdiscs if one.ifindex == other["ifindex"]) else {}
        instances = []
        for qdisc in qdiscs:
            if qdisc.kind not in KINDS or qdisc.ifindex != other["ifindex"]:
                continue
            one = _instance(qdisc, links, owners, classes)
            one["seen"] = _seen(qdisc, watch.first.get(qdisc.key, qdisc), elapsed)
            # There may be thousands of filters; only ECT(1) in the Classic queue needs them.
            if qdisc.handle and one["seen"] and one["seen"]["classic"]["arrived"]["ect1"]:
                one["filters"] = asker.filters(qdisc.ifindex, qdisc.handle)
            one["flows"] = []
            if qdisc.handle and one["seen"] and one["seen"]["qprotect"].get("redirected"):
                one["flows"] = asker.l4s_flows(qdisc.ifindex, qdisc.handle)
            one.update({"waiting": watch.grown(qdisc.key)["waiting"], "most": watch.grown(qdisc.key)["most"]})
            instances.append(one)
        found["targets"].append({"device": other["name"], "direction": direction, "dualpi2": instances})


def _leaf(qdisc, watch):
    """(class, kind of its qdisc) of the busiest class of a qdisc; (None, None) if unknown.

    The kernel does not list the default qdisc of a class; such a class is known only if it is the only one.
    """
    if qdisc.kind not in ("htb", "hfsc", "tbf") or not qdisc.handle:
        return None, None
    children = [one for one in watch.last.values() if one.ifindex == qdisc.ifindex and one is not qdisc and
                one.parent >> 16 == qdisc.handle >> 16 and one.parent != 0xffffffff]
    busiest = max(children, key=lambda one: watch.grown(one.key)["packets"], default=None)
    if qdisc.kind == "tbf":
        return f"{qdisc.handle >> 16:x}:1", busiest.kind if busiest else "pfifo"
    packets = watch.grown(busiest.key)["packets"] if busiest else 0
    if packets and 2 * packets >= watch.grown(qdisc.key)["packets"]:
        return handle_text(busiest.parent), busiest.kind
    classes = {handle: one for handle, one in watch.asker.classes(qdisc.ifindex).items()
               if handle >> 16 == qdisc.handle >> 16 and one["kind"] == qdisc.kind}
    inner = {one["parent"] for one in classes.values()}
    # hfsc lists its root as a class.
    ends = [handle for handle in classes if handle not in inner and handle & 0xffff]
    return (handle_text(ends[0]), busiest.kind if busiest else "pfifo") if len(ends) == 1 else (None, None)


def _shapers(watch, links, found):
    """Qdiscs that shape, on devices that are not a target."""
    targets = {target["device"] for target in found["targets"] if target["dualpi2"]} | {found["device"]}
    rows = []
    for key, qdisc in watch.last.items():
        shaper = qdisc.shaper()
        name = links.get(qdisc.ifindex, {}).get("name")
        if not shaper or not name or name in targets and found.get("targets") != []:
            continue
        # Its leaves, or the qdisc itself.
        children = [one for one in watch.last.values() if one.ifindex == qdisc.ifindex and one is not qdisc and
                    one.parent >> 16 == qdisc.handle >> 16 and one.parent != 0xffffffff]
        managed = qdisc.kind in KINDS or any(one.kind in KINDS for one in children)
        leaf, below = _leaf(qdisc, watch)
        rate = shaper["rate"]
        if qdisc.kind == "htb":
            rate = max((one["ceil"] for one in watch.asker.classes(qdisc.ifindex).values() if "ceil" in one), default=0)
        rows.append(dict({"device": name, "kind": qdisc.kind, "name": qdisc.name(), "where": qdisc.where(),
                          "rate": rate, "leaf": leaf, "below": below, "options": shaper.get("options", ""),
                          "managed": managed,
                          "relation": found["below"].get(name, "beside")}, **watch.grown(key)))
    return rows
