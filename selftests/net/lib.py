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
  .aqm(rate=10e6, shaper="htb", args=None, **knobs)
                        context manager: shaper on rtr's `down` ("htb", "tbf" or
                        "none") with dualpi2 as its child, handle 10:.  Knobs are
                        named as in the uapi, lower case (coupling=4, l4s=0,
                        step_thresh_us=...), and go by netlink; `args` are options
                        for tc instead.  Its end checks the identities of the
                        counters and removes the qdiscs.
     .stats()           see stats(); .change(**knobs); .handle, .dev, .netns
     .until_idle()      wait until the queues are empty
     .check()           the identities, now
     .filter(args)     add a tc filter: "protocol ip flower ... classid 10:1"
  .shaper_rate(bits)    change the rate of the htb class in place
  .tbf_rate(bits)       change the rate of tbf in place; it starts with full tokens
  .idle_instances(n)    so many dummy devices with a dualpi2 on rtr; 0 removes them
  .vlan(vid)            VLAN devices down.VID and eth0.VID, 10.3.0.1 behind them
  .traffic(seconds, *streams, warmup=0)   run streams; Run, see below
  .start(seconds, *streams, warmup=0)     the same in the background: .wait() -> Run
  .sampled(q, seconds, *streams, warmup=0, every=0.05)   (Run, list of q.stats() taken
                        after the warm-up, each with "at", seconds since the start)
shared_net()            one Net for all tests of a program, built at first use
shared_aqm(...)         context manager: that Net and what its aqm(...) gives, "with shared_aqm(l4s=0) as (net, q):"
Stream(name, ecn=0, dscp=0, bps=... or pps=..., size=1000, burst=1, gso=0, jitter=0,
       start=0, stop=None, count=None, priority=0, dst="10.2.0.1", source="snd",
       trace=False, flows=1, turn=1)   size is with the Ethernet header, and bps counts it; times
                        in seconds; source is "snd" or "rtr"; flows: source ports, in turns of so many packets
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
                        and st["overload_info"]; of the link behind st["link"], as in struct tc_dualpi2_link;
                        of queue protection, if it is on, st["qprotect"]
tc_stats(netns, dev, handle)   the same qdisc as `tc -s -j` with our plugin shows it
Also everything of selftests/lib/netlink.py (pack, tc_request, qdisc_dump, overload_listener, in_netns ...) and of
selftests/lib/identities.py (check_identities, check_classes, percentile, arrived, dropped ...): see there.
run(args, netns=None, check=True, stdin=None) -> CompletedProcess (text)
tc(args, netns=None, check=True)    the system's tc with our plugin
program(name)           path of a program in C, "net/traffic"; compiled if need be
main(needs="ext", prepare=None)     what a test program ends with; needs: marks of the tests that have none of their
                        own; "ext": skipped with an in-tree dualpi2, which has no extension; prepare(): what all tests
                        need, raises Skip if it is missing
test, each, note, expect, expect_equal, expect_between, Failure, Skip, VIRTUAL_TIME: see ../lib/ktap.py

Environment: DUALPI2_MODULE (loaded if no dualpi2 is; else by modprobe), TC_LIB_DIR, DUALPI2_ROOT;
DUALPI2_TRACE_PC (loaded before it, see selftests/fuzz/trace_pc) and DUALPI2_MAPS, where main() leaves its map.
"""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "lib"))

import ktap                                                             # noqa: E402
from identities import *                                                # noqa: E402, F403
from identities import check_classes, check_identities                  # noqa: E402
from ktap import VIRTUAL_TIME, Failure, Skip, each, expect             # noqa: E402, F401
from ktap import expect_between, expect_equal, note, test              # noqa: E402, F401
from netlink import *                                                   # noqa: E402, F403
from netlink import (NETLINK_GENERIC, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, ROOT, RTM_NEWQDISC,  # noqa: E402
                     Socket, genl_family, in_netns, libc, pack, parse_xstats, qdisc_dump, tc_request, unpack)

TRACE_PC_MAP = "/sys/kernel/debug/dualpi2_trace_pc/map"
MODULE = "/sys/module/sch_dualpi2"
CLONE_NEWNET = 0x40000000
NOT_ECT, ECT1, ECT0, CE = range(4)

# `make -C selftests install` puts the plugin for tc and the programs in C into the directory of this file.
INSTALLED = os.path.exists(os.path.join(HERE, "q_dualpi2.so"))
os.environ.setdefault("TC_LIB_DIR", HERE if INSTALLED else os.path.join(ROOT, "build/tc"))
_serial = itertools.count()


# Commands

def run(args, netns=None, check=True, stdin=None):
    """Run a command given as a string or a list."""
    args = shlex.split(args) if isinstance(args, str) else list(args)
    with in_netns(netns):
        done = subprocess.run(args, text=True, capture_output=True, input=stdin, check=False)
    if check and done.returncode:
        raise Failure(f"`{shlex.join(args)}`: {done.stderr.strip() or done.stdout.strip()}")
    return done


def tc(args, netns=None, check=True):
    """Run the system's tc, with the plugin for dualpi2."""
    args = shlex.split(args) if isinstance(args, str) else list(args)
    return run(["tc", *args], netns, check)


def program(name):
    """The path of a program of selftests that is written in C; compiled if it is older than its source."""
    if INSTALLED:
        return os.path.join(HERE, os.path.basename(name))
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


def users():
    """Users of the module; of a dualpi2 that is built in nobody counts them."""
    try:
        with open(f"{MODULE}/refcnt", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def version():
    """The version of this project's dualpi2, which begins with 2; None of an in-tree one, which has 1.0 or none. As
    part of a kernel tree ours has none either, but its family of messages.
    """
    try:
        with open(f"{MODULE}/version", encoding="ascii") as file:
            found = file.read().strip()
    except FileNotFoundError:
        with Socket(None, NETLINK_GENERIC) as sock:
            return "(built in)" if genl_family(sock, "dualpi2")[0] else None
    return found if int(found.split(".")[0]) >= 2 else None


def quiet_netns(stack, *names):
    """Make network namespaces that end with the ExitStack, and whose kernel does not speak IPv6 of its own accord."""
    stack.callback(run, ["ip", "-force", "-batch", "-"], stdin="".join(f"netns del {name}\n" for name in names),
                   check=False)
    run(["ip", "-batch", "-"], stdin="".join(f"netns add {name}\n" for name in names))
    for name in names:
        with in_netns(name), open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w", encoding="ascii") as file:
            file.write("1")


# Statistics

def stats(netns, dev, handle="10:"):
    """Statistics and knobs of a dualpi2, by netlink."""
    for qdisc in qdisc_dump(netns, dev):
        if qdisc["handle"] == handle:
            st = dict(qdisc["stats"], kind=qdisc["kind"], handle=handle, parent=qdisc["parent"])
            if qdisc["kind"] in ("dualpi2", "dualpi2_mq"):
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


# Topology

class Stream:
    """One constant-rate UDP stream; see the head of this file."""

    def __init__(self, name, ecn=NOT_ECT, dscp=0, bps=0, pps=0, size=1000, burst=1, gso=0,
                 jitter=0, start=0, stop=None, count=None, priority=0, dst="10.2.0.1",
                 source="snd", trace=False, flows=1, turn=1):
        self.name = name
        self.source = source
        self.trace = f"/tmp/dualpi2-trace-{os.getpid()}-{next(_serial)}" if trace else None
        self.fields = {"name": name, "dst": dst, "tos": dscp << 2 | ecn, "size": size,
                      "bps": bps, "pps": pps, "burst": burst, "gso": gso, "jitter": jitter,
                      "start": start * 1000, "priority": priority, "flows": flows, "turn": turn}
        if stop is not None:
            self.fields["stop"] = stop * 1000
        if count is not None:
            self.fields["count"] = count
        if trace:
            self.fields["trace"] = self.trace


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
        args = [program("net/traffic"), str(seconds * 1000)]
        for port, stream in enumerate(streams, 5000):
            items = stream.fields | {"from": getattr(net, stream.source), "to": net.rcv,
                                    "port": port, "warmup": warmup * 1000}
            args.append(",".join(f"{key}={value}" for key, value in items.items()))
        self.streams = streams
        # The names of namespaces are found from everywhere.
        self.process = subprocess.Popen(args, text=True, stdout=subprocess.PIPE,
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

    link_args = ()         # for ip(8), of all devices

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
        run(["ip", "link", "add", dev, "netns", end, "address", f"02:00:00:00:0{side}:01", *self.link_args,
             "type", "veth", "peer", "name", port, "netns", middle,
             "address", f"02:00:00:00:0{side}:02", *self.link_args])
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

    def aqm(self, rate=10e6, shaper="htb", args=None, **knobs):
        """The bottleneck with a dualpi2; a context manager."""
        return Aqm(self, rate, shaper, args, knobs)

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

    def __init__(self, net, rate, shaper, args, knobs):
        self.net = net
        self.netns = net.rtr
        self.rate = rate
        self.shaper = shaper
        self.args = args
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

    def _parent_args(self):
        return ["root"] if self.parent == "root" else ["parent", self.parent]

    def _add(self):
        if self.args is not None:
            tc(["qdisc", "add", "dev", "down", *self._parent_args(), "handle", self.handle,
                self.kind, *shlex.split(self.args)], self.netns)
        else:
            self._request(NLM_F_CREATE | NLM_F_REPLACE, self.knobs)

    def _request(self, flags, knobs):
        number, text = tc_request(self.netns, RTM_NEWQDISC, flags, self.dev, self.handle,
                                  self.parent, self.kind, pack(**knobs) if knobs else None)
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

    def filter(self, args):
        """Add a filter to the qdisc."""
        tc(f"filter add dev {self.dev} parent {self.handle} {args}", self.netns)

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


@contextlib.contextmanager
def shared_aqm(**args):
    """shared_net() and what its aqm() gives for these arguments."""
    net = shared_net()
    with net.aqm(**args) as q:
        yield net, q


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


def _unload():
    """Remove the module; the kernel takes namespaces, and what is in them, apart in the background."""
    for _ in range(100):
        if not run(["rmmod", "sch_dualpi2"], check=False).returncode:
            return
        time.sleep(0.1)


def _prepare():
    """What every test needs.  Returns lines for the head of the log."""
    if os.geteuid():
        raise Skip("need root")
    for tool in ("ip", "tc", "ethtool"):
        if not shutil.which(tool):
            raise Skip(f"need {tool}; install iproute2 and ethtool")
    child = os.fork()
    if not child:
        os._exit(bool(libc.unshare(CLONE_NEWNET)))
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
        _shared.callback(_unload)
    own = version()
    if not own:
        ktap.SKIP["ext"] = "needs this project's dualpi2, not the in-tree one"
    return [f"dualpi2 {own} of this project, Linux {os.uname().release}" if own else
            f"dualpi2 in-tree, Linux {os.uname().release}"]


def _finish():
    _shared.close()
    _keep_map()


def main(needs="ext", prepare=None):
    """Run the registered tests as a KTAP program, with a dualpi2 loaded, and after prepare()."""
    def both():
        head = _prepare()
        if prepare:
            prepare()
        return head

    ktap.main(needs, both, _finish)
