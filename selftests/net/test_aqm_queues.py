#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug lockdep=off
# suite: long kernel=stock
"""The scheduler, the native L4S marker, limits, and what the counters say of them."""

import math
import time

from lib import (CE, ECT1, EXT_TOTALS, NOT_ECT, XSTATS, Stream, bucket_edges, expect, expect_between, expect_equal,
                 main, note, percentile, shared_aqm, shared_net, tc_stats, test, user_mode_linux)

R = 10e6        # bit/s
T_US = 800      # of one packet of 1000 bytes
MTU = 1514


# Scheduler

@test("R22")
def scheduler_c_backlogged_l_waits_for_two_packets_at_most():
    """The Classic packet that is being sent, and one more when it is Classic's
    turn.  What a packet takes outside of the queue, the least delay shows.
    """
    net = shared_net()
    with net.aqm():
        result = net.traffic(8, Stream("c", bps=0.9 * R), Stream("l", ecn=ECT1, bps=0.3 * R, jitter=1), warmup=4)
        delay = result["l"].delay_us
        expect(result["c"].delay_us["min"] > 2 * T_US, "C was not backlogged")
        expect_between(delay["p99"], 0, delay["min"] + 2 * T_US, "P99 of the delay of L, us")


@test("R35", "G2", "R23")
def scheduler_l_unresponsive_classic_waits_for_its_share_at_most():
    """1.5 R of ECT(1) and 4 Classic packets a second, all of one size, so that no two of the latter wait at a time.
    When Classic sent, the credit fell by l_weight packets, so that after l_weight / c_weight of L4S it is Classic's
    turn again; one more packet is being sent when it arrives. The first one finds the credit of an idle link, MTU
    (c_weight - l_weight).
    """
    net = shared_net()
    for protection in (10, 0, 1, 50):
        c_weight = max(protection, 1)
        l_weight = 100 - c_weight
        most = math.ceil(l_weight / c_weight) + 1
        first_most = max(most, MTU * (l_weight - c_weight) // (1000 * c_weight) + 2)
        with net.aqm(c_protection=protection):
            result = net.traffic(6, Stream("l", ecn=ECT1, bps=1.5 * R), Stream("c", pps=4.03, start=0.5, trace=True))
            out_of_queue_us = result["l"].delay_us["min"]
            waits = [delay / 1000 - out_of_queue_us for _, delay, _ in result["c"].records if delay is not None]
            expect(len(waits) > 6, f"only {len(waits)} Classic packets arrived")
            expect_between(waits[0] / T_US, 0, first_most, f"packets that the first waited, {protection} %")
            # A stock kernel may do something else meanwhile.
            expect_between(max(waits[1:]) / T_US, most - 3, most + (0 if user_mode_linux() else 0.2),
                           f"packets that the others waited at most, {protection} %")


@test("R22")
def scheduler_burst_of_l_is_not_interrupted_by_the_backlog_of_c():
    """While C sends alone it has no claim: the credit is that of an idle link, which MTU (c_weight - l_weight) says are
    12.1 packets of 1000 bytes before it is above 0. Of a burst of 12 number i waits for i others and the one being
    sent. 0.3 ms are for what a packet takes outside of the queue; another in between took 0.8 ms.
    """
    net = shared_net()
    with net.aqm():
        result = net.traffic(6, Stream("c", bps=R, start=0.0001), Stream("l", ecn=ECT1, pps=120, burst=12, trace=True))
        expect(result["c"].delay_us["p50"] > 2 * T_US, "C was not backlogged")
        records = result["l"].records
        expect_equal(result["l"].lost, 0, "loss of L")
        late = max(delay / 1000 - T_US * (index % 12 + 1) for index, (_, delay, _) in enumerate(records))
        expect_between(late, -T_US, 300, "most that a packet waited beyond that, us")


@test("R24")
def scheduler_with_a_backlog_keeps_the_link_busy():
    """Only C, only L, and C with L on and off.  Both reads fall within a
    packet, and within the millisecond that a read takes (1.25 packets).
    """
    net = shared_net()
    loads = {
        "only C": [Stream("c", bps=1.2 * R)],
        "only L": [Stream("l", ecn=ECT1, bps=1.2 * R)],
        "L on and off": [Stream("c", bps=1.1 * R),
                         Stream("l", ecn=ECT1, bps=R, burst=250, start=0.5)],
    }
    for name, streams in loads.items():
        with net.aqm() as q:
            traffic = net.start(6, *streams)
            time.sleep(2)
            begun, before = time.monotonic(), q.stats()["bytes"]
            time.sleep(3)
            after, ended = q.stats()["bytes"], time.monotonic()
            traffic.wait()
            expect_between((after - before) / 1000 - (ended - begun) * 1e6 / T_US, -4.5, 4.5,
                           f"{name}: packets sent less those of a busy link")


# Native marker

@test("C6", "G7")
def c06_lone_l_packet_is_never_marked_natively():
    """At 1 Mbit/s a packet takes 8 ms, six times the end of the ramp.  An L packet
    that waits for a Classic one for 7 ms is still alone in its queue.
    """
    net = shared_net()
    for rate in (1e6, 0.5e6):
        with net.aqm(rate=rate) as q:
            result = net.traffic(4, Stream("c", pps=10, size=1514),
                                 Stream("c too", pps=10, size=1000, start=0.0002),
                                 Stream("l", ecn=ECT1, pps=10, start=0.001))
            one = result["l"]
            expect(one.delay_us["min"] > 5000, f"L waited only {one.delay_us['min']} us")
            expect_equal(one.ecn, [0, one.sent, 0, 0], "codepoints of L")
            expect_equal(q.stats()["p"], 0, "p'")


# htb lets an idle class send what its burst of 1514 bytes holds, and the packet that goes below it: of a burst of
# packets of 1250 bytes numbers 0 and 1 go at once, and number i when i * 1250 - 1514 bytes have been sent: 0.8, 1.8,
# 2.8 ms and so on, less the time since number 0 arrived. No number is within 0.2 ms of the 1 ms of the threshold.
# Number 2 finds its queue empty.
SIZE = 1250


def bursts(net, packets, number):
    """Bursts into an idle L queue: for each burst the list of (delay us, CE?)."""
    one = net.traffic(number * 0.1, Stream("l", ecn=ECT1, pps=10 * packets, burst=packets, size=SIZE, trace=True))["l"]
    expect_equal(one.lost, 0, "loss")
    base_us = min(delay for _, delay, _ in one.records) / 1000
    marks = [(delay / 1000 - base_us, tos & 3 == CE) for _, delay, tos in one.records]
    return [marks[at:at + packets] for at in range(0, len(marks), packets)]


def pattern(burst):
    """The marks of a burst as text."""
    return "".join("x" if mark else "." for _, mark in burst)


@test("G10", "R10", "C7")
def native_step_marks_what_waited_longer_already_in_the_first_burst():
    with shared_aqm(ramp_us=0) as (net, q):
        found = bursts(net, 7, 10)
        note(f"first burst {[(round(delay), mark) for delay, mark in found[0]]}")
        expect_equal([pattern(burst) for burst in found], ["...xxxx"] * 10, "marks")
        expect_equal(q.stats()["step_marks"], 40, "step_marks")


@test("C6", "G7")
def native_min_qlen_step_spares_what_joins_a_short_queue():
    """4: marked is what joins as the fifth or later; number i joins as number i - 1."""
    net = shared_net()
    with net.aqm(ramp_us=0, min_qlen_step=4):
        expect_equal([pattern(burst) for burst in bursts(net, 9, 5)], ["......xxx"] * 5, "marks")


@test()
def native_step_thresh_in_packets_marks_while_more_are_queued():
    """3 packets. When number i is sent, 9 - i are queued; number 2 joined an empty queue and is spared.
    """
    net = shared_net()
    with net.aqm(step_thresh_pkts=3):
        expect_equal([pattern(burst) for burst in bursts(net, 9, 5)], ["...xxx..."] * 5, "marks")


@test("G5")
def native_ramp_marks_in_proportion_to_the_wait():
    """A ramp from 1 ms to 9 ms. The sum of the probabilities that the delays give is the number of marks except 2 of
    even spacing, 0.1 ms of 8 ms a packet by which a wait may differ from what the receiver saw.
    """
    with shared_aqm(step_thresh_us=5000, ramp_us=8000) as (net, q):
        found = bursts(net, 9, 60)
        expect_equal(q.stats()["p"], 0, "p'")
        eligible = [packet for burst in found for packet in burst[3:]]
        wanted = [min(max((delay - 1000) / 8000, 0), 1) for delay, _ in eligible]
        slack = 2 + len(eligible) * 0.1 / 8
        expect_between(sum(mark for _, mark in eligible) - sum(wanted), -slack, slack,
                       f"marks less the {sum(wanted):.0f} expected")
        expect(not any(mark for burst in found for _, mark in burst[:3]), "number 0 to 2 marked")
        # Each number of a burst for itself: at most as uneven as a coin.
        for number in range(3, 9):
            p = wanted[number - 3]
            marks = sum(burst[number][1] for burst in found)
            slack = 5 * math.sqrt(60 * p * (1 - p)) + 60 * 0.1 / 8
            expect_between(marks - 60 * p, -slack, slack, f"marks of number {number} less expected")


@test("R10", "G5")
def native_default_ramp_is_silent_below_800_us_and_full_above_1200_us():
    net = shared_net()
    with net.aqm():
        found = bursts(net, 7, 10)
        for burst in found:
            for number, (delay_us, mark) in enumerate(burst):
                if number >= 3 and delay_us > 1300:
                    expect(mark, f"number {number} waited {delay_us:.0f} us, not marked")
                if number < 3:
                    expect(not mark, f"number {number} waited {delay_us:.0f} us, marked")


# Counters

@test("C8")
def c08_ce_through_an_idle_queue_is_no_mark():
    with shared_aqm() as (net, q):
        one = net.traffic(2, Stream("ce", ecn=CE, pps=100))["ce"]
        st = q.stats()
        expect_equal(one.ecn[CE], one.sent, "CE received")
        expect_equal((st["ecn_mark"], st["step_marks"]), (0, 0), "marks")
        expect_equal(st["l"]["arrived_ce"], one.sent, "arrived_ce of L")


@test("C8")
def c08_ce_under_load_is_no_mark():
    """Marks are exactly the ECT(1) that arrived as CE, by whichever queue."""
    with shared_aqm() as (net, q):
        q.filter("protocol ip prio 1 flower ip_proto udp dst_port 5003 classid 10:3")
        result = net.traffic(6, Stream("c", bps=0.7 * R), Stream("l", ecn=ECT1, bps=0.2 * R),
                             Stream("ce in l", ecn=CE, bps=0.1 * R),
                             Stream("ce in c", ecn=CE, bps=0.1 * R))
        q.until_idle()
        st = q.stats()
        expect_equal(st["ecn_mark"], result["l"].ecn[CE], "marks")
        expect(st["ecn_mark"] > 0, "nothing was marked")
        expect_equal(st["l"]["marked_coupled"] + st["l"]["marked_native"], st["ecn_mark"], "by L")
        expect_equal(st["l"]["arrived_ce"], result["ce in l"].sent, "arrived_ce of L")
        expect_equal(st["c"]["arrived_ce"], result["ce in c"].sent, "arrived_ce of C")


@test("R20", "G10", "R36", "C9")
def c09_counters_are_what_sender_and_receiver_say():
    with shared_aqm() as (net, q):
        result = net.traffic(6, Stream("c", bps=0.85 * R), Stream("l", ecn=ECT1, bps=0.3 * R))
        q.until_idle()
        st = q.stats()
        for name in "cl":
            one = result[name]
            expect_equal(st[name]["enqueued"], one.sent, f"{name}: enqueued")
            expect_equal(st[name]["enqueued_bytes"], one.sent * 1000, f"{name}: enqueued_bytes")
            expect_equal(st[name]["sent"], one.received, f"{name}: sent")
            expect_equal(st[name]["sent_bytes"], one.received * 1000, f"{name}: sent_bytes")
        expect_equal(st["c"]["dropped_aqm"] + st["c"]["dropped_overload"], result["c"].lost, "c: drops")
        expect_equal(st["drops"], result["c"].lost + result["l"].lost, "drops of the qdisc")
        expect_equal((st["unparsed"], st["filter_dropped"], st["gso_failed"], st["mark_failed"]),
                     (0, 0, 0, 0), "failures")


@test("C3")
def c03_delays_of_queues_emptied_by_change_are_0():
    with shared_aqm(rate=100000, drop_overload=0) as (net, q):
        traffic = net.start(0.3, Stream("c", pps=100, burst=20, count=20),
                            Stream("l", ecn=ECT1, pps=100, burst=20, count=20))
        time.sleep(0.3)
        expect(q.stats()["delay_c"] > 100000, "no backlog to begin with")
        q.change(limit=1)
        time.sleep(1)
        st = q.stats()
        expect_equal((st["qlen"], st["backlog"], st["delay_c"], st["delay_l"], st["memory_used"]),
                     (0, 0, 0, 0, 0), "qlen, backlog, delays and memory")
        expect(st["c"]["dropped_purge"] > 0, "nothing was purged")
        traffic.wait()
        q.change(limit=100)
        one = net.traffic(1, Stream("l", ecn=ECT1, pps=5))["l"]
        expect_equal(one.received, 5, "packets afterwards")


def expect_accepted(st, name, result):
    """Nothing went past the counters of arrivals."""
    queue = st[name]
    expect_equal(queue["enqueued"] + queue["dropped_limit"] + queue["dropped_memory"],
                 result.sent_ever, f"{name}: arrivals")


@test("R36")
def limit_in_packets_drops_at_the_tail_of_the_right_queue():
    """20 packets; 400 at once, so that the AQM has no time to interfere."""
    net = shared_net()
    for name, ecn in (("c", NOT_ECT), ("l", ECT1)):
        with net.aqm(limit=20, rate=100000) as q:
            one = net.traffic(1, Stream(name, ecn=ecn, pps=400, count=400, burst=400))[name]
            st = q.stats()
            other = "cl"["lc".index(name)]
            expect_accepted(st, name, one)
            expect_equal(st["maxq"], 20, "most packets queued")
            # Besides the limit, two that the shaper let go at once and what it sends while they all arrive.
            expect_between(st[name]["dropped_limit"], 400 - 20 - 6, 400 - 20, f"{name}: dropped_limit")
            expect_equal(st[other]["dropped_limit"], 0, f"{other}: dropped_limit")
            expect_equal((st["c"]["dropped_memory"], st["l"]["dropped_memory"]), (0, 0), "dropped_memory")


@test("R36")
def limit_in_memory_drops_at_the_tail_of_the_right_queue():
    """Memory is counted in buffers as the kernel allocates them, 1 to 4 kB for 1000
    bytes: most ever is at most the limit, and above it less one such.
    """
    net = shared_net()
    for name, ecn in (("c", NOT_ECT), ("l", ECT1)):
        with net.aqm(memory_limit=20000, rate=100000) as q:
            one = net.traffic(1, Stream(name, ecn=ecn, pps=400, count=400, burst=400))[name]
            st = q.stats()
            other = "cl"["lc".index(name)]
            expect_accepted(st, name, one)
            expect(st[name]["dropped_memory"] > 300, f"{name}: dropped_memory {st[name]['dropped_memory']}")
            expect_equal(st[other]["dropped_memory"], 0, f"{other}: dropped_memory")
            expect_equal((st["c"]["dropped_limit"], st["l"]["dropped_limit"]), (0, 0), "dropped_limit")
            expect_between(st["max_memory_used"], 20000 - 4096, 20000, "most memory")


@test()
def drop_enqueue_counts_early_drops_only():
    """Not-ECT is dropped early, ECT(0) marked early; ECT(1) in L is as ever."""
    with shared_aqm(drop_early=1) as (net, q):
        result = net.traffic(6, Stream("c", bps=0.85 * R), Stream("l", ecn=ECT1, bps=0.3 * R))
        st = q.stats()
        expect_equal(st["c"]["dropped_early"], result["c"].lost, "c: dropped_early")
        expect(result["c"].lost > 0, "nothing was dropped")
        expect_equal(st["c"]["dropped_aqm"] + st["c"]["dropped_overload"], 0, "c: other drops")
        expect_equal(st["l"]["marked_coupled"] + st["l"]["marked_native"], result["l"].ecn[CE], "marks")


@test("R36")
def statistics_by_tc_are_those_by_netlink():
    """The plugin prints what the kernel says."""
    with shared_aqm() as (net, q):
        net.traffic(2, Stream("c", bps=0.85 * R), Stream("l", ecn=ECT1, bps=0.3 * R))
        q.until_idle()
        time.sleep(4)       # until p' is 0
        st = q.stats()
        shown = tc_stats(q.netns, q.dev, q.handle)
        own_words = {"packets_in_c": "pkts-in-c", "packets_in_l": "pkts-in-l", "step_marks": "step-mark"}
        for name in (*XSTATS.names, *EXT_TOTALS, "bytes", "packets", "drops", "backlog", "qlen"):
            word = own_words.get(name, name.replace("_", "-"))
            expect_equal(shown[word], st[name], word)
        for name, word in (("c", "classic"), ("l", "l4s")):
            one = st[name] | st[name].pop("counters")
            delay = st[name].pop("delay")
            for key, value in one.items():
                if isinstance(value, int):
                    expect_equal(shown[word][key.replace("_", "-")], value, f"{word} {key}")
            expect_histogram_shown(shown[word]["delay"], delay)
        for key in ("duration_ns", "reports"):
            expect_equal(shown["overload-" + key.replace("_", "-")], st["overload_info"][key], f"overload {key}")
        # The clock on the wall is read again for each reader, as many ns after the other one.
        expect_between(shown["overload-start-ns"] - st["overload_info"]["start_ns"], -1e6, 1e6, "overload start, ns")


def expect_histogram_shown(shown, delay):
    """Buckets that hold packets, with their edges, and what follows from them."""
    for key in ("max_ns", "sum_ns", "beyond", "generation", "unit_ns"):
        expect_equal(shown[key.replace("_", "-")], delay[key], f"delay {key}")
    total = sum(delay["hist"]) + delay["beyond"]
    expect_equal(shown["count"], total, "count")
    expect(abs(shown["mean-ns"] - delay["sum_ns"] / total) <= 1, f"mean {shown['mean-ns']}")
    edges = bucket_edges(delay)
    expect_equal(shown["beyond-ns"], edges[-1], "end of the last bucket")
    want = [{"from-ns": a, "to-ns": b, "packets": n} for a, b, n in zip(edges, edges[1:], delay["hist"]) if n]
    expect_equal([one for one in shown["buckets"] if one["packets"]], want, "buckets")
    for part, word in ((0.5, "p50-ns"), (0.9, "p90-ns"), (0.99, "p99-ns"), (0.999, "p999-ns")):
        low, high = percentile(delay, part)
        expect_between(shown[word], low, high, word)


if __name__ == "__main__":
    main(needs="virtual_time ext")
