#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off needs=udp-prague
# suite: long kernel=stock needs=udp-prague
"""A real L4S sender that needs no kernel module, on every kernel: udp_prague over UDP (scripts/udp-prague.sh).

It is not of this project. Figures of it are the lab's (docs/PRAGUE.md): here are bounds that hold for any L4S sender.
"""

import contextlib
import time

import lib
from lib import arrived, dropped, expect, expect_between, expect_equal, main, note, percentile, tc, test
from tcp import Tcp
from udp_prague import need_udp_prague, udp_prague

RATE = 10e6                 # bit/s
RTT_MS = 10
PACKET_MS = 1514 * 8 / RATE * 1e3
WARMUP_S, SECONDS = 4, 8


class Span:
    """Counters of the time between two statistics of a qdisc."""

    def __init__(self, before, after, seconds):
        self.seconds, self.before, self.after = seconds, before, after

    def count(self, queue, name):
        """How much a counter of a queue ("c" or "l") grew."""
        return self.after[queue][name] - self.before[queue][name]

    def mbit(self, queue):
        """Mbit/s that entered a queue."""
        return self.count(queue, "enqueued_bytes") * 8 / self.seconds / 1e6

    def p99_ms(self, queue):
        """The end of the bucket with the 99th percentile of the delay."""
        old, new = (st[queue]["delay"] for st in (self.before, self.after))
        delay = new | {"hist": [b - a for a, b in zip(old["hist"], new["hist"], strict=True)],
                       "beyond": new["beyond"] - old["beyond"]}
        return percentile(delay, 0.99)[1] / 1e6


def measured(q):
    """The Span of SECONDS after the warm-up."""
    time.sleep(WARMUP_S)
    before, begun = q.stats(), time.monotonic()
    time.sleep(SECONDS)
    return Span(before, q.stats(), time.monotonic() - begun)


@contextlib.contextmanager
def bottleneck():
    """A Net with a base RTT of RTT_MS and its qdisc; no packet is in it at the end."""
    with lib.Net() as net, net.aqm(rate=RATE) as q:
        tc(f"qdisc add dev eth0 root handle 1: netem limit 10000 delay {RTT_MS}ms", net.rcv)
        yield net, q
        q.until_idle()


def expect_l4s(span):
    """All of the sender's packets are in L, marked, not dropped; L4S delay is two serialization times and a bucket."""
    marked = span.count("l", "marked_coupled") + span.count("l", "marked_native")
    note(f"L {span.mbit('l'):.2f} Mbit/s, {marked} of {span.count('l', 'enqueued')} marked, "
         f"P99 {span.p99_ms('l'):.2f} ms; "
         f"C {span.mbit('c'):.2f} Mbit/s")
    counters = span.after["l"]["counters"]
    expect_equal(counters["arrived_ect1"], arrived(counters), "ECT(1) of all in L")
    expect_equal(dropped(counters), 0, "drops of L")
    expect(marked > 0, "no packet of L was marked")
    expect(span.p99_ms("l") <= 2 * PACKET_MS * 1.125, f"P99 of L is {span.p99_ms('l')} ms")


@test("R7", "R10")
def udp_prague_alone_is_classified_l4s_marked_and_keeps_the_delay_low():
    with bottleneck() as (net, q), udp_prague(net):
        span = measured(q)
        expect_l4s(span)
        expect_equal(arrived(span.after["c"]["counters"]), 0, "packets in C")
        expect_between(span.mbit("l"), 0.9 * RATE / 1e6, RATE / 1e6 * 1.01, "Mbit/s of L")


@test("R20")
def udp_prague_and_cubic_share_the_link():
    """Within a factor of two; utilization at least 98 %."""
    with bottleneck() as (net, q):
        flow = Tcp(net, 5202, "cubic")
        try:
            with udp_prague(net):
                span = measured(q)
        finally:
            flow.end()
        expect_l4s(span)
        expect_between(span.mbit("l") / span.mbit("c"), 0.5, 2, "rate of L4S : CUBIC")
        expect_between(span.mbit("l") + span.mbit("c"), 0.98 * RATE / 1e6, RATE / 1e6 * 1.01, "Mbit/s of both")


if __name__ == "__main__":
    main(prepare=need_udp_prague)
