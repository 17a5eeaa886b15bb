#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check tree=top
"""Tests of dualpi2-top without a kernel: decoding, differences, percentiles, layout, metrics. KTAP on stdout.

The statistics are made from the header (payload.py). Where prometheus_client is missing, the tests of metrics say so
and fail; the rest needs Python alone, 3.9 or later.
"""

import io
import json
import random
import struct
import sys
import unittest.mock

from lib_top import ROOT, full, hist_of, qdisc, sample, tc_message, watched
import payload
from payload import HEADER, app, enum, queue
from dualpi2 import Trouble
from dualpi2.kernel import netlink, stats
from dualpi2.kernel.qdisc import Kernel, Reports
from dualpi2.top import details, report
from ktap import expect_equal as equal, main, test


# Decoding

@test
def every_field_is_read_from_its_place():
    def numbered(name, first):
        return {field: first + index for index, field in enumerate(HEADER.layout(name).names) if field != "pad"}

    counters = {"c": numbered("tc_dualpi2_counters", 1000), "l": numbered("tc_dualpi2_counters", 2000)}
    xstats, overload = numbered("tc_dualpi2_xstats", 1), numbered("tc_dualpi2_overload", 50)
    link = numbered("tc_dualpi2_link", 70)
    ext = numbered("tc_dualpi2_ext_xstats", 100)
    del ext["magic"], ext["size"]
    found = full(c=counters["c"], l=counters["l"], xstats=xstats, ext=ext, overload=overload, link=link)
    equal(found.level, "full")
    equal(found.xstats, xstats)
    equal(found.overload, overload)
    equal(found.link, link)
    for name in "cl":
        equal(found.queues[name].counters, counters[name], name)
    equal(found.ext, {name: value for name, value in ext.items() if "reserved" not in name})


@test
def linux_own_shows_what_it_has():
    found = stats.Sample(app(xstats={"prob": 1 << 31, "ecn_mark": 5, "credit": -3}), stats_bytes=100)
    equal((found.level, found.xstats["credit"], found.probability("p_c")), ("basic", -3, None))
    # A later Linux may have a longer struct.
    equal(stats.Sample(app(xstats={"ecn_mark": 5}) + b"\1" * 8).xstats["ecn_mark"], 5)
    assert "in-tree dualpi2" in report.missing(found)[0]
    equal(stats.Sample(b"").level, "none")


@test
def unknown_attributes_are_skipped():
    found = full(l={"forwarded": 7}, more=payload.attr(99, b"123456789"), longer=b"\xff" * 24)
    equal((found.level, found.queues["l"].counters["forwarded"]), ("full", 7))


@test
def longer_and_shorter_structs_are_read():
    counters = payload.pack("counters", arrived_not_ect=5, dropped_purge_bytes=6)
    for data, last in ((counters + b"\xff" * 16, 6), (counters[:-8], None), (counters[:-3], None),
                       (counters[:8], None)):
        nest = payload.attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), data)
        found = sample(ext={}, c=nest, l=nest).queues["l"].counters
        equal((found["arrived_not_ect"], found.get("dropped_purge_bytes")), (5, last))


@test
def cut_payloads_never_fault():
    whole = app(xstats={}, ext={}, c=queue({}, {}, [1]), l=queue({}, {}, [1]), overload={},
                link={"burst_ns": 1, "drain_rate": 1})
    for size in range(len(whole)):
        entry = watched([qdisc(whole[:size])], [qdisc(whole[:size])])[0]
        details.lines([entry], 80, 0, "")
        json.dumps(report.as_json([entry], 0))


@test
def lying_lengths_never_fault():
    whole = bytearray(app(xstats={}, ext={}, c=queue({}, {}, [1]), l=queue({}, {}, [1]), overload={}, link={}))
    for at in range(256, len(whole) - 2, 2):
        for lie in (0, 3, 5, 0x7fff, 0xffff):
            changed = bytearray(whole)
            struct.pack_into("=H", changed, at, lie)
            entry = watched([qdisc(bytes(changed))], [qdisc(bytes(changed))])[0]
            details.lines([entry], 80, 0, "")
            json.dumps(report.as_json([entry], 0))


@test
def attribute_that_is_longer_than_all_is_not_read():
    data = payload.attr(1, b"1234") + payload.attr(2, b"12345678")
    equal(netlink.attr_list(data[:-1]), [(1, b"1234")])
    equal(netlink.attr_list(data), [(1, b"1234"), (2, b"12345678")])


@test
def nonsense_histogram_is_none():
    for delay in ({"unit_ns": 0}, {"buckets": 0}, {"buckets": 1 << 30}):
        equal(full(delay=delay, hist=[1]).queues["l"].has_histogram(), False, delay)


@test
def histogram_is_filled_up_with_zeros():
    found = full(delay={"buckets": 96}, hist=[1, 2])
    equal(found.queues["l"].hist, [1, 2] + [0] * 94)


# Percentiles

@test
def bucket_edges_are_those_of_the_header():
    edges = [stats.bucket_begin_ns(index, 1) for index in range(97)]
    equal(edges[:18], list(range(16)) + [16, 18])
    equal(edges[95:], [15 << 10, 16 << 10])
    for index in range(8, 96):
        assert (edges[index + 1] - edges[index]) * 8 <= edges[index], index


@test
def percentile_is_within_a_bucket_of_the_nearest_rank():
    source = random.Random(6)
    for number in (1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 5000):
        delays = sorted(int(source.lognormvariate(13, 1.5)) for _ in range(number))
        edges = [stats.bucket_begin_ns(index, 8192) for index in range(97)]
        hist = [sum(low <= value < high for value in delays) for low, high in zip(edges, edges[1:])]
        beyond = sum(value >= edges[96] for value in delays)
        found = stats.Delays(8192, hist, sum(delays), delays[-1], beyond)
        for percent in (50, 90, 99, 99.9):
            rank = -(-number * round(percent * 10) // 1000)
            true = delays[rank - 1]
            index = sum(edge <= true for edge in edges) - 1
            got = found.percentile_ns(percent)
            if index < 96:
                assert edges[index] <= got <= edges[index + 1], (number, percent, got, true)
            assert got <= delays[-1], (number, percent)
        equal(found.mean_ns(), round(sum(delays) / number))


@test
def percentile_ranks_are_exact_at_whole_thousands():
    found = stats.Delays(1000, hist_of({0: 999, 90: 1}), 0, 10**9, 0)
    equal(found.percentile_ns(99.9) < 1000, True)
    equal(found.percentile_ns(99.91), 10**9)
    many = 1 << 60
    found = stats.Delays(1000, hist_of({0: many - many // 1000, 50: many // 1000}), 0, 10**9, 0)
    equal(found.percentile_ns(99.9) < 1000, True, "beyond what a float holds")
    equal(found.percentile_ns(99.91) > 1000, True)


@test
def percentile_by_hand():
    # Bucket 8 is 8 to 9 us wide: 4 packets at 8.125, 8.375, 8.625, 8.875 us.
    found = stats.Delays(1000, hist_of({8: 4}), 34000, 8900, 0)
    equal([found.percentile_ns(percent) for percent in (25, 50, 75, 100)], [8125, 8375, 8625, 8900])
    found.max_ns = 8200
    equal(found.percentile_ns(75), 8200, "capped")
    found = stats.Delays(1000, hist_of({8: 1}), 0, 10**12, 9)
    equal(found.percentile_ns(50), 10**12, "beyond")
    equal(stats.Delays(1000, [0], 0, 0, 0).percentile_ns(50), None)


@test
def mean_survives_a_sum_beyond_64_bits():
    # 2^41 packets of about 15 ms are more than 2^64 ns.
    number, index = 1 << 41, 90
    middle = (stats.bucket_begin_ns(index, 1024) + stats.bucket_begin_ns(index + 1, 1024)) // 2
    found = full(delay={"unit_ns": 1024, "sum_ns": number * middle % 2**64, "max_ns": middle},
                 hist=hist_of({index: number}))
    assert number * middle > 2**64
    equal(stats.Delays.since_start(found.queues["l"]).mean_ns(), middle)
    edge = stats.bucket_begin_ns(96, 1024)
    found = full(delay={"unit_ns": 1024, "sum_ns": number * edge % 2**64, "max_ns": edge, "beyond": number})
    assert number * edge > 2**64
    equal(stats.Delays.since_start(found.queues["l"]).mean_ns(), edge, "beyond")


# Differences

@test
def counters_wrap_modulo_2_64():
    old, new = full(l={"forwarded": 2**64 - 3}), full(l={"forwarded": 4})
    equal(stats.Interval.between(new, old, 1).counters["l"]["forwarded"], 7)


@test
def counters_wrap_modulo_2_32():
    def at(number):
        return stats.Sample(app(xstats={"ecn_mark": number}), stats_bytes=1, stats_packets=number, drops=number)

    total = stats.Interval.between(at(5), at(2**32 - 2), 1).total
    equal((total["ecn_mark"], total["packets"], total["drops"]), (7, 7, 7))
    # 64 bits of packets, as the kernel tells them where 32 do not hold them.
    new, old = (stats.Sample(app(), stats_packets=number) for number in (2**33 + 1, 5))
    equal(stats.Interval.between(new, old, 1).total["packets"], 2**33 - 4)


@test
def shorter_queue_is_the_same_qdisc():
    old, new = full(l={"forwarded": 1, "queued": 9, "queued_bytes": 900}), full(l={"forwarded": 2})
    equal(stats.Interval.between(new, old, 1).counters["l"]["forwarded"], 1)


@test
def replaced_qdisc_begins_anew():
    for old, new in ((full(l={"forwarded": 10}), full(l={"forwarded": 9})),
                     (stats.Sample(app(), stats_bytes=10), stats.Sample(app(), stats_bytes=9)),
                     (full(), sample(ext={}))):
        equal(stats.Interval.between(new, old, 1), None)


@test
def replaced_qdisc_loses_its_history():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}), l=queue({"forwarded": number}, {"max_ns": 10**6}, [number])))]

    entries = watched(dump(1), dump(2), dump(3))
    equal(len(entries[0].history["l"]), 2)
    entries = watched(dump(1), dump(3), dump(2))
    equal((len(entries[0].history["l"]), entries[0].interval), (0, None))


@test
def histogram_differences_are_of_the_interval():
    old = full(delay={"sum_ns": 500, "max_ns": 10**6}, hist=hist_of({3: 5}))
    new = full(delay={"sum_ns": 90500, "max_ns": 10**6}, hist=hist_of({3: 5, 4: 2}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.packets, found.mean_ns(), found.max_exact, found.max_ns), (2, 45000, False, 5 * 8192))
    assert 4 * 8192 <= found.percentile_ns(99) <= 5 * 8192


@test
def new_greatest_delay_is_the_interval_s():
    old = full(delay={"max_ns": 30000}, hist=hist_of({3: 5}))
    new = full(delay={"max_ns": 33333}, hist=hist_of({3: 5, 4: 1}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.max_exact, found.max_ns, found.percentile_ns(99.9)), (True, 33333, 33333))


@test
def new_generation_counts_from_its_beginning():
    old = full(delay={"generation": 1, "max_ns": 10**9}, hist=hist_of({3: 500}))
    new = full(delay={"generation": 2, "max_ns": 20000, "unit_ns": 1024, "sum_ns": 40000}, hist=hist_of({12: 2}))
    found = stats.Interval.between(new, old, 1).delays["l"]
    equal((found.packets, found.unit_ns, found.max_ns, found.mean_ns()), (2, 1024, 20000, 20000))


@test
def histogram_that_goes_back_is_not_shown():
    old = full(delay={}, hist=hist_of({3: 5}))
    new = full(delay={}, hist=hist_of({3: 4}))
    equal(stats.Interval.between(new, old, 1).delays["l"], None)


@test
def shares_are_of_what_they_say():
    found = full(l={"arrived_not_ect": 10, "arrived_ect1": 60, "arrived_ect0": 20, "arrived_ce": 20, "forwarded": 80,
                    "marked_coupled": 5, "marked_native": 3, "not_ect_dropped_aqm": 5, "ect_dropped_overload": 1,
                    "ect_dropped_limit": 1})
    interval = stats.Interval.since_start(found)
    equal((interval.mark_share("l"), interval.drop_share("l", "not_ect"), interval.drop_share("l", "ect")),
          (0.1, 0.5, 0.02))
    equal(interval.drop_share("l", None), 7 / 110)
    equal(interval.mark_share("c"), None, "of nothing")


@test
def share_is_never_above_one():
    interval = stats.Interval.since_start(full(l={"arrived_not_ect": 2, "not_ect_dropped_aqm": 5}))
    equal(interval.drop_share("l", "not_ect"), 1.0)
    interval = stats.Interval.since_start(full(l={"not_ect_dropped_aqm": 5}))
    equal(interval.drop_share("l", "not_ect"), 1.0)


@test
def rates_are_per_second():
    def dump(number):
        return [qdisc(app(ext={}, c=queue({}, {}),
                          l=queue({"forwarded": number, "forwarded_bytes": 1000 * number}, {})))]

    interval = watched(dump(0), dump(50), seconds=2.0)[0].interval
    equal((interval.seconds, interval.rate("l", "forwarded"), 8 * interval.rate("l", "forwarded_bytes")),
          (2.0, 25, 200000))


@test
def vanished_qdisc_is_gone_and_new_one_waits():
    first, second = qdisc(app(ext={})), qdisc(app(ext={}), ifindex=3, device="eth1")
    entries = watched([first], [second])
    equal([(entry.device, entry.interval) for entry in entries], [("eth1", None)])


# Netlink, against a socket that a test feeds

class FakeSocket:
    """Answers of the kernel, made up; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = 0

    def send(self, data):
        self.sent = struct.unpack_from("=I", data, 8)[0]

    def recvmsg(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        data = b"".join(struct.pack("=IHHII", 16 + len(body), kind, flags, self.sent - late, 0) + body +
                        b"\0" * (-len(body) % 4) for kind, flags, body, late in
                        [(*one, 0)[:4] for one in answer])
        return data, [], 0, None


def message(kind=b"dualpi2", ifindex=1, handle=0x100000, late=0, parent=ROOT):
    """RTM_NEWQDISC; late: of so many dumps before."""
    return 36, 2, tc_message(app(), ifindex, handle, parent, kind, bytes=5, packets=6), late


DONE = (3, 2, struct.pack("=i", 0))
CUT_DONE = (3, 2 | 0x10, struct.pack("=i", 0))


def kernel(*answers):
    """A Kernel that gets these answers."""
    with unittest.mock.patch.object(netlink, "open_socket", lambda *_: FakeSocket(*answers)):
        found = Kernel()
    found.name = lambda number: {1: "lo"}.get(number)
    return found


@test
def dump_lists_dualpi2_alone():
    others = [message(b"fq_codel", handle=0x20000), message(b"dualpi2x", handle=0x30000)]
    found = kernel([*others, message(handle=0x40000, late=1), message()], [DONE]).qdiscs()
    equal([(one.device, netlink.handle_text(one.handle), netlink.handle_text(one.parent), one.bytes, one.packets)
           for one in found],
          [("lo", "10:", "root", 5, 6)])


@test
def dump_lists_a_dualpi2_mq_without_its_children():
    """Their packets are in the sums of the root; children of mq, and of other devices, are listed."""
    children = [message(handle=0, parent=0x100001 + queue) for queue in range(2)]
    elsewhere = [message(handle=0, parent=0x200001), message(handle=0, parent=0x100001, ifindex=2)]
    answer = kernel([*children, message(b"dualpi2_mq"), message(b"mq", handle=0x200000), *elsewhere], [DONE])
    answer.name = {1: "lo", 2: "eth0"}.get
    equal([(one.kind, one.device, netlink.handle_text(one.parent)) for one in answer.qdiscs()],
          [("dualpi2_mq", "lo", "root"), ("dualpi2", "lo", "20:1"), ("dualpi2", "eth0", "10:1")])


@test
def cut_dump_is_repeated():
    found = kernel([message(ifindex=1), CUT_DONE], [message(), message(), DONE])
    equal(len(found.qdiscs()), 1)
    equal(found.socket.sequence, 2)


@test
def dump_that_is_always_cut_ends():
    found = kernel(*[[message(), CUT_DONE]] * 11)
    equal(len(found.qdiscs()), 1)


@test
def vanished_device_is_left_out():
    equal(kernel([message(ifindex=77), DONE]).qdiscs(), [])


@test
def name_of_a_device_gives_the_terminal_no_commands():
    found = kernel()
    del found.name
    with unittest.mock.patch.object(netlink.socket, "if_indextoname", lambda _: "a\x1b[2J\udcff\x85ä"):
        equal(found.name(5), "a?[2J??ä")


@test
def refusal_of_the_kernel_is_a_sentence():
    try:
        kernel([(2, 0, struct.pack("=i", -1))]).qdiscs()
    except Trouble as trouble:
        assert "Operation not permitted); run it as root" in str(trouble), trouble
        return
    raise AssertionError("no trouble")


@test
def lost_reports_are_told():
    found = Reports.__new__(Reports)
    found.socket = kernel().socket
    found.socket.sock = FakeSocket(OSError(105, "No buffer space available"))
    equal(found.wait(), [{"lost": True}])


@test
def report_is_decoded_and_module_may_come_anew():
    def family(command, number, group):
        groups = payload.attr(1 | 0x8000, payload.attr(1, b"overload\0") + payload.attr(2, struct.pack("=I", group)))
        return (16, 0, struct.pack("=BBH", command, 2, 0) + payload.attr(1, struct.pack("=H", number)) +
                payload.attr(2, b"dualpi2\0") + payload.attr(7 | 0x8000, groups))

    def report_(number):
        def at(name, data):
            return payload.attr(enum("DUALPI2_A_" + name), data)
        return (number, 0, struct.pack("=BBH", enum("DUALPI2_CMD_OVERLOAD_END"), 1, 0) +
                at("IFINDEX", struct.pack("=I", 1)) + at("HANDLE", struct.pack("=I", 0x100000)) +
                at("PARENT", struct.pack("=I", ROOT)) + at("START_NS", struct.pack("=Q", 5)) +
                at("DURATION_NS", struct.pack("=Q", 6)) + at("COUNT", struct.pack("=I", 7)))

    found = Reports.__new__(Reports)
    found.kernel = kernel()
    found.socket = kernel().socket
    found.group, found.family = 9, 30
    found.socket.sock = FakeSocket([report_(30)], [family(2, 30, 9)], [report_(30)], [family(1, 31, 10)], [report_(31)])
    found.socket.sock.joined = []
    found.socket.sock.setsockopt = lambda level, option, value: found.socket.sock.joined.append((level, option, value))
    want = {"event": "end", "ifindex": 1, "device": "lo", "handle": "10:", "parent": "root", "start_ns": 5,
            "duration_ns": 6, "count": 7}
    equal(found.wait(), [want])
    equal([len(found.wait()) for _ in range(4)], [0, 0, 0, 1])
    equal(found.socket.sock.joined, [(270, 1, 10)])


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
    main()
