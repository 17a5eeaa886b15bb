# SPDX-License-Identifier: GPL-2.0-only
"""The facts about a device that the doctor's rules go by, as one plain dict. It reads and never changes anything.

    facts["device"], ["exists"], ["seconds"], ["kernel"], ["module"], ["tc"], ["links"], ["pppoe"], ["addresses"],
    ["sysctl"]
    facts["targets"]    the device's own dualpi2 and those that its arriving packets are sent to: see _instance()
    facts["qdiscs"]     every qdisc of the host that has a device, with what happened to it during the watch
    facts["shapers"]    those of them that hold packets back, on other devices
    facts["packets"]    packets.Tally.as_dict()
    facts["rewriters"]  rules of this host that write the ECN field

What follows from them is in rules.
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
from . import net, packets

LOOKS_A_SECOND = 4
# So many qdiscs are listed in some hundredths of a second.
QDISCS_TO_LOOK_AT_OFTEN = 200
MIRRED_EGRESS_REDIRECT = 1
REWRITERS_AT_MOST = 8


def _program(name):
    """Where it is, None if there is none."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _output(words, env=None):
    """What a program prints, and its code; ("", None) where there is none."""
    path = _program(words[0])
    if not path:
        return "", None
    try:
        done = subprocess.run([path, *words[1:]], text=True, errors="replace", capture_output=True, env=env,
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
    """Which dualpi2 the kernel has and could have."""
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
        # One for each qdisc, of whatever network namespace.
        "users": int(users) if users.isdigit() else None,
        "packager": next((name for name in ("apt", "dnf") if _program(name)), None),
    }


def _list(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def tc():
    """Does tc know dualpi2, and all of its words? Its help comes from tc alone; the kernel is not asked."""
    text, code = _output(["tc", "-V"])
    found = {"found": code is not None, "version": "".join(re.findall(r"iproute2-?([\w.]+)", text)[:1]) or None}
    text, _ = _output(["tc", "qdisc", "add", "dualpi2", "help"])
    found["dualpi2"] = "coupling_factor" in text
    found["extension"] = found["dualpi2"] and "no_l4s" in text
    found["bandwidth"] = found["dualpi2"] and "bandwidth" in text
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


def _nft():
    text, code = _output(["nft", "-j", "-a", "list", "ruleset"])
    if code:
        return []
    try:
        rules = [item["rule"] for item in json.loads(text or "{}").get("nftables", []) if "rule" in item]
    except (ValueError, KeyError, TypeError):
        return []
    found = []
    for rule in rules:
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
    # Written as bits: IPv4's are 14 and 15 of the header, IPv6's 10 and 11.
    if payload.get("base") == "nh":
        begin, end = payload.get("offset", 0), payload.get("offset", 0) + payload.get("len", 0)
        return begin < 16 and end > 14 or begin < 12 and end > 10
    return False


def _iptables():
    found = []
    for program, names in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        # The older iptables loads the modules of a table to look into it.
        if "nf_tables" not in _output([program, "-V"])[0] and "mangle" not in _read("/proc/self/net/" + names).split():
            continue
        text, code = _output([program + "-save", "-t", "mangle"])
        if code != 0:
            continue
        for line in text.split("\n"):
            # --set-tos with a mask that leaves the ECN field alone is harmless; without one it writes all of it.
            wrote = re.search(r"-j TOS --set-tos (0x[0-9a-fA-F]+)/(0x[0-9a-fA-F]+)", line)
            tos = wrote and int(wrote.group(2), 16) & 3
            if line.startswith("-A ") and (tos or "-j ECN --ecn-ip" in line):
                # As iptables quotes it, and then as the shell does: a comment may have anything in it.
                with contextlib.suppress(ValueError):
                    found.append({"where": program, "rule": line.split(" -j ")[1],
                                  "command": shlex.join([program, "-t", "mangle", "-D", *shlex.split(line[3:])])})
    return found


# One dualpi2

def _instance(qdisc, links, owners, classes):
    """One dualpi2 of a target: what is set, what is above it. owners: {(number of the device, major): qdisc}."""
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
    return {"device": link["name"], "handle": handle_text(qdisc.handle) if qdisc.handle else "", "name": qdisc.name(),
            "where": qdisc.where(), "options": qdisc.dualpi2_options(), "shaped_by": shaped_by, "filters": [],
            "link": sample.link, "level": sample.level}


def _chain(leaf, classes):
    """The classes of htb from a leaf to the top."""
    found = []
    while leaf in classes and len(found) < 8 and "rate" in classes[leaf]:
        found.append(dict(classes[leaf], handle=handle_text(leaf), parent=handle_text(classes[leaf]["parent"])))
        leaf = classes[leaf]["parent"]
    return found


def _seen(new, old, seconds):
    """What a dualpi2 did between two looks; None if it was replaced meanwhile."""
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
    """Looks at every qdisc, and what lay between the first and the last of them."""

    def __init__(self, asker):
        self.asker = asker
        self.first = self._look()
        self.last = self.first
        self.looks = 0
        self.waiting = {}

    def _look(self):
        return {qdisc.key: qdisc for qdisc in self.asker.qdiscs()}

    def look(self):
        """Once more."""
        self.last = self._look()
        self.looks += 1
        for key, qdisc in self.last.items():
            if qdisc.qlen:
                times, most = self.waiting.get(key, (0, 0))
                self.waiting[key] = times + 1, max(most, qdisc.qlen)

    def grown(self, key):
        """What a qdisc did: packets sent, dropped, how often packets were waiting in it and how many at most."""
        new, old = self.last[key], self.first.get(key, self.last[key])
        times, most = self.waiting.get(key, (0, 0))
        return {"packets": new.packets - old.packets & 0xffffffff, "bytes": max(new.bytes - old.bytes, 0),
                "drops": new.drops - old.drops & 0xffffffff,
                "overlimits": new.overlimits - old.overlimits & 0xffffffff,
                "waiting": times / max(self.looks, 1), "most": most}


def relation(name, links, pppoe):
    """{device: how it stands to this one}: those that its packets come to next are "below" it."""
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
    """Names of the devices that a device's arriving packets are sent to."""
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


def _beyond_veth(link, watch_peers):
    """Shapers in the namespace at the other end of a veth, where one is named by `ip netns`."""
    if link["kind"] != "veth" or not link["elsewhere"]:
        return
    for name in _list("/run/netns"):
        with contextlib.suppress(Trouble, OSError), namespace(name):
            asker = net.Asker()
            try:
                peer = asker.links().get(link["lower"])
                if peer and peer["kind"] == "veth" and peer["lower"] == link["ifindex"] and peer["elsewhere"]:
                    watch_peers[name] = asker
                    asker = None
            finally:
                if asker:
                    asker.close()


def facts(device, seconds):
    """Look at a device for so long."""
    found = {"device": device, "exists": False, "kernel": os.uname().release, "seconds": seconds,
             "module": module(), "tc": tc()}
    asker = net.Asker()
    links = asker.links()
    link = next((one for one in links.values() if one["name"] == device), None)
    found["devices"] = sorted(one["name"] for one in links.values() if not one["loopback"])
    if link is None:
        return found
    found["exists"] = True
    found["up"] = link["up"]
    found["pppoe"] = net.pppoe_devices()
    found["addresses"] = sorted(asker.addresses())
    found["sysctl"] = {name: net.sysctl("net.ipv4." + name)
                       for name in ("tcp_ecn", "tcp_ecn_option", "ip_forward")}
    found["links"] = {one["name"]: dict(one, lower=links.get(one["lower"], {}).get("name"),
                                        **({"offloads": net.offloads(one["name"])} if one["up"] else {}))
                      for one in links.values() if not one["loopback"]}

    began = time.monotonic()
    watch = Watched(asker)
    peers = {}
    _beyond_veth(link, peers)
    peers = {name: (one, one.links(), Watched(one)) for name, one in peers.items()}
    capture = packets.Capture(links, _packets_a_second(asker))
    watched_from = time.monotonic()
    often = len(watch.first) <= QDISCS_TO_LOOK_AT_OFTEN
    looks = max(int(seconds * LOOKS_A_SECOND), 2) if often else 2
    try:
        for number in range(1, looks + 1):
            capture.until(watched_from + seconds * number / looks)
            watch.look()
            for _, _, other in peers.values():
                other.look()
    finally:
        capture.close()
    elapsed = time.monotonic() - began
    now = asker.links()
    if link["ifindex"] not in now:
        found.update(exists=False, vanished=True, devices=sorted(one["name"] for one in now.values()
                                                                 if not one["loopback"]))
        return found
    found["packets"] = capture.tally.as_dict()
    _state(found, link, links, asker, watch, elapsed)
    found["shapers"] = _shapers(watch, links, found)
    for name, (one, other_links, other) in peers.items():
        here = dict(found, targets=[], below={})
        for shaper in _shapers(other, other_links, here):
            found["shapers"].append(dict(shaper, relation=f"beyond it, in network namespace {name}", netns=name))
        one.close()
    found["rewriters"] = rewriters(links, asker)
    asker.close()
    return found


def _packets_a_second(asker):
    """Of the busiest device, in a fifth of a second."""
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
            if qdisc.kind != "dualpi2" or qdisc.ifindex != other["ifindex"]:
                continue
            one = _instance(qdisc, links, owners, classes)
            one["seen"] = _seen(qdisc, watch.first.get(qdisc.key, qdisc), elapsed)
            # There may be thousands; only this makes anybody ask for the filters.
            if qdisc.handle and one["seen"] and one["seen"]["classic"]["arrived"]["ect1"]:
                one["filters"] = asker.filters(qdisc.ifindex, qdisc.handle)
            one.update({"waiting": watch.grown(qdisc.key)["waiting"], "most": watch.grown(qdisc.key)["most"]})
            instances.append(one)
        found["targets"].append({"device": other["name"], "direction": direction, "dualpi2": instances})


def _leaf(qdisc, watch):
    """(class, kind of its qdisc) of a qdisc that has the most packets, as far as that is known; None, None if not.

    What the kernel put below a class of its own accord is not in its list: then the class is known only if it is alone.
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
    # hfsc has its root among its classes.
    ends = [handle for handle in classes if handle not in inner and handle & 0xffff]
    return (handle_text(ends[0]), busiest.kind if busiest else "pfifo") if len(ends) == 1 else (None, None)


def _shapers(watch, links, found):
    """Qdiscs that shape, on devices that are no target's."""
    targets = {target["device"] for target in found["targets"] if target["dualpi2"]} | {found["device"]}
    rows = []
    for key, qdisc in watch.last.items():
        shaper = qdisc.shaper()
        name = links.get(qdisc.ifindex, {}).get("name")
        if not shaper or not name or name in targets and not found.get("targets") == []:
            continue
        # What has its packets: the leaves below it, or itself.
        children = [one for one in watch.last.values() if one.ifindex == qdisc.ifindex and one is not qdisc and
                    one.parent >> 16 == qdisc.handle >> 16 and one.parent != 0xffffffff]
        managed = qdisc.kind == "dualpi2" or any(one.kind == "dualpi2" for one in children)
        leaf, below = _leaf(qdisc, watch)
        rate = shaper["rate"]
        if qdisc.kind == "htb":
            rate = max((one["ceil"] for one in watch.asker.classes(qdisc.ifindex).values() if "ceil" in one), default=0)
        rows.append(dict({"device": name, "kind": qdisc.kind, "name": qdisc.name(), "where": qdisc.where(),
                          "rate": rate, "leaf": leaf, "below": below, "words": shaper.get("words", ""),
                          "managed": managed,
                          "relation": found["below"].get(name, "beside")}, **watch.grown(key)))
    return rows
