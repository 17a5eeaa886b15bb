#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
# suite: long kernel=stock
"""What dualpi2 reports by itself: overload, by netlink, and every decision, by the tracepoint.

Begin and end of an overload are compared with the time for which the test let it last, decisions with the counters.
"""
import contextlib
import errno
import os
import select
import socket
import time

import lib
from lib import (CE, CODEPOINTS, ECT0, ECT1, NOT_ECT, Failure, Skip, Stream, dropped, each, expect, expect_between,
                 expect_equal, note, pack, shared_aqm, shared_net, test)
from parents import CALM, ECNS, HARSH, Tree

R = 10e6        # bit/s
MS = 1000000    # ns


# Overload

def overload(seconds, load=0.75, stop=None):
    """Streams of so many times the rate into each queue, in overload from about 0.2 s on."""
    return [Stream("c", bps=load * R, stop=stop or seconds), Stream("l", ecn=ECT1, bps=load * R, stop=stop or seconds)]


def seen_overload(q, seconds):
    """When overload began and ended as somebody saw it who looked often: CLOCK_REALTIME."""
    begin = end = None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        now = q.stats()["overload"]
        if now and begin is None:
            begin = time.time()
        if begin is not None and end is None and not now:
            end = time.time()
        time.sleep(0.02)
    return begin, end


@each((False, True), ("R39",), name=lambda watched: "watched" if watched else "alone", needs="virtual_time ext")
def overload_of_2_s_CASE_is_reported_once_with_its_begin_and_end(watched):
    """Traffic ends with it.  That somebody looks at the statistics changes nothing."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm() as q:
        begun = time.time()
        traffic = net.start(2.3, *overload(2.3))
        if watched:
            seen = seen_overload(q, 8)
            note(f"seen from {seen[0] - begun:.2f} to {seen[1] - begun:.2f} s")
        reports = listener.take(1 if watched else 9)
        traffic.wait()
        for report in reports:
            note(report | {"start_ns": report["start_ns"] / 1e9 - begun, "at": report["at"] - begun})
        expect_equal([r["event"] for r in reports], ["begin", "end"], "reports")
        begin, end = reports
        with lib.in_netns(net.rtr):
            index = socket.if_nametoindex("down")
        for report in reports:
            expect_equal((report["ifindex"], report["handle"], report["parent"], report["count"]),
                         (index, 0x100000, 0x10010, 1), "ifindex, handle, parent, count")
            expect(abs(report["start_ns"] - begin["start_ns"]) < MS, "start of the begin's report and the end's")
        # p' is at 1/2 when the Classic queue's head has waited for at most 156 ms, less with the integral term:
        # 0.1 s if all of that queue waits behind L4S, 0.3 s if both share the rate.
        expect_between(begin["start_ns"] / 1e9 - begun, 0.1, 0.5, "begin, s after the load's")
        expect_between(end["duration_ns"] / 1e9, 1.8, 2.2, "duration, s")
        expect(begin["duration_ns"] < 0.1e9, f"duration at the begin: {begin['duration_ns']} ns")
        if not watched:
            expect_between(begin["at"] - begin["start_ns"] / 1e9, 0, 0.1, "report of the begin, s after it")
            expect_between(end["at"] - (end["start_ns"] + end["duration_ns"]) / 1e9, 0, 2.5,
                           "report of the end, s after it")
        st = q.stats()
        info = st["overload_info"]
        expect_equal((info["count"], info["now"], info["reports"]), (1, 0, 2), "count, now, reports")
        expect(abs(info["start_ns"] - begin["start_ns"]) < 1 * MS, "start by statistics and by report")
        expect_equal((info["duration_ns"], info["total_ns"]), (end["duration_ns"],) * 2, "duration, total")


@test("R39", needs="virtual_time ext")
def overload_under_way_is_in_the_statistics():
    with shared_aqm() as (net, q):
        begun = time.time()
        traffic = net.start(4, *overload(4))
        time.sleep(1.5)
        first = q.stats()["overload_info"]
        time.sleep(1)
        second = q.stats()["overload_info"]
        expect_equal((first["now"], second["now"], second["count"]), (1, 1, 1), "now, count")
        expect_between(first["start_ns"] / 1e9 - begun, 0.1, 0.5, "begin, s after the load's")
        expect(abs(first["start_ns"] - second["start_ns"]) < MS, "start moved")
        expect_between((second["duration_ns"] - first["duration_ns"]) / 1e9, 0.98, 1.1, "more a second later, s")
        traffic.wait()
        time.sleep(3)
        third = q.stats()["overload_info"]
        time.sleep(1)
        expect_equal(q.stats()["overload_info"], third, "the last overload, when it is over")
        expect_equal(third["now"], 0, "now")


@each((0.6, 0.55), ("R40", "C18"), name=lambda load: f"{load * 200:.0f}_percent", needs="virtual_time ext")
def overload_at_its_edge_by_CASE_makes_one_report_a_period_at_most(load):
    net = shared_net()
    for period in (0.5, 2):
        with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=int(period * 1e6)) as q:
            traffic = net.start(12, *overload(10, load))
            reports = listener.take(15)
            traffic.wait()
            note(f"period {period}: {[(r['event'], r['count'], r['duration_ns'] / 1e9) for r in reports]}")
            times = [r["at"] for r in reports]
            expect(all(b - a > period - 0.01 for a, b in zip(times, times[1:])), f"reports at {times}")
            expect(reports or not q.stats()["overload_count"], "no report of an overload")
            if reports:
                expect_equal(reports[-1]["event"], "end", "the last report")
            info = q.stats()["overload_info"]
            expect_equal(info["reports"], len(reports), "reports by the statistics")
            ends = [r for r in reports if r["event"] == "end"]
            expect_equal(sum(r["count"] for r in ends), info["count"], "overloads in all reports of an end")
            expect_equal(sum(r["duration_ns"] for r in ends), info["total_ns"], "time in all reports of an end")


def flap(net, times, on=0.6, off=1.2):
    """Overloads one after the other: loads of 1.5 times the rate with pauses."""
    return [Stream(f"{name}{n}", ecn=ecn, bps=0.75 * R, start=n * (on + off), stop=n * (on + off) + on)
            for n in range(times) for name, ecn in (("c", NOT_ECT), ("l", ECT1))]


@test("R40", needs="virtual_time ext")
def overloads_that_flap_are_added_up_in_one_report_a_period():
    """Five in 9 s and a period of 4 s: what happens within it is in the report that ends it."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=4000000) as q:
        traffic = net.start(9.5, *flap(net, 5))
        reports = listener.take(20)
        traffic.wait()
        note([(r["event"], r["count"], r["duration_ns"] / 1e9) for r in reports])
        info = q.stats()["overload_info"]
        expect_equal(info["count"], 5, "overloads")
        times = [r["at"] for r in reports]
        expect(all(b - a > 3.99 for a, b in zip(times, times[1:])), f"reports at {times}")
        ends = [r for r in reports if r["event"] == "end"]
        expect_equal(sum(r["count"] for r in ends), 5, "overloads in all reports")
        expect_equal(sum(r["duration_ns"] for r in ends), info["total_ns"], "their time")
        expect(len(reports) <= 4, f"{len(reports)} reports")


@test("R39", needs="timed ext")
def overload_with_overload_report_0_is_not_reported_and_still_counted():
    net = shared_net()
    with lib.overload_listener(net.rtr) as listener, net.aqm(overload_report=0) as q:
        net.traffic(1.5, *overload(1.5))
        time.sleep(3)
        expect_equal(listener.take(0.5), [], "reports")
        info = q.stats()["overload_info"]
        expect_equal((info["count"], info["now"], info["reports"]), (1, 0, 0), "count, now, reports")
        time.sleep(0.2)
        # What happened meanwhile is past when reports are switched on.
        q.change(overload_report=100000)
        net.traffic(0.2, Stream("l", ecn=ECT1, pps=100))
        expect_equal(listener.take(1), [], "reports of what is long past")
        net.traffic(1.5, *overload(1.5))
        reports = listener.take(3)
        expect_equal([(r["event"], r["count"]) for r in reports], [("begin", 1), ("end", 1)], "reports, switched on")


@test("R39", needs="timed ext")
def overload_is_heard_in_the_namespace_of_its_device_only_and_by_anybody_there():
    """Also by a process without privileges: a child as nobody listens and writes down what it hears."""
    net = shared_net()
    with lib.overload_listener(net.rtr) as here, lib.overload_listener(net.rcv) as there, \
            lib.overload_listener(net.rtr) as too, nobody_listens(net.rtr) as nobody, net.aqm():
        net.traffic(1.5, *overload(1.5))
        reports = here.take(4)
        expect_equal([r["event"] for r in reports], ["begin", "end"], "reports in the device's namespace")
        expect_equal([r["event"] for r in too.take(0.1)], ["begin", "end"], "reports to a second listener")
        expect_equal(there.take(0.1), [], "reports in another namespace")
        expect_equal(nobody(), "begin end", "reports to a process without privileges")


def be_nobody():
    """Give up all privileges."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


@contextlib.contextmanager
def nobody_listens(netns):
    """A process of uid 65534 that listens until it is asked what it heard."""
    ask, answer = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        # Or it would wait for itself when a test fails and nobody asks.
        os.close(ask[1])
        os.close(answer[0])
        try:
            with lib.in_netns(netns):
                be_nobody()
                heard = "nothing"
                try:
                    listener = lib.OverloadListener(None)
                    os.write(answer[1], b"ready\n")
                    select.select([ask[0]], [], [])
                    heard = " ".join(r["event"] for r in listener.take(0.1))
                except OSError as error:
                    os.write(answer[1], b"ready\n")
                    heard = f"refused: {error.strerror}"
                os.write(answer[1], heard.encode())
        finally:
            os._exit(0)
    os.read(answer[0], 100)

    def result():
        os.write(ask[1], b"?")
        return os.read(answer[0], 1000).decode()

    try:
        yield result
    finally:
        for fd in (*ask, *answer):
            os.close(fd)
        os.waitpid(pid, 0)


@test("R39", needs="timed ext")
def overload_of_a_qdisc_in_another_namespace_than_the_first_is_heard_there():
    """The device moves to another namespace: from then on it is heard there.  A move deletes the qdisc, so that it is
    a new one.
    """
    net = shared_net()
    with contextlib.ExitStack() as stack:
        other = f"dpo{os.getpid()}"
        lib.quiet_netns(stack, other)
        here, there = (stack.enter_context(lib.overload_listener(name)) for name in (net.rtr, other))
        lib.run("ip link add m0 type dummy", net.rtr)
        lib.run(f"ip link set m0 netns {other}", net.rtr)
        lib.run("ip link set m0 up", other)
        lib.run("ip addr add 10.9.0.1/24 dev m0", other)
        lib.run("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev m0", other)
        lib.tc("qdisc add dev m0 root handle 1: tbf rate 1mbit burst 1514 limit 100000000", other)
        expect_equal(lib.tc_request(other, lib.RTM_NEWQDISC, lib.NLM_F_CREATE, "m0", "10:", "1:1", "dualpi2",
                                    pack(overload_report=100000, **HARSH)), (0, ""), "add")
        send_at_twice(other, "10.9.0.2", 1e6, 1)
        reports = there.take(3)
        expect_equal(reports[0]["event"] if reports else None, "begin", "first report in the device's namespace")
        expect_equal(here.take(0.1), [], "reports in the old one")
        with lib.in_netns(other):
            expect_equal(reports[0]["ifindex"], socket.if_nametoindex("m0"), "ifindex")


def send_at_twice(netns, to, rate, seconds):
    """Packets of 500 bytes at twice the rate."""
    with lib.in_netns(netns):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((to, 9))
    with sock:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(5):
                sock.send(b"o" * 458)
            time.sleep(5 * 500 * 8 / (2 * rate))


@test("R39", needs="virtual_time ext")
def overload_of_a_qdisc_that_is_deleted_is_reported_as_ended():
    """Whatever time has passed since the begin was reported: who heard of it hears of its end, once."""
    net = shared_net()
    for wait in (0, 0.05, 0.2, 0.9):
        with lib.overload_listener(net.rtr) as listener:
            with net.aqm(overload_report=500000) as q:
                traffic = net.start(1.2, *overload(1.2))
                expect_equal((listener.next(5) or {}).get("event"), "begin", "first report")
                time.sleep(wait)
                expect_equal(q.stats()["overload"], 1, "in overload")
                lib.tc("qdisc del dev down root", net.rtr)
                expect_equal([(r["event"], r["count"]) for r in listener.take(2)], [("end", 1)],
                             "reports after the qdisc is gone")
                traffic.kill()
                q.check = lambda: None


@test("R39")
def overload_of_a_namespace_that_ends_is_no_trouble():
    """With a report due and traffic queued."""
    for wait in (0.01, 0.3):
        with Tree("tbf", "1mbit", overload_report=100000, **HARSH) as tree:
            with lib.overload_listener(tree.netns) as listener:
                send_at_twice(tree.netns, "10.7.0.2", 1e6, 0.5)
                expect_equal((listener.next(5) or {}).get("event"), "begin", "first report")
                send_at_twice(tree.netns, "10.7.0.2", 1e6, wait)
                lib.run(["ip", "netns", "del", tree.netns])
    time.sleep(1.5)


@test("R39", needs="destructive ext")
def overload_listener_stays_when_the_module_goes_and_comes():
    """The module can be removed with a listener there, who is then silent; the family is gone with it."""
    module = "/sys/module/sch_dualpi2"
    with open(f"{module}/refcnt", encoding="ascii") as file:
        if file.read().strip() != "0":
            raise Failure("the module is in use before the test")
    with lib.overload_listener(None) as listener:
        lib.run("rmmod sch_dualpi2")
        with lib.Socket(None, lib.NETLINK_GENERIC) as sock:
            expect_equal(lib.genl_family(sock, "dualpi2"), (None, {}), "family without the module")
        expect_equal(listener.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0, "error of the listener")
        lib.load_module()
    with lib.overload_listener(None):
        pass


@each((0, 10, 25, 50, 90), ("R30", "R35"), name=lambda pct: f"{pct}_percent" if pct else "default",
      needs="virtual_time ext")
def overload_with_p_cmax_CASE_begins_there_in_both_queues(percent):
    """p' rises until both queues drop; what was sampled says at which p_C that is: the first p_C in overload is not
    below it, the last one before is.  One flag for both: from there on ECT is dropped in both.
    """
    net = shared_net()
    p_cmax = (percent or 25) / 100
    load = 0.75 if percent < 40 else 5 if percent == 90 else 1.5
    with net.aqm(p_cmax=percent) as q:
        result, samples = net.sampled(q, 3, Stream("c", ecn=ECT0, bps=load * R), Stream("l", ecn=ECT1, bps=load * R),
                                      every=0.005)
        first = next((n for n, st in enumerate(samples) if st["overload"]), None)
        expect(first, "no overload")
        before, after = samples[first - 1], samples[first]
        note(f"p_C {before['p_c']:.4f} before, {after['p_c']:.4f} in overload")
        expect(before["p_c"] < p_cmax <= after["p_c"], f"overload began between {before['p_c']} and {after['p_c']}")
        for name in "cl":
            expect_equal(before[name]["counters"]["ect_dropped_overload"], 0, f"{name}: dropped before it")
            expect(result[name].lost > 10, f"{name}: hardly a loss")
        # It ends at half of that.
        out = [st["p_c"] for st in samples[first:] if not st["overload"]]
        expect(all(p < p_cmax for p in out), f"out of overload at {out}")
        expect_equal(q.stats()["knobs"]["p_cmax"], percent, "p_cmax shown")


@test("R30", "R40", needs="virtual_time ext")
def overload_state_outlasts_the_shedding_by_8_updates():
    """What is dropped for overload goes by p_C alone; the state, for count and reports, ends when p_C has been below
    p_Cmax for 8 updates of 16 ms, and its end is when it fell.  1.5 times the rate, then 1.15 times of Not-ECT, which
    takes p_C from 1/3 to 0.13.
    """
    hold = 8 * 0.016
    with shared_aqm() as (net, q):
        _, samples = net.sampled(q, 7, Stream("c", ecn=ECT0, bps=0.75 * R, stop=3),
                                 Stream("l", ecn=ECT1, bps=0.75 * R, stop=3),
                                 Stream("then", bps=1.05 * R, start=3), Stream("ect0", ecn=ECT0, bps=0.1 * R, start=3),
                                 every=0.002)
        after = [st for st in samples if st["at"] > 3]
        fell = 1 + max(n for n, st in enumerate(after) if st["p_c"] >= 1 / 4)
        ended = next(n for n, st in enumerate(after) if not st["overload"])
        note(f"p_C fell at {after[fell]['at']:.3f} s, the state ended at {after[ended]['at']:.3f} s")
        expect_between(after[ended]["at"] - after[fell]["at"], hold - 0.02, hold + 0.02, "the state lasted on, s")
        for kind in ("ect", "not_ect"):
            for queue in "cl":
                expect_equal(len({st[queue]["counters"][f"{kind}_dropped_overload"] for st in after[fell:]}), 1,
                             f"{queue}: numbers of {kind} dropped for overload since p_C fell")
        aqm = [st["c"]["counters"]["not_ect_dropped_aqm"] for st in after]
        expect(aqm[ended] > aqm[fell], "nothing was dropped below overload while the state lasted")
        info = q.stats()["overload_info"]
        begun = next(st["at"] for st in samples if st["overload"])
        expect_equal((info["count"], info["now"]), (1, 0), "count, now")
        expect_between(info["duration_ns"] / 1e9 - (after[fell]["at"] - begun), -0.02, 0.02,
                       "duration less that of what was seen, s")


# The tracepoint

TRACING = "/sys/kernel/tracing"
EVENT = f"{TRACING}/events/dualpi2/dualpi2_verdict"


@contextlib.contextmanager
def tracing(on=True):
    """The tracepoint switched on; yields a function that gives what was traced, a list of dicts."""
    if not os.path.exists(f"{TRACING}/trace"):
        if not os.path.isdir(TRACING):
            if lib.user_mode_linux():
                raise Skip("this user-mode Linux has no tracer; stock kernels run this test")
            raise Failure("the kernel has no tracer")
        lib.run(f"mount -t tracefs tracefs {TRACING}")
    expect(os.path.isdir(EVENT), f"no {EVENT}")

    def put(name, text):
        with open(name, "w", encoding="ascii") as file:
            file.write(text)

    def take():
        with open(f"{TRACING}/trace", encoding="ascii", errors="replace") as file:
            lines = [line.split("dualpi2_verdict: ", 1)[1] for line in file if "dualpi2_verdict: " in line]
        return [dict(word.split("=", 1) for word in line.split()) for line in lines]

    put(f"{TRACING}/buffer_size_kb", "16384")
    put(f"{TRACING}/trace", "")
    put(f"{EVENT}/enable", "1" if on else "0")
    try:
        yield take
    finally:
        put(f"{EVENT}/enable", "0")


@test("tracepoint", needs="destructive ext")
def tracepoint_format_has_the_fields_that_are_documented():
    with tracing(False):
        with open(f"{EVENT}/format", encoding="ascii") as file:
            text = file.read()
        for field in ("ifindex", "handle", "queue", "ecn", "profile", "len", "sojourn_ns", "p_q32", "p_c_q32",
                      "p_cl_q32", "verdict"):
            expect(f" {field};" in text, f"no field {field}: {text}")


@test("tracepoint", needs="destructive ext")
def tracepoint_switched_off_traces_nothing():
    net = shared_net()
    with tracing(False) as take, net.aqm():
        net.traffic(1, *overload(1))
        expect_equal(take(), [], "traced")


@test("tracepoint", needs="destructive ext")
def traced_drops_have_reasons_that_tell_aqm_overload_and_limit_apart():
    """What dropwatch shows, by skb:kfree_skb. Before 7.2 the kernel has one reason for all of them."""
    net = shared_net()
    event = f"{TRACING}/events/skb/kfree_skb/enable"
    loads = (({}, "dropped_aqm", [Stream("x", bps=1.2 * R)]),
             ({"p_cmax": 25}, "dropped_overload", [Stream("x", ecn=ECT1, bps=2 * R)]),
             ({"limit": 5}, "dropped_limit", [Stream("x", ecn=ECT1, bps=2 * R)]))
    reasons = {}
    with tracing(False):
        for knobs, cause, streams in loads:
            with net.aqm(**knobs) as q:
                with open(f"{TRACING}/trace", "w", encoding="ascii"), open(event, "w", encoding="ascii") as file:
                    file.write("1")
                net.traffic(3, *streams)
                with open(event, "w", encoding="ascii") as file:
                    file.write("0")
                q.until_idle()
                st = q.stats()
            with open(f"{TRACING}/trace", encoding="ascii", errors="replace") as file:
                seen = [line.rsplit("reason: ", 1)[1].strip() for line in file if "kfree_skb: " in line]
            dropped_here = st["c"][cause] + st["l"][cause]
            expect(dropped_here > 100, f"only {dropped_here} {cause}")
            reasons[cause] = max(set(seen), key=seen.count)
            note(f"{cause}: {dropped_here}, traced: { {reason: seen.count(reason) for reason in set(seen)} }")
            expect_equal(seen.count(reasons[cause]), st["drops"], f"packets with the reason {reasons[cause]}")
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    expect_equal(len(set(reasons.values())), 3 if release >= (7, 2) else 1, f"reasons {reasons}")
    expect(not any("NOT_SPECIFIED" in reason for reason in reasons.values()), f"no reason: {reasons}")


def traced_counts(events, **want):
    return sum(all(event.get(key) == value for key, value in want.items()) for event in events)


@test("tracepoint", needs="destructive ext")
def tracepoint_tells_every_decision_of_both_queues():
    """Overload and before, all codepoints: verdicts agree with the counters, delays with the histogram."""
    net = shared_net()
    with tracing() as take, net.aqm(rate=2e6) as q:
        streams = [Stream(name, ecn=ecn, bps=0.4e6 * 2, size=500 + 100 * ecn) for ecn, name in enumerate(CODEPOINTS)]
        result = net.traffic(4, *streams)
        q.until_idle()
        events = take()
        st = q.stats()
        note(events[:2])
        with lib.in_netns(net.rtr):
            index = socket.if_nametoindex("down")
        expect_equal({(event["ifindex"], event["handle"]) for event in events}, {(str(index), "10:")},
                     "ifindex and handle")
        for queue, n in ((queue, st[queue]["counters"]) for queue in "cl"):
            mine = [event for event in events if event["queue"].lower()[0] == queue]
            expect_equal(len(mine), n["presented"], f"{queue}: decisions")
            expect_equal(sum(int(event["len"]) for event in mine), n["presented_bytes"], f"{queue}: their bytes")
            for verdict, key in (("mark_classic", "marked_classic"), ("mark_native", "marked_native"),
                                 ("mark_coupled", "marked_coupled")):
                # A decision to mark is one also where the packet carries CE already.
                with_ce = traced_counts(mine, verdict=verdict, ecn=str(CE))
                expect_equal(traced_counts(mine, verdict=verdict) - with_ce, n[key], f"{queue}: {key}")
            for verdict, cause in (("drop_aqm", "aqm"), ("drop_overload", "overload")):
                expect_equal(traced_counts(mine, verdict=verdict), dropped(n, cause), f"{queue}: {verdict}")
            waits = [int(event["sojourn_ns"]) for event in mine if not event["verdict"].startswith("drop")]
            delay = st[queue]["delay"]
            expect_equal((len(waits), sum(waits), max(waits)), (n["forwarded"], delay["sum_ns"], delay["max_ns"]),
                         f"{queue}: packets, sum and maximum of their delays")
            hist = [0] * delay["buckets"]
            for wait in waits:
                hist[lib.bucket_of(delay, wait)] += 1
            expect_equal(hist, delay["hist"], f"{queue}: histogram")
        for ecn, name in enumerate(CODEPOINTS):
            seen = [event for event in events if event["ecn"] == str(ecn)]
            expect_equal(len(seen), result[name].sent_ever, f"decisions on {name}")
            queue = "l" if ecn in (ECT1, CE) else "c"
            expect_equal({event["queue"].lower()[0] for event in seen}, {queue}, f"queue of {name}")
            expect_equal({event["len"] for event in seen}, {str(500 + 100 * ecn)}, f"length of {name}")
        for event in events:
            p, p_c, p_cl = (int(event[key]) for key in ("p_q32", "p_c_q32", "p_cl_q32"))
            expect(abs(p * p / 2**32 - p_c) <= 1 and p_cl == min(2 * p, 2**32), f"probabilities of {event}")


@test("bad input")
def reader_without_privileges_sees_all_and_changes_nothing():
    with Tree("htb", "2mbit", **CALM) as tree:
        for n in range(40):
            tree.mix.send(ECNS[n % 4], 500)
        tree.drain()
        ends = os.pipe()
        pid = os.fork()
        if not pid:
            said = "nothing"
            try:
                with open(f"/run/netns/{tree.netns}", encoding="ascii") as there:
                    lib.setns(there)
                be_nobody()
                lib.check_classes(None, "d0", "10:")
                answer = lib.tc_request(None, lib.RTM_NEWQDISC, 0, "d0", "10:", "1:10", "dualpi2", pack(limit=7))
                said = errno.errorcode.get(answer[0], "accepted")
            except (Failure, OSError) as error:
                said = str(error)
            finally:
                os.write(ends[1], said.encode())
                os._exit(0)
        os.waitpid(pid, 0)
        expect_equal(os.read(ends[0], 1000).decode(), "EPERM", "answer to a change by nobody")
        for end in ends:
            os.close(end)
        expect(tree.leaf()["knobs"]["limit"] != 7, "the limit was changed")
        tree.check_all()


if __name__ == "__main__":
    # Where the traffic's receiver does not run for a second, packets are lost after the qdisc.
    lib.main(needs="timed ext")
