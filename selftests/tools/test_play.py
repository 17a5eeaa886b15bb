# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""`dualpi2 play` on a shaper in network namespaces: the rates that are set, the report, and what is restored.

Traces and errors that need no device: test_traces.py.
"""

import contextlib
import json
import os
import signal
import subprocess
import time

from lib_up import COMMAND, dualpi2
import lib
from lib import (CE, ECT0, ECT1, NOT_ECT, Stream, each, expect, expect_between, expect_equal, in_netns, main, note,
                 percentile, shared_aqm, tc, test)
from mq import mq_device
from dualpi2 import Trouble, play, traces

RATE = 10**6                    # bytes/s, before and after each play
PATH = "/tmp/dualpi2-play.trace"
UDP = {"l": ECT1, "c": ECT0, "not": NOT_ECT}


def trace_of(*steps):
    """A trace with opportunities in so many ms each, spread evenly: (opportunities, ms)."""
    times, begin = [], 0
    for number, length in steps:
        times += [begin - -(n + 1) * length // number for n in range(number)]
        begin += length
    return traces.Trace(times)


# 12, 24, 2.4 and 6 Mbit/s for 0.1 s each.
WAVES = trace_of((100, 100), (200, 100), (20, 100), (50, 100))
WAVES_RATES = [1500000, 3000000, 300000, 750000]


class Recorded(play.Shaper):
    """A shaper that records what the kernel shows after each change; failing or late at one of them."""

    def __init__(self, netns, device="down", fails_at=None, late_at=None):
        super().__init__(device)
        self.netns, self.fails_at, self.late_at = netns, fails_at, late_at
        self.seen = []

    def set(self, rate):
        if len(self.seen) == self.fails_at:
            self.fails_at = None
            raise Trouble("made to fail")
        if len(self.seen) == self.late_at:
            time.sleep(0.12)
        super().set(rate)
        self.seen.append(lib.stats(self.netns, self.device, self.handle)["knobs"]["bandwidth"])


def written(times):
    """The path of a trace with these times, which every user can read."""
    with open(PATH, "w", encoding="ascii") as file:
        file.write("".join(f"{time_ms}\n" for time_ms in times))
    os.chmod(PATH, 0o644)
    return PATH


def started(netns, *options):
    """A play of WAVES in the background."""
    with in_netns(netns):
        return subprocess.Popen([*COMMAND, "play", "down", written(WAVES.times), *options], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def played(netns, trace, length_ms, step_ms=50, **about):
    """(shaper, report) of a play in this process."""
    with in_netns(netns):
        shaper = Recorded(netns, **about)
        return shaper, play.Play(shaper, trace, step_ms, length_ms).report()


@contextlib.contextmanager
def shaped(**knobs):
    """A net and a dualpi2 that shapes."""
    with shared_aqm(shaper="none", bandwidth=RATE, **knobs) as (net, q):
        yield net, q
        expect_equal(q.stats()["knobs"]["bandwidth"], RATE, "the rate afterwards")


@test("rates, utilization")
def play_fills_the_link_with_the_rates_of_the_trace():
    with shaped() as (net, q):
        traffic = net.start(2.5, Stream("l", ecn=ECT1, bps=15e6, size=1514), Stream("c", bps=15e6, size=1514))
        time.sleep(0.2)
        before = q.stats()["bytes"]
        shaper, found = played(net.rtr, WAVES, 2000)
        sent = q.stats()["bytes"] - before
        traffic.wait()
        q.until_idle()
    # Of equal rates only the first one is set.
    expect_equal(shaper.seen, WAVES_RATES * 5 + [RATE])
    expect_equal((found["complete"], found["steps"], found["skipped_steps"], found["outage_seconds"]), (True, 40, 0, 0))
    mean = 11.1e6
    expect_equal((found["bits_per_second"]["minimum"], found["bits_per_second"]["maximum"]), (2400000, 24000000))
    expect_between(found["seconds"], 2, 2.0005, "s")
    expect_between(found["bits_per_second"]["mean"] / mean, 0.9995, 1.0005, "mean rate / that of the trace")
    expect_between(found["capacity_bytes"] / (2 * mean / 8), 0.9995, 1.0005, "capacity / that of the trace")
    expect_between(sent - found["sent_bytes"], 0, 1514 * 2, "bytes sent before and after the samples")
    # One packet for each of 20 changes, and one at each end.
    expect_between(found["sent_bytes"] - found["capacity_bytes"], -22 * 1514, 22 * 1514, "bytes sent - capacity")
    expect_between(found["utilization"] * found["capacity_bytes"] - found["sent_bytes"], -1, 1, "utilization, bytes")


@test("report")
def play_reports_what_the_qdisc_counted_meanwhile():
    with shaped() as (net, q):
        # Before it, so that no counter is 0.
        net.traffic(0.5, *(Stream(name, ecn=ecn, bps=6e6) for name, ecn in UDP.items()))
        q.until_idle()
        before = q.stats()
        traffic = net.start(1.4, *(Stream(name, ecn=ecn, bps=6e6, start=0.3) for name, ecn in UDP.items()))
        _, found = played(net.rtr, WAVES, 2500)
        traffic.wait()
        expect_equal(q.stats()["qlen"], 0, "packets that are still in the queue")
        after = q.stats()
    for name, short in (("l4s", "l"), ("classic", "c")):
        one = found["queues"][name]
        grown = {key: value - before[short]["counters"][key] for key, value in after[short]["counters"].items()}
        expect_equal((one["packets"], one["bytes"]), (grown["forwarded"], grown["forwarded_bytes"]), name)
        expect_equal(one["marked"], sum(grown["marked_" + by] for by in ("classic", "coupled", "native")), name)
        expect_equal(one["dropped"], {cause: grown[f"ect_dropped_{cause}"] + grown[f"not_ect_dropped_{cause}"]
                                      for cause in lib.CAUSES}, name)
        delay = dict(after[short]["delay"])
        delay["hist"] = [new - old for new, old in zip(delay["hist"], before[short]["delay"]["hist"])]
        delay["beyond"] -= before[short]["delay"]["beyond"]
        mean = (delay["sum_ns"] - before[short]["delay"]["sum_ns"]) / one["packets"]
        expect_between(one["delay"]["mean_ns"] - mean, -1, 1, f"{name}: mean - that of the sums, ns")
        for part, key in ((0.5, "p50_ns"), (0.99, "p99_ns")):
            expect_between(one["delay"][key], *percentile(delay, part), f"{name}: {key}")
    expect(found["queues"]["l4s"]["marked"] and sum(found["queues"]["classic"]["dropped"].values()), "no signals")
    expect_equal(found["sent_bytes"], after["bytes"] - before["bytes"])


@test("losses, outage")
def play_with_an_outage_loses_and_reorders_no_packet():
    """9 Mbit/s of UDP need less than the rates, except in 0.1 s without capacity."""
    trace = trace_of((300, 300), (0, 100), (800, 400))
    with shaped() as (net, q):
        before = q.stats()
        traffic = net.start(2, *(Stream(name, ecn=ecn, bps=3e6, start=0.1) for name, ecn in UDP.items()))
        shaper, found = played(net.rtr, trace, 2400)
        udp = traffic.wait()
        after = q.stats()
    expect_equal(shaper.seen, [rate for _ in range(3) for rate in (1500000, 1000, 3000000)] + [RATE])
    expect_between(found["outage_seconds"], 0.2999, 0.3003, "s without capacity")
    expect_equal(found["bits_per_second"]["minimum"], 8000)
    expect_equal((udp["l"].lost, udp["c"].lost), (0, 0), "ECT packets that were lost")
    aqm = after["c"]["dropped_aqm"] - before["c"]["dropped_aqm"]
    expect_equal((udp["not"].lost, after["drops"] - before["drops"]), (aqm, aqm), "packets lost, drops, of the AQM")
    expect_equal([(udp[name].disorder, udp[name].duplicates) for name in UDP], [(0, 0)] * 3, "disorder, duplicates")
    expect_between(udp["l"].delay_us["max"], 95e3, 115e3, "us: the outage, for one L4S packet")
    note(f"{udp['l'].ecn[CE]} of {udp['l'].received} L4S packets are marked")


@test("late")
def play_that_is_late_skips_steps():
    with shaped() as (net, q):
        shaper, found = played(net.rtr, WAVES, 400, late_at=1)
    # 24 Mbit/s of 100 ms are set at 220 ms, and the step of 150 ms is over.
    expect_equal(shaper.seen, [*WAVES_RATES, RATE])
    expect_equal((found["steps"], found["skipped_steps"]), (7, 1))
    mean = (12 * 220 + 2.4 * 80 + 6 * 100) / 400 * 1e6
    expect_between(found["bits_per_second"]["mean"] / mean, 0.9995, 1.0005, "mean rate / that of what was set")


ENDS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@each(ENDS)
def play_ended_by_CASE_restores_and_reports(name):
    with shaped() as (net, q):
        process = started(net.rtr, "--for", "3600", "--json")
        time.sleep(1.03)
        during = q.stats()["knobs"]["bandwidth"]
        process.send_signal(getattr(signal, name))
        out, err = process.communicate()
        expect_equal((process.returncode, err), (ENDS[name], ""))
    found = json.loads(out)
    expect(during in WAVES_RATES, f"{during} bytes/s during the play")
    expect_equal((found["complete"], found["restored_bits_per_second"]), (False, 8 * RATE))
    expect_between(found["seconds"], 0.5, 1.1, "s")


@test("errors")
def play_that_fails_restores():
    with shaped() as (net, _), in_netns(net.rtr):
        shaper = Recorded(net.rtr, fails_at=3)
        try:
            play.Play(shaper, WAVES, 50, 2000)
        except Trouble as trouble:
            expect_equal(str(trouble), "made to fail")
        else:
            expect(False, "no error")
    expect_equal(shaper.seen, [*WAVES_RATES[:3], RATE])


@test("errors")
def play_whose_qdisc_is_removed_ends_with_one_line():
    with shared_aqm(shaper="none", bandwidth=RATE) as (net, q):
        process = started(net.rtr, "--for", "60")
        time.sleep(1)
        tc("qdisc del dev down root", net.rtr)
        out, err = process.communicate()
        expect_equal((process.returncode, out), (1, ""))
        expect_equal(err, "dualpi2: 10: on 'down' was removed during the play; no report\n")
        expect("dualpi2" not in tc("qdisc show dev down", net.rtr).stdout, "the qdisc was added again")
        q._add()


@test("text")
def play_prints_a_report_for_people():
    written([5, 10])
    with shaped() as (net, _):
        said = dualpi2(f"play down {PATH} --for 0.2 --step 100ms", net.rtr).splitlines()
        expect_equal(said[:3], ["down 10: 0.20 s, 2 steps of 100 ms", "rate: minimum 2.40 Mbit/s, mean 2.40 Mbit/s, "
                                "maximum 2.40 Mbit/s", "sent: 0 B of 60.0 kB, utilization 0.0 %"])
        expect_equal(said[-1], "restored: 8.00 Mbit/s")
        said = dualpi2(f"play down {PATH} -n {net.rtr}", net.snd).splitlines()
        expect_equal(said[0], "down 10: 0.01 s, 1 steps of 50 ms")


SHAPERS = {
    "child": ("root handle 1: prio", "parent 1:2 handle 20: dualpi2 bandwidth 8mbit", "parent 1:3 handle 30: dualpi2"),
    "mq": ("root handle 20: dualpi2_mq bandwidth 8mbit target 9ms",),
}


@each(SHAPERS)
def play_finds_the_shaper_of_a_CASE(name):
    def qdiscs():
        # The children of dualpi2_mq show their limits of the last packet.
        return [(one["handle"], one["parent"], one["options"]) for one in lib.qdisc_dump(netns, "d0")
                if one["handle"] != "0:"]

    with mq_device(*SHAPERS[name]) as netns:
        before = qdiscs()
        shaper, found = played(netns, WAVES, 400, device="d0")
        expect_equal(found["handle"], "20:")
        expect_equal(shaper.seen, [*WAVES_RATES, RATE])
        expect_equal(qdiscs(), before, "qdiscs and options")


NONE = "no dualpi2 with a bandwidth on 'd0'; add one, for example: dualpi2 up d0 --upload 20mbit"
WRONG = {
    "no_device": ("lna0", (), 1, "there is no device lna0; `ip link` lists them"),
    "no_dualpi2": ("d0", (), 1, NONE),
    "no_bandwidth": ("d0", ("root dualpi2",), 1, NONE),
    "two": ("d0", ("root handle 1: prio", "parent 1:2 handle 20: dualpi2 bandwidth 8mbit",
                   "parent 1:3 handle 30: dualpi2 bandwidth 8mbit"), 1, "several dualpi2 with a bandwidth on 'd0': "
            "20:, 30:; keep one of them, or use dualpi2_mq, which has one bandwidth for all queues"),
    "name": ("a/b", (), 2, "'a/b' is not a name of a device; list devices with: ip link"),
}


@each(WRONG)
def play_with_wrong_CASE_is_one_line(name):
    device, lines, code, text = WRONG[name]
    with mq_device(*lines) as netns:
        expect_equal(dualpi2(["play", device, written([10])], netns, code=code), f"dualpi2: {text}\n")


@test("privileges")
def play_without_root_is_one_line():
    with mq_device("root handle 20: dualpi2 bandwidth 8mbit") as netns:
        expect_equal(dualpi2(f"play d0 {written([10])}", netns, code=1, uid=65534),
                     "dualpi2: 'play' needs root; run: sudo dualpi2 play ...\n")


if __name__ == "__main__":
    main(needs="virtual_time ext")
