# SPDX-License-Identifier: GPL-2.0-only
"""Namespaces, traffic, statistics and KTAP for the tests of dualpi2.

    from lib import *

    @test("RFC 9331 5.1")
    def ecn_ect1_goes_to_l():
        with Net() as net, net.aqm(coupling=4) as q:
            run = net.traffic(4, Stream("l", ecn=ECT1, bps=3e6), warmup=1)
            expect_equal(run["l"].lost, 0)
            expect_equal(q.stats()["l"]["enqueued"], run["l"].sent_ever)

    if __name__ == "__main__":
        main()

Topology: snd (10.1.0.1, fd01::1) -- rtr -- rcv (10.2.0.1, fd02::1).  The device
of snd and of rcv is eth0; rtr has up (to snd) and down (to rcv).  Neighbours are
permanent, no link-local addresses exist, and what the kernel says unasked (MLD)
is over before Net() returns: every packet through the queue is a test's own.

Net(offloads=False)     context manager.  .snd .rtr .rcv are the namespaces' names.
  .aqm(rate=10e6, shaper="htb", words=None, **knobs)
                        context manager: shaper on rtr's `down` ("htb", "tbf" or
                        "none") with dualpi2 as its child, handle 10:.  Knobs are
                        named as in the uapi, lower case (coupling=4, l4s=0,
                        step_thresh_us=...), and go by netlink; `words` are words
                        for tc instead.  Its end checks the identities of the
                        counters and removes the qdiscs.
     .stats()           see stats(); .change(**knobs); .handle, .dev, .netns
     .until_idle()      wait until the queues are empty
     .check()           the identities, now
     .filter(words)     add a tc filter: "protocol ip flower ... classid 10:1"
  .shaper_rate(bits)    change the rate of the htb class in place
  .tbf_rate(bits)       change the rate of tbf in place; it starts with full tokens
  .idle_instances(n)    so many dummy devices with a dualpi2 on rtr; 0 removes them
  .vlan(vid)            VLAN devices down.VID and eth0.VID, 10.3.0.1 behind them
  .traffic(seconds, *streams, warmup=0)   run streams; Run, see below
  .start(seconds, *streams, warmup=0)     the same in the background: .wait() -> Run
  .sampled(q, seconds, *streams, warmup=0, every=0.05)   (Run, list of q.stats() taken
                        after the warm-up, each with "at", seconds since the start)
shared_net()            one Net for all tests of a program, built at first use
Stream(name, ecn=0, dscp=0, bps=... or pps=..., size=1000, burst=1, gso=0, jitter=0,
       start=0, stop=None, count=None, priority=0, dst="10.2.0.1", source="snd",
       trace=False)     size is with the Ethernet header, and bps counts it; times
                        in seconds; source is "snd" or "rtr"
Run[name]               .sent .received .lost .ecn[4] .delay_us{min mean p50 p99 max}
                        of packets sent after the warm-up; .sent_ever; .disorder
                        .duplicates .dscp_changed; .records with trace=True: tuples
                        (sent_ns, delay_ns or None, tos) of every packet in order
stats(netns, dev, handle)   counters by netlink: bytes packets qlen backlog drops
                        overlimits requeues; the fields of struct tc_dualpi2_xstats;
                        those of the extension with "c" and "l" as dicts; p, p_c,
                        p_cl as numbers 0..1; knobs (the options, decoded)
                        Of the attributes behind the extension: st["c"]["counters"], st["c"]["delay"]
                        with the histogram in "hist", one number for each bucket, the same for "l",
                        and st["overload_info"]; of the link behind st["link"], as in struct tc_dualpi2_link
tc_stats(netns, dev, handle)   the same qdisc as `tc -s -j` with our plugin shows it
check_identities(st)    raise Failure unless the counters fit together
check_classes(netns, dev, handle)   raise Failure unless the classes show what the qdisc shows
bucket_edges(delay)     begin of each bucket in ns, and the end of the last one
percentile(delay, part)     (begin, end) in ns of the bucket with that packet; part is 0..1
arrived(counters)       packets of all codepoints; dropped(counters, cause) those of both kinds
tc_request(netns, type, flags, dev, handle, parent, kind, options)
                        raw rtnetlink, returns (errno, extack text); options is
                        bytes, or None for no TCA_OPTIONS at all; see pack()
qdisc_dump(netns, dev)  list of dicts: kind handle parent options stats app (raw)
class_dump(netns, dev, handle)  the same of classes, of one qdisc or of all on the device
overload_listener(netns)    context manager: who listens to the reports of overload there; .take(seconds)
                        waits so long, .next(seconds) for one: dicts as OVERLOAD_REPORT says, with "event"
                        "begin" or "end"; genl_family(sock, name) -> (number, {group: number})
in_netns(name)          context manager: this process is in the namespace
run(words, netns=None, check=True, stdin=None) -> CompletedProcess (text)
tc(words, netns=None, check=True)    the system's tc with our plugin
program(name)           path of a program in C, "net/traffic"; compiled if need be
main(needs="ext")       what a test program ends with; needs: marks of the tests that have none of their own;
                        "ext": skipped with an in-tree dualpi2, which has no extension
test, each, note, expect, expect_equal, expect_between, Failure, Skip: see ../lib/ktap.py

Environment: DUALPI2_MODULE (loaded if no dualpi2 is; else by modprobe), TC_LIB_DIR, DUALPI2_ROOT;
DUALPI2_TRACE_PC (loaded before it, see selftests/fuzz/trace_pc) and DUALPI2_MAPS, where main() leaves its map.
"""

import bisect
import contextlib
import ctypes
import itertools
import json
import math
import os
import select
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(HERE))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "lib"))

import ktap                                                                     # noqa: E402
from ktap import Failure, Skip, each, expect, expect_between, expect_equal, note, test  # noqa: E402, F401

TRACE_PC_MAP = "/sys/kernel/debug/dualpi2_trace_pc/map"
MODULE = "/sys/module/sch_dualpi2"
CLONE_NEWNET = 0x40000000
NOT_ECT, ECT1, ECT0, CE = range(4)

# `make install` of the tests lays the plugin for tc and the programs in C beside this file.
os.environ.setdefault("TC_LIB_DIR", HERE if os.path.exists(f"{HERE}/q_dualpi2.so") else os.path.join(ROOT, "build/tc"))
_libc = ctypes.CDLL(None, use_errno=True)
_serial = itertools.count()


# Commands

def run(words, netns=None, check=True, stdin=None):
    """Run a command given as a string or a list."""
    words = shlex.split(words) if isinstance(words, str) else list(words)
    with in_netns(netns):
        done = subprocess.run(words, text=True, capture_output=True, input=stdin, check=False)
    if check and done.returncode:
        raise Failure(f"`{shlex.join(words)}`: {done.stderr.strip() or done.stdout.strip()}")
    return done


def tc(words, netns=None, check=True):
    """Run the system's tc, with the plugin for dualpi2."""
    words = shlex.split(words) if isinstance(words, str) else list(words)
    return run(["tc", *words], netns, check)


def program(name):
    """The path of a program of selftests that is written in C; compiled if it is older than its source."""
    installed = os.path.join(HERE, os.path.basename(name))
    if os.path.exists(installed):
        return installed
    path, source = os.path.join(ROOT, "build", name), os.path.join(ROOT, "selftests", name + ".c")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", "-pthread",
             "-I" + os.path.join(ROOT, "include/uapi"), "-o", path, source])
    return path


def user_mode_linux():
    """Is this a kernel of scripts/debug-kernel.sh? It is fast enough for more of what can be counted."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        return "User Mode Linux" in file.read()


def load_module():
    """Load the module under test unless a dualpi2 is there already."""
    module, trace_pc = os.environ.get("DUALPI2_MODULE"), os.environ.get("DUALPI2_TRACE_PC")
    if trace_pc and not os.path.exists("/sys/module/dualpi2_trace_pc"):
        run(["insmod", trace_pc])
    if not os.path.exists(MODULE):
        run(["insmod", module] if module else ["modprobe", "sch_dualpi2"])


def version():
    """The version of this project's dualpi2; None if the one that is loaded is in-tree."""
    try:
        with open(f"{MODULE}/version", encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def in_netns(name):
    """Be in a network namespace for a while; None is the present one."""
    if name is None:
        yield
        return
    with open("/proc/self/ns/net", encoding="ascii") as here, \
         open(f"/run/netns/{name}", encoding="ascii") as there:
        _setns(there)
        try:
            yield
        finally:
            _setns(here)


def quiet_netns(stack, name):
    """Make a network namespace that ends with the ExitStack, and whose kernel does not speak IPv6 of its own accord."""
    run(["ip", "netns", "add", name])
    stack.callback(run, ["ip", "netns", "del", name], check=False)
    with in_netns(name), open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w", encoding="ascii") as file:
        file.write("1")


def _setns(file):
    if _libc.setns(file.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


# Netlink

NETLINK_GENERIC, SOL_NETLINK = 16, 270
NETLINK_ADD_MEMBERSHIP, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 1, 11, 12
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLA_F_NESTED = 0x8000
TC_H_ROOT = 0xffffffff
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2 = 1, 2, 4, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8

# Knob: attribute type, struct format; of the second dict within TCA_DUALPI2_EXT.
KNOBS = {
    "limit": (1, "I"), "memory_limit": (2, "I"), "target": (3, "I"), "tupdate": (4, "I"),
    "alpha": (5, "I"), "beta": (6, "I"), "step_thresh_pkts": (7, "I"),
    "step_thresh_us": (8, "I"), "min_qlen_step": (9, "I"), "coupling": (10, "B"),
    "drop_overload": (11, "B"), "drop_early": (12, "B"), "c_protection": (13, "B"),
    "ecn_mask": (14, "B"), "split_gso": (15, "B"),
}
EXT = 0x0d50
EXT_KNOBS = {"l4s": (1, "B"), "ramp_us": (2, "I"), "signal": (3, "B"), "p_cmax": (4, "B"),
             "hist_c": (5, "I"), "hist_l": (6, "I"), "overload_report": (7, "I"),
             "bandwidth": (9, "Q"), "framing": (10, "B"), "overhead": (11, "i"), "mpu": (12, "I"),
             "ingress": (13, "B"), "nqb": (14, "Q"), "burst_max": (15, "I"), "bypass": (16, "B")}
L4S_ECT, CLA_ECT, ANY_ECT = 1, 2, 3
RECUR, RANDOM = 0, 1
RAW, NOATM, ATM, PTM = range(4)

XSTATS = ("prob", "delay_c", "delay_l", "packets_in_c", "packets_in_l", "maxq", "ecn_mark",
          "step_marks", "credit", "memory_used", "max_memory_used", "memory_limit")
XSTATS_FORMAT = "8Ii3I"
EXT_OFFSET, EXT_MAGIC = 256, 0x64703278
QUEUE_XSTATS = ("enqueued", "enqueued_bytes", "sent", "sent_bytes", "dropped_limit",
                "dropped_memory", "dropped_early", "dropped_aqm", "dropped_overload",
                "dropped_purge", "marked_classic", "marked_coupled", "marked_native",
                "arrived_ce", "packets", "bytes")
EXT_XSTATS_TAIL = ("unparsed", "filter_dropped", "gso_failed", "mark_failed", "overload_count",
                   "overload_ns", "overload", "prob_c", "prob_cl", "pad")

# The attributes behind the extension: name: attribute type; fields of the structs.
STATS_QUEUES, STATS_OVERLOAD, STATS_LINK = {"c": 2, "l": 3}, 4, 5
QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST = 2, 3, 4
CODEPOINTS = ("not_ect", "ect1", "ect0", "ce")
CAUSES_ON_ARRIVAL, CAUSES_AT_DEPARTURE = ("limit", "memory", "early"), ("aqm", "overload")
CAUSES = (*CAUSES_ON_ARRIVAL, *CAUSES_AT_DEPARTURE, "purge")
COUNTERS = (*(f"arrived_{name}" for name in CODEPOINTS), "arrived_bytes", "presented", "presented_bytes",
            "forwarded", "forwarded_bytes", "queued", "queued_bytes",
            "marked_classic", "marked_coupled", "marked_native",
            *(f"not_ect_dropped_{cause}" for cause in CAUSES), *(f"ect_dropped_{cause}" for cause in CAUSES),
            "dropped_arrival_bytes", "dropped_aqm_bytes", "dropped_purge_bytes")
DELAY = ("sum_ns", "max_ns", "beyond", "unit_ns", "buckets", "generation", "pad")
OVERLOAD = ("count", "total_ns", "start_ns", "duration_ns", "reports", "now", "pad")
LINK = ("drain_rate", "throttled", "nqb_arrived", "nqb_dropped", "burst_ns", "ramp_min_ns", "ramp_max_ns",
        "limit_pkts", "nqb_limit_bytes", "pad")
CLASS_MINOR = {"l": 1, "c": 3}

# A report of overload: attribute type and struct format.
OVERLOAD_EVENTS = {1: "begin", 2: "end"}
OVERLOAD_REPORT = {"ifindex": (2, "I"), "handle": (3, "I"), "parent": (4, "I"), "start_ns": (5, "Q"),
                   "duration_ns": (6, "Q"), "count": (7, "I")}


def attr(kind, payload):
    """One netlink attribute."""
    return struct.pack("HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def attrs(data):
    """Attributes as {type: payload}; the last of a type wins."""
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("HH", data)
        if size < 4:
            break
        found[kind & 0x3fff] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


def pack(**knobs):
    """Knobs as the payload of TCA_OPTIONS."""
    plain = ext = b""
    for name, value in knobs.items():
        if name in KNOBS:
            kind, form = KNOBS[name]
            plain += attr(kind, struct.pack(form, value))
        else:
            kind, form = EXT_KNOBS[name]
            ext += attr(kind, struct.pack(form, value))
    return plain + (attr(EXT | NLA_F_NESTED, ext) if ext else b"")


def unpack(options):
    """The reverse of pack()."""
    found = attrs(options)
    ext = attrs(found.get(EXT, b""))
    return {name: struct.unpack_from(form, source[kind])[0]
            for knobs, source in ((KNOBS, found), (EXT_KNOBS, ext))
            for name, (kind, form) in knobs.items() if kind in source}


def handle_number(text):
    """The number of "10:", "1:10", "root" or a number."""
    if not isinstance(text, str):
        return text
    if text == "root":
        return TC_H_ROOT
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _handle_text(number):
    if number in (0, TC_H_ROOT):
        return "root" if number else "0:"
    return f"{number >> 16:x}:" + (f"{number & 0xffff:x}" if number & 0xffff else "")


@contextlib.contextmanager
def rtnetlink(netns):
    """A routing socket in a namespace."""
    with in_netns(netns):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    try:
        sock.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        with contextlib.suppress(OSError):
            sock.setsockopt(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1)
        yield sock
    finally:
        sock.close()


def _ifindex(netns, dev):
    with in_netns(netns):
        return socket.if_nametoindex(dev)


def _messages(sock):
    while True:
        data = sock.recv(1 << 18)
        while len(data) >= 16:
            size, kind, flags = struct.unpack_from("IHH", data)
            yield kind, flags, data[16:size]
            data = data[(size + 3) & ~3:]


def tc_request(netns, msg_type, flags, dev, handle=0, parent="root", kind=None, options=None):
    """Send one qdisc message; return (errno, text of the extack)."""
    body = struct.pack("BxxxiIII", 0, _ifindex(netns, dev), handle_number(handle),
                       handle_number(parent), 0)
    if kind is not None:
        body += attr(TCA_KIND, kind.encode() + b"\0")
    if options is not None:
        body += attr(TCA_OPTIONS | NLA_F_NESTED, options)
    with rtnetlink(netns) as sock:
        sock.send(struct.pack("IHHII", 16 + len(body), msg_type,
                              flags | NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
        for answer, answer_flags, data in _messages(sock):
            if answer != 2:     # NLMSG_ERROR
                continue
            error = -struct.unpack_from("i", data)[0]
            skip = 4 + (16 if answer_flags & 0x100 else struct.unpack_from("I", data, 4)[0])
            extack = attrs(data[skip:]) if answer_flags & 0x200 else {}
            return error, extack.get(1, b"").rstrip(b"\0").decode()
    raise AssertionError("no answer")


def qdisc_dump(netns, dev):
    """Every qdisc of a device."""
    return _dump(netns, dev, RTM_GETQDISC, 0)


def class_dump(netns, dev, handle=0):
    """Every class of a qdisc, or of a device."""
    return _dump(netns, dev, RTM_GETTCLASS, handle)


def _dump(netns, dev, msg_type, parent):
    index = _ifindex(netns, dev)
    found = []
    with rtnetlink(netns) as sock:
        sock.send(struct.pack("IHHII", 36, msg_type, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) +
                  struct.pack("BxxxiIII", 0, index, 0, handle_number(parent), 0))
        for kind, _, data in _messages(sock):
            if kind == 3:       # NLMSG_DONE
                break
            if kind != msg_type - 2:    # RTM_NEW...
                raise Failure("dump: " + os.strerror(-struct.unpack_from("i", data)[0]))
            _, ifindex, number, above, _ = struct.unpack_from("BxxxiIII", data)
            if ifindex == index:
                found.append(_parse_qdisc(number, above, attrs(data[20:])))
    return found


def _parse_qdisc(handle, parent, found):
    stats2 = attrs(found.get(TCA_STATS2, b""))
    size, packets = struct.unpack_from("QI", stats2.get(TCA_STATS_BASIC, b"\0" * 16))
    if TCA_STATS_PKT64 in stats2:
        packets = struct.unpack_from("Q", stats2[TCA_STATS_PKT64])[0]
    queue = struct.unpack_from("5I", stats2.get(TCA_STATS_QUEUE, b"\0" * 20))
    return {
        "kind": found[TCA_KIND].rstrip(b"\0").decode(),
        "handle": _handle_text(handle), "parent": _handle_text(parent),
        "options": found.get(TCA_OPTIONS),
        "stats": {"bytes": size, "packets": packets}
                 | dict(zip(("qlen", "backlog", "drops", "requeues", "overlimits"), queue)),
        "app": stats2.get(TCA_STATS_APP),
    }


def parse_xstats(app):
    """Both structs of TCA_STATS_APP in one dict; no "c" without the extension."""
    size = struct.calcsize(XSTATS_FORMAT)
    st = dict(zip(XSTATS, struct.unpack_from(XSTATS_FORMAT, app)))
    st["p"] = st["prob"] / 2**32
    if len(app) < EXT_OFFSET + 8 or struct.unpack_from("I", app, EXT_OFFSET)[0] != EXT_MAGIC:
        return st
    if any(app[size:EXT_OFFSET]):
        raise Failure("the gap between the statistics is not zero")
    size = struct.unpack_from("I", app, EXT_OFFSET + 4)[0]
    data = app[EXT_OFFSET + 8:]
    for queue in ("c", "l"):
        st[queue] = dict(zip(QUEUE_XSTATS, struct.unpack_from("16Q", data)))
        data = data[128:]
    st |= dict(zip(EXT_XSTATS_TAIL, struct.unpack_from("6Q4I", data)))
    st["p_c"] = st["prob_c"] / 2**32
    st["p_cl"] = st["prob_cl"] / 2**32
    _parse_stats_attrs(st, attrs(app[EXT_OFFSET + size:]))
    return st


def _parse_stats_attrs(st, found):
    """What follows the extension.  A kernel's struct may be longer than ours, or shorter: the rest is 0."""
    def fields(names, form, data):
        size = struct.calcsize(form)
        return dict(zip(names, struct.unpack_from(form, data[:size].ljust(size, b"\0"))))

    for queue, kind in STATS_QUEUES.items():
        if kind not in found:
            continue
        nest = attrs(found[kind])
        st[queue]["counters"] = fields(COUNTERS, f"{len(COUNTERS)}Q", nest[QUEUE_COUNTERS])
        st[queue]["delay"] = delay = fields(DELAY, "3Q4I", nest[QUEUE_DELAY])
        # The last words of a qdisc that goes are without it.
        data = nest.get(QUEUE_HIST, b"")
        hist = struct.unpack(f"{len(data) // 8}Q", data)
        if len(hist) > delay["buckets"] or (hist and not hist[-1]):
            raise Failure(f"{queue}: {len(hist)} buckets were sent of {delay['buckets']}, the last one {hist[-1]}")
        delay["hist"] = [*hist, *[0] * (delay["buckets"] - len(hist))]
    if STATS_OVERLOAD in found:
        st["overload_info"] = fields(OVERLOAD, "5Q2I", found[STATS_OVERLOAD])
    if STATS_LINK in found:
        st["link"] = fields(LINK, "4Q6I", found[STATS_LINK])


def bucket_edges(delay):
    """Where each bucket begins, in ns, and where the last one ends."""
    return [(n if n < 8 else (8 + n % 8) << (n // 8 - 1)) * delay["unit_ns"] for n in range(delay["buckets"] + 1)]


def bucket_of(delay, ns):
    """The number of a delay's bucket; beyond the last one it is delay["buckets"]."""
    return bisect.bisect_right(bucket_edges(delay), ns) - 1


def percentile(delay, part):
    """(begin, end) in ns of the bucket that holds the packet of this rank, the nearest one."""
    total = sum(delay["hist"]) + delay["beyond"]
    rank = max(1, math.ceil(part * total))
    edges = bucket_edges(delay)
    for number, packets in enumerate(delay["hist"]):
        rank -= packets
        if rank <= 0:
            return edges[number], edges[number + 1]
    return edges[-1], math.inf


def arrived(counters):
    """Packets of all codepoints."""
    return sum(counters[f"arrived_{name}"] for name in CODEPOINTS)


def dropped(counters, *causes):
    """Packets dropped for these causes, all by default, with ECN and without."""
    return sum(counters[f"{kind}_dropped_{cause}"] for cause in causes or CAUSES for kind in ("not_ect", "ect"))


def stats(netns, dev, handle="10:"):
    """Statistics and knobs of a dualpi2, by netlink."""
    for qdisc in qdisc_dump(netns, dev):
        if qdisc["handle"] == handle:
            st = dict(qdisc["stats"], kind=qdisc["kind"], handle=handle, parent=qdisc["parent"])
            if qdisc["kind"] == "dualpi2":
                st |= parse_xstats(qdisc["app"])
                st["knobs"] = unpack(qdisc["options"])
            return st
    raise Failure(f"no qdisc {handle} on {dev}")


def tc_stats(netns, dev, handle="10:"):
    """The same from `tc -s -j qdisc show`, as the plugin prints it."""
    for qdisc in json.loads(tc(["-s", "-j", "qdisc", "show", "dev", dev], netns).stdout):
        if qdisc.get("handle") == handle:
            return qdisc
    raise Failure(f"tc shows no qdisc {handle} on {dev}")


def check_identities(st):
    """Fail unless the counters of a dualpi2 fit together.

    What include/uapi/linux/dualpi2.h says of them, and what follows.  A packet
    that a parent has peeked at is `sent` and still in qlen and backlog.  A reset
    purges without counting in the qdisc's own drops: st["was_reset"] says that
    there was one.  What bypass sends past a root is in the qdisc's own counters
    only: st["was_passed"] says that it was on, though it may be off now.
    """
    wrong = []

    def same(left, right, what):
        if left != right:
            wrong.append(f"{what}: {left} != {right}")

    def at_most(left, right, what):
        if left > right:
            wrong.append(f"{what}: {left} > {right}")

    for name in "cl":
        q = st[name]
        lost = q["dropped_aqm"] + q["dropped_overload"] + q["dropped_purge"]
        same(q["enqueued"], q["sent"] + lost + q["packets"],
             f"{name}: enqueued and sent + dropped + queued")
        at_most(q["sent_bytes"] + q["bytes"], q["enqueued_bytes"], f"{name}: bytes out, bytes in")
        if not lost:
            same(q["enqueued_bytes"], q["sent_bytes"] + q["bytes"], f"{name}: bytes in and out")
        if "counters" not in q:
            wrong.append(f"{name}: there are no attributes TCA_DUALPI2_STATS_*")
            continue
        for left, right, what in _counter_identities(q) + _delay_identities(q):
            same(left, right, f"{name}: {what}")
        for left, right, what in _counter_bounds(q) + _delay_bounds(q):
            at_most(left, right, f"{name}: {what}")
    both = {key: st["c"][key] + st["l"][key] for key in QUEUE_XSTATS}
    # A GSO packet that leaves whole is as many there as it has segments, or says that it has.
    passed = st.get("was_passed") or st["knobs"].get("bypass") and st.get("parent", "root") == "root"
    if st["knobs"]["split_gso"]:
        (at_most if passed else same)(both["sent"], st["packets"], "sent of both queues and packets of the qdisc")
    (at_most if passed else same)(both["sent_bytes"], st["bytes"], "bytes of both queues and of the qdisc")
    drops = sum(value for key, value in both.items() if key.startswith("dropped_"))
    drops += st["gso_failed"]
    if not st.get("was_reset"):
        at_most(drops, st["drops"], "dropped by both queues, drops of the qdisc")
    at_most(st["drops"], drops + st["filter_dropped"], "drops, dropped by queues and filters")
    peeked = st["qlen"] - both["packets"]
    if peeked not in (0, 1):
        wrong.append(f"qlen {st['qlen']} with {both['packets']} packets in the queues")
    if not peeked:
        same(st["backlog"], both["bytes"], "backlog and bytes of both queues")
    at_most(st["qlen"] - peeked, st["maxq"], "queued now, most ever")
    same(st["packets_in_c"], st["c"]["enqueued"] & 0xffffffff, "packets_in_c and enqueued")
    same(st["packets_in_l"], st["l"]["enqueued"] & 0xffffffff, "packets_in_l and enqueued")
    same(st["ecn_mark"], both["marked_classic"] + both["marked_coupled"] + both["marked_native"],
         "ecn_mark and the marks of both queues")
    same(st["step_marks"], st["l"]["marked_native"], "step_marks and marked_native of L")
    same(st["c"]["marked_native"], 0, "native marks in the Classic queue")
    same(st["l"]["dropped_early"], 0, "early drops in the L4S queue")
    at_most(st["memory_used"], st["max_memory_used"], "memory used, most ever")
    if not both["packets"]:
        same(st["memory_used"], 0, "memory of empty queues")
        same((st["delay_c"], st["delay_l"]), (0, 0), "delays of empty queues")
    at_most(st["overload"], st["overload_count"], "in overload, count of overloads")
    info = st.get("overload_info", dict.fromkeys(OVERLOAD))
    for one, other in (("count", "overload_count"), ("total_ns", "overload_ns"), ("now", "overload")):
        same(info[one], st[other], f"{one} of the attribute and {other}")
    if not st["overload_count"]:
        for name in ("total_ns", "start_ns", "duration_ns", "reports"):
            same(info[name], 0, f"{name} without an overload")
    else:
        at_most(1, info["start_ns"], "start_ns of an overload")
        at_most(info["duration_ns"], info["total_ns"], "duration of one overload, of all")
        if st["overload_count"] == 1:
            same(info["duration_ns"], info["total_ns"], "duration of the only overload, of all")
        at_most(info["reports"], 2 * info["count"], "reports, begins and ends")
    # p' is truncated to 32 bits for the dump, p_C and p_CL from the full one.
    if abs(st["p_c"] - st["p"]**2) > 4 / 2**32:
        wrong.append(f"prob_c {st['p_c']} is not the square of prob {st['p']}")
    k = st["knobs"]["coupling"]
    if abs(st["p_cl"] - min(1, k * st["p"])) > (k + 2) / 2**32:
        wrong.append(f"prob_cl {st['p_cl']} is not {k} times prob {st['p']}")
    if wrong:
        raise Failure("counters do not fit together: " + "; ".join(wrong))


def _counter_identities(q):
    """Of struct tc_dualpi2_counters, as its comment says, and with the older struct of the same queue."""
    n = q["counters"]
    came, lost = arrived(n), dropped
    found = [
        (came, n["presented"] + lost(n, "limit", "memory", "purge") + n["queued"],
         "arrived and presented + dropped before + queued"),
        (n["presented"], n["forwarded"] + lost(n, "early", "aqm", "overload"), "presented and forwarded + dropped"),
        (n["arrived_bytes"], n["forwarded_bytes"] + n["dropped_arrival_bytes"] + n["dropped_aqm_bytes"] +
         n["dropped_purge_bytes"] + n["queued_bytes"], "bytes arrived and forwarded + dropped + queued"),
        (q["enqueued"], came - lost(n, *CAUSES_ON_ARRIVAL), "enqueued and arrived - dropped on arrival"),
        (q["enqueued_bytes"], n["arrived_bytes"] - n["dropped_arrival_bytes"],
         "enqueued_bytes and arrived_bytes - dropped_arrival_bytes"),
        (q["sent"], n["forwarded"], "sent and forwarded"),
        (q["sent_bytes"], n["forwarded_bytes"], "sent_bytes and forwarded_bytes"),
        (q["packets"], n["queued"], "packets and queued"),
        (q["bytes"], n["queued_bytes"], "bytes and queued_bytes"),
        *((q[f"dropped_{cause}"], lost(n, cause), f"dropped_{cause} and those of both kinds") for cause in CAUSES),
        *((q[name], n[name], f"{name} twice") for name in
          ("arrived_ce", "marked_classic", "marked_coupled", "marked_native")),
    ]
    # Bytes dropped on arrival are one number, of which `early` was presented and the others were not.
    if not lost(n, "early"):
        found.append((n["presented_bytes"], n["forwarded_bytes"] + n["dropped_aqm_bytes"],
                      "bytes presented and forwarded + dropped"))
    if not lost(n, "limit", "memory"):
        found.append((n["presented_bytes"], n["forwarded_bytes"] + n["dropped_aqm_bytes"] + n["dropped_arrival_bytes"],
                      "bytes presented and forwarded + dropped, early ones too"))
    for size, causes in (("arrival", CAUSES_ON_ARRIVAL), ("aqm", CAUSES_AT_DEPARTURE), ("purge", ("purge",))):
        if not lost(n, *causes):
            found.append((n[f"dropped_{size}_bytes"], 0, f"dropped_{size}_bytes of no packets"))
    return found


def _counter_bounds(q):
    n = q["counters"]
    return [
        # Also those that were refused on arrival are among the arrived.
        (n["marked_classic"] + n["marked_coupled"] + n["marked_native"],
         n["arrived_ect1"] + n["arrived_ect0"], "marks, packets that came with ECT"),
        (n["forwarded_bytes"] + n["dropped_aqm_bytes"], n["presented_bytes"], "bytes forwarded and dropped, presented"),
        (n["presented_bytes"], n["arrived_bytes"], "bytes presented, arrived"),
        (sum(n[f"not_ect_dropped_{cause}"] for cause in CAUSES), n["arrived_not_ect"], "Not-ECT dropped, arrived"),
        (sum(n[f"ect_dropped_{cause}"] for cause in CAUSES), arrived(n) - n["arrived_not_ect"], "ECT dropped, arrived"),
        *((dropped(n, *causes), n[f"dropped_{size}_bytes"], f"packets and bytes dropped, {size}")
          for size, causes in (("arrival", CAUSES_ON_ARRIVAL), ("aqm", CAUSES_AT_DEPARTURE), ("purge", ("purge",)))),
    ]


FIRST_GENERATION = 1


def _delay_identities(q):
    """The histogram holds each packet forwarded since it began."""
    delay = q["delay"]
    total = sum(delay["hist"]) + delay["beyond"]
    found = [(delay["unit_ns"] & (delay["unit_ns"] - 1), 0, "bits of unit_ns below the highest")]
    if delay["generation"] == FIRST_GENERATION:
        found.append((total, q["counters"]["forwarded"], "packets in the histogram and forwarded"))
    if not total:
        found.append(((delay["sum_ns"], delay["max_ns"]), (0, 0), "sum and maximum of an empty histogram"))
    else:
        last = delay["buckets"] if delay["beyond"] else max(n for n, packets in enumerate(delay["hist"]) if packets)
        found.append((bucket_of(delay, delay["max_ns"]), last, "bucket of the maximum and the last one in use"))
    return found


def _delay_bounds(q):
    delay, edges = q["delay"], bucket_edges(q["delay"])
    total = sum(delay["hist"]) + delay["beyond"]
    low = sum(n * edge for n, edge in zip(delay["hist"], edges)) + delay["beyond"] * edges[-1]
    high = sum(n * (edge - 1) for n, edge in zip(delay["hist"], edges[1:])) + delay["beyond"] * delay["max_ns"]
    return [(total, q["counters"]["forwarded"], "packets in the histogram, forwarded"),
            (low, delay["sum_ns"], "sum of the buckets' begins, sum"),
            (delay["sum_ns"], high, "sum, sum of the buckets' ends")]


def check_classes(netns, dev, handle="10:"):
    """Fail unless the classes show the queues of the qdisc, each as the qdisc does.

    Three dumps are three moments: counters of the classes lie between those of the qdisc before and after, and are
    the same where nothing happened meanwhile.
    """
    before, classes, after = (look(netns, dev) for look in (qdisc_dump, class_dump, qdisc_dump))
    before, after = (next(q for q in dump if q["handle"] == handle) for dump in (before, after))
    mine = {c["handle"]: c for c in classes if c["handle"].split(":")[0] + ":" == handle}
    names = {f"{handle}{minor}": queue for queue, minor in CLASS_MINOR.items()}
    if list(mine) != sorted(names):
        raise Failure(f"classes {list(mine)} of {handle}, expected {sorted(names)}")
    before, after = (parse_xstats(q["app"]) for q in (before, after))
    for name, queue in names.items():
        one = parse_xstats(mine[name]["app"])
        other = "cl"["lc".index(queue)]
        if (mine[name]["kind"], mine[name]["parent"]) != ("dualpi2", handle):
            raise Failure(f"class {name}: {mine[name]['kind']} of {mine[name]['parent']}")
        if "counters" in one[other] or "overload_info" in one or "link" in one:
            raise Failure(f"class {name} has attributes of others")
        if before[queue] == after[queue] and one[queue] != before[queue]:
            raise Failure(f"class {name}: {one[queue]}, qdisc: {before[queue]}")
        n = one[queue]["counters"]
        for key in COUNTERS:
            low, high = (st[queue]["counters"][key] for st in (before, after))
            if not key.startswith("queued") and not low <= n[key] <= high:
                raise Failure(f"class {name}: {key} {n[key]} is not in {low}..{high} of the qdisc")
        want = {"bytes": n["forwarded_bytes"], "packets": n["forwarded"], "qlen": n["queued"],
                "backlog": n["queued_bytes"], "drops": dropped(n), "requeues": 0, "overlimits": 0}
        if mine[name]["stats"] != want:
            raise Failure(f"class {name}: {mine[name]['stats']}, its own counters: {want}")


# Reports of overload

def genl_family(sock, name):
    """The number of a generic netlink family, and those of its groups; None, {} if there is none."""
    body = struct.pack("BBH", 3, 1, 0) + attr(2, name.encode() + b"\0")    # CTRL_CMD_GETFAMILY
    sock.send(struct.pack("IHHII", 16 + len(body), 0x10, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
    family, groups = None, {}
    for kind, _, data in _messages(sock):
        if kind == 2:       # NLMSG_ERROR, after the answer
            break
        found = attrs(data[4:])
        family = struct.unpack("H", found[1])[0]
        for group in attrs(found.get(7, b"")).values():
            one = attrs(group)
            groups[one[1].rstrip(b"\0").decode()] = struct.unpack("I", one[2])[0]
    return family, groups


class OverloadListener:
    """Who listens to the reports of overload in a namespace."""

    def __init__(self, netns):
        with in_netns(netns):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.family, groups = genl_family(self.sock, "dualpi2")
        if "overload" not in groups:
            raise Failure(f"no generic netlink family dualpi2 with a group overload in {netns}: {groups}")
        self.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, groups["overload"])

    def next(self, seconds=10):
        """The next report, None if there is none in this time; each is one message."""
        if not select.select([self.sock], [], [], seconds)[0]:
            return None
        data = self.sock.recv(1 << 16)
        size, kind, _ = struct.unpack_from("IHH", data)
        command, version = struct.unpack_from("BB", data, 16)
        if kind != self.family or size != len(data) or version != 1 or command not in OVERLOAD_EVENTS:
            raise Failure(f"no report: message of type {kind}, command {command}, {size} of {len(data)} bytes")
        found = attrs(data[20:])
        report = {name: struct.unpack(form, found[number])[0] for name, (number, form) in OVERLOAD_REPORT.items()
                  if number in found}
        return report | {"event": OVERLOAD_EVENTS[command], "at": time.time()}

    def take(self, seconds):
        """All that comes in this time."""
        until, found = time.monotonic() + seconds, []
        while (left := until - time.monotonic()) > 0:
            if report := self.next(left):
                found.append(report)
        return found


@contextlib.contextmanager
def overload_listener(netns):
    """See OverloadListener."""
    listener = OverloadListener(netns)
    try:
        yield listener
    finally:
        listener.sock.close()


# Topology

class Stream:
    """One constant-rate UDP stream; see the head of this file."""

    def __init__(self, name, ecn=NOT_ECT, dscp=0, bps=0, pps=0, size=1000, burst=1, gso=0,
                 jitter=0, start=0, stop=None, count=None, priority=0, dst="10.2.0.1",
                 source="snd", trace=False):
        self.name = name
        self.source = source
        self.trace = f"/tmp/dualpi2-trace-{os.getpid()}-{next(_serial)}" if trace else None
        self.words = {"name": name, "dst": dst, "tos": dscp << 2 | ecn, "size": size,
                      "bps": bps, "pps": pps, "burst": burst, "gso": gso, "jitter": jitter,
                      "start": start * 1000, "priority": priority}
        if stop is not None:
            self.words["stop"] = stop * 1000
        if count is not None:
            self.words["count"] = count
        if trace:
            self.words["trace"] = self.trace


class Result:
    """What became of one stream."""

    def __init__(self, found, stream):
        self.__dict__.update(found)
        self.name = found["name"]
        self.loss = self.lost / self.sent if self.sent else 0.0
        self.marked = self.ecn[CE] / self.received if self.received else 0.0
        if stream.trace:
            with open(stream.trace, "rb") as file:
                self.records = [(sent, None if delay == 0xffffffff else delay, tos)
                                for sent, delay, tos, _, _ in
                                struct.iter_unpack("qIBBH", file.read())]
            os.unlink(stream.trace)


class Traffic:
    """A run of the traffic program."""

    def __init__(self, net, seconds, streams, warmup):
        words = [program("net/traffic"), str(seconds * 1000)]
        for port, stream in enumerate(streams, 5000):
            items = stream.words | {"from": getattr(net, stream.source), "to": net.rcv,
                                    "port": port, "warmup": warmup * 1000}
            words.append(",".join(f"{key}={value}" for key, value in items.items()))
        self.streams = streams
        # The names of namespaces are found from everywhere.
        self.process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def wait(self):
        """The end, and {name: Result}."""
        out, err = self.process.communicate()
        if self.process.returncode:
            raise Failure("traffic: " + err.strip())
        return {stream.name: Result(found, stream)
                for stream, found in zip(self.streams, json.loads(out))}

    def kill(self):
        """End it early, for a test that failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Net:
    """Three namespaces in a row: snd - rtr - rcv."""

    def __init__(self, offloads=False):
        self.offloads = offloads
        tag = f"dp{os.getpid()}-{next(_serial)}"
        self.snd, self.rtr, self.rcv = (f"{tag}-{name}" for name in ("snd", "rtr", "rcv"))
        self.stack = contextlib.ExitStack()
        self.running = []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self._build(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def _build(self, stack):
        for name in (self.snd, self.rtr, self.rcv):
            run(["ip", "netns", "add", name])
            stack.callback(run, ["ip", "netns", "del", name], check=False)
        stack.callback(self._kill_traffic)
        for netns in (self.snd, self.rtr, self.rcv):
            with in_netns(netns):
                _sysctl("net.ipv4.ip_forward", 1)
                _sysctl("net.ipv6.conf.all.forwarding", 1)
                _sysctl("net.ipv6.conf.all.disable_ipv6", 0)
                for scope in ("all", "default"):
                    _sysctl(f"net.ipv6.conf.{scope}.accept_dad", 0)
                    _sysctl(f"net.ipv6.conf.{scope}.addr_gen_mode", 1)
                    _sysctl(f"net.ipv6.conf.{scope}.accept_ra", 0)
                    _sysctl(f"net.ipv6.conf.{scope}.router_solicitations", 0)
        self._link(self.snd, "eth0", self.rtr, "up", 1)
        self._link(self.rcv, "eth0", self.rtr, "down", 2)
        for netns, side in ((self.snd, 1), (self.rcv, 2)):
            run(["ip", "-batch", "-"], netns,
                stdin=f"route add default via 10.{side}.0.2\n"
                      f"route add default via fd0{side}::2 dev eth0\n")
        time.sleep(4)       # for the last repeated MLD report

    def _link(self, end, dev, middle, port, side):
        run(["ip", "link", "add", dev, "netns", end, "address", f"02:00:00:00:0{side}:01",
             "type", "veth", "peer", "name", port, "netns", middle,
             "address", f"02:00:00:00:0{side}:02"])
        for netns, name, mine, other in ((end, dev, 1, 2), (middle, port, 2, 1)):
            run(["ip", "-batch", "-"], netns, stdin=f"""\
link set lo up
link set dev {name} up
addr add 10.{side}.0.{mine}/24 dev {name}
addr add fd0{side}::{mine}/64 dev {name} nodad
neigh add 10.{side}.0.{other} lladdr 02:00:00:00:0{side}:0{other} nud permanent dev {name}
neigh add fd0{side}::{other} lladdr 02:00:00:00:0{side}:0{other} nud permanent dev {name}
""")
            if not self.offloads:
                run(["ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off"], netns)

    def _kill_traffic(self):
        for traffic in self.running:
            traffic.kill()

    def vlan(self, vid):
        """A VLAN between rtr and rcv; the address behind it is 10.3.0.1."""
        for netns, dev, mine, other in ((self.rtr, "down", 2, 1), (self.rcv, "eth0", 1, 2)):
            run(["ip", "-batch", "-"], netns, stdin=f"""\
link add link {dev} name {dev}.{vid} type vlan id {vid}
link set dev {dev}.{vid} up
addr add 10.3.0.{mine}/24 dev {dev}.{vid}
addr add fd03::{mine}/64 dev {dev}.{vid} nodad
neigh add 10.3.0.{other} lladdr 02:00:00:00:02:0{other} nud permanent dev {dev}.{vid}
neigh add fd03::{other} lladdr 02:00:00:00:02:0{other} nud permanent dev {dev}.{vid}
""")
        time.sleep(4)

    def aqm(self, rate=10e6, shaper="htb", words=None, **knobs):
        """The bottleneck with a dualpi2; a context manager."""
        return Aqm(self, rate, shaper, words, knobs)

    def shaper_rate(self, bits):
        """Another rate for the htb class."""
        tc(f"class change dev down parent 1: classid 1:10 htb rate {bits:.0f}bit "
           f"ceil {bits:.0f}bit burst 1514 cburst 1514 quantum 1514", self.rtr)

    def tbf_rate(self, bits):
        """Another rate for tbf."""
        tc(f"qdisc change dev down root handle 1: tbf rate {bits:.0f}bit burst 1514 "
           "limit 100000000", self.rtr)

    def idle_instances(self, number):
        """Dummy devices dN, up, each with a dualpi2."""
        if not number:
            run(["ip", "link", "del", "group", "77"], self.rtr)
            return
        run(["ip", "-batch", "-"], self.rtr, stdin="".join(
            f"link add d{n} group 77 type dummy\nlink set dev d{n} up\n" for n in range(number)))
        for n in range(number):
            error, text = tc_request(self.rtr, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, f"d{n}",
                                     "10:", "root", "dualpi2")
            if error:
                raise Failure(f"dualpi2 on d{n}: {os.strerror(error)}: {text}")

    def start(self, seconds, *streams, warmup=0):
        """Start streams; .wait() for the result."""
        traffic = Traffic(self, seconds, streams, warmup)
        self.running.append(traffic)
        return traffic

    def traffic(self, seconds, *streams, warmup=0):
        """Run streams to the end and return {name: Result}."""
        return self.start(seconds, *streams, warmup=warmup).wait()

    def sampled(self, q, seconds, *streams, warmup=0, every=0.05):
        """Run streams, looking at the qdisc now and then after the warm-up."""
        begun = time.monotonic()
        traffic = self.start(seconds, *streams, warmup=warmup)
        samples = []
        time.sleep(warmup)
        while (now := time.monotonic() - begun) < seconds:
            samples.append(q.stats() | {"at": now})
            time.sleep(every)
        return traffic.wait(), samples


class Aqm:
    """dualpi2 on rtr's `down`, under a shaper or alone."""

    kind = "dualpi2"
    handle = "10:"
    dev = "down"
    was_reset = False       # see check_identities()

    def __init__(self, net, rate, shaper, words, knobs):
        self.net = net
        self.netns = net.rtr
        self.rate = rate
        self.shaper = shaper
        self.words = words
        self.knobs = knobs
        self.parent = {"htb": "1:10", "tbf": "1:1", "none": "root"}[shaper]

    def __enter__(self):
        rate = f"{self.rate:.0f}bit"
        try:
            if self.shaper == "htb":
                run(["tc", "-batch", "-"], self.netns, stdin=f"""\
qdisc add dev down root handle 1: htb default 10 direct_qlen 1000
class add dev down parent 1: classid 1:10 htb rate {rate} ceil {rate} burst 1514 cburst 1514 quantum 1514
""")
            elif self.shaper == "tbf":
                tc(f"qdisc add dev down root handle 1: tbf rate {rate} burst 1514 limit 100000000",
                   self.netns)
            self._add()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.check()
        finally:
            self._remove()

    def _parent_words(self):
        return ["root"] if self.parent == "root" else ["parent", self.parent]

    def _add(self):
        if self.words is not None:
            tc(["qdisc", "add", "dev", "down", *self._parent_words(), "handle", self.handle,
                self.kind, *shlex.split(self.words)], self.netns)
        else:
            self._request(NLM_F_CREATE | NLM_F_REPLACE, self.knobs)

    def _request(self, flags, knobs):
        number, text = tc_request(self.netns, RTM_NEWQDISC, flags, self.dev, self.handle,
                                  self.parent, "dualpi2", pack(**knobs) if knobs else None)
        if number:
            raise Failure(f"dualpi2 {knobs}: {os.strerror(number)}: {text}")

    def _remove(self):
        self.net._kill_traffic()
        tc("qdisc del dev down root", self.netns, check=False)

    def change(self, **knobs):
        """Change knobs in place."""
        self._request(0, knobs)

    def stats(self):
        """See stats()."""
        return stats(self.netns, self.dev, self.handle)

    def check(self):
        """The identities of the counters, now, and the classes."""
        check_identities(self.stats() | {"was_reset": self.was_reset})
        check_classes(self.netns, self.dev, self.handle)

    def filter(self, words):
        """Add a filter to the qdisc."""
        tc(f"filter add dev {self.dev} parent {self.handle} {words}", self.netns)

    def until_idle(self, seconds=30):
        """Wait until nothing is queued."""
        for _ in range(int(seconds / 0.05)):
            if not self.stats()["qlen"]:
                return
            time.sleep(0.05)
        raise Failure(f"the queues are not empty after {seconds} s")


_shared = contextlib.ExitStack()
_shared_nets = []


def shared_net():
    """The Net that the tests of this program share; main() removes it."""
    if not _shared_nets:
        _shared_nets.append(_shared.enter_context(Net()))
    return _shared_nets[0]


def _sysctl(name, value):
    # A path under /proc/sys/net is that of the opener's namespace.
    with open("/proc/sys/" + name.replace(".", "/"), "w", encoding="ascii") as file:
        file.write(str(value))


# Tests

def _keep_map():
    """Which blocks of the module have run, for selftests/fuzz/coverage.py."""
    maps = os.environ.get("DUALPI2_MAPS")
    if maps and os.path.exists(TRACE_PC_MAP):
        name = os.path.basename(sys.argv[0]).removesuffix(".py")
        with open(TRACE_PC_MAP, "rb") as source, open(f"{maps}/{name}.map", "wb") as file:
            file.write(source.read())


def _prepare():
    """What every test needs.  Returns lines for the head of the log."""
    if os.geteuid():
        raise Skip("need root")
    for tool in ("ip", "tc", "ethtool"):
        if not shutil.which(tool):
            raise Skip(f"need {tool}; install iproute2 and ethtool")
    child = os.fork()
    if not child:
        os._exit(bool(_libc.unshare(CLONE_NEWNET)))
    if os.waitpid(child, 0)[1]:
        raise Skip("need permission to make network namespaces (CAP_SYS_ADMIN)")
    there = os.path.exists(MODULE)
    try:
        load_module()
    except Failure as error:
        if os.environ.get("DUALPI2_MODULE"):
            sys.exit(f"{sys.argv[0]}: {error}")
        raise Skip("need dualpi2, which is neither loaded nor installed; run `make install`, or set DUALPI2_MODULE to "
                   "the path of sch_dualpi2.ko") from None
    # The project's own machines end with the program.
    if not there and os.path.exists(MODULE) and not os.environ.get("DUALPI2_VM"):
        _shared.callback(run, ["rmmod", "sch_dualpi2"], check=False)
    own = version()
    if not own:
        ktap.SKIP["ext"] = "needs this project's dualpi2, not the in-tree one"
    return [f"dualpi2 {own} of this project, Linux {os.uname().release}" if own else
            f"dualpi2 in-tree, Linux {os.uname().release}"]


def _finish():
    _shared.close()
    _keep_map()


def main(needs="ext"):
    """Run the registered tests as a KTAP program, with a dualpi2 loaded."""
    ktap.main(needs, _prepare, _finish)
