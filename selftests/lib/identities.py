# SPDX-License-Identifier: GPL-2.0-only
"""What must hold between the counters of a dualpi2 at any moment, and of its histograms of delay.

    check_identities(st)                        raise Failure unless the counters fit together
    check_classes(netns, dev, handle)           raise Failure unless the classes show what the qdisc shows
    bucket_edges(delay), bucket_of(delay, ns), percentile(delay, part)
    arrived(counters), dropped(counters, cause)

st is what netlink.parse_xstats() reads, with the qdisc's own counters.
"""

import bisect
import math

from netlink import CAUSES, COUNTERS, QUEUE_TOTALS, Failure, class_dump, parse_xstats, qdisc_dump

from dualpi2.kernel.stats import bucket_begin_ns, bucket_of_rank, rank_of

CODEPOINTS = ("not_ect", "ect1", "ect0", "ce")
CAUSES_ON_ARRIVAL, CAUSES_AT_DEPARTURE = ("limit", "memory", "early"), ("aqm", "overload")
CLASS_MINOR = {"l": 1, "c": 3}


def bucket_edges(delay):
    """Where each bucket begins, in ns, and where the last one ends."""
    return [bucket_begin_ns(n, delay["unit_ns"]) for n in range(delay["buckets"] + 1)]


def bucket_of(delay, ns):
    """The number of a delay's bucket; beyond the last one it is delay["buckets"]."""
    return bisect.bisect_right(bucket_edges(delay), ns) - 1


def percentile(delay, part):
    """(begin, end) in ns of the bucket that holds the packet of this rank, the nearest one."""
    edges = bucket_edges(delay)
    found = bucket_of_rank(delay["hist"], rank_of(100 * part, sum(delay["hist"]) + delay["beyond"]))
    return (edges[found[0]], edges[found[0] + 1]) if found else (edges[-1], math.inf)


def arrived(counters):
    """Packets of all codepoints."""
    return sum(counters[f"arrived_{name}"] for name in CODEPOINTS)


def dropped(counters, *causes):
    """Packets dropped for these causes, all by default, with ECN and without."""
    return sum(counters[f"{kind}_dropped_{cause}"] for cause in causes or CAUSES for kind in ("not_ect", "ect"))


def check_identities(st):
    """Fail unless the invariants between the counters of a dualpi2 hold.

    They are in include/uapi/linux/dualpi2.h, or follow from it.  A packet that a
    parent has peeked at is `sent` and still in qlen and backlog.  A reset purges
    without counting in the qdisc's own drops: st["was_reset"] is true after one.
    Packets that bypass a root are in the qdisc's own counters only:
    st["was_passed"] is true if bypass was on, even if it is off now.  Packets that left
    without memory for a histogram are in none: st["had_no_memory"] is true after any.
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
        for left, right, what in _counter_identities(q) + _delay_identities(q, st.get("had_no_memory")):
            same(left, right, f"{name}: {what}")
        for left, right, what in _counter_bounds(q) + _delay_bounds(q):
            at_most(left, right, f"{name}: {what}")
    both = {key: st["c"][key] + st["l"][key] for key in QUEUE_TOTALS}
    # The qdisc counts a GSO packet that leaves whole by its number of segments.
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
    at_most(st["qlen"] - peeked, st["maxq"], "queued now, maximum")
    same(st["packets_in_c"], st["c"]["enqueued"] & 0xffffffff, "packets_in_c and enqueued")
    same(st["packets_in_l"], st["l"]["enqueued"] & 0xffffffff, "packets_in_l and enqueued")
    same(st["ecn_mark"], both["marked_classic"] + both["marked_coupled"] + both["marked_native"],
         "ecn_mark and the marks of both queues")
    same(st["step_marks"], st["l"]["marked_native"], "step_marks and marked_native of L")
    at_most(st["c"]["marked_native"], (st.get("qprotect") or {}).get("redirected", 0),
            "native marks in the Classic queue, redirected packets")
    same(st["l"]["dropped_early"], 0, "early drops in the L4S queue")
    at_most(st["memory_used"], st["max_memory_used"], "memory used, maximum")
    if not both["packets"]:
        same(st["memory_used"], 0, "memory of empty queues")
        same((st["delay_c"], st["delay_l"]), (0, 0), "delays of empty queues")
    equal, bounded = _overload_invariants(st)
    for row in equal:
        same(*row)
    for row in bounded:
        at_most(*row)
    # p' is truncated to 32 bits for the dump, p_C and p_CL from the full one.
    if abs(st["p_c"] - st["p"]**2) > 4 / 2**32:
        wrong.append(f"prob_c {st['p_c']} is not the square of prob {st['p']}")
    k = st["knobs"]["coupling"]
    if abs(st["p_cl"] - min(1, k * st["p"])) > (k + 2) / 2**32:
        wrong.append(f"prob_cl {st['p_cl']} is not {k} times prob {st['p']}")
    if wrong:
        raise Failure("invariants between counters do not hold: " + "; ".join(wrong))


def _overload_invariants(st):
    """Rows for same() and for at_most()."""
    info, count = st["overload_info"], st["overload_count"]
    bounded = [(st["overload"], count, "in overload, count of overloads")]
    if not count:
        return [(info[name], 0, f"{name} without an overload")
                for name in ("total_ns", "start_ns", "duration_ns", "reports")], bounded
    bounded += [(1, info["start_ns"], "start_ns of an overload"),
                (info["duration_ns"], info["total_ns"], "duration of one overload, of all"),
                (info["reports"], 2 * info["count"], "reports, begins and ends")]
    return [(info["duration_ns"], info["total_ns"], "duration of the only overload, of all")] * (count == 1), bounded


def _counter_identities(q):
    """Of struct tc_dualpi2_counters, as its comment says."""
    n = q["counters"]
    came, lost = arrived(n), dropped
    found = [
        (came, n["presented"] + lost(n, "limit", "memory", "purge") + n["queued"],
         "arrived and presented + dropped before + queued"),
        (n["presented"], n["forwarded"] + lost(n, "early", "aqm", "overload"), "presented and forwarded + dropped"),
        (n["arrived_bytes"], n["forwarded_bytes"] + n["dropped_arrival_bytes"] + n["dropped_aqm_bytes"] +
         n["dropped_purge_bytes"] + n["queued_bytes"], "bytes arrived and forwarded + dropped + queued"),
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
        # Packets that were dropped on arrival have arrived.
        (n["marked_classic"] + n["marked_coupled"] + n["marked_native"],
         n["arrived_ect1"] + n["arrived_ect0"], "marks, packets that arrived with ECT"),
        (n["forwarded_bytes"] + n["dropped_aqm_bytes"], n["presented_bytes"], "bytes forwarded and dropped, presented"),
        (n["presented_bytes"], n["arrived_bytes"], "bytes presented, arrived"),
        (sum(n[f"not_ect_dropped_{cause}"] for cause in CAUSES), n["arrived_not_ect"], "Not-ECT dropped, arrived"),
        (sum(n[f"ect_dropped_{cause}"] for cause in CAUSES), arrived(n) - n["arrived_not_ect"], "ECT dropped, arrived"),
        *((dropped(n, *causes), n[f"dropped_{size}_bytes"], f"packets and bytes dropped, {size}")
          for size, causes in (("arrival", CAUSES_ON_ARRIVAL), ("aqm", CAUSES_AT_DEPARTURE), ("purge", ("purge",)))),
    ]


FIRST_GENERATION = 1


def _delay_identities(q, had_no_memory):
    """The histogram holds each packet forwarded since it began, unless there was no memory for it."""
    delay = q["delay"]
    total = sum(delay["hist"]) + delay["beyond"]
    found = [(delay["unit_ns"] & (delay["unit_ns"] - 1), 0, "bits of unit_ns below the highest")]
    if delay["generation"] == FIRST_GENERATION and not had_no_memory:
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
        if other in one or "overload_info" in one or "link" in one:
            raise Failure(f"class {name} has attributes of others")
        if before[queue] == after[queue] and one[queue] != before[queue]:
            raise Failure(f"class {name}: {one[queue]}, qdisc: {before[queue]}")
        n = one[queue]["counters"]
        for key in COUNTERS.names:
            low, high = (st[queue]["counters"][key] for st in (before, after))
            if not key.startswith("queued") and not low <= n[key] <= high:
                raise Failure(f"class {name}: {key} {n[key]} is not in {low}..{high} of the qdisc")
        want = {"bytes": n["forwarded_bytes"], "packets": n["forwarded"], "qlen": n["queued"],
                "backlog": n["queued_bytes"], "drops": dropped(n), "requeues": 0, "overlimits": 0}
        if mine[name]["stats"] != want:
            raise Failure(f"class {name}: {mine[name]['stats']}, its own counters: {want}")
