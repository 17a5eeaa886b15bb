# SPDX-License-Identifier: GPL-2.0-only
"""Netlink for all tests in Python: the client and the layouts of the tools (tools/dualpi2/kernel), and what tests add.

    attr(type, payload)                 an attribute; attrs(data) -> {type: payload}, attr_list(data) -> pairs in order
    encode(knobs, limit=5)              attributes of HEADER.attributes(); decode(knobs, data) -> {name: value}
    Socket(netns, protocol)             .send(kind, flags, payload) .messages() .request(...) -> Answer .dump(...)
    HEADER                              the uapi header, see tools/dualpi2/kernel/layout.py
    Header(path, ...)                   the same of other files of the repository
    pack(limit=5, l4s=0)                TCA_OPTIONS of dualpi2, by KNOBS and EXT_KNOBS; unpack(options) the reverse
    parse_xstats(app)                   TCA_STATS_APP of dualpi2 as a dict, see net/lib.py
    tc_request(netns, type, flags, dev, handle, parent, kind, options)      (errno, extack text)
    qdisc_dump(netns, dev)  class_dump(netns, dev, handle)                  lists of dicts
    overload_listener(netns)            context manager: listens to the reports of overload there; .take(seconds) waits
                                        so long, .next(seconds) for one: dicts as OVERLOAD_REPORT says, with "event"
                                        "begin" or "end" and "at"; genl_family(sock, name) -> (number, {group: number})
    in_netns(name)                      context manager: this process is in the namespace

A field or number that the header changes is read with its new place here.  That the ABI did not change is tested by
what does not read the header: the tables in net/messages.py and tools/test_layout.py.
"""

import os
import select
import socket
import struct
import sys
import time

from ktap import Failure

_SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(_SELFTESTS)
# Next to installed tests, where there is no repository.
_SOURCES = ROOT if os.path.exists(os.path.join(ROOT, "include/uapi/linux/dualpi2.h")) else _SELFTESTS
sys.path.append(os.path.join(_SOURCES, "tools"))

from dualpi2.kernel import layout  # noqa: E402
from dualpi2.kernel.layout import HEADER  # noqa: E402
from dualpi2.kernel.netlink import *  # noqa: E402, F403
from dualpi2.kernel.netlink import (GENL_ID_CTRL, NETLINK_GENERIC, NLA_F_NESTED, NLM_F_ACK, NLMSG_ERROR,  # noqa: E402
                                    RTM_GETQDISC, RTM_GETTCLASS, TCA_KIND, TCA_OPTIONS, Socket, attr, attr_list, attrs,
                                    decode, encode, family_answer, family_request, handle_text, namespace, tcmsg)
from dualpi2.kernel.qdisc import EVENTS, EXT, EXT_OPTIONS, FAMILY, GROUP, Qdisc  # noqa: E402
from dualpi2.kernel.qdisc import OPTIONS as KNOBS  # noqa: E402
from dualpi2.kernel.qdisc import REPORT as OVERLOAD_REPORT  # noqa: E402
from dualpi2.kernel.stats import (COUNTERS, DELAY, EXT_MAGIC, EXT_OFFSET, EXT_XSTATS, LINK, OVERLOAD,  # noqa: E402
                                  QDISC_COUNTERS, QPROTECT, QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST, STATS_C, STATS_L,
                                  STATS_LINK, STATS_OVERLOAD, STATS_QPROTECT, STATS_QPROTECT_FLOWS, XSTATS,
                                  qprotect_flow)

# tc and the messages call the option so.
EXT_KNOBS = {{"report": "overload_report"}.get(name, name): knob for name, knob in EXT_OPTIONS.items()}
L4S_ECT, CLA_ECT, ANY_ECT = (HEADER.number(f"TC_DUALPI2_ECN_MASK_{name}") for name in ("L4S_ECT", "CLA_ECT", "ANY_ECT"))
RECUR, RANDOM = (HEADER.number(f"TC_DUALPI2_SIGNAL_{name}") for name in ("RECUR", "RANDOM"))
RAW, NOATM, ATM, PTM = (HEADER.number(f"TC_DUALPI2_FRAMING_{name}") for name in ("RAW", "NOATM", "ATM", "PTM"))
CAUSES = ("limit", "memory", "early", "aqm", "overload", "purge")
# Of the whole qdisc, in addition to struct tc_dualpi2_xstats.
EXT_TOTALS = (*QDISC_COUNTERS, "overload_count", "overload_ns", "overload", "prob_c", "prob_cl")
in_netns = namespace


class Header(layout.Header):
    """Constants, structs and attributes of files of the repository."""

    def __init__(self, *paths):
        text = ""
        for path in paths:
            with open(os.path.join(_SOURCES, path), encoding="utf-8") as file:
                text += file.read()
        super().__init__(text)


def pack(**knobs):
    """Knobs of dualpi2 as the payload of TCA_OPTIONS."""
    plain, ext = ({name: value for name, value in knobs.items() if (name in KNOBS) == is_plain}
                  for is_plain in (True, False))
    return encode(KNOBS, **plain) + (attr(EXT | NLA_F_NESTED, encode(EXT_KNOBS, **ext)) if ext else b"")


def unpack(options):
    """The reverse of pack()."""
    return decode(KNOBS, options) | decode(EXT_KNOBS, attrs(options).get(EXT, b""))


def ifindex(netns, dev):
    """The number of a device."""
    with in_netns(netns):
        return socket.if_nametoindex(dev)


def tc_request(netns, msg_type, flags, dev, handle=0, parent="root", kind=None, options=None):
    """Send one qdisc message; return (errno, text of the extack)."""
    body = tcmsg(ifindex(netns, dev), handle, parent)
    if kind is not None:
        body += attr(TCA_KIND, kind.encode() + b"\0")
    if options is not None:
        body += attr(TCA_OPTIONS | NLA_F_NESTED, options)
    with Socket(netns) as sock:
        answer = sock.request(msg_type, flags, body)
    return answer.error, answer.text or ""


def qdisc_dump(netns, dev):
    """Every qdisc of a device."""
    return _dump(netns, dev, RTM_GETQDISC, 0)


def class_dump(netns, dev, handle=0):
    """Every class of a qdisc, or of a device."""
    return _dump(netns, dev, RTM_GETTCLASS, handle)


def _dump(netns, dev, msg_type, parent):
    index = ifindex(netns, dev)
    with Socket(netns) as sock:
        found = [Qdisc(data) for data in sock.dump(msg_type, tcmsg(index, 0, parent))]
    return [{
        "kind": one.kind, "handle": handle_text(one.handle), "parent": handle_text(one.parent), "options": one.options,
        "stats": {name: getattr(one, name) for name in
                  ("bytes", "packets", "qlen", "backlog", "drops", "requeues", "overlimits")},
        "app": one.app,
    } for one in found if one.ifindex == index]


def queue_totals(counters):
    """What tc prints in the first lines of a queue: sums of its counters, {name: value}."""
    n = counters
    dropped = {cause: n["not_ect_dropped_" + cause] + n["ect_dropped_" + cause] for cause in CAUSES}
    return {
        "enqueued": n["forwarded"] + dropped["aqm"] + dropped["overload"] + dropped["purge"] + n["queued"],
        "enqueued_bytes": n["arrived_bytes"] - n["dropped_arrival_bytes"],
        "sent": n["forwarded"], "sent_bytes": n["forwarded_bytes"], "packets": n["queued"], "bytes": n["queued_bytes"],
        **{name: n[name] for name in ("arrived_ce", "marked_classic", "marked_coupled", "marked_native")},
        **{"dropped_" + cause: packets for cause, packets in dropped.items()},
    }


QUEUE_TOTALS = tuple(queue_totals(dict.fromkeys(COUNTERS.names, 0)))


def parse_xstats(app):
    """Both structs of TCA_STATS_APP in one dict, and the attributes; no "c" without the extension."""
    st = XSTATS.read(app)
    st["p"] = st["prob"] / 2**32
    own = app[EXT_OFFSET:]
    ext = EXT_XSTATS.read(own)
    if ext["magic"] != EXT_MAGIC:
        return st
    if any(app[XSTATS.size:EXT_OFFSET]):
        raise Failure("the gap between the statistics is not zero")
    found = attrs(own[ext["size"]:])
    ext = EXT_XSTATS.read(own[:ext["size"]])
    if any(value for name, value in ext.items() if name.startswith(("reserved", "pad"))):
        raise Failure("reserved fields of the statistics are not zero")
    st |= {name: ext[name] for name in (*QDISC_COUNTERS, "prob_c", "prob_cl")}
    st["p_c"], st["p_cl"] = st["prob_c"] / 2**32, st["prob_cl"] / 2**32
    for queue, kind in (("c", STATS_C), ("l", STATS_L)):
        if kind not in found:
            continue
        nest = attrs(found[kind])
        counters = COUNTERS.read(nest[QUEUE_COUNTERS])
        st[queue] = queue_totals(counters) | {"counters": counters}
        st[queue]["delay"] = delay = DELAY.read(nest[QUEUE_DELAY])
        # The last message of a removed qdisc has none.
        data = nest.get(QUEUE_HIST, b"")
        hist = struct.unpack(f"={len(data) // 8}Q", data)
        if len(hist) > delay["buckets"] or (hist and not hist[-1]):
            raise Failure(f"{queue}: {len(hist)} buckets were sent of {delay['buckets']}, the last one {hist[-1]}")
        delay["hist"] = [*hist, *[0] * (delay["buckets"] - len(hist))]
    if STATS_OVERLOAD in found:
        info = st["overload_info"] = OVERLOAD.read(found[STATS_OVERLOAD])
        st |= {"overload": info["now"], "overload_count": info["count"], "overload_ns": info["total_ns"]}
    if STATS_LINK in found:
        st["link"] = LINK.read(found[STATS_LINK])
    if STATS_QPROTECT in found:
        st["qprotect"] = QPROTECT.read(found[STATS_QPROTECT])
    if STATS_QPROTECT_FLOWS in found:
        st["qprotect_flows"] = [qprotect_flow(flow) for _, flow in attr_list(found[STATS_QPROTECT_FLOWS])]
    return st


# Reports of overload

def genl_family(sock, name):
    """The number of a generic netlink family, and those of its groups; None, {} if there is none."""
    sock.send(GENL_ID_CTRL, NLM_F_ACK, family_request(name))
    family, groups = None, {}
    for found in sock.messages():
        if found.kind == NLMSG_ERROR:     # after the answer
            break
        _, family, groups = family_answer(found.payload)
    return family, groups


class OverloadListener(Socket):
    """Who listens to the reports of overload in a namespace."""

    def __init__(self, netns):
        super().__init__(netns, NETLINK_GENERIC)
        self.family, groups = genl_family(self, FAMILY)
        if GROUP not in groups:
            raise Failure(f"no generic netlink family {FAMILY} with a group {GROUP} in {netns}: {groups}")
        self.join(groups[GROUP])

    def next(self, seconds=10):
        """The next report, None if there is none in this time; each is one message."""
        if not select.select([self.sock], [], [], seconds)[0]:
            return None
        data = self.sock.recv(1 << 16)
        size, kind, _ = struct.unpack_from("=IHH", data)
        command, version = struct.unpack_from("=BB", data, 16)
        if kind != self.family or size != len(data) or version != 1 or command not in EVENTS:
            raise Failure(f"no report: message of type {kind}, command {command}, {size} of {len(data)} bytes")
        return decode(OVERLOAD_REPORT, data[20:]) | {"event": EVENTS[command], "at": time.time()}

    def take(self, seconds):
        """All that comes in this time."""
        until, found = time.monotonic() + seconds, []
        while (left := until - time.monotonic()) > 0:
            if report := self.next(left):
                found.append(report)
        return found


overload_listener = OverloadListener
