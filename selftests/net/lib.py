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
tc_stats(netns, dev, handle)   the same qdisc as `tc -s -j` with our plugin shows it
check_identities(st)    raise Failure unless the counters fit together
tc_request(netns, type, flags, dev, handle, parent, kind, options)
                        raw rtnetlink, returns (errno, extack text); options is
                        bytes, or None for no TCA_OPTIONS at all; see pack()
qdisc_dump(netns, dev)  list of dicts: kind handle parent options stats app (raw)
in_netns(name)          context manager: this process is in the namespace
run(words, netns=None, check=True, stdin=None) -> CompletedProcess (text)
tc(words, netns=None, check=True)    the system's tc with our plugin
program(name)           path of a program in C, "net/traffic"; compiled if need be
expect(condition, text) expect_equal(got, want, what) expect_between(got, low, high, what)
note(text)              a diagnostic line, printed before the result
Skip(reason)            to be raised where something cannot be had
each(cases, about=(), name=str)   registers a test for each case; CASE in its name becomes name(case)
test(*about)            registers; main() runs: --list, -k SUBSTRING (repeatable)

Environment: DUALPI2_MODULE (loaded if no dualpi2 is), TC_LIB_DIR, DUALPI2_ROOT;
DUALPI2_TRACE_PC (loaded before it, see selftests/fuzz/trace_pc) and DUALPI2_MAPS, where main() leaves its map.
"""

import argparse
import contextlib
import ctypes
import itertools
import json
import math
import os
import shlex
import socket
import struct
import subprocess
import sys
import time
import traceback

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))))
TRACE_PC_MAP = "/sys/kernel/debug/dualpi2_trace_pc/map"
NOT_ECT, ECT1, ECT0, CE = range(4)

os.environ.setdefault("TC_LIB_DIR", os.path.join(ROOT, "build/tc"))
_libc = ctypes.CDLL(None, use_errno=True)
_serial = itertools.count()


class Failure(Exception):
    """A test's expectation was not met."""


class Skip(Exception):
    """Something that the test needs cannot be had here."""


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
    if not os.path.exists("/sys/module/sch_dualpi2"):
        run(["insmod", module] if module else ["modprobe", "sch_dualpi2"])


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
    if _libc.setns(file.fileno(), 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")


# Netlink

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLA_F_NESTED = 0x8000
TC_H_ROOT = 0xffffffff
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
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
EXT_KNOBS = {"l4s": (1, "B"), "ramp_us": (2, "I"), "signal": (3, "B")}
L4S_ECT, CLA_ECT, ANY_ECT = 1, 2, 3
RECUR, RANDOM = 0, 1

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
        sock.setsockopt(270, 11, 1)     # NETLINK_EXT_ACK
        with contextlib.suppress(OSError):
            sock.setsockopt(270, 12, 1)     # NETLINK_GET_STRICT_CHK
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
    index = _ifindex(netns, dev)
    found = []
    with rtnetlink(netns) as sock:
        sock.send(struct.pack("IHHII", 36, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) +
                  struct.pack("BxxxiIII", 0, index, 0, 0, 0))
        for kind, _, data in _messages(sock):
            if kind == 3:       # NLMSG_DONE
                break
            if kind != RTM_NEWQDISC:
                raise Failure("qdisc dump: " + os.strerror(-struct.unpack_from("i", data)[0]))
            _, ifindex, handle, parent, _ = struct.unpack_from("BxxxiIII", data)
            if ifindex == index:
                found.append(_parse_qdisc(handle, parent, attrs(data[20:])))
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
    data = app[EXT_OFFSET + 8:]
    for queue in ("c", "l"):
        st[queue] = dict(zip(QUEUE_XSTATS, struct.unpack_from("16Q", data)))
        data = data[128:]
    st |= dict(zip(EXT_XSTATS_TAIL, struct.unpack_from("6Q4I", data)))
    st["p_c"] = st["prob_c"] / 2**32
    st["p_cl"] = st["prob_cl"] / 2**32
    return st


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
    that a parent has peeked at is `sent` and still in qlen and backlog.  Valid
    as long as nobody reset the qdisc: that purges without counting drops.
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
        dropped = q["dropped_aqm"] + q["dropped_overload"] + q["dropped_purge"]
        same(q["enqueued"], q["sent"] + dropped + q["packets"],
             f"{name}: enqueued and sent + dropped + queued")
        at_most(q["sent_bytes"] + q["bytes"], q["enqueued_bytes"], f"{name}: bytes out, bytes in")
        if not dropped:
            same(q["enqueued_bytes"], q["sent_bytes"] + q["bytes"], f"{name}: bytes in and out")
        at_most(q["marked_classic"] + q["marked_coupled"] + q["marked_native"],
                q["enqueued"] - q["arrived_ce"], f"{name}: marks, packets that came without CE")
    both = {key: st["c"][key] + st["l"][key] for key in QUEUE_XSTATS}
    same(st["packets"], both["sent"], "packets of the qdisc and sent of both queues")
    same(st["bytes"], both["sent_bytes"], "bytes of the qdisc and of both queues")
    drops = sum(value for key, value in both.items() if key.startswith("dropped_"))
    drops += st["gso_failed"]
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
    if not st["overload_count"]:
        same(st["overload_ns"], 0, "overload time without an overload")
    # p' is truncated to 32 bits for the dump, p_C and p_CL from the full one.
    if abs(st["p_c"] - st["p"]**2) > 4 / 2**32:
        wrong.append(f"prob_c {st['p_c']} is not the square of prob {st['p']}")
    k = st["knobs"]["coupling"]
    if abs(st["p_cl"] - min(1, k * st["p"])) > (k + 2) / 2**32:
        wrong.append(f"prob_cl {st['p_cl']} is not {k} times prob {st['p']}")
    if wrong:
        raise Failure("counters do not fit together: " + "; ".join(wrong))


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

    handle = "10:"
    dev = "down"

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
            if self.words is not None:
                tc(["qdisc", "add", "dev", "down", *self._parent_words(), "handle", self.handle,
                    "dualpi2", *shlex.split(self.words)], self.netns)
            else:
                self._request(NLM_F_CREATE | NLM_F_REPLACE, self.knobs)
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
        """The identities of the counters, now."""
        check_identities(self.stats())

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

_tests = []
_notes = []


def test(*about):
    """Register a test; `about` says which requirements or faults it is for."""
    def register(function):
        function.about = about
        _tests.append(function)
        return function
    return register


def each(cases, about=(), name=str):
    """Register a test once for each case, which is its argument; name(case) stands for CASE in its name."""
    def register(function):
        for item in cases:
            def case(item=item):
                function(item)
            case.__name__ = function.__name__.replace("CASE", name(item))
            case.__doc__ = function.__doc__
            test(*about)(case)
        return function
    return register


def note(text):
    """A diagnostic line of the running test."""
    _notes.append(str(text))


def expect(condition, text):
    """Fail with a text unless the condition holds."""
    if not condition:
        raise Failure(text)


def expect_equal(got, want, what=""):
    """Fail unless both are the same."""
    if got != want:
        raise Failure(f"{what or 'value'}: got {got!r}, expected {want!r}")


def expect_between(got, low, high, what=""):
    """Fail unless low <= got <= high; the value is shown either way."""
    note(f"{what}: {got:.6g} in [{low:.6g}, {high:.6g}]")
    if not low <= got <= high or math.isnan(got):
        raise Failure(f"{what}: {got:.6g} is not in [{low:.6g}, {high:.6g}]")


def _run_one(number, function):
    _notes.clear()
    before = time.monotonic()
    directive = ""
    good = True
    try:
        function()
    except Skip as reason:
        directive = f" # SKIP {reason}"
    except Exception as error:      # noqa: BLE001
        good = False
        frame = traceback.extract_tb(error.__traceback__)
        mine = [f for f in frame if os.path.basename(f.filename) != "lib.py"] or frame
        note(f"{type(error).__name__}: {error} (line {mine[-1].lineno})")
        if not isinstance(error, (Failure, OSError)):
            for line in traceback.format_exc().splitlines():
                note(line)
    for line in _notes:
        for part in line.splitlines():
            print("# " + part)
    print(f"# {time.monotonic() - before:.1f} s")
    print(("ok" if good else "not ok") + f" {number} {function.__name__}{directive}", flush=True)
    return good


def _keep_map():
    """Which blocks of the module have run, for selftests/fuzz/coverage.py."""
    maps = os.environ.get("DUALPI2_MAPS")
    if maps and os.path.exists(TRACE_PC_MAP):
        name = os.path.basename(sys.argv[0]).removesuffix(".py")
        with open(TRACE_PC_MAP, "rb") as source, open(f"{maps}/{name}.map", "wb") as file:
            file.write(source.read())


def main():
    """Run the registered tests as a KTAP program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="names of the tests")
    parser.add_argument("-k", action="append", metavar="SUBSTRING", help="only matching names")
    args = parser.parse_args()
    chosen = [t for t in _tests if not args.k or any(part in t.__name__ for part in args.k)]
    if args.list:
        for function in chosen:
            print(function.__name__, *function.about)
        return
    print(f"KTAP version 1\n1..{len(chosen)}", flush=True)
    load_module()
    with _shared:
        results = [_run_one(number, function) for number, function in enumerate(chosen, 1)]
    _keep_map()
    sys.exit(0 if all(results) and results else 1)
